//! The session: one opened dump, with the readers and tables that are built once for it.
//!
//! | type | represents |
//! | --- | --- |
//! | [`Dump`] | the file, its memory, modules, OS threads and limits; the entry point |
//! | [`Runtime`] | one .NET runtime: its description, GC, managed threads, types |
//! | [`Heap`] | the GC heap: segments, the walk, object starts, roots, the graph |
//! | [`HeapSnapshot`] | the objects of a `.gcdump` file: a graph without memory |
//! | [`Namer`] | names of types and fields for one answer |
//!
//! All types except `Namer` are handles: cheap to clone, `Send + Sync`, without lifetimes. Clones share parts that are built on first use, such as
//! the graph. Each part is an [`Answer`](crate::base::Answer) with its own notes. An answer has the notes of exactly the parts that it uses, so
//! repeated queries return the same notes.

mod bindings;
mod carve;
mod collector;
pub(crate) mod continuations;
mod csharp;
mod dump;
mod error;
mod field_names;
mod graph;
mod graph_names;
mod handle_use;
mod heap;
mod heap_parts;
mod images;
mod kind;
mod known_types;
mod limit_setting;
mod lines;
mod names;
mod process;
pub(crate) mod readers;
mod references;
mod reflected;
pub mod roots;
mod runtime;
mod snapshot;
mod source;
mod stacks;
mod startup;
mod statics;
mod strength;
mod thread_ids;
mod thread_objects;
mod type_list;
mod types;
mod value_error;
pub(crate) mod variables;

pub use self::dump::{Dump, OpenOptions};
pub(crate) use self::startup::Startup;
pub use error::Error;
pub(crate) use field_names::{FieldNames, FieldPlace};
pub(crate) use graph::extra_edges;
pub(crate) use handle_use::HandleUses;
pub use heap::Heap;
pub(crate) use heap::Survey;
pub(crate) use images::Images;
pub(crate) use kind::{HeapEvidence, kind};
pub(crate) use known_types::{LoadedTypes, NamedTypes};
pub(crate) use lines::{NamedLocals, SourceLines};
pub use names::Namer;
pub use runtime::Runtime;
pub use snapshot::HeapSnapshot;
pub use source::GraphSource;
pub(crate) use stacks::ThreadStack;
pub(crate) use stacks::frames::{FrameReader, Gaps, NamedMethod, UnknownPart};
pub use statics::{StaticsQuery, StaticsReader};
pub(crate) use strength::Strength;
pub(crate) use type_list::names_assembly;
pub use types::TypePattern;
pub(crate) use types::{TypeFilter, loaded_types, type_definitions};
pub use value_error::ValueError;
pub(crate) use variables::{ArgumentReader, argument_bytes};
