//! `stacks` and precise roots: compared with ClrMD and the programs' own records, and checked without an oracle.

mod alone;
mod arguments;
mod busy;
mod clrmd;
mod fallback;
mod locals;
mod named;
mod protected;
mod recursion;
mod stale;
mod tiers;
pub mod truth;

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use crate::common::{COVERAGE, Known, ask, lab, run, shared};
use gcdump::cli::Exit;
use serde_json::Value;

fn list(v: &Value) -> &[Value] {
    v.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(v: &'v Value, key: &str) -> &'v str {
    v[key].as_str().unwrap_or_default()
}

/// Returns an address, or 0 if absent.
fn address(v: &Value, key: &str) -> u64 {
    text(v, key).strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0)
}

/// Folders with module files for a dump: the runtime's, and those of the programs.
fn folders(runtime: &str) -> Vec<PathBuf> {
    // These dumps were made from dumps of .NET 10.
    let runtime = if runtime == "net11shape" { "net10" } else { runtime };
    let of_lab = lab().map(|lab| lab.join(runtime));
    let programs = shared().map(|s| s.join("modules"));
    let programs = programs.iter().flat_map(|p| ["", "-state", "-state-debug"].map(|kind| p.join(format!("{runtime}{kind}"))));
    of_lab.into_iter().chain(programs).filter(|folder| folder.is_dir()).collect()
}

/// Returns the answer with module files in `folders`.
fn ask_with(dump: &Path, folders: &[PathBuf], command: &[&str]) -> (Exit, Value) {
    let mut words = command.to_vec();
    folders.iter().for_each(|folder| words.extend(["--modules", folder.to_str().unwrap()]));
    ask(dump, &words)
}

/// A method's name without generic arguments and parameters: ``Stacks.Gen`1[[System.__Canon]].S(System.Object)`` and
/// `Stacks.Gen<System.__Canon>.S(System.Object)` are `Stacks.Gen.S`. Names that a compiler made keep their brackets.
fn plain(method: &str) -> String {
    let (mut out, mut generic, mut made, mut arity) = (String::new(), 0u32, 0u32, false);
    for c in method.split('(').next().unwrap_or_default().chars() {
        arity = arity && c.is_ascii_digit();
        match c {
            '[' => generic += 1,
            '<' if generic > 0 || made == 0 && out.ends_with(|c: char| c.is_alphanumeric() || c == '_') => generic += 1,
            ']' | '>' if generic > 0 => generic -= 1,
            _ if generic > 0 || arity => {}
            '`' => arity = true,
            _ => {
                made = made + u32::from(c == '<') - u32::from(c == '>' && made > 0);
                out.push(c);
            }
        }
    }
    out
}

#[test]
fn plain_names_have_neither_arguments_nor_parameters() {
    for (name, expected) in [
        ("Lab.Program.Main(System.String[])", "Lab.Program.Main"),
        ("Stacks.Gen`1[[System.__Canon, System.Private.CoreLib]].S[[System.__Canon]](System.__Canon)", "Stacks.Gen.S"),
        ("Stacks.Gen<System.__Canon>.S<System.Collections.Generic.List<System.__Canon>>(System.__Canon)", "Stacks.Gen.S"),
        ("Lab.Program+<>c__DisplayClass34_1.<Busy>b__1()", "Lab.Program+<>c__DisplayClass34_1.<Busy>b__1"),
        ("Lab.Program+<>c+<<Main>b__3_2>d`1[[System.Int32]].MoveNext()", "Lab.Program+<>c+<<Main>b__3_2>d.MoveNext"),
        ("Stacks.Slow..cctor()", "Stacks.Slow..cctor"),
    ] {
        assert_eq!(plain(name), expected);
    }
}

/// Whether the dump has the whole heap.
fn has_heap(dump: &Known) -> bool {
    !matches!(dump.kind.as_str(), "mini" | "triage")
}

/// Fails if the part of `docs/coverage.md` between the markers `<!-- NAME -->` and `<!-- end of NAME -->` is not `part`;
/// `GCDUMP_BLESS=1` rewrites it.
fn document(name: &str, part: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/coverage.md");
    let _guard = COVERAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let old = std::fs::read_to_string(&path).unwrap();
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (head, rest) = old.split_once(&start).expect("the first marker");
    let (_, tail) = rest.split_once(&end).expect("the second marker");
    let new = format!("{head}{start}{part}{end}{tail}");
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        std::fs::write(&path, new).unwrap();
    } else {
        assert!(old == new, "docs/coverage.md is outdated; GCDUMP_BLESS=1 cargo test --test it stacks:: rewrites it");
    }
}

/// Merged stacks are those of flame graphs: the format for them has the same lines as without `--merge`.
#[test]
fn merged_stacks_can_be_folded() {
    for name in ["net10-wks-deadlock-heap", "net10-wks-pool-heap", "net8-wks-deadlock-heap"] {
        let dump = format!("{}/dumps/corpus/{name}.dmp.zst", env!("CARGO_MANIFEST_DIR"));
        let folded = |more: &[&str]| run(&[&["stacks", "--format", "folded", "--no-local-files", &dump], more].concat()).out;
        let each = folded(&[]);
        assert!(each.lines().count() > 2, "{each}");
        assert_eq!(folded(&["--merge"]), each, "{name}");
    }
}

#[test]
fn stacks_of_native_aot_programs_are_refused_with_what_else_to_run() {
    let dump = format!("{}/dumps/corpus/net10aot-wks-locks-full.dmp.zst", env!("CARGO_MANIFEST_DIR"));
    for words in [&["stacks"][..], &["stacks", "--merge"], &["clrstack"]] {
        let ran = run(&[words, &[dump.as_str()]].concat());
        assert_eq!((ran.exit, ran.out.as_str()), (Exit::NoRuntime, ""), "{words:?}: {}", ran.err);
        assert!(ran.err.contains("stacks of NativeAOT programs are not walked; `gcdump threads` shows"), "{}", ran.err);
    }
}

/// `info` has different words for stacks with lost frames and for stacks with frames whose references are unknown.
#[test]
fn info_says_what_is_not_exact_about_stacks() {
    let short = |name: &str| {
        let path = format!("{}/dumps/corpus/{name}.dmp.zst", env!("CARGO_MANIFEST_DIR"));
        run(&[path.as_str(), "--no-local-files"]).out
    };
    let lost = short("win-net10-wks-basics-heap");
    assert!(lost.contains("stacks     partial: frames may be missing in 1 of 3 stacks\n") && !lost.contains("not exact"), "{lost}");
    let unknown = short("net10-wks-finalizers-heap");
    let exact = |line: &str| line.contains("(what 1 of 3 stacks hold is not exact)");
    assert!(unknown.contains(", stacks, threads in full.") && unknown.lines().any(exact), "{unknown}");
}
