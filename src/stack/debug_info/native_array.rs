//! `NativeArray` of ReadyToRun images: a sparse array in blocks of 16 elements, each block a binary tree (nativeformatreader.h).

use crate::base::Addr;
use crate::memory::ReadError;
use crate::stack::CodeBytes;

/// Number of elements in a block.
const BLOCK: u64 = 16;
/// Number of low bits below the value. They are flags in a node, and the size of index entries in the array's head.
const TAG_BITS: u32 = 2;
/// Flag of a node with a left subtree.
const LEFT: u32 = 1;
/// Flag of a node with a right subtree.
const RIGHT: u32 = 2;

/// The unsigned integer at `at`, and the address after the integer; `None` for an invalid encoding. The number of trailing 1 bits in the
/// first byte determines the length.
pub(super) fn unsigned(bytes: &CodeBytes, at: Addr) -> Result<Option<(u32, Addr)>, ReadError> {
    let first = bytes.u8(at)?;
    let extra = first.trailing_ones();
    if extra == 4 {
        return Ok(Some((bytes.u32(at.plus(1))?, at.plus(5))));
    }
    if extra > 4 {
        return Ok(None);
    }
    let mut value = 0u32;
    for i in (0..=u64::from(extra)).rev() {
        value = value << 8 | u32::from(bytes.u8(at.plus(i))?);
    }
    Ok(Some((value >> extra.saturating_add(1), at.plus(u64::from(extra)).plus(1))))
}

/// Address of element `index` of the array at `array`; `None` if the array does not have it.
pub(super) fn element(bytes: &CodeBytes, array: Addr, index: u64) -> Result<Option<Addr>, ReadError> {
    let Some((head, base)) = unsigned(bytes, array)? else { return Ok(None) };
    if index >= u64::from(head >> TAG_BITS) {
        return Ok(None);
    }
    let block = index / BLOCK;
    let within = match head & 3 {
        0 => u32::from(bytes.u8(base.element(block, 1))?),
        1 => u32::from(bytes.u16(base.element(block, 2))?),
        _ => bytes.u32(base.element(block, 4))?,
    };
    let mut at = base.plus(u64::from(within));
    for bit in [8, 4, 2, 1] {
        let Some((node, next)) = unsigned(bytes, at)? else { return Ok(None) };
        if index & bit != 0 {
            if node & RIGHT != 0 {
                at = at.plus(u64::from(node >> TAG_BITS));
                continue;
            }
        } else if node & LEFT != 0 {
            at = next;
            continue;
        }
        // A node without subtrees has one element, which follows the node. The node's value is the element's index within the block.
        let only = node & (LEFT | RIGHT) == 0 && u64::from(node >> TAG_BITS) == index % BLOCK;
        return Ok(only.then_some(next));
    }
    Ok(Some(at))
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::base::Shape;
    use crate::memory::tests::memory_of;

    fn code_bytes(bytes: Vec<u8>) -> CodeBytes {
        let len = bytes.len() as u64;
        CodeBytes::new(&Arc::new(memory_of(bytes, &[(0x1000, len, 0)], Shape::LE64)))
    }

    fn encode(value: u32) -> Vec<u8> {
        let all = u64::from(value);
        match value {
            0..0x80 => vec![(all << 1) as u8],
            0x80..0x4000 => (all << 2 | 1).to_le_bytes()[..2].to_vec(),
            0x4000..0x20_0000 => (all << 3 | 3).to_le_bytes()[..3].to_vec(),
            0x20_0000..0x1000_0000 => (all << 4 | 7).to_le_bytes()[..4].to_vec(),
            _ => (all << 8 | 15).to_le_bytes()[..5].to_vec(),
        }
    }

    /// The tree of a block for the elements `low..low + 2^bits` that are in `values`.
    fn tree(values: &[(u64, u8)], low: u64, bits: u32) -> Vec<u8> {
        let size = 1u64 << bits;
        let here: Vec<(u64, u8)> = values.iter().copied().filter(|v| (low..low + size).contains(&v.0)).collect();
        if bits == 0 {
            return vec![here[0].1];
        }
        if let [only] = here[..] {
            let mut out = encode((only.0 as u32 % 16) << 2);
            out.push(only.1);
            return out;
        }
        let middle = low + size / 2;
        let (left, right): (Vec<_>, Vec<_>) = here.iter().copied().partition(|v| v.0 < middle);
        let left = if left.is_empty() { Vec::new() } else { tree(&left, low, bits - 1) };
        let right = if right.is_empty() { Vec::new() } else { tree(&right, middle, bits - 1) };
        let flags = u32::from(!left.is_empty()) | u32::from(!right.is_empty()) << 1;
        // The distance to the right subtree is relative to the node, whose size depends on the distance.
        let node = (1..6).map(|n| encode((left.len() as u32 + n) << 2 | flags)).zip(1..).find(|(e, n)| e.len() == *n).unwrap().0;
        [node, left, right].concat()
    }

    fn array(values: &[(u64, u8)], count: u64, entry: u32) -> Vec<u8> {
        let mut out = encode((count as u32) << 2 | entry);
        let blocks = count.div_ceil(16);
        let width = 1usize << entry;
        let mut index: Vec<u8> = Vec::new();
        let mut trees: Vec<u8> = Vec::new();
        for block in 0..blocks {
            let at = (blocks as usize * width + trees.len()) as u32;
            index.extend(&at.to_le_bytes()[..width]);
            if values.iter().any(|v| v.0 / 16 == block) {
                trees.extend(tree(values, block * 16, 4));
            } else {
                trees.extend(encode(0x1f << 2));
            }
        }
        out.extend(index);
        out.extend(trees);
        out
    }

    #[test]
    fn numbers_of_every_length() {
        for value in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 0x1f_ffff, 0x20_0000, 0xfff_ffff, 0x1000_0000, u32::MAX] {
            let bytes = encode(value);
            let end = Addr(0x1000 + bytes.len() as u64);
            assert_eq!(unsigned(&code_bytes(bytes), Addr(0x1000)), Ok(Some((value, end))), "{value:#x}");
        }
        assert_eq!(unsigned(&code_bytes(vec![0x1f; 8]), Addr(0x1000)), Ok(None));
        assert!(unsigned(&code_bytes(vec![1]), Addr(0x1000)).is_err());
    }

    proptest! {
        #[test]
        fn exactly_the_existing_elements_are_found(present in prop::collection::btree_map(0u64..60, any::<u8>(), 0..40), entry in 0u32..3) {
            let values: Vec<(u64, u8)> = present.iter().map(|(i, v)| (*i, *v)).collect();
            let bytes = code_bytes(array(&values, 60, entry));
            for index in 0..70 {
                let found = element(&bytes, Addr(0x1000), index).unwrap().map(|at| bytes.u8(at).unwrap());
                prop_assert_eq!(found, present.get(&index).copied(), "{}", index);
            }
        }

        #[test]
        fn any_bytes_terminate(bytes in prop::collection::vec(any::<u8>(), 0..200), index in 0u64..100) {
            let _ = element(&code_bytes(bytes), Addr(0x1000), index);
        }
    }
}
