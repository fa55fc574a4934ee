//! Fields bound to a type, for loops over its objects.

use std::sync::Arc;

use super::value::{What, instance_fields, instance_position};
use super::{Heap, Value};
use crate::base::Addr;
use crate::clr::fields::Field;
use crate::clr::values::Values;
use crate::model::FieldValue;

/// A path of fields of a type: the first is looked up once, those behind a reference with each object, as its type is known then.
#[derive(Clone, Debug)]
pub(crate) struct BoundField {
    method_table: Addr,
    list: Arc<Vec<Field>>,
    index: usize,
    rest: Vec<String>,
}

impl BoundField {
    /// Binds `path`; `None` if the type has no such field.
    pub(crate) fn bind(heap: &Heap, method_table: Addr, path: &[String]) -> Option<BoundField> {
        let (first, rest) = path.split_first()?;
        let list = instance_fields(heap, method_table).ok()?;
        let index = instance_position(heap, method_table, &list, first)?;
        Some(BoundField { method_table, list, index, rest: rest.to_vec() })
    }

    /// The declared type of the value; `None` behind a reference, where the object tells.
    pub(crate) fn declared(&self, heap: &Heap) -> Option<String> {
        let mut field = self.list.get(self.index)?.clone();
        for name in &self.rest {
            let mt = field.method_table.filter(|_| field.is_structure())?;
            let list = instance_fields(heap, mt).ok()?;
            field = list.get(instance_position(heap, mt, &list, name)?)?.clone();
        }
        Some(field.type_name)
    }

    /// The value that the object at `address` has; `None` where a reference on the way is null or leads to an object without the field.
    pub(crate) fn read(&self, heap: &Heap, address: Addr) -> Option<FieldValue> {
        let what = What::Field { of: self.method_table, list: Arc::clone(&self.list), index: self.index };
        let first = Value::new(heap, Values::place(self.list.get(self.index)?, address), what);
        self.rest.iter().try_fold(first, |value, name| value.field(name).ok())?.to_model().ok()
    }
}
