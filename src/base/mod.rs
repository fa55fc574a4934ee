//! Floor 0: the words everything else is written in: addresses, sizes of pointers, named limits, warnings.

mod addr;
mod limits;
mod notes;
mod shape;

pub use addr::{Addr, AddrRange};
pub use limits::Limits;
pub use notes::{Note, NoteKind, Notes};
pub use shape::{Arch, Endian, Os, PtrSize, Shape};
