//! Graphs as compressed sparse rows: one array of targets, and where each node's part of it begins.

use super::{at, len32};
use crate::base::cancel::check_at;

/// The most nodes a graph may have: two indices stay free for "none" and "the virtual root", and one for the
/// count of nodes with the virtual root among them.
pub const MAX_NODES: u32 = u32::MAX - 3;

/// Why a graph could not be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// More nodes than 32-bit indices can address.
    #[error("the graph has {0} nodes, at most {MAX_NODES} are possible")]
    TooManyNodes(u64),
    /// More edges than 32-bit offsets can count.
    #[error("the graph has {0} edges, at most {max} are possible", max = u32::MAX)]
    TooManyEdges(u64),
    /// An edge names a node that does not exist.
    #[error("an edge names node {node}, but there are only {nodes} nodes")]
    NoSuchNode {
        /// The index given.
        node: u32,
        /// The number of nodes.
        nodes: u32,
    },
}

/// The number of nodes as `u32`, or the error that says there are too many.
pub(super) fn check_nodes(nodes: usize) -> Result<u32, GraphError> {
    u32::try_from(nodes).ok().filter(|n| *n <= MAX_NODES).ok_or(GraphError::TooManyNodes(nodes as u64))
}

/// The number of edges as `u32`, or the error that says there are too many.
pub(super) fn check_edges(edges: usize) -> Result<u32, GraphError> {
    u32::try_from(edges).map_err(|_| GraphError::TooManyEdges(edges as u64))
}

/// A list of items for each row, all in one array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// One more than there are rows; row `r` is `items[offsets[r]..offsets[r + 1]]`.
    offsets: Vec<u32>,
    items: Vec<u32>,
}

impl Rows {
    /// Counting sort of `(row, item)` pairs, stable. There must be at most `u32::MAX` pairs, and the iterator
    /// must give the same ones each time. Pairs of rows beyond the last are dropped. No memory beyond the result.
    pub fn sorted(rows: u32, pairs: impl DoubleEndedIterator<Item = (u32, u32)> + Clone) -> Self {
        let mut offsets = vec![0u32; rows as usize + 1];
        pairs.clone().for_each(|(row, _)| {
            if let Some(count) = offsets.get_mut(row as usize) {
                *count += 1;
            }
        });
        // First the end of each row; filling from the last pair down to the first then leaves the start.
        let total = offsets.iter_mut().fold(0u32, |sum, count| {
            *count += sum;
            *count
        });
        let mut items = vec![0u32; total as usize];
        pairs.rev().for_each(|(row, item)| {
            if let Some(place) = offsets.get_mut(row as usize) {
                *place = place.saturating_sub(1);
                super::put(&mut items, *place, item);
            }
        });
        Self { offsets, items }
    }

    /// The number of rows.
    pub fn len(&self) -> u32 {
        len32(self.offsets.len()).saturating_sub(1)
    }

    /// The items of a row; empty for a row that does not exist.
    #[inline(always)]
    pub fn row(&self, row: u32) -> &[u32] {
        let (start, end) = self.span(row);
        self.items.get(start as usize..end as usize).unwrap_or(&[])
    }

    /// Where a row's items begin and end.
    #[inline(always)]
    pub(super) fn span(&self, row: u32) -> (u32, u32) {
        match self.offsets.get(row as usize..).and_then(|rest| rest.first_chunk::<2>()) {
            Some([start, end]) => (*start, *end),
            None => (0, 0),
        }
    }

    /// The item at a place in the common array.
    #[inline(always)]
    pub(super) fn item(&self, place: u32) -> u32 {
        at(&self.items, place)
    }
}

/// A directed graph over the nodes `0..nodes()`. Self loops and parallel edges are allowed; every target is a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csr {
    rows: Rows,
}

impl Csr {
    /// A graph from edges `(source, target)` in any order; edges of one source keep their order.
    #[cfg(test)]
    pub fn from_edges(nodes: u32, edges: &[(u32, u32)]) -> Result<Self, GraphError> {
        check_nodes(nodes as usize)?;
        check_edges(edges.len())?;
        match edges.iter().map(|(source, target)| (*source).max(*target)).find(|node| *node >= nodes) {
            Some(node) => Err(GraphError::NoSuchNode { node, nodes }),
            None => Ok(Self { rows: Rows::sorted(nodes, edges.iter().copied()) }),
        }
    }

    /// The graph with every edge turned round; the successors of a node come in increasing order.
    pub fn reversed(&self) -> Self {
        let edges = (0..self.nodes()).flat_map(|source| {
            check_at(source);
            self.successors(source).iter().map(move |target| (*target, source))
        });
        Self { rows: Rows::sorted(self.nodes(), edges) }
    }

    /// The targets of a node's edges; empty for a node that does not exist.
    #[inline(always)]
    pub fn successors(&self, node: u32) -> &[u32] {
        self.rows.row(node)
    }

    /// The rows themselves, for loops that keep their place in several of them.
    #[inline(always)]
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.rows.len()
    }

    /// The number of edges.
    pub fn edges(&self) -> u32 {
        len32(self.rows.items.len())
    }
}

/// Builds a [`Csr`] from edges that come grouped by source, sources in increasing order.
#[derive(Debug, Clone)]
pub struct CsrBuilder {
    offsets: Vec<u32>,
    items: Vec<u32>,
    largest: Option<u32>,
}

impl Default for CsrBuilder {
    fn default() -> Self {
        Self::with_capacity(0, 0)
    }
}

impl CsrBuilder {
    /// A builder with room for this many nodes and edges; more may come.
    pub fn with_capacity(nodes: usize, edges: usize) -> Self {
        let mut offsets = Vec::with_capacity(nodes.saturating_add(1));
        offsets.push(0);
        Self { offsets, items: Vec::with_capacity(edges), largest: None }
    }

    /// Edges added so far.
    pub fn edges(&self) -> usize {
        self.items.len()
    }

    /// Adds an edge from the current node. The target may be a node that is still to come.
    #[inline]
    pub fn push_edge(&mut self, target: u32) {
        self.largest = self.largest.max(Some(target));
        self.items.push(target);
    }

    /// Ends the current node and returns it; the next edges belong to the next node.
    pub fn end_node(&mut self) -> Result<u32, GraphError> {
        let end = check_edges(self.items.len())?;
        let nodes = check_nodes(self.offsets.len())?;
        self.offsets.push(end);
        Ok(nodes - 1)
    }

    /// Appends the ended nodes of another builder, so that parts can be built in parallel and joined in order.
    pub fn append(&mut self, part: Self) -> Result<(), GraphError> {
        check_nodes(self.offsets.len() + part.offsets.len() - 2)?;
        check_edges(self.items.len() + part.items.len())?;
        let shift = check_edges(self.items.len())?;
        self.offsets.extend(part.offsets.iter().skip(1).map(|end| end + shift));
        self.items.extend_from_slice(&part.items);
        self.largest = self.largest.max(part.largest);
        Ok(())
    }

    /// The graph of the nodes ended so far. Edges after the last ended node are dropped.
    pub fn finish(mut self) -> Result<Csr, GraphError> {
        let nodes = check_nodes(self.offsets.len() - 1)?;
        if let Some(node) = self.largest.filter(|n| *n >= nodes) {
            return Err(GraphError::NoSuchNode { node, nodes });
        }
        self.items.truncate(self.offsets.last().copied().unwrap_or(0) as usize);
        self.items.shrink_to_fit();
        self.offsets.shrink_to_fit();
        Ok(Csr { rows: Rows { offsets: self.offsets, items: self.items } })
    }
}
