//! Floor 5: the GC contract: heaps, generations, segments, handles, OOM history.
//!
//! Source: contract `GC` (`c1`), with the corrections of `docs/internals/gc-structures.md#errata`, which are marked where
//! they matter. Names are bound to offsets once, in [`Gc::bind`].

mod audit;
mod cards;
mod facts;
mod finalizers;
mod handles;
mod heaps;
mod index;
mod layouts;
mod names;
mod oom;
mod regions;
mod segments;
mod sweep;
mod walk;

pub use audit::{HeapClaims, ListEnd, SegmentList};
pub use cards::Cards;
pub use facts::Facts;
pub use finalizers::{FinalizerEntry, FinalizerQueue};
pub use handles::HandleFilter;
pub use index::{ObjectStarts, StartsVisitor};
pub use names::segment_flags;
pub use sweep::Sweep;
pub use walk::{Heap, Item, Object, ObjectType, ObjectTypes, References, Run, Visitor, Walked};

use crate::base::{Addr, Limits, NoteKind, SharedNotes};
use crate::clr::method_table::object_unmask;
use crate::clr::threads::ContextLayout;
use crate::contract::{ContractError, Descriptor};
use crate::memory::{Memory, ReadError};
use layouts::{GenerationLayout, HandleLayouts, Places, SegmentLayout};

/// Reader of the GC contract of one runtime.
pub struct Gc<'a> {
    memory: &'a Memory,
    descriptor: &'a Descriptor,
    notes: &'a SharedNotes,
    limits: &'a Limits,
    places: Places,
    segment: SegmentLayout,
    generation: GenerationLayout,
    generation_size: u64,
    context: Option<ContextLayout>,
    handles: Option<HandleLayouts>,
    /// Bits of an object's first word that are not part of the method table pointer.
    unmask: u64,
    facts: Facts,
}

/// A heap: its number and, with server GC, the address of its `gc_heap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapId {
    /// Its number.
    pub index: u64,
    /// Address of the structure; `None` for the one workstation heap.
    pub address: Option<Addr>,
}

impl<'a> Gc<'a> {
    /// Binds the contract and reads the facts that everything else depends on.
    ///
    /// # Errors
    /// [`ContractError`] where the descriptor lacks something without which no heap can be read.
    pub fn bind(
        memory: &'a Memory,
        descriptor: &'a Descriptor,
        notes: &'a SharedNotes,
        limits: &'a Limits,
    ) -> Result<Gc<'a>, ContractError> {
        let facts = Facts::read(memory, descriptor, notes, limits)?;
        let unmask = object_unmask(memory, descriptor);
        Ok(Gc {
            memory,
            descriptor,
            notes,
            limits,
            places: Places::bind(descriptor, facts.server),
            segment: SegmentLayout::bind(descriptor)?,
            generation: GenerationLayout::bind(descriptor)?,
            generation_size: descriptor.size_of("Generation")?,
            context: ContextLayout::bind(descriptor).ok(),
            handles: HandleLayouts::bind(descriptor).ok(),
            unmask,
            facts,
        })
    }

    /// The facts.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The method table of the object at `object`, mark bits cleared. `None` where the object is not in the dump.
    pub fn method_table(&self, object: Addr) -> Option<Addr> {
        if object.is_null() {
            return None;
        }
        self.memory.word(object).ok().map(|w| Addr(w & !self.unmask))
    }

    /// A value that an answer needs: noted as missing where it is absent.
    fn needed<T>(&self, what: &str, value: Result<T, ReadError>) -> Option<T> {
        value.map_err(|e| self.notes.add(NoteKind::Missing, e.address, format!("{what}: {e}"))).ok()
    }
}
