//! Every linked list of the runtime bent into a circle: the answer is partial, says where, and keeps what was read before.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs,
    dead_code
)]

mod common;
mod support;

use gcdump::cli::Exit;
use serde_json::Value;
use support::{Shape, Spec, Target};

fn ask(target: &Target, command: &[&str]) -> (Exit, Value) {
    let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
    std::fs::write(file.path(), target.to_elf_core()).unwrap();
    common::ask(file.path(), command)
}

fn number(v: &Value) -> u64 {
    u64::from_str_radix(v.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// The word in `from..end` that leads into the `reach` bytes behind `to`: where it is, and how far behind `to` it leads.
fn link(target: &Target, from: u64, end: u64, to: u64, reach: u64) -> Option<(u64, u64)> {
    let p = target.memory.shape.ptr;
    (0..(end - from) / p).map(|i| from + i * p).find_map(|at| {
        let offset = target.memory.word(at)?.checked_sub(to)?;
        (offset < reach).then_some((at, offset))
    })
}

/// Bends the link between two rows of a list so that it leads back to the first of them, and asks.
fn bent(target: &Target, rows: &[Value], reach: u64, command: &[&str], list: &str) -> usize {
    let mut found = 0;
    let addresses: Vec<u64> = rows.iter().map(|r| number(&r["address"])).collect();
    // None is larger than the room between the two that lie closest.
    let mut sorted = addresses.clone();
    sorted.sort_unstable();
    let size = sorted.windows(2).map(|w| w[1] - w[0]).min().unwrap().min(0x100);
    let rings = rows.iter().any(|r| r["list"] == "handle-table");
    for (i, from) in addresses.iter().enumerate().skip(usize::from(rings)) {
        let end = from + size;
        for to in addresses.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, a)| a) {
            let Some((at, offset)) = link(target, *from, end, *to, reach.min(size)) else { continue };
            let mut copy = target.clone();
            copy.memory.p(at, from + offset);
            let (exit, answer) = ask(&copy, command);
            assert_eq!(exit, Exit::Partial, "{list}: {at:#x}: {}", answer["warnings"]);
            let warnings = answer["warnings"].as_array().unwrap();
            let circle = warnings.iter().find(|w| w["kind"] == "limit-hit").unwrap_or_else(|| panic!("{list}: {warnings:?}"));
            assert!(circle["address"].is_string(), "{list}: {circle}");
            let kept = answer["data"][list].as_array().unwrap();
            assert!(kept.iter().any(|r| number(&r["address"]) == *from), "{list}: {from:#x} was read before the circle");
            assert_eq!(answer["data"]["complete"], false, "{list}");
            found += 1;
            break;
        }
    }
    found
}

#[test]
fn a_circle_in_every_list_is_told() {
    for shape in Shape::ALL {
        let target = Spec { server: Some(2), ..Spec::standard(shape) }.build();
        let rows = |command: &[&str], list: &str| ask(&target, command).1["data"][list].as_array().unwrap().clone();
        let threads = bent(&target, &rows(&["threads"], "threads"), 0x100, &["threads"], "threads");
        assert_eq!(threads, 3, "{shape:?}");
        let segments = bent(&target, &rows(&["segments"], "segments"), 1, &["segments"], "segments");
        assert_eq!(segments, 5, "{shape:?}");
        let free = rows(&["segments", "--free"], "regions");
        let of = |list: &str| free.iter().filter(|r| r["list"] == list).cloned().collect::<Vec<Value>>();
        let tables = of("handle-table");
        // The end of these leads to the beginning: only one of the others that leads back to itself is wrong.
        let wrong = bent(&target, &tables, 1, &["segments", "--free"], "regions");
        assert_eq!(wrong, 1, "{shape:?}");
        assert!(bent(&target, &of("free"), 1, &["segments", "--free"], "regions") >= 2, "{shape:?}");
        // A card table that is no longer used stands between the two, and is not listed: the link of the first leads there.
        let first = number(&of("bookkeeping")[0]["address"]);
        let next =
            (0..0x50 / shape.ptr).map(|i| first + i * shape.ptr).find(|at| target.memory.word(*at).is_some_and(|w| w > first - 0x1000));
        let mut copy = target.clone();
        copy.memory.p(next.unwrap(), first + 0x50);
        let (exit, answer) = ask(&copy, &["segments", "--free"]);
        assert_eq!(exit, Exit::Partial, "{shape:?}");
        assert!(answer["warnings"].to_string().contains("bookkeeping regions runs in a circle"), "{shape:?}: {}", answer["warnings"]);
    }
}
