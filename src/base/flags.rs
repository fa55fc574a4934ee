//! Names of flag bits.

/// The names of the bits set in `flags`, in the order of `table`, followed by all unknown bits as a single `0x…`.
pub(crate) fn flag_names(table: &[(u64, &str)], flags: u64) -> Vec<String> {
    let mut names: Vec<String> = table.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, n)| (*n).to_string()).collect();
    let known = table.iter().fold(0, |all, (bit, _)| all | bit);
    if flags & !known != 0 {
        names.push(format!("{:#x}", flags & !known));
    }
    names
}
