//! Type patterns, and the list of loaded types.

use std::cell::LazyCell;
use std::fmt;

use regex_lite::Regex;

use super::Namer;
use super::csharp::{is_generic, with_any_parameters, with_full_names, with_nullables};
use super::known_types::KnownTypes;
use super::reflected::{ANY, printed, with_any};
use super::type_list::{items, names_assembly, patterns};
use crate::base::missed::contradiction;
use crate::base::{Addr, Collector, Missing, Name, NoteKind, glob, len64, plural};
use crate::clr::fields::Types;
use crate::clr::type_names::Label;
use crate::gc::ObjectType;

/// A user's description of one or more types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypePattern {
    /// The type with this method table.
    MethodTable(Addr),
    /// Types by name. `/…/` is a regular expression that must match a part of the full name. A text with `*` or `?` is a wildcard pattern
    /// for the whole full name. Any other text is first compared with full names, then with simple names, which may omit namespaces,
    /// enclosing types and generic arguments, then with parts of full names. The comparisons with simple names and with parts ignore case. C#
    /// keywords are replaced by the types that they name: `int` is `System.Int32`, `int?` is `System.Nullable<System.Int32>`. If a wildcard pattern
    /// matches no name, names that end with `?` are nullable types as well: `DateTime?[]`. Names may have the form of reflection
    /// (``List`1[[System.String, System.Private.CoreLib]]``). `List<>`, ``List`1`` and `List<T>` are all instances of the generic type. Commas outside of
    /// brackets separate several such texts. An item that names the assembly of the type before it is ignored: an assembly of the process, or one with
    /// its version.
    Name(String),
}

impl TypePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// A message if the pattern is an invalid regular expression.
    pub fn named(name: &str) -> Result<TypePattern, String> {
        let name = name.trim();
        let wrong = items(name).into_iter().find_map(|item| Some((item, expression(item)?.err()?)));
        match wrong {
            Some((item, e)) => Err(format!("{item} is not a regular expression: {e}")),
            None => Ok(TypePattern::Name(name.into())),
        }
    }

    /// Whether the pattern has wildcards or is a regular expression, so that it may match several types.
    pub(crate) fn is_wild(name: &str) -> bool {
        name.contains(['*', '?']) || TypePattern::is_expression(name)
    }

    /// Whether the pattern is a regular expression.
    pub(crate) fn is_expression(name: &str) -> bool {
        source(name).is_some()
    }
}

/// The text between the slashes of a regular expression; `None` for other patterns.
fn source(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('/')?.strip_suffix('/').filter(|source| !source.is_empty())
}

/// The compiled regular expression between slashes; `None` for other patterns.
fn expression(pattern: &str) -> Option<Result<Regex, regex_lite::Error>> {
    source(pattern).map(Regex::new)
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypePattern::MethodTable(mt) => mt.fmt(f),
            TypePattern::Name(name) => name.fmt(f),
        }
    }
}

/// How closely a type's name matches a pattern, from the loosest to the closest match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    Part,
    Simple,
    Full,
}

/// The closer match of `pattern` with the runtime's name or with the display name; `None` if neither matches.
fn closeness(pattern: &str, name: &Name) -> Option<Closeness> {
    exact_closeness(pattern, name).max(shown_closeness(pattern, name.shown()))
}

/// Closeness of a display name that begins with a word, such as `async Lab.Service.Fetch`. A pattern without wildcards must begin with that word.
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
    let is_simple = |name: &str| match pattern.contains('<') {
        true => ends_with(name, &pattern) || is_generic(&pattern, name),
        false => ends_with(&without_arguments(name), &pattern),
    };
    // Stack traces have a dot between a type and the type that encloses it.
    let is_dotted = || pattern.contains('.') && name.contains('+') && !pattern.contains('+') && is_simple(&name.replace('+', "."));
    if is_simple(&name) || is_dotted() {
        return Some(Closeness::Simple);
    }
    name.contains(&pattern).then_some(Closeness::Part)
}

/// Whether `name` is `simple`, or ends with `simple` after a namespace or an enclosing type.
fn ends_with(name: &str, simple: &str) -> bool {
    let Some(before) = name.strip_suffix(simple) else { return false };
    // The match must not be the end of a generic argument.
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

/// A pattern resolved against the types that a query is about.
#[derive(Clone, Debug)]
enum Meaning {
    Table(Addr),
    /// Types whose names match the text at least this closely.
    Name(String, Closeness),
    Expression(Regex),
    /// The pattern matches no type.
    Nothing,
}

impl Meaning {
    fn has(&self, name: &Name) -> bool {
        match self {
            Meaning::Table(_) | Meaning::Nothing => false,
            Meaning::Name(text, closest) => closeness(text, name) >= Some(*closest),
            Meaning::Expression(regex) => regex.is_match(name) || regex.is_match(name.shown()),
        }
    }
}

/// The patterns of a query, resolved against the types that the query is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeFilter {
    meanings: Vec<Meaning>,
}

impl TypeFilter {
    /// Resolves each pattern to its closest matches among the names of `types`. A name with commas outside of brackets is several patterns. Adds notes on
    /// patterns that match no type, and on patterns that might match a type whose name is missing from the dump.
    pub(crate) fn of(patterns: &[TypePattern], types: &dyn KnownTypes, notes: &Collector) -> TypeFilter {
        let is_name = |p: &TypePattern| matches!(p, TypePattern::Name(_));
        let labels = if patterns.iter().any(is_name) { types.labels() } else { Vec::new() };
        let meanings = patterns.iter().flat_map(|pattern| -> Vec<Meaning> {
            match pattern {
                TypePattern::MethodTable(table) => vec![table_of(*table, types, notes)],
                TypePattern::Name(text) => parts(text, types).into_iter().map(|part| named(part, &labels, types, notes)).collect(),
            }
        });
        TypeFilter { meanings: meanings.collect() }
    }

    /// Resolves `pattern`, the name of a type in a rule, or a list of names. A rule is about the same types in every run, so a name cannot be a part of a
    /// longer name.
    pub(crate) fn of_rule(pattern: &str, labels: &[Label], is_assembly: impl Fn(&str) -> bool) -> TypeFilter {
        let meanings = patterns(pattern, is_assembly).into_iter().map(|part| meaning_of(part, labels));
        TypeFilter { meanings: meanings.filter(|meaning| !matches!(meaning, Meaning::Name(_, Closeness::Part))).collect() }
    }

    /// Whether the list of patterns is empty, which selects every type.
    pub(crate) fn is_empty(&self) -> bool {
        self.meanings.is_empty()
    }

    /// Whether one of the patterns selects the type with this method table. `name` supplies the type's name if needed.
    pub(crate) fn matches(&self, method_table: Addr, name: impl FnOnce() -> Name) -> bool {
        let tables = self.meanings.iter().any(|m| matches!(m, Meaning::Table(table) if *table == method_table));
        let named = || self.meanings.iter().any(|m| matches!(m, Meaning::Name(..) | Meaning::Expression(_)));
        tables || (named() && self.matches_name(&name()))
    }

    /// Whether one of the patterns selects `ty`, which `namer` names if needed.
    pub(crate) fn takes(&self, ty: &ObjectType, namer: &Namer) -> bool {
        self.matches(ty.method_table, || namer.name_or_address(ty.method_table))
    }

    /// Whether one of the patterns selects types with this name.
    pub(crate) fn matches_name(&self, name: &Name) -> bool {
        self.meanings.iter().any(|meaning| meaning.has(name))
    }
}

/// Returns the patterns in a list of names. The modules are needed only for a list.
fn parts<'t>(text: &'t str, types: &dyn KnownTypes) -> Vec<&'t str> {
    let modules: LazyCell<Vec<String>, _> = LazyCell::new(|| types.modules());
    patterns(text, |word| modules.iter().any(|module| names_assembly(word, module)))
}

/// Resolves the address of a method table, with a note if no type has it.
fn table_of(table: Addr, types: &dyn KnownTypes, notes: &Collector) -> Meaning {
    // An object may have a method table that is damaged.
    if let Some(none) = types.no_type_at(table).filter(|_| !types.has(table)) {
        notes.add(NoteKind::NoMatch, none.at, none.why);
    }
    Meaning::Table(table)
}

/// Resolves one name, with notes if it matches no type or may match more types than it does.
fn named(text: &str, labels: &[Label], types: &dyn KnownTypes, notes: &Collector) -> Meaning {
    // In a list, an address needs its prefix.
    if let Some(table) = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        return table_of(Addr(table), types, notes);
    }
    let meaning = meaning_of(text, labels);
    if let Some(why) = no_match(text, &meaning, labels) {
        notes.add(NoteKind::NoMatch, None, why);
    }
    // Only labels of types without a name contain a '!', so a pattern with a '!' is such a label. Neither a label nor the full name of a type
    // can mean another type without a name.
    let is_one = matches!(&meaning, Meaning::Name(name, Closeness::Full) if !TypePattern::is_wild(name));
    if !text.contains('!') && !is_one {
        note_lost(text, &meaning, labels, notes);
    }
    meaning
}

/// Resolves a name, wildcard pattern or regular expression to its closest matches among `labels`.
fn meaning_of(text: &str, labels: &[Label]) -> Meaning {
    let text = text.trim();
    match expression(text) {
        Some(Ok(regex)) => return Meaning::Expression(regex),
        Some(Err(_)) => return Meaning::Nothing,
        None => {}
    }
    let full = with_names(text);
    // A question mark is a wildcard if any name fits, else C#'s mark of nullable types. `T` is a type if any name fits, else a type parameter.
    let is_other = !full.contains('*') && closest(&full, labels) <= Some(Closeness::Part);
    let other = is_other.then(|| if full.contains('?') { with_nullables(&full) } else { with_any_parameters(&full) }).flatten();
    let full = other.filter(|name| closest(name, labels) > Some(Closeness::Part)).unwrap_or(full);
    let closest = if TypePattern::is_wild(&full) { Some(Closeness::Full) } else { closest(&full, labels) };
    // A C# keyword matches only full and simple names, not parts of names.
    let closest = closest.filter(|closest| full == *text || *closest > Closeness::Part);
    closest.map_or(Meaning::Nothing, |closest| Meaning::Name(full, closest))
}

/// `text` with C# keywords replaced by full names and, unless it is a wildcard pattern, in the form of printed names.
fn with_names(text: &str) -> String {
    if TypePattern::is_wild(text) {
        return with_full_names(text);
    }
    with_full_names(&with_any(printed(text).as_deref().unwrap_or(text)))
}

/// The closeness of the best match of `pattern` among the names; `None` if no name matches.
fn closest(pattern: &str, labels: &[Label]) -> Option<Closeness> {
    labels.iter().filter_map(|l| closeness(pattern, &l.name)).max()
}

/// Maximum number of names suggested for a pattern that matches nothing.
const NEAREST: usize = 3;

/// Adds a note with the number of types that `pattern` might match if their names were in the dump.
fn note_lost(pattern: &str, meaning: &Meaning, labels: &[Label], notes: &Collector) {
    let lost = labels.iter().filter(|l| l.is_lost && !meaning.has(&l.name));
    let lost = len64(lost.count());
    if lost > 0 {
        let types = plural(lost, "type");
        notes.add(Missing::Metadata, None, format!("'{pattern}' may match some of {types} whose names are not in the dump"));
    }
}

/// A message that no type matches `pattern`, with suggestions; `None` if a type matches. For a wildcard pattern or regular expression, also `None`
/// without a suggestion, which is a type that matches in another case or form.
fn no_match(pattern: &str, meaning: &Meaning, labels: &[Label]) -> Option<String> {
    let full = with_names(pattern.trim());
    let wild = TypePattern::is_wild(&full);
    if (wild || !matches!(meaning, Meaning::Nothing)) && labels.iter().any(|l| meaning.has(&l.name)) {
        return None;
    }
    let text = format!("no type matches '{pattern}'");
    if wild {
        return other_form(pattern, labels).map(|hint| text + &hint);
    }
    let mut text = if full == pattern.trim() || full.contains(ANY) { text } else { format!("{text} ({full})") };
    let wanted = last_part(&full);
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
    Some(text)
}

/// Suggests names that the pattern matches if case is ignored, or if a wildcard pattern is read as a regular expression.
fn other_form(pattern: &str, labels: &[Label]) -> Option<String> {
    let found = |matches: &dyn Fn(&str) -> bool| {
        let mut names: Vec<&str> = labels.iter().map(|l| &*l.name).filter(|name| matches(name)).collect();
        names.sort_unstable();
        names.dedup();
        let more = if names.len() > NEAREST { ", …" } else { "" };
        let first = names.get(..NEAREST.min(names.len())).unwrap_or_default().join(", ");
        (!names.is_empty()).then(|| format!("{first}{more}"))
    };
    let lower = pattern.to_lowercase();
    let (hint, names) = match source(pattern) {
        Some(text) => {
            let regex = Regex::new(&format!("(?i){text}")).ok()?;
            let hint = format!("; ignoring case, as /(?i){text}/, it matches ");
            (hint, found(&|name| regex.is_match(name))?)
        }
        None => match found(&|name| glob(&lower, &name.to_lowercase())) {
            Some(names) => ("; ignoring case, it matches ".to_string(), names),
            None => {
                let regex =
                    Regex::new(pattern).ok().filter(|_| pattern.contains(['\\', '^', '$', '[', '(', '|']) || pattern.contains(".*"))?;
                (format!("; as a regular expression, /{pattern}/, it matches "), found(&|name| regex.is_match(name))?)
            }
        },
    };
    Some(hint + &names)
}

/// The last part of a type's name, without generic arguments, in lower case.
fn last_part(name: &str) -> String {
    let bare = without_arguments(name).to_ascii_lowercase();
    bare.rsplit(['.', '+']).next().unwrap_or_default().to_string()
}

/// Maximum number of vtables of a process of Mono.
const MOST_VTABLES: usize = 1 << 21;

/// Method tables of all loaded types: the type definitions of every module by token, including open generic types, then the generic instances.
/// For NativeAOT with type blobs, all named types in address order.
pub(crate) fn loaded_types(types: &Types) -> Vec<Addr> {
    let tables = types.names().method_tables();
    if let Some((mono, object)) = tables.mono().zip(tables.object) {
        return mono.vtables_of_domain(types.memory(), object, MOST_VTABLES);
    }
    if let Some(blobs) = types.names().native_aot().and_then(|p| p.blobs()) {
        let mut out: Vec<Addr> = blobs.definitions().map(|(mt, _)| mt).collect();
        out.sort_unstable();
        return out;
    }
    let mut out = type_definitions(types, types.modules());
    out.extend(types.instances());
    out
}

/// Method tables of the loaded types that `modules` define, by module and token.
pub(crate) fn type_definitions(types: &Types, modules: &[Addr]) -> Vec<Addr> {
    let tables = types.names().method_tables();
    let rows = |module| types.names().modules().type_rows(module);
    let is_type = |mt| {
        let valid = tables.is_valid(mt);
        if valid == Ok(false) {
            contradiction(mt, "the type table of a module has an entry that is not a type");
        }
        valid == Ok(true)
    };
    types.loader().type_defs(modules, rows, is_type)
}

#[cfg(test)]
mod tests {
    use super::super::known_types::NoType;
    use super::*;

    const NAMES: [&str; 6] = [
        "System.String",
        "System.String[]",
        "Lab.Program+Entry",
        "System.Collections.Generic.Dictionary<System.String, Lab.Program+Entry>",
        "System.Collections.Generic.Dictionary<System.String, Lab.Program+Entry>+Entry[]",
        "Lab.EntryList",
    ];

    /// Types of the assembly `lab`.
    struct Listed<'n>(&'n [&'static str]);

    impl KnownTypes for Listed<'_> {
        fn labels(&self) -> Vec<Label> {
            self.0.iter().map(|name| Label { name: (*name).into(), is_lost: false }).collect()
        }

        fn has(&self, _: Addr) -> bool {
            false
        }

        fn modules(&self) -> Vec<String> {
            vec!["lab.dll".into()]
        }

        fn no_type_at(&self, address: Addr) -> Option<NoType> {
            Some(NoType { why: format!("no type at {address}"), at: Some(address) })
        }
    }

    #[test]
    fn a_list_selects_all_its_types() {
        assert_eq!(meant("Lab.EntryList,string"), (vec![NAMES[0], NAMES[5]], vec![]));
        assert_eq!(meant("Lab.EntryList, lab, string[]"), (vec![NAMES[1], NAMES[5]], vec![]));
        assert_eq!(meant("Lab.EntryList, Nonsense"), (vec![NAMES[5]], vec!["no type matches 'Nonsense'".into()]));
        assert_eq!(meant("Lab.EntryList,0x10"), (vec![NAMES[5]], vec!["no type at 0x10".into()]));
        assert!(TypePattern::named("Lab.Dog,/(/").is_err() && TypePattern::named("/a{1,2}/").is_ok());
    }

    fn meant(pattern: &str) -> (Vec<&'static str>, Vec<String>) {
        meant_of(&NAMES, pattern)
    }

    fn meant_of(names: &[&'static str], pattern: &str) -> (Vec<&'static str>, Vec<String>) {
        let notes = Collector::new();
        let filter = TypeFilter::of(&[TypePattern::Name(pattern.into())], &Listed(names), &notes);
        let found = names.iter().copied().filter(|name| filter.matches(Addr(0), || (*name).into()));
        (found.collect(), notes.into_notes().iter().map(|n| n.message.clone()).collect())
    }

    #[test]
    fn question_marks_are_wildcards_or_mean_nullable_types() {
        let names = ["System.Nullable<System.Int32>[]", "System.Nullable<System.DateTime>", "Lab.Ages", "System.String"];
        let of = |pattern| meant_of(&names, pattern).0;
        assert_eq!((of("int?[]"), of("DateTime?"), of("System.DateTime?")), (vec![names[0]], vec![names[1]], vec![names[1]]));
        assert_eq!((of("Lab.Age?"), of("string?"), of("int?")), (vec![names[2]], vec![names[3]], vec![]));
        let (found, notes) = meant_of(&names, "long?");
        assert!(found.is_empty() && notes[0].starts_with("no type matches 'long?' (System.Nullable<System.Int64>)"), "{notes:?}");
    }

    #[test]
    fn patterns_select_the_closest_names() {
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
    fn names_of_reflection_and_generic_types_select_instances() {
        let names = [
            "System.Collections.Generic.List<System.String>",
            "System.Collections.Generic.List<Lab.Outer+Inner<System.Int32>>",
            "System.Func<System.String, System.Int32>",
            "System.Func<System.Int32>",
            "Lab.Outer+Inner<System.Int32>",
            "Lab.Dog",
        ];
        let of = |pattern: &str| meant_of(&names, pattern);
        for (pattern, found) in [
            ("System.Collections.Generic.List`1[[System.String, System.Private.CoreLib]]", &names[..1]),
            ("System.Collections.Generic.List`1[System.String]", &names[..1]),
            ("List`1[[Lab.Outer+Inner`1[[System.Int32, System.Private.CoreLib]], lab, Version=1.0]]", &names[1..2]),
            ("List`1", &names[..2]),
            ("List<>", &names[..2]),
            ("List<T>", &names[..2]),
            ("Func<string, TResult>", &names[2..3]),
            ("Func`1", &names[3..4]),
            ("Func<,>", &names[2..3]),
            ("Lab.Outer+Inner`1[System.Int32]", &names[4..5]),
            ("Lab.Outer.Inner", &names[4..5]),
            ("Outer.Inner<int>", &names[4..5]),
            ("Lab.Dog, lab", &names[5..]),
            (" Lab.Dog ", &names[5..]),
        ] {
            assert_eq!(of(pattern), (found.to_vec(), vec![]), "{pattern}");
        }
        let (found, notes) = of("System.Collections.Generic.Lits`1[System.String]");
        assert!(found.is_empty() && notes[0].contains("(System.Collections.Generic.Lits<System.String>); did you mean"), "{notes:?}");
        assert_eq!(of("Func`3").0, Vec::<&str>::new());
    }

    #[test]
    fn a_rule_is_not_about_parts_of_names() {
        let labels: Vec<Label> = ["Lab.OrderList", "Lab.Cat"].into_iter().map(|name| Label { name: name.into(), is_lost: false }).collect();
        let has = |pattern: &str, name: &str| {
            let filter = TypeFilter::of_rule(pattern, &labels, |_| false);
            filter.matches_name(&name.into())
        };
        assert!(has("Cat", "Lab.Cat") && has("/Order/", "Lab.OrderList") && has("Lab.*", "Lab.Cat"));
        assert!(has("Order,Cat", "Lab.Cat") && !has("Order,Cat", "Lab.OrderList"));
        assert!(!has("Order", "Lab.OrderList") && !has("Lab.Order", "Lab.OrderList"));
    }

    #[test]
    fn the_nearest_names_are_suggested() {
        assert_eq!(meant("Entyr"), (vec![], vec!["no type matches 'Entyr'; did you mean Lab.Program+Entry?".into()]));
        assert_eq!(meant("Nothing"), (vec![], vec!["no type matches 'Nothing'".into()]));
        assert_eq!(meant("x*"), (vec![], vec![]));
    }

    #[test]
    fn csharp_names_and_regular_expressions_work() {
        let of = |pattern| meant(pattern).0;
        assert_eq!(of("string[]"), ["System.String[]"]);
        assert_eq!(of("Dictionary<string,Entry>"), [NAMES[3]]);
        assert_eq!(of("/^Lab.*(Entry|List)$/"), [NAMES[2], NAMES[5]]);
        assert_eq!(meant("int"), (vec![], vec!["no type matches 'int' (System.Int32)".into()]));
        let hint = |pattern| meant(pattern).1.concat();
        assert_eq!(hint("lab.*"), "no type matches 'lab.*'; ignoring case, it matches Lab.EntryList, Lab.Program+Entry");
        assert_eq!(
            hint("Lab\\..*t"),
            "no type matches 'Lab\\..*t'; as a regular expression, /Lab\\..*t/, it matches Lab.EntryList, Lab.Program+Entry, \
             System.Collections.Generic.Dictionary<System.String, Lab.Program+Entry>, …"
        );
        assert!(hint("/lab/").contains("/(?i)lab/, it matches Lab.EntryList"), "{}", hint("/lab/"));
        assert!(TypePattern::named("/(/").is_err() && TypePattern::named("(").is_ok());
    }
}
