//! Overlays on real dumps: a matching one is used, any other is rejected with the failed check.

use std::path::Path;

use crate::common::{known_dumps, own_unpacked, run};
use gcdump::cli::Exit;
use serde_json::Value;

fn data(name: &str) -> String {
    format!("{}/src/contract/overlay/data/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

fn check(overlay: &str, dump: &str) -> (Exit, Value) {
    let ran = run(&["contracts", "--check", "--json", "--no-local-files", "--overlay", overlay, dump]);
    (ran.exit, ran.json())
}

#[test]
fn the_right_overlay_passes_and_is_named() {
    let dump = own_unpacked();
    let (exit, answer) = check(&data("net10.0-linux-x64"), dump.to_str().unwrap());
    assert_eq!(exit, Exit::Ok, "{answer}");
    assert_eq!(answer["runtime"]["overlay"], "net10.0-linux-x64");
    let checks = answer["data"]["checks"].as_array().unwrap();
    assert!(checks.len() >= 6 && checks.iter().all(|c| c["outcome"] == "passed"), "{checks:?}");
}

#[test]
fn the_overlay_of_another_release_is_rejected_without_effect() {
    let dump = own_unpacked();
    let dump = dump.to_str().unwrap();
    for wrong in ["net9.0-linux-x64", "net8.0-linux-x64", "net10.0-win-x64"] {
        let (exit, answer) = check(&data(wrong), dump);
        assert_eq!(exit, Exit::Negative, "{wrong}");
        let refused = answer["data"]["checks"].as_array().unwrap().iter().any(|c| c["name"] == "overlay" && c["outcome"] == "failed");
        assert!(refused, "{wrong}: {answer}");
        let plain = run(&["heap", "--json", "--no-local-files", dump]).json();
        let with = run(&["heap", "--json", "--no-local-files", "--overlay", &data(wrong), dump]).json();
        assert_eq!(plain["data"], with["data"], "{wrong}");
        assert!(!with["warnings"].as_array().unwrap().is_empty(), "{wrong} was refused in silence");
    }
}

/// A wrong offset is detected if a check uses it. The dump of the repository is trimmed, so a wrong offset may point to
/// missing memory, which the check reports; with the full dump it fails.
#[test]
fn a_damaged_overlay_is_detected() {
    let (full, _) = known_dumps(|row| row["name"] == "net10-wks-basics-heap").unwrap_or_default();
    for (dump, trimmed) in full.iter().map(|d| (d.path.clone(), false)).chain([(own_unpacked(), true)]) {
        damaged_overlays_are_detected(&dump, trimmed);
    }
}

fn damaged_overlays_are_detected(dump: &Path, trimmed: bool) {
    let text = std::fs::read_to_string(data("net10.0-linux-x64")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let damages = [
        ("\"BaseSize\": 4", "\"BaseSize\": 12"),
        ("\"EEClassOrCanonMT\": 40", "\"EEClassOrCanonMT\": 32"),
        ("\"FirstThreadLink\": 88", "\"FirstThreadLink\": 96"),
        ("\"FreeObjectMethodTable\": 56", "\"FreeObjectMethodTable\": 55"),
        ("\"ThreadStore\": 15", "\"ThreadStore\": 14"),
        ("\"GCLowestAddress\": 37", "\"GCLowestAddress\": 38"),
    ];
    for (good, bad) in damages {
        assert!(text.contains(good), "{good}");
        let path = folder.path().join("damaged.json");
        std::fs::write(&path, text.replace(good, bad)).unwrap();
        let (exit, answer) = check(path.to_str().unwrap(), dump.to_str().unwrap());
        let checks = answer["data"]["checks"].as_array().unwrap();
        let unknown = trimmed && checks.iter().any(|c| c["outcome"] == "unknown");
        assert!(exit == Exit::Negative || unknown, "{good} → {bad}: {answer}");
    }
}
