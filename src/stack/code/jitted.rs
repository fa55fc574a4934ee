//! Code that the JIT made: nibble maps lead to the method's start, the word before it to its header.

use super::super::{CodeBytes, FunctionEntry, StackError};
use super::nibbles::{NibbleForm, NibbleMap};
use super::{Code, CodeOrigin};
use crate::base::{Addr, AddrRange};
use crate::contract::descriptor::layout;
use crate::contract::{ContractError, Descriptor};

layout! {
    struct HeapLayout : "CodeHeapListNode" {
        start: req "StartAddress",
        end: req "EndAddress",
        base: req "MapBase",
        map: req "HeaderMap",
    }
}

layout! {
    struct HeaderLayout : "RealCodeHeader" {
        clauses: opt "EHInfo",
        gc_info: req "GCInfo",
        method_desc: req "MethodDesc",
        count: req "NumUnwindInfos",
        entries: req "UnwindInfos",
    }
}

layout! {
    pub(super) struct FunctionLayout : "RuntimeFunction" {
        begin: req "BeginAddress",
        end: opt "EndAddress",
        unwind: req "UnwindData",
    }
}

/// Most pieces of a method: its body and funclets.
const MAX_PIECES: u32 = 1 << 16;

/// A table of `RUNTIME_FUNCTION`s.
#[derive(Debug)]
pub(super) struct Functions {
    layout: FunctionLayout,
    size: u64,
}

impl Functions {
    pub(super) fn bind(d: &Descriptor) -> Result<Functions, ContractError> {
        Ok(Functions { layout: FunctionLayout::bind(d)?, size: d.size_of("RuntimeFunction")? })
    }

    /// Whether entries say where they end: on arm64 the unwind data does.
    pub(super) fn has_ends(&self) -> bool {
        self.layout.end.is_some()
    }

    /// Where entry `index` of the table at `table` begins.
    pub(super) fn begin(&self, bytes: &CodeBytes, table: Addr, index: u64) -> Result<u32, StackError> {
        Ok(bytes.u32(table.element(index, self.size).plus(self.layout.begin))?)
    }

    /// Entry `index` of the table at `table`.
    pub(super) fn entry(&self, bytes: &CodeBytes, table: Addr, index: u64) -> Result<FunctionEntry, StackError> {
        let at = table.element(index, self.size);
        Ok(FunctionEntry {
            begin: bytes.u32(at.plus(self.layout.begin))?,
            end: self.layout.end.map(|o| bytes.u32(at.plus(o))).transpose()?,
            unwind: bytes.u32(at.plus(self.layout.unwind))?,
        })
    }
}

/// Reads code heaps.
#[derive(Debug)]
pub(super) struct Jitted {
    heap: HeapLayout,
    header: HeaderLayout,
    functions: Functions,
    form: NibbleForm,
    /// Headers up to this value mark blocks of stubs.
    last_stub: u64,
    gc_version: u32,
}

impl Jitted {
    pub(super) fn bind(d: &Descriptor, form: NibbleForm) -> Result<Jitted, ContractError> {
        Ok(Jitted {
            heap: HeapLayout::bind(d)?,
            header: HeaderLayout::bind(d)?,
            functions: Functions::bind(d)?,
            form,
            last_stub: d.number("StubCodeBlockLast")?,
            gc_version: u32::try_from(d.number("GCInfoVersion")?).unwrap_or(u32::MAX),
        })
    }

    /// The code at `ip` in the heap `heap`, whose unwind entries count from `base`.
    pub(super) fn find(&self, bytes: &CodeBytes, base: Addr, heap: Addr, ip: Addr) -> Result<Option<Code>, StackError> {
        let word = |at: Addr| bytes.u64(at).map(Addr);
        let (start, end) = (word(heap.plus(self.heap.start))?, word(heap.plus(self.heap.end))?);
        if !(start <= ip && ip <= end) {
            return Ok(None);
        }
        let map = NibbleMap { form: self.form, units: word(heap.plus(self.heap.map))?, base: word(heap.plus(self.heap.base))? };
        let Some(start) = map.start(bytes, ip)? else { return Ok(None) };
        let header = word(start.minus(8).ok_or(StackError::invalid(start, "a method starts at no address"))?)?;
        if header.0 <= self.last_stub {
            return Ok(None);
        }
        let l = &self.header;
        let table = header.plus(l.entries);
        let mut count = bytes.u32(header.plus(l.count))?;
        if count == 0 || count > MAX_PIECES {
            return Err(StackError::invalid(header, "a code header has a wrong number of unwind entries"));
        }
        // On Windows, up to three methods of a process have an entry of zeros behind their own.
        let mut last = self.functions.entry(bytes, table, u64::from(count.saturating_sub(1)))?;
        while last.end == Some(0) && count > 1 {
            count = count.saturating_sub(1);
            last = self.functions.entry(bytes, table, u64::from(count.saturating_sub(1)))?;
        }
        // Ascending: the last piece that begins at or before the address.
        let rva = ip.since(base).unwrap_or(0);
        let (mut low, mut high) = (0, u64::from(count));
        while high.saturating_sub(low) > 1 {
            let middle = low.midpoint(high);
            if u64::from(self.functions.begin(bytes, table, middle)?) <= rva { low = middle } else { high = middle }
        }
        let entry = self.functions.entry(bytes, table, low)?;
        let at = |rva: u32| base.plus(u64::from(rva));
        // Entries without an end (arm64) go on to the next one; the last one to wherever the GC info says.
        let next = || self.functions.begin(bytes, table, low.saturating_add(1)).map(at);
        let end = match entry.end {
            Some(end) => at(end),
            None if low.saturating_add(1) < u64::from(count) => next()?,
            None => ip.plus(1),
        };
        let range = AddrRange::new(at(entry.begin), end);
        if !range.contains(ip) {
            return Ok(None);
        }
        if base.plus(u64::from(self.functions.begin(bytes, table, 0)?)) != start {
            return Err(StackError::invalid(header, "a code header is not that of the method before it"));
        }
        Ok(Some(Code {
            method_desc: word(header.plus(l.method_desc))?,
            start,
            range,
            origin: CodeOrigin::Jitted { header, clauses: l.clauses.map(|o| word(header.plus(o))).transpose()?.unwrap_or(Addr::NULL) },
            base,
            entry,
            funclet: low > 0,
            gc_info: Ok(word(header.plus(l.gc_info))?),
            gc_version: self.gc_version,
            code_length: last.end.and_then(|end| at(end).since(start)).unwrap_or(0),
        }))
    }
}
