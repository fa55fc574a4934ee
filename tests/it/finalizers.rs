//! `finalizers`: lists are limited in every format, and totals are shown.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{ask, run};
use gcdump::cli::Exit;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus").join(format!("{name}.dmp.zst"))
}

#[test]
fn objects_are_limited_in_every_format_and_the_total_is_shown() {
    let path = corpus("net10-wks-finalizers-heap");
    let file = path.to_str().unwrap();
    let (_, all) = ask(&path, &["finalizers", "--objects", "--top", "0"]);
    let all = all["data"]["objects"].as_array().unwrap();
    assert_eq!(all.len(), 207);
    for top in [1usize, 5, 206, 207, 1000] {
        let cut = top < 207;
        let count = top.min(207);
        let asked = ["finalizers", "--objects", "--top", &top.to_string()].map(String::from);
        let (_, answer) = ask(&path, &asked.each_ref().map(String::as_str));
        let data = &answer["data"];
        assert_eq!(data["objects"].as_array().unwrap()[..], all[..count]);
        assert_eq!(data["objects_shown"].as_u64(), cut.then_some(count as u64));
        let lines = |format: &str| {
            let ran = run(&[asked.as_slice(), &["--format".into(), format.into(), file.into()]].concat());
            assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
            ran.out.lines().map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(lines("csv").len(), count + 1);
        let of_objects = |line: &&String| line.contains("\"record\":\"object\"");
        assert_eq!(lines("ndjson").iter().filter(of_objects).count(), count);
        let table = lines("table");
        let rows = table.iter().skip(1).take_while(|line| line.starts_with("0x")).count();
        let total = format!("{top} of 207 objects (--top 0 lists all)");
        assert_eq!((rows, table.contains(&total)), (count, cut), "{table:#?}");
    }
}

/// The queue keeps objects whose finalizers were suppressed, but the GC frees them at once when it finds them dead.
#[test]
fn objects_with_suppressed_finalizers_are_not_kept_by_them() {
    let path = corpus("net10-wks-http-heap");
    let rows = |command: &[&str]| {
        let (_, answer) = ask(&path, &[command, &["--top", "0"]].concat());
        let data = &answer["data"];
        let list = if command[0] == "inspect" { &data["inspections"][0]["rows"] } else { &data["types"] };
        list.as_array().unwrap().clone()
    };
    let name = |row: &serde_json::Value| row["type"].as_str().unwrap().to_string();
    let pending: BTreeSet<String> = rows(&["inspect", "undisposed"]).iter().map(name).collect();
    let suppressed: BTreeSet<String> = rows(&["finalizers"]).iter().map(name).filter(|t| !pending.contains(t)).collect();
    let garbage = rows(&["unreachable"]);
    let found: Vec<&str> = garbage.iter().filter(|row| suppressed.contains(&name(row))).map(|row| row["class"].as_str().unwrap()).collect();
    assert_eq!((suppressed.len(), found), (2, vec!["unreachable"; 2]), "{suppressed:?}");
}
