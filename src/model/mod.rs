//! The data types that readers return and all output formats print.
//!
//! An unknown value is `null`; `0` and `"0x0"` are actual zeros in the process. Kinds and names are kebab-case and
//! open-ended: later runtimes may add some.

mod analyze;
mod async_chains;
mod bridge;
mod by_type;
mod carved;
mod collection;
mod collections;
mod contracts;
mod crash;
mod delegate;
mod diff;
mod envelope;
mod exception;
mod export;
mod finalizer;
mod fragmentation;
mod handle;
mod header;
mod heap;
mod heap_map;
mod index_file;
mod info;
mod inspect;
mod locks;
mod memory_map;
mod module;
mod near;
mod object;
mod object_list;
mod oom;
mod pool;
mod refs;
mod report;
mod request;
mod retained;
mod root;
mod segment;
mod simulate;
mod sort;
mod stack;
mod startup;
mod stat;
mod statics;
mod strings;
mod sum;
mod thread;
mod timer;
mod track;
mod trim;
mod types;
mod unreachable;
mod value;
mod verify;
mod walk;
mod whatif;
mod where_is;

pub use analyze::{AnalyzeReport, BelowThreshold, Complaint, Problem, ProblemId, ProblemSeverity, SkippedProblem, Triage};
pub use async_chains::{
    AsyncChain, AsyncFrame, AsyncReport, AsyncRoot, AsyncRootKind, AsyncRootSum, AsyncRow, AsyncTotals, TaskExceptionModel, TaskModel,
    TaskPart, TaskStatus, TaskStatusCount, TaskWaiter,
};
pub use bridge::{BridgeClass, BridgeClassKind, BridgeHandle, BridgeObject, BridgeReport, BridgeScc, BridgeWeakLink, BridgeXref};
pub use by_type::{ObjectsByType, TypeBytes};
pub use carved::{Carve, CarvedModel};
pub use collection::{ContainerKind, ContainerModel, ItemModel};
pub use collections::{
    CollectionKind, CollectionsModel, GcLatencyMode, GcReason, GenerationBudget, LastCollection, RecordedCollection, RecordedGeneration,
};
pub use contracts::{
    CheckModel, CheckOutcome, ContractModel, ContractsReport, FieldModel, GlobalModel, OriginKind, OriginModel, SupportKind, TypeModel,
    UnusableModel,
};
pub use crash::{CrashException, CrashFrame, CrashReport, FaultModel, NativeFrameModel};
pub use delegate::{DelegateModel, DelegatePart};
pub use diff::{
    ComparedDump, DiffBy, DiffMeasure, DiffReport, DiffRow, DiffRule, DiffSort, DiffState, GainedType, GrowingHolder, HolderStep, Trend,
};
pub use envelope::{Compression, Container, Data, DumpModel, Envelope, Head, LayoutSource, PageModel, RuntimeModel};
pub use exception::{ExceptionGroup, ExceptionModel, ExceptionsReport, FrameModel, HeapExceptionModel};
pub use export::{ExportFormat, ExportReport, ExportTable, FleetDump, FleetReport, FleetState, FleetTotals, TableFile};
pub use finalizer::{
    FinalizerGeneration, FinalizerHeap, FinalizerObject, FinalizerState, FinalizerThread, FinalizerType, FinalizersReport,
};
pub use fragmentation::{
    FragmentationReport, FragmentationTotals, FreeBlockModel, FreeSizeModel, FreeSpaceModel, NeighborModel, PinnedTypeModel,
};
pub use handle::{
    FeatureSource, HandleBlocks, HandleBy, HandleGroup, HandleKind, HandleMemory, HandleModel, HandleStat, HandleUse, HandleUseStat,
    HandlesReport,
};
pub use header::{HeaderModel, HeaderState, SyncBlockModel};
pub use heap::{
    AllocContextModel, ContextOwner, FinalizeQueueModel, GenerationModel, GenerationTableEntry, HeapDetail, HeapModel, HeapReport,
    HeapTotals, NamedCount,
};
pub use heap_map::{HeapMapModel, HeapMapRow, MapBytes, MapCell, MapRows};
pub use index_file::IndexReport;
pub use info::{
    AnswerBasis, AnswerKind, AnswerModel, DumpKind, DumpWriter, GcKind, GcLayout, GcLimitModel, GcModel, GcPhase, GcState, HeapSizeModel,
    InfoReport, ModuleFileModel, MorePrecise, RuntimeBrief, RuntimeKind, VersionSource,
};
pub use inspect::{InspectReport, InspectionId, InspectionModel, InspectionRow};
pub use locks::{
    BlockedStack, DeadlockModel, LockKind, LockModel, LockOwner, LocksReport, ThreadWait, WaitChain, WaitEdge, WaitEdgeKind, WaitEvidence,
    WaitKind, WaitModel, WaiterModel,
};
pub use memory_map::{
    LoaderHeapKind, MallocBlockSize, MallocHeapKind, MallocHeapModel, MallocModel, MallocUse, MemoryKind, MemoryKindModel, MemoryListing,
    MemoryRangeModel, MemoryReport, MemoryTotals,
};
pub use module::{FetchModel, FetchOutcome, FilePlace, ModuleKind, ModuleModel, ModuleNeed, ModulesReport};
pub use near::{NearKind, NearReport, NearRow};
pub use object::{CutShort, DimensionModel, ObjectReport};
pub use object_list::{ObjectBrief, ObjectsReport, ObjectsTail, ReferenceModel};
pub use oom::{FailedCall, OomModel, OomReason, OomReport};
pub use pool::{PoolGroup, PoolItem, PoolItemKind, PoolKind, PoolQueue, PoolReport, PoolWorker};
pub use refs::{RefBy, RefList, RefObject, RefRow, RefSort, RefType, RefVia, RefsReport, YoungCards};
pub use report::{Icicle, IcicleBox, LackingPart, PageReport, PageSuspect, PageType, PageTypes, TypesRest};
pub use request::{
    ConnectionPool, PeerModel, RequestDirection, RequestFrame, RequestModel, RequestState, RequestsReport, SocketModel, SocketState,
};
pub use retained::{
    BelowType, ElementsModel, HolderType, ObjSizeReport, PathFold, PathModel, PathNode, PathStep, PathsReport, ReachTotals, RetainedBy,
    RetainedDetail, RetainedGroup, RetainedObject, RetainedReport, RetainedType, Suspect, SuspectKind, TreeRow,
};
pub use root::{CoverageKind, DependentModel, RootCount, RootCoverageModel, RootFlag, RootKind, RootModel, RootType, RootsReport, Stacks};
pub use segment::{Generation, RegionFields, RegionListModel, RegionModel, RegionSize, SegmentModel, SegmentPart, SegmentsReport};
pub use simulate::{CollectGeneration, CollectReport};
pub use sort::{
    ExceptionSort, FinalizerSort, HandleSort, ObjectSort, Order, RootSort, SegmentSort, SortDirection, StaticSort, ThreadSort, TimerSort,
};
pub use stack::{
    ArgumentModel, CodeKind, CodeTier, FramePart, MergedFrame, RepeatTimes, StackCoverage, StackFrameKind, StackFrameModel, StackGap,
    StackRepeat, StackRootModel, StacksReport, ThreadStackModel,
};
pub use startup::{EnvReport, SettingModel, SettingSource, StartupSource, VariableModel};
pub use stat::{GroupStat, StatBy, StatReport, StatSort, StatTotals, TypeStat};
pub use statics::{StaticModel, StaticThread, StaticsReport, Storage};
pub use strings::{StringModel, StringSort, StringTotals, StringsReport};
pub use sum::Sum;
pub use thread::{GcMode, SuspendedThread, SuspensionModel, ThreadModel, ThreadsReport};
pub use timer::{CallbackCount, CancellationModel, RegisteredWait, TimerClock, TimerKind, TimerModel, TimersReport};
pub use track::{Certainty, CertaintySum, GenerationFlow, MovedRange, SurvivingRange, TrackMatch, TrackReport, TrackSums, TrackType};
pub use trim::{RedactionModel, TrimKind, TrimPart, TrimReport};
pub use types::{Generics, LayoutField, MethodCode, MethodModel, TypeBrief, TypeCategory, TypeLayout, TypeRef, TypesReport};
pub use unreachable::{GarbageClass, GarbageObject, GarbageTotal, GarbageType, UnreachableReport};
pub use value::{FieldValue, ValueKind};
pub use verify::{FindingCount, FindingId, FindingModel, Severity, UnavailableCheck, VerifyCheck, VerifyReport, VerifyTotals};
pub use walk::{CoverageModel, GapKind, WalkGap, WalkModel};
pub use whatif::{WhatifComponent, WhatifReport, WhatifWeak};
pub use where_is::{CodePlace, PlaceKind, SegmentPlace, WhereReport};
