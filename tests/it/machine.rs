//! A machine short of resources: threads, descriptors, temporary folder, memory, disk; closed streams, signals, and concurrent processes.

#![cfg(unix)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{cases, own_dump, own_unpacked, sample};
use crate::harness::{Tested, ignored};

const GCDUMP: &str = env!("CARGO_BIN_EXE_gcdump");

/// Commands that use threads in all ways.
const THREADED: [&str; 12] = [
    "stat DUMP",
    "retained DUMP",
    "info DUMP",
    "objects DUMP",
    "report DUMP -o out",
    "trim DUMP out",
    "verify --threads 3 DUMP",
    "export parquet DUMP -o out",
    "fleet DUMP -o out",
    "stat --timeout 5m --max-memory 4G DUMP",
    "shell -c stat DUMP",
    "inspect DUMP",
];

/// Makes a folder in which any user can run a copy of the program on a dump, and create files.
fn open_folder() -> (tempfile::TempDir, PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let permit = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    permit(folder.path(), 0o777);
    let (program, dump) = (folder.path().join("gcdump"), folder.path().join("dump"));
    // A separate process copies it: a child of another test would inherit a file that is open for writing, which then cannot be executed.
    assert!(Command::new("cp").arg(GCDUMP).arg(&program).status().unwrap().success());
    permit(&program, 0o755);
    fs::copy(own_dump(), &dump).unwrap();
    permit(&dump, 0o644);
    (folder, program)
}

/// Runs `line` in `folder` after `limit`, a line of bash.
fn limited(user: Option<u32>, limit: &str, (folder, program): (&Path, &Path), line: &str) -> Output {
    let mut command = match user {
        Some(user) => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", &user.to_string(), "--clear-groups", "bash"]);
            command
        }
        None => Command::new("bash"),
    };
    let script = format!("{limit}; exec \"$0\" \"$@\"");
    let words = line.split(' ').map(|word| if word == "DUMP" { "dump" } else { word });
    command.args(["-c", &script]).arg(program).args(words).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// Names of unfinished files in a folder and below it.
fn drafts(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(".gcdump-")) {
            out.push(entry.path());
        }
        out.extend(drafts(&entry.path()));
    }
    out
}

fn clear(out: &Path) {
    let _ = if out.is_dir() { fs::remove_dir_all(out) } else { fs::remove_file(out) };
}

/// Without handling the limit (`ulimit -u`, or `pids.max` of a container), rayon would panic, with exit code 101.
#[test]
fn if_no_thread_starts_one_does_everything() -> Tested {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|ran| ran.stdout == b"0\n");
    if is_root && Command::new("setpriv").arg("--version").output().is_err() {
        return ignored("setpriv is not installed: root has no limit of processes");
    }
    // The limit applies to all processes of a user, so a user without other processes is needed.
    let user = is_root.then(|| 200_000 + std::process::id() % 100_000);
    let (folder, program) = open_folder();
    let out = folder.path().join("out");
    for line in THREADED {
        let mut answers = Vec::new();
        for limit in std::iter::once(None).chain(sample((0..8).map(Some), 3)) {
            clear(&out);
            let limit = limit.map_or("true".into(), |n| format!("ulimit -u {n}"));
            let ran = limited(user, &limit, (folder.path(), &program), line);
            let err = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(ran.status.code().is_some_and(|code| [0, 1, 5].contains(&code)), "{limit}: {line}: {:?} {err}", ran.status);
            assert!(drafts(folder.path()).is_empty() && !err.contains("panicked"), "{limit}: {line}: {err}");
            answers.push((ran.status.code(), ran.stdout, err));
        }
        assert!(answers.windows(2).all(|two| two[0] == two[1]), "{line}");
    }
    // Time and memory are limited as well.
    let slow = limited(user, "ulimit -u 0", (folder.path(), &program), "retained --timeout 1ms DUMP");
    assert_eq!(slow.status.code(), Some(6), "{}", String::from_utf8_lossy(&slow.stderr));
    let large = limited(user, "ulimit -u 0", (folder.path(), &program), "mcp DUMP");
    let err = String::from_utf8_lossy(&large.stderr);
    assert!(large.status.code() == Some(2) && err.contains("two threads"), "{:?} {err}", large.status);
    Ok(())
}

#[test]
fn without_free_descriptors_no_file_is_left() {
    let (folder, program) = open_folder();
    let (out, cache) = (folder.path().join("out"), folder.path().join("cache"));
    for line in sample(THREADED.into_iter().chain(["export csv --partition DUMP -o out", "stat --cache cache DUMP"]), 6) {
        for descriptors in sample(3..24, 5) {
            let ran = limited(None, &format!("ulimit -n {descriptors}"), (folder.path(), &program), line);
            let err = String::from_utf8_lossy(&ran.stderr);
            // With three, the program does not start.
            let expected = [0, 1, 2, 3, 5, 7, 127];
            assert!(ran.status.code().is_some_and(|code| expected.contains(&code)), "{descriptors}: {line}: {:?} {err}", ran.status);
            assert!(drafts(folder.path()).is_empty(), "{descriptors}: {line}: {err}");
            let is_done = matches!(ran.status.code(), Some(0 | 1 | 5));
            assert!(is_done || !out.exists(), "{descriptors}: {line}: {err}");
            assert!(is_done || err.contains("oo many open files") || err.contains("Error 24"), "{descriptors}: {line}: {err}");
            clear(&out);
            clear(&cache);
        }
    }
}

/// SIGXFSZ would end the process and leave its unfinished file.
#[test]
fn a_limit_on_the_size_of_files_is_an_error_of_the_write() {
    let (folder, program) = open_folder();
    fs::copy(own_unpacked(), folder.path().join("dump")).unwrap();
    let out = folder.path().join("out");
    for line in ["export heapsnapshot DUMP -o out", "trim DUMP out", "export csv DUMP -o out", "objects DUMP -o out", "index DUMP -o out"] {
        let ran = limited(None, "ulimit -f 8", (folder.path(), &program), line);
        let err = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(7) && err.contains("File too large"), "{line}: {:?} {err}", ran.status);
        assert!(drafts(folder.path()).is_empty() && !out.exists(), "{line}");
    }
}

#[test]
fn a_missing_temporary_folder_is_named_with_what_to_do() {
    // Temporary files of `--max-memory` are checked in `max_memory::a_full_disk_is_an_error`.
    let ran = Command::new(GCDUMP).arg("stat").arg(own_dump()).env("TMPDIR", "/nowhere/at/all").output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    let is_said = err.contains("/nowhere/at/all") && err.contains("set TMPDIR to") && err.contains("No such file");
    assert!(ran.status.code() == Some(7) && is_said, "{:?} {err}", ran.status);
}

#[test]
fn help_that_cannot_be_written_has_the_exit_code_of_an_answer() {
    for args in ["--help", "--version", "help exit-codes", "help stat", "stat --help", "completions bash", "man", "man stat"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = Command::new(GCDUMP).args(args.split(' ')).stdout(full).output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(7) && err.contains("No space left"), "{args}: {:?} {err}", ran.status);
    }
}

/// A closed stream behaves like `/dev/null`, which the standard library opens in its place.
#[test]
fn closed_streams_change_no_exit_code() {
    let (folder, program) = open_folder();
    for close in ["exec <&-", "exec >&-", "exec 2>&-", "exec <&- >&- 2>&-"] {
        for (line, code) in
            [("stat DUMP", 0), ("--help", 0), ("stat nothing.dmp", 3), ("stat --no-such", 2), ("shell -c stat DUMP", 0), ("mcp DUMP", 0)]
        {
            let ran = limited(None, close, (folder.path(), &program), line);
            assert_eq!(ran.status.code(), Some(code), "{close}: {line}: {}", String::from_utf8_lossy(&ran.stderr));
        }
    }
}

/// The signal is sent as soon as there is an unfinished file, so the handlers must be installed before.
#[test]
fn an_early_signal_leaves_no_unfinished_file() {
    let dump = own_dump();
    let mut met = 0;
    for attempt in 0..cases(24, 300) {
        let folder = tempfile::tempdir().unwrap();
        let (signal, line) =
            (["INT", "TERM", "HUP"][attempt % 3], [&["heap", "-o"][..], &["report", "-o"], &["export", "csv", "-o"]][attempt / 3 % 3]);
        let mut command = Command::new(GCDUMP);
        command.args(line).arg(folder.path().join("out")).arg(&dump).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // A loop of shell builtins checks more than once per millisecond. A process that has ended stays a zombie, which `kill -0` finds,
        // until it is waited for; then its output exists.
        let script = "until compgen -G \"$1/.gcdump-*\" >/dev/null || [ -e \"$1/out\" ] || ! kill -0 $2; do :; done; kill -$3 $2";
        let pid = child.id().to_string();
        let killer =
            Command::new("bash").args(["-c", script, "killer"]).arg(folder.path()).args([&pid, signal]).stderr(Stdio::null()).status();
        assert!(killer.is_ok());
        let status = child.wait().unwrap();
        met += usize::from(status.code() == Some(130));
        assert!(matches!(status.code(), Some(130 | 0 | 5)), "SIG{signal}: {status:?}");
        assert!(drafts(folder.path()).is_empty(), "SIG{signal}: {:?}", drafts(folder.path()));
    }
    assert!(met > cases(8, 100), "{met} were in time");
}

/// Without a thread that waits for signals, the work itself notices them.
#[test]
fn a_signal_without_a_thread_for_it_ends_the_work() -> Tested {
    if !Command::new("id").arg("-u").output().is_ok_and(|ran| ran.stdout == b"0\n")
        || Command::new("setpriv").arg("--version").output().is_err()
    {
        return ignored("only root, with setpriv, can start a process of a user without other processes");
    }
    let user = 300_000 + std::process::id() % 100_000;
    let (folder, program) = open_folder();
    for (n, signal) in ["INT", "TERM", "HUP"].into_iter().enumerate() {
        let out = folder.path().join("out");
        let mut child = Command::new("setpriv")
            .args(["--reuid", &(user + n as u32).to_string(), "--clear-groups", "bash", "-c", "ulimit -u 0; exec \"$0\" \"$@\""])
            .arg(&program)
            .args(["report", "-o", "out", "dump"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while drafts(folder.path()).is_empty() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        assert!(Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!((status.code(), drafts(folder.path()), out.exists()), (Some(130), vec![], false), "SIG{signal}");
    }
    Ok(())
}

/// Several processes write to one lake, one folder or one cache: each ends as if it were the only one.
#[test]
fn concurrent_processes_do_not_interfere() {
    const AT_ONCE: usize = 4;
    let lines = [
        "fleet --workers 1 DUMP -o out",
        "fleet --force DUMP -o out",
        "export csv --force --tables types DUMP -o out",
        "stat --cache out DUMP",
    ];
    for attempt in 0..cases(8, 80) {
        let line = lines[attempt % lines.len()];
        let folder = tempfile::tempdir().unwrap();
        let words = || line.split(' ').map(|word| if word == "DUMP" { own_dump() } else { word.into() });
        let start = || {
            let mut command = Command::new(GCDUMP);
            command.args(words()).current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let all: Vec<_> = (0..AT_ONCE).map(|_| start()).collect();
        for child in all {
            let ran = child.wait_with_output().unwrap();
            assert_eq!(ran.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
        }
        assert!(drafts(folder.path()).is_empty(), "{line}: {:?}", drafts(folder.path()));
        if line.starts_with("fleet") {
            for table in ["dumps", "types", "segments", "suspects"] {
                let parts = fs::read_dir(folder.path().join("out").join(table)).unwrap().map(|part| part.unwrap().path());
                assert_eq!(parts.map(|part| fs::read_dir(part).unwrap().count()).collect::<Vec<_>>(), [1], "{line}: {table}");
            }
        }
    }
}

/// Where a file is expected, there is a pipe without a writer, a socket, a device or a folder.
#[test]
fn files_that_are_not_regular_do_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let _listens = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    fs::copy(own_unpacked(), at("dump")).unwrap();
    let lines = [
        "stat HERE",
        "trim HERE out",
        "index HERE -o out",
        "diff HERE dump",
        "diff dump HERE",
        "track dump HERE",
        "fleet HERE -o out",
        "export csv HERE -o out",
        "report dump HERE -o out",
        "stat --overlay HERE dump",
        "stat --index HERE dump",
        "index --check --index HERE dump",
        "diff --budget HERE dump dump",
        "shell -c stat HERE",
        "mcp HERE",
        "retained HERE.gcdump",
    ];
    for name in ["pipe", "socket", "/dev/zero", "empty"] {
        for line in lines {
            let words = line.split(' ').map(|word| word.replace("HERE.gcdump", name).replace("HERE", name));
            let mut command = Command::new("timeout");
            let ran = command.arg("60").arg(GCDUMP).args(words).current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
            let err = String::from_utf8_lossy(&ran.stderr);
            let expected = ran.status.code().is_some_and(|code| matches!(code, 1..=3 | 5));
            assert!(expected && !err.contains("panicked"), "{line} with {name}: {:?} {err}", ran.status);
            assert!(drafts(folder.path()).is_empty(), "{line} with {name}");
            clear(&at("out"));
        }
    }
}
