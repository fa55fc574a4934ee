use std::io;

use serde_json::Value;

use super::{completeness, statics};
use crate::model::{Generics, LayoutField, TypeBrief, TypeLayout, TypesReport};
use crate::output::{Cell, Column, Grid, Page, Report, record};

fn type_row(t: &TypeBrief) -> Vec<Cell> {
    vec![
        Cell::Addr(t.method_table),
        Cell::Text(t.name.clone()),
        Cell::some(t.module.clone(), Cell::Text),
        Cell::some(t.token.clone(), Cell::Text),
    ]
}

fn field_row(f: &LayoutField) -> Vec<Cell> {
    vec![
        Cell::Text(f.offset.to_string()),
        Cell::Text(f.name.clone()),
        Cell::Text(f.type_name.clone()),
        Cell::some(f.method_table, Cell::Addr),
        Cell::Text(f.declaring_type.clone()),
        Cell::Text(f.token.clone()),
    ]
}

impl TypesReport {
    fn list(&self) -> Grid<'_> {
        let columns =
            vec![Column::address("method_table"), Column::text("name", 60), Column::text("module", 30), Column::text("token", 10)];
        Grid::new(columns, || self.types.iter().map(type_row))
    }
}

fn fields(layout: Option<&TypeLayout>) -> Grid<'_> {
    let columns = vec![
        Column::number("offset"),
        Column::text("name", 24),
        Column::text("type", 40),
        Column::address("method_table"),
        Column::text("declaring_type", 40),
        Column::text("token", 10),
    ];
    Grid::new(columns, move || layout.into_iter().flat_map(|l| l.fields.iter().flatten()).map(field_row))
}

fn facts(l: &TypeLayout) -> Vec<(&'static str, String)> {
    let some = |a: Option<crate::base::Addr>| a.map_or_else(|| "?".to_string(), |a| a.to_string());
    let flags = [
        (l.finalizer, "finalizer"),
        (l.collectible, "collectible"),
        (l.contains_pointers, "contains pointers"),
        (l.generic == Generics::Instance, "generic instance"),
        (l.generic == Generics::Definition, "generic definition"),
    ];
    let flags: Vec<&str> = flags.into_iter().filter(|f| f.0).map(|f| f.1).collect();
    vec![
        ("Name", l.name.clone()),
        ("Category", l.category.to_string()),
        ("Flags", flags.join(", ")),
        ("Method table", l.method_table.to_string()),
        ("Canonical", some(l.canonical)),
        ("Class", some(l.class)),
        ("Module", format!("{} {}", some(l.module_address), l.module.clone().unwrap_or_default())),
        ("Token", l.token.clone().unwrap_or_else(|| "-".into())),
        ("Bases", l.bases.join(" < ")),
        ("Interfaces", l.interfaces.map_or_else(|| "?".into(), |n| n.to_string())),
        ("Base size", l.base_size.to_string()),
        ("Component size", l.component_size.to_string()),
    ]
}

impl Report for TypesReport {
    completeness!();

    /// For a pattern the types, for a name the fields: scripts know the columns from what they asked for.
    fn grid(&self) -> Grid<'_> {
        if self.pattern.contains(['*', '?']) { self.list() } else { fields(self.layout.as_ref()) }
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let types = self.types.iter().map(|t| record("type", t));
        Box::new(types.chain(self.layout.iter().map(|l| record("layout", l))))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        let Some(layout) = &self.layout else {
            if self.types.is_empty() {
                return page.line(&format!("No loaded type fits {}", self.pattern));
            }
            page.grid(&self.list(), None)?;
            page.gap()?;
            return page.line(&format!("{} loaded types fit {}", self.types.len(), self.pattern));
        };
        page.facts(&facts(layout))?;
        if layout.fields.is_none() {
            page.line("Its fields cannot be read")?;
        }
        if layout.fields.as_ref().is_some_and(|f| !f.is_empty()) {
            page.gap()?;
            page.grid(&fields(Some(layout)), None)?;
        }
        if !layout.statics.is_empty() {
            page.gap()?;
            page.grid(&Grid::new(statics::columns(), || layout.statics.iter().map(statics::row)), None)?;
        }
        if !layout.references.is_empty() {
            let list: Vec<String> = layout.references.iter().map(ToString::to_string).collect();
            page.gap()?;
            page.line(&format!("References at {}", list.join(", ")))?;
        }
        Ok(())
    }
}
