//! Translates command lines of SOS (`!DumpHeap -stat -type Lab`) to gcdump. [`COMMANDS`] defines the translation of each command and flag. Anything
//! without a counterpart is refused with a sentence that gives the alternative. A flag is accepted without effect only if it describes the default
//! behavior.

mod habits;
mod table;

use std::ffi::{OsStr, OsString};

pub use habits::{ALWAYS, HABITS};
pub use table::COMMANDS;

use super::exit::UsageError;
use super::values::address;

/// A command of SOS.
#[derive(Clone, Copy, Debug)]
pub struct Sos {
    /// Name and short forms of the command, in lower case.
    pub names: &'static [&'static str],
    /// Translation of the command.
    pub to: To,
    /// Translation if flags select objects and `-stat` is not among the flags.
    pub(super) lists: Option<&'static [&'static str]>,
    /// Translation of its argument.
    pub(super) argument: Argument,
    /// Its flags.
    pub flags: &'static [Flag],
}

/// Translation of a command of SOS.
#[derive(Clone, Copy, Debug)]
pub enum To {
    /// These words of a gcdump command line.
    Words(&'static [&'static str]),
    /// No counterpart: the alternative or the reason.
    Refused(&'static str),
}

/// A flag of a command of SOS.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its spellings with one dash, in lower case.
    pub names: &'static [&'static str],
    /// Translation of the flag.
    pub to: FlagTo,
}

/// Translation of a flag of SOS.
#[derive(Clone, Copy, Debug)]
pub enum FlagTo {
    /// These words of a gcdump command line.
    Words(&'static [&'static str]),
    /// This option, with the next argument as its value.
    Value(&'static str, Form),
    /// A different gcdump command.
    Command(&'static [&'static str]),
    /// The command only counts objects and does not list them (`-stat`).
    Counts,
    /// Nothing: the flag describes the default behavior.
    Always,
    /// No counterpart: the alternative or the reason.
    Refused(&'static str),
}

impl Flag {
    /// Returns the translation in Markdown.
    pub fn here(&self) -> String {
        match self.to {
            FlagTo::Words(words) | FlagTo::Command(words) => format!("`{}`", words.join(" ")),
            FlagTo::Value(option, _) => format!("`{option}`"),
            FlagTo::Counts => "counts only".into(),
            FlagTo::Always => "always on".into(),
            FlagTo::Refused(why) => format!("refused: {why}"),
        }
    }
}

/// Conversion of a value.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// Unchanged.
    Same,
    /// Part of a type name, converted to a glob.
    Part,
    /// A method table. SOS takes a hexadecimal number without `0x`, so `0x` is added.
    Table,
    /// A generation: `gen0`, or its number.
    Generation,
}

/// Translation of the first argument that is not a flag.
#[derive(Clone, Copy, Debug)]
pub(super) enum Argument {
    /// An unchanged argument.
    Same,
    /// The value of an option.
    Value(&'static str, Form),
    /// The value of an option that the command requires.
    Needed(&'static str, Form),
    /// A type after its module: `Lab.dll Lab.Node`, `Lab.dll!Lab.Node`.
    OfModule,
    /// The first address of a range; the end address, which is exclusive, may follow.
    Range,
}

/// Returns the name of a command in lower case, without `!` and the extension that defines it.
pub(super) fn bare(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let Some(bare) = lower.strip_prefix('!') else { return lower };
    let bare = ["sos.", "ext."].iter().find_map(|extension| bare.strip_prefix(extension)).unwrap_or(bare);
    bare.to_string()
}

/// Whether `word` only leads to the command after it: the extension `sos`, or `~*e` (for each thread), since gcdump's commands are about all threads.
pub(super) fn is_prefix(word: &str) -> bool {
    ["sos", "~*e"].contains(&&*bare(word))
}

/// Finds the command of SOS or another tool with this name: in any case, with or without `!`.
pub(super) fn find(name: &str) -> Option<&'static Sos> {
    let name = bare(name);
    if switches_thread(&name) {
        return Some(&table::SWITCH);
    }
    COMMANDS.iter().chain(HABITS).find(|c| c.names.contains(&&*name))
}

/// Whether the command makes another thread the current one: `~3s`.
fn switches_thread(name: &str) -> bool {
    let number = name.strip_prefix('~').and_then(|rest| rest.strip_suffix('s'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether an argument is the flag for output in DML (`!DumpObj /d ADDRESS`), which SOS writes into the links that it prints.
fn is_dml(text: &str) -> bool {
    ["/d", "-d"].iter().any(|flag| text.eq_ignore_ascii_case(flag))
}

/// Returns the names that are translated.
pub(super) fn answered() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().chain(HABITS).filter(|c| matches!(c.to, To::Words(_))).flat_map(|c| c.names.iter().copied())
}

/// Returns the names that are refused.
#[cfg(test)]
pub(super) fn refused() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().chain(HABITS).filter(|c| matches!(c.to, To::Refused(_))).flat_map(|c| c.names.iter().copied())
}

/// Returns the SOS names of the command `name`.
pub(super) fn names_of(name: &str) -> impl Iterator<Item = &'static str> {
    let leads = move |c: &&Sos| matches!(c.to, To::Words([first, ..]) if *first == name);
    COMMANDS.iter().filter(leads).flat_map(|c| c.names.iter().copied()).filter(move |sos| *sos != name)
}

/// A command line translated to gcdump.
pub(super) struct Translated {
    /// The command, followed by options and arguments without the dump.
    pub(super) words: Vec<OsString>,
    /// Arguments that are files.
    pub(super) files: Vec<OsString>,
}

/// Translates `args`, which follow the name `given` of `command`. `is_file` determines which arguments are dumps, `takes_value` which gcdump
/// options take a value.
///
/// # Errors
/// Fails on anything without a counterpart.
pub(super) fn translate(
    command: &Sos,
    given: &str,
    args: impl IntoIterator<Item = OsString>,
    (is_file, takes_value): (impl Fn(&OsStr) -> bool, impl Fn(&str) -> bool),
) -> Result<Translated, UsageError> {
    let refused = |what: &str, why: &str| UsageError(format!("{what}: {why}"));
    let mut start = match command.to {
        To::Words(words) => words,
        To::Refused(why) => return Err(refused(given, why)),
    };
    let (mut selects, mut counts) = (false, false);
    let (mut words, mut files, mut arguments) = (Vec::<OsString>::new(), Vec::new(), Vec::<OsString>::new());
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let text = arg.to_str().unwrap_or_default();
        if is_dml(text) {
            continue;
        }
        let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-')).unwrap_or_default().to_ascii_lowercase();
        match command.flags.iter().find(|f| f.names.iter().any(|n| n.trim_start_matches('-') == name)) {
            Some(flag) => match flag.to {
                FlagTo::Words(more) => {
                    selects = true;
                    words.extend(more.iter().map(OsString::from));
                }
                FlagTo::Command(other) => start = other,
                FlagTo::Counts => counts = true,
                FlagTo::Always => {}
                FlagTo::Refused(why) => return Err(refused(&format!("{given} {text}"), why)),
                FlagTo::Value(option, form) => {
                    selects = true;
                    let value = args.next().ok_or_else(|| refused(&format!("{given} {text}"), "its value is missing"))?;
                    words.extend([OsString::from(option), form.of(value)]);
                }
            },
            // Refuses an unknown flag with one dash and several letters, because clap would read the letters as short options.
            None if !text.starts_with("--") && name.len() > 1 && name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                let known: Vec<&str> = command.flags.iter().flat_map(|f| f.names).copied().collect();
                let known = if known.is_empty() { "it takes no flags here".into() } else { format!("it accepts {}", known.join(" ")) };
                return Err(refused(&format!("{given} {text}"), &format!("unknown flag; {known} (gcdump {given} --help)")));
            }
            None if text.starts_with('-') => {
                let value = if takes_value(text) { args.next() } else { None };
                words.extend(std::iter::once(arg).chain(value));
            }
            None if is_file(&arg) => files.push(arg),
            None => arguments.push(arg),
        }
    }
    selects |= matches!(command.argument, Argument::Range) && !arguments.is_empty();
    if let Some(lists) = command.lists.filter(|_| selects && !counts && start_is(command, start)) {
        start = lists;
    }
    let mut arguments = arguments.into_iter();
    match command.argument {
        Argument::Same => {}
        Argument::Needed(option, _) if arguments.len() == 0 && !words.iter().any(|w| w == "--help" || w == "-h") => {
            return Err(refused(given, &format!("an argument for {option} is missing")));
        }
        Argument::Value(option, form) | Argument::Needed(option, form) => {
            words.extend(arguments.next().into_iter().flat_map(|value| [option.into(), form.of(value)]))
        }
        Argument::Range => {
            let bound = |value: OsString, sign: &str| {
                let text = value.to_string_lossy();
                let at = address(&text).map_err(|why| refused(given, &why))?;
                Ok(format!("address {sign} {at}"))
            };
            let bounds = [">=", "<"].into_iter().zip(arguments.by_ref().take(2));
            let bounds: Vec<String> = bounds.map(|(sign, value)| bound(value, sign)).collect::<Result<_, UsageError>>()?;
            if !bounds.is_empty() {
                words.extend(["--where".into(), bounds.join(" and ").into()]);
            }
        }
        Argument::OfModule => words.extend(arguments.next_back().map(|name| {
            let text = name.to_string_lossy();
            text.rsplit_once('!').map_or_else(|| name.clone(), |(_, name)| name.into())
        })),
    }
    // The module of a type is dropped, because the answer shows the module.
    if !matches!(command.argument, Argument::OfModule) {
        words.extend(arguments);
    }
    Ok(Translated { words: start.iter().map(OsString::from).chain(words).collect(), files })
}

/// Whether `start` is the translation of `command` itself, rather than a translation that a flag has selected.
fn start_is(command: &Sos, start: &[&str]) -> bool {
    matches!(command.to, To::Words(words) if words == start)
}

impl Form {
    /// Converts `value` to this form.
    pub(super) fn of(self, value: OsString) -> OsString {
        let Some(text) = value.to_str() else { return value };
        match self {
            Form::Part if !text.contains(['*', '?']) => format!("*{text}*").into(),
            Form::Table if !text.starts_with("0x") && address(text).is_ok() => format!("0x{}", text.replace('`', "")).into(),
            Form::Generation => match text.to_ascii_lowercase().as_str() {
                "0" | "1" | "2" => format!("gen{text}").into(),
                "large" => "loh".into(),
                "pinned" => "poh".into(),
                "foh" => "frozen".into(),
                other => other.into(),
            },
            Form::Same | Form::Part | Form::Table => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> Result<String, String> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        let is_file = |a: &OsStr| a.to_str().is_some_and(|a| a.ends_with(".dmp"));
        let translated =
            translate(find(name).unwrap(), name, words.map(OsString::from), (is_file, |option: &str| matches!(option, "--by" | "-o")))
                .map_err(|e| e.0)?;
        let words: Vec<String> = translated.words.iter().chain(&translated.files).map(|w| w.to_str().unwrap().to_string()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn lines_of_sos_are_translated() {
        for (sos, here) in [
            ("eeheap -gc x.dmp", "heap x.dmp"),
            ("eeheap -loader x.dmp", "memory x.dmp"),
            ("maddress x.dmp", "memory --ranges x.dmp"),
            ("maddress -summary x.dmp", "memory x.dmp"),
            ("gchandles -type Pinned -stat x.dmp", "handles --type Pinned --stat x.dmp"),
            ("verifyobj 7f31 x.dmp", "verify --object 7f31 x.dmp"),
            ("dumpvc 7f31`12345678 7f32 x.dmp", "object --as 0x7f3112345678 7f32 x.dmp"),
            ("dumpobj -nofields x.dmp 10", "object --no-fields 10 x.dmp"),
            ("gcroot -nostacks 10 x.dmp", "path --stacks none 10 x.dmp"),
            ("GCRoot -all 10 x.dmp", "path --all-roots 10 x.dmp"),
            ("dumpasync -type Lab -fields x.dmp", "async --type *Lab* x.dmp"),
            ("dumpasync -mt 7f31 --coalesce x.dmp", "async --type 0x7f31 --merge x.dmp"),
            ("dumpasync -addr 7f31 x.dmp", "async --object 7f31 x.dmp"),
            ("!DumpHeap -stat x.dmp", "stat x.dmp"),
            ("dumpheap x.dmp", "stat x.dmp"),
            ("dumpheap -type String x.dmp", "objects --type *String* x.dmp"),
            ("dumpheap -mt 7f31`12345678 x.dmp", "objects --type 0x7f3112345678 x.dmp"),
            ("dumpheap -stat -type Lab x.dmp", "stat --type *Lab* x.dmp"),
            ("dumpheap -gen 2 -min 100 x.dmp", "objects --generation gen2 --min-size 100 x.dmp"),
            ("dumpheap --by heap x.dmp", "stat --by heap x.dmp"),
            ("dumpgen loh x.dmp", "stat --generation loh x.dmp"),
            ("clrstack -p x.dmp", "stacks --framework --arguments x.dmp"),
            ("clrstack -a x.dmp", "stacks --framework --arguments --locals x.dmp"),
            ("clrstack -l x.dmp", "stacks --framework --locals x.dmp"),
            ("name2ee Lab.dll!Lab.Node x.dmp", "type Lab.Node x.dmp"),
            ("name2ee * Lab.Node x.dmp", "type Lab.Node x.dmp"),
            // Requests that a server received, and requests that the process sent.
            ("dumprequests x.dmp", "requests --incoming x.dmp"),
            ("dumphttp x.dmp", "requests --outgoing x.dmp"),
            ("eeheap -gc --json -o y x.dmp", "heap --json -o y x.dmp"),
            // The form of the links that SOS prints.
            ("!DumpObj /d 00007fb9e1c05d70 x.dmp", "object 00007fb9e1c05d70 x.dmp"),
            ("dumpheap /d -mt 7f31 x.dmp", "objects --type 0x7f31 x.dmp"),
            ("DumpMT -D 7f31 x.dmp", "type 7f31 x.dmp"),
        ] {
            assert_eq!(translated(sos).as_deref(), Ok(here), "{sos}");
        }
    }

    #[test]
    fn flags_without_a_counterpart_are_refused() {
        assert!(translated("maddress -orderBySize x.dmp").unwrap_err().starts_with("maddress -orderBySize: "));
        assert!(translated("dumpil 10").unwrap_err().starts_with("dumpil: "));
        assert!(translated("dumpheap -foo").unwrap_err().contains("unknown flag; it accepts -stat"));
        assert!(translated("dumpheap -type").unwrap_err().contains("its value is missing"));
        assert!(translated("~3s").unwrap_err().contains("all threads"));
    }

    #[test]
    fn names_are_unique_and_in_lower_case() {
        let mut names: Vec<&str> = COMMANDS.iter().chain(HABITS).flat_map(|c| c.names).copied().collect();
        assert!(names.iter().all(|n| *n == n.to_ascii_lowercase()));
        names.sort_unstable();
        assert!(names.windows(2).all(|w| w[0] != w[1]));
    }
}
