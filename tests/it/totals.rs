//! An answer has the same totals in every format, and all rows unless a screen limits them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gcdump::cli::{COMMANDS, Screen};
use serde_json::Value;

use crate::common::{ask, cases, own_unpacked, run, run_on, sample};
use crate::corpus::one_of_each;

fn number(v: &Value) -> u64 {
    v.as_u64().unwrap_or_else(|| panic!("{v} is not a number"))
}

fn rows(v: &Value) -> impl Iterator<Item = &Value> {
    v.as_array().into_iter().flatten()
}

fn piped(args: &[&str], dump: &Path) -> String {
    run(&[args, &["--no-local-files", dump.to_str().unwrap()]].concat()).out
}

/// Returns the sums of the columns `count` and `bytes`, and the number of rows.
fn of_csv(text: &str) -> [u64; 3] {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let at = ["count", "bytes"].map(|name| header.iter().position(|h| h == name).unwrap());
    reader.records().map(Result::unwrap).fold([0; 3], |[count, bytes, rows], row| {
        let [c, b] = at.map(|i| row[i].parse::<u64>().unwrap());
        [count + c, bytes + b, rows + 1]
    })
}

fn of_json<'v>(list: impl Iterator<Item = &'v Value>) -> [u64; 3] {
    list.fold([0; 3], |[count, bytes, rows], row| [count + number(&row["count"]), bytes + number(&row["bytes"]), rows + 1])
}

/// Returns the objects and bytes in the last lines of a table.
fn of_text(text: &str) -> [u64; 3] {
    let line = text.lines().find(|l| l.starts_with("objects ")).unwrap_or_else(|| panic!("{text}"));
    let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    // `objects 3,646 of 142 types, 933.3 KiB (955,704 bytes)`, or without the rounded figure.
    let bytes = words[words.iter().position(|w| w.starts_with("byte")).unwrap() - 1];
    [number(words[1]), number(bytes.trim_start_matches('(')), number(words[3])]
}

#[test]
fn stat_has_the_same_totals_in_every_format() {
    for dump in sample(one_of_each(), 6).into_iter().chain([own_unpacked()]) {
        for by in ["type", "generation", "namespace"] {
            let Ok(answer) = serde_json::from_str::<Value>(&piped(&["stat", "--by", by, "--json"], &dump)) else { continue };
            let list = &answer["data"][if by == "type" { "types" } else { "groups" }];
            let json = of_json(rows(list));
            let totals = &answer["data"]["totals"];
            assert_eq!(json[..2], [number(&totals["count"]), number(&totals["bytes"])], "{}", dump.display());
            assert_eq!(of_csv(&piped(&["stat", "--by", by, "--format", "csv"], &dump)), json);
            let lines = piped(&["stat", "--by", by, "--format", "ndjson"], &dump);
            let records: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
            let kind = if by == "type" { "type" } else { "group" };
            assert_eq!(of_json(records.iter().filter(|r| r["record"] == kind)), json);
            if json[0] > 0 {
                assert_eq!(of_text(&piped(&["stat", "--by", by], &dump)), [json[0], json[1], number(&totals["types"])]);
            }
        }
        let top = piped(&["stat", "--top", "3", "--format", "csv"], &dump);
        assert!(top.is_empty() || of_csv(&top)[2] <= 3, "{top}");
    }
}

/// An earlier version showed the share of the selection.
#[test]
fn the_share_of_a_type_does_not_depend_on_the_selection() {
    let dump = own_unpacked();
    let all = ask(&dump, &["stat"]).1;
    for row in rows(&all["data"]["types"]).step_by(20) {
        let (_, one) = ask(&dump, &["stat", "--type", row["method_table"].as_str().unwrap()]);
        assert_eq!(one["data"]["types"][0]["share"], row["share"], "{row}");
    }
}

#[test]
fn free_blocks_are_counted_separately() {
    let dump = own_unpacked();
    let (_, all) = ask(&dump, &["stat"]);
    let (exit, free) = ask(&dump, &["stat", "--type", "Free"]);
    assert_eq!(exit.code(), 0);
    assert_eq!(free["data"]["totals"]["free_count"], all["data"]["totals"]["free_count"]);
    assert_eq!((&free["data"]["totals"]["count"], rows(&free["data"]["types"]).count()), (&Value::from(0), 0));
}

#[test]
fn objects_state_the_total() {
    let dump = own_unpacked();
    let totals = ask(&dump, &["stat"]).1["data"]["totals"].take();
    for line in
        [&["objects"][..], &["objects", "--count", "7"], &["objects", "--count", "7", "--start", "3000"], &["objects", "--start", "3730"]]
    {
        let (_, answer) = ask(&dump, line);
        let data = &answer["data"];
        let found = ["total", "total_bytes", "free_count", "free_bytes"].map(|key| number(&data[key]));
        assert_eq!(found, ["count", "bytes", "free_count", "free_bytes"].map(|key| number(&totals[key])), "{line:?}");
        assert_eq!(number(&data["listed"]), rows(&data["objects"]).count() as u64, "{line:?}");
    }
    let shown =
        run_on(Screen::terminal(Some(120), Some(40)), &["objects", "--type", "Lab.Node", "--no-local-files", dump.to_str().unwrap()]);
    assert!(shown.out.contains(" of 1,000 objects"), "{}", shown.out);
}

/// Command lines of commands that take `--top` or `--count`, and their lists.
const LISTS: [&[&str]; 32] = [
    &["type", "System.*"],
    &["pool"],
    &["stat"],
    &["stat", "--by", "namespace"],
    &["objects", "--type", "System.String"],
    &["roots"],
    &["roots", "--stat"],
    &["handles"],
    &["handles", "--by", "object-type"],
    &["statics"],
    &["modules"],
    &["strings"],
    &["async"],
    &["async", "--merge"],
    &["unreachable"],
    &["unreachable", "--objects"],
    &["simulate", "collect"],
    &["finalizers"],
    &["finalizers", "--objects"],
    &["inspect"],
    &["fragmentation"],
    &["memory"],
    &["verify"],
    &["retained", "--tree", "--threshold", "0"],
    &["segments"],
    &["threads"],
    &["exceptions"],
    &["stacks"],
    &["locks"],
    &["requests"],
    &["timers"],
    &["refs", "--type", "System.String"],
];

/// An earlier version cut tables at 40 rows in pipes, too, and other lists at 10 or 20 in every format.
#[test]
fn lists_are_complete_without_a_screen() {
    let dumps: [PathBuf; 2] = [own_unpacked(), crate::corpus::dump("net10-wks-asyncmix-heap")];
    let mut cut = BTreeSet::new();
    for (i, line) in sample(LISTS.into_iter().enumerate(), 3) {
        let limit = if line[0] == "objects" { "--count" } else { "--top" };
        let dump = &dumps[usize::from(line[0] == "async")];
        let whole = [line, &[limit, "0"]].concat();
        for format in sample(["table", "csv", "json", "ndjson"].into_iter().skip(i % 2), 2) {
            let of = |line: &[&str]| piped(&[line, &["--format", format]].concat(), dump);
            assert_eq!(of(line), of(&whole), "{line:?} as {format}");
        }
        let screen = |line: &[&str]| {
            run_on(Screen::terminal(Some(200), Some(40)), &[line, &["--no-local-files", dump.to_str().unwrap()]].concat()).out
        };
        if screen(line).lines().count() < screen(&whole).lines().count() {
            cut.insert(line[0]);
        }
    }
    assert!(cut.len() > cases(2, 8), "a terminal cuts {cut:?} only");
    // Commands that take `--top` are in the list, or take more than one dump, or rank.
    let command_line = gcdump::cli::command_line();
    let known: BTreeSet<&str> = LISTS.iter().map(|line| line[0]).chain(["diff", "retained", "track", "whatif"]).collect();
    for entry in COMMANDS {
        let command = command_line.find_subcommand(entry.name).unwrap();
        let of = |c: &clap::Command| c.get_arguments().any(|a| a.get_long() == Some("top"));
        let limits = of(command) || command.get_subcommands().any(of);
        assert!(!limits || known.contains(entry.name), "{} has --top", entry.name);
    }
}

/// Objects are ranked, not listed, because a heap has millions. The answer has their number.
#[test]
fn retained_lists_all_types_and_the_number_of_objects() {
    let dump = own_unpacked();
    let (_, answer) = ask(&dump, &["retained"]);
    let data = &answer["data"];
    assert_eq!(number(&data["type_count"]), rows(&data["types"]).count() as u64);
    assert_eq!((rows(&data["objects"]).count(), &data["object_count"]), (20, &data["totals"]["reachable_objects"]));
    assert!(piped(&["retained"], &dump).contains(" more objects (--top 0 lists all)"));
}
