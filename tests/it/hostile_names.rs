//! Names that break formats pass through every file and format: an independent reader finds exactly the same name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gcdump::cli::{Exit, Screen};
use memchr::memmem;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::common::{own_dump, run, run_on};

/// Names of types in the dump, and replacements of the same length, so that the metadata stays valid.
const NAMES: &[(&str, &[u8])] = &[
    // Quotes, separators, line breaks.
    ("Circle", b"C\"\n,'\r"),
    // The end of a script, if it fits; backslashes and braces.
    ("Everything", b"</script>\\"),
    // Text that spreadsheets interpret as a formula.
    ("Node", b"=1+2"),
    // Reverses the rest of the line; moves the cursor.
    ("Entry", "E\u{202e}y".as_bytes()),
    ("Cache", b"C\x1b[2J"),
    // A lone surrogate, which is not UTF-8.
    ("Program", b"Pro\xed\xa0\x80m"),
    ("Shared", b"@SUM;|"),
];

struct Hostile {
    folder: tempfile::TempDir,
    dump: PathBuf,
    /// Names of types on the heap with the replacements, as in `stat`.
    names: BTreeSet<String>,
}

fn hostile() -> Hostile {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("hostile.dmp");
    let mut bytes = zstd::decode_all(fs::File::open(own_dump()).unwrap()).unwrap();
    let mut put = Vec::new();
    for (old, new) in NAMES {
        assert_eq!(old.len(), new.len(), "{old}");
        // Names may share their ends with others.
        let (old, new) = ([old.as_bytes(), b"\0"].concat(), [*new, b"\0"].concat());
        let places: Vec<usize> = memmem::find_iter(&bytes, &old).collect();
        places.iter().for_each(|at| bytes[*at..*at + new.len()].copy_from_slice(&new));
        if !places.is_empty() {
            put.push(String::from_utf8_lossy(&new[..new.len() - 1]).into_owned());
        }
    }
    // A very long name overwrites the names after it, which become its ends. In the metadata with the other names.
    let beside =
        |at: &usize| memmem::find(&bytes[at.saturating_sub(1 << 15)..(at + (1 << 15)).min(bytes.len())], b"</script>\\\0").is_some();
    let long = memmem::find_iter(&bytes, b"Dog\0").find(beside).expect("a type to rename");
    bytes[long..long + 240].fill(b'L');
    bytes[long + 240] = 0;
    fs::write(&dump, &bytes).unwrap();
    let reported = run(&["stat", "--json", "--top", "0", "--no-local-files", dump.to_str().unwrap()]).json();
    let all: Vec<String> = reported["data"]["types"].as_array().unwrap().iter().map(|t| t["type"].as_str().unwrap().to_string()).collect();
    let strange = |name: &&String| put.iter().any(|p| name.contains(p.as_str())) || name.len() > 200;
    let names: BTreeSet<String> = all.iter().filter(strange).cloned().collect();
    Hostile { folder, dump, names }
}

impl Hostile {
    fn export(&self, format: &str, more: &[&str]) -> PathBuf {
        let out = self.folder.path().join(format!("out.{format}"));
        let args = ["export", format, self.dump.to_str().unwrap(), out.to_str().unwrap(), "--no-local-files"];
        let ran = run(&[&args[..], more].concat());
        assert!(matches!(ran.exit, Exit::Ok | Exit::Partial), "{format}: {}", ran.err);
        out
    }

    fn ask(&self, args: &[&str]) -> String {
        run(&[args, &["--no-local-files", self.dump.to_str().unwrap()]].concat()).out
    }

    /// Checks that a reader of `what` has found all names.
    #[track_caller]
    fn has_all(&self, what: &str, found: impl IntoIterator<Item = String>) {
        let found: BTreeSet<String> = found.into_iter().collect();
        let missing: Vec<&String> = self.names.difference(&found).collect();
        assert!(missing.is_empty(), "{what} does not have {missing:?}");
    }
}

/// Collects all texts in a JSON value, including the names of fields.
fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|v| texts(v, out)),
        Value::Object(map) => map.iter().for_each(|(key, v)| {
            out.push(key.clone());
            texts(v, out);
        }),
        _ => {}
    }
}

fn json_texts(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    texts(&serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text:.200}")), &mut out);
    out
}

fn csv_texts(bytes: &[u8]) -> Vec<String> {
    // Rows of unequal length are refused.
    let rows: Vec<csv::StringRecord> = csv::Reader::from_reader(bytes).records().map(Result::unwrap).collect();
    rows.iter().flat_map(|row| row.iter().map(str::to_string)).collect()
}

fn parquet_texts(path: &Path) -> Vec<String> {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let mut out = Vec::new();
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        out.extend(row.get_column_iter().filter_map(|(_, field)| if let Field::Str(text) = field { Some(text.clone()) } else { None }));
    }
    out
}

/// The quoted strings of a DOT graph, unescaped as Graphviz does it.
fn dot_texts(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        assert!(c != '\\', "a backslash outside of a string");
        if c != '"' {
            continue;
        }
        let mut string = String::new();
        loop {
            match chars.next().expect("a string that does not end") {
                '"' => break,
                '\\' => string.push(chars.next().unwrap()),
                c => string.push(c),
            }
        }
        out.push(string);
    }
    out
}

/// Returns a name as it is shown where it must be harmless.
fn harmless(name: &str) -> String {
    gcdump::internals::output::sanitize(name).into_owned()
}

#[test]
fn hostile_names_are_unchanged_in_every_file() {
    let h = hostile();
    println!("{:?}", h.names.iter().map(|n| n.chars().take(60).collect::<String>()).collect::<Vec<_>>());
    assert!(h.names.len() >= 5 && h.names.iter().any(|n| n.len() > 200), "{:?}", h.names);
    let all = "dumps,types,objects,refs,roots,segments,handles,suspects,strings";
    let snapshot: Value = serde_json::from_slice(&fs::read(h.export("heapsnapshot", &["--unreachable"])).unwrap()).unwrap();
    h.has_all("heapsnapshot", snapshot["strings"].as_array().unwrap().iter().map(|s| s.as_str().unwrap().to_string()));
    let file = h.export("gcdump", &["--unreachable"]);
    h.has_all("gcdump", json_texts(&run(&["stat", "--json", "--top", "0", file.to_str().unwrap()]).out));
    for table in ["types", "objects"] {
        let more = ["--tables", all, "--contents", "--retained", "--force"];
        h.has_all("parquet", parquet_texts(&h.export("parquet", &more).join(format!("{table}.parquet"))));
        h.has_all("csv", csv_texts(&fs::read(h.export("csv", &more).join(format!("{table}.csv"))).unwrap()));
        let lines = fs::read_to_string(h.export("ndjson", &more).join(format!("{table}.ndjson"))).unwrap();
        h.has_all("ndjson", lines.lines().flat_map(json_texts));
    }
    // Fields with impossible names are columns, too.
    let fields = "a\"b,</script>,=1+2,e\u{202e}y";
    let lines =
        fs::read_to_string(h.export("ndjson", &["--tables", "objects", "--fields", fields, "--force"]).join("objects.ndjson")).unwrap();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    for field in fields.split(',') {
        assert!(first.as_object().unwrap().contains_key(field), "{field}: {first}");
    }
}

#[test]
fn hostile_names_are_unchanged_in_every_format() {
    let h = hostile();
    h.has_all("json", json_texts(&h.ask(&["stat", "--top", "0", "--json"])));
    h.has_all("ndjson", h.ask(&["stat", "--top", "0", "--format", "ndjson"]).lines().flat_map(json_texts));
    h.has_all("csv", csv_texts(h.ask(&["stat", "--top", "0", "--format", "csv"]).as_bytes()));
    let dot = h.ask(&["bridge", "--bridged", "*", "--all", "--dot"]);
    let found = dot_texts(&dot).concat();
    let reached = h.ask(&["bridge", "--bridged", "*", "--all", "--json"]);
    let mut shown = 0;
    for name in json_texts(&reached).into_iter().filter(|n| h.names.contains(n)).collect::<BTreeSet<_>>() {
        assert!(found.contains(&harmless(&name)), "dot does not have {name:?}");
        shown += 1;
    }
    assert!(shown > 2, "{shown} names in the graph");
    // Folded stacks: a line for each, frames between semicolons, a number at the end.
    for line in h.ask(&["stacks", "--format", "folded"]).lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        assert!(!stack.is_empty() && count.parse::<u64>().is_ok(), "{line}");
    }
    let terminal = Screen::terminal(Some(100), Some(40)).wide();
    let shown = run_on(terminal, &["stat", "--top", "0", "--no-local-files", h.dump.to_str().unwrap()]).out;
    assert!(!shown.contains(|c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c))));
    for name in &h.names {
        assert!(shown.contains(&harmless(name)), "the terminal does not show {name:?}");
    }
}

/// Contents of strings that break formats: a NUL, a lone surrogate, quotes, line breaks, the end of a script, the reversal of a line.
#[test]
fn hostile_contents_are_unchanged_in_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("hostile.dmp");
    let mut bytes = zstd::decode_all(fs::File::open(own_dump()).unwrap()).unwrap();
    let units = |text: &[u16]| -> Vec<u8> { text.iter().flat_map(|u| u.to_le_bytes()).collect() };
    let old: Vec<u16> = "libSystem.Native".encode_utf16().collect();
    let mut new: Vec<u16> = "\0\"\n,\r\\</script>".encode_utf16().collect();
    new.push(0xd800);
    assert_eq!((old.len(), new.len()), (16, 16));
    let places: Vec<usize> = memmem::find_iter(&bytes, &units(&old)).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[*at..*at + 32].copy_from_slice(&units(&new)));
    fs::write(&dump, &bytes).unwrap();
    // A lone surrogate is not a character: all formats show it as the same six characters.
    let expected = format!("{}\\ud800", String::from_utf16(&new[..15]).unwrap());
    let path = dump.to_str().unwrap();
    let reported = run(&["strings", "--json", "--top", "0", "--no-local-files", path]).out;
    assert!(json_texts(&reported).contains(&expected), "strings");
    let export = |format: &str, more: &[&str]| -> PathBuf {
        let out = folder.path().join(format!("out.{format}"));
        let args = ["export", format, path, out.to_str().unwrap(), "--no-local-files", "--contents"];
        let ran = run(&[&args[..], more].concat());
        assert!(matches!(ran.exit, Exit::Ok | Exit::Partial), "{format}: {}", ran.err);
        out
    };
    let texts = |what: &str, texts: Vec<String>| assert!(texts.contains(&expected), "{what} does not have {expected:?}");
    texts("heapsnapshot", json_texts(&fs::read_to_string(export("heapsnapshot", &["--unreachable"])).unwrap()));
    let strings = ["--tables", "strings"];
    texts("parquet", parquet_texts(&export("parquet", &strings).join("strings.parquet")));
    texts("csv", csv_texts(&fs::read(export("csv", &strings).join("strings.csv")).unwrap()));
    let lines = fs::read_to_string(export("ndjson", &strings).join("strings.ndjson")).unwrap();
    texts("ndjson", lines.lines().flat_map(json_texts).collect());
    let page = run(&["strings", "--format", "html", "--top", "0", "--no-local-files", path]).out;
    assert!(!page.contains('\0') && page.matches("</script>").count() == page.matches("<script").count());
    assert!(page.contains("\\ud800"));
    let table = run(&["strings", "--format", "csv", "--top", "0", "--no-local-files", path]).out;
    texts("csv of strings", csv_texts(table.as_bytes()));
    let lines = run(&["strings", "--format", "ndjson", "--top", "0", "--no-local-files", path]).out;
    texts("ndjson of strings", lines.lines().flat_map(json_texts).collect());
    // Readers other than serde_json, which does not read an escaped lone surrogate either.
    fs::write(folder.path().join("strings.json"), &reported).unwrap();
    let wanted = r"</script>\ud800";
    for (program, args) in [
        ("jq", &["-r", ".data.strings[].value"][..]),
        ("python3", &["-c", "import json, sys; print([s['value'] for s in json.load(open(sys.argv[1]))['data']['strings']])"]),
    ] {
        match Command::new(program).args(args).arg(folder.path().join("strings.json")).output() {
            Ok(ran) => {
                let read = String::from_utf8_lossy(&ran.stdout).replace("\\\\", "\\");
                assert!(ran.status.success() && read.contains(wanted), "{program}: {}", String::from_utf8_lossy(&ran.stderr));
            }
            Err(_) => println!("skipped: {program} is not installed"),
        }
    }
}

/// Names of dumps and folders that break formats are values of columns, and are in no path of a lake.
#[cfg(unix)]
#[test]
fn hostile_names_of_dumps_are_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    // Such names must not become a partition's value or a file's name.
    let names = ["a\"b\n,'\r;=x", "dump=..%2f..", "E\u{202e}y<script>", &"l".repeat(200)];
    let dumps = folder.path().join("=1+2\"d");
    fs::create_dir(&dumps).unwrap();
    let mut expected = BTreeSet::new();
    for (i, name) in names.iter().enumerate() {
        let path = dumps.join(format!("{name}.dmp"));
        // Identical copies would be one dump, so each has another byte at the end.
        let mut bytes = zstd::decode_all(fs::File::open(own_dump()).unwrap()).unwrap();
        bytes.extend(vec![0; i + 1]);
        fs::write(&path, bytes).unwrap();
        expected.insert(path.to_str().unwrap().to_string());
    }
    let lake = folder.path().join("lake");
    let ran = run(&["fleet", dumps.to_str().unwrap(), "-o", lake.to_str().unwrap(), "--no-local-files", "--json"]);
    assert!(matches!(ran.exit, Exit::Ok | Exit::Partial), "{}", ran.err);
    let reported: BTreeSet<String> =
        ran.json()["data"]["dumps"].as_array().unwrap().iter().map(|d| d["path"].as_str().unwrap().to_string()).collect();
    assert_eq!(reported, expected);
    let mut found = BTreeSet::new();
    for partition in fs::read_dir(lake.join("dumps")).unwrap() {
        let partition = partition.unwrap().path();
        let name = partition.file_name().unwrap().to_str().unwrap().to_string();
        let id = name.strip_prefix("dump=").unwrap();
        assert!(id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
        found.extend(parquet_texts(&partition.join("part-0.parquet")).into_iter().filter(|t| expected.contains(t)));
    }
    assert_eq!(found, expected);
    // Nothing was written elsewhere.
    let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["=1+2\"d", "lake"]);
    for path in &expected {
        for format in ["csv", "ndjson"] {
            let out = folder.path().join("one");
            let ran = run(&["export", format, path, out.to_str().unwrap(), "--tables", "dumps", "--force", "--no-local-files"]);
            assert!(matches!(ran.exit, Exit::Ok | Exit::Partial), "{format}: {}", ran.err);
            let bytes = fs::read(out.join(format!("dumps.{format}"))).unwrap();
            let texts =
                if format == "csv" { csv_texts(&bytes) } else { String::from_utf8(bytes).unwrap().lines().flat_map(json_texts).collect() };
            assert!(texts.contains(path), "{format} does not have {path:?}");
            fs::remove_dir_all(&out).unwrap();
        }
        let page = run(&["report", "--no-graph", "--no-local-files", path]).out;
        assert!(page.matches("</script>").count() == page.matches("<script").count() && page.ends_with("</html>\n"), "{path:?}");
    }
}
