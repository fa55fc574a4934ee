//! The binary header of a descriptor in memory, its JSON, its pointer data and its sub-descriptors.
//!
//! Source: `docs/internals/descriptors.md#header`; measured on runtimes 9.0.5 to 10.0.14.

use super::json::{self, JsonError, RawDescriptor};
use super::overlay::Overlay;
use crate::base::hash::Map;
use crate::base::{Addr, AddrRange, Collector, Endian, Limits, Missing, NoteKind, PtrSize, Remedy, thousands};
use crate::memory::{Memory, ReadError};

/// The first eight bytes of a descriptor on a little-endian target.
pub const MAGIC_LITTLE: [u8; 8] = *b"DNCCDAC\0";
/// The first eight bytes of a descriptor on a big-endian target.
pub const MAGIC_BIG: [u8; 8] = *b"\0CADCCND";

/// The magic bytes in the byte order of the target.
pub fn magic(memory: &Memory) -> [u8; 8] {
    match memory.shape().endian {
        Endian::Little => MAGIC_LITTLE,
        Endian::Big => MAGIC_BIG,
    }
}

/// Header of a descriptor. The header locates the JSON and the pointer data, which may both be absent from the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Address of the header.
    pub address: Addr,
    /// Size of the JSON in bytes.
    pub json_bytes: u64,
    /// Address of the JSON.
    pub json: Addr,
    /// Number of pointer data slots; slot 0 is a placeholder.
    pub slots: u64,
    /// Address of the pointer data.
    pub pointer_data: Addr,
}

/// Reason why a descriptor cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// A part of the header is not in the dump.
    #[error("descriptor header: {0}")]
    Read(#[from] ReadError),
    /// Not a descriptor, or a descriptor for another kind of target.
    #[error("no descriptor for a target of this pointer size and byte order at {address}")]
    NotADescriptor {
        /// Address of the expected descriptor.
        address: Addr,
    },
    /// A count in the header exceeds its limit.
    #[error("descriptor at {address}: {what}, more than the limit of {}", thousands(*limit))]
    TooLarge {
        /// Address of the descriptor.
        address: Addr,
        /// The count that exceeds the limit.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// The JSON is not in the dump. This is normal for heap dumps of .NET 9 and 10, and for kernel cores.
    #[error("the descriptor JSON ({} bytes at {}) is not in the dump", .0.len, .0.address)]
    JsonAbsent(ReadError),
    /// The budget for opening the dump is exhausted.
    #[error("the descriptor at {0} was not read: opening the dump has reached its limits")]
    Unaffordable(Addr),
    /// The JSON is malformed.
    #[error("{error} (at {address})")]
    Json {
        /// Address of the JSON.
        address: Addr,
        /// The parser's error.
        error: JsonError,
    },
}

/// Bytes of memory for each byte of JSON, after parsing and merging. In the worst case, a name of one letter, with its quotes and its value, becomes
/// an entry in three maps.
const PARSED: u64 = 64;

impl Header {
    /// Reads and checks the header at `address`.
    ///
    /// # Errors
    /// [`HeaderError`] if the descriptor is absent or invalid.
    pub fn read(memory: &Memory, address: Addr, limits: &Limits) -> Result<Header, HeaderError> {
        if memory.bytes(address, 8)?.as_ref() != magic(memory) {
            return Err(HeaderError::NotADescriptor { address });
        }
        let word = memory.ptr_bytes();
        let flags = memory.u32(address.plus(8))?;
        let wide = memory.shape().ptr == PtrSize::Eight;
        if (flags & 2 == 0) != wide {
            return Err(HeaderError::NotADescriptor { address });
        }
        let header = Header {
            address,
            json_bytes: u64::from(memory.u32(address.plus(12))?),
            json: memory.ptr(address.plus(16))?,
            slots: u64::from(memory.u32(address.plus(16 + word))?),
            pointer_data: memory.ptr(address.plus(24 + word))?,
        };
        let too_large = |what, limit| HeaderError::TooLarge { address, what, limit };
        if header.json_bytes > limits.descriptor_json_bytes {
            return Err(too_large(format!("{} bytes of JSON", thousands(header.json_bytes)), limits.descriptor_json_bytes));
        }
        if header.slots > limits.descriptor_slots {
            return Err(too_large(format!("{} slots", thousands(header.slots)), limits.descriptor_slots));
        }
        Ok(header)
    }

    /// Reads and parses the JSON.
    ///
    /// # Errors
    /// [`HeaderError::JsonAbsent`], [`HeaderError::Json`] or [`HeaderError::Unaffordable`].
    pub fn parse(&self, memory: &Memory) -> Result<RawDescriptor, HeaderError> {
        if memory.captured(AddrRange::of(self.json, self.json_bytes)) < self.json_bytes {
            return Err(HeaderError::JsonAbsent(ReadError { address: self.json, len: self.json_bytes }));
        }
        if !memory.afford_steps(self.json_bytes / 8) || !memory.afford_memory(self.json_bytes.saturating_mul(PARSED)) {
            return Err(HeaderError::Unaffordable(self.address));
        }
        let text = memory.bytes(self.json, self.json_bytes).map_err(HeaderError::JsonAbsent)?;
        json::parse(&text).map_err(|error| HeaderError::Json { address: self.json, error })
    }

    /// The content of a slot; `None` if the index is out of range or the slot is not in the dump.
    pub fn slot(&self, memory: &Memory, index: u64) -> Option<Addr> {
        (index < self.slots).then(|| memory.ptr(self.pointer_data.element(index, memory.ptr_bytes())).ok())?
    }
}

/// A descriptor in the tree: the root or a sub-descriptor.
#[derive(Clone, Debug)]
pub struct DescriptorPart {
    /// Name of the sub-descriptor; `None` for the root.
    pub name: Option<String>,
    /// Header of the descriptor.
    pub header: Header,
    /// Content of the descriptor.
    pub raw: RawDescriptor,
    /// The bundled copy that supplies the content, if the JSON is not in the dump.
    pub copy: Option<&'static Overlay>,
}

impl DescriptorPart {
    /// Reads the descriptor at `address`. `copies` finds a bundled copy for a header whose JSON is not in the dump.
    fn read(
        memory: &Memory,
        address: Addr,
        limits: &Limits,
        copies: Copies<'_>,
        name: Option<String>,
    ) -> Result<DescriptorPart, HeaderError> {
        let header = Header::read(memory, address, limits)?;
        match header.parse(memory) {
            Ok(raw) => Ok(DescriptorPart { name, header, raw, copy: None }),
            Err(why @ HeaderError::JsonAbsent(_)) => {
                let copy = (copies.bundled)(&header).ok_or(why)?;
                Ok(DescriptorPart { name, header, raw: copy.raw.clone(), copy: Some(copy) })
            }
            Err(why) => Err(why),
        }
    }
}

/// Where to find the JSON of a descriptor if the dump does not contain it.
#[derive(Clone, Copy)]
pub struct Copies<'a> {
    /// Finds the bundled copy.
    pub bundled: &'a dyn Fn(&Header) -> Option<&'static Overlay>,
    /// Finds the file name of the module around an address. The module's file contains the JSON.
    pub file: &'a dyn Fn(Addr) -> Option<String>,
}

/// Reads the descriptor at `root` and its sub-descriptors; bundled copies supply JSON that is not in the dump. Adds a note for each
/// unreadable sub-descriptor.
///
/// # Errors
/// [`HeaderError`] of the root descriptor.
pub fn read_tree(
    memory: &Memory,
    root: Addr,
    limits: &Limits,
    copies: Copies<'_>,
    notes: &Collector,
) -> Result<Vec<DescriptorPart>, HeaderError> {
    let part = DescriptorPart::read(memory, root, limits, copies, None)?;
    let mut tree = Tree { memory, limits, copies, notes, parts: vec![part], met: Map::default() };
    tree.met.insert(root, None);
    tree.children(0, 1);
    Ok(tree.parts)
}

/// The sub-descriptors that readers need. Other sub-descriptors are optional.
const NEEDED: &[&str] = &["GC"];

/// The descriptors read so far.
struct Tree<'a> {
    memory: &'a Memory,
    limits: &'a Limits,
    copies: Copies<'a>,
    notes: &'a Collector,
    parts: Vec<DescriptorPart>,
    /// All descriptors by address. A descriptor that cannot be read has its error.
    met: Map<Addr, Option<String>>,
}

impl Tree<'_> {
    /// Reads the sub-descriptors of `parts[parent]`, each with its own pointer data.
    fn children(&mut self, parent: usize, depth: usize) {
        let (memory, limits, notes) = (self.memory, self.limits, self.notes);
        let Some(part) = self.parts.get(parent) else { return };
        let (header, subs) = (part.header, part.raw.sub_descriptors.clone());
        for (name, index) in subs {
            let note_of = |remedy: Option<Remedy>, address: Addr, what: String| {
                if NEEDED.contains(&name.as_str()) {
                    notes.add(NoteKind::Descriptor.supplied_by(remedy), address, format!("sub-descriptor {name}: {what}"));
                }
            };
            let note = |address: Addr, what: String| note_of(None, address, what);
            let Some(variable) = header.slot(memory, index) else {
                // A missing slot is a loss, because dump writers that keep the JSON keep the slots as well.
                if NEEDED.contains(&name.as_str()) {
                    let what = format!("sub-descriptor {name}: its slot {index} is not in the dump");
                    notes.add(Missing::Layouts, header.pointer_data, what);
                }
                continue;
            };
            if variable.is_null() {
                continue;
            }
            let child = match memory.ptr(variable) {
                Ok(a) if a.is_null() => {
                    note(variable, "not initialized: the runtime was still starting, or its GC does not publish one".into());
                    continue;
                }
                Ok(a) => a,
                Err(e) => {
                    note(variable, e.to_string());
                    continue;
                }
            };
            if let Some(why) = self.met.get(&child) {
                why.iter().for_each(|why| note(child, why.clone()));
                continue;
            }
            if depth > limits.descriptor_depth || self.met.len() >= limits.descriptors {
                note(child, "too many sub-descriptors".into());
                continue;
            }
            self.met.insert(child, None);
            match DescriptorPart::read(memory, child, limits, self.copies, Some(name.clone())) {
                Ok(part) => {
                    self.parts.push(part);
                    self.children(self.parts.len().saturating_sub(1), depth.saturating_add(1));
                }
                Err(e) => {
                    let file = (self.copies.file)(child).filter(|_| matches!(e, HeaderError::JsonAbsent(_)));
                    let remedy = file.as_ref().map(|_| Remedy::ModuleFile);
                    note_of(remedy, child, file.map_or_else(|| e.to_string(), |name| format!("{e}, only in {name}")));
                    self.met.insert(child, Some(e.to_string()));
                }
            }
        }
    }
}
