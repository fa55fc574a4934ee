//! Rows as JSON: the same text that `serde_json::to_writer` writes, in fewer and shorter copies.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

/// Appends `row` to `to` as compact JSON.
///
/// # Errors
/// Serialization errors.
pub(super) fn write<T: Serialize>(row: &T, to: &mut Vec<u8>) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(ShortStrings(to), Lines::default());
    Ok(row.serialize(&mut serializer)?)
}

/// Compact JSON. Writes the punctuation around a key in one piece, where [`serde_json::ser::CompactFormatter`] writes the comma, the quotes and the
/// colon one by one: half of all writes of a list such as `objects`, whose rows are mostly keys.
#[derive(Default)]
struct Lines {
    in_key: bool,
}

impl Formatter for Lines {
    #[inline]
    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.in_key = true;
        to.write_all(if first { b"\"" } else { b",\"" })
    }

    #[inline]
    fn begin_string<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        if self.in_key { Ok(()) } else { to.write_all(b"\"") }
    }

    #[inline]
    fn end_string<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        if self.in_key { Ok(()) } else { to.write_all(b"\"") }
    }

    #[inline]
    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.in_key = false;
        to.write_all(b"\":")
    }
}

/// Longest string that is copied in pieces.
const SHORT: usize = 64;

/// A buffer for the many short strings that serde_json writes one by one.
///
/// With musl, as in the published binaries, calls of `memcpy` took 28 % of the time of `objects --format ndjson`. Copies of a constant length need no
/// call. The `memcpy` of other C libraries is faster than such pieces.
struct ShortStrings<'v>(&'v mut Vec<u8>);

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
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_text_is_that_of_serde_json() {
        #[derive(Serialize)]
        struct Inner {
            by_number: BTreeMap<u32, Option<bool>>,
            empty: BTreeMap<String, u8>,
            list: Vec<String>,
        }
        #[derive(Serialize)]
        struct Row {
            name: &'static str,
            number: f64,
            nothing: Option<u64>,
            #[serde(flatten)]
            inner: Inner,
            nested: BTreeMap<&'static str, Vec<BTreeMap<char, ()>>>,
        }
        let inner =
            Inner { by_number: [(3, None), (4, Some(true))].into(), empty: BTreeMap::new(), list: vec!["a\"b\\\n".into(), "ä".into()] };
        let nested = [("q\"", vec![BTreeMap::new(), [('x', ()), ('"', ())].into()]), ("r", Vec::new())].into();
        let row = Row { name: "List<\"x\">", number: 1.5, nothing: None, inner, nested };
        let mut text = Vec::new();
        write(&row, &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), serde_json::to_string(&row).unwrap());
    }

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
