//! The methods of a type, from the MethodDesc chunks of its `EEClass`.
//!
//! Source: contract `RuntimeTypeSystem`; `class.h`, `method.hpp`, `methodtable.h`. Only .NET 10 publishes the sizes of MethodDescs. In all
//! releases, MethodDescs are found without their sizes: each MethodDesc contains its position in the chunk, and the chunk contains the number of
//! MethodDescs.

use std::collections::HashSet;
use std::sync::Arc;

use super::methods::Methods;
use super::type_names::TypeNames;
use crate::base::Addr;
use crate::contract::{ContractError, Descriptor};
use crate::data::{Bound, EEClass, MethodDesc, MethodDescChunk, MethodTable, Structure, bind, globals};
use crate::memory::{Memory, ReadError};

/// Maximum number of chunks of a type. A chunk has up to 255 methods, a type up to 65,535.
const MAX_CHUNKS: usize = 1 << 12;
/// Number of slots in a chunk of the vtable: `methodtable.h`.
const SLOTS_OF_A_PIECE: u64 = 8;
/// Maximum size of a MethodDesc in words.
const MAX_WORDS: u64 = 16;

/// A method of a type.
#[derive(Clone, Debug)]
pub(crate) struct ListedMethod {
    /// Address of the `MethodDesc`.
    pub(crate) desc: Addr,
    /// Slot number.
    pub(crate) slot: u16,
    /// Words that may be entry points or addresses of the code: the words of the MethodDesc, and the word in the vtable slot.
    pub(crate) leads: Vec<Addr>,
}

/// The methods of a type.
#[derive(Clone, Debug, Default)]
pub(crate) struct MethodList {
    /// Methods sorted by slot.
    pub(crate) methods: Vec<ListedMethod>,
    /// A chunk in which not all methods were found.
    pub(crate) unclear: Option<Addr>,
}

/// Lists the methods of types.
#[derive(Clone, Debug)]
pub(crate) struct MethodLists {
    memory: Arc<Memory>,
    class: Bound<EEClass>,
    chunk: Bound<MethodDescChunk>,
    chunk_bytes: u64,
    desc: Bound<MethodDesc>,
    alignment: u64,
    table: Bound<MethodTable>,
    /// Offset of the pointers to vtable chunks in a method table, in bytes.
    table_bytes: Option<u64>,
}

impl MethodLists {
    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the layout of methods.
    pub(crate) fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Result<MethodLists, ContractError> {
        Ok(MethodLists {
            memory: Arc::clone(memory),
            class: bind!(d, EEClass { MethodDescChunk })?,
            chunk: bind!(d, MethodDescChunk { Next, Size, Count })?,
            chunk_bytes: MethodDescChunk::size(d)?,
            desc: bind!(d, MethodDesc { ChunkIndex, Slot, CodeData? })?,
            alignment: globals::MethodDescAlignment.of(d)?,
            table: bind!(d, MethodTable { NumVirtuals? })?,
            table_bytes: MethodTable::size(d).ok(),
        })
    }

    /// The methods that the type at `mt` declares, sorted by slot.
    ///
    /// # Errors
    /// [`ReadError`] if the chunks are not in the dump.
    pub(crate) fn of(&self, methods: &Methods, names: &TypeNames, mt: Addr) -> Result<MethodList, ReadError> {
        let mut out = MethodList::default();
        let tables = names.method_tables();
        let canonical = tables.canonical(mt)?;
        let info = tables.read(canonical)?;
        if info.is_array {
            // The accessors of arrays have neither names nor tokens.
            return Ok(out);
        }
        let metadata = tables.module(&info).ok().and_then(|home| names.module(home).metadata.clone());
        let declared: Option<HashSet<u32>> = metadata.zip(tables.rid(&info).ok()).map(|(m, rid)| m.methods_of(rid).into_iter().collect());
        let is_declared = |rid: u32| declared.as_ref().is_none_or(|list| list.contains(&rid));
        let mut chunk = self.class.read(&self.memory, tables.class(mt)?, EEClass::MethodDescChunk)?;
        let mut seen = HashSet::new();
        while !chunk.is_null() && seen.len() < MAX_CHUNKS && seen.insert(chunk) {
            let before = out.methods.len();
            // The count is stored minus one.
            let count = usize::from(self.chunk.read(&self.memory, chunk, MethodDescChunk::Count)?).saturating_add(1);
            self.chunk(
                &|at| methods.row(names, at).filter(|(of, rid)| *of == canonical && is_declared(*rid)),
                canonical,
                (chunk, count),
                &mut out,
            )?;
            if out.methods.len().saturating_sub(before) != count {
                out.unclear.get_or_insert(chunk);
            }
            chunk = self.chunk.read(&self.memory, chunk, MethodDescChunk::Next)?;
        }
        if !chunk.is_null() {
            out.unclear.get_or_insert(chunk);
        }
        out.methods.sort_by_key(|m| (m.slot, m.desc));
        Ok(out)
    }

    /// Adds the methods of the chunk at `chunk`, which has `count` methods. `row` returns the declaring type and the row of the method at
    /// an address, if there is one.
    fn chunk(
        &self,
        row: &impl Fn(Addr) -> Option<(Addr, u32)>,
        canonical: Addr,
        (chunk, count): (Addr, usize),
        out: &mut MethodList,
    ) -> Result<(), ReadError> {
        let first = chunk.plus(self.chunk_bytes);
        let last = u64::from(self.chunk.read(&self.memory, chunk, MethodDescChunk::Size)?);
        let (mut starts, mut again) = (Vec::new(), Vec::new());
        let mut rids = HashSet::new();
        for index in 0..=last {
            let at = first.element(index, self.alignment);
            let stored = self.desc.read(&self.memory, at, MethodDesc::ChunkIndex)?;
            // Other words of a MethodDesc may look like a position, but are unlikely to have the row of another method of this type.
            if u64::from(stored) == index
                && let Some((_, rid)) = row(at)
            {
                if rids.insert(rid) { starts.push(at) } else { again.push(at) }
            }
        }
        // In .NET 11, an async method has two MethodDescs with one row: one for callers that need a task, and one for callers that await the
        // result.
        if starts.len().saturating_add(again.len()) == count {
            starts.append(&mut again);
            starts.sort_unstable();
        }
        let end = first.element(last.saturating_add(1), self.alignment);
        for (i, at) in starts.iter().enumerate() {
            let next = starts.get(i.saturating_add(1)).copied().unwrap_or(end);
            let slot = self.desc.read(&self.memory, *at, MethodDesc::Slot)?;
            out.methods.push(ListedMethod { desc: *at, slot, leads: self.leads(canonical, *at, next, slot) });
        }
        Ok(())
    }

    /// Words that may be addresses of the code of the method at `desc`, which ends at `end`.
    fn leads(&self, canonical: Addr, desc: Addr, end: Addr, slot: u16) -> Vec<Addr> {
        let word = self.memory.ptr_bytes();
        let words = end.since(desc).unwrap_or(0).checked_div(word).unwrap_or(0).min(MAX_WORDS);
        let mut out: Vec<Addr> = Vec::new();
        out.extend(self.virtual_slot(canonical, slot));
        // Code data, since .NET 9: the temporary entry point is among the first words.
        if let Some(data) = self.desc.pointer(&self.memory, desc, MethodDesc::CodeData) {
            out.extend((0..2).filter_map(|i| self.memory.ptr(data.element(i, word)).ok()));
        }
        out.extend((1..words).filter_map(|i| self.memory.ptr(desc.element(i, word)).ok()));
        out.retain(|a| !a.is_null());
        out
    }

    /// The word in vtable slot `slot`.
    fn virtual_slot(&self, table: Addr, slot: u16) -> Option<Addr> {
        let size = self.table_bytes?;
        let count = self.table.get(&self.memory, table, MethodTable::NumVirtuals)?;
        if slot >= count {
            return None;
        }
        let (word, slot) = (self.memory.ptr_bytes(), u64::from(slot));
        let piece = self.memory.ptr(table.plus(size).element(slot / SLOTS_OF_A_PIECE, word)).ok()?;
        self.memory.ptr(piece.element(slot % SLOTS_OF_A_PIECE, word)).ok()
    }
}
