//! Finds the key of a dictionary entry from a reference in its value.

use super::tables::EntryType;
use super::{Collections, Slot};
use crate::base::Addr;
use crate::clr::fields::Field;
use crate::clr::type_names::TypeNames;

/// Maximum nesting of structures. Real types need three: a node that contains a bucket that contains a pair.
const MAX_DEPTH: u32 = 4;
/// Beginning of the names of frozen dictionaries that do not store their keys, which are their own hash codes.
const FROZEN_INTEGERS: &str = "System.Collections.Frozen.Int32FrozenDictionary<";

impl Collections<'_> {
    /// The key of the dictionary entry whose value contains the reference at `offset` of `object`. `object` may be a node, an array of
    /// entries, or the array of values of the dictionary at `holder`. `None` for other objects, and for references that are not in a value.
    pub(crate) fn key_of(&self, holder: Option<Addr>, object: Addr, method_table: Addr, offset: u64) -> Option<Slot> {
        let tables = self.types().names().method_tables();
        if !tables.read(method_table).ok()?.is_array {
            return self.key_within(object, method_table, offset, MAX_DEPTH);
        }
        let shape = self.library.array(object)?;
        let within = object.plus(offset).0.checked_sub(shape.data.0)?;
        let (index, inner) = (within.checked_div(shape.element_bytes)?, within.checked_rem(shape.element_bytes)?);
        if let Some(key) = holder.and_then(|holder| self.key_beside(holder, object, index)) {
            return Some(key);
        }
        let element = tables.element_type(method_table).ok().and_then(TypeNames::method_table_of)?;
        // Field offsets in a structure are relative to its boxed form.
        let word = self.types().pointer_bytes();
        let entry = shape.data.element(index, shape.element_bytes).minus(word)?;
        self.key_within(entry, element, inner.checked_add(word)?, MAX_DEPTH)
    }

    /// Like [`Collections::key_of`], for a reference in the node at `start`. For a structure, `start` is the address that its boxed form
    /// would have.
    fn key_within(&self, start: Addr, method_table: Addr, offset: u64, depth: u32) -> Option<Slot> {
        use EntryType as E;
        let (types, layouts) = (self.types(), self.layouts());
        let kind = self.tables.entries.of(method_table).iter().next()?;
        let inner = match kind {
            E::SetNode => layouts.sorted_node.of(types, method_table).ok()?.item.clone(),
            E::ImmutableNode => layouts.list_node.of(types, method_table).ok()?.item.clone(),
            E::HashNode => layouts.map_node.of(types, method_table).ok()?.bucket.clone(),
            E::HashBucket => layouts.map_bucket.of(types, method_table).ok()?.first.clone(),
            E::SortedList | E::OldSortedList | E::Frozen => return None,
            _ => {
                let fields = layouts.keyed.of(types, method_table).ok()?;
                return self.is_in(&fields.value, method_table, offset).then(|| Self::in_object(&fields.key, start));
            }
        };
        let of = inner.method_table.filter(|_| inner.is_structure() && self.is_in(&inner, method_table, offset))?;
        let word = types.pointer_bytes();
        let at = start.plus(inner.offset).minus(word)?;
        self.key_within(at, of, offset.checked_sub(inner.offset)?.checked_add(word)?, depth.checked_sub(1)?)
    }

    /// Whether the reference at `offset` is in `field`, that is, whether `field` is the last field that starts at or before `offset`.
    fn is_in(&self, field: &Field, method_table: Addr, offset: u64) -> bool {
        let Some(fields) = self.types().instance_fields(method_table) else { return false };
        field.offset <= offset && !fields.iter().any(|other| other.offset > field.offset && other.offset <= offset)
    }

    /// The key of the element at `index` of `values`, if the object at `holder` stores keys and values in two arrays.
    fn key_beside(&self, holder: Addr, values: Addr, index: u64) -> Option<Slot> {
        let mt = self.library.method_table(holder)?;
        let kind = self.tables.entries.of(mt).iter().next()?;
        if !matches!(kind, EntryType::SortedList | EntryType::OldSortedList | EntryType::Frozen) {
            return None;
        }
        if self.types().names().name(mt).name.starts_with(FROZEN_INTEGERS) {
            return self.hash_code_beside(holder, mt, values, index);
        }
        // Frozen dictionaries that store keys in other ways do not have these fields.
        let fields = self.layouts().parallel.of(self.types(), mt).ok()?;
        if self.library.reference(holder, fields.values) != Some(values) {
            return None;
        }
        let keys = self.array_of(holder, fields.keys).filter(|keys| index < keys.length)?;
        Some(self.element(&keys, index))
    }

    /// Like [`Collections::key_beside`], for a frozen dictionary of integers.
    fn hash_code_beside(&self, holder: Addr, method_table: Addr, values: Addr, index: u64) -> Option<Slot> {
        let (types, layouts) = (self.types(), self.layouts());
        let fields = layouts.frozen_integers.of(types, method_table).ok()?;
        if self.library.reference(holder, fields.values) != Some(values) {
            return None;
        }
        let codes = layouts.frozen_table.of(types, fields.table.method_table?).ok()?.codes;
        let array = self.library.reference_at(self.within(codes, holder.plus(fields.table.offset)))?;
        let keys = self.library.array(array).filter(|keys| index < keys.length)?;
        Some(self.element(&keys, index))
    }
}
