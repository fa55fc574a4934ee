//! Property tests: the slots of any method that a compiler could write are decoded, and any bytes terminate.

use proptest::prelude::*;
use proptest::sample::{Index, subsequence};

use super::writer::StackSlot;
use super::*;

/// Sorts slots as a compiler does: slots with flags first, then slots without flags, each group in ascending order.
fn sorted<T: Copy, K: Ord>(mut slots: Vec<T>, key: impl Fn(&T) -> (bool, K)) -> Vec<T> {
    slots.sort_by_key(key);
    slots
}

prop_compose! {
    fn registers_of(count: u64)(
        numbers in subsequence((0..count).filter(|n| *n != 4 && *n != 31).collect::<Vec<_>>(), 0..8),
        flags in prop::collection::vec(prop_oneof![2 => Just(0u64), 1 => 1..4u64], 8),
    ) -> Vec<(u64, u64)> {
        sorted(numbers.into_iter().zip(flags).collect(), |(number, flags)| (*flags == 0, *number))
    }
}

fn stack_slots() -> impl Strategy<Value = Vec<StackSlot>> {
    let slot = (0..3u64, -60..60i64, prop_oneof![2 => Just(0u64), 1 => 1..4u64]);
    prop::collection::vec(slot, 0..12).prop_map(|slots| sorted(slots, |(_, words, flags)| (*flags == 0, *words)))
}

/// The set of live slots at each of `count` consecutive places. Each element of `changes` selects a place and a slot that changes there.
fn lives(count: usize, tracked: usize, changes: &[(Index, Index)]) -> Vec<Vec<bool>> {
    let mut now = vec![false; tracked];
    let mut all = Vec::new();
    for place in 0..count {
        for (at, slot) in changes.iter().filter(|_| tracked > 0) {
            if at.index(count) == place {
                let slot = slot.index(tracked);
                now[slot] = !now[slot];
            }
        }
        all.push(now.clone());
    }
    all
}

prop_compose! {
    fn method()(
        (version, arch, code_length) in (2..=4u32, prop_oneof![3 => Just(Arch::X64), 1 => Just(Arch::Arm64)], 1..1500u32),
    )(
        registers in registers_of(if arch == Arch::X64 { 16 } else { 32 }),
        (version, arch, code_length) in Just((version, arch, code_length)),
        (stack, untracked) in (stack_slots(), stack_slots()),
        (fat, table, flags, outgoing_words) in (any::<bool>(), any::<bool>(), 0..1024u64, 0..40u64),
        at in prop::collection::vec(any::<Index>(), 0..12),
        edges in prop::collection::vec(any::<Index>(), 0..8),
        calls in prop::collection::vec((any::<Index>(), any::<Index>()), 0..30),
        changes in prop::collection::vec((any::<Index>(), any::<Index>()), 0..60),
        forms in prop::collection::vec(0..4u8, 1..4),
    ) -> Method {
        // Slots relative to the frame register need a frame register. Slim headers imply register 5 (x64) or 29 (arm64).
        let flags = if fat { flags | 0x40 } else { 0x40 };
        let frame_register = if arch == Arch::X64 { 5 } else { 29 };
        let outgoing_words = if fat { outgoing_words } else { 0 };
        let mut method = Method {
            fat, flags, arch, frame_register, outgoing_words, registers, stack, untracked, forms, ..Method::new(version, code_length)
        };
        let units = method.units();
        let mut points: Vec<u32> = at.iter().map(|i| i.index(units as usize) as u32).collect();
        points.sort_unstable();
        points.dedup();
        method.safe_points = points.into_iter().zip(lives(at.len(), method.tracked(), &calls)).collect();
        if fat {
            let mut edges: Vec<u32> = edges.iter().map(|i| i.index(units as usize + 1) as u32).collect();
            edges.sort_unstable();
            edges.dedup();
            method.ranges = edges.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
            let total: u32 = method.ranges.iter().map(|(start, end)| end - start).sum();
            method.lives = lives(total as usize, method.tracked(), &changes);
        }
        method.table = table && method.ranges.is_empty();
        method
    }
}

/// The live slots according to the model at the safe point with this stored offset.
fn lives_at_point(method: &Method, stored: Option<u32>) -> Option<&Vec<bool>> {
    method.safe_points.iter().find(|(offset, _)| Some(*offset) == stored).map(|(_, set)| set)
}

/// The live slots according to the model at this offset inside ranges.
fn lives_in_range(method: &Method, offset: Option<u32>) -> Option<&Vec<bool>> {
    let places = method.ranges.iter().flat_map(|(start, end)| *start..*end);
    places.zip(&method.lives).find(|(place, _)| Some(*place) == offset).map(|(_, set)| set)
}

/// The tracked slots that are reported, and whether scratch slots are reported too; `None` if not even untracked slots are reported.
fn expected(method: &Method, offset: u32, kind: FrameKind) -> Option<(Vec<bool>, bool)> {
    let dead = vec![false; method.tracked()];
    if method.tracked() == 0 {
        return Some((dead, true));
    }
    let unit = if method.arch == Arch::Arm64 && method.version == 4 { 4 } else { 1 };
    let before = offset.checked_sub(1);
    let stored = if method.version < 4 { before } else { offset.is_multiple_of(unit).then_some(offset / unit) };
    let here = lives_in_range(method, Some(offset / unit));
    let none = if method.ranges.is_empty() { Some((dead, false)) } else { None };
    match kind {
        FrameKind::Exception => here.map(|set| (set.clone(), false)).or(none),
        FrameKind::Leaf => {
            let point = if method.version >= 3 { lives_at_point(method, stored) } else { None };
            here.or(point).map(|set| (set.clone(), true)).or(none)
        }
        FrameKind::Return | FrameKind::Helper => {
            let range = if method.version < 4 { lives_in_range(method, before) } else { here };
            lives_at_point(method, stored).or(range).map(|set| (set.clone(), false)).or(none)
        }
    }
}

/// The slots that a frame should report.
fn expected_slots(method: &Method, offset: u32, kind: FrameKind, registers: &Registers) -> Vec<FrameSlot> {
    let Some((set, scratch)) = expected(method, offset, kind) else { return Vec::new() };
    let preserved: &[u64] = match method.arch {
        Arch::X64 => &[3, 5, 12, 13, 14, 15],
        _ => &[18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28],
    };
    let slot = |location, value, flags: u64| FrameSlot { location, value, interior: flags & 1 != 0, pinned: flags & 2 != 0 };
    let on_stack = |(base, words, flags): &StackSlot| {
        let (base, from) = [(SlotBase::CallerSp, CALLER_SP), (SlotBase::Sp, SP), (SlotBase::FrameRegister, FRAME)][*base as usize];
        let address = from.wrapping_add_signed(8 * words);
        let value = (STACK..STACK + STACK_BYTES).contains(&address).then(|| word(address));
        slot(Location::Stack { address: Some(Addr(address)), base, offset: 8 * *words as i32 }, value, *flags)
    };
    let outgoing = Addr(SP + 8 * method.outgoing_words);
    let mut out = Vec::new();
    for (i, (number, flags)) in method.registers.iter().enumerate() {
        if set[i] && (scratch || preserved.contains(number)) {
            let Saved { value, place } = registers.get(*number as u8);
            out.push(slot(Location::Register { number: *number as u8, place }, value, *flags));
        }
    }
    for (i, of_stack) in method.stack.iter().enumerate() {
        let found = on_stack(of_stack);
        if set[method.registers.len() + i]
            && (scratch || !matches!(found.location, Location::Stack { address, .. } if address < Some(outgoing)))
        {
            out.push(found);
        }
    }
    out.extend(method.untracked.iter().map(on_stack));
    out.retain(|slot| slot.value != Some(0));
    out
}

proptest! {
    #[test]
    fn written_methods_are_decoded(method in method(), offsets in prop::collection::vec(any::<Index>(), 20)) {
        let (info, bytes) = decode(&method).unwrap();
        prop_assert_eq!(info.header.code_length, if method.arch == Arch::Arm64 { method.code_length * 4 } else { method.code_length });
        let stored: Vec<u32> = method.safe_points.iter().map(|p| p.0).collect();
        prop_assert_eq!(&info.safe_points[..], &stored[..]);
        let ranges: Vec<(u32, u32)> = info.ranges.iter().map(|r| (r.start, r.end)).collect();
        prop_assert_eq!(&ranges, &method.ranges);
        let registers = registers(method.arch, info.header.frame_register);
        let unit = info.encoding.unit;
        let near = stored.iter().flat_map(|s| [*s, s + 1]).chain(ranges.iter().flat_map(|(a, b)| [*a, b - 1, *b])).map(|o| o * unit);
        let offsets: Vec<u32> = offsets.iter().map(|i| i.index(info.header.code_length as usize) as u32).chain(near).collect();
        for offset in offsets.into_iter().filter(|o| *o <= info.header.code_length) {
            for kind in [FrameKind::Leaf, FrameKind::Return, FrameKind::Exception, FrameKind::Helper] {
                let frame = FrameState {
                    offset, kind, registers: &registers, caller_sp: Addr(CALLER_SP), os: Os::Linux, untracked: true,
                };
                let want = expected_slots(&method, offset, kind, &registers);
                prop_assert_eq!(info.roots(&bytes, &frame), Ok(want), "{} {:?}", offset, kind);
            }
        }
    }

    /// GC info that is cut off at any byte gives the same slots or an error about missing bytes, never other slots.
    #[test]
    fn truncated_info_never_gives_other_slots(method in method(), cut: Index, offset: Index) {
        let whole = method.encode().bytes();
        let bytes = memory_with(&whole[..cut.index(whole.len())]);
        let missing = |e: &GcInfoError| matches!(e, GcInfoError::Missing(_));
        let info = GcInfo::decode(&bytes, Addr(INFO), method.version, method.arch);
        prop_assert!(info.as_ref().err().is_none_or(missing));
        let Ok(info) = info else { return Ok(()) };
        let registers = registers(method.arch, info.header.frame_register);
        let offset = offset.index(info.header.code_length as usize) as u32;
        for kind in [FrameKind::Leaf, FrameKind::Return, FrameKind::Exception, FrameKind::Helper] {
            let frame = FrameState { offset, kind, registers: &registers, caller_sp: Addr(CALLER_SP), os: Os::Linux, untracked: true };
            match info.roots(&bytes, &frame) {
                Ok(found) => prop_assert_eq!(found, expected_slots(&method, offset, kind, &registers)),
                Err(error) => prop_assert!(missing(&error), "{}", error),
            }
        }
    }

    #[test]
    fn any_bytes_terminate(info in prop::collection::vec(any::<u8>(), 0..400), version in 2..=4u32, arm: bool, at in 0..2000u32) {
        let arch = if arm { Arch::Arm64 } else { Arch::X64 };
        let bytes = memory_with(&info);
        let _ = GcInfo::code_length(&bytes, Addr(INFO), version, arch);
        let Ok(decoded) = GcInfo::decode(&bytes, Addr(INFO), version, arch) else { return Ok(()) };
        // Every entry takes at least one bit, except for the safe point of a method of one unit.
        prop_assert!(decoded.safe_points.len() + decoded.ranges.len() + decoded.slot_count() <= 8 * info.len() + 1);
        let registers = registers(arch, None);
        for kind in [FrameKind::Leaf, FrameKind::Return, FrameKind::Exception, FrameKind::Helper] {
            let offset = at.min(decoded.header.code_length);
            let frame = FrameState { offset, kind, registers: &registers, caller_sp: Addr(CALLER_SP), os: Os::Windows, untracked: true };
            if let Ok(slots) = decoded.roots(&bytes, &frame) {
                prop_assert!(slots.len() <= decoded.slot_count());
            }
        }
    }
}
