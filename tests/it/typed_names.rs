//! Names from a dump and from folders, completed in real shells: text, Tab and Enter are typed in a pseudo-terminal, and the resulting command
//! is checked.

#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use gcdump::cli::{completed_in_bash, completed_in_powershell, completed_in_shell, words_of_bash, words_of_shell};
use memchr::memmem;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rexpect::ReadUntil;
use rexpect::reader::Options;
use rexpect::session::{PtySession, spawn_with_options};

use crate::common::{own_unpacked, run, sample};
use crate::harness::{Tested, ignored};

const GCDUMP: &str = env!("CARGO_BIN_EXE_gcdump");

/// Ends of names. A shell that interprets one of them makes a file, `PWNED` or another one.
const ENDS: &[&str] = &[
    ";touch PWNED;",
    "$(touch PWNED)",
    "`touch PWNED`",
    "|touch PWNED;",
    "&touch PWNED;",
    "&&touch PWNED",
    "||touch PWNED",
    "';touch PWNED;'",
    "\";touch PWNED;\"",
    "\\';touch PWNED;'",
    "\\\";touch PWNED;\"",
    "'|touch PWNED;'",
    "'$(touch PWNED)'",
    "\"$(touch PWNED)\"",
    "\ntouch PWNED\n",
    "\r;touch PWNED\r",
    "\t;touch PWNED",
    "\u{1b}[2J\u{7}",
    "\u{9b}2J",
    "\u{202e};touch PWNED",
    "\u{200b}x",
    "\u{2028}touch PWNED",
    "\u{e0041}x",
    ">PWNED",
    ">>PWNED",
    "<PWNED",
    "<(touch PWNED)",
    "(touch PWNED)",
    "{a,b}",
    "*?[x]",
    "!touch",
    "!!;touch PWNED",
    "#;touch PWNED",
    "^x^;touch PWNED^",
    " ;touch PWNED #",
    " --output=PWNED",
    "=$(touch PWNED)",
    ":;touch PWNED",
    "%1;touch PWNED",
    "~/x",
    "\\",
    "'",
    "\"",
    "é;touch PWNED",
    "a b  ",
    "$PATH",
    "`1[]",
    ".Plain",
];

/// Whether a name is not offered to shells.
fn is_left_out(name: &str) -> bool {
    let hidden = |c: char| c.is_control() || matches!(c, '\u{200b}' | '\u{2028}' | '\u{202e}' | '\u{e0041}');
    name.contains(hidden)
}

/// A name, and the part of it that is typed.
#[derive(Clone, Debug)]
struct Named {
    typed: String,
    name: String,
}

/// A dump in a separate folder, with a type for each end in `ends`.
struct Planted {
    folder: tempfile::TempDir,
    names: Vec<Named>,
}

/// Names of the types in a dump that match.
fn names_of(dump: &Path, pattern: &str) -> BTreeSet<String> {
    let listed = run(&["type", pattern, "--json", "--no-local-files", dump.to_str().unwrap()]).json();
    listed["data"]["types"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_string()).collect()
}

impl Planted {
    /// Makes a dump with types of the runtime.
    fn new(ends: &[&str]) -> Planted {
        Planted::among(&names_of(&own_unpacked(), "*"), ends)
    }

    /// Makes a dump in which names of some of `types` are replaced.
    fn among(types: &BTreeSet<String>, ends: &[&str]) -> Planted {
        let folder = tempfile::tempdir().unwrap();
        let own = own_unpacked();
        let mut bytes = fs::read(&own).unwrap();
        // Names that only one type has, that are long enough, and that occur once in the file.
        let mut free = types.iter().filter_map(|name| {
            let (space, simple) = name.rsplit_once('.')?;
            let only = simple.len() >= 8 && simple.bytes().all(|b| b.is_ascii_alphabetic());
            let alone = only && types.iter().filter(|other| other.contains(simple)).count() == 1;
            let text = [b"\0", simple.as_bytes(), b"\0"].concat();
            let mut places = memmem::find_iter(&bytes, &text);
            let place = places.next().filter(|_| alone)?;
            places.next().is_none().then(|| (space.to_string(), place + 1, simple.len()))
        });
        let free: Vec<(String, usize, usize)> = free.by_ref().collect();
        // Some are names of references to types elsewhere, and are not changed.
        let mut marked = bytes.clone();
        free.iter().for_each(|(_, place, _)| marked[*place] = b'Q');
        fs::create_dir(folder.path().join("d")).unwrap();
        let dump = folder.path().join("d/h.dmp");
        fs::write(&dump, &marked).unwrap();
        let found = names_of(&dump, "*.Q*");
        let name =
            |(space, place, len): &(String, usize, usize)| format!("{space}.{}", String::from_utf8_lossy(&marked[*place..place + len]));
        let mut free: Vec<(String, usize, usize)> = free.into_iter().filter(|one| found.contains(&name(one))).collect();
        free.sort_by_key(|(.., len)| *len);
        let mut names = Vec::new();
        let mut longest_first: Vec<(usize, &&str)> = ends.iter().enumerate().collect();
        longest_first.sort_by_key(|(_, end)| std::cmp::Reverse(end.len()));
        for (i, end) in longest_first {
            let (space, place, len) = free.pop().expect("a type to rename");
            let typed = format!("Q{i:02}");
            let simple = format!("{typed}{end}");
            assert!(simple.len() <= len, "{simple:?} is too long");
            bytes[place..place + len].fill(0);
            bytes[place..place + simple.len()].copy_from_slice(simple.as_bytes());
            names.push(Named { typed: format!("{space}.{typed}"), name: format!("{space}.{simple}") });
        }
        fs::write(&dump, bytes).unwrap();
        let found = names_of(&dump, "*.Q*");
        for named in &names {
            assert!(found.contains(&named.name), "{named:?} is not in the dump");
        }
        Planted { folder, names }
    }

    fn dump_folder(&self) -> PathBuf {
        self.folder.path().join("d")
    }

    /// Files that something wrote beside the dump.
    fn written(&self) -> Vec<String> {
        let all = fs::read_dir(self.dump_folder()).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
        all.filter(|name| name != "h.dmp" && !name.starts_with("Q")).collect()
    }
}

/// A shell of the system in a pseudo-terminal, in which `gcdump` completes, but otherwise only records its arguments.
struct Shell {
    pty: PtySession,
    args: PathBuf,
}

const RAN: &str = "it ran";
const MORE: &str = "more?";

/// The command that starts each shell, and the one that loads completion.
const SHELLS: &[(&str, &str, &str)] = &[
    ("bash", "bash --norc --noprofile -i", "source <(gcdump completions bash)"),
    ("zsh", "zsh -f -i", "autoload -Uz compinit; compinit -u -D; source <(gcdump completions zsh)"),
    ("fish", "fish --no-config -i", "gcdump completions fish | source"),
];

fn is_installed(shell: &str) -> bool {
    Command::new(shell).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

impl Shell {
    fn start(shell: &str, planted: &Planted) -> Shell {
        let (_, line, load) = SHELLS.iter().find(|(name, ..)| *name == shell).unwrap();
        let root = planted.folder.path();
        let (bin, args) = (root.join("bin"), root.join("args"));
        fs::create_dir_all(&bin).unwrap();
        let wrapper = bin.join("gcdump");
        let script = format!(
            "#!/bin/sh\nif [ -n \"$GCDUMP_COMPLETE$COMPLETE\" ] || [ \"$1\" = completions ]; then exec {GCDUMP} \"$@\"; fi\n\
             for a in \"$@\"; do printf '%s\\000' \"$a\"; done > {0}.new\nmv {0}.new {0}\necho it 'ran'\n",
            args.display()
        );
        fs::write(&wrapper, script).unwrap();
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("stty rows 40 cols 300; exec {line}")).current_dir(planted.dump_folder());
        command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
        command.env("HOME", root).env("XDG_CONFIG_HOME", root).env("XDG_DATA_HOME", root).env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
        command.env("PS1", "$ ").env("PS2", MORE).env("PROMPT2", MORE).env_remove("GCDUMP_DUMP");
        let mut pty = spawn_with_options(command, Options::new().timeout_ms(Some(60_000))).unwrap();
        pty.send_line(load).unwrap();
        let mut shell = Shell { pty, args };
        shell.settles();
        shell
    }

    /// Waits until all lines were run.
    fn settles(&mut self) {
        self.pty.send_line("printf '%s%s\\n' sett led").unwrap();
        self.pty.exp_string("settled").unwrap();
    }

    /// Ends the shell: an interactive shell ignores SIGTERM, with which a pseudo-terminal is closed.
    fn ends(mut self) {
        self.pty.send_line("exit").unwrap();
        self.pty.exp_eof().unwrap();
    }

    /// Returns the arguments with which `gcdump` ran after `typed`, Tab and Enter; `None` if a quote is left open.
    fn runs(&mut self, typed: &str) -> Option<Vec<String>> {
        let _ = fs::remove_file(&self.args);
        self.pty.send(&format!("{typed}\t")).unwrap();
        self.pty.flush().unwrap();
        self.pty.send("\r").unwrap();
        self.pty.flush().unwrap();
        let (text, found) = self.pty.exp_any(vec![ReadUntil::String(RAN.into()), ReadUntil::String(MORE.into())]).unwrap();
        for moves in ["\u{9b}2J", "\u{202e}", "\u{200b}", "\u{2028}", "\u{e0041}", "2J\u{7}"] {
            assert!(!text.contains(moves), "{typed}: {text:?}");
        }
        if found == MORE {
            self.pty.send_control('c').unwrap();
            // Input right after this may be lost.
            std::thread::sleep(Duration::from_millis(300));
            self.pty.send_line("").unwrap();
            std::thread::sleep(Duration::from_millis(100));
            self.settles();
            return None;
        }
        let args = fs::read_to_string(&self.args).unwrap();
        Some(args.split_terminator('\0').map(str::to_string).collect())
    }
}

/// Each name is completed to itself as one word, or not at all, and nothing else happens.
fn names_are_completed_in(shell: &str) -> Tested {
    if !is_installed(shell) {
        return ignored(format!("{shell} is not installed"));
    }
    let planted = Planted::new(ENDS);
    let mut s = Shell::start(shell, &planted);
    let names = sample(planted.names.clone(), 5);
    let mut completed = 0;
    for Named { typed, name } in &names {
        let args = s.runs(&format!("gcdump stat h.dmp --type {typed}")).unwrap_or_else(|| panic!("{name:?} leaves a quote open"));
        assert_eq!(planted.written(), [""; 0], "{name:?}");
        let word = if is_left_out(name) { typed } else { name };
        assert_eq!(args, ["stat", "h.dmp", "--type", word], "{name:?}");
        completed += usize::from(word == name);
        // An option with '=' gives the same result.
        let args = s.runs(&format!("gcdump stat h.dmp --type={typed}")).unwrap();
        assert_eq!((args.len(), args[2].as_str()), (3, format!("--type={word}").as_str()), "{name:?}");
    }
    println!("{completed} of {} names completed", names.len());
    // In an open quote, zsh and fish quote as well; bash leaves out names that are not plain. fish has no prompt for an open quote.
    for quote in ["'", "\""] {
        for Named { typed, name } in sample(planted.names.clone(), 7) {
            if shell == "fish" && is_left_out(&name) {
                continue;
            }
            let ran = s.runs(&format!("gcdump stat h.dmp --type {quote}{typed}"));
            assert_eq!(planted.written(), [""; 0], "{quote} {name:?}");
            let plain = name.ends_with(".Plain");
            match ran {
                Some(args) => {
                    assert!(args == ["stat", "h.dmp", "--type", &name] && (shell != "bash" || plain), "{quote} {name:?}: {args:?}")
                }
                None => assert!(is_left_out(&name) || (shell == "bash" && !plain), "{quote} {name:?} is not completed"),
            }
        }
    }
    s.ends();
    Ok(())
}

#[test]
fn types_are_completed_in_bash() -> Tested {
    names_are_completed_in("bash")
}

#[test]
fn types_are_completed_in_zsh() -> Tested {
    names_are_completed_in("zsh")
}

#[test]
fn types_are_completed_in_fish() -> Tested {
    names_are_completed_in("fish")
}

#[test]
fn types_are_completed_in_powershell_and_nushell() -> Tested {
    // No name of a dump reaches nushell, since its script is fixed.
    let script = run(&["completions", "nushell"]).out;
    assert!(script.contains("export extern \"gcdump stat\"") && !script.contains("GCDUMP_COMPLETE"), "{script:.200}");
    let script = run(&["completions", "powershell"]).out;
    assert!(!script.contains("& {") && script.matches("Invoke-Expression").count() == 1, "what is typed is not evaluated: {script}");
    let planted = Planted::new(ENDS);
    let mut offered = 0;
    for Named { typed, name } in sample(planted.names.clone(), 5) {
        let ran = Command::new(GCDUMP)
            .arg("--")
            .current_dir(planted.dump_folder())
            .env("GCDUMP_COMPLETE", "powershell")
            .env("GCDUMP_COMPLETE_WORDS", format!("gcdump\nstat\nh.dmp\n--type\n{typed}"))
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        let out = String::from_utf8(ran.stdout).unwrap();
        let expected = if is_left_out(&name) { None } else { completed_in_powershell(&name, false) };
        assert_eq!(out, expected.iter().map(|word| format!("{word}\n")).collect::<String>(), "{name:?}");
        offered += usize::from(expected.is_some());
    }
    assert!(offered > 3);
    ignored("PowerShell and Nushell are not installed here: only their scripts and what they are passed was checked")
}

/// A script of an earlier edition, which does not quote candidates, gets none.
#[test]
fn scripts_of_earlier_editions_get_no_names() {
    let planted = Planted::new(&ENDS[..3]);
    let typed = &planted.names[0].typed;
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = Command::new(GCDUMP)
            .args(["--", "gcdump", "stat", "h.dmp", "--type", typed])
            .current_dir(planted.dump_folder())
            .envs([("COMPLETE", shell), ("_CLAP_COMPLETE_INDEX", "4"), ("_CLAP_IFS", "\n"), ("LC_ALL", "C.UTF-8")])
            .output()
            .unwrap();
        assert!(ran.status.success() && ran.stdout.is_empty() && ran.stderr.is_empty(), "{shell}: {ran:?}");
    }
}

/// Names of files and folders are untrusted, too.
#[test]
fn files_are_completed_in_shells() -> Tested {
    let planted = Planted::new(&[]);
    let mut names = Vec::new();
    for (i, end) in ENDS.iter().enumerate().filter(|(_, end)| !end.contains('/')) {
        let named = Named { typed: format!("Q{i:02}"), name: format!("Q{i:02}{end}") };
        fs::write(planted.dump_folder().join(&named.name), "").unwrap();
        names.push(named);
    }
    let folder = Named { typed: "Qd".into(), name: "Qd $(touch PWNED)/".into() };
    fs::create_dir(planted.dump_folder().join(&folder.name)).unwrap();
    names.push(folder);
    let shells: Vec<&str> = SHELLS.iter().map(|(shell, ..)| *shell).filter(|shell| is_installed(shell)).collect();
    for shell in &shells {
        let mut s = Shell::start(shell, &planted);
        for Named { typed, name } in sample(names.clone(), 9) {
            let args = s.runs(&format!("gcdump stat {typed}")).unwrap();
            assert_eq!(planted.written(), [""; 0], "{shell} {name:?}");
            let word = if is_left_out(&name) { &typed } else { &name };
            assert_eq!(args, ["stat", word], "{shell}");
        }
        s.ends();
    }
    if shells.len() < SHELLS.len() {
        return ignored(format!("only {} are installed", shells.join(", ")));
    }
    Ok(())
}

/// Starts the shell of gcdump itself.
fn own_shell(planted: &Planted) -> PtySession {
    let mut command = Command::new("sh");
    let line = format!("stty rows 40 cols 300; exec {GCDUMP} shell --no-local-files h.dmp");
    command.arg("-c").arg(line).current_dir(planted.dump_folder()).env("TERM", "xterm").env("XDG_STATE_HOME", planted.folder.path());
    let mut pty = spawn_with_options(command, Options::new().timeout_ms(Some(60_000))).unwrap();
    pty.exp_string("gcdump> ").unwrap();
    pty
}

/// Sends keys and Enter, and returns the output up to the next prompt.
fn after(pty: &mut PtySession, keys: &str) -> String {
    pty.send(&format!("{keys}\r")).unwrap();
    pty.flush().unwrap();
    let end = pty.exp_string("\u{1b}[?2004l").unwrap();
    end + &pty.exp_string("gcdump> ").unwrap()
}

/// Ends for the shell of gcdump, which has the types of the heap: few of them have unique names.
const ENDS_ON_THE_HEAP: &[&str] = &[
    "'|touch PWNED;'",
    "\"|touch PWNED;\"",
    "\\'|touch PWNED;'",
    "'\"|touch PWNED;'\"",
    "|touch PWNED;",
    "$1 $_",
    ";quit",
    " >PWNED",
    "\u{1b}[2J\u{7}",
    "\u{9b}x",
    "\u{202e}x",
    " #",
];

#[test]
fn names_are_completed_in_the_shell() {
    let reported = run(&["stat", "--top", "0", "--json", "--no-local-files", own_unpacked().to_str().unwrap()]).json();
    let on_the_heap = reported["data"]["types"].as_array().unwrap().iter().map(|t| t["type"].as_str().unwrap().to_string()).collect();
    let planted = Planted::among(&on_the_heap, ENDS_ON_THE_HEAP);
    let mut s = own_shell(&planted);
    let history = planted.folder.path().join("gcdump/history");
    let last = || fs::read_to_string(&history).unwrap().lines().last().unwrap().to_string();
    // All of them are listed.
    let listed = after(&mut s, "stat --type System.Q\t\t");
    assert!(listed.contains("System.Q"), "{listed}");
    let mut texts = vec![listed];
    for Named { typed, name } in planted.names.clone() {
        for quote in ["", "'", "\""] {
            texts.push(after(&mut s, &format!("stat --top 1 --type {quote}{typed}\t")));
            assert_eq!(planted.written(), [""; 0], "{quote} {name:?}");
            let line = last();
            match (is_left_out(&name), quote) {
                (false, _) => assert_eq!(words_of_shell(&line).unwrap(), ["stat", "--top", "1", "--type", &name], "{line}"),
                (true, _) => assert_eq!(line, format!("stat --top 1 --type {quote}{typed}")),
            }
        }
    }
    // In the middle of a completed word, nothing is completed.
    let hostile = planted.names.iter().find(|n| n.name.ends_with("'|touch PWNED;'")).unwrap();
    let back = "\u{1b}[D".repeat(hostile.name.len() - hostile.typed.len() + 3);
    texts.push(after(&mut s, &format!("stat --top 1 --type '{}\t{back}\t", hostile.typed)));
    assert_eq!(planted.written(), [""; 0]);
    for text in texts {
        for moves in ["\u{9b}", "\u{202e}", "\u{200b}", "\u{2028}", "\u{e0041}", "\u{1b}[2J"] {
            assert!(!text.contains(moves), "{text:?}");
        }
    }
}

/// Control characters that are pasted, typed, or in the history do not reach a terminal.
#[test]
fn lines_with_control_characters_are_neither_shown_nor_run() {
    let planted = Planted::new(&[]);
    let history = planted.folder.path().join("gcdump/history");
    fs::create_dir_all(history.parent().unwrap()).unwrap();
    fs::write(&history, "heap\nstat \u{1b}]0;x\u{7}\nstat \u{202e}x\n").unwrap();
    let mut s = own_shell(&planted);
    // The last line that can be shown.
    let shown = after(&mut s, "\u{1b}[A");
    assert!(shown.contains("heap") && shown.contains("gen2") && !shown.contains("]0;"), "{shown:?}");
    let pasted = |text: &str| format!("\u{1b}[200~{text}\u{1b}[201~");
    for (keys, code) in [
        (pasted("stat \u{202e}x"), "U+202E"),
        (pasted("stat \u{9b}2J"), "U+009B"),
        (pasted("stat \u{7}"), "U+0007"),
        ("stat \u{16}\u{1b}[2J".into(), "U+001B"),
        ("stat \u{202e}\u{200b}".into(), "U+202E"),
        ("\u{12}\u{202e}\u{1b}[C stat \u{202e}".into(), "U+202E"),
    ] {
        let text = after(&mut s, &keys);
        assert!(text.contains(code) && text.contains("not run"), "{keys:?}: {text:?}");
        assert!(!text.contains(['\u{202e}', '\u{9b}', '\u{200b}']) && !text.contains("[2J"), "{keys:?}: {text:?}");
    }
    // Such lines are not kept either.
    assert!(!fs::read_to_string(&history).unwrap().ends_with("\u{202e}\u{200b}\n"));
}

#[test]
fn text_that_is_typed_ahead_or_pasted_is_run() {
    let planted = Planted::new(&[]);
    let mut s = own_shell(&planted);
    let prompts = |s: &mut PtySession, keys: &[u8], lines: usize| -> String {
        use std::io::Write;
        let mut file = s.process_mut().get_file_handle().unwrap();
        file.write_all(keys).unwrap();
        (0..lines).map(|_| s.exp_string("\u{1b}[?2004l").unwrap() + &s.exp_string("gcdump> ").unwrap()).collect()
    };
    let text = prompts(&mut s, b"heap\room\rthreads\r", 3);
    assert!(text.contains("gen2") && text.contains("OS ID"), "{text}");
    assert_eq!(fs::read_to_string(planted.folder.path().join("gcdump/history")).unwrap(), "heap\noom\nthreads\n");
    // The text is typed while a command runs.
    let text = prompts(&mut s, b"heap | (cat > /dev/null; sleep 0.3)\rheap\rstat --top 1\r", 3);
    assert!(text.contains("gen2") && text.contains("SHARE"), "{text}");
    let text = prompts(&mut s, b"\x1b[200~heap\nstat --top 1\r\nobjects --count 1\x1b[201~\r", 1);
    assert!(text.contains("gen2") && text.contains("SHARE") && text.contains("$1"), "{text}");
    let kept = fs::read_to_string(planted.folder.path().join("gcdump/history")).unwrap();
    assert!(kept.ends_with("heap\nstat --top 1\nobjects --count 1\n"), "{kept}");
    // Bytes that are not UTF-8 discard the line, and nothing else.
    for bytes in [&b"he\xff"[..], b"stat \xe9\r", b"\xff\xfe\xfd", b"\xc3("] {
        prompts(&mut s, b"objects --count 1\r", 1);
        let text = prompts(&mut s, bytes, 1);
        assert!(text.contains("not UTF-8"), "{bytes:?}: {text}");
        std::thread::sleep(Duration::from_millis(50));
        let text = prompts(&mut s, b"object $1\r", 1);
        assert!(text.contains("0x"), "the rows of the last answer stay: {text}");
    }
    s.send_line("q").unwrap();
    s.exp_eof().unwrap();
}

#[test]
fn a_history_that_is_a_link_or_a_pipe_is_not_used() {
    let planted = Planted::new(&[]);
    let folder = planted.folder.path().join("gcdump");
    fs::create_dir_all(&folder).unwrap();
    let (history, other) = (folder.join("history"), folder.join("other"));
    fs::write(&other, "heap\n").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    for (kind, says) in [("link", "is a link"), ("pipe", "is not a file")] {
        match kind {
            "link" => std::os::unix::fs::symlink(&other, &history).unwrap(),
            _ => assert!(Command::new("mkfifo").arg(&history).status().unwrap().success()),
        }
        let mut command = Command::new(GCDUMP);
        command.args(["shell", "--no-local-files", "h.dmp"]).current_dir(planted.dump_folder());
        command.env("TERM", "xterm").env("XDG_STATE_HOME", planted.folder.path());
        let mut pty = spawn_with_options(command, Options::new().timeout_ms(Some(60_000))).unwrap();
        let said = pty.exp_string("gcdump> ").unwrap();
        assert!(said.replace("\r\n", " ").contains(says) && said.contains("the history is not kept"), "{kind}: {said}");
        assert!(after(&mut pty, "heap").contains("gen2"));
        pty.send_line("q").unwrap();
        pty.exp_eof().unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "heap\n");
        assert_eq!(other.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        fs::remove_file(&history).unwrap();
    }
}

/// A pipe is refused at once, as in every command.
#[test]
fn a_pipe_is_not_compared() {
    let planted = Planted::new(&[]);
    let pipe = planted.dump_folder().join("Qpipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for line in ["diff Qpipe", "diff . Qpipe", "track Qpipe", "stat Qpipe"] {
        let mut command = Command::new("timeout");
        command.args(["60", GCDUMP, "shell", "-c", line, "--no-local-files", "h.dmp"]).current_dir(planted.dump_folder());
        let ran = command.output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(matches!(ran.status.code(), Some(2 | 3)) && said.contains("Qpipe"), "{line}: {:?} {said}", ran.status);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_cache_and_an_index_may_have_names_that_are_not_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join(OsStr::from_bytes(b"c\xff"));
    let dump = crate::common::own_dump();
    let heap = |with: &dyn for<'c> Fn(&'c mut Command) -> &'c mut Command| {
        let mut command = Command::new(GCDUMP);
        command.args(["heap", "--no-local-files"]).arg(&dump);
        with(&mut command);
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    heap(&|c| c.env("GCDUMP_CACHE", &cache));
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 2);
    fs::remove_dir_all(&cache).unwrap();
    heap(&|c| c.arg("--cache").arg(&cache));
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 2);
    let index = folder.path().join(OsStr::from_bytes(b"i\xff"));
    let mut command = Command::new(GCDUMP);
    command.args(["heap", "--no-local-files", "--index"]).arg(&index).arg(&dump);
    let said = String::from_utf8_lossy(&command.output().unwrap().stderr).into_owned();
    assert!(!said.contains("invalid UTF-8"), "{said}");
}

/// Characters with a special meaning somewhere, and some without.
const CHARACTERS: &[char] = &[
    'a', 'B', '.', '1', ' ', '\'', '"', '\\', '$', '`', ';', '|', '&', '(', ')', '<', '>', '*', '?', '[', ']', '{', '}', ',', '~', '#',
    '!', '=', ':', '%', '^', '@', '-', '/', '+', 'é', '数', '\u{301}', '\t', '\n', '\u{1b}', '\u{202e}', '\0', '\u{2019}', '\u{a0}',
];

fn any_text(most: usize) -> impl Strategy<Value = String> {
    let one = proptest::prop_oneof![9 => proptest::sample::select(CHARACTERS), 1 => proptest::prelude::any::<char>()];
    proptest::collection::vec(one, 0..most).prop_map(|chars| chars.into_iter().collect())
}

fn cases() -> Vec<(String, String, usize)> {
    let mut runner = TestRunner::deterministic();
    let strategy = (any_text(9), any_text(12), 0..12_usize);
    (0..20_000).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// Any name, completed after any text, is one word, and the words before it do not change.
#[test]
fn a_completed_line_has_the_name_as_its_last_word() {
    let (mut bash, mut own) = (0, 0);
    for (typed, name, cut) in cases() {
        let line = format!("stat --type {typed}");
        if let Some(becomes) = completed_in_shell(&line, &name)
            && let Some(words) = words_of_shell(&becomes)
        {
            assert_eq!(words.last(), Some(&name), "{becomes}");
            own += 1;
        }
        // bash replaces the end of the word, from one of its word breaks on.
        let at = line.char_indices().rev().map(|(at, _)| at).nth(cut).unwrap_or(line.len());
        let at = if line[at..].contains(char::is_whitespace) { line.len() } else { at };
        let (before, Some(becomes)) = (words_of_bash(&line), completed_in_bash(&line, &line[at..], &name)) else { continue };
        let closed = ["", "'", "\""].map(|quote| format!("{becomes}{quote}"));
        let closed = closed.iter().find(|line| words_of_bash(&format!("{line} x")).is_some()).unwrap();
        let words = words_of_bash(closed).unwrap();
        assert_eq!(words.last(), Some(&name), "{becomes}");
        assert_eq!(words.split_last().map(|w| w.1), before.as_deref().and_then(<[String]>::split_last).map(|w| w.1), "{becomes}");
        bash += 1;
    }
    assert!(own > 1000 && bash > 1000, "{own} {bash}");
    // bash splits the line into words.
    if !is_installed("bash") {
        println!("skipped: bash is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole: Vec<(String, String)> =
        cases().into_iter().filter_map(|(_, name, _)| Some((completed_in_bash("stat --type ", "", &name)?, name))).collect();
    assert!(whole.len() > 1000, "{}", whole.len());
    let script: String = whole.iter().map(|(line, _)| format!("{line}\n")).collect();
    fs::write(folder.path().join("script"), format!("stat() {{ printf '%s\\0' \"$#\" \"$2\"; }}\n{script}")).unwrap();
    let ran = Command::new("bash").args(["--norc", "script"]).current_dir(folder.path()).env("LC_ALL", "C.UTF-8").output().unwrap();
    let out = String::from_utf8(ran.stdout).unwrap();
    let said: Vec<&str> = out.split_terminator('\0').collect();
    for (said, (line, name)) in said.chunks(2).zip(&whole) {
        assert_eq!(said, ["2", name], "{line}");
    }
    assert_eq!((said.len(), String::from_utf8_lossy(&ran.stderr).as_ref()), (2 * whole.len(), ""));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was written");
}
