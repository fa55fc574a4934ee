//! Glob patterns for names: `*` matches any text, `?` matches one character, and any other character matches itself.
//!
//! The `globset` crate is not used, because brackets and slashes are parts of names here.

/// Whether `pattern` matches the whole `name`. The worst-case time is proportional to the product of both lengths.
pub(crate) fn glob(pattern: &str, name: &str) -> bool {
    let mut p = pattern.chars();
    let mut n = name.chars();
    // Backtracking point: the pattern after the last star, and the name from the next character that the star would absorb.
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let (before_p, before_n) = (p.clone(), n.clone());
        match (p.next(), n.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                n = before_n;
                retry = Some((p.clone(), n.clone()));
                continue;
            }
            (Some('?'), Some(_)) => continue,
            (Some(a), Some(b)) if a == b => continue,
            _ => {}
        }
        let Some((star_p, mut star_n)) = retry.take() else { return false };
        if star_n.next().is_none() {
            return before_p.as_str().chars().all(|c| c == '*') && before_n.as_str().is_empty();
        }
        (p, n) = (star_p.clone(), star_n.clone());
        retry = Some((star_p, star_n));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name) in [
            ("", ""),
            ("*", ""),
            ("*", "abc"),
            ("a*c", "abbbc"),
            ("a?c", "abc"),
            ("*b*", "abc"),
            ("**c", "abc"),
            ("System.Byte[]", "System.Byte[]"),
        ] {
            assert!(glob(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("", "a"), ("a", ""), ("a*c", "abd"), ("?", ""), ("abc", "abcd"), ("*abc", "abcd"), ("a*b*d", "acbc"), ("?*?", "a")]
        {
            assert!(!glob(pattern, name), "{pattern} {name}");
        }
        assert!(!glob(&"*a".repeat(50), &"a".repeat(49)));
    }
}
