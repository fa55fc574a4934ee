//! The JSON values of a descriptor. Any valid JSON is accepted here; the parser interprets it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Strips comments and trailing commas, which are not JSON.
pub(super) fn strict(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    // A comma is held back until a character other than a closing bracket follows.
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

/// The sections of a descriptor. If a section is repeated, its last occurrence is used. Unknown sections are skipped.
#[derive(Default)]
pub(super) struct File {
    pub(super) version: Option<Value>,
    pub(super) baseline: Option<Value>,
    pub(super) types: Option<Pairs<Pairs<Value>>>,
    pub(super) globals: Option<Pairs<Value>>,
    pub(super) contracts: Option<Pairs<Value>>,
    pub(super) sub_descriptors: Option<Pairs<Value>>,
}

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<File, D::Error> {
        struct FileVisitor;
        impl<'de> Visitor<'de> for FileVisitor {
            type Value = File;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a dictionary")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
                let mut file = File::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "version" => file.version = Some(map.next_value()?),
                        "baseline" => file.baseline = Some(map.next_value()?),
                        "types" => file.types = Some(map.next_value()?),
                        "globals" => file.globals = Some(map.next_value()?),
                        "contracts" => file.contracts = Some(map.next_value()?),
                        "subDescriptors" => file.sub_descriptors = Some(map.next_value()?),
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(file)
            }
        }
        deserializer.deserialize_map(FileVisitor)
    }
}

/// A dictionary with entries in order, including duplicates, or another value.
pub(super) enum Pairs<T> {
    Entries(Vec<(String, T)>),
    Other,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
            type Value = Pairs<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut out = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    out.push(entry);
                }
                Ok(Pairs::Entries(out))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Pairs<T>, A::Error> {
                rest(&mut seq)?;
                Ok(Pairs::Other)
            }
            fn visit_bool<E>(self, _: bool) -> Result<Pairs<T>, E> {
                Ok(Pairs::Other)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Pairs<T>, E> {
                Ok(Pairs::Other)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Pairs<T>, E> {
                Ok(Pairs::Other)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Pairs<T>, E> {
                Ok(Pairs::Other)
            }
            fn visit_str<E>(self, _: &str) -> Result<Pairs<T>, E> {
                Ok(Pairs::Other)
            }
            fn visit_unit<E>(self) -> Result<Pairs<T>, E> {
                Ok(Pairs::Other)
            }
        }
        deserializer.deserialize_any(PairsVisitor(PhantomData))
    }
}

/// A number or a string.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Number(u64),
    Text(String),
}

impl Scalar {
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Scalar::Number(n) => Some(*n),
            Scalar::Text(t) => super::number(t),
        }
    }

    pub(super) fn text(&self) -> Option<String> {
        match self {
            Scalar::Number(_) => None,
            Scalar::Text(t) => Some(t.clone()),
        }
    }
}

/// A value in a descriptor: a scalar, a list, or anything else. A list has at most two values, and is nested at most once.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Scalar(Scalar),
    List(Vec<Value>),
    Other,
}

impl Value {
    /// The number, if the value is a number or a numeric string.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Value::Scalar(s) => s.number(),
            Value::List(_) | Value::Other => None,
        }
    }

    /// The text, if the value is a string.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Value::Scalar(Scalar::Text(t)) => Some(t),
            _ => None,
        }
    }

    /// The slot number, if the value is `[IDX]`.
    pub(super) fn slot(&self) -> Option<u64> {
        match self {
            Value::List(items) => match items.as_slice() {
                [Value::Scalar(s)] => s.number(),
                _ => None,
            },
            Value::Scalar(_) | Value::Other => None,
        }
    }

    /// The value and the type in `V`, `[IDX]`, `[V,"type"]` or `[[IDX],"type"]`.
    pub(super) fn typed(&self) -> Option<(&Value, Option<String>)> {
        match self {
            Value::List(items) => match items.as_slice() {
                [value, Value::Scalar(Scalar::Text(t))] => Some((value, Some(t.clone()))),
                [Value::Scalar(_)] => Some((self, None)),
                _ => None,
            },
            Value::Scalar(_) => Some((self, None)),
            Value::Other => None,
        }
    }
}

/// Skips the rest of a list.
fn rest<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

struct ItemVisitor {
    depth: u8,
}

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Number(v)))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Number(v.cast_unsigned())))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Text(v.into())))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while self.depth < 2 && items.len() < 2 {
            match seq.next_element_seed(ItemSeed { depth: self.depth.saturating_add(1) })? {
                Some(item) => items.push(item),
                None => return Ok(Value::List(items)),
            }
        }
        // A list of more than two items, or a deeper nesting, is not a value of a descriptor.
        let more = seq.next_element::<IgnoredAny>()?.is_some();
        rest(&mut seq)?;
        if more || self.depth >= 2 {
            return Ok(Value::Other);
        }
        Ok(Value::List(items))
    }
}

struct ItemSeed {
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for ItemSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(ItemVisitor { depth: self.depth })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(ItemVisitor { depth: 0 })
    }
}
