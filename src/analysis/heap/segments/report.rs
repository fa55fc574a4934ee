//! The report of `segments`.

use serde::Serialize;

use crate::model::{CarvedModel, RegionModel, SegmentModel};

/// `segments`: segments or regions of the heap.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SegmentsReport {
    /// Segments, ordered by heap and generation; with `at`, the segment at that address.
    pub segments: Vec<SegmentModel>,
    /// Number of segments that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u64>,
    /// GC memory outside the segments in use: with `free` all of it, with `at` the memory at that address.
    pub regions: Option<Vec<RegionModel>>,
    /// How the heap was carved; absent if it was not. The segments of a carved heap are the ranges in which objects were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carved: Option<CarvedModel>,
}
