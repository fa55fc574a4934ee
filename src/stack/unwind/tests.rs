//! Hand-made unwind information for x64, and processes to unwind in.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::base::{Os, Shape, len64};
use crate::memory::tests::memory_of;
use crate::stack::Saved;

pub(super) const BASE: Addr = Addr(0x10_0000);
/// RVAs of the function and its unwind information.
pub(super) const CODE: u32 = 0x1000;
pub(super) const UNWIND: u32 = 0x2000;
pub(super) const STACK: u64 = 0x7000_0000;
const ENTRY: FunctionEntry = FunctionEntry { begin: CODE, end: Some(CODE + 0x100), unwind: UNWIND };

const PUSH_NONVOL: u8 = 0;
const ALLOC_LARGE: u8 = 1;
const ALLOC_SMALL: u8 = 2;
const SET_FPREG: u8 = 3;
const SAVE_NONVOL: u8 = 4;
const SAVE_NONVOL_FAR: u8 = 5;
const EPILOG: u8 = 6;
const SAVE_XMM128: u8 = 8;
const SAVE_XMM128_FAR: u8 = 9;
const PUSH_MACHFRAME: u8 = 10;
const SET_FPREG_LARGE: u8 = 11;

const RAX: u8 = 0;
const RCX: u8 = 1;
const RBX: u8 = 3;
const RSP: u8 = 4;
const RBP: u8 = 5;
const RSI: u8 = 6;
const RDI: u8 = 7;
const R12: u8 = 12;
const R15: u8 = 15;

/// A process with the given memory.
pub(super) fn process(parts: &[(u64, &[u8])]) -> CodeBytes {
    let mut bytes = Vec::new();
    let mut ranges = Vec::new();
    for (at, part) in parts {
        ranges.push((*at, len64(part.len()), len64(bytes.len())));
        bytes.extend_from_slice(part);
    }
    CodeBytes::new(&Arc::new(memory_of(bytes, &ranges, Shape::LE64)))
}

pub(super) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// A process with a function, its unwind information and a stack.
fn with(code: &[u8], unwind: &[u8], stack: &[u64]) -> CodeBytes {
    process(&[(BASE.0 + u64::from(CODE), code), (BASE.0 + u64::from(UNWIND), unwind), (STACK, &words(stack))])
}

/// Registers whose values show their numbers, at `offset` in the function.
fn at(offset: u64) -> Registers {
    let mut registers = Registers::new(Arch::X64).unwrap();
    for number in 0..16 {
        registers.set(number, Saved { value: Some(0xabc0 + u64::from(number)), place: None });
    }
    registers.ip = BASE.plus(u64::from(CODE) + offset);
    registers.set_sp(Addr(STACK));
    registers
}

/// An UNWIND_INFO of version 1.
fn info(flags: u8, prologue: u8, frame: u8, codes: &[[u8; 2]]) -> Vec<u8> {
    let mut bytes = vec![1 | flags << 3, prologue, u8::try_from(codes.len()).unwrap(), frame];
    bytes.extend(codes.as_flattened());
    bytes
}

/// A code's first slot.
const fn op(offset: u8, operation: u8, info: u8) -> [u8; 2] {
    [offset, operation | info << 4]
}

fn half(n: u16) -> [u8; 2] {
    n.to_le_bytes()
}

fn invalid(result: Result<Registers, UnwindError>) -> &'static str {
    match result {
        Err(UnwindError::Invalid { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

fn body(unwind_info: &[u8], stack: &[u64]) -> Result<Registers, UnwindError> {
    unwind(&with(&[], unwind_info, stack), BASE, &ENTRY, &at(0x80), false)
}

fn saved(value: u64, slot: u64) -> Saved {
    Saved { value: Some(value), place: Some(Addr(STACK + slot * 8)) }
}

/// A preserved register: unchanged, and still in the thread's register.
fn untouched(number: u8) -> Saved {
    at(0).get(number)
}

#[test]
fn a_function_without_codes_returns() {
    let caller = body(&info(0, 0, 0, &[]), &[0x1234]).unwrap();
    assert_eq!((caller.ip, caller.sp()), (Addr(0x1234), Some(Addr(STACK + 8))));
    for number in (0..16).filter(|n| *n != RSP) {
        let kept = matches!(number, RBX | RBP | R12..=R15);
        assert_eq!(caller.get(number), if kept { untouched(number) } else { Saved::default() }, "{number}");
    }
}

#[test]
fn windows_preserves_more() {
    let code = with(&[], &info(0, 0, 0, &[]), &[0x1234]);
    let caller = unwind(&code, BASE, &ENTRY, &at(0x80).on(Os::Windows), false).unwrap();
    assert_eq!((caller.get(RSI), caller.get(RDI), caller.get(RAX)), (untouched(RSI), untouched(RDI), Saved::default()));
}

#[test]
fn pushes_and_allocations() {
    let codes = [op(20, ALLOC_SMALL, 1), op(16, PUSH_NONVOL, R12), op(14, PUSH_NONVOL, RBX), op(13, PUSH_NONVOL, RSI)];
    let caller = body(&info(0, 20, 0, &codes), &[0, 0, 12, 3, 6, 0x1234]).unwrap();
    assert_eq!((caller.ip, caller.sp()), (Addr(0x1234), Some(Addr(STACK + 48))));
    assert_eq!((caller.get(R12), caller.get(RBX), caller.get(RSI)), (saved(12, 2), saved(3, 3), saved(6, 4)));
    assert_eq!(caller.get(RBP), untouched(RBP));
}

#[test]
fn large_allocations() {
    let mut stack = vec![0; 0x2000];
    stack[0x1fff] = 0x1234;
    let scaled = info(0, 7, 0, &[op(7, ALLOC_LARGE, 0), half(0x1fff)]);
    let bytes = info(0, 7, 0, &[op(7, ALLOC_LARGE, 1), half(0xfff8), half(0)]);
    for codes in [scaled, bytes] {
        let caller = body(&codes, &stack).unwrap();
        assert_eq!((caller.ip, caller.sp()), (Addr(0x1234), Some(Addr(STACK + 0x1_0000))));
    }
    let far = info(0, 7, 0, &[op(7, ALLOC_LARGE, 1), half(0), half(0x10)]);
    assert_eq!(body(&far, &stack).unwrap_err(), ReadError { address: Addr(STACK + 0x10_0000), len: 8 }.into());
}

#[test]
fn saves_are_relative_to_the_frame() {
    let codes = [
        op(30, SAVE_XMM128, 6),
        half(1),
        op(25, SAVE_XMM128_FAR, 7),
        half(0x20),
        half(0),
        op(20, SAVE_NONVOL, R15),
        half(2),
        op(15, SAVE_NONVOL_FAR, RBX),
        half(8),
        half(0),
        op(7, ALLOC_SMALL, 3),
    ];
    let stack = [0, 3, 15, 0, 0x1234];
    let caller = body(&info(0, 30, 0, &codes), &stack).unwrap();
    assert_eq!((caller.ip, caller.sp()), (Addr(0x1234), Some(Addr(STACK + 40))));
    assert_eq!((caller.get(R15), caller.get(RBX)), (saved(15, 2), saved(3, 1)));
}

#[test]
fn a_frame_register_outlives_dynamic_allocation() {
    // push rbp; sub rsp, 32; lea rbp, [rsp + 16]; then the body moves rsp by 64.
    let codes = [op(14, SAVE_NONVOL, RBX), half(1), op(10, SET_FPREG, 0), op(5, ALLOC_SMALL, 3), op(1, PUSH_NONVOL, RBP)];
    let unwind_info = info(0, 14, RBP | 1 << 4, &codes);
    let mut stack = [0; 14];
    (stack[9], stack[12], stack[13]) = (3, 5, 0x1234);
    let code = with(&[], &unwind_info, &stack);
    let mut registers = at(0x80);
    registers.set(RBP, Saved { value: Some(STACK + 64 + 16), place: None });
    let caller = unwind(&code, BASE, &ENTRY, &registers, false).unwrap();
    assert_eq!((caller.ip, caller.sp()), (Addr(0x1234), Some(Addr(STACK + 14 * 8))));
    assert_eq!((caller.get(RBP), caller.get(RBX)), (saved(5, 12), saved(3, 9)));
    registers.set(RBP, Saved::default());
    assert_eq!(invalid(unwind(&code, BASE, &ENTRY, &registers, false)), "unknown frame register");
    // In the prologue, before the frame register is set, its value is not needed.
    registers.ip = BASE.plus(u64::from(CODE) + 5);
    registers.set_sp(Addr(STACK + 64));
    let caller = unwind(&code, BASE, &ENTRY, &registers, true).unwrap();
    assert_eq!((caller.ip, caller.get(RBP)), (Addr(0x1234), saved(5, 12)));
}

#[test]
fn a_large_frame_offset_needs_its_own_code() {
    let distance: u16 = 0x123;
    let set = |frame| info(0, 14, frame, &[op(10, SET_FPREG_LARGE, 0), half(distance), half(0), op(1, PUSH_NONVOL, RBP)]);
    let mut registers = at(0x80);
    registers.set(RBP, Saved { value: Some(STACK + 8 + u64::from(distance) * 16), place: None });
    let stack = [0, 5, 0x1234];
    let caller = unwind(&with(&[], &set(RBP | 15 << 4), &stack), BASE, &ENTRY, &registers, false).unwrap();
    assert_eq!((caller.ip, caller.get(RBP)), (Addr(0x1234), saved(5, 1)));
    let wrong = unwind(&with(&[], &set(RBP | 14 << 4), &stack), BASE, &ENTRY, &registers, false);
    assert_eq!(invalid(wrong), "conflicting offsets of the frame register");
    assert_eq!(invalid(body(&set(0), &stack)), "SET_FPREG without a frame register");
    // Without that code, an offset of 15 means 240 bytes.
    registers.set(RBP, Saved { value: Some(STACK + 8 + 240), place: None });
    let plain = info(0, 14, RBP | 15 << 4, &[op(10, SET_FPREG, 0), op(1, PUSH_NONVOL, RBP)]);
    assert_eq!(unwind(&with(&[], &plain, &stack), BASE, &ENTRY, &registers, false).unwrap().ip, Addr(0x1234));
}

#[test]
fn machine_frames_have_both_pointers() {
    for (code, stack) in [(0, vec![0, 0x1234, 0, 0, STACK + 0x800]), (1, vec![0, 0xe, 0x1234, 0, 0, STACK + 0x800])] {
        let caller = body(&info(0, 0, 0, &[op(0, ALLOC_SMALL, 0), op(0, PUSH_MACHFRAME, code)]), &stack).unwrap();
        assert_eq!((caller.ip, caller.sp()), (Addr(0x1234), Some(Addr(STACK + 0x800))));
    }
    let back = body(&info(0, 0, 0, &[op(0, PUSH_MACHFRAME, 0)]), &[0x1234, 0, 0, STACK]);
    assert_eq!(invalid(back), "the stack pointer did not advance");
}

#[test]
fn version_2_adds_epilogues_in_pairs() {
    // The second slot of a pair is padded with zeros, which must not be taken for a push.
    let mut bytes = info(0, 1, 0, &[op(2, EPILOG, 1), [0, 0], op(1, PUSH_NONVOL, RBX)]);
    bytes[0] = 2;
    let caller = body(&bytes, &[3, 0x1234]).unwrap();
    assert_eq!((caller.ip, caller.get(RBX)), (Addr(0x1234), saved(3, 0)));
    bytes[0] = 3;
    assert_eq!(invalid(body(&bytes, &[3, 0x1234])), "unwind information of an unknown version");
}

/// Unwind information at `UNWIND` chained to one 64 bytes later.
fn chained(first: &[[u8; 2]], second: &[u8]) -> Vec<u8> {
    let mut bytes = info(4, 0, 0, first);
    bytes.resize(bytes.len().next_multiple_of(4), 0xee);
    bytes.extend([0x1800u32, 0x1900, UNWIND + 64].iter().flat_map(|n| n.to_le_bytes()));
    bytes.resize(64, 0);
    bytes.extend(second);
    bytes
}

#[test]
fn all_codes_of_chained_entries_are_undone() {
    // The parent begins after the instruction pointer, but its prologue has run completely.
    let parent = info(0, 200, 0, &[op(200, ALLOC_SMALL, 0), op(1, PUSH_NONVOL, RBP)]);
    let bytes = chained(&[op(4, SAVE_NONVOL, RBX), half(0), op(2, PUSH_NONVOL, R12)], &parent);
    let caller = body(&bytes, &[7, 0, 5, 0x1234]).unwrap();
    assert_eq!((caller.ip, caller.sp()), (Addr(0x1234), Some(Addr(STACK + 32))));
    assert_eq!((caller.get(RBX), caller.get(R12), caller.get(RBP)), (saved(7, 0), saved(7, 0), saved(5, 2)));
}

#[test]
fn a_parent_may_have_the_only_frame_register() {
    let parent = info(0, 8, RBP, &[op(8, SET_FPREG, 0), op(1, PUSH_NONVOL, RBP)]);
    let mut registers = at(0x80);
    registers.set(RBP, Saved { value: Some(STACK + 16), place: None });
    let code = with(&[], &chained(&[], &parent), &[0, 0, 5, 0x1234]);
    let caller = unwind(&code, BASE, &ENTRY, &registers, false).unwrap();
    assert_eq!((caller.ip, caller.get(RBP)), (Addr(0x1234), saved(5, 2)));
}

#[test]
fn endless_chains_end() {
    let mut bytes = info(4, 0, 0, &[]);
    bytes.extend([CODE, CODE + 0x100, UNWIND].iter().flat_map(|n| n.to_le_bytes()));
    assert_eq!(invalid(body(&bytes, &[0x1234])), "endless chain of unwind information");
    // jmp +0x7f000000
    let code = with(&[0xe9, 0, 0, 0, 0x7f], &bytes, &[0x1234]);
    assert_eq!(invalid(unwind(&code, BASE, &ENTRY, &at(0), true)), "endless chain of unwind information");
}

#[test]
fn malformed_information_is_rejected() {
    let codes = |codes: &[[u8; 2]]| invalid(body(&info(0, 0, 0, codes), &[0x1234, 0x5678]));
    for operation in 12..16 {
        assert_eq!(codes(&[op(0, operation, 0)]), "unknown unwind operation");
    }
    for (operation, info, slots) in [(ALLOC_LARGE, 0, 1), (ALLOC_LARGE, 1, 2), (SAVE_NONVOL, 3, 1), (SAVE_NONVOL_FAR, 3, 2), (EPILOG, 0, 1)]
    {
        assert_eq!(codes(&vec![op(0, operation, info); slots]), "an unwind code without its operand");
    }
    assert_eq!(codes(&[op(0, PUSH_NONVOL, RSP)]), "unwind code saves the stack pointer");
    assert_eq!(codes(&[op(0, SET_FPREG, 0)]), "SET_FPREG without a frame register");
    let mut registers = at(0x80);
    registers.set(RSP, Saved::default());
    let code = with(&[], &info(0, 0, 0, &[]), &[0x1234]);
    assert_eq!(invalid(unwind(&code, BASE, &ENTRY, &registers, false)), "unknown stack pointer");
    registers.ip = BASE;
    assert_eq!(invalid(unwind(&code, BASE, &ENTRY, &registers, false)), "instruction pointer before its function");
    let top = |unwind_info: &[u8]| {
        let mut registers = at(0x80);
        registers.set_sp(Addr(u64::MAX - 7));
        let code = process(&[(BASE.0 + u64::from(UNWIND), unwind_info), (u64::MAX - 15, &[0; 15])]);
        unwind(&code, BASE, &ENTRY, &registers, false)
    };
    assert_eq!(invalid(top(&info(0, 0, 0, &[op(0, ALLOC_SMALL, 0)]))), "frame beyond the end of memory");
}

#[test]
fn absent_memory_is_an_error() {
    let missing = |code: &CodeBytes| match unwind(code, BASE, &ENTRY, &at(0x80), true) {
        Err(UnwindError::Read(ReadError { address, .. })) => address,
        other => panic!("{other:?}"),
    };
    let at_unwind = BASE.plus(UNWIND.into());
    let codes = info(0, 1, 0, &[op(1, PUSH_NONVOL, RBX)]);
    assert_eq!(missing(&process(&[(STACK, &words(&[3, 0x1234]))])), at_unwind);
    assert_eq!(missing(&with(&[], &codes[..5], &[3, 0x1234])), at_unwind.plus(4));
    assert_eq!(missing(&with(&[], &codes, &[])), Addr(STACK));
    assert_eq!(missing(&with(&[], &codes, &[3])), Addr(STACK + 8));
    let chain = info(4, 0, 0, &[]);
    assert_eq!(missing(&with(&[], &chain, &[3])), at_unwind.plus(4));
}

/// The frame that the epilogues of the tests undo: rbp, rbx and 32 bytes.
fn framed() -> Vec<u8> {
    info(0, 6, 0, &[op(6, ALLOC_SMALL, 3), op(2, PUSH_NONVOL, RBX), op(1, PUSH_NONVOL, RBP)])
}

#[test]
fn epilogues_of_a_leaf_are_executed() {
    let ends: [&[u8]; 10] = [
        &[0xc3],                   // ret
        &[0xf3, 0xc3],             // rep ret
        &[0xc2, 8, 0],             // ret 8
        &[0xf2, 0xc3],             // bnd ret
        &[0xeb, 0x80],             // jmp before the function
        &[0xe9, 0, 1, 0, 0],       // jmp past it
        &[0xff, 0x25, 0, 0, 0, 0], // jmp [rip]
        &[0x48, 0xff, 0xe0],       // rex.w jmp rax
        &[0x49, 0xff, 0xe3],       // rex.w jmp r11
        &[0xf2, 0xe9, 0, 1, 0, 0], // bnd jmp past it
    ];
    let pops: &[u8] = &[0x5b, 0x5d];
    for end in ends {
        for release in [&[0x48, 0x83, 0xc4, 0x20][..], &[0x48, 0x81, 0xc4, 0x20, 0, 0, 0]] {
            let code = [release, pops, end].concat();
            let cuts = [(0, 0), (release.len(), 4), (release.len() + 1, 5), (release.len() + 2, 6)];
            for (from, slots) in cuts {
                let memory = with(&code[from..], &framed(), &[0, 0, 0, 0, 3, 5, 0x1234]);
                let mut registers = at(0);
                registers.set_sp(Addr(STACK + slots * 8));
                let caller = unwind(&memory, BASE, &ENTRY, &registers, true).unwrap();
                assert_eq!((caller.ip, caller.sp()), (Addr(0x1234), Some(Addr(STACK + 56))), "{code:x?} {from}");
                assert_eq!(caller.get(RBX), if slots <= 4 { saved(3, 4) } else { untouched(RBX) }, "{code:x?} {from}");
                assert_eq!(caller.get(RBP), if slots <= 5 { saved(5, 5) } else { untouched(RBP) }, "{code:x?} {from}");
            }
        }
    }
}

#[test]
fn code_that_only_looks_like_an_epilogue_is_not_executed() {
    let code = |code: &[u8]| {
        let mut registers = at(0x40);
        registers.set_sp(Addr(STACK));
        let mut function = vec![0x90; 0x40];
        function.extend(code);
        let memory = with(&function, &framed(), &[0, 0, 0, 0, 3, 5, 0x1234]);
        unwind(&memory, BASE, &ENTRY, &registers, true).unwrap()
    };
    let whole = (Addr(0x1234), saved(3, 4), saved(5, 5));
    let others: [&[u8]; 12] = [
        &[],                             // absent
        &[0xeb],                         // partly absent
        &[0x48],                         // the same
        &[0x90],                         // nop
        &[0xeb, 0x10],                   // jmp in the function
        &[0xe9, 0x10, 0, 0, 0],          // the same
        &[0xff, 0xe0],                   // jmp rax: a switch
        &[0x48, 0x83, 0xc4, 0xf8, 0xc3], // add rsp, -8
        &[0x48, 0x83, 0xc5, 0x08, 0xc3], // add rbp, 8
        &[0x48, 0x8d, 0x65, 0x08, 0xc3], // lea rsp, [rbp + 8], without frame register
        &[0x48, 0x8b, 0xc3, 0xc3],       // mov rax, rbx
        &[0x58; 40],                     // more pops than registers
    ];
    for other in others {
        let caller = code(other);
        assert_eq!((caller.ip, caller.get(RBX), caller.get(RBP)), whole, "{other:x?}");
    }
    // A return address is never in an epilogue, whatever the code is.
    let memory = with(&[0xc3; 0x100], &framed(), &[0, 0, 0, 0, 3, 5, 0x1234]);
    assert_eq!(unwind(&memory, BASE, &ENTRY, &at(0x80), false).unwrap().ip, Addr(0x1234));
    assert_eq!(unwind(&memory, BASE, &ENTRY, &at(0x80), true).unwrap().ip, Addr(0));
    // A jump to the function's beginning is a recursive tail call.
    let memory = with(&[0x90, 0x90, 0xeb, 0xfc], &framed(), &[0x5678]);
    assert_eq!(unwind(&memory, BASE, &ENTRY, &at(2), true).unwrap().ip, Addr(0x5678));
    // If the function's end is unknown, a forward jump may stay within the function.
    let mut function = vec![0x90; 0x40];
    function.extend([0xe9, 0, 0, 0, 1]);
    let memory = with(&function, &framed(), &[0x5678, 0, 0, 0, 3, 5, 0x1234]);
    let endless = FunctionEntry { end: None, ..ENTRY };
    assert_eq!(unwind(&memory, BASE, &ENTRY, &at(0x40), true).unwrap().ip, Addr(0x5678));
    assert_eq!(unwind(&memory, BASE, &endless, &at(0x40), true).unwrap().ip, Addr(0x1234));
}

#[test]
fn jumps_between_parts_of_a_function_are_not_epilogues() {
    // The parent is at 0x1800 to 0x1900.
    let bytes = chained(&[op(0, ALLOC_SMALL, 0)], &info(0, 0, 0, &[]));
    let jump = |to: u32| {
        let distance = i64::from(to) - i64::from(CODE) - 5;
        let code = [&[0xe9][..], &i32::try_from(distance).unwrap().to_le_bytes()].concat();
        unwind(&with(&code, &bytes, &[0x1111, 0x2222]), BASE, &ENTRY, &at(0), true).unwrap().ip
    };
    assert_eq!((jump(0x1880), jump(CODE + 0x10), jump(CODE)), (Addr(0x2222), Addr(0x2222), Addr(0x2222)));
    assert_eq!((jump(0x1800), jump(0x1900), jump(0x17ff)), (Addr(0x1111), Addr(0x1111), Addr(0x1111)));
}

#[test]
fn epilogues_restore_the_stack_pointer_from_the_frame_register() {
    for (number, code) in [(RBP, vec![0x48, 0x8d, 0x65, 0xf8]), (R15, vec![0x49, 0x8d, 0xa7, 0xf8, 0xff, 0xff, 0xff])] {
        let unwind_info = info(0, 4, number, &[op(4, SET_FPREG, 0), op(1, PUSH_NONVOL, number)]);
        let mut registers = at(0x40);
        registers.set(number, Saved { value: Some(STACK + 32), place: None });
        let mut function = vec![0x90; 0x40];
        // pop rbx; pop rcx, which releases 8 bytes; ret
        function.extend([&code[..], &[0x5b, 0x59, 0xc3]].concat());
        let memory = with(&function, &unwind_info, &[0, 0, 0, 3, 0, 0x1234]);
        let caller = unwind(&memory, BASE, &ENTRY, &registers, true).unwrap();
        assert_eq!((caller.ip, caller.get(RBX), caller.get(RCX)), (Addr(0x1234), saved(3, 3), Saved::default()), "{number}");
        registers.set(number, Saved::default());
        assert_eq!(invalid(unwind(&memory, BASE, &ENTRY, &registers, true)), "unknown frame register");
    }
}

#[test]
fn gc_info_follows_the_personality_routine() {
    for (count, len) in [(0u8, 8), (1, 12), (2, 12), (3, 16), (255, 520)] {
        let code = process(&[(BASE.0 + u64::from(UNWIND), &[1, 0, count, 0])]);
        assert_eq!(gc_info_after(&code, BASE, &ENTRY, Arch::X64), Ok(BASE.plus(u64::from(UNWIND) + len)), "{count}");
    }
    let nothing = process(&[]);
    assert!(matches!(gc_info_after(&nothing, BASE, &ENTRY, Arch::X64), Err(UnwindError::Read(_))));
    assert!(matches!(gc_info_after(&nothing, BASE, &ENTRY, Arch::X86), Err(UnwindError::Invalid { .. })));
}

/// A step of a prologue.
#[derive(Clone, Copy, Debug)]
enum Step {
    Push(u8),
    Alloc(u16),
    SetFrame(u8),
    Save(u8, u8),
}

/// A prologue as compilers emit it: pushes, an allocation, possibly a frame register, saves.
fn prologues() -> impl Strategy<Value = Vec<Step>> {
    let preserved = || prop::sample::subsequence(vec![RBX, R12, 13, 14, R15], 0..5);
    (preserved(), 0u16..0x900, prop::option::of(0u8..8), preserved()).prop_map(|(pushed, slots, frame, stored)| {
        let mut steps: Vec<Step> = [RBP].into_iter().chain(pushed.clone()).map(Step::Push).collect();
        let room = u8::try_from(slots.min(200)).unwrap();
        if slots > 0 {
            steps.push(Step::Alloc(slots));
        }
        steps.extend(frame.map(Step::SetFrame));
        let stored = stored.into_iter().filter(|n| !pushed.contains(n));
        steps.extend((0..room).zip(stored).map(|(slot, number)| Step::Save(number, slot)));
        steps
    })
}

proptest! {
    /// Whatever a prologue did, and wherever it was interrupted, unwinding restores the registers before it.
    #[test]
    fn prologues_are_undone_from_any_instruction(steps in prologues(), body_moves in 0u64..64) {
        let top = STACK + 0x8000;
        let mut now = at(0);
        now.set_sp(Addr(top));
        let before = now.clone();
        let mut stack = BTreeMap::from([(top, 0x1234u64)]);
        let (mut codes, mut header) = (Vec::new(), 0);
        let mut states = vec![(0, now.clone(), stack.clone())];
        for (i, step) in (1u8..).zip(&steps) {
            let sp = now.sp().unwrap().0;
            match *step {
                Step::Push(number) => {
                    stack.insert(sp - 8, now.value(number).unwrap());
                    now.set_sp(Addr(sp - 8));
                    codes.push(vec![op(i, PUSH_NONVOL, number)]);
                }
                Step::Alloc(slots) => {
                    now.set_sp(Addr(sp - u64::from(slots) * 8));
                    codes.push(match slots {
                        1..=16 => vec![op(i, ALLOC_SMALL, u8::try_from(slots - 1).unwrap())],
                        17..=0x7ff => vec![op(i, ALLOC_LARGE, 0), half(slots)],
                        _ => vec![op(i, ALLOC_LARGE, 1), half(slots * 8), half(0)],
                    });
                }
                Step::SetFrame(offset) => {
                    now.set(RBP, Saved { value: Some(sp + u64::from(offset) * 16), place: None });
                    header = RBP | offset << 4;
                    codes.push(vec![op(i, SET_FPREG, 0)]);
                }
                Step::Save(number, slot) => {
                    stack.insert(sp + u64::from(slot) * 8, now.value(number).unwrap());
                    codes.push(vec![op(i, SAVE_NONVOL, number), half(slot.into())]);
                }
            }
            states.push((i, now.clone(), stack.clone()));
        }
        codes.reverse();
        let size = u8::try_from(steps.len()).unwrap();
        let unwind_info = info(0, size, header, &codes.concat());
        // In the body, saved registers have other values, and with a frame register the stack pointer may move.
        for step in &steps {
            if let Step::Push(number) | Step::Save(number, _) = *step && (number != RBP || header == 0) {
                now.set(number, Saved { value: Some(0xdead), place: None });
            }
        }
        if header != 0 {
            now.set_sp(Addr(now.sp().unwrap().0 - body_moves * 8));
        }
        states.push((size + 40, now, stack));
        for (offset, mut registers, stack) in states {
            registers.ip = BASE.plus(u64::from(CODE) + u64::from(offset));
            let contents: Vec<u64> = (STACK / 8..=top / 8).map(|word| stack.get(&(word * 8)).copied().unwrap_or(0xcccc)).collect();
            let code = process(&[(BASE.0 + u64::from(UNWIND), &unwind_info), (STACK, &words(&contents))]);
            for leaf in [false, true] {
                let caller = unwind(&code, BASE, &ENTRY, &registers, leaf).unwrap();
                prop_assert_eq!((caller.ip, caller.sp()), (Addr(0x1234), Some(Addr(top + 8))));
                for number in [RBX, RBP, R12, 13, 14, R15] {
                    let found = caller.get(number);
                    prop_assert_eq!(found.value, before.value(number), "register {} at {}", number, offset);
                    // The slot where the register was saved has the value.
                    prop_assert!(found.place.is_none_or(|at| code.u64(at).ok() == found.value));
                }
            }
        }
    }

    /// Any bytes yield a caller or an error, and a caller is further up the stack.
    #[test]
    fn any_bytes_terminate(
        code in prop::collection::vec(any::<u8>(), 0..40),
        unwind_info in prop::collection::vec(any::<u8>(), 0..600),
        stack in prop::collection::vec(any::<u64>(), 0..64),
        (version, offset, leaf) in (1u8..3, 0u64..300, any::<bool>()),
    ) {
        let mut unwind_info = unwind_info;
        if let Some(first) = unwind_info.first_mut() {
            *first = *first & 0xf8 | version;
        }
        let code = with(&code, &unwind_info, &stack);
        for frame in [STACK, STACK + 0x100, u64::MAX] {
            let mut registers = at(offset);
            registers.set(RBP, Saved { value: Some(frame), place: None });
            if let Ok(caller) = unwind(&code, BASE, &ENTRY, &registers, leaf) {
                prop_assert!(caller.sp() > registers.sp());
            }
        }
        let _ = gc_info_after(&code, BASE, &ENTRY, Arch::X64);
    }
}
