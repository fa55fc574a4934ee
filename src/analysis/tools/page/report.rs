//! The report of `page`.

use std::sync::Arc;

use serde::Serialize;

use crate::analysis::{
    AnalyzeReport, AsyncReport, DiffReport, EnvReport, ExceptionModel, ExceptionsReport, FinalizersReport, FragmentationReport,
    HandlesReport, HeapReport, InfoReport, InspectReport, LocksReport, MemoryReport, ModulesReport, PathModel, PoolReport, RequestsReport,
    RuleNeed, StacksReport, StatTotals, Suspect, TypeStat,
};
use crate::base::{Addr, Name};
use crate::model::{OomReport, ReachTotals, StaticsReport};

/// `report`: a page about a process, composed of the answers of other commands. A part that could not be answered is `null`, with the
/// reason in `lacking`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PageReport {
    /// Subject of the page: the name of the process, or of the file.
    pub title: String,
    /// Whether the contents of the process were left out.
    pub without_contents: bool,
    /// The command line that created the page.
    pub made_by: String,
    /// `info`.
    pub info: InfoReport,
    /// `analyze`.
    pub analyze: AnalyzeReport,
    /// `diff` from the earlier dump, if there is one.
    pub diff: Option<DiffReport>,
    /// Exceptions in flight, starting with that of the crashed thread.
    pub exceptions: Vec<Arc<ExceptionModel>>,
    /// `oom`, if an allocation failed.
    pub oom: Option<OomReport>,
    /// `requests`, if there are requests or sockets.
    pub requests: Option<RequestsReport>,
    /// `exceptions --stat`, if there are exceptions that were thrown.
    pub thrown: Option<ExceptionsReport>,
    /// `memory`.
    pub memory: Option<MemoryReport>,
    /// `statics --retained`: the static fields that retain most; `null` with `--no-graph`.
    pub statics: Option<StaticsReport>,
    /// `modules`.
    pub modules: Option<ModulesReport>,
    /// `env`, only with contents.
    pub env: Option<EnvReport>,
    /// `heap --map`, with `--garbage` unless `--no-graph`.
    pub heap: Option<HeapReport>,
    /// The types with the most bytes.
    pub types: Option<PageTypes>,
    /// Retained sizes by type.
    pub icicle: Option<Icicle>,
    /// Suspects, each with a path from a root.
    pub suspects: Option<Vec<PageSuspect>>,
    /// `stacks --merge`.
    pub stacks: Option<StacksReport>,
    /// `locks`, if a thread is blocked.
    pub locks: Option<LocksReport>,
    /// `async --merge`, if there are chains.
    pub chains: Option<AsyncReport>,
    /// `pool`.
    pub pool: Option<PoolReport>,
    /// `inspect`.
    pub inspect: Option<InspectReport>,
    /// `fragmentation`.
    pub fragmentation: Option<FragmentationReport>,
    /// `handles`, by kind and type.
    pub handles: Option<HandlesReport>,
    /// `finalizers`.
    pub finalizers: Option<FinalizersReport>,
    /// The parts that could not be answered.
    pub lacking: Vec<LackingPart>,
}

/// A part of a page that could not be answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LackingPart {
    /// Name of the part in the JSON.
    pub part: String,
    /// Why it could not be answered.
    pub reason: String,
    /// The part that the query did not give, if that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<RuleNeed>,
}

/// The types with the most bytes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PageTypes {
    /// The types, most bytes first.
    pub rows: Vec<PageType>,
    /// Sums of the types that are not listed.
    pub rest: TypesRest,
    /// Totals of all objects.
    pub totals: StatTotals,
}

/// Sums of the types that are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TypesRest {
    /// Number of types.
    pub types: u64,
    /// Number of objects.
    pub count: u64,
    /// Size of these objects in bytes.
    pub bytes: u64,
}

/// A type of the page.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PageType {
    /// Objects of the type.
    #[serde(flatten)]
    pub stat: TypeStat,
    /// Bytes that the reachable objects retain; `null` without the graph, and for free space.
    pub retained: Option<u64>,
}

/// A suspect with a path.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PageSuspect {
    /// The suspect.
    #[serde(flatten)]
    pub suspect: Suspect,
    /// A shortest path from a root to the object, or to one object of the type; `null` if none was found.
    pub path: Option<PathModel>,
}

/// The dominator tree by type. A box represents the objects of one type whose dominators are of one type.
///
/// Small boxes are merged into one. The retained bytes of a box are therefore its objects' own bytes plus the retained bytes of the boxes
/// below.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Icicle {
    /// The boxes in preorder. The first box is the whole heap; children are listed largest first, the merged rest last.
    pub boxes: Vec<IcicleBox>,
    /// Totals of the heap.
    pub totals: ReachTotals,
}

/// A box of the icicle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct IcicleBox {
    /// Depth; 0 for the whole heap.
    pub depth: u32,
    /// For a box directly below the whole heap: kind of the root that holds its objects, as in `roots`, or `several-roots` if several
    /// objects without a common dominator hold them. `null` for other boxes.
    pub root: Option<String>,
    /// Name of the type; `null` for the whole heap, for a kind of root, and for the merged rest.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Number of objects of the box. In the merged rest, dominated objects are counted too.
    pub count: u64,
    /// Own size of these objects in bytes.
    pub bytes: u64,
    /// Bytes that these objects retain together.
    pub retained: u64,
    /// One of the objects.
    pub example: Option<Addr>,
    /// Whether the boxes below are omitted to save space.
    pub closed: bool,
}
