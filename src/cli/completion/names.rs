//! Names of types in the dump of the line that is being completed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap_complete::engine::CompletionCandidate;

use super::super::pick;
use super::inert::is_offered;
use crate::heapgraph::IndexUse;
use crate::managed::Type;
use crate::session::{Dump, OpenOptions};

/// Most names that are offered.
const OFFERED: usize = 200;

/// The line that is being completed.
struct Line {
    /// Its words, with an empty one for the word that is being typed.
    words: Vec<OsString>,
    /// The dump that it names.
    dump: Option<PathBuf>,
}

static LINE: OnceLock<Line> = OnceLock::new();

/// Says which line is being completed, and which dump it names: clap asks for candidates without them.
pub(super) fn complete_in(dump: Option<OsString>, words: Vec<OsString>) {
    let _ = LINE.set(Line { words, dump: dump.map(PathBuf::from) });
}

/// Names of types in the dump of the command line that begin with what is typed.
pub(in crate::cli) fn types(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = current.to_str() else { return Vec::new() };
    names(typed).unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}

fn names(typed: &str) -> Option<Vec<String>> {
    let line = LINE.get()?;
    let picked = pick::pick(line.dump.as_deref(), std::env::var_os("GCDUMP_DUMP").map(PathBuf::from), Path::new(".")).ok()?;
    // Unpacking takes longer than anyone waits for a name.
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
