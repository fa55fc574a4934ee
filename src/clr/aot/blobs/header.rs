//! The ReadyToRun header, which lists a module's sections.
//!
//! Source of the layout and of its location: `ModuleHeaders.h`, `ReadyToRunHeaderNode.cs` of the runtime.

use std::sync::Arc;

use super::metadata::Split;
use super::reader::Section;
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, len64};
use crate::memory::{Image, ImageFormat, Memory};

// Section numbers. Source: `ReadyToRunSectionType` and `ReflectionMapBlob` of the runtime; the latter begins at 300.
pub(super) const GC_STATIC_REGION: u32 = 201;
#[cfg(feature = "internals")]
pub(super) const THREAD_STATIC_REGION: u32 = 202;
#[cfg(feature = "internals")]
pub(super) const FROZEN_OBJECTS: u32 = 206;
pub(super) const TYPE_MAP: u32 = 301;
pub(super) const COMMON_FIXUPS: u32 = 308;
pub(super) const METADATA: u32 = 313;
pub(super) const STACK_TRACE_METADATA: u32 = 326;
pub(super) const STACK_TRACE_METHODS: u32 = 327;
pub(super) const NATIVE_REFERENCES: u32 = 331;
pub(super) const NATIVE_STATICS: u32 = 333;
pub(super) const STATICS_INFO: u32 = 334;

/// The exported symbol that points to each module's header.
const MODULES: &str = "__modules";
const MAGIC: &[u8] = b"RTR\0";
/// Size of the fixed part of the header, in bytes.
const HEAD: u64 = 16;
/// Range of major versions. .NET 8 to 11 have 9, 10, 16 and 26. The version is a weak criterion; the shape of the table decides.
const VERSIONS: std::ops::RangeInclusive<u16> = 8..=32;
/// Maximum number of sections. .NET 9 has 34.
const MAX_SECTIONS: u64 = 128;
/// Cost of checking a match of the magic bytes in the opening's budget, in bytes.
const BYTES_OF_A_HIT: u64 = 256;

/// Address ranges of a module's sections.
#[derive(Clone, Debug)]
pub(super) struct Sections {
    /// Address of the header.
    pub(super) header: Addr,
    /// Number of kind bits in a reference to metadata.
    pub(super) split: Split,
    rows: Vec<(u32, AddrRange)>,
}

impl Sections {
    /// Finds the header of `image` through the export, otherwise by its magic bytes in writable memory, which contains it because its
    /// pointers were relocated. Windows relocates read-only memory as well, and has the header there.
    pub(super) fn find(memory: &Memory, image: &Image) -> Option<Sections> {
        // A match may be a coincidence, and a page of the search may be absent, so failed reads are not losses.
        tried(|| {
            let exported = image.export(memory, MODULES).and_then(|e| memory.ptr(e.address).ok());
            exported.and_then(|at| Sections::read(memory, image, at)).or_else(|| Sections::search(memory, image))
        })
    }

    fn search(memory: &Memory, image: &Image) -> Option<Sections> {
        let ranges = match image.format {
            ImageFormat::Elf => image.writable.as_slice(),
            ImageFormat::Pe => std::slice::from_ref(&image.range),
        };
        for range in ranges {
            for (start, bytes) in memory.stretches(*range) {
                memory.afford_bytes(len64(bytes.len()).saturating_add(BYTES_OF_A_HIT)).then_some(())?;
                for offset in memchr::memmem::find_iter(bytes, MAGIC) {
                    let at = start.plus(len64(offset));
                    memory.afford_bytes(BYTES_OF_A_HIT).then_some(())?;
                    if let Some(found) = Sections::read(memory, image, at) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    /// Reads the header at `at`; `None` if it does not look like one.
    fn read(memory: &Memory, image: &Image, at: Addr) -> Option<Sections> {
        let word = memory.ptr_bytes();
        let fits = at.is_aligned(word)
            && image.range.contains(at)
            && memory.bytes(at, len64(MAGIC.len())).ok()?.as_ref() == MAGIC
            && VERSIONS.contains(&memory.u16(at.plus(4)).ok()?);
        let count = u64::from(memory.u16(at.plus(12)).ok()?);
        let entry = u64::from(memory.u8(at.plus(14)).ok()?);
        // A row has id, flags, start and end; in .NET 11, id, length and start.
        let long = word.saturating_mul(2).saturating_add(8);
        let short = word.saturating_add(8);
        (fits && (1..=MAX_SECTIONS).contains(&count) && [long, short].contains(&entry)).then_some(())?;
        let mut rows = Vec::new();
        let mut last = 0;
        for i in 0..count {
            let row = at.plus(HEAD).element(i, entry);
            let (id, start) = (memory.u32(row).ok()?, memory.ptr(row.plus(8)).ok()?);
            let end = match memory.u32(row.plus(4)).ok()? {
                _ if entry == long => memory.ptr(row.plus(8).plus(word)).ok()?,
                0 => Addr::NULL,
                length => start.plus(length.into()),
            };
            // The section of a single item has no end. An empty section may be at the end of the image.
            let inside = |at: Addr| at >= image.range.start && at <= image.range.end;
            let single = end.is_null();
            (id > last && (start.is_null() || inside(start)) && (single || inside(end) && start <= end)).then_some(())?;
            last = id;
            if !single {
                rows.push((id, AddrRange::new(start, end)));
            }
        }
        let split = Split::of_version(memory.u16(at.plus(4)).ok()?);
        let sections = Sections { header: at, split, rows };
        [METADATA, TYPE_MAP].iter().all(|id| sections.get(*id).is_some()).then_some(sections)
    }

    /// Range of section `id`; `None` if the section does not exist or is empty.
    pub(super) fn get(&self, id: u32) -> Option<AddrRange> {
        let found = self.rows.iter().find(|(known, _)| *known == id)?.1;
        (!found.is_empty()).then_some(found)
    }

    /// A reader for section `id` in `tables`.
    pub(super) fn open(&self, tables: &Arc<Memory>, id: u32) -> Option<Section> {
        self.get(id).map(|range| Section::new(tables, range))
    }
}
