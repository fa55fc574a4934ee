//! The command line: output streams, messages and exit codes.

use crate::common;
use crate::harness::Tested;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{own_dump, run};

use gcdump::cli::Exit;

/// The dump, by the relative path used in the README. Tests run in the package folder.
const DUMP: &str = "dumps/net10-wks-basics-heap.dmp.zst";

macro_rules! shows {
    ($name:ident, $($arg:literal),+) => {
        #[test]
        fn $name() {
            let ran = run(&[$($arg),+, "--no-local-files", DUMP]);
            assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
            assert_eq!(ran.err, "");
            insta::assert_snapshot!(ran.out);
        }
    };
}

shows!(info_shows_what_the_dump_is, "info");
shows!(heap_shows_generations, "heap");
shows!(heap_detail_shows_everything, "heap", "--detail");
shows!(segments_shows_regions, "segments");
shows!(segments_free_and_walk, "segments", "--free", "--walk");
shows!(handles_shows_objects, "handles");
shows!(handles_stat_counts, "handles", "--stat");
shows!(oom_says_none, "oom");
shows!(threads_shows_state, "threads");
shows!(stat_shows_types, "stat", "--top", "12");
shows!(stat_by_generation, "stat", "--by", "generation");
shows!(objects_with_references, "objects", "--type", "Lab.Dog", "--refs", "--count", "3");
shows!(object_shows_fields, "object", "0x7f316dc27908");
shows!(object_finds_what_an_interior_pointer_points_into, "object", "0x7f316dc2790c");
shows!(where_in_the_heap, "where", "0x7f316dc27910");
shows!(near_shows_neighbors, "near", "0x7f316dc27908");
shows!(contracts_check_shows_facts, "contracts", "--check");
shows!(csv_of_handles, "handles", "--type", "pinned", "--format", "csv");

#[test]
fn help_is_on_stdout_and_names_every_command() {
    let ran = run(&["--help"]);
    assert_eq!((ran.exit, ran.err.as_str()), (Exit::Ok, ""));
    for command in gcdump::cli::COMMANDS {
        assert!(ran.out.contains(command.name), "{}", command.name);
    }
    let none: [&str; 0] = [];
    let ran = run(&none);
    assert_eq!((ran.exit, ran.out.as_str()), (Exit::Usage, ""));
    // The folder of the package has no dump.
    assert!(ran.err.contains("this folder has none") && ran.err.contains("gcdump --help"), "{}", ran.err);
}

/// The help text in docs/cli.md is up to date.
#[test]
fn the_manual_contains_the_help_text() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cli.md");
    let old = fs::read_to_string(&path).unwrap();
    let mut help = run(&["--help"]).out;
    for command in [&gcdump::cli::SHELL, &gcdump::cli::MCP].into_iter().chain(gcdump::cli::COMMANDS) {
        let text = run(&[command.name, "--help"]).out;
        // Global options are shown once.
        let own = text.split("Options of every command:").next().unwrap().trim_end();
        help.push_str(&format!("\n$ gcdump {} --help\n{own}\n", command.name));
    }
    for topic in ["options", "patterns", "conditions", "formats", "exit-codes"] {
        help.push_str(&format!("\n$ gcdump help {topic}\n{}\n", run(&["help", topic]).out.trim_end()));
    }
    let (head, rest) = old.split_once("<!-- help -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- end of help -->").unwrap();
    let new = format!("{head}<!-- help -->\n```text\n$ gcdump --help\n{}\n```\n<!-- end of help -->{tail}", help.trim_end());
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        fs::write(&path, &new).unwrap();
    } else {
        assert!(old == new, "docs/cli.md is outdated; GCDUMP_BLESS=1 cargo test --test it cli:: rewrites it");
    }
}

/// File name, content, part of the message.
const NO_DUMPS: &[(&str, &[u8], &str)] = &[
    ("empty.dmp", b"", "is empty"),
    ("notes.dmp", b"just some text\nof two lines\n", "text"),
    ("trace.gcdump", b"\x14\0\0\0!FastSerialization.1 and more bytes of it", "is damaged"),
    ("trace.nettrace", b"Nettrace\x14\0\0\0!FastSerialization.1", "nettrace"),
    ("app.exe", b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff\0\0 and so on, a whole program", "PE"),
    ("data.json", b"{\"a\": 1, \"b\": [2, 3]}", "JSON"),
    ("short.dmp", b"MDMP", "truncated"),
    ("mac.core", b"\xcf\xfa\xed\xfe\x07\0\0\x01\x03\0\0\0\x04\0\0\0 and the load commands of it", "macOS"),
];

/// A name that leads to no object is an answer of the dump: exit code 1, not that of an unreadable dump.
#[test]
fn names_that_lead_nowhere_are_negative_answers() {
    let own = common::own_unpacked();
    let own = own.to_str().unwrap();
    for name in
        ["Lab.Program.keep", "Lab.Program.Keep._items[9999]", "Lab.Program.Keep.Nope", "Lab.Program.theCache", "Nope.Nope", "0x12345"]
    {
        for command in ["object", "path"] {
            let ran = run(&[command, name, own]);
            assert_eq!((ran.exit, ran.out.as_str()), (Exit::Negative, ""), "{command} {name}: {}", ran.err);
            assert!(!ran.err.is_empty(), "{command} {name}");
        }
    }
}

#[test]
fn other_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, message) in NO_DUMPS {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let ran = run(&["heap", path.to_str().unwrap()]);
        assert_eq!((ran.exit, ran.out.as_str()), (Exit::BadDump, ""), "{name}: {}", ran.err);
        assert!(ran.err.to_lowercase().contains(&message.to_lowercase()), "{name}: {}", ran.err);
        assert!(ran.err.contains(name) && ran.err.lines().count() <= 3, "{name}: {}", ran.err);
    }
    for path in [folder.path().join("absent.dmp"), folder.path().to_path_buf()] {
        let ran = run(&["heap", path.to_str().unwrap()]);
        assert_eq!(ran.exit, Exit::BadDump, "{}", ran.err);
        assert!(ran.err.contains(path.to_str().unwrap()), "{}", ran.err);
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("no-overlay.json");
    fs::write(&text, "{\"types\": {}}").unwrap();
    let cases: &[&[&str]] = &[
        &["handles", "--type", "nonsense", DUMP],
        &["heap", "--json", "--format", "csv", DUMP],
        &["heap", "--nonsense", DUMP],
        &["nonsense", DUMP],
        &["heap", "--modules", "/does/not/exist", DUMP],
        &["heap", "--overlay", text.to_str().unwrap(), DUMP],
        &["heap", "--overlay", "/does/not/exist.json", DUMP],
    ];
    for args in cases {
        let ran = run(args);
        assert_eq!((ran.exit, ran.out.as_str()), (Exit::Usage, ""), "{args:?}: {}", ran.err);
        assert!(!ran.err.is_empty());
    }
    let ran = run(&["heap", "--runtime", "7", DUMP]);
    assert_eq!(ran.exit, Exit::NoRuntime, "{}", ran.err);
}

#[test]
fn a_handle_type_unknown_to_the_runtime_is_a_usage_error() -> Tested {
    let (dumps, _) = common::known_dumps(|r| r["name"] == "net9-wks-basics-heap")?;
    let dump = &dumps[0];
    let ran = run(&["handles", "--type", "cross-reference", dump.path.to_str().unwrap()]);
    assert_eq!(ran.exit, Exit::Usage);
    assert!(ran.err.contains("weak-interior-pointer"), "{}", ran.err);
    Ok(())
}

#[test]
fn a_mini_dump_gives_a_partial_answer_that_names_what_is_missing() -> Tested {
    let (dumps, _) = common::known_dumps(|r| r["kind"] == "mini" || r["kind"] == "triage")?;
    for dump in &dumps {
        for command in ["info", "handles"] {
            let ran = run(&[command, "--no-local-files", dump.path.to_str().unwrap()]);
            assert_eq!(ran.exit, Exit::Partial, "{command} on {}: {}", dump.name, ran.err);
            assert!(!ran.out.is_empty());
        }
        let ran = run(&["handles", "--json", "--no-local-files", dump.path.to_str().unwrap()]).json();
        assert_eq!((&ran["data"]["complete"], &ran["data"]["total"]), (&false.into(), &0.into()), "{}", dump.name);
        assert!(ran["warnings"].as_array().unwrap().iter().any(|w| w["kind"] == "missing"));
    }
    println!("mini dumps: {} checked", dumps.len());
    Ok(())
}

#[test]
fn strict_makes_any_warning_an_error() -> Tested {
    let (dumps, _) = common::known_dumps(|r| r["name"] == "net10-wks-wait-gcore")?;
    let folder = tempfile::tempdir().unwrap();
    let whole = zstd::decode_all(fs::File::open(own_dump()).unwrap()).unwrap();
    let cut = folder.path().join("cut.dmp");
    // The last range of the dump is missing; it is not part of the heap.
    fs::write(&cut, &whole[..whole.len() - 4096]).unwrap();
    let plain = run(&["oom", "--no-local-files", cut.to_str().unwrap()]);
    assert_eq!(plain.exit, Exit::Ok, "{}", plain.err);
    assert!(plain.err.contains("the dump is cut off"), "{}", plain.err);
    let strict = run(&["oom", "--strict", "--no-local-files", cut.to_str().unwrap()]);
    assert_eq!(strict.exit, Exit::Partial);
    drop(dumps);
    Ok(())
}

#[test]
fn compressed_dumps_give_the_same_answers() {
    let folder = tempfile::tempdir().unwrap();
    let whole = zstd::decode_all(fs::File::open(own_dump()).unwrap()).unwrap();
    let plain = folder.path().join("plain.dmp");
    fs::write(&plain, &whole).unwrap();
    let gzip = folder.path().join("dump.gz");
    let mut encoder = flate2::write::GzEncoder::new(fs::File::create(&gzip).unwrap(), flate2::Compression::fast());
    encoder.write_all(&whole).unwrap();
    encoder.finish().unwrap();
    for command in ["heap", "segments", "handles", "threads"] {
        let of = |p: &Path| run(&[command, "--json", "--no-local-files", p.to_str().unwrap()]).json()["data"].clone();
        let expected = of(&plain);
        assert_eq!(of(&gzip), expected, "{command}");
        assert_eq!(of(&own_dump()), expected, "{command}");
    }
    let refused = run(&["heap", "--max-decompressed", "1M", own_dump().to_str().unwrap()]);
    assert_eq!((refused.exit, refused.out.as_str()), (Exit::BadDump, ""), "{}", refused.err);
}

#[test]
fn sos_spellings_are_aliases() {
    for (sos, own) in [
        (vec!["eeheap", "-gc"], vec!["heap"]),
        (vec!["gchandles", "-type", "Pinned", "-stat"], vec!["handles", "--type", "pinned", "--stat"]),
        (vec!["analyzeoom"], vec!["oom"]),
        (vec!["clrthreads"], vec!["threads"]),
    ] {
        let ask = |args: Vec<&str>| run(&[args, vec![DUMP]].concat()).out;
        assert_eq!(ask(sos), ask(own));
    }
    assert_eq!(run(&[DUMP]).out, run(&["info", DUMP]).out);
}

fn binary() -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_gcdump"));
    c.env_remove("GCDUMP_DUMP");
    c
}

#[test]
fn a_closed_pipe_is_success() {
    let mut child =
        binary().args(["contracts", "--format", "ndjson"]).arg(own_dump()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0u8; 16];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn the_first_object_is_printed_at_once() {
    for format in ["json", "ndjson", "csv", "table"] {
        let dump = own_dump();
        let mut child = binary()
            .args(["objects", "--format", format, "--count", "0"])
            .arg(&dump)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert!(!line.is_empty(), "{format}");
        drop(out);
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{format}: {ended:?}");
        assert!(ended.stderr.is_empty(), "{format}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

#[test]
fn the_dump_may_be_omitted() {
    let folder = tempfile::tempdir().unwrap();
    let none = binary().arg("heap").current_dir(folder.path()).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    fs::copy(own_dump(), folder.path().join("crash.dmp.zst")).unwrap();
    let only = binary().arg("heap").current_dir(folder.path()).output().unwrap();
    assert_eq!(only.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&only.stderr).contains("using crash.dmp.zst"), "{only:?}");
    assert!(String::from_utf8_lossy(&only.stdout).contains("gen2"));
    fs::copy(own_dump(), folder.path().join("other.dmp.zst")).unwrap();
    let two = binary().arg("heap").current_dir(folder.path()).output().unwrap();
    assert_eq!(two.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&two.stderr).contains("other.dmp.zst"));
    let named = binary().arg("heap").current_dir(folder.path()).env("GCDUMP_DUMP", "other.dmp.zst").output().unwrap();
    assert_eq!(named.status.code(), Some(0));
    assert_eq!(named.stdout, only.stdout);
}

#[test]
fn an_answer_can_go_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heap.json");
    let ran = run(&["heap", "--json", "-o", path.to_str().unwrap(), DUMP]);
    assert_eq!((ran.exit, ran.out.as_str()), (Exit::Ok, ""));
    let answer: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(answer["command"], "heap");
    let ran = run(&["heap", "-o", "/does/not/exist/x", DUMP]);
    assert_eq!(ran.exit, Exit::NotWritten, "{}", ran.err);
    // A failed command neither overwrites the previous answer nor leaves a file.
    let ran = run(&["object", "0x1", "-o", path.to_str().unwrap(), DUMP]);
    assert_eq!(ran.exit, Exit::Negative, "{}", ran.err);
    let late = ["heap", "--timeout", "1ms", "-o", path.to_str().unwrap(), DUMP];
    let late = Command::new(env!("CARGO_BIN_EXE_gcdump")).args(late).output().unwrap();
    assert_eq!(late.status.code(), Some(6));
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&fs::read(&path).unwrap()).unwrap(), answer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // Devices are written in place.
    let ran = run(&["heap", "-o", "/dev/null", DUMP]);
    assert_eq!((ran.exit, ran.err.as_str()), (Exit::Ok, ""));
    assert!(!Path::new("/dev/null").is_file());
    // The dump itself is never overwritten.
    let dump = folder.path().join("precious");
    fs::copy(own_dump(), &dump).unwrap();
    let ran = run(&["heap", "-o", dump.to_str().unwrap(), dump.to_str().unwrap()]);
    assert_eq!(ran.exit, Exit::Usage, "{}", ran.err);
    assert_eq!(fs::read(&dump).unwrap(), fs::read(own_dump()).unwrap());
}

#[test]
fn a_timeout_is_reported() {
    let gcdump = |args: &[&str]| {
        let mut c = Command::new(env!("CARGO_BIN_EXE_gcdump"));
        c.args(args).args(["--no-local-files"]).arg(own_dump()).output().unwrap()
    };
    // Decompressing 65 MB takes longer than this.
    let large = own_dump().with_file_name("corpus/net10-svr-oom-heap.dmp.zst");
    let mut cut = Command::new(env!("CARGO_BIN_EXE_gcdump"));
    let cut = cut.args(["objects", "--json", "--no-local-files", "--timeout", "1ms"]).arg(large).output().unwrap();
    assert_eq!(cut.status.code(), Some(6), "{}", String::from_utf8_lossy(&cut.stderr));
    assert!(String::from_utf8_lossy(&cut.stderr).contains("timed out after 1ms; --timeout TIME allows more"));
    assert!(serde_json::from_slice::<serde_json::Value>(&cut.stdout).is_err(), "half an answer looks like a whole one");
    let whole = gcdump(&["heap", "--json", "--timeout", "10m"]);
    assert_eq!(whole.status.code(), Some(0), "{}", String::from_utf8_lossy(&whole.stderr));
    assert!(serde_json::from_slice::<serde_json::Value>(&whole.stdout).is_ok());
    assert_eq!(gcdump(&["heap", "--timeout", "5 parsecs"]).status.code(), Some(2));
}

#[test]
fn a_slow_reader_does_not_extend_the_time_limit() {
    let list = "objects --refs --format ndjson";
    let mut shell = Command::new(env!("CARGO_BIN_EXE_gcdump"));
    shell.args(["shell", "--timeout", "500ms", "--no-local-files", "-c", list]).arg(own_dump());
    let mut shell = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, started) = (shell.stdout.take().unwrap(), Instant::now());
    let mut buffer = [0; 4096];
    while out.read(&mut buffer).unwrap() > 0 {
        if started.elapsed() < Duration::from_secs(1) {
            thread::sleep(Duration::from_millis(10));
        }
    }
    let ended = shell.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(6) && err.contains("timed out after 500ms"), "{:?}: {err}", ended.status);
}

#[test]
fn an_unwritable_file_is_named_as_it_was_given() {
    let ran = run(&["heap", "-o", "/nonexistent/x", DUMP]);
    assert_eq!(ran.exit, Exit::NotWritten);
    assert!(ran.err.contains("/nonexistent/x") && !ran.err.contains(".gcdump-"), "{}", ran.err);
}

#[test]
fn missing_names_and_options_are_reported() {
    // The option is wrong, not its value.
    let ran = run(&["stat", "--typ", "Lab", DUMP]);
    assert!(ran.exit == Exit::Usage && ran.err.contains("--typ'") && ran.err.contains("--type"), "{}", ran.err);
    let ran = run(&["stat", "--top", "-1", DUMP]);
    assert!(ran.exit == Exit::Usage && ran.err.contains("expected a number"), "{}", ran.err);
    for command in ["stat", "objects", "retained", "unreachable", "async", "statics", "roots", "strings"] {
        let ran = run(&[command, "--type", "NoSuchTypeAtAll", DUMP]);
        assert!(ran.exit == Exit::Negative && ran.err.contains("NoSuchTypeAtAll"), "{command}: {:?} {}", ran.exit, ran.err);
    }
    let ran = run(&["objects", "--type", "System.String", "--fields", "_stringLenght,_firstChar", DUMP]);
    assert_eq!(ran.exit, Exit::Ok);
    assert!(ran.err.contains("has a field '_stringLenght'; did you mean _stringLength?") && !ran.err.contains("_firstChar"), "{}", ran.err);
}

#[test]
fn a_comparison_in_the_wrong_order_is_reported() {
    let [before, after] = ["before", "after"].map(|when| format!("dumps/corpus/net10-wks-leak-heap.{when}.dmp.zst"));
    let right = run(&["diff", &before, &after]);
    assert!(!right.err.contains("taken last"), "{}", right.err);
    let wrong = run(&["diff", &after, &before]);
    assert!(wrong.err.contains("the first dump was taken last"), "{}", wrong.err);
    let wrong = run(&["analyze", "--since", &after, &before]);
    assert!(wrong.err.contains("the earlier dump was taken last"), "{}", wrong.err);
    // Dumps of two processes have no order.
    let other = run(&["diff", &after, DUMP]);
    assert!(!other.err.contains("taken last"), "{}", other.err);
}

#[test]
fn missing_parts_of_a_mini_dump_are_not_called_sound() {
    let ran = run(&["analyze", "dumps/corpus/win-net10-wks-basics-mini.dmp.zst"]);
    assert_eq!(ran.exit, Exit::Partial);
    let uncertain = ran
        .out
        .lines()
        .find(|l| l.starts_with("Checked only in part, because something is missing (see the warnings): "))
        .unwrap_or_default();
    assert!(["deadlock", "suspects", "event-leaks"].iter().all(|id| uncertain.contains(id)), "{}", ran.out);
    let answer = run(&["analyze", "--json", "dumps/corpus/win-net10-wks-basics-mini.dmp.zst"]).json();
    let uncertain = answer["data"]["uncertain"].as_array().unwrap();
    let reasons: String = answer["warnings"].as_array().unwrap().iter().map(|w| w["message"].as_str().unwrap()).collect();
    assert!(uncertain.iter().all(|u| reasons.contains(u["reason"].as_str().unwrap())), "a reason is not among the warnings: {answer}");
    assert!(run(&["locks", "dumps/corpus/win-net10-wks-basics-mini.dmp.zst"]).out.contains("no deadlock in the captured memory"));
}

#[test]
fn a_type_names_what_it_is_made_from_with_addresses() {
    let layout = |name: &str| run(&["type", name, "--json", "--no-local-files", DUMP]).json()["data"]["layout"].take();
    let rows = run(&["stat", "--json", "--no-local-files", DUMP]).json();
    let rows = rows["data"]["types"].as_array().unwrap();
    let array = rows.iter().find(|t| t["type"] == "System.Object[]").unwrap()["method_table"].as_str().unwrap();
    let array = layout(array);
    let [element] = array["arguments"].as_array().unwrap().as_slice() else { panic!("{array}") };
    let dictionary = layout("System.Collections.Generic.Dictionary<System.String, System.Object>");
    let arguments: Vec<(&str, &str)> = dictionary["arguments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["name"].as_str().unwrap(), a["method_table"].as_str().unwrap()))
        .collect();
    let [string, object] = ["System.String", "System.Object"].map(|n| layout(n)["method_table"].as_str().unwrap().to_string());
    assert_eq!(arguments, [("System.String", string.as_str()), ("System.Object", object.as_str())]);
    assert_eq!(dictionary["parent"], serde_json::json!({ "name": "System.Object", "method_table": object }));
    assert_eq!((&element["name"], &element["method_table"]), (&"System.Object".into(), &object.as_str().into()));
    assert_eq!(layout("System.Object")["parent"], serde_json::Value::Null);
    let shown = run(&["type", "System.Collections.Generic.Dictionary<System.String, System.Object>", "--no-local-files", DUMP]).out;
    assert!(shown.contains(&format!("{string} System.String")) && shown.contains(&format!("{object} System.Object")), "{shown}");
}

#[test]
fn an_object_without_its_fields() {
    let string = run(&["objects", "--type", "System.Object[]", "--json", "--no-local-files", DUMP]).json();
    let array = string["data"]["objects"][0]["address"].as_str().unwrap().to_string();
    for form in [&["object", "--no-fields"][..], &["dumpobj", "-nofields"]] {
        let ran = run(&[form, &[array.as_str(), "--json", "--no-local-files", DUMP]].concat());
        let data = &ran.json()["data"];
        assert_eq!((ran.exit, &data["elements"], &data["truncated"]), (Exit::Ok, &serde_json::json!([]), &serde_json::json!([])));
        assert!(data["length"].as_u64().is_some());
    }
}

#[test]
fn totals_of_garbage_align_with_its_classes() {
    let out = run(&["unreachable", "--no-local-files", DUMP]).out;
    let column = |name: &str| out.lines().find(|l| l.starts_with(name)).map(|l| l.find(" object").unwrap_or(0)).unwrap();
    let value = |name: &str| {
        let line = out.lines().find(|l| l.starts_with(name)).unwrap();
        line.len() - line[name.len()..].trim_start().len()
    };
    assert!(column("total") > 0);
    assert_eq!(value("total"), value("reachable"), "{out}");
    let classes: Vec<&str> = out.lines().filter(|l| l.contains(" object") && !l.starts_with("roots")).collect();
    let starts: Vec<usize> = classes.iter().filter_map(|l| l.find("  ").map(|i| i + l[i..].len() - l[i..].trim_start().len())).collect();
    assert!(starts.len() > 2 && starts.windows(2).all(|w| w[0] == w[1]), "{out}");
}

#[test]
fn csv_names_holders() {
    let rows = |args: &[&str]| -> Vec<std::collections::BTreeMap<String, String>> {
        let ran = run(&[args, &["--format", "csv", "--no-local-files", DUMP]].concat());
        let mut lines = ran.out.lines();
        let names: Vec<String> = lines.next().unwrap().split(',').map(ToString::to_string).collect();
        // The texts compared here have no commas.
        lines.map(|l| names.iter().cloned().zip(l.split(',').map(ToString::to_string)).collect()).collect()
    };
    let suspects = rows(&["retained", "--suspects", "--threshold", "1"]);
    assert!(suspects.iter().any(|s| !s["root_kind"].is_empty() && !s["root_address"].is_empty()), "{suspects:?}");
    let held = suspects.iter().find(|s| !s["root_kind"].is_empty()).unwrap();
    let path = run(&["path", &held["address"], "--json", "--no-local-files", DUMP]).json();
    let root = &path["data"]["paths"][0]["roots"][0];
    let steps = rows(&["path", &held["address"]]);
    let first = &steps[0];
    assert_eq!(
        (first["root_kind"].as_str(), first["root_address"].as_str()),
        (root["kind"].as_str().unwrap(), root["address"].as_str().unwrap())
    );
}

#[test]
fn a_folder_without_modules_is_pointed_out() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bin")).unwrap();
    let parent = folder.path().to_str().unwrap();
    let ran = run(&["stat", "--json", "--no-local-files", "--modules", parent, DUMP]);
    let warnings = ran.json()["warnings"].clone();
    let said = |w: &serde_json::Value| w["kind"] == "module-mismatch" && w["message"].as_str().unwrap().contains(parent);
    assert!(ran.exit == Exit::Ok && warnings.as_array().unwrap().iter().any(said), "{warnings}");
    // A folder with a file of that name is accepted.
    fs::write(folder.path().join("System.Private.CoreLib.dll"), "").unwrap();
    let warnings = run(&["stat", "--json", "--no-local-files", "--modules", parent, DUMP]).json()["warnings"].clone();
    assert!(!warnings.as_array().unwrap().iter().any(said), "{warnings}");
}

#[test]
fn usage_and_help_agree_with_what_commands_take() {
    let help = |command: &str| run(&[command, "--help"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help("simulate").contains("Usage: gcdump simulate collect [OPTIONS] [DUMP]"));
    let roots = help("roots");
    assert!(!roots.contains("are scanned conservatively") && !roots.contains("which the dump"), "{roots}");
    assert!(roots.contains("Where frames are not known, and with --stacks conservative,"), "{roots}");
}
