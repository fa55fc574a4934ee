//! Chosen fields as columns of the table `objects`: the values of `objects --fields`, typed.

use std::ops::ControlFlow;

use super::block::{Column, Kind, Packing, Value};
use crate::base::{Addr, IndexVec};
use crate::gc::{Object, ObjectType, TypeIndex};
use crate::managed::BoundField;
use crate::model::{FieldValue, ValueKind};
use crate::session::Heap;

/// Before the name of a field that is called as another column.
const PREFIX: &str = "field_";

/// Numbers of which half have no signed one.
const UNSIGNED: &str = "System.UInt64";

/// The value of a field.
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
                // Columns have signed numbers, and what a column is must not depend on how large its numbers happen to be.
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

    /// The same for a column of `kind`: text where types do not agree.
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

/// What a column holds as far as is known: of types that do not agree, text.
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

/// What values of a declared type are; `None` where only values tell.
fn kind_of(type_name: &str) -> Option<Kind> {
    Some(match type_name {
        "System.Boolean" => Kind::Flag,
        "System.SByte" | "System.Byte" | "System.Int16" | "System.UInt16" | "System.Int32" | "System.UInt32" | "System.Int64" => Kind::Int,
        "System.Single" | "System.Double" => Kind::Real,
        // The values of a nullable type are those of another.
        _ if type_name.starts_with("System.Nullable<") => return None,
        _ => Kind::Text,
    })
}

/// A chosen field.
struct Chosen {
    path: Vec<String>,
    /// By type: the field, if the type has it.
    bound: IndexVec<TypeIndex, Option<Option<BoundField>>>,
    /// By type: whether only its objects tell.
    open: IndexVec<TypeIndex, bool>,
    known: ColumnKind,
}

impl Chosen {
    /// Takes in what `ty` declares.
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

    /// Whether objects may tell more.
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

/// The fields that are columns.
pub(super) struct Fields<'h> {
    heap: &'h Heap,
    chosen: Vec<Chosen>,
    names: Vec<String>,
    row: Vec<Read>,
}

impl<'h> Fields<'h> {
    /// The fields at `paths`, for a table that has `columns`. What a column holds is what all types declare that have the field; where
    /// declared types do not tell, behind references, it is what all objects have, which takes a walk.
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
        // The walk of the rows says what cannot be read.
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

    /// The columns.
    pub(super) fn columns(&self) -> impl Iterator<Item = Column> {
        let packed = |kind| if matches!(kind, Kind::Int | Kind::Text) { Packing::Dictionary } else { Packing::Plain };
        let column = move |(name, chosen): (&String, &Chosen)| Column {
            name: name.clone().into(),
            kind: chosen.kind(),
            packing: packed(chosen.kind()),
        };
        self.names.iter().zip(&self.chosen).map(column)
    }

    /// The values that `object` has.
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
    fn declared_types_tell_what_values_are() {
        assert_eq!(kind_of("System.Int32"), Some(Kind::Int));
        assert_eq!(kind_of("System.UInt64"), Some(Kind::Text), "half of them have no signed number");
        assert_eq!(kind_of("System.Double"), Some(Kind::Real));
        assert_eq!(kind_of("System.DayOfWeek"), Some(Kind::Text));
        assert_eq!(kind_of("System.Nullable<System.Int32>"), None);
    }
}
