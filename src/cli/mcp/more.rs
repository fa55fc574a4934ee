//! The tools `more` and `help`: determines the command that a call is about. An assistant may send a whole command line.

use serde_json::{Map, Value};

use super::kind::plain;
use super::next::{Call, words};
use super::tools::{Does, Tool, find, no_tool};
use crate::cli::sos;

/// A tool, its arguments, and the options of a command line that only the server takes.
type Resolved = (&'static Tool, Map<String, Value>, Vec<&'static str>);

/// Returns the tool that a call is about, and its arguments.
///
/// # Errors
/// A sentence about a command that is missing or unknown.
pub(super) fn resolved(tool: &'static Tool, given: &Map<String, Value>) -> Result<Resolved, String> {
    if !matches!(tool.does, Does::More | Does::Help) {
        return Ok((tool, given.clone(), Vec::new()));
    }
    let is = |name: &str, words: &[&str]| words.contains(&plain(name).as_str());
    let line = given.iter().find(|(name, _)| is(name, &["command", "name", "tool", "cmd"])).map(|(_, value)| value);
    let line = line.and_then(Value::as_str).ok_or_else(|| format!("{}: command is missing: the name of a command, as text", tool.name))?;
    let line = line.trim();
    let words = words(line.strip_prefix("gcdump ").unwrap_or(line));
    let name = words.first().map(String::as_str).unwrap_or_default();
    let (found, mut arguments, ignored) = match (find(name), words.len()) {
        (Some(found), 1) => (found, Map::new(), Vec::new()),
        (None, _) if sos::find(name).is_none() => return Err(no_tool(name)),
        (found, _) => {
            // The command is a SOS name or has words after it, so it is parsed like a command line.
            let call = Call::typed(&words).map_err(|why| format!("{}: {why}", tool.name))?;
            let refused = || match found {
                Some(known) => format!("{}: the options of {} are arguments: help lists them", tool.name, known.name),
                None => no_tool(name),
            };
            call.ok_or_else(refused)?.parts().ok_or_else(|| no_tool(name))?
        }
    };
    if matches!(found.does, Does::More | Does::Help) {
        return Err(no_tool(&format!("{} for {name}", tool.name)));
    }
    for (name, value) in given.iter().filter(|(name, _)| !is(name, &["command", "name", "tool", "cmd"])) {
        match value {
            Value::Object(inner) if is(name, &["arguments", "args", "options", "params"]) => arguments.extend(inner.clone()),
            Value::String(text) if is(name, &["arguments", "args", "options", "params"]) => {
                let inner = serde_json::from_str::<Map<String, Value>>(text).map_err(|e| format!("{}: {name}: {e}", tool.name))?;
                arguments.extend(inner);
            }
            other => {
                arguments.insert(name.clone(), other.clone());
            }
        }
    }
    Ok((found, arguments, ignored))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(given: Value) -> Result<(&'static str, Value), String> {
        let (tool, arguments, _) = resolved(find("more").unwrap(), given.as_object().unwrap())?;
        Ok((tool.name, arguments.into()))
    }

    #[test]
    fn commands_are_found_in_many_spellings() {
        for (given, name, arguments) in [
            (json!({ "command": "requests" }), "requests", json!({})),
            (json!({ "command": "handles", "dump": "a", "arguments": { "stat": true } }), "handles", json!({ "dump": "a", "stat": true })),
            (json!({ "command": "handles", "stat": true }), "handles", json!({ "stat": true })),
            (json!({ "command": "gcdump handles --stat" }), "handles", json!({ "stat": true })),
            (json!({ "cmd": "requests", "args": "{\"incoming\":true}" }), "requests", json!({ "incoming": true })),
            (json!({ "command": "gcroot", "arguments": { "address": "0x10" } }), "path", json!({ "address": "0x10" })),
            (json!({ "command": "!dumpheap" }), "stat", json!({})),
            (json!({ "command": "dumpheap -type Lab" }), "objects", json!({ "type": ["*Lab*"] })),
            (json!({ "command": "stat" }), "stat", json!({})),
            // Words that belong to an option, and a dump.
            (json!({ "command": "statics Nope" }), "statics", json!({ "type": ["Nope"] })),
            (json!({ "command": "stat Lab.Dog --top 3" }), "stat", json!({ "type": ["Lab.Dog"], "top": 3 })),
            (json!({ "command": "stacks 2" }), "stacks", json!({ "thread": ["2"] })),
            (json!({ "command": "modules lab /d/x.dmp" }), "modules", json!({ "name": ["*lab*"], "dump": "/d/x.dmp" })),
        ] {
            assert_eq!(of(given.clone()), Ok((name, arguments)), "{given}");
        }
        let line = json!({ "command": "stat --modules /no/such --no-local-files --symbols x" });
        assert_eq!(resolved(find("more").unwrap(), line.as_object().unwrap()).unwrap().2, ["--modules", "--symbols"]);
        for (given, why) in [
            (json!({}), "more: command is missing"),
            (json!({ "command": "no-such" }), "there is no tool no-such"),
            (json!({ "command": "requestz" }), "there is no tool requestz; did you mean requests?"),
            (json!({ "command": "trim" }), "there is no tool trim: it writes a file"),
            (json!({ "command": "help" }), "there is no tool more for help"),
            (json!({ "command": "heap Lab" }), "more: heap: 'Lab' is neither an option nor a dump"),
            (json!({ "command": "handles --no-such" }), "more: the options of handles are arguments"),
        ] {
            let found = of(given.clone()).unwrap_err();
            assert!(found.starts_with(why), "{given}: {found}");
        }
    }
}
