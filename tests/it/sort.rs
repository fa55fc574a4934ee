//! `--sort COLUMN`: amounts are descending, all else ascending unless `:asc` or `:desc` is given; unknown values are last, and equal rows keep
//! their order.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{ask, bytes_of, cases, full, own_unpacked, run, sample};

/// How a column is sorted.
#[derive(Clone, Copy, PartialEq)]
enum By {
    /// Larger numbers first.
    Most,
    /// Smaller numbers first.
    Least,
    /// Hexadecimal address.
    At,
    Text,
    /// A custom order: equal values are adjacent.
    Own,
}

use By::{At, Least, Most, Own, Text};

/// A command, its list, and its columns: as typed, and in JSON.
type Case = (&'static [&'static str], &'static str, &'static [(&'static str, &'static str, By)]);

const CASES: &[Case] = &[
    (
        &["handles"],
        "handles",
        &[
            ("address", "/address", At),
            ("type", "/type", Text),
            ("object", "/object", At),
            ("object-size", "/object_size", Most),
            ("object-type", "/object_type", Text),
            ("ref-count", "/ref_count", Most),
        ],
    ),
    (&["handles", "--by", "object-type"], "groups", &[("object-type", "/key", Text), ("count", "/count", Most), ("bytes", "/bytes", Most)]),
    (&["handles", "--stat"], "counts", &[("type", "/type", Text), ("count", "/count", Most)]),
    (
        &["statics"],
        "statics",
        &[
            ("declaring-type", "/declaring_type", Text),
            ("name", "/name", Text),
            ("type", "/type", Text),
            ("storage", "/storage", Text),
            ("address", "/address", At),
        ],
    ),
    (&["statics", "--thread-statics"], "statics", &[("thread", "/thread/managed_id", Least)]),
    (
        &["segments", "--walk"],
        "segments",
        &[
            ("heap", "/heap", Least),
            ("generation", "/generation", Own),
            ("address", "/address", At),
            ("start", "/start", At),
            ("allocated-bytes", "/allocated_bytes", Most),
            ("committed-bytes", "/committed_bytes", Most),
            ("objects", "/walk/objects", Most),
            ("free-bytes", "/walk/free_bytes", Most),
        ],
    ),
    (
        &["segments", "--free"],
        "regions",
        &[("heap", "/heap", Least), ("address", "/address", At), ("start", "/range/start", At), ("committed-bytes", "/bytes", Most)],
    ),
    (&["roots"], "roots", &[("kind", "/kind", Own), ("address", "/address", At), ("object", "/object", At), ("type", "/type", Text)]),
    (&["roots", "--stat"], "types", &[("type", "/type", Text), ("count", "/count", Most), ("objects", "/objects", Most)]),
    (
        &["threads", "--waits"],
        "threads",
        &[
            ("managed-id", "/managed_id", Least),
            ("os-id", "/os_id", Least),
            ("name", "/name", Text),
            ("exception-type", "/exception/type", Text),
            ("locks-held", "/locks_held", Most),
        ],
    ),
    (
        &["exceptions"],
        "exceptions",
        &[("address", "/address", At), ("type", "/type", Text), ("message", "/message", Text), ("thread", "/thread", Least)],
    ),
    (
        &["exceptions", "--stat"],
        "groups",
        &[("type", "/type", Text), ("message", "/message", Text), ("count", "/count", Most), ("thrown", "/thrown", Most)],
    ),
    (
        &["timers"],
        "timers",
        &[
            ("due", "/due_ms", Least),
            ("period", "/period_ms", Most),
            ("kind", "/kind", Text),
            ("method", "/callback", Text),
            ("state-type", "/state_type", Text),
            ("object", "/object", At),
        ],
    ),
    (&["timers"], "waits", &[("due", "/timeout_ms", Least), ("method", "/callback", Text), ("object", "/object", At)]),
    (&["timers"], "cancellations", &[("method", "/callbacks/0/callback", Text), ("state-type", "/type", Text), ("object", "/object", At)]),
    (
        &["finalizers"],
        "types",
        &[("type", "/type", Text), ("registered", "/registered", Most), ("ready", "/ready", Most), ("critical", "/critical", Most)],
    ),
    (
        &["finalizers", "--objects"],
        "objects",
        &[
            ("type", "/type", Text),
            ("object", "/object", At),
            ("state", "/state", Text),
            ("generation", "/generation", Own),
            ("heap", "/heap", Least),
        ],
    ),
];

fn compare(a: &Value, b: &Value, by: By) -> Ordering {
    let text = |v: &Value| v.as_str().map(str::to_string);
    let at = |v: &Value| v.as_str().map(|t| u64::from_str_radix(t.trim_start_matches("0x"), 16).unwrap());
    let order = match by {
        Most => Reverse(a.as_u64()).cmp(&Reverse(b.as_u64())),
        Least => a.as_i64().cmp(&b.as_i64()),
        At => at(a).cmp(&at(b)),
        Text => text(a).cmp(&text(b)),
        Own => Ordering::Equal,
    };
    a.is_null().cmp(&b.is_null()).then(order)
}

#[test]
fn lists_are_sorted_by_each_of_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    // Each list has rows in at least one of these dumps.
    let unpacked = ["net10-wks-pool-heap", "net10-wks-http-heap", "net10-wks-crash-heap"].map(|name| {
        let path = folder.path().join(format!("{name}.dmp"));
        std::fs::write(&path, bytes_of(name).unwrap()).unwrap();
        path
    });
    let dumps: Vec<_> = unpacked.into_iter().take(cases(1, 3)).chain([own_unpacked()]).collect();
    let null = Value::Null;
    for (command, list, columns) in CASES {
        let (mut rows, mut changed) = (0, 0);
        for dump in &dumps {
            let (_, plain) = ask(dump, command);
            let found = plain["data"][list].as_array().unwrap_or_else(|| panic!("{command:?}: no {list}"));
            rows = rows.max(found.len());
            for (column, json, by) in sample(*columns, 4) {
                let of = |row: &Value| row.pointer(json).unwrap_or(&null).clone();
                let (_, answer) = ask(dump, &[*command, &["--sort", column]].concat());
                let sorted = answer["data"][list].as_array().unwrap();
                changed += usize::from(sorted != found);
                if *by == Own {
                    let mut values: Vec<String> = sorted.iter().map(|r| of(r).to_string()).collect();
                    values.dedup();
                    assert_eq!(values.iter().collect::<BTreeSet<_>>().len(), values.len(), "{command:?} {column}: {values:?}");
                    assert_eq!(sorted.len(), found.len());
                    continue;
                }
                let mut wanted = found.clone();
                wanted.sort_by(|a, b| compare(&of(a), &of(b), *by));
                assert!(*sorted == wanted, "{command:?} --sort {column} of {}", dump.display());
                // The other direction; unknown values are last in both.
                let (usual, other) = if *by == Most { ("desc", "ASC") } else { ("asc", "descending") };
                let (_, answer) = ask(dump, &[*command, &["--sort", &format!("{column}:{usual}")]].concat());
                assert!(answer["data"][list].as_array().unwrap() == sorted, "{command:?} --sort {column}:{usual} of {}", dump.display());
                let (_, answer) = ask(dump, &[*command, &["--sort", &format!("{column}:{other}")]].concat());
                wanted = found.clone();
                wanted.sort_by(|a, b| of(a).is_null().cmp(&of(b).is_null()).then(compare(&of(b), &of(a), *by)));
                assert!(*answer["data"][list].as_array().unwrap() == wanted, "{command:?} --sort {column}:{other} of {}", dump.display());
            }
        }
        assert!(!full() || rows > 1 && (changed > 0 || rows < 4), "{command:?}: {rows} rows, {changed} orders that differ");
    }
}

#[test]
fn the_first_rows_are_the_first_of_the_order() {
    let dump = own_unpacked();
    let (_, all) = ask(&dump, &["handles"]);
    let largest = all["data"]["handles"].as_array().unwrap().iter().filter_map(|h| h["object_size"].as_u64()).max().unwrap();
    let (_, one) = ask(&dump, &["handles", "--sort", "object-size", "--top", "1"]);
    assert_eq!(one["data"]["handles"][0]["object_size"], largest);
    assert_eq!(one["data"]["total"], all["data"]["total"]);
}

#[test]
fn other_lists_have_both_directions() {
    let dump = own_unpacked();
    for (command, list, column, json) in [
        (&["stat"][..], "types", "bytes", "bytes"),
        (&["stat"], "types", "count", "count"),
        (&["strings", "--min-count", "1"], "strings", "length", "length"),
        (&["objects"], "objects", "size", "size"),
        (&["statics", "--retained"], "statics", "retained", "retained"),
        (&["refs", "--type", "Lab.Dog"], "/incoming/types", "references", "references"),
    ] {
        for (direction, ascends) in [("", false), (":desc", false), (":asc", true)] {
            let (_, answer) = ask(&dump, &[command, &["--sort", &format!("{column}{direction}")]].concat());
            let rows = answer["data"].get(list).or_else(|| answer["data"].pointer(list)).unwrap();
            let values: Vec<u64> = rows.as_array().unwrap().iter().filter_map(|row| row[json].as_u64()).collect();
            assert!(
                values.len() > 1 && values.is_sorted_by(|a, b| if ascends { a <= b } else { a >= b }),
                "{command:?} {column}{direction}"
            );
        }
    }
    let (_, descending) = ask(&dump, &["objects", "--sort", "address:desc", "--count", "3"]);
    let (_, all) = ask(&dump, &["objects"]);
    let address = |answer: &Value, i: usize| answer["data"]["objects"][i]["address"].clone();
    assert_eq!(address(&descending, 0), address(&all, all["data"]["objects"].as_array().unwrap().len() - 1));
}

#[test]
fn every_column_of_csv_is_an_order() {
    let dump = own_unpacked();
    let csv = |words: &[&str]| {
        let ran = run(&[words, &["--format", "csv", "--no-local-files", dump.to_str().unwrap()]].concat());
        assert!(matches!(ran.exit, Exit::Ok | Exit::Partial), "{words:?}: {}", ran.err);
        ran.out
    };
    let mut tried = 0;
    for command in ["stat", "handles", "segments", "threads", "roots", "statics", "strings", "exceptions", "timers", "finalizers"] {
        let found = csv(&[command]);
        let sorted_lines = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            lines.sort();
            lines
        };
        for column in found.lines().next().unwrap_or_default().split(',') {
            // These two need a flag: the list then has values for them.
            if matches!(column, "locks_held" | "retained" | "free_bytes" | "objects") {
                continue;
            }
            assert_eq!(sorted_lines(&csv(&[command, "--sort", column])), sorted_lines(&found), "{command} --sort {column}");
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
    for (plain, other) in [
        ("handles --sort object_size", "handles --sort object-size"),
        ("segments --sort Allocated_Bytes:asc", "segments --sort allocated-bytes:asc"),
    ] {
        let words = |line: &'static str| line.split(' ').collect::<Vec<_>>();
        assert_eq!(csv(&words(plain)), csv(&words(other)), "{plain}");
    }
}

#[test]
fn a_column_that_a_list_does_not_have_is_refused_with_its_columns() {
    let dump = own_unpacked();
    let refused = |line: &str, says: &str| {
        let args: Vec<&str> = line.split(' ').chain(["--no-local-files", dump.to_str().unwrap()]).collect();
        let ran = run(&args);
        assert!(ran.exit == Exit::Usage && ran.err.contains(says), "{line}: {}", ran.err);
    };
    refused("roots --sort count", "cannot sort by count: roots can be sorted by kind, address, object, type");
    refused("roots --stat --sort address", "roots by type can be sorted by type, count, objects");
    refused("segments --sort free-bytes", "segments without `walk` can be sorted by heap");
    refused("threads --sort locks-held", "threads without `waits` can be sorted by managed-id");
    refused("statics --sort retained", "statics without `retained` can be sorted by declaring-type");
    refused("handles --by generation --sort type", "can be sorted by count, bytes");
    refused("finalizers --sort object", "can be sorted by type, registered");
    refused("exceptions --sort thrown", "can be sorted by address");
    refused("stat --sort color", "cannot sort by color: this can be sorted by method_table, count, bytes");
    refused("objects --sort type", "cannot sort by type: this can be sorted by size, length, address");
    refused("stat --sort bytes:up", "bytes, count, name");
}
