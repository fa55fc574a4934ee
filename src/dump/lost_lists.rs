//! Lists of the container that are missing or incomplete.

use crate::base::{Missing, Notes};

/// Lists that a container has, but not whole: their writer always writes them, or they are cut off. A list that a writer never writes is not lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostLists {
    /// The loaded images and mapped files.
    pub modules: bool,
    /// The OS threads, with their registers and names.
    pub threads: bool,
    /// The architecture and the operating system.
    pub system: bool,
    /// The process ID, the start time, and the places of the arguments.
    pub process: bool,
    /// The mapped regions.
    pub regions: bool,
    /// The exception that ended the process, or its thread.
    pub crash: bool,
}

impl LostLists {
    /// The lists as bits, as they are in the copies that `gcdump trim` writes.
    pub(super) fn bits(self) -> u64 {
        let LostLists { modules, threads, system, process, regions, crash } = self;
        [modules, threads, system, process, regions, crash].into_iter().rev().fold(0, |bits, lost| bits << 1 | u64::from(lost))
    }

    /// The inverse of [`LostLists::bits`].
    pub(super) fn of_bits(bits: u64) -> LostLists {
        let [modules, threads, system, process, regions, crash] = [1, 2, 4, 8, 16, 32].map(|bit| bits & bit != 0);
        LostLists { modules, threads, system, process, regions, crash }
    }

    /// The lists that are lost in either.
    pub(super) fn or(self, other: LostLists) -> LostLists {
        LostLists::of_bits(self.bits() | other.bits())
    }

    /// The note for answers with images.
    pub(crate) fn of_modules(self) -> Notes {
        note(self.modules, Missing::Modules, "the dump's list of images is missing or incomplete")
    }

    /// The note for answers with OS threads.
    pub(crate) fn of_threads(self) -> Notes {
        note(self.threads, Missing::Threads, "the dump's list of OS threads is missing or incomplete")
    }

    /// The note for all answers.
    pub(crate) fn of_system(self) -> Notes {
        note(self.system, Missing::Process, "the dump's description of the operating system and the processor is missing or invalid")
    }

    /// The note for answers with facts about the process.
    pub(crate) fn of_process(self) -> Notes {
        note(self.process, Missing::Process, "the dump's description of the process is missing or incomplete")
    }

    /// The note for answers with the crash of the process.
    pub(crate) fn of_crash(self) -> Notes {
        note(self.crash, Missing::Exceptions, "the dump's record of the exception that ended the process is incomplete")
    }

    /// The note for answers about the address space.
    pub(crate) fn of_regions(self) -> Notes {
        note(self.regions, Missing::NativeMemory, "the dump's list of mapped regions is incomplete")
    }
}

fn note(lost: bool, what: Missing, text: &str) -> Notes {
    let mut notes = Notes::new();
    if lost {
        notes.add(what, None, text);
    }
    notes
}
