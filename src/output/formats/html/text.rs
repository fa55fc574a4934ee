//! Texts in a page.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::output::sanitize;

/// Most characters of a text. Names of types have thousands in the worst case.
const LONGEST: usize = 400;

/// A text that cannot end what it stands in, whether that is an element or an attribute in double quotes.
pub(super) struct Escaped<'t>(pub(super) &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// `text` without what a browser does not show or reorders, lines kept apart, and no longer than people read.
pub(super) fn short(text: &str) -> Cow<'_, str> {
    let clean: Cow<'_, str> = match text.contains('\n') {
        // Lines of a cell.
        true => text.split('\n').map(|line| sanitize(line).into_owned()).collect::<Vec<_>>().join("\n").into(),
        false => sanitize(text),
    };
    match clean.char_indices().nth(LONGEST) {
        None => clean,
        Some((end, _)) => format!("{}…", clean.get(..end).unwrap_or_default()).into(),
    }
}

/// A share for CSS.
pub(super) fn percent(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    format!("{:.2}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_texts() {
        let hostile = "</script><img src=x onerror=\"alert('x')\">&amp;";
        let escaped = Escaped(hostile).to_string();
        assert!(!escaped.contains(['<', '>', '"', '\'']), "{escaped}");
        assert_eq!(escaped.matches('&').count(), 9, "{escaped}");
        assert_eq!(short("a\u{202e}b\nc\u{1b}"), "a\\u{202e}b\nc\\u{1b}");
        assert_eq!(short(&"é".repeat(LONGEST)).chars().count(), LONGEST);
        assert_eq!(short(&"é".repeat(LONGEST + 1)).chars().count(), LONGEST + 1, "with an ellipsis");
    }

    #[test]
    fn shares_are_within_bounds() {
        assert_eq!([percent(0.5), percent(f64::NAN), percent(7.0), percent(-1.0)], ["50.00%", "0.00%", "100.00%", "0.00%"]);
    }
}
