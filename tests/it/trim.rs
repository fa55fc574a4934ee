//! `trim`: copies are small and give the same answers; with `--redact` they have no text of the program.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::common::{cases, each, every_dump, full, known_dumps, lab, own_unpacked, run, sample, shared, unpacked, walker};
use crate::harness::Tested;
use crate::support::{Shape, Spec};
use gcdump::Dump;
use gcdump::analysis::{Reads, Surveys};
use gcdump::cli::Exit;
use gcdump::internals::base::{Addr, AddrRange, Silent};
use gcdump::internals::dump::{Bytes, OpenOptions, lay_out, open_bytes};
use memchr::memmem;
use serde_json::{Value, json};

/// Fields that describe the file itself and not the process: of the envelope's `dump` and of `info`.
const OF_THE_FILE: [&str; 8] = ["path", "compression", "file_bytes", "captured_bytes", "ranges", "kind", "kind_evidence", "next"];

/// The commands to compare, and whether their answers are free of strings and array elements.
const ASKED: &[(&[&str], bool)] = &[
    (&["info"], true),
    (&["heap", "--detail"], true),
    (&["segments", "--walk", "--free"], true),
    (&["handles"], true),
    (&["handles", "--by", "generation"], true),
    (&["oom"], true),
    (&["stat"], true),
    (&["stat", "--by", "assembly"], true),
    (&["objects", "--refs"], true),
    (&["roots", "--weak"], true),
    (&["finalizers", "--objects"], true),
    (&["fragmentation", "--top", "0", "--segments"], true),
    (&["unreachable", "--objects", "--top", "5"], true),
    (&["simulate", "collect"], true),
    (&["bridge"], true),
    (&["contracts"], true),
    (&["verify"], true),
    (&["type", "*"], true),
    (&["retained", "--tree"], true),
    (&["retained", "--suspects"], true),
    (&["retained", "--top", "50"], true),
    (&["stacks", "--roots"], true),
    (&["strings", "--min-count", "1"], false),
    (&["threads"], false),
    (&["exceptions"], false),
    (&["async", "--tasks"], false),
    (&["statics", "--all"], false),
    (&["statics", "--thread-statics"], false),
    (&["stacks", "--arguments"], false),
    (&["locks", "--all"], false),
    (&["pool"], false),
    (&["timers"], false),
    (&["requests"], false),
];

/// The answer without fields that describe the file.
fn asked(dump: &Path, command: &[&str]) -> (Exit, Value) {
    let mut args = command.to_vec();
    args.extend(["--json", "--no-local-files", dump.to_str().unwrap()]);
    let ran = run(&args);
    if ran.out.is_empty() {
        return (ran.exit, ran.err.replace(dump.to_str().unwrap(), "DUMP").into());
    }
    // Suggested commands end with the path.
    let mut answer: Value = serde_json::from_str(&ran.out.replace(dump.to_str().unwrap(), "DUMP")).unwrap();
    for part in ["dump", "data"] {
        if part == "dump" || command[0] == "info" {
            let part = answer[part].as_object_mut().unwrap();
            OF_THE_FILE.iter().for_each(|key| drop(part.remove(*key)));
        }
    }
    (ran.exit, answer)
}

fn trim(from: &Path, to: &Path, more: &[&str]) -> Value {
    let args = [&["trim", from.to_str().unwrap(), to.to_str().unwrap(), "--json", "--no-local-files"], more].concat();
    let ran = run(&args);
    assert_eq!(ran.exit, Exit::Ok, "{args:?}: {}", ran.err);
    ran.json()["data"].clone()
}

/// A deterministic sample of objects from the whole heap.
fn some_objects(dump: &Path) -> Vec<String> {
    let (_, answer) = asked(dump, &["objects"]);
    let list = answer["data"]["objects"].as_array().cloned().unwrap_or_default();
    let step = (list.len() / 8).max(1);
    list.iter().step_by(step).map(|o| o["address"].as_str().unwrap().to_string()).collect()
}

/// The fields in the answers of a command that contain text of the program: keys of dictionaries, messages, names of threads.
fn texts_of(command: &str) -> &'static [&'static str] {
    match command {
        "path" => &["key"],
        "stacks" => &["message", "name"],
        _ => &[],
    }
}

/// Empties every field of an answer that `names` lists.
fn without(names: &[&str], answer: &mut Value) {
    match answer {
        Value::Object(map) => {
            map.iter_mut().for_each(|(name, value)| if names.contains(&&**name) { *value = Value::Null } else { without(names, value) })
        }
        Value::Array(list) => list.iter_mut().for_each(|value| without(names, value)),
        _ => {}
    }
}

/// Compares all answers of both. Returns their number.
fn answers_are_the_same(name: &str, dump: &Path, copy: &Path, redacted: bool) -> usize {
    let mut count = 0;
    let mut compare = |command: &[&str]| {
        let (mut expected, mut found) = (asked(dump, command), asked(copy, command));
        if redacted && command[0] == "info" {
            // The command line is removed.
            assert!(found.1["data"]["command_line"].is_null(), "{name}");
            expected.1["data"]["command_line"] = Value::Null;
            expected.1["data"]["arguments"] = Value::Null;
            // The environment and the texts of `runtimeconfig.json` are removed, too.
            expected.1["data"]["settings"] = Value::Array(Vec::new());
        }
        if redacted {
            [&mut expected.1, &mut found.1].into_iter().for_each(|answer| without(texts_of(command[0]), answer));
        }
        assert_eq!(expected, found, "{name} {command:?}");
        count += 1;
    };
    sample(ASKED.iter().filter(|(_, plain)| *plain || !redacted), 2).into_iter().for_each(|(command, _)| compare(command));
    for object in sample(some_objects(dump), 4) {
        let commands: &[&str] =
            if redacted { &["where", "near", "objsize", "path"] } else { &["object", "where", "near", "objsize", "path"] };
        commands.iter().for_each(|command| compare(&[command, &object]));
    }
    count
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn the_copy_of_the_own_dump_is_small_and_gives_the_same_answers() {
    let dir = folder();
    let copy = dir.path().join("copy.dmp");
    let report = trim(&own_unpacked(), &copy, &[]);
    assert!(report["kept_bytes"].as_u64().unwrap() <= 12 << 20, "{report}");
    assert_eq!(report["kept_bytes"], copy.metadata().unwrap().len());
    let sum = |key: &str| report["parts"].as_array().unwrap().iter().map(|p| p[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((report["bytes"].as_u64().unwrap(), report["kept_bytes"].as_u64().unwrap()), (sum("bytes"), sum("kept_bytes")));
    answers_are_the_same("own", &own_unpacked(), &copy, false);
    // A copy of the copy is identical, even via compression.
    let (again, packed) = (dir.path().join("again.dmp"), dir.path().join("packed.dmp.zst"));
    trim(&copy, &packed, &[]);
    assert!(packed.metadata().unwrap().len() < copy.metadata().unwrap().len() / 2);
    trim(&packed, &again, &[]);
    assert_eq!(std::fs::read(&again).unwrap().len(), std::fs::read(&copy).unwrap().len());
    if full() {
        answers_are_the_same("own, twice", &own_unpacked(), &again, false);
    }
}

#[test]
fn copies_of_shared_dumps_give_the_same_answers() -> Tested {
    const NAMES: [&str; 10] = [
        "net10-wks-basics-mini",
        "net10-wks-basics-triage",
        "net8-wks-crash-mini",
        "net9-seg-basics-heap",
        "net10-svr-roots-heap",
        "net10-wks-dynamic-heap",
        "net10-wks-wait-gcore",
        "net10-wks-wait-kernel",
        "win-net10-wks-basics-mini",
        "win-net9-wks-basics-full",
    ];
    let (dumps, missing) = known_dumps(|row| NAMES.contains(&row["name"].as_str().unwrap()))?;
    assert!(!dumps.is_empty(), "none of {missing:?} is unpacked in {}", unpacked().display());
    for dump in &dumps {
        let dir = folder();
        let copy = dir.path().join("copy.dmp");
        let report = trim(&dump.path, &copy, &[]);
        let kept = report["kept_bytes"].as_u64().unwrap();
        assert!(kept <= 12 << 20, "{}: {kept}", dump.name);
        let answers = answers_are_the_same(&dump.name, &dump.path, &copy, false);
        println!("{}: {} KiB of {} KiB, {answers} answers", dump.name, kept >> 10, report["bytes"].as_u64().unwrap() >> 10);
    }
    println!("not unpacked: {missing:?}");
    Ok(())
}

#[test]
fn copies_of_synthetic_processes_give_the_same_answers() {
    for (i, shape) in Shape::ALL.into_iter().enumerate() {
        let target = Spec::standard(shape).build();
        // The containers alternate, except in a full run.
        let containers = [("core", target.to_elf_core()), ("minidump", target.to_minidump())];
        for (kind, bytes) in sample(containers.into_iter().skip(i % cases(2, 1)), 2) {
            let dir = folder();
            let (dump, copy, redacted) = (dir.path().join("dump.dmp"), dir.path().join("copy.dmp"), dir.path().join("redacted.dmp"));
            std::fs::write(&dump, &bytes).unwrap();
            let first = |path: &Path| std::fs::read(path).unwrap()[..6].to_vec();
            trim(&dump, &copy, &[]);
            assert_eq!(first(&dump), first(&copy));
            answers_are_the_same(&format!("{shape:?} {kind}"), &dump, &copy, false);
            trim(&dump, &redacted, &["--redact"]);
            answers_are_the_same(&format!("{shape:?} {kind} redacted"), &dump, &redacted, true);
        }
    }
}

#[test]
fn the_second_run_with_module_files_needs_no_walk() {
    let mut dumps = vec![("own".to_string(), own_unpacked(), None)];
    if let Some((_, lab)) = shared().zip(lab()) {
        const NAMES: [&str; 4] = ["net10-wks-basics-heap", "net10-wks-basics-mini", "net8-wks-basics-heap", "aot9-wks-wait-heap"];
        let (known, _) = every_dump(|row| NAMES.contains(&row["name"].as_str().unwrap())).unwrap_or_default();
        dumps.extend(known.into_iter().map(|dump| (dump.name, dump.path, Some(lab.join(dump.runtime)))));
    }
    for (name, path, modules) in dumps {
        let open = |files: Option<&PathBuf>| {
            let options = gcdump::OpenOptions { record: true, ..gcdump::OpenOptions::new() };
            Dump::open(&path, &files.into_iter().fold(options, |options, folder| options.modules(folder))).unwrap()
        };
        let before = open(None);
        let reads = Reads::of(&before, &Surveys::default());
        let walked = reads.clone().and(Reads::of(&open(modules.as_ref()), &Surveys::default()));
        assert!(walked == reads.and(Reads::of(&open(modules.as_ref()), &Surveys::of(&before))), "{name}");
    }
}

fn process(path: &Path) -> Dump {
    Dump::open(path, &gcdump::OpenOptions::default()).unwrap()
}

/// The distinct values of at least eight characters of the strings on the heap.
pub fn strings_of(process: &Dump) -> BTreeSet<String> {
    let runtime = process.runtime().unwrap();
    let heap = walker(&runtime);
    let first = runtime.descriptor().offset("String", "m_FirstChar").unwrap();
    let mut out = BTreeSet::new();
    heap.visit(
        &Silent,
        |_, _| true,
        |o| {
            if o.ty.is_string
                && let Some(bytes) = o.part(first, o.length().unwrap() * 2)
            {
                let units: Vec<u16> = bytes.chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect();
                out.extend(String::from_utf16(&units).ok().filter(|s| s.chars().count() >= 8));
            }
            ControlFlow::Continue(())
        },
    );
    out
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Addresses of `needle` in the copy; `None` for headers, notes and lists.
fn hits(copy: &Dump, needle: &[u8]) -> Vec<Option<Addr>> {
    let ranges = &copy.file().ranges;
    let address = |offset: usize| {
        let offset = offset as u64;
        let i = ranges.partition_point(|r| r.offset <= offset).checked_sub(1)?;
        Some(ranges[i].start.plus(offset - ranges[i].offset))
    };
    memmem::find_iter(&copy.file().bytes, needle).map(address).collect()
}

#[test]
fn no_text_of_the_program_is_left_after_redaction() {
    let mut cases: Vec<(String, PathBuf)> = vec![("own".into(), own_unpacked())];
    const NAMES: [&str; 11] = [
        "net8-wks-basics-heap",
        "net9-svr-basics-heap",
        "net10-wks-crash-heap",
        "net10-wks-inspect-heap",
        "net10-wks-fragmented-heap",
        "net10-wks-threads-heap",
        "net10-wks-wait-gcore",
        "win-net8-wks-basics-full",
        "win-net9-wks-basics-full",
        "win-net10-wks-crash-full",
        "win-net10-wks-threads-full",
    ];
    let (dumps, missing) = known_dumps(|row| NAMES.contains(&row["name"].as_str().unwrap())).unwrap_or_default();
    cases.extend(dumps.into_iter().map(|d| (d.name, d.path)));
    each(&cases, |(name, path)| {
        let dir = folder();
        let copy = dir.path().join("copy.dmp");
        let report = trim(path, &copy, &["--redact"]);
        let original = process(path);
        // Values that consist of the replacement letter cannot be distinguished from it.
        let mut strings = strings_of(&original);
        strings.retain(|s| s.bytes().any(|b| b != b'x'));
        assert!(strings.len() > 50, "{name}: {}", strings.len());
        let redacted = process(&copy);
        let images: Vec<AddrRange> = original.file().modules.iter().map(|m| m.range()).collect();
        let paths: Vec<&str> = original.file().modules.iter().map(|m| m.path.as_str()).collect();
        let mut shared_with_names = 0;
        for text in &strings {
            for needle in [utf16(text), text.clone().into_bytes()] {
                for at in hits(&redacted, &needle) {
                    // Names of types, methods and modules are kept: in metadata (UTF-8), and as recorded paths.
                    let in_image = at.is_some_and(|a| images.iter().any(|i| i.contains(a)));
                    let in_path = paths.iter().any(|p| p.contains(text.as_str()));
                    let name_of_metadata = in_image && needle.len() == text.len();
                    assert!(in_path || name_of_metadata, "{name}: {text:?} is still there, at {at:?}");
                    shared_with_names += 1;
                }
            }
        }
        assert!(strings_of(&redacted).iter().all(|s| s.bytes().all(|b| b == b'x')), "{name}");
        let answers = answers_are_the_same(name, path, &copy, true);
        let overwritten = &report["redacted"];
        assert!(overwritten["strings"].as_u64().unwrap() > 50 && overwritten["arrays"].as_u64().unwrap() > 10, "{name}: {overwritten}");
        println!("{name}: {} contents, {shared_with_names} places with the same name, {answers} answers", strings.len());
    });
    println!("not unpacked: {missing:?}");
}

#[test]
fn messages_are_overwritten_and_stack_traces_stay() -> Tested {
    let (dumps, missing) = known_dumps(|row| {
        ["net8-wks-crash-mini", "net9-wks-crash-mini", "net10-wks-crash-heap", "win-net10-wks-crash-full"]
            .contains(&row["name"].as_str().unwrap())
    })?;
    for dump in &dumps {
        let dir = folder();
        let copy = dir.path().join("copy.dmp");
        trim(&dump.path, &copy, &["--redact"]);
        let ((_, before), (_, after)) = (asked(&dump.path, &["threads"]), asked(&copy, &["threads"]));
        let (mut messages, mut frames) = (0, 0);
        let mut pairs: Vec<(&Value, &Value)> = Vec::new();
        for (old, new) in before["data"]["threads"].as_array().unwrap().iter().zip(after["data"]["threads"].as_array().unwrap()) {
            pairs.push((&old["exception"], &new["exception"]));
        }
        while let Some((old, new)) = pairs.pop() {
            if !old.is_object() {
                continue;
            }
            assert_eq!((&old["type"], &old["stack"]), (&new["type"], &new["stack"]), "{}", dump.name);
            frames += old["stack"].as_array().map_or(0, Vec::len);
            if let Some(message) = old["message"].as_str() {
                assert_eq!(new["message"], "x".repeat(message.encode_utf16().count()), "{}", dump.name);
                messages += 1;
            }
            pairs.push((&old["inner"], &new["inner"]));
        }
        println!("{}: {messages} messages, {frames} frames", dump.name);
        assert!(messages > 0 && frames > 0, "{}: {}", dump.name, before["data"]["threads"]);
    }
    println!("not unpacked: {missing:?}");
    Ok(())
}

#[test]
fn the_dump_is_never_overwritten() {
    let dir = folder();
    let dump = dir.path().join("dump.dmp");
    let bytes = Spec::standard(Shape::ALL[0]).build().to_elf_core();
    std::fs::write(&dump, &bytes).unwrap();
    let text = |p: &Path| p.to_str().unwrap().to_string();
    let (hard, soft) = (dir.path().join("hard.dmp"), dir.path().join("soft.dmp"));
    std::fs::hard_link(&dump, &hard).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&dump, &soft).unwrap();
    #[cfg(not(unix))]
    std::fs::hard_link(&dump, &soft).unwrap();
    for (from, to) in [(&dump, &dump), (&dump, &hard), (&dump, &soft), (&soft, &dump), (&hard, &soft)] {
        for more in [&[][..], &["--force"]] {
            let ran =
                run(&[&["trim".to_string(), text(from), text(to)], &more.iter().map(|s| s.to_string()).collect::<Vec<_>>()[..]].concat());
            assert_eq!(ran.exit, Exit::Usage, "{}", ran.err);
            assert!(ran.err.contains("never overwritten"), "{}", ran.err);
        }
    }
    let out = dir.path().join("out.dmp");
    std::fs::write(&out, "something").unwrap();
    let ran = run(&["trim", &text(&dump), &text(&out)]);
    assert_eq!((ran.exit, std::fs::read(&out).unwrap()), (Exit::Usage, b"something".to_vec()));
    assert!(ran.err.contains("--force"), "{}", ran.err);
    trim(&dump, &out, &["--force"]);
    assert_eq!(std::fs::read(&dump).unwrap(), bytes);
    // A folder and a nonexistent path are rejected; no partial file remains.
    assert_eq!(run(&["trim", &text(&dump), &text(dir.path())]).exit, Exit::Usage);
    assert_eq!(run(&["trim", &text(&dump), &text(&dir.path().join("no/where.dmp"))]).exit, Exit::NotWritten);
    let mut names: Vec<String> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["dump.dmp", "hard.dmp", "out.dmp", "soft.dmp"]);
}

#[test]
fn a_core_with_more_ranges_than_16_bits_count_is_read_back() {
    for shape in [Shape::ALL[0], Shape::ALL[Shape::ALL.len() - 1]] {
        let bytes = Spec::standard(shape).build().to_elf_core();
        let dump = open_bytes(Bytes::Owned(bytes), Path::new("dump"), &OpenOptions::default()).unwrap();
        let ranges: Vec<AddrRange> = (0..70_000u64).map(|i| AddrRange::new(Addr(0x1_0000 + i * 8), Addr(0x1_0000 + i * 8 + 2))).collect();
        let layout = lay_out(&dump, &ranges, None).unwrap();
        let mut file = layout.head.clone();
        file.resize(layout.file_bytes as usize, 7);
        let copy = open_bytes(Bytes::Owned(file), Path::new("copy"), &OpenOptions::default()).unwrap();
        assert_eq!(copy.ranges, layout.ranges);
        assert_eq!((copy.regions, copy.threads, copy.files), (dump.regions, dump.threads, dump.files));
        assert_eq!((copy.facts.pid, copy.facts.oddities.len()), (dump.facts.pid, 0));
        assert_eq!(json!(copy.facts.trimmed.is_some()), true);
    }
}

/// A thread is on its signal stack; its normal stack has its frames.
#[test]
fn the_stack_that_a_thread_has_left_is_kept() {
    let dir = folder();
    let original = std::fs::read(own_unpacked()).unwrap();
    let dump = process(&own_unpacked());
    let elsewhere = dump.runtime().unwrap().heap().unwrap().segment_models()[0].start;
    let managed: Vec<u64> = dump.runtime().unwrap().thread_list().unwrap().data.iter().filter_map(|t| t.os_id).collect();
    let mut tried = 0;
    for thread in dump.file().threads.iter().filter(|t| managed.contains(&u64::from(t.id))) {
        let sp = thread.stack_pointer.unwrap();
        let stack = dump.file().regions.iter().map(|r| r.range).find(|r| r.contains(sp)).unwrap();
        let held = |dump: &Dump| dump.memory().captured(AddrRange::new(sp, stack.end));
        let mut altered = original.clone();
        // The registers are in the notes, which follow the program headers and precede the memory.
        let notes = dump.file().ranges.iter().map(|r| r.offset).min().unwrap() as usize;
        let at = memmem::rfind(&altered[..notes], &sp.0.to_le_bytes()).unwrap();
        altered[at..at + 8].copy_from_slice(&elsewhere.0.to_le_bytes());
        let (from, to) = (dir.path().join("from.dmp"), dir.path().join("to.dmp"));
        std::fs::write(&from, altered).unwrap();
        let left = process(&from);
        assert_eq!(left.file().threads.iter().find(|t| t.id == thread.id).unwrap().stack_pointer, Some(elsewhere));
        trim(&from, &to, &["--force"]);
        // The stack is kept up to the thread's storage, which is above the frames.
        assert!(held(&process(&to)) * 10 >= held(&dump) * 9, "{}: {} of {}", thread.id, held(&process(&to)), held(&dump));
        tried += 1;
    }
    assert!(tried >= 2);
}

#[test]
fn a_copy_with_modules_answers_in_full_without_them() -> Tested {
    let lab = crate::common::needs_lab()?;
    let dump = unpacked().join("net10-wks-stacks-heap.dmp");
    if !dump.is_file() {
        return crate::harness::ignored("net10-wks-stacks-heap.dmp is not unpacked");
    }
    let (dir, folder) = (folder(), lab.join("net10"));
    let stacks = ["stacks", "--roots"];
    let (without, _) = crate::common::ask_with_files(&dump, &stacks, None);
    let (with, whole) = crate::common::ask_with_files(&dump, &stacks, Some(&folder));
    assert_eq!((without, with), (Exit::Partial, Exit::Ok));
    for more in [&[][..], &["--redact"]] {
        let copy = dir.path().join("copy.dmp");
        let modules = ["--with-modules", "--force", "--modules", folder.to_str().unwrap()];
        let report = trim(&dump, &copy, &[&modules[..], more].concat());
        assert!(report["module_bytes"].as_u64().unwrap() > 4096, "{report}");
        for command in ["info", "stacks", "retained", "roots"] {
            let (exit, answer) = crate::common::ask_with_files(&copy, &[command], None);
            assert_eq!(exit, Exit::Ok, "{command} {more:?}: {}", answer["warnings"]);
        }
        // Messages of exceptions are redacted.
        let same = crate::common::ask_with_files(&copy, &stacks, None).1["data"] == whole["data"];
        assert!(same || !more.is_empty());
    }
    // Without the files, the copy reports what it does not have.
    let copy = dir.path().join("partial.dmp");
    let ran = run(&["trim", "--with-modules", "--no-local-files", "--json", dump.to_str().unwrap(), copy.to_str().unwrap()]);
    assert_eq!(ran.exit, Exit::Partial, "{}", ran.out);
    Ok(())
}

/// Other readers of minidumps take the bytes at the offset in a thread's record for its stack.
#[test]
fn records_of_threads_in_minidumps_have_the_stack_or_nothing() {
    for name in ["win-net10-wks-basics-full", "win-net8-wks-handles-full", "win-net11-wks-basics-heap"] {
        let (dir, dump) = (folder(), crate::corpus::dump(name));
        let copy = dir.path().join("copy.dmp");
        trim(&dump, &copy, &[]);
        let bytes = std::fs::read(&copy).unwrap();
        let number = |at: usize, len: usize| bytes[at..at + len].iter().rev().fold(0usize, |n, b| n << 8 | usize::from(*b));
        let opened = process(&copy);
        let directory = number(12, 4);
        let list = (0..number(8, 4)).map(|i| directory + i * 12).find(|at| number(*at, 4) == 3).map(|at| number(at + 8, 4)).unwrap();
        let mut with_stack = 0;
        for record in (0..number(list, 4)).map(|i| list + 4 + i * 48) {
            let (stack, size, at) = (number(record + 24, 8), number(record + 32, 4), number(record + 36, 4));
            if size == 0 {
                assert_eq!(at, 0, "{name}");
                continue;
            }
            with_stack += 1;
            let found = opened.memory().bytes(Addr(stack as u64), size as u64).unwrap();
            assert_eq!(found.as_ref(), &bytes[at..at + size], "{name}");
        }
        println!("{name}: {with_stack} stacks");
    }
}

/// Fields about the search for objects: a copy does not have all memory that is searched.
const OF_THE_SEARCH: [&str; 1] = ["searched_bytes"];

/// Copies `dump`, which is damaged, and compares the answers. Returns the copy's warnings about the damage.
fn copy_of_damaged(name: &str, dump: &Path) -> Vec<Value> {
    let dir = folder();
    let (copy, again) = (dir.path().join("copy.dmp"), dir.path().join("again.dmp"));
    for (from, to) in [(dump, &copy), (&copy, &again)] {
        let ran = run(&["trim", "--no-local-files", from.to_str().unwrap(), to.to_str().unwrap()]);
        assert!(matches!(ran.exit, Exit::Ok | Exit::Partial), "{name}: {}", ran.err);
    }
    let mut warnings = Vec::new();
    for command in [&["info"][..], &["stat"], &["objects", "--top", "9"], &["verify"], &["strings"], &["stacks"], &["analyze"]] {
        let [expected, found, twice] = [dump, &copy, &again].map(|path| {
            let (exit, mut answer) = asked(path, command);
            without(&OF_THE_SEARCH, &mut answer);
            // The message about lost method tables says of the dump how much memory is missing with them.
            let text = answer.to_string().replace(path.to_str().unwrap(), "DUMP");
            let text = regex_lite::Regex::new(", with [0-9,]+ bytes? of memory").unwrap().replace_all(&text, "").into_owned();
            (exit, serde_json::from_str::<Value>(&text).unwrap())
        });
        assert!(expected == found && found == twice, "{name} {command:?}:\n{}\n{}\n{}", expected.1, found.1, twice.1);
        if command == ["info"] {
            let list = found.1["warnings"].as_array().unwrap().iter();
            let of_the_file = |w: &&Value| ["truncated-dump", "damaged-stream", "unreadable-stream"].map(Value::from).contains(&w["kind"]);
            warnings = list.filter(of_the_file).cloned().collect();
        }
    }
    warnings
}

#[test]
fn copies_of_cut_dumps_say_that_they_are_cut() {
    let own = std::fs::read(own_unpacked()).unwrap();
    let mut cases = vec![
        ("own, 60 %".to_string(), own[..own.len() * 6 / 10].to_vec()),
        ("own, 95 %".to_string(), own[..own.len() * 95 / 100].to_vec()),
    ];
    for shape in [Shape::ALL[0], Shape::ALL[Shape::ALL.len() - 1]] {
        let target = Spec::standard(shape).build();
        for (kind, mut bytes) in [("core", target.to_elf_core()), ("minidump", target.to_minidump())] {
            bytes.truncate(bytes.len() - 64);
            cases.push((format!("{shape:?} {kind}"), bytes));
        }
    }
    for name in ["dmg-net10-basics-half-heap", "dmg-net10-basics-tail-heap"] {
        cases.extend(std::fs::read(unpacked().join(format!("{name}.dmp"))).ok().map(|bytes| (name.to_string(), bytes)));
    }
    each(&cases, |(name, bytes)| {
        let dump = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(dump.path(), bytes).unwrap();
        let warnings = copy_of_damaged(name, dump.path());
        assert!(warnings.iter().any(|w| w["kind"] == "truncated-dump"), "{name}: {warnings:?}");
    });
}

#[test]
fn copies_of_damaged_streams_say_that_they_are_damaged() {
    let packed = std::fs::read(crate::common::own_dump()).unwrap();
    let (mut wrong, mut more) = (packed.clone(), packed.clone());
    // A checksum that does not match, and bytes after the data.
    *wrong.last_mut().unwrap() ^= 1;
    more.extend(b"more bytes");
    for (name, bytes) in [("wrong", wrong), ("more", more)] {
        let dump = tempfile::Builder::new().suffix(".dmp.zst").tempfile().unwrap();
        std::fs::write(dump.path(), bytes).unwrap();
        let warnings = copy_of_damaged(name, dump.path());
        assert!(!warnings.is_empty(), "{name}");
    }
}
