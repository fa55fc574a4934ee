//! Reference counts of COM wrappers decide whether ref-counted handles are roots, in every command that uses roots: on real dumps, with the
//! original counts and with changed ones.

use crate::common::{self, ask, known_dumps};
use crate::harness::Tested;
use crate::support::Spec;
use gcdump::cli::Exit;
use gcdump::internals::dump::{self, Bytes, OpenOptions};
use gcdump::{Addr, Dump};
use serde_json::{Value, json};

/// Dumps with readable wrappers: of ComWrappers in unmanaged code, in managed code, on Windows.
const DUMPS: [&str; 4] = ["net8-svr-handles-heap", "net9-svr-handles-heap", "net10-svr-handles-heap", "win-net8-wks-handles-full"];

/// A dump of the corpus in which the count of one wrapper can be changed.
struct Wrapped {
    bytes: Vec<u8>,
    dump: Dump,
    /// The handle, its object, and the address of the count.
    handle: Addr,
    object: Addr,
    count: Addr,
    /// The static field that holds everything the program made.
    keep: Addr,
    copy: tempfile::NamedTempFile,
}

impl Wrapped {
    fn of(name: &'static str) -> Wrapped {
        let bytes = common::bytes_of(name).unwrap();
        let file = dump::open_bytes(Bytes::Owned(bytes.clone()), "whole.dmp".as_ref(), &OpenOptions::default()).unwrap();
        let dump = Dump::of(file, &gcdump::OpenOptions::default());
        let copy = tempfile::Builder::new().prefix(name).suffix(".dmp").tempfile().unwrap();
        std::fs::write(copy.path(), &bytes).unwrap();
        let (_, handles) = ask(copy.path(), &["handles", "--type", "ref-counted"]);
        let address = |v: &Value| Addr(u64::from_str_radix(v.as_str().unwrap().trim_start_matches("0x"), 16).unwrap());
        let first = &handles["data"]["handles"][0];
        let (handle, object) = (address(&first["address"]), address(&first["object"]));
        // A wrapper begins with its handle, followed by the count; there is one such address.
        let words = dump.file().ranges.iter().flat_map(|range| (range.start.0..range.start.0 + range.len).step_by(8).map(Addr));
        let is_wrapper = |at: &Addr| {
            let word = |at: u64| dump.memory().ptr(Addr(at)).ok();
            word(at.0) == Some(handle) && word(at.0 + 8) == Some(Addr(1))
        };
        let found: Vec<Addr> = words.filter(is_wrapper).collect();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        let (_, statics) = ask(copy.path(), &["statics", "--type", "Lab.Program"]);
        let keep = statics["data"]["statics"].as_array().unwrap().iter().find(|s| s["name"] == "Keep").unwrap();
        Wrapped { bytes, handle, object, count: found[0].plus(8), keep: address(&keep["address"]), dump, copy }
    }

    /// Returns the answer of a command with this count, and without the static field that holds the program's objects.
    fn ask(&self, count: u64, command: &[&str]) -> (Exit, Value) {
        let changes = [(self.count, count, 8), (self.keep, 0, 8)];
        let bytes = common::with_words(self.dump.file(), &self.bytes, self.dump.memory().shape().endian, &changes);
        std::fs::write(self.copy.path(), bytes).unwrap();
        ask(self.copy.path(), command)
    }
}

fn number(v: &Value) -> u64 {
    v.as_u64().unwrap_or_else(|| panic!("{v} is not a number"))
}

fn rows<'v>(v: &'v Value, key: &str) -> Vec<&'v Value> {
    v["data"][key].as_array().unwrap().iter().collect()
}

/// Returns the coverage of a kind of root: kind and reason.
fn coverage(answer: &Value, kind: &str) -> (String, Option<String>) {
    let of = rows(answer, "coverage").into_iter().find(|c| c["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {answer}"));
    (of["coverage"].as_str().unwrap().to_string(), of["reason"].as_str().map(String::from))
}

#[test]
fn a_referenced_wrapper_is_a_root_and_one_without_references_is_weak() {
    for name in common::sample(DUMPS, 4) {
        let dump = Wrapped::of(name);
        let (handle, object) = (dump.handle.to_string(), dump.object.to_string());
        // The cases: COM clients have a reference; nothing has one; only a reference tracker has one, which decides.
        for (count, strong) in [(1, Some(true)), (0, Some(false)), (0x8000_0000, Some(false)), (1 << 32, None)] {
            let case = format!("{name}, count {count:#x}");
            let kept = strong != Some(false);
            let with = |command: &[&str]| dump.ask(count, command).1;

            let handles = with(&["handles", "--type", "ref-counted"]);
            let listed = rows(&handles, "handles").into_iter().find(|h| h["address"] == handle.as_str()).unwrap();
            assert_eq!((&listed["strong"], &listed["ref_count"]), (&json!(strong), &json!(count & 0x7fff_ffff)), "{case}");

            let roots = with(&["roots", "--weak", "--top", "0"]);
            let root = rows(&roots, "roots").into_iter().find(|r| r["address"] == handle.as_str()).unwrap();
            let (kind, flags) = match strong {
                Some(true) => ("ref-counted-handle", json!([])),
                Some(false) => ("weak-handle", json!(["weak"])),
                None => ("ref-counted-handle", json!(["ref-counted"])),
            };
            assert_eq!((&root["kind"], &root["flags"]), (&json!(kind), &flags), "{case}");
            let expected = match strong {
                None => ("conservative".into(), Some("whether 1 of 9 handles keep their objects alive is unknown".into())),
                _ => ("complete".into(), None),
            };
            assert_eq!(coverage(&roots, "ref-counted-handle"), expected, "{case}");
            // Without --weak, and with a kind.
            let all = with(&["roots", "--kind", "ref-counted"]);
            assert_eq!(number(&all["data"]["total"]), if kept { 9 } else { 8 }, "{case}");
            let weak = with(&["roots", "--kind", "weak", "--weak", "--top", "0"]);
            assert_eq!(rows(&weak, "roots").iter().any(|r| r["address"] == handle.as_str()), !kept, "{case}");

            let path = with(&["path", "--stacks", "none", &object]);
            assert_eq!(path["data"]["reachable"], u64::from(kept), "{case}");
            assert_eq!(coverage(&path, "ref-counted-handle"), expected, "{case}");
            if kept {
                assert_eq!(path["data"]["paths"][0]["roots"][0]["address"], handle.as_str(), "{case}");
            }

            let garbage = with(&["unreachable", "--objects", "--top", "0", "--stacks", "none"]);
            let found = rows(&garbage, "objects").into_iter().find(|o| o["address"] == object.as_str()).map(|o| o["class"].clone());
            assert_eq!(found, (!kept).then(|| json!("weak-only")), "{case}");

            let bridge = with(&["bridge", "--bridged", garbage_type(name), "--stacks", "none"]);
            // If the count of a handle is unknown, the bridge decides.
            let dead = rows(&bridge, "sccs").iter().flat_map(|s| s["objects"].as_array().unwrap()).any(|o| o["address"] == object.as_str());
            assert_eq!(dead, strong != Some(true), "{case}");

            let whatif = with(&["whatif", "--dead", &handle, "--stacks", "none"]);
            assert_eq!(number(&whatif["data"]["freed"]["count"]) > 0, kept, "{case}: {}", whatif["data"]["freed"]);
        }
        // A collection frees the object of the handle without references.
        let freed =
            |count| number(&dump.ask(count, &["simulate", "collect", "--generation", "2", "--stacks", "none"]).1["data"]["freed"]["count"]);
        assert!(freed(0) > freed(1), "{name}");
    }
}

/// Returns the type of the objects of ref-counted handles.
fn garbage_type(name: &str) -> &'static str {
    if name.contains("net10") { "*ManagedObjectWrapperHolder" } else { "Lab.Circle" }
}

#[test]
fn counts_are_unknown_only_if_one_is() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "handles")?;
    for dump in dumps {
        let (_, handles) = ask(&dump.path, &["handles"]);
        let unknown = number(&handles["data"]["ref_counts_unknown"]);
        let (_, roots) = ask(&dump.path, &["roots"]);
        let (kind, reason) = coverage(&roots, "ref-counted-handle");
        assert_eq!(
            (kind.as_str(), reason.is_none()),
            if unknown == 0 { ("complete", true) } else { ("conservative", false) },
            "{}",
            dump.name
        );
        if let Some(reason) = reason {
            assert!(reason.contains(&format!("{unknown} of {unknown} handles")), "{}: {reason}", dump.name);
        }
    }
    Ok(())
}

#[test]
fn a_wrapper_without_proof_has_no_count() {
    for name in ["net8-svr-handles-heap", "net9-svr-handles-heap", "win-net8-wks-handles-full"] {
        let dump = Wrapped::of(name);
        let of = |answer: &Value| {
            let list = rows(answer, "handles").into_iter().map(|h| (h["address"].clone(), h["ref_count"].clone()));
            list.partition::<Vec<_>, _>(|(at, _)| at == dump.handle.to_string().as_str())
        };
        let (own, others) = of(&dump.ask(1, &["handles", "--type", "ref-counted"]).1);
        assert_eq!((own[0].1.clone(), others.len()), (json!(1), 8));
        // The first word of the wrapper is not the handle any more.
        let changes = [(Addr(dump.count.0 - 8), dump.handle.0 + 8, 8)];
        let bytes = common::with_words(dump.dump.file(), &dump.bytes, dump.dump.memory().shape().endian, &changes);
        std::fs::write(dump.copy.path(), bytes).unwrap();
        let (exit, answer) = ask(dump.copy.path(), &["handles", "--type", "ref-counted"]);
        let (own, rest) = of(&answer);
        assert_eq!((exit, &own[0].1, rest), (Exit::Ok, &Value::Null, others), "{name}");
        assert_eq!(answer["data"]["ref_counts_unknown"], 1, "{name}");
    }
}

#[test]
fn handles_of_the_java_bridge_are_a_separate_kind_of_root() {
    for shape in crate::common::shapes() {
        let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        std::fs::write(file.path(), Spec::standard(shape).build().to_elf_core()).unwrap();
        let (_, handles) = ask(file.path(), &["handles", "--type", "cross-reference"]);
        let count = number(&handles["data"]["total"]);
        assert!(count > 0 && rows(&handles, "handles").iter().all(|h| h["strong"].is_null()), "{handles}");
        let (_, roots) = ask(file.path(), &["roots", "--kind", "cross-reference-handle"]);
        assert_eq!(number(&roots["data"]["total"]), count);
        assert!(rows(&roots, "roots").iter().all(|r| r["flags"] == json!(["ref-counted"])), "{roots}");
        let (kind, reason) = coverage(&roots, "cross-reference-handle");
        assert_eq!(kind, "conservative");
        assert!(reason.unwrap().starts_with("the collector of the other runtime decides whether "));
        let (_, roots) = ask(file.path(), &["roots", "--kind", "ref-counted"]);
        assert!(rows(&roots, "roots").iter().all(|r| r["label"] == "ref-counted handle"), "{roots}");
    }
}
