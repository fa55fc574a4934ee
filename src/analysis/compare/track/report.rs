//! The report of `track`.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum, views};
use crate::model::{Generation, Sum};

named_enum! {
    /// Certainty of a match.
    pub enum Certainty {
        /// The only explanation of both dumps.
        Certain = "certain",
        /// The best explanation, without evidence against it.
        Likely = "likely",
        /// One of several explanations. Such a match is not counted, and listed only on request.
        Doubtful = "doubtful",
    }
}

views! {
    /// The rows that `track` lists.
    pub enum TrackRows as TrackFields {
        /// Sums by type and by generation.
        Types {
            /// Objects by type, most bytes before or after first.
            types: Vec<TrackType>,
            /// Survivors by generation before and after.
            generations: Vec<GenerationFlow>,
        },
        /// Each match.
        Objects {
            /// The matches, in the order of the first dump.
            matches: Vec<TrackMatch>,
        },
        /// Ranges of survivors.
        Ranges {
            /// Runs of adjacent survivors that moved by the same distance, in the order of the first dump
            /// (`ICorProfilerCallback4::MovedReferences2`).
            moved: Vec<MovedRange>,
            /// Runs of adjacent survivors that did not move (`ICorProfilerCallback4::SurvivingReferences2`).
            surviving: Vec<SurvivingRange>,
        },
    }
}

/// `track`: the objects that survived from one dump of a process to the next.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TrackReport {
    /// Sums of all objects.
    pub totals: TrackSums,
    /// Matches by certainty. Doubtful matches are included only in this list.
    pub certainty: Vec<CertaintySum>,
    /// The rows of the requested view.
    #[serde(flatten)]
    pub rows: TrackRows,
    /// Number of types listed, if cut by `top`; `null` if complete.
    pub shown: Option<u64>,
}

/// Numbers of objects that survived, died or are new. Survivors are the certain and the likely matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TrackSums {
    /// Objects of the first dump.
    pub before: Sum,
    /// Objects of the last dump.
    pub after: Sum,
    /// Objects in both dumps.
    pub survived: Sum,
    /// Survivors at another address.
    pub moved: Sum,
    /// Survivors in an older generation.
    pub promoted: Sum,
    /// Objects of the first dump that have certainly died, because no object of the last dump can be the same.
    pub died: Sum,
    /// Objects of the last dump that are certainly new, because no object of the first dump can be the same.
    pub born: Sum,
    /// Objects of the first dump that either died or survived as one of several similar objects.
    pub unknown_before: Sum,
    /// Objects of the last dump that are either new or one of several similar survivors.
    pub unknown_after: Sum,
}

/// Matches of one certainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CertaintySum {
    /// The certainty.
    pub certainty: Certainty,
    /// Number and size of the matches.
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
    /// Method table, the same in both dumps.
    pub method_table: Addr,
    /// Numbers of the type's objects.
    #[serde(flatten)]
    pub sums: TrackSums,
}

/// Survivors by generation in both dumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GenerationFlow {
    /// Generation or segment kind before.
    pub from: Generation,
    /// Generation or segment kind after.
    pub to: Generation,
    /// Number and size of the survivors.
    #[serde(flatten)]
    pub sum: Sum,
    /// Number of these survivors that moved.
    pub moved: u64,
}

/// An object that is in both dumps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TrackMatch {
    /// Address in the first dump.
    pub from: Addr,
    /// Address in the last dump.
    pub to: Addr,
    /// Certainty of the match.
    pub certainty: Certainty,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Size in bytes.
    pub size: u64,
    /// Generation or segment kind in the first dump.
    pub generation_before: Option<Generation>,
    /// Generation or segment kind in the last dump.
    pub generation_after: Option<Generation>,
}

/// Adjacent objects that moved by the same distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MovedRange {
    /// Address of the first object in the first dump.
    pub from: Addr,
    /// Address of the first object in the last dump.
    pub to: Addr,
    /// Length in bytes to the end of the last object.
    pub length: u64,
    /// Number of objects.
    pub objects: u64,
    /// Whether all matches are certain; otherwise some are likely.
    pub certain: bool,
}

/// Adjacent objects that survived and stayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SurvivingRange {
    /// Address of the first object.
    pub start: Addr,
    /// Length in bytes to the end of the last object.
    pub length: u64,
    /// Number of objects.
    pub objects: u64,
    /// Whether all matches are certain; otherwise some are likely.
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
