//! Properties of the stacks of every dump, which need no other tool to check.

use crate::harness::Tested;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::{ask_with, folders, has_heap, plain};
use crate::common::{ask, cases, each, known_dumps, sample, walker};
use gcdump::analysis::{StackCoverage, StacksReport};
use gcdump::analysis::{StacksQuery, stacks, where_is};
use gcdump::internals::base::{Index, Silent};
use gcdump::internals::gc::ObjectStarts;
use gcdump::model::StackFrameKind;
use gcdump::{Addr, Heap, OpenOptions};
use serde_json::Value;

/// The dumps of the repository, and all other available ones, with the folders of their module files.
fn every_heap() -> Vec<(String, PathBuf, Vec<PathBuf>)> {
    if let Ok((dumps, _)) = known_dumps(|_| true) {
        return dumps.into_iter().filter(has_heap).map(|d| (d.name, d.path, folders(&d.runtime))).collect();
    }
    corpus().into_iter().filter(|(name, _)| !name.contains("mini") && !name.contains("triage")).map(|(n, p)| (n, p, Vec::new())).collect()
}

/// The dumps of the repository whose runtime is supported.
fn corpus() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus");
    let mut out: Vec<(String, PathBuf)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter_map(|p| Some((p.file_name()?.to_str()?.strip_suffix(".dmp.zst")?.to_string(), p)))
        .filter(|(_, path)| crate::corpus::has_stacks(path))
        .collect();
    out.sort();
    out
}

fn open(path: &Path, folders: &[PathBuf]) -> Heap {
    let options = folders.iter().fold(OpenOptions::new(), OpenOptions::modules);
    options.open(path).unwrap().runtime().unwrap().heap().unwrap()
}

fn report(heap: &Heap) -> StacksReport {
    stacks(heap.runtime(), &StacksQuery { roots: true, ..StacksQuery::default() }).unwrap().data
}

#[derive(Default)]
struct Found {
    references: u64,
    frames: u64,
    wrong: Vec<String>,
}

fn check((name, path, folders): &(String, PathBuf, Vec<PathBuf>)) -> Found {
    let heap = open(path, folders);
    let (walker, mut found) = (walker(heap.runtime()), Found::default());
    let starts = ObjectStarts::build(&walker, &Silent).0.data;
    let mut hint = Index::from_u32(0);
    let mut seen = BTreeSet::new();
    for thread in report(&heap).rows.threads() {
        for frame in &thread.frames {
            for root in frame.roots.as_deref().unwrap_or_default().iter().filter(|r| r.precise && !r.interior) {
                let Some(object) = root.object else { continue };
                found.references += 1;
                if !starts.is_start(object, &mut hint) {
                    found.wrong.push(format!("{name}: {object} in {} of {:?} is not an object", root.location, frame.method));
                }
            }
            let (StackFrameKind::Managed, Some(ip)) = (frame.kind, frame.ip) else { continue };
            if !seen.insert(ip) {
                continue;
            }
            found.frames += 1;
            let at = where_is(&heap, ip).data;
            let Some(code) = &at.code else {
                found.wrong.push(format!("{name}: {ip} of {:?} is {:?}", frame.method, at.kind));
                continue;
            };
            // `where` shows method names for people, `stacks` those of the runtime.
            let names = [code.method.as_deref(), frame.method.as_deref()].map(|name| name.map(plain));
            let same = names[0] == names[1]
                && (Some(code.method_desc), Some(code.code), code.module.as_deref())
                    == (frame.method_desc, frame.code, frame.module.as_deref());
            let within = at.range.is_some_and(|r| r.start <= ip && ip < r.end);
            if !same || !within || frame.offset.map(|o| code.start.plus(o)) != Some(ip) {
                found.wrong.push(format!("{name}: {at:?} is not {frame:?}"));
            }
        }
    }
    found
}

#[test]
fn precise_references_are_objects_and_frames_are_in_their_methods() -> Tested {
    // Dumps of a scenario differ little by kind and version.
    let dumps: Vec<_> = every_heap().into_iter().step_by(cases(30, 2)).collect();
    let (mut references, mut frames, mut wrong) = (0, 0, Vec::new());
    for found in each(&dumps, check) {
        references += found.references;
        frames += found.frames;
        wrong.extend(found.wrong);
    }
    println!("{references} references are objects, {frames} frames are in their methods");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n"));
    assert!(references > cases(100, 1000) as u64 && frames > cases(30, 300) as u64);
    Ok(())
}

/// Returns `data` of an answer.
fn data(path: &Path, folders: &[PathBuf], command: &[&str]) -> Value {
    ask_with(path, folders, command).1["data"].clone()
}

/// Removes the method that runtime frames are about to call, which the descriptor of .NET 11 does not describe.
fn without_callees(data: &mut Value) {
    let frames = |list: &str, of: &str| -> Vec<String> {
        let rows = data[list].as_array().map_or(0, Vec::len);
        let inner = |i: usize| data[list][i][of].as_array().map_or(0, Vec::len);
        (0..rows).flat_map(|i| (0..inner(i)).map(move |f| format!("/{list}/{i}/{of}/{f}"))).collect()
    };
    let merged = data["merged"].as_array().map_or(0, Vec::len);
    for at in frames("threads", "frames").into_iter().chain((0..merged).map(|i| format!("/merged/{i}"))) {
        let frame = data.pointer_mut(&at).unwrap();
        let label = frame["frame"].as_str().filter(|f| f.starts_with('[')).map(ToString::to_string);
        let import = frame["frame_type"] == "InlinedCallFrame" || label.as_ref().is_some_and(|f| f.starts_with("[InlinedCallFrame]"));
        if !import && (frame["kind"] == "runtime" || label.is_some()) {
            if let Some((of, _)) = label.as_ref().and_then(|label| label.split_once("] ")) {
                frame["frame"] = format!("{of}]").into();
            }
            for key in ["method", "display", "method_desc", "module"] {
                frame.get_mut(key).map(Value::take);
            }
        }
    }
}

/// Returns the first difference of two answers.
fn first_difference(at: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) if x.keys().eq(y.keys()) => {
            x.iter().find_map(|(key, value)| first_difference(&format!("{at}.{key}"), value, &y[key]))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            x.iter().zip(y).enumerate().find_map(|(i, (a, b))| first_difference(&format!("{at}[{i}]"), a, b))
        }
        _ => (a != b).then(|| format!("{at}: {a} and {b}")),
    }
}

/// The memory of .NET 10 has tiers in other places than that of .NET 11, and the descriptor has none.
fn without_tiers(answer: &mut Value) {
    let threads = answer.get_mut("threads").and_then(Value::as_array_mut).into_iter().flatten();
    let frames = threads.filter_map(|t| t.get_mut("frames").and_then(Value::as_array_mut)).flatten();
    frames.filter_map(|frame| frame.get_mut("tier")).for_each(|tier| *tier = Value::Null);
}

/// The shaped descriptors do not describe the list of references that native code protects.
fn without_protected(answer: &mut Value) {
    let threads = answer.get_mut("threads").and_then(Value::as_array_mut).into_iter().flatten();
    let frames = threads.filter_map(|t| t.get_mut("frames").and_then(Value::as_array_mut));
    frames.for_each(|frames| frames.retain(|frame| frame["frame_type"] != "GCFrame"));
    // In a shaped dump, the words that such frames protect are conservative roots.
    let is_other = |root: &Value| {
        let conservative = root["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag == "conservative"));
        !conservative && !root["label"].as_str().unwrap_or_default().starts_with("GCFrame ")
    };
    if let Some(roots) = answer.get_mut("roots").and_then(Value::as_array_mut) {
        roots.retain(is_other);
        ["counts", "total", "coverage"].iter().for_each(|key| answer[*key] = Value::Null);
    }
}

/// The shaped descriptors do not describe reference counts.
fn without_ref_counts(answer: &mut Value) {
    let rows = |list: &mut Value| list.as_array_mut().map_or_else(Vec::new, std::mem::take);
    let coverage = rows(&mut answer["coverage"]).into_iter().filter(|c| c["kind"] != "ref-counted-handle").collect();
    let roots = rows(&mut answer["roots"]).into_iter().map(|mut root| {
        if root["kind"] == "ref-counted-handle" {
            root["flags"] = Value::Null;
        }
        root
    });
    let roots = roots.collect();
    answer["coverage"] = coverage;
    answer["roots"] = roots;
}

#[test]
fn eleven_shaped_dumps_equal_those_that_they_were_made_of() -> Tested {
    let (dumps, _) = known_dumps(|row| row["runtime"] == "net11shape" || row["runtime"] == "net10")?;
    let mut frames = 0;
    for dump in dumps.iter().filter(|d| d.runtime == "net11shape") {
        let source = dump.name.replace("net11shape", "net10");
        let Some(source) = dumps.iter().find(|d| d.name == source) else { continue };
        for folders in [folders("net10"), Vec::new()] {
            for command in [&["stacks", "--roots"][..], &["stacks", "--merge"], &["roots"]] {
                let [mut shaped, mut original] = [dump, source].map(|d| data(&d.path, &folders, command));
                without_callees(&mut original);
                without_tiers(&mut original);
                if command == ["roots"] {
                    [&mut shaped, &mut original].into_iter().for_each(without_ref_counts);
                }
                [&mut shaped, &mut original].into_iter().for_each(without_protected);
                let difference = || first_difference("", &shaped, &original);
                assert!(shaped == original, "{} {command:?}: {:?}", dump.name, difference());
                frames += shaped["threads"].as_array().map_or(0, |t| t.iter().map(|t| t["frames"].as_array().unwrap().len()).sum());
            }
        }
    }
    println!("{frames} frames are equal");
    assert!(dumps.is_empty() || frames > 100);
    Ok(())
}

#[test]
fn neither_threads_nor_container_change_the_answer() {
    let mut frames = 0;
    let corpus = corpus();
    let some = corpus.iter().filter(|(name, _)| ["threads", "stacks", "full"].iter().any(|part| name.contains(part)));
    for (name, packed) in sample(some, 5) {
        let mut whole = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        zstd::stream::copy_decode(File::open(packed).unwrap(), &mut whole).unwrap();
        for command in [&["stacks", "--roots"][..], &["roots"], &["stacks", "--merge"]] {
            let of = |path: &Path, threads: &str| {
                let (exit, answer) = ask(path, &[command, &["--threads", threads]].concat());
                (exit.code(), answer["data"].clone(), answer["warnings"].clone())
            };
            let one = of(whole.path(), "1");
            assert_eq!(one, of(whole.path(), "4"), "{name} {command:?}: threads");
            assert_eq!(one, of(packed, "2"), "{name} {command:?}: zstd");
            frames += one.1["threads"].as_array().map_or(0, |t| t.iter().map(|t| t["frames"].as_array().unwrap().len()).sum());
        }
    }
    assert!(frames > cases(20, 500), "{frames} frames");
}

#[test]
fn frames_lie_in_order_on_their_stacks() {
    let mut frames = 0;
    for (name, path) in sample(corpus(), 5) {
        let runtime = gcdump::open(path).unwrap().runtime();
        let Ok(runtime) = runtime else { continue };
        let Ok(answer) = stacks(&runtime, &StacksQuery { roots: true, ..StacksQuery::default() }) else { continue };
        for thread in answer.data.rows.threads() {
            let managed: Vec<Addr> = thread.frames.iter().filter(|f| f.kind == StackFrameKind::Managed).map(|f| f.sp).collect();
            let mut explicit: Vec<Addr> = thread.frames.iter().filter_map(|f| f.address).collect();
            explicit.dedup();
            assert!(managed.is_sorted_by(|a, b| a < b), "{name}: {managed:?}");
            assert!(explicit.is_sorted_by(|a, b| a < b), "{name}: {explicit:?}");
            assert_eq!(thread.gaps.is_empty(), thread.coverage == StackCoverage::Precise, "{name}");
            frames += managed.len();
        }
    }
    assert!(frames > cases(50, 500), "{frames} frames");
}
