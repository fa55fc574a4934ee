//! How much only stale words of stacks hold: `unreachable` with precise and with conservative stacks.

use super::{ask_with, document, folders, has_heap, list};
use crate::common::{Known, each, known_dumps};
use crate::harness::Tested;
use serde_json::Value;

/// Objects and their bytes.
type Sum = (u64, u64);

/// Returns the unreachable objects with precise and with conservative stacks; `None` if stacks have gaps.
fn measure(dump: &Known) -> Option<[Sum; 2]> {
    let folders = folders(&dump.runtime);
    let ask = |stacks: &str| ask_with(&dump.path, &folders, &["unreachable", "--top", "1", "--stacks", stacks]).1["data"].clone();
    let sum = |data: &Value| (data["unreachable"]["count"].as_u64().unwrap(), data["unreachable"]["bytes"].as_u64().unwrap());
    let precise = ask("precise");
    let known = |c: &&Value| c["kind"] == "stack" && c["coverage"] != "unavailable" && c["coverage"] != "partial";
    let (_, stacks) = ask_with(&dump.path, &folders, &["stacks"]);
    let threads = list(&stacks["data"]["threads"]);
    let whole = !threads.is_empty() && threads.iter().all(|t| t["coverage"] == "precise");
    (whole && list(&precise["coverage"]).iter().any(|c| known(&c))).then(|| [sum(&precise), sum(&ask("conservative"))])
}

#[test]
fn precise_stacks_hold_less_than_conservative_ones() -> Tested {
    let (dumps, missing) = known_dumps(|_| true)?;
    let dumps: Vec<Known> = dumps.into_iter().filter(has_heap).collect();
    if dumps.is_empty() {
        println!("skipped: no dumps at hand");
        return Ok(());
    }
    let mut part = "| dump | unreachable: objects | bytes | held only by stale words: objects | bytes |\n".to_string();
    part.push_str("| --- | --- | --- | --- | --- |\n");
    let (mut total, mut count, mut more, mut left_out) = ((0, 0), 0, 0, Vec::new());
    for (dump, measured) in dumps.iter().zip(each(&dumps, measure)) {
        let Some([precise, conservative]) = measured else {
            left_out.push(format!("`{}`", dump.name));
            continue;
        };
        let name = &dump.name;
        assert!(precise.0 >= conservative.0 && precise.1 >= conservative.1, "{name}: {precise:?} precise, {conservative:?} conservative");
        let stale = (precise.0 - conservative.0, precise.1 - conservative.1);
        part.push_str(&format!("| {name} | {} | {} | {} | {} |\n", precise.0, precise.1, stale.0, stale.1));
        total = (total.0 + stale.0, total.1 + stale.1);
        count += 1;
        more += u64::from(stale.0 > 0);
    }
    part.push_str(&format!("| {count} dumps, {more} of them with such objects | | | {} | {} |\n", total.0, total.1));
    if !left_out.is_empty() {
        part.push_str(&format!("\nNot known precisely: {}.\n", left_out.join(", ")));
    }
    println!("{part}");
    assert!(more * 2 > count, "stale words hold something in {more} of {count} dumps only");
    if missing.is_empty() && !folders("net10").is_empty() {
        document("stale", &part);
    }
    Ok(())
}
