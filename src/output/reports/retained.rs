//! The answer of `retained`: objects, types, groups, one object, the dominator tree, or suspects.

use super::folds::{self, Indent, Part};
use super::{by_type, number};
use crate::analysis::{
    ObjSizeReport, PathModel, PathNode, PathStep, PathsReport, RetainedDetail, RetainedGroup, RetainedObject, RetainedReport, RetainedRows,
    RetainedType, Suspect, TreeRow,
};
use crate::base::{be, len64, total};
use crate::model::{CoverageKind, RootCoverageModel, RootModel};
use crate::output::Paging;
use crate::output::columns::{Columns, Fill, Readers, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes, count, plural};

fn object_columns<'r>() -> Columns<'r, RetainedObject> {
    columns![
        RetainedObject,
        address(address).keep(8),
        bytes(size).keep(4),
        bytes(retained).keep(9),
        share(share).keep(6),
        count(dominated).keep(3),
        names(type_name, 60)
    ]
}

fn type_columns<'r>() -> Columns<'r, RetainedType> {
    columns![
        RetainedType,
        address(method_table).extra(),
        count(count).keep(6),
        bytes(bytes),
        bytes(retained).keep(9),
        share(share).keep(6),
        names(type_name, 60)
    ]
}

fn group_columns<'r>() -> Columns<'r, RetainedGroup> {
    columns![RetainedGroup, count(count).keep(6), bytes(bytes), bytes(retained).keep(9), share(share).keep(6), text(key, 60).keep(9)]
}

fn indent(depth: u32) -> String {
    "  ".repeat(usize::try_from(depth).unwrap_or(0).min(40))
}

/// Columns of the tree. The bars form an icicle chart whose full width is all reachable bytes.
fn tree_columns<'r>(reachable: u64) -> Columns<'r, TreeRow> {
    columns![
        TreeRow,
        count(depth).keep(2),
        address(object.address).keep(8),
        bytes(object.size).keep(4),
        bytes(object.retained).keep(9),
        share(object.share).blocks(move |r| Fill::block(r.offset, r.object.retained, reachable)).keep(6),
        text("type", 80, |r| {
            let more = match r.hidden {
                0 => String::new(),
                1 => " (+1 child)".into(),
                n => format!(" (+{} children)", count(n)),
            };
            format!("{}{}{more}", indent(r.depth), r.object.type_name)
        })
        .name()
        .least(28)
        .keep(9)
    ]
}

/// Returns the columns of the best root. They are for CSV only, because tables print roots as lines.
fn root_columns<'r, T: 'r>(roots: fn(&T) -> &[RootModel]) -> Columns<'r, T> {
    columns![
        T,
        word("root_kind", 20, |row| roots(row).first().map(|r| r.kind)).only(Readers::Machines),
        address("root_address", |row| roots(row).first().and_then(|r| r.address)).only(Readers::Machines),
        text("root", 60, |row| roots(row).first().map(|r| &r.label)).only(Readers::Machines)
    ]
}

fn suspect_columns<'r>() -> Columns<'r, Suspect> {
    let suspects = columns![Suspect, word(kind, 6), address(address), count(count), bytes(retained), share(share), names(type_name, 60)];
    suspects.and(root_columns(|s| &s.roots)).and(columns![
        Suspect,
        address("accumulation", |s| s.accumulation.as_ref().map(|o| o.address)).only(Readers::Machines),
        text("accumulation_type", 60, |s| s.accumulation.as_ref().map(|o| o.type_name.as_str())).only(Readers::Machines)
    ])
}

/// Adds the root coverage: one line for all complete kinds, then a line for each other kind. Stacks and registers with conservative coverage share a
/// line.
pub(super) fn root_coverage<'r>(to: &mut Sections<'r>, coverage: &'r [RootCoverageModel]) {
    let complete: Vec<&str> = coverage.iter().filter(|c| c.coverage == CoverageKind::Complete).map(|c| c.kind.name()).collect();
    if !complete.is_empty() {
        to.line(format!("roots: complete: {}", complete.join(", ")));
    }
    let scanned = |c: &RootCoverageModel| c.kind.is_of_stacks() && c.coverage == CoverageKind::Conservative;
    if coverage.iter().any(scanned) {
        let reasons = coverage.iter().filter(|c| scanned(c)).filter_map(|c| c.reason.as_deref());
        let reason = reasons.max_by_key(|r| r.len()).unwrap_or("some roots may be stale");
        // The notes of a partial answer contain all reasons, so the line has only the first reason.
        let shown = if to.complete { reason } else { reason.split("; ").next().unwrap_or(reason) };
        to.line(format!("stacks: {shown}"));
    }
    to.lines(coverage.iter().filter(move |c| c.coverage != CoverageKind::Complete && !scanned(c)).map(|c| {
        let reason = c.reason.as_ref().map_or_else(String::new, |r| format!(": {r}"));
        format!("roots: {}: {}{reason}", c.coverage.name(), c.kind.name())
    }));
}

/// Describes one object with its dominators and the objects it dominates.
fn detail<'r>(to: &mut Sections<'r>, o: &'r RetainedDetail) {
    let object = &o.object;
    let retains = format!("{} ({:.1} %) in {}", plural(object.retained, "byte"), object.share * 100.0, plural(object.dominated, "object"));
    to.facts([("Object", format!("{} {}", object.address, object.type_name)), ("Size", plural(object.size, "byte")), ("Retains", retains)]);
    if !o.reachable {
        to.line(format!("Not reachable from any root{}: garbage.", to.within()));
    }
    to.titled("Dominators, nearest first:", !o.chain.is_empty(), Table::new(&o.chain, object_columns()));
    to.titled("Largest dominated objects:", !o.children.is_empty(), Table::new(&o.children, object_columns()));
    to.titled("Dominated objects by type:", !o.by_type.is_empty(), Table::new(&o.by_type, by_type::type_columns()));
    to.gap();
}

impl Report for RetainedReport {
    fn page(&mut self, to: &mut Paging) {
        match &mut self.rows {
            RetainedRows::Top { objects, object_count, types, type_count } => {
                to.list("objects", objects, *object_count, &object_columns());
                to.list("types", types, *type_count, &type_columns());
            }
            RetainedRows::By { groups, group_count } => {
                to.list("groups", groups, *group_count, &group_columns());
            }
            RetainedRows::Object { .. } | RetainedRows::Tree { .. } | RetainedRows::Suspects { .. } => {}
        }
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let all = self.rows.fields();
        let (tree, suspects, object) = (all.tree.is_some(), all.suspects.is_some(), all.object.is_some());
        let some = all.objects.is_some_and(|l| !l.is_empty());
        let objects = Table::records("object", all.objects.into_iter().flatten(), object_columns());
        to.table(objects.csv(!tree && !suspects && !object && all.groups.is_none()).shown(some));
        to.more(all.objects.map(|l| len64(l.len())), all.object_count.copied().unwrap_or(0), "object");
        to.gap_if(some);
        let some = all.types.is_some_and(|l| !l.is_empty());
        to.table(Table::records("type", all.types.into_iter().flatten(), type_columns()).shown(some));
        to.more(all.types.map(|l| len64(l.len())), all.type_count.copied().unwrap_or(0), "type");
        to.gap_if(some);
        let some = all.groups.is_some_and(|l| !l.is_empty());
        let groups = Table::records("group", all.groups.into_iter().flatten(), group_columns());
        to.table(groups.csv(all.groups.is_some()).shown(some));
        to.more(all.groups.map(|l| len64(l.len())), all.group_count.copied().unwrap_or(0), "group");
        to.gap_if(some);
        if let Some(o) = all.object {
            to.table(Table::new([&o.object], object_columns()).csv(true).shown(false));
            to.record("detail", o);
            detail(to, o);
        }
        let rows = all.tree.into_iter().flatten();
        to.table(Table::records("tree", rows, tree_columns(self.totals.reachable_bytes)).csv(tree).shown(tree));
        to.gap_if(tree);
        to.table(Table::records("suspect", all.suspects.into_iter().flatten(), suspect_columns()).csv(suspects).shown(false));
        if let Some(list) = all.suspects {
            if list.is_empty() {
                to.none("No suspects above the threshold");
            }
            to.lines(list.iter().map(|s| s.text.clone()));
            to.gap();
        }
        let t = &self.totals;
        to.line(format!(
            "{}, {}; {} reachable, {}; {} ({}) garbage",
            plural(t.objects, "object"),
            bytes(t.bytes),
            count(t.reachable_objects),
            bytes(t.reachable_bytes),
            count(t.objects.saturating_sub(t.reachable_objects)),
            bytes(t.bytes.saturating_sub(t.reachable_bytes)),
        ));
        root_coverage(to, &self.coverage);
        to.records("coverage", &self.coverage);
        to.record("totals", t);
    }
}

fn size_columns<'r>() -> Columns<'r, ObjSizeReport> {
    columns![
        ObjSizeReport,
        address(object.address),
        bytes(object.size),
        bytes(object.retained),
        bytes(closure_bytes),
        count(closure_objects).extra(),
        bytes(shared_bytes),
        names(object.type_name, 60)
    ]
}

impl Report for ObjSizeReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let o = &self.object;
        to.itself("objsize", self);
        to.table(Table::new([self], size_columns()).csv(true).shown(false));
        to.facts([
            ("Object", format!("{} {}", o.address, o.type_name)),
            ("Size", plural(o.size, "byte")),
            ("Closure", format!("{}, {} (as SOS objsize)", plural(self.closure_objects, "object"), plural(self.closure_bytes, "byte"))),
            ("Retained", format!("{}, freed together with the object", plural(o.retained, "byte"))),
            ("Shared", format!("{} also held by others", plural(self.shared_bytes, "byte"))),
        ]);
        if !self.reachable {
            to.line(format!("Not reachable from any root{}: garbage, which retains nothing.", to.within()));
        }
        to.gap();
        root_coverage(to, &self.coverage);
    }
}

pub(super) fn root_line(r: &RootModel) -> String {
    let flags =
        if r.flags.is_empty() { String::new() } else { format!(" [{}]", r.flags.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ")) };
    let at = r.address.map_or_else(String::new, |a| format!(" {a}"));
    format!("{}{flags}{at}: {}", r.kind.name(), r.label)
}

fn step_line(s: &PathStep, depth: usize) -> String {
    let field = match (&s.key, &s.field) {
        (Some(key), _) => format!("[{key}] "),
        (None, Some(field)) => format!(".{field} "),
        (None, None) => String::new(),
    };
    let (times, last, bytes) = match &s.fold {
        Some(fold) => (format!("× {} ", count(fold.count)), format!(" to {}", fold.last), fold.bytes),
        None => (String::new(), String::new(), s.size),
    };
    format!("{}-> {field}{times}{}{last} {} ({})", " ".repeat(depth.min(40)), s.address, s.type_name, plural(bytes, "byte"))
}

/// Returns the tree of paths in lines.
fn tree_lines(nodes: &[PathNode], fold: bool) -> impl Iterator<Item = String> {
    let parts = if fold { folds::of_nodes(nodes) } else { (0..nodes.len()).map(Part::Item).collect() };
    let mut depths = Indent::default();
    parts.into_iter().filter_map(move |part| match part {
        Part::Item(i) => nodes.get(i).map(|n| node_line(n, depths.shown(n.depth))),
        Part::Fold(range) => {
            let of = nodes.get(range)?;
            let (first, last) = (of.first()?, of.last()?);
            let line = format!("{}{}", indent(depths.shown(first.depth)), folds::levels_line(of));
            depths.fold(last.depth, of.len());
            Some(line)
        }
    })
}

fn node_line(n: &PathNode, depth: u32) -> String {
    let example = n.example.map_or_else(String::new, |a| format!("  e.g. {a}"));
    let objects = if n.objects > 1 { format!("{} × ", count(n.objects)) } else { String::new() };
    let chained = if n.fold { " (that refer to each other)" } else { "" };
    format!("{}{objects}{}{chained}  → {}, {}{example}", indent(depth), n.name, plural(n.targets, "object"), bytes(n.bytes))
}

/// A step of a path, each with its index.
struct Step<'r> {
    path: u64,
    step: u64,
    of: &'r PathModel,
    at: &'r PathStep,
}

fn step_columns<'r>() -> Columns<'r, Step<'r>> {
    let steps = columns![
        Step<'r>,
        count(path),
        count(step),
        address(at.address),
        bytes(at.size),
        text(at.field, 30),
        names(at.type_name, 60),
        text(at.key, 30).lines(1)
    ];
    steps.and(root_columns(|s| &s.of.roots)).and(columns![
        Step<'r>,
        count("repeated", |s| s.at.fold.as_ref().map_or(1, |fold| fold.count)),
        address("last", |s| s.at.fold.as_ref().map(|fold| fold.last))
    ])
}

/// Returns lines for the roots of a path's first object, and a line with the number of omitted roots.
fn root_lines(p: &PathModel) -> impl Iterator<Item = String> {
    let more = p.root_count.saturating_sub(number(&p.roots));
    p.roots.iter().map(root_line).chain((more > 0).then(|| format!("… and {}", plural(more, "more root"))))
}

/// Describes how many of the roots that reach the object are shown.
fn reach_line(r: &PathsReport, within: &str) -> Option<String> {
    let shown = total(r.paths.iter().map(|p| p.root_count));
    let object = r.paths.first().and_then(|p| p.steps.last()).map_or_else(|| "it".into(), |step| step.address.to_string());
    Some(match r.roots {
        0 => return None,
        1 => format!("1 root reaches {object}{within}."),
        all if all == shown => format!("{} roots reach {object}{within}, all shown.", count(all)),
        all => format!("{} of {} roots that reach {object}{within} (--all-roots shows all)", count(shown), count(all)),
    })
}

pub(super) fn path_lines(p: &PathModel, fold: bool) -> impl Iterator<Item = String> {
    let parts = if fold { folds::of_path(&p.steps) } else { (0..p.steps.len()).map(Part::Item).collect() };
    let line = |(part, depth): (Part, usize)| match part {
        Part::Item(i) => Some(step_line(p.steps.get(i)?, depth)),
        Part::Fold(range) => {
            let of = p.steps.get(range)?;
            Some(format!("{}{}", " ".repeat(depth.min(40)), folds::objects_line(of)))
        }
    };
    root_lines(p).chain(parts.into_iter().zip(1usize..).filter_map(line)).chain([String::new()])
}

impl Report for PathsReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let steps = |(of, path): (&'r PathModel, u64)| of.steps.iter().zip(0u64..).map(move |(at, step)| Step { path, step, of, at });
        to.table(Table::new(self.paths.iter().zip(1u64..).flat_map(steps), step_columns()).csv(true).shown(false));
        if (self.targets, self.reachable) == (1, 0) {
            let whole = self.coverage.iter().all(|c| matches!(c.coverage, CoverageKind::Complete | CoverageKind::Conservative));
            to.line(format!("Not reachable from any root{}{}", to.within(), if whole { ": garbage." } else { "." }));
            to.gap();
        } else if self.targets > 1 || self.reachable == 0 {
            to.line(format!("{} of {} {} reachable from roots", count(self.reachable), plural(self.targets, "object"), be(self.reachable)));
            to.gap();
        }
        to.records("path", &self.paths);
        to.records("node", self.tree.iter().flatten());
        let fold = !to.view.framework;
        to.lines(tree_lines(self.tree.as_deref().unwrap_or_default(), fold));
        to.gap_if(self.tree.is_some());
        to.lines(self.paths.iter().flat_map(move |p| path_lines(p, fold)));
        if let Some(line) = reach_line(self, to.within()) {
            to.line(line);
        }
        root_coverage(to, &self.coverage);
        to.records("coverage", &self.coverage);
    }
}
