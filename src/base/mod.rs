//! Floor 0, shared vocabulary: addresses and ranges, machine shape, limits, answers and their notes, named enums.

mod addr;
mod answer;
mod flags;
mod glob;
mod limits;
mod name;
pub(crate) mod named;
mod notes;
mod path;
mod progress;
pub(crate) mod ranges;
mod shape;
mod share;

pub(crate) use addr::PAGE;
pub use addr::{Addr, AddrRange, Hex};
pub use answer::Answer;
pub(crate) use flags::flag_names;
pub(crate) use glob::glob;
pub use limits::Limits;
pub use name::Name;
pub use named::UnknownName;
pub(crate) use named::named_enum;
pub(crate) use notes::Collector;
pub use notes::{Note, NoteKind, Notes};
pub(crate) use path::file_name;
pub use progress::{Progress, Silent};
pub use shape::{Arch, Endian, Os, PtrSize, Shape};
pub(crate) use share::share;
