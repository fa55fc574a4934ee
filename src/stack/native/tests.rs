//! Tests with hand-made tables: `.eh_frame_hdr` with FDEs and a CIE, and `.pdata`.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::base::{Addr, AddrRange, Shape, len64};
use crate::memory::ReadError;
use crate::memory::tests::memory_of;
use crate::stack::Saved;

const TABLE: u64 = 0x50_0000;
/// Entries are far from the table, and the CIE is far from the FDE, as in an image.
const CIE: u64 = 0x50_8000;
const FDE: u64 = 0x50_9000;
const CODE: u64 = 0x40_0000;
const STACK: u64 = 0x7000_0000;

const RBX: u8 = 3;
const RBP: u8 = 5;
const R12: u8 = 12;

const NOP: u8 = 0;
const ADVANCE: u8 = 0x40;
const OFFSET: u8 = 0x80;
const RESTORE: u8 = 0xc0;
const UNDEFINED: u8 = 0x07;
const SAME_VALUE: u8 = 0x08;
const REGISTER: u8 = 0x09;
const REMEMBER: u8 = 0x0a;
const RECALL: u8 = 0x0b;
const DEF_CFA: u8 = 0x0c;
const DEF_CFA_REGISTER: u8 = 0x0d;
const DEF_CFA_OFFSET: u8 = 0x0e;
const DEF_CFA_EXPRESSION: u8 = 0x0f;
const EXPRESSION: u8 = 0x10;
const VAL_OFFSET: u8 = 0x14;

fn process(parts: &[(u64, &[u8])]) -> CodeBytes {
    let mut bytes = Vec::new();
    let mut ranges = Vec::new();
    for (at, part) in parts {
        ranges.push((*at, len64(part.len()), len64(bytes.len())));
        bytes.extend_from_slice(part);
    }
    CodeBytes::new(&Arc::new(memory_of(bytes, &ranges, Shape::LE64)))
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// The distance from `from` to `to` in four bytes.
fn distance(from: u64, to: u64) -> [u8; 4] {
    i32::try_from(to.cast_signed() - from.cast_signed()).unwrap().to_le_bytes()
}

/// An entry with its length in front, padded with `DW_CFA_nop`.
fn entry(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(8) + 4, NOP);
    [&u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], &bytes].concat()
}

/// The CIE that x64 compilers emit: the CFA is rsp + 8, and the return address is in the word below it. "zR", pc-relative.
fn cie() -> Vec<u8> {
    cie_of(b"zR\0")
}

fn cie_of(augmentation: &[u8]) -> Vec<u8> {
    entry([&[0; 4][..], &[1], augmentation, &[1, 0x78, 16, 1, 0x1b, DEF_CFA, 7, 8, OFFSET | 16, 1]].concat())
}

/// The FDE of the function at `CODE`, 64 bytes long.
fn fde(instructions: &[u8]) -> Vec<u8> {
    entry([&distance(CIE, FDE + 4)[..], &distance(FDE + 8, CODE), &[64, 0, 0, 0], &[0], instructions].concat())
}

/// A table of functions, all of which lead to `FDE`.
fn table(functions: &[u64]) -> Vec<u8> {
    let mut bytes = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0];
    bytes.extend(u32::try_from(functions.len()).unwrap().to_le_bytes());
    for function in functions {
        bytes.extend([distance(TABLE, *function), distance(TABLE, FDE)].as_flattened());
    }
    bytes
}

fn elf(instructions: &[u8], stack: &[u64]) -> CodeBytes {
    let functions = [CODE - 0x100, CODE, CODE + 64, CODE + 128];
    process(&[(TABLE, &table(&functions)), (CIE, &cie()), (FDE, &fde(instructions)), (STACK, &words(stack))])
}

fn at(ip: u64) -> Registers {
    let mut registers = Registers::new(Arch::X64).unwrap();
    for number in 0..16 {
        registers.set(number, Saved { value: Some(0xabc0 + u64::from(number)), place: None });
    }
    registers.ip = Addr(ip);
    registers.set_sp(Addr(STACK));
    registers
}

fn eh_step(bytes: &CodeBytes, registers: &Registers, leaf: bool) -> Result<Registers, UnwindError> {
    eh_caller(bytes, registers, leaf).map(|caller| caller.registers)
}

fn eh_caller(bytes: &CodeBytes, registers: &Registers, leaf: bool) -> Result<Caller, UnwindError> {
    eh_frame::step(bytes, &super::Rows::new(0), AddrRange::new(Addr(TABLE), Addr(TABLE + 0x1000)), registers, leaf)
}

fn invalid<T: std::fmt::Debug>(result: Result<T, UnwindError>) -> &'static str {
    match result {
        Err(UnwindError::Invalid { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

fn saved(value: u64, slot: u64) -> Saved {
    Saved { value: Some(value), place: Some(Addr(STACK + slot * 8)) }
}

/// push rbp; mov rbp, rsp; push rbx; … with an epilogue in the middle.
const FRAMED: &[u8] = &[
    ADVANCE | 1,
    DEF_CFA_OFFSET,
    16,
    OFFSET | 6,
    2,
    ADVANCE | 3,
    DEF_CFA_REGISTER,
    6,
    ADVANCE | 4,
    OFFSET | 3,
    3,
    ADVANCE | 8,
    REMEMBER,
    RESTORE | 3,
    DEF_CFA,
    7,
    8,
    ADVANCE | 1,
    RECALL,
];

#[test]
fn rules_follow_the_instruction_pointer() {
    let bytes = elf(FRAMED, &[0x1234]);
    let caller = eh_step(&bytes, &at(CODE), true).unwrap();
    assert_eq!((caller.ip, caller.sp(), caller.get(RBP)), (Addr(0x1234), Some(Addr(STACK + 8)), at(0).get(RBP)));
    let bytes = elf(FRAMED, &[5, 0x1234]);
    let caller = eh_step(&bytes, &at(CODE + 1), true).unwrap();
    assert_eq!((caller.ip, caller.sp(), caller.get(RBP)), (Addr(0x1234), Some(Addr(STACK + 16)), saved(5, 0)));
    let bytes = elf(FRAMED, &[0, 3, 5, 0x1234]);
    let mut registers = at(CODE + 20);
    registers.set(RBP, Saved { value: Some(STACK + 16), place: None });
    let caller = eh_step(&bytes, &registers, false).unwrap();
    assert_eq!((caller.ip, caller.sp()), (Addr(0x1234), Some(Addr(STACK + 32))));
    assert_eq!((caller.get(RBP), caller.get(RBX), caller.get(R12)), (saved(5, 2), saved(3, 1), at(0).get(R12)));
    // Registers that are not preserved are unknown.
    assert_eq!((caller.get(0), caller.get(7)), (Saved::default(), Saved::default()));
    registers.set(RBP, Saved::default());
    assert_eq!(invalid(eh_step(&bytes, &registers, false)), "unknown frame register");
    registers.ip = Addr(CODE + 16);
    registers.set_sp(Addr(STACK + 24));
    assert_eq!(eh_step(&bytes, &registers, true).unwrap().ip, Addr(0x1234));
}

#[test]
fn return_addresses_are_looked_up_one_byte_before() {
    let bytes = elf(FRAMED, &[0, 3, 5, 0x1234]);
    let mut registers = at(CODE + 64);
    registers.set(RBP, Saved { value: Some(STACK + 16), place: None });
    assert_eq!(eh_step(&bytes, &registers, false).unwrap().ip, Addr(0x1234));
    // All entries of the table lead to one FDE, so other functions than the FDE's have no unwind information.
    assert_eq!(invalid(eh_step(&bytes, &registers, true)), "code without unwind information");
    assert_eq!(invalid(eh_step(&bytes, &at(CODE), false)), "code without unwind information");
    assert_eq!(invalid(eh_step(&bytes, &at(CODE - 0x101), true)), "code without unwind information");
    assert_eq!(invalid(eh_step(&bytes, &at(0), false)), "no instruction pointer");
}

#[test]
fn rules_for_registers_are_applied() {
    let rule = |rule: &[u8]| eh_step(&elf(rule, &[0x1234]), &at(CODE), true);
    assert_eq!(rule(&[UNDEFINED, 3]).unwrap().get(RBX), Saved::default());
    assert_eq!(rule(&[SAME_VALUE, 0]).unwrap().get(0), at(0).get(0));
    assert_eq!(rule(&[REGISTER, 3, 1]).unwrap().get(RBX), at(0).get(2));
    assert_eq!(rule(&[VAL_OFFSET, 3, 1]).unwrap().get(RBX), Saved { value: Some(STACK), place: None });
    assert_eq!(invalid(rule(&[UNDEFINED, 16])), "the outermost frame");
    assert_eq!(invalid(rule(&[DEF_CFA, 7, 0, OFFSET | 16, 0])), "the stack pointer did not advance");
    assert_eq!(invalid(rule(&[DEF_CFA, 17, 8])), "unknown frame register");
    assert_eq!(invalid(rule(&[0x3f])), "malformed CFI");
}

const BREG: u8 = 0x70;
const LIT: u8 = 0x30;

/// A procedure linkage table entry: one more word is on the stack from its eleventh byte on.
#[test]
fn procedure_linkage_table_entries() {
    let (and, ge, shift, plus) = (0x1a, 0x2a, 0x24, 0x22);
    let entry = [BREG | 7, 8, 0x80, 0, LIT | 15, and, LIT | 11, ge, LIT | 3, shift, plus];
    let mut rule = vec![DEF_CFA_EXPRESSION, 11];
    rule.extend(entry);
    // `DW_OP_bregx 16`: the instruction pointer.
    rule[4..6].copy_from_slice(&[0x80, 0]);
    let bytes = elf(&rule, &[0x1111, 0x2222]);
    for (ip, sp, returns) in [(CODE + 10, 8, 0x1111), (CODE + 11, 16, 0x2222), (CODE + 27, 16, 0x2222)] {
        let caller = eh_caller(&bytes, &at(ip), true).unwrap();
        assert_eq!((caller.registers.sp(), caller.registers.ip.0, caller.interrupted), (Some(Addr(STACK + sp)), returns, false));
    }
}

/// `__restore_rt`: the kernel saved all registers of the interrupted code.
#[test]
fn signal_frames() {
    let rule = [
        DEF_CFA_EXPRESSION,
        3,
        BREG | 7,
        16,
        0x06, // the saved stack pointer
        EXPRESSION,
        3,
        2,
        BREG | 7,
        24, // rbx
        EXPRESSION,
        7,
        2,
        BREG | 7,
        16, // rsp
        EXPRESSION,
        16,
        2,
        BREG | 7,
        32, // the instruction pointer
        0x16,
        0,
        3,
        BREG | 7,
        8,
        0x9f, // rax is a value
    ];
    let bytes = elf(&rule, &[0, 0, 0x6000, 0xb0b0, 0x4444]);
    let caller = eh_caller(&bytes, &at(CODE + 1), false);
    assert_eq!(invalid(caller), "the CFI has a DWARF expression that cannot be evaluated", "a value is not an address");
    let signal = process(&[
        (TABLE, &table(&[CODE - 0x100, CODE])),
        (CIE, &cie_of(b"zRS\0")),
        (FDE, &fde(&rule[..20])),
        (STACK, &words(&[0, 0, 0x6000, 0xb0b0, 0x4444])),
    ]);
    let caller = eh_caller(&signal, &at(CODE + 1), false).unwrap();
    assert!(caller.interrupted);
    assert_eq!(
        (caller.registers.ip, caller.registers.sp(), caller.registers.get(RBX)),
        (Addr(0x4444), Some(Addr(0x6000)), saved(0xb0b0, 3))
    );
    for absent in [&rule[..5], &[DEF_CFA_EXPRESSION, 3, BREG | 7, 120, 0x06]] {
        assert!(eh_step(&elf(absent, &[]), &at(CODE), true).is_err());
    }
    let endless = [DEF_CFA_EXPRESSION, 3, 0x2f, 0xfd, 0xff];
    assert_eq!(invalid(eh_step(&elf(&endless, &[1]), &at(CODE), true)), "the CFI has a DWARF expression that cannot be evaluated");
}

#[test]
fn a_leaf_may_have_its_return_address_in_a_register() {
    // As in vfork: pop rdi; syscall; push rdi.
    let bytes = elf(&[DEF_CFA_OFFSET, 0, REGISTER, 16, 5], &[]);
    let caller = eh_step(&bytes, &at(CODE), true).unwrap();
    assert_eq!((caller.ip, caller.sp()), (Addr(0xabc7), Some(Addr(STACK))));
    assert_eq!(invalid(eh_step(&bytes, &at(CODE + 1), false)), "the stack pointer did not advance");
}

#[test]
fn only_pages_that_the_search_touches_are_read() {
    let functions: Vec<u64> = (0..4000).map(|i| CODE - 2000 * 16 + i * 16).collect();
    let all = table(&functions);
    // The table has eight pages. The bisection reads the header, the middle, three quarters, and the pages between.
    let page = |n: usize| (TABLE + len64(n) * 4096, &all[n * 4096..((n + 1) * 4096).min(all.len())]);
    let parts =
        [page(0), page(3), page(4), page(5), (CIE, &cie()), (FDE, &fde(&[])), (STACK, &words(&[0x1234]))].map(|(at, b)| (at, b.to_vec()));
    let parts: Vec<(u64, &[u8])> = parts.iter().map(|(at, b)| (*at, b.as_slice())).collect();
    assert_eq!(eh_step(&process(&parts), &at(CODE), true).unwrap().ip, Addr(0x1234));
}

#[test]
fn absent_memory_is_an_error() {
    let functions = [CODE - 0x100, CODE, CODE + 64, CODE + 128];
    let (table, cie, fde) = (table(&functions), cie(), fde(FRAMED));
    let stack = words(&[0x1234]);
    let parts: [(u64, &[u8]); 4] = [(TABLE, &table), (CIE, &cie), (FDE, &fde), (STACK, &stack)];
    for without in 0..parts.len() {
        let kept: Vec<(u64, &[u8])> = (0..parts.len()).filter(|i| *i != without).map(|i| parts[i]).collect();
        let result = eh_step(&process(&kept), &at(CODE), true);
        let Err(UnwindError::Read(ReadError { address, .. })) = result else { panic!("{result:?}") };
        assert!(address.since(Addr(parts[without].0)).is_some_and(|n| n < 8), "{address}");
    }
}

#[test]
fn tables_and_entries_of_unknown_formats_are_rejected() {
    let result = |table_at: usize, entry_at: usize, byte: u8| {
        let (mut table, mut fde) = (table(&[CODE]), fde(FRAMED));
        if let Some(b) = table.get_mut(table_at) {
            *b = byte;
        }
        if let Some(b) = fde.get_mut(entry_at) {
            *b = byte;
        }
        invalid(eh_step(&process(&[(TABLE, &table), (CIE, &cie()), (FDE, &fde), (STACK, &words(&[0x1234]))]), &at(CODE), true))
    };
    for at in 0..4 {
        assert_eq!(result(at, usize::MAX, 0xff), "an .eh_frame_hdr of an unknown format");
    }
    assert_eq!(result(usize::MAX, 3, 0xff), "an FDE or CIE of an invalid size");
    assert_eq!(result(usize::MAX, 0, 0), "an FDE or CIE of an invalid size");
    let nowhere = entry(vec![0; 24]);
    let parts: [(u64, &[u8]); 2] = [(TABLE, &table(&[CODE])), (FDE, &nowhere)];
    assert_eq!(invalid(eh_step(&process(&parts), &at(CODE), true)), "a CIE where an FDE was expected");
}

const BASE: Addr = Addr(0x10_0000);
const PDATA: u64 = 0x4000;
const UNWIND: u32 = 0x3000;

/// Functions of 16 bytes at 0x1000, 0x1020, … that push rbx.
fn pdata_of(count: u32) -> (Vec<u8>, AddrRange) {
    let entries = (0..count).flat_map(|i| [0x1000 + i * 32, 0x1010 + i * 32, UNWIND]);
    let bytes: Vec<u8> = entries.flat_map(|n| n.to_le_bytes()).collect();
    (bytes, AddrRange::new(BASE.plus(PDATA), BASE.plus(PDATA + u64::from(count) * 12)))
}

#[test]
fn function_tables_lead_to_unwind_information() {
    let (pdata, table) = pdata_of(100);
    let push = [1, 1, 1, 0, 1, RBX << 4];
    let bytes = process(&[(BASE.0 + PDATA, &pdata), (BASE.0 + u64::from(UNWIND), &push), (STACK, &words(&[3, 0x1234]))]);
    let go = |rva: u64, leaf| pdata::step(&bytes, BASE, table, &at(BASE.0 + rva), leaf).unwrap();
    for function in 0..100u64 {
        let caller = go(0x1008 + function * 32, true);
        assert_eq!((caller.ip, caller.get(RBX), caller.sp()), (Addr(0x1234), saved(3, 0), Some(Addr(STACK + 16))));
    }
    // The end of a function may be the return address of a call that does not return; a leaf is never there.
    assert_eq!((go(0x1010, false).ip, go(0x1010, true).ip), (Addr(0x1234), Addr(3)));
    for rva in [0, 0xfff, 0x1018, 0x1c90] {
        let caller = go(rva, true);
        assert_eq!((caller.ip, caller.sp(), caller.get(RBX)), (Addr(3), Some(Addr(STACK + 8)), at(0).get(RBX)));
    }
    assert_eq!(invalid(pdata::step(&bytes, BASE, table, &at(BASE.0 - 1), true)), "instruction pointer outside its image");
    assert_eq!(invalid(pdata::step(&bytes, BASE, table, &at(BASE.0 + (1 << 32)), true)), "instruction pointer outside its image");
}

#[test]
fn indirect_entries_lead_to_their_function() {
    let part: Vec<u8> = [0x1000u32, 0x1010, 0x5000 | 1].iter().flat_map(|n| n.to_le_bytes()).collect();
    let whole: Vec<u8> = [0x800u32, 0x900, UNWIND].iter().flat_map(|n| n.to_le_bytes()).collect();
    let push = [1, 1, 1, 0, 1, RBX << 4];
    let parts: [(u64, &[u8]); 4] =
        [(BASE.0 + PDATA, &part), (BASE.0 + 0x5000, &whole), (BASE.0 + u64::from(UNWIND), &push), (STACK, &words(&[3, 0x1234]))];
    let table = AddrRange::new(BASE.plus(PDATA), BASE.plus(PDATA + 12));
    let caller = pdata::step(&process(&parts), BASE, table, &at(BASE.0 + 0x1008), false).unwrap();
    assert_eq!((caller.ip, caller.get(RBX)), (Addr(0x1234), saved(3, 0)));
}

/// An ELF image with a program header for `.eh_frame_hdr`, and one for the loaded segment.
fn elf_image() -> Vec<u8> {
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
    bytes.resize(120 + 56, 0);
    bytes[32] = 64;
    (bytes[54], bytes[56]) = (56, 2);
    let header = |kind: u32, vaddr: u64, size: u64| {
        let head = [kind.to_le_bytes(), 5u32.to_le_bytes()].concat();
        [head, words(&[0, vaddr, vaddr, size, size, 0x1000])].concat()
    };
    bytes.splice(64.., [header(1, 0, 0x20_0000), header(0x6474_e550, 0x10_0000, 0x1000)].concat());
    bytes
}

#[test]
fn tables_of_images_are_found() {
    let head = elf_image();
    let functions = [CODE];
    let parts: [(u64, &[u8]); 5] =
        [(CODE, &head), (TABLE, &table(&functions)), (CIE, &cie()), (FDE, &fde(&[])), (STACK, &words(&[0x1234]))];
    let bytes = process(&parts);
    let image = Image::at(bytes.memory(), Addr(CODE)).unwrap();
    assert_eq!(image.unwind_table(bytes.memory()), Ok(Some(AddrRange::new(Addr(TABLE), Addr(TABLE + 0x1000)))));
    assert_eq!(Native::new(Some(image.clone()), 0).step(&bytes, &at(CODE), true).unwrap().registers.ip, Addr(0x1234));
    assert!(matches!(Native::new(Some(image.clone()), 0).step(&process(&[]), &at(CODE), true), Err(UnwindError::Read(_))));
    let arm = Registers::new(Arch::Arm64).unwrap();
    assert_eq!(invalid(Native::new(Some(image), 0).step(&bytes, &arm, true)), "native code of an unsupported architecture");
}

proptest! {
    /// Any bytes in place of any part yield a caller or an error, and a caller is further up the stack.
    #[test]
    fn any_bytes_terminate(
        (hdr, cie_bytes, fde_bytes) in (bytes(64), bytes(64), bytes(200)),
        stack in prop::collection::vec(any::<u64>(), 0..16),
        (which, ip, leaf) in (0u8..8, CODE - 4..CODE + 200, any::<bool>()),
    ) {
        let pick = |bit: u8, random: &[u8], sound: Vec<u8>| if which >> bit & 1 == 1 { random.to_vec() } else { sound };
        let header = pick(0, &hdr, table(&[CODE - 0x100, CODE, CODE + 64]));
        let cie_part = pick(1, &cie_bytes, cie());
        // Also tries random instructions in a valid entry.
        let fde_part = pick(2, &fde_bytes, fde(&fde_bytes));
        let code = process(&[(TABLE, &header), (CIE, &cie_part), (FDE, &fde_part), (STACK, &words(&stack))]);
        if let Ok(caller) = eh_step(&code, &at(ip), leaf) {
            prop_assert!(caller.sp() >= at(ip).sp());
        }
        let image = AddrRange::new(Addr(TABLE), Addr(TABLE + len64(hdr.len())));
        let code = process(&[(TABLE, &hdr), (FDE, &fde_bytes), (STACK, &words(&stack))]);
        if let Ok(caller) = pdata::step(&code, Addr(CODE), image, &at(ip), leaf) {
            prop_assert!(caller.sp() > at(ip).sp());
        }
    }
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}
