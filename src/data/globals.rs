//! Globals of the runtime that several readers use, each named once. Their values come from the descriptor of the dump.
//!
//! Source: contract `contract-descriptor`, and `datadescriptor.inc` of the VM and the GC.

use std::marker::PhantomData;

use crate::base::Addr;
use crate::contract::{ContractError, Descriptor};

/// A global. `T` is its kind: [`Addr`] for the address of a variable or structure, `u64` for a number.
pub(crate) struct Global<T> {
    name: &'static str,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Global<T> {
    fn clone(&self) -> Global<T> {
        *self
    }
}

impl<T> Copy for Global<T> {}

impl<T> Global<T> {
    /// The name in descriptors.
    pub(crate) const fn name(self) -> &'static str {
        self.name
    }
}

impl Global<Addr> {
    /// The address. Most globals are variables, which hold a pointer to a structure.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the global.
    pub(crate) fn of(self, descriptor: &Descriptor) -> Result<Addr, ContractError> {
        descriptor.pointer(self.name)
    }
}

impl Global<u64> {
    /// The number.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the global.
    pub(crate) fn of(self, descriptor: &Descriptor) -> Result<u64, ContractError> {
        descriptor.number(self.name)
    }
}

macro_rules! globals {
    ($($(#[$meta:meta])* $global:ident: $kind:ty,)*) => {
        $(
            $(#[$meta])*
            #[allow(non_upper_case_globals, reason = "named as in the runtime")]
            pub(crate) const $global: Global<$kind> = Global { name: stringify!($global), of: PhantomData };
        )*
    };
}

globals! {
    /// The variable that points to the [`ThreadStore`](super::ThreadStore). In NativeAOT, it is a field of the `RuntimeInstance`.
    ThreadStore: Addr,
    /// The variable that points to the [`IdDispenser`](super::IdDispenser) of managed thread ids.
    ThinlockThreadIdDispenser: Addr,
    /// The variable that points to the [`AppDomain`](super::AppDomain).
    AppDomain: Addr,
    /// The variables with the `MethodTable` of free space and of well-known types.
    FreeObjectMethodTable: Addr,
    ObjectMethodTable: Addr,
    StringMethodTable: Addr,
    ExceptionMethodTable: Addr,
    /// The unit in bytes of the positions of MethodDescs in their chunk.
    MethodDescAlignment: u64,
    /// Version of the encoding of GC info.
    GCInfoVersion: u64,
    /// The variables with the bounds of the memory that the GC has reserved.
    GCLowestAddress: Addr,
    GCHighestAddress: Addr,
    /// The variable that points to the first [`CardTableInfo`](super::CardTableInfo).
    BookkeepingStart: Addr,
    /// Size in bytes of a [`CardTableInfo`](super::CardTableInfo), or of the part of it that the descriptor covers.
    CardTableInfoSize: u64,
    /// Number of handle types in a [`HandleTable`](super::HandleTable).
    HandleMaxInternalTypes: u64,
    /// Number of buckets in a [`HandleTableMap`](super::HandleTableMap).
    InitialHandleTableArraySize: u64,
}
