//! Collections that several threads use without a lock.

use super::{Collections, Contents, Item, MOST, Read, there};
use crate::base::{Addr, len64};
use crate::clr::fields::Field;
use crate::clr::library::{FieldAt, NoSuchField};
use crate::model::ContainerKind;

/// Fields of a segment of a `ConcurrentQueue`.
#[derive(Clone)]
struct Segment {
    slots: FieldAt,
    mask: FieldAt,
    head: FieldAt,
    tail: FieldAt,
    next: FieldAt,
    frozen: FieldAt,
}

impl Collections<'_> {
    pub(super) fn concurrent_dictionary(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let tables = there!(self.reference(object, mt, "_tables")?);
        let of = there!(self.library.method_table(tables));
        let counts = there!(self.array_of(tables, of, "_countPerLock")?);
        let mut count = 0u64;
        for i in 0..counts.length {
            let own = there!(self.library.u32_at(counts.data.element(i, counts.element_bytes))).cast_signed();
            count = count.saturating_add(u64::try_from(own).unwrap_or(0));
        }
        let buckets = there!(self.array_of(tables, of, "_buckets")?);
        let mut out = Contents::new(ContainerKind::ConcurrentDictionary, count, Some(buckets.length));
        // A bucket is a node, since .NET 8 in a structure.
        let within = match self.at(buckets.element, "_node") {
            Ok(field) => field.offset.saturating_sub(self.types().pointer_bytes()),
            Err(_) => 0,
        };
        let mut fields: Option<(FieldAt, Field, Field)> = None;
        let mut seen = 0usize;
        for i in 0..buckets.length {
            let mut at = self.library.reference_at(buckets.data.element(i, buckets.element_bytes).plus(within));
            while let Some(node) = at {
                if len64(out.items.len()) >= most.min(count) || seen >= MOST {
                    return Ok(Some(out));
                }
                seen = seen.saturating_add(1);
                let (next, key, value) = match &fields {
                    Some(known) => known,
                    None => {
                        let of = there!(self.library.method_table(node));
                        fields.insert((self.at(of, "_next")?, self.field(of, "_key")?, self.field(of, "_value")?))
                    }
                };
                out.items.push(Item { key: Some(Self::in_object(key, node)), value: Some(Self::in_object(value, node)) });
                at = self.library.reference(node, *next);
            }
        }
        Ok(Some(out))
    }

    fn segment(&self, mt: Addr) -> Result<Segment, NoSuchField> {
        let ends = self.at(mt, "_headAndTail")?;
        let inner = |name| {
            let of = ends.method_table.ok_or_else(|| NoSuchField { type_name: "PaddedHeadAndTail".into(), field: name })?;
            Ok::<FieldAt, NoSuchField>(ends.then(self.at(of, name)?, self.types()))
        };
        Ok(Segment {
            slots: self.at(mt, "_slots")?,
            mask: self.at(mt, "_slotsMask")?,
            head: inner("Head")?,
            tail: inner("Tail")?,
            next: self.at(mt, "_nextSegment")?,
            frozen: self.at(mt, "_frozenForEnqueues")?,
        })
    }

    /// A `ConcurrentQueue`: a list of segments, each a ring of slots with sequence numbers.
    pub(super) fn concurrent_queue(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let mut out = Contents::new(ContainerKind::ConcurrentQueue, 0, None);
        let first = there!(self.reference(object, mt, "_head")?);
        let fields = self.segment(there!(self.library.method_table(first)))?;
        let (segments, ends) = self.chain(Some(first), fields.next);
        out.cut = !ends;
        let mut slot_fields: Option<(Field, Field)> = None;
        for segment in segments {
            let number = |field| self.library.u32(segment, field);
            let (head, tail, mask) = (there!(number(fields.head)), there!(number(fields.tail)), there!(number(fields.mask)));
            let shape = there!(self.library.reference(segment, fields.slots).and_then(|a| self.library.array(a)));
            let frozen = there!(self.library.u8(segment, fields.frozen)) != 0;
            // Freezing a segment adds twice its slots to the tail.
            let added = if frozen { u32::try_from(shape.length.saturating_mul(2)).unwrap_or(0) } else { 0 };
            // Both numbers wrap around.
            let count = u64::from(tail.wrapping_sub(added).wrapping_sub(head)).min(shape.length);
            out.count = out.count.saturating_add(count);
            let (item, sequence) = match &slot_fields {
                Some(known) => known,
                None => slot_fields.insert((self.field(shape.element, "Item")?, self.field(shape.element, "SequenceNumber")?)),
            };
            for i in 0..u32::try_from(count).unwrap_or(0) {
                if len64(out.items.len()) >= most {
                    break;
                }
                let number = head.wrapping_add(i);
                let at = shape.data.element(u64::from(number & mask), shape.element_bytes);
                let is_there = there!(self.library.u32_at(there!(self.in_structure(sequence, at)).place.address));
                // An element is there once its slot has the next number.
                if is_there == number.wrapping_add(1) {
                    out.items.push(Item { key: None, value: self.in_structure(item, at) });
                }
            }
        }
        Ok(Some(out))
    }

    pub(super) fn concurrent_stack(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let mut out = Contents::new(ContainerKind::ConcurrentStack, 0, None);
        let Some(head) = self.reference(object, mt, "_head")? else { return Ok(Some(out)) };
        let of = there!(self.library.method_table(head));
        let (next, value) = (self.at(of, "_next")?, self.field(of, "_value")?);
        let (nodes, ends) = self.chain(Some(head), next);
        (out.count, out.cut) = (len64(nodes.len()), !ends);
        let shown = nodes.iter().take(usize::try_from(most).unwrap_or(usize::MAX));
        out.items.extend(shown.map(|node| Item { key: None, value: Some(Self::in_object(&value, *node)) }));
        Ok(Some(out))
    }

    /// A `ConcurrentBag`: a queue for each thread that has used it.
    pub(super) fn concurrent_bag(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let mut out = Contents::new(ContainerKind::ConcurrentBag, 0, None);
        let Some(first) = self.reference(object, mt, "_workStealingQueues")? else { return Ok(Some(out)) };
        let of = there!(self.library.method_table(first));
        let (added, stolen, next) = (self.at(of, "_addTakeCount")?, self.at(of, "_stealCount")?, self.at(of, "_nextQueue")?);
        let (array, head, tail, mask) =
            (self.at(of, "_array")?, self.at(of, "_headIndex")?, self.at(of, "_tailIndex")?, self.at(of, "_mask")?);
        let (queues, ends) = self.chain(Some(first), next);
        out.cut = !ends;
        for queue in queues {
            let number = |field| self.library.i32(queue, field);
            let own = there!(number(added)).saturating_sub(there!(number(stolen)));
            out.count = out.count.saturating_add(u64::try_from(own).unwrap_or(0));
            let Some(shape) = self.library.reference(queue, array).and_then(|a| self.library.array(a)) else { continue };
            let (head, tail, mask) = (there!(number(head)), there!(number(tail)), there!(number(mask)));
            for i in (head..tail).take(usize::try_from(shape.length).unwrap_or(usize::MAX)) {
                if len64(out.items.len()) < most {
                    let index = u64::from((i & mask).unsigned_abs());
                    out.items.push(Item { key: None, value: Some(self.element(&shape, index)) });
                }
            }
        }
        Ok(Some(out))
    }

    /// The references in the pool's local queue at `queue`, whose type is at `mt`: those that were not stolen.
    pub(crate) fn work_stealing_queue(&self, queue: Addr, mt: Addr) -> Read<Vec<Addr>> {
        let array = there!(self.array_of(queue, mt, "m_array")?);
        let number = |names| Ok::<_, NoSuchField>(self.library.i32(queue, self.at(mt, names)?));
        let (head, tail, mask) = (there!(number("m_headIndex")?), there!(number("m_tailIndex")?), there!(number("m_mask")?));
        let slots = (head..tail).take(usize::try_from(array.length).unwrap_or(usize::MAX));
        let slot = |i: i32| array.data.element(u64::from((i & mask).unsigned_abs()), array.element_bytes);
        Ok(Some(slots.filter_map(|i| self.library.reference_at(slot(i))).collect()))
    }

    /// The objects in the `ConcurrentQueue<object>` at `queue`, oldest first, and whether there may be more.
    pub(crate) fn queued(&self, queue: Addr) -> Read<(Vec<Addr>, bool)> {
        let mt = there!(self.library.method_table(queue));
        let contents = there!(self.concurrent_queue(queue, mt, u64::MAX)?);
        let at = |item: Item| self.library.reference_at(item.value?.place.address);
        Ok(Some((contents.items.into_iter().filter_map(at).collect(), contents.cut)))
    }
}
