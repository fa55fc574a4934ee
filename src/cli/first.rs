//! `gcdump` without arguments: summarizes the dumps in the current folder and suggests commands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::pick::{dumps_in, is_set};
use crate::analysis::command_line;

/// Maximum number of dumps of a folder to list. The number is limited because each dump is opened.
const MOST: usize = 50;

/// Text shown if no dump is found.
pub(super) const NO_DUMP: &str = "\
gcdump reads dumps of .NET processes, and this folder has none.

  gcdump crash.dmp            what the dump is, and what it can answer
  gcdump analyze crash.dmp    what is wrong with the process
  gcdump --help               all commands

To get a dump of a process that runs:

  dotnet-dump collect --process-id PID --type Heap

To get one when a process crashes, start it with these variables:

  DOTNET_DbgEnableMiniDump=1 DOTNET_DbgMiniDumpType=2 DOTNET_DbgMiniDumpName=/tmp/%e.%p.dmp

docs/getting-dumps.md has the ways for containers, Kubernetes and Windows.
";

/// The replacement for a command line without arguments.
pub(super) struct First {
    /// The command line to run.
    pub(super) line: Vec<OsString>,
    /// Suggested follow-up commands, for the terminal.
    pub(super) hints: String,
}

/// Returns `info` for the dump in `$GCDUMP_DUMP`, or for all dumps in `folder`; `None` if no dump is found.
pub(super) fn first(folder: &Path) -> Option<First> {
    let mut line: Vec<OsString> = vec!["gcdump".into(), "info".into()];
    if is_set() {
        return Some(First { line, hints: String::new() });
    }
    let mut dumps = dumps_in(folder);
    dumps.sort();
    let command = |words: &[&str], path: &Path| command_line(words.iter().copied(), &path.display().to_string());
    let hints = match dumps.as_slice() {
        [] => return None,
        [only] => [
            // The output of `info` already suggests `analyze`.
            ("what takes the memory", command(&["retained", "--suspects"], only)),
            ("what the threads do", command(&["stacks", "--merge"], only)),
            ("a page for a ticket", command(&["report", "-o", "report.html"], only)),
        ]
        .to_vec(),
        [one, ..] => [
            ("what is wrong in one", command(&["analyze"], one)),
            ("what changed", "gcdump diff EARLIER LATER".into()),
            ("tables of all", "gcdump fleet -o FOLDER DUMPS".into()),
        ]
        .to_vec(),
    };
    line.extend(dumps.into_iter().take(MOST).map(PathBuf::into_os_string));
    let hints = hints.iter().map(|(shows, line)| format!("\n  {:<24}{line}", format!("{shows}:"))).collect::<String>() + "\n";
    Some(First { line, hints })
}
