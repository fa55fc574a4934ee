//! `gcdump mcp`: conversations over pipes with the real program.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::common::{ask, cases, full, own_unpacked, run, sample};
use gcdump::Dump;
use gcdump::cli::Exit;
use serde_json::{Map, Value, json};

mod follow;
mod hostile;

/// Objects in the dump of the repository: one with fields of every kind, and a string.
const EVERYTHING: &str = "0x7f316dc27908";
const STRING: &str = "0x7f3d36400008";
/// Placeholder of an object in the examples of the schemas.
const OBJECT: &str = "0x7f31535a25f8";

fn leak(which: &str) -> String {
    format!("{}/dumps/corpus/net10-wks-leak-heap.{which}.dmp.zst", env!("CARGO_MANIFEST_DIR"))
}

/// A running server, and its output.
struct Talk {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    asked: u64,
}

impl Talk {
    /// Starts a server in `folder`.
    fn start_in(folder: &Path, args: &[&str]) -> Talk {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gcdump"));
        command.arg("mcp").arg("--no-local-files").args(args).current_dir(folder).env_remove("GCDUMP_DUMP");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (send, from) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines() {
                // Only messages may be written.
                let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        Talk { to: child.stdin.take(), child, from, asked: 0 }
    }

    fn start(args: &[&str]) -> Talk {
        Talk::start_in(Path::new(env!("CARGO_MANIFEST_DIR")), args)
    }

    /// Starts a server for the own dump, and performs the handshake.
    fn about_own(more: &[&str]) -> Talk {
        let dump = own_unpacked();
        let mut talk = Talk::start(&[more, &[dump.to_str().unwrap()]].concat());
        talk.greet("2025-06-18");
        talk
    }

    fn greet(&mut self, version: &str) -> Value {
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let answer = self.ask("initialize", params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer["result"].clone()
    }

    fn raw(&mut self, bytes: &[u8]) {
        let to = self.to.as_mut().unwrap();
        to.write_all(bytes).and_then(|()| to.flush()).unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    fn receive(&self) -> Value {
        self.from.recv_timeout(Duration::from_secs(120)).expect("an answer")
    }

    /// Sends a request and returns its id.
    fn request(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        self.asked
    }

    /// Sends a request and returns the answer.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.receive();
        assert_eq!((&answer["id"], &answer["jsonrpc"]), (&id.into(), &"2.0".into()), "{answer}");
        answer
    }

    /// Calls a tool and returns the result.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }

    /// Returns the whole document that a tool answers with.
    fn answer(&mut self, tool: &str, mut arguments: Value) -> Value {
        arguments["max_bytes"] = 100_000.into();
        let result = self.call(tool, arguments.clone());
        assert_eq!(result["isError"], false, "{tool} {arguments}: {result}");
        document(&result)
    }

    /// Returns the message with which a tool refuses.
    fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_string()
    }

    fn tools(&mut self) -> Vec<Value> {
        self.ask("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone()
    }

    /// Ends the input. Returns the exit code, and the server's output besides the protocol.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.to.take());
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), err)
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the document of an answer.
fn document(result: &Value) -> Value {
    assert!(result["structuredContent"].is_null(), "an answer is there once");
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

/// Returns the notes beside a document.
fn beside(result: &Value) -> &str {
    result["content"][1]["text"].as_str().unwrap_or_default()
}

/// Fills in an example of a schema with names that exist.
fn filled(example: &Value) -> Value {
    let text = example.to_string().replace(OBJECT, EVERYTHING);
    let text = text.replace("before.dmp", &leak("before")).replace("after.dmp", &leak("after"));
    serde_json::from_str(&text).unwrap()
}

/// Every example of every tool.
fn examples(tools: &[Value]) -> Vec<(String, Value)> {
    let of = |tool: &Value| {
        let bare = tool["inputSchema"]["required"].is_null() && !["path", "refs"].contains(&tool["name"].as_str().unwrap());
        let shown = tool["inputSchema"]["examples"].as_array().into_iter().flatten().map(filled);
        shown.chain(bare.then(|| json!({}))).collect::<Vec<_>>()
    };
    tools.iter().flat_map(|tool| of(tool).into_iter().map(|e| (tool["name"].as_str().unwrap().to_string(), e))).collect()
}

#[test]
fn a_conversation_begins_with_a_handshake_and_ends_with_the_input() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let mut talk = Talk::start(&[own_unpacked().to_str().unwrap()]);
        let hello = talk.greet(asked);
        assert_eq!((&hello["protocolVersion"], &hello["serverInfo"]["name"]), (&agreed.into(), &"gcdump".into()));
        assert_eq!(hello["capabilities"], json!({ "tools": {}, "prompts": {}, "resources": {} }));
        let instructions = hello["instructions"].as_str().unwrap();
        assert!(["complete", "never an instruction", "--contents"].iter().all(|part| instructions.contains(part)), "{instructions}");
        assert_eq!(talk.ask("ping", json!({}))["result"], json!({}));
        let tools = talk.tools();
        assert!((15..=20).contains(&tools.len()), "{}", tools.len());
        assert!(Value::from(tools).to_string().len() <= 25_000, "{asked}");
        assert_eq!(talk.answer("heap", json!({}))["command"], "heap", "{asked}");
        assert_eq!(talk.end(), (Some(0), String::new()), "{asked}");
    }
    // The version of the protocol without a handshake.
    let meta = |version: &str| json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {} } });
    let mut talk = Talk::start(&[own_unpacked().to_str().unwrap()]);
    let discovered = talk.ask("server/discover", meta("2026-07-28"))["result"].clone();
    assert_eq!((&discovered["supportedVersions"], &discovered["resultType"]), (&json!(["2026-07-28"]), &"complete".into()));
    assert_eq!(discovered["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "gcdump");
    let mut call = meta("2026-07-28");
    call["name"] = "heap".into();
    let heap = talk.ask("tools/call", call)["result"].clone();
    assert_eq!((&heap["resultType"], &document(&heap)["command"]), (&"complete".into(), &"heap".into()));
    let error = talk.ask("tools/list", meta("2031-01-01"))["error"].clone();
    assert_eq!((&error["code"], &error["data"]["supported"]), (&(-32022).into(), &json!(["2026-07-28"])));
}

#[test]
fn calls_before_the_end_of_input_are_answered() {
    let mut talk = Talk::start(&[own_unpacked().to_str().unwrap()]);
    let id = talk.request("tools/call", json!({ "name": "retained", "arguments": {} }));
    drop(talk.to.take());
    let answer = talk.receive();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&id.into(), &false.into()));
    assert_eq!(talk.child.wait().unwrap().code(), Some(0));
}

#[test]
fn every_tool_answers_its_examples_as_its_schemas_say() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus");
    for contents in sample([&["--contents"][..], &[]], 2) {
        let mut talk = Talk::about_own(&[contents, &["--root", corpus.to_str().unwrap()][..]].concat());
        let tools = talk.tools();
        for tool in &tools {
            let name = tool["name"].as_str().unwrap();
            assert!(tool["annotations"]["readOnlyHint"] == true && tool["inputSchema"]["type"] == "object", "{name}");
            let input = jsonschema::validator_for(&tool["inputSchema"]).unwrap();
            assert!(name == "help" || talk.refusal(name, json!({ "no_such": 1 })).len() > 20, "{name}");
            for (_, mut example) in examples(std::slice::from_ref(tool)) {
                assert!(input.is_valid(&example), "{name} {example}");
                let result = talk.call(name, example.clone());
                assert_eq!(result["isError"], false, "{name} {example}: {}", result["content"][0]["text"]);
                let bytes: usize = result["content"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap().len()).sum();
                assert!(bytes <= 8000, "{name} {example}: {bytes}");
                assert!(document(&result).is_object(), "{name} {example}");
                if ["dumps", "help"].contains(&name) {
                    continue;
                }
                example["max_bytes"] = 100_000.into();
                let whole = document(&talk.call(name, example.clone()));
                crate::schema::assert_fits(whole["command"].as_str().unwrap(), &whole);
            }
        }
    }
}

#[test]
fn tools_answer_as_the_command_line() {
    let dump = own_unpacked().canonicalize().unwrap();
    let mut talk = Talk::about_own(&["--contents"]);
    for (tool, arguments, command) in [
        ("info", json!({}), &["info"][..]),
        ("heap", json!({ "detail": true }), &["heap", "--detail"]),
        ("stat", json!({}), &["stat", "--top", "20"]),
        ("stat", json!({ "type": ["Lab.*"], "top": 3, "sort": "Count" }), &["stat", "--type", "Lab.*", "--top", "3", "--sort", "count"]),
        ("objects", json!({ "count": 2, "start": 5, "refs": true }), &["objects", "--count", "2", "--start", "5", "--refs"]),
        ("object", json!({ "address": STRING }), &["object", STRING, "--count", "20", "--items", "20"]),
        ("path", json!({ "address": EVERYTHING, "paths": 1 }), &["path", EVERYTHING, "--paths", "1"]),
        ("retained", json!({ "suspects": true, "threshold": 1.5 }), &["retained", "--suspects", "--threshold", "1.5", "--top", "20"]),
        ("strings", json!({ "longest": true, "top": 2 }), &["strings", "--longest", "--top", "2"]),
        ("stacks", json!({}), &["stacks", "--merge"]),
        ("stacks", json!({ "merge": false }), &["stacks"]),
        ("locks", json!({}), &["locks"]),
        ("exceptions", json!({ "stat": true }), &["exceptions", "--stat"]),
        ("analyze", json!({ "min_bytes": "100K" }), &["analyze", "--min-bytes", "100K"]),
    ] {
        let (exit, wanted) = ask(&dump, command);
        assert!(matches!(exit, Exit::Ok | Exit::Partial), "{command:?}");
        assert_eq!(talk.answer(tool, arguments), wanted, "{command:?}");
    }
}

#[test]
fn the_path_of_a_linked_list_is_short() {
    let dump = own_unpacked().canonicalize().unwrap();
    let (_, nodes) = ask(&dump, &["objects", "--type", "Lab.Node", "--count", "0"]);
    let mut talk = Talk::about_own(&[]);
    let mut folded = 0;
    for node in nodes["data"]["objects"].as_array().unwrap().iter().step_by(99) {
        let result = talk.call("path", json!({ "address": node["address"], "max_bytes": 100_000 }));
        assert_eq!(result["isError"], false, "{result}");
        assert!(result.to_string().len() < 16_000, "{}", result.to_string().len());
        folded += document(&result)["data"]["paths"][0]["steps"].as_array().unwrap().iter().filter(|s| s["fold"].is_object()).count();
    }
    assert!(folded > 5, "{folded}");
}

#[test]
fn a_refusal_has_the_message_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    fs::write(folder.join("notes.dmp"), "just some text\n").unwrap();
    fs::copy(own_unpacked(), folder.join("own.dmp")).unwrap();
    let mut talk = Talk::start_in(&folder, &[]);
    talk.greet("2025-06-18");
    for (tool, arguments, command) in [
        ("heap", json!({ "dump": "notes.dmp" }), &["heap", "notes.dmp"][..]),
        ("object", json!({ "dump": "own.dmp", "address": "0x10" }), &["object", "0x10", "own.dmp"]),
        ("retained", json!({ "dump": "own.dmp", "object": "0x10" }), &["retained", "--object", "0x10", "own.dmp"]),
        ("stat", json!({ "dump": "own.dmp", "where": "size >" }), &["stat", "--where", "size >", "own.dmp"]),
    ] {
        let mut args: Vec<String> = command.iter().map(ToString::to_string).collect();
        let dump = args.pop().unwrap();
        args.extend(["--no-local-files".into(), folder.join(dump).to_str().unwrap().into()]);
        let ran = run(&args);
        assert!(ran.out.is_empty() && ran.exit != Exit::Ok, "{command:?}");
        let refusal = talk.refusal(tool, arguments);
        if ran.exit == Exit::Usage && refusal.starts_with("gcdump: invalid value") {
            // The message is that of clap, in one line.
            assert!(ran.err.contains(refusal.trim_start_matches("gcdump: ").split(": ").next().unwrap()), "{refusal}\n{}", ran.err);
        } else {
            assert_eq!(refusal, ran.err.trim_end(), "{command:?}");
        }
    }
    // The assistant can correct arguments; mistakes of its host are errors of the protocol.
    assert!(talk.refusal("stat", json!({ "tup": 1 })).contains("did you mean top?"));
    assert!(talk.refusal("stat", json!({ "top": "some" })).contains("from 1 to 200"));
    assert!(talk.refusal("path", json!({})).contains("address is missing"));
    assert!(talk.refusal("retained", json!({ "suspects": true, "tree": true, "dump": "own.dmp" })).contains("cannot be used with"));
    // Negative answers, and those without a match, are answers.
    let result = talk.call("stat", json!({ "dump": "own.dmp", "type": ["No.Such"] }));
    assert!(result["isError"] == true || result["content"][1]["text"].as_str().unwrap().contains("negative"), "{result}");
    let code = |talk: &mut Talk, method: &str, params: Value| talk.ask(method, params)["error"]["code"].as_i64().unwrap();
    assert_eq!(code(&mut talk, "logging/setLevel", json!({})), -32601);
    assert_eq!(code(&mut talk, "resources/read", json!({})), -32602);
    assert_eq!(code(&mut talk, "tools/call", json!({ "name": "trim" })), -32602);
    assert_eq!(code(&mut talk, "tools/call", json!({})), -32602);
    assert_eq!(code(&mut talk, "tools/call", json!({ "name": "heap", "arguments": [] })), -32602);
    assert_eq!(code(&mut talk, "initialize", json!({})), -32602);
    assert_eq!(talk.end(), (Some(0), String::new()));
}

#[test]
fn an_invalid_request_is_reported_and_the_conversation_continues() {
    let mut talk = Talk::about_own(&[]);
    for (sent, code) in [
        (&b"{\"jsonrpc\":\"2.0\",\n"[..], -32700),
        (b"\xff\xfe{}\n", -32700),
        (b"nonsense\n", -32700),
        (b"42\n", -32600),
        (b"[]\n", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n", -32600),
        (b"{\"id\":1,\"method\":\"ping\"}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n", -32600),
    ] {
        talk.raw(sent);
        let answer = talk.receive();
        assert_eq!(
            (answer["error"]["code"].as_i64(), &answer["jsonrpc"]),
            (Some(code), &"2.0".into()),
            "{}",
            String::from_utf8_lossy(sent)
        );
    }
    // A message that is nested deeper than any request, and longer.
    talk.raw(&[&b"[".repeat(100_000)[..], b"\n"].concat());
    assert_eq!(talk.receive()["error"]["code"], -32700);
    talk.raw(&[&b"x".repeat(3 << 20)[..], b"\n"].concat());
    let answer = talk.receive();
    assert!(answer["error"]["code"] == -32700 && answer["error"]["message"].as_str().unwrap().contains("1048576"), "{answer}");
    // Neither is answered: the next message answers the ping.
    talk.send(&json!({ "jsonrpc": "2.0", "method": "notifications/nothing", "params": { "a": 1 } }));
    talk.send(&json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
    talk.raw(b"\n  \r\n");
    talk.send(&json!({ "jsonrpc": "2.0", "id": "a string", "method": "ping" }));
    assert_eq!(talk.receive(), json!({ "jsonrpc": "2.0", "id": "a string", "result": {} }));
}

#[test]
fn batches_are_answered_together_in_the_version_that_has_them() {
    let mut talk = Talk::start(&[own_unpacked().to_str().unwrap()]);
    talk.greet("2025-03-26");
    let request = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    talk.send(&json!([
        request(1, "ping", json!({})),
        { "jsonrpc": "2.0", "method": "notifications/nothing" },
        request(2, "tools/call", json!({ "name": "heap" })),
        request(3, "nothing", json!({})),
        4,
        request(5, "initialize", json!({ "protocolVersion": "2025-03-26" })),
    ]));
    let answers = talk.receive();
    let of = |id: Value| answers.as_array().unwrap().iter().find(|a| a["id"] == id).unwrap_or_else(|| panic!("{id}: {answers}"));
    assert_eq!(answers.as_array().unwrap().len(), 5);
    assert_eq!((&of(1.into())["result"], &of(2.into())["result"]["isError"]), (&json!({}), &false.into()));
    assert_eq!((&of(3.into())["error"]["code"], &of(Value::Null)["error"]["code"]), (&(-32601).into(), &(-32600).into()));
    assert_eq!(of(5.into())["error"]["code"], -32600);
    talk.send(&json!([{ "jsonrpc": "2.0", "method": "notifications/nothing" }]));
    assert_eq!(talk.ask("ping", json!({}))["result"], json!({}));
}

#[cfg(unix)]
#[test]
fn only_dumps_below_the_roots_are_read() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let root = folder.join("root");
    fs::create_dir_all(root.join("deep")).unwrap();
    for place in ["secret.dmp", "root/a.dmp", "root/deep/b.dmp"] {
        fs::copy(own_unpacked(), folder.join(place)).unwrap();
    }
    symlink(folder.join("secret.dmp"), root.join("link.dmp")).unwrap();
    symlink(&folder, root.join("up")).unwrap();
    let fifo = Command::new("mkfifo").arg(root.join("pipe.dmp")).status().unwrap();
    assert!(fifo.success());
    let mut talk = Talk::start_in(&folder, &["--root", "root"]);
    talk.greet("2025-06-18");
    let list = talk.answer("dumps", json!({}));
    let paths: Vec<&str> = list["dumps"].as_array().unwrap().iter().map(|d| d["path"].as_str().unwrap()).collect();
    assert_eq!(paths, [root.join("a.dmp").to_str().unwrap(), root.join("deep/b.dmp").to_str().unwrap()]);
    assert!(list["default"].is_null() && list["complete"] == true);
    for inside in ["a.dmp", "deep/b.dmp", "deep/../a.dmp", root.join("a.dmp").to_str().unwrap()] {
        assert_eq!(talk.answer("heap", json!({ "dump": inside }))["command"], "heap", "{inside}");
    }
    let secret = folder.join("secret.dmp");
    for outside in
        ["../secret.dmp", "link.dmp", "up/secret.dmp", "deep/../../secret.dmp", secret.to_str().unwrap(), "/etc/passwd", "/proc/self/mem"]
    {
        let why = talk.refusal("heap", json!({ "dump": outside }));
        assert!(why.contains("outside of what this server may read"), "{outside}: {why}");
        for (tool, pair) in
            [("diff", json!({ "before": "a.dmp", "after": [outside] })), ("analyze", json!({ "dump": "a.dmp", "since": outside }))]
        {
            let why = talk.refusal(tool, pair);
            assert!(why.contains("outside of what this server may read"), "{outside}: {why}");
        }
    }
    // A file outside of the roots is refused with the same words, whether it exists or not.
    let [there, absent] = ["/etc/passwd", "/etc/passwd-no-such"].map(|p| talk.refusal("heap", json!({ "dump": p })).replace(p, ""));
    assert_eq!(there, absent);
    for (given, says) in [
        ("pipe.dmp", "is not a regular file"),
        ("deep", "is not a regular file"),
        ("c.dmp", "there is no file c.dmp"),
        ("a\u{0}b", "a\u{0}b"),
    ] {
        let why = talk.refusal("heap", json!({ "dump": given }));
        assert!(why.contains(says), "{given}: {why}");
    }
    assert!(talk.refusal("heap", json!({})).contains("there are 2 dumps"));
    assert!(talk.answer("dumps", json!({}))["dumps"].as_array().unwrap().iter().any(|d| d["open"] == true));
    // If a dump is given, only that dump can be read.
    let mut alone = Talk::start_in(&folder, &["secret.dmp"]);
    alone.greet("2025-06-18");
    assert_eq!(alone.answer("heap", json!({}))["dump"]["path"], secret.to_str().unwrap());
    assert!(alone.refusal("heap", json!({ "dump": root.join("a.dmp") })).contains("outside"));
    assert_eq!(alone.answer("dumps", json!({}))["default"], secret.to_str().unwrap());
    // A dump that cannot be served is reported at once.
    for args in [&["--root", "no/such"][..], &["--root", "secret.dmp"], &["no-such.dmp"], &["-o", "x"], &["--modules", "no/such"]] {
        let (code, err) = Talk::start_in(&folder, args).end();
        assert!(code == Some(2) && err.starts_with("gcdump: "), "{args:?}: {code:?} {err}");
    }
}

#[test]
fn a_dump_that_was_replaced_is_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dmp.zst");
    let bytes = |talk: &mut Talk| talk.answer("stat", json!({}))["data"]["totals"]["bytes"].as_u64().unwrap();
    fs::copy(leak("before"), &path).unwrap();
    let mut talk = Talk::start_in(folder.path(), &[]);
    talk.greet("2025-06-18");
    let before = bytes(&mut talk);
    assert_eq!(bytes(&mut talk), before);
    let next = folder.path().join("next");
    fs::copy(leak("after"), &next).unwrap();
    fs::rename(next, &path).unwrap();
    assert!(bytes(&mut talk) > before);
}

/// A dump that takes seconds to decompress: the own one, followed by this many megabytes of zeros.
fn slow_dump(folder: &Path) {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let mut to = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
        to.write_all(&fs::read(own_unpacked()).unwrap()).unwrap();
        let zeros = vec![0; 16 << 20];
        for _ in 0..128 {
            to.write_all(&zeros).unwrap();
        }
        to.finish().unwrap()
    });
    fs::write(folder.join("slow.dmp.zst"), made).unwrap();
}

#[test]
fn calls_are_cancelled_and_others_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    slow_dump(folder.path());
    fs::copy(own_unpacked(), folder.path().join("own.dmp")).unwrap();
    let mut talk = Talk::start_in(folder.path(), &[]);
    talk.greet("2025-06-18");
    let begun = Instant::now();
    let slow = talk.request("tools/call", json!({ "name": "heap", "arguments": { "dump": "slow.dmp.zst" } }));
    let waits = talk.request("tools/call", json!({ "name": "stat", "arguments": { "dump": "slow.dmp.zst" } }));
    // Other requests are answered meanwhile.
    assert_eq!(talk.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(talk.ask("tools/list", json!({}))["error"], Value::Null);
    let again = json!({ "jsonrpc": "2.0", "id": slow, "method": "tools/call", "params": { "name": "heap" } });
    talk.send(&again);
    assert_eq!(talk.receive()["error"]["code"], -32600, "an id that is in use");
    std::thread::sleep(Duration::from_millis(100));
    for id in [slow, waits] {
        talk.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "enough" } }));
    }
    // Neither is answered, and the next call does not wait.
    assert_eq!(talk.answer("heap", json!({ "dump": "own.dmp" }))["command"], "heap");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(talk.end(), (Some(0), String::new()));
}

#[test]
fn time_and_memory_of_each_call_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    slow_dump(folder.path());
    fs::copy(own_unpacked(), folder.path().join("own.dmp")).unwrap();
    let mut talk = Talk::start_in(folder.path(), &["--timeout", "400ms"]);
    talk.greet("2025-06-18");
    assert_eq!(talk.refusal("heap", json!({ "dump": "slow.dmp.zst" })), "gcdump: timed out after 400ms; --timeout TIME allows more");
    assert_eq!(talk.answer("heap", json!({ "dump": "own.dmp" }))["command"], "heap");
    let mut talk = Talk::start_in(folder.path(), &["--max-memory", "1K"]);
    talk.greet("2025-06-18");
    let why = talk.refusal("retained", json!({ "dump": "own.dmp" }));
    assert!(why.contains("--max-memory"), "{why}");
}

#[test]
fn answers_that_are_too_large_are_shortened_or_refused() {
    let large = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus/net10-wks-spinopt-heap.dmp.zst");
    let mut talk = Talk::start(&[large.to_str().unwrap()]);
    talk.greet("2025-06-18");
    let asked = json!({ "count": 200, "refs": true, "type": ["System.Object[]"] });
    let sizes = [1000, 8000, 30_000, 100_000].map(|most| {
        let mut asked = asked.clone();
        asked["max_bytes"] = most.into();
        let result = talk.call("objects", asked);
        assert_eq!(result["isError"], false, "{result}");
        let shown = document(&result);
        let objects = shown["data"]["objects"].as_array().unwrap().len();
        let cut = beside(&result).contains(&format!("data.objects: {objects} of ")) || beside(&result).contains("data.objects[].refs: ");
        assert!(cut, "{}", beside(&result));
        assert!(beside(&result).contains("max_bytes (at most 100000)") && shown["data"]["complete"] == true, "{result}");
        let bytes = result["content"][0]["text"].as_str().unwrap().len() + beside(&result).len();
        assert!(bytes <= most, "{most}: {bytes}");
        objects
    });
    assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{sizes:?}");
    // Every tool keeps the limit, and names the fields that it leaves out.
    let mut talk = Talk::about_own(&[]);
    for tool in ["info", "analyze", "heap", "stat", "objects", "retained", "strings", "stacks", "locks", "threads", "pool", "exceptions"] {
        for most in [1000, 1500, 2500] {
            let result = talk.call(tool, json!({ "max_bytes": most }));
            let bytes = result["content"][0]["text"].as_str().unwrap().len() + beside(&result).len();
            assert!(bytes <= most && document(&result).is_object(), "{tool} {most}: {bytes} {result}");
        }
    }
    let result = talk.call("info", json!({ "max_bytes": 1000 }));
    assert!(beside(&result).contains("Left out, to keep the answer at 1000 bytes: runtime; dump; "), "{}", beside(&result));
    // Options with files belong to the server.
    let result = talk.call("more", json!({ "command": "stat --modules /no/such" }));
    assert!(beside(&result).contains("--modules was ignored: the user gives it to the server"), "{}", beside(&result));
    // Rows are limited, and a note says how to get more.
    let mut talk = Talk::about_own(&[]);
    let result = talk.call("stat", json!({}));
    assert_eq!(document(&result)["data"]["types"].as_array().unwrap().len(), 20);
    let note = beside(&result);
    assert!(note.contains("There may be more types than the 20 listed: a larger top (at most 200)"), "{note}");
    assert!(note.contains(r#"Next: {"name":"retained","arguments":{"suspects":true}}"#), "{note}");
    let objects = talk.call("objects", json!({ "count": 3 }));
    assert!(beside(&objects).contains("start = 3"));
    // Nothing to add.
    let path = talk.call("path", json!({ "address": EVERYTHING }));
    assert_eq!(path["content"].as_array().unwrap().len(), 1, "{path}");
}

/// Returns all output of a server for the examples of its tools, and for calls about objects with texts.
fn said(dump: &Path, more: &[&str], objects: &[String]) -> String {
    let mut talk = Talk::start(&[more, &[dump.to_str().unwrap()]].concat());
    talk.greet("2025-06-18");
    let tools = talk.tools();
    let mut calls: Vec<(String, Value)> = examples(&tools).into_iter().filter(|(_, call)| !call.to_string().contains(".dmp")).collect();
    let add = [
        ("objects", json!({ "type": ["System.String"], "fields": ["_firstChar"], "count": 200 })),
        ("objects", json!({ "where": "type = System.String and size > 30", "count": 200 })),
        ("strings", json!({ "like": "*a*", "top": 200 })),
        ("strings", json!({ "longest": true, "top": 200 })),
        ("stacks", json!({ "arguments": true, "roots": true, "waits": true })),
        ("exceptions", json!({})),
        ("path", json!({ "type": ["System.String"] })),
        ("retained", json!({ "type": ["System.String"], "top": 200 })),
    ];
    calls.extend(add.map(|(tool, arguments)| (tool.into(), arguments)));
    calls.extend(objects.iter().flat_map(|a| ["object", "path"].map(|tool| (tool.into(), json!({ "address": a })))));
    let mut out = String::new();
    for (tool, arguments) in calls {
        let result = talk.call(&tool, arguments);
        out.extend(result["content"].as_array().unwrap().iter().map(|c| c["text"].as_str().unwrap()));
    }
    out
}

/// Whether `text` is in `said` as in JSON, also as JSON within JSON.
fn appears(said: &str, text: &str) -> bool {
    let json = Value::from(text).to_string();
    said.contains(&json[1..json.len() - 1])
}

#[test]
fn contents_are_shown_only_if_asked_for() {
    let dump = own_unpacked();
    let folder = tempfile::tempdir().unwrap();
    let redacted = folder.path().join("redacted.dmp");
    let ran = run(&["trim", "--redact", "--no-local-files", dump.to_str().unwrap(), redacted.to_str().unwrap()]);
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    let address = |o: &Value| o["address"].as_str().unwrap().to_string();
    let of = |pattern: &str| {
        let list = ask(&dump, &["objects", "--type", pattern, "--count", if full() { "12" } else { "2" }]).1["data"]["objects"]
            .as_array()
            .unwrap()
            .clone();
        list.iter().map(address).collect::<Vec<_>>()
    };
    let patterns = [
        "System.String",
        "System.Char[]",
        "System.Byte[]",
        "Lab.*",
        "System.Collections.Generic.Dictionary`2",
        "*Exception",
        "System.Action",
    ];
    let objects: Vec<String> = patterns.iter().flat_map(|p| of(p)).collect();
    assert!(objects.len() > cases(8, 40), "{}", objects.len());
    let (hidden, shown, names) = (said(&dump, &[], &objects), said(&dump, &["--contents"], &objects), said(&redacted, &[], &objects));
    let strings: BTreeSet<String> = crate::trim::strings_of(&Dump::open(&dump, &gcdump::OpenOptions::default()).unwrap());
    // A text that a copy without contents also shows is a name.
    let private: Vec<&String> = strings.iter().filter(|text| !appears(&names, text)).collect();
    let seen = |said: &str| private.iter().filter(|text| appears(said, text)).map(|t| t.to_string()).collect::<Vec<String>>();
    assert!(seen(&shown).len() > cases(20, 50), "{} of {} strings", seen(&shown).len(), private.len());
    // The runtime's own variables have public names.
    let confidential = |text: &String| !text.starts_with("DOTNET_");
    assert_eq!(seen(&hidden).into_iter().filter(confidential).collect::<Vec<_>>(), Vec::<String>::new());
    assert!(hidden.contains("(hidden)") && hidden.contains("--contents") && !shown.contains("(hidden)"));
    // Counts and bytes are shown all the same.
    let mut talk = Talk::about_own(&[]);
    let wanted = ask(&dump, &["strings"]).1["data"]["totals"].clone();
    let found = talk.answer("strings", json!({}))["data"]["totals"].clone();
    for key in ["strings", "bytes"] {
        assert_eq!(found[key], wanted[key], "{key}");
    }
}

/// The table of tools in docs/mcp.md equals that of the server.
#[test]
fn the_manual_lists_the_tools() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/mcp.md");
    let old = fs::read_to_string(&path).unwrap();
    let mut talk = Talk::about_own(&[]);
    let mut table = String::from("| tool | answers | arguments |\n| --- | --- | --- |\n");
    for tool in talk.tools() {
        let arguments: &Map<String, Value> = tool["inputSchema"]["properties"].as_object().unwrap();
        let required: Vec<&str> = tool["inputSchema"]["required"].as_array().into_iter().flatten().map(|r| r.as_str().unwrap()).collect();
        let named = |name: &String| if required.contains(&name.as_str()) { format!("**`{name}`**") } else { format!("`{name}`") };
        let arguments: Vec<String> = arguments.keys().map(named).collect();
        let text = |key: &str| tool[key].as_str().unwrap();
        table.push_str(&format!("| `{}` | {} | {} |\n", text("name"), text("description").replace('\n', "<br>"), arguments.join(", ")));
    }
    let (head, rest) = old.split_once("<!-- tools -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- end of tools -->").unwrap();
    let new = format!("{head}<!-- tools -->\n{table}<!-- end of tools -->{tail}");
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        fs::write(&path, &new).unwrap();
    } else {
        assert!(old == new, "docs/mcp.md is outdated; GCDUMP_BLESS=1 cargo test --test it mcp:: rewrites it");
    }
}
