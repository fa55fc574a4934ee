//! Arguments of `locks`.

/// Options of [`locks`](super::locks).
#[derive(Clone, Debug, Default)]
pub struct LocksQuery {
    /// Whether to include locks that have neither an owner nor waiters.
    pub all: bool,
}
