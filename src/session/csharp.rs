//! Type names in C# syntax: `Dictionary<int,string>` is `System.Collections.Generic.Dictionary<System.Int32, System.String>`.

/// C# keywords for types, with the types' full names.
const KEYWORDS: [(&str, &str); 17] = [
    ("bool", "System.Boolean"),
    ("byte", "System.Byte"),
    ("sbyte", "System.SByte"),
    ("char", "System.Char"),
    ("decimal", "System.Decimal"),
    ("double", "System.Double"),
    ("float", "System.Single"),
    ("int", "System.Int32"),
    ("uint", "System.UInt32"),
    ("nint", "System.IntPtr"),
    ("nuint", "System.UIntPtr"),
    ("long", "System.Int64"),
    ("ulong", "System.UInt64"),
    ("short", "System.Int16"),
    ("ushort", "System.UInt16"),
    ("object", "System.Object"),
    ("string", "System.String"),
];

/// Whether the character separates type names.
fn is_between(c: char) -> bool {
    matches!(c, '<' | '>' | ',' | '[' | ']' | ' ')
}

/// The type names in `text`, and the characters between them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(is_between).flat_map(|part| {
        let name = part.trim_end_matches(is_between);
        let rest = part.strip_prefix(name).unwrap_or_default();
        [name, rest].into_iter().filter(|token| !token.is_empty())
    })
}

/// `pattern` with C# keywords replaced by the runtime's full names.
pub(super) fn with_full_names(pattern: &str) -> String {
    tokens(pattern).map(|token| KEYWORDS.iter().find(|(keyword, _)| *keyword == token).map_or(token, |(_, name)| *name)).collect()
}

/// Whether `pattern`, a type with generic arguments, matches `name`. Each type in the pattern may omit namespaces and enclosing types.
pub(super) fn is_generic(pattern: &str, name: &str) -> bool {
    let mut name = tokens(name).filter(|token| *token != " ");
    let all = tokens(pattern).filter(|token| *token != " ").all(|wanted| name.next().is_some_and(|token| ends(token, wanted)));
    all && name.next().is_none()
}

/// Whether `name` is `wanted`, or ends with it after a namespace or an enclosing type.
fn ends(name: &str, wanted: &str) -> bool {
    name.strip_suffix(wanted).is_some_and(|before| before.is_empty() || before.ends_with(['.', '+']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_whole_names() {
        for (pattern, full) in [
            ("int", "System.Int32"),
            ("int[]", "System.Int32[]"),
            ("Dictionary<int,string>", "Dictionary<System.Int32,System.String>"),
            ("Lab.int", "Lab.int"),
            ("*int*", "*int*"),
            ("print", "print"),
            ("String", "String"),
            ("List<List<byte[]>>", "List<List<System.Byte[]>>"),
        ] {
            assert_eq!(with_full_names(pattern), full, "{pattern}");
        }
    }

    #[test]
    fn namespaces_of_arguments_may_be_omitted() {
        const NAME: &str = "System.Collections.Generic.Dictionary<System.Int32, Lab.Program+Entry>+Entry[]";
        let fits = |pattern: &str| is_generic(pattern, NAME);
        assert!(fits("Dictionary<Int32,Entry>+Entry[]") && fits("Dictionary<System.Int32, Program+Entry>+Entry[]") && fits(NAME));
        assert!(!fits("Dictionary<Int32,Entry>") && !fits("Dictionary<Int32,ntry>+Entry[]") && !fits("Dictionary<Entry,Int32>+Entry[]"));
    }
}
