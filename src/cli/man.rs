//! Manual pages, generated from the command line.

use std::fs;

use anyhow::{Context, Result};
use clap::{ArgMatches, Command as Clap, FromArgMatches};

use super::cmd::man::Man;
use super::command_line::{command_line, examples};
use super::exit::{Exit, UsageError};
use super::registry;
use super::streams::Streams;

/// Prints the pages or writes them to files.
pub(super) fn run(matches: &ArgMatches, streams: &mut Streams<'_>) -> Result<Exit> {
    let man = Man::from_arg_matches(matches)?;
    let mut root = command_line();
    root.build();
    let page = |command: &Clap| -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let more = registry::find(command.get_name()).map(examples).unwrap_or_default();
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
    let unknown = |name: &String| UsageError(format!("there is no command '{name}' (gcdump --help lists all)"));
    let command = man.command.as_ref().map(|name| root.find_subcommand(name).ok_or_else(|| unknown(name))).transpose()?;
    streams.out.write_all(&page(command.unwrap_or(&root))?)?;
    Ok(Exit::Ok)
}
