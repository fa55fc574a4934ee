//! Modules, assemblies and loader allocators.

use super::data;
use crate::base::Addr;

data! {
    /// `Module` (ceeload.h).
    Module {
        /// .NET 8: `DomainLocalModule`, its statics.
        DomainLocalModule: Addr,
        ReadyToRunInfo: Addr,
    }
}
