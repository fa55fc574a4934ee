//! The answer of `contracts`: contracts, types, fields and globals.

use super::name_of;
use crate::analysis::{ContractModel, ContractsReport, FieldModel, GlobalModel, SupportKind, TypeModel};
use crate::output::columns::{Columns, columns};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn value(g: &GlobalModel) -> String {
    if let Some(a) = g.address {
        return match g.content {
            Some(c) => format!("{a} → {c}"),
            None => a.to_string(),
        };
    }
    match (&g.text, g.number, &g.missing) {
        (_, _, Some(why)) => format!("({why})"),
        (Some(t), _, _) => t.clone(),
        (None, Some(n), _) => n.to_string(),
        (None, None, None) => String::new(),
    }
}

fn contract_columns<'r>() -> Columns<'r, ContractModel> {
    columns![
        ContractModel,
        text("contract" = name, 24),
        text(version, 8).whole(),
        text("support", 24, |c| name_of(c.support).map(|s| s.replace('-', " "))).whole(),
        text(origin, 30)
    ]
}

fn global_columns<'r>() -> Columns<'r, GlobalModel> {
    columns![GlobalModel, text("global" = name, 34), text(type_name, 10), text("value", 40, value).lines(2), text(origin, 30)]
}

/// A CSV row: any item of the report.
#[derive(Clone, Copy)]
enum Item<'r> {
    Contract(&'r ContractModel),
    Type(&'r TypeModel),
    Field(&'r TypeModel, &'r FieldModel),
    Global(&'r GlobalModel),
}

fn item_columns<'r>() -> Columns<'r, Item<'r>> {
    columns![
        Item<'r>,
        word("kind", 10, |i| match i {
            Item::Contract(_) => "contract",
            Item::Type(_) => "type",
            Item::Field(..) => "field",
            Item::Global(_) => "global",
        }),
        text("name", 40, |i| match i {
            Item::Contract(c) => c.name.clone(),
            Item::Type(t) => t.name.clone(),
            Item::Field(t, f) => format!("{}.{}", t.name, f.name),
            Item::Global(g) => g.name.clone(),
        }),
        text("type", 12, |i| match i {
            Item::Contract(_) | Item::Type(_) => None,
            Item::Field(_, f) => f.type_name.as_deref(),
            Item::Global(g) => g.type_name.as_deref(),
        }),
        text("value", 40, |i| match i {
            Item::Contract(c) => c.version.clone(),
            Item::Type(t) => t.size.map(|n| n.to_string()),
            Item::Field(_, f) => Some(f.offset.to_string()),
            Item::Global(g) => Some(value(g)),
        })
        .lines(2),
        text("origin", 30, |i| match i {
            Item::Contract(c) => c.origin.as_ref(),
            Item::Type(_) => None,
            Item::Field(_, f) => Some(&f.origin),
            Item::Global(g) => Some(&g.origin),
        })
    ]
}

fn type_line(t: &TypeModel) -> String {
    let size = t.size.map(|n| format!(", {}", plural(n, "byte"))).unwrap_or_default();
    let fields: Vec<String> = t.fields.iter().map(|f| format!("{}={}", f.name, f.offset)).collect();
    let colon = if fields.is_empty() { "" } else { ": " };
    format!("  {}{size}{colon}{}", t.name, fields.join(" "))
}

impl Report for ContractsReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let contracts = self.contracts.iter().map(Item::Contract);
        let types = self.types.iter().flat_map(|t| std::iter::once(Item::Type(t)).chain(t.fields.iter().map(move |f| Item::Field(t, f))));
        let all = contracts.chain(types).chain(self.globals.iter().map(Item::Global));
        to.table(Table::new(all, item_columns()).csv(true).shown(false));
        to.title("Sources, lowest precedence first:");
        for o in &self.origins {
            let at = o.address.map(|a| format!(" at {a}")).unwrap_or_default();
            to.line(format!("  {}{at} ({}, format version {})", o.name, o.kind, o.version));
        }
        to.records("origin", &self.origins);
        to.gap();
        to.table(Table::records("contract", &self.contracts, contract_columns()));
        let lacking = self.contracts.iter().filter(|c| c.support != SupportKind::Supported && c.version.is_none());
        to.lines(lacking.map(|c| format!("  {}", c.message)));
        if !self.types.is_empty() {
            to.gap();
            to.title("Types (field offsets in bytes):");
        }
        to.lines(self.types.iter().map(type_line));
        to.records("type", &self.types);
        if !self.unusable.is_empty() {
            to.gap();
            to.title("Not usable:");
        }
        to.lines(self.unusable.iter().map(|u| format!("  {}: {}", u.item, u.reason)));
        to.records("unusable", &self.unusable);
        to.gap_if(!self.globals.is_empty());
        to.table(Table::records("global", &self.globals, global_columns()).shown(!self.globals.is_empty()));
        if !self.checks.is_empty() {
            to.gap();
            to.title("Self-checks against this dump:");
        }
        to.lines(self.checks.iter().map(|c| format!("  {:<8} {}: {}", c.outcome, c.name, c.facts)));
        to.records("check", &self.checks);
    }
}
