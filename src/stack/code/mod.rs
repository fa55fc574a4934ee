//! Code lookup: which method an address of code belongs to.
//!
//! Source: contract `ExecutionManager`, `codeman.cpp`;
//! measured as `docs/internals/stacks.md#code` says.

mod jitted;
mod nibbles;
mod piece;
mod ready_to_run;
mod sections;

use std::sync::Arc;

pub(crate) use nibbles::NibbleForm;
pub(crate) use piece::{Code, CodeOrigin};
pub(super) use ready_to_run::section as ready_to_run_section;

use super::gc_info::GcInfo;
use super::{CodeBytes, Known, StackError};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, len64};
use crate::contract::{Contract, ContractError, Descriptor};
use jitted::Jitted;
use ready_to_run::ReadyToRun;
pub(crate) use sections::{CodeRanges, CodeUse};
use sections::{Section, Sections};

/// The answer for an address.
type Found = Result<Option<Arc<Code>>, StackError>;

/// Looks up code. Answers are kept: the threads of a process stand in few methods.
#[derive(Debug)]
pub(crate) struct CodeMap {
    bytes: CodeBytes,
    sections: Sections,
    jitted: Jitted,
    ready_to_run: ReadyToRun,
    known: Known<Found>,
}

const fn too_many_reads(ip: Addr) -> StackError {
    StackError::invalid(ip, "the code at an address cannot be found with the reads that are left")
}

impl CodeMap {
    /// The contract read.
    pub(crate) const CONTRACT: Contract = Contract::optional("ExecutionManager", &["1", "2"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of the contract is advertised, or the descriptor does not have a layout.
    pub(crate) fn bind(bytes: &CodeBytes, d: &Descriptor) -> Result<CodeMap, ContractError> {
        Self::CONTRACT.require(d)?;
        GcInfo::CONTRACT.permit(d)?;
        // .NET 11 numbers its contracts anew, from c1.
        let raw = d.contracts.get(Self::CONTRACT.name).map(|c| c.version.as_str());
        let form = if raw == Some("1") { NibbleForm::Linear } else { NibbleForm::Constant };
        Ok(CodeMap {
            bytes: bytes.clone(),
            sections: Sections::bind(d, bytes.memory().dump_bytes())?,
            jitted: Jitted::bind(d, form)?,
            ready_to_run: ReadyToRun::bind(d)?,
            known: Known::new(bytes.memory().dump_bytes()),
        })
    }

    /// The memory that it reads.
    pub(crate) fn bytes(&self) -> &CodeBytes {
        &self.bytes
    }

    /// The code at `ip`; `None` if it is not managed.
    ///
    /// # Errors
    /// [`StackError`] if the structures are not in the dump, or are wrong.
    pub(crate) fn find(&self, ip: Addr) -> Result<Option<Arc<Code>>, StackError> {
        self.known.free(ip, || self.found(ip)).unwrap_or(Err(too_many_reads(ip)))
    }

    /// The code at an address, for a walk of a stack, which takes the reads of the look-up even where the answer is known.
    ///
    /// # Errors
    /// [`StackError`] if the structures that tell are not in the dump, or are wrong.
    pub(crate) fn paid(&self, ip: Addr) -> Result<Option<Arc<Code>>, StackError> {
        self.known.paid(ip, || self.found(ip)).unwrap_or(Err(too_many_reads(ip)))
    }

    /// The code at `ip`, and its size in memory.
    fn found(&self, ip: Addr) -> (Found, u64) {
        (self.look_up(ip).map(|code| code.map(Arc::new)), len64(size_of::<Code>()))
    }

    /// An address in each image that has code of `modules`, as far as their structures are in the dump.
    pub(crate) fn images(&self, modules: &[Addr]) -> Vec<Addr> {
        tried(|| modules.iter().filter_map(|module| self.ready_to_run.header(&self.bytes, *module)).collect())
    }

    /// Every range of addresses that the runtime keeps for code.
    pub(crate) fn ranges(&self) -> CodeRanges {
        self.sections.all(&self.bytes)
    }

    fn look_up(&self, ip: Addr) -> Result<Option<Code>, StackError> {
        match self.sections.at(&self.bytes, ip)? {
            Some(Section::Heap { base, heap }) => self.jitted.find(&self.bytes, base, heap, ip),
            Some(Section::Image { range, module }) => self.ready_to_run.find(&self.bytes, range.start, module, ip),
            None => Ok(None),
        }
    }

    /// The image section around `ip`: its range and module. `None` where code is not of an image.
    ///
    /// # Errors
    /// [`StackError`] if the structures that tell are not in the dump.
    pub(crate) fn image(&self, ip: Addr) -> Result<Option<(AddrRange, Addr)>, StackError> {
        Ok(match self.sections.at(&self.bytes, ip)? {
            Some(Section::Image { range, module }) => Some((range, module)),
            _ => None,
        })
    }
}
