//! Access to the streams of a minidump, and to the lists in them.

use std::path::Path;

use super::fields::Fields;
use super::{DumpError, LostLists};
use crate::base::hash::Map;
use crate::base::{Addr, Limits, thousands};

/// Types of the streams that are read.
pub(super) mod stream {
    pub(in crate::dump) const THREADS: u32 = 3;
    pub(in crate::dump) const MODULES: u32 = 4;
    pub(in crate::dump) const MEMORY: u32 = 5;
    pub(in crate::dump) const EXCEPTION: u32 = 6;
    pub(in crate::dump) const SYSTEM: u32 = 7;
    pub(in crate::dump) const MEMORY64: u32 = 9;
    pub(in crate::dump) const MISC: u32 = 15;
    pub(in crate::dump) const MEMORY_INFO: u32 = 16;
    pub(in crate::dump) const THREAD_NAMES: u32 = 24;
    /// The stream that `gcdump trim` adds: 32-bit flags, where 1 means redacted. Types above 0xffff are reserved for applications.
    pub(in crate::dump) const TRIM: u32 = 0x6763_0001;
    /// The stream that `gcdump trim` adds if the original is incomplete (`losses::Original`).
    pub(in crate::dump) const ORIGINAL: u32 = 0x6763_0002;

    /// All of these types.
    pub(super) const READ: [u32; 11] =
        [THREADS, MODULES, MEMORY, EXCEPTION, SYSTEM, MEMORY64, MISC, MEMORY_INFO, THREAD_NAMES, TRIM, ORIGINAL];
}

/// A minidump being read.
pub(super) struct Reading<'a> {
    /// The whole file.
    pub(super) file: Fields<'a>,
    /// The highest address of the process, also a mask that removes the sign extension of addresses in 32-bit dumps. `u64::MAX` until the
    /// architecture is known.
    pub(super) max_address: u64,
    /// Limits on what is read.
    pub(super) limits: &'a Limits,
    /// Irregularities, one sentence each.
    pub(super) oddities: Vec<String>,
    /// Lists that are missing or incomplete.
    pub(super) lost: LostLists,
    /// File offset and length of each stream that is read, by type.
    pub(super) streams: Map<u32, (u64, u64)>,
}

impl<'a> Reading<'a> {
    /// The bytes of a stream, cut at the end of the file. `None` if the stream does not exist. A truncated stream is reported as an irregularity.
    pub(super) fn stream(&mut self, kind: u32, name: &str) -> Option<Fields<'a>> {
        let (offset, len) = *self.streams.get(&kind)?;
        let bytes = Fields::new(self.file.clamped(offset, len), self.file.endian);
        if bytes.len() < len {
            self.oddities.push(format!("the {name} is truncated: the file holds {} of {} bytes", thousands(bytes.len()), thousands(len)));
            self.lose(kind);
        }
        Some(bytes)
    }

    /// Records that the stream of this type is missing or incomplete.
    pub(super) fn lose(&mut self, kind: u32) {
        match kind {
            stream::MODULES => self.lost.modules = true,
            stream::THREADS | stream::THREAD_NAMES => self.lost.threads = true,
            stream::SYSTEM => self.lost.system = true,
            stream::MISC => self.lost.process = true,
            stream::MEMORY_INFO => self.lost.regions = true,
            stream::EXCEPTION => self.lost.crash = true,
            _ => {}
        }
    }

    /// Offset of the entries of a list that starts with a 32-bit count, and the number of entries that the stream contains. Some writers align
    /// the entries to 8 bytes.
    pub(super) fn list(&mut self, stream: Fields<'_>, entry: u64, (kind, name): (u32, &str)) -> (u64, u64) {
        let Some(declared) = stream.u32(0).map(u64::from) else {
            if stream.len() > 0 {
                self.oddities.push(format!("the {name} is unreadable"));
            }
            self.lose(kind);
            return (0, 0);
        };
        let start = if stream.len() == declared.saturating_mul(entry).saturating_add(8) { 8 } else { 4 };
        let room = stream.len().saturating_sub(start).checked_div(entry).unwrap_or(0);
        if declared > room {
            self.oddities.push(format!("the {name} holds {room} of its {declared} entries"));
            self.lose(kind);
        }
        // Writers make these streams as long as their lists.
        if declared < room && matches!(kind, stream::MODULES | stream::THREADS) {
            self.oddities.push(format!("the {name} has a count of {declared}, but room for {room} entries"));
            self.lose(kind);
        }
        (start, declared.min(room))
    }

    /// An address without the sign extension that 32-bit dumps may have.
    pub(super) fn addr(&self, address: u64) -> Addr {
        Addr(address & self.max_address)
    }

    /// Reads the stream directory of `file`.
    pub(super) fn begin(file: Fields<'a>, path: &Path, limits: &'a Limits) -> Result<Reading<'a>, DumpError> {
        let mut reading =
            Reading { file, max_address: u64::MAX, limits, oddities: Vec::new(), lost: LostLists::default(), streams: Map::default() };
        directory(&mut reading, path)?;
        Ok(reading)
    }
}

/// Reads the stream directory. Of several streams with the same type, the first is used.
fn directory(reading: &mut Reading<'_>, path: &Path) -> Result<(), DumpError> {
    const HEADER: u64 = 32;
    const ENTRY: u64 = 12;
    let file = reading.file;
    let truncated = |what, need| DumpError::Truncated { path: path.to_owned(), what, need, have: file.len() };
    let (Some(version), Some(declared), Some(at), Some(_)) = (file.u32(4), file.u32(8), file.u32(12), file.u64(24)) else {
        return Err(truncated("the minidump header", HEADER));
    };
    if version & 0xffff != 0xa793 {
        reading.oddities.push(format!("the minidump version is {:#x}, expected 0xa793", version & 0xffff));
    }
    if declared == 0 {
        let what = "the minidump has no streams; it was probably not completely written".to_owned();
        return Err(DumpError::Malformed { path: path.to_owned(), what, offset: 8 });
    }
    let (declared, at) = (u64::from(declared), u64::from(at));
    let room = file.len().saturating_sub(at).checked_div(ENTRY).unwrap_or(0);
    if room == 0 {
        return Err(truncated("the minidump directory", at.saturating_add(declared.saturating_mul(ENTRY))));
    }
    if declared > room {
        reading.oddities.push(format!("the minidump directory is truncated: the file holds {room} of {declared} entries"));
        reading.lost = LostLists { modules: true, threads: true, process: true, regions: true, crash: true, system: reading.lost.system };
    }
    for index in 0..declared.min(room) {
        let entry = at.saturating_add(index.saturating_mul(ENTRY));
        let (Some(kind), Some(len), Some(offset)) = (file.u32(entry), file.u32(entry.saturating_add(4)), file.u32(entry.saturating_add(8)))
        else {
            break;
        };
        // A forged directory may have millions of other types.
        if stream::READ.contains(&kind) {
            // The header of the file is in front of all streams.
            if u64::from(offset) < HEADER && len > 0 {
                reading.oddities.push(format!("the stream of type {kind} is said to be at offset {offset}, in the header of the file"));
                reading.lose(kind);
                continue;
            }
            reading.streams.entry(kind).or_insert((u64::from(offset), u64::from(len)));
        }
    }
    Ok(())
}
