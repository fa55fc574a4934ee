//! Suggested follow-up calls after an answer, each in the form in which an assistant sends it.
//!
//! Some answers contain command lines that show more of a finding. For other answers, `found` determines which tool explains the result. Following
//! the first suggestion repeatedly never leads back to an earlier call.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use serde_json::{Map, Value, json};

use super::super::parsed::{Cli, LINE};
use super::super::words::{Ordered, ordered};
use super::arguments::Arguments;
use super::tools::{Does, TOOLS, Tool, find};

/// Maximum number of calls after an answer.
const CALLS: usize = 4;
/// Maximum number of threads in a call.
const THREADS: usize = 6;

/// The argument with the dump, of tools and of command lines.
const DUMP: &str = "dump";

/// Kinds of asynchronous waits that are normal in an idle process.
const IDLE: [&str; 3] = ["socket", "timer", "source"];

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    name: &'static str,
    arguments: Map<String, Value>,
    /// Options of the command line that only the server takes.
    ignored: Vec<&'static str>,
}

impl Call {
    fn new(name: &'static str, arguments: Value) -> Call {
        Call { name, arguments: arguments.as_object().cloned().unwrap_or_default(), ignored: Vec::new() }
    }

    /// Converts a command line without a dump to a call; returns `None` if no tool is equivalent.
    pub(super) fn of(words: &[String]) -> Option<Call> {
        Call::parsed(&std::iter::once("gcdump".into()).chain(words.iter().map(OsString::from)).collect::<Vec<_>>())
    }

    /// Converts a command line as people type it to a call: words become the values of the options that they belong to, and one word may be the dump. Returns `None` if
    /// no tool is equivalent.
    ///
    /// # Errors
    /// A sentence about a word that has no meaning.
    pub(super) fn typed(words: &[String]) -> Result<Option<Call>, String> {
        let line = std::iter::once("gcdump".into()).chain(words.iter().map(OsString::from)).collect();
        match ordered(line, &LINE, &|| Some(PathBuf::new())).map_err(|why| why.0)? {
            Ordered::Line(line) => Ok(Call::parsed(&line)),
            Ordered::Help(_) => Ok(None),
        }
    }

    /// Converts a command line for clap.
    fn parsed(line: &[OsString]) -> Option<Call> {
        let tool = find(line.get(1)?.to_str()?)?;
        let entry = tool.entry()?;
        // Parsing fails for a command that compares dumps, because its dumps are required. Other commands can omit the dump.
        let cli = Cli::of(line).ok()?;
        let arguments = Arguments::of(tool);
        let mut values = arguments.of_matches(&entry.command(), &cli.matches)?;
        arguments.line(&values).ok()?;
        if cli.matches.try_contains_id(DUMP).is_ok() && cli.matches.value_source(DUMP) == Some(ValueSource::CommandLine) {
            let dump = cli.matches.get_raw(DUMP).and_then(|mut words| words.next())?;
            values.insert(DUMP.into(), dump.to_str()?.into());
        }
        let is_given = |option: &&str| cli.matches.value_source(option.trim_start_matches('-')) == Some(ValueSource::CommandLine);
        let ignored = OF_SERVER.into_iter().filter(is_given).collect();
        Some(Call { name: tool.name, arguments: values, ignored })
    }

    /// Returns the tool, its arguments, and the options that only the server takes.
    pub(super) fn parts(self) -> Option<(&'static Tool, Map<String, Value>, Vec<&'static str>)> {
        Some((find(self.name)?, self.arguments, self.ignored))
    }

    /// Converts a command line that is shown in an answer about the dump at `path`.
    fn shown(line: &str, path: Option<&str>) -> Option<Call> {
        let mut words = words(line);
        let compares = words.get(1).and_then(|name| find(name)).is_some_and(|tool| matches!(tool.does, Does::Compares(_)));
        if !compares && words.last().map(String::as_str) == path {
            words.pop();
        }
        Call::of(words.get(1..)?)
    }

    /// Adds the dump and runtime of the preceding call.
    fn about(mut self, asked: &Map<String, Value>) -> Call {
        let compares = find(self.name).is_some_and(|tool| matches!(tool.does, Does::Compares(_)));
        for name in ["dump", "runtime"].into_iter().filter(|name| !compares || *name != "dump") {
            if let (Some(value), false) = (asked.get(name), self.arguments.contains_key(name)) {
                self.arguments.insert(name.into(), value.clone());
            }
        }
        // After a comparison, follow-up calls are about the last dump.
        if let Some(after) = asked.get("after").filter(|_| !compares && !self.arguments.contains_key("dump")) {
            let last = after.as_array().and_then(|all| all.last()).unwrap_or(after);
            self.arguments.insert("dump".into(), last.clone());
        }
        self
    }

    /// Whether the call asks for stacks.
    pub(super) fn needs_stacks(&self) -> bool {
        self.name == "stacks"
    }

    /// Formats the call as an assistant sends it.
    pub(super) fn as_sent(&self) -> String {
        if TOOLS.iter().any(|tool| tool.name == self.name) {
            return line(self.name, &self.arguments);
        }
        let mut arguments = self.arguments.clone();
        let mut call = Map::from_iter([("command".to_string(), Value::from(self.name))]);
        call.extend(arguments.remove("dump").map(|dump| ("dump".into(), dump)));
        if !arguments.is_empty() {
            call.insert("arguments".into(), arguments.into());
        }
        line("more", &call)
    }
}

/// Options with files for all answers, which the user gives to the server.
const OF_SERVER: [&str; 4] = ["--modules", "--overlay", "--symbols", "--sysroot"];

/// Formats the line for a call.
fn line(name: &str, arguments: &Map<String, Value>) -> String {
    format!("Next: {{\"name\":\"{name}\",\"arguments\":{}}}", Value::from(arguments.clone()))
}

/// Returns the follow-up calls for `document`, which answers a call with the arguments `asked`. `leads` is the suggestion of the command.
pub(super) fn calls(tool: &Tool, asked: &Map<String, Value>, document: &Value, leads: Option<&str>) -> Vec<Call> {
    let data = document.get("data").unwrap_or(document);
    let mut calls = found(tool.name, asked, document, data);
    if calls.is_empty() {
        let words = leads.map(|words| words.split(' ').map(String::from).collect::<Vec<_>>());
        calls.extend(words.and_then(|words| Call::of(&words)).filter(|call| !returns(tool.name, call)));
    }
    let mut all: Vec<Call> = Vec::new();
    for call in calls.into_iter().map(|call| call.about(asked)) {
        if !all.contains(&call) && all.len() < CALLS && (call.name != tool.name || call.arguments != *asked) {
            all.push(call);
        }
    }
    all
}

/// Returns `calls` without those for stacks, which cannot be walked. After the list of threads, locks say more about them.
pub(super) fn without_stacks(tool: &Tool, asked: &Map<String, Value>, calls: Vec<Call>) -> Vec<Call> {
    let mut left: Vec<Call> = calls.into_iter().filter(|call| !call.needs_stacks()).collect();
    if tool.name == "threads" {
        left.push(Call::new("locks", json!({})).about(asked));
    }
    left
}

/// Whether `call` leads back to the tool that suggested `tool`.
fn returns(tool: &str, call: &Call) -> bool {
    matches!((tool, call.name), ("exceptions", "stacks"))
}

/// Returns the follow-up calls for the contents of an answer.
fn found(tool: &str, asked: &Map<String, Value>, document: &Value, data: &Value) -> Vec<Call> {
    let text = |pointer: &str| data.pointer(pointer).and_then(Value::as_str);
    let list = |pointer: &str| data.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let at = |tool: &'static str, name: &str, address: Option<&str>| {
        address.map(|address| Call::new(tool, json!({ name: address }))).into_iter().collect::<Vec<_>>()
    };
    match tool {
        "dumps" => dumps(data),
        // Without a readable runtime there is nothing to analyze.
        "info" if data.get("next").is_some_and(Value::is_null) => Vec::new(),
        "info" => vec![Call::new("analyze", json!({}))],
        "analyze" => findings(document, list("/findings")),
        "heap" | "oom" if asked.contains_key("detail") || tool == "heap" => vec![Call::new("stat", json!({}))],
        "oom" => vec![Call::new("heap", json!({ "detail": true }))],
        "stat" | "segments" | "fragmentation" => vec![Call::new("retained", json!({ "suspects": true }))],
        "retained" if asked.contains_key("object") => at("path", "address", asked.get("object").and_then(Value::as_str)),
        "retained" => {
            let named = ["/suspects/0/address", "/objects/0/address", "/groups/0/example"].into_iter().find_map(text);
            at("path", "address", named)
        }
        "diff" => vec![Call::new("retained", json!({ "suspects": true }))],
        "stacks" if asked.contains_key("thread") => {
            let thrown = list("/threads").iter().find_map(|thread| thread.pointer("/exception/address")?.as_str());
            at("exceptions", "object", thrown)
        }
        "stacks" => vec![Call::new("locks", json!({}))],
        "threads" => vec![Call::new("stacks", json!({}))],
        "locks" => {
            let of = |pointer: &str| list(pointer).first().and_then(|first| first.get("threads")).and_then(Value::as_array);
            let waits = || list("/waits").iter().filter_map(|wait| wait.get("managed_id").cloned()).collect::<Vec<_>>();
            stacks(of("/deadlocks").or_else(|| of("/chains")).cloned().unwrap_or_else(waits))
        }
        "pool" => stacks(list("/workers").iter().filter_map(|worker| worker.get("managed_id").cloned()).collect()),
        "exceptions" if asked.contains_key("object") => at("object", "address", asked.get("object").and_then(Value::as_str)),
        "exceptions" => at("exceptions", "object", text("/groups/0/example")),
        "async" if !asked.contains_key("object") => {
            // Most servers always wait for the next request or for a timer, so other waits are suggested first.
            let is_idle = |root: &&Value| root.get("kind").and_then(Value::as_str).is_some_and(|kind| IDLE.contains(&kind));
            let roots = || list("/chains").iter().filter_map(|chain| chain.get("root"));
            let root = roots().find(|root| !is_idle(root)).or_else(|| roots().next());
            at("async", "object", root.and_then(|root| root.get("object")?.as_str()))
        }
        "async" => at("path", "address", asked.get("object").and_then(Value::as_str)),
        "requests" => {
            let mut waited: BTreeMap<&str, usize> = BTreeMap::new();
            for object in list("/requests").iter().filter_map(|request| request.pointer("/waits_for/object")?.as_str()) {
                let count = waited.entry(object).or_default();
                *count = count.saturating_add(1);
            }
            at("async", "object", waited.into_iter().max_by_key(|(_, count)| *count).map(|(object, _)| object))
        }
        "objects" => at("object", "address", text("/objects/0/address")),
        "refs" | "object" | "objsize" | "where" | "near" => {
            at("path", "address", asked.get("address").and_then(Value::as_str).or_else(|| text("/address")))
        }
        _ => Vec::new(),
    }
}

/// Returns the call for the stacks of some threads, with what they wait for.
fn stacks(mut threads: Vec<Value>) -> Vec<Call> {
    threads.retain(Value::is_number);
    threads.truncate(THREADS);
    match threads.is_empty() {
        true => Vec::new(),
        false => vec![Call::new("stacks", json!({ "thread": threads, "waits": true }))],
    }
}

/// Returns the calls that show more of each finding.
fn findings(document: &Value, findings: &[Value]) -> Vec<Call> {
    let path = document.pointer("/dump/path").and_then(Value::as_str);
    let of = |finding: &Value| {
        let mut call = Call::shown(finding.get("command")?.as_str()?, path)?;
        let threads = finding.get("threads").and_then(Value::as_array).filter(|threads| !threads.is_empty());
        if let (Some(threads), "stacks") = (threads, call.name) {
            call.arguments.entry("thread").or_insert_with(|| threads.iter().take(THREADS).cloned().collect());
        }
        Some(call)
    };
    let calls: Vec<Call> = findings.iter().filter_map(of).collect();
    match calls.is_empty() {
        true => vec![Call::new("retained", json!({ "suspects": true })), Call::new("stacks", json!({}))],
        false => calls,
    }
}

/// Returns calls of `info`: for the default dump, or else for the last two dumps by name.
fn dumps(data: &Value) -> Vec<Call> {
    let paths = |list: &[Value]| list.iter().filter_map(|dump| dump.get("path").cloned()).collect::<Vec<_>>();
    let all = data.get("dumps").and_then(Value::as_array).map(|list| paths(list)).unwrap_or_default();
    if data.get("default").is_some_and(Value::is_string) {
        return vec![Call::new("info", json!({}))];
    }
    all.iter().rev().take(2).map(|path| Call::new("info", json!({ "dump": path }))).collect()
}

/// Splits a command line into words like a shell.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let (mut word, mut quote): (Option<String>, Option<char>) = (None, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') if cfg!(not(windows)) => word.get_or_insert_default().extend(chars.next()),
            (None, ' ') => all.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(line: &str) -> Option<String> {
        Call::shown(line, Some("/d/a b.dmp")).map(|call| call.as_sent())
    }

    #[test]
    fn command_lines_are_converted_to_calls() {
        for (line, call) in [
            ("gcdump retained --suspects '/d/a b.dmp'", r#"Next: {"name":"retained","arguments":{"suspects":true}}"#),
            ("gcdump stacks '/d/a b.dmp'", r#"Next: {"name":"stacks","arguments":{}}"#),
            ("gcdump stat --top 5 --no-local-files '/d/a b.dmp'", r#"Next: {"name":"stat","arguments":{"top":5}}"#),
            ("gcdump path 0x10 '/d/a b.dmp'", r#"Next: {"name":"path","arguments":{"address":"0x10"}}"#),
            ("gcdump path --type 'A.B<C>' '/d/a b.dmp'", r#"Next: {"name":"path","arguments":{"type":["A.B<C>"]}}"#),
            ("gcdump handles --stat '/d/a b.dmp'", r#"Next: {"name":"more","arguments":{"arguments":{"stat":true},"command":"handles"}}"#),
            ("gcdump diff b.dmp '/d/a b.dmp'", r#"Next: {"name":"diff","arguments":{"after":["/d/a b.dmp"],"before":"b.dmp"}}"#),
            ("gcdump requests --incoming", r#"Next: {"name":"more","arguments":{"arguments":{"incoming":true},"command":"requests"}}"#),
        ] {
            assert_eq!(sent(line).as_deref(), Some(call), "{line}");
        }
        for line in ["gcdump export gcdump", "gcdump stat --no-such", "gcdump stat --output x", "gcdump", ""] {
            assert_eq!(sent(line), None, "{line}");
        }
    }

    #[test]
    fn the_summary_leads_to_findings_unless_no_runtime_can_be_read() {
        let info = find("info").unwrap();
        let sent = |next: Value| {
            let calls = calls(info, &Map::new(), &json!({ "data": { "next": next } }), None);
            calls.iter().map(Call::as_sent).collect::<Vec<_>>()
        };
        assert_eq!(sent(json!("gcdump analyze x.dmp")), [r#"Next: {"name":"analyze","arguments":{}}"#]);
        assert_eq!(sent(Value::Null), Vec::<String>::new());
    }

    #[test]
    fn lines_are_split_into_words_as_in_a_shell() {
        assert_eq!(words(r#"a  'b c' "d'e" '' f'g'"#), ["a", "b c", "d'e", "", "fg"]);
        assert_eq!(words("").len(), 0);
    }
}
