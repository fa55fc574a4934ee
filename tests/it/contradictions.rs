//! One word of a named field is changed in real dumps so that another word contradicts it. Each answer that depends on the word is partial,
//! and each that does not is unchanged. The words are found through the descriptor and the program's own answers.

use gcdump::cli::Exit;
use gcdump::internals::base::Addr;
use gcdump::internals::clr::threads::Thread;
use serde_json::Value;

use crate::changed::{Whole, Write, ask, heaps, item, messages};
use crate::common::{self, number};

/// One runtime for each layout, with both kinds of GC, regions and segments, and both containers.
const OF_EACH: [&str; 8] = [
    "net8-wks-basics-heap",
    "net10-wks-basics-full",
    "net9-segsvr-basics-heap",
    "net10-seg-basics-heap",
    "net11shape-svr-handles-heap",
    "win-net10-wks-basics-full",
    "net8-svr-handles-heap",
    "net9-wks-roots-heap",
];

const WITH_LOCKS: [&str; 5] =
    ["net8-wks-deadlock-heap", "net10-wks-deadlock-heap", "net10-wks-locks-heap", "net10-svr-threads-heap", "net8-wks-pool-heap"];

/// Dumps of the corpus; only some of them in a plain run.
fn dumps<const N: usize>(names: [&'static str; N], some: usize) -> Vec<Whole> {
    common::sample(names, some).into_iter().filter_map(Whole::named).collect()
}

/// The answers for a dump before and after changes.
struct Campaign<'w> {
    whole: &'w Whole,
    /// Complete answers before the change.
    before: Vec<(&'static str, Value)>,
    cases: usize,
}

impl<'w> Campaign<'w> {
    fn of(whole: &'w Whole, commands: &[&'static str]) -> Campaign<'w> {
        let answer = |command: &&'static str| {
            let (exit, answer, _) = ask(&whole.dump, command);
            (exit == Exit::Ok).then_some((*command, answer))
        };
        Campaign { whole, before: commands.iter().filter_map(answer).collect(), cases: 0 }
    }

    /// Checks that after `writes` the commands in `partial` have partial answers, and those in `same` the same answers as before.
    fn check(&mut self, what: &str, writes: &[Write], partial: &[&str], same: &[&str]) {
        let changed = self.whole.with(writes);
        if let Ok(folder) = std::env::var("GCDUMP_KEEP_CHANGED") {
            let path = std::path::Path::new(&folder).join(format!("{}-{}.dmp", self.whole.name, what.replace([' ', '/'], "-")));
            std::fs::write(path, self.whole.bytes_with(writes)).unwrap();
        }
        for (command, before) in &self.before {
            if !partial.contains(command) && !same.contains(command) {
                continue;
            }
            let (exit, answer, warnings) = ask(&changed, command);
            let case = format!("{}: {what}: {command}: {exit:?}, {warnings}", self.whole.name);
            if partial.contains(command) {
                // `verify` with findings has another exit code.
                let code = if exit == Exit::Negative && *command == "verify" { Exit::Negative } else { Exit::Partial };
                // A stack without a word that points to an object has no roots, whatever its frames are.
                if *command == "roots" && exit == Exit::Ok && answer["data"]["roots"] == before["data"]["roots"] {
                    continue;
                }
                assert_eq!(exit, code, "{case}");
                assert!(answer["complete"] == false && !messages(&warnings).is_empty(), "{case}");
                self.cases += 1;
            } else {
                assert!(exit == Exit::Ok && answer == *before, "{case}");
            }
        }
    }
}

fn threads(whole: &Whole) -> Vec<Thread> {
    whole.dump.runtime().unwrap().thread_list().unwrap().data.clone()
}

/// Returns the address of a thread's field, if the runtime has it and the dump contains it.
fn field(whole: &Whole, thread: &Thread, names: &[&str]) -> Option<u64> {
    let runtime = whole.dump.runtime().unwrap();
    let offset = names.iter().find_map(|name| runtime.descriptor().offset("Thread", name).ok())?;
    let at = thread.address.plus(offset);
    whole.dump.memory().has(at).then_some(at.0)
}

/// The name of a type comes from its module and token, which other structures of the runtime repeat.
#[test]
fn words_of_method_tables_are_compared_with_the_loader() {
    let mut cases = 0;
    for name in ["net8-wks-basics-heap", "net10-wks-basics-heap", "win-net10-wks-basics-full"] {
        let Some(whole) = Whole::named(name) else { continue };
        let types = ask(&whole.dump, "type Lab.Node").1["types"].clone();
        let mt = number(&types[0]["method_table"]);
        let mut campaign = Campaign::of(&whole, &["stat", "objects -n 5 --type Lab.Node", "type Lab.Node", "type Lab.Nod*"]);
        let runtime = whole.dump.runtime().unwrap();
        let at = |field: &str| runtime.descriptor().offset("MethodTable", field).ok().map(|offset| mt + offset);
        let all = ["stat", "objects -n 5 --type Lab.Node", "type Lab.Node", "type Lab.Nod*"];
        if let Some(at) = at("Module") {
            campaign.check("module", &[(at, common::NOWHERE, 8)], &all, &[]);
            // Another structure in captured memory.
            campaign.check("module elsewhere", &[(at, mt, 8)], &all, &[]);
        }
        if let Some(at) = at("MTFlags2") {
            let flags = whole.u32(at) & 0xff;
            campaign.check("token past the table", &[(at, flags | 0x00de_ad00, 4)], &all, &[]);
            campaign.check("token of another type", &[(at, flags | 0x300, 4)], &all, &[]);
        }
        campaign.check("class", &[(at("EEClassOrCanonMT").unwrap(), common::NOWHERE, 8)], &["stat", "type Lab.Nod*"], &[]);
        campaign.check("base size", &[(at("BaseSize").unwrap(), 0xdead_beef, 4)], &["stat", "type Lab.Node"], &[]);
        cases += campaign.cases;
    }
    assert!(cases > 10, "{cases}");
}

#[test]
fn words_of_threads_are_compared_with_each_other() {
    let mut cases = 0;
    for whole in dumps(OF_EACH, 3) {
        let commands = ["threads", "stacks", "heap", "statics --thread-statics", "roots", "segments", "stat", "handles"];
        let mut campaign = Campaign::of(&whole, &commands);
        let others = ["segments", "stat", "handles"];
        let list = threads(&whole);
        let running: Vec<&Thread> = list.iter().filter(|t| t.state.is_some_and(|s| s & 0x20c00 == 0x20000)).collect();
        let [first, .., last] = running.as_slice() else { panic!("{}: {list:?}", whole.name) };
        let p = whole.p();
        for (which, thread, other) in [("first", first, last), ("last", last, first)] {
            let mut change = |what: &str, names: &[&str], value: u64, len: u64, partial: &[&str], same: &[&str]| {
                if let Some(at) = field(&whole, thread, names) {
                    campaign.check(&format!("{which} {what}"), &[(at, value, len)], partial, same);
                }
            };
            let of_ids = ["threads", "stacks", "statics --thread-statics", "heap"];
            change("id 0", &["Id"], 0, 4, &of_ids, &others);
            change("frames null", &["Frame"], 0, p, &["stacks", "roots"], &["threads", "segments", "stat", "handles"]);
            change("mode 7", &["PreemptiveGCDisabled"], 7, 4, &["threads"], &["stacks", "heap", "segments", "stat"]);
            change("dead", &["State"], u64::from(thread.state.unwrap() | 0x800), 4, &["threads", "stacks"], &others);
            change("unstarted", &["State"], u64::from(thread.state.unwrap() | 0x400), 4, &["threads", "stacks"], &others);
            change("no thread of the system", &["OSId"], 0, p, &["threads", "stacks"], &["segments", "handles"]);
            change("another thread of the system", &["OSId"], other.os_id.unwrap(), p, &["threads", "stacks"], &["segments", "handles"]);
            let (handle, all) = (["ExposedObject", "GCHandle"], ["threads", "stacks"]);
            change("no handle", &handle, 0, p, &all, &others);
            if let Some(at) = field(&whole, other, &handle) {
                change("the handle of another", &handle, whole.word(at), p, &all, &others);
            }
            change("no locals", &["RuntimeThreadLocals"], 0, p, &["threads", "heap"], &["segments", "handles", "stacks"]);
            change(
                "no thread statics",
                &["ThreadLocalDataPtr"],
                0,
                p,
                &["statics --thread-statics", "roots"],
                &["threads", "segments", "stat"],
            );
            for (what, name, partial) in [
                ("the locals of another", "RuntimeThreadLocals", ["threads", "heap"]),
                ("the thread statics of another", "ThreadLocalDataPtr", ["statics --thread-statics", "roots"]),
            ] {
                if let Some(at) = field(&whole, other, &[name]) {
                    change(what, &[name], whole.word(at), p, &partial, &["segments", "handles"]);
                }
            }
        }
        // The handle refers to an object of another type.
        let (_, handles, _) = ask(&whole.dump, "handles");
        let strings = handles["handles"].as_array().into_iter().flatten().filter(|h| h["type"] != "System.Threading.Thread");
        let object = strings.map(|h| number(&h["object"])).find(|o| *o != 0);
        if let (Some(at), Some(object)) = (field(&whole, first, &["ExposedObject", "GCHandle"]), object)
            && first.exposed.is_some()
        {
            campaign.check("an object of another type", &[(whole.word(at), object, p)], &["threads", "stacks"], &["segments"]);
        }
        cases += campaign.cases;
    }
    println!("{cases} cases");
    assert!(cases > 60, "{cases}");
}

#[test]
fn numbers_and_flags_of_segments_are_compared_with_their_lists() {
    let mut cases = 0;
    for whole in dumps(OF_EACH, 2) {
        let mut campaign = Campaign::of(&whole, &["segments", "heap", "verify", "stat", "threads", "handles"]);
        let (partial, same) = (["segments", "heap", "verify"], ["stat", "threads", "handles"]);
        let (_, answer, _) = ask(&whole.dump, "segments");
        let mut seen = std::collections::BTreeSet::new();
        for s in answer["segments"].as_array().unwrap() {
            let generation = s["generation"].as_str().unwrap();
            if !seen.insert(generation) {
                continue;
            }
            let (address, flags) = (number(&s["address"]), s["flags_value"].as_u64().unwrap());
            let at = |name: &str| address + whole.offset("HeapSegment", name);
            let p = whole.p();
            let (start, committed, reserved) = (number(&s["start"]), number(&s["committed"]), number(&s["reserved"]));
            let walked = ["segments", "heap", "verify", "stat"];
            let zeros = ["Mem", "Allocated", "Committed", "Reserved", "Next"].map(|name| (at(name), 0, p));
            campaign.check(&format!("{generation}: zeros"), &zeros, &walked, &["threads"]);
            campaign.check(&format!("{generation}: no start"), &[(at("Mem"), 0, p)], &walked, &["threads"]);
            if generation == "frozen" && number(&s["next"]) != 0 {
                campaign.check("nothing after a frozen segment", &[(at("Next"), 0, p)], &walked, &["threads"]);
            }
            let mut change = |what: &str, name: &str, value: u64, same: &[&str]| {
                campaign.check(&format!("{generation}: {what}"), &[(at(name), value, p)], &partial, same);
            };
            match generation {
                "loh" | "poh" => {
                    change("without its flag", "Flags", flags & !0x208, &same);
                    change("frozen", "Flags", flags | 1, &same);
                }
                "frozen" => change("not frozen", "Flags", flags & !1, &[]),
                "gen2" => change("frozen", "Flags", flags | 1, &[]),
                "gen0" | "gen1" => change("frozen", "Flags", flags | 1, &same),
                _ => {}
            }
            if generation == "frozen" {
                continue;
            }
            if !s["used"].is_null() {
                change("used before its start", "Used", start - p, &same);
                change("used past its end", "Used", committed + p, &same);
                change("used within a word", "Used", start + 1, &same);
            }
            change("half a page reserved", "Reserved", reserved + 0x800, &["stat", "threads"]);
            change("half a page committed", "Committed", committed + 0x18, &["threads"]);
            change("less reserved than committed", "Reserved", committed - 0x1000, &["threads"]);
            if !s["background_allocated"].is_null() {
                change("1 in the background", "BackgroundAllocated", 1, &same);
                change("past its end in the background", "BackgroundAllocated", reserved + p, &same);
            }
        }
        let runtime = whole.dump.runtime().unwrap();
        let size = runtime.descriptor().size_of("Generation").unwrap();
        for heap in heaps(&whole) {
            let table = item(&whole, heap, "GenerationTable");
            for generation in 0..5 {
                let context = table + generation * size + whole.offset("Generation", "AllocationContext");
                let (pointer, limit) = (whole.offset("GCAllocContext", "Pointer"), whole.offset("GCAllocContext", "Limit"));
                for (what, at) in [("pointer", pointer), ("limit", limit)] {
                    let what = format!("{what} of generation {generation} of the heap at {heap:#x}");
                    campaign.check(&what, &[(context + at, 1, whole.p())], &["heap"], &["segments", "threads", "handles"]);
                }
            }
        }
        cases += campaign.cases;
    }
    println!("{cases} cases");
    assert!(cases > 150, "{cases}");
}

/// The runtime allocates the array of a finalization queue with the queue, and `Thread.Start` creates the object of a thread.
#[test]
fn queues_and_handles_of_threads_are_never_null() {
    let mut cases = 0;
    for whole in dumps(OF_EACH, 3) {
        let mut campaign = Campaign::of(&whole, &["finalizers", "heap --detail", "threads", "handles", "stat"]);
        let p = whole.p();
        for heap in heaps(&whole) {
            let queue = whole.word(item(&whole, heap, "FinalizeQueue"));
            let first = queue + whole.offset("CFinalize", "FillPointers");
            let zeros: Vec<Write> = (0..7).map(|i| (first + i * p, 0, p)).collect();
            campaign.check(
                &format!("no fill pointers of the heap at {heap:#x}"),
                &zeros,
                &["finalizers", "heap --detail"],
                &["threads", "stat"],
            );
        }
        // Set up and neither in the background nor the main thread.
        let started = |thread: &&Thread| thread.state.is_some_and(|s| s & 0x20e00 == 0x20000) && thread.id.is_some_and(|id| id > 1);
        for thread in threads(&whole).iter().filter(started).take(3) {
            let handle = thread.exposed_handle.unwrap().0;
            campaign.check("no object of a thread", &[(handle, 0, p)], &["threads", "handles"], &["stat"]);
        }
        cases += campaign.cases;
    }
    assert!(cases > 5, "{cases}");
}

#[test]
fn monitors_are_compared_with_headers_and_threads() {
    let mut cases = 0;
    for whole in dumps(WITH_LOCKS, 3) {
        let mut campaign = Campaign::of(&whole, &["locks --all", "verify", "segments", "threads"]);
        let (partial, same) = (["locks --all", "verify"], ["segments", "threads"]);
        let (_, answer, _) = ask(&whole.dump, "locks --all");
        for thread in threads(&whole) {
            if let Some(item) = field(&whole, &thread, &["DebugBlockingItem"]).filter(|at| whole.word(*at) != 0) {
                for value in [common::NOWHERE, whole.word(item) + 8, thread.address.0] {
                    campaign.check("another record of a wait", &[(item, value, whole.p())], &["locks --all"], &same);
                }
            }
        }
        let (table, entry) = (whole.word(whole.pointer("SyncTableEntries")), whole.dump.runtime().unwrap());
        let entry_size = entry.descriptor().size_of("SyncTableEntry").unwrap();
        let p = whole.p();
        let locks = answer["locks"].as_array().unwrap().iter().filter(|l| !l["sync_block"].is_null());
        let (held, free): (Vec<&Value>, Vec<&Value>) = locks.partition(|l| !l["owner"].is_null());
        for (i, lock) in held.iter().take(2).chain(free.iter().take(1)).enumerate() {
            let index = lock["sync_block"].as_u64().unwrap();
            let object = number(&lock["object"]);
            let at = table + index * entry_size;
            let block = whole.word(at + whole.offset("SyncTableEntry", "SyncBlock"));
            let block_field = |name: &str| {
                let runtime = whole.dump.runtime().unwrap();
                runtime.descriptor().offset("SyncBlock", name).ok().map(|o| block + o)
            };
            let Some(state) = block_field("LockState") else { continue };
            let word = whole.u32(state);
            let mut change = |what: &str, at: u64, value: u64, len: u64, partial: &[&str]| {
                campaign.check(&format!("{what} of lock {i}"), &[(at, value, len)], partial, &same);
            };
            change("no block", at + whole.offset("SyncTableEntry", "SyncBlock"), 0, p, &partial);
            change("no object", at + whole.offset("SyncTableEntry", "Object"), 0, p, &partial);
            change("a free entry", at + whole.offset("SyncTableEntry", "Object"), 1, p, &partial);
            change("no index in the header", object - 4, 0, 4, &partial);
            let recursion = block_field("Recursion").unwrap();
            change("many recursions", recursion, 1 << 31, 4, &partial);
            let owner = block_field("OwnerThreadId").map(|at| (at, 4)).or(block_field("OwnerThread").map(|at| (at, p)));
            let (owner, len) = owner.unwrap();
            if word & 1 != 0 {
                change("no owner", owner, 0, len, &partial);
                change("not locked", state, word & !1, 4, &partial);
                change("no recursion", recursion, 0, 4, &partial);
            } else {
                change("an owner", owner, whole.u32(whole.pointer("SyncTableEntries")) | 8, len, &partial);
                change("locked", state, word | 1, 4, &partial);
                change("a recursion", recursion, 1, 4, &partial);
            }
            change("a million waiters", state, word | 1 << 26, 4, &["locks --all"]);
        }
        cases += campaign.cases;
    }
    println!("{cases} cases");
    assert!(cases > 50, "{cases}");
}

#[test]
fn method_tables_are_compared_with_their_types() {
    let mut cases = 0;
    for whole in dumps(OF_EACH, 3) {
        let mut campaign = Campaign::of(&whole, &["stat", "segments", "heap"]);
        let (_, answer, _) = ask(&whole.dump, "stat");
        let types = answer["types"].as_array().unwrap();
        let find = |wanted: fn(&str) -> bool| {
            let of = types
                .iter()
                .find(|t| t["name"].as_str().is_some_and(wanted))
                .or_else(|| types.iter().find(|t| t["type"].as_str().is_some_and(wanted)));
            of.map(|t| number(&t["method_table"]))
        };
        let runtime = whole.dump.runtime().unwrap();
        let d = runtime.descriptor();
        let plain =
            find(|name| name.starts_with("System.") && !name.contains(['<', '[']) && name != "System.String" && name != "System.Object");
        let generic = find(|name| name.ends_with('>') && name.contains('<'));
        let (Some(plain), Some(generic)) = (plain, generic) else { panic!("{}: {}", whole.name, types[0]) };
        let base = plain + whole.offset("MethodTable", "BaseSize");
        let size = whole.u32(base);
        for (what, value) in [("one byte less", size - 1), ("four bytes more", size + 4), ("one byte more", size + 1)] {
            campaign.check(what, &[(base, value, 4)], &["stat"], &["segments", "heap"]);
        }
        let info = generic + whole.offset("MethodTable", "PerInstInfo");
        campaign.check("no dictionaries", &[(info, 0, whole.p())], &["stat"], &["segments", "heap"]);
        if let Ok(module) = d.offset("MethodTable", "Module") {
            campaign.check("no module", &[(plain + module, 0, whole.p())], &["stat"], &["segments", "heap"]);
            let flags2 = plain + whole.offset("MethodTable", "MTFlags2");
            campaign.check("no token", &[(flags2, whole.u32(flags2) & 0xff, 4)], &["stat"], &["segments", "heap"]);
        } else {
            let module = plain + whole.offset("MethodTable", "LoaderModule");
            campaign.check("no module", &[(module, 0, whole.p())], &["stat"], &["segments", "heap"]);
            let rid = plain + whole.offset("MethodTable", "TypeDefRidShort");
            campaign.check("no token", &[(rid, 0, 2)], &["stat"], &["segments", "heap"]);
        }
        cases += campaign.cases;
        let command: &'static str = Box::leak(format!("type {plain:#x}").into_boxed_str());
        let mut campaign = Campaign::of(&whole, &[command, "segments"]);
        let parent = plain + whole.offset("MethodTable", "ParentMethodTable");
        campaign.check("no base type", &[(parent, 0, whole.p())], &[command], &["segments"]);
        if size > 0x28 {
            campaign.check("a small base size", &[(base, 0x18, 4)], &[command], &["segments"]);
        }
        cases += campaign.cases;
    }
    println!("{cases} cases");
    assert!(cases > 15, "{cases}");
}

#[test]
fn ids_of_threads_are_compared_with_the_runtime() -> crate::harness::Tested {
    common::needs_shared()?;
    let mut cases = 0;
    for name in common::sample(["net8-wks-threads-heap", "net10-wks-threads-heap", "net9-svr-basics-heap", "net10-seg-threads-heap"], 2) {
        let Ok(bytes) = std::fs::read(common::unpacked().join(format!("{name}.dmp"))) else { continue };
        let whole = Whole::of(name, bytes);
        let mut campaign = Campaign::of(&whole, &["threads", "stacks", "locks", "segments"]);
        let list = threads(&whole);
        for thread in [&list[0], &list[list.len() - 1]] {
            let id = field(&whole, thread, &["Id"]).unwrap();
            for value in [77, 1 << 20] {
                campaign.check("an id of no thread", &[(id, value, 4)], &["threads", "stacks", "locks"], &["segments"]);
            }
        }
        cases += campaign.cases;
    }
    assert!(cases > 5, "{cases}");
    Ok(())
}

/// A static field has an address only if its class has memory for statics, and an exception in flight has an object.
#[test]
fn statics_and_exceptions_in_flight_have_memory() {
    let mut cases = 0;
    for whole in dumps(["net11-wks-crash-heap", "win-net10-wks-crash-full", "net9-wks-basics-heap"], 2) {
        let commands = ["statics", "roots", "exceptions", "threads", "stacks", "env"];
        let mut campaign = Campaign::of(&whole, &commands);
        let p = whole.p();
        let runtime = whole.dump.runtime().unwrap();
        let answer = ask(&whole.dump, "statics").1;
        let fields = || answer["statics"].as_array().unwrap().iter().filter(|f| f["storage"] == "static" && !f["object"].is_null());
        let field = fields().next().unwrap();
        let mt = number(&field["method_table"]);
        let auxiliary = mt + whole.offset("MethodTable", "AuxiliaryData");
        let statics = whole.word(auxiliary) - runtime.descriptor().type_info("DynamicStaticsInfo").unwrap().size.unwrap();
        let base = statics + whole.offset("DynamicStaticsInfo", "GCStatics");
        campaign.check("no auxiliary data", &[(auxiliary, 0, p)], &["statics", "roots"], &["threads"]);
        campaign.check("no memory for statics", &[(base, 0, p)], &["statics", "roots"], &["threads"]);
        for thread in threads(&whole) {
            let Some(tracker) = in_flight(&whole, &thread) else { continue };
            let of = ["ExceptionInfo", "ExInfo"].into_iter().find_map(|of| runtime.descriptor().offset(of, "ThrownObject").ok());
            campaign.check("no thrown object", &[(tracker + of.unwrap(), 0, p)], &["exceptions", "threads", "stacks"], &["statics"]);
        }
        // A property of the runtime without a text.
        let store = fields().find(|f| f["name"] == "s_dataStore").map(|f| Addr(number(&f["object"])));
        let heap = runtime.heap().unwrap();
        let mut entries = heap.object(store.unwrap()).unwrap().entries().unwrap();
        let text = entries.next().unwrap().1.object().unwrap().address();
        campaign.check("a property without a text", &[(text.0, 0, p)], &["env"], &["threads"]);
        cases += campaign.cases;
    }
    assert!(cases > 6, "{cases}");
}

/// The exception in flight of a thread of CoreCLR.
fn in_flight(whole: &Whole, thread: &Thread) -> Option<u64> {
    let at = field(whole, thread, &["ExceptionTracker"])?;
    Some(whole.word(at)).filter(|tracker| *tracker != 0)
}
