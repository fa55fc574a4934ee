//! Folds intermediate frames of the framework: the screen shows one line in place of several frames.

use std::ops::Range;

use crate::analysis::{AsyncFrame, AsyncRow, MergedFrame, PathNode, PathStep, StackFrameModel};
use crate::base::{families, is_framework_method, is_intermediate_type, is_of_framework, len64, type_families};
use crate::model::{StackFrameKind, TaskStatus};
use crate::output::plural;

/// Minimum number of frames to fold.
const LEAST: usize = 2;

/// A line of a list, which shows one item or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A single item.
    Item(usize),
    /// Several items folded into one line.
    Fold(Range<usize>),
}

/// Returns the line for folded frames.
pub(super) fn line<'m>(frames: usize, methods: impl IntoIterator<Item = &'m str>) -> String {
    format!("… {} of {}", plural(len64(frames), "frame"), families(methods))
}

/// Groups a list of `len` items into lines. `folds` determines whether an item may be folded, and `joins` whether an item continues the item before
/// it.
fn parts(len: usize, folds: impl Fn(usize) -> bool, joins: impl Fn(usize) -> bool) -> Vec<Part> {
    let mut out = Vec::new();
    let mut at = 0usize;
    while at < len {
        let more = (at.saturating_add(1)..len).take_while(|i| folds(*i) && joins(*i)).count();
        let end = at.saturating_add(1).saturating_add(if folds(at) { more } else { 0 });
        if end.saturating_sub(at) >= LEAST {
            out.push(Part::Fold(at..end))
        } else {
            out.push(Part::Item(at))
        }
        at = end;
    }
    out
}

/// Origin of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A method of the program, or an unknown method.
    Own,
    /// A method of the framework.
    Framework,
    /// A frame created by the runtime.
    Runtime,
}

fn kind(managed: bool, module: Option<&str>, method: Option<&str>) -> Kind {
    match method {
        Some(method) if is_framework_method(module, method) => Kind::Framework,
        None if !managed => Kind::Runtime,
        _ => Kind::Own,
    }
}

/// Groups the frames of a stack, innermost first; `None` is a line that is never folded. Two methods are kept: the innermost method, because it shows
/// what the thread does or waits in, and the framework method that the program called.
pub(super) fn of_stack(frames: &[Option<&StackFrameModel>]) -> Vec<Part> {
    let kinds: Vec<Kind> = frames
        .iter()
        .map(|f| f.map_or(Kind::Own, |f| kind(f.kind == StackFrameKind::Managed, f.module.as_deref(), f.method.as_deref())))
        .collect();
    let innermost = frames.iter().position(|f| f.is_none_or(|f| f.kind == StackFrameKind::Managed)).unwrap_or(frames.len());
    let called = kinds.iter().position(|k| *k == Kind::Own).and_then(|own| own.checked_sub(1));
    let folds = |i: usize| i > innermost && Some(i) != called && kinds.get(i).is_some_and(|k| *k != Kind::Own);
    parts(frames.len(), folds, |_| true)
}

/// Returns the parent of each row of a tree in preorder, by the depths of the rows.
fn parents(len: usize, depth: impl Fn(usize) -> u32) -> Vec<Option<usize>> {
    let mut parents = Vec::with_capacity(len);
    let mut open: Vec<usize> = Vec::new();
    for i in 0..len {
        while open.last().is_some_and(|last| depth(*last) >= depth(i)) {
            open.pop();
        }
        parents.push(open.last().copied());
        open.push(i);
    }
    parents
}

/// Groups the rows of a tree in preorder. `depth` returns the depth of a row, `folds` whether the row may be folded, and `same` whether two rows have
/// equal counts. A fold ends where the tree branches.
fn of_tree(len: usize, depth: impl Fn(usize) -> u32, folds: impl Fn(usize) -> bool, same: impl Fn(usize, usize) -> bool) -> Vec<Part> {
    // Number of children of each row.
    let mut children = vec![0u32; len];
    for parent in parents(len, &depth).into_iter().flatten() {
        if let Some(n) = children.get_mut(parent) {
            *n = n.saturating_add(1);
        }
    }
    let joins = |i: usize| {
        let before = i.saturating_sub(1);
        children.get(before) == Some(&1) && depth(i) == depth(before).saturating_add(1) && same(before, i)
    };
    parts(len, folds, joins)
}

/// Reduces the indentation of rows below folded rows. Rows are passed in order.
#[derive(Debug, Default)]
pub(super) struct Indent {
    /// For each fold above the current row: the depth of the fold's last row, and the number of levels saved.
    open: Vec<(u32, u32)>,
}

impl Indent {
    /// Returns the depth at which a row is shown.
    pub(super) fn shown(&mut self, depth: u32) -> u32 {
        while self.open.last().is_some_and(|(last, _)| *last >= depth) {
            self.open.pop();
        }
        self.open.iter().fold(depth, |depth, (_, saved)| depth.saturating_sub(*saved))
    }

    /// Records a fold of `rows` rows. `depth` is the depth of the last of these rows.
    pub(super) fn fold(&mut self, depth: u32, rows: usize) {
        self.open.push((depth, u32::try_from(rows.saturating_sub(1)).unwrap_or(u32::MAX)));
    }
}

/// Groups the rows of merged stacks. The innermost method is kept. If no code of the program follows, the framework method that the program called is
/// kept too.
pub(super) fn of_merged(rows: &[MergedFrame]) -> Vec<Part> {
    // The name of a runtime frame starts with its type in brackets.
    let managed = |f: &MergedFrame| !f.frame.starts_with('[');
    let kinds: Vec<Kind> = rows
        .iter()
        .map(|f| if f.times.is_some() { Kind::Own } else { kind(managed(f), f.module.as_deref(), f.method.as_deref()) })
        .collect();
    let own = |i: usize| kinds.get(i) == Some(&Kind::Own);
    let depth = |i: usize| rows.get(i).map_or(0, |r| r.depth);
    let parents = parents(rows.len(), depth);
    // For each row: whether code of the program is below it, and whether it is the innermost method of a thread.
    let (mut above_own, mut innermost) = (vec![false; rows.len()], vec![false; rows.len()]);
    for (i, row) in rows.iter().enumerate().rev() {
        let parent = parents.get(i).copied().flatten();
        let leads = own(i) || above_own.get(i) == Some(&true);
        if let Some(above) = parent.and_then(|p| above_own.get_mut(p)) {
            *above |= leads;
        }
        let ends = !row.managed_ids.is_empty();
        for at in [Some(i), parent.filter(|_| !managed(row))].into_iter().flatten() {
            if let Some(flag) = innermost.get_mut(at) {
                *flag |= ends;
            }
        }
    }
    let is = |list: &[bool], i: usize| list.get(i).copied().unwrap_or(false);
    let folds = |i: usize| {
        let called = parents.get(i).copied().flatten().is_some_and(own);
        i < rows.len() && !own(i) && !is(&innermost, i) && (is(&above_own, i) || !called)
    };
    let same = |a: usize, b: usize| rows.get(a).map(|r| r.threads) == rows.get(b).map(|r| r.threads);
    of_tree(rows.len(), depth, folds, same)
}

/// Whether a task has not completed, or its status is unknown. Rows of completed tasks are not folded.
fn is_pending(status: Option<TaskStatus>) -> bool {
    !matches!(status, Some(TaskStatus::RanToCompletion | TaskStatus::Canceled | TaskStatus::Faulted))
}

/// Groups the rows of trees of waiting methods. The method that waits for the root itself is kept.
pub(super) fn of_rows(rows: &[AsyncRow]) -> Vec<Part> {
    let folds = |i: usize| {
        let plain = |r: &AsyncRow| r.depth > 1 && r.root.is_none() && r.threads.is_empty() && !r.visited && is_pending(r.status);
        rows.get(i).is_some_and(|r| plain(r) && r.framework)
    };
    let same = |a: usize, b: usize| rows.get(a).map(|r| r.count) == rows.get(b).map(|r| r.count);
    of_tree(rows.len(), |i| rows.get(i).map_or(0, |r| r.depth), folds, same)
}

/// Groups the frames of a chain of waiting methods, innermost first.
pub(super) fn of_chain(frames: &[AsyncFrame]) -> Vec<Part> {
    let folds = |i: usize| {
        let plain = |f: &AsyncFrame| f.thread.is_none() && !f.visited && !f.async_void && is_pending(f.status);
        i > 0 && frames.get(i).is_some_and(|f| plain(f) && f.framework)
    };
    parts(frames.len(), folds, |_| true)
}

/// Groups the steps of a path. Steps that are kept: objects that a root or an object of the program refers to, keys, chains, and the end.
pub(super) fn of_path(steps: &[PathStep]) -> Vec<Part> {
    let of_framework = |i: usize| steps.get(i).is_some_and(|s| is_of_framework(s.type_name.shown()));
    let plain = |s: &PathStep| s.key.is_none() && s.fold.is_none();
    let folds = |i: usize| {
        let inner = i > 0 && i.saturating_add(1) < steps.len() && of_framework(i.saturating_sub(1));
        inner && steps.get(i).is_some_and(|s| plain(s) && is_intermediate_type(s.type_name.shown()))
    };
    parts(steps.len(), folds, |_| true)
}

/// Groups the nodes of a tree of paths. Nodes that a root or an object of the program refers to are kept, as are the ends of branches.
pub(super) fn of_nodes(nodes: &[PathNode]) -> Vec<Part> {
    let depth = |i: usize| nodes.get(i).map_or(0, |n| n.depth);
    let parents = parents(nodes.len(), depth);
    let of_framework = |i: usize| nodes.get(i).is_some_and(|n| n.depth > 0 && is_of_framework(n.name.shown()));
    let ends = |i: usize| i.saturating_add(1) >= nodes.len() || depth(i) >= depth(i.saturating_add(1));
    let inner = |i: usize| parents.get(i).copied().flatten().is_some_and(of_framework) && !ends(i);
    let folds = |i: usize| inner(i) && nodes.get(i).is_some_and(|n| n.depth > 0 && !n.fold && is_intermediate_type(n.name.shown()));
    let targets = |i: usize| nodes.get(i).map(|n| n.targets);
    of_tree(nodes.len(), depth, folds, |a, b| targets(a) == targets(b))
}

/// Returns the line for folded levels of a tree of paths.
pub(super) fn levels_line(nodes: &[PathNode]) -> String {
    format!("… {} of {}", plural(len64(nodes.len()), "level"), type_families(nodes.iter().map(|n| n.name.shown())))
}

/// Returns the line for folded objects on a path.
pub(super) fn objects_line(steps: &[PathStep]) -> String {
    let names = steps.iter().map(|s| s.type_name.shown());
    format!("… {} of {}", plural(len64(steps.len()), "object"), type_families(names))
}

/// Groups the method names of a stack, innermost first. The innermost method and the framework method that the program called are kept.
pub(super) fn of_names(frames: &[&str]) -> Vec<Part> {
    let own = |name: &str| !name.starts_with('[') && !is_framework_method(None, name);
    let innermost = frames.iter().position(|name| !name.starts_with('[')).unwrap_or(frames.len());
    let called = frames.iter().position(|name| own(name)).and_then(|own| own.checked_sub(1));
    parts(frames.len(), |i| i > innermost && Some(i) != called && frames.get(i).is_some_and(|name| !own(name)), |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Addr;

    /// `u`: a method of the program, `f`: a method of the framework, `r`: a frame of the runtime.
    fn stack(text: &str) -> String {
        let frame = |c: char| {
            let managed = if c == 'r' { StackFrameKind::Runtime } else { StackFrameKind::Managed };
            let mut frame = StackFrameModel::new(managed, Addr(8));
            frame.method = match c {
                'u' => Some("Lab.Program.Main()".into()),
                'f' => Some("System.Threading.Monitor.Wait(Int32)".into()),
                _ => None,
            };
            frame
        };
        let frames: Vec<StackFrameModel> = text.chars().map(frame).collect();
        let list: Vec<Option<&StackFrameModel>> = frames.iter().map(Some).collect();
        shown(text, &of_stack(&list))
    }

    fn shown(text: &str, parts: &[Part]) -> String {
        let part = |p: &Part| match p {
            Part::Item(i) => text.chars().nth(*i).unwrap().to_string(),
            Part::Fold(range) => format!("({})", range.len()),
        };
        parts.iter().map(part).collect()
    }

    #[test]
    fn innermost_and_program_methods_are_kept() {
        for (text, expected) in [
            ("", ""),
            ("rfffffuffr", "rf(3)fu(3)"),
            ("ufff", "u(3)"),
            ("uf", "uf"),
            ("rff", "rff"),
            ("rfff", "rf(2)"),
            ("ufffu", "u(3)u"),
            ("rr", "rr"),
            ("fufrfu", "fu(3)u"),
        ] {
            assert_eq!(stack(text), expected, "{text}");
        }
    }

    #[test]
    fn folds_end_at_branches_of_a_tree() {
        let row = |depth: u32, label: &str, count: u64| AsyncRow {
            depth,
            count,
            root: (depth == 0).then_some(crate::analysis::AsyncRootKind::Promise),
            label: label.into(),
            state: None,
            status: None,
            example: None,
            threads: Vec::new(),
            visited: false,
            framework: is_of_framework(label),
        };
        let rows = |depths: &[(u32, char, u64)]| {
            let name = |c: char| if c == 'f' { "System.Net.Http.Client.Send" } else { "Lab.Program.Run" };
            let rows: Vec<AsyncRow> = depths.iter().map(|(depth, c, n)| row(*depth, name(*c), *n)).collect();
            let text: String = depths.iter().map(|(_, c, _)| *c).collect();
            shown(&text, &of_rows(&rows))
        };
        // The method that waits for the root is kept, and a single row is not folded.
        assert_eq!(rows(&[(0, 'f', 1), (1, 'f', 9), (2, 'f', 9), (3, 'f', 9), (4, 'u', 9)]), "ff(2)u");
        assert_eq!(rows(&[(0, 'f', 1), (1, 'u', 9), (2, 'f', 9), (3, 'u', 9)]), "fufu");
        // A fold ends where the tree branches, and where the count changes.
        assert_eq!(rows(&[(0, 'f', 1), (1, 'u', 9), (2, 'f', 9), (3, 'f', 5), (3, 'f', 4)]), "fufff");
        assert_eq!(rows(&[(0, 'f', 1), (1, 'u', 9), (2, 'f', 9), (3, 'f', 9), (4, 'f', 5), (5, 'f', 5)]), "fu(2)(2)");
    }

    #[test]
    fn what_an_object_of_the_program_refers_to_is_kept_after_a_branch() {
        let node = |depth: u32, c: char| PathNode {
            depth,
            name: (if c == 'f' { "System.Object[]" } else { "Lab.Order" }).into(),
            fold: false,
            targets: 1,
            bytes: 24,
            objects: 1,
            example: None,
        };
        let rows = |depths: &[(u32, char)]| {
            let nodes: Vec<PathNode> = depths.iter().map(|(depth, c)| node(*depth, *c)).collect();
            let text: String = depths.iter().map(|(_, c)| *c).collect();
            shown(&text, &of_nodes(&nodes))
        };
        assert_eq!(rows(&[(0, 'u'), (1, 'u'), (2, 'f'), (3, 'f'), (4, 'f'), (5, 'u')]), "uuf(2)u");
        // The second object at depth 2 is referred to by the program's object, although the row before is the framework's.
        assert_eq!(rows(&[(0, 'u'), (1, 'u'), (2, 'f'), (3, 'f'), (2, 'f'), (3, 'f'), (4, 'f'), (5, 'u')]), "uufff(2)u");
    }

    #[test]
    fn rows_below_a_fold_are_indented_less() {
        let mut indent = Indent::default();
        assert_eq!(indent.shown(0), 0);
        assert_eq!(indent.shown(1), 1);
        indent.fold(4, 4);
        assert_eq!([5, 6, 5, 4, 1].map(|depth| indent.shown(depth)), [2, 3, 2, 4, 1]);
    }
}
