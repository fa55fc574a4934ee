//! Citations resolve: every `*.md` named in sources, tests and documents, every relative link, every anchor, every path of the
//! repository.

use std::fs;
use std::path::{Path, PathBuf};

use crate::floors::FLOORS;

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files below `folder` with one of the extensions, in a stable order.
fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            out.extend(files(&path, extensions));
        } else if path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x)) {
            out.push(path);
        }
    }
    out
}

pub fn documents() -> Vec<PathBuf> {
    let top = fs::read_dir(root()).unwrap().map(|e| e.unwrap().path());
    let mut out: Vec<PathBuf> = top.filter(|p| p.extension().is_some_and(|e| e == "md")).collect();
    ["docs", "dumps", "release"].iter().for_each(|folder| out.extend(files(&root().join(folder), &["md"])));
    out
}

/// The anchor GitHub generates for a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn has_anchor(document: &Path, wanted: &str) -> bool {
    let text = fs::read_to_string(document).unwrap();
    let mut code = false;
    text.lines().any(|line| {
        code ^= line.starts_with("```");
        !code && line.starts_with('#') && anchor(line.trim_start_matches('#').trim()) == wanted
    })
}

/// Returns why `target`, cited in `file`, does not resolve against any of `bases`.
fn broken(target: &str, bases: &[&Path]) -> Option<String> {
    let (path, fragment) = target.split_once('#').map_or((target, None), |(p, f)| (p, Some(f)));
    let Some(found) = bases.iter().map(|b| b.join(path)).find(|p| p.exists()) else { return Some(format!("{target} does not exist")) };
    let fragment = fragment.filter(|f| !f.is_empty() && !has_anchor(&found, f))?;
    Some(format!("{path} has no heading #{fragment}"))
}

/// Names of Markdown documents in `text`, with their anchors, without URLs.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '#' | ':' | '*');
    let words = text.split(move |c| !part(c)).map(|w| w.trim_end_matches(['.', ':', '-', '#']));
    words.filter(|w| !w.contains("://") && !w.contains('*')).filter(|w| {
        let path = w.split('#').next().unwrap_or(w);
        path.len() > 3 && path.ends_with(".md")
    })
}

#[test]
fn cited_documents_are_in_the_repository() {
    let root = root();
    let mut sources = documents();
    for folder in ["src", "tests", "examples", "fuzz/src", "fuzz/targets"] {
        let folder = root.join(folder);
        if folder.is_dir() {
            sources.extend(files(&folder, &["rs", "json"]));
        }
    }
    let mut wrong = Vec::new();
    let mut seen = 0usize;
    for file in sources.iter().filter(|f| !f.ends_with("tests/docs.rs") && !f.ends_with("it/docs.rs")) {
        let text = fs::read_to_string(file).unwrap();
        let name = file.strip_prefix(&root).unwrap().display();
        for target in citations(&text) {
            seen += 1;
            wrong.extend(broken(target, &[&root, &root.join("docs"), file.parent().unwrap()]).map(|why| format!("{name}: {why}")));
        }
        // Sections must be cited by anchor: numbers go stale.
        wrong.extend(text.lines().filter(|l| l.contains('§')).map(|l| format!("{name}: section without a document: {}", l.trim())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 30, "only {seen} citations found");
}

/// Every row of a table has as many cells as the heading: a row that is torn apart reads as something else.
#[test]
fn rows_of_tables_have_the_cells_of_their_headings() {
    let cells = |row: &str| row.replace("\\|", "").matches('|').count();
    let mut torn = Vec::new();
    for path in documents() {
        let (mut code, mut heading) = (false, None);
        for (number, line) in (1..).zip(fs::read_to_string(&path).unwrap().lines()) {
            let line = line.trim();
            code ^= line.starts_with("```");
            if code || !line.starts_with('|') {
                heading = None;
                continue;
            }
            let expected = *heading.get_or_insert(cells(line));
            if cells(line) != expected || !line.ends_with('|') {
                torn.push(format!("{}:{number}: {line}", path.display()));
            }
        }
    }
    assert!(torn.is_empty(), "{}", torn.join("\n"));
}

#[test]
fn relative_links_resolve() {
    let mut wrong = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for rest in text.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let inside = target.starts_with('#');
            let whole = if inside { format!("{}{target}", document.file_name().unwrap().display()) } else { target.to_owned() };
            let why = broken(&whole, &[document.parent().unwrap()]);
            wrong.extend(why.map(|why| format!("{}: {why}", document.strip_prefix(root()).unwrap().display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Folders at the top of the repository whose files documents name.
const FOLDERS: [&str; 9] = [".ci/", "bench/", "docs/", "dumps/", "examples/", "fuzz/", "release/", "src/", "tests/"];

/// Folders of dotnet/runtime, which documents name by the same first component.
const FOLDERS_OF_THE_RUNTIME: [&str; 5] = ["docs/design", "src/coreclr", "src/libraries", "src/mono", "src/native"];

/// Paths of the repository among the words between backticks in `text`: those with a folder, or the name of a source file.
fn named_paths(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split('`').skip(1).step_by(2).filter_map(|code| code.split([' ', ',', '#']).next());
    let ours = |w: &&str| FOLDERS.iter().any(|f| w.starts_with(f)) && !FOLDERS_OF_THE_RUNTIME.iter().any(|f| w.starts_with(f));
    let is_pattern = |w: &str| w.contains("NAME") || w.contains(['*', '<', '{', '\u{2026}', '\\', '\n']);
    words.filter(move |w| (ours(w) || w.ends_with(".rs") && w.len() > 3) && !is_pattern(w))
}

/// Lines of the module documentation at the head of a source file, joined.
fn module_head(source: &str) -> String {
    let lines = source.lines().take_while(|l| l.starts_with("//!"));
    lines.map(|l| l.trim_start_matches("//!").trim_start()).collect::<Vec<_>>().join("\n")
}

/// Text of a Markdown document without its blocks of code.
fn prose(text: &str) -> String {
    let mut code = false;
    let outside = |l: &&str| {
        code ^= l.trim_start().starts_with("```");
        !code
    };
    text.lines().filter(outside).collect::<Vec<_>>().join("\n")
}

/// Every path of the repository that a document or the head of a module names exists.
#[test]
fn named_paths_exist() {
    let root = root();
    let sources: Vec<PathBuf> = ["src", "tests", "examples", "fuzz"].iter().flat_map(|f| files(&root.join(f), &["rs"])).collect();
    let names: Vec<&str> = sources.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
    let text = |f: &PathBuf| fs::read_to_string(f).unwrap();
    let documents = documents().into_iter().map(|f| (prose(&text(&f)), f));
    let heads = sources.iter().map(|f| (module_head(&text(f)), f.clone()));
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (text, file) in documents.chain(heads) {
        for path in named_paths(&text) {
            checked += 1;
            let bases = [&root, &root.join("src"), &root.join("docs"), file.parent().unwrap()];
            let bare = !path.contains('/') && names.contains(&path);
            if !bare && !bases.iter().any(|b| b.join(path).exists()) {
                wrong.push(format!("{}: {path} does not exist", file.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 150, "only {checked} paths found");
}

/// Rows of the table with the heading `heading` in the head of a module: the words between backticks in the first column.
fn rows(head: &str, heading: &str) -> Vec<Vec<String>> {
    let table = head.lines().skip_while(|l| !l.starts_with(heading)).skip(2).take_while(|l| l.starts_with('|'));
    let first = table.map(|l| l.split('|').nth(1).unwrap_or_default());
    first.map(|cell| cell.split('`').skip(1).step_by(2).map(|w| w.trim_start_matches("src/").to_string()).collect()).collect()
}

/// The tables of modules in the heads of modules name modules that exist.
#[test]
fn tables_of_modules_name_modules() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for file in files(&root().join("src"), &["rs"]) {
        for name in rows(&module_head(&fs::read_to_string(&file).unwrap()), "| module |").into_iter().flatten().filter(|n| n != "mod") {
            checked += 1;
            let folder = file.parent().unwrap();
            if ![folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")].iter().any(|f| f.exists()) {
                wrong.push(format!("{}: module {name} does not exist", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 20, "only {checked} modules found");
}

/// Each source file begins with a line that says what is in it.
#[test]
fn source_files_have_a_first_line() {
    let files = files(&root().join("src"), &["rs"]);
    let without = files.iter().filter(|file| !fs::read_to_string(file).unwrap().starts_with("//! "));
    assert_eq!(without.collect::<Vec<_>>(), Vec::<&PathBuf>::new());
}

/// A heading in a comment has a separate line: rustdoc shows the text that follows it on the line as part of the heading.
#[test]
fn headings_of_comments_have_their_own_lines() {
    let mut wrong = Vec::new();
    for file in files(&root().join("src"), &["rs"]) {
        for (line, number) in fs::read_to_string(&file).unwrap().lines().zip(1..) {
            let heading = line
                .trim_start()
                .strip_prefix("/// # ")
                .and_then(|h| ["Errors", "Panics", "Examples"].iter().find_map(|n| h.strip_prefix(n)));
            if heading.is_some_and(|rest| !rest.is_empty()) {
                wrong.push(format!("{}:{number}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The floors have one order, from the highest to the lowest, wherever they are listed.
#[test]
fn floors_are_listed_in_one_order() {
    let text = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let floors: Vec<Vec<String>> = FLOORS.iter().map(|f| f.iter().map(|n| (*n).to_string()).collect()).collect();
    assert_eq!(rows(&text("docs/architecture.md"), "| floor |"), floors);
    assert_eq!(rows(&module_head(&text("src/lib.rs")), "| floor |"), floors);
}

/// Returns the names in the first column of the table of docs/json.md with this heading.
fn named_rows(heading: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/json.md")).unwrap();
    let table = text.split(heading).nth(1).unwrap();
    let rows = table.lines().skip(2).map_while(|row| row.strip_prefix("| `")?.split_once('`'));
    rows.map(|(name, _)| name.to_string()).collect()
}

/// docs/json.md lists what can be missing from an answer, in the order of the source.
#[test]
fn codes_of_missing_data_are_documented() {
    assert_eq!(named_rows("| code | what is missing |"), gcdump::Missing::NAMES);
}

/// docs/json.md lists what would supply missing data, in the order of the source.
#[test]
fn remedies_are_documented() {
    assert_eq!(named_rows("| remedy | what would help |"), gcdump::Remedy::NAMES);
}
