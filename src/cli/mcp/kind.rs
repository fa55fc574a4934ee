//! Kinds of argument values: their schema, and the conversion of values to words of the command line. Assistants write values in various
//! forms.

use std::any::TypeId;

use clap::Arg;
use serde_json::{Value, json};

use super::rpc::cut;

/// Maximum size of a text in bytes.
const LONGEST: usize = 4096;

/// Kind of the values of an argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Flag,
    Text,
    /// An address of an object, or a name.
    Address,
    /// One of these words, in any spelling.
    Word(Vec<String>),
    Whole,
    Number,
    /// A number of bytes, optionally with a suffix; or an id, decimal or hexadecimal.
    WholeOrText,
}

/// Normalizes a name: removes differences in case, dashes, underscores and spaces.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

impl Kind {
    pub(super) fn of(arg: &Arg) -> Kind {
        if !arg.get_action().takes_values() {
            return Kind::Flag;
        }
        let words: Vec<String> = arg.get_possible_values().iter().filter(|v| !v.is_hide_set()).map(|v| v.get_name().into()).collect();
        if !words.is_empty() {
            return Kind::Word(words);
        }
        let parsed = arg.get_value_parser().type_id();
        let name = arg.get_value_names().and_then(<[_]>::first).map(|n| n.as_str()).unwrap_or_default();
        if [TypeId::of::<u64>(), TypeId::of::<u32>(), TypeId::of::<usize>()].into_iter().any(|id| parsed == id) {
            return if name == "N" { Kind::Whole } else { Kind::WholeOrText };
        }
        match name {
            _ if parsed == TypeId::of::<f64>() => Kind::Number,
            "ADDR" | "ADDRESS" | "HANDLE" | "IP" => Kind::Address,
            _ => Kind::Text,
        }
    }

    pub(super) fn schema(&self) -> Value {
        match self {
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Text | Kind::Address => json!({ "type": "string" }),
            Kind::Word(words) => json!({ "type": "string", "enum": words }),
            Kind::Whole => json!({ "type": "integer" }),
            Kind::Number => json!({ "type": "number" }),
            Kind::WholeOrText => json!({ "type": ["integer", "string"] }),
        }
    }

    /// Returns `value` as a word of the command line.
    pub(super) fn word(&self, value: &Value) -> Result<String, String> {
        let expected = match (self, value) {
            (Kind::Flag, value) => return switch(value).map(|on| on.to_string()),
            (_, Value::String(text)) if text.len() > LONGEST => {
                return Err(format!("expected at most {LONGEST} bytes, not {}", text.len()));
            }
            (Kind::Word(words), Value::String(text)) => {
                // The direction of a sort order may follow the column, after a colon.
                let (text, direction) = text.split_once(':').map_or((text.as_str(), None), |(word, rest)| (word, Some(rest)));
                let known = words.iter().find(|word| plain(word) == plain(text));
                let known = known.map(|word| direction.map_or_else(|| word.clone(), |direction| format!("{word}:{direction}")));
                return known.ok_or_else(|| format!("'{}' is not one of {}", cut(text), words.join(", ")));
            }
            (Kind::Text | Kind::Address | Kind::WholeOrText, Value::String(text)) => return Ok(text.clone()),
            // JSON does not have hexadecimal numbers, so an address may also be a decimal number.
            (Kind::Address, Value::Number(n)) if n.is_u64() => return Ok(format!("{:#x}", n.as_u64().unwrap_or_default())),
            (Kind::Text | Kind::Whole | Kind::WholeOrText, Value::Number(n)) if n.is_u64() => return Ok(n.to_string()),
            (Kind::Number, Value::Number(n)) => return Ok(n.to_string()),
            (Kind::Whole | Kind::Number, Value::String(text)) if is_number(text) => return Ok(text.trim().replace(['_', ','], "")),
            (Kind::Text | Kind::Address | Kind::Word(_), _) => "a string",
            (Kind::Whole, _) => "a whole number",
            (Kind::Number, _) => "a number",
            (Kind::WholeOrText, _) => "a whole number or a string",
        };
        Err(format!("expected {expected}"))
    }
}

/// Returns whether a flag is on.
pub(super) fn switch(value: &Value) -> Result<bool, String> {
    match value {
        Value::Bool(on) => Ok(*on),
        Value::String(text) if matches!(plain(text).as_str(), "true" | "yes" | "on" | "1") => Ok(true),
        Value::String(text) if matches!(plain(text).as_str(), "false" | "no" | "off" | "0") => Ok(false),
        Value::Number(n) if n.as_u64().is_some_and(|n| n < 2) => Ok(n.as_u64() == Some(1)),
        _ => Err("expected true or false".into()),
    }
}

/// Parses a whole number, which may also be a text.
pub(super) fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str().filter(|text| is_number(text))?.trim().replace(['_', ','], "").parse().ok())
}

fn is_number(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '_' | ','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_accepted_in_several_forms() {
        let words = Kind::Word(vec!["frozen-segments".into(), "type".into()]);
        for (kind, value, word) in [
            (Kind::Flag, json!("yes"), "true"),
            (Kind::Flag, json!(0), "false"),
            (Kind::Whole, json!("20"), "20"),
            (Kind::Whole, json!("1,000"), "1000"),
            (Kind::Number, json!("2.5"), "2.5"),
            (Kind::Text, json!(3), "3"),
            (Kind::Address, json!(255), "0xff"),
            (Kind::Address, json!("7f31"), "7f31"),
            (Kind::WholeOrText, json!("0x2"), "0x2"),
            (words.clone(), json!("FrozenSegments"), "frozen-segments"),
            (words.clone(), json!("frozen_segments"), "frozen-segments"),
            (words.clone(), json!("Type:desc"), "type:desc"),
        ] {
            assert_eq!(kind.word(&value), Ok(word.into()), "{kind:?} {value}");
        }
        for (kind, value) in [(Kind::Flag, json!("perhaps")), (Kind::Whole, json!("many")), (Kind::Whole, json!(-1)), (words, json!(1))] {
            assert!(kind.word(&value).is_err(), "{kind:?} {value}");
        }
        assert_eq!((whole(&json!("1_0")), whole(&json!(7)), whole(&json!("x"))), (Some(10), Some(7), None));
    }
}
