//! `shell`.

use std::path::PathBuf;

use clap::{Args, FromArgMatches};

use super::super::args::DumpArg;
use super::super::command::{Entry, Example, Group, example};

/// Registry entry. The command has no report.
pub const SHELL: Entry = Entry {
    name: "shell",
    group: Group::Dump,
    examples: EXAMPLES,
    arguments: Shell::augment_args,
    run: None,
    dumps: |matches| Ok(Shell::from_arg_matches(matches)?.dump.path().into_iter().collect()),
    schema: schemars::Schema::default,
    names_output: false,
};

const EXAMPLES: &[Example] = &[
    example("shell DUMP", "type commands, without the dump"),
    example("shell -c 'stat; path $1' DUMP", "the types, and what holds objects of the largest"),
    example("shell -e --script FILE DUMP", "the commands in a file, up to the first that fails"),
];

/// Commands on one dump, which is opened once and stays open: typed, from a file, or given with -c.
///
/// Every command and SOS name works with its options, but without DUMP. $1, $2 … are the rows of the last tables, $_ is the
/// last object; `next` lists more rows. Answers go to programs (`stat | grep Lab`) and files (`>`, `>>`). Ctrl-C stops a command. Global
/// options apply to all commands; a command may override them. --timeout limits each command. `diff OTHER` and `track OTHER` compare an
/// earlier dump with the open one. `diff . OTHER` compares the open one with a later one.
///
/// Input that is not a terminal is a script. Its exit code is that of the last command that failed.
#[derive(Debug, Args)]
pub(in crate::cli) struct Shell {
    /// Run these commands, separated by ';', and end.
    #[arg(short = 'c', long = "command", value_name = "COMMANDS", conflicts_with = "script")]
    pub(in crate::cli) commands: Option<String>,

    /// Run the commands in FILE, one a line, and end.
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) script: Option<PathBuf>,

    /// End at the first command that fails, with its exit code.
    #[arg(short = 'e', long)]
    pub(in crate::cli) errors_end: bool,

    #[command(flatten)]
    pub(in crate::cli) dump: DumpArg,
}
