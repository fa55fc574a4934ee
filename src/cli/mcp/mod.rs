//! A server for assistants: the Model Context Protocol over standard input and output.
//!
//! A tool is a command of the registry with some of its arguments. Dumps stay open between calls, as in the shell.

mod answer;
mod arguments;
mod beneath;
mod dumps;
mod fit;
mod fold;
mod kind;
mod list;
mod more;
mod next;
mod prompts;
mod resources;
mod rpc;
mod server;
mod tools;

use std::io::{BufReader, IsTerminal};
use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgMatches, FromArgMatches};

use super::args::Config;
use super::cmd::mcp::Mcp;
use super::exit::{Exit, UsageError};
use super::open::Opening;
#[cfg(feature = "internals")]
use super::parsed::Cli;
use super::streams::Streams;
use answer::Worker;
use dumps::Dumps;

/// Answers `messages`, one per line, about the dump at `path`. For fuzz targets.
///
/// # Errors
/// Errors of the server.
#[cfg(feature = "internals")]
pub fn try_mcp(path: &std::path::Path, messages: Vec<u8>, streams: &mut Streams<'_>) -> Result<()> {
    let args = ["gcdump", "mcp", "--no-local-files", "--timeout", "10s"].map(std::ffi::OsString::from);
    let config = Cli::of(&args)?.config;
    let options = Opening::options(&config, streams)?;
    let dumps = Dumps::new(&[], Some(path), options)?;
    server::serve(Worker { config, dumps }, false, std::io::Cursor::new(messages), streams)
}

/// Runs the server.
pub(super) fn run(matches: &ArgMatches, config: &Config, streams: &mut Streams<'_>) -> Result<Exit> {
    let mcp = Mcp::from_arg_matches(matches)?;
    if config.output.is_some() {
        return Err(UsageError("a server has no --output".into()).into());
    }
    let variable = std::env::var_os("GCDUMP_DUMP").filter(|path| !path.is_empty()).map(PathBuf::from);
    let own = mcp.dump.path().or(variable);
    // A server that is given a dump does not need a folder.
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

/// Runs a server without access to files on the messages in `input`, one per line, and returns its answers. For fuzzers.
#[cfg(feature = "internals")]
pub fn conversation(input: Vec<u8>) -> Vec<u8> {
    let none = Cli::of(&["gcdump", "info"].map(std::ffi::OsString::from)).ok();
    let Some((config, dumps)) = none.map(|cli| cli.config).zip(Dumps::new(&[], None, crate::session::OpenOptions::default()).ok()) else {
        return Vec::new();
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    // Writing to a vector cannot fail.
    let _ = server::serve(Worker { config, dumps }, false, std::io::Cursor::new(input), &mut Streams::piped(&mut out, &mut err));
    out
}
