//! The tables `types`, `roots`, `segments`, `handles`, `suspects` and `strings`, which contain the answers of the corresponding commands.

use std::ops::ControlFlow;

use super::block::Value;
use super::context::Context;
use super::feed::Feed;
use super::signature;
use crate::analysis::{
    HandlesQuery, RetainedQuery, RetainedView, RootsQuery, SUSPECT_SHARE, SegmentsQuery, StringsQuery, each_handle, each_root, retained,
    segments, strings,
};
use crate::base::hash::Map;
use crate::base::{Addr, IndexVec, Name};
use crate::gc::TypeIndex;
use crate::heapgraph::DominatorTree;
use crate::model::{ExportTable, HandleModel, RootCoverageModel, RootModel};
use crate::session::Error;
use crate::session::roots::RootOptions;

/// Maximum length of a string that is read, in characters. Longer strings get neither a hash nor a text.
const MAX_CHARS: u32 = 1 << 16;

/// Writes a table to `feed`.
pub(super) fn table(context: &Context<'_>, table: ExportTable, tree: Option<&DominatorTree>, feed: &mut Feed) -> Result<(), Error> {
    // A break means that writing has failed. The writer thread reports the error.
    let _ = match table {
        ExportTable::Types => types(context, tree, feed)?,
        ExportTable::Roots => roots_of(context, feed)?,
        ExportTable::Segments => segments_of(context, feed)?,
        ExportTable::Handles => handles_of(context, feed)?,
        ExportTable::Suspects => suspects(context, feed)?,
        ExportTable::Strings => strings_of(context, feed)?,
        _ => ControlFlow::Continue(()),
    };
    Ok(())
}

/// Names that many rows share, each allocated once.
#[derive(Default)]
struct Names(Map<String, Name>);

impl Names {
    fn get(&mut self, text: &str) -> Name {
        match self.0.get(text) {
            Some(name) => name.clone(),
            None => {
                let name = Name::from(text);
                self.0.insert(text.into(), name.clone());
                name
            }
        }
    }

    fn of(&mut self, text: Option<&str>) -> Option<Name> {
        text.map(|text| self.get(text))
    }
}

fn types(context: &Context<'_>, tree: Option<&DominatorTree>, feed: &mut Feed) -> Result<ControlFlow<()>, Error> {
    let kinds = context.heap.walker().types().list();
    let retained: IndexVec<TypeIndex, u64> = match tree {
        Some(tree) => {
            let graph = &context.heap.graph(false)?.data;
            // Without roots, no object is known to be reachable.
            let unknown = RootCoverageModel::unknown(&graph.coverage(context.options.stacks)).is_some();
            tree.by_type(graph).iter().filter(|_| !unknown).map(|of| of.retained).collect()
        }
        None => IndexVec::new(),
    };
    let mut rows: Vec<_> = context.stat.types.iter().collect();
    rows.sort_unstable_by_key(|row| (row.method_table, &row.type_name));
    let known: Map<Addr, _> = kinds.iter().map(|kind| (kind.method_table, kind)).collect();
    for (row, id) in rows.into_iter().zip(0u32..) {
        let kind = known.get(&row.method_table);
        let retained = kind.and_then(|k| retained.get(k.index)).copied();
        let flow = feed.row([
            id.into(),
            row.method_table.into(),
            (&row.type_name).into(),
            row.module.as_ref().into(),
            kind.map(|k| k.base_size).into(),
            kind.map(|k| k.component_size).into(),
            row.count.into(),
            row.bytes.into(),
            retained.into(),
            kind.map(|k| k.is_collectible).into(),
        ]);
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn roots_of(context: &Context<'_>, feed: &mut Feed) -> Result<ControlFlow<()>, Error> {
    let options = RootOptions { stacks: context.options.stacks, ..RootOptions::default() };
    let (mut names, mut flow) = (Names::default(), ControlFlow::Continue(()));
    let mut add = |root: RootModel| {
        if flow.is_break() {
            return;
        }
        let flags: Vec<&str> = root.flags.iter().map(|f| f.name()).collect();
        let flags = Some(flags.join(",")).filter(|f| !f.is_empty());
        flow = feed.row([
            (&names.get(root.kind.name())).into(),
            root.address.into(),
            context.object(root.object),
            root.object.into(),
            names.of(root.type_name.as_deref()).as_ref().into(),
            (&names.get(&root.label)).into(),
            root.thread.into(),
            names.of(flags.as_deref()).as_ref().into(),
        ]);
    };
    context.notes.take(each_root(context.heap, &RootsQuery { options, ..RootsQuery::default() }, &mut add)?);
    Ok(flow)
}

fn segments_of(context: &Context<'_>, feed: &mut Feed) -> Result<ControlFlow<()>, Error> {
    let query = SegmentsQuery { walk: true, ..SegmentsQuery::default() };
    let report = context.notes.take(segments(context.heap.runtime(), &query)?);
    let mut names = Names::default();
    Ok(report.segments.iter().try_for_each(|s| {
        let walk = s.walk.as_ref();
        feed.row([
            s.address.into(),
            s.heap.into(),
            (&names.get(s.generation.name())).into(),
            s.start.into(),
            s.allocated.into(),
            s.committed.into(),
            s.reserved.into(),
            s.allocated_bytes.into(),
            s.committed_bytes.into(),
            s.reserved_bytes.into(),
            s.captured_bytes.into(),
            walk.map(|w| w.objects).into(),
            walk.map(|w| w.free_objects).into(),
            walk.map(|w| w.free_bytes).into(),
            walk.map(|w| w.complete).into(),
        ])
    }))
}

fn handles_of(context: &Context<'_>, feed: &mut Feed) -> Result<ControlFlow<()>, Error> {
    let (mut names, mut flow) = (Names::default(), ControlFlow::Continue(()));
    let mut add = |h: HandleModel| {
        if flow.is_break() {
            return;
        }
        flow = feed.row([
            h.address.into(),
            (&names.get(h.kind.name())).into(),
            context.object(h.object),
            h.object.into(),
            names.of(h.object_type.as_deref()).as_ref().into(),
            h.object_size.into(),
            h.strong.into(),
            h.ref_count.into(),
            h.secondary.into(),
            names.of(h.secondary_type.as_deref()).as_ref().into(),
        ]);
    };
    context.notes.take(each_handle(context.heap.runtime(), &HandlesQuery::default(), &mut add)?);
    Ok(flow)
}

fn suspects(context: &Context<'_>, feed: &mut Feed) -> Result<ControlFlow<()>, Error> {
    let query = RetainedQuery { view: RetainedView::Suspects(SUSPECT_SHARE), stacks: context.options.stacks, ..RetainedQuery::default() };
    let report = context.notes.take(retained(context.heap, &query)?);
    Ok(report.rows.fields().suspects.into_iter().flatten().try_for_each(|s| {
        let (root, content) = (s.roots.first(), s.content());
        feed.row([
            (&signature(s)).into(),
            s.kind.name().into(),
            (&s.type_name).into(),
            s.address.into(),
            s.address.map_or(Value::Null, |at| context.object(at)),
            s.count.into(),
            s.retained.into(),
            s.share.into(),
            root.map(|r| r.kind.name()).into(),
            root.map(|r| &r.label).into(),
            s.accumulation.as_ref().map(|a| &a.type_name).into(),
            s.accumulation.as_ref().map(|a| a.address).into(),
            content.map(|(name, ..)| name).into(),
            content.map(|(_, count, _)| count).into(),
            content.map(|(.., retained)| retained).into(),
        ])
    }))
}

fn strings_of(context: &Context<'_>, feed: &mut Feed) -> Result<ControlFlow<()>, Error> {
    let query = StringsQuery { min_count: 1, top: 0, max_chars: MAX_CHARS, ..StringsQuery::default() };
    let report = context.notes.take(strings(context.heap, &query)?);
    let strings = context.namer.types()?.strings();
    Ok(report.strings.iter().try_for_each(|s| {
        let text = if s.truncated { None } else { strings.text_to_hash(s.address, MAX_CHARS) };
        let hash = text.map(|text| blake3::hash(text.as_bytes()).to_hex().chars().take(32).collect::<String>());
        let text = Some(&s.value).filter(|_| context.options.contents && !s.truncated);
        feed.row([hash.as_ref().into(), s.length.into(), s.count.into(), s.bytes.into(), s.waste.into(), s.address.into(), text.into()])
    }))
}
