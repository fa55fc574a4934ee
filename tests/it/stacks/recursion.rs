//! Recursion, folded in all outputs.

use std::path::Path;

use super::{list, text};
use crate::common::{ask, run, unpacked};
use crate::harness::{Ignored, Tested};
use serde_json::{Value, json};

/// A stack overflow: `Recurse` and `Middle` call each other until the stack ends.
#[test]
fn a_cycle_of_methods_is_one_line() -> Tested {
    let path = unpacked().join("net10-wks-nativestackoverflow-heap.dmp");
    if !path.is_file() {
        return Err(Ignored(format!("{} is not there", path.display())));
    }
    let (_, answer) = ask(&path, &["stacks"]);
    let thread = &list(&answer["data"]["threads"])[0];
    let [repeat] = list(&thread["repeats"]) else { panic!("{}", thread["repeats"]) };
    let cycle = "Cases.NativeCrash.Recurse → Cases.NativeCrash.Middle";
    assert_eq!((&repeat["frames"], text(repeat, "cycle")), (&Value::from(2), cycle));
    let [first, times] = ["first", "times"].map(|key| repeat[key].as_u64().unwrap());
    assert!(times > 10_000, "{repeat}");
    // No frame is left out, and all counted frames are of the cycle.
    let frames = list(&thread["frames"]);
    for (i, f) in (first..first + 2 * times).zip(&frames[usize::try_from(first).unwrap()..]) {
        assert!(
            text(f, "method").starts_with(["Cases.NativeCrash.Middle(", "Cases.NativeCrash.Recurse("][usize::from((i - first) % 2 == 1)]),
            "{f}"
        );
    }
    let grouped = times.to_string().as_bytes().rchunks(3).rev().map(|c| std::str::from_utf8(c).unwrap()).collect::<Vec<_>>().join(",");
    let line = format!("{cycle}, {grouped} times");
    let words = |more: &[&str]| run(&[&["stacks", "--no-local-files", path.to_str().unwrap()], more].concat()).out;
    for more in [&[][..], &["--merge"], &["--format", "folded"]] {
        let out = words(more);
        assert!(out.matches(&line).count() == 1 && out.matches("NativeCrash.Middle").count() == 1, "{more:?}: {out}");
    }
    let (_, merged) = ask(&path, &["stacks", "--merge"]);
    let rows: Vec<&Value> = list(&merged["data"]["merged"]).iter().filter(|r| r["times"].is_object()).collect();
    assert!(
        matches!(rows[..], [row] if text(row, "frame") == cycle && row["times"]["least"] == times && row["times"]["most"] == times),
        "{rows:?}"
    );
    Ok(())
}

#[test]
fn recursion_of_one_method_is_one_line() {
    for (name, first) in [("net8-wks-stacks-heap", 5), ("net10-wks-stacks-heap", 6)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"));
        let (_, answer) = ask(&path, &["stacks", "--method", "Stacks.Program.Recurse()"]);
        let [thread] = list(&answer["data"]["threads"]) else { panic!("{name}") };
        assert_eq!(thread["repeats"], json!([{ "first": first, "frames": 1, "times": 151, "cycle": "Stacks.Program.Rec" }]), "{name}");
        assert_eq!(list(&thread["frames"]).iter().filter(|f| text(f, "method").contains(".Rec(")).count(), 151);
        let words = |more: &[&str]| run(&[&["stacks", "--no-local-files", path.to_str().unwrap()], more].concat()).out;
        for more in [&[][..], &["--merge"], &["--format", "folded"], &["--arguments"]] {
            let out = words(more);
            assert_eq!(out.matches("Stacks.Program.Rec, 151 times").count(), 1, "{name} {more:?}");
            // The innermost round has its arguments.
            assert_eq!(out.matches("Stacks.Program.Rec(").count(), usize::from(more == ["--arguments"]), "{name} {more:?}");
        }
    }
}
