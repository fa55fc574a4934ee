//! Words of the runtime's lists are changed in real dumps: answers report what is lost by that. (`holes` removes memory, `mutation` only
//! checks that commands end.)

use std::ops::ControlFlow;
use std::path::Path;

use crate::common::{self, NOWHERE};
use crate::support::Spec;
use gcdump::cli::Exit;
use gcdump::internals::base::{Addr, Limits, Silent};
use gcdump::internals::clr::loader::Loader;
use gcdump::internals::dump::{self, Bytes, OpenOptions};
use gcdump::model::Generation;
use gcdump::{Dump, Runtime};
use serde_json::Value;

/// A dump of the corpus that tests change.
struct Original {
    name: &'static str,
    bytes: Vec<u8>,
    dump: Dump,
    copy: tempfile::NamedTempFile,
}

impl Original {
    fn of(name: &'static str) -> Original {
        let bytes = common::bytes_of(name).unwrap();
        let file = dump::open_bytes(Bytes::Owned(bytes.clone()), "whole.dmp".as_ref(), &OpenOptions::default()).unwrap();
        let dump = Dump::of(file, &gcdump::OpenOptions::default());
        let copy = tempfile::Builder::new().prefix(name).suffix(".dmp").tempfile().unwrap();
        Original { name, bytes, dump, copy }
    }

    fn runtime(&self) -> Runtime {
        self.dump.runtime().unwrap()
    }

    fn offset(&self, of: &str, field: &str) -> u64 {
        self.runtime().descriptor().offset(of, field).unwrap()
    }

    /// A variable of the runtime.
    fn variable(&self, name: &str) -> Addr {
        self.runtime().descriptor().pointer(name).unwrap()
    }

    fn ptr(&self, at: Addr) -> Addr {
        self.dump.memory().ptr(at).unwrap()
    }

    fn u32(&self, at: Addr) -> u32 {
        self.dump.memory().u32(at).unwrap()
    }

    /// Writes the copy with these words changed: address, value, number of bytes.
    fn changed(&self, changes: &[(Addr, u64, usize)]) -> &Path {
        let bytes = common::with_words(self.dump.file(), &self.bytes, self.dump.memory().shape().endian, changes);
        std::fs::write(self.copy.path(), bytes).unwrap();
        self.copy.path()
    }

    /// Returns those answers of `commands` that are complete for the unchanged dump.
    fn whole(&self, commands: &[&'static str]) -> Vec<(&'static str, Value)> {
        let path = self.changed(&[]);
        let ask = |command: &&'static str| {
            let (exit, answer) = common::ask(path, &command.split(' ').collect::<Vec<_>>());
            (exit == Exit::Ok).then_some((*command, answer))
        };
        let whole: Vec<_> = commands.iter().filter_map(ask).collect();
        assert!(!whole.is_empty(), "{}", self.name);
        whole
    }

    /// Checks that each command reports what is missing, or answers as before; at least one reports it.
    fn check(&self, what: &str, whole: &[(&'static str, Value)], changes: &[(Addr, u64, usize)]) {
        let path = self.changed(changes);
        let mut reported = 0;
        for (command, before) in whole {
            let path = path.to_str().unwrap();
            let words: Vec<&str> = command.split(' ').chain(["--json", "--no-local-files", path]).collect();
            let ran = common::run(&words);
            // With bundled layouts, a list that contradicts its count is not evidence for a layout.
            if ran.exit == Exit::NoRuntime && ran.out.is_empty() && !ran.err.is_empty() {
                reported += 1;
                continue;
            }
            let (exit, answer) = (ran.exit, ran.json());
            let case = format!("{}: {what}: {command}: {}", self.name, answer["warnings"]);
            if exit == Exit::Partial {
                assert_eq!(answer["data"]["complete"], false, "{case}");
                assert!(answer["warnings"].as_array().is_some_and(|w| !w.is_empty()), "{case}");
                reported += 1;
            } else {
                assert_eq!((exit, &answer["data"]), (Exit::Ok, &before["data"]), "{case}");
            }
        }
        assert!(reported > 0, "{}: {what}: no command reports it", self.name);
    }
}

const OF_EACH: [&str; 4] = ["net8-wks-basics-heap", "net9-wks-basics-heap", "net10-svr-handles-heap", "net11shape-wks-threads-heap"];

/// The assembly list: the variable that points to it, the list, its first block, and the address of its items.
fn assemblies(of: &Original) -> (Addr, Addr, Addr, Addr) {
    let variable = of.variable("AppDomain");
    let d = of.runtime().descriptor().clone();
    let list = d.offset("AppDomain", "AssemblyList").or_else(|_| d.offset("AppDomain", "DomainAssemblyList")).unwrap();
    let list = of.ptr(variable).plus(list);
    let block = list.plus(of.offset("ArrayListBase", "FirstBlock"));
    (variable, list, block, block.plus(of.offset("ArrayListBlock", "ArrayStart")))
}

#[test]
fn an_assembly_list_with_missing_assemblies_is_reported() {
    for name in common::sample(OF_EACH, 4) {
        let dump = Original::of(name);
        let whole = dump.whole(&["roots", "type *"]);
        let (variable, list, block, items) = assemblies(&dump);
        let (count, size) = (list.plus(dump.offset("ArrayListBase", "Count")), block.plus(dump.offset("ArrayListBlock", "Size")));
        let second = items.plus(8);
        let mut assembly = dump.ptr(second);
        if let Ok(inner) = dump.runtime().descriptor().offset("DomainAssembly", "Assembly") {
            assembly = dump.ptr(assembly.plus(inner));
        }
        let module = assembly.plus(dump.offset("Assembly", "Module"));
        for value in [0, NOWHERE] {
            dump.check("no domain", &whole, &[(variable, value, 8)]);
            dump.check("no item", &whole, &[(second, value, 8)]);
            dump.check("no module", &whole, &[(module, value, 8)]);
        }
        dump.check("a module of another", &whole, &[(module, dump.ptr(items).0, 8)]);
        let all = dump.u32(count);
        assert!(all > 2, "{name}");
        dump.check("a short block", &whole, &[(size, 1, 4)]);
        dump.check("more counted", &whole, &[(count, u64::from(all) + 200, 4)]);
        dump.check("more than any process has", &whole, &[(count, 0x7fff_ffff, 4)]);
    }
}

#[test]
fn an_item_of_an_unloaded_assembly_is_not_a_loss() {
    let dump = Original::of("net10-wks-dynamic-heap");
    let (_, _, _, items) = assemblies(&dump);
    let (exit, answer) = common::ask(dump.changed(&[(items.plus(8), 0, 8)]), &["type", "System.*"]);
    assert!(exit == Exit::Ok, "{}", answer["warnings"]);
}

#[test]
fn an_instance_table_with_missing_entries_is_reported() {
    for name in common::sample(OF_EACH, 4) {
        let dump = Original::of(name);
        let whole = dump.whole(&["type *"]);
        let runtime = dump.runtime();
        let modules = Loader::bind(dump.dump.memory(), runtime.descriptor(), &Limits::default()).unwrap().modules();
        let table = |module: &Addr| dump.ptr(module.plus(dump.offset("Module", "AvailableTypeParams")));
        let count = |table: Addr| table.plus(dump.offset("EETypeHashTable", "Count"));
        let largest = modules.iter().map(table).max_by_key(|table| dump.u32(count(*table))).unwrap();
        let entries = dump.u32(count(largest));
        assert!(entries > 100, "{name}");
        let variable = largest.plus(dump.offset("EETypeHashTable", "Buckets"));
        let buckets = dump.ptr(variable);
        for value in [0, NOWHERE] {
            dump.check("no buckets", &whole, &[(variable, value, 8)]);
        }
        dump.check("one bucket", &whole, &[(buckets, 1, 8)]);
        for other in [0, 1, entries - 2, entries + 1, entries * 2] {
            dump.check("another count", &whole, &[(count(largest), other.into(), 4)]);
        }
        let next = dump.offset("EETypeHashTable", "VolatileEntryNextEntry");
        let first = (3..).map(|i| buckets.plus(8 * i)).find(|at| dump.ptr(*at).0 & 1 == 0 && !dump.ptr(*at).is_null()).unwrap();
        let mut last = dump.ptr(first);
        while dump.ptr(last.plus(next)).0 & 1 == 0 && !dump.ptr(last.plus(next)).is_null() {
            last = dump.ptr(last.plus(next));
        }
        for value in [0, 1, NOWHERE, NOWHERE & !1] {
            dump.check("no chain", &whole, &[(first, value, 8)]);
        }
        // A chain that continues in another one.
        dump.check("a chain within others", &whole, &[(last.plus(next), dump.ptr(first).0, 8)]);
        for module in modules.iter().take(2) {
            dump.check("no table", &whole, &[(module.plus(dump.offset("Module", "AvailableTypeParams")), 0, 8)]);
        }
    }
}

#[test]
fn a_thread_list_with_missing_threads_is_reported() {
    for name in ["net11shape-wks-threads-heap", "net11shape-svr-handles-heap", "net8-wks-basics-heap", "win-net10-wks-basics-heap"] {
        let dump = Original::of(name);
        let whole = dump.whole(&["threads", "roots"]);
        let store = dump.ptr(dump.variable("ThreadStore"));
        let (head, count) =
            (store.plus(dump.offset("ThreadStore", "FirstThreadLink")), store.plus(dump.offset("ThreadStore", "ThreadCount")));
        let mut link = head;
        while !dump.ptr(link).is_null() {
            dump.check("a cut list", &whole, &[(link, 0, 8)]);
            link = dump.ptr(link);
        }
        dump.check("no threads, none counted", &whole, &[(head, 0, 8), (count, 0, 4)]);
        dump.check("more counted", &whole, &[(count, u64::from(dump.u32(count)) + 1, 4)]);
    }
}

#[test]
fn a_thread_list_and_its_count_agree_in_every_shape() {
    for shape in crate::common::shapes() {
        let target = Spec::standard(shape).build();
        let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        std::fs::write(file.path(), target.to_elf_core()).unwrap();
        let (exit, answer) = common::ask(file.path(), &["threads"]);
        assert_eq!(exit, Exit::Ok, "{shape:?}");
        let dump = gcdump::open(file.path()).unwrap();
        let runtime = dump.runtime().unwrap();
        let (d, memory) = (runtime.descriptor(), dump.memory());
        let store = memory.ptr(d.pointer("ThreadStore").unwrap()).unwrap();
        let head = store.plus(d.offset("ThreadStore", "FirstThreadLink").unwrap());
        let second = memory.ptr(memory.ptr(head).unwrap()).unwrap();
        let threads = answer["data"]["threads"].as_array().unwrap().len();
        for (what, at, left) in [("the list is empty", head, 0), ("the list is cut", second, 2)] {
            let mut copy = target.clone();
            copy.memory.p(at.0, 0);
            std::fs::write(file.path(), copy.to_elf_core()).unwrap();
            let (exit, answer) = common::ask(file.path(), &["threads"]);
            assert_eq!((exit, answer["data"]["threads"].as_array().unwrap().len()), (Exit::Partial, left), "{shape:?}: {what}");
            let warned = |w: &Value| w["message"].as_str().unwrap().contains(&format!("the runtime counts {threads}"));
            assert!(answer["warnings"].as_array().unwrap().iter().any(warned), "{shape:?}: {what}: {}", answer["warnings"]);
        }
    }
}

#[test]
fn a_finalizer_thread_that_is_not_a_thread_is_reported() {
    for name in common::sample(OF_EACH, 4) {
        let dump = Original::of(name);
        let whole = dump.whole(&["finalizers", "threads"]);
        let variable = dump.variable("FinalizerThread");
        for value in [0, 1, NOWHERE, variable.0, dump.ptr(variable).0 + 8] {
            dump.check("another finalizer thread", &whole, &[(variable, value, 8)]);
        }
    }
}

#[test]
fn an_invalid_pointer_is_reported() {
    let dump = Original::of("net10-wks-locks-heap");
    let whole = dump.whole(&["threads", "statics --thread-statics", "roots", "locks"]);
    let finalizer = dump.ptr(dump.variable("FinalizerThread"));
    let pointers =
        [("Thread", "GCHandle"), ("Thread", "ExposedObject"), ("Thread", "RuntimeThreadLocals"), ("Thread", "ThreadLocalDataPtr")];
    let d = dump.runtime().descriptor().clone();
    let mut fields: Vec<(&str, Addr)> =
        pointers.iter().filter_map(|(of, field)| Some((*field, finalizer.plus(d.offset(of, field).ok()?)))).collect();
    assert_eq!(fields.len(), 3);
    fields.push(("SyncTableEntries", dump.variable("SyncTableEntries")));
    for (field, at) in fields {
        assert!(!dump.ptr(at).is_null(), "{field}");
        for value in common::sample([NOWHERE, 8, 1 << 63], 3) {
            dump.check(field, &whole, &[(at, value, 8)]);
        }
    }
}

#[test]
fn a_type_table_with_missing_types_is_reported() {
    for name in common::sample(OF_EACH, 4) {
        let dump = Original::of(name);
        let whole = dump.whole(&["type *"]);
        let modules = Loader::bind(dump.dump.memory(), dump.runtime().descriptor(), &Limits::default()).unwrap().modules();
        for module in modules.iter().take(2) {
            let map = module.plus(dump.offset("Module", "TypeDefToMethodTableMap"));
            let field = |name: &str| map.plus(dump.offset("ModuleLookupMap", name));
            let count = dump.u32(field("Count"));
            assert!(count > 2 && dump.ptr(field("Next")).is_null(), "{name}: {count}");
            for fewer in [0, 1, count / 2, count - 2] {
                dump.check("fewer entries", &whole, &[(field("Count"), fewer.into(), 4)]);
            }
            for value in [0, NOWHERE] {
                dump.check("no entries", &whole, &[(field("TableData"), value, 8)]);
            }
        }
    }
}

/// The addresses of the map's entries on the way to the section around `ip`, and the fragment there.
fn levels(dump: &Original, ip: u64) -> (Vec<Addr>, Addr) {
    let mut table = dump.variable("ExecutionManagerCodeRangeMapAddress").plus(dump.offset("RangeSectionMap", "TopLevelData"));
    let mut entries = Vec::new();
    for shift in [49, 41, 33, 25, 17] {
        entries.push(table.element(ip >> shift & 0xff, 8));
        table = Addr(dump.ptr(*entries.last().unwrap()).0 & !1);
    }
    let field = |name: &str, at: Addr| at.plus(dump.offset("RangeSectionFragment", name));
    loop {
        let bounds = dump.ptr(field("RangeBegin", table)).0..dump.ptr(field("RangeEndOpen", table)).0;
        if bounds.contains(&ip) {
            return (entries, table);
        }
        table = Addr(dump.ptr(field("Next", table)).0 & !1);
    }
}

#[test]
fn a_code_map_with_missing_code_is_reported() {
    for name in common::sample(["net9-wks-basics-heap", "net8-wks-stacks-heap", "win-net10-wks-basics-full"], 3) {
        let dump = Original::of(name);
        let whole = dump.whole(&["stacks", "roots"]);
        let threads = whole[0].1["data"]["threads"].as_array().unwrap().iter();
        let frames = threads.flat_map(|t| t["frames"].as_array().unwrap()).filter(|f| f["kind"] == "managed");
        let mut ips: Vec<u64> = frames.map(|f| common::number(&f["ip"])).collect();
        ips.sort_unstable();
        ips.dedup_by_key(|ip| *ip >> 17);
        assert!(!ips.is_empty(), "{name}: {}", whole[0].1["data"]["threads"][0]);
        for ip in ips {
            let (entries, fragment) = levels(&dump, ip);
            let field = |name: &str| fragment.plus(dump.offset("RangeSectionFragment", name));
            let section = Addr(dump.ptr(field("RangeSection")).0 & !1);
            let (flags, module) = (dump.offset("RangeSection", "Flags"), dump.offset("RangeSection", "R2RModule"));
            dump.check("an empty map", &whole, &[(entries[0], 0, 8)]);
            dump.check("an empty fragment", &whole, &[(field("RangeEndOpen"), dump.ptr(field("RangeBegin")).0, 8)]);
            // Code of the JIT is in no image; code of images is in those of modules.
            for entry in &entries {
                dump.check(&format!("no entry at {entry} for {ip:#x}"), &whole, &[(*entry, 0, 8)]);
            }
            if dump.u32(section.plus(flags)) & 2 != 0 {
                dump.check("stubs in place of code", &whole, &[(section.plus(flags), 4, 4)]);
            } else {
                dump.check("an image without a module", &whole, &[(section.plus(module), 0, 8)]);
                let code = dump.ptr(section.plus(module)).plus(dump.offset("Module", "ReadyToRunInfo"));
                dump.check("a module without ReadyToRun code", &whole, &[(code, 0, 8)]);
            }
        }
    }
}

/// Frames that an exception, a fault or a suspension left have no return address that shows that their code is managed.
#[test]
fn code_without_a_header_is_reported() {
    for name in common::sample(["net11-wks-crash-heap", "net8-wks-stacks-heap", "win-net10-wks-crash-full"], 2) {
        let dump = Original::of(name);
        let whole = dump.whole(&["stacks", "roots"]);
        let threads = whole[0].1["data"]["threads"].as_array().unwrap().iter();
        let frames = threads
            .flat_map(|t| t["frames"].as_array().unwrap())
            .filter(|f| f["kind"] == "managed" && !f["tier"].is_null() && !f["offset"].is_null());
        let mut starts: Vec<u64> = frames.map(|f| common::number(&f["ip"]) - f["offset"].as_u64().unwrap()).collect();
        starts.sort_unstable();
        starts.dedup();
        assert!(!starts.is_empty(), "{name}");
        for start in common::sample(starts, 8) {
            dump.check(&format!("no header before {start:#x}"), &whole, &[(Addr(start - 8), 0, 8)]);
        }
    }
}

/// The frames of the library between the thread's registers and the method of a task are lost.
#[test]
fn the_method_of_a_task_is_not_taken_from_a_stack_with_a_gap() {
    let dump = Original::of("net11-wks-asyncliverasync-heap");
    let whole = dump.whole(&["async", "stacks"]);
    let threads = whole[1].1["data"]["threads"].as_array().unwrap().iter();
    let mut frames = threads.flat_map(|t| t["frames"].as_array().unwrap());
    let frame = frames.find(|f| f["module"] == "System.Private.CoreLib.dll" && f["tier"].is_null() && f["kind"] == "managed");
    let (_, fragment) = levels(&dump, common::number(&frame.unwrap()["ip"]));
    let section = Addr(dump.ptr(fragment.plus(dump.offset("RangeSectionFragment", "RangeSection"))).0 & !1);
    let module = dump.ptr(section.plus(dump.offset("RangeSection", "R2RModule")));
    let code = module.plus(dump.offset("Module", "ReadyToRunInfo"));
    dump.check("the library has no code", &whole[..1], &[(code, 0, 8)]);
}

#[test]
fn a_gcdump_of_a_partial_dump_is_partial() {
    let dump = Original::of("net10-svr-roots-heap");
    let folder = tempfile::tempdir().unwrap();
    let domain = dump.variable("AppDomain");
    for (changes, exit) in [(&[][..], Exit::Ok), (&[(domain, 0, 8)][..], Exit::Partial)] {
        let out = folder.path().join("heap.gcdump");
        let (_, export) = common::ask(dump.changed(changes), &["export", "gcdump", "--force", "-o", out.to_str().unwrap()]);
        assert_eq!(export["data"]["complete"], exit == Exit::Ok, "{export}");
        for command in ["stat", "retained"] {
            let (read, answer) = common::ask(&out, &[command]);
            assert_eq!(read, exit, "{command}: {}", answer["warnings"]);
            if exit == Exit::Partial {
                let warned = |w: &Value| w["message"].as_str().unwrap().starts_with("the file was made from an incomplete dump: ");
                assert!(answer["warnings"].as_array().unwrap().iter().any(warned), "{}", answer["warnings"]);
            }
        }
    }
}

/// An owner that is not found has ended only if all threads are known: the list is complete, and each thread has its id.
#[test]
fn a_lock_is_orphaned_only_if_all_threads_are_known() {
    let dump = Original::of("net11shape-datas-basics-heap");
    let ask = |changes: &[(Addr, u64, usize)]| {
        let (exit, answer) = common::ask(dump.changed(changes), &["locks"]);
        let (_, found) = common::ask(dump.copy.path(), &["analyze", "--only", "orphaned-lock", "--no-graph"]);
        let findings = found["data"]["findings"].as_array().unwrap().len();
        (exit, answer, findings)
    };
    let (_, whole, findings) = ask(&[]);
    assert_eq!(findings, 0);
    let object = &whole["data"]["locks"][0]["object"];
    let header = Addr(common::number(object) - 4);
    let owner = |answer: &Value| {
        let locks = answer["data"]["locks"].as_array().unwrap();
        let of = |key: &str| locks.iter().find(|l| l["object"] == *object && l["kind"] == "monitor").unwrap()["owner"][key].clone();
        (of("managed_id"), of("orphaned"))
    };
    // The thread list begins with the thread that was created last.
    let threads: Vec<(Addr, u32)> = dump.runtime().thread_list().unwrap().iter().filter_map(|t| Some((t.address, t.id?))).collect();
    let [(first, _), .., (_, id)] = threads.as_slice() else { panic!("{threads:?}") };
    let held = (header, u64::from(*id), 4);
    let link = dump.offset("Thread", "LinkNext");
    let at = |thread: &Addr, offset: u64| thread.plus(offset);
    let whole_list = ask(&[held]);
    assert_eq!((owner(&whole_list.1), whole_list.2), ((Value::from(*id), false.into()), 0));
    // The runtime has never had a thread with that id: the header is damaged, and does not mean that an owner has ended.
    let gone = ask(&[(header, 999, 4)]);
    assert_eq!((owner(&gone.1), gone.2), ((999.into(), Value::Null), 0), "{}", gone.1["warnings"]);
    for (what, changes) in [
        ("the list is cut", vec![held, (at(first, link), NOWHERE, 8)]),
        ("the list ends early", vec![held, (at(first, link), 0, 8)]),
        ("the thread is not in the list", vec![held, (at(first, link), first.0, 8)]),
    ] {
        let (exit, answer, findings) = ask(&changes);
        assert_eq!((exit, owner(&answer), findings), (Exit::Partial, ((*id).into(), Value::Null), 0), "{what}: {}", answer["warnings"]);
        let warnings = answer["warnings"].to_string();
        assert!(warnings.contains("the threads that hold 1 lock were not found: the thread list is incomplete"), "{what}: {warnings}");
        let shown = common::run(&["locks", "--no-local-files", dump.copy.path().to_str().unwrap()]).out;
        assert!(shown.contains(&format!("{id} (not found)")) && !shown.contains("no such thread"), "{what}: {shown}");
    }
}

/// The rows of `locks` about an object, by kind.
fn locks_of(answer: &Value, object: &Value, kind: &str) -> Value {
    let rows = answer["data"]["locks"].as_array().unwrap();
    rows.iter().find(|l| l["object"] == *object && l["kind"] == kind).cloned().unwrap_or_default()
}

/// `Lock` of .NET 10 stores the OS id of its owner, which is higher than every managed id.
#[test]
fn a_lock_whose_owner_has_ended_is_orphaned() {
    const ENDED: u64 = 4_000_000;
    let dump = Original::of("net10-wks-deadlock-heap");
    let (_, whole) = common::ask(dump.changed(&[]), &["locks"]);
    let lock = whole["data"]["locks"].as_array().unwrap().iter().find(|l| l["kind"] == "lock").unwrap();
    let (object, owner) = (Addr(common::number(&lock["object"])), &lock["owner"]);
    let os_id = owner["os_id"].as_u64().unwrap();
    let stores = |at: &Addr| u64::from(dump.u32(*at)) == os_id;
    let field = (2..8).map(|i| object.plus(i * 4)).find(stores).unwrap();
    let (exit, answer) = common::ask(dump.changed(&[(field, ENDED, 4)]), &["locks"]);
    assert_eq!(exit, Exit::Ok, "{}", answer["warnings"]);
    let found = locks_of(&answer, &lock["object"], "lock")["owner"].clone();
    assert_eq!(found, serde_json::json!({ "managed_id": null, "os_id": ENDED, "orphaned": true }));
    let shown = common::run(&["locks", "--no-local-files", dump.copy.path().to_str().unwrap()]).out;
    assert!(shown.contains("OS 4000000 (no such thread)"), "{shown}");
    let (_, analyzed) = common::ask(dump.copy.path(), &["analyze", "--only", "orphaned-lock", "--no-graph"]);
    let title = analyzed["data"]["findings"][0]["title"].as_str().unwrap();
    assert!(title.contains("is held by the thread with the OS id 4000000, which has ended; 1 thread waits for it"), "{title}");
    // In a container, OS ids are as low as managed ids. The lock has the OS id.
    let threads: Vec<(Addr, u32)> = dump.runtime().thread_list().unwrap().iter().filter_map(|t| Some((t.address, t.id?))).collect();
    let id = owner["managed_id"].as_u64().unwrap();
    let (thread, _) = threads.iter().find(|(_, other)| u64::from(*other) == id).unwrap();
    let (_, other) = threads.iter().find(|(_, other)| u64::from(*other) != id).unwrap();
    let os_field = thread.plus(dump.offset("Thread", "OSId"));
    let low = u64::from(*other);
    let (_, answer) = common::ask(dump.changed(&[(field, low, 4), (os_field, low, 8)]), &["locks"]);
    let found = locks_of(&answer, &lock["object"], "lock")["owner"].clone();
    assert_eq!((&found["managed_id"], &found["os_id"]), (&owner["managed_id"], &low.into()), "{found}");
}

/// Every object has a monitor, a `SemaphoreSlim` as well: `lock (semaphore)`.
#[test]
fn a_library_lock_whose_monitor_is_held_is_two_locks() {
    let dump = Original::of("net10-wks-deadlock-heap");
    let (_, whole) = common::ask(dump.changed(&[]), &["locks"]);
    let semaphore = whole["data"]["locks"].as_array().unwrap().iter().find(|l| l["kind"] == "semaphore-slim").unwrap();
    let object = &semaphore["object"];
    assert_eq!(locks_of(&whole, object, "monitor"), Value::Null);
    let owned = whole["data"]["locks"].as_array().unwrap().iter().find(|l| !l["owner"].is_null()).unwrap();
    let id = owned["owner"]["managed_id"].as_u64().unwrap();
    let header = Addr(common::number(object) - 4);
    let (exit, answer) = common::ask(dump.changed(&[(header, id, 4)]), &["locks"]);
    assert_eq!(exit, Exit::Ok, "{}", answer["warnings"]);
    let monitor = locks_of(&answer, object, "monitor");
    assert_eq!((&monitor["owner"]["managed_id"], &monitor["waiters"]), (&id.into(), &serde_json::json!([])), "{monitor}");
    assert_eq!(locks_of(&answer, object, "semaphore-slim"), *semaphore);
    let (_, threads) = common::ask(dump.copy.path(), &["threads", "--waits"]);
    let (_, before) = common::ask(dump.changed(&[]), &["threads", "--waits"]);
    let held = |answer: &Value| {
        let of = answer["data"]["threads"].as_array().unwrap().iter().find(|t| t["managed_id"] == id);
        of.unwrap()["locks_held"].as_u64().unwrap()
    };
    assert_eq!(held(&threads), held(&before) + 1);
}

#[test]
fn requests_whose_methods_are_garbage_are_not_in_flight() {
    let dump = Original::of("net10-wks-http-heap");
    let requests = |path: &Path, more: &[&str]| {
        let (_, answer) = common::ask(path, &[&["requests"], more].concat());
        answer["data"]["requests"].as_array().unwrap().clone()
    };
    let whole = requests(dump.changed(&[]), &[]);
    assert_eq!(whole.len(), 7);
    // Nothing refers to them any more: all roots are cleared.
    let mut changes = Vec::new();
    for request in &whole {
        let (_, paths) = common::ask(dump.copy.path(), &["path", request["object"].as_str().unwrap(), "--all-roots", "--paths", "50"]);
        let roots = paths["data"]["paths"].as_array().unwrap().iter().flat_map(|p| p["roots"].as_array().unwrap());
        changes.extend(roots.map(|root| (Addr(common::number(&root["address"])), 0, 8)));
    }
    dump.changed(&changes);
    assert_eq!(requests(dump.copy.path(), &["--no-graph"]).len(), 7);
    let left = requests(dump.copy.path(), &[]);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn zeros_in_the_heap_are_not_taken_for_an_object_in_allocation() {
    for name in common::sample(OF_EACH, 4) {
        let dump = Original::of(name);
        let whole = dump.whole(&["stat", "objects"]);
        let runtime = dump.runtime();
        let running = runtime.thread_list().unwrap().iter().filter(|t| t.cooperative != Some(false)).count();
        let heap = runtime.heap().unwrap();
        let mut zeroed = 0;
        for segment in heap.segment_models().iter().filter(|s| s.allocated_bytes >= 256) {
            // Where objects are allocated, a thread in cooperative mode may be allocating one.
            if running > 0 && matches!(segment.generation, Generation::Loh | Generation::Poh) {
                continue;
            }
            let zeros: Vec<_> = (0..32).map(|i| (segment.start.plus(8 * i), 0, 8)).collect();
            dump.check(&format!("zeros in {}", segment.generation), &whole, &zeros);
            zeroed += 1;
        }
        assert!(zeroed > 2, "{name}");
    }
}

#[test]
fn an_object_that_reaches_into_an_allocation_context_is_reported() {
    for name in common::sample(OF_EACH, 4) {
        let dump = Original::of(name);
        let whole = dump.whole(&["stat", "objects"]);
        let runtime = dump.runtime();
        let contexts: Vec<Addr> = runtime.thread_list().unwrap().iter().filter_map(|t| Some(t.context?.pointer)).collect();
        let mut last = None;
        common::walker(&runtime).visit(
            &Silent,
            |_, _| true,
            |object| {
                let array = object.ty.component_size > 0 && !object.ty.is_free;
                if array && contexts.iter().any(|at| object.address < *at && at.0 - object.address.0 < 4096) {
                    last = Some((object.address.plus(8), object.length().unwrap()));
                }
                ControlFlow::Continue(())
            },
        );
        let Some((length, before)) = last else { continue };
        dump.check("an enlarged array", &whole, &[(length, before + 1500, 4)]);
    }
}

#[test]
fn exceptions_are_found_by_name_if_the_variable_of_the_runtime_is_wrong() {
    let dump = Original::of("net10-wks-hangs-heap");
    let whole = dump.whole(&["exceptions"]);
    let variable = dump.variable("ExceptionMethodTable");
    let string = dump.ptr(dump.variable("StringMethodTable"));
    for value in [NOWHERE, string.0] {
        dump.check("another type", &whole, &[(variable, value, 8)]);
        let (_, answer) = common::ask(dump.changed(&[(variable, value, 8)]), &["exceptions"]);
        assert_eq!(answer["data"]["exceptions"], whole[0].1["data"]["exceptions"]);
    }
}
