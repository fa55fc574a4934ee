//! Graphs as compressed sparse rows: one array of targets, and where each node's part of it begins.

use super::offsets::{Offsets, OffsetsBuilder};
use super::{at, len32};
use crate::base::Array;
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
    offsets: Offsets,
    items: Array<u32>,
}

impl Rows {
    /// Counting sort of `(row, item)` pairs, stable. There must be at most `u32::MAX` pairs, and the iterator
    /// must give the same ones each time. Pairs of rows beyond the last are dropped. Four bytes per row beside the result.
    pub fn sorted(rows: u32, pairs: impl DoubleEndedIterator<Item = (u32, u32)> + Clone) -> Self {
        let mut counts = vec![0u32; rows as usize];
        pairs.clone().for_each(|(row, _)| {
            if let Some(count) = counts.get_mut(row as usize) {
                *count += 1;
            }
        });
        let mut offsets = OffsetsBuilder::with_capacity(rows);
        // First the end of each row; filling from the last pair down to the first then leaves the start.
        let total = counts.iter_mut().fold(0u32, |sum, count| {
            offsets.push(*count);
            *count += sum;
            *count
        });
        let mut items = vec![0u32; total as usize];
        pairs.rev().for_each(|(row, item)| {
            if let Some(place) = counts.get_mut(row as usize) {
                *place = place.saturating_sub(1);
                super::put(&mut items, *place, item);
            }
        });
        Self { offsets: offsets.finish(), items: items.into() }
    }

    /// The parts that they were taken [apart](Rows::parts) into.
    pub(crate) fn of_parts(offsets: Offsets, items: Array<u32>) -> Self {
        Self { offsets, items }
    }

    /// What they consist of.
    pub(crate) fn parts(&self) -> (&Offsets, &Array<u32>) {
        (&self.offsets, &self.items)
    }

    /// The number of rows.
    pub fn len(&self) -> u32 {
        self.offsets.rows()
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
        let (start, end) = self.offsets.span(row);
        // Offsets of an index may say anything.
        (start, end.min(len32(self.items.len())))
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

    /// The graph whose rows are these: a node's row holds the targets of its edges.
    pub(crate) fn of_rows(rows: Rows) -> Self {
        Self { rows }
    }

    /// The targets of a node's edges; empty for a node that does not exist.
    #[inline(always)]
    pub fn successors(&self, node: u32) -> &[u32] {
        self.rows.row(node)
    }

    /// The rows themselves, for loops that keep their place in several of them.
    #[inline(always)]
    pub(crate) fn rows(&self) -> &Rows {
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
#[derive(Debug, Clone, Default)]
pub struct CsrBuilder {
    /// The number of edges of each node, or [`MANY`].
    lengths: Vec<u8>,
    /// Nodes with many edges: which one, and how many.
    many: Vec<(u32, u32)>,
    items: Vec<u32>,
    /// Where the edges of the current node begin.
    start: usize,
    largest: Option<u32>,
}

/// Stands for a number of edges that is kept apart.
const MANY: u8 = u8::MAX;

impl CsrBuilder {
    /// A builder with room for this many nodes and edges; more may come.
    pub fn with_capacity(nodes: usize, edges: usize) -> Self {
        Self { lengths: Vec::with_capacity(nodes), items: Vec::with_capacity(edges), ..Self::default() }
    }

    /// Adds an edge from the current node. The target may be a node that is still to come.
    #[inline]
    pub fn push_edge(&mut self, target: u32) {
        self.largest = self.largest.max(Some(target));
        self.items.push(target);
    }

    /// Ends the current node and returns it; the next edges belong to the next node.
    pub fn end_node(&mut self) -> Result<u32, GraphError> {
        let length = check_edges(self.items.len())? - len32(self.start);
        let node = len32(self.lengths.len());
        check_nodes(self.lengths.len() + 1)?;
        let short = u8::try_from(length).unwrap_or(MANY);
        if short == MANY {
            self.many.push((node, length));
        }
        self.lengths.push(short);
        self.start = self.items.len();
        Ok(node)
    }

    /// The number of edges of each ended node.
    fn lengths(&self) -> impl Iterator<Item = u32> {
        let mut many = self.many.iter();
        self.lengths.iter().map(move |short| if *short == MANY { many.next().map_or(0, |(_, n)| *n) } else { (*short).into() })
    }

    /// The graph of the nodes ended so far. Edges after the last ended node are dropped.
    pub fn finish(self) -> Result<Csr, GraphError> {
        Self::joined(vec![self])
    }

    /// The graph of the nodes that several builders ended, in order. Each builder is dropped as its nodes are added, so that parts can be
    /// built in parallel without there being two graphs at once.
    pub fn joined(parts: Vec<Self>) -> Result<Csr, GraphError> {
        let nodes = check_nodes(parts.iter().map(|part| part.lengths.len()).sum())?;
        let edges = check_edges(parts.iter().map(|part| part.start).sum())?;
        if let Some(node) = parts.iter().filter_map(|part| part.largest).max().filter(|n| *n >= nodes) {
            return Err(GraphError::NoSuchNode { node, nodes });
        }
        let mut offsets = OffsetsBuilder::with_capacity(nodes);
        let mut items = Vec::with_capacity(edges as usize);
        for part in parts {
            part.lengths().for_each(|length| offsets.push(length));
            items.extend(part.items.iter().take(part.start));
        }
        Ok(Csr { rows: Rows { offsets: offsets.finish(), items: items.into() } })
    }
}
