//! Paths as the dumped process recorded them, from either kind of system.

/// The last component of `path`. Both kinds of slash separate components on every host: a Windows dump may be read on Linux.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
