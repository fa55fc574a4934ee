//! Floor 3: finds the data contract descriptor of each runtime in the process, parses, merges, or synthesises it.
//!
//! .NET 11 describes its own GC in the dump. .NET 9 and 10 describe the VM only, and in most dumps not even that can be
//! read; .NET 8 describes nothing. There a bundled overlay stands in, and the GC part is synthesised from `GcDacVars`.
//! Above this floor all runtimes look the same.

pub mod checks;
mod dac_table;
pub(crate) mod descriptor;
mod header;
mod json;
mod locate;
mod overlay;
mod runtime;
mod support;
mod synthesis;

pub use dac_table::{DacTable, GcDacVars};
pub use descriptor::{ContractError, ContractInfo, Descriptor, FieldInfo, GlobalInfo, GlobalValue, Origin, TypeInfo};
pub use header::{Header, HeaderError};
pub use json::{JsonError, RawDescriptor, parse as parse_descriptor};
pub use locate::Site;
pub use overlay::{Overlay, OverlayError, bundled_names};
pub use runtime::{Description, Options, RuntimeError, open_runtimes};
pub use support::{CONTRACTS, Contract, refusal};
