//! Stacks folded into a tree: threads that are in the same methods share its branches.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::hash::Map;
use crate::base::{Addr, Count, Name};
use crate::model::{MergedFrame, StackFrameKind, StackFrameModel, ThreadStackModel};

/// Most depth of the tree: deeper frames of runaway recursion are left out.
const MAX_DEPTH: usize = 1 << 10;

/// Identity of a frame: the text that shows the method or the runtime frame, its module, and the method itself. Texts differ for the
/// instances of a generic method, which share a `MethodDesc`; methods may share a text.
type Key = (Name, Option<Name>, Option<Addr>);

/// A node of the tree.
#[derive(Default)]
struct Node {
    threads: u64,
    ending: Vec<u32>,
    children: BTreeMap<Key, usize>,
    /// Method and source line of the first of its frames.
    method: Option<Name>,
    line: (Option<Name>, Option<u32>),
    /// Whether they all are at that line.
    at_one_line: bool,
}

/// What a frame shows in folded stacks.
pub(crate) fn label(frame: &StackFrameModel) -> Name {
    let method = frame.display.clone().or_else(|| Some(format!("<method {}>", frame.method_desc?).into()));
    match (frame.kind, method) {
        (StackFrameKind::Managed, method) => method.unwrap_or_else(|| "<unknown method>".into()),
        (StackFrameKind::Runtime, method) => {
            let of = frame.frame_type.as_deref().unwrap_or("unknown frame");
            method.map_or_else(|| format!("[{of}]"), |method| format!("[{of}] {method}")).into()
        }
    }
}

/// The identity of a frame.
fn key(frame: &StackFrameModel) -> Key {
    (label(frame), frame.module.clone(), frame.method_desc)
}

/// The frames of a thread for folding, outermost first: an explicit frame within a method says nothing new.
pub(crate) fn shown(thread: &ThreadStackModel) -> impl DoubleEndedIterator<Item = &StackFrameModel> {
    let innermost = thread.frames.iter().position(|f| f.kind == StackFrameKind::Managed).unwrap_or(thread.frames.len());
    let frames = thread.frames.iter().enumerate();
    // Of several frames before the innermost method, the last one is what it called.
    frames.filter(move |(i, f)| f.kind == StackFrameKind::Managed || i.saturating_add(1) == innermost).map(|(_, f)| f)
}

/// The stacks of `threads` for flame graphs, outermost frame first, each with its number of threads. The text of a method that another
/// method shares has its `MethodDesc` as well, since text is all that these graphs compare.
pub(crate) fn folded(threads: &[ThreadStackModel]) -> Vec<(Vec<String>, u64)> {
    let mut methods: Map<Name, BTreeSet<Key>> = Map::default();
    for frame in threads.iter().flat_map(shown) {
        methods.entry(label(frame)).or_default().insert(key(frame));
    }
    let text = |frame: &StackFrameModel| {
        let text = label(frame);
        match (methods.get(&text).map_or(0, BTreeSet::len), frame.method_desc) {
            (2.., Some(method)) => format!("{text} {method}"),
            _ => text.to_string(),
        }
    };
    let mut counts: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for thread in threads {
        let frames: Vec<String> = shown(thread).rev().map(text).collect();
        if !frames.is_empty() {
            counts.entry(frames).or_default().bump();
        }
    }
    counts.into_iter().collect()
}

/// Folds stacks.
pub(super) struct Merger {
    nodes: Vec<Node>,
}

impl Default for Merger {
    /// A tree with its root only: threads without frames end there.
    fn default() -> Merger {
        Merger { nodes: vec![Node::default()] }
    }
}

impl Merger {
    /// Adds a thread.
    pub(super) fn add(&mut self, thread: &ThreadStackModel) {
        let mut at = 0usize;
        for frame in shown(thread).rev().take(MAX_DEPTH) {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(at) else { break };
            let child = *node.children.entry(key(frame)).or_insert(next);
            if child == next {
                let line = (frame.file.clone(), frame.line);
                self.nodes.push(Node { method: frame.method.clone(), line, at_one_line: true, ..Node::default() });
            }
            if let Some(node) = self.nodes.get_mut(child) {
                node.threads.bump();
                node.at_one_line &= (&node.line.0, node.line.1) == (&frame.file, frame.line);
            }
            at = child;
        }
        if let (Some(node), Some(id)) = (self.nodes.get_mut(at), thread.managed_id) {
            node.ending.push(id);
        }
    }

    /// The tree, each node before those below it.
    pub(super) fn merged(&self) -> Vec<MergedFrame> {
        let mut out = Vec::new();
        let mut open = Vec::new();
        self.push_children(0, 0, &mut open);
        while let Some((depth, key, index)) = open.pop() {
            let Some(node) = self.nodes.get(index) else { continue };
            let (frame, module, method_desc) = key.clone();
            let (file, line) = if node.at_one_line { node.line.clone() } else { (None, None) };
            out.push(MergedFrame {
                depth,
                threads: node.threads,
                managed_ids: node.ending.clone(),
                frame,
                method: node.method.clone().filter(|_| method_desc.is_some()),
                method_desc,
                module,
                file,
                line,
            });
            self.push_children(index, depth.saturating_add(1), &mut open);
        }
        out
    }

    /// Pushes the children of a node, those with most threads last: they are popped first.
    fn push_children<'n>(&'n self, index: usize, depth: u32, open: &mut Vec<(u32, &'n Key, usize)>) {
        let Some(node) = self.nodes.get(index) else { return };
        let threads = |i: usize| self.nodes.get(i).map_or(0, |n| n.threads);
        let mut children: Vec<(&Key, usize)> = node.children.iter().map(|(key, i)| (key, *i)).collect();
        children.sort_by(|a, b| threads(a.1).cmp(&threads(b.1)).then(b.0.cmp(a.0)));
        open.extend(children.into_iter().map(|(key, i)| (depth, key, i)));
    }
}
