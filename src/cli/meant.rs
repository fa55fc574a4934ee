//! Corrects common mistakes on command lines: options in another spelling, option values without their option, a second dump.

use std::ffi::{OsStr, OsString};

use clap::Command as Clap;

use super::exit::UsageError;
use super::line::{DefaultDump, arguments, has_unknown_option, is_path, option, place_of_dump, takes_next};
use super::pick::could_be_dump;
use super::sos::{ALWAYS, Form};
use super::values::address;
use crate::base::did_you_mean;

/// Names that other tools use for options, with the gcdump option and in some cases its value. A name applies only to commands that have no option of
/// this name.
const SYNONYMS: &[(&[&str], &str, Option<&str>)] = &[
    (&["limit", "head", "count", "max-rows"], "top", None),
    (&["sort-by", "order-by", "order"], "sort", None),
    (&["group-by", "groupby"], "by", None),
    (&["filter", "class", "mt"], "type", None),
    (&["gen"], "generation", None),
    (&["min"], "min-size", None),
    (&["max"], "max-size", None),
    (&["offset", "start"], "skip", None),
    (&["addr", "address"], "object", None),
    (&["csv"], "format", Some("csv")),
    (&["ndjson", "jsonl"], "format", Some("ndjson")),
    (&["html"], "format", Some("html")),
];

/// Returns `args` with options in the spelling of the command `sub`: `--type` for `-Type` and `--TYPE`, `--top` for `--limit`. Flags for
/// default behavior are dropped.
pub(super) fn spelled(args: &[OsString], root: &Clap, sub: &Clap) -> Vec<OsString> {
    let mut out = Vec::with_capacity(args.len());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let text = arg.to_str().unwrap_or_default();
        if text == "--" {
            out.push(arg.clone());
            out.extend(args.by_ref().cloned());
            break;
        }
        let words = if text.starts_with('-') { option_spelled(text, root, sub) } else { None };
        let words = words.unwrap_or_else(|| vec![arg.clone()]);
        // The value of an option is copied unchanged, because it may look like an option.
        let has_value = words.len() == 1 && words.first().and_then(|w| option(w.to_str()?, root, Some(sub))).is_some_and(takes_next);
        out.extend(words);
        out.extend(args.by_ref().take(usize::from(has_value)).cloned());
    }
    out
}

/// Returns the option `text` in the spelling of `sub`; `None` if the option is unchanged or unknown.
fn option_spelled(text: &str, root: &Clap, sub: &Clap) -> Option<Vec<OsString>> {
    if option(text, root, Some(sub)).is_some() {
        return None;
    }
    if ALWAYS.iter().any(|(command, flags)| *command == sub.get_name() && flags.contains(&text)) {
        return Some(Vec::new());
    }
    let long = text.trim_start_matches('-');
    // A single letter is a short option, which has only one spelling.
    if long.len() < 2 || !long.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    let name = name.to_ascii_lowercase();
    let has = |name: &str| option(&format!("--{name}"), root, Some(sub)).is_some();
    let (name, fixed) = if has(&name) {
        (name.as_str(), None)
    } else {
        let synonym = SYNONYMS.iter().find(|(names, to, _)| names.contains(&&*name) && has(to))?;
        (synonym.1, synonym.2)
    };
    Some(match (fixed, value) {
        (Some(fixed), _) => vec![format!("--{name}").into(), fixed.into()],
        (None, Some(value)) => vec![format!("--{name}={value}").into()],
        (None, None) => vec![format!("--{name}").into()],
    })
}

/// Determines whether a bare word may be the value of an option.
type Fits = fn(&str) -> bool;

/// Options to which a bare word may belong. The first option that the command has and whose check accepts the word is used.
const OPTIONS: &[(&str, Fits, Form)] = &[
    ("object", is_address, Form::Same),
    ("at", is_address, Form::Same),
    ("thread", is_id, Form::Same),
    ("method", |_| true, Form::Same),
    ("like", |_| true, Form::Part),
    ("name", |_| true, Form::Part),
    ("dead", |_| true, Form::Same),
    ("only", |_| true, Form::Same),
    ("type", |_| true, Form::Same),
];

/// Whether a word looks like an address: it begins with `0x` or has at least 8 hexadecimal digits.
fn is_address(text: &str) -> bool {
    const BARE: usize = 8;
    address(text).is_ok() && (text.len() >= BARE || text.starts_with("0x"))
}

/// Whether a word is the id of a thread.
fn is_id(text: &str) -> bool {
    text.parse::<u64>().is_ok() || (text.starts_with("0x") && address(text).is_ok())
}

/// Adds the options that are missing from `args` of the command `sub`: the options that bare words belong to, and `--since` before an earlier dump.
/// `dump` was typed before the command.
///
/// # Errors
/// Fails on words that fit no option, on too many dumps, and on options without a value.
pub(super) fn meant(
    args: Vec<OsString>,
    (dump, default_dump): (&mut Option<OsString>, DefaultDump<'_>),
    root: &Clap,
    sub: &Clap,
) -> Result<Vec<OsString>, UsageError> {
    let is_plain = |arg: &OsString| *arg == "--" || *arg == "-h" || *arg == "--help";
    if args.iter().any(is_plain) {
        return Ok(args);
    }
    if has_unknown_option(&args, root, sub) {
        return args.iter().find_map(|arg| elsewhere(arg, root, sub)).map_or(Ok(args), Err);
    }
    let by_retained = |pair: &[OsString]| {
        let by = pair.first().and_then(|o| option(o.to_str()?, root, Some(sub))).filter(|o| o.get_long() == Some("sort"));
        let lacks = |by: &clap::Arg| {
            let columns = by.get_possible_values();
            !columns.is_empty() && !columns.iter().any(|v| v.matches("retained", true))
        };
        by.is_some_and(lacks) && pair.last().is_some_and(|value| value.eq_ignore_ascii_case("retained"))
    };
    if args.windows(2).any(by_retained) {
        let command = sub.get_name();
        let instead = "gcdump retained lists the objects that retain most, refs --retained those around one";
        return Err(UsageError(format!("{command} is not sorted by what objects retain; {instead}")));
    }
    let mut args = all_values(args, root, sub);
    needs_value(&args, (dump.is_some(), default_dump), root, sub)?;
    let mut positionals = sub.get_positionals();
    match (positionals.next(), positionals.next()) {
        (Some(first), None) if first.get_id() == "dump" => {}
        (Some(first), Some(_)) if place_of_dump(sub).is_some() && !first.get_possible_values().is_empty() => {
            return with_format(args, dump.as_ref(), first, root, sub);
        }
        _ => return Ok(args),
    }
    let (files, mut words): (Vec<usize>, Vec<usize>) =
        arguments(&args, root, Some(sub)).into_iter().partition(|i| args.get(*i).is_some_and(|a| is_path(a)));
    // If no argument is a file, the last word names a dump that does not exist. Opening this dump reports the error.
    if files.is_empty() && dump.is_none() && !words.is_empty() && default_dump().is_none() {
        words.pop();
    }
    let command = sub.get_name();
    let mut dumps: Vec<OsString> = dump.iter().cloned().chain(files.iter().filter_map(|i| args.get(*i).cloned())).collect();
    let mut since = Vec::new();
    if let ([_, _], true) = (dumps.as_slice(), option("--since", root, Some(sub)).is_some()) {
        let earlier = dumps.remove(0);
        if dump.take().is_none()
            && let Some(at) = files.first()
        {
            args.remove(*at);
            words.iter_mut().filter(|i| **i > *at).for_each(|i| *i = i.saturating_sub(1));
        }
        since.extend(["--since".into(), earlier]);
    } else if dumps.len() > 1 {
        let all = dumps.iter().map(|d| d.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let two = if dumps.len() == 2 { all.as_str() } else { "BEFORE AFTER" };
        let others = format!("gcdump diff {two} compares two, gcdump fleet {all} -o FOLDER makes tables of many");
        return Err(UsageError(format!("{command} takes one dump: {others}")));
    }
    let mut out = since;
    for (i, arg) in args.into_iter().enumerate() {
        if words.contains(&i) {
            let text = arg.to_string_lossy();
            let has = |name: &str| sub.get_arguments().any(|a| a.get_long() == Some(name));
            let Some((name, _, form)) = OPTIONS.iter().find(|(name, fits, _)| has(name) && fits(&text)) else {
                return Err(UsageError(format!("{command}: '{text}' is neither an option nor a dump (gcdump help {command})")));
            };
            out.push(format!("--{name}").into());
            out.push(form.of(arg));
        } else {
            out.push(arg);
        }
    }
    Ok(out)
}

/// Advice on options that no command has.
const LACKING: &[(&[&str], &str)] = &[
    (&["exclude", "not", "except"], "gcdump objects and stat leave types out with --where 'not type ~ \"System.*\"'"),
    (
        &["reverse", "desc", "descending", "asc", "ascending"],
        "--sort COLUMN lists amounts descending, all else ascending; COLUMN:asc or COLUMN:desc reverses the order",
    ),
    (
        &["regex", "regexp", "grep"],
        "a regular expression for the names of types is --type '/REGEX/'; --like and --method take patterns with * and ?",
    ),
    (&["pid", "process", "p"], "gcdump reads dumps, not running processes; dotnet-dump collect -p PID writes a dump"),
];

/// Returns the error for the unknown option `arg` of the command `sub`, with an alternative or the commands that have the option.
fn elsewhere(arg: &OsStr, root: &Clap, sub: &Clap) -> Option<UsageError> {
    const MOST: usize = 6;
    let text = arg.to_str()?;
    let text = text.split_once('=').map_or(text, |(name, _)| name);
    if !text.starts_with('-') || option(text, root, Some(sub)).is_some() {
        return None;
    }
    let command = sub.get_name();
    let long = text.trim_start_matches('-');
    if let Some((_, instead)) = LACKING.iter().find(|(names, _)| names.contains(&long)) {
        return Some(UsageError(format!("{command} has no {text}; {instead}")));
    }
    let others = root.get_subcommands().filter(|other| option(text, other, Some(other)).is_some());
    let others: Vec<&str> = others.map(Clap::get_name).collect();
    let listed = others.get(..MOST.min(others.len())).unwrap_or_default().join(", ");
    let more = if others.len() > MOST { ", …" } else { "" };
    (!others.is_empty()).then(|| UsageError(format!("{command} has no {text}; it is an option of {listed}{more} (gcdump help {command})")))
}

/// Expands the value `all` of an option with a list of names.
fn all_values(mut args: Vec<OsString>, root: &Clap, sub: &Clap) -> Vec<OsString> {
    let mut of = None;
    for arg in &mut args {
        let named = arg.to_str().and_then(|text| option(text, root, Some(sub))).filter(|o| takes_next(o));
        if let Some(before) = std::mem::replace(&mut of, named)
            && arg.eq_ignore_ascii_case("all")
        {
            let names: Vec<String> = before.get_possible_values().iter().map(|v| v.get_name().to_string()).collect();
            if before.get_value_delimiter() == Some(',') && !names.is_empty() && !names.iter().any(|n| n == "all") {
                *arg = names.join(",").into();
            }
        }
    }
    args
}

/// Refuses to take the dump as the value of an option that is missing its value.
fn needs_value(args: &[OsString], (has_dump, default_dump): (bool, DefaultDump<'_>), root: &Clap, sub: &Clap) -> Result<(), UsageError> {
    let of_pair = |pair: &[OsString]| {
        let [last, dump] = pair else { return None };
        let lacks = option(last.to_str()?, root, Some(sub)).filter(|o| takes_next(o))?.clone();
        (is_path(dump) && could_be_dump(dump.as_ref())).then(|| (last.clone(), lacks, dump.clone()))
    };
    let Some((last, lacks, dump)) = args.windows(2).find_map(of_pair) else { return Ok(()) };
    let value = lacks.get_value_names().unwrap_or_default().iter().map(|n| n.as_str()).collect::<Vec<_>>().join(" ");
    let names_file = ["FILE", "PATH", "DIR", "BEFORE", "OUT"].iter().any(|name| value.contains(name));
    let has_other = || default_dump().is_some_and(|other| other.as_os_str() != dump);
    if has_dump || !arguments(args, root, Some(sub)).is_empty() || (names_file && has_other()) {
        return Ok(());
    }
    let (command, option, dump) = (sub.get_name(), last.to_string_lossy(), dump.to_string_lossy());
    let value = if value.is_empty() { "VALUE".to_string() } else { value };
    Err(UsageError(format!("{command}: {option} needs a value: {command} {option} {value} {dump}")))
}

/// Returns the position of `--format` in `args`, its value, and the number of words that both take.
fn value_of_format(args: &[OsString]) -> Option<(usize, OsString, usize)> {
    args.iter().enumerate().find_map(|(at, arg)| match arg.to_str()? {
        "--format" | "-f" => Some((at, args.get(at.checked_add(1)?)?.clone(), 2)),
        text => Some((at, text.strip_prefix("--format=")?.into(), 1)),
    })
}

/// For commands whose first argument is a format: moves the value of `--format` or a later format there, and reports a missing format.
fn with_format(
    mut args: Vec<OsString>,
    dump: Option<&OsString>,
    format: &clap::Arg,
    root: &Clap,
    sub: &Clap,
) -> Result<Vec<OsString>, UsageError> {
    let values = format.get_possible_values();
    let is_format = |text: &OsStr| text.to_str().is_some_and(|text| values.iter().any(|v| v.matches(text, true)));
    let first = arguments(&args, root, Some(sub)).first().and_then(|i| args.get(*i));
    if first.is_some_and(|first| is_format(first)) {
        return Ok(args);
    }
    if let Some((at, value, words)) = value_of_format(&args) {
        if !is_format(&value) {
            let (command, value) = (sub.get_name(), value.to_string_lossy());
            let names: Vec<&str> = values.iter().map(|v| v.get_name()).collect();
            let hint = did_you_mean(&value.to_ascii_lowercase(), names.iter().copied());
            let names = names.join(", ");
            return Err(UsageError(format!("{command}: invalid value '{value}' of --format: {command} writes {names}{hint}")));
        }
        args.drain(at..at.saturating_add(words));
        args.insert(0, value);
        return Ok(args);
    }
    // The dump may precede the format, as it may precede every other argument.
    let late = arguments(&args, root, Some(sub)).into_iter().nth(1).filter(|at| args.get(*at).is_some_and(|word| is_format(word)));
    if let Some(at) = late {
        let value = args.remove(at);
        args.insert(0, value);
        return Ok(args);
    }
    let first = arguments(&args, root, Some(sub)).first().and_then(|i| args.get(*i));
    match first.filter(|first| is_path(first)).or(dump.filter(|_| first.is_none())) {
        None => Ok(args),
        Some(dump) => {
            let (command, dump) = (sub.get_name(), dump.to_string_lossy());
            let names = values.iter().map(|v| v.get_name()).collect::<Vec<_>>().join(", ");
            Err(UsageError(format!("{command}: the format is missing: {command} FORMAT {dump}, with one of {names}")))
        }
    }
}
