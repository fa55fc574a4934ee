//! Source lines in dumps of a program whose source and PDB are in this folder.
//!
//! `Prog.cs` was compiled by Mono's compiler; its line records were written as portable PDB by Mono.Cecil. `net8.dmp.zst` is a dump of
//! the program with `stacks.pdb` beside it, `net10.dmp.zst` of one with the PDB in the assembly. Both are trimmed.

use std::path::{Path, PathBuf};

use crate::common::{ask, run};
use gcdump::cli::Exit;
use serde_json::Value;

const SOURCE: &str = include_str!("lines/Prog.cs");

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/lines").join(name)
}

fn symbols() -> String {
    file("").to_str().unwrap().to_string()
}

/// Returns method and line of the frames of the program's own module.
fn own(frames: &[Value]) -> Vec<(&str, Option<u64>)> {
    let own = frames.iter().filter(|f| f["module"] == "stacks.dll" && f["method"].is_string());
    own.map(|f| (f["method"].as_str().unwrap().split('(').next().unwrap(), f["line"].as_u64())).collect()
}

/// Returns the number of the source line with this text.
fn line_of(text: &str) -> Option<u64> {
    let at = SOURCE.lines().position(|l| l.contains(text)).unwrap_or_else(|| panic!("{text:?} is not in the source"));
    u64::try_from(at).ok().map(|n| n + 1)
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The generic method as written in stacks; stack traces of exceptions write it differently.
const OF_STACKS: &str = "E2E.Worker.Generic[[System.__Canon, System.Private.CoreLib]]";
const OF_TRACES: &str = "E2E.Worker.Generic<System.__Canon>";

/// Returns the frames of the thread with the deepest stack, according to the source.
fn deepest(generic: &'static str) -> Vec<(&'static str, Option<u64>)> {
    let again = ("E2E.Worker.Outer", line_of("Outer(n - 1);"));
    vec![
        (generic, line_of("gate.WaitOne();")),
        ("E2E.Worker.Wrap", line_of("throw new ApplicationException")),
        (generic, line_of("Wrap(e);")),
        (generic, line_of("throw new InvalidOperationException")),
        ("E2E.Worker.Outer", line_of("Generic<string>(k,")),
        again,
        again,
        ("E2E.Program+<Main>c__AnonStorey1.<>m__0", line_of("Outer(depth);")),
    ]
}

/// Whether only tiers and other parts of the runtime that later versions read are missing: these copies were made before.
fn is_whole(exit: Exit, answer: &Value) -> bool {
    let of_tiers = |w: &Value| w["message"].as_str().is_some_and(|m| m.starts_with("the tier of ") || m.contains("that the answer needs"));
    exit == Exit::Ok || exit == Exit::Partial && list(&answer["warnings"]).iter().filter(|w| w["kind"] == "missing").all(of_tiers)
}

fn check(dump: &Path, more: &[&str]) {
    let (exit, answer) = ask(dump, &[&["stacks"], more].concat());
    let threads = list(&answer["data"]["threads"]);
    let stacks: Vec<_> = threads.iter().map(|t| own(list(&t["frames"]))).collect();
    assert!(stacks.contains(&deepest(OF_STACKS)), "{stacks:#?}");
    // Methods with loops, which were replaced while they ran.
    let alone = |method: &str, text: &str| {
        let wanted = [(method, line_of(text))];
        assert!(stacks.iter().any(|s| s == &wanted), "{method}: {stacks:#?}");
    };
    alone("E2E.Program.Main", "Thread.Sleep(100000);");
    alone("E2E.Program.Spin", "new ManualResetEvent(false).WaitOne();");
    let frames: Vec<&Value> = threads.iter().flat_map(|t| list(&t["frames"])).collect();
    assert!(frames.iter().all(|f| f["line"].is_u64() == (f["module"] == "stacks.dll")), "{frames:#?}");
    assert!(frames.iter().all(|f| f["file"].is_null() == f["line"].is_null()));
    assert!(frames.iter().filter_map(|f| f["file"].as_str()).all(|f| f.ends_with("/Prog.cs")));
    assert!(is_whole(exit, &answer), "{}", answer["warnings"]);
    // Lines of exceptions are the same.
    let (_, answer) = ask(dump, &[&["exceptions"], more].concat());
    let traces: Vec<_> = list(&answer["data"]["exceptions"]).iter().map(|e| own(list(&e["stack"]))).filter(|s| !s.is_empty()).collect();
    assert_eq!(traces.len(), 6, "{traces:?}");
    for trace in traces {
        assert!(trace == deepest(OF_TRACES)[1..3] || trace == deepest(OF_TRACES)[3..4], "{trace:?}");
    }
    let (_, answer) = ask(dump, &[&["threads"], more].concat());
    let of_threads: Vec<&Value> = list(&answer["data"]["threads"]).iter().map(|t| &t["exception"]).filter(|e| e.is_object()).collect();
    assert_eq!(of_threads.len(), 3);
    for exception in of_threads {
        assert_eq!(own(list(&exception["stack"])), deepest(OF_TRACES)[1..3]);
        assert_eq!(own(list(&exception["inner"]["stack"])), deepest(OF_TRACES)[3..4]);
    }
}

#[test]
fn lines_of_a_pdb_beside_the_assembly() {
    let (dump, folder) = (file("net8.dmp.zst"), symbols());
    check(&dump, &["--symbols", &folder]);
    check(&dump, &["--modules", &folder]);
    let (_, answer) = ask(&dump, &["stacks"]);
    assert!(list(&answer["data"]["threads"]).iter().flat_map(|t| list(&t["frames"])).all(|f| f["line"].is_null()));
    let text = run(&["exceptions", "--no-local-files", "--symbols", &folder, dump.to_str().unwrap()]).out;
    let place = format!("Prog.cs:line {}\n", line_of("Wrap(e);").unwrap());
    assert!(
        text.contains("   at E2E.Worker.Wrap(System.Exception) +0x") && text.contains(" [stacks.dll] in /") && text.contains(&place),
        "{text}"
    );
    let text = run(&["stacks", "--no-local-files", "--symbols", &folder, dump.to_str().unwrap()]).out;
    assert!(text.contains(&format!(" in {place}")), "{text}");
}

#[test]
fn lines_of_a_pdb_within_the_assembly() {
    check(&file("net10.dmp.zst"), &[]);
}

#[test]
fn a_copy_of_the_dump_keeps_what_lines_need() {
    let folder = tempfile::tempdir().unwrap();
    for (dump, more) in [("net8.dmp.zst", &["--symbols"][..]), ("net10.dmp.zst", &[])] {
        let copy = folder.path().join("copy.dmp");
        let ran = run(&["trim", "--no-local-files", file(dump).to_str().unwrap(), copy.to_str().unwrap()]);
        assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
        let symbols = symbols();
        check(&copy, &more.iter().flat_map(|option| [*option, symbols.as_str()]).collect::<Vec<_>>());
        std::fs::remove_file(copy).unwrap();
    }
}

#[test]
fn a_pdb_of_another_build_is_refused_once_and_is_not_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let mut pdb = std::fs::read(file("stacks.pdb")).unwrap();
    let (dump, path) = (file("net8.dmp.zst"), folder.path().to_str().unwrap());
    let (exit_without, without) = ask(&dump, &["stacks"]);
    // The identity is at the start of the stream `#Pdb`, whose header precedes its name.
    let name = pdb.windows(5).position(|w| w == b"#Pdb\0").unwrap();
    let at = usize::try_from(u32::from_le_bytes(pdb[name - 8..name - 4].try_into().unwrap())).unwrap();
    pdb[at] ^= 1;
    std::fs::write(folder.path().join("stacks.pdb"), pdb).unwrap();
    let (exit, answer) = ask(&dump, &["stacks", "--symbols", path]);
    assert_eq!((exit, &answer["data"]), (exit_without, &without["data"]));
    let reported: Vec<&str> =
        list(&answer["warnings"]).iter().filter_map(|w| w["message"].as_str()).filter(|m| m.contains("its id is")).collect();
    assert!(reported.len() == 1 && reported[0].contains("stacks.pdb is not used for source lines of stacks.dll"), "{reported:?}");
    std::fs::write(folder.path().join("stacks.pdb"), b"Microsoft C/C++ MSF 7.00").unwrap();
    let (_, answer) = ask(&dump, &["stacks", "--symbols", path]);
    assert!(answer["warnings"].to_string().contains("it is not a portable PDB"));
    let ran = run(&["stacks", "--symbols", "/no/such/folder", dump.to_str().unwrap()]);
    assert!(ran.exit == Exit::Usage && ran.err.contains("folder does not exist"), "{:?} {}", ran.exit, ran.err);
}

/// If the debug info of a method is missing, the loss of its lines is reported; other methods keep theirs.
#[test]
fn lines_without_debug_info_are_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = zstd::decode_all(std::fs::File::open(file("net8.dmp.zst")).unwrap()).unwrap();
    let whole = folder.path().join("whole.dmp");
    std::fs::write(&whole, &bytes).unwrap();
    let symbols = symbols();
    let lines = |answer: &Value| {
        let frames = list(&answer["data"]["threads"]).iter().flat_map(|t| list(&t["frames"]));
        frames.filter(|f| f["line"].is_u64()).count()
    };
    let (_, all) = ask(&whole, &["stacks", "--symbols", &symbols]);
    // `Wrap` throws. The pointer to the debug info in its code header is invalid.
    let frames = list(&all["data"]["threads"]).iter().flat_map(|t| list(&t["frames"]));
    let wrap = frames.clone().find(|f| f["method"].as_str().is_some_and(|m| m.starts_with("E2E.Worker.Wrap"))).unwrap();
    let wraps = frames.filter(|f| f["method"] == wrap["method"]).count();
    let ip = u64::from_str_radix(wrap["ip"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    let header_at = ip - wrap["offset"].as_u64().unwrap() - 8;
    let dump = gcdump::internals::dump::open(&whole, &gcdump::internals::dump::OpenOptions::default()).unwrap();
    let offset = |at: u64| crate::common::file_offset(&dump, gcdump::internals::base::Addr(at)).unwrap();
    let header = u64::from_le_bytes(bytes[offset(header_at)..][..8].try_into().unwrap());
    let mut broken = bytes.clone();
    broken[offset(header)..][..8].copy_from_slice(&0x7000_0000_0000u64.to_le_bytes());
    let path = folder.path().join("broken.dmp");
    std::fs::write(&path, broken).unwrap();
    let (exit, answer) = ask(&path, &["stacks", "--symbols", &symbols]);
    assert_eq!(lines(&answer), lines(&all) - wraps);
    assert_eq!((exit, &answer["data"]["complete"]), (Exit::Partial, &Value::Bool(false)));
    assert!(answer["warnings"].to_string().contains("cannot be determined"), "{}", answer["warnings"]);
    let (exit, answer) = ask(&path, &["stacks"]);
    assert!(is_whole(exit, &answer), "without a PDB nothing is missing");
}
