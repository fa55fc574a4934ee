//! Tables for databases: their contents equal the answers of the commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gcdump::cli::Exit;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value, json};

use crate::common::{ask, own_dump, own_unpacked, run, sample};
use crate::export::dumps;

pub type Row = Map<String, Value>;

/// Reads the rows of a Parquet file with a reader that is not gcdump's.
pub fn rows(path: &Path) -> Vec<Row> {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let reader = SerializedFileReader::new(file).unwrap();
    let value = |field: &Field| match field {
        Field::Null => Value::Null,
        Field::Bool(is) => json!(is),
        Field::Long(n) => json!(n),
        Field::Double(n) => json!(n),
        Field::Str(text) => json!(text),
        other => panic!("{other:?} in {}", path.display()),
    };
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()).collect()
}

pub fn table(folder: &Path, name: &str) -> Vec<Row> {
    rows(&folder.join(format!("{name}.parquet")))
}

/// Converts an address to its form in the tables.
pub fn address(text: &Value) -> Value {
    text.as_str().map_or(Value::Null, |t| json!(u64::from_str_radix(t.trim_start_matches("0x"), 16).unwrap().cast_signed()))
}

pub fn export(format: &str, dump: &Path, out: &Path, more: &[&str]) -> (Exit, Value) {
    let args = [&["export", format, dump.to_str().unwrap(), out.to_str().unwrap(), "--json", "--no-local-files"], more].concat();
    let mut args: Vec<String> = args.into_iter().map(String::from).collect();
    let program = crate::common::native_aot_program();
    if let Some(folder) = program.filter(|_| dump.file_name().unwrap().to_string_lossy().starts_with("aot9-")) {
        args.extend(["--modules".into(), folder.display().to_string()]);
    }
    let ran = run(&args);
    assert!(!ran.out.is_empty(), "{args:?}: {}", ran.err);
    (ran.exit, ran.json())
}

pub fn picked(row: &Row, names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| row.get(*name).unwrap_or_else(|| panic!("no column {name}")).clone()).collect()
}

fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    rows.sort_by_cached_key(|row| serde_json::to_string(row).unwrap());
    rows
}

#[track_caller]
fn same(what: &str, of_table: Vec<Vec<Value>>, of_command: Vec<Vec<Value>>) {
    let (a, b) = (sorted(of_table), sorted(of_command));
    assert_eq!(a.len(), b.len(), "{what}: rows");
    if let Some((a, b)) = a.iter().zip(&b).find(|(a, b)| a != b) {
        panic!("{what}: the table has {a:?}, the command {b:?}");
    }
}

pub fn list<'v>(answer: &'v Value, name: &str) -> &'v Vec<Value> {
    answer["data"][name].as_array().unwrap_or_else(|| panic!("no {name}"))
}

/// Converts `[3].key` to `[].key`: the tables do not number elements.
fn unnumbered(field: &Value) -> Value {
    let Some(text) = field.as_str() else { return Value::Null };
    match text.strip_prefix('[').and_then(|t| t.split_once(']')).filter(|(n, _)| n.bytes().all(|b| b.is_ascii_digit())) {
        Some((_, behind)) => json!(format!("[]{behind}")),
        None => field.clone(),
    }
}

#[test]
fn tables_agree_with_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    for (i, dump) in dumps().iter().enumerate() {
        let name = dump.file_name().unwrap().to_string_lossy();
        let out = folder.path().join(i.to_string());
        let (_, report) = export("parquet", dump, &out, &["--retained"]);
        for file in list(&report, "tables") {
            assert_eq!(json!(rows(Path::new(file["file"].as_str().unwrap())).len()), file["rows"], "{name} {file}");
        }
        let (_, stat) = ask(dump, &["stat"]);
        let row =
            |t: &Value| vec![address(&t["method_table"]), t["type"].clone(), t["module"].clone(), t["count"].clone(), t["bytes"].clone()];
        let types = table(&out, "types");
        let columns = ["method_table", "name", "module", "count", "bytes"];
        same(&format!("{name} types"), types.iter().map(|t| picked(t, &columns)).collect(), list(&stat, "types").iter().map(row).collect());
        assert!(types.iter().enumerate().all(|(i, t)| t["type_id"] == json!(i)), "{name}");

        let (_, retained) = ask(dump, &["retained", "--top", "0"]);
        let row = |t: &Value| vec![address(&t["method_table"]), t["retained"].clone()];
        let with = types.iter().filter(|t| t["retained"].as_i64().is_some_and(|r| r > 0));
        same(
            &format!("{name} types.retained"),
            with.map(|t| picked(t, &["method_table", "retained"])).collect(),
            list(&retained, "types").iter().map(row).collect(),
        );

        let (_, listed) = ask(dump, &["objects", "--refs", "--count", "0"]);
        let listed: Vec<&Value> = list(&listed, "objects").iter().filter(|o| o["type"] != "Free").collect();
        let objects = table(&out, "objects");
        let number: BTreeMap<String, usize> =
            listed.iter().enumerate().map(|(i, o)| (o["address"].as_str().unwrap().to_string(), i)).collect();
        for (i, (o, reported)) in objects.iter().zip(&listed).enumerate() {
            let type_id = types.iter().position(|t| t["method_table"] == address(&reported["method_table"]));
            let expected = [
                json!(i),
                address(&reported["address"]),
                json!(type_id),
                reported["type"].clone(),
                reported["size"].clone(),
                reported["generation"].clone(),
                reported["heap"].clone(),
                reported["length"].clone(),
            ];
            assert_eq!(picked(o, &["object", "address", "type_id", "name", "size", "generation", "heap", "length"]), expected, "{name}");
        }
        assert_eq!(objects.len(), listed.len(), "{name}");
        let by_object: BTreeMap<i64, &Value> =
            list(&retained, "objects").iter().map(|o| (address(&o["address"]).as_i64().unwrap(), o)).collect();
        for o in &objects {
            let reported = by_object.get(&o["address"].as_i64().unwrap());
            let above = reported.map(|t| t["dominator"].as_str().map_or(json!(-1), |d| json!(number[d])));
            assert_eq!(o["retained"], reported.map_or(Value::Null, |t| t["retained"].clone()), "{name} {o:?}");
            assert_eq!(o["dominator"], above.unwrap_or(Value::Null), "{name} {o:?}");
            assert_eq!(o["reachable"], json!(reported.is_some()), "{name} {o:?}");
            assert_eq!(o["distance"].is_i64(), reported.is_some(), "{name} {o:?}");
        }
        // An object with a single holder is one reference further from the roots than the holder, or a root refers to it as well.
        let distances: Vec<Option<i64>> = objects.iter().map(|o| o["distance"].as_i64()).collect();
        let refs = table(&out, "refs");
        for r in &refs {
            let (from, to) = (r["from_object"].as_i64().unwrap() as usize, r["to_object"].as_i64().unwrap() as usize);
            assert!(distances[from].is_none_or(|d| distances[to].is_some_and(|t| t <= d + 1)), "{name} {r:?}");
        }
        let place = |o: &Value, r: &Value| {
            number
                .get(r["to"].as_str().unwrap())
                .map(|to| vec![json!(number[o["address"].as_str().unwrap()]), json!(to), r["offset"].clone(), unnumbered(&r["field"])])
        };
        let reported = listed.iter().flat_map(|o| o["refs"].as_array().unwrap().iter().filter_map(move |r| place(o, r)));
        let stored = refs.iter().filter(|r| !r["field_offset"].is_null());
        same(
            &format!("{name} refs"),
            stored.map(|r| picked(r, &["from_object", "to_object", "field_offset", "field"])).collect(),
            reported.collect(),
        );
        assert_eq!(
            json!(refs.len()),
            retained["data"]["totals"]["references"],
            "{name}: the graph's references, with those of handles and allocators"
        );

        let number = |at: &Value| at.as_str().and_then(|a| number.get(a)).map_or(Value::Null, |n| json!(n));
        let (_, reported) = ask(dump, &["roots", "--top", "0"]);
        let row = |r: &Value| {
            vec![
                r["kind"].clone(),
                address(&r["address"]),
                number(&r["object"]),
                r["type"].clone(),
                r["label"].clone(),
                r["thread"].clone(),
            ]
        };
        let columns = ["kind", "address", "object", "name", "label", "thread"];
        same(
            &format!("{name} roots"),
            table(&out, "roots").iter().map(|r| picked(r, &columns)).collect(),
            list(&reported, "roots").iter().map(row).collect(),
        );

        let (_, reported) = ask(dump, &["handles", "--top", "0"]);
        let row = |h: &Value| {
            vec![
                address(&h["address"]),
                h["type"].clone(),
                number(&h["object"]),
                h["object_type"].clone(),
                h["object_size"].clone(),
                h["strong"].clone(),
                address(&h["secondary"]),
            ]
        };
        let columns = ["address", "kind", "object", "name", "object_size", "strong", "secondary"];
        same(
            &format!("{name} handles"),
            table(&out, "handles").iter().map(|r| picked(r, &columns)).collect(),
            list(&reported, "handles").iter().map(row).collect(),
        );

        let (_, reported) = ask(dump, &["segments", "--walk"]);
        let row = |s: &Value| {
            vec![
                address(&s["address"]),
                s["generation"].clone(),
                address(&s["start"]),
                address(&s["allocated"]),
                s["committed_bytes"].clone(),
                s["walk"]["objects"].clone(),
                s["walk"]["free_bytes"].clone(),
            ]
        };
        let columns = ["segment", "generation", "start", "allocated_end", "committed", "objects", "free_bytes"];
        same(
            &format!("{name} segments"),
            table(&out, "segments").iter().map(|r| picked(r, &columns)).collect(),
            list(&reported, "segments").iter().map(row).collect(),
        );

        let (_, reported) = ask(dump, &["retained", "--suspects"]);
        let row = |s: &Value| vec![s["kind"].clone(), s["type"].clone(), address(&s["address"]), s["count"].clone(), s["retained"].clone()];
        let columns = ["kind", "name", "address", "count", "retained"];
        let suspects = table(&out, "suspects");
        same(
            &format!("{name} suspects"),
            suspects.iter().map(|r| picked(r, &columns)).collect(),
            list(&reported, "suspects").iter().map(row).collect(),
        );
        assert!(suspects.iter().all(|s| s["signature"].as_str().is_some_and(|s| s.len() == 16)), "{name}");

        let row = &table(&out, "dumps")[0];
        let totals = &stat["data"]["totals"];
        assert_eq!(row["objects"], totals["count"], "{name}");
        // The free space of a carved heap may be unknown.
        assert!(row["free_bytes"] == totals["free_bytes"] || stat["data"]["carved"].is_object(), "{name}");
        assert_eq!(row["runtime_version"], stat["runtime"]["version"], "{name}");
        assert_eq!(row["complete"], report["data"]["complete"], "{name}");
    }
}

/// Columns that need the graph are unknown without `--retained`, and not zero.
#[test]
fn columns_that_were_not_requested_are_null() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t");
    let (exit, report) = export("parquet", &own_unpacked(), &out, &["--tables", "objects,types,strings"]);
    assert_eq!(exit, Exit::Ok, "{report}");
    let names: Vec<&str> = list(&report, "tables").iter().map(|t| t["table"].as_str().unwrap()).collect();
    assert_eq!(names, ["types", "objects", "strings"]);
    let nothing = ["retained", "dominator", "distance", "reachable"];
    assert!(table(&out, "objects").iter().all(|o| nothing.iter().all(|n| o[*n].is_null())));
    assert!(table(&out, "types").iter().all(|t| t["retained"].is_null()));
    let strings = table(&out, "strings");
    assert!(strings.len() > 100 && strings.iter().all(|s| s["text"].is_null() && s["hash"].is_string()));
    let out = folder.path().join("u");
    export("parquet", &own_unpacked(), &out, &["--tables", "strings", "--contents"]);
    let with = table(&out, "strings");
    let reported = ask(&own_unpacked(), &["strings", "--top", "0", "--min-count", "1", "--max-chars", "70000"]).1;
    let row = |s: &Value| vec![s["value"].clone(), s["count"].clone(), s["bytes"].clone(), address(&s["address"])];
    same(
        "strings",
        with.iter().map(|s| picked(s, &["text", "count", "bytes", "address"])).collect(),
        list(&reported, "strings").iter().map(row).collect(),
    );
}

#[test]
fn all_formats_have_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let out = |format: &str| folder.path().join(format);
    let tables = "dumps,types,objects,refs,roots,segments,handles,suspects,strings";
    for format in ["parquet", "csv", "ndjson"] {
        export(format, &own_unpacked(), &out(format), &["--retained", "--contents", "--tables", tables]);
    }
    for name in tables.split(',') {
        let rows = table(&out("parquet"), name);
        let text = std::fs::read_to_string(out("ndjson").join(format!("{name}.ndjson"))).unwrap();
        let lines: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(rows == lines, "{name}");
        let mut csv = csv::Reader::from_path(out("csv").join(format!("{name}.csv"))).unwrap();
        let titles = csv.headers().unwrap().clone();
        let records: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
        assert_eq!(records.len(), rows.len(), "{name}");
        for (record, row) in records.iter().zip(&rows) {
            for (title, cell) in titles.iter().zip(record) {
                let expected = match &row[title] {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                assert!(
                    cell == expected || cell.parse::<f64>().is_ok_and(|n| row[title].as_f64() == Some(n)),
                    "{name} {title}: {cell} {expected}"
                );
            }
        }
    }
}

/// Returns the value in a column for a value of `objects --fields`.
fn cell(value: &Value) -> Value {
    if value == "0x0" { Value::Null } else { value.clone() }
}

#[test]
fn fields_are_typed_columns_with_the_values_that_objects_lists() {
    // Numbers, texts, structures, paths through references, fields that only some types have, and one that none has.
    let fields =
        "I64,U64,F64,Bool,Text,Colour,Numbers,When,MaybeUnset,MaybeSet,Inline.At.Y,_size,_stringLength,_items.Length,Next.Id,Size,nothing";
    let folder = tempfile::tempdir().unwrap();
    for dump in sample([own_unpacked()].iter().chain(&corpus(&["net8-wks-basics-heap", "net10-svr-handles-heap"])), 3) {
        let name = dump.file_name().unwrap().to_string_lossy().into_owned();
        let (out, lines) = (folder.path().join(&name), folder.path().join(format!("{name}-lines")));
        let (exit, _) = export("parquet", dump, &out, &["--tables", "objects", "--contents", "--fields", fields]);
        let (_, reported) = ask(dump, &["objects", "--count", "0", "--fields", fields]);
        let reported: BTreeMap<i64, &Value> =
            list(&reported, "objects").iter().map(|o| (address(&o["address"]).as_i64().unwrap(), o)).collect();
        let objects = table(&out, "objects");
        assert!(exit == Exit::Ok && objects.len() > 500, "{name}");
        let (mut compared, mut typed) = (BTreeMap::<&str, usize>::new(), BTreeMap::new());
        for row in &objects {
            let values = &reported[&row["address"].as_i64().unwrap()]["fields"];
            for path in fields.split(',') {
                // The table has another column `size`.
                let column = if path == "Size" { "field_Size" } else { path };
                let (ours, theirs) = (&row[column], cell(&values[path]));
                let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
                let same = *ours == theirs || ours.is_string() && text(ours) == text(&theirs) || ours.is_f64() && ours.as_f64() == theirs.as_f64()
                    // A structure has its fields in JSON, and is text in a table.
                    || theirs.is_object() && ours.is_string();
                assert!(same, "{name} {path}: {ours} {}", values[path]);
                if !ours.is_null() {
                    *compared.entry(path).or_default() += 1;
                    let kind = match ours {
                        Value::Number(n) if n.is_f64() => "real",
                        Value::Number(_) => "int",
                        Value::Bool(_) => "flag",
                        _ => "text",
                    };
                    assert_eq!(*typed.entry(path).or_insert(kind), kind, "{name} {path}: a column has one type");
                }
            }
        }
        assert!(compared["_stringLength"] > 100 && !compared.contains_key("nothing"), "{name}: {compared:?}");
        assert_eq!((typed["_stringLength"], typed["_size"]), ("int", "int"), "{name}");
        if name.starts_with("net10-wks-basics") {
            let expected =
                [("I64", "int"), ("U64", "text"), ("F64", "real"), ("Colour", "text"), ("Inline.At.Y", "real"), ("Numbers", "text")];
            for (path, kind) in expected {
                assert_eq!(typed.get(path), Some(&kind), "{path}: {typed:?}");
            }
        }
        // NDJSON has the same rows.
        export("ndjson", dump, &lines, &["--tables", "objects", "--contents", "--fields", fields]);
        let text = std::fs::read_to_string(lines.join("objects.ndjson")).unwrap();
        let rows: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(rows == objects, "{name}");
    }
    let refused = |args: &[&str]| run(&[&["export"], args, &["--no-local-files", own_unpacked().to_str().unwrap(), "x"]].concat());
    assert_eq!(refused(&["gcdump", "--fields", "_size"]).exit, Exit::Usage);
    assert_eq!(refused(&["csv", "--tables", "types", "--fields", "_size"]).exit, Exit::Usage);
}

#[test]
fn folders_are_written_completely_and_nothing_else_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, out) = (own_unpacked(), folder.path().join("x.parquet"));
    let (from, to) = (dump.to_str().unwrap(), out.to_str().unwrap());
    let tables = ["export", "parquet", from, to, "--tables", "types"];
    assert_eq!(run(&tables).exit, Exit::Ok);
    let again = run(&tables);
    assert!(again.exit == Exit::Usage && again.err.contains("--force"), "{}", again.err);
    assert_eq!(run(&[&tables[..], &["--force"]].concat()).exit, Exit::Ok);
    std::fs::write(out.join("mine.txt"), "not a table").unwrap();
    let other = run(&[&tables[..], &["--force"]].concat());
    assert!(other.exit == Exit::Usage && other.err.contains("mine.txt"), "{}", other.err);
    assert!(out.join("mine.txt").is_file() && out.join("types.parquet").is_file());
    assert_eq!(run(&["export", "parquet", from, from, "--force"]).exit, Exit::Usage);
    assert_eq!(run(&["export", "parquet", from, "/no/where/x"]).exit, Exit::NotWritten);
    for wrong in [&["--since", from][..], &["--unreachable"], &["--generations"]] {
        assert_eq!(run(&[&["export", "parquet", from, "y"], wrong].concat()).exit, Exit::Usage, "{wrong:?}");
    }
    for wrong in [&["--tables", "types"][..], &["--partition"], &["--retained"]] {
        assert_eq!(run(&[&["export", "gcdump", from, "y"], wrong].concat()).exit, Exit::Usage, "{wrong:?}");
    }
    let lake = folder.path().join("lake");
    let partition = ["export", "ndjson", from, lake.to_str().unwrap(), "--tables", "types,dumps", "--partition", "--json"];
    let ran = run(&partition);
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    let id = ran.json()["data"]["dump_id"].as_str().unwrap().to_string();
    assert!(lake.join(format!("types/dump={id}/part-0.ndjson")).is_file());
    assert_eq!(run(&partition).exit, Exit::Usage);
    assert_eq!(run(&[&partition[..], &["--force"]].concat()).exit, Exit::Ok);
    let left = |folder: &Path| -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(left(folder.path()), ["lake", "x.parquet"]);
    assert_eq!(left(&lake), ["dumps", "types"]);
}

/// Dumps of the repository.
fn corpus(names: &[&str]) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus");
    names.iter().map(|name| folder.join(format!("{name}.dmp.zst"))).collect()
}

/// Reads the rows of a table of a lake, with the partition as a column.
fn lake_rows(lake: &Path, name: &str) -> Vec<Row> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(lake.join(name)).unwrap() {
        let path = entry.unwrap().path();
        let id = path.file_name().unwrap().to_str().unwrap().strip_prefix("dump=").unwrap().to_string();
        for mut row in rows(&path.join("part-0.parquet")) {
            row.insert("dump".into(), json!(id));
            out.push(row);
        }
    }
    out
}

#[test]
fn the_dumps_of_a_fleet_are_written_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let (dumps, lake) = (folder.path().join("dumps"), folder.path().join("lake"));
    std::fs::create_dir(&dumps).unwrap();
    let names = ["net10-wks-leak-heap.before", "net10-wks-leak-heap.after", "net8-wks-basics-heap", "win-net10-wks-basics-heap"];
    for path in corpus(&names).iter().chain([&own_dump()]) {
        std::fs::copy(path, dumps.join(path.file_name().unwrap())).unwrap();
    }
    let first = std::fs::read(own_unpacked()).unwrap();
    std::fs::write(dumps.join("cut.core"), &first[..first.len() / 50]).unwrap();
    std::fs::write(dumps.join("a.dmp"), [b"MDMP\x93\xa7\0\0".as_slice(), &[0; 100]].concat()).unwrap();
    std::fs::write(dumps.join("notes.txt"), "no dump").unwrap();
    std::fs::copy(own_dump(), dumps.join("copy.dmp.zst")).unwrap();
    let args = ["fleet", dumps.to_str().unwrap(), "-o", lake.to_str().unwrap(), "--json", "--no-local-files"];
    let ran = run(&args);
    assert_eq!(ran.exit, Exit::Partial, "{}", ran.err);
    let answer = ran.json();
    crate::schema::assert_fits("fleet", &answer);
    let reported = list(&answer, "dumps");
    assert_eq!(reported.len(), 8, "{reported:?}");
    assert_eq!(answer["data"]["totals"], json!({ "dumps": 8, "written": 5, "known": 1, "failed": 2 }), "{reported:?}");
    let of_dumps = lake_rows(&lake, "dumps");
    assert_eq!(of_dumps.len(), 7, "a row for each, and one for copies");
    assert_eq!(of_dumps.iter().filter(|d| d["error"].is_string() && d["objects"].is_null()).count(), 2);
    for reported in reported.iter().filter(|d| d["state"] != "failed" && d["state"] != "known") {
        let row = of_dumps.iter().find(|d| d["dump"] == reported["id"]).unwrap();
        assert_eq!((&row["objects"], &row["runtime_version"]), (&reported["objects"], &reported["runtime"]));
        let path = Path::new(reported["path"].as_str().unwrap());
        let types = list(&ask(path, &["stat"]).1, "types").len();
        assert_eq!(lake_rows(&lake, "types").iter().filter(|t| t["dump"] == reported["id"]).count(), types, "{reported}");
    }
    // A pattern that the shell did not expand finds the same dumps.
    let by_pattern = folder.path().join("by_pattern");
    let pattern = dumps.join("net10-wks-leak*");
    let ran = run(&["fleet", pattern.to_str().unwrap(), "-o", by_pattern.to_str().unwrap(), "--json", "--no-local-files"]).json();
    assert_eq!(ran["data"]["totals"]["written"], 2, "{ran}");
    // A second run reads nothing. A lost partition is made again.
    let again = run(&args).json();
    assert_eq!(again["data"]["totals"]["known"], 8);
    let id = reported.iter().find(|d| d["state"] != "failed" && d["state"] != "known").unwrap()["id"].as_str().unwrap();
    std::fs::remove_dir_all(lake.join(format!("types/dump={id}"))).unwrap();
    let again = run(&args).json();
    assert_eq!((&again["data"]["totals"]["known"], &again["data"]["totals"]["written"]), (&json!(7), &json!(1)));
    assert!(std::fs::read_dir(&lake).unwrap().all(|e| !e.unwrap().file_name().to_str().unwrap().starts_with('.')));
    // There is a file with the name of the lake.
    let ran = run(&["fleet", dumps.to_str().unwrap(), "-o", dumps.join("notes.txt").to_str().unwrap()]);
    assert_eq!(ran.exit, Exit::Usage, "{}", ran.err);
    assert_eq!(run(&["fleet", dumps.to_str().unwrap()]).exit, Exit::Usage);
}

/// Runs the SQL of docs/fleet.md on a lake, and prints the rows of each question as JSON.
const QUESTIONS: &str = r#"
import duckdb, json, re, sys
text = open(sys.argv[2], encoding="utf-8").read()
blocks = re.findall(r"```sql\n(.*?)```", text, re.S)
connection = duckdb.connect()
connection.execute(blocks[0].replace("LAKE", sys.argv[1]))
for block in blocks[1:]:
    rows = connection.execute(block).fetchall()
    print(json.dumps([[value if isinstance(value, (str, int, type(None))) else float(value) for value in row] for row in rows]))
"#;

/// A Python with this module: `GCDUMP_TEST_PYTHON`, else `python3`.
fn python_with(module: &str) -> Option<String> {
    let python = std::env::var("GCDUMP_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let found = std::process::Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if found.is_ok_and(|ran| ran.status.success()) {
        return Some(python);
    }
    println!("not run: {python} has no {module}");
    None
}

#[test]
fn duckdb_answers_the_questions() {
    let Some(python) = python_with("duckdb") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (lake, dumps) = (folder.path().join("lake"), Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus"));
    let ran = run(&["fleet", dumps.to_str().unwrap(), "-o", lake.to_str().unwrap(), "--json", "--no-local-files"]);
    let answer = ran.json();
    assert_eq!(answer["data"]["totals"]["failed"], 0, "{answer}");
    let doc = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fleet.md");
    let asked = std::process::Command::new(python).args(["-c", QUESTIONS]).arg(&lake).arg(doc).output().unwrap();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let text = String::from_utf8(asked.stdout).unwrap();
    let answers: Vec<Vec<Vec<Value>>> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 10);
    assert!(answers[..9].iter().all(|rows| !rows.is_empty()), "a question without rows: {answers:?}");

    // Another reader counts the same from the rows.
    let of_dumps = lake_rows(&lake, "dumps");
    assert_eq!(of_dumps.len(), list(&answer, "dumps").len());
    let mut leaks: BTreeMap<String, std::collections::BTreeSet<String>> = BTreeMap::new();
    for s in lake_rows(&lake, "suspects") {
        let text = |name: &str| s[name].as_str().unwrap().to_string();
        leaks.entry(text("signature")).or_default().insert(text("dump"));
    }
    let reported: BTreeMap<String, usize> =
        answers[0].iter().map(|r| (r[0].as_str().unwrap().into(), r[3].as_u64().unwrap() as usize)).collect();
    assert_eq!(reported, leaks.into_iter().map(|(s, dumps)| (s, dumps.len())).collect());
    let (_, slope) = (&answers[1][0][1], &answers[1][0][3]);
    assert!(slope.as_f64().is_some());
    let pinned = of_dumps
        .iter()
        .filter(|d| d["pinned_handles"].as_i64().is_some_and(|n| n > 0))
        .map(|d| vec![d["dump"].clone(), d["pinned_handles"].clone()]);
    same("pinned", answers[5].iter().map(|r| vec![r[0].clone(), r[3].clone()]).collect(), pinned.collect());
    let ready = of_dumps
        .iter()
        .filter(|d| d["finalizer_ready"].as_i64().is_some_and(|n| n > 0))
        .map(|d| vec![d["dump"].clone(), d["finalizer_ready"].clone()]);
    same("finalizer", answers[6].iter().map(|r| vec![r[0].clone(), r[2].clone()]).collect(), ready.collect());
    let mut bytes: BTreeMap<String, i64> = BTreeMap::new();
    for t in &lake_rows(&lake, "types") {
        *bytes.entry(t["name"].as_str().unwrap().into()).or_default() += t["bytes"].as_i64().unwrap();
    }
    let mut largest: Vec<i64> = bytes.into_values().collect();
    largest.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(answers[7].iter().map(|r| r[3].as_i64().unwrap()).collect::<Vec<_>>(), largest[..50]);
    let whole = of_dumps.iter().filter(|d| d["complete"] == true).count();
    assert_eq!(answers[9].len() + whole, of_dumps.len());
    if std::env::var_os("GCDUMP_TEST_SPARK").is_some() {
        spark_answers_the_same(&dumps, &answers, of_dumps.len());
    }
}

/// Two executors of local Spark, processes with separate folders, write the same lake and give the same answers as one machine.
fn spark_answers_the_same(dumps: &Path, expected: &[Vec<Vec<Value>>], count: usize) {
    let Some(python) = python_with("pyspark") else { return };
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet");
    let spark = |script: &str, more: &[&str]| {
        let mut command = std::process::Command::new(&python);
        command.arg(examples.join(script)).args(["--lake", lake.to_str().unwrap()]).args(more);
        command.env("PYSPARK_SUBMIT_ARGS", "--master local-cluster[2,1,1024] pyspark-shell").env("PYSPARK_PYTHON", &python);
        let ran = command.env("SPARK_LOCAL_IP", "127.0.0.1").output().unwrap();
        assert!(ran.status.success(), "{script}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    spark("spark_job.py", &["--dumps", dumps.to_str().unwrap(), "--gcdump", env!("CARGO_BIN_EXE_gcdump")]);
    assert_eq!(lake_rows(&lake, "dumps").len(), count);
    let answers = spark("spark_questions.py", &["--json"]);
    let answers: Vec<Vec<Vec<Value>>> =
        answers.lines().filter(|l| l.starts_with('[')).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), expected.len());
    let numbers = |rows: &[Vec<Value>]| -> Vec<Vec<Value>> {
        let number = |v: &Value| v.as_f64().map_or_else(|| v.clone(), |n| json!((n * 1e6).round() / 1e6 + 0.0));
        rows.iter().map(|row| row.iter().map(number).collect()).collect()
    };
    for (i, (answer, expected)) in answers.iter().zip(expected).enumerate() {
        same(&format!("question {}", i + 1), numbers(answer), numbers(expected));
    }
}

/// Unknown values are null and not zero. The GC's structures are unknown for a carved heap.
#[test]
fn what_is_unknown_is_null() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, carved) = (folder.path().join("whole"), folder.path().join("carved"));
    assert_eq!(export("parquet", &own_unpacked(), &whole, &["--tables", "dumps"]).0, Exit::Ok);
    assert_eq!(export("parquet", &own_unpacked(), &carved, &["--tables", "dumps", "--carve", "always"]).0, Exit::Partial);
    let unknown = ["gc_kind", "gc_layout", "heap_count", "committed", "pinned_handles", "finalizer_ready"];
    let (of_whole, of_carved) = (&table(&whole, "dumps")[0], &table(&carved, "dumps")[0]);
    assert!(picked(of_whole, &unknown).iter().all(|value| !value.is_null()), "{of_whole:?}");
    assert!(picked(of_carved, &unknown).iter().all(Value::is_null), "{of_carved:?}");
    assert!(picked(of_carved, &["objects", "bytes", "allocated"]).iter().all(|value| value.as_u64() > Some(0)), "{of_carved:?}");
}
