//! Parser for the compact JSON of data contract descriptors. The parser does not access memory.
//!
//! Source: `docs/internals/descriptors.md#json`, and both generations of the reference parser (dotnet/runtime). Versions 0 (.NET 9, 10), 1
//! (previews of 11) and 2 (.NET 11) do not differ in the parts that are read.
//!
//! An item that cannot be used is set aside with the reason. The rest of the descriptor is not affected.

mod value;

use std::fmt;

use indexmap::IndexMap;
use value::{File, Pairs, Value, strict};

/// A parsed descriptor with unresolved slots.
#[derive(Clone, Debug, Default)]
pub struct RawDescriptor {
    /// `version`: 0 to 2 in all runtimes seen.
    pub version: u64,
    /// `baseline`: "empty" in all runtimes seen.
    pub baseline: String,
    /// Types, in the order of the JSON.
    pub types: Vec<(String, RawType)>,
    /// Globals, in the order of the JSON.
    pub globals: Vec<(String, RawGlobal)>,
    /// Contracts with their versions, as written.
    pub contracts: Vec<(String, String)>,
    /// Sub-descriptors with their slots.
    pub sub_descriptors: Vec<(String, u64)>,
    /// Unusable types, fields, globals and contracts, with the reason. They are in no other list.
    pub unusable: Vec<(DescriptorItem, String)>,
    /// Errors that belong to no item: in the version, a whole section or a sub-descriptor.
    pub irregular: Vec<String>,
}

/// An item of a descriptor, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DescriptorItem {
    /// A type with all its fields.
    Type(String),
    /// The size of a type.
    Size(String),
    /// A field: the name of its type and its own name.
    Field(String, String),
    /// A global.
    Global(String),
    /// A contract.
    Contract(String),
}

impl fmt::Display for DescriptorItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DescriptorItem::Type(name) => write!(f, "type {name}"),
            DescriptorItem::Size(name) => write!(f, "size of type {name}"),
            DescriptorItem::Field(type_name, field) => write!(f, "field {type_name}.{field}"),
            DescriptorItem::Global(name) => write!(f, "global {name}"),
            DescriptorItem::Contract(name) => write!(f, "contract {name}"),
        }
    }
}

/// A type: its size and its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawType {
    /// Size in bytes, the entry `"!"`.
    pub size: Option<u64>,
    /// Name, offset in bytes and type, if given, of each field.
    pub fields: Vec<(String, u64, Option<String>)>,
}

/// A global value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawGlobal {
    /// Value of the global.
    pub value: RawValue,
    /// Type, if given.
    pub type_name: Option<String>,
}

/// Value of a global.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawValue {
    /// A literal. A numeric string is both a number and a text.
    Literal {
        /// The number, if numeric. Negative numbers are in two's complement.
        number: Option<u64>,
        /// The text, if the literal is a string.
        text: Option<String>,
    },
    /// A slot of the pointer data.
    Slot(u64),
}

/// Reason why a descriptor cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not UTF-8.
    #[error("the descriptor JSON is not UTF-8")]
    NotText,
    /// Not JSON, or not a descriptor.
    #[error("malformed descriptor JSON: {0}")]
    Malformed(String),
}

/// The largest offset or size that is accepted. The largest structure that a runtime describes, the `gc_heap` of server GC, has about ten
/// thousand bytes.
const MAX_OFFSET: u64 = 1 << 20;

/// Parses the text of a descriptor. Accepts comments and trailing commas, and skips unknown keys. Unusable items are in
/// [`RawDescriptor::unusable`].
///
/// # Errors
/// [`JsonError`] if the text is not a descriptor.
pub fn parse(text: &[u8]) -> Result<RawDescriptor, JsonError> {
    let text = std::str::from_utf8(text).map_err(|_| JsonError::NotText)?;
    let file: File = match serde_json::from_str(text) {
        Ok(file) => file,
        // Strict parsing comes first, because the runtime never writes comments or trailing commas.
        Err(first) => serde_json::from_str(&strict(text)).map_err(|_| JsonError::Malformed(first.to_string()))?,
    };
    let mut out = RawDescriptor::default();
    match file.version.as_ref().map(Value::number) {
        Some(Some(version)) => out.version = version,
        Some(None) => out.irregular.push("the version of the descriptor is not a number".into()),
        None => {}
    }
    out.baseline = file.baseline.map_or_else(|| "empty".into(), |b| b.text().map_or_else(|| "not a text".into(), Into::into));
    for (name, fields) in entries(file.types, "types", &mut out) {
        match fields {
            Pairs::Entries(fields) => {
                let raw = type_of(&name, fields, &mut out.unusable);
                out.types.push((name, raw));
            }
            Pairs::Other => out.unusable.push((DescriptorItem::Type(name), "not a dictionary of fields".into())),
        }
    }
    for (name, item) in entries(file.globals, "globals", &mut out) {
        match global(&item) {
            Some(value) => out.globals.push((name, value)),
            None => out.unusable.push((DescriptorItem::Global(name), "neither a value nor a slot".into())),
        }
    }
    for (name, version) in entries(file.contracts, "contracts", &mut out) {
        let written = version.text().map(Into::into).or_else(|| version.number().map(|n| n.to_string()));
        match written {
            Some(version) => out.contracts.push((name, version)),
            None => out.unusable.push((DescriptorItem::Contract(name), "its version is neither a number nor a text".into())),
        }
    }
    for (name, item) in entries(file.sub_descriptors, "subDescriptors", &mut out) {
        // Sub-descriptors that are not indirect are ignored, as in the reference parser.
        let slot = item.slot().or_else(|| item.typed().and_then(|(inner, _)| inner.slot()));
        out.sub_descriptors.extend(slot.map(|slot| (name, slot)));
    }
    Ok(out)
}

/// The entries of a section. If a name is repeated, its last entry is used, as in the reference parser. A section that is not a dictionary
/// is recorded as irregular.
fn entries<T>(section: Option<Pairs<T>>, name: &str, out: &mut RawDescriptor) -> IndexMap<String, T> {
    match section {
        Some(Pairs::Entries(list)) => list.into_iter().collect(),
        Some(Pairs::Other) => {
            out.irregular.push(format!("the descriptor's {name} are not a dictionary"));
            IndexMap::new()
        }
        None => IndexMap::new(),
    }
}

/// The fields of the type `name`. A field that is defined more than once is unusable.
fn type_of(name: &str, fields: Vec<(String, Value)>, unusable: &mut Vec<(DescriptorItem, String)>) -> RawType {
    let mut raw = RawType::default();
    let mut by_name: IndexMap<String, Result<(u64, Option<String>), String>> = IndexMap::new();
    for (field, item) in fields {
        let twice = by_name.contains_key(&field);
        by_name.insert(field, if twice { Err("it is defined more than once".into()) } else { offset(&item) });
    }
    for (field, offset) in by_name {
        match offset {
            Ok((size, _)) if field == "!" => raw.size = Some(size),
            Ok((offset, type_name)) => raw.fields.push((field, offset, type_name)),
            Err(why) if field == "!" => unusable.push((DescriptorItem::Size(name.into()), why)),
            Err(why) => unusable.push((DescriptorItem::Field(name.into(), field), why)),
        }
    }
    raw
}

/// An offset or a size, with its type as written.
fn offset(item: &Value) -> Result<(u64, Option<String>), String> {
    let (value, type_name) = item.typed().ok_or("neither a number nor a number with a type")?;
    let number = value.number().ok_or("not a number")?;
    match i64::from_ne_bytes(number.to_ne_bytes()) {
        negative @ ..0 => Err(format!("{negative} is negative")),
        _ if number > MAX_OFFSET => Err(format!("{number} is larger than any structure")),
        _ => Ok((number, type_name)),
    }
}

fn global(item: &Value) -> Option<RawGlobal> {
    let (value, type_name) = item.typed()?;
    let value = match value {
        Value::Scalar(s) => RawValue::Literal { number: s.number(), text: s.text() },
        Value::List(_) => RawValue::Slot(value.slot()?),
        Value::Other => return None,
    };
    Some(RawGlobal { value, type_name })
}

/// Normalized contract version: `1` and `"c1"` are equal (.NET 9 and 10 write integers, .NET 11 strings since April 2026).
pub fn contract_version(written: &str) -> String {
    match written.strip_prefix('c') {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => digits.into(),
        _ => written.into(),
    }
}

/// Parses a number: decimal or `0x…`, optionally negative (two's complement).
pub fn number(text: &str) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // The parsers below accept a plus sign, so "-+1" and "0x+1" would pass without these checks.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn global(text: &str) -> RawGlobal {
        parse(format!("{{\"globals\":{{\"G\":{text}}}}}").as_bytes()).unwrap().globals.remove(0).1
    }

    #[test]
    fn all_forms_of_globals_are_parsed() {
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
    fn types_versions_and_sub_descriptors_are_parsed() {
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

    /// The unusable items of `text`, with the reasons.
    fn unusable(text: &str) -> Vec<String> {
        parse(text.as_bytes()).unwrap().unusable.into_iter().map(|(item, why)| format!("{item}: {why}")).collect()
    }

    #[test]
    fn unusable_items_are_set_aside_with_the_reason() {
        let fields = |text: &str| format!("{{\"types\":{{\"T\":{{\"A\":{text},\"B\":8}}}}}}");
        for (text, why) in [
            ("-8", "-8 is negative"),
            ("\"-0x1\"", "-1 is negative"),
            ("[-8,\"pointer\"]", "-8 is negative"),
            ("-9223372036854775808", "-9223372036854775808 is negative"),
            ("2147483640", "2147483640 is larger than any structure"),
            ("4294967296", "4294967296 is larger than any structure"),
            ("1e99", "neither a number nor a number with a type"),
            ("8.0", "neither a number nor a number with a type"),
            ("null", "neither a number nor a number with a type"),
            ("true", "neither a number nor a number with a type"),
            ("{\"a\":[{}]}", "neither a number nor a number with a type"),
            ("[]", "neither a number nor a number with a type"),
            ("[1,\"t\",2]", "neither a number nor a number with a type"),
            ("[[[[1]]]]", "neither a number nor a number with a type"),
            ("\"eight\"", "not a number"),
            ("[[8],\"t\"]", "not a number"),
        ] {
            assert_eq!(unusable(&fields(text)), [format!("field T.A: {why}")], "{text}");
            let d = parse(fields(text).as_bytes()).unwrap();
            assert_eq!(d.types, [("T".into(), RawType { size: None, fields: vec![("B".into(), 8, None)] })], "{text}");
        }
        assert_eq!(unusable(r#"{"types":{"T":5,"U":{"!":-1}}}"#), ["type T: not a dictionary of fields", "size of type U: -1 is negative"]);
        assert_eq!(unusable(r#"{"globals":{"G":null,"H":[[[1]]],"I":1}}"#).len(), 2);
        assert_eq!(unusable(r#"{"contracts":{"C":{},"D":1}}"#), ["contract C: its version is neither a number nor a text"]);
    }

    #[test]
    fn a_section_that_is_not_a_dictionary_does_not_affect_other_sections() {
        let d = parse(br#"{"version":[],"baseline":7,"types":5,"globals":[1],"contracts":{"GC":1},"subDescriptors":null}"#).unwrap();
        assert_eq!((d.contracts.len(), d.irregular.len(), d.baseline.as_str()), (1, 4, "not a text"));
        assert_eq!(parse(br#"{"types":{"A":{}},"types":{"B":{}}}"#).unwrap().types[0].0, "B");
    }

    #[test]
    fn duplicate_fields_are_unusable_and_repeated_globals_are_replaced() {
        assert_eq!(unusable(r#"{"types":{"T":{"A":1,"A":2}}}"#), ["field T.A: it is defined more than once"]);
        assert_eq!(unusable(r#"{"types":{"T":{"!":1,"!":2,"!":3}}}"#), ["size of type T: it is defined more than once"]);
        assert_eq!(unusable(r#"{"types":{"T":{"A":-1},"T":{"A":1}},"globals":{"G":{},"G":1}}"#), [""; 0]);
        let d = parse(br#"{"globals":{"G":1,"G":2}}"#).unwrap();
        assert_eq!(d.globals.len(), 1);
        assert_eq!(d.globals[0].1.value, RawValue::Literal { number: Some(2), text: None });
    }

    #[test]
    fn hostile_texts_are_errors() {
        for text in ["", "[]", "5", "{", "{\"types\":{}"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(&[b'['; 100_000]).is_err());
        assert_eq!((number("--1"), number("0x-1"), number("+1"), number("")), (None, None, None, None));
    }
}
