//! Type names for completion, from the dump that the command line names.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap_complete::engine::CompletionCandidate;

use super::super::pick;
use super::inert::is_offered;
use crate::heapgraph::IndexUse;
use crate::managed::Type;
use crate::session::{Dump, OpenOptions};

/// Maximum number of names offered.
const OFFERED: usize = 200;

/// The line to complete.
struct Line {
    /// The words of the line; the word to complete is empty.
    words: Vec<OsString>,
    /// The dump in the line.
    dump: Option<PathBuf>,
}

static LINE: OnceLock<Line> = OnceLock::new();

/// Records the line to complete and its dump, because clap does not pass them to functions that return candidates.
pub(super) fn complete_in(dump: Option<OsString>, words: Vec<OsString>) {
    let _ = LINE.set(Line { words, dump: dump.map(PathBuf::from) });
}

/// Returns type names from the dump of the command line that begin with the typed text.
pub(in crate::cli) fn types(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = current.to_str() else { return Vec::new() };
    names(typed).unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}

fn names(typed: &str) -> Option<Vec<String>> {
    let line = LINE.get()?;
    let picked = pick::pick(line.dump.as_deref(), std::env::var_os("GCDUMP_DUMP").map(PathBuf::from), Path::new(".")).ok()?;
    // Compressed dumps are skipped, because decompression takes too long for completion.
    if pick::is_compressed(&picked.path) {
        return None;
    }
    let mut options = OpenOptions::default();
    if line.words.iter().any(|word| word == "--no-local-files") {
        options.search.recorded_paths = false;
        options.index = IndexUse::None;
    }
    let dump = Dump::open(&picked.path, &options).ok()?;
    let mut found = Vec::new();
    for pattern in [format!("{typed}*"), format!("*.{typed}*")] {
        let types = dump.runtime().ok()?.types_of(&pattern).ok()?;
        found.extend(types.iter().map(Type::name).filter(|name| is_offered(name)));
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(OFFERED);
    Some(found)
}
