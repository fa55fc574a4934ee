//! The floors: a file may use only its own floor and those below it.

use std::path::{Path, PathBuf};

/// The floors, highest first. `base` and `model` share the lowest one.
pub const FLOORS: [&[&str]; 16] = [
    &["cli"],
    &["output"],
    &["export"],
    &["analysis"],
    &["managed"],
    &["bcl"],
    &["session"],
    &["heapgraph"],
    &["stack"],
    &["gc"],
    &["clr"],
    &["contract", "data"],
    &["memory"],
    &["dump"],
    &["graph"],
    &["base", "model"],
];

fn floor_of(name: &str) -> Option<usize> {
    FLOORS.iter().position(|f| f.contains(&name))
}

fn rust_files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Every floor mentioned in a line: `crate::gc::Gc`, `use crate::{base, gc}`.
fn mentioned(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for rest in text.split("crate::").skip(1) {
        if let Some(group) = rest.strip_prefix('{') {
            let group = group.split('}').next().unwrap();
            out.extend(group.split(',').map(|item| item.trim().split("::").next().unwrap().to_string()));
        } else {
            out.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    out
}

fn upward(own: &str, text: &str) -> Vec<String> {
    let floor = floor_of(own).unwrap();
    let code = text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    mentioned(&code).into_iter().filter(|m| floor_of(m).is_some_and(|f| f < floor)).collect()
}

#[test]
fn imports_go_down_the_floors() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    let mut checked = 0;
    for entry in std::fs::read_dir(&src).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let own = path.file_name().unwrap().to_str().unwrap().to_string();
        assert!(floor_of(&own).is_some(), "src/{own} is on no floor");
        let mut files = Vec::new();
        rust_files(&path, &mut files);
        for file in files {
            checked += 1;
            let text = std::fs::read_to_string(&file).unwrap();
            wrong.extend(upward(&own, &text).into_iter().map(|m| format!("{} uses {m}", file.display())));
        }
    }
    assert!(checked > 50, "only {checked} files found");
    assert!(wrong.is_empty(), "upward imports:\n{}", wrong.join("\n"));
}

/// Graph algorithms are independent of dumps, models and the .NET runtime.
#[test]
fn the_graph_is_pure() {
    let mut files = Vec::new();
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/graph"), &mut files);
    for file in &files {
        let used = mentioned(&std::fs::read_to_string(file).unwrap());
        assert!(used.iter().all(|m| m == "base" || m == "graph"), "{} uses {used:?}", file.display());
    }
    assert!(files.len() > 4);
}

#[test]
fn upward_imports_are_detected() {
    assert_eq!(upward("memory", "use crate::gc::Gc;"), ["gc"]);
    assert_eq!(upward("clr", "use crate::{base::Addr, cli, memory};"), ["cli"]);
    assert!(upward("gc", "use crate::clr::threads; // crate::x\n// crate::cli").is_empty());
}

/// `unsafe` is confined to the file that maps memory and to the allocator of the program; only the command line prints or ends the process.
#[test]
fn unsafe_code_stays_in_the_mapping() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let holds = |word: &str| -> Vec<String> {
        let lines = |f: &PathBuf| std::fs::read_to_string(f).unwrap();
        let hit = |f: &&PathBuf| lines(f).lines().any(|l| !l.trim_start().starts_with("//") && l.contains(word));
        files.iter().filter(hit).map(|f| f.strip_prefix(&src).unwrap().to_str().unwrap().to_string()).collect()
    };
    let mut holders = holds("unsafe {");
    holders.sort_unstable();
    assert_eq!(holders, ["dump/mapping.rs", "huge_pages.rs"]);
    // Only `main` ends the process, on Ctrl-C.
    assert_eq!(holds("process::exit"), ["main.rs"]);
    assert!(holds("anyhow::").iter().all(|f| f.starts_with("cli/")), "{:?}", holds("anyhow::"));
}

/// Returns the code of the program, without its tests, by file below `src`.
pub fn program() -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let name = |file: &PathBuf| file.strip_prefix(&src).unwrap().to_str().unwrap().to_string();
    let is_test = |name: &str| name.ends_with("tests.rs") || name.contains("/tests/") || name.ends_with("bench.rs");
    let code = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.split("mod tests {").next().unwrap();
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    files.iter().map(|file| (name(file), code(file))).filter(|(name, _)| !is_test(name)).collect()
}

/// The library does not name options of the command line, because programs without a command line show its messages too. `output` and `cli` add the
/// options.
#[test]
fn only_the_command_line_names_its_options() {
    // Options of the programs that write and compress dumps.
    const OF_OTHER_PROGRAMS: [&str; 3] = ["createdump --withheap", "dotnet-dump collect --type", "zstd --long"];
    let options = |name: &str, code: &str| -> Vec<String> {
        let code = OF_OTHER_PROGRAMS.iter().fold(code.to_string(), |code, words| code.replace(words, ""));
        let option = |at: usize| -> Option<String> {
            let word = code[at..].split(|c: char| c != '-' && !c.is_ascii_lowercase()).next()?;
            // These analyses suggest command lines, whose options are separate literals.
            let suggests = ["analysis/dump/analyze/", "analysis/dump/info/"].iter().any(|folder| name.starts_with(folder));
            let is_literal = code[..at].ends_with('"') && code[at + word.len()..].starts_with('"');
            (word.len() > 2 && !(suggests && is_literal)).then(|| format!("{name}: {word}"))
        };
        code.match_indices("--").filter_map(|(at, _)| option(at)).collect()
    };
    let is_of_the_program = |name: &str| name == "main.rs" || name.starts_with("cli/") || name.starts_with("output/");
    let named: Vec<String> =
        program().iter().filter(|(name, _)| !is_of_the_program(name)).flat_map(|(name, code)| options(name, code)).collect();
    assert_eq!(named, [""; 0]);
    assert_eq!(
        options("gc/mod.rs", r#"note("is absent; --modules PATH has it"); i--; TAKE = "createdump --withheap""#),
        ["gc/mod.rs: --modules"]
    );
    assert_eq!(options("analysis/dump/info/mod.rs", r#"["modules", "--needed"], "a --b""#), ["analysis/dump/info/mod.rs: --b"]);
}

/// Few files use files, threads, processes and connections. Adding one is a decision, and `docs/security.md` explains each.
#[test]
fn files_threads_and_processes_are_in_named_modules() {
    let program = program();
    let callers = |words: &[&str]| -> Vec<&str> {
        let calls = |code: &str| {
            words
                .iter()
                .any(|word| code.match_indices(word).any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')))
        };
        let mut found: Vec<&str> = program.iter().filter(|(_, code)| calls(code)).map(|(name, _)| name.as_str()).collect();
        found.sort_unstable();
        found
    };
    // Files are opened for reading in `dump/files.rs`, which refuses files that are not regular. The others open files that they made
    // themselves (cache, history), that only a person names (a script, `>` of the shell, a stream for `-o`), or that the kernel has about this
    // process (`limits`). `clr/aot/pdb.rs` has its own type called `File`.
    assert_eq!(
        callers(&["File::open(", "File::options(", "OpenOptions::new()\n", "fs::read(", "fs::read_to_string(", "Mmap::map("]),
        [
            "cli/cache.rs",
            "cli/limits.rs",
            "cli/mcp/beneath.rs",
            "cli/shell/mod.rs",
            "cli/shell/pipe.rs",
            "cli/streams.rs",
            "clr/aot/pdb.rs",
            "dump/files.rs",
            "dump/mapping.rs"
        ]
    );
    // Files are written under temporary names in `cli/write.rs`, and without a name in `dump`; `man --all` writes pages.
    assert_eq!(
        callers(&[
            "File::create_new(",
            "File::create(",
            "fs::write(",
            "tempfile(",
            "tempfile_in(",
            "tempdir_in(",
            "create_dir(",
            "create_dir_all("
        ]),
        ["cli/cache.rs", "cli/man.rs", "cli/write.rs", "dump/compressed.rs", "dump/temp.rs"]
    );
    assert_eq!(
        callers(&["fs::rename(", "remove_file(", "remove_dir(", "remove_dir_all("]),
        ["cli/cache.rs", "cli/fetch/store.rs", "cli/write.rs"]
    );
    assert_eq!(
        callers(&["read_dir("]),
        [
            "cli/cache.rs",
            "cli/fetch/store.rs",
            "cli/lake.rs",
            "cli/mcp/dumps.rs",
            "cli/pick.rs",
            "cli/shell/complete.rs",
            "cli/write.rs",
            "memory/files/local.rs"
        ]
    );
    // Threads are started by `base/threads.rs`, which works without them if none can be started, and by `main`; the scopes of the others are
    // rayon's. Processes are a pager, and the programs that a person types after `|`.
    assert_eq!(
        callers(&["spawn(", "spawn_scoped(", "build_global("]),
        ["base/threads.rs", "cli/pager.rs", "cli/shell/pipe.rs", "gc/walk/pieces.rs", "main.rs", "output/stream.rs"]
    );
    // Connections are made for `modules --fetch`.
    assert_eq!(callers(&["ureq::", "TcpStream", "TcpListener", "UdpSocket", "ToSocketAddrs"]), ["cli/fetch/http.rs"]);
    assert_eq!(callers(&["process::{Child", "process::Command"]), ["cli/pager.rs", "cli/shell/pipe.rs"]);
}

/// Only the ledger has per-thread state and unwinding; work that is given to other threads carries the ledger along.
#[test]
fn per_thread_state_is_in_the_ledger() {
    let program = program();
    let users = |words: &[&str]| -> Vec<&str> {
        let uses = |code: &str| words.iter().any(|word| code.contains(word));
        let mut found: Vec<&str> = program.iter().filter(|(_, code)| uses(code)).map(|(name, _)| name.as_str()).collect();
        found.sort_unstable();
        found
    };
    // In `memory`, the state is a hint: where a thread read last.
    assert_eq!(
        users(&["thread_local!"]),
        ["base/ledger/cancel.rs", "base/ledger/missed.rs", "base/ledger/reads.rs", "memory/mod.rs", "memory/record.rs"]
    );
    // The others propagate the panic of a thread that they have joined.
    assert_eq!(
        users(&["catch_unwind(", "resume_unwind("]),
        ["analysis/tools/page/mod.rs", "base/ledger/cancel.rs", "cli/cmd/fleet.rs", "export/tables/feed.rs", "main.rs"]
    );
    // These do not read the dump on other threads, or do so only for users of the library (`managed`).
    let alone = [
        "analysis/compare/track/answer.rs",
        "analysis/compare/track/holders.rs",
        "analysis/objects/strings/values.rs",
        "graph/dominators/mod.rs",
        "graph/offsets.rs",
        "managed/objects.rs",
    ];
    let hands_on = ["par_iter(", "par_iter_mut(", "par_chunks(", "rayon::join(", "rayon::scope(", "threads::start("];
    let carries = users(&["Carried::here()"]);
    let without: Vec<&str> = users(&hands_on).into_iter().filter(|name| !carries.contains(name)).collect();
    assert_eq!(without, alone);
}

/// Files outside of `data` that look up the offset of a field of a runtime structure. Others bind fields, and read and place them through what
/// they bound.
///
/// * `contract/thread_list.rs` compares the layouts of two structures to find out what the links of threads point to.
const OFFSETS: [&str; 1] = ["contract/thread_list.rs"];

/// Whether code has a look-up such as `Thread::LinkNext.offset(d)`.
fn looks_up_an_offset(code: &str) -> bool {
    code.match_indices(".offset(").any(|(at, _)| {
        let before = code[..at].trim_end();
        let path = &before[before.rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).map_or(0, |i| i + 1)..];
        path.rsplit("::").nth(1).is_some_and(|structure| structure.starts_with(|c: char| c.is_uppercase()))
    })
}

/// The list may only become shorter.
#[test]
fn offsets_of_runtime_structures_are_looked_up_in_data() {
    assert!(looks_up_an_offset("let at = data::Thread::LinkNext\n    .offset(&d)?;") && looks_up_an_offset("(Array::length.offset(d), 1)"));
    assert!(!looks_up_an_offset("code.offset(ip); fields.offset(Thread::Id); MmapOptions::new().offset(4)"));
    let program = program();
    let outside = |name: &str| !name.starts_with("data/");
    let mut found: Vec<&str> =
        program.iter().filter(|(name, code)| outside(name) && looks_up_an_offset(code)).map(|(name, _)| name.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, OFFSETS);
    // Names of structures and fields as texts are for `contract`, which makes descriptors, and for `data`.
    let by_name = |code: &str| [".size_of(\"", ".type_info(\"", ".offset(\""].iter().any(|call| code.contains(call));
    let named = program.iter().filter(|(name, code)| outside(name) && !name.starts_with("contract/") && by_name(code));
    assert_eq!(named.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), Vec::<&str>::new());
}

/// Files near 600 lines should be split.
#[test]
fn files_stay_readable() {
    let mut files = Vec::new();
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let long = files.iter().map(|f| (std::fs::read_to_string(f).unwrap().lines().count(), f)).filter(|(n, _)| *n > 620);
    assert_eq!(long.collect::<Vec<_>>(), []);
}

/// Analyses in a folder whose group already has the name of the command.
const RENAMED: [(&str, &str); 3] = [("heap", "summary"), ("objects", "list"), ("threads", "list")];

#[test]
fn analyses_are_grouped_as_help_groups_their_commands() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let analysis = src.join("analysis");
    let mut commands = Vec::new();
    rust_files(&src.join("cli/cmd"), &mut commands);
    let mut found = 0;
    for file in commands {
        let text = std::fs::read_to_string(&file).unwrap();
        let Some((_, group)) = text.split_once("Group::").filter(|_| !file.ends_with("mod.rs")) else { continue };
        let group = group.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_lowercase();
        let command = file.file_stem().unwrap().to_str().unwrap();
        let name = RENAMED.iter().find(|r| r.0 == command).map_or(command, |r| r.1);
        for folder in std::fs::read_dir(&analysis).unwrap().map(|e| e.unwrap().path()) {
            let is_there = folder.join(name).is_dir() || folder.join(format!("{name}.rs")).is_file();
            // Two commands have a `list`.
            if is_there && (name == command || folder.ends_with(command)) {
                assert!(folder.ends_with(&group), "{command}: {group}, but its analysis is in {folder:?}");
                found += 1;
            }
        }
    }
    assert!(found >= 30, "only {found} commands have an analysis of their name");
}
