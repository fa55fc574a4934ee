//! JIT-compiled code: nibble maps lead to the method's start, and the word before the start points to the method's code header.

use super::super::{CodeBytes, FunctionEntry, StackError};
use super::nibbles::{NibbleForm, NibbleMap};
use super::piece::{Code, CodeOrigin};
use crate::base::{Addr, AddrRange};
use crate::contract::{ContractError, Descriptor};
use crate::data::{Bound, CodeHeapListNode as Heap, RealCodeHeader as Header, RuntimeFunction, Structure, bind, globals};

/// Maximum number of pieces of a method: its body and funclets.
const MAX_PIECES: u32 = 1 << 16;

/// A table of `RUNTIME_FUNCTION`s.
#[derive(Debug)]
pub(super) struct Functions {
    function: Bound<RuntimeFunction>,
    size: u64,
}

impl Functions {
    pub(super) fn bind(d: &Descriptor) -> Result<Functions, ContractError> {
        Ok(Functions { function: bind!(d, RuntimeFunction { BeginAddress, EndAddress?, UnwindData })?, size: RuntimeFunction::size(d)? })
    }

    /// Whether entries have an end. On arm64, the unwind data has it.
    pub(super) fn has_ends(&self) -> bool {
        self.function.has(RuntimeFunction::EndAddress)
    }

    /// The start of entry `index` of the table at `table`, as an RVA.
    pub(super) fn begin(&self, bytes: &CodeBytes, table: Addr, index: u64) -> Result<u32, StackError> {
        Ok(self.function.read(bytes, table.element(index, self.size), RuntimeFunction::BeginAddress)?)
    }

    /// Entry `index` of the table at `table`.
    pub(super) fn entry(&self, bytes: &CodeBytes, table: Addr, index: u64) -> Result<FunctionEntry, StackError> {
        let at = table.element(index, self.size);
        Ok(FunctionEntry {
            begin: self.function.read(bytes, at, RuntimeFunction::BeginAddress)?,
            end: self.function.read_optional(bytes, at, RuntimeFunction::EndAddress)?,
            unwind: self.function.read(bytes, at, RuntimeFunction::UnwindData)?,
        })
    }
}

/// Reads code heaps.
#[derive(Debug)]
pub(super) struct Jitted {
    heap: Bound<Heap>,
    header: Bound<Header>,
    functions: Functions,
    form: NibbleForm,
    /// Header pointers up to this value mark blocks of stubs.
    last_stub: u64,
    gc_version: u32,
}

impl Jitted {
    pub(super) fn bind(d: &Descriptor, form: NibbleForm) -> Result<Jitted, ContractError> {
        Ok(Jitted {
            heap: bind!(d, Heap { StartAddress, EndAddress, MapBase, HeaderMap })?,
            header: bind!(d, Header { EHInfo?, GCInfo, MethodDesc, NumUnwindInfos, UnwindInfos })?,
            functions: Functions::bind(d)?,
            form,
            last_stub: d.number("StubCodeBlockLast")?,
            gc_version: u32::try_from(globals::GCInfoVersion.of(d)?).unwrap_or(u32::MAX),
        })
    }

    /// The code at `ip` in the code heap `heap`, whose unwind entries are relative to `base`.
    pub(super) fn find(&self, bytes: &CodeBytes, base: Addr, heap: Addr, ip: Addr) -> Result<Option<Code>, StackError> {
        let of_heap = |field| self.heap.read(bytes, heap, field);
        let (start, end) = (of_heap(Heap::StartAddress)?, of_heap(Heap::EndAddress)?);
        if !(start <= ip && ip <= end) {
            return Ok(None);
        }
        let map = NibbleMap { form: self.form, units: of_heap(Heap::HeaderMap)?, base: of_heap(Heap::MapBase)? };
        let Some(start) = map.start(bytes, ip)? else { return Ok(None) };
        let header = Addr(bytes.u64(start.minus(8).ok_or(StackError::invalid(start, "a method starts at an impossible address"))?)?);
        // The runtime stores the header, or the kind of stub, before it enters the start in the map. Kind 0 (`STUB_CODE_BLOCK_UNKNOWN`, codeman.h)
        // is never stored.
        if header.is_null() {
            return Err(StackError::invalid(start, "a method without a code header"));
        }
        if header.0 <= self.last_stub {
            return Ok(None);
        }
        let of_header = |field| self.header.read(bytes, header, field);
        let table = self.header.at(header, Header::UnwindInfos)?;
        let mut count = self.header.read(bytes, header, Header::NumUnwindInfos)?;
        if count == 0 || count > MAX_PIECES {
            return Err(StackError::invalid(header, "a code header has an invalid number of unwind entries"));
        }
        // On Windows, a few methods (at most three in a process were seen) have an additional entry of zeros at the end.
        let mut last = self.functions.entry(bytes, table, u64::from(count.saturating_sub(1)))?;
        while last.end == Some(0) && count > 1 {
            count = count.saturating_sub(1);
            last = self.functions.entry(bytes, table, u64::from(count.saturating_sub(1)))?;
        }
        // Entries are ascending: finds the last piece that begins at or before the address.
        let rva = ip.since(base).unwrap_or(0);
        let (mut low, mut high) = (0, u64::from(count));
        while high.saturating_sub(low) > 1 {
            let middle = low.midpoint(high);
            if u64::from(self.functions.begin(bytes, table, middle)?) <= rva { low = middle } else { high = middle }
        }
        let entry = self.functions.entry(bytes, table, low)?;
        let at = |rva: u32| base.plus(u64::from(rva));
        // An entry without an end (arm64) extends to the next entry. The end of the last entry is not looked up, and its range ends directly after
        // `ip`.
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
            return Err(StackError::invalid(header, "a code header does not belong to the method that leads to it"));
        }
        let method_desc = of_header(Header::MethodDesc)?;
        let clauses = self.header.read_optional(bytes, header, Header::EHInfo)?.unwrap_or(Addr::NULL);
        Ok(Some(Code {
            method_desc,
            start,
            range,
            origin: CodeOrigin::Jitted { header, clauses },
            base,
            entry,
            funclet: low > 0,
            gc_info: Ok(of_header(Header::GCInfo)?),
            gc_version: self.gc_version,
            code_length: last.end.and_then(|end| at(end).since(start)).unwrap_or(0),
        }))
    }
}
