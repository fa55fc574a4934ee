//! Names of the GC's enums and flags, each with its source in the runtime.

use crate::base::flag_names;
use crate::model::{FailedCall, OomReason};

/// Flags of a segment or region (`heap_segment_flags_…`, gcpriv.h).
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

/// Bit of a frozen segment.
pub(super) const READONLY: u64 = 0x1;

/// Names of the flags that are set; unknown bits come as `0x…`.
pub fn segment_flags(flags: u64) -> Vec<String> {
    flag_names(SEGMENT_FLAGS, flags)
}

/// Why an allocation failed (`oom_reason`, gcinterface.dac.h): name, and what it means.
pub(super) fn oom_reason(reason: i32) -> (OomReason, &'static str) {
    match reason {
        0 => (OomReason::None, "no out-of-memory recorded"),
        1 => (OomReason::Budget, "internal .NET error, likely a bug in the GC"),
        2 => (OomReason::CantCommit, "did not have enough memory to commit"),
        3 => (OomReason::CantReserve, "internal .NET error: could not reserve memory, likely a bug in the GC"),
        4 => (OomReason::Loh, "did not have enough memory to allocate a large-object segment"),
        5 => (OomReason::LowMem, "low on memory during a garbage collection"),
        6 => (OomReason::UnproductiveFullGc, "could not do a full garbage collection that frees enough"),
        n => (OomReason::Unknown(n), "for a reason that this gcdump does not know"),
    }
}

/// Which memory call failed (`failure_get_memory`, gcinterface.dac.h): name, and what it means.
pub(super) fn failed_call(fgm: i32) -> (FailedCall, Option<&'static str>) {
    match fgm {
        0 => (FailedCall::None, None),
        1 => (FailedCall::ReserveSegment, Some("failed to reserve memory")),
        2 => (FailedCall::CommitSegmentBeginning, Some("could not commit the beginning of a segment")),
        3 => (FailedCall::CommitEphemeralSegment, Some("could not commit the new ephemeral segment")),
        4 => (FailedCall::GrowTable, Some("could not grow internal GC data structures")),
        5 => (FailedCall::CommitTable, Some("could not commit internal GC data structures")),
        n => (FailedCall::Unknown(n), Some("failed in a call that this gcdump does not know")),
    }
}

/// Interesting data points, as SOS prints them (`dumpgcdata`, strike.cpp).
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

/// Why collections compacted. The first group is mandatory, the "(wanted)" ones are wishes.
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

/// How the heap was expanded.
pub(super) const EXPAND_MECHANISMS: &[&str] = &[
    "reused segment, normal fit",
    "reused segment, best fit",
    "expand promoting ephemeral",
    "expand with a new segment",
    "no memory for a new segment",
    "expand in the next full GC",
];

/// Bits of mechanisms.
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
