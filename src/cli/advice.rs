//! Advice on errors and notes of the library: options and commands that help. The library's own messages do not name options, because programs
//! without a command line show these messages too. [`crate::output::advice`] has the words for notes, which reports use as well.

use std::borrow::Cow;

use crate::base::Notes;
use crate::contract::{ContractError, RuntimeError};
use crate::dump::DumpError;
use crate::output::advice::{joined, of_note};
use crate::session::{Error, Runtime};

/// Returns the message of `e`, followed by the option or command that helps.
pub(super) fn advised(e: &anyhow::Error) -> String {
    let advice = e.chain().find_map(|cause| {
        cause
            .downcast_ref()
            .and_then(of_error)
            .or_else(|| cause.downcast_ref().and_then(of_runtime))
            .or_else(|| cause.downcast_ref().and_then(of_dump))
    });
    let message = format!("{e:#}");
    advice.map_or(message.clone(), |advice| format!("{message}; {advice}"))
}

/// Returns the notes of an answer of the library, each followed by the option that helps. Called once, where an answer leaves the library.
pub(super) fn advised_notes(notes: &Notes) -> Notes {
    notes.reworded(|note| joined(&note.message, of_note(note).as_deref()))
}

/// Replaces `message`, the reason in an answer why a runtime cannot be read, by the error of `runtime` with advice.
pub(super) fn advise(message: &mut Option<String>, runtime: Result<Runtime, RuntimeError>) {
    if let (Some(message), Err(e)) = (message, runtime) {
        *message = of_runtime(&e).map_or_else(|| e.to_string(), |advice| format!("{e}; {advice}"));
    }
}

fn of_error(e: &Error) -> Option<String> {
    match e {
        Error::Dump(e) => of_dump(e),
        Error::Runtime(e) => of_runtime(e),
        Error::Contract(ContractError::NativeAotStacks) => {
            Some("`gcdump threads` shows exceptions with their stack traces, `gcdump locks` what threads wait for".into())
        }
        Error::Memory(limit) => Some(format!("--max-memory {}M allows that", limit.needed.div_ceil(1 << 20))),
        Error::Room(_) => Some("set TMPDIR to a folder with room for it, or allow more memory with --max-memory".into()),
        Error::NoObject(at) | Error::NotIn(at, _) => Some(format!("`gcdump where {at}` says what is there")),
        Error::NoRoot(at) => Some(format!("`gcdump path {at}` lists the roots that hold it")),
        Error::NotAnException(at, _) => Some(format!("`gcdump object {at}` shows it")),
        Error::NoValueType(_, at) => Some(format!("`gcdump object {at}` shows the object there")),
        Error::Unknown(e, loss) => {
            let advice: Vec<String> = of_note(loss).map(Cow::into_owned).into_iter().chain(of_error(e)).collect();
            (!advice.is_empty()).then(|| advice.join("; "))
        }
        _ => None,
    }
}

fn of_runtime(e: &RuntimeError) -> Option<String> {
    match e {
        RuntimeError::Cut { why, .. } | RuntimeError::Damaged { why, .. } | RuntimeError::Bounded { why } => match &**why {
            // The runtime may be in the part of the dump that is missing.
            RuntimeError::Unread { .. } | RuntimeError::NoRuntime { .. } => None,
            why => of_runtime(why),
        },
        RuntimeError::NativeAot { in_file: true, .. } | RuntimeError::Unread { .. } | RuntimeError::NoRuntime { program: Some(_), .. } => {
            Some("--modules PATH with the program's file supplies it".into())
        }
        RuntimeError::Snapshot => {
            Some("stat, retained, objsize, path, refs, diff and analyze --since can use it; all other commands need a dump".into())
        }
        RuntimeError::Unsupported { undescribed: true, .. } => Some("--modules PATH with its files supplies it".into()),
        RuntimeError::Unsupported { .. } => Some("--overlay FILE adds an overlay".into()),
        _ => None,
    }
}

fn of_dump(e: &DumpError) -> Option<String> {
    let text = match e {
        DumpError::NoSpace { .. } => "free some space, or use a larger directory (--cache, or TMPDIR)",
        DumpError::NoTemporaryFile { .. } => "set TMPDIR to a folder that can be written to, or use --cache",
        DumpError::DecompressedTooLarge { .. } => "raise the limit with --max-decompressed",
        DumpError::WindowTooLarge { .. } => "allow it with --max-memory, or decompress it with another tool first",
        _ => return None,
    };
    Some(text.into())
}
