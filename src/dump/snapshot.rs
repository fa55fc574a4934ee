//! `.gcdump` files of `dotnet-gcdump`, PerfView and gcdump itself: the objects of a heap by type, size and reference.
//!
//! The file is a stream in PerfView's FastSerialization format. It contains one `GCHeapDump` object, and in it a `Graphs.MemoryGraph` with
//! the nodes as a blob of packed numbers (`docs/internals/exports.md`). Nodes are decoded on access.

use std::path::Path;
use std::sync::Arc;

use super::{Bytes, Container, DumpError, DumpFacts, DumpFile, LostLists};
use crate::base::hash::Map;
use crate::base::{Arch, Os, PtrSize, Shape, len64, utf16};

/// Tags of FastSerialization: each announces the item that follows it.
pub(crate) mod tag {
    pub(crate) const NULL: u8 = 1;
    pub(crate) const REFERENCE: u8 = 2;
    pub(crate) const BEGIN: u8 = 4;
    pub(crate) const BEGIN_PRIVATE: u8 = 5;
    pub(crate) const END: u8 = 6;
    pub(crate) const BYTE: u8 = 8;
    pub(crate) const INT16: u8 = 9;
    pub(crate) const INT32: u8 = 10;
    pub(crate) const INT64: u8 = 11;
    pub(crate) const SKIP: u8 = 12;
    pub(crate) const STRING: u8 = 13;
}

/// The Unix epoch in ticks of 100 ns since the year 1.
pub(crate) const EPOCH: i64 = 621_355_968_000_000_000;
/// Prefix of the collection log in a file that gcdump wrote although objects, references or roots were missing. The reason follows the prefix.
pub(crate) const PARTIAL: &str = "partial: ";
/// Maximum number of characters of the reason that are kept.
const MAX_REASON: usize = 1024;
/// The first string of the file.
pub(crate) const SIGNATURE: &str = "!FastSerialization.1";
/// Maximum nesting of the unknown objects that are skipped; limits the recursion.
const MAX_DEPTH: u32 = 16;

/// A type of a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotType {
    /// The type's name, as the writer recorded it.
    pub name: String,
    /// Size in bytes of each node of this type that does not store a size.
    pub size: u64,
    /// Path of the type's module.
    pub module: Option<String>,
}

/// The nodes of a heap snapshot.
#[derive(Clone, Debug)]
pub struct Snapshot {
    bytes: Arc<Bytes>,
    /// The types.
    pub types: Vec<SnapshotType>,
    /// Number of nodes.
    pub nodes: u32,
    /// Index of the node whose children are the roots.
    pub root: u32,
    /// Number of objects that each node represents: more than 1 in a sample of a heap.
    pub sampling: f32,
    /// The tool that wrote the file.
    pub tool: Option<String>,
    /// Why the file does not contain the whole heap, if gcdump wrote it and recorded a reason.
    pub loss: Option<String>,
    /// File offset of the table of nodes: the 32-bit offset of each node in the blob.
    offsets: usize,
    /// Start and end of the blob in the file.
    blob: (usize, usize),
    /// File offset of the table of the nodes' addresses, 64 bits each.
    addresses: usize,
}

/// A node.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotNode<'s> {
    /// Index of the node's type.
    pub ty: usize,
    /// Size of the node in bytes.
    pub size: u64,
    /// Index of the node.
    own: u32,
    /// Number of nodes in the file.
    nodes: u32,
    children: u32,
    /// The part of the blob that starts with the children: packed differences between their indices and `own`.
    rest: &'s [u8],
}

impl SnapshotNode<'_> {
    /// Indices of the nodes that this node refers to. Ends early if the file is damaged.
    pub fn children(&self) -> impl Iterator<Item = u32> {
        let (own, nodes, mut rest) = (i64::from(self.own), self.nodes, self.rest);
        let next = move || Some(i64::from(packed(&mut rest)?));
        std::iter::from_fn(next)
            .take(usize::try_from(self.children).unwrap_or(0))
            .map_while(move |by| u32::try_from(own.checked_add(by)?).ok().filter(|child| *child < nodes))
    }

    /// The number of references that the file declares for this node.
    pub fn child_count(&self) -> u32 {
        self.children
    }
}

/// Decodes a signed number of 1 to 5 bytes. Each byte has 7 bits, most significant first, and bit 7 if another byte follows; bit 6 of the
/// first byte is the sign.
fn packed(rest: &mut &[u8]) -> Option<i32> {
    let mut value = 0i32;
    for place in 0..5 {
        let (first, behind) = rest.split_first()?;
        *rest = behind;
        let bits = i32::from(first & 0x7f);
        value = if place == 0 { bits - i32::from(first & 0x40) * 2 } else { value.wrapping_shl(7) | bits };
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

impl Snapshot {
    /// The node at `index`; `None` if its data is damaged.
    pub fn node(&self, index: u32) -> Option<SnapshotNode<'_>> {
        let at = self.offsets.checked_add(usize::try_from(index).ok()?.checked_mul(4)?)?;
        let offset = u32::from_le_bytes(*self.bytes.get(at..)?.first_chunk()?);
        let mut rest = self.bytes.get(self.blob.0..self.blob.1)?.get(usize::try_from(offset).ok()?..)?;
        let kind = packed(&mut rest)?;
        let ty = usize::try_from(kind >> 1).ok()?;
        let known = self.types.get(ty)?;
        let size = if kind & 1 == 1 { u64::try_from(packed(&mut rest)?).ok()? } else { known.size };
        let children = u32::try_from(packed(&mut rest)?).ok()?;
        Some(SnapshotNode { ty, size, own: index, nodes: self.nodes, children, rest })
    }

    /// An upper bound on the number of references of all nodes: each takes at least one byte of the blob.
    pub fn most_references(&self) -> u64 {
        len64(self.blob.1.saturating_sub(self.blob.0))
    }

    /// The address of the node's object; 0 if the node is not an object.
    pub fn address(&self, index: u32) -> u64 {
        let at = usize::try_from(index).ok().and_then(|i| self.addresses.checked_add(i.checked_mul(8)?));
        at.and_then(|at| self.bytes.get(at..)?.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// Parses a snapshot.
pub(super) fn read(bytes: Arc<Bytes>, path: &Path) -> Result<DumpFile, DumpError> {
    let mut stream = Stream { bytes: &bytes, at: 0, classes: Map::default() };
    let read = stream.file(&bytes).map_err(|what| DumpError::Malformed {
        path: path.to_owned(),
        what: what.into(),
        offset: u64::try_from(stream.at).unwrap_or(u64::MAX),
    });
    let (snapshot, about) = read?;
    let ptr = if about.is_64 { PtrSize::Eight } else { PtrSize::Four };
    let facts = DumpFacts {
        is_standard_input: false,
        path: path.to_owned(),
        container: Container::Gcdump,
        compression: None,
        os: Os::Unknown,
        arch: Arch::Unknown,
        shape: Some(Shape { ptr, ..Shape::LE64 }),
        pid: about.process_id,
        process_name: about.process,
        command_line: None,
        time: about.time,
        started: None,
        file_bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        captured_bytes: 0,
        mapped_bytes: None,
        truncated_bytes: 0,
        undescribed_bytes: 0,
        damage: None,
        minidump_flags: None,
        header_of_createdump: false,
        uncaptured_mappings: 0,
        trimmed: None,
        oddities: Vec::new(),
        lost: LostLists::default(),
    };
    Ok(DumpFile {
        bytes,
        facts,
        ranges: Vec::new(),
        regions: Vec::new(),
        reserved: Vec::new(),
        modules: Vec::new(),
        files: Vec::new(),
        threads: Vec::new(),
        crash: None,
        auxv: Vec::new(),
        snapshot: Some(Arc::new(snapshot)),
    })
}

/// Facts about the process.
struct About {
    is_64: bool,
    time: Option<u64>,
    process: Option<String>,
    process_id: Option<u32>,
}

/// A class that the stream defines.
#[derive(Clone)]
struct Class {
    /// Shared, because each object has a copy of its class, and a hostile file may define a long name.
    name: Arc<str>,
    /// The oldest version of a reader that can read objects of the class.
    minimum: i32,
}

/// The error is a description of the damage.
type Read<T> = Result<T, &'static str>;

struct Stream<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Classes by the file offset of their definition, which later objects refer to.
    classes: Map<usize, Class>,
}

const CUT: &str = "the file ends too early";

impl Stream<'_> {
    fn take(&mut self, n: usize) -> Read<&[u8]> {
        let end = self.at.checked_add(n).ok_or(CUT)?;
        let part = self.bytes.get(self.at..end).ok_or(CUT)?;
        self.at = end;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        self.take(N)?.first_chunk().copied().ok_or(CUT)
    }

    fn byte(&mut self) -> Read<u8> {
        self.array().map(|[b]| b)
    }

    fn int(&mut self) -> Read<i32> {
        self.array().map(i32::from_le_bytes)
    }

    fn long(&mut self) -> Read<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// Reads a count of items. Fails if the rest of the file is too short for that many items of `each` bytes.
    fn count(&mut self, each: usize) -> Read<usize> {
        let n = usize::try_from(self.int()?).map_err(|_| "a count is negative")?;
        let left = self.bytes.len().saturating_sub(self.at);
        if n.saturating_mul(each) > left { Err(CUT) } else { Ok(n) }
    }

    /// Skips `n` items of `each` bytes. Returns the offset of the first.
    fn skip(&mut self, n: usize, each: usize) -> Read<usize> {
        let from = self.at;
        self.take(n.checked_mul(each).ok_or(CUT)?)?;
        Ok(from)
    }

    /// Reads a string; `None` for null. Each UTF-16 code unit, including each half of a surrogate pair, is encoded as in UTF-8.
    fn text(&mut self) -> Read<Option<String>> {
        let n = self.int()?;
        if n == -1 {
            return Ok(None);
        }
        let n = usize::try_from(n).map_err(|_| "the length of a text is negative")?;
        if n > self.bytes.len().saturating_sub(self.at) {
            return Err(CUT);
        }
        let mut units = Vec::with_capacity(n);
        for _ in 0..n {
            let first = u16::from(self.byte()?);
            units.push(match first {
                0..0x80 => first,
                0x80..0xe0 => (first & 0x1f) << 6 | u16::from(self.byte()?) & 0x3f,
                _ => (first & 0xf) << 12 | (u16::from(self.byte()?) & 0x3f) << 6 | u16::from(self.byte()?) & 0x3f,
            });
        }
        Ok(Some(utf16(units)))
    }

    /// Reads the class of the object that begins here; `None` for null.
    fn begin(&mut self) -> Read<Option<Class>> {
        match self.byte()? {
            tag::NULL => return Ok(None),
            tag::BEGIN | tag::BEGIN_PRIVATE => {}
            _ => return Err("expected an object"),
        }
        let at = self.at;
        match self.byte()? {
            tag::REFERENCE => {
                let label = u32::from_le_bytes(self.array()?);
                let class = usize::try_from(label).ok().and_then(|l| self.classes.get(&l));
                class.cloned().map(Some).ok_or("the class of an object is not defined")
            }
            tag::BEGIN => {
                if self.byte()? != tag::NULL {
                    return Err("expected a class");
                }
                let (_version, minimum) = (self.int()?, self.int()?);
                let class = Class { name: self.text()?.unwrap_or_default().into(), minimum };
                if self.byte()? != tag::END {
                    return Err("expected the end of a class");
                }
                self.classes.insert(at, class.clone());
                Ok(Some(class))
            }
            _ => Err("expected a class"),
        }
    }

    /// Skips the remaining, tagged fields of an object, which newer writers append, and its end. Returns the last string among them.
    fn end(&mut self, depth: u32) -> Read<Option<String>> {
        let mut last = None;
        loop {
            match self.byte()? {
                tag::END => return Ok(last),
                tag::BYTE => drop(self.take(1)?),
                tag::INT16 => drop(self.take(2)?),
                tag::INT32 => drop(self.take(4)?),
                tag::INT64 => drop(self.take(8)?),
                tag::STRING => last = self.text()?,
                tag::SKIP => self.forward()?,
                tag::NULL => {}
                tag::BEGIN | tag::BEGIN_PRIVATE if depth < MAX_DEPTH => {
                    self.at = self.at.saturating_sub(1);
                    self.begin()?;
                    self.end(depth.saturating_add(1))?;
                }
                _ => return Err("a field of an unknown kind"),
            }
        }
    }

    /// Reads a forward reference and continues at its target. The table of targets is at the end of the file.
    fn forward(&mut self) -> Read<()> {
        let index = usize::try_from(self.int()?).map_err(|_| "a forward reference is negative")?;
        let word = |at: usize| -> Read<usize> {
            let bytes = self.bytes.get(at..).and_then(|b| b.first_chunk()).ok_or(CUT)?;
            usize::try_from(u32::from_le_bytes(*bytes)).map_err(|_| CUT)
        };
        let table = word(word(self.bytes.len().checked_sub(4).ok_or(CUT)?)?)?;
        if index >= word(table)? {
            return Err("a forward reference is not in the table");
        }
        let place = index.checked_mul(4).and_then(|i| table.checked_add(4)?.checked_add(i)).ok_or(CUT)?;
        let to = word(place)?;
        // A backward jump could loop forever.
        if to < self.at {
            return Err("a forward reference points backwards");
        }
        self.at = to;
        Ok(())
    }

    fn file(&mut self, bytes: &Arc<Bytes>) -> Read<(Snapshot, About)> {
        if self.text()?.as_deref() != Some(SIGNATURE) {
            return Err("the signature is missing");
        }
        let class = self.begin()?.ok_or("the file is empty")?;
        if &*class.name != "GCHeapDump" {
            return Err("the file holds no heap");
        }
        if class.minimum > 10 {
            return Err("the file needs a newer reader");
        }
        let mut snapshot = self.graph(bytes)?;
        let is_64 = self.byte()? != 0;
        snapshot.sampling = f32::from_le_bytes(self.array()?);
        self.take(4)?;
        // Information about the heap of a JavaScript engine, if the process has one.
        if self.begin()?.is_some() {
            self.end(0)?;
        }
        self.segments()?;
        let log = self.text()?;
        let ticks = self.long()?;
        self.text()?;
        let process = self.text()?.filter(|name| !name.is_empty());
        let pid = u32::from_le_bytes(self.array()?);
        self.take(16)?;
        let multipliers = self.count(4)?;
        self.skip(multipliers, 4)?;
        snapshot.tool = self.end(0)?;
        let log = log.filter(|_| snapshot.tool.as_deref() == Some("gcdump"));
        snapshot.loss = log.and_then(|log| Some(log.strip_prefix(PARTIAL)?.chars().take(MAX_REASON).collect()));
        let time = ticks.checked_sub(EPOCH).and_then(|t| u64::try_from(t.checked_div(10_000_000)?).ok());
        Ok((snapshot, About { is_64, time, process, process_id: (pid != 0).then_some(pid) }))
    }

    fn graph(&mut self, bytes: &Arc<Bytes>) -> Read<Snapshot> {
        let class = self.begin()?.ok_or("the graph is missing")?;
        if &*class.name != "Graphs.MemoryGraph" {
            return Err("the graph is missing");
        }
        self.long()?;
        let root = u32::try_from(self.int()?).map_err(|_| "the root index is out of range")?;
        let mut types = Vec::new();
        for _ in 0..self.count(12)? {
            let name = self.text()?.unwrap_or_default();
            let size = u64::try_from(self.int()?).unwrap_or(0);
            types.push(SnapshotType { name, size, module: self.text()? });
        }
        let count = self.count(12)?;
        let offsets = self.skip(count, 4)?;
        let length = self.count(1)?;
        let blob = self.skip(length, 1)?;
        // Some types have no name in the list above, because PerfView looks their names up in symbol files. The data for this look-up is skipped.
        if class.minimum >= 1 {
            self.forward()?;
        }
        if self.count(8)? != count {
            return Err("the numbers of nodes and of addresses differ");
        }
        let addresses = self.skip(count, 8)?;
        self.end(0)?;
        let nodes = u32::try_from(count).map_err(|_| "there are too many nodes")?;
        if root >= nodes {
            return Err("the root index is out of range");
        }
        let blob = (blob, blob.saturating_add(length));
        Ok(Snapshot { bytes: Arc::clone(bytes), types, nodes, root, sampling: 1.0, tool: None, loss: None, offsets, blob, addresses })
    }

    /// Skips the list of heap segments, with the bounds of their generations.
    fn segments(&mut self) -> Read<()> {
        if self.begin()?.is_none() {
            return Ok(());
        }
        self.long()?;
        for _ in 0..self.count(1)? {
            let Some(class) = self.begin()? else { continue };
            self.take(if class.minimum >= 1 { 56 } else { 48 })?;
            self.end(0)?;
        }
        self.end(0).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers() {
        for (bytes, n) in [
            (&[0u8][..], 0),
            (&[63], 63),
            (&[0x80, 0x40], 64),
            (&[0x7f], -1),
            (&[0xff, 0x3f], -65),
            (&[0x87, 0xff, 0xff, 0xff, 0x7f], i32::MAX),
            (&[0xf8, 0x80, 0x80, 0x80, 0x00], i32::MIN),
        ] {
            assert_eq!(packed(&mut { bytes }), Some(n), "{bytes:x?}");
        }
        assert_eq!(packed(&mut &[0x80u8, 0x80][..]), None);
        assert_eq!(packed(&mut &[0x80u8; 9][..]), None);
    }
}
