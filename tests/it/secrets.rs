//! Secrets planted in a process are in no redacted copy, and in files for others only with `--contents`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{bytes_of, each, further_dumps, known_dumps, run, sample};
use crate::harness::Tested;
use gcdump::Os;
use gcdump::cli::Exit;
use gcdump::internals::base::{Addr, AddrRange};
use gcdump::internals::dump::{Bytes, DumpFile, OpenOptions, open_bytes};
use memchr::memmem;

/// A secret, with a length that puts each of its parts at each offset in a word.
const SECRET: &str = "SeCrEt-7k";

/// The secret as a process stores it, repeated.
fn secrets() -> [Vec<u8>; 3] {
    let utf16: Vec<u8> = SECRET.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf32: Vec<u8> = SECRET.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    [SECRET.as_bytes().to_vec(), utf16, utf32].map(|one| one.repeat(8))
}

/// Returns the offsets of words' worth of the secret in `bytes`, at any alignment.
fn found(bytes: &[u8], secret: &[u8]) -> Vec<usize> {
    let parts: BTreeSet<&[u8]> = secret.windows(8).collect();
    parts.iter().flat_map(|part| memmem::find_iter(bytes, part)).collect()
}

/// Fails if a copy has a part of the secret.
fn nothing_is_left(copy: &[u8], secret: &[u8], what: &str) {
    let left = found(copy, secret);
    if left.is_empty() {
        return;
    }
    let ranges = parsed(copy.to_vec()).ranges;
    let place = |offset: &usize| {
        let at = *offset as u64;
        let range = ranges.iter().find(|r| r.offset <= at && at - r.offset < r.len);
        range.map_or(format!("offset {offset}"), |r| format!("{} of {}", r.start.plus(at - r.offset), r.start))
    };
    panic!("{what}: {:?}", left.iter().take(10).map(place).collect::<Vec<_>>());
}

/// Returns memory that is mapped or captured, or belongs to a module.
fn mapped(file: &DumpFile) -> Vec<AddrRange> {
    let captured = file.ranges.iter().map(|r| r.range());
    let modules = file.modules.iter().map(|m| m.range());
    crate::common::joined(captured.chain(modules).chain(file.regions.iter().map(|r| r.range)).collect())
}

fn is_in(sorted: &[AddrRange], word: u64) -> bool {
    let i = sorted.partition_point(|r| r.end.0 <= word);
    sorted.get(i).is_some_and(|r| r.start.0 <= word)
}

/// Returns the captured words of the threads' stacks, without the storage that the C library has above them.
fn words_of_stacks(file: &DumpFile) -> Vec<Addr> {
    let mut out = Vec::new();
    for thread in &file.threads {
        let Some(sp) = thread.stack_pointer else { continue };
        let around = file.regions.iter().map(|r| r.range).chain(thread.stack).find(|r| r.contains(sp));
        let top =
            around.map_or(sp.0 + (1 << 16), |r| r.end.0).min(thread.thread_base.filter(|at| *at > sp).map_or(u64::MAX, |at| at.0 - 0x2000));
        let ranges = file.ranges.iter().map(|r| (r.start.0.max(sp.0), (r.start.0 + r.len).min(top)));
        out.extend(ranges.flat_map(|(from, to)| (from.next_multiple_of(8)..to.saturating_sub(7)).step_by(8).map(Addr)));
    }
    out
}

/// File offsets of captured words.
struct Offsets(Vec<(u64, u64, usize)>);

impl Offsets {
    fn of(dump: &DumpFile) -> Offsets {
        let mut ranges: Vec<_> = dump.ranges.iter().map(|r| (r.start.0, r.start.0 + r.len, r.offset as usize)).collect();
        ranges.sort_unstable();
        Offsets(ranges)
    }

    fn get(&self, at: Addr) -> Option<usize> {
        let i = self.0.partition_point(|(_, end, _)| *end <= at.0);
        let (start, end, offset) = *self.0.get(i)?;
        (start <= at.0 && at.0 + 8 <= end).then(|| offset + (at.0 - start) as usize)
    }
}

/// Returns `bytes`, the file of `dump`, with the secret at `words`.
fn planted(dump: &DumpFile, bytes: &[u8], words: &[Addr], secret: &[u8]) -> Vec<u8> {
    let (mut bytes, offsets) = (bytes.to_vec(), Offsets::of(dump));
    for (i, at) in words.iter().enumerate() {
        let Some(place) = offsets.get(*at) else { continue };
        let from = i * 8 % (secret.len() - 8);
        bytes[place..place + 8].copy_from_slice(&secret[from..from + 8]);
    }
    bytes
}

/// Redacts `bytes` and returns the copy.
fn redacted(bytes: &[u8]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (dump, copy) = (folder.path().join("dump.dmp"), folder.path().join("copy.dmp"));
    std::fs::write(&dump, bytes).unwrap();
    let ran = run(&["trim", "--redact", "--no-local-files", dump.to_str().unwrap(), copy.to_str().unwrap()]);
    assert!(matches!(ran.exit, Exit::Ok | Exit::Partial), "{}", ran.err);
    std::fs::read(copy).unwrap()
}

fn parsed(bytes: Vec<u8>) -> DumpFile {
    open_bytes(Bytes::Owned(bytes), Path::new("dump"), &OpenOptions::default()).unwrap()
}

/// Dumps of the corpus, of every kind of container and of several runtimes.
const DUMPS: [&str; 7] = [
    "net10-wks-stacks-heap",
    "win-net10-wks-crash-full",
    "net8-wks-stacks-heap",
    "net10-wks-wait-kernel",
    "net11shape-wks-threads-heap",
    "net10-wks-stacks-mini",
    "aot9-wks-crash-kernel",
];

/// The dumps, unpacked.
fn dumps(quick: usize) -> Vec<(&'static str, Vec<u8>)> {
    sample(DUMPS, quick).into_iter().map(|name| (name, bytes_of(name).unwrap())).collect()
}

#[test]
fn words_of_stacks_that_are_not_addresses_are_not_copied() {
    each(&dumps(1), |(name, bytes)| {
        let dump = parsed(bytes.clone());
        let (mapped, offsets) = (mapped(&dump), Offsets::of(&dump));
        let word = |at: &Addr| offsets.get(*at).map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
        let words = words_of_stacks(&dump);
        let no_address = |at: &&Addr| word(at).is_some_and(|word| !is_in(&mapped, word));
        // With and without words that look like frames: their numbers of kinds, and the end of their chain.
        let plain: Vec<Addr> = words.iter().filter(no_address).copied().collect();
        let walked: Vec<Addr> = plain.iter().filter(|at| word(at).is_some_and(|word| word > 0xff && word != u64::MAX)).copied().collect();
        for secret in sample(secrets(), 1) {
            for words in [&plain, &walked] {
                let copy = redacted(&planted(&dump, bytes, words, &secret));
                nothing_is_left(&copy, &secret, &format!("{name}: {} words of stacks were overwritten", words.len()));
            }
        }
        println!("{name}: {} words of stacks, of which {} are not addresses, {} of them numbers", words.len(), plain.len(), walked.len());
        assert!(plain.len() > 20, "{name}");
    });
}

/// Returns the parts of notes and streams that no reader needs: file offset and length.
fn needless(dump: &DumpFile, bytes: &[u8]) -> Vec<(usize, usize)> {
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let mut out = Vec::new();
    if bytes.starts_with(b"MDMP") {
        for entry in (0..half(8)).map(|i| half(12) + i * 12) {
            let at = half(entry + 8);
            match half(entry) {
                // Threads: everything in a context except flags and general registers.
                3 => out.extend(
                    (0..half(at)).map(|i| half(at + 4 + i * 48 + 44)).flat_map(|context| [(context, 0x30), (context + 0x100, 0x3d0)]),
                ),
                // Unused parameters of the exception.
                6 => {
                    let count = half(at + 32);
                    out.push((at + 40 + count * 8, (15 - count) * 8));
                }
                _ => {}
            }
        }
        assert!(dump.facts.os == Os::Windows);
        return out;
    }
    let headers = (0..bytes[56] as usize + bytes[57] as usize * 256).map(|i| word(32) + i * 56).filter(|at| half(*at) == 4);
    for (mut at, end) in headers.map(|at| (word(at + 8), word(at + 8) + word(at + 32))) {
        while at + 12 <= end {
            let (owner, len, kind) = (half(at), half(at + 4), half(at + 8));
            let desc = at + 12 + owner.next_multiple_of(4);
            match kind {
                // Threads: facts about a signal other than the signal itself, times, and vector registers.
                1 if owner == 5 => out.extend([(desc, 12), (desc + 16, 16), (desc + 36, 76)]),
                3 if owner == 5 => out.extend([(desc, 24), (desc + 56, len - 56)]),
                6 if owner == 5 => {
                    let entries = (desc..desc + len).step_by(16).take_while(|at| word(*at) != 0);
                    out.extend(entries.filter(|at| ![3, 7, 9, 31, 33].contains(&word(*at))).map(|at| (at + 8, 8)));
                }
                0x5349_4749 => out.extend([(desc + 4, 4), (desc + 24, len - 24)]),
                2 | 0x202 => out.push((desc, len)),
                _ => {}
            }
            at = desc + len.next_multiple_of(4);
        }
    }
    out
}

#[test]
fn only_needed_parts_of_notes_and_contexts_are_copied() {
    each(&dumps(7), |(name, bytes)| {
        let dump = parsed(bytes.clone());
        let secret = &secrets()[0];
        let mut with = bytes.clone();
        let places = needless(&dump, bytes);
        for (at, len) in &places {
            with[*at..at + len].iter_mut().zip(secret.iter().cycle()).for_each(|(byte, of)| *byte = *of);
        }
        let total: usize = places.iter().map(|place| place.1).sum();
        assert!(total > 300 && found(&with, secret).len() > 20, "{name}: {total}");
        let copy = redacted(&with);
        nothing_is_left(&copy, secret, name);
        let (before, after) = (parsed(with), parsed(copy));
        let threads = |dump: &DumpFile| dump.threads.iter().map(|t| (t.id, t.stack_pointer, t.instruction_pointer)).collect::<Vec<_>>();
        assert_eq!(threads(&before), threads(&after), "{name}");
        assert_eq!((before.facts.pid, before.facts.process_name), (after.facts.pid, after.facts.process_name), "{name}");
        assert_eq!(before.crash.map(|c| (c.thread, c.code, c.address)), after.crash.map(|c| (c.thread, c.code, c.address)), "{name}");
    });
}

/// Overwrites everything that a first copy leaves out: native heaps, variables, environment, free space, text. Nothing of it may be in a
/// second copy.
fn nothing_comes_back(name: &str, bytes: &[u8]) {
    let dump = parsed(bytes.to_vec());
    let copy = parsed(redacted(bytes));
    let (offsets, offsets_of_copy) = (Offsets::of(&dump), Offsets::of(&copy));
    let kept = |at: Addr| offsets_of_copy.get(at).map(|at| &copy.bytes[at..at + 8]);
    let mut words = Vec::new();
    for range in &dump.ranges {
        let word = |at: Addr| offsets.get(at).map(|at| &bytes[at..at + 8]);
        let all = (range.start.0.next_multiple_of(8)..range.start.0 + range.len).step_by(8).map(Addr);
        // A word with the length of a string and its first characters is copied in part.
        let is_left_out = |at: &Addr| kept(*at).is_none_or(|kept| word(*at).is_some_and(|word| kept != word && kept[..4] != word[..4]));
        words.extend(all.filter(is_left_out));
    }
    let stack: BTreeSet<Addr> = words_of_stacks(&dump).into_iter().collect();
    let mapped = mapped(&dump);
    // Addresses on stacks are needed to find frames.
    words.retain(|at| {
        let word = offsets.get(*at).map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
        !stack.contains(at) || word.is_some_and(|word| !is_in(&mapped, word))
    });
    for secret in sample(secrets(), 1) {
        let again = redacted(&planted(&dump, bytes, &words, &secret));
        nothing_is_left(&again, &secret, &format!("{name}: {} words were overwritten", words.len()));
    }
    println!("{name}: {} words overwritten", words.len());
    assert!(words.len() > 1000, "{name}");
}

#[test]
fn omitted_memory_is_in_no_later_copy() {
    each(&dumps(1), |(name, bytes)| nothing_comes_back(name, bytes));
}

#[test]
fn omitted_memory_of_a_whole_dump_is_in_no_later_copy() -> Tested {
    const NAMES: [&str; 3] = ["net10-wks-basics-heap", "net8-wks-stacks-heap", "win-net9-wks-basics-full"];
    let (dumps, missing) = known_dumps(|row| NAMES.contains(&row["name"].as_str().unwrap()))?;
    each(&dumps, |dump| nothing_comes_back(&dump.name, &std::fs::read(&dump.path).unwrap()));
    println!("not unpacked: {missing:?}");
    Ok(())
}

/// Checks that the messages of a crash report are overwritten and its names kept.
fn messages_are_overwritten(bytes: &[u8]) {
    let messages = [&b"the lab crashes on purpose"[..], b"inner trouble of the lab"];
    assert!(messages.iter().all(|text| memmem::find(bytes, text).is_some()));
    let copy = redacted(bytes);
    assert!(messages.iter().all(|text| memmem::find(&copy, text).is_none()));
    assert!(memmem::find(&copy, b"Lab.Program.Crash()").is_some(), "names stay");
}

#[test]
fn the_messages_of_a_crash_report_are_overwritten() {
    messages_are_overwritten(&bytes_of("aot9-wks-crash-kernel").unwrap());
}

#[test]
fn the_messages_of_a_crash_report_found_by_a_search_are_overwritten() -> Tested {
    let (dumps, missing) = further_dumps(|row| row["name"] == "net11aot-wks-crash-full")?;
    dumps.iter().for_each(|dump| messages_are_overwritten(&std::fs::read(&dump.path).unwrap()));
    println!("not unpacked: {missing:?}");
    Ok(())
}

/// Makes a kernel core whose command line has a secret.
fn with_command_line(folder: &Path) -> PathBuf {
    const LINE: &[u8] = b"/app/lab wait --password SeCrEt-7k --key=SeCrEt-7k";
    let mut bytes = bytes_of("net10-wks-wait-kernel").unwrap();
    let line = parsed(bytes.clone()).facts.command_line.unwrap();
    let at = memmem::find(&bytes, line.as_bytes()).unwrap();
    bytes[at..at + 80].fill(0);
    bytes[at..at + LINE.len()].copy_from_slice(LINE);
    // The secret is also among the arguments on the first stack.
    let label = b"--label\0net10-wks-wait-kernel\0";
    let at = memmem::find(&bytes, label).unwrap() + 8;
    bytes[at..at + SECRET.len()].copy_from_slice(SECRET.as_bytes());
    let path = folder.join("core.dmp");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn command_lines_are_in_files_on_request_only() {
    let folder = tempfile::tempdir().unwrap();
    let dump = with_command_line(folder.path());
    let dump = dump.to_str().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let shows = |path: &str| {
        let path = Path::new(path);
        let all = if path.is_dir() { files(path) } else { vec![path.to_path_buf()] };
        let utf16: Vec<u8> = SECRET.encode_utf16().flat_map(u16::to_le_bytes).collect();
        all.iter().any(|path| {
            let bytes = std::fs::read(path).unwrap();
            let in_tables = path.extension().is_some_and(|e| e == "parquet").then(|| format!("{:?}", crate::tables::rows(path)));
            let in_tables = in_tables.is_some_and(|rows| rows.contains(SECRET));
            in_tables || memmem::find(&bytes, SECRET.as_bytes()).is_some() || memmem::find(&bytes, &utf16).is_some()
        })
    };
    let written = |args: &[&str]| {
        let ran = run(args);
        assert!(matches!(ran.exit, Exit::Ok | Exit::Partial), "{args:?}: {}", ran.err);
    };
    // A terminal shows it.
    let shown = run(&["info", "--no-local-files", dump]);
    assert!(shown.out.contains(SECRET), "{}", shown.out);
    assert_eq!(run(&["info", "--no-local-files", "--json", dump]).json()["data"]["process_name"], "lab");
    for format in ["gcdump", "heapsnapshot", "parquet", "csv", "ndjson"] {
        let to = out(&format!("plain.{format}"));
        written(&["export", format, "--no-local-files", dump, &to]);
        assert!(!shows(&to), "{format}");
    }
    for format in ["parquet", "csv", "ndjson"] {
        let to = out(&format!("contents.{format}"));
        written(&["export", format, "--tables", "dumps", "--contents", "--no-local-files", dump, &to]);
        assert!(shows(&to), "{format}");
    }
    for (more, wanted) in [(&[][..], false), (&["--contents"], true)] {
        let lake = out(&format!("lake{wanted}"));
        written(&[&["fleet", "--no-local-files", dump, "-o", &lake], more].concat());
        assert_eq!(shows(&lake), wanted);
        for format in ["html", "json"] {
            let page = out(&format!("page{wanted}.{format}"));
            written(&[&["report", "--no-graph", "--no-local-files", "--format", format, dump, "-o", &page], more].concat());
            assert_eq!(shows(&page), wanted, "{format}");
        }
    }
    let copy = out("copy.dmp");
    written(&["trim", "--redact", "--no-local-files", dump, &copy]);
    assert!(!shows(&copy));
}
