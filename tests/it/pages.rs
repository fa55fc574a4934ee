//! `--skip`, `--top` and `--sort` do the same in every list and in every format. All pages together are the whole list.

use std::path::Path;

use gcdump::cli::{COMMANDS, Exit};
use serde_json::Value;

use crate::common::{ask, bytes_of, own_unpacked, run};

/// Commands without these options although their answers contain lists, with the reason.
const NO_LISTS: &[(&str, &str)] = &[
    ("analyze", "findings, the most important first; all of them"),
    ("bridge", "a graph"),
    ("contracts", "what the runtime says of itself, and the checks of that"),
    ("env", "how the process was started"),
    ("export", "files"),
    ("fleet", "files"),
    ("heap", "a row for each heap and generation"),
    ("info", "facts"),
    ("near", "so many objects before and after an address: --count"),
    ("object", "elements from --start on, at most --count"),
    ("oom", "a row for each heap"),
    ("objsize", "sums of an object"),
    ("path", "as many paths as --paths says"),
    ("report", "a page of other answers"),
    ("trim", "a file"),
];

/// Whether answers with this schema contain a list.
fn lists(schema: &Value) -> bool {
    let data = &schema["properties"]["data"];
    data["properties"].as_object().is_some_and(|fields| fields.values().any(|f| f.to_string().contains("\"array\"")))
}

#[test]
fn every_command_that_lists_things_sorts_and_pages_alike() {
    for entry in COMMANDS {
        let help = run(&["help", entry.name]).out;
        let missing: Vec<&str> = ["--skip", "--top", "--sort", "--where"].into_iter().filter(|option| !help.contains(option)).collect();
        let exempt = NO_LISTS.iter().any(|(name, _)| *name == entry.name);
        let has_list = lists(&serde_json::to_value(entry.schema()).unwrap());
        assert!(missing.is_empty() || exempt || !has_list, "{} has a list but no {missing:?}", entry.name);
        assert!(!exempt || !missing.is_empty(), "{} is exempt, and has all of the options", entry.name);
    }
}

/// A dump, a command line, its list, and a column in which several rows have the same value.
const CASES: &[(&str, &str, &str, &str)] = &[
    ("net10-wks-deadlock-heap", "locks", "locks", "kind"),
    ("net10-wks-http-heap", "requests", "requests", "state"),
    ("net10-wks-deadlock-heap", "threads", "threads", "name"),
    ("net10-wks-deadlock-heap", "stacks", "threads", "frames"),
    ("net10-wks-pool-heap", "pool", "workers", "object"),
    ("net10-wks-http-heap", "timers", "timers", "kind"),
    ("net10-wks-async-heap", "async --all", "chains", "root_kind"),
    ("net10-wks-async-heap", "async --tasks", "tasks", "status"),
    ("net10-wks-crash-heap", "exceptions", "exceptions", "type"),
    ("", "handles", "handles", "type"),
    ("", "handles --by object-type", "groups", "count"),
    ("", "roots", "roots", "kind"),
    ("", "roots --stat", "types", "count"),
    ("", "statics", "statics", "storage"),
    ("", "segments", "segments", "generation"),
    ("", "modules", "modules", "kind"),
    ("", "stat", "types", "count"),
    ("", "strings --min-count 1", "strings", "length"),
    ("", "finalizers", "types", "registered"),
    ("", "finalizers --objects", "objects", "type"),
    ("", "retained", "objects", "size"),
    ("", "retained", "types", "count"),
    ("", "retained --by namespace", "groups", "retained"),
    ("", "unreachable", "types", "count"),
    ("", "unreachable --objects", "objects", "bytes"),
    ("", "type System.*", "types", "module"),
    ("", "objects --type Lab.*", "objects", "size"),
    ("", "fragmentation", "largest", "generation"),
];

fn list_of(answer: &Value, list: &str) -> Vec<Value> {
    answer["data"][list].as_array().unwrap_or_else(|| panic!("no {list}: {answer}")).clone()
}

#[test]
fn all_pages_together_are_the_whole_list() {
    let folder = tempfile::tempdir().unwrap();
    for (dump, line, list, column) in CASES {
        let path = folder.path().join(format!("{dump}.dmp"));
        let path = if dump.is_empty() {
            own_unpacked()
        } else {
            if !path.exists() {
                std::fs::write(&path, bytes_of(dump).unwrap()).unwrap();
            }
            path
        };
        let command: Vec<&str> = line.split(' ').collect();
        for sort in [vec![], vec!["--sort", column]] {
            let asked = [&command[..], &sort].concat();
            pages_of(&path, &asked, list);
        }
    }
}

fn pages_of(dump: &Path, command: &[&str], list: &str) {
    let whole = list_of(&ask(dump, &[command, &["--top", "0"]].concat()).1, list);
    assert!(whole.len() > 1, "{command:?} of {} has {} rows", dump.display(), whole.len());
    let step = whole.len().div_ceil(3).max(1);
    let (mut rows, mut skip) = (Vec::new(), 0);
    while skip < whole.len() {
        let (_, page) = ask(dump, &[command, &["--skip", &skip.to_string(), "--top", &step.to_string()]].concat());
        let listed = list_of(&page, list);
        assert!(listed.len() == step.min(whole.len() - skip), "{command:?} --skip {skip} --top {step}: {} rows", listed.len());
        if skip > 0 && command[0] != "objects" {
            let said = page["pages"].as_array().unwrap().iter().find(|p| p["list"] == list).unwrap();
            assert_eq!((said["skipped"].as_u64(), said["listed"].as_u64()), (Some(skip as u64), Some(listed.len() as u64)), "{command:?}");
            assert_eq!(said["total"].as_u64(), Some(whole.len() as u64), "{command:?}");
        }
        rows.extend(listed);
        skip += step;
    }
    assert!(rows == whole, "{command:?}: pages of {step} are not the whole list");
}

#[test]
fn tables_say_which_rows_they_have_and_other_formats_follow() {
    let dump = own_unpacked();
    let dump = dump.to_str().unwrap();
    let shown = |line: &str| run(&line.split(' ').chain(["--no-local-files", dump]).collect::<Vec<_>>()).out;
    let all = ask(Path::new(dump), &["handles"]).1["data"]["total"].as_u64().unwrap();
    let text = shown("handles --skip 2 --top 3");
    assert!(text.ends_with(&format!("rows 3 to 5 of {all} handles\n")) && !text.contains("more handles"), "{text}");
    assert!(shown("handles --skip 100000").ends_with(&format!("no rows after {all} of {all} handles\n")));
    assert!(shown("objects --skip 2 --top 3").contains("rows 3 to 5 of "), "objects");
    let csv = |line: &str| shown(line).lines().skip(1).map(str::to_string).collect::<Vec<_>>();
    assert_eq!(csv("handles --format csv --skip 2 --top 3"), csv("handles --format csv")[2..5]);
    let header: Value = serde_json::from_str(shown("handles --format ndjson --skip 2 --top 3").lines().next().unwrap()).unwrap();
    assert_eq!(header["pages"][0]["list"], "handles");
    let negative = run(&["statics", "--type", "Lab.Program", "--skip", "100000", "--no-local-files", dump]);
    assert_eq!(negative.exit, Exit::Ok, "there are some, on other pages");
    let refused = run(&["locks", "--sort", "size", "--no-local-files", dump]);
    assert!(
        refused.exit == Exit::Usage && refused.err.contains("cannot sort by size: this can be sorted by kind, object"),
        "{}",
        refused.err
    );
}

#[test]
fn conditions_select_rows_by_the_columns_of_the_table() {
    let dump = own_unpacked();
    for (command, list, condition, json, holds) in [
        (&["handles"][..], "handles", "type = strong", "/type", (|v| v == "strong") as fn(&Value) -> bool),
        (&["statics"], "statics", "storage = static and declaring_type ~ \"Lab.*\"", "/declaring_type", |v| {
            v.as_str().unwrap().starts_with("Lab.")
        }),
        (&["roots", "--stat"], "types", "count > 1", "/count", |v| v.as_u64() > Some(1)),
        (&["threads"], "threads", "managed_id >= 2", "/managed_id", |v| v.as_u64() >= Some(2)),
        (&["segments"], "segments", "generation = gen2", "/generation", |v| v == "gen2"),
        (&["modules"], "modules", "name ~ \"System.*\"", "/name", |v| v.as_str().unwrap().starts_with("System.")),
        (&["retained"], "types", "retained > 10K", "/retained", |v| v.as_u64() > Some(10 << 10)),
        (&["unreachable"], "types", "bytes > 100", "/bytes", |v| v.as_u64() > Some(100)),
    ] {
        let all = list_of(&ask(&dump, &[command, &["--top", "0"]].concat()).1, list);
        let wanted: Vec<Value> = all.iter().filter(|row| holds(row.pointer(json).unwrap())).cloned().collect();
        let (_, answer) = ask(&dump, &[command, &["--top", "0", "--where", condition]].concat());
        assert!(list_of(&answer, list) == wanted && !wanted.is_empty() && wanted.len() < all.len(), "{command:?} {condition}");
        let (_, first) = ask(&dump, &[command, &["--top", "1", "--where", condition]].concat());
        assert_eq!(list_of(&first, list), wanted[..1], "{command:?} {condition}");
        let said = first["pages"].as_array().unwrap().iter().find(|p| p["list"] == list).unwrap();
        assert_eq!(said["total"].as_u64(), Some(wanted.len() as u64), "{command:?}");
    }
    let refused = run(&["locks", "--where", "size > 3", "--no-local-files", dump.to_str().unwrap()]);
    assert!(
        refused.exit == Exit::Usage && refused.err.contains("--where: no list has a column size; the columns are kind, object"),
        "{}",
        refused.err
    );
}

#[test]
fn select_leaves_the_columns_that_are_named() {
    let dump = own_unpacked();
    let dump = dump.to_str().unwrap();
    let first = |args: &[&str]| {
        let ran = run(&[args, &["--no-local-files", dump]].concat());
        (ran.exit, ran.out.lines().next().unwrap_or_default().to_string(), ran.err)
    };
    for (command, names) in
        [("stat", "bytes,type"), ("handles", "address,object"), ("statics", "name"), ("objects", "address,size"), ("threads", "os_id")]
    {
        let (exit, line, err) = first(&[command, "--select", names, "--format", "csv"]);
        assert_eq!((exit, line.as_str()), (Exit::Ok, names), "{command}: {err}");
        let csv = run(&[command, "--select", names, "--format", "csv", "--no-local-files", dump]).out;
        let mut rows = csv::ReaderBuilder::new().from_reader(csv.as_bytes());
        assert!(rows.records().all(|row| row.is_ok_and(|row| !row[0].is_empty())), "{command}: {csv:.200}");
        let (_, line, _) = first(&[command, "--select", names]);
        assert_eq!(line.split_whitespace().collect::<Vec<_>>().join(",").to_lowercase().replace("os,id", "os_id"), names, "{command}");
    }
    // Names are spelled as those of --sort are.
    assert_eq!(first(&["handles", "--select", "Object-Type", "--format", "csv"]).1, "object_type");
    let (exit, _, err) = first(&["stat", "--select", "type,nothing"]);
    assert!(exit == Exit::Usage && err.contains("--select: no list has a column nothing; the columns are"), "{err}");
    // Of objects, names that are not columns are fields, in JSON as well.
    let dogs = ["objects", "--type", "Lab.Dog", "--select", "address,_age", "--top", "1"];
    assert_eq!(first(&[&dogs[..], &["--format", "csv"]].concat()).1, "address,_age");
    let json = run(&[&dogs[..], &["--json", "--no-local-files", dump]].concat()).json();
    assert_eq!(json["data"]["objects"][0]["fields"]["_age"], 0, "{json}");
    let (exit, _, err) = first(&["stat", "--json", "--select", "type"]);
    assert!(exit == Exit::Usage && err.contains("json has whole answers"), "{err}");
}
