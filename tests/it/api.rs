//! The public API equals the list in `docs/api.txt`. `GCDUMP_BLESS=1` rewrites it; the diff is for review.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, Signature, TraitItem, UseTree, Visibility};

/// Paths of the modules whose items users name. Everything else is at most visible to the tests of this repository.
const MODULES: [(&str, &str); 3] =
    [("gcdump", "src/lib.rs"), ("gcdump::analysis", "src/analysis/mod.rs"), ("gcdump::model", "src/model/mod.rs")];

/// The items of a floor by name.
type Items = BTreeMap<String, Vec<(PathBuf, Item)>>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, out);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            out.push(entry);
        }
    }
    out.sort();
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether an item is not part of the API: hidden, or only for tests.
fn is_hidden(attributes: &[Attribute]) -> bool {
    let text = |a: &Attribute| a.meta.to_token_stream().to_string().replace(' ', "");
    attributes.iter().map(text).any(|a| a == "doc(hidden)" || a == "cfg(test)" || a.contains("\"internals\""))
}

/// Source text of tokens, without superfluous blanks.
fn tidy(tokens: impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (from, to) in [
        (" < ", "<"),
        ("< ", "<"),
        (" <", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" :: ", "::"),
        (":: ", "::"),
        (" ,", ","),
        (" :", ":"),
        ("( ", "("),
        (" )", ")"),
        (" (", "("),
        (" ;", ";"),
        ("[ ", "["),
        (" ]", "]"),
        ("' ", "'"),
        (",)", ")"),
        ("->", " ->"),
        ("  ", " "),
    ] {
        text = text.replace(from, to);
    }
    text
}

fn named(item: &Item) -> Option<String> {
    let (visibility, name, attributes) = match item {
        Item::Struct(i) => (&i.vis, &i.ident, &i.attrs),
        Item::Enum(i) => (&i.vis, &i.ident, &i.attrs),
        Item::Trait(i) => (&i.vis, &i.ident, &i.attrs),
        Item::Fn(i) => (&i.vis, &i.sig.ident, &i.attrs),
        Item::Type(i) => (&i.vis, &i.ident, &i.attrs),
        Item::Const(i) => (&i.vis, &i.ident, &i.attrs),
        _ => return None,
    };
    (is_public(visibility) && !is_hidden(attributes)).then(|| name.to_string())
}

/// Returns the enums that `named_enum!` and `views!` make.
fn expanded(item: &Item) -> Vec<Item> {
    let Item::Macro(call) = item else { return vec![item.clone()] };
    if !(call.mac.path.is_ident("named_enum") || call.mac.path.is_ident("views")) {
        return Vec::new();
    }
    // `Variant = "name" | "alias"` is not valid Rust, `Variant` is.
    let plain = |group: Group| {
        let mut in_name = false;
        let kept = group.stream().into_iter().filter(|token| {
            if let TokenTree::Punct(p) = token {
                in_name = p.as_char() == '=' || (in_name && p.as_char() != ',');
            }
            !in_name
        });
        TokenTree::Group(Group::new(group.delimiter(), kept.collect()))
    };
    // `pub open enum Name(i32)` and `pub enum Name as Fields` are enums, too.
    let mut is_private = false;
    let tokens = call.mac.tokens.clone().into_iter().filter_map(|token| match token {
        TokenTree::Ident(word) if word == "as" || std::mem::take(&mut is_private) => {
            is_private = word == "as";
            None
        }
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(plain(group)),
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => None,
        TokenTree::Ident(word) if word == "open" => None,
        other => Some(other),
    });
    syn::parse2::<syn::File>(tokens.collect()).unwrap().items
}

fn floor_items(floor: &str) -> (Items, Vec<Item>) {
    let mut files = Vec::new();
    let folder = root().join("src").join(floor);
    sources(&folder, &mut files);
    let (mut items, mut all) = (Items::new(), Vec::new());
    for path in files {
        let file = syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for item in file.items.iter().flat_map(expanded) {
            if let Some(name) = named(&item) {
                items.entry(name).or_default().push((path.clone(), item.clone()));
            }
            all.push(item);
        }
    }
    (items, all)
}

/// Expands `a::{b, c::d}` to paths.
fn leaves(tree: &UseTree, before: &[String], out: &mut Vec<Vec<String>>) {
    let with = |name: String| before.iter().cloned().chain([name]).collect::<Vec<_>>();
    match tree {
        UseTree::Path(p) => leaves(&p.tree, &with(p.ident.to_string()), out),
        UseTree::Name(n) => out.push(with(n.ident.to_string())),
        UseTree::Group(g) => g.items.iter().for_each(|t| leaves(t, before, out)),
        UseTree::Rename(_) | UseTree::Glob(_) => panic!("public re-exports are by name: {}", tidy(tree)),
    }
}

struct Api {
    floors: BTreeMap<String, (Items, Vec<Item>)>,
    lines: BTreeSet<String>,
    /// Types and traits that the API contains.
    known: BTreeSet<String>,
    /// Names in public signatures, each with one of these signatures.
    used: BTreeMap<String, String>,
}

impl Api {
    fn line(&mut self, line: String, signature: impl ToTokens) {
        for name in idents(signature) {
            self.used.entry(name).or_insert_with(|| line.clone());
        }
        self.lines.insert(line);
    }

    fn function(&mut self, module: &str, signature: &Signature) {
        self.line(format!("fn {module}::{}", tidy(signature).trim_start_matches("fn ")), signature);
    }

    fn method(&mut self, owner: &str, signature: &Signature, attributes: &[Attribute]) {
        if !is_hidden(attributes) {
            self.line(format!("{owner}::{}", tidy(signature).trim_start_matches("const ").trim_start_matches("fn ")), signature);
        }
    }

    fn item(&mut self, module: &str, floor: &str, name: &str) {
        let found = self.floors[floor].0.get(name).cloned().unwrap_or_default();
        let [(_, item)] = found.as_slice() else { panic!("{module}::{name}: {} items of that name in {floor}", found.len()) };
        let path = format!("{module}::{name}");
        match item {
            Item::Fn(f) => return self.function(module, &f.sig),
            Item::Struct(s) => {
                let public = s.fields.iter().filter(|f| is_public(&f.vis) && !is_hidden(&f.attrs)).collect::<Vec<_>>();
                let fields: Vec<String> = match &s.fields {
                    Fields::Named(_) => public.iter().map(|f| format!("{}: {}", f.ident.as_ref().unwrap(), tidy(&f.ty))).collect(),
                    _ => public.iter().map(|f| tidy(&f.ty)).collect(),
                };
                let kinds = public.iter().map(|f| f.ty.to_token_stream()).collect::<TokenStream>();
                self.line(format!("struct {path} {{ {} }}", fields.join(", ")).replace("{  }", "{}"), kinds);
            }
            Item::Enum(e) => {
                let plain = |v: &syn::Variant| {
                    let mut fields = v.fields.clone();
                    fields.iter_mut().for_each(|f| f.attrs.clear());
                    format!("{}{}", v.ident, tidy(fields))
                };
                let variants = e.variants.iter().map(plain).collect::<Vec<_>>();
                let kinds = e.variants.iter().flat_map(|v| v.fields.iter()).map(|f| f.ty.to_token_stream()).collect::<TokenStream>();
                self.line(format!("enum {path} {{ {} }}", variants.join(", ")), kinds);
            }
            Item::Trait(t) => {
                self.line(format!("trait {path}"), TokenStream::new());
                for item in &t.items {
                    let TraitItem::Fn(f) = item else { continue };
                    self.method(&path, &f.sig, &f.attrs);
                }
            }
            other => self.line(tidy(other), TokenStream::new()),
        }
        self.known.insert(name.to_string());
        // Handles return handles of higher floors, and have the methods of `analysis`.
        let handles = ["session", "managed"];
        let above = ["managed", "analysis"];
        let impls = self.floors.iter().filter(|(f, _)| *f == floor || (handles.contains(&floor) && above.contains(&f.as_str())));
        let impls = impls.flat_map(|(_, (_, all))| all.clone()).collect::<Vec<_>>();
        for item in impls {
            let Item::Impl(i) = item else { continue };
            let owner = match &*i.self_ty {
                syn::Type::Path(p) => p.path.segments.last().unwrap().ident.to_string(),
                _ => continue,
            };
            if i.trait_.is_some() || owner != name || is_hidden(&i.attrs) {
                continue;
            }
            for item in &i.items {
                match item {
                    ImplItem::Fn(f) if is_public(&f.vis) => self.method(&path, &f.sig, &f.attrs),
                    ImplItem::Const(c) if is_public(&c.vis) => self.line(format!("{path}::{}: {}", c.ident, tidy(&c.ty)), &c.ty),
                    _ => {}
                }
            }
        }
    }
}

/// Names in tokens that begin with a capital letter.
fn idents(tokens: impl ToTokens) -> BTreeSet<String> {
    let text = tokens.to_token_stream().to_string();
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|w| w.starts_with(char::is_uppercase)).map(str::to_string).collect()
}

#[test]
fn the_public_api_is_listed() {
    let names = ["analysis", "base", "clr", "contract", "dump", "gc", "graph", "heapgraph", "managed", "memory", "model", "session"];
    let floors: BTreeMap<_, _> = names.iter().map(|f| (f.to_string(), floor_items(f))).collect();
    let mut api = Api { floors, lines: BTreeSet::new(), known: BTreeSet::new(), used: BTreeMap::new() };
    for (module, file) in MODULES {
        let home = Path::new(file).parent().unwrap().file_name().unwrap().to_str().unwrap();
        for item in syn::parse_file(&std::fs::read_to_string(root().join(file)).unwrap()).unwrap().items {
            match item {
                Item::Use(u) if is_public(&u.vis) && !is_hidden(&u.attrs) => {
                    let mut paths = Vec::new();
                    leaves(&u.tree, &[], &mut paths);
                    for path in paths {
                        // Folders of a floor may have the name of another floor: `analysis::dump`.
                        let floor = match path[0].as_str() {
                            "crate" => path[1].as_str(),
                            first if home == "src" => first,
                            _ => home,
                        };
                        api.item(module, floor, path.last().unwrap());
                    }
                }
                Item::Fn(f) if is_public(&f.vis) => api.function(module, &f.sig),
                Item::Mod(m) if is_public(&m.vis) && !is_hidden(&m.attrs) => {
                    api.lines.insert(format!("mod {module}::{}", m.ident));
                }
                _ => {}
            }
        }
    }
    // A type of this crate in a public signature must have a public name.
    let ours = api.floors.values().flat_map(|(items, _)| items.keys()).collect::<BTreeSet<_>>();
    let unnamed = api.used.iter().filter(|(name, _)| ours.contains(name) && !api.known.contains(*name)).collect::<Vec<_>>();
    assert!(unnamed.is_empty(), "types without a public name: {unnamed:#?}");

    let mut text = String::new();
    api.lines.iter().for_each(|l| writeln!(text, "{l}").unwrap());
    let place = root().join("docs/api.txt");
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        std::fs::write(&place, &text).unwrap();
    }
    let listed = std::fs::read_to_string(&place).unwrap_or_default();
    let (listed, found): (BTreeSet<_>, BTreeSet<_>) = (listed.lines().collect(), text.lines().collect());
    let lost = listed.difference(&found).collect::<Vec<_>>();
    let new = found.difference(&listed).collect::<Vec<_>>();
    assert!(
        lost.is_empty() && new.is_empty(),
        "docs/api.txt differs (GCDUMP_BLESS=1 rewrites it): no longer there {lost:#?}, new {new:#?}"
    );
}
