//! Text forms of numbers, characters, dates and similar values. The functions read no memory: their arguments are the bits of the values.

use std::fmt::Write;

use serde_json::{Number, Value};

use crate::base::{CorElementType, escaped_unit};

/// A decoded value with its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Value for JSON.
    pub value: Value,
    /// Text for display.
    pub text: String,
}

impl Text {
    /// A value that is the same text in JSON and on display.
    pub(super) fn same(text: String) -> Text {
        Text { value: Value::String(text.clone()), text }
    }
}

const TICKS_PER_SECOND: u64 = 10_000_000;
/// Number of `DateTime` ticks in a millisecond.
pub(crate) const TICKS_PER_MILLISECOND: u64 = TICKS_PER_SECOND / 1_000;
const SECONDS_PER_DAY: u64 = 86_400;
const TICKS_PER_DAY: u64 = TICKS_PER_SECOND * SECONDS_PER_DAY;
/// `DateTime.MaxValue.Ticks`.
const MAX_TICKS: u64 = 3_155_378_975_999_999_999;
/// Maximum scale of a `Decimal`: the number of digits after the decimal point.
const MAX_SCALE: u32 = 28;

/// An integer of this element type, from its zero-extended bits.
pub(super) fn integer(element: CorElementType, bits: u64) -> Option<Text> {
    let signed = |width: u32| (bits << (64 - width)).cast_signed() >> (64 - width);
    let number = match element {
        CorElementType::I1 => Number::from(signed(8)),
        CorElementType::I2 => Number::from(signed(16)),
        CorElementType::I4 => Number::from(signed(32)),
        CorElementType::I8 => Number::from(signed(64)),
        CorElementType::U1 | CorElementType::U2 | CorElementType::U4 | CorElementType::U8 => Number::from(bits),
        _ => return None,
    };
    let text = number.to_string();
    Some(Text { value: Value::Number(number), text })
}

/// A floating-point number with its `text`. NaN and infinities are strings, because JSON has no such numbers.
pub(super) fn float(value: f64, text: String) -> Text {
    match Number::from_f64(value) {
        Some(n) => Text { value: Value::Number(n), text },
        None => Text::same(
            if value.is_nan() {
                "NaN"
            } else if value > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            }
            .to_string(),
        ),
    }
}

/// A `float`: text and JSON have the shortest digits that round-trip.
pub(super) fn single(value: f32) -> Text {
    let text = value.to_string();
    let exact = text.parse().unwrap_or_else(|_| f64::from(value));
    float(exact, text)
}

/// A UTF-16 code unit.
pub(super) fn character(unit: u16) -> Text {
    match char::from_u32(u32::from(unit)) {
        Some(c) => Text { value: Value::String(c.to_string()), text: format!("'{}'", escape_char(c, '\'')) },
        None => {
            let code = escaped_unit(unit);
            Text { text: format!("'{code}'"), value: Value::String(code) }
        }
    }
}

fn escape_char(c: char, quote: char) -> String {
    match c {
        '\0' => "\\0".into(),
        '\n' => "\\n".into(),
        '\r' => "\\r".into(),
        '\t' => "\\t".into(),
        '\\' => "\\\\".into(),
        c if c == quote => format!("\\{c}"),
        // Control characters and characters that change the text direction are escaped.
        c if c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
            format!("\\u{:04x}", u32::from(c))
        }
        c => c.to_string(),
    }
}

/// A quoted string, escaped for terminals. Backslashes in the string are doubled, so a single backslash always begins an escape sequence.
pub(super) fn quoted(units: &[u16], truncated: bool) -> String {
    let mut out = String::from('"');
    let parts = char::decode_utf16(units.iter().copied());
    out.extend(parts.map(|part| part.map_or_else(|lone| escaped_unit(lone.unpaired_surrogate()), |c| escape_char(c, '"'))));
    out.push_str(if truncated { "\"…" } else { "\"" });
    out
}

/// Year, month and day from a number of days since 0001-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Years start in March here, so that the leap day is the last day of a year (Howard Hinnant's `civil_from_days`).
    let z = days.saturating_add(306);
    let era = z / 146_097;
    let day = z % 146_097;
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era.saturating_mul(400).saturating_add(year).saturating_add(u64::from(month <= 2)), month, day)
}

fn clock(ticks: u64) -> String {
    let seconds = ticks / TICKS_PER_SECOND;
    let mut out = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let fraction = ticks % TICKS_PER_SECOND;
    if fraction != 0 {
        let digits = format!("{fraction:07}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
    out
}

/// ISO 8601 form of ticks (100 ns) since 0001-01-01; `None` after the year 9999.
pub(super) fn iso(ticks: u64) -> Option<String> {
    (ticks <= MAX_TICKS).then_some(())?;
    let (year, month, day) = date(ticks / TICKS_PER_DAY);
    Some(format!("{year:04}-{month:02}-{day:02}T{}", clock(ticks % TICKS_PER_DAY)))
}

/// A `DateTime` from its word: ticks, with the kind in the two high bits (0 unspecified, 1 UTC, 2 and 3 local).
pub(super) fn date_time(word: u64) -> Option<Text> {
    let iso = iso(word & (u64::MAX >> 2))?;
    Some(match word >> 62 {
        0 => Text::same(iso),
        1 => Text::same(format!("{iso}Z")),
        _ => Text { text: format!("{iso} (local)"), value: Value::String(iso) },
    })
}

/// ISO 8601 form of UTC ticks (100 ns) since 0001-01-01, to the millisecond; `None` after the year 9999.
pub(crate) fn utc(ticks: u64) -> Option<String> {
    iso(ticks.checked_sub(ticks % TICKS_PER_MILLISECOND)?).map(|text| format!("{text}Z"))
}

/// Ticks of a UTC `DateTime`, from its word; `None` for another kind.
pub(crate) fn utc_ticks(word: u64) -> Option<u64> {
    (word >> 62 == 1).then_some(word & (u64::MAX >> 2)).filter(|ticks| *ticks <= MAX_TICKS)
}

/// A `DateTimeOffset` from the word of its UTC `DateTime` and its offset in minutes. The text shows the local time.
pub(super) fn date_time_offset(word: u64, minutes: i32) -> Option<Text> {
    (minutes.unsigned_abs() <= 14 * 60).then_some(())?;
    let ticks = (word & (u64::MAX >> 2)).checked_add_signed(i64::from(minutes).checked_mul(60 * 10_000_000)?)?;
    let (sign, m) = (if minutes < 0 { '-' } else { '+' }, minutes.unsigned_abs());
    Some(Text::same(format!("{}{sign}{:02}:{:02}", iso(ticks)?, m / 60, m % 60)))
}

/// A `DateOnly` from its days since 0001-01-01.
pub(super) fn date_only(days: u64) -> Option<Text> {
    (days <= MAX_TICKS / TICKS_PER_DAY).then_some(())?;
    let (year, month, day) = date(days);
    Some(Text::same(format!("{year:04}-{month:02}-{day:02}")))
}

/// A `TimeOnly` from its ticks since midnight.
pub(super) fn time_only(ticks: u64) -> Option<Text> {
    (ticks < TICKS_PER_DAY).then(|| Text::same(clock(ticks)))
}

/// A `TimeSpan` as .NET prints it: `[-][d.]hh:mm:ss[.fffffff]`.
pub(super) fn time_span(ticks: i64) -> Text {
    let (sign, abs) = (if ticks < 0 { "-" } else { "" }, ticks.unsigned_abs());
    let days = abs / TICKS_PER_DAY;
    let days = if days > 0 { format!("{days}.") } else { String::new() };
    let time = clock(abs % TICKS_PER_DAY);
    // .NET prints all seven digits of a fraction.
    let time = match time.split_once('.') {
        Some((whole, fraction)) => format!("{whole}.{fraction:0<7}"),
        None => time,
    };
    Text::same(format!("{sign}{days}{time}"))
}

/// A `Guid` from its 16 bytes. The first three of its five parts are little-endian.
pub(super) fn guid(b: [u8; 16]) -> Text {
    let [a0, a1, a2, a3, b0, b1, c0, c1, rest @ ..] = b;
    let (a, b, c) = (u32::from_le_bytes([a0, a1, a2, a3]), u16::from_le_bytes([b0, b1]), u16::from_le_bytes([c0, c1]));
    let mut out = format!("{a:08x}-{b:04x}-{c:04x}-");
    for (i, byte) in rest.iter().enumerate() {
        let _ = write!(out, "{}{byte:02x}", if i == 2 { "-" } else { "" });
    }
    Text::same(out)
}

/// A `Decimal`: a 96-bit integer, with the scale in bits 16 to 23 of the flags and the sign in bit 31.
pub(super) fn decimal(flags: u32, high: u32, low: u64) -> Option<Text> {
    let scale = flags >> 16 & 0xff;
    (scale <= MAX_SCALE && flags & 0x7f00_ffff == 0).then_some(())?;
    let mut digits = (u128::from(high) << 64 | u128::from(low)).to_string();
    if scale > 0 {
        let scale = usize::try_from(scale).ok()?;
        if digits.len() <= scale {
            digits = format!("{digits:0>width$}", width = scale.saturating_add(1));
        }
        let (whole, fraction) = digits.split_at_checked(digits.len().checked_sub(scale)?)?;
        digits = format!("{whole}.{fraction}");
    }
    let sign = if flags >> 31 != 0 { "-" } else { "" };
    Some(Text::same(format!("{sign}{digits}")))
}

/// Bytes in hexadecimal, in memory order.
pub(super) fn hex(bytes: &[u8]) -> Text {
    let mut out = String::with_capacity(bytes.len().saturating_mul(2));
    for b in bytes {
        let _ = write!(out, "{b:02x}");
    }
    Text::same(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date_time(0).unwrap().text, "0001-01-01T00:00:00");
        assert_eq!(date_time(MAX_TICKS).unwrap().text, "9999-12-31T23:59:59.9999999");
        assert_eq!(date_time(MAX_TICKS + 1), None);
        // new DateTime(2026, 1, 2, 3, 4, 5, DateTimeKind.Utc)
        assert_eq!(date_time(639_029_198_450_000_000 | 1 << 62).unwrap().text, "2026-01-02T03:04:05Z");
        assert_eq!(date_time(637_134_336_000_000_000).unwrap().text, "2020-01-01T00:00:00");
        assert_eq!(date_only(730_178).unwrap().text, "2000-02-29");
        assert_eq!(date_time_offset(637_134_336_000_000_000, 90).unwrap().text, "2020-01-01T01:30:00+01:30");
        assert_eq!(date_time_offset(0, -60), None);
        assert_eq!(time_span(-TICKS_PER_DAY.cast_signed() - 15_000_000).text, "-1.00:00:01.5000000");
        assert_eq!(time_span(i64::MIN).text, "-10675199.02:48:05.4775808");
    }

    #[test]
    fn numbers() {
        assert_eq!(integer(CorElementType::I1, 0x9c).unwrap().text, "-100");
        assert_eq!(integer(CorElementType::U8, u64::MAX).unwrap().text, "18446744073709551615");
        assert_eq!(integer(CorElementType::I8, 1 << 63).unwrap().text, "-9223372036854775808");
        assert_eq!(decimal(4 << 16, 0, 123_456_789).unwrap().text, "12345.6789");
        assert_eq!(decimal(1 << 31 | 28 << 16, 0, 1).unwrap().text, "-0.0000000000000000000000000001");
        assert_eq!(decimal(0, u32::MAX, u64::MAX).unwrap().text, "79228162514264337593543950335");
        assert_eq!(decimal(29 << 16, 0, 1), None);
        assert_eq!(single(0.1).value, serde_json::json!(0.1));
        assert_eq!(float(f64::NAN, String::new()).value, "NaN");
    }

    #[test]
    fn characters() {
        assert_eq!(character(0x3a9).text, "'Ω'");
        assert_eq!(character(0xd800).text, "'\\ud800'");
        assert_eq!(character(10).text, "'\\n'");
        let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
        assert_eq!(quoted(&units("a\"\u{1b}[0m"), true), "\"a\\\"\\u001b[0m\"…");
        assert_eq!(quoted(&[0x5c, 0xd83d], false), "\"\\\\\\ud83d\"");
        assert_eq!(
            guid([0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff]).text,
            "00112233-4455-6677-8899-aabbccddeeff"
        );
    }

    #[test]
    fn noise_never_panics() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let low = state.to_le_bytes();
            let n = u32::from_le_bytes([low[0], low[1], low[2], low[3]]);
            let _ = (date_time(state), date_time_offset(state, n.cast_signed()), date_only(state), time_only(state));
            let _ = (
                time_span(state.cast_signed()),
                decimal(n, n, state),
                CorElementType::of(low[7]).map(|e| integer(e, state)),
                character(u16::from(low[6]) << 8),
            );
            let _ = (date_only(state >> 40), date_time_offset(state >> 2, n.cast_signed() % 900), decimal(n & 0x801f_0000, n, state));
            let _ = single(f32::from_bits(n));
        }
    }
}
