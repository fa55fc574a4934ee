//! The JSON contract: a schema per command in `docs/schema`, and every answer valid against it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stdout)]

mod common;

use std::path::{Path, PathBuf};

use common::{known_dumps, own_dump, run};
use gcdump::model::{ContractsReport, Envelope, HandlesReport, HeapReport, InfoReport, OomReport, SegmentsReport, ThreadsReport};
use jsonschema::Validator;
use serde_json::{Value, json};

const COMMANDS: [&str; 7] = ["info", "heap", "segments", "handles", "oom", "threads", "contracts"];

fn schema_of(command: &str) -> Value {
    let schema = match command {
        "info" => schemars::schema_for!(Envelope<InfoReport>),
        "heap" => schemars::schema_for!(Envelope<HeapReport>),
        "segments" => schemars::schema_for!(Envelope<SegmentsReport>),
        "handles" => schemars::schema_for!(Envelope<HandlesReport>),
        "oom" => schemars::schema_for!(Envelope<OomReport>),
        "threads" => schemars::schema_for!(Envelope<ThreadsReport>),
        _ => schemars::schema_for!(Envelope<ContractsReport>),
    };
    let mut schema = serde_json::to_value(schema).unwrap();
    schema["$id"] = json!(format!("gcdump/1/{command}"));
    schema["title"] = json!(format!("gcdump {command} --json"));
    schema
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema")
}

#[test]
fn the_schema_files_are_those_of_the_program() {
    for command in COMMANDS {
        let path = folder().join(format!("{command}.json"));
        let text = format!("{}\n", serde_json::to_string_pretty(&schema_of(command)).unwrap());
        if std::env::var_os("GCDUMP_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let old = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(old == text, "{} is outdated; GCDUMP_BLESS=1 cargo test --test schema rewrites it", path.display());
    }
}

/// The schema as a strict one: no field may come that it does not name.
fn strict(command: &str) -> Validator {
    fn close(v: &mut Value) {
        match v {
            Value::Object(map) => {
                if map.get("type") == Some(&json!("object")) && map.contains_key("properties") {
                    map.insert("additionalProperties".into(), json!(false));
                }
                map.values_mut().for_each(close);
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }
    let mut schema = schema_of(command);
    close(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
}

const VARIANTS: [&[&str]; 13] = [
    &["info"],
    &["heap"],
    &["heap", "--detail"],
    &["segments"],
    &["segments", "--free"],
    &["segments", "--walk"],
    &["handles"],
    &["handles", "--stat"],
    &["handles", "--type", "strong"],
    &["oom"],
    &["threads"],
    &["contracts"],
    &["contracts", "--check"],
];

fn validate(dump: &Path) {
    for variant in VARIANTS {
        let mut args = variant.to_vec();
        args.extend(["--json", "--no-local-files", dump.to_str().unwrap()]);
        let answer = run(&args).json();
        let errors: Vec<String> = strict(variant[0]).iter_errors(&answer).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{variant:?} on {}: {errors:?}", dump.display());
        assert_eq!(answer["schema"], "gcdump/1");
        assert_eq!(answer["command"], variant[0]);
    }
}

#[test]
fn every_answer_is_valid() {
    validate(&own_dump());
    let (dumps, lacking) = known_dumps(|row| row["bytes"].as_u64() < Some(200 << 20));
    for dump in &dumps {
        validate(&dump.path);
    }
    println!("schemas: {} dumps validated, {} skipped", dumps.len() + 1, lacking.len());
}

/// A core without any .NET in it: `info` still answers, with a null runtime.
#[test]
fn a_dump_without_a_runtime_is_described() {
    // ELF header, one PT_LOAD of 16 bytes at 0x1000.
    let mut core = vec![0u8; 64 + 56 + 16];
    core[..20].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 62, 0]);
    let mut put = |at: usize, n: u64| core[at..at + 8].copy_from_slice(&n.to_le_bytes());
    put(32, 64);
    put(64, 1 | 6 << 32);
    put(72, 120);
    put(80, 0x1000);
    put(96, 16);
    put(104, 16);
    core[20] = 1;
    core[52..58].copy_from_slice(&[64, 0, 56, 0, 1, 0]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &core).unwrap();
    let path = file.path().to_str().unwrap();
    let ran = run(&["info", "--json", path]);
    assert_eq!(ran.exit.code(), 4, "{}", ran.err);
    let answer = ran.json();
    assert!(answer["runtime"].is_null() && answer["data"]["runtime_error"].is_string());
    assert!(strict("info").is_valid(&answer));
    let ran = run(&["heap", "--json", path]);
    assert_eq!((ran.exit.code(), ran.out.as_str()), (4, ""));
    assert!(ran.err.contains("no .NET runtime found"), "{}", ran.err);
}

/// The same rows in every format.
#[test]
fn all_formats_agree() {
    let dump = own_dump();
    let dump = dump.to_str().unwrap();
    for (command, rows_at) in [("segments", "segments"), ("handles", "handles"), ("oom", "heaps"), ("threads", "threads")] {
        let json = run(&[command, "--json", dump]).json();
        let rows = json["data"][rows_at].as_array().unwrap();
        let text = run(&[command, "--format", "ndjson", dump]).out;
        let records: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(records[0]["record"], "header");
        assert_eq!(records[0]["dump"], json["dump"]);
        let footer = records.last().unwrap();
        assert_eq!((&footer["record"], &footer["rows"]), (&json!("footer"), &json!(rows.len())));
        for (record, row) in records[1..].iter().zip(rows) {
            let mut record = record.clone();
            record.as_object_mut().unwrap().remove("record");
            assert_eq!(&record, row, "{command}");
        }
        let csv = run(&[command, "--format", "csv", dump]).out;
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let headers = reader.headers().unwrap().clone();
        assert!(headers.iter().all(|h| h.chars().all(|c| c.is_ascii_lowercase() || c == '_')), "{headers:?}");
        let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), rows.len(), "{command}");
        for (line, row) in lines.iter().zip(rows) {
            for (name, cell) in headers.iter().zip(line) {
                // Columns that are plain fields hold the same value.
                if let Some(s) = row.get(name).and_then(Value::as_str) {
                    assert_eq!(cell, s, "{command}.{name}");
                }
            }
        }
    }
}
