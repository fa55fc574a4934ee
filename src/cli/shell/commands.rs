//! Lookups for the shell: names and options of commands, and the position of the dump in a line.

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgMatches, Command as Clap};

use super::super::command::Entry;
use super::super::help::TOPICS;
pub(super) use super::super::line::OPEN;
use super::super::line::takes_next;
use super::super::registry::COMMANDS;
use super::super::sos::{self, Sos, To};
use super::super::values::address;
use crate::base::{self, Addr};

/// The shell's own commands.
pub(super) const OWN: [&str; 5] = ["help", "next", "quit", "exit", "q"];

/// Returns the command with this name, or with this name in SOS.
pub(super) fn named(name: &str) -> Option<&'static Entry> {
    let own = |name: &str| COMMANDS.iter().find(|c| c.name.eq_ignore_ascii_case(name));
    own(&sos::bare(name)).or_else(|| match sos::find(name)?.to {
        To::Words([first, ..]) => own(first),
        _ => None,
    })
}

/// Returns every name that can begin a command.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let is_command = |c: &&Sos| matches!(c.to, To::Words(_));
    let sos = sos::COMMANDS.iter().filter(is_command).flat_map(|c| c.names.iter().copied());
    let sos = sos.filter(|name| !COMMANDS.iter().any(|c| c.name == *name));
    OWN.into_iter().chain(COMMANDS.iter().map(|c| c.name)).chain(sos)
}

/// Returns the topics of `help`.
pub(super) fn topics() -> impl Iterator<Item = &'static str> {
    names().chain(TOPICS.iter().map(|(name, ..)| *name))
}

/// Returns the name most similar to an unknown command.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    base::nearest(&name, names(), name.len() / 2)
}

/// Finds the option that a word such as `--top`, `--top=3` or `-n` names.
pub(super) fn option<'c>(command: &'c Clap, word: &str) -> Option<&'c Arg> {
    let Some(name) = word.strip_prefix("--") else {
        let short = word.strip_prefix('-')?;
        return command.get_arguments().find(|a| a.get_short().is_some_and(|s| short.chars().eq([s])));
    };
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    command.get_arguments().find(|a| spellings(a).any(|s| s == name))
}

fn spellings(arg: &Arg) -> impl Iterator<Item = &str> {
    arg.get_long().into_iter().chain(arg.get_visible_aliases().into_iter().flatten())
}

/// Whether the values of this argument are types.
pub(super) fn is_type(arg: &Arg) -> bool {
    arg.get_long() == Some("type") && arg.get_possible_values().is_empty()
}

/// Returns the name of a value in the help.
pub(super) fn value_name(arg: &Arg) -> String {
    arg.get_value_names().unwrap_or_default().iter().map(|n| n.as_str()).collect::<Vec<_>>().join(" ")
}

/// Adds the word for the open dump if the command requires a dump: before the output file, or after the dumps that are compared with the open one.
pub(super) fn with_open(entry: &Entry, mut args: Vec<OsString>) -> Vec<OsString> {
    if args.iter().any(|a| a == OPEN) {
        return args;
    }
    let command = entry.command();
    let places: Vec<String> = command.get_positionals().map(value_name).collect();
    let dump = places.iter().position(|name| ["BEFORE", "IN", "DUMP"].contains(&name.as_str()));
    // A dump that is the last argument may be omitted, so the word for the open dump is not added.
    if let Some(place) = dump.filter(|place| place.saturating_add(1) < places.len()) {
        let compares = places.iter().any(|name| ["BEFORE", "AFTER"].contains(&name.as_str()));
        args.insert(if compares { args.len() } else { place.saturating_add(2).min(args.len()) }, OPEN.into());
    }
    args
}

/// Whether a command line omits the dump of the command.
pub(super) fn leaves_out_dump(entry: &Entry, matches: &ArgMatches) -> bool {
    let given = |arg: &Arg| matches.value_source(arg.get_id().as_str()).is_some();
    entry.command().get_positionals().any(|arg| value_name(arg) == "DUMP" && !given(arg))
}

/// Returns the object that a command line asks about: an address argument, or the value of `--object`.
pub(super) fn object(entry: &Entry, matches: &ArgMatches) -> Option<Addr> {
    let command = entry.command();
    let places = command.get_arguments().filter(|a| a.is_positional() || a.get_long() == Some("object"));
    let mut raw = places.filter(|a| value_name(a).contains("ADDR")).filter_map(|a| matches.get_raw(a.get_id().as_str()).ok_or(()).ok());
    raw.find_map(|mut values| values.find_map(|v: &OsStr| address(v.to_str()?).ok()))
}

/// Returns `args`, a line of `command`, without the options in `of` and their values.
pub(super) fn without(command: &Clap, args: &[OsString], of: &[&str]) -> Vec<OsString> {
    let mut out = Vec::with_capacity(args.len());
    let mut args = args.iter();
    while let Some(word) = args.next() {
        let found = word.to_str().and_then(|w| Some((w, option(command, w)?)));
        match found.filter(|(_, arg)| arg.get_long().is_some_and(|long| of.contains(&long))) {
            Some((text, arg)) if takes_next(arg) && !text.contains('=') => drop(args.next()),
            Some(_) => {}
            None => out.push(word.clone()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_and_similar_names_suggested() {
        assert_eq!(named("stat").map(|c| c.name), Some("stat"));
        assert_eq!(named("!DumpHeap").map(|c| c.name), Some("stat"));
        assert_eq!(named("GCRoot").map(|c| c.name), Some("path"));
        assert!(named("stats").is_none());
        assert_eq!((nearest("stats"), nearest("retaned"), nearest("exti")), (Some("stat"), Some("retained"), Some("exit")));
        assert_eq!(nearest("something-else"), None);
    }

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_open_dump_is_inserted_where_the_command_expects_it() {
        let with = |name: &str, words: &[&str]| with_open(named(name).unwrap(), os(words));
        assert_eq!(with("diff", &["gcdump", "diff", "--all", "a.dmp"]), os(&["gcdump", "diff", "--all", "a.dmp", "."]));
        assert_eq!(with("track", &["gcdump", "track", ".", "a.dmp"]), os(&["gcdump", "track", ".", "a.dmp"]));
        assert_eq!(with("trim", &["gcdump", "trim", "--redact", "out"]), os(&["gcdump", "trim", ".", "--redact", "out"]));
        assert_eq!(with("export", &["gcdump", "export", "gcdump", "out"]), os(&["gcdump", "export", "gcdump", ".", "out"]));
        assert_eq!(with("stat", &["gcdump", "stat"]), os(&["gcdump", "stat"]));
    }

    #[test]
    fn options_are_found_and_removed() {
        let command = named("stat").unwrap().command();
        assert!(option(&command, "--top=3").is_some_and(takes_next) && option(&command, "--json").is_some_and(|a| !takes_next(a)));
        assert!(option(&command, "--type").is_some_and(is_type) && option(&command, "--no-such").is_none());
        let words = os(&["gcdump", "stat", "--top", "5", "--json", "--top=6", "--by", "heap"]);
        assert_eq!(without(&command, &words, &["top"]), os(&["gcdump", "stat", "--json", "--by", "heap"]));
        assert_eq!(without(&command, &os(&["gcdump", "stat", "-n", "5", "-j"]), &["top"]), os(&["gcdump", "stat", "-j"]));
    }
}
