//! `stacks --arguments`: the arguments of methods, compared with the sources and records of the programs.

use crate::harness::Tested;
use std::collections::BTreeMap;
use std::path::Path;

use super::{ask_with, folders, list, plain, text};
use crate::common::{ask, every_dump};
use serde_json::{Value, json};

/// Returns the managed frames of a dump, with arguments.
fn frames(path: &Path) -> Vec<Value> {
    let (exit, answer) = ask(path, &["stacks", "--arguments"]);
    let (plain_exit, plain_answer) = ask(path, &["stacks"]);
    // Arguments may need more of the dump, never less.
    assert!(exit == plain_exit || answer["data"]["complete"] == false, "{exit:?} {plain_exit:?}");
    let path = path.display();
    let managed = |answer: &Value| -> Vec<Value> {
        let frames = list(&answer["data"]["threads"]).iter().flat_map(|t| list(&t["frames"]));
        frames.filter(|f| f["kind"] == "managed").cloned().collect()
    };
    assert!(managed(&plain_answer).iter().all(|f| f["arguments"].is_null()));
    let mut frames = managed(&answer);
    for argument in frames.iter().flat_map(|f| list(&f["arguments"])) {
        let (value, reason) = (&argument["value"], &argument["reason"]);
        assert!(value.is_null() == reason.is_string(), "{argument}");
        assert!(value.is_null() || argument["location"].is_string() && value["name"] == argument["name"] || argument["name"].is_null());
        assert!(value["kind"] != "invalid" && value["kind"] != "raw", "{path}: {argument}");
    }
    frames.iter_mut().for_each(|f| f["method"] = plain(text(f, "method")).into());
    frames
}

/// Returns name, type and text of each argument of the frames of a method.
fn of(frames: &[Value], method: &str) -> Vec<Vec<[String; 3]>> {
    let argument = |a: &Value| [text(a, "name"), text(a, "type"), text(&a["value"], "text")].map(ToString::to_string);
    frames.iter().filter(|f| f["method"] == method).map(|f| list(&f["arguments"]).iter().map(argument).collect()).collect()
}

#[test]
fn unoptimized_code_shows_its_arguments() {
    for runtime in ["net8", "net10"] {
        let frames = frames(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{runtime}-wks-stacks-heap.dmp.zst")));
        // Rec(150, …) calls itself until n is 0, with the caller's own object and the address of its parameter.
        let recursion = of(&frames, "Stacks.Program.Rec");
        let n: Vec<String> = recursion.iter().map(|a| a[0][2].clone()).collect();
        assert_eq!(n, (0..=150).map(|n: i32| n.to_string()).collect::<Vec<_>>(), "{runtime}");
        for [number, object, address] in recursion.iter().map(|a| [&a[0], &a[1], &a[2]]) {
            assert_eq!([&number[0], &object[0], &address[0]], ["n", "b", "r"]);
            assert_eq!([&number[1], &object[1], &address[1]], ["System.Int32", "Stacks.Box", "Stacks.Box&"]);
            assert!(object[2].ends_with(" Stacks.Box"), "{object:?}");
        }
        let target = of(&frames, "Stacks.Program.Target");
        let [_, i, s] = target[0].as_slice() else { panic!("{target:?}") };
        assert_eq!([&i[0], &i[1], &i[2], &s[0], &s[1], &s[2]], ["i", "System.Int32", "5", "s", "System.String", "\"s\""]);
        let this = of(&frames, "Stacks.Closure.Call").into_iter().chain(of(&frames, "Stacks.Construct.Go")).next().unwrap();
        assert_eq!(this[0][0], "this");
        // The code is shared by reference types; the frame has the exact type arguments.
        let shared = of(&frames, "Stacks.Gen.S");
        let expected = ["t", "System.String", "\"text\""].map(String::from);
        assert!(shared.iter().any(|a| a[0] == expected && a[1][1] == "Stacks.Box"), "{runtime}: {shared:?}");
        let places: Vec<&str> = frames.iter().flat_map(|f| list(&f["arguments"])).map(|a| text(a, "location")).collect();
        assert!(places.contains(&"[rbp-0x8]") && places.iter().any(|p| !p.starts_with('[') && !p.is_empty()), "{runtime}");
    }
}

/// Copies of dumps whose metadata has no rows of parameters: types and values, but no names.
#[test]
fn arguments_have_values_without_names() {
    for name in ["net8", "net10"] {
        let frames = frames(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/lines/{name}.dmp.zst")));
        let mut depths: Vec<String> = of(&frames, "E2E.Worker.Outer").iter().map(|a| a[1][2].clone()).collect();
        depths.sort();
        assert_eq!(depths, ["0", "0", "0", "1", "1", "2"], "{name}");
        let waiting = frames.iter().filter(|f| f["method"] == "E2E.Worker.Generic" && f["part"] == "handler" && f["unwound"] == false);
        let values: Vec<Value> =
            waiting.map(|f| list(&f["arguments"])[1..].iter().map(|a| a["value"]["value"].clone()).collect()).collect();
        assert_eq!(values, vec![json!([0, "x"]); 3], "{name}");
        let left = frames.iter().filter(|f| f["unwound"] == true).flat_map(|f| list(&f["arguments"]));
        assert!(left.clone().count() > 0 && left.clone().all(|a| a["value"].is_null() && text(a, "reason").contains("exception")));
    }
}

/// The recorded objects that the methods hold as arguments.
#[test]
fn arguments_are_the_objects_of_the_program() -> Tested {
    let (dumps, _) = every_dump(|row| row["truth"].is_string())?;
    let (mut compared, mut seen) = (0, 0);
    for dump in dumps {
        let Some(truth) = dump.truth.as_ref().filter(|t| t["program"] == "stacks") else { continue };
        seen += 1;
        let answer = ask_with(&dump.path, &folders(&dump.runtime), &["stacks", "--arguments"]).1;
        let threads: BTreeMap<Option<u64>, &Value> = list(&truth["threads"]).iter().map(|t| (t["os_id"].as_u64(), t)).collect();
        for thread in list(&answer["data"]["threads"]) {
            let Some(recorded) = threads.get(&thread["os_id"].as_u64()) else { continue };
            for f in list(&thread["frames"]) {
                let method = plain(text(f, "method"));
                for a in list(&f["arguments"]).iter().filter(|a| a["value"]["kind"] == "object") {
                    let is = |l: &&Value| l["local"] == a["name"] && list(&l["in"]).iter().any(|m| plain(m.as_str().unwrap()) == method);
                    let Some(live) = list(&recorded["live"]).iter().find(is) else { continue };
                    assert_eq!(a["value"]["object"], live["object"], "{}: {method} {a}", dump.name);
                    compared += 1;
                }
            }
        }
    }
    println!("{compared} arguments of {seen} dumps are objects of the program");
    assert!(seen == 0 || compared > 10 * seen, "{compared} of {seen}");
    Ok(())
}
