//! Forged `.gcdump` files in which many nodes and objects refer to one part of the file.

use std::path::Path;

fn text(s: &str) -> Vec<u8> {
    [&(s.len() as i32).to_le_bytes(), s.as_bytes()].concat()
}

/// Writes the start of an object with the definition of its class.
fn begin(class: &str, version: i32) -> Vec<u8> {
    [&[4, 4, 1][..], &version.to_le_bytes(), &version.to_le_bytes(), &text(class), &[6]].concat()
}

/// Encodes a number in the nodes' blob.
fn packed(n: i32) -> Vec<u8> {
    let mut groups = vec![(n & 0x7f) as u8];
    let mut rest = n >> 7;
    while !(rest == 0 && groups[groups.len() - 1] & 0x40 == 0) {
        groups.push((rest & 0x7f) as u8);
        rest >>= 7;
    }
    let last = groups.remove(0);
    groups.iter().rev().map(|g| g | 0x80).chain([last]).collect()
}

/// Encodes a node of the type with its references, relative to itself.
fn node(ty: i32, children: impl ExactSizeIterator<Item = i32>) -> Vec<u8> {
    let head = [packed(2 * ty), packed(children.len() as i32)].concat();
    head.into_iter().chain(children.flat_map(packed)).collect()
}

/// Writes a file of nodes, each with the offset of its data in `blob` and its address; node 0 is the root.
fn snapshot(types: &[&str], nodes: &[(usize, u64)], blob: &[u8], tail: &[u8]) -> Vec<u8> {
    let int = |n: usize| (n as i32).to_le_bytes().to_vec();
    let mut out = [text("!FastSerialization.1"), begin("GCHeapDump", 8), begin("Graphs.MemoryGraph", 0)].concat();
    out.extend([0; 8]);
    out.extend(int(0));
    out.extend(int(types.len()));
    // Groups of roots take no bytes.
    types.iter().for_each(|name| out.extend([text(name), int(if name.starts_with('[') { 0 } else { 24 }), text("a.dll")].concat()));
    out.extend(int(nodes.len()));
    nodes.iter().for_each(|(place, _)| out.extend((*place as u32).to_le_bytes()));
    out.extend(int(blob.len()));
    out.extend(blob);
    out.extend(int(nodes.len()));
    nodes.iter().for_each(|(_, address)| out.extend(address.to_le_bytes()));
    // The end of the graph; 64 bits, a whole heap, and no further facts.
    out.extend([&[6, 1][..], &1f32.to_le_bytes(), &[0; 4], &[1, 1]].concat());
    out.extend([&(-1i32).to_le_bytes()[..], &638_000_000_000_000_000_i64.to_le_bytes(), &(-1i32).to_le_bytes()].concat());
    out.extend([&text("lab")[..], &[7, 0, 0, 0], &[0; 16], &[0; 4], tail, &[6]].concat());
    out
}

/// All nodes have the same references, to all nodes.
pub fn references(_: &Path, part: u64) -> Vec<u8> {
    let n = 60_000 / part;
    let root = node(0, [1].into_iter());
    let shared = node(1, (0..n as i32).map(|_| 1));
    let objects = (0..n).map(|i| (root.len(), 0x1_0000 + 64 * i));
    let nodes: Vec<_> = [(0, 0)].into_iter().chain(objects).collect();
    snapshot(&["[root]", "Lab.A"], &nodes, &[root, shared].concat(), &[])
}

/// Many groups of roots have the same long name.
pub fn groups(_: &Path, part: u64) -> Vec<u8> {
    let n = 20_000 / part;
    let name = format!("[{}]", "x".repeat(1 << 20));
    let root = node(0, (1..=n as i32).collect::<Vec<_>>().into_iter());
    let (group, leaf) = (node(1, [1].into_iter()), node(2, [].into_iter()));
    let groups = (0..n).map(|_| (root.len(), 0));
    let nodes: Vec<_> = [(0, 0)].into_iter().chain(groups).chain([(root.len() + group.len(), 0x1_0000)]).collect();
    snapshot(&["[root]", &name, "Lab.A"], &nodes, &[root, group, leaf].concat(), &[])
}

/// The root refers to the same object many times.
pub fn again(_: &Path, part: u64) -> Vec<u8> {
    let (root, leaf) = (node(0, vec![1; 10_000_000 / part as usize].into_iter()), node(1, [].into_iter()));
    snapshot(&["[root]", "Lab.A"], &[(0, 0), (root.len(), 0x1_0000)], &[&root[..], &leaf].concat(), &[])
}

/// Many objects, which are skipped, have a class with a long name.
pub fn classes(_: &Path, part: u64) -> Vec<u8> {
    let (root, leaf) = (node(0, [1].into_iter()), node(1, [].into_iter()));
    let blob = [&root[..], &leaf].concat();
    let make = |tail: &[u8]| snapshot(&["[root]", "Lab.A"], &[(0, 0), (root.len(), 0x1_0000)], &blob, tail);
    // Where the class is defined, one byte into the first object.
    let label = make(&[]).len() as u32;
    let first = [&begin(&"x".repeat(4 << 20), 0)[..], &[6]].concat();
    let other = [&[4, 2][..], &label.to_le_bytes(), &[6]].concat();
    make(&[first, other.repeat((1_000_000 / part) as usize)].concat())
}
