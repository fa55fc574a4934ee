//! Collections that store their elements in arrays, and `Lazy`, `StringBuilder` and `MemoryStream`.

use super::{Collections, Contents, Item, Read, there};
use crate::base::{Addr, drop_split_pair, len64, utf16};
use crate::clr::values::ArrayShape;
use crate::memory::Memory;
use crate::model::ContainerKind;

/// Maximum number of UTF-16 code units of a `StringBuilder` that are shown.
const MOST_TEXT: u64 = 4096;
/// Maximum number of chunks of a `StringBuilder` that are visited. The chunks are linked from the last to the first.
const MOST_CHUNKS: usize = 1024;

impl Collections<'_> {
    fn elements(&self, shape: Option<&ArrayShape>, indexes: impl Iterator<Item = u64>, most: u64) -> Vec<Item> {
        let Some(shape) = shape else { return Vec::new() };
        let valid = indexes.filter(|i| *i < shape.length).take(usize::try_from(most).unwrap_or(usize::MAX));
        valid.map(|i| Item { key: None, value: Some(self.element(shape, i)) }).collect()
    }

    pub(super) fn vector(&self, kind: ContainerKind, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let fields = self.layouts().vector.of(self.types(), mt)?;
        let count = there!(self.number(object, fields.size));
        let shape = self.array_of(object, fields.items);
        let length = shape.as_ref().map_or(0, |s| s.length);
        let mut out = Contents::new(kind, count, Some(length));
        let used = 0..count.min(length);
        out.items = if kind == ContainerKind::Stack {
            self.elements(shape.as_ref(), used.rev(), most)
        } else {
            self.elements(shape.as_ref(), used, most)
        };
        Ok(Some(out))
    }

    pub(super) fn ring(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let fields = self.layouts().ring.of(self.types(), mt)?;
        let count = there!(self.number(object, fields.size));
        let head = there!(self.number(object, fields.head));
        let shape = self.array_of(object, fields.array);
        let length = shape.as_ref().map_or(0, |s| s.length);
        let mut out = Contents::new(ContainerKind::Queue, count, Some(length));
        let place = |i: u64| head.checked_add(i)?.checked_rem(length);
        out.items = self.elements(shape.as_ref(), (0..count.min(length)).map_while(place), most);
        Ok(Some(out))
    }

    pub(super) fn heap(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let fields = self.layouts().heap.of(self.types(), mt)?;
        let count = there!(self.number(object, fields.size));
        let shape = self.array_of(object, fields.nodes);
        let mut out = Contents::new(ContainerKind::PriorityQueue, count, Some(shape.as_ref().map_or(0, |s| s.length)));
        if let Some(shape) = shape.filter(|_| count > 0 && most > 0) {
            let pair = self.layouts().pair_of_heap.of(self.types(), shape.element)?;
            for i in 0..count.min(most).min(shape.length) {
                let at = shape.data.element(i, shape.element_bytes);
                out.items.push(Item { key: self.in_structure(&pair.priority, at), value: self.in_structure(&pair.element, at) });
            }
        }
        Ok(Some(out))
    }

    pub(super) fn sorted_list(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let fields = self.layouts().sorted_list.of(self.types(), mt)?;
        let count = there!(self.number(object, fields.size));
        let (keys, values) = (self.array_of(object, fields.keys), self.array_of(object, fields.values));
        let mut out = Contents::new(ContainerKind::SortedList, count, Some(keys.as_ref().map_or(0, |s| s.length)));
        let element = |shape: &Option<ArrayShape>, i: u64| shape.as_ref().filter(|s| i < s.length).map(|s| self.element(s, i));
        let length = keys.as_ref().map_or(0, |s| s.length);
        out.items.extend((0..count.min(most).min(length)).map(|i| Item { key: element(&keys, i), value: element(&values, i) }));
        Ok(Some(out))
    }

    /// An array of references. Elements that are null are not counted.
    pub(super) fn array(&self, object: Addr, most: u64) -> Option<Contents> {
        let shape = self.library.array(object)?;
        let mut out = Contents::new(ContainerKind::Array, 0, Some(shape.length));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if !self.afford(shape.length / 8) {
            out.cut = true;
            return Some(out);
        }
        for i in 0..shape.length {
            let at = shape.data.element(i, shape.element_bytes);
            if self.library.word_at(at)? != 0 {
                out.count = out.count.saturating_add(1);
                if out.items.len() < most {
                    out.items.push(Item { key: None, value: Some(self.element(&shape, i)) });
                }
            }
        }
        Some(out)
    }

    pub(super) fn bit_array(&self, object: Addr, mt: Addr) -> Read<Contents> {
        let fields = self.layouts().bits.of(self.types(), mt)?;
        let count = there!(self.number(object, fields.length));
        Ok(Some(Contents::new(ContainerKind::BitArray, count, None)))
    }

    pub(super) fn memory_stream(&self, object: Addr, mt: Addr) -> Read<Contents> {
        let fields = self.layouts().stream.of(self.types(), mt)?;
        let length = there!(self.number(object, fields.length));
        let origin = there!(self.number(object, fields.origin));
        let capacity = there!(self.number(object, fields.capacity));
        let bytes = length.saturating_sub(origin);
        Ok(Some(Contents::new(ContainerKind::MemoryStream, bytes, Some(capacity.saturating_sub(origin)))))
    }

    pub(super) fn lazy(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let fields = self.layouts().lazy.of(self.types(), mt)?;
        let made = self.library.reference(object, fields.state).is_none();
        let mut out = Contents::new(ContainerKind::Lazy, u64::from(made), None);
        if made && most > 0 {
            out.items.push(Item { key: None, value: Some(Self::in_object(&fields.value, object)) });
        }
        Ok(Some(out))
    }

    /// A `StringBuilder` without its text.
    pub(super) fn builder(&self, object: Addr, mt: Addr) -> Read<Contents> {
        let fields = self.layouts().builder.of(self.types(), mt)?;
        let offset_of_last = there!(self.number(object, fields.offset));
        let count = offset_of_last.saturating_add(there!(self.number(object, fields.length)));
        let room = there!(self.array_of(object, fields.chars)).length.saturating_add(offset_of_last);
        Ok(Some(Contents::new(ContainerKind::StringBuilder, count, Some(room))))
    }

    /// A `StringBuilder` with its text. If the builder has too many chunks, `cut` is set, and the text does not begin with the first chunk.
    pub(super) fn string_builder(&self, object: Addr, mt: Addr) -> Read<Contents> {
        let mut out = there!(self.builder(object, mt)?);
        let fields = self.layouts().builder.of(self.types(), mt)?;
        let count = out.count;
        // `MOST_CHUNKS` is far below `super::MOST`, because many rows of an answer may show texts of builders.
        let before = |chunk: &Addr| self.library.reference(*chunk, fields.previous);
        let chunks: Vec<Addr> = std::iter::successors(Some(object), before).take(MOST_CHUNKS).collect();
        let mut units: Vec<u16> = Vec::new();
        for chunk in chunks.iter().rev() {
            let left = MOST_TEXT.saturating_sub(u64::try_from(units.len()).unwrap_or(u64::MAX));
            let own = there!(self.number(*chunk, fields.length)).min(left);
            if own == 0 {
                continue;
            }
            let shape = there!(self.array_of(*chunk, fields.chars));
            for i in 0..own.min(shape.length) {
                units.push(there!(self.library.u16_at(shape.data.element(i, shape.element_bytes))));
            }
        }
        let is_cut = len64(units.len()) < count;
        drop_split_pair(&mut units, is_cut);
        let mut text = utf16(units);
        if is_cut {
            text.push('…');
        }
        if count > 0 && self.library.hides_contents() {
            text = Memory::HIDDEN.into();
        }
        out.text = Some(text);
        out.cut = chunks.len() >= MOST_CHUNKS;
        Ok(Some(out))
    }
}
