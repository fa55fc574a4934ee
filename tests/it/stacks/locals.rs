//! `stacks --locals`: the values of local variables of the lab's program `cases args`, compared with the program's record.
//!
//! `net10.dmp.zst` is a trimmed dump of the program; `net10opt.dmp.zst` is one with `DOTNET_TieredCompilation=0`, so with optimized code.
//! `cases.pdb` is the PDB.

use std::path::{Path, PathBuf};

use super::{ask_with, list, plain, text};
use crate::common::{ask, run};
use gcdump::cli::Exit;
use serde_json::Value;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/stacks/locals").join(name)
}

/// Returns name, type and value (or `?`) of the locals of the frames of `method`, innermost frame first.
fn of(answer: &Value, method: &str) -> Vec<Vec<[String; 3]>> {
    let frames = list(&answer["data"]["threads"]).iter().flat_map(|t| list(&t["frames"]));
    let local = |a: &Value| {
        assert!(a["value"].is_null() == a["reason"].is_string(), "{a}");
        let value = a["value"]["text"].as_str().unwrap_or("?");
        // Addresses differ from run to run.
        let value = value.find("0x7").map_or(value, |_| "address");
        [text(a, "name"), text(a, "type"), value].map(ToString::to_string)
    };
    let frames = frames.filter(|f| f["kind"] == "managed" && plain(text(f, "method")) == method && f["unwound"] == false);
    frames.map(|f| list(&f["locals"]).iter().map(local).collect()).collect()
}

/// The locals of `Locals1` in the source, with the recorded values.
const LOCALS: [[&str; 3]; 18] = [
    ["i", "System.Int32", "13"],
    ["l", "System.Int64", "1234605616436508564"],
    ["d", "System.Double", "12.5"],
    ["f", "System.Single", "12"],
    ["b", "System.Boolean", "true"],
    ["c", "System.Char", "'ν'"],
    ["s", "System.String", "\"local 12\""],
    ["m", "Cases.Marker", "address"],
    ["a", "System.Int32[]", "address"],
    ["o", "System.Object", "address"],
    ["st", "Cases.Args+S24", "{A=12, B=2, C=3}"],
    ["sr", "Cases.Args+S24r", "address"],
    ["dec", "System.Decimal", "12"],
    ["g", "System.Guid", "0000000c-0001-0002-0000-000000000000"],
    ["n", "System.Nullable<System.Int32>", "12"],
    ["e", "System.DayOfWeek", "Tuesday (2)"],
    ["t", "System.ValueTuple<System.Int32, System.String>", "{Item1=12, Item2=\"local 12\"}"],
    ["p", "System.IntPtr", "0xc"],
];

#[test]
fn locals_have_the_names_of_the_pdb_and_the_values_of_the_program() {
    let (exit, answer) = ask_with(&file("net10.dmp.zst"), &[file("")], &["stacks", "--locals"]);
    assert_eq!((exit, &answer["data"]["complete"]), (Exit::Ok, &Value::Bool(true)), "{}", answer["warnings"]);
    // Temporaries of the compiler follow.
    assert_eq!(of(&answer, "Cases.Args.Locals1")[0][..18], LOCALS.map(|l| l.map(ToString::to_string)));
    // Instances of a generic method, with the compiler's variables for `foreach`.
    let generic = of(&answer, "Cases.Args.Locals2");
    let copies: Vec<&[String; 3]> = generic.iter().filter_map(|locals| locals.iter().find(|l| l[0] == "copy")).collect();
    assert_eq!(
        copies,
        [&["copy", "System.Int32", "77"], &["copy", "System.String", "\"generic local\""]].map(|l| l.map(String::from)).each_ref()
    );
    assert!(generic.iter().all(|locals| locals.iter().any(|l| l[0] == "local_5" && l[1].ends_with("Enumerator"))), "{generic:?}");
    // A handler has the variables of its method, by their scope.
    let handler = of(&answer, "Cases.Args.Locals3");
    assert!(handler.iter().any(|locals| locals[0][..2] == ["ex", "System.Exception"] && locals[0][2] == "address"), "{handler:?}");
    let text =
        run(&["stacks", "--locals", "--no-local-files", "--symbols", file("").to_str().unwrap(), file("net10.dmp.zst").to_str().unwrap()])
            .out;
    assert!(text.contains("      locals\n        [rbp-0x8]        System.Int32 i = 13\n"), "{text}");
}

#[test]
fn locals_of_optimized_code_are_right_or_say_why_not() {
    let (_, answer) = ask_with(&file("net10opt.dmp.zst"), &[file("")], &["stacks", "--locals"]);
    let shown = of(&answer, "Cases.Args.Locals1").remove(0);
    for (shown, right) in shown.iter().zip(LOCALS) {
        assert!(shown == &right || shown[..2] == right[..2] && shown[2] == "?", "{shown:?} {right:?}");
    }
    assert_eq!(shown[..18].iter().filter(|l| l[2] != "?").count(), 10, "{shown:?}");
}

#[test]
fn locals_without_a_pdb_have_numbers() {
    let (exit, answer) = ask(&file("net10.dmp.zst"), &["stacks", "--locals", "--method", "Locals1"]);
    assert_eq!(exit, Exit::Ok, "{}", answer["warnings"]);
    let numbered = (0..).zip(LOCALS).map(|(n, l)| [format!("local_{n}"), l[1].into(), l[2].into()]).collect::<Vec<_>>();
    assert_eq!(of(&answer, "Cases.Args.Locals1")[0][..18], numbered);
    let (_, plain) = ask(&file("net10.dmp.zst"), &["stacks", "--method", "Locals1"]);
    assert!(list(&plain["data"]["threads"]).iter().flat_map(|t| list(&t["frames"])).all(|f| f["locals"].is_null()));
}
