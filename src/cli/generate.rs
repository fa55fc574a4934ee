//! What shells and manuals know about the command line: generated from it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{ArgMatches, Args, Command as Clap, FromArgMatches, ValueEnum};
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};

use super::Streams;
use super::args::Config;
use super::command::{Entry, Example, Group, example};
use super::exit::{Exit, UsageError};
use super::pick;
use super::registry::{self, command_line};
use super::words::dump_of;
use crate::session::{Dump, OpenOptions};

const PROGRAM: &str = "gcdump";
/// The variable by which a shell asks the program for candidates.
const VARIABLE: &str = "COMPLETE";

/// The commands that read no dump.
pub(super) const COMPLETIONS: Entry = Entry {
    name: "completions",
    group: Group::Program,
    examples: COMPLETIONS_EXAMPLES,
    arguments: Completions::augment_args,
    run: completions,
    dumps: |_| Ok(Vec::new()),
    schema: schemars::Schema::default,
    names_output: false,
};

/// Manual pages.
pub(super) const MAN: Entry = Entry {
    name: "man",
    group: Group::Program,
    examples: MAN_EXAMPLES,
    arguments: Man::augment_args,
    run: man,
    dumps: |_| Ok(Vec::new()),
    schema: schemars::Schema::default,
    names_output: false,
};

const COMPLETIONS_EXAMPLES: &[Example] = &[example("completions bash", "a script for ~/.bashrc: source <(gcdump completions bash)")];
const MAN_EXAMPLES: &[Example] = &[example("man stat", "the manual page of a command, for man -l -")];

/// A script that completes commands, options and values in a shell; in all but nushell, also the names of types in the dump.
#[derive(Debug, Args)]
struct Completions {
    /// The shell.
    shell: ShellName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShellName {
    Bash,
    Elvish,
    Fish,
    Nushell,
    Powershell,
    Zsh,
}

fn completions(matches: &ArgMatches, _: &Config, _: &[Dump], streams: &mut Streams<'_>) -> Result<Exit> {
    let Completions { shell } = Completions::from_arg_matches(matches)?;
    if matches!(shell, ShellName::Nushell) {
        let mut script = Vec::new();
        clap_complete::generate(clap_complete_nushell::Nushell, &mut command_line(), PROGRAM, &mut script);
        streams.out.write_all(&script)?;
        return Ok(Exit::Ok);
    }
    let name = shell.to_possible_value().map(|v| v.get_name().to_string()).unwrap_or_default();
    let shells = Shells::builtins();
    let completer = shells.completer(&name).with_context(|| UsageError(format!("{name} cannot be completed")))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    streams.out.write_all(&script)?;
    Ok(Exit::Ok)
}

/// Answers a shell that asks for candidates. Returns whether one did.
pub fn complete(args: impl IntoIterator<Item = OsString>) -> bool {
    std::env::var_os(VARIABLE).is_some()
        && CompleteEnv::with_factory(command_line).var(VARIABLE).try_complete(args, std::env::current_dir().ok().as_deref()).unwrap_or(true)
}

/// Names of types in the dump of the command line that begin with what is typed.
pub(super) fn types(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = current.to_str() else { return Vec::new() };
    names(typed).unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}

/// The words of the line that a shell completes, which it passes after `--`. The word that is being typed is empty: it is not the dump yet.
fn line() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().skip_while(|arg| arg != "--").skip(1).collect();
    // Shells that do not say where the cursor is pass the words before it.
    let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
    if let Some(typed) = words.len().checked_sub(1).and_then(|last| words.get_mut(index.unwrap_or(last))) {
        typed.clear();
    }
    words
}

/// Most names that are offered.
const OFFERED: usize = 200;

fn names(typed: &str) -> Option<Vec<String>> {
    let given = dump_of(&line(), &command_line()).map(PathBuf::from);
    let picked = pick::pick(given.as_deref(), std::env::var_os("GCDUMP_DUMP").map(PathBuf::from), Path::new(".")).ok()?;
    // Unpacking takes longer than anyone waits for a name.
    if pick::is_compressed(&picked.path) {
        return None;
    }
    let dump = Dump::open(&picked.path, &OpenOptions::default()).ok()?;
    let mut found = Vec::new();
    for pattern in [format!("{typed}*"), format!("*.{typed}*")] {
        let types = dump.runtime().ok()?.types_of(&pattern).ok()?;
        found.extend(types.iter().map(crate::session::Type::name));
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(OFFERED);
    Some(found)
}

/// Manual pages: of the program, of a command, or of all as files.
#[derive(Debug, Args)]
struct Man {
    /// The command [default: the program].
    command: Option<String>,

    /// Write the pages of the program and of every command to this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    all: Option<PathBuf>,
}

fn man(matches: &ArgMatches, _: &Config, _: &[Dump], streams: &mut Streams<'_>) -> Result<Exit> {
    let man = Man::from_arg_matches(matches)?;
    let mut root = command_line();
    root.build();
    let page = |command: &Clap| -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let more = registry::find(command.get_name()).map(registry::examples).unwrap_or_default();
        clap_mangen::Man::new(command.clone().after_help(more)).render(&mut text)?;
        Ok(text)
    };
    if let Some(folder) = &man.all {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        for command in std::iter::once(&root).chain(root.get_subcommands()) {
            let name = command.get_display_name().unwrap_or(command.get_name());
            let path = folder.join(format!("{name}.1"));
            fs::write(&path, page(command)?).with_context(|| path.display().to_string())?;
        }
        return Ok(Exit::Ok);
    }
    let unknown = |name: &String| UsageError(format!("there is no command '{name}'"));
    let command = man.command.as_ref().map(|name| root.find_subcommand(name).ok_or_else(|| unknown(name))).transpose()?;
    streams.out.write_all(&page(command.unwrap_or(&root))?)?;
    Ok(Exit::Ok)
}
