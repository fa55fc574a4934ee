//! What commands about objects begin and end with.

use anyhow::Result;

use super::super::args::Config;
use super::super::exit::{Exit, NothingThere};
use super::{Streams, finish, gc};
use crate::analysis::{self, Namer};
use crate::base::Addr;
use crate::contract::{Process, Runtime};
use crate::gc::{Gc, Heap};
use crate::output::Report;

/// The heap of the runtime that is meant, and who names what lies on it.
pub(super) struct OnHeap<'p> {
    pub(super) process: &'p Process,
    pub(super) runtime: &'p Runtime,
    pub(super) gc: Gc,
    pub(super) heap: Heap,
    pub(super) namer: Namer,
}

impl<'p> OnHeap<'p> {
    /// Prepares the heap of `process`.
    pub(super) fn open(process: &'p Process, config: &Config) -> Result<OnHeap<'p>> {
        let runtime = process.runtime(config.runtime)?;
        let gc = gc(process, runtime)?;
        let heap = analysis::open_heap(process, runtime, &gc)?;
        Ok(OnHeap { process, runtime, gc, heap, namer: Namer::new(process, runtime) })
    }

    /// Prints the answer and the notes, those about names included.
    pub(super) fn finish<R: Report>(&self, config: &Config, command: &str, report: R, streams: &mut Streams<'_>) -> Result<Exit> {
        self.namer.note(&self.process.notes);
        finish(config, command, self.process, Some(self.runtime), report, streams)
    }
}

/// What is said where an object was asked for and there is none.
pub(super) fn no_object(at: Addr) -> NothingThere {
    NothingThere(format!("there is no object at {at}; `gcdump where {at}` says what is there"))
}
