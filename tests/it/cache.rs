//! The cache of decompressed dumps.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use crate::common::own_dump;

const GCDUMP: &str = env!("CARGO_BIN_EXE_gcdump");

/// Makes a command that can decompress only into the cache.
fn command(cache: &Path, dump: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(GCDUMP);
    command.args(["heap", "--no-local-files", "--cache"]).arg(cache).args(more).arg(dump).env("TMPDIR", "/no/such/folder");
    command
}

fn heap(cache: &Path, dump: &Path, more: &[&str]) -> Output {
    command(cache, dump, more).output().unwrap()
}

fn answer(cache: &Path, dump: &Path) -> String {
    let ran = heap(cache, dump, &[]);
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// Lists the entries, without their stamps.
fn entries(cache: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(cache).unwrap().map(|e| e.unwrap().path());
    let mut entries: Vec<PathBuf> = all.filter(|p| p.extension().is_none()).collect();
    entries.sort();
    entries
}

fn plain(dump: &Path) -> String {
    crate::common::run(&["heap", "--no-local-files", dump.to_str().unwrap()]).out
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus").join(name)
}

#[test]
#[cfg(unix)]
fn the_second_command_uses_the_cached_dump() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("a/cache");
    let wanted = plain(&own_dump());
    assert_eq!(answer(&cache, &own_dump()), wanted);
    let kept = entries(&cache);
    assert_eq!((kept.len(), fs::read_dir(&cache).unwrap().count()), (1, 2));
    let before = kept[0].metadata().unwrap();
    for file in [&cache, &kept[0], &kept[0].with_extension("stamp")] {
        assert_eq!(file.metadata().unwrap().mode() & 0o077, 0, "{}", file.display());
    }
    // The name does not matter, only the contents do.
    let copy = folder.path().join("copy.zst");
    fs::copy(own_dump(), &copy).unwrap();
    assert_eq!(answer(&cache, &copy), wanted);
    let after = kept[0].metadata().unwrap();
    assert_eq!((before.ino(), before.ctime_nsec(), entries(&cache)), (after.ino(), after.ctime_nsec(), kept));
    // The limit on decompressed bytes applies to cached ones, too.
    let refused = heap(&cache, &own_dump(), &["--max-decompressed", "1M"]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("are larger than 1.0 MiB, the limit"));
}

#[test]
fn damage_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let wanted = answer(&cache, &own_dump());
    let kept = entries(&cache).remove(0);
    let whole = fs::read(&kept).unwrap();
    let stamp = kept.with_extension("stamp");
    let harm: [(&str, &dyn Fn()); 6] = [
        ("cut off", &|| write(&kept, &whole[..whole.len() / 2])),
        ("empty", &|| write(&kept, b"")),
        ("another", &|| {
            let mut other = whole.clone();
            other[whole.len() / 3] ^= 1;
            write(&kept, &other);
        }),
        ("no stamp", &|| fs::remove_file(&stamp).unwrap()),
        ("an invalid stamp", &|| write(&stamp, b"1 2 3")),
        ("only a stamp", &|| fs::remove_file(&kept).unwrap()),
    ];
    for (what, harm) in harm {
        harm();
        assert_eq!(answer(&cache, &own_dump()), wanted, "{what}");
        assert!(fs::read(&kept).unwrap() == whole, "{what}: it is not made again");
        assert_eq!(answer(&cache, &own_dump()), wanted, "{what}");
    }
    // A dump that is itself damaged is not cached.
    let cut = folder.path().join("cut.zst");
    let packed = fs::read(own_dump()).unwrap();
    fs::write(&cut, &packed[..packed.len() - 1000]).unwrap();
    assert_eq!(heap(&cache, &cut, &[]).status.code(), Some(5));
    assert_eq!(entries(&cache), [kept]);
}

/// Writes a file that is read-only.
fn write(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_entry_used_longest_ago_is_removed_first() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let dumps = ["net10-wks-leak-heap.before.dmp.zst", "net10-wks-leak-heap.after.dmp.zst", "net10-wks-deadlock-heap.dmp.zst"].map(corpus);
    let sizes = dumps.each_ref().map(|dump| zstd::decode_all(fs::read(dump).unwrap().as_slice()).unwrap().len());
    answer(&cache, &dumps[0]);
    let first = entries(&cache).remove(0);
    answer(&cache, &dumps[1]);
    assert_eq!(entries(&cache).len(), 2);
    let second = entries(&cache).into_iter().find(|e| *e != first).unwrap();
    // The first entry is used again, after the second.
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    for entry in [&first, &second] {
        fs::File::options().write(true).open(entry.with_extension("stamp")).unwrap().set_modified(long_ago).unwrap();
    }
    answer(&cache, &dumps[0]);
    let most = (sizes[0] + sizes[2]).to_string();
    assert_eq!(heap(&cache, &dumps[2], &["--cache-size", &most]).status.code(), Some(0));
    let left = entries(&cache);
    assert!(left.len() == 2 && left.contains(&first) && !left.contains(&second), "{left:?}");
    // A dump that does not fit is not cached and does not replace another one, but the command answers.
    let none = folder.path().join("none");
    assert_eq!(heap(&none, &dumps[0], &["--cache-size", "1K"]).status.code(), Some(0));
    assert_eq!(fs::read_dir(&none).unwrap().count(), 0);
}

#[test]
fn several_processes_share_it() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let wanted = plain(&own_dump());
    for _ in 0..3 {
        let all: Vec<_> = (0..4).map(|_| command(&cache, &own_dump(), &[]).stdout(std::process::Stdio::piped()).spawn().unwrap()).collect();
        for child in all {
            let ran = child.wait_with_output().unwrap();
            assert!(ran.status.success() && ran.stdout == wanted.as_bytes());
        }
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 2, "an entry and its stamp");
        fs::remove_dir_all(&cache).unwrap();
    }
}

#[test]
#[cfg(unix)]
fn a_folder_that_others_can_use_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let ran = heap(folder.path(), &own_dump(), &[]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("chmod 700"));
    let ran = heap(&own_dump(), &own_dump(), &[]);
    assert_eq!(ran.status.code(), Some(2));
}

#[test]
fn it_is_off_unless_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let run = |variable: Option<&str>| {
        let mut command = Command::new(GCDUMP);
        command.args(["heap", "--no-local-files"]).arg(own_dump()).env("HOME", home.path()).env_remove("XDG_CACHE_HOME");
        match variable {
            Some(value) => command.env("GCDUMP_CACHE", value),
            None => command.env_remove("GCDUMP_CACHE"),
        };
        assert!(command.output().unwrap().status.success());
        home.path().join(".cache/gcdump").is_dir()
    };
    assert!(!run(None) && !run(Some("off")) && !run(Some("")));
    assert!(cfg!(windows) || run(Some("auto")));
}
