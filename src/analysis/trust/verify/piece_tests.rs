//! Segments that are checked in pieces have the same findings as segments that are checked as a whole.

use std::path::Path;

use super::{VerifyQuery, verify};
use crate::base::Addr;
use crate::dump::{self, Bytes, DumpFile};
use crate::session::{Dump, OpenOptions};

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Returns a copy of the dump in which `words` replace the memory at their addresses.
fn altered(file: &DumpFile, words: &[(Addr, u64)]) -> DumpFile {
    let mut bytes = file.bytes.to_vec();
    for (address, word) in words {
        let range = file.ranges.iter().find(|r| address.since(r.start).is_some_and(|at| at + 8 <= r.len)).unwrap();
        let at = usize::try_from(range.offset + (address.0 - range.start.0)).unwrap();
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    dump::open_bytes(Bytes::Owned(bytes), Path::new("altered"), &dump::OpenOptions::default()).unwrap()
}

/// Returns the answers on one thread, which does not split segments, and on three.
fn answers(file: DumpFile) -> [String; 2] {
    let dump = Dump::of(file, &OpenOptions::default());
    let runtime = dump.runtime().unwrap();
    [1, 3].map(|threads| format!("{:#?}", pool(threads).install(|| verify(&runtime, &VerifyQuery::default()).unwrap())))
}

#[test]
fn pieces_have_the_same_findings_as_segments() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus");
    for name in ["net10-seg-fragmented-heap", "net8-seg-basics-heap", "net10-wks-basics-full"] {
        let file = dump::open(&corpus.join(format!("{name}.dmp.zst")), &dump::OpenOptions::default()).unwrap();
        let [whole, three] = answers(file.clone());
        assert!(whole == three, "{name}:\n{whole}\n{three}");
        let dump = Dump::of(file.clone(), &OpenOptions::default());
        let heap = dump.runtime().unwrap().heap().unwrap();
        let objects = |segment: &crate::managed::Segment| segment.objects().map(|o| o.address()).collect::<Vec<Addr>>();
        let segments = heap.segments();
        let (objects, segment) = segments.iter().map(|s| (objects(s), s)).max_by_key(|(objects, _)| objects.len()).unwrap();
        // Pieces have at least 16 KB, so an altered object is near each border between pieces.
        for every in [40, 300, 2000] {
            for first in 0..4 {
                let words: Vec<(Addr, u64)> = objects
                    .iter()
                    .skip(first * 9 + 1)
                    .step_by(every)
                    .zip([0, 0x1234_5678, segment.range().start.0 + 8, u64::MAX].into_iter().cycle())
                    .take(60)
                    .map(|(at, word)| (*at, word))
                    .collect();
                let [one, three] = answers(altered(&file, &words));
                assert!(one == three, "{name}, each {every}th object from {first}:\n{one}\n{three}");
                assert_ne!(one, whole, "{name}, each {every}th object from {first}");
            }
        }
    }
}
