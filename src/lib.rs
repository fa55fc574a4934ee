//! Opens a crash dump of a .NET process on any machine and reads its garbage-collected heap, without .NET, a debugger or
//! Microsoft's debugging library (the DAC).
//!
//! Start with [`open`]. A [`Dump`] has [`Runtime`]s, a runtime has a [`Heap`], a heap has [`Object`]s with [`Value`]s in their fields. All
//! of them are handles: cheap to clone, `Send + Sync`, without lifetimes. The first call that needs type names or the heap graph builds them; later
//! calls reuse them.
//!
//! # The types that fill the heap
//! ```
//! let dump = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?;
//! let heap = dump.runtime()?.heap()?;
//! for row in heap.stat()?.types.iter().take(10) {
//!     println!("{:>12} {}", row.bytes, row.type_name);
//! }
//! # Ok::<(), gcdump::Error>(())
//! ```
//!
//! # Objects of a type, and their fields
//! ```
//! # let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
//! for dog in heap.objects_of("Lab.Dog")?.take(10) {
//!     let age: i32 = dog.field("_age")?.read()?;
//!     let friend = dog.field("Friend")?.object()?;
//!     println!("{} {age} {}", dog.address(), friend.field("_name")?.read::<String>()?);
//! }
//! # Ok::<(), gcdump::Error>(())
//! ```
//! A read of null, as the wrong type, or of memory that was not captured is an error that describes what is there: [`ValueError`].
//!
//! # Arrays, strings, structures, enums
//! ```
//! # let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
//! let everything = heap.objects_of("Lab.Everything")?.next().expect("there is one");
//! let numbers = everything.field("Numbers")?.object()?;
//! let sum: i32 = numbers.elements()?.map(|n| n.read::<i32>()).sum::<Result<i32, _>>()?;
//! println!("{sum} in {} numbers; the last is {}", numbers.length().unwrap_or(0), numbers.element(5)?.text());
//! for tagged in everything.field("Many")?.object()?.elements()? {
//!     println!("{} at {}", tagged.field("Name")?.text(), tagged.field("At")?.field("X")?.read::<f64>()?);
//! }
//! assert_eq!(everything.field("Colour")?.text(), "Blue (7)");
//! # Ok::<(), gcdump::Error>(())
//! ```
//!
//! # Static fields
//! ```
//! let runtime = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?;
//! let keep = runtime.static_field("Lab.Program", "Keep")?.object()?;
//! println!("{} items", keep.field("_size")?.read::<i32>()?);
//! # Ok::<(), gcdump::Error>(())
//! ```
//!
//! # Threads, frames and their variables
//! ```
//! # let runtime = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?;
//! for thread in runtime.threads()? {
//!     println!("{:?} {}", thread.managed_id(), thread.name().unwrap_or_default());
//!     for frame in thread.frames()? {
//!         println!("  {}", frame.method().map_or_else(|| frame.frame_type().unwrap_or("?").into(), |m| m.display()));
//!         for argument in frame.arguments()? {
//!             println!("    {} = {}", argument.name().unwrap_or("?"), argument.value().map_or_else(|e| e.to_string(), |v| v.text()));
//!         }
//!     }
//! }
//! # Ok::<(), gcdump::Error>(())
//! ```
//! An [`Answer`] with a list can be iterated; its notes report what is missing.
//!
//! # Segments and modules
//! ```
//! # let dump = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?;
//! for segment in dump.runtime()?.heap()?.segments() {
//!     println!("{} {} bytes, {} objects", segment.generation(), segment.range().len(), segment.objects().count());
//! }
//! for module in dump.modules()? {
//!     println!("{} {} types", module.name().unwrap_or_default(), module.types()?.len());
//! }
//! # Ok::<(), gcdump::Error>(())
//! ```
//!
//! # Roots, handles, collections, bound fields
//! ```
//! # let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
//! for root in heap.roots()?.into_iter().take(10) {
//!     println!("{} holds {}", root.label(), root.object()?.type_name());
//! }
//! for handle in heap.gc_handles()? {
//!     println!("{} {}", handle.kind(), handle.object()?.type_name());
//! }
//! for map in heap.objects_of("System.Collections.Generic.Dictionary<*>")?.take(10) {
//!     for (key, value) in map.entries()? {
//!         println!("{} = {}", key.text(), value.text());
//!     }
//! }
//! let size = heap.runtime().type_named("System.Collections.Generic.List<System.Object>")?.field("_size")?;
//! for list in heap.objects_of("System.Collections.Generic.List<System.Object>")? {
//!     println!("{}", list.read::<i32>(&size)?);
//! }
//! # Ok::<(), gcdump::Error>(())
//! ```
//! A [`Field`] is looked up once and read from any number of objects.
//!
//! # Servers
//! [`Cancel`] stops work from another thread or after a time; [`Runtime::detached_heap`] frees its caches when it is dropped.
//!
//! # What holds an object
//! ```
//! # let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
//! let dogs = heap.objects_of("Lab.Dog[]")?.next().expect("there is one");
//! println!("retains {} bytes", dogs.retained_size()?);
//! for path in &dogs.paths()?.paths {
//!     println!("{}", path.roots.first().map_or("nothing", |r| r.label.as_str()));
//! }
//! # Ok::<(), gcdump::Error>(())
//! ```
//!
//! # All cores
//! [`Heap::par_objects`] uses rayon. To use another pool, distribute [`Heap::segments`] to its threads and call [`Segment::objects`].
//! Larger programs are in `examples/`.
//!
//! # What is missing from an answer
//! Dumps are partial and sometimes damaged. A failure that prevents an answer is an [`Error`]. Data that is missing from an answer is
//! reported in the [`Notes`] of its [`Answer`], and [`Answer::complete`] returns whether all data was read. An answer dereferences to its
//! data. The examples end at the first object that cannot be read; `if let Ok(object) = root.object()` skips it instead.
//!
//! # Features
//! `cli`, on by default, is the command line, and brings most of the dependencies. A library takes `default-features = false` and
//! `features = ["minidump"]`; without `minidump`, only ELF cores are read.
//!
//! # Floors
//! The floors are layers: each uses only those below it in this table; a test fails on an import in the other direction.
//! The public modules are [`model`] and [`analysis`], besides the items on this page; `docs/api.txt` lists them all.
//!
//! | floor | contents |
//! | --- | --- |
//! | `cli` | the commands |
//! | `output` | an answer as table, JSON, NDJSON, CSV or DOT |
//! | `export` | files for other tools, from the heap graph |
//! | [`analysis`] | queries with all their options, and the reports that answer them; `heap.stat()` and similar methods run them with default options |
//! | `managed` | the handles: object, value, type, field, thread, frame, root, collection, segment, module |
//! | `bcl` | facts about .NET's own library: tasks, queues, delegates, sockets, collections |
//! | `session` | one opened dump: dump, runtime, heap, names, roots, stacks |
//! | `heapgraph` | tables over all objects: types, references, roots, dominators, the index file |
//! | `stack` | managed stacks: code lookup, unwinding, GC info |
//! | `gc` | heaps, segments, handles, the walk |
//! | `clr` | threads, types, metadata, fields, values, static fields |
//! | `contract`, `data` | the runtime's description of itself: data contract descriptors, overlays; the structures that it describes |
//! | `memory` | the address space of the process, completed from matching module files |
//! | `dump` | containers: ELF cores and minidumps become ranges, modules, threads |
//! | `graph` | algorithms: reachability, shortest paths, dominators |
//! | `base`, [`model`] | addresses, ranges, limits, answers and their notes; the plain structures that reports of several analyses have in common |

// Without tests, some re-exports are unused.
#![cfg_attr(not(feature = "internals"), allow(unused_imports))]
// Without the command line, some readers are unused.
#![cfg_attr(not(feature = "cli"), allow(dead_code))]

pub mod analysis;
mod base;
mod bcl;
#[cfg(feature = "cli")]
#[doc(hidden)] // For `main`.
pub mod cli;
mod clr;
mod contract;
mod data;
mod dump;
#[cfg(feature = "cli")]
mod export;
mod gc;
mod graph;
mod heapgraph;
mod managed;
mod memory;
pub mod model;
#[cfg(feature = "cli")]
mod output;
mod session;
mod stack;

/// The internal modules, for the tests and fuzz targets of this repository.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    macro_rules! floors {
        ($($floor:ident)*) => { $(pub mod $floor { pub use crate::$floor::*; })* };
    }
    floors! { base clr contract dump gc graph heapgraph managed memory session stack }
    #[cfg(feature = "cli")]
    floors! { output }
}

pub use base::{
    Addr, AddrRange, Answer, Arch, Cancel, Cancelled, CorElementType, Limits, Missing, Name, NoRoom, Note, NoteKind, NoteReason, Notes, Os,
    Progress, Remedy, Token, TokenTable,
};
pub use clr::threads::AllocContext;
pub use contract::{ContractError, RuntimeError};
pub use dump::{DumpError, FileKind};
pub use graph::GraphError;
pub use heapgraph::MemoryLimit;
pub use managed::{
    Collection, Field, Frame, FromValue, GcHandle, ImageIdentity, Method, Module, Object, Objects, Reference, Root, Segment, Thread, Type,
    Value, Variable,
};
pub use session::{Dump, Error, GraphSource, Heap, HeapSnapshot, OpenOptions, Runtime, ValueError};

/// Opens the dump at `path` with the default [`OpenOptions`]: an ELF core, a Windows minidump, or a `.gcdump` file (see [`Dump::snapshot`]),
/// optionally compressed with zstd or gzip.
///
/// # Errors
/// [`Error::Dump`] if the file is not a dump or cannot be read.
pub fn open(path: impl AsRef<std::path::Path>) -> Result<Dump, Error> {
    Dump::open(path, &OpenOptions::default())
}
