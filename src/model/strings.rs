use serde::Serialize;

use super::walk::CoverageModel;
use crate::base::{Addr, named_enum};

named_enum! {
    /// Order of the rows of `strings`, the largest first.
    pub enum StringSort {
        /// By the bytes of all strings of a content but one.
        Waste = "waste",
        /// By the number of strings of a content.
        Count = "count",
        /// By the characters of a content.
        Length = "length",
        /// By the bytes of all strings of a content.
        Bytes = "bytes",
    }
}

/// `strings`: the string objects of the heap by their content.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct StringsReport {
    /// One for each content that was asked for, in the order asked for.
    pub strings: Vec<StringModel>,
    /// Sums over all strings that were asked for, whatever is listed.
    pub totals: StringTotals,
    /// How much of the heap was walked.
    pub coverage: CoverageModel,
    /// Rows listed, where `--top` cut the list; `null` where all are.
    pub shown: Option<u64>,
    /// Rows that there are, listed or not.
    pub rows: u64,
}

/// The strings that have one content.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct StringModel {
    /// The text, or its beginning. Halves of surrogate pairs that stand alone are U+FFFD here.
    pub value: String,
    /// Characters (UTF-16 units) of the whole text.
    pub length: u64,
    /// String objects with this content.
    pub count: u64,
    /// Their bytes as SOS and ClrMD count them.
    pub bytes: u64,
    /// Bytes of all of them but one.
    pub waste: u64,
    /// The one at the lowest address.
    pub address: Addr,
    /// Whether `value` is only the beginning.
    pub truncated: bool,
}

/// Sums of `strings`.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct StringTotals {
    /// String objects.
    pub strings: u64,
    /// Their bytes as SOS and ClrMD count them.
    pub bytes: u64,
    /// Different contents.
    pub distinct: u64,
    /// Contents that more than one string has.
    pub duplicate_groups: u64,
    /// Bytes of all strings of these groups but one of each.
    pub wasted_bytes: u64,
    /// Strings whose content is not wholly in the dump: counted in `strings` and `bytes` only.
    pub unreadable: u64,
}
