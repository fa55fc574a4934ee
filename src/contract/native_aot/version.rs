//! The version of the runtime that a NativeAOT program was built with, from the attributes of its libraries in the image.

use crate::base::{Addr, AddrRange, len64};
use crate::memory::{Image, Memory};

/// Number of digits of a commit hash.
const COMMIT: usize = 40;
/// Maximum length of a version.
const MAX_VERSION: usize = 32;

/// The version from an informational version (`9.0.20+3879076d…`), if a file version (`9.0.2026.41315`) confirms it. The program's own libraries may
/// have an informational version too, but only the libraries of .NET have both.
pub(in crate::contract) fn version(memory: &Memory, image: &Image) -> Option<String> {
    let mut candidates: Vec<(String, AddrRange)> = Vec::new();
    for (start, bytes) in text(memory, image) {
        for plus in memchr::memchr_iter(b'+', bytes) {
            let (before, after) = bytes.split_at_checked(plus)?;
            let hash = after.get(1..).and_then(|b| b.get(..COMMIT));
            if !hash.is_some_and(|h| h.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b))) {
                continue;
            }
            let starts =
                before.iter().rev().take(MAX_VERSION).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-')).count();
            let found = before.get(before.len().saturating_sub(starts)..).and_then(|b| std::str::from_utf8(b).ok())?;
            // The length prefix before the text may look like a character of the version, so skip everything before the first digit.
            let found = found.trim_start_matches(|c: char| !c.is_ascii_digit());
            if found.contains('.') && !candidates.iter().any(|(c, _)| c == found) {
                let from = start.plus(len64(plus.saturating_sub(found.len())));
                candidates
                    .push((found.to_string(), AddrRange::new(from, start.plus(len64(plus.saturating_add(1).saturating_add(COMMIT))))));
            }
        }
    }
    candidates.into_iter().find_map(|(version, place)| {
        let plain = version.split('-').next().unwrap_or(&version);
        let file_version = text(memory, image).find_map(|(start, bytes)| {
            let mut places = memchr::memmem::find_iter(bytes, plain.as_bytes());
            let at = places.find(|at| {
                // The text continues with a month of two digits, a period, and the revision.
                let rest = bytes.get(at.saturating_add(plain.len())..).and_then(|b| b.get(..8)).unwrap_or_default();
                let digits = |b: &[u8]| !b.is_empty() && b.iter().all(u8::is_ascii_digit);
                matches!(rest.split_at_checked(2), Some((month, [b'.', revision @ ..])) if digits(month) && digits(revision))
            })?;
            let from = start.plus(len64(at));
            Some(AddrRange::of(from, len64(plain.len()).saturating_add(8)))
        })?;
        // Only these two ranges are recorded as read, because a trimmed dump does not need the rest of the searched memory.
        [place, file_version].into_iter().for_each(|range| memory.touch(range));
        Some(version)
    })
}

/// The read-only parts of the image, within the budget for opening a dump.
fn text<'m>(memory: &'m Memory, image: &'m Image) -> impl Iterator<Item = (Addr, &'m [u8])> {
    let end = image.writable.iter().map(|r| r.start).min().unwrap_or(image.range.end);
    let range = AddrRange::new(image.range.start, end);
    memory.stretches(range).take_while(|(_, bytes)| memory.afford_bytes(len64(bytes.len())))
}
