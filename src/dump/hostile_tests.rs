//! Tests with damaged and with compressed dumps. Opening a mutated or truncated dump must not panic, hang or take much memory.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::elf_core::tests::{BE, LE, small_core};
use super::minidump::tests::small_mini;
use super::{Bytes, Compression, DumpError, DumpFile, FileKind, OpenOptions, open, open_bytes};
use crate::base::Progress;
use crate::base::{Limits, PtrSize};

fn open_vec(bytes: Vec<u8>) -> Result<DumpFile, DumpError> {
    open_bytes(Bytes::Owned(bytes), Path::new("some/file"), &OpenOptions::default())
}

/// The beginnings of real dumps, which contain everything that is parsed and little memory.
fn real_samples() -> Vec<Vec<u8>> {
    let names = ["net10-wks-wait-kernel", "net10-wks-crash-heap", "win-net10-wks-crash-full", "win-net10-wks-basics-mini"];
    let paths = names.iter().map(|n| super::real_tests::folder().join(format!("{n}.dmp")));
    paths
        .filter_map(|path| {
            let file = std::fs::File::open(&path).map_err(|e| println!("skipped: {}: {e}", path.display())).ok()?;
            let mut bytes = Vec::new();
            file.take(100 << 10).read_to_end(&mut bytes).unwrap();
            Some(bytes)
        })
        .collect()
}

fn samples() -> Vec<Vec<u8>> {
    vec![
        small_core(PtrSize::Eight, LE, 62),
        small_core(PtrSize::Four, LE, 40),
        small_core(PtrSize::Eight, BE, 22),
        small_mini(LE),
        small_mini(BE),
    ]
}

/// Checks the invariants of an opened dump: ranges lie within the file and the address space.
fn check(dump: &DumpFile) {
    for range in &dump.ranges {
        assert!(range.len > 0 && dump.bytes.range(range.offset, range.len).is_some());
        assert!(range.start.0.checked_add(range.len).is_some());
    }
    assert!(dump.facts.oddities.len() <= 51);
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn mutations_are_harmless() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut opened = 0;
    let real = real_samples();
    let samples = samples().into_iter().map(|s| (s, 4000u64, 6)).chain(real.into_iter().map(|s| (s, 400, 60)));
    for (sample, rounds, most) in samples {
        for round in 0..rounds {
            let mut bytes = sample.clone();
            for _ in 0..=next(&mut state) % most {
                // Half of the rounds change only headers, because changes in captured memory do not affect parsing.
                let reach = if round % 2 == 0 { 0x200.min(bytes.len()) } else { bytes.len() };
                let at = usize::try_from(next(&mut state)).unwrap() % reach;
                bytes[at] = match next(&mut state) % 4 {
                    0 => 0xff,
                    1 => 0,
                    2 => bytes[at] ^ (1 << (next(&mut state) % 8)),
                    _ => next(&mut state).to_le_bytes()[0],
                };
            }
            if let Ok(dump) = open_vec(bytes) {
                check(&dump);
                opened += 1;
            }
        }
    }
    assert!(opened > 10_000, "{opened}");
}

#[test]
fn truncations_are_harmless() {
    for sample in samples() {
        for len in 0..sample.len() {
            match open_vec(sample[..len].to_vec()) {
                Ok(dump) => check(&dump),
                Err(e) => assert!(e.to_string().contains("some/file"), "{e}"),
            }
        }
    }
}

#[derive(Debug, Default)]
struct Heard {
    total: AtomicU64,
    done: AtomicU64,
    finished: AtomicU64,
}

impl Progress for Heard {
    fn start(&self, _: &str, total: Option<u64>) {
        self.total.store(total.unwrap(), Ordering::Relaxed);
    }
    fn advance(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }
    fn finish(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

#[test]
fn compressed_dumps_round_trip() {
    let plain = small_core(PtrSize::Eight, LE, 62);
    let (a, b) = plain.split_at(1000);
    let mut long = zstd::Encoder::new(Vec::new(), 1).unwrap();
    long.window_log(31).unwrap();
    long.long_distance_matching(true).unwrap();
    long.write_all(&plain).unwrap();
    for (bytes, compression) in [
        (zstd(&plain), Compression::Zstd),
        ([zstd(a), zstd(b)].concat(), Compression::Zstd),
        (long.finish().unwrap(), Compression::Zstd),
        (gzip(&plain), Compression::Gzip),
        ([gzip(a), gzip(b)].concat(), Compression::Gzip),
    ] {
        let heard = Arc::new(Heard::default());
        let options = OpenOptions { progress: Some(heard.clone()), ..OpenOptions::default() };
        let total = bytes.len() as u64;
        let dump = open_bytes(Bytes::Owned(bytes), Path::new("x"), &options).unwrap();
        assert_eq!(&dump.bytes[..], &plain[..]);
        assert_eq!(dump.facts.compression, Some(compression));
        assert_eq!(dump.facts.oddities, Vec::<String>::new());
        assert_eq!(dump.facts.file_bytes, plain.len() as u64);
        assert_eq!(heard.total.load(Ordering::Relaxed), total);
        assert_eq!(heard.done.load(Ordering::Relaxed), total);
        assert_eq!(heard.finished.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn data_decompressed_before_the_damage_is_kept() {
    let mut plain = small_core(PtrSize::Eight, LE, 62);
    let mut state = 1u64;
    // The added memory is incompressible, so that the decoder returns a part of it before the cut.
    plain.extend((0..2_000_000).map(|_| next(&mut state).to_le_bytes()[0]));
    for packed in [zstd(&plain), gzip(&plain)] {
        let dump = open_vec(packed[..packed.len() / 2].to_vec()).unwrap();
        check(&dump);
        assert!(dump.facts.oddities.iter().any(|o| o.contains("data ends early")), "{:?}", dump.facts.oddities);
        assert_eq!(dump.facts.damage, None);
        assert!(dump.facts.file_bytes > 100_000);
        assert!(matches!(open_vec(packed[..15].to_vec()), Err(DumpError::Decompress { .. })));
    }
}

/// Damage is reported differently for wrong bytes, truncation, and extra data after the compressed data.
#[test]
fn damage_within_compressed_data_is_distinguished_from_a_cut() {
    let mut plain = small_core(PtrSize::Eight, LE, 62);
    let mut state = 1u64;
    // The added memory is compressible text.
    plain.extend((0..400_000).flat_map(|_| format!("{:x} ", next(&mut state) % 5000).into_bytes()));
    let checked = |bytes: &[u8]| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let (a, b) = plain.split_at(plain.len() / 2);
    for (what, packed) in [
        ("gzip", gzip(&plain)),
        ("gzip of two members", [gzip(a), gzip(b)].concat()),
        ("zstd", checked(&plain)),
        ("zstd of two frames", [checked(a), checked(b)].concat()),
        ("zstd without a checksum", zstd(&plain)),
    ] {
        let name = what.split(" ").next().unwrap();
        let len = packed.len();
        for at in [len / 4, len / 2 + 1000, len * 9 / 10] {
            let mut wrong = packed.clone();
            // Changes one byte, then a page.
            for range in [at..at + 1, at..at + 4096] {
                wrong[range].iter_mut().for_each(|byte| *byte ^= 0x55);
                // Without a checksum, zstd does not detect every wrong byte.
                let dump = open_vec(wrong.clone()).unwrap();
                let Some(damage) = dump.facts.damage.as_ref() else {
                    assert_eq!(what, "zstd without a checksum", "{at}: {:?}", dump.facts.oddities);
                    continue;
                };
                assert!(damage.starts_with(&format!("the {name} data is damaged ")) && damage.contains("may be wrong"), "{what}: {damage}");
                let place: u64 = damage.split(" byte ").nth(1).unwrap().split(' ').next().unwrap().replace(',', "").parse().unwrap();
                assert!(place.saturating_add(64 << 10) >= at as u64 && place <= len as u64, "{what}: {at} of {len}: {damage}");
                assert!(!dump.facts.oddities.iter().any(|o| o.contains("ends early")), "{what}");
            }
        }
        let dump = open_vec([&packed[..], b"padding of a tape"].concat()).unwrap();
        assert_eq!(&dump.bytes[..], &plain[..], "{what}");
        assert!(dump.facts.damage.is_none() && dump.facts.oddities[0].contains(&format!("the data after the {name} data")), "{what}");
    }
    let mut early = gzip(&plain);
    early[40..60].fill(0xff);
    let error = open_vec(early).unwrap_err();
    let text = format!("{error}: {}", std::error::Error::source(&error).unwrap());
    assert!(text.contains("the gzip data is damaged near byte "), "{text}");
}

#[test]
fn refusals_say_what_the_file_is() {
    let plain = small_mini(LE);
    let message = |bytes| open_vec(bytes).unwrap_err().to_string();
    assert!(message(gzip(&zstd(&plain))).contains("compressed twice (gzip around zstd)"));
    assert!(message(zstd(b"hello, this is a text")).contains("inside is a text file"));
    assert!(message(b"Nettrace....".to_vec()).contains(".nettrace"));
    assert!(message(Vec::new()).contains("some/file is empty"));
    let options = OpenOptions { limits: Limits { decompressed_bytes: 1000, ..Limits::default() }, ..OpenOptions::default() };
    for packed in [zstd(&plain), gzip(&plain)] {
        let error = open_bytes(Bytes::Owned(packed), Path::new("x"), &options).unwrap_err();
        assert!(matches!(error, DumpError::DecompressedTooLarge { limit: 1000, .. }), "{error}");
    }
    let folder = std::env::temp_dir();
    assert!(matches!(open(&folder, &OpenOptions::default()), Err(DumpError::NotADump { kind: FileKind::Directory, .. })));
    assert!(matches!(open(&folder.join("no-such-dump"), &OpenOptions::default()), Err(DumpError::Io { .. })));
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&plain).unwrap();
    for no_mmap in [false, true] {
        let dump = open(file.path(), &OpenOptions { no_mmap, ..OpenOptions::default() }).unwrap();
        assert_eq!((dump.ranges.len(), dump.facts.path.as_path()), (3, file.path()));
    }
}
