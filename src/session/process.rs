//! The state of an opened dump: file, memory and options.

use std::sync::Arc;

use crate::base::{Limits, Notes, Progress};
use crate::dump::DumpFile;
use crate::heapgraph::IndexUse;
use crate::memory::{FileSearch, Memory};
use crate::model::Carve;

/// State shared by all parts of an opened dump.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) file: DumpFile,
    pub(super) memory: Arc<Memory>,
    pub(super) notes: Notes,
    pub(super) limits: Arc<Limits>,
    pub(super) search: FileSearch,
    pub(super) progress: Arc<dyn Progress>,
    pub(super) index: IndexUse,
    pub(super) carve: Carve,
}
