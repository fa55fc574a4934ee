//! Requests that ASP.NET Core served when its process was dumped, compared with the records of the clients and the service.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gcdump::Dump;
use gcdump::cli::Exit;
use gcdump::internals::base::Addr;
use serde_json::Value;

use crate::common::{self, Known, ask, number, web_dumps};
use crate::harness::Tested;

fn list<'v>(v: &'v Value, key: &str) -> &'v [Value] {
    v[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(v: &'v Value, key: &str) -> &'v str {
    v[key].as_str().unwrap_or_default()
}

fn incoming(path: &Path) -> Value {
    let (_, answer) = ask(path, &["requests", "--incoming"]);
    answer["data"].clone()
}

/// Number of requests by path, as counted by the service, including the request that asked for the count.
fn served(dump: &Known) -> BTreeMap<String, u64> {
    let counts = dump.truth.as_ref().unwrap()["process"]["inflight"].as_object().unwrap();
    counts.iter().filter(|(path, _)| *path != "/truth").map(|(path, n)| (path.clone(), n.as_u64().unwrap())).collect()
}

#[test]
fn incoming_requests_are_those_that_the_service_counted() -> Tested {
    for dump in &web_dumps()? {
        let truth = dump.truth.as_ref().unwrap();
        let found = incoming(&dump.path);
        let requests = list(&found, "requests");
        let mut have: BTreeMap<String, u64> = BTreeMap::new();
        requests.iter().for_each(|r| *have.entry(text(r, "uri").into()).or_default() += 1);
        assert_eq!(have, served(dump), "{}", dump.name);
        assert_eq!(requests.len() as u64, truth["answers"]["requests_in"]["count"].as_u64().unwrap(), "{}", dump.name);
        let is_http2 = dump.scenario == "web-http2";
        let protocol = if is_http2 { "HTTP/2" } else { "HTTP/1.1" };
        for request in requests {
            assert_eq!((text(request, "direction"), text(request, "state"), text(request, "method")), ("incoming", "processing", "GET"));
            assert_eq!(text(request, "protocol"), protocol, "{request}");
            assert!(text(request, "endpoint").starts_with("HTTP: GET /"), "{request}");
            assert!(text(request, "remote").starts_with("127.0.0.1:") && number(&request["connection"]) != 0, "{request}");
            // All requests began within the minute before the dump.
            assert!(request["age_ms"].as_u64().is_some_and(|ms| ms < 60_000) && text(request, "start_utc").ends_with('Z'), "{request}");
        }
        // Oldest first.
        assert!(requests.is_sorted_by_key(|r| text(r, "start_utc").to_string()), "{}", dump.name);
        let of = |key: &str| -> BTreeSet<&str> { requests.iter().map(|r| text(r, key)).collect() };
        let connections = if is_http2 { 1 } else { requests.len() };
        assert_eq!((of("connection_id").len(), of("remote").len()), (connections, connections), "{}", dump.name);
        for (n, port) in list(truth, "client_ports_of_first").iter().enumerate() {
            let first = requests.iter().find(|r| text(r, "uri") == format!("/pay/{n}")).unwrap();
            assert_eq!(text(first, "remote"), format!("127.0.0.1:{port}"), "{}", dump.name);
        }
        assert_eq!((list(&found, "pools").len(), list(&found, "sockets").len()), (0, 0));
        println!("{}: {} of {} requests", dump.name, requests.len(), requests.len());
    }
    Ok(())
}

#[test]
fn incoming_requests_wait_for_what_async_says() -> Tested {
    for dump in &web_dumps()? {
        let found = incoming(&dump.path);
        let (_, chains) = ask(&dump.path, &["async"]);
        let of = |v: &Value| -> Vec<Value> { list(v, "frames").iter().map(|f| f["object"].clone()).collect() };
        // The root of each chain, by its innermost method.
        let roots: BTreeMap<u64, (&Value, Vec<Value>)> = list(&chains["data"], "chains")
            .iter()
            .filter_map(|c| Some((number(&list(c, "frames").first()?["object"]), (&c["root"], of(c)))))
            .collect();
        let mut waits: BTreeMap<String, u64> = BTreeMap::new();
        for request in list(&found, "requests") {
            let frames = of(request);
            let (root, all) = &roots[&number(&request["waiter"])];
            assert_eq!((&request["waits_for"], all.starts_with(&frames)), (*root, true), "{}: {request}", dump.name);
            assert!(request["thread"].is_null(), "{request}");
            let handler = list(request, "frames").iter().map(|f| text(f, "display")).find(|m| m.starts_with("Web.Program.Main."));
            assert!(handler.is_some(), "{}: {request}", dump.name);
            *waits
                .entry(format!("{} {}", text(&request["waits_for"], "kind"), text(request, "uri").split('/').nth(1).unwrap()))
                .or_default() += 1;
        }
        let expected: &[(&str, u64)] = match dump.scenario.as_str() {
            "web-hung" => &[("promise export", 60), ("promise pay", 1), ("semaphore pay", 499)],
            _ => &[("promise export", 30)],
        };
        assert_eq!(waits, expected.iter().map(|(what, n)| (what.to_string(), *n)).collect(), "{}", dump.name);
    }
    Ok(())
}

/// Returns the address of a field of the object at `object`.
fn field(path: &Path, object: &str, name: &str) -> Addr {
    let (_, answer) = ask(path, &["object", object]);
    let fields = list(&answer["data"], "fields");
    Addr(number(&fields.iter().rfind(|f| text(f, "name") == name).unwrap_or_else(|| panic!("{object} has no {name}"))["address"]))
}

#[test]
fn requests_that_have_ended_are_not_in_flight_and_states_are_read() -> Tested {
    let dumps = web_dumps()?;
    for dump in dumps.iter().filter(|d| d.runtime == "net10") {
        let before = incoming(&dump.path);
        let objects: Vec<&str> = list(&before, "requests").iter().map(|r| text(r, "object")).collect();
        let server = |object: &str| {
            let (_, answer) = ask(&dump.path, &["object", object]);
            let features = list(&answer["data"], "fields").iter().find(|f| text(f, "name") == "_features").unwrap();
            let found = list(features, "fields").iter().find(|f| text(f, "name").ends_with("<Collection>k__BackingField"));
            text(found.unwrap(), "object").to_string()
        };
        let file = Dump::open(&dump.path, &gcdump::OpenOptions::default()).unwrap();
        let bytes = std::fs::read(&dump.path).unwrap();
        let changes = [
            // The context is back in the pool of its connection.
            (field(&dump.path, objects[0], "_active"), 0, 1),
            (field(&dump.path, &server(objects[1]), "_requestProcessingStatus"), 4, 4),
            (field(&dump.path, &server(objects[2]), "<IsUpgraded>k__BackingField"), 1, 1),
            (field(&dump.path, &server(objects[3]), "<IsExtendedConnectAccepted>k__BackingField"), 1, 1),
        ];
        let changed = common::with_words(file.file(), &bytes, file.memory().shape().endian, &changes);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("changed.dmp");
        std::fs::write(&path, changed).unwrap();
        let after = incoming(&path);
        let state = |object: &str| {
            let found = list(&after, "requests").iter().find(|r| text(r, "object") == object);
            found.map(|r| text(r, "state").to_string())
        };
        let states: Vec<Option<String>> = objects[..5].iter().map(|o| state(o)).collect();
        let expected = [None, Some("responding"), Some("upgraded"), Some("upgraded"), Some("processing")];
        assert_eq!(states.iter().map(Option::as_deref).collect::<Vec<_>>(), expected, "{}", dump.name);
        assert_eq!(after["others"].as_u64().unwrap(), before["others"].as_u64().unwrap() + 1);
    }
    Ok(())
}

#[test]
fn each_side_of_requests_is_listed_on_request() -> Tested {
    for dump in &web_dumps()? {
        let sides = |options: &[&str]| {
            let command: Vec<&str> = std::iter::once("requests").chain(options.iter().copied()).collect();
            let (_, answer) = ask(&dump.path, &command);
            let rows = list(&answer["data"], "requests").to_vec();
            let of = |side: &str| rows.iter().filter(|r| text(r, "direction") == side).count();
            (of("incoming"), of("outgoing"), !list(&answer["data"], "sockets").is_empty())
        };
        let (all, served, sent) = (sides(&[]), sides(&["--incoming"]), sides(&["--outgoing"]));
        assert_eq!((served, sent), ((all.0, 0, false), (0, all.1, true)), "{}", dump.name);
        // Connections with requests are accepted connections.
        let (_, answer) = ask(&dump.path, &["requests"]);
        let peers = list(&answer["data"], "peers");
        let accepted: u64 = peers.iter().filter(|p| p["state"] == "accepted").map(|p| p["count"].as_u64().unwrap()).sum();
        let serving: BTreeSet<&str> =
            list(&answer["data"], "requests").iter().map(|r| text(r, "connection_id")).filter(|id| !id.is_empty()).collect();
        assert!(accepted >= serving.len() as u64 && peers.iter().any(|p| p["state"] == "listening"), "{}: {peers:?}", dump.name);
        let both = common::run(&["requests", "--incoming", "--outgoing", dump.path.to_str().unwrap()]);
        assert_eq!(both.exit, Exit::Usage);
    }
    Ok(())
}
