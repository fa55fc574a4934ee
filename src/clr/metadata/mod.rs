//! A lazy reader of ECMA-335 metadata (II.22 to II.24): rows and names of types, fields and methods, signatures, and the Assembly row.
//!
//! Opening reads only the headers; each query reads only the rows that it needs. The input is untrusted: absent or invalid bytes yield
//! `None`, never a panic, and the size of the blob bounds allocations.

mod rows;
mod schema;
pub mod signature;
mod source;
#[cfg(test)]
mod tests;

pub use rows::{Constant, FieldRow, MethodRow, TypeRef};
pub use source::Source;

use std::sync::OnceLock;

use crate::base::hash::Map;
use crate::base::len64;
use crate::base::missed::Kept;
use schema::{
    ASSEMBLY, CONSTANT, FIELD, FIELD_PTR, FIELD_RVA, GENERIC_PARAM, MEMBER_REF, METHOD_DEF, METHOD_PTR, MODULE, NESTED_CLASS, PARAM,
    PARAM_PTR, SCHEMA, TABLES, TYPE_DEF, TYPE_REF, Widths,
};

/// Maximum number of stream headers that are read. Real blobs have five or six streams.
const MAX_STREAMS: u16 = 32;
/// Maximum number of rows of an unsorted table that are scanned.
const MAX_SCAN: u32 = 1 << 20;
/// Tables whose rows are looked up by a key. Each table has one key column.
const SEARCHED: [usize; 4] = [NESTED_CLASS, GENERIC_PARAM, CONSTANT, FIELD_RVA];
/// Maximum length of a name in bytes. The runtime's limit for types is 1,023.
const MAX_NAME: u64 = 4096;

/// Reason why a blob is not metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// The signature `BSJB` is missing.
    #[error("no metadata: the signature BSJB is missing")]
    Signature,
    /// The headers are truncated, absent from the dump, or inconsistent.
    #[error("the metadata headers are corrupt or not in the dump")]
    Headers,
    /// The metadata has neither a `#~` nor a `#-` stream.
    #[error("the metadata has no tables")]
    NoTables,
}

/// A table of the blob.
#[derive(Clone, Copy, Debug, Default)]
struct Table {
    at: u64,
    rows: u32,
    width: u64,
    sorted: bool,
}

/// Position of a column in the rows of a table.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    /// Offset in the row in bytes.
    at: u8,
    /// Width in bytes.
    width: u8,
}

/// A stream of the blob: a heap such as `#Strings`, or the table stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heap {
    /// Offset in the blob.
    pub(super) at: u64,
    /// Size in bytes.
    pub(super) len: u64,
}

/// Opened metadata of a module.
#[derive(Clone, Debug)]
pub struct Metadata {
    source: Source,
    strings: Heap,
    guids: Heap,
    blobs: Heap,
    tables: [Table; TABLES],
    /// Columns of the tables that are read, by table and column.
    columns: [[Column; 9]; TABLES],
    /// For each table of [`SEARCHED`] that is not sorted: row numbers by key, built at first use.
    unsorted: [OnceLock<Kept<Map<u32, u32>>>; SEARCHED.len()],
}

/// A row of the TypeDef table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDef {
    /// `TypeAttributes`.
    pub flags: u32,
    /// Namespace; empty for nested types.
    pub namespace: String,
    /// Name; ends with `` `n `` for generic types.
    pub name: String,
}

/// The Assembly row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssemblyRow {
    /// Name.
    pub name: String,
    /// Version: major, minor, build, revision.
    pub version: [u16; 4],
}

/// Row counts of some tables. They are compared with the sizes of the lookup maps that the runtime allocated for the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows of TypeDef.
    pub type_defs: u32,
    /// Rows of TypeRef.
    pub type_refs: u32,
    /// Rows of Field.
    pub fields: u32,
    /// Rows of MethodDef.
    pub methods: u32,
    /// Rows of MemberRef.
    pub member_refs: u32,
}

impl Metadata {
    /// Opens a blob.
    ///
    /// # Errors
    /// [`MetadataError`].
    pub fn open(source: Source) -> Result<Metadata, MetadataError> {
        if source.u32(0).ok_or(MetadataError::Headers)? != u32::from_le_bytes(*b"BSJB") {
            return Err(MetadataError::Signature);
        }
        let streams = Streams::read(&source).ok_or(MetadataError::Headers)?;
        let tables = streams.tables.ok_or(MetadataError::NoTables)?;
        let (tables, columns) = read_tables(&source, tables, streams.minimal_delta).ok_or(MetadataError::Headers)?;
        Ok(Metadata {
            source,
            strings: streams.strings,
            guids: streams.guids,
            blobs: streams.blobs,
            tables,
            columns,
            unsorted: Default::default(),
        })
    }

    fn table(&self, table: usize) -> Table {
        self.tables.get(table).copied().unwrap_or_default()
    }

    /// Value of column `column` in row `rid` (from 1).
    fn cell(&self, table: usize, rid: u32, column: usize) -> Option<u32> {
        let t = self.table(table);
        if rid == 0 || rid > t.rows {
            return None;
        }
        let column = self.columns.get(table)?.get(column)?;
        let row = u64::from(rid.checked_sub(1)?).checked_mul(t.width)?;
        let at = t.at.checked_add(row)?.checked_add(u64::from(column.at))?;
        match column.width {
            2 => self.source.u16(at).map(u32::from),
            4 => self.source.u32(at),
            _ => None,
        }
    }

    /// Reports that column `column` of row `rid` contradicts the rest of the metadata.
    fn deny(&self, table: usize, rid: u32, column: usize, what: &'static str) {
        let at = || {
            let row = u64::from(rid.checked_sub(1)?).checked_mul(self.table(table).width)?;
            let column = self.columns.get(table)?.get(column)?;
            self.table(table).at.checked_add(row)?.checked_add(u64::from(column.at))
        };
        self.source.deny(at().unwrap_or(0), what);
    }

    /// The text at `offset` in `#Strings`. Only offset 0 is the empty text: another offset without a text is in a part of the heap that is lost.
    fn string(&self, offset: u32) -> Option<String> {
        let offset = u64::from(offset);
        let room = self.strings.len.checked_sub(offset).filter(|n| *n > 0)?;
        let at = self.strings.at.checked_add(offset)?;
        let text = self.source.text(at, room.min(MAX_NAME))?;
        if offset != 0 && (text.is_empty() || self.source.is_cut(at, len64(text.len()), room)) {
            self.source.deny(at, "a name in the metadata of a module is empty or cut off");
            return None;
        }
        Some(text)
    }

    fn name(&self, table: usize, rid: u32, column: usize) -> Option<String> {
        self.string(self.cell(table, rid, column)?)
    }

    /// Like [`Metadata::name`] for rows whose columns `needed` are never 0. Obfuscated assemblies have names without a text, so an empty name shows
    /// that the row is lost only if one of these columns is 0 as well.
    fn name_in_row(&self, table: usize, rid: u32, column: usize, needed: &[usize]) -> Option<String> {
        let name = self.name(table, rid, column)?;
        if name.is_empty() && needed.iter().any(|other| self.cell(table, rid, *other) == Some(0)) {
            self.deny(table, rid, column, "a row in the metadata of a module is empty");
            return None;
        }
        Some(name)
    }

    /// The type in row `rid` of TypeDef.
    pub fn type_def(&self, rid: u32) -> Option<TypeDef> {
        let name = self.name_in_row(TYPE_DEF, rid, 1, &[0, 4, 5])?;
        Some(TypeDef { flags: self.cell(TYPE_DEF, rid, 0)?, name, namespace: self.name(TYPE_DEF, rid, 2)? })
    }

    /// The first row (from 1) whose `column`, which is never 0, equals `wanted`.
    fn find(&self, table: usize, column: usize, wanted: u32) -> Option<u32> {
        self.search(table, column, wanted).flatten()
    }

    /// A key of a table that is searched; `None` if it is lost.
    fn key(&self, table: usize, rid: u32, column: usize) -> Option<u32> {
        let key = self.cell(table, rid, column)?;
        if key == 0 {
            self.deny(table, rid, column, "a row in the metadata of a module is empty");
            return None;
        }
        Some(key)
    }

    /// Like [`Metadata::find`]; `None` if a row that the search needs is lost, and `Some(None)` if no row has the key.
    fn search(&self, table: usize, column: usize, wanted: u32) -> Option<Option<u32>> {
        let t = self.table(table);
        if !t.sorted {
            let index = self.unsorted.get(SEARCHED.iter().position(|s| *s == table)?)?;
            // One scan serves all lookups, because a scan for each lookup would take hours for a malicious blob. `rev` makes the first of several
            // rows with a key win.
            let rows = (1..=t.rows.min(MAX_SCAN)).rev();
            let keys = || rows.filter_map(|row| Some((self.key(table, row, column)?, row))).collect();
            return Some(index.get_or_init(|| Kept::of(keys)).get().get(&wanted).copied());
        }
        let (mut low, mut high) = (1u32, t.rows.checked_add(1)?);
        while low < high {
            let middle = low.midpoint(high);
            if self.key(table, middle, column)? < wanted {
                low = middle.checked_add(1)?;
            } else {
                high = middle;
            }
        }
        if low > t.rows {
            return Some(None);
        }
        Some((self.key(table, low, column)? == wanted).then_some(low))
    }

    /// Number of rows that indexes of unsorted tables contain, or will contain when they are built.
    pub(crate) fn indexed(&self) -> u64 {
        let tables = SEARCHED.iter().map(|table| self.table(*table)).filter(|t| !t.sorted);
        tables.map(|t| u64::from(t.rows.min(MAX_SCAN))).sum()
    }

    /// The enclosing type of the nested type `rid`.
    pub fn enclosing(&self, rid: u32) -> Option<u32> {
        self.key(NESTED_CLASS, self.find(NESTED_CLASS, 0, rid)?, 1)
    }

    /// The enclosing type of the type `rid`, whose attributes say that it is nested; `None` if its row is lost.
    pub(in crate::clr) fn enclosing_of_nested(&self, rid: u32) -> Option<u32> {
        if self.search(NESTED_CLASS, 0, rid)?.is_none() {
            self.deny(TYPE_DEF, rid, 0, "the metadata of a module has no enclosing type for a nested type");
            return None;
        }
        self.enclosing(rid)
    }

    /// The nested types, each with its enclosing type.
    pub fn nested_types(&self) -> impl Iterator<Item = (u32, u32)> {
        let rows = 1..=self.table(NESTED_CLASS).rows.min(MAX_SCAN);
        rows.filter_map(|row| Some((self.cell(NESTED_CLASS, row, 0)?, self.cell(NESTED_CLASS, row, 1)?)))
    }

    /// Number of generic parameters of type `rid`, including the generic parameters of enclosing types.
    #[cfg(any(test, feature = "internals"))]
    pub fn generic_params(&self, rid: u32) -> u32 {
        const MOST: u32 = 65_535;
        let Some(owner) = rid.checked_mul(2) else { return 0 };
        let Some(first) = self.find(GENERIC_PARAM, 2, owner) else { return 0 };
        let rows = (first..=self.table(GENERIC_PARAM).rows).take_while(|r| self.cell(GENERIC_PARAM, *r, 2) == Some(owner));
        rows.take(usize::try_from(MOST).unwrap_or(0)).fold(0, |n: u32, _| n.saturating_add(1))
    }

    /// Name of row `rid` of GenericParam.
    pub fn generic_param_name(&self, rid: u32) -> Option<String> {
        self.name(GENERIC_PARAM, rid, 3)
    }

    /// Name of row `rid` of Field.
    pub fn field_name(&self, rid: u32) -> Option<String> {
        self.name_in_row(FIELD, rid, 1, &[0, 2])
    }

    /// Name of row `rid` of MethodDef.
    pub fn method_name(&self, rid: u32) -> Option<String> {
        self.name_in_row(METHOD_DEF, rid, 3, &[2, 4, 5])
    }

    /// Rows in Field of the fields of type `rid`.
    pub fn fields_of(&self, rid: u32) -> Vec<u32> {
        self.list(rid, 4, FIELD, FIELD_PTR)
    }

    /// Rows in MethodDef of the methods of type `rid`.
    pub fn methods_of(&self, rid: u32) -> Vec<u32> {
        self.list(rid, 5, METHOD_DEF, METHOD_PTR)
    }

    /// Names of the parameters of the method `rid`, with their positions: 1 is the first parameter, 0 the return value.
    pub fn parameter_names(&self, rid: u32) -> Vec<(u32, String)> {
        let rows = self.list_of(METHOD_DEF, rid, 5, PARAM, PARAM_PTR);
        rows.into_iter().filter_map(|row| Some((self.cell(PARAM, row, 1)?, self.name(PARAM, row, 2)?))).collect()
    }

    fn list(&self, rid: u32, column: usize, table: usize, pointers: usize) -> Vec<u32> {
        self.list_of(TYPE_DEF, rid, column, table, pointers)
    }

    /// The rows of `table` that belong to row `rid` of `owner`. The `column` of that row has the first row number of the list. The same column of
    /// the next row has the end of the list. If the table `pointers` has rows, the list is a range of that table.
    fn list_of(&self, owner: usize, rid: u32, column: usize, table: usize, pointers: usize) -> Vec<u32> {
        // The runtime allows 65,535 fields and as many methods for each type.
        const MOST: usize = 65_535;
        let indirect = self.table(pointers).rows > 0;
        let rows = self.table(if indirect { pointers } else { table }).rows;
        let Some(first) = self.cell(owner, rid, column) else { return Vec::new() };
        // The list of the last row ends with the table. If the next row is not in the dump, the end is unknown.
        let next = match rid.checked_add(1).filter(|next| *next <= self.table(owner).rows) {
            Some(next) => self.cell(owner, next, column),
            None => Some(u32::MAX),
        };
        let Some(next) = next else { return Vec::new() };
        if first == 0 || next < first {
            self.deny(owner, rid, column, "a row in the metadata of a module has an impossible list");
            return Vec::new();
        }
        let list = (first..next.min(rows.saturating_add(1))).take(MOST);
        list.filter_map(|r| if indirect { self.cell(pointers, r, 0) } else { Some(r) }).collect()
    }

    /// The Assembly row; `None` for further modules of multi-file assemblies.
    pub fn assembly(&self) -> Option<AssemblyRow> {
        let mut version = [0; 4];
        for (part, column) in version.iter_mut().zip(1..) {
            *part = u16::try_from(self.cell(ASSEMBLY, 1, column)?).ok()?;
        }
        Some(AssemblyRow { name: self.name_in_row(ASSEMBLY, 1, 7, &[7])?, version })
    }

    /// Name of the module, from its Module row: `System.Private.CoreLib.dll`.
    pub fn module_name(&self) -> Option<String> {
        self.name_in_row(MODULE, 1, 1, &[1])
    }

    /// Offset of the module version id (MVID) in the blob.
    pub fn mvid_offset(&self) -> Option<u64> {
        let index = u64::from(self.cell(MODULE, 1, 2)?);
        let within = index.checked_sub(1)?.checked_mul(16)?;
        (within.checked_add(16)? <= self.guids.len).then_some(self.guids.at.checked_add(within)?)
    }

    /// The module version id (MVID).
    pub fn mvid(&self) -> Option<[u8; 16]> {
        let at = self.mvid_offset()?;
        let id = self.source.bytes(at, 16)?.first_chunk().copied()?;
        if id == [0; 16] {
            self.source.deny(at, "the version ID of a module is empty");
            return None;
        }
        Some(id)
    }

    /// Number of rows of TypeDef.
    pub fn type_defs(&self) -> u32 {
        self.table(TYPE_DEF).rows
    }

    /// Row counts of some tables.
    pub fn row_counts(&self) -> RowCounts {
        let rows = |t| self.table(t).rows;
        RowCounts {
            type_defs: rows(TYPE_DEF),
            type_refs: rows(TYPE_REF),
            fields: rows(FIELD),
            methods: rows(METHOD_DEF),
            member_refs: rows(MEMBER_REF),
        }
    }
}

/// The streams of a metadata blob.
#[derive(Default)]
pub(super) struct Streams {
    /// `#Strings`.
    pub(super) strings: Heap,
    guids: Heap,
    /// `#Blob`.
    pub(super) blobs: Heap,
    /// `#~` or `#-`.
    pub(super) tables: Option<Heap>,
    /// `#Pdb`, which only portable PDBs have.
    pub(super) pdb: Option<Heap>,
    minimal_delta: bool,
}

impl Streams {
    /// Reads the stream headers; `None` if they are truncated.
    pub(super) fn read(source: &Source) -> Option<Streams> {
        // Signature (4 bytes), version (2 + 2), reserved (4), length of the version text (4), text.
        let version = u64::from(source.u32(12)?).checked_add(3)? & !3;
        let flags = version.checked_add(16)?;
        let count = source.u16(flags.checked_add(2)?)?.min(MAX_STREAMS);
        let mut at = flags.checked_add(4)?;
        let mut out = Streams::default();
        for _ in 0..count {
            let start = u64::from(source.u32(at)?);
            let len = u64::from(source.u32(at.checked_add(4)?)?);
            let name = source.text(at.checked_add(8)?, 32)?;
            let padded = u64::try_from(name.len()).ok()?.checked_add(4)? & !3;
            at = at.checked_add(8)?.checked_add(padded)?;
            // A stream that extends past the end of the blob is truncated, because the part inside is still readable.
            let heap = Heap { at: start, len: len.min(source.len().saturating_sub(start)) };
            match name.as_str() {
                "#Strings" => out.strings = heap,
                "#GUID" => out.guids = heap,
                "#Blob" => out.blobs = heap,
                "#~" | "#-" => out.tables = out.tables.or(Some(heap)),
                "#Pdb" => out.pdb = Some(heap),
                "#JTD" => out.minimal_delta = true,
                _ => {}
            }
        }
        Some(out)
    }
}

type Tables = ([Table; TABLES], [[Column; 9]; TABLES]);

fn read_tables(source: &Source, stream: Heap, minimal_delta: bool) -> Option<Tables> {
    let heaps = source.u8(stream.at.checked_add(6)?)?;
    let valid = source.u64(stream.at.checked_add(8)?)?;
    let sorted = source.u64(stream.at.checked_add(16)?)?;
    let mut at = stream.at.checked_add(24)?;
    let mut widths = Widths { rows: [0; 64], heaps, all_large: minimal_delta };
    for (i, rows) in widths.rows.iter_mut().enumerate() {
        if valid >> i & 1 != 0 {
            *rows = source.u32(at)?;
            at = at.checked_add(4)?;
        }
    }
    // Bit 0x40: four bytes of extra data follow the row counts.
    if heaps & 0x40 != 0 {
        at = at.checked_add(4)?;
    }
    let end = stream.at.checked_add(stream.len)?;
    let mut tables = [Table::default(); TABLES];
    let mut columns = [[Column::default(); 9]; TABLES];
    for (i, (table, column)) in tables.iter_mut().zip(columns.iter_mut()).enumerate() {
        let width = widths.row(i);
        let rows = widths.rows.get(i).copied()?;
        // Rows past the end of the stream are ignored.
        let room = end.saturating_sub(at).checked_div(width).unwrap_or(0);
        let there = rows.min(u32::try_from(room).unwrap_or(u32::MAX));
        *table = Table { at, rows: there, width, sorted: sorted >> i & 1 != 0 };
        let mut before = 0u8;
        for (place, kind) in column.iter_mut().zip(SCHEMA.get(i)?.iter()) {
            *place = Column { at: before, width: u8::try_from(widths.column(*kind)).ok()? };
            before = before.checked_add(place.width)?;
        }
        at = at.checked_add(width.checked_mul(u64::from(rows))?)?;
    }
    Some((tables, columns))
}
