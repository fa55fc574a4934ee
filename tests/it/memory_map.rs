//! `memory`: each byte of the address space is counted once, and the result agrees with other commands and records.

use crate::harness::Tested;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gcdump::cli::Exit;
use gcdump::internals::base::{Addr, AddrRange};
use gcdump::internals::dump::{self, DumpFile};
use serde_json::Value;

use crate::common::{Known, ask, bytes_of, each, every_dump, known_dumps, number, own_dump, run, shared};
use crate::verify::patient::list;

const ALL: &[&str] = &["memory", "--ranges", "--top", "0"];

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

/// One dump of each kind, runtime and GC.
fn some() -> Vec<PathBuf> {
    let names = [
        "aot9-wks-crash-kernel",
        "net10-datas-basics-heap",
        "net10-segsvr-basics-heap",
        "net10-svr-oom-heap",
        "net10-wks-basics-full",
        "net10-wks-basics-mini",
        "net10-wks-basics-triage",
        "net10-wks-stacks-gcore",
        "net10-wks-wait-gcore",
        "net10-wks-wait-kernel",
        "net11shape-wks-basics-full",
        "net8-seg-basics-heap",
        "net8-wks-basics-heap",
        "net9-wks-basics-heap",
        "win-net10-wks-basics-full",
        "win-net10-wks-basics-mini",
    ];
    names.into_iter().map(corpus).filter(|p| p.is_file()).chain([own_dump()]).collect()
}

/// The dumps of the repository, and the unpacked ones if available.
fn every() -> Vec<PathBuf> {
    some().into_iter().chain(every_dump(|_| true).unwrap_or_default().0.into_iter().map(|d| d.path)).collect()
}

fn bytes(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key} of {row}"))
}

fn sum<'v>(rows: impl IntoIterator<Item = &'v Value>, key: &str) -> u64 {
    rows.into_iter().map(|r| bytes(r, key)).sum()
}

fn kind<'v>(data: &'v Value, name: &str) -> Vec<&'v Value> {
    list(data, "kinds").iter().filter(|k| k["kind"] == name).collect()
}

fn range(row: &Value) -> AddrRange {
    AddrRange::new(Addr(number(&row["start"])), Addr(number(&row["end"])))
}

/// Counts the bytes of the union of the container's ranges in another way: between page boundaries.
fn mapped(file: &DumpFile) -> u64 {
    let mut all: Vec<AddrRange> = file.regions.iter().chain(&file.reserved).map(|r| r.range).collect();
    all.extend(file.ranges.iter().map(|r| AddrRange::new(r.start, Addr(r.start.0 + r.len))));
    all.extend(file.files.iter().map(|f| f.range));
    if file.files.is_empty() {
        all.extend(file.modules.iter().map(|m| AddrRange::new(m.base, Addr(m.base.0 + m.size))));
    }
    all.sort();
    let (mut sum, mut end) = (0, 0);
    for r in all {
        sum += r.end.0.saturating_sub(r.start.0.max(end));
        end = end.max(r.end.0);
    }
    sum
}

#[test]
fn each_byte_is_counted_once() {
    let checked = each(&every(), |path| {
        let (_, answer) = ask(path, ALL);
        let (name, data) = (path.display(), &answer["data"]);
        let (kinds, ranges, totals) = (list(data, "kinds"), list(data, "ranges"), &data["totals"]);
        for key in ["ranges", "bytes", "accessible_bytes", "captured_bytes", "unlisted_bytes"] {
            assert_eq!(sum(kinds, key), bytes(totals, key), "{name}: {key}");
        }
        assert_eq!(ranges.len() as u64, bytes(totals, "ranges"), "{name}");
        assert!(ranges.windows(2).all(|w| range(&w[0]).end <= range(&w[1]).start), "{name}");
        let mut by_kind: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for r in ranges {
            assert_eq!(bytes(r, "bytes"), range(r).len(), "{name}: {r}");
            let sums = by_kind.entry(format!("{} {} {}", r["kind"], r["generation"], r["loader_heap"])).or_default();
            sums.0 += bytes(r, "bytes");
            sums.1 += if r["accessible"] == true { bytes(r, "bytes") } else { 0 };
            sums.2 += bytes(r, "captured_bytes");
        }
        for k in kinds {
            let own = by_kind.remove(&format!("{} {} {}", k["kind"], k["generation"], k["loader_heap"])).unwrap_or_default();
            assert_eq!(own, (bytes(k, "bytes"), bytes(k, "accessible_bytes"), bytes(k, "captured_bytes")), "{name}: {k}");
        }
        assert!(by_kind.is_empty(), "{name}: {by_kind:?}");
        let unexplained = ["anonymous", "shared", "reserved", "unknown"];
        let rest = ranges.iter().filter(|r| unexplained.iter().any(|k| r["kind"] == *k)).count();
        assert_eq!(list(data, "unexplained").len(), rest, "{name}");
        let file = dump::open(path, &dump::OpenOptions::default()).unwrap();
        assert_eq!(bytes(totals, "bytes"), mapped(&file), "{name}");
        assert_eq!(bytes(totals, "captured_bytes"), file.facts.captured_bytes, "{name}");
        // The whole mapped stack of each thread is shown as a stack.
        let stacks: Vec<AddrRange> = ranges.iter().filter(|r| r["kind"] == "stack").map(range).collect();
        for at in file.threads.iter().filter_map(|t| t.stack_pointer) {
            let reported = ranges.iter().any(|r| range(r).contains(at));
            assert_eq!(stacks.iter().any(|s| s.contains(at)), reported, "{name}: {at}");
        }
        stacks.len()
    });
    assert!(checked.iter().sum::<usize>() > 50);
}

#[test]
fn the_heap_equals_that_of_the_gc() {
    let reported = each(&every(), |path| {
        let (_, answer) = ask(path, &["memory"]);
        let ran = ask_heap(path)?;
        let kinds = kind(&answer["data"], "gc-heap");
        let all = sum(kinds.iter().copied(), "bytes") + sum(kinds.iter().copied(), "unlisted_bytes");
        assert_eq!(all, bytes(&ran["totals"], "committed"), "{}", path.display());
        for g in list(&ran, "heaps").iter().flat_map(|h| list(h, "generations")) {
            let own = kinds.iter().filter(|k| k["generation"] == g["generation"]).map(|k| bytes(k, "bytes") + bytes(k, "unlisted_bytes"));
            assert!(own.sum::<u64>() >= bytes(g, "committed"), "{}: {g}", path.display());
        }
        Some(all)
    });
    assert!(reported.iter().flatten().filter(|n| **n > 0).count() >= 10);
}

/// Method tables are in loader heaps. `stat` finds method tables independently of the lists of blocks.
#[test]
fn method_tables_are_in_loader_heaps() -> Tested {
    let whole = |d: &Known| ["heap", "full", "gcore", "kernel"].contains(&d.kind.as_str());
    let (known, _) = known_dumps(|_| true)?;
    let dumps: Vec<PathBuf> = known.into_iter().filter(whole).map(|d| d.path).collect();
    let found = each(&dumps, |path| {
        let name = path.display();
        let (_, answer) = ask(path, ALL);
        let high = |r: &&Value| r["kind"] == "loader-heap" && r["loader_heap"] == "high-frequency";
        let blocks: Vec<AddrRange> = list(&answer["data"], "ranges").iter().filter(high).map(range).collect();
        let (_, stat) = ask(path, &["stat", "--top", "0"]);
        let types: Vec<&Value> = list(&stat["data"], "types").iter().collect();
        for t in &types {
            let at = Addr(number(&t["method_table"]));
            assert!(blocks.iter().any(|b| b.contains(at)), "{name}: {t}");
        }
        // Precodes are where the map of code has stubs.
        let stubs = list(&answer["data"], "kinds").iter().filter(|k| k["kind"] == "stub-heap");
        assert!(stubs.clone().any(|k| k["loader_heap"].is_string()) && !types.is_empty(), "{name}: {:?}", stubs.collect::<Vec<_>>());
        (blocks.iter().map(AddrRange::len).sum::<u64>(), types.len())
    });
    println!(
        "{} dumps, high-frequency heaps of {:?} bytes",
        found.len(),
        found.iter().map(|f| f.0).min().zip(found.iter().map(|f| f.0).max())
    );
    assert!(found.is_empty() || found.len() > 50);
    Ok(())
}

/// .NET 8 has no descriptor: the process refutes an overlay with wrong offsets of heaps or blocks, and no range is claimed.
#[test]
fn a_wrong_layout_of_loader_heaps_is_refuted() -> Tested {
    let right = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/contract/overlay/data/net8.0-linux-x64.json");
    let (text, folder) = (std::fs::read_to_string(right).unwrap(), tempfile::tempdir().unwrap());
    let path = folder.path().join("overlay.json");
    let (dumps, _) = every_dump(|row| row["name"] == "net8-wks-basics-heap")?;
    for dump in dumps {
        let ask = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let (_, answer) = ask(&dump.path, &["memory", "--overlay", path.to_str().unwrap()]);
            let heaps = kind(&answer["data"], "loader-heap").len();
            let reported = list(&answer, "warnings")
                .iter()
                .filter_map(|w| w["message"].as_str())
                .any(|m| m.contains("loader heaps cannot be identified"));
            (heaps, reported)
        };
        let (heaps, reported) = ask(&text);
        assert!(heaps >= 3 && !reported, "{heaps} {reported}");
        for (good, bad) in [
            ("\"HighFrequencyHeap\": 920", "\"HighFrequencyHeap\": 928"),
            ("\"FirstBlock\": 8", "\"FirstBlock\": 16"),
            ("\"VirtualAddress\": 8", "\"VirtualAddress\": 0"),
            ("\"VirtualSize\": 16", "\"VirtualSize\": 8"),
        ] {
            assert!(text.contains(good), "{good}");
            assert_eq!(ask(&text.replace(good, bad)), (0, true), "{bad}");
        }
    }
    Ok(())
}

/// Returns the answer of `heap`, `None` if it is refused.
fn ask_heap(path: &Path) -> Option<Value> {
    let ran = run(&["heap", "--json", "--no-local-files", path.to_str().unwrap()]);
    (!ran.out.is_empty()).then(|| ran.json()["data"].take())
}

/// The program recorded the numbers of its GC right before the dump, without frozen segments.
#[test]
fn the_heap_is_what_the_program_recorded() -> Tested {
    let (dumps, _) =
        every_dump(|row| row["scenario"] == "basics" && row["gc"] == "wks" && row["kind"] != "mini" && row["kind"] != "triage")?;
    let committed = |d: &Known| d.truth.as_ref().and_then(|t| t["gc"]["committed"].as_u64());
    for (dump, committed) in dumps.iter().filter_map(|d| Some((d, committed(d)?))) {
        let (_, answer) = ask(&dump.path, &["memory"]);
        let kinds = kind(&answer["data"], "gc-heap");
        let free = kind(&answer["data"], "gc-free");
        let own = kinds.into_iter().filter(|k| k["generation"] != "frozen").chain(free);
        let all: u64 = own.map(|k| bytes(k, "bytes") + bytes(k, "unlisted_bytes")).sum();
        assert_eq!(all, committed, "{}", dump.name);
        // The program has compiled methods.
        for code in ["code-heap", "stub-heap"] {
            let known = kind(&answer["data"], code).into_iter().map(|k| bytes(k, "bytes") + bytes(k, "unlisted_bytes"));
            assert!(known.sum::<u64>() >= 1 << 17, "{}: {code}", dump.name);
        }
    }
    Ok(())
}

#[test]
fn each_kind_of_dump_shows_how_much_it_lists() {
    let check = |path: &Path, listing: &str| {
        let (exit, answer) = ask(path, &["memory"]);
        let (name, messages) = (path.display(), list(&answer, "warnings").iter().map(|w| w["message"].as_str().unwrap()));
        assert_eq!(answer["data"]["listing"], listing, "{name}");
        let messages: Vec<&str> = messages.collect();
        assert_eq!(messages.iter().any(|m| m.contains("lists only captured memory")), listing == "captured", "{name}: {messages:?}");
        (exit, messages.join("\n"))
    };
    for (name, listing) in [
        ("net10-wks-wait-kernel", "all"),
        ("aot9-wks-crash-kernel", "all"),
        ("net10-wks-wait-gcore", "accessible"),
        ("net10-wks-basics-full", "accessible"),
        ("net10-datas-basics-heap", "captured"),
        ("net10-wks-basics-mini", "captured"),
        ("net8-wks-crash-mini", "captured"),
    ] {
        check(&corpus(name), listing);
    }
    for dump in every_dump(|_| true).unwrap_or_default().0 {
        let windows = dump.name.starts_with("win-");
        let listing = match dump.kind.as_str() {
            "kernel" => "all",
            "full" | "gcore" if !windows => "accessible",
            "heap" | "mini" | "triage" if !windows => "captured",
            // Dumps of the runtime's own createdump have no memory info list.
            _ => continue,
        };
        let (exit, messages) = check(&dump.path, listing);
        assert_eq!(exit, if listing == "captured" { Exit::Partial } else { Exit::Ok }, "{}: {messages}", dump.name);
    }
}

/// The kernel and gdb wrote the memory of one program: the kernel lists reserved memory, gdb marks it as readable.
#[test]
fn two_writers_give_the_same_answer() {
    let [kernel, gdb] = ["kernel", "gcore"].map(|writer| ask(&corpus(&format!("net10-wks-wait-{writer}")), &["memory"]).1);
    for name in ["stack", "module", "anonymous", "gc-heap", "loader-heap"] {
        let [a, b] = [&kernel, &gdb].map(|answer| sum(kind(&answer["data"], name), "accessible_bytes"));
        assert!(a > 0 && a.abs_diff(b) <= a / 4, "{name}: {a} and {b}");
    }
    let share = kernel["data"]["totals"]["explained_share"].as_f64().unwrap();
    assert!(share > 0.9, "{share}");
    assert!(sum(kind(&kernel["data"], "gc-reserved"), "bytes") > 1 << 32);
}

#[test]
fn windows_lists_reserves_and_types() {
    let (_, answer) = ask(&corpus("win-net10-wks-crash-full"), ALL);
    let data = &answer["data"];
    assert_eq!(data["listing"], "all");
    assert!(sum(kind(data, "gc-reserved"), "bytes") > 1 << 28);
    assert_eq!(sum(kind(data, "gc-reserved"), "accessible_bytes"), 0);
    assert!(kind(data, "unknown").is_empty() && !kind(data, "shared").is_empty());
    // Each stack is one allocation: reserved memory, a guard page, and the part in use.
    let stacks: Vec<&Value> = list(data, "ranges").iter().filter(|r| r["kind"] == "stack").collect();
    assert!(stacks.iter().any(|r| r["accessible"] == false) && stacks.iter().any(|r| r["accessible"] == true));
}

#[test]
fn a_dump_without_a_runtime_lists_the_ranges_of_its_container() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("native.core");
    // A page of memory, and a page that was not captured.
    let mut core = Vec::new();
    core.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    core.extend([4u16, 62].iter().flat_map(|n| n.to_le_bytes()));
    core.extend(1u32.to_le_bytes());
    core.extend([0u64, 64, 0].iter().flat_map(|n| n.to_le_bytes()));
    core.extend(0u32.to_le_bytes());
    core.extend([64u16, 56, 2, 64, 0, 0].iter().flat_map(|n| n.to_le_bytes()));
    for (flags, at, captured) in [(6u32, 0x1000_0000u64, 4096u64), (0, 0x2000_0000, 0)] {
        core.extend([1, flags].iter().flat_map(|n| n.to_le_bytes()));
        core.extend([4096, at, 0, captured, 4096, 4096].iter().flat_map(|n| n.to_le_bytes()));
    }
    core.resize(8192, 0);
    std::fs::write(&path, core).unwrap();
    let (exit, answer) = ask(&path, ALL);
    let data = &answer["data"];
    assert_eq!((exit, &data["complete"]), (Exit::NoRuntime, &false.into()));
    assert!(data["runtime_error"].as_str().unwrap().contains("no .NET runtime"), "{data}");
    let rows: Vec<(&str, u64, &str)> =
        list(data, "ranges").iter().map(|r| (r["kind"].as_str().unwrap(), bytes(r, "bytes"), r["permissions"].as_str().unwrap())).collect();
    assert_eq!(rows, [("unknown", 4096, "rw-"), ("reserved", 4096, "---")]);
}

/// `where` agrees with `memory`.
#[test]
fn places_agree() {
    let path = corpus("net10-wks-basics-full");
    let (_, answer) = ask(&path, ALL);
    let heap = gcdump::open(&path).unwrap().runtime().unwrap().heap().unwrap();
    let mut checked = BTreeMap::new();
    for r in list(&answer["data"], "ranges") {
        let expected: &[&str] = match r["kind"].as_str().unwrap() {
            "gc-heap" => &["object", "free", "gap", "segment-unused", "allocation-context", "static"],
            "gc-bookkeeping" => &["gc", "segment", "card-table", "mark-array", "gc-heap"],
            "handle-table" => &["gc", "handle"],
            "module" if r["name"].as_str().is_some_and(|n| n.ends_with(".so")) => &["module", "code", "method-table", "static"],
            _ => continue,
        };
        // Regions begin with a header.
        let at = Addr(number(&r["start"]) + 0x40);
        let found = gcdump::analysis::where_is(&heap, at).data;
        assert!(expected.contains(&found.kind.name()), "{at}: {found:?}, but {r}");
        *checked.entry(r["kind"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert_eq!(checked.len(), 4, "{checked:?}");
}

/// A copy by `trim` has the same answer for everything that it has; it has less of the memory.
#[test]
fn a_trimmed_copy_gives_the_same_answer() -> Tested {
    let folder = tempfile::tempdir().unwrap();
    let (dumps, _) =
        every_dump(|row| ["net10-wks-basics-full", "net10-wks-wait-kernel", "net8-wks-basics-heap"].iter().any(|n| row["name"] == *n))?;
    for dump in dumps {
        let copy = folder.path().join("copy.dmp");
        let ran = run(&["trim", "--force", dump.path.to_str().unwrap(), copy.to_str().unwrap()]);
        assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
        let [whole, copy] = [&dump.path, &copy].map(|path| {
            let (exit, mut answer) = ask(path, ALL);
            let mut rows: Vec<Value> = ["kinds", "ranges", "unexplained"].iter().flat_map(|l| list(&answer["data"], l).to_vec()).collect();
            rows.push(answer["data"]["totals"].take());
            for row in rows.iter_mut().map(|r| r.as_object_mut().unwrap()) {
                ["captured_bytes", "zero_bytes"].iter().for_each(|key| drop(row.remove(*key)));
            }
            (exit, rows)
        });
        // The copy does not have malloc's blocks, and says so.
        assert!(copy.0 == Exit::Partial || copy.0 == whole.0, "{}", dump.name);
        assert_eq!(whole.1, copy.1, "{}", dump.name);
    }
    Ok(())
}

/// Changes the path of mapped files in a dump; the new path has the same length.
fn renamed(name: &str, from: &str, to: &str) -> tempfile::NamedTempFile {
    let mut bytes = bytes_of(name).unwrap();
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> = memchr::memmem::find_iter(&bytes, from.as_bytes()).collect();
    assert!(!places.is_empty(), "{from}");
    places.iter().for_each(|at| bytes[*at..*at + to.len()].copy_from_slice(to.as_bytes()));
    let copy = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    std::fs::write(copy.path(), bytes).unwrap();
    copy
}

/// A mapped file is an image if its headers, code, the runtime's list or its name show that; others are files.
#[test]
fn mapped_files_are_images_only_with_evidence() {
    let of = |name: &str, from: &str, to: &str| {
        let copy = renamed(name, from, to);
        let (_, answer) = ask(copy.path(), ALL);
        let ranges = list(&answer["data"], "ranges");
        let rows: Vec<Value> = ranges.iter().filter(|r| r["name"] == to).cloned().collect();
        let modules = ask(copy.path(), &["info"]).1["data"]["modules"].clone();
        let kinds: BTreeMap<String, u64> = rows.iter().map(|r| (r["kind"].as_str().unwrap().to_string(), bytes(r, "bytes"))).collect();
        (kinds, rows.first().map(|r| r["start"].clone()).unwrap_or_default(), modules, copy)
    };
    let only = |kind: &str| -> Vec<String> { vec![kind.into()] };
    let kinds = |found: &BTreeMap<String, u64>| -> Vec<String> { found.keys().cloned().collect() };
    // createdump captured nothing of it, and the runtime does not list it yet.
    let own = "net10-wks-basics-heap";
    let (found, _, before, _) = of(own, "/app/net10/System.Net.Primitives.dll", "/app/net10/System.Net.Primitivez.dll");
    assert_eq!(kinds(&found), only("module"));
    let (found, start, after, copy) = of(own, "/app/net10/System.Net.Primitives.dll", "/app/net10/System.Net.Primitives.bin");
    assert_eq!((kinds(&found), found["file"]), (only("file"), 217_088));
    assert_eq!(after.as_u64().unwrap() + 1, before.as_u64().unwrap());
    let (_, place) = ask(copy.path(), &["where", start.as_str().unwrap()]);
    assert_eq!(place["data"]["kind"], "not-captured", "{place}");
    // Headers, code, the runtime's list.
    for (name, from, to) in [
        (own, "/app/net10/libclrjit.so", "/app/net10/libclrjit.xx"),
        ("net10-wks-stacks-gcore", "/app/net10/libclrjit.so", "/app/net10/libclrjit.xx"),
    ] {
        let (found, ..) = of(name, from, to);
        assert_eq!(kinds(&found), only("module"), "{name}: {to}");
    }
    // The runtime has its own copy of the path for listed modules.
    let (from, to) = ("/app/net10/Microsoft.Win32.Primitives.dll", "/app/net10/Microsoft.Win32.Primitives.bin");
    let (found, _, modules, _) = of("net10-wks-wait-kernel", from, to);
    assert_eq!((found.get("file"), modules), (None, of("net10-wks-wait-kernel", from, from).2));
    if let Some(shared) = shared() {
        let (_, answer) = ask(&shared.join("../cases/mmap10.dmp.zst"), ALL);
        let mapped = list(&answer["data"], "ranges").iter().find(|r| r["name"].as_str().is_some_and(|n| n.ends_with("/big.bin"))).cloned();
        assert_eq!(mapped.as_ref().map(|r| (r["kind"].as_str(), bytes(r, "bytes"))), Some((Some("file"), 52_428_800)), "{mapped:?}");
    } else {
        println!("skipped: the shared dumps are not at hand");
    }
}
