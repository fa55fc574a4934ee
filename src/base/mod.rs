//! Floor 0, shared vocabulary: addresses and ranges, machine shape, limits, answers and their notes, named enums.

mod addr;
mod answer;
mod budget;
pub(crate) mod cancel;
mod change;
mod count;
mod flags;
mod glob;
pub(crate) mod hash;
pub(crate) mod index;
mod limits;
pub(crate) mod missed;
mod name;
pub(crate) mod named;
mod notes;
mod path;
mod progress;
pub(crate) mod ranges;
mod shape;
mod share;
mod thousands;

pub(crate) use addr::PAGE;
pub use addr::{Addr, AddrRange, Hex};
pub use answer::Answer;
pub use budget::Budget;
pub use cancel::{Cancel, Cancelled};
pub(crate) use change::{change, growth};
pub(crate) use count::{Count, cut, len64, top_or_all, total};
pub(crate) use flags::flag_names;
pub(crate) use glob::glob;
pub(crate) use index::index_type;
pub use index::{Index, IndexVec, Indices};
pub use limits::Limits;
pub use name::Name;
pub use named::UnknownName;
pub(crate) use named::named_enum;
#[cfg(feature = "cli")]
pub(crate) use named::nearest;
pub use notes::{Collector, Note, NoteKind, Notes};
pub(crate) use path::file_name;
pub use progress::{Progress, Silent};
pub use shape::{Arch, Endian, Os, PtrSize, Shape};
pub(crate) use share::share;
pub(crate) use thousands::thousands;
