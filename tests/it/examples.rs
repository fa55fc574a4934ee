//! Every command shows examples in its help, and each example works.

use std::collections::BTreeMap;

use crate::common::commands::{examples, filled, is_dump};
use crate::common::{ask, cases, own_dump, run, sample};
use gcdump::cli::{COMMANDS, Exit};
use serde_json::Value;

/// Values for the placeholders of examples, from the dump of the repository.
struct Blanks {
    folder: tempfile::TempDir,
    object: String,
    handle: String,
}

impl Blanks {
    fn new() -> Blanks {
        let address = |command: &[&str], list: &str| {
            let answer = ask(&own_dump(), command).1;
            answer["data"][list][0]["address"].as_str().unwrap_or_else(|| panic!("{command:?}")).to_string()
        };
        Blanks {
            folder: tempfile::tempdir().unwrap(),
            object: address(&["objects", "--count", "1", "--type", "Lab.Everything"], "objects"),
            handle: address(&["handles", "--type", "strong"], "handles"),
        }
    }

    /// Runs an example, with a new file for `OUT`.
    fn run(&self, example: &[String], more: &[&str]) -> crate::common::Ran {
        let out = self.folder.path().join("out.dmp");
        crate::common::commands::remove_out(&out);
        let mut args = filled(example, |word| match word {
            "DUMP" => Some(own_dump().to_str().unwrap().into()),
            "BEFORE" | "AFTER" => Some(leak(&word.to_lowercase())),
            "OUT" => Some(out.to_str().unwrap().into()),
            "ADDR" => Some(self.object.clone()),
            "HANDLE" => Some(self.handle.clone()),
            _ => None,
        });
        args.push("--no-local-files".into());
        args.extend(more.iter().map(ToString::to_string));
        run(&args)
    }
}

/// A dump of the pair in the repository: one process, before and after it leaked.
fn leak(which: &str) -> String {
    format!("{}/dumps/corpus/net10-wks-leak-heap.{which}.dmp.zst", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_command_has_examples_that_work() {
    let blanks = Blanks::new();
    let mut seen = BTreeMap::new();
    for (i, (entry, example)) in examples().enumerate() {
        assert_eq!(example[0], entry.name, "{example:?}");
        assert!(example.iter().any(|w| is_dump(w)), "{example:?} does not name a dump");
        *seen.entry(entry.name).or_insert(0) += 1;
        if i % cases(5, 1) != 0 {
            continue;
        }
        let ran = blanks.run(&example, &[]);
        assert!(matches!(ran.exit, Exit::Ok | Exit::Negative | Exit::Partial), "{example:?}: {:?} {}", ran.exit, ran.err);
        assert!(!ran.out.trim().is_empty(), "{example:?}: nothing printed: {}", ran.err);
    }
    let missing: Vec<_> = COMMANDS.iter().map(|c| c.name).filter(|name| !seen.contains_key(name)).collect();
    assert!(missing.is_empty(), "without an example: {missing:?}");
}

#[test]
fn every_format_of_an_example_can_be_read() {
    let blanks = Blanks::new();
    for (_, example) in sample(examples().filter(|(_, e)| !e.iter().any(|w| w == "--dot" || w == "--format")), 13) {
        let json = blanks.run(&example, &["--json"]);
        let document = json.json();
        crate::schema::assert_fits(&example[0], &document);

        let ran = blanks.run(&example, &["--format", "ndjson"]);
        assert_eq!(ran.exit, json.exit, "{example:?}");
        let lines: Vec<Value> = ran.out.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{example:?}: {e}"))).collect();
        assert_eq!((&lines[0]["record"], &lines[0]["command"]), (&"header".into(), &document["command"]), "{example:?}");
        let footer = lines.last().unwrap();
        let wanted = (&"footer".into(), &Value::from(lines.len() - 2), &document["data"]["complete"]);
        assert_eq!((&footer["record"], &footer["rows"], &footer["complete"]), wanted, "{example:?}");

        let ran = blanks.run(&example, &["--format", "csv"]);
        assert_eq!(ran.exit, json.exit, "{example:?}");
        // The reader rejects rows of unequal length.
        let rows = csv::Reader::from_reader(ran.out.as_bytes()).into_records().map(|r| r.unwrap_or_else(|e| panic!("{example:?}: {e}")));
        let _ = rows.count();
        assert!(!ran.out.is_empty(), "{example:?}: no columns");
    }
}

#[test]
fn the_help_of_a_command_shows_its_examples_and_sos_names() {
    let overview = run(&["--help"]).out;
    for entry in COMMANDS {
        assert!(overview.lines().any(|l| l.trim_start().starts_with(entry.name)), "{} is not in --help", entry.name);
        assert!(overview.contains(entry.group.title()));
        let help = run(&[entry.name, "--help"]);
        assert_eq!((help.exit, help.err.as_str()), (Exit::Ok, ""), "{}", entry.name);
        // Long lines are wrapped.
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = plain(&help.out);
        for example in entry.examples {
            let line = plain(&format!("gcdump {} {}", example.line, example.shows));
            assert!(shown.contains(&line), "{}: {line}", entry.name);
        }
        for sos in entry.sos() {
            assert!(help.out.contains(sos), "{}: {sos}", entry.name);
            assert_eq!(run(&[sos, "--help"]).exit, Exit::Ok, "{sos}");
        }
    }
}
