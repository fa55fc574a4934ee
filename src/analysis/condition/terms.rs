//! Values of the two sides of a comparison.

use std::cmp::Ordering;

use super::Operator;
use crate::base::Name;
use crate::model::{FieldValue, ValueKind};

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    fn float(self) -> f64 {
        match self {
            // Conversion rounds to the nearest `f64`.
            #[allow(clippy::cast_precision_loss)]
            Number::Int(n) => n as f64,
            Number::Float(n) => n,
        }
    }

    fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
            (a, b) => a.float().partial_cmp(&b.float()),
        }
    }
}

/// The value of an operand for an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Number(Number),
    /// A native integer, as it is and without sign: `-1` and `0xffffffffffffffff` are equal.
    Native(i128, i128),
    Text(Name),
    /// The name of an enum value or a generation, and the number of an enum value. Comparisons with texts use the name, and comparisons with
    /// numbers use the number.
    Named(Name, Option<i128>),
    Bool(bool),
    Null,
}

impl Operator {
    /// Whether the operator holds between two values; `None` if that cannot be determined.
    pub(super) fn holds(self, left: &Term, right: &Term) -> Option<bool> {
        if self == Operator::Like {
            return match (left, right) {
                (Term::Text(text) | Term::Named(text, _), Term::Text(pattern)) => Some(text.matches(pattern)),
                _ => None,
            };
        }
        let order = match (left, right) {
            (Term::Number(a), Term::Number(b)) => a.compare(*b)?,
            (Term::Native(_, a), Term::Number(Number::Int(b))) if a == b => Ordering::Equal,
            (Term::Number(Number::Int(a)), Term::Native(_, b)) if a == b => Ordering::Equal,
            (Term::Native(a, _), Term::Number(b)) => Number::Int(*a).compare(*b)?,
            (Term::Number(a), Term::Native(b, _)) => a.compare(Number::Int(*b))?,
            (Term::Native(a, _), Term::Native(b, _)) => a.cmp(b),
            (Term::Named(_, Some(a)), Term::Number(b)) => Number::Int(*a).compare(*b)?,
            (Term::Number(a), Term::Named(_, Some(b))) => a.compare(Number::Int(*b))?,
            // A text may be the exact name or the display name of the type that it is compared with. The next arm compares exact names.
            (Term::Text(a), Term::Text(b)) if a.shown() == b.as_str() || a.as_str() == b.shown() => Ordering::Equal,
            (Term::Text(a) | Term::Named(a, _), Term::Text(b) | Term::Named(b, _)) => str::cmp(a, b),
            (Term::Bool(a), Term::Bool(b)) => a.cmp(b),
            (Term::Null, Term::Null) => Ordering::Equal,
            // A value is never equal to null, and null has no order.
            (Term::Null, _) | (_, Term::Null) => {
                return match self {
                    Operator::Equal => Some(false),
                    Operator::Unequal => Some(true),
                    _ => None,
                };
            }
            _ => return None,
        };
        Some(match self {
            Operator::Equal => order.is_eq(),
            Operator::Unequal => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::AtMost => order.is_le(),
            Operator::More => order.is_gt(),
            Operator::AtLeast => order.is_ge(),
            Operator::Like => return None,
        })
    }
}

/// Returns the value of a field as a term; `None` for structures, and for values that are not in the dump. `ptr_bytes` is the size of a native integer.
pub(super) fn term(value: &FieldValue, ptr_bytes: u64) -> Option<Term> {
    let text = || value.value.as_str().map(Name::from);
    let hex = |text: &str| i128::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    Some(match value.kind {
        ValueKind::Null => Term::Null,
        ValueKind::Bool => Term::Bool(value.value.as_bool()?),
        ValueKind::Int => {
            let n = value.value.as_i64().map(i128::from).or_else(|| value.value.as_u64().map(i128::from));
            Term::Number(Number::Int(n.or_else(|| value.text.parse().ok())?))
        }
        ValueKind::Float => Term::Number(Number::Float(value.value.as_f64()?)),
        ValueKind::Decimal => Term::Number(Number::Float(value.value.as_str()?.parse().ok()?)),
        ValueKind::Nint if value.type_name == "System.IntPtr" => {
            let bits = hex(value.value.as_str()?)?;
            let beyond = 1_i128.checked_shl(u32::try_from(ptr_bytes.saturating_mul(8)).ok()?)?;
            let is_negative = bits >= beyond.saturating_div(2);
            Term::Native(if is_negative { bits.saturating_sub(beyond) } else { bits }, bits)
        }
        ValueKind::Nint | ValueKind::Pointer => Term::Number(Number::Int(hex(value.value.as_str()?)?)),
        ValueKind::Enum => {
            let number = value.text.rsplit_once('(').and_then(|(_, n)| n.trim_end_matches(')').parse().ok());
            Term::Named(text()?, number.or_else(|| value.text.parse().ok()))
        }
        ValueKind::Object => Term::Number(Number::Int(value.object?.0.into())),
        ValueKind::Struct | ValueKind::Raw | ValueKind::Absent | ValueKind::Invalid | ValueKind::NotInitialized => return None,
        _ => Term::Text(text().unwrap_or_else(|| value.text.as_str().into())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_integers_have_a_sign_if_their_type_has() {
        let nint = |type_name: &str, value: &str| FieldValue {
            name: "handle".into(),
            type_name: type_name.into(),
            declaring_type: None,
            offset: None,
            address: None,
            kind: ValueKind::Nint,
            value: value.into(),
            text: value.into(),
            truncated: false,
            object: None,
            object_type: None,
            fields: Vec::new(),
        };
        let unsigned = |n: u64| Some(Term::Number(Number::Int(n.into())));
        assert_eq!(term(&nint("System.IntPtr", "0xffffffffffffffff"), 8), Some(Term::Native(-1, u64::MAX.into())));
        assert_eq!(term(&nint("System.IntPtr", "0xffffffff"), 4), Some(Term::Native(-1, u32::MAX.into())));
        assert_eq!(term(&nint("System.IntPtr", "0xffffffff"), 8), Some(Term::Native(u32::MAX.into(), u32::MAX.into())));
        assert_eq!(term(&nint("System.UIntPtr", "0xffffffffffffffff"), 8), unsigned(u64::MAX));
    }
}
