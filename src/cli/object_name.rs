//! Objects on the command line: addresses, names of locations that refer to an object, or `-` to read a list from standard input.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::command::At;
use super::exit::UsageError;
use super::line::{STANDARD_INPUT, is_path};
use super::values::address;
use crate::base::Addr;
use crate::session::{Error, TypePattern};

/// An object, identified by an address inside it or by a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ObjectName {
    /// An address.
    At(Addr),
    /// A static field with fields and indices after it (`Lab.Program.Keep._items[3].Name`), or a type with one object.
    Named(String),
    /// The objects on standard input: the first address of each line, or the whole line as a name.
    Listed,
}

/// Several objects.
#[derive(Clone, Debug)]
pub(super) struct ObjectNames(pub(super) Vec<ObjectName>);

/// Separates several objects in one argument. Names do not contain this separator.
const SEPARATOR: &str = "\n";

/// Maximum numbers of objects and bytes to read from standard input.
const MOST: usize = 1 << 20;
const MOST_BYTES: u64 = 1 << 28;

/// Joins several words for objects into one clap argument.
pub(super) fn one_argument(words: &[OsString]) -> OsString {
    words.join(OsStr::new(SEPARATOR))
}

/// Parses addresses and names joined by [`one_argument`].
pub(super) fn object_names(text: &str) -> Result<ObjectNames, String> {
    text.split(SEPARATOR).map(object_name).collect::<Result<_, _>>().map(ObjectNames)
}

/// Reads the objects listed in `input`, such as the answer of `objects` in any format.
pub(super) fn listed(input: impl Read) -> Result<Vec<ObjectName>> {
    let mut all = Vec::new();
    for line in BufReader::new(input.take(MOST_BYTES)).lines() {
        let line = line.context("reading objects from standard input")?;
        // In a JSON record, only the field `address` is the object, because other fields may contain addresses of other things.
        if line.trim_start().starts_with('{') {
            let record: serde_json::Value = serde_json::from_str(&line).context("reading objects from standard input")?;
            all.extend(record.get("address").and_then(serde_json::Value::as_str).and_then(|at| address(at).ok()).map(ObjectName::At));
            continue;
        }
        let found = line.match_indices("0x").find_map(|(at, _)| {
            let digits = line.get(at.saturating_add(2)..)?;
            let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
            address(&format!("0x{}", digits.get(..end)?)).ok()
        });
        match (found, line.trim()) {
            (Some(at), _) => all.push(ObjectName::At(at)),
            // Skips titles and lines of several words, such as notes around a list.
            (None, name) if name == "address" || name.contains([' ', ',']) => {}
            (None, name) => all.extend(object_name(name).ok().filter(|name| *name != ObjectName::Listed)),
        }
        if all.len() > MOST {
            return Err(UsageError(format!("standard input lists more than {MOST} objects")).into());
        }
    }
    if all.is_empty() {
        Err(UsageError("standard input lists no objects: expected one address on each line".into()).into())
    } else {
        Ok(all)
    }
}

/// Parses an address or a name.
pub(super) fn object_name(text: &str) -> Result<ObjectName, String> {
    if text == STANDARD_INPUT {
        return Ok(ObjectName::Listed);
    }
    address(text).map(ObjectName::At).or_else(|why| {
        let starts_name = |c: char| c.is_alphabetic() || c == '_' || c == '<';
        let is_name = text.starts_with(starts_name)
            && !text.contains(['/', '\\', '*', '?'])
            && !text.contains(char::is_control)
            && !text.starts_with("0x");
        if is_name { Ok(ObjectName::Named(text.into())) } else { Err(format!("{why}; a static field is Lab.Program.Keep")) }
    })
}

/// Splits the arguments of `command` into objects and a dump. With `has_types`, the only argument is a dump.
///
/// # Errors
/// Returns [`UsageError`] for any other arguments.
pub(super) fn object_and_dump(command: &str, what: &[OsString], has_types: bool) -> Result<(Vec<ObjectName>, Option<PathBuf>)> {
    let missing = |dump: &str| {
        let forms = format!("{command} ADDRESS {dump}, or {command} --type TYPE {dump}");
        UsageError(format!("{command}: the address is missing: {forms}"))
    };
    let (at, dump) = match (what, has_types) {
        ([], false) => return Err(missing("DUMP").into()),
        ([dump], false) if is_path(dump) && !matches!(object_name(&dump.to_string_lossy()), Ok(ObjectName::At(_) | ObjectName::Listed)) => {
            return Err(missing(&dump.to_string_lossy()).into());
        }
        ([at], false) => (Some(at), None),
        ([at, dump], false) => (Some(at), Some(dump)),
        ([], true) => (None, None),
        ([dump], true) => (None, Some(dump)),
        _ => return Err(UsageError(format!("{command}: expected an address and a dump, or --type and a dump")).into()),
    };
    let objects = at.map(|at| object_names(&at.to_string_lossy())).transpose().map_err(UsageError)?;
    Ok((objects.map_or_else(Vec::new, |objects| objects.0), dump.map(PathBuf::from)))
}

impl At<'_> {
    /// Returns the address of an object in the dump at this position.
    ///
    /// # Errors
    /// [`Error::Nothing`] if nothing has that name, [`Error::Value`] if the name does not lead to an object.
    pub(super) fn address_of(&self, index: usize, name: &ObjectName) -> Result<Addr> {
        let text = match name {
            ObjectName::At(address) => return Ok(*address),
            ObjectName::Named(text) => text,
            ObjectName::Listed => return Err(unlisted().into()),
        };
        if self.dump_at(index)?.snapshot().is_some() {
            return Err(without_names(text).into());
        }
        let heap = self.heap_at(index)?;
        match heap.runtime().value_named(text) {
            Ok(value) if value.is_reference() => Ok(value.object()?.address()),
            Ok(value) => Ok(value.address()),
            Err(Error::Nothing(why)) => {
                let mut found = heap.objects_of(text)?.map(|object| object.address()).take(2);
                match (found.next(), found.next()) {
                    (Some(one), None) => Ok(one),
                    (Some(_), Some(_)) => {
                        let one_of = "choose one of them (gcdump objects --type), or take all where --type is an option";
                        Err(Error::Query(format!("several objects are of the type {text}: {one_of}")).into())
                    }
                    _ => Err(Error::Nothing(format!("{why}, and no object is of a type {text}")).into()),
                }
            }
            Err(why) => Err(why.into()),
        }
    }

    /// Returns the object that `name` identifies, or a pattern for the type that it names.
    ///
    /// # Errors
    /// As [`At::address_of`]; an unknown name is taken for a type name.
    pub(super) fn object_or_type(&self, name: &ObjectName) -> Result<(Option<Addr>, Vec<TypePattern>)> {
        if let ObjectName::Named(text) = name
            && self.dump()?.snapshot().is_some()
        {
            return Err(without_names(text).into());
        }
        if let ObjectName::Named(text) = name
            && matches!(self.runtime()?.value_named(text), Err(Error::Nothing(_)))
        {
            return Ok((None, vec![TypePattern::Name(text.clone())]));
        }
        Ok((Some(self.address_of(0, name)?), Vec::new()))
    }

    /// Returns the address of a root: the given address, or the address of a static field.
    ///
    /// # Errors
    /// As [`At::address_of`].
    pub(super) fn root_of(&self, name: &ObjectName) -> Result<Addr> {
        match name {
            ObjectName::At(address) => Ok(*address),
            ObjectName::Named(text) if self.dump()?.snapshot().is_some() => Err(without_names(text).into()),
            ObjectName::Named(text) => Ok(self.runtime()?.value_named(text)?.address()),
            ObjectName::Listed => Err(unlisted().into()),
        }
    }
}

/// Returns the error for the name of an object in a `.gcdump` file.
fn without_names(text: &str) -> UsageError {
    let instead = "gcdump retained --by static lists static fields, gcdump retained --type NAME objects of a type";
    UsageError(format!("'{text}' cannot be looked up: in a .gcdump file, objects have only addresses; {instead}"))
}

fn unlisted() -> UsageError {
    UsageError("`-` is standard input: this command reads no list of objects from there".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_read_from_any_list() {
        let read = |text: &str| listed(text.as_bytes()).map_err(|e| e.to_string());
        let at = |list: &[u64]| Ok(list.iter().map(|at| ObjectName::At(Addr(*at))).collect::<Vec<_>>());
        assert_eq!(read("address,type\n0x7f10,Lab.Dog\n0x7f20,\"Lab.A,B\"\n"), at(&[0x7f10, 0x7f20]));
        assert_eq!(read("{\"base\":\"0x8\"}\n{\"method_table\":\"0x8\",\"address\":\"0x7f10\"}\r\n\n"), at(&[0x7f10]));
        assert_eq!(read("ADDRESS  TYPE\n 0x7f10  Lab.Dog\n0xzz\n"), at(&[0x7f10]));
        assert_eq!(read("Lab.Program.Keep[3]"), Ok(vec![ObjectName::Named("Lab.Program.Keep[3]".into())]));
        assert!(read("").is_err() && read("address\n").is_err() && read("?!\n").is_err());
    }

    #[test]
    fn several_words_are_joined_into_one_argument() {
        let words = ["0x7f10", "Lab.Program.Keep", "-"].map(OsString::from);
        let joined = one_argument(&words);
        let parsed = object_names(&joined.to_string_lossy()).map(|names| names.0);
        assert_eq!(parsed, Ok(vec![ObjectName::At(Addr(0x7f10)), ObjectName::Named("Lab.Program.Keep".into()), ObjectName::Listed]));
        assert!(object_names("0x7f10\n?").is_err());
    }
}
