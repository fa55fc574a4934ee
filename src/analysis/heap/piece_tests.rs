//! Analyses that compare adjacent objects give the same result whether or not segments are cut into pieces.

use std::path::Path;

use crate::analysis::heap::fragmentation::{FragmentationQuery, fragmentation};
use crate::analysis::heap::heap_map::{MapQuery, map};
use crate::base::{Addr, AddrRange};
use crate::session::{Dump, OpenOptions};

/// Returns the answers of both analyses with `threads` threads. With one thread, segments are not cut; with more, tests cut even small segments.
fn answers_on(dump: &Dump, threads: usize) -> ([String; 2], String) {
    let heap = dump.runtime().unwrap().heap().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let query = FragmentationQuery { heaps: true, segments: true, top: 0 };
        let (blocks, cells) = (fragmentation(&heap, &query), map(&heap, &MapQuery::default(), |_| true).unwrap());
        let json = [serde_json::to_string(&blocks.data).unwrap(), serde_json::to_string(&cells.data).unwrap()];
        (json, format!("{:?} {:?}", blocks.notes, cells.notes))
    })
}

#[test]
fn neighbors_are_the_same_in_pieces() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus");
    for name in ["net10-seg-fragmented-heap", "net8-seg-basics-heap", "net10-wks-track-heap.before", "win-net10-svr-basics-full"] {
        let file = crate::dump::open(&corpus.join(format!("{name}.dmp.zst")), &crate::dump::OpenOptions::default()).unwrap();
        let whole = || Dump::of(file.clone(), &OpenOptions::default());
        assert_eq!(answers_on(&whole(), 1), answers_on(&whole(), 3), "{name}");
        let heap = whole().runtime().unwrap().heap().unwrap();
        for segment in heap.segment_models().iter().filter(|s| s.allocated_bytes > 0x10000).take(3) {
            for len in [8, 0x1000, segment.allocated_bytes / 3] {
                let at = Addr((segment.start.0 + segment.allocated_bytes / 3) / 8 * 8);
                let mut file = file.clone();
                file.remove(AddrRange::of(at, len));
                let without = || Dump::of(file.clone(), &OpenOptions::default());
                assert_eq!(answers_on(&without(), 1), answers_on(&without(), 3), "{name} without {len:#x} at {at:?}");
            }
        }
    }
}
