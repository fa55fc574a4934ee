//! Floor 6: answers made of what the readers below return.

mod contracts;
mod exceptions;
pub mod fields;
pub mod graph;
mod heap_graph;
mod holders;
mod info;
mod names;
mod object;
mod objects;
mod paths;
mod place;
mod retained;
mod roots;
mod select;
mod stat;
mod statics;
mod threads;
mod walk;

pub use contracts::contracts;
pub use exceptions::ExceptionReader;
pub use heap_graph::{GraphOptions, HeapGraph, HeapGraphError};
pub use holders::Stacks;
pub use info::{envelope_parts, info};
pub use names::Namer;
pub use object::{ObjectOptions, object, object_limits};
pub use objects::{ObjectsPage, objects};
pub use paths::{PathOptions, Paths};
pub use place::{Places, containing, heap_place, near};
pub use retained::{Retained, RetainedQuery};
pub use roots::{Origin, Root, RootFlags, RootOptions, RootThread, Roots, RootsQuery, collect_roots, finalizers, roots_report};
pub use select::{Picker, Selection, TypePattern};
pub use stat::stat;
pub use statics::{StaticsOptions, StaticsReader};
pub use threads::threads;
pub use walk::{index, objects_of, open_heap, walked_segments};
