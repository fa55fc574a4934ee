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
                for heap in &self.facts.heaps {
                    let Some(at) = place.of(heap.address) else { continue };
                    let what = format!("heap {}: out-of-memory history", heap.index);
                    heaps.extend(self.needed(&what, self.oom_at(&layout, *heap, at)));
                }
            }
            (Err(e), _) => self.notes.add(NoteKind::Missing, None, format!("out-of-memory history: {e}")),
            (_, None) => {
                self.notes.add(NoteKind::Missing, None, "out-of-memory history: the descriptor does not give its address");
            }
        }
        heaps
    }

    fn oom_at(&self, l: &OomLayout, heap: HeapId, at: Addr) -> Result<OomModel, ReadError> {
        let word = |offset: Option<u64>| offset.map_or(Ok(0), |o| self.memory.word(at.plus(o)));
        let int = |offset: Option<u64>| offset.map_or(Ok(0), |o| self.memory.i32(at.plus(o)));
        let (reason, why) = names::oom_reason(self.memory.i32(at.plus(l.reason))?);
        let (fgm, call) = names::failed_call(int(l.fgm)?);
        let alloc_size = self.memory.word(at.plus(l.alloc_size))?;
        let (size, pagefile) = (word(l.size)?, word(l.available_pagefile_mb)?);
        let loh = int(l.loh)? != 0;
        let gc_index = word(l.gc_index)?;
        let text = if reason == OomReason::None {
            "none recorded".to_string()
        } else {
            let mut text = format!("{}-byte allocation failed after GC #{gc_index}: {why}", thousands(alloc_size));
            if let Some(call) = call {
                text.push_str(&format!("; {}: {call} ({} bytes)", if loh { "LOH" } else { "SOH" }, thousands(size)));
            }
            if pagefile != 0 {
                text.push_str(&format!("; {pagefile} MB of commit space left"));
            }
            text
        };
        Ok(OomModel {
            heap: heap.index,
            reason,
            alloc_size,
            reserved: Addr(word(l.reserved)?),
            allocated: Addr(word(l.allocated)?),
            gc_index,
            fgm,
            size,
            available_pagefile_mb: pagefile,
            loh,
            text,
        })
    }
}
