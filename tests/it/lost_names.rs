//! Dumps without the names of their types: an object selected by name may exist without a name.

use std::path::Path;

use gcdump::cli::Exit;
use serde_json::Value;

use crate::changed::{self, Whole, messages};
use crate::common::{self, own_unpacked, run};
use crate::corpus;
use crate::harness::Tested;

/// Command lines that select objects, roots or types by name.
const QUESTIONS: [&[&str]; 12] = [
    &["stat", "--type", "Lab.Nothing"],
    &["stat", "--type", "Lab.Noth*"],
    &["objects", "--type", "Lab.Noth*"],
    &["objects", "--where", "type = \"Lab.Nothing\""],
    &["objects", "--where", "type ~ \"Noth\" and size > 16"],
    &["objects", "--where", "field(\"nothing\") = 3"],
    &["objects", "--top", "5", "--fields", "nothing"],
    &["export", "csv", "--tables", "objects", "--fields", "nothing"],
    &["retained", "--type", "Lab.Nothing"],
    &["roots", "--type", "Lab.Nothing"],
    &["statics", "--type", "Lab.Nothing"],
    &["type", "Lab.Nothing"],
];

/// Runs a command without the program's file, which `common::ask` passes for dumps of NativeAOT.
fn ask(dump: &Path, question: &[&str]) -> (Exit, Value) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("tables");
    let files: &[&str] = if question[0] == "export" { &["-o", to.to_str().unwrap()] } else { &[] };
    let ran = run(&[question, files, &["--json", "--no-local-files", dump.to_str().unwrap()]].concat());
    (ran.exit, ran.json())
}

#[test]
fn a_selection_by_a_lost_name_is_partial() {
    for name in ["net10-wks-wait-kernel", "aot9-wks-crash-kernel"] {
        let path = corpus::dump(name);
        for question in QUESTIONS {
            let (exit, answer) = ask(&path, question);
            assert_eq!((exit, &answer["data"]["complete"]), (Exit::Partial, &false.into()), "{name} {question:?}: {answer}");
        }
        // The text shown instead of a missing name is itself a name.
        for question in [["stat", "--type", "nothing!*"], ["stat", "--type", "lab!0x*"]] {
            let (exit, answer) = ask(&path, &question);
            assert!(matches!(exit, Exit::Ok | Exit::Negative) && answer["data"]["complete"] == true, "{name} {question:?}: {answer}");
        }
    }
    let (exit, answer) = ask(&corpus::dump("net10-wks-wait-kernel"), &["stat", "--type", "System.String"]);
    assert!(exit == Exit::Ok && answer["data"]["totals"]["count"].as_u64().unwrap() > 100, "{answer}");
}

/// A NativeAOT program has the names of its types, but those of their fields only in its debug information.
#[test]
fn a_selection_by_fields_that_only_symbols_name_is_partial() -> Tested {
    let path = common::every_dump(|row| row["name"] == "aot9-wks-async-full")?.0.swap_remove(0).path;
    for question in QUESTIONS {
        let (exit, _) = ask(&path, question);
        let asks_for_a_field = question.iter().any(|word| word.contains("nothing"));
        assert_eq!(exit == Exit::Partial, asks_for_a_field, "{question:?}");
    }
    let strings = ["objects", "--type", "System.String", "--count", "3", "--fields", "_stringLength"];
    assert_eq!(ask(&path, &strings).0, Exit::Partial);
    Ok(())
}

#[test]
fn a_type_with_the_field_does_not_make_the_answer_complete() -> Tested {
    let lab = common::needs_lab()?;
    let library = tempfile::tempdir().unwrap();
    std::fs::copy(lab.join("net10/System.Private.CoreLib.dll"), library.path().join("System.Private.CoreLib.dll")).unwrap();
    let path = corpus::dump("net10-wks-wait-kernel");
    let question = ["objects", "--count", "1000", "--fields", "_stringLength", "--modules", library.path().to_str().unwrap()];
    let (_, first) = ask(&path, &question);
    let first = first["data"]["objects"].as_array().unwrap().iter().position(|o| o["type"] == "System.String").unwrap().to_string();
    let (exit, of_all) = ask(&path, &[&question[..], &["--start", &first]].concat());
    let known = of_all["data"]["objects"].as_array().unwrap().iter().filter(|o| o["fields"]["_stringLength"].is_number());
    assert!(exit == Exit::Partial && known.count() > 10, "{exit:?} {}", of_all["warnings"]);
    let (exit, of_strings) = ask(&path, &[&question[..], &["--type", "System.String"]].concat());
    assert_eq!((exit, of_strings["data"]["complete"] == true), (Exit::Ok, true), "{}", of_strings["warnings"]);
    Ok(())
}

#[test]
fn with_names_the_answer_is_complete() {
    for question in QUESTIONS {
        let (exit, answer) = ask(&own_unpacked(), question);
        assert_ne!(exit, Exit::Partial, "{question:?}: {answer}");
    }
}

/// Names with only zeros, as dump writers leave it for memory that they could not read.
#[test]
fn names_of_zeroed_metadata_are_lost() {
    let name = "net10-wks-basics-heap";
    let mut bytes = common::bytes_of(name).unwrap();
    let names = memchr::memmem::find(&bytes, b"\0Lab\0").unwrap();
    bytes[names..names + 0x400].fill(0);
    let zeroed = Whole::of(name, bytes);
    for command in ["stat -n 0", "objects -n 0", "type *", "statics", "retained"] {
        let (exit, answer, warnings) = changed::ask(&zeroed.dump, command);
        assert_eq!((exit, &answer["complete"]), (Exit::Partial, &false.into()), "{command}: {warnings}");
        let told = messages(&warnings).iter().any(|m| m.contains("a name in the metadata of a module is empty"));
        assert!(told, "{command}: {warnings}");
    }
    // A name without its namespace or its last part would be the name of another type.
    let (_, answer, _) = changed::ask(&zeroed.dump, "stat -n 0");
    let types: Vec<&str> = answer["types"].as_array().unwrap().iter().filter_map(|t| t["type"].as_str()).collect();
    assert!(types.iter().any(|t| t.starts_with("lab!0x02")), "{types:?}");
    assert!(types.iter().all(|t| !t.is_empty() && !t.starts_with(['.', '+']) && !t.ends_with(['.', '+'])), "{types:?}");
}
