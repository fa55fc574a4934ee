//! A renamed field of .NET's libraries affects only the answers that read it. `library.txt` lists them and how they change; `GCDUMP_BLESS=1
//! cargo test --test it descriptor::` rewrites it.

use std::collections::{BTreeMap, BTreeSet};

use super::asked::Outcome;
use super::process::Process;
use super::{each_source, table_path};
use crate::common::{cases, each};

/// Returns every field name that readers of library types bind.
fn fields() -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    each_source(|text| {
        for block in text.split("fields_of! {").skip(1) {
            let end = block.find("\n}").or_else(|| block.find("\n    }")).unwrap_or(block.len());
            let names =
                block[..end].split(['\n', ',']).filter_map(|line| line.split_once(": req \"").or_else(|| line.split_once(": opt \"")));
            out.extend(names.flat_map(|(_, names)| names.split('"').next().unwrap().split('|').map(String::from)));
        }
    });
    out
}

/// Returns the commands whose answer differs if no field of a library is called `name`.
fn row(process: &Process, name: &str) -> BTreeMap<Outcome, Vec<&'static str>> {
    let mut out: BTreeMap<Outcome, Vec<&'static str>> = BTreeMap::new();
    for (command, outcome) in process.whole().differences(&process.asked_without(name)) {
        out.entry(outcome).or_default().push(command);
    }
    out
}

fn print(rows: &[(String, BTreeMap<Outcome, Vec<&'static str>>)]) -> String {
    let lines = rows.iter().filter(|(_, row)| !row.is_empty()).map(|(field, row)| {
        let outcomes: Vec<String> = row.iter().map(|(outcome, commands)| format!("{outcome:?}({})", commands.join(" "))).collect();
        format!("{field}: {}\n", outcomes.join(" "))
    });
    lines.collect()
}

#[test]
fn a_missing_library_field_affects_only_the_answers_that_read_it() {
    let fields: Vec<String> = fields().into_iter().collect();
    assert!(fields.len() > 100 && fields.iter().any(|f| f == "m_stateFlags"), "{fields:?}");
    let bless = std::env::var_os("GCDUMP_BLESS").is_some();
    let mut table = String::from(
        "# Fields of .NET's libraries, and what becomes of the answers about two processes of .NET 11 where they have another name:\n\
         # refused, partial, or changed (complete without what other releases do not have either).\n",
    );
    let path = table_path("library.txt");
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for name in ["net11-wks-asyncmixrt-heap", "net11-wks-deadlock-heap"] {
        let process = Process::of(name);
        let asked: Vec<&String> = fields.iter().filter(|f| process.has_name(f)).step_by(if bless { 1 } else { cases(20, 4) }).collect();
        let rows = each(&asked, |field| (format!("{name} {field}"), row(&process, field)));
        let found = print(&rows);
        if bless {
            table.push_str(&found);
            continue;
        }
        let found: BTreeSet<&str> = found.lines().collect();
        let of_asked = |line: &&str| asked.iter().any(|field| line.starts_with(&format!("{name} {field}: ")));
        assert_eq!(found, expected.lines().filter(of_asked).collect(), "{name}");
    }
    if bless {
        std::fs::write(&path, table).unwrap();
    }
}

/// Without a field that .NET 11 added, the answers that read it are not refused: they say what is unknown.
#[test]
fn missing_fields_of_net11_leave_answers_partial() {
    let table = std::fs::read_to_string(table_path("library.txt")).unwrap();
    let refused: Vec<&str> = table.lines().filter(|line| !line.starts_with('#') && line.contains("Refused")).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(table.lines().count() > 20, "{table}");
}
