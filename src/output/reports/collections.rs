//! Lines about garbage collections, shared by `heap --detail` and `info`.

use crate::model::{CollectionKind, CollectionsModel, LastCollection, RecordedCollection};
use crate::output::{bytes, count};

/// Formats the collection counts: `gen0 81, gen1 80, gen2 39`.
pub(super) fn counts_line(c: &CollectionsModel) -> String {
    let counts: Vec<String> = c.counts.iter().enumerate().map(|(g, n)| format!("gen{g} {}", count(*n))).collect();
    counts.join(", ")
}

/// Describes the last collection and its reason.
pub(super) fn last_line(last: &LastCollection) -> String {
    let mut parts = vec![format!("GC #{} of gen{} ({})", last.index, last.generation, last.reason)];
    parts.extend(last.compacting.map(|yes| if yes { "compacting" } else { "sweeping" }.to_string()));
    parts.extend(last.concurrent.then(|| "background".to_string()));
    parts.extend((last.loh_compacting == Some(true)).then(|| "LOH compacted".to_string()));
    parts.extend(last.promotion.map(|yes| if yes { "survivors promoted" } else { "survivors not promoted" }.to_string()));
    parts.extend((last.elevation_reduced == Some(true)).then(|| "gen1 collected instead of gen2".to_string()));
    parts.extend(last.compacting.is_none().then(|| "may not have ended".to_string()));
    parts.push(format!("latency mode {}", last.latency_mode));
    parts.push(format!("memory load {} %", last.entry_memory_load));
    parts.join(", ")
}

/// Describes the most recent finished collection.
pub(super) fn recorded_line(r: &RecordedCollection) -> String {
    let pauses: Vec<String> = r.pauses_us.iter().map(|n| format!("{} µs", count(*n))).collect();
    let kind = match r.kind {
        CollectionKind::Ephemeral => "",
        CollectionKind::FullBlocking => ", full",
        CollectionKind::Background => ", background",
    };
    format!(
        "GC #{}{kind}: paused {} ({} % of the time so far), {} promoted; heap after it {}, {} of it fragmentation",
        r.index,
        pauses.join(" + "),
        r.pause_percent,
        bytes(r.promoted_bytes),
        bytes(r.heap_bytes),
        bytes(r.fragmented_bytes),
    )
}
