//! NativeAOT programs of .NET 8 to 10, which have no descriptor, but a debug header that names the runtime's structures.
//!
//! Source: `docs/internals/native-aot.md`. Programs of .NET 11 and later have a descriptor. The descriptor synthesized here has the same form.

mod crash;
mod describe;
mod find;
mod header;
#[cfg(test)]
mod tests;
mod version;

pub(crate) use crash::redacted;
pub(super) use crash::report;
pub(super) use describe::{complete, describe};
pub(super) use find::{all_by_content, by_content, by_export};
pub use header::{DebugHeader, DebugHeaderError};
pub(super) use version::version;
