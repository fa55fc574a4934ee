//! Completion in a real bash, and manual pages.

use std::path::Path;
use std::process::Command;

use crate::common::{own_unpacked, run};
use gcdump::cli::{COMMANDS, Exit};

/// Returns bash's candidates for the last of `words`, in the current folder.
fn offered(script: &Path, words: &[&str]) -> Vec<String> {
    offered_in(Path::new("."), script, words, words.len() - 1)
}

/// Returns bash's candidates in `folder` for the word at the index `last`.
fn offered_in(folder: &Path, script: &Path, words: &[&str], last: usize) -> Vec<String> {
    let (line, rest) = (words[..=last].join(" "), words[last + 1..].join(" "));
    let line = format!(
        "source '{}'; COMP_LINE='{line}{}{rest}'; COMP_POINT={}; _gcdump gcdump '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        if rest.is_empty() { "" } else { " " },
        line.len(),
        words[last],
        words[last - 1],
    );
    let programs = Path::new(env!("CARGO_BIN_EXE_gcdump")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &line]).current_dir(folder).env("PATH", path).env_remove("GCDUMP_DUMP");
    let ran = bash.output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    text.lines().map(|l| l.trim_end().to_string()).filter(|l| !l.is_empty()).collect()
}

#[test]
fn bash_completes_commands_options_values_and_types() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("skipped: bash is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("gcdump.bash");
    std::fs::write(&script, run(&["completions", "bash"]).out).unwrap();
    let dump = own_unpacked();
    let dump = dump.to_str().unwrap();

    assert_eq!(offered(&script, &["gcdump", "stat"])[0], "stat");
    assert!(offered(&script, &["gcdump", "st"]).contains(&"strings".to_string()));
    assert!(offered(&script, &["gcdump", "stat", "--gen"]).contains(&"--generation".to_string()));
    assert_eq!(offered(&script, &["gcdump", "handles", "--by", "ob"]), ["object-type"]);
    assert_eq!(offered(&script, &["gcdump", "stat", dump, "--type", "Lab.Nod"])[0], "Lab.Node");
    assert!(offered(&script, &["gcdump", "stat", dump, "--type", "Nod"]).contains(&"Lab.Node".to_string()));
}

/// Files with the names of the program, of a command, of a value and of a type are not used as the dump.
#[test]
fn bash_completes_types_of_the_dump_among_files_of_any_name() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("skipped: bash is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("gcdump.bash");
    std::fs::write(&script, run(&["completions", "bash"]).out).unwrap();
    for name in ["gcdump", "stat", "objects", "out.json", "Lab", "7f31", "fields"] {
        std::fs::write(folder.path().join(name), "not a dump").unwrap();
    }
    let dump = own_unpacked();
    let dump = dump.to_str().unwrap();
    let offered = |words: &[&str], at: usize| offered_in(folder.path(), &script, words, at);
    for (line, at) in [
        (&["gcdump", "stat", dump, "--type", "Lab.Nod"][..], 4),
        (&["gcdump", "stat", "--type", "Lab.Nod", dump], 3),
        (&["gcdump", "stat", "-o", "out.json", dump, "--type", "Lab.Nod"], 6),
        (&["gcdump", dump, "objects", "--fields", "fields", "--type", "Lab.Nod"], 6),
        (&["gcdump", "object", "7f31", dump, "--as", "Lab.Nod"], 5),
        (&["gcdump", "object", dump, "7f31", "--as", "Lab.Nod"], 5),
    ] {
        assert!(offered(line, at).contains(&"Lab.Node".to_string()), "{line:?}: {:?}", offered(line, at));
    }
    // The word being typed is not the dump, and without a dump the list of candidates is empty.
    assert!(offered(&["gcdump", "stat", "--type", "Lab"], 3).is_empty());
    std::fs::copy(dump, folder.path().join("only.dmp")).unwrap();
    assert_eq!(offered(&["gcdump", "stat", "--type", "Lab.Nod"], 3)[0], "Lab.Node");
    assert!(offered(&["gcdump", "stat", "missing.dmp", "--type", "Lab.Nod"], 4).is_empty());
}

#[test]
fn every_shell_gets_a_script() {
    for shell in ["bash", "elvish", "fish", "nushell", "powershell", "zsh"] {
        let ran = run(&["completions", shell]);
        assert!(ran.exit == Exit::Ok && ran.out.contains("gcdump") && ran.err.is_empty(), "{shell}: {}", ran.err);
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(&["man", "--all", folder.path().to_str().unwrap()]);
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    for command in COMMANDS {
        let page = std::fs::read_to_string(folder.path().join(format!("gcdump-{}.1", command.name))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains("Examples:"), "{}", command.name);
    }
    assert!(folder.path().join("gcdump.1").exists());
}
