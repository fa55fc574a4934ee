//! Code lookup: finds the method that contains a code address.
//!
//! Source: contract `ExecutionManager`, `codeman.cpp`; measured as described in `docs/internals/stacks.md#code`.

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
use super::{CodeBytes, CostedCache, StackError};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, len64};
use crate::contract::{Contract, ContractError, Descriptor};
use jitted::Jitted;
use ready_to_run::ReadyToRun;
pub(crate) use sections::{CodeRanges, CodeUse};
use sections::{Section, Sections};

/// The result of a look-up.
type Found = Result<Option<Arc<Code>>, StackError>;

/// Looks up code. Results are cached, because the threads of a process are in few methods.
#[derive(Debug)]
pub(crate) struct CodeMap {
    bytes: CodeBytes,
    sections: Sections,
    jitted: Jitted,
    ready_to_run: ReadyToRun,
    known: CostedCache<Found>,
}

const fn too_many_reads(ip: Addr) -> StackError {
    StackError::invalid(ip, "looking up the code takes more reads than are left")
}

impl CodeMap {
    /// The contract that describes code heaps, code headers and ReadyToRun images.
    pub(crate) const CONTRACT: Contract = Contract::optional("ExecutionManager", &["1", "2"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of the contract is advertised, or the descriptor does not have a required layout.
    pub(crate) fn bind(bytes: &CodeBytes, d: &Descriptor) -> Result<CodeMap, ContractError> {
        Self::CONTRACT.require(d)?;
        GcInfo::CONTRACT.permit(d)?;
        // .NET 11 restarts the numbering of contracts, at c1.
        let raw = d.contracts.get(Self::CONTRACT.name).map(|c| c.version.as_str());
        let form = if raw == Some("1") { NibbleForm::Linear } else { NibbleForm::Constant };
        Ok(CodeMap {
            bytes: bytes.clone(),
            sections: Sections::bind(d, bytes.memory().dump_bytes())?,
            jitted: Jitted::bind(d, form)?,
            ready_to_run: ReadyToRun::bind(d)?,
            known: CostedCache::new(bytes.memory().dump_bytes()),
        })
    }

    /// The reader of code bytes.
    pub(crate) fn bytes(&self) -> &CodeBytes {
        &self.bytes
    }

    /// The code at `ip`; `None` if `ip` is not in managed code.
    ///
    /// # Errors
    /// [`StackError`] if the structures are not in the dump, or are invalid.
    pub(crate) fn find(&self, ip: Addr) -> Result<Option<Arc<Code>>, StackError> {
        self.known.free(ip, || self.found(ip)).unwrap_or(Err(too_many_reads(ip)))
    }

    /// The code at `ip` for a stack walk, which pays the reads of the look-up even if the result is cached.
    ///
    /// # Errors
    /// [`StackError`] if the structures are not in the dump, or are invalid.
    pub(crate) fn paid(&self, ip: Addr) -> Result<Option<Arc<Code>>, StackError> {
        self.known.paid(ip, || self.found(ip)).unwrap_or(Err(too_many_reads(ip)))
    }

    /// The code at `ip`, and its size in memory.
    fn found(&self, ip: Addr) -> (Found, u64) {
        (self.look_up(ip).map(|code| code.map(Arc::new)), len64(size_of::<Code>()))
    }

    /// The address of the ReadyToRun header in each image that has code of `modules`. Modules whose structures are not in the dump are skipped.
    pub(crate) fn images(&self, modules: &[Addr]) -> Vec<Addr> {
        tried(|| modules.iter().filter_map(|module| self.ready_to_run.header(&self.bytes, *module)).collect())
    }

    /// Every address range that the runtime uses for code.
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

    /// Range and module of the image section that contains `ip`; `None` if `ip` is not in an image.
    ///
    /// # Errors
    /// [`StackError`] if the structures are not in the dump.
    pub(crate) fn image(&self, ip: Addr) -> Result<Option<(AddrRange, Addr)>, StackError> {
        Ok(match self.sections.at(&self.bytes, ip)? {
            Some(Section::Image { range, module }) => Some((range, module)),
            _ => None,
        })
    }
}
