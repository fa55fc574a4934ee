//! A heap walked in pieces yields the same objects as a heap walked at once: on real dumps, complete and with holes.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::base::missed::watched;
use crate::base::{Addr, AddrRange, Answer, Limits, Silent};
use crate::dump::real_tests::folder;
use crate::gc::{Object, ObjectStarts, Piece, SegmentIndex, Visitor, Walked, Walker};
use crate::heapgraph::HeapGraph;
use crate::model::{Generation, Stacks, WalkModel};
use crate::session::{Dump, Error, Heap, OpenOptions};

type Row = (SegmentIndex, Addr, u64, Addr, Generation);

#[derive(Default)]
struct Rows {
    segment: SegmentIndex,
    pieces: usize,
    rows: Vec<Row>,
}

impl Rows {
    fn add(&mut self, segment: SegmentIndex, o: &Object<'_>) {
        self.rows.push((segment, o.address, o.size, o.ty.method_table, o.generation));
    }
}

impl Visitor for Rows {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.segment = piece.index;
        self.pieces += 1;
        true
    }

    fn object(&mut self, object: &Object<'_>) {
        self.add(self.segment, object);
    }
}

/// Pairs of neighboring objects, including neighbors in different pieces.
#[derive(Default)]
struct Pairs {
    first: Option<Addr>,
    last: Option<Addr>,
    pairs: Vec<(Option<Addr>, Addr)>,
}

impl Visitor for Pairs {
    fn piece(&mut self, _piece: &Piece<'_>) -> bool {
        (self.first, self.last) = (None, None);
        true
    }

    fn object(&mut self, object: &Object<'_>) {
        self.first.get_or_insert(object.address);
        self.pairs.push((self.last.replace(object.address), object.address));
    }

    fn follow(&mut self, before: &mut Self) {
        let pair = self.pairs.iter_mut().find(|pair| Some(pair.1) == self.first);
        match pair {
            Some(pair) => pair.0 = before.last,
            None => self.last = before.last,
        }
    }
}

fn sorted(visitors: impl IntoIterator<Item = Rows>) -> (usize, Vec<Row>) {
    let mut all = (0, Vec::new());
    for visitor in visitors {
        all.0 += visitor.pieces;
        all.1.extend(visitor.rows);
    }
    all.1.sort_unstable();
    all
}

fn same(what: &str, a: &[(SegmentIndex, WalkModel)], b: &[(SegmentIndex, WalkModel)]) {
    assert_eq!(format!("{a:?}"), format!("{b:?}"), "{what}");
}

/// Walks the heap in pieces of `least` bytes. Returns the number of pieces, and the number of pieces that began at a wrong address.
fn check(what: &str, dump: &Dump, least: u64) -> Option<(usize, usize)> {
    let runtime = dump.runtime().ok()?;
    let gc = runtime.gc().ok()?;
    let make = || Walker::new(gc, runtime.thread_list().map_or(&[], |t| &t.data), runtime.has_all_threads()).ok().map(|w| w.data);
    // The readers of types report a failed read once. Each walk starts with new readers, so that all walks report the same failed reads.
    let (mut one, mut segments) = (Rows::default(), Vec::new());
    let walker = make()?;
    let ((), missed) = watched(|| {
        for index in walker.segment_indices() {
            let walk = walker.visit_from(index, None, |o| {
                one.add(index, o);
                ControlFlow::Continue(())
            });
            segments.extend(walk.map(|walk| (index, walk)));
        }
    });
    one.rows.sort_unstable();
    let mut walker = make()?;
    walker.cut_finely(least);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    // The scope of `watched` belongs to the thread that opens it, so it is opened in the pool.
    let (walked, again): (Walked<Rows>, _) = pool.install(|| watched(|| walker.walk(&Silent, Rows::default)));
    same(what, &segments, &walked.segments);
    let (pieces, rows) = sorted(walked.visitors);
    assert!(one.rows == rows, "{what}: {} objects, not {}", rows.len(), one.rows.len());
    assert_eq!((missed.first(), what), (again.first(), what));
    let (Answer { data: starts, .. }, segments) = pool.install(|| ObjectStarts::build(&walker, &Silent));
    same(what, &segments, &walked.segments);
    let objects: Vec<Addr> = starts.ids().filter_map(|id| starts.address_of(id)).collect();
    let free = walker.tables().free;
    let expected: Vec<Addr> = one.rows.iter().filter(|r| Some(r.3) != free).map(|r| r.1).collect();
    assert!(objects == expected, "{what}: {} starts, not {}", objects.len(), expected.len());
    let mut pairs: Vec<_> = pool.install(|| walker.walk(&Silent, Pairs::default)).visitors.into_iter().flat_map(|v| v.pairs).collect();
    pairs.sort_unstable_by_key(|(_, at)| *at);
    let mut before = None;
    let expected = one.rows.iter().map(|row| (before.replace((row.0, row.1)).filter(|(segment, _)| *segment == row.0).map(|b| b.1), row.1));
    let mut expected: Vec<_> = expected.collect();
    expected.sort_unstable_by_key(|(_, at)| *at);
    assert!(pairs == expected, "{what}: neighbors");
    Some((pieces, walker.segments().len()))
}

fn dumps() -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus");
    let list = |folder: &Path| -> Vec<PathBuf> {
        let mut all: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().map(|e| e.unwrap().path()).filter(|p| p.is_file()).collect();
        all.retain(|p| p.to_string_lossy().contains("-heap") && p.metadata().unwrap().len() < 80 << 20);
        all.sort();
        all
    };
    // Trimmed dumps contain every object as well. Only the shared dumps contain the old contents of free blocks.
    let shared = list(&folder());
    list(&corpus).into_iter().step_by(8).chain(shared.into_iter().step_by(45)).collect()
}

#[test]
fn pieces_add_up_to_the_whole_walk() {
    let (mut dumps_seen, mut pieces_seen) = (0, 0);
    for path in dumps() {
        let Ok(file) = crate::dump::open(&path, &crate::dump::OpenOptions::default()) else { continue };
        let dump = Dump::of(file.clone(), &OpenOptions::default());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut most = None;
        for least in [1 << 13, 1 << 16] {
            most = most.max(check(&name, &dump, least));
        }
        let Some((pieces, segments)) = most else { continue };
        dumps_seen += 1;
        pieces_seen += pieces;
        println!("{name}: {pieces} pieces of {segments} segments");
        let heap = dump.runtime().unwrap().heap().unwrap();
        for (n, segment) in (0u64..).zip(heap.segment_models().iter().filter(|s| s.allocated_bytes > 0x4000).take(3)) {
            // Remove one word, or half of the segment.
            for len in [8, segment.allocated_bytes / 2] {
                let at = (segment.start.0 + segment.allocated_bytes / (n + 3)) / 8 * 8;
                let mut file = file.clone();
                file.remove(AddrRange::new(Addr(at), Addr(at + len)));
                let dump = Dump::of(file, &OpenOptions::default());
                check(&format!("{name} without {len:#x} at {at:#x}"), &dump, 1 << 14);
            }
        }
    }
    assert!(dumps_seen > 4 && pieces_seen > dumps_seen * 20, "{pieces_seen} pieces of {dumps_seen} dumps");
}

#[test]
fn graphs_built_from_pieces_are_equal() {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus");
    for name in ["net10-seg-fragmented-heap", "net10-wks-track-heap.before", "net8-seg-basics-heap", "win-net10-svr-basics-full"] {
        let of = |threads: usize| {
            let dump = Dump::open(corpus.join(format!("{name}.dmp.zst")), &OpenOptions::default()).unwrap();
            let heap = dump.runtime().unwrap().heap().unwrap();
            pool(threads).install(|| heap.graph(false).map(|_| ())).unwrap();
            heap
        };
        let (one, three) = (of(1), of(3));
        let (one, three) = (one.graph(false).unwrap(), three.graph(false).unwrap());
        assert!(one.edges.csr() == three.edges.csr(), "{name}: references differ");
        assert_eq!(format!("{:?}", one.notes), format!("{:?}", three.notes), "{name}");
        for id in one.ids() {
            let object = |graph: &HeapGraph| (graph.address(id), graph.size(id), graph.kind(id).map(|kind| kind.method_table));
            assert_eq!(object(one), object(three), "{name}");
        }
        assert!(one.len() > 1000, "{name}");
    }
}

#[test]
fn graphs_built_in_files_are_equal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps");
    for name in ["net10-wks-basics-heap", "corpus/net8-seg-basics-heap", "corpus/win-net10-svr-basics-full"] {
        let of = |max_memory: Option<u64>| {
            let options = OpenOptions { limits: Limits { max_memory, ..Limits::default() }, ..OpenOptions::default() };
            Dump::open(folder.join(format!("{name}.dmp.zst")), &options).unwrap().runtime().unwrap().heap().unwrap()
        };
        let memory = of(None);
        let objects = u64::from(memory.graph(false).unwrap().len());
        let files = of(Some(objects * 64 - 1));
        let (one, other) = (memory.graph(false).unwrap(), files.graph(false).unwrap());
        assert!(!one.edges.csr().store().is_in_files() && other.edges.csr().store().is_in_files());
        assert!(one.edges.csr() == other.edges.csr() && one.edges.reversed() == other.edges.reversed(), "{name}");
        // Types are numbered in the order in which threads meet them, so method tables are compared instead of numbers.
        let object = |graph: &HeapGraph, id| (graph.size(id), graph.kind(id).map(|kind| kind.method_table));
        assert!(one.ids().all(|id| object(one, id) == object(other, id)), "{name}");
        let parts = |heap: &Heap| {
            let (tree, retained) = heap.dominators(Stacks::default()).unwrap().parts();
            let (position, order, below, up) = tree.parts();
            (
                position.clone(),
                order.clone(),
                [below, up].map(|packed| packed.iter().collect::<Vec<_>>()),
                retained.iter().collect::<Vec<_>>(),
            )
        };
        assert!(parts(&memory) == parts(&files), "{name}");
        let refused = of(Some(objects)).graph(false).unwrap_err();
        assert!(matches!(refused, Error::Memory(limit) if limit.needed > objects && limit.needed < objects * 64), "{refused}");
    }
}
