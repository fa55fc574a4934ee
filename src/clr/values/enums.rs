//! Names of enum values, from the literal fields in metadata.

use std::sync::{Arc, Mutex, PoisonError};

use super::plain::Text;
use crate::base::hash::Map;
use crate::base::missed::Kept;
use crate::clr::fields::{Definition, Types};

/// `FieldAttributes.Literal`.
const LITERAL: u32 = 0x40;
/// Maximum number of cached names per enum.
const MAX_NAMES: usize = 1 << 16;
/// Maximum number of names in a combined value.
const MAX_PARTS: usize = 64;

type Literals = Vec<(u64, String)>;

/// The names of all enums seen so far.
#[derive(Debug, Default)]
pub(super) struct Enums {
    known: Mutex<Map<Definition, Kept<Arc<Literals>>>>,
}

impl Enums {
    fn literals(&self, types: &Types, definition: Definition) -> Arc<Literals> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&definition).map(|list| Arc::clone(list.get()));
        if let Some(list) = known {
            return list;
        }
        let list = Kept::of(|| Arc::new(read(types, definition).unwrap_or_default()));
        Arc::clone(self.known.lock().unwrap_or_else(PoisonError::into_inner).entry(definition).or_insert(list).get())
    }

    /// The value of the constant `name` of an enum.
    pub(super) fn constant(&self, types: &Types, definition: Definition, name: &str) -> Option<u64> {
        self.literals(types, definition).iter().find(|(_, own)| own == name).map(|(value, _)| *value)
    }

    /// The name of the value `bits` of an enum of `width` bits; `number` if the value has no name.
    pub(super) fn name(&self, types: &Types, definition: Definition, bits: u64, width: u32, number: &Text) -> Text {
        let literals = self.literals(types, definition);
        match combined(&literals, bits, mask(width)) {
            Some(name) => Text { text: format!("{name} ({})", number.text), value: name.into() },
            None => Text::same(number.text.clone()),
        }
    }
}

fn mask(width: u32) -> u64 {
    u64::MAX.checked_shr(64u32.saturating_sub(width)).unwrap_or(0)
}

fn read(types: &Types, definition: Definition) -> Option<Literals> {
    if let Some(program) = types.names().native_aot() {
        let literals = program.literals_of(types.loaded(definition)?)?;
        return Some(literals.iter().take(MAX_NAMES).map(|(name, value)| (value.cast_unsigned(), name.clone())).collect());
    }
    let module = types.names().module(definition.module);
    let metadata = module.metadata.as_ref()?;
    let rows = metadata.fields_of(definition.rid).into_iter().take(MAX_NAMES);
    let named = rows.filter_map(|rid| {
        let row = metadata.field(rid).filter(|r| r.flags & LITERAL != 0)?;
        let constant = metadata.constant(rid)?;
        let mut bytes = [0u8; 8];
        let n = constant.bytes.len().min(8);
        bytes.get_mut(..n)?.copy_from_slice(constant.bytes.get(..n)?);
        Some((u64::from_le_bytes(bytes), row.name))
    });
    Some(named.collect())
}

/// The name of `bits`, or the names of the flags in `bits`. The names are those that .NET prints for `[Flags]` enums, but ` | ` separates
/// them.
fn combined(literals: &[(u64, String)], bits: u64, mask: u64) -> Option<String> {
    if let Some((_, name)) = literals.iter().find(|(value, _)| value & mask == bits) {
        return Some(name.clone());
    }
    // Values are tried in descending order, so that combined flags precede single flags.
    let mut sorted: Vec<(u64, &str)> = literals.iter().map(|(v, n)| (v & mask, n.as_str())).filter(|(v, _)| *v != 0).collect();
    sorted.sort_by_key(|(v, _)| std::cmp::Reverse(*v));
    let (mut left, mut parts) = (bits, Vec::new());
    for (value, name) in sorted {
        if left & value == value && parts.len() < MAX_PARTS {
            left &= !value;
            parts.push(name);
        }
    }
    parts.reverse();
    (left == 0 && !parts.is_empty()).then(|| parts.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_combine_and_unknown_bits_have_no_name() {
        let list: Literals = [(0, "None"), (1, "A"), (2, "B"), (3, "AB"), (4, "C")].map(|(v, n)| (v, n.to_string())).into();
        assert_eq!(combined(&list, 0, 0xff).as_deref(), Some("None"));
        assert_eq!(combined(&list, 5, 0xff).as_deref(), Some("A | C"));
        assert_eq!(combined(&list, 7, 0xff).as_deref(), Some("AB | C"));
        assert_eq!(combined(&list, 9, 0xff), None);
        assert_eq!(combined(&[], 0, 0xff), None);
        assert_eq!((mask(8), mask(64), mask(0)), (0xff, u64::MAX, 0));
    }
}
