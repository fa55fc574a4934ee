//! Checks layouts without the runtime's variables. A truncated dump may have all objects and types, but not the variables that point to
//! them.
//!
//! Each object begins with a pointer to a method table. A method table and its EEClass point to each other, and so do a module and its assembly. If
//! the offsets are those of another release, the pointers do not lead back.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::checks::{Check, Outcome};
use super::descriptor::Descriptor;
use crate::base::hash::{Map, Set};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, len64, plural};
use crate::data::{Assembly, Bound, EEClass, MethodTable, Module, bind, component_size};
use crate::memory::Memory;

/// Number of method tables after which the search stops.
const ENOUGH: usize = 256;
/// Minimum number of method tables. Fewer may be found by chance.
const LEAST: usize = 16;
/// Maximum number of addresses for which the result of [`Tables::sizes`] is kept.
const MOST_KNOWN: usize = 1 << 18;
/// Maximum number of words to examine.
const MOST_EXAMINED: usize = 1 << 18;
/// Maximum number of base types of a type.
const DEEPEST: usize = 64;

/// Checks with the layouts of `descriptor` whether words in the dump point to method tables, and whether these method tables point to modules.
pub fn checks(descriptor: &Descriptor, memory: &Memory) -> Vec<Check> {
    let found = tried(|| find(descriptor, memory)).unwrap_or_default();
    let of_tables = match found.tables {
        0..LEAST => Outcome::Unknown(format!("{} found", plural(len64(found.tables), "method table"))),
        n => Outcome::Passed(format!("{} found by their links", plural(len64(n), "method table"))),
    };
    let facts = || format!("{} of {} lead back from their assembly", found.right, plural(found.modules, "module"));
    let of_modules = match (found.right, found.modules) {
        _ if found.tables < LEAST => Outcome::Unknown("no method tables".into()),
        (_, 0) => Outcome::Unknown("no module is in the dump".into()),
        (right, modules) if right.saturating_mul(2) > modules => Outcome::Passed(facts()),
        _ => Outcome::Failed(facts()),
    };
    vec![Check { name: "found-method-tables", outcome: of_tables }, Check { name: "modules-round-trip", outcome: of_modules }]
}

#[derive(Default)]
struct Found {
    tables: usize,
    modules: u64,
    right: u64,
}

/// The sizes of the objects of a type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) base: u32,
    pub(super) component: u32,
    /// Whether it is the type of free space.
    pub(super) is_free: bool,
    /// Whether its EEClass or base type is lost, so that nothing proves that it is a type.
    pub(super) is_unproven: bool,
}

/// Reads enough of method tables to recognize them.
pub(super) struct Tables {
    table: Bound<MethodTable>,
    class: Bound<EEClass>,
    /// Memory of the process that is not in the dump, sorted and disjoint.
    lost: Vec<AddrRange>,
    /// Whether a method table is at an address, and its sizes.
    known: RefCell<Map<Addr, Option<Sizes>>>,
}

impl Tables {
    pub(super) fn bind(d: &Descriptor) -> Option<Tables> {
        Some(Tables {
            table: bind!(d, MethodTable { MTFlags, BaseSize, ParentMethodTable, EEClassOrCanonMT, Module?, LoaderModule? }).ok()?,
            class: bind!(d, EEClass { MethodTable }).ok()?,
            lost: Vec::new(),
            known: RefCell::default(),
        })
    }

    /// Accepts method tables whose EEClass or base type is in `lost` memory, as unproven.
    pub(super) fn beside(self, lost: Vec<AddrRange>) -> Tables {
        Tables { lost, ..self }
    }

    /// Whether the EEClass of the method table at `mt`, its canonical method table or a base type is in lost memory.
    fn is_beside_lost(&self, memory: &Memory, mt: Addr) -> bool {
        let before = |at: Addr| self.lost.partition_point(|range| range.start <= at).checked_sub(1);
        let is_lost = |at: Addr| before(at).and_then(|i| self.lost.get(i)).is_some_and(|range| range.contains(at));
        let mut at = mt;
        for _ in 0..DEEPEST {
            let Ok(word) = self.table.read(memory, at, MethodTable::EEClassOrCanonMT) else { return is_lost(at) };
            let canonical = if word.0 & 1 == 0 { at } else { Addr(word.0 & !1) };
            let class = self.table.read(memory, canonical, MethodTable::EEClassOrCanonMT);
            if class.is_ok_and(is_lost) || class.is_err() && is_lost(canonical) {
                return true;
            }
            match self.table.read(memory, at, MethodTable::ParentMethodTable) {
                Ok(parent) if !parent.is_null() && self.has_class(memory, at) == Some(true) => at = parent,
                _ => return false,
            }
        }
        false
    }

    fn has_class(&self, memory: &Memory, mt: Addr) -> Option<bool> {
        let word = self.table.read(memory, mt, MethodTable::EEClassOrCanonMT).ok()?;
        let canonical = if word.0 & 1 == 0 { mt } else { Addr(word.0 & !1) };
        let at = self.table.read(memory, canonical, MethodTable::EEClassOrCanonMT).ok()?;
        let linked = !at.is_null() && at != canonical && at.is_aligned(memory.ptr_bytes());
        Some(linked && self.class.read(memory, at, EEClass::MethodTable).ok()? == canonical)
    }

    fn is_table(&self, memory: &Memory, mt: Addr) -> Option<()> {
        let mut at = mt;
        for _ in 0..DEEPEST {
            if !self.has_class(memory, at)? {
                return None;
            }
            at = self.table.read(memory, at, MethodTable::ParentMethodTable).ok()?;
            if at.is_null() {
                return Some(());
            }
        }
        None
    }

    /// Sizes of the type whose method table is at `mt`, or those of free space.
    pub(super) fn sizes(&self, memory: &Memory, mt: Addr) -> Option<Sizes> {
        if !mt.is_aligned(memory.ptr_bytes()) || !memory.has(mt) {
            return None;
        }
        if let Some(known) = self.known.borrow().get(&mt) {
            return *known;
        }
        let found = if memory.afford_steps(1) { self.examine(memory, mt) } else { return None };
        let mut known = self.known.borrow_mut();
        if known.len() < MOST_KNOWN {
            known.insert(mt, found);
        }
        found
    }

    /// The method tables of free space among those that were read.
    pub(super) fn free(&self) -> Vec<Addr> {
        let known = self.known.borrow();
        known.iter().filter(|(_, sizes)| sizes.is_some_and(|sizes| sizes.is_free)).map(|(mt, _)| *mt).collect()
    }

    fn examine(&self, memory: &Memory, mt: Addr) -> Option<Sizes> {
        let base = self.table.read(memory, mt, MethodTable::BaseSize).ok()?;
        let flags = self.table.read(memory, mt, MethodTable::MTFlags).ok()?;
        let component = component_size(flags).unwrap_or(0);
        let smallest = memory.ptr_bytes().saturating_mul(3);
        let links = [MethodTable::EEClassOrCanonMT, MethodTable::ParentMethodTable].map(|link| self.table.read(memory, mt, link).ok());
        if component == 1 && u64::from(base) == smallest && links == [Some(Addr::NULL); 2] {
            return Some(Sizes { base, component, is_free: true, is_unproven: false });
        }
        let whole = component != 0 || u64::from(base).is_multiple_of(memory.ptr_bytes());
        (whole && u64::from(base) >= smallest.saturating_sub(2)).then_some(())?;
        let is_proven = self.is_table(memory, mt).is_some();
        let is_unproven = !is_proven && self.is_beside_lost(memory, mt);
        (is_proven || is_unproven).then_some(Sizes { base, component, is_free: false, is_unproven })
    }
}

fn find(d: &Descriptor, memory: &Memory) -> Option<Found> {
    let reader = Tables::bind(d)?;
    let table = &reader.table;
    let is_table = |mt: Addr| {
        let base_size = u64::from(table.read(memory, mt, MethodTable::BaseSize).ok()?);
        if base_size < memory.ptr_bytes().saturating_mul(3) || !base_size.is_multiple_of(memory.ptr_bytes()) {
            return None;
        }
        reader.is_table(memory, mt)
    };
    let (mut examined, mut tables) = (Set::default(), BTreeSet::new());
    'search: for (start, bytes) in memory.stretches(AddrRange::new(Addr::NULL, Addr(u64::MAX))) {
        if !memory.afford_bytes(len64(bytes.len())) {
            break;
        }
        for (_, word) in memory.set_words(AddrRange::of(start, len64(bytes.len()))) {
            let mt = Addr(word);
            if !mt.is_aligned(memory.ptr_bytes()) || !memory.has(mt) || !examined.insert(word) {
                continue;
            }
            if is_table(mt).is_some() {
                tables.insert(mt);
            }
            if tables.len() >= ENOUGH || examined.len() >= MOST_EXAMINED || !memory.afford_steps(4) {
                break 'search;
            }
        }
    }
    let mut found = Found { tables: tables.len(), ..Found::default() };
    let (Ok(module), Ok(assembly)) = (bind!(d, Module { Assembly }), bind!(d, Assembly { Module })) else { return Some(found) };
    let of = |mt: Addr| table.get(memory, mt, MethodTable::Module).or_else(|| table.get(memory, mt, MethodTable::LoaderModule));
    let modules: BTreeSet<Addr> = tables.into_iter().filter_map(of).filter(|at| !at.is_null() && memory.has(*at)).collect();
    for at in modules {
        found.modules = found.modules.saturating_add(1);
        let back = module.read(memory, at, Module::Assembly).and_then(|of| assembly.read(memory, of, Assembly::Module));
        found.right = found.right.saturating_add(u64::from(back == Ok(at)));
    }
    Some(found)
}
