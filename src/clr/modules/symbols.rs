//! Portable PDBs of modules: within the assembly, or files of their own.
//!
//! An assembly names its PDB by a GUID and a stamp, in the CodeView entry of its debug directory. Only a PDB with this identity is
//! used. Source: the runtime's specification of PE/COFF.

use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use flate2::read::DeflateDecoder;

use super::{LoadedImage, MAX_IMAGE, Modules, Reader};
use crate::base::missed::tried;
use crate::base::{Addr, file_name, len64};
use crate::clr::metadata::Source;
use crate::clr::pdb::{Pdb, PdbId};
use crate::clr::pe::{DebugEntry, Headers};
use crate::dump::Bytes;
use crate::memory::{FileId, ModuleFile, hex};

/// Types of entries of the debug directory: the identity of the PDB, the PDB itself.
const CODE_VIEW: u32 = 2;
const EMBEDDED: u32 = 17;
/// Minor version of a CodeView entry that names a portable PDB.
const PORTABLE: u16 = 0x504d;
/// Most bytes of a CodeView entry: a path.
const MAX_CODE_VIEW: u64 = 4096;
/// Bytes that a PDB within an assembly may have for each byte of its packed form; real ones have two or three.
const MAX_RATIO: u64 = 16;
/// Bytes that all of them together may have, or as many as the dump.
const MAX_UNPACKED: u64 = 256 << 20;

/// The debug information of a module.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// The module's portable PDB.
    pub(crate) pdb: Option<Pdb>,
    /// Files found but not used, with the reason.
    pub(crate) refused: Vec<(PathBuf, String)>,
    /// Where the assembly holds a PDB that is not in the dump, nor the assembly's file found.
    pub(crate) absent: Option<Addr>,
}

/// What an assembly says of its PDB.
struct Named {
    id: PdbId,
    /// File name when it was compiled.
    name: String,
}

/// An assembly, in the dump or in a file.
struct Assembly {
    source: Source,
    flat: bool,
    entries: Vec<DebugEntry>,
}

impl Assembly {
    fn read(source: Source, flat: impl FnOnce(&Headers, &Source) -> bool) -> Option<Assembly> {
        let headers = Headers::read(&source)?;
        let flat = flat(&headers, &source);
        let entries = headers.debug_directory(&source, flat)?;
        Some(Assembly { source, flat, entries })
    }

    /// Where the data of `entry` is; `None` if it is not mapped.
    fn place(&self, entry: &DebugEntry) -> Option<u64> {
        let at = if self.flat { entry.raw } else { entry.rva };
        (at != 0).then_some(u64::from(at))
    }

    fn named(&self) -> Option<Named> {
        let entry = self.entries.iter().find(|e| e.kind == CODE_VIEW && e.minor == PORTABLE)?;
        let bytes = self.source.bytes(self.place(entry)?, u64::from(entry.size).min(MAX_CODE_VIEW))?;
        let (guid, rest) = bytes.strip_prefix(b"RSDS")?.split_first_chunk::<16>()?;
        // The age, 1 for all portable PDBs, then the path.
        let path = rest.get(4..)?.split(|b| *b == 0).next()?;
        let mut id = [0; 20];
        id.iter_mut().zip(guid.iter().chain(&entry.stamp.to_le_bytes())).for_each(|(to, from)| *to = *from);
        Some(Named { id, name: file_name(&String::from_utf8_lossy(path)).to_string() })
    }

    /// The entry with the PDB within the assembly.
    fn embedded(&self) -> Option<&DebugEntry> {
        self.entries.iter().find(|e| e.kind == EMBEDDED)
    }

    /// The PDB within the assembly, unpacked if `afford` allows its size; `None` if there is none, a part of it is absent, or it is
    /// corrupt.
    fn unpack(&self, afford: impl FnOnce(u64) -> bool) -> Option<Pdb> {
        let entry = self.embedded()?;
        let packed = self.source.bytes(self.place(entry)?, u64::from(entry.size))?;
        let (size, stream) = packed.strip_prefix(b"MPDB")?.split_first_chunk::<4>()?;
        let size = u64::from(u32::from_le_bytes(*size));
        (size <= len64(stream.len()).saturating_mul(MAX_RATIO) && afford(size)).then_some(())?;
        let mut bytes = Vec::new();
        // One byte more would show a wrong size.
        DeflateDecoder::new(stream).take(size.checked_add(1)?).read_to_end(&mut bytes).ok()?;
        (len64(bytes.len()) == size).then_some(())?;
        let pdb = Pdb::open(Source::File { bytes: Arc::new(Bytes::Owned(bytes)), offset: 0, len: size }).ok()?;
        self.named().is_none_or(|named| named.id == pdb.id()).then_some(pdb)
    }
}

/// What may yet be taken for PDBs within assemblies, in bytes.
#[derive(Debug)]
pub(super) struct Room(AtomicU64);

impl Room {
    /// That of a session whose dump has `dump` bytes, under the user's limit `most`.
    pub(super) fn new(dump: u64, most: Option<u64>) -> Room {
        Room(AtomicU64::new(dump.max(MAX_UNPACKED).min(most.unwrap_or(u64::MAX))))
    }

    fn take(&self, bytes: u64) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

impl Modules {
    /// The debug information of the module at `address`. Never fails: what is missing is absent.
    pub(crate) fn symbols(&self, address: Addr) -> Arc<Symbols> {
        let reader = &self.reader;
        if let Some(known) = reader.symbols.lock().unwrap_or_else(PoisonError::into_inner).get(&address) {
            return Arc::clone(known);
        }
        // That lines are missing is told by who asks for them.
        let found = Arc::new(tried(|| reader.find_symbols(address)));
        let mut known = reader.symbols.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= reader.most {
            return found;
        }
        Arc::clone(known.entry(address).or_insert(found))
    }
}

impl Modules {
    /// The portable PDB that the module at `address` names, in the dump or in its file: its identity and its name.
    pub(crate) fn pdb_named(&self, address: Addr) -> Option<(FileId, String)> {
        let reader = &self.reader;
        tried(|| {
            let image = reader.image_of(address)?;
            let loaded = reader.assembly_in_memory(image).and_then(|a| a.named());
            let named = loaded.or_else(|| {
                let bytes = reader.usable_file(address, image)?.open().ok()?;
                let len = len64(bytes.len());
                Assembly::read(Source::File { bytes, offset: 0, len }, |_, _| true)?.named()
            })?;
            Some((FileId::Pdb(named.id), named.name))
        })
    }
}

impl Reader {
    fn find_symbols(&self, address: Addr) -> Symbols {
        let mut out = Symbols::default();
        let Some(image) = self.image_of(address) else { return out };
        let loaded = self.assembly_in_memory(image);
        let embedded = |a: &Assembly| a.unpack(|bytes| self.room.take(bytes));
        if let Some(pdb) = loaded.as_ref().and_then(embedded) {
            out.pdb = Some(pdb);
            return out;
        }
        let file = self.usable_file(address, image).and_then(|file| {
            let bytes = file.open().ok()?;
            let len = len64(bytes.len());
            Assembly::read(Source::File { bytes, offset: 0, len }, |_, _| true)
        });
        if let Some(pdb) = file.as_ref().and_then(embedded) {
            out.pdb = Some(pdb);
            return out;
        }
        out.absent = loaded.as_ref().filter(|_| file.is_none()).and_then(|a| Some(image.base.plus(a.place(a.embedded()?)?)));
        let named = loaded.as_ref().and_then(Assembly::named).or_else(|| file.as_ref().and_then(Assembly::named));
        for file in self.symbol_files(address, named.as_ref()) {
            match try_file(&file, named.as_ref()) {
                Ok(pdb) => {
                    out.pdb = Some(pdb);
                    out.refused.clear();
                    break;
                }
                Err(_) if file.place().is_shared() => {}
                Err(why) => out.refused.push((file.path().into(), why)),
            }
        }
        out
    }

    fn assembly_in_memory(&self, image: LoadedImage) -> Option<Assembly> {
        let source = Source::Memory { memory: Arc::clone(&self.memory), base: image.base, len: MAX_IMAGE };
        Assembly::read(source, Headers::is_flat)
    }

    /// Files that may be the PDB of the module at `address`, best first.
    fn symbol_files(&self, address: Addr, named: Option<&Named>) -> Vec<ModuleFile> {
        let (Some(search), module) = (&self.search, self.get(address)) else { return Vec::new() };
        let id = named.map(|named| FileId::Pdb(named.id));
        search.pdb_candidates(module.path.as_deref().or(module.name.as_deref()), named.map(|n| n.name.as_str()), id.as_ref(), self.os)
    }
}

/// Opens the PDB in `file`, which must be the one that the assembly names.
fn try_file(file: &ModuleFile, named: Option<&Named>) -> Result<Pdb, String> {
    let bytes = file.open()?;
    let len = len64(bytes.len());
    let pdb = Pdb::open(Source::File { bytes, offset: 0, len }).map_err(|_| "it is not a portable PDB")?;
    let Some(named) = named else {
        return Err("neither the dump nor a file of the module (--modules PATH) tells which PDB is its own".into());
    };
    if pdb.id() != named.id {
        return Err(format!("its id is {}, the module's is {}", hex(&pdb.id()), hex(&named.id)));
    }
    Ok(pdb)
}

/// Reads `bytes` as a portable PDB, and as an assembly with one in it, and everything in it about the first `rows` methods and documents: for fuzz
/// targets. The bytes of the names of documents.
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
