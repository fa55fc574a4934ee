//! How text is shortened if the screen is too narrow.

use std::borrow::Cow;

use super::shorten::{longest, shorten, shorter};
use super::width::{cut, cut_middle, wrap};

/// How the cells of a column are shortened if the screen is too narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Not at all: numbers, addresses, words of a fixed set.
    Whole,
    /// With shorter forms of names of types and methods: see `shorten`.
    Name,
    /// By omitting the middle: paths.
    Path,
    /// By omitting the end.
    Text,
    /// Wrapped to at most this many lines, then by omitting the end.
    Lines(u8),
    /// Text that contains a type or method name: wrapped to at most this many lines, then as in `shorten`.
    NameLines(u8),
    /// Wrapped anywhere to any number of lines: maps.
    Cells,
}

impl Fit {
    /// Returns `text` in lines of at most `columns`.
    pub(super) fn lines(self, text: &str, columns: usize) -> Vec<Cow<'_, str>> {
        let short = match self {
            Fit::Whole => return vec![text.into()],
            Fit::Name => return vec![shorten(text, columns)],
            Fit::Path => return vec![cut_middle(text, columns)],
            Fit::Text => return vec![cut(text, columns)],
            Fit::Cells => return wrap(text, columns, 0, usize::MAX),
            // Text that begins with an address is the address and the type of an object.
            Fit::Lines(_) if text.starts_with("0x") => shorter(text, columns),
            Fit::Lines(most) => return wrap(text, columns, 0, usize::from(most)),
            Fit::NameLines(most) => longest(text, |form| wrap(form, columns, 0, usize::MAX).len() <= usize::from(most)),
        };
        let (Fit::Lines(most) | Fit::NameLines(most)) = self else { return vec![short] };
        wrap(&short, columns, 0, usize::from(most)).into_iter().map(|line| Cow::Owned(line.into_owned())).collect()
    }
}
