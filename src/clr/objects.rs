//! Fixed parts of objects: the method table pointer and the length of arrays.
//!
//! Source: contract `Object`.

use std::sync::Arc;

use crate::base::Addr;
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::{Array, Offset, Structure};
use crate::memory::Memory;

/// Reader of the fixed parts of objects.
#[derive(Clone, Debug)]
pub struct Objects {
    memory: Arc<Memory>,
    /// The low bits of an object's first word, which are not part of the method table's address.
    unmask: u64,
    /// The length of an array or a string.
    array_length: Option<Offset<Array, u32>>,
    array_bytes: Option<u64>,
}

impl Objects {
    /// The contract that [`Objects`] reads.
    pub const CONTRACT: Contract = Contract::needed("Object", &["1", "n1", "m1"]);

    /// Binds the contract. A descriptor that describes only the GC does not have the contract. The mask of the low bits then follows from the
    /// alignment of method tables.
    ///
    /// # Errors
    /// [`ContractError`] if the advertised version of the contract is not supported.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Result<Objects, ContractError> {
        Self::CONTRACT.permit(d)?;
        Ok(Objects {
            memory: Arc::clone(memory),
            unmask: d.number("ObjectToMethodTableUnmask").unwrap_or_else(|_| memory.ptr_bytes().saturating_sub(1)),
            array_length: Array::m_NumComponents.bind(d).ok(),
            array_bytes: Array::size(d).ok(),
        })
    }

    /// The method table in the first word of an object. Clears the low bits, which the GC sets during collections, such as the mark bit.
    #[inline]
    pub fn table_in(&self, first_word: u64) -> Addr {
        Addr(first_word & !self.unmask)
    }

    /// The method table of the object at `object`, with the mark bits cleared. `None` if `object` is null or not in the dump.
    pub fn method_table(&self, object: Addr) -> Option<Addr> {
        if object.is_null() {
            return None;
        }
        self.memory.word(object).ok().map(|word| self.table_in(word))
    }

    /// Number of elements of the array at `array`. If `array` is a string, its number of characters.
    pub fn component_count(&self, array: Addr) -> Option<u32> {
        self.array_length?.get(&self.memory, array)
    }

    /// Size of the fixed part of an array in bytes. The bounds of a multidimensional array, or the elements, follow.
    pub fn array_bytes(&self) -> Option<u64> {
        self.array_bytes
    }
}
