//! A buffer for JSON.

use std::io;

/// Longest string that is copied in pieces.
const SHORT: usize = 64;

/// A buffer for the many short strings that serde_json writes one by one.
///
/// With musl, as in the published binaries, calls of `memcpy` took 28 % of the time of `objects --format ndjson`. Copies of a constant length need no
/// call. The `memcpy` of other C libraries is faster than such pieces.
pub(super) struct ShortStrings<'v>(pub(super) &'v mut Vec<u8>);

impl ShortStrings<'_> {
    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        if !cfg!(target_env = "musl") || bytes.len() > SHORT {
            return self.0.extend_from_slice(bytes);
        }
        self.push_pieces(bytes);
    }

    #[inline]
    fn push_pieces(&mut self, mut bytes: &[u8]) {
        self.0.reserve(bytes.len());
        while let Some((piece, rest)) = bytes.split_first_chunk::<8>() {
            self.0.extend_from_slice(piece);
            bytes = rest;
        }
        if let Some((piece, rest)) = bytes.split_first_chunk::<4>() {
            self.0.extend_from_slice(piece);
            bytes = rest;
        }
        if let Some((piece, rest)) = bytes.split_first_chunk::<2>() {
            self.0.extend_from_slice(piece);
            bytes = rest;
        }
        self.0.extend(bytes.first());
    }
}

impl io::Write for ShortStrings<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.push(bytes);
        Ok(())
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_all_lengths_are_copied() {
        let text: Vec<u8> = (0..=99).collect();
        for n in 0..text.len() {
            let (mut whole, mut pieces) = (b"x".to_vec(), b"x".to_vec());
            ShortStrings(&mut whole).push(&text[..n]);
            ShortStrings(&mut pieces).push_pieces(&text[..n]);
            assert_eq!((&whole[1..], &pieces[1..]), (&text[..n], &text[..n]));
        }
    }
}
