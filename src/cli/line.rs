//! Splits command lines into options, values of options, and other arguments, using clap's definition. Recognizes arguments that are files.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Command as Clap;

use super::values::address;

/// Extensions of dumps.
const EXTENSIONS: [&str; 8] = ["dmp", "mdmp", "core", "dump", "zst", "gz", "img", "bin"];

/// The argument for reading the dump from standard input.
pub(super) const STANDARD_INPUT: &str = "-";

/// The word for the dump that a shell has open.
pub(super) const OPEN: &str = ".";

/// Returns the dump of commands that omit it, if there is one. It is only called if a line seems to omit the dump, because it may read a folder.
pub(super) type DefaultDump<'d> = &'d dyn Fn() -> Option<PathBuf>;

/// Whether an argument is a regular expression between slashes rather than a folder.
fn is_expression(text: &str) -> bool {
    text.len() > 2 && text.starts_with('/') && text.ends_with('/') && !Path::new(text).exists()
}

/// Whether an argument is the usual name of a core: `core.1234`, `core.dotnet.1234`.
fn is_core(text: &str) -> bool {
    let id = text.strip_prefix("core.").and_then(|rest| rest.rsplit('.').next());
    id.is_some_and(|id| !id.is_empty() && id.chars().all(|c| c.is_ascii_digit()))
}

/// Whether an argument is probably a file: it exists or looks like a path.
pub(super) fn is_path(arg: &OsStr) -> bool {
    let path = Path::new(arg);
    let text = arg.to_string_lossy();
    let looks = || {
        let extension = path.extension().map(|x| x.to_string_lossy().to_ascii_lowercase());
        text.contains(['/', std::path::MAIN_SEPARATOR]) || extension.is_some_and(|x| EXTENSIONS.contains(&&*x)) || is_core(&text)
    };
    text == STANDARD_INPUT || (!text.starts_with('-') && !is_expression(&text) && (looks() || path.metadata().is_ok_and(|m| !m.is_dir())))
}

/// Finds the option `text` of the program or of the command `sub`.
pub(super) fn option<'c>(text: &str, root: &'c Clap, sub: Option<&'c Clap>) -> Option<&'c clap::Arg> {
    root.get_arguments().chain(sub.into_iter().flat_map(Clap::get_arguments)).find(|o| match text.strip_prefix("--") {
        Some(long) => o.get_long() == Some(long) || o.get_all_aliases().is_some_and(|all| all.contains(&long)),
        None => text.strip_prefix('-').is_some_and(|short| o.get_short().is_some_and(|s| short.chars().eq([s]))),
    })
}

/// Whether the next argument is the value of the option `text`, of the program or of the command `sub`.
pub(super) fn takes_value(text: &str, root: &Clap, sub: Option<&Clap>) -> bool {
    option(text, root, sub).is_some_and(takes_next)
}

/// Whether `args` contain an unknown option. The argument after an unknown option may be the value of this option.
pub(super) fn has_unknown_option(args: &[OsString], root: &Clap, sub: &Clap) -> bool {
    let options = args.iter().take_while(|a| *a != "--").filter_map(|a| a.to_str()).filter(|a| a.starts_with('-') && a.len() > 1);
    // A short option may be followed by its value without a space.
    let short = |text: &str| text.chars().nth(1).filter(|c| *c != '-').map(|c| format!("-{c}"));
    let names = options.filter(|a| !a.contains('=')).map(|a| short(a).unwrap_or_else(|| a.to_string()));
    let helps = ["-h", "--help", "-V", "--version"];
    names.filter(|name| !helps.contains(&&**name)).any(|name| option(&name, root, Some(sub)).is_none())
}

/// Whether the argument that follows an option is its value.
pub(super) fn takes_next(option: &clap::Arg) -> bool {
    option.get_action().takes_values() && option.get_num_args().is_none_or(|n| n.min_values() > 0)
}

/// Returns the indices of the arguments that are neither options nor values of options.
pub(super) fn arguments(args: &[OsString], root: &Clap, sub: Option<&Clap>) -> Vec<usize> {
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

/// Returns the index of the dump among the positional arguments of a command, and whether other arguments follow the dump. Commands that compare
/// dumps take the earlier dump first; commands that write a file take the dump before the file.
pub(super) fn place_of_dump(sub: &Clap) -> Option<(usize, bool)> {
    let is_dump = |p: &clap::Arg| p.get_id() == "before" || p.get_id() == "dump";
    let place = sub.get_positionals().position(is_dump)?;
    Some((place, place.saturating_add(1) < sub.get_positionals().count()))
}

/// Whether the command `sub` has an argument for the dump. `path` and `refs` have one argument for an object and the dump.
pub(super) fn takes_dump(sub: &Clap) -> bool {
    place_of_dump(sub).is_some() || sub.get_positionals().any(|p| p.get_id() == "what")
}

/// Whether an argument of the command `sub` is probably a dump: a path and, if `sub` takes addresses, not an address.
pub(super) fn is_dump_for(sub: &Clap, word: &OsStr) -> bool {
    let takes_address = sub.get_positionals().next().is_some_and(|p| p.get_id() == "address");
    is_path(word) && !(takes_address && address(&word.to_string_lossy()).is_ok())
}
