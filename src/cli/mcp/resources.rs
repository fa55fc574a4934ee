//! Dumps as resources: a URI for each dump, whose contents are the summary of the dump.

use serde_json::{Value, json};

/// The beginning of the URI of a dump; the path follows.
const SCHEME: &str = "gcdump://dump/";

/// Lists the resources for an answer of the tool `dumps`.
pub(super) fn all(list: &Value) -> Value {
    let described = |dump: &Value| {
        let path = dump.get("path")?.as_str()?;
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let about = "What this dump is and can answer, as the tool info says";
        Some(json!({
            "uri": uri(path),
            "name": name,
            "title": name,
            "description": about,
            "mimeType": "application/json",
            "size": dump.get("bytes"),
        }))
    };
    list.get("dumps").and_then(Value::as_array).into_iter().flatten().filter_map(described).collect()
}

/// Returns the contents of a resource.
pub(super) fn contents(uri: &str, text: &str) -> Value {
    json!([{ "uri": uri, "mimeType": "application/json", "text": text }])
}

/// Returns the URI of the dump at `path`.
fn uri(path: &str) -> String {
    let mut uri = String::from(SCHEME);
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Returns the path in a URI; `None` if the URI does not name a dump.
pub(super) fn path(uri: &str) -> Option<String> {
    let mut bytes = uri.strip_prefix(SCHEME)?.bytes();
    let mut path = Vec::new();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                path.push(u8::try_from(high.checked_mul(16)?.checked_add(low)?).ok()?);
            }
            byte => path.push(byte),
        }
    }
    String::from_utf8(path).ok().filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_converted_to_paths() {
        for place in ["/var/dumps/a b%.dmp", "C:\\dumps\\ä.dmp", "/x"] {
            let uri = uri(place);
            assert!(uri.is_ascii() && !uri.contains(' '), "{uri}");
            assert_eq!(path(&uri).as_deref(), Some(place));
        }
        for other in ["", "file:///etc/passwd", "gcdump://dump/", "gcdump://dump/%2", "gcdump://dump/%zz", "gcdump://dump/%ff"] {
            assert_eq!(path(other), None, "{other}");
        }
        let list = json!({ "dumps": [{ "path": "/d/a.dmp", "bytes": 5 }] });
        assert_eq!(all(&list)[0]["uri"], "gcdump://dump//d/a.dmp");
        assert_eq!(contents("u", "t")[0]["text"], "t");
    }
}
