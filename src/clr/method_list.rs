//! The methods of a type, from the chunks of MethodDescs of its `EEClass`.
//!
//! Source: contract `RuntimeTypeSystem`; `class.h`, `method.hpp`, `methodtable.h`. Only .NET 10 tells the sizes of MethodDescs: each says its
//! place in the chunk and the chunk how many there are, which finds them in all releases.

use std::collections::HashSet;
use std::sync::Arc;

use super::methods::Methods;
use super::type_names::TypeNames;
use crate::base::Addr;
use crate::contract::{ContractError, Descriptor};
use crate::data::{Bound, EEClass, MethodDesc, MethodDescChunk, MethodTable, Structure, bind};
use crate::memory::{Memory, ReadError};

/// Maximum chunks of a type: each has up to 255 methods, a type up to 65,535.
const MAX_CHUNKS: usize = 1 << 12;
/// Slots of a piece of a virtual method table: `methodtable.h`.
const SLOTS_OF_A_PIECE: u64 = 8;
/// Maximum words of a MethodDesc.
const MAX_WORDS: u64 = 16;

/// A method of a type.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    /// Address of its `MethodDesc`.
    pub(crate) desc: Addr,
    /// Its slot.
    pub(crate) slot: u16,
    /// Words that may be where it is entered, or its code: what is stored with it, and in the virtual method table.
    pub(crate) leads: Vec<Addr>,
}

/// The methods of a type.
#[derive(Clone, Debug, Default)]
pub(crate) struct MethodList {
    /// By slot.
    pub(crate) methods: Vec<Listed>,
    /// A chunk whose methods could not be told apart.
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
    /// Bytes before the pieces of a virtual method table.
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
            alignment: d.number("MethodDescAlignment")?,
            table: bind!(d, MethodTable { NumVirtuals? })?,
            table_bytes: MethodTable::size(d).ok(),
        })
    }

    /// The methods of the type at `mt`, by slot: those that it declares.
    ///
    /// # Errors
    /// [`ReadError`] if its chunks are not in the dump.
    pub(crate) fn of(&self, methods: &Methods, names: &TypeNames, mt: Addr) -> Result<MethodList, ReadError> {
        let mut out = MethodList::default();
        let tables = names.method_tables();
        let canonical = tables.canonical(mt)?;
        let info = tables.read(canonical)?;
        if info.is_array {
            // Their accessors have neither names nor tokens.
            return Ok(out);
        }
        let metadata = tables.module(&info).ok().and_then(|home| names.module(home).metadata.clone());
        let declared: Option<HashSet<u32>> = metadata.zip(tables.rid(&info).ok()).map(|(m, rid)| m.methods_of(rid).into_iter().collect());
        let is_declared = |rid: u32| declared.as_ref().is_none_or(|list| list.contains(&rid));
        let mut chunk = self.class.read(&self.memory, tables.class(mt)?, EEClass::MethodDescChunk)?;
        let mut seen = HashSet::new();
        while !chunk.is_null() && seen.len() < MAX_CHUNKS && seen.insert(chunk) {
            let before = out.methods.len();
            // Stored minus one.
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

    /// Adds the methods of one chunk, which says how many it has. `row` says of an address whose method is there, and its row.
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
            // What follows in a MethodDesc may look like the place of another one, but hardly has the row of another method.
            if u64::from(stored) == index
                && let Some((_, rid)) = row(at)
            {
                if rids.insert(rid) { starts.push(at) } else { again.push(at) }
            }
        }
        // .NET 11 has two of an asynchronous method, under one row: one for callers that want a task, one for those that await it.
        if starts.len().saturating_add(again.len()) == count {
            starts.append(&mut again);
            starts.sort_unstable();
        }
        let end = first.element(last.saturating_add(1), self.alignment);
        for (i, at) in starts.iter().enumerate() {
            let next = starts.get(i.saturating_add(1)).copied().unwrap_or(end);
            let slot = self.desc.read(&self.memory, *at, MethodDesc::Slot)?;
            out.methods.push(Listed { desc: *at, slot, leads: self.leads(canonical, *at, next, slot) });
        }
        Ok(())
    }

    /// Words that may lead to the code of the method at `desc`, which ends at `end`.
    fn leads(&self, canonical: Addr, desc: Addr, end: Addr, slot: u16) -> Vec<Addr> {
        let word = self.memory.ptr_bytes();
        let words = end.since(desc).unwrap_or(0).checked_div(word).unwrap_or(0).min(MAX_WORDS);
        let mut out: Vec<Addr> = Vec::new();
        out.extend(self.virtual_slot(canonical, slot));
        // What is known of the method's code since .NET 9: where it is entered first.
        if let Some(data) = self.desc.pointer(&self.memory, desc, MethodDesc::CodeData) {
            out.extend((0..2).filter_map(|i| self.memory.ptr(data.element(i, word)).ok()));
        }
        out.extend((1..words).filter_map(|i| self.memory.ptr(desc.element(i, word)).ok()));
        out.retain(|a| !a.is_null());
        out
    }

    /// What the virtual method table has in `slot`.
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
