//! Arguments of tools: their schema from clap's definition of the command line, and the command line from their values.

use std::any::TypeId;
use std::borrow::Cow;
use std::ffi::OsString;

use clap::{Arg, ArgAction};
use serde_json::{Map, Value, json};

use super::rpc::cut;
use super::tools::{Does, Rows, Tool};
use crate::base::nearest;

/// Dumps that a tool compares with the first.
const COMPARED: u64 = 7;
/// Bytes of a text.
const LONGEST: usize = 4096;
/// Values of an argument that takes several.
const VALUES: usize = 64;
/// What the dump of a tool is.
const DUMP: &str =
    "Path of the dump, absolute or below a folder of the server, as the tool dumps lists it. May be left out if there is one.";

/// What a value of an argument is.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Flag,
    Text,
    /// One of these, in any case.
    Word(Vec<String>),
    Whole,
    Number,
    /// A number of bytes, or one with a suffix; an id, decimal or hexadecimal.
    WholeOrText,
}

impl Kind {
    fn of(arg: &Arg) -> Kind {
        if !arg.get_action().takes_values() {
            return Kind::Flag;
        }
        let words: Vec<String> = arg.get_possible_values().iter().filter(|v| !v.is_hide_set()).map(|v| v.get_name().into()).collect();
        if !words.is_empty() {
            return Kind::Word(words);
        }
        let parsed = arg.get_value_parser().type_id();
        let name = arg.get_value_names().and_then(<[_]>::first).map(|n| n.as_str()).unwrap_or_default();
        if [TypeId::of::<u64>(), TypeId::of::<u32>(), TypeId::of::<usize>()].into_iter().any(|id| parsed == id) {
            return if name == "N" { Kind::Whole } else { Kind::WholeOrText };
        }
        if parsed == TypeId::of::<f64>() { Kind::Number } else { Kind::Text }
    }

    fn schema(&self) -> Value {
        match self {
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Text => json!({ "type": "string" }),
            Kind::Word(words) => json!({ "type": "string", "enum": words }),
            Kind::Whole => json!({ "type": "integer", "minimum": 0 }),
            Kind::Number => json!({ "type": "number" }),
            Kind::WholeOrText => json!({ "type": ["integer", "string"] }),
        }
    }

    /// `value` as it is typed.
    fn word(&self, value: &Value) -> Result<String, String> {
        let expected = match (self, value) {
            (Kind::Text | Kind::WholeOrText, Value::String(text)) if text.len() > LONGEST => {
                return Err(format!("expected at most {LONGEST} bytes, not {}", text.len()));
            }
            (Kind::Text | Kind::WholeOrText, Value::String(text)) => return Ok(text.clone()),
            (Kind::Word(words), Value::String(text)) => {
                let known = words.iter().find(|word| word.eq_ignore_ascii_case(text));
                return known.cloned().ok_or_else(|| format!("'{}' is none of {}", cut(text), words.join(", ")));
            }
            (Kind::Whole | Kind::WholeOrText, Value::Number(n)) if n.is_u64() => return Ok(n.to_string()),
            (Kind::Number, Value::Number(n)) => return Ok(n.to_string()),
            (Kind::Flag, _) => "true or false",
            (Kind::Text | Kind::Word(_), _) => "a string",
            (Kind::Whole, _) => "a whole number",
            (Kind::Number, _) => "a number",
            (Kind::WholeOrText, _) => "a whole number or a string",
        };
        Err(format!("expected {expected}"))
    }
}

/// An argument of a tool.
struct Argument {
    arg: Arg,
    /// As assistants write it.
    name: String,
    kind: Kind,
    /// Whether it takes several values.
    list: bool,
    rows: Option<&'static Rows>,
    /// For a flag that is on: the arguments that turn it off.
    on: Option<&'static [&'static str]>,
    /// Arguments that it cannot stand beside, as the command line has them.
    conflicts: Vec<String>,
}

/// The arguments of a tool.
pub(super) struct Arguments {
    tool: &'static Tool,
    list: Vec<Argument>,
}

/// A call as a command line, with the numbers of rows still to be filled in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// Options, and what the command is about.
    options: Vec<OsString>,
    positional: Vec<OsString>,
    /// The options that limit rows, with the number asked for.
    rows: Vec<(&'static str, u64)>,
    /// The dumps, as given; the first is `None` if it is left out.
    pub(super) dumps: Vec<Option<String>>,
}

impl Line {
    /// The largest number of rows.
    pub(super) fn most_rows(&self) -> Option<u64> {
        self.rows.iter().map(|row| row.1).max()
    }

    /// The same with a quarter of the rows; `None` if that is none.
    pub(super) fn shortened(&self) -> Option<Line> {
        let most = self.most_rows().filter(|rows| *rows > 1)?;
        let rows = self.rows.iter().map(|(option, n)| (*option, (*n).min(most / 4).max(1))).collect();
        Some(Line { rows, ..self.clone() })
    }

    /// `text`, which may repeat arguments, with at most the part of each that an error repeats.
    pub(super) fn repeated_in(&self, text: String) -> String {
        let dumps = self.dumps.iter().flatten().map(String::as_str);
        let words = self.options.iter().chain(&self.positional).filter_map(|word| word.to_str());
        let values = words.map(|word| word.strip_prefix("--").and_then(|option| option.split_once('=')).map_or(word, |(_, value)| value));
        dumps.chain(values).fold(text, |text, value| match cut(value) {
            Cow::Borrowed(_) => text,
            Cow::Owned(part) => text.replace(value, &part),
        })
    }

    /// The words of the command line.
    pub(super) fn words(&self, command: &str, dumps: &[OsString]) -> Vec<OsString> {
        let rows = self.rows.iter().map(|(option, n)| format!("--{option}={n}").into());
        let head = ["gcdump", command, "--format=json"].map(OsString::from);
        let tail = std::iter::once("--".into()).chain(self.positional.iter().cloned()).chain(dumps.iter().cloned());
        head.into_iter().chain(self.options.iter().cloned()).chain(rows).chain(tail).collect()
    }
}

/// The argument that selects a runtime, which every tool about dumps has: a process may have several.
const RUNTIME: &str = "runtime";

/// What the command line calls an argument.
fn long(arg: &Arg) -> &str {
    arg.get_long().unwrap_or(arg.get_id().as_str())
}

/// A name as assistants write it.
fn written(name: &str) -> String {
    name.replace('-', "_")
}

/// Arguments that name objects: an answer is about one.
const OF_ONE: [&str; 2] = ["what", "object"];

impl Arguments {
    pub(super) fn of(tool: &'static Tool) -> Arguments {
        let Some(entry) = tool.entry() else { return Arguments { tool, list: Vec::new() } };
        // With the options of every command: some of its own conflict with them.
        let command = entry.command();
        let named = |name: &str| command.get_arguments().find(|a| long(a) == name);
        let argument = |name: &&'static str| {
            let arg = named(name)?.clone();
            // `path` takes the address and the dump as one argument.
            let called = if *name == "what" { "address".into() } else { written(name) };
            Some(Argument {
                name: called,
                kind: Kind::of(&arg),
                list: matches!(arg.get_action(), ArgAction::Append) && !OF_ONE.contains(name),
                rows: tool.rows.iter().find(|rows| rows.option == *name),
                on: tool.on.filter(|(flag, _)| flag == name).map(|(_, unless)| unless),
                conflicts: command.get_arg_conflicts_with(&arg).iter().map(|a| long(a).into()).collect(),
                arg,
            })
        };
        Arguments { tool, list: tool.arguments.iter().chain(&[RUNTIME]).filter_map(argument).collect() }
    }

    /// Whether the tool takes one dump, which may be left out.
    fn takes_dump(&self) -> bool {
        matches!(self.tool.does, Does::Command(_))
    }

    /// The JSON schema of the arguments.
    pub(super) fn schema(&self) -> Value {
        let mut properties = Map::new();
        if self.takes_dump() {
            properties.insert("dump".into(), json!({ "type": "string", "description": DUMP }));
        }
        for argument in &self.list {
            properties.insert(argument.name.clone(), argument.schema());
        }
        let required: Vec<String> = self.tool.required.iter().map(|name| written(name)).collect();
        let examples: Vec<Value> = self.tool.examples.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
            "examples": examples,
        })
    }

    /// The command line for a call.
    ///
    /// # Errors
    /// A sentence about the first argument that does not fit the schema.
    pub(super) fn line(&self, values: &Map<String, Value>) -> Result<Line, String> {
        let rows = self.list.iter().filter_map(|a| a.rows).map(|rows| (rows.option, rows.usual)).collect();
        let mut line = Line { options: Vec::new(), positional: Vec::new(), rows, dumps: Vec::new() };
        let mut dump = None;
        for (name, value) in values.iter().filter(|(_, value)| !value.is_null()) {
            let wrong = |why: String| format!("{}: {name}: {why}", self.tool.name);
            match self.list.iter().find(|a| a.name == *name) {
                Some(argument) => argument.add(value, &mut line).map_err(wrong)?,
                None if name == "dump" && self.takes_dump() => dump = Some(Kind::Text.word(value).map_err(wrong)?),
                None => return Err(self.unknown(name)),
            }
        }
        let given = |name: &str| values.get(name).is_some_and(|value| !value.is_null());
        if let Some(lacking) = self.tool.required.iter().find(|name| !given(&written(name))) {
            return Err(format!("{}: {} is missing", self.tool.name, written(lacking)));
        }
        for argument in self.list.iter().filter(|a| !given(&a.name)) {
            if argument.on.is_some_and(|unless| !unless.iter().any(|name| given(&written(name)))) {
                line.options.push(argument.option());
            }
        }
        // A number that nobody asked for stands in nobody's way.
        let hinders = |option: &str| self.list.iter().any(|a| given(&a.name) && a.conflicts.iter().any(|c| c == option));
        line.rows.retain(|(option, _)| given(&written(option)) || !hinders(option));
        if self.takes_dump() {
            line.dumps.insert(0, dump);
        }
        Ok(line)
    }

    fn unknown(&self, name: &str) -> String {
        let name = &*cut(name);
        let known = || self.list.iter().map(|a| a.name.as_str()).chain(self.takes_dump().then_some("dump"));
        let near = nearest(name, known(), name.len() / 2).map(|n| format!("; did you mean {n}?")).unwrap_or_default();
        let all: Vec<&str> = known().collect();
        let takes = if all.is_empty() { "it takes none".into() } else { format!("it takes {}", all.join(", ")) };
        format!("{} has no argument '{name}'{near} ({takes})", self.tool.name)
    }
}

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

    /// The option with a value, in one word: values may begin with '-'.
    fn with(&self, value: &str) -> OsString {
        format!("--{}={value}", self.arg.get_long().unwrap_or_default()).into()
    }

    fn is_dump(&self) -> bool {
        self.arg.get_value_names().is_some_and(|names| names.iter().any(|n| ["BEFORE", "AFTER"].contains(&n.as_str())))
    }

    fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        let mut about = help(&self.arg);
        if let (Some(rows), Some(fields)) = (self.rows, schema.as_object_mut()) {
            fields.insert("minimum".into(), 1.into());
            fields.insert("maximum".into(), rows.most.into());
            fields.insert("default".into(), rows.usual.into());
            // The command line's own limits do not hold here.
            about = about.split(" [default").next().unwrap_or_default().replace(", 0 for all", "");
        } else if let Some(unless) = self.on {
            let unless: Vec<String> = unless.iter().map(|name| written(name)).collect();
            about.push_str(&format!(" It is on unless it is false, or one of {} is given.", unless.join(", ")));
        } else if let Some(default) = self.default() {
            put(&mut schema, "default", default);
        }
        if self.list {
            schema = json!({ "type": "array", "items": schema, "minItems": 1 });
            if self.is_dump() {
                put(&mut schema, "maxItems", COMPARED.into());
            }
        }
        if self.arg.get_id() == "what" {
            about = "Address of an object, or any address within it.".into();
        }
        put(&mut schema, "description", about.into());
        schema
    }

    /// The value that it has if it is left out.
    fn default(&self) -> Option<Value> {
        // That of the server.
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

    /// Adds its `value` to `line`.
    fn add(&self, value: &Value, line: &mut Line) -> Result<(), String> {
        if self.kind == Kind::Flag {
            let Value::Bool(on) = value else { return Err("expected true or false".into()) };
            if *on {
                line.options.push(self.option());
            }
            return Ok(());
        }
        if let Some(rows) = self.rows {
            let n = value.as_u64().filter(|n| (1..=rows.most).contains(n));
            let n = n.ok_or_else(|| format!("expected a whole number from 1 to {}", rows.most))?;
            line.rows.iter_mut().filter(|row| row.0 == rows.option).for_each(|row| row.1 = n);
            return Ok(());
        }
        let words = match (self.list, value) {
            (true, Value::Array(values)) if values.is_empty() => return Err("expected at least one".into()),
            (true, Value::Array(values)) if values.len() > VALUES => {
                return Err(format!("expected at most {VALUES}, not {}", values.len()));
            }
            (true, Value::Array(values)) => values.iter().map(|v| self.kind.word(v)).collect::<Result<Vec<_>, _>>()?,
            (true, Value::String(_)) => vec![self.kind.word(value)?],
            (true, _) => return Err("expected a list".into()),
            (false, value) => vec![self.kind.word(value)?],
        };
        if self.is_dump() {
            if u64::try_from(words.len()).is_ok_and(|n| n > COMPARED) {
                return Err(format!("at most {COMPARED} dumps"));
            }
            // An option of a command about another dump; that one stands first.
            if self.arg.get_long().is_some() {
                line.options.extend(words.iter().map(|word| self.with(word)));
            }
            // In the order of the command line, whatever that of the call is.
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

/// The help of an argument, with options as assistants write them.
fn help(arg: &Arg) -> String {
    let text = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    options_written(&text.replace(" (repeatable)", ""))
}

/// `text` with `--min-size` as `min_size`.
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
    use super::super::tools::{self, TOOLS};
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
    fn every_argument_of_a_tool_is_one_of_its_command() {
        for tool in TOOLS {
            let arguments = Arguments::of(tool);
            assert_eq!(arguments.schema()["examples"].as_array().map(Vec::len), Some(tool.examples.len()), "{}", tool.name);
            // Every command selects a runtime.
            let runtime = usize::from(tool.entry().is_some());
            assert_eq!(arguments.list.len(), tool.arguments.len() + runtime, "{}", tool.name);
            let named = |name: &&str| tool.arguments.contains(name);
            assert!(tool.required.iter().all(named) && tool.rows.iter().all(|r| named(&r.option)), "{}", tool.name);
            assert!(tool.on.is_none_or(|(flag, unless)| named(&flag) && unless.iter().all(named)), "{}", tool.name);
            assert_eq!(tool.entry().is_none(), tool.does == Does::List, "{}", tool.name);
            for argument in &arguments.list {
                let schema = argument.schema();
                assert!(!schema["description"].as_str().unwrap().is_empty(), "{} {}", tool.name, argument.name);
                // What limits rows on the command line is limited here.
                let limits = ["top", "count", "items"].contains(&argument.name.as_str());
                assert!(!limits || argument.rows.is_some(), "{} {}", tool.name, argument.name);
            }
        }
    }

    #[test]
    fn calls_become_command_lines() {
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
            ("retained", r#"{"threshold":2.5,"tree":true,"depth":null}"#, "--threshold=2.5 --tree --top=20 -- [None]"),
        ] {
            let wanted = format!("gcdump {tool} --format=json {wanted}").replace("--min-size=1K", "--min-size=1K --type=A --type=-B");
            assert_eq!(line(tool, values), Ok(wanted), "{tool} {values}");
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        for (tool, values, why) in [
            ("stat", r#"{"tup":3}"#, "stat has no argument 'tup'; did you mean top? (it takes by, sort, top, "),
            ("stat", r#"{"top":0}"#, "stat: top: expected a whole number from 1 to 200"),
            ("stat", r#"{"top":201}"#, "stat: top: expected a whole number from 1 to 200"),
            ("stat", r#"{"by":"color"}"#, "stat: by: 'color' is none of type, generation, "),
            ("stat", r#"{"type":1}"#, "stat: type: expected a list"),
            ("stat", r#"{"type":[]}"#, "stat: type: expected at least one"),
            ("stat", r#"{"output":"x"}"#, "stat has no argument 'output'"),
            ("object", "{}", "object: address is missing"),
            ("object", r#"{"address":16}"#, "object: address: expected a string"),
            ("heap", r#"{"detail":"yes"}"#, "heap: detail: expected true or false"),
            ("heap", r#"{"heap":-1}"#, "heap: heap: expected a whole number"),
            ("diff", r#"{"before":"a"}"#, "diff: after is missing"),
            ("diff", r#"{"before":"a","after":["b"],"dump":"c"}"#, "diff has no argument 'dump'"),
            ("dumps", r#"{"dump":"c"}"#, "dumps has no argument 'dump' (it takes none)"),
        ] {
            let found = line(tool, values).unwrap_err();
            assert!(found.starts_with(why), "{tool} {values}: {found}");
        }
    }

    #[test]
    fn rows_are_quartered_until_there_is_one() {
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
    fn options_are_named_as_arguments() {
        assert_eq!(options_written("with --min-count, --like or a--b"), "with min_count, like or ab");
    }
}
