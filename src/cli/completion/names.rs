//! Names of types in the dump of the line that is being completed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap_complete::engine::CompletionCandidate;

use super::super::pick;
use super::super::registry::command_line;
use super::super::words::dump_of;
use super::LINE;
use crate::heapgraph::IndexUse;
use crate::managed::Type;
use crate::session::{Dump, OpenOptions};

/// Most names that are offered.
const OFFERED: usize = 200;

/// Names of types in the dump of the command line that begin with what is typed.
pub(in crate::cli) fn types(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = current.to_str() else { return Vec::new() };
    names(typed).unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}

fn names(typed: &str) -> Option<Vec<String>> {
    let line = LINE.get()?;
    let given = dump_of(line, &command_line()).map(PathBuf::from);
    let picked = pick::pick(given.as_deref(), std::env::var_os("GCDUMP_DUMP").map(PathBuf::from), Path::new(".")).ok()?;
    // Unpacking takes longer than anyone waits for a name.
    if pick::is_compressed(&picked.path) {
        return None;
    }
    let mut options = OpenOptions::default();
    if line.iter().any(|word| word == "--no-local-files") {
        options.search.recorded_paths = false;
        options.index = IndexUse::None;
    }
    let dump = Dump::open(&picked.path, &options).ok()?;
    let mut found = Vec::new();
    for pattern in [format!("{typed}*"), format!("*.{typed}*")] {
        let types = dump.runtime().ok()?.types_of(&pattern).ok()?;
        found.extend(types.iter().map(Type::name).filter(|name| super::is_offered(name)));
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(OFFERED);
    Some(found)
}
