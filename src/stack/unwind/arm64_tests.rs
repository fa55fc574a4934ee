//! arm64: the examples of Microsoft's documentation, the packed forms, and prologues undone from any instruction.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::tests::{BASE, CODE, STACK, UNWIND, process, words};
use super::*;
use crate::stack::Saved;

const FP: u8 = 29;
const LR: u8 = 30;
const ENTRY: FunctionEntry = FunctionEntry { begin: CODE, end: None, unwind: UNWIND };
/// The value of the link register: a signed code address.
const SIGNED: u64 = 0x2a05_1234_5678_9abc;
const RETURN: Addr = Addr(0x1234_5678_9abc);

/// Registers whose values show their numbers, at `instruction` in the function.
fn at(instruction: u64) -> Registers {
    let mut registers = Registers::new(Arch::Arm64).unwrap();
    for number in 0..LR {
        registers.set(number, Saved { value: Some(0xabc0 + u64::from(number)), place: None });
    }
    registers.set(LR, Saved { value: Some(SIGNED), place: None });
    registers.ip = BASE.plus(u64::from(CODE) + instruction * 4);
    registers.set_sp(Addr(STACK));
    registers
}

/// A record without an exception handler. `epilogues` are scopes: start, and index of the first code.
fn xdata(len: u32, epilogues: &[(u32, u32)], codes: &[u8]) -> Vec<u8> {
    let mut codes = codes.to_vec();
    codes.resize(codes.len().next_multiple_of(4), 0xe4);
    let (scopes, count) = (u32::try_from(epilogues.len()).unwrap(), u32::try_from(codes.len() / 4).unwrap());
    let mut words = if scopes < 32 && count < 32 && (scopes, count) != (0, 0) {
        vec![len | scopes << 22 | count << 27]
    } else {
        vec![len, scopes | count << 16]
    };
    words.extend(epilogues.iter().map(|(start, index)| start | index << 22));
    words.iter().flat_map(|w| w.to_le_bytes()).chain(codes).collect()
}

/// A record with a single epilogue at the end.
fn with_one_epilogue(len: u32, index: u32, codes: &[u8]) -> Vec<u8> {
    let mut bytes = xdata(len, &[], codes);
    let header = u32::from_le_bytes(*bytes.first_chunk().unwrap()) | 1 << 21 | index << 22;
    bytes.splice(..4, header.to_le_bytes());
    bytes
}

fn go(record: &[u8], stack: &[u64], registers: &Registers) -> Result<Registers, UnwindError> {
    let bytes = process(&[(BASE.0 + u64::from(UNWIND), record), (STACK, &words(stack))]);
    unwind(&bytes, BASE, &ENTRY, registers, true)
}

fn packed(word: u32, stack: &[u64], registers: &Registers) -> Result<Registers, UnwindError> {
    let entry = FunctionEntry { unwind: word, ..ENTRY };
    unwind(&process(&[(STACK, &words(stack))]), BASE, &entry, registers, true)
}

fn invalid(result: Result<Registers, UnwindError>) -> &'static str {
    match result {
        Err(UnwindError::Invalid { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

fn saved(value: u64, slot: u64) -> Saved {
    Saved { value: Some(value), place: Some(Addr(STACK + slot * 8)) }
}

/// A stack of `len` words: these values by index, and zeros.
fn stack(len: usize, values: &[(usize, u64)]) -> Vec<u64> {
    let mut words = vec![0; len];
    values.iter().for_each(|(slot, value)| words[*slot] = *value);
    words
}

/// Unwinds from the body of a function with these codes.
fn code(codes: &[u8], words: &[u64]) -> Registers {
    go(&xdata(100, &[], codes), words, &at(50)).unwrap()
}

#[test]
fn each_code_is_undone() {
    let moved = |codes: &[u8]| code(codes, &[0; 128]).sp().unwrap().0 - STACK;
    assert_eq!(moved(&[0x1f]), 31 * 16, "alloc_s");
    assert_eq!(moved(&[0xc5, 0x12]), 0x512 * 16, "alloc_m");
    assert_eq!(moved(&[0xe0, 0x12, 0x34, 0x56]), 0x12_3456 * 16, "alloc_l");
    assert_eq!(moved(&[0xd9, 0xff]), 0, "save_fregp");
    assert_eq!(moved(&[0xdb, 0xc9]), 10 * 8, "save_fregp_x");
    assert_eq!(moved(&[0xdd, 0xff]), 0, "save_freg");
    assert_eq!(moved(&[0xde, 0xe9]), 10 * 8, "save_freg_x");
    assert_eq!(moved(&[0xe3]), 0, "nop");
    assert_eq!(moved(&[0xfc]), 0, "pac_sign_lr");
    assert_eq!(moved(&[0xf8, 0x1f, 0xf9, 0x1f, 0x1f, 0xfa, 0x1f, 0x1f, 0x1f, 0xfb, 0x1f, 0x1f, 0x1f, 0x1f, 0xff, 0x01]), 16, "reserved");
    assert_eq!(moved(&[0xe7, 0x68, 0x44]), 5 * 16, "save_any_reg: d8, d9, writeback");
    assert_eq!(moved(&[0xe7, 0x28, 0x84]), 5 * 16, "save_any_reg: q8, writeback");

    let pair = stack(64, &[(0, 1), (1, 2), (2, 3), (3, 4), (6, 7), (7, 8), (8, 9)]);
    let caller = code(&[0x26], &pair);
    assert_eq!((caller.get(19), caller.get(20), caller.sp()), (saved(1, 0), saved(2, 1), Some(Addr(STACK + 48))), "save_r19r20_x");
    let caller = code(&[0xc8 | 1, 0x80 | 6], &pair);
    assert_eq!((caller.get(25), caller.get(26), caller.sp()), (saved(7, 6), saved(8, 7), Some(Addr(STACK))), "save_regp");
    let caller = code(&[0xcc, 0x80 | 7], &pair);
    assert_eq!((caller.get(21), caller.get(22), caller.sp()), (saved(1, 0), saved(2, 1), Some(Addr(STACK + 64))), "save_regp_x");
    let caller = code(&[0xd2, 0x40 | 8], &pair);
    assert_eq!((caller.get(28), caller.get(27), caller.sp()), (saved(9, 8), at(0).get(27), Some(Addr(STACK))), "save_reg");
    let caller = code(&[0xd5, 0x23], &pair);
    assert_eq!((caller.get(28), caller.sp()), (saved(1, 0), Some(Addr(STACK + 32))), "save_reg_x");
    let caller = code(&[0xe7, 0x15, 0x06], &pair);
    assert_eq!((caller.get(21), caller.sp()), (saved(7, 6), Some(Addr(STACK))), "save_any_reg: x21");
    let caller = code(&[0xe7, 0x55, 0x03], &pair);
    assert_eq!((caller.get(21), caller.get(22)), (saved(7, 6), saved(8, 7)), "save_any_reg: x21, x22");
    let caller = code(&[0xe7, 0x60, 0x01], &pair);
    assert_eq!((caller.get(0), caller.get(1), caller.sp()), (saved(1, 0), saved(2, 1), Some(Addr(STACK + 32))), "x0, x1, writeback");
    // Without any of these codes, the return address is in the link register, and the caller's link register is unknown.
    assert_eq!((caller.ip, caller.get(LR)), (RETURN, Saved::default()));

    let linked = stack(64, &[(6, 7), (7, 0x0077_0000_0000_5678), (0, 5), (1, 0x5678)]);
    let caller = code(&[0x46, 0x01], &linked);
    assert_eq!((caller.get(FP), caller.ip), (saved(7, 6), Addr(0x5678)), "save_fplr");
    let caller = code(&[0x87], &linked);
    assert_eq!((caller.get(FP), caller.ip, caller.sp()), (saved(5, 0), Addr(0x5678), Some(Addr(STACK + 64))), "save_fplr_x");
    let caller = code(&[0xd7, 0x06, 0x01], &linked);
    assert_eq!((caller.get(27), caller.ip), (saved(7, 6), Addr(0x5678)), "save_lrpair");

    let mut registers = at(50);
    registers.set(FP, Saved { value: Some(STACK + 64), place: None });
    assert_eq!(go(&xdata(100, &[], &[0xe1]), &[], &registers).unwrap().sp(), Some(Addr(STACK + 64)), "set_fp");
    assert_eq!(go(&xdata(100, &[], &[0xe2, 3]), &[], &registers).unwrap().sp(), Some(Addr(STACK + 40)), "add_fp");

    let caller = code(&[0xe9], &[STACK + 0x100, 0x5678]);
    assert_eq!((caller.ip, caller.sp()), (Addr(0x5678), Some(Addr(STACK + 0x100))), "machine frame");
    let context: Vec<u64> = (0..34).map(|i| if i == 32 { STACK + 0x200 } else { i }).collect();
    let caller = code(&[0xea], &context);
    assert_eq!((caller.ip, caller.sp(), caller.get(0), caller.get(28)), (Addr(33), Some(Addr(STACK + 0x200)), saved(1, 1), saved(29, 29)));
    assert_eq!(code(&[0xec], &[]).ip, RETURN, "clear_unwound_to_call");
}

#[test]
fn pairs_are_extended() {
    let words: Vec<u64> = (1..64).collect();
    // save_regp x19 at 16, and two more pairs.
    let caller = code(&[0xe6, 0xe6, 0xc8, 0x02], &words);
    let found: Vec<Saved> = (19..26).map(|n| caller.get(n)).collect();
    let mut wanted: Vec<Saved> = (2..8).map(|slot| saved(slot + 1, slot)).collect();
    wanted.push(at(0).get(25));
    assert_eq!(found, wanted);
    // After x28, the pairs continue with floating-point registers.
    let caller = code(&[0xe6, 0xe6, 0xc9, 0x80 | 4], &words);
    assert_eq!((caller.get(25), caller.get(28), caller.get(FP)), (saved(5, 4), saved(8, 7), at(0).get(FP)));
    assert_eq!(code(&[0xe6, 0xda, 0x09, 0xcc, 0x01], &words).sp(), Some(Addr(STACK + 96)));
    assert_eq!(invalid(go(&xdata(100, &[], &[0xe6, 0x01]), &words, &at(50))), "a save_next code without a register pair");
}

#[test]
fn information_that_cannot_be_undone_is_rejected() {
    let words = [0; 64];
    for code in [0xdf, 0xe8, 0xeb, 0xed, 0xee, 0xef, 0xf0, 0xf7] {
        assert_eq!(invalid(go(&xdata(100, &[], &[code]), &words, &at(50))), "unknown unwind code");
    }
    assert_eq!(invalid(go(&xdata(100, &[], &[0xe3, 0xe3, 0xe3, 0xe0]), &words, &at(50))), "unknown unwind code", "cut off");
    assert_eq!(invalid(go(&xdata(100, &[], &[0xe7, 0xc0, 0x00]), &words, &at(50))), "unknown unwind code", "reserved bit");
    assert_eq!(invalid(go(&xdata(100, &[], &[0xe7, 0x00, 0xc0]), &words, &at(50))), "unknown unwind code", "reserved kind");
    assert_eq!(invalid(go(&xdata(100, &[], &[0xd3, 0x00]), &words, &at(50))), "unwind code saves the stack pointer");
    assert_eq!(invalid(go(&xdata(100, &[], &[0x41]), &words, &at(50))), "the stack pointer did not advance");
    let mut record = xdata(100, &[], &[0xe4]);
    record[2] |= 0x04;
    assert_eq!(invalid(go(&record, &words, &at(50))), "unwind information of an unknown version");
    assert_eq!(invalid(go(&xdata(100, &[], &[0xe4]), &words, &at(101))), "instruction pointer past the end of its function");
    assert_eq!(go(&xdata(100, &[], &[0xe4]), &words, &at(100)).unwrap().ip, RETURN);
    let mut registers = at(50);
    registers.set(LR, Saved::default());
    assert_eq!(invalid(go(&xdata(100, &[], &[0x01]), &words, &registers)), "unknown return address");
    registers.set(FP, Saved::default());
    assert_eq!(invalid(go(&xdata(100, &[], &[0xe1]), &words, &registers)), "unknown frame register");
    registers.ip = BASE;
    assert_eq!(invalid(go(&xdata(100, &[], &[0xe4]), &words, &registers)), "instruction pointer before its function");
    registers = at(50);
    registers.set_sp(Addr(u64::MAX - 7));
    assert_eq!(invalid(go(&xdata(100, &[], &[0x01]), &words, &registers)), "frame beyond the end of memory");
    assert_eq!(invalid(packed(3, &words, &at(0))), "unwind information of a reserved form");
    // A chained frame without room for fp and lr, eleven integer registers, and a frame that is too small for its four registers.
    assert_eq!(invalid(packed(1 | 100 << 2 | 3 << 21, &words, &at(0))), "malformed packed unwind information");
    assert_eq!(invalid(packed(1 | 100 << 2 | 11 << 16 | 8 << 23, &words, &at(0))), "malformed packed unwind information");
    assert_eq!(invalid(packed(1 | 100 << 2 | 4 << 16 | 1 << 23, &words, &at(0))), "malformed packed unwind information");
}

#[test]
fn absent_memory_is_an_error() {
    let read = |record: &[u8], words: &[u64]| match go(record, words, &at(50)) {
        Err(UnwindError::Read(error)) => error.address,
        other => panic!("{other:?}"),
    };
    let record = xdata(100, &[(90, 0)], &[0x81]);
    let at_record = BASE.plus(UNWIND.into());
    assert_eq!(read(&[], &[]), at_record);
    assert_eq!(read(&record[..4], &[]), at_record.plus(8));
    assert_eq!(read(&record, &[]), Addr(STACK));
    assert_eq!(read(&record, &[0]), Addr(STACK + 8));
    assert_eq!(read(&xdata(100, &[], &[])[..4], &[]), at_record.plus(4));
}

/// Example 1 of the documentation: packed, one register, chained.
#[test]
fn the_first_example() {
    // str x19,[sp,#-0x10]!; sub sp,sp,#0x810; stp fp,lr,[sp]; mov fp,sp
    let word = 0x4161_01ed;
    let whole = stack(262, &[(0, 29), (1, 0x5678), (258, 19)]);
    for (instruction, skipped) in [(0, 260), (1, 258), (2, 0), (3, 0), (4, 0), (100, 0), (119, 0), (120, 0), (121, 258), (122, 260)] {
        let mut registers = at(instruction);
        registers.set(FP, Saved { value: Some(STACK), place: None });
        registers.set_sp(Addr(STACK + skipped * 8));
        let caller = packed(word, &whole, &registers).unwrap();
        assert_eq!(caller.sp(), Some(Addr(STACK + 260 * 8)), "{instruction}");
        let stored = (3..120).contains(&instruction);
        assert_eq!(caller.ip, if stored { Addr(0x5678) } else { RETURN }, "{instruction}");
        assert_eq!(caller.get(FP), if stored { saved(29, 0) } else { registers.get(FP) }, "{instruction}");
        let x19 = if (1..122).contains(&instruction) { saved(19, 258) } else { at(0).get(19) };
        assert_eq!(caller.get(19), x19, "{instruction}");
    }
}

/// Example 2: prologue and epilogue share their codes.
#[test]
fn the_second_example() {
    let record: Vec<u8> = [0x1040_003du32, 0x100_0038, 0xe422_91e1, 0xe422_91e1].iter().flat_map(|w| w.to_le_bytes()).collect();
    let whole = stack(20, &[(0, 29), (1, 0x5678), (18, 19), (19, 20)]);
    // stp x19,x20,[sp,#-0x10]!; stp fp,lr,[sp,#-0x90]!; mov fp,sp; …; mov sp,fp; ldp fp,lr; ldp x19,x20; ret
    for (instruction, skipped) in [(0, 20), (1, 18), (2, 0), (3, 0), (55, 0), (56, 0), (57, 0), (58, 18), (59, 20), (60, 0)] {
        let mut registers = at(instruction);
        registers.set(FP, Saved { value: Some(STACK), place: None });
        registers.set_sp(Addr(STACK + skipped * 8));
        let caller = go(&record, &whole, &registers).unwrap();
        assert_eq!(caller.sp(), Some(Addr(STACK + 160)), "{instruction}");
        assert_eq!(caller.ip, if skipped == 0 { Addr(0x5678) } else { RETURN }, "{instruction}");
        let pair = if skipped < 20 { (saved(19, 18), saved(20, 19)) } else { (at(0).get(19), at(0).get(20)) };
        assert_eq!((caller.get(19), caller.get(20)), pair, "{instruction}");
    }
}

/// Example 3: parameters stored in the prologue, which the epilogue omits.
#[test]
fn the_third_example() {
    let words = [0x1840_0012u32, 0x100_000f, 0xe3e3_e3e3, 0xe405_00d6, 0xe405_00d6];
    let record: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let whole = stack(10, &[(0, 19), (1, 0x5678)]);
    // sub sp,sp,#0x50; stp x19,lr,[sp]; four stores; …; ldp x19,lr,[sp]; add sp,sp,#0x50; ret
    for (instruction, skipped) in [(0, 10), (1, 0), (2, 0), (5, 0), (6, 0), (14, 0), (15, 0), (16, 0), (17, 10)] {
        let mut registers = at(instruction);
        registers.set_sp(Addr(STACK + skipped * 8));
        let caller = go(&record, &whole, &registers).unwrap();
        let stored = (2..16).contains(&instruction);
        assert_eq!((caller.sp(), caller.ip), (Some(Addr(STACK + 80)), if stored { Addr(0x5678) } else { RETURN }), "{instruction}");
        assert_eq!(caller.get(19), if stored { saved(19, 0) } else { at(0).get(19) }, "{instruction}");
    }
}

/// The documentation's fragments of a function: the codes after `end_c` are always undone.
#[test]
fn fragments_have_the_prologue_of_their_function() {
    let whole = stack(32, &[(0, 29), (1, 0x5678), (30, 19), (31, 20), (28, 21), (29, 22)]);
    let mut registers = at(0);
    registers.set(FP, Saved { value: Some(STACK), place: None });
    // Without a prologue: end_c, set_fp, save_regp 0,240, save_fplr_x 256, end.
    let parent = [0xe1, 0xc8, 30, 0x9f, 0xe4];
    let none = xdata(40, &[], &[&[0xe5][..], &parent].concat());
    let caller = go(&none, &whole, &registers).unwrap();
    assert_eq!((caller.ip, caller.get(19), caller.get(20)), (Addr(0x5678), saved(19, 30), saved(20, 31)));
    // Shrink-wrapped: save_regp 2,224, end_c, and the same codes as above; one epilogue of the inner part.
    let inner = xdata(40, &[(30, 0)], &[&[0xc8, 0x80 | 28, 0xe5][..], &parent].concat());
    for (instruction, stored) in [(0, false), (1, true), (20, true), (30, true), (31, false)] {
        registers.ip = at(instruction).ip;
        let caller = go(&inner, &whole, &registers).unwrap();
        assert_eq!((caller.ip, caller.get(19)), (Addr(0x5678), saved(19, 30)), "{instruction}");
        assert_eq!(caller.get(21), if stored { saved(21, 28) } else { at(0).get(21) }, "{instruction}");
    }
    // Packed, without prologue and epilogue: the frame is complete everywhere. RegI 2, CR 3, 32 bytes.
    let word = 2 | 40 << 2 | 2 << 16 | 3 << 21 | 2 << 23;
    for instruction in [0, 20, 39] {
        let caller = packed(word, &stack(4, &[(0, 29), (1, 0x5678), (2, 19), (3, 20)]), &at(instruction)).unwrap_err();
        assert!(matches!(caller, UnwindError::Read(_)), "the frame register does not point to the stack: {caller:?}");
        registers.ip = at(instruction).ip;
        let caller = packed(word, &stack(4, &[(0, 29), (1, 0x5678), (2, 19), (3, 20)]), &registers).unwrap();
        assert_eq!((caller.ip, caller.get(19), caller.sp()), (Addr(0x5678), saved(19, 2), Some(Addr(STACK + 32))));
    }
}

#[test]
fn many_epilogues_are_searched() {
    // Extended header; scopes at 100, 200, …, of one `add sp` and a return each.
    let scopes: Vec<(u32, u32)> = (1..=60).map(|i| (i * 100, 0)).collect();
    let record = xdata(7000, &scopes, &[0x01, 0xe4]);
    let sp = |instruction: u64| go(&record, &[], &at(instruction)).unwrap().sp().unwrap().0 - STACK;
    for start in (100..=6000).step_by(100) {
        assert_eq!((sp(start - 1), sp(start), sp(start + 1), sp(start + 2)), (16, 16, 0, 16), "{start}");
    }
    assert_eq!((sp(0), sp(1), sp(6999)), (0, 16, 16));
}

#[test]
fn an_epilogue_at_the_end_needs_no_scope() {
    // The codes of the epilogue: nop, alloc_s 1.
    let record = with_one_epilogue(50, 2, &[0x01, 0xe4, 0xe3, 0x01, 0xe4]);
    let sp = |instruction: u64| go(&record, &[], &at(instruction)).unwrap().sp().unwrap().0 - STACK;
    assert_eq!((sp(0), sp(1), sp(46), sp(47), sp(48), sp(49), sp(50)), (0, 16, 16, 16, 16, 0, 16));
}

#[test]
fn gc_info_follows_the_personality_routine() {
    let after = |mut record: Vec<u8>, handler: bool| {
        record[2] |= if handler { 0x10 } else { 0 };
        gc_info_after(&process(&[(BASE.0 + u64::from(UNWIND), &record)]), BASE, &ENTRY, Arch::Arm64)
    };
    let at_record = BASE.plus(UNWIND.into());
    assert_eq!(after(xdata(9, &[], &[0xe4]), true), Ok(at_record.plus(4 + 4 + 4)));
    assert_eq!(after(xdata(9, &[(1, 0), (2, 0)], &[0xe4; 12]), true), Ok(at_record.plus(4 + 8 + 12 + 4)));
    assert_eq!(after(with_one_epilogue(9, 3, &[0xe4; 8]), true), Ok(at_record.plus(4 + 8 + 4)));
    assert_eq!(after(xdata(9, &[(1, 0); 40], &[0xe4; 8]), true), Ok(at_record.plus(8 + 160 + 8 + 4)));
    assert!(matches!(after(xdata(9, &[], &[0xe4]), false), Err(UnwindError::Invalid { .. })));
    let entry = FunctionEntry { unwind: 0x4161_01ed, ..ENTRY };
    assert!(matches!(gc_info_after(&process(&[]), BASE, &entry, Arch::Arm64), Err(UnwindError::Invalid { .. })));
    assert!(matches!(gc_info_after(&process(&[]), BASE, &ENTRY, Arch::Arm64), Err(UnwindError::Read(_))));
}

/// Executes the stores of a prologue.
struct Machine {
    registers: Registers,
    stack: BTreeMap<u64, u64>,
}

impl Machine {
    fn sp(&self) -> u64 {
        self.registers.sp().unwrap().0
    }

    fn store(&mut self, at: u64, number: u8) {
        self.stack.insert(at, self.registers.value(number).unwrap());
    }

    fn lower(&mut self, bytes: u64) {
        self.registers.set_sp(Addr(self.sp() - bytes));
    }

    /// Unwinds from the current state, and compares the result with the registers `before` the prologue.
    fn check(&self, unwind: impl Fn(&[u64], &Registers) -> Result<Registers, UnwindError>, before: &Registers, what: &str) {
        let top = before.sp().unwrap().0;
        let words: Vec<u64> = (STACK / 8..top / 8).map(|word| self.stack.get(&(word * 8)).copied().unwrap_or(0xcccc)).collect();
        let caller = unwind(&words, &self.registers).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!((caller.ip, caller.sp()), (RETURN, Some(Addr(top))), "{what}");
        for number in 19..=FP {
            assert_eq!(caller.value(number), before.value(number), "{what}: {}", caller.name(number));
        }
    }
}

/// An instruction of a prologue.
type Step = Box<dyn Fn(&mut Machine)>;

/// The instructions of the canonical prologue that a packed word describes, from the documentation's table.
fn canonical(integers: u64, floats: u64, homes: bool, chain: u64, frame: u64) -> Option<Vec<Step>> {
    let link = chain == 1;
    let float_count = if floats == 0 { 0 } else { floats + 1 };
    let in_use = integers + u64::from(link) + float_count;
    let area = if in_use == 0 { 0 } else { (in_use * 8 + if homes { 64 } else { 0 }).next_multiple_of(16) };
    let locals = (frame * 16).checked_sub(area)?;
    if chain >= 2 && locals == 0 {
        return None;
    }
    let mut steps: Vec<Step> = Vec::new();
    if chain == 2 {
        steps.push(Box::new(|_| {}));
    }
    let mut list: Vec<Option<u8>> = (0..integers).map(|i| Some(19 + u8::try_from(i).unwrap())).collect();
    list.extend(link.then_some(Some(LR)));
    let mut slot = 0;
    if integers == 1 && link {
        steps.push(Box::new(move |m| m.lower(area)));
        slot = u64::MAX;
    }
    // Integer registers, then floating-point registers in separate pairs.
    let floats: Vec<Option<u8>> = (0..float_count).map(|_| None).collect();
    for pair in list.chunks(2).chain(floats.chunks(2)) {
        // A store of a register with `lr` never moves the stack pointer: for a single pair of x19 and lr, a `sub` has moved it already.
        let pair = pair.to_vec();
        let at = if slot == u64::MAX { 0 } else { slot };
        let first = slot == 0;
        slot = at + u64::try_from(pair.len()).unwrap();
        steps.push(Box::new(move |m| {
            if first {
                m.lower(area);
            }
            for (i, number) in (0u64..).zip(&pair) {
                if let Some(number) = number {
                    m.store(m.sp() + (at + i) * 8, *number);
                }
            }
        }));
    }
    if homes && in_use > 0 {
        (0..4).for_each(|_| steps.push(Box::new(|_| {})));
    }
    if chain >= 2 {
        if locals <= 512 {
            steps.push(Box::new(move |m| {
                m.lower(locals);
                m.store(m.sp(), FP);
                m.store(m.sp() + 8, LR);
            }));
        } else {
            for part in [locals.min(4080), locals.saturating_sub(4080)].into_iter().filter(|n| *n > 0) {
                steps.push(Box::new(move |m| m.lower(part)));
            }
            steps.push(Box::new(|m| {
                m.store(m.sp(), FP);
                m.store(m.sp() + 8, LR);
            }));
        }
        steps.push(Box::new(|m| {
            let sp = m.sp();
            m.registers.set(FP, Saved { value: Some(sp), place: None });
        }));
    } else {
        for part in [locals.min(4080), locals.saturating_sub(4080)].into_iter().filter(|n| *n > 0) {
            steps.push(Box::new(move |m| m.lower(part)));
        }
    }
    Some(steps)
}

proptest! {
    /// Every packed form is undone from every instruction of its prologue, and from its body.
    #[test]
    fn packed_prologues_are_undone_from_any_instruction(
        (integers, floats, homes, chain, frame) in (0u64..=10, 0u64..8, any::<bool>(), 0u64..4, 0u64..511),
    ) {
        let Some(steps) = canonical(integers, floats, homes, chain, frame) else { return Ok(()) };
        let len = 200u64;
        let fields = 1 | len << 2 | floats << 13 | integers << 16 | u64::from(homes) << 20 | chain << 21 | frame << 23;
        let word = u32::try_from(fields).unwrap();
        let mut before = at(0);
        before.set_sp(Addr(STACK + 0x2800));
        let mut machine = Machine { registers: before.clone(), stack: BTreeMap::new() };
        let go = |words: &[u64], registers: &Registers| packed(word, words, registers);
        for (instruction, step) in (0u64..).zip(&steps) {
            machine.registers.ip = at(instruction).ip;
            machine.check(go, &before, &format!("{word:#x} at {instruction}"));
            step(&mut machine);
        }
        // In the body, the stored registers have other values.
        for number in (19..).take(usize::try_from(integers).unwrap()) {
            machine.registers.set(number, Saved { value: Some(0xdead), place: None });
        }
        if chain != 0 {
            machine.registers.set(LR, Saved { value: Some(0xdead), place: None });
        }
        for instruction in [u64::try_from(steps.len()).unwrap(), 100] {
            machine.registers.ip = at(instruction).ip;
            machine.check(go, &before, &format!("{word:#x} at {instruction}"));
        }
    }

    /// Any bytes yield a caller or an error, and a caller is further up the stack.
    #[test]
    fn any_bytes_terminate(
        record in prop::collection::vec(any::<u8>(), 0..400),
        words in prop::collection::vec(any::<u64>(), 0..64),
        (word, instruction) in (any::<u32>(), 0u64..300),
    ) {
        let mut record = record;
        if let Some(byte) = record.get_mut(2) {
            *byte &= !0x0c;
        }
        let registers = at(instruction);
        let forms = [go(&record, &words, &registers), packed(word | 1, &words, &registers), packed(word & !3 | 2, &words, &registers)];
        for caller in forms.into_iter().flatten() {
            prop_assert!(caller.sp() >= registers.sp());
            // The link register is unknown, so the next step needs a return address on the stack.
            prop_assert_eq!(caller.get(LR), Saved::default());
        }
        let bytes = process(&[(BASE.0 + u64::from(UNWIND), &record)]);
        let _ = gc_info_after(&bytes, BASE, &ENTRY, Arch::Arm64);
    }
}
