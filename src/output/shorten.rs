//! Shorter forms of type and method names: `System.Collections…Dictionary<String, Entry>`.
//!
//! The simple name is kept longest, then the simple names of generic arguments and parameters, then the start of the namespace.

use std::borrow::Cow;

use super::width::{ELLIPSIS, cut, cut_middle, width};

/// First word in the names of asynchronous methods.
const ASYNC: &str = "async";

/// Maximum nesting of arguments in a name that is shortened.
const MAX_DEPTH: usize = 64;
/// Maximum nesting of arguments that are shortened level by level.
const MAX_SHORTENED: usize = 8;

/// A part of a name.
#[derive(Debug, PartialEq, Eq)]
enum Node<'n> {
    /// A dotted name with its suffixes: `System.String[]`, `Lab.Program+<Run>d__3`.
    Name(&'n str),
    /// Generic arguments or parameters, with the bracket that opens them.
    List(char, Vec<Node<'n>>),
    /// A character between names.
    Between(&'n str),
}

/// Whether `c` may be part of a dotted name.
fn of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '`' | '*' | '&' | '$' | '@' | '|') || !c.is_ascii()
}

/// Returns the byte length of the name at the start of `text`. Compiler-generated names contain angle brackets at the start of a part:
/// `<Run>d__3`.
fn name_length(text: &str) -> usize {
    let (mut at, mut begins) = (0usize, true);
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or_default();
        let taken = match c {
            '<' if begins => rest.find('>').filter(|end| rest.get(1..*end).is_some_and(|t| !t.contains(['.', ',', ' ']))),
            // Square brackets belong to a name only as an array suffix.
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

/// Parses the nodes up to the bracket `close`, or to the end; returns `None` if brackets do not match.
fn nodes<'n>(rest: &mut &'n str, close: Option<char>, depth: usize) -> Option<Vec<Node<'n>>> {
    let (mut out, mut remarks) = (Vec::new(), 0usize);
    while let Some(c) = rest.chars().next() {
        let named = name_length(rest);
        let (taken, after) = rest.split_at_checked(if named > 0 { named } else { c.len_utf8() })?;
        *rest = after;
        let closed = match c {
            _ if named > 0 => {
                out.push(Node::Name(taken));
                continue;
            }
            '<' => '>',
            '(' if matches!(out.last(), Some(Node::Name(_) | Node::List(..))) => ')',
            ')' | '>' if remarks == 0 || c == '>' => return (close == Some(c) && remarks == 0).then_some(out),
            _ => {
                // Parentheses that do not follow a name enclose remarks rather than parameters.
                remarks = if c == ')' { remarks.saturating_sub(1) } else { remarks.saturating_add(usize::from(c == '(')) };
                out.push(Node::Between(taken));
                continue;
            }
        };
        let inner = depth.checked_add(1).filter(|depth| *depth <= MAX_DEPTH)?;
        out.push(Node::List(c, nodes(rest, Some(closed), inner)?));
    }
    (close.is_none() && remarks == 0).then_some(out)
}

/// Returns the nesting depth of the lists among `nodes`.
fn depth(nodes: &[Node<'_>]) -> usize {
    let of = |node: &Node<'_>| if let Node::List(_, inner) = node { depth(inner).saturating_add(1) } else { 0 };
    nodes.iter().map(of).max().unwrap_or(0)
}

/// Returns the index of the first node of the last argument in a list.
fn last_argument(list: &[Node<'_>]) -> usize {
    let after = list.iter().rposition(|node| *node == Node::Between(",")).map_or(0, |comma| comma.saturating_add(1));
    if after > 0 && list.get(after) == Some(&Node::Between(" ")) { after.saturating_add(1) } else { after }
}

/// Splits a dotted name into parts, each with the separator before it. `.ctor` is one part.
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

/// Returns the last part of a dotted name: `Entry` of `Lab.Program+Entry`.
fn simple(name: &str) -> &str {
    let last = parts(name).pop().filter(|last| last.len() < name.len()).and_then(|last| last.strip_prefix(['.', '+']));
    last.filter(|last| !last.is_empty()).unwrap_or(name)
}

/// A shorter form of a name.
#[derive(Clone, Copy)]
struct Form {
    /// Number of namespace parts to keep; `None` for all.
    head: Option<usize>,
    /// Number of parts to keep at the end of the name.
    own: usize,
    /// Depth to which all arguments are kept.
    depth: usize,
    /// Depth to which at least the last generic argument is kept.
    last: usize,
    /// Whether to keep the words after the name that identify a lambda or a local function.
    kind: bool,
}

/// A parsed name.
struct Parsed<'n> {
    nodes: Vec<Node<'n>>,
    /// The node whose namespace may be omitted, with the numbers of parts in the namespace and after it.
    main: Option<(usize, usize, usize)>,
    /// The last list of generic arguments that is not nested.
    last: Option<usize>,
    /// The first and the last node of the words that identify a lambda or a local function.
    kind: Option<(usize, usize)>,
    /// Whether less important text follows the name: the location of a frame, the waiting thread.
    remarks: bool,
}

impl<'n> Parsed<'n> {
    fn of(text: &'n str) -> Option<Parsed<'n>> {
        let nodes = nodes(&mut &*text, None, 0)?;
        let mut parsed = Parsed { nodes, main: None, last: None, kind: None, remarks: false };
        let mut named = false;
        for (i, node) in parsed.nodes.iter().enumerate() {
            let kind = parsed.kind_at(i);
            match node {
                Node::Name(name) => {
                    named |= *name != ASYNC;
                    let all = parts(name).len();
                    let own = parsed.own_parts(i, name).min(all);
                    let has_namespace = all > own && !name.starts_with(|c: char| c.is_ascii_digit());
                    parsed.main = parsed.main.or(has_namespace.then_some((i, all.saturating_sub(own), own)));
                }
                Node::List(open, inner) => {
                    named |= !inner.is_empty();
                    parsed.last = if *open == '<' { Some(i) } else { parsed.last };
                }
                Node::Between(text) => {
                    parsed.kind = parsed.kind.or(kind.map(|end| (i, end)));
                    // At the end of the name, the words that identify a lambda are not a remark, because a shorter form may omit them.
                    let at_end = kind.is_some_and(|end| end.saturating_add(1) == parsed.nodes.len());
                    parsed.remarks |= named && *text == " " && !at_end;
                    if at_end {
                        break;
                    }
                }
            }
        }
        Some(parsed)
    }

    /// Returns the last node of the words starting at `at` that identify a lambda or a local function.
    fn kind_at(&self, at: usize) -> Option<usize> {
        let kinds: [&[&str]; 2] = [&[" ", "(", "lambda", ")"], &[" ", "(", "local", " ", "function", ")"]];
        let is = |node: &Node<'_>, word: &str| matches!(node, Node::Between(text) | Node::Name(text) if *text == word);
        let from = self.nodes.get(at..)?;
        let kind =
            kinds.into_iter().find(|words| from.len() >= words.len() && from.iter().zip(*words).all(|(node, word)| is(node, word)))?;
        at.saturating_add(kind.len()).checked_sub(1)
    }

    /// Returns the number of parts at the end of a name that are not its namespace. For a method or field, its type is included; for a local
    /// function, its type and its method.
    fn own_parts(&self, at: usize, name: &str) -> usize {
        let after = || self.nodes.iter().enumerate().skip(at.saturating_add(1));
        let before = |n: usize| at.checked_sub(n).and_then(|i| self.nodes.get(i));
        let is_async = before(1) == Some(&Node::Between(" ")) && before(2) == Some(&Node::Name(ASYNC));
        // A following name that begins with a dot continues this one, such as `.Fetch` in `Lab.Service<System.String>.Fetch`.
        let continues =
            || after().find(|(_, n)| !matches!(n, Node::List(..))).is_some_and(|(_, n)| matches!(n, Node::Name(n) if n.starts_with('.')));
        let method = matches!(after().next(), Some((_, Node::List('(', _)))) || is_async && !continues();
        // Field names begin with a lowercase letter, `_` or `<`.
        let last = name.rsplit('.').next().unwrap_or(name);
        let field = last.starts_with(|c: char| c.is_lowercase() || matches!(c, '_' | '<'));
        let of_kind = || after().find(|(_, n)| matches!(n, Node::Between(_))).is_some_and(|(i, _)| self.kind_at(i).is_some());
        let own = if last.starts_with("b__") || of_kind() {
            3
        } else if method || field || name.contains("..") {
            2
        } else {
            1
        };
        name.matches('+').count().saturating_add(own)
    }

    /// Returns the forms of the name, longest first.
    fn forms(&self) -> Vec<Form> {
        let (_, namespace, own) = self.main.unwrap_or((0, 0, usize::MAX));
        let deepest = depth(&self.nodes);
        let whole = Form { head: None, own, depth: deepest, last: deepest, kind: true };
        let bare = Form { head: (namespace > 0).then_some(0), kind: false, ..whole };
        let mut forms = vec![whole];
        forms.extend((0..namespace).rev().map(|head| Form { head: Some(head), ..whole }));
        forms.extend(self.kind.map(|_| bare));
        // The outermost arguments are kept as long as possible. Of nested arguments only the last is kept, and the shortest forms have no arguments.
        let shortened = deepest.min(MAX_SHORTENED);
        let least = if self.last.is_some() { 0 } else { shortened };
        let last = (least..shortened).rev().map(|last| (0, last.saturating_add(1)));
        for (depth, last) in (1..shortened).rev().map(|depth| (depth, deepest)).chain(last).chain((deepest > 0).then_some((0, 0))) {
            forms.extend((namespace > 1).then_some(Form { head: Some(1), depth, last, ..bare }));
            forms.push(Form { depth, last, ..bare });
        }
        // The shortest form omits the type of a method. A name with a nested type does not have this form. Remarks are cut before the type is
        // omitted.
        let name = self.main.and_then(|(main, ..)| self.nodes.get(main));
        let nested = matches!(name, Some(Node::Name(name)) if name.contains('+'));
        let fewer = (!self.remarks && !nested && own > 1 && self.main.is_some()).then(|| own.saturating_sub(1));
        forms.extend(fewer.map(|own| Form { own, depth: 0, last: 1, ..bare }));
        forms
    }

    fn written(&self, form: Form) -> String {
        let mut out = String::new();
        self.write(&self.nodes, form, 0, &mut out);
        out
    }

    fn write(&self, nodes: &[Node<'_>], form: Form, depth: usize, out: &mut String) {
        let left_out = self.kind.filter(|_| depth == 0 && !form.kind);
        for (i, node) in nodes.iter().enumerate() {
            match node {
                _ if left_out.is_some_and(|(from, end)| (from..=end).contains(&i)) => {}
                Node::List(open, list) => {
                    let argument = last_argument(list);
                    let keeps_last = *open == '<' && depth < form.last && (depth > 0 || self.last == Some(i));
                    let (lead, kept) = match keeps_last {
                        _ if depth < form.depth || list.is_empty() => ("", 0),
                        true => (if argument > 0 { "…, " } else { "" }, argument),
                        false => ("…", list.len()),
                    };
                    out.push(*open);
                    out.push_str(lead);
                    self.write(list.get(kept..).unwrap_or_default(), form, depth.saturating_add(1), out);
                    out.push(if *open == '<' { '>' } else { ')' });
                }
                Node::Between(text) => out.push_str(text),
                Node::Name(name) if depth > 0 => out.push_str(simple(name)),
                Node::Name(name) => match form.head.zip(self.main).filter(|(_, (main, ..))| *main == i) {
                    None => out.push_str(name),
                    Some((head, (_, namespace, _))) => {
                        let parts = parts(name);
                        let from = parts.len().saturating_sub(form.own);
                        out.extend(parts.iter().take(head.min(namespace)).copied());
                        out.push(ELLIPSIS);
                        let tail = parts.get(from..).unwrap_or_default().concat();
                        out.push_str(tail.strip_prefix('.').filter(|tail| !tail.starts_with('.')).unwrap_or(&tail));
                    }
                },
            }
        }
    }
}

/// Shortens the name to at most `columns`.
pub(super) fn shorten(name: &str, columns: usize) -> Cow<'_, str> {
    let form = shorter(name, columns);
    if width(&form) <= columns {
        return form;
    }
    match Parsed::of(name) {
        Some(parsed) if parsed.remarks => Cow::Owned(cut(&form, columns).into_owned()),
        Some(parsed) if parsed.kind.is_some() => Cow::Owned(cut_middle(&form, columns).into_owned()),
        _ => cut_middle(name, columns),
    }
}

/// Returns the longest form of the name that takes at most `columns`, or else the shortest form that still has the simple name.
pub(super) fn shorter(name: &str, columns: usize) -> Cow<'_, str> {
    longest(name, |form| width(form) <= columns)
}

/// Returns the longest form of the name that fits, or else the shortest form that still has the simple name.
pub(super) fn longest(name: &str, fits: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if fits(name) {
        return Cow::Borrowed(name);
    }
    let Some(parsed) = Parsed::of(name) else { return Cow::Borrowed(name) };
    let forms = parsed.forms();
    let last = forms.len().saturating_sub(1);
    let form = forms.into_iter().enumerate().map(|(i, form)| (i, parsed.written(form))).find(|(i, text)| *i == last || fits(text));
    form.map_or(Cow::Borrowed(name), |(_, text)| Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_the_least_important_parts_first() {
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
    fn methods_nested_types_and_compiler_generated_names_are_shortened() {
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
    fn any_text_is_shortened_to_the_width() {
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
        let deep = "A<".repeat(100_000);
        assert!(width(&shorten(&deep, 20)) <= 20, "brackets that never end");
        for text in texts {
            for columns in 2..120 {
                assert!(width(&shorten(text, columns)) <= columns, "{text} {columns}: {}", shorten(text, columns));
            }
        }
    }
}
