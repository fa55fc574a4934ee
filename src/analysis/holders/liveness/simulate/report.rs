//! The report of `simulate`.

use serde::Serialize;

use crate::analysis::ObjectsByType;
use crate::model::{Generation, RootCoverageModel, Stacks, Sum};

/// `simulate collect`: objects that a collection would free.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CollectReport {
    /// Oldest generation collected: 0, 1 or 2.
    pub generation: u8,
    /// Objects that would be freed.
    pub freed: ObjectsByType,
    /// Objects that would survive, because roots or objects that are not collected reach them.
    pub survivors: Sum,
    /// Survivors of generations 0 and 1, which are promoted.
    pub promoted: Sum,
    /// Unreachable objects that survive one more collection, because their finalizers or those of their referrers would be ready to run.
    pub resurrected: Sum,
    /// Objects of generations that are not collected.
    pub untouched: Sum,
    /// Objects of each collected generation.
    pub generations: Vec<CollectGeneration>,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
}

/// A collected generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CollectGeneration {
    /// Generation or segment kind.
    pub generation: Generation,
    /// Objects.
    pub objects: Sum,
    /// Survivors.
    pub survivors: Sum,
    /// Objects that survive because of finalizers.
    pub resurrected: Sum,
    /// Freed objects.
    pub freed: Sum,
}
