//! Type names as .NET's reflection writes them, in logs, in stack traces and as `Type.FullName`, in the form of the names that gcdump prints:
//! ``List`1[[System.String, System.Private.CoreLib]]`` is `List<System.String>`.
//!
//! Source: <https://learn.microsoft.com/dotnet/fundamentals/reflection/specifying-fully-qualified-type-names>.

/// Stands for any type argument in a pattern.
pub(super) const ANY: &str = "\u{1}";
/// Maximum nesting of type arguments.
const MAX_DEPTH: u32 = 32;
/// Maximum number of type parameters of a type.
const MAX_ARITY: usize = 64;

/// `text` in the form of printed names: type arguments are in angle brackets after the type that has them, and the names of their assemblies are
/// removed. The arguments of a generic type without any are [`ANY`]. `None` if the text is not a well-formed name.
pub(super) fn printed(text: &str) -> Option<String> {
    let mut reader = Reader { rest: text };
    let name = reader.name(0)?;
    (reader.rest.is_empty() && !name.is_empty()).then_some(name)
}

/// `text`, a name with angle brackets, with [`ANY`] in place of each argument without a name: `List<>`, `Dictionary<,>`.
pub(super) fn with_any(text: &str) -> String {
    // Compilers write names with nothing in the brackets as well: `<>c`, `<>f__AnonymousType0`.
    let mut out = String::new();
    let mut inside: Vec<bool> = Vec::new();
    let mut last = None;
    for c in text.chars() {
        let is_empty = match c {
            '>' => inside.pop() == Some(true) && matches!(last, Some('<' | ',')),
            ',' => inside.last() == Some(&true) && matches!(last, Some('<' | ',')),
            _ => false,
        };
        match c {
            '<' => inside.push(last.is_some_and(|c: char| c.is_alphanumeric() || c == '_')),
            '[' => inside.push(false),
            ']' => drop(inside.pop()),
            _ => {}
        }
        out.push_str(if is_empty { ANY } else { "" });
        out.push(c);
        last = Some(c).filter(|c| *c != ' ').or(last);
    }
    out
}

/// Whether `word` looks like the name of a type parameter: `T`, `TKey`, `T1`.
pub(super) fn is_parameter(word: &str) -> bool {
    let Some(rest) = word.strip_prefix('T') else { return false };
    rest.chars().all(char::is_alphanumeric) && rest.chars().next().is_none_or(|c| !c.is_lowercase())
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn eat(&mut self, token: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes the text before the first of the characters `ends` that is not in angle brackets. `None` if brackets are not paired.
    fn until(&mut self, ends: &[char]) -> Option<&'t str> {
        let mut depth = 0usize;
        let mut found = None;
        for (at, c) in self.rest.char_indices() {
            match c {
                '<' => depth = depth.saturating_add(1),
                '>' => depth = depth.checked_sub(1)?,
                c if depth == 0 && ends.contains(&c) => {
                    found = Some(at);
                    break;
                }
                _ => {}
            }
        }
        let (head, tail) = self.rest.split_at_checked(found.unwrap_or(self.rest.len()))?;
        self.rest = tail;
        (depth == 0).then_some(head)
    }

    /// Takes the name of an assembly after a comma, up to one of `ends`.
    fn assembly(&mut self, ends: &[char]) {
        if self.eat(',') {
            let at = self.rest.find(ends).unwrap_or(self.rest.len());
            self.rest = self.rest.get(at..).unwrap_or_default();
        }
    }

    /// Takes a type's name, with its arguments and the brackets of arrays.
    fn name(&mut self, depth: u32) -> Option<String> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut parts: Vec<(&str, usize)> = Vec::new();
        loop {
            let part = self.until(&['+', '[', ']', ','])?.trim();
            let arity = part.rsplit_once('`').and_then(|(name, arity)| Some((name, arity.parse::<usize>().ok()?)));
            let (name, arity) = arity.unwrap_or((part, 0));
            if name.is_empty() || arity > MAX_ARITY {
                return None;
            }
            parts.push((name, arity));
            if !self.eat('+') {
                break;
            }
        }
        let total = parts.iter().fold(0usize, |sum, (_, arity)| sum.saturating_add(*arity));
        let mut arguments = if total > 0 { self.arguments(total, depth)? } else { Vec::new() }.into_iter();
        let mut out = String::new();
        for (i, (name, arity)) in parts.iter().enumerate() {
            out.push_str(if i > 0 { "+" } else { "" });
            out.push_str(name);
            if *arity > 0 {
                let own: Vec<String> = arguments.by_ref().take(*arity).collect();
                out.push('<');
                out.push_str(&own.join(", "));
                out.push('>');
            }
        }
        while self.rest.starts_with('[') {
            let at = self.rest.find(']')?;
            let (brackets, tail) = self.rest.split_at_checked(at.saturating_add(1))?;
            out.push_str(brackets);
            self.rest = tail;
        }
        Some(out)
    }

    /// Takes `count` type arguments in brackets; [`ANY`] for each if the brackets, if any, are those of an array.
    fn arguments(&mut self, count: usize, depth: u32) -> Option<Vec<String>> {
        let any = vec![ANY.to_owned(); count];
        let Some(inner) = self.rest.strip_prefix('[') else { return Some(any) };
        if inner.trim_start_matches([',', '*', ' ']).starts_with(']') {
            return Some(any);
        }
        self.rest = inner;
        let mut out = Vec::new();
        loop {
            let qualified = self.eat('[');
            out.push(self.name(depth.saturating_add(1))?);
            if qualified {
                self.assembly(&[']']);
                if !self.eat(']') {
                    return None;
                }
            }
            if !self.eat(',') {
                break;
            }
        }
        (self.eat(']') && out.len() == count).then_some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_reflection_get_the_printed_form() {
        for (text, printed_name) in [
            ("Lab.Dog", "Lab.Dog"),
            ("Lab.Dog[]", "Lab.Dog[]"),
            ("System.Int32[,]", "System.Int32[,]"),
            ("Dictionary<int, string>", "Dictionary<int, string>"),
            ("List`1[System.String]", "List<System.String>"),
            ("List`1[[System.String, System.Private.CoreLib, Version=10.0.0.0]]", "List<System.String>"),
            ("Dictionary`2[System.String,System.Object]", "Dictionary<System.String, System.Object>"),
            ("Dictionary`2[[System.String, A],[List`1[[System.Int32[], B]], C]][]", "Dictionary<System.String, List<System.Int32[]>>[]"),
            ("Lab.Outer`1+Inner`1[System.Int32,System.String]", "Lab.Outer<System.Int32>+Inner<System.String>"),
            ("Lab.Outer+Inner`1[System.Int32]", "Lab.Outer+Inner<System.Int32>"),
            ("Lab.Outer`1+Inner[System.Int32]", "Lab.Outer<System.Int32>+Inner"),
            ("List`1", "List<\u{1}>"),
            ("Func`2[]", "Func<\u{1}, \u{1}>[]"),
            ("Prog+<Main>d__0", "Prog+<Main>d__0"),
            ("Prog+<>c__DisplayClass0_0`1[System.Int32]", "Prog+<>c__DisplayClass0_0<System.Int32>"),
        ] {
            assert_eq!(printed(text).as_deref(), Some(printed_name), "{text}");
        }
        for text in ["", "List`1[", "List`1[[A]", "Dictionary`2[A]", "List`1[A]]", "A<B", "A>B", "List`1[A]x"] {
            assert_eq!(printed(text), None, "{text}");
        }
    }

    #[test]
    fn arguments_without_a_name_are_any() {
        assert_eq!(with_any("List<>"), "List<\u{1}>");
        assert_eq!(with_any("Dictionary<,>+Entry[]"), "Dictionary<\u{1},\u{1}>+Entry[]");
        assert_eq!(with_any("Func<int, , string>"), "Func<int, \u{1}, string>");
        for name in ["Prog+<>c", "<>f__AnonymousType0<int[,], string>", "Prog+<>c+<<M>b__0>d", "int[,]", "List<int>"] {
            assert_eq!(with_any(name), name);
        }
    }

    #[test]
    fn type_parameters_begin_with_t() {
        assert!(["T", "TKey", "T1", "TResult"].into_iter().all(is_parameter));
        assert!(!["Task", "Type", "Key", "System.T", ""].into_iter().any(is_parameter));
    }
}
