//! Method tables, classes, fields and type descriptions.

use super::data;
use crate::base::Addr;

data! {
    /// `EEClass` (class.h).
    EEClass {
        /// `EEClassOptionalFields`.
        OptionalFields: Addr,
        /// The first `MethodDescChunk`.
        MethodDescChunk: Addr,
    }

    /// `MethodTable` (methodtable.h).
    MethodTable {
        NumVirtuals: u16,
    }
}
