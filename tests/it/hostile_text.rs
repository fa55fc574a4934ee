//! Names and text in a dump that would move the cursor, reorder a line, or break a format.

use std::fs;
use std::path::PathBuf;

use crate::common::{Ran, cases, commands, number, own_dump, run, run_on, sample};
use crate::screens::without_colors;
use gcdump::Dump;
use gcdump::cli::Screen;
use gcdump::internals::dump::{self, OpenOptions};
use memchr::memmem;

/// A replacement with the length of `Cache`: a cursor movement, and CSV separators and quotes.
const CACHE: &str = "C\u{1b}\"\n,";
/// A replacement with the length of `Entry`, which would reverse the rest of the line.
const ENTRY: &str = "E\u{202e}y";

fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) -> usize {
    assert_eq!(old.len(), new.len());
    let places: Vec<usize> = memmem::find_iter(bytes, old).collect();
    places.iter().for_each(|at| bytes[*at..*at + new.len()].copy_from_slice(new));
    places.len()
}

fn units(text: &[u16]) -> Vec<u8> {
    text.iter().flat_map(|u| u.to_le_bytes()).collect()
}

/// The dump of the repository with replaced type names (suffixes, which metadata shares), a module path and strings.
fn hostile() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.dmp");
    let mut bytes = zstd::decode_all(fs::File::open(own_dump()).unwrap()).unwrap();
    assert!(replace(&mut bytes, b"Cache\0", format!("{CACHE}\0").as_bytes()) > 0);
    assert!(replace(&mut bytes, b"Entry\0", format!("{ENTRY}\0").as_bytes()) > 0);
    assert!(replace(&mut bytes, b"/app/net10/libcoreclr.so", b"/a\x1bp/net10/libcoreclr.so") > 0);
    fs::write(&path, &bytes).unwrap();
    // The most frequent string also gets a lone surrogate.
    let ran = run(&["strings", "--json", "--top", "0", "--no-local-files", path.to_str().unwrap()]).json();
    let known = |s: &serde_json::Value| s["value"].as_str().filter(|t| t.is_ascii() && t.len() >= 8).map(ToString::to_string);
    let text = ran["data"]["strings"].as_array().unwrap().iter().find_map(known).expect("a string to replace");
    let old: Vec<u16> = text.encode_utf16().collect();
    let mut new = old.clone();
    new[..7].copy_from_slice(&[0x1b, 0x9b, 0x202e, u16::from(b'"'), u16::from(b','), u16::from(b'\n'), 0xd800]);
    assert!(replace(&mut bytes, &units(&old), &units(&new)) > 0, "{text}");
    fs::write(&path, &bytes).unwrap();
    // The string is the message of an exception.
    let listed = |command: &str| run(&[command, "--json", "--no-local-files", path.to_str().unwrap()]).json()["data"].clone();
    let strings = listed("strings");
    let string = strings["strings"].as_array().unwrap().iter().find(|s| s["value"].as_str().unwrap().starts_with("\u{1b}\u{9b}\u{202e}"));
    let (string, exception) = (number(&string.unwrap()["address"]), number(&listed("exceptions")["exceptions"][0]["address"]));
    let dump = dump::open(&path, &OpenOptions::default()).unwrap();
    let process = Dump::of(dump.clone(), &gcdump::OpenOptions::default());
    let message = process.runtime().unwrap().descriptor().offset("Exception", "_message").unwrap() + exception;
    let range = dump.ranges.iter().find(|r| r.start.0 <= message && message < r.start.0 + r.len).unwrap();
    let place = usize::try_from(range.offset + message - range.start.0).unwrap();
    bytes[place..place + 8].copy_from_slice(&string.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    (folder, path)
}

fn terminal() -> Screen {
    Screen::terminal(Some(100), Some(40))
}

fn on_terminal(args: &[&str]) -> Ran {
    run_on(terminal(), args)
}

fn moves(c: char) -> bool {
    c != '\n' && (c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}'))
}

/// Command lines besides the examples of the registry.
const MORE: &[&[&str]] = &[
    &["heap", "--detail"],
    &["stat", "--by", "assembly"],
    &["objects", "--refs", "--count", "0"],
    &["type", "Lab*"],
    &["statics", "--all", "--type", "Lab*"],
    &["strings", "--top", "0"],
    &["strings", "--longest"],
    &["handles"],
    &["roots"],
    &["finalizers", "--objects"],
    &["path", "--type", "Lab*"],
    &["retained", "--top", "0"],
    &["retained", "--suspects", "--threshold", "1"],
    &["bridge", "--bridged", "Lab*", "--all", "--dot"],
];

#[test]
fn hostile_text_moves_no_cursor_and_breaks_no_format() {
    let (folder, path) = hostile();
    let path = path.to_str().unwrap();
    let (mut on_screen, mut in_json, mut in_csv) = (0, 0, 0);
    let first = |command: &[&str], list: &str| {
        let answer = run(&[command, &["--json", "--no-local-files", path]].concat()).json();
        answer["data"][list][0]["address"].as_str().unwrap_or_else(|| panic!("{command:?}: {answer}")).to_string()
    };
    // An object of a type with such a name, and any handle.
    let (object, handle) = (first(&["objects", "--type", "*E?y*"], "objects"), first(&["handles"], "handles"));
    let copy = folder.path().join("copy.dmp");
    // Pages are for browsers: see `report`.
    for form in sample(commands::forms(MORE).into_iter().filter(|form| form[0] != "report"), 8) {
        let args = commands::filled(&form, |word| match word {
            dump if commands::is_dump(dump) => Some(path.into()),
            "ADDR" => Some(object.clone()),
            "HANDLE" => Some(handle.clone()),
            "OUT" => Some(copy.to_str().unwrap().into()),
            _ => None,
        });
        let mut command: Vec<&str> = args.iter().map(String::as_str).collect();
        if form.iter().any(|w| w == "OUT") {
            command.push("--force");
        }
        let with_path = |more: &[&'static str]| [command.as_slice(), &["--no-local-files"], more].concat();
        let shown = on_terminal(&with_path(&[]));
        // Escape sequences for colors are around such text, not in it.
        let bright = run_on(terminal().colored(true), &with_path(&[]));
        assert_eq!((without_colors(&bright.out), without_colors(&bright.err)), (shown.out.clone(), shown.err.clone()), "{command:?}");
        for text in [&shown.out, &shown.err] {
            assert!(!text.contains(moves), "{command:?}: {:?}", text.lines().find(|l| l.contains(moves)));
        }
        assert!(!shown.out.is_empty(), "{command:?}: {}", shown.err);
        if command[0] == "exceptions" && !command.contains(&"--stat") {
            assert!(shown.out.contains("\\u{1b}\\u{9b}\\u{202e}"), "the message: {}", shown.out);
        }
        on_screen += usize::from(shown.out.contains("\\u{1b}") || shown.out.contains("\\u{202e}"));
        if command.contains(&"--dot") {
            // A piped graph must stay valid: names must not add lines.
            let dot = run(&with_path(&[]));
            assert!(!dot.out.contains(moves) && dot.out.lines().all(|l| l.matches('"').count() % 2 == l.matches("\\\"").count() % 2));
            continue;
        }
        if command.contains(&"--format") {
            continue;
        }
        for format in ["json", "ndjson"] {
            let ran = run(&with_path(&["--format", format]));
            let lines: Vec<&str> = if format == "json" { vec![&ran.out] } else { ran.out.lines().collect() };
            for line in lines {
                serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{command:?} {format}: {e}"));
            }
            in_json += usize::from(ran.out.contains("\\u001b"));
        }
        let ran = run(&with_path(&["--format", "csv"]));
        let mut reader = csv::Reader::from_reader(ran.out.as_bytes());
        for row in reader.records() {
            // The reader rejects rows of unequal length, from unquoted commas or line breaks.
            let row = row.unwrap_or_else(|e| panic!("{command:?}: {e}"));
            in_csv += usize::from(row.iter().any(|c| c.contains(CACHE) || c.contains(ENTRY)));
        }
    }
    println!("hostile text: {on_screen} screens, {in_json} JSON answers and {in_csv} CSV rows had some");
    let least = cases(1, 6);
    assert!(on_screen >= least && in_json >= least && in_csv > 3 * least, "{on_screen} {in_json} {in_csv}");
}

#[test]
fn messages_about_the_command_line_move_no_cursor() {
    let ran = on_terminal(&["info", "no\u{1b}[2Jsuch\u{202e}file.dmp"]);
    assert!(!ran.err.contains(moves) && ran.err.contains("\\u{1b}"), "{:?}", ran.err);
}
