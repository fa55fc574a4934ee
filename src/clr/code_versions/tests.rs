//! Tests with handmade code versions: contradictory lists, hash tables with collisions.

use std::sync::Arc;

use super::*;
use crate::base::Shape;
use crate::memory;

const BASE: u64 = 0x1_0000;
/// Address of the MethodDesc.
const DESC: u64 = BASE + 0x100;
const CODE_DATA: u64 = BASE + 0x200;
const STATE: u64 = BASE + 0x300;
const NODES: [u64; 2] = [BASE + 0x400, BASE + 0x480];
const MODULE: u64 = BASE + 0x500;
const ALLOCATOR: u64 = BASE + 0x540;
const MANAGER: u64 = BASE + 0x580;
const TABLE: u64 = BASE + 0x600;
const INFOS: [u64; 2] = [BASE + 0x700, BASE + 0x740];
/// Start of the code of the two later versions, and of the default version.
const CODE: [u64; 3] = [0x9000, 0x9100, 0x9200];

struct Image(Vec<u8>);

impl Image {
    fn word(&mut self, at: u64, value: u64) -> &mut Image {
        self.bytes(at, &value.to_le_bytes())
    }

    fn bytes(&mut self, at: u64, bytes: &[u8]) -> &mut Image {
        let at = usize::try_from(at - BASE).unwrap();
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// A method with two later versions: instrumented code, and then tier 1.
    fn new() -> Image {
        let mut image = Image(vec![0; 0x1000]);
        image.bytes(DESC, &0x8001u16.to_le_bytes()).word(DESC + 8, CODE_DATA).word(CODE_DATA, STATE);
        image.word(STATE, DESC).word(STATE + 16, NODES[0]);
        for (i, tier) in [1u32, 4].into_iter().enumerate() {
            let next = NODES.get(i + 1).copied().unwrap_or(0);
            image.word(NODES[i], CODE[i]).word(NODES[i] + 8, DESC).word(NODES[i] + 24, next).bytes(NODES[i] + 36, &tier.to_le_bytes());
        }
        image
    }

    /// Adds call counting state in a table of five slots. The method's own entry is two probes after its home slot. The slots before have
    /// the entry of a node and a deleted entry.
    fn counting(&mut self, stage: u8) -> &mut Image {
        self.word(MODULE + 16, ALLOCATOR).word(ALLOCATOR + 8, MANAGER).word(MANAGER, TABLE).bytes(MANAGER + 8, &5u32.to_le_bytes());
        let (place, step) = (DESC % 5, DESC % 4 + 1);
        for (i, element) in [INFOS[0], 1, INFOS[1]].into_iter().enumerate() {
            self.word(TABLE + (place + i as u64 * step) % 5 * 8, element);
        }
        self.bytes(INFOS[0], &1u32.to_le_bytes()).word(INFOS[0] + 8, DESC).bytes(INFOS[0] + 26, &[DISABLED]);
        self.bytes(INFOS[1], &2u32.to_le_bytes()).word(INFOS[1] + 8, DESC).bytes(INFOS[1] + 26, &[stage])
    }

    fn versions(&self) -> CodeVersions {
        let memory = memory::tests::memory_of(self.0.clone(), &[(BASE, self.0.len() as u64, 0)], Shape::LE64);
        let mut d = Descriptor::default();
        for (name, field, offset) in [
            ("MethodDesc", "Flags3AndTokenRemainder", 0),
            ("MethodDesc", "CodeData", 8),
            ("MethodDescCodeData", "VersioningState", 0),
            ("MethodDescVersioningState", "MethodDesc", 0),
            ("MethodDescVersioningState", "NativeCodeVersionNode", 16),
            ("NativeCodeVersionNode", "NativeCode", 0),
            ("NativeCodeVersionNode", "MethodDesc", 8),
            ("NativeCodeVersionNode", "Next", 24),
            ("NativeCodeVersionNode", "OptimizationTier", 36),
            ("SHash", "Table", 0),
            ("SHash", "TableSize", 8),
            ("Module", "LoaderAllocator", 16),
            ("LoaderAllocator", "CallCountingManager", 8),
            ("CallCountingManager", "CallCountingHash", 0),
            ("CallCountingInfo", "CodeVersion", 0),
            ("CallCountingInfo", "Stage", 26),
            ("NativeCodeVersion", "StorageKind", 0),
            ("NativeCodeVersion", "MethodDescOrNode", 8),
        ] {
            d.set_field(name, field, offset, 0);
        }
        CodeVersions::bind(&Arc::new(memory), &d).unwrap()
    }

    fn node(&self, start: u64) -> Node {
        self.versions().node(Addr(DESC), Addr(start)).unwrap()
    }

    fn is_counting_disabled(&self) -> Option<bool> {
        self.versions().is_counting_disabled(Addr(MODULE), Addr(DESC))
    }
}

#[test]
fn later_code_has_the_tier_of_its_node_and_first_code_has_no_node() {
    let image = Image::new();
    assert_eq!(CODE.map(|start| image.node(start)), [Node::Of(1), Node::Of(4), Node::None]);
    assert_eq!([0, 1, 2, 3, 4, 5, 6, u32::MAX].map(tier_of).iter().flatten().count(), 6);
}

#[test]
fn contradictory_lists_have_no_result() {
    // The state belongs to another method, a node belongs to another method, or the nodes form a cycle.
    for (at, value) in [(STATE, DESC + 8), (NODES[0] + 8, DESC + 8), (NODES[1] + 24, NODES[0])] {
        let mut image = Image::new();
        image.word(at, value);
        assert_eq!(image.node(CODE[2]), Node::Unknown, "{at:#x}");
    }
}

#[test]
fn methods_without_later_versions_have_first_code_only() {
    for at in [DESC + 8, CODE_DATA, STATE + 16] {
        let mut image = Image::new();
        image.word(at, 0);
        assert_eq!(image.node(CODE[2]), Node::None, "{at:#x}");
    }
    // A node that is not in the dump may exist in the process, so the result is an error.
    let mut image = Image::new();
    image.word(STATE + 16, 0x77_0000);
    assert!(image.versions().node(Addr(DESC), Addr(CODE[2])).is_err());
}

#[test]
fn call_counting_is_found_after_collisions() {
    let mut image = Image::new();
    assert_eq!(image.counting(DISABLED).is_counting_disabled(), Some(true));
    assert_eq!(image.counting(1).is_counting_disabled(), Some(false));
    assert_eq!(image.counting(5).is_counting_disabled(), None, "no such stage");
    // In the next four checks, the method is not in the table, the table is null but has a size, the table does not exist, and the table is not
    // in the dump.
    assert_eq!(image.word(INFOS[1] + 8, DESC + 8).is_counting_disabled(), Some(false));
    image.word(MANAGER, 0);
    assert_eq!(image.is_counting_disabled(), None);
    assert_eq!(image.word(MANAGER + 8, 0).is_counting_disabled(), Some(false));
    image.word(MANAGER, 0x77_0000).bytes(MANAGER + 8, &5u32.to_le_bytes());
    assert_eq!(image.is_counting_disabled(), None);
}
