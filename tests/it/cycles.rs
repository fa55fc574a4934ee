//! Imports between files form no cycle of more than two files.

use std::collections::{BTreeMap, BTreeSet};

use crate::floors::program;

/// A path of names: of a module, or of an item in it.
type Path = Vec<String>;

/// The modules by path, each with its file, and the names that each re-exports.
struct Modules {
    files: BTreeMap<Path, String>,
    exported: BTreeMap<Path, BTreeMap<String, Path>>,
}

fn names(text: &str) -> Path {
    text.split("::").map(|name| name.trim().to_string()).filter(|name| !name.is_empty()).collect()
}

/// Returns the module in the file `name`, which is relative to `src`.
fn module_of(name: &str) -> Path {
    let mut path: Path = name.trim_end_matches(".rs").split('/').map(Into::into).collect();
    path.pop_if(|last| last == "mod" || last == "lib");
    path
}

/// Returns the paths of a `use` tree, each with the name that it is used by: `a::{b, c::d as e}` has `a::b` and `a::c::d`.
fn tree(text: &str) -> Vec<(Path, String)> {
    let Some((head, rest)) = text.split_once('{') else {
        let (path, alias) = text.split_once(" as ").unwrap_or((text, ""));
        let mut path = names(path);
        path.pop_if(|last| last == "self");
        let Some(last) = path.last() else { return Vec::new() };
        let alias = if alias.is_empty() { last } else { alias.trim() };
        return vec![(path.clone(), alias.to_string())];
    };
    let (mut depth, mut items) = (0, vec![String::new()]);
    for c in rest[..rest.rfind('}').unwrap()].chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 { items.push(String::new()) } else { items.last_mut().unwrap().push(c) }
    }
    let within = |item: &String| tree(item).into_iter().map(|(path, alias)| (names(head).into_iter().chain(path).collect(), alias));
    items.iter().filter(|item| !item.trim().is_empty()).flat_map(within).collect()
}

/// Returns the `use` declarations of a file, each with whether it re-exports, and the rest of the code.
fn declarations(code: &str) -> (Vec<(bool, String)>, String) {
    let (mut uses, mut rest, mut open) = (Vec::new(), String::new(), None::<(bool, String)>);
    for line in code.lines() {
        let line = line.split("//").next().unwrap();
        let visible = |line: &str| line.starts_with("pub").then(|| line.split_once(" use ")).flatten().map(|(_, tree)| tree.to_string());
        let begun = match line.trim_start() {
            _ if open.is_some() => None,
            text if text.starts_with("pub use ") || (text.starts_with("pub(") && text.contains(") use ")) => {
                Some((true, visible(text).unwrap()))
            }
            text => text.strip_prefix("use ").map(|tree| (false, tree.to_string())),
        };
        match (&mut open, begun) {
            (Some((_, text)), _) => text.push_str(line),
            (None, Some(begun)) => open = Some(begun),
            (None, None) => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
        if let Some((public, text)) = open.take_if(|(_, text)| text.contains(';')) {
            uses.push((public, text.split(';').next().unwrap().to_string()));
        }
    }
    (uses, rest)
}

/// Returns the paths in code that begin with `crate`, `super` or `self`. A visibility names no item.
fn paths_in(code: &str) -> Vec<Path> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = &code[..at];
            if before.ends_with(|c: char| is_name(c) || c == ':') || before.ends_with("pub(in ") {
                continue;
            }
            let end = code[at..].find(|c: char| !is_name(c) && c != ':').map_or(code.len(), |end| at + end);
            out.push(names(&code[at..end]));
        }
    }
    out
}

impl Modules {
    /// Returns the path from the root of the item that `path` names in `module`.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Path> {
        let mut here = module.to_vec();
        let mut rest = path;
        let mut relative = false;
        while let [first, more @ ..] = rest {
            match first.as_str() {
                "crate" => here.clear(),
                "super" => drop(here.pop()),
                "self" => {}
                _ => break,
            }
            (rest, relative) = (more, true);
        }
        here.extend(rest.iter().cloned());
        // Any other path begins with a submodule of this one.
        (relative || self.files.contains_key(&here[..module.len() + 1])).then_some(here)
    }

    /// Returns the module that declares the item at `path`.
    fn declares(&self, path: &[String], depth: u32) -> Path {
        let mut at = 0;
        while at < path.len() && self.files.contains_key(&path[..=at]) {
            at += 1;
        }
        let module = &path[..at];
        let (Some(name), true) = (path.get(at), depth < 20) else { return module.to_vec() };
        for alias in [name.as_str(), "*"] {
            let exported = self.exported.get(module).and_then(|exported| exported.get(alias));
            let Some(mut target) = exported.and_then(|path| self.absolute(module, path)) else { continue };
            if alias == "*" {
                target.pop();
                target.push(name.clone());
            }
            target.extend(path[at + 1..].iter().cloned());
            let found = self.declares(&target, depth + 1);
            if alias != "*" || found != module {
                return found;
            }
        }
        module.to_vec()
    }
}

/// Returns the files that each file uses: the items that it names, followed through re-exports to the file that declares them.
fn imports(files: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let mut modules = Modules { files: files.iter().map(|(name, _)| (module_of(name), name.clone())).collect(), exported: BTreeMap::new() };
    let mut used = Vec::new();
    for (name, code) in files {
        let module = module_of(name);
        let (uses, rest) = declarations(code);
        let mut paths = paths_in(&rest);
        for (public, text) in uses {
            for (path, alias) in tree(&text) {
                if public {
                    modules.exported.entry(module.clone()).or_default().insert(alias, path);
                } else {
                    paths.push(path);
                }
            }
        }
        used.push((name, module, paths));
    }
    let to = |module: &Path, path: &Path| {
        let target = modules.declares(&modules.absolute(module, path)?, 0);
        modules.files.get(&target).filter(|_| target != *module).cloned()
    };
    used.iter().map(|(name, module, paths)| ((*name).clone(), paths.iter().filter_map(|path| to(module, path)).collect())).collect()
}

/// Returns the cycles of more than two files.
fn cycles(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<&str>> {
    fn reached<'g>(graph: &'g BTreeMap<String, BTreeSet<String>>, from: &'g str) -> BTreeSet<&'g str> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(file) = open.pop() {
            open.extend(graph.get(file).into_iter().flatten().map(String::as_str).filter(|to| seen.insert(*to)));
        }
        seen
    }
    let all: BTreeMap<&str, BTreeSet<&str>> = graph.keys().map(|file| (file.as_str(), reached(graph, file))).collect();
    let cycle = |file: &str| all[file].iter().copied().filter(|other| all.get(other).is_some_and(|back| back.contains(file))).collect();
    let found: BTreeSet<Vec<&str>> = all.keys().map(|file| cycle(file)).filter(|cycle: &Vec<&str>| cycle.len() > 2).collect();
    found.into_iter().collect()
}

#[test]
fn imports_form_no_cycle_of_more_than_two_files() {
    let graph = imports(&program());
    assert!(graph.values().map(BTreeSet::len).sum::<usize>() > 1000, "few imports found");
    let found = cycles(&graph);
    assert_eq!(found, [""; 0].map(|_| Vec::<&str>::new()), "move what these files share to a file below them");
}

#[test]
fn cycles_are_found_through_re_exports() {
    let file = |name: &str, code: &str| (name.to_string(), code.to_string());
    let a = file("a/mod.rs", "mod one;\nmod two;\npub use two::{Thing as Other,\n    More};\nuse one::start;");
    let one = file("a/one.rs", "use super::{Other, More}; // crate::b\nfn start() {}");
    let two = file("a/two.rs", "pub(in crate::a) struct Thing(crate::b::B);");
    let b = file("b.rs", "use crate::a::two::Thing;");
    let used = |files: &[(String, String)], of: &str| imports(files)[of].iter().cloned().collect::<Vec<_>>();
    let files = [a.clone(), one.clone(), two.clone(), b];
    assert_eq!((used(&files, "a/mod.rs"), used(&files, "a/one.rs")), (vec!["a/one.rs".to_string()], vec!["a/two.rs".to_string()]));
    assert_eq!((used(&files, "a/two.rs"), cycles(&imports(&files)).len()), (vec!["b.rs".to_string()], 0));
    let closed = [a, one, two, file("b.rs", "fn b() { crate::a::one::start() }")];
    assert_eq!(cycles(&imports(&closed)), [["a/one.rs", "a/two.rs", "b.rs"]]);
}
