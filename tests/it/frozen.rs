//! Frozen answers: `frozen.txt` has a hash of the answer and the exit code of each command line, on each dump of the repository and each
//! shared dump. A refactoring does not change them.
//!
//! `GCDUMP_BLESS=1 GCDUMP_TEST_FULL=1 cargo test --release --test it frozen::` rewrites the hashes, except those of dumps that this machine
//! does not have. `GCDUMP_TEST_ONLY=net10-wks` selects dumps by name, and runs all command lines on them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use gcdump::Dump;
use gcdump::cli::Exit;
use gcdump::internals::heapgraph::IndexUse;
use gcdump::internals::session::OpenOptions;
use serde_json::Value;

use crate::common::{self, Known, Ran, commands, full};
use crate::corpus;
use crate::harness::Tested;
use crate::mutation::base::MORE;

/// Command lines besides the examples and those of other tests. `ANY` is an address inside an object.
const FURTHER: &[&[&str]] = &[
    &["async", "--tasks"],
    &["finalizers"],
    &["inspect", "--top", "3"],
    &["retained", "--object", "ADDR"],
    &["roots"],
    &["stacks", "--roots"],
    &["stat", "--by", "segment"],
    &["statics", "--all", "--thread-statics"],
    &["type", "Lab.*"],
    &["verify", "--object", "ANY"],
    &["where", "HANDLE"],
];

/// A plain run takes one in this many command lines for each dump; together the dumps have all of them.
const STEP: usize = 24;

/// Held while the file of the hashes is rewritten.
static FILE: Mutex<()> = Mutex::new(());

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/frozen.txt")
}

fn is_blessed() -> bool {
    std::env::var_os("GCDUMP_BLESS").is_some()
}

/// The part of the names of dumps given by `GCDUMP_TEST_ONLY`.
fn only() -> Option<String> {
    std::env::var("GCDUMP_TEST_ONLY").ok()
}

/// Every command line, with placeholders, in the order of the registry.
fn forms() -> Vec<Vec<String>> {
    let more: Vec<&[&str]> = MORE.iter().chain(FURTHER).copied().collect();
    let mut forms = commands::forms(&more);
    forms.sort();
    forms.dedup();
    let order = |form: &Vec<String>| gcdump::cli::COMMANDS.iter().position(|c| c.name == form[0]);
    forms.sort_by_key(order);
    forms
}

/// Slow commands: one of their command lines runs on each dump.
const COSTLY: [&str; 4] = ["export", "fleet", "report", "trim"];

/// One in this many of the other command lines runs on a shared dump, since there are several dumps of each kind.
const SHARE: usize = 4;

/// Returns the command lines for a dump, by their number in `lines`: always the same ones.
fn asked(lines: &[String], name: &str) -> Vec<usize> {
    let number = |text: &str| u32::from_le_bytes(blake3::hash(text.as_bytes()).as_bytes()[..4].try_into().unwrap()) as usize;
    let command = |line: &String| line.split(' ').next().unwrap_or_default().to_string();
    let share = if name.starts_with(SHARED) { SHARE } else { 1 };
    let is_asked = |i: &usize| {
        let of = command(&lines[*i]);
        if !COSTLY.contains(&of.as_str()) {
            return number(&format!("{name} {}", lines[*i])) % share == 0;
        }
        let alike: Vec<usize> = (0..lines.len()).filter(|j| command(&lines[*j]) == of).collect();
        alike.get(number(&format!("{name} {of}")) % (alike.len() * share)) == Some(i)
    };
    (0..lines.len()).filter(is_asked).collect()
}

/// Prefixes of the names of dumps: of the repository, and shared ones.
const CORPUS: &str = "corpus/";
const SHARED: &str = "shared/";

/// A dump's line in the file: the addresses for its command lines, and the hash of each answer.
#[derive(Clone)]
struct Row {
    object: String,
    handle: String,
    hashes: BTreeMap<String, String>,
}

/// The hash of an answer that no machine with the dump has computed.
const UNKNOWN: &str = "?";

/// The contents of the file.
#[derive(Default)]
struct Frozen {
    lines: Vec<String>,
    /// Dumps that are left out, with the reasons.
    left_out: BTreeMap<String, String>,
    rows: BTreeMap<String, Row>,
}

impl Frozen {
    fn read() -> Frozen {
        let mut frozen = Frozen::default();
        for line in fs::read_to_string(path()).unwrap_or_default().lines() {
            match line.split_once(' ') {
                None | Some(("#", _)) => {}
                Some(("=", line)) => frozen.lines.push(line.into()),
                Some(("!", dump)) => {
                    let (name, reason) = dump.split_once(": ").unwrap_or_else(|| panic!("{dump}: why is it left out?"));
                    frozen.left_out.insert(name.into(), reason.into());
                }
                Some((name, rest)) => {
                    let mut words = rest.split(' ').map(String::from);
                    let (object, handle) = (words.next().unwrap(), words.next().unwrap());
                    let hashes: Vec<String> = words.collect();
                    let asked = asked(&frozen.lines, name);
                    assert_eq!(hashes.len(), asked.len(), "{name}: not a hash for each command line");
                    let hashes = asked.into_iter().map(|i| frozen.lines[i].clone()).zip(hashes).collect();
                    frozen.rows.insert(name.into(), Row { object, handle, hashes });
                }
            }
        }
        frozen
    }

    fn write(&self) {
        let mut text = String::from(
            "# Hashes of answers, each followed by the exit code if it is not 0: see frozen.rs. After a line for each command line (=) and for each\n\
             # dump that is left out (!) comes a line for each dump: its name, the address of an object, that of a handle, the hashes.\n",
        );
        self.lines.iter().for_each(|line| writeln!(text, "= {line}").unwrap());
        self.left_out.iter().for_each(|(name, reason)| writeln!(text, "! {name}: {reason}").unwrap());
        for (name, row) in self.rows.iter().filter(|(name, _)| !self.left_out.contains_key(*name)) {
            let hash = |i: usize| row.hashes.get(&self.lines[i]).map_or(UNKNOWN, |hash| hash);
            let hashes: Vec<&str> = asked(&self.lines, name).into_iter().map(hash).collect();
            writeln!(text, "{name} {} {} {}", row.object, row.handle, hashes.join(" ")).unwrap();
        }
        fs::write(path(), text).unwrap();
    }
}

/// Freezes the answers about a dump.
fn freeze(lines: &[String], name: &str, row: Row) {
    let _held = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut frozen = Frozen { lines: lines.to_vec(), ..Frozen::read() };
    frozen.rows.insert(name.into(), row);
    frozen.write();
}

/// A dump, with its files.
struct Subject {
    /// The name in the file.
    name: String,
    /// The dump as others have it; compressed in the repository.
    path: PathBuf,
    /// An earlier dump of the same process.
    before: Option<PathBuf>,
    /// The folder of a NativeAOT program.
    program: Option<PathBuf>,
}

/// Returns `path`, decompressed into `folder` if necessary.
fn unpacked(path: &Path, folder: &Path) -> PathBuf {
    if path.extension().is_none_or(|e| e != "zst") {
        return path.into();
    }
    let file = folder.join(path.file_stem().unwrap());
    zstd::stream::copy_decode(File::open(path).unwrap(), File::create(&file).unwrap()).unwrap();
    file
}

/// Opens a dump as `--no-local-files` does.
fn open(path: &str, subject: &Subject) -> Option<Dump> {
    let options = OpenOptions { index: IndexUse::None, ..OpenOptions::default() };
    let options = subject.program.iter().fold(options, |options, program| options.modules(program));
    Dump::open(path, &options).ok()
}

/// The command lines for one dump.
struct Asking<'s> {
    subject: &'s Subject,
    folder: tempfile::TempDir,
    path: String,
    before: Option<String>,
    open: Option<Dump>,
    row: Row,
}

impl<'s> Asking<'s> {
    /// Uses the addresses of `kept`, if there is such a row.
    fn of(subject: &'s Subject, kept: Option<&Row>) -> Asking<'s> {
        let folder = tempfile::tempdir().unwrap();
        let text = |path: &Path| unpacked(path, folder.path()).to_str().unwrap().to_string();
        let (path, before) = (text(&subject.path), subject.before.as_deref().map(text));
        let row = Row { object: "0x1000".into(), handle: "0x1000".into(), hashes: BTreeMap::new() };
        let mut asking = Asking { open: open(&path, subject), subject, folder, path, before, row };
        match kept {
            Some(kept) => (asking.row.object, asking.row.handle) = (kept.object.clone(), kept.handle.clone()),
            None => {
                asking.choose();
                // Choosing fills caches, which are dropped: a run that has the addresses does not choose.
                asking.open = open(&asking.path, subject);
            }
        }
        asking
    }

    /// Chooses an object, preferably of the lab's program, and a handle.
    fn choose(&mut self) {
        let list = |line: &str, key: &str| -> Vec<String> {
            let ran = self.ran(&commands::words(line)).1;
            let answer: Value = serde_json::from_str(&ran.out).unwrap_or_default();
            let rows = answer["data"][key].as_array().into_iter().flatten();
            rows.filter_map(|row| row["address"].as_str().map(String::from)).collect()
        };
        let of_the_lab = list("objects --type Lab.* --count 1000 DUMP", "objects");
        let objects = if of_the_lab.is_empty() { list("objects --count 1000 DUMP", "objects") } else { of_the_lab };
        let handles = list("handles DUMP", "handles");
        let middle = |list: Vec<String>| list.get(list.len() / 2).cloned();
        if let Some(object) = middle(objects) {
            self.row.object = object;
        }
        if let Some(handle) = middle(handles) {
            self.row.handle = handle;
        }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Returns the command line for the dump at `path`.
    fn line(&self, form: &[String], path: &str, before: Option<&str>) -> Vec<String> {
        let inside = format!("{:#x}", u64::from_str_radix(&self.row.object[2..], 16).unwrap() + 8);
        let mut line = commands::filled(form, |word| match word {
            "BEFORE" => Some(before.unwrap_or(path).into()),
            word if commands::is_dump(word) => Some(path.into()),
            "ADDR" => Some(self.row.object.clone()),
            "ANY" => Some(inside.clone()),
            "HANDLE" => Some(self.row.handle.clone()),
            "OUT" => Some(self.out().to_str().unwrap().into()),
            _ => None,
        });
        line.push("--no-local-files".into());
        if !form.iter().any(|w| w == "--dot" || w == "--format") {
            line.push("--json".into());
        }
        if let Some(program) = &self.subject.program {
            line.extend(["--modules".into(), program.to_str().unwrap().into()]);
        }
        line
    }

    /// Runs a command line. Returns its words and the result.
    fn ran(&self, form: &[String]) -> (Vec<String>, Ran) {
        let line = self.line(form, &self.path, self.before.as_deref());
        let several = self.before.is_some() && form.iter().any(|w| w == "BEFORE");
        // The answer also lists memory that other commands found missing.
        let depends_on_others = form[0] == "modules";
        let ran = match &self.open {
            // The open dump and its caches are used.
            Some(dump) if !several && !depends_on_others => {
                let dumps = vec![dump.clone(); form.iter().filter(|w| commands::is_dump(w)).count()];
                let cli = common::parsed(&line);
                common::captured(|streams| cli.run_on(&dumps, streams))
            }
            _ => common::run(&line),
        };
        (line, ran)
    }

    /// Returns `text` without parts that differ between machines or versions.
    fn normalized(&self, form: &[String], text: &str) -> String {
        let program = self.subject.program.as_ref().map(|p| (p.to_str().unwrap().to_string(), "PROGRAM"));
        let places = [(self.out().to_str().unwrap().to_string(), "OUT"), (self.path.clone(), "DUMP")];
        let places = places.into_iter().chain(self.before.clone().map(|path| (path, "BEFORE"))).chain(program);
        let text = places.fold(text.to_string(), |text, (path, word)| if text.contains(&path) { text.replace(&path, word) } else { text });
        let version = concat!("\"gcdump\":\"", env!("CARGO_PKG_VERSION"), "\"");
        let text = text.replacen(version, "\"gcdump\":\"VERSION\"", 1);
        // A table has the path and the time of the dump's file, an index the version.
        let has_facts_of_the_file = matches!(form[0].as_str(), "export" | "fleet" | "index");
        if has_facts_of_the_file { ["\"bytes\":", "\"file_bytes\":", "\"id\":"].into_iter().fold(text, without_values) } else { text }
    }

    /// Returns the files that a command line wrote, except those with a version or a time in them.
    fn written(&self, form: &[String]) -> Vec<(String, Vec<u8>)> {
        let out = self.out();
        let folder = PathBuf::from(format!("{}.export", out.display()));
        let tables = fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        let is_kept = |path: &PathBuf| path.extension().is_some_and(|e| e == "csv") && path.file_stem().is_none_or(|s| s != "dumps");
        let mut files: Vec<PathBuf> = tables.filter(is_kept).collect();
        if out.is_file() && (form[0] == "trim" || form[1] == "heapsnapshot") {
            files.push(out);
        }
        files.sort();
        files.into_iter().map(|path| (path.file_name().unwrap().to_str().unwrap().into(), fs::read(&path).unwrap())).collect()
    }

    /// Returns the hash of the answer to a command line.
    fn hash(&self, form: &[String]) -> String {
        let (_, ran) = self.ran(form);
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        };
        [&ran.out, &ran.err].into_iter().for_each(|text| add(self.normalized(form, text).as_bytes()));
        for (name, bytes) in self.written(form) {
            add(name.as_bytes());
            add(&bytes);
        }
        if form.iter().any(|w| w == "OUT") {
            commands::remove_out(&self.out());
        }
        let code = if ran.exit == Exit::Ok { String::new() } else { ran.exit.code().to_string() };
        short(hasher.finalize().as_bytes()) + &code
    }

    /// Returns the command line as a user types it.
    fn typed(&self, form: &[String]) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
        let line = self.line(form, &text(&self.subject.path), self.subject.before.as_deref().map(text).as_deref());
        let quoted = |word: &String| if word.contains([' ', '*', '<', '>', '(', '"']) { format!("'{word}'") } else { word.clone() };
        line.iter().map(quoted).collect::<Vec<_>>().join(" ").replace(self.out().to_str().unwrap(), "OUT")
    }
}

/// Returns `text` without the values of `key`.
fn without_values(text: String, key: &str) -> String {
    let mut parts = text.split(key);
    let first = parts.next().unwrap().to_string();
    parts.fold(first, |out, part| out + key + part.trim_start_matches(|c: char| c.is_alphanumeric() || c == '"'))
}

/// Returns 12 bits of a hash. A change shows in many answers.
fn short(hash: &[u8; 32]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    hash[..2].iter().map(|byte| char::from(DIGITS[usize::from(byte & 63)])).collect()
}

/// Compares the answers of `subjects` with the frozen ones, or freezes them. With `step`, each gets one in this many command lines, in turn.
fn compare(subjects: Vec<Subject>, step: usize) {
    let forms = forms();
    let lines: Vec<String> = forms.iter().map(|form| form.join(" ")).collect();
    let (frozen, only, bless) = (Frozen::read(), only(), is_blessed());
    let is_asked = |s: &Subject| !frozen.left_out.contains_key(&s.name) && only.as_ref().is_none_or(|only| s.name.contains(only));
    let subjects: Vec<(usize, Subject)> = subjects.into_iter().filter(is_asked).enumerate().collect();
    if !bless {
        let [old, new] = [&frozen.lines, &lines].map(|lines| lines.iter().collect::<BTreeSet<_>>());
        let (added, removed) = (new.difference(&old), old.difference(&new));
        assert!(
            old == new,
            "command lines were added: {:?}, removed: {:?}; {ANEW}",
            added.collect::<Vec<_>>(),
            removed.collect::<Vec<_>>()
        );
    }
    let results = common::each(&subjects, |(i, subject)| {
        let row = frozen.rows.get(&subject.name);
        if row.is_none() && !bless {
            return (0, vec![("none", format!("{}: no answers are frozen; {ANEW}", subject.name))]);
        }
        let start = Instant::now();
        let asking = Asking::of(subject, row);
        let (mut wrong, mut hashes) = (Vec::new(), BTreeMap::new());
        for j in asked(&lines, &subject.name).into_iter().filter(|j| (i + j) % step == 0) {
            let (form, line) = (&forms[j], &lines[j]);
            let hash = asking.hash(form);
            if let Some(expected) = row.and_then(|row| row.hashes.get(line)).filter(|h| **h != hash && *h != UNKNOWN) {
                wrong.push((form[0].as_str(), format!("{}: {hash} is not {expected}: gcdump {}", subject.name, asking.typed(form))));
            }
            hashes.insert(line.clone(), hash);
        }
        println!("{:7.3} s  {}", start.elapsed().as_secs_f64(), subject.name);
        let count = hashes.len();
        if bless {
            freeze(&lines, &subject.name, Row { hashes, ..asking.row.clone() });
            wrong.clear();
        }
        (count, wrong)
    });
    println!("{} answers of {} dumps", results.iter().map(|r| r.0).sum::<usize>(), results.len());
    let wrong: Vec<(&str, String)> = results.into_iter().flat_map(|r| r.1).collect();
    let mut by_command: BTreeMap<&str, usize> = BTreeMap::new();
    wrong.iter().for_each(|(command, _)| *by_command.entry(command).or_default() += 1);
    let shown: Vec<&str> = wrong.iter().take(20).map(|(_, text)| text.as_str()).collect();
    assert!(
        wrong.is_empty(),
        "{} answers are not those that were frozen: {by_command:?}\n{}\nTo see what differs, run such a line with the program of before and with \
         this one.\nIf the new answers are right, {ANEW}",
        wrong.len(),
        shown.join("\n")
    );
}

const ANEW: &str =
    "GCDUMP_BLESS=1 GCDUMP_TEST_FULL=1 cargo test --release --test it frozen:: freezes the answers of all dumps on this machine";

#[test]
fn the_dumps_of_the_repository_give_the_frozen_answers() {
    let all = full() || is_blessed() || only().is_some();
    let dumps = if all { corpus::dumps() } else { corpus::one_of_each() };
    let subject = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().trim_end_matches(".dmp.zst").to_string();
        let before = path.with_file_name(format!("{}.dmp.zst", name.replace(".after", ".before")));
        let before = Some(before).filter(|before| name.contains(".after") && before.is_file());
        Subject { name: format!("{CORPUS}{name}"), path, before, program: None }
    };
    compare(dumps.into_iter().map(subject).collect(), if all { 1 } else { STEP });
}

#[test]
fn the_shared_dumps_give_the_frozen_answers() -> Tested {
    let (mut dumps, mut missing) = common::every_dump(|_| true)?;
    let (further, also_missing) = common::further_dumps(|_| true).unwrap_or_default();
    dumps.extend(further);
    missing.extend(also_missing);
    dumps.sort_by(|a, b| a.name.cmp(&b.name));
    dumps.dedup_by(|a, b| a.name == b.name);
    let subject = |dump: Known| {
        let before = dump.path.with_file_name(format!("{}.dmp", dump.name.replace(".after", ".before")));
        let before = Some(before).filter(|before| dump.name.contains(".after") && before.is_file());
        // Without the program's file, most answers about a NativeAOT program differ.
        let program = common::program_of(&dump.path).ok()?;
        Some(Subject { name: format!("{SHARED}{}", dump.name), program, path: dump.path, before })
    };
    let subjects = dumps.into_iter().filter_map(subject).collect();
    missing.iter().for_each(|name| println!("skipped: {name}: not unpacked in {}", common::unpacked().display()));
    compare(subjects, 1);
    Ok(())
}
