//! Handle types, reference counts, and the list of GC heaps that handles are read through.

use crate::harness::Tested;
use std::io::Write;

use crate::common::{ask, known_dumps, own_dump, run};
use crate::support::{Shape, Spec, Target};
use gcdump::Dump;
use gcdump::cli::Exit;
use gcdump::internals::base::{Addr, Limits};
use gcdump::internals::clr::header::Headers;
use gcdump::model::HeaderState;
use serde_json::{Value, json};

const ALWAYS: [&str; 6] = ["weak-short", "weak-long", "strong", "pinned", "dependent", "weak-interior-pointer"];

fn asked(target: &Target, command: &[&str]) -> (Exit, Value) {
    let mut file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    file.write_all(&target.to_elf_core()).unwrap();
    ask(file.path(), command)
}

/// Returns the types reported as supported, without those that all runtimes support.
fn further(answer: &Value) -> Vec<String> {
    let all: Vec<String> = serde_json::from_value(answer["data"]["supported"].clone()).unwrap();
    assert!(ALWAYS.iter().all(|t| all.iter().any(|a| a == t)), "{all:?}");
    all.into_iter().filter(|t| !ALWAYS.contains(&t.as_str())).collect()
}

/// Published features, the types that these add, and the source of that knowledge.
type Case = (&'static [(&'static str, u64)], &'static [&'static str], &'static str);

#[test]
fn supported_types_follow_the_features_of_the_runtime() {
    let cases: [Case; 6] = [
        (&[("FeatureComWrappers", 1)], &["ref-counted"], "descriptor"),
        (&[("FeatureComWrappers", 0), ("FeatureObjCMarshal", 1)], &["ref-counted"], "descriptor"),
        (&[("FeatureCOMInterop", 0), ("FeatureComWrappers", 0)], &[], "descriptor"),
        (&[("FeatureJavaMarshal", 1)], &["cross-reference"], "descriptor"),
        // .NET 9 and 10 publish only this one; ComWrappers are in all of their builds.
        (&[("FeatureCOMInterop", 0)], &["ref-counted"], "version"),
        (&[], &["ref-counted"], "version"),
    ];
    for shape in crate::common::shapes() {
        for (features, expected, by) in cases {
            let (exit, answer) = asked(&Spec { features, ..Spec::standard(shape) }.build(), &["handles", "--stat"]);
            assert_eq!(
                (exit, further(&answer), answer["data"]["supported_by"].as_str()),
                (Exit::Ok, expected.iter().map(ToString::to_string).collect(), Some(by)),
                "{features:?}"
            );
        }
    }
    let (_, answer) = ask(&own_dump(), &["handles", "--stat"]);
    assert_eq!((further(&answer), &answer["data"]["supported_by"]), (vec!["ref-counted".into()], &json!("version")));
}

#[test]
fn types_are_chosen_by_name_by_number_and_in_lists() {
    let data = |types: &[&str]| {
        let types: Vec<&str> = types.iter().flat_map(|t| ["--type", t]).collect();
        ask(&own_dump(), &[&["handles"], types.as_slice()].concat()).1["data"].take()
    };
    let both = data(&["strong", "pinned"]);
    assert!(both["total"].as_u64() > data(&["strong"])["total"].as_u64());
    for same in [&["strong,pinned"][..], &["2,3"], &["Pinned,2"]] {
        assert_eq!(data(same), both, "{same:?}");
    }
    let dump = own_dump();
    assert_eq!(run(&["handles", "--type", "12", dump.to_str().unwrap()]).exit, Exit::Usage);
}

#[test]
fn an_impossible_number_of_handle_types_is_ignored() {
    for shape in crate::common::shapes() {
        let mut core = Spec::standard(shape).build().to_elf_core();
        let at = memchr::memmem::find(&core, b"\"HandleMaxInternalTypes\"").unwrap();
        let number = at + core[at..].windows(2).position(|two| two == b"13").unwrap();
        core[number..number + 2].copy_from_slice(b"03");
        for types in [&[][..], &["--type", "strong"]] {
            let mut file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
            file.write_all(&core).unwrap();
            let ran = run(&[&["handles", "--no-local-files", file.path().to_str().unwrap()], types].concat());
            assert_eq!(ran.exit, Exit::Partial, "{}", ran.err);
            assert!(ran.err.contains("3 handle types are fewer than any runtime has"), "{}", ran.err);
        }
    }
}

#[test]
fn reference_counts_are_read_where_they_are_described_and_absent_elsewhere() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "handles")?;
    for dump in dumps {
        let (_, answer) = ask(&dump.path, &["handles"]);
        let data = &answer["data"];
        let list: Vec<&Value> = data["handles"].as_array().unwrap().iter().filter(|h| h["type"] == "ref-counted").collect();
        let wrapped = dump.truth.as_ref().map_or(0, |t| t["refcounted"].as_u64().unwrap());
        assert_eq!(list.len() as u64, wrapped, "{}", dump.name);
        // The program made each wrapper once and released none.
        // Descriptors of .NET 11's shape made before it existed do not describe wrappers.
        let known = !dump.runtime.starts_with("net11shape");
        let expected = if known { [json!(1), json!(true)] } else { [Value::Null, Value::Null] };
        for handle in list {
            assert_eq!([&handle["ref_count"], &handle["strong"]], expected.each_ref(), "{}: {handle}", dump.name);
        }
        assert_eq!(data["ref_counts_unknown"], json!(if known { 0 } else { wrapped }), "{}", dump.name);
        for handle in data["handles"].as_array().unwrap().iter().filter(|h| h["type"] != "ref-counted") {
            let holds = matches!(handle["type"].as_str(), Some("strong" | "pinned"));
            assert_eq!((&handle["strong"], &handle["ref_count"]), (&json!(holds), &Value::Null), "{}: {handle}", dump.name);
        }
    }
    Ok(())
}

/// Makes a server process with `count` as its number of heaps.
fn with_heaps(shape: Shape, count: u32) -> Target {
    let mut target = Spec { server: Some(2), ..Spec::standard(shape) }.build();
    let mut file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    file.write_all(&target.to_elf_core()).unwrap();
    let dump = Dump::open(file.path(), &gcdump::OpenOptions::default()).unwrap();
    let at = dump.runtime().unwrap().descriptor().pointer("NumHeaps").unwrap().0;
    target.memory.put(at, 4, u64::from(count));
    target
}

#[test]
fn an_impossible_number_of_heaps_is_reported_once() {
    for shape in crate::common::shapes() {
        let (exit, answer) = asked(&with_heaps(shape, (-3i32).cast_unsigned()), &["heap"]);
        let said = |w: &&serde_json::Value| w["message"].as_str().unwrap().contains("an invalid number of heaps: -3");
        let invalid: Vec<_> = answer["warnings"].as_array().unwrap().iter().filter(said).collect();
        assert!(exit == Exit::Partial && invalid.len() == 1 && invalid[0]["kind"] == "invalid", "{}", answer["warnings"]);

        let (exit, answer) = asked(&with_heaps(shape, 100_000), &["heap"]);
        let warnings = answer["warnings"].as_array().unwrap();
        // Memory after the list may look like further heaps by chance.
        let heaps = answer["data"]["heaps"].as_array().unwrap().len();
        assert!(exit == Exit::Partial && (2..12).contains(&heaps), "{heaps} heaps, {warnings:#?}");
        assert!(warnings.len() <= 30 && warnings.iter().any(|w| w["message"].as_str().unwrap().contains("100000 heaps")), "{warnings:#?}");

        // The number is plausible for a machine, and the missing heaps share a warning.
        let (exit, answer) = asked(&with_heaps(shape, 500), &["heap"]);
        let warnings = answer["warnings"].as_array().unwrap();
        assert_eq!(exit, Exit::Partial);
        assert!(warnings.len() < 40, "{} warnings, {:#?}", warnings.len(), &warnings[..20]);
    }
}

#[test]
fn the_handle_of_a_sync_block_to_its_lock_is_not_a_handle_of_the_program() {
    for shape in crate::common::shapes() {
        let target = Spec { sync_blocks: true, ..Spec::standard(shape) }.build();
        let objects = target.expected()["objects"].clone();
        let (exit, answer) = asked(&target, &["handles"]);
        assert_eq!(exit, Exit::Ok, "{}", answer["warnings"]);
        assert_eq!(answer["data"]["uses"], json!([{"used_for": "sync-block-lock", "count": 1}]));
        let used = |h: &&Value| h["used_for"] == "sync-block-lock";
        let handles = answer["data"]["handles"].as_array().unwrap();
        let [handle] = handles.iter().filter(used).collect::<Vec<_>>()[..] else { panic!("{handles:?}") };
        let (_, roots) = asked(&target, &["roots", "--kind", "strong-handle"]);
        let root = roots["data"]["roots"].as_array().unwrap().iter().find(|r| r["address"] == handle["address"]).unwrap().clone();
        assert_eq!(root["label"], "strong handle, lock of a sync block");
        let mut file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        file.write_all(&target.to_elf_core()).unwrap();
        let process = Dump::open(file.path(), &gcdump::OpenOptions::default()).unwrap();
        let headers = Headers::bind(process.memory(), process.runtime().unwrap().descriptor(), &Limits::default()).unwrap();
        let address = |v: &Value| Addr(u64::from_str_radix(v.as_str().unwrap().trim_start_matches("0x"), 16).unwrap());
        let header = |i: usize| headers.read(address(&objects[i][0])).unwrap();
        let thin = header(1);
        assert_eq!(
            (thin.state, thin.owner_managed_id, thin.recursion, thin.hash_code),
            (HeaderState::SyncBlock, Some(4), Some(2), Some(77))
        );
        let block = thin.sync_block.unwrap();
        assert_eq!((block.held, block.recursion, block.waiters, block.lock), (Some(true), Some(3), Some(0), None));
        // The dump has no metadata, which would describe the state of the lock.
        let block = header(2).sync_block.unwrap();
        assert_eq!((block.lock, block.held, block.hash_code), (Some(address(&handle["object"])), None, None));
    }
}

#[test]
fn handles_that_the_library_made_for_itself_are_named() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "deadlock" && row["truth"].is_string())?;
    for dump in dumps.iter().filter(|dump| dump.kind == "heap") {
        let (_, answer) = ask(&dump.path, &["handles"]);
        let handles = answer["data"]["handles"].as_array().unwrap();
        let of = |used: &str| handles.iter().filter(|h| h["used_for"] == used).collect::<Vec<_>>();
        if !dump.runtime.contains("11") {
            assert!(handles.iter().all(|h| h["used_for"].is_null()), "{}", dump.name);
            continue;
        }
        // The objects A to E, that of Monitor.Wait, and that of a SemaphoreSlim.
        let locks = of("sync-block-lock");
        assert_eq!(locks.len(), 7, "{}", dump.name);
        assert!(locks.iter().all(|h| h["object_type"] == "System.Threading.Lock"), "{locks:?}");
        assert!(of("wait-handle").iter().all(|h| h["object_type"] == "System.Threading.WaitSubsystem+WaitableObject"));
        let (_, roots) = ask(&dump.path, &["roots", "--kind", "strong-handle"]);
        let roots = roots["data"]["roots"].as_array().unwrap();
        let plain = roots.iter().filter(|r| r["label"] == "strong handle").map(|r| r["type"].as_str().unwrap());
        assert!(plain.clone().count() > 0);
        assert!(plain.into_iter().all(|ty| !ty.contains("Lock") && !ty.contains("WaitableObject")), "{}", dump.name);
    }
    Ok(())
}
