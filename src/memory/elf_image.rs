//! ELF images in memory: program headers, build ID, symbol lookup through `DT_GNU_HASH`.
//!
//! Source of the layouts: System V ABI, and the GNU hash section as glibc and lld write it.

use super::image::{Export, Image, ImageFormat};
use super::symbols::{Nearest, Section};
use super::{Memory, ReadError};
use crate::base::{Addr, AddrRange, PtrSize, Shape, len64};

/// Cap on program headers. libcoreclr has 9.
pub(super) const MAX_PROGRAM_HEADERS: u64 = 256;
/// Cap on the notes of one PT_NOTE.
const MAX_NOTES: usize = 64;
/// Cap on entries of the dynamic section. libcoreclr has about 35.
const MAX_DYNAMIC: u64 = 512;
/// Cap on the number of symbols in one chain of the hash table.
const MAX_CHAIN: u64 = 100_000;
/// Cap on the buckets of a hash table that are read to list all symbols. libcoreclr has 16 buckets, large C++ libraries about ten thousand.
const MAX_BUCKETS: u64 = 1 << 20;
/// Cap on exported symbols. libcoreclr has about 40.
const MAX_SYMBOLS: u64 = 1 << 20;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_NOTE: u32 = 4;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PT_GNU_RELRO: u32 = 0x6474_e552;
const PF_X: u32 = 1;
const PF_W: u32 = 2;
const PF_R: u32 = 4;
/// Type of symbols of thread-local variables, whose values are not addresses.
const STT_TLS: u8 = 6;
const NT_GNU_BUILD_ID: u32 = 3;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_SONAME: u64 = 14;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// A program header of an image in memory.
#[derive(Clone, Copy, Debug)]
struct Segment {
    kind: u32,
    flags: u32,
    vaddr: u64,
    mem_size: u64,
    /// Number of bytes that come from the file (`p_filesz`). `None` if a trimmed dump does not contain this field.
    file_size: Option<u64>,
}

pub(super) fn read(memory: &Memory, base: Addr) -> Option<Image> {
    let class = memory.u8(base.plus(4)).ok()?;
    let ptr = if class == 1 { PtrSize::Four } else { PtrSize::Eight };
    if ptr != memory.shape().ptr {
        return None;
    }
    let segments = segments(memory, base).ok()?;
    memory.afford_steps(len64(segments.len()).saturating_mul(2)).then_some(())?;
    let loads = || segments.iter().filter(|s| s.kind == PT_LOAD);
    let bias = base.0.wrapping_sub(loads().map(|s| s.vaddr).min()? & !0xfff);
    let range_of = |s: &Segment| {
        let start = Addr(bias.wrapping_add(s.vaddr));
        AddrRange::of(start, s.mem_size)
    };
    let end = loads().map(|s| range_of(s).end).max()?;
    let build_id = segments.iter().filter(|s| s.kind == PT_NOTE).find_map(|s| build_id(memory, range_of(s)));
    Some(Image {
        base,
        format: ImageFormat::Elf,
        range: AddrRange::new(base, end),
        writable: loads().filter(|s| s.flags & PF_W != 0).map(range_of).collect(),
        relocated: segments.iter().filter(|s| s.kind == PT_GNU_RELRO).map(range_of).collect(),
        build_id,
        timestamp: None,
        bias,
        exports: segments.iter().find(|s| s.kind == PT_DYNAMIC).map(range_of),
    })
}

fn segments(memory: &Memory, base: Addr) -> Result<Vec<Segment>, ReadError> {
    let (phoff, phentsize_at) = match memory.shape().ptr {
        PtrSize::Four => (u64::from(memory.u32(base.plus(28))?), 42),
        PtrSize::Eight => (memory.u64(base.plus(32))?, 54),
    };
    let entry = u64::from(memory.u16(base.plus(phentsize_at))?);
    let count = u64::from(memory.u16(base.plus(phentsize_at + 2))?).min(MAX_PROGRAM_HEADERS);
    (0..count)
        .map(|i| {
            let at = base.plus(phoff).element(i, entry);
            Ok(match memory.shape().ptr {
                PtrSize::Four => Segment {
                    kind: memory.u32(at)?,
                    flags: memory.u32(at.plus(24))?,
                    vaddr: u64::from(memory.u32(at.plus(8))?),
                    mem_size: u64::from(memory.u32(at.plus(20))?),
                    file_size: memory.u32(at.plus(16)).ok().map(u64::from),
                },
                PtrSize::Eight => Segment {
                    kind: memory.u32(at)?,
                    flags: memory.u32(at.plus(4))?,
                    vaddr: memory.u64(at.plus(16))?,
                    mem_size: memory.u64(at.plus(40))?,
                    file_size: memory.u64(at.plus(32)).ok(),
                },
            })
        })
        .collect()
}

fn build_id(memory: &Memory, notes: AddrRange) -> Option<Vec<u8>> {
    let mut at = notes.start;
    for _ in 0..MAX_NOTES {
        if at >= notes.end || !memory.afford_steps(1) {
            return None;
        }
        let name_len = u64::from(memory.u32(at).ok()?);
        let desc_len = u64::from(memory.u32(at.plus(4)).ok()?);
        let kind = memory.u32(at.plus(8)).ok()?;
        let name = at.plus(12);
        let desc = name.plus(name_len.next_multiple_of(4));
        if kind == NT_GNU_BUILD_ID && name_len == 4 && memory.bytes(name, 4).ok()?.as_ref() == b"GNU\0" {
            return memory.bytes(desc, desc_len.min(64)).ok().map(|b| b.into_owned());
        }
        at = desc.plus(desc_len.next_multiple_of(4));
    }
    None
}

/// The parts of the `PT_LOAD` segments of an image. The part of a segment that is in the file is named by the permissions, the rest `bss`.
pub(super) fn sections(image: &Image, memory: &Memory) -> Vec<Section> {
    let mut out = Vec::new();
    for s in segments(memory, image.base).unwrap_or_default().into_iter().filter(|s| s.kind == PT_LOAD) {
        let start = Addr(image.bias.wrapping_add(s.vaddr));
        let (file_end, end) = (start.plus(s.file_size.unwrap_or(s.mem_size).min(s.mem_size)), start.plus(s.mem_size));
        let name = [(PF_R, 'r'), (PF_W, 'w'), (PF_X, 'x')].map(|(bit, c)| if s.flags & bit != 0 { c } else { '-' });
        out.push(Section { name: name.iter().collect(), range: AddrRange::new(start, file_end) });
        out.push(Section { name: "bss".into(), range: AddrRange::new(file_end, end) });
    }
    out
}

/// The range of `.eh_frame_hdr` (`PT_GNU_EH_FRAME`), if the image has one.
pub(super) fn unwind_table(image: &Image, memory: &Memory) -> Result<Option<AddrRange>, ReadError> {
    let found = segments(memory, image.base)?.into_iter().find(|s| s.kind == PT_GNU_EH_FRAME);
    Ok(found.map(|s| {
        let start = Addr(image.bias.wrapping_add(s.vaddr));
        AddrRange::of(start, s.mem_size)
    }))
}

/// Passes every exported symbol to `nearest`. Returns whether some exports may be missing because parts of the tables are not in the dump.
pub(super) fn each_export(image: &Image, memory: &Memory, nearest: &mut Nearest) -> bool {
    if image.exports.is_none() {
        return false;
    }
    let Some((tables, symbols)) = Tables::read(image, memory).and_then(|t| t.exported(memory).map(|s| (t, s))) else { return true };
    let mut incomplete = false;
    for index in symbols {
        match tables.defined(memory, index) {
            Some(Some((value, name))) => nearest.meet(Addr(image.bias.wrapping_add(value)), name),
            Some(None) => {}
            None => incomplete = true,
        }
    }
    incomplete
}

/// The *(tag, value)* entries of the dynamic section, up to `DT_NULL` or the first absent entry.
pub(super) fn dynamic_entries(image: &Image, memory: &Memory) -> impl Iterator<Item = (u64, u64)> {
    let word = memory.ptr_bytes();
    let start = image.exports.map(|dynamic| dynamic.start);
    (0..MAX_DYNAMIC).map_while(move |i| {
        let entry = start.filter(|_| memory.afford_steps(1))?.element(i, word * 2);
        let tag = memory.word(entry).ok().filter(|tag| *tag != 0)?;
        Some((tag, memory.word(entry.plus(word)).ok()?))
    })
}

/// The `DT_SONAME` of a library, at most `cap` bytes.
pub(super) fn own_name(image: &Image, memory: &Memory, cap: u64) -> Option<String> {
    let entries: Vec<(u64, u64)> = dynamic_entries(image, memory).collect();
    let value = |tag: u64| entries.iter().find(|e| e.0 == tag).map(|e| e.1);
    let at = relocated(image, value(DT_STRTAB)?).plus(value(DT_SONAME)?);
    memory.text(at, cap).ok().filter(|name| !name.is_empty())
}

/// The address that an entry of the dynamic section refers to. glibc relocates these entries in place, and musl leaves the link-time addresses.
/// A value below the load address is taken as a link-time address.
fn relocated(image: &Image, value: u64) -> Addr {
    if value < image.base.0 { Addr(image.bias.wrapping_add(value)) } else { Addr(value) }
}

pub(super) fn export(image: &Image, memory: &Memory, name: &str) -> Option<Export> {
    let tables = Tables::read(image, memory)?;
    let index = tables.find(memory, name)?;
    let shape = memory.shape();
    let symbol = tables.symbol(shape, index);
    let (value, size) = match shape.ptr {
        PtrSize::Four => (u64::from(memory.u32(symbol.plus(4)).ok()?), u64::from(memory.u32(symbol.plus(8)).ok()?)),
        PtrSize::Eight => (memory.u64(symbol.plus(8)).ok()?, memory.u64(symbol.plus(16)).ok()?),
    };
    Some(Export { address: Addr(image.bias.wrapping_add(value)), size: Some(size).filter(|s| *s != 0) })
}

/// Addresses of the tables for symbol lookup.
#[derive(Debug)]
struct Tables {
    hash: Addr,
    symbols: Addr,
    strings: Addr,
}

impl Tables {
    fn read(image: &Image, memory: &Memory) -> Option<Tables> {
        let (mut hash, mut symbols, mut strings) = (None, None, None);
        for (tag, value) in dynamic_entries(image, memory) {
            let address = relocated(image, value);
            match tag {
                DT_STRTAB => strings = Some(address),
                DT_SYMTAB => symbols = Some(address),
                DT_GNU_HASH => hash = Some(address),
                _ => {}
            }
        }
        Some(Tables { hash: hash?, symbols: symbols?, strings: strings? })
    }

    fn symbol(&self, shape: Shape, index: u64) -> Addr {
        let size = match shape.ptr {
            PtrSize::Four => 16,
            PtrSize::Eight => 24,
        };
        self.symbols.element(index, size)
    }

    /// The value of a symbol and the address of its name. `Some(None)` if the image imports the symbol, or if the symbol is thread-local; `None`
    /// if the symbol table entry is absent from the dump.
    fn defined(&self, memory: &Memory, index: u64) -> Option<Option<(u64, Addr)>> {
        let at = self.symbol(memory.shape(), index);
        let name = self.strings.plus(u64::from(memory.u32(at).ok()?));
        let (value, info, section) = match memory.shape().ptr {
            PtrSize::Four => (u64::from(memory.u32(at.plus(4)).ok()?), memory.u8(at.plus(12)).ok()?, memory.u16(at.plus(14)).ok()?),
            PtrSize::Eight => (memory.u64(at.plus(8)).ok()?, memory.u8(at.plus(4)).ok()?, memory.u16(at.plus(6)).ok()?),
        };
        Some((section != 0 && info & 0xf != STT_TLS).then_some((value, name)))
    }

    /// Indices of the symbols in the hash table; `None` if a part of the table is absent or a chain is longer than [`MAX_CHAIN`].
    fn exported(&self, memory: &Memory) -> Option<std::ops::Range<u64>> {
        let (buckets, first, bucket_table) = self.buckets(memory)?;
        let mut last = 0;
        for i in 0..buckets.min(MAX_BUCKETS) {
            last = last.max(u64::from(memory.u32(bucket_table.element(i, 4)).ok()?));
        }
        if last < first {
            return Some(first..first);
        }
        // The buckets contain the first symbol of each chain, so the chain with the highest first symbol ends with the last symbol.
        let chains = bucket_table.element(buckets, 4);
        for _ in 0..MAX_CHAIN {
            let end = memory.u32(chains.element(last.checked_sub(first)?, 4)).ok()? & 1 == 1;
            last = last.checked_add(1)?;
            if end {
                return Some(first..last.min(first.saturating_add(MAX_SYMBOLS)));
            }
        }
        None
    }

    /// The number of buckets, the index of the first symbol in the hash table, and the address of the buckets.
    fn buckets(&self, memory: &Memory) -> Option<(u64, u64, Addr)> {
        let buckets = u64::from(memory.u32(self.hash).ok()?);
        let first_symbol = u64::from(memory.u32(self.hash.plus(4)).ok()?);
        let bloom_words = u64::from(memory.u32(self.hash.plus(8)).ok()?);
        // The Bloom filter is skipped, because it only speeds up failing lookups and may be absent from the dump.
        (buckets != 0).then(|| (buckets, first_symbol, self.hash.plus(16).element(bloom_words, memory.ptr_bytes())))
    }

    fn find(&self, memory: &Memory, name: &str) -> Option<u64> {
        let (buckets, first_symbol, bucket_table) = self.buckets(memory)?;
        let chains = bucket_table.element(buckets, 4);
        let wanted = gnu_hash(name);
        let mut index = u64::from(memory.u32(bucket_table.element(u64::from(wanted) % buckets, 4)).ok()?);
        for _ in 0..MAX_CHAIN {
            memory.afford_steps(1).then_some(())?;
            let link = index.checked_sub(first_symbol)?;
            let hash = memory.u32(chains.element(link, 4)).ok()?;
            if hash | 1 == wanted | 1 && self.name_is(memory, index, name) {
                return Some(index);
            }
            if hash & 1 == 1 {
                return None;
            }
            index = index.checked_add(1)?;
        }
        None
    }

    fn name_is(&self, memory: &Memory, index: u64, name: &str) -> bool {
        let Ok(offset) = memory.u32(self.symbol(memory.shape(), index)) else { return false };
        let len = u64::try_from(name.len()).unwrap_or(u64::MAX);
        let at = self.strings.plus(u64::from(offset));
        memory.bytes(at, len.saturating_add(1)).is_ok_and(|b| b.strip_suffix(&[0]) == Some(name.as_bytes()))
    }
}

fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381u32, |h, b| h.wrapping_mul(33).wrapping_add(u32::from(b)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn hash_matches_glibc() {
        // Known values of the GNU hash: "" and "printf" (binutils documentation).
        assert_eq!(super::gnu_hash(""), 0x0000_1505);
        assert_eq!(super::gnu_hash("printf"), 0x156b_2bb8);
    }
}
