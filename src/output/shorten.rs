//! Shorter forms of type and method names: `System.Collections…Dictionary<String, Entry>`.
//!
//! What tells most is kept longest: the simple name, then the simple names of generic arguments and parameters, then the head of
//! the namespace.

use std::borrow::Cow;

use super::width::{ELLIPSIS, cut, cut_middle, width};

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
    /// Depth of arguments that are kept.
    depth: usize,
}

/// The piece at `main` is the name whose namespace may go.
fn written(pieces: &[Piece<'_>], main: Option<usize>, form: Form) -> String {
    let mut out = String::new();
    let mut depth = 0usize;
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Open(c) => {
                depth = depth.saturating_add(1);
                if depth <= form.depth.saturating_add(1) {
                    out.push(*c);
                    let empty = matches!(pieces.get(i.saturating_add(1)), Some(Piece::Close(_)));
                    if depth > form.depth && !empty {
                        out.push(ELLIPSIS);
                    }
                }
            }
            Piece::Close(c) => {
                if depth <= form.depth.saturating_add(1) {
                    out.push(*c);
                }
                depth = depth.saturating_sub(1);
            }
            _ if depth > form.depth => {}
            Piece::Between(text) => out.push_str(text),
            Piece::Name(name) if depth > 0 => out.push_str(simple(name)),
            Piece::Name(name) => match form.head.filter(|_| main == Some(i)) {
                None => out.push_str(name),
                Some(head) => {
                    let parts = parts(name);
                    let own = own_parts(pieces, i, parts.len());
                    let from = parts.len().saturating_sub(own);
                    parts.iter().take(head.min(from)).for_each(|part| out.push_str(part));
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

/// Parts at the end of a name that are not its namespace: a method or field comes with its type.
fn own_parts(pieces: &[Piece<'_>], at: usize, parts: usize) -> usize {
    let method = pieces.get(at.saturating_add(1)) == Some(&Piece::Open('('));
    let name = match pieces.get(at) {
        Some(Piece::Name(name)) => *name,
        _ => "",
    };
    // Names of fields begin with a small letter or what stands for one.
    let last = name.rsplit('.').next().unwrap_or(name);
    let field = last.starts_with(|c: char| c.is_lowercase() || matches!(c, '_' | '<'));
    let nested = name.matches('+').count();
    nested.saturating_add(if method || field || name.contains("..") { 2 } else { 1 }).min(parts)
}

/// The name in at most `columns`.
pub(super) fn shorten(name: &str, columns: usize) -> Cow<'_, str> {
    if width(name) <= columns {
        return Cow::Borrowed(name);
    }
    match shorter(name, columns) {
        form if width(&form) <= columns => form,
        form if pieces(name).is_some_and(|pieces| has_remarks(&pieces)) => Cow::Owned(cut(&form, columns).into_owned()),
        _ => cut_middle(name, columns),
    }
}

/// The longest form of the name that takes at most `columns`, else the shortest one that still has its simple name.
pub(super) fn shorter(name: &str, columns: usize) -> Cow<'_, str> {
    let Some(pieces) = pieces(name).filter(|_| width(name) > columns) else { return Cow::Borrowed(name) };
    let mut shortest = None;
    for form in forms(&pieces, deepest(&pieces)) {
        let fits = width(&form) <= columns;
        shortest = Some(form);
        if fits {
            break;
        }
    }
    shortest.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Whether something is said behind the name, which tells less than its end: where a frame is, who waits.
fn has_remarks(pieces: &[Piece<'_>]) -> bool {
    let mut depth = 0usize;
    let mut named = false;
    for piece in pieces {
        match piece {
            Piece::Open(_) => depth = depth.saturating_add(1),
            Piece::Close(_) => depth = depth.saturating_sub(1),
            Piece::Name(_) => named = true,
            Piece::Between(text) if named && depth == 0 && *text == " " => return true,
            Piece::Between(_) => {}
        }
    }
    false
}

fn deepest(pieces: &[Piece<'_>]) -> usize {
    let (mut depth, mut most) = (0usize, 0usize);
    for piece in pieces {
        match piece {
            Piece::Open(_) => depth = depth.saturating_add(1),
            Piece::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// The forms of a name, from the longest.
fn forms<'p>(pieces: &'p [Piece<'p>], deepest: usize) -> impl Iterator<Item = String> + 'p {
    let (mut depth, mut main) = (0usize, None::<(usize, usize)>);
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Open(_) => depth = depth.saturating_add(1),
            Piece::Close(_) => depth = depth.saturating_sub(1),
            Piece::Name(name) if depth == 0 => {
                let all = parts(name).len();
                let namespace = all.saturating_sub(own_parts(pieces, i, all));
                if namespace > 0 && main.is_none() && !name.starts_with(|c: char| c.is_ascii_digit()) {
                    main = Some((i, namespace));
                }
            }
            _ => {}
        }
    }
    let (at, namespace) = main.map_or((None, 0), |m| (Some(m.0), m.1));
    let whole = Form { head: None, depth: deepest };
    let heads = (0..namespace).rev().map(move |head| Form { head: Some(head), depth: deepest });
    // The outermost arguments stay as long as possible; a name may have none.
    let flat = (0..deepest).rev().flat_map(move |depth| {
        let head = |head| Form { head, depth };
        [(namespace > 1).then(|| head(Some(1))), Some(head((namespace > 0).then_some(0)))].into_iter().flatten()
    });
    std::iter::once(whole).chain(heads).chain(flat).map(move |form| written(pieces, at, form))
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
            (25, "System…Dictionary<…>"),
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
            (20, "Some.Long.Namespace.Thing..ctor()", "Some…Thing..ctor()"),
            (40, "System.Threading.Tasks.Task.s_cachedCompleted", "System.Threading…Task.s_cachedCompleted"),
            (30, "lambda in Some.Long.Namespace.Thing..ctor", "lambda in Some…Thing..ctor"),
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
