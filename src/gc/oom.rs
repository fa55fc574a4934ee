//! The last managed out-of-memory failure of each heap.

use std::cell::Cell;

use super::{HeapId, Reading, names};
use crate::base::{Addr, Missing, thousands};
use crate::data::{Bound, Field, GCHeap, Kind, OomHistory, bind};
use crate::memory::{Memory, ReadError};
use crate::model::{GcLimitModel, OomModel, OomReason};

/// An `oom_history` record that is being read.
struct Record<'r> {
    fields: &'r Bound<OomHistory>,
    memory: &'r Memory,
    at: Addr,
    /// The first described field that is not in the dump.
    loss: Cell<Option<ReadError>>,
    /// Whether any field is in the dump.
    any: Cell<bool>,
}

impl Record<'_> {
    fn get<T: Kind>(&self, field: Field<OomHistory, T>) -> Option<T::Value> {
        let value = self.fields.read_optional(self.memory, self.at, field);
        self.any.set(self.any.get() || matches!(value, Ok(Some(_))));
        value.map_err(|e| self.loss.set(self.loss.get().or(Some(e)))).ok()?
    }
}

impl Reading<'_> {
    /// The failure recorded by each heap.
    pub(super) fn oom(&self) -> Vec<OomModel> {
        self.note_unusable(GCHeap::OomData);
        // All fields are optional, so binding does not fail.
        let fields = bind!(&self.descriptor, OomHistory { Reason?, AllocSize?, Reserved?, Allocated?, GcIndex?, Fgm?, Size?, AvailablePagefileMb?, LohP? });
        let Ok(fields) = fields else { return Vec::new() };
        if !self.places.has(GCHeap::OomData) {
            self.notes.add(Missing::Heap, None, "out-of-memory history: the descriptor does not give its address");
            return Vec::new();
        }
        let undescribed: Vec<&str> = fields.absent().collect();
        if !undescribed.is_empty() {
            let what = format!("out-of-memory history: the descriptor does not describe {}", undescribed.join(", "));
            self.notes.add(Missing::Heap, None, what);
        }
        let of_heap = |reading: &Reading<'_>, heap| reading.oom_of(&fields, heap);
        self.each_heap("out-of-memory histories", of_heap).into_iter().flatten().collect()
    }

    /// The record of the heap; `None` if none of its fields is in the dump.
    fn oom_of(&self, fields: &Bound<OomHistory>, heap: HeapId) -> Option<OomModel> {
        let at = self.places.at(heap, GCHeap::OomData)?;
        let record = Record { fields, memory: &self.memory, at, loss: Cell::new(None), any: Cell::new(false) };
        let (reason, why) = record.get(OomHistory::Reason).map(names::oom_reason).unzip();
        let (fgm, call) = record.get(OomHistory::Fgm).map(names::failed_call).unzip();
        let mut model = OomModel {
            heap: heap.index,
            reason,
            alloc_size: record.get(OomHistory::AllocSize),
            reserved: record.get(OomHistory::Reserved),
            allocated: record.get(OomHistory::Allocated),
            gc_index: record.get(OomHistory::GcIndex),
            fgm,
            size: record.get(OomHistory::Size),
            available_pagefile_mb: record.get(OomHistory::AvailablePagefileMb),
            loh: record.get(OomHistory::LohP).map(|n| n != 0),
            text: String::new(),
        };
        if let Some(e) = record.loss.get() {
            self.notes.add(Missing::Heap, e.address, format!("heap {}: out-of-memory history: {e}", heap.index));
        }
        model.text = text(&model, why, call.flatten(), self.limit());
        record.any.get().then_some(model)
    }
}

/// A description of the failure, from the fields that are known.
fn text(o: &OomModel, why: Option<&str>, call: Option<&str>, limit: Option<GcLimitModel>) -> String {
    match o.failed() {
        None => return "the out-of-memory history cannot be read".into(),
        Some(false) => return "no failed allocation recorded".into(),
        Some(true) => {}
    }
    let after = o.gc_index.map_or_else(String::new, |n| format!(" after GC #{n}"));
    // With this reason, the size is that of the budget, not the size that the program requested (measured).
    let size = o.alloc_size.filter(|_| o.reason != Some(OomReason::Budget));
    let what = size.map_or_else(|| "An allocation".to_string(), |n| format!("{}-byte allocation", thousands(n)));
    let why = why.unwrap_or("the reason is unknown");
    // At its limit, the GC can neither commit memory nor meet a budget.
    let of_limit = o.reason.is_none_or(|r| matches!(r, OomReason::Budget | OomReason::CantCommit | OomReason::Loh | OomReason::LowMem));
    let mut text = match limit.filter(|l| of_limit && l.is_reached()) {
        Some(limit) => format!("{what} failed{after}: the GC heap has reached its limit of {}", limit.words()),
        None => format!("{what} failed{after}: {why}"),
    };
    if let Some(limit) = limit.filter(|l| !l.is_reached()) {
        text.push_str(&format!("; the GC heap has a limit of {}", limit.words()));
    }
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
