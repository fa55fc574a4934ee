//! Puts command lines into the order that clap expects: the command, its arguments, then the dump. Users also type the dump first, an address
//! before the command, or a command of SOS.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Command as Clap;

use super::exit::UsageError;
use super::line::{DefaultDump, OPEN, STANDARD_INPUT, arguments, is_dump_for, is_path, place_of_dump, takes_dump, takes_value};
use super::meant::{meant, spelled};
use super::object_name::one_argument;
use super::sos;
use super::values::address;
use crate::base::did_you_mean;

/// A reordered command line.
pub(super) enum Ordered {
    /// A command line for clap.
    Line(Vec<OsString>),
    /// Help on a topic: see [`super::help`].
    Help(&'static str),
}

/// Reorders `args`. The first word is the program.
///
/// # Errors
/// Fails on commands that do not exist, and on SOS commands without a counterpart.
pub(super) fn ordered(args: Vec<OsString>, root: &Clap, default_dump: DefaultDump<'_>) -> Result<Ordered, UsageError> {
    let mut args = args.into_iter();
    let program = args.next().unwrap_or_default();
    let mut rest: Vec<OsString> = args.collect();
    without_prefix(&mut rest, root);
    let Some((name, mut dump)) = take_command(&mut rest, root) else {
        return Ok(Ordered::Line(std::iter::once(program).chain(rest).collect()));
    };
    let Some(command) = known(&name, root) else { return Err(unknown(&name, root)) };
    let (mut command, mut rest) = match command {
        Known::Help => {
            let topic = arguments(&rest, root, None).first().and_then(|i| rest.get(*i)).cloned();
            let Some(topic) = topic else { return Ok(Ordered::Line(vec![program, "--help".into()])) };
            let text = topic.to_string_lossy().to_ascii_lowercase();
            if let Some((name, ..)) = super::help::TOPICS.iter().find(|(name, ..)| *name == text) {
                return Ok(Ordered::Help(name));
            }
            match known(&topic, root) {
                Some(Known::Own(name)) => (name, vec!["--help".into()]),
                Some(Known::Sos(sos::Sos { to: sos::To::Words([name, ..]), .. })) => ((*name).to_string(), vec!["--help".into()]),
                Some(Known::Sos(sos::Sos { to: sos::To::Refused(why), .. })) => return Err(UsageError(format!("{text}: {why}"))),
                _ => return Err(unknown(&topic, root)),
            }
        }
        Known::Own(name) => (name, rest),
        Known::Sos(known) => {
            let translated = sos::translate(
                known,
                &name.to_string_lossy(),
                rest,
                (is_path, |option: &str| root.get_subcommands().any(|c| takes_value(option, root, Some(c)))),
            )?;
            let mut words = translated.words.into_iter();
            let command = words.next().unwrap_or_default().to_string_lossy().into_owned();
            (command, words.chain(translated.files).collect())
        }
    };
    if command == "help" {
        return Ok(Ordered::Help("sos"));
    }
    // `collect` is the only simulation, so its name may be omitted.
    if command == "simulate"
        && let Some(at) = rest.iter().position(|a| a == "collect")
    {
        rest.remove(at);
    }
    // The shell can also be requested with an option: gcdump crash.dmp --shell
    if command == "info" && dump.is_some() && rest.iter().any(|a| a == "--shell") {
        rest.retain(|a| a != "--shell");
        command = "shell".into();
    }
    let sub = root.find_subcommand(&command);
    let rest = match sub {
        Some(sub) => {
            let rest = without_placeholder(spelled(&rest, root, sub), (dump.is_some(), default_dump), root, sub)?;
            let rest = meant(rest, (&mut dump, default_dump), root, sub)?;
            let rest = objects_in_one(dump_in_place(rest, dump, root, sub), default_dump, root, sub)?;
            fitting(&rest, root, sub)?;
            rest
        }
        None => rest,
    };
    Ok(Ordered::Line([program, command.into()].into_iter().chain(rest).collect()))
}

/// The word for the dump in hints and in the help.
const PLACEHOLDERS: [&str; 2] = ["DUMP", "<DUMP>"];

/// Removes the last argument if it is the word for the dump of a copied hint. The command is then about the dump that it may omit.
///
/// # Errors
/// Fails on this word if the line may not omit the dump.
fn without_placeholder(
    mut args: Vec<OsString>,
    (leads, default_dump): (bool, DefaultDump<'_>),
    root: &Clap,
    sub: &Clap,
) -> Result<Vec<OsString>, UsageError> {
    let is_placeholder = |i: &usize| args.get(*i).is_some_and(|word| PLACEHOLDERS.iter().any(|p| word == p) && !Path::new(word).exists());
    let last = arguments(&args, root, Some(sub)).pop().filter(is_placeholder);
    if let Some(at) = last.filter(|_| takes_dump(sub)) {
        if !leads && default_dump().is_none() && !asks_help(&args) {
            return Err(UsageError(format!("{}: DUMP means the path of your dump: write it instead", sub.get_name())));
        }
        args.remove(at);
    }
    Ok(args)
}

/// Whether the line asks for help.
fn asks_help(args: &[OsString]) -> bool {
    args.iter().take_while(|a| *a != "--").any(|a| ["-h", "--help"].iter().any(|help| a == help))
}

/// Removes a word that only leads to the command after it: `sos dumpheap`, `~*e !clrstack`.
fn without_prefix(args: &mut Vec<OsString>, root: &Clap) {
    let is_prefix = |word: &OsString| word.to_str().is_some_and(sos::is_prefix);
    if let [at, next, ..] = arguments(args, root, None).as_slice()
        && args.get(*at).is_some_and(is_prefix)
        && args.get(*next).is_some_and(|word| known(word, root).is_some())
    {
        args.remove(*at);
    }
}

/// Removes the name of the command from `args`, and the dump if it precedes the command. Returns `None` if there are only options.
fn take_command(args: &mut Vec<OsString>, root: &Clap) -> Option<(OsString, Option<OsString>)> {
    if let Some((at, dump)) = (0..args.len()).find_map(|at| Some((at, led(args, at, root)?))) {
        let name = args.remove(at);
        return Some((name, dump.map(|at| args.remove(at))));
    }
    let mut places = arguments(args, root, None).into_iter();
    let at = places.next()?;
    let first = args.get(at).cloned()?;
    if known(&first, root).is_some() {
        args.remove(at);
    } else if is_path(&first) {
        // For example, gcdump crash.dmp stat, or gcdump *.dmp.
        let is_command = |i: &usize| args.get(*i).is_some_and(|word| known(word, root).is_some() || !is_path(word));
        let name = places.next().filter(is_command);
        let name = name.map_or_else(|| "info".into(), |i| args.remove(i));
        return Some((name, Some(args.remove(at))));
    }
    Some((first, None))
}

/// Checks whether the word at this position is a command that only its options and perhaps the dump precede. If so, returns the position of the dump,
/// if present.
fn led(args: &[OsString], at: usize, root: &Clap) -> Option<Option<usize>> {
    let sub = match known(args.get(at)?, root)? {
        Known::Help => None,
        Known::Own(name) => root.find_subcommand(name),
        Known::Sos(sos::Sos { to: sos::To::Words([name, ..]), .. }) => root.find_subcommand(name),
        Known::Sos(_) => None,
    };
    let before = args.get(..at)?;
    // A corrected spelling must have the same number of words; otherwise the positions below do not apply.
    let all: Vec<OsString> = before.iter().flat_map(|a| sub.map_or_else(|| vec![a.clone()], |sub| one_spelled(a, root, sub))).collect();
    if before.iter().any(|a| a == "--") || all.len() != before.len() {
        return None;
    }
    match arguments(&[all, vec![args.get(at)?.clone()]].concat(), root, sub).as_slice() {
        [only] if *only == at => Some(None),
        [dump, last] if *last == at && is_path(args.get(*dump)?) => Some(Some(*dump)),
        _ => None,
    }
}

fn one_spelled(arg: &OsStr, root: &Clap, sub: &Clap) -> Vec<OsString> {
    spelled(&[arg.to_os_string()], root, sub)
}

/// Returns the dump on the command line `args`, which may be unfinished. The first word is the program.
pub(super) fn dump_of(args: &[OsString], root: &Clap) -> Option<OsString> {
    let mut rest = args.get(1..)?.to_vec();
    let (name, dump) = take_command(&mut rest, root)?;
    if dump.is_some() {
        return dump;
    }
    let sub = match known(&name, root)? {
        Known::Own(name) => root.find_subcommand(name)?,
        Known::Sos(_) | Known::Help => return None,
    };
    let (place, leads) = place_of_dump(sub)?;
    let rest = dump_in_place(rest, None, root, sub);
    let places = arguments(&rest, root, Some(sub));
    // If other arguments follow the dump, the dump has a fixed position once all arguments before it are present. Otherwise the dump is last.
    let at = if leads { places.get(place) } else { places.last() };
    at.and_then(|i| rest.get(*i)).filter(|word| is_dump_for(sub, word)).cloned()
}

/// A command that exists.
enum Known {
    Help,
    Own(String),
    Sos(&'static sos::Sos),
}

fn known(name: &OsStr, root: &Clap) -> Option<Known> {
    let name = name.to_str()?;
    if sos::bare(name) == "help" {
        return Some(Known::Help);
    }
    // SOS commands are found first: an SOS command of the same name as a gcdump command accepts SOS flags.
    if let Some(sos) = sos::find(name) {
        return Some(Known::Sos(sos));
    }
    root.find_subcommand(sos::bare(name)).map(|c| Known::Own(c.get_name().into()))
}

fn unknown(name: &OsStr, root: &Clap) -> UsageError {
    let name = name.to_string_lossy();
    let wanted = sos::bare(&name);
    let own = root.get_subcommands().map(Clap::get_name);
    // Minimum length of compared names. It excludes words of two letters, because almost every one is similar to some word of three.
    const FEWEST: usize = 3;
    let all: BTreeSet<&str> =
        own.chain(sos::answered().map(|name| -> &str { name })).filter(|name| name.len().min(wanted.len()) >= FEWEST).collect();
    if wanted == "version" {
        return UsageError("there is no command 'version'; gcdump --version prints it".into());
    }
    let hint = did_you_mean(&wanted, all.into_iter());
    UsageError(format!("there is no command '{name}'{hint} (gcdump --help lists all)"))
}

/// Moves the dump to the position where the command expects it: `dump`, which preceded the command, or a dump that precedes an address.
fn dump_in_place(mut args: Vec<OsString>, dump: Option<OsString>, root: &Clap, sub: &Clap) -> Vec<OsString> {
    let place = place_of_dump(sub);
    let leads = place.is_some_and(|(_, leads)| leads);
    let places = arguments(&args, root, Some(sub));
    if let Some(dump) = dump {
        let end = args.iter().position(|a| a == "--").unwrap_or(args.len());
        let after = place.filter(|_| leads).and_then(|(place, _)| places.get(place).copied());
        args.insert(after.unwrap_or(end), dump);
        return args;
    }
    // Nothing is moved if the command expects the dump before other arguments, or if the line contains `--`.
    if leads || args.iter().any(|a| a == "--") {
        return args;
    }
    let is_dump_at = |i: &&usize| args.get(**i).is_some_and(|a| is_dump_for(sub, a));
    let Some((last, before)) = places.split_last() else { return args };
    let mut early = before.iter().filter(is_dump_at);
    if let (false, Some(i), None) = (is_dump_at(&last), early.next().copied(), early.next()) {
        let dump = args.remove(i);
        args.push(dump);
    }
    args
}

/// Joins several words for objects into one, for commands about an object. The last word is the dump if it looks like a file; it is an object if it
/// is an address, or if the line may omit the dump.
///
/// # Errors
/// Fails on a last word that may be an object or a file that does not exist, if the line may not omit the dump.
fn objects_in_one(mut args: Vec<OsString>, default_dump: DefaultDump<'_>, root: &Clap, sub: &Clap) -> Result<Vec<OsString>, UsageError> {
    let takes_objects = sub.get_positionals().next().is_some_and(|p| ["address", "what"].contains(&p.get_id().as_str()));
    let mut places = arguments(&args, root, Some(sub));
    if !takes_objects || places.len() < 2 {
        return Ok(args);
    }
    let last = places.last().and_then(|i| args.get(*i)).cloned().unwrap_or_default();
    let text = last.to_string_lossy();
    if address(&text).is_err() && (is_path(&last) || text == OPEN || default_dump().is_none()) {
        if !is_path(&last) && is_like_a_name(&text) {
            let command = sub.get_name();
            return Err(UsageError(format!(
                "cannot read {text}: the file does not exist; if it is an object, add the dump: {command} OBJECT … DUMP"
            )));
        }
        places.pop();
    }
    if places.len() < 2 {
        return Ok(args);
    }
    let joined = one_argument(&places.iter().filter_map(|i| args.get(*i).cloned()).collect::<Vec<_>>());
    for i in places.iter().skip(1).rev() {
        args.remove(*i);
    }
    if let Some(first) = places.first().and_then(|i| args.get_mut(*i)) {
        *first = joined;
    }
    Ok(args)
}

/// Whether a word is like the name of a static field, an element or a type in a namespace.
fn is_like_a_name(text: &str) -> bool {
    text.contains("::") || text.ends_with(']') || text.split('.').filter(|part| part.starts_with(char::is_alphabetic)).count() > 1
}

/// Reports a missing address or type name, because clap would take the dump for the missing argument.
fn fitting(args: &[OsString], root: &Clap, sub: &Clap) -> Result<(), UsageError> {
    let words: Vec<&OsString> = arguments(args, root, Some(sub)).into_iter().filter_map(|i| args.get(i)).collect();
    let first = sub.get_positionals().next().filter(|_| !asks_help(args));
    let command = sub.get_name();
    match (first.map(clap::Arg::get_id).map(clap::Id::as_str), words.as_slice()) {
        (Some("address"), []) => Err(UsageError(format!("{command}: the address is missing: {command} ADDRESS DUMP"))),
        (Some("address"), [dump]) if is_dump_for(sub, dump) && *dump != STANDARD_INPUT => {
            let dump = dump.to_string_lossy();
            Err(UsageError(format!("{command}: the address is missing: {command} ADDRESS {dump}")))
        }
        (Some("name"), []) => Err(UsageError(format!("{command}: the name of the type is missing: {command} TYPE DUMP"))),
        // Type names contain dots, so the argument is taken for the dump only if such a file exists.
        (Some("name"), [dump]) if Path::new(dump).is_file() => {
            let dump = dump.to_string_lossy();
            Err(UsageError(format!("{command}: the name of the type is missing: {command} TYPE {dump}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::command_line::command_line;
    use super::*;

    fn line(text: &str) -> Result<String, String> {
        let args = std::iter::once("gcdump").chain(text.split_whitespace()).map(OsString::from).collect();
        match ordered(args, &command_line(), &|| None).map_err(|e| e.0)? {
            Ordered::Help(topic) => Ok(format!("help {topic}")),
            Ordered::Line(words) => Ok(words.iter().skip(1).map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")),
        }
    }

    #[test]
    fn the_word_for_the_dump_is_the_dump_that_may_be_omitted() {
        let of = |text: &str, has_dump: bool| {
            let args = std::iter::once("gcdump").chain(text.split_whitespace()).map(OsString::from).collect();
            match ordered(args, &command_line(), &|| has_dump.then(|| "x.dmp".into())) {
                Ok(Ordered::Line(words)) => words.iter().skip(1).map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "),
                _ => panic!("{text}"),
            }
        };
        for (typed, ordered) in [
            ("exceptions DUMP", "exceptions"),
            ("stacks --merge DUMP", "stacks --merge"),
            ("stat Lab DUMP", "stat --type Lab"),
            ("type System.String <DUMP>", "type System.String"),
            ("object 0x10 DUMP", "object 0x10"),
            ("stat --type DUMP", "stat --type DUMP"),
            ("object Lab.Program.Keep Lab.Program.Truth", "object Lab.Program.Keep\nLab.Program.Truth"),
            ("path 0x10 Lab.Program.Truth", "path 0x10\nLab.Program.Truth"),
            ("path 0x10 Lab.Program.Truth DUMP", "path 0x10\nLab.Program.Truth"),
            ("objsize Lab.Program.Keep Lab.Program.Truth other.dmp", "objsize Lab.Program.Keep\nLab.Program.Truth other.dmp"),
            ("refs Lab.Program.Keep .", "refs Lab.Program.Keep ."),
            // The usual names of cores, of which none is in this folder.
            ("exceptions core.1234", "exceptions core.1234"),
            ("exceptions core.dotnet.1234", "exceptions core.dotnet.1234"),
            ("exceptions core.x", "exceptions --type core.x"),
        ] {
            assert_eq!(of(typed, true), ordered, "{typed}");
        }
        assert_eq!(line("exceptions DUMP").unwrap_err(), "exceptions: DUMP means the path of your dump: write it instead");
        assert_eq!(line("x.dmp exceptions DUMP").as_deref(), Ok("exceptions x.dmp"));
        assert_eq!(line("exceptions --help DUMP").as_deref(), Ok("exceptions --help"));
    }

    #[test]
    fn dumps_and_commands_are_found_anywhere() {
        for (typed, ordered) in [
            ("x.dmp", "info x.dmp"),
            ("x.dmp stat", "stat x.dmp"),
            ("x.dmp --json stat", "stat --json x.dmp"),
            ("x.dmp y.dmp", "info x.dmp y.dmp"),
            ("info x.dmp y.dmp z.dmp", "info x.dmp y.dmp z.dmp"),
            ("x.dmp info y.dmp --json", "info x.dmp y.dmp --json"),
            ("--format json x.dmp stat --top 3", "stat --format json --top 3 x.dmp"),
            ("x.dmp object 7f31", "object 7f31 x.dmp"),
            ("object x.dmp 7f31", "object 7f31 x.dmp"),
            ("object 7f31 x.dmp", "object 7f31 x.dmp"),
            ("object x.dmp 7f31 --count 3", "object 7f31 --count 3 x.dmp"),
            ("object --count 3 x.dmp 7f31", "object --count 3 7f31 x.dmp"),
            ("type x.dmp System.String", "type System.String x.dmp"),
            ("path x.dmp 7f31", "path 7f31 x.dmp"),
            ("before.dmp diff after.dmp", "diff before.dmp after.dmp"),
            ("diff a.dmp b.dmp", "diff a.dmp b.dmp"),
            ("trim x.dmp copy", "trim x.dmp copy"),
            ("x.dmp trim --redact copy", "trim --redact x.dmp copy"),
            ("export gcdump x.dmp out", "export gcdump x.dmp out"),
            ("x.dmp export gcdump out", "export gcdump x.dmp out"),
            ("x.dmp export gcdump -o out", "export gcdump -o out x.dmp"),
            ("whatif x.dmp --dead 7f31", "whatif x.dmp --dead 7f31"),
            ("x.dmp !DumpHeap -stat", "stat x.dmp"),
            ("DO x.dmp 7f31", "object 7f31 x.dmp"),
            ("Stat x.dmp", "stat x.dmp"),
            ("help stat", "stat --help"),
            ("help gcroot", "path --help"),
            ("help exit-codes", "help exit-codes"),
            ("soshelp", "help sos"),
            ("threads --symbols a/b x.dmp", "threads --symbols a/b x.dmp"),
            ("dumpheap -type Lab --modules a/b x.dmp --top 3", "objects --type *Lab* --modules a/b --top 3 x.dmp"),
            ("stat", "stat"),
            ("--version", "--version"),
            // Options before the command, and with one dash.
            ("--top 3 stat x.dmp", "stat --top 3 x.dmp"),
            ("--type strings stat x.dmp", "stat --type strings x.dmp"),
            ("x.dmp -n 3 stat", "stat -n 3 x.dmp"),
            ("handles -Type Pinned x.dmp", "handles --type Pinned x.dmp"),
            ("stat --Top 3 --limit=4 x.dmp", "stat --top 3 --top=4 x.dmp"),
            ("stat --csv x.dmp", "stat --format csv x.dmp"),
            ("!analyze -v x.dmp", "analyze x.dmp"),
            ("!ext.heap -s x.dmp", "heap x.dmp"),
            // Words without an option.
            ("stacks Main x.dmp", "stacks --method Main x.dmp"),
            ("x.dmp stacks 1", "stacks --thread 1 x.dmp"),
            ("strings dog1 x.dmp", "strings --like *dog1* x.dmp"),
            ("statics Lab.Program x.dmp", "statics --type Lab.Program x.dmp"),
            ("retained x.dmp Lab.Node", "retained x.dmp --type Lab.Node"),
            ("exceptions 0x7f31 x.dmp", "exceptions --object 0x7f31 x.dmp"),
            ("stat /Lab.*/ x.dmp", "stat --type /Lab.*/ x.dmp"),
            ("before.dmp analyze after.dmp", "analyze --since before.dmp after.dmp"),
            ("analyze before.dmp after.dmp", "analyze --since before.dmp after.dmp"),
            ("export --format parquet x.dmp", "export parquet x.dmp"),
            ("x.dmp export -f csv", "export csv x.dmp"),
            ("stat -", "stat -"),
            // Commands of other tools.
            ("k x.dmp", "stacks x.dmp"),
            ("leaks x.dmp", "retained --suspects x.dmp"),
            ("grep dog x.dmp", "strings --like *dog* x.dmp"),
            ("compare a.dmp b.dmp", "diff a.dmp b.dmp"),
            ("dumpheap 7f00 0x7fff x.dmp", "objects --where address >= 0x7f00 and address < 0x7fff x.dmp"),
            ("dumpheap -stat -live x.dmp", "retained x.dmp"),
            ("sos dumpheap -stat x.dmp", "stat x.dmp"),
            ("~*e !clrstack x.dmp", "stacks --framework x.dmp"),
            ("!sos.help", "--help"),
            ("export x.dmp csv", "export csv x.dmp"),
        ] {
            assert_eq!(line(typed).as_deref(), Ok(ordered), "{typed}");
        }
    }

    #[test]
    fn the_dump_of_an_unfinished_line_is_found_by_its_position() {
        for (typed, dump) in [
            ("stat x.dmp --type", Some("x.dmp")),
            ("x.dmp stat --type", Some("x.dmp")),
            ("stat --modules a/b --type Lab", None),
            ("stat -o out.zst x.dmp --type Lab", Some("x.dmp")),
            ("object x.dmp --as Lab", Some("x.dmp")),
            ("object x.dmp 7f31 --as Lab", Some("x.dmp")),
            ("diff a.dmp b.dmp --type Lab", Some("a.dmp")),
            ("trim x.dmp copy.dmp", Some("x.dmp")),
            ("gcdump stat x.dmp", None),
            ("--json", None),
        ] {
            let line: Vec<OsString> = std::iter::once("gcdump").chain(typed.split_whitespace()).map(OsString::from).collect();
            assert_eq!(dump_of(&line, &command_line()), dump.map(OsString::from), "{typed}");
        }
    }

    #[test]
    fn missing_and_extra_arguments_are_named() {
        for (typed, message) in [
            ("object x.dmp", "object: the address is missing: object ADDRESS x.dmp"),
            ("x.dmp object --count 3", "object: the address is missing: object ADDRESS x.dmp"),
            ("do x.dmp", "object: the address is missing: object ADDRESS x.dmp"),
            ("listnearobj x.dmp", "near: the address is missing: near ADDRESS x.dmp"),
            ("where", "where: the address is missing: where ADDRESS DUMP"),
            ("type", "type: the name of the type is missing: type TYPE DUMP"),
            ("heap 7f31 x.dmp", "heap: '7f31' is neither an option nor a dump (gcdump help heap)"),
            (
                "a.dmp stat b.dmp",
                "stat takes one dump: gcdump diff a.dmp b.dmp compares two, gcdump fleet a.dmp b.dmp -o FOLDER makes tables of many",
            ),
            ("export x.dmp", "export: the format is missing: export FORMAT x.dmp, with one of heapsnapshot, gcdump, parquet, csv, ndjson"),
            (
                "object Lab.Program.Keep Lab.Program.Truth",
                "cannot read Lab.Program.Truth: the file does not exist; if it is an object, add the dump: object OBJECT … DUMP",
            ),
            (
                "export --format chrome x.dmp",
                "export: invalid value 'chrome' of --format: export writes heapsnapshot, gcdump, parquet, csv, ndjson",
            ),
            ("verifyobj x.dmp", "verifyobj: an argument for --object is missing"),
        ] {
            assert_eq!(line(typed).unwrap_err(), message, "{typed}");
        }
        assert_eq!(line("object --help").as_deref(), Ok("object --help"));
        assert_eq!(line("type Lab.Core").as_deref(), Ok("type Lab.Core"));
    }

    #[test]
    fn bare_words_apply_to_the_open_dump() {
        let open = |text: &str| {
            let args = std::iter::once("gcdump").chain(text.split_whitespace()).map(OsString::from).collect();
            match ordered(args, &command_line(), &|| Some("x.dmp".into())).unwrap() {
                Ordered::Line(words) => words.iter().skip(1).map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "),
                Ordered::Help(topic) => topic.into(),
            }
        };
        assert_eq!((open("stacks Main").as_str(), open("stat x.dmp").as_str()), ("stacks --method Main", "stat x.dmp"));
        assert_eq!(line("stacks Main").as_deref(), Ok("stacks Main"), "the name of a dump");
    }

    #[test]
    fn refused_names_are_not_suggested() {
        for name in sos::refused() {
            let near = format!("{name}x");
            assert!(
                known(near.as_ref(), &command_line()).is_some() || !line(&near).unwrap_err().contains(&format!("did you mean {name}?"))
            );
        }
        assert!(!line("xy").unwrap_err().contains("did you mean"));
    }

    #[test]
    fn unknown_commands_suggest_similar_ones() {
        assert!(line("stats x.dmp").unwrap_err().contains("did you mean stat?"));
        assert!(line("dumpheep x.dmp").unwrap_err().contains("did you mean dumpheap?"));
        assert!(line("frobnicate").unwrap_err().ends_with("no command 'frobnicate' (gcdump --help lists all)"));
        assert!(line("x.dmp frobnicate").is_err());
    }
}
