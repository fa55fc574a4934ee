//! States of tasks.

use crate::base::named_enum;

named_enum! {
    /// `Task.Status`, spelled as in .NET.
    pub enum TaskStatus {
        /// Created, not started.
        Created = "Created",
        /// A promise or the continuation of another task: other code completes or starts it.
        WaitingForActivation = "WaitingForActivation",
        /// Scheduled.
        WaitingToRun = "WaitingToRun",
        /// The delegate was invoked.
        Running = "Running",
        /// The delegate has returned, but attached child tasks have not completed.
        WaitingForChildrenToComplete = "WaitingForChildrenToComplete",
        /// Completed.
        RanToCompletion = "RanToCompletion",
        /// Completed by cancellation.
        Canceled = "Canceled",
        /// Completed by an exception.
        Faulted = "Faulted",
    }
}
