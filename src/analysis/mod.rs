//! The analyses: `f(&Heap, &Query) -> Result<Answer<Report>>`. Each has its query and report beside it. Reports are sorted and limited here.
//!
//! Analyses that do not need the heap take a [`Runtime`](crate::session::Runtime), and analyses of the dump file take a
//! [`Dump`](crate::session::Dump). Each answer starts with the notes of the parts it uses.

#[cfg(test)]
mod altered_tests;
mod compare;
mod condition;
mod dump;
mod field_paths;
mod heap;
mod holders;
mod methods;
mod objects;
mod on_graph;
mod select;
mod sort;
mod threads;
mod tools;
mod trust;
mod walk;

pub use compare::diff::{
    ComparedDump, DiffBy, DiffMeasure, DiffQuery, DiffReport, DiffRow, DiffRule, DiffSort, DiffState, GainedType, GrowingHolder,
    HolderStep, Rule, RuleError, Trend, diff,
};
#[cfg(feature = "cli")]
pub(crate) use compare::track::survivors;
pub use compare::track::{
    Certainty, CertaintySum, GenerationFlow, MovedRange, SurvivingRange, TrackMatch, TrackQuery, TrackReport, TrackRows, TrackSums,
    TrackType, TrackView, track,
};
pub use condition::rows::RowValue;
pub use condition::{Condition, ConditionError};
pub(crate) use dump::analyze::command_line;
pub use dump::analyze::{
    AnalyzeQuery, AnalyzeReport, BelowThreshold, Complaint, Problem, ProblemId, ProblemSeverity, RuleNeed, SkippedProblem, Thresholds,
    Triage, analyze,
};
pub(crate) use dump::app::app;
pub use dump::contracts::{
    CheckModel, CheckOutcome, ContractModel, ContractsQuery, ContractsReport, FieldModel, GlobalModel, OriginModel, SupportKind, TypeModel,
    UnusableModel, contracts,
};
pub use dump::env::{EnvReport, SettingModel, SettingSource, VariableModel, env};
pub(crate) use dump::info::head_parts;
pub use dump::info::{
    AnswerBasis, AnswerKind, AnswerModel, GcModel, InfoQuery, InfoReport, ModuleFileModel, MorePrecise, RuntimeBrief, info,
};
pub use dump::memory_map::{
    MallocHeapModel, MallocModel, MemoryKind, MemoryKindModel, MemoryListing, MemoryQuery, MemoryRangeModel, MemoryReport, MemoryTotals,
    memory_map,
};
#[cfg(feature = "fetch")]
pub(crate) use dump::modules::guid;
pub(crate) use dump::modules::incomplete_images;
pub use dump::modules::{FetchModel, FetchOutcome, ModuleKind, ModuleModel, ModuleNeed, ModulesQuery, ModulesReport, modules};
pub use heap::finalizers::{
    FinalizerGeneration, FinalizerHeap, FinalizerObject, FinalizerThread, FinalizerType, FinalizersQuery, FinalizersReport, finalizers,
};
pub use heap::fragmentation::{
    FragmentationQuery, FragmentationReport, FragmentationTotals, FreeBlockModel, FreeSizeModel, FreeSpaceModel, NeighborModel,
    PinnedTypeModel, fragmentation,
};
pub(crate) use heap::handles::each_handle;
pub use heap::handles::{HandleBy, HandleGroup, HandleStat, HandleUseStat, HandlesQuery, HandlesReport, HandlesRows, HandlesView, handles};
pub use heap::heap_map::{HeapMapModel, HeapMapRow, MapBytes, MapCell, MapQuery, MapRows};
pub(crate) use heap::known::{KnownNumbers, known};
pub use heap::oom::oom;
pub use heap::segments::{SegmentsQuery, SegmentsReport, segments};
pub use heap::summary::{GenerationModel, HeapModel, HeapQuery, HeapReport, HeapTotals, heap};
pub use holders::inspect::{InspectQuery, InspectReport, InspectionId, InspectionModel, InspectionRow, inspect};
pub use holders::liveness::{
    BridgeClass, BridgeClassKind, BridgeHandle, BridgeObject, BridgeQuery, BridgeReport, BridgeScc, BridgeWeakLink, BridgeXref,
    CollectGeneration, CollectQuery, CollectReport, GarbageClass, GarbageObject, GarbageTotal, GarbageType, ObjectsByType, TypeBytes,
    UnreachableQuery, UnreachableReport, UnreachableRows, WhatifComponent, WhatifQuery, WhatifReport, WhatifWeak, bridge, collect,
    unreachable, whatif,
};
pub use holders::paths::{PathsQuery, paths};
pub use holders::refs::{
    RefBy, RefList, RefListRows, RefObject, RefRow, RefSort, RefType, RefVia, RefsQuery, RefsReport, YoungCards, refs,
};
pub(crate) use holders::retained::SUSPECT_SHARE;
pub use holders::retained::{
    BelowType, ElementsModel, HolderType, ObjSizeReport, PathFold, PathModel, PathNode, PathStep, PathsReport, Retained, RetainedBy,
    RetainedDetail, RetainedGroup, RetainedObject, RetainedQuery, RetainedReport, RetainedRows, RetainedType, RetainedView, SampledTypes,
    Suspect, SuspectKind, TopRetained, TreeRow, objsize, retained,
};
pub(crate) use holders::roots::each_root;
pub use holders::roots::{DependentModel, RootCount, RootType, RootsQuery, RootsReport, RootsRows, roots};
pub(crate) use objects::list::{ObjectBatch, ObjectsQuery, objects};
pub use objects::near::{NearKind, NearQuery, NearReport, NearRow, near};
pub use objects::object::{CutShort, DimensionModel, ObjectQuery, ObjectReport, object, value};
pub use objects::stat::{GroupStat, StatBy, StatQuery, StatReport, StatRows, StatSort, StatTotals, TypeStat, TypeStats, stat};
pub(crate) use objects::statics::each_static;
pub use objects::statics::statics;
pub use objects::strings::{StringModel, StringSort, StringTotals, StringsQuery, StringsReport, strings};
pub use objects::types::{LayoutField, MethodCode, MethodModel, TypeBrief, TypeCategory, TypeLayout, TypeRef, TypesReport, types};
pub use objects::where_is::{CodePlace, PlaceKind, SegmentPlace, WhereReport, where_is};
pub use select::Selection;
pub use threads::async_chains::{
    AsyncChain, AsyncFrame, AsyncQuery, AsyncReport, AsyncRoot, AsyncRootKind, AsyncRootSum, AsyncRow, AsyncTotals, TaskExceptionModel,
    TaskModel, TaskPart, TaskStatusCount, TaskWaiter, async_chains,
};
pub(crate) use threads::exceptions::ExceptionReader;
pub use threads::exceptions::{
    ExceptionGroup, ExceptionModel, ExceptionsQuery, ExceptionsReport, ExceptionsRows, FrameModel, HeapExceptionModel, HeapExceptions,
    exceptions,
};
pub use threads::list::{GcMode, SuspendedThread, SuspensionModel, ThreadModel, ThreadsQuery, ThreadsReport, threads};
pub use threads::locks::{
    BlockedStack, DeadlockModel, LockKind, LockModel, LockOwner, LocksQuery, LocksReport, ThreadWait, WaitChain, WaitEdge, WaitEdgeKind,
    WaitEvidence, WaitKind, WaitModel, WaiterModel, locks,
};
pub use threads::pool::{
    CallbackCount, CancellationModel, PoolGroup, PoolItem, PoolItemKind, PoolKind, PoolQueue, PoolReport, PoolWorker, RegisteredWait,
    TimerClock, TimerKind, TimerModel, TimersReport, pool, timers,
};
pub use threads::requests::{
    ConnectionPool, PeerModel, RequestDirection, RequestFrame, RequestModel, RequestState, RequestsQuery, RequestsReport, SocketModel,
    SocketState, requests,
};
pub use threads::stacks::{
    CodeKind, FramePart, MergedFrame, RepeatTimes, StackCoverage, StackFrameModel, StackGap, StackRepeat, StackRootModel, StacksQuery,
    StacksReport, StacksRows, ThreadStackModel, stacks,
};
pub(crate) use threads::stacks::{
    FailFast, Recursion, each_stack, fail_fast, folded_stacks, folded_tree, frame_label, recursion, repeated_frames,
};
pub use tools::page::{Icicle, IcicleBox, LackingPart, PageQuery, PageReport, PageSuspect, PageType, PageTypes, TypesRest, page};
pub(crate) use trust::trim::{Contents, Trim};
#[doc(hidden)]
pub use trust::trim::{Reads, Surveys};
pub use trust::trim::{RedactionModel, TrimKind, TrimPart, TrimReport};
pub use trust::verify::{
    FindingCount, FindingId, FindingModel, Severity, UnavailableCheck, VerifyCheck, VerifyQuery, VerifyReport, VerifyTotals, verify,
};

pub use crate::session::roots::RootOptions;
pub use crate::session::{StaticsQuery, TypePattern};
pub use objects::list::{ObjectBrief, ObjectsReport, ObjectsTail, ReferenceModel};
