//! Portable PDBs: source lines of IL instructions, and names of local variables.
//!
//! Source: the runtime's specification of portable PDBs. A portable PDB is a metadata blob with its own tables. Only Document,
//! MethodDebugInformation, LocalScope and LocalVariable are read. The input is untrusted: invalid bytes yield `None`, never a panic.

mod points;
mod scopes;
#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;

pub(crate) use scopes::Local;
use scopes::Scopes;

use super::metadata::signature::compressed;
use super::metadata::{Heap, MetadataError, Source, Streams};
use crate::base::len64;

/// Numbers of the tables that are read.
const DOCUMENT: usize = 0x30;
const METHOD_DEBUG_INFORMATION: usize = 0x31;
const LOCAL_SCOPE: usize = 0x32;
const LOCAL_VARIABLE: usize = 0x33;
/// Tables that are not read. Only their row counts are needed, because they determine the width of indices.
const METHOD_DEF: usize = 0x06;
const LOCAL_CONSTANT: usize = 0x34;
const IMPORT_SCOPE: usize = 0x35;
/// Bits of the heap sizes in the table stream: indices into `#Strings`, `#GUID` and `#Blob` have four bytes.
const LARGE_STRINGS: u8 = 1;
const LARGE_GUIDS: u8 = 2;
const LARGE_BLOBS: u8 = 4;
/// Limits of a document name: number of parts, and length in bytes.
const MAX_PARTS: usize = 1024;
const MAX_NAME: usize = 4096;

/// Identity of a portable PDB: GUID and stamp. The CodeView entry of the assembly's debug directory has the same identity.
pub(crate) type PdbId = [u8; 20];

/// A table.
#[derive(Clone, Copy, Debug, Default)]
struct Table {
    at: u64,
    rows: u32,
    width: u64,
}

/// An opened portable PDB.
#[derive(Clone, Debug)]
pub(crate) struct Pdb {
    source: Source,
    blobs: Heap,
    id: PdbId,
    documents: Table,
    methods: Table,
    blob_width: u64,
    scopes: Scopes,
}

impl Pdb {
    /// Opens a portable PDB.
    ///
    /// # Errors
    /// [`MetadataError`].
    pub(crate) fn open(source: Source) -> Result<Pdb, MetadataError> {
        if source.u32(0).ok_or(MetadataError::Headers)? != u32::from_le_bytes(*b"BSJB") {
            return Err(MetadataError::Signature);
        }
        let streams = Streams::read(&source).ok_or(MetadataError::Headers)?;
        let (pdb, tables) = streams.pdb.zip(streams.tables).ok_or(MetadataError::NoTables)?;
        let id = source.bytes(pdb.at, pdb.len.min(20)).and_then(|b| b.first_chunk().copied()).ok_or(MetadataError::Headers)?;
        let methods = rows_of_assembly(&source, pdb, METHOD_DEF).ok_or(MetadataError::Headers)?;
        Pdb::read(source, (streams.strings, streams.blobs), (id, methods), tables).ok_or(MetadataError::Headers)
    }

    /// Reads the table stream. `methods` is the number of rows of MethodDef in the assembly.
    fn read(source: Source, (strings, blobs): (Heap, Heap), (id, methods): (PdbId, u32), stream: Heap) -> Option<Pdb> {
        let heaps = source.u8(stream.at.checked_add(6)?)?;
        let valid = source.u64(stream.at.checked_add(8)?)?;
        // A PDB that contains type-system tables (below 0x30) is refused, because their row sizes are not computed here.
        (valid & 1u64.checked_shl(0x30)?.checked_sub(1)? == 0).then_some(())?;
        let mut at = stream.at.checked_add(24)?;
        let mut rows = [0u32; 64];
        for (_, rows) in rows.iter_mut().enumerate().filter(|(i, _)| valid >> i & 1 != 0) {
            *rows = source.u32(at)?;
            at = at.checked_add(4)?;
        }
        let rows = |table: usize| rows.get(table).copied().unwrap_or(0);
        let index = |large: bool| if large { 4u64 } else { 2 };
        let (blob, guid) = (index(heaps & LARGE_BLOBS != 0), index(heaps & LARGE_GUIDS != 0));
        let end = stream.at.checked_add(stream.len)?;
        let mut table = |number: usize, width: u64| {
            let rows = rows(number);
            // Rows past the end of the stream are ignored.
            let room = end.saturating_sub(at).checked_div(width)?;
            let table = Table { at, rows: rows.min(u32::try_from(room).unwrap_or(u32::MAX)), width };
            at = at.checked_add(width.checked_mul(u64::from(rows))?)?;
            Some(table)
        };
        // Columns: name, hash algorithm, hash, language.
        let documents = table(DOCUMENT, blob.checked_mul(2)?.checked_add(guid.checked_mul(2)?)?)?;
        // Columns: document, sequence points.
        let points = table(METHOD_DEBUG_INFORMATION, index(rows(DOCUMENT) > 0xffff).checked_add(blob)?)?;
        let row_index = |rows: u32| index(rows > 0xffff);
        let widths = scopes::Widths {
            method: row_index(methods),
            import: row_index(rows(IMPORT_SCOPE)),
            variable: row_index(rows(LOCAL_VARIABLE)),
            constant: row_index(rows(LOCAL_CONSTANT)),
            string: index(heaps & LARGE_STRINGS != 0),
        };
        let scopes = table(LOCAL_SCOPE, widths.scope())?;
        let scopes = Scopes { scopes, variables: table(LOCAL_VARIABLE, widths.local())?, widths, strings };
        Some(Pdb { source, blobs, id, documents, methods: points, blob_width: blob, scopes })
    }

    /// Identity of the PDB.
    pub(crate) fn id(&self) -> PdbId {
        self.id
    }

    /// The document (row of Document) and the line of the instruction at IL offset `il` of the method in row `method` of MethodDef. `None`
    /// if the compiler recorded no line, or the sequence points cannot be read.
    pub(crate) fn line(&self, method: u32, il: u32) -> Option<(u32, u32)> {
        let (document, blob) = self.points(method)?;
        points::line_at(&blob, document, il)
    }

    /// Size in bytes of the sequence points of the method in row `method` of MethodDef; 0 if the method has no sequence points.
    pub(crate) fn lines_bytes(&self, method: u32) -> u64 {
        self.points(method).map_or(0, |(_, blob)| len64(blob.len()))
    }

    /// Row of the assembly's StandAloneSig with the types of the locals of the method in row `method` of MethodDef; 0 if the method has no
    /// locals. `None` if the compiler recorded no sequence points for the method.
    pub(crate) fn local_signature(&self, method: u32) -> Option<u32> {
        compressed(&self.points(method).filter(|(_, blob)| !blob.is_empty())?.1).map(|(row, _)| row)
    }

    /// The local variables of the method in row `method` of MethodDef, outer scopes first.
    pub(crate) fn locals(&self, method: u32) -> Vec<Local> {
        self.scopes.locals(&self.source, method)
    }

    fn points(&self, method: u32) -> Option<(u32, Cow<'_, [u8]>)> {
        let at = row(self.methods, method)?;
        let document_width = self.methods.width.checked_sub(self.blob_width)?;
        let document = self.number(at, document_width)?;
        Some((document, self.blob(self.number(at.checked_add(document_width)?, self.blob_width)?)?))
    }

    /// Path of the document in row `document`, at compile time.
    pub(crate) fn document(&self, document: u32) -> Option<String> {
        let name = self.number(row(self.documents, document)?, self.blob_width)?;
        let blob = self.blob(name)?;
        // The blob contains the separator, then the offset in `#Blob` of each part.
        let (separator, mut rest) = blob.split_first()?;
        let mut out = String::new();
        for i in 0..MAX_PARTS {
            if rest.is_empty() {
                break;
            }
            if i > 0 && *separator != 0 {
                out.push(char::from(*separator));
            }
            let (part, used) = compressed(rest)?;
            rest = rest.get(used..)?;
            if part != 0 {
                out.push_str(&String::from_utf8_lossy(&self.blob(part)?));
            }
            (out.len() <= MAX_NAME).then_some(())?;
        }
        (!out.is_empty()).then_some(out)
    }

    fn number(&self, at: u64, width: u64) -> Option<u32> {
        scopes::number(&self.source, at, width)
    }

    /// The blob at `offset` in `#Blob`.
    fn blob(&self, offset: u32) -> Option<Cow<'_, [u8]>> {
        let offset = u64::from(offset);
        let room = self.blobs.len.checked_sub(offset).filter(|n| *n > 0)?;
        let at = self.blobs.at.checked_add(offset)?;
        let (len, used) = compressed(&self.source.bytes(at, room.min(4))?)?;
        let used = u64::try_from(used).ok()?;
        (u64::from(len) <= room.checked_sub(used)?).then_some(())?;
        self.source.bytes(at.checked_add(used)?, u64::from(len))
    }
}

/// Number of rows of the assembly's table `wanted`, from the stream `#Pdb`.
fn rows_of_assembly(source: &Source, pdb: Heap, wanted: usize) -> Option<u32> {
    // `#Pdb` has the identity (20 bytes), the entry point (4), a mask of the assembly's tables (8), and their row counts.
    let mask = source.u64(pdb.at.checked_add(24)?)?;
    if mask >> wanted & 1 == 0 {
        return Some(0);
    }
    let before = (mask & 1u64.checked_shl(u32::try_from(wanted).ok()?)?.checked_sub(1)?).count_ones();
    source.u32(pdb.at.checked_add(32)?.checked_add(u64::from(before).checked_mul(4)?)?)
}

/// Offset of row `number` (from 1) of `table`.
fn row(table: Table, number: u32) -> Option<u64> {
    (number <= table.rows).then_some(())?;
    table.at.checked_add(u64::from(number.checked_sub(1)?).checked_mul(table.width)?)
}
