//! Signatures that identify the same suspect in several dumps.

use crate::analysis::Suspect;

/// Returns a hash of a suspect's kind, the kind and label of its first root, its type, and the types of the accumulating container and of its
/// largest content. Parts that differ between processes are left out, so a leak has the same signature in every dump.
pub fn signature(suspect: &Suspect) -> String {
    let root = suspect.roots.first();
    let parts = [
        suspect.kind.name(),
        root.map_or("", |r| r.kind.name()),
        &root.map_or_else(String::new, |r| lasting(&r.label)),
        &suspect.type_name,
        suspect.accumulation.as_ref().map_or("", |a| &a.type_name),
        suspect.content().map_or("", |(name, ..)| name),
    ];
    let mut hash = blake3::Hasher::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update(&[0]);
    }
    hash.finalize().to_hex().chars().take(16).collect()
}

/// Replaces addresses, offsets and thread numbers in a label, so that `Main() thread 3 [rbp-0x48]` becomes `Main() thread # [rbp-#]`.
fn lasting(label: &str) -> String {
    let mut out = String::with_capacity(label.len());
    let mut rest = label;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        // Digits in names are kept, because `Cache2` is not `Cache3`.
        let digits = rest.chars().take_while(|c| c.is_ascii_alphanumeric()).count();
        let (word, behind) = rest.split_at_checked(digits).unwrap_or((rest, ""));
        let number = word.starts_with(|c: char| c.is_ascii_digit()) && !before.is_alphanumeric() && !"_.`+<>|".contains(before);
        if number {
            out.push('#');
            (before, rest) = ('#', behind);
            continue;
        }
        let taken = if word.is_empty() { c.len_utf8() } else { word.len() };
        let (word, behind) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        out.push_str(word);
        before = word.chars().next_back().unwrap_or(' ');
        rest = behind;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_lose_what_differs_between_processes() {
        assert_eq!(lasting("Lab.Program.Main() thread 3 [rbp-0x48]"), "Lab.Program.Main() thread # [rbp-#]");
        assert_eq!(lasting("static Lab.Cache2.<>c.<>9__0_1"), "static Lab.Cache2.<>c.<>9__0_1");
        assert_eq!(lasting("stack 0x7ffe12 of thread 12, größe"), "stack # of thread #, größe");
        assert_eq!(lasting("strong handle"), "strong handle");
    }
}
