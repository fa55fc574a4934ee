//! Condenses a graph to the strongly connected components with marked nodes. Paths through other components become edges.

use rustc_hash::FxHashMap;
use std::sync::Arc;

use crate::base::Count;
use crate::graph::{BitSet, Components, Csr, CsrBuilder, GraphError, reach};

/// Maximum number of references between components, in addition to one for each node and edge of the graph. Further references are dropped. Without a
/// limit, an unmarked node with many sources and targets would make as many references as there are pairs of these.
const REFERENCES: usize = 1 << 21;
/// References examined for each that is kept.
const STEPS: usize = 8;

/// The components with marked nodes, and the references between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condensed {
    /// Nodes of each component, marked or not, ascending; sources before targets.
    pub components: Vec<Vec<u32>>,
    /// References from one component to another, sorted, each once.
    pub references: Vec<(u32, u32)>,
    /// Whether references were dropped because of the limit.
    pub cut: bool,
}

/// Condenses the part of the graph reachable from `marked` nodes through nodes with `inside`. Edges of `opaque` nodes are
/// ignored.
///
/// # Errors
/// [`GraphError`], which is impossible for a subgraph of a graph that was built.
pub fn condense(edges: &Csr, marked: &[u32], inside: impl Fn(u32) -> bool, opaque: impl Fn(u32) -> bool) -> Result<Condensed, GraphError> {
    let starts = marked.iter().copied().filter(|id| inside(*id));
    let reached = reach(edges, starts, |from, to| !opaque(from) && inside(to));
    let (part, ids) = part(edges, &reached, &opaque)?;
    let mut is_marked = BitSet::new(edges.nodes());
    marked.iter().for_each(|id| {
        is_marked.set(*id);
    });
    let components = Components::compute(&part);
    let members = components.members();
    let order = components.condensation(&part)?;
    let id_of = |node: &u32| ids.get(*node as usize).copied();
    // The color of an unmarked component is the set of marked components that are reachable from it. Most unmarked components share the color of
    // their only successor.
    let mut colors: Vec<Arc<[u32]>> = Vec::new();
    let mut known: FxHashMap<Arc<[u32]>, ()> = FxHashMap::default();
    let (mut kept, mut references): (Vec<u32>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
    let most = REFERENCES.saturating_add(part.nodes() as usize).saturating_add(part.edges() as usize);
    let (mut cost, mut steps, mut cut) = (0usize, 0usize, false);
    let mut has_mark = BitSet::new(components.count());
    // Components are numbered with targets before sources.
    for component in 0..components.count() {
        let mut leads: Vec<u32> = Vec::new();
        let mut last: Option<&Arc<[u32]>> = None;
        for next in order.successors(component) {
            if has_mark.test(*next) {
                leads.push(*next);
            } else if let Some(color) = colors.get(*next as usize)
                && !last.is_some_and(|l| Arc::ptr_eq(l, color))
            {
                steps = steps.saturating_add(color.len());
                if steps > most.saturating_mul(STEPS) {
                    cut = true;
                    break;
                }
                leads.extend_from_slice(color);
                last = Some(color);
            }
        }
        leads.sort_unstable();
        leads.dedup();
        if cost.saturating_add(leads.len()) > most {
            (leads, cut) = (Vec::new(), true);
        }
        if members.row(component).iter().filter_map(id_of).any(|id| is_marked.test(id)) {
            has_mark.set(component);
            kept.push(component);
            cost.grow(leads.len());
            references.extend(leads.iter().map(|to| (component, *to)));
            colors.push(Arc::from([]));
            continue;
        }
        let color: Arc<[u32]> = leads.into();
        let shared = match known.get_key_value(&color) {
            Some((same, ())) => Arc::clone(same),
            None => {
                cost.grow(color.len());
                known.insert(Arc::clone(&color), ());
                color
            }
        };
        colors.push(shared);
    }
    kept.reverse();
    let place: FxHashMap<u32, u32> = kept.iter().copied().zip(0u32..).collect();
    // This reuses the memory of the vector.
    let mut references: Vec<(u32, u32)> = references.into_iter().filter_map(|(a, b)| Some((*place.get(&a)?, *place.get(&b)?))).collect();
    references.sort_unstable();
    let components = kept.iter().map(|c| members.row(*c).iter().filter_map(id_of).collect()).collect();
    Ok(Condensed { components, references, cut })
}

/// Returns the subgraph of the nodes in `reached`, without edges from `opaque` nodes. The vector maps nodes of the subgraph to nodes of `edges`.
fn part(edges: &Csr, reached: &BitSet, opaque: impl Fn(u32) -> bool) -> Result<(Csr, Vec<u32>), GraphError> {
    let ids: Vec<u32> = reached.iter().collect();
    let number = |id: &u32| ids.binary_search(id).ok().and_then(|i| u32::try_from(i).ok());
    let mut rows = CsrBuilder::with_capacity(edges.store(), ids.len(), ids.len());
    for id in &ids {
        if !opaque(*id) {
            edges.successors(*id).iter().filter_map(number).for_each(|target| rows.push_edge(target));
        }
        rows.end_node()?;
    }
    Ok((rows.finish()?, ids))
}
