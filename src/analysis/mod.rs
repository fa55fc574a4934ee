//! The analyses, one file each: `f(&Heap, &Query) -> Result<Answer<Report>>`. Reports are sorted and limited here.
//!
//! Analyses of the runtime alone take a [`Runtime`](crate::session::Runtime), those of the file a
//! [`Dump`](crate::session::Dump). Each answer starts with the notes of the parts it uses.

mod analyze;
mod answers;
mod app;
mod asked_fields;
mod chains;
mod condition;
mod continuation;
mod contracts;
mod diff;
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
mod place;
mod pool;
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
mod task_names;
mod threads;
mod tiers;
mod track;
mod trim;
mod type_methods;
mod types;
mod verify;
mod walk;

pub(crate) use analyze::command_line;
pub use analyze::{AnalyzeQuery, Thresholds, analyze};
pub(crate) use app::app;
pub use chains::{AsyncQuery, chains};
pub use condition::{Condition, ConditionError};
pub use contracts::{ContractsQuery, contracts};
pub use diff::{DiffQuery, Rule, RuleError, diff};
pub(crate) use exceptions::ExceptionReader;
pub use exceptions::{ExceptionsQuery, exceptions};
pub use finalizers::{FinalizersQuery, finalizers};
pub use fragmentation::{FragmentationQuery, fragmentation};
pub(crate) use handles::each_handle;
pub use handles::{HandlesQuery, handles};
pub use heap::{HeapQuery, heap};
pub use heap_map::MapQuery;
pub(crate) use info::head_parts;
pub use info::{InfoQuery, info};
pub use inspect::{InspectQuery, inspect};
pub use liveness::{BridgeQuery, CollectQuery, UnreachableQuery, WhatifQuery, bridge, collect, unreachable, whatif};
pub use locks::{LocksQuery, locks};
pub use memory_map::{MemoryQuery, memory_map};
#[cfg(feature = "fetch")]
pub(crate) use modules::guid;
pub(crate) use modules::incomplete_images;
pub use modules::{ModulesQuery, modules};
pub use object::{ObjectQuery, object, value};
pub(crate) use objects::{ObjectBatch, ObjectsQuery, objects};
pub use oom::oom;
pub use page::{PageQuery, page};
pub use paths::{PathsQuery, paths};
pub use place::{NearQuery, near, place};
pub use pool::{pool, timers};
pub use requests::requests;
pub(crate) use retained::SUSPECT_SHARE;
pub use retained::{Retained, RetainedQuery, RetainedView, objsize, retained};
pub(crate) use roots::each_root;
pub use roots::{RootsQuery, roots};
pub use segments::{SegmentsQuery, segments};
pub use select::Selection;
pub use stacks::{StacksQuery, stacks};
pub(crate) use stacks::{each_stack, folded_stacks, frame_label, repeated_frames};
pub use stat::{StatQuery, stat};
pub(crate) use statics::each_static;
pub use statics::statics;
pub use strings::{StringsQuery, strings};
pub use threads::{ThreadsQuery, threads};
#[cfg(feature = "cli")]
pub(crate) use track::survivors;
pub use track::{TrackQuery, TrackView, track};
pub(crate) use trim::Trim;
#[doc(hidden)]
pub use trim::{Reads, Surveys};
pub use types::types;
pub use verify::{VerifyQuery, verify};

pub use crate::session::roots::RootOptions;
pub use crate::session::{StaticsQuery, TypePattern};
