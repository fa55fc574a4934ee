//! Strongly connected components: the cycles of a graph, and the acyclic graph of the components.

use super::{Csr, CsrBuilder, GraphError, NONE, ROOT, Rows, at, len32, put};
use crate::base::Buffer;
use crate::base::cancel::check_at;

/// The strongly connected components of a graph, or of the subgraph of the nodes that a filter accepts.
///
/// Components are indexed in reverse topological order: a component comes after every other component that it can reach. So an edge between
/// two components goes from the larger index to the smaller, component 0 has no edge to another component, and ascending order visits targets
/// before sources.
#[derive(Debug)]
pub struct Components {
    /// Component by node; [`NONE`] for nodes that the filter rejected.
    of: Buffer<u32>,
    count: u32,
}

/// A node whose edges are being followed.
struct Frame {
    node: u32,
    /// Index of the node in order of discovery, from 1.
    index: u32,
    /// The smallest index reached from the node so far.
    low: u32,
    /// The next edge to follow.
    edge: u32,
    /// The end of the node's edges.
    end: u32,
}

impl Components {
    /// The components of the whole graph. See [`Self::compute_where`].
    pub fn compute(graph: &Csr) -> Self {
        Self::compute_where(graph, |_| true)
    }

    /// The components of the subgraph of the nodes for which `include` returns true.
    ///
    /// D. Pearce, "A Space-Efficient Algorithm for Finding Strongly Connected Components" (2016), iterative:
    /// O(n + m) time, 4 bytes per node, 4 per node of unfinished components and 20 per node on the search path.
    pub fn compute_where(graph: &Csr, include: impl Fn(u32) -> bool) -> Self {
        let rows = graph.rows();
        // The mark of a node is 0 until the node is discovered. Then the mark is the node's index of discovery, and later the smallest index that
        // the node reaches. When the node's component is complete, the mark is `ROOT` minus the component. Such a mark is larger than all indices
        // in use, because the indices of a complete component are reused.
        let mut marks = Buffer::<u32>::zeroed(graph.store(), graph.nodes() as usize);
        let mark: &mut [u32] = &mut marks;
        let (mut frames, mut unfinished): (Vec<Frame>, Vec<u32>) = (Vec::new(), Vec::new());
        let (mut count, mut last) = (0u32, 0u32);
        for start in 0..graph.nodes() {
            let mut enter = (at(mark, start) == 0 && include(start)).then_some(start);
            loop {
                if let Some(node) = enter.take() {
                    last += 1;
                    check_at(node);
                    put(mark, node, last);
                    let (edge, end) = rows.span(node);
                    frames.push(Frame { node, index: last, low: last, edge, end });
                }
                let Some(frame) = frames.last_mut() else { break };
                if frame.edge < frame.end {
                    let target = rows.item(frame.edge);
                    match at(mark, target) {
                        // This edge is followed again when the target has no more edges.
                        0 if include(target) => enter = Some(target),
                        0 => frame.edge += 1,
                        reached => {
                            frame.low = frame.low.min(reached);
                            frame.edge += 1;
                        }
                    }
                    continue;
                }
                let Some(Frame { node, index, low, .. }) = frames.pop() else { break };
                if low < index {
                    put(mark, node, low);
                    unfinished.push(node);
                    continue;
                }
                put(mark, node, ROOT - count);
                last -= 1;
                while let Some(member) = unfinished.pop_if(|member| at(mark, *member) >= index) {
                    put(mark, member, ROOT - count);
                    last -= 1;
                }
                count += 1;
            }
        }
        mark.iter_mut().for_each(|mark| *mark = if *mark == 0 { NONE } else { ROOT - *mark });
        Self { of: marks, count }
    }

    /// The component of a node; `None` if the filter rejected it.
    pub fn of(&self, node: u32) -> Option<u32> {
        self.of.get(node as usize).copied().filter(|component| *component != NONE)
    }

    /// The number of components.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The number of nodes in each component.
    pub fn sizes(&self) -> Vec<u32> {
        let mut sizes = vec![0u32; self.count as usize];
        for component in self.of.iter() {
            if let Some(size) = sizes.get_mut(*component as usize) {
                *size += 1;
            }
        }
        sizes
    }

    /// The nodes of each component, in increasing order. Uses 4 bytes per component and 4 per node.
    pub fn members(&self) -> Rows {
        // The component of a rejected node is `NONE`, a row that does not exist, so the sort drops the node.
        Rows::sorted(self.of.store(), self.count, self.of.iter().copied().zip(0..len32(self.of.len())))
    }

    /// The graph of components, with an edge between two of them if a node of one has an edge to a node of the other.
    /// The edges have no self loops or duplicates, and their targets are in increasing order.
    pub fn condensation(&self, graph: &Csr) -> Result<Csr, GraphError> {
        let members = self.members();
        let mut builder = CsrBuilder::with_capacity(self.of.store(), self.count as usize, 0);
        let mut targets = Vec::new();
        for component in 0..self.count {
            let nodes = members.row(component).iter();
            let reached = nodes.flat_map(|node| graph.successors(*node)).filter_map(|target| self.of(*target));
            targets.extend(reached.filter(|target| *target != component));
            targets.sort_unstable();
            targets.dedup();
            targets.drain(..).for_each(|target| builder.push_edge(target));
            builder.end_node()?;
        }
        builder.finish()
    }
}
