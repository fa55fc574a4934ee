use serde::Serialize;

use super::segment::Generation;
use super::sum::Sum;
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// How sure a match is.
    pub enum Certainty {
        /// The only explanation of what both dumps show.
        Certain = "certain",
        /// The best explanation, and nothing speaks against it.
        Likely = "likely",
        /// One of several explanations: not counted, and listed only on request.
        Doubtful = "doubtful",
    }
}

/// `track`: which objects survived from one dump of a process to the next.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TrackReport {
    /// All objects.
    pub totals: TrackSums,
    /// Matches by certainty; doubtful ones are counted here and nowhere else.
    pub certainty: Vec<CertaintySum>,
    /// By type: those with most bytes before or after first; `null` with `--objects` and `--ranges`.
    pub types: Option<Vec<TrackType>>,
    /// Survivors by generation before and after; `null` with `--objects` and `--ranges`.
    pub generations: Option<Vec<GenerationFlow>>,
    /// With `--objects`: the matches, in the order of the first dump.
    pub matches: Option<Vec<TrackMatch>>,
    /// With `--ranges`: survivors that moved, as runs of adjacent objects that moved by the same distance, in the order of the
    /// first dump (`ICorProfilerCallback4::MovedReferences2`).
    pub moved: Option<Vec<MovedRange>>,
    /// With `--ranges`: survivors that stayed, as runs of adjacent objects (`ICorProfilerCallback4::SurvivingReferences2`).
    pub surviving: Option<Vec<SurvivingRange>>,
    /// Number of types listed, if cut by `--top`; `null` if complete.
    pub shown: Option<u64>,
}

/// What became of objects. Survivors are the certain and likely ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TrackSums {
    /// Objects of the first dump.
    pub before: Sum,
    /// Objects of the last dump.
    pub after: Sum,
    /// Objects of both.
    pub survived: Sum,
    /// Survivors at another address.
    pub moved: Sum,
    /// Survivors in an older generation.
    pub promoted: Sum,
    /// Objects of the first dump that are gone for certain: nothing in the last dump can be them.
    pub died: Sum,
    /// Objects of the last dump that are new for certain: nothing in the first dump can have been them.
    pub born: Sum,
    /// Objects of the first dump that died, or survived as one of several that look alike: which of them cannot be known.
    pub unknown_before: Sum,
    /// Objects of the last dump that are new, or one of several survivors that look alike.
    pub unknown_after: Sum,
}

/// Matches of one certainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CertaintySum {
    /// How sure they are.
    pub certainty: Certainty,
    /// How many, and their bytes.
    #[serde(flatten)]
    pub sum: Sum,
}

/// Objects of one type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TrackType {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its method table, the same in both dumps.
    pub method_table: Addr,
    /// What became of its objects.
    #[serde(flatten)]
    pub sums: TrackSums,
}

/// Survivors that went from one generation to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GenerationFlow {
    /// Generation or segment kind before.
    pub from: Generation,
    /// Generation or segment kind after.
    pub to: Generation,
    /// How many, and their bytes.
    #[serde(flatten)]
    pub sum: Sum,
    /// How many of them moved.
    pub moved: u64,
}

/// An object of both dumps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TrackMatch {
    /// Its address before.
    pub from: Addr,
    /// Its address after.
    pub to: Addr,
    /// How sure that is.
    pub certainty: Certainty,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its bytes.
    pub size: u64,
    /// Its generation or segment kind before.
    pub generation_before: Option<Generation>,
    /// Its generation or segment kind after.
    pub generation_after: Option<Generation>,
}

/// Adjacent objects that moved by the same distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MovedRange {
    /// Address of the first before.
    pub from: Addr,
    /// Address of the first after.
    pub to: Addr,
    /// Bytes to the end of the last.
    pub length: u64,
    /// Number of objects.
    pub objects: u64,
    /// Whether all of them are certain; some are likely otherwise.
    pub certain: bool,
}

/// Adjacent objects that survived and stayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SurvivingRange {
    /// Address of the first.
    pub start: Addr,
    /// Bytes to the end of the last.
    pub length: u64,
    /// Number of objects.
    pub objects: u64,
    /// Whether all of them are certain; some are likely otherwise.
    pub certain: bool,
}

impl TrackSums {
    /// Adds `other`.
    pub fn merge(&mut self, other: &TrackSums) {
        self.before.merge(other.before);
        self.after.merge(other.after);
        self.survived.merge(other.survived);
        self.moved.merge(other.moved);
        self.promoted.merge(other.promoted);
        self.died.merge(other.died);
        self.born.merge(other.born);
        self.unknown_before.merge(other.unknown_before);
        self.unknown_after.merge(other.unknown_after);
    }
}
