//! The data types that readers return and that reports of several analyses have in common. Other types of reports are in
//! [`analysis`](crate::analysis).
//!
//! An unknown value is `null`; `0` and `"0x0"` are actual zeros in the process. Kinds and names are kebab-case and
//! open-ended: later runtimes may add some.

mod async_chains;
mod carved;
mod collection;
mod collections;
mod contracts;
mod crash;
mod delegate;
mod envelope;
mod export;
mod finalizer;
mod handle;
mod header;
mod heap;
mod index_file;
mod info;
mod memory_map;
mod module;
mod oom;
mod retained;
mod root;
mod segment;
mod sort;
mod stack;
mod startup;
mod statics;
mod sum;
mod types;
mod value;
mod walk;

pub use async_chains::TaskStatus;
pub use carved::{Carve, CarvedModel, StandaloneGc};
pub use collection::{ContainerKind, ContainerModel, ItemModel};
pub use collections::{
    CollectionKind, CollectionsModel, GcLatencyMode, GcReason, GenerationBudget, LastCollection, RecordedCollection, RecordedGeneration,
};
pub use contracts::OriginKind;
pub use crash::{CrashException, CrashFrame, CrashReport, FaultModel, NativeFrameModel};
pub use delegate::{DelegateModel, DelegatePart};
pub use envelope::{Compression, Container, Data, DumpModel, Envelope, Head, LayoutSource, PageModel, RuntimeModel};
pub use export::{ExportFormat, ExportReport, ExportTable, FleetDump, FleetReport, FleetState, FleetTotals, TableFile};
pub use finalizer::FinalizerState;
pub use handle::{FeatureSource, HandleBlocks, HandleKind, HandleMemory, HandleModel, HandleUse};
pub use header::{HeaderModel, HeaderState, SyncBlockModel};
pub use heap::{AllocContextModel, ContextOwner, FinalizeQueueModel, GenerationTableEntry, HeapDetail, NamedCount};
pub use index_file::IndexReport;
pub use info::{DumpKind, DumpWriter, GcKind, GcLayout, GcLimitModel, GcPhase, GcState, HeapSizeModel, RuntimeKind, VersionSource};
pub use memory_map::{LoaderHeapKind, MallocBlockSize, MallocHeapKind, MallocUse};
pub use module::FilePlace;
pub use oom::{FailedCall, OomModel, OomReason, OomReport};
pub use retained::ReachTotals;
pub use root::{CoverageKind, RootCoverageModel, RootFlag, RootKind, RootModel, Stacks};
pub use segment::{Generation, RegionFields, RegionListModel, RegionModel, RegionSize, SegmentModel, SegmentPart};
pub use sort::{
    ExceptionSort, FinalizerSort, HandleSort, ObjectSort, Order, RootSort, SegmentSort, SortDirection, StaticSort, ThreadSort, TimerSort,
};
pub use stack::{ArgumentModel, CodeTier, StackFrameKind};
pub use startup::StartupSource;
pub use statics::{StaticModel, StaticThread, StaticsReport, Storage};
pub use sum::Sum;
pub use types::Generics;
pub use value::{FieldValue, ValueKind};
pub use walk::{CoverageModel, GapKind, WalkGap, WalkModel};
