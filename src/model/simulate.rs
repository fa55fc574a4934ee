use serde::Serialize;

use super::by_type::ObjectsByType;
use super::root::{RootCoverageModel, Stacks};
use super::segment::Generation;
use super::sum::Sum;

/// `simulate collect`: what a collection would free now.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CollectReport {
    /// Oldest generation collected: 0, 1 or 2.
    pub generation: u8,
    /// Objects that would be freed.
    pub freed: ObjectsByType,
    /// Objects that would survive: reachable from roots or from objects not collected.
    pub survivors: Sum,
    /// Of these, objects of generations 0 and 1, which are promoted.
    pub promoted: Sum,
    /// Unreachable objects kept for one more collection by finalizers that would be ready to run.
    pub resurrected: Sum,
    /// Objects of older generations, which are not collected.
    pub untouched: Sum,
    /// By collected generation.
    pub generations: Vec<CollectGeneration>,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Which stack and register values count as roots.
    pub stacks: Stacks,
}

/// A collected generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CollectGeneration {
    /// Generation or segment kind.
    pub generation: Generation,
    /// Its objects.
    pub objects: Sum,
    /// Survivors.
    pub survivors: Sum,
    /// Objects kept by finalizers.
    pub resurrected: Sum,
    /// Freed objects.
    pub freed: Sum,
}
