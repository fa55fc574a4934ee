//! Hash tables.

use super::{Collections, Contents, Item, Read, there};
use crate::base::Addr;
use crate::model::ContainerKind;

impl Collections<'_> {
    pub(super) fn hashed(&self, kind: ContainerKind, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let used = there!(self.number(object, mt, "_count")?);
        let free = there!(self.number(object, mt, "_freeCount")?);
        let entries = self.array_of(object, mt, "_entries")?;
        let mut out = Contents::new(kind, used.saturating_sub(free), Some(entries.as_ref().map_or(0, |e| e.length)));
        let Some(entries) = entries.filter(|_| most > 0) else { return Ok(Some(out)) };
        let next = self.field(entries.element, "next|Next")?;
        let (key, value) = if kind == ContainerKind::HashSet {
            (None, self.field(entries.element, "Value|value")?)
        } else {
            (Some(self.field(entries.element, "key")?), self.field(entries.element, "value")?)
        };
        for i in 0..used.min(entries.length) {
            if u64::try_from(out.items.len()).unwrap_or(u64::MAX) >= most {
                break;
            }
            let at = entries.data.element(i, entries.element_bytes);
            let link = there!(self.in_structure(&next, at)).place.address;
            // Entries on the free list have their link stored as -3 less the index.
            if there!(self.library.u32_at(link)).cast_signed() >= -1 {
                let key = key.as_ref().and_then(|key| self.in_structure(key, at));
                out.items.push(Item { key, value: self.in_structure(&value, at) });
            }
        }
        Ok(Some(out))
    }

    /// A `Hashtable`: a removed entry has the array of buckets itself for a key.
    pub(super) fn hashtable(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let count = there!(self.number(object, mt, "_count")?);
        let array = there!(self.reference(object, mt, "_buckets")?);
        let shape = there!(self.library.array(array));
        let mut out = Contents::new(ContainerKind::Hashtable, count, Some(shape.length));
        let (key, value) = (self.field(shape.element, "key")?, self.field(shape.element, "val")?);
        for i in 0..shape.length {
            if u64::try_from(out.items.len()).unwrap_or(u64::MAX) >= most.min(count) {
                break;
            }
            let at = shape.data.element(i, shape.element_bytes);
            let slot = there!(self.in_structure(&key, at));
            if self.library.reference_at(slot.place.address).is_some_and(|k| k != array) {
                out.items.push(Item { key: Some(slot), value: self.in_structure(&value, at) });
            }
        }
        Ok(Some(out))
    }

    /// A `ConditionalWeakTable`: entries whose dependent handle has a primary object.
    pub(super) fn weak_table(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let container = there!(self.reference(object, mt, "_container")?);
        let of = there!(self.library.method_table(container));
        let used = there!(self.number(container, of, "_firstFreeEntry")?);
        let shape = there!(self.array_of(container, of, "_entries")?);
        let mut out = Contents::new(ContainerKind::ConditionalWeakTable, 0, Some(shape.length));
        let dependent = self.field(shape.element, "depHnd")?;
        // The only field of `DependentHandle` is the handle.
        for i in 0..used.min(shape.length) {
            let at = there!(self.in_structure(&dependent, shape.data.element(i, shape.element_bytes))).place.address;
            let Some(handle) = self.library.reference_at(at) else { continue };
            if self.library.reference_at(handle).is_none() {
                continue;
            }
            out.count = out.count.saturating_add(1);
            if u64::try_from(out.items.len()).unwrap_or(u64::MAX) < most {
                let key = self.object_at(handle);
                out.items.push(Item { key: Some(key), value: None });
            }
        }
        Ok(Some(out))
    }
}
