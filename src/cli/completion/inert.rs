//! Names that may be offered as candidates.

use unicode_width::UnicodeWidthChar;

use crate::output::is_hostile;

/// Length of the longest candidate in bytes.
const LONGEST: usize = 1024;

/// Whether a name may be offered: it is short, all its characters have a width on the screen, and it does not affect the terminal. Names from dumps
/// or file systems that could be options are excluded as well.
pub(in crate::cli) fn is_offered(name: &str) -> bool {
    is_inert(name) && !name.starts_with('-')
}

/// Whether a name is short, all its characters have a width on the screen, and it does not affect the terminal.
pub(super) fn is_inert(name: &str) -> bool {
    let seen = |c: char| c == ' ' || !(is_hostile(c) || c.is_whitespace() || c.width().is_none_or(|width| width == 0));
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_hidden_and_option_like_names_are_not_offered() {
        for name in ["Lab.Node", "List`1[]", "A<B, C>", "a;b", "it's", "Größe", "数", "~x", "$(x)", " a "] {
            assert!(is_offered(name), "{name:?}");
        }
        let long = "x".repeat(LONGEST + 1);
        for name in ["", "-x", "--output=y", "a\nb", "a\tb", "a\u{1b}[2J", "a\u{9b}b", "\u{202e}x", "a\u{200b}", "\u{2028}", "a\0", &long] {
            assert!(!is_offered(name), "{name:?}");
        }
        for name in ["a\u{e0041}b", "a\u{fe0f}", "a\u{a0}b", "a\u{3000}b", "a\u{2066}b", "a\u{7f}"] {
            assert!(!is_offered(name), "{name:?}");
        }
    }
}
