//! Prompts for investigating a crash, a hang or a leak, which users choose in their host.

use serde_json::{Map, Value, json};

use super::rpc::{Failure, NO_PARAMS, cut};

struct Prompt {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// The task of the assistant.
    plan: &'static str,
}

const PROMPTS: &[Prompt] = &[
    Prompt {
        name: "crash",
        title: "Why did the process crash?",
        description: "The cause of a crash: the exception or signal, the thread, and what led to it",
        plan: "Find out why the process of this .NET dump ended: the exception or signal, the thread, the method that it came from, and what \
               the state of the process says about why. If memory ran out, find out what takes it and what holds that.",
    },
    Prompt {
        name: "hang",
        title: "Why does the process not answer?",
        description: "The cause of a hang: deadlocks, a starved thread pool, asynchronous methods that wait for something that never happens",
        plan: "Find out why the process of this .NET dump does not answer: deadlocks and queues at locks, a starved thread pool, synchronous \
               waits for asynchronous work, asynchronous methods that wait for something that nothing completes. Name the threads and methods, and \
               what would release them.",
    },
    Prompt {
        name: "leak",
        title: "What takes the memory?",
        description: "The cause of growing memory: which objects grow, and what holds them; with before, compared to an earlier dump",
        plan: "Find out what takes the memory of the process of this .NET dump, and what holds it: the types that grow, the object or static \
               field that holds them, and the path from a root. Say which reference would have to go.",
    },
];

/// Describes all prompts for `prompts/list`.
pub(super) fn all() -> Value {
    let argument = |name: &str, about: &str| json!({ "name": name, "description": about, "required": false });
    let described = |prompt: &Prompt| {
        let mut arguments = vec![argument("dump", "Path of the dump; not needed if there is one")];
        if prompt.name == "leak" {
            arguments.push(argument("before", "Path of an earlier dump of the process"));
        }
        json!({ "name": prompt.name, "title": prompt.title, "description": prompt.description, "arguments": arguments })
    };
    PROMPTS.iter().map(described).collect()
}

/// Returns the requested prompt.
pub(super) fn get(params: &Map<String, Value>) -> Result<Value, Failure> {
    let wrong = |why: String| Failure::new(NO_PARAMS, format!("prompts/get: {why}"));
    let name = params.get("name").and_then(Value::as_str).ok_or_else(|| wrong("name must be a string".into()))?;
    let prompt = PROMPTS.iter().find(|prompt| prompt.name == name).ok_or_else(|| wrong(format!("there is no prompt {}", cut(name))))?;
    let given = |name: &str| params.get("arguments")?.get(name)?.as_str().filter(|path| !path.is_empty() && path.len() <= 4096);
    let mut arguments = Map::new();
    arguments.extend(given("dump").map(|dump| ("dump".into(), dump.into())));
    let (tool, more) = match (prompt.name, given("before")) {
        ("leak", Some(before)) => ("analyze", Some(("since", json!([before])))),
        ("leak", None) => ("retained", Some(("suspects", json!(true)))),
        _ => ("analyze", None),
    };
    arguments.extend(more.map(|(name, value)| (name.into(), value)));
    let text = format!(
        "{} Use the tools of gcdump: begin with the call below, and follow the Next lines of the answers; say what the evidence is, and \
         what the dump cannot show.\nNext: {}",
        prompt.plan,
        json!({ "name": tool, "arguments": arguments })
    );
    Ok(json!({
        "description": prompt.description,
        "messages": [{ "role": "user", "content": { "type": "text", "text": text } }],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prompt_begins_with_a_call() {
        for (prompt, arguments, call) in [
            ("crash", json!({}), r#"{"arguments":{},"name":"analyze"}"#),
            ("hang", json!({ "dump": "a.dmp" }), r#"{"arguments":{"dump":"a.dmp"},"name":"analyze"}"#),
            ("leak", json!({ "dump": "a.dmp" }), r#"{"arguments":{"dump":"a.dmp","suspects":true},"name":"retained"}"#),
            ("leak", json!({ "dump": "a", "before": "b" }), r#"{"arguments":{"dump":"a","since":["b"]},"name":"analyze"}"#),
        ] {
            let got = get(json!({ "name": prompt, "arguments": arguments }).as_object().unwrap()).unwrap();
            let text = got["messages"][0]["content"]["text"].as_str().unwrap();
            assert!(text.ends_with(&format!("\nNext: {call}")), "{text}");
        }
        assert_eq!(all().as_array().map(Vec::len), Some(3));
        assert_eq!(get(&Map::new()).unwrap_err().code, NO_PARAMS);
    }
}
