//! A real dump truncated anywhere, and with flipped bytes: no panic, no hang, and an answer or a message.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{cases, own_dump, run};
use gcdump::cli::Exit;

const COMMANDS: [&[&str]; 10] = [
    &["info"],
    &["heap", "--detail"],
    &["segments", "--free", "--walk"],
    &["handles"],
    &["oom"],
    &["memory", "--ranges"],
    &["threads"],
    &["roots", "--weak"],
    &["finalizers", "--objects"],
    &["verify"],
];

fn survive(path: &Path, command: &[&str], what: &str) {
    let started = Instant::now();
    let args = [command, &["--json", "--no-local-files", path.to_str().unwrap()]].concat();
    let ran = catch_unwind(AssertUnwindSafe(|| run(&args))).unwrap_or_else(|_| panic!("{command:?} panicked: {what}"));
    assert!(started.elapsed() < Duration::from_secs(10), "{command:?} took {:?}: {what}", started.elapsed());
    assert!([0, 1, 3, 4, 5].contains(&ran.exit.code()), "{command:?} ended with {:?}: {what}: {}", ran.exit, ran.err);
    // An answer or a message.
    assert!(!ran.out.is_empty() || !ran.err.is_empty(), "{command:?} said nothing: {what}");
}

fn copy() -> (tempfile::TempDir, std::path::PathBuf, u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.dmp");
    let whole = zstd::decode_all(File::open(own_dump()).unwrap()).unwrap();
    fs::write(&path, &whole).unwrap();
    (folder, path, whole.len() as u64)
}

#[test]
fn a_real_dump_cut_off_at_200_points() {
    let (_folder, path, len) = copy();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    for i in 0..200u64 {
        // Cuts go from the end to the start; the last ones are in the headers.
        let at = if i < 150 { len - len / 151 * (i + 1) } else { (200 - i) * 300 };
        file.set_len(at).unwrap();
        // Not every command at every length.
        let n = cases(1, 2);
        for command in COMMANDS.iter().cycle().skip(i as usize % COMMANDS.len()).take(n) {
            survive(&path, command, &format!("cut at {at} of {len}"));
        }
    }
}

#[test]
fn a_real_dump_with_flipped_bytes() {
    let (_folder, path, len) = copy();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..cases(25, 100) as u64 {
        // Fifty bytes per round, half of them in headers and notes; restored afterwards.
        let mut undo = Vec::new();
        for i in 0..50u64 {
            let at = if i % 2 == 0 { random() % (len / 200) } else { random() % len };
            let mut old = [0u8];
            file.read_exact_at(&mut old, at).unwrap();
            undo.push((at, old));
            let new = [old[0] ^ (1 << (random() % 8))];
            file.write_all_at(&new, at).unwrap();
        }
        survive(&path, COMMANDS[(round % 8) as usize], &format!("round {round}"));
        for (at, old) in undo.iter().rev() {
            file.write_all_at(old, *at).unwrap();
        }
    }
}

#[test]
fn a_truncated_dump_is_reported_with_its_writer() {
    let (_folder, path, len) = copy();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let path = path.to_str().unwrap();
    // createdump writes the page that identifies its dumps last.
    file.set_len(len - 0x1000).unwrap();
    let ran = run(&["info", "--json", "--no-local-files", path]);
    let data = &ran.json()["data"];
    assert_eq!(data["writer"], "createdump", "{data}");
    assert!(data["kind_evidence"].as_str().unwrap().contains("cut off") && data["truncated_bytes"].as_u64() > Some(0), "{data}");
    // Nothing of the runtime is left, so naming a file would not help.
    file.set_len(len / 8).unwrap();
    for command in ["stat", "threads", "heap"] {
        let ran = run(&[command, "--no-local-files", path]);
        assert_eq!(ran.exit.code(), 4, "{command}");
        assert!(ran.err.contains("cut off") && !ran.err.contains("--modules"), "{command}: {}", ran.err);
        // The libraries are after the heap.
        assert!(ran.err.contains("the variables of the runtime") && ran.err.contains("libcoreclr.so"), "{command}: {}", ran.err);
    }
    let data = run(&["info", "--json", "--no-local-files", path]).json()["data"].take();
    assert_eq!((data["writer"].as_str(), data["kind"].as_str()), (Some("createdump"), Some("unknown")), "{data}");
}

/// With wrong bytes in compressed data, the answer is partial or the reason is the damage, never a truncation, which another copy of the file
/// would also repair.
#[test]
fn damage_within_a_compressed_dump_is_named() {
    let (folder, path, _) = copy();
    let whole = fs::read(&path).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&whole).unwrap();
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    zstd.include_checksum(true).unwrap();
    zstd.write_all(&whole).unwrap();
    let damaged = folder.path().join("damaged.dmp.packed");
    let (mut partial, mut refused) = (0, 0);
    for (name, packed) in [("gzip", gzip.finish().unwrap()), ("zstd", zstd.finish().unwrap())] {
        for part in [3, 50, 90, 99] {
            let mut bytes = packed.clone();
            bytes[packed.len() * part / 100] ^= 0x55;
            fs::write(&damaged, &bytes).unwrap();
            let ran = run(&["stat", "--top", "1", "--no-local-files", damaged.to_str().unwrap()]);
            assert!(ran.err.contains(&format!("the {name} data is damaged ")), "{name} at {part} %: {}", ran.err);
            match ran.exit {
                Exit::Partial => partial += 1,
                Exit::NoRuntime => {
                    assert!(!ran.err.contains("cut off"), "{name} at {part} %: {}", ran.err);
                    refused += 1;
                }
                Exit::BadDump => refused += 1,
                other => panic!("{name} at {part} %: {other:?}"),
            }
        }
        // The same file, truncated.
        fs::write(&damaged, &packed[..packed.len() / 2]).unwrap();
        let ran = run(&["stat", "--no-local-files", damaged.to_str().unwrap()]);
        assert!(ran.err.contains("cut off") && !ran.err.contains("data is damaged"), "{name}: {}", ran.err);
    }
    assert!(partial > 0 && refused > 0, "{partial} partial, {refused} refused");
}
