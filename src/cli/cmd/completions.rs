//! `completions`.

use clap::{Args, ValueEnum};

use super::super::command::{Entry, Example, Group, example};

/// Registry entry of a command that does not read a dump.
pub(in crate::cli) const COMPLETIONS: Entry = Entry {
    name: "completions",
    group: Group::Program,
    examples: EXAMPLES,
    arguments: Completions::augment_args,
    run: None,
    dumps: |_| Ok(Vec::new()),
    schema: schemars::Schema::default,
    names_output: false,
};

const EXAMPLES: &[Example] = &[example("completions bash", "a script for ~/.bashrc: source <(gcdump completions bash)")];

/// A script that completes commands, options and values in a shell; in all but nushell, also files, and the names of types in the dump.
///
/// A name is quoted as the shell requires. Names with control or invisible characters, and those that begin with '-', are not offered.
/// After an opening quote, bash and powershell get only names that need none.
#[derive(Debug, Args)]
pub(in crate::cli) struct Completions {
    /// The shell.
    pub(in crate::cli) shell: Shell,
}

/// A shell of this system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Shell {
    Bash,
    Elvish,
    Fish,
    Nushell,
    Powershell,
    Zsh,
}
