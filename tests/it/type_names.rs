//! Type names, compared with ClrMD for every available dump.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{self, known_dumps, needs_lab, needs_shared};
use crate::harness::{Ignored, Tested};
use gcdump::internals::base::{Addr, AddrRange, Limits, Shape};
use gcdump::internals::clr::modules::MetadataOrigin;
use gcdump::internals::clr::type_names::{NameQuality, TypeName, TypeNames};
use gcdump::internals::dump::{Bytes, DumpFile, OpenOptions, open, open_bytes};
use gcdump::internals::memory::{FileSearch, Memory};
use gcdump::{Dump, Token};
use serde_json::Value;

/// One type in ClrMD's answer.
#[derive(Clone, Debug, Default)]
struct Wanted {
    name: Option<String>,
    /// File name of the module, TypeDef token, base size, component size, has references: from the statistics only.
    facts: Option<(Option<String>, u64, u64, u64, bool)>,
}

fn hex(value: &Value) -> Option<Addr> {
    u64::from_str_radix(value.as_str()?.trim_start_matches("0x"), 16).ok().map(Addr).filter(|a| !a.is_null())
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|n| !n.is_empty()).map(ToString::to_string)
}

/// ClrMD's types by method table, from the statistics and handles.
fn wanted(answer: &Value) -> BTreeMap<Addr, Wanted> {
    let mut out: BTreeMap<Addr, Wanted> = BTreeMap::new();
    for t in answer["stat"]["types_table"].as_array().into_iter().flatten() {
        let module = text(&t["module"]).map(|m| m.rsplit(['/', '\\']).next().unwrap().to_string());
        let number = |key: &str| t[key].as_u64().unwrap();
        let facts = (module, number("token"), number("static_size"), number("component_size"), t["contains_pointers"] == true);
        out.insert(hex(&t["mt"]).unwrap(), Wanted { name: text(&t["name"]), facts: Some(facts) });
    }
    for h in answer["handles"]["handles"].as_array().into_iter().flatten() {
        let Some(mt) = hex(&h["mt"]) else { continue };
        let entry = out.entry(mt).or_default();
        entry.name = entry.name.take().or(text(&h["type"]));
    }
    out
}

/// Names that ClrMD 4.2 gets wrong, and the corresponding expressions in `lab/src/probe/Program.cs`.
///
/// - `new GenStatics<GenStatics<int[]>[]>()`: ClrMD's parser of DAC names fails on `[][]` within arguments and returns the
///   DAC's text, including `` `1[[…, assembly]] ``.
/// - `new delegate*<int, void>[2]`: ClrMD has no name. gcdump prints the same as `Type.ToString()` since .NET 8.
const CLRMD_FAULTS: &[(Option<&str>, &str)] = &[
    (
        Some("Probe.GenStatics`1[[Probe.GenStatics`1[[System.Int32[], System.Private.CoreLib]][], probe]]"),
        "Probe.GenStatics<Probe.GenStatics<System.Int32[]>[]>",
    ),
    (None, "System.Void(System.Int32)[]"),
];

/// Whether the runtime's own globals and element types name a type, so that it needs no metadata.
fn needs_no_metadata(name: &str) -> bool {
    let element = name.split('[').next().unwrap_or_default();
    let known = [
        "Object",
        "String",
        "Exception",
        "Boolean",
        "Char",
        "SByte",
        "Byte",
        "Int16",
        "UInt16",
        "Int32",
        "UInt32",
        "Int64",
        "UInt64",
        "Single",
        "Double",
        "IntPtr",
        "UIntPtr",
        "Void",
    ];
    element.strip_prefix("System.").is_some_and(|e| known.contains(&e))
}

/// The unpacked dumps of the manifest: name, path and ClrMD's answer.
fn cases() -> Result<Vec<(String, PathBuf, Option<Value>)>, Ignored> {
    let only = std::env::var("GCDUMP_TEST_ONLY").unwrap_or_default();
    let (dumps, _) = known_dumps(|row| row["name"].as_str().unwrap().contains(&only))?;
    Ok(dumps.into_iter().map(|d| (d.name, d.path, d.clrmd)).collect())
}

/// Opens a dump and passes its names to `f`.
fn with_names<T>(path: &Path, search: Option<FileSearch>, f: impl FnOnce(&Memory, &TypeNames) -> T) -> T {
    with_names_of(&open(path, &OpenOptions::default()).unwrap(), search, f)
}

fn with_names_of<T>(dump: &DumpFile, search: Option<FileSearch>, f: impl FnOnce(&Memory, &TypeNames) -> T) -> T {
    let opened = Dump::of(dump.clone(), &gcdump::OpenOptions::default());
    let runtime = opened.runtime().unwrap();
    let names = TypeNames::new(opened.memory(), runtime.descriptor(), None, dump.facts.os, search, &Limits::default()).unwrap();
    f(opened.memory(), &names)
}

/// Dumps without metadata, covered by another test.
fn has_no_metadata(name: &str) -> bool {
    name.ends_with("gcore") || name.ends_with("kernel")
}

#[test]
fn names_and_method_tables_are_those_of_clrmd() -> Tested {
    let mut failures = Vec::new();
    for (name, path, answer) in cases()? {
        let Some(answer) = answer else { continue };
        let wanted = wanted(&answer);
        with_names(&path, None, |_, names| {
            let (mut equal, mut faults, mut bad, mut unnamed) = (0, 0, Vec::new(), 0);
            for (mt, theirs) in &wanted {
                let ours = names.name(*mt);
                let info = names.method_tables().read(*mt).unwrap();
                assert_eq!(names.method_tables().is_valid(*mt), Ok(true), "{name} {mt}");
                if let Some((module, token, size, component, pointers)) = &theirs.facts {
                    // ClrMD attributes Free to the module of System.Object, and omits the NUL from the size of strings.
                    let base = u64::from(info.base_size).saturating_sub(if info.is_string { 2 } else { 0 });
                    let same = (base, u64::from(info.component_size), info.contains_pointers) == (*size, *component, *pointers);
                    let home = info.is_free
                        || (ours.module.as_ref() == module.as_ref() || module.is_none())
                            && u64::from(ours.token.map_or(0x0200_0000, Token::bits)) == *token;
                    if !same || !home {
                        bad.push(format!("{mt} {}: ours {info:?} {ours:?}, theirs {:?}", ours.name, theirs.facts));
                    }
                }
                match &theirs.name {
                    _ if ours.quality != NameQuality::Exact => unnamed += 1,
                    Some(theirs) if *theirs == ours.name => equal += 1,
                    // ClrMD needs metadata for every name.
                    None if has_no_metadata(&name) && needs_no_metadata(&ours.name) => faults += 1,
                    theirs if CLRMD_FAULTS.contains(&(theirs.as_deref(), ours.name.as_str())) => faults += 1,
                    theirs => bad.push(format!("{mt} ours {} theirs {theirs:?}", ours.name)),
                }
            }
            println!("{name}: {} types, {equal} equal, {faults} faults of ClrMD, {} different, {unnamed} unnamed", wanted.len(), bad.len());
            bad.iter().take(6).for_each(|d| println!("    {d}"));
            assert!(unnamed == 0 || has_no_metadata(&name));
            failures.extend(bad);
        });
    }
    assert!(failures.is_empty(), "{} differences", failures.len());
    Ok(())
}

/// Names of .NET 10 types by module file and token, as given by ClrMD for other dumps, without generic types and arrays.
fn names_by_token() -> Result<BTreeMap<(String, u64), String>, Ignored> {
    let mut out = BTreeMap::new();
    for (name, _, answer) in cases()? {
        let Some(answer) = answer.filter(|_| name.starts_with("net10") && !name.contains("probe")) else { continue };
        for w in wanted(&answer).into_values() {
            if let (Some(name), Some((Some(module), token, ..))) = (w.name, w.facts)
                && name != "Free"
                && !name.contains(['<', '[', '`'])
            {
                out.insert((module, token), name);
            }
        }
    }
    Ok(out)
}

/// The files of the modules of .NET 10.
fn lab_files() -> Result<FileSearch, Ignored> {
    let folders = [needs_shared()?.join("modules/net10"), needs_lab()?.join("net10")];
    Ok(FileSearch { modules: folders.to_vec(), ..FileSearch::default() })
}

#[test]
fn module_files_supply_names_missing_from_the_dump() -> Tested {
    let search = lab_files()?;
    let known = names_by_token()?;
    for (name, path, answer) in cases()?.into_iter().filter(|c| has_no_metadata(&c.0)) {
        let wanted = wanted(&answer.unwrap());
        // The lab's own folder comes first: its lab.dll is a later build and must be rejected.
        let reversed = FileSearch { modules: search.modules.iter().rev().cloned().collect(), ..search.clone() };
        with_names(&path, Some(reversed), |_, names| {
            let mut compared = 0;
            for (mt, theirs) in &wanted {
                let ours = names.name(*mt);
                assert_eq!(ours.quality, NameQuality::Exact, "{name} {mt} {ours:?}");
                if let Some((Some(module), token, ..)) = &theirs.facts
                    && let Some(right) = known.get(&(module.clone(), *token))
                {
                    assert_eq!((&ours.name, ours.token), (right, Some(Token::from_bits(*token as u32))), "{name} {mt}");
                    compared += 1;
                }
            }
            let seen = names.modules().seen();
            let count = |f: fn(&MetadataOrigin) -> bool| seen.iter().filter(|m| f(&m.origin)).count();
            println!(
                "{name}: {} types named, {compared} compared with other dumps; modules: {} in the dump, {} from proven files, {} from unproven ones",
                wanted.len(),
                count(|o| *o == MetadataOrigin::Image),
                count(|o| matches!(o, MetadataOrigin::File(_))),
                count(|o| matches!(o, MetadataOrigin::UnverifiedFile(_))),
            );
            for m in &seen {
                println!("    {:?} {:?} {:?}", m.name, m.origin, m.rejected);
                if m.name.as_deref() == Some("lab.dll") {
                    assert_eq!(m.rejected.len(), 1, "{:?}", m.rejected);
                }
            }
        });
    }
    Ok(())
}

#[test]
fn files_of_another_version_are_rejected() -> Tested {
    let search = FileSearch { modules: vec![needs_lab()?.join("net8")], ..FileSearch::default() };
    for (name, path, _) in cases()?.into_iter().filter(|c| has_no_metadata(&c.0)) {
        with_names(&path, Some(search.clone()), |memory, names| {
            let found = scan(memory, names);
            assert!(found.len() > 100, "{name}");
            let named = found.iter().map(|mt| names.name(*mt)).collect::<Vec<_>>();
            // Modules are recorded when one of their types is named. Some have metadata in the dump.
            let seen = names.modules().seen();
            let held = seen.iter().filter(|m| m.metadata.is_some()).collect::<Vec<_>>();
            for module in &held {
                let file = matches!(module.origin, MetadataOrigin::File(_) | MetadataOrigin::UnverifiedFile(_));
                assert!(!file, "{name}: {:?} from {:?}", module.name, module.origin);
            }
            let held = held.iter().map(|m| m.name.clone()).collect::<Vec<_>>();
            let by_metadata = |n: &&Arc<TypeName>| n.quality == NameQuality::Exact && !needs_no_metadata(&n.name);
            let exact = named.iter().filter(by_metadata).filter(|n| !held.contains(&n.module)).count();
            let refused = seen.iter().map(|m| m.rejected.len()).sum::<usize>();
            println!("{name}: {refused} files refused, {exact} of {} named", found.len());
            // Free has no module.
            assert!(refused > 0 && exact <= 1, "{name}: {exact}");
        });
    }
    Ok(())
}

#[test]
fn a_file_is_identified_by_headers_or_by_the_version_id() -> Tested {
    let search = lab_files()?;
    let reversed = FileSearch { modules: search.modules.iter().rev().cloned().collect(), ..search };
    for (name, path, _) in cases()?.into_iter().filter(|c| c.0 == "net10-wks-basics-heap") {
        let base = |dump: &DumpFile| {
            dump.files.iter().filter(|m| m.path.ends_with("/lab.dll") && m.file_offset == 0).map(|m| m.range).collect::<Vec<_>>()
        };
        for headers in [true, false] {
            let mut dump = open(&path, &OpenOptions::default()).unwrap();
            for range in base(&dump) {
                let first = range.start.plus(4096);
                // Keep the first page and drop the metadata, or vice versa.
                dump.remove(if headers { AddrRange::new(first, range.end) } else { AddrRange::new(range.start, first) });
            }
            with_names_of(&dump, Some(reversed.clone()), |memory, names| {
                scan(memory, names).into_iter().for_each(|mt| drop(names.name(mt)));
                let lab = names.modules().seen().into_iter().find(|m| m.name.as_deref() == Some("lab.dll")).expect("no lab.dll");
                println!("{name}: headers {headers}: {:?}, refused {:?}", lab.origin, lab.rejected);
                assert!(matches!(&lab.origin, MetadataOrigin::File(f) if f.starts_with(needs_shared().unwrap())), "{:?}", lab.origin);
                assert_eq!(lab.rejected.len(), 1);
            });
        }
    }
    Ok(())
}

#[test]
fn corrupt_type_structures_never_panic_or_hang() -> Tested {
    let Some((_, path, _)) = cases()?.into_iter().find(|c| c.0 == "net9-wks-crash-mini") else { return Ok(()) };
    let plain = std::fs::read(&path).unwrap();
    let dump = open(&path, &OpenOptions::default()).unwrap();
    let found = with_names_of(&dump, None, scan);
    // The descriptor comes from the intact dump: with a corrupt one, self-checks would reject the overlay.
    let runtime = Dump::of(dump.clone(), &gcdump::OpenOptions::default()).runtime().unwrap();
    let mut random = common::random();
    let started = std::time::Instant::now();
    let mut qualities = BTreeMap::new();
    for _ in 0..100 {
        let mut bytes = plain.clone();
        for _ in 0..200 {
            // Overwrite a word in or near a method table with a method table, a type descriptor, or noise.
            let at = found[random(found.len())].element(random(20) as u64, 8);
            let word = match random(4) {
                0 => found[random(found.len())].0 | 2,
                1 => (random(1 << 31) as u64) << random(33),
                _ => found[random(found.len())].0,
            };
            if let Some(at) = common::file_offset(&dump, at) {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
        }
        let damaged = open_bytes(Bytes::Owned(bytes), &path, &OpenOptions::default()).unwrap();
        let memory = Arc::new(Memory::new(&damaged, Shape::LE64));
        let names = TypeNames::new(&memory, runtime.descriptor(), None, damaged.facts.os, None, &Limits::default()).unwrap();
        for mt in &found {
            let name = names.name(*mt);
            assert!(name.name.len() < 40_000);
            *qualities.entry(name.quality).or_insert(0) += 1;
        }
    }
    println!("{qualities:?} in {:?}", started.elapsed());
    Ok(())
}

/// Every valid method table near that of `System.String`.
fn scan(memory: &Memory, names: &TypeNames) -> Vec<Addr> {
    const AROUND: u64 = 1 << 20;
    let tables = names.method_tables();
    let string = tables.string.unwrap();
    let range = AddrRange::new(Addr(string.0.saturating_sub(AROUND)), string.plus(AROUND));
    let words = |(start, bytes): (Addr, &[u8])| (0..bytes.len() as u64 / 8).map(move |i| start.align_down(8).element(i, 8));
    memory.stretches(range).flat_map(words).filter(|a| tables.is_valid(*a) == Ok(true)).collect()
}

#[test]
fn every_method_table_in_loader_memory_has_a_name() -> Tested {
    let mut sets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, path, _) in cases()? {
        let small = name.ends_with("mini") || name.ends_with("triage");
        if !name.contains("basics") && !name.contains("probe") && !has_no_metadata(&name) && !small {
            continue;
        }
        let search = lab_files().ok().filter(|_| has_no_metadata(&name));
        // The lab of .NET 11 was rebuilt since.
        if has_no_metadata(&name) && (search.is_none() || name.starts_with("net11-")) {
            continue;
        }
        with_names(&path, search, |memory, names| {
            let found = scan(memory, names);
            // Names are read on several threads, as in a heap walk.
            std::thread::scope(|s| {
                for part in found.chunks(found.len().div_ceil(4).max(1)) {
                    s.spawn(move || part.iter().for_each(|mt| drop(names.name(*mt))));
                }
            });
            let named: Vec<_> = found.iter().map(|mt| names.name(*mt)).collect();
            let other: Vec<_> = named.iter().filter(|n| n.quality != NameQuality::Exact).collect();
            println!("{name}: {} method tables, {} without an exact name", found.len(), other.len());
            other.iter().take(2).for_each(|n| println!("    {n:?}"));
            // Mini and triage dumps do not have some types used as arguments of others.
            assert!(small || other.is_empty() && found.len() > 500);
            sets.insert(name, named.iter().map(|n| n.name.clone()).collect());
        });
    }
    // An 11-shaped dump gives the names of the dump it was made from.
    for (name, set) in &sets {
        if let Some(original) = name.strip_prefix("net11shape-").and_then(|n| sets.get(&format!("net10-{n}"))) {
            assert_eq!(set, original, "{name}");
        }
    }
    Ok(())
}

#[test]
fn types_of_the_runtimes_globals_have_names_without_metadata() {
    let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus/net10-wks-wait-gcore.dmp.zst");
    let (_, answer) = common::ask(&dump, &["stat"]);
    let names: Vec<&str> = answer["data"]["types"].as_array().unwrap().iter().map(|t| t["type"].as_str().unwrap()).collect();
    // The other types have neither metadata nor a global of the runtime.
    assert!(names.iter().any(|n| n.contains("!0x02")), "{names:?}");
    for known in
        ["System.String", "System.Object", "System.Object[]", "System.String[]", "System.Byte[]", "System.Char[]", "System.Int32[]"]
    {
        assert_eq!(names.iter().filter(|n| **n == known).count(), 1, "{known}: {names:?}");
    }
}

#[test]
fn free_blocks_have_a_type_that_is_found_by_name() {
    for name in [
        "net8-wks-basics-heap",
        "net10-wks-crash-heap",
        "aot9-wks-crash-kernel",
        "win-net10-wks-basics-full",
        "net11shape-wks-threads-heap",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus").join(format!("{name}.dmp.zst"));
        let (_, objects) = common::ask(&path, &["objects", "--type", "Free", "--count", "1"]);
        let (_, found) = common::ask(&path, &["type", "Free"]);
        let layout = &found["data"]["layout"];
        let expected = (&objects["data"]["objects"][0]["method_table"], "Free");
        assert_eq!((&layout["method_table"], layout["name"].as_str().unwrap()), expected, "{name}");
    }
}
