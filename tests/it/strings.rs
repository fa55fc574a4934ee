//! `strings`, compared with ClrMD and the programs' own records, on every shared dump.

use std::collections::BTreeSet;

use crate::common::{self, ask, known_dumps, own_unpacked};
use crate::harness::Tested;
use gcdump::cli::Exit;
use serde_json::Value;

fn n(v: &Value, key: &str) -> u64 {
    v[key].as_u64().unwrap()
}

#[test]
fn strings_are_those_of_clrmd() -> Tested {
    let (dumps, missing) = known_dumps(|row| row["clrmd"].is_string())?;
    assert!(!dumps.is_empty(), "no dump is unpacked, {missing:?} are missing");
    let (mut exact, mut more, mut compared) = (0, 0, 0);
    for dump in &dumps {
        let Some(theirs) = dump.clrmd.as_ref().map(|c| &c["strings"]).filter(|s| s["strings"].is_u64()) else { continue };
        let (_, ours) = ask(&dump.path, &["strings"]);
        let data = &ours["data"];
        sums_add_up(&dump.name, data);
        // Mini dumps contain few heap pages: ClrMD stops at the first gap, gcdump continues after it.
        let whole = matches!(dump.kind.as_str(), "heap" | "full" | "gcore" | "kernel");
        for key in ["strings", "bytes", "distinct", "duplicate_groups", "wasted_bytes"] {
            let (our, their) = (n(&data["totals"], key), n(theirs, key));
            assert!(if whole { our == their } else { our >= their }, "{}: {key}: {our}; ClrMD has {their}", dump.name);
        }
        if !whole {
            more += 1;
            continue;
        }
        exact += 1;
        let known: BTreeSet<(u64, u64, u64, &str)> =
            rows(data).iter().map(|s| (n(s, "count"), n(s, "bytes"), n(s, "length"), s["value"].as_str().unwrap())).collect();
        // Longer strings may be truncated.
        for top in theirs["top"].as_array().unwrap().iter().filter(|t| n(t, "length") < 60 && n(t, "count") > 1) {
            let value = top["value"].as_str().unwrap();
            // Paths were shortened in the stored answers.
            if u64::try_from(value.encode_utf16().count()).unwrap() != n(top, "length") {
                continue;
            }
            compared += 1;
            let row = (n(top, "count"), n(top, "size"), n(top, "length"), value);
            assert!(known.contains(&row), "{}: {row:?}", dump.name);
        }
    }
    println!("{exact} dumps exact, {compared} contents compared, {more} mini dumps with at least what ClrMD finds");
    Ok(())
}

fn rows(data: &Value) -> &Vec<Value> {
    data["strings"].as_array().unwrap()
}

/// Checks that the rows are those with duplicates, and that they add up to the totals.
fn sums_add_up(name: &str, data: &Value) {
    let (rows, t) = (rows(data), &data["totals"]);
    let sum = |key: &str| rows.iter().map(|s| n(s, key)).sum::<u64>();
    assert_eq!(u64::try_from(rows.len()).unwrap(), n(t, "duplicate_groups"), "{name}");
    assert_eq!(n(data, "rows"), n(t, "duplicate_groups"), "{name}");
    assert_eq!(sum("waste"), n(t, "wasted_bytes"), "{name}");
    assert_eq!(n(t, "strings") - n(t, "unreadable"), n(t, "distinct") + sum("count") - n(t, "duplicate_groups"), "{name}");
    assert!(rows.iter().map(|s| n(s, "waste")).is_sorted_by(|a, b| a >= b), "{name}");
}

#[test]
fn duplicates_are_those_made_by_the_program() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "inspect")?;
    for dump in &dumps {
        let truth = dump.truth.as_ref().unwrap();
        let text = truth["duplicate_text"].as_str().unwrap();
        let (_, answer) = ask(&dump.path, &["strings", "--like", text]);
        let rows = rows(&answer["data"]);
        assert_eq!((rows.len(), rows[0]["value"].as_str()), (1, Some(text)), "{}", dump.name);
        // The original literal is one more.
        assert_eq!(n(&rows[0], "count"), n(truth, "duplicates") + 1, "{}", dump.name);
    }
    println!("{} dumps", dumps.len());
    Ok(())
}

#[test]
fn options_filter_sort_and_limit() {
    let dump = own_unpacked();
    let data = |args: &[&str]| ask(&dump, &[&["strings"], args].concat()).1["data"].clone();
    let all = data(&["--min-count", "1"]);
    assert_eq!(n(&all, "rows"), n(&all["totals"], "distinct"));
    assert_eq!(rows(&all).iter().map(|s| n(s, "bytes")).sum::<u64>(), n(&all["totals"], "bytes"));
    for (sort, key) in [("waste", "waste"), ("count", "count"), ("length", "length"), ("bytes", "bytes")] {
        let sorted = data(&["--min-count", "1", "--sort", sort]);
        assert!(rows(&sorted).iter().map(|s| n(s, key)).is_sorted_by(|a, b| a >= b), "{sort}");
        assert_eq!(sorted["totals"], all["totals"]);
        // A limited list is a prefix of the full one.
        let cut = data(&["--min-count", "1", "--sort", sort, "--top", "7"]);
        assert_eq!(rows(&cut)[..], rows(&sorted)[..7], "{sort}");
        assert_eq!((n(&cut, "shown"), &cut["rows"]), (7, &all["rows"]));
    }
    let longest = data(&["--longest", "--max-chars", "3"]);
    assert_eq!(n(&longest, "rows"), n(&all, "rows"));
    for s in rows(&longest) {
        assert!(s["value"].as_str().unwrap().encode_utf16().count() <= 3);
        assert_eq!(s["truncated"], n(s, "length") > 3);
    }
    let like = data(&["--like", "*System*"]);
    let fit = rows(&all).iter().filter(|s| s["value"].as_str().unwrap().contains("System")).count();
    assert!(fit > 0);
    assert_eq!(rows(&like).len(), fit);
    assert_eq!(n(&like["totals"], "distinct"), u64::try_from(fit).unwrap());
    assert_eq!(ask(&dump, &["strings", "--like", "no string is like this"]).0, Exit::Negative);
    // Generations add up, for any number of threads.
    let of = |g: &str| n(&data(&["--generation", g])["totals"], "strings");
    assert_eq!(["gen0", "gen1", "gen2", "loh", "poh", "frozen"].into_iter().map(of).sum::<u64>(), n(&all["totals"], "strings"));
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| data(&["--min-count", "1"])), all, "{threads} threads");
    }
}

#[test]
fn overwritten_contents_are_not_passed_off_as_duplicates() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("redacted.dmp");
    let (from, to) = (common::own_dump(), copy.to_str().unwrap());
    let ran = common::run(&["trim", "--redact", from.to_str().unwrap(), to, "--no-local-files"]);
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    let (exit, answer) = ask(&copy, &["strings"]);
    let warning = &answer["warnings"][0];
    assert_eq!((exit, &answer["data"]["complete"]), (Exit::Partial, &Value::Bool(false)), "{warning}");
    assert!(answer["warnings"].to_string().contains("was redacted"), "{warning}");
    // In a copy that was only trimmed, nothing is overwritten.
    assert_eq!(ask(&from, &["strings"]).0, Exit::Ok);
}

#[test]
fn a_size_selects_strings_and_not_only_equal_ones() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus");
    for name in ["net8-wks-basics-heap", "net10-svr-basics-heap", "win-net10-wks-basics-full"] {
        let path = corpus.join(format!("{name}.dmp.zst"));
        let file = path.to_str().unwrap();
        let (_, objects) = ask(&path, &["objects", "--type", "System.String", "--count", "0"]);
        let sizes: Vec<u64> = objects["data"]["objects"].as_array().unwrap().iter().map(|o| n(o, "size")).collect();
        for (filter, wanted) in [
            (&["--min-size", "10K"][..], &(|size: u64| size >= 10 << 10) as &dyn Fn(u64) -> bool),
            (&["--min-size", "200", "--max-size", "1K"], &|size| (200..=1024).contains(&size)),
            (&["--max-size", "40"], &|size| size <= 40),
            (&["--where", "size > 10K"], &|size| size > 10 << 10),
        ] {
            let expected = sizes.iter().filter(|size| wanted(**size)).count() as u64;
            let command = [&["strings", "--top", "0"], filter].concat();
            let (_, answer) = ask(&path, &command);
            let rows = rows(&answer["data"]);
            let (counted, bytes): (u64, Vec<u64>) =
                (rows.iter().map(|s| n(s, "count")).sum(), rows.iter().map(|s| n(s, "bytes")).collect());
            assert_eq!((counted, n(&answer["data"]["totals"], "strings")), (expected, expected), "{name}: {filter:?}");
            assert!(filter[0] == "--where" || bytes.is_sorted_by_key(|b| std::cmp::Reverse(*b)), "{name}: {filter:?}");
            let csv = common::run(&[&command[..], &["--format", "csv", file]].concat());
            let parsed = csv::Reader::from_reader(csv.out.as_bytes()).into_records().count();
            assert_eq!(parsed, rows.len(), "{name}: {filter:?}");
        }
        assert!(sizes.iter().any(|size| *size >= 10 << 10), "{name}");
    }
    let path = corpus.join("net10-wks-crash-heap.dmp.zst");
    let ran = common::run(&["strings", "--min-count", "5000", path.to_str().unwrap()]);
    assert!(ran.out.starts_with("No value occurs 5,000 times or more; --min-count 1 lists "), "{}", ran.out);
}
