//! The compact JSON of a data contract descriptor, as text to structures. Knows nothing of memory.
//!
//! Source: `docs/internals/descriptors.md#json`, and both generations of the reference parser (dotnet/runtime). Versions 0
//! (.NET 9, 10), 1 (previews of 11) and 2 (.NET 11) do not differ in what is read here.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A parsed descriptor text. Slots are still unresolved.
#[derive(Clone, Debug, Default)]
pub struct RawDescriptor {
    /// `version`: 0 to 2 in everything seen.
    pub version: u64,
    /// `baseline`: "empty" in everything seen.
    pub baseline: String,
    /// Types in the order of the text.
    pub types: Vec<(String, RawType)>,
    /// Globals in the order of the text.
    pub globals: Vec<(String, RawGlobal)>,
    /// Contracts with their versions, as written.
    pub contracts: Vec<(String, String)>,
    /// Sub-descriptors with the slot that leads to them.
    pub sub_descriptors: Vec<(String, u64)>,
}

/// A type: its size and its fields.
#[derive(Clone, Debug, Default)]
pub struct RawType {
    /// `"!"`: size in bytes.
    pub size: Option<u64>,
    /// Field offsets in bytes, with the type where the text gives one.
    pub fields: Vec<(String, u64, Option<String>)>,
}

/// A global value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawGlobal {
    /// What it is.
    pub value: RawValue,
    /// Its type, where the text gives one.
    pub type_name: Option<String>,
}

/// What a global is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawValue {
    /// A literal. A string that spells a number is both.
    Literal {
        /// The number, where it is or spells one; negative ones in two's complement.
        number: Option<u64>,
        /// The text, where it was written as a string.
        text: Option<String>,
    },
    /// The value is in this slot of the pointer data.
    Slot(u64),
}

/// Why a descriptor's text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not UTF-8.
    #[error("the descriptor's JSON is not UTF-8 text")]
    NotText,
    /// Not JSON, or not a descriptor.
    #[error("the descriptor's JSON is malformed: {0}")]
    Malformed(String),
}

/// Parses the text of a descriptor. Comments and trailing commas are accepted, unknown keys skipped.
///
/// # Errors
/// [`JsonError`] where the text is not a descriptor.
pub fn parse(text: &[u8]) -> Result<RawDescriptor, JsonError> {
    let text = std::str::from_utf8(text).map_err(|_| JsonError::NotText)?;
    let file: File = match serde_json::from_str(text) {
        Ok(file) => file,
        // The strict parse is the common case; the runtime itself never writes comments or trailing commas.
        Err(first) => serde_json::from_str(&strict(text)).map_err(|_| JsonError::Malformed(first.to_string()))?,
    };
    let malformed = |what: String| JsonError::Malformed(what);
    let mut out = RawDescriptor {
        version: match &file.version {
            None => 0,
            Some(v) => v.number().ok_or_else(|| malformed("\"version\" is not a number".into()))?,
        },
        baseline: file.baseline.unwrap_or_else(|| "empty".into()),
        ..RawDescriptor::default()
    };
    for (name, fields) in file.types.unwrap_or_default().0 {
        let mut raw = RawType::default();
        for (field, item) in fields.0 {
            let (value, type_name) = item.typed().ok_or_else(|| malformed(format!("field {name}.{field}")))?;
            let number = value.literal_number().ok_or_else(|| malformed(format!("field {name}.{field}")))?;
            let number = u64::from(u32::try_from(number).map_err(|_| malformed(format!("offset of {name}.{field}")))?);
            if field == "!" {
                if raw.size.replace(number).is_some() {
                    return Err(malformed(format!("type {name} has two sizes")));
                }
            } else if raw.fields.iter().any(|f| f.0 == field) {
                return Err(malformed(format!("type {name} has two fields {field}")));
            } else {
                raw.fields.push((field, number, type_name));
            }
        }
        replace(&mut out.types, name, raw);
    }
    for (name, item) in file.globals.unwrap_or_default().0 {
        let (value, type_name) = item.typed().ok_or_else(|| malformed(format!("global {name}")))?;
        let value = match value {
            Item::Scalar(s) => RawValue::Literal { number: s.number(), text: s.text() },
            Item::List(_) => RawValue::Slot(value.slot().ok_or_else(|| malformed(format!("global {name}")))?),
        };
        replace(&mut out.globals, name, RawGlobal { value, type_name });
    }
    for (name, version) in file.contracts.unwrap_or_default().0 {
        let version = match version {
            Scalar::Number(n) => n.to_string(),
            Scalar::Text(t) => t,
        };
        replace(&mut out.contracts, name, version);
    }
    for (name, item) in file.sub_descriptors.unwrap_or_default().0 {
        // The reference reader ignores sub-descriptors that are not indirect; so do we.
        let slot = item.slot().or_else(|| item.typed().and_then(|(inner, _)| inner.slot()));
        if let Some(slot) = slot {
            replace(&mut out.sub_descriptors, name, slot);
        }
    }
    Ok(out)
}

/// Repeated names in one dictionary: the last one wins, as in the reference parser.
fn replace<T>(list: &mut Vec<(String, T)>, name: String, value: T) {
    match list.iter_mut().find(|e| e.0 == name) {
        Some(entry) => entry.1 = value,
        None => list.push((name, value)),
    }
}

/// The key that contract versions are compared by: `1` and `"c1"` are the same thing (.NET 9 and 10 write integers,
/// .NET 11 strings since April 2026).
pub fn contract_version(written: &str) -> String {
    match written.strip_prefix('c') {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => digits.into(),
        _ => written.into(),
    }
}

/// A number as descriptors spell them: decimal, `0x…`, either with a minus sign (two's complement then).
pub fn number(text: &str) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // `from_str_radix` takes a sign of its own, which "--1" or "0x-1" must not smuggle in.
    if !digits.bytes().next()?.is_ascii_digit() {
        return None;
    }
    let magnitude = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if hex.bytes().next()?.is_ascii_hexdigit() => u64::from_str_radix(hex, 16).ok()?,
        Some(_) => return None,
        None => digits.parse().ok()?,
    };
    Some(if negative { magnitude.wrapping_neg() } else { magnitude })
}

/// The text without comments and trailing commas, which JSON proper has not got.
fn strict(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    // A comma is held back until something that is not a closing bracket follows.
    let mut comma = false;
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => {
                for c in chars.by_ref() {
                    if c == '\n' {
                        break;
                    }
                }
            }
            '/' if chars.peek() == Some(&'*') => {
                let mut last = ' ';
                chars.next();
                for c in chars.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            ',' => comma = true,
            c if c.is_whitespace() => out.push(c),
            c => {
                if comma && c != '}' && c != ']' {
                    out.push(',');
                }
                comma = false;
                out.push(c);
                if c == '"' {
                    while let Some(c) = chars.next() {
                        out.push(c);
                        if c == '\\' {
                            out.extend(chars.next());
                        } else if c == '"' {
                            break;
                        }
                    }
                }
            }
        }
    }
    out
}

#[derive(serde::Deserialize)]
struct File {
    version: Option<Scalar>,
    baseline: Option<String>,
    types: Option<Pairs<Pairs<Item>>>,
    globals: Option<Pairs<Item>>,
    contracts: Option<Pairs<Scalar>>,
    #[serde(rename = "subDescriptors")]
    sub_descriptors: Option<Pairs<Item>>,
}

/// A dictionary with its entries in order, repetitions included.
struct Pairs<T>(Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Pairs(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
            type Value = Pairs<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a dictionary")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut out = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    out.push(entry);
                }
                Ok(Pairs(out))
            }
        }
        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

/// A number or a string.
#[derive(Clone, Debug, PartialEq)]
enum Scalar {
    Number(u64),
    Text(String),
}

impl Scalar {
    fn number(&self) -> Option<u64> {
        match self {
            Scalar::Number(n) => Some(*n),
            Scalar::Text(t) => number(t),
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Scalar::Number(_) => None,
            Scalar::Text(t) => Some(t.clone()),
        }
    }
}

/// A scalar or a list of them, nested once: every value that a descriptor writes.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Scalar(Scalar),
    List(Vec<Item>),
}

impl Item {
    fn literal_number(&self) -> Option<u64> {
        match self {
            Item::Scalar(s) => s.number(),
            Item::List(_) => None,
        }
    }

    /// `[IDX]`
    fn slot(&self) -> Option<u64> {
        match self {
            Item::List(items) => match items.as_slice() {
                [Item::Scalar(s)] => s.number(),
                _ => None,
            },
            Item::Scalar(_) => None,
        }
    }

    /// `V`, `[IDX]`, `[V,"type"]`, `[[IDX],"type"]` → the value and its type.
    fn typed(&self) -> Option<(&Item, Option<String>)> {
        match self {
            Item::List(items) => match items.as_slice() {
                [value, Item::Scalar(Scalar::Text(t))] => Some((value, Some(t.clone()))),
                [Item::Scalar(_)] => Some((self, None)),
                _ => None,
            },
            Item::Scalar(_) => Some((self, None)),
        }
    }
}

struct ItemVisitor {
    depth: u8,
}

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a string or a short list of them")
    }

    fn visit_u64<E>(self, v: u64) -> Result<Item, E> {
        Ok(Item::Scalar(Scalar::Number(v)))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Item, E> {
        Ok(Item::Scalar(Scalar::Number(v.cast_unsigned())))
    }

    fn visit_str<E>(self, v: &str) -> Result<Item, E> {
        Ok(Item::Scalar(Scalar::Text(v.into())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Item, A::Error> {
        if self.depth >= 2 {
            return Err(de::Error::custom("a list in a list in a list"));
        }
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(ItemSeed { depth: self.depth + 1 })? {
            items.push(item);
            if items.len() > 2 {
                return Err(de::Error::custom("a list of more than two"));
            }
        }
        Ok(Item::List(items))
    }
}

struct ItemSeed {
    depth: u8,
}

impl<'de> de::DeserializeSeed<'de> for ItemSeed {
    type Value = Item;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Item, D::Error> {
        deserializer.deserialize_any(ItemVisitor { depth: self.depth })
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Item, D::Error> {
        deserializer.deserialize_any(ItemVisitor { depth: 0 })
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        match Item::deserialize(deserializer)? {
            Item::Scalar(s) => Ok(s),
            Item::List(_) => Err(de::Error::custom("a number or a string was expected")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(text: &str) -> RawGlobal {
        parse(format!("{{\"globals\":{{\"G\":{text}}}}}").as_bytes()).unwrap().globals.remove(0).1
    }

    #[test]
    fn every_shape_of_a_global() {
        let literal = |number, text: Option<&str>| RawValue::Literal { number, text: text.map(Into::into) };
        assert_eq!(global("5").value, literal(Some(5), None));
        assert_eq!(global("-1").value, literal(Some(u64::MAX), None));
        assert_eq!(global("18446744073709551615").value, literal(Some(u64::MAX), None));
        assert_eq!(global("\"0x1f\"").value, literal(Some(31), Some("0x1f")));
        assert_eq!(global("\"-0x1\"").value, literal(Some(u64::MAX), Some("-0x1")));
        assert_eq!(global("\"windows\"").value, literal(None, Some("windows")));
        assert_eq!(global("[3]"), RawGlobal { value: RawValue::Slot(3), type_name: None });
        assert_eq!(global("[\"3\"]"), RawGlobal { value: RawValue::Slot(3), type_name: None });
        assert_eq!(global("[[3],\"pointer\"]"), RawGlobal { value: RawValue::Slot(3), type_name: Some("pointer".into()) });
        let typed = global("[\"0xc\",\"uint8\"]");
        assert_eq!((typed.value, typed.type_name.as_deref()), (literal(Some(12), Some("0xc")), Some("uint8")));
    }

    #[test]
    fn types_versions_and_sub_descriptors() {
        let d = parse(
            br#"{"version":"2","unknown":{"a":[1,2,3]},"types":{"T":{"!":16,"A":0,"B":["0x8","pointer"]}},
            "contracts":{"GC":"c1","Thread":1},"subDescriptors":{"GC":[[7],"pointer"],"Old":[8],"Direct":9}}"#,
        )
        .unwrap();
        assert_eq!(d.version, 2);
        assert_eq!(d.types[0].1.size, Some(16));
        assert_eq!(d.types[0].1.fields, [("A".into(), 0, None), ("B".into(), 8, Some("pointer".into()))]);
        assert_eq!(d.sub_descriptors, [("GC".into(), 7), ("Old".into(), 8)]);
        assert_eq!(d.contracts.iter().map(|c| contract_version(&c.1)).collect::<Vec<_>>(), ["1", "1"]);
        assert_eq!(contract_version("n1"), "n1");
        assert_eq!(contract_version("c"), "c");
    }

    #[test]
    fn comments_and_trailing_commas_are_accepted() {
        let text = br#"{ // a comment, with "quotes"
            "version": 0, /* another, */ "types": {"T, }": {"A": 1,},},}"#;
        assert_eq!(parse(text).unwrap().types[0].0, "T, }");
    }

    #[test]
    fn repeated_fields_are_refused_and_repeated_globals_replaced() {
        assert!(parse(br#"{"types":{"T":{"A":1,"A":2}}}"#).is_err());
        assert!(parse(br#"{"types":{"T":{"!":1,"!":2}}}"#).is_err());
        let d = parse(br#"{"globals":{"G":1,"G":2}}"#).unwrap();
        assert_eq!(d.globals.len(), 1);
        assert_eq!(d.globals[0].1.value, RawValue::Literal { number: Some(2), text: None });
    }

    #[test]
    fn hostile_texts_are_errors() {
        for text in ["", "[]", "{\"types\":5}", "{\"globals\":{\"G\":[[[1]]]}}", "{\"types\":{\"T\":{\"A\":4294967296}}}"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(&[b'['; 100_000]).is_err());
        assert_eq!((number("--1"), number("0x-1"), number("+1"), number("")), (None, None, None, None));
    }
}
