//! Several objects on one command line get the same answers as separately.

use std::io::Write;
use std::process::{Command, Stdio};

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::run;

const DUMP: &str = "dumps/net10-wks-basics-heap.dmp.zst";

/// Returns the addresses of objects, and the output that lists them.
fn dogs(format: &str) -> (Vec<String>, String) {
    let all = run(&["objects", "--type", "Lab.Dog", "--count", "3", "--json", "--no-local-files", DUMP]).json();
    let addresses = all["data"]["objects"].as_array().unwrap().iter().map(|o| o["address"].as_str().unwrap().to_string()).collect();
    (addresses, run(&["objects", "--type", "Lab.Dog", "--count", "3", "--format", format, "--no-local-files", DUMP]).out)
}

fn fed(input: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gcdump"));
    let (stdin, stdout, stderr) = (Stdio::piped(), Stdio::piped(), Stdio::piped());
    let mut child = command.args(args).arg("--no-local-files").stdin(stdin).stdout(stdout).stderr(stderr).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let input = input.to_string();
    // A program that refuses its arguments does not read standard input.
    std::thread::spawn(move || drop(to.write_all(input.as_bytes())));
    let done = child.wait_with_output().unwrap();
    (done.status.code(), String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn answers_are_those_of_each_object() {
    let (dogs, _) = dogs("json");
    let [a, b, c] = dogs.as_slice() else { panic!("{dogs:?}") };
    for command in ["object", "objsize", "near", "where", "path", "refs"] {
        let one = |object: &str| run(&[command, object, "--no-local-files", DUMP]);
        let all = run(&[command, a, b, c, DUMP, "--no-local-files"]);
        assert_eq!(all.out, [a, b, c].map(|object| one(object).out).join("\n"), "{command}");
        assert_eq!((all.exit, one(a).exit), (Exit::Ok, Exit::Ok), "{command}: {}", all.err);
        // The dump may come first, too. Each format has one answer after the other.
        let json = run(&[DUMP, command, "--json", a, b, "--no-local-files"]);
        let documents: Vec<Value> = serde_json::Deserializer::from_str(&json.out).into_iter().map(Result::unwrap).collect();
        let each = [a, b].map(|object| run(&[command, object, "--json", "--no-local-files", DUMP]).json());
        assert_eq!(documents, each, "{command}");
    }
    let all = run(&["retained", "--object", a, "--object", b, "--no-local-files", DUMP]);
    let each = [a, b].map(|object| run(&["retained", "--object", object, "--no-local-files", DUMP]).out);
    assert_eq!(all.out, each.join("\n"));
    assert_eq!(run(&["object", a, b, "--format", "csv", DUMP]).exit, Exit::Usage);
}

#[test]
fn an_object_that_does_not_exist_does_not_end_the_command() {
    let (dogs, _) = dogs("json");
    let ran = run(&["object", "0x10", &dogs[0], "0x18", "--no-fields", "--no-local-files", DUMP]);
    assert_eq!(ran.exit, Exit::Negative);
    assert!(ran.out.contains(&dogs[0]) && ran.out.matches("Method table").count() == 1, "{}", ran.out);
    for missing in ["0x10", "0x18"] {
        assert!(ran.err.contains(&format!("there is no object at {missing}; `gcdump where {missing}` says what is there")), "{}", ran.err);
    }
    // With an object that exists and a dump that does not, nothing is answered.
    assert_eq!(run(&["object", &dogs[0], &dogs[1], "no-such.dmp"]).exit, Exit::BadDump);
}

#[test]
fn objects_come_from_standard_input_as_objects_prints_them() {
    let expected = {
        let (dogs, _) = dogs("json");
        let words: Vec<&str> = ["path"].into_iter().chain(dogs.iter().map(String::as_str)).chain(["--no-local-files", DUMP]).collect();
        run(&words).out
    };
    for format in ["csv", "ndjson", "table"] {
        let (code, out, err) = fed(&dogs(format).1, &["path", "-", DUMP]);
        assert_eq!((code, out.as_str()), (Some(0), expected.as_str()), "{format}: {err}");
    }
    let (code, out, _) = fed("Lab.Program.Keep\n\nLab.Program.Truth\n", &["retained", "--object", "-", DUMP, "--json"]);
    assert_eq!((code, out.matches("\"command\":\"retained\"").count()), (Some(0), 2));
    for refused in ["", "address\n", "?\n"] {
        let (code, _, err) = fed(refused, &["path", "-", DUMP]);
        assert_eq!(code, Some(2), "{refused:?}: {err}");
    }
}

#[test]
fn static_fields_are_sorted_by_retained_size() {
    let plain = run(&["statics", "--json", "--no-local-files", DUMP]).json();
    let found = run(&["statics", "--retained", "--json", "--no-local-files", DUMP]).json();
    let rows = found["data"]["statics"].as_array().unwrap();
    let sizes: Vec<Option<u64>> = rows.iter().map(|r| r["retained"].as_u64()).collect();
    let known: Vec<u64> = sizes.iter().copied().map_while(|size| size).collect();
    assert!(known.len() > 50 && known.is_sorted_by(|a, b| a >= b) && sizes.iter().skip(known.len()).all(Option::is_none), "{sizes:?}");
    // Each value equals that of `retained`.
    for row in rows.iter().filter(|r| r["kind"] == "object").take(5) {
        let object = row["object"].as_str().unwrap();
        let asked = run(&["retained", "--object", object, "--json", "--no-local-files", DUMP]).json();
        assert_eq!(asked["data"]["object"]["retained"], row["retained"], "{object}");
    }
    assert_eq!(rows.len(), plain["data"]["statics"].as_array().unwrap().len());
    assert!(plain["data"]["statics"].as_array().unwrap().iter().all(|r| r["retained"].is_null()));
    let refused = run(&["statics", "--sort", "retained", DUMP]);
    assert_eq!(refused.exit, Exit::Usage, "{}", refused.err);
    let by_name = run(&["statics", "--retained", "--sort", "name", "--json", "--no-local-files", DUMP]).json();
    assert!(by_name["data"]["statics"].as_array().unwrap().is_sorted_by_key(|r| r["name"].as_str().unwrap()));
}

#[test]
fn groups_retain_the_bytes_of_their_objects() {
    let ask = |by: &str| run(&["retained", "--by", by, "--json", "--no-local-files", DUMP]).json()["data"].clone();
    let sum = |data: &Value, field: &str| data["groups"].as_array().unwrap().iter().map(|g| g[field].as_u64().unwrap()).sum::<u64>();
    let roots = ask("root");
    // Each reachable byte belongs to one root or to several.
    assert_eq!(sum(&roots, "retained"), roots["totals"]["reachable_bytes"].as_u64().unwrap());
    assert_eq!(roots["group_count"].as_u64().unwrap(), roots["groups"].as_array().unwrap().len() as u64);
    for by in ["namespace", "assembly"] {
        let data = ask(by);
        assert_eq!(sum(&data, "count"), data["totals"]["reachable_objects"].as_u64().unwrap(), "{by}");
        assert_eq!(sum(&data, "bytes"), data["totals"]["reachable_bytes"].as_u64().unwrap(), "{by}");
        let retained: Vec<u64> = data["groups"].as_array().unwrap().iter().map(|g| g["retained"].as_u64().unwrap()).collect();
        assert!(retained.is_sorted_by(|a, b| a >= b) && retained[0] <= data["totals"]["reachable_bytes"].as_u64().unwrap(), "{by}");
    }
    let keep = &ask("static")["groups"][0];
    let alone = run(&["retained", "--object", "Lab.Program.Keep", "--json", "--no-local-files", DUMP]).json();
    assert_eq!((keep["key"].as_str(), &keep["retained"]), (Some("Lab.Program.Keep"), &alone["data"]["object"]["retained"]));
    assert!(ask("thread")["groups"].as_array().unwrap().iter().all(|g| g["key"].as_str().unwrap().starts_with("thread ")));
    assert_eq!(run(&["retained", "--by", "root", "--tree", DUMP]).exit, Exit::Usage);
}

#[test]
fn info_has_a_line_for_each_of_several_dumps() {
    const OTHER: &str = "dumps/corpus/net8-svr-handles-heap.dmp.zst";
    let ran = run(&["info", DUMP, OTHER, "--no-local-files"]);
    let lines: Vec<&str> = ran.out.lines().collect();
    let [first, second] = lines.as_slice() else { panic!("{}", ran.out) };
    assert!(first.starts_with(&format!("{DUMP}: lab (3005), .NET 10.0")) && first.contains("heap dump, GC heap "), "{first}");
    assert!(second.starts_with(&format!("{OTHER}: ")) && second.contains(".NET 8"), "{second}");
    // Without the command, too; each format has the same fields as for one dump.
    assert_eq!(run(&[DUMP, OTHER, "--no-local-files"]).out, ran.out);
    let json = run(&["info", DUMP, OTHER, "--json", "--no-local-files"]);
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&json.out).into_iter().map(Result::unwrap).collect();
    let each = [DUMP, OTHER].map(|dump| run(&["info", dump, "--json", "--no-local-files"]).json());
    assert_eq!(documents, each);
    // A file that is not a dump gets a message.
    let ran = run(&["info", DUMP, "README.md", OTHER, "--no-local-files"]);
    assert!(ran.exit == Exit::BadDump && ran.out.lines().count() == 2 && ran.err.contains("README.md is a text file"), "{}", ran.err);
}
