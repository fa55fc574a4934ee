//! Frames and roots compared with those of ClrMD for every dump with such an answer, from the dump only and with module files.
//!
//! Every difference must be a fault of ClrMD, recognized by what the dump contains there; each kind is counted. Without files, a frame whose
//! GC info is not in the dump is a gap: then the roots that ClrMD reports there must be among those of the conservative scan.

use crate::harness::Tested;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::{address, ask_with, document, folders, has_heap, list, text};
use crate::common::{Known, each, every_dump};
use gcdump::Addr;
use gcdump::cli::Exit;
use serde_json::Value;

/// Instruction pointer, stack pointer, MethodDesc.
type ManagedFrame = (u64, u64, u64);
/// Address and type of a runtime frame.
type RuntimeFrame = (u64, String);

/// Location of a reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Slot(u64),
    Register { name: String, ip: u64, sp: u64 },
}

/// A reference that a frame holds, as both tools report it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Root {
    thread: u64,
    place: Place,
    object: u64,
    interior: bool,
    pinned: bool,
}

/// The frame of a root, and how it is shown.
#[derive(Clone, Debug)]
struct Holder {
    ip: u64,
    sp: u64,
    /// Location as in a disassembly: `[rbp-0x28]`, `rbx`.
    location: String,
    managed: bool,
    precise: bool,
}

/// Frames of a thread.
#[derive(Debug, Default)]
struct Frames {
    managed: Vec<ManagedFrame>,
    runtime: Vec<RuntimeFrame>,
    /// Method names by instruction and stack pointer; the callee of a runtime frame has 0 and the address of the frame.
    names: BTreeMap<(u64, u64), String>,
}

/// gcdump's answer.
struct Ours {
    exit: Exit,
    threads: BTreeMap<u64, Frames>,
    /// Ends of the gaps by their starts.
    gaps: BTreeMap<u64, Vec<(u64, u64)>>,
    /// The gaps in which frames may be missing.
    lost: BTreeMap<u64, Vec<(u64, u64)>>,
    roots: BTreeMap<Root, Holder>,
}

impl Ours {
    fn of(dump: &Known, folders: &[PathBuf]) -> Ours {
        let (exit, answer) = ask_with(&dump.path, folders, &["stacks", "--roots"]);
        let mut ours = Ours { exit, threads: BTreeMap::new(), gaps: BTreeMap::new(), lost: BTreeMap::new(), roots: BTreeMap::new() };
        for t in list(&answer["data"]["threads"]) {
            let thread = t["os_id"].as_u64().unwrap_or(0);
            let frames = ours.threads.entry(thread).or_default();
            // The DAC does not report what native code protects.
            for f in list(&t["frames"]).iter().filter(|f| f["frame_type"] != "GCFrame") {
                let (ip, sp, managed) = (address(f, "ip"), address(f, "sp"), f["kind"] == "managed");
                match managed {
                    true => {
                        frames.managed.push((ip, sp, address(f, "method_desc")));
                        frames.names.insert((ip, sp), text(f, "method").into());
                    }
                    false => {
                        frames.runtime.push((sp, text(f, "frame_type").into()));
                        frames.names.extend(f["method"].as_str().map(|name| ((0, sp), name.into())));
                    }
                }
                for r in list(&f["roots"]) {
                    let location = text(r, "location").to_string();
                    let place = match location.starts_with('[') {
                        true => Place::Slot(address(r, "slot")),
                        false => Place::Register { name: location.clone(), ip, sp },
                    };
                    let root = Root {
                        thread,
                        place,
                        object: address(r, "object"),
                        // A conservative root of a runtime frame may be interior by its looks; ClrMD does not report interior ones there.
                        interior: r["interior"] == true,
                        pinned: r["pinned"] == true,
                    };
                    ours.roots.insert(root, Holder { ip, sp, location, managed, precise: r["precise"] == true });
                }
            }
            let end = |gap: &Value| if gap["to"].is_null() { u64::MAX } else { address(gap, "to") };
            let ranges = |wanted: fn(&Value) -> bool| {
                list(&t["gaps"]).iter().filter(|gap| wanted(gap)).map(|gap| (address(gap, "from"), end(gap))).collect()
            };
            ours.gaps.insert(thread, ranges(|_| true));
            ours.lost.insert(thread, ranges(|gap| gap["loses_frames"] == true));
        }
        ours
    }

    /// Whether `at` on the stack of `thread` is in a gap.
    fn is_gap(&self, thread: u64, at: u64) -> bool {
        self.gaps.get(&thread).is_some_and(|gaps| gaps.iter().any(|(from, to)| (*from..*to).contains(&at)))
    }

    /// Whether frames of `thread` may be missing before `at`, so that a walk without gcdump's explicit frames ends there.
    fn ends_before(&self, thread: u64, at: u64) -> bool {
        self.lost.get(&thread).is_some_and(|gaps| gaps.iter().any(|(from, _)| *from <= at))
    }

    /// Whether a frame of `thread` may be missing at `at`.
    fn loses(&self, thread: u64, at: u64) -> bool {
        self.lost.get(&thread).is_some_and(|gaps| gaps.iter().any(|(from, to)| (*from..*to).contains(&at)))
    }
}

/// ClrMD's answer.
struct Theirs {
    threads: BTreeMap<u64, Frames>,
    /// Instruction and stack pointer of managed frames for which ClrMD has no method.
    nameless: BTreeSet<(u64, u64)>,
    /// `None` if ClrMD crashed.
    roots: Option<BTreeMap<Root, Holder>>,
    /// Threads on which ClrMD crashed.
    crashed: BTreeSet<u64>,
    /// Whether ClrMD names any method.
    has_names: bool,
}

impl Theirs {
    fn of(clrmd: &Value) -> Theirs {
        let mut theirs =
            Theirs { threads: BTreeMap::new(), nameless: BTreeSet::new(), roots: None, crashed: BTreeSet::new(), has_names: false };
        for t in list(&clrmd["threads"]["threads"]) {
            let frames = theirs.threads.entry(t["os_id"].as_u64().unwrap()).or_default();
            for f in list(&t["frames"]) {
                let (ip, sp, method) = (address(f, "ip"), address(f, "sp"), address(f, "md"));
                match (text(f, "kind"), method) {
                    ("Runtime", _) => {
                        frames.runtime.push((sp, text(f, "frame_name").into()));
                        frames.names.extend(f["method"].as_str().map(|name| ((0, sp), name.into())));
                    }
                    (_, 0) => drop(theirs.nameless.insert((ip, sp))),
                    _ => {
                        frames.managed.push((ip, sp, method));
                        let name = text(f, "method");
                        if !name.is_empty() {
                            theirs.has_names |= !name.ends_with(UNKNOWN);
                            frames.names.insert((ip, sp), name.into());
                        }
                    }
                }
            }
        }
        let crashed = list(&clrmd["roots"]["stack_roots_crashed_the_dac"]);
        theirs.crashed = crashed.iter().filter_map(|t| t["os_id"].as_u64()).collect();
        theirs.roots = clrmd["roots"]["roots"]
            .is_array()
            .then(|| list(&clrmd["roots"]["roots"]).iter().filter(|r| r["kind"] == "Stack").map(root_of_clrmd).collect());
        theirs
    }
}

fn root_of_clrmd(r: &Value) -> (Root, Holder) {
    let frame = &r["frame"];
    let (ip, sp, slot, register) = (address(frame, "ip"), address(frame, "sp"), address(r, "address"), text(r, "register"));
    let place = match slot {
        0 => Place::Register { name: register.into(), ip, sp },
        _ => Place::Slot(slot),
    };
    let offset = r["register_offset"].as_i64().unwrap_or(0);
    let location = match slot {
        0 => register.to_string(),
        _ => format!("[{register}{}{:#x}]", if offset < 0 { '-' } else { '+' }, offset.unsigned_abs()),
    };
    let root = Root {
        thread: r["os_thread"].as_u64().unwrap(),
        place,
        object: address(r, "object"),
        interior: r["interior"] == true,
        pinned: r["pinned"] == true,
    };
    (root, Holder { ip, sp, location, managed: frame["kind"] == "ManagedMethod", precise: true })
}

/// ClrMD's name of a method whose metadata it does not have, after the module.
const UNKNOWN: &str = "!Unknown";

/// Faults of ClrMD, with the evidence that identifies each.
const FAULTS: [(&str, &str); 15] = [
    ("crashed", "roots of a thread on which ClrMD's DAC crashed, as its answer says, or of a dump for which it reports none"),
    ("unnamed", "frames that ClrMD shows without a method: gcdump's method passes the checks of methods"),
    (
        "no metadata",
        "methods that ClrMD names `lab.dll!Unknown`: gcdump has the name from a file, or else module and token: `lab!0x0600006b`",
    ),
    ("not reached", "frames, and their roots, after a frame that cannot be unwound from the dump without files"),
    ("of another", "a frame that ClrMD shows on two threads with the same stack pointer: gcdump has it on the thread whose stack it is"),
    ("cut GC info", "roots of frames for which ClrMD reports none, and whose GC info is not completely in the dump"),
    ("thrower", "roots of the frame that threw the exception in flight, for which ClrMD on .NET 11 reports none: a collection keeps them"),
    ("slot to the stack", "an interior reference whose slot points into the stack of the thread; ClrMD names an object in that local"),
    ("register to the stack", "an interior reference in a register that callees saved: the value points to a local that holds the object"),
    ("no address", "a slot that ClrMD places where the dump has no memory; gcdump has it in that frame at the same distance"),
    ("at its address", "the same slot at the address computed from the frame's registers"),
    ("no object", "an interior reference for which ClrMD names no object, in a dump that does not have the object"),
    ("argument", "an argument of a call being prepared: the word is read, but the dump does not have the object that identifies it"),
    ("named", "the object around such a reference, if the dump has it"),
    ("without metadata", "roots of a dump in which ClrMD names no method, and finds no root of any"),
];

/// Numbers of compared items.
#[derive(Clone, Debug, Default)]
struct Tally {
    dumps: u64,
    managed: (u64, u64),
    runtime: (u64, u64),
    roots: (u64, u64),
    /// Method names.
    names: (u64, u64),
    /// Roots of ClrMD that are conservative in gcdump.
    words: u64,
    /// Roots of ClrMD in frames that are gaps.
    gaps: u64,
    faults: BTreeMap<&'static str, u64>,
    wrong: Vec<String>,
}

impl Tally {
    fn fault(&mut self, name: &str) {
        let (name, _) = FAULTS.iter().find(|f| f.0 == name).unwrap();
        *self.faults.entry(name).or_default() += 1;
    }

    fn add(&mut self, other: &Tally) {
        let sum = |a: &mut (u64, u64), b: (u64, u64)| *a = (a.0 + b.0, a.1 + b.1);
        sum(&mut self.managed, other.managed);
        sum(&mut self.runtime, other.runtime);
        sum(&mut self.roots, other.roots);
        sum(&mut self.names, other.names);
        self.dumps += other.dumps;
        self.words += other.words;
        self.gaps += other.gaps;
        other.faults.iter().for_each(|(name, n)| *self.faults.entry(name).or_default() += n);
    }
}

/// Whether `name` is a method of `module` named by its token.
fn is_token_of(module: &str, name: &str) -> bool {
    name.strip_prefix(module).is_some_and(|rest| rest.starts_with("!0x06"))
}

/// A dump with both answers.
struct Compared<'a> {
    dump: &'a Known,
    ours: &'a Ours,
    /// The answer from the dump without files.
    bare: &'a Ours,
    theirs: &'a Theirs,
    memory: gcdump::Runtime,
    /// Whether `ours` has module files.
    has_files: bool,
    tally: Tally,
}

impl Compared<'_> {
    fn wrong(&mut self, what: String) {
        self.tally.wrong.push(format!("{}: {what}", self.dump.name));
    }

    fn word(&self, at: u64) -> Option<u64> {
        self.memory.memory().ptr(Addr(at)).ok().map(|a| a.0)
    }

    /// Compares the frames of all threads of `theirs`, in order.
    fn frames(&mut self) {
        let (none, ours, theirs) = (Frames::default(), self.ours, self.theirs);
        for (thread, frames) in &theirs.threads {
            let own = ours.threads.get(thread).unwrap_or(&none);
            let mut mine = own.managed.clone();
            mine.retain(|(ip, sp, _)| !self.theirs.nameless.contains(&(*ip, *sp)));
            (mine.len()..own.managed.len()).for_each(|_| self.tally.fault("unnamed"));
            let mut listed = frames.managed.clone();
            listed.retain(|frame| {
                let other = |(t, f): (&u64, &Frames)| t != thread && f.managed.contains(frame);
                mine.contains(frame) || !self.theirs.threads.iter().any(other)
            });
            (listed.len()..frames.managed.len()).for_each(|_| self.tally.fault("of another"));
            for (at, name) in &frames.names {
                let Some(own_name) = own.names.get(at) else {
                    // A managed frame that is missing has been compared before.
                    let shown = at.0 == 0 && own.runtime.iter().any(|(sp, _)| *sp == at.1);
                    if shown && !name.ends_with(UNKNOWN) {
                        self.wrong(format!("the runtime frame at {:#x} has no method, ClrMD has {name:?}", at.1));
                    }
                    continue;
                };
                self.tally.names.1 += 1;
                let module = name.strip_suffix(UNKNOWN).and_then(|file| file.rsplit_once('.'));
                if own_name == name {
                    self.tally.names.0 += 1;
                } else if module.is_some_and(|(module, _)| is_token_of(module, own_name) || self.has_files) {
                    self.tally.fault("no metadata");
                } else {
                    self.wrong(format!("{at:x?} is {:?}, ClrMD has {name:?}", own_name));
                }
            }
            self.tally.managed.1 += listed.len() as u64;
            self.tally.managed.0 += self.in_order(*thread, &mine, &listed, |f| f.1);
            self.tally.runtime.1 += frames.runtime.len() as u64;
            self.tally.runtime.0 += self.in_order(*thread, &own.runtime, &frames.runtime, |f| f.0);
        }
    }

    /// Returns the number of equal frames. In a gap of gcdump's walk ClrMD may have more, and where ClrMD stops because of missing bytes
    /// gcdump may.
    fn in_order<T: PartialEq + std::fmt::Debug>(&mut self, thread: u64, ours: &[T], theirs: &[T], sp: impl Fn(&T) -> u64) -> u64 {
        // Each of gcdump's frames equals one of ClrMD's: a frame may be listed twice.
        let mut left: Vec<&T> = ours.iter().collect();
        let mut is_known = |f: &T| left.iter().position(|own| *own == f).map(|at| left.remove(at)).is_some();
        let theirs: Vec<&T> = theirs.iter().filter(|f| is_known(f) || !self.ours.loses(thread, sp(f))).collect();
        let common = ours.iter().zip(&theirs).take_while(|(a, b)| a == *b).count();
        let (more, absent) = (&ours[common..], &theirs[common..]);
        let excused_more = more.iter().all(|f| self.bare.ends_before(thread, sp(f)));
        if !excused_more || !absent.is_empty() {
            self.wrong(format!("thread {thread}: frames {more:x?}, ClrMD has {absent:x?}"));
        }
        more.iter().for_each(|_| self.tally.fault("not reached"));
        common as u64
    }

    fn roots(&mut self, scanned: &BTreeSet<u64>) {
        let (ours, theirs) = (self.ours, self.theirs);
        let Some(theirs) = &theirs.roots else {
            let precise = ours.roots.values().filter(|h| h.precise).count();
            (0..precise).for_each(|_| self.tally.fault("crashed"));
            return;
        };
        self.tally.roots.1 += theirs.len() as u64;
        let mut placed = BTreeSet::new();
        for (root, holder) in theirs {
            if let Some(own) = ours.roots.get(root) {
                self.tally.roots.0 += 1;
                self.tally.words += u64::from(!own.precise);
                continue;
            }
            match self.reason_not_found(root, holder, scanned, &mut placed) {
                Some("gap") => self.tally.gaps += 1,
                Some(fault) => self.tally.fault(fault),
                None => self.wrong(format!("{root:x?} of {holder:x?} is missing, the slot holds {:x?}", self.held(root))),
            }
        }
        for (root, holder) in ours.roots.iter().filter(|(root, holder)| holder.precise && !theirs.contains_key(*root)) {
            match self.reason_not_in_clrmd(root, holder, theirs, &placed) {
                Some(fault) => self.tally.fault(fault),
                None => self.wrong(format!("{root:x?} of {holder:x?} is not in ClrMD's answer")),
            }
        }
    }

    fn held(&self, root: &Root) -> Option<u64> {
        match root.place {
            Place::Slot(at) => self.word(at),
            Place::Register { .. } => None,
        }
    }

    /// Whether `at` is on the stack of the thread, above the innermost frame.
    fn on_stack(&self, thread: u64, at: u64) -> bool {
        let frames = self.theirs.threads.get(&thread);
        let sps = || frames.into_iter().flat_map(|f| f.managed.iter().map(|m| m.1).chain(f.runtime.iter().map(|r| r.0)));
        let (low, high) = (sps().min().unwrap_or(0), sps().max().unwrap_or(0));
        // The outermost method's stack frame is above its stack pointer; the program's arguments are above that.
        (low..high.saturating_add(0x10_000)).contains(&at)
    }

    /// Returns why a root of ClrMD is not in gcdump's answer.
    fn reason_not_found(&self, root: &Root, holder: &Holder, scanned: &BTreeSet<u64>, placed: &mut BTreeSet<Root>) -> Option<&'static str> {
        let value = self.held(root);
        if root.interior && value.is_some_and(|v| self.on_stack(root.thread, v)) {
            return Some("slot to the stack");
        }
        if root.interior && root.object == 0 && !has_heap(self.dump) {
            return Some("no object");
        }
        if root.interior && matches!(root.place, Place::Register { .. }) && self.saved_below(root, holder.sp) {
            return Some("register to the stack");
        }
        if let (Place::Slot(_), None) = (&root.place, value)
            && let Some((own, _)) = self.ours.roots.iter().find(|(own, h)| {
                (own.thread, h.ip, h.sp, h.location.as_str()) == (root.thread, holder.ip, holder.sp, holder.location.as_str())
            })
        {
            placed.insert(own.clone());
            return Some("no address");
        }
        let gap = self.ours.is_gap(root.thread, holder.sp);
        if gap && (scanned.contains(&root.object) || !has_heap(self.dump)) && self.ours.exit == Exit::Partial {
            return Some("gap");
        }
        let prepared = !holder.managed && value == Some(root.object) && !has_heap(self.dump);
        (prepared && self.ours.exit == Exit::Partial).then_some("argument")
    }

    /// Whether a frame below `sp` has saved an address on this stack which refers to `root`'s object.
    fn saved_below(&self, root: &Root, sp: u64) -> bool {
        let frames = &self.theirs.threads[&root.thread];
        let low = frames.managed.iter().map(|f| f.1).chain(frames.runtime.iter().map(|f| f.0)).min().unwrap_or(sp);
        (low..sp)
            .step_by(8)
            .filter_map(|at| self.word(at))
            .any(|v| v >= sp && self.on_stack(root.thread, v) && self.word(v) == Some(root.object))
    }

    /// Returns why ClrMD does not have a root.
    fn reason_not_in_clrmd(
        &self,
        root: &Root,
        holder: &Holder,
        theirs: &BTreeMap<Root, Holder>,
        placed: &BTreeSet<Root>,
    ) -> Option<&'static str> {
        let frame = (holder.ip, holder.sp);
        if self.theirs.crashed.contains(&root.thread) {
            return Some("crashed");
        }
        if placed.contains(root) {
            return Some("at its address");
        }
        let nameless = |(r, _): (&Root, &Holder)| r.place == root.place && r.thread == root.thread && r.interior && r.object == 0;
        if root.interior && theirs.iter().any(nameless) {
            return Some("named");
        }
        if !self.theirs.has_names && !theirs.values().any(|h| h.managed) {
            return Some("without metadata");
        }
        let listed = |f: &Frames| f.managed.iter().any(|m| (m.0, m.1) == frame);
        if !self.theirs.threads.get(&root.thread).is_some_and(listed) && self.bare.ends_before(root.thread, holder.sp) {
            return Some("not reached");
        }
        let none = !theirs.iter().any(|(r, h)| r.thread == root.thread && (h.ip, h.sp) == frame);
        if none && self.threw(root.thread, frame) {
            return Some("thrower");
        }
        (none && self.bare.is_gap(root.thread, holder.sp)).then_some("cut GC info")
    }

    /// Whether a frame of .NET 11 has thrown an exception in flight: then the runtime's frame for that is next to it.
    fn threw(&self, thread: u64, frame: (u64, u64)) -> bool {
        let Some(frames) = self.theirs.threads.get(&thread).filter(|_| self.dump.runtime == "net11") else { return false };
        let next = frames.managed.iter().map(|m| m.1).filter(|sp| *sp < frame.1).max().unwrap_or(0);
        frames.runtime.iter().any(|r| (next..frame.1).contains(&r.0) && format!("{r:?}").contains("SoftwareExceptionFrame"))
    }
}

/// Compares a dump twice: without files, and with files, if there are any.
fn compare(dump: &Known) -> [Tally; 2] {
    let theirs = Theirs::of(dump.clrmd.as_ref().unwrap());
    let folders = folders(&dump.runtime);
    let bare = Ours::of(dump, &[]);
    let with_files = (!folders.is_empty()).then(|| Ours::of(dump, &folders));
    let memory = || gcdump::open(&dump.path).unwrap().runtime().unwrap();
    let mut tallies = [&bare, with_files.as_ref().unwrap_or(&bare)].map(|ours| {
        let of_files = with_files.is_some() && !std::ptr::eq(ours, &bare);
        let mut compared =
            Compared { dump, ours, bare: &bare, theirs: &theirs, memory: memory(), has_files: of_files, tally: Tally::default() };
        compared.tally.dumps = 1;
        compared.frames();
        // The roots that the scan of gaps finds.
        let scan = || -> BTreeSet<u64> {
            let (_, answer) = ask_with(&dump.path, if of_files { &folders } else { &[] }, &["roots"]);
            let of_stacks = |r: &&Value| r["kind"] == "stack" || r["kind"] == "register";
            list(&answer["data"]["roots"]).iter().filter(of_stacks).map(|r| address(r, "object")).collect()
        };
        let scanned = if ours.gaps.values().any(|g| !g.is_empty()) && has_heap(dump) { scan() } else { BTreeSet::new() };
        compared.roots(&scanned);
        let gaps = ours.gaps.values().any(|g| !g.is_empty());
        // An incomplete answer says so.
        if gaps && ours.exit != Exit::Partial || !gaps && has_heap(dump) && ours.exit != Exit::Ok {
            let exit = ours.exit;
            compared.wrong(format!("{exit:?} with gaps: {gaps}"));
        }
        compared.tally
    });
    if with_files.is_none() {
        tallies[1] = Tally::default();
    }
    tallies
}

#[test]
fn frames_and_roots_are_those_of_clrmd() -> Tested {
    let (dumps, missing) = every_dump(|row| row["clrmd"].is_string())?;
    let dumps: Vec<Known> = dumps.into_iter().filter(|d| !list(&d.clrmd.as_ref().unwrap()["threads"]["threads"]).is_empty()).collect();
    if dumps.is_empty() {
        println!("skipped: no dumps with frames are at hand");
        return Ok(());
    }
    let mut rows: BTreeMap<(String, String), [Tally; 2]> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (dump, tallies) in dumps.iter().zip(each(&dumps, compare)) {
        let row = rows.entry((dump.runtime.clone(), dump.kind.clone())).or_default();
        row.iter_mut().zip(&tallies).for_each(|(sum, tally)| sum.add(tally));
        for (tally, which) in tallies.iter().zip(["no files", "files"]) {
            wrong.extend(tally.wrong.iter().map(|w| format!("{w} (with {which})")));
        }
    }
    let part = tables(&rows);
    println!("{part}");
    let shown = wrong.iter().take(60).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} wrong:\n{shown}", wrong.len());
    let files = rows.values().any(|[_, with_files]| with_files.dumps > 0);
    if missing.is_empty() && files {
        document("stacks", &part);
    } else {
        println!("docs/coverage.md is not compared: {} dumps are not unpacked, files of modules: {files}", missing.len());
    }
    Ok(())
}

fn tables(rows: &BTreeMap<(String, String), [Tally; 2]>) -> String {
    let mut out = String::new();
    let titles = ["From the dump without files:", "With the files of the modules:"];
    let mut faults: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for (which, title) in titles.iter().enumerate() {
        out.push_str(&format!("{title}\n\n"));
        out.push_str("| runtime | kind | dumps | managed frames | their names | runtime frames | roots | of them words | in gaps | faults of ClrMD |\n");
        out.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
        let mut total = Tally::default();
        let mut line = |title: &str, t: &Tally| {
            let [managed, names, runtime, roots] = [t.managed, t.names, t.runtime, t.roots].map(|(n, of)| format!("{n} of {of}"));
            let of_clrmd: u64 = t.faults.values().sum();
            let (dumps, words, gaps) = (t.dumps, t.words, t.gaps);
            out.push_str(&format!("| {title} | {dumps} | {managed} | {names} | {runtime} | {roots} | {words} | {gaps} | {of_clrmd} |\n"));
        };
        for ((runtime, kind), tallies) in rows.iter().filter(|(_, t)| t[which].dumps > 0) {
            line(&format!("{runtime} | {kind}"), &tallies[which]);
            total.add(&tallies[which]);
        }
        line("all |", &total);
        out.push('\n');
        total.faults.iter().for_each(|(name, n)| faults.entry(name).or_default()[which] += n);
    }
    out.push_str(
        "Faults of ClrMD, each recognized by the contents of the dump:\n\n| fault | without files | with files |\n| --- | --- | --- |\n",
    );
    for (name, evidence) in FAULTS {
        if let Some([without, with]) = faults.get(name) {
            out.push_str(&format!("| {name}: {evidence} | {without} | {with} |\n"));
        }
    }
    out
}
