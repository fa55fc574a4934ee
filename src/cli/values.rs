//! Values on the command line: addresses, types, numbers of rows.

use crate::base::Addr;
use crate::session::TypePattern;

/// Parses a number of rows.
pub(super) fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a number, 0 for all".to_string())
}

/// Parses a type name, pattern, or method table address: `0x…`, or eight or more hexadecimal digits, as debuggers print it.
pub(super) fn type_pattern(text: &str) -> Result<TypePattern, String> {
    const BARE: usize = 8;
    let bare = || text.len() >= BARE && text.bytes().any(|b| b.is_ascii_digit()) && address(text).is_ok();
    // A list of types may contain addresses.
    let is_address = || text.starts_with("0x") || text.starts_with("0X") || bare();
    if !text.contains(',') && is_address() {
        return address(text).map(TypePattern::MethodTable);
    }
    if text.is_empty() { Err("expected a type name".into()) } else { TypePattern::named(text) }
}

/// Parses a hexadecimal address; the `0x` prefix and WinDbg's backtick separator are optional. WinDbg's prefix `0n` begins a decimal address.
pub(super) fn address(text: &str) -> Result<Addr, String> {
    if let Some(digits) = text.strip_prefix("0n").or_else(|| text.strip_prefix("0N")) {
        let decimal = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
        return decimal.map(Addr).ok_or_else(|| format!("'{text}' is not an address (0n begins a decimal number)"));
    }
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text).replace('`', "");
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let value = if plain { u64::from_str_radix(&digits, 16).ok() } else { None };
    value.map(Addr).ok_or_else(|| format!("'{text}' is not an address (expected hex, such as 0x7f31535a25f8)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_types_are_parsed() {
        assert_eq!((address("0x1F"), address("7f31`535a25f8")), (Ok(Addr(31)), Ok(Addr(0x7f31_535a_25f8))));
        assert_eq!(address("0n139850271549384"), Ok(Addr(0x7f31_6dc1_e7c8)));
        assert!(address("0n").is_err() && address("0x1n").is_err() && address("0n1f").is_err() && address("0n-1").is_err());
        assert!(address("").is_err() && address("0x").is_err() && address("+1").is_err() && address("xyz").is_err());
        assert_eq!(type_pattern("0x10"), Ok(TypePattern::MethodTable(Addr(16))));
        assert_eq!(type_pattern("00007f31`535a25f8"), Ok(TypePattern::MethodTable(Addr(0x7f31_535a_25f8))));
        assert_eq!(type_pattern("Deadbeef"), Ok(TypePattern::Name("Deadbeef".into())));
        assert_eq!(type_pattern("Lab.*"), Ok(TypePattern::Name("Lab.*".into())));
    }
}
