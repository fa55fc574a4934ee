//! Precodes: the small pieces of code that methods are entered through.
//!
//! Source: contract `PrecodeStubs`; `precode.h`. `docs/internals/delegates.md` tells what was measured.

use std::sync::Arc;

use crate::base::Addr;
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::{FixupPrecodeData, PlatformMetadata, PrecodeMachineDescriptor, StubPrecodeData, bind};
use crate::memory::Memory;

/// Page sizes that processors have.
const PAGE_SIZES: std::ops::RangeInclusive<u64> = 1 << 12..=1 << 20;

/// Reads what precodes lead to: their code is not needed.
#[derive(Clone, Debug)]
pub(crate) struct Precodes {
    memory: Arc<Memory>,
    /// From a stub's code to its data.
    page: u64,
    fixup: u64,
    stub: u64,
}

impl Precodes {
    /// The contract read.
    pub(crate) const CONTRACT: Contract = Contract::optional("PrecodeStubs", &["1", "2", "3"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if the advertised version of the contract is not supported, or a layout or the size of stub pages is missing.
    pub(crate) fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Result<Precodes, ContractError> {
        Self::CONTRACT.permit(d)?;
        let (fixup, stub) = (FixupPrecodeData::MethodDesc.offset(d)?, StubPrecodeData::MethodDesc.offset(d)?);
        let page = match published(memory, d) {
            Some(page) => page,
            None => d.number("StubCodePageSize")?,
        };
        if !(page.is_power_of_two() && PAGE_SIZES.contains(&page)) {
            return Err(ContractError::WrongKind { name: "StubCodePageSize".into(), wanted: "the size of a page" });
        }
        Ok(Precodes { memory: Arc::clone(memory), page, fixup, stub })
    }

    /// The method that the precode at `entry` enters, of which `is_method` knows; `None` if it is no precode.
    ///
    /// Data lie one page behind the code. A fixup precode's other words are addresses of code, so that the two kinds are told apart by
    /// which word is a method.
    pub(crate) fn method(&self, entry: Addr, is_method: impl Fn(Addr) -> bool) -> Option<Addr> {
        let data = entry.plus(self.page);
        let candidate = |offset: u64| self.memory.ptr(data.plus(offset)).ok().filter(|method| is_method(*method));
        candidate(self.fixup).or_else(|| candidate(self.stub))
    }
}

impl Precodes {
    /// Words that may be where the precode at `entry` of the method `desc` leads to; empty if it is no precode of it. The kinds differ in
    /// their order, which no descriptor tells.
    ///
    /// They are aligned as pointers are: `PRECODE_ALIGNMENT`. Other words are none, and reading behind them tells nothing.
    pub(crate) fn targets(&self, entry: Addr, desc: Addr) -> Vec<Addr> {
        if !entry.0.is_multiple_of(self.memory.ptr_bytes()) || self.method(entry, |method| method == desc).is_none() {
            return Vec::new();
        }
        let (data, word) = (entry.plus(self.page), self.memory.ptr_bytes());
        (0..3).filter_map(|i| self.memory.ptr(data.element(i, word)).ok()).filter(|target| *target != desc).collect()
    }
}

/// The page size in the runtime's description of its platform, since .NET 10.
fn published(memory: &Memory, d: &Descriptor) -> Option<u64> {
    let at = d.pointer("PlatformMetadata").ok()?;
    let precodes = PlatformMetadata::PrecodeMachineDescriptor.offset(d).ok()?;
    let machine = bind!(d, PrecodeMachineDescriptor { StubCodePageSize }).ok()?;
    machine.get(memory, at.plus(precodes), PrecodeMachineDescriptor::StubCodePageSize).map(u64::from)
}
