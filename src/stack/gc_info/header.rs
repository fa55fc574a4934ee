//! The header of GC info.

use super::bits::Bits;
use super::encoding::Encoding;
use super::error::GcInfoError;

/// Flags of a fat header.
const VARARGS: u32 = 1;
const GS_COOKIE: u32 = 4;
const PSP_SYM: u32 = 8;
const GENERIC_CONTEXT: u32 = 0x30;
const FRAME_REGISTER: u32 = 0x40;
const ONLY_LEAF_OR_TAIL_CALLS: u32 = 0x80;
const EDIT_AND_CONTINUE: u32 = 0x100;
const REVERSE_PINVOKE: u32 = 0x200;
const FLAG_BITS: u32 = 10;

/// The contents of the generic context slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GenericContextKind {
    /// The exact method table.
    MethodTable,
    /// The exact method.
    MethodDesc,
    /// An object of the exact type.
    This,
}

/// Facts about a whole method. Offsets of slots are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Length of the method's code in bytes, including funclets.
    pub(crate) code_length: u32,
    /// Whether the method takes a variable number of arguments.
    pub(crate) varargs: bool,
    /// Kind and slot of the generic context.
    pub(crate) generic_context: Option<(GenericContextKind, i32)>,
    /// Length of the prologue in bytes: code at or past this offset has stored the generic context. 0 for methods whose GC info has no prologue.
    pub(crate) prologue: u32,
    /// The register that locals are relative to, if it is not the stack pointer.
    pub(crate) frame_register: Option<u8>,
    /// Slot of the previous stack pointer symbol; versions 2 and 3.
    pub(crate) psp_sym: Option<i32>,
    /// Slot of the reverse P/Invoke frame of a method that native code calls.
    pub(crate) reverse_pinvoke: Option<i32>,
    /// Bytes at the stack pointer for outgoing calls: arguments and home area.
    pub(crate) outgoing_area: u32,
    /// x64: whether only the innermost funclet of a method reports its slots.
    pub(crate) only_leaf: bool,
}

/// Number of safe points and ranges, which are between header and slots in the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub(super) safe_points: u32,
    pub(super) ranges: u32,
}

/// The first part of the header.
struct Start {
    fat: bool,
    flags: u32,
    code_length: u32,
}

fn start(bits: &mut Bits<'_>, encoding: &Encoding) -> Result<Start, GcInfoError> {
    let fat = bits.bit()?;
    let flags = match fat {
        true => bits.read(FLAG_BITS)?,
        false if bits.bit()? => FRAME_REGISTER,
        false => 0,
    };
    if encoding.has_return_kind() {
        bits.read(if fat { 4 } else { 2 })?;
    }
    let code_length = bits.unsigned(8)?.checked_mul(encoding.instruction).ok_or_else(|| bits.bad("a code length of 4 GB"))?;
    Ok(Start { fat, flags, code_length })
}

/// Reads the length of the code in bytes.
#[cfg(test)]
pub(super) fn code_length(bits: &mut Bits<'_>, encoding: &Encoding) -> Result<u32, GcInfoError> {
    start(bits, encoding).map(|s| s.code_length)
}

/// Reads the offset of a stack slot in the header, in bytes.
fn slot(bits: &mut Bits<'_>) -> Result<i32, GcInfoError> {
    bits.signed(6)?.checked_mul(8).ok_or_else(|| bits.bad("a slot of the header is too far away"))
}

/// Reads the header.
pub(super) fn header(bits: &mut Bits<'_>, encoding: &Encoding) -> Result<(Header, Counts), GcInfoError> {
    let Start { fat, flags, code_length } = start(bits, encoding)?;
    let has = |flag: u32| flags & flag != 0;
    let slot_if = |bits: &mut Bits<'_>, present: bool| present.then(|| slot(bits)).transpose();
    let kind = match flags & GENERIC_CONTEXT {
        0x10 => Some(GenericContextKind::MethodTable),
        0x20 => Some(GenericContextKind::MethodDesc),
        0x30 => Some(GenericContextKind::This),
        _ => None,
    };
    let prologue = match has(GS_COOKIE) || kind.is_some() {
        // Stored minus one (`m_ValidRangeStart` in gcinfodecoder.cpp).
        true => bits.unsigned(5)?.saturating_add(1).saturating_mul(encoding.instruction),
        false => 0,
    };
    if has(GS_COOKIE) {
        bits.unsigned(3)?; // Length of the epilogue.
    }
    slot_if(bits, has(GS_COOKIE))?;
    let psp_sym = slot_if(bits, has(PSP_SYM) && encoding.has_psp_sym())?;
    let context_slot = slot_if(bits, kind.is_some())?;
    let frame_register = match (has(FRAME_REGISTER), fat) {
        (false, _) => None,
        (true, false) => Some(encoding.frame_register),
        (true, true) => Some(stack_base(bits, encoding)?),
    };
    if has(EDIT_AND_CONTINUE) {
        bits.unsigned(4)?;
        if encoding.is_arm64() {
            bits.unsigned(4)?;
        }
    }
    let reverse_pinvoke = slot_if(bits, has(REVERSE_PINVOKE))?;
    let outgoing_area = match fat {
        true => bits.unsigned(3)?.checked_mul(8).ok_or_else(|| bits.bad("an outgoing area of 4 GB"))?,
        false => 0,
    };
    let safe_points = bits.unsigned(encoding.safe_points)?;
    let ranges = if fat { bits.unsigned(1)? } else { 0 };
    let header = Header {
        code_length,
        varargs: has(VARARGS),
        generic_context: kind.zip(context_slot),
        prologue,
        frame_register,
        psp_sym,
        reverse_pinvoke,
        outgoing_area,
        only_leaf: has(ONLY_LEAF_OR_TAIL_CALLS) && !encoding.is_arm64(),
    };
    Ok((header, Counts { safe_points, ranges }))
}

/// Reads the frame register of a fat header.
fn stack_base(bits: &mut Bits<'_>, encoding: &Encoding) -> Result<u8, GcInfoError> {
    let number = bits.unsigned(encoding.stack_base)? ^ u32::from(encoding.frame_register);
    encoding.register(number).ok_or_else(|| bits.bad("a frame register that the architecture does not have"))
}
