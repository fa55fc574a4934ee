//! The report of `strings`.

use serde::Serialize;

use crate::base::{Addr, named_enum};
use crate::model::CoverageModel;

named_enum! {
    /// Sort order of `strings`, largest first.
    pub enum StringSort {
        /// By bytes wasted on duplicates.
        Waste = "waste",
        /// By number of strings.
        Count = "count",
        /// By length in characters.
        Length = "length",
        /// By total bytes.
        Bytes = "bytes",
    }
}

/// `strings`: the string objects on the heap by value.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StringsReport {
    /// One row per distinct selected value, in the requested order.
    pub strings: Vec<StringModel>,
    /// Totals of all selected strings, listed or not.
    pub totals: StringTotals,
    /// Coverage of the heap walk.
    pub coverage: CoverageModel,
    /// Number of rows listed, if cut by `top`; `null` if complete.
    pub shown: Option<u64>,
    /// Number of selected values, listed or not.
    pub rows: u64,
    /// Smallest number of occurrences of a selected value.
    pub min_count: u64,
}

/// Strings of equal value.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StringModel {
    /// The value, possibly truncated. A lone surrogate is written as six characters, such as `\ud800`.
    pub value: String,
    /// Length of the full value in UTF-16 code units.
    pub length: u64,
    /// Number of string objects.
    pub count: u64,
    /// Size of the objects in bytes as counted by SOS and ClrMD.
    pub bytes: u64,
    /// Size in bytes of all but one of the objects.
    pub waste: u64,
    /// Lowest address of these objects.
    pub address: Addr,
    /// Whether `value` is truncated.
    pub truncated: bool,
}

/// Totals of `strings`.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StringTotals {
    /// Number of string objects.
    pub strings: u64,
    /// Size of the objects in bytes as counted by SOS and ClrMD.
    pub bytes: u64,
    /// Number of distinct values.
    pub distinct: u64,
    /// Number of values that occur more than once.
    pub duplicate_groups: u64,
    /// Size in bytes of all but one string of each such value.
    pub wasted_bytes: u64,
    /// Number of strings that are only partly in the dump. Of the totals, only `strings` and `bytes` include them.
    pub unreadable: u64,
}
