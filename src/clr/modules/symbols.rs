//! Portable PDBs of modules: embedded in the assembly, or separate files.
//!
//! An assembly identifies its PDB by a GUID and a stamp, in the CodeView record of its debug directory. Only a PDB with this identity is
//! used. Source: the runtime's specification of PE/COFF.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::DeflateDecoder;

use crate::base::{Addr, file_name, len64};
use crate::clr::metadata::Source;
use crate::clr::pdb::{Pdb, PdbId};
use crate::clr::pe::{DebugEntry, Headers};
use crate::clr::refusal::Refusal;
use crate::dump::Bytes;
use crate::memory::{ModuleFile, hex};

/// Types of debug directory entries: the CodeView record and the embedded PDB.
const CODE_VIEW: u32 = 2;
const EMBEDDED: u32 = 17;
/// Minor version of the CodeView entry of a portable PDB.
const PORTABLE: u16 = 0x504d;
/// Maximum size of a CodeView record in bytes. The record contains a path.
const MAX_CODE_VIEW: u64 = 4096;
/// Maximum factor by which an embedded PDB expands when it is decompressed. Real PDBs expand two to three times.
const MAX_RATIO: u64 = 16;
/// Maximum total size of the embedded PDBs in bytes. For dumps larger than this, the limit is the size of the dump.
const MAX_UNPACKED: u64 = 256 << 20;

/// The debug information of a module.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// The module's portable PDB.
    pub(crate) pdb: Option<Pdb>,
    /// Files that were found but rejected, with the reason.
    pub(crate) refused: Vec<(PathBuf, Refusal)>,
    /// Address of the embedded PDB, if neither the dump nor a file has its contents.
    pub(crate) absent: Option<Addr>,
}

/// The identity of an assembly's PDB.
pub(super) struct Named {
    pub(super) id: PdbId,
    /// File name of the PDB at compile time.
    pub(super) name: String,
}

/// An assembly, in the dump or in a file.
pub(super) struct Assembly {
    source: Source,
    flat: bool,
    entries: Vec<DebugEntry>,
}

impl Assembly {
    pub(super) fn read(source: Source, flat: impl FnOnce(&Headers, &Source) -> bool) -> Option<Assembly> {
        let headers = Headers::read(&source)?;
        let flat = flat(&headers, &source);
        let entries = headers.debug_directory(&source, flat)?;
        Some(Assembly { source, flat, entries })
    }

    /// Offset of the data of `entry`; `None` if the data is not mapped.
    pub(super) fn place(&self, entry: &DebugEntry) -> Option<u64> {
        let at = if self.flat { entry.raw } else { entry.rva };
        (at != 0).then_some(u64::from(at))
    }

    pub(super) fn named(&self) -> Option<Named> {
        let entry = self.entries.iter().find(|e| e.kind == CODE_VIEW && e.minor == PORTABLE)?;
        let bytes = self.source.bytes(self.place(entry)?, u64::from(entry.size).min(MAX_CODE_VIEW))?;
        let (guid, rest) = bytes.strip_prefix(b"RSDS")?.split_first_chunk::<16>()?;
        // The age (four bytes) precedes the path. It is 1 for all portable PDBs.
        let path = rest.get(4..)?.split(|b| *b == 0).next()?;
        let mut id = [0; 20];
        id.iter_mut().zip(guid.iter().chain(&entry.stamp.to_le_bytes())).for_each(|(to, from)| *to = *from);
        Some(Named { id, name: file_name(&String::from_utf8_lossy(path)).to_string() })
    }

    /// The debug directory entry of the embedded PDB.
    pub(super) fn embedded(&self) -> Option<&DebugEntry> {
        self.entries.iter().find(|e| e.kind == EMBEDDED)
    }

    /// Decompresses the embedded PDB, if `afford` accepts its size. `None` if the PDB or a part of it is absent, or if the PDB is corrupt.
    pub(super) fn unpack(&self, afford: impl FnOnce(u64) -> bool) -> Option<Pdb> {
        let entry = self.embedded()?;
        let packed = self.source.bytes(self.place(entry)?, u64::from(entry.size))?;
        let (size, stream) = packed.strip_prefix(b"MPDB")?.split_first_chunk::<4>()?;
        let size = u64::from(u32::from_le_bytes(*size));
        (size <= len64(stream.len()).saturating_mul(MAX_RATIO) && afford(size)).then_some(())?;
        let mut bytes = Vec::new();
        // One byte more than the size is read, because an additional byte shows that the size is wrong.
        DeflateDecoder::new(stream).take(size.checked_add(1)?).read_to_end(&mut bytes).ok()?;
        (len64(bytes.len()) == size).then_some(())?;
        let pdb = Pdb::open(Source::File { bytes: Arc::new(Bytes::Owned(bytes)), offset: 0, len: size }).ok()?;
        self.named().is_none_or(|named| named.id == pdb.id()).then_some(pdb)
    }
}

/// Remaining budget for embedded PDBs, in bytes.
#[derive(Debug)]
pub(super) struct Room(AtomicU64);

impl Room {
    /// The budget for a dump of `dump` bytes, under the user's limit `most`.
    pub(super) fn new(dump: u64, most: Option<u64>) -> Room {
        Room(AtomicU64::new(dump.max(MAX_UNPACKED).min(most.unwrap_or(u64::MAX))))
    }

    pub(super) fn take(&self, bytes: u64) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// Opens the PDB in `file`, which must have the identity `named`.
pub(super) fn try_file(file: &ModuleFile, named: Option<&Named>) -> Result<Pdb, Refusal> {
    let bytes = file.open()?;
    let len = len64(bytes.len());
    let pdb = Pdb::open(Source::File { bytes, offset: 0, len }).map_err(|_| "it is not a portable PDB")?;
    let named = named.ok_or_else(Refusal::unidentified)?;
    if pdb.id() != named.id {
        return Err(format!("its id is {}; the module's is {}", hex(&pdb.id()), hex(&named.id)).into());
    }
    Ok(pdb)
}

/// Reads `bytes` as a portable PDB, and as an assembly with an embedded PDB. Reads all data of the first `rows` methods and documents.
/// Returns the total length of the document names. Only fuzz targets call this function.
#[cfg(feature = "internals")]
pub fn try_symbols(bytes: Vec<u8>, rows: u32) -> usize {
    let len = len64(bytes.len());
    let bytes = Arc::new(Bytes::Owned(bytes));
    let source = || Source::File { bytes: Arc::clone(&bytes), offset: 0, len };
    let within = Assembly::read(source(), |_, _| true).and_then(|assembly| {
        let _ = assembly.named();
        assembly.unpack(|bytes| bytes <= len.saturating_mul(MAX_RATIO))
    });
    let mut named = 0usize;
    for pdb in Pdb::open(source()).ok().into_iter().chain(within) {
        for row in 0..rows {
            let _ = (pdb.id(), pdb.line(row, 0), pdb.line(row, u32::MAX), pdb.lines_bytes(row), pdb.local_signature(row));
            named = named
                .saturating_add(pdb.locals(row).iter().filter_map(|local| Some(local.name.as_ref()?.len())).fold(0, usize::saturating_add));
            named = named.saturating_add(pdb.document(row).map_or(0, |name| name.len()));
        }
    }
    named
}

#[cfg(test)]
#[path = "symbols_tests.rs"]
mod tests;
