//! `.gcdump`: heap snapshots of PerfView, Visual Studio and `dotnet-gcdump`.
//!
//! A file is a FastSerialization stream with one `Graphs.MemoryGraph`, as PerfView's own reader accepts it
//! (`docs/internals/exports.md`). Free space has no nodes.

use std::io::{self, Write};
use std::sync::Arc;

use super::Written;
use super::subgraph::{GroupKind, Subgraph};
use crate::base::hash::Map;
use crate::base::{len64, total};
use crate::dump::snapshot::{self as stream, tag};
use crate::gc::{ObjectId, TypeIndex};
use crate::managed::Segment;
use crate::model::{Generation, RootKind, SegmentModel};

/// Names that viewers of the format recognize.
mod form {
    pub(super) const ROOT: &str = "[.NET Roots]";
    pub(super) const STATICS: &str = "[static vars]";
    pub(super) const LOCALS: &str = "[local vars]";
    pub(super) const COM: &str = "[COM/WinRT Objects]";
    pub(super) const OTHER: &str = "[other roots]";
    pub(super) const STRONG: &str = "[strong Handles]";
    pub(super) const PINNED: &str = "[pinning Handles]";
    pub(super) const FINALIZER: &str = "[finalizer Handles]";
    pub(super) const HANDLES: &str = "[other Handles]";
    pub(super) const FROZEN: &str = "[frozen objects]";
    pub(super) const THROUGH: &str = "[through objects left out]";
    pub(super) const LEFT_OUT: &str = "[objects left out]";
    pub(super) const STATIC: &str = "[static var ";

    /// Size classes. Objects larger than a limit in bytes have a separate type with this suffix, as in `dotnet-gcdump`, so that files of the two
    /// programs can be compared.
    pub(super) const SIZES: [(u64, &str); 6] = [
        (100_000_000, " (Bytes > 100M)"),
        (10_000_000, " (Bytes > 10M)"),
        (1_000_000, " (Bytes > 1M)"),
        (100_000, " (Bytes > 100K)"),
        (10_000, " (Bytes > 10K)"),
        (1_000, " (Bytes > 1K)"),
    ];
}

/// Facts about the dump that the file records besides the graph.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Time at which the heap was captured, in seconds since 1970. The file has the smallest time of .NET, January 1 of the year 1, if it is unknown.
    pub time: Option<u64>,
    /// Name of the process.
    pub process: String,
    /// Process id.
    pub process_id: Option<u32>,
    /// Whether to write the generations of the segments. Readers older than 2022 reject files that contain them.
    pub generations: bool,
}

/// The names of a root group's node and of its parent node.
struct GroupNode {
    name: &'static str,
    under: &'static str,
}

fn group_node(kind: GroupKind) -> Option<GroupNode> {
    use RootKind as R;
    let (name, under) = match kind {
        GroupKind::Roots(R::Static | R::ThreadStatic) => (form::STATICS, form::ROOT),
        GroupKind::Roots(R::Stack | R::Register) => (form::LOCALS, form::ROOT),
        GroupKind::Roots(R::RefCountedHandle) => (form::COM, form::ROOT),
        GroupKind::Roots(R::StrongHandle) => (form::STRONG, form::OTHER),
        GroupKind::Roots(R::PinnedHandle | R::AsyncPinnedHandle) => (form::PINNED, form::OTHER),
        GroupKind::Roots(R::FinalizerReady) => (form::FINALIZER, form::OTHER),
        GroupKind::Roots(
            R::CrossReferenceHandle | R::UnknownHandle | R::Exception | R::SizedRefHandle | R::ExternalMemory | R::WeakHandle,
        ) => (form::HANDLES, form::OTHER),
        GroupKind::Frozen => (form::FROZEN, form::OTHER),
        GroupKind::Through => (form::THROUGH, form::OTHER),
        // Unreachable objects have no parent.
        GroupKind::Unreachable => return None,
    };
    Some(GroupNode { name, under })
}

/// A node that is not an object. Its children are other synthetic nodes, then objects.
struct SyntheticNode {
    name: Arc<str>,
    size: u64,
    nodes: Vec<u32>,
    objects: Vec<ObjectId>,
}

impl SyntheticNode {
    fn new(name: Arc<str>) -> SyntheticNode {
        SyntheticNode { name, size: 0, nodes: Vec::new(), objects: Vec::new() }
    }
}

/// The synthetic nodes by node number. Node 0 is the root of the graph.
struct Roots {
    nodes: Vec<SyntheticNode>,
    by_name: Map<Arc<str>, u32>,
}

impl Roots {
    fn of(part: &Subgraph<'_>) -> Roots {
        let mut roots = Roots { nodes: vec![SyntheticNode::new(form::ROOT.into())], by_name: Map::default() };
        for group in &part.groups {
            let Some(place) = group_node(group.kind) else { continue };
            let above = if place.under == form::ROOT { 0 } else { roots.below(0, place.under) };
            let node = roots.below(above, place.name);
            for link in group.links.iter().filter(|l| l.holds) {
                let label = link.root.and_then(|r| part.root(r)).filter(|_| place.name == form::STATICS).map(|r| part.graph.roots.label(r));
                let at = label.map_or(node, |label| roots.below(node, &format!("{}{label}]", form::STATIC)));
                if let Some(node) = roots.node(at) {
                    node.objects.push(link.to);
                }
            }
        }
        if let Some(rest) = part.rests.first().filter(|r| r.under.is_none()) {
            let at = roots.below(0, form::LEFT_OUT);
            if let Some(node) = roots.node(at) {
                node.size = rest.sum.bytes;
            }
        }
        roots
    }

    fn node(&mut self, at: u32) -> Option<&mut SyntheticNode> {
        self.nodes.get_mut(usize::try_from(at).ok()?)
    }

    /// Returns the number of the node with this name. A new node becomes a child of `above`.
    fn below(&mut self, above: u32, name: &str) -> u32 {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let new = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.nodes.push(SyntheticNode::new(Arc::clone(&name)));
        self.by_name.insert(name, new);
        if let Some(above) = self.node(above) {
            above.nodes.push(new);
        }
        new
    }
}

/// The type table of the file.
struct Types {
    /// Name of each type, size of its first node in bytes, and module.
    list: Vec<(Arc<str>, i32, Option<Box<str>>)>,
    /// Type numbers of objects, by type on the heap and index of the size class in `form::SIZES`.
    of: Map<(Option<TypeIndex>, usize), i32>,
    synthetic: Map<Arc<str>, i32>,
}

impl Types {
    fn new() -> Types {
        Types { list: vec![("UNDEFINED".into(), 0, None)], of: Map::default(), synthetic: Map::default() }
    }

    fn add(&mut self, name: Arc<str>, size: i32, module: Option<String>) -> i32 {
        let index = i32::try_from(self.list.len()).unwrap_or(i32::MAX);
        self.list.push((name, size, module.map(String::into_boxed_str)));
        index
    }

    fn of(&mut self, part: &Subgraph<'_>, id: ObjectId, size: i32) -> i32 {
        let (ty, bytes) = (part.graph.type_index(id), part.graph.size(id));
        let class = form::SIZES.iter().position(|(least, _)| bytes > *least).unwrap_or(form::SIZES.len());
        if let Some(known) = self.of.get(&(ty, class)) {
            return *known;
        }
        let behind = form::SIZES.get(class).map_or("", |(_, text)| *text);
        let name = format!("{}{behind}", part.graph.type_name(&part.namer, id));
        let module = part.graph.kind(id).and_then(|kind| part.namer.module(kind.method_table));
        let index = self.add(name.into(), size, module);
        self.of.insert((ty, class), index);
        index
    }

    fn of_synthetic(&mut self, name: &Arc<str>, size: i32) -> i32 {
        if let Some(known) = self.synthetic.get(name) {
            return *known;
        }
        let index = self.add(Arc::clone(name), size, None);
        self.synthetic.insert(Arc::clone(name), index);
        index
    }
}

/// The encoded nodes: the blob, and the offset of each node in it.
struct Nodes {
    types: Types,
    offsets: Vec<u32>,
    blob: Vec<u8>,
    bytes: u64,
    edges: u64,
    clipped: u64,
}

impl Nodes {
    fn clip(&mut self, size: u64) -> i32 {
        i32::try_from(size).unwrap_or_else(|_| {
            self.clipped = self.clipped.saturating_add(1);
            i32::MAX
        })
    }

    /// Adds a node. `children` are node numbers, which the format stores relative to the number of the new node.
    fn add(&mut self, ty: i32, size: i32, children: impl ExactSizeIterator<Item = u32>) -> io::Result<()> {
        let own = i64::try_from(self.offsets.len()).unwrap_or(i64::MAX);
        self.offsets.push(u32::try_from(self.blob.len()).map_err(|_| too_large())?);
        self.bytes = self.bytes.saturating_add(u64::try_from(size).unwrap_or(0));
        let usual = usize::try_from(ty).ok().and_then(|t| self.types.list.get(t)).is_some_and(|(_, first, _)| *first == size);
        packed(&mut self.blob, ty.checked_mul(2).and_then(|t| t.checked_add(i32::from(!usual))).ok_or_else(too_large)?);
        if !usual {
            packed(&mut self.blob, size);
        }
        packed(&mut self.blob, i32::try_from(children.len()).map_err(|_| too_large())?);
        self.edges = self.edges.saturating_add(len64(children.len()));
        for child in children {
            packed(&mut self.blob, i32::try_from(i64::from(child).saturating_sub(own)).map_err(|_| too_large())?);
        }
        // The format has 31-bit offsets in the blob and 31-bit node numbers.
        if i32::try_from(self.blob.len()).is_err() { Err(too_large()) } else { Ok(()) }
    }
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the graph is too large for a .gcdump file (2 GiB); export a part of it")
}

/// Writes `part` to `out`.
///
/// # Errors
/// Errors of `out`; [`io::ErrorKind::InvalidInput`] if the graph exceeds the 31-bit numbers of the format.
pub fn write(part: &Subgraph<'_>, about: &About, out: &mut dyn Write) -> io::Result<Written> {
    let roots = Roots::of(part);
    let first = u32::try_from(roots.nodes.len()).map_err(|_| too_large())?;
    let objects = u32::try_from(part.sum.count).map_err(|_| too_large())?;
    let nodes = nodes(part, &roots, (first, objects))?;
    let addresses = std::iter::repeat_n(0, roots.nodes.len());
    let addresses =
        addresses.chain(part.objects().map(|id| part.graph.address(id).0)).chain(std::iter::repeat(0)).take(nodes.offsets.len());
    let mut to = Stream { out, at: 0 };
    to.text(stream::SIGNATURE)?;
    to.begin("GCHeapDump", 10, 8)?;
    to.begin("Graphs.MemoryGraph", 1, 0)?;
    to.int64(i64::try_from(nodes.bytes).unwrap_or(i64::MAX))?;
    to.int(0)?;
    to.count(nodes.types.list.len())?;
    for (name, size, module) in &nodes.types.list {
        to.text(name)?;
        to.int(*size)?;
        match module {
            Some(module) => to.text(module)?,
            None => to.int(-1)?,
        }
    }
    to.count(nodes.offsets.len())?;
    for offset in &nodes.offsets {
        to.bytes(&offset.to_le_bytes())?;
    }
    to.count(nodes.blob.len())?;
    to.bytes(&nodes.blob)?;
    to.count(nodes.offsets.len())?;
    for address in addresses {
        to.bytes(&address.to_le_bytes())?;
    }
    to.bytes(&[tag::BYTE, u8::from(part.heap.memory().ptr_bytes() == 8), tag::END])?;
    to.bytes(&[u8::from(part.heap.memory().ptr_bytes() == 8)])?;
    // The graph was not sampled.
    to.bytes(&1f32.to_le_bytes())?;
    to.bytes(&1f32.to_le_bytes())?;
    to.bytes(&[tag::NULL])?;
    if about.generations {
        to.generations(part)?
    } else {
        to.bytes(&[tag::NULL])?
    };
    // The collection log records the first loss of data. Viewers at most display the log.
    let clipped = || (nodes.clipped > 0).then(|| "sizes are cut to the largest that the format holds".into());
    match part.first_loss().or_else(clipped) {
        Some(loss) => to.text(&format!("{}{loss}", stream::PARTIAL))?,
        None => to.int(-1)?,
    }
    let seconds = about.time.and_then(|t| i64::try_from(t).ok());
    to.int64(seconds.map_or(0, |t| t.saturating_mul(10_000_000).saturating_add(stream::EPOCH)))?;
    to.text("")?;
    to.text(&about.process)?;
    to.bytes(&about.process_id.unwrap_or(0).to_le_bytes())?;
    let committed = total(part.heap.segments().iter().map(Segment::committed_bytes));
    to.int64(i64::try_from(committed).unwrap_or(i64::MAX))?;
    to.int64(0)?;
    to.int(0)?;
    // Optional fields that newer readers expect: no interop data, and the program that wrote the file.
    to.bytes(&[tag::SKIP])?;
    to.int(0)?;
    to.bytes(&[tag::NULL])?;
    let forward = to.label()?;
    to.bytes(&[tag::STRING])?;
    to.text("gcdump")?;
    to.bytes(&[tag::END, tag::END])?;
    let table = to.label()?;
    to.int(1)?;
    to.bytes(&forward.to_le_bytes())?;
    let trailer = to.label()?;
    to.bytes(&table.to_le_bytes())?;
    to.bytes(&trailer.to_le_bytes())?;
    Ok(Written { nodes: len64(nodes.offsets.len()), edges: nodes.edges, clipped: nodes.clipped })
}

/// Encodes the nodes in the order of their numbers: the synthetic nodes, then `objects` objects from number `first` on, then the sums of omitted
/// objects, one for each kept object that dominates omitted objects.
fn nodes(part: &Subgraph<'_>, roots: &Roots, (first, objects): (u32, u32)) -> io::Result<Nodes> {
    let all = usize::try_from(first.saturating_add(objects)).unwrap_or(0).saturating_add(part.rests.len());
    // The blob begins with the undefined node (type 0, no children), which no offset may refer to.
    let blob = vec![0, 0];
    let mut nodes = Nodes { types: Types::new(), offsets: Vec::with_capacity(all), blob, bytes: 0, edges: 0, clipped: 0 };
    let number = |id: ObjectId| part.number_of(id).map_or(0, |n| n.saturating_add(first));
    for node in &roots.nodes {
        let size = nodes.clip(node.size);
        let ty = nodes.types.of_synthetic(&node.name, size);
        let children: Vec<u32> = node.nodes.iter().copied().chain(node.objects.iter().map(|id| number(*id))).collect();
        nodes.add(ty, size, children.into_iter())?;
    }
    let mut rest = first.saturating_add(objects);
    let rests = || part.rests.iter().filter_map(|r| r.under.map(|under| (under, r.sum)));
    let mut with_rest = rests().peekable();
    let mut children: Vec<u32> = Vec::new();
    for id in part.objects() {
        let size = nodes.clip(part.graph.size(id));
        let ty = nodes.types.of(part, id, size);
        children.extend(part.held(id).map(number));
        if with_rest.next_if(|(under, _)| *under == id).is_some() {
            children.push(rest);
            rest = rest.saturating_add(1);
        }
        nodes.add(ty, size, children.drain(..))?;
    }
    let left_out: Arc<str> = form::LEFT_OUT.into();
    for (_, sum) in rests() {
        let size = nodes.clip(sum.bytes);
        let ty = nodes.types.of_synthetic(&left_out, size);
        nodes.add(ty, size, std::iter::empty::<u32>())?;
    }
    Ok(nodes)
}

/// Appends a number in 1 to 5 bytes with 7 bits each, the most significant first; bit 6 of the first byte is the sign.
fn packed(to: &mut Vec<u8>, n: i32) {
    let mut more =
        (1..5u32).take_while(|bytes| n.checked_shr(bytes.saturating_mul(7).saturating_sub(1)).is_some_and(|top| top != 0 && top != -1));
    let bytes = more.by_ref().last().unwrap_or(0);
    for left in (0..=bytes).rev() {
        let [low, ..] = n.checked_shr(left.saturating_mul(7)).unwrap_or(n >> 31).to_le_bytes();
        to.push(low & 0x7f | if left > 0 { 0x80 } else { 0 });
    }
}

/// A stream that tracks its position.
struct Stream<'o> {
    out: &'o mut dyn Write,
    at: u64,
}

impl Stream<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at = self.at.saturating_add(len64(bytes.len()));
        self.out.write_all(bytes)
    }

    fn int(&mut self, n: i32) -> io::Result<()> {
        self.bytes(&n.to_le_bytes())
    }

    fn int64(&mut self, n: i64) -> io::Result<()> {
        self.bytes(&n.to_le_bytes())
    }

    fn count(&mut self, n: usize) -> io::Result<()> {
        self.int(i32::try_from(n).map_err(|_| too_large())?)
    }

    /// Writes the number of UTF-16 code units, then each unit encoded separately as UTF-8, so that a surrogate pair takes 6 bytes.
    fn text(&mut self, text: &str) -> io::Result<()> {
        self.count(text.encode_utf16().count())?;
        let mut bytes = Vec::with_capacity(text.len());
        for unit in text.encode_utf16() {
            let [low, high] = unit.to_le_bytes();
            match unit {
                0..0x80 => bytes.push(low),
                0x80..0x800 => bytes.extend([0xc0 | high << 2 | low >> 6, 0x80 | low & 0x3f]),
                _ => bytes.extend([0xe0 | high >> 4, 0x80 | (high << 2 | low >> 6) & 0x3f, 0x80 | low & 0x3f]),
            }
        }
        self.bytes(&bytes)
    }

    fn begin(&mut self, class: &str, version: i32, minimum: i32) -> io::Result<()> {
        self.bytes(&[tag::BEGIN, tag::BEGIN, tag::NULL])?;
        self.int(version)?;
        self.int(minimum)?;
        self.text(class)?;
        self.bytes(&[tag::END])
    }

    /// Returns the position in the stream.
    fn label(&self) -> io::Result<u32> {
        u32::try_from(self.at).map_err(|_| too_large())
    }

    /// Writes the bounds of the segments and of the generations in them.
    fn generations(&mut self, part: &Subgraph<'_>) -> io::Result<()> {
        let segments = part.heap.segment_models();
        self.begin("DotNetHeapInfo", 0, 0)?;
        self.int64(i64::try_from(segments.iter().fold(0u64, |sum, s| sum.saturating_add(s.allocated_bytes))).unwrap_or(i64::MAX))?;
        self.count(segments.len())?;
        for segment in segments {
            self.begin("GCHeapDumpSegment", 1, 1)?;
            for n in ends(segment) {
                self.bytes(&n.to_le_bytes())?;
            }
            self.bytes(&[tag::END])?;
        }
        self.bytes(&[tag::END])
    }
}

/// Returns the start and end of a segment, then the ends of generations 0 to 4. A reader assigns an address to the last generation whose end
/// is above the address. A generation that the segment does not contain ends at the start of the segment.
fn ends(segment: &SegmentModel) -> [u64; 7] {
    let (start, end) = (segment.start.0, segment.allocated.0);
    let generation = |g: Generation| segment.parts.iter().find(|p| p.generation == g).map_or(start, |p| p.start.0);
    let ends = match segment.generation {
        Generation::Poh => [end; 5],
        Generation::Loh => [end, end, end, end, start],
        Generation::Gen2 | Generation::Frozen | Generation::Unknown => [end, end, end, start, start],
        Generation::Gen1 => [end, end, start, start, start],
        Generation::Gen0 => [end, start, start, start, start],
        Generation::Ephemeral => [end, generation(Generation::Gen0), generation(Generation::Gen1), start, start],
    };
    let [gen0, gen1, gen2, gen3, gen4] = ends;
    [start, end, gen0, gen1, gen2, gen3, gen4]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_packed_in_the_fewest_bytes() {
        let pack = |n: i32| {
            let mut to = Vec::new();
            packed(&mut to, n);
            to
        };
        assert_eq!(pack(0), [0]);
        assert_eq!(pack(63), [63]);
        assert_eq!(pack(64), [0x80, 0x40]);
        assert_eq!(pack(-1), [0x7f]);
        assert_eq!(pack(-64), [0x40]);
        assert_eq!(pack(-65), [0xff, 0x3f]);
        assert_eq!(pack(8191), [0xbf, 0x7f]);
        assert_eq!(pack(i32::MAX).len(), 5);
        assert_eq!(pack(i32::MIN).len(), 5);
    }

    #[test]
    fn text_is_written_by_utf_16_units() {
        let mut out = Vec::new();
        Stream { out: &mut out, at: 0 }.text("Größe<Ж漢😀").unwrap();
        assert_eq!(out[..4], 10i32.to_le_bytes());
        let units: Vec<u16> = "Größe<Ж漢😀".encode_utf16().collect();
        assert_eq!(units.len(), 10);
        // A surrogate pair takes 2 × 3 bytes, not the 4 of UTF-8.
        assert_eq!(out.len(), 4 + 4 + 2 * 2 + 2 + 3 + 6);
    }
}
