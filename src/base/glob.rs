//! Patterns of names: `*` for any characters, `?` for one.

/// Whether `text` as a whole fits `pattern`. Case counts. Time is bounded by the product of both lengths at worst: a `*`
/// never goes back further than to the one before.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0usize, 0usize);
    // Where to go on when the text behind the last `*` does not fit.
    let mut star: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(p), text.get(t)) {
            (Some('*'), _) => {
                star = Some((p, t));
                p = p.saturating_add(1);
            }
            (Some(c), Some(have)) if *c == '?' || c == have => {
                p = p.saturating_add(1);
                t = t.saturating_add(1);
            }
            (None, None) => return true,
            _ => match star {
                Some((at, from)) if from < text.len() => {
                    star = Some((at, from.saturating_add(1)));
                    (p, t) = (at.saturating_add(1), from.saturating_add(1));
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn stars_and_question_marks() {
        assert!(glob("System.*", "System.String") && glob("*", "") && glob("", "") && glob("a*b*c", "aXbYbc"));
        assert!(glob("Lab.?air<*>", "Lab.Pair<System.Int32>") && glob("*.List<*>", "System.List<Ä>") && glob("?", "Ω"));
        assert!(!glob("System.*", "system.String") && !glob("a?", "a") && !glob("*a", "ab") && !glob("", "x"));
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = "*a".repeat(200);
        let text = "a".repeat(5000) + "b";
        assert!(!glob(&pattern, &text));
    }
}
