use std::io;

use serde_json::{Value, json};

use super::completeness;
use crate::base::Addr;
use crate::model::{ContextOwner, GenerationModel, HeapDetail, HeapModel, HeapReport, HeapTotals, NamedCount};
use crate::output::{Cell, Column, Grid, Page, Report, bytes, record};

fn row(heap: &HeapModel, g: &GenerationModel) -> Vec<Cell> {
    vec![
        Cell::Count(heap.index),
        Cell::Text(g.generation.name().into()),
        Cell::Count(g.segments),
        Cell::Bytes(g.allocated),
        Cell::Bytes(g.committed),
        Cell::Bytes(g.reserved),
        Cell::Share(g.share),
    ]
}

fn totals_row(name: &str, t: &HeapTotals) -> Vec<Cell> {
    vec![
        Cell::Text(name.into()),
        Cell::Text(String::new()),
        Cell::Count(t.segments),
        Cell::Bytes(t.allocated),
        Cell::Bytes(t.committed),
        Cell::Bytes(t.reserved),
        Cell::Text(String::new()),
    ]
}

impl Report for HeapReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::number("heap"),
            Column::text("generation", 10),
            Column::number("segments"),
            Column::number("allocated"),
            Column::number("committed"),
            Column::number("reserved"),
            Column::number("share"),
        ];
        Grid::new(columns, || self.heaps.iter().flat_map(|h| h.generations.iter().map(move |g| row(h, g))))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let rows = self.heaps.iter().flat_map(|h| {
            h.generations.iter().map(move |g| {
                let mut r = record("generation", g);
                if let Value::Object(fields) = &mut r {
                    fields.insert("heap".into(), h.index.into());
                }
                r
            })
        });
        let details = self.heaps.iter().filter_map(|h| {
            let mut r = record("heap-detail", h.detail.as_ref()?);
            if let Value::Object(fields) = &mut r {
                fields.insert("heap".into(), h.index.into());
                fields.insert("address".into(), json!(h.address));
            }
            Some(r)
        });
        let contexts = self.allocation_contexts.iter().map(|c| record("allocation-context", c));
        Box::new(rows.chain(details).chain(contexts).chain([record("totals", &self.totals)]))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.heaps.iter().all(|h| h.generations.is_empty()) {
            page.line("No generation of the heap could be read.")?;
        } else {
            page.grid(&self.grid(), Some(totals_row("total", &self.totals)))?;
            page.gap()?;
            let t = &self.totals;
            let (a, c, r) = (bytes(t.allocated), bytes(t.committed), bytes(t.reserved));
            page.line(&format!("{a} allocated, {c} committed, {r} reserved"))?;
        }
        for h in &self.heaps {
            for part in h.generations.iter().flat_map(|g| &g.parts) {
                let size = part.end.since(part.start).unwrap_or(0);
                page.line(&format!(
                    "heap {}, inside the ephemeral segment: {} {} to {} ({})",
                    h.index,
                    part.generation,
                    part.start,
                    part.end,
                    bytes(size)
                ))?;
            }
        }
        for c in &self.allocation_contexts {
            let owner = match (c.owner, c.owner_id, c.heap) {
                (ContextOwner::Thread, Some(id), _) => format!("thread {id}"),
                (ContextOwner::Generation, Some(g), Some(heap)) => format!("generation {g} of heap {heap}"),
                (other, ..) => other.to_string(),
            };
            let left = c.limit.since(c.pointer).unwrap_or(0);
            page.line(&format!("allocation context of {owner}: {} to {} ({} free)", c.pointer, c.limit, bytes(left)))?;
        }
        for h in &self.heaps {
            if let Some(d) = &h.detail {
                page.gap()?;
                page.line(&match h.address {
                    Some(a) => format!("Heap {} ({a})", h.index),
                    None => format!("Heap {}", h.index),
                })?;
                detail(d, page)?;
            }
        }
        Ok(())
    }
}

fn detail(d: &HeapDetail, page: &mut Page<'_>) -> io::Result<()> {
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
    page.facts(&facts)
}
