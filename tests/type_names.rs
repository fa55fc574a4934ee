//! Type names against ClrMD's, over every dump at hand.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    missing_docs
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gcdump::base::{Addr, Limits, Notes, Shape};
use gcdump::clr::modules::MetadataOrigin;
use gcdump::clr::type_names::{NameQuality, TypeNames};
use gcdump::contract::{self, Options};
use gcdump::dump::{OpenOptions, open};
use gcdump::memory::{FileSearch, Memory};
use serde_json::Value;

const SHARED: &str = "/work/shared/dumps";
const LAB: &str = "/work/cache/lab";

fn shared() -> PathBuf {
    std::env::var_os("GCDUMP_TEST_SHARED").map_or_else(|| SHARED.into(), PathBuf::from)
}

fn dumps() -> Option<PathBuf> {
    let dir = std::env::var_os("GCDUMP_TEST_DUMPS").map_or_else(|| "/work/cache/dumps".into(), PathBuf::from);
    if dir.is_dir() && shared().is_dir() {
        return Some(dir);
    }
    println!("skipped: no dumps in {} or no answers in {}", dir.display(), shared().display());
    None
}

fn json(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap();
    let bytes = if path.extension().is_some_and(|e| e == "zst") { zstd::decode_all(bytes.as_slice()).unwrap() } else { bytes };
    serde_json::from_slice(&bytes).unwrap()
}

/// What ClrMD says: name by method table. The same table may occur in the statistics and among the handles.
fn wanted(answer: &Value) -> BTreeMap<Addr, Option<String>> {
    let types = answer["stat"]["types_table"].as_array().into_iter().flatten().map(|t| (&t["mt"], &t["name"]));
    let handles = answer["handles"]["handles"].as_array().into_iter().flatten().map(|h| (&h["mt"], &h["type"]));
    let mut out = BTreeMap::new();
    for (mt, name) in types.chain(handles) {
        let Some(mt) = mt.as_str().and_then(|m| u64::from_str_radix(m.trim_start_matches("0x"), 16).ok()) else { continue };
        let name = name.as_str().filter(|n| !n.is_empty()).map(ToString::to_string);
        let entry = out.entry(Addr(mt)).or_insert(None);
        if entry.is_none() {
            *entry = name;
        }
    }
    out.remove(&Addr::NULL);
    out
}

#[derive(Default)]
struct Tally {
    types: usize,
    equal: usize,
    different: Vec<String>,
    unnamed: Vec<String>,
    extra: usize,
}

#[test]
fn names_are_those_of_clrmd() {
    let Some(dir) = dumps() else { return };
    let only = std::env::var("GCDUMP_TEST_ONLY").ok();
    let mut failures = Vec::new();
    for entry in json(&shared().join("manifest.json"))["dumps"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        let (Some(answer), path) = (entry["clrmd"].as_str(), dir.join(format!("{name}.dmp"))) else { continue };
        if !path.is_file() || only.as_ref().is_some_and(|o| !name.contains(o.as_str())) {
            continue;
        }
        let wanted = wanted(&json(&shared().join(answer)));
        let dump = open(&path, &OpenOptions::default()).unwrap();
        let mut memory = Memory::new(&dump, dump.facts.shape.unwrap_or(Shape::LE64));
        let notes = Notes::new();
        let runtimes = match contract::open_runtimes(&dump, &mut memory, &Options::default(), &notes) {
            Ok(r) => r,
            Err(e) => {
                println!("{name}: {e}");
                failures.push(format!("{name}: {e}"));
                continue;
            }
        };
        let names = TypeNames::new(&memory, &runtimes[0].descriptor, dump.facts.os, None, &Limits::default()).unwrap();
        let mut t = Tally { types: wanted.len(), ..Tally::default() };
        for (mt, theirs) in &wanted {
            let ours = names.name(*mt);
            match theirs {
                _ if ours.quality != NameQuality::Exact => t.unnamed.push(format!("{mt} {} {theirs:?}", ours.name)),
                None => t.extra += 1,
                Some(theirs) if *theirs == ours.name => t.equal += 1,
                Some(theirs) => t.different.push(format!("{mt} ours {} theirs {theirs}", ours.name)),
            }
        }
        let missing = names.modules().seen().iter().filter(|m| m.origin == MetadataOrigin::None).count();
        println!(
            "{name}: {} types, {} equal, {} different, {} unnamed, {} that ClrMD does not name; {missing} modules without metadata",
            t.types,
            t.equal,
            t.different.len(),
            t.unnamed.len(),
            t.extra
        );
        t.different.iter().chain(&t.unnamed).take(6).for_each(|d| println!("    {d}"));
        failures.extend(t.different);
    }
    assert!(failures.is_empty(), "{} failures", failures.len());
}
