//! Conditions on the rows of lists. Here, the names of properties and fields are names of columns.

use super::terms::{Number, Term};
use super::{Condition, Operand, Property, Subject};
use crate::base::Name;

/// The value of a row in a column.
#[derive(Clone, Debug, PartialEq)]
pub enum RowValue<'r> {
    /// A count, a size, an id, an address.
    Int(i128),
    /// A fraction.
    Float(f64),
    /// A name of a type or a method.
    Name(&'r Name),
    /// Any other text. The texts `true` and `false` are compared as Booleans.
    Text(&'r str),
    /// No value, or an unknown one.
    None,
}

/// A row, by the names of its columns.
struct Columns<F>(F);

impl<F: FnMut(&str) -> Option<Term>> Subject for Columns<F> {
    fn property(&mut self, property: Property) -> Option<Term> {
        self.0(property.name())
    }

    fn field(&mut self, path: &[String]) -> Option<Term> {
        self.0(&path.join("."))
    }
}

impl Condition {
    /// Whether the condition is true for a row; false if that cannot be determined. `value` returns the row's value in the column with the given
    /// name.
    pub fn holds_for_row<'r>(&self, mut value: impl FnMut(&str) -> Option<RowValue<'r>>) -> bool {
        let term = |name: &str| {
            Some(match value(name)? {
                RowValue::Int(n) => Term::Number(Number::Int(n)),
                RowValue::Float(n) => Term::Number(Number::Float(n)),
                RowValue::Name(name) => Term::Text(name.clone()),
                RowValue::Text("true") => Term::Bool(true),
                RowValue::Text("false") => Term::Bool(false),
                RowValue::Text(text) => Term::Text(text.into()),
                RowValue::None => Term::Null,
            })
        };
        self.holds(&mut Columns(term)) == Some(true)
    }

    /// Returns the names of the columns that the condition compares.
    pub fn columns(&self) -> Vec<String> {
        let name = |operand: &Operand| match operand {
            Operand::Property(property) => Some(property.name().to_string()),
            Operand::Field(path) => Some(path.join(".")),
            _ => None,
        };
        self.comparisons().flatten().filter_map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_for_rows() {
        let name = Name::from("Lab.Dog");
        let row = |column: &str| {
            Some(match column {
                "count" => RowValue::Int(3),
                "share" => RowValue::Float(0.25),
                "type" => RowValue::Name(&name),
                "state" => RowValue::Text("sent"),
                "dead" => RowValue::Text("true"),
                "owner" => RowValue::None,
                _ => return None,
            })
        };
        for (text, expected) in [
            ("count > 2 and share < 0.5", true),
            ("type ~ \"Lab.*\" and state = sent", true),
            ("type = \"Lab.Cat\" or count = 3", true),
            ("dead = true and owner = null", true),
            ("not (count > 2)", false),
            ("nothing = 3", false),
            ("not (nothing = 3)", false),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.holds_for_row(row), expected, "{text}");
        }
        let condition: Condition = "count > 2 and not (type = \"x\" or owner = null)".parse().unwrap();
        assert_eq!(condition.columns(), ["count", "type", "owner"]);
    }
}
