//! Finds the start of the method to which a code address belongs, from the module's unwind information.
//!
//! Handlers (`catch`, `finally`, filters) are separate functions (funclets). The language-specific data area (LSDA) of a funclet contains
//! the distance from the start of its method. Sources: Linux Standard Base, ".eh_frame_hdr"; `UnixNativeCodeManager.cpp`,
//! `CoffNativeCodeManager.cpp` of the runtime.

use gimli::{BaseAddresses, EhFrame, EhFrameOffset, LittleEndian, Pointer, UnwindSection as _};

use crate::base::{Addr, AddrRange, len64};
use crate::memory::{Image, ImageFormat, Memory};

/// Maximum size of a CIE or FDE in bytes. The entries of methods have some hundred bytes.
const MAX_ENTRY: u32 = 1 << 16;
/// Encodings in `.eh_frame_hdr`: a 4-byte count (`udata4`), and entries of 4-byte values relative to the table (`datarel | sdata4`).
const ENTRIES: [u8; 2] = [0x03, 0x3b];
/// Mask of the function kind in the LSDA flags. Kind 0 is the method itself; other kinds are funclets.
const KIND: u8 = 3;

/// The start of the method whose body or funclets contain `code`. `None` if no function contains `code`, or the unwind information is
/// absent.
pub(super) fn method_start(memory: &Memory, image: &Image, code: Addr) -> Option<Addr> {
    let table = image.unwind_table(memory).ok()??;
    match image.format {
        ImageFormat::Elf => of_elf(memory, table, code),
        ImageFormat::Pe => of_pe(memory, image, table, code),
    }
}

fn of_elf(memory: &Memory, table: AddrRange, code: Addr) -> Option<Addr> {
    let at = table.start;
    let [version, _, count, form] = memory.u32(at).ok()?.to_le_bytes();
    (version == 1 && [count, form] == ENTRIES).then_some(())?;
    let count = u64::from(memory.u32(at.plus(8)).ok()?).min(table.len() / 8);
    let entry = |i| at.plus(12).element(i, 8);
    let relative = |place: Addr| at.0.checked_add_signed(memory.i32(place).ok()?.into()).map(Addr);
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if code < relative(entry(middle))? {
            high = middle;
        } else {
            low = middle.checked_add(1)?;
        }
    }
    let fde = relative(entry(low.checked_sub(1)?).plus(4))?;
    let function = Function::read(memory, fde)?;
    function.range.contains(code).then_some(())?;
    let Some(data) = function.data else { return Some(function.range.start) };
    let flags = memory.u8(data).ok()?;
    if flags & KIND == 0 {
        return Some(function.range.start);
    }
    // The LSDA of a funclet consists of the flags, the relative address of the method's LSDA, and the distance in bytes from the start of
    // the method.
    let distance = i64::from(memory.i32(data.plus(5)).ok()?);
    function.range.start.0.checked_add_signed(distance.checked_neg()?).map(Addr)
}

/// A function (method or funclet), as its frame description entry (FDE) describes it.
struct Function {
    range: AddrRange,
    /// Address of the LSDA.
    data: Option<Addr>,
}

impl Function {
    fn read(memory: &Memory, at: Addr) -> Option<Function> {
        let len = |at: Addr| memory.u32(at).ok().filter(|len| (4..=MAX_ENTRY).contains(len)).map(|len| u64::from(len).saturating_add(4));
        let pointer = at.plus(4);
        let distance = u64::from(memory.u32(pointer).ok()?);
        let common = pointer.minus(distance).filter(|_| distance != 0)?;
        // Build an `.eh_frame` section with only the CIE and this FDE, and adjust the CIE pointer in the FDE.
        let mut section = memory.bytes(common, len(common)?).ok()?.into_owned();
        let fde = section.len();
        section.extend_from_slice(&memory.bytes(at, len(at)?).ok()?);
        let field = fde.checked_add(4)?;
        let distance = u32::try_from(field).ok()?;
        section.iter_mut().skip(field).zip(distance.to_le_bytes()).for_each(|(to, from)| *to = from);
        // Set the section's address so that PC-relative values in the FDE are decoded relative to its original address.
        let bases = BaseAddresses::default().set_eh_frame(at.minus(len64(fde))?.0);
        let frames = EhFrame::new(&section, LittleEndian);
        let fde = frames.fde_from_offset(&bases, EhFrameOffset(fde), EhFrame::cie_from_offset).ok()?;
        let start = Addr(fde.initial_address());
        let data = match fde.lsda() {
            Some(Pointer::Direct(at)) => Some(Addr(at)),
            Some(Pointer::Indirect(place)) => Some(memory.ptr(Addr(place)).ok()?),
            None => None,
        };
        Some(Function { range: AddrRange::of(start, fde.len()), data })
    }
}

/// Looks `code` up in the `RUNTIME_FUNCTION` entries, which are sorted by address. For code in a funclet, returns the start of the funclet, not
/// the start of its method, because the layout of the data that links a funclet to its method is not known.
fn of_pe(memory: &Memory, image: &Image, table: AddrRange, code: Addr) -> Option<Addr> {
    /// Size of an entry in bytes: the RVAs of start, end and unwind information.
    const ENTRY: u64 = 12;
    let rva = code.since(image.base)?;
    let start = |i: u64| memory.u32(table.start.element(i, ENTRY)).ok().map(u64::from);
    let (mut low, mut high) = (0, table.len() / ENTRY);
    while low < high {
        let middle = low.midpoint(high);
        if rva < start(middle)? {
            high = middle;
        } else {
            low = middle.checked_add(1)?;
        }
    }
    let last = low.checked_sub(1)?;
    let end = u64::from(memory.u32(table.start.element(last, ENTRY).plus(4)).ok()?);
    (rva < end).then_some(image.base.plus(start(last)?))
}
