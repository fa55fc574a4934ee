//! Command lines that people type from habit, and the results: the command that runs, or a message that helps.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use gcdump::cli::{Exit, HABITS, To};

use crate::common::run;

const DUMP: &str = "dumps/net10-wks-basics-heap.dmp.zst";
const LATER: &str = "dumps/corpus/net10-svr-basics-heap.dmp.zst";

/// Splits a line into words: `D` is the dump, `E` a later one, `~` a space within a word.
fn words(line: &str) -> Vec<String> {
    let word = |w: &str| match w {
        "D" => DUMP.to_string(),
        "E" => LATER.to_string(),
        w if w.starts_with('~') => w.to_string(),
        w => w.replace('~', " "),
    };
    line.split(' ').map(word).collect()
}

/// Lines with the command that they run as.
const RUN: &[(&str, &str)] = &[
    ("!analyze -v D", "analyze"),
    ("!heap -s D", "heap"),
    ("!strings D", "strings"),
    ("!sos.dumpheap -stat D", "stat"),
    ("sos dumpheap -stat D", "stat"),
    ("dumpheap /d -stat D", "stat"),
    ("dumpobj /d Lab.Program.Keep D", "object"),
    // A decimal address.
    ("object 0n139850271549384 D", "object"),
    ("k D", "stacks"),
    ("bt D", "stacks"),
    ("--top 3 stat D", "stat"),
    ("-n 3 D stat", "stat"),
    ("dumpasync -stacks D", "async"),
    ("dumpasync -waiting D", "async"),
    ("stat -n 20 D", "stat"),
    ("stat -t String D", "stat"),
    ("stat -s count D", "stat"),
    ("stat --limit 3 D", "stat"),
    ("stat --gen gen2 D", "stat"),
    ("handles -Type Pinned D", "handles"),
    ("lm D", "modules"),
    ("modules D", "modules"),
    ("clrmodules D", "modules"),
    ("dumpmodule D", "modules"),
    ("dumpdomain D", "modules"),
    ("dumpassembly D", "modules"),
    ("path Lab.Program.Keep D", "path"),
    ("object Lab.Program.Keep D", "object"),
    ("retained --object Lab.Program.Keep D", "retained"),
    ("whatif --dead Lab.Program.Keep D", "whatif"),
    ("whatif Lab.Program.Keep D", "whatif"),
    ("path Lab.Node D", "path"),
    ("retained Lab.Node D", "retained"),
    ("statics Lab.Program D", "statics"),
    ("stacks Main D", "stacks"),
    ("stacks 1 D", "stacks"),
    ("D stacks 1", "stacks"),
    ("strings dog1 D", "strings"),
    ("args D", "env"),
    ("leaks D", "retained"),
    ("suspects D", "retained"),
    ("deadlocks D", "locks"),
    ("histogram D", "stat"),
    ("dominators D", "retained"),
    ("tree D", "retained"),
    ("summary D", "info"),
    ("crash D", "analyze"),
    ("compare D E", "diff"),
    ("diff --type Lab D E", "diff"),
    ("grep dog D", "strings"),
    ("analyze D E", "analyze"),
    ("objects --sort size --top 3 D", "objects"),
    ("stat --by module D", "stat"),
    ("stat --by gen D", "stat"),
    ("stat --type ConcurrentDictionary<int,Lab.Circle> D", "stat"),
    ("stat --type int[] D", "stat"),
    ("stat --type string D", "stat"),
    ("stat /^Lab/ D", "stat"),
    ("objects --where _size~>~3 --top 3 D", "objects"),
    ("exceptions --top 1 D", "exceptions"),
    ("threads --top 1 D", "threads"),
    ("stacks --top 1 D", "stacks"),
    ("locks --top 1 D", "locks"),
    ("pool --top 1 D", "pool"),
    ("threads --skip 1 D", "threads"),
    ("objects --offset 3 --top 2 D", "objects"),
    ("dumpheap -startatlowerbound -stat D", "stat"),
    ("eestack -n D", "stacks"),
    ("requests --top 1 D", "requests"),
    ("timers --top 1 D", "timers"),
    ("segments --top 1 D", "segments"),
    ("dumpheap 7f0000000000 7fffffffffff --top 3 D", "objects"),
    ("dumpheap -stat 0 7fffffffffff D", "stat"),
    ("dumpheap -live D", "retained"),
    ("dumpheap -dead D", "unreachable"),
    ("name2ee lab.dll!Lab.Node D", "type"),
    ("name2ee *!Lab.Node D", "type"),
    ("clrstack -l D", "stacks"),
    ("pe D", "exceptions"),
];

#[test]
fn habits_run_the_obvious_command() {
    for (line, command) in RUN {
        let mut args = words(line);
        args.extend(["--json".into(), "--no-local-files".into()]);
        let ran = run(&args);
        assert!(matches!(ran.exit, Exit::Ok | Exit::Partial), "{line}: {:?} {}", ran.exit, ran.err);
        assert_eq!(ran.json()["command"], *command, "{line}");
    }
}

/// Lines that are refused, or answered by "none", with a part of the output.
const REFUSED: &[(&str, Exit, &str)] = &[
    ("ps D", Exit::Usage, "dotnet-dump collect -p PID writes a dump"),
    ("find String D", Exit::Usage, "gcdump strings --like '*TEXT*' finds strings"),
    ("u D", Exit::Usage, "gcdump where IP names the method"),
    ("threadstate D", Exit::Usage, "gcdump threads names the flags"),
    ("xy D", Exit::Usage, "there is no command 'xy' (gcdump --help lists all)"),
    ("stacks --thread D", Exit::Usage, "stacks: --thread needs a value: stacks --thread ID dumps/"),
    ("object 139850271549384 D", Exit::Negative, "as a decimal number it is 0x7f316dc1e7c8, which is written 0n139850271549384"),
    ("exceptions 0x7f31 D", Exit::Negative, "there is no object at 0x7f31"),
    ("stat --type lab.* D", Exit::Negative, "ignoring case, it matches Lab."),
    ("stat --type Lab\\..* D", Exit::Negative, "as a regular expression, /Lab\\..*/, it matches Lab."),
    ("stat --type /(/ D", Exit::Usage, "is not a regular expression"),
    ("stat --type sbyte D", Exit::Negative, "no type matches 'sbyte' (System.SByte)"),
    ("type Lab.Nodes D", Exit::Negative, "did you mean Lab.Node"),
    ("objects --where Nonsuch D", Exit::Usage, "the name of a field"),
    ("objects --where Nonsuch~>~3 D", Exit::Negative, "no object has a field 'Nonsuch'"),
    ("objects --where Next.Idnex~>~3 D", Exit::Negative, "no object has a field 'Idnex', in Next.Idnex (gcdump type NAME lists fields)"),
    ("objects --where Next.Index.Value~>~3 D", Exit::Negative, "no object has a field 'Value', in Next.Index.Value"),
    ("objects --type Lab.Node --fields Next.Idnex D", Exit::Ok, "no object has a field 'Idnex', in Next.Idnex"),
    ("objects --sort retained D", Exit::Usage, "gcdump retained lists the objects that retain most"),
    ("objects --reverse D", Exit::Usage, "objects has no --reverse; --sort COLUMN lists amounts descending"),
    ("stat --exclude System D", Exit::Usage, "--where 'not type ~ \"System.*\"'"),
    ("strings --regex dog D", Exit::Usage, "strings has no --regex; a regular expression"),
    ("pool --depth 1 D", Exit::Usage, "pool has no --depth; it is an option of "),
    ("export D", Exit::Usage, "export: the format is missing: export FORMAT dumps/"),
    ("export --format chrome D", Exit::Usage, "export: invalid value 'chrome' of --format: export writes heapsnapshot, gcdump"),
    ("export --format=parquett D", Exit::Usage, "did you mean parquet?"),
    ("analyze --since D", Exit::Usage, "analyze: --since needs a value: analyze --since BEFORE dumps/"),
    ("info --modules D", Exit::Usage, "info: --modules needs a value: info --modules PATH dumps/"),
    ("objects --fields D", Exit::Usage, "objects: --fields needs a value: objects --fields"),
    (
        "object Lab.Program.Keep Lab.Program.Truth",
        Exit::Usage,
        "cannot read Lab.Program.Truth: the file does not exist; if it is an object, add the dump",
    ),
    ("exceptions DUMP", Exit::Usage, "exceptions: DUMP means the path of your dump: write it instead"),
    ("~0s D", Exit::Usage, "gcdump has no current thread"),
    ("heap nonsense D", Exit::Usage, "heap: 'nonsense' is neither an option nor a dump"),
    ("!do D", Exit::Usage, "object: the address is missing: object ADDRESS dumps/"),
];

#[test]
fn a_refusal_says_what_to_use() {
    for (line, exit, message) in REFUSED {
        let mut args = words(line);
        args.push("--no-local-files".into());
        let ran = run(&args);
        assert!(ran.exit == *exit && ran.err.contains(message), "{line}: {:?} {}", ran.exit, ran.err);
        assert!(!ran.err.contains("unexpected") && ran.err.lines().count() <= 6, "{line}: {}", ran.err);
    }
}

#[test]
fn no_habit_is_the_name_of_a_command_and_each_has_an_effect() {
    for habit in HABITS {
        for name in habit.names {
            assert!(!gcdump::cli::COMMANDS.iter().any(|c| c.name == *name), "{name}");
            let ran = run(&["help", *name]);
            match habit.to {
                To::Words(_) => assert!(ran.exit == Exit::Ok && !ran.out.is_empty(), "{name}: {}", ran.err),
                To::Refused(why) => assert!(ran.exit == Exit::Usage && ran.err.contains(why), "{name}: {}", ran.err),
            }
        }
    }
}

#[test]
fn short_options_are_those_of_lists_and_formats() {
    let csv = run(&["stat", "-f", "csv", "-n", "2", "-s", "count", "-t", "Lab.*", "--no-local-files", DUMP]);
    let long = run(&["stat", "--format", "csv", "--top", "2", "--sort", "count", "--type", "Lab.*", "--no-local-files", DUMP]);
    assert_eq!((csv.exit, &csv.out), (Exit::Ok, &long.out), "{}", csv.err);
    assert_eq!(csv.out.lines().count(), 3);
    assert_eq!(run(&["stat", "-j", "--no-local-files", DUMP]).out, run(&["stat", "--json", "--no-local-files", DUMP]).out);
}

#[test]
fn the_largest_objects_are_the_largest() {
    let all = &run(&["objects", "--json", "--no-local-files", DUMP]).json()["data"];
    let mut rows: Vec<(u64, String)> = all["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| (o["size"].as_u64().unwrap(), o["address"].as_str().unwrap().to_string()))
        .collect();
    // The sort is stable: equal rows are in address order, as on the heap.
    rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let of = |extra: &[&str]| {
        let args = [&["objects", "--sort", "size", "--json", "--no-local-files", DUMP], extra].concat();
        let data = run(&args).json()["data"].clone();
        let list: Vec<(u64, String)> = data["objects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|o| (o["size"].as_u64().unwrap(), o["address"].as_str().unwrap().to_string()))
            .collect();
        (list, data)
    };
    let (ten, data) = of(&["--top", "10"]);
    assert_eq!((ten.as_slice(), &data["total"], &data["next_start"]), (&rows[..10], &all["total"], &10.into()));
    assert_eq!(of(&["--top", "5", "--start", "10"]).0, rows[10..15]);
    let (whole, data) = of(&[]);
    assert_eq!((&whole, &data["next_start"]), (&rows, &serde_json::Value::Null));
    let strings = run(&["objects", "--sort", "length", "-n", "3", "-t", "System.String", "-j", "--no-local-files", DUMP]).json();
    let lengths: Vec<u64> = strings["data"]["objects"].as_array().unwrap().iter().map(|o| o["length"].as_u64().unwrap()).collect();
    assert!(lengths.len() == 3 && lengths.is_sorted_by(|a, b| a >= b), "{lengths:?}");
}

#[test]
fn lists_show_how_many_rows_they_leave_out() {
    const THREADS: &str = "dumps/corpus/net10-svr-threads-heap.dmp.zst";
    for (command, list) in [("threads", "threads"), ("stacks", "threads"), ("exceptions", "exceptions"), ("segments", "segments")] {
        let all = run(&[command, "--json", "--no-local-files", THREADS]).json();
        let cut = run(&[command, "-n", "2", "--json", "--no-local-files", THREADS]).json();
        let (all, rows) = (all["data"][list].as_array().unwrap(), cut["data"][list].as_array().unwrap());
        assert!(all.len() > 2, "{command}");
        assert_eq!((rows.as_slice(), &cut["data"]["not_listed"]), (&all[..2], &(all.len() - 2).into()), "{command}");
        let text = run(&[command, "-n", "2", "--no-local-files", THREADS]).out;
        assert!(text.contains(&format!("… {} more ", all.len() - 2)) && text.contains("(--top 0 lists all)"), "{command}: {text}");
    }
}

#[test]
fn csharp_names_are_those_of_the_runtime() {
    let data = |pattern: &str| {
        let ran = run(&["stat", "--type", pattern, "--json", "--no-local-files", DUMP]);
        ran.json()["data"]["types"].as_array().unwrap().iter().map(|t| t["type"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(data("int[]"), ["System.Int32[]"]);
    assert_eq!(data("byte[]"), ["System.Byte[]"]);
    assert_eq!(data("ConcurrentDictionary<int,Circle>"), ["System.Collections.Concurrent.ConcurrentDictionary<System.Int32, Lab.Circle>"]);
    assert_eq!(data("/^Lab\\.Node$/"), ["Lab.Node"]);
}

#[test]
fn dumps_come_from_standard_input() {
    let ask = |input: Stdio, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gcdump"));
        command.args(args).args(["--no-local-files"]).stdin(input).output().unwrap()
    };
    let file = || Stdio::from(File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(DUMP)).unwrap());
    let piped = ask(file(), &["stat", "-f", "csv", "-"]);
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), run(&["stat", "-f", "csv", "--no-local-files", DUMP]).out);
    // The temporary file is neither in JSON nor in commands.
    for args in [["analyze", "--json", "-"], ["info", "--json", "-"], ["report", "-o", "-"], ["analyze", "-f", "markdown"]] {
        let ran = ask(file(), &[&args[..], if args.contains(&"markdown") || args[0] == "report" { &["-"] } else { &[] }].concat());
        let (out, err) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
        assert!(!out.contains("stdin") && out.contains(" DUMP"), "{args:?}: {out}");
        assert!(err.contains("DUMP means a file: save the dump"), "{args:?}: {err}");
        if args.contains(&"--json") {
            assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap()["dump"]["path"], "-");
        }
    }
    let small = ask(file(), &["-", "info", "--max-decompressed", "1K"]);
    assert_eq!(small.status.code(), Some(3), "{}", String::from_utf8_lossy(&small.stderr));
    assert_eq!(ask(Stdio::null(), &["stat", "-"]).status.code(), Some(2));
    assert_eq!(ask(Stdio::null(), &["shell", "-"]).status.code(), Some(2));
}

#[test]
fn the_format_of_an_export_may_be_an_option() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.gcdump");
    let ran = run(&["export", "--format", "gcdump", "--no-local-files", DUMP, out.to_str().unwrap()]);
    assert!(ran.exit == Exit::Ok && out.is_file(), "{}", ran.err);
    // Of this file, commands name objects by address only.
    let file = out.to_str().unwrap();
    for command in ["path", "objsize", "refs"] {
        let named = run(&[command, "Lab.Program.Keep", file]);
        assert!(
            named.exit == Exit::Usage && named.err.contains("gcdump retained --by static lists static fields"),
            "{command}: {}",
            named.err
        );
    }
    let about = run(&["info", file]);
    assert!(about.exit == Exit::Ok && about.out.contains("refs, diff and analyze --since can use it"), "{} {}", about.out, about.err);
}

#[test]
fn csv_of_several_dumps_names_each() {
    let other = "dumps/corpus/net10-svr-basics-heap.dmp.zst";
    let csv = run(&["info", "-f", "csv", "--no-local-files", DUMP, other]).out;
    let paths: Vec<&str> = csv.lines().filter_map(|line| line.strip_prefix("path,")).collect();
    assert_eq!(paths, [DUMP, other], "{csv}");
    assert!(!run(&["info", "-f", "csv", "--no-local-files", DUMP]).out.contains("path,"));
}
