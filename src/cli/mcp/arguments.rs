//! Arguments of tools: derives their schema from clap's definition of the command line, and converts their values to a command line.

use std::any::TypeId;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Map, Value, json};

use super::fold::Fold;
use super::kind::{Kind, plain, switch, whole};
use super::rpc::{beginning, cut};
use super::tools::{Does, NEVER, Rows, Tool};
use crate::base::nearest;

/// Maximum number of dumps that a tool compares with the first.
const COMPARED: u64 = 7;
/// Maximum number of values of a list argument.
const VALUES: usize = 64;
/// Default size limit of an answer in bytes.
pub(super) const USUAL_BYTES: usize = 8000;
/// Minimum and maximum of the size limit in bytes.
const LEAST_BYTES: u64 = 1000;
pub(super) const MOST_BYTES: u64 = 100_000;
/// Name of the argument that sets the size limit.
const BYTES: &str = "max_bytes";
/// Maximum characters of an argument's description in the list of tools.
const DESCRIPTION: usize = 110;
/// Description of the dump of a tool.
const DUMP: &str = "Path, as dumps lists it; not needed if there is one";
/// Names that assistants use for a dump, and for the limit on rows.
const DUMP_NAMES: [&str; 6] = ["dump", "dumppath", "dumpfile", "path", "file", "filename"];
const ROWS_NAMES: [&str; 4] = ["limit", "n", "max", "maxresults"];
/// Names that assistants use for an address.
const ADDRESS_NAMES: [&str; 4] = ["addr", "object", "objectaddress", "obj"];

/// An argument of a tool.
struct Argument {
    arg: Arg,
    /// Name as assistants write it.
    name: String,
    kind: Kind,
    /// Whether the argument takes several values.
    list: bool,
    rows: Option<&'static Rows>,
    /// For a flag that is on by default: the arguments that turn the flag off.
    on: Option<&'static [&'static str]>,
    /// Conflicting arguments, by their names on the command line.
    conflicts: Vec<String>,
    /// Whether the argument is shown in the list of tools.
    listed: bool,
}

/// The arguments of a tool.
pub(super) struct Arguments {
    tool: &'static Tool,
    list: Vec<Argument>,
}

/// A call translated to a command line. The server may still reduce the row limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line {
    /// Options except the row limits.
    options: Vec<OsString>,
    positional: Vec<OsString>,
    /// The options that limit rows, with their limits.
    rows: Vec<(&'static str, u64)>,
    /// An option that could limit rows but was not given.
    spare: Option<&'static str>,
    /// A flag that makes the answer smaller, if it is off.
    fold: Option<Fold>,
    /// The dumps as given; the first is `None` if omitted.
    pub(super) dumps: Vec<Option<String>>,
    /// Maximum size of the answer in bytes.
    pub(super) bytes: usize,
    /// Options of a command line that only the server takes.
    pub(super) ignored: Vec<&'static str>,
}

impl Line {
    /// Returns the largest of the row limits.
    pub(super) fn most_rows(&self) -> Option<u64> {
        self.rows.iter().map(|row| row.1).max()
    }

    /// Returns the line with smaller row limits: at most a quarter of the largest limit, or [`FEW`] if rows were unlimited. Returns `None` if every
    /// limit is already 1.
    pub(super) fn shortened(&self) -> Option<Line> {
        if let Some(option) = self.spare {
            return Some(Line { rows: vec![(option, FEW)], spare: None, ..self.clone() });
        }
        let most = self.most_rows().filter(|rows| *rows > 1)?;
        let rows = self.rows.iter().map(|(option, n)| (*option, (*n).min(most / 4).max(1))).collect();
        Some(Line { rows, ..self.clone() })
    }

    /// Returns the line with the flag that makes the answer smaller, if the tool has one that is off.
    pub(super) fn folded(&self) -> Option<Line> {
        let fold = self.fold.clone()?;
        let rows = self.rows.iter().filter(|(option, _)| fold.allows(option)).copied().collect();
        Some(Line { options: fold.over(&self.options), rows, spare: None, fold: None, ..self.clone() })
    }

    /// Shortens the argument values that occur in `text`, an error message, to the length that [`cut`] allows.
    pub(super) fn repeated_in(&self, text: String) -> String {
        let dumps = self.dumps.iter().flatten().map(String::as_str);
        let words = self.options.iter().chain(&self.positional).filter_map(|word| word.to_str());
        let values = words.map(|word| word.strip_prefix("--").and_then(|option| option.split_once('=')).map_or(word, |(_, value)| value));
        dumps.chain(values).fold(text, |text, value| match cut(value) {
            Cow::Borrowed(_) => text,
            Cow::Owned(part) => text.replace(value, &part),
        })
    }

    /// Returns the runtime that the call names.
    pub(super) fn runtime(&self) -> Option<usize> {
        self.options.iter().find_map(|option| option.to_str()?.strip_prefix("--runtime=")?.parse().ok())
    }

    /// Returns the words of the command line.
    pub(super) fn words(&self, command: &str, dumps: &[OsString]) -> Vec<OsString> {
        let rows = self.rows.iter().map(|(option, n)| format!("--{option}={n}").into());
        let head = ["gcdump", command, "--format=json"].map(OsString::from);
        let tail = std::iter::once("--".into()).chain(self.positional.iter().cloned()).chain(dumps.iter().cloned());
        head.into_iter().chain(self.options.iter().cloned()).chain(rows).chain(tail).collect()
    }
}

/// The option that limits rows in most commands.
const TOP: &str = "top";
/// Row limit for an answer that is too large without a limit.
const FEW: u64 = 200;

/// The argument that selects a runtime. Every tool that reads a dump has this argument, because a process may have several runtimes.
const RUNTIME: &str = "runtime";

/// Returns the name of an argument on the command line.
fn long(arg: &Arg) -> &str {
    arg.get_long().unwrap_or(arg.get_id().as_str())
}

/// Returns a name as assistants write it.
fn written(name: &str) -> String {
    name.replace('-', "_")
}

/// Arguments that name an object. A tool accepts only one object.
const OF_ONE: [&str; 2] = ["what", "object"];

/// Whether an argument names an object.
fn is_object(name: &str) -> bool {
    OF_ONE.contains(&name) || name == "address"
}

/// Whether an argument names a file or folder, or prints help. Tools do not have such arguments; a tool takes a dump in a separate argument.
fn names_file(arg: &Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<PathBuf>() || ["help", "version"].contains(&long(arg))
}

impl Arguments {
    pub(super) fn of(tool: &'static Tool) -> Arguments {
        let Some(entry) = tool.entry() else { return Arguments { tool, list: Vec::new() } };
        // Includes the global options, because some options of the command conflict with them.
        let command = entry.command();
        let named = |name: &str| command.get_arguments().find(|a| long(a) == name);
        let argument = |arg: &Arg, listed: bool| {
            let name = long(arg);
            Argument {
                // The commands `path` and `refs` take the address and the dump as one argument, `what`. A tool has a separate argument for the dump.
                name: if name == "what" { "address".into() } else { written(name) },
                kind: if is_object(name) { Kind::Address } else { Kind::of(arg) },
                list: matches!(arg.get_action(), ArgAction::Append) && !OF_ONE.contains(&name),
                rows: tool.rows.iter().find(|rows| rows.option == name),
                on: tool.on.filter(|(flag, _)| *flag == name).map(|(_, unless)| unless),
                conflicts: command.get_arg_conflicts_with(arg).iter().map(|a| long(a).into()).collect(),
                arg: arg.clone(),
                listed,
            }
        };
        let first = tool.arguments.iter().chain(&[RUNTIME]).filter_map(|name| Some(argument(named(name)?, true)));
        let has = |arg: &Arg| tool.arguments.contains(&long(arg)) || NEVER.contains(&long(arg));
        let is_own = |arg: &&Arg| !arg.is_global_set() && !arg.is_hide_set() && !has(arg) && !names_file(arg);
        let rest = command.get_arguments().filter(is_own).map(|arg| argument(arg, false));
        Arguments { tool, list: first.chain(rest).collect() }
    }

    /// Whether the tool takes one dump, which may be omitted.
    fn takes_dump(&self) -> bool {
        matches!(self.tool.does, Does::Command(_))
    }

    /// Returns the JSON schema of the most common arguments, or of all arguments if `all`.
    pub(super) fn schema(&self, all: bool) -> Value {
        let mut properties = Map::new();
        if self.takes_dump() {
            properties.insert("dump".into(), json!({ "type": "string", "description": DUMP }));
        }
        if matches!(self.tool.does, Does::More | Does::Help) {
            properties.insert("command".into(), json!({ "type": "string" }));
        }
        if self.tool.does == Does::More {
            properties.insert("dump".into(), json!({ "type": "string" }));
            properties.insert("arguments".into(), json!({ "type": "object" }));
        }
        for argument in self.list.iter().filter(|argument| all || argument.listed) {
            properties.insert(argument.name.clone(), argument.schema(all));
        }
        if self.tool.does != Does::Help {
            properties.insert(BYTES.into(), json!({ "type": "integer" }));
        }
        let mut schema = json!({ "type": "object", "properties": properties });
        let mut required: Vec<String> = self.tool.required.iter().map(|name| written(name)).collect();
        if matches!(self.tool.does, Does::More | Does::Help) {
            required.push("command".into());
        }
        if !required.is_empty() {
            put(&mut schema, "required", required.into());
        }
        let examples: Vec<Value> = self.tool.examples.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
        if !examples.is_empty() {
            put(&mut schema, "examples", examples.into());
        }
        schema
    }

    /// Finds the argument that `name` denotes, in any accepted spelling, and returns its name in the schema.
    fn named(&self, name: &str) -> Option<&str> {
        let spelled = plain(name);
        let is = |argument: &&Argument| {
            let own = plain(&argument.name);
            let aliases = argument.arg.get_all_aliases().unwrap_or_default();
            own == spelled || plain(long(&argument.arg)) == spelled || aliases.iter().any(|alias| plain(alias) == spelled)
        };
        let plural = |argument: &&Argument| plain(&argument.name).trim_end_matches('s') == spelled.trim_end_matches('s');
        let short = |argument: &&Argument| argument.arg.get_short().is_some_and(|short| name.chars().eq([short]));
        let rows = |argument: &&Argument| {
            ROWS_NAMES.contains(&spelled.as_str()) && (argument.rows.is_some() || ["top", "count"].contains(&argument.name.as_str()))
        };
        let address = |argument: &&Argument| argument.name == "address" && ADDRESS_NAMES.contains(&spelled.as_str());
        let found = |is: &dyn Fn(&&Argument) -> bool| self.list.iter().find(is).map(|argument| argument.name.as_str());
        let dump = (self.takes_dump() && DUMP_NAMES.contains(&spelled.as_str())).then_some("dump");
        let bytes = (spelled == plain(BYTES)).then_some(BYTES);
        found(&is)
            .or(bytes)
            .or(dump)
            .or_else(|| found(&plural))
            .or_else(|| found(&short))
            .or_else(|| found(&rows))
            .or_else(|| found(&address))
    }

    /// Returns `values` with the argument names corrected and nulls removed.
    ///
    /// # Errors
    /// A sentence about the first name that is not an argument of the tool.
    pub(super) fn spelled(&self, values: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let given = values.iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, value)| Ok((self.named(name).ok_or_else(|| self.unknown(name))?.to_string(), value.clone()))).collect()
    }

    /// Returns the command line for a call.
    ///
    /// # Errors
    /// A sentence about the first argument that does not fit the schema.
    pub(super) fn line(&self, values: &Map<String, Value>) -> Result<Line, String> {
        let rows = self.list.iter().filter_map(|a| a.rows).map(|rows| (rows.option, rows.usual)).collect();
        let mut line = Line { rows, bytes: USUAL_BYTES, ..Line::default() };
        let mut dump = None;
        let values = self.spelled(values)?;
        for (name, value) in &values {
            let wrong = |why: String| format!("{}: {name}: {why}", self.tool.name);
            match self.list.iter().find(|a| a.name == *name) {
                Some(argument) => argument.add(value, &mut line).map_err(wrong)?,
                None if name == BYTES => {
                    let bytes = whole(value).ok_or_else(|| wrong("expected a whole number".into()))?;
                    line.bytes = usize::try_from(bytes.clamp(LEAST_BYTES, MOST_BYTES)).unwrap_or(USUAL_BYTES);
                }
                None => dump = Some(Kind::Text.word(value).map_err(wrong)?),
            }
        }
        let given = |name: &str| values.contains_key(name);
        if let Some(lacking) = self.tool.required.iter().find(|name| !given(&written(name))) {
            return Err(format!("{}: {} is missing", self.tool.name, written(lacking)));
        }
        for argument in self.list.iter().filter(|a| !given(&a.name)) {
            if argument.on.is_some_and(|unless| !unless.iter().any(|name| given(&written(name)))) {
                line.options.push(argument.option());
            }
        }
        let fold = self.list.iter().find(|a| a.on.is_some()).filter(|a| !line.options.contains(&a.option()));
        line.fold = fold.map(|a| Fold { flag: a.option(), excludes: a.conflicts.clone() });
        // Removes default row limits that conflict with an option of the call.
        let hinders = |option: &str| self.list.iter().any(|a| given(&a.name) && a.conflicts.iter().any(|c| c == option));
        line.rows.retain(|(option, _)| given(&written(option)) || !hinders(option));
        if line.rows.is_empty() && self.list.iter().any(|a| a.name == TOP && a.rows.is_none() && !given(TOP)) && !hinders(TOP) {
            line.spare = Some(TOP);
        }
        if self.takes_dump() {
            line.dumps.insert(0, dump);
        }
        Ok(line)
    }

    fn unknown(&self, name: &str) -> String {
        let name = &*cut(name);
        let known = || self.list.iter().map(|a| a.name.as_str()).chain(self.takes_dump().then_some("dump")).chain([BYTES]);
        let near = nearest(name, known(), name.len() / 2).map(|n| format!("; did you mean {n}?")).unwrap_or_default();
        let all: Vec<&str> = known().collect();
        format!("{} has no argument '{name}'{near} (it takes {})", self.tool.name, all.join(", "))
    }

    /// Converts a parsed command line to arguments of the tool. Returns `None` if it has an option that the tool does not have.
    pub(super) fn of_matches(&self, command: &clap::Command, matches: &ArgMatches) -> Option<Map<String, Value>> {
        let mut values = Map::new();
        for id in command.get_arguments().map(|arg| arg.get_id().as_str()) {
            if matches.try_contains_id(id).is_err() || matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let Some(argument) = self.list.iter().find(|a| a.arg.get_id() == id) else {
                if OPENING.contains(&id) {
                    continue;
                }
                return None;
            };
            let mut words = matches.get_raw(id).into_iter().flatten().filter_map(|word| word.to_str()).map(|word| argument.value(word));
            let value = match argument.kind {
                Kind::Flag => Value::Bool(true),
                _ if argument.list => words.collect::<Vec<_>>().into(),
                _ => words.next()?,
            };
            values.insert(argument.name.clone(), value);
        }
        Some(values)
    }
}

/// Options of a command line that affect how the dump is opened. They are ignored, because the server has already opened the dump.
const OPENING: [&str; 9] = ["dump", "no_local_files", "modules", "symbols", "sysroot", "overlay", "index", "format", "json"];

/// Sets a field of a JSON object.
pub(super) fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.into(), value);
    }
}

impl Argument {
    fn option(&self) -> OsString {
        format!("--{}", self.arg.get_long().unwrap_or_default()).into()
    }

    /// Formats the option with a value as one word, because values may begin with '-'.
    fn with(&self, value: &str) -> OsString {
        format!("--{}={value}", self.arg.get_long().unwrap_or_default()).into()
    }

    fn is_dump(&self) -> bool {
        self.arg.get_value_names().is_some_and(|names| names.iter().any(|n| ["BEFORE", "AFTER"].contains(&n.as_str())))
    }

    /// Converts `word` of a command line to JSON.
    fn value(&self, word: &str) -> Value {
        match self.kind {
            Kind::Whole | Kind::Number => serde_json::from_str(word).unwrap_or_else(|_| word.into()),
            _ => word.into(),
        }
    }

    /// Returns the schema of the argument, with its complete description or only the beginning.
    fn schema(&self, whole: bool) -> Value {
        let mut schema = self.kind.schema();
        let mut about = help(&self.arg);
        if let (Some(rows), Some(fields)) = (self.rows, schema.as_object_mut()) {
            fields.insert("maximum".into(), rows.most.into());
            fields.insert("default".into(), rows.usual.into());
            // The limits stated for the command line do not apply here.
            about = about.split(" [default").next().unwrap_or_default().replace(", 0 for all", "");
        } else if let Some(unless) = self.on {
            let unless: Vec<String> = unless.iter().map(|name| written(name)).collect();
            about.push_str(&format!(" On unless false, or one of {} is given.", unless.join(", ")));
        } else if let Some(default) = self.default() {
            put(&mut schema, "default", default);
        }
        if self.list {
            schema = json!({ "type": "array", "items": schema });
            if self.is_dump() {
                put(&mut schema, "maxItems", COMPARED.into());
            }
        }
        if self.kind == Kind::Address {
            about = "Address of an object, or any address within it; or a static field that refers to it".into();
        }
        if !whole {
            if self.name == RUNTIME {
                return schema;
            }
            about = short(&about).into_owned();
        }
        put(&mut schema, "description", about.into());
        schema
    }

    /// Returns the value that applies if the argument is omitted.
    fn default(&self) -> Option<Value> {
        // If omitted, the server's `--runtime` applies.
        if self.name == RUNTIME {
            return None;
        }
        let text = self.arg.get_default_values().first()?.to_str()?;
        match self.kind {
            Kind::Flag => None,
            Kind::Whole | Kind::Number => serde_json::from_str(text).ok(),
            _ if self.arg.is_hide_default_value_set() => None,
            _ => Some(text.into()),
        }
    }

    /// Adds the argument with this `value` to `line`.
    fn add(&self, value: &Value, line: &mut Line) -> Result<(), String> {
        if self.kind == Kind::Flag {
            if switch(value)? {
                line.options.push(self.option());
            }
            return Ok(());
        }
        if let Some(rows) = self.rows {
            let n = whole(value).ok_or_else(|| format!("expected a whole number from 1 to {}", rows.most))?;
            // On the command line, 0 means all.
            let n = if n == 0 { rows.most } else { n.min(rows.most) };
            line.rows.iter_mut().filter(|row| row.0 == rows.option).for_each(|row| row.1 = n);
            return Ok(());
        }
        let words = match (self.list, value) {
            (true, Value::Array(values)) if values.is_empty() => return Err("expected at least one".into()),
            (true, Value::Array(values)) if values.len() > VALUES => {
                return Err(format!("expected at most {VALUES}, not {}", values.len()));
            }
            (true, Value::Array(values)) => values.iter().map(|v| self.kind.word(v)).collect::<Result<Vec<_>, _>>()?,
            // A single value and a list of one value are interchangeable.
            (true, value) => vec![self.kind.word(value)?],
            (false, Value::Array(values)) if values.len() == 1 => {
                values.iter().map(|v| self.kind.word(v)).collect::<Result<Vec<_>, _>>()?
            }
            (false, value) => vec![self.kind.word(value)?],
        };
        if self.is_dump() {
            if u64::try_from(words.len()).is_ok_and(|n| n > COMPARED) {
                return Err(format!("at most {COMPARED} dumps"));
            }
            // The dump of an option such as `--since` stays an option and is also listed among the dumps.
            if self.arg.get_long().is_some() {
                line.options.extend(words.iter().map(|word| self.with(word)));
            }
            // The earlier dump is placed first and the list of later dumps last, because JSON arguments come in any order.
            let later = self.list;
            let at = if later { line.dumps.len() } else { 0 };
            line.dumps.splice(at..at, words.into_iter().map(Some));
            return Ok(());
        }
        for word in words {
            match self.arg.get_long() {
                Some(_) => line.options.push(self.with(&word)),
                None => line.positional.push(word.into()),
            }
        }
        Ok(())
    }
}

/// Returns the first sentence of a description, shortened if necessary.
fn short(about: &str) -> Cow<'_, str> {
    let sentence = about.split("\n\n").next().unwrap_or_default();
    let sentence = sentence.find(". ").and_then(|end| sentence.get(..end)).unwrap_or(sentence);
    beginning(sentence.trim_end_matches('.'), DESCRIPTION)
}

/// Returns the help of an argument, with options as assistants write them.
fn help(arg: &Arg) -> String {
    let text = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    options_written(&text.replace(" (repeatable)", ""))
}

/// Rewrites options in `text`, such as `--min-size` to `min_size`.
pub(super) fn options_written(text: &str) -> String {
    let mut parts = text.split("--");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(part.len());
        let (option, rest) = part.split_at_checked(end).unwrap_or((part, ""));
        out.push_str(&written(option));
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tools::{self, MORE, TOOLS};
    use super::*;

    fn line(tool: &str, values: &str) -> Result<String, String> {
        let arguments = Arguments::of(tools::find(tool).unwrap());
        let values: Map<String, Value> = serde_json::from_str(values).unwrap();
        let line = arguments.line(&values)?;
        let words = line.words(tool, &[]);
        let mut text = words.iter().map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        text.push_str(&format!(" {:?}", line.dumps));
        Ok(text)
    }

    #[test]
    fn every_argument_of_a_tool_is_an_argument_of_its_command() {
        for tool in TOOLS.iter().chain(MORE) {
            let arguments = Arguments::of(tool);
            assert_eq!(arguments.schema(false)["examples"].as_array().map_or(0, Vec::len), tool.examples.len(), "{}", tool.name);
            // Every command also has the argument `runtime`, which the list of the tool does not name.
            let runtime = usize::from(tool.entry().is_some());
            assert_eq!(arguments.list.iter().filter(|a| a.listed).count(), tool.arguments.len() + runtime, "{}", tool.name);
            let named = |name: &&str| tool.arguments.contains(name);
            assert!(tool.required.iter().all(named) && tool.rows.iter().all(|r| named(&r.option)), "{}", tool.name);
            assert!(tool.on.is_none_or(|(flag, unless)| named(&flag) && unless.iter().all(named)), "{}", tool.name);
            for argument in &arguments.list {
                let schema = argument.schema(true);
                assert!(!schema["description"].as_str().unwrap().is_empty(), "{} {}", tool.name, argument.name);
                assert!(!NEVER.contains(&long(&argument.arg)) && argument.name != "output", "{} {}", tool.name, argument.name);
            }
        }
    }

    #[test]
    fn calls_are_translated_to_command_lines() {
        for (tool, values, wanted) in [
            ("stat", r#"{"by":"Generation","type":["A","-B"],"min_size":"1K","top":7}"#, "--by=generation --min-size=1K --top=7 -- [None]"),
            ("object", r#"{"address":"0x10","dump":"a.dmp"}"#, "--count=20 --items=20 -- 0x10 [Some(\"a.dmp\")]"),
            ("object", r#"{"address":"0x10","as":"Int64"}"#, "--as=Int64 -- 0x10 [None]"),
            ("path", r#"{"address":"10","weak":true}"#, "--weak --paths=3 -- 10 [None]"),
            ("stacks", "{}", "--merge -- [None]"),
            ("stacks", r#"{"merge":false,"thread":[1,"0x2"]}"#, "--thread=1 --thread=0x2 -- [None]"),
            ("diff", r#"{"after":["b","c"],"before":"a"}"#, "--top=20 -- [Some(\"a\"), Some(\"b\"), Some(\"c\")]"),
            ("analyze", r#"{"since":"b","dump":"a"}"#, "--since=b -- [Some(\"a\"), Some(\"b\")]"),
            ("analyze", r#"{"since":"-b"}"#, "--since=-b -- [None, Some(\"-b\")]"),
            ("stat", r#"{"Types":"A","minSize":16,"limit":"1,000"}"#, "--min-size=16 --type=A --top=200 -- [None]"),
            ("object", r#"{"obj":255,"file":"a.dmp"}"#, "--count=20 --items=20 -- 0xff [Some(\"a.dmp\")]"),
            ("heap", r#"{"detail":"yes","heap":"0"}"#, "--detail --heap=0 -- [None]"),
            ("path", r#"{"address":"1","all-roots":true}"#, "--all-roots --paths=3 -- 1 [None]"),
            ("handles", r#"{"n":"5","Type":["Strong"]}"#, "--top=5 --type=strong -- [None]"),
            ("retained", r#"{"threshold":2.5,"tree":true,"depth":null}"#, "--threshold=2.5 --tree --top=20 -- [None]"),
        ] {
            let wanted = format!("gcdump {tool} --format=json {wanted}").replace("--min-size=1K", "--min-size=1K --type=A --type=-B");
            assert_eq!(line(tool, values), Ok(wanted), "{tool} {values}");
        }
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        for (tool, values, why) in [
            ("stat", r#"{"tup":3}"#, "stat has no argument 'tup'; did you mean top? (it takes by, sort, top, "),
            ("stat", r#"{"top":"all"}"#, "stat: top: expected a whole number from 1 to 200"),
            ("stat", r#"{"by":"color"}"#, "stat: by: 'color' is not one of type, generation, "),
            ("stat", r#"{"type":{}}"#, "stat: type: expected a string"),
            ("modules", r#"{"fetch":true}"#, "modules has no argument 'fetch'"),
            ("diff", r#"{"before":"a","after":["b"],"budget":"c"}"#, "diff has no argument 'budget'"),
            ("stat", r#"{"type":[]}"#, "stat: type: expected at least one"),
            ("stat", r#"{"output":"x"}"#, "stat has no argument 'output'"),
            ("object", "{}", "object: address is missing"),
            ("heap", r#"{"detail":"perhaps"}"#, "heap: detail: expected true or false"),
            ("heap", r#"{"heap":-1}"#, "heap: heap: expected a whole number"),
            ("diff", r#"{"before":"a"}"#, "diff: after is missing"),
            ("diff", r#"{"before":"a","after":["b"],"dump":"c"}"#, "diff has no argument 'dump'"),
            ("dumps", r#"{"dump":"c"}"#, "dumps has no argument 'dump'"),
        ] {
            let found = line(tool, values).unwrap_err();
            assert!(found.starts_with(why), "{tool} {values}: {found}");
        }
    }

    #[test]
    fn row_limits_are_quartered_down_to_one() {
        let arguments = Arguments::of(tools::find("object").unwrap());
        let line = arguments.line(&serde_json::from_str(r#"{"address":"1","count":100}"#).unwrap()).unwrap();
        let mut seen = vec![line.rows.clone()];
        let mut next = line.shortened();
        while let Some(line) = next {
            seen.push(line.rows.clone());
            next = line.shortened();
        }
        let counts = |i: usize| seen.iter().map(|rows| rows[i].1).collect::<Vec<_>>();
        assert_eq!((counts(0), counts(1)), (vec![100, 25, 6, 1], vec![20, 20, 6, 1]));
    }

    #[test]
    fn options_in_texts_are_rewritten_as_arguments() {
        assert_eq!(options_written("with --min-count, --like or a--b"), "with min_count, like or ab");
    }
}
