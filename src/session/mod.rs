//! The session: one opened dump, and everything bound or built once for it.
//!
//! | type | represents |
//! | --- | --- |
//! | [`Dump`] | the file, its memory, modules, OS threads and limits; the entry point |
//! | [`Runtime`] | one .NET runtime: its description, GC, managed threads, types |
//! | [`Heap`] | the GC heap: segments, the walk, object starts, roots, the graph |
//! | [`HeapSnapshot`] | the objects of a `.gcdump` file: a graph without memory |
//! | [`Object`] | an object of the heap: its type, fields, elements, text, references |
//! | [`Value`] | a field, a static field or an element: typed reads, structures, references |
//! | [`Type`], [`Field`] | a loaded type: name, bases, fields, static fields; a field that is looked up once |
//! | [`Collection`] | a list, dictionary, set or queue of .NET's own library, with its entries |
//! | [`Thread`], [`Frame`], [`Method`], [`Variable`] | a managed thread, its stack, arguments and locals |
//! | [`Root`], [`GcHandle`] | where the garbage collector starts; handles |
//! | [`Namer`] | names of types and fields for one answer |
//!
//! All but `Namer` are handles: cheap to clone, `Send + Sync`, without lifetimes.
//! Lazily bound or built parts are shared. Each part is an [`Answer`](crate::base::Answer) with its own notes, and an answer
//! carries the notes of exactly the parts it uses, so repeated queries return the same notes.

mod bound;
pub(crate) mod collections;
pub(crate) mod continuations;
pub(crate) mod delegates;
mod described;
mod doubts;
mod dump;
mod edges;
mod error;
mod field_names;
mod graph;
mod handle_use;
mod heap;
mod holders;
mod images;
mod index;
mod kind;
pub(crate) mod library;
mod lines;
mod managed;
mod names;
pub(crate) mod net;
mod object;
mod objects;
mod read;
mod readers;
mod references;
mod retention;
pub mod roots;
mod runtime;
mod snapshot;
mod source;
mod stacks;
mod startup;
mod statics;
mod strength;
pub(crate) mod tasks;
mod texts;
mod thread_objects;
mod ty;
mod types;
mod value;
mod value_error;
mod variables;
mod walks;

#[cfg(test)]
mod piece_tests;

pub(crate) use self::bound::BoundField;
pub use self::dump::{Dump, OpenOptions};
pub(crate) use self::library::Library;
pub(crate) use self::startup::Startup;
pub(crate) use doubts::Depends;
pub use edges::{DominatorTree, Edges, ObjectSet, Search};
pub use error::Error;
pub(crate) use field_names::{FieldNames, FieldPlace};
pub(crate) use graph::Extra;
pub use graph::{HeapGraph, MemoryLimit};
pub(crate) use handle_use::HandleUses;
pub use heap::Heap;
pub(crate) use heap::{Sums, Survey, add_sums};
pub(crate) use holders::Holders;
pub(crate) use images::Images;
#[cfg(feature = "internals")]
pub use index::checksum as index_checksum;
pub use index::{IndexError, IndexUse, OpenIndex, beside};
pub(crate) use kind::{Found, kind};
pub(crate) use lines::{NamedLocals, SourceLines};
pub use managed::{Collection, Field, Frame, GcHandle, Method, Root, Thread, Variable};
pub use names::Namer;
pub use object::{Object, Reference};
pub use objects::Objects;
pub use read::FromValue;
pub use runtime::Runtime;
pub use snapshot::HeapSnapshot;
pub use source::GraphSource;
pub(crate) use stacks::ThreadStack;
pub use statics::{StaticsQuery, StaticsReader};
pub(crate) use strength::Strength;
pub(crate) use texts::Texts;
pub use ty::Type;
pub use types::TypePattern;
pub(crate) use types::{TypeFilter, loaded_types};
pub use value::Value;
pub use value_error::ValueError;
pub(crate) use variables::{ArgumentReader, argument_bytes};
pub(crate) use walks::{coverage, note_unknown, note_walks};
