//! Files and the terminal: files that are read besides the dump, files that are written, and arguments shown on a terminal.

#![cfg(unix)]

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gcdump::cli::{Exit, Screen};

use crate::common::{cases, full, own_dump, own_unpacked, run, run_on, sample};

fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_gcdump"));
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn files_on_the_command_line_are_read_up_to_a_size() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large");
    File::create(&large).unwrap().set_len(4 << 30).unwrap();
    let dump = own_dump();
    let dump = dump.to_str().unwrap();
    for (file, why) in [("/dev/zero", "it is a device"), (large.to_str().unwrap(), "too large")] {
        for args in [["info", "--overlay", file, dump].as_slice(), &["diff", "--budget", file, dump, dump]] {
            let ran = run(args);
            assert!(ran.exit == Exit::Usage && ran.err.contains(why), "{args:?}: {:?} {}", ran.exit, ran.err);
        }
    }
}

#[test]
fn a_copy_never_replaces_a_device_or_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, out) = (own_unpacked(), folder.path().join("pipe"));
    pipe(&out);
    for place in [out.as_path(), Path::new("/dev/null")] {
        for force in [&[] as &[&str], &["--force"]] {
            for command in [&["trim"][..], &["export", "heapsnapshot"], &["export", "gcdump"]] {
                let ran = run(&[command, &[dump.to_str().unwrap(), place.to_str().unwrap()], force].concat());
                assert!(ran.exit == Exit::Usage && ran.err.contains("a device or a pipe"), "{command:?}: {:?} {}", ran.exit, ran.err);
                assert!(!place.metadata().unwrap().is_file());
            }
        }
    }
}

/// A file that is searched for by name may be a pipe without a writer. Each of these cases once blocked, or could have.
#[test]
fn a_pipe_with_the_name_of_a_file_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("crash.dmp");
    fs::copy(own_unpacked(), &dump).unwrap();
    let dump = dump.to_str().unwrap();
    let plain = run(&["stat", "--index", "none", dump]);
    let index = folder.path().join("crash.dmp.gcindex");
    pipe(&index);
    let beside = run(&["stat", dump]);
    assert!(beside.out == plain.out && beside.err.contains("is not used: it is a pipe, not a regular file"), "{}", beside.err);
    let asked = run(&["stat", "--index", index.to_str().unwrap(), dump]);
    assert!(asked.exit == Exit::Usage && asked.err.contains("it is a pipe, not a regular file"), "{}", asked.err);
    let modules = folder.path().join("modules");
    fs::create_dir(&modules).unwrap();
    for name in ["libcoreclr.so", "libcoreclr.so.dbg", "System.Private.CoreLib.dll", "System.Private.CoreLib.pdb", "lab.dll", "lab.pdb"] {
        pipe(&modules.join(name));
    }
    let modules = modules.to_str().unwrap();
    for command in [&["stacks"][..], &["type", "--methods", "Lab.*"], &["stat"]] {
        let ran = run(&[command, &["--index", "none", "--modules", modules, "--symbols", modules, dump]].concat());
        assert!(matches!(ran.exit, Exit::Ok | Exit::Partial), "{command:?}: {:?} {}", ran.exit, ran.err);
    }
}

#[test]
fn a_terminal_is_not_shown_control_characters_of_arguments() {
    let hostile = "a\x1b[Kb\x1b]0;c\x07.dmp";
    let dump = own_dump();
    let dump = dump.to_str().unwrap();
    let lines: [&[&str]; 6] = [
        &["info", hostile],
        &[hostile],
        &["info", hostile, hostile],
        &["handles", "--type", hostile, dump],
        &["path", hostile, dump],
        &["info", "--timeout", hostile, dump],
    ];
    for args in lines {
        let ran = run_on(Screen::terminal(Some(100), Some(40)).colored(true), args);
        let (exit, shown) = (ran.exit, ran.out + &ran.err);
        assert!(exit.code() > 1 && !shown.is_empty(), "{args:?}: {exit:?} {shown}");
        assert!(!shown.contains("\x1b[K") && !shown.contains('\x07') && !shown.contains("\x1b]"), "{args:?}: {shown:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_has_its_own_exit_code() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for args in [["heap", "--json"].as_slice(), &["objects", "--format", "csv"], &["stat", "--format", "ndjson"], &["stat"]] {
        let ran = program().args(args).arg(own_dump()).stdout(full()).output().unwrap();
        let err = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(7) && err.contains("No space left"), "{args:?}: {:?} {err}", ran.status);
    }
    let ran = program().args(["heap", "-o", "/dev/full"]).arg(own_dump()).output().unwrap();
    assert_eq!(ran.status.code(), Some(7), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// A limit on the size of files has the effect of a full disk: the unfinished file is removed.
#[test]
fn an_unfinished_file_is_removed() {
    for (command, blocks) in [("export heapsnapshot", 100), ("export gcdump", 50), ("trim", 100)] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let (dump, program) = (own_unpacked(), env!("CARGO_BIN_EXE_gcdump"));
        let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec {program} {command} {} {}", dump.display(), out.display());
        let ran = Command::new("bash").args(["-c", &line]).output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(7) && err.contains("File too large"), "{command}: {:?} {err}", ran.status);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{command}");
    }
}

#[test]
fn a_signal_leaves_no_unfinished_file() {
    for signal in ["INT", "TERM", "HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = program().args(["report", "-o"]).arg(folder.path().join("answer")).arg(own_dump()).spawn().unwrap();
        let files = || fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().file_name()).collect::<Vec<_>>();
        let started = Instant::now();
        while files().is_empty() {
            assert!(started.elapsed() < Duration::from_secs(20), "{signal}: no draft: {:?}", files());
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap().success());
        let status = child.wait().unwrap();
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((status.code(), files()), (Some(130), vec![]), "{signal}: {err}");
    }
}

/// Every command that writes a file or a folder.
const WRITERS: [&str; 9] = [
    "export heapsnapshot",
    "export gcdump",
    "export parquet",
    "export csv",
    "export ndjson",
    "export csv --partition",
    "trim",
    "report",
    "fleet --tables dumps,types,objects,refs",
];

fn line_of(writer: &str, dump: &Path, out: &Path) -> Vec<String> {
    let words = writer.split(' ').map(String::from);
    words
        .chain([dump.display().to_string(), "-o".into(), out.display().to_string()].into_iter().filter(|w| writer != "trim" || w != "-o"))
        .collect()
}

/// Lists all files and folders below `folder`, except the empty folder of a lake.
fn below(folder: &Path) -> Vec<String> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let inside = if path.is_dir() { below(&path) } else { Vec::new() };
        if path.is_file() || !inside.is_empty() || entry.file_name() != "out" {
            out.push(path.display().to_string());
        }
        out.extend(inside);
    }
    out
}

/// The disk is full after any part of the file was written.
#[test]
fn no_writer_leaves_a_part_on_a_full_disk() {
    for writer in sample(WRITERS, 3) {
        for blocks in sample([1, 5], 2) {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("out");
            let args = line_of(writer, &own_unpacked(), &out);
            let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
            let ran = Command::new("bash").args(["-c", &script, env!("CARGO_BIN_EXE_gcdump")]).args(&args).output().unwrap();
            let err = String::from_utf8_lossy(&ran.stderr);
            assert_eq!((ran.status.code(), below(folder.path())), (Some(7), vec![]), "{writer}, {blocks}: {err}");
            assert!(err.contains("File too large") && err.contains(&out.display().to_string()), "{writer}: {err}");
        }
    }
}

/// A signal arrives while a file is written: the file is complete, or does not exist.
#[test]
fn no_writer_leaves_a_part_when_it_is_interrupted() {
    let mut all = 0;
    for (i, writer) in sample(WRITERS.into_iter().enumerate(), 3) {
        let mut interrupted = 0;
        for attempt in 0..cases(2, 40) {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("out");
            let mut child = program().args(line_of(writer, &own_unpacked(), &out)).spawn().unwrap();
            // The signal is sent after the first file appears, a little later each time.
            while fs::read_dir(folder.path()).unwrap().next().is_none() && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_micros(200));
            }
            std::thread::sleep(Duration::from_micros(500 * (attempt as u64 % 8)));
            let signal = ["INT", "TERM", "HUP"][(i + attempt) % 3];
            let _ = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).stderr(Stdio::null()).status();
            let status = child.wait().unwrap();
            match status.code() {
                // Files get their names when they are complete.
                Some(130) if out.exists() => assert!(below(folder.path()).iter().all(|p| !p.contains("/.gcdump-")), "{writer}"),
                Some(130) => {
                    assert_eq!(below(folder.path()), Vec::<String>::new(), "{writer}, SIG{signal}");
                    interrupted += 1;
                }
                // The signal came too late, or before the handlers were installed.
                Some(0 | 5) => assert!(out.exists() && below(folder.path()).iter().all(|p| !p.contains("/.gcdump-")), "{writer}"),
                // The folder was removed before the signal ended the process: 7.
                code => assert!(matches!(code, None | Some(7)) && below(folder.path()).is_empty(), "{writer}: {status:?}"),
            }
            if interrupted == 3 {
                break;
            }
        }
        println!("{writer}: interrupted {interrupted} times");
        all += interrupted;
    }
    // On a busy machine some commands may finish before the signal is sent.
    assert!(!full() || all > WRITERS.len(), "{all}");
}

/// A cache that has no room for a dump keeps no part of it.
#[test]
fn a_full_cache_keeps_no_part() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" \"$@\"";
    let args = ["stat", "--cache", cache.to_str().unwrap(), own_dump().to_str().unwrap()].map(String::from);
    let ran = Command::new("bash").args(["-c", script, env!("CARGO_BIN_EXE_gcdump")]).args(&args).output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && err.contains(&cache.display().to_string()), "{:?} {err}", ran.status);
    assert_eq!(below(&cache), Vec::<String>::new(), "{err}");
    assert_eq!(program().args(&args).output().unwrap().status.code(), Some(0), "it works once there is room");
}

/// `-` is standard output, not a file of that name.
#[test]
fn a_dash_is_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let dump = own_unpacked();
    let ran = |args: &[&str]| program().args(args).arg(&dump).args(["-o", "-"]).current_dir(folder.path()).output().unwrap();
    let plain = program().args(["stat", "--top", "3"]).arg(&dump).output().unwrap();
    let dashed = ran(&["stat", "--top", "3"]);
    assert!(dashed.status.success() && dashed.stdout == plain.stdout && !plain.stdout.is_empty());
    for args in
        [&["export", "heapsnapshot"][..], &["export", "gcdump"], &["export", "parquet"], &["export", "csv", "--partition"], &["fleet"]]
    {
        let refused = ran(args);
        let err = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && err.contains("standard output"), "{args:?}: {:?} {err}", refused.status);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
