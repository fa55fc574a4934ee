//! Checks layouts without the runtime's variables. A truncated dump may have all objects and types, but not the variables that point to
//! them.
//!
//! Each object begins with a pointer to a method table. A method table and its EEClass point to each other, and so do a module and its assembly. If
//! the offsets are those of another release, the pointers do not lead back.

use std::collections::BTreeSet;

use super::checks::{Check, Outcome};
use super::descriptor::Descriptor;
use crate::base::hash::Set;
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, len64, plural};
use crate::data::{Assembly, EEClass, MethodTable, Module, bind};
use crate::memory::Memory;

/// Number of method tables after which the search stops.
const ENOUGH: usize = 256;
/// Minimum number of method tables. Fewer may be found by chance.
const LEAST: usize = 16;
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

fn find(d: &Descriptor, memory: &Memory) -> Option<Found> {
    let table = bind!(d, MethodTable { MTFlags, BaseSize, ParentMethodTable, EEClassOrCanonMT, Module?, LoaderModule? }).ok()?;
    let class = bind!(d, EEClass { MethodTable }).ok()?;
    let is_class = |mt: Addr| {
        let word = table.read(memory, mt, MethodTable::EEClassOrCanonMT).ok()?;
        let canonical = if word.0 & 1 == 0 { mt } else { Addr(word.0 & !1) };
        let at = table.read(memory, canonical, MethodTable::EEClassOrCanonMT).ok()?;
        let linked = !at.is_null() && at != canonical && at.is_aligned(memory.ptr_bytes());
        Some(linked && class.read(memory, at, EEClass::MethodTable).ok()? == canonical)
    };
    let is_table = |mt: Addr| {
        let base_size = u64::from(table.read(memory, mt, MethodTable::BaseSize).ok()?);
        if base_size < memory.ptr_bytes().saturating_mul(3) || !base_size.is_multiple_of(memory.ptr_bytes()) {
            return None;
        }
        let mut at = mt;
        for _ in 0..DEEPEST {
            if !is_class(at)? {
                return None;
            }
            at = table.read(memory, at, MethodTable::ParentMethodTable).ok()?;
            if at.is_null() {
                return Some(());
            }
        }
        None
    };
    let (mut examined, mut tables) = (Set::default(), BTreeSet::new());
    'search: for (start, bytes) in memory.stretches(AddrRange::new(Addr::NULL, Addr(u64::MAX))) {
        if !memory.afford_bytes(len64(bytes.len())) {
            break;
        }
        for (_, word) in memory.set_words(AddrRange::new(start, start.plus(len64(bytes.len())))) {
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
