//! The ReadyToRun header of a NativeAOT module, which lists the sections that contain the tables.
//!
//! Source of the layout and of its location: `ModuleHeaders.h`, `ReadyToRunHeaderNode.cs` of the runtime.

use std::sync::Arc;

use super::metadata::Split;
use super::reader::Section;
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, len64};
use crate::memory::{Image, ImageFormat, Memory};

// Section numbers. Source: `ReadyToRunSectionType` and `ReflectionMapBlob` of the runtime. Numbers from 300 on are those of `ReflectionMapBlob`.
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
/// Accepted major versions; .NET 8 to 11 have 9, 10, 16 and 26. The range is wide, because the other checks in [`Sections::read`] decide.
const VERSIONS: std::ops::RangeInclusive<u16> = 8..=32;
/// Maximum number of sections. .NET 9 has 34.
const MAX_SECTIONS: u64 = 128;
/// Number of bytes that checking one match of the magic bytes charges to the budget for opening the dump.
const BYTES_OF_A_HIT: u64 = 256;

/// Address ranges of a module's sections.
#[derive(Clone, Debug)]
pub(super) struct Sections {
    /// Address of the header.
    pub(super) header: Addr,
    /// The division of references to metadata into kind and offset.
    pub(super) split: Split,
    /// The first row of the header that is not in the dump.
    pub(super) lost: Option<Addr>,
    rows: Vec<(u32, AddrRange)>,
}

impl Sections {
    /// Finds the header of `image` through the exported symbol, otherwise by its magic bytes. On Unix, only writable memory is searched: the
    /// header is there because its pointers are relocated. On Windows, the header is in read-only memory, so the whole image is searched.
    pub(super) fn find(memory: &Memory, image: &Image) -> Option<Sections> {
        // Failed reads are not reported, because a match may be a coincidence, and pages of the searched range may be absent.
        tried(|| {
            let exported = image.export(memory, MODULES).and_then(|e| memory.ptr(e.address).ok());
            exported.and_then(|at| Sections::read(memory, image, at)).or_else(|| Sections::search(memory, image))
        })
    }

    /// The address of a header that a complete dump of this kind would contain.
    pub(super) fn lost_header(memory: &Memory, image: &Image) -> Option<Addr> {
        let exported = tried(|| memory.ptr(image.export(memory, MODULES)?.address).ok())?;
        let head = AddrRange::of(exported, HEAD);
        (image.range.contains(exported) && tried(|| memory.bytes(exported, HEAD).is_err()) && memory.is_lost(head)).then_some(exported)
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

    /// Reads the header at `at`; `None` if the bytes there are not a valid header.
    fn read(memory: &Memory, image: &Image, at: Addr) -> Option<Sections> {
        let word = memory.ptr_bytes();
        let fits = at.is_aligned(word)
            && image.range.contains(at)
            && memory.bytes(at, len64(MAGIC.len())).ok()?.as_ref() == MAGIC
            && VERSIONS.contains(&memory.u16(at.plus(4)).ok()?);
        let count = u64::from(memory.u16(at.plus(12)).ok()?);
        let entry = u64::from(memory.u8(at.plus(14)).ok()?);
        // A row consists of id, flags, start and end; in .NET 11, of id, length and start.
        let long = word.saturating_mul(2).saturating_add(8);
        let short = word.saturating_add(8);
        (fits && (1..=MAX_SECTIONS).contains(&count) && [long, short].contains(&entry)).then_some(())?;
        let read = |row: Addr| {
            let (id, start) = (memory.u32(row).ok()?, memory.ptr(row.plus(8)).ok()?);
            let end = match memory.u32(row.plus(4)).ok()? {
                _ if entry == long => memory.ptr(row.plus(8).plus(word)).ok()?,
                0 => Addr::NULL,
                length => start.plus(length.into()),
            };
            Some((id, start, end))
        };
        let (mut rows, mut lost, mut missing) = (Vec::new(), None, 0u64);
        let mut last = 0;
        for i in 0..count {
            let row = at.plus(HEAD).element(i, entry);
            let Some((id, start, end)) = read(row) else {
                (lost, missing) = (lost.or(Some(row)), missing.saturating_add(1));
                continue;
            };
            // A null end means that the section is a single item; such sections are not kept. An empty section may be at the end of the
            // image.
            let inside = |at: Addr| at >= image.range.start && at <= image.range.end;
            let single = end.is_null();
            (id > last && (start.is_null() || inside(start)) && (single || inside(end) && start <= end)).then_some(())?;
            last = id;
            if !single {
                rows.push((id, AddrRange::new(start, end)));
            }
        }
        let split = Split::of_version(memory.u16(at.plus(4)).ok()?);
        let sections = Sections { header: at, split, lost, rows };
        // Without some rows, the others still prove that this is a header.
        let has_tables = [METADATA, TYPE_MAP].iter().all(|id| sections.get(*id).is_some());
        (has_tables || missing > 0 && missing < count / 2).then_some(sections)
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
