//! `where`: describes an address.

mod code;
mod finder;
mod heap;
mod images;
mod report;
mod structures;

pub use report::*;

use finder::Finder;
pub(in crate::analysis) use heap::{containing, heap_place, segment_place};

use crate::base::{Addr, Answer, Name};
use crate::session::Heap;

/// Finds what is at `address`.
pub fn where_is(heap: &Heap, address: Addr) -> Answer<WhereReport> {
    let (notes, namer) = (heap.begin(), heap.namer());
    let report = Finder { heap, namer: &namer, notes: &notes }.find(address);
    namer.note(&notes);
    notes.finish(report)
}

impl Finder<'_> {
    fn find(&self, address: Addr) -> WhereReport {
        let blank = WhereReport {
            address,
            kind: PlaceKind::Unknown,
            text: "the dump does not describe this address".into(),
            captured: self.heap.memory().has(address),
            object: None,
            offset: None,
            segment: None,
            range: None,
            name: None,
            managed_id: None,
            os_id: None,
            target: None,
            target_type: None,
            handle_type: None,
            covers: None,
            module: None,
            class: None,
            section: None,
            symbol: None,
            symbol_offset: None,
            code: None,
        };
        // The most specific look-ups come first, because structures of the GC and of the runtime are inside larger blocks of memory.
        let find = [
            Self::in_heap,
            Self::segment_structure,
            Self::finalizer_queue,
            Self::in_gc_memory,
            Self::gc_heap,
            Self::thread,
            Self::method_table,
            Self::class,
            Self::runtime_module,
            Self::stack,
            Self::static_field,
            Self::code,
            Self::module,
            Self::memory,
        ];
        find.into_iter().find_map(|f| f(self, &blank)).unwrap_or(blank)
    }

    /// Returns the type name of the object at an address.
    fn type_of(&self, object: Addr) -> Option<Name> {
        self.heap.gc().method_table(object).map(|mt| self.namer.of_object(object, mt, self.namer.name_or_address(mt)))
    }
}
