//! Floor 6: answers made of what the readers below return.

mod contracts;
mod exceptions;
mod info;
mod names;
mod threads;
mod walk;

pub use contracts::contracts;
pub use exceptions::ExceptionReader;
pub use info::{envelope_parts, info};
pub use names::Namer;
pub use threads::threads;
pub use walk::{objects, walk};
