//! `diff` compared with the answers of `stat`, on real pairs of dumps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{ask, bytes_of, own_unpacked, run, sample};
use gcdump::cli::Exit;
use serde_json::{Value, json};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

/// Pairs of one process, of two runs, of two runtimes, and of two operating systems.
fn pairs() -> Vec<(PathBuf, PathBuf)> {
    let pair = |a: &str, b: &str| (corpus(a), corpus(b));
    vec![
        pair("net10-wks-leak-heap.before", "net10-wks-leak-heap.after"),
        pair("net10-wks-track-heap.before", "net10-wks-track-heap.after"),
        pair("net8-wks-basics-heap", "net10-svr-basics-heap"),
        pair("net9-wks-basics-heap", "win-net10-wks-basics-heap"),
    ]
}

fn compare(dumps: &[&Path], more: &[&str]) -> (Exit, Value) {
    let mut args = vec!["diff", "--json", "--no-local-files"];
    args.extend(more);
    args.extend(dumps.iter().map(|p| p.to_str().unwrap()));
    let ran = run(&args);
    assert!(!ran.out.is_empty(), "{args:?}: {:?} {}", ran.exit, ran.err);
    (ran.exit, ran.json())
}

fn number(v: &Value) -> i128 {
    i128::from(v.as_i64().unwrap_or_else(|| panic!("{v} is not a number")))
}

/// Objects and bytes by key, without free space.
type Groups = BTreeMap<String, (i128, i128)>;

fn stat(dump: &Path, by: &str) -> Groups {
    let (_, answer) = ask(dump, &["stat", "--by", by]);
    let mut groups = Groups::new();
    let mut add = |key: &str, count: i128, bytes: i128| {
        let sum = groups.entry(key.into()).or_default();
        *sum = (sum.0 + count, sum.1 + bytes);
    };
    for t in answer["data"]["types"].as_array().into_iter().flatten() {
        let nameless = t["type"] == t["method_table"];
        add(if nameless { "(unknown)" } else { t["type"].as_str().unwrap() }, number(&t["count"]), number(&t["bytes"]));
    }
    for g in answer["data"]["groups"].as_array().into_iter().flatten() {
        add(g["key"].as_str().unwrap(), number(&g["count"]), number(&g["bytes"]));
    }
    groups.retain(|_, sum| sum.0 > 0);
    groups
}

#[test]
fn rows_of_selected_types_equal_those_of_all() {
    let (before, after) = ("dumps/corpus/net10-wks-leak-heap.before.dmp.zst", "dumps/corpus/net10-wks-leak-heap.after.dmp.zst");
    let ask =
        |more: &[&str]| run(&[&["diff", "--all", "--json", "--no-local-files"], more, &[before, after]].concat()).json()["data"].clone();
    let (all, some) = (ask(&[]), ask(&["--type", "Lab.*"]));
    let rows = |data: &Value| data["rows"].as_array().unwrap().clone();
    let wanted: Vec<Value> = rows(&all).into_iter().filter(|row| row["key"].as_str().unwrap().starts_with("Lab.")).collect();
    assert!(wanted.len() > 1 && rows(&some) == wanted, "{some}");
    assert_eq!(some["summary"], all["summary"]);
    let spaces = ask(&["--type", "Lab.*", "--by", "namespace"]);
    assert_eq!(rows(&spaces).len(), 1);
    assert_eq!(run(&["diff", "--type", "Lab.*", "--by", "root", before, after]).exit, Exit::Usage);
}

#[test]
fn rows_are_the_difference_of_two_stats() {
    for (a, b) in pairs() {
        for by in sample(["type", "namespace", "assembly", "generation"], 4) {
            let (before, after) = (stat(&a, by), stat(&b, by));
            let (_, answer) = compare(&[&a, &b], &["--by", by, "--all"]);
            let (mut reported, mut changed) = ((Groups::new(), Groups::new()), 0);
            for row in answer["data"]["rows"].as_array().unwrap() {
                let mut side = |side: &str, groups: fn(&mut (Groups, Groups)) -> &mut Groups| {
                    let (count, bytes) = (number(&row[side]["count"]), number(&row[side]["bytes"]));
                    if count > 0 {
                        let sum = groups(&mut reported).entry(row["key"].as_str().unwrap().into()).or_default();
                        *sum = (sum.0 + count, sum.1 + bytes);
                    }
                    (count, bytes)
                };
                let (from, to) = (side("before", |t| &mut t.0), side("after", |t| &mut t.1));
                assert_eq!((number(&row["count_change"]), number(&row["bytes_change"])), (to.0 - from.0, to.1 - from.1), "{row}");
                let state = match (from, to) {
                    ((0, _), _) => "new",
                    (_, (0, _)) => "gone",
                    _ if from == to => "same",
                    _ if (to.1, to.0) > (from.1, from.0) => "grown",
                    _ => "shrunk",
                };
                assert_eq!(row["state"], state, "{row}");
                changed += usize::from(state != "same");
            }
            assert_eq!(reported, (before, after), "{} {} {by}", a.display(), b.display());
            // Without --all, only changed rows are listed.
            let (_, answer) = compare(&[&a, &b], &["--by", by]);
            assert_eq!(answer["data"]["rows"].as_array().unwrap().len(), changed);
        }
    }
}

#[test]
fn each_object_is_counted_at_one_root() {
    for (a, b) in sample(pairs(), 2) {
        let (_, answer) = compare(&[&a, &b], &["--by", "root", "--all"]);
        for (side, dump) in [("before", &a), ("after", &b)] {
            let rows = answer["data"]["rows"].as_array().unwrap().iter();
            let reported = rows.fold((0, 0), |sum, r| (sum.0 + number(&r[side]["count"]), sum.1 + number(&r[side]["bytes"])));
            let all = stat(dump, "type").values().fold((0, 0), |sum, t| (sum.0 + t.0, sum.1 + t.1));
            assert_eq!(reported, all, "{} {side}", dump.display());
        }
    }
}

/// The lab's `leak`: between the dumps, a list of 250 new objects was added to a static list.
#[test]
fn the_leak_comes_first_and_is_named_by_its_holder() {
    let (a, b) = (corpus("net10-wks-leak-heap.before"), corpus("net10-wks-leak-heap.after"));
    let ran = run(&["diff", "--no-local-files", a.to_str().unwrap(), b.to_str().unwrap()]);
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    let first = ran.out.lines().next().unwrap();
    assert!(first.starts_with("Lab.Program.Keep → ") && first.contains("grew by 250 Lab.Leaky"), "{first}");

    let (_, answer) = compare(&[&a, &b], &["--holders"]);
    let holder = &answer["data"]["holders"][0];
    assert_eq!((&holder["root"], &holder["element"], &holder["own"]), (&json!("Lab.Program.Keep"), &json!("Lab.Leaky"), &json!(true)));
    let path = holder["path"].as_array().unwrap();
    let types: Vec<&str> = path.iter().map(|s| s["type"].as_str().unwrap()).collect();
    let list = |of: &str| format!("System.Collections.Generic.List<{of}>");
    assert_eq!(types, [&list("System.Object"), "System.Object[]", &list("Lab.Leaky"), "Lab.Leaky[]"]);
    assert_eq!((&path[2]["field"], number(&path[2]["before"]), number(&path[2]["after"])), (&json!("[1]"), 0, 1));
    // The retained size of the container in the last dump equals that of `retained`, and that of the root in both dumps.
    let at = path[3]["address"].as_str().unwrap();
    let (_, object) = ask(&b, &["retained", "--object", at]);
    assert_eq!(object["data"]["object"]["retained"], holder["retained_after"]);
    let leaky = holder["gained"].as_array().unwrap().iter().find(|g| g["type"] == "Lab.Leaky").unwrap();
    assert_eq!(number(&leaky["count"]), 250);
    for (dump, key) in [(&a, "root_before"), (&b, "root_after")] {
        let (_, statics) = ask(dump, &["roots", "--kind", "static"]);
        let keep = statics["data"]["roots"].as_array().unwrap().iter().find(|r| r["label"] == "Lab.Program.Keep").unwrap();
        let (_, object) = ask(dump, &["retained", "--object", keep["object"].as_str().unwrap()]);
        assert_eq!(object["data"]["object"]["retained"], holder[key], "{key}");
    }
}

/// Snapshots have no slots: the new list is not confused with the one that lost elements.
#[test]
fn the_leak_is_the_new_list_if_a_dump_is_compared_with_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["before", "after"].map(|which| corpus(&format!("net10-wks-leak-heap.{which}")));
    let file = |dump: &Path| {
        let file = folder.path().join(dump.file_name().unwrap()).with_extension("gcdump");
        let ran = run(&["export", "gcdump", "--no-local-files", dump.to_str().unwrap(), "-o", file.to_str().unwrap()]);
        assert!(matches!(ran.exit, Exit::Ok | Exit::Partial), "{}", ran.err);
        file
    };
    let (old, new) = (file(&before), file(&after));
    for (a, b) in [(&old, &after), (&before, &new), (&old, &new)] {
        let (_, answer) = compare(&[a, b], &["--holders"]);
        let holder = &answer["data"]["holders"][0];
        assert!(holder["text"].as_str().unwrap().contains(" grew by 250 Lab.Leaky"), "{holder}");
        let list = &holder["path"][2];
        assert_eq!((&holder["retained_before"], &list["before"], &list["after"]), (&json!(0), &json!(0), &json!(1)), "{holder}");
        assert_eq!(list["field"], if b == &after { json!("[1]") } else { Value::Null });
    }
    let ran = run(&["analyze", "--json", "--no-local-files", "--since", old.to_str().unwrap(), after.to_str().unwrap()]);
    let findings = ran.json()["data"]["findings"].clone();
    assert!(findings.as_array().unwrap().iter().all(|f| !f["title"].as_str().unwrap().contains("grew by 500 Lab.Leaky")), "{findings}");
}

#[test]
fn a_dump_does_not_differ_from_itself() {
    let own = own_unpacked();
    let (exit, answer) = compare(&[&own, &own, &own], &[]);
    let data = &answer["data"];
    assert_eq!((exit, &data["rows"], &data["holders"]), (Exit::Ok, &json!([]), &json!([])));
    assert!(number(&data["unchanged"]) > 100 && data["dumps"].as_array().unwrap().len() == 3);
    for m in data["summary"].as_array().unwrap() {
        assert_eq!((&m["change"], &m["trend"]), (&json!(0), &json!("steady")), "{m}");
    }
    let reported = |name: &str| data["summary"].as_array().unwrap().iter().find(|m| m["name"] == name).unwrap()["before"].clone();
    let count = |command: &[&str], path: &str| ask(&own, command).1.pointer(path).unwrap().clone();
    assert_eq!(reported("handles"), count(&["handles", "--stat"], "/data/total"));
    assert_eq!(reported("finalizable"), count(&["finalizers"], "/data/registered"));
    assert_eq!(reported("committed"), count(&["heap"], "/data/totals/committed"));
    assert_eq!(reported("fragmented"), count(&["fragmentation"], "/data/totals/free_bytes"));
    assert_eq!(reported("threads"), json!(ask(&own, &["threads"]).1["data"]["threads"].as_array().unwrap().len()));
}

/// A snapshot has only the objects that roots reach, and less about roots than a dump.
#[test]
fn a_dump_does_not_differ_from_its_own_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    for name in sample(["net10-wks-leak-heap.after", "net10-svr-roots-heap", "net10-wks-finalizers-heap", "net9-wks-roots-heap"], 2) {
        let dump = folder.path().join(format!("{name}.dmp"));
        std::fs::write(&dump, bytes_of(name).unwrap()).unwrap();
        for more in [&[][..], &["--unreachable"]] {
            let file = folder.path().join("x.gcdump");
            let words = [&["export", "gcdump", "--force", dump.to_str().unwrap(), file.to_str().unwrap()], more].concat();
            assert!(matches!(run(&words).exit, Exit::Ok | Exit::Partial), "{words:?}");
            for by in ["type", "root"] {
                let (_, answer) = compare(&[&file, &dump], &["--by", by, "--fail-on", "bytes>0%", "--fail-on", "objects>+0"]);
                let data = &answer["data"];
                assert_eq!((&data["rows"], &data["holders"]), (&json!([]), &json!([])), "{name} {more:?} by {by}");
                assert!(data["rules"].as_array().unwrap().iter().all(|rule| rule["failed"] == false), "{}", data["rules"]);
                assert_eq!(data["live_only"], true);
            }
        }
    }
}

/// Retained sizes of a type equal those of `retained`.
#[test]
fn retained_sizes_are_those_of_retained() {
    let (a, b) = &pairs()[0];
    let (_, answer) = compare(&[a, b], &["--all"]);
    let rows = answer["data"]["rows"].as_array().unwrap();
    let (_, theirs) = ask(b, &["retained", "--top", "0"]);
    let types = theirs["data"]["types"].as_array().unwrap();
    assert!(types.len() > 50);
    for t in types {
        let twin = rows.iter().filter(|r| r["key"] == t["type"]).count() > 1 || types.iter().filter(|o| o["type"] == t["type"]).count() > 1;
        let row = rows.iter().find(|r| r["key"] == t["type"]).unwrap_or_else(|| panic!("{t}"));
        assert!(twin || row["retained_after"] == t["retained"], "{row} {t}");
    }
}

#[test]
fn rules_fail_with_their_reasons() {
    let (a, b) = (corpus("net10-wks-leak-heap.before"), corpus("net10-wks-leak-heap.after"));
    let with = |rules: &[&str]| {
        let mut args = vec!["diff", "--json", "--no-local-files", a.to_str().unwrap(), b.to_str().unwrap()];
        args.extend(rules.iter().flat_map(|r| ["--fail-on", r]));
        run(&args)
    };
    let ran = with(&["bytes>10%", "type:Lab.Leaky:count>1000", "handles>+500", "type:Lab.*:bytes<1MB", "handles:strong>=+4"]);
    let rules = ran.json()["data"]["rules"].clone();
    let failed: Vec<bool> = rules.as_array().unwrap().iter().map(|r| r["failed"].as_bool().unwrap()).collect();
    assert_eq!((ran.exit, failed), (Exit::Negative, vec![true, false, false, true, true]), "{rules}");
    assert!(ran.err.contains("failed: bytes>10%: bytes went from 268,058 to 584,316 (+316,258)"), "{}", ran.err);
    assert!(!ran.err.contains("handles>+500"), "{}", ran.err);
    // A rule for a misspelled name would never fail, which is reported; a rule for a type that must not occur is fine.
    let gate = with(&["type:Lab.Leaky:count>1000", "type:No.Such:count>0"]);
    let reported: Vec<String> =
        gate.json()["warnings"].as_array().unwrap().iter().map(|w| format!("{} {}", w["kind"], w["message"])).collect();
    assert!(
        gate.exit == Exit::Ok
            && reported.len() == 1
            && reported[0].contains("no-match")
            && reported[0].contains("type:No.Such:count>0: no dump has"),
        "{reported:?}"
    );
    assert_eq!(
        run(&["diff", "--strict", "--fail-on", "type:No.Such:count>0", a.to_str().unwrap(), b.to_str().unwrap()]).exit,
        Exit::Partial
    );
    assert_eq!(with(&["type:[:count>1"]).exit, Exit::Usage);
    assert_eq!(with(&["type:Lab.Leaky:retained>100KB"]).exit, Exit::Negative);

    let wrong = with(&["bytes>>10%"]);
    assert!(wrong.exit == Exit::Usage && wrong.err.contains("\n        ^"), "{}", wrong.err);
    let folder = tempfile::tempdir().unwrap();
    let budget = folder.path().join("budget.txt");
    let check = |text: &str| {
        std::fs::write(&budget, text).unwrap();
        run(&["diff", "--budget", budget.to_str().unwrap(), a.to_str().unwrap(), b.to_str().unwrap()])
    };
    assert_eq!(check("# nothing\n").exit, Exit::Ok);
    assert_eq!(check("bytes>500% # generous\nobjects>+100\n").exit, Exit::Negative);
    let wrong = check("bytes>1\nbyte>1\n");
    assert!(wrong.exit == Exit::Usage && wrong.err.contains("budget.txt:2: expected one of bytes, "), "{}", wrong.err);
}

/// Parts that a dump does not have are absent, not zero, and the notes name the dump.
#[test]
fn notes_name_their_dump() {
    let (whole, mini) = (corpus("net10-wks-basics-full"), corpus("net10-wks-basics-mini"));
    let (exit, answer) = compare(&[&whole, &mini], &["--fail-on", "handles>+5"]);
    assert_eq!((exit, &answer["data"]["complete"]), (Exit::Partial, &json!(false)));
    let notes: Vec<&str> = answer["warnings"].as_array().unwrap().iter().map(|n| n["message"].as_str().unwrap()).collect();
    let of = |dump: &Path| notes.iter().filter(|n| n.starts_with(&format!("{}: ", dump.display()))).count();
    assert!(of(&mini) > 0 && of(&whole) + of(&mini) == notes.len(), "{notes:?}");
    let summary = answer["data"]["summary"].as_array().unwrap();
    let handles = summary.iter().find(|m| m["name"] == "handles").unwrap();
    assert!(handles["before"].is_u64() && handles["after"].is_null() && handles["change"].is_null(), "{handles}");
    let rule = &answer["data"]["rules"][0];
    assert!(rule["failed"].is_null() && rule["reason"].is_string(), "{rule}");
}

#[test]
fn every_dump_has_its_column() {
    let (a, b) = (corpus("net10-wks-leak-heap.before"), corpus("net10-wks-leak-heap.after"));
    let paths = [&a, &b, &a].map(|p| p.to_str().unwrap());
    let ran = run(&[&["diff", "--no-local-files", "--format", "csv"][..], &paths].concat());
    let mut rows = csv::Reader::from_reader(ran.out.as_bytes());
    let header = rows.headers().unwrap().clone();
    for name in ["count_1", "bytes_1", "count_3", "bytes_3", "trend", "module"] {
        assert!(header.iter().any(|h| h == name), "{header:?}");
    }
    let trend = header.iter().position(|h| h == "trend").unwrap();
    let rows: Vec<_> = rows.records().map(Result::unwrap).collect();
    // The numbers go up and down again: nothing grows in every step, and no row that came back is left out.
    assert!(rows.len() > 50 && rows.iter().all(|r| &r[trend] == "varies"));

    let (_, answer) = ask(&a, &["diff", own_unpacked().to_str().unwrap(), b.to_str().unwrap()]);
    assert_eq!(answer["data"]["dumps"].as_array().unwrap().len(), 3);
    assert!(run(&["diff", a.to_str().unwrap()]).exit == Exit::Usage);
    let text = run(&["diff", a.to_str().unwrap(), "Cargo.toml"]);
    assert!(text.exit == Exit::BadDump && text.err.contains("Cargo.toml"), "{}", text.err);
}

#[test]
fn rules_take_simple_names_and_files_with_a_byte_order_mark() {
    let (a, b) = (corpus("net10-wks-leak-heap.before"), corpus("net10-wks-leak-heap.after"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("budget.txt");
    std::fs::write(&file, "\u{feff}type:Leaky:count >= 1\ntype:/Leaky$/:count >= 1\ntype:Leak:count >= 1\n").unwrap();
    let (exit, answer) = ask(&b, &["diff", "--budget", file.to_str().unwrap(), a.to_str().unwrap()]);
    let failed: Vec<_> = answer["data"]["rules"].as_array().unwrap().iter().map(|rule| rule["failed"].as_bool()).collect();
    // `Leak` is only a part of the name.
    assert_eq!((exit, failed), (Exit::Negative, vec![Some(true), Some(true), Some(false)]), "{answer}");
}
