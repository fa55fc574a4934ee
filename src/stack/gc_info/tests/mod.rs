//! Tests with bit streams written by hand and by a model of a compiler, and the slots that a frame reports in each case.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

mod decoding;
mod random;
mod rows;
mod writer;

use std::sync::Arc;

use super::*;
use crate::base::{Os, Shape};
use crate::memory::ReadError;
use crate::memory::tests::memory_of;
use crate::stack::{Registers, Saved};
use writer::Method;

/// Address of the GC info in tests.
const INFO: u64 = 0x1_0000;
/// The stack in tests: 256 words.
const STACK: u64 = 0x7_0000;
const STACK_BYTES: u64 = 0x800;
const SP: u64 = STACK + 0x200;
const FRAME: u64 = STACK + 0x400;
const CALLER_SP: u64 = STACK + 0x600;

/// The word at `address` on the stack. Every seventh word is null.
fn word(address: u64) -> u64 {
    if (address / 8).is_multiple_of(7) { 0 } else { address << 8 | 1 }
}

/// The value of register `number`.
fn register(number: u8) -> u64 {
    match number {
        9 => 0,
        _ => 0xab00 + u64::from(number),
    }
}

fn memory_with(info: &[u8]) -> CodeBytes {
    let mut bytes = info.to_vec();
    bytes.extend((0..STACK_BYTES / 8).flat_map(|i| word(STACK + 8 * i).to_le_bytes()));
    let len = info.len() as u64;
    let mut ranges = vec![(STACK, STACK_BYTES, len)];
    if len > 0 {
        ranges.push((INFO, len, 0));
    }
    CodeBytes::new(&Arc::new(memory_of(bytes, &ranges, Shape::LE64)))
}

fn decode(method: &Method) -> Result<(GcInfo, CodeBytes), GcInfoError> {
    let bytes = memory_with(&method.encode().bytes());
    Ok((GcInfo::decode(&bytes, Addr(INFO), method.version, method.arch)?, bytes))
}

/// Registers with values. Registers with odd numbers have places on the stack. The frame register, if any, has the value `FRAME`.
fn registers(arch: Arch, frame: Option<u8>) -> Registers {
    let mut registers = Registers::new(arch).unwrap();
    for number in 0..32 {
        let place = (number % 2 == 1).then_some(Addr(STACK + u64::from(number)));
        registers.set(number, Saved { value: Some(register(number)), place });
    }
    if let Some(number) = frame {
        registers.set(number, Saved { value: Some(FRAME), place: None });
    }
    registers.set_sp(Addr(SP));
    registers
}

/// The slots that an x64 frame on Linux reports, as text: `rbx`, `[sp+8]`, with `&` for interior and `!` for pinned.
fn reported(info: &GcInfo, bytes: &CodeBytes, offset: u32, kind: FrameKind) -> Vec<String> {
    let registers = registers(Arch::X64, info.header().frame_register);
    let frame = FrameState { offset, kind, registers: &registers, caller_sp: Addr(CALLER_SP), os: Os::Linux, untracked: true };
    named(&info.roots(bytes, &frame).unwrap(), &registers)
}

fn named(slots: &[FrameSlot], registers: &Registers) -> Vec<String> {
    let name = |slot: &FrameSlot| {
        let place = match slot.location {
            Location::Register { number, .. } => registers.name(number).to_string(),
            Location::Stack { base: SlotBase::CallerSp, offset, .. } => format!("[caller{offset:+}]"),
            Location::Stack { base: SlotBase::Sp, offset, .. } => format!("[sp{offset:+}]"),
            Location::Stack { base: SlotBase::FrameRegister, offset, .. } => format!("[frame{offset:+}]"),
        };
        place + if slot.interior { "&" } else { "" } + if slot.pinned { "!" } else { "" }
    };
    slots.iter().map(name).collect()
}
