//! Files and the terminal: what is read besides the dump, what is written, and what a terminal is shown of the arguments.

#![cfg(unix)]

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gcdump::cli::{Exit, Screen};

use crate::common::{own_dump, own_unpacked, run, run_on};

fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_gcdump"));
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn what_the_command_line_names_is_read_up_to_a_size() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large");
    File::create(&large).unwrap().set_len(4 << 30).unwrap();
    let dump = own_dump();
    let dump = dump.to_str().unwrap();
    for file in ["/dev/zero", large.to_str().unwrap()] {
        for args in [["info", "--overlay", file, dump].as_slice(), &["diff", "--budget", file, dump, dump]] {
            let ran = run(args);
            assert!(ran.exit == Exit::Usage && ran.err.contains("too large"), "{args:?}: {:?} {}", ran.exit, ran.err);
        }
    }
}

#[test]
fn a_copy_never_takes_the_place_of_a_device_or_a_pipe() {
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
        let ran = run_on(Screen::terminal(Some(100), Some(40)).coloured(true), args);
        let (exit, shown) = (ran.exit, ran.out + &ran.err);
        assert!(exit.code() > 1 && !shown.is_empty(), "{args:?}: {exit:?} {shown}");
        assert!(!shown.contains("\x1b[K") && !shown.contains('\x07') && !shown.contains("\x1b]"), "{args:?}: {shown:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_has_an_exit_code_of_its_own() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for args in [["heap", "--json"].as_slice(), &["objects", "--format", "csv"], &["stat", "--format", "ndjson"], &["stat"]] {
        let ran = program().args(args).arg(own_dump()).stdout(full()).output().unwrap();
        let err = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(7) && err.contains("No space left"), "{args:?}: {:?} {err}", ran.status);
    }
    let ran = program().args(["heap", "-o", "/dev/full"]).arg(own_dump()).output().unwrap();
    assert_eq!(ran.status.code(), Some(7), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// A limit on the size of files stands for a full disk: what was written until then goes.
#[test]
fn a_file_that_cannot_be_finished_is_none() {
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
        let overlay = folder.path().join("overlay");
        pipe(&overlay);
        // Waits for somebody to write the overlay, with the draft of the answer open.
        let args = ["heap", "-o", folder.path().join("answer").to_str().unwrap(), "--overlay", overlay.to_str().unwrap()].map(String::from);
        let mut child = program().args(args).arg(own_dump()).spawn().unwrap();
        let files = || fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().file_name()).collect::<Vec<_>>();
        let started = Instant::now();
        while files().len() < 2 {
            assert!(started.elapsed() < Duration::from_secs(20), "{signal}: no draft: {:?}", files());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap().success());
        let status = child.wait().unwrap();
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((status.code(), files()), (Some(130), vec!["overlay".into()]), "{signal}: {err}");
    }
}
