//! Mono, and releases of .NET before 8: types and objects, against what the dumped programs said of themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{ask, ask_with_files, needs_shared, run, unpacked};
use crate::harness::{Ignored, Tested};

/// A dump of the program `alien`: its path, the folder with its assemblies, and what the program said.
struct Alien {
    dump: PathBuf,
    files: PathBuf,
    truth: Value,
}

fn alien(dump: &str, truth: &str, files: &str) -> Result<Alien, Ignored> {
    let folder = needs_shared()?.with_file_name("dumps3");
    let path = unpacked().join(format!("{dump}.dmp"));
    let text = std::fs::read_to_string(folder.join(truth)).map_err(|e| Ignored(format!("{truth}: {e}")))?;
    if !path.exists() {
        return Err(Ignored(format!("{dump} is not unpacked")));
    }
    Ok(Alien { dump: path, files: folder.join("modules").join(files), truth: serde_json::from_str(&text).unwrap() })
}

impl Alien {
    fn ask(&self, command: &[&str]) -> (i32, Value) {
        let (exit, answer) = ask_with_files(&self.dump, command, Some(&self.files));
        (exit as i32, answer["data"].clone())
    }

    /// Address of an object that the program named.
    fn object(&self, name: &str) -> &str {
        self.truth["objects"][name]["address"].as_str().unwrap()
    }

    /// Objects of each type, by name.
    fn counts(&self) -> BTreeMap<String, u64> {
        let (exit, stat) = self.ask(&["stat", "--top", "0"]);
        assert_eq!((exit, &stat["complete"]), (5, &Value::Bool(false)));
        assert!(stat["carved"]["because"].is_string());
        let types = stat["types"].as_array().unwrap();
        types.iter().map(|t| (t["type"].as_str().unwrap_or_default().to_string(), t["count"].as_u64().unwrap())).collect()
    }

    /// Addresses of all objects.
    fn addresses(&self) -> Vec<String> {
        let (_, objects) = self.ask(&["objects", "--top", "0"]);
        objects["objects"].as_array().unwrap().iter().map(|o| o["address"].as_str().unwrap().to_string()).collect()
    }

    /// The addresses that the program listed and that are not in `found`.
    fn missing(&self, found: &[String]) -> Vec<String> {
        let lists = ["nodes", "dogs", "circles", "large", "strings", "fins", "boxed_ints", "young"];
        let all = lists.iter().flat_map(|list| self.truth[*list].as_array().unwrap());
        all.filter_map(|at| at.as_str()).filter(|at| !found.iter().any(|f| f == at)).map(Into::into).collect()
    }
}

/// A name in the program's notation in gcdump's: `` Alien.Pair`2[System.Int32,System.String] `` is `Alien.Pair<System.Int32, System.String>`.
fn readable(name: &str) -> String {
    let plain: String =
        name.split('`').enumerate().map(|(i, part)| if i == 0 { part } else { part.trim_start_matches(char::is_numeric) }).collect();
    match plain.split_once('[') {
        Some((definition, rest)) if rest.starts_with(char::is_alphabetic) => {
            format!("{definition}<{}>", rest.trim_end_matches(']').replace(',', ", "))
        }
        _ => plain,
    }
}

fn check_counts(alien: &Alien, counts: &BTreeMap<String, u64>) {
    let mut checked = 0;
    for (name, count) in alien.truth["counts"].as_object().unwrap() {
        let Some(count) = count.as_u64() else { continue };
        assert_eq!(counts.get(&readable(name)), Some(&count), "{name}");
        checked += 1;
    }
    assert!(checked > 10, "{checked} types");
}

fn mono() -> Result<Alien, Ignored> {
    alien("mono68-sgen-alien-kernel", "mono68-sgen-alien.truth.json", "alien-mono")
}

#[test]
fn the_heap_of_mono_has_the_objects_of_the_program() -> Tested {
    let alien = mono()?;
    let (exit, info) = alien.ask(&["info"]);
    let runtime = &info["runtimes"][0];
    assert_eq!((exit, &runtime["kind"], &runtime["version"]), (5, &Value::from("mono"), &Value::from("6.8.0.105")));
    assert_eq!(runtime["overlay"], "mono6.8-linux-x64");
    check_counts(&alien, &alien.counts());
    let missing = alien.missing(&alien.addresses());
    assert!(missing.is_empty(), "{missing:?}");
    Tested::Ok(())
}

#[test]
fn handles_of_mono_are_those_of_the_program() -> Tested {
    let alien = mono()?;
    let (_, handles) = alien.ask(&["handles", "--top", "0"]);
    let found: Vec<(&str, &str, &str)> = handles["handles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| (h["type"].as_str().unwrap(), h["address"].as_str().unwrap(), h["object"].as_str().unwrap()))
        .collect();
    let truth = alien.truth["handles"].as_array().unwrap();
    assert!(truth.len() > 50);
    for handle in truth {
        let kind = match handle["type"].as_str().unwrap() {
            "weak" | "weak_short" => "weak-short",
            "weak_long" => "weak-long",
            other => other,
        };
        let wanted = (kind, handle["handle"].as_str().unwrap(), handle["object"].as_str().unwrap());
        assert!(found.contains(&wanted), "{wanted:?}");
    }
    Tested::Ok(())
}

#[test]
fn objects_of_mono_have_fields_elements_and_texts() -> Tested {
    let alien = mono()?;
    let (_, object) = alien.ask(&["object", alien.object("everything")]);
    let field = |name: &str| object["fields"].as_array().unwrap().iter().find(|f| f["name"] == name).unwrap_or(&Value::Null).clone();
    assert_eq!(object["type"], "Alien.Everything");
    assert_eq!(field("I64")["value"], -9_223_372_036_854_775_807_i64);
    assert_eq!(field("F64")["value"], std::f64::consts::E);
    assert_eq!(field("Text")["value"], "héllo wörld 😀");
    assert_eq!(field("Colour")["type"], "Alien.Color");
    // A structure with references, by itself and in an array.
    assert_eq!(field("Inline")["type"], "Alien.Tagged");
    assert!(field("Many")["text"].as_str().unwrap().contains("Alien.Tagged[]"));
    let grid = field("Grid")["object"].as_str().unwrap().to_string();
    let (_, grid) = alien.ask(&["object", &grid]);
    let lengths: Vec<&Value> = grid["dimensions"].as_array().unwrap().iter().map(|d| &d["length"]).collect();
    assert_eq!((lengths, &grid["length"]), (vec![&Value::from(3), &Value::from(4)], &Value::from(12)));
    let (_, strings) = alien.ask(&["strings", "--like", "*llo w*rld*"]);
    assert_eq!(strings["strings"][0]["value"], "héllo wörld 😀");
    Tested::Ok(())
}

#[test]
fn statics_of_mono_have_the_values_that_the_program_wrote_down() -> Tested {
    let alien = mono()?;
    let (exit, answer) = alien.ask(&["statics", "--top", "0"]);
    assert_eq!(exit, 5);
    let statics = answer["statics"].as_array().unwrap();
    let field = |class: &str, name: &str| {
        let found = statics.iter().find(|s| s["declaring_type"] == class && s["name"] == name);
        found.unwrap_or_else(|| panic!("{class}.{name}"))
    };
    let objects = [
        ("Alien.Program", "head", "node_head"),
        ("Alien.Program", "dogs", "dogs"),
        ("Alien.Program", "circles", "circles"),
        ("Alien.Program", "young", "young_last"),
        ("Alien.Program", "contended", "contended"),
        ("Alien.Program", "thin", "thin"),
        ("Alien.Program", "hashed", "hashed"),
        ("Alien.Everything", "StaticOne", "everything"),
        ("Alien.Statics", "TheDog", "static_dog"),
        ("Alien.Statics", "Keep", "keep"),
        ("Alien.Statics", "Literal", "literal"),
    ];
    for (class, name, object) in objects {
        assert_eq!(field(class, name)["object"], alien.object(object), "{class}.{name}");
    }
    let number = |class: &str, name: &str| field(class, name)["value"].as_i64();
    assert_eq!(number("Alien.Everything", "StaticInt"), Some(12345));
    assert_eq!(number("Alien.Program", "hash"), alien.truth["hash"].as_i64());
    assert_eq!(number("Alien.Program", "ownerId"), alien.truth["contended_owner_managed_id"].as_i64());
    assert_eq!(number("Alien.Fin", "Ran"), alien.truth["fin_ran"].as_i64());
    Tested::Ok(())
}

#[test]
fn references_of_mono_lead_to_objects_and_from_roots() -> Tested {
    let alien = mono()?;
    let (_, verify) = alien.ask(&["verify"]);
    assert_eq!(verify["findings"].as_array().map(Vec::len), Some(0), "{}", verify["findings"]);
    assert!(verify["totals"]["references"].as_u64() > Some(3000), "{}", verify["totals"]);
    let (_, path) = alien.ask(&["path", alien.object("everything")]);
    assert!(path.to_string().contains("Alien."), "{path}");
    let (_, retained) = alien.ask(&["retained", "--top", "3"]);
    let of = |key: &str| retained["totals"][key].as_u64().unwrap_or_else(|| panic!("{}", retained["totals"]));
    assert!(of("reachable_objects") * 2 > of("objects"), "{}", retained["totals"]);
    Tested::Ok(())
}

/// Commands that need structures of CoreCLR say so in one sentence, which names Mono.
#[test]
fn what_is_not_read_of_mono_says_so() -> Tested {
    let alien = mono()?;
    for command in ["threads", "stacks", "locks"] {
        let ran = run(&[command, alien.dump.to_str().unwrap()]);
        assert_eq!((ran.exit as i32, ran.err.lines().count()), (4, 1), "{}", ran.err);
        assert!(ran.err.contains("of Mono, gcdump reads types, objects, handles and roots"), "{}", ran.err);
    }
    Tested::Ok(())
}

#[test]
fn the_heap_of_net_core_3_1_has_the_objects_of_the_program() -> Tested {
    let alien = alien("net31-wks-alien-heap", "net31-wks-alien.truth.json", "alien-net31")?;
    let (exit, info) = alien.ask(&["info"]);
    let runtime = &info["runtimes"][0];
    assert_eq!((exit, &runtime["version"], &runtime["overlay"]), (5, &Value::from("3.1.3"), &Value::from("net3.1-linux-x64")));
    let counts = alien.counts();
    for (name, count) in alien.truth["counts"].as_object().unwrap().iter().filter(|(name, _)| name.starts_with("Alien.")) {
        let Some(count) = count.as_u64() else { continue };
        // Memory that a collection has emptied keeps the old copies of the objects.
        let found = counts.get(&readable(name)).copied().unwrap_or(0);
        assert!(found >= count && found <= 2 * count + 16, "{name}: {found} of {count}");
    }
    let missing = alien.missing(&alien.addresses());
    assert!(missing.is_empty(), "{missing:?}");
    let (_, object) = alien.ask(&["object", alien.object("everything")]);
    let text = object["fields"].as_array().unwrap().iter().find(|f| f["name"] == "Text").map(|f| f["value"].clone());
    assert_eq!(text, Some("héllo wörld 😀".into()));
    Tested::Ok(())
}

/// A small core that is in the repository: of the program below, after a collection.
fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/mono68-lab-gcore.dmp.zst")
}

#[test]
fn the_core_of_the_repository_is_read_without_further_files() {
    check_lab(&own(), Some("collect"));
    let (_, info) = ask(&own(), &["info"]);
    assert_eq!(info["data"]["runtimes"][0]["kind"], "mono");
    for command in ["heap", "segments", "objects", "handles", "strings", "roots", "retained", "inspect", "analyze", "memory", "modules"] {
        let (exit, answer) = ask(&own(), &[command]);
        assert!(matches!(exit as i32, 0 | 1 | 5), "{command}: {answer}");
    }
}

/// Copies would have the elements of arrays.
#[test]
fn copies_of_mono_are_not_redacted() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, copy) = (own(), folder.path().join("copy.dmp"));
    let ran = run(&["trim", "--redact", dump.to_str().unwrap(), copy.to_str().unwrap()]);
    assert_eq!(ran.exit as i32, 2, "{}", ran.err);
    assert!(ran.err.contains("the copy cannot be redacted") && !copy.exists(), "{}", ran.err);
}

/// Damage must not stop the program: answers are partial, or an error gives the reason.
#[test]
fn damaged_cores_of_mono_have_partial_answers_or_errors() {
    let whole = zstd::decode_all(&*std::fs::read(own()).unwrap()).unwrap();
    let mut random = crate::common::random();
    for round in 0..crate::common::cases(6, 60) {
        let mut bytes = whole.clone();
        for _ in 0..=random(400) {
            let at = 64 + random(bytes.len() - 72);
            // Other bytes, zeros, or a word from elsewhere.
            let (at, from) = (at & !7, random(bytes.len() - 8) & !7);
            match random(3) {
                0 => bytes[at] ^= 1 << random(8),
                1 => bytes[at..at + 8].fill(0),
                _ => bytes.copy_within(from..from + 8, at),
            }
        }
        let file = tempfile::Builder::new().suffix(".dmp").tempfile().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        for command in ["stat", "verify", "retained", "roots", "objects"] {
            let (exit, _) = ask(file.path(), &[command]);
            assert!(matches!(exit as i32, 0 | 1 | 4 | 5), "round {round}: {command}: {exit:?}");
        }
    }
}

const PROGRAM: &str = r#"
using System;
using System.Collections.Generic;
namespace Lab {
    class Node { public Node Next; public int Value; public string Name; }
    struct Pair { public object First; public long Second; }
    static class Program {
        static Node keep;
        static Pair[] pairs;
        static void Main(string[] args) {
            for (int i = 0; i < 5000; i++) keep = new Node { Next = keep, Value = i, Name = "node " + i };
            pairs = new Pair[64];
            for (int i = 0; i < 64; i++) pairs[i] = new Pair { First = new Version(1, i), Second = i };
            var list = new List<Dictionary<string, int[]>>();
            for (int i = 0; i < 7; i++) list.Add(new Dictionary<string, int[]> { { "k" + i, new int[i + 1] } });
            if (args.Length > 0) GC.Collect();
            Console.WriteLine("ready");
            Console.Out.Flush();
            Console.ReadLine();
            GC.KeepAlive(list);
        }
    }
}
"#;

/// Compiles the program, runs it under Mono, and dumps it. `debug` is the collector's own setting for tests.
fn dumped(folder: &Path, argument: Option<&str>, debug: &str) -> Result<PathBuf, Ignored> {
    let source = folder.join("lab.cs");
    std::fs::write(&source, PROGRAM).unwrap();
    let tool = |name: &str| Ignored(format!("{name} is not installed"));
    let compiled = Command::new("mcs").arg("-out:lab.exe").arg(&source).current_dir(folder).output().map_err(|_| tool("mcs"))?;
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let program = Command::new("mono")
        .arg("lab.exe")
        .args(argument)
        .env("MONO_GC_DEBUG", debug)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut program = program.map_err(|_| tool("mono"))?;
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(program.stdout.as_mut().unwrap()), &mut line).unwrap();
    // With mapped files, among them the assemblies.
    let _ = std::fs::write(format!("/proc/{}/coredump_filter", program.id()), "0x7f");
    let core = Command::new("gcore").args(["-o", "core", &program.id().to_string()]).current_dir(folder).output();
    let id = program.id();
    program.kill().unwrap();
    program.wait().unwrap();
    let core = core.map_err(|_| tool("gcore"))?;
    let path = folder.join(format!("core.{id}"));
    if path.exists() { Ok(path) } else { Err(Ignored(format!("gcore: {}", String::from_utf8_lossy(&core.stderr)))) }
}

/// Checks what the program below made.
fn check_lab(core: &Path, argument: Option<&str>) {
    let (exit, stat) = ask(core, &["stat", "--top", "0"]);
    assert_eq!(exit as i32, 5, "{stat}");
    let types = stat["data"]["types"].as_array().unwrap();
    let count = |name: &str| types.iter().find(|t| t["type"] == name).and_then(|t| t["count"].as_u64());
    assert_eq!((count("Lab.Node"), count("Lab.Pair[]"), count("System.Version")), (Some(5000), Some(1), Some(64)), "{argument:?}");
    assert_eq!(count("System.Collections.Generic.Dictionary<System.String, System.Int32[]>"), Some(7), "{argument:?}");
    let (_, verify) = ask(core, &["verify"]);
    assert_eq!(verify["data"]["findings"].as_array().map(Vec::len), Some(0), "{}", verify["data"]["findings"]);
    let (_, roots) = ask(core, &["roots", "--top", "0"]);
    for field in ["Lab.Program.keep", "Lab.Program.pairs"] {
        assert!(roots.to_string().contains(field), "{field}");
    }
    let (_, path) = ask(core, &["path", "--type", "System.Version"]);
    assert!(path.to_string().contains("Lab.Program.pairs"), "{path}");
}

#[test]
fn programs_run_under_mono_have_the_objects_that_they_made() -> Tested {
    for argument in [None, Some("collect")] {
        let folder = tempfile::tempdir().unwrap();
        let core = dumped(folder.path(), argument, "")?;
        let (_, stat) = ask(&core, &["stat"]);
        if stat["error"].to_string().contains("build that gcdump cannot read") {
            return Err(Ignored(stat["error"].to_string()));
        }
        check_lab(&core, argument);
    }
    Tested::Ok(())
}

/// SGen registers a bridge for tests if its settings name a class: objects of that class are bridged.
#[test]
fn what_a_bridge_has_registered_with_mono_is_bridged() -> Tested {
    let folder = tempfile::tempdir().unwrap();
    let core = dumped(folder.path(), Some("collect"), "bridge=Node")?;
    let (_, stat) = ask(&core, &["stat"]);
    if stat["error"].to_string().contains("build that gcdump cannot read") {
        return Err(Ignored(stat["error"].to_string()));
    }
    let (exit, bridge) = ask(&core, &["bridge", "--all"]);
    assert_eq!(exit as i32, 5, "{bridge}");
    let bridge = &bridge["data"];
    assert_eq!((&bridge["bridged"], &bridge["dead"]), (&Value::from(5000), &Value::from(0)));
    let classes: Vec<(&str, &str)> =
        bridge["classes"].as_array().unwrap().iter().map(|c| (c["type"].as_str().unwrap(), c["kind"].as_str().unwrap())).collect();
    assert_eq!(classes, [("Lab.Node", "transparent-bridge")]);
    // Without a bridge, nothing is.
    let (_, none) = ask(&own(), &["bridge", "--all"]);
    assert_eq!(none["data"]["bridged"], 0, "{none}");
    Tested::Ok(())
}
