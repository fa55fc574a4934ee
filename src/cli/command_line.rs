//! The clap definition of the command line with its help, built from the registry.

use clap::{Args, Command as Clap};

use super::args::Config;
use super::command::{Entry, Group};
use super::help::{TOPICS, WIDTH};
use super::registry::all;
use crate::output::fold;

/// Summary of the options that all commands share.
const SHARED: &str = "Options of every command: --json, --format FORMAT, -o FILE, --modules PATH ... (gcdump help options)";

const AFTER_HELP: &str = "\
Examples:
  gcdump info crash.dmp                  what the dump contains and can answer
  gcdump analyze crash.dmp               what is wrong with the process
  gcdump heap crash.dmp                  the heap by generation
  gcdump handles --type strong,pinned crash.dmp
  gcdump handles --json crash.dmp | jq '.data.counts'

DUMP may be before the command as well. It defaults to $GCDUMP_DUMP, or the only dump in the current folder.
Exit codes: 0 complete answer, 1 negative answer, 5 partial answer; gcdump help exit-codes lists all.";

/// Returns the complete command line definition.
pub fn command_line() -> Clap {
    with_help(WIDTH).max_term_width(WIDTH)
}

/// Returns the complete command line definition, with help for this many columns.
pub(super) fn command_line_within(columns: usize) -> Clap {
    let width = columns.min(WIDTH);
    with_help(width).term_width(width)
}

/// Builds the definition with help texts for `width` columns, but does not set the width at which clap wraps.
fn with_help(width: usize) -> Clap {
    // The options are added first: clap takes the description from the doc comment that is added last.
    let root = Config::augment_args(Clap::new("gcdump"))
        .mut_args(|arg| arg.hide(true))
        .disable_help_subcommand(true)
        .version(env!("CARGO_PKG_VERSION"))
        .about("Inspects the garbage-collected heap in a crash dump of a .NET process")
        .long_about(
            "Inspects the garbage-collected heap in a crash dump of a .NET process.\n\nReads Windows minidumps and ELF cores \
             (createdump, kernel, gcore) of .NET 8 and later, optionally compressed (.zst, .gz), on any machine; needs no .NET, \
             debugger or DAC.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(fold(AFTER_HELP, width));
    let root = all().fold(root, |root, c| root.subcommand(subcommand(c, width)));
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{{after-help}}", groups(&root, width));
    root.help_template(template)
}

/// Returns the examples of a command, one per line.
pub(super) fn examples(c: &Entry) -> String {
    let width = c.examples.iter().map(|e| e.line.len()).max().unwrap_or(0);
    let line = |e: &super::command::Example| format!("\n  gcdump {:<width$}  {}", e.line, e.shows);
    format!("Examples:{}", c.examples.iter().map(line).collect::<String>())
}

fn subcommand(c: &Entry, width: usize) -> Clap {
    let examples = fold(&examples(c), width);
    let names = c.sos();
    let sos = if names.is_empty() { String::new() } else { format!("\nIn SOS: {}", names.join(", ")) };
    let after = fold(&format!("{SHARED}\n{sos}"), width);
    let template = format!("{{about-with-newline}}\n{examples}\n{{usage-heading}} {{usage}}\n\n{{all-args}}\n\n{}", after.trim_end());
    (c.arguments)(Clap::new(c.name)).help_template(template)
}

/// Returns the commands by group, with the first sentence of their help.
fn groups(root: &Clap, columns: usize) -> String {
    let width = all().map(|c| c.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for group in Group::ALL.into_iter().filter(|group| all().any(|c| c.group == *group)) {
        out.push_str(&format!("{}:\n", group.title()));
        for c in all().filter(|c| c.group == group) {
            let about = root.find_subcommand(c.name).and_then(Clap::get_about).map(ToString::to_string).unwrap_or_default();
            out.push_str(&format!("  {:<width$}  {about}\n", c.name));
        }
        out.push('\n');
    }
    let topics: Vec<&str> = TOPICS.iter().map(|(name, ..)| *name).collect();
    out.push_str(&format!("Help: gcdump help COMMAND, and gcdump help TOPIC on {}.\n", topics.join(", ")));
    out.push_str(SHARED);
    fold(&out, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command_line().debug_assert();
    }
}
