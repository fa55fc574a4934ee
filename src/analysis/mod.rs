//! The analyses: `f(&Heap, &Query) -> Result<Answer<Report>>`. Each has its query and report beside it. Reports are sorted and limited here.
//!
//! Analyses that do not need the heap take a [`Runtime`](crate::session::Runtime), and analyses of the dump file take a
//! [`Dump`](crate::session::Dump). Each answer starts with the notes of the parts it uses.

mod analyze;
mod answers;
mod app;
mod asked_fields;
mod async_chains;
mod condition;
mod continuation;
mod contracts;
mod diff;
mod env;
mod exceptions;
mod finalizers;
mod fragmentation;
mod handles;
mod heap;
mod heap_map;
mod info;
mod inspect;
mod layout;
mod liveness;
mod locks;
mod memory_map;
mod methods;
mod modules;
mod near;
mod object;
mod objects;
mod on_graph;
mod oom;
mod page;
mod path_fold;
mod path_tree;
mod paths;
#[cfg(test)]
mod piece_tests;
mod pins;
mod pool;
mod refs;
mod requests;
mod retained;
mod roots;
mod segments;
mod select;
mod sort;
mod stack_words;
mod stacks;
mod stat;
mod statics;
mod strings;
mod suspension;
mod task_names;
mod threads;
mod tiers;
mod track;
mod trim;
mod type_methods;
mod types;
mod verify;
mod walk;
mod where_is;
mod young;

pub(crate) use analyze::command_line;
pub use analyze::{
    AnalyzeQuery, AnalyzeReport, BelowThreshold, Complaint, Problem, ProblemId, ProblemSeverity, SkippedProblem, Thresholds, Triage,
    analyze,
};
pub(crate) use app::app;
pub use async_chains::{
    AsyncChain, AsyncFrame, AsyncQuery, AsyncReport, AsyncRoot, AsyncRootKind, AsyncRootSum, AsyncRow, AsyncTotals, TaskExceptionModel,
    TaskModel, TaskPart, TaskStatusCount, TaskWaiter, async_chains,
};
pub use condition::rows::RowValue;
pub use condition::{Condition, ConditionError};
pub use contracts::{
    CheckModel, CheckOutcome, ContractModel, ContractsQuery, ContractsReport, FieldModel, GlobalModel, OriginModel, SupportKind, TypeModel,
    UnusableModel, contracts,
};
pub use diff::{
    ComparedDump, DiffBy, DiffMeasure, DiffQuery, DiffReport, DiffRow, DiffRule, DiffSort, DiffState, GainedType, GrowingHolder,
    HolderStep, Rule, RuleError, Trend, diff,
};
pub use env::{EnvReport, SettingModel, SettingSource, VariableModel, env};
pub(crate) use exceptions::ExceptionReader;
pub use exceptions::{ExceptionGroup, ExceptionModel, ExceptionsQuery, ExceptionsReport, FrameModel, HeapExceptionModel, exceptions};
pub use finalizers::{
    FinalizerGeneration, FinalizerHeap, FinalizerObject, FinalizerThread, FinalizerType, FinalizersQuery, FinalizersReport, finalizers,
};
pub use fragmentation::{
    FragmentationQuery, FragmentationReport, FragmentationTotals, FreeBlockModel, FreeSizeModel, FreeSpaceModel, NeighborModel,
    PinnedTypeModel, fragmentation,
};
pub(crate) use handles::each_handle;
pub use handles::{HandleBy, HandleGroup, HandleStat, HandleUseStat, HandlesQuery, HandlesReport, handles};
pub use heap::{GenerationModel, HeapModel, HeapQuery, HeapReport, HeapTotals, heap};
pub use heap_map::{HeapMapModel, HeapMapRow, MapBytes, MapCell, MapQuery, MapRows};
pub(crate) use info::head_parts;
pub use info::{
    AnswerBasis, AnswerKind, AnswerModel, GcKind, GcLayout, GcModel, InfoQuery, InfoReport, ModuleFileModel, MorePrecise, RuntimeBrief,
    RuntimeKind, info,
};
pub use inspect::{InspectQuery, InspectReport, InspectionId, InspectionModel, InspectionRow, inspect};
pub use liveness::{
    BridgeClass, BridgeClassKind, BridgeHandle, BridgeObject, BridgeQuery, BridgeReport, BridgeScc, BridgeWeakLink, BridgeXref,
    CollectGeneration, CollectQuery, CollectReport, GarbageClass, GarbageObject, GarbageTotal, GarbageType, ObjectsByType, TypeBytes,
    UnreachableQuery, UnreachableReport, WhatifComponent, WhatifQuery, WhatifReport, WhatifWeak, bridge, collect, unreachable, whatif,
};
pub use locks::{
    BlockedStack, DeadlockModel, LockKind, LockModel, LockOwner, LocksQuery, LocksReport, ThreadWait, WaitChain, WaitEdge, WaitEdgeKind,
    WaitEvidence, WaitKind, WaitModel, WaiterModel, locks,
};
pub use memory_map::{
    MallocHeapModel, MallocModel, MemoryKind, MemoryKindModel, MemoryListing, MemoryQuery, MemoryRangeModel, MemoryReport, MemoryTotals,
    memory_map,
};
#[cfg(feature = "fetch")]
pub(crate) use modules::guid;
pub(crate) use modules::incomplete_images;
pub use modules::{FetchModel, FetchOutcome, ModuleKind, ModuleModel, ModuleNeed, ModulesQuery, ModulesReport, modules};
pub use near::{NearKind, NearQuery, NearReport, NearRow, near};
pub use object::{CutShort, DimensionModel, ObjectQuery, ObjectReport, object, value};
pub(crate) use objects::{ObjectBatch, ObjectsQuery, objects};
pub use oom::oom;
pub use page::{Icicle, IcicleBox, LackingPart, PageQuery, PageReport, PageSuspect, PageType, PageTypes, TypesRest, page};
pub use paths::{PathsQuery, paths};
pub use pool::{
    CallbackCount, CancellationModel, PoolGroup, PoolItem, PoolItemKind, PoolKind, PoolQueue, PoolReport, PoolWorker, RegisteredWait,
    TimerClock, TimerKind, TimerModel, TimersReport, pool, timers,
};
pub use refs::{RefBy, RefList, RefObject, RefRow, RefSort, RefType, RefVia, RefsQuery, RefsReport, YoungCards, refs};
pub use requests::{
    ConnectionPool, PeerModel, RequestDirection, RequestFrame, RequestModel, RequestState, RequestsQuery, RequestsReport, SocketModel,
    SocketState, requests,
};
pub(crate) use retained::SUSPECT_SHARE;
pub use retained::{
    BelowType, ElementsModel, HolderType, ObjSizeReport, PathFold, PathModel, PathNode, PathStep, PathsReport, Retained, RetainedBy,
    RetainedDetail, RetainedGroup, RetainedObject, RetainedQuery, RetainedReport, RetainedType, RetainedView, Suspect, SuspectKind,
    TreeRow, objsize, retained,
};
pub(crate) use roots::each_root;
pub use roots::{DependentModel, RootCount, RootType, RootsQuery, RootsReport, roots};
pub use segments::{SegmentsQuery, SegmentsReport, segments};
pub use select::Selection;
pub use stacks::{
    CodeKind, FramePart, MergedFrame, RepeatTimes, StackCoverage, StackFrameModel, StackGap, StackRepeat, StackRootModel, StacksQuery,
    StacksReport, ThreadStackModel, stacks,
};
pub(crate) use stacks::{FailFast, Recursion, each_stack, fail_fast, folded_stacks, frame_label, recursion, repeated_frames};
pub use stat::{GroupStat, StatBy, StatQuery, StatReport, StatSort, StatTotals, TypeStat, stat};
pub(crate) use statics::each_static;
pub use statics::statics;
pub use strings::{StringModel, StringSort, StringTotals, StringsQuery, StringsReport, strings};
pub use threads::{GcMode, SuspendedThread, SuspensionModel, ThreadModel, ThreadsQuery, ThreadsReport, threads};
#[cfg(feature = "cli")]
pub(crate) use track::survivors;
pub use track::{
    Certainty, CertaintySum, GenerationFlow, MovedRange, SurvivingRange, TrackMatch, TrackQuery, TrackReport, TrackSums, TrackType,
    TrackView, track,
};
pub(crate) use trim::Trim;
#[doc(hidden)]
pub use trim::{Reads, Surveys};
pub use trim::{RedactionModel, TrimKind, TrimPart, TrimReport};
pub use types::{LayoutField, MethodCode, MethodModel, TypeBrief, TypeCategory, TypeLayout, TypeRef, TypesReport, types};
pub use verify::{
    FindingCount, FindingId, FindingModel, Severity, UnavailableCheck, VerifyCheck, VerifyQuery, VerifyReport, VerifyTotals, verify,
};
pub use where_is::{CodePlace, PlaceKind, SegmentPlace, WhereReport, where_is};

pub use crate::session::roots::RootOptions;
pub use crate::session::{StaticsQuery, TypePattern};
pub use objects::{ObjectBrief, ObjectsReport, ObjectsTail, ReferenceModel};
