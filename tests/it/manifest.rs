//! Every dump of the shared manifest, compared with ClrMD, the program's own records, and the expectations for the 11-shaped
//! dumps. New dumps are checked without new code.

mod truth;

use crate::common;
use crate::harness::Tested;
use std::collections::BTreeMap;
use std::sync::PoisonError;

use crate::common::{Known, ask, each, every_dump};
use gcdump::cli::Exit;
use serde_json::Value;
use truth::{expected, truths};

/// Adds the outcome of a cell of the matrix.
#[derive(Debug, Default)]
struct Findings {
    cells: BTreeMap<&'static str, String>,
    wrong: Vec<String>,
}

impl Findings {
    fn note(&mut self, cell: &'static str, outcome: String) {
        self.cells.insert(cell, outcome);
    }

    fn wrong(&mut self, cell: &'static str, what: String) {
        self.cells.insert(cell, "WRONG".into());
        self.wrong.push(format!("{cell}: {what}"));
    }

    /// Compares two maps keyed by address; every difference is a failure.
    fn same(&mut self, cell: &'static str, ours: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>) {
        let differences: Vec<String> = ours
            .keys()
            .chain(theirs.keys())
            .filter(|k| ours.get(*k) != theirs.get(*k))
            .map(|k| format!("{k}: ours {:?}, expected {:?}", ours.get(k), theirs.get(k)))
            .collect();
        if differences.is_empty() {
            self.note(cell, format!("{} exact", ours.len()));
        } else {
            self.wrong(
                cell,
                format!("{} differ: {}", differences.len(), differences.iter().take(6).cloned().collect::<Vec<_>>().join("; ")),
            );
        }
    }
}

fn text(v: &Value) -> String {
    match v {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

fn fields(v: &Value, keys: &[&str]) -> String {
    keys.iter().map(|k| format!("{k}={}", text(&v[*k]))).collect::<Vec<_>>().join(" ")
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn by_address(rows: &[Value], keys: &[&str]) -> BTreeMap<String, String> {
    rows.iter().map(|r| (text(&r["address"]), fields(r, keys))).collect()
}

#[test]
fn every_shared_dump_is_exact() -> Tested {
    let (dumps, missing) = every_dump(|_| true)?;
    let mut wrong = Vec::new();
    let mut rows = Vec::new();
    for (dump, found) in dumps.iter().zip(each(&dumps, check)) {
        let cells: Vec<String> = found.cells.iter().map(|(k, v)| format!("{k}: {v}")).collect();
        rows.push(format!("{:<34} {}", dump.name, cells.join(" | ")));
        wrong.extend(found.wrong.iter().map(|w| format!("{}: {w}", dump.name)));
    }
    println!("{}", rows.join("\n"));
    if missing.is_empty() && !dumps.is_empty() {
        coverage_document(&dumps, &rows);
    }
    for name in &missing {
        println!("skipped: {name}: not unpacked in {}", common::unpacked().display());
    }
    println!("shared dumps: {} checked, {} skipped", dumps.len(), missing.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

const COMMANDS: [&str; 7] = ["heap", "segments", "objects", "handles", "oom", "stacks", "threads"];

/// Fails if the generated part of `docs/coverage.md` is outdated; `GCDUMP_BLESS=1` rewrites it.
fn coverage_document(dumps: &[Known], matrix: &[String]) {
    type Answers<'a> = BTreeMap<&'a str, BTreeMap<String, usize>>;
    let mut kinds: BTreeMap<(String, String), Answers<'_>> = BTreeMap::new();
    let mut reasons: BTreeMap<(String, String, String), Vec<String>> = BTreeMap::new();
    for dump in dumps {
        let (_, info) = ask(&dump.path, &["info"]);
        let cells = kinds.entry((dump.kind.clone(), dump.runtime.clone())).or_default();
        for a in list(&info["data"]["answers"]) {
            let command = COMMANDS.iter().find(|c| a["command"] == **c).unwrap();
            *cells.entry(command).or_default().entry(text(&a["answer"])).or_default() += 1;
            if let Some(reason) = a["reason"].as_str() {
                let key = (dump.kind.clone(), (*command).to_string(), without_numbers(reason));
                reasons.entry(key).or_default().push(dump.name.clone());
            }
        }
    }
    let mut out = format!("Kind of dump and runtime, {} dumps; the number says how many.\n\n| kind | runtime |", dumps.len());
    out.push_str(&COMMANDS.map(|c| format!(" `{c}` |")).concat());
    out.push_str(&format!("\n| --- | --- |{}\n", " --- |".repeat(COMMANDS.len())));
    for ((kind, runtime), cells) in &kinds {
        out.push_str(&format!("| {kind} | {runtime} |"));
        for command in COMMANDS {
            let answers: Vec<String> = cells.get(command).iter().flat_map(|a| a.iter().map(|(k, n)| format!("{k} {n}"))).collect();
            out.push_str(&format!(" {} |", answers.join(", ")));
        }
        out.push('\n');
    }
    out.push_str("\nWhy not in full:\n\n| kind | command | reason | dumps |\n| --- | --- | --- | --- |\n");
    for ((kind, command, reason), names) in &reasons {
        out.push_str(&format!("| {kind} | `{command}` | {reason} | {} |\n", names.join(", ")));
    }
    out.push_str("\nEvery dump, compared with ClrMD's answer, the program's truth and the expectations packed beside it:\n\n```text\n");
    out.push_str(&matrix.join("\n"));
    out.push_str("\n```\n");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/coverage.md");
    let _guard = common::COVERAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let old = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = old.split_once("<!-- generated -->\n").expect("the first marker");
    let (_, tail) = rest.split_once("<!-- end of generated -->").expect("the second marker");
    let new = format!("{head}<!-- generated -->\n{out}<!-- end of generated -->{tail}");
    let names = |text: &str| -> Vec<String> {
        let body = text.split_once("```text").map_or("", |t| t.1).split("```").next().unwrap_or("");
        body.lines().filter_map(|l| l.split_whitespace().next()).map(ToString::to_string).collect()
    };
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        std::fs::write(&path, new).unwrap();
    } else if names(&old) != names(&new) {
        println!("docs/coverage.md describes another set of dumps; GCDUMP_BLESS=1 rewrites it");
    } else {
        assert!(old == new, "docs/coverage.md is outdated; GCDUMP_BLESS=1 cargo test --test it manifest:: rewrites it");
    }
}

/// The reason without details that differ between dumps.
fn without_numbers(reason: &str) -> String {
    let mut out = String::new();
    for word in reason.split(' ') {
        let digits = word.trim_end_matches([':', ',']).trim_start_matches("0x");
        let number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit()) && digits.chars().any(|c| c.is_ascii_digit());
        let shown = if number { format!("…{}", if word.ends_with(':') { ":" } else { "" }) } else { word.to_string() };
        out.push_str(if out.is_empty() { "" } else { " " });
        out.push_str(&shown);
    }
    out
}

fn check(dump: &Known) -> Findings {
    let mut f = Findings::default();
    if dump.runtime.starts_with("aot") && common::native_aot_program().is_none() {
        f.note("skipped", "the program is not on this machine".into());
        return f;
    }
    let has_heap = !matches!(dump.kind.as_str(), "mini" | "triage");
    info(dump, &mut f);
    if let Some(expect) = &dump.expect {
        expected(dump, expect, &mut f);
    }
    if let Some(clrmd) = &dump.clrmd {
        if has_heap {
            walk(dump, clrmd, &mut f);
            segments(dump, clrmd, &mut f);
            heap_detail(dump, clrmd, &mut f);
            handles(dump, clrmd, &mut f);
        }
        oom(dump, clrmd, &mut f);
        threads(dump, clrmd, &mut f);
    }
    if let Some(truth) = &dump.truth {
        truths(dump, truth, has_heap, &mut f);
    }
    f
}

fn info(dump: &Known, f: &mut Findings) {
    let (_, answer) = ask(&dump.path, &["info"]);
    let data = &answer["data"];
    let kind = match dump.kind.as_str() {
        "kernel" => "kernel-core",
        other => other,
    };
    // The lab's writer of Windows dumps sets no flag for heap dumps; the kind follows from the content.
    if data["kind"] != kind {
        f.wrong("info", format!("kind is {}, not {kind} ({})", data["kind"], data["kind_evidence"]));
        return;
    }
    let Some(truth) = &dump.truth else { return };
    let server = truth["gc"]["server"].as_bool();
    let version = truth["runtime"].as_str().map(|r| r.trim_start_matches(".NET ").to_string());
    let gc = &data["gc"];
    if server.is_some_and(|s| gc["kind"] != if s { "server" } else { "workstation" }) {
        f.wrong("info", format!("gc kind {}", gc["kind"]));
    } else if gc["layout"] != if dump.gc.starts_with("seg") { "segments" } else { "regions" } {
        f.wrong("info", format!("layout {}", gc["layout"]));
    } else if version.as_deref().is_some_and(|v| !answer["runtime"]["version"].as_str().is_some_and(|own| own.starts_with(v))) {
        f.wrong("info", format!("version {} is not {version:?}", answer["runtime"]["version"]));
    } else if dump.gc == "datas" && dump.runtime.contains("10") && gc["datas"] != true {
        f.wrong("info", format!("datas {}", gc["datas"]));
    } else {
        f.note("info", "ok".into());
    }
}

fn segments(dump: &Known, clrmd: &Value, f: &mut Findings) {
    let theirs = &clrmd["heap"]["heaps"];
    if theirs.is_null() {
        // ClrMD has no answer for kernel cores.
        let (exit, ours) = ask(&dump.path, &["segments"]);
        let n = list(&ours["data"]["segments"]).len();
        if exit == Exit::Ok && n > 0 {
            f.note("segments", format!("{n} (no ClrMD answer)"))
        } else {
            f.wrong("segments", format!("{exit:?}, {n} found"))
        }
        return;
    }
    let mut expected = BTreeMap::new();
    for heap in list(theirs) {
        for s in list(&heap["segments"]) {
            let generation = match s["kind"].as_str().unwrap() {
                "Generation0" => "gen0",
                "Generation1" => "gen1",
                "Generation2" => "gen2",
                "Large" => "loh",
                "Pinned" => "poh",
                "Frozen" => "frozen",
                "Ephemeral" => "ephemeral",
                other => other,
            };
            let row = format!(
                "heap={} generation={generation} start={} allocated={} committed={} reserved={} flags_value={} committed_bytes={}",
                heap["index"],
                text(&s["objects"]["start"]),
                text(&s["objects"]["end"]),
                text(&s["committed"]["end"]),
                text(&s["reserved"]["end"]),
                s["flags_value"],
                s["committed"]["length"],
            );
            expected.insert(text(&s["address"]), row);
        }
    }
    let (exit, ours) = ask(&dump.path, &["segments"]);
    let keys = ["heap", "generation", "start", "allocated", "committed", "reserved", "flags_value", "committed_bytes"];
    f.same("segments", &by_address(list(&ours["data"]["segments"]), &keys), &expected);
    if exit != Exit::Ok {
        f.wrong("segments", format!("{exit:?}: {}", ours["warnings"]));
    }
    parts(list(&ours["data"]["segments"]), theirs, f);
    totals(dump, clrmd, f);
}

/// Every walk ends exactly at the segment end, with as many objects as ClrMD's.
fn walk(dump: &Known, clrmd: &Value, f: &mut Findings) {
    let (exit, ours) = ask(&dump.path, &["segments", "--walk"]);
    let segments = list(&ours["data"]["segments"]);
    let sum = |key: &str| segments.iter().map(|s| s["walk"][key].as_u64().unwrap()).sum::<u64>();
    let inexact: Vec<&Value> = segments.iter().filter(|s| s["walk"]["complete"] != true || s["walk"]["skipped_bytes"] != 0).collect();
    let whole = segments.iter().all(|s| {
        let n = |key: &str| s["walk"][key].as_u64().unwrap();
        n("bytes") + n("free_bytes") + n("context_bytes") + n("in_allocation_bytes") == s["allocated_bytes"].as_u64().unwrap()
    });
    // ClrMD counts free blocks as objects.
    let theirs = clrmd["stat"]["objects"].as_u64().map(|n| n - sum("free_objects"));
    if exit != Exit::Ok || !inexact.is_empty() || !whole {
        f.wrong("walk", format!("{exit:?}, {} segments do not end exactly: {}", inexact.len(), ours["warnings"]));
    } else if theirs.is_some_and(|n| n != sum("objects")) {
        f.wrong("walk", format!("{} objects, ClrMD has {theirs:?}", sum("objects")));
    } else {
        f.note("walk", format!("{} objects exact", sum("objects")));
    }
}

/// The generations inside an ephemeral segment.
fn parts(ours: &[Value], theirs: &Value, f: &mut Findings) {
    for s in list(theirs).iter().flat_map(|h| list(&h["segments"])).filter(|s| s["kind"] == "Ephemeral") {
        let own = ours.iter().find(|o| o["address"] == s["address"]).map(|o| list(&o["parts"])).unwrap_or_default();
        for generation in ["gen0", "gen1", "gen2"] {
            let part = own.iter().find(|p| p["generation"] == generation);
            let range = part.map(|p| (text(&p["start"]), text(&p["end"])));
            let expected = (text(&s[generation]["start"]), text(&s[generation]["end"]));
            if range.as_ref() != Some(&expected) {
                f.wrong("parts", format!("{generation}: {range:?}, expected {expected:?}"));
            }
        }
    }
}

fn totals(dump: &Known, clrmd: &Value, f: &mut Findings) {
    let (_, ours) = ask(&dump.path, &["heap"]);
    let mut expected = BTreeMap::new();
    for kind in list(&clrmd["heap"]["kinds"]) {
        expected.insert(text(&kind["kind"]), format!("{} {} {}", kind["segments"], kind["object_bytes"], kind["committed"]));
    }
    let mut sums: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for g in list(&ours["data"]["heaps"]).iter().flat_map(|h| list(&h["generations"])) {
        let name = match g["generation"].as_str().unwrap() {
            "gen0" => "Generation0",
            "gen1" => "Generation1",
            "gen2" => "Generation2",
            "loh" => "Large",
            "poh" => "Pinned",
            "frozen" => "Frozen",
            "ephemeral" => "Ephemeral",
            other => other,
        };
        let sum = sums.entry(name.into()).or_default();
        let n = |key: &str| g[key].as_u64().unwrap();
        *sum = (sum.0 + n("segments"), sum.1 + n("allocated"), sum.2 + n("committed"));
    }
    let sums = sums.into_iter().map(|(k, v)| (k, format!("{} {} {}", v.0, v.1, v.2))).collect();
    f.same("heap", &sums, &expected);
}

/// The heap details printed by ClrMD, except the mark array and the saved sweep segment, which it prints as -1 for every
/// dump.
fn heap_detail(dump: &Known, clrmd: &Value, f: &mut Findings) {
    let theirs = list(&clrmd["heap"]["heaps"]);
    if theirs.is_empty() {
        return;
    }
    let (_, ours) = ask(&dump.path, &["heap", "--detail"]);
    let mut differences = Vec::new();
    for (own, their) in list(&ours["data"]["heaps"]).iter().zip(theirs) {
        let d = &own["detail"];
        let index = &own["index"];
        let mut compare = |what: &str, own: String, their: String| {
            if own != their {
                differences.push(format!("heap {index} {what}: {own}, expected {their}"));
            }
        };
        compare("allocated", text(&d["alloc_allocated"]), text(&their["allocated"]));
        compare("ephemeral segment", text(&d["ephemeral_segment"]), text(&their["ephemeral_segment"]));
        compare("card table", text(&d["card_table"]), text(&their["card_table"]));
        compare("fill pointers", d["finalize_queue"]["fill_pointers"].to_string(), their["finalization_pointers"].to_string());
        for (g, t) in list(&d["generation_table"]).iter().zip(list(&their["generation_table"])) {
            let start = if g["allocation_start"].is_null() { "0x0".to_string() } else { text(&g["allocation_start"]) };
            let own = format!(
                "{} {} {start} {} {}",
                g["generation"],
                text(&g["start_segment"]),
                text(&g["context_pointer"]),
                text(&g["context_limit"])
            );
            compare("generation table", own, fields_plain(t, &["gen", "start_segment", "allocation_start", "alloc_ptr", "alloc_limit"]));
        }
        if !own["address"].is_null() {
            compare("address", text(&own["address"]), text(&their["address"]));
        }
    }
    if differences.is_empty() { f.note("detail", "exact".into()) } else { f.wrong("detail", differences.join("; ")) }
}

fn fields_plain(v: &Value, keys: &[&str]) -> String {
    keys.iter().map(|k| text(&v[*k])).collect::<Vec<_>>().join(" ")
}

fn handle_kind(clrmd: &str) -> &str {
    match clrmd {
        "WeakShort" => "weak-short",
        "WeakLong" => "weak-long",
        "Strong" => "strong",
        "Pinned" => "pinned",
        "RefCounted" => "ref-counted",
        "Dependent" => "dependent",
        "AsyncPinned" => "async-pinned",
        "SizedRef" => "sized-ref",
        "WeakWinRT" => "weak-native-com",
        // ClrMD has no names for these two.
        "10" => "weak-interior-pointer",
        "11" => "cross-reference",
        other => other,
    }
}

fn own_secondary(rows: &[Value], address: &Value) -> String {
    rows.iter().find(|r| r["address"] == *address).map(|r| text(&r["secondary"])).unwrap_or_default()
}

fn handles(dump: &Known, clrmd: &Value, f: &mut Findings) {
    let (exit, ours) = ask(&dump.path, &["handles"]);
    let rows = list(&ours["data"]["handles"]);
    if exit != Exit::Ok {
        f.wrong("handles", format!("{exit:?}: {}", ours["warnings"]));
        return;
    }
    let theirs = &clrmd["handles"]["handles"];
    if theirs.is_null() {
        f.note("handles", format!("{} (no ClrMD answer)", rows.len()));
        return;
    }
    // gcore dumps contain no metadata; all others contain the names.
    let metadata = dump.kind != "gcore";
    let keys: &[&str] = if metadata {
        &["type", "object", "method_table", "secondary", "object_type"]
    } else {
        &["type", "object", "method_table", "secondary"]
    };
    let mut own = by_address(rows, keys);
    let mut expected = BTreeMap::new();
    for h in list(theirs) {
        let kind = handle_kind(h["kind"].as_str().unwrap());
        // ClrMD has no secondary value for these two; gcdump's is compared with the records of the probe and bridge programs.
        let secondary = if kind == "weak-interior-pointer" || kind == "cross-reference" {
            own_secondary(rows, &h["address"])
        } else if kind == "dependent" {
            if h["dependent"]["address"].is_null() { "0x0".to_string() } else { text(&h["dependent"]["address"]) }
        } else {
            "null".to_string()
        };
        let name = if metadata { format!(" object_type={}", text(&h["type"])) } else { String::new() };
        let row = format!("type={kind} object={} method_table={} secondary={secondary}{name}", text(&h["object"]), text(&h["mt"]));
        expected.insert(text(&h["address"]), row);
    }
    // ClrMD walks one table per *heap*; with server GC there is one per processor, so it misses handles (fixed in .NET 11,
    // dotnet/runtime #124872). Additional handles must be in the other tables, so only server GC may differ, and only by
    // having more.
    let only_ours: Vec<String> = own.keys().filter(|k| !expected.contains_key(*k)).cloned().collect();
    let server = ours["runtime"].is_object() && ["svr", "datas", "segsvr"].contains(&dump.gc.as_str());
    let mut extra = 0;
    for key in only_ours {
        if server {
            own.remove(&key);
            extra += 1;
        }
    }
    f.same("handles", &own, &expected);
    if extra > 0 && f.cells["handles"] != "WRONG" {
        f.note("handles", format!("{} exact, {extra} that ClrMD misses", own.len()));
    }
}

fn oom(dump: &Known, clrmd: &Value, f: &mut Findings) {
    let (exit, ours) = ask(&dump.path, &["oom"]);
    // How much of a limit is committed is unknown without the lists of segments.
    let limit = &ours["data"]["limit"];
    let expected = if limit.is_object() && limit["committed_bytes"].is_null() { Exit::Partial } else { Exit::Ok };
    if exit != expected {
        f.wrong("oom", format!("{exit:?}: {}", ours["warnings"]));
        return;
    }
    let theirs = list(&clrmd["oom"]["heaps"]);
    let mut own = BTreeMap::new();
    let mut expected = BTreeMap::new();
    for h in theirs {
        let row = if h["has_oom"] == true {
            let reason = match h["reason"].as_str().unwrap() {
                "Budget" => "budget",
                "CantCommit" => "cant-commit",
                "CantReserve" => "cant-reserve",
                "LOH" => "loh",
                "LowMem" => "low-mem",
                "UnproductiveFullGC" => "unproductive-full-gc",
                other => other,
            };
            let loh = &h["loh"];
            format!("{reason} {} {} {} {} {loh}", h["alloc_size"], h["size"], h["available_pagefile_mb"], h["gc_index"])
        } else {
            "none".to_string()
        };
        expected.insert(h["index"].to_string(), row);
    }
    for h in list(&ours["data"]["heaps"]) {
        let row = if h["reason"] == "none" {
            "none".to_string()
        } else {
            fields_plain(h, &["reason", "alloc_size", "size", "available_pagefile_mb", "gc_index", "loh"])
        };
        own.insert(h["heap"].to_string(), row);
    }
    if theirs.is_empty() {
        f.note("oom", format!("{} heaps (no ClrMD answer)", own.len()));
    } else {
        f.same("oom", &own, &expected);
    }
}

fn threads(dump: &Known, clrmd: &Value, f: &mut Findings) {
    let (exit, ours) = ask(&dump.path, &["threads"]);
    let theirs = list(&clrmd["threads"]["threads"]);
    if theirs.is_empty() {
        f.note("threads", format!("{} (no ClrMD answer)", list(&ours["data"]["threads"]).len()));
        return;
    }
    // A mini dump may not have the memory for names of threads.
    if exit != Exit::Ok && (dump.kind != "mini" || exit != Exit::Partial) {
        f.wrong("threads", format!("{exit:?}: {}", ours["warnings"]));
        return;
    }
    let nameless = |address: &Value| theirs.iter().any(|t| t["exception"]["address"] == *address && t["exception"]["type"].is_null());
    let mut own = BTreeMap::new();
    for t in list(&ours["data"]["threads"]) {
        let os = t["os_id"].as_u64().unwrap_or(0);
        let exception =
            if t["exception"]["current"] == true { fields_plain(&t["exception"], &["address", "type"]) } else { "null null".into() };
        // Without metadata, ClrMD has no name; gcdump prints the token.
        let unnamed = nameless(&t["exception"]["address"]) && text(&t["exception"]["type"]).contains("!0x");
        let exception = if unnamed { format!("{} null", text(&t["exception"]["address"])) } else { exception };
        let context = |key: &str| if t[key].is_null() { "0x0".to_string() } else { text(&t[key]) };
        let row = format!(
            "{} {os} {} {} {} {} {exception} finalizer={}",
            t["managed_id"],
            text(&t["gc_mode"]),
            t["state_value"],
            context("alloc_pointer"),
            context("alloc_limit"),
            t["finalizer"],
        );
        own.insert(text(&t["address"]), row);
    }
    let mut expected = BTreeMap::new();
    for t in theirs {
        let row = format!(
            "{} {} {} {} {} {} {} finalizer={}",
            t["managed_id"],
            t["os_id"],
            t["gc_mode"].as_str().unwrap().to_lowercase(),
            t["state_value"],
            text(&t["alloc_ptr"]),
            text(&t["alloc_limit"]),
            fields_plain(&t["exception"], &["address", "type"]),
            t["finalizer"],
        );
        expected.insert(text(&t["address"]), row);
    }
    f.same("threads", &own, &expected);
    let rows = list(&ours["data"]["threads"]);
    if dump.scenario == "crash" {
        // The crashed thread is the one for which ClrMD shows an exception.
        let crashed: Vec<&Value> = rows.iter().filter(|t| t["crashed"] == true).collect();
        let theirs = theirs.iter().find(|t| !t["exception"].is_null()).map(|t| (text(&t["os_id"]), text(&t["exception"]["address"])));
        let own = crashed.first().map(|t| (text(&t["os_id"]), text(&t["exception"]["address"])));
        if crashed.len() != 1 || own != theirs {
            f.wrong("crash", format!("{own:?}, expected {theirs:?}"));
        } else {
            f.note("crash", format!("thread {} named", text(&crashed[0]["os_id"])));
        }
    } else if rows.iter().any(|t| t["crashed"] == true) {
        f.wrong("crash", "no thread crashed here".into());
    }
    if let Some(n) = dump.truth.as_ref().filter(|_| dump.scenario == "threads").and_then(|t| t["threads"].as_u64()) {
        // The program names its threads lab-0, lab-1 …
        let missing = (0..n).filter(|i| !rows.iter().any(|t| t["name"] == format!("lab-{i}"))).count();
        if missing == 0 { f.note("names", format!("{n} threads named")) } else { f.wrong("names", format!("{missing} of {n} missing")) }
    }
}
