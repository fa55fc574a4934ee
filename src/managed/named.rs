//! Finds values by the paths that people write: `Lab.Program.Keep._items[3].Name`.

use super::Value;
use crate::session::{Error, Runtime};

/// A part of a path between dots: the name of a field or a part of a type name, and the indices after it.
#[derive(Debug, PartialEq, Eq)]
struct PathPart<'t> {
    name: &'t str,
    /// Offset of the end of the name in the whole text.
    end: usize,
    indices: Vec<Index<'t>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index<'t> {
    /// An index in an array, or in a collection in its own order.
    Number(u64),
    /// The text of a dictionary's key.
    Key(&'t str),
}

/// Splits a path at dots outside of brackets and quotes.
fn split(text: &str) -> Option<Vec<PathPart<'_>>> {
    let mut parts = Vec::new();
    let (mut depth, mut from, mut in_quotes) = (0u32, 0usize, false);
    for (at, c) in text.char_indices().chain([(text.len(), '.')]) {
        match c {
            '"' => in_quotes = !in_quotes,
            _ if in_quotes => {}
            '<' | '(' | '[' => depth = depth.saturating_add(1),
            '>' | ')' | ']' => depth = depth.checked_sub(1)?,
            '.' if depth == 0 => {
                parts.push(part(text.get(from..at)?, from)?);
                from = at.saturating_add(1);
            }
            _ => {}
        }
    }
    (depth == 0 && !in_quotes).then_some(parts)
}

/// Parses a part that begins at `from`: `_items`, `_items[3]["a"]`, `Int32[]`.
fn part(text: &str, from: usize) -> Option<PathPart<'_>> {
    let (mut name, mut indices) = (text, Vec::new());
    // In `Int32[]` and `Int32[,]`, the brackets belong to the type.
    while let Some((before, index)) = name.strip_suffix(']').and_then(|head| head.rsplit_once('[')) {
        let key = index.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).map(Index::Key);
        let Some(index) = key.or_else(|| index.parse().ok().map(Index::Number)) else { break };
        indices.push(index);
        name = before;
    }
    indices.reverse();
    (!name.is_empty()).then(|| PathPart { name, end: from.saturating_add(name.len()), indices })
}

impl Runtime {
    /// The value at this path: a static field by the full name of its type, followed by fields and indices. An index in quotes is the key of a
    /// dictionary. Any other index is the number of an element of an array, or of a collection in the collection's own order.
    ///
    /// ```
    /// let runtime = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?;
    /// let dog = runtime.value_named("Lab.Program.Keep._items[1][0]")?.object()?;
    /// assert_eq!(dog.type_name(), "Lab.Dog");
    /// assert_eq!(runtime.value_named("Lab.Program.Keep[1][0]._name")?.read::<String>()?, "dog0");
    /// # Ok::<(), gcdump::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Nothing`] if no loaded type has a static field of that name; otherwise as [`Value::field`],
    /// [`Object::element`](super::Object::element) and [`Object::collection`](super::Object::collection).
    pub fn value_named(&self, name: &str) -> Result<Value, Error> {
        let none = || Error::Nothing(format!("there is no static field {name}"));
        let parts = split(name).ok_or_else(none)?;
        let plain = parts.iter().take_while(|part| part.indices.is_empty()).count();
        let mut why = None;
        // The longest prefix that names a type with such a static field is used. The next part names the field.
        for place in (1..parts.len()).rev().filter(|place| *place <= plain) {
            let (Some(last), Some(field)) = (parts.get(place.saturating_sub(1)), parts.get(place)) else { continue };
            let Some(Ok(of)) = name.get(..last.end).map(|of| self.type_named(of)) else { continue };
            match of.static_field(field.name) {
                Ok(value) => {
                    let value = indexed(value, &field.indices)?;
                    let rest = parts.iter().skip(place.saturating_add(1));
                    return rest.into_iter().try_fold(value, |value, part| indexed(value.field(part.name)?, &part.indices));
                }
                Err(error) => why = why.or(Some(error)),
            }
        }
        Err(why.unwrap_or_else(none))
    }
}

/// The element that `indices` select, starting at `value`.
fn indexed(value: Value, indices: &[Index<'_>]) -> Result<Value, Error> {
    indices.iter().try_fold(value, |value, index| {
        let object = value.object()?;
        match index {
            Index::Number(number) if object.is_array() => object.element(*number),
            Index::Number(number) => {
                let (collection, place) = (object.collection()?, usize::try_from(*number).unwrap_or(usize::MAX));
                let none =
                    || Error::Nothing(format!("{} has {} elements; there is no element {number}", value.label(), collection.count()));
                collection.items()?.nth(place).ok_or_else(none)
            }
            Index::Key(key) => {
                let is_key = |found: &Value| found.text() == *key || found.read::<String>().is_ok_and(|text| text == *key);
                let none = || Error::Nothing(format!("{} has no key \"{key}\"", value.label()));
                object.entries()?.find(|(found, _)| is_key(found)).map(|(_, value)| value).ok_or_else(none)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_dots_outside_of_brackets() {
        let names = |text| split(text).map(|parts| parts.into_iter().map(|p| (p.name.to_string(), p.indices.len())).collect::<Vec<_>>());
        let whole = |list: &[(&str, usize)]| Some(list.iter().map(|(name, n)| ((*name).to_string(), *n)).collect::<Vec<_>>());
        assert_eq!(names("A.B<C.D>.e[3][\"x.y]\"].f"), whole(&[("A", 0), ("B<C.D>", 0), ("e", 2), ("f", 0)]));
        assert_eq!(names("Int32[].x"), whole(&[("Int32[]", 0), ("x", 0)]));
        assert_eq!(split("a.b").unwrap()[1].end, 3);
        for wrong in ["", ".a", "a.", "a..b", "a[", "a]", "[3]", "a<b", "a[\"b"] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }
}
