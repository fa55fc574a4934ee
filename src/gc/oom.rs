//! The last managed out-of-memory failure of each heap.

use super::layouts::OomLayout;
use super::{HeapId, Reading, names};
use crate::base::{Addr, NoteKind, thousands};
use crate::memory::{Memory, ReadError};
use crate::model::OomModel;

impl Reading<'_> {
    /// The failure recorded by each heap.
    pub(super) fn oom(&self) -> Vec<OomModel> {
        self.note_unusable(Some(&["oom"]));
        let layout = match OomLayout::bind(&self.descriptor) {
            Ok(layout) => layout,
            Err(e) => {
                self.notes.add(NoteKind::Missing, None, format!("out-of-memory history: {e}"));
                return Vec::new();
            }
        };
        let Some(place) = self.places.oom else {
            self.notes.add(NoteKind::Missing, None, "out-of-memory history: the descriptor does not give its address");
            return Vec::new();
        };
        let undescribed = layout.undescribed();
        if !undescribed.is_empty() {
            let what = format!("out-of-memory history: the descriptor does not describe {}", undescribed.join(", "));
            self.notes.add(NoteKind::Missing, None, what);
        }
        let read = self
            .each_heap("out-of-memory histories", |reading, heap| place.of(heap.address).and_then(|at| reading.oom_at(&layout, heap, at)));
        read.into_iter().flatten().collect()
    }

    /// The record of the heap; `None` if nothing of it is in the dump.
    fn oom_at(&self, l: &OomLayout, heap: HeapId, at: Addr) -> Option<OomModel> {
        let (mut first_loss, mut any) = (None, false);
        let mut field = |offset: Option<u64>, read: fn(&Memory, Addr) -> Result<u64, ReadError>| {
            let value = read(&self.memory, at.plus(offset?));
            any |= value.is_ok();
            value.map_err(|e| first_loss.get_or_insert(e).address).ok()
        };
        let word: fn(&Memory, Addr) -> Result<u64, ReadError> = Memory::word;
        let int: fn(&Memory, Addr) -> Result<u64, ReadError> = |memory, at| memory.u32(at).map(u64::from);
        let signed = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).cast_signed();
        let (reason, why) = field(l.reason, int).map(|n| names::oom_reason(signed(n))).unzip();
        let (fgm, call) = field(l.fgm, int).map(|n| names::failed_call(signed(n))).unzip();
        let mut model = OomModel {
            heap: heap.index,
            reason,
            alloc_size: field(l.alloc_size, word),
            reserved: field(l.reserved, word).map(Addr),
            allocated: field(l.allocated, word).map(Addr),
            gc_index: field(l.gc_index, word),
            fgm,
            size: field(l.size, word),
            available_pagefile_mb: field(l.available_pagefile_mb, word),
            loh: field(l.loh, int).map(|n| n != 0),
            text: String::new(),
        };
        if let Some(e) = first_loss {
            self.notes.add(NoteKind::Missing, e.address, format!("heap {}: out-of-memory history: {e}", heap.index));
        }
        model.text = text(&model, why, call.flatten());
        any.then_some(model)
    }
}

/// The failure in words, from the fields that are known.
fn text(o: &OomModel, why: Option<&str>, call: Option<&str>) -> String {
    match o.failed() {
        None => return "not known".into(),
        Some(false) => return "none recorded".into(),
        Some(true) => {}
    }
    let after = o.gc_index.map_or_else(String::new, |n| format!(" after GC #{n}"));
    let what = o.alloc_size.map_or_else(|| "an allocation".to_string(), |n| format!("{}-byte allocation", thousands(n)));
    let mut text = format!("{what} failed{after}: {}", why.unwrap_or("the reason is not known"));
    if let Some(call) = call {
        let place = o.loh.map_or("", |loh| if loh { "LOH: " } else { "SOH: " });
        let size = o.size.map_or_else(String::new, |n| format!(" ({} bytes)", thousands(n)));
        text.push_str(&format!("; {place}{call}{size}"));
    }
    if let Some(mb) = o.available_pagefile_mb.filter(|mb| *mb != 0) {
        text.push_str(&format!("; {mb} MB of commit space left"));
    }
    text
}
