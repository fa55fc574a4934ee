//! `inspect`: waste on the heap, and objects that are held by mistake. Each kind of evidence has a file; each inspection has a [rule](rule).

mod arrays;
mod collections;
mod contexts;
mod events;
mod report;
mod resources;
mod sweep;
mod tasks;

pub use report::*;

use crate::analysis::objects::strings::{StringsQuery, Values, grouped};
use crate::analysis::{StringModel, StringTotals};
use crate::base::hash::Map;
use crate::base::missed::Carried;
use crate::base::store::caught;
use crate::base::{Addr, Answer, Collector, Name, cut, len64, total};
use crate::bcl::Library;
use crate::gc::SegmentIndex;
use crate::model::WalkModel;
use crate::session::{Error, Heap, Namer};
use sweep::{Needs, Swept, sweep};

/// Options of [`inspect`].
#[derive(Clone, Debug)]
pub struct InspectQuery {
    /// Only these inspections; all if empty.
    pub only: Vec<InspectionId>,
    /// Maximum rows of each inspection, 0 for all.
    pub top: usize,
    /// Whether the graph of the heap may be built. For events with many handlers, it shows which referrers are garbage.
    pub graph: bool,
}

impl Default for InspectQuery {
    /// All inspections, ten rows each.
    fn default() -> InspectQuery {
        InspectQuery { only: Vec::new(), top: 10, graph: true }
    }
}

/// The rule of an inspection, as shown to the user: its evidence and its exclusions.
fn rule(id: InspectionId) -> &'static str {
    match id {
        InspectionId::EqualStrings => "strings with the same text: all but one are waste; interned and frozen strings count as well",
        InspectionId::EqualArrays => "arrays of plain values with the same contents, except arrays of zeros: all but one are waste",
        InspectionId::ZeroArrays => "arrays of plain values of at least 1 KiB, all zero; spares of array pools look the same",
        InspectionId::ZeroTails => "arrays of plain values of at least 1 KiB whose second half, and more, is all zero",
        InspectionId::SparseArrays => {
            "arrays of at least 100 references, less than a quarter of them set; pinned arrays (statics) and arrays of \
             collections are left out"
        }
        InspectionId::EmptyCollections => "collections without elements; their bytes include the arrays that they keep",
        InspectionId::OversizedCollections => "collections with a capacity of at least 100 elements, less than a quarter of it used",
        InspectionId::BoxedValues => "boxed values, by type",
        InspectionId::EventLeaks => {
            "delegates with at least two targets in a field or static field, such as events: the targets that only the delegate keeps alive; \
             references from garbage and from stacks are ignored"
        }
        InspectionId::Undisposed => {
            "objects registered for finalization whose finalizer was not suppressed, by type; many types need no Dispose"
        }
        InspectionId::OpenHandles => "SafeHandles that are not closed and own their handle, by type",
        InspectionId::UnobservedExceptions => "faulted tasks with unobserved exceptions",
        InspectionId::LoadContexts => {
            "collectible load contexts that were asked to unload, with what holds them: objects of their types, or else Type and \
                                       reflection objects, delegates, and threads in their code"
        }
        InspectionId::Registrations => "cancellation sources with at least 100 registrations: on a long-lived source they are a leak",
    }
}

/// Data that inspections share.
struct Inspector<'h> {
    heap: &'h Heap,
    namer: &'h Namer,
    library: &'h Library,
    swept: Swept,
    notes: &'h Collector,
    /// Whether the graph may be built.
    graph: bool,
}

/// Returns a row without name and detail. These are added only to rows that are shown.
fn row(object: Addr, count: u64, bytes: u64) -> InspectionRow {
    InspectionRow { object: Some(object), type_name: None, count, bytes, detail: None, held_here: None, held: Vec::new() }
}

/// The findings of an inspection.
struct Findings<'i> {
    found: u64,
    wasted: Option<u64>,
    /// Rows without type names. There may be as many rows as objects, so only rows that are shown get names.
    rows: Vec<InspectionRow>,
    /// Number of rows, if `rows` does not have all of them.
    total: Option<u64>,
    /// Describes a row that is shown.
    detail: Option<Detail<'i>>,
    /// Why this inspection is partial, if others are not. The notes have this reason, too.
    partial: Option<String>,
}

/// Returns the description of a row.
type Detail<'i> = Box<dyn Fn(&InspectionRow) -> Option<String> + Send + 'i>;

impl<'i> Findings<'i> {
    /// Findings whose totals are the sums of the rows.
    fn of(rows: Vec<InspectionRow>) -> Findings<'i> {
        let (found, wasted) = (total(rows.iter().map(|r| r.count)), Some(total(rows.iter().map(|r| r.bytes))));
        Findings { found, wasted, rows, total: None, detail: None, partial: None }
    }

    /// Findings without wasted bytes.
    fn plain(rows: Vec<InspectionRow>) -> Findings<'i> {
        Findings { wasted: None, ..Findings::of(rows) }
    }

    /// Adds the reason why only this inspection is partial.
    fn partial(self, partial: Option<String>) -> Findings<'i> {
        Findings { partial, ..self }
    }

    /// Adds a description of each row.
    fn with_detail(self, detail: impl Fn(&InspectionRow) -> Option<String> + Send + 'i) -> Findings<'i> {
        Findings { detail: Some(Box::new(detail)), ..self }
    }
}

impl Inspector<'_> {
    fn name(&self, method_table: Addr) -> Option<Name> {
        self.namer.name(method_table)
    }

    fn type_of(&self, object: Addr) -> Option<Name> {
        self.name(self.library.method_table(object)?)
    }

    fn run(&self, id: InspectionId) -> Result<Findings<'_>, Error> {
        Ok(match id {
            InspectionId::EqualStrings => Findings::plain(Vec::new()),
            InspectionId::EqualArrays => self.equal_arrays(),
            InspectionId::ZeroArrays => self.zero_arrays(),
            InspectionId::ZeroTails => self.zero_tails(),
            InspectionId::SparseArrays => self.sparse_arrays(),
            InspectionId::EmptyCollections => self.empty_collections(),
            InspectionId::OversizedCollections => self.oversized_collections(),
            InspectionId::BoxedValues => self.boxed_values(),
            InspectionId::EventLeaks => self.event_leaks(),
            InspectionId::Undisposed => self.undisposed(),
            InspectionId::OpenHandles => self.open_handles(),
            InspectionId::UnobservedExceptions => self.unobserved_exceptions()?,
            InspectionId::LoadContexts => self.load_contexts(),
            InspectionId::Registrations => self.registrations(),
        })
    }
}

/// The strings of a walk, and their sums.
type Texts = (Values, StringTotals);
type Walks<'w> = &'w [(SegmentIndex, WalkModel)];

/// Finds equal strings among those that the walk counted.
fn equal_strings<'i>(heap: &Heap, namer: &Namer, walks: Walks<'_>, texts: Texts, top: usize) -> Result<Answer<Findings<'i>>, Error> {
    let notes = Collector::new();
    let query = StringsQuery { top, max_chars: 80, ..StringsQuery::default() };
    let row = |s: StringModel| InspectionRow {
        object: Some(s.address),
        type_name: Some("System.String".into()),
        count: s.count,
        bytes: s.waste,
        detail: Some(s.value),
        held_here: None,
        held: Vec::new(),
    };
    let report = grouped(heap, namer, &query, texts, walks, &notes)?;
    let totals = report.totals;
    let once = totals.distinct.saturating_sub(totals.duplicate_groups);
    let found = totals.strings.saturating_sub(totals.unreadable).saturating_sub(once);
    let rows = report.strings.into_iter().map(row).collect();
    let (wasted, total) = (Some(totals.wasted_bytes), Some(totals.duplicate_groups));
    Ok(notes.finish(Findings { found, wasted, rows, total, detail: None, partial: None }))
}

/// Inspects the heap.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe types and fields, [`Error::Room`] if temporary files of the graph do not fit on the disk.
pub fn inspect(heap: &Heap, query: &InspectQuery) -> Result<Answer<InspectReport>, Error> {
    caught(|| inspect_of(heap, query))?
}

fn inspect_of(heap: &Heap, query: &InspectQuery) -> Result<Answer<InspectReport>, Error> {
    let (notes, namer) = (heap.begin(), heap.namer());
    let library = Library::bind(heap.runtime(), &namer, &notes)?;
    let collections = library.collections();
    let ids = || InspectionId::ALL.into_iter().filter(|id| query.only.is_empty() || query.only.contains(id));
    let mut swept = sweep(heap, &library, &collections, Needs::of(ids()), &notes);
    let texts = swept.texts.take();
    let inspector = Inspector { heap, namer: &namer, library: &library, swept, notes: &notes, graph: query.graph };
    let carried = Carried::here();
    let texts = || texts.map(|texts| carried.run(|| equal_strings(heap, &namer, &inspector.swept.walks, texts, query.top))).transpose();
    let others = || {
        let others = ids().filter(|id| *id != InspectionId::EqualStrings);
        carried.run(|| others.map(|id| Ok((id, inspector.run(id)?))).collect::<Result<Vec<_>, Error>>())
    };
    // The two run in parallel, because neither keeps all cores busy.
    let (texts, others) = rayon::join(texts, others);
    let texts = texts?.map(|found| (InspectionId::EqualStrings, notes.take(found)));
    let mut all: Vec<(InspectionId, Findings<'_>)> = texts.into_iter().chain(others?).collect();
    all.sort_by_key(|(id, _)| InspectionId::ALL.iter().position(|known| known == id));
    let (mut inspections, mut names) = (Vec::new(), Map::default());
    let mut name = |object: Addr| -> Option<Name> {
        let mt = library.method_table(object)?;
        names.entry(mt).or_insert_with(|| namer.name(mt)).clone()
    };
    for (id, Findings { found, wasted, mut rows, total, detail, partial }) in all {
        rows.sort_by(|a, b| (b.bytes, b.count, a.object).cmp(&(a.bytes, a.count, b.object)));
        let total = total.unwrap_or_else(|| len64(rows.len()));
        cut(&mut rows, query.top);
        for row in &mut rows {
            row.type_name = row.type_name.take().or_else(|| name(row.object?));
            row.detail = row.detail.take().or_else(|| detail.as_ref()?(row));
        }
        inspections.push(InspectionModel { id, rule: rule(id), found, wasted_bytes: wasted, total, rows, partial });
    }
    library.note(&notes);
    namer.note(&notes);
    Ok(notes.finish(InspectReport { inspections }))
}
