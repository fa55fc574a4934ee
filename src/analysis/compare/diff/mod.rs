//! Compares dumps of one process or of several runs. The answer has the changes in total and by type or another key, and the containers that hold
//! the growth.
//!
//! Types are identified by name and module, because method tables differ between runs.

mod holders;
mod key;
mod report;
mod rules;
mod summary;
mod trend;

pub use report::*;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use self::holders::Side;
use self::key::{Key, UNKNOWN, are_all_named, is_named, type_key};
use self::rules::{Amount, Field, Subject};
pub use self::rules::{Rule, RuleError};
use self::summary::Measures;
use self::trend::trend;
use crate::analysis::compare::track::in_wrong_order;
use crate::analysis::objects::stat::{StatQuery, live as live_objects, namespace, stat};
use crate::analysis::select::Selection;
use crate::analysis::{StatBy, StatReport, StatRows, TypeStat, TypeStats};
use crate::base::missed::tried;
use crate::base::store::caught;
use crate::base::{Answer, Collector, Missing, Name, NoteKind, Notes, change, cut, growth, len64};
use crate::clr::type_names::Label;
use crate::model::{Order, SortDirection, Sum};
use crate::session::{Error, GraphSource, TypeFilter, TypePattern, names_assembly};

/// By default, holders are searched for only in dumps of at most this many objects, which takes about a second.
const CHEAP_OBJECTS: u64 = 2_000_000;
/// Number of holders listed by default.
const FEW_HOLDERS: usize = 3;

/// Arguments of [`diff`].
#[derive(Clone, Debug, Default)]
pub struct DiffQuery {
    /// Key by which objects are grouped into rows.
    pub by: DiffBy,
    /// The types that the rows cover; empty for all. Totals and rules cover all objects.
    pub types: Vec<TypePattern>,
    /// Order of the rows.
    pub sort: Order<DiffSort>,
    /// Rows to list, 0 for all.
    pub top: usize,
    /// Whether rows without a change are listed too.
    pub all: bool,
    /// Whether all holders are listed, for heaps of any size. Otherwise only the largest few are listed, and only if the search for them is
    /// cheap.
    pub holders: bool,
    /// Rules to check, such as `bytes>10%`.
    pub rules: Vec<Rule>,
}

/// The types and measures of one dump.
struct DumpTypes<'h> {
    heap: &'h dyn GraphSource,
    /// Path of the dump, for notes.
    path: String,
    notes: Collector,
    types: TypeStats,
    /// The objects that the rows cover.
    selection: Selection,
    /// The objects of `selection` by type; `None` if it covers all objects.
    selected: Option<TypeStats>,
    measures: Measures,
    /// Whether only live objects are counted.
    live: bool,
    /// The types that rules are about, by the pattern in the rule: the same types in all dumps.
    meant: BTreeMap<String, TypeFilter>,
}

impl<'h> DumpTypes<'h> {
    fn read(heap: &'h dyn GraphSource, query: &DiffQuery, live: bool) -> Result<DumpTypes<'h>, Error> {
        let notes = Collector::new();
        let count = |selection: &Selection| {
            let query = StatQuery { selection: selection.clone(), ..StatQuery::default() };
            Ok::<_, Error>(notes.take(if live { live_objects(heap, selection)? } else { stat(heap, &query)?.map(StatReport::of_types) }))
        };
        let all = notes.take(stat(heap, &StatQuery::default())?).of_types();
        let mut measures = Measures::read(heap, &all, &notes);
        let mut types = all;
        if live {
            types = TypeStats { coverage: types.coverage, ..count(&Selection::default())? };
            measures.count(heap, &types);
        }
        let selection = Selection { types: query.types.clone(), ..Selection::default() };
        let read_selected = || count(&selection);
        let selected = if query.types.is_empty() { None } else { Some(read_selected()?) };
        Ok(DumpTypes { heap, path: heap.facts().shown_path(), notes, types, selection, selected, measures, live, meant: BTreeMap::new() })
    }

    fn model(&self) -> ComparedDump {
        let facts = self.heap.facts();
        let runtime = self.heap.heap().and_then(|heap| heap.runtime().description().version.clone());
        ComparedDump { path: self.path.clone(), process_id: facts.pid, runtime, time: facts.time }
    }

    fn object_count(&self) -> u64 {
        self.types.totals.count
    }

    /// Returns the objects by group.
    fn groups(&self, by: DiffBy) -> Result<BTreeMap<Key, Sum>, Error> {
        let mut groups: BTreeMap<Key, Sum> = BTreeMap::new();
        let mut of_types = |key: fn(&TypeStat) -> Key| {
            for t in &self.selected.as_ref().unwrap_or(&self.types).types {
                groups.entry(key(t)).or_default().merge(Sum { count: t.count, bytes: t.bytes });
            }
        };
        match by {
            DiffBy::Type => of_types(type_key),
            DiffBy::Namespace => of_types(|t| (if is_named(t) { namespace(&t.type_name).into() } else { UNKNOWN.into() }, None)),
            DiffBy::Assembly => of_types(|t| (t.module.as_deref().unwrap_or(UNKNOWN).into(), None)),
            DiffBy::Root if self.selected.is_some() => {
                return Err(Error::Query("growth by root covers objects of all types and cannot be restricted to some".into()));
            }
            DiffBy::Root => {
                let side = self.side()?;
                groups.extend(side.by_root().into_iter().map(|(label, sum)| ((label.into(), None), sum)));
            }
            DiffBy::Generation => {
                let query = StatQuery { by: StatBy::Generation, selection: self.selection.clone(), ..StatQuery::default() };
                if let StatRows::Groups { groups: generations } = self.notes.take(stat(self.heap, &query)?).rows {
                    for g in generations.into_iter().filter(|g| g.count > 0) {
                        groups.entry((g.key.into(), None)).or_default().merge(Sum { count: g.count, bytes: g.bytes });
                    }
                }
            }
        }
        Ok(groups)
    }

    fn side(&self) -> Result<Side<'h>, Error> {
        Side::open(self.heap, self.live, &self.notes)
    }

    /// Returns why retained sizes are unknown, if objects that may hold others are not in the dump.
    fn lacks_objects(&self) -> Option<String> {
        let coverage = &self.types.coverage;
        let lacking = self.heap.heap().is_some() && (coverage.absent_bytes > 0 || self.object_count() == 0);
        lacking.then(|| "not all objects are in the dump".into())
    }

    /// Notes that the holders of the growth are unknown because of `why`.
    fn unknown(&self, why: String) -> Held {
        self.notes.add(Missing::Answer, None, format!("holders of the growth are unknown: {why}"));
        Held { holders: None, unknown: Some(why) }
    }

    fn types(&self) -> impl Iterator<Item = &TypeStat> {
        self.types.types.iter()
    }

    /// Returns the number of this dump that `rule` compares; `None` if it is unknown.
    fn amount(&self, rule: &Rule) -> Result<Option<Amount>, Error> {
        let is_least = match &rule.subject {
            Subject::Measure(name) => self.measures.is_least(name),
            Subject::Handles(_) | Subject::Types(_, Field::Retained) => false,
            // An object whose type has no name may be of the wanted type.
            Subject::Types(..) => self.measures.is_least("objects") || !are_all_named(self.types()),
        };
        Ok(self.subject(rule)?.map(|number| Amount { number, is_least }))
    }

    /// Whether a rule about the types that match `pattern` is about the type `name`.
    fn is_meant(&self, pattern: &str, name: &Name) -> bool {
        name.matches(pattern) || self.meant.get(pattern).is_some_and(|filter| filter.matches_name(name))
    }

    fn subject(&self, rule: &Rule) -> Result<Option<u64>, Error> {
        Ok(match &rule.subject {
            Subject::Measure(name) => self.measures.get(name),
            Subject::Handles(kind) => self.measures.handles(*kind),
            Subject::Types(_, Field::Retained) if self.lacks_objects().is_some() => None,
            Subject::Types(pattern, Field::Retained) => {
                let side = self.side()?;
                side.unknown_roots().is_none().then(|| side.retained_by(|name| self.is_meant(pattern, name)))
            }
            Subject::Types(pattern, field) => {
                let wanted = self.types().filter(|t| self.is_meant(pattern, &t.type_name));
                let sum = Sum::of(wanted.map(|t| Sum { count: t.count, bytes: t.bytes }));
                let known = self.measures.get("objects").is_some();
                known.then_some(if *field == Field::Count { sum.count } else { sum.bytes })
            }
        })
    }
}

/// Compares the heaps of at least two dumps, in chronological order.
///
/// # Errors
/// [`Error::Query`] for fewer than two dumps, and for growth by root that is restricted to some types. If retained sizes are needed, also
/// the errors of [`retained`](crate::analysis::retained).
pub fn diff(heaps: &[&dyn GraphSource], query: &DiffQuery) -> Result<Answer<DiffReport>, Error> {
    caught(|| diff_of(heaps, query))?
}

fn diff_of(heaps: &[&dyn GraphSource], query: &DiffQuery) -> Result<Answer<DiffReport>, Error> {
    // A `.gcdump` file has only the objects that roots reach.
    let snapshots = heaps.iter().filter(|heap| heap.heap().is_none()).count();
    let live = snapshots > 0 && snapshots < heaps.len();
    let mut parts = heaps.iter().map(|heap| DumpTypes::read(*heap, query, live)).collect::<Result<Vec<DumpTypes<'_>>, Error>>()?;
    let meant = meant(&query.rules, &parts);
    for part in &mut parts {
        part.meant.clone_from(&meant);
    }
    let (Some(first), Some(last)) = (parts.first(), parts.last().filter(|_| parts.len() > 1)) else {
        return Err(Error::Query("two dumps are needed to compare".into()));
    };
    let groups = parts.iter().map(|p| p.groups(query.by)).collect::<Result<Vec<_>, Error>>()?;
    let mut rows = rows(groups);
    let held = if wants_holders(&parts, query) { holders(first, last, query, &mut rows)? } else { Held::default() };
    let rules = query.rules.iter().map(|rule| Ok(rule.check(first.amount(rule)?, last.amount(rule)?)));
    let rules = rules.collect::<Result<Vec<DiffRule>, Error>>()?;
    let everything = rows.len();
    if !query.all {
        rows.retain(|r| r.state != DiffState::Same || r.trend == Some(Trend::Varies));
    }
    let unchanged = len64(everything.saturating_sub(rows.len()));
    sort(&mut rows, query.sort);
    let shown = cut(&mut rows, query.top);
    let report = DiffReport {
        by: query.by,
        live_only: live,
        dumps: parts.iter().map(DumpTypes::model).collect(),
        summary: summary::summary(parts.iter().map(|p| &p.measures)),
        holders: held.holders,
        holders_unknown: held.unknown,
        rows,
        unchanged,
        shown,
        rules,
    };
    let mut notes = Notes::new();
    if let Some(what) = first.heap.heap().zip(last.heap.heap()).and_then(|(before, after)| tried(|| in_wrong_order(before, after))) {
        notes.add(NoteKind::Order, None, format!("{what}: the first dump was taken last; name it second"));
    }
    for rule in &query.rules {
        // A rule with a misspelt type name would never fail.
        let Subject::Types(pattern, _) = &rule.subject else { continue };
        if !parts.iter().any(|part| part.types().any(|t| part.is_meant(pattern, &t.type_name))) {
            let what = format!("{rule}: no dump has an object of this type; check the name if one is expected");
            notes.add(NoteKind::NoMatch, None, what);
        }
    }
    for part in parts {
        notes.extend(&part.notes.into_notes().about(&part.path));
    }
    Ok(Answer::new(report, notes))
}

/// Resolves the patterns of `rules` to types of all dumps.
fn meant(rules: &[Rule], parts: &[DumpTypes<'_>]) -> BTreeMap<String, TypeFilter> {
    let patterns = rules.iter().filter_map(|rule| if let Subject::Types(pattern, _) = &rule.subject { Some(pattern) } else { None });
    let mut patterns = patterns.peekable();
    let labels = match patterns.peek() {
        Some(_) => parts.iter().flat_map(DumpTypes::types).map(|t| Label { name: t.type_name.clone(), is_lost: false }).collect(),
        None => Vec::new(),
    };
    let modules = || parts.iter().flat_map(DumpTypes::types).filter_map(|t| t.module.as_deref());
    let is_assembly = |word: &str| modules().any(|module| names_assembly(word, module));
    patterns.map(|pattern| (pattern.clone(), TypeFilter::of_rule(pattern, &labels, is_assembly))).collect()
}

fn wants_holders(parts: &[DumpTypes<'_>], query: &DiffQuery) -> bool {
    let retained = query.by == DiffBy::Root || query.rules.iter().any(Rule::needs_retained);
    query.holders || retained || parts.iter().all(|p| p.object_count() <= CHEAP_OBJECTS)
}

/// The growing holders.
#[derive(Debug, Default)]
struct Held {
    holders: Option<Vec<GrowingHolder>>,
    /// Why they are unknown.
    unknown: Option<String>,
}

/// Returns the growing holders, and adds retained sizes to rows of types. None are returned if retained sizes are unknown, or if the graph cannot be
/// built and holders were not requested.
fn holders(first: &DumpTypes<'_>, last: &DumpTypes<'_>, query: &DiffQuery, rows: &mut [DiffRow]) -> Result<Held, Error> {
    for part in [first, last] {
        if let Some(why) = part.lacks_objects() {
            return Ok(part.unknown(why));
        }
    }
    let sides = first.side().and_then(|a| Ok((a, last.side()?)));
    let (before, after) = match sides {
        Ok(sides) => sides,
        Err(Error::Memory(_) | Error::Graph(_)) if !query.holders => return Ok(Held::default()),
        Err(e) => return Err(e),
    };
    for (part, side) in [(first, &before), (last, &after)] {
        if let Some(why) = side.unknown_roots() {
            return Ok(part.unknown(why));
        }
    }
    if query.by == DiffBy::Type {
        let (from, to) = (before.retained_by_type(), after.retained_by_type());
        for row in rows {
            row.retained_before = Some(from.get(&row.key, row.module.as_deref()));
            row.retained_after = Some(to.get(&row.key, row.module.as_deref()));
        }
    }
    let mut found = holders::growing(&before, &after);
    if !query.holders {
        found.truncate(FEW_HOLDERS);
    }
    Ok(Held { holders: Some(found), unknown: None })
}

/// Joins the groups of all dumps into rows, one for each key.
fn rows(groups: Vec<BTreeMap<Key, Sum>>) -> Vec<DiffRow> {
    let ambiguous: BTreeSet<Name> = groups.iter().flat_map(ambiguous_names).collect();
    let dumps = groups.len();
    let mut joined: BTreeMap<Key, Vec<Sum>> = BTreeMap::new();
    let mut modules: BTreeMap<Name, Option<String>> = BTreeMap::new();
    for (i, groups) in groups.into_iter().enumerate() {
        for ((name, module), sum) in groups {
            // A name that occurs at most once in each dump is one type, even if its assembly was renamed or is unknown.
            let key = if ambiguous.contains(&name) {
                (name, module)
            } else {
                let known = modules.entry(name.clone()).or_default();
                *known = module.or(known.take());
                (name, None)
            };
            if let Some(slot) = joined.entry(key).or_insert_with(|| vec![Sum::default(); dumps]).get_mut(i) {
                slot.merge(sum);
            }
        }
    }
    let module = |name: &Name, own: Option<String>| own.or_else(|| modules.get(name).cloned().flatten());
    joined.into_iter().map(|((name, own), series)| row(module(&name, own), name, series)).collect()
}

/// Returns the names that occur in several keys, because types in different modules have the same name.
fn ambiguous_names(groups: &BTreeMap<Key, Sum>) -> Vec<Name> {
    // Keys are sorted by name.
    let pairs = groups.keys().zip(groups.keys().skip(1));
    pairs.filter(|(a, b)| a.0 == b.0).map(|(a, _)| a.0.clone()).collect()
}

fn row(module: Option<String>, key: Name, series: Vec<Sum>) -> DiffRow {
    let before = series.first().copied().unwrap_or_default();
    let after = series.last().copied().unwrap_or_default();
    let state = match (before.count, after.count) {
        (0, n) if n > 0 => DiffState::New,
        (n, 0) if n > 0 => DiffState::Gone,
        _ => match (after.bytes, after.count).cmp(&(before.bytes, before.count)) {
            std::cmp::Ordering::Greater => DiffState::Grown,
            std::cmp::Ordering::Less => DiffState::Shrunk,
            std::cmp::Ordering::Equal => DiffState::Same,
        },
    };
    DiffRow {
        key,
        module,
        state,
        before,
        after,
        count_change: change(before.count, after.count),
        bytes_change: change(before.bytes, after.bytes),
        growth: growth(before.bytes, after.bytes),
        retained_before: None,
        retained_after: None,
        trend: trend(&series.iter().map(|s| Some(s.bytes)).collect::<Vec<_>>()),
        series,
    }
}

fn sort(rows: &mut [DiffRow], order: Order<DiffSort>) {
    // Rows are already sorted by key, and the sort is stable.
    match order.by {
        DiffSort::Bytes => rows.sort_by_key(|r| Reverse((r.bytes_change, r.count_change))),
        DiffSort::Count => rows.sort_by_key(|r| Reverse((r.count_change, r.bytes_change))),
        DiffSort::Name => {}
    }
    let usual = if order.by == DiffSort::Name { SortDirection::Ascending } else { SortDirection::Descending };
    if order.reverses(usual) {
        rows.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, module: &str) -> Key {
        (name.into(), Some(module.into()))
    }

    fn sum(count: u64) -> Sum {
        Sum { count, bytes: count.saturating_mul(10) }
    }

    #[test]
    fn types_are_matched_by_name_and_module_or_by_a_unique_name() {
        let before = BTreeMap::from([(key("A", "old"), sum(3)), (key("B", "x"), sum(1)), (key("B", "y"), sum(2)), (key("C", "x"), sum(1))]);
        let after = BTreeMap::from([(key("A", "new"), sum(5)), (key("B", "x"), sum(1)), (key("D", "x"), sum(9))]);
        let rows = rows(vec![before, after]);
        let actual: Vec<_> = rows.iter().map(|r| (r.key.as_str(), r.module.as_deref(), r.state, r.count_change)).collect();
        assert_eq!(
            actual,
            [
                ("A", Some("new"), DiffState::Grown, 2),
                ("B", Some("x"), DiffState::Same, 0),
                ("B", Some("y"), DiffState::Gone, -2),
                ("C", Some("x"), DiffState::Gone, -1),
                ("D", Some("x"), DiffState::New, 9),
            ]
        );
    }
}
