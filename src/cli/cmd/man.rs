//! `man`.

use std::path::PathBuf;

use clap::Args;

use super::super::command::{Entry, Example, Group, example};

/// Registry entry of a command that does not read a dump.
pub(in crate::cli) const MAN: Entry = Entry {
    name: "man",
    group: Group::Program,
    examples: EXAMPLES,
    arguments: Man::augment_args,
    run: None,
    dumps: |_| Ok(Vec::new()),
    schema: schemars::Schema::default,
    names_output: false,
};

const EXAMPLES: &[Example] = &[example("man stat", "the manual page of a command, for man -l -")];

/// Manual pages: of the program, of a command, or of all as files.
#[derive(Debug, Args)]
pub(in crate::cli) struct Man {
    /// The command [default: the program].
    pub(in crate::cli) command: Option<String>,

    /// Write the pages of the program and of every command to this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(in crate::cli) all: Option<PathBuf>,
}
