//! Names of GC enums and flags, with their sources in the runtime.

use crate::base::flag_names;
use crate::model::{FailedCall, GcLatencyMode, GcReason, OomReason};

/// Segment and region flags (`heap_segment_flags_…`, gcpriv.h).
const SEGMENT_FLAGS: &[(u64, &str)] = &[
    (0x1, "readonly"),
    (0x2, "in-range"),
    (0x8, "loh"),
    (0x10, "swept"),
    (0x20, "decommitted"),
    (0x40, "ma-committed"),
    (0x80, "ma-partly-committed"),
    (0x100, "uoh-delete"),
    (0x200, "poh"),
    (0x400, "overflow"),
    (0x800, "demoted"),
];

/// Flag of frozen segments.
pub(super) const READONLY: u64 = 0x1;

/// Flag of segments of the large object heap.
pub(super) const LOH: u64 = 0x8;

/// Flag of segments of the pinned object heap.
pub(super) const POH: u64 = 0x200;

/// Names of the flags set in `flags`; unknown bits as `0x…`.
pub fn segment_flags(flags: u64) -> Vec<String> {
    flag_names(SEGMENT_FLAGS, flags)
}

/// Why an allocation failed (`oom_reason`, gcinterface.dac.h): name and description.
pub(super) fn oom_reason(reason: i32) -> (OomReason, &'static str) {
    match reason {
        0 => (OomReason::None, "no failed allocation recorded"),
        1 => (OomReason::Budget, "allocation budget not met (a limit on the GC heap, or a GC bug)"),
        2 => (OomReason::CantCommit, "could not commit memory"),
        3 => (OomReason::CantReserve, "could not reserve memory (a limit on the address space, or a GC bug)"),
        4 => (OomReason::Loh, "could not allocate a large-object segment"),
        5 => (OomReason::LowMem, "low on memory during a garbage collection"),
        6 => (OomReason::UnproductiveFullGc, "a full garbage collection could not free enough"),
        n => (OomReason::Unknown(n), "unknown reason"),
    }
}

/// Which memory call failed (`failure_get_memory`, gcinterface.dac.h): name and description.
pub(super) fn failed_call(fgm: i32) -> (FailedCall, Option<&'static str>) {
    match fgm {
        0 => (FailedCall::None, None),
        1 => (FailedCall::ReserveSegment, Some("could not reserve a segment")),
        2 => (FailedCall::CommitSegmentBeginning, Some("could not commit the start of a segment")),
        3 => (FailedCall::CommitEphemeralSegment, Some("could not commit the new ephemeral segment")),
        4 => (FailedCall::GrowTable, Some("could not grow internal GC data structures")),
        5 => (FailedCall::CommitTable, Some("could not commit internal GC data structures")),
        n => (FailedCall::Unknown(n), Some("unknown memory call failed")),
    }
}

/// Why a collection was started (`gc_reason`, gc.h); `None` for numbers that no release uses.
pub(super) fn gc_reason(reason: u32) -> Option<GcReason> {
    Some(match reason {
        0 => GcReason::AllocSoh,
        1 => GcReason::Induced,
        2 => GcReason::LowMemory,
        3 => GcReason::Empty,
        4 => GcReason::AllocLoh,
        5 => GcReason::OutOfSpaceSoh,
        6 => GcReason::OutOfSpaceLoh,
        7 => GcReason::InducedNotForced,
        8 => GcReason::Stress,
        9 => GcReason::LowMemoryBlocking,
        10 => GcReason::InducedCompacting,
        11 => GcReason::LowMemoryHost,
        12 => GcReason::ProvisionalFull,
        13 => GcReason::LowMemoryHostBlocking,
        14 => GcReason::BackgroundTuningSoh,
        15 => GcReason::BackgroundTuningLoh,
        16 => GcReason::BackgroundStepping,
        17 => GcReason::InducedAggressive,
        _ => return None,
    })
}

/// Latency mode (`gc_pause_mode`, gcpriv.h); `None` for numbers that no release uses.
pub(super) fn latency_mode(mode: u32) -> Option<GcLatencyMode> {
    Some(match mode {
        0 => GcLatencyMode::Batch,
        1 => GcLatencyMode::Interactive,
        2 => GcLatencyMode::LowLatency,
        3 => GcLatencyMode::SustainedLowLatency,
        4 => GcLatencyMode::NoGc,
        _ => return None,
    })
}

/// Interesting data points, named as in SOS (`dumpgcdata`, strike.cpp).
pub(super) const INTERESTING_DATA: &[&str] = &[
    "pre short",
    "post short",
    "merged pins",
    "converted pins",
    "pre pin",
    "post pin",
    "pre and post pin",
    "pre short padded",
    "post short padded",
];

/// Reasons for compaction. Those marked "(wanted)" are preferences, the others are mandatory.
pub(super) const COMPACT_REASONS: &[&str] = &[
    "low on ephemeral space",
    "high fragmentation (wanted)",
    "could not allocate gaps",
    "user specified LOH compaction",
    "last GC before OOM",
    "induced compacting GC",
    "fragmented gen0 (wanted)",
    "high memory load (wanted)",
    "high memory load and fragmentation",
    "very high memory load and fragmentation",
    "no GC mode",
    "aggressive compacting",
];

/// Heap expansion mechanisms.
pub(super) const EXPAND_MECHANISMS: &[&str] = &[
    "reused segment, normal fit",
    "reused segment, best fit",
    "expand promoting ephemeral",
    "expand with a new segment",
    "no memory for a new segment",
    "expand in the next full GC",
];

/// Mechanism bits.
pub(super) const MECHANISM_BITS: &[&str] = &["using the mark list", "demotion"];

/// Global mechanisms.
pub(super) const GLOBAL_MECHANISMS: &[&str] =
    &["concurrent GCs", "compacting GCs", "promoting GCs", "GCs that did demotion", "card bundles", "elevation logic"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_bits_and_numbers_stay_visible() {
        assert_eq!(segment_flags(0x9), ["readonly", "loh"]);
        assert_eq!(segment_flags(0x10_0200), ["poh", "0x100000"]);
        assert_eq!(oom_reason(2).0, OomReason::CantCommit);
        assert_eq!(oom_reason(77).0.to_string(), "unknown-77");
        assert_eq!(failed_call(0), (FailedCall::None, None));
    }
}
