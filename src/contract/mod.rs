//! Locates, parses, merges or synthesizes the data contract descriptor of each runtime in the process.
//!
//! .NET 11 has descriptors for VM and GC. .NET 9 and 10 have a descriptor for the VM only, which is missing from most dumps. .NET 8 has none. Where a
//! descriptor is missing, a bundled overlay is used, and the GC part is synthesized from `GcDacVars`. Layers above this one see no difference.

pub mod checks;
mod dac_table;
pub(crate) mod descriptor;
mod evidence;
mod gc_image;
mod header;
mod json;
mod left_out;
mod locate;
mod native_aot;
pub(crate) mod overlay;
mod runtime;
mod support;
mod synthesis;
pub(crate) mod thread_list;

pub use dac_table::{DacTable, GcDacVars};
pub use descriptor::{ContractError, ContractInfo, Descriptor, FieldInfo, GlobalInfo, GlobalValue, Origin, TypeInfo};
pub use header::{Header, HeaderError};
pub use json::{DescriptorItem, JsonError, RawDescriptor, parse as parse_descriptor};
pub use locate::Site;
pub(crate) use locate::{is_runtime_name, own_program};
pub(crate) use native_aot::redacted as redacted_crash_report;
pub use native_aot::{DebugHeader, DebugHeaderError};
pub use overlay::{Overlay, OverlayError};
pub use runtime::{Description, Options, RuntimeError, open_runtimes};
pub use support::{CONTRACTS, Contract, is_known, refusal};
