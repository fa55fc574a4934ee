//! Shortens documents to a number of bytes: drops the ends of long lists and texts, and describes what was dropped.

use serde_json::{Map, Value};

use super::rpc::beginning;

/// Characters of a text that are always kept.
const TEXT: usize = 100;
/// Maximum number of lists to name.
const NAMED: usize = 6;
/// Maximum number of attempts, each with three quarters of the room of the previous one.
const ATTEMPTS: usize = 24;

/// A document that was fitted into a number of bytes.
pub(super) struct Fitted {
    pub(super) text: String,
    /// Description of the omitted parts, for people; `None` if the document is complete.
    pub(super) lacks: Option<String>,
}

/// Shortens `document`, whose text is `text`, to `most` bytes. Fields that are null are left out first, then the ends of lists and texts, then whole
/// fields, the largest first.
pub(super) fn fit(document: &Value, text: String, most: usize) -> Fitted {
    if text.len() <= most {
        return Fitted { text, lacks: None };
    }
    let bare = without_nulls(document);
    let mut room = most;
    let (mut shown, mut best) = (bare.clone(), bare.to_string());
    let mut cuts = Cuts::default();
    for _ in 0..ATTEMPTS {
        if best.len() <= most {
            break;
        }
        let mut tried = Cuts::default();
        let smaller = shrunk(&bare, room, "", &mut tried);
        let text = smaller.to_string();
        if text.len() < best.len() {
            (shown, best, cuts) = (smaller, text, tried);
        }
        room = room.saturating_mul(3) / 4;
    }
    // Lists keep an element and texts their beginning, so a document of many fields may still be too large.
    while best.len() > most
        && let Some(path) = without_largest(&mut shown)
    {
        cuts.lists.retain(|(list, ..)| !is_within(list, &path));
        cuts.fields.push(path);
        best = shown.to_string();
    }
    Fitted { text: best, lacks: Some(cuts.describe()) }
}

/// The field with the answer, whose fields are left out one by one.
const DATA: &str = "data";

/// Minimum size in bytes of a field of the header that is left out before fields of the answer, since every answer repeats the header.
const HEADER: usize = 60;

/// Removes a field of `document` or of its field `data`: the largest large one of the header, else the largest of `data`, else the largest of the
/// header. Returns the path of the field, or `None` if there are no more fields.
fn without_largest(document: &mut Value) -> Option<String> {
    let fields = document.as_object_mut()?;
    let outer = fields.iter().filter(|(name, value)| *name != DATA || value.as_object().is_none_or(Map::is_empty));
    let outer = outer.map(|(name, value)| ((size(value) >= HEADER, false, size(value)), None, name.clone()));
    let inner = fields.get(DATA).and_then(Value::as_object).into_iter().flatten();
    let inner = inner.map(|(name, value)| ((false, true, size(value)), Some(DATA), name.clone()));
    let (_, within, name) = outer.chain(inner).max_by_key(|(rank, ..)| *rank)?;
    match within {
        Some(data) => {
            fields.get_mut(data)?.as_object_mut()?.remove(&name)?;
            Some(format!("{data}.{name}"))
        }
        None => fields.remove(&name).map(|_| name),
    }
}

/// Whether `path` is the field `of` or a part of it.
fn is_within(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The omitted parts.
#[derive(Default)]
struct Cuts {
    /// Paths of lists in document order, with the kept and the total number of elements.
    lists: Vec<(String, usize, usize)>,
    /// Paths of fields that were left out as a whole, the largest first.
    fields: Vec<String>,
    texts: bool,
}

impl Cuts {
    fn list(&mut self, path: &str, kept: usize, of: usize) {
        match self.lists.iter_mut().find(|(known, _, _)| known == path) {
            // Lists within the elements of another list share a path, so their numbers are added.
            Some((_, all, total)) => {
                *all = all.saturating_add(kept);
                *total = total.saturating_add(of);
            }
            None => self.lists.push((path.into(), kept, of)),
        }
    }

    fn describe(&self) -> String {
        let mut parts: Vec<String> = self.fields.iter().take(NAMED).cloned().collect();
        if self.fields.len() > NAMED {
            parts.push(format!("{} further fields", self.fields.len().saturating_sub(NAMED)));
        }
        let lists = self.lists.iter().take(NAMED).map(|(path, kept, of)| format!("{path}: {kept} of {of}"));
        parts.extend(lists);
        if self.lists.len() > NAMED {
            parts.push("further lists".into());
        }
        if self.texts {
            parts.push("the ends of long texts".into());
        }
        if parts.is_empty() {
            parts.push("fields that are null".into());
        }
        parts.join("; ")
    }
}

/// Returns the size of a value as JSON in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(|v| size(v).saturating_add(1)).fold(2, usize::saturating_add),
        Value::Object(fields) => fields.iter().map(|(k, v)| named(k).saturating_add(size(v))).fold(2, usize::saturating_add),
        other => other.to_string().len(),
    }
}

/// Returns the size of a field name in bytes, with its quotes, colon and comma.
fn named(name: &str) -> usize {
    name.len().saturating_add(4)
}

fn without_nulls(value: &Value) -> Value {
    let says = |v: &Value| !v.is_null() && v.as_array().is_none_or(|list| !list.is_empty());
    match value {
        Value::Array(list) => list.iter().map(without_nulls).collect(),
        Value::Object(fields) => fields.iter().filter(|(_, v)| says(v)).map(|(k, v)| (k.clone(), without_nulls(v))).collect(),
        other => other.clone(),
    }
}

/// Shortens `value` to about `room` bytes.
fn shrunk(value: &Value, room: usize, path: &str, cuts: &mut Cuts) -> Value {
    if size(value) <= room {
        return value.clone();
    }
    match value {
        Value::String(text) => {
            let part = beginning(text, room.max(TEXT));
            cuts.texts |= part.len() != text.len();
            part.into_owned().into()
        }
        Value::Object(fields) => {
            let share = share(fields, room);
            let shrink = |(name, value): (&String, &Value)| {
                let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                (name.clone(), shrunk(value, share, &inner, cuts))
            };
            fields.iter().map(shrink).collect::<Map<_, _>>().into()
        }
        Value::Array(list) => {
            // One element gets at most a quarter of the room, so that several remain.
            let (each, mut left, inner) = (room / 4, room, format!("{path}[]"));
            let mut kept = Vec::new();
            for element in list {
                let element = shrunk(element, each.min(left), &inner, cuts);
                let bytes = size(&element).saturating_add(1);
                if bytes > left && !kept.is_empty() {
                    break;
                }
                left = left.saturating_sub(bytes);
                kept.push(element);
            }
            if kept.len() < list.len() {
                cuts.list(path, kept.len(), list.len());
            }
            kept.into()
        }
        other => other.clone(),
    }
}

/// Returns the size limit of a field so that all fields fit `room`: large fields use the room that small ones leave.
fn share(fields: &Map<String, Value>, room: usize) -> usize {
    let mut sizes: Vec<usize> = fields.values().map(size).collect();
    sizes.sort_unstable();
    let mut left = fields.keys().map(|k| named(k)).fold(room, usize::saturating_sub);
    let mut fields = sizes.len();
    for size in sizes {
        let fair = left.checked_div(fields).unwrap_or_default();
        if size > fair {
            return fair;
        }
        left = left.saturating_sub(size);
        fields = fields.saturating_sub(1);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(document: &Value, most: usize) -> Fitted {
        fit(document, document.to_string(), most)
    }

    #[test]
    fn a_document_that_fits_is_unchanged() {
        let document = json!({ "a": null, "b": [1, 2] });
        let fitted = of(&document, 100);
        assert_eq!((fitted.text, fitted.lacks), (document.to_string(), None));
    }

    #[test]
    fn long_lists_are_shortened_and_short_lists_kept() {
        let frames: Vec<Value> = (0..50).map(|i| json!({ "method": format!("Lab.Program.Method{i}"), "file": null })).collect();
        let threads: Vec<Value> = (0..40).map(|i| json!({ "id": i, "frames": frames })).collect();
        let document = json!({ "complete": true, "total": 40, "few": [1, 2, 3], "threads": threads, "none": null });
        for most in [1000, 4000, 20_000] {
            let fitted = of(&document, most);
            assert!(fitted.text.len() <= most && fitted.text.len() > most / 3, "{most}: {}", fitted.text.len());
            let shown: Value = serde_json::from_str(&fitted.text).unwrap();
            assert_eq!((&shown["total"], &shown["few"]), (&json!(40), &json!([1, 2, 3])));
            let kept = shown["threads"].as_array().unwrap();
            assert!(!kept.is_empty() && kept.len() < 40 && kept[0]["frames"][0]["method"] == "Lab.Program.Method0", "{}", fitted.text);
            let lacks = fitted.lacks.unwrap();
            assert!(lacks.contains(&format!("threads: {} of 40", kept.len())) && lacks.contains("threads[].frames: "), "{lacks}");
        }
        // Nulls are removed before lists and texts are shortened.
        let nulls: Map<String, Value> = (0..100).map(|i| (format!("field{i}"), Value::Null)).chain([("a".into(), 1.into())]).collect();
        let fitted = of(&nulls.into(), 500);
        assert_eq!((fitted.text.as_str(), fitted.lacks.as_deref()), (r#"{"a":1}"#, Some("fields that are null")));
        // Whole fields are left out if the beginnings of lists and texts are too large.
        let many: Map<String, Value> = (0..30).map(|i| (format!("field{i}"), "x".repeat(20 + i).into())).collect();
        let document = json!({ "schema": "gcdump/2", "dump": { "path": "a" }, "data": many, "list": [1, 2] });
        for most in [2, 40, 300, 600] {
            let fitted = of(&document, most);
            let shown: Value = serde_json::from_str(&fitted.text).unwrap();
            assert!(fitted.text.len() <= most && shown.is_object(), "{most}: {}", fitted.text);
            assert!(fitted.lacks.unwrap().starts_with("data.field29; data.field28; "), "the header is small");
        }
        let text = of(&json!({ "text": "x".repeat(5000) }), 1000);
        assert!(text.text.len() < 1000 && text.lacks.as_deref() == Some("the ends of long texts"), "{}", text.text);
    }
}
