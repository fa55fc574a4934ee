//! Manual pages, generated from the command line.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{ArgMatches, Args, Command as Clap, FromArgMatches};

use super::Streams;
use super::args::Config;
use super::command::{Entry, Example, Group, example};
use super::exit::{Exit, UsageError};
use super::registry::{self, command_line};
use crate::session::Dump;

/// A command that reads no dump.
pub(super) const MAN: Entry = Entry {
    name: "man",
    group: Group::Program,
    examples: EXAMPLES,
    arguments: Man::augment_args,
    run: man,
    dumps: |_| Ok(Vec::new()),
    schema: schemars::Schema::default,
    names_output: false,
};

const EXAMPLES: &[Example] = &[example("man stat", "the manual page of a command, for man -l -")];

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
