//! Module files, which supply read-only pages that the dump does not have.
//!
//! A file is used only if it is provably the one that the process had loaded: its GNU build ID (ELF), or its time stamp and size (PE),
//! match. If the dump has no headers of an ELF image, captured pages of the image are compared with the file. Only pages that the process
//! cannot have modified are filled: read-only segments, and RELRO with its relative relocations applied. Words that the loader sets to addresses
//! in other images (other relocations, the import address table of a PE image) stay missing. Other missing writable pages usually stay missing,
//! because the process may have changed them. [`DataPages`] lists the exceptions.
//!
//! If a segment is larger in memory than in the file, the loader zeroes the rest of the last file-backed page. These zeros are supplied if
//! nothing can have written there since: the page is read-only, or becomes read-only after relocation. The tails of writable pages stay
//! missing. Further pages of `.bss` stay missing too, because the kernel creates them when the process writes to them.

mod bundle;
mod identity;
mod local;
mod search;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goblin::container::{Container, Ctx, Endian as GoblinEndian};
use goblin::elf::program_header::{PF_W, PF_X, PT_GNU_RELRO, PT_LOAD, ProgramHeader};

use super::copies::Copies;
use super::elf_image::{self, MAX_PROGRAM_HEADERS};
use super::pe::PeHeaders;
use super::{Image, ImageFormat, Memory, Piece};
use crate::base::{Addr, AddrRange, Endian, Os, PAGE, PtrSize, Shape, len64, ranges};
use crate::dump::{Bytes, Module};
pub use bundle::Bundles;
pub(crate) use identity::{FileId, plain_name};
pub use local::LocalFiles;
pub(crate) use local::{framework, framework_packages, is_version, rids, target};
pub use search::FileSearch;
pub(crate) use search::{ModuleFile, module_id};

/// Number of steps that opening and checking one candidate takes from the budget for opening the dump.
const STEPS_OF_A_FILE: u64 = 1 << 11;

const DT_PLT_SIZE: u64 = 2;
const DT_RELA: u64 = 7;
const DT_RELA_SIZE: u64 = 8;
const DT_PLT_TYPE: u64 = 20;
const DT_PLT: u64 = 23;
const DT_RELR_SIZE: u64 = 35;
const DT_RELR: u64 = 36;

/// How to treat the writable pages of an image that the dump does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPages {
    /// The pages stay missing, because the process may have changed them.
    Absent,
    /// The dump has each page that the process changed, so missing pages are filled from the file.
    Unchanged,
    /// The pages are filled from the file with their initial contents: constants, and relocated pointers. Bytes that the process may have
    /// changed are [marked as such](Memory::is_initial).
    Initial,
}

/// The result of looking for one module's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// The file that was used.
    pub(crate) file: Option<PathBuf>,
    /// Number of bytes that the file supplied.
    pub(crate) bytes: u64,
    /// Candidates that were not used.
    pub(crate) rejected: Vec<(PathBuf, Rejected)>,
}

/// Why a candidate was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The file differs from the one that the process had loaded.
    Other(String),
    /// The file may be the right one, but the dump does not have enough data to compare.
    Unverified(String),
}

impl From<&str> for Rejected {
    fn from(reason: &str) -> Rejected {
        Rejected::Other(reason.into())
    }
}

impl From<String> for Rejected {
    fn from(reason: String) -> Rejected {
        Rejected::Other(reason)
    }
}

/// Fills gaps of `memory` from the file of `module`, whose image in memory is `image` (`None` if its first page is absent).
///
/// `data` says what to do with missing writable pages. Kernel cores have every page that the process changed. If createdump
/// has no DAC for a program, its heap dumps leave out all file-backed data.
pub fn fill_module(memory: &mut Memory, module: &Module, image: Option<&Image>, search: &FileSearch, os: Os, data: DataPages) -> Filled {
    let mut filled = Filled::default();
    for file in search.candidates(&module.path, module_id(module, image).as_ref(), os) {
        if !memory.afford_steps(STEPS_OF_A_FILE) {
            break;
        }
        let (bytes, path) = (file.open().map_err(Rejected::Unverified), file.path().to_path_buf());
        match bytes.and_then(|b| fill_from(memory, module, image, &b, data)) {
            Ok(bytes) => {
                filled.bytes = bytes;
                filled.file = Some(path);
                return filled;
            }
            // Shared places also contain files of other programs, so a mismatch there is normal.
            Err(_) if file.place().is_shared() => {}
            Err(reason) => filled.rejected.push((path, reason)),
        }
    }
    filled
}

impl Memory {
    /// Fills the gaps of the image of `module` from `bytes`, a PE file. Does nothing if `bytes` is not the file that the process had loaded.
    pub(crate) fn complete(&mut self, module: &Module, bytes: &Arc<Bytes>) {
        let _ = fill_pe(self, module, None, bytes);
    }

    /// The parts of `range` whose contents at the time of the dump are known: captured bytes, and bytes of module files that the process
    /// cannot have changed.
    pub(crate) fn known(&self, range: AddrRange) -> Vec<AddrRange> {
        let first = self.at_or_behind(range.start);
        let cut = |p: &Piece| AddrRange::new(Addr(p.start).max(range.start), Addr(p.end).min(range.end));
        let pieces = self.pieces.iter().skip(first).take_while(|p| p.start < range.end.0);
        let (own, supplied): (Vec<&Piece>, Vec<&Piece>) = pieces.partition(|p| p.source == 0);
        let supplied = ranges::union(supplied.into_iter().map(cut).collect(), 0);
        let sure = ranges::subtract(&supplied, &ranges::union(self.initial.clone(), 0));
        ranges::union(own.into_iter().map(cut).chain(sure).collect(), 0)
    }
}

/// The image in the file at `path`, relocated to the load address of `module`. Used to read constants in writable pages that the dump does
/// not have.
///
/// # Errors
/// The reason why the file cannot be used: it cannot be read, or is not the one that the process had loaded.
#[cfg(feature = "internals")]
pub fn file_image(module: &Module, image: &Image, path: &Path, shape: Shape) -> Result<Memory, String> {
    let bytes = Bytes::map_path(path).map_err(|e| e.to_string())?;
    let mut memory = Memory::empty(shape);
    let filled = fill_from(&mut memory, module, Some(image), &Arc::new(bytes), DataPages::Unchanged);
    filled.map_err(|rejected| match rejected {
        Rejected::Other(why) | Rejected::Unverified(why) => why,
    })?;
    Ok(memory)
}

fn fill_from(memory: &mut Memory, module: &Module, image: Option<&Image>, bytes: &Arc<Bytes>, data: DataPages) -> Result<u64, Rejected> {
    if bytes.starts_with(b"\x7fELF") {
        fill_elf(memory, module, image, bytes, data)
    } else if bytes.starts_with(b"MZ") {
        fill_pe(memory, module, image, bytes)
    } else {
        Err("neither an ELF nor a PE file".into())
    }
}

/// The segments of an ELF file at their addresses in the process, without relocation.
#[derive(Debug)]
struct LoadedElf {
    memory: Memory,
    image: Image,
    headers: Vec<ProgramHeader>,
    /// `e_machine`.
    machine: u16,
}

/// Lays out the segments of an ELF file for the load address `base`. `None` if `bytes` is not an ELF image for processes of this `shape`.
fn load_elf(bytes: &Arc<Bytes>, shape: Shape, base: Addr) -> Option<LoadedElf> {
    let header = goblin::elf::Elf::parse_header(bytes).ok()?;
    let container = match shape.ptr {
        PtrSize::Four => Container::Little,
        PtrSize::Eight => Container::Big,
    };
    let endian = match shape.endian {
        Endian::Little => GoblinEndian::Little,
        Endian::Big => GoblinEndian::Big,
    };
    let count = usize::from(header.e_phnum).min(usize::try_from(MAX_PROGRAM_HEADERS).unwrap_or(0));
    let offset = usize::try_from(header.e_phoff).ok()?;
    let headers = ProgramHeader::parse(bytes, offset, count, Ctx::new(container, endian)).ok()?;
    let low = headers.iter().filter(|h| h.p_type == PT_LOAD).map(|h| h.p_vaddr).min()? & !(PAGE - 1);
    let mut memory = Memory::empty(shape);
    for h in headers.iter().filter(|h| h.p_type == PT_LOAD) {
        let start = Addr(base.0.checked_add(h.p_vaddr.checked_sub(low)?)?);
        memory.fill_gaps(AddrRange::of(start, h.p_filesz), bytes, h.p_offset);
    }
    let image = Image::at(&memory, base)?;
    Some(LoadedElf { memory, image, headers, machine: header.e_machine })
}

fn fill_elf(memory: &mut Memory, module: &Module, image: Option<&Image>, bytes: &Arc<Bytes>, data: DataPages) -> Result<u64, Rejected> {
    let loaded = load_elf(bytes, memory.shape(), module.base).ok_or("not a readable ELF image of this architecture")?;
    // Minidumps record the build ID in the module list.
    let wanted = image.and_then(|i| i.build_id.as_ref()).or(module.build_id.as_ref());
    match (wanted, loaded.image.build_id.as_ref()) {
        (Some(wanted), Some(found)) if wanted != found => {
            return Err(format!("its build id is {}, but the process had loaded {}", hex(found), hex(wanted)).into());
        }
        (Some(_), Some(_)) => {}
        (Some(_), None) => return Err("it has no build id".into()),
        (None, _) => compare_contents(memory, &loaded)?,
    }
    let image = &loaded.image;
    let mut added = 0u64;
    for h in loaded.headers.iter().filter(|h| h.p_type == PT_LOAD && h.p_flags & PF_W == 0) {
        let start = Addr(image.bias.wrapping_add(h.p_vaddr));
        // The loader maps whole pages, so memory also has the bytes of the file around the segment, except where the loader zeroes them.
        let head = start.0 % PAGE;
        let page = Addr(start.0.saturating_sub(head));
        let end = start.plus(h.p_filesz);
        let end = if h.p_memsz > h.p_filesz { end } else { end.plus(PAGE - 1).align_down(PAGE) };
        added = added.saturating_add(memory.fill_gaps(AddrRange::new(page, end), bytes, h.p_offset.saturating_sub(head)));
    }
    let is_relro = |h: &&ProgramHeader| h.p_type == PT_GNU_RELRO;
    let is_data = |h: &&ProgramHeader| data != DataPages::Absent && h.p_type == PT_LOAD && h.p_flags & PF_W != 0;
    let range = |h: &ProgramHeader| {
        let start = Addr(image.bias.wrapping_add(h.p_vaddr));
        AddrRange::of(start, h.p_filesz)
    };
    let ranges = loaded.headers.iter().filter(|h| is_relro(h) || is_data(h)).map(range);
    let wanted = ranges.filter(|r| loaded.memory.captured(*r) == r.len()).collect();
    if data == DataPages::Initial {
        // The loader makes RELRO read-only after relocation, so the process cannot change it.
        let fixed: Vec<AddrRange> = loaded.headers.iter().filter(is_relro).map(range).collect();
        let written: Vec<AddrRange> = loaded.headers.iter().filter(is_data).map(range).collect();
        memory.mark_initial(ranges::subtract(&ranges::union(written, 0), &ranges::union(fixed, 0)));
    }
    let wanted = resolved(&loaded, |n| memory.afford_steps(n)).map(|set| ranges::subtract(&ranges::union(wanted, 0), &set));
    let copies = loaded.image.exports.zip(wanted).and_then(|(_, wanted)| Copies::reserve(memory, wanted)).filter(|c| !c.is_empty());
    if let Some(copies) = copies.and_then(|c| relocated(&loaded, c, |n| memory.afford_steps(n))) {
        added = added.saturating_add(copies.fill(memory));
    }
    let zeros: Arc<Bytes> = Arc::new(Bytes::Owned(vec![0; usize::try_from(PAGE).unwrap_or(0)]));
    for tail in zeroed(&loaded, |n| memory.afford_steps(n)) {
        added = added.saturating_add(memory.fill_gaps(tail, &zeros, 0));
    }
    Ok(added)
}

/// Minimum number of relocated pointers that must agree if the dump has no build ID of the image. A pointer differs between builds if the
/// size of any code or data before its target changed. libcoreclr has 11,000 such pointers in RELRO, and a small NativeAOT program has 254.
const AGREEING_POINTERS: u64 = 128;
/// Minimum number of read-only data pages that must agree if the pointers do not decide. Fewer pages could be equal in several builds.
const AGREEING_PAGES: u64 = 16;
/// Minimum number of agreeing pages for each page that differs. A few pages may differ, because the runtime patches some of its constants.
const PAGES_FOR_ONE: u64 = 8;

/// Checks that the file is the one that the process had loaded, by parts of the image that processes hardly ever change: relocated pointers
/// in RELRO, and read-only data. A kernel core contains RELRO even without headers and code (`coredump_filter` without bit 4), because the
/// loader wrote to the pages of RELRO and so made them private to the process.
fn compare_contents(memory: &Memory, elf: &LoadedElf) -> Result<(), Rejected> {
    let range = |h: &ProgramHeader| {
        let start = Addr(elf.image.bias.wrapping_add(h.p_vaddr));
        AddrRange::of(start, h.p_filesz)
    };
    let (mut agree, mut differs) = (0u64, None);
    let relro: Vec<AddrRange> = elf.headers.iter().filter(|h| h.p_type == PT_GNU_RELRO).map(range).collect();
    let count = |at: u64, value: u64| {
        let at = Addr(at);
        if relro.iter().any(|r| r.contains(at)) && memory.has(at) {
            match memory.word(at) {
                Ok(found) if found == value => agree = agree.saturating_add(1),
                _ => differs = differs.or(Some(at)),
            }
        }
    };
    each_relative(elf, |n| memory.afford_steps(n), count);
    if differs.is_none() && agree >= AGREEING_POINTERS {
        return Ok(());
    }
    let (mut same, mut other) = (0u64, 0u64);
    for segment in elf.headers.iter().filter(|h| h.p_type == PT_LOAD && h.p_flags & (PF_W | PF_X) == 0).map(range) {
        for (start, captured) in memory.stretches(segment).take_while(|(_, bytes)| memory.afford_bytes(len64(bytes.len()))) {
            for (i, page) in (0u64..).zip(captured.chunks(usize::try_from(PAGE).unwrap_or(usize::MAX))) {
                let at = start.element(i, PAGE);
                match elf.memory.bytes(at, len64(page.len())) {
                    Ok(own) if *own == *page => same = same.saturating_add(1),
                    _ => (other, differs) = (other.saturating_add(1), differs.or(Some(at))),
                }
            }
        }
    }
    match differs {
        None if same < AGREEING_PAGES => {
            Err(Rejected::Unverified("the dump has neither its build id nor enough of its contents to compare".into()))
        }
        Some(at) if same < AGREEING_PAGES || same / PAGES_FOR_ONE < other || relro.iter().any(|r| r.contains(at)) => {
            Err(Rejected::Other(format!("it differs from what the process had loaded, at {at}")))
        }
        _ => Ok(()),
    }
}

/// The tails of segments that the loader zeroes and that nothing writes afterwards. A tail extends from the end of the segment's contents in
/// the file to the end of the page or of the segment. Its segment is read-only, or the loader makes the whole tail read-only as a part of RELRO.
fn zeroed(elf: &LoadedElf, afford: impl Fn(u64) -> bool) -> Vec<AddrRange> {
    let at = |vaddr: u64| Addr(elf.image.bias.wrapping_add(vaddr));
    let relro = elf.headers.iter().filter(|h| h.p_type == PT_GNU_RELRO);
    let protected: Vec<AddrRange> =
        relro.map(|h| AddrRange::new(at(h.p_vaddr).align_down(PAGE), at(h.p_vaddr).plus(h.p_memsz).align_down(PAGE))).collect();
    let loads = elf.headers.iter().filter(|h| h.p_type == PT_LOAD && h.p_memsz > h.p_filesz);
    let mut tails: Vec<AddrRange> = loads
        .filter_map(|h| {
            let from = at(h.p_vaddr).plus(h.p_filesz);
            let to = at(h.p_vaddr).plus(h.p_memsz).min(from.plus(PAGE - 1).align_down(PAGE));
            let fixed = h.p_flags & PF_W == 0 || protected.iter().any(|r| r.contains(from) && to <= r.end);
            (from < to && fixed).then(|| AddrRange::new(from, to))
        })
        .collect();
    // A copy relocation may write a library's variable into such a tail of a program (`.bss.rel.ro`). Every copy relocation has a symbol.
    if !tails.is_empty() {
        for Relocation { offset, .. } in relocations(elf).filter(|r| r.symbol != 0) {
            if !afford(1) {
                return Vec::new();
            }
            tails.retain(|r| !r.contains(at(offset)));
        }
    }
    tails
}

/// An entry of the table of relocations with explicit addends (`DT_RELA`).
struct Relocation {
    offset: u64,
    kind: u64,
    symbol: u64,
    addend: u64,
}

/// The words that the loader sets to the addresses of symbols, or that depend on other images in another way: all relocated words except those
/// of relative relocations. The file does not have their values. `None` if `afford` refuses the steps.
fn resolved(elf: &LoadedElf, afford: impl Fn(u64) -> bool) -> Option<Vec<AddrRange>> {
    let word = elf.memory.shape().ptr.bytes();
    let mut words = Vec::new();
    for r in relocations(elf) {
        afford(1).then_some(())?;
        if r.kind != 0 && Some(r.kind) != relative_kind(elf.machine) {
            let at = Addr(elf.image.bias.wrapping_add(r.offset));
            words.push(AddrRange::of(at, word));
        }
    }
    Some(ranges::union(words, 0))
}

/// The relocations of the image in `DT_RELA` and, for the procedure linkage table, in `DT_JMPREL`, each up to the first one that is missing from
/// the file. Does not read `DT_REL`, which 32-bit x86 and arm use.
fn relocations(elf: &LoadedElf) -> impl Iterator<Item = Relocation> {
    let word = elf.memory.shape().ptr.bytes();
    let entry = |tag: u64| elf_image::dynamic_entries(&elf.image, &elf.memory).find(|e| e.0 == tag).map(|e| e.1);
    let table = entry(DT_RELA).zip(entry(DT_RELA_SIZE));
    let of_plt = entry(DT_PLT).zip(entry(DT_PLT_SIZE)).filter(|_| entry(DT_PLT_TYPE) == Some(DT_RELA));
    let stride = word * 3;
    table.into_iter().chain(of_plt).flat_map(move |(table, size)| {
        (0..size / stride).map_while(move |i| {
            let at = Addr(elf.image.bias.wrapping_add(table)).element(i, stride);
            let info = elf.memory.word(at.plus(word)).ok()?;
            let (symbol, kind) = if word == 8 { (info >> 32, info & 0xffff_ffff) } else { (info >> 8, info & 0xff) };
            Some(Relocation { offset: elf.memory.word(at).ok()?, kind, symbol, addend: elf.memory.word(at.plus(word * 2)).ok()? })
        })
    })
}

/// Fills `copies` with the bytes of the image and applies relative relocations. Words with other relocations keep the file's contents. `None`
/// if `afford` refuses the steps.
fn relocated(elf: &LoadedElf, mut copies: Copies, afford: impl Fn(u64) -> bool) -> Option<Copies> {
    for (range, bytes) in copies.parts() {
        elf.memory.read(range.start, bytes).ok()?;
    }
    let shape = elf.memory.shape();
    let patch = |at: u64, n: u64| {
        let put = |place: &mut [u8], n: &[u8]| place.copy_from_slice(n);
        let [.., a, b, c, d] = n.to_be_bytes();
        match (shape.ptr, shape.endian) {
            (PtrSize::Eight, Endian::Little) => copies.at::<8>(Addr(at)).map(|p| put(p, &n.to_le_bytes())),
            (PtrSize::Eight, Endian::Big) => copies.at::<8>(Addr(at)).map(|p| put(p, &n.to_be_bytes())),
            (PtrSize::Four, Endian::Little) => copies.at::<4>(Addr(at)).map(|p| put(p, &[d, c, b, a])),
            (PtrSize::Four, Endian::Big) => copies.at::<4>(Addr(at)).map(|p| put(p, &[a, b, c, d])),
        };
    };
    each_relative(elf, afford, patch)?;
    Some(copies)
}

/// The type of the relative relocation (`R_*_RELATIVE` in `elf.h`) for the machine `e_machine`. The type must be compared, because relocations
/// for thread-local storage and indirect functions have no symbol either.
fn relative_kind(machine: u16) -> Option<u64> {
    Some(match machine {
        3 | 62 => 8,
        20 | 21 => 22,
        22 => 12,
        40 => 23,
        183 => 1027,
        243 | 258 => 3,
        _ => return None,
    })
}

/// Calls `patch` with the address and value of each pointer that a relative relocation sets. `None` if `afford` refuses the steps.
fn each_relative(elf: &LoadedElf, afford: impl Fn(u64) -> bool, mut patch: impl FnMut(u64, u64)) -> Option<()> {
    let word = elf.memory.shape().ptr.bytes();
    let entries: Vec<(u64, u64)> = elf_image::dynamic_entries(&elf.image, &elf.memory).collect();
    let value = |tag: u64| entries.iter().find(|e| e.0 == tag).map(|e| e.1);
    let bias = elf.image.bias;
    for r in relocations(elf) {
        afford(1).then_some(())?;
        if Some(r.kind) == relative_kind(elf.machine) {
            patch(bias.wrapping_add(r.offset), bias.wrapping_add(r.addend));
        }
    }
    if let (Some(table), Some(size)) = (value(DT_RELR), value(DT_RELR_SIZE)) {
        // Packed relative relocations. An even entry is the address of a pointer; an odd entry is a bitmap that says which of the next 63
        // words (31 in 32-bit images) are pointers.
        let mut next = 0u64;
        let mut relocate = |a: u64| {
            let at = bias.wrapping_add(a);
            if let Ok(n) = elf.memory.word(Addr(at)) {
                patch(at, bias.wrapping_add(n));
            }
        };
        for i in 0..size / word {
            let Ok(entry) = elf.memory.word(Addr(bias.wrapping_add(table)).element(i, word)) else { break };
            afford(u64::from(entry.count_ones())).then_some(())?;
            if entry & 1 == 0 {
                next = entry.wrapping_add(word);
                relocate(entry);
            } else {
                let bits = word * 8 - 1;
                (0..bits).filter(|b| entry >> (b + 1) & 1 == 1).for_each(|b| relocate(next.wrapping_add(b * word)));
                next = next.wrapping_add(bits * word);
            }
        }
    }
    Some(())
}

fn fill_pe(memory: &mut Memory, module: &Module, image: Option<&Image>, bytes: &Arc<Bytes>) -> Result<u64, Rejected> {
    let file = PeHeaders::parse(bytes).ok_or("not a readable PE image")?;
    let timestamp = module.timestamp.or_else(|| image.filter(|i| i.format == ImageFormat::Pe)?.timestamp);
    let timestamp = timestamp.ok_or_else(|| Rejected::Unverified("the dump does not record the module's time stamp".into()))?;
    if (file.timestamp, u64::from(file.size_of_image)) != (timestamp, module.size) {
        return Err(format!(
            "it has time stamp {:#x} and size {:#x}, but the process had loaded {timestamp:#x} and {:#x}",
            file.timestamp, file.size_of_image, module.size
        )
        .into());
    }
    let loaded = file.loaded(module.base).ok_or("its sections cannot be laid out")?;
    // The loader writes the addresses of imported functions into their table, which is often in a read-only section.
    let imports: Vec<AddrRange> = file.imports(module.base).into_iter().collect();
    let wanted = ranges::subtract(&ranges::union(loaded.iter().map(|s| s.range).collect(), 0), &imports);
    let Some(mut copies) = Copies::reserve(memory, wanted) else { return Ok(0) };
    for (range, copy) in copies.parts() {
        loaded.iter().for_each(|section| section.read(bytes, range, copy));
    }
    let relocated = file.relocate(bytes, module.base, &mut copies, |n| memory.afford_steps(n));
    Ok(relocated.map_or(0, |()| copies.fill(memory)))
}

/// Formats bytes as lower-case hexadecimal digits, as build IDs are usually written.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
