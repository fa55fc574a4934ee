//! Names of types, methods and fields. Many rows share one allocation.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::glob;

/// The name of a type, method or field. Cheap to clone.
///
/// A name has two forms. The exact form is the runtime's name; dereferencing, comparison and serialization use it. [`fmt::Display`] prints
/// the form for people, which differs for compiler-generated names: `async Lab.Service.Fetch` for the box of an async method.
#[derive(Clone)]
pub struct Name(Arc<Text>);

/// Both forms of a name.
struct Text {
    exact: Box<str>,
    /// The form for people; `None` if it equals the exact form.
    shown: Option<Box<str>>,
}

impl Name {
    /// The name `exact`, shown to people as `shown`.
    pub fn shown_as(exact: impl Into<Box<str>>, shown: Option<String>) -> Name {
        Name(Arc::new(Text { exact: exact.into(), shown: shown.map(String::into_boxed_str) }))
    }

    /// The exact form.
    pub fn as_str(&self) -> &str {
        &self.0.exact
    }

    /// A copy in separate memory. Threads that clone this name and the copy do not contend for one reference count.
    pub(crate) fn unshared(&self) -> Name {
        Name::shown_as(self.as_str(), self.0.shown.as_deref().map(String::from))
    }

    /// The form for people, as a name.
    pub fn display(&self) -> Name {
        match &self.0.shown {
            Some(shown) => Name::from(&**shown),
            None => self.clone(),
        }
    }

    /// The form for people without namespaces: `Dictionary<String, Order>+Entry[]`.
    pub(crate) fn without_namespaces(&self) -> String {
        let (mut out, mut word) = (String::new(), String::new());
        for c in self.shown().chars() {
            if c.is_alphanumeric() || matches!(c, '_' | '`' | '.') {
                word.push(c);
                continue;
            }
            out.push_str(word.rsplit('.').next().unwrap_or(&word));
            word.clear();
            out.push(c);
        }
        out.push_str(word.rsplit('.').next().unwrap_or(&word));
        out
    }

    /// Whether the glob `pattern` matches one of the two forms.
    pub(crate) fn matches(&self, pattern: &str) -> bool {
        glob(pattern, self) || glob(pattern, self.shown())
    }

    /// The form for people.
    pub fn shown(&self) -> &str {
        self.0.shown.as_deref().unwrap_or(&self.0.exact)
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::shown_as(text, None)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name::shown_as(text, None)
    }
}

/// Converts to the exact form.
impl From<Name> for String {
    fn from(name: Name) -> String {
        name.as_str().into()
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.shown())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

#[cfg(feature = "cli")]
impl schemars::JsonSchema for Name {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "string".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_machines_see_different_forms() {
        let name = Name::shown_as("Box<Lab.Service+<Fetch>d__3>", Some("async Lab.Service.Fetch".into()));
        assert_eq!((name.to_string(), &*name), ("async Lab.Service.Fetch".to_string(), "Box<Lab.Service+<Fetch>d__3>"));
        assert_eq!(serde_json::to_string(&name).unwrap(), "\"Box<Lab.Service+<Fetch>d__3>\"");
        assert_eq!(name, Name::from("Box<Lab.Service+<Fetch>d__3>"), "the exact form decides");
    }

    #[test]
    fn names_without_namespaces() {
        let short = |name: &str| Name::from(name).without_namespaces();
        assert_eq!(short("System.Collections.Generic.Dictionary<System.String, Lab.A>+Entry[]"), "Dictionary<String, A>+Entry[]");
        assert_eq!(short("Node"), "Node");
    }
}
