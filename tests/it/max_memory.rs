//! `--max-memory`: larger graphs use temporary files, and answers stay the same.

use std::path::Path;
use std::process::Command;

use gcdump::cli::Exit;
use serde_json::Value;

use super::common::{self, own_unpacked, run};

/// Returns the least memory for the graph of a dump, from the message of a refusal.
fn least(dump: &Path) -> String {
    let refused = run(&["retained", "--max-memory", "1K", dump.to_str().unwrap()]);
    assert_eq!(refused.exit, Exit::Usage, "{}", refused.err);
    let words: Vec<&str> = refused.err.split(' ').collect();
    let at = words.iter().position(|word| *word == "about").unwrap_or_else(|| panic!("{}", refused.err));
    let number: f64 = words[at + 1].parse().unwrap();
    let unit: u64 = match words[at + 2] {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        unit => panic!("{unit}: {}", refused.err),
    };
    // The message rounds to tenths.
    ((number + 0.1) * unit as f64).ceil().to_string()
}

/// Returns the answer of a command with little memory and with unlimited memory.
fn both(dump: &Path, least: &str, command: &[&str]) -> [(Exit, Value); 2] {
    let more: [&[&str]; 2] = [&["--max-memory", least], &[]];
    more.map(|more| common::ask(dump, &[command, more].concat()))
}

/// Compares the answers of `more` as well. Returns whether the graph used files.
fn expect_same(dump: &Path, more: &[&[&str]]) -> bool {
    let least = least(dump);
    let same = |command: &[&str]| {
        let [files, memory] = both(dump, &least, command);
        assert!(files.1["data"].is_object() && files == memory, "{command:?} of {}", dump.display());
        files.1
    };
    let retained = same(&["retained", "--top", "30"]);
    let object = retained["data"]["objects"][0]["address"].as_str().unwrap();
    let of_graphs = [
        &["retained", "--suspects"][..],
        &["retained", "--tree"],
        &["retained", "--object", object],
        &["retained", "--type", "System.String"],
        &["path", object],
        &["path", "--type", "System.String"],
        &["objsize", object],
        &["diff", dump.to_str().unwrap(), "--holders"],
    ];
    of_graphs.iter().chain(more).for_each(|command| {
        same(command);
    });
    least.parse::<u64>().unwrap() < retained["data"]["totals"]["objects"].as_u64().unwrap() * 64
}

/// Commands that a `.gcdump` file cannot answer.
const OF_DUMPS: [&[&str]; 4] = [&["unreachable"], &["simulate"], &["bridge"], &["analyze"]];

#[test]
fn answers_from_files_are_those_from_memory() {
    assert!(expect_same(&own_unpacked(), &OF_DUMPS));
    let wanted = |row: &Value| matches!(row["kind"].as_str(), Some("heap" | "full"));
    let (known, _) = common::known_dumps(wanted).unwrap_or_default();
    // One dump for each pair of a runtime and a GC is enough, and only a few pairs in a short run.
    let mut seen = std::collections::BTreeSet::new();
    let first = known.iter().filter(|dump| seen.insert((dump.runtime.clone(), dump.gc.clone())));
    let some: Vec<_> = first.take(common::cases(3, 6)).collect();
    let in_files = common::each(&some, |dump| expect_same(&dump.path, &OF_DUMPS));
    assert!(in_files.is_empty() || in_files.contains(&true));
}

#[test]
fn a_gcdump_file_is_no_exception() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heap.gcdump");
    let written = run(&["export", "gcdump", "--unreachable", own_unpacked().to_str().unwrap(), "-o", file.to_str().unwrap()]);
    assert_eq!(written.exit, Exit::Ok, "{}", written.err);
    assert!(expect_same(&file, &[]));
}

/// Runs the program with a file size limit, which has the effect of a full disk, and without a folder for temporary files.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let dump = own_unpacked();
    let least = least(&dump);
    // The system ends a process that exceeds the limit, unless it ignores the signal.
    let line = r#"trap '' XFSZ; ulimit -f 16; exec "$0" "$@""#;
    let gcdump = env!("CARGO_BIN_EXE_gcdump");
    let mut limited = Command::new("sh");
    limited.args(["-c", line, gcdump]);
    let mut homeless = Command::new(gcdump);
    homeless.env("TMPDIR", "/nowhere/at/all");
    for mut command in [limited, homeless] {
        let ran = command.args(["retained", "--max-memory", &least]).arg(&dump).output().unwrap();
        let err = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(i32::from(Exit::NotWritten.code())), "{err}");
        assert!(err.contains("set TMPDIR") && ran.stdout.is_empty() && !err.contains(" 0 bytes"), "{err}");
    }
}
