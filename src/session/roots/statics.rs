//! Static fields and thread statics as roots.

use std::ops::ControlFlow;

use super::options::{ROOT_BYTES, RootOptions, enumerated};
use crate::base::hash::{Map, Set};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Budget, Collector, Count, Missing, NoteKind, Token, be, len64, plural};
use crate::clr::aot::Program;
use crate::clr::fields::Storage;
use crate::clr::gcdesc::GcDesc;
use crate::clr::method_table::Category;
use crate::clr::statics::StaticPlace;
use crate::clr::threads::Thread;
use crate::heapgraph::{Origin, RawRoot, RootFlags, Roots, StaticIndex, ThreadIndex};
use crate::model::{CoverageKind, FieldValue, RootKind, ValueKind};
use crate::session::statics::StaticSpot;
use crate::session::{Namer, Runtime, StaticsReader};

/// Adds a root for every reference in a static field, including references in structures. The static fields of collectible types are not roots.
pub(super) fn static_roots(
    runtime: &Runtime,
    namer: &Namer,
    options: &RootOptions,
    (notes, budget): (&Collector, &Budget),
    roots: &mut Roots,
) {
    let threads = runtime.threads_if_any(notes);
    notes.extend(namer.type_losses());
    let types = match namer.types() {
        Ok(types) => types,
        Err(e) => {
            for kind in [RootKind::Static, RootKind::ThreadStatic].into_iter().filter(|k| options.wants(*k)) {
                roots.cover(kind, CoverageKind::Unavailable, Some(e.to_string()));
            }
            return;
        }
    };
    if let Some(program) = types.names().native_aot() {
        return compiled_statics(runtime, (program, namer), threads, options, notes, roots);
    }
    let index: Map<Addr, ThreadIndex> = enumerated(threads).map(|(thread, i)| (thread.address, i)).collect();
    let reader = StaticsReader::bind(runtime, types, notes).with_threads(threads);
    if !reader.statics().is_described() {
        let why = "the descriptor does not describe the locations of static fields";
        notes.add(Missing::Statics, None, why);
        for kind in [RootKind::Static, RootKind::ThreadStatic].into_iter().filter(|k| options.wants(*k)) {
            roots.cover(kind, CoverageKind::Unavailable, Some(why.into()));
        }
        return;
    }
    for (kind, thread_statics) in [(RootKind::Static, false), (RootKind::ThreadStatic, true)] {
        if !options.wants(kind) {
            continue;
        }
        let storage = if thread_statics { Storage::ThreadStatic } else { Storage::Static };
        let (mut absent, mut unknown, mut cut) = (0u64, 0u64, 0u64);
        // The name of the previous field. The roots of a field in all threads share one name.
        let mut last: Option<(Addr, Token, StaticIndex)> = None;
        let mut references = Vec::new();
        let ended = reader.visit(
            |field| field.storage == storage,
            |spot| {
                // A loader allocator holds these through `m_slots`, an edge of the heap.
                if spot.info.is_collectible {
                    return ControlFlow::Continue(());
                }
                match spot.place {
                    StaticPlace::NotInitialized => return ControlFlow::Continue(()),
                    StaticPlace::Unknown => {
                        unknown.bump();
                        return ControlFlow::Continue(());
                    }
                    StaticPlace::At(at) => {
                        let most = runtime.limits().roots.saturating_sub(roots.roots.len()).saturating_add(1);
                        match held((&reader, budget), &spot, at, most, &mut references) {
                            Held::All => {}
                            Held::Absent => absent.bump(),
                            Held::Cut => cut.bump(),
                        }
                    }
                }
                let thread = spot.thread.and_then(|t| index.get(&t.address).copied());
                for (within, address, object) in references.drain(..) {
                    if roots.roots.len() >= runtime.limits().roots || !budget.memory(ROOT_BYTES) {
                        return ControlFlow::Break(());
                    }
                    let path = within.path(namer);
                    let key = (spot.info.address, spot.field.token);
                    let known = last.filter(|(mt, token, _)| path.is_empty() && (*mt, *token) == key).map(|(.., name)| name);
                    let declaring = || reader.declaring_name(spot.field).to_name();
                    let name = known.or_else(|| roots.names.push(format!("{}.{}{path}", declaring().shown(), spot.field.name)));
                    let Some(name) = name else { return ControlFlow::Break(()) };
                    if path.is_empty() {
                        last = Some((key.0, key.1, name));
                    }
                    roots.roots.push(RawRoot { kind, address, object, flags: RootFlags::NONE, origin: Origin::Static(name, thread) });
                }
                ControlFlow::Continue(())
            },
        );
        if ended.is_break() && roots.roots.len() >= runtime.limits().roots {
            notes.add(NoteKind::LimitHit, None, "static fields are left out: there are more roots than the limit allows");
            return;
        }
        if thread_statics {
            // Threads that claim the thread statics of another thread were already reported.
            let (mut arrays, name) = (Set::default(), roots.names.push("thread statics".into()));
            for (thread, i) in enumerated(threads) {
                if let Some((address, object)) = reader.statics().thread_array(thread.address).filter(|(at, _)| arrays.insert(*at)) {
                    let Some(name) = name else { return };
                    let origin = Origin::Static(name, Some(i));
                    roots.roots.push(RawRoot { kind, address: Some(address), object, flags: RootFlags::NONE, origin });
                }
            }
        }
        let values = || format!("the values of {} are not in the dump", plural(absent, "field"));
        let locations = || format!("the locations of {} are unknown", plural(unknown, "field"));
        let cuts = || format!("the structures in {} are read only in part", plural(cut, "field"));
        let lack = match () {
            () if types.lacks().is_some() => types.lacks().map(String::from),
            () if ended.is_break() => Some("there are more roots than the limit allows".into()),
            () if absent > 0 && unknown > 0 => Some(format!("{}; {}", values(), locations())),
            () if absent > 0 => Some(values()),
            () if unknown > 0 => Some(locations()),
            () if cut > 0 => Some(cuts()),
            () => None,
        };
        let coverage = if lack.is_some() { CoverageKind::Partial } else { CoverageKind::Complete };
        if let Some(why) = &lack {
            notes.add(Missing::Statics, None, format!("roots of kind {}: {why}", kind.name()));
        }
        roots.cover(kind, coverage, lack);
    }
    reader.note(notes);
    // Errors in the loader's lists. Usually the namer reports them, but the answer that builds a graph may not use a namer's notes.
    notes.extend(&types.loader().faults());
}

/// Adds the static fields of a NativeAOT program as roots. Each root refers to an object that holds the static fields of a type or the thread
/// statics of a thread.
fn compiled_statics(
    runtime: &Runtime,
    (program, namer): (&Program, &Namer),
    threads: &[Thread],
    options: &RootOptions,
    notes: &Collector,
    roots: &mut Roots,
) {
    let statics = program.blobs().map(|blobs| {
        let mut own = tried(|| blobs.gc_statics());
        own.iter_mut().filter(|s| !program.is_current(s.slot)).for_each(|s| s.block = None);
        // Heap dumps do not have the pages that lead to the blocks, so the array of all blocks is searched.
        let spine = || spine(runtime, namer, roots, blobs.slot_count()).and_then(|first| tried(|| blobs.gc_statics_in(first)));
        if own.iter().any(|s| s.block.is_none()) { spine().unwrap_or(own) } else { own }
    });
    let mut add = |kind: RootKind, name: String, address: Addr, object: Addr, thread| {
        let Some(name) = roots.names.push(name) else { return };
        roots.roots.push(RawRoot { kind, address: Some(address), object, flags: RootFlags::NONE, origin: Origin::Static(name, thread) });
    };
    let mut absent = 0usize;
    if options.wants(RootKind::Static) {
        for statics in statics.unwrap_or_default() {
            let owner = statics.owner.or_else(|| program.statics_owner(statics.slot)).and_then(|mt| namer.name(mt));
            let name = owner.map_or_else(|| "statics".to_string(), |owner| format!("statics of {owner}"));
            match statics.block {
                Some(block) => add(RootKind::Static, name, statics.slot, block, None),
                // Heap dumps do not have the page with the pointer to the block. A strong handle keeps the block alive as well.
                None => absent = absent.saturating_add(1),
            }
        }
    }
    if options.wants(RootKind::ThreadStatic) {
        for (thread, i) in enumerated(threads) {
            for (address, object) in &thread.statics {
                add(RootKind::ThreadStatic, "thread statics".into(), *address, *object, Some(i));
            }
        }
    }
    program.note(notes);
    let cut = program.blobs().map_or_else(|| vec!["tables"], |blobs| blobs.incomplete());
    let lost = program
        .blobs()
        .and_then(|blobs| tried(|| blobs.lost_slots()))
        .map(|(at, n)| (at, format!("{} of static fields {} not in the dump", plural(n, "place"), be(n))));
    for kind in [RootKind::Static, RootKind::ThreadStatic].into_iter().filter(|k| options.wants(*k)) {
        match cut.first() {
            None if kind == RootKind::Static && lost.is_some() => {
                if let Some((at, what)) = &lost {
                    notes.add(Missing::Statics, *at, format!("roots of kind {}: {what}", kind.name()));
                }
                roots.cover(kind, CoverageKind::Partial, lost.as_ref().map(|(_, what)| what.clone()));
            }
            None if kind == RootKind::Static && absent > 0 => {
                let what = format!(
                    "{} with pointers to static fields {} not in the dump; a strong handle holds them too",
                    plural(len64(absent), "place"),
                    be(len64(absent))
                );
                roots.cover(kind, CoverageKind::Partial, Some(what));
            }
            Some(what) => roots.cover(kind, CoverageKind::Partial, Some(format!("a part of the module's {what} cannot be read"))),
            None => roots.cover(kind, CoverageKind::Complete, None),
        }
    }
}

/// The address of the first element of the array that holds the blocks of all static fields. That array has `count` elements, and is the first
/// element of an array that a strong handle refers to.
fn spine(runtime: &Runtime, namer: &Namer, roots: &Roots, count: u64) -> Option<Addr> {
    let (memory, objects) = (runtime.memory(), namer.types().ok()?.objects());
    let tables = namer.names()?.method_tables();
    let elements = objects.array_bytes()?;
    let is_array =
        |at: Addr| objects.method_table(at).and_then(|mt| tables.read(mt).ok()).is_some_and(|info| info.is_array && info.contains_pointers);
    let held = roots.roots.iter().filter(|r| r.kind == RootKind::StrongHandle).map(|r| r.object);
    let inner = held.filter(|at| is_array(*at)).filter_map(|at| memory.ptr(at.plus(elements)).ok()).filter(|at| is_array(*at));
    let mut arrays = inner.filter(|at| objects.component_count(*at).is_some_and(|n| u64::from(n) == count));
    tried(|| arrays.next()).map(|at| at.plus(elements))
}

/// The place of a reference within a static field.
enum Within {
    /// The field itself is the reference.
    Field,
    /// A path of fields in the structure: `.first.second`.
    Path(String),
    /// An offset in a box with this method table.
    Box(Addr, u64),
}

impl Within {
    /// The path, to be appended to the name of the field.
    fn path(self, namer: &Namer) -> String {
        match self {
            Within::Field => String::new(),
            Within::Path(path) => path,
            Within::Box(mt, offset) => match namer.path_at(mt, offset) {
                Some(path) if path.starts_with('[') => path,
                Some(path) => format!(".{path}"),
                None => format!(".+{offset:#x}"),
            },
        }
    }
}

/// Which references of a static field were read.
enum Held {
    All,
    /// The value, or a part of it, is not in the dump.
    Absent,
    /// The value is in the dump, but only a part of it could be read.
    Cut,
}

/// References with their places in a static field and their addresses.
type Found = Vec<(Within, Option<Addr>, Addr)>;

/// Adds the references in a static field, whose value is at `at`, to `out`, at most about `most`.
fn held((reader, budget): (&StaticsReader<'_>, &Budget), spot: &StaticSpot<'_, '_>, at: Addr, most: usize, out: &mut Found) -> Held {
    let memory = reader.memory();
    let or_absent = |is_there: bool| if is_there { Held::All } else { Held::Absent };
    if spot.field.is_reference() {
        let object = memory.ptr(at);
        out.extend(object.iter().filter(|object| !object.is_null()).map(|object| (Within::Field, Some(at), *object)));
        return or_absent(object.is_ok());
    }
    if let Some(bytes) = spot.field.element.primitive_bytes(memory.ptr_bytes()) {
        return or_absent(memory.bytes(at, bytes).is_ok());
    }
    if let Some(held) = in_box(reader, budget, at, most, out) {
        return held;
    }
    let value = reader.value(spot.field, spot.place);
    match references("", &value, out) {
        _ if value.kind == ValueKind::Absent => Held::Absent,
        true => Held::All,
        false => Held::Cut,
    }
}

/// Adds the references in the box of a static structure, whose value is at `at`, to `out`. The references are those that the GC sees, so inline arrays and
/// deeply nested structures are complete. `None` if the structure is not in a box with a known type.
fn in_box(reader: &StaticsReader<'_>, budget: &Budget, at: Addr, most: usize, out: &mut Found) -> Option<Held> {
    let (types, memory) = (reader.types(), reader.memory());
    let tables = types.names().method_tables();
    if tables.mono().is_some() {
        return None;
    }
    let object = at.minus(memory.ptr_bytes())?;
    let mt = types.objects().method_table(object)?;
    let info = tables.read(mt).ok().filter(|info| info.category == Category::ValueType)?;
    let references = tables.gc_desc(&info, |n| budget.steps(n));
    let size = u64::from(info.base_size);
    if matches!(references, GcDesc::Unknown) {
        return None;
    }
    // In a forged dump, many fields may share one large box.
    if !budget.steps(size / 64) {
        return Some(Held::Cut);
    }
    let most = out.len().saturating_add(most);
    references.references_while(memory, object, size, |offset, target| {
        out.push((Within::Box(mt, offset), Some(object.plus(offset)), target));
        out.len() < most
    });
    // The size of an object includes the word before it.
    let range = AddrRange::of(object, size.checked_sub(memory.ptr_bytes())?);
    let captured = memory.stretches(range).map(|(_, bytes)| len64(bytes.len())).fold(0, u64::saturating_add);
    Some(if captured >= range.len() { Held::All } else { Held::Absent })
}

/// Adds every reference in a value, with its path. Returns false if a structure was cut.
fn references(path: &str, value: &FieldValue, out: &mut Found) -> bool {
    if let Some(object) = value.object.filter(|o| !o.is_null()) {
        out.push((if path.is_empty() { Within::Field } else { Within::Path(path.to_string()) }, value.address, object));
        return true;
    }
    let mut is_whole = !value.truncated;
    for field in &value.fields {
        is_whole &= references(&format!("{path}.{}", field.name), field, out);
    }
    is_whole
}
