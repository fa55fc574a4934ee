//! A stack or a root is damaged: answers that depend on what it held are partial.

use gcdump::cli::Exit;
use serde_json::Value;

use crate::changed::{Whole, Write, ask, messages};
use crate::common::{self, NOWHERE, number};
use crate::support::Spec;

/// Commands that use the roots.
const OF_ROOTS: [&str; 5] = ["roots", "retained", "unreachable", "simulate collect --generation 2", "statics --retained"];

/// Checks that the complete ones among the answers of `commands` are partial after `writes`, with a warning that contains `message`. Returns their
/// number.
fn check(whole: &Whole, what: &str, writes: &[Write], (commands, message): (&[&str], &str)) -> usize {
    let changed = whole.with(writes);
    let mut cases = 0;
    for command in commands {
        if ask(&whole.dump, command).0 != Exit::Ok {
            continue;
        }
        cases += 1;
        let (exit, answer, warnings) = ask(&changed, command);
        let case = format!("{}: {what}: {command}: {exit:?}, {warnings}", whole.name);
        assert!(exit == Exit::Partial && answer["complete"] == false, "{case}");
        assert!(messages(&warnings).iter().any(|m| m.contains(message)), "{case}");
    }
    cases
}

fn rows<'v>(answer: &'v Value, of: &str) -> impl Iterator<Item = &'v Value> {
    answer[of].as_array().into_iter().flatten()
}

/// Regression test: `roots` and what uses them were complete without the roots of the lost frames, if the words of the stack were lost as well.
#[test]
fn a_stack_without_its_chain_of_frames_has_unknown_roots() {
    let mut cases = 0;
    for name in common::sample(["net8-wks-deadlock-heap", "net10-wks-deadlock-heap", "net10-svr-roots-heap"], 2) {
        let Some(whole) = Whole::named(name) else { continue };
        let list = whole.dump.runtime().unwrap().thread_list().unwrap().data.clone();
        let running = list.iter().filter(|t| t.state.is_some_and(|s| s & 0x20c00 == 0x20000));
        for thread in running.take(2) {
            let first = thread.address.0 + whole.offset("Thread", "Frame");
            let frame = whole.word(first);
            if frame == u64::MAX {
                continue;
            }
            let next = frame + whole.offset("Frame", "Next");
            for (what, at, message) in [
                ("no frames", first, "the frame chain has a null link"),
                ("no next frame", next, "the frame chain has a null link"),
                ("a frame without a type", frame, "a frame without a type"),
            ] {
                let writes = [(at, 0, whole.p())];
                cases += check(&whole, what, &writes, (&OF_ROOTS, message));
                cases += check(&whole, what, &writes, (&["locks", "stacks", "roots --stacks conservative"], message));
            }
        }
    }
    println!("{cases} cases");
    assert!(cases > 30, "{cases}");
}

/// Regression test: commands of the graph ignored such roots without a warning, and lists showed them as objects.
#[test]
fn roots_that_point_to_no_object_are_reported() {
    let mut cases = 0;
    for name in common::sample(["net10-svr-roots-heap", "net10-wks-finalizers-heap"], 2) {
        let Some(whole) = Whole::named(name) else { continue };
        let (_, roots, _) = ask(&whole.dump, "roots");
        // The second word of a string is its length and its first characters, never a method table.
        let text = rows(&roots, "roots").find(|r| r["type"] == "System.String").map(|r| number(&r["object"]) + whole.p());
        for kind in ["strong-handle", "pinned-handle", "finalizer-ready", "static", "thread-static"] {
            let of = |r: &&Value| r["kind"] == kind && !r["address"].is_null() && !r["object"].is_null();
            let Some(root) = rows(&roots, "roots").find(of) else { continue };
            let list: &[&str] = match kind {
                "strong-handle" | "pinned-handle" => &["handles"],
                "finalizer-ready" => &["finalizers", "finalizers --objects"],
                "static" => &["statics"],
                _ => &["statics --thread-statics"],
            };
            for value in text.into_iter().chain([NOWHERE]) {
                let (what, writes) = (format!("{kind} at {value:#x}"), [(number(&root["address"]), value, whole.p())]);
                cases += check(&whole, &what, &writes, (&OF_ROOTS, "an address without an object"));
                cases += check(&whole, &what, &writes, (list, ""));
            }
        }
    }
    println!("{cases} cases");
    assert!(cases > 30, "{cases}");
}

/// Regression test: `index` was complete.
#[test]
fn the_index_of_a_dump_with_a_damaged_root_is_partial() {
    let Some(whole) = Whole::named("net10-svr-roots-heap") else { return };
    let (_, handles, _) = ask(&whole.dump, "handles");
    let handle = rows(&handles, "handles").find(|h| h["type"] == "pinned").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.dmp");
    std::fs::write(&path, whole.bytes_with(&[(number(&handle["address"]), NOWHERE, whole.p())])).unwrap();
    let (exit, answer) = common::ask(&path, &["index"]);
    assert!(exit == Exit::Partial && answer["data"]["complete"] == false, "{exit:?}: {answer}");
    let (exit, answer) = common::ask(&path, &["index", "--check"]);
    assert!(exit == Exit::Partial && answer["data"]["complete"] == false, "{exit:?}: {answer}");
}

#[test]
fn a_handle_to_an_address_that_is_not_an_object_is_reported() {
    for shape in common::shapes() {
        let target = Spec { stray_handle: true, ..Spec::standard(shape) }.build();
        let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        std::fs::write(file.path(), target.to_elf_core()).unwrap();
        let (exit, answer) = common::ask(file.path(), &["handles"]);
        assert_eq!(exit, Exit::Partial, "{shape:?}");
        assert!(answer["warnings"].to_string().contains("1 handle points to an address without an object"), "{answer}");
    }
}
