//! Definitions of types.

use crate::base::Addr;

/// Value of the row for a type that is identified by its method table.
const COMPILED: u32 = u32::MAX;

/// The definition of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Definition {
    /// Address of the `Module`; in NativeAOT programs, the method table of the definition itself.
    pub module: Addr,
    /// Row in TypeDef.
    pub rid: u32,
}

impl Definition {
    /// The definition of a type in a NativeAOT program, identified by the method table of the definition.
    pub(super) fn compiled(mt: Addr) -> Definition {
        Definition { module: mt, rid: COMPILED }
    }

    /// Whether the type is in a NativeAOT program.
    pub(super) fn is_compiled(self) -> bool {
        self.rid == COMPILED
    }
}
