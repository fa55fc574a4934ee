//! Determines whether a thread waits without a timeout, if no record has the timeout.
//!
//! Source: `docs/internals/locks.md#timeouts`.

use super::waits::{Blocked, BlockedFrame, Wait};
use crate::base::hash::Map;
use crate::base::{Addr, Collector, Missing, len64, plural};
use crate::clr::generated::parameters_of;
use crate::clr::methods::Methods;
use crate::model::{ArgumentModel, FieldValue};
use crate::session::{ArgumentReader, Heap, Namer};
use crate::stack::walk::Asked;
use crate::stack::walked::{Frame, ManagedFrame, Walk};

/// Types of parameters that can be timeouts.
const TIMEOUTS: [&str; 5] = ["Int32", "UInt32", "Int64", "TimeSpan", TRACKER];
/// `ReaderWriterLockSlim+TimeoutTracker`, whose field `_total` is the timeout in milliseconds.
const TRACKER: &str = "TimeoutTracker";
const TOTAL: &str = "_total";
/// `Timeout.Infinite`.
const INFINITE: i64 = -1;

impl Blocked<'_> {
    /// Returns the frames of the wait, outermost first. The first is the method that the program has called; the library passes timeouts in arguments to the
    /// others.
    fn calls(&self) -> impl Iterator<Item = &BlockedFrame> {
        let own = self.frames.iter().position(|frame| !frame.is_of_waits()).unwrap_or(0);
        self.frames.iter().take(own).rev()
    }

    /// Whether the method that the program has called takes no timeout.
    fn takes_no_timeout(&self) -> bool {
        self.calls().next().is_some_and(|frame| takes_no_timeout(&frame.method.name))
    }
}

/// Sets `endless` of `waits`, whose timeouts are not recorded, where the frames show that the thread waits without a timeout: the method that the program has
/// called takes no timeout, or the debug info locates an argument with the timeout.
pub(super) fn read(heap: &Heap, namer: &Namer, threads: &[(usize, Blocked<'_>)], waits: &mut [Wait], notes: &Collector) {
    let blocked: Map<usize, &Blocked<'_>> = threads.iter().map(|(index, thread)| (*index, thread)).collect();
    let mut unknown: Vec<(&mut Wait, &Blocked<'_>)> = Vec::new();
    for wait in waits {
        let Some(thread) = blocked.get(&wait.thread) else { continue };
        wait.endless = thread.takes_no_timeout();
        // Only waits for an object are waits for another thread.
        if !wait.endless && wait.object.is_some() && thread.calls().next().is_some() {
            unknown.push((wait, thread));
        }
    }
    if unknown.is_empty() {
        return;
    }
    let runtime = heap.runtime();
    let methods = runtime.scoped(notes, |d| Methods::bind(heap.memory(), d, runtime.limits()).ok());
    let Some(mut reader) = methods.and_then(|methods| ArgumentReader::new(runtime, namer, &methods)) else { return };
    let wanted: Map<Addr, ()> = unknown.iter().map(|(_, thread)| (thread.thread.address, ())).collect();
    // The caller has reported the gaps of these stacks.
    let asked = Asked { registers: true, ..Asked::default() };
    let Ok(walked) = runtime.walk_stacks(asked, |thread| wanted.contains_key(&thread.address), &Collector::new()) else { return };
    let walks: Map<usize, &Walk> = walked.iter().map(|stack| (stack.index, stack.walk.as_ref())).collect();
    let mut lost = Vec::new();
    for (wait, thread) in unknown {
        let Some(walk) = walks.get(&wait.thread) else { continue };
        let frames: Map<Addr, &ManagedFrame> = walk
            .frames
            .iter()
            .filter_map(|frame| match frame {
                Frame::Managed(frame) => Some((frame.sp, frame)),
                Frame::Runtime(_) => None,
            })
            .collect();
        for frame in thread.calls().take_while(|frame| !takes_no_timeout(&frame.method.name)) {
            let Some(managed) = frame.sp.and_then(|sp| frames.get(&sp)) else { break };
            let arguments = reader.arguments(walk, managed).unwrap_or_default();
            let lacks = arguments.iter().find_map(|found| found.at.as_ref().err()?.lost());
            let known =
                arguments.into_iter().filter(|found| can_be_timeout(&found.type_name)).find_map(|found| is_endless(&reader.model(found)));
            if let Some(endless) = known {
                wait.endless = endless;
                break;
            }
            if let Some(at) = lacks {
                lost.push(at);
                break;
            }
        }
    }
    if let Some(at) = lost.first() {
        let what = format!(
            "whether {} of threads may time out is unknown: the debug info of their methods is not in the dump",
            plural(len64(lost.len()), "wait")
        );
        notes.add(Missing::DebugInfo, *at, what);
    }
}

/// Whether the type can be that of a timeout.
fn can_be_timeout(type_name: &str) -> bool {
    TIMEOUTS.contains(&type_name.rsplit(['.', '+']).next().unwrap_or(type_name))
}

/// Whether no parameter of the method can be a timeout. `method` is its name with the types of its parameters.
fn takes_no_timeout(method: &str) -> bool {
    let (_, parameters) = parameters_of(method);
    let Some(list) = parameters.strip_prefix('(').and_then(|list| list.strip_suffix(')')) else { return false };
    !list.split(", ").any(can_be_timeout)
}

/// Whether the argument is an infinite timeout; `None` if it is not a timeout of a known value.
fn is_endless(argument: &ArgumentModel) -> Option<bool> {
    let is_timeout = argument.name.as_deref().is_some_and(|name| name.to_ascii_lowercase().contains("timeout"));
    let value = argument.value.as_ref().filter(|_| is_timeout)?;
    let milliseconds = |value: &FieldValue| value.value.as_i64();
    if argument.type_name.ends_with(TRACKER) {
        let total = value.fields.iter().find(|field| field.name == TOTAL)?;
        return Some(milliseconds(total)? == INFINITE);
    }
    // In an unsigned number, an infinite timeout is the greatest one.
    let greatest = argument.type_name.ends_with("UInt32").then_some(i64::from(u32::MAX));
    milliseconds(value).map(|n| n == INFINITE || Some(n) == greatest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ValueKind;

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

    fn value(name: &str, type_name: &str, value: serde_json::Value) -> FieldValue {
        FieldValue {
            name: name.into(),
            type_name: type_name.into(),
            declaring_type: None,
            offset: None,
            address: None,
            kind: if value.is_null() { ValueKind::Struct } else { ValueKind::Int },
            value,
            text: String::new(),
            truncated: false,
            object: None,
            object_type: None,
            fields: Vec::new(),
        }
    }

    fn argument(value: FieldValue) -> ArgumentModel {
        let (name, type_name) = (Some(value.name.clone()), value.type_name.clone());
        ArgumentModel { name, type_name, location: None, value: Some(value), reason: None }
    }

    #[test]
    fn only_arguments_that_are_timeouts_tell_whether_a_wait_ends() {
        let of = |name: &str, type_name: &str, n: i64| is_endless(&argument(value(name, type_name, n.into())));
        assert_eq!(of("millisecondsTimeout", "System.Int32", -1), Some(true));
        assert_eq!(of("millisecondsTimeout", "System.Int64", -1), Some(true));
        assert_eq!(of("timeoutMs", "System.Int32", 20_000), Some(false));
        assert_eq!(of("millisecondsTimeout", "System.UInt32", i64::from(u32::MAX)), Some(true));
        assert_eq!(of("millisecondsTimeout", "System.Int64", i64::from(u32::MAX)), Some(false));
        // -1 in an argument with another meaning.
        assert_eq!(of("sleep1Threshold", "System.Int32", -1), None);
        let unknown =
            ArgumentModel { value: None, reason: Some("split".into()), ..argument(value("timeout", "System.Int32", (-1).into())) };
        assert_eq!(is_endless(&unknown), None);
    }

    #[test]
    fn a_tracker_has_the_timeout_in_a_field() {
        let tracker = |total: &str, n: i64| {
            let fields = vec![value(total, "System.Int32", n.into()), value("_start", "System.Int32", 0.into())];
            let name = "System.Threading.ReaderWriterLockSlim+TimeoutTracker";
            is_endless(&argument(FieldValue { fields, ..value("timeout", name, serde_json::Value::Null) }))
        };
        assert_eq!((tracker("_total", -1), tracker("_total", 500), tracker("_end", -1)), (Some(true), Some(false), None));
    }
}
