//! Static fields of all loaded types, with their values.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::analysis::on_graph::OnGraph;
use crate::analysis::sort::{self, Key};
use crate::base::store::caught;
use crate::base::{Addr, Answer, Missing, Notes, cut};
use crate::bcl::Texts;
use crate::heapgraph::Depends;
use crate::model::{FieldValue, Stacks, StaticModel, StaticSort, StaticsReport};
use crate::session::{Error, Runtime, StaticsQuery, StaticsReader};

/// Returns the static fields of all loaded types.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe types or, for thread statics, threads; [`Error::Query`] for a column that the list
/// does not have. With retained sizes, also the errors of [`retained`](crate::analysis::retained).
pub fn statics(runtime: &Runtime, query: &StaticsQuery) -> Result<Answer<StaticsReport>, Error> {
    use StaticSort::{Address, DeclaringType, Name, Retained, Storage, Thread, Type};
    if !query.retained {
        sort::check(query.sort.as_ref(), &[DeclaringType, Name, Type, Storage, Thread, Address], "statics without `retained`")?;
    }
    let mut list = Vec::new();
    let mut answer = each_static(runtime, query, &mut |field| list.push(field))?;
    if query.retained {
        answer.notes = caught(|| retained_by(runtime, &mut list, &answer.notes))??;
    }
    if let Some(order) = query.sort.or(query.retained.then(|| Retained.into())) {
        sort::sort(&mut list, order.direction, |field| key(field, order.by));
    }
    answer.data.shown = cut(&mut list, query.top);
    answer.data.statics = list;
    Ok(answer)
}

/// Like [`statics`], but passes each field to `each` in the order of the types, so that not all need to be in memory.
pub(crate) fn each_static(
    runtime: &Runtime,
    query: &StaticsQuery,
    each: &mut dyn FnMut(StaticModel),
) -> Result<Answer<StaticsReport>, Error> {
    let (notes, namer) = (runtime.begin(), runtime.namer());
    let types = namer.types()?;
    let texts = Arc::new(Texts::bind(runtime, types, &notes));
    let reader = StaticsReader::bind(runtime, types, &notes).with_texts(texts.clone());
    if query.thread_statics {
        notes.extend(runtime.thread_reader()?.identity_losses());
        runtime.note_thread_ids(&notes);
    }
    let threads = if query.thread_statics { notes.with(runtime.thread_list()?).as_slice() } else { &[] };
    let report = reader.with_threads(threads).each(&[], query, &notes, each);
    texts.note(&notes);
    namer.note(&notes);
    if let Some(why) = types.lacks() {
        notes.add(Missing::Modules, None, format!("{why}: types of most modules are missing"));
    }
    Ok(notes.finish(report))
}

fn key(s: &StaticModel, by: StaticSort) -> Option<Key<'_>> {
    match by {
        StaticSort::DeclaringType => Key::text(s.field.declaring_type.as_deref()),
        StaticSort::Name => Key::text(s.field.name.as_str()),
        StaticSort::Type => Key::text(s.field.type_name.as_str()),
        StaticSort::Storage => Key::text(s.storage.name()),
        StaticSort::Thread => Key::least(s.thread.as_ref().and_then(|t| t.managed_id)),
        StaticSort::Address => Key::at(s.field.address),
        StaticSort::Retained => Key::most(s.retained),
    }
}

/// Adds the retained bytes of each field. Returns the notes in `before` and those of the computation.
fn retained_by(runtime: &Runtime, list: &mut [StaticModel], before: &Notes) -> Result<Notes, Error> {
    let heap = runtime.heap()?;
    let on = OnGraph::open(&heap, false, Stacks::default(), Some(Depends::Dominators))?;
    let tree = heap.dominators(Stacks::default())?;
    for one in list {
        let mut objects = BTreeSet::new();
        referred(&one.field, &mut objects);
        let known = objects.into_iter().filter_map(|object| on.graph.index.id_of(object));
        one.retained = known.map(|id| tree.retained(id)).reduce(u64::saturating_add);
    }
    on.notes.extend(before);
    Ok(on.finish(()).notes)
}

/// Collects the objects that a value refers to.
fn referred(value: &FieldValue, objects: &mut BTreeSet<Addr>) {
    objects.extend(value.object);
    value.fields.iter().for_each(|field| referred(field, objects));
}
