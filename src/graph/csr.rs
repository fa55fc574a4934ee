//! Graphs as compressed sparse rows: one array of targets, and the offset of each node's first target.

use std::ops::Range;

use super::offsets::{Offsets, OffsetsBuilder};
use super::{at, len32};
use crate::base::{Array, Buffer, Store};

/// Maximum number of nodes in a graph. The two largest `u32` values mean "none" and "the virtual root", and the number of nodes including the
/// virtual root must be less than both.
pub const MAX_NODES: u32 = u32::MAX - 3;

/// Why a graph could not be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// More nodes than `MAX_NODES`.
    #[error("the graph has {0} nodes, but at most {MAX_NODES} are supported")]
    TooManyNodes(u64),
    /// More edges than 32-bit offsets can count.
    #[error("the graph has {0} edges, but at most {max} are supported", max = u32::MAX)]
    TooManyEdges(u64),
    /// The source or target of an edge does not exist.
    #[error("an edge leads to node {node}, but there are only {nodes} nodes")]
    NoSuchNode {
        /// The index of the missing node.
        node: u32,
        /// The number of nodes.
        nodes: u32,
    },
}

/// Converts the number of nodes; fails if there are too many.
pub(super) fn check_nodes(nodes: usize) -> Result<u32, GraphError> {
    u32::try_from(nodes).ok().filter(|n| *n <= MAX_NODES).ok_or(GraphError::TooManyNodes(nodes as u64))
}

/// Converts the number of edges; fails if there are too many.
pub(crate) fn check_edges(edges: usize) -> Result<u32, GraphError> {
    u32::try_from(edges).map_err(|_| GraphError::TooManyEdges(edges as u64))
}

/// A list of items for each row. The items of all rows are in one array, row after row, called the common array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    offsets: Offsets,
    items: Array<u32>,
}

impl Rows {
    /// Distributes `(row, item)` pairs to `rows` rows by a stable counting sort. There must be at most `u32::MAX` pairs, and clones of the
    /// iterator must yield the same pairs. Pairs whose row does not exist are dropped. Uses four bytes per row besides the result.
    pub fn sorted(store: &Store, rows: u32, pairs: impl DoubleEndedIterator<Item = (u32, u32)> + Clone) -> Self {
        let mut counts = Buffer::<u32>::zeroed(store, rows as usize);
        let counts: &mut [u32] = &mut counts;
        pairs.clone().for_each(|(row, _)| {
            if let Some(count) = counts.get_mut(row as usize) {
                *count += 1;
            }
        });
        let mut offsets = OffsetsBuilder::with_capacity(store, rows);
        // From here on, `counts` has the end of the free part of each row. Rows are filled from the end, with the pairs in reverse order.
        let total = counts.iter_mut().fold(0u32, |sum, count| {
            offsets.push(*count);
            *count += sum;
            *count
        });
        let mut items = Buffer::zeroed(store, total as usize);
        let to: &mut [u32] = &mut items;
        pairs.rev().for_each(|(row, item)| {
            if let Some(place) = counts.get_mut(row as usize) {
                *place = place.saturating_sub(1);
                super::put(to, *place, item);
            }
        });
        Self { offsets: offsets.finish(), items: items.freeze() }
    }

    /// Assembles rows from their [parts](Rows::parts).
    pub(crate) fn of_parts(offsets: Offsets, items: Array<u32>) -> Self {
        Self { offsets, items }
    }

    /// Whether there are `rows` rows, and each item is in exactly one row. Rows read from a file may be invalid.
    pub(crate) fn is_of(&self, rows: u32) -> bool {
        u32::try_from(self.items.len()).is_ok_and(|items| self.offsets.is_of(rows, items))
    }

    /// The number of items in all rows.
    pub(crate) fn item_count(&self) -> usize {
        self.items.len()
    }

    /// The arrays that represent the rows.
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

    /// Start and end of a row's items in the common array.
    #[inline(always)]
    pub(super) fn span(&self, row: u32) -> (u32, u32) {
        let (start, end) = self.offsets.span(row);
        // Offsets read from an index file may be invalid.
        (start, end.min(len32(self.items.len())))
    }

    /// The items of consecutive rows.
    pub(super) fn items_of(&self, rows: Range<u32>) -> &[u32] {
        let (start, end) = (self.span(rows.start).0, rows.end.checked_sub(1).map_or(0, |last| self.span(last).1));
        self.items.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The items of all rows: the common array.
    pub(super) fn items(&self) -> &[u32] {
        &self.items
    }

    /// The row that contains the item at `place` in the common array.
    pub(super) fn row_of(&self, place: u32) -> u32 {
        let (mut first, mut end) = (0, self.len());
        while first < end {
            let middle = first + (end - first) / 2;
            if self.span(middle).1 <= place { first = middle + 1 } else { end = middle }
        }
        first
    }

    /// The item at `place` in the common array.
    #[inline(always)]
    pub(super) fn item(&self, place: u32) -> u32 {
        at(&self.items, place)
    }
}

/// A directed graph over the nodes `0..nodes()`. Self loops and parallel edges are allowed; every target is a node.
#[derive(Debug, Clone)]
pub struct Csr {
    rows: Rows,
    /// The store for derived arrays.
    store: Store,
}

impl PartialEq for Csr {
    fn eq(&self, other: &Csr) -> bool {
        self.rows == other.rows
    }
}

impl Eq for Csr {}

impl Csr {
    /// A graph from edges `(source, target)` in any order; edges of one source keep their order.
    #[cfg(test)]
    pub fn from_edges(nodes: u32, edges: &[(u32, u32)]) -> Result<Self, GraphError> {
        check_nodes(nodes as usize)?;
        check_edges(edges.len())?;
        match edges.iter().map(|(source, target)| (*source).max(*target)).find(|node| *node >= nodes) {
            Some(node) => Err(GraphError::NoSuchNode { node, nodes }),
            None => Ok(Self::of_rows(Rows::sorted(&Store::default(), nodes, edges.iter().copied()))),
        }
    }

    /// A graph with `nodes` nodes. `lengths` are the number of edges of each node; `targets` are the targets of all edges, ordered by source.
    ///
    /// # Errors
    /// [`GraphError`] if there are too many nodes or edges, or a target is not a node.
    pub fn of_lengths(nodes: usize, lengths: impl Iterator<Item = u32>, targets: Buffer<u32>) -> Result<Self, GraphError> {
        let nodes = check_nodes(nodes)?;
        check_edges(targets.len())?;
        let store = targets.store().clone();
        let offsets = Offsets::of(&store, nodes, lengths);
        match targets.iter().copied().max().filter(|node| *node >= nodes) {
            Some(node) => Err(GraphError::NoSuchNode { node, nodes }),
            None => Ok(Self { rows: Rows { offsets, items: targets.freeze() }, store }),
        }
    }

    /// The graph with `more` edges, which are sorted by source and follow the existing edges of their source.
    ///
    /// # Errors
    /// [`GraphError`] as for [`Csr::of_lengths`].
    pub fn with_edges(self, more: &[(u32, u32)]) -> Result<Self, GraphError> {
        let nodes = self.nodes();
        if let Some((node, _)) = more.last().filter(|(source, _)| *source >= nodes) {
            return Err(GraphError::NoSuchNode { node: *node, nodes });
        }
        let mut targets = Buffer::with_capacity(&self.store, self.rows.items.len().saturating_add(more.len()));
        let mut copied = 0;
        for of_source in more.chunk_by(|a, b| a.0 == b.0) {
            let end = of_source.first().map_or(0, |(source, _)| self.rows.span(*source).1 as usize);
            targets.extend_from_slice(self.rows.items.get(copied..end).unwrap_or_default());
            targets.extend(of_source.iter().map(|(_, target)| *target));
            copied = end;
        }
        targets.extend_from_slice(self.rows.items.get(copied..).unwrap_or_default());
        let mut rest = more.iter().peekable();
        let lengths = (0..nodes).map(|node| {
            let (start, end) = self.rows.span(node);
            let mut length = end - start;
            while rest.next_if(|(source, _)| *source == node).is_some() {
                length += 1;
            }
            length
        });
        Self::of_lengths(nodes as usize, lengths, targets)
    }

    /// The graph with these rows: the row of a node holds the targets of its edges.
    pub(crate) fn of_rows(rows: Rows) -> Self {
        Self { rows, store: Store::default() }
    }

    /// The graph with another store for derived arrays.
    pub(crate) fn with_store(self, store: &Store) -> Self {
        Self { store: store.clone(), ..self }
    }

    /// The store for derived arrays.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The targets of a node's edges; empty for a node that does not exist.
    #[inline(always)]
    pub fn successors(&self, node: u32) -> &[u32] {
        self.rows.row(node)
    }

    /// The rows, for loops that keep positions in several rows at once.
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

/// The number of edges of each node, in one byte for most nodes.
#[derive(Debug, Default)]
pub struct Lengths {
    /// The number of edges by node; [`MANY`] if the number is stored in `many`.
    short: Buffer<u8>,
    /// *(node, number of edges)* of each node with at least 255 edges, ascending.
    many: Buffer<[u32; 2]>,
}

/// Marks a number of edges that is stored separately.
const MANY: u8 = u8::MAX;

impl Lengths {
    /// Creates an empty list.
    pub fn new(store: &Store) -> Lengths {
        Lengths { short: Buffer::new(store), many: Buffer::new(store) }
    }

    /// Adds a node with `edges` edges. A number beyond 32 bits saturates; building the graph then fails because it has too many edges.
    #[inline]
    pub fn push(&mut self, edges: usize) {
        let short = u8::try_from(edges).unwrap_or(MANY);
        if short == MANY {
            self.many.push([len32(self.short.len()), len32(edges)]);
        }
        self.short.push(short);
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.short.len()
    }

    /// The number of edges of each node.
    fn iter(&self) -> impl Iterator<Item = u32> {
        self.part(0..self.len())
    }

    /// The number of edges of each node in `nodes`.
    pub fn part(&self, nodes: Range<usize>) -> impl Iterator<Item = u32> {
        let first = self.many.partition_point(|[node, _]| (*node as usize) < nodes.start);
        let mut many = self.many.iter().skip(first);
        let short = self.short.get(nodes).unwrap_or_default();
        short.iter().map(move |short| if *short == MANY { many.next().map_or(0, |[_, n]| *n) } else { (*short).into() })
    }
}

/// Builds a [`Csr`] from edges grouped by source, with sources in increasing order.
#[derive(Debug, Default)]
pub struct CsrBuilder {
    lengths: Lengths,
    items: Buffer<u32>,
    /// Index of the first edge of the current node.
    start: usize,
}

impl CsrBuilder {
    /// A builder with room for this many nodes and edges; more may be added.
    pub fn with_capacity(store: &Store, nodes: usize, edges: usize) -> Self {
        let lengths = Lengths { short: Buffer::with_capacity(store, nodes), many: Buffer::new(store) };
        Self { lengths, items: Buffer::with_capacity(store, edges), start: 0 }
    }

    /// Adds an edge from the current node. The target may be a node that is added later.
    #[inline]
    pub fn push_edge(&mut self, target: u32) {
        self.items.push(target);
    }

    /// Ends the current node and returns it; the next edges belong to the next node.
    pub fn end_node(&mut self) -> Result<u32, GraphError> {
        check_edges(self.items.len())?;
        let node = len32(self.lengths.len());
        check_nodes(self.lengths.len() + 1)?;
        self.lengths.push(self.items.len() - self.start);
        self.start = self.items.len();
        Ok(node)
    }

    /// The graph of the nodes ended so far. Edges after the last ended node are dropped.
    pub fn finish(mut self) -> Result<Csr, GraphError> {
        self.items.truncate(self.start);
        Csr::of_lengths(self.lengths.len(), self.lengths.iter(), self.items)
    }
}
