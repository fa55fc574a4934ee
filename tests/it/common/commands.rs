//! Command lines for tests: the examples of the registry, with placeholders replaced.

use super::run;
use gcdump::cli::{COMMANDS, Entry, Exit};

/// Splits a command line into words, without quotes.
pub fn words(line: &str) -> Vec<String> {
    let (mut out, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => out.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    assert!(!quoted, "a quote is left open: {line}");
    out.extend(word);
    out
}

/// Runs a command that an answer suggests. Returns its words, and whether it has an answer, complete or partial.
pub fn leads_on(line: &str) -> (Vec<String>, bool) {
    let words = words(line.strip_prefix("gcdump ").unwrap());
    let exit = run(&words).exit;
    (words, matches!(exit, Exit::Ok | Exit::Partial))
}

/// Whether a placeholder of examples is a dump: one, or several to compare.
pub fn is_dump(word: &str) -> bool {
    matches!(word, "DUMP" | "BEFORE" | "AFTER")
}

/// Every example of every command, with the placeholders `DUMP`, `BEFORE`, `AFTER`, `ADDR`, `HANDLE` and `OUT`.
pub fn examples() -> impl Iterator<Item = (&'static Entry, Vec<String>)> {
    COMMANDS.iter().flat_map(|entry| entry.examples.iter().map(move |e| (entry, words(e.line))))
}

/// The examples, and `more` command lines. Without `DUMP`, a command line gets it at the end.
pub fn forms(more: &[&[&str]]) -> Vec<Vec<String>> {
    let mut out: Vec<Vec<String>> = examples().map(|(_, words)| words).collect();
    out.extend(more.iter().map(|form| form.iter().map(ToString::to_string).collect()));
    for form in &mut out {
        assert!(COMMANDS.iter().any(|c| c.name == form[0]), "{form:?}: no such command");
        if !form.iter().any(|w| is_dump(w)) {
            form.push("DUMP".into());
        }
    }
    out
}

/// Returns `form` with placeholders replaced by `fill`. A folder that it writes is beside the file that `fill` returns.
pub fn filled(form: &[String], mut fill: impl FnMut(&str) -> Option<String>) -> Vec<String> {
    let folder = form[0] == "fleet" || form[0] == "export" && matches!(form[1].as_str(), "parquet" | "csv" | "ndjson");
    let place = |word: &str, path: String| if word == "OUT" && folder { format!("{path}.{}", form[0]) } else { path };
    form.iter().map(|word| fill(word).map_or_else(|| word.clone(), |path| place(word, path))).collect()
}

/// Removes the output of a command line whose `OUT` was this.
pub fn remove_out(out: &std::path::Path) {
    let _ = std::fs::remove_file(out);
    for command in ["fleet", "export"] {
        let _ = std::fs::remove_dir_all(format!("{}.{command}", out.display()));
    }
}

#[test]
fn quoted_words_are_not_split() {
    assert_eq!(words("path --type 'A<B, C>' DUMP"), ["path", "--type", "A<B, C>", "DUMP"]);
    assert_eq!(words("a  '' 'b'c"), ["a", "", "bc"]);
}
