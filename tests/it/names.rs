//! Names for people: one text for each method or type in every command, and different texts for different ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gcdump::cli::Screen;
use serde_json::Value;

use crate::common::{self, ask, run, run_on};

/// Widths of terminals.
const WIDTHS: [usize; 3] = [80, 120, 200];

fn corpus(name: &str) -> PathBuf {
    format!("dumps/corpus/{name}.dmp.zst").into()
}

/// Every dump of the repository, except those of programs whose stacks are not described.
fn all() -> Vec<PathBuf> {
    let files = std::fs::read_dir("dumps/corpus").unwrap().map(|entry| entry.unwrap().path());
    let described = |path: &PathBuf| path.to_string_lossy().ends_with(".dmp.zst") && !path.to_string_lossy().contains("/aot");
    let mut dumps: Vec<PathBuf> = files.filter(described).collect();
    dumps.sort();
    assert!(dumps.len() > 40, "{dumps:?}");
    dumps
}

/// Every `n`th dump of [`all`], and one with lambdas and one with async methods; in a full run, all of them.
fn some(n: usize) -> Vec<PathBuf> {
    let named = ["net10-wks-starve-heap", "net10-wks-asyncmix-heap"].map(corpus);
    let sampled = common::sample(all(), n);
    let further: Vec<PathBuf> = named.into_iter().filter(|path| !sampled.contains(path)).collect();
    [sampled, further].concat()
}

/// Decompresses a dump of the repository, which takes longer than most commands.
fn unpacked(path: &Path) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    zstd::stream::copy_decode(std::fs::File::open(path).unwrap(), &mut file).unwrap();
    file
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The identity by which frames are merged: the method, or the type of a runtime frame without one.
fn identity(frame: &Value) -> String {
    frame["method_desc"].as_str().map_or_else(|| format!("[{}]", text(frame, "frame_type")), String::from)
}

/// Returns the identities of a thread's merged frames, outermost first, with recursion as the methods of its cycle.
fn merged_frames(thread: &Value) -> Vec<String> {
    let frames = list(thread, "frames");
    let number = |v: &Value, key: &str| usize::try_from(v[key].as_u64().unwrap()).unwrap();
    let first = frames.iter().position(|f| f["kind"] == "managed").unwrap_or(frames.len());
    let (mut kept, mut folded) = (Vec::new(), 0);
    for (i, f) in frames.iter().enumerate() {
        if let Some(repeat) = list(thread, "repeats").iter().find(|r| number(r, "first") == i) {
            kept.push(text(repeat, "cycle").to_string());
            folded = i + number(repeat, "frames") * number(repeat, "times");
        }
        if i >= folded && (f["kind"] == "managed" || i + 1 == first) {
            kept.push(identity(f));
        }
    }
    kept.reverse();
    kept
}

#[test]
fn merged_stacks_never_fold_two_methods() {
    let compare = |packed: &PathBuf| {
        let file = unpacked(packed);
        let path = file.path();
        let (_, single) = ask(path, &["stacks"]);
        let (_, merged) = ask(path, &["stacks", "--merge"]);
        let mut expected: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for thread in list(&single["data"], "threads") {
            let mut way = Vec::new();
            for frame in merged_frames(thread).into_iter().take(1024) {
                way.push(frame);
                *expected.entry(way.clone()).or_default() += 1;
            }
        }
        let (mut found, mut way): (BTreeMap<Vec<String>, u64>, Vec<String>) = Default::default();
        for row in list(&merged["data"], "merged") {
            way.truncate(usize::try_from(row["depth"].as_u64().unwrap()).unwrap());
            way.push(row["method_desc"].as_str().unwrap_or_else(|| text(row, "frame")).into());
            *found.entry(way.clone()).or_default() += row["threads"].as_u64().unwrap();
        }
        assert_eq!(found, expected, "{}", packed.display());
        found.len()
    };
    let frames: usize =
        common::each(&all().into_iter().filter(|dump| crate::corpus::has_stacks(dump)).collect::<Vec<_>>(), compare).into_iter().sum();
    assert!(frames > 500, "{frames}");
}

#[test]
fn lambdas_of_one_method_have_different_texts() {
    let path = corpus("net10-wks-deadlock-heap");
    let (_, merged) = ask(&path, &["stacks", "--merge"]);
    let rows: Vec<&Value> =
        list(&merged["data"], "merged").iter().filter(|r| text(r, "frame").starts_with("StateLab.Deadlock.Go.")).collect();
    assert_eq!(rows.len(), 25);
    assert!(rows.iter().all(|r| r["threads"] == 1 && text(r, "method").contains(".<Go>b__")), "{rows:?}");
    let folded = run(&["stacks", "--format", "folded", "--no-local-files", path.to_str().unwrap()]).out;
    let lambdas: BTreeSet<&str> = folded.lines().flat_map(|l| l.split(';')).filter(|f| f.starts_with("StateLab.Deadlock.Go.")).collect();
    assert_eq!(lambdas.len(), 25, "{folded}");
    let (_, locks) = ask(&path, &["locks"]);
    let methods: BTreeSet<&str> = list(&locks["data"], "waits").iter().map(|w| text(w, "display")).collect();
    assert_eq!((methods.len(), list(&locks["data"], "waits").len()), (25, 25), "{methods:?}");
    assert!(methods.contains("StateLab.Deadlock.Go.b__3_0 (lambda)"), "{methods:?}");
}

/// Adds the text that each object in `value` shows for a `MethodDesc`.
fn shown(value: &Value, command: &str, to: &mut BTreeMap<String, BTreeMap<String, String>>) {
    match value {
        Value::Array(all) => all.iter().for_each(|v| shown(v, command, to)),
        Value::Object(all) => {
            let display = all.get("display").or_else(|| all.get("frame")).and_then(Value::as_str);
            // An explicit frame comes before the method that it calls.
            let display =
                display.map(|text| text.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(text, |(_, method)| method));
            let runtime = all.get("kind").is_some_and(|kind| kind == "runtime");
            // Frames show the instance of shared code, and a generated import is shown as its method.
            let shared = |text: &str| text.contains('<') || text.contains("__PInvoke");
            if let Some((desc, display)) =
                all.get("method_desc").and_then(Value::as_str).zip(display).filter(|(_, d)| !runtime && !shared(d))
            {
                to.entry(desc.into()).or_default().insert(display.into(), command.into());
            }
            all.values().for_each(|v| shown(v, command, to));
        }
        _ => {}
    }
}

#[test]
fn a_method_has_one_text_in_every_command() {
    let commands: [&[&str]; 8] = [
        &["stacks"],
        &["stacks", "--merge"],
        &["threads"],
        &["exceptions"],
        &["locks"],
        &["type", "--methods", "*Program*"],
        &["type", "--methods", "StateLab.*"],
        &["objects", "--type", "System.Action*"],
    ];
    let compare = |packed: &PathBuf| {
        let file = unpacked(packed);
        let path = file.path();
        let mut texts = BTreeMap::new();
        for command in commands {
            let answer = run(&[command, &["--json", "--no-local-files", path.to_str().unwrap()]].concat());
            if let Ok(answer) = serde_json::from_str::<Value>(&answer.out) {
                shown(&answer["data"], command[0], &mut texts);
            }
        }
        let several: Vec<_> = texts.values().filter(|texts| texts.len() > 1).collect();
        assert!(several.is_empty(), "{}: {several:?}", packed.display());
        texts.len()
    };
    let methods: usize = common::each(&some(10), compare).into_iter().sum();
    assert!(methods > common::cases(20, 200), "{methods}");
}

#[test]
fn findings_roots_and_values_use_the_same_texts() {
    let of = |name: &str, command: &[&str]| run(&[command, &["--no-local-files", corpus(name).to_str().unwrap()]].concat()).out;
    // A frame that holds an object, the method that threw an exception, the method of a delegate, the method of a lock's holder.
    let frames = of("net10-wks-deadlock-heap", &["stacks"]);
    let roots = of("net10-wks-deadlock-heap", &["roots", "--top", "0"]);
    for text in [&frames, &roots] {
        assert!(text.contains("StateLab.Deadlock.Go.b__3_0 (lambda)"), "{text}");
        assert!(!text.contains(">b__") && !text.contains("lambda in"), "{text}");
    }
    let pool = of("net10-wks-starve-heap", &["pool"]);
    assert!(pool.contains(" async StateLab.Starve.Step  StateLab.Starve.Go.b__5_1 (lambda)"), "{pool}");
    let threads = of("net10-wks-starve-heap", &["threads", "--waits"]);
    assert!(threads.contains("(async StateLab.Starve.Step)"), "{threads}");
    let found = of("net10-wks-starve-heap", &["analyze"]);
    assert!(found.contains("(most: 4 × task async StateLab.Starve.Step,"), "{found}");
}

#[test]
fn methods_are_selected_by_both_of_their_names() {
    let path = corpus("net10-wks-deadlock-heap");
    let ids = |method: &str| {
        let (_, answer) = ask(&path, &["stacks", "--method", method]);
        list(&answer["data"], "threads").iter().map(|t| t["managed_id"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let one = ids("StateLab.Deadlock.Go.b__3_4 (lambda)");
    assert_eq!(one.len(), 1);
    assert_eq!(ids("StateLab.Deadlock.Go.b__3_4"), one, "without what it is");
    assert_eq!(ids("*.<Go>b__4"), one, "as the compiler named it");
    assert_eq!(ids("<Go>b__").len(), 25);
    let (_, answer) = ask(&corpus("net10-wks-asyncmix-heap"), &["async", "--method", "StateLab.AsyncMix.Go.b__29_6 (lambda)"]);
    let chains = list(&answer["data"], "chains");
    let frame = &chains[0]["frames"][0];
    assert_eq!((chains.len(), text(frame, "method")), (1, "StateLab.AsyncMix+<>c.<Go>b__29_6"));
}

#[test]
fn boxes_of_asynchronous_methods_are_named_after_them() {
    let path = corpus("net10-wks-asyncmix-heap");
    let file = path.to_str().unwrap();
    let exact = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<System.Threading.Tasks.VoidTaskResult>+AsyncStateMachineBox<StateLab.AsyncMix+<Fan>d__18>";
    let objects = |pattern: &str| {
        let (_, answer) = ask(&path, &["objects", "--type", pattern]);
        list(&answer["data"], "objects").iter().map(|o| text(o, "address").to_string()).collect::<Vec<_>>()
    };
    let fan = objects(exact);
    assert_eq!(fan.len(), 5);
    for pattern in ["async StateLab.AsyncMix.Fan", "async AsyncMix.Fan", "async StateLab.AsyncMix.F?n"] {
        assert_eq!(objects(pattern), fan, "{pattern}");
    }
    assert!(objects("async *").len() > 30);
    let (_, answer) = ask(&path, &["stat", "--type", "async StateLab.AsyncMix.Fan"]);
    assert_eq!(answer["data"]["types"][0]["type"], exact, "JSON has the name of the runtime");
    let csv = run(&["stat", "--type", "async StateLab.AsyncMix.Fan", "--format", "csv", "--no-local-files", file]).out;
    assert!(csv.contains(exact), "{csv}");
    let one = fan[0].as_str();
    for command in [
        &["stat", "--type", "async *"][..],
        &["objects", "--type", "async *"],
        &["object", one],
        &["path", one],
        &["retained", "--object", one],
        &["where", one],
        &["near", one],
        &["roots", "--type", "async *"],
        &["unreachable", "--objects"],
    ] {
        let ran = run(&[command, &["--no-local-files", file]].concat());
        // The exact name is an additional fact.
        let rest: Vec<&str> = ran.out.lines().filter(|l| !l.starts_with("Exact type ")).collect();
        assert!(!rest.iter().any(|l| l.contains("AsyncStateMachineBox<StateLab")), "{command:?}:\n{}", ran.out);
        assert!(
            ran.out.contains("async StateLab.AsyncMix.") || command[0] == "unreachable" || command[0] == "roots",
            "{command:?}:\n{}{}",
            ran.out,
            ran.err
        );
    }
}

/// Returns the cells of the column `title`, whose rows begin below the heading; cells of several lines are joined.
fn column(text: &str, title: &str) -> Vec<Vec<String>> {
    let mut tables = Vec::new();
    let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let mut at = 0;
    while at < lines.len() {
        let line: String = lines[at].iter().collect();
        at += 1;
        let Some(byte) = line.find(title).filter(|b| line[..*b].ends_with("  ") || *b == 0) else { continue };
        if line[byte + title.len()..].starts_with(|c| c != ' ') || line.chars().any(char::is_lowercase) {
            continue;
        }
        let from = line[..byte].chars().count();
        let after: String = line.chars().skip(from + title.chars().count()).collect();
        let to = after.find(|c: char| c != ' ').map(|n| from + title.chars().count() + n);
        let mut cells: Vec<String> = Vec::new();
        while at < lines.len() && !lines[at].is_empty() && !lines[at].starts_with(&['c', 'o', 'l', 'u', 'm', 'n']) {
            let row = &lines[at];
            let part = |range: &[char]| range.iter().collect::<String>().trim_end().to_string();
            let cell = part(row.get(from..to.unwrap_or(row.len()).min(row.len())).unwrap_or_default());
            let continued = from > 0 && row.iter().take(from).all(|c| *c == ' ');
            match cells.last_mut().filter(|_| continued) {
                Some(last) => last.push_str(&format!("\n{cell}")),
                None => cells.push(cell),
            }
            at += 1;
        }
        tables.push(cells);
    }
    tables
}

/// Whether rows of different names have different cells.
fn distinct(path: &Path, width: usize, command: &[&str], cells: &[String], names: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    if cells.len() != names.len() {
        wrong.push(format!("{} {width} {command:?}: {} cells of {} rows", path.display(), cells.len(), names.len()));
    }
    let mut known: BTreeMap<&String, &String> = BTreeMap::new();
    for (cell, name) in cells.iter().zip(names).filter(|(_, name)| !name.is_empty()) {
        let other = known.entry(cell).or_insert(name);
        if *other != name {
            wrong.push(format!("{} {width} {command:?}: {cell:?} is {other} and {name}", path.display()));
        }
    }
    wrong
}

#[test]
fn rows_of_different_names_are_different_on_every_terminal() {
    // The command, the list of its answer, the names in it, the title.
    type Case = (&'static [&'static str], &'static str, fn(&Value) -> String, &'static str);
    let exact = |row: &Value| text(row, "type").to_string();
    let method = |row: &Value| text(row, "display").to_string();
    let cases: [Case; 5] = [
        (&["stat", "--top", "0"], "types", exact, "TYPE"),
        (&["locks", "--top", "0"], "waits", method, "METHOD"),
        (&["pool"], "workers", |row| format!("{} {}", text(row, "object"), text(row, "type")), "BLOCKED BY"),
        (&["pool"], "groups", method, "DESCRIPTION"),
        (&["async", "--tasks", "--top", "0"], "tasks", exact, "TYPE"),
    ];
    let compare = |packed: &PathBuf| {
        let file = unpacked(packed);
        let path = file.path();
        let mut wrong = Vec::new();
        for (command, rows, name, title) in cases {
            let answer = run(&[command, &["--json", "--no-local-files", path.to_str().unwrap()]].concat());
            let Ok(answer) = serde_json::from_str::<Value>(&answer.out) else { continue };
            let names: Vec<String> = list(&answer["data"], rows).iter().filter(|row| row["free"] != true).map(name).collect();
            for width in WIDTHS.into_iter().filter(|_| !names.is_empty()) {
                let shown = run_on(Screen::terminal(Some(width), None), &[command, &["--no-local-files", path.to_str().unwrap()]].concat());
                // A column may be dropped if the width is too small.
                let tables = column(&shown.out, title);
                // A line of text may follow.
                if let Some(cells) = tables.iter().filter(|c| c.len() <= names.len() + 1).find_map(|cells| cells.get(..names.len())) {
                    wrong.extend(distinct(packed, width, command, cells, &names));
                } else if width == 200 {
                    let found: Vec<usize> = tables.iter().map(Vec::len).collect();
                    wrong.push(format!("{} {width} {command:?}: {title} of {} rows in {found:?}", packed.display(), names.len()));
                }
            }
        }
        // The frames of merged stacks, which are indented below others.
        let answer = if crate::corpus::has_stacks(packed) { ask(path, &["stacks", "--merge"]).1 } else { Value::Null };
        let names: Vec<String> = list(&answer["data"], "merged").iter().map(|row| text(row, "frame").to_string()).collect();
        for width in WIDTHS.into_iter().filter(|_| !names.is_empty()) {
            let shown = run_on(
                Screen::terminal(Some(width), None),
                &["stacks", "--merge", "--framework", "--no-local-files", path.to_str().unwrap()],
            );
            let cells = column(&shown.out, "FRAME").into_iter().next().unwrap_or_default();
            wrong.extend(distinct(packed, width, &["stacks", "--merge"], &cells, &names));
        }
        wrong
    };
    let wrong: Vec<String> = common::each(&some(40), compare).concat();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn columns_of_fields_are_titled_as_in_the_source() {
    let path = corpus("net10-wks-http-heap");
    let args =
        ["objects", "--type", "System.Net.Http.HttpRequestMessage", "--fields", "_requestUri", "--no-local-files", path.to_str().unwrap()];
    let shown = run(&args).out;
    assert!(shown.lines().next().unwrap().ends_with(" _requestUri"), "{shown}");
}
