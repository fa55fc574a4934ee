//! Paths that the dumped process recorded, of Windows and Unix.

/// The last component of `path`. `/` and `\` separate components on every host, because a Windows dump may be read on Linux.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
