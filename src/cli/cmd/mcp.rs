//! `mcp`.

use std::path::PathBuf;

use clap::{Args, FromArgMatches};

use super::super::args::DumpArg;
use super::super::command::{Entry, Example, Group, example};

/// Registry entry. The command has no report.
pub const MCP: Entry = Entry {
    name: "mcp",
    group: Group::Dump,
    examples: EXAMPLES,
    arguments: Mcp::augment_args,
    run: None,
    dumps: |matches| Ok(Mcp::from_arg_matches(matches)?.dump.path().into_iter().collect()),
    schema: schemars::Schema::default,
    names_output: false,
};

const EXAMPLES: &[Example] = &[
    example("mcp --root DIR", "for the dumps in a folder and those below it"),
    example("mcp DUMP", "for one dump only"),
    example("mcp --root DIR --timeout 2m --max-memory 8G --no-local-files", "for dumps that are not trusted"),
];

/// A server for assistants (Model Context Protocol): answers about dumps over standard input and output.
///
/// An assistant's host starts it, as its configuration says. Its tools are commands with some of their options: info, analyze, heap, stat,
/// objects, object, path, refs, retained, strings, stacks, locks, threads, async, pool, exceptions, diff. The tool dumps lists the dumps;
/// more runs any other command that reads dumps, and help lists its arguments. They only read, and only dumps: those in the folders of --root,
/// and DUMP. Answers are bounded. Dumps stay open, so that later questions are answered at once. --timeout is for each question.
#[derive(Debug, Args)]
pub(in crate::cli) struct Mcp {
    /// Folder whose dumps may be read, with those below it (repeatable) [default: the current folder, unless a dump is named].
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) root: Vec<PathBuf>,

    /// Show texts of the process: strings, messages of exceptions, elements of arrays of characters and bytes. They go to the assistant
    /// and to the provider that runs it.
    #[arg(long)]
    pub(in crate::cli) contents: bool,

    #[command(flatten)]
    pub(in crate::cli) dump: DumpArg,
}
