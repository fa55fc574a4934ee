//! Reads arguments and local variables of frames, for one answer.

mod arguments;
mod locals;

use std::sync::Arc;

use super::Runtime;
use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::base::reads;
use crate::base::{Addr, Collector, Count, Missing, NoteKind};
use crate::stack::StackError;
use crate::stack::debug_info::{Bounds, DebugInfo, Variables};
use crate::stack::walked::ManagedFrame;

pub(crate) use arguments::{ArgumentReader, FoundVariable, VariableAt, argument_bytes};

/// Number of reads that the variables of one answer may take. A method takes some hundred reads.
const READS: u64 = 1 << 22;
/// Entries of debug info that are counted as one read.
const ENTRIES_OF_A_READ: u64 = 8;

/// The parts of a method's debug info that locate its variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct MethodVariables {
    /// Locations of the variables; `None` if the debug info has none.
    pub(crate) variables: Option<Arc<Variables>>,
    /// The prologue and epilogues of the code; `None` if the debug info has none.
    pub(crate) bounds: Option<Arc<Bounds>>,
}

type Found = Result<MethodVariables, StackError>;

/// The note for a runtime that does not describe its debug info.
const NOT_DESCRIBED: &str = "the runtime does not describe its debug info: arguments of its methods cannot be shown";

/// Finds the locations of methods' variables. Each method is looked up once.
#[derive(Debug)]
pub(crate) struct FrameVariables<'r> {
    runtime: &'r Runtime,
    /// `None` if the runtime does not describe its debug info.
    debug_info: Option<DebugInfo>,
    /// Reads left.
    reads: u64,
    /// Results by start address of the code.
    known: Map<Addr, Found>,
    /// Number of methods whose debug info is not in the dump, and the reason for the first one.
    lost: u64,
    why: Option<StackError>,
}

impl<'r> FrameVariables<'r> {
    /// Creates a reader for an answer about `runtime`.
    pub(crate) fn new(runtime: &'r Runtime) -> FrameVariables<'r> {
        let debug_info = DebugInfo::bind(&runtime.descriptor().scope()).ok();
        FrameVariables { runtime, debug_info, reads: READS, known: Map::default(), lost: 0, why: None }
    }

    /// Deducts the reads for `entries` entries of debug info. Returns whether any reads were left before.
    pub(crate) fn afford(&mut self, entries: u64) -> bool {
        let left = self.reads > 0;
        self.reads = self.reads.saturating_sub(entries / ENTRIES_OF_A_READ);
        left
    }

    /// Whether the runtime describes its debug info.
    pub(crate) fn are_described(&self) -> bool {
        self.debug_info.is_some()
    }

    /// The locations of the variables of a frame's method.
    ///
    /// # Errors
    /// [`StackError`] if the debug info is not in the dump, or is invalid.
    pub(crate) fn of(&mut self, frame: &ManagedFrame) -> Found {
        if let Some(found) = self.known.get(&frame.code.start) {
            return found.clone();
        }
        let (runtime, debug_info) = (self.runtime, self.debug_info.as_ref());
        let look_up = || {
            let (Some(debug_info), Ok(walker)) = (debug_info, runtime.stack_walker()) else { return Ok(MethodVariables::default()) };
            let bytes = walker.code().bytes();
            let variables = debug_info.variables(bytes, &frame.code)?;
            let bounds = debug_info.bounds(bytes, &frame.code)?;
            let entries = variables.as_ref().map_or(0, Variables::count).saturating_add(bounds.as_ref().map_or(0, Bounds::count));
            reads::take(entries / ENTRIES_OF_A_READ);
            Ok(MethodVariables { variables: variables.map(Arc::new), bounds: bounds.map(Arc::new) })
        };
        let found: Found = tried(|| reads::taking(&mut self.reads, look_up));
        if let Err(e @ StackError::Read(_)) = &found {
            self.lost.bump();
            self.why.get_or_insert_with(|| e.clone());
        }
        self.known.insert(frame.code.start, found.clone());
        found
    }

    /// Adds a note on methods whose variables cannot be shown because the dump does not have their debug info.
    pub(crate) fn note(&self, notes: &Collector) {
        if !self.are_described() {
            // No data is missing from the dump, so the answer is not partial. The same holds for unknown .NET versions.
            notes.add(NoteKind::Descriptor, None, NOT_DESCRIBED);
        } else if self.reads == 0 {
            notes.add(NoteKind::LimitHit, None, "the search for arguments took too many reads; further arguments are left out");
        } else if let Some(why) = &self.why {
            let methods = if self.lost == 1 { "a method".into() } else { format!("{} methods", self.lost) };
            notes.add(Missing::DebugInfo, why.address(), format!("arguments of {methods} cannot be shown: {why}"));
        }
    }
}
