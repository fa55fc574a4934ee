//! Named mutexes of .NET 11 and later on Unix. The library keeps a record of each in the heap, with the thread of the process that holds it.
//!
//! Source: `docs/internals/locks.md#named-mutexes`.

use std::collections::BTreeMap;

use super::objects::LockType;
use super::wait_subsystem::SafeHandleFields;
use super::wait_target::WaitTarget;
use crate::analysis::LockKind;
use crate::base::hash::Map;
use crate::base::{Addr, Collector};
use crate::bcl::Library;
use crate::clr::library::{Classifier, fields_of, noted};

/// Bit of `SafeHandle._state` of a handle that is closed: another object may have its value.
const CLOSED: u32 = 1;

fields_of! {
    /// `System.Threading.WaitSubsystem+NamedMutex`, one for each `Mutex`.
    struct MutexFields {
        record: req "_processDataHeader",
    }
}

fields_of! {
    /// `System.IO.SharedMemoryProcessDataHeader<T>`, one for each named mutex that the process uses.
    struct RecordFields {
        id: req "_id",
        data: req "_processData",
    }
}

fields_of! {
    /// `System.IO.SharedMemoryId`, a structure.
    struct IdFields {
        name: req "<Name>k__BackingField",
    }
}

fields_of! {
    /// `System.Threading.NamedMutexProcessDataBase`.
    struct DataFields {
        /// The `Thread` object; null if no thread of this process holds the mutex.
        owner: req "_lockOwnerThread",
        /// Number of times that the owner has entered the mutex.
        entered: req "_lockCount",
    }
}

/// A named mutex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedMutex {
    /// Its first `Mutex` in the heap, which represents the others as well.
    pub(super) object: Addr,
    pub(super) name: Option<String>,
    /// The `Thread` object of the owner; `None` if no thread of the process holds the mutex, or if that is unknown.
    pub(super) owner: Option<Addr>,
    /// Number of times that the owner has entered the mutex again.
    pub(super) recursion: Option<u32>,
}

/// Reads the named mutexes. `by_handle` has the wait handle of each `SafeWaitHandle`; those of one named mutex are replaced with the first of them.
pub(super) fn read(
    library: &Library,
    types: &Classifier<LockType>,
    by_handle: &mut Map<Addr, WaitTarget>,
    notes: &Collector,
) -> Vec<NamedMutex> {
    let of = library.types();
    let tables = types.table(LockType::NamedMutex).zip(types.table(LockType::SafeWaitHandle));
    let bound = tables.and_then(|(mutex, safe)| Some((mutex, SafeHandleFields::bind(of, safe).ok()?)));
    let Some((table, handle)) = bound else { return Vec::new() };
    let named = |safe: Addr| {
        let open = handle.state.and_then(|field| library.u32(safe, field)).is_some_and(|state| state & CLOSED == 0);
        let named = library.reference(safe, handle.handle).filter(|_| open).and_then(|handle| library.reference_at(handle))?;
        (library.method_table(named)? == table).then_some(named)
    };
    let plain = by_handle.iter().filter(|(_, whole)| whole.kind == LockKind::WaitHandle);
    let mutexes: Vec<(Addr, Addr, Addr)> = plain.filter_map(|(safe, whole)| Some((named(*safe)?, whole.object, *safe))).collect();
    if mutexes.is_empty() {
        return Vec::new();
    }
    let Some(fields) = noted(MutexFields::bind(of, table), "named mutexes", notes) else { return Vec::new() };
    let record = |(named, object, safe): (Addr, Addr, Addr)| Some((library.reference(named, fields.record)?, object, safe));
    let records: Vec<(Addr, Addr, Addr)> = mutexes.into_iter().filter_map(record).collect();
    let first = firsts(records.iter().map(|(record, object, _)| (*record, *object)));
    for (record, _, safe) in &records {
        if let Some((whole, object)) = by_handle.get_mut(safe).zip(first.get(record)) {
            whole.object = *object;
        }
    }
    first.into_iter().map(|(record, object)| mutex_of(library, record, object, notes)).collect()
}

/// Returns the lowest object of each record.
fn firsts(pairs: impl Iterator<Item = (Addr, Addr)>) -> BTreeMap<Addr, Addr> {
    let mut out = BTreeMap::new();
    for (record, object) in pairs {
        let first = out.entry(record).or_insert(object);
        *first = object.min(*first);
    }
    out
}

/// Reads the named mutex with this record, which `object` represents.
fn mutex_of(library: &Library, record: Addr, object: Addr, notes: &Collector) -> NamedMutex {
    let types = library.types();
    let bound = library.method_table(record).and_then(|mt| noted(RecordFields::bind(types, mt), "named mutexes", notes));
    let name = bound.and_then(|fields| {
        let id = noted(IdFields::bind(types, fields.id.method_table?), "the names of mutexes", notes)?;
        library.string(record, fields.id.then(id.name, types))
    });
    let data = bound.and_then(|fields| library.reference(record, fields.data));
    let held = data.and_then(|data| Some((data, noted(DataFields::bind(types, library.method_table(data)?), "named mutexes", notes)?)));
    let owner = held.and_then(|(data, fields)| library.reference(data, fields.owner));
    let entered = held.filter(|_| owner.is_some()).and_then(|(data, fields)| library.word(data, fields.entered));
    NamedMutex { object, name, owner, recursion: entered.and_then(|n| u32::try_from(n).ok()?.checked_sub(1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mutex_represents_all_with_one_name() {
        let pairs = [(1, 0x30), (2, 0x20), (1, 0x10), (1, 0x40)].map(|(record, object)| (Addr(record), Addr(object)));
        let first: Vec<(u64, u64)> = firsts(pairs.into_iter()).into_iter().map(|(record, object)| (record.0, object.0)).collect();
        assert_eq!(first, [(1, 0x10), (2, 0x20)]);
    }
}
