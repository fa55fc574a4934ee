//! Where a type is defined.

use crate::base::Addr;

/// In place of a row: the type is known by its method table.
const COMPILED: u32 = u32::MAX;

/// Definition of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Definition {
    /// Address of the `Module`; in NativeAOT programs the method table of the definition itself.
    pub module: Addr,
    /// Row of TypeDef.
    pub rid: u32,
}

impl Definition {
    /// A type of a NativeAOT program: known by the method table of its definition.
    pub(super) fn compiled(mt: Addr) -> Definition {
        Definition { module: mt, rid: COMPILED }
    }

    /// Whether it is such a type.
    pub(super) fn is_compiled(self) -> bool {
        self.rid == COMPILED
    }
}
