//! The text of a descriptor: its items, and changes to them.

use gcdump::internals::contract::DescriptorItem;
use serde_json::Value;

/// Name of an added item.
pub const ADDED: &str = "AddedByATest";

/// A change to one item.
#[derive(Clone, Debug)]
pub enum Change {
    /// The item is removed.
    Remove,
    /// The item has another name.
    Rename,
    /// A second item is added beside it.
    Add,
    /// The item has another type in the text.
    Retype,
    /// The item has another value.
    Value(&'static str),
    /// The item occurs twice.
    Twice,
}

const OF_FIELDS: &[Change] = &[
    Change::Remove,
    Change::Rename,
    Change::Add,
    Change::Retype,
    Change::Twice,
    Change::Value("-8"),
    Change::Value("[-2147483648,\"pointer\"]"),
    Change::Value("2147483640"),
    Change::Value("99999999999999999999"),
    Change::Value("null"),
    Change::Value("true"),
    Change::Value("{}"),
    Change::Value("[[[1]]]"),
    Change::Value("\"text\""),
];
const OF_GLOBALS: &[Change] = &[
    Change::Remove,
    Change::Rename,
    Change::Add,
    Change::Retype,
    Change::Value("null"),
    Change::Value("false"),
    Change::Value("{\"a\":{}}"),
    Change::Value("[[[1]]]"),
    Change::Value("[1,2,3]"),
];
const OF_TYPES: &[Change] =
    &[Change::Remove, Change::Rename, Change::Add, Change::Value("null"), Change::Value("5"), Change::Value("[{}]")];
const OF_CONTRACTS: &[Change] =
    &[Change::Remove, Change::Rename, Change::Add, Change::Value("null"), Change::Value("{}"), Change::Value("[1]")];

impl Change {
    /// Returns all changes to such an item.
    pub fn of(item: &DescriptorItem) -> &'static [Change] {
        match item {
            DescriptorItem::Field(..) | DescriptorItem::Size(_) => OF_FIELDS,
            DescriptorItem::Global(_) => OF_GLOBALS,
            DescriptorItem::Type(_) => OF_TYPES,
            DescriptorItem::Contract(_) => OF_CONTRACTS,
        }
    }

    /// Whether the item keeps its meaning.
    pub fn keeps(&self) -> bool {
        matches!(self, Change::Add | Change::Retype)
    }

    /// Whether the item exists but cannot be used.
    pub fn is_unusable(&self) -> bool {
        matches!(self, Change::Value(_) | Change::Twice)
    }

    /// Returns the item that is added.
    pub fn added(&self, item: &DescriptorItem) -> Option<DescriptorItem> {
        let name = || ADDED.to_string();
        matches!(self, Change::Add | Change::Rename).then(|| match item {
            DescriptorItem::Type(_) => DescriptorItem::Type(name()),
            DescriptorItem::Size(t) | DescriptorItem::Field(t, _) => DescriptorItem::Field(t.clone(), name()),
            DescriptorItem::Global(_) => DescriptorItem::Global(name()),
            DescriptorItem::Contract(_) => DescriptorItem::Contract(name()),
        })
    }
}

/// A JSON value as written: dictionaries keep their order, and may have an entry twice.
#[derive(Clone, Debug)]
enum Node {
    Raw(String),
    Dict(Vec<(String, Node)>),
}

impl Node {
    fn of(value: &Value, depth: usize) -> Node {
        match value {
            Value::Object(map) if depth < 3 => Node::Dict(map.iter().map(|(k, v)| (k.clone(), Node::of(v, depth + 1))).collect()),
            other => Node::Raw(other.to_string()),
        }
    }

    fn print(&self, reversed: bool, out: &mut String) {
        match self {
            Node::Raw(text) => out.push_str(text),
            Node::Dict(entries) => {
                out.push('{');
                for i in 0..entries.len() {
                    let (key, value) = &entries[if reversed { entries.len() - 1 - i } else { i }];
                    out.push_str(if i == 0 { "" } else { "," });
                    out.push_str(&format!("{key:?}:"));
                    value.print(reversed, out);
                }
                out.push('}');
            }
        }
    }

    fn entries(&mut self) -> &mut Vec<(String, Node)> {
        match self {
            Node::Dict(entries) => entries,
            Node::Raw(text) => panic!("no dictionary: {text}"),
        }
    }

    fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Node::Dict(entries) => entries.iter().find(|e| e.0 == key).map(|e| &e.1),
            Node::Raw(_) => None,
        }
    }
}

/// The text of a descriptor.
#[derive(Clone, Debug)]
pub struct Text {
    root: Node,
    reversed: bool,
}

fn keys(node: Option<&Node>) -> impl Iterator<Item = &String> {
    let entries = node.map_or(&[][..], |n| match n {
        Node::Dict(entries) => entries.as_slice(),
        Node::Raw(_) => &[],
    });
    entries.iter().map(|e| &e.0)
}

impl Text {
    pub fn parse(text: &[u8]) -> Text {
        Text { root: Node::of(&serde_json::from_slice(text).unwrap(), 0), reversed: false }
    }

    pub fn print(&self) -> String {
        let mut out = String::new();
        self.root.print(self.reversed, &mut out);
        out
    }

    pub fn print_reversed(&self) -> String {
        let mut out = String::new();
        self.root.print(true, &mut out);
        out
    }

    /// Writes every dictionary in the reverse order.
    pub fn reverse(&mut self) {
        self.reversed = true;
    }

    /// Every item.
    pub fn items(&self) -> Vec<DescriptorItem> {
        let mut out = Vec::new();
        let types = self.root.get("types");
        for t in keys(types) {
            out.push(DescriptorItem::Type(t.clone()));
            for f in keys(types.unwrap().get(t)) {
                out.push(if f == "!" { DescriptorItem::Size(t.clone()) } else { DescriptorItem::Field(t.clone(), f.clone()) });
            }
        }
        out.extend(keys(self.root.get("globals")).cloned().map(DescriptorItem::Global));
        out.extend(keys(self.root.get("contracts")).cloned().map(DescriptorItem::Contract));
        out
    }

    pub fn has(&self, item: &DescriptorItem) -> bool {
        let section = |section: &str, name: &str| self.root.get(section).and_then(|s| s.get(name));
        match item {
            DescriptorItem::Type(t) => section("types", t).is_some(),
            DescriptorItem::Size(t) => section("types", t).is_some_and(|t| t.get("!").is_some()),
            DescriptorItem::Field(t, f) => section("types", t).is_some_and(|t| t.get(f).is_some()),
            DescriptorItem::Global(g) => section("globals", g).is_some(),
            DescriptorItem::Contract(c) => section("contracts", c).is_some(),
        }
    }

    fn section(&mut self, name: &str) -> &mut Node {
        &mut self.root.entries().iter_mut().find(|e| e.0 == name).unwrap().1
    }

    pub fn change(&mut self, item: &DescriptorItem, change: &Change) {
        let (entries, name) = match item {
            DescriptorItem::Type(t) => (self.section("types").entries(), t.as_str()),
            DescriptorItem::Size(t) | DescriptorItem::Field(t, _) => {
                let fields = &mut self.section("types").entries().iter_mut().find(|e| e.0 == *t).unwrap().1;
                (fields.entries(), if let DescriptorItem::Field(_, f) = item { f.as_str() } else { "!" })
            }
            DescriptorItem::Global(g) => (self.section("globals").entries(), g.as_str()),
            DescriptorItem::Contract(c) => (self.section("contracts").entries(), c.as_str()),
        };
        let at = entries.iter().position(|e| e.0 == name).unwrap();
        match change {
            Change::Remove => drop(entries.remove(at)),
            Change::Rename => entries[at].0 = ADDED.into(),
            Change::Add => {
                let copy = (ADDED.into(), entries[at].1.clone());
                entries.insert(at, copy);
            }
            Change::Twice => {
                let copy = entries[at].clone();
                entries.push(copy);
            }
            Change::Value(text) => entries[at].1 = Node::Raw((*text).into()),
            Change::Retype => {
                let Node::Raw(text) = &entries[at].1 else { return };
                let value: Value = serde_json::from_str(text).unwrap();
                // `V`, `[V,"type"]`, `[I]` or `[[I],"type"]`; a contract has a version and no type.
                let inner = match &value {
                    _ if matches!(item, DescriptorItem::Contract(_)) => return,
                    Value::Array(list) if list.len() == 2 => list[0].clone(),
                    other => other.clone(),
                };
                entries[at].1 = Node::Raw(format!("[{inner},\"SomeOtherType\"]"));
            }
        }
    }

    pub fn add(&mut self, section: &str, name: &str, text: &str) {
        self.section(section).entries().push((name.into(), Node::Raw(text.into())));
    }

    /// Adds items that no reader knows, usable or not: fields to every type, types, globals, contracts, sub-descriptors, sections.
    pub fn enrich(&mut self) {
        const ODD: [&str; 8] = ["1", "-1", "null", "[[1],\"t\"]", "{\"a\":[{}]}", "[1,2,3]", "2147483647", "1e9"];
        for (name, fields) in self.section("types").entries() {
            let odd = ODD.iter().enumerate().map(|(i, text)| (format!("{name}{i}"), Node::Raw((*text).into())));
            fields.entries().extend(odd);
        }
        for section in ["types", "globals", "contracts"] {
            let odd = ODD.iter().enumerate().map(|(i, text)| (format!("Odd{i}"), Node::Raw((*text).into())));
            self.section(section).entries().extend(odd);
        }
        if self.root.get("subDescriptors").is_some() {
            let odd = ODD.iter().enumerate().map(|(i, text)| (format!("Odd{i}"), Node::Raw((*text).into())));
            self.section("subDescriptors").entries().extend(odd);
        }
        self.root.entries().push(("newSection".into(), Node::Raw("[{\"a\":null}]".into())));
    }
}
