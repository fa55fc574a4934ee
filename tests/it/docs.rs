//! Citations resolve: every `*.md` named in sources, tests and documents, every relative link, every anchor.

use std::fs;
use std::path::{Path, PathBuf};

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
    out.extend(files(&root().join("docs"), &["md"]));
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

/// Why `target`, cited in `file`, does not resolve against any of `bases`.
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

/// The paths in `docs/architecture.md` exist, except those of planned extensions.
#[test]
fn paths_of_the_architecture_exist() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let built = text.split("## Planned extensions").next().unwrap();
    let mut checked = 0;
    for word in built.split('`').skip(1).step_by(2).filter(|w| w.starts_with("src/") || w.starts_with("tests/") || w.starts_with("docs/")) {
        for word in word.split(", ").filter(|w| !w.contains("NAME") && !w.contains(' ')) {
            checked += 1;
            assert!(root().join(word).exists(), "{word}");
        }
    }
    assert!(checked > 20, "{checked}");
}
