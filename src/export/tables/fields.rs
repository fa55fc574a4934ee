//! The columns that `--fields` adds to the table `objects`. These columns have the same values as in
//! `gcdump objects --fields`, with types.

use std::ops::ControlFlow;

use super::block::{Column, Kind, Packing, Value};
use crate::base::{Addr, IndexVec};
use crate::gc::{Object, ObjectType, TypeIndex};
use crate::managed::BoundField;
use crate::model::{FieldValue, ValueKind};
use crate::session::Heap;

/// Prefix of a column whose field has the name of another column.
const PREFIX: &str = "field_";

/// A type whose values above `i64::MAX` do not fit a signed column.
const UNSIGNED: &str = "System.UInt64";

/// The value of a field, with one of the types of columns.
#[derive(Clone, Debug, PartialEq)]
enum Read {
    Null,
    Int(i64),
    Real(f64),
    Flag(bool),
    Text(String),
}

impl Read {
    fn of(value: FieldValue) -> Read {
        let FieldValue { kind, value, text, object, type_name, .. } = value;
        match kind {
            ValueKind::Null | ValueKind::Absent | ValueKind::Invalid | ValueKind::NotInitialized => return Read::Null,
            ValueKind::Object => return object.map_or(Read::Null, |at| Read::Text(at.to_string())),
            _ => {}
        }
        match value {
            serde_json::Value::Bool(is) => Read::Flag(is),
            serde_json::Value::Number(n) => match (kind, n.as_i64(), n.as_f64()) {
                (ValueKind::Float, _, Some(n)) => Read::Real(n),
                // Columns are signed, and the type of a column must not depend on how large its values happen to be.
                (_, Some(n), _) if !type_name.contains(UNSIGNED) => Read::Int(n),
                _ => Read::Text(n.to_string()),
            },
            serde_json::Value::String(text) if kind == ValueKind::Float => text.parse().map_or(Read::Null, Read::Real),
            serde_json::Value::String(text) => Read::Text(text),
            _ => Read::Text(text),
        }
    }

    fn kind(&self) -> Option<Kind> {
        Some(match self {
            Read::Null => return None,
            Read::Int(_) => Kind::Int,
            Read::Real(_) => Kind::Real,
            Read::Flag(_) => Kind::Flag,
            Read::Text(_) => Kind::Text,
        })
    }

    /// Converts the value to the column type `kind`. Any value fits a text column; other mismatches become `Null`.
    fn fit(self, kind: Kind) -> Read {
        let text = match &self {
            _ if self.kind().is_none_or(|own| own == kind) => return self,
            Read::Int(n) => n.to_string(),
            Read::Real(n) => n.to_string(),
            Read::Flag(is) => is.to_string(),
            Read::Null | Read::Text(_) => return Read::Null,
        };
        if kind == Kind::Text { Read::Text(text) } else { Read::Null }
    }

    fn value(&self) -> Value<'_> {
        match self {
            Read::Null => Value::Null,
            Read::Int(n) => Value::Int(*n),
            Read::Real(n) => Value::Real(*n),
            Read::Flag(is) => Value::Flag(*is),
            Read::Text(text) => Value::Text(text),
        }
    }
}

/// The column type that fits all values seen so far: text if they have several types, `None` before the first value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ColumnKind(Option<Kind>);

impl ColumnKind {
    fn meet(&mut self, kind: Kind) {
        self.0 = Some(match self.0 {
            Some(other) if other != kind => Kind::Text,
            _ => kind,
        });
    }
}

/// Returns the column type for values of a declared type; `None` if it depends on the values.
fn kind_of(type_name: &str) -> Option<Kind> {
    Some(match type_name {
        "System.Boolean" => Kind::Flag,
        "System.SByte" | "System.Byte" | "System.Int16" | "System.UInt16" | "System.Int32" | "System.UInt32" | "System.Int64" => Kind::Int,
        "System.Single" | "System.Double" => Kind::Real,
        // A nullable value has the type of its argument.
        _ if type_name.starts_with("System.Nullable<") => return None,
        _ => Kind::Text,
    })
}

/// A selected field.
struct Chosen {
    path: Vec<String>,
    /// For each type, the field bound to it: `None` before the first look-up, `Some(None)` if the type does not have the field.
    bound: IndexVec<TypeIndex, Option<Option<BoundField>>>,
    /// For each type, whether the values of the field in its objects have to determine the column type, because the declared type does not.
    open: IndexVec<TypeIndex, bool>,
    known: ColumnKind,
}

impl Chosen {
    /// Merges the column type that the field's declared type in `ty` determines, or marks `ty` as open.
    fn declare(&mut self, heap: &Heap, ty: &ObjectType) {
        let Some(field) = self.field(heap, ty) else { return };
        match field.declared(heap).as_deref().and_then(kind_of) {
            Some(declared) => self.known.meet(declared),
            None => {
                if let Some(open) = self.open.slot(ty.index) {
                    *open = true;
                }
            }
        }
    }

    /// Whether values that were not read yet may change the column type.
    fn is_open(&self) -> bool {
        self.known.0 != Some(Kind::Text) && self.open.iter().any(|open| *open)
    }

    fn kind(&self) -> Kind {
        self.known.0.unwrap_or(Kind::Text)
    }

    fn field(&mut self, heap: &Heap, ty: &ObjectType) -> Option<&BoundField> {
        let path = &self.path;
        let slot = self.bound.slot(ty.index)?;
        slot.get_or_insert_with(|| BoundField::bind(heap, ty.method_table, path)).as_ref()
    }

    fn read(&mut self, heap: &Heap, ty: &ObjectType, address: Addr) -> Read {
        let value = self.field(heap, ty).and_then(|field| field.read(heap, address));
        value.map_or(Read::Null, Read::of)
    }
}

/// The fields to write as columns.
pub(super) struct Fields<'h> {
    heap: &'h Heap,
    chosen: Vec<Chosen>,
    names: Vec<String>,
    row: Vec<Read>,
}

impl<'h> Fields<'h> {
    /// Resolves the fields at `paths`, for a table that already has `columns`. The type of a column follows from the declared types of the field
    /// in all types that have the field. If a declared type does not determine the column type, as for a field after a reference, a heap walk
    /// reads the values, and their types determine the column type.
    pub(super) fn of(heap: &'h Heap, paths: &[String], columns: &[Column]) -> Fields<'h> {
        let mut names: Vec<String> = Vec::new();
        let mut chosen = Vec::new();
        for path in paths {
            let taken =
                |name: &str| columns.iter().map(|c| &*c.name).chain(names.iter().map(String::as_str)).any(|n| n.eq_ignore_ascii_case(name));
            let mut name = path.clone();
            while taken(&name) {
                name.insert_str(0, PREFIX);
            }
            names.push(name);
            chosen.push(Chosen {
                path: path.split('.').map(str::to_string).collect(),
                bound: IndexVec::new(),
                open: IndexVec::new(),
                known: ColumnKind::default(),
            });
        }
        let mut fields = Fields { heap, chosen, names, row: Vec::new() };
        fields.settle();
        fields
    }

    fn settle(&mut self) {
        let heap = self.heap;
        for ty in heap.walker().types().list().iter().filter(|ty| !ty.is_free) {
            self.chosen.iter_mut().for_each(|chosen| chosen.declare(heap, ty));
        }
        if !self.chosen.iter().any(Chosen::is_open) {
            return;
        }
        // The later walk that writes the rows reports unreadable objects, so this one does not.
        let look = |object: &Object<'_>| {
            for chosen in self.chosen.iter_mut().filter(|c| c.is_open() && c.open.get(object.ty.index) == Some(&true)) {
                if let Some(kind) = chosen.read(heap, object.ty, object.address).kind() {
                    chosen.known.meet(kind);
                }
            }
            if self.chosen.iter().any(Chosen::is_open) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        heap.walker().visit(heap.progress(), |_, _| true, look);
    }

    /// Returns the columns to add.
    pub(super) fn columns(&self) -> impl Iterator<Item = Column> {
        let packed = |kind| if matches!(kind, Kind::Int | Kind::Text) { Packing::Dictionary } else { Packing::Plain };
        let column = move |(name, chosen): (&String, &Chosen)| Column {
            name: name.clone().into(),
            kind: chosen.kind(),
            packing: packed(chosen.kind()),
        };
        self.names.iter().zip(&self.chosen).map(column)
    }

    /// Returns the field values of `object`.
    pub(super) fn values(&mut self, object: &Object<'_>) -> impl Iterator<Item = Value<'_>> {
        let heap = self.heap;
        self.row.clear();
        let read = |chosen: &mut Chosen| {
            let kind = chosen.kind();
            chosen.read(heap, object.ty, object.address).fit(kind)
        };
        self.row.extend(self.chosen.iter_mut().map(read));
        self.row.iter().map(Read::value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_disagree_make_text() {
        let all = |kinds: &[Kind]| {
            let mut known = ColumnKind::default();
            kinds.iter().for_each(|kind| known.meet(*kind));
            known.0
        };
        assert_eq!(all(&[]), None);
        assert_eq!(all(&[Kind::Int, Kind::Int]), Some(Kind::Int));
        assert_eq!(all(&[Kind::Int, Kind::Real, Kind::Real]), Some(Kind::Text));
        assert_eq!(Read::Int(-3).fit(Kind::Text), Read::Text("-3".into()));
        assert_eq!(Read::Flag(true).fit(Kind::Flag), Read::Flag(true));
        assert_eq!(Read::Text("x".into()).fit(Kind::Int), Read::Null);
    }

    #[test]
    fn declared_types_determine_the_column_type() {
        assert_eq!(kind_of("System.Int32"), Some(Kind::Int));
        assert_eq!(kind_of("System.UInt64"), Some(Kind::Text), "half of them have no signed number");
        assert_eq!(kind_of("System.Double"), Some(Kind::Real));
        assert_eq!(kind_of("System.DayOfWeek"), Some(Kind::Text));
        assert_eq!(kind_of("System.Nullable<System.Int32>"), None);
    }
}
