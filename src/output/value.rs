//! Conversions of values, which are fields of reports or computed from them, to what cells contain.

use std::borrow::Cow;

use crate::base::{Addr, Name};

/// A number, or one that may be absent, in a column of numbers of type `N`.
pub trait Number<N> {
    /// The number; `None` if it is absent.
    fn number(self) -> Option<N>;
}

/// Implements [`Number`] for the types of fields.
macro_rules! numbers {
    ($($number:ty: $($from:ty),+;)+) => {$($(
        impl Number<$number> for $from {
            fn number(self) -> Option<$number> {
                <$number>::try_from(self).ok()
            }
        }
    )+)+};
}

numbers! {
    u64: u64, u32, u16, usize;
    i64: i64;
    f64: f64;
    Addr: Addr;
}

impl<N, V: Number<N>> Number<N> for Option<V> {
    fn number(self) -> Option<N> {
        self.and_then(V::number)
    }
}

/// Text, or text that may be absent; borrowed from a row if possible.
pub trait Text<'a> {
    /// The text; `None` if it is absent.
    fn text(self) -> Option<Cow<'a, str>>;
}

impl<'a> Text<'a> for &'a str {
    fn text(self) -> Option<Cow<'a, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl<'a> Text<'a> for &'a &str {
    fn text(self) -> Option<Cow<'a, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl<'a> Text<'a> for &'a String {
    fn text(self) -> Option<Cow<'a, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl<'a> Text<'a> for &'a Cow<'_, str> {
    fn text(self) -> Option<Cow<'a, str>> {
        Some(Cow::Borrowed(self))
    }
}

/// The exact form of a name.
impl<'a> Text<'a> for &'a Name {
    fn text(self) -> Option<Cow<'a, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl Text<'_> for String {
    fn text(self) -> Option<Cow<'static, str>> {
        Some(Cow::Owned(self))
    }
}

impl<'a, V: Text<'a>> Text<'a> for Option<V> {
    fn text(self) -> Option<Cow<'a, str>> {
        self.and_then(V::text)
    }
}

impl<'a, V> Text<'a> for &'a Option<V>
where
    &'a V: Text<'a>,
{
    fn text(self) -> Option<Cow<'a, str>> {
        self.as_ref().text()
    }
}

/// The name of a type or method, or one that may be absent.
pub trait Named<'a> {
    /// The name; `None` if it is absent.
    fn named(self) -> Option<&'a Name>;
}

impl<'a> Named<'a> for &'a Name {
    fn named(self) -> Option<&'a Name> {
        Some(self)
    }
}

impl<'a> Named<'a> for &'a Option<Name> {
    fn named(self) -> Option<&'a Name> {
        self.as_ref()
    }
}

impl<'a> Named<'a> for Option<&'a Name> {
    fn named(self) -> Option<&'a Name> {
        self
    }
}
