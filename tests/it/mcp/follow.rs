//! A client that knows only the protocol and follows the first `Next` of each answer reaches the cause; and what is beside the tools.

use std::path::PathBuf;

use super::*;
use crate::common::{json_file, needs_shared, unpacked};
use crate::harness::{Ignored, Tested};

/// Most calls and bytes of a conversation.
const CALLS: usize = 8;
const BYTES: usize = 60_000;

/// A conversation: the calls, and all that was said.
struct Followed {
    calls: Vec<String>,
    said: String,
}

/// The first call in a text.
fn next(text: &str) -> Option<Value> {
    text.lines().find_map(|line| line.strip_prefix("Next: ")).map(|call| serde_json::from_str(call).unwrap())
}

/// Follows the first `Next` of each answer, from the instructions of the server on.
fn follow(dump: &Path, first: Option<Value>) -> Followed {
    let mut talk = Talk::start(&[dump.to_str().unwrap()]);
    let hello = talk.greet("2025-11-25");
    let mut followed = Followed { calls: Vec::new(), said: String::new() };
    let mut bytes = hello.to_string().len();
    let mut call = first.or_else(|| next(hello["instructions"].as_str().unwrap()));
    while let Some(asked) = call {
        assert!(followed.calls.len() < CALLS, "{dump:?}: {:?}", followed.calls);
        followed.calls.push(asked.to_string());
        let result = talk.ask("tools/call", asked)["result"].clone();
        assert_eq!(result["isError"], false, "{dump:?} {:?}: {result}", followed.calls);
        bytes += result.to_string().len();
        let texts: Vec<&str> = result["content"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect();
        followed.said.push_str(&texts.join("\n"));
        call = texts.last().and_then(|last| next(last));
    }
    assert!(bytes <= BYTES, "{dump:?}: {bytes} bytes in {:?}", followed.calls);
    followed
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

/// Scenarios: a dump of the corpus, and what says its cause.
const SCENARIOS: &[(&str, &str, &[&str])] = &[
    ("crash", "net10-wks-crash-heap", &["System.ApplicationException", "Lab.Program.Crash()", "System.InvalidOperationException"]),
    ("out of memory", "net10-svr-oom-heap", &["the GC heap has reached its limit", "Lab.Program.Keep", "System.Byte[]"]),
    ("leak", "net10-wks-leak-heap.after", &["Lab.Program.Keep", "Lab.Leaky"]),
    ("deadlock", "net10-wks-deadlock-heap", &["StateLab.Account", "\"threads\":[4,5]", "StateLab.Deadlock.Go.b__3_0 (lambda)"]),
    ("async hang", "net10-wks-async-heap", &["Lab.Waits.Never", "Lab.Waits.Leaf", "Lab.Waits.Top"]),
    (
        "starved pool",
        "net10-wks-starve-heap",
        &["The thread pool is starved", "StateLab.Starve.Step", "StateLab.Starve.Go.b__5_1 (lambda)"],
    ),
];

#[test]
fn the_first_next_leads_to_the_cause() {
    let mut recorded = String::new();
    for (what, name, says) in SCENARIOS {
        let followed = follow(&corpus(name), None);
        for text in *says {
            assert!(followed.said.contains(text), "{what}: {text} is not in {:?}\n{}", followed.calls, followed.said);
        }
        recorded.push_str(&format!("{what}: {name}\n"));
        recorded.extend(followed.calls.iter().map(|call| format!("  {call}\n")));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/conversations.txt");
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        fs::write(&path, &recorded).unwrap();
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    assert!(known == recorded, "GCDUMP_BLESS=1 writes {path:?}:\n{recorded}");
}

/// Conversations about full dumps, with the truth of the processes that were dumped.
#[test]
fn the_first_next_leads_to_the_truth() -> Result<(), Ignored> {
    let folder = needs_shared()?;
    let truth = |name: &str| ["../dumps", "../dumps3"].iter().find_map(|d| json_file(&folder.join(d).join(format!("{name}.truth.json"))));
    let mut tried = 0;
    let mut on = |name: &str, says: &dyn Fn(&Value) -> Vec<String>| {
        let dump = unpacked().join(format!("{name}.dmp"));
        if !dump.exists() {
            return;
        }
        let known = truth(name).unwrap_or_default();
        let followed = follow(&dump, None);
        for text in says(&known) {
            assert!(followed.said.contains(&text), "{name}: {text} is not in {:?}", followed.calls);
        }
        tried += 1;
    };
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    for name in ["net10-wks-crash-heap", "net11-wks-crash-heap", "win-net10-wks-crash-full"] {
        on(name, &|_| names(&["System.ApplicationException", "Lab.Program.Crash()"]));
    }
    for name in ["net8-wks-oom-heap", "net10-wks-oom-heap", "net10-svr-oom-heap"] {
        on(name, &|_| names(&["Lab.Program.Keep", "System.Byte[]"]));
    }
    for name in ["net8-wks-deadlock-heap", "net10-wks-deadlock-heap", "net11-wks-deadlock-heap"] {
        on(name, &|truth| {
            let thread = |name: &str| truth["threads"].as_array().unwrap().iter().find(|thread| thread["name"] == name).unwrap();
            ["ab", "ba"].iter().map(|name| thread(name)["waits"].as_str().unwrap().to_string()).collect()
        });
    }
    on("net10-wks-async-heap", &|truth| vec![truth["never"].as_str().unwrap().to_string(), "Lab.Waits.Never".into()]);
    on("web10-hung", &|_| names(&["Web.PaymentGate", "Web.Program.Pay"]));
    for name in ["net8-wks-starve-heap", "net10-wks-starve-heap"] {
        on(name, &|truth| {
            let workers = truth["workers"].as_array().unwrap().iter().map(|worker| format!("\"managed_id\":{worker}"));
            workers.chain(["StateLab.Starve.Step".to_string()]).collect()
        });
    }
    for name in ["net10-wks-leak-heap.after", "net10-wks-suspects-heap"] {
        on(name, &|_| names(&["Lab.Program."]));
    }
    if tried == 0 { Err(Ignored("no shared dump is unpacked".into())) } else { Ok(()) }
}

#[test]
fn prompts_begin_conversations() {
    let mut talk = Talk::start(&["--root", corpus("").parent().unwrap().to_str().unwrap()]);
    talk.greet("2025-06-18");
    let prompts = talk.ask("prompts/list", json!({}))["result"]["prompts"].clone();
    let names: Vec<&str> = prompts.as_array().unwrap().iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["crash", "hang", "leak"]);
    for (name, dumps, says) in [
        ("crash", json!({ "dump": "net10-wks-crash-heap.dmp.zst" }), "Lab.Program.Crash"),
        ("hang", json!({ "dump": "net10-wks-deadlock-heap.dmp.zst" }), "wait for each other"),
        ("leak", json!({ "dump": "net10-wks-leak-heap.after.dmp.zst", "before": "net10-wks-leak-heap.before.dmp.zst" }), "Lab.Leaky"),
    ] {
        let got = talk.ask("prompts/get", json!({ "name": name, "arguments": dumps }))["result"].clone();
        let call = next(got["messages"][0]["content"]["text"].as_str().unwrap()).unwrap();
        let result = talk.ask("tools/call", call)["result"].clone();
        assert!(result["isError"] == false && result.to_string().contains(says), "{name}: {result}");
        // Calls that lead on are about the same dump.
        let call = next(beside(&result)).unwrap();
        assert!(call.to_string().contains(".dmp.zst"), "{name}: {call}");
        assert_eq!(talk.ask("tools/call", call)["result"]["isError"], false, "{name}");
    }
    assert_eq!(talk.ask("prompts/get", json!({ "name": "no" }))["error"]["code"], -32602);
}

#[test]
fn dumps_are_resources() {
    let dump = corpus("net10-wks-leak-heap.after");
    let mut talk = Talk::start(&[dump.to_str().unwrap()]);
    talk.greet("2025-06-18");
    let listed = talk.ask("resources/list", json!({}))["result"]["resources"].clone();
    let uri = listed[0]["uri"].clone();
    assert!(listed.as_array().unwrap().len() == 1 && listed[0]["size"].is_u64(), "{listed}");
    let read = talk.ask("resources/read", json!({ "uri": uri }))["result"]["contents"][0].clone();
    let document: Value = serde_json::from_str(read["text"].as_str().unwrap()).unwrap();
    assert_eq!((&document["command"], &read["uri"]), (&"info".into(), &uri));
    for other in ["file:///etc/passwd", "gcdump://dump//etc/passwd", "gcdump://dump/%2e%2e/x"] {
        assert_eq!(talk.ask("resources/read", json!({ "uri": other }))["error"]["code"], -32002, "{other}");
    }
    assert_eq!(talk.ask("resources/templates/list", json!({}))["result"]["resourceTemplates"], json!([]));
    // The version without a handshake requires that a result says how long it may be kept.
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    for (method, params) in [("resources/list", json!({ "_meta": meta })), ("resources/read", json!({ "_meta": meta, "uri": uri }))] {
        let result = talk.ask(method, params)["result"].clone();
        assert_eq!((&result["ttlMs"], &result["cacheScope"], &result["resultType"]), (&0.into(), &"private".into(), &"complete".into()));
    }
}

#[test]
fn every_command_that_reads_a_dump_is_reachable() {
    let mut talk = Talk::about_own(&[]);
    let tools = talk.tools();
    let more = tools.iter().find(|tool| tool["name"] == "more").unwrap()["description"].as_str().unwrap().to_string();
    let further: Vec<&str> = more.lines().skip(1).map(|line| line.split(':').next().unwrap()).collect();
    assert!(further.len() > 20, "{further:?}");
    for name in further {
        let arguments = match name {
            "where" | "near" | "objsize" => json!({ "address": EVERYTHING }),
            "type" => json!({ "name": "Lab.Dog" }),
            "whatif" => json!({ "alive": EVERYTHING }),
            "simulate" => json!({ "generation": 1 }),
            "track" => json!({ "before": own_unpacked(), "after": own_unpacked() }),
            _ => json!({}),
        };
        let help = talk.call("help", json!({ "command": name }));
        assert!(document(&help)["arguments"]["properties"].is_object(), "{help}");
        let result = talk.call("more", json!({ "command": name, "arguments": arguments }));
        assert_eq!(result["isError"], false, "{name}: {result}");
        assert_eq!(document(&result)["command"], name);
        let bytes: usize = result["content"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap().len()).sum();
        assert!(bytes <= 8000, "{name}: {bytes}");
    }
    for name in ["trim", "export", "index", "fleet", "report", "shell", "mcp"] {
        assert!(talk.refusal("more", json!({ "command": name })).contains("there is no tool"), "{name}");
        assert_eq!(talk.ask("tools/call", json!({ "name": name }))["error"]["code"], -32602, "{name}");
    }
    // No argument opens, writes or shows what the server does not.
    for (name, argument) in [
        ("modules", "fetch"),
        ("verify", "output"),
        ("memory", "modules"),
        ("diff", "budget"),
        ("report", "contents"),
        ("inspect", "no_local_files"),
    ] {
        let why = talk.refusal("more", json!({ "command": name, "arguments": { argument: "x" } }));
        assert!(why.contains("has no argument") || why.contains("there is no tool"), "{name} {argument}: {why}");
    }
}

#[test]
fn values_are_taken_as_the_command_line_takes_them() {
    let mut talk = Talk::about_own(&["--contents"]);
    let bare = EVERYTHING.trim_start_matches("0x");
    let number = u64::from_str_radix(bare, 16).unwrap();
    for (tool, usual, others) in [
        (
            "object",
            json!({ "address": EVERYTHING }),
            vec![
                json!({ "address": bare }),
                json!({ "address": number }),
                json!({ "addr": EVERYTHING.to_uppercase().replace("0X", "0x") }),
            ],
        ),
        (
            "stat",
            json!({ "top": 3, "type": ["Lab.*"], "min_size": 24 }),
            vec![
                json!({ "top": "3", "type": "Lab.*", "min-size": "24" }),
                json!({ "limit": 3, "types": ["Lab.*"], "minSize": 24 }),
                json!({ "n": 3.to_string(), "Type": "Lab.*", "MIN_SIZE": "24" }),
            ],
        ),
        ("heap", json!({ "detail": true }), vec![json!({ "detail": "true" }), json!({ "Detail": 1 }), json!({ "--detail": "yes" })]),
        ("threads", json!({ "sort": "os-id" }), vec![json!({ "sort": "OsId" }), json!({ "sort": "os_id" })]),
    ] {
        let wanted = talk.call(tool, usual.clone());
        if tool == "threads" && wanted["isError"] == true {
            continue;
        }
        assert_eq!(wanted["isError"], false, "{tool} {usual}: {wanted}");
        for other in others {
            let found = talk.call(tool, other.clone());
            assert_eq!(found["content"][0], wanted["content"][0], "{tool} {other}");
        }
    }
    // Names of SOS, and of hosts.
    assert_eq!(document(&talk.call("more", json!({ "command": "eeheap -gc" })))["command"], "heap");
    assert_eq!(document(&talk.call("gcdump_stat", json!({})))["command"], "stat");
}

#[test]
fn stacks_that_are_too_large_are_merged() -> Tested {
    let dump = unpacked().join("net10-wks-nativestackoverflow-heap.dmp");
    if !dump.exists() {
        return Err(Ignored("the dump of a stack overflow is not on this machine".into()));
    }
    let mut talk = Talk::start(&[dump.to_str().unwrap()]);
    talk.greet("2025-11-25");
    for arguments in [json!({ "thread": [1] }), json!({ "thread": [1], "roots": true, "waits": true, "top": 5 })] {
        let result = talk.call("stacks", arguments);
        let said = result["content"].to_string();
        assert!(
            result["isError"] == false && said.contains("Answered with merge") && said.contains("Cases.NativeCrash.Recurse"),
            "{result}"
        );
    }
    Ok(())
}

#[test]
fn no_call_asks_for_stacks_that_cannot_be_walked() {
    let dump = corpus("net10aot-wks-locks-full");
    let mut talk = Talk::start(&[dump.to_str().unwrap()]);
    talk.greet("2025-11-25");
    for tool in ["info", "analyze", "threads", "locks"] {
        let result = talk.call(tool, json!({}));
        let said = result["content"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap();
        assert!(result["isError"] == false && !said.contains("Next: {\"name\":\"stacks\""), "{tool}: {said}");
    }
}

/// An assistant that sends a command line means its words: a word that is ignored makes another answer look like the one that it has asked for.
#[test]
fn no_word_of_a_command_line_is_ignored() {
    let mut talk = Talk::about_own(&[]);
    let mut more = |command: &str| talk.call("more", json!({ "command": command }));
    let dogs = document(&more("stat Lab.Dog"));
    assert_eq!(dogs["data"]["totals"]["count"], 100, "{dogs}");
    assert_eq!(document(&more("stat --type Lab.Dog"))["data"], dogs["data"]);
    assert_eq!(document(&more("statics Nope"))["data"]["statics"], json!([]));
    assert_eq!(document(&more("stacks 1"))["data"]["threads"].as_array().map(Vec::len), Some(1));
    let refused = more("heap Lab");
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("'Lab' is neither an option nor a dump"), "{refused}");
}

/// Hidden texts are not compared: the answer would be that of another text, and would reveal the text by trial.
#[test]
fn conditions_on_hidden_texts_are_refused() {
    let mut talk = Talk::about_own(&[]);
    for (tool, condition) in [
        ("objects", "_name = \"dog1\""),
        ("objects", "not (_name ~ \"d*\")"),
        ("stat", "_name != \"dog1\""),
        ("strings", "_firstChar = \"t\""),
    ] {
        let why = talk.refusal(tool, json!({ "where": condition }));
        assert!(why.contains("texts are hidden here"), "{tool} {condition}: {why}");
    }
    let mut crashed = Talk::start(&[crate::corpus::dump("net10-wks-crash-heap").to_str().unwrap()]);
    crashed.greet("2025-06-18");
    let why = crashed.refusal("exceptions", json!({ "where": "message ~ \"*a*\"" }));
    assert!(why.contains("texts are hidden here: a condition cannot compare message"), "{why}");
    // Numbers, names of types and null are not texts of the program.
    for condition in ["_name != null", "size > 10", "type ~ \"Lab.*\""] {
        let all = talk.answer("stat", json!({ "where": condition, "type": "Lab.Dog" }));
        assert_eq!(all["data"]["totals"]["count"], 100, "{condition}");
    }
    // What is not shown is unknown, and not empty. The names of the runtime's own settings are shown.
    let env = talk.answer("env", json!({}));
    assert_eq!(env["data"]["environment"], Value::Null, "{env}");
    let settings = talk.answer("info", json!({}))["data"]["settings"].as_array().unwrap().clone();
    let of_environment = settings.iter().filter(|s| s["source"] == "environment").collect::<Vec<_>>();
    assert!(!of_environment.is_empty() && of_environment.iter().all(|s| s["value"] == "(hidden)"), "{settings:?}");
    assert!(of_environment.iter().any(|s| s["name"] == "DOTNET_gcServer"), "{settings:?}");
}
