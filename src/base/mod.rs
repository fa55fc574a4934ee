//! Floor 0: the words everything else is written in: addresses, sizes of pointers, named limits, warnings.

mod addr;
mod answer;
mod flags;
mod glob;
mod limits;
mod name;
pub(crate) mod named;
mod notes;
mod progress;
pub mod ranges;
mod shape;
mod share;

pub use addr::{Addr, AddrRange, Hex};
pub use answer::Answer;
pub use flags::flag_names;
pub use glob::glob;
pub use limits::Limits;
pub use name::Name;
pub use named::UnknownName;
pub(crate) use named::named_enum;
pub use notes::{Collector, Note, NoteKind, Notes};
pub use progress::{Progress, Silent};
pub use shape::{Arch, Endian, Os, PtrSize, Shape};
pub use share::share;
