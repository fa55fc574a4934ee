//! Sources of descriptors.

use crate::base::named_enum;

named_enum! {
    /// Kinds of descriptor sources, lowest precedence first.
    pub enum OriginKind {
        /// A bundled overlay or one given with `--overlay`.
        Overlay = "overlay",
        /// Synthesized at run time from `GcDacVars`.
        Synthesized = "synthesized",
        /// The runtime's own descriptor, in the dump or in its matching file.
        InMemory = "in-memory",
    }
}
