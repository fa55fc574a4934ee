//! Attacks through the list of threads: many small ones that refer to the same exceptions and objects.

use std::io::Write;
use std::path::Path;

use super::types::Real;
use crate::corpus;

fn words(list: impl IntoIterator<Item = u64>) -> Vec<u8> {
    list.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn of(name: &str) -> Real {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&zstd::decode_all(std::fs::File::open(corpus::dump(name)).unwrap()).unwrap()).unwrap();
    Real::of(file.path())
}

/// Adds threads without frames, with these additional fields.
fn threads(real: &mut Real, count: u64, more: &[(u64, u64, usize)]) {
    let (os_id, link) = (real.at("Thread", "OSId"), real.at("Thread", "Frame"));
    real.threads(count, |i, _| [&[(os_id, 0x10_0000 + i, 4), (link, u64::MAX, 8)], more].concat());
}

/// Threads that handle the same 64 exceptions, all of which are one exception with 20,000 frames.
pub fn in_flight(_: &Path, part: u64) -> Vec<u8> {
    let mut real = of("net10-wks-crash-heap");
    let exception = real.thrown();
    let at = exception + real.at("Exception", "_stackTrace");
    // The array's method table, its length, the number of frames, the thread; frames of 32 bytes.
    let trace = real.word(at);
    let head: Vec<u64> = (0..4).map(|i| real.word(trace + 8 * i)).collect();
    let frame: Vec<u64> = (4..8).map(|i| real.word(trace + 8 * i)).collect();
    let count = 20_000;
    let long = words([head[0], 16 + 32 * count, count, head[3]].into_iter().chain((0..count).flat_map(|_| frame.clone())));
    let long = real.add(&long);
    real.poke(at, &long.to_le_bytes());
    let trackers = real.room();
    let (previous, thrown) = (real.at("ExceptionInfo", "PreviousNestedInfo"), real.at("ExceptionInfo", "ThrownObject"));
    let mut memory = vec![0; 64 * 64];
    for i in 0..64u64 {
        let next = if i < 63 { trackers + 64 * (i + 1) } else { 0 };
        memory[(64 * i + previous) as usize..][..8].copy_from_slice(&next.to_le_bytes());
        memory[(64 * i + thrown) as usize..][..8].copy_from_slice(&exception.to_le_bytes());
    }
    assert_eq!(real.add(&memory), trackers);
    let tracker = real.at("Thread", "ExceptionTracker");
    threads(&mut real, 95_000 / part, &[(tracker, trackers, 8)]);
    real.finish()
}

/// Threads that share an object with a name of 32,000 characters.
pub fn names(_: &Path, part: u64) -> Vec<u8> {
    let mut real = of("net10-wks-crash-heap");
    let (handle, object) = real.exposed();
    let name = real.field("System.Threading.Thread", "_name");
    let text = real.string(&"N".repeat(32_000));
    let text = real.add(&text);
    real.poke(object + name, &text.to_le_bytes());
    let (exposed, tracker) = (real.at("Thread", "GCHandle"), real.at("Thread", "ExceptionTracker"));
    threads(&mut real, 95_000 / part, &[(exposed, handle, 8), (tracker, 0, 8)]);
    real.finish()
}
