//! Stacks folded into a tree: threads that stand in the same methods share its branches.

use std::collections::BTreeMap;

use crate::base::Count;
use crate::model::{MergedFrame, StackFrameKind, StackFrameModel, ThreadStackModel};

/// Most depth of the tree: deeper frames of runaway recursion are left out.
const MAX_DEPTH: usize = 1 << 10;

/// What makes frames equal: the method, or the type of a runtime frame, and its module.
type Key = (String, Option<String>);

#[derive(Default)]
struct Node {
    threads: u64,
    ending: Vec<u32>,
    children: BTreeMap<Key, usize>,
}

/// What a frame shows in folded stacks.
pub(crate) fn label(frame: &StackFrameModel) -> String {
    match frame.kind {
        StackFrameKind::Managed => match (&frame.display, frame.method_desc) {
            (Some(name), _) => name.clone(),
            (None, Some(method)) => format!("<method {method}>"),
            (None, None) => "<unknown method>".into(),
        },
        StackFrameKind::Runtime => format!("[{}]", frame.frame_type.as_deref().unwrap_or("unknown frame")),
    }
}

/// The frames of a thread for folding, outermost first: an explicit frame within a method says nothing new.
pub(crate) fn shown(thread: &ThreadStackModel) -> impl DoubleEndedIterator<Item = &StackFrameModel> {
    let innermost = thread.frames.iter().position(|f| f.kind == StackFrameKind::Managed).unwrap_or(thread.frames.len());
    let frames = thread.frames.iter().enumerate();
    // Of several frames before the innermost method, the last one is what it called.
    frames.filter(move |(i, f)| f.kind == StackFrameKind::Managed || i.saturating_add(1) == innermost).map(|(_, f)| f)
}

/// Folds `threads`.
pub(super) fn merge(threads: &[ThreadStackModel]) -> Vec<MergedFrame> {
    let mut nodes = vec![Node::default()];
    for thread in threads {
        let mut at = 0usize;
        for frame in shown(thread).rev().take(MAX_DEPTH) {
            let key = (label(frame), frame.module.clone());
            let next = nodes.len();
            let Some(node) = nodes.get_mut(at) else { break };
            let child = *node.children.entry(key).or_insert(next);
            if child == next {
                nodes.push(Node::default());
            }
            if let Some(node) = nodes.get_mut(child) {
                node.threads.bump();
            }
            at = child;
        }
        if let (Some(node), Some(id)) = (nodes.get_mut(at), thread.managed_id) {
            node.ending.push(id);
        }
    }
    let mut out = Vec::new();
    // The root stands for no frame; threads without any end there.
    let mut open = Vec::new();
    push_children(&nodes, 0, 0, &mut open);
    while let Some((depth, key, index)) = open.pop() {
        let Some(node) = nodes.get(index) else { continue };
        let (frame, module) = key.clone();
        out.push(MergedFrame { depth, threads: node.threads, managed_ids: node.ending.clone(), frame, module });
        push_children(&nodes, index, depth.saturating_add(1), &mut open);
    }
    out
}

/// Pushes the children of a node, those with most threads last: they are popped first.
fn push_children<'n>(nodes: &'n [Node], index: usize, depth: u32, open: &mut Vec<(u32, &'n Key, usize)>) {
    let Some(node) = nodes.get(index) else { return };
    let threads = |i: usize| nodes.get(i).map_or(0, |n| n.threads);
    let mut children: Vec<(&Key, usize)> = node.children.iter().map(|(key, i)| (key, *i)).collect();
    children.sort_by(|a, b| threads(a.1).cmp(&threads(b.1)).then(b.0.cmp(a.0)));
    open.extend(children.into_iter().map(|(key, i)| (depth, key, i)));
}
