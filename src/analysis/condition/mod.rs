//! Conditions on objects: `size > 1K and gen = gen2 and field("_state") = 3`.
//!
//! Conditions are three-valued, as in SQL. A comparison with a value that the object does not have, or that is not in the dump, is neither
//! true nor false. Only objects for which the whole condition is true are selected.

mod parse;
pub(super) mod rows;
mod terms;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::base::Name;
use crate::base::hash::Map;
use crate::gc::{Object, TypeIndex};
use crate::managed::BoundField;
use crate::model::Generation;
use crate::session::{Heap, Namer};
use terms::{Number, Term, term};

/// Properties of every object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Property {
    Size,
    Type,
    Module,
    Generation,
    /// Index of the GC heap.
    Heap,
    Address,
    /// Number of elements of an array, or of characters of a string.
    Length,
}

impl Property {
    fn named(name: &str) -> Option<Property> {
        Some(match name {
            "size" => Property::Size,
            "type" => Property::Type,
            "module" => Property::Module,
            "generation" | "gen" => Property::Generation,
            "heap" => Property::Heap,
            "address" => Property::Address,
            "length" => Property::Length,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Property::Size => "size",
            Property::Type => "type",
            Property::Module => "module",
            Property::Generation => "generation",
            Property::Heap => "heap",
            Property::Address => "address",
            Property::Length => "length",
        }
    }

    /// Whether the property is a number.
    fn is_number(self) -> bool {
        matches!(self, Property::Size | Property::Heap | Property::Address | Property::Length)
    }
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Property(Property),
    /// A field, by its path through references and structures.
    Field(Vec<String>),
    Number(Number),
    Text(String),
    Bool(bool),
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    /// Matches a glob.
    Like,
}

#[derive(Clone, Debug, PartialEq)]
struct Comparison {
    left: Operand,
    operator: Operator,
    right: Operand,
    /// Byte offset of the operator in the text, or of the field if the operator is omitted.
    offset: usize,
}

/// A condition on objects. Parsed from text; the grammar is in `gcdump help conditions`.
///
/// ```
/// let condition: gcdump::analysis::Condition = "size > 1K and gen = gen2".parse()?;
/// # Ok::<(), gcdump::analysis::ConditionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Condition(Node);

/// A node of the syntax tree of a condition.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    And(Box<(Node, Node)>),
    Or(Box<(Node, Node)>),
    Not(Box<Node>),
    Compare(Comparison),
}

/// The error for a text that is not a valid condition, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConditionError {
    text: String,
    /// Byte offset of the error in `text`.
    offset: usize,
    what: String,
}

impl ConditionError {
    fn at(text: &str, offset: usize, what: impl Into<String>) -> ConditionError {
        ConditionError { text: text.into(), offset, what: what.into() }
    }

    /// Number of characters before the error.
    pub fn column(&self) -> usize {
        self.text.get(..self.offset).map_or(0, |before| before.chars().count())
    }
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column();
        // Control characters would shift the caret.
        let text: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "{} at character {}:\n  {text}\n  {:column$}^", self.what, column.saturating_add(1), "")
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Condition, ConditionError> {
        let mut node = parse::parse(text)?;
        node.check(text)?;
        Ok(Condition(node))
    }
}

impl Node {
    /// Rejects comparisons that can never hold, such as of a size with a text. Replaces short forms of generations with the full name: 2 with
    /// `gen2`.
    fn check(&mut self, text: &str) -> Result<(), ConditionError> {
        match self {
            Node::And(both) | Node::Or(both) => both.0.check(text).and_then(|()| both.1.check(text)),
            Node::Not(inner) => inner.check(text),
            Node::Compare(comparison) => comparison.check().map_err(|what| ConditionError::at(text, comparison.offset, what)),
        }
    }
}

impl Comparison {
    fn check(&mut self) -> Result<(), String> {
        self.check_operands()?;
        let (left, right) = (self.left.clone(), self.right.clone());
        for (one, other) in [(left, &mut self.right), (right, &mut self.left)] {
            if let (Operand::Property(Property::Generation), Some(Some(wanted))) = (one, generation(other)) {
                *other = Operand::Text(wanted.name().into());
            }
        }
        Ok(())
    }

    /// Rejects operands whose kinds do not fit the operator or each other.
    fn check_operands(&self) -> Result<(), String> {
        let Comparison { left, operator, right, .. } = self;
        if *operator == Operator::Like && !matches!(right, Operand::Text(_)) {
            return Err("~ compares with a text: type ~ \"Lab.*\"".into());
        }
        for (one, other) in [(left, right), (right, left)] {
            let Operand::Property(property) = one else { continue };
            let name = property.name();
            let fits = match other {
                Operand::Field(_) => true,
                Operand::Property(p) => p.is_number() == property.is_number(),
                Operand::Number(Number::Int(_)) if *property == Property::Generation => true,
                Operand::Number(_) => property.is_number(),
                Operand::Text(_) => !property.is_number(),
                Operand::Null => matches!(property, Property::Module | Property::Length),
                Operand::Bool(_) => false,
            };
            if !fits {
                let kind = if property.is_number() { "a number" } else { "a text" };
                return Err(format!("{name} is {kind} and cannot be compared with {}", other.describe()));
            }
            if *property == Property::Generation && !matches!(other, Operand::Field(_) | Operand::Property(_)) {
                let wanted = generation(other).ok_or_else(|| format!("there is no generation {}", other.describe()))?;
                if wanted.is_none() && *operator != Operator::Like
                    || !matches!(operator, Operator::Equal | Operator::Unequal | Operator::Like)
                {
                    return Err("a generation is compared with =, != or ~, and a pattern of generations with ~".into());
                }
            }
        }
        Ok(())
    }
}

/// Returns the generation that a constant names: `Some(None)` for a pattern, `None` if it does not name one.
fn generation(operand: &Operand) -> Option<Option<Generation>> {
    match operand {
        Operand::Text(text) if text.contains(['*', '?']) => Some(None),
        Operand::Text(text) => text.parse().ok().map(Some),
        Operand::Number(Number::Int(n)) => n.to_string().parse().ok().map(Some),
        _ => None,
    }
}

impl Operand {
    /// The path of a field.
    fn path(&self) -> Option<&[String]> {
        if let Operand::Field(path) = self { Some(path) } else { None }
    }

    fn describe(&self) -> String {
        match self {
            Operand::Property(property) => property.name().into(),
            Operand::Field(path) => format!("field(\"{}\")", path.join(".")),
            Operand::Number(Number::Int(n)) => n.to_string(),
            Operand::Number(Number::Float(n)) => n.to_string(),
            Operand::Text(text) => format!("\"{text}\""),
            Operand::Bool(b) => b.to_string(),
            Operand::Null => "null".into(),
        }
    }
}

/// Provides the values of one object.
trait Subject {
    /// Returns a property; `None` if it is unknown, or if the object does not have it.
    fn property(&mut self, property: Property) -> Option<Term>;

    /// Returns the value of a field.
    fn field(&mut self, path: &[String]) -> Option<Term>;
}

impl Condition {
    /// Whether the condition holds; `None` if that cannot be determined.
    fn holds(&self, subject: &mut impl Subject) -> Option<bool> {
        self.0.holds(subject)
    }

    /// Returns both sides of each comparison, in the order of the text.
    fn comparisons(&self) -> impl Iterator<Item = [&Operand; 2]> {
        let mut rest = vec![&self.0];
        std::iter::from_fn(move || {
            loop {
                match rest.pop()? {
                    Node::And(both) | Node::Or(both) => rest.extend([&both.1, &both.0]),
                    Node::Not(inner) => rest.push(inner),
                    Node::Compare(Comparison { left, right, .. }) => return Some([left, right]),
                }
            }
        })
    }

    /// Returns the paths of the fields that the condition compares.
    pub(super) fn fields(&self) -> Vec<&[String]> {
        self.comparisons().flatten().filter_map(Operand::path).collect()
    }

    /// Returns the paths of the fields that the condition compares with a text or with another field.
    pub(super) fn fields_as_texts(&self) -> Vec<&[String]> {
        let is_text = |other: &Operand| matches!(other, Operand::Text(_) | Operand::Field(_));
        let sides = self.comparisons().flat_map(|[left, right]| [(left, right), (right, left)]);
        sides.filter(|(_, other)| is_text(other)).filter_map(|(one, _)| one.path()).collect()
    }
}

impl Node {
    fn holds(&self, subject: &mut impl Subject) -> Option<bool> {
        match self {
            Node::And(both) => match both.0.holds(subject) {
                Some(false) => Some(false),
                first => match both.1.holds(subject) {
                    Some(false) => Some(false),
                    second => first.zip(second).map(|(a, b)| a && b),
                },
            },
            Node::Or(both) => match both.0.holds(subject) {
                Some(true) => Some(true),
                first => match both.1.holds(subject) {
                    Some(true) => Some(true),
                    second => first.zip(second).map(|(a, b)| a || b),
                },
            },
            Node::Not(inner) => inner.holds(subject).map(|holds| !holds),
            Node::Compare(comparison) => {
                let Comparison { left, operator, right, .. } = comparison;
                operator.holds(&left.evaluate(subject)?, &right.evaluate(subject)?)
            }
        }
    }
}

impl Operand {
    fn evaluate(&self, subject: &mut impl Subject) -> Option<Term> {
        Some(match self {
            Operand::Property(property) => return subject.property(*property),
            Operand::Field(path) => return subject.field(path),
            Operand::Number(n) => Term::Number(*n),
            Operand::Text(text) => Term::Text(text.as_str().into()),
            Operand::Bool(b) => Term::Bool(*b),
            Operand::Null => Term::Null,
        })
    }
}

/// The name of a type, and the name of its module if known.
type Names = (Name, Option<Name>);

/// Evaluates a condition for the objects of a heap walk. Each thread of the walk has its own evaluator, which looks up fields and names
/// once per type.
pub(super) struct Evaluator<'s> {
    condition: &'s Condition,
    heap: &'s Heap,
    namer: &'s Namer,
    names: Map<TypeIndex, Names>,
    /// Fields by the address of their path in `condition`, and by type; `None` if the type does not have the field.
    fields: Map<(usize, TypeIndex), Option<Arc<BoundField>>>,
}

impl<'s> Evaluator<'s> {
    /// Creates an evaluator for objects of `heap`, whose names come from `namer`.
    pub(super) fn new(condition: &'s Condition, heap: &'s Heap, namer: &'s Namer) -> Evaluator<'s> {
        Evaluator { condition, heap, namer, names: Map::default(), fields: Map::default() }
    }

    /// Whether the condition is true for `object`; false if that cannot be determined.
    pub(super) fn wants(&mut self, object: &Object<'_>) -> bool {
        let condition = self.condition;
        condition.holds(&mut Walked { evaluator: self, object }) == Some(true)
    }
}

/// An object of the walk, for which `evaluator` evaluates the condition.
struct Walked<'e, 's, 'o> {
    evaluator: &'e mut Evaluator<'s>,
    object: &'e Object<'o>,
}

impl Walked<'_, '_, '_> {
    fn names(&mut self) -> &Names {
        let (namer, ty) = (self.evaluator.namer, self.object.ty);
        self.evaluator.names.entry(ty.index).or_insert_with(|| {
            if ty.is_free {
                return ("Free".into(), None);
            }
            namer.depends_on(ty.method_table);
            (namer.name_or_address(ty.method_table), namer.module(ty.method_table).map(Name::from))
        })
    }
}

impl Subject for Walked<'_, '_, '_> {
    fn property(&mut self, property: Property) -> Option<Term> {
        let number = |n: u64| Some(Term::Number(Number::Int(n.into())));
        match property {
            Property::Size => number(self.object.size),
            Property::Address => number(self.object.address.0),
            Property::Heap => number(self.evaluator.heap.walker().segment_of(self.object.address)?.1.heap),
            Property::Length => self.object.length().filter(|_| !self.object.ty.is_free).map_or(Some(Term::Null), number),
            Property::Generation => Some(Term::Named(self.object.generation.name().into(), None)),
            Property::Type => Some(Term::Text(self.names().0.clone())),
            Property::Module => Some(self.names().1.clone().map_or(Term::Null, Term::Text)),
        }
    }

    fn field(&mut self, path: &[String]) -> Option<Term> {
        let (heap, ty) = (self.evaluator.heap, self.object.ty);
        if ty.is_free {
            return None;
        }
        // The condition outlives the evaluator, so the address of a path identifies it.
        let key = (path.as_ptr().addr(), ty.index);
        let bound = self.evaluator.fields.entry(key).or_insert_with(|| BoundField::bind(heap, ty.method_table, path).map(Arc::new));
        let bound = bound.as_ref().map(Arc::clone)?;
        term(&bound.read(heap, self.object.address)?, heap.memory().ptr_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test object with four fields.
    struct TestObject;

    impl Subject for TestObject {
        fn property(&mut self, property: Property) -> Option<Term> {
            Some(match property {
                Property::Size => Term::Number(Number::Int(4096)),
                Property::Type => Term::Text("Lab.Order".into()),
                Property::Generation => Term::Named("gen2".into(), None),
                Property::Length => Term::Null,
                Property::Module => Term::Text(Name::shown_as("List`1[[X]]", Some("List<X>".into()))),
                Property::Address => Term::Number(Number::Int(0x7f00_0000_1000)),
                _ => return None,
            })
        }

        fn field(&mut self, path: &[String]) -> Option<Term> {
            Some(match path.join(".").as_str() {
                "_state" => Term::Number(Number::Int(3)),
                "_ratio" => Term::Number(Number::Float(0.5)),
                "_done" => Term::Bool(false),
                "_owner._name" => Term::Text("Ada \"the\" first".into()),
                "_next" => Term::Null,
                "Colour" => Term::Named("Blue".into(), Some(7)),
                "_handle" => Term::Native(-1, u64::MAX.into()),
                _ => return None,
            })
        }
    }

    #[test]
    fn conditions_hold_or_not() {
        for (text, holds) in [
            ("size > 1K and gen = gen2 and field(\"_state\") = 3", Some(true)),
            ("size>1K&&gen==gen2&&field('_state')==3", Some(true)),
            ("size = 4K", Some(true)),
            ("size = 4KiB", Some(true)),
            ("size >= 0x1000 and size <= 4096", Some(true)),
            ("size < 1.5K or type ~ 'Lab.*'", Some(true)),
            ("not (type = Lab.Order)", Some(false)),
            ("NOT type != Lab.Order AND Size <> 1", Some(true)),
            // Either form of a name, on either side.
            ("module = 'List<X>' and 'List<X>' = module and 'List`1[[X]]' = module", Some(true)),
            ("gen = 2", Some(true)),
            ("generation != gen0", Some(true)),
            ("gen ~ 'gen*'", Some(true)),
            ("field(\"_ratio\") < 1", Some(true)),
            ("field('_ratio') > -0.5", Some(true)),
            ("field('_done')", Some(false)),
            ("!field('_done')", Some(true)),
            ("field('_owner._name') ~ \"Ada *\"", Some(true)),
            (r#"field("_owner._name") = "Ada \"the\" first""#, Some(true)),
            ("field('_next') = null", Some(true)),
            ("field('_state') != null", Some(true)),
            ("field('Colour') = Blue", Some(true)),
            ("field('Colour') = 7", Some(true)),
            ("3 = field('_state')", Some(true)),
            ("field('_handle') = -1 and field('_handle') = 0xffffffffffffffff and -1 = field('_handle')", Some(true)),
            ("field('_handle') < 0 and field('_handle') = field('_handle')", Some(true)),
            ("field('_handle') > 5", Some(false)),
            ("address = 0x7f00`00001000", Some(true)),
            // Comparisons with a missing value are neither true nor false.
            ("field('nothing') = 1", None),
            ("not field('nothing') = 1", None),
            ("field('nothing') = 1 or size > 0", Some(true)),
            ("field('nothing') = 1 and size > 0", None),
            ("field('nothing') = 1 and size < 0", Some(false)),
            ("length > 3", None),
            ("length = null", Some(true)),
            ("field('_state') = three", None),
        ] {
            let condition: Condition = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(condition.holds(&mut TestObject), holds, "{text}");
        }
    }

    #[test]
    fn fields_are_compared_as_texts_with_texts_and_other_fields() {
        let condition: Condition =
            "_name = \"x\" or _age > 3 or _owner != null or _first = field(\"_last\") or type = \"y\"".parse().unwrap();
        assert_eq!(condition.fields_as_texts(), [["_name"], ["_first"], ["_last"]]);
    }

    #[test]
    fn errors_have_a_position() {
        for (text, column, what) in [
            ("", 0, "expected size, type"),
            ("size >", 6, "expected a number"),
            ("size > and gen = gen2", 11, "'and', 'or' or the end"),
            ("sise 3", 0, "expected size, type"),
            ("size", 4, "expected a comparison"),
            ("size > 3 gen = gen0", 9, "'and', 'or' or the end"),
            ("(size > 3", 9, "expected ')'"),
            ("field(_state) = 3", 6, "the name of a field in quotes"),
            ("field(\"_state = 3", 17, "the closing quote"),
            ("size > 3Days", 8, "K, M, G or T"),
            ("size = big", 5, "size is a number and cannot be compared with \"big\""),
            ("type > 3", 5, "type is a text and cannot be compared with 3"),
            ("gen = gen9", 4, "there is no generation \"gen9\""),
            ("gen > gen1", 4, "compared with ="),
            ("type ~ 3", 5, "~ compares with a text"),
            ("ä", 0, "the name of a field"),
        ] {
            let error = text.parse::<Condition>().unwrap_err();
            assert!(error.what.contains(what), "{text}: {error}");
            assert_eq!(error.column(), column, "{text}: {error}");
        }
        assert!("Id > 3 and _a._b = null".parse::<Condition>().is_ok());
        let shown = "size > and gen = gen2".parse::<Condition>().unwrap_err().to_string();
        assert!(shown.ends_with("\n  size > and gen = gen2\n             ^"), "{shown}");
    }

    #[test]
    fn deep_conditions_are_refused() {
        for text in
            [format!("{}size > 1{}", "(".repeat(2000), ")".repeat(2000)), format!("{} size > 1", "not ".repeat(2000)), "!".repeat(2000)]
        {
            assert!(text.parse::<Condition>().unwrap_err().what.contains("nested too deeply"));
        }
        // Parentheses inside texts are ignored.
        let hidden = format!("{}size = 1{}", "(type = \")\\\")\" or ".repeat(300), ")".repeat(300));
        assert!(hidden.parse::<Condition>().unwrap_err().what.contains("nested too deeply"));
        // Words that contain "not", and `!=`, do not negate.
        let flat = vec!["_notes != cannot"; 200].join(" or ");
        assert!(flat.parse::<Condition>().is_ok());
        assert!(format!("type ~ '{}'", "(".repeat(2000)).parse::<Condition>().is_ok());
        assert!(
            format!("size > 1{}", " and size > 1".repeat(5000)).parse::<Condition>().is_err(),
            "the condition is longer than the limit"
        );
    }
}
