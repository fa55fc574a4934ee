//! The graph of all objects of a heap (types and sizes, references, roots, and the dominator tree), and the index file that stores the graph for
//! later commands.
//!
//! | type | represents |
//! | --- | --- |
//! | [`HeapGraph`] | the objects by number, with types, sizes, references and roots |
//! | [`Edges`], [`ObjectSet`], [`Search`] | references in both directions, sets of objects, results of searches |
//! | [`DominatorTree`] | what each object retains |
//! | [`Roots`], [`RawRoot`] | the roots, with raw addresses |
//! | [`HeapIndex`] | an index file of one heap |
//!
//! Nothing here reads a dump: `session` walks the heap, collects its roots, and builds the graph from them.

pub(crate) mod described;
mod dominators;
mod doubts;
mod edges;
mod extra;
mod graph;
mod holders;
pub(crate) mod index;
mod retention;
mod roots;
mod type_sums;

pub use dominators::{DominatorTree, OfType};
pub(crate) use doubts::Depends;
pub use edges::{Edges, ObjectSet, Search};
pub(crate) use extra::Extra;
pub(crate) use graph::References;
pub use graph::{HeapGraph, MemoryLimit};
pub(crate) use holders::Holders;
pub(crate) use index::HeapIndex;
#[cfg(feature = "internals")]
pub use index::checksum as index_checksum;
pub use index::{IndexError, IndexUse, OpenIndex, beside};
pub use roots::{FrameIndex, Origin, RawRoot, RootFlags, RootFrame, RootThread, Roots, StackRoots, StaticIndex, ThreadIndex};
pub(crate) use type_sums::{Sums, TypeSums, add_sums};
