//! The exceptions that the crashed thread was handling or unwinding when the exception in flight was thrown.
//!
//! Each exception in flight but the innermost was interrupted while the runtime ran a catch, finally or fault block for it. The frames of these blocks are
//! on the stack, in the same order. If the stack has another number of them, it is not known which block belongs to which exception: a method itself runs
//! its finally blocks when nothing was thrown.
//!
//! Since .NET 9, the runtime reports an unhandled exception and then runs the finally blocks. If one of them throws, the process ends with the newer
//! exception in flight, although it has printed the older one. An exception is known to be unhandled if its stack trace ends where that of the newer one
//! ends, and no catch block or filter surrounds the place of its last frame: the search for a handler has passed all frames within that one.
//!
//! Source: `DispatchEx` (`ExceptionHandling.cs`) and `SfiNext` (`exceptionhandling.cpp`), compared with what programs of .NET 8, 10 and 11 printed.

use super::answers::Answers;
use crate::analysis::{ExceptionModel, ExceptionReader, ThreadModel};
use crate::base::Addr;
use crate::clr::threads::Thread;
use crate::stack::walk::{Asked, StackWalker};
use crate::stack::walked::{Frame, Part};

/// The state of an exception when a newer one was thrown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A catch block was running.
    Handled,
    /// A finally or fault block was running.
    Unwound,
    /// A finally or fault block was running, and no catch block was found: the process has printed this exception.
    Unhandled,
    /// The dump does not show it.
    Unknown,
}

impl Stage {
    /// The words after the name of the exception and `was`.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Stage::Handled => "handled",
            Stage::Unwound | Stage::Unhandled => "unwound",
            Stage::Unknown => "handled or unwound",
        }
    }
}

/// Returns the exceptions that `thread` was handling or unwinding when `newest` was thrown, innermost first. An exception that was thrown again, and one
/// that a newer one has as an inner exception, are left out.
pub(super) fn nested(answers: &Answers<'_>, thread: &ThreadModel, newest: &ExceptionModel) -> Vec<(ExceptionModel, Stage)> {
    if thread.nested_exceptions.is_empty() {
        return Vec::new();
    }
    let runtime = answers.runtime;
    let wanted = |t: &Thread| t.address == thread.address;
    let walked = runtime.walk_stacks(Asked { roots: true, registers: false }, wanted, answers.notes).unwrap_or_default();
    let frames = walked.first().map(|stack| stack.walk.frames.as_slice()).unwrap_or_default();
    let parts: Vec<Part> = frames.iter().filter_map(Frame::managed).map(|f| f.part).filter(|part| *part != Part::Body).collect();
    let namer = runtime.namer();
    let reader = ExceptionReader::new(runtime, &namer, answers.notes);
    let walker = runtime.stack_walker().ok();
    let mut named: Vec<ExceptionModel> = vec![newest.clone()];
    let mut found = Vec::new();
    for (address, stage) in thread.nested_exceptions.iter().zip(stages(&parts, thread.nested_exceptions.len())) {
        if named.iter().any(|known| has(known, |e| e.address == *address)) {
            continue;
        }
        let exception = ExceptionModel::clone(&reader.of_thread(*address, false));
        let unhandled = stage == Stage::Unwound && is_unhandled(&exception, newest, walker);
        named.push(exception.clone());
        found.push((exception, if unhandled { Stage::Unhandled } else { stage }));
    }
    found
}

/// Returns the state of each of `count` exceptions. `parts` are the catch, finally and other blocks on the stack, innermost first.
fn stages(parts: &[Part], count: usize) -> Vec<Stage> {
    let stage = |part: &Part| match part {
        Part::Catch => Stage::Handled,
        Part::Finally => Stage::Unwound,
        Part::Body | Part::Filter | Part::Funclet => Stage::Unknown,
    };
    if parts.len() == count { parts.iter().map(stage).collect() } else { vec![Stage::Unknown; count] }
}

fn is_unhandled(exception: &ExceptionModel, newest: &ExceptionModel, walker: Option<&StackWalker>) -> bool {
    let (Some(last), Some(walker)) = (ends_alike(exception, newest), walker) else { return false };
    walker.may_catch(last) == Some(false)
}

/// The instruction pointer of the last frame in the stack traces of both exceptions; `None` if the traces end in different frames.
fn ends_alike(exception: &ExceptionModel, newest: &ExceptionModel) -> Option<Addr> {
    let (last, other) = (exception.stack.last()?, newest.stack.last()?);
    (last.ip == other.ip && last.sp == other.sp).then_some(last.ip)
}

/// Whether `is` is true of an exception or of one of its inner exceptions.
fn has(exception: &ExceptionModel, is: impl Fn(&ExceptionModel) -> bool + Copy) -> bool {
    is(exception) || exception.inner.iter().map(|e| &**e).chain(&exception.inners).any(|inner| has(inner, is))
}

#[cfg(test)]
mod tests {
    use super::super::tests::exception;
    use super::*;

    #[test]
    fn blocks_on_the_stack_show_what_happened_to_exceptions() {
        assert_eq!(stages(&[Part::Finally, Part::Catch], 2), [Stage::Unwound, Stage::Handled]);
        assert_eq!(stages(&[Part::Funclet, Part::Filter], 2), [Stage::Unknown; 2]);
        // A method has run its own finally block within a handler.
        assert_eq!(stages(&[Part::Finally, Part::Catch], 1), [Stage::Unknown]);
        assert_eq!(stages(&[], 1), [Stage::Unknown]);
    }

    #[test]
    fn an_inner_exception_is_part_of_its_outer_one() {
        let of = |address: u64, inner: Option<ExceptionModel>| ExceptionModel {
            inner: inner.map(Box::new),
            ..exception(address, "Lab.Broken", &[])
        };
        let outer = ExceptionModel { inners: vec![of(4, None)], ..of(1, Some(of(2, Some(of(3, None))))) };
        assert!((1..=4).all(|address| has(&outer, |e| e.address == Addr(address))));
        assert!(!has(&outer, |e| e.address == Addr(5)));
    }

    #[test]
    fn traces_end_alike_if_their_last_frames_are_one() {
        let of = |frames: &[u64]| exception(8, "Lab.Broken", frames);
        assert_eq!(ends_alike(&of(&[1, 9]), &of(&[2, 3, 9])), Some(Addr(9)));
        assert_eq!(ends_alike(&of(&[9, 1]), &of(&[2, 9])), None);
        assert_eq!(ends_alike(&of(&[]), &of(&[])), None);
    }
}
