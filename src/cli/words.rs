//! Brings command lines into the order that clap expects: the command, then what it is about, then the dump. People type the dump
//! first, or the address after it, or a command of SOS.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Command as Clap;

use super::exit::UsageError;
use super::sos;
use super::values::address;
use crate::base::did_you_mean;

/// A command line in order.
pub(super) enum Ordered {
    /// For clap.
    Line(Vec<OsString>),
    /// Help on a topic: see [`super::help`].
    Help(&'static str),
}

/// Orders `args`, the first of which is the program.
///
/// # Errors
/// Commands that do not exist, and what SOS has and gcdump has not.
pub(super) fn ordered(args: Vec<OsString>, root: &Clap) -> Result<Ordered, UsageError> {
    let mut args = args.into_iter();
    let program = args.next().unwrap_or_default();
    let mut rest: Vec<OsString> = args.collect();
    let Some((name, dump)) = take_command(&mut rest, root) else {
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
            let told = sos::translate(
                known,
                &name.to_string_lossy(),
                rest,
                (is_path, |option: &str| root.get_subcommands().any(|c| takes_value(option, root, Some(c)))),
            )?;
            let mut words = told.words.into_iter();
            let command = words.next().unwrap_or_default().to_string_lossy().into_owned();
            (command, words.chain(told.files).collect())
        }
    };
    if command == "help" {
        return Ok(Ordered::Help("sos"));
    }
    // There is one simulation: its name may be left out.
    if command == "simulate"
        && let Some(at) = rest.iter().position(|a| a == "collect")
    {
        rest.remove(at);
    }
    // The shell is asked for by an option as well: gcdump crash.dmp --shell
    if command == "info" && dump.is_some() && rest.iter().any(|a| a == "--shell") {
        rest.retain(|a| a != "--shell");
        command = "shell".into();
    }
    let sub = root.find_subcommand(&command);
    let rest = match sub {
        Some(sub) => {
            let rest = dump_in_place(rest, dump, root, sub);
            fitting(&rest, root, sub)?;
            rest
        }
        None => rest,
    };
    Ok(Ordered::Line([program, command.into()].into_iter().chain(rest).collect()))
}

/// Takes the name of the command out of `args`, and the dump where it precedes the command. `None` if there are only options.
fn take_command(args: &mut Vec<OsString>, root: &Clap) -> Option<(OsString, Option<OsString>)> {
    let mut places = arguments(args, root, None).into_iter();
    let at = places.next()?;
    let first = args.get(at).cloned()?;
    if known(&first, root).is_some() {
        args.remove(at);
    } else if is_path(&first) {
        // gcdump crash.dmp stat
        let name = places.next().filter(|i| *i < args.len()).map_or_else(|| "info".into(), |i| args.remove(i));
        return Some((name, Some(args.remove(at))));
    }
    Some((first, None))
}

/// The dump on the command line `args`, which may be unfinished. The first word is the program.
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
    // A dump that other arguments follow has its own place, if all before it are there. Others come last.
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
    if name == "help" {
        return Some(Known::Help);
    }
    // Commands that SOS has under the same name take its flags.
    if let Some(sos) = sos::find(name) {
        return Some(Known::Sos(sos));
    }
    root.find_subcommand(name.to_ascii_lowercase()).map(|c| Known::Own(c.get_name().into()))
}

fn unknown(name: &OsStr, root: &Clap) -> UsageError {
    let name = name.to_string_lossy();
    let wanted = name.trim_start_matches('!').to_ascii_lowercase();
    let own = root.get_subcommands().map(Clap::get_name);
    let all: BTreeSet<&str> = own.chain(sos::COMMANDS.iter().flat_map(|c| c.names.iter().copied())).collect();
    if wanted == "version" {
        return UsageError("there is no command 'version'; gcdump --version tells it".into());
    }
    let hint = did_you_mean(&wanted, all.into_iter());
    UsageError(format!("there is no command '{name}'{hint} (gcdump --help lists all)"))
}

/// Extensions of dumps.
const EXTENSIONS: [&str; 8] = ["dmp", "mdmp", "core", "dump", "zst", "gz", "img", "bin"];

/// Whether an argument is meant as a file: it exists, or looks like one.
pub(super) fn is_path(arg: &OsStr) -> bool {
    let path = Path::new(arg);
    let text = arg.to_string_lossy();
    let looks = || {
        let extension = path.extension().map(|x| x.to_string_lossy().to_ascii_lowercase());
        text.contains(['/', std::path::MAIN_SEPARATOR]) || extension.is_some_and(|x| EXTENSIONS.contains(&&*x))
    };
    !text.starts_with('-') && (looks() || path.is_file())
}

/// The option `text`, of the program or of the command `sub`.
fn option<'c>(text: &str, root: &'c Clap, sub: Option<&'c Clap>) -> Option<&'c clap::Arg> {
    root.get_arguments().chain(sub.into_iter().flat_map(Clap::get_arguments)).find(|o| match text.strip_prefix("--") {
        Some(long) => o.get_long() == Some(long) || o.get_all_aliases().is_some_and(|all| all.contains(&long)),
        None => text.strip_prefix('-').is_some_and(|short| o.get_short().is_some_and(|s| short.chars().eq([s]))),
    })
}

/// Whether the next argument is the value of the option `text`, of the program or of the command `sub`.
fn takes_value(text: &str, root: &Clap, sub: Option<&Clap>) -> bool {
    option(text, root, sub).is_some_and(takes_next)
}

/// Whether there is an option that nobody knows: what follows it may be its value.
fn has_unknown_option(args: &[OsString], root: &Clap, sub: &Clap) -> bool {
    let long = args.iter().take_while(|a| *a != "--").filter_map(|a| a.to_str()).filter(|a| a.starts_with("--"));
    long.filter(|a| !a.contains('=')).any(|a| option(a, root, Some(sub)).is_none())
}

/// Whether the argument that follows an option is its value.
pub(super) fn takes_next(option: &clap::Arg) -> bool {
    option.get_action().takes_values() && option.get_num_args().is_none_or(|n| n.min_values() > 0)
}

/// Indices of the arguments that are neither options nor their values.
fn arguments(args: &[OsString], root: &Clap, sub: Option<&Clap>) -> Vec<usize> {
    let mut found = Vec::new();
    let mut words = args.iter().enumerate();
    while let Some((i, arg)) = words.next() {
        let text = arg.to_string_lossy();
        if text == "--" {
            found.extend(words.by_ref().map(|(i, _)| i));
        } else if text.starts_with('-') && text.len() > 1 {
            if takes_value(&text, root, sub) {
                words.next();
            }
        } else {
            found.push(i);
        }
    }
    found
}

/// Index of the dump among the positional arguments of a command, and whether others follow it: comparing commands take the earlier dump
/// first, and commands that write a file take the dump before it.
fn place_of_dump(sub: &Clap) -> Option<(usize, bool)> {
    let is_dump = |p: &clap::Arg| p.get_id() == "before" || p.get_id() == "dump";
    let place = sub.get_positionals().position(is_dump)?;
    Some((place, place.saturating_add(1) < sub.get_positionals().count()))
}

/// Whether an argument of the command `sub` is meant as a dump: a path that is not an address, if `sub` takes one.
fn is_dump_for(sub: &Clap, word: &OsStr) -> bool {
    let takes_address = sub.get_positionals().next().is_some_and(|p| p.get_id() == "address");
    is_path(word) && !(takes_address && address(&word.to_string_lossy()).is_ok())
}

/// Puts the dump where the command expects it: `dump`, which stood before the command, or one that stands before an address.
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
    // A subcommand within the command comes first.
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

/// Checks that `args` name what the command is about, and nothing more: clap would take the dump for an address, and an address for
/// the dump.
fn fitting(args: &[OsString], root: &Clap, sub: &Clap) -> Result<(), UsageError> {
    let asks_help = args.iter().take_while(|a| *a != "--").any(|a| ["-h", "--help"].iter().any(|help| a == help));
    let words: Vec<&OsString> = arguments(args, root, Some(sub)).into_iter().filter_map(|i| args.get(i)).collect();
    let first = sub.get_positionals().next().filter(|_| !asks_help);
    let command = sub.get_name();
    match (first.map(clap::Arg::get_id).map(clap::Id::as_str), words.as_slice()) {
        (Some("address"), []) => Err(UsageError(format!("{command}: the address is missing: {command} ADDRESS DUMP"))),
        (Some("address"), [dump]) if is_dump_for(sub, dump) => {
            let dump = dump.to_string_lossy();
            Err(UsageError(format!("{command}: the address is missing: {command} ADDRESS {dump}")))
        }
        (Some("name"), []) => Err(UsageError(format!("{command}: the name of the type is missing: {command} TYPE DUMP"))),
        // Names of types have dots: what is no file may be one.
        (Some("name"), [dump]) if Path::new(dump).is_file() => {
            let dump = dump.to_string_lossy();
            Err(UsageError(format!("{command}: the name of the type is missing: {command} TYPE {dump}")))
        }
        (Some("dump"), [_, _, ..]) if sub.get_positionals().nth(1).is_none() && !has_unknown_option(args, root, sub) => {
            let extra = words.iter().find(|word| !is_path(word)).or(words.first());
            let extra = extra.map(|word| word.to_string_lossy()).unwrap_or_default();
            Err(UsageError(format!("{command}: unexpected '{extra}': it takes options and a dump (gcdump help {command})")))
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
        match ordered(args, &command_line()).map_err(|e| e.0)? {
            Ordered::Help(topic) => Ok(format!("help {topic}")),
            Ordered::Line(words) => Ok(words.iter().skip(1).map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")),
        }
    }

    #[test]
    fn dumps_and_commands_stand_anywhere() {
        for (typed, ordered) in [
            ("x.dmp", "info x.dmp"),
            ("x.dmp stat", "stat x.dmp"),
            ("x.dmp --json stat", "stat --json x.dmp"),
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
        ] {
            assert_eq!(line(typed).as_deref(), Ok(ordered), "{typed}");
        }
    }

    #[test]
    fn the_dump_of_an_unfinished_line_is_the_argument_in_its_place() {
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
    fn what_is_missing_or_too_much_is_named() {
        for (typed, message) in [
            ("object x.dmp", "object: the address is missing: object ADDRESS x.dmp"),
            ("x.dmp object --count 3", "object: the address is missing: object ADDRESS x.dmp"),
            ("do x.dmp", "object: the address is missing: object ADDRESS x.dmp"),
            ("listnearobj x.dmp", "near: the address is missing: near ADDRESS x.dmp"),
            ("where", "where: the address is missing: where ADDRESS DUMP"),
            ("type", "type: the name of the type is missing: type TYPE DUMP"),
            ("stat 7f31 x.dmp", "stat: unexpected '7f31': it takes options and a dump (gcdump help stat)"),
            ("a.dmp stat b.dmp", "stat: unexpected 'b.dmp': it takes options and a dump (gcdump help stat)"),
            ("verifyobj x.dmp", "verifyobj: an argument is missing, which --object takes here"),
        ] {
            assert_eq!(line(typed).unwrap_err(), message, "{typed}");
        }
        assert_eq!(line("object --help").as_deref(), Ok("object --help"));
        assert_eq!(line("type Lab.Core").as_deref(), Ok("type Lab.Core"));
    }

    #[test]
    fn unknown_commands_lead_to_near_ones() {
        assert!(line("stats x.dmp").unwrap_err().contains("did you mean stat?"));
        assert!(line("dumpheep x.dmp").unwrap_err().contains("did you mean dumpheap?"));
        assert!(line("frobnicate").unwrap_err().ends_with("no command 'frobnicate' (gcdump --help lists all)"));
        assert!(line("x.dmp frobnicate").is_err());
    }
}
