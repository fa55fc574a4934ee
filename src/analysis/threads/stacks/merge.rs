//! Folds stacks into a tree in which threads with the same methods share branches.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::{MergedFrame, RepeatTimes, StackFrameModel, StackRepeat, ThreadStackModel};
use crate::base::hash::Map;
use crate::base::{Addr, Count, Name, len64, thousands};
use crate::model::StackFrameKind;

/// Maximum depth of the tree: deeper frames of runaway recursion are omitted.
const MAX_DEPTH: usize = 1 << 10;

/// The key of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// A frame: its text, its module, and its `MethodDesc`. Instantiations of a generic method may share a `MethodDesc` and differ in their texts,
    /// while different methods may have the same text.
    Frame(Name, Option<Name>, Option<Addr>),
    /// A cycle of frames, by the text of its methods.
    Cycle(Name),
}

/// A part of a stack: a frame, or a cycle as a whole.
#[derive(Clone, Copy, Debug)]
enum Shown<'f> {
    Frame(&'f StackFrameModel),
    Cycle(&'f StackRepeat),
}

impl Shown<'_> {
    fn key(self) -> Key {
        match self {
            Shown::Frame(frame) => key(frame),
            Shown::Cycle(repeat) => Key::Cycle(repeat.cycle.clone()),
        }
    }

    /// Returns the method and the source line.
    fn place(self) -> (Option<Name>, (Option<Name>, Option<u32>)) {
        match self {
            Shown::Frame(frame) => (frame.method.clone(), (frame.file.clone(), frame.line)),
            Shown::Cycle(_) => (None, (None, None)),
        }
    }

    fn times(self) -> Option<RepeatTimes> {
        match self {
            Shown::Frame(_) => None,
            Shown::Cycle(repeat) => Some(RepeatTimes { least: repeat.times, most: repeat.times }),
        }
    }
}

/// A node of the tree.
#[derive(Default)]
struct Node {
    threads: u64,
    ending: Vec<u32>,
    children: BTreeMap<Key, usize>,
    /// Method and source line of the first frame of the node.
    method: Option<Name>,
    line: (Option<Name>, Option<u32>),
    /// Whether all frames of the node are at that line.
    at_one_line: bool,
    /// Number of repetitions of a cycle.
    times: Option<RepeatTimes>,
}

/// Returns the label of a frame in folded stacks.
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

/// Returns the key of a frame. It has no offsets: those of one call differ between the versions of a method's code.
pub(crate) fn key(frame: &StackFrameModel) -> Key {
    Key::Frame(label(frame), frame.module.clone(), frame.method_desc)
}

/// Returns the parts of a thread's stack, outermost first. A cycle replaces its frames, and runtime frames between methods are omitted.
fn shown(thread: &ThreadStackModel) -> Vec<Shown<'_>> {
    let innermost = thread.frames.iter().position(|f| f.kind == StackFrameKind::Managed).unwrap_or(thread.frames.len());
    let (mut out, mut repeats, mut folded) = (Vec::new(), thread.repeats.iter().peekable(), 0u64);
    for (i, frame) in thread.frames.iter().enumerate() {
        if let Some(repeat) = repeats.next_if(|repeat| repeat.first == len64(i)) {
            out.push(Shown::Cycle(repeat));
            folded = repeat.first.saturating_add(repeat.frames.saturating_mul(repeat.times));
        }
        // Of the runtime frames before the innermost method, only the last is kept: it is the call from that method.
        if len64(i) >= folded && (frame.kind == StackFrameKind::Managed || i.saturating_add(1) == innermost) {
            out.push(Shown::Frame(frame));
        }
    }
    out.reverse();
    out
}

/// Returns the stacks of `threads` for flame graphs, outermost frame first, each with its number of threads. If two methods have the same text, the
/// address of the `MethodDesc` is added, because flame graphs compare only texts.
pub(crate) fn folded(threads: &[ThreadStackModel]) -> Vec<(Vec<String>, u64)> {
    let mut methods: Map<Name, BTreeSet<Key>> = Map::default();
    for part in threads.iter().flat_map(shown) {
        if let Shown::Frame(frame) = part {
            methods.entry(label(frame)).or_default().insert(key(frame));
        }
    }
    let text = |part: Shown<'_>| {
        let frame = match part {
            Shown::Frame(frame) => frame,
            Shown::Cycle(repeat) => return repeated(&repeat.cycle, repeat.times, repeat.times),
        };
        let text = label(frame);
        match (methods.get(&text).map_or(0, BTreeSet::len), frame.method_desc) {
            (2.., Some(method)) => format!("{text} {method}"),
            _ => text.to_string(),
        }
    };
    let mut counts: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for thread in threads {
        let frames: Vec<String> = shown(thread).into_iter().map(text).collect();
        if !frames.is_empty() {
            counts.entry(frames).or_default().bump();
        }
    }
    counts.into_iter().collect()
}

/// Returns the stacks of a merged tree for flame graphs, like [`folded`]: the path to each frame at which threads end, with the number of these threads.
pub(crate) fn folded_tree(tree: &[MergedFrame]) -> Vec<(Vec<String>, u64)> {
    let mut methods: Map<&Name, BTreeSet<_>> = Map::default();
    for frame in tree {
        methods.entry(&frame.frame).or_default().insert((&frame.module, frame.method_desc));
    }
    let text = |frame: &MergedFrame| match (frame.times, frame.method_desc) {
        (Some(times), _) => repeated(&frame.frame, times.least, times.most),
        (None, Some(method)) if methods.get(&frame.frame).is_some_and(|of| of.len() > 1) => format!("{} {method}", frame.frame),
        (None, _) => frame.frame.to_string(),
    };
    // The threads of a frame end at it or at the frames below.
    let mut ends: Vec<u64> = tree.iter().map(|frame| frame.threads).collect();
    let mut above: Vec<usize> = Vec::new();
    for (i, frame) in tree.iter().enumerate() {
        above.truncate(frame.depth as usize);
        if let Some(threads) = above.last().and_then(|i| ends.get_mut(*i)) {
            *threads = threads.saturating_sub(frame.threads);
        }
        above.push(i);
    }
    let mut counts: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    let mut path: Vec<String> = Vec::new();
    for (frame, threads) in tree.iter().zip(ends) {
        path.truncate(frame.depth as usize);
        path.push(text(frame));
        if threads > 0 {
            counts.entry(path.clone()).or_default().grow(threads);
        }
    }
    counts.into_iter().collect()
}

/// Formats a cycle with its number of repetitions: `Lab.Recurse → Lab.Other, 12,400 times`.
pub(crate) fn repeated(cycle: &Name, least: u64, most: u64) -> String {
    let range = if least == most { String::new() } else { format!("{} to ", thousands(least)) };
    format!("{cycle}, {range}{} times", thousands(most))
}

/// Folds stacks.
pub(super) struct Merger {
    nodes: Vec<Node>,
}

impl Default for Merger {
    /// Creates a tree with only its root, where threads without frames end.
    fn default() -> Merger {
        Merger { nodes: vec![Node::default()] }
    }
}

impl Merger {
    /// Adds a thread.
    pub(super) fn add(&mut self, thread: &ThreadStackModel) {
        let mut at = 0usize;
        for part in shown(thread).into_iter().take(MAX_DEPTH) {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(at) else { break };
            let child = *node.children.entry(part.key()).or_insert(next);
            let (method, line) = part.place();
            if child == next {
                self.nodes.push(Node { method, line: line.clone(), at_one_line: true, times: part.times(), ..Node::default() });
            }
            if let Some(node) = self.nodes.get_mut(child) {
                node.threads.bump();
                node.at_one_line &= node.line == line;
                if let (Some(all), Some(own)) = (&mut node.times, part.times()) {
                    *all = RepeatTimes { least: all.least.min(own.least), most: all.most.max(own.most) };
                }
            }
            at = child;
        }
        if let (Some(node), Some(id)) = (self.nodes.get_mut(at), thread.managed_id) {
            node.ending.push(id);
        }
    }

    /// Returns the tree, parents before children.
    pub(super) fn merged(&self) -> Vec<MergedFrame> {
        let mut out = Vec::new();
        let mut open = Vec::new();
        self.push_children(0, 0, &mut open);
        while let Some((depth, key, index)) = open.pop() {
            let Some(node) = self.nodes.get(index) else { continue };
            let (frame, module, method_desc) = match key.clone() {
                Key::Frame(text, module, method_desc) => (text, module, method_desc),
                Key::Cycle(text) => (text, None, None),
            };
            let (file, line) = if node.at_one_line { node.line.clone() } else { (None, None) };
            out.push(MergedFrame {
                depth,
                threads: node.threads,
                managed_ids: node.ending.clone(),
                frame,
                times: node.times,
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

    /// Pushes the children of a node. Those with the most threads are pushed last, so that they are popped first.
    fn push_children<'n>(&'n self, index: usize, depth: u32, open: &mut Vec<(u32, &'n Key, usize)>) {
        let Some(node) = self.nodes.get(index) else { return };
        let threads = |i: usize| self.nodes.get(i).map_or(0, |n| n.threads);
        let mut children: Vec<(&Key, usize)> = node.children.iter().map(|(key, i)| (key, *i)).collect();
        children.sort_by(|a, b| threads(a.1).cmp(&threads(b.1)).then(b.0.cmp(a.0)));
        open.extend(children.into_iter().map(|(key, i)| (depth, key, i)));
    }
}
