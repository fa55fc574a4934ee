//! Structures of the GC and of the runtime, and stacks.

use super::finder::{Finder, arrow};
use crate::analysis::{PlaceKind, WhereReport};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Missing, PAGE};
use crate::data::{GCHeap, HeapSegment, Structure, Thread};
use crate::dump::ThreadStacks;
use crate::gc::{HandleFilter, SideTable};
use crate::model::{HandleModel, RegionListModel, RegionModel};

impl Finder<'_> {
    /// Finds a `heap_segment` of a segment in use or of a free one.
    pub(super) fn segment_structure(&self, blank: &WhereReport) -> Option<WhereReport> {
        let is = |at: Addr| self.structure::<HeapSegment>(at).filter(|r| r.contains(blank.address));
        let used = self.heap.segment_models().iter().find_map(|s| Some((is(s.address)?, s)));
        let (range, text) = if let Some((range, s)) = used {
            (range, format!("heap_segment of {} of heap {}, objects from {} to {}", s.generation, s.heap, s.start, s.allocated))
        } else {
            let free = |r: &RegionModel| !matches!(r.list, RegionListModel::Bookkeeping | RegionListModel::HandleTable);
            let regions = self.notes.take(self.heap.gc().regions());
            let (range, r) = regions.into_iter().filter(free).find_map(|r| Some((is(r.address)?, r)))?;
            (range, format!("heap_segment of a {} from {} to {}", list_name(r.list), r.range.start, r.range.end))
        };
        let offset = blank.address.since(range.start);
        Some(WhereReport { kind: PlaceKind::Segment, text, range: Some(range), offset, ..blank.clone() })
    }

    /// Finds an entry of a finalization queue.
    pub(super) fn finalizer_queue(&self, blank: &WhereReport) -> Option<WhereReport> {
        let queues = self.notes.take(self.heap.gc().finalizer_queues());
        let find = |q: &crate::gc::FinalizerQueue| Some((q.heap, *q.entries.iter().find(|e| e.address == blank.address)?));
        let (heap, entry) = queues.iter().find_map(find)?;
        let target_type = self.type_of(entry.object);
        let text =
            format!("{} entry of the finalization queue of heap {heap}{}", entry.state, arrow(Some(entry.object), target_type.as_ref()));
        Some(WhereReport { kind: PlaceKind::FinalizationQueue, text, target: Some(entry.object), target_type, ..blank.clone() })
    }

    pub(super) fn in_gc_memory(&self, blank: &WhereReport) -> Option<WhereReport> {
        let table = self.heap.gc().side_table(blank.address);
        let region = self.notes.take(self.heap.gc().regions()).into_iter().find(|r| r.range.contains(blank.address));
        let report = region.as_ref().map(|r| {
            let heap = r.heap.map_or_else(String::new, |h| format!(" of heap {h}"));
            let text = format!("memory of the GC: {}{heap}", list_name(r.list));
            WhereReport { kind: PlaceKind::Gc, text, range: Some(r.range), name: Some(r.list.name().into()), ..blank.clone() }
        });
        match (region.map(|r| r.list), table) {
            // Outside of the bookkeeping memory, a table can be recognized only at the biased address that the GC stores.
            (list, Some(t)) if list == Some(RegionListModel::Bookkeeping) || t.covers.is_none() => {
                let (kind, name) = match t.table {
                    SideTable::Cards => (PlaceKind::CardTable, "card table"),
                    SideTable::Marks => (PlaceKind::MarkArray, "mark array"),
                };
                let text = match t.covers {
                    Some(c) => format!("{name}, word for the addresses {} to {}", c.start, c.end),
                    None => format!("{name} as the GC points to it: its words are from {} to {}", t.range.start, t.range.end),
                };
                Some(WhereReport { kind, text, range: Some(t.range), covers: t.covers, ..blank.clone() })
            }
            (Some(RegionListModel::HandleTable), _) => self.handle(blank).or(report),
            _ => report,
        }
    }

    fn handle(&self, blank: &WhereReport) -> Option<WhereReport> {
        let mut found: Option<HandleModel> = None;
        let walked = self.heap.gc().walk_handles(&HandleFilter::default(), |h| {
            if h.address == blank.address {
                found = Some(h);
            }
        });
        self.notes.take(walked);
        let handle = found?;
        let target_type = self.type_of(handle.object);
        let text = format!("{} handle{}", handle.kind, arrow(Some(handle.object), target_type.as_ref()));
        let (target, handle_type) = (Some(handle.object), Some(handle.kind));
        Some(WhereReport { kind: PlaceKind::Handle, text, target, target_type, handle_type, ..blank.clone() })
    }

    /// Finds a `gc_heap`: server GC has one for each heap.
    pub(super) fn gc_heap(&self, blank: &WhereReport) -> Option<WhereReport> {
        let heaps = &self.heap.gc().facts().heaps;
        let is = |at: Addr| self.structure::<GCHeap>(at).filter(|r| r.contains(blank.address));
        let (index, range) = heaps.iter().find_map(|h| Some((h.index, is(h.address?)?)))?;
        let (text, offset) = (format!("gc_heap of heap {index}"), blank.address.since(range.start));
        Some(WhereReport { kind: PlaceKind::GcHeap, text, range: Some(range), offset, ..blank.clone() })
    }

    /// Finds a `Thread` of the runtime.
    pub(super) fn thread(&self, blank: &WhereReport) -> Option<WhereReport> {
        let is = |at: Addr| self.structure::<Thread>(at).filter(|r| r.contains(blank.address));
        let list = self.notes.with(self.heap.runtime().thread_list().ok()?);
        let (thread, range) = list.iter().find_map(|t| Some((t, is(t.address)?)))?;
        let os_id = thread.os_id.and_then(|id| u32::try_from(id).ok()).filter(|id| *id != 0);
        let id = thread.id.map_or_else(String::new, |id| format!(" {id}"));
        let os = os_id.map_or_else(String::new, |id| format!(" (os {id})"));
        let offset = blank.address.since(range.start);
        let text = format!("the runtime's Thread of thread{id}{os}");
        Some(WhereReport { kind: PlaceKind::Thread, text, range: Some(range), offset, managed_id: thread.id, os_id, ..blank.clone() })
    }

    pub(super) fn method_table(&self, blank: &WhereReport) -> Option<WhereReport> {
        let tables = self.heap.walker().tables();
        match tried(|| tables.is_valid(blank.address)) {
            Ok(valid) => valid.then_some(())?,
            // Any word may look like the address of an `EEClass`. If it points near captured memory, it probably is one, and a note is added.
            Err(e) => {
                if e.address.since(blank.address).is_none_or(|n| n > PAGE) && self.heap.memory().is_beside(e.address) {
                    self.notes.add(Missing::Memory, e.address, format!("what is at {} is unknown: {e}", blank.address));
                }
                return None;
            }
        }
        let name = self.namer.name(blank.address)?;
        let module = tables.read(blank.address).and_then(|info| tables.module(&info)).ok().filter(|m| !m.is_null());
        let class = tables.class(blank.address).ok().filter(|c| !c.is_null());
        let of = self.namer.module(blank.address).map_or_else(String::new, |m| format!(" ({m})"));
        let text = format!("method table of {name}{of}");
        Some(WhereReport { kind: PlaceKind::MethodTable, text, name: Some(name.as_str().into()), module, class, ..blank.clone() })
    }

    /// Finds an `EEClass`, which points to a method table that points back to it.
    pub(super) fn class(&self, blank: &WhereReport) -> Option<WhereReport> {
        let tables = self.heap.walker().tables();
        let mt = tried(|| tables.of_class(blank.address))?;
        let name = self.namer.name(mt)?;
        let text = format!("EEClass of {name}, method table {mt}");
        Some(WhereReport { kind: PlaceKind::Class, text, name: Some(name.as_str().into()), ..blank.clone() })
    }

    /// Finds a `Module` of the runtime.
    pub(super) fn runtime_module(&self, blank: &WhereReport) -> Option<WhereReport> {
        let types = self.namer.types().ok()?;
        types.modules().contains(&blank.address).then_some(())?;
        let name = types.names().module(blank.address).name.clone();
        let text = format!("the runtime's Module of {}", name.as_deref().unwrap_or("an assembly without a name"));
        Some(WhereReport { kind: PlaceKind::RuntimeModule, text, name, ..blank.clone() })
    }

    pub(super) fn stack(&self, blank: &WhereReport) -> Option<WhereReport> {
        let dump = self.heap.runtime().file();
        let stacks = ThreadStacks::new(dump);
        let found = dump.threads.iter().find_map(|t| Some((t, stacks.of(t).filter(|r| r.contains(blank.address))?)));
        let (thread, range) = found?;
        let managed =
            self.heap.runtime().threads_if_any(self.notes).iter().find(|m| m.os_id == Some(u64::from(thread.id))).and_then(|m| m.id);
        let named = managed.map_or_else(|| "a native thread".to_string(), |id| format!("thread {id}"));
        let text = format!("stack of {named} (os {})", thread.id);
        Some(WhereReport { kind: PlaceKind::Stack, text, range: Some(range), managed_id: managed, os_id: Some(thread.id), ..blank.clone() })
    }

    /// Returns the memory of a structure at `at`. If the descriptor does not have its size, the range ends after the last known field, or has only
    /// the byte at `at`.
    fn structure<S: Structure>(&self, at: Addr) -> Option<AddrRange> {
        let bytes = S::extent(self.heap.runtime().descriptor(), self.heap.memory().ptr_bytes());
        (!at.is_null()).then(|| AddrRange::new(at, at.plus(bytes)))
    }
}

/// Returns the description of the regions in a list.
fn list_name(list: RegionListModel) -> &'static str {
    match list {
        RegionListModel::Free => "free region",
        RegionListModel::Decommit => "region to be decommitted",
        RegionListModel::FreeHuge => "free huge region",
        RegionListModel::FreeableSoh => "small-object segment to be freed",
        RegionListModel::FreeableUoh => "large- or pinned-object segment to be freed",
        RegionListModel::Bookkeeping => "bookkeeping",
        RegionListModel::HandleTable => "handle table",
    }
}
