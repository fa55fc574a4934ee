//! How each answer looks.

mod bridge;
mod contracts;
mod exceptions;
mod finalizers;
mod fragmentation;
mod handles;
mod heap;
mod info;
mod object;
mod oom;
mod place;
mod retained;
mod roots;
mod segments;
mod stat;
mod statics;
mod strings;
mod survival;
mod threads;
mod trim;
mod types;
mod verify;

/// The two methods that every report has in common.
macro_rules! completeness {
    () => {
        fn complete(&self) -> bool {
            self.complete
        }

        fn set_complete(&mut self, complete: bool) {
            self.complete = complete;
        }
    };
}
pub(crate) use completeness;
