//! Lists of type patterns: `Lab.Dog,Lab.Node` is two patterns. A type name of reflection may be followed by its assembly, which is not a pattern:
//! `Lab.Dog, lab, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null`.
//!
//! Source: <https://learn.microsoft.com/dotnet/fundamentals/reflection/specifying-fully-qualified-type-names>.

/// Attributes of an assembly's name.
const ATTRIBUTES: [&str; 6] = ["version", "culture", "publickeytoken", "processorarchitecture", "contenttype", "retargetable"];

/// Extensions of the files of assemblies.
const EXTENSIONS: [&str; 2] = [".dll", ".exe"];

/// Returns the items of `text` between commas that are not in brackets, without empty ones. A regular expression ends at a slash before a comma or the end
/// of the text. A text whose brackets are not paired is one item.
pub(super) fn items(text: &str) -> Vec<&str> {
    let whole = || vec![text.trim()];
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(end) = end_of_expression(rest).or_else(|| end_of_name(rest)) else { return whole() };
        let Some((item, tail)) = rest.split_at_checked(end) else { return whole() };
        out.extend(Some(item.trim()).filter(|item| !item.is_empty()));
        match tail.trim_start().strip_prefix(',') {
            Some(more) => rest = more,
            None => break,
        }
    }
    if out.is_empty() { whole() } else { out }
}

/// Returns the length of the regular expression in slashes that `text` begins with.
fn end_of_expression(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('/')?;
    let ends = inner.match_indices('/').filter(|(at, _)| *at > 0).map(|(at, _)| at.saturating_add(2));
    let mut ends =
        ends.filter(|end| text.get(*end..).is_some_and(|tail| tail.trim_start().is_empty() || tail.trim_start().starts_with(',')));
    ends.next()
}

/// Returns the length of `text` before its first comma outside of brackets; `None` if brackets are not paired.
fn end_of_name(text: &str) -> Option<usize> {
    let (mut depth, mut escaped) = (0usize, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => {}
            '<' | '[' | '(' | '{' => depth = depth.saturating_add(1),
            '>' | ']' | ')' | '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => return Some(at),
            _ => {}
        }
        // Reflection writes a backslash before a comma or bracket that is part of a name.
        escaped = c == '\\' && !escaped;
    }
    (depth == 0).then_some(text.len())
}

/// Returns the patterns among the items of `text`: those that do not name an assembly. `is_assembly` returns whether the process has an assembly of
/// this name.
pub(super) fn patterns(text: &str, is_assembly: impl Fn(&str) -> bool) -> Vec<&str> {
    let all = items(text);
    let mut out = Vec::new();
    // Whether the item before was a type, which the name of its assembly may follow.
    let mut after_type = false;
    for (i, item) in all.iter().enumerate() {
        let is_first = out.is_empty();
        let is_name = after_type && (all.get(i.saturating_add(1)).is_some_and(|next| is_attribute(next)) || is_assembly(item));
        after_type = is_first || !(is_name || is_attribute(item));
        out.extend(after_type.then_some(*item));
    }
    out
}

/// Whether `item` is an attribute of an assembly's name, such as `Version=1.0.0.0`.
fn is_attribute(item: &str) -> bool {
    item.split_once('=').is_some_and(|(name, _)| ATTRIBUTES.contains(&name.trim().to_ascii_lowercase().as_str()))
}

/// Whether `word` is the name of the assembly in the file `module`.
pub(crate) fn names_assembly(word: &str, module: &str) -> bool {
    let bare = |name: &str| {
        let lower = name.to_ascii_lowercase();
        EXTENSIONS.iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower).to_owned()
    };
    bare(word) == bare(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_outside_of_brackets_separate_patterns() {
        for (text, expected) in [
            ("Lab.Dog", &["Lab.Dog"][..]),
            ("Lab.Dog,Lab.Node", &["Lab.Dog", "Lab.Node"]),
            (" Lab.Dog , Lab.* ,", &["Lab.Dog", "Lab.*"]),
            ("Dictionary<int, string>,int[,]", &["Dictionary<int, string>", "int[,]"]),
            ("List`1[[System.String, System.Private.CoreLib]],Lab.Dog", &["List`1[[System.String, System.Private.CoreLib]]", "Lab.Dog"]),
            ("(int,string)", &["(int,string)"]),
            ("/a{1,2}/", &["/a{1,2}/"]),
            ("/^Lab[.](A|B),x/", &["/^Lab[.](A|B),x/"]),
            ("/a/, /b/,c", &["/a/", "/b/", "c"]),
            ("A<B,C", &["A<B,C"]),
            ("A>,B", &["A>,B"]),
            (r"A\,B,C", &[r"A\,B", "C"]),
            ("", &[""]),
            (",", &[","]),
        ] {
            assert_eq!(items(text), expected, "{text}");
        }
    }

    #[test]
    fn the_assembly_of_a_type_is_no_pattern() {
        let of = |text| patterns(text, |word| names_assembly(word, "lab.dll"));
        assert_eq!(of("Lab.Dog, lab"), ["Lab.Dog"]);
        assert_eq!(of("Lab.Dog, Lab.dll, Lab.Node, lab"), ["Lab.Dog", "Lab.Node"]);
        assert_eq!(of("Lab.Dog, other, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null"), ["Lab.Dog"]);
        assert_eq!(of("Lab.Dog, Version=1.0.0.0, Lab.Node"), ["Lab.Dog", "Lab.Node"]);
        assert_eq!(of("Lab.Dog, Nonsense"), ["Lab.Dog", "Nonsense"]);
        assert_eq!(of("lab, lab"), ["lab"]);
    }
}
