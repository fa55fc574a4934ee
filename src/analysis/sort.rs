//! Sort orders of lists: amounts are in descending order and everything else in ascending order, unless `:asc` or `:desc` is given. Unknown values
//! come last. Equal rows keep their original order.

use std::cmp::Reverse;
use std::fmt::Display;

use crate::base::{Addr, len64};
use crate::model::{Order, SortDirection};
use crate::session::Error;

/// Sort key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key<'r> {
    /// Sorts larger values first.
    Most(Reverse<u64>),
    /// Sorts smaller values first: addresses, ids, times.
    Least(i128),
    Text(&'r str),
}

impl<'r> Key<'r> {
    /// Returns a key that sorts larger values first.
    pub(super) fn most(amount: impl Into<Option<u64>>) -> Option<Key<'r>> {
        amount.into().map(|n| Key::Most(Reverse(n)))
    }

    /// Returns a key that sorts smaller values first.
    pub(super) fn least(number: Option<impl Into<i128>>) -> Option<Key<'r>> {
        number.map(|n| Key::Least(n.into()))
    }

    pub(super) fn at(address: impl Into<Option<Addr>>) -> Option<Key<'r>> {
        address.into().map(|a| Key::Least(a.0.into()))
    }

    pub(super) fn text(text: impl Into<Option<&'r str>>) -> Option<Key<'r>> {
        text.into().map(Key::Text)
    }

    /// Returns a key for the position of `value` in `all`.
    pub(super) fn place<T: PartialEq>(all: &[T], value: &T) -> Option<Key<'r>> {
        all.iter().position(|v| v == value).map(|i| Key::Least(len64(i).into()))
    }
}

/// Sorts `rows` by their keys. Without `direction`, uses the usual direction of the key.
pub(super) fn sort<T>(rows: &mut [T], direction: Option<SortDirection>, key: impl for<'r> Fn(&'r T) -> Option<Key<'r>>) {
    rows.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        let usual = if matches!(a, Some(Key::Most(_))) { SortDirection::Descending } else { SortDirection::Ascending };
        let found = if direction.is_none_or(|asked| asked == usual) { a.cmp(&b) } else { b.cmp(&a) };
        a.is_none().cmp(&b.is_none()).then(found)
    });
}

/// Checks that a list can be sorted by the given order.
///
/// # Errors
/// [`Error::Query`] if it cannot; the message names the columns in `has`.
pub(super) fn check<S: Display + PartialEq>(order: Option<&Order<S>>, has: &[S], what: &str) -> Result<(), Error> {
    match order.map(|order| &order.by).filter(|by| !has.contains(by)) {
        None => Ok(()),
        Some(by) => {
            let names: Vec<String> = has.iter().map(ToString::to_string).collect();
            Err(Error::Query(format!("cannot sort by {by}: {what} can be sorted by {}", names.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_descend_all_else_ascends_and_the_unknown_is_last() {
        let mut rows = [(Some(2u64), "b"), (None, "a"), (Some(9), "c"), (Some(2), "a")];
        sort(&mut rows, None, |r| Key::most(r.0));
        assert_eq!(rows, [(Some(9), "c"), (Some(2), "b"), (Some(2), "a"), (None, "a")]);
        sort(&mut rows, None, |r| Key::text(r.1));
        assert_eq!(rows.map(|r| r.1), ["a", "a", "b", "c"]);
        assert_eq!((rows[0].0, rows[1].0), (Some(2), None), "of equals, the first stays first");
        sort(&mut rows, None, |r| Key::least(r.0));
        assert_eq!(rows.map(|r| r.0), [Some(2), Some(2), Some(9), None]);
        sort(&mut rows, Some(SortDirection::Descending), |r| Key::least(r.0));
        assert_eq!(rows.map(|r| r.0), [Some(9), Some(2), Some(2), None]);
        sort(&mut rows, Some(SortDirection::Ascending), |r| Key::most(r.0));
        assert_eq!(rows.map(|r| r.0), [Some(2), Some(2), Some(9), None]);
        let refused = check(Some(&"x".into()), &["a", "b"], "this").unwrap_err().to_string();
        assert!(refused.contains("cannot sort by x: this can be sorted by a, b"), "{refused}");
        assert!(check(Some(&"a".into()), &["a"], "this").is_ok() && check::<&str>(None, &[], "this").is_ok());
    }
}
