//! The process: how it was started, which settings and limits were in force, and where its memory is.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{ask, each, every_dump, needs_lab, needs_shared, run, sample};
use crate::corpus;
use crate::harness::Tested;
use gcdump::cli::Exit;

const LIMIT: &str = "DOTNET_GCHeapHardLimit";

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn title(path: &Path, id: &str) -> String {
    let (_, answer) = ask(path, &["analyze", "--only", id]);
    text(&answer["data"]["findings"][0], "title").to_string()
}

#[test]
fn info_describes_the_process() {
    let path = corpus::dump("net10-wks-holders-heap");
    let (exit, info) = ask(&path, &["info"]);
    let data = &info["data"];
    assert_eq!(exit, Exit::Ok);
    assert_eq!(data["arguments"].as_array().map(Vec::len), Some(1), "{}", data["arguments"]);
    let setting = json!({"name": LIMIT, "value": "0x6123000", "source": "environment"});
    assert!(data["settings"].as_array().unwrap().contains(&setting), "{}", data["settings"]);
    assert_eq!(data["gc"]["limit"]["hard_limit_bytes"], 0x612_3000);
    assert_eq!(data["gc"]["limit"]["container_bytes"], Value::Null);

    let page = run(&["info", path.to_str().unwrap()]).out;
    for line in [
        "program       holder, process ",
        "command line  /app/net10h/holder",
        "gc limit      97.1 MiB, ",
        "settings      ",
        "gc heap       ",
    ] {
        assert!(page.lines().any(|l| l.starts_with(line)), "{line}: {page}");
    }
    assert!(!page.contains("contracts") && !page.contains("layouts"), "{page}");
    let verbose = run(&["info", "--verbose", path.to_str().unwrap()]).out;
    assert!(verbose.contains("\ncontracts ") && verbose.contains("\nlayouts ") && verbose.contains("This dump answers:"), "{verbose}");
}

#[test]
fn env_lists_what_the_process_was_started_with() {
    let path = corpus::dump("net10-wks-crash-heap");
    let (exit, answer) = ask(&path, &["env"]);
    let data = &answer["data"];
    assert_eq!((exit, text(data, "source")), (Exit::Ok, "initial-stack"));
    assert_eq!(data["arguments"][1], "crash");
    assert!(text(data, "command_line").starts_with("/app/net10/lab crash --out "), "{data}");
    let has = |list: &str, name: &str, value: &str| data[list].as_array().unwrap().contains(&json!({"name": name, "value": value}));
    assert!(has("environment", "DOTNET_gcServer", "0") && has("properties", "System.GC.Concurrent", "true"), "{data}");

    // A mini dump has the stack and no objects.
    let (exit, answer) = ask(&corpus::dump("net10-wks-basics-mini"), &["env"]);
    assert_eq!((exit, &answer["data"]["properties"]), (Exit::Partial, &Value::Null));
    assert_eq!(answer["data"]["arguments"][1], "basics");
}

/// Windows has the command line and the environment in the process parameters.
#[test]
fn windows_has_the_parameters_of_the_process() -> Tested {
    let (dumps, _) = every_dump(|row| row["name"] == "win-net10-wks-basics-full")?;
    for dump in &dumps {
        let (exit, answer) = ask(&dump.path, &["env"]);
        let data = &answer["data"];
        assert_eq!((exit, text(data, "source"), &data["arguments"]), (Exit::Ok, "process-parameters", &Value::Null));
        assert!(text(data, "command_line").ends_with("--label win-net10-wks-basics-full --type full --n 1000"), "{data}");
        let limit = json!({"name": LIMIT, "value": "0x4000000"});
        assert!(data["environment"].as_array().unwrap().contains(&limit), "{data}");
    }
    Ok(())
}

/// The limit is computed from numbers that the GC derives from it, so the environment can confirm it.
#[test]
fn the_limit_of_the_gc_is_the_one_in_the_environment() {
    let mut limited = 0;
    for path in sample(corpus::dumps(), 12).into_iter().chain([corpus::dump("net10-wks-holders-heap"), corpus::dump("net10-svr-oom-heap")])
    {
        let (_, info) = ask(&path, &["info"]);
        let data = &info["data"];
        let found = data["gc"]["limit"]["hard_limit_bytes"].as_u64();
        let set = data["settings"].as_array().unwrap().iter().find(|s| text(s, "name") == LIMIT);
        let set = set.and_then(|s| u64::from_str_radix(text(s, "value").trim_start_matches("0x"), 16).ok());
        if let (Some(found), Some(set)) = (found, set) {
            assert_eq!(found, set, "{}", path.display());
            limited += 1;
        }
        // With segments the limit is not found.
        let segments = data["gc"]["layout"] == "segments";
        assert!(
            found.is_some() == set.is_some() || segments || data["arguments"].is_null() || data["gc"].is_null(),
            "{}: {found:?} {set:?}",
            path.display()
        );
    }
    assert!(limited >= 2);
}

#[test]
fn a_failed_allocation_names_the_limit() -> Tested {
    let shared = needs_shared()?;
    let limit = shared.join("../cases/limit10.dmp.zst");
    let said = title(&limit, "oom");
    let begin = "An allocation failed after GC #12: the GC heap has reached its limit of 64.0 MiB, 62.8 MiB committed (98.2 %)";
    assert!(said.starts_with(begin) && !said.contains("bug"), "{said}");
    let (_, oom) = ask(&limit, &["oom"]);
    assert_eq!(oom["data"]["limit"]["hard_limit_bytes"], 64 << 20);
    let said = title(&corpus::dump("net10-svr-oom-heap"), "oom");
    assert!(said.starts_with("3,000,080-byte allocation failed after GC #5: the GC heap has reached its limit of 64.0 MiB, "), "{said}");
    Ok(())
}

/// An earlier version missed the leak because a garbage array refers to the handlers, and described containers by their nodes.
#[test]
fn containers_are_described_by_their_elements() {
    let path = corpus::dump("net10-wks-holders-heap");
    let (exit, answer) = ask(&path, &["analyze", "--min-bytes", "400K", "--min-share", "10"]);
    let findings = answer["data"]["findings"].as_array().unwrap();
    assert_eq!(exit, Exit::Ok, "{answer}");
    let all = |id: &str| findings.iter().filter(|f| text(f, "id") == id).map(|f| text(f, "title")).collect::<Vec<_>>();
    let [event] = all("event-leaks")[..] else { panic!("{findings:?}") };
    assert!(event.starts_with("An event keeps 1,000 objects alive: Changed of Shop.Feed at "), "{event}");
    assert!(event.contains("1,000 of 1,000 targets, mostly Shop.Screen, are held by nothing else; it retains 1.0 MiB"), "{event}");
    let suspects = all("suspects");
    assert!(
        suspects.iter().any(|t| t.contains("held by Shop.Program.orders") && t.ends_with(": 2,000 entries Shop.OrderKey → Shop.Order")),
        "{suspects:?}"
    );
    assert!(
        suspects.iter().any(|t| t.contains("held by Shop.Program.jobs") && t.ends_with(": 1,500 elements of Shop.Order")),
        "{suspects:?}"
    );
    // Objects that the event and the source with the registrations retain are not suspects.
    assert!(!suspects.iter().any(|t| t.contains("Shop.Feed") || t.contains("CancellationTokenSource")), "{suspects:?}");
    let [source] = all("registrations")[..] else { panic!("{findings:?}") };
    let registered = "held by Shop.Program.life, has 1,100 registrations, 1,100 of them for Shop.Watcher.Stop(); it retains 528.6 KiB (";
    assert!(source.contains(registered), "{source}");
    let [timeouts] = all("timers")[..] else { panic!("{findings:?}") };
    assert!(timeouts.starts_with("1,100 CancellationTokenSources with a timeout were not disposed of"), "{timeouts}");
    assert!(timeouts.contains("; the timers retain 103.1 KiB ("), "{timeouts}");

    // Without the graph, it is unknown whether what refers to the targets is garbage.
    let (exit, quick) = ask(&path, &["analyze", "--no-graph", "--only", "event-leaks"]);
    assert_eq!((exit, &quick["data"]["findings"], &quick["data"]["complete"]), (Exit::Partial, &json!([]), &json!(false)));
    let why = "whether 1,000 targets of events are held by anything else is unknown without the graph of the heap";
    let uncertain = &quick["data"]["uncertain"][0];
    assert_eq!((text(uncertain, "id"), text(uncertain, "reason")), ("event-leaks", why), "{quick}");
    assert_eq!(text(&quick["warnings"][0], "message"), why, "{quick}");
}

/// The lab's program records how it allocated native memory.
/// The start and the size of the heap in a map of memory, as the kernel writes it in `/proc`.
fn kernel_heap(maps: &str) -> (&str, u64) {
    let (start, rest) = maps.lines().find(|l| l.ends_with("[heap]")).unwrap().split_once('-').unwrap();
    let [start_at, end] = [start, rest.split(' ').next().unwrap()].map(|text| u64::from_str_radix(text, 16).unwrap());
    (start, end - start_at)
}

#[test]
fn native_memory_is_what_the_program_allocated() -> Tested {
    let lab = needs_lab()?.join("net10");
    let folder = tempfile::tempdir().unwrap();
    let mut program = std::process::Command::new(lab.join("cases"));
    program.args(["native", "--n", "4", "--out", ".", "--label", "native"]).current_dir(folder.path()).env_clear();
    program.env("PATH", "/usr/bin").env("DOTNET_gcServer", "0").env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    let mut child = program.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
    let dump = folder.path().join("native.dmp");
    let made =
        std::process::Command::new(lab.join("createdump")).arg("-h").arg("-f").arg(&dump).arg(child.id().to_string()).output().unwrap();
    let maps_after = std::fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("ready") && made.status.success(), "{line} {made:?}");
    let truth: Value = serde_json::from_slice(&std::fs::read(folder.path().join("native.truth.json")).unwrap()).unwrap();

    let (_, answer) = ask(&dump, &["memory"]);
    let malloc = &answer["data"]["malloc"];
    let sizes: Vec<(u64, u64)> =
        malloc["sizes"].as_array().unwrap().iter().map(|s| (s["size"].as_u64().unwrap(), s["count"].as_u64().unwrap())).collect();
    // A block has a word before it and is rounded to 16 bytes; blocks of pages are mapped with an additional page.
    let expected = |each: u64| if each >= 1 << 20 { each + 4096 } else { (each + 8).next_multiple_of(16) };
    for row in truth["allocated"].as_array().unwrap().iter().filter(|row| text(row, "what").starts_with("malloc of the main thread")) {
        let (each, count) = (row["each"].as_u64().unwrap(), row["count"].as_u64().unwrap());
        let found = sizes.iter().find(|(size, _)| *size == expected(each)).map_or(0, |(_, count)| *count);
        assert!(found >= count && found <= count + count / 4 + 4000, "{row}: {found} in {sizes:?}");
    }
    // 99 of 100 blocks of 200 bytes were freed again: 20 MB between those that were not.
    let brk = malloc["heaps"].as_array().unwrap().iter().find(|h| h["kind"] == "brk").unwrap();
    let free = brk["parts"]["free"]["bytes"].as_u64().unwrap();
    assert!((19_000_000..23_000_000).contains(&free), "{brk}");
    // Four threads have an arena of 4 MB each.
    let arenas = malloc["heaps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|h| h["kind"] == "arena" && h["parts"]["used"]["bytes"].as_u64() > Some(4_000_000));
    assert_eq!(arenas.count(), 4, "{malloc}");

    // The kernel's numbers for the heap that it grows, which may grow until the dump is written.
    let (bytes, grown) = (brk["bytes"].as_u64().unwrap(), kernel_heap(&maps_after).1);
    let (start, recorded) = kernel_heap(text(&truth, "smaps"));
    assert!(text(brk, "start") == format!("0x{start}") && (recorded..=grown).contains(&bytes), "{recorded} {brk} {grown}");

    // 64 MB were mapped and never touched, like most of each stack.
    let kinds = answer["data"]["kinds"].as_array().unwrap();
    let zero = |kind: &str| kinds.iter().find(|k| k["kind"] == kind).and_then(|k| k["zero_bytes"].as_u64()).unwrap();
    assert!(zero("anonymous") >= 64 << 20 && zero("stack") > 40 << 20, "{kinds:?}");
    let said = title(&dump, "native-memory");
    assert!(
        said.contains(": malloc has ") && said.contains(" in the brk heap, ") && said.contains(" of it zeros, mostly never written"),
        "{said}"
    );
    Ok(())
}

#[test]
fn several_earlier_dumps_show_a_trend() {
    let pair = ["before", "after"].map(|side| corpus::dump(&format!("net10-wks-leak-heap.{side}")));
    let [before, after] = [pair[0].to_str().unwrap(), pair[1].to_str().unwrap()];
    let (exit, answer) = ask(&pair[1], &["analyze", "--since", before, "--since", after]);
    // Trends are between the first and the last dump; the same dump twice is not steady growth.
    let trends = answer["data"]["trends"].as_array().unwrap();
    let of = |name: &str| trends.iter().find(|t| text(t, "name") == name).map(|t| text(t, "trend"));
    assert_eq!((exit, of("bytes")), (Exit::Ok, Some("varies")), "{trends:?}");
    let first = &answer["data"]["findings"][0];
    assert_eq!((text(first, "id"), text(first, "type")), ("growth", "Lab.Leaky"), "{first}");
    assert!(!text(first, "title").contains("more in each dump"), "{first}");
    let (_, one) = ask(&pair[1], &["analyze", "--since", before]);
    assert_eq!(one["data"]["trends"], json!([]));
    let (_, diff) = ask(&pair[0], &["diff", after]);
    let names: Vec<&str> = diff["data"]["summary"].as_array().unwrap().iter().map(|m| text(m, "name")).collect();
    assert!(names.contains(&"native") && names.contains(&"tasks"), "{names:?}");
}

/// No line of a page about a process contradicts another command.
#[test]
fn limits_and_arguments_of_shared_dumps_agree() -> Tested {
    let (dumps, _) = every_dump(|_| true)?;
    let wrong: Vec<String> = each(&dumps, |d| {
        let ran = run(&["info", "--json", "--no-local-files", d.path.to_str().unwrap()]);
        let data = if ran.out.is_empty() { Value::Null } else { ran.json()["data"].take() };
        let limit = data["gc"]["limit"]["hard_limit_bytes"].as_u64();
        let set = data["settings"].as_array().into_iter().flatten().find(|s| text(s, "name") == LIMIT);
        let set = set.and_then(|s| u64::from_str_radix(text(s, "value").trim_start_matches("0x"), 16).ok());
        let contradiction = limit.is_some() && set.is_some() && limit != set;
        let unasked = limit.is_some() && set.is_none() && !data["arguments"].is_null();
        (contradiction || unasked).then(|| format!("{}: {limit:?} {set:?}", d.name))
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    Ok(())
}
