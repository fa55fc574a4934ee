//! A fake .NET process, built byte by byte from the specification. It uses no layout and no parser of gcdump: offsets
//! follow a rule of its own and differ from every real runtime, so that a hard-coded one in gcdump is caught.

pub mod containers;
pub mod image;
pub mod mem;
mod process;

use serde_json::Value;

use containers::Facts;
pub use mem::Shape;
use mem::{Mem, Range};

/// What to do with the GC's part of the descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GcPart {
    /// It is there.
    Normal,
    /// The variable that leads to it is null: the runtime is starting.
    NotYet,
    /// It is there and does not advertise the contract GC.
    NotAdvertised,
    /// It advertises this version.
    Version(String),
}

/// Harm in the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hostile {
    /// None.
    No,
    /// The GC's descriptor has the root as its sub-descriptor, and itself.
    Cycle,
    /// The root announces 4 GB of JSON.
    HugeJson,
    /// The root announces four billion slots.
    HugeSlots,
    /// The root's JSON is cut in the middle.
    CutJson,
}

/// What to build.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Kind of machine.
    pub shape: Shape,
    /// Heaps of server GC; `None` for workstation GC.
    pub server: Option<u32>,
    /// Processors: handle tables per bucket with server GC.
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
    /// A collection is rearranging the heap.
    pub gc_in_progress: bool,
    /// A background collection is sweeping: all objects are marked, no segment is swept.
    pub sweeping: bool,
    /// The GC's part.
    pub gc: GcPart,
    /// Harm.
    pub hostile: Hostile,
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
            gc: GcPart::Normal,
            hostile: Hostile::No,
        }
    }

    /// Builds the process.
    pub fn build(&self) -> Target {
        process::build(self)
    }
}

/// A fake process.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its memory, without the headers of the runtime's module.
    pub memory: Mem,
    facts: Facts,
    expected: Value,
    gone: Vec<(u64, u64)>,
}

impl Target {
    /// As an ELF core.
    pub fn to_elf_core(&self) -> Vec<u8> {
        containers::elf_core(&self.facts, &self.memory.ranges, &self.gone)
    }

    /// As a minidump.
    pub fn to_minidump(&self) -> Vec<u8> {
        containers::minidump(&self.facts, &self.memory.ranges, &self.gone)
    }

    /// What gcdump should say.
    pub fn expected(&self) -> Value {
        self.expected.clone()
    }

    /// The same process with a range left out of the capture.
    pub fn without(&self, start: u64, len: u64) -> Target {
        let mut other = self.clone();
        other.gone.push((start, len));
        other
    }

    /// Captured ranges, the headers of the module included.
    pub fn ranges(&self) -> Vec<(u64, u64)> {
        let len = |r: &Range| r.bytes.len() as u64;
        let headers = (self.facts.image.base, image::HEADERS);
        std::iter::once(headers).chain(self.memory.ranges.iter().map(|(a, r)| (*a, len(r)))).collect()
    }
}
