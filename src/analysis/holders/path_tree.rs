//! Shortest paths to many objects, merged by type.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::analysis::PathNode;
use crate::base::cancel::check_at;
use crate::base::hash::Map;
use crate::base::{Count, Index, Name};
use crate::gc::{ObjectId, TypeIndex};
use crate::heapgraph::{HeapGraph, Search};
use crate::model::Sum;
use crate::session::Namer;

/// Number of a missing node. Nodes are numbered from 1.
const NONE: u32 = 0;

/// The property that all objects of a node have in common, in addition to the path.
enum Common {
    /// A root with this label. It is the parent of nodes with objects.
    Root(String),
    Type(Option<TypeIndex>),
    /// The objects are further from the roots than the depth of the tree.
    Beyond,
}

struct Node {
    common: Common,
    /// The parent node; `None` for a root.
    parent: Option<u32>,
    depth: u32,
    /// Sum of the targets in this node. `rows` adds the targets in the nodes below it.
    sum: Sum,
    objects: u64,
    /// Whether an object of the node refers to another object of the node.
    folded: bool,
    example: Option<ObjectId>,
    children: Vec<u32>,
}

/// The tree while targets are added. In addition to its nodes, it takes four bytes for each object of the heap.
pub(in crate::analysis) struct PathTree<'g> {
    graph: &'g HeapGraph,
    search: &'g Search,
    /// Maximum depth of the rows.
    depth: u32,
    /// Whether objects of one type that refer to each other share a node.
    fold: bool,
    nodes: Vec<Node>,
    /// The number of each object's node; [`NONE`] for objects that are on no path.
    place: Vec<u32>,
    /// Child nodes, by parent and type.
    kids: FxHashMap<(u32, u64), u32>,
    roots: Map<String, u32>,
}

impl<'g> PathTree<'g> {
    pub(in crate::analysis) fn new(graph: &'g HeapGraph, search: &'g Search, depth: u32, fold: bool) -> PathTree<'g> {
        let place = vec![NONE; graph.ids().len()];
        PathTree { graph, search, depth, fold, nodes: Vec::new(), place, kids: FxHashMap::default(), roots: Map::default() }
    }

    /// Adds the path to each of `targets`, which the search has reached. `label` returns the label of the best root of an object. Each object is
    /// visited once, even if many paths share it.
    pub(in crate::analysis) fn add(&mut self, targets: &[ObjectId], label: impl Fn(ObjectId) -> String) {
        let mut way = Vec::new();
        for target in targets {
            check_at(target.as_u32());
            let mut at = *target;
            let mut node = loop {
                match self.place.get(at.index()) {
                    Some(&place) if place != NONE => break place,
                    _ => way.push(at),
                }
                match self.search.parent(at) {
                    Some(above) => at = above,
                    None => break self.root(label(at)),
                }
            };
            while let Some(id) = way.pop() {
                node = self.below(node, id);
                if let Some(place) = self.place.get_mut(id.index()) {
                    *place = node;
                }
            }
            let size = self.graph.size(*target);
            if let Some(node) = self.node(node) {
                node.sum.add(size);
            }
        }
    }

    fn node(&mut self, number: u32) -> Option<&mut Node> {
        self.nodes.get_mut((number as usize).checked_sub(1)?)
    }

    fn push(&mut self, common: Common, parent: Option<u32>, depth: u32) -> u32 {
        self.nodes.push(Node {
            common,
            parent,
            depth,
            sum: Sum::default(),
            objects: 0,
            folded: false,
            example: None,
            children: Vec::new(),
        });
        let number = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        if let Some(above) = parent.and_then(|parent| self.node(parent)) {
            above.children.push(number);
        }
        number
    }

    fn root(&mut self, label: String) -> u32 {
        if let Some(known) = self.roots.get(&label) {
            return *known;
        }
        let new = self.push(Common::Root(label.clone()), None, 0);
        self.roots.insert(label, new);
        new
    }

    /// Returns the node of the object `id`, which follows the node `above` on the path. Creates the node if needed.
    fn below(&mut self, above: u32, id: ObjectId) -> u32 {
        /// The key of nodes beyond the maximum depth.
        const BEYOND: u64 = u64::MAX;
        const UNKNOWN: u64 = u64::MAX - 1;
        let (limit, fold) = (self.depth, self.fold);
        let ty = self.graph.type_index(id);
        let Some(node) = self.node(above) else { return above };
        let depth = node.depth;
        match node.common {
            Common::Beyond => return above,
            Common::Type(known) if fold && ty.is_some() && known == ty => {
                node.folded = true;
                node.objects.bump();
                node.example = Some(node.example.map_or(id, |least| least.min(id)));
                return above;
            }
            _ => {}
        }
        let beyond = depth >= limit;
        let key = if beyond { BEYOND } else { ty.map_or(UNKNOWN, |ty| ty.as_u32().into()) };
        let node = match self.kids.get(&(above, key)) {
            Some(known) => *known,
            None => {
                let common = if beyond { Common::Beyond } else { Common::Type(ty) };
                let new = self.push(common, Some(above), depth.saturating_add(1));
                self.kids.insert((above, key), new);
                new
            }
        };
        if let Some(node) = self.node(node) {
            node.objects.bump();
            node.example = Some(node.example.map_or(id, |least| least.min(id)));
        }
        node
    }

    /// Returns at most `most` rows (0: all). Under each parent, the nodes with the largest sums come first.
    pub(in crate::analysis) fn rows(mut self, namer: &Namer, most: usize) -> Vec<PathNode> {
        let most = if most == 0 { usize::MAX } else { most };
        // A node has a greater number than its parent.
        for number in (1..=u32::try_from(self.nodes.len()).unwrap_or(NONE)).rev() {
            let Some((sum, Some(above))) = self.node(number).map(|node| (node.sum, node.parent)) else { continue };
            if let Some(above) = self.node(above) {
                above.sum.merge(sum);
            }
        }
        let name = |node: &Node| match &node.common {
            Common::Root(label) => Name::from(label.as_str()),
            Common::Type(ty) => {
                let kind = ty.and_then(|ty| self.graph.types.get(ty));
                kind.map_or_else(|| "?".into(), |kind| namer.name_or_address(kind.method_table))
            }
            Common::Beyond => "".into(),
        };
        let at = |number: u32| self.nodes.get((number as usize).checked_sub(1)?);
        let sorted = |numbers: &[u32]| {
            let shown = numbers.iter().filter_map(|n| at(*n)).filter(|node| !matches!(node.common, Common::Beyond));
            let mut named: Vec<(Name, &Node)> = shown.map(|node| (name(node), node)).collect();
            named.sort_by(|a, b| (Reverse(a.1.sum), &a.0, a.1.example).cmp(&(Reverse(b.1.sum), &b.0, b.1.example)));
            named.into_iter().rev()
        };
        let roots: Vec<u32> = self.roots.values().copied().collect();
        let mut stack: Vec<(Name, &Node)> = sorted(&roots).collect();
        let mut rows = Vec::new();
        while let Some((name, node)) = stack.pop().filter(|_| rows.len() < most) {
            let Sum { count: targets, bytes } = node.sum;
            let example = node.example.map(|id| self.graph.address(id));
            rows.push(PathNode { depth: node.depth, name, fold: node.folded, targets, bytes, objects: node.objects, example });
            stack.extend(sorted(&node.children));
        }
        rows
    }
}
