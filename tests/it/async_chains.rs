//! Chains of asynchronous methods, compared with the records of the programs `asyncmix`, `async`, `starve` and `http`, and damaged lists.

use crate::harness::Tested;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::common::{Known, ask, file_offset, known_dumps, lab, needs_lab, number, run};
use gcdump::cli::Exit;
use gcdump::internals::base::Addr;
use serde_json::Value;

pub(crate) fn list(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

/// Returns the answer of a command, which must be complete.
fn whole(path: &Path, command: &[&str]) -> Value {
    let (exit, answer) = ask(path, command);
    assert_eq!(exit, Exit::Ok, "{}: {}", path.display(), answer["warnings"]);
    answer["data"].clone()
}

/// An answer, by the objects of its frames.
struct Chains {
    data: Value,
    /// Kinds and objects of roots, by the object of a frame.
    roots: BTreeMap<u64, BTreeSet<(String, u64)>>,
    frames: BTreeMap<u64, Value>,
}

impl Chains {
    fn of(data: Value) -> Chains {
        let (mut roots, mut frames) = (BTreeMap::<u64, BTreeSet<_>>::new(), BTreeMap::new());
        for chain in list(&data["chains"]) {
            let root = (chain["root"]["kind"].as_str().unwrap().to_string(), number(&chain["root"]["object"]));
            for frame in list(&chain["frames"]) {
                let object = number(&frame["object"]);
                roots.entry(object).or_default().insert(root.clone());
                frames.insert(object, frame.clone());
            }
        }
        Chains { data, roots, frames }
    }

    /// Returns the methods below and above `object` in one of its chains. Names of runtime async have parameters.
    fn chain(&self, object: u64) -> Vec<String> {
        let has = |c: &&Value| list(&c["frames"]).iter().any(|f| number(&f["object"]) == object);
        let chain = list(&self.data["chains"]).iter().find(has);
        let frames = chain.map_or(&[][..], |c| list(&c["frames"]));
        let is_method = |f: &&Value| f["label"] != "its task";
        let method = |f: &Value| f["display"].as_str().unwrap_or_default().to_string();
        let plain = |name: String| match name.split_once('(') {
            Some((method, _)) if !name.ends_with("(lambda)") => method.to_string(),
            _ => name,
        };
        frames.iter().filter(is_method).map(method).map(plain).collect()
    }
}

/// Number of comparisons, and the ones that failed.
#[derive(Default)]
struct Compared {
    methods: usize,
    statuses: usize,
    threads: usize,
    wrong: Vec<String>,
}

impl Compared {
    fn check(&mut self, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.wrong.push(what());
        }
    }

    /// Checks that `methods` methods end at `object` and wait for `root` of `kind`.
    fn hangs(&mut self, of: &Chains, (name, methods): (&str, usize), object: &Value, kind: &str, root: Option<&Value>) {
        let found = of.roots.get(&number(object));
        let right = found.is_some_and(|f| f.iter().any(|(k, o)| k == kind && root.is_none_or(|r| number(r) == *o)));
        self.methods += if right { methods } else { 0 };
        self.check(right, || format!("{name} hangs on {found:x?}, not on {kind} {root:?}"));
    }
}

fn asyncmix(dump: &Known) -> Compared {
    let truth = &dump.truth.as_ref().unwrap()["async"];
    let runtime_async = truth["runtime_async"] == true;
    // The name of a method of System.Net.Sockets comes from its file.
    let files = if runtime_async { lab().map(|lab| lab.join("net11").display().to_string()) } else { None };
    let command = [&["async", "--tasks"][..], &files.iter().flat_map(|f| ["--modules", f.as_str()]).collect::<Vec<_>>()].concat();
    let of = Chains::of(if runtime_async && files.is_none() {
        ask(&dump.path, &command).1["data"].clone()
    } else {
        whole(&dump.path, &command)
    });
    let mut out = Compared::default();
    let promise = |out: &mut Compared, name: &str, methods: usize, root: &str| {
        out.hangs(&of, (name, methods), &truth[name], "promise", Some(&truth[root]));
    };
    for (name, methods, root) in [
        ("c3", 3, "tcs_task"),
        ("generic", 1, "tcs_task"),
        ("lambda", 1, "tcs_task"),
        ("three", 1, "three_awaits"),
        ("over_valuetask", 2, "vt_task"),
        ("blocked_on", 1, "blocked_source"),
    ] {
        promise(&mut out, name, methods, root);
    }
    for fan in list(&truth["fans"]) {
        out.hangs(&of, ("fans", 1), fan, "promise", Some(&truth["shared"]));
    }
    for (name, of_name, all) in [("all", "all_of", true), ("any", "any_of", true)] {
        let roots: BTreeSet<u64> = list(&truth[of_name]).iter().map(number).collect();
        let found: BTreeSet<u64> = of.roots[&number(&truth[name])].iter().map(|(_, o)| *o).collect();
        let right = if all { found.is_subset(&roots) && !found.is_empty() } else { found == roots };
        out.methods += usize::from(right);
        out.check(right, || format!("{name}: {found:x?}, not {roots:x?}"));
    }
    // Each task that `any` waits for is pending, so `any` has both as roots.
    out.check(of.roots[&number(&truth["any"])].len() == 2, || format!("any: {:x?}", of.roots[&number(&truth["any"])]));
    for waiter in list(&truth["sem_waiters"]) {
        out.hangs(&of, ("sem_waiters", 1), waiter, "semaphore", Some(&truth["sem"]));
    }
    for reader in list(&truth["chans"]) {
        out.hangs(&of, ("chans", 1), reader, "channel", Some(&truth["channel"]));
    }
    out.hangs(&of, ("chan_wait", 1), &truth["chan_wait"], "channel", None);
    out.hangs(&of, ("custom", 1), &truth["custom"], "source", Some(&truth["custom_awaitable"]));
    out.hangs(&of, ("from_source", 1), &truth["from_source"], "source", Some(&truth["source"]));
    out.hangs(&of, ("tick", 1), &truth["tick"], "timer", Some(&truth["periodic_timer"]));
    out.hangs(&of, ("accept", 1), &truth["accept"], "socket", None);
    out.hangs(&of, ("receive", 1), &truth["receive"], "socket", None);
    let mut delays = BTreeSet::new();
    for delay in list(&truth["delays"]).iter().chain([&truth["delay_cancel"]]) {
        out.hangs(&of, ("delay", 1), delay, "timer", None);
        delays.extend(of.roots[&number(delay)].iter().map(|(_, o)| *o));
    }
    out.check(delays.len() == 4, || format!("each waits for its own delay: {delays:x?}"));
    let void: Vec<_> = of.frames.values().filter(|f| f["async_void"] == true).collect();
    out.check(void.len() == 1, || format!("{} methods are async void", void.len()));
    void.iter().for_each(|f| out.hangs(&of, ("async void", 1), &f["object"], "promise", Some(&truth["async_void_waits_for"])));
    for next in list(&truth["continue_with"]) {
        out.hangs(&of, ("continue_with", 0), next, "promise", Some(&truth["tcs_task"]));
    }
    let chains = list(&of.data["chains"]).iter();
    let three = chains.filter(|c| objects_of(c).contains(&number(&truth["three"]))).find_map(|c| c["frames"][0]["state"].as_i64());
    // The second of three `await`s never suspends, but unoptimized code has a number for it.
    let places: &[i64] = if runtime_async { &[2, 3] } else { &[3] };
    out.check(three.is_some_and(|state| places.contains(&state)), || format!("three is at {three:?}"));
    let generic = if runtime_async { "Fetch<System.Int32>" } else { "Service<System.String>.Fetch<System.Int32>" };
    for (object, names) in [
        ("c3", &["C1", "C2", "C3"][..]),
        ("generic", &[generic]),
        ("lambda", &["StateLab.AsyncMix.Go.b__29_6 (lambda)"]),
        ("over_valuetask", &["Vt", "OverVt"]),
    ] {
        let methods = of.chain(number(&truth[object]));
        out.check(methods.len() == names.len() && methods.iter().zip(names).all(|(m, n)| m.ends_with(n)), || {
            format!("{object}: {methods:?}")
        });
    }
    // Both directions name the same object.
    let totals = &of.data["totals"];
    // The methods include those of the library: `WaitAsync` four times, `AcceptAsync`, `ReceiveAsync`.
    let methods = if runtime_async { 40 } else { 34 };
    for (key, n) in
        [("methods", methods), ("suspended", methods), ("confirmed", methods), ("contradicted", 0), ("abandoned", 0), ("unobserved", 1)]
    {
        out.check(totals[key] == n, || format!("{key}: {}", totals[key]));
    }
    let tasks: BTreeMap<u64, &Value> = list(&of.data["tasks"]).iter().map(|t| (number(&t["object"]), t)).collect();
    for (name, status) in truth["status"].as_object().unwrap() {
        let object = match name.as_str() {
            "cont" => &truth["continue_with"][0],
            "inner" => &truth["blocked_on"],
            other => &truth[other],
        };
        let found = tasks.get(&number(object)).map(|t| &t["status"]);
        out.statuses += usize::from(found == Some(status));
        out.check(found == Some(status), || format!("{name} is {found:?}, not {status}"));
    }
    let faulted = tasks[&number(&truth["unobserved"])];
    let exception = &faulted["exceptions"][0];
    out.check(faulted["unobserved"] == true && exception["type"] == "System.InvalidOperationException", || faulted.to_string());
    // Threads that wait for the task.
    let mut ids = BTreeSet::new();
    for chain in list(&of.data["chains"]) {
        let frames = list(&chain["frames"]);
        if frames.iter().any(|f| number(&f["object"]) == number(&truth["blocked_on"])) {
            ids.extend(frames.iter().filter_map(|f| f["thread"].as_u64()));
        }
    }
    let recorded: BTreeSet<u64> = list(&truth["threads"]).iter().filter_map(|t| t["managed"].as_u64()).collect();
    out.threads = ids.intersection(&recorded).count();
    out.check(ids == recorded, || format!("threads {ids:?}, not {recorded:?}"));
    out
}

#[test]
fn every_suspended_method_has_the_recorded_root() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"].as_str().is_some_and(|s| s.starts_with("asyncmix")))?;
    if dumps.is_empty() {
        println!("skipped: no dumps of the program are at hand");
    }
    let (mut wrong, mut statuses) = (Vec::new(), 0);
    for dump in &dumps {
        let found = asyncmix(dump);
        println!("{}: {} of 34 methods, {} of 11 statuses, {} of 4 threads", dump.name, found.methods, found.statuses, found.threads);
        assert!(found.methods == 34 || !found.wrong.is_empty(), "{}: {} methods were compared", dump.name, found.methods);
        statuses += found.statuses;
        wrong.extend(found.wrong.iter().map(|w| format!("{}: {w}", dump.name)));
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(statuses, 11 * dumps.len());
    Ok(())
}

#[test]
fn starved_methods_are_in_a_queue_and_block_the_workers() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "starve")?;
    for dump in &dumps {
        let truth = dump.truth.as_ref().unwrap();
        let of = Chains::of(whole(&dump.path, &["async", "--tasks"]));
        let queued: Vec<_> = list(&of.data["chains"]).iter().filter(|c| c["root"]["kind"] == "queue").collect();
        let ids = |chains: &[&Value]| -> BTreeSet<u64> {
            chains.iter().flat_map(|c| list(&c["frames"])).filter(|f| f["state"].is_null()).filter_map(|f| f["thread"].as_u64()).collect()
        };
        let workers: BTreeSet<u64> = list(&truth["workers"]).iter().filter_map(Value::as_u64).collect();
        assert_eq!((queued.len(), ids(&queued)), (4, workers), "{}", dump.name);
        let second = &of.roots[&number(&truth["second"])];
        assert_eq!(*second, [("semaphore".to_string(), number(&truth["gate"]))].into(), "{}", dump.name);
        let knot: Vec<_> = list(&of.data["chains"]).iter().filter(|c| c["root"]["kind"] == "semaphore").collect();
        assert_eq!(ids(&knot), [truth["knot"].as_u64().unwrap()].into(), "{}", dump.name);
        assert!(of.roots[&number(&truth["holder"])].iter().all(|(kind, _)| kind == "promise"), "{}", dump.name);
        let running = list(&of.data["tasks"]).iter().filter(|t| t["status"] == "Running").count();
        assert_eq!(running, truth["outer_states"].as_str().unwrap().split(',').count(), "{}", dump.name);
        println!("{}: 4 of 4 queued, 4 of 4 workers, 1 of 1 knots", dump.name);
    }
    Ok(())
}

#[test]
fn requests_in_flight_wait_for_their_sockets() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "http")?;
    for dump in &dumps {
        let truth = dump.truth.as_ref().unwrap();
        let of = Chains::of(whole(&dump.path, &["async"]));
        let chains = list(&of.data["chains"]);
        let ends = |name: &str| {
            let last = |c: &&Value| list(&c["frames"]).last().and_then(|f| f["display"].as_str()).is_some_and(|m| m.contains(name));
            chains.iter().filter(last).count() as u64
        };
        let found = (ends("HttpClient.GetStringAsync"), ends("HttpClient.SendAsync"));
        assert_eq!(found, (truth["gets"].as_u64().unwrap(), truth["posts"].as_u64().unwrap()), "{}", dump.name);
        assert!(chains.iter().all(|c| c["root"]["kind"] == "socket"), "{}: false roots", dump.name);
        let totals = &of.data["totals"];
        assert_eq!((&totals["suspended"], &totals["contradicted"]), (&totals["confirmed"], &0.into()), "{}", dump.name);
        println!("{}: {} chains, {} of {} confirmed", dump.name, chains.len(), totals["confirmed"], totals["suspended"]);
    }
    Ok(())
}

#[test]
fn forty_chains_wait_for_one_promise() -> Tested {
    let (dumps, _) = known_dumps(|row| row["scenario"] == "async")?;
    for dump in &dumps {
        let truth = dump.truth.as_ref().unwrap();
        let never = number(&truth["never"]);
        let data = whole(&dump.path, &["async", "--root", "promise"]);
        let names: Vec<&str> = list(&truth["frames_per_chain"]).iter().filter_map(Value::as_str).collect();
        let right = |c: &&Value| {
            let frames = list(&c["frames"]);
            let named = frames.iter().zip(&names).all(|(f, n)| f["method"].as_str().is_some_and(|m| m.ends_with(&format!(".{n}"))));
            number(&c["root"]["object"]) == never && frames.len() == names.len() && named
        };
        let found = list(&data["chains"]).iter().filter(right).count() as u64;
        assert_eq!(Some(found), truth["async_chains"].as_u64(), "{}", dump.name);
        let merged = whole(&dump.path, &["async", "--merge", "--root", "promise"]);
        assert_eq!(list(&merged["chains"]).iter().map(|c| c["count"].as_u64().unwrap()).max(), Some(found), "{}", dump.name);
    }
    Ok(())
}

/// A copy of a dump of the repository, with references changed.
pub(crate) struct Changed {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
}

impl Changed {
    pub(crate) fn of(name: &str) -> Changed {
        let bytes = zstd::decode_all(File::open(corpus(name)).unwrap()).unwrap();
        Changed { folder: tempfile::tempdir().unwrap(), bytes }
    }

    pub(crate) fn path(&self) -> PathBuf {
        let path = self.folder.path().join("changed.dmp");
        std::fs::write(&path, &self.bytes).unwrap();
        path
    }

    /// Makes the field of the object refer to `to`.
    pub(crate) fn refer(&mut self, object: u64, field: &str, to: u64) {
        self.set(object, field, &to.to_le_bytes());
    }

    /// Sets a field of the object, or of a structure in it: `StateMachine.<>1__state`.
    pub(crate) fn set(&mut self, object: u64, field: &str, value: &[u8]) {
        let path = self.path();
        let (_, answer) = ask(&path, &["object", &format!("{object:#x}")]);
        let within = |of: &Value, name: &str| list(&of["fields"]).iter().find(|f| f["name"] == name).unwrap().clone();
        let found = field.split('.').fold(answer["data"].clone(), |of, name| within(&of, name));
        let dump = gcdump::open(&path).unwrap();
        let offset = file_offset(dump.runtime().unwrap().file(), Addr(number(&found["address"]))).unwrap();
        self.bytes[offset..offset + value.len()].copy_from_slice(value);
    }
}

/// Returns the objects of the frames of the first chain with a frame in `method`.
fn objects(data: &Value, method: &str) -> Vec<u64> {
    let within = |c: &&Value| list(&c["frames"]).iter().any(|f| f["method"].as_str().is_some_and(|m| m.ends_with(method)));
    let chain = list(&data["chains"]).iter().find(within).unwrap_or_else(|| panic!("no {method}"));
    list(&chain["frames"]).iter().map(|f| number(&f["object"])).collect()
}

#[test]
fn chains_of_dumps_in_the_repository_are_confirmed_by_both_directions() {
    for (name, methods) in [("net10-wks-asyncmix-heap", 34), ("net10-wks-async-heap", 120), ("net10-wks-http-heap", 42)] {
        let data = whole(&corpus(name), &["async"]);
        let totals = &data["totals"];
        let counts = ["methods", "suspended", "confirmed"].map(|key| totals[key].as_u64());
        assert_eq!(counts, [Some(methods); 3], "{name}: {totals}");
    }
    // An answer without tasks is complete as well.
    let data = whole(&corpus("net10-wks-crash-heap"), &["async", "--tasks"]);
    assert_eq!((list(&data["chains"]).len(), data["tasks"].as_array().map(Vec::len)), (0, Some(0)));
}

#[test]
fn methods_that_wait_for_each_other_end() {
    let mut dump = Changed::of("net10-wks-asyncmix-heap");
    let before = whole(&dump.path(), &["async"]);
    let [c1, _, c3] = objects(&before, ".C3")[..] else { panic!("C3 waits for C2 and C1") };
    // The innermost method waits for the outermost one, and for its promise.
    dump.refer(c3, "m_continuationObject", c1);
    let (_, answer) = ask(&dump.path(), &["async"]);
    assert_eq!(objects(&answer["data"], ".C3").len(), 3, "{answer}");
    // No other method waits for these two, so they are their own root.
    let [vt, over] = objects(&before, ".OverVt")[..] else { panic!("OverVt waits for Vt") };
    let promise = list(&before["chains"]).iter().find(|c| objects_of(c).contains(&vt)).map(|c| number(&c["root"]["object"])).unwrap();
    dump.refer(over, "m_continuationObject", vt);
    dump.refer(promise, "m_continuationObject", 0);
    let (exit, answer) = ask(&dump.path(), &["async", "--root", "cycle"]);
    assert_eq!(exit, Exit::Ok, "{}", answer["warnings"]);
    let cycles = list(&answer["data"]["chains"]);
    assert_eq!(cycles.len(), 1, "{cycles:?}");
    assert_eq!(objects_of(&cycles[0]).into_iter().collect::<BTreeSet<_>>(), [vt, over].into());
    // Tables and graphs, too.
    for form in [&["async"][..], &["async", "--all"], &["async", "--format", "dot"]] {
        let path = dump.path();
        let ran = run(&[form, &["--no-local-files", path.to_str().unwrap()]].concat());
        assert_eq!(ran.exit, Exit::Ok, "{form:?}: {}", ran.err);
    }
}

/// The root of a chain is a task whose delegate has been invoked. Its flags are changed.
#[test]
fn a_task_runs_on_a_thread_only_if_it_is_on_a_stack() {
    let mut dump = Changed::of("net10-wks-starve-heap");
    let before = whole(&dump.path(), &["async", "--root", "promise"]);
    let task = number(&before["chains"][0]["root"]["object"]);
    let (_, object) = ask(&dump.path(), &["object", &format!("{task:#x}")]);
    let fields = list(&object["data"]["fields"]);
    let flags = fields.iter().find(|f| f["name"] == "m_stateFlags").map(|f| number(&f["address"])).unwrap();
    let offset = {
        let opened = gcdump::open(dump.path()).unwrap();
        file_offset(opened.runtime().unwrap().file(), Addr(flags)).unwrap()
    };
    for (flags, label) in
        [(0x3_0000u32, "runs, but is on no thread's stack"), (0x83_0000, "its delegate has returned; it waits for its child tasks")]
    {
        dump.bytes[offset..offset + 4].copy_from_slice(&flags.to_le_bytes());
        let (_, answer) = ask(&dump.path(), &["async"]);
        let chain = list(&answer["data"]["chains"]).iter().find(|c| number(&c["root"]["object"]) == task).unwrap().clone();
        assert_eq!((chain["root"]["kind"].as_str(), chain["root"]["label"].as_str()), (Some("unknown"), Some(label)), "{flags:#x}");
    }
}

#[test]
fn every_thread_that_waits_for_a_chain_has_its_root() {
    let heap = gcdump::open(corpus("net10-wks-starve-heap")).unwrap().runtime().unwrap().heap().unwrap();
    // The trees of this query do not have all roots.
    let query = gcdump::analysis::AsyncQuery { merge: true, top: 1, ..gcdump::analysis::AsyncQuery::default() };
    let report = gcdump::analysis::async_chains(&heap, &query).unwrap().data;
    let kinds: Vec<(u32, &str)> = report.threads.iter().map(|(id, root)| (*id, root.kind.name())).collect();
    assert_eq!(kinds, [(4, "queue"), (5, "queue"), (7, "queue"), (8, "queue"), (9, "semaphore")]);
    let objects: BTreeSet<_> = report.threads.values().map(|root| root.object).collect();
    assert_eq!(objects.len(), 5, "each thread waits for another object");
    let chains: u64 = report.roots.iter().map(|sum| sum.chains).sum();
    assert_eq!(chains, report.chains.iter().map(|c| c.count).sum::<u64>());
}

#[test]
fn sums_by_root_count_the_methods_that_threads_run() {
    let heap = gcdump::open(corpus("net11-wks-rtasync-heap")).unwrap().runtime().unwrap().heap().unwrap();
    let report = gcdump::analysis::async_chains(&heap, &gcdump::analysis::AsyncQuery::default()).unwrap().data;
    let [sum] = report.roots.as_slice() else { panic!("{:?}", report.roots) };
    assert_eq!((sum.methods, sum.longest), (report.totals.methods, 3));
}

fn objects_of(chain: &Value) -> Vec<u64> {
    list(&chain["frames"]).iter().map(|f| number(&f["object"])).collect()
}

#[test]
fn a_cyclic_list_of_waiters_ends_and_is_reported() {
    let mut dump = Changed::of("net10-wks-asyncmix-heap");
    let before = whole(&dump.path(), &["async", "--root", "semaphore"]);
    let nodes: Vec<u64> = list(&before["chains"]).iter().map(|c| number(&c["root"]["node"])).collect();
    assert_eq!(nodes.len(), 4);
    nodes.iter().for_each(|node| dump.refer(*node, "Next", nodes[0]));
    let (exit, answer) = ask(&dump.path(), &["async"]);
    assert_eq!(exit, Exit::Partial);
    assert!(list(&answer["warnings"]).iter().any(|w| w["kind"] == "limit-hit"), "{}", answer["warnings"]);
    assert_eq!(answer["data"]["complete"], false);
    // A list of continuations contains itself.
    let mut dump = Changed::of("net10-wks-asyncmix-heap");
    let fan = objects(&whole(&dump.path(), &["async"]), ".Fan")[0];
    let chains = whole(&dump.path(), &["async", "--method", ".Fan"]);
    let shared = number(&chains["chains"][0]["root"]["object"]);
    let (_, task) = ask(&dump.path(), &["object", &format!("{shared:#x}")]);
    let field = |name: &str| list(&task["data"]["fields"]).iter().find(|f| f["name"] == name).map(|f| number(&f["object"])).unwrap();
    let continuations = field("m_continuationObject");
    dump.refer(fan, "m_continuationObject", continuations);
    let (_, answer) = ask(&dump.path(), &["async", "--method", ".Fan"]);
    assert!(list(&answer["data"]["chains"]).len() >= 5, "{answer}");
}

/// Options that supply the lab's files of the framework.
fn with_files() -> Result<[String; 2], crate::harness::Ignored> {
    Ok(["--modules".into(), needs_lab()?.join("net11").display().to_string()])
}

fn dump_of(scenario: &str) -> Result<Vec<Known>, crate::harness::Ignored> {
    Ok(known_dumps(|row| row["scenario"] == scenario)?.0)
}

/// Returns the continuations that the truth lists for a task, innermost first, with their methods if the program knew them.
fn continuations(of_task: &Value) -> Vec<(u64, Option<String>)> {
    let made = |c: &&Value| c["type"].as_str().is_some_and(|t| t.starts_with("Continuation,"));
    // `void [lab] StateLab.AsyncMix::C3(int32)[QuickJitted]`
    let method = |c: &Value| c["method"].as_str().and_then(|m| Some(m.split("::").nth(1)?.split(['(', '<']).next()?.to_string()));
    list(&of_task["chain"]).iter().filter(made).map(|c| (number(&c["object"]), method(c))).collect()
}

#[test]
fn chains_of_runtime_async_are_those_of_the_program() -> Tested {
    let files = with_files()?;
    for (scenario, chains, file) in [("asyncmixrt", 30, "System.Net.Sockets.dll"), ("httprt", 7, "System.Net.Http.dll")] {
        for dump in dump_of(scenario)? {
            let truth = dump.truth.as_ref().unwrap();
            let recorded = if truth["continuations"].is_array() { &truth["continuations"] } else { &truth["async"]["continuations"] };
            let data = whole(&dump.path, &["async", &files[0], &files[1]]);
            for of_task in list(recorded) {
                let own = continuations(of_task);
                let task = number(&of_task["task"]);
                let all: Vec<u64> = own.iter().map(|(at, _)| *at).chain([task]).collect();
                let chain = list(&data["chains"]).iter().find(|c| objects_of(c).windows(all.len()).any(|part| part == all));
                let chain = chain.unwrap_or_else(|| panic!("{}: {task:#x} {all:x?}", dump.name));
                for (at, method) in own {
                    let frame = list(&chain["frames"]).iter().find(|f| number(&f["object"]) == at).unwrap();
                    let found = frame["method"].as_str().unwrap_or_else(|| panic!("{}: {at:#x} has no method: {frame}", dump.name));
                    assert!(method.is_none_or(|m| found.contains(&m)), "{}: {at:#x} {found}", dump.name);
                }
                let last = list(&chain["frames"]).iter().find(|f| number(&f["object"]) == task).unwrap();
                assert_eq!((&last["method"], &last["label"]), (&Value::Null, &"its task".into()), "{}", dump.name);
            }
            assert_eq!(list(recorded).len(), chains, "{}", dump.name);
            let plumbing = |f: &Value| f["label"].as_str().is_some_and(|l| l.contains("Continuation") || l.contains("RuntimeAsyncTask"));
            assert!(!list(&data["chains"]).iter().flat_map(|c| list(&c["frames"])).any(plumbing), "{}", dump.name);
            assert!(list(&data["chains"]).iter().all(|c| c["root"]["kind"] != "unknown"), "{}", dump.name);
            // Without the files, frames and a note say which file has the names.
            let (exit, answer) = ask(&dump.path, &["async"]);
            assert_eq!(exit, Exit::Partial, "{}", dump.name);
            let named = |w: &Value| w["message"].as_str().is_some_and(|m| m.contains(file) && m.contains("--modules"));
            assert!(list(&answer["warnings"]).iter().any(named), "{}: {}", dump.name, answer["warnings"]);
            let frames = list(&answer["data"]["chains"]).iter().flat_map(|c| list(&c["frames"]));
            let (lost, rest): (Vec<_>, Vec<_>) = frames.partition(|f| f["file"] == file);
            assert!(!lost.is_empty() && lost.iter().all(|f| f["label"].as_str().unwrap().contains(file)), "{}", dump.name);
            assert!(rest.iter().all(|f| f["file"].is_null()), "{}", dump.name);
        }
    }
    Ok(())
}

#[test]
fn a_method_that_a_thread_runs_comes_before_those_that_await_it() -> Tested {
    for dump in dump_of("asyncliverasync")? {
        let truth = dump.truth.as_ref().unwrap();
        let data = whole(&dump.path, &["async"]);
        for name in ["first", "second"] {
            let of = &truth[name];
            let task = number(&of["outermost_task"]);
            let chain = list(&data["chains"]).iter().find(|c| number(&c["root"]["object"]) == task).unwrap();
            assert_eq!(chain["root"]["kind"], "running", "{}", dump.name);
            let methods: Vec<&str> = list(&chain["frames"]).iter().filter_map(|f| f["method"].as_str()?.split('(').next()).collect();
            let recorded: Vec<&str> = list(&of["methods"]).iter().filter_map(Value::as_str).collect();
            assert_eq!(methods, recorded, "{}", dump.name);
            let first = &chain["frames"][0];
            assert_eq!(
                (number(&first["object"]), &first["thread"], &first["status"]),
                (task, &of["thread"]["managed"], &of["outermost_status"])
            );
            // The task is that of the outermost method.
            let object = whole(&dump.path, &["object", of["outermost_task"].as_str().unwrap()]);
            assert!(object["task"]["method"].as_str().unwrap().starts_with(recorded[2]), "{object}");
        }
        // The thread that waits for the first task comes after the outermost method.
        let waits = |c: &&Value| list(&c["frames"]).last().unwrap()["thread"] == truth["main"]["managed"];
        assert_eq!(list(&data["chains"]).iter().filter(waits).count(), 1, "{}", dump.name);
        let totals = ["methods", "suspended", "confirmed"].map(|key| data["totals"][key].as_u64());
        assert_eq!(totals, [Some(6), Some(4), Some(4)], "{}", dump.name);
    }
    Ok(())
}

#[test]
fn continuations_are_shown_as_their_methods_with_their_variables() -> Tested {
    for dump in dump_of("asyncliverasync")? {
        let truth = dump.truth.as_ref().unwrap();
        let data = whole(&dump.path, &["async"]);
        let object_of = |method: &str| {
            let frames = list(&data["chains"]).iter().flat_map(|c| list(&c["frames"]));
            let mut own = frames.filter(|f| f["method"].as_str().is_some_and(|m| m.contains(method)));
            own.next().unwrap()["object"].as_str().unwrap().to_string()
        };
        let marker = |name: &str| list(&truth["markers"]).iter().find(|m| m["name"] == name).unwrap()["address"].clone();
        let middle = object_of(".Middle(");
        let object = whole(&dump.path, &["object", &middle]);
        assert!(object["task"]["method"].as_str().unwrap().contains(".Middle("), "{object}");
        assert!(object["task"]["waiters"][0]["method"].as_str().unwrap().contains(".Outer("), "{object}");
        let own = list(&object["fields"]).iter().find(|f| f["object"] == marker("Middle.m")).unwrap();
        assert_eq!(own["name"], "local 0", "{object}");
        // Debug info names arguments, with their types.
        let object = whole(&dump.path, &["object", &object_of(".Middle2(")]);
        let a = list(&object["fields"]).iter().find(|f| f["name"] == "a").unwrap();
        assert_eq!((&a["type"], &a["value"]), (&"System.Int64".into(), &7.into()), "{object}");
        // Paths.
        let ran = run(&["path", marker("Middle.m").as_str().unwrap(), dump.path.to_str().unwrap()]);
        assert!(ran.out.contains("continuation of Cases.AsyncLive.Middle(Int32)"), "{}", ran.out);
        // An asynchronous method has two methods.
        let layout = &whole(&dump.path, &["type", "--methods", "Cases.AsyncLive"])["layout"];
        let of_middle = |m: &&Value| m["name"].as_str().is_some_and(|n| n.contains(".Middle("));
        let code: Vec<_> = list(&layout["methods"]).iter().filter(of_middle).map(|m| m["code"].as_str()).collect();
        assert_eq!(code, [Some("none"), Some("jit")], "{layout}");
    }
    Ok(())
}

#[test]
fn requests_of_runtime_async_have_the_methods_that_wait_for_them() -> Tested {
    let files = with_files()?;
    for dump in dump_of("httprt")? {
        let data = whole(&dump.path, &["requests", &files[0], &files[1]]);
        let requests = list(&data["requests"]);
        assert_eq!(requests.len(), 7, "{}", dump.name);
        for request in requests {
            let names: Vec<&str> = list(&request["frames"]).iter().filter_map(|f| f["method"].as_str()).collect();
            let (first, last) = (names.first().unwrap(), names.last().unwrap());
            assert!(first.contains("HttpConnection.SendAsync(") && last.contains("HttpClient."), "{}: {names:?}", dump.name);
        }
    }
    Ok(())
}
