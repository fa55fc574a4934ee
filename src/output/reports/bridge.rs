use std::io;

use serde_json::Value;

use super::completeness;
use super::retained::root_coverage;
use crate::model::{BridgeClass, BridgeReport, BridgeScc};
use crate::output::sanitize::is_hostile;
use crate::output::{Cell, Column, Grid, Page, Report, count, record};

fn rows(scc: &BridgeScc) -> impl Iterator<Item = Vec<Cell>> + '_ {
    scc.objects.iter().map(|o| {
        vec![
            Cell::Count(scc.index.into()),
            Cell::Text(if scc.alive { "alive" } else { "dead" }.into()),
            Cell::Addr(o.address),
            Cell::Addr(o.method_table),
            Cell::Text(o.type_name.clone()),
            Cell::some(o.handle, Cell::Addr),
            Cell::some(o.context, Cell::Addr),
        ]
    })
}

/// A string as DOT wants it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if is_hostile(c) => out.push('?'),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl BridgeReport {
    fn classes_grid(&self) -> Grid<'_> {
        let columns = vec![Column::text("kind", 18), Column::number("bridged"), Column::address("method_table"), Column::text("type", 60)];
        let row = |c: &BridgeClass| {
            vec![Cell::Text(c.kind.name().into()), Cell::Count(c.bridged), Cell::Addr(c.method_table), Cell::Text(c.type_name.clone())]
        };
        Grid::new(columns, move || self.classes.iter().map(row))
    }

    fn dot(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.line("digraph bridge {")?;
        page.line("  node [shape=box];")?;
        for scc in &self.sccs {
            let state = if scc.alive { "alive" } else { "dead" };
            page.line(&format!("  subgraph cluster_{0} {{ label={1};", scc.index, quoted(&format!("scc {} {state}", scc.index))))?;
            page.line(&format!("    s{} [shape=point];", scc.index))?;
            for o in &scc.objects {
                page.line(&format!(
                    "    {} [label={}];",
                    quoted(&o.address.to_string()),
                    quoted(&format!("{} {}", o.type_name, o.address))
                ))?;
            }
            page.line("  }")?;
        }
        for x in &self.xrefs {
            page.line(&format!("  s{} -> s{};", x.src, x.dst))?;
        }
        page.line("}")
    }
}

impl Report for BridgeReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::number("scc"),
            Column::text("state", 5),
            Column::address("address"),
            Column::address("method_table"),
            Column::text("type", 50),
            Column::address("handle"),
            Column::address("context"),
        ];
        Grid::new(columns, move || self.sccs.iter().flat_map(rows))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let sccs = self.sccs.iter().map(|s| record("scc", s));
        let xrefs = self.xrefs.iter().map(|x| record("xref", x));
        let classes = self.classes.iter().map(|c| record("class", c));
        let coverage = self.coverage.iter().map(|c| record("coverage", c));
        Box::new(sccs.chain(xrefs).chain(classes).chain(coverage))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.dot {
            return self.dot(page);
        }
        if !self.sccs.is_empty() {
            page.grid(&self.grid(), None)?;
            page.gap()?;
        }
        if !self.xrefs.is_empty() {
            let columns = vec![Column::number("src"), Column::number("dst")];
            let row = |x: &crate::model::BridgeXref| vec![Cell::Count(x.src.into()), Cell::Count(x.dst.into())];
            page.grid(&Grid::new(columns, || self.xrefs.iter().map(row)), None)?;
            page.gap()?;
        }
        if !self.classes.is_empty() {
            page.grid(&self.classes_grid(), None)?;
            page.gap()?;
        }
        let number = |n: usize| count(u64::try_from(n).unwrap_or(u64::MAX));
        let shown = if self.all { "" } else { " (--all shows the living ones too)" };
        page.line(&format!(
            "{} bridged objects, {} of them dead{shown}; {} components, {} cross references",
            count(self.bridged),
            count(self.dead),
            number(self.sccs.len()),
            number(self.xrefs.len())
        ))?;
        page.gap()?;
        root_coverage(page, &self.coverage)
    }
}
