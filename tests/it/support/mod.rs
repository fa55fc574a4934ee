//! A synthetic .NET process, built from the specification without layouts or parsers of gcdump. Its offsets are generated and
//! differ from every real runtime, to detect hard-coded ones in gcdump.

pub mod containers;
pub mod image;
pub mod mem;
mod process;

use serde_json::Value;

use containers::Facts;
pub use mem::Shape;
use mem::{Mem, Range};

/// State of the GC's part of the descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GcPart {
    /// Present.
    Normal,
    /// The pointer to it is null: the runtime is starting.
    NotYet,
    /// Present, without the contract GC.
    NotAdvertised,
    /// Present, with this contract version.
    Version(String),
}

/// Corruption of the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hostile {
    /// None.
    No,
    /// The GC's descriptor has the root and itself as sub-descriptors.
    Cycle,
    /// The root claims 4 GB of JSON.
    HugeJson,
    /// The root claims four billion slots.
    HugeSlots,
    /// The root's JSON is truncated.
    CutJson,
}

/// Parameters of the process.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Architecture.
    pub shape: Shape,
    /// Number of heaps of server GC; `None` for workstation GC.
    pub server: Option<u32>,
    /// Number of processors: handle tables per bucket with server GC.
    pub cpus: u32,
    /// Regions; segments otherwise.
    pub regions: bool,
    /// `version` of the JSON.
    pub descriptor_version: u32,
    /// Contracts as `"c1"` instead of `1`.
    pub string_contracts: bool,
    /// Written types everywhere.
    pub typed: bool,
    /// Whether the module exports the descriptor.
    pub export: bool,
    /// Whether a collection is rearranging the heap.
    pub gc_in_progress: bool,
    /// Whether a background collection is sweeping: all objects are marked, no segment is swept.
    pub sweeping: bool,
    /// Whether the global allocation context is in use.
    pub global_context: bool,
    /// Sync blocks in the form of .NET 11: the second object has a thin lock and a hash code, the third a handle to a lock.
    pub sync_blocks: bool,
    /// Whether a handle leads to an address that is not an object.
    pub stray_handle: bool,
    /// Features that the runtime publishes: names of globals and their values.
    pub features: &'static [(&'static str, u64)],
    /// State of the GC's part.
    pub gc: GcPart,
    /// Corruption of the descriptor.
    pub hostile: Hostile,
    /// Distance of everything from the usual addresses, for a second runtime in the process.
    pub at: u64,
}

impl Spec {
    /// A .NET 11 process with workstation GC and regions.
    pub fn standard(shape: Shape) -> Spec {
        Spec {
            shape,
            server: None,
            cpus: 4,
            regions: true,
            descriptor_version: 2,
            string_contracts: true,
            typed: false,
            export: true,
            gc_in_progress: false,
            sweeping: false,
            global_context: false,
            sync_blocks: false,
            stray_handle: false,
            features: &[],
            gc: GcPart::Normal,
            hostile: Hostile::No,
            at: 0,
        }
    }

    /// Builds the process.
    pub fn build(&self) -> Target {
        process::build(self)
    }
}

/// A synthetic process.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its memory, without the headers of the runtime's module.
    pub memory: Mem,
    facts: Facts,
    expected: Value,
    gone: Vec<(u64, u64)>,
}

impl Target {
    /// Writes the process as an ELF core.
    pub fn to_elf_core(&self) -> Vec<u8> {
        containers::elf_core(&self.facts, &self.memory.ranges, &self.gone)
    }

    /// Writes the process as a minidump.
    pub fn to_minidump(&self) -> Vec<u8> {
        containers::minidump(&self.facts, &self.memory.ranges, &self.gone)
    }

    /// Adds the runtime of `other`, which is at other addresses.
    pub fn with(mut self, other: Target) -> Target {
        self.memory.ranges.extend(other.memory.ranges);
        self.facts.others.push(other.facts.image);
        self
    }

    /// The image of the runtime's module.
    pub fn image(&self) -> image::Image {
        self.facts.image
    }

    /// The expected answers.
    pub fn expected(&self) -> Value {
        self.expected.clone()
    }

    /// Returns the process without a captured range.
    pub fn without(&self, start: u64, len: u64) -> Target {
        let mut other = self.clone();
        other.gone.push((start, len));
        other
    }

    /// Captured ranges, including the headers of the module.
    pub fn ranges(&self) -> Vec<(u64, u64)> {
        let len = |r: &Range| r.bytes.len() as u64;
        let headers = (self.facts.image.base, image::HEADERS);
        std::iter::once(headers).chain(self.memory.ranges.iter().map(|(a, r)| (*a, len(r)))).collect()
    }
}
