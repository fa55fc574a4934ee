//! Tests with valid and with forged single-file programs.

use super::*;

#[path = "../../../tests/it/bundles/writer.rs"]
mod writer;
use writer::{File, Program, program};

const HOST: &[u8] = b"\x7fELF and what else a host has";
const LAB: &[u8] = b"MZ the contents of lab, the contents of lab, the contents of lab";
const LONG: &str =
    "a/very/long/path/of/a/translation/a/very/long/path/of/a/translation/a/very/long/path/of/a/translation/a/very/long/path/Lab.dll";

/// A program with three files: a plain `lab.dll`, the core library, which is compressed if `major` allows it, and a `Lab.dll` in a folder.
fn sample(major: u32) -> Program {
    let files = [("lab.dll", false), ("System.Private.CoreLib.dll", major == NET6), (LONG, false)];
    program(HOST, major, &files.map(|(path, compressed)| File { path, contents: LAB, compressed }))
}

/// The program `bytes` as a bundle, and the temporary folder that contains it.
fn bundles(bytes: &[u8]) -> (tempfile::TempDir, Arc<Bundles>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab");
    std::fs::write(&path, bytes).unwrap();
    (folder, Arc::new(Bundles::new(vec![path], 0, None)))
}

/// The contents of each file called `name`.
fn contents(bytes: &[u8], name: &str) -> Vec<Result<Vec<u8>, BundledFileError>> {
    let (_folder, bundles) = bundles(bytes);
    bundles.named(name).into_iter().map(|(_, part)| part.open().map(|b| b.to_vec())).collect()
}

fn checked(bytes: &[u8]) -> Result<(), BundleError> {
    let (folder, _) = bundles(bytes);
    check(&folder.path().join("lab"))
}

#[test]
fn plain_and_compressed_files_are_found_by_name() {
    for major in [NET5, NET6] {
        let made = sample(major);
        assert_eq!(contents(&made.bytes, "lab.dll"), [Ok(LAB.to_vec()), Ok(LAB.to_vec())], "{major}");
        assert_eq!(contents(&made.bytes, "system.private.corelib.dll"), [Ok(LAB.to_vec())], "{major}");
        assert!(contents(&made.bytes, "lab").is_empty() && contents(&made.bytes, "").is_empty(), "{major}");
    }
    let (folder, bundles) = bundles(&sample(NET6).bytes);
    let (path, part) = bundles.named("lab.dll").remove(0);
    assert_eq!(path, folder.path().join("lab").join("lab.dll"));
    // The contents are decompressed only once.
    assert!(Arc::ptr_eq(&part.open().unwrap(), &part.clone().open().unwrap()));
}

#[test]
fn a_host_without_files_is_not_a_bundle() {
    let mut made = sample(NET6);
    assert_eq!(checked(&made.bytes), Ok(()));
    let header = i64::try_from(made.header).unwrap();
    made.put(made.header_at, 0);
    assert_eq!(checked(&made.bytes), Err(BundleError::NotOne));
    assert_eq!((checked(HOST), checked(b"")), (Err(BundleError::NotOne), Err(BundleError::NotOne)));
    // A library that writes bundles also contains the mark, with an invalid offset before it.
    let files = [File { path: "lab.dll", contents: LAB, compressed: false }];
    let host = program(HOST, NET6, &[]);
    let second = program(&host.bytes[..host.header], NET6, &files);
    assert_eq!(contents(&second.bytes, "lab.dll"), [Ok(LAB.to_vec())]);
    // A truncated program is corrupt, and a program with a later major version is not read.
    made.put(made.header_at, header);
    for len in [made.header, made.header + 11, made.header + 40, made.records[1] + 30, made.bytes.len() - 1] {
        assert_eq!(checked(&made.bytes[..len]), Err(BundleError::Corrupt), "{len}");
    }
    made.bytes[made.header] = 7;
    assert_eq!(checked(&made.bytes), Err(BundleError::Version(7)));
    for at in [-1, i64::MIN, i64::MAX, i64::try_from(made.bytes.len()).unwrap()] {
        made.put(made.header_at, at);
        assert_eq!(checked(&made.bytes), Err(BundleError::Corrupt), "{at}");
    }
}

#[test]
fn a_forged_offset_or_size_is_rejected() {
    let of = |change: &dyn Fn(&mut Program)| {
        let mut made = sample(NET6);
        change(&mut made);
        (contents(&made.bytes, "lab.dll").remove(0), contents(&made.bytes, "System.Private.CoreLib.dll").remove(0))
    };
    let (offset, size, packed) = (0, 8, 16);
    for n in [i64::MAX, 1 << 40, 1 << 20] {
        for field in [offset, size] {
            assert_eq!(of(&|made| made.put(made.records[0] + field, n)).0, Err(BundledFileError::Outside), "{field} {n}");
        }
        for field in [offset, packed] {
            assert_eq!(of(&|made| made.put(made.records[1] + field, n)).1, Err(BundledFileError::Outside), "{field} {n}");
        }
        assert_eq!(of(&|made| made.put(made.records[1] + size, n)).1, Err(BundledFileError::Ratio), "{n}");
    }
    for n in [-1, 1] {
        let changed = of(&|made| made.put(made.records[1] + size, i64::try_from(LAB.len()).unwrap() + n));
        assert_eq!(changed, (Ok(LAB.to_vec()), Err(BundledFileError::Contents)));
    }
    assert_eq!(of(&|made| made.bytes[made.files[1]] = 0xff).1, Err(BundledFileError::Contents));
    // The header is corrupt if the number of files exceeds the header or the cap, or if an offset or size is negative.
    for count in [4u32, MAX_FILES, MAX_FILES + 1, u32::MAX] {
        let mut made = sample(NET6);
        made.bytes[made.header + 8..made.header + 12].copy_from_slice(&count.to_le_bytes());
        assert_eq!(checked(&made.bytes), Err(BundleError::Corrupt), "{count}");
    }
    for field in [offset, size, packed] {
        let mut made = sample(NET6);
        made.put(made.records[0] + field, -1);
        assert_eq!(checked(&made.bytes), Err(BundleError::Corrupt), "{field}");
    }
}

#[test]
fn names_do_not_lead_outside_of_the_bundle() {
    let names = ["../../etc/lab.dll", "/etc/passwd", "..", "a\u{1b}[2Jb.dll", "C:\\x\\Other.dll", ""];
    let made = program(HOST, NET6, &names.map(|path| File { path, contents: LAB, compressed: false }));
    let (folder, bundles) = bundles(&made.bytes);
    for name in ["lab.dll", "passwd", "other.dll"] {
        let found = bundles.named(name);
        assert_eq!(found.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), [folder.path().join("lab").join(name)]);
        assert_eq!(found[0].1.open().unwrap().to_vec(), LAB);
    }
    let mut broken = sample(NET6);
    let name = broken.records[0] + 26;
    broken.bytes[name] = 0xff;
    assert_eq!(contents(&broken.bytes, "lab.dll").len(), 1);
}

#[test]
fn unpacked_files_take_a_bounded_amount_of_memory() {
    let zeros = vec![0; 1 << 20];
    let mut noise = vec![0u8; 1 << 16];
    noise.iter_mut().fold(1u32, |n, b| {
        let next = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *b = next.to_be_bytes()[0];
        next
    });
    let file = |path, contents| File { path, contents, compressed: true };
    let made = program(HOST, NET6, &[file("bomb.dll", &zeros), file("a.dll", &noise), file("b.dll", &noise)]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab");
    std::fs::write(&path, &made.bytes).unwrap();
    let bundles = Arc::new(Bundles::new(vec![path], 0, Some(100_000)));
    let opened = |name: &str| bundles.named(name).remove(0).1.open().map(|b| b.len());
    assert_eq!(
        ["bomb.dll", "a.dll", "b.dll", "a.dll"].map(opened),
        [Err(BundledFileError::Ratio), Ok(1 << 16), Err(BundledFileError::Room), Ok(1 << 16)]
    );
}

#[test]
fn changed_header_bytes_are_harmless() {
    let made = sample(NET6);
    for at in (made.header_at..made.header_at + 8).chain(made.header..made.bytes.len()) {
        for with in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = made.bytes.clone();
            bytes[at] = with;
            let Ok(bundle) = Bundle::open_bytes(Path::new("lab"), &bytes) else { continue };
            assert!(bundle.entries.len() <= 3 && bundle.by_name.values().map(Vec::len).sum::<usize>() <= 3);
        }
    }
}
