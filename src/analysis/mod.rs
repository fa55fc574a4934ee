//! Floor 6: answers made of what the readers below return.

mod contracts;
pub mod fields;
mod info;
mod names;
mod object;
mod statics;
mod threads;
mod walk;

pub use contracts::contracts;
pub use info::{envelope_parts, info};
pub use names::Namer;
pub use object::{ObjectOptions, object, object_limits};
pub use statics::{StaticsOptions, StaticsReader};
pub use threads::threads;
pub use walk::walk;
