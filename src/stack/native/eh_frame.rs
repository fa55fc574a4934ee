//! Unwinds code of ELF images: `.eh_frame_hdr` leads to the frame description entry (FDE) of a function, which leads to its common
//! information entry (CIE). Both are read from memory; `gimli` evaluates them.
//!
//! Dumps contain only the pages that the runtime's unwinder read, so the table is searched in the same steps
//! (`pal/src/exception/remote-unwind.cpp` of the runtime). Sources of the layouts: Linux Standard Base, ".eh_frame_hdr"; DWARF 5, 6.4;
//! System V ABI for AMD64, figure 3.36 (register numbers).

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, LittleEndian, Register, RegisterRule, UnwindContext, UnwindExpression,
    UnwindSection as _, UnwindTableRow,
};

use super::numbers::{DWARF, number};
use super::{Caller, Rows, expression};
use crate::base::{Addr, AddrRange, len64};
use crate::stack::{CodeBytes, Registers, Saved, UnwindError};

/// Maximum size of an FDE or CIE in bytes. The largest entries of libcoreclr have a few hundred bytes.
const MAX_ENTRY: u32 = 1 << 13;
/// Number of reads charged for each byte of an FDE or CIE, because the byte may be an instruction that copies all rules.
const READS_OF_A_BYTE: u64 = 4;
/// Supported encodings of the pointer to `.eh_frame`, of four bytes: `DW_EH_PE_sdata4` and `udata4`.
const FOUR_BYTES: [u8; 2] = [0x0b, 0x03];
/// Supported encoding of the number of entries: `DW_EH_PE_udata4`.
const COUNT: u8 = 0x03;
/// Supported encoding of the entries: `DW_EH_PE_sdata4`, relative to the table.
const ENTRIES: u8 = 0x3b;

/// The rule that restores a register of the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rule {
    /// The CFI has no rule. The register keeps its value if the calling convention preserves it.
    #[default]
    Preserved,
    Undefined,
    Same,
    /// In memory at this offset from the CFA.
    At(i32),
    /// The CFA plus this offset.
    Value(i32),
    /// The value of another register.
    Register(u8),
    /// In memory at the address that the expression with this index computes.
    Computed(u8),
    /// The result of the expression with this index.
    ComputedValue(u8),
}

/// The rule for the canonical frame address (CFA), which is the caller's stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cfa {
    /// The value of a register plus an offset.
    Register(u8, i32),
    /// The result of the expression with this index.
    Computed(u8),
}

/// The unwind rules for one code address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    cfa: Result<Cfa, &'static str>,
    registers: [Rule; DWARF.len()],
    returns: Rule,
    /// Whether the frame is a signal frame, which the kernel creates. Its caller was interrupted at an arbitrary instruction.
    signal: bool,
    expressions: Vec<Box<[u8]>>,
}

impl Row {
    fn bytes(&self) -> u64 {
        let of_expressions = self.expressions.iter().map(|e| len64(e.len()).saturating_add(len64(size_of::<Box<[u8]>>())));
        of_expressions.fold(len64(size_of::<Row>()), u64::saturating_add)
    }

    fn evaluate(&self, number: u8, bytes: &CodeBytes, registers: &Registers, cfa: Option<Addr>) -> Result<u64, UnwindError> {
        match self.expressions.get(usize::from(number)) {
            Some(expression) => expression::evaluate(bytes, expression, registers, cfa),
            None => Err(UnwindError::invalid(registers.ip, "a missing DWARF expression")),
        }
    }
}

/// Unwinds one frame by the table at `table`: see [`Native::step`](super::Native::step).
pub(super) fn step(bytes: &CodeBytes, rows: &Rows, table: AddrRange, registers: &Registers, leaf: bool) -> Result<Caller, UnwindError> {
    let invalid = |what| UnwindError::invalid(registers.ip, what);
    // A return address may be past the end of its function, if the last instruction is a call that does not return.
    let pc = registers.ip.minus(u64::from(!leaf)).ok_or(invalid("no instruction pointer"))?;
    let look_up = || {
        let row = row(bytes, table, pc);
        let taken = row.as_ref().map_or(0, Row::bytes);
        (row, taken)
    };
    let row = rows.paid(pc, look_up).ok_or(invalid("unwind information takes too many reads"))??;
    let cfa = match row.cfa.map_err(invalid)? {
        Cfa::Register(register, offset) => {
            let base = registers.value(register).and_then(|base| base.checked_add_signed(offset.into()));
            base.map(Addr).ok_or(invalid("unknown frame register"))?
        }
        Cfa::Computed(number) => Addr(row.evaluate(number, bytes, registers, None)?),
    };

    let mut caller = registers.preserved();
    let place = (bytes, registers, cfa);
    for (number, rule) in (0u8..).zip(row.registers) {
        if rule != Rule::Preserved {
            caller.set(number, apply(rule, &row, place, Some(number))?);
        } else if number == caller.sp_number() {
            caller.set_sp(cfa);
        }
    }
    match row.returns {
        Rule::Preserved => return Err(invalid("no rule for the return address")),
        Rule::Undefined => return Err(invalid("the outermost frame")),
        rule => caller.ip = apply(rule, &row, place, None)?.value.map(Addr).ok_or(invalid("unknown return address"))?,
    }
    // A leaf with its return address in a register need not have a frame. An example is `vfork` of the C library.
    let frameless = leaf && matches!(row.returns, Rule::Register(_)) && caller.sp() == registers.sp();
    // A signal handler may run on another stack.
    if caller.sp() <= registers.sp() && !frameless && !row.signal {
        return Err(invalid("the stack pointer did not advance"));
    }
    Ok(Caller { registers: caller, interrupted: row.signal })
}

/// The rules for `pc`.
fn row(bytes: &CodeBytes, table: AddrRange, pc: Addr) -> Result<Row, UnwindError> {
    let entry = find(bytes, table.start, pc)?.ok_or(UnwindError::invalid(pc, "code without unwind information"))?;
    let section = Section::read(bytes, entry)?;
    let mut context = UnwindContext::new();
    let (row, link, signal) = section.row(&mut context, pc)?;
    Row::of(row, (link, signal), &section.bytes).ok_or(UnwindError::invalid(entry, "CFI with an offset of more than 32 bits"))
}

impl Row {
    /// Converts a row of `gimli`; `None` if an offset has more than 32 bits. `section` has the bytes of expressions.
    fn of(row: &UnwindTableRow<usize>, (link, signal): (Register, bool), section: &[u8]) -> Option<Row> {
        let mut expressions: Vec<Box<[u8]>> = Vec::new();
        let mut expression = |of: &UnwindExpression<usize>| {
            let number = u8::try_from(expressions.len()).ok()?;
            expressions.push(section.get(of.offset..of.offset.checked_add(of.length)?)?.into());
            Some(number)
        };
        let mut rule = |register: Register| match row.register(register) {
            None => Some(Rule::Preserved),
            Some(RegisterRule::Undefined) => Some(Rule::Undefined),
            Some(RegisterRule::SameValue) => Some(Rule::Same),
            Some(RegisterRule::Offset(offset)) => i32::try_from(offset).ok().map(Rule::At),
            Some(RegisterRule::ValOffset(offset)) => i32::try_from(offset).ok().map(Rule::Value),
            // The values of registers that are not general-purpose are unknown.
            Some(RegisterRule::Register(other)) => Some(Rule::Register(number(other).unwrap_or(u8::MAX))),
            Some(RegisterRule::Expression(of)) => expression(&of).map(Rule::Computed),
            Some(RegisterRule::ValExpression(of)) => expression(&of).map(Rule::ComputedValue),
            Some(_) => Some(Rule::Undefined),
        };
        let mut registers = [Rule::Preserved; DWARF.len()];
        for (to, dwarf) in registers.iter_mut().zip(DWARF) {
            *to = rule(Register(dwarf))?;
        }
        let returns = rule(link)?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => match number(*register) {
                Some(number) => Ok(Cfa::Register(number, i32::try_from(*offset).ok()?)),
                None => Err("unknown frame register"),
            },
            CfaRule::Expression(of) => Ok(Cfa::Computed(expression(of)?)),
        };
        Some(Row { cfa, registers, returns, signal, expressions })
    }
}

/// Applies `rule` in the frame with these registers and CFA. `own` is the register that the rule is for, or `None` for the return address.
fn apply(rule: Rule, row: &Row, (bytes, registers, cfa): (&CodeBytes, &Registers, Addr), own: Option<u8>) -> Result<Saved, UnwindError> {
    let invalid = |what| UnwindError::invalid(registers.ip, what);
    let at = |offset: i32| cfa.0.checked_add_signed(offset.into()).ok_or(invalid("frame beyond the end of memory"));
    let saved = |place: Addr| Ok::<_, UnwindError>(Saved { value: Some(bytes.u64(place)?), place: Some(place) });
    Ok(match rule {
        Rule::Undefined => Saved::default(),
        Rule::Preserved | Rule::Same => own.map(|number| registers.get(number)).unwrap_or_default(),
        Rule::At(offset) => saved(Addr(at(offset)?))?,
        Rule::Value(offset) => Saved { value: Some(at(offset)?), place: None },
        Rule::Register(other) => registers.get(other),
        Rule::Computed(number) => saved(Addr(row.evaluate(number, bytes, registers, Some(cfa))?))?,
        Rule::ComputedValue(number) => Saved { value: Some(row.evaluate(number, bytes, registers, Some(cfa))?), place: None },
    })
}

/// The address of the FDE of the last function that starts at or before `pc`; `None` if all functions start after `pc`. The function may end
/// before `pc`, because the table does not have the ends of functions.
fn find(bytes: &CodeBytes, table: Addr, pc: Addr) -> Result<Option<Addr>, UnwindError> {
    let [version, frames, count, entries] = bytes.u32(table)?.to_le_bytes();
    if version != 1 || !FOUR_BYTES.contains(&(frames & 0xf)) || (count, entries) != (COUNT, ENTRIES) {
        return Err(UnwindError::invalid(table, "an .eh_frame_hdr of an unknown format"));
    }
    let (entry, relative) = (
        |i| table.plus(12).element(i, 8),
        |at| {
            let distance = i64::from(bytes.u32(at)?.cast_signed());
            table.0.checked_add_signed(distance).map(Addr).ok_or(UnwindError::invalid(at, "a function beyond the end of memory"))
        },
    );
    let (mut low, mut high) = (0, u64::from(bytes.u32(table.plus(8))?));
    while low < high {
        let middle = low.midpoint(high);
        if pc < relative(entry(middle))? {
            high = middle;
        } else {
            low = middle.saturating_add(1);
        }
    }
    low.checked_sub(1).map(|last| relative(entry(last).plus(4))).transpose()
}

/// A copy of a CIE and an FDE that `gimli` reads as an `.eh_frame` section.
struct Section {
    /// Address of the FDE in memory.
    at: Addr,
    bytes: Vec<u8>,
    /// Offset of the FDE in `bytes`, after the CIE.
    fde: usize,
}

impl Section {
    /// Reads the FDE at `at`, and its CIE.
    fn read(bytes: &CodeBytes, at: Addr) -> Result<Section, UnwindError> {
        let len = |at: Addr| match bytes.u32(at)? {
            len @ 4..=MAX_ENTRY => Ok(u64::from(len).saturating_add(4)),
            _ => Err(UnwindError::invalid(at, "an FDE or CIE of an invalid size")),
        };
        let pointer = at.plus(4);
        // The field is the distance from the CIE to the field itself.
        let distance = u64::from(bytes.u32(pointer)?);
        let cie = pointer.minus(distance).filter(|_| distance != 0).ok_or(UnwindError::invalid(at, "a CIE where an FDE was expected"))?;
        let (common, own) = (len(cie)?, len(at)?);
        CodeBytes::afford(at, common.saturating_add(own).saturating_mul(READS_OF_A_BYTE))?;
        let mut section = bytes.bytes(cie, common)?.into_owned();
        let fde = section.len();
        section.extend_from_slice(&bytes.bytes(at, own)?);
        let field = fde.saturating_add(4);
        let distance = u32::try_from(field).unwrap_or(u32::MAX);
        section.iter_mut().skip(field).zip(distance.to_le_bytes()).for_each(|(to, from)| *to = from);
        Ok(Section { at, bytes: section, fde })
    }

    /// The rules for `pc`, the return address register, and whether the frame is a signal frame.
    fn row<'c>(&self, context: &'c mut UnwindContext<usize>, pc: Addr) -> Result<(&'c UnwindTableRow<usize>, Register, bool), UnwindError> {
        let malformed = |_| UnwindError::invalid(self.at, "malformed CFI");
        // With this base, `gimli` computes right addresses from relative addresses in the FDE, but wrong addresses from relative addresses in the
        // CIE. The wrong addresses do no harm, because only the CIE's pointer to the personality routine is relative, and this pointer is not used.
        let start = self.at.minus(len64(self.fde)).ok_or(UnwindError::invalid(self.at, "unwind information at the start of memory"))?;
        let frames = EhFrame::new(&self.bytes, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(start.0);
        let fde = frames.fde_from_offset(&bases, EhFrameOffset(self.fde), EhFrame::cie_from_offset).map_err(malformed)?;
        if !fde.contains(pc.0) {
            return Err(UnwindError::invalid(pc, "code without unwind information"));
        }
        let row = fde.unwind_info_for_address(&frames, &bases, context, pc.0).map_err(malformed)?;
        let cie = fde.cie();
        Ok((row, cie.return_address_register(), cie.is_signal_trampoline()))
    }
}
