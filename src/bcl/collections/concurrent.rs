//! Concurrent collections.

use std::sync::Arc;

use super::layouts::{ConcurrentNode, SlotFields};
use super::{Collections, Contents, Item, MOST, Read, there};
use crate::base::{Addr, len64};
use crate::model::ContainerKind;

impl Collections<'_> {
    pub(super) fn concurrent_dictionary(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let fields = self.layouts().concurrent.of(self.types(), mt)?;
        let tables = there!(self.library.reference(object, fields.tables));
        let fields = self.layouts().tables.of(self.types(), there!(self.library.method_table(tables)))?;
        let counts = there!(self.array_of(tables, fields.counts));
        let mut count = 0u64;
        if !self.afford(counts.length) {
            return Ok(None);
        }
        for i in 0..counts.length {
            let own = there!(self.library.u32_at(counts.data.element(i, counts.element_bytes))).cast_signed();
            count = count.saturating_add(u64::try_from(own).unwrap_or(0));
        }
        let buckets = there!(self.array_of(tables, fields.buckets));
        let mut out = Contents::new(ContainerKind::ConcurrentDictionary, count, Some(buckets.length));
        if most == 0 {
            return Ok(Some(out));
        }
        let inner = self.layouts().volatile.of(self.types(), buckets.element)?.node;
        let mut fields: Option<Arc<ConcurrentNode>> = None;
        let mut seen = 0usize;
        for i in 0..buckets.length {
            if !self.afford(1) {
                out.cut = true;
                break;
            }
            let bucket = buckets.data.element(i, buckets.element_bytes);
            let mut at = self.library.reference_at(inner.map_or(bucket, |node| self.within(node, bucket)));
            while let Some(node) = at {
                if len64(out.items.len()) >= most.min(count) || seen >= MOST {
                    return Ok(Some(out));
                }
                seen = seen.saturating_add(1);
                let known = match &fields {
                    Some(known) => known,
                    None => {
                        let of = there!(self.library.method_table(node));
                        fields.insert(self.layouts().concurrent_node.of(self.types(), of)?)
                    }
                };
                let (key, value) = (Self::in_object(&known.key, node), Self::in_object(&known.value, node));
                out.items.push(Item { key: Some(key), value: Some(value) });
                at = self.library.reference(node, known.next);
            }
        }
        Ok(Some(out))
    }

    /// A `ConcurrentQueue`: a list of segments, each of which is a ring of slots with sequence numbers. `afford` charges a number of slots
    /// to a limit and returns whether they may be read.
    pub(super) fn concurrent_queue(&self, object: Addr, mt: Addr, most: u64, afford: &dyn Fn(u64) -> bool) -> Read<Contents> {
        let mut out = Contents::new(ContainerKind::ConcurrentQueue, 0, None);
        let fields = self.layouts().headed.of(self.types(), mt)?;
        let first = there!(self.library.reference(object, fields.head));
        let fields = self.layouts().segment.of(self.types(), there!(self.library.method_table(first)))?;
        let (segments, ends) = self.chain(Some(first), fields.next);
        out.cut = !ends;
        let mut slot_fields: Option<Arc<SlotFields>> = None;
        for segment in segments {
            let number = |field| self.library.u32(segment, field);
            let (head, tail, mask) = (there!(number(fields.head)), there!(number(fields.tail)), there!(number(fields.mask)));
            let shape = there!(self.array_of(segment, fields.slots));
            let frozen = there!(self.library.u8(segment, fields.frozen)) != 0;
            // When the program freezes a segment, it adds twice the number of slots to the tail.
            let added = if frozen { u32::try_from(shape.length.saturating_mul(2)).unwrap_or(0) } else { 0 };
            // Head and tail are counters that wrap around.
            let count = u64::from(tail.wrapping_sub(added).wrapping_sub(head)).min(shape.length);
            out.count = out.count.saturating_add(count);
            let slot = match &slot_fields {
                Some(known) => known,
                None => slot_fields.insert(self.layouts().slot.of(self.types(), shape.element)?),
            };
            if !afford(count.min(most).max(1)) {
                out.cut = true;
                break;
            }
            for i in 0..u32::try_from(count).unwrap_or(0) {
                if len64(out.items.len()) >= most {
                    break;
                }
                let number = head.wrapping_add(i);
                let at = shape.data.element(u64::from(number & mask), shape.element_bytes);
                let is_there = there!(self.library.u32_at(self.within(slot.sequence, at)));
                // The slot contains an element if its sequence number is the element's number plus one.
                if is_there == number.wrapping_add(1) {
                    out.items.push(Item { key: None, value: self.in_structure(&slot.item, at) });
                }
            }
        }
        Ok(Some(out))
    }

    pub(super) fn concurrent_stack(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let mut out = Contents::new(ContainerKind::ConcurrentStack, 0, None);
        let fields = self.layouts().headed.of(self.types(), mt)?;
        let Some(head) = self.library.reference(object, fields.head) else { return Ok(Some(out)) };
        let fields = self.layouts().stack_node.of(self.types(), there!(self.library.method_table(head)))?;
        let (nodes, ends) = self.chain(Some(head), fields.next);
        (out.count, out.cut) = (len64(nodes.len()), !ends);
        let shown = nodes.iter().take(usize::try_from(most).unwrap_or(usize::MAX));
        out.items.extend(shown.map(|node| Item { key: None, value: Some(Self::in_object(&fields.value, *node)) }));
        Ok(Some(out))
    }

    /// A `ConcurrentBag`: a linked list with one queue for each thread that has used it.
    pub(super) fn concurrent_bag(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let mut out = Contents::new(ContainerKind::ConcurrentBag, 0, None);
        let fields = self.layouts().bag.of(self.types(), mt)?;
        let Some(first) = self.library.reference(object, fields.queues) else { return Ok(Some(out)) };
        let fields = self.layouts().bag_queue.of(self.types(), there!(self.library.method_table(first)))?;
        let (queues, ends) = self.chain(Some(first), fields.next);
        out.cut = !ends;
        for queue in queues {
            let number = |field| self.library.i32(queue, field);
            let own = there!(number(fields.added)).saturating_sub(there!(number(fields.stolen)));
            out.count = out.count.saturating_add(u64::try_from(own).unwrap_or(0));
            let Some(shape) = self.array_of(queue, fields.array) else { continue };
            let (head, tail, mask) = (there!(number(fields.head)), there!(number(fields.tail)), there!(number(fields.mask)));
            for i in (head..tail).take(usize::try_from(shape.length).unwrap_or(usize::MAX)) {
                if len64(out.items.len()) >= most {
                    break;
                }
                let index = u64::from((i & mask).unsigned_abs());
                out.items.push(Item { key: None, value: Some(self.element(&shape, index)) });
            }
        }
        Ok(Some(out))
    }

    /// The work items in the `WorkStealingQueue` at `queue`, the local queue of a thread of the thread pool. `mt` is the method table of the
    /// queue. Slots whose item was taken are null, and are left out.
    pub(crate) fn work_stealing_queue(&self, queue: Addr, mt: Addr, afford: &dyn Fn(u64) -> bool) -> Read<Vec<Addr>> {
        let fields = self.layouts().local.of(self.types(), mt)?;
        let array = there!(self.array_of(queue, fields.array));
        let number = |field| self.library.i32(queue, field);
        let (head, tail, mask) = (there!(number(fields.head)), there!(number(fields.tail)), there!(number(fields.mask)));
        let count = u64::try_from(i64::from(tail).saturating_sub(i64::from(head))).unwrap_or(0).min(array.length);
        if !afford(count.max(1)) {
            return Ok(Some(Vec::new()));
        }
        let slots = (head..tail).take(usize::try_from(count).unwrap_or(usize::MAX));
        let slot = |i: i32| array.data.element(u64::from((i & mask).unsigned_abs()), array.element_bytes);
        Ok(Some(slots.filter_map(|i| self.library.reference_at(slot(i))).collect()))
    }

    /// The objects in the `ConcurrentQueue<object>` at `queue`, oldest first, and whether some may be missing because of a limit.
    pub(crate) fn queued(&self, queue: Addr, afford: &dyn Fn(u64) -> bool) -> Read<(Vec<Addr>, bool)> {
        let mt = there!(self.library.method_table(queue));
        let contents = there!(self.concurrent_queue(queue, mt, u64::MAX, afford)?);
        let at = |item: Item| self.library.reference_at(item.value?.place.address);
        Ok(Some((contents.items.into_iter().filter_map(at).collect(), contents.cut)))
    }
}
