//! Bits with names.

/// Names of the bits of `flags` that `table` knows, in its order; the others together as `0x…`.
pub fn flag_names(table: &[(u64, &str)], flags: u64) -> Vec<String> {
    let mut names: Vec<String> = table.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, n)| (*n).to_string()).collect();
    let known = table.iter().fold(0, |all, (bit, _)| all | bit);
    if flags & !known != 0 {
        names.push(format!("{:#x}", flags & !known));
    }
    names
}
