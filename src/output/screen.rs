//! The destination that displays an answer: a terminal with width, height and colors, or a pipe or file without them.

use std::borrow::Cow;
use std::fmt::{self, Display};

use anstyle::{AnsiColor, Style};

use super::sanitize;
use super::width::wrap;

/// Minimum width of an answer in columns: a narrower terminal wraps the lines itself.
const MIN_WIDTH: usize = 40;
/// Indentation of continuation lines in columns.
const HANGING: usize = 2;
/// Default width of a terminal in columns.
const USUAL_WIDTH: usize = 80;

/// Properties of the destination of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Whether the destination is a terminal.
    pub terminal: bool,
    /// Maximum line width in columns; `None` if unlimited.
    pub width: Option<usize>,
    /// Height in lines; `None` if unknown.
    pub height: Option<usize>,
    /// Whether a pager shows the output. Titles are not repeated, because users can scroll back in a pager.
    pub pager: bool,
    /// Whether text is colored.
    pub color: bool,
}

impl Screen {
    /// A pipe or a file: lines of any length, no colors.
    pub const NONE: Screen = Screen { terminal: false, width: None, height: None, pager: false, color: false };

    /// A terminal of this many columns and lines, without colors.
    pub fn terminal(width: Option<usize>, height: Option<usize>) -> Screen {
        Screen { terminal: true, width: Some(width.unwrap_or(USUAL_WIDTH).max(MIN_WIDTH)), height, pager: false, color: false }
    }

    /// Returns this screen with or without colors.
    #[must_use]
    pub fn colored(self, color: bool) -> Screen {
        Screen { color, ..self }
    }

    /// Returns this screen with unlimited line width.
    #[must_use]
    pub fn wide(self) -> Screen {
        Screen { width: None, ..self }
    }

    /// Returns this screen in a pager.
    #[must_use]
    pub fn paged(self) -> Screen {
        Screen { pager: true, ..self }
    }

    /// Whether text from a dump must be escaped: a terminal shows the text or, if the output is colored, will probably show it later.
    pub fn interprets(&self) -> bool {
        self.terminal || self.color
    }

    /// Returns `text` escaped and wrapped with a hanging indent, for text outside of an answer.
    pub fn lines<'t>(&self, text: &'t str) -> Vec<Cow<'t, str>> {
        let text = if self.interprets() { sanitize(text) } else { text.into() };
        let Some(width) = self.width else { return vec![text] };
        match text {
            Cow::Borrowed(text) => wrap(text, width, HANGING, usize::MAX),
            Cow::Owned(text) => wrap(&text, width, HANGING, usize::MAX).into_iter().map(|line| line.into_owned().into()).collect(),
        }
    }

    /// Formats `text` as a warning, in color if the screen has colors.
    pub fn warning<'t>(&self, text: &'t str) -> impl Display + 't {
        self.paint(Ink::Alarm, text)
    }

    /// Formats a remark, which is less important than other text.
    pub fn remark<'t>(&self, text: &'t str) -> impl Display + 't {
        self.paint(Ink::Faint, text)
    }

    /// Formats `text` in `ink` if the screen has colors.
    pub(super) fn paint<T: Display>(&self, ink: Ink, text: T) -> Painted<T> {
        Painted { style: self.color.then(|| ink.style()).flatten(), text }
    }
}

/// The role of a piece of text, which determines its color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ink {
    #[default]
    Plain,
    Heading,
    Address,
    Size,
    Bar,
    /// Free space.
    Hole,
    /// Pinned objects.
    Pin,
    /// Garbage.
    Waste,
    /// Unknown values, remarks.
    Faint,
    Alarm,
    /// Warnings.
    Caution,
}

impl Ink {
    /// Every ink, the first for text without a color.
    const ALL: [Ink; 11] = [
        Ink::Plain,
        Ink::Heading,
        Ink::Address,
        Ink::Size,
        Ink::Bar,
        Ink::Hole,
        Ink::Pin,
        Ink::Waste,
        Ink::Faint,
        Ink::Alarm,
        Ink::Caution,
    ];

    /// The mark of the first ink. Marks have no width, and text contains no marks, because `sanitize` escapes them.
    const FIRST_MARK: u32 = 0x2060;

    /// Returns the character that marks the following text as having this ink.
    pub(super) fn mark(self) -> char {
        (Ink::FIRST_MARK..).zip(Ink::ALL).find(|(_, ink)| *ink == self).and_then(|(mark, _)| char::from_u32(mark)).unwrap_or_default()
    }

    /// Returns the ink of the text after `mark`, if it is a mark.
    pub(super) fn of_mark(mark: char) -> Option<Ink> {
        let index = u32::from(mark).checked_sub(Ink::FIRST_MARK)?;
        Ink::ALL.get(usize::try_from(index).ok()?).copied()
    }

    fn style(self) -> Option<Style> {
        let color = |color: AnsiColor| color.on_default();
        Some(match self {
            Ink::Plain => return None,
            Ink::Heading => Style::new().bold(),
            Ink::Address => color(AnsiColor::Cyan),
            Ink::Size => color(AnsiColor::Green),
            Ink::Bar => color(AnsiColor::Blue),
            Ink::Hole => color(AnsiColor::Yellow),
            Ink::Pin => color(AnsiColor::Magenta),
            Ink::Waste => color(AnsiColor::Red),
            Ink::Faint => Style::new().dimmed(),
            Ink::Alarm => color(AnsiColor::Red).bold(),
            Ink::Caution => color(AnsiColor::Yellow).bold(),
        })
    }
}

/// Text that is printed between the escape sequences of its style.
pub(super) struct Painted<T> {
    style: Option<Style>,
    text: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            None => self.text.fmt(f),
            Some(style) => write!(f, "{style}{}{style:#}", self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::is_hostile;
    use crate::output::width::width;

    #[test]
    fn marks_have_no_width_and_do_not_occur_in_text() {
        for ink in Ink::ALL {
            assert_eq!((Ink::of_mark(ink.mark()), width(&ink.mark().to_string())), (Some(ink), 0));
            assert!(is_hostile(ink.mark()));
        }
        assert_eq!([Ink::of_mark('a'), Ink::of_mark('数'), Ink::of_mark('\u{206b}')], [None; 3]);
    }
}
