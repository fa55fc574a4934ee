//! The slots that a frame reports, for each [`FrameKind`] and each kind of offset.

use super::*;
use FrameKind::{Exception, Helper, Leaf, Return};

const NOTHING: [&str; 0] = [];

/// A method with the slots that the methods below have: rax, rbx, a stack slot in the outgoing area, a stack slot above that area, and an
/// untracked stack slot relative to the frame register.
fn slotted(version: u32) -> Method {
    Method {
        fat: true,
        flags: 0x40,
        outgoing_words: 2,
        registers: vec![(0, 0), (3, 0)],
        stack: vec![(1, 1, 0), (1, 3, 0)],
        untracked: vec![(2, -1, 0)],
        ..Method::new(version, 100)
    }
}

/// A method that can be stopped at its calls, which return to 20 and 60. All slots are live at the first call; only rbx is live at the second call.
fn calls(version: u32) -> Method {
    let stored = |address| if version < 4 { address - 1 } else { address };
    let safe_points = vec![(stored(20), vec![true; 4]), (stored(60), vec![false, true, false, false])];
    Method { safe_points, ..slotted(version) }
}

/// A method that can be stopped anywhere from 10 to 90. rbx is live from 20 to 50; the other slots are live from 10 to 90.
fn loops(version: u32) -> Method {
    let lives = (10..90).map(|at| vec![true, (20..50).contains(&at), true, true]).collect();
    Method { ranges: vec![(10, 90)], lives, ..slotted(version) }
}

#[test]
fn slots_at_calls_are_reported() {
    for version in 2..=4 {
        let (info, bytes) = decode(&calls(version)).unwrap();
        let ask = |kind, offset| reported(&info, &bytes, offset, kind);
        assert_eq!(ask(Return, 20), ["rbx", "[sp+24]", "[frame-8]"]);
        assert_eq!(ask(Return, 60), ["rbx", "[frame-8]"]);
        for offset in [0, 19, 21, 59, 61, 100] {
            assert_eq!(ask(Return, offset), ["[frame-8]"], "no tracked slot is live across the call before {offset}");
            assert_eq!(ask(Leaf, offset), ["[frame-8]"], "no collection can happen at {offset}");
            assert_eq!(ask(Exception, offset), ["[frame-8]"]);
        }
        for offset in [20, 60] {
            assert_eq!(ask(Exception, offset), ["[frame-8]"], "safe points do not apply to a frame that will not continue");
        }
        match version {
            2 => assert_eq!(ask(Leaf, 20), ["[frame-8]"]),
            _ => assert_eq!(ask(Leaf, 20), ["rax", "rbx", "[sp+8]", "[sp+24]", "[frame-8]"]),
        }
    }
}

/// A thread that no collection has stopped may be at an offset without a safe point.
#[test]
fn offsets_without_a_safe_point_are_not_described() {
    for version in 2..=4 {
        let (calls, _) = decode(&calls(version)).unwrap();
        let (loops, _) = decode(&loops(version)).unwrap();
        let (plain, _) = decode(&slotted(version)).unwrap();
        for offset in [0, 19, 21, 59, 61, 100] {
            assert!(!calls.describes(offset, Leaf) && !calls.describes(offset, Helper), "{offset}");
            assert!(!plain.describes(offset, Leaf) && !plain.describes(offset, Helper), "{offset}");
            assert!(calls.describes(offset, Return) && calls.describes(offset, Exception), "{offset}");
        }
        assert!([20, 60].into_iter().all(|offset| calls.describes(offset, Helper)));
        assert_eq!(calls.describes(20, Leaf), version > 2);
        assert!((11..90).all(|offset| loops.describes(offset, Leaf) && loops.describes(offset, Helper)));
        assert!([0, 9, 91, 100].into_iter().all(|offset| !loops.describes(offset, Leaf) && !loops.describes(offset, Helper)));
    }
}

#[test]
fn slots_inside_ranges_are_reported() {
    for version in 2..=4 {
        let (info, bytes) = decode(&loops(version)).unwrap();
        let ask = |kind, offset| reported(&info, &bytes, offset, kind);
        for offset in [10, 19, 50, 89] {
            assert_eq!(ask(Leaf, offset), ["rax", "[sp+8]", "[sp+24]", "[frame-8]"]);
            assert_eq!(ask(Exception, offset), ["[sp+24]", "[frame-8]"]);
        }
        for offset in [20, 49] {
            assert_eq!(ask(Leaf, offset), ["rax", "rbx", "[sp+8]", "[sp+24]", "[frame-8]"]);
            assert_eq!(ask(Exception, offset), ["rbx", "[sp+24]", "[frame-8]"]);
        }
        for offset in [0, 9, 90, 99] {
            assert_eq!(ask(Leaf, offset), NOTHING);
            assert_eq!(ask(Exception, offset), NOTHING);
        }
        // Up to version 3, the slots at a return address are the slots at the byte before this address.
        let shift = u32::from(version < 4);
        assert_eq!(ask(Return, 9 + shift), NOTHING);
        assert_eq!(ask(Return, 10 + shift), ["[sp+24]", "[frame-8]"]);
        assert_eq!(ask(Return, 19 + shift), ["[sp+24]", "[frame-8]"]);
        assert_eq!(ask(Return, 20 + shift), ["rbx", "[sp+24]", "[frame-8]"]);
        assert_eq!(ask(Return, 49 + shift), ["rbx", "[sp+24]", "[frame-8]"]);
        assert_eq!(ask(Return, 50 + shift), ["[sp+24]", "[frame-8]"]);
        assert_eq!(ask(Return, 90 + shift), NOTHING);
        assert_eq!(ask(Return, 0), NOTHING);
    }
}

#[test]
fn methods_with_safe_points_and_ranges_report_both() {
    for version in 2..=4 {
        let method = Method { safe_points: calls(version).safe_points, ranges: vec![(70, 90)], ..loops(version) };
        let lives = (70..90).map(|at| vec![false, at >= 80, false, false]).collect();
        let (info, bytes) = decode(&Method { lives, ..method.clone() }).unwrap();
        let ask = |kind, offset| reported(&info, &bytes, offset, kind);
        assert_eq!(ask(Return, 20), ["rbx", "[sp+24]", "[frame-8]"]);
        assert_eq!((ask(Return, 85), ask(Leaf, 79), ask(Leaf, 80)), (ask(Leaf, 85), vec!["[frame-8]".into()], ask(Leaf, 85)));
        assert_eq!(ask(Leaf, 85), ["rbx", "[frame-8]"]);
        assert_eq!(ask(Return, 40), NOTHING, "no collection stops a method with ranges outside of them");
        assert_eq!(ask(Exception, 20), NOTHING);
        // If the part for safe points has a table, its length is not stored. No decoder can then find the part for the ranges.
        let (info, bytes) = decode(&Method { table: true, ..method }).unwrap();
        assert_eq!(reported(&info, &bytes, 20, Return), ["rbx", "[sp+24]", "[frame-8]"]);
        let registers = registers(Arch::X64, Some(5));
        let frame =
            FrameState { offset: 85, kind: Leaf, registers: &registers, caller_sp: Addr(CALLER_SP), os: Os::Linux, untracked: true };
        assert!(matches!(info.roots(&bytes, &frame), Err(GcInfoError::Malformed { .. })));
    }
}

#[test]
fn a_method_without_tracked_slots_always_reports_the_others() {
    let untracked = vec![(0, -2, 1), (1, 4, 2), (2, -1, 0), (2, 5, 0)];
    for version in 2..=4 {
        for ranges in [vec![], vec![(10, 20)]] {
            let method = Method { registers: vec![], stack: vec![], untracked: untracked.clone(), ranges, ..slotted(version) };
            let (info, bytes) = decode(&method).unwrap();
            for kind in [Leaf, Return, Exception] {
                for offset in [0, 10, 15, 20, 100] {
                    let found = reported(&info, &bytes, offset, kind);
                    // The word at `[caller-16]` is not null. The word at `[frame+40]` is null, so it is not reported.
                    assert_eq!(found, ["[caller-16]&", "[sp+32]!", "[frame-8]"], "{version} {kind:?} {offset}");
                }
            }
        }
    }
}

#[test]
fn filters_do_not_report_untracked_slots() {
    let (info, bytes) = decode(&calls(4)).unwrap();
    let registers = registers(Arch::X64, Some(5));
    let frame = FrameState { offset: 20, kind: Return, registers: &registers, caller_sp: Addr(CALLER_SP), os: Os::Linux, untracked: false };
    assert_eq!(named(&info.roots(&bytes, &frame).unwrap(), &registers), ["rbx", "[sp+24]"]);
}

#[test]
fn preserved_registers_depend_on_system_and_architecture() {
    let all = |arch, count: u64, version| {
        let safe_points = vec![(if version < 4 { 15 } else { 16 }, vec![true; count as usize])];
        let method = Method { arch, safe_points, registers: (0..count).map(|n| (n, 0)).collect(), ..Method::new(version, 100) };
        decode(&method).unwrap()
    };
    let ask = |(info, bytes): &(GcInfo, CodeBytes), arch, os, offset| {
        let registers = registers(arch, None);
        let frame = FrameState { offset, kind: Return, registers: &registers, caller_sp: Addr(CALLER_SP), os, untracked: true };
        named(&info.roots(bytes, &frame).unwrap(), &registers).join(" ")
    };
    let x64 = all(Arch::X64, 16, 2);
    assert_eq!(ask(&x64, Arch::X64, Os::Linux, 16), "rbx rbp r12 r13 r14 r15");
    assert_eq!(ask(&x64, Arch::X64, Os::Windows, 16), "rbx rbp rsi rdi r12 r13 r14 r15");
    let preserved = "x18 x19 x20 x21 x22 x23 x24 x25 x26 x27 x28";
    // Up to version 3, a safe point is stored in bytes, as the return address minus one; since version 4, it is stored in instructions.
    for (version, offset) in [(2, 16), (3, 16), (4, 64)] {
        let arm = all(Arch::Arm64, 32, version);
        assert_eq!(arm.0.header().code_length, 400);
        assert_eq!(ask(&arm, Arch::Arm64, Os::Linux, offset), preserved);
        for other in [offset - 1, offset + 1, offset + 4] {
            assert_eq!(ask(&arm, Arch::Arm64, Os::Windows, other), "");
        }
    }
}

#[test]
fn a_slot_has_a_place_and_a_value() {
    let method = Method { registers: vec![(3, 3), (9, 1), (12, 1), (13, 0)], stack: vec![(0, -8, 0), (1, 600, 0)], ..calls(4) };
    let safe_points = vec![(20, vec![true; 6])];
    let (info, bytes) = decode(&Method { safe_points, ..method }).unwrap();
    let mut registers = registers(Arch::X64, None);
    registers.set(12, Saved { value: None, place: Some(Addr(0x10)) });
    registers.set(5, Saved::default());
    let frame = FrameState { offset: 20, kind: Leaf, registers: &registers, caller_sp: Addr(CALLER_SP), os: Os::Linux, untracked: true };
    let slot = |location, value| FrameSlot { location, value, interior: false, pinned: false };
    let register = |number, place: Option<u64>| Location::Register { number, place: place.map(Addr) };
    let stack = |address: Option<u64>, base, offset| Location::Stack { address: address.map(Addr), base, offset };
    let want = [
        FrameSlot { interior: true, pinned: true, ..slot(register(3, Some(STACK + 3)), Some(0xab03)) },
        // r9 is null. r12 is unknown.
        FrameSlot { interior: true, ..slot(register(12, Some(0x10)), None) },
        slot(register(13, Some(STACK + 13)), Some(0xab0d)),
        slot(stack(Some(CALLER_SP - 64), SlotBase::CallerSp, -64), Some(word(CALLER_SP - 64))),
        // Not in the dump.
        slot(stack(Some(SP + 4800), SlotBase::Sp, 4800), None),
        // The frame register is unknown.
        slot(stack(None, SlotBase::FrameRegister, -8), None),
    ];
    assert_eq!(info.roots(&bytes, &frame).unwrap(), want);
    let outside = FrameState { offset: 101, ..frame };
    assert_eq!(info.roots(&bytes, &outside), Err(GcInfoError::Outside { offset: 101, code_length: 100 }));
}

#[test]
fn chunks_without_a_description_continue_the_one_before() {
    // The two ranges have 420 units, which are 7 chunks. By index of a unit, rbx is live from 70 to 320 and from 400 on; rax is live from 399 on.
    let lives: Vec<Vec<bool>> = (0..420).map(|p| vec![p >= 399, (70..320).contains(&p) || p >= 400]).collect();
    for forms in [vec![0], vec![1], vec![3], vec![1, 0, 3]] {
        let ranges = vec![(5, 105), (200, 520)];
        let method = Method { fat: true, registers: vec![(0, 0), (3, 0)], ranges, lives: lives.clone(), forms, ..Method::new(4, 600) };
        let (info, bytes) = decode(&method).unwrap();
        for (p, want) in lives.iter().enumerate() {
            let offset = if p < 100 { p + 5 } else { p + 100 };
            let names = [("rax", want[0]), ("rbx", want[1])].into_iter().filter(|n| n.1).map(|n| n.0);
            assert_eq!(reported(&info, &bytes, offset as u32, Leaf), names.collect::<Vec<_>>(), "at {p}");
        }
    }
    // No slot is live anywhere, so no chunk has a description.
    let method =
        Method { fat: true, registers: vec![(3, 0)], ranges: vec![(0, 300)], lives: vec![vec![false]; 300], ..Method::new(4, 300) };
    let (info, bytes) = decode(&method).unwrap();
    assert_eq!(reported(&info, &bytes, 299, Leaf), NOTHING);
}
