//! The columns of CSV that `docs/json.md` lists are those that the program writes.

use std::path::Path;

use crate::common::run;

/// Dumps of the corpus with rows for commands that have none for the other dumps.
const DUMPS: [(&str, &str); 8] = [
    ("locks", "net10-wks-deadlock-heap"),
    ("stacks", "net10-wks-deadlock-heap"),
    ("threads", "net10-wks-deadlock-heap"),
    ("analyze", "net10-wks-deadlock-heap"),
    ("async", "net10-wks-async-heap"),
    ("inspect", "net10-wks-inspect-heap"),
    ("exceptions", "net10-wks-crash-heap"),
    ("memory", "net10-wks-basics-full"),
];

#[test]
fn documented_columns_are_those_of_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/json.md")).unwrap();
    let section = text.split("\n## CSV\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| {
        let (command, rest) = line.strip_prefix("| `")?.split_once("` | `")?;
        Some((command, rest.split_once('`')?.0))
    });
    let mut checked = 0;
    for (command, columns) in rows {
        let words: Vec<&str> = command.split(' ').collect();
        let name = DUMPS.iter().find(|(first, _)| words[0] == *first).map_or("net10-svr-basics-heap", |(_, name)| name);
        let files: &[&str] = if words[0] == "track" { &["net10-wks-track-heap.before", "net10-wks-track-heap.after"] } else { &[name] };
        let files = files.iter().map(|name| root.join(format!("dumps/corpus/{name}.dmp.zst")).display().to_string());
        let mut args: Vec<String> = words.iter().map(|word| (*word).to_owned()).chain(files).collect();
        args.extend(["--format", "csv", "--no-local-files"].map(String::from));
        let ran = run(&args);
        assert_eq!(ran.out.lines().next(), Some(columns), "{command}: {}", ran.err);
        checked += 1;
    }
    assert!(checked > 20, "{checked} commands");
}
