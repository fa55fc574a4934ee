//! The shell: scripts answer as the command line does, and sessions run in a pseudo-terminal.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use gcdump::cli::{Exit, SHELL};
use gcdump::internals::base::Cancel;
use gcdump::internals::session::{Dump, OpenOptions};

use crate::common::commands::{self, examples, filled, words};
use crate::common::{Ran, ask, captured, cases, own_unpacked, parsed, run, sample};

const GCDUMP: &str = env!("CARGO_BIN_EXE_gcdump");

/// Runs commands in a shell on `dump`.
fn shell(commands: &str, dump: &str) -> Ran {
    run(&["shell", "-c", commands, "--no-local-files", dump])
}

fn own() -> String {
    own_unpacked().to_str().unwrap().into()
}

fn leak(which: &str) -> String {
    format!("{}/dumps/corpus/net10-wks-leak-heap.{which}.dmp.zst", env!("CARGO_MANIFEST_DIR"))
}

/// A command as typed in the shell and in the system's shell.
struct Both {
    shell: String,
    line: Vec<String>,
    dump: String,
}

/// Returns every example of every command, in both forms. `out`: a file to write.
fn both(out: &str) -> Vec<Both> {
    let first =
        |command: &[&str], list: &str| -> String { ask(&own_unpacked(), command).1["data"][list][0]["address"].as_str().unwrap().into() };
    let object = first(&["objects", "--count", "1", "--type", "Lab.Everything"], "objects");
    let handle = first(&["handles", "--type", "strong"], "handles");
    let value = |word: &str| match word {
        "ADDR" => Some(object.clone()),
        "HANDLE" => Some(handle.clone()),
        "BEFORE" => Some(leak("before")),
        "OUT" => Some(out.to_string()),
        _ => None,
    };
    let quote = |word: &String| format!("'{word}'");
    let make = |example: Vec<String>| {
        let compares = example.iter().any(|w| w == "BEFORE");
        let dump = if compares { leak("after") } else { own() };
        let line = filled(&example, |word| if matches!(word, "DUMP" | "AFTER") { Some(dump.clone()) } else { value(word) });
        // The dump is left out in the shell; of several dumps, a dot is the open one.
        let several = example.iter().filter(|w| *w == "AFTER").count() > 1;
        let typed: Vec<String> = filled(&example, &value)
            .iter()
            .filter(|w| !(*w == "DUMP" || (*w == "AFTER" && !several)))
            .map(|w| if w == "AFTER" { ".".into() } else { quote(w) })
            .collect();
        Both { shell: typed.join(" "), line, dump }
    };
    examples().map(|(_, example)| make(example)).collect()
}

#[test]
fn every_command_answers_in_a_shell_as_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.dmp");
    let all = both(out.to_str().unwrap());
    assert!(all.len() > 60);
    let mut scripts: Vec<(String, String, String)> = Vec::new();
    for Both { shell: typed, mut line, dump } in sample(all, 14) {
        line.push("--no-local-files".into());
        commands::remove_out(&out);
        let wanted = run(&line);
        commands::remove_out(&out);
        let got = shell(&typed, &dump);
        assert_eq!((got.exit, &got.out, &got.err), (wanted.exit, &wanted.out, &wanted.err), "{typed}");
        if !["'trim'", "'export'", "'fleet'", "'index'"].iter().any(|writes| typed.starts_with(writes)) {
            match scripts.iter_mut().find(|(d, ..)| *d == dump) {
                Some((_, lines, answers)) => {
                    lines.push_str(&format!("{typed}\n"));
                    answers.push_str(&wanted.out);
                }
                None => scripts.push((dump, format!("{typed}\n"), wanted.out)),
            }
        }
    }
    // All commands run in one shell, whose caches fill meanwhile: from standard input that is not a terminal, and from a file.
    for (dump, lines, answers) in scripts {
        let script = folder.path().join("script");
        fs::write(&script, &lines).unwrap();
        for named in [false, true] {
            let mut command = Command::new(GCDUMP);
            command.args(["shell", "--no-local-files", &dump]);
            if named {
                command.arg("--script").arg(&script).stdin(Stdio::null());
            } else {
                command.stdin(File::open(&script).unwrap());
            }
            let ran = command.output().unwrap();
            assert!(String::from_utf8(ran.stdout).unwrap() == answers, "{dump} {named}");
        }
    }
}

#[test]
fn an_address_means_the_object_and_hints_run_as_they_are_printed() {
    let (_, dogs) = ask(&own_unpacked(), &["objects", "--type", "Lab.Dog", "--top", "1"]);
    let dog = dogs["data"]["objects"][0]["address"].as_str().unwrap().to_string();
    let wanted = run(&["object", &dog, "--no-local-files", &own()]).out;
    let list = run(&["objects", "--type", "Lab.Dog", "--top", "1", "--no-local-files", &own()]).out;
    for line in [dog.clone(), dog.trim_start_matches("0x").to_string(), format!("gcdump object {dog}")] {
        assert_eq!(shell(&line, &own()).out, wanted, "{line}");
    }
    let ran = shell(&format!("objects --type Lab.Dog --top 1; $1; object {dog}; $_"), &own());
    assert_eq!(ran.out, format!("{list}{wanted}{wanted}{wanted}"), "{}", ran.err);
    let types = shell("stat --type Lab.Dog; $1", &own());
    assert!(types.exit == Exit::Ok && types.out.contains("100 objects, 4,800 bytes"), "{} {}", types.out, types.err);
    let nothing = shell("$1", &own());
    assert!(nothing.exit == Exit::Usage && nothing.err.contains("no table was printed"), "{}", nothing.err);
}

#[test]
fn the_examples_of_the_shell_work() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("commands");
    fs::write(&file, "stat --top 1 # the largest\n\nnope\nstat --top 2\n").unwrap();
    for example in SHELL.examples {
        let line = filled(&words(example.line), |word| match word {
            "DUMP" => Some(own()),
            "FILE" => Some(file.to_str().unwrap().into()),
            _ => None,
        });
        let ran = Command::new(GCDUMP).args(line).arg("--no-local-files").stdin(Stdio::null()).output().unwrap();
        let (out, err) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
        match ran.status.code() {
            Some(0) if example.line.contains("-c") => assert!(out.contains("objects are reachable from roots"), "{out}"),
            Some(0) => assert_eq!(out, ""),
            Some(2) if example.line.contains("-e") => {
                assert!(out.matches("METHOD TABLE").count() == 1 && err.contains("no command 'nope'"))
            }
            code => panic!("{}: {code:?} {err}", example.line),
        }
    }
}

#[test]
fn names_of_sos_and_rows_and_the_last_object() {
    let dump = own();
    let plain = |args: &[&str]| run(&[args, &["--no-local-files", &dump]].concat()).out;
    assert_eq!(shell("dumpheap -stat -type Lab", &dump).out, plain(&["dumpheap", "-stat", "-type", "Lab"]));
    // A row of types, and a row of objects.
    let types = plain(&["stat", "--type", "Lab.Dog", "--top", "1"]);
    let paths = plain(&["path", "--type", "Lab.Dog"]);
    assert_eq!(shell("stat --type Lab.Dog --top 1; gcroot $1", &dump).out, types + &paths);
    let objects = plain(&["objects", "--type", "Lab.Dog", "--count", "2"]);
    let second = objects.lines().nth(2).unwrap().split_whitespace().next().unwrap();
    let one = plain(&["object", second]);
    assert_eq!(shell("objects --type Lab.Dog --count 2; do $2; object $_", &dump).out, format!("{objects}{one}{one}"));
    // A field of an object: the third field of a dog is its friend. Its age is not a reference.
    let friend = |text: &str| text.lines().find(|l| l.contains("Friend")).unwrap().split_whitespace().nth(2).unwrap().to_string();
    let expected = one.clone() + &plain(&["object", &friend(&one)]);
    assert_eq!(shell(&format!("object {second}; object $3"), &dump).out, expected);
    let ran = shell(&format!("object {second}; object $2"), &dump);
    assert!(ran.out == one && ran.err.contains("$2: that row has no address"), "{}{}", ran.out, ran.err);
    // A row with a slot and an object is about the object.
    let handles = plain(&["handles", "--type", "strong", "--top", "1"]);
    let object = handles.lines().nth(1).unwrap().split_whitespace().filter(|word| word.starts_with("0x")).nth(1).unwrap().to_string();
    assert_eq!(shell("handles --type strong --top 1; object $1", &dump).out, handles + &plain(&["object", &object]));
    // Several objects by name, flags of the links that SOS prints, and prefixes.
    let two = ["Lab.Program.Keep", "Lab.Program.Truth"];
    assert_eq!(shell(&format!("object {}", two.join(" ")), &dump).out, plain(&["object", two[0], two[1]]));
    let ran = shell(&format!("object {second}; path $_ {}", two[1]), &dump);
    assert_eq!(ran.out, one.clone() + &plain(&["path", second, two[1]]), "{}", ran.err);
    for line in ["sos dumpheap /d -stat -type Lab", "~*e !dumpheap -stat -type Lab"] {
        assert_eq!(shell(line, &dump).out, plain(&["dumpheap", "-stat", "-type", "Lab"]), "{line}");
    }
    assert_eq!(shell("!help", &dump).out, shell("help", &dump).out);
    // In single quotes, and without a row.
    let ran = shell("object '$1'; object $1; path $_", &dump);
    assert_eq!((ran.exit, ran.out.as_str()), (Exit::Usage, ""));
    assert!(ran.err.contains("'$1' is not an address") || ran.err.contains("'$1'"), "{}", ran.err);
    assert!(ran.err.contains("$1: no table was printed") && ran.err.contains("$_: no object was looked at"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 3, "{}", ran.err);
}

#[test]
fn next_continues_where_the_answer_ended() {
    let dump = own();
    let rows = |text: &str| -> Vec<String> { text.lines().filter(|l| l.trim_start().starts_with("0x")).map(str::to_string).collect() };
    let columns =
        |rows: Vec<String>| -> Vec<Vec<String>> { rows.iter().map(|r| r.split_whitespace().map(str::to_string).collect()).collect() };
    for (command, all, one) in
        [("stat", "--top 9", "--top 3"), ("retained", "--top 9", "--top 3"), ("objects --type Lab.Dog", "--count 9", "--count 3")]
    {
        let mut pages = rows(&shell(&format!("{command} {one}; next; next"), &dump).out);
        let whole = rows(&shell(&format!("{command} {all}"), &dump).out);
        if command == "retained" {
            // Both tables continue.
            let part = |from: usize| (0..3).flat_map(move |page| (0..3).map(move |i| page * 6 + from + i));
            pages = part(0).chain(part(3)).map(|i| pages[i].clone()).collect();
        }
        assert_eq!(columns(pages), columns(whole), "{command}");
    }
    let ran = shell("stat --top 2; next; object $1 | cat; next > /dev/null", &dump);
    assert_eq!(rows(&ran.out).len(), 4, "{}{}", ran.out, ran.err);
    let one = "objects --type Lab.Dog --count 3; object $1; next";
    for (commands, says) in
        [("next", "nothing was listed"), ("heap; next", "lists all"), ("stat; next 3", "takes no arguments"), (one, "no more rows")]
    {
        let ran = shell(commands, &dump);
        assert!(ran.exit == Exit::Usage && ran.err.contains(says), "{commands}: {}", ran.err);
    }
}

#[test]
fn errors_are_one_line_and_the_last_one_is_the_exit_code() {
    let dump = own();
    for (commands, exit, says) in [
        ("stats", Exit::Usage, "did you mean 'stat'?"),
        ("stat --tup 3", Exit::Usage, "--top"),
        ("stat --by nothing", Exit::Usage, "nothing"),
        ("object 0x10", Exit::Negative, "0x10"),
        ("stat --type No.Such", Exit::Negative, ""),
        ("stat 'a", Exit::Usage, "quote is left open"),
        ("stat --threads 2", Exit::Usage, "--threads"),
        ("stat other.dmp", Exit::Usage, "this shell has"),
        ("diff /no/such.dmp", Exit::BadDump, "/no/such.dmp"),
        ("shell", Exit::Usage, "no command 'shell'"),
        ("stat | exit 3", Exit::Negative, ""),
        ("stat > /no/such/folder/file", Exit::NotWritten, "cannot write"),
    ] {
        let ran = shell(commands, &dump);
        assert_eq!(ran.exit, exit, "{commands}: {}", ran.err);
        assert!(ran.err.contains(says) && ran.err.lines().count() <= 1, "{commands}: {}", ran.err);
        // Later commands run, unless the shell is asked to stop, and do not change the exit code.
        let more = shell(&format!("{commands}\nheap"), &dump);
        assert_eq!((more.exit, more.out.contains("gen0")), (exit, true), "{commands}");
        let ends = run(&["shell", "-e", "-c", &format!("{commands}\nheap"), "--no-local-files", &dump]);
        assert_eq!((ends.exit, ends.out.contains("gen0")), (exit, false), "{commands}");
    }
    let ran = shell("object 0x10; nope; heap; quit; nope; object 0x10", &dump);
    assert_eq!((ran.exit, ran.err.lines().count()), (Exit::Usage, 2));
    let ran = run(&["shell", "-o", "x", "-c", "stat", &dump]);
    assert_eq!(ran.exit, Exit::Usage, "{}", ran.err);
}

#[test]
fn answers_go_to_files_and_programs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a b");
    let path = file.to_str().unwrap();
    let dump = own();
    let heap = shell("heap", &dump).out;
    let ran = shell(&format!("heap > '{path}'; heap >> '{path}'; stat --nope > '{path}'"), &dump);
    assert_eq!((ran.out.as_str(), fs::read_to_string(&file).unwrap()), ("", heap.repeat(2)));
    let ran = shell(&format!("heap -o '{path}'"), &dump);
    assert_eq!((ran.out.as_str(), fs::read_to_string(&file).unwrap()), ("", heap.clone()));
    // A dump is never overwritten.
    let copy = folder.path().join("copy.dmp");
    fs::copy(own_unpacked(), &copy).unwrap();
    for to in [">", ">>"] {
        let ran = shell(&format!("heap {to} {}", copy.display()), &dump);
        assert!(ran.exit == Exit::Usage && ran.err.contains("may be a dump"), "{}", ran.err);
    }
    // The output of programs does not go to the test, so a file shows it.
    let ran = shell(&format!("heap | grep gen2 | cat > '{path}'; stat --top 0 | true; heap"), &dump);
    assert_eq!((ran.exit, ran.out.as_str(), ran.err.as_str()), (Exit::Ok, heap.as_str(), ""));
    let wanted: String = heap.lines().filter(|l| l.contains("gen2")).map(|l| format!("{l}\n")).collect();
    assert_eq!(fs::read_to_string(&file).unwrap(), wanted);
}

#[test]
fn options_of_the_shell_apply_unless_a_command_has_its_own() {
    let dump = own();
    let ran = run(&["shell", "--json", "--no-local-files", "-c", "heap; heap --format csv", &dump]);
    let csv = run(&["heap", "--format", "csv", "--no-local-files", &dump]).out;
    let json = run(&["heap", "--json", "--no-local-files", &dump]).out;
    assert_eq!(ran.out, json + &csv);
    // One command opens the dump with other options. It runs in a separate process, because all allocations of a process are counted, also
    // those of other tests.
    let lines = "heap --max-memory 1M; retained --max-memory 1K; heap";
    let ran = Command::new(GCDUMP).args(["shell", "-c", lines, "--no-local-files", &dump]).output().unwrap();
    let [out, err] = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(ran.status.code(), Some(Exit::Usage.code().into()), "{err}");
    assert!(err.contains("--max-memory") && out.matches("gen2").count() >= 2, "{out}{err}");
    let ran = run(&["shell", "--timeout", "1h", "--no-local-files", "-c", "heap", &dump]);
    assert_eq!(ran.exit, Exit::Ok);
}

/// A command that is cancelled at any time leaves no half-made data: later answers equal those from a newly opened dump.
#[test]
fn cancelled_commands_leave_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.dmp");
    let all: Vec<Both> = both(out.to_str().unwrap()).into_iter().filter(|b| !b.shell.contains("out.dmp") && b.dump == own()).collect();
    let open = || Dump::open(own(), &OpenOptions::default()).unwrap();
    let answer = |line: &[String], dump: &Dump| {
        let ran = captured(|streams| parsed(line).run_on(std::slice::from_ref(dump), streams));
        (ran.exit, ran.out)
    };
    let mut cut = 0;
    for (i, both) in sample(all.iter().enumerate(), 16) {
        let line: Vec<String> = both.line.iter().cloned().chain(["--no-local-files".into()]).collect();
        let wanted = answer(&line, &open());
        let dump = open();
        for round in 0..3 {
            let cancel = Cancel::default();
            let stop = cancel.clone();
            let stopper = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_micros(50 << (2 * round + i as u64 % 5)));
                stop.cancel();
            });
            match cancel.run(|| answer(&line, &dump)) {
                Ok(got) => assert!(got == wanted, "{line:?}"),
                Err(_) => cut += 1,
            }
            stopper.join().unwrap();
        }
        assert!(answer(&line, &dump) == wanted, "{line:?}");
    }
    assert!(cut > cases(1, 10), "only {cut} commands were cancelled");
}

#[test]
fn other_dumps_are_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("before.dmp");
    zstd::stream::copy_decode(File::open(leak("before")).unwrap(), File::create(&other).unwrap()).unwrap();
    let (other, after) = (other.to_str().unwrap(), leak("after"));
    let wanted = run(&["diff", "--no-local-files", other, &after]).out;
    let back = run(&["diff", "--no-local-files", &after, other]);
    // The file is missing when it is needed again.
    let ran = shell(&format!("diff {other}; heap | rm {other}; diff {other}; diff . {other}"), &after);
    assert!(Path::new(other).symlink_metadata().is_err());
    assert_eq!((ran.out, ran.err.as_str()), (format!("{wanted}{wanted}{}", back.out), &*back.err));
}

#[cfg(unix)]
mod terminal {
    use rexpect::process::{Signal, WaitStatus};
    use rexpect::reader::Options;
    use rexpect::session::{PtySession, spawn_with_options};

    use super::*;

    const PROMPT: &str = "gcdump> ";

    /// Starts a shell in a pseudo-terminal, with its own home folder.
    fn session(home: &Path, args: &[&str]) -> PtySession {
        let mut command = Command::new(GCDUMP);
        command.args(args).arg("--no-local-files").env("TERM", "xterm").env("HOME", home).env("XDG_STATE_HOME", home);
        let options = Options::new().timeout_ms(Some(60_000)).strip_ansi_escape_codes(true);
        let mut session = spawn_with_options(command, options).unwrap();
        session.exp_string(PROMPT).unwrap();
        session
    }

    /// Returns the answer to a line, without the echo.
    fn answer(session: &mut PtySession, line: &str) -> String {
        session.send_line(line).unwrap();
        let text = session.exp_string(PROMPT).unwrap();
        text.replace('\r', "").split_once('\n').map(|(_, rest)| rest.to_string()).unwrap_or(text)
    }

    #[test]
    fn a_session() {
        let home = tempfile::tempdir().unwrap();
        let dump = own();
        let mut s = session(home.path(), &["shell", &dump]);
        assert!(answer(&mut s, "dumpheap -stat --top 2").contains("System.String"));
        assert!(answer(&mut s, "next").contains("Lab.Node"));
        assert!(answer(&mut s, "path $1 | head -1").contains("objects are reachable from roots"));
        assert!(answer(&mut s, "objects --type Lab.Dog --count 3").contains("rows 1 to 3 of 100 objects"));
        assert!(answer(&mut s, "object $2").contains("dog1"));
        assert!(answer(&mut s, "path $_").contains("Lab.Program.Keep"));
        assert!(answer(&mut s, "stat | grep -c Lab").trim().parse::<u32>().unwrap() > 2);
        let file = home.path().join("heap.txt");
        assert_eq!(answer(&mut s, &format!("heap > {}", file.display())).trim(), "");
        assert!(fs::read_to_string(&file).unwrap().contains("gen2"));
        assert!(answer(&mut s, "hepl").contains("did you mean 'help'?"));
        assert!(answer(&mut s, "help").contains("What holds what"));
        assert!(answer(&mut s, "help stat").contains("Usage: gcdump stat"));
        s.send_line("exit").unwrap();
        s.exp_eof().unwrap();
    }

    #[test]
    fn rows_are_shown_with_their_labels() {
        let home = tempfile::tempdir().unwrap();
        let dump = own();
        let mut s = session(home.path(), &["shell", &dump]);
        // The labels of rows, and their first addresses.
        let rows = |text: &str| -> Vec<(String, String)> {
            let words = text.lines().map(|l| l.split_whitespace().map(str::to_string).collect::<Vec<_>>());
            words.filter(|w| w.first().is_some_and(|w| w.starts_with('$'))).map(|w| (w[0].clone(), w[1].clone())).collect()
        };
        let names = |rows: &[(String, String)]| rows.iter().map(|r| r.0.clone()).collect::<Vec<_>>();
        let mut first = Vec::new();
        for row in [2, 4] {
            first = rows(&answer(&mut s, "objects --type Lab.Dog --count 2"));
            assert_eq!(names(&first), ["$1", "$2"]);
            let more = rows(&answer(&mut s, "next"));
            assert_eq!(names(&more), ["$3", "$4"]);
            // Fields of an object are rows, too.
            let at = &[&first[..], &more].concat()[row - 1].1;
            let file = home.path().join(row.to_string());
            answer(&mut s, &format!("object ${row} > {}", file.display()));
            assert!(fs::read_to_string(&file).unwrap().lines().next().unwrap().ends_with(at.as_str()), "{row}");
        }
        // There are several tables, and pages of them.
        let suspects = rows(&answer(&mut s, "retained --top 3"));
        assert_eq!(names(&suspects), ["$1", "$2", "$3", "$4", "$5", "$6"]);
        let more = rows(&answer(&mut s, "next"));
        assert_eq!(names(&more), ["$7", "$8", "$9", "$10", "$11", "$12"]);
        // In lines, labels come after their addresses.
        let path = answer(&mut s, &format!("path {}", first[0].1));
        let named: Vec<&str> = path.lines().filter(|l| l.trim_end().ends_with(" $1")).collect();
        assert!(matches!(named.as_slice(), [one] if one.contains("0x")), "{path}");
        // Pipes and files, which programs read, have no labels, and neither do titles.
        assert!(rows(&answer(&mut s, "objects --type Lab.Dog --count 2 | cat")).is_empty());
        let types = answer(&mut s, "stat --top 1");
        assert!(types.lines().any(|l| l.contains("BYTES") && !l.contains('$')) && names(&rows(&types)) == ["$1"], "{types}");
        s.send_control('d').unwrap();
        s.exp_eof().unwrap();
    }

    #[test]
    fn words_are_completed() {
        let home = tempfile::tempdir().unwrap();
        let dump = own();
        let mut s = session(home.path(), &[&dump, "--shell"]);
        for (typed, becomes) in [
            ("retai\t --susp\t", "retained --suspects"),
            ("stat --type Lab.Everyt\t", "stat --type Lab.Everything"),
            ("handles --type pinn\t", "handles --type pinned"),
            ("dumphea\t", "dumpheap"),
        ] {
            s.send(typed).unwrap();
            s.flush().unwrap();
            s.exp_string(becomes).unwrap();
            // Ctrl-C discards the line.
            s.send_control('c').unwrap();
            s.exp_string(PROMPT).unwrap();
        }
        // A printed address is completed.
        let listed = answer(&mut s, "objects --type Lab.Everything --count 1");
        let address = listed.lines().find_map(|l| l.split_whitespace().find(|w| w.starts_with("0x"))).unwrap().to_string();
        s.send(&format!("object {}\t", &address[..8])).unwrap();
        s.flush().unwrap();
        s.exp_string(&format!("object {address}")).unwrap();
        assert!(answer(&mut s, "").contains("Lab.Everything"));
        s.send_control('d').unwrap();
        s.exp_eof().unwrap();
    }

    #[test]
    fn ctrl_c_stops_a_command_and_not_the_shell() {
        let home = tempfile::tempdir().unwrap();
        let dump = own();
        let mut s = session(home.path(), &["shell", &dump]);
        s.send_line("heap | (cat >/dev/null; echo waits; sleep 600)").unwrap();
        s.exp_string("waits\r\n").unwrap();
        s.send_control('c').unwrap();
        s.exp_string(PROMPT).unwrap();
        assert!(answer(&mut s, "heap").contains("gen2"));
        // A late Ctrl-C, when the command has ended and a line is edited.
        s.process_mut().signal(Signal::SIGINT).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        s.send_line("heap").unwrap();
        s.exp_string("gen2").unwrap();
        s.exp_string(PROMPT).unwrap();
        s.send_control('d').unwrap();
        s.exp_eof().unwrap();
    }

    #[test]
    fn other_signals_end_it() {
        let home = tempfile::tempdir().unwrap();
        let dump = own();
        let mut s = session(home.path(), &["shell", &dump]);
        assert!(answer(&mut s, "heap").contains("gen2"));
        let status = s.process_mut().kill(Signal::SIGTERM).unwrap();
        assert!(matches!(status, WaitStatus::Exited(_, 130)), "{status:?}");
    }

    #[test]
    fn a_pager_takes_interrupts_and_no_other_signals() {
        let home = tempfile::tempdir().unwrap();
        let dump = own();
        let mut command = Command::new("sh");
        let line = format!("stty rows 24 cols 80; exec {GCDUMP} stat --top 0 --pager=\"trap '' INT; echo pages; exec sleep 600\" {dump}");
        command.args(["-c", &line]).env("TERM", "xterm").env("HOME", home.path());
        let mut s = spawn_with_options(command, Options::new().timeout_ms(Some(60_000))).unwrap();
        s.exp_string("pages\r\n").unwrap();
        s.send_control('c').unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert!(matches!(s.process().status(), Some(WaitStatus::StillAlive)));
        let status = s.process_mut().kill(Signal::SIGTERM).unwrap();
        assert!(matches!(status, WaitStatus::Exited(_, 130)), "{status:?}");
    }

    #[test]
    fn lines_are_in_the_history_of_the_next_session() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let dump = own();
        let mut s = session(home.path(), &["shell", &dump]);
        answer(&mut s, "heap | head -1");
        answer(&mut s, " oom");
        s.send_line("q").unwrap();
        s.exp_eof().unwrap();
        let file = home.path().join("gcdump/history");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&file).unwrap(), "heap | head -1\nq\n");
        let mut s = session(home.path(), &["shell", &dump]);
        // Two presses of the up key.
        s.send("\x1b[A\x1b[A").unwrap();
        s.flush().unwrap();
        s.exp_string("heap | head -1").unwrap();
        assert!(answer(&mut s, "").contains("GENERATION"));
        s.send_control('d').unwrap();
        s.exp_eof().unwrap();
    }

    /// Makes a heap with two million additional small objects.
    fn large() -> Vec<u8> {
        crate::attacks::Heap::of("net10-wks-basics-heap").with(|heap, _| {
            let (_, table) = heap.object("System.Object");
            [table, 0, 0].map(u64::to_le_bytes).concat().repeat(2_000_000)
        })
    }

    #[test]
    fn a_large_graph_is_left_as_an_index() {
        use std::os::unix::fs::PermissionsExt;
        const SAID: &str = "for later commands";
        let home = tempfile::tempdir().unwrap();
        let dump = home.path().join("large.dmp");
        fs::write(&dump, large()).unwrap();
        let index = home.path().join("large.dmp.gcindex");
        let ends = |lines: &[&str], more: &[&str]| {
            let home = home.path().join("state");
            let mut command = Command::new(GCDUMP);
            command.arg("shell").args(more).arg(&dump).env("TERM", "xterm").env("XDG_STATE_HOME", &home);
            let options = Options::new().timeout_ms(Some(120_000)).strip_ansi_escape_codes(true);
            let mut s = spawn_with_options(command, options).unwrap();
            s.exp_string(PROMPT).unwrap();
            let answers: Vec<String> = lines.iter().map(|line| answer(&mut s, line)).collect();
            s.send_control('d').unwrap();
            (answers, s.exp_eof().unwrap())
        };
        // No index is written for commands without a graph, if it is not wanted, or in a folder to which others can write.
        for (lines, more) in
            [(["stat --top 1"], &[][..]), (["retained --top 1"], &["--index", "none"]), (["retained --top 1"], &["--no-local-files"])]
        {
            let (_, end) = ends(&lines, more);
            assert!(!end.contains(SAID) && !index.exists(), "{lines:?} {more:?}: {end}");
        }
        let (first, end) = ends(&["retained --top 1"], &[]);
        assert!(end.contains(SAID), "{end}");
        let meta = index.metadata().unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        let (second, end) = ends(&["retained --top 1"], &[]);
        assert!(first == second && !end.contains(SAID), "{end}");
        assert_eq!(index.metadata().unwrap().modified().unwrap(), meta.modified().unwrap());
        // A file that is not an index is not replaced.
        fs::write(&index, "no index").unwrap();
        let (_, end) = ends(&["retained --top 1"], &[]);
        assert!(!end.contains(SAID) && fs::read_to_string(&index).unwrap() == "no index", "{end}");
        fs::remove_file(&index).unwrap();
        let scripted = run(&["shell", "-c", "retained --top 1", dump.to_str().unwrap()]);
        assert!(scripted.out.contains("RETAINED") && !index.exists(), "a script leaves nothing");
    }
}
