//! Keys of the dictionary entries that references come from.

use super::{Collections, Slot};
use crate::base::Addr;
use crate::clr::fields::Field;
use crate::clr::library::library_types;
use crate::clr::type_names::TypeNames;

library_types! {
    /// Entries of dictionaries that hold a key beside its value.
    pub(super) enum EntryType {
        in "System.Private.CoreLib" {
            Entry = "System.Collections.Generic.Dictionary`2+Entry",
            Bucket = "System.Collections.Hashtable+Bucket",
            OldBucket = "System.Collections.Hashtable+bucket",
            CoreNode = "System.Collections.Concurrent.ConcurrentDictionary`2+Node",
        }
        in "System.Collections.Concurrent" {
            Node = "System.Collections.Concurrent.ConcurrentDictionary`2+Node",
        }
    }
}

/// Whether a reference at `offset` of an entry is in its value: the last field that starts there or before.
fn is_in_value(value: &Field, others: [u64; 2], offset: u64) -> bool {
    value.offset <= offset && !others.iter().any(|other| *other > value.offset && *other <= offset)
}

impl Collections<'_> {
    /// The key to whose value the reference at `offset` of the object at `object` belongs, if the object is a node or the entries of a
    /// dictionary. `None` for other references of theirs, and for other objects.
    pub(crate) fn key_of(&self, object: Addr, method_table: Addr, offset: u64) -> Option<Slot> {
        let tables = self.types().names().method_tables();
        if !tables.read(method_table).ok()?.is_array {
            let node = self.tables.entries.of(method_table).iter().find(|e| matches!(e, EntryType::Node | EntryType::CoreNode));
            let fields = node.and_then(|_| self.layouts().concurrent_node.of(self.types(), method_table).ok())?;
            let inside = is_in_value(&fields.value, [fields.key.offset, fields.next.offset], offset);
            return inside.then(|| Self::in_object(&fields.key, object));
        }
        let element = tables.element_type(method_table).ok().and_then(TypeNames::method_table_of)?;
        let kind = self.tables.entries.of(element).iter().next()?;
        let shape = self.library.array(object)?;
        let within = object.plus(offset).0.checked_sub(shape.data.0)?;
        let (index, inner) = (within.checked_div(shape.element_bytes)?, within.checked_rem(shape.element_bytes)?);
        let entry = shape.data.element(index, shape.element_bytes);
        // Offsets of a structure are those of its box.
        let inner = inner.checked_add(self.types().pointer_bytes())?;
        let slot = |key: &Field, value: &Field, other: u64| {
            is_in_value(value, [key.offset, other], inner).then(|| self.in_structure(key, entry)).flatten()
        };
        match kind {
            EntryType::Entry => {
                let fields = self.layouts().entry.of(self.types(), element).ok()?;
                slot(&fields.key, &fields.value, fields.next.offset)
            }
            EntryType::Bucket | EntryType::OldBucket => {
                let fields = self.layouts().bucket.of(self.types(), element).ok()?;
                slot(&fields.key, &fields.value, fields.key.offset)
            }
            EntryType::CoreNode | EntryType::Node => None,
        }
    }
}
