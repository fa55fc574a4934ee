//! Default choice of the dump.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use super::exit::UsageError;
use crate::base::glob;
use crate::dump::{Compression, FileKind, regular, sniff, sniff_inside};

/// Maximum files to inspect in a folder.
const MAX_FILES: usize = 10_000;

/// The chosen dump, and a remark for stderr.
pub(super) struct Picked {
    pub(super) path: PathBuf,
    pub(super) remark: Option<String>,
}

/// Whether `$GCDUMP_DUMP` names a dump.
pub(super) fn is_set() -> bool {
    std::env::var_os("GCDUMP_DUMP").is_some_and(|name| !name.is_empty())
}

/// Returns the dump of commands without one: `$GCDUMP_DUMP`, else the only dump in `folder`.
pub(super) fn default_dump(folder: &Path) -> Option<PathBuf> {
    pick(None, std::env::var_os("GCDUMP_DUMP").map(PathBuf::from), folder).ok().map(|picked| picked.path)
}

/// Chooses the given dump, else `$GCDUMP_DUMP`, else the only dump in `folder`.
pub(super) fn pick(given: Option<&Path>, variable: Option<PathBuf>, folder: &Path) -> Result<Picked, UsageError> {
    if let Some(path) = given {
        return Ok(Picked { path: path.into(), remark: None });
    }
    if let Some(path) = variable.filter(|p| !p.as_os_str().is_empty()) {
        let remark = Some(format!("using {} ($GCDUMP_DUMP)", path.display()));
        return Ok(Picked { path, remark });
    }
    let mut found = dumps_in(folder);
    found.sort();
    match found.as_slice() {
        [] => Err(UsageError("no dump given, GCDUMP_DUMP is not set, and there is no dump in the current folder".into())),
        [only] => Ok(Picked { path: only.clone(), remark: Some(format!("using {}, the only dump in the current folder", only.display())) }),
        many => {
            let mut text = format!("no dump given, and the current folder contains {}:", many.len());
            for path in many.iter().take(20) {
                text.push_str(&format!("\n  {}", path.display()));
            }
            if many.len() > 20 {
                text.push_str("\n  …");
            }
            Err(UsageError(text))
        }
    }
}

/// Returns the files in `folder` that are dumps.
pub(super) fn dumps_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let files = entries.take(MAX_FILES).filter_map(Result::ok).map(|e| e.path());
    files.filter(|p| is_dump(p)).map(|p| p.strip_prefix(folder).map(Path::to_path_buf).unwrap_or(p)).collect()
}

/// Expands `pattern` unless it is an existing path: `*` and `?` match parts of names as in a shell. This is needed because shells do not expand
/// quoted patterns, and shells of Windows do not expand any.
fn expanded(pattern: &Path) -> Vec<PathBuf> {
    let has_wildcards = |part: &std::ffi::OsStr| part.to_str().is_some_and(|p| p.contains(['*', '?']));
    if pattern.exists() || !pattern.iter().any(has_wildcards) {
        return vec![pattern.to_path_buf()];
    }
    let mut found = vec![PathBuf::new()];
    for part in pattern.iter() {
        let Some(wanted) = part.to_str().filter(|_| has_wildcards(part)) else {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        let inside = |folder: PathBuf| {
            let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder.as_path() };
            let names = fs::read_dir(listed).into_iter().flatten().filter_map(|e| e.ok()?.file_name().into_string().ok());
            let names = names.filter(|name| glob(wanted, name) && (wanted.starts_with('.') || !name.starts_with('.')));
            names.map(|name| folder.join(name)).collect::<Vec<_>>()
        };
        found = found.into_iter().flat_map(inside).take(MAX_FILES).collect();
    }
    found.retain(|path| path.is_dir() || is_dump(path) || is_named_dump(path));
    if found.is_empty() { vec![pattern.to_path_buf()] } else { found }
}

/// Returns the dumps among `paths` and the dumps in folders among `paths`, each dump once. A file named explicitly is taken as a dump.
pub(super) fn all_dumps(paths: &[PathBuf]) -> std::io::Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for path in paths.iter().flat_map(|path| expanded(path)) {
        let path = &path;
        if !path.is_dir() {
            out.push(path.clone());
            continue;
        }
        let entries: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
        out.extend(entries.into_iter().map(|e| e.path()).filter(|p| is_dump(p) || is_named_dump(p)));
    }
    out.sort();
    out.dedup();
    Ok(out)
}

/// Whether a file has the extension of a dump. Such a file is not skipped if its contents do not match: opening it then reports an error.
fn is_named_dump(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|e| ["dmp", "mdmp", "core"].iter().any(|known| e.eq_ignore_ascii_case(known)))
}

/// Detects the format of an open file from its first bytes.
fn kind_of(file: &File) -> Option<FileKind> {
    let mut head = Vec::new();
    file.take(4096).read_to_end(&mut head).ok()?;
    Some(sniff(&head, file.metadata().ok()?.len()))
}

/// Detects the format of a regular file.
fn kind(path: &Path) -> Option<FileKind> {
    kind_of(&regular(path).ok()?)
}

/// Whether a file is a dump, or a compressed file that may contain one.
pub(super) fn could_be_dump(path: &Path) -> bool {
    kind(path).is_some_and(|kind| kind.is_dump() || kind.is_compressed())
}

/// Whether a file is compressed.
pub(super) fn is_compressed(path: &Path) -> bool {
    kind(path).is_some_and(|kind| kind.is_compressed())
}

/// Whether a file is a dump, or a compressed dump.
pub(super) fn is_dump(path: &Path) -> bool {
    regular(path).ok().and_then(|file| opened_dump(&file, path)).is_some()
}

/// Returns whether an open file is a compressed dump (`true`) or an uncompressed dump (`false`); `None` if it is not a dump. `path` is the name of
/// the file.
pub(super) fn opened_dump(mut file: &File, path: &Path) -> Option<bool> {
    let kind = kind_of(file)?;
    let compression = match kind {
        FileKind::Zstd => Compression::Zstd,
        FileKind::Gzip => Compression::Gzip,
        _ => return kind.is_dump().then_some(false),
    };
    file.rewind().ok()?;
    // The contents of a damaged file are unknown, so its name decides. Opening the file reports the damage.
    let dump = sniff_inside(file, compression).map_or_else(|| is_named_like_a_dump(path), FileKind::is_dump);
    dump.then_some(true)
}

fn is_named_like_a_dump(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    ["dmp", "mdmp", "core", "dump"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_expand_as_in_a_shell() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a/1.dmp", "a/2.dmp", "b/1.dmp", "b/x[1].dmp", "b/.hidden.dmp", "notes.txt"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"MDMP\x93\xa7\0\0 and some more bytes to be long enough for a header").unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            let all = all_dumps(&[dir.path().join(pattern)]).unwrap();
            all.iter().map(|p| p.strip_prefix(dir.path()).unwrap().to_str().unwrap().replace('\\', "/")).collect()
        };
        assert_eq!(found("*/1.dmp"), ["a/1.dmp", "b/1.dmp"]);
        assert_eq!(found("a/?.dmp"), ["a/1.dmp", "a/2.dmp"]);
        assert_eq!(found("?/*"), ["a/1.dmp", "a/2.dmp", "b/1.dmp", "b/x[1].dmp"]);
        assert_eq!(found("b"), ["b/.hidden.dmp", "b/1.dmp", "b/x[1].dmp"]);
        assert_eq!(found("b/x[1].dmp"), ["b/x[1].dmp"]);
        assert_eq!(found("c/*.dmp"), ["c/*.dmp"], "a pattern without a match is kept");
        let twice = all_dumps(&[dir.path().join("*/1.dmp"), dir.path().join("a")]).unwrap();
        assert_eq!(twice.len(), 3);
    }

    #[test]
    fn the_only_dump_is_chosen_and_several_dumps_are_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let missing = pick(None, None, dir.path()).err().unwrap();
        assert!(missing.0.contains("no dump in the current folder"));
        let minidump = b"MDMP\x93\xa7\0\0 and some more bytes to be long enough for a header";
        fs::write(dir.path().join("a.dmp"), minidump).unwrap();
        fs::write(dir.path().join("notes.txt"), "hello").unwrap();
        fs::write(dir.path().join("data.gz"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03").unwrap();
        fs::write(dir.path().join("core.json.zst"), zstd::encode_all(b"{}".as_slice(), 1).unwrap()).unwrap();
        let picked = pick(None, None, dir.path()).unwrap();
        assert_eq!(picked.path, Path::new("a.dmp"));
        assert!(picked.remark.unwrap().contains("only dump"));
        fs::write(dir.path().join("b.zst"), zstd::encode_all(minidump.as_slice(), 1).unwrap()).unwrap();
        let several = pick(None, None, dir.path()).err().unwrap().0;
        assert!(several.contains("a.dmp") && several.contains("b.zst") && !several.contains("json"));
        assert_eq!(pick(Some(Path::new("x")), None, dir.path()).unwrap().path, Path::new("x"));
        assert_eq!(pick(None, Some("v".into()), dir.path()).unwrap().path, Path::new("v"));
    }
}
