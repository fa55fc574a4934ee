//! Field paths bound to a type, for loops over its objects.

use super::Field;
use crate::base::Addr;
use crate::model::FieldValue;
use crate::session::Heap;

/// A field path of a type. The first field is looked up once. A field after a reference is looked up for each object, because only then the type of
/// the referenced object is known.
#[derive(Clone, Debug)]
pub(crate) struct BoundField {
    first: Field,
    rest: Vec<String>,
}

impl BoundField {
    /// Binds `path`; `None` if the type does not have its first field.
    pub(crate) fn bind(heap: &Heap, method_table: Addr, path: &[String]) -> Option<BoundField> {
        let (first, rest) = path.split_first()?;
        Some(BoundField { first: Field::named(heap, method_table, first).ok()??, rest: rest.to_vec() })
    }

    /// The declared type of the value; `None` if the path leads through a reference, because the type then depends on the object.
    pub(crate) fn declared(&self, heap: &Heap) -> Option<String> {
        let mut field = self.first.clone();
        for name in &self.rest {
            let mt = field.method_table().filter(|_| field.is_structure())?;
            field = Field::named(heap, mt, name).ok()??;
        }
        Some(field.type_name().into())
    }

    /// The value for the object at `address`; `None` if a reference on the path is null or leads to an object without the field.
    pub(crate) fn read(&self, heap: &Heap, address: Addr) -> Option<FieldValue> {
        let first = self.first.value(heap, address)?;
        self.rest.iter().try_fold(first, |value, name| value.field(name).ok())?.to_model().ok()
    }
}
