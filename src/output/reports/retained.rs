use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{
    CoverageKind, ObjSizeReport, PathsReport, RetainedObject, RetainedReport, RetainedType, RootCoverageModel, RootModel, Suspect, TreeRow,
};
use crate::output::{Align, Cell, Column, Grid, Page, Report, bytes, count, plural, record};

const SHARE: Column = Column { name: "share", align: Align::Right, width: 7 };

fn object_row(o: &RetainedObject) -> Vec<Cell> {
    vec![
        Cell::Addr(o.address),
        Cell::Bytes(o.size),
        Cell::Bytes(o.retained),
        Cell::Share(o.share),
        Cell::Count(o.dominated),
        Cell::Text(o.type_name.clone()),
    ]
}

fn objects_grid(list: &[RetainedObject]) -> Grid<'_> {
    let numbers = ["size", "retained"].map(Column::number);
    let columns =
        [Column::address("address")].into_iter().chain(numbers).chain([SHARE, Column::number("dominated"), Column::text("type", 60)]);
    Grid::new(columns.collect(), move || list.iter().map(object_row))
}

fn types_grid(list: &[RetainedType]) -> Grid<'_> {
    let columns = vec![
        Column::address("method_table"),
        Column::number("count"),
        Column::number("bytes"),
        Column::number("retained"),
        SHARE,
        Column::text("type", 60),
    ];
    Grid::new(columns, move || {
        list.iter().map(|t| {
            vec![
                Cell::Addr(t.method_table),
                Cell::Count(t.count),
                Cell::Bytes(t.bytes),
                Cell::Bytes(t.retained),
                Cell::Share(t.share),
                Cell::Text(t.type_name.clone()),
            ]
        })
    })
}

fn tree_grid(rows: &[TreeRow]) -> Grid<'_> {
    let columns = vec![
        Column::number("depth"),
        Column::address("address"),
        Column::number("size"),
        Column::number("retained"),
        SHARE,
        Column::text("type", 80),
    ];
    Grid::new(columns, move || {
        rows.iter().map(|r| {
            let o = &r.object;
            let indent = "  ".repeat(usize::try_from(r.depth).unwrap_or(0).min(40));
            let more = if r.hidden > 0 { format!(" (and {} below)", count(r.hidden)) } else { String::new() };
            vec![
                Cell::Count(u64::from(r.depth)),
                Cell::Addr(o.address),
                Cell::Bytes(o.size),
                Cell::Bytes(o.retained),
                Cell::Share(o.share),
                Cell::Text(format!("{indent}{}{more}", o.type_name)),
            ]
        })
    })
}

fn suspects_grid(list: &[Suspect]) -> Grid<'_> {
    let columns = vec![
        Column::text("kind", 6),
        Column::address("address"),
        Column::number("count"),
        Column::number("retained"),
        SHARE,
        Column::text("type", 60),
    ];
    Grid::new(columns, move || {
        list.iter().map(|s| {
            vec![
                Cell::Text(s.kind.to_string()),
                Cell::some(s.address, Cell::Addr),
                Cell::Count(s.count),
                Cell::Bytes(s.retained),
                Cell::Share(s.share),
                Cell::Text(s.type_name.clone()),
            ]
        })
    })
}

/// How well the roots are known, in a line for each kind that is not complete.
pub(super) fn root_coverage(page: &mut Page<'_>, coverage: &[RootCoverageModel]) -> io::Result<()> {
    let complete: Vec<&str> = coverage.iter().filter(|c| c.coverage == CoverageKind::Complete).map(|c| c.kind.name()).collect();
    if !complete.is_empty() {
        page.line(&format!("roots: complete: {}", complete.join(", ")))?;
    }
    for c in coverage.iter().filter(|c| c.coverage != CoverageKind::Complete) {
        let reason = c.reason.as_ref().map_or_else(String::new, |r| format!(": {r}"));
        page.line(&format!("roots: {}: {}{reason}", c.coverage.name(), c.kind.name()))?;
    }
    Ok(())
}

impl Report for RetainedReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        if let Some(tree) = &self.tree {
            tree_grid(tree)
        } else if let Some(list) = &self.suspects {
            suspects_grid(list)
        } else if let Some(object) = &self.object {
            objects_grid(std::slice::from_ref(&object.object))
        } else {
            objects_grid(self.objects.as_deref().unwrap_or_default())
        }
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let objects = self.objects.iter().flatten().map(|o| record("object", o));
        let types = self.types.iter().flatten().map(|t| record("type", t));
        let detail = self.object.iter().map(|o| record("detail", o));
        let tree = self.tree.iter().flatten().map(|t| record("tree", t));
        let suspects = self.suspects.iter().flatten().map(|s| record("suspect", s));
        let coverage = self.coverage.iter().map(|c| record("coverage", c));
        Box::new(objects.chain(types).chain(detail).chain(tree).chain(suspects).chain(coverage).chain([record("totals", &self.totals)]))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if let Some(list) = self.objects.as_ref().filter(|l| !l.is_empty()) {
            page.grid(&objects_grid(list), None)?;
            page.gap()?;
        }
        if let Some(list) = self.types.as_ref().filter(|l| !l.is_empty()) {
            page.grid(&types_grid(list), None)?;
            page.gap()?;
        }
        if let Some(o) = &self.object {
            page.facts(&[
                ("Object", format!("{} {}", o.object.address, o.object.type_name)),
                ("Size", format!("{} bytes", count(o.object.size))),
                (
                    "Retains",
                    format!(
                        "{} bytes ({:.1} %) in {} objects",
                        count(o.object.retained),
                        o.object.share * 100.0,
                        count(o.object.dominated)
                    ),
                ),
            ])?;
            if !o.reachable {
                page.line("No root reaches it: it is garbage.")?;
            }
            for (title, list) in [("Dominated by, the nearest first:", &o.chain), ("The largest below it:", &o.children)] {
                if !list.is_empty() {
                    page.gap()?;
                    page.line(title)?;
                    page.grid(&objects_grid(list), None)?;
                }
            }
            page.gap()?;
        }
        if let Some(tree) = &self.tree {
            page.grid(&tree_grid(tree), None)?;
            page.gap()?;
        }
        if let Some(list) = &self.suspects {
            if list.is_empty() {
                page.line("Nothing holds that much.")?;
            }
            for s in list {
                page.line(&s.text)?;
            }
            page.gap()?;
        }
        let t = &self.totals;
        let unreached = t.bytes.saturating_sub(t.reachable_bytes);
        page.line(&format!(
            "{} objects, {}; {} reachable, {}; {} ({}) garbage",
            count(t.objects),
            bytes(t.bytes),
            count(t.reachable_objects),
            bytes(t.reachable_bytes),
            count(t.objects.saturating_sub(t.reachable_objects)),
            bytes(unreached),
        ))?;
        if self.stacks == crate::model::Stacks::Fallback {
            page.line("Words of stacks count only for what nothing else reaches (--stacks all|none).")?;
        }
        root_coverage(page, &self.coverage)
    }
}

impl Report for ObjSizeReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let columns = ["size", "retained", "closure_bytes", "closure_objects", "shared_bytes"].map(Column::number);
        let columns = [Column::address("address")].into_iter().chain(columns).chain([Column::text("type", 60)]);
        Grid::new(columns.collect(), || {
            let o = &self.object;
            let numbers = [o.size, o.retained, self.closure_bytes, self.closure_objects, self.shared_bytes].map(Cell::Bytes);
            [[Cell::Addr(o.address)].into_iter().chain(numbers).chain([Cell::Text(o.type_name.clone())]).collect()].into_iter()
        })
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(std::iter::once(record("objsize", self)))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        let o = &self.object;
        page.facts(&[
            ("Object", format!("{} {}", o.address, o.type_name)),
            ("Size", format!("{} bytes", count(o.size))),
            ("Leads to", format!("{} objects, {} bytes (what SOS calls its size)", count(self.closure_objects), count(self.closure_bytes))),
            ("Retains", format!("{} bytes: what would be freed without it", count(o.retained))),
            ("Shared", format!("{} bytes that others hold as well", count(self.shared_bytes))),
        ])?;
        if !self.reachable {
            page.line("No root reaches it: it is garbage, and retains nothing.")?;
        }
        page.gap()?;
        root_coverage(page, &self.coverage)
    }
}

fn root_line(r: &RootModel) -> String {
    let flags =
        if r.flags.is_empty() { String::new() } else { format!(" [{}]", r.flags.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ")) };
    let at = r.address.map_or_else(String::new, |a| format!(" {a}"));
    format!("{}{flags}{at}: {}", r.kind.name(), r.label)
}

impl Report for PathsReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::number("path"),
            Column::number("step"),
            Column::address("address"),
            Column::number("size"),
            Column::text("field", 30),
            Column::text("type", 60),
        ];
        Grid::new(columns, || {
            self.paths.iter().zip(1u64..).flat_map(|(p, n)| {
                p.steps.iter().zip(0u64..).map(move |(s, i)| {
                    vec![
                        Cell::Count(n),
                        Cell::Count(i),
                        Cell::Addr(s.address),
                        Cell::Bytes(s.size),
                        Cell::some(s.field.clone(), Cell::Text),
                        Cell::Text(s.type_name.clone()),
                    ]
                })
            })
        })
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let paths = self.paths.iter().map(|p| record("path", p));
        let tree = self.tree.iter().flatten().map(|n| record("node", n));
        Box::new(paths.chain(tree).chain(self.coverage.iter().map(|c| record("coverage", c))))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.targets > 1 || self.reachable == 0 {
            page.line(&format!("{} of {} objects are reachable from roots", count(self.reachable), count(self.targets)))?;
            page.gap()?;
        }
        if let Some(tree) = &self.tree {
            for n in tree {
                let indent = "  ".repeat(usize::try_from(n.depth).unwrap_or(0).min(40));
                let example = n.example.map_or_else(String::new, |a| format!("  e.g. {a}"));
                let objects = if n.objects > 1 { format!("{} × ", count(n.objects)) } else { String::new() };
                page.line(&format!("{indent}{objects}{}  → {}, {}{example}", n.name, plural(n.targets, "object"), bytes(n.bytes)))?;
            }
            page.gap()?;
        }
        for p in &self.paths {
            for r in &p.roots {
                page.line(&root_line(r))?;
            }
            for (s, depth) in p.steps.iter().zip(1usize..) {
                let field = s.field.as_ref().map_or_else(String::new, |f| format!(".{f} "));
                page.line(&format!("{}-> {field}{} {} ({} bytes)", " ".repeat(depth.min(40)), s.address, s.type_name, count(s.size)))?;
            }
            page.gap()?;
        }
        root_coverage(page, &self.coverage)
    }
}
