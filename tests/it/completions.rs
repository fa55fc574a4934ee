//! Completion in a real bash, and manual pages.

use std::path::Path;
use std::process::Command;

use crate::common::{own_unpacked, run};
use gcdump::cli::{COMMANDS, Exit};

/// What bash offers for the last of `words`.
fn offered(script: &Path, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|w| format!("'{w}'")).collect();
    let last = words.len() - 1;
    let line = format!(
        "source '{}'; COMP_WORDS=({}); COMP_CWORD={last}; COMP_TYPE=9; _clap_complete_gcdump gcdump '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        quoted.join(" "),
        words[last],
        words[last - 1],
    );
    let folder = Path::new(env!("CARGO_BIN_EXE_gcdump")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("bash").args(["-c", &line]).env("PATH", path).output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    text.lines().map(|l| l.trim_end().to_string()).filter(|l| !l.is_empty()).collect()
}

#[test]
fn bash_completes_commands_options_values_and_types() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("skipped: there is no bash");
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
