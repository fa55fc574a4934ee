//! The reason why the process ended.
//!
//! Rule: the container records a signal or an exception, or a NativeAOT program has a crash report. A crash report names the cause. Otherwise, the
//! finding names the first of these causes that applies to the crashed thread:
//!
//! * A stack overflow, with the cycle of methods on the stack, the number of repetitions, and the method that began the cycle.
//! * `Environment.FailFast`, with its message, exception and caller. An exception in flight was only being handled.
//! * The exception in flight, with the method that threw it, or in which the fault occurred, and its inner exceptions. If a catch or finally block threw it,
//!   the exception that the block was run for is named too: first, if it was unhandled (`nested.rs`).
//! * The fault, with the innermost methods or, in native code, the address, module, offset and P/Invoke. The thread's last exception is named too:
//!   the runtime keeps an `ExecutionEngineException` for its own fatal errors.
//!
//! An exception in flight on another thread is being handled and is not a finding.
//!
//! Source: `ELF notes` and `exception stream` in `docs/internals/containers.md`; the exceptions that `threads` shows.

use super::answers::{Answers, Skip};
use super::line::{counted, one_line};
use super::nested::{Stage, nested};
use super::places::CrashedStack;
use crate::analysis::{ExceptionModel, Problem, ProblemId, ProblemSeverity, ThreadModel};
use crate::base::{Name, len64};
use crate::model::{CrashException, FaultModel};

/// Inner exceptions named in the title.
const MAX_INNER: usize = 4;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let crash = answers.runtime.file().crash.as_ref();
    answers.notes.extend(&answers.runtime.file().facts.lost.of_crash());
    let report = answers.runtime.description().crash_report.as_ref();
    let reason = crash.map(|c| c.name.clone()).or_else(|| report.map(|r| r.reason.clone().unwrap_or_else(|| "ended itself".into())));
    let Some(reason) = reason else { return Ok(Vec::new()) };
    let critical = |title: String, command: &str| answers.finding(ProblemId::Crash, ProblemSeverity::Critical, title, &[command]);
    // The report has names that may be missing from the dump.
    if let Some(report) = report {
        let text = report.exception.as_ref().map(reported).or_else(|| report.message.as_deref().map(one_line));
        let title = text.map_or_else(|| reason.clone(), |told| format!("{reason}: {told}"));
        let exception = report.exception.as_ref();
        return Ok(vec![Problem {
            object: exception.and_then(|e| e.address),
            type_name: exception.and_then(|e| e.type_name.as_deref().map(Name::from)),
            method: exception.and_then(|e| e.stack.iter().find_map(|f| f.method.as_deref().map(Name::from))),
            ..critical(title, "info")
        }]);
    }
    // Without threads, only the signal is known; a note has the reason.
    let thread = answers.threads().ok().and_then(|t| t.threads.iter().find(|t| t.crashed));
    let threads: Vec<u32> = thread.and_then(|t| t.managed_id).into_iter().collect();
    let on = place(thread, crash.and_then(|c| c.thread));
    let has_stacks = answers.runtime.descriptor().has_code_tables();
    let command = match answers.threads() {
        Err(_) => "info",
        Ok(_) if !has_stacks => "threads",
        Ok(_) => "stacks",
    };
    if let Some(fault) = answers.threads().ok().and_then(|t| t.fault.as_ref()).filter(|f| f.stack_overflow) {
        return Ok(vec![overflow(answers, thread, fault, command)]);
    }
    let fails_fast = thread.is_some() && has_stacks && answers.crashed_stack().is_ok_and(|s| s.is_some_and(|s| s.fails_fast));
    if let Some(problem) = Some(()).filter(|()| fails_fast).and_then(|()| failed_fast(answers, thread, &on, command)) {
        return Ok(vec![problem]);
    }
    let stack = || thread.filter(|_| has_stacks).and_then(|_| answers.crashed_stack().ok()?);
    if let Some(exception) = thread.and_then(|t| t.exception.as_ref()).filter(|e| e.current) {
        // The runtime ends the process before it records the frames of an access violation.
        let faulted = stack().filter(|_| thrower(exception).is_none());
        let within = faulted.and_then(|stack| stack.thrower.as_ref());
        let place = within.map(|method| format!(", in {method}{}", called_by(faulted, within))).unwrap_or_default();
        let nested = thread.map(|thread| nested(answers, thread, exception)).unwrap_or_default();
        let ended = unhandled(&nested);
        return Ok(vec![Problem {
            object: Some(ended.unwrap_or(exception).address),
            type_name: ended.unwrap_or(exception).type_name.clone(),
            method: ended.map_or_else(|| thrower(exception).or(within), thrower).cloned(),
            threads,
            ..critical(format!("{reason}{on}: {}", told(&format!("{}{place}", described(exception)), &nested)), command)
        }]);
    }
    let fault = answers.threads().ok().and_then(|t| t.fault.as_ref());
    let stack = stack();
    let innermost = stack.and_then(|stack| stack.innermost.as_ref());
    let own = stack.and_then(|stack| stack.own.as_ref());
    let native = fault.filter(|f| f.native);
    let reason = native.map_or(reason, FaultModel::words);
    // A P/Invoke stub is named by the method that it imports.
    let within = match native.and_then(|f| f.pinvoke.as_ref()).or(innermost) {
        Some(method) if native.is_some_and(|f| f.pinvoke.is_some()) => format!(" in the P/Invoke {method}"),
        Some(method) => format!(" in {method}"),
        None => String::new(),
    };
    let caller = called_by(stack, innermost);
    let last = thread.and_then(|t| t.exception.as_ref());
    let why = match last {
        Some(last) => format!("; last exception of the thread: {}", described(last)),
        None => ", no exception in flight".into(),
    };
    Ok(vec![Problem {
        object: last.map(|e| e.address),
        type_name: last.and_then(|e| e.type_name.clone()),
        method: own.or(innermost).cloned(),
        threads,
        ..critical(format!("{reason}{on}{within}{caller}{why}"), command)
    }])
}

/// Returns the finding about a process that ended itself. An exception in flight was only being handled.
fn failed_fast(answers: &Answers<'_>, thread: Option<&ThreadModel>, on: &str, command: &str) -> Option<Problem> {
    let words = answers.last_words()?;
    let message = words.message.as_ref().map(|(_, text)| format!(": {}", one_line(text))).unwrap_or_default();
    let exception = words.exception.as_ref().map(|e| format!("; exception {}", described(e))).unwrap_or_default();
    let caller = words.caller.as_ref().map(|m| format!("; called by {m}")).unwrap_or_default();
    // The exception that the runtime creates for a `FailFast` has the exception that was being handled as its inner exception.
    let handled = thread.and_then(|t| t.exception.as_ref());
    let handled = handled.and_then(|e| if e.current { Some(&**e) } else { e.inner.as_deref() });
    let handled = handled.filter(|e| words.exception.as_ref().is_none_or(|of| of.address != e.address));
    let handled = handled.map(|e| format!(" while {} was handled", named(e))).unwrap_or_default();
    let object = words.exception.as_ref().map(|e| (e.address, e.type_name.clone()));
    let object = object.or_else(|| words.message.map(|(at, _)| (at, Some("System.String".into()))));
    Some(Problem {
        object: object.as_ref().map(|(at, _)| *at),
        type_name: object.and_then(|(_, name)| name),
        method: words.caller,
        threads: thread.and_then(|t| t.managed_id).into_iter().collect(),
        ..answers.finding(
            ProblemId::Crash,
            ProblemSeverity::Critical,
            format!("FailFast{on}{message}{exception}{caller}{handled}"),
            &[command],
        )
    })
}

/// A stack overflow of `thread`, with the recursion that led to it.
fn overflow(answers: &Answers<'_>, thread: Option<&ThreadModel>, fault: &FaultModel, command: &str) -> Problem {
    let stack = answers.crashed_stack().ok().flatten();
    let recursion = stack.and_then(|stack| stack.recursion.as_ref());
    let on = place(thread, fault.thread);
    let title = format!("Stack overflow{on}{}", recursion.map(|r| format!(": {}", r.text)).unwrap_or_default());
    let exception = thread.and_then(|t| t.exception.as_ref()).filter(|e| !e.current);
    Problem {
        count: recursion.map(|r| r.times),
        object: exception.map(|e| e.address),
        type_name: exception.and_then(|e| e.type_name.clone()),
        method: stack.and_then(|stack| stack.innermost.clone()),
        threads: thread.and_then(|t| t.managed_id).into_iter().collect(),
        ..answers.finding(ProblemId::Crash, ProblemSeverity::Critical, title, &[command])
    }
}

fn place(thread: Option<&ThreadModel>, os_id: Option<u32>) -> String {
    match (thread.and_then(|t| t.managed_id), os_id) {
        (Some(id), _) => format!(" on thread {id}"),
        (None, Some(os_id)) => format!(" on the native thread {os_id}"),
        (None, None) => String::new(),
    }
}

/// Names the innermost method of the program, unless it is `method`.
fn called_by(stack: Option<&CrashedStack>, method: Option<&Name>) -> String {
    let own = stack.and_then(|stack| stack.own.as_ref()).filter(|own| Some(*own) != method);
    own.map(|own| format!(", called by {own}")).unwrap_or_default()
}

fn thrower(exception: &ExceptionModel) -> Option<&Name> {
    exception.stack.iter().find_map(|f| f.method.as_ref())
}

/// Returns the exception that ended the process before the newest was thrown: the oldest that was unhandled.
fn unhandled(nested: &[(ExceptionModel, Stage)]) -> Option<&ExceptionModel> {
    nested.iter().rev().find(|(_, stage)| *stage == Stage::Unhandled).map(|(exception, _)| exception)
}

/// Describes how the process ended. `newest` describes the exception in flight, and `nested` are those that were handled or unwound when it was thrown.
fn told(newest: &str, nested: &[(ExceptionModel, Stage)]) -> String {
    if let Some(ended) = unhandled(nested) {
        return format!("{}; while it was unwound, {newest}", described(ended));
    }
    let Some((exception, stage)) = nested.first() else { return newest.into() };
    let by = thrower(exception).map(|m| format!(", thrown by {m},")).unwrap_or_default();
    format!("{newest}; while {}{by} was {}", named(exception), stage.words())
}

/// Describes an exception: `Lab.Broken: out of luck, thrown by Lab.Program.Main(); inner System.Exception: why`.
fn described(exception: &ExceptionModel) -> String {
    let by = thrower(exception).map(|m| format!(", thrown by {m}")).unwrap_or_default();
    let mut out = format!("{}{by}", named(exception));
    let mut inner = exception.inner.as_deref();
    for _ in 0..MAX_INNER {
        let Some(e) = inner else { break };
        out.push_str(&format!("; inner {}", named(e)));
        inner = e.inner.as_deref();
    }
    match len64(exception.inners.len()) {
        0 => {}
        more => out.push_str(&format!("; {}", counted(more, "more inner exception"))),
    }
    out
}

fn named(exception: &ExceptionModel) -> String {
    said(exception.type_name.as_ref().map(Name::shown), exception.message.as_deref())
}

/// Like [`described`], for an exception in the crash report of a NativeAOT program.
fn reported(exception: &CrashException) -> String {
    let named = |e: &CrashException| said(e.type_name.as_deref(), e.message.as_deref());
    let by = exception.stack.iter().find_map(|f| f.method.as_ref()).map(|m| format!(", thrown by {m}")).unwrap_or_default();
    let mut out = format!("{}{by}", named(exception));
    exception.inner.iter().take(MAX_INNER).for_each(|e| out.push_str(&format!("; inner {}", named(e))));
    out
}

fn said(type_name: Option<&str>, message: Option<&str>) -> String {
    let message = message.map(one_line).filter(|m| !m.is_empty()).map(|m| format!(": {m}")).unwrap_or_default();
    format!("{}{message}", type_name.unwrap_or("an exception of unknown type"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::exception;
    use super::*;

    #[test]
    fn the_oldest_unhandled_exception_ended_the_process() {
        let nested = |stages: &[Stage]| -> Vec<_> {
            (1..).zip(stages).map(|(n, stage)| (exception(n, &format!("Lab.Nested{n}"), &[n]), *stage)).collect()
        };
        let told = |stages: &[Stage]| told("Lab.Newest", &nested(stages));
        assert_eq!(told(&[]), "Lab.Newest");
        assert_eq!(told(&[Stage::Unhandled]), "Lab.Nested1, thrown by Lab.At1; while it was unwound, Lab.Newest");
        assert_eq!(told(&[Stage::Handled, Stage::Unhandled]), "Lab.Nested2, thrown by Lab.At2; while it was unwound, Lab.Newest");
        assert_eq!(told(&[Stage::Handled]), "Lab.Newest; while Lab.Nested1, thrown by Lab.At1, was handled");
        assert_eq!(told(&[Stage::Unwound, Stage::Handled]), "Lab.Newest; while Lab.Nested1, thrown by Lab.At1, was unwound");
        assert_eq!(told(&[Stage::Unknown]), "Lab.Newest; while Lab.Nested1, thrown by Lab.At1, was handled or unwound");
        assert_eq!(unhandled(&nested(&[Stage::Unhandled, Stage::Unhandled])).map(|e| e.address), Some(crate::base::Addr(2)));
        assert!(unhandled(&nested(&[Stage::Unwound, Stage::Unknown])).is_none());
    }
}
