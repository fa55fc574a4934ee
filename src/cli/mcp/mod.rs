//! A server for assistants: the Model Context Protocol over standard input and output.
//!
//! A tool is a command of the registry with some of its arguments. Dumps stay open between calls, as in the shell.

mod answer;
mod arguments;
mod beneath;
mod dumps;
mod list;
mod rpc;
mod server;
mod tools;

use std::io::{BufReader, IsTerminal};
use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgMatches, Args, FromArgMatches};

use super::Streams;
use super::args::{Config, DumpArg};
use super::command::{Entry, Example, Group, example};
use super::exit::{Exit, UsageError};
use super::open::Opening;
use crate::session::Dump;
use answer::Worker;
use dumps::Dumps;

/// Its name on the command line.
pub(super) const NAME: &str = "mcp";

/// Its line of the help. It gives no answer of its own, so it is no part of the registry.
pub const MCP: Entry = Entry {
    name: NAME,
    group: Group::Dump,
    examples: EXAMPLES,
    arguments: Mcp::augment_args,
    run,
    dumps: |matches| Ok(Mcp::from_arg_matches(matches)?.dump.path().into_iter().collect()),
    schema: schemars::Schema::default,
    names_output: false,
};

const EXAMPLES: &[Example] = &[
    example("mcp --root DIR", "for the dumps in a folder and those below it"),
    example("mcp DUMP", "for one dump alone"),
    example("mcp --root DIR --timeout 2m --max-memory 8G --no-local-files", "for dumps that are not trusted"),
];

/// A server for assistants (Model Context Protocol): answers about dumps over standard input and output.
///
/// An assistant's host starts it, as its configuration says. Its tools are commands with some of their options: info, analyze, heap, stat,
/// objects, object, path, retained, strings, stacks, locks, exceptions, diff. They only read, and only dumps: those in the folders of
/// --root, and DUMP. Answers are bounded. Dumps stay open, so that later questions are answered at once. --timeout is for each question.
#[derive(Debug, Args)]
struct Mcp {
    /// Folder whose dumps may be read, with those below it (repeatable) [default: the current folder, unless a dump is named].
    #[arg(long, value_name = "DIR")]
    root: Vec<PathBuf>,

    /// Show texts of the process: strings, messages of exceptions, elements of arrays of characters and bytes. They go to the assistant
    /// and whoever runs it.
    #[arg(long)]
    contents: bool,

    #[command(flatten)]
    dump: DumpArg,
}

/// Answers `messages`, one a line, about the dump at `path`: for fuzz targets.
///
/// # Errors
/// Errors of the server.
#[cfg(feature = "internals")]
pub fn try_mcp(path: &std::path::Path, messages: Vec<u8>, streams: &mut Streams<'_>) -> Result<()> {
    let args = ["gcdump", "mcp", "--no-local-files", "--timeout", "10s"].map(std::ffi::OsString::from);
    let config = super::Cli::of(&args)?.config;
    let options = Opening::options(&config, streams)?;
    let dumps = Dumps::new(&[], Some(path), options)?;
    server::serve(Worker { config, dumps }, false, std::io::Cursor::new(messages), streams)
}

fn run(matches: &ArgMatches, config: &Config, open: &[Dump], streams: &mut Streams<'_>) -> Result<Exit> {
    let mcp = Mcp::from_arg_matches(matches)?;
    if config.output.is_some() {
        return Err(UsageError("a server has no --output".into()).into());
    }
    let variable = std::env::var_os("GCDUMP_DUMP").filter(|path| !path.is_empty()).map(PathBuf::from);
    let own = mcp.dump.path().or_else(|| open.first().map(|dump| dump.file().facts.path.clone())).or(variable);
    // Whoever names a dump need not open a folder with it.
    let roots = if mcp.root.is_empty() && own.is_none() { vec![PathBuf::from(".")] } else { mcp.root };
    let mut options = Opening::options(config, streams)?;
    options.hide_contents = !mcp.contents;
    let dumps = Dumps::new(&roots, own.as_deref(), options)?;
    if std::io::stdin().is_terminal() {
        streams.say("gcdump mcp: an assistant's host starts this, and speaks JSON-RPC to it; Ctrl-D ends it")?;
    }
    let worker = Worker { config: config.clone(), dumps };
    server::serve(worker, mcp.contents, BufReader::new(std::io::stdin()), streams)?;
    Ok(Exit::Ok)
}

/// The answers of a server that may read no file to the messages in `input`, one a line. For fuzzers.
#[cfg(feature = "internals")]
pub fn conversation(input: Vec<u8>) -> Vec<u8> {
    let none = super::Cli::of(&["gcdump", "info"].map(std::ffi::OsString::from)).ok();
    let Some((config, dumps)) = none.map(|cli| cli.config).zip(Dumps::new(&[], None, crate::session::OpenOptions::default()).ok()) else {
        return Vec::new();
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    // Vectors take all that is written.
    let _ = server::serve(Worker { config, dumps }, false, std::io::Cursor::new(input), &mut Streams::piped(&mut out, &mut err));
    out
}
