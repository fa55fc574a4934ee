//! The arrays in which collections keep their elements.

use super::{Collections, Read, there};
use crate::base::Addr;
use crate::clr::library::FieldAt;
use crate::model::ContainerKind;

/// The arrays in which a collection keeps its elements. Arrays without elements, which collections share, are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Storage {
    /// The first array.
    pub(crate) array: Option<Addr>,
    /// Bytes of an element, in all arrays together.
    pub(crate) element_bytes: u64,
    /// Bytes of the arrays.
    pub(crate) bytes: u64,
}

impl Collections<'_> {
    /// The arrays of the collection at `object`; `Ok(None)` if a part of the collection is not in the dump. A builder has the array of its last
    /// chunk only.
    ///
    /// # Errors
    /// [`NoSuchField`](crate::clr::library::NoSuchField)
    pub(crate) fn storage(&self, object: Addr) -> Read<Storage> {
        use ContainerKind as K;
        let (types, layouts) = (self.types(), self.layouts());
        let mt = there!(self.library.method_table(object));
        Ok(Some(match there!(self.kind(mt)) {
            K::Dictionary | K::HashSet => {
                let fields = layouts.hashed.of(types, mt)?;
                self.arrays(object, [Some(fields.entries), fields.buckets])
            }
            K::List | K::Stack | K::ArrayList => self.arrays(object, [Some(layouts.vector.of(types, mt)?.items)]),
            K::Queue => self.arrays(object, [Some(layouts.ring.of(types, mt)?.array)]),
            K::PriorityQueue => self.arrays(object, [Some(layouts.heap.of(types, mt)?.nodes)]),
            K::SortedList => {
                let fields = layouts.sorted_list.of(types, mt)?;
                self.arrays(object, [Some(fields.keys), Some(fields.values)])
            }
            K::Hashtable => self.arrays(object, [Some(layouts.hashtable.of(types, mt)?.buckets)]),
            K::ConcurrentDictionary => {
                let tables = there!(self.library.reference(object, layouts.concurrent.of(types, mt)?.tables));
                let fields = layouts.tables.of(types, there!(self.library.method_table(tables)))?;
                self.arrays(tables, [Some(fields.buckets)])
            }
            K::ConditionalWeakTable => {
                let container = there!(self.library.reference(object, layouts.weak.of(types, mt)?.container));
                let fields = layouts.container.of(types, there!(self.library.method_table(container)))?;
                self.arrays(container, [Some(fields.entries)])
            }
            K::StringBuilder => self.arrays(object, [Some(layouts.builder.of(types, mt)?.chars)]),
            K::MemoryStream => self.arrays(object, [layouts.stream.of(types, mt)?.buffer]),
            _ => Storage::default(),
        }))
    }

    /// The arrays to which fields of the object refer.
    fn arrays<const N: usize>(&self, object: Addr, fields: [Option<FieldAt>; N]) -> Storage {
        let mut out = Storage::default();
        let word = self.types().pointer_bytes();
        for array in fields.into_iter().flatten().filter_map(|field| self.library.reference(object, field)) {
            let Some(shape) = self.library.array(array).filter(|shape| shape.length > 0) else { continue };
            // An array has its elements after its own fields, and the header of an object is one word.
            let before = shape.data.since(array).unwrap_or(0).saturating_add(word);
            let bytes = shape.length.saturating_mul(shape.element_bytes).saturating_add(before);
            out.array = out.array.or(Some(array));
            out.element_bytes = out.element_bytes.saturating_add(shape.element_bytes);
            out.bytes = out.bytes.saturating_add(bytes.checked_next_multiple_of(word).unwrap_or(bytes));
        }
        out
    }
}
