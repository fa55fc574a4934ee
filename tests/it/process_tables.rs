//! Tables about the process: static fields, threads, frames, exceptions, tasks, requests, locks, modules.

use std::collections::BTreeMap;

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

use crate::common::{ask, bytes_of, own_unpacked};
use crate::tables::{Row, address, export, list, picked, table};

/// `docs/fleet.md` shows a row of each table, with all columns in their order.
#[test]
fn the_example_of_each_table_has_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("all");
    let (_, report) = export("parquet", &own_unpacked(), &out, &["--tables", "all"]);
    let tables: Vec<&str> = list(&report, "tables").iter().map(|t| t["table"].as_str().unwrap()).collect();
    assert_eq!(tables.len(), 17, "{tables:?}");
    let text = std::fs::read_to_string("docs/fleet.md").unwrap();
    for table in tables {
        let line = text.split_once(&format!("\n{table}\n")).unwrap_or_else(|| panic!("no line of {table}")).1.lines().next().unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(out.join(format!("{table}.parquet"))).unwrap()).unwrap();
        let columns: Vec<String> =
            reader.metadata().file_metadata().schema_descr().columns().iter().map(|c| c.name().to_string()).collect();
        let row: Row = serde_json::from_str(line).unwrap();
        let mut shown: Vec<&String> = row.keys().collect();
        let mut expected: Vec<&String> = columns.iter().collect();
        shown.sort_unstable();
        expected.sort_unstable();
        assert_eq!(shown, expected, "{table}");
        let places: Vec<usize> = columns.iter().map(|c| line.find(&format!("\"{c}\": ")).unwrap()).collect();
        assert!(places.is_sorted(), "{table}: {columns:?}");
    }
}

#[test]
fn tables_about_the_process_have_the_rows_of_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    // Each table must have rows in at least one of the dumps.
    let mut rows = BTreeMap::<&str, usize>::new();
    for name in ["net10-wks-deadlock-heap", "net10-wks-http-heap", "net10-wks-crash-heap"] {
        let dump = folder.path().join(format!("{name}.dmp"));
        std::fs::write(&dump, bytes_of(name).unwrap()).unwrap();
        let out = folder.path().join(name);
        export("parquet", &dump, &out, &["--tables", "statics,threads,frames,exceptions,tasks,requests,locks,modules", "--contents"]);
        let mut compare = |of: &'static str, command: &[&str], lists: &str, columns: &[&str], fields: &[&str]| {
            let (_, answer) = ask(&dump, command);
            let value = |row: &Value, field: &str| {
                let value = row.pointer(field).unwrap_or(&Value::Null);
                if value.as_str().is_some_and(|t| t.starts_with("0x")) { address(value) } else { value.clone() }
            };
            let expected: Vec<Vec<Value>> = list(&answer, lists).iter().map(|row| fields.iter().map(|f| value(row, f)).collect()).collect();
            let stored: Vec<Vec<Value>> = table(&out, of).iter().map(|row| picked(row, columns)).collect();
            *rows.entry(of).or_default() += stored.len();
            assert!(stored == expected, "{name} {of}: {} and {} rows", stored.len(), expected.len());
        };
        compare(
            "threads",
            &["threads", "--waits"],
            "threads",
            &["managed_id", "os_id", "address", "name", "crashed", "exception", "waits_for", "waits_for_address", "locks_held"],
            &[
                "/managed_id",
                "/os_id",
                "/address",
                "/name",
                "/crashed",
                "/exception/type",
                "/waits_for/kind",
                "/waits_for/object",
                "/locks_held",
            ],
        );
        compare(
            "exceptions",
            &["exceptions"],
            "exceptions",
            &["address", "name", "message", "hresult", "thread", "thread_role"],
            &["/address", "/type", "/message", "/hresult", "/thread", "/thread_role"],
        );
        compare(
            "tasks",
            &["async", "--tasks"],
            "tasks",
            &["address", "name", "status", "unobserved"],
            &["/object", "/type", "/status", "/unobserved"],
        );
        compare(
            "requests",
            &["requests"],
            "requests",
            &["direction", "address", "state", "method", "uri", "age_ms"],
            &["/direction", "/object", "/state", "/method", "/uri", "/age_ms"],
        );
        compare(
            "locks",
            &["locks", "--all"],
            "locks",
            &["kind", "address", "name", "owner", "recursion", "waiting", "count"],
            &["/kind", "/object", "/type", "/owner/managed_id", "/recursion", "/waiting", "/count"],
        );
        compare(
            "modules",
            &["modules"],
            "modules",
            &["name", "kind", "path", "base", "size"],
            &["/name", "/kind", "/path", "/base", "/size"],
        );
        let (_, answer) = ask(&dump, &["stacks"]);
        let frames: usize = list(&answer, "threads").iter().map(|t| t["frames"].as_array().unwrap().len()).sum();
        assert_eq!(table(&out, "frames").len(), frames, "{name}");
        let fields = |more: &[&str]| list(&ask(&dump, &[&["statics"], more].concat()).1, "statics").len();
        assert_eq!(table(&out, "statics").len(), fields(&[]) + fields(&["--thread-statics"]), "{name}");
    }
    assert!(rows.values().all(|n| *n > 0), "{rows:?}");
}
