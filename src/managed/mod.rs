//! The managed side of a process, as handles that analyses and users of the library share.
//!
//! | type | represents |
//! | --- | --- |
//! | [`Object`] | an object of the heap: its type, fields, elements, text, references |
//! | [`Value`] | a field, a static field or an element: typed reads, structures, references |
//! | [`Type`], [`Field`] | a loaded type: name, bases, fields, static fields; a field that is looked up once |
//! | [`Collection`] | a list, dictionary, set or queue of .NET's own library, with its entries |
//! | [`Thread`], [`Frame`], [`Method`], [`Variable`] | a managed thread, its stack, arguments and locals |
//! | [`Root`], [`GcHandle`] | a root of the garbage collector; a GC handle |
//! | [`Segment`] | a segment or region of the heap, with its objects |
//! | [`Module`] | an assembly, with its types, or another image of the process |
//!
//! Handles are cheap to clone and `Send + Sync`, have no lifetimes, and read the dump on demand.

mod bound;
mod collection;
mod field;
mod frame;
mod gc_handle;
mod members;
mod method;
mod module;
mod named;
mod object;
mod objects;
mod read;
mod readers;
mod root;
mod segment;
mod thread;
mod ty;
mod value;

#[cfg(test)]
mod piece_tests;

pub(crate) use bound::BoundField;
pub use collection::Collection;
pub use field::Field;
pub use frame::{Frame, Variable};
pub use gc_handle::GcHandle;
pub use method::Method;
pub(crate) use module::LoadedModules;
pub use module::{ImageIdentity, Module};
pub use object::{Object, Reference};
pub use objects::Objects;
pub use read::FromValue;
pub use root::Root;
pub use segment::Segment;
pub use thread::Thread;
pub use ty::Type;
pub use value::Value;
