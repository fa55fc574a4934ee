//! Sums of chains by root object.

use super::graph::NodeIndex;
use super::paths::Path;
use super::reporter::Reporter;
use crate::analysis::{AsyncRoot, AsyncRootKind, AsyncRootSum};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Count, Name, len64};

/// Maximum number of roots in the sums.
const MAX_ROOTS: usize = 100;
/// Maximum number of a root's chains from which [`AsyncRootSum::innermost`] is determined.
const NAMED: usize = 1000;

/// Returns the sums of `paths` by root, most chains first.
pub(super) fn sums(reporter: &mut Reporter<'_>, paths: &[(Path, AsyncRoot)]) -> Vec<AsyncRootSum> {
    let mut groups: Map<(AsyncRootKind, Option<Addr>), Vec<usize>> = Map::default();
    for (i, (_, root)) in paths.iter().enumerate() {
        groups.entry((root.kind, root.object)).or_default().push(i);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| (b.1.len(), &a.0).cmp(&(a.1.len(), &b.0)));
    groups.truncate(MAX_ROOTS);
    let sum = |(_, members): ((AsyncRootKind, Option<Addr>), Vec<usize>)| {
        let of: Vec<&(Path, AsyncRoot)> = members.iter().filter_map(|i| paths.get(*i)).collect();
        let (_, root) = of.first()?;
        let mut methods: Set<NodeIndex> = Set::default();
        let mut longest = 0;
        for (path, _) in &of {
            let here = path.nodes.iter().copied().filter(|n| is_method(reporter, *n));
            longest = longest.max(len64(here.clone().count()));
            methods.extend(here);
        }
        Some(AsyncRootSum {
            root: root.clone(),
            chains: len64(of.len()),
            methods: len64(methods.len()),
            longest,
            innermost: innermost(reporter, of.iter().take(NAMED).map(|(path, _)| path)),
        })
    };
    groups.into_iter().filter_map(sum).collect()
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
