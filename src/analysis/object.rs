//! One object: its type, its fields or its elements.

use crate::base::{Addr, Answer, NoteKind, Notes};
use crate::clr::values::{ValueLimits, Values};
use crate::model::{DimensionModel, ObjectReport};

/// Words of the smallest object.
const MIN_WORDS: u64 = 3;

/// Which elements of an array, and how much of a string.
#[derive(Clone, Copy, Debug)]
pub struct ObjectOptions {
    /// First element.
    pub start: u64,
    /// How many elements at most.
    pub count: u64,
}

impl Default for ObjectOptions {
    fn default() -> ObjectOptions {
        ObjectOptions { start: 0, count: 100 }
    }
}

/// The limits with which one object is shown.
pub fn object_limits() -> ValueLimits {
    ValueLimits::default()
}

/// The object that starts at `address`; `None` where no valid method table is there.
pub fn object(values: &Values, address: Addr, options: &ObjectOptions) -> Option<Answer<ObjectReport>> {
    let mt = values.method_table(address)?;
    let names = values.types().names();
    let info = names.method_tables().read(mt).ok()?;
    let name = names.name(mt);
    let word = values.types().pointer_bytes();
    let count = if info.component_size == 0 { Some(0) } else { values.component_count(address) };
    let elements_bytes = u64::from(count?).checked_mul(u64::from(info.component_size))?;
    let size = u64::from(info.base_size).checked_add(elements_bytes)?.max(MIN_WORDS.checked_mul(word)?);
    let shape = values.array(&info, address);
    let string = if info.is_string { values.string(address) } else { None };
    let mut truncated = Vec::new();
    if string.as_ref().is_some_and(|(_, length)| *length > values.limits().string_chars) {
        truncated.push("string".to_string());
    }
    let elements = shape.as_ref().map(|s| values.elements(s, options.start, options.count)).unwrap_or_default();
    let listed = u64::try_from(elements.len()).unwrap_or(u64::MAX);
    if shape.as_ref().is_some_and(|s| listed < s.length) {
        truncated.push("elements".to_string());
    }
    let fields = if info.is_array || info.is_string { Some(Vec::new()) } else { values.fields(mt, address) };
    let mut notes = Notes::new();
    if fields.is_none() || (info.is_array && shape.is_none()) || (info.is_string && string.is_none()) {
        notes.add(NoteKind::Missing, address, "a part of the object, or of what describes its type, is not in the dump");
    }
    let report = ObjectReport {
        address,
        type_name: Some(name.name.clone()),
        method_table: mt,
        interior: None,
        segment: None,
        header: None,
        size,
        length: if info.is_array || info.is_string { count.map(u64::from) } else { None },
        dimensions: shape
            .iter()
            .flat_map(|s| &s.dimensions)
            .map(|d| DimensionModel { length: d.length, lower_bound: d.lower_bound })
            .collect(),
        string: string.map(|(text, _)| text),
        boxed: values.boxed(&info, address),
        fields: fields.unwrap_or_default(),
        elements,
        first_element: options.start,
        truncated,
    };
    Some(Answer::new(report, notes))
}
