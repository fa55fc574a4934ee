//! JSON-RPC 2.0 as used by the Model Context Protocol: one message per line.

use std::borrow::Cow;
use std::io::{self, BufRead};

use serde_json::{Map, Value, json};

/// Maximum size of a message in bytes.
pub(super) const LONGEST: usize = 1 << 20;

/// Maximum number of characters of the input that an error message repeats.
const REPEATED: usize = 200;

/// Returns the part of `text` that an error repeats.
pub(super) fn cut(text: &str) -> Cow<'_, str> {
    beginning(text, REPEATED)
}

/// Returns the first `most` characters of `text`, with a mark if more follow.
pub(super) fn beginning(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

/// Whether `value` is short enough to repeat with each message about a request: a number or a short text.
pub(super) fn may_be_repeated(value: &Value) -> bool {
    value.is_number() || value.as_str().is_some_and(|text| text.len() <= REPEATED)
}

/// Error code: the message is not JSON.
pub(super) const NO_JSON: i64 = -32700;
/// Error code: the message is not a request.
pub(super) const NO_REQUEST: i64 = -32600;
/// Error code: unknown method.
pub(super) const NO_METHOD: i64 = -32601;
/// Error code: invalid parameters.
pub(super) const NO_PARAMS: i64 = -32602;
/// Error code: unknown resource.
pub(super) const NO_RESOURCE: i64 = -32002;
/// Error code: unsupported protocol version.
pub(super) const NO_VERSION: i64 = -32022;

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The line without its end.
    Text(Vec<u8>),
    /// A line longer than [`LONGEST`], which was skipped.
    TooLong,
}

/// Passes each nonempty line of `input` to `take` until `take` returns false.
///
/// # Errors
/// Errors of reading `input`.
pub(super) fn lines(mut input: impl BufRead, mut take: impl FnMut(Line) -> bool) -> io::Result<()> {
    let (mut line, mut too_long) = (Vec::new(), false);
    loop {
        let read = match input.fill_buf() {
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let end = memchr::memchr(b'\n', read);
        let part = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
        too_long |= line.len().saturating_add(part.len()) > LONGEST;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(part);
        }
        let (ended, used) = (read.is_empty(), part.len().saturating_add(usize::from(end.is_some())));
        input.consume(used);
        if end.is_some() || ended {
            let text = std::mem::take(&mut line);
            let goes_on = match std::mem::take(&mut too_long) {
                true => take(Line::TooLong),
                false => text.trim_ascii().is_empty() || take(Line::Text(text)),
            };
            if ended || !goes_on {
                return Ok(());
            }
        }
    }
}

/// The error in the response to a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Failure {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), data: None }
    }
}

/// A message from the client.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// A message that requires an answer.
    Request {
        /// A string or a number.
        id: Value,
        method: String,
        params: Map<String, Value>,
    },
    /// A message without an answer.
    Notification { method: String, params: Map<String, Value> },
    /// The answer to a request, although this server sends none.
    Response,
}

/// Parses the message in `value`. For an invalid message, returns its id and the reason.
pub(super) fn message(value: Value) -> Result<Message, (Value, Failure)> {
    let Value::Object(mut fields) = value else {
        return Err((Value::Null, Failure::new(NO_REQUEST, "a message is an object")));
    };
    let id = fields.remove("id");
    let known = id.as_ref().filter(|id| may_be_repeated(id)).cloned();
    let refuse = |why: &str| Err((known.clone().unwrap_or(Value::Null), Failure::new(NO_REQUEST, why)));
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse("\"jsonrpc\" must be \"2.0\"");
    }
    let method = match fields.remove("method") {
        Some(Value::String(method)) => method,
        None if fields.contains_key("result") || fields.contains_key("error") => return Ok(Message::Response),
        _ => return refuse("\"method\" must be a string"),
    };
    let params = match fields.remove("params") {
        Some(Value::Object(params)) => Ok(params),
        None => Ok(Map::new()),
        Some(_) => Err("\"params\" must be an object"),
    };
    match (id, known, params) {
        (None, _, params) => Ok(Message::Notification { method, params: params.unwrap_or_default() }),
        (Some(_), None, _) => {
            let why = format!("\"id\" must be a number or a string of at most {REPEATED} bytes");
            Err((Value::Null, Failure::new(NO_REQUEST, why)))
        }
        (Some(_), Some(id), Ok(params)) => Ok(Message::Request { id, method, params }),
        (Some(_), Some(id), Err(why)) => Err((id, Failure::new(NO_PARAMS, why))),
    }
}

/// Returns the answer to the request with this id.
pub(super) fn response(id: &Value, outcome: Result<Value, Failure>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Failure { code, message, data }) => {
            let mut error = json!({ "code": code, "message": message });
            if let (Some(data), Some(fields)) = (data, error.as_object_mut()) {
                fields.insert("data".into(), data);
            }
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}

/// Returns a message that expects no answer.
pub(super) fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(input: &[u8], buffer: usize) -> Vec<Line> {
        let mut out = Vec::new();
        let done = lines(BufReader::with_capacity(buffer, input), |line| {
            out.push(line);
            true
        });
        done.unwrap();
        out
    }

    #[test]
    fn lines_that_are_too_long_are_skipped() {
        let text = |s: &str| Line::Text(s.into());
        for buffer in [1, 2, 3, 64] {
            assert_eq!(all(b"one\n\n \r\ntwo", buffer), [text("one"), text("two")]);
        }
        let long = [&vec![b'x'; LONGEST][..], b"\n", &vec![b'y'; LONGEST + 1], b"\nafter\n"].concat();
        let found = all(&long, 1000);
        assert_eq!(found.len(), 3);
        assert!(matches!(&found[0], Line::Text(line) if line.len() == LONGEST));
        assert_eq!((&found[1], &found[2]), (&Line::TooLong, &text("after")));
        assert_eq!(all(&vec![b'z'; LONGEST + 1], 4096), [Line::TooLong]);
    }

    #[test]
    fn messages_are_classified() {
        let of = |text: &str| message(serde_json::from_str(text).unwrap());
        let request = of(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).unwrap();
        assert_eq!(request, Message::Request { id: "a".into(), method: "ping".into(), params: Map::new() });
        assert!(matches!(of(r#"{"jsonrpc":"2.0","method":"x","params":[]}"#), Ok(Message::Notification { .. })));
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Ok(Message::Response));
        for (text, id, code) in [
            ("3", Value::Null, NO_REQUEST),
            (r#"{"id":1,"method":"ping"}"#, 1.into(), NO_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, 1.into(), NO_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, 1.into(), NO_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null, NO_REQUEST),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, Value::Null, NO_REQUEST),
            (&format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "i".repeat(201)), Value::Null, NO_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, 1.into(), NO_PARAMS),
        ] {
            let (found, failure) = of(text).unwrap_err();
            assert_eq!((found, failure.code), (id, code), "{text}");
        }
    }
}
