//! What lies at a fixed place in objects: the method table pointer, and the length of arrays.
//!
//! Source: contract `Object`.

use std::sync::Arc;

use crate::base::Addr;
use crate::contract::{Contract, ContractError, Descriptor};
use crate::memory::Memory;

/// Reads the fixed parts of objects.
#[derive(Clone, Debug)]
pub struct Objects {
    memory: Arc<Memory>,
    unmask: u64,
    array_length: Option<u64>,
    array_bytes: Option<u64>,
}

impl Objects {
    /// The contract that is read.
    pub const CONTRACT: Contract = Contract::needed("Object", &["1"]);

    /// Binds to a runtime. One of which only the GC is described has no contract, but aligned method tables.
    ///
    /// # Errors
    /// [`ContractError`] where the contract is advertised in a version that is not read.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Result<Objects, ContractError> {
        Self::CONTRACT.permit(d)?;
        Ok(Objects {
            memory: Arc::clone(memory),
            unmask: d.number("ObjectToMethodTableUnmask").unwrap_or_else(|_| memory.ptr_bytes().saturating_sub(1)),
            array_length: d.offset("Array", "m_NumComponents").ok(),
            array_bytes: d.size_of("Array").ok(),
        })
    }

    /// Bits of an object's first word that are not part of the method table pointer: the mark, the bridge mark and one of
    /// the GC's own.
    pub fn unmask(&self) -> u64 {
        self.unmask
    }

    /// The method table of the object at `object`, mark bits cleared. `None` for null, and where the object is not in the dump.
    pub fn method_table(&self, object: Addr) -> Option<Addr> {
        if object.is_null() {
            return None;
        }
        self.memory.word(object).ok().map(|w| Addr(w & !self.unmask))
    }

    /// Elements of the array at `array`, or characters of the string.
    pub fn component_count(&self, array: Addr) -> Option<u32> {
        self.memory.u32(array.plus(self.array_length?)).ok()
    }

    /// Bytes of the fixed part of an array: the bounds of one with several dimensions, or the elements, lie behind it.
    pub fn array_bytes(&self) -> Option<u64> {
        self.array_bytes
    }
}
