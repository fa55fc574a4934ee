//! Completion in the shells of this system: the scripts that `completions` prints, and the candidates that they
//! request.
//!
//! Type names come from a dump and file names from anywhere, so neither can be trusted. A shell inserts candidates into the command line. Therefore
//! each candidate is quoted, by the rules of the shell or by the shell itself, or omitted. [`is_inert`] determines the names that are omitted for all
//! shells; the module of each shell omits further names.

mod asked;
mod bash;
mod inert;
mod names;
mod plain;

use std::ffi::{OsStr, OsString};
use std::io::Write;

use anyhow::Result;
use clap::{ArgMatches, Command as Clap, FromArgMatches, ValueEnum};
use clap_complete::engine::{self, CompletionCandidate};

use super::cmd::completions::{Completions, Shell};
use super::command_line::command_line;
use super::exit::Exit;
use super::streams::Streams;
use super::words::dump_of;
use asked::{Asked, Offer};
pub use bash::{completed as completed_in_bash, words as words_of_bash};
use inert::is_inert;
pub(super) use inert::is_offered;
pub(super) use names::types;
pub use plain::in_powershell as completed_in_powershell;

/// Environment variable that a script sets to request candidates: the name of its shell.
const VARIABLE: &str = "GCDUMP_COMPLETE";
/// Environment variable with the index of the word to complete, set by the script for zsh.
const INDEX: &str = "GCDUMP_COMPLETE_INDEX";
/// Environment variable that scripts of earlier versions set. Such scripts get no candidates, because their shells insert candidates verbatim.
const FORMER: &str = "COMPLETE";
/// Maximum number of candidates.
const MOST: usize = 1000;

/// Prints the completion script of a shell.
pub(super) fn run(matches: &ArgMatches, streams: &mut Streams<'_>) -> Result<Exit> {
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

/// Answers a script that requests candidates. Returns whether there was a request.
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
        // A failure to write is ignored, because the shell no longer reads the answer.
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
    let (mut command, last) = (command_line(), before.len());
    let line: Vec<OsString> = before.iter().cloned().chain([OsString::new()]).chain(after).collect();
    names::complete_in(dump_of(&line, &command), line);
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

/// Whether a candidate may be offered. A candidate that begins with `-` must be an option, because a name would be taken for an option.
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

/// Whether the requesting shell reads UTF-8. Otherwise, the shell may take a character for other characters, including quotes.
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
