//! Floor 6: answers made of what the readers below return.

mod contracts;
mod exceptions;
pub mod fields;
mod fragmentation;
pub mod graph;
mod info;
mod names;
mod object;
mod objects;
mod place;
mod select;
mod stat;
mod statics;
mod strings;
mod threads;
mod walk;

pub use contracts::contracts;
pub use exceptions::ExceptionReader;
pub use fragmentation::{FragmentationQuery, fragmentation};
pub use info::{envelope_parts, info};
pub use names::Namer;
pub use object::{ObjectOptions, object, object_limits};
pub use objects::{ObjectsPage, objects};
pub use place::{Places, containing, heap_place, near};
pub use select::{Picker, Selection, TypePattern};
pub use stat::stat;
pub use statics::{StaticsOptions, StaticsReader};
pub use strings::{StringSort, StringsQuery, strings};
pub use threads::threads;
pub use walk::{objects_of, open_heap, walked_segments};
