//! Sums of chains by root object.

use std::collections::BTreeMap;

use super::graph::NodeIndex;
use super::paths::Path;
use super::reporter::Reporter;
use crate::analysis::{AsyncRoot, AsyncRootKind, AsyncRootSum};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Count, Name, len64};

/// Maximum number of a root's chains from which [`AsyncRootSum::innermost`] is determined.
const NAMED: usize = 1000;

/// Returns the indexes of `roots` by root, those of the root with most chains first.
pub(super) fn by_root<'r>(roots: impl Iterator<Item = &'r AsyncRoot>) -> Vec<Vec<usize>> {
    let mut groups: Map<(AsyncRootKind, Option<Addr>), Vec<usize>> = Map::default();
    for (i, root) in roots.enumerate() {
        groups.entry((root.kind, root.object)).or_default().push(i);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| (b.1.len(), &a.0).cmp(&(a.1.len(), &b.0)));
    groups.into_iter().map(|(_, members)| members).collect()
}

/// Returns the sums of `paths` by root, most chains first. Every root has a sum, since what analyses look for may be rare among thousands of roots.
pub(super) fn sums(reporter: &mut Reporter<'_>, paths: &[(Path, AsyncRoot)], by_root: Vec<Vec<usize>>) -> Vec<AsyncRootSum> {
    let sum = |members: Vec<usize>| {
        let of: Vec<&(Path, AsyncRoot)> = members.iter().filter_map(|i| paths.get(*i)).collect();
        let (_, root) = of.first()?;
        let mut methods: Set<NodeIndex> = Set::default();
        let mut longest = 0;
        for (path, _) in &of {
            let here = path.nodes.iter().copied().filter(|n| is_method(reporter, *n));
            longest = longest.max(len64(here.clone().count()));
            methods.extend(here);
        }
        let mut members: Vec<NodeIndex> = methods.into_iter().collect();
        members.sort_unstable();
        Some(AsyncRootSum {
            root: root.clone(),
            chains: len64(of.len()),
            methods: len64(members.len()),
            longest,
            innermost: innermost(reporter, of.iter().take(NAMED).map(|(path, _)| path)),
            members,
        })
    };
    by_root.into_iter().filter_map(sum).collect()
}

/// Returns a root for each thread that runs a part of a chain or waits for one, by managed id. If a thread has several roots, this is the one with
/// most chains.
pub(super) fn roots_of_threads(reporter: &Reporter<'_>, paths: &[(Path, AsyncRoot)], by_root: &[Vec<usize>]) -> BTreeMap<u32, AsyncRoot> {
    let mut out = BTreeMap::new();
    let mut seen: Set<NodeIndex> = Set::default();
    for (path, root) in by_root.iter().flatten().filter_map(|i| paths.get(*i)) {
        for node in path.nodes.iter().filter(|n| seen.insert(**n)) {
            for id in reporter.threads(*node) {
                out.entry(*id).or_insert_with(|| root.clone());
            }
        }
    }
    out
}

fn is_method(reporter: &Reporter<'_>, node: NodeIndex) -> bool {
    reporter.graph.node(node).is_some_and(|n| n.kind.is_method())
}

/// Returns the method that is innermost on most of `paths`. On a path with a method of the program, methods of libraries are ignored.
fn innermost<'p>(reporter: &mut Reporter<'_>, paths: impl Iterator<Item = &'p Path>) -> Option<Name> {
    let mut counts: Map<Name, u64> = Map::default();
    for path in paths {
        let mut methods = path.nodes.iter().filter_map(|n| reporter.method(*n));
        let Some(first) = methods.next() else { continue };
        let own = std::iter::once(first.clone()).chain(methods).find(|m| !is_library(m.shown()));
        counts.entry(own.unwrap_or(first)).or_default().bump();
    }
    let (name, _) = counts.into_iter().max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)))?;
    Some(name)
}

/// Whether a type or method is of the base library, or of libraries that come with .NET.
pub(in crate::analysis) fn is_library(name: &str) -> bool {
    ["System.", "Microsoft."].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_root_has_a_group_however_many_there_are() {
        let root = |kind, at| AsyncRoot { kind, object: Some(Addr(at)), node: Some(Addr(at)), type_name: None, label: "".into() };
        let delays = (0..5000).map(|i| root(AsyncRootKind::Timer, 0x1000 + i * 8));
        // The cycle has one chain, as each delay has, and its kind sorts after theirs.
        let roots: Vec<AsyncRoot> = delays
            .chain([root(AsyncRootKind::Cycle, 0x10), root(AsyncRootKind::Semaphore, 0x20), root(AsyncRootKind::Semaphore, 0x20)])
            .collect();
        let groups = by_root(roots.iter());
        assert_eq!(groups.len(), 5002);
        assert_eq!(groups.first(), Some(&vec![5001, 5002]));
        assert_eq!(groups.last(), Some(&vec![5000]));
    }
}
