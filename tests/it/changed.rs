//! Words at the start, middle or end of lists are changed, in real dumps and in synthetic processes: the answer stays the same, or it is
//! partial and a note names what is missing. The words are found through the descriptor and the program's own answers.

use std::path::Path;

use gcdump::cli::Exit;
use gcdump::internals::base::Addr;
use gcdump::internals::dump::{self, Bytes, OpenOptions as FileOptions};
use gcdump::internals::session::{Dump, OpenOptions};
use serde_json::Value;

use crate::common::{self, NOWHERE, number, unpacked};
use crate::support::{Shape, Spec};

/// Address, value, and number of bytes.
pub(crate) type Write = (u64, u64, u64);

/// A dump that tests change.
pub(crate) struct Whole {
    pub(crate) name: String,
    bytes: Vec<u8>,
    pub(crate) dump: Dump,
}

fn opened(name: &str, bytes: Vec<u8>) -> Dump {
    let file = dump::open_bytes(Bytes::Owned(bytes), Path::new(name), &FileOptions::default()).unwrap();
    Dump::of(file, &OpenOptions::default())
}

/// Returns exit code, answer and warnings.
pub(crate) fn ask(dump: &Dump, command: &str) -> (Exit, Value, Value) {
    let words = command.split(' ').chain(["x.dmp", "--json", "--no-local-files"]);
    let cli = common::parsed(&words.collect::<Vec<_>>());
    let ran = common::captured(|streams| cli.run_on(std::slice::from_ref(dump), streams));
    assert!(!ran.out.is_empty(), "{command}: {:?} {}", ran.exit, ran.err);
    let mut answer = ran.json();
    (ran.exit, answer["data"].take(), answer["warnings"].take())
}

/// Returns the messages of warnings.
pub(crate) fn messages(warnings: &Value) -> Vec<&str> {
    warnings.as_array().unwrap().iter().map(|w| w["message"].as_str().unwrap()).collect()
}

impl Whole {
    pub(crate) fn of(name: &str, bytes: Vec<u8>) -> Whole {
        Whole { name: name.into(), dump: opened(name, bytes.clone()), bytes }
    }

    /// Opens a dump, if it is on this machine.
    pub(crate) fn named(name: &str) -> Option<Whole> {
        Some(Whole::of(name, common::bytes_of(name)?))
    }

    /// Returns the available ones of the dumps `names`, and the synthetic processes `specs` of every architecture.
    fn all(names: &[&str], spec: impl Fn(Shape) -> Vec<Spec>) -> Vec<Whole> {
        let mut out: Vec<Whole> = common::sample(names, 3).into_iter().filter_map(|name| Whole::named(name)).collect();
        for shape in common::sample(Shape::ALL, 2) {
            let specs = spec(shape);
            out.extend(specs.iter().map(|spec| {
                let name = format!("{shape:?}, server {:?}, regions {}", spec.server, spec.regions);
                Whole::of(&name, spec.build().to_elf_core())
            }));
        }
        out
    }

    pub(crate) fn pointer(&self, name: &str) -> u64 {
        self.dump.runtime().unwrap().descriptor().pointer(name).unwrap().0
    }

    pub(crate) fn offset(&self, of: &str, field: &str) -> u64 {
        self.dump.runtime().unwrap().descriptor().offset(of, field).unwrap()
    }

    pub(crate) fn word(&self, at: u64) -> u64 {
        self.dump.memory().word(Addr(at)).unwrap()
    }

    pub(crate) fn u32(&self, at: u64) -> u64 {
        self.dump.memory().u32(Addr(at)).unwrap().into()
    }

    pub(crate) fn p(&self) -> u64 {
        self.dump.memory().ptr_bytes()
    }

    /// Opens the dump with changed words.
    pub(crate) fn with(&self, writes: &[Write]) -> Dump {
        opened(&self.name, self.bytes_with(writes))
    }

    /// Returns the file with changed words.
    pub(crate) fn bytes_with(&self, writes: &[Write]) -> Vec<u8> {
        let words: Vec<_> = writes.iter().map(|(at, value, len)| (Addr(*at), *value, *len as usize)).collect();
        common::with_words(self.dump.file(), &self.bytes, self.dump.memory().shape().endian, &words)
    }

    /// Runs `commands` on the dump with `writes`: each gives the same answer as before, or a partial one. A warning of the first one contains
    /// `message`, unless that is empty. Returns how many answers are partial.
    fn check(&self, what: &str, writes: &[Write], message: &str, commands: &[&str]) -> usize {
        let changed = self.with(writes);
        let mut partial = 0;
        for (i, command) in commands.iter().enumerate() {
            let (before, whole, _) = ask(&self.dump, command);
            let (exit, answer, warnings) = ask(&changed, command);
            let what = format!("{}: {what}: {command}: {exit:?}, {warnings}", self.name);
            if exit == Exit::Partial {
                assert!(answer["complete"] == false && !messages(&warnings).is_empty(), "{what}");
                partial += 1;
            } else {
                assert!(exit == before && answer == whole, "{what}\n{answer}\n{whole}");
            }
            assert!(i > 0 || messages(&warnings).iter().any(|m| m.contains(message)) || message.is_empty(), "{what}");
        }
        partial
    }
}

/// Heap addresses; 0 for the heap of workstation GC.
pub(crate) fn heaps(whole: &Whole) -> Vec<u64> {
    whole.dump.runtime().unwrap().gc().unwrap().facts().heaps.iter().map(|h| h.address.map_or(0, |a| a.0)).collect()
}

/// Returns the address of an item of the heap at `heap`.
pub(crate) fn item(whole: &Whole, heap: u64, name: &str) -> u64 {
    if heap == 0 { whole.pointer(&format!("GCHeap{name}")) } else { heap + whole.offset("GCHeap", name) }
}

const HEAPS: [&str; 9] = [
    "net10-wks-basics-heap",
    "net10-seg-basics-heap",
    "net10-svr-basics-heap",
    "net10-segsvr-basics-heap",
    "net10-datas-basics-heap",
    "net11shape-wks-basics-full",
    "net11shape-seg-basics-heap",
    "aot9-wks-crash-kernel",
    "net8-wks-handles-heap",
];

fn specs(shape: Shape) -> Vec<Spec> {
    let one = Spec::standard(shape);
    vec![one.clone(), Spec { regions: false, ..one.clone() }, Spec { server: Some(2), ..one }]
}

#[test]
fn a_generation_without_segments_is_reported() {
    let (mut heads, mut young) = (0, 0);
    for whole in Whole::all(&HEAPS, specs) {
        let (exit, _, warnings) = ask(&whole.dump, "segments");
        assert_eq!(exit, Exit::Ok, "{}: {warnings}", whole.name);
        let runtime = whole.dump.runtime().unwrap();
        let size = runtime.descriptor().size_of("Generation").unwrap();
        let regions = runtime.gc().unwrap().facts().regions;
        for heap in heaps(&whole) {
            let first = item(&whole, heap, "GenerationTable") + whole.offset("Generation", "StartSegment");
            for g in if regions { 0..5 } else { 2..5 } {
                let what = format!("generation {g} of the heap at {heap:#x}");
                let commands = ["segments", "stat", "heap"];
                assert_eq!(whole.check(&what, &[(first + g * size, 0, whole.p())], "the first segments of", &commands), 3, "{what}");
                heads += 1;
            }
            let at = item(&whole, heap, "EphemeralHeapSegment");
            for value in [0, NOWHERE, at] {
                let what = format!("ephemeral segment {value:#x} of the heap at {heap:#x}");
                let message = "is not on any segment list";
                assert_eq!(whole.check(&what, &[(at, value, whole.p())], message, &["segments", "stat"]), 2, "{what}");
                young += 1;
            }
        }
    }
    println!("{heads} heads of lists, {young} ephemeral segments");
}

#[test]
fn a_collection_that_moves_segments_may_have_none() {
    for shape in crate::common::shapes() {
        let spec = Spec { gc_in_progress: true, ..Spec::standard(shape) };
        let whole = Whole::of("collecting", spec.build().to_elf_core());
        let size = whole.dump.runtime().unwrap().descriptor().size_of("Generation").unwrap();
        let gen1 = item(&whole, 0, "GenerationTable") + size + whole.offset("Generation", "StartSegment");
        let (exit, _, warnings) = ask(&whole.with(&[(gen1, 0, shape.ptr)]), "segments");
        assert_eq!((exit, warnings.as_array().unwrap().len()), (Exit::Ok, 1), "{warnings}");
        assert_eq!(warnings[0]["kind"], "gc-moving");
    }
}

#[test]
fn a_heap_without_a_finalization_queue_is_reported() {
    for whole in Whole::all(&HEAPS, specs) {
        for heap in heaps(&whole) {
            let at = item(&whole, heap, "FinalizeQueue");
            let what = format!("the queue of the heap at {heap:#x}");
            assert!(
                whole.check(&what, &[(at, 0, whole.p())], "its address is null", &["finalizers", "roots", "heap --detail"]) >= 2,
                "{what}"
            );
        }
    }
}

/// Returns the array of tables of the only bucket.
fn tables(whole: &Whole) -> (u64, u64) {
    let mut map = whole.pointer("HandleTableMap");
    let count = whole.dump.runtime().unwrap().descriptor().number("InitialHandleTableArraySize").unwrap();
    loop {
        let buckets = whole.word(map + whole.offset("HandleTableMap", "BucketsPtr"));
        let bucket = (0..count).map(|i| whole.word(buckets + i * whole.p())).find(|bucket| *bucket != 0);
        if let Some(bucket) = bucket {
            let at = bucket + whole.offset("HandleTableBucket", "Table");
            return (at, whole.word(at));
        }
        map = whole.word(map + whole.offset("HandleTableMap", "Next"));
    }
}

#[test]
fn missing_handle_tables_are_reported() {
    let names = [
        "net10-wks-basics-heap",
        "net10-svr-handles-heap",
        "net10-datas-basics-heap",
        "net11shape-svr-handles-heap",
        "aot9-wks-crash-kernel",
        "net8-svr-handles-heap",
        "net9-wks-handles-heap",
    ];
    let commands = ["handles", "roots", "segments --free"];
    let (mut segments, mut slots) = (0, 0);
    for whole in Whole::all(&names, |shape| vec![Spec::standard(shape), Spec { server: Some(2), ..Spec::standard(shape) }]) {
        let (exit, answer, warnings) = ask(&whole.dump, "handles");
        assert_eq!(exit, Exit::Ok, "{}: {warnings}", whole.name);
        let (bucket, array) = tables(&whole);
        let p = whole.p();
        assert_eq!(whole.check("no tables", &[(bucket, 0, p)], "has no tables", &commands), 3);
        let count = answer["tables"].as_u64().unwrap();
        for slot in 0..count {
            let at = array + slot * p;
            // Before .NET 11 only the tables show the number of processors: without the last table, there seem to be fewer.
            let heaps = whole.dump.runtime().unwrap().gc().unwrap().facts().heap_count.unwrap();
            let known = slot + 1 < count || count <= heaps;
            let list = whole.word(at) + whole.offset("HandleTable", "SegmentList");
            if known {
                assert_eq!(whole.check(&format!("no segment in slot {slot}"), &[(list, 0, p)], "handle table", &commands), 3);
                segments += 1;
            }
            for other in (0..count.min(3)).filter(|other| *other != slot) {
                let twice = [(at, whole.word(array + other * p), p)];
                assert_eq!(
                    whole.check(&format!("slot {other} in slot {slot}"), &twice, "", &commands) > 0,
                    slot != other,
                    "{}",
                    whole.name
                );
            }
            if known {
                assert_eq!(whole.check(&format!("slot {slot} is null"), &[(at, 0, p)], "", &commands), 3);
                slots += 1;
            }
        }
    }
    println!("{segments} lists of segments, {slots} slots");
}

#[test]
fn a_truncated_list_of_timers_is_reported() {
    let (mut cut, mut bent) = (0, 0);
    for name in common::sample(["net10-wks-pool-heap", "net10-wks-async-heap", "net10-wks-http-heap", "net8-wks-pool-heap"], 4) {
        let Some(whole) = Whole::named(name) else { continue };
        let (exit, answer, warnings) = ask(&whole.dump, "timers");
        assert_eq!(exit, Exit::Ok, "{name}: {warnings}");
        for timer in answer["timers"].as_array().unwrap().iter().filter(|t| !t["due_ms"].is_null()) {
            let object = timer["object"].as_str().unwrap();
            let (_, fields, _) = ask(&whole.dump, &format!("object {object}"));
            let next = fields["fields"].as_array().unwrap().iter().find(|f| f["name"] == "_next").unwrap();
            let at = number(&next["address"]);
            let what = format!("the timer after {object}");
            if whole.word(at) != 0 {
                assert_eq!(whole.check(&format!("no {what}"), &[(at, 0, 8)], "cut short", &["timers"]), 1);
                cut += 1;
            }
            // An address that is not an object, and an object of another type.
            for value in [NOWHERE, number(&answer["timers"][0]["state"])] {
                assert_eq!(whole.check(&what, &[(at, value, 8)], "that is not a timer", &["timers"]), 1);
                bent += 1;
            }
        }
    }
    println!("{cut} lists cut short, {bent} bent");
    assert!(cut > common::cases(0, 3) && bent > common::cases(3, 20));
}

#[test]
fn an_array_with_unread_elements_is_reported() {
    let Some(whole) = Whole::named("net10-wks-async-heap") else { return };
    let (_, answer, _) = ask(&whole.dump, "statics --type System.Threading.TimerQueue");
    let of = answer["statics"].as_array().unwrap().iter().find(|s| s["name"] == "<Instances>k__BackingField").unwrap();
    let length = number(&of["object"]) + 8;
    assert!(whole.u32(length) > 0);
    assert_eq!(whole.check("a long array of queues", &[(length, 100_000, 4)], "only the first 4,096 elements", &["timers"]), 1);
}

#[test]
fn a_sync_table_with_a_wrong_end_is_reported() {
    let mut partial = 0;
    let names = ["net10-wks-locks-heap", "net10-wks-deadlock-heap", "net10-svr-threads-heap", "net8-wks-threads-heap"];
    for name in common::sample(names, 4) {
        let Some(whole) = Whole::named(name) else { continue };
        let cache = whole.word(whole.pointer("SyncBlockCache"));
        let at = cache + whole.offset("SyncBlockCache", "FirstFreeIndex");
        let (end, capacity) = (whole.u32(at), whole.u32(cache + whole.offset("SyncBlockCache", "Capacity")));
        assert!(0 < end && end <= capacity, "{name}: {end} of {capacity}");
        // Each end has a different first lock that is missing, but a few are enough.
        let ends = (0..end).step_by((end as usize).div_ceil(common::cases(2, 10)));
        for value in common::sample(ends.chain([capacity + 1, u32::MAX.into()]), 4) {
            partial += whole.check(&format!("end {value} of {end}"), &[(at, value, 4)], "", &["locks --all", "threads --waits"]);
        }
        for value in common::sample([0, capacity + 1], 2) {
            let message = "the first unused index";
            assert_eq!(whole.check(&format!("end {value} of {end}"), &[(at, value, 4)], message, &["locks", "threads --waits"]), 2);
        }
        if common::full() {
            whole.check("an end beyond what is read", &[(at, 1 << 25, 4)], "are read", &["locks"]);
        }
    }
    println!("{partial} partial answers");
}

#[test]
fn an_endless_list_of_thread_statics_is_reported() {
    // Trimmed dumps do not have lists that no command searched.
    let Ok(bytes) = std::fs::read(unpacked().join("net10-wks-basics-heap.dmp")) else { return };
    let whole = Whole::of("net10-wks-basics-heap", bytes);
    let (_, threads, _) = ask(&whole.dump, "threads");
    let mut bent = 0;
    for thread in threads["threads"].as_array().unwrap() {
        let locals = whole.word(number(&thread["address"]) + whole.offset("Thread", "ThreadLocalDataPtr"));
        if locals == 0 {
            continue;
        }
        // The link of an entry refers to the head of the list.
        let head = locals + whole.offset("ThreadLocalData", "InFlightData");
        let entry = head - whole.offset("InFlightTLSData", "Next");
        let commands = ["statics --thread-statics", "type System.Threading.ThreadBlockingInfo", "locks"];
        // A thread that has all its statics does not search the list.
        let (exit, ..) = ask(&whole.with(&[(head, entry, 8)]), commands[0]);
        let message = if exit == Exit::Partial { "in flight" } else { "" };
        bent += whole.check("a cycle", &[(head, entry, 8)], message, &commands);
    }
    assert!(bent > 0);
}
