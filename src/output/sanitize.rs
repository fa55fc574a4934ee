//! Escapes untrusted text: text from a dump must not move the cursor or reorder what is displayed.

use std::borrow::Cow;

/// Maximum characters printed per text on a terminal.
const MAX_CHARS: usize = 4096;

/// Escapes control, bidirectional and invisible characters for terminals.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let harmless = |c: char| !is_hostile(c);
    if text.chars().all(harmless) && text.len() <= MAX_CHARS {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().min(MAX_CHARS));
    for (i, c) in text.chars().enumerate() {
        if i >= MAX_CHARS {
            out.push('…');
            break;
        }
        if is_hostile(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Whether a character moves the cursor, reorders text, or is invisible.
pub(crate) fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_moves_and_reordering_are_escaped() {
        assert_eq!(sanitize("Lab.Node"), "Lab.Node");
        assert_eq!(sanitize("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(sanitize("x\u{202e}y\u{200b}"), "x\\u{202e}y\\u{200b}");
        assert_eq!(sanitize("Größe 数"), "Größe 数");
    }
}
