//! The answer of `type`: facts about a type, its fields, and its methods.

use super::object::exact_type;
use super::statics::static_columns;
use crate::analysis::{LayoutField, MethodModel, TypeBrief, TypeCategory, TypeLayout, TypeRef, TypesReport};
use crate::base::{Addr, len64};
use crate::model::Generics;
use crate::output::Paging;
use crate::output::columns::{Columns, columns};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn type_columns<'r>() -> Columns<'r, TypeBrief> {
    columns![TypeBrief, address(method_table).extra(), names(name, 60).keep(9), text(module, 30).extra(), word(token, 10).extra()]
}

fn field_columns<'r>() -> Columns<'r, LayoutField> {
    columns![
        LayoutField,
        id(offset).keep(8),
        text(name, 24).keep(9),
        text(type_name, 40).name(),
        address(method_table).extra(),
        text(declaring_type, 40).name().keep(4),
        word(token, 10).extra()
    ]
}

fn method_columns<'r>() -> Columns<'r, MethodModel> {
    columns![
        MethodModel,
        address(entry).keep(6),
        address(method_desc).keep(7),
        word(code, 12).keep(8),
        word(tier, 18).keep(3),
        id(slot),
        word(token, 10).extra(),
        names("method" = name, 60).keep(9)
    ]
}

fn facts(l: &TypeLayout) -> Vec<(&'static str, String)> {
    let some = |a: Option<Addr>| a.map_or_else(|| "?".to_string(), |a| a.to_string());
    let flags = [
        (l.finalizer, "finalizer"),
        (l.collectible, "collectible"),
        (l.contains_pointers, "contains pointers"),
        (l.generic == Generics::Instance, "generic instance"),
        (l.generic == Generics::Definition, "generic definition"),
    ];
    let flags: Vec<&str> = flags.into_iter().filter(|f| f.0).map(|f| f.1).collect();
    let mut facts = vec![
        ("Name", l.name.to_string()),
        ("Category", l.category.to_string()),
        ("Flags", flags.join(", ")),
        ("Method table", l.method_table.to_string()),
        ("Canonical", some(l.canonical)),
        ("Class", some(l.class)),
        ("Module", format!("{} {}", some(l.module_address), l.module.clone().unwrap_or_default())),
        ("Token", l.token.map_or_else(|| "-".into(), |t| t.to_string())),
        ("Parent", l.parent.as_ref().map_or_else(|| "-".into(), type_ref)),
        ("Bases", l.bases.join(" < ")),
        ("Interfaces", l.interfaces.map_or_else(|| "?".into(), |n| n.to_string())),
        ("Base size", l.base_size.to_string()),
        ("Component size", l.component_size.to_string()),
    ];
    facts.splice(1..1, exact_type(&l.name));
    let name = if matches!(l.category, TypeCategory::SzArray | TypeCategory::Array) { "Element type" } else { "Argument" };
    facts.extend(l.arguments.iter().map(|a| (name, type_ref(a))));
    facts
}

fn type_ref(t: &TypeRef) -> String {
    t.method_table.map_or_else(|| t.name.to_string(), |mt| format!("{mt} {}", t.name))
}

impl Report for TypesReport {
    fn page(&mut self, to: &mut Paging) {
        to.tells_cuts = true;
        match &mut self.layout {
            // If the answer describes one type, the rows are its methods or fields.
            Some(layout) => match &mut layout.methods {
                Some(methods) => drop(to.whole_list("methods", methods, &method_columns())),
                None => drop(to.whole_list("fields", layout.fields.get_or_insert_default(), &field_columns())),
            },
            None => drop(to.whole_list("types", &mut self.types, &type_columns())),
        }
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        // In CSV, a pattern lists types and a name lists fields, so that the columns depend only on the query.
        let pattern = self.pattern.contains(['*', '?']) || (self.pattern.starts_with('/') && self.pattern.ends_with('/'));
        let list = self.layout.is_none() && !self.types.is_empty();
        to.table(Table::records("type", &self.types, type_columns()).csv(pattern).shown(list));
        to.records("layout", &self.layout);
        let fields = self.layout.iter().flat_map(|l| l.fields.iter().flatten());
        let Some(layout) = &self.layout else {
            to.table(Table::new(fields, field_columns()).csv(!pattern).shown(false));
            if self.types.is_empty() {
                return to.line(format!("No loaded type matches '{}'", self.pattern));
            }
            to.gap();
            let n = len64(self.types.len());
            return to.line(format!("{} {} '{}'", plural(n, "loaded type"), if n == 1 { "matches" } else { "match" }, self.pattern));
        };
        to.facts(facts(layout));
        if layout.fields.is_none() {
            to.line("The fields of the type cannot be read.");
        }
        let some = fields.clone().next().is_some();
        to.gap_if(some);
        to.table(Table::new(fields, field_columns()).csv(!pattern).shown(some));
        to.gap_if(!layout.statics.is_empty());
        to.table(Table::new(&layout.statics, static_columns(false)).shown(!layout.statics.is_empty()));
        let methods = layout.methods.iter().flatten();
        let some = methods.clone().next().is_some();
        to.gap_if(some);
        to.table(Table::new(methods, method_columns()).shown(some));
        if !layout.references.is_empty() {
            let list: Vec<String> = layout.references.iter().map(ToString::to_string).collect();
            to.gap();
            to.line(format!("References at {}", list.join(", ")));
        }
    }
}
