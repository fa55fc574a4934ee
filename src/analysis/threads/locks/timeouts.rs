//! Determines whether a thread waits without a timeout, if no record has the timeout.
//!
//! Source: `docs/internals/locks.md#timeouts`.

use super::waits::{Blocked, BlockedFrame};
use crate::base::AddrRange;
use crate::clr::generated::parameters_of;
use crate::memory::Memory;

/// The method of `ReaderWriterLockSlim` that waits. Its caller has the same `TimeoutTracker`.
const WAIT_ON_EVENT: &str = "System.Threading.ReaderWriterLockSlim.WaitOnEvent(";
/// The structure `ReaderWriterLockSlim+TimeoutTracker` of a wait without a timeout: `_total` is -1, `_start` is 0.
const ENDLESS_TRACKER: u64 = 0xffff_ffff;
/// Number of bytes of that structure.
const TRACKER_BYTES: u64 = 8;

impl Blocked<'_> {
    /// Whether the frames show that the thread waits without a timeout.
    pub(super) fn is_endless(&self, memory: &Memory) -> bool {
        // The library passes timeouts in arguments. The outermost method of the wait is the one that the program has called.
        let called = self.frames.iter().position(|frame| !frame.is_of_waits()).and_then(|own| self.frames.get(own.checked_sub(1)?));
        called.is_some_and(|frame| takes_no_timeout(&frame.method.name) || self.tracks_no_timeout(memory))
    }

    /// Whether `ReaderWriterLockSlim.WaitOnEvent` and its caller both have the tracker of a wait without a timeout on the stack. Optimized callers inline
    /// `EnterWriteLock`, so that its frame does not exist.
    fn tracks_no_timeout(&self, memory: &Memory) -> bool {
        let waits = self.frames.windows(3).find_map(|w| match w {
            [wait, caller, next] if wait.method.name.starts_with(WAIT_ON_EVENT) => Some([wait, caller, next]),
            _ => None,
        });
        let Some([wait, caller, next]) = waits.filter(|_| memory.ptr_bytes() == TRACKER_BYTES) else { return false };
        let has = |frame: &BlockedFrame, outer: &BlockedFrame| {
            let range = frame.sp.zip(outer.sp).filter(|(from, to)| from < to);
            range.is_some_and(|(from, to)| {
                memory.words(AddrRange::new(from, to)).any(|(_, bytes)| memory.shape().number(bytes) == ENDLESS_TRACKER)
            })
        };
        has(wait, caller) && has(caller, next)
    }
}

/// Whether no parameter of the method can be a timeout. `method` is its name with the types of its parameters.
fn takes_no_timeout(method: &str) -> bool {
    let (_, parameters) = parameters_of(method);
    let Some(list) = parameters.strip_prefix('(').and_then(|list| list.strip_suffix(')')) else { return false };
    let timeouts = ["Int32", "UInt32", "Int64", "TimeSpan", "TimeoutTracker"];
    list.split(", ").all(|parameter| !timeouts.contains(&parameter.rsplit(['.', '+']).next().unwrap_or(parameter)))
}

#[cfg(test)]
mod tests {
    use super::takes_no_timeout;

    #[test]
    fn timeouts_are_recognized_by_the_types_of_parameters() {
        for endless in ["Thread.Join()", "ReaderWriterLockSlim.EnterWriteLock()", "Tasks.Task.Wait(System.Threading.CancellationToken)"] {
            assert!(takes_no_timeout(&format!("System.Threading.{endless}")), "{endless}");
        }
        let unknown = [
            "Thread.Join(Int32)",
            "WaitHandle.WaitOne(System.TimeSpan)",
            "ReaderWriterLockSlim.TryEnterWriteLockCore(TimeoutTracker)",
            "ReaderWriterLockSlim.TryEnterReadLock(System.Threading.ReaderWriterLockSlim+TimeoutTracker)",
            "Monitor.Wait(System.Object, Int32)",
            "Thread.Join",
        ];
        for name in unknown {
            assert!(!takes_no_timeout(&format!("System.Threading.{name}")), "{name}");
        }
    }
}
