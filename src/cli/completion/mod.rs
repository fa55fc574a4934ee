//! Completion in the shells of this system: the scripts that `completions` prints, and the candidates that they ask for.
//!
//! Names of types are text of the dump, and names of files are anyone's. A shell takes a candidate as a part of the line, so each
//! candidate is quoted by the rules of the shell that asks, or by the shell itself, or left out: [`is_inert`] says for all shells which
//! names are left out, and the module of a shell what else.

mod bash;
mod names;
mod plain;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::sync::OnceLock;

use anyhow::Result;
use clap::{ArgMatches, Args, Command as Clap, FromArgMatches, ValueEnum};
use clap_complete::engine::{self, CompletionCandidate};
use unicode_width::UnicodeWidthChar;

use super::Streams;
use super::args::Config;
use super::command::{Entry, Example, Group, example};
use super::exit::Exit;
use super::registry::command_line;
use crate::output::is_hostile;
use crate::session::Dump;
pub use bash::{completed as completed_in_bash, words as words_of_bash};
pub(super) use names::types;
pub use plain::in_powershell as completed_in_powershell;

/// The variable by which a script asks the program for candidates: the name of its shell.
const VARIABLE: &str = "GCDUMP_COMPLETE";
/// The variable by which the script of zsh says which word is to be completed.
const INDEX: &str = "GCDUMP_COMPLETE_INDEX";
/// The variable of scripts of earlier editions, whose shells take candidates as they are.
const FORMER: &str = "COMPLETE";
/// Most candidates.
const MOST: usize = 1000;
/// Longest candidate in bytes.
const LONGEST: usize = 1024;

/// A command that reads no dump.
pub(super) const COMPLETIONS: Entry = Entry {
    name: "completions",
    group: Group::Program,
    examples: EXAMPLES,
    arguments: Completions::augment_args,
    run,
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
struct Completions {
    /// The shell.
    shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Nushell,
    Powershell,
    Zsh,
}

fn run(matches: &ArgMatches, _: &Config, _: &[Dump], streams: &mut Streams<'_>) -> Result<Exit> {
    let Completions { shell } = Completions::from_arg_matches(matches)?;
    let script = match shell {
        Shell::Bash => bash::SCRIPT,
        Shell::Elvish => plain::ELVISH,
        Shell::Fish => plain::FISH,
        Shell::Powershell => plain::POWERSHELL,
        Shell::Zsh => plain::ZSH,
        Shell::Nushell => {
            let mut script = Vec::new();
            clap_complete::generate(clap_complete_nushell::Nushell, &mut command_line(), "gcdump", &mut script);
            streams.out.write_all(&script)?;
            return Ok(Exit::Ok);
        }
    };
    streams.out.write_all(script.as_bytes())?;
    Ok(Exit::Ok)
}

/// A candidate, and its description.
struct Offer {
    value: String,
    help: Option<String>,
}

/// Prints candidates for a shell.
type Printer = Box<dyn Fn(&[Offer]) -> String>;

/// A word that is to be completed.
struct Asked {
    /// The words of the line up to this one.
    words: Vec<OsString>,
    /// The words after it.
    after: Vec<OsString>,
    /// Prints the candidates for the shell that asks.
    print: Printer,
}

/// Words of the line that is being completed, with an empty one for the word that is being typed.
static LINE: OnceLock<Vec<OsString>> = OnceLock::new();

/// Answers a script that asks for candidates. Returns whether one did.
pub fn complete(args: impl IntoIterator<Item = OsString>) -> bool {
    let mut args = args.into_iter().skip(1);
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty());
    let (shell, former) = (set(VARIABLE), set(FORMER));
    if (shell.is_none() && former.is_none()) || args.next().is_none_or(|arg| arg != "--") {
        return false;
    }
    let shell = shell.and_then(|name| Shell::from_str(name.to_str()?, false).ok());
    let asked = shell.and_then(|shell| asked(shell, args.collect()));
    if let Some(asked) = asked {
        // A shell that does not listen any more needs no answer.
        let _ = std::io::stdout().write_all(answer(asked).as_bytes());
    }
    true
}

fn asked(shell: Shell, given: Vec<OsString>) -> Option<Asked> {
    match shell {
        Shell::Bash => bash::asked(&given),
        Shell::Elvish => Some(Asked { words: given, after: Vec::new(), print: Box::new(plain::lines) }),
        Shell::Fish => Some(Asked { words: plain::fish_words(given), after: Vec::new(), print: Box::new(plain::with_help) }),
        Shell::Powershell => plain::asked_by_powershell(),
        Shell::Zsh => {
            let at: usize = std::env::var(INDEX).ok()?.parse().ok()?;
            let (words, after) = given.split_at_checked(at.checked_add(1)?)?;
            Some(Asked { words: words.into(), after: after.into(), print: Box::new(plain::zsh) })
        }
        Shell::Nushell => None,
    }
}

fn answer(asked: Asked) -> String {
    let Asked { words, after, print } = asked;
    let Some((typed, before)) = words.split_last() else { return String::new() };
    let typed = typed.clone();
    let _ = LINE.set(before.iter().cloned().chain([OsString::new()]).chain(after).collect());
    let (mut command, last) = (command_line(), before.len());
    let Ok(found) = engine::complete(&mut command, words, last, std::env::current_dir().ok().as_deref()) else { return String::new() };
    let only_ascii = !locale_is_utf8();
    let fits = |value: &str| is_inert(value) && (value.is_ascii() || !only_ascii) && may_begin_so(value, &typed, &command);
    let offer = |candidate: &CompletionCandidate| {
        let value = candidate.get_value().to_str().filter(|v| fits(v))?.to_string();
        let help = candidate.get_help().and_then(|help| help.to_string().lines().next().map(Into::into));
        Some(Offer { value, help })
    };
    print(&found.iter().filter_map(offer).take(MOST).collect::<Vec<_>>())
}

/// Whether a name may be offered at all: it is short, has a width on the screen throughout, and keeps a terminal as it is. Names from
/// elsewhere that could be an option are left out as well.
pub(super) fn is_offered(name: &str) -> bool {
    is_inert(name) && !name.starts_with('-')
}

fn is_inert(name: &str) -> bool {
    let seen = |c: char| c == ' ' || !(is_hostile(c) || c.is_whitespace() || c.width().is_none_or(|width| width == 0));
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(seen)
}

/// Whether a candidate that begins with `-` is an option, and not a name that would become one.
fn may_begin_so(value: &str, typed: &OsStr, command: &Clap) -> bool {
    if !value.starts_with('-') {
        return true;
    }
    let option = typed.to_str().and_then(|typed| typed.starts_with("--").then(|| typed.split_inclusive('=').next())?);
    if let Some(option) = option.filter(|option| option.ends_with('=')) {
        return value.starts_with(option);
    }
    std::iter::once(command).chain(command.get_subcommands()).flat_map(Clap::get_arguments).any(|arg| {
        let long = value.strip_prefix("--").is_some_and(|v| arg.get_long_and_visible_aliases().is_some_and(|all| all.contains(&v)));
        let mut short = value.chars().skip(1);
        let letter = short.next().filter(|_| short.next().is_none());
        long || letter.is_some_and(|c| arg.get_short_and_visible_aliases().is_some_and(|all| all.contains(&c)))
    })
}

/// Whether the shell that asks reads UTF-8. Where it does not, a character may be taken for others, quotes among them.
fn locale_is_utf8() -> bool {
    if cfg!(windows) {
        return true;
    }
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
    let locale = locale.to_string_lossy().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_never_offered() {
        for name in ["Lab.Node", "List`1[]", "A<B, C>", "a;b", "it's", "Größe", "数", "~x", "$(x)", " a "] {
            assert!(is_offered(name), "{name:?}");
        }
        let long = "x".repeat(LONGEST + 1);
        for name in ["", "-x", "--output=y", "a\nb", "a\tb", "a\u{1b}[2J", "a\u{9b}b", "\u{202e}x", "a\u{200b}", "\u{2028}", "a\0", &long] {
            assert!(!is_offered(name), "{name:?}");
        }
        for name in ["a\u{e0041}b", "a\u{fe0f}", "a\u{a0}b", "a\u{3000}b", "a\u{2066}b", "a\u{7f}"] {
            assert!(!is_offered(name), "{name:?}");
        }
    }

    #[test]
    fn only_options_begin_with_a_hyphen() {
        let mut command = command_line();
        command.build();
        let may = |value: &str, typed: &str| may_begin_so(value, OsStr::new(typed), &command);
        assert!(may("--top", "--t") && may("-o", "-") && may("--by=generation", "--by=g") && may("x", ""));
        assert!(
            !may("--output=x", "") && !may("-x.dmp", "") && !may("--output=x", "--type=") && !may("--no-such", "") && !may("-ox", "-o")
        );
    }
}
