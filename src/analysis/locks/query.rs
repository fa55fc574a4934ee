//! Arguments of `locks`.

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct LocksQuery {
    /// Also locks that nobody holds or waits for.
    pub all: bool,
}
