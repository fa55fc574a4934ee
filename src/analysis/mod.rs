//! Floor 6: answers made of what the readers below return.

mod contracts;
mod exceptions;
pub mod fields;
pub mod graph;
mod heap_graph;
mod info;
mod names;
mod object;
mod objects;
mod place;
mod roots;
mod select;
mod stat;
mod statics;
mod survival;
mod threads;
mod walk;

pub use contracts::contracts;
pub use exceptions::ExceptionReader;
pub use heap_graph::HeapGraph;
pub use info::{envelope_parts, info};
pub use names::Namer;
pub use object::{ObjectOptions, object, object_limits};
pub use objects::{ObjectsPage, objects};
pub use place::{Places, containing, heap_place, near};
pub use roots::{Origin, Root, RootFlags, RootOptions, RootThread, Roots, RootsQuery, collect_roots, finalizers, roots_report};
pub use select::{Picker, Selection, TypePattern};
pub use stat::stat;
pub use statics::{StaticsOptions, StaticsReader};
pub use survival::{BridgeQuery, Contracted, UnreachableQuery, WhatifError, WhatifQuery, bridge, collect, contract, unreachable, whatif};
pub use threads::threads;
pub use walk::{index, objects_of, open_heap, walked_segments};
