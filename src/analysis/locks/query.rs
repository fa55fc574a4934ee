//! Arguments of `locks`.

/// Options of [`locks`](super::locks).
#[derive(Clone, Debug, Default)]
pub struct LocksQuery {
    /// Whether to include locks without an owner and waiters.
    pub all: bool,
}
