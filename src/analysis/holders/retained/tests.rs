//! Tests of linked structures on made-up heaps.

use std::sync::{Arc, OnceLock};

use super::{MAX_CHAIN, RetainedDetail, RetainedQuery, RetainedRows, RetainedView, Suspect, retained};
use crate::analysis::TypeBytes;
use crate::base::{Addr, Buffer, Collector, Index, Notes, Store};
use crate::dump::DumpFacts;
use crate::gc::{ObjectId, ObjectStarts, ObjectType, TypeIndex};
use crate::graph::Csr;
use crate::heapgraph::described::Describing;
use crate::heapgraph::{DominatorTree, HeapGraph, Origin, RawRoot, References, RootFlags, Roots};
use crate::memory::Memory;
use crate::model::{RootKind, Stacks};
use crate::session::{Error, GraphSource, Heap, Namer};

/// Bytes between two objects.
const STEP: u64 = 0x10;

/// A heap of objects that are added one by one. The first one is in the static field `Lab.Program.Keep`.
#[derive(Debug, Default)]
struct Made {
    names: Vec<&'static str>,
    /// Type and size of each object.
    objects: Vec<(u32, u64)>,
    edges: Vec<(u32, u32)>,
}

impl Made {
    /// Adds an object that `by` refers to.
    fn add(&mut self, by: Option<u32>, name: &'static str, size: u64) -> u32 {
        let ty = self.names.iter().position(|n| *n == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        let id = u32::try_from(self.objects.len()).unwrap();
        self.objects.push((u32::try_from(ty).unwrap(), size));
        self.edges.extend(by.map(|by| (by, id)));
        id
    }

    fn heap(self) -> MadeHeap {
        let Made { names, objects, edges } = self;
        let store = Store::default();
        let address = |id: u64| (id + 1) * STEP;
        let count = u32::try_from(objects.len()).unwrap();
        let mut described = Describing::new(&store);
        objects.iter().for_each(|(ty, size)| described.push(TypeIndex::from_u32(*ty), *size));
        let types = (0..names.len()).map(|n| {
            let n = u32::try_from(n).unwrap();
            Arc::new(ObjectType::named(TypeIndex::from_u32(n), Addr(u64::from(n) + 1)))
        });
        let references = References {
            edges: Csr::from_edges(count, &edges).unwrap().into(),
            types: types.collect(),
            described: described.finish(),
            by_type: OnceLock::new(),
            notes: Notes::new(),
            is_of_index: false,
        };
        let mut roots = Roots::default();
        let origin = Origin::Group(roots.names.push("Lab.Program.Keep".into()).unwrap());
        let object = Addr(address(0));
        roots.roots.push(RawRoot { kind: RootKind::Static, address: None, object, flags: RootFlags::NONE, origin });
        let starts = ObjectStarts::listed(Buffer::collected(&store, (0..u64::from(count)).map(address)).freeze());
        let graph = HeapGraph::new(Arc::new(starts), references, roots, Vec::new());
        let tree = graph.edges.dominators([&[ObjectId::from_u32(0)], &[]], |id| graph.size(id));
        MadeHeap { names, graph, tree }
    }
}

#[derive(Debug)]
struct MadeHeap {
    names: Vec<&'static str>,
    graph: HeapGraph,
    tree: DominatorTree,
}

impl MadeHeap {
    /// The suspect for the first object.
    fn suspect(&self) -> Suspect {
        let answer = retained(self, &RetainedQuery { view: RetainedView::Suspects(0.5), ..RetainedQuery::default() }).unwrap();
        let RetainedRows::Suspects { suspects } = answer.data.rows else { panic!("suspects were requested") };
        let suspect = suspects.into_iter().next().unwrap();
        assert_eq!((suspect.address, suspect.retained), (Some(Addr(STEP)), self.graph.bytes()));
        suspect
    }

    /// The object with this number.
    fn object(&self, id: u64) -> RetainedDetail {
        let view = RetainedView::Object(Addr((id + 1) * STEP));
        let answer = retained(self, &RetainedQuery { view, ..RetainedQuery::default() }).unwrap();
        let RetainedRows::Object { object } = answer.data.rows else { panic!("an object was requested") };
        object
    }
}

impl GraphSource for MadeHeap {
    fn begin(&self) -> Collector {
        Collector::new()
    }

    fn namer(&self) -> Namer {
        Namer::of_names(&self.names)
    }

    fn graph(&self, _weak: bool) -> Result<&HeapGraph, Error> {
        Ok(&self.graph)
    }

    fn graph_notes(&self, _weak: bool, _notes: &Collector) {}

    fn dominators(&self, _stacks: Stacks) -> Result<&DominatorTree, Error> {
        Ok(&self.tree)
    }

    fn around(&self, graph: &HeapGraph, address: Addr) -> Option<ObjectId> {
        graph.index.id_of(address)
    }

    fn memory(&self) -> &Arc<Memory> {
        panic!("made-up heaps have no memory")
    }

    fn facts(&self) -> &DumpFacts {
        panic!("made-up heaps are not in a file")
    }

    fn heap(&self) -> Option<&Heap> {
        None
    }
}

/// Type, number and bytes of the objects by type.
fn by_type(types: &[TypeBytes]) -> Vec<(&str, u64, u64)> {
    types.iter().map(|t| (&*t.type_name, t.count, t.bytes)).collect()
}

/// A list of `count` nodes with a buffer each, of which those in `large` are larger.
fn list(head: &'static str, count: u32, large: std::ops::Range<u32>) -> Made {
    let mut made = Made::default();
    let mut at = made.add(None, head, 24);
    for n in 0..count {
        at = made.add(Some(at), "Lab.Node", 40);
        made.add(Some(at), "System.Byte[]", if large.contains(&n) { 1_000 } else { 100 });
    }
    made
}

#[test]
fn a_list_is_described_by_the_types_of_its_objects() {
    for count in [3, 20, 3_000] {
        let heap = list("Lab.List", count, 0..0).heap();
        let (suspect, n) = (heap.suspect(), u64::from(count));
        // The first node retains most of the bytes, and all other nodes.
        assert_eq!(suspect.accumulation.as_ref().map(|a| (a.address, a.retained)), Some((Addr(2 * STEP), n * 140)));
        assert_eq!(by_type(&suspect.by_type), [("Lab.Node", n, n * 40), ("System.Byte[]", n, n * 100)]);
        assert_eq!(suspect.content().map(|(name, count, bytes)| (&**name, count, bytes)), Some(("Lab.Node", n, n * 140)));
        // `retained --object` begins with the most bytes, and includes the object.
        let expected = [("System.Byte[]", n, n * 100), ("Lab.Node", n, n * 40), ("Lab.List", 1, 24)];
        assert_eq!(by_type(&heap.object(0).by_type), expected);
    }
    let text = list("Lab.List", 3_000, 0..0).heap().suspect().text;
    let expected = "One Lab.List at 0x10, held by Lab.Program.Keep, retains 410.1 KiB (100.0 %). \
                    Lab.Node at 0x20 holds 3,000 × Lab.Node (117.1 KiB), 3,000 × System.Byte[] (292.9 KiB).";
    assert_eq!(text, expected);
    // A list without an object that holds it.
    let heap = list("Lab.Node", 3_000, 0..0).heap();
    let suspect = heap.suspect();
    assert!(suspect.accumulation.is_none() && suspect.text.contains(" It holds 3,001 × Lab.Node "), "{}", suspect.text);
}

#[test]
fn a_list_whose_way_ends_in_a_buffer_is_one_if_the_bytes_are_elsewhere() {
    // The last node has 40 + 100 bytes, and the nodes before it, which are followed, retain most of the others.
    let mut made = list("Lab.List", 30, 0..30);
    let node = u32::try_from(made.objects.len()).unwrap() - 2;
    made.add(Some(node), "Lab.Image", 6_000);
    let suspect = made.heap().suspect();
    assert_eq!(suspect.by_type.first().map(|t| (&*t.type_name, t.count)), Some(("Lab.Node", 30)), "{}", suspect.text);
    // The image has most of the bytes.
    let mut made = list("Lab.List", 30, 0..0);
    let node = u32::try_from(made.objects.len()).unwrap() - 2;
    made.add(Some(node), "Lab.Image", 60_000);
    let suspect = made.heap().suspect();
    assert!(suspect.by_type.is_empty(), "{}", suspect.text);
    assert_eq!(suspect.accumulation.map(|a| a.type_name), Some("Lab.Image".into()));
}

#[test]
fn objects_of_a_tree_may_refer_to_each_other_over_others() {
    // Nodes with an array of children, five levels deep.
    let tree = |with_array: bool| {
        let mut made = Made::default();
        let mut level = vec![made.add(None, "Lab.Tree", 32)];
        for _ in 0..5 {
            let mut next = Vec::new();
            for node in level {
                let by = if with_array { made.add(Some(node), "Lab.Tree[]", 48) } else { node };
                next.extend([0; 3].map(|_| made.add(Some(by), "Lab.Tree", 32)));
            }
            level = next;
        }
        made.heap()
    };
    let nodes = 1 + 3 + 9 + 27 + 81 + 243;
    assert_eq!(by_type(&tree(false).suspect().by_type), [("Lab.Tree", nodes, nodes * 32)]);
    let arrays = 1 + 3 + 9 + 27 + 81;
    assert_eq!(by_type(&tree(true).suspect().by_type), [("Lab.Tree", nodes, nodes * 32), ("Lab.Tree[]", arrays, arrays * 48)]);
    // The inner arrays, and then lists, do not refer to further ones.
    let mut made = Made::default();
    let outer = made.add(None, "System.Object[]", 80);
    for _ in 0..10 {
        let inner = made.add(Some(outer), "System.Object[]", 80);
        made.add(Some(inner), "System.String", 30);
    }
    let suspect = made.heap().suspect();
    assert!(suspect.by_type.is_empty() && suspect.text.contains("holds 10 × System.Object[] with"), "{}", suspect.text);
    let mut made = Made::default();
    let outer = made.add(None, "Lab.List", 24);
    let array = made.add(Some(outer), "System.Object[]", 800);
    for _ in 0..100 {
        let inner = made.add(Some(array), "Lab.List", 24);
        let array = made.add(Some(inner), "System.Object[]", 40);
        made.add(Some(array), "System.String", 30);
    }
    let suspect = made.heap().suspect();
    assert!(suspect.by_type.is_empty() && suspect.text.contains("holds 100 × Lab.List"), "{}", suspect.text);
}

#[test]
fn a_chain_of_two_types_is_linked_at_any_length() {
    for count in [30, 3_000] {
        let mut made = Made::default();
        let mut at = made.add(None, "Lab.Source", 24);
        for _ in 0..count {
            at = made.add(Some(at), "Lab.Continuation", 48);
            at = made.add(Some(at), "Lab.Task", 72);
        }
        assert!(count < 1_000 || count * 2 > MAX_CHAIN);
        let suspect = made.heap().suspect();
        let n = u64::try_from(count).unwrap();
        let types = by_type(&suspect.by_type);
        let accumulates = |name: &str| types.iter().find(|(of, ..)| *of == name).map_or(0, |(_, count, _)| *count);
        assert!(accumulates("Lab.Task") >= n - 1 && accumulates("Lab.Continuation") >= n - 1, "{types:?}");
    }
}

#[test]
fn children_of_other_types_are_described_as_before() {
    let mut made = Made::default();
    let cache = made.add(None, "Lab.Cache", 24);
    let array = made.add(Some(cache), "Lab.Entry[]", 8_000);
    for _ in 0..1_000 {
        made.add(Some(array), "Lab.Entry", 40);
    }
    let heap = made.heap();
    let suspect = heap.suspect();
    assert!(suspect.by_type.is_empty() && heap.object(0).by_type.is_empty());
    assert!(suspect.text.ends_with("Lab.Entry[] at 0x20 holds 1,000 × Lab.Entry with 39.0 KiB."), "{}", suspect.text);
    assert_eq!(suspect.content().map(|(name, count, _)| (&**name, count)), Some(("Lab.Entry", 1_000)));
}

#[test]
fn a_type_of_the_program_is_named_beside_those_of_the_framework() {
    let mut made = Made::default();
    let mut at = made.add(None, "System.Threading.TimerQueue", 64);
    for _ in 0..20 {
        at = made.add(Some(at), "System.Threading.TimerQueueTimer", 96);
        let session = made.add(Some(at), "Lab.Session", 24);
        made.add(Some(session), "System.Byte[]", 4_000);
    }
    let suspect = made.heap().suspect();
    let named: Vec<&str> = suspect.linked_types().iter().map(|t| &*t.type_name).collect();
    assert_eq!(named, ["System.Threading.TimerQueueTimer", "System.Byte[]", "Lab.Session"]);
}
