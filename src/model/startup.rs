//! Sources of the arguments and the environment of a process.

use crate::base::named_enum;

named_enum! {
    /// Sources of the arguments and the environment of a process.
    pub enum StartupSource {
        /// The initial stack, on which Linux stores them at the start of the program.
        InitialStack = "initial-stack",
        /// The process parameters, which Windows keeps.
        ProcessParameters = "process-parameters",
    }
}
