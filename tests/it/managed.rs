//! Threads, frames, variables, roots, fields and collections as handles: they have the same values as the commands.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gcdump::cli::Exit;
use gcdump::{
    Addr, Cancel, Cancelled, Collection, Error, Field, Frame, GcHandle, ImageIdentity, Method, Module, Root, Runtime, Segment, Thread,
    Variable,
};
use serde_json::Value as Json;

use crate::common::{ask, own_dump};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

fn runtime(path: &Path) -> Runtime {
    gcdump::open(path).unwrap().runtime().unwrap()
}

fn data(path: &Path, command: &[&str]) -> Json {
    ask(path, command).1["data"].clone()
}

#[test]
fn handles_are_send_and_sync() {
    fn goes_anywhere<T: Send + Sync + Clone + 'static>() {}
    goes_anywhere::<Thread>();
    goes_anywhere::<Frame>();
    goes_anywhere::<Method>();
    goes_anywhere::<Variable>();
    goes_anywhere::<Root>();
    goes_anywhere::<GcHandle>();
    goes_anywhere::<Segment>();
    goes_anywhere::<Module>();
    goes_anywhere::<Field>();
    goes_anywhere::<Collection>();
    goes_anywhere::<Cancel>();
}

/// Handles are as complete as the answers of the corresponding commands: for whole dumps, for one with gaps in its stacks, and for a mini
/// dump.
#[test]
fn handles_are_as_complete_as_the_commands() {
    let mut partial = 0;
    for path in [own_dump(), corpus("net8-wks-stacks-heap"), corpus("net10-wks-asyncmix-heap"), corpus("net10-wks-stacks-mini")] {
        let runtime = runtime(&path);
        let complete = |line: &[&str]| ask(&path, line).0 == Exit::Ok;
        let heap = runtime.heap().unwrap();
        let handles = [
            (complete(&["threads"]), runtime.threads().unwrap().complete(), "threads"),
            (complete(&["roots", "--stat"]), heap.roots().unwrap().complete(), "roots"),
            (complete(&["handles", "--stat"]), heap.gc_handles().unwrap().complete(), "handles"),
        ];
        // The command also shows names and exceptions, which handles read only on request: a mini dump does not have them.
        let lists_more = |what: &str| what == "threads" && path.ends_with("net10-wks-stacks-mini.dmp.zst");
        for (command, handle, what) in handles.into_iter().filter(|(.., what)| !lists_more(what)) {
            assert!(command || !handle, "{}: the command says that {what} are partial", path.display());
            partial += u32::from(!handle);
        }
    }
    assert!(partial > 2, "{partial} partial answers");
}

/// Threads, frames and their variables equal those of `stacks`.
#[test]
fn threads_and_frames_are_those_of_stacks() {
    let (mut frames, mut variables, mut objects) = (0, 0, 0);
    for path in [own_dump(), corpus("net8-wks-stacks-heap"), corpus("net10-svr-basics-heap")] {
        let stacks = data(&path, &["stacks", "--arguments", "--locals"]);
        let runtime = runtime(&path);
        for said in stacks["threads"].as_array().unwrap() {
            let threads = runtime.threads().unwrap();
            let thread = threads.iter().find(|t| t.os_id() == said["os_id"].as_u64()).unwrap();
            assert_eq!(said["managed_id"].as_u64(), thread.managed_id().map(u64::from), "{thread:?}");
            assert_eq!(said["name"].as_str(), thread.name().as_deref(), "{thread:?}");
            let handles = thread.frames().unwrap();
            let said = said["frames"].as_array().unwrap();
            assert_eq!(said.len(), handles.len(), "{thread:?}");
            for (said, frame) in said.iter().zip(&handles) {
                frames += 1;
                assert_eq!(said["kind"], frame.kind().to_string(), "{frame:?}");
                assert_eq!(said["ip"].as_str(), frame.ip().map(|ip| ip.to_string()).as_deref(), "{frame:?}");
                let method = frame.method();
                assert_eq!(said["method_desc"].as_str(), method.as_ref().map(|m| m.address().to_string()).as_deref(), "{frame:?}");
                if let Some(module) = said["module"].as_str() {
                    assert_eq!(method.as_ref().unwrap().module(), Some(module), "{frame:?}");
                }
                for (listed, found) in [("arguments", frame.arguments().unwrap()), ("locals", frame.locals().unwrap())] {
                    let Some(listed) = said[listed].as_array() else { continue };
                    assert_eq!(listed.len(), found.len(), "{said}");
                    for (said, variable) in listed.iter().zip(&found) {
                        variables += 1;
                        assert_eq!(said["name"].as_str(), variable.name(), "{said}");
                        assert_eq!(said["type"], variable.type_name(), "{said}");
                        assert_eq!(said["location"].as_str(), variable.location(), "{said}");
                        let Ok(value) = variable.value() else {
                            assert!(said["reason"].is_string(), "{said}");
                            continue;
                        };
                        // Frames show less of long texts and structures, and no methods of delegates.
                        if said["value"]["truncated"] != true && !value.is_structure() {
                            assert!(value.text().starts_with(said["value"]["text"].as_str().unwrap()), "{said} {}", value.text());
                        }
                        if let Some(object) = said["value"]["object"].as_str() {
                            objects += 1;
                            assert_eq!(object, variable.object().unwrap().address().to_string(), "{said}");
                        }
                    }
                }
            }
        }
    }
    assert!(frames > 30 && variables > 20 && objects > 10, "{frames} frames, {variables} variables, {objects} objects");
}

/// Threads equal those of `threads`.
#[test]
fn threads_are_those_of_the_command() {
    let (mut threads, mut finalizers, mut cooperative, mut contexts, mut objects, mut exceptions) = (0, 0, 0, 0, 0, 0);
    let names = ["net8-wks-stacks-heap", "net10-svr-basics-heap", "net10-wks-asyncmix-heap", "win-net10-wks-crash-full"];
    for path in names.into_iter().map(corpus).chain([own_dump()]) {
        let said = data(&path, &["threads"]);
        let said = said["threads"].as_array().unwrap();
        let handles = runtime(&path).threads().unwrap();
        assert_eq!(said.len(), handles.len(), "{}", path.display());
        for (said, thread) in said.iter().zip(&handles) {
            let text = |address: Option<Addr>| address.map(|at| at.to_string());
            assert_eq!(said["address"], thread.address().to_string(), "{said}");
            assert_eq!(said["managed_id"].as_u64(), thread.managed_id().map(u64::from), "{said}");
            assert_eq!(said["os_id"].as_u64(), thread.os_id(), "{said}");
            assert_eq!(said["name"].as_str(), thread.name().as_deref(), "{said}");
            assert_eq!(said["state"], serde_json::to_value(thread.states()).unwrap(), "{said}");
            let mode = thread.is_cooperative().map(|cooperative| if cooperative { "cooperative" } else { "preemptive" });
            assert_eq!(said["gc_mode"].as_str(), mode, "{said}");
            assert_eq!(said["finalizer"], thread.is_finalizer(), "{said}");
            let context = thread.allocation_context();
            assert_eq!(said["alloc_pointer"].as_str(), text(context.map(|c| c.pointer)).as_deref(), "{said}");
            assert_eq!(said["alloc_limit"].as_str(), text(context.map(|c| c.limit)).as_deref(), "{said}");
            assert_eq!(said["allocated_bytes"].as_u64(), context.and_then(|c| c.bytes), "{said}");
            let object = thread.object().unwrap().map(|object| object.address());
            assert_eq!(said["object"].as_str(), text(object).as_deref(), "{said}");
            if said["exception"]["current"] == true {
                let exception = thread.exception().unwrap().map(|exception| exception.address());
                assert_eq!(said["exception"]["address"].as_str(), text(exception).as_deref(), "{said}");
                exceptions += 1;
            }
            threads += 1;
            finalizers += u32::from(thread.is_finalizer());
            cooperative += u32::from(thread.is_cooperative() == Some(true));
            contexts += u32::from(context.is_some_and(|context| !context.pointer.is_null()));
            objects += u32::from(object.is_some());
        }
    }
    let counts = format!("{threads} threads, {finalizers} finalizers, {cooperative} cooperative, {contexts} contexts, {objects} objects");
    assert!(threads > 20 && finalizers == 5 && contexts > 3 && objects > 5 && exceptions > 0, "{counts}, {exceptions} exceptions");
}

#[test]
fn roots_are_those_of_the_command() {
    let (mut threads, mut tables) = (0, 0);
    for path in [own_dump(), corpus("net10-svr-basics-heap")] {
        let roots = data(&path, &["roots", "--top", "0"]);
        let heap = runtime(&path).heap().unwrap();
        let handles = heap.roots().unwrap();
        let of_tables = heap.gc_handles().unwrap();
        let said = roots["roots"].as_array().unwrap();
        assert_eq!(said.len(), handles.len());
        for (said, root) in said.iter().zip(&handles) {
            assert_eq!(said["kind"], root.kind().to_string(), "{root:?}");
            assert_eq!(said["object"], root.target().to_string(), "{root:?}");
            assert_eq!(said["address"].as_str(), root.address().map(|at| at.to_string()).as_deref(), "{root:?}");
            assert_eq!(said["label"], root.label(), "{root:?}");
            let thread = root.thread();
            assert_eq!(said["thread"].as_u64(), thread.as_ref().and_then(Thread::managed_id).map(u64::from), "{root:?}");
            assert_eq!(root.thread_id(), thread.as_ref().and_then(Thread::managed_id), "{root:?}");
            assert_eq!(root.is_conservative(), root.flags().iter().any(|flag| flag.name() == "conservative"), "{root:?}");
            threads += u32::from(thread.is_some());
            let handle = root.handle();
            assert_eq!(handle.is_some(), of_tables.iter().any(|handle| Some(handle.address()) == root.address()), "{root:?}");
            if let Some(handle) = handle {
                tables += 1;
                let same = of_tables.iter().find(|other| other.address() == handle.address()).unwrap();
                assert_eq!(
                    (handle.kind(), handle.target(), handle.secondary()),
                    (same.kind(), same.target(), same.secondary()),
                    "{root:?}"
                );
            }
        }
    }
    assert!(threads > 10 && tables > 10, "{threads} roots of threads, {tables} of handle tables");
}

/// Every collection of a dump with all kinds has the elements that `object` shows.
#[test]
fn collections_have_the_elements_that_object_shows() {
    let (mut items, mut entries) = (0, 0);
    for path in [own_dump(), corpus("net10-wks-colls-heap")] {
        let heap = runtime(&path).heap().unwrap();
        for object in heap.objects() {
            let Ok(collection) = object.collection() else { continue };
            if object.is_array() || collection.count() == 0 || collection.count() > 20 {
                continue;
            }
            let said = data(&path, &["object", &object.address().to_string()]);
            let listed = &said["collection"];
            assert_eq!(listed["count"], collection.count(), "{object:?}: {listed}");
            let Some(listed) = listed["items"].as_array().filter(|list| !list.is_empty()) else { continue };
            // Weak tables have keys without values.
            let alone = ["key", "value"]
                .iter()
                .find(|part| !listed[0][part].is_null())
                .filter(|_| listed[0]["key"].is_null() || listed[0]["value"].is_null());
            if let Some(part) = alone {
                let handles: Vec<String> = collection.items().unwrap().map(|value| value.text()).collect();
                let texts: Vec<&str> = listed.iter().map(|item| item[part]["text"].as_str().unwrap()).collect();
                assert_eq!(texts, handles, "{object:?}");
                items += handles.len();
            } else {
                let handles = object.entries().unwrap();
                assert_eq!(listed.len(), handles.len());
                for (said, (key, value)) in listed.iter().zip(handles) {
                    assert_eq!(said["key"]["text"], key.text(), "{object:?}");
                    assert_eq!(said["value"]["text"], value.text(), "{object:?}");
                    entries += 1;
                }
            }
        }
    }
    assert!(items > 20 && entries > 20, "{items} elements, {entries} entries");
}

#[test]
fn a_field_is_read_from_every_object_that_has_it() {
    let runtime = runtime(&own_dump());
    let heap = runtime.heap().unwrap();
    let index = runtime.type_named("Lab.Node").unwrap().field("Index").unwrap();
    assert_eq!((index.name(), index.type_name(), index.is_reference()), ("Index", "System.Int32", false));
    for node in heap.objects_of("Lab.Node").unwrap() {
        assert_eq!(node.read::<i32>(&index).unwrap(), node.field("Index").unwrap().read::<i32>().unwrap());
    }
    // The field is of a base type: objects of derived types have it.
    let name = runtime.type_named("Lab.Animal").unwrap().field("_name").unwrap();
    let dog = heap.objects_of("Lab.Dog").unwrap().next().unwrap();
    assert_eq!(dog.read::<String>(&name).unwrap(), "dog0");
    let error = dog.read::<i32>(&index).unwrap_err().to_string();
    assert!(error.contains("has no field \"Index\"") && error.contains("Lab.Dog"), "{error}");
    assert!(matches!(runtime.type_named("Lab.Dog").unwrap().field("Nope"), Err(Error::Value(_))));
}

#[test]
fn handles_are_those_of_the_command() {
    for path in [own_dump(), corpus("net8-svr-handles-heap")] {
        let said = data(&path, &["handles", "--top", "0"]);
        let heap = runtime(&path).heap().unwrap();
        let handles = heap.gc_handles().unwrap();
        let said = said["handles"].as_array().unwrap();
        assert_eq!(said.len(), handles.len());
        for (said, handle) in said.iter().zip(&handles) {
            assert_eq!(said["address"], handle.address().to_string());
            assert_eq!(said["type"], handle.kind().to_string());
            assert_eq!(said["object"], handle.target().to_string());
            assert_eq!(said["secondary"].as_str(), handle.secondary().map(|at| at.to_string()).as_deref());
        }
    }
}

#[test]
fn modules_are_those_of_the_command() {
    let (mut managed, mut dynamic, mut images, mut types) = (0, 0, 0, 0);
    for path in [own_dump(), corpus("net8-svr-handles-heap"), corpus("win-net10-wks-basics-full"), corpus("net10-wks-dynamic-heap")] {
        let dump = gcdump::open(&path).unwrap();
        let said = data(&path, &["modules", "--top", "0"]);
        let said = said["modules"].as_array().unwrap();
        let modules = dump.modules().unwrap();
        assert_eq!(said.len(), modules.len(), "{}", path.display());
        for (said, module) in said.iter().zip(&modules) {
            let text = |address: Option<Addr>| address.map(|at| at.to_string());
            assert_eq!(said["name"].as_str(), module.name().as_deref(), "{said}");
            assert_eq!(said["path"].as_str(), module.path().as_deref(), "{said}");
            assert_eq!(said["module"].as_str(), text(module.address()).as_deref(), "{said}");
            assert_eq!(said["base"].as_str(), text(module.base()).as_deref(), "{said}");
            assert_eq!(said["size"].as_u64(), module.range().map(|range| range.len()), "{said}");
            assert_eq!(said["kind"] == "dynamic", module.is_dynamic(), "{said}");
            // The command takes the version of the runtime's image from the runtime.
            if said["kind"] != "runtime" {
                assert_eq!(said["version"].as_str(), module.version().as_deref(), "{said}");
            }
            match module.identity() {
                Some(ImageIdentity::Stamp { timestamp, size }) => {
                    assert_eq!(
                        (said["timestamp"].as_u64(), said["image_size"].as_u64()),
                        (Some(timestamp.into()), Some(size.into())),
                        "{said}"
                    );
                }
                Some(identity) => assert_eq!(said["build_id"], identity.to_string(), "{said}"),
                None => assert!(said["timestamp"].is_null() && said["build_id"].is_null(), "{said}"),
            }
            let defined = module.types().unwrap();
            assert!(defined.iter().all(|ty| ty.module() == module.name()), "{said}");
            managed += u32::from(module.is_managed());
            dynamic += u32::from(module.is_dynamic());
            images += u32::from(!module.is_managed());
            types += defined.len();
        }
    }
    let counts = format!("{managed} assemblies, {dynamic} of them dynamic, {images} images, {types} types");
    assert!(managed > 10 && dynamic > 0 && images > 5 && types > 100, "{counts}");
}

#[test]
fn segments_are_those_of_the_command() {
    let mut objects = 0;
    for path in [own_dump(), corpus("net10-svr-basics-heap"), corpus("net8-seg-basics-heap")] {
        let said = data(&path, &["segments", "--walk"]);
        let said = said["segments"].as_array().unwrap();
        let segments = runtime(&path).heap().unwrap().segments();
        assert_eq!(said.len(), segments.len(), "{}", path.display());
        for (said, segment) in said.iter().zip(&segments) {
            assert_eq!(said["address"], segment.address().to_string(), "{said}");
            assert_eq!(said["heap"], segment.gc_heap(), "{said}");
            assert_eq!(said["generation"], segment.generation().to_string(), "{said}");
            assert_eq!(said["start"], segment.range().start.to_string(), "{said}");
            assert_eq!(said["allocated"], segment.range().end.to_string(), "{said}");
            assert_eq!(said["committed_bytes"], segment.committed_bytes(), "{said}");
            assert_eq!(said["captured_bytes"], segment.captured_bytes(), "{said}");
            assert_eq!(said["walk"]["objects"], segment.objects().count(), "{said}");
            assert!(segment.objects().all(|object| segment.range().contains(object.address())), "{said}");
            objects += segment.objects().count();
        }
    }
    assert!(objects > 1000, "{objects}");
}

/// The facts of dumps and runtimes equal those of `info`.
#[test]
fn dumps_and_runtimes_are_those_of_info() {
    let mut times = 0;
    for path in [own_dump(), corpus("net10-svr-basics-heap"), corpus("net8-seg-basics-heap"), corpus("win-net10-wks-basics-full")] {
        let said = data(&path, &["info"]);
        let dump = gcdump::open(&path).unwrap();
        assert_eq!(said["os"], dump.os().name(), "{}", path.display());
        assert_eq!(said["architecture"], dump.architecture().name(), "{}", path.display());
        assert_eq!(said["process_id"].as_u64(), dump.process_id().map(u64::from), "{}", path.display());
        assert_eq!(said["process_name"].as_str(), dump.process_name(), "{}", path.display());
        let time = dump.time().map(|time| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
        assert_eq!(said["time"].as_u64(), time, "{}", path.display());
        times += u32::from(time.is_some());
        let runtime = dump.runtime().unwrap();
        assert_eq!(said["runtimes"][0]["kind"], runtime.kind().name());
        assert_eq!(said["runtimes"][0]["version"].as_str(), runtime.version());
        assert_eq!(said["gc"]["kind"].as_str(), runtime.gc_kind().map(|kind| kind.name()));
        assert_eq!(said["gc"]["layout"].as_str(), runtime.gc_layout().map(|layout| layout.name()));
    }
    assert!(times > 0);
}

/// Both errors of a cancelled call are errors of the library.
#[test]
fn a_cancelled_call_needs_no_other_error() {
    let count = |cancel: Cancel| -> Result<u64, Error> {
        let heap = gcdump::open(own_dump())?.runtime()?.heap()?;
        Ok(cancel.run(|| heap.stat())??.totals.count)
    };
    assert!(count(Cancel::new()).unwrap() > 1000);
    assert!(matches!(count(Cancel::after(Duration::ZERO)), Err(Error::Cancelled(Cancelled))));
}

/// Work ends at its deadline or when it is cancelled, and the same handles answer afterwards.
#[test]
fn cancelled_work_can_be_repeated() {
    let heap = runtime(&own_dump()).heap().unwrap();
    assert!(matches!(Cancel::after(Duration::ZERO).run(|| heap.retained()), Err(Cancelled)));
    let cancel = Cancel::new();
    cancel.cancel();
    assert!(matches!(cancel.run(|| heap.stat()), Err(Cancelled)));
    let hour = Cancel::after(Duration::from_secs(3600));
    assert!(hour.run(|| heap.retained()).unwrap().unwrap().totals.objects > 1000);
}

/// A detached heap gives the answers of the shared one; their objects are not equal.
#[test]
fn a_detached_heap_gives_the_same_answers() {
    let runtime = runtime(&own_dump());
    let (shared, detached) = (runtime.heap().unwrap(), runtime.detached_heap().unwrap());
    let object = shared.objects_of("Lab.Dog[]").unwrap().next().unwrap();
    let again = detached.object(object.address()).unwrap();
    assert_eq!(object.retained_size().unwrap(), again.retained_size().unwrap());
    assert!(object != again, "objects of two heaps");
    assert!(detached.object(Addr(8)).is_err());
}
