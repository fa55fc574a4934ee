//! Samples of a file: pieces at even distances.

/// Offsets of `pieces` pieces of `piece` bytes in a file of `len` bytes: the first piece is at the start, the last at the end. Pieces of a
/// short file overlap.
pub(crate) fn at_even_distances(len: u64, piece: u64, pieces: u64) -> impl Iterator<Item = u64> {
    let last = u128::from(len.saturating_sub(piece));
    let gaps = u128::from(pieces.saturating_sub(1).max(1));
    // The quotient is at most `last`, which fits 64 bits.
    (0..pieces).map(move |n| u64::try_from(last.saturating_mul(n.into()) / gaps).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::at_even_distances;

    #[test]
    fn the_first_and_the_last_piece_are_at_the_ends() {
        assert_eq!(at_even_distances(100, 10, 4).collect::<Vec<_>>(), [0, 30, 60, 90]);
        assert_eq!(at_even_distances(12, 10, 3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(at_even_distances(5, 10, 2).collect::<Vec<_>>(), [0, 0]);
        assert_eq!(at_even_distances(u64::MAX, 1, 3).collect::<Vec<_>>(), [0, u64::MAX / 2, u64::MAX - 1]);
        assert_eq!(at_even_distances(9, 1, 1).collect::<Vec<_>>(), [0]);
    }
}
