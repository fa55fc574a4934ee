use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{ContractsReport, GlobalModel};
use crate::output::{Cell, Column, Grid, Page, Report, count, record};

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

impl ContractsReport {
    fn contracts_grid(&self) -> Grid<'_> {
        let columns =
            vec![Column::text("contract", 24), Column::text("version", 8), Column::text("support", 24), Column::text("origin", 30)];
        Grid::new(columns, || {
            self.contracts.iter().map(|c| {
                vec![
                    Cell::Text(c.name.clone()),
                    Cell::some(c.version.clone(), Cell::Text),
                    Cell::Text(c.support.name().replace('-', " ")),
                    Cell::some(c.origin.clone(), Cell::Text),
                ]
            })
        })
    }

    fn globals_grid(&self) -> Grid<'_> {
        let columns = vec![Column::text("global", 34), Column::text("type", 10), Column::text("value", 40), Column::text("origin", 30)];
        Grid::new(columns, || {
            self.globals.iter().map(|g| {
                vec![
                    Cell::Text(g.name.clone()),
                    Cell::some(g.type_name.clone(), Cell::Text),
                    Cell::Text(value(g)),
                    Cell::Text(g.origin.clone()),
                ]
            })
        })
    }
}

impl Report for ContractsReport {
    completeness!();

    /// Everything in one list: contracts, types, fields, globals.
    fn grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::text("kind", 10),
            Column::text("name", 40),
            Column::text("type", 12),
            Column::text("value", 40),
            Column::text("origin", 30),
        ];
        let text = |s: &str| Cell::Text(s.into());
        Grid::new(columns, move || {
            let contracts = self.contracts.iter().map(move |c| {
                vec![
                    text("contract"),
                    text(&c.name),
                    Cell::None,
                    Cell::some(c.version.clone(), Cell::Text),
                    Cell::some(c.origin.clone(), Cell::Text),
                ]
            });
            let types = self.types.iter().flat_map(move |t| {
                let size = vec![text("type"), text(&t.name), Cell::None, Cell::some(t.size, Cell::Count), Cell::None];
                std::iter::once(size).chain(t.fields.iter().map(move |f| {
                    vec![
                        text("field"),
                        Cell::Text(format!("{}.{}", t.name, f.name)),
                        Cell::some(f.type_name.clone(), Cell::Text),
                        Cell::Count(f.offset),
                        text(&f.origin),
                    ]
                }))
            });
            let globals = self.globals.iter().map(move |g| {
                vec![text("global"), text(&g.name), Cell::some(g.type_name.clone(), Cell::Text), Cell::Text(value(g)), text(&g.origin)]
            });
            contracts.chain(types).chain(globals)
        })
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let origins = self.origins.iter().map(|o| record("origin", o));
        let contracts = self.contracts.iter().map(|c| record("contract", c));
        let types = self.types.iter().map(|t| record("type", t));
        let globals = self.globals.iter().map(|g| record("global", g));
        let checks = self.checks.iter().map(|c| record("check", c));
        Box::new(origins.chain(contracts).chain(types).chain(globals).chain(checks))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.line("Sources, weakest first:")?;
        for o in &self.origins {
            let at = o.address.map(|a| format!(" at {a}")).unwrap_or_default();
            page.line(&format!("  {}{at} ({}, format version {})", o.name, o.kind, o.version))?;
        }
        page.gap()?;
        page.grid(&self.contracts_grid(), None)?;
        for c in self.contracts.iter().filter(|c| c.support != crate::model::SupportKind::Supported && c.version.is_none()) {
            page.line(&format!("  {}", c.message))?;
        }
        if !self.types.is_empty() {
            page.gap()?;
            page.line("Types (offset of each field in bytes):")?;
        }
        for t in &self.types {
            let size = t.size.map(|n| format!(", {} bytes", count(n))).unwrap_or_default();
            let fields: Vec<String> = t.fields.iter().map(|f| format!("{}={}", f.name, f.offset)).collect();
            let colon = if fields.is_empty() { "" } else { ": " };
            page.line(&format!("  {}{size}{colon}{}", t.name, fields.join(" ")))?;
        }
        if !self.globals.is_empty() {
            page.gap()?;
            page.grid(&self.globals_grid(), None)?;
        }
        if !self.checks.is_empty() {
            page.gap()?;
            page.line("Self-checks against this dump:")?;
            for c in &self.checks {
                page.line(&format!("  {:<8} {}: {}", c.outcome, c.name, c.facts))?;
            }
        }
        Ok(())
    }
}
