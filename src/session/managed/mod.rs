//! Handles for threads and their frames, methods, variables, roots, GC handles, fields and collections: the managed side of the process.
//!
//! Like [`Object`](super::Object) and [`Type`](super::Type), they are cheap to clone, `Send + Sync`, and read the dump when asked.

mod collection;
mod field;
mod frame;
mod gc_handle;
mod method;
mod readers;
mod root;
mod thread;

pub use collection::Collection;
pub use field::Field;
pub use frame::{Frame, Variable};
pub use gc_handle::GcHandle;
pub use method::Method;
pub use root::Root;
pub use thread::Thread;
