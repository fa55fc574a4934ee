//! Checks `seeds.txt`, which lists what interfaces of garbage collectors ask for, and the answer to each. Every command line is run and every
//! field looked up. `docs/coverage.md` has the result; `GCDUMP_BLESS=1` rewrites that part.

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use gcdump::cli::{COMMANDS, Exit};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::common::commands::{is_dump, words};
use crate::common::{COVERAGE, each, full, number, run, sample};
use crate::schema::assert_fits;
use crate::support::{Shape, Spec};
use table::{Field, Let, Says, Shown, State, Table};

const RUNTIMES: [&str; 4] = ["8", "9", "10", "11"];

/// A dump, or a pair of dumps of one process.
struct Subject<'a> {
    /// Whether the process is one of [`SYNTHETIC`].
    made: bool,
    name: &'a str,
    pair: bool,
}

/// Position in the table: the numbers of a section and of a row.
type Place = (usize, usize);

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

fn unpacked(name: &str) -> NamedTempFile {
    let file = NamedTempFile::with_suffix(".dmp").unwrap();
    zstd::stream::copy_decode(File::open(corpus(name)).unwrap_or_else(|e| panic!("{name}: {e}")), file.as_file()).unwrap();
    file
}

/// Processes of .NET 11, with values that no real dump has.
const SYNTHETIC: [&str; 4] =
    ["synthetic: handles of every kind", "synthetic: segments", "synthetic: during a collection", "synthetic: allocating"];

fn synthetic(name: &str) -> NamedTempFile {
    let features = &[("FeatureComWrappers", 1), ("FeatureObjCMarshal", 0), ("FeatureJavaMarshal", 1)];
    let standard = Spec { features, global_context: true, ..Spec::standard(Shape::ALL[0]) };
    let target = match SYNTHETIC.iter().position(|n| *n == name).unwrap() {
        0 => standard.build(),
        1 => Spec { regions: false, ..standard }.build(),
        2 => Spec { gc_in_progress: true, ..standard }.build(),
        _ => {
            let mut target = standard.build();
            let expected = target.expected();
            let threads = expected["threads"].as_array().unwrap();
            let end =
                threads.iter().filter(|t| !t["alloc_pointer"].is_null()).map(|t| number(&t["alloc_pointer"])).find(|n| *n > 0).unwrap();
            let objects = expected["objects"].as_array().unwrap().iter().map(|o| number(&o[0]));
            // The object before the allocation context has its space, but nothing was written there.
            let last = objects.filter(|at| *at < end).max().unwrap();
            target.memory.bytes(last, &vec![0; (end - last) as usize]);
            target
        }
    };
    let mut file = NamedTempFile::with_suffix(".dmp").unwrap();
    file.write_all(&target.to_elf_core()).unwrap();
    file
}

impl Subject<'_> {
    /// The words for its files in command lines.
    fn files(&self) -> Vec<(&'static str, NamedTempFile)> {
        match self {
            Subject { made: true, name, .. } => vec![("DUMP", synthetic(name))],
            Subject { pair: true, name, .. } => {
                vec![("BEFORE", unpacked(&format!("{name}.before"))), ("AFTER", unpacked(&format!("{name}.after")))]
            }
            Subject { name, .. } => vec![("DUMP", unpacked(name))],
        }
    }

    /// Whether it has to show the field.
    fn is_asked(&self, field: &Field) -> bool {
        let pair = words(&field.command).iter().any(|w| w == "BEFORE");
        pair == self.pair && (!self.made || field.shown != Shown::Value)
    }
}

/// The answers about one subject: each command line is run once.
struct Answers<'a> {
    table: &'a Table,
    name: &'a str,
    files: Vec<(&'static str, NamedTempFile)>,
    known: BTreeMap<String, Value>,
}

impl Answers<'_> {
    /// Returns the value of a placeholder for this dump; `None` if the dump has none.
    fn filled(&mut self, word: &str) -> Option<String> {
        if let Some((_, file)) = self.files.iter().find(|f| f.0 == word) {
            return Some(file.path().to_str().unwrap().to_string());
        }
        assert!(!is_dump(word), "{}: no {word}", self.name);
        match self.table.lets.get(word) {
            None => Some(word.to_string()),
            Some(Let::Word(stands)) => Some(stands.clone()),
            Some(Let::First(command, path)) => {
                let data = self.data(command)?;
                let found = table::find(data, path).unwrap_or_else(|e| panic!("{word}: {e}"));
                found.first().map(|v| v.as_str().unwrap_or_else(|| panic!("{word}: {v}")).to_string())
            }
        }
    }

    /// Returns `data` of the answer, which must fit its schema and be complete for a real dump; `None` if the dump does not have the value of
    /// a placeholder.
    fn data(&mut self, command: &str) -> Option<&Value> {
        if !self.known.contains_key(command) {
            let mut args = words(command).iter().map(|w| self.filled(w)).collect::<Option<Vec<_>>>()?;
            args.extend(["--json", "--no-local-files"].map(Into::into));
            let ran = run(&args);
            // Synthetic processes have no stacks, so holders of objects are partly unknown.
            let fits = ran.exit == Exit::Ok || SYNTHETIC.contains(&self.name) && ran.exit == Exit::Partial;
            assert!(fits, "{command} on {}: {:?} {}{}", self.name, ran.exit, ran.out, ran.err);
            let mut answer = ran.json();
            assert_fits(&args[0], &answer);
            self.known.insert(command.to_string(), answer["data"].take());
        }
        self.known.get(command)
    }
}

/// Returns the best state of each field in the dumps of one runtime, and the faults. Once a field has a value, no further dump is checked for
/// it.
fn seen(table: &Table, subjects: &[Subject<'_>]) -> (BTreeMap<Place, State>, BTreeSet<String>) {
    let (mut states, mut wrong) = (BTreeMap::new(), BTreeSet::new());
    for subject in subjects {
        let mut answers = Answers { table, name: subject.name, files: subject.files(), known: BTreeMap::new() };
        for (place, field) in table.fields().filter(|(_, f)| subject.is_asked(f)) {
            let best = states.get(&place).copied();
            if best == Some(State::Value) {
                continue;
            }
            let Some(data) = answers.data(&field.command) else { continue };
            match table::state(data, &field.path, &field.kind) {
                Ok(state) => drop(states.insert(place, best.map_or(state, |b| b.max(state)))),
                Err(why) => drop(wrong.insert(format!("{}: {why}", table.item(place)))),
            }
        }
    }
    (states, wrong)
}

#[test]
fn every_item_is_answered_or_cannot_be() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/seeds.txt")).unwrap();
    let table = Table::parse(&text.replace("\r\n", "\n")).unwrap();
    let mut table = table;
    if !full() {
        // A tenth of the rows, for every runtime.
        table.sections.iter_mut().for_each(|section| section.rows = sample(std::mem::take(&mut section.rows), 10));
    }
    for (_, field) in table.fields() {
        assert!(COMMANDS.iter().any(|c| c.name == words(&field.command)[0]), "{}: no such command", field.command);
    }
    let listed = |runtime: &str, pair| {
        let lists = if pair { &table.pairs } else { &table.dumps };
        lists.iter().filter(|l| l.0 == runtime).flat_map(|l| &l.1).map(|name| Subject { made: false, name, pair }).collect::<Vec<_>>()
    };
    let known = |l: &(String, Vec<String>)| RUNTIMES.contains(&l.0.as_str());
    assert!(table.dumps.iter().chain(&table.pairs).all(known), "a runtime without a column");
    let mut by_runtime: Vec<Vec<Subject<'_>>> =
        RUNTIMES.iter().map(|r| listed(r, false).into_iter().chain(listed(r, true)).collect()).collect();
    by_runtime.push(SYNTHETIC.map(|name| Subject { made: true, name, pair: false }).into());

    let (mut wrong, mut states) = (BTreeSet::new(), Vec::new());
    for (best, bad) in each(&by_runtime, |subjects| seen(&table, subjects)) {
        states.push(best);
        wrong.extend(bad);
    }
    let synthetic = states.pop().unwrap();
    for (place, field) in table.fields() {
        let real = states.iter().filter_map(|s| s.get(&place).copied()).max();
        if let Err(why) = field.shown.holds(real, synthetic.get(&place).copied()) {
            wrong.insert(format!("{}: {} of {}: {why}", table.item(place), field.path, field.command));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.into_iter().collect::<Vec<_>>().join("\n"));
    if full() {
        document(&table, &states);
    }
}

/// Fails if the part of `docs/coverage.md` is outdated. `states` has those of each runtime.
fn document(table: &Table, states: &[BTreeMap<Place, State>]) {
    let rows = || table.sections.iter().flat_map(|s| &s.rows);
    let answered = rows().filter(|r| matches!(r.says, Says::Field(_))).count();
    let mut out = format!(
        "{} items: {answered} are answered, {} cannot be known from a dump.\n",
        rows().count(),
        rows().filter(|r| matches!(r.says, Says::Why(_))).count()
    );
    for (s, section) in table.sections.iter().enumerate() {
        out.push_str(&format!("\n### {}\n\n", section.title));
        if let Some(note) = &section.note {
            out.push_str(&format!("{note}\n\n"));
        }
        out.push_str("| item | command | JSON field, or why not | .NET");
        out.push_str(&RUNTIMES.map(|r| format!(" {r} |")).concat());
        out.push_str("\n| --- | --- | --- | --- | --- | --- | --- |\n");
        for (r, row) in section.rows.iter().enumerate() {
            match &row.says {
                Says::Why(why) => out.push_str(&format!("| {} | – | {why} | | | | |\n", row.item)),
                Says::Field(field) => {
                    let note = if field.shown == Shown::Synthetic { " (synthetic dumps)" } else { "" };
                    let cells: Vec<&str> = states.iter().map(|of| of.get(&(s, r)).map_or("–", |s| s.word())).collect();
                    let cells = cells.join(" | ");
                    out.push_str(&format!("| {} | `{}` | `{}`{note} | {cells} |\n", row.item, field.command, field.path));
                }
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/coverage.md");
    let _guard = COVERAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let old = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = old.split_once("<!-- seeds -->\n").expect("the first marker");
    let (_, tail) = rest.split_once("<!-- end of seeds -->").expect("the second marker");
    let new = format!("{head}<!-- seeds -->\n{out}<!-- end of seeds -->{tail}");
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        std::fs::write(&path, new).unwrap();
    } else {
        assert!(old == new, "docs/coverage.md is outdated; GCDUMP_BLESS=1 cargo test --test it seeds:: rewrites it");
    }
}

#[test]
fn a_wrong_row_is_found() {
    let data = json!({ "a": [{ "b": "0x10", "c": null, "k": "x" }, { "b": "0x0", "c": null, "k": "y" }], "n": 0, "e": [], "z": null });
    let of = |path: &str, kind: &str| table::state(&data, path, kind);
    assert_eq!(of("a[].b", "address"), Ok(State::Value));
    assert_eq!(of("a[k=y].b", "address"), Ok(State::Zero));
    assert_eq!(of("a[k=z].b", "address"), Ok(State::Absent));
    assert_eq!((of("n", "number"), of("n", "offset")), (Ok(State::Zero), Ok(State::Value)));
    assert_eq!((of("e", "list"), of("a", "list")), (Ok(State::Zero), Ok(State::Value)));
    assert_eq!(
        (of("a[].c", "number"), of("e[].x", "number"), of("z.x", "number")),
        (Ok(State::Absent), Ok(State::Absent), Ok(State::Absent))
    );
    for (path, kind) in [("a[].d", "text"), ("x", "number"), ("a[x=y].b", "address"), ("a.b", "address"), ("n.x", "number")] {
        assert!(of(path, kind).is_err(), "{path}");
    }
    for (path, kind) in [("a[].b", "number"), ("n", "address"), ("a[].k", "address"), ("a[].b", "text"), ("n", "nmber"), ("a", "object")] {
        assert!(of(path, kind).is_err(), "{path} is not a {kind}");
    }
    let holds = |shown: Shown, real, made| shown.holds(real, made).is_ok();
    assert!(holds(Shown::Value, Some(State::Value), None) && holds(Shown::Zero, Some(State::Zero), Some(State::Value)));
    assert!(holds(Shown::Synthetic, Some(State::Absent), Some(State::Value)) && holds(Shown::Synthetic, None, Some(State::Value)));
    for real in [None, Some(State::Absent), Some(State::Zero)] {
        assert!(!holds(Shown::Value, real, None), "{real:?}");
    }
    for real in [None, Some(State::Absent), Some(State::Value)] {
        assert!(!holds(Shown::Zero, real, Some(State::Value)), "{real:?}");
    }
    assert!(!holds(Shown::Synthetic, Some(State::Value), Some(State::Value)) && !holds(Shown::Synthetic, None, Some(State::Zero)));
    assert!(!holds(Shown::Zero, Some(State::Zero), None) && !holds(Shown::Zero, Some(State::Zero), Some(State::Zero)));
}

#[test]
fn a_wrong_table_is_refused() {
    let table = |rows: &str| Table::parse(&format!("dumps 8: a\nlet X = y\n\n== S\n{rows}\n"));
    assert!(table("a | oom DUMP | heaps : list\nb | - | asks a process for something").is_ok());
    let wrong = [
        "a | oom DUMP | heaps",
        "a | oom DUMP | heaps : list sometimes",
        "a | oom | heaps : list",
        "a | - | no",
        "a",
        "a | oom DUMP | heaps : list\na | oom DUMP | any : bool",
        "dumps 8",
    ];
    for rows in wrong {
        assert!(table(rows).is_err(), "{rows}");
    }
    assert!(Table::parse("a | oom DUMP | heaps : list").is_err());
}
