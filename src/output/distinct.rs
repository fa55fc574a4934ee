//! Keeps the names in a column distinct: different names are never shortened to the same text.

use std::collections::{BTreeMap, BTreeSet};

use super::fit::Fit;
use super::width::{ELLIPSIS, cut, cut_after, halved, width};
use crate::base::Name;
use crate::base::hash::Map;
use crate::clr::generated::numbered;

/// Maximum number of names to compare in a column.
const MOST: usize = 1 << 16;

/// Replacements for the names of a column that would look equal.
#[derive(Debug, Default)]
pub(super) struct Shortened {
    /// Replacements by exact name, for names that share a display form.
    pub(super) shared: Map<String, String>,
    /// Replacements by text, for texts that shortening would make equal. Line feeds separate the lines of a replacement.
    pub(super) short: Map<String, String>,
}

/// The names of a column.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Texts at full width, each with the exact names that the text abbreviates.
    texts: BTreeMap<String, BTreeSet<String>>,
}

impl Names {
    /// Adds a cell: its text, and its name if it has one.
    pub(super) fn add(&mut self, text: &str, name: Option<&Name>) {
        let exact = name.map_or(text, Name::as_str);
        if let Some(known) = self.texts.get_mut(text) {
            if !known.contains(exact) {
                known.insert(exact.into());
            }
        } else if self.texts.len() < MOST {
            self.texts.insert(text.into(), [exact.to_string()].into());
        }
    }

    /// Resolves names that share a display form: shows them with the compiler's numbers or, if these are equal too, as exact names. Returns the
    /// replacements by exact name, and the names of the column after replacement.
    pub(super) fn resolved(self) -> (Map<String, String>, Names) {
        let (mut out, mut names) = (Map::default(), Names::default());
        for (text, exact) in self.texts {
            if exact.len() == 1 {
                names.texts.entry(text).or_default().extend(exact);
                continue;
            }
            let with_numbers: Vec<Option<String>> = exact.iter().map(|name| numbered(name)).collect();
            let distinct = with_numbers.iter().collect::<BTreeSet<_>>().len() == exact.len();
            for (name, number) in exact.into_iter().zip(with_numbers) {
                let shown = number.filter(|_| distinct).unwrap_or_else(|| name.clone());
                names.texts.entry(shown.clone()).or_default().insert(name.clone());
                out.insert(name, shown);
            }
        }
        (out, names)
    }

    /// Returns replacements for texts that shortening to `columns` would make equal.
    pub(super) fn shortened(&self, fit: Fit, columns: usize) -> Map<String, String> {
        let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for text in self.texts.keys() {
            groups.entry(fit.lines(text, columns).join("\n")).or_default().push(text);
        }
        let mut taken: BTreeSet<String> = groups.iter().filter(|(_, texts)| texts.len() == 1).map(|(short, _)| short.clone()).collect();
        let mut out = Map::default();
        for texts in groups.values().filter(|texts| texts.len() > 1) {
            let shorts = distinguished(texts, columns, &mut taken);
            out.extend(texts.iter().map(ToString::to_string).zip(shorts));
        }
        out
    }
}

/// Maximum number of other texts to compare with one text.
const MOST_OTHERS: usize = 16;

/// Shortens `texts` to at most `columns` so that they differ from each other and from the texts in `taken`.
fn distinguished(texts: &[&str], columns: usize, taken: &mut BTreeSet<String>) -> Vec<String> {
    let common = difference(texts);
    let mut out = Vec::with_capacity(texts.len());
    for text in texts {
        let own = std::iter::once(around(text, common.0, common.1, columns));
        // Shows where the text begins to differ from each of the others.
        let others = texts.iter().filter(|other| *other != text).take(MOST_OTHERS).map(|other| {
            let (start, _) = difference(&[text, other]);
            let first = text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
            around(text, start, text.len().saturating_sub(start).saturating_sub(first), columns)
        });
        let middles = (0..columns).map(|head| without_middle(text, head, columns));
        let free = |short: &String| width(short) <= columns && !taken.contains(short);
        let short = own.chain(others).chain(middles).find(free).unwrap_or_else(|| lettered(text, columns, taken));
        taken.insert(short.clone());
        out.push(short);
    }
    out
}

/// Shortens `text` to at most `columns` columns. The first `head` columns show its start.
fn without_middle(text: &str, head: usize, columns: usize) -> String {
    let start = cut(text, head.saturating_add(1));
    let start = start.trim_end_matches(ELLIPSIS);
    let end = cut_after(text, 0, columns.saturating_sub(width(start)));
    format!("{start}{end}")
}

/// Shortens `text` and appends a letter that makes it unique.
fn lettered(text: &str, columns: usize, taken: &BTreeSet<String>) -> String {
    let letters = (1usize..).flat_map(|n| ('a'..='z').map(move |c| format!("#{}", c.to_string().repeat(n))));
    let with = |end: String| format!("{}{end}", cut(text, columns.saturating_sub(end.len())));
    letters.take(columns.saturating_mul(26)).map(with).find(|short| !taken.contains(short)).unwrap_or_else(|| text.into())
}

/// Returns the number of bytes that all of `texts` have in common at the start and at the end.
fn difference(texts: &[&str]) -> (usize, usize) {
    let Some((first, others)) = texts.split_first() else { return (0, 0) };
    let shortest = texts.iter().map(|text| text.len()).min().unwrap_or(0);
    let common = |one: &mut dyn Iterator<Item = char>, other: &mut dyn Iterator<Item = char>| -> usize {
        one.zip(other).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum()
    };
    let start = others.iter().map(|text| common(&mut first.chars(), &mut text.chars())).min().unwrap_or(0);
    let end = others.iter().map(|text| common(&mut first.chars().rev(), &mut text.chars().rev())).min().unwrap_or(0);
    (start, end.min(shortest.saturating_sub(start)))
}

/// Returns the part of `text` that differs from other texts, with as much context as fits. `start` and `end` are the byte lengths of the common
/// parts.
fn around(text: &str, start: usize, end: usize, columns: usize) -> String {
    let columns_of = |c: char| width(c.encode_utf8(&mut [0; 4]));
    let (before, rest) = text.split_at_checked(start).unwrap_or(("", text));
    let (own, after) = rest.split_at_checked(rest.len().saturating_sub(end)).unwrap_or((rest, ""));
    // Reserves room for two ellipses.
    let mut left = columns.saturating_sub(width(own)).saturating_sub(2);
    let (mut from, mut to) = (before.len(), 0usize);
    // Adds characters before and after the distinct part alternately.
    let (mut backwards, mut forwards) = (before.chars().rev(), after.chars());
    let (mut back, mut forth) = (true, true);
    while back || forth {
        back = back
            && backwards.next().filter(|c| columns_of(*c) <= left).is_some_and(|c| {
                left = left.saturating_sub(columns_of(c));
                from = from.saturating_sub(c.len_utf8());
                true
            });
        forth = forth
            && forwards.next().filter(|c| columns_of(*c) <= left).is_some_and(|c| {
                left = left.saturating_sub(columns_of(c));
                to = to.saturating_add(c.len_utf8());
                true
            });
    }
    // A number is not cut, because a part of it would look like a different number.
    let behind = text.len().saturating_sub(after.len());
    from = halved(text, from).map_or(from, |(_, end)| end.min(start));
    let until = behind.saturating_add(to);
    let until = halved(text, until).map_or(until, |(begin, _)| begin.max(behind));
    let lead = if from > 0 { String::from(ELLIPSIS) } else { String::new() };
    let trail = if until < text.len() { String::from(ELLIPSIS) } else { String::new() };
    format!("{lead}{}{trail}", text.get(from..until).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(texts: &[&str], columns: usize) -> Vec<String> {
        let mut names = Names::default();
        texts.iter().for_each(|text| names.add(text, None));
        let short = names.shortened(Fit::Name, columns);
        texts.iter().map(|text| short.get(*text).cloned().unwrap_or_else(|| Fit::Name.lines(text, columns).concat())).collect()
    }

    #[test]
    fn names_that_shortening_makes_equal_show_their_differences() {
        let one = "System.Collections.Generic.Dictionary<System.String, Lab.Orders.Entry>+Entry[]";
        let other = "System.Collections.Generic.Dictionary<System.String, Lab.Prices.Entry>+Entry[]";
        assert_eq!(shown(&[one, other], 80), [one, other]);
        assert_eq!(shown(&[one, other], 34), ["…m.String, Lab.Orders.Entry>+Entr…", "…m.String, Lab.Prices.Entry>+Entr…"]);
        assert_eq!(shown(&[one, "Lab.Node"], 40), ["System…Dictionary<String, Entry>+Entry[]", "Lab.Node"]);
    }

    #[test]
    fn any_names_stay_distinct() {
        let names = [
            "System.Collections.Generic.Dictionary<System.String, System.Collections.Generic.List<Lab.Program+Entry>>",
            "System.Collections.Generic.Dictionary<System.String, System.Collections.Generic.List<Lab.Program+Node>>",
            "System.Collections.Generic.Dictionary<System.Int32, System.Collections.Generic.List<Lab.Program+Node>>",
            "System.Collections.Generic.Dictionary<System.Int32, System.Collections.Generic.List<Lab.Other+Node>>",
            "Some.Long.Namespace.Thing.Go.b__3_0 (lambda)",
            "Some.Long.Namespace.Thing.Go.b__3_10 (lambda)",
            "Some.Long.Namespace.Thing.Go.b__13_0 (lambda)",
            "Some.Long.Namespace.Other.Go.b__3_0 (lambda)",
            "数据.结构.数据结构数据结构<数据.甲>",
            "数据.结构.数据结构数据结构<数据.乙>",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ];
        for columns in 6..120 {
            let shown = shown(&names, columns);
            assert!(shown.iter().all(|s| width(s) <= columns), "{columns}: {shown:?}");
            assert_eq!(shown.iter().collect::<BTreeSet<_>>().len(), names.len(), "{columns}: {shown:?}");
        }
    }

    #[test]
    fn equal_display_names_get_the_compilers_numbers() {
        let of =
            |machine: &str| format!("System.Runtime.CompilerServices.AsyncTaskMethodBuilder<System.Int32>+AsyncStateMachineBox<{machine}>");
        let mut names = Names::default();
        for (exact, shown) in [(of("A+<Run>d__1"), "async A.Run"), (of("A+<Run>d__2"), "async A.Run"), (of("A+<Go>d__3"), "async A.Go")] {
            names.add(shown, Some(&Name::shown_as(exact, Some(shown.into()))));
        }
        names.add("one", Some(&Name::shown_as("first", Some("one".into()))));
        names.add("one", Some(&Name::shown_as("second", Some("one".into()))));
        let (shared, _) = names.resolved();
        assert_eq!(shared.get(&of("A+<Run>d__1")).map(String::as_str), Some("async A.Run (d__1)"));
        assert_eq!(shared.get(&of("A+<Run>d__2")).map(String::as_str), Some("async A.Run (d__2)"));
        assert_eq!((shared.get("first").map(String::as_str), shared.len()), (Some("first"), 4));
    }
}
