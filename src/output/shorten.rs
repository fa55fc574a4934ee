//! Shorter forms of type and method names: `System.Collections…Dictionary<String, Entry>`.
//!
//! What tells most is kept longest: the simple name, then the simple names of generic arguments and parameters, then the head of
//! the namespace.

use std::borrow::Cow;

use super::width::{ELLIPSIS, cut, cut_middle, width};
use crate::base::hash::Map;

/// First word of the names of asynchronous methods.
const ASYNC: &str = "async";

/// A piece of a name.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'n> {
    /// A dotted name with what belongs to it: `System.String[]`, `Lab.Program+<Run>d__3`.
    Name(&'n str),
    /// `<` or `(`.
    Open(char),
    /// `>` or `)`.
    Close(char),
    /// What stands between names.
    Between(&'n str),
}

/// Whether `c` may stand in a dotted name.
fn of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '`' | '*' | '&' | '$' | '@' | '|') || !c.is_ascii()
}

/// Byte length of the name at the start of `text`. The compiler's names have angle brackets where a name begins: `<Run>d__3`.
fn name_length(text: &str) -> usize {
    let (mut at, mut begins) = (0usize, true);
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or_default();
        let taken = match c {
            '<' if begins => rest.find('>').filter(|end| rest.get(1..*end).is_some_and(|t| !t.contains(['.', ',', ' ']))),
            // An array, and nothing else in square brackets.
            '[' if !begins => rest.find(']').filter(|end| rest.get(1..*end).is_some_and(|t| t.chars().all(|c| matches!(c, ',' | '*')))),
            c if of_name(c) => Some(c.len_utf8().saturating_sub(1)),
            _ => None,
        };
        let Some(taken) = taken else { break };
        at = at.saturating_add(taken).saturating_add(1);
        begins = matches!(c, '.' | '+' | '<' | '|') && !(c == '<' && taken > 1);
    }
    at
}

/// The pieces of a name; `None` if its brackets do not match.
fn pieces(text: &str) -> Option<Vec<Piece<'_>>> {
    let (mut out, mut open, mut rest) = (Vec::new(), Vec::new(), text);
    while let Some(c) = rest.chars().next() {
        let length = name_length(rest);
        if length > 0 {
            let (name, after) = rest.split_at_checked(length)?;
            out.push(Piece::Name(name));
            rest = after;
            continue;
        }
        let after = rest.get(c.len_utf8()..)?;
        match c {
            // A remark in brackets, no parameters.
            '(' if !matches!(out.last(), Some(Piece::Name(_) | Piece::Close(_))) => {
                open.push(' ');
                out.push(Piece::Between("("));
            }
            '<' | '(' => {
                open.push(c);
                out.push(Piece::Open(c));
            }
            '>' | ')' => match (open.pop()?, c) {
                (' ', ')') => out.push(Piece::Between(")")),
                ('<', '>') | ('(', ')') => out.push(Piece::Close(c)),
                _ => return None,
            },
            _ => out.push(Piece::Between(rest.get(..c.len_utf8())?)),
        }
        rest = after;
    }
    open.is_empty().then_some(out)
}

/// The last part of a dotted name: `Entry` of `Lab.Program+Entry`.
fn simple(name: &str) -> &str {
    let mut start = 0;
    for (at, c) in name.char_indices() {
        // `<Run>b__0|3` and `.ctor` are whole.
        let next = at.saturating_add(1);
        if matches!(c, '.' | '+') && at > 0 && next < name.len() && !name.get(..at).unwrap_or_default().ends_with('.') {
            start = next;
        }
    }
    name.get(start..).unwrap_or(name)
}

/// The parts of a dotted name, each with the separator before it.
fn parts(name: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    for (at, c) in name.char_indices() {
        let of_constructor = name.get(..at).unwrap_or_default().ends_with('.');
        if matches!(c, '.' | '+') && at > 0 && !of_constructor {
            out.extend(name.get(start..at));
            start = at;
        }
    }
    out.extend(name.get(start..));
    out
}

/// How much is left out.
#[derive(Clone, Copy)]
struct Form {
    /// Parts of the namespace that are kept; `None` for all.
    head: Option<usize>,
    /// Parts at the end of the name that are kept.
    own: usize,
    /// Depth of arguments that are kept.
    depth: usize,
    /// Depth down to which, of further generic arguments, the last one is kept.
    last: usize,
    /// Whether the words after the name stay which say that the method is a lambda or a local function.
    kind: bool,
}

/// Greatest depth of arguments that is looked at for shorter forms.
const MAX_DEPTH: usize = 8;

/// Properties of the pieces of a name.
#[derive(Default)]
struct Shape {
    /// The name whose namespace may be left out, with the numbers of parts in the namespace and after it.
    main: Option<(usize, usize, usize)>,
    /// Number of parts after the namespace that must be kept: a type is dropped before its method, but not before a type nested in it.
    least: usize,
    /// Depth of arguments.
    deepest: usize,
    /// Of the list that each bracket opens, where its last argument begins, and the closing bracket.
    lists: Map<usize, (usize, usize)>,
    /// The bracket of the last list of generic arguments that is not within another.
    last: Option<usize>,
    /// The pieces that say what kind of method it is.
    kind: Option<(usize, usize)>,
}

impl Shape {
    fn of(pieces: &[Piece<'_>]) -> Shape {
        let mut shape = Shape::default();
        // Brackets that are open, with the beginning of the argument.
        let mut open: Vec<(usize, usize)> = Vec::new();
        for (i, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Open(_) => open.push((i, i.saturating_add(1))),
                Piece::Close(c) => {
                    if let Some((bracket, argument)) = open.pop() {
                        shape.lists.insert(bracket, (argument, i));
                        shape.last = Some(bracket).filter(|_| open.is_empty() && *c == '>').or(shape.last);
                    }
                }
                Piece::Between(text) => {
                    if *text == ","
                        && let Some(list) = open.last_mut()
                    {
                        list.1 = i.saturating_add(if pieces.get(i.saturating_add(1)) == Some(&Piece::Between(" ")) { 2 } else { 1 });
                    }
                    let kind = kind_at(pieces, i).filter(|_| open.is_empty());
                    shape.kind = shape.kind.or(kind.map(|end| (i, end)));
                }
                Piece::Name(name) if open.is_empty() => {
                    let all = parts(name).len();
                    let own = own_parts(pieces, i, all);
                    let namespace = all.saturating_sub(own);
                    if namespace > 0 && shape.main.is_none() && !name.starts_with(|c: char| c.is_ascii_digit()) {
                        shape.main = Some((i, namespace, own));
                        shape.least = if name.contains('+') { own } else { own.saturating_sub(1).max(1) };
                    }
                }
                Piece::Name(_) => {}
            }
            shape.deepest = shape.deepest.max(open.len());
        }
        // Remarks after the name are dropped first.
        if has_remarks(pieces) {
            shape.least = usize::MAX;
        }
        shape
    }

    /// The forms of the name, from the longest.
    fn forms(&self) -> impl Iterator<Item = Form> + use<> {
        let (_, namespace, own) = self.main.unwrap_or((0, 0, usize::MAX));
        let whole = Form { head: None, own, depth: self.deepest, last: self.deepest, kind: true };
        let heads = (0..namespace).rev().map(move |head| Form { head: Some(head), ..whole });
        let bare = Form { head: (namespace > 0).then_some(0), kind: false, ..whole };
        let flat = move |form: Form| [(namespace > 1).then_some(Form { head: Some(1), ..form }), Some(form)].into_iter().flatten();
        // The outermost arguments stay as long as possible, of others the last one; a name may have none.
        let deepest = self.deepest.min(MAX_DEPTH);
        let flatter = (1..deepest).rev().flat_map(move |depth| flat(Form { depth, ..bare }));
        let least = if self.last.is_some() { 0 } else { deepest };
        let last = (least..deepest).rev().flat_map(move |last| flat(Form { depth: 0, last: last.saturating_add(1), ..bare }));
        let none = (deepest > 0).then_some(Form { depth: 0, last: 0, ..bare }).into_iter().flat_map(flat);
        let fewest = Form { depth: 0, last: 1, ..bare };
        let fewer = (namespace > 0 && self.least < own).then_some(Form { own: self.least, ..fewest });
        std::iter::once(whole).chain(heads).chain(self.kind.map(|_| bare)).chain(flatter).chain(last).chain(none).chain(fewer)
    }
}

/// The end of the words that start at `at`, if they say what kind of method the name before them is.
fn kind_at(pieces: &[Piece<'_>], at: usize) -> Option<usize> {
    let kinds: [&[&str]; 2] = [&["lambda"], &["local", " ", "function"]];
    kinds.into_iter().find_map(|words| {
        let expected = [" ", "("].into_iter().chain(words.iter().copied()).chain([")"]);
        let mut end = at;
        for text in expected {
            match pieces.get(end)? {
                Piece::Between(found) | Piece::Name(found) if *found == text => end = end.saturating_add(1),
                _ => return None,
            }
        }
        end.checked_sub(1)
    })
}

fn written(pieces: &[Piece<'_>], shape: &Shape, form: Form) -> String {
    let mut out = String::new();
    let (mut depth, mut next) = (0usize, 0usize);
    while let Some(piece) = pieces.get(next) {
        let i = next;
        next = i.saturating_add(1);
        if let Some((_, end)) = shape.kind.filter(|(from, _)| !form.kind && *from == i) {
            next = end.saturating_add(1);
            continue;
        }
        match piece {
            Piece::Open(c) => {
                out.push(*c);
                let (argument, close) = shape.lists.get(&i).copied().unwrap_or((next, next));
                let keeps_last = *c == '<' && depth < form.last && (depth > 0 || shape.last == Some(i));
                if depth >= form.depth && close > next {
                    // All of the list is dropped, but its last argument where that is kept.
                    let several = argument > next;
                    out.push_str(match (keeps_last, several) {
                        (true, true) => "…, ",
                        (true, false) => "",
                        (false, _) => "…",
                    });
                    next = if keeps_last { argument } else { close };
                }
                depth = depth.saturating_add(1);
            }
            Piece::Close(c) => {
                out.push(*c);
                depth = depth.saturating_sub(1);
            }
            Piece::Between(text) => out.push_str(text),
            Piece::Name(name) if depth > 0 => out.push_str(simple(name)),
            Piece::Name(name) => match form.head.zip(shape.main).filter(|(_, (main, _, _))| *main == i) {
                None => out.push_str(name),
                Some((head, (_, namespace, _))) => {
                    let parts = parts(name);
                    let from = parts.len().saturating_sub(form.own);
                    parts.iter().take(head.min(namespace)).for_each(|part| out.push_str(part));
                    out.push(ELLIPSIS);
                    let tail: String = parts.get(from..).unwrap_or_default().concat();
                    let dots = tail.starts_with('.') && !tail.starts_with("..");
                    out.push_str(if dots { tail.get(1..).unwrap_or_default() } else { &tail });
                }
            },
        }
    }
    out
}

/// Parts at the end of a name that are not its namespace: a method or field comes with its type, what is within a method with both.
fn own_parts(pieces: &[Piece<'_>], at: usize, parts: usize) -> usize {
    let name = match pieces.get(at) {
        Some(Piece::Name(name)) => *name,
        _ => "",
    };
    let after = pieces.get(at.saturating_add(1));
    let before = |n: usize| at.checked_sub(n).and_then(|i| pieces.get(i));
    let is_async = before(1) == Some(&Piece::Between(" ")) && before(2) == Some(&Piece::Name(ASYNC));
    let method = after == Some(&Piece::Open('(')) || is_async && !goes_on(pieces, at);
    // Names of fields begin with a small letter or what stands for one.
    let last = name.rsplit('.').next().unwrap_or(name);
    let field = last.starts_with(|c: char| c.is_lowercase() || matches!(c, '_' | '<'));
    let within = last.starts_with("b__") || is_within(pieces, at);
    let nested = name.matches('+').count();
    let own = if within {
        3
    } else if method || field || name.contains("..") {
        2
    } else {
        1
    };
    nested.saturating_add(own).min(parts)
}

/// Whether the name at `at` continues after its generic arguments: `.Fetch` of `Lab.Service<System.String>.Fetch`.
fn goes_on(pieces: &[Piece<'_>], at: usize) -> bool {
    let mut depth = 0usize;
    for piece in pieces.iter().skip(at.saturating_add(1)) {
        match piece {
            Piece::Open(_) => depth = depth.saturating_add(1),
            Piece::Close(_) => depth = depth.saturating_sub(1),
            Piece::Name(name) if depth == 0 => return name.starts_with('.'),
            Piece::Between(_) if depth == 0 => return false,
            _ => {}
        }
    }
    false
}

/// Whether the name at `at` is followed, after its arguments and parameters, by what kind of method it is.
fn is_within(pieces: &[Piece<'_>], at: usize) -> bool {
    let mut depth = 0usize;
    for (i, piece) in pieces.iter().enumerate().skip(at.saturating_add(1)) {
        match piece {
            Piece::Open(_) => depth = depth.saturating_add(1),
            Piece::Close(_) => depth = depth.saturating_sub(1),
            Piece::Between(_) if depth == 0 => return kind_at(pieces, i).is_some(),
            _ => {}
        }
    }
    false
}

/// The name in at most `columns`.
pub(super) fn shorten(name: &str, columns: usize) -> Cow<'_, str> {
    if width(name) <= columns {
        return Cow::Borrowed(name);
    }
    match shorter(name, columns) {
        form if width(&form) <= columns => form,
        form => match pieces(name).map(|pieces| (has_remarks(&pieces), Shape::of(&pieces).kind.is_some())) {
            Some((true, _)) => Cow::Owned(cut(&form, columns).into_owned()),
            Some((false, true)) => Cow::Owned(cut_middle(&form, columns).into_owned()),
            _ => cut_middle(name, columns),
        },
    }
}

/// The longest form of the name that takes at most `columns`, else the shortest one that still has its simple name.
pub(super) fn shorter(name: &str, columns: usize) -> Cow<'_, str> {
    longest(name, |form| width(form) <= columns)
}

/// The longest form of the name that fits, else the shortest one that still has its simple name.
pub(super) fn longest(name: &str, fits: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if fits(name) {
        return Cow::Borrowed(name);
    }
    let Some(pieces) = pieces(name) else { return Cow::Borrowed(name) };
    let shape = Shape::of(&pieces);
    let mut shortest = None;
    for form in shape.forms() {
        let text = written(&pieces, &shape, form);
        let found = fits(&text);
        shortest = Some(text);
        if found {
            break;
        }
    }
    shortest.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Whether something is said behind the name, which tells less than its end: where a frame is, who waits.
fn has_remarks(pieces: &[Piece<'_>]) -> bool {
    let mut depth = 0usize;
    let mut named = false;
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Open(_) => depth = depth.saturating_add(1),
            Piece::Close(_) => depth = depth.saturating_sub(1),
            Piece::Name(name) => named |= *name != ASYNC,
            // What kind of method it is can be left out.
            Piece::Between(_) if kind_at(pieces, i).is_some_and(|end| end.saturating_add(1) == pieces.len()) => return false,
            Piece::Between(text) if named && depth == 0 && *text == " " => return true,
            Piece::Between(_) => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_tells_least_first() {
        let name = "System.Collections.Generic.Dictionary<System.String, Lab.Program+Entry>";
        let forms = [
            (71, name),
            (70, "System.Collections.Generic.Dictionary<String, Entry>"),
            (51, "System.Collections…Dictionary<String, Entry>"),
            (43, "System…Dictionary<String, Entry>"),
            (31, "…Dictionary<String, Entry>"),
            (25, "…Dictionary<…, Entry>"),
            (20, "System…Dictionary<…>"),
            (19, "…Dictionary<…>"),
            (12, "Sys…m+Entry>"),
        ];
        for (columns, short) in forms {
            assert_eq!(shorten(name, columns), short, "{columns}");
        }
    }

    #[test]
    fn methods_nested_types_and_the_names_of_the_compiler() {
        for (columns, name, short) in [
            (40, "Lab.Deep.Program+<RunAsync>d__12.MoveNext()", "Lab…Program+<RunAsync>d__12.MoveNext()"),
            (40, "System.Threading.Tasks.Task.InnerInvoke(System.Threading.Thread)", "System…Task.InnerInvoke(Thread)"),
            (
                44,
                "System.List<System.Generic.KeyValuePair<System.String, Lab.Program+Entry>>[]",
                "System.List<KeyValuePair<String, Entry>>[]",
            ),
            (30, "System.List<System.Generic.KeyValuePair<System.String, Lab.Program+Entry>>[]", "…List<KeyValuePair<…>>[]"),
            (40, "Lab.ICollection<System.KeyValuePair<System.Int32, Lab.Entry<Lab.Key>>>", "…ICollection<KeyValuePair<…, Entry<…>>>"),
            (24, "Lab.Map<System.String, System.Generic.List<Lab.Entry>>+Node<Lab.Key>", "…Map<…>+Node<Key>"),
            (20, "Some.Long.Namespace.Thing..ctor()", "Some…Thing..ctor()"),
            (40, "System.Threading.Tasks.Task.s_cachedCompleted", "System.Threading…Task.s_cachedCompleted"),
            (32, "Some.Long.Namespace.Thing.Go.b__3_0 (lambda)", "Some…Thing.Go.b__3_0 (lambda)"),
            (28, "Some.Long.Namespace.Thing.Go.b__3_0 (lambda)", "…Thing.Go.b__3_0 (lambda)"),
            (20, "Some.Long.Namespace.Thing.Go.b__3_0 (lambda)", "…Thing.Go.b__3_0"),
            (12, "Some.Long.Namespace.Thing.Go.b__3_0 (lambda)", "…Go.b__3_0"),
            (30, "System.Collections.Generic.EqualityComparer+OrdinalComparer", "System.Co…arer+OrdinalComparer"),
            (28, "System.Source+LinkedSource..cctor.b__4_0(System.Object) (lambda)", "…Source+L…e..cctor.b__4_0(…)"),
            (36, "Some.Long.Namespace.Thing.Go.b__3_0(System.Object) (lambda)", "…Thing.Go.b__3_0(Object) (lambda)"),
            (42, "Some.Long.Namespace.Thing.Go.Twice(Int32) (local function)", "…Thing.Go.Twice(Int32) (local function)"),
            (36, "async Some.Long.Namespace.Service<System.String>.Fetch<System.Int32>", "async …Service<String>.Fetch<Int32>"),
            (26, "async Some.Long.Namespace.Service.Fetch", "async Some…Service.Fetch"),
            (20, "async Some.Long.Namespace.Service.Fetch", "async …Service.Fetch"),
            (16, "async Some.Long.Namespace.Service.Fetch", "async …Fetch"),
            (
                60,
                "Microsoft.Extensions.Resolver.CallSiteRuntimeResolver+<>c__DisplayClass3_0",
                "Microsoft…CallSiteRuntimeResolver+<>c__DisplayClass3_0",
            ),
            (48, "0x7fd08f400180 System.Collections.Generic.List<System.Object>", "0x7fd08f400180 System.Collections…List<Object>"),
            (
                36,
                "System.Threading.Thread.StartCallback() +0x12 [System.Private.CoreLib] in Thread.cs:line 12",
                "…Thread.StartCallback() +0x12 [Syst…",
            ),
        ] {
            assert_eq!(shorten(name, columns), short, "{columns}");
        }
    }

    #[test]
    fn whatever_the_text_it_fits() {
        let texts = [
            "System.Collections.Generic.Dictionary<System.String, System.Collections.Generic.List<Lab.Program+Entry>>",
            "<<<<>>>((..++..)",
            "a.b.c<d.e.f",
            "数.据.结.构<数.据, 结.构>.数据结构数据结构",
            "…",
            "....",
            "[[[,,,",
            "A.B+<>c__DisplayClass3_0",
        ];
        for text in texts {
            for columns in 2..120 {
                assert!(width(&shorten(text, columns)) <= columns, "{text} {columns}: {}", shorten(text, columns));
            }
        }
    }
}
