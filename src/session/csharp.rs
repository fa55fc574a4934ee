//! Matches type names in C# syntax with the runtime's names: `Dictionary<int,string>` matches
//! `System.Collections.Generic.Dictionary<System.Int32, System.String>`.

use std::iter::Peekable;

use super::reflected::{ANY, is_parameter};

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

/// The types among them whose values are references.
const REFERENCES: [&str; 2] = ["System.Object", "System.String"];

/// Whether the character is between the type names of a generic type or array.
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

/// `pattern` with C# keywords replaced by the runtime's full names. A keyword with a question mark, such as `int?`, is a nullable type; references are
/// nullable anyway.
pub(super) fn with_full_names(pattern: &str) -> String {
    let full = |token: &str| {
        let of = |word: &str| KEYWORDS.iter().find(|(keyword, _)| *keyword == word).map(|(_, name)| *name);
        if let Some(name) = of(token) {
            return name.to_owned();
        }
        match token.strip_suffix('?').and_then(of) {
            Some(name) if REFERENCES.contains(&name) => name.to_owned(),
            Some(name) => nullable(name),
            None => token.to_owned(),
        }
    };
    tokens(pattern).map(full).collect()
}

/// `pattern` with each name that ends with a question mark replaced by the nullable type of that name: `DateTime?[]`. `None` if question marks or asterisks
/// occur elsewhere.
pub(super) fn with_nullables(pattern: &str) -> Option<String> {
    let part = |token: &str| {
        let stem = token.strip_suffix('?').filter(|stem| !stem.is_empty());
        (!stem.unwrap_or(token).contains(['*', '?'])).then(|| stem.map_or_else(|| token.to_owned(), nullable))
    };
    tokens(pattern).map(part).collect()
}

/// The runtime's name of the nullable type of values of the type `name`.
fn nullable(name: &str) -> String {
    format!("System.Nullable<{name}>")
}

/// Whether `pattern`, a type with generic arguments, matches all of `name`. Each type in the pattern may omit namespaces and enclosing types, and
/// [`ANY`] matches any argument.
pub(super) fn is_generic(pattern: &str, name: &str) -> bool {
    let mut name = tokens(name).filter(|token| *token != " ").peekable();
    let mut fits =
        |wanted: &str| if wanted == ANY { skip_argument(&mut name) } else { name.next().is_some_and(|token| ends(token, wanted)) };
    let all = tokens(pattern).filter(|token| *token != " ").all(&mut fits);
    all && name.next().is_none()
}

/// Takes the tokens of one type argument. Returns whether there were any.
fn skip_argument<'n>(tokens: &mut Peekable<impl Iterator<Item = &'n str>>) -> bool {
    let mut depth = 0u32;
    let mut is_empty = true;
    while let Some(token) = tokens.peek() {
        match *token {
            ">" | "]" | "," if depth == 0 => break,
            "<" | "[" => depth = depth.saturating_add(1),
            ">" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_empty = false;
        tokens.next();
    }
    !is_empty
}

/// `pattern` with [`ANY`] in place of each argument that looks like the name of a type parameter: `List<T>`. `None` if no argument does.
pub(super) fn with_any_parameters(pattern: &str) -> Option<String> {
    let mut before = "";
    let mut found = false;
    let part = |token| {
        let is_parameter = matches!(before, "<" | ",") && is_parameter(token);
        found |= is_parameter;
        before = if token == " " { before } else { token };
        if is_parameter { ANY } else { token }
    };
    let text = tokens(pattern).map(part).collect();
    found.then_some(text)
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
            ("int?", "System.Nullable<System.Int32>"),
            ("List<int?>[]", "List<System.Nullable<System.Int32>>[]"),
            ("string?", "System.String"),
            ("print?", "print?"),
            ("int??", "int??"),
        ] {
            assert_eq!(with_full_names(pattern), full, "{pattern}");
        }
    }

    #[test]
    fn names_with_question_marks_are_nullable() {
        assert_eq!(with_nullables("DateTime?[]").as_deref(), Some("System.Nullable<DateTime>[]"));
        assert_eq!(
            with_nullables("Dictionary<System.Int32,Lab.Age?>").as_deref(),
            Some("Dictionary<System.Int32,System.Nullable<Lab.Age>>")
        );
        for wild in ["?", "Date?ime", "Date*?", "Age??", "Lab.*", "System.Int32[]?"] {
            assert_eq!(with_nullables(wild), None, "{wild}");
        }
    }

    #[test]
    fn type_parameters_mean_any_argument() {
        assert_eq!(with_any_parameters("Dictionary<TKey, System.Int32>").as_deref(), Some("Dictionary<\u{1}, System.Int32>"));
        assert_eq!(with_any_parameters("List<Type>"), None);
        assert_eq!(with_any_parameters("T"), None);
        let name = "System.Collections.Generic.Dictionary<System.Int32[,], System.Func<System.Int32, Lab.Dog>>";
        assert!(is_generic("Dictionary<\u{1}, \u{1}>", name) && is_generic("Dictionary<\u{1},Func<\u{1},Dog>>", name));
        assert!(!is_generic("Dictionary<\u{1}>", name) && !is_generic("Dictionary<\u{1},\u{1},\u{1}>", name));
    }

    #[test]
    fn namespaces_of_arguments_may_be_omitted() {
        const NAME: &str = "System.Collections.Generic.Dictionary<System.Int32, Lab.Program+Entry>+Entry[]";
        let fits = |pattern: &str| is_generic(pattern, NAME);
        assert!(fits("Dictionary<Int32,Entry>+Entry[]") && fits("Dictionary<System.Int32, Program+Entry>+Entry[]") && fits(NAME));
        assert!(!fits("Dictionary<Int32,Entry>") && !fits("Dictionary<Int32,ntry>+Entry[]") && !fits("Dictionary<Entry,Int32>+Entry[]"));
    }
}
