//! First steps of a new user: help that fits the screen, dumps without a heap, warnings.

use gcdump::cli::{COMMANDS, Exit, Screen};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::common::{run, run_on};

fn corpus(name: &str) -> String {
    format!("dumps/corpus/{name}.dmp.zst")
}

const SMALL: Screen = Screen { terminal: true, width: Some(80), height: Some(40), pager: false, color: false };

fn too_wide(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.width() > 80).collect()
}

#[test]
fn help_fits_the_screen() {
    let topics = ["options", "patterns", "conditions", "formats", "exit-codes", "files", "sos"];
    let of_topics = topics.map(|topic| vec!["help", topic]);
    let of_commands = COMMANDS.iter().map(|c| vec![c.name, "--help"]);
    for args in of_topics.into_iter().chain(of_commands).chain([vec!["--help"], vec!["help"]]) {
        let ran = run_on(SMALL, &args);
        assert!(ran.exit == Exit::Ok && !ran.out.is_empty(), "{args:?}: {}", ran.err);
        assert_eq!(too_wide(&ran.out), Vec::<&str>::new(), "{args:?}");
        // Text is filled, not chopped: no line of one word is between full ones.
        let lines: Vec<&str> = ran.out.lines().collect();
        let chopped = lines
            .windows(3)
            .filter(|_| args[0] == "help")
            .find(|w| w[0].width() > 70 && w[1].width() < 20 && w[2].width() > 70 && !w[1].is_empty());
        assert_eq!(chopped, None, "{args:?}");
    }
}

#[test]
fn the_shell_lists_every_topic_and_no_empty_group() {
    let ran = run(&["shell", "-c", "help", &corpus("net10-wks-crash-heap")]);
    assert!(ran.out.contains("options, patterns, conditions, formats, files, exit-codes, sos"), "{}", ran.out);
    let empty = ran.out.lines().take_while(|l| !l.is_empty()).find(|l| !l.contains("  "));
    assert_eq!(empty, None, "{}", ran.out);
}

#[test]
fn a_dump_without_a_heap_says_so_first() {
    for (name, kind) in [("net8-wks-crash-mini", "mini"), ("net10-wks-basics-triage", "triage"), ("win-net10-wks-basics-mini", "mini")] {
        let dump = corpus(name);
        if !std::path::Path::new(&dump).exists() {
            continue;
        }
        for command in ["stat", "fragmentation", "handles", "strings", "objects", "analyze"] {
            let ran = run_on(SMALL, &[command, "--no-local-files", &dump]);
            let first = ran.err.lines().next().unwrap_or_default();
            assert!(first.starts_with(&format!("warning: this is a {kind} dump, which has no heap")), "{name} {command}: {}", ran.err);
            assert!(ran.exit == Exit::Partial && !ran.err.contains("Next:"), "{name} {command}: {:?} {}", ran.exit, ran.err);
            assert_eq!(too_wide(&ran.err), Vec::<&str>::new(), "{name} {command}");
        }
        let title = run(&["analyze", "--json", "--no-local-files", &dump]).json()["data"]["findings"].to_string();
        assert!(title.contains("take a heap or full dump to see objects"), "{title}");
        // Commands that need no heap answer in full.
        if kind == "mini" && name.starts_with("net8") {
            assert_eq!(run(&["heap", "--no-local-files", &dump]).err, "");
        }
    }
    let whole = run(&["stat", "--json", "--no-local-files", &corpus("net10-wks-crash-heap")]).json();
    assert_eq!(whole["warnings"], Value::Array(Vec::new()));
}

#[test]
fn unknown_values_are_not_zero() {
    let dump = corpus("net8-wks-crash-mini");
    let ran = run(&["fragmentation", "--json", "--no-local-files", &dump]);
    assert_eq!(ran.exit, Exit::Partial);
    let data = &ran.json()["data"];
    for row in data["generations"].as_array().unwrap() {
        let known = [&row["free_count"], &row["free_bytes"], &row["share"]];
        let unknown = known.iter().all(|v| v.is_null());
        // One block of 24 bytes was found, in gen0; gen1 is empty.
        assert!(unknown || row["generation"] == "gen0" || row["allocated_bytes"] == 0, "{row}");
    }
    assert!(data["totals"]["pinned_objects"].is_null() && data["totals"]["pinned_handles"].is_null(), "{}", data["totals"]);
    let text = run(&["fragmentation", "--no-local-files", &dump]).out;
    assert!(text.contains("objects unknown, handles unknown"), "{text}");
}

#[test]
fn equal_warnings_are_shown_once() {
    let dump = corpus("net8-wks-crash-mini");
    let ran = run(&["stat", "--no-local-files", &dump]);
    assert_eq!(ran.err.matches("the walk stops at").count(), 1, "{}", ran.err);
    assert!(ran.err.contains("… and 4 more at other addresses"), "{}", ran.err);
    let json = run(&["stat", "--json", "--no-local-files", &dump]).out;
    assert_eq!(json.matches("the walk stops at").count(), 5);
}

#[test]
fn groups_of_handles_are_limited_by_top() {
    let dump = corpus("net10-svr-handles-heap");
    let ran = run(&["handles", "--by", "object-type", "--top", "2", "--no-local-files", &dump]);
    assert!(ran.out.contains(" more groups (--top 0 lists all)"), "{}", ran.out);
    let data = &run(&["handles", "--by", "object-type", "--top", "2", "--json", "--no-local-files", &dump]).json()["data"];
    assert_eq!((data["groups"].as_array().unwrap().len(), &data["shown"]), (2, &2.into()));
    let all = &run(&["handles", "--by", "object-type", "--json", "--no-local-files", &dump]).json()["data"];
    assert_eq!((all["groups"].as_array().unwrap().len() as u64, &all["shown"]), (data["group_count"].as_u64().unwrap(), &Value::Null));
}

/// Runs gcdump without arguments in a folder with copies of these dumps.
fn bare(dumps: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    for name in dumps {
        std::fs::copy(corpus(name), folder.path().join(format!("{name}.dmp.zst"))).unwrap();
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gcdump"));
    let ran = command.current_dir(folder.path()).env_remove("GCDUMP_DUMP").env("GCDUMP_MODULES", "off").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
}

#[test]
fn without_arguments_the_dumps_of_the_folder_are_shown() {
    let (code, out, err) = bare(&[]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("this folder has none") && err.contains("dotnet-dump collect"), "{err}");
    assert_eq!(too_wide(&err).len(), 1, "only the line to copy is wide: {err}");

    let (code, out, err) = bare(&["net10-wks-leak-heap.after"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("program ") && out.contains("\nNext: gcdump analyze net10-wks-leak-heap.after.dmp.zst"), "{out}");

    let (code, out, _) = bare(&["net10-wks-leak-heap.after", "net10-wks-leak-heap.before"]);
    assert_eq!(code, Some(0));
    assert!(out.lines().any(|l| l.contains("leak-heap.after")) && out.lines().any(|l| l.contains("leak-heap.before")), "{out}");
}
