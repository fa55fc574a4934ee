//! `near`: the objects around an address of the heap.

mod report;

pub use report::*;

use std::collections::VecDeque;
use std::ops::ControlFlow;

use crate::analysis::objects::where_is::segment_place;
use crate::base::{Addr, Answer, Count, Silent};
use crate::gc::{SegmentIndex, note_walks};
use crate::model::WalkModel;
use crate::session::{Error, Heap};

/// Arguments of `near`.
#[derive(Clone, Copy, Debug)]
pub struct NearQuery {
    /// The address.
    pub address: Addr,
    /// Maximum number of rows before the address.
    pub before: usize,
    /// Maximum number of rows after the address.
    pub after: usize,
}

/// Lists the objects and gaps around a heap address.
///
/// # Errors
/// [`Error::NotIn`] if the address is not in the heap.
pub fn near(heap: &Heap, query: &NearQuery) -> Result<Answer<NearReport>, Error> {
    let NearQuery { address, before, after } = *query;
    let (notes, namer) = (heap.begin(), heap.namer());
    let outside = || Error::NotIn(address, "the heap").given(&notes.notes());
    let (_, segment) = heap.walker().segment_of(address).ok_or_else(outside)?;
    let mut rows: VecDeque<NearRow> = VecDeque::new();
    let word = heap.memory().ptr_bytes();
    let mut next = segment.start;
    let gap = |from: Addr, to: Addr| NearRow {
        kind: NearKind::Gap,
        address: from,
        size: to.since(from).unwrap_or(0),
        type_name: None,
        method_table: None,
        here: from <= address && address < to,
    };
    // Whether the walk has passed the address, and how many rows were kept after it.
    let (mut passed, mut following) = (false, 0usize);
    let mut keep = |row: NearRow, rows: &mut VecDeque<NearRow>| {
        if passed {
            following.bump();
        }
        passed |= row.here || row.address > address;
        rows.push_back(row);
        if !passed && rows.len() > before {
            rows.pop_front();
        }
        following < after
    };
    let walks = heap.walker().visit(
        &Silent,
        |_, s| s.address == segment.address,
        |o| {
            if o.address > next && !keep(gap(next, o.address), &mut rows) {
                return ControlFlow::Break(());
            }
            let rounded = o.size.next_multiple_of(word);
            next = o.address.plus(rounded);
            let row = NearRow {
                kind: if o.ty.is_free { NearKind::Free } else { NearKind::Object },
                address: o.address,
                size: o.size,
                // Names are added below, because only a few rows remain.
                type_name: None,
                method_table: Some(o.ty.method_table),
                here: o.address <= address && address < next,
            };
            if keep(row, &mut rows) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    note_walks(heap.walker(), &walks, &notes);
    let stopped = walks.iter().any(|(_, w)| !w.complete && w.stopped_at.is_none());
    if !stopped && next < segment.allocated {
        keep(gap(next, segment.allocated), &mut rows);
    }
    let contexts = notes.take(heap.gc().contexts(heap.runtime().threads_if_any(&notes)));
    let mut rows: Vec<NearRow> = rows.into();
    for row in &mut rows {
        let free = row.kind == NearKind::Free;
        row.type_name = row.method_table.map(|mt| if free { "Free".into() } else { namer.name_or_address(mt) });
        if row.kind == NearKind::Gap {
            let context = contexts.iter().any(|c| c.pointer == row.address);
            row.kind = if context { NearKind::AllocationContext } else { gap_kind(&walks, row.address) };
        }
    }
    namer.note(&notes);
    Ok(notes.finish(NearReport { address, segment: segment_place(segment, address), rows }))
}

fn gap_kind(walks: &[(SegmentIndex, WalkModel)], address: Addr) -> NearKind {
    let gap = walks.iter().flat_map(|(_, w)| &w.gaps).find(|g| g.range.start == address);
    gap.map_or(NearKind::Gap, |g| g.kind.into())
}
