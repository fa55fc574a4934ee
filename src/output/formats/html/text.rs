//! Text in a page.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::output::sanitize;

/// Maximum characters of a text. Type names can have thousands.
const LONGEST: usize = 400;

/// Text escaped so that it cannot end the surrounding element or double-quoted attribute.
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

/// Shortens `text`, and escapes characters that a browser hides or reorders. Line breaks are kept.
pub(super) fn short(text: &str) -> Cow<'_, str> {
    let clean: Cow<'_, str> = match text.contains('\n') {
        // A cell may have several lines, whose line breaks are kept.
        true => text.split('\n').map(|line| sanitize(line).into_owned()).collect::<Vec<_>>().join("\n").into(),
        false => sanitize(text),
    };
    match clean.char_indices().nth(LONGEST) {
        None => clean,
        Some((end, _)) => format!("{}…", clean.get(..end).unwrap_or_default()).into(),
    }
}

/// Formats a share for CSS.
pub(super) fn percent(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    format!("{:.2}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
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
