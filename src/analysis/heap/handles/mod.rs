//! GC handles: list, counts, groups.

mod report;

pub use report::*;

use std::collections::BTreeMap;

use crate::analysis::sort::{self, Key};
use crate::base::hash::Map;
use crate::base::{Addr, Answer, Count, Missing, Name, cut, len64, total};
use crate::gc::HandleFilter;
use crate::model::{HandleKind, HandleModel, HandleSort, HandleUse, Order, Sum};
use crate::session::roots::dangling::Pointed;
use crate::session::{Error, HandleUses, Heap, Runtime, Strength, TypePattern};

/// Arguments of `handles`.
#[derive(Clone, Debug, Default)]
pub struct HandlesQuery {
    /// Only handles of these types; empty for all.
    pub kinds: Vec<HandleKind>,
    /// Only handles of objects of these types; empty for all.
    pub object_types: Vec<TypePattern>,
    /// The view: handles, counts, groups or memory.
    pub view: HandlesView,
    /// Order of the handles, groups or counts. `None` for handles in table order, the largest groups first, and counts in the order of kinds.
    pub sort: Option<Order<HandleSort>>,
    /// Maximum handles or groups to list, 0 for all; counts always cover everything.
    pub top: usize,
}

/// Views of the handle tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandlesView {
    /// Each handle.
    #[default]
    Handles,
    /// Only counts by type.
    Counts,
    /// Counts by this key.
    By(HandleBy),
    /// The memory of the handle tables. It covers all handles.
    Memory,
}

/// Reads the GC handles of all handle tables.
///
/// # Errors
/// [`Error::Query`] for a handle type unknown to this runtime and a column that the list does not have, [`Error::Unknown`] if the dump does not
/// show which types it has, [`Error::Contract`] if the GC's structures are not described.
pub fn handles(runtime: &Runtime, query: &HandlesQuery) -> Result<Answer<HandlesReport>, Error> {
    let mut list = Vec::new();
    let mut answer = each_handle(runtime, query, &mut |handle| list.push(handle))?;
    if let HandlesRows::Handles { handles, .. } = &mut answer.data.rows {
        *handles = list;
        if let Some(order) = query.sort {
            sort::sort(handles, order.direction, |h| key(h, order.by));
        }
        answer.data.shown = cut(handles, query.top).or(answer.data.shown);
    }
    Ok(answer)
}

/// Like [`handles`], but passes each handle of the list to `each` in table order, so that the list need not be in memory.
pub(crate) fn each_handle(
    runtime: &Runtime,
    query: &HandlesQuery,
    each: &mut dyn FnMut(HandleModel),
) -> Result<Answer<HandlesReport>, Error> {
    sortable(query)?;
    let notes = runtime.begin();
    let gc = notes.with(runtime.gc()?);
    let types = gc.handle_types();
    if let Some(kind) = query.kinds.iter().find(|k| !types.data.contains(k)) {
        let names: Vec<&str> = types.data.iter().map(|k| k.name()).collect();
        let has = if names.is_empty() { "none" } else { &names.join(", ") };
        notes.extend(&types.notes);
        return Err(Error::Query(format!("this runtime has no handles of type {kind}; it has {has}")).given(&notes.notes()));
    }
    runtime.note_null_objects(&notes);
    let namer = runtime.namer();
    let (list, counts_only) = (query.view == HandlesView::Handles, matches!(query.view, HandlesView::Counts | HandlesView::Memory));
    let grouped = if let HandlesView::By(by) = query.view { Some(by) } else { None };
    // Handles can be read without the heap. Sizes and generations of objects, and a filter by object type, need it.
    let heap = match runtime.heap() {
        _ if counts_only && query.object_types.is_empty() => None,
        Ok(heap) => Some(heap),
        Err(e) if grouped == Some(HandleBy::Generation) || !query.object_types.is_empty() => return Err(e),
        Err(e) => {
            notes.add(Missing::Objects, None, format!("sizes of objects are unknown: {e}"));
            None
        }
    };
    if let Some(note) = heap.as_ref().and_then(Heap::no_heap) {
        notes.add(note.kind, note.address, note.message.clone());
    }
    if grouped == Some(HandleBy::Generation) {
        heap.iter().for_each(|heap| heap.note(&notes));
    }
    let wanted = heap.as_ref().map(|heap| heap.filter(&query.object_types, &namer, &notes)).unwrap_or_default();
    let mut known: Map<Addr, bool> = Map::default();
    let size = |h: &HandleModel| heap.as_ref()?.size_at(h.object, h.method_table?);
    // A process may have millions of handles, but only thousands of types.
    let mut names: Map<Addr, Option<Name>> = Map::default();
    let mut name = |mt: Addr| names.entry(mt).or_insert_with(|| namer.name(mt)).clone();
    let mut strength = Strength::bind(runtime);
    let uses = HandleUses::bind(runtime, &namer, &notes);
    let mut counts: BTreeMap<HandleKind, u64> = BTreeMap::new();
    let mut used = [0u64; HandleUse::ALL.len()];
    let mut groups: BTreeMap<Option<Name>, Sum> = BTreeMap::new();
    // Without a sort order, only the first handles of the tables are listed.
    let room = if query.sort.is_none() && query.top > 0 { len64(query.top) } else { u64::MAX };
    let (mut listed, mut more, mut ref_counts_unknown) = (0u64, false, 0u64);
    let mut pointed = Pointed::new(heap.as_ref());
    let walked = gc.walk_handles(&HandleFilter { kinds: query.kinds.clone() }, |mut h| {
        if list || grouped.is_some() || !wanted.is_empty() {
            pointed.check(Some(h.address), h.object);
            let secondary = h.secondary.filter(|_| h.kind == HandleKind::Dependent);
            secondary.into_iter().for_each(|object| pointed.check(Some(h.address), object));
            h.method_table = gc.method_table(h.object);
            h.object_size = size(&h);
        }
        // Compares names once per type, not per handle.
        let mut is_wanted =
            |mt| *known.entry(mt).or_insert_with(|| wanted.matches(mt, || name(mt).unwrap_or_else(|| mt.to_string().into())));
        if !wanted.is_empty() && !h.method_table.is_some_and(&mut is_wanted) {
            return;
        }
        counts.entry(h.kind).or_default().bump();
        uses.decide(&mut h, gc);
        let of_use = HandleUse::ALL.iter().zip(&mut used).find(|(of, _)| Some(**of) == h.used_for);
        of_use.into_iter().for_each(|(_, count)| count.bump());
        if let Some(by) = grouped {
            let key = match by {
                HandleBy::Type => Some(h.kind.name().into()),
                HandleBy::ObjectType => h.method_table.map(|mt| name(mt).unwrap_or_else(|| mt.to_string().into())),
                HandleBy::Generation => heap.as_ref().and_then(|heap| heap.generation_of(h.object)).map(|g| g.name().into()),
            };
            groups.entry(key).or_default().add(h.object_size.unwrap_or(0));
        }
        if list {
            strength.decide(&mut h, gc, &namer);
            ref_counts_unknown.grow(u64::from(h.kind == HandleKind::RefCounted && h.ref_count.is_none()));
            if listed >= room {
                more = true;
                return;
            }
            h.object_type = h.method_table.and_then(&mut name);
            let secondary = h.secondary.filter(|s| h.kind == HandleKind::Dependent && !s.is_null());
            h.secondary_type = secondary.and_then(|s| gc.method_table(s)).and_then(&mut name);
            listed.bump();
            each(h);
        }
    });
    let tables = notes.take(walked);
    pointed.note("handle", &notes);
    notes.extend(&strength.losses());
    let group = |(key, sum): (Option<Name>, Sum)| HandleGroup { key, count: sum.count, bytes: sum.bytes };
    let mut groups: Vec<HandleGroup> = groups.into_iter().map(group).collect();
    groups.sort_by_key(|g| std::cmp::Reverse(g.count));
    let mut counts: Vec<HandleStat> = counts.into_iter().map(|(kind, count)| HandleStat { kind, count }).collect();
    if let Some(Order { by, direction }) = query.sort {
        sort::sort(&mut groups, direction, |g| match by {
            HandleSort::Bytes => Key::most(g.bytes),
            HandleSort::Count => Key::most(g.count),
            _ => Key::text(g.key.as_deref()),
        });
        if counts_only {
            sort::sort(&mut counts, direction, |c| if by == HandleSort::Count { Key::most(c.count) } else { Key::text(c.kind.name()) });
        }
    }
    let group_count = len64(groups.len());
    let shown = more.then_some(listed).or_else(|| cut(&mut groups, query.top));
    let (supported, supported_by) = notes.take(gc.supported_handles());
    let rows = match query.view {
        HandlesView::Handles => HandlesRows::Handles { handles: Vec::new(), ref_counts_unknown },
        HandlesView::Counts => HandlesRows::Counts,
        HandlesView::By(by) => HandlesRows::By { by, group_count, groups },
        HandlesView::Memory => HandlesRows::Memory { memory: notes.take(gc.handle_blocks()) },
    };
    namer.note(&notes);
    Ok(notes.finish(HandlesReport {
        total: total(counts.iter().map(|c| c.count)),
        counts,
        uses: HandleUse::ALL
            .into_iter()
            .zip(used)
            .filter(|(_, n)| *n > 0)
            .map(|(used_for, count)| HandleUseStat { used_for, count })
            .collect(),
        supported,
        supported_by,
        tables,
        rows,
        shown,
    }))
}

/// Checks that the list has the column by which it is to be sorted.
fn sortable(query: &HandlesQuery) -> Result<(), Error> {
    use HandleSort::{Address, Bytes, Count, Object, ObjectSize, ObjectType, RefCount, Type};
    let (has, what): (&[HandleSort], &str) = match query.view {
        HandlesView::Counts | HandlesView::Memory => (&[Type, Count], "counts of handles"),
        HandlesView::Handles => (&[Address, Type, Object, ObjectSize, ObjectType, RefCount], "handles"),
        HandlesView::By(HandleBy::Type) => (&[Type, Count, Bytes], "handles by type"),
        HandlesView::By(HandleBy::ObjectType) => (&[ObjectType, Count, Bytes], "handles by object type"),
        HandlesView::By(HandleBy::Generation) => (&[Count, Bytes], "handles by generation"),
    };
    sort::check(query.sort.as_ref(), has, what)
}

fn key(h: &HandleModel, by: HandleSort) -> Option<Key<'_>> {
    match by {
        HandleSort::Address => Key::at(h.address),
        HandleSort::Type => Key::text(h.kind.name()),
        HandleSort::Object => Key::at(h.object),
        HandleSort::ObjectSize => Key::most(h.object_size),
        HandleSort::ObjectType => Key::text(h.object_type.as_deref()),
        HandleSort::RefCount => Key::most(h.ref_count),
        HandleSort::Count | HandleSort::Bytes => None,
    }
}
