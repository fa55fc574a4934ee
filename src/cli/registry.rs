//! The list of commands. Help, dispatch, SOS names, schemas, documentation and tests are derived from it.

use clap::{Args, Command as Clap};

use super::args::Config;
use super::cmd::{
    analyze, bridge, chains, contracts, diff, env, exceptions, export, finalizers, fleet, fragmentation, handles, heap, index, info,
    inspect, locks, memory, modules, near, object, objects, objsize, oom, path, place, pool, report, requests, retained, roots, segments,
    simulate, stacks, stat, statics, strings, threads, timers, track, trim, types, unreachable, verify, whatif,
};
use super::command::{Entry, Group, entry};
use super::completion::COMPLETIONS;
use super::help::TOPICS;
use super::man::MAN;
use super::mcp::MCP;
use super::shell::SHELL;
use crate::output::fold;

/// The commands, in help order.
pub const COMMANDS: &[Entry] = &[
    entry::<info::Info>(),
    entry::<analyze::Analyze>(),
    entry::<env::Env>(),
    entry::<memory::Memory>(),
    entry::<modules::Modules>(),
    entry::<contracts::Contracts>(),
    entry::<heap::Heap>(),
    entry::<segments::Segments>(),
    entry::<fragmentation::Fragmentation>(),
    entry::<handles::Handles>(),
    entry::<finalizers::Finalizers>(),
    entry::<oom::Oom>(),
    entry::<stat::Stat>(),
    entry::<objects::Objects>(),
    entry::<object::Object>(),
    entry::<place::Where>(),
    entry::<near::Near>(),
    entry::<strings::Strings>(),
    entry::<types::Type>(),
    entry::<statics::Statics>(),
    entry::<path::Path>(),
    entry::<retained::Retained>(),
    entry::<objsize::Objsize>(),
    entry::<roots::Roots>(),
    entry::<unreachable::Unreachable>(),
    entry::<whatif::Whatif>(),
    entry::<simulate::Simulate>(),
    entry::<bridge::Bridge>(),
    entry::<inspect::Inspect>(),
    entry::<threads::Threads>(),
    entry::<stacks::Stacks>(),
    entry::<locks::Locks>(),
    entry::<exceptions::Exceptions>(),
    entry::<chains::Async>(),
    entry::<pool::Pool>(),
    entry::<timers::Timers>(),
    entry::<requests::Requests>(),
    entry::<diff::Diff>(),
    entry::<track::Track>(),
    entry::<report::Report>(),
    entry::<export::Export>(),
    entry::<fleet::Fleet>(),
    entry::<index::Index>(),
    entry::<verify::Verify>(),
    entry::<trim::Trim>(),
];

/// Commands without an answer: no schema, no formats.
const OTHERS: &[Entry] = &[SHELL, MCP, COMPLETIONS, MAN];

/// All commands, in help order.
fn all() -> impl Iterator<Item = &'static Entry> + Clone {
    COMMANDS.iter().chain(OTHERS)
}

/// The command with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    all().find(|c| c.name == name)
}

/// Options that all commands share, in one line.
const SHARED: &str = "Options of every command: --json, --format FORMAT, -o FILE, --modules PATH ... (gcdump help options)";

/// Most columns of the help.
pub(super) const WIDTH: usize = 100;

const AFTER_HELP: &str = "\
Examples:
  gcdump info crash.dmp                  what the dump contains and can answer
  gcdump analyze crash.dmp               what is wrong with the process
  gcdump heap crash.dmp                  the heap by generation
  gcdump handles --type strong,pinned crash.dmp
  gcdump handles --json crash.dmp | jq '.data.counts'

DUMP may stand before the command as well. It defaults to $GCDUMP_DUMP, or the only dump in the current folder.
Exit codes: 0 complete answer, 1 negative answer, 5 partial answer; gcdump help exit-codes lists all.";

/// The options of every command, as `gcdump help options` lists them.
pub(super) fn options(width: usize) -> String {
    let list = Config::augment_args(Clap::new("gcdump")).disable_help_flag(true).term_width(width).help_template("{options}");
    format!("Options of every command:\n{}\n{}", list.clone().render_long_help(), fold(LISTS, width))
}

/// Options with one meaning in every command that has them.
const LISTS: &str = "
Where a command lists things:
  --top N            so many rows, 0 for all; totals always cover everything
  --sort COLUMN      the order of the rows, before --top cuts them: amounts descending, all else (names, addresses, ids, times) \
ascending, what is unknown last, equal rows as without it. Every format has this order. A column that the list lacks is refused \
with those it has
  --type TYPE        only what has such a type (gcdump help patterns)
";

/// The whole command line.
pub fn command_line() -> Clap {
    with_help(WIDTH).max_term_width(WIDTH)
}

/// The same, with help for so many columns.
pub(super) fn command_line_within(columns: usize) -> Clap {
    let width = columns.min(WIDTH);
    with_help(width).term_width(width)
}

/// Without the width that clap wraps at.
fn with_help(width: usize) -> Clap {
    // Options first, or their doc comment would become the program's description.
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

/// The examples of a command, one a line.
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

/// The commands by group, with the first sentence of their help.
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
        assert!(COMMANDS.windows(2).all(|w| w[0].group <= w[1].group), "commands stand in the order of their groups");
    }
}
