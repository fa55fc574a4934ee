//! Lays out trimmed ELF cores: header, program headers, notes.

use super::super::elf_core::{self, NoteSegment, PN_XNUM};
use super::super::elf_notes::{
    AT_NULL, AUXV_READ, NAME_BYTES, NT_AUXV, NT_FILE, NT_ORIGINAL, NT_PRPSINFO, NT_PRSTATUS, NT_SIGINFO, NT_TRIM, SIGNAL_OF_THREAD,
    TRIM_OWNER, address_of_signal, process_at, raw_notes, registers_at, thread_id_at,
};
use super::super::fields::Fields;
use super::super::losses::Original;
use super::super::{DumpFile, MappedRegion};
use super::{Layout, Out, RedactRegisters, WriteError, blank_but, has_no_text, place, redact_words};
use crate::base::{AddrRange, Limits, PtrSize, Shape};

use goblin::elf::program_header::PT_NOTE;

const PT_LOAD: u32 = 1;

pub(super) fn lay_out(dump: &DumpFile, ranges: &[AddrRange], redact: Option<RedactRegisters<'_>>) -> Result<Layout, WriteError> {
    let path = &dump.facts.path;
    let header = elf_core::header(&dump.bytes, path)?;
    let shape = dump.facts.shape.unwrap_or(Shape::LE64);
    let file = Fields::new(&dump.bytes, shape.endian);
    let headers = elf_core::program_headers(&file, &header, shape, path, &mut Vec::new())?;
    let mut notes = Out::new(shape.endian);
    for segment in elf_core::note_segments(&file, &headers, &Limits::default()) {
        copy_notes(&segment, shape, redact, &mut notes)?;
    }
    trim_note(dump, redact.is_some(), &mut notes)?;
    if let Some(original) = Original::of(&dump.facts) {
        let mut desc = Out::new(shape.endian);
        desc.losses(&original);
        note(&mut notes, TRIM_OWNER, NT_ORIGINAL, &desc.bytes)?;
    }

    let (header_bytes, entry_bytes, section_bytes) = match shape.ptr {
        PtrSize::Four => (52u16, 32u16, 40u16),
        PtrSize::Eight => (64, 56, 64),
    };
    let count = u64::try_from(ranges.len()).unwrap_or(u64::MAX).saturating_add(1);
    // A count that does not fit in the 16-bit `e_phnum` is stored in `sh_info` of section header 0, as the kernel does.
    let extended = count >= u64::from(PN_XNUM);
    let table_end = u64::from(header_bytes).saturating_add(count.saturating_mul(u64::from(entry_bytes)));
    let notes_at = table_end.saturating_add(if extended { u64::from(section_bytes) } else { 0 });
    let (placed, file_bytes) = place(ranges, notes_at.saturating_add(notes.at()).next_multiple_of(16));

    let mut out = Out::new(shape.endian);
    out.raw(&header.e_ident);
    out.u16(header.e_type);
    out.u16(header.e_machine);
    out.u32(header.e_version);
    out.word(0, shape.ptr)?;
    out.word(u64::from(header_bytes), shape.ptr)?;
    out.word(if extended { table_end } else { 0 }, shape.ptr)?;
    out.u32(header.e_flags);
    out.u16(header_bytes);
    out.u16(entry_bytes);
    out.u16(u16::try_from(count).unwrap_or(PN_XNUM));
    out.u16(if extended { section_bytes } else { 0 });
    out.u16(u16::from(extended));
    out.u16(0);

    program_header(&mut out, shape, PT_NOTE, 0, notes_at, AddrRange::default(), notes.at())?;
    // The regions are sorted, so that a binary search finds the region that contains a range.
    let mut regions: Vec<&MappedRegion> = dump.regions.iter().collect();
    regions.sort_by_key(|r| r.range.start);
    for range in &placed {
        let last = regions.partition_point(|r| r.range.start <= range.start).checked_sub(1).and_then(|i| regions.get(i));
        let region = last.filter(|r| r.range.contains(range.start));
        let flags = region.map_or(4, |r| flags_of(r));
        program_header(&mut out, shape, PT_LOAD, flags, range.offset, range.range(), range.len)?;
    }
    if extended {
        // Offset of `sh_info`, which follows name, type, flags, address, offset, size and link.
        let before = u64::from(section_bytes).min(match shape.ptr {
            PtrSize::Four => 28,
            PtrSize::Eight => 44,
        });
        let at = out.at();
        out.bytes.resize(out.bytes.len().saturating_add(usize::from(section_bytes)), 0);
        out.patch32(at.saturating_add(before), u32::try_from(count).map_err(|_| WriteError::TooLarge("so many ranges"))?);
    }
    out.raw(&notes.bytes);
    out.align(16);
    Ok(Layout { head: out.bytes, ranges: placed, file_bytes })
}

/// The permissions as `p_flags`: 4 readable, 2 writable, 1 executable.
fn flags_of(region: &MappedRegion) -> u32 {
    u32::from(region.read) << 2 | u32::from(region.write) << 1 | u32::from(region.execute)
}

fn program_header(
    out: &mut Out,
    shape: Shape,
    kind: u32,
    flags: u32,
    offset: u64,
    range: AddrRange,
    file_bytes: u64,
) -> Result<(), WriteError> {
    out.u32(kind);
    if shape.ptr == PtrSize::Eight {
        out.u32(flags);
    }
    for n in [offset, range.start.0, 0, file_bytes, range.len()] {
        out.word(n, shape.ptr)?;
    }
    if shape.ptr == PtrSize::Four {
        out.u32(flags);
    }
    // No page alignment: contents are contiguous in the file.
    out.word(1, shape.ptr)
}

fn note(out: &mut Out, owner: &[u8], kind: u32, desc: &[u8]) -> Result<(), WriteError> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(|_| WriteError::TooLarge("its notes"));
    out.u32(length(owner)?);
    out.u32(length(desc)?);
    out.u32(kind);
    out.raw(owner);
    out.align(4);
    out.raw(desc);
    out.align(4);
    Ok(())
}

/// Copies the notes that `elf_notes` decodes. Other notes, such as vector registers, are left out.
fn copy_notes(segment: &NoteSegment<'_>, shape: Shape, redact: Option<RedactRegisters<'_>>, out: &mut Out) -> Result<(), WriteError> {
    let wanted = |kind: u32| matches!(kind, NT_PRSTATUS | NT_PRPSINFO | NT_AUXV | NT_SIGINFO | NT_FILE);
    for raw in raw_notes(&segment.data, segment.align).filter(|n| n.core && wanted(n.kind)) {
        let mut desc = raw.desc.to_vec();
        if let Some(address) = redact {
            redact_note(raw.kind, &mut desc, shape, address);
        }
        note(out, b"CORE\0", raw.kind, &desc)?;
    }
    Ok(())
}

/// Zeroes the parts of a note that readers do not need: register values that are not addresses, the command line, unused fields of signals.
/// Removes unused entries of the auxiliary vector.
fn redact_note(kind: u32, desc: &mut Vec<u8>, shape: Shape, address: RedactRegisters<'_>) {
    let len = u64::try_from(desc.len()).unwrap_or(u64::MAX);
    let from = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let word = shape.ptr.bytes();
    match kind {
        NT_PRSTATUS => {
            let registers = registers_at(shape);
            blank_but(desc, &[(SIGNAL_OF_THREAD, 2), (thread_id_at(shape), 4), (registers, len)]);
            if let Some(registers) = desc.get_mut(from(registers)..) {
                redact_words(registers, from(word), shape.endian, address);
            }
        }
        NT_PRPSINFO => {
            let (pid, name) = process_at(shape, len);
            let text = desc.get(from(name)..).unwrap_or_default().split(|b| *b == 0).next().map_or(0, <[u8]>::len);
            blank_but(desc, &[(pid, 4), (name, u64::try_from(text).unwrap_or(0).min(NAME_BYTES))]);
        }
        NT_SIGINFO => {
            let (code, at) = (8, address_of_signal(shape));
            let value = Fields::new(desc, shape.endian).word(at, shape.ptr);
            match value.is_some_and(|value| address(value) || has_no_text(value)) {
                true => blank_but(desc, &[(0, 4), (code, 4), (at, word)]),
                // The note ends before the address: readers would otherwise report a zeroed address as the fault address 0.
                false => {
                    blank_but(desc, &[(0, 4), (code, 4)]);
                    desc.truncate(from(at));
                }
            }
        }
        NT_AUXV => {
            let entry = from(word.saturating_mul(2)).max(1);
            let key = |entry: &&[u8]| Fields::new(entry, shape.endian).word(0, shape.ptr).unwrap_or(AT_NULL);
            let entries = desc.chunks_exact(entry).take_while(|entry| key(entry) != AT_NULL);
            let mut kept = entries.filter(|entry| AUXV_READ.contains(&key(entry))).collect::<Vec<_>>().concat();
            kept.resize(kept.len().saturating_add(entry), 0);
            *desc = kept;
        }
        _ => {}
    }
}

/// Writes the note with facts about the original dump: see `TrimNote` in `elf_notes`.
fn trim_note(dump: &DumpFile, redacted: bool, out: &mut Out) -> Result<(), WriteError> {
    let mut desc = Out::new(out.endian);
    let before = dump.facts.trimmed.is_some_and(|t| t.redacted);
    desc.u64(u64::from(redacted || before));
    desc.u64(dump.facts.uncaptured_mappings);
    for region in &dump.regions {
        desc.u64(region.range.start.0);
        desc.u64(region.range.end.0);
        desc.u64(u64::from(flags_of(region)));
    }
    note(out, TRIM_OWNER, NT_TRIM, &desc.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_signal_stays_if_its_address_is_text() {
        let address = |value: u64| value == 0x7f00_0000_1000;
        let redacted = |value: u64| {
            let mut desc = vec![0; 128];
            desc[0] = 11;
            desc[8] = 1;
            desc[16..24].copy_from_slice(&value.to_le_bytes());
            redact_note(NT_SIGINFO, &mut desc, Shape::LE64, &address);
            let fields = Fields::new(&desc, Shape::LE64.endian);
            [fields.u32(0).map(u64::from), fields.u32(8).map(u64::from), fields.u64(16)]
        };
        assert_eq!(redacted(0x7f00_0000_1000), [Some(11), Some(1), Some(0x7f00_0000_1000)]);
        // Readers report no address, rather than the address 0 or another cause.
        assert_eq!(redacted(u64::from_le_bytes(*b"password")), [Some(11), Some(1), None]);
    }
}
