//! The JSON contract: the schemas in `docs/schema` are up to date, every answer matches its schema, and NDJSON and CSV agree
//! with it. `GCDUMP_BLESS=1` rewrites the schema files.
//!
//! `Entry::schema` is complete by itself. In the files, definitions that several schemas use are in `definitions.json`.

use crate::common;
use crate::harness::Tested;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::common::{ask, each, known_dumps, own_unpacked, run, sample};
use gcdump::cli::{COMMANDS, Entry, Exit, command_line};
use gcdump::internals::output::SCHEMA;
use jsonschema::{Retrieve, Uri, Validator};
use serde_json::{Map, Value, json};

/// Objects in the dump of the repository: one with fields of every kind, and a string. Other dumps have no objects there.
const EVERYTHING: &str = "0x7f316dc27908";
const STRING: &str = "0x7f3d36400008";

/// Command lines to check, in addition to those run by `examples`.
const ASKED: &[&[&str]] = &[
    &["info"],
    &["heap"],
    &["heap", "--detail"],
    &["segments"],
    &["segments", "--free"],
    &["segments", "--walk"],
    &["handles"],
    &["handles", "--stat"],
    &["handles", "--by", "object-type"],
    &["roots"],
    &["roots", "--stat"],
    &["finalizers"],
    &["finalizers", "--objects"],
    &["oom"],
    &["analyze", "--min-bytes", "100K"],
    &["threads"],
    &["exceptions"],
    &["exceptions", "--stat"],
    &["async"],
    &["async", "--merge"],
    &["async", "--tasks"],
    &["stat"],
    &["stat", "--by", "generation"],
    &["stat", "--by", "segment", "--type", "System.*"],
    &["strings"],
    &["strings", "--like", "*a*", "--max-chars", "5"],
    &["fragmentation"],
    &["fragmentation", "--segments", "--heaps"],
    &["objects", "--refs"],
    &["objects", "--start", "3", "--count", "5"],
    &["object", EVERYTHING],
    &["object", STRING],
    &["retained"],
    &["retained", "--suspects", "--threshold", "1"],
    &["retained", "--tree"],
    &["retained", "--object", EVERYTHING],
    &["objsize", EVERYTHING],
    &["path", EVERYTHING],
    &["path", "--type", "System.Byte[]"],
    &["where", EVERYTHING],
    &["where", "0x10"],
    &["near", EVERYTHING],
    &["statics"],
    &["statics", "--all"],
    &["statics", "--thread-statics"],
    &["type", "Lab.Everything"],
    &["type", "Lab.*"],
    &["bridge", "--bridged", "Lab.Dog", "--all"],
    &["bridge"],
    &["whatif", "--alive", EVERYTHING],
    &["unreachable"],
    &["unreachable", "--objects", "--top", "7"],
    &["simulate", "collect", "--generation", "2"],
    &["verify"],
    &["verify", "--object", EVERYTHING],
    &["contracts"],
    &["contracts", "--check"],
];

/// Name of the file with definitions that several schemas use.
const DEFINITIONS: &str = "definitions";

/// The schema files by name: one for each command, and [`DEFINITIONS`].
fn schemas() -> BTreeMap<String, Value> {
    let mut schemas: BTreeMap<String, Value> = COMMANDS.iter().map(|c| (c.name.into(), schema(c))).collect();
    let shared = shared(&schemas);
    for schema in schemas.values_mut() {
        let own = schema["$defs"].as_object_mut().unwrap();
        own.retain(|name, _| !shared.contains_key(name));
        if own.is_empty() {
            schema.as_object_mut().unwrap().remove("$defs");
        }
        refer(schema, &shared);
    }
    let definitions = json!({
        "$schema": schemas["heap"]["$schema"],
        "title": "gcdump: definitions",
        "description": "The parts of answers that several commands have in common. See docs/json.md.",
        "$defs": shared,
    });
    schemas.insert(DEFINITIONS.into(), definitions);
    schemas
}

/// The definitions that more than one schema uses. Fails if a name has two meanings.
fn shared(schemas: &BTreeMap<String, Value>) -> Map<String, Value> {
    let mut users: BTreeMap<&str, (&Value, Vec<&str>)> = BTreeMap::new();
    for (command, schema) in schemas {
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            let (first, users) = users.entry(name).or_insert((definition, Vec::new()));
            assert_eq!(*first, definition, "{name} of {users:?} is not that of {command}: {RENAME}");
            users.push(command);
        }
    }
    for name in users.keys() {
        // schemars adds a number to the second type with a name.
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
        assert!(plain == *name || !users.contains_key(plain), "{plain} and {name} of {:?} are two types: {RENAME}", users[name].1);
    }
    users.into_iter().filter(|(_, (_, users))| users.len() > 1).map(|(name, (definition, _))| (name.into(), definition.clone())).collect()
}

const RENAME: &str = "rename one of the types, or its schema (#[schemars(rename = \"…\")])";

/// Redirects references to `shared` definitions to their file.
fn refer(schema: &mut Value, shared: &Map<String, Value>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get_mut("$ref")
                && to.strip_prefix("#/$defs/").is_some_and(|name| shared.contains_key(name))
            {
                to.insert_str(0, &format!("{DEFINITIONS}.json"));
            }
            fields.values_mut().for_each(|field| refer(field, shared));
        }
        Value::Array(list) => list.iter_mut().for_each(|item| refer(item, shared)),
        _ => {}
    }
}

/// Returns the schema of a command's answers, complete by itself.
fn schema(entry: &Entry) -> Value {
    let command = entry.name;
    let about = command_line().find_subcommand(command).and_then(|c| c.get_about().map(ToString::to_string)).unwrap();
    let mut schema = entry.schema().to_value();
    schema["title"] = format!("gcdump {command}").into();
    schema["description"] = format!("The answer of `gcdump {command} --json`. {about}. See docs/json.md.").into();
    schema["properties"]["schema"]["const"] = SCHEMA.into();
    schema["properties"]["command"]["const"] = command.into();
    schema
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema")
}

fn file(name: &str) -> PathBuf {
    folder().join(format!("{name}.json"))
}

/// Loads the schema files like a tool that is given the path of one: references in it are relative to that.
struct Files;

/// The folder of the schemas, for [`Files`].
const FOLDER: &str = "file:///schema/";

impl Retrieve for Files {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let name = uri.as_str().strip_prefix(FOLDER).ok_or("not a file of docs/schema")?;
        Ok(serde_json::from_slice(&std::fs::read(folder().join(name))?)?)
    }
}

/// Validators of the answers of each command, made from the files.
fn validators() -> &'static BTreeMap<&'static str, Validator> {
    static VALIDATORS: LazyLock<BTreeMap<&'static str, Validator>> = LazyLock::new(|| {
        let validator = |name: &str| {
            let uri = format!("{FOLDER}{name}.json");
            let schema = serde_json::from_slice(&std::fs::read(file(name)).unwrap()).unwrap();
            jsonschema::options().with_base_uri(uri).with_retriever(Files).build(&schema).unwrap_or_else(|e| panic!("{name}.json: {e}"))
        };
        COMMANDS.iter().map(|c| (c.name, validator(c.name))).collect()
    });
    &VALIDATORS
}

fn problems(validator: &Validator, answer: &Value) -> Vec<String> {
    validator.iter_errors(answer).take(5).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

/// Fails if `answer` does not match the schema of `command`.
pub fn assert_fits(command: &str, answer: &Value) {
    assert_eq!(problems(&validators()[command], answer), Vec::<String>::new(), "{command}");
}

#[test]
fn the_schema_files_are_those_of_the_code() {
    let mut stale = Vec::new();
    let schemas = schemas();
    for (name, schema) in &schemas {
        let text = serde_json::to_string_pretty(schema).unwrap() + "\n";
        if std::env::var_os("GCDUMP_BLESS").is_some() {
            std::fs::write(file(name), text).unwrap();
        } else if std::fs::read_to_string(file(name)).ok().map(|t| t.replace("\r\n", "\n")) != Some(text) {
            stale.push(name);
        }
    }
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let of = path.file_stem().unwrap().to_str().unwrap();
        assert!(schemas.contains_key(of), "{}: no command has this name", path.display());
    }
    assert!(stale.is_empty(), "docs/schema is outdated for {stale:?}; GCDUMP_BLESS=1 cargo test --test it schema:: rewrites it");
}

#[test]
fn a_definition_with_two_meanings_is_refused() {
    let text = json!({ "$defs": { "Part": { "type": "string" }, "Other": { "type": "integer" } } });
    let schemas = |second: Value| BTreeMap::from([("heap".to_string(), text.clone()), ("memory".to_string(), second)]);
    let one = shared(&schemas(json!({ "$defs": { "Part": { "type": "string" } } })));
    assert_eq!(Value::Object(one), json!({ "Part": { "type": "string" } }));
    let refused = |second| std::panic::catch_unwind(|| shared(&schemas(second))).is_err();
    assert!(refused(json!({ "$defs": { "Part": { "type": "integer" } } })));
    assert!(refused(json!({ "$defs": { "Part2": { "type": "integer" } } })));
}

#[test]
fn the_schemas_are_strict_where_the_contract_is() {
    let validators = validators();
    let (_, heap) = ask(&own_unpacked(), &["heap"]);
    let refuses = |change: &dyn Fn(&mut Value)| {
        let mut answer = heap.clone();
        change(&mut answer);
        !problems(&validators["heap"], &answer).is_empty()
    };
    assert!(!refuses(&|_| {}));
    assert!(!refuses(&|a| a["data"]["a_later_field"] = 1.into()));
    assert!(refuses(&|a| a["schema"] = "gcdump/1".into()));
    assert!(refuses(&|a| a["command"] = "oom".into()));
    assert!(refuses(&|a| a["runtime"]["base"] = 4096.into()));
    assert!(refuses(&|a| a["data"]["totals"]["allocated"] = "1 MB".into()));
    // Nullable fields are still required.
    assert!(refuses(&|a| drop(a.as_object_mut().unwrap().remove("runtime"))));
    assert!(refuses(&|a| drop(a["data"]["heaps"][0].as_object_mut().unwrap().remove("address"))));
}

#[test]
fn every_answer_for_the_own_dump_matches() {
    let validators = validators();
    for asked in sample(ASKED.iter().skip(1), 3) {
        let (exit, answer) = ask(&own_unpacked(), asked);
        let expected = if *asked == ["where", "0x10"] { Exit::Negative } else { Exit::Ok };
        assert_eq!(exit, expected, "{asked:?}");
        assert_eq!(problems(&validators[asked[0]], &answer), Vec::<String>::new(), "{asked:?}");
        assert_eq!(answer["data"]["complete"], true, "{asked:?}");
    }
}

#[test]
fn every_answer_for_the_shared_dumps_matches() -> Tested {
    let validators = validators();
    let (mut dumps, missing) = known_dumps(|_| true)?;
    // Dumps of a scenario differ little by kind and version.
    dumps = dumps.into_iter().step_by(9).collect();
    let found = each(&dumps, |dump| {
        let (mut wrong, mut answers, mut refused) = (Vec::new(), 0, 0);
        for asked in ASKED {
            let mut args = asked.to_vec();
            args.extend(["--json", "--no-local-files", dump.path.to_str().unwrap()]);
            let ran = run(&args);
            if ran.out.is_empty() {
                // Some commands fail for some dumps, and must say why.
                let nothing_there = matches!(asked[0], "object" | "verify" | "near" | "retained" | "objsize" | "path" | "whatif")
                    && matches!(ran.exit, Exit::Negative | Exit::Partial);
                assert!(
                    (ran.exit == Exit::NoRuntime || nothing_there) && ran.err.starts_with("gcdump: "),
                    "{} {asked:?}: {}",
                    dump.name,
                    ran.err
                );
                refused += 1;
                continue;
            }
            let answer = ran.json();
            answers += 1;
            wrong.extend(problems(&validators[asked[0]], &answer).into_iter().map(|p| format!("{} {asked:?}: {p}", dump.name)));
            let complete = answer["data"]["complete"] == true;
            // 1: no match.
            let answered = ran.exit == Exit::Ok || matches!(asked[0], "type" | "stat" | "strings" | "where") && ran.exit == Exit::Negative;
            // `info` also exits with 5 if another command could not answer in full.
            let fits = if asked[0] == "info" { complete || ran.exit != Exit::Ok } else { complete == answered };
            if !fits {
                wrong.push(format!("{} {asked:?}: complete is {complete}, exit {:?}", dump.name, ran.exit));
            }
        }
        (wrong, answers, refused)
    });
    let answers: u32 = found.iter().map(|f| f.1).sum();
    let refused: u32 = found.iter().map(|f| f.2).sum();
    let wrong: Vec<String> = found.into_iter().flat_map(|f| f.0).collect();
    for name in &missing {
        println!("skipped: {name}: not unpacked in {}", common::unpacked().display());
    }
    println!("{answers} answers about {} dumps fit, {refused} could not be given, {} dumps skipped", dumps.len(), missing.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[test]
fn the_answer_of_trim_matches() {
    let dir = tempfile::tempdir().unwrap();
    let (dump, out) = (own_unpacked(), dir.path().join("copy.dmp"));
    for more in sample([&["--json", "--force", "--redact"][..], &["--json", "--force"]], 2) {
        let ran = run(&[&["trim", dump.to_str().unwrap(), out.to_str().unwrap()], more].concat());
        let answer = ran.json();
        assert_eq!((ran.exit, problems(&validators()["trim"], &answer)), (Exit::Ok, Vec::new()), "{answer}");
        assert_eq!(answer["data"]["redacted"].is_object(), more.contains(&"--redact"));
    }
}

/// An ELF core with one page of memory and nothing else.
fn core_without_a_runtime() -> Vec<u8> {
    let mut f = Vec::new();
    f.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    f.extend([4u16, 62].iter().flat_map(|n| n.to_le_bytes()));
    f.extend(1u32.to_le_bytes());
    f.extend([0u64, 64, 0].iter().flat_map(|n| n.to_le_bytes()));
    f.extend(0u32.to_le_bytes());
    f.extend([64u16, 56, 1, 64, 0, 0].iter().flat_map(|n| n.to_le_bytes()));
    f.extend([1u32, 6].iter().flat_map(|n| n.to_le_bytes()));
    f.extend([4096u64, 0x1000_0000, 0, 4096, 4096, 4096].iter().flat_map(|n| n.to_le_bytes()));
    f.resize(8192, 0);
    f
}

#[test]
fn a_dump_without_a_runtime_matches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("native.core");
    std::fs::write(&path, core_without_a_runtime()).unwrap();
    let (exit, answer) = ask(&path, &["info"]);
    assert_eq!(exit, Exit::NoRuntime);
    assert_eq!(problems(&validators()["info"], &answer), Vec::<String>::new());
    assert!(answer["runtime"].is_null() && answer["data"]["gc"].is_null() && answer["data"]["runtime_error"].is_string());
    for asked in ASKED.iter().skip(1) {
        let mut args = asked.to_vec();
        args.extend(["--json", path.to_str().unwrap()]);
        let ran = run(&args);
        assert_eq!((ran.exit, ran.out.as_str()), (Exit::NoRuntime, ""), "{asked:?}");
        assert!(ran.err.starts_with("gcdump: no .NET runtime found"), "{}", ran.err);
    }
}

fn list(v: &Value) -> Vec<Value> {
    v.as_array().cloned().unwrap_or_default()
}

/// Returns `rows` as NDJSON records of this kind, with the fields of `more`.
fn records(kind: &str, rows: impl IntoIterator<Item = Value>, more: &Value) -> Vec<Value> {
    let with = |mut row: Value| {
        row["record"] = kind.into();
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row
    };
    rows.into_iter().map(with).collect()
}

/// Returns the NDJSON rows that belong to the JSON answer `data`.
fn expected_records(command: &str, data: &Value) -> Vec<Value> {
    let all = |kind: &str, key: &str| records(kind, list(&data[key]), &json!({}));
    match command {
        "info" => records("info", [data.clone()], &json!({})),
        "heap" => {
            let heaps = list(&data["heaps"]);
            let mut out: Vec<Value> =
                heaps.iter().flat_map(|h| records("generation", list(&h["generations"]), &json!({ "heap": h["index"] }))).collect();
            let detailed = heaps.iter().filter(|h| h["detail"].is_object());
            out.extend(
                detailed
                    .flat_map(|h| records("heap-detail", [h["detail"].clone()], &json!({ "heap": h["index"], "address": h["address"] }))),
            );
            out.extend(all("allocation-context", "allocation_contexts"));
            out.extend(records("totals", [data["totals"].clone()], &json!({})));
            out.extend(records("collections", Some(data["collections"].clone()).filter(Value::is_object), &json!({})));
            out
        }
        "segments" => [all("segment", "segments"), all("region", "regions")].concat(),
        "handles" if data["by"].is_string() => all("group", "groups"),
        "handles" if data["handles"].is_null() => all("count", "counts"),
        "handles" => all("handle", "handles"),
        "roots" => [
            all("root", "roots"),
            all("type", "types"),
            all("dependent", "dependents"),
            all("count", "counts"),
            all("coverage", "coverage"),
        ]
        .concat(),
        "finalizers" => [all("object", "objects"), all("type", "types"), all("heap", "heaps")].concat(),
        "oom" => all("oom", "heaps"),
        "analyze" => [all("finding", "findings"), all("skipped", "skipped"), all("triage", "triage")].concat(),
        "threads" => all("thread", "threads"),
        "exceptions" => [all("exception-group", "groups"), all("exception", "exceptions")].concat(),
        "async" => {
            let lists = [all("task", "tasks"), all("chain", "chains"), all("row", "tree"), all("status", "statuses")];
            [lists.concat(), records("totals", [data["totals"].clone()], &json!({}))].concat()
        }
        "stat" => {
            let last =
                [records("totals", [data["totals"].clone()], &json!({})), records("coverage", [data["coverage"].clone()], &json!({}))];
            [all("type", "types"), all("group", "groups"), last.concat()].concat()
        }
        "strings" | "fragmentation" => {
            let rows = [
                all("string", "strings"),
                all("generation", "generations"),
                all("segment", "segments"),
                all("size", "sizes"),
                all("free-block", "largest"),
                all("pinned-type", "pinned"),
            ];
            let last = ["totals", "coverage"].map(|kind| records(kind, [data[kind].clone()], &json!({})));
            [rows.concat(), last.concat()].concat()
        }
        "objects" => {
            let mut tail = data.clone();
            tail.as_object_mut().unwrap().remove("objects");
            [all("object", "objects"), records("totals", [tail], &json!({}))].concat()
        }
        "object" => {
            let mut itself = data.clone();
            itself.as_object_mut().unwrap().retain(|k, _| k != "fields" && k != "elements");
            [records("object", [itself], &json!({})), all("field", "fields"), all("element", "elements")].concat()
        }
        "retained" => {
            let one = |kind: &str, key: &str| if data[key].is_null() { Vec::new() } else { records(kind, [data[key].clone()], &json!({})) };
            let lists = [all("object", "objects"), all("type", "types"), one("detail", "object"), all("tree", "tree")];
            [lists.concat(), all("suspect", "suspects"), all("coverage", "coverage"), one("totals", "totals")].concat()
        }
        "objsize" => records("objsize", [data.clone()], &json!({})),
        "path" => [all("path", "paths"), all("node", "tree"), all("coverage", "coverage")].concat(),
        "where" => records("place", [data.clone()], &json!({})),
        "near" => [all("near", "rows"), records("segment", [data["segment"].clone()], &json!({}))].concat(),
        "statics" => all("static", "statics"),
        "type" if data["layout"].is_null() => all("type", "types"),
        "type" => [all("type", "types"), records("layout", [data["layout"].clone()], &json!({}))].concat(),
        "bridge" => [all("scc", "sccs"), all("xref", "xrefs"), all("class", "classes"), all("coverage", "coverage")].concat(),
        "whatif" => {
            let (survivors, freed) = (&data["survivors"], &data["freed"]);
            let sum = |v: &Value| json!({ "count": v["count"], "bytes": v["bytes"] });
            let totals = json!({
                "survivors": sum(survivors), "freed": sum(freed), "resurrected": data["resurrected"],
                "weak_total": data["weak_total"], "weak_cleared": data["weak_cleared"],
            });
            let none = json!({});
            [
                records("survivor", list(&survivors["types"]), &none),
                records("freed", list(&freed["types"]), &none),
                all("component", "components"),
                all("weak-handle", "weak_handles"),
                records("totals", [totals], &none),
                all("coverage", "coverage"),
            ]
            .concat()
        }
        "unreachable" => {
            let totals = json!({ "reached": data["reached"], "unreachable": data["unreachable"] });
            let totals = records("totals", [totals], &json!({}));
            [all("type", "types"), all("object", "objects"), all("class", "classes"), totals, all("coverage", "coverage")].concat()
        }
        "simulate" => {
            let freed = &data["freed"];
            let totals = json!({
                "freed": { "count": freed["count"], "bytes": freed["bytes"] }, "survivors": data["survivors"],
                "promoted": data["promoted"], "resurrected": data["resurrected"], "untouched": data["untouched"],
            });
            let none = json!({});
            let (types, totals) = (records("freed", list(&freed["types"]), &none), records("totals", [totals], &none));
            [types, all("generation", "generations"), totals, all("coverage", "coverage")].concat()
        }
        "verify" => {
            let last = ["totals", "coverage"].map(|kind| records(kind, [data[kind].clone()], &json!({})));
            [all("finding", "findings"), all("count", "summary"), all("unavailable", "unavailable"), last.concat()].concat()
        }
        "contracts" => [
            all("origin", "origins"),
            all("contract", "contracts"),
            all("type", "types"),
            all("unusable", "unusable"),
            all("global", "globals"),
            all("check", "checks"),
        ]
        .concat(),
        other => panic!("no records known of {other}"),
    }
}

/// Names of the CSV columns. Part of the contract: columns may only be appended.
fn csv_columns(asked: &[&str]) -> &'static str {
    match asked {
        ["info"] => "fact,value",
        ["heap", ..] => "heap,generation,segments,allocated,committed,reserved,share",
        ["segments"] => {
            "heap,generation,address,start,allocated,stored_allocated,committed,reserved,next,allocated_bytes,committed_bytes,flags,used,background_allocated,flags_value"
        }
        ["segments", "--walk"] => {
            "heap,generation,address,objects,bytes,free_objects,free_bytes,context_bytes,in_allocation,not_walked,end"
        }
        ["segments", _] => "list,heap,size_class,address,start,end,bytes,allocated,reserved,used,next,flags",
        ["handles"] => "address,type,object,method_table,object_size,secondary,object_type,secondary_type,strong,ref_count,used_for",
        ["handles", "--by", "object-type"] => "object_type,count,bytes",
        ["roots"] => "kind,address,object,type,flags,label,thread,method_table",
        ["roots", _] => "count,objects,method_table,type",
        ["finalizers"] => "method_table,registered,ready,critical,type",
        ["finalizers", _] => "object,state,generation,heap,type",
        ["handles", _] => "type,count",
        ["oom"] => "heap,reason,alloc_size,reserved,allocated,gc_index,fgm,size,available_pagefile_mb,loh",
        ["analyze", ..] => "severity,id,count,bytes,share,object,type,method,title,command",
        ["threads"] => {
            "managed_id,os_id,name,address,gc_mode,alloc_pointer,alloc_limit,exception,exception_type,allocated_bytes,allocated_bytes_uoh,home_heap,locks_held,waits_for,state"
        }
        ["exceptions"] => "address,type,hresult,frames,thread,role,inner,message",
        ["exceptions", _] => "count,thrown,example,type,method,message",
        ["async", "--tasks"] => "object,status,exception,method,type",
        ["async", ..] => "chain,count,root_kind,root_object,root,index,object,state,status,thread,method,type",
        ["stat"] => "method_table,count,bytes,share,type",
        ["stat", "--by", "segment", ..] => "segment,heap,generation,count,bytes,share,free_count,free_bytes",
        ["stat", ..] => "generation,count,bytes,share,free_count,free_bytes",
        ["strings", ..] => "count,length,bytes,waste,address,truncated,value",
        ["fragmentation", ..] => "generation,heap,segment,allocated,free_count,free_bytes,share,unused_committed,contexts",
        ["objects", "--refs"] => "address,method_table,size,generation,type,refs",
        ["objects", ..] => "address,method_table,size,generation,type",
        ["object", _] => "offset,name,type,address,kind,text,declaring_type",
        ["retained", "--suspects", ..] => {
            "kind,address,count,retained,share,type,root_kind,root_address,root,accumulation,accumulation_type"
        }
        ["retained", "--tree"] => "depth,address,size,retained,share,type",
        ["retained", ..] => "address,size,retained,share,dominated,type",
        ["objsize", _] => "address,size,retained,closure_bytes,closure_objects,shared_bytes,type",
        ["path", ..] => "path,step,address,size,field,type,key,root_kind,root_address,root,repeated,last",
        ["where", _] => "address,kind,object,offset,segment,heap,generation,text,name,target,target_type",
        ["near", _] => "here,address,size,method_table,type",
        ["statics", ..] => "declaring_type,name,type,storage,thread,address,kind,text",
        ["type", "Lab.*"] => "method_table,name,module,token",
        ["type", _] => "offset,name,type,method_table,declaring_type,token",
        ["bridge", ..] => "scc,state,address,method_table,type,handle,context,registered",
        ["whatif", ..] => "change,count,bytes,method_table,type",
        ["unreachable"] => "count,bytes,method_table,type,class",
        ["unreachable", ..] => "address,method_table,bytes,generation,class,type",
        ["simulate", ..] => "count,bytes,method_table,type",
        ["verify", ..] => "severity,finding,address,object,related,also,type,message",
        ["contracts", ..] => "kind,name,type,value,origin",
        other => panic!("no columns known of {other:?}"),
    }
}

/// Number of CSV rows for the JSON answer; unknown for `info`, which lists facts.
fn csv_rows(asked: &[&str], data: &Value) -> Option<usize> {
    let n = |v: &Value| list(v).len();
    Some(match asked {
        ["info"] => return None,
        ["heap", ..] => list(&data["heaps"]).iter().map(|h| n(&h["generations"])).sum(),
        ["segments", ..] if asked.get(1) != Some(&"--free") => n(&data["segments"]),
        ["segments", _] => n(&data["regions"]),
        ["handles"] => n(&data["handles"]),
        ["handles", "--by", _] => n(&data["groups"]),
        ["handles", _] => n(&data["counts"]),
        ["roots"] => n(&data["roots"]),
        ["roots", _] => n(&data["types"]),
        ["finalizers"] => n(&data["types"]),
        ["finalizers", _] => n(&data["objects"]),
        ["oom"] => n(&data["heaps"]),
        ["analyze", ..] => n(&data["findings"]),
        ["threads"] => n(&data["threads"]),
        ["exceptions"] => n(&data["exceptions"]),
        ["exceptions", _] => n(&data["groups"]),
        ["async", "--tasks"] => n(&data["tasks"]),
        ["async", ..] => list(&data["chains"]).iter().map(|c| n(&c["frames"])).sum(),
        ["stat"] => n(&data["types"]),
        ["stat", ..] => n(&data["groups"]),
        ["strings", ..] => n(&data["strings"]),
        ["fragmentation"] => n(&data["generations"]),
        ["fragmentation", ..] => n(&data["segments"]),
        ["objects", ..] => n(&data["objects"]),
        ["object", _] => n(&data["fields"]) + n(&data["elements"]),
        ["retained", "--suspects", ..] => n(&data["suspects"]),
        ["retained", "--tree"] => n(&data["tree"]),
        ["retained", "--object", _] | ["objsize", _] => 1,
        ["retained"] => n(&data["objects"]),
        ["path", ..] => list(&data["paths"]).iter().map(|p| n(&p["steps"])).sum(),
        ["where", _] => 1,
        ["near", _] => n(&data["rows"]),
        ["statics", ..] => n(&data["statics"]),
        ["type", "Lab.*"] => n(&data["types"]),
        ["type", _] => n(&data["layout"]["fields"]),
        ["bridge", ..] => list(&data["sccs"]).iter().map(|s| n(&s["objects"])).sum(),
        ["whatif", ..] => n(&data["survivors"]["types"]) + n(&data["freed"]["types"]),
        ["unreachable", ..] => n(&data["types"]) + n(&data["objects"]),
        ["simulate", ..] => n(&data["freed"]["types"]),
        ["verify", ..] => n(&data["findings"]),
        _ => {
            let fields: usize = list(&data["types"]).iter().map(|t| 1 + n(&t["fields"])).sum();
            n(&data["contracts"]) + fields + n(&data["globals"])
        }
    })
}

/// Number of rows in the first table of a page: the lines after the header, up to an empty line.
fn table_rows(page: &str, first_heading: &str) -> usize {
    let headings = |l: &&str| l.trim_start().starts_with(first_heading);
    page.lines().skip_while(|l| !headings(l)).skip(1).take_while(|l| !l.is_empty()).count()
}

/// Fields of the structures in `fields`, which tables list as well.
fn inner_fields(fields: &Value) -> usize {
    let of = |field: &Value| field["fields"].as_array().map_or(0, Vec::len) + inner_fields(&field["fields"]);
    fields.as_array().into_iter().flatten().map(of).sum()
}

fn other_formats(path: &Path, asked: &[&str]) {
    let answer = |format: &str| {
        let mut args = asked.to_vec();
        args.extend(["--format", format, "--no-local-files", path.to_str().unwrap()]);
        run(&args)
    };
    let what = format!("{} {asked:?}", path.display());
    let plain = answer("json");
    if plain.out.is_empty() {
        return;
    }
    let document = plain.json();

    let ran = answer("ndjson");
    assert_eq!((ran.exit, ran.err.as_str()), (plain.exit, ""), "{what}");
    let lines: Vec<Value> = ran.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let mut header = document.clone();
    let fields = header.as_object_mut().unwrap();
    fields.remove("data");
    fields.remove("warnings");
    fields.insert("record".into(), "header".into());
    assert_eq!(lines.first(), Some(&header), "{what}");
    let rows = &lines[1..lines.len() - 1];
    assert_eq!(rows, expected_records(asked[0], &document["data"]), "{what}");
    let footer = json!({
        "record": "footer", "rows": rows.len(), "complete": document["data"]["complete"], "warnings": document["warnings"],
    });
    assert_eq!(lines.last(), Some(&footer), "{what}");

    let ran = answer("csv");
    assert_eq!(ran.exit, plain.exit, "{what}");
    assert_eq!(ran.out.lines().next(), Some(csv_columns(asked)), "{what}");
    let parsed = csv::Reader::from_reader(ran.out.as_bytes()).into_records().map(Result::unwrap).count();
    let expected = csv_rows(asked, &document["data"]);
    assert_eq!(parsed, expected.unwrap_or(parsed), "{what}");

    let ran = answer("table");
    assert_eq!(ran.exit, plain.exit, "{what}");
    let (heading, extra) = match asked {
        ["heap", ..] => ("HEAP", 1),
        ["segments"] | ["segments", "--walk"] => ("HEAP", 0),
        ["segments", _] => ("LIST", 0),
        ["handles"] => ("ADDRESS", 0),
        ["handles", "--by", _] => ("OBJECT TYPE", 0),
        ["handles", _] => ("TYPE", 0),
        ["threads"] => ("MANAGED ID", 0),
        ["near", _] => ("HERE", 0),
        ["object", EVERYTHING] => ("OFFSET", inner_fields(&document["data"]["fields"])),
        ["statics", ..] => ("DECLARING TYPE", 0),
        ["type", "Lab.*"] if document["data"]["layout"].is_null() => ("METHOD TABLE", 0),
        // If one type matches, the table format shows its layout.
        ["type", "Lab.*"] => return,
        ["type", _] => ("OFFSET", 0),
        _ => return,
    };
    // Parts of the ephemeral segment are listed between the table and the empty line.
    let parts =
        ran.out.lines().filter(|l| asked[0] == "segments" && asked.last() != Some(&"--free") && l.contains(" inside segment 0x")).count();
    let expected = expected.filter(|n| *n > 0).map_or(0, |n| n + extra + parts);
    assert_eq!(table_rows(&ran.out, heading), expected, "{what}: {}", ran.out);
}

#[test]
fn all_formats_agree() {
    for asked in sample(ASKED, 4) {
        other_formats(&own_unpacked(), asked);
    }
    // One dump of each kind: several heaps, an ephemeral segment, gaps.
    let wanted = ["net10-svr-basics-heap", "net9-seg-basics-heap", "net10-wks-basics-triage", "net10-wks-oom-heap"];
    let (dumps, missing) = known_dumps(|row| row["name"].as_str().is_some_and(|n| wanted.contains(&n))).unwrap_or_default();
    for (i, dump) in dumps.iter().enumerate() {
        // Every second command line.
        for asked in ASKED.iter().skip(i % 2).step_by(2) {
            other_formats(&dump.path, asked);
        }
    }
    for name in &missing {
        println!("skipped: {name}: not unpacked in {}", common::unpacked().display());
    }
}
