//! Floor 0, shared vocabulary: addresses and ranges, machine shape, limits, notes, progress.

mod addr;
mod answer;
mod flags;
mod glob;
mod limits;
mod notes;
mod path;
mod progress;
pub(crate) mod ranges;
mod shape;

pub(crate) use addr::PAGE;
pub use addr::{Addr, AddrRange};
pub use answer::Answer;
pub(crate) use flags::flag_names;
pub(crate) use glob::glob;
pub use limits::Limits;
pub use notes::{Note, NoteKind, Notes, SharedNotes};
pub(crate) use path::file_name;
pub use progress::{Progress, Silent};
pub use shape::{Arch, Endian, Os, PtrSize, Shape};
