//! Precodes: the stubs through which methods are entered.
//!
//! Source: contract `PrecodeStubs`; `precode.h`. The measurements are in `docs/internals/delegates.md`.

use std::sync::Arc;

use crate::base::Addr;
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::{FixupPrecodeData, Offset, PlatformMetadata, PrecodeMachineDescriptor, StubPrecodeData, bind};
use crate::memory::Memory;

/// Page sizes of processors.
const PAGE_SIZES: std::ops::RangeInclusive<u64> = 1 << 12..=1 << 20;

/// Reader of the data of precodes. The code of precodes is not needed.
#[derive(Clone, Debug)]
pub(crate) struct Precodes {
    memory: Arc<Memory>,
    /// Distance from the code of a stub to its data.
    page: u64,
    fixup: Offset<FixupPrecodeData, Addr>,
    stub: Offset<StubPrecodeData, Addr>,
}

impl Precodes {
    /// The contract that is read.
    pub(crate) const CONTRACT: Contract = Contract::optional("PrecodeStubs", &["1", "2", "3"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if the advertised version of the contract is not supported, or a layout or the size of stub pages is missing.
    pub(crate) fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Result<Precodes, ContractError> {
        Self::CONTRACT.permit(d)?;
        let (fixup, stub) = (FixupPrecodeData::MethodDesc.bind(d)?, StubPrecodeData::MethodDesc.bind(d)?);
        let page = match published(memory, d) {
            Some(page) => page,
            None => d.number("StubCodePageSize")?,
        };
        if !(page.is_power_of_two() && PAGE_SIZES.contains(&page)) {
            return Err(ContractError::WrongKind { name: "StubCodePageSize".into(), wanted: "the size of a page" });
        }
        Ok(Precodes { memory: Arc::clone(memory), page, fixup, stub })
    }

    /// The method of the precode at `entry`, as recognized by `is_method`; `None` if `entry` does not have a precode.
    ///
    /// The data is one page after the code. The two kinds of precode contain the MethodDesc in different words. The word in which `is_method`
    /// recognizes a method shows the kind, because the other words of a fixup precode are code addresses.
    pub(crate) fn method(&self, entry: Addr, is_method: impl Fn(Addr) -> bool) -> Option<Addr> {
        let data = entry.plus(self.page);
        let method = |candidate: Option<Addr>| candidate.filter(|method| is_method(*method));
        method(self.fixup.get(&self.memory, data)).or_else(|| method(self.stub.get(&self.memory, data)))
    }
}

impl Precodes {
    /// Candidates for the target of the precode at `entry` of the method `desc`; empty if `entry` does not have a precode of this method. The
    /// offset of the target depends on the kind of precode, and descriptors do not contain this offset. Each word of the data other than the
    /// MethodDesc is therefore a candidate.
    ///
    /// Precodes are pointer-aligned (`PRECODE_ALIGNMENT`), so unaligned words are rejected without reading their data.
    pub(crate) fn targets(&self, entry: Addr, desc: Addr) -> Vec<Addr> {
        if !entry.0.is_multiple_of(self.memory.ptr_bytes()) || self.method(entry, |method| method == desc).is_none() {
            return Vec::new();
        }
        let (data, word) = (entry.plus(self.page), self.memory.ptr_bytes());
        (0..3).filter_map(|i| self.memory.ptr(data.element(i, word)).ok()).filter(|target| *target != desc).collect()
    }
}

/// The page size in the runtime's platform metadata, since .NET 10.
fn published(memory: &Memory, d: &Descriptor) -> Option<u64> {
    let at = d.pointer("PlatformMetadata").ok()?;
    let precodes = PlatformMetadata::PrecodeMachineDescriptor.bind(d).ok()?;
    let machine = bind!(d, PrecodeMachineDescriptor { StubCodePageSize }).ok()?;
    machine.get(memory, precodes.place(at), PrecodeMachineDescriptor::StubCodePageSize).map(u64::from)
}
