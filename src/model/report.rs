use std::sync::Arc;

use serde::Serialize;

use super::{
    AnalyzeReport, AsyncReport, DiffReport, EnvReport, ExceptionModel, ExceptionsReport, FinalizersReport, FragmentationReport,
    HandlesReport, HeapReport, InfoReport, InspectReport, LocksReport, MemoryReport, ModulesReport, OomReport, PathModel, PoolReport,
    ReachTotals, RequestsReport, StacksReport, StatTotals, StaticsReport, Suspect, TypeStat,
};
use crate::base::{Addr, Name};

/// `report`: a page about a process, made of the answers of other commands. A part is `null` where it could not be answered, with the
/// reason in `lacking`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PageReport {
    /// What the page is about: the name of the process, or of the file.
    pub title: String,
    /// Whether the contents of the process were left out (all but `--contents`).
    pub without_contents: bool,
    /// The command line that makes this page.
    pub made_by: String,
    /// `info`.
    pub info: InfoReport,
    /// `analyze`.
    pub analyze: AnalyzeReport,
    /// `diff` from the earlier dump, if there is one.
    pub diff: Option<DiffReport>,
    /// Exceptions in flight, that of the crashed thread first.
    pub exceptions: Vec<Arc<ExceptionModel>>,
    /// `oom`, if an allocation failed.
    pub oom: Option<OomReport>,
    /// `requests`, if there are requests or sockets.
    pub requests: Option<RequestsReport>,
    /// `exceptions --stat`, if there are exceptions that were thrown.
    pub thrown: Option<ExceptionsReport>,
    /// `memory`.
    pub memory: Option<MemoryReport>,
    /// `statics --retained`, those that retain most; `null` with `--no-graph`.
    pub statics: Option<StaticsReport>,
    /// `modules`.
    pub modules: Option<ModulesReport>,
    /// `env`, only with contents.
    pub env: Option<EnvReport>,
    /// `heap --map`, with `--garbage` unless `--no-graph`.
    pub heap: Option<HeapReport>,
    /// The types with the most bytes.
    pub types: Option<PageTypes>,
    /// What retains what, by type.
    pub icicle: Option<Icicle>,
    /// Suspects, each with a path from a root.
    pub suspects: Option<Vec<PageSuspect>>,
    /// `stacks --merge`.
    pub stacks: Option<StacksReport>,
    /// `locks`, if a thread waits.
    pub locks: Option<LocksReport>,
    /// `async --merge`, if there are chains.
    pub chains: Option<AsyncReport>,
    /// `pool`.
    pub pool: Option<PoolReport>,
    /// `inspect`: what is often wasted.
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
    /// Its name in the JSON.
    pub part: String,
    /// Why.
    pub reason: String,
}

/// The types with the most bytes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PageTypes {
    /// The types, most bytes first.
    pub rows: Vec<PageType>,
    /// What the types not listed have.
    pub rest: TypesRest,
    /// Totals of all objects.
    pub totals: StatTotals,
}

/// What the types not listed have together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TypesRest {
    /// Number of types.
    pub types: u64,
    /// Their objects.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A type of the page.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PageType {
    /// Its objects.
    #[serde(flatten)]
    pub stat: TypeStat,
    /// Bytes that the reachable ones retain; `null` without the graph, and for free space.
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

/// The dominator tree by type: boxes stand for objects of one type whose dominators are of one type.
///
/// Boxes are cut by size, and the smaller ones counted together, so that the bytes of a box are its own and those of what is below.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Icicle {
    /// The boxes; each stands before those below it, which stand largest first, the rest last. The first is the whole.
    pub boxes: Vec<IcicleBox>,
    /// Totals of the heap.
    pub totals: ReachTotals,
}

/// A box of the icicle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct IcicleBox {
    /// Depth; 0 for the whole.
    pub depth: u32,
    /// Kind of root that holds the objects of a box right below the whole, as in `roots`; `several-roots` for those that no root refers to:
    /// several objects hold them. `null` for other boxes.
    pub root: Option<String>,
    /// Name of the type; `null` for the whole, for kinds of roots, and for what is too small to be shown.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Number of objects: of that type, of all of them, or that are too small to be shown with what they dominate.
    pub count: u64,
    /// Their own bytes.
    pub bytes: u64,
    /// Bytes that they retain together.
    pub retained: u64,
    /// One of them.
    pub example: Option<Addr>,
    /// Whether what is below is not shown, for lack of room.
    pub closed: bool,
}
