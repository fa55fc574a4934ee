//! A real descriptor with every item changed: items that no reader binds may have any value, and a missing item affects only the commands in
//! the table `descriptor/needs.txt`. `needs-net11.txt` has the items that only real descriptors of .NET 11 have.
//!
//! Each change is first made to the text only, to check that all other items stay as they are. Then commands run without an item, or with an
//! unusable one: all items that no command needs at once, and the others one after the other. `GCDUMP_BLESS=1 cargo test --test it
//! descriptor::` rewrites the table.

mod asked;
mod library;
mod process;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{self, cases, sample};
use asked::{Asked, Outcome};
use gcdump::analysis::HeapExceptionModel;
use gcdump::analysis::{ContractsQuery, RootOptions, RootsQuery, contracts, roots};
use gcdump::internals::contract::{DescriptorItem, Overlay, RawDescriptor, parse_descriptor};
use gcdump::model::{CoverageKind, RootKind, Stacks};
use gcdump::{Dump, Name};
use process::Process;
use text::{Change, Text};

/// The contents of a descriptor, independent of the order of its text.
#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    fields: BTreeMap<(String, String), u64>,
    sizes: BTreeMap<String, Option<u64>>,
    globals: BTreeMap<String, String>,
    contracts: BTreeMap<String, String>,
    children: BTreeMap<String, u64>,
    unusable: BTreeSet<DescriptorItem>,
}

fn content(raw: &RawDescriptor) -> Content {
    let fields = raw.types.iter().flat_map(|(t, raw)| raw.fields.iter().map(move |(f, offset, _)| ((t.clone(), f.clone()), *offset)));
    Content {
        fields: fields.collect(),
        sizes: raw.types.iter().map(|(t, raw)| (t.clone(), raw.size)).collect(),
        globals: raw.globals.iter().map(|(g, raw)| (g.clone(), format!("{:?}", raw.value))).collect(),
        contracts: raw.contracts.iter().cloned().collect(),
        children: raw.sub_descriptors.iter().cloned().collect(),
        unusable: raw.unusable.iter().map(|u| u.0.clone()).collect(),
    }
}

impl Content {
    fn without(&self, item: &DescriptorItem) -> Content {
        let mut rest = self.clone();
        match item {
            DescriptorItem::Type(t) => {
                rest.sizes.remove(t);
                rest.fields.retain(|(of, _), _| of != t);
            }
            DescriptorItem::Size(t) => rest.sizes.insert(t.clone(), None).map_or((), drop),
            DescriptorItem::Field(t, f) => drop(rest.fields.remove(&(t.clone(), f.clone()))),
            DescriptorItem::Global(g) => drop(rest.globals.remove(g)),
            DescriptorItem::Contract(c) => drop(rest.contracts.remove(c)),
        }
        rest
    }
}

#[test]
fn a_change_to_one_item_leaves_all_others() {
    let process = Process::open();
    let mut variants = 0;
    for text in process.texts() {
        let whole = content(&parse_descriptor(text.print().as_bytes()).unwrap());
        assert!(whole.unusable.is_empty());
        assert_eq!(content(&parse_descriptor(text.print_reversed().as_bytes()).unwrap()), whole);
        let step = cases(7, 8);
        for (i, item) in text.items().into_iter().enumerate() {
            for (j, change) in Change::of(&item).iter().enumerate() {
                variants += 1;
                if (i + j) % step != 0 {
                    continue;
                }
                let mut changed = text.clone();
                changed.change(&item, change);
                let found = content(&parse_descriptor(changed.print().as_bytes()).unwrap());
                let mut expected = if change.keeps() { whole.clone() } else { whole.without(&item) };
                if change.is_unusable() {
                    expected.unusable.insert(item.clone());
                }
                if let Some(added) = change.added(&item) {
                    assert_ne!(found, expected, "{item}: {change:?} added nothing");
                    let found = if matches!(item, DescriptorItem::Size(_)) { found } else { found.without(&added) };
                    let found = if let DescriptorItem::Size(t) = &item {
                        found.without(&DescriptorItem::Field(t.clone(), text::ADDED.into()))
                    } else {
                        found
                    };
                    assert_eq!(found, expected, "{item}: {change:?}");
                } else {
                    assert_eq!(found, expected, "{item}: {change:?}");
                }
            }
        }
    }
    assert!(variants > 5_000, "{variants}");
}

/// Changes with which commands run for each item: the item is missing, or unusable.
const KINDS: [Change; 2] = [Change::Remove, Change::Value("-8")];

/// Returns the change of that kind for this item.
fn of_kind<'c>(kind: &'c Change, item: &DescriptorItem) -> &'c Change {
    match (kind, item) {
        (Change::Remove, _) | (_, DescriptorItem::Size(_) | DescriptorItem::Field(..)) => kind,
        _ => &Change::Value("null"),
    }
}

fn change_all<'c>(text: &mut Text, items: &[DescriptorItem], change: impl Fn(&DescriptorItem) -> &'c Change) {
    for item in items {
        if text.has(item) {
            text.change(item, change(item));
        }
    }
}

type Row = BTreeMap<&'static str, Outcome>;
type Table = BTreeMap<(String, usize), Row>;

/// Returns the answers that differ after `item` is changed.
fn row(process: &Process, whole: &Asked, item: &DescriptorItem, kind: usize) -> Row {
    let change = of_kind(&KINDS[kind], item);
    let asked = process.asked(|text| {
        if text.has(item) {
            text.change(item, change);
        }
    });
    whole.differences(&asked)
}

fn rows(process: &Process, whole: &Asked, wanted: &[(DescriptorItem, usize)]) -> Table {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut out = Table::new();
        while let Some((item, kind)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            let row = row(process, whole, item, *kind);
            if !row.is_empty() {
                out.insert((item.to_string(), *kind), row);
            }
        }
        out
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().flat_map(|w| w.join().unwrap()).collect()
    })
}

const KIND_NAMES: [&str; 2] = ["gone", "unusable"];

fn print(table: &Table) -> String {
    let mut out = String::from(
        "# Items of a descriptor that commands need, and what becomes of their answers without them: refused, partial, or\n\
         # changed (complete without what older runtimes do not publish either). Written by tests/it/descriptor.rs.\n",
    );
    for ((item, kind), row) in table {
        let mut by_outcome: BTreeMap<Outcome, Vec<&str>> = BTreeMap::new();
        row.iter().for_each(|(command, outcome)| by_outcome.entry(*outcome).or_default().push(command));
        out.push_str(&format!("{item}, {}:", KIND_NAMES[*kind]));
        for (outcome, commands) in by_outcome {
            let all = commands.len() == asked::COMMANDS.len();
            out.push_str(&format!(" {outcome:?}({})", if all { "all".into() } else { commands.join(" ") }));
        }
        out.push('\n');
    }
    out
}

/// Returns the name by which readers bind an item. Fields of `gc_heap` are globals with workstation GC.
fn name(item: &DescriptorItem) -> &str {
    match item {
        DescriptorItem::Type(name) | DescriptorItem::Size(name) | DescriptorItem::Field(_, name) | DescriptorItem::Contract(name) => name,
        DescriptorItem::Global(name) => name.strip_prefix("GCHeap").unwrap_or(name),
    }
}

/// Whether readers find the item by the form of its name: explicit frames, saved registers.
fn is_found_by_form(item: &DescriptorItem) -> bool {
    match item {
        DescriptorItem::Global(name) => name.contains("Frame") && name.ends_with("Identifier"),
        DescriptorItem::Field(name, _) => name == "CalleeSavedRegisters",
        _ => false,
    }
}

/// Returns every name in the sources that a reader may bind: only these are tried one by one when the table is written. A test checks that the
/// others are not needed.
fn named() -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    // Names are in quotes, or in `data!` and `bind!`.
    each_source(|text| out.extend(text.split(|c: char| !c.is_alphanumeric() && c != '_').map(String::from)));
    out
}

/// Passes the text of every source file to `see`.
fn each_source(mut see: impl FnMut(&str)) {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                see(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
}

/// Returns the lines of a table by item and kind.
fn lines(table: &str) -> BTreeMap<&str, &str> {
    table.lines().filter(|l| !l.starts_with('#')).map(|l| l.split_once(": ").unwrap()).collect()
}

fn is_needed(item: &DescriptorItem, lines: &BTreeMap<&str, &str>) -> bool {
    KIND_NAMES.iter().any(|kind| lines.contains_key(format!("{item}, {kind}").as_str()))
}

fn both_kinds(items: &[DescriptorItem]) -> Vec<(DescriptorItem, usize)> {
    items.iter().flat_map(|i| [(i.clone(), 0), (i.clone(), 1)]).collect()
}

#[test]
fn commands_need_exactly_the_items_in_the_table() {
    check_table(&Process::open(), "needs.txt", &BTreeMap::new());
}

#[test]
fn commands_need_exactly_the_net11_items_in_the_table() {
    let first = std::fs::read_to_string(table_path("needs.txt")).unwrap();
    check_table(&Process::of_net11(), "needs-net11.txt", &lines(&first));
}

/// Known faults: `exceptions` without precise stacks, and `memory` without the bounds of stacks, give other answers without saying so.
const OPEN: [&str; 2] = ["contract GCInfo, unusable", "field Thread.CachedStackBase, unusable"];

fn table_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/descriptor").join(name)
}

/// Compares the table with the answers of commands about `process`; items in `elsewhere` are left as they are.
fn check_table(process: &Process, name: &str, elsewhere: &BTreeMap<&str, &str>) {
    let whole = process.asked(|_| ());
    let path = table_path(name);
    let items = process.texts().flat_map(|t| t.items()).collect::<BTreeSet<_>>().into_iter().filter(|i| !is_needed(i, elsewhere));
    let items: Vec<DescriptorItem> = items.collect();
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        let named = named();
        let candidates: Vec<DescriptorItem> =
            items.iter().filter(|i| named.contains(self::name(i)) || is_found_by_form(i)).cloned().collect();
        std::fs::write(&path, print(&rows(process, &whole, &both_kinds(&candidates)))).unwrap();
    }
    let table = std::fs::read_to_string(path).unwrap();
    let lines = lines(&table);

    // All items that no command needs are changed at once.
    let (some, none): (Vec<DescriptorItem>, Vec<DescriptorItem>) = items.iter().cloned().partition(|i| is_needed(i, &lines));
    let least = if elsewhere.is_empty() { 100 } else { 20 };
    assert!(some.len() > least && none.len() > 200, "{} {}", some.len(), none.len());
    // A type may have fields that are needed although its size is not.
    for kind in sample([&KINDS[0], &KINDS[1], &Change::Value("{\"a\":[1]}"), &Change::Value("true")], 4) {
        let asked = process.asked(|text| change_all(text, &none, |i| of_kind(kind, i)));
        assert_eq!(whole.differences(&asked), Row::new(), "{kind:?} of all that is not needed");
    }
    // Other types that a newer runtime may write.
    let asked = process.asked(|text| change_all(text, &items, |_| &Change::Retype));
    assert_eq!(whole.differences(&asked), Row::new(), "other types of all fields and globals");
    let asked = process.asked(Text::reverse);
    assert_eq!(whole.differences(&asked), Row::new(), "another order");
    let asked = process.asked(Text::enrich);
    assert_eq!(whole.differences(&asked), Row::new(), "new items");

    // A command that needs an unusable item must say so.
    let is_silent = |item: &str, outcomes: &str| item.ends_with("unusable") && outcomes.contains("Changed") && !OPEN.contains(&item);
    let silent: Vec<_> = lines.iter().filter(|(item, outcomes)| is_silent(item, outcomes)).collect();
    assert!(silent.is_empty(), "{silent:#?}");

    // The others are changed one by one.
    let wanted: Vec<(DescriptorItem, usize)> = both_kinds(&some).into_iter().step_by(cases(121, 12)).collect();
    let found = print(&rows(process, &whole, &wanted));
    let found = self::lines(&found);
    for (item, kind) in &wanted {
        let key = format!("{item}, {}", KIND_NAMES[*kind]);
        assert_eq!(found.get(key.as_str()), lines.get(key.as_str()), "{key}");
    }
}

/// The exceptions of a heap: types and methods of the frames.
type Frames = Vec<(Option<Name>, Vec<Option<Name>>)>;

fn frames(dump: &Dump) -> (bool, Frames) {
    let answer = dump.runtime().unwrap().heap().unwrap().exceptions().unwrap();
    let methods = |e: &HeapExceptionModel| e.stack.iter().map(|f| f.method.clone()).collect();
    (answer.complete(), answer.exceptions.iter().map(|e| (e.type_name.clone(), methods(e))).collect())
}

#[test]
fn stack_traces_are_read_under_the_names_of_net11() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("dumps/corpus/net10-wks-crash-heap.dmp.zst");
    let before = frames(&gcdump::OpenOptions::default().open(&path).unwrap());
    assert!(before.0 && before.1.iter().any(|e| !e.1.is_empty()), "{before:?}");
    let text = std::fs::read_to_string(root.join("src/contract/overlay/data/net10.0-linux-x64.json")).unwrap();
    let newer = text.replace(r#""IP": 0, "SP": 8,"#, r#""Ip": 0,"#);
    assert_ne!(text, newer);
    let overlays = vec![Overlay::parse(newer.as_bytes(), true).unwrap()];
    let options = gcdump::OpenOptions { overlays, ..gcdump::OpenOptions::default() };
    assert_eq!(frames(&options.open(&path).unwrap()).1, before.1);
    // A descriptor without a layout of stack traces.
    let path = common::unpacked().join("net11shape-wks-oom-heap.dmp");
    if path.is_file() {
        let (complete, found) = frames(&gcdump::OpenOptions::default().open(&path).unwrap());
        assert!(complete && found.iter().any(|e| e.1.len() == 1), "{found:?}");
    }
}

#[test]
fn advertised_memory_outside_of_the_heap_is_reported_as_missing() {
    let process = Process::open();
    let kind = RootKind::ExternalMemory;
    let covered = |dump: &Dump| {
        let options = RootOptions { stacks: Stacks::None, ..RootOptions::default() };
        let query = RootsQuery { options, ..RootsQuery::default() };
        let answer = roots(&dump.runtime().unwrap().heap().unwrap(), &query).unwrap();
        let row = answer.coverage.iter().find(|c| c.kind == kind).map(|c| c.coverage);
        (answer.complete(), row)
    };
    let (complete, row) = covered(&process.dump(|_| ()));
    assert_eq!(row, None);
    // The variable of slot 3, the list of threads, is not null.
    for global in ["[[3],\"pointer\"]", "[[9999],\"pointer\"]", "null"] {
        let dump = process.dump(|text| {
            if text.has(&DescriptorItem::Contract("Thread".into())) {
                text.add("contracts", "ExternalMemoryHandles", "\"c1\"");
                text.add("globals", "ExternalMemoryHandles", global);
            }
        });
        assert_eq!(covered(&dump), (false, Some(CoverageKind::Unavailable)), "{global}");
    }
    assert!(complete);
}

#[test]
fn contracts_distinguish_unneeded_from_missing_items() {
    let process = Process::open();
    let dump = process.dump(|text| {
        if text.has(&DescriptorItem::Contract("Thread".into())) {
            text.add("contracts", "SomethingNew", "\"c1\"");
            text.change(&DescriptorItem::Contract("Exception".into()), &Change::Remove);
            text.change(&DescriptorItem::Contract("Loader".into()), &Change::Value("{}"));
            text.change(&DescriptorItem::Field("Thread".into(), "State".into()), &Change::Value("-8"));
        }
    });
    let report = contracts(&dump.runtime().unwrap(), &ContractsQuery { checks_only: true }).data;
    let support = |name: &str| report.contracts.iter().find(|c| c.name == name).unwrap().support.name();
    let names = ["SomethingNew", "Exception", "Loader", "Thread", "StressLog"];
    assert_eq!(names.map(support), ["not-needed", "not-advertised", "unusable", "supported", "known-but-unsupported"]);
    let items: Vec<&str> = report.unusable.iter().map(|u| u.item.as_str()).collect();
    assert_eq!(items, ["field Thread.State", "contract Loader"]);
}
