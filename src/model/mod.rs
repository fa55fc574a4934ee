//! Floor 0, beside `base`: the plain structs that readers return and every output format prints.
//!
//! A value that is not known is `null`; `0` and `"0x0"` mean that the process had zero there. Kinds and names are
//! kebab-case and open-ended: a later runtime may add some.

mod contracts;
mod envelope;
mod handle;
mod heap;
mod info;
mod object;
mod oom;
mod segment;
mod statics;
mod thread;
mod types;
mod walk;

pub use contracts::{CheckModel, ContractModel, ContractsReport, FieldModel, GlobalModel, OriginModel, SupportKind, TypeModel};
pub use envelope::{DumpModel, Envelope, RuntimeModel};
pub use handle::{HandleKind, HandleModel, HandleStat, HandlesReport};
pub use heap::{
    AllocContextModel, FinalizeQueueModel, GenerationModel, GenerationTableEntry, HeapDetail, HeapModel, HeapReport, HeapTotals, NamedCount,
};
pub use info::{AnswerModel, GcKind, GcLayout, GcModel, InfoReport, ModuleFileModel, RuntimeBrief};
pub use object::{DimensionModel, FieldValue, ObjectReport, ValueKind};
pub use oom::{OomModel, OomReport};
pub use segment::{Generation, RegionListModel, RegionModel, SegmentModel, SegmentPart, SegmentsReport};
pub use statics::{StaticModel, StaticThread, StaticsReport};
pub use thread::{ExceptionModel, ThreadModel, ThreadsReport};
pub use types::{LayoutField, TypeBrief, TypeLayout, TypesReport};
pub use walk::{WalkGap, WalkModel};
