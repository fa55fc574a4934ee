//! Chains as trees, with equal branches merged.

use super::graph::{NodeIndex, NodeKind};
use super::paths::Path;
use super::reporter::{FrameKey, Reporter};
use crate::analysis::{AsyncRoot, AsyncRow};
use crate::base::hash::{Map, Set};
use crate::base::{Collector, Count, NoteKind, len64};

/// Maximum depth of a tree.
const MAX_DEPTH: u32 = 1000;
/// Bytes of memory that the id of a thread takes in a row.
const ID: u64 = 4;

/// A row that is still to be written: its depth, and its nodes, which have equal keys.
type Level = (u32, Vec<NodeIndex>);

/// Merges `paths` into one tree for each kind and label of root. Returns the `top` trees with the most chains, in descending order, and the
/// total number of trees.
pub(super) fn tree(reporter: &mut Reporter<'_>, paths: &[(Path, AsyncRoot)], top: usize, notes: &Collector) -> (Vec<AsyncRow>, usize) {
    let mut groups: Map<(crate::analysis::AsyncRootKind, crate::base::Name), (u64, Vec<usize>)> = Map::default();
    for (i, (_, root)) in paths.iter().enumerate() {
        let group = groups.entry((root.kind, root.label.clone())).or_default();
        group.0.bump();
        group.1.push(i);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| (b.1.0, &a.0).cmp(&(a.1.0, &b.0)));
    let total = groups.len();
    let kept: Set<NodeIndex> = paths.iter().flat_map(|(path, _)| path.nodes.iter().copied()).collect();
    let mut written: Set<NodeIndex> = Set::default();
    let (mut rows, mut cut) = (Vec::new(), false);
    for ((kind, label), (_, members)) in groups.into_iter().take(top) {
        let of: Vec<&(Path, AsyncRoot)> = members.iter().filter_map(|i| paths.get(*i)).collect();
        let objects: Set<_> = of.iter().filter_map(|(_, root)| root.object).collect();
        rows.push(AsyncRow {
            depth: 0,
            count: len64(objects.len()),
            root: Some(kind),
            label,
            state: None,
            status: None,
            example: objects.iter().min().copied(),
            threads: Vec::new(),
            visited: false,
            framework: false,
        });
        let first = of.iter().filter_map(|(path, _)| path.nodes.first().copied());
        let mut stack = Vec::new();
        push(reporter, 1, first, &mut stack);
        while let Some((depth, nodes)) = stack.pop() {
            let fresh: Vec<NodeIndex> = nodes.iter().copied().filter(|n| written.insert(*n)).collect();
            rows.push(row(reporter, depth, &nodes, fresh.is_empty()));
            let graph = reporter.graph;
            let mut next = fresh.iter().flat_map(|n| graph.waiters(*n)).filter(|n| kept.contains(n)).peekable();
            if depth < MAX_DEPTH {
                push(reporter, depth.saturating_add(1), next, &mut stack);
            } else {
                cut |= next.peek().is_some();
            }
        }
    }
    if cut {
        notes.add(NoteKind::LimitHit, None, format!("the trees of chains show only the first {MAX_DEPTH} levels"));
    }
    (rows, total)
}

/// Groups nodes with equal keys; the largest group ends up on top of the stack.
fn push(reporter: &mut Reporter<'_>, depth: u32, nodes: impl Iterator<Item = NodeIndex>, stack: &mut Vec<Level>) {
    let mut groups: Map<FrameKey, Vec<NodeIndex>> = Map::default();
    let mut seen = Set::default();
    for node in nodes.filter(|n| seen.insert(*n)) {
        if let Some(key) = reporter.key(node) {
            groups.entry(key).or_default().push(node);
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|nodes| (nodes.len(), std::cmp::Reverse(nodes.first().copied())));
    stack.extend(groups.into_iter().map(|nodes| (depth, nodes)));
}

fn row(reporter: &mut Reporter<'_>, depth: u32, nodes: &[NodeIndex], visited: bool) -> AsyncRow {
    let frame = nodes.first().and_then(|n| reporter.frame(*n, visited));
    let ids = || nodes.iter().flat_map(|n| reporter.threads(*n));
    // In a forged dump, all threads may be listed in all rows.
    let room = reporter.budget.memory(len64(ids().count()).saturating_mul(ID));
    let mut threads: Vec<u32> = if room { ids().copied().collect() } else { Vec::new() };
    threads.sort_unstable();
    threads.dedup();
    let thread = nodes.first().and_then(|n| reporter.graph.node(*n)).is_some_and(|n| n.kind == NodeKind::Thread);
    let label = match &frame {
        _ if thread => "a thread that is blocked in Wait or Result".into(),
        Some(frame) => frame.label.display(),
        None => "?".into(),
    };
    AsyncRow {
        depth,
        count: len64(nodes.len()),
        root: None,
        label,
        state: frame.as_ref().and_then(|f| f.state),
        status: frame.as_ref().and_then(|f| f.status),
        example: frame.as_ref().map(|f| f.object),
        threads,
        visited,
        framework: !thread && frame.as_ref().is_some_and(|f| f.framework),
    }
}
