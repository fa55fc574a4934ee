//! The answer of `heap`: generations, budgets and recorded collections, allocation contexts, and the map.

use serde::Serialize;

use super::collections::{counts_line, last_line};
use crate::analysis::{GenerationModel, HeapMapModel, HeapMapRow, HeapModel, HeapReport, MapBytes, MapCell, MapRows};
use crate::base::{Addr, len64, total};
use crate::model::{AllocContextModel, ContextOwner, GenerationBudget, HeapDetail, NamedCount, RecordedCollection};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{Cell, bytes, count, plural};

/// One generation of one heap.
#[derive(Serialize)]
struct Row<'r> {
    heap: u64,
    #[serde(flatten)]
    generation: &'r GenerationModel,
}

/// Details of one heap.
#[derive(Serialize)]
struct Detail<'r> {
    heap: u64,
    address: Option<Addr>,
    #[serde(flatten)]
    detail: &'r HeapDetail,
}

fn generation_columns<'r>() -> Columns<'r, Row<'r>> {
    columns![
        Row<'r>,
        count(heap),
        word(generation.generation, 10),
        count(generation.segments),
        bytes(generation.allocated),
        bytes(generation.committed),
        bytes(generation.reserved).extra(),
        share(generation.share)
    ]
}

fn part_lines(h: &HeapModel) -> impl Iterator<Item = String> {
    h.generations.iter().flat_map(|g| &g.parts).map(|part| {
        let size = bytes(part.end.since(part.start).unwrap_or(0));
        format!("heap {}, ephemeral segment: {} {} to {} ({size})", h.index, part.generation, part.start, part.end)
    })
}

fn context_line(c: &AllocContextModel, server: bool) -> String {
    let of_thread = || {
        let home = c.home_heap.filter(|home| c.heap.or(c.alloc_heap) != Some(*home)).map(|home| format!(", home heap {home}"));
        c.heap.or(c.alloc_heap).filter(|_| server).map_or_else(String::new, |heap| format!(" on heap {heap}{}", home.unwrap_or_default()))
    };
    let owner = match (c.owner, c.owner_id, c.heap) {
        (ContextOwner::Thread, Some(id), _) => format!("allocation context of thread {id}{}", of_thread()),
        (ContextOwner::Generation, Some(g), Some(heap)) => format!("allocation context of generation {g} of heap {heap}"),
        (other, ..) => format!("{other} allocation context"),
    };
    let left = c.limit.since(c.pointer).unwrap_or(0);
    let range = if c.pointer.is_null() { "empty".to_string() } else { format!("{} to {} ({} free)", c.pointer, c.limit, bytes(left)) };
    let total = |n: Option<u64>, of: &str| n.map_or_else(String::new, |n| format!(", {} allocated in {of}", bytes(n)));
    let (soh, uoh) = (total(c.allocated_bytes, "SOH"), total(c.allocated_bytes_uoh, "LOH and POH"));
    format!("{owner}: {range}{soh}{uoh}")
}

/// Summarizes all allocation contexts in one line, because a process may have thousands of threads.
fn contexts_line(contexts: &[AllocContextModel]) -> String {
    let free = total(contexts.iter().map(|c| c.limit.since(c.pointer).unwrap_or(0)));
    let of = |n: fn(&AllocContextModel) -> Option<u64>, what: &str| {
        let known = contexts.iter().any(|c| n(c).is_some());
        known.then(|| format!(", {} allocated in {what}", bytes(total(contexts.iter().filter_map(n)))))
    };
    let parts = [of(|c| c.allocated_bytes, "SOH"), of(|c| c.allocated_bytes_uoh, "LOH and POH")];
    let all = plural(len64(contexts.len()), "allocation context");
    format!("{all}: {} free{} (--detail lists them)", bytes(free), parts.into_iter().flatten().collect::<String>())
}

fn budget_columns<'r>() -> Columns<'r, GenerationBudget> {
    columns![
        GenerationBudget,
        word(generation, 10).keep(9),
        count(collections).keep(7),
        count(last_collection).keep(4),
        count("last_us" = last_duration_us).keep(4),
        bytes(budget).keep(6),
        text("budget_left", 12, |b| format!("{}{}", if b.budget_left < 0 { "-" } else { "" }, count(b.budget_left.unsigned_abs()))).right(),
        bytes(size_before).keep(4),
        bytes(survived).keep(6),
        bytes(pinned_survived).keep(2),
        bytes(promoted),
        bytes(size_after).keep(6),
        bytes(fragmentation).keep(6)
    ]
}

fn recorded_columns<'r>() -> Columns<'r, RecordedCollection> {
    columns![
        RecordedCollection,
        count("gc" = index).keep(9),
        word(kind, 14).keep(7),
        count(generation).keep(8),
        word("mode", 10, |r| if r.compacting { "compacting" } else { "sweeping" }).keep(4),
        text("pauses_us", 12, |r| r.pauses_us.iter().map(u64::to_string).collect::<Vec<_>>().join(" + ")).right().keep(8),
        bytes("promoted" = promoted_bytes).keep(6),
        count("pinned" = pinned_objects).keep(3),
        count("finalizable" = finalization_pending).keep(3),
        bytes("heap" = heap_bytes).keep(7),
        bytes("fragmented" = fragmented_bytes),
        bytes("committed" = committed_bytes).keep(4)
    ]
}

/// The scale of a map. The rows of the map are separate records.
#[derive(Clone, Serialize)]
struct Scale {
    cell_bytes: u64,
    by: MapRows,
    #[serde(flatten)]
    totals: MapBytes,
}

fn map_columns<'r>(map: &HeapMapModel) -> Columns<'r, HeapMapRow> {
    let (merged, several) = (map.by != MapRows::Segments, map.by != MapRows::Generations);
    columns![
        HeapMapRow,
        count(heap).keep(7).when(several),
        word(generation, 10).keep(8),
        address(segment).keep(4).when(!merged),
        count(segments).keep(4).when(merged),
        bytes(committed).keep(3),
        bytes(bytes.objects).keep(3),
        bytes(bytes.pinned).keep(2),
        bytes(bytes.garbage).when(map.totals.garbage.is_some()),
        bytes(bytes.free),
        bytes(bytes.unused).keep(2),
        bytes(bytes.unknown).keep(if map.totals.unknown > 0 { 6 } else { 1 }),
        bytes(bytes.reserved).keep(1),
        map("map", HeapMapRow::letters).keep(9)
    ]
}

/// Adds the legend of a map that has rows.
fn map_legend(to: &mut Sections<'_>, map: &HeapMapModel) {
    let rows = match map.by {
        MapRows::Segments => "a row for each segment",
        MapRows::HeapGenerations => "a row for the segments of each generation of a heap, by address",
        MapRows::Generations => "a row for the segments of each generation of all heaps, by address",
    };
    let text = format!("Map: {rows}; a cell is {} and shows what most of it is:", bytes(map.cell_bytes));
    let seen = |cell: &MapCell| map.rows.iter().any(|r| r.cells.contains(cell));
    to.line(text);
    to.legend(MapCell::ALL.into_iter().filter(seen).collect());
}

fn describe_map<'r>(to: &mut Sections<'r>, map: &'r HeapMapModel) {
    let some = !map.rows.is_empty();
    to.gap_if(some);
    if some {
        map_legend(to, map);
    }
    to.table(Table::records("map", &map.rows, map_columns(map)).csv(true).shown(some));
    to.record("map-scale", Scale { cell_bytes: map.cell_bytes, by: map.by, totals: map.totals });
}

impl Report for HeapReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let none = self.heaps.iter().all(|h| h.generations.is_empty());
        if none {
            to.line("No generation could be read.");
        }
        let t = &self.totals;
        let rows = self.heaps.iter().flat_map(|h| h.generations.iter().map(|generation| Row { heap: h.index, generation }));
        let blank = || Cell::Text("".into());
        let totals = vec![
            Cell::Text("total".into()),
            blank(),
            Cell::Count(t.segments),
            Cell::Bytes(t.allocated),
            Cell::Bytes(t.committed),
            Cell::Bytes(t.reserved),
            blank(),
        ];
        to.table(Table::records("generation", rows, generation_columns()).csv(self.map.is_none()).shown(!none).totals(totals));
        if !none {
            to.gap();
            let (a, c, r) = (bytes(t.allocated), bytes(t.committed), bytes(t.reserved));
            to.line(format!("{a} allocated, {c} committed, {r} reserved"));
        }
        if let Some(map) = &self.map {
            describe_map(to, map);
            to.gap();
        }
        to.lines(self.heaps.iter().flat_map(part_lines));
        // Heaps have an address only with server GC.
        let server = self.heaps.iter().any(|h| h.address.is_some());
        if self.heaps.iter().any(|h| h.detail.is_some()) {
            to.lines(self.allocation_contexts.iter().map(move |c| context_line(c, server)));
        } else if !self.allocation_contexts.is_empty() {
            to.line(contexts_line(&self.allocation_contexts));
        }
        if let Some(c) = &self.collections {
            to.gap();
            to.line(format!("Collections: {}", counts_line(c)));
            to.lines(c.last.iter().map(|l| format!("last: {}", last_line(l))));
            to.table(Table::new(&c.recorded, recorded_columns()).shown(!c.recorded.is_empty()));
        }
        for h in &self.heaps {
            if let Some(d) = &h.detail {
                to.gap();
                to.title(match h.address {
                    Some(a) => format!("Heap {} ({a})", h.index),
                    None => format!("Heap {}", h.index),
                });
                to.facts(facts(d));
                if let Some(budgets) = &d.budgets {
                    to.table(Table::new(budgets, budget_columns()));
                }
            }
        }
        let details = self.heaps.iter().filter_map(|h| Some(Detail { heap: h.index, address: h.address, detail: h.detail.as_ref()? }));
        to.table(Table::records("heap-detail", details, Columns::<Detail<'r>>::default()));
        to.records("allocation-context", &self.allocation_contexts);
        to.record("totals", &self.totals);
        to.records("collections", &self.collections);
    }
}

fn facts(d: &HeapDetail) -> Vec<(&'static str, String)> {
    let address = |a: Option<Addr>| a.map_or_else(|| "n/a".to_string(), |a| a.to_string());
    let mut facts = vec![
        ("end of allocation", address(d.alloc_allocated)),
        ("ephemeral segment", address(d.ephemeral_segment)),
        ("card table", address(d.card_table)),
        ("mark array", address(d.mark_array)),
        ("next sweep object", address(d.next_sweep_object)),
        ("background saved range", format!("{} to {}", address(d.background_saved_lowest), address(d.background_saved_highest))),
        ("saved sweep segment", address(d.saved_sweep_segment)),
        ("saved sweep start", address(d.saved_sweep_start)),
        ("internal root array", address(d.internal_root_array)),
        ("internal root array index", d.internal_root_array_index.map_or_else(|| "n/a".into(), |n| n.to_string())),
        ("heap analysis succeeded", d.heap_analyze_success.map_or_else(|| "n/a".into(), |b| if b { "yes" } else { "no" }.into())),
    ];
    let names = ["gen0", "gen1", "gen2", "LOH", "POH"];
    let mut generations = Vec::new();
    for g in &d.generation_table {
        let name = usize::try_from(g.generation).ok().and_then(|i| names.get(i)).copied().unwrap_or("?");
        let mut text = format!("{name}: first segment {}", address(g.start_segment));
        if let Some(start) = g.allocation_start {
            text.push_str(&format!(", starts at {start}"));
        }
        if let (Some(p), Some(l)) = (g.context_pointer.filter(|p| !p.is_null()), g.context_limit) {
            text.push_str(&format!(", allocation context {p} to {l}"));
        }
        generations.push(text);
    }
    facts.extend(generations.into_iter().map(|t| ("generation table", t)));
    if let Some(q) = &d.finalize_queue {
        let number = |n: Option<u64>| n.map_or_else(|| "?".to_string(), |n| n.to_string());
        facts.push(("finalization queue", format!("{}: {} registered, {} ready", q.address, number(q.registered), number(q.ready))));
        facts.push(("fill pointers", q.fill_pointers.iter().map(Addr::to_string).collect::<Vec<_>>().join(" ")));
    } else {
        facts.push(("finalization queue", "n/a".into()));
    }
    let counts = |list: &Option<Vec<NamedCount>>| match list {
        None => "n/a".to_string(),
        Some(l) => {
            let set: Vec<String> = l.iter().filter(|c| c.count != 0).map(|c| format!("{} {}", c.name, c.count)).collect();
            if set.is_empty() { "all zero".into() } else { set.join(", ") }
        }
    };
    facts.push(("interesting data", counts(&d.interesting_data)));
    facts.push(("compact reasons", counts(&d.compact_reasons)));
    facts.push(("expand mechanisms", counts(&d.expand_mechanisms)));
    facts.push(("mechanism bits", counts(&d.interesting_mechanism_bits)));
    facts
}
