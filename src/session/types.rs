//! Type patterns, and the list of loaded types.

use std::fmt;

use super::Namer;
use crate::base::{Addr, Collector, Name, NoteKind, glob, len64, plural};
use crate::clr::fields::Types;
use crate::clr::type_names::Label;
use crate::gc::ObjectType;

/// A type, as named by users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypePattern {
    /// By its method table.
    MethodTable(Addr),
    /// By its name. With `*` or `?`, wildcards that have to match all of the full name. Otherwise the full name if there is such a
    /// type, else the simple name, which may leave out namespaces, enclosing types and generic arguments, else any part of the
    /// full name; the latter two in any case.
    Name(String),
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypePattern::MethodTable(mt) => mt.fmt(f),
            TypePattern::Name(name) => name.fmt(f),
        }
    }
}

/// How closely a type's name matches a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    Part,
    Simple,
    Full,
}

/// How closely a type's name matches, in the form of the runtime or in that for people.
fn closeness(pattern: &str, name: &Name) -> Option<Closeness> {
    exact_closeness(pattern, name).max(shown_closeness(pattern, name.shown()))
}

/// Closeness of the form for people, which begins with a word: `async Lab.Service.Fetch`. Only patterns that are written like it match it.
fn shown_closeness(pattern: &str, shown: &str) -> Option<Closeness> {
    if pattern.contains(['*', '?']) {
        return glob(pattern, shown).then_some(Closeness::Full);
    }
    let (word, name) = shown.split_once(' ')?;
    let pattern = pattern.strip_prefix(word)?.strip_prefix(' ')?;
    exact_closeness(pattern, name)
}

fn exact_closeness(pattern: &str, name: &str) -> Option<Closeness> {
    if pattern.contains(['*', '?']) {
        return glob(pattern, name).then_some(Closeness::Full);
    }
    if name == pattern {
        return Some(Closeness::Full);
    }
    let (pattern, name) = (pattern.to_ascii_lowercase(), name.to_ascii_lowercase());
    // As metadata writes generic types: List`1.
    let simple = pattern.rsplit_once('`').filter(|(_, arity)| arity.bytes().all(|b| b.is_ascii_digit())).map_or(&*pattern, |(s, _)| s);
    let simple = if pattern.contains('<') { ends_with(&name, simple) } else { ends_with(&without_arguments(&name), simple) };
    if simple {
        return Some(Closeness::Simple);
    }
    name.contains(&pattern).then_some(Closeness::Part)
}

/// Whether `name` is `simple`, or ends with it after a namespace or an enclosing type.
fn ends_with(name: &str, simple: &str) -> bool {
    let Some(before) = name.strip_suffix(simple) else { return false };
    // Not the end of a generic argument.
    let outside = before.matches('<').count() == before.matches('>').count();
    !simple.is_empty() && outside && (before.is_empty() || before.ends_with(['.', '+']))
}

/// The name without generic arguments.
fn without_arguments(name: &str) -> String {
    let mut depth = 0usize;
    let outside = |c: &char| {
        match c {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    };
    name.chars().filter(outside).collect()
}

/// What the patterns of a query mean among the types that it is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeFilter {
    /// Each with how closely types have to match; `None` if none does.
    patterns: Vec<(TypePattern, Option<Closeness>)>,
}

impl TypeFilter {
    /// Chooses the closest matches among the types that are called so, which are asked for if there is a name among the patterns.
    /// Patterns without wildcards that match none are told in `notes`, and those that may mean a type without a name.
    pub(crate) fn of(patterns: &[TypePattern], labels: impl FnOnce() -> Vec<Label>, notes: &Collector) -> TypeFilter {
        let is_name = |p: &TypePattern| matches!(p, TypePattern::Name(_));
        let labels = if patterns.iter().any(is_name) { labels() } else { Vec::new() };
        let chosen = |pattern: &TypePattern| {
            let TypePattern::Name(text) = pattern else { return (pattern.clone(), Some(Closeness::Full)) };
            let wild = text.contains(['*', '?']);
            let closest = labels.iter().filter_map(|l| closeness(text, &l.name)).max();
            if closest.is_none() && !wild {
                notes.add(NoteKind::NoMatch, None, no_match(text, &labels));
            }
            // What stands for a name has a '!', which no name has; and a full name is that of one type.
            if !text.contains('!') && (wild || closest != Some(Closeness::Full)) {
                note_lost(text, &labels, notes);
            }
            (pattern.clone(), if wild { Some(Closeness::Full) } else { closest })
        };
        TypeFilter { patterns: patterns.iter().map(chosen).collect() }
    }

    /// Whether there are no patterns, which stands for every type.
    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether one of the patterns means the type with this method table. `name` supplies its name if needed.
    pub(crate) fn matches(&self, method_table: Addr, name: impl FnOnce() -> Name) -> bool {
        let tables = self.patterns.iter().any(|(p, _)| *p == TypePattern::MethodTable(method_table));
        let named = || self.patterns.iter().any(|(p, closest)| matches!(p, TypePattern::Name(_)) && closest.is_some());
        tables || (named() && self.matches_name(&name()))
    }

    /// Whether one of the patterns means `ty`, which `namer` names if needed.
    pub(crate) fn takes(&self, ty: &ObjectType, namer: &Namer) -> bool {
        self.matches(ty.method_table, || namer.name_or_address(ty.method_table))
    }

    /// Whether one of the patterns means the type of this name.
    pub(crate) fn matches_name(&self, name: &Name) -> bool {
        let matches = |(pattern, closest): &(TypePattern, Option<Closeness>)| match pattern {
            TypePattern::MethodTable(_) => false,
            TypePattern::Name(text) => closest.is_some() && closeness(text, name) >= *closest,
        };
        self.patterns.iter().any(matches)
    }
}

/// Names that are told of a pattern that matches none.
const NEAREST: usize = 3;

/// Tells of types that `pattern` would mean if they had names.
fn note_lost(pattern: &str, labels: &[Label], notes: &Collector) {
    let lost = labels.iter().filter(|l| l.is_lost && closeness(pattern, &l.name).is_none());
    let lost = len64(lost.count());
    if lost > 0 {
        let types = plural(lost, "type");
        notes.add(NoteKind::Missing, None, format!("'{pattern}' may mean some of {types} whose names are not in the dump"));
    }
}

fn no_match(pattern: &str, labels: &[Label]) -> String {
    let mut text = format!("no type matches '{pattern}'");
    let wanted = last_part(pattern);
    let most = wanted.chars().count().div_euclid(3).max(1);
    let distance = |name: &str| strsim::osa_distance(&wanted, &last_part(name));
    let names = labels.iter().map(|l| &*l.name);
    let mut nearest: Vec<(usize, &str)> = names.map(|n| (distance(n), n)).filter(|(distance, _)| *distance <= most).collect();
    nearest.sort();
    nearest.dedup();
    nearest.truncate(NEAREST);
    for (i, (_, name)) in nearest.iter().enumerate() {
        text.push_str(if i == 0 { "; did you mean " } else { ", " });
        text.push_str(name);
    }
    text.push_str(if nearest.is_empty() { "" } else { "?" });
    text
}

/// The last part of a type's name, without generic arguments, in lower case.
fn last_part(name: &str) -> String {
    let bare = without_arguments(name).to_ascii_lowercase();
    bare.rsplit(['.', '+']).next().unwrap_or_default().to_string()
}

/// Method tables of all loaded types: those of every module by token, including open generic types, then the generic
/// instances.
pub(crate) fn loaded_types(types: &Types) -> Vec<Addr> {
    let tables = types.names().method_tables();
    if let Some(blobs) = types.names().native_aot().and_then(|p| p.blobs()) {
        let mut out: Vec<Addr> = blobs.definitions().map(|(mt, _)| mt).collect();
        out.sort_unstable();
        return out;
    }
    let rows = |module| types.names().modules().type_rows(module);
    let mut out = types.loader().type_defs(types.modules(), rows, |mt| tables.is_valid(mt) == Ok(true));
    out.extend(types.instances());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = [
        "System.String",
        "System.String[]",
        "Lab.Program+Entry",
        "System.Collections.Generic.Dictionary<System.String, Lab.Program+Entry>",
        "System.Collections.Generic.Dictionary<System.String, Lab.Program+Entry>+Entry[]",
        "Lab.EntryList",
    ];

    fn meant(pattern: &str) -> (Vec<&'static str>, Vec<String>) {
        let notes = Collector::new();
        let labels = || NAMES.iter().map(|name| Label { name: (*name).into(), is_lost: false }).collect();
        let filter = TypeFilter::of(&[TypePattern::Name(pattern.into())], labels, &notes);
        let found = NAMES.into_iter().filter(|name| filter.matches(Addr(0), || (*name).into()));
        (found.collect(), notes.into_notes().iter().map(|n| n.message.clone()).collect())
    }

    #[test]
    fn the_closest_names_are_meant() {
        let of = |pattern| meant(pattern).0;
        assert_eq!(of("System.String"), ["System.String"]);
        assert_eq!(of("string"), ["System.String"]);
        assert_eq!(of("String[]"), ["System.String[]"]);
        assert_eq!(of("Entry"), ["Lab.Program+Entry"]);
        assert_eq!(of("Program+Entry"), ["Lab.Program+Entry"]);
        assert_eq!(of("Dictionary"), [NAMES[3]]);
        assert_eq!(of("Dictionary`2"), [NAMES[3]]);
        assert_eq!(of("Dictionary<System.String, Lab.Program+Entry>"), [NAMES[3]]);
        assert_eq!(of("Entry[]"), [NAMES[4]]);
        assert_eq!(of("trylis"), ["Lab.EntryList"]);
        assert_eq!(of("Lab"), [NAMES[2], NAMES[3], NAMES[4], NAMES[5]]);
        assert_eq!(of("Lab.*"), [NAMES[2], NAMES[5]]);
        assert!(of("lab.*").is_empty());
    }

    #[test]
    fn the_nearest_names_are_told() {
        assert_eq!(meant("Entyr"), (vec![], vec!["no type matches 'Entyr'; did you mean Lab.Program+Entry?".into()]));
        assert_eq!(meant("Nothing"), (vec![], vec!["no type matches 'Nothing'".into()]));
        assert_eq!(meant("x*"), (vec![], vec![]));
    }
}
