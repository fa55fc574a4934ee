//! The last managed out-of-memory failure of each heap.

use super::layouts::OomLayout;
use super::{HeapId, Reading, names};
use crate::base::{Addr, NoteKind, thousands};
use crate::memory::ReadError;
use crate::model::{OomModel, OomReason};

impl Reading<'_> {
    /// The failure recorded by each heap.
    pub(super) fn oom(&self) -> Vec<OomModel> {
        let mut heaps = Vec::new();
        self.note_unusable(Some(&["oom"]));
        match (OomLayout::bind(&self.descriptor), self.places.oom) {
            (Ok(layout), Some(place)) => {
                let read = self.each_heap("out-of-memory histories", |reading, heap| {
                    let what = format!("heap {}: out-of-memory history", heap.index);
                    reading.needed(&what, reading.oom_at(&layout, heap, place.of(heap.address)?))
                });
                heaps.extend(read.into_iter().flatten());
            }
            (Err(e), _) => self.notes.add(NoteKind::Missing, None, format!("out-of-memory history: {e}")),
            (_, None) => {
                self.notes.add(NoteKind::Missing, None, "out-of-memory history: the descriptor does not give its address");
            }
        }
        heaps
    }

    fn oom_at(&self, l: &OomLayout, heap: HeapId, at: Addr) -> Result<OomModel, ReadError> {
        // What the descriptor lacks is absent; what it has must be readable.
        let word = |offset: Option<u64>| offset.map(|o| self.memory.word(at.plus(o))).transpose();
        let int = |offset: Option<u64>| offset.map(|o| self.memory.i32(at.plus(o))).transpose();
        let (reason, why) = names::oom_reason(self.memory.i32(at.plus(l.reason))?);
        let (fgm, call) = int(l.fgm)?.map(names::failed_call).unzip();
        let alloc_size = self.memory.word(at.plus(l.alloc_size))?;
        let (size, pagefile) = (word(l.size)?, word(l.available_pagefile_mb)?);
        let loh = int(l.loh)?.map(|n| n != 0);
        let gc_index = word(l.gc_index)?;
        let text = if reason == OomReason::None {
            "none recorded".to_string()
        } else {
            let after = gc_index.map_or_else(String::new, |n| format!(" after GC #{n}"));
            let mut text = format!("{}-byte allocation failed{after}: {why}", thousands(alloc_size));
            if let Some(call) = call.flatten() {
                let place = loh.map_or("", |loh| if loh { "LOH: " } else { "SOH: " });
                let size = size.map_or_else(String::new, |n| format!(" ({} bytes)", thousands(n)));
                text.push_str(&format!("; {place}{call}{size}"));
            }
            if let Some(mb) = pagefile.filter(|mb| *mb != 0) {
                text.push_str(&format!("; {mb} MB of commit space left"));
            }
            text
        };
        Ok(OomModel {
            heap: heap.index,
            reason,
            alloc_size,
            reserved: word(l.reserved)?.map(Addr),
            allocated: word(l.allocated)?.map(Addr),
            gc_index,
            fgm,
            size,
            available_pagefile_mb: pagefile,
            loh,
            text,
        })
    }
}
