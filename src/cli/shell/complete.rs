//! Completion of a word: commands, options, their values, type names, addresses, files.

use std::cell::OnceCell;
use std::fs;
use std::path::MAIN_SEPARATOR_STR;
use std::time::Duration;

use clap::{Arg, Command as Clap};

use super::super::completion::is_offered;
use super::super::line::takes_next;
use super::commands;
use super::variables::Variables;
use super::words::{Place, Tail};

/// Maximum number of proposals.
const MOST: usize = 200;
/// Maximum number of directory entries examined.
const ENTRIES: usize = 10_000;
/// Maximum number of types known by name.
pub(super) const TYPES: usize = 50_000;
/// Time limit for the walk that finds the types.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Proposals for the last word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proposed {
    /// These words.
    Words(Vec<String>),
    /// A file name.
    File,
}

/// The data that completion uses.
pub(super) struct Completer<'k> {
    pub(super) variables: &'k Variables,
    /// Type names, found on the first request.
    pub(super) types: &'k OnceCell<Vec<String>>,
    pub(super) find_types: &'k dyn Fn() -> Vec<String>,
}

impl Completer<'_> {
    /// Returns proposals for the last word of a line.
    pub(super) fn propose(&self, tail: &Tail) -> Proposed {
        match (tail.place, tail.words.split_first()) {
            (Place::Program, _) => Proposed::Words(Vec::new()),
            (Place::File, _) => Proposed::File,
            (Place::Command, None) => starting(commands::names().map(Into::into), &tail.word),
            (Place::Command, Some((name, _))) if name == "help" => starting(commands::topics().map(Into::into), &tail.word),
            (Place::Command, Some((name, rest))) => match commands::named(name) {
                Some(entry) => self.argument(&entry.command(), rest, &tail.word),
                None => Proposed::Words(Vec::new()),
            },
        }
    }

    fn argument(&self, command: &Clap, before: &[String], word: &str) -> Proposed {
        if let Some((option, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
            let Some(arg) = commands::option(command, option) else { return Proposed::Words(Vec::new()) };
            return match self.value(arg, value) {
                Proposed::Words(words) => Proposed::Words(words.into_iter().map(|w| format!("{option}={w}")).collect()),
                Proposed::File => Proposed::Words(Vec::new()),
            };
        }
        let awaiting = before.last().and_then(|w| commands::option(command, w).filter(|a| takes_next(a) && !w.contains('=')));
        if let Some(arg) = awaiting {
            return self.value(arg, word);
        }
        if word.starts_with('-') {
            let options = command.get_arguments().filter(|a| !a.is_hide_set()).filter_map(Arg::get_long);
            return starting(options.map(|name| format!("--{name}")), word);
        }
        let nested: Vec<String> = command.get_subcommands().map(|c| c.get_name().into()).collect();
        if !nested.is_empty() {
            return starting(nested.into_iter(), word);
        }
        let mut places = command.get_positionals();
        match places.find_map(|arg| Some(self.value(arg, word)).filter(|p| *p != Proposed::Words(Vec::new()))) {
            Some(proposed) => proposed,
            None => Proposed::Words(Vec::new()),
        }
    }

    /// Returns proposals for the value of an argument.
    fn value(&self, arg: &Arg, word: &str) -> Proposed {
        let values = arg.get_possible_values();
        if !values.is_empty() {
            // The value may be a list separated by commas.
            let (done, last) = word.rsplit_once(',').map_or(("", word), |(done, last)| (done, last));
            let comma = if done.is_empty() { "" } else { "," };
            let names = values.iter().filter(|v| !v.is_hide_set()).map(|v| v.get_name().to_string());
            return match starting(names, last) {
                Proposed::Words(words) => Proposed::Words(words.into_iter().map(|w| format!("{done}{comma}{w}")).collect()),
                Proposed::File => Proposed::File,
            };
        }
        let name = commands::value_name(arg);
        if commands::is_type(arg) {
            return Proposed::Words(types(self.types.get_or_init(self.find_types), word));
        }
        if name.contains("ADDR") || name.contains("HANDLE") {
            return starting(self.variables.seen().map(|a| a.to_string()), word);
        }
        // Files are proposed only for other dumps and for output, because the open dump is never typed.
        let files = ["FILE", "DIR", "BEFORE", "AFTER", "OUT"];
        if files.iter().any(|f| name.contains(f)) { Proposed::File } else { Proposed::Words(Vec::new()) }
    }
}

/// Returns the words that start with `word`, ignoring case.
fn starting(words: impl Iterator<Item = String>, word: &str) -> Proposed {
    let begins = |w: &String| w.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    Proposed::Words(words.filter(begins).take(MOST).collect())
}

/// Returns files and directories whose path starts with `word`; directories end with a separator.
pub(super) fn files(word: &str) -> Vec<String> {
    let (folder, name) = word.split_at(word.rfind(std::path::is_separator).map_or(0, |at| at.saturating_add(1)));
    let Ok(entries) = fs::read_dir(if folder.is_empty() { "." } else { folder }) else { return Vec::new() };
    let path = |entry: fs::DirEntry| {
        let file = entry.file_name().into_string().ok()?;
        let listed = file.starts_with(name) && (!name.is_empty() || !file.starts_with('.'));
        let end = if listed && entry.path().is_dir() { MAIN_SEPARATOR_STR } else { "" };
        Some(format!("{folder}{file}{end}")).filter(|path| listed && is_offered(path))
    };
    let mut found: Vec<String> = entries.take(ENTRIES).filter_map(|entry| path(entry.ok()?)).collect();
    found.sort_unstable();
    found.truncate(MOST);
    found
}

/// Returns the types whose name starts with `word`, or else the types whose name contains `word`.
fn types(names: &[String], word: &str) -> Vec<String> {
    let word = word.to_lowercase();
    let all = |test: &dyn Fn(&str) -> bool| -> Vec<String> {
        names.iter().filter(|n| is_offered(n) && test(&n.to_lowercase())).take(MOST).cloned().collect()
    };
    let begin = all(&|name| name.starts_with(&word));
    if begin.is_empty() { all(&|name| name.contains(&word)) } else { begin }
}

#[cfg(test)]
mod tests {
    use super::super::words::tail;
    use super::*;
    use crate::base::Addr;

    fn proposed(line: &str) -> Proposed {
        let mut variables = Variables::default();
        variables.looked_at(Addr(0x7f10));
        let names = ["System.String", "Lab.Program+Entry", "Lab.Dog", "Lab.Dig\u{1b}[2J", "--output=x"].map(String::from).to_vec();
        let find = move || names.clone();
        let types = OnceCell::new();
        let completer = Completer { variables: &variables, types: &types, find_types: &find };
        let proposed = completer.propose(&tail(line));
        assert!(types.get().is_none() || line.contains("--type"), "names are found only where they are asked for: {line}");
        proposed
    }

    fn words(line: &str) -> Vec<String> {
        match proposed(line) {
            Proposed::Words(words) => words,
            Proposed::File => panic!("{line}: a file"),
        }
    }

    #[test]
    fn commands_options_and_values_are_proposed() {
        assert_eq!(words("stat"), ["stat", "statics"]);
        assert!(words("dumph").contains(&"dumpheap".into()) && words("Q").len() == 2);
        assert_eq!(words("heap; stat --to"), ["--top"]);
        assert_eq!(words("stat --by gen"), ["generation"]);
        assert_eq!(words("stat --by=gen"), ["--by=generation"]);
        assert_eq!(words("handles --type strong,pin"), ["strong,pinned"]);
        assert_eq!(words("help retai"), ["retained"]);
        assert!(words("stat --top ").is_empty() && words("nothing --x").is_empty() && words("stat | gr").is_empty());
    }

    #[test]
    fn types_addresses_and_files_are_proposed() {
        assert_eq!(words("stat --type lab.d"), ["Lab.Dog"]);
        assert_eq!(words("gcroot --type Entry"), ["Lab.Program+Entry"]);
        assert_eq!((words("stat --type 'lab.d"), words("stat --type --ou")), (vec!["Lab.Dog".into()], vec![]));
        assert_eq!(words("object 0x7"), ["0x7f10"]);
        assert_eq!(words("retained --object "), ["0x7f10"]);
        let words = files("src/cli/shell/comp");
        assert_eq!(
            (words.as_slice(), files("src/cli"), files("no/such/")),
            (&["src/cli/shell/complete.rs".into()][..], vec!["src/cli/".into()], vec![])
        );
        for file in ["stat > a", "stat --json >> a", "diff a", "stat --output a", "stat -o a; trim a"] {
            assert_eq!(proposed(file), Proposed::File, "{file}");
        }
    }
}
