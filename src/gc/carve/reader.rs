//! Determines whether a word is the address of a method table that begins an object, and where the object ends.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::areas::{Area, Areas};
use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::base::{Addr, Budget, Collector, Count};
use crate::clr::method_table::MethodTables;
use crate::clr::objects::Objects;
use crate::contract::{ContractError, Descriptor};
use crate::gc::walk::{Object, ObjectType, ObjectTypes, words};
use crate::memory::Memory;

/// Maximum number of base types of a type.
const DEEPEST: usize = 64;
/// Maximum number of cached addresses, of method tables and of other memory.
const MOST_VERDICTS: usize = 1 << 20;

/// Recognizes method tables. Shared between threads.
pub(super) struct Kinds<'m> {
    pub(super) memory: &'m Memory,
    pub(super) tables: MethodTables,
    objects: Objects,
    types: ObjectTypes,
    budget: Budget,
    verdicts: RwLock<Map<u64, Option<Arc<ObjectType>>>>,
    /// Whether structures of the runtime may be missing, because the dump is truncated or trimmed.
    lacks_parts: bool,
    /// The lowest and the highest address at which method tables may be.
    bounds: (u64, u64),
}

impl<'m> Kinds<'m> {
    pub(super) fn bind(memory: &'m Arc<Memory>, d: &Descriptor, free: Option<Addr>) -> Result<Kinds<'m>, ContractError> {
        let mut tables = MethodTables::bind(memory, d)?;
        tables.free = tables.free.or(free);
        let (lowest, highest) = memory.bounds();
        let (first, last) = tables.inferred_bounds().unwrap_or((lowest, highest));
        Ok(Kinds {
            memory,
            tables,
            objects: Objects::bind(memory, d)?,
            types: ObjectTypes::new(&[], memory),
            budget: Budget::of_types(memory.dump_bytes(), None),
            verdicts: RwLock::default(),
            lacks_parts: memory.is_cut() || memory.is_trimmed(),
            bounds: (lowest.min(first), highest.max(last)),
        })
    }

    /// The method table of free space in `areas`, found by its contents: its objects are arrays of bytes, and it does not have a class or a
    /// base type.
    pub(super) fn find_free(memory: &Arc<Memory>, d: &Descriptor, areas: &Areas<'_>) -> Option<Addr> {
        let tables = MethodTables::bind(memory, d).ok()?;
        if tables.free.is_some() || tables.is_native_aot() {
            return tables.free;
        }
        let is_free = |at: Addr| {
            let info = tables.read(at).ok()?;
            let bare = info.class_or_canonical.is_null() && info.parent.is_null() && info.component_size == 1;
            (bare && u64::from(info.base_size) == tables.smallest()).then_some(())
        };
        let word = usize::try_from(memory.ptr_bytes()).ok()?;
        let (mut verdicts, mut counts) = (Map::<u64, bool>::default(), BTreeMap::<u64, u64>::new());
        for area in &areas.list {
            area.each_set(memory.shape(), word, |_, value| {
                let at = Addr(value);
                if !at.is_aligned(memory.ptr_bytes()) || !memory.has(at) || verdicts.len() >= MOST_VERDICTS {
                    return;
                }
                if *verdicts.entry(value).or_insert_with(|| tried(|| is_free(at)).is_some()) {
                    counts.entry(value).or_default().bump();
                }
            });
        }
        // Each free block begins with its address.
        counts.into_iter().filter(|(_, n)| *n > 1).max_by_key(|(_, n)| *n).map(|(at, _)| Addr(at))
    }

    /// The type with the method table at `mt`; `None` if the memory at `mt` is not a method table. The base types must also be method
    /// tables, up to one without a base type, and the module must be in the dump. Without the check of the base types, rings of objects
    /// would be accepted as method tables.
    fn verdict(&self, mt: u64) -> Option<Arc<ObjectType>> {
        if let Some(known) = self.verdicts.read().unwrap_or_else(PoisonError::into_inner).get(&mt) {
            return known.clone();
        }
        let found = if self.step(1) { self.examine(Addr(mt)) } else { None };
        let mut verdicts = self.verdicts.write().unwrap_or_else(PoisonError::into_inner);
        if found.is_some() || verdicts.len() < MOST_VERDICTS {
            verdicts.insert(mt, found.clone());
        }
        found
    }

    fn examine(&self, mt: Addr) -> Option<Arc<ObjectType>> {
        let info = self.tables.read(mt).ok()?;
        if !info.is_free && !self.tables.is_inferred(mt) {
            // Strings end in two bytes after the last word.
            let whole = info.component_size != 0 || u64::from(info.base_size).is_multiple_of(self.memory.ptr_bytes());
            if !whole || self.tables.is_valid(mt) != Ok(true) || !self.has_bases(info.parent) {
                return None;
            }
            let module = self.tables.module(&info).ok();
            let known = module.is_some_and(|module| self.memory.has(module));
            if !known && !self.tables.is_native_aot() && !self.lacks_parts {
                return None;
            }
        }
        self.types.get(self.memory, &self.tables, mt)
    }

    fn has_bases(&self, first: Addr) -> bool {
        let mut at = first;
        for _ in 0..DEEPEST {
            if at.is_null() {
                return true;
            }
            let info = self.tables.read(at);
            match (info, self.tables.is_valid(at)) {
                (Ok(info), Ok(true)) => at = info.parent,
                (Ok(_), Ok(false)) => return false,
                (Err(_), _) | (_, Err(_)) => return self.lacks_parts,
            }
        }
        false
    }

    /// Whether the method tables of the process are lost, and with them its statics.
    pub(super) fn lacks_tables(&self) -> bool {
        self.tables.inferred_bounds().is_some()
    }

    /// Whether `object` is a string that ends in NUL.
    pub(super) fn is_text(&self, object: &Object<'_>) -> bool {
        let end = || self.memory.u16(object.address.plus(object.size.checked_sub(self.memory.ptr_bytes())?.checked_sub(2)?)).ok();
        object.ty.is_string && end() == Some(0)
    }

    /// Notes what was left out for what it takes.
    pub(super) fn note(&self, notes: &Collector) {
        self.types.note(notes);
        self.budget.note("carving the heap", notes);
    }

    /// Whether `n` more steps of a search may be taken. The limit is for forged dumps, in which all references may point to the same
    /// object.
    pub(super) fn step(&self, n: u64) -> bool {
        self.budget.steps(n)
    }

    /// Whether tables may grow by `bytes`.
    pub(super) fn afford(&self, bytes: u64) -> bool {
        self.budget.memory(bytes)
    }
}

/// Number of types in the cache of each thread; a power of two.
const KNOWN: usize = 1 << 12;
/// Number of words that are not addresses of method tables in the cache of each thread; a power of two.
const REFUSED: usize = 1 << 15;

/// A type, and its sizes, which a step from one object to the next needs.
#[derive(Clone, Default)]
struct Known {
    mt: u64,
    base_size: u64,
    component_size: u64,
    ty: Option<Arc<ObjectType>>,
}

/// Memory that looks like an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seeming {
    /// Start of the next object, if there were one.
    pub(super) end: Addr,
    /// Size in bytes, not rounded up.
    pub(super) size: u64,
    pub(super) is_free: bool,
}

/// Reads supposed objects. Each thread has one reader.
pub(super) struct Reader<'k> {
    pub(super) kinds: &'k Kinds<'k>,
    known: Vec<Known>,
    refused: Vec<u64>,
}

fn slot(mt: u64, slots: usize) -> usize {
    usize::try_from((mt >> 3) ^ (mt >> 13)).unwrap_or(0) & slots.saturating_sub(1)
}

impl<'k> Reader<'k> {
    pub(super) fn new(kinds: &'k Kinds<'k>) -> Reader<'k> {
        Reader { kinds, known: vec![Known::default(); KNOWN], refused: vec![0; REFUSED] }
    }

    /// The type of an object with the first word `word`.
    #[inline]
    fn known(&mut self, word: u64) -> Option<&Known> {
        let mt = self.kinds.objects.table_in(word).0;
        if mt < self.kinds.bounds.0 || mt >= self.kinds.bounds.1 {
            return None;
        }
        let at = slot(mt, KNOWN);
        if self.known.get(at)?.mt != mt {
            let no = slot(mt, REFUSED);
            if self.refused.get(no) == Some(&mt) {
                return None;
            }
            match self.kinds.verdict(mt) {
                None => {
                    *self.refused.get_mut(no)? = mt;
                    return None;
                }
                Some(ty) => {
                    let (base_size, component_size) = (ty.base_size, ty.component_size);
                    *self.known.get_mut(at)? = Known { mt, base_size, component_size, ty: Some(ty) };
                }
            }
        }
        self.known.get(at)
    }

    /// Whether an object may start with `word` at `offset` of `area`, judging by the word before it. This check is cheap and excludes most
    /// words.
    #[inline]
    pub(super) fn may_start(&self, area: &Area<'_>, offset: usize, word: u64) -> bool {
        let (mt, kinds) = (self.kinds.objects.table_in(word), self.kinds);
        let plausible = kinds.bounds.0 <= mt.0 && mt.0 < kinds.bounds.1 && mt.is_aligned(kinds.memory.ptr_bytes());
        plausible && (kinds.tables.free == Some(mt) || self.has_header(area, offset))
    }

    /// Whether the padding in a header before `offset` is zero. On 64-bit targets, it is half of the word.
    #[inline]
    fn has_header(&self, area: &Area<'_>, offset: usize) -> bool {
        let memory = self.kinds.memory;
        memory.ptr_bytes() != 8 || offset < 8 || area.u32(memory.shape(), offset.saturating_sub(8)) == Some(0)
    }

    /// Whether `word` may be the first word of an object.
    #[inline]
    pub(super) fn leads_to_type(&mut self, word: u64) -> bool {
        self.known(word).is_some()
    }

    /// The supposed object at `offset` of `area`. Its first word is `word`.
    #[inline]
    pub(super) fn object(&mut self, area: &Area<'_>, offset: usize, word: u64) -> Option<Seeming> {
        let memory = self.kinds.memory;
        let (shape, pointer) = (memory.shape(), memory.ptr_bytes());
        let known = self.known(word)?;
        let is_free = known.ty.as_ref().is_some_and(|ty| ty.is_free);
        let (base_size, component_size) = (known.base_size, known.component_size);
        let length = match component_size {
            0 => 0,
            _ => area.u32(shape, offset.checked_add(usize::try_from(pointer).ok()?)?)?,
        };
        if length > u32::MAX / 2 {
            return None;
        }
        // The header of a free block may still have earlier contents.
        if !is_free && !self.has_header(area, offset) {
            return None;
        }
        let size = u64::from(length).checked_mul(component_size)?.checked_add(base_size)?.max(self.kinds.tables.smallest());
        let rounded = size.checked_next_multiple_of(pointer)?;
        let start = area.at(offset);
        // The last word of the size is the header of the next object.
        let own = rounded.saturating_sub(pointer);
        let room = area.end().since(start).unwrap_or(0);
        (own <= room || memory.captured(crate::base::AddrRange::of(start, own)) == own).then_some(Seeming {
            end: start.plus(rounded),
            size,
            is_free,
        })
    }

    /// Whether the references at the beginning of the object at `offset` of `area` point to objects. If the address of a method table is in
    /// a field, as in `RuntimeType` and in caches, the field and the memory after it may look like an object.
    pub(super) fn looks_whole(&mut self, area: &Area<'_>, offset: usize, word: u64) -> bool {
        let memory = self.kinds.memory;
        let Some(seeming) = self.object(area, offset, word) else { return false };
        let Some(ty) = self.known(word).and_then(|k| k.ty.clone()) else { return false };
        let (start, pointer, lacks_parts) = (area.at(offset), memory.ptr_bytes(), self.kinds.lacks_parts);
        let mut sound = true;
        ty.near_places(seeming.size, pointer, |at| {
            let Ok(target) = memory.ptr(start.plus(at)) else { return };
            if !sound || target.is_null() {
                return;
            }
            sound = target.is_aligned(pointer)
                && match memory.word(target) {
                    Ok(first) => self.leads_to_type(first),
                    Err(_) => lacks_parts,
                };
        });
        sound
    }

    /// Calls `visit` with each reference of the object at `start`.
    pub(super) fn references(&mut self, start: Addr, word: u64, size: u64, visit: impl FnMut(u64, Addr)) {
        let Some(ty) = self.known(word).and_then(|k| k.ty.clone()) else { return };
        ty.gc_desc.references(self.kinds.memory, start, size, visit);
    }

    /// The word at `offset` of `area`.
    #[inline]
    pub(super) fn word(&self, area: &Area<'_>, offset: usize) -> Option<u64> {
        words::word(self.kinds.memory.shape(), area.bytes.get(offset..)?)
    }
}
