//! ELF cores, written by createdump, the Linux kernel or gdb's `gcore`. Reads headers and notes only.

use std::path::Path;
use std::sync::Arc;

use goblin::container::{Container as Class, Ctx};
use goblin::elf::header::Header;
use goblin::elf::program_header::{PT_LOAD, PT_NOTE, PT_NULL};
use goblin::elf::{Elf, ProgramHeader};

use super::elf_notes::{CoreNotes, note_alignment, read_notes};
use super::fields::Fields;
use super::losses::bounded;
use super::{Bytes, CapturedRange, Container, DumpError, DumpFacts, DumpFile, MappedRegion, Trimmed, elf_modules};
use crate::base::{Addr, AddrRange, Arch, Endian, Limits, Os, PtrSize, Shape, be, in_units, len64, ranges, thousands};

/// `e_phnum` escape value: the actual count is in `sh_info` of section header 0.
pub(super) const PN_XNUM: u16 = 0xffff;

/// Reads an ELF core.
pub(super) fn read(bytes: Arc<Bytes>, path: &Path, limits: &Limits) -> Result<DumpFile, DumpError> {
    let header = header(&bytes, path)?;
    let class = if header.e_ident.get(4) == Some(&1) { PtrSize::Four } else { PtrSize::Eight };
    let endian = if header.e_ident.get(5) == Some(&2) { Endian::Big } else { Endian::Little };
    let shape = Shape { ptr: class, endian };
    let arch = arch(header.e_machine, class);
    let file = Fields::new(&bytes, endian);
    let mut oddities = Vec::new();
    let headers = program_headers(&file, &header, shape, path, &mut oddities)?;

    let mut memory = memory(&headers, shape, file.len());
    let lost = lost_memory(&headers, &header, &mut memory.regions, shape);
    if lost > 0 {
        let what = format!("the program headers are damaged: {} of memory in the file {} not described", in_units(lost), be(lost));
        oddities.push(what);
    }
    if memory.file_exceeds_memory > 0 {
        oddities.push(match memory.file_exceeds_memory {
            1 => "a program header has a file size larger than its memory size; the excess is ignored".into(),
            n => format!("{n} program headers have a file size larger than their memory size; the excess is ignored"),
        });
    }
    let mut notes = CoreNotes::default();
    for segment in note_segments(&file, &headers, limits) {
        let NoteSegment { data, align, have, declared, max } = segment;
        if have < declared {
            notes.oddities.push(format!(
                "the notes (threads, modules) are truncated: the file holds {} of {} bytes",
                thousands(have),
                thousands(declared)
            ));
            notes.cut = true;
        }
        if have > data.len() {
            notes.oddities.push(format!("notes beyond {max} bytes are ignored"));
            notes.cut = true;
        }
        read_notes(data, align, (shape, arch), limits, &mut notes);
    }
    if notes.threads.len() >= limits.threads {
        notes.oddities.push(format!("only the first {} threads are listed", limits.threads));
        notes.lost.threads = true;
    }
    let modules = elf_modules::modules(&notes.files, limits);
    if modules.len() >= limits.modules {
        notes.oddities.push(format!("only the first {} modules are listed", limits.modules));
        notes.lost.modules = true;
    }
    oddities.append(&mut notes.oddities);
    // The program headers of a trimmed core cover only the memory that was kept; the note of `gcdump trim` lists all mappings.
    if let Some(own) = &mut notes.trimmed {
        memory.regions = std::mem::take(&mut own.regions);
        memory.uncaptured = own.uncaptured;
    }
    let header_of_createdump = header.e_ident.get(7) == Some(&ELFOSABI_GNU);
    // createdump writes all of these notes. How many threads follow is unknown.
    notes.lost.threads |= notes.cut;
    if header_of_createdump || notes.cut {
        notes.lost.threads |= notes.threads.is_empty();
        notes.lost.modules |= notes.files.is_empty();
        notes.lost.process |= notes.pid.is_none() || notes.auxv.is_empty();
    }
    // Old releases of createdump, which write neither a diagnostics page nor NT_SIGINFO, set SIGABRT for the first thread even in a dump on
    // request. So this signal does not prove a crash.
    let has_page = || memory.regions.iter().any(|r| diag_page_places(class).contains(&r.range.start.0));
    let is_old = header_of_createdump && !notes.has_signal_info() && !has_page();
    let crash = if is_old { None } else { notes.crash() };
    let captured_bytes = memory.ranges.iter().fold(0u64, |sum, r| sum.saturating_add(r.len));
    let mapped_bytes = memory.regions.iter().fold(0u64, |sum, r| sum.saturating_add(r.range.len()));
    let mut facts = DumpFacts {
        is_standard_input: false,
        path: path.to_owned(),
        container: Container::ElfCore,
        compression: None,
        os: os(header.e_ident.get(7).copied()),
        arch,
        shape: Some(shape),
        pid: notes.pid,
        process_name: notes.process_name,
        command_line: notes.command_line,
        time: None,
        started: None,
        file_bytes: file.len(),
        captured_bytes,
        mapped_bytes: Some(mapped_bytes),
        truncated_bytes: memory.truncated,
        undescribed_bytes: lost,
        damage: None,
        minidump_flags: None,
        header_of_createdump,
        uncaptured_mappings: memory.uncaptured,
        trimmed: notes.trimmed.map(|t| Trimmed { redacted: t.redacted, truncated_bytes: 0 }),
        oddities: bounded(oddities),
        lost: notes.lost,
    };
    if let Some(original) = notes.original {
        original.add_to(&mut facts);
    }
    Ok(DumpFile {
        snapshot: None,
        facts,
        ranges: memory.ranges,
        regions: memory.regions,
        reserved: Vec::new(),
        modules,
        files: notes.files,
        threads: notes.threads,
        crash,
        auxv: notes.auxv,
        bytes,
    })
}

/// A PT_NOTE segment.
pub(super) struct NoteSegment<'a> {
    /// The bytes of the segment that are read.
    pub(super) data: Fields<'a>,
    /// Alignment of the notes in the segment.
    pub(super) align: u64,
    /// Number of bytes of the segment that the file contains.
    have: u64,
    /// Number of bytes of the segment that the program header declares.
    declared: u64,
    /// Maximum number of bytes of notes read from all segments.
    max: u64,
}

/// The PT_NOTE segments, at most [`Limits::note_bytes`] in all. Without a limit, many segments of a small file could overlap and demand much
/// memory.
pub(super) fn note_segments<'a>(file: &Fields<'a>, headers: &[ProgramHeader], limits: &Limits) -> impl Iterator<Item = NoteSegment<'a>> {
    let file = *file;
    let max = limits.note_bytes.min(file.len());
    let mut room = max;
    headers.iter().filter(|h| h.p_type == PT_NOTE).map(move |segment| {
        let whole = Fields::new(file.clamped(segment.p_offset, segment.p_filesz), file.endian);
        let data = Fields::new(whole.clamped(0, room), file.endian);
        room = room.saturating_sub(data.len());
        NoteSegment { data, align: note_alignment(&data, segment.p_align), have: whole.len(), declared: segment.p_filesz, max }
    })
}

pub(super) fn header(bytes: &[u8], path: &Path) -> Result<Header, DumpError> {
    let have = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let need = if bytes.get(4) == Some(&1) { 52 } else { 64 };
    if have < need {
        return Err(DumpError::Truncated { path: path.to_owned(), what: "the ELF header", need, have });
    }
    Elf::parse_header(bytes).map_err(|e| DumpError::Malformed {
        path: path.to_owned(),
        what: format!("invalid ELF header: {e}"),
        offset: 0,
    })
}

/// Fixed addresses, outside of any mapping, where createdump adds its diagnostics page. In 64-bit processes, createdump uses the first address on
/// Linux and newer macOS, and the second on older macOS.
pub(crate) fn diag_page_places(ptr: PtrSize) -> &'static [u64] {
    match ptr {
        PtrSize::Eight => &[0x0000_7fff_fff1_0000, 0x7fff_ffff_1000_0000],
        PtrSize::Four => &[0x7fff_1000],
    }
}

/// `EI_OSABI` in the cores of createdump.
const ELFOSABI_GNU: u8 = 3;

/// Decodes `EI_OSABI`. The kernel writes 0 and createdump 3; 2, 6, 9 and 12 are NetBSD, Solaris, FreeBSD and OpenBSD.
fn os(abi: Option<u8>) -> Os {
    if matches!(abi, Some(2 | 6 | 9 | 12)) { Os::Unknown } else { Os::Linux }
}

fn arch(machine: u16, class: PtrSize) -> Arch {
    match (machine, class) {
        (62, PtrSize::Eight) => Arch::X64,
        (183, PtrSize::Eight) => Arch::Arm64,
        (3, PtrSize::Four) => Arch::X86,
        (40, PtrSize::Four) => Arch::Arm,
        (22, PtrSize::Eight) => Arch::S390x,
        (21, PtrSize::Eight) => Arch::Ppc64,
        (20, PtrSize::Four) => Arch::Ppc,
        (243, PtrSize::Eight) => Arch::Riscv64,
        (258, PtrSize::Eight) => Arch::Loongarch64,
        _ => Arch::Unknown,
    }
}

/// The program headers that the file contains.
///
/// Does not use `Elf::parse`, which trusts `e_phnum` and reads only 65,535 headers of a larger core (goblin 0.10.7,
/// measured; the core of golang/go#78217 has 74,525).
pub(super) fn program_headers(
    file: &Fields<'_>,
    header: &Header,
    shape: Shape,
    path: &Path,
    oddities: &mut Vec<String>,
) -> Result<Vec<ProgramHeader>, DumpError> {
    let class = match shape.ptr {
        PtrSize::Four => Class::Little,
        PtrSize::Eight => Class::Big,
    };
    let order = match shape.endian {
        Endian::Little => goblin::container::Endian::Little,
        Endian::Big => goblin::container::Endian::Big,
    };
    let ctx = Ctx::new(class, order);
    let entry = u64::try_from(ProgramHeader::size(ctx)).unwrap_or(56);
    let malformed = |what: String| DumpError::Malformed { path: path.to_owned(), what, offset: header.e_phoff };
    if header.e_phnum == 0 {
        return Err(malformed("it has no program headers and so no memory".to_owned()));
    }
    if u64::from(header.e_phentsize) != entry {
        oddities.push(format!("program header entries of {} bytes are read as {entry}", header.e_phentsize));
    }
    let declared = if header.e_phnum == PN_XNUM { extended_count(file, header, shape, entry, oddities) } else { u64::from(header.e_phnum) };
    let room = file.len().saturating_sub(header.e_phoff).checked_div(entry).unwrap_or(0);
    if room == 0 {
        return Err(DumpError::Truncated {
            path: path.to_owned(),
            what: "the program header table",
            need: header.e_phoff.saturating_add(declared.saturating_mul(entry)),
            have: file.len(),
        });
    }
    if declared > room {
        oddities.push(format!("the program header table is truncated: the file holds {room} of {declared} entries"));
    }
    let count = usize::try_from(declared.min(room)).unwrap_or(usize::MAX);
    let offset = usize::try_from(header.e_phoff).unwrap_or(usize::MAX);
    ProgramHeader::parse(file.bytes, offset, count, ctx).map_err(|e| malformed(format!("invalid program headers: {e}")))
}

/// The number of program headers if it does not fit in `e_phnum`.
fn extended_count(file: &Fields<'_>, header: &Header, shape: Shape, entry: u64, oddities: &mut Vec<String>) -> u64 {
    let info_at = match shape.ptr {
        PtrSize::Four => 28,
        PtrSize::Eight => 44,
    };
    let count = (header.e_shoff != 0).then(|| file.u32(header.e_shoff.saturating_add(info_at))).flatten();
    match count {
        Some(count) if count != 0 => u64::from(count),
        _ => {
            // The kernel writes the section header at the end of the file, so a truncated core does not have it. The notes, which the first
            // program header describes, follow the table, so their offset bounds the length of the table.
            let offset_at = header.e_phoff.saturating_add(shape.ptr.bytes());
            let after = file.word(offset_at, shape.ptr).unwrap_or(0);
            let guess = after.saturating_sub(header.e_phoff).checked_div(entry).unwrap_or(0);
            let count = if guess >= u64::from(PN_XNUM) { guess } else { u64::from(PN_XNUM) };
            oddities.push(format!("the program header count is missing; assuming {count}"));
            count
        }
    }
}

/// Shortest stretch of a file that is taken for memory that no program header describes. Between the contents of two headers, a file has less
/// than a page of padding, and no architecture has larger pages.
const LEAST_UNDESCRIBED: u64 = 64 << 10;

/// Returns the bytes of memory that a damaged table of program headers does not describe: those of headers whose type was overwritten with zero
/// (`PT_NULL`), whose ranges are added to `regions`, and those between the contents of other headers. Unused headers are entirely zero.
fn lost_memory(headers: &[ProgramHeader], header: &Header, regions: &mut Vec<MappedRegion>, shape: Shape) -> u64 {
    let max = shape.ptr.max_address();
    let part = |from: u64, len: u64| AddrRange::new(Addr(from), Addr(from.saturating_add(len)));
    // `e_phnum` is not the number of headers if there are many.
    let table = len64(headers.len()).saturating_mul(u64::from(header.e_phentsize));
    let mut parts = vec![part(0, u64::from(header.e_ehsize)), part(header.e_phoff, table)];
    let mut lost = 0u64;
    for header in headers {
        parts.push(part(header.p_offset, header.p_filesz));
        let (start, mapped) = (Addr(header.p_vaddr & max), header.p_memsz);
        if header.p_type == PT_NULL && mapped > 0 && !start.is_null() {
            lost = lost.saturating_add(header.p_filesz.min(mapped));
            let range = AddrRange::new(start, Addr(start.0.saturating_add(mapped).min(max)));
            regions.push(MappedRegion { range, read: true, write: false, execute: false, backing: None, allocation: None });
        }
    }
    parts.retain(|part| !part.is_empty());
    let parts = ranges::union(parts, 0);
    let between = parts.windows(2).filter_map(|w| if let [a, b] = w { b.start.since(a.end) } else { None });
    between.filter(|len| *len >= LEAST_UNDESCRIBED).fold(lost, u64::saturating_add)
}

#[derive(Default)]
struct Memory {
    ranges: Vec<CapturedRange>,
    regions: Vec<MappedRegion>,
    truncated: u64,
    uncaptured: u64,
    file_exceeds_memory: u64,
}

fn memory(headers: &[ProgramHeader], shape: Shape, file_len: u64) -> Memory {
    let mut memory = Memory::default();
    let max = shape.ptr.max_address();
    for load in headers.iter().filter(|h| h.p_type == PT_LOAD) {
        let start = load.p_vaddr & max;
        // Clamp segments that run past the end of the address space.
        let mapped = load.p_memsz.min(max.saturating_sub(start));
        if mapped > 0 {
            let start = Addr(start);
            memory.regions.push(MappedRegion {
                range: AddrRange::of(start, mapped),
                read: load.is_read(),
                write: load.is_write(),
                execute: load.is_executable(),
                backing: None,
                allocation: None,
            });
        }
        if load.p_filesz > load.p_memsz {
            memory.file_exceeds_memory = memory.file_exceeds_memory.saturating_add(1);
        }
        // Absent is not zero: memory past p_filesz was not captured.
        let declared = load.p_filesz.min(mapped);
        if declared == 0 {
            memory.uncaptured = memory.uncaptured.saturating_add(u64::from(mapped > 0));
            continue;
        }
        let len = declared.min(file_len.saturating_sub(load.p_offset));
        memory.truncated = memory.truncated.saturating_add(declared.saturating_sub(len));
        if len > 0 {
            memory.ranges.push(CapturedRange { start: Addr(start), len, offset: load.p_offset });
        }
    }
    memory
}

#[cfg(test)]
#[path = "elf_tests.rs"]
pub(super) mod tests;
