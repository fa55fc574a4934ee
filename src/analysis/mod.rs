//! Floor 6: answers made of what the readers below return.

mod contracts;
mod exceptions;
pub mod graph;
mod info;
mod names;
mod roots;
mod select;
mod stat;
mod threads;
mod walk;

pub use contracts::contracts;
pub use exceptions::ExceptionReader;
pub use info::{envelope_parts, info};
pub use names::Namer;
pub use roots::{Origin, Root, RootFlags, RootOptions, RootThread, Roots, RootsQuery, collect_roots, finalizers, roots_report};
pub use select::{Picker, Selection, TypePattern};
pub use stat::stat;
pub use threads::threads;
pub use walk::{index, objects_of, open_heap, walked_segments};
