//! Shared by the integration tests: running gcdump in process, and finding real dumps.

pub mod commands;

use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use gcdump::Runtime;
use gcdump::cli::{self, Cli, Exit, Screen, Streams};
use gcdump::internals::base::{Addr, AddrRange, Endian};

use gcdump::internals::dump::DumpFile;
use gcdump::internals::gc::Walker;
use serde_json::Value;

use crate::harness::{Ignored, output, with_output};
use crate::support::Shape;

/// Held while a test rewrites its part of `docs/coverage.md`; several tests do.
pub static COVERAGE: Mutex<()> = Mutex::new(());

/// Result of a run.
pub struct Ran {
    pub exit: Exit,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Parses the answer as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}\n{}", self.out, self.err))
    }
}

/// Runs `gcdump` with `args`, as if piped.
pub fn run<S: AsRef<str>>(args: &[S]) -> Ran {
    captured(|streams| cli::run(command_line(args), streams))
}

fn command_line<S: AsRef<str>>(args: &[S]) -> impl Iterator<Item = OsString> {
    std::iter::once("gcdump").chain(args.iter().map(AsRef::as_ref)).map(Into::into)
}

/// Captures what `work` prints, as if piped.
pub fn captured(work: impl FnOnce(Streams<'_>) -> Exit) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = work(Streams::piped(&mut out, &mut err));
    Ran { exit, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// Runs `gcdump` with `args`, as if on `screen`.
pub fn run_on<S: AsRef<str>>(screen: Screen, args: &[S]) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams { screen, err_screen: screen, ..Streams::piped(&mut out, &mut err) };
    let exit = cli::run(command_line(args), streams);
    Ran { exit, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// Parses the command line `args`, which can then run more than once.
pub fn parsed<S: AsRef<str>>(args: &[S]) -> Cli {
    let mut parsed = None;
    let ran = captured(|mut streams| match cli::parse(command_line(args), &mut streams) {
        Ok(cli) => {
            parsed = Some(cli);
            Exit::Ok
        }
        Err(exit) => exit,
    });
    parsed.unwrap_or_else(|| panic!("{:?}: {}", ran.exit, ran.err))
}

/// Runs a command on a dump and returns its envelope. Local module files are excluded: answers must not depend on this
/// machine. Dumps of the lab's NativeAOT program get its file, which most need.
pub fn ask(dump: &Path, command: &[&str]) -> (Exit, Value) {
    let program = program_of(dump).unwrap_or_default();
    let ran = run_with_files(dump, command, program.as_deref());
    assert!(!ran.out.is_empty(), "{command:?} on {}: {:?} {}", dump.display(), ran.exit, ran.err);
    (ran.exit, ran.json())
}

/// Returns the folder of the lab's NativeAOT program, if answers about this dump need it.
pub fn program_of(dump: &Path) -> Result<Option<PathBuf>, Ignored> {
    let program = match dump.file_name().unwrap_or_default().to_str() {
        Some(name) if name.starts_with("aot9-") => native_aot_program(),
        Some(name) if name.starts_with("net11aot-wks-") => native_aot_11_program(),
        Some(name) if name.starts_with("net11aot-svr-") => native_aot_11_server_program(),
        _ => return Ok(None),
    };
    program.map(Some).ok_or_else(|| Ignored(format!("the program of {} is not on this machine", dump.display())))
}

/// Does the same as [`ask`], with these module files: a folder, or a file.
pub fn ask_with_files(dump: &Path, command: &[&str], modules: Option<&Path>) -> (Exit, Value) {
    let ran = run_with_files(dump, command, modules);
    (ran.exit, ran.json())
}

/// Runs a command on a dump for its envelope, with these module files and no others of this machine.
pub fn run_with_files(dump: &Path, command: &[&str], modules: Option<&Path>) -> Ran {
    let mut args: Vec<&str> = command.to_vec();
    args.extend(["--json", "--no-local-files"]);
    args.extend(modules.into_iter().flat_map(|given| ["--modules", given.to_str().unwrap()]));
    args.push(dump.to_str().unwrap());
    run(&args)
}

/// Measures the CPU time of this thread if the system reports it, else wall time, which other work on the machine stretches.
pub struct Stopwatch {
    clock: Instant,
    cpu: Option<Duration>,
}

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch { clock: Instant::now(), cpu: Stopwatch::cpu() }
    }

    pub fn elapsed(&self) -> Duration {
        self.cpu.zip(Stopwatch::cpu()).map_or_else(|| self.clock.elapsed(), |(from, to)| to.saturating_sub(from))
    }

    fn cpu() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
    }
}

/// Path of the small dump in the repository.
pub fn own_dump() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/net10-wks-basics-heap.dmp.zst")
}

/// Path of that dump, unpacked once for all tests: unpacking takes longer than most commands.
pub fn own_unpacked() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let unpack = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let mut file = tempfile::NamedTempFile::new_in(folder).unwrap();
        zstd::stream::copy_decode(File::open(own_dump()).unwrap(), &mut file).unwrap();
        let path = folder.join("own.dmp");
        file.persist(&path).unwrap();
        path
    };
    PATH.get_or_init(unpack).clone()
}

/// Number of cases: `quick`, or `full` if `GCDUMP_TEST_FULL` is set, as in `.ci/run`.
pub fn cases(quick: usize, full: usize) -> usize {
    if self::full() { full } else { quick }
}

/// Whether long campaigns run in full: `GCDUMP_TEST_FULL` is set, as in `.ci/run`.
pub fn full() -> bool {
    std::env::var_os("GCDUMP_TEST_FULL").is_some()
}

/// Every `n`th of `items`, or all of them in a full run: a fixed sample of a long campaign.
pub fn sample<T>(items: impl IntoIterator<Item = T>, n: usize) -> Vec<T> {
    items.into_iter().step_by(cases(n, 1)).collect()
}

/// All four architectures of synthetic processes in a full run, else one of each pointer size and byte order.
pub fn shapes() -> Vec<Shape> {
    sample(Shape::ALL, 3)
}

/// Folder with the manifest of the shared dumps, if any: `GCDUMP_TEST_SHARED`, else `../shared/dumps`.
pub fn shared() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/dumps");
    let path = std::env::var_os("GCDUMP_TEST_SHARED").map_or_else(beside, PathBuf::from);
    path.join("manifest.json").is_file().then_some(path)
}

/// Folder with the unpacked dumps: `GCDUMP_TEST_DUMPS`, else `~/.cache/gcdump-dumps`.
pub fn unpacked() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache/gcdump-dumps"));
    std::env::var_os("GCDUMP_TEST_DUMPS").map(PathBuf::from).or_else(home).unwrap_or_else(|| "dumps".into())
}

/// The folder of [`shared`], for a test that needs it.
pub fn needs_shared() -> Result<PathBuf, Ignored> {
    shared().ok_or_else(|| Ignored("the shared dumps (../shared/dumps) are not on this machine".into()))
}

/// The folder of [`lab`], for a test that needs it.
pub fn needs_lab() -> Result<PathBuf, Ignored> {
    lab().ok_or_else(|| Ignored("the lab's .NET programs (GCDUMP_TEST_LAB) are not on this machine".into()))
}

/// The folder of [`native_aot_program`], for a test that needs it.
pub fn needs_native_aot_program() -> Result<PathBuf, Ignored> {
    native_aot_program().ok_or_else(|| Ignored("the lab's NativeAOT program (GCDUMP_TEST_LAB) is not on this machine".into()))
}

/// Folder with the lab's programs: `GCDUMP_TEST_LAB`, else `~/.cache/gcdump-lab`.
pub fn lab() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache/gcdump-lab"));
    let lab = std::env::var_os("GCDUMP_TEST_LAB").map(PathBuf::from).or_else(home)?;
    lab.join("net10/lab").is_file().then_some(lab)
}

/// A dump of the manifest with its expected answers.
pub struct Known {
    pub name: String,
    pub path: PathBuf,
    pub runtime: String,
    pub gc: String,
    pub scenario: String,
    pub kind: String,
    pub truth: Option<Value>,
    pub clrmd: Option<Value>,
    pub expect: Option<Value>,
}

/// The folder of the NativeAOT program that was dumped; `None` if it is not on this machine.
pub fn native_aot_program() -> Option<PathBuf> {
    Some(lab()?.join("aot9")).filter(|folder| folder.join("lab").is_file())
}

/// The folder of the program of NativeAOT 11 that was dumped, unpacked once for all tests.
pub fn native_aot_11_program() -> Option<PathBuf> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let unpack = || {
        let packed = File::open(shared()?.join("../dumps3/modules/net11-aot/lab.zst")).ok()?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("net11-aot");
        std::fs::create_dir_all(&folder).unwrap();
        let mut file = tempfile::NamedTempFile::new_in(&folder).unwrap();
        zstd::stream::copy_decode(packed, &mut file).unwrap();
        file.persist(folder.join("lab")).unwrap();
        Some(folder)
    };
    FOLDER.get_or_init(unpack).clone()
}

/// Path of the program dumped with server GC, otherwise as in [`native_aot_11_program`]: its file is a patch of the other program's.
fn native_aot_11_server_program() -> Option<PathBuf> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let unpack = || {
        let base = std::fs::read(native_aot_11_program()?.join("lab")).unwrap();
        let patch = File::open(shared()?.join("../dumps3/modules/net11-aot/lab-svr.zpatch")).ok()?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("net11-aot-server");
        std::fs::create_dir_all(&folder).unwrap();
        let mut file = tempfile::NamedTempFile::new_in(&folder).unwrap();
        let mut decoder = zstd::stream::read::Decoder::with_ref_prefix(BufReader::new(patch), &base).unwrap();
        std::io::copy(&mut decoder, &mut file).unwrap();
        file.persist(folder.join("lab")).unwrap();
        Some(folder)
    };
    FOLDER.get_or_init(unpack).clone()
}

/// Returns the unpacked dumps of CoreCLR in the manifest, and the names of those that are not unpacked. `native_aot` checks the others. Fails
/// if none is unpacked.
pub fn known_dumps(wanted: impl Fn(&Value) -> bool) -> Result<(Vec<Known>, Vec<String>), Ignored> {
    every_dump(|row| !row["runtime"].as_str().unwrap().contains("aot") && wanted(row))
}

/// Returns the dumps of [`known_dumps`] and those that must be refused.
pub fn every_dump(wanted: impl Fn(&Value) -> bool) -> Result<(Vec<Known>, Vec<String>), Ignored> {
    found(&manifests(&needs_shared()?, is_of_x64), wanted)
}

/// Returns dumps like [`every_dump`] of other machines, of NativeAOT programs of releases other than 9, and of single-file programs.
pub fn further_dumps(wanted: impl Fn(&Value) -> bool) -> Result<(Vec<Known>, Vec<String>), Ignored> {
    found(&manifests(&needs_shared()?, is_further), wanted)
}

/// The dumps of the web service.
pub fn web_dumps() -> Result<Vec<Known>, Ignored> {
    let is_web = |row: &Value| row["scenario"].as_str().unwrap().starts_with("web-");
    Ok(found(&manifests(&needs_shared()?, is_web), is_web)?.0)
}

fn found(rows: &[(PathBuf, Value)], wanted: impl Fn(&Value) -> bool) -> Result<(Vec<Known>, Vec<String>), Ignored> {
    let (mut have, mut lack) = (Vec::new(), Vec::new());
    for (shared, row) in rows.iter().filter(|(_, row)| wanted(row)) {
        let text = |key: &str| row[key].as_str().map(ToString::to_string);
        let name = text("name").unwrap();
        let path = unpacked().join(format!("{name}.dmp"));
        if path.metadata().map(|m| m.len()).ok() != row["bytes"].as_u64() {
            lack.push(name);
            continue;
        }
        let beside = |key: &str| -> Option<Value> {
            let bytes = std::fs::read(shared.join(text(key)?)).unwrap();
            let bytes = if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) { zstd::decode_all(bytes.as_slice()).unwrap() } else { bytes };
            Some(serde_json::from_slice(&bytes).unwrap())
        };
        have.push(Known {
            truth: beside("truth"),
            clrmd: beside("clrmd"),
            expect: beside("expect"),
            path,
            name,
            runtime: text("runtime").unwrap(),
            gc: text("gc").unwrap(),
            scenario: text("scenario").unwrap(),
            kind: text("kind").unwrap(),
        });
    }
    match lack.first().filter(|_| have.is_empty()) {
        Some(first) => Err(Ignored(match lack.len() {
            1 => format!("{first} is not unpacked in {}", unpacked().display()),
            n => format!("none of {n} dumps ({first}, …) is unpacked in {}", unpacked().display()),
        })),
        None => Ok((have, lack)),
    }
}

/// Returns the rows of the manifest in `shared`, and those of the one in `dumps3` beside it that `is_new` accepts, each with its folder.
fn manifests(shared: &Path, is_new: impl Fn(&Value) -> bool) -> Vec<(PathBuf, Value)> {
    let later = shared.with_file_name("dumps3");
    let rows = |folder: &Path| match json_file(&folder.join("manifest.json")) {
        Some(mut manifest) => std::mem::take(manifest["dumps"].as_array_mut().unwrap()),
        None => Vec::new(),
    };
    let of = |folder: &Path, row| (folder.to_path_buf(), row);
    let first = rows(shared).into_iter().map(|row| of(shared, row));
    first.chain(rows(&later).into_iter().filter(is_new).map(|row| of(&later, row))).collect()
}

/// Every row of both manifests, each with its folder.
pub fn manifest_rows() -> Result<Vec<(PathBuf, Value)>, Ignored> {
    Ok(manifests(&needs_shared()?, |_| true))
}

/// Whether a dump is one of [`further_dumps`].
pub fn is_further(row: &Value) -> bool {
    ["arm64", "aot", "trim"].iter().any(|part| row["runtime"].as_str().unwrap().contains(part))
}

/// Whether a dump is of .NET 11 on x64, which the first manifest does not have, or of running threads or overflowed stacks.
pub fn is_of_x64(row: &Value) -> bool {
    let scenario = row["scenario"].as_str().unwrap();
    let of_stacks = scenario.starts_with("busy") || scenario.starts_with("native") && scenario.contains("overflow");
    let runtime = row["runtime"].as_str().unwrap();
    ["net11", "win-net11"].contains(&runtime) || runtime == "net10" && of_stacks
}

/// Maps `work` over `items`, two at a time; results in order.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, work, output) = (&AtomicUsize::new(0), &work, &output());
    let worker = || {
        let mut done = Vec::new();
        while let Some((i, item)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?))) {
            done.push((i, with_output(output.clone(), || work(item))));
        }
        done
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        workers.into_iter().flat_map(|w| w.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    });
    done.sort_by_key(|d| d.0);
    done.into_iter().map(|d| d.1).collect()
}

/// A dump with ClrMD's answer.
pub struct Answered {
    /// Name without `.dmp`.
    pub name: String,
    /// The unpacked dump.
    pub path: PathBuf,
    /// ClrMD's answer.
    pub clrmd: Value,
    /// The program's own records.
    pub truth: Option<Value>,
}

pub fn json_file(path: &Path) -> Option<Value> {
    let bytes = std::fs::read(path).ok()?;
    let bytes = if path.extension().is_some_and(|e| e == "zst") { zstd::decode_all(bytes.as_slice()).unwrap() } else { bytes };
    serde_json::from_slice(&bytes).ok()
}

/// Every unpacked dump with a ClrMD answer, and those in the folder `GCDUMP_TEST_EXTRA`. `GCDUMP_TEST_ONLY` selects by part of
/// the name. Fails without any.
pub fn answered() -> Result<Vec<Answered>, Ignored> {
    let only = std::env::var("GCDUMP_TEST_ONLY").unwrap_or_default();
    let mut out = Vec::new();
    let mut add = |name: &str, dumps: &Path, answers: &Path| {
        let path = dumps.join(format!("{name}.dmp"));
        let answer = ["clrmd.json.zst", "clrmd.json"].iter().find_map(|e| json_file(&answers.join(format!("{name}.{e}"))));
        if let Some(clrmd) = answer.filter(|_| path.is_file() && name.contains(&only)) {
            out.push(Answered { name: name.into(), path, clrmd, truth: json_file(&answers.join(format!("{name}.truth.json"))) });
        }
    };
    if let Some(shared) = shared() {
        manifests(&shared, is_of_x64).iter().for_each(|(folder, row)| add(row["name"].as_str().unwrap(), &unpacked(), folder));
    }
    if let Some(extra) = std::env::var_os("GCDUMP_TEST_EXTRA").map(PathBuf::from) {
        let mut names: Vec<String> = std::fs::read_dir(&extra)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|n| n.ends_with(".dmp"))
            .collect();
        names.sort();
        names.iter().for_each(|n| add(n.trim_end_matches(".dmp"), &extra, &extra));
    }
    if out.is_empty() { Err(Ignored("no dump with an answer of ClrMD is unpacked".into())) } else { Ok(out) }
}

/// The walk of the runtime's heap.
pub fn walker(runtime: &Runtime) -> Walker {
    let threads = runtime.thread_list();
    let (list, all) = threads.map_or((&[][..], false), |t| (t.data.as_slice(), t.complete()));
    Walker::new(runtime.gc().unwrap(), list, all).unwrap().data
}

/// Parses an address in JSON.
pub fn number(v: &Value) -> u64 {
    v.as_str().and_then(|s| u64::from_str_radix(s.strip_prefix("0x")?, 16).ok()).unwrap_or_else(|| panic!("{v} is not an address"))
}

/// File offset of the word at `at`, if captured.
pub fn file_offset(dump: &DumpFile, at: Addr) -> Option<usize> {
    let range = dump.ranges.iter().find(|r| r.start <= at && at.0 + 8 <= r.start.0 + r.len)?;
    Some((range.offset + (at.0 - range.start.0)) as usize)
}

/// An address that is not valid, such as in overwritten memory.
pub const NOWHERE: u64 = 0xdead_beef_dead_beef;

/// Returns `bytes`, the file of `dump`, with other values in the process's memory: address, value, and number of bytes.
pub fn with_words(dump: &DumpFile, bytes: &[u8], endian: Endian, words: &[(Addr, u64, usize)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, value, len) in words {
        let range = dump.ranges.iter().find(|r| r.start <= *at && at.0 - r.start.0 < r.len).unwrap_or_else(|| panic!("{at} is not here"));
        let from = (range.offset + (at.0 - range.start.0)) as usize;
        match endian {
            Endian::Little => bytes[from..from + len].copy_from_slice(&value.to_le_bytes()[..*len]),
            Endian::Big => bytes[from..from + len].copy_from_slice(&value.to_be_bytes()[8 - len..]),
        }
    }
    bytes
}

/// Reads the file of a dump of the repository, or of an unpacked one; `None` if it is not on this machine.
pub fn bytes_of(name: &str) -> Option<Vec<u8>> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps");
    let packed = [own.join("corpus"), own].map(|folder| folder.join(format!("{name}.dmp.zst")));
    match packed.iter().find(|path| path.is_file()) {
        Some(path) => Some(zstd::decode_all(File::open(path).unwrap()).unwrap()),
        None => std::fs::read(unpacked().join(format!("{name}.dmp"))).ok(),
    }
}

/// A deterministic generator (xorshift64*) of numbers below its argument.
pub fn random() -> impl FnMut(usize) -> usize {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move |n| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

/// Returns `ranges` by address, with adjacent ones joined.
pub fn joined(mut ranges: Vec<AddrRange>) -> Vec<AddrRange> {
    ranges.sort_unstable();
    let mut out: Vec<AddrRange> = Vec::new();
    for r in ranges.into_iter().filter(|r| r.start < r.end) {
        match out.last_mut() {
            Some(last) if r.start <= last.end => last.end = last.end.max(r.end),
            _ => out.push(r),
        }
    }
    out
}
