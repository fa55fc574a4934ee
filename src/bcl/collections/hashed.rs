//! Hash tables: `Dictionary`, `HashSet`, `Hashtable`, `ConditionalWeakTable`.

use super::{Collections, Contents, Item, Read, there};
use crate::base::{Addr, len64};
use crate::model::ContainerKind;

impl Collections<'_> {
    pub(super) fn hashed(&self, kind: ContainerKind, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let fields = self.layouts().hashed.of(self.types(), mt)?;
        let used = there!(self.number(object, fields.count));
        let free = there!(self.number(object, fields.free));
        let entries = self.array_of(object, fields.entries);
        let capacity = self.capacity_of(object, fields.entries, entries.as_ref());
        let mut out = Contents::new(kind, used.saturating_sub(free), capacity);
        let Some(entries) = entries.filter(|_| most > 0) else { return Ok(Some(out)) };
        let (entry, member);
        let (next, key, value) = if kind == ContainerKind::HashSet {
            member = self.layouts().member.of(self.types(), entries.element)?;
            (member.next, None, &member.value)
        } else {
            entry = self.layouts().entry.of(self.types(), entries.element)?;
            (entry.next, Some(&entry.key), &entry.value)
        };
        for i in 0..used.min(entries.length) {
            if len64(out.items.len()) >= most {
                break;
            }
            if !self.afford(1) {
                out.cut = true;
                break;
            }
            let at = entries.data.element(i, entries.element_bytes);
            // `next` is the index of the next entry of the chain, or -1. An entry on the free list has -3 minus the index of the next free
            // entry instead.
            if there!(self.library.u32_at(self.within(next, at))).cast_signed() >= -1 {
                let key = key.and_then(|key| self.in_structure(key, at));
                out.items.push(Item { key, value: self.in_structure(value, at) });
            }
        }
        Ok(Some(out))
    }

    /// A `Hashtable`. The key of a removed entry is the array of buckets itself.
    pub(super) fn hashtable(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let fields = self.layouts().hashtable.of(self.types(), mt)?;
        let count = there!(self.number(object, fields.count));
        let array = there!(self.library.reference(object, fields.buckets));
        let shape = there!(self.library.array(array));
        let mut out = Contents::new(ContainerKind::Hashtable, count, Some(shape.length));
        let bucket = self.layouts().bucket.of(self.types(), shape.element)?;
        for i in 0..shape.length {
            if len64(out.items.len()) >= most.min(count) {
                break;
            }
            if !self.afford(1) {
                out.cut = true;
                break;
            }
            let at = shape.data.element(i, shape.element_bytes);
            let slot = there!(self.in_structure(&bucket.key, at));
            if self.library.reference_at(slot.place.address).is_some_and(|k| k != array) {
                out.items.push(Item { key: Some(slot), value: self.in_structure(&bucket.value, at) });
            }
        }
        Ok(Some(out))
    }

    /// A `ConditionalWeakTable`. Only entries whose dependent handle still has a primary object are counted.
    pub(super) fn weak_table(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let table = self.layouts().weak.of(self.types(), mt)?;
        let container = there!(self.library.reference(object, table.container));
        let fields = self.layouts().container.of(self.types(), there!(self.library.method_table(container)))?;
        let used = there!(self.number(container, fields.used));
        let shape = there!(self.array_of(container, fields.entries));
        let mut out = Contents::new(ContainerKind::ConditionalWeakTable, 0, Some(shape.length));
        let dependent = self.layouts().weak_entry.of(self.types(), shape.element)?.handle;
        if !self.afford(used.min(shape.length)) {
            return Ok(None);
        }
        // `depHnd` is a `DependentHandle`, whose only field is the handle.
        for i in 0..used.min(shape.length) {
            let at = self.within(dependent, shape.data.element(i, shape.element_bytes));
            let Some(handle) = self.library.reference_at(at) else { continue };
            if self.library.reference_at(handle).is_none() {
                continue;
            }
            out.count = out.count.saturating_add(1);
            if len64(out.items.len()) < most {
                let key = self.object_at(handle);
                out.items.push(Item { key: Some(key), value: None });
            }
        }
        Ok(Some(out))
    }
}
