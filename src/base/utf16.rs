//! Text from UTF-16 code units.
//!
//! .NET strings may contain lone surrogates, which UTF-8 cannot represent. JSON could escape such a surrogate as `\ud800`, but `jq` 1.6, `serde_json`
//! and many other readers then reject the whole document. So in all formats the text contains these six characters: values that differ in a
//! surrogate differ as text. The length in code units distinguishes a string that contains the six characters literally.

/// The text of `units`. A lone surrogate becomes six characters: a backslash, `u` and its four hexadecimal digits.
pub(crate) fn utf16(units: impl IntoIterator<Item = u16>) -> String {
    let mut out = String::new();
    for part in char::decode_utf16(units) {
        match part {
            Ok(c) => out.push(c),
            Err(lone) => out.push_str(&escaped_unit(lone.unpaired_surrogate())),
        }
    }
    out
}

/// The six characters that represent a lone surrogate.
pub(crate) fn escaped_unit(unit: u16) -> String {
    format!("\\u{unit:04x}")
}

/// If `is_cut`, removes a high surrogate from the end of `units`: the low surrogate of the pair was cut off.
pub(crate) fn drop_split_pair(units: &mut Vec<u16>, is_cut: bool) {
    units.pop_if(|last| is_cut && (0xd800..0xdc00).contains(last));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_escaped_and_pairs_are_not() {
        assert_eq!(utf16("a😀é".encode_utf16()), "a😀é");
        assert_eq!(utf16([0x41, 0xd83d, 0x42]), "A\\ud83dB");
        assert_eq!(utf16([0xde00, 0xd83d]), "\\ude00\\ud83d");
        assert_eq!(utf16([0xfffd]), "\u{fffd}");
    }

    #[test]
    fn a_cut_does_not_split_a_pair() {
        let cut = |most: usize, is_cut: bool| {
            let mut units: Vec<u16> = "a😀b".encode_utf16().take(most).collect();
            drop_split_pair(&mut units, is_cut);
            utf16(units)
        };
        assert_eq!((cut(2, true).as_str(), cut(3, true).as_str()), ("a", "a😀"));
        // A complete string may end in a lone surrogate.
        assert_eq!(cut(2, false), "a\\ud83d");
    }
}
