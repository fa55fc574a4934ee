//! Values that answers show as words.

use std::borrow::Cow;

use super::Token;

/// A value that is shown as a word of a fixed set or as a short number: a `named_enum!`, a flag, a token.
pub trait Word {
    /// The word, as in JSON; `None` for a value that is absent.
    fn word(self) -> Option<Cow<'static, str>>;
}

impl<W: Word> Word for Option<W> {
    fn word(self) -> Option<Cow<'static, str>> {
        self.and_then(W::word)
    }
}

impl Word for &'static str {
    fn word(self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl Word for bool {
    fn word(self) -> Option<Cow<'static, str>> {
        (if self { "true" } else { "false" }).word()
    }
}

impl Word for i32 {
    fn word(self) -> Option<Cow<'static, str>> {
        Some(Cow::Owned(self.to_string()))
    }
}

impl Word for Token {
    fn word(self) -> Option<Cow<'static, str>> {
        Some(Cow::Owned(self.to_string()))
    }
}
