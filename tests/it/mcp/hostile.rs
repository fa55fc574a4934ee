//! Hostile clients and folders of the server.

use super::*;

#[test]
fn a_batch_is_bounded() {
    let mut talk = Talk::about_own(&[]);
    talk.greet("2025-03-26");
    let list = |n: usize| {
        let request = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
        Value::Array((0..n).map(request).collect())
    };
    // An earlier version answered 19 000 of these in 15 s with 344 MiB, and used 3.1 GiB.
    let start = Instant::now();
    for n in [33, 19_000] {
        talk.send(&list(n));
        let answer = talk.receive();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &(-32600).into()));
        let why = answer["error"]["message"].as_str().unwrap();
        assert!(why.contains("at most 32 requests") && why.contains(&n.to_string()), "{why}");
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    talk.send(&list(32));
    let answers = talk.receive();
    assert!(answers.as_array().is_some_and(|all| all.len() == 32 && all.iter().all(|one| one["result"]["tools"].is_array())));
    assert!(answers.to_string().len() < 1_000_000);
    // Calls with large answers, which together are limited to the size of a batch.
    let call = |id: u64| {
        let arguments = json!({ "min_count": 1, "top": 200, "max_chars": 400 });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "strings", "arguments": arguments } })
    };
    talk.send(&(0..32).map(call).collect());
    let answers = talk.receive();
    assert!(answers.to_string().len() < 1_050_000, "{}", answers.to_string().len());
    let all = answers.as_array().unwrap();
    assert_eq!(all.len(), 32);
    assert!(all[0]["result"].is_object());
    for refused in all.iter().filter(|one| one["error"].is_object()) {
        assert!(refused["error"]["message"].as_str().unwrap().contains("send this request by itself"), "{refused}");
    }
    assert_eq!(talk.ask("ping", json!({}))["result"], json!({}));
}

#[test]
fn errors_repeat_little_of_what_was_sent() {
    let mut talk = Talk::about_own(&[]);
    let long = "where".repeat(100_000);
    let calls = [
        ("stat", json!({ "where": long })),
        ("stat", json!({ "type": [long] })),
        ("stat", json!({ "by": long })),
        ("stat", json!({ "type": vec!["A"; 100_000] })),
        ("stat", json!({ "where": long.get(..4000) })),
        ("object", json!({ "address": long })),
        ("object", json!({ "address": long.get(..4000) })),
        ("info", json!({ "dump": long })),
        ("info", json!({ "dump": long.get(..4000) })),
        ("info", json!({ long.as_str(): 1 })),
        ("objects", json!({ "fields": [long.get(..4000)] })),
    ];
    for (tool, arguments) in calls {
        let result = talk.call(tool, arguments.clone());
        let text = result.to_string();
        let document = result["content"][0]["text"].as_str().unwrap().len();
        assert!(document <= 100_000, "{tool}: {document}");
        if result["isError"] == true {
            assert!(text.len() < 12_000, "{tool}: {}", text.len());
            let repeated = text.matches("where").count();
            assert!(repeated <= 90, "{tool}: {repeated} of {}", text.get(..500).unwrap_or(&text));
        }
    }
    for (method, params) in [
        (long.as_str(), json!({})),
        ("tools/call", json!({ "name": long })),
        ("ping", json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": long } })),
        ("ping", json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": [long] } })),
        ("initialize", json!({ "protocolVersion": long })),
    ] {
        let answer = talk.ask(method, params).to_string();
        assert!(answer.len() < 5_000 && answer.matches("where").count() <= 90, "{}", answer.get(..500).unwrap_or(&answer));
    }
    talk.send(&json!({ "jsonrpc": "2.0", "id": long, "method": "ping" }));
    let answer = talk.receive();
    assert!(answer["id"].is_null() && answer.to_string().len() < 1_000, "{answer}");
    // Each message about progress contains the client's token.
    let meta = json!({ "progressToken": long });
    assert!(talk.ask("tools/call", json!({ "name": "info", "_meta": meta }))["result"].is_object());
}

#[test]
fn one_message_is_answered_without_a_process() {
    let line = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(gcdump::cli::mcp_conversation(line.to_vec()), b"{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{}}\n");
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"info","arguments":{"dump":"/etc/passwd"}}}"#;
    let refused = String::from_utf8(gcdump::cli::mcp_conversation(call.to_vec())).unwrap();
    assert!(refused.contains("outside of what this server may read"), "{refused}");
}

/// A name in the folder is alternately a dump in the folder and a link to one outside.
#[cfg(unix)]
#[test]
fn a_name_that_becomes_a_link_is_not_followed() {
    use crate::support::{Shape, Spec};
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let (root, outside) = (folder.join("root"), folder.join("outside"));
    for folder in [&root, &outside, &root.join("real")] {
        fs::create_dir(folder).unwrap();
    }
    // The dump outside is longer.
    let dump = Spec::standard(Shape::ALL[0]).build().to_elf_core();
    let longer = [&dump[..], &[0; 4096]].concat();
    let (inside, secret) = (root.join("real/dump.dmp"), outside.join("dump.dmp"));
    fs::write(&inside, &dump).unwrap();
    fs::write(&secret, &longer).unwrap();
    let (stop, swaps) = (std::sync::Arc::new(AtomicBool::new(false)), std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0)));
    let swapping = {
        let (stop, swaps, root) = (stop.clone(), swaps.clone(), root.clone());
        std::thread::spawn(move || {
            let (name, link) = (root.join("dump.dmp"), root.join("folder"));
            while !stop.load(Ordering::Relaxed) {
                for hard in [true, false] {
                    let (next, next_folder) = (root.join(".next"), root.join(".folder"));
                    if hard { fs::hard_link(&inside, &next) } else { symlink(&secret, &next) }.unwrap();
                    fs::rename(&next, &name).unwrap();
                    symlink(if hard { root.join("real") } else { outside.clone() }, &next_folder).unwrap();
                    fs::rename(&next_folder, &link).unwrap();
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    };
    let mut talk = Talk::start_in(&root, &["--root", "."]);
    talk.greet("2025-06-18");
    let (mut answers, mut refusals) = (0, 0);
    for i in 0..cases(400, 1500) {
        let name = if i % 2 == 0 { "dump.dmp" } else { "folder/dump.dmp" };
        if i % 50 == 0 {
            let listed = talk.answer("dumps", json!({}));
            let sizes = listed["dumps"].as_array().unwrap().iter().map(|dump| dump["bytes"].as_u64().unwrap());
            assert!(sizes.into_iter().all(|bytes| bytes == dump.len() as u64), "{listed}");
        }
        let result = talk.call("info", json!({ "dump": name }));
        if result["isError"] == false {
            let bytes = document(&result)["data"]["file_bytes"].as_u64();
            assert_eq!(bytes, Some(dump.len() as u64), "{result}");
            answers += 1;
        } else {
            let why = result["content"][0]["text"].as_str().unwrap();
            assert!(why.contains("outside of what this server may read") || why.contains("there is no file"), "{why}");
            refusals += 1;
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    println!("{answers} answers, {refusals} refusals, {} swaps", swaps.load(Ordering::Relaxed));
    assert!(answers > 20 && refusals > 20, "{answers} answers, {refusals} refusals");
}
