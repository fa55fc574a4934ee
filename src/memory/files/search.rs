//! Finds candidates for module files and PDBs: in places that options name, at recorded paths, in single-file programs, and in other places
//! on this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bundle::{BundledFile, Bundles, check};
use super::identity::FileId;
use super::local::{LocalFiles, is_openable};
use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::base::{Addr, Arch, Collector, NoteKind, Os, file_name, len64, plural};
use crate::dump::{Bytes, DumpFile, Module};
use crate::memory::{Image, ImageFormat, Memory};
use crate::model::FilePlace;

/// Where to search for module files.
#[derive(Clone, Debug, Default)]
pub struct FileSearch {
    /// Folders that contain module files by name, and module files themselves (`--modules`).
    pub modules: Vec<PathBuf>,
    /// Folders that contain PDBs by name (`--symbols`), in addition to `modules`.
    pub symbols: Vec<PathBuf>,
    /// Root folder that contains module files under their recorded paths (`--sysroot`).
    pub sysroot: Option<PathBuf>,
    /// Whether recorded paths may be opened on this machine.
    pub recorded_paths: bool,
    /// Places on this machine that no option names; empty by default.
    pub local: Arc<LocalFiles>,
    /// Single-file programs that contain module files by name ([`FileSearch::of_process`]).
    pub bundles: Arc<Bundles>,
    /// Identities of the images that the container of the dump records ([`FileSearch::of_process`]).
    pub recorded: Arc<RecordedImages>,
}

/// Identities of images, and the architecture of the process, as the container of a dump records them.
#[derive(Debug, Default)]
pub struct RecordedImages {
    /// Time stamp and size of each image by load address. Only minidumps record them.
    stamps: Map<Addr, FileId>,
    arch: Option<Arch>,
}

/// A candidate for a module's file: a file on this machine, or in a single-file program.
#[derive(Clone, Debug)]
pub(crate) struct ModuleFile {
    path: PathBuf,
    place: FilePlace,
    /// The file in a single-file program; `None` for a file at `path`.
    within: Option<BundledFile>,
}

impl ModuleFile {
    /// Path of the file. For a file in a single-file program, the path of the program followed by the name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The place where the file was found.
    pub(crate) fn place(&self) -> FilePlace {
        self.place
    }

    /// Contents of the file.
    pub(crate) fn open(&self) -> Result<Arc<Bytes>, String> {
        match &self.within {
            Some(part) => part.open().map_err(|e| e.to_string()),
            None => Bytes::map_path(&self.path).map(Arc::new).map_err(|e| e.to_string()),
        }
    }
}

#[cfg(test)]
impl From<PathBuf> for ModuleFile {
    fn from(path: PathBuf) -> ModuleFile {
        ModuleFile { path, place: FilePlace::Given, within: None }
    }
}

impl FileSearch {
    /// Adapts this search to the process in `file`: adds the identities that the dump records, and the single-file programs to look into. These
    /// are the program recorded as `program`, and files that `--modules` or `$GCDUMP_MODULES` name. `most` is the user's memory limit in bytes.
    pub(crate) fn of_process(&self, program: Option<&str>, file: &DumpFile, most: Option<u64>) -> FileSearch {
        let own = program.map_or_else(Vec::new, |path| self.files(path, file.facts.os));
        let mut paths: Vec<PathBuf> = self.modules.iter().filter(|given| given.is_file()).cloned().collect();
        for path in own.into_iter().map(|(_, path)| path).chain(self.local.files().cloned()) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        let stamp = |m: &Module| {
            let size = u32::try_from(m.size).ok()?;
            Some((m.base, FileId::Stamp { timestamp: m.timestamp?, size }))
        };
        FileSearch {
            bundles: Arc::new(Bundles::new(paths, file.facts.file_bytes, most)),
            recorded: Arc::new(RecordedImages { stamps: file.modules.iter().filter_map(stamp).collect(), arch: Some(file.facts.arch) }),
            ..self.clone()
        }
    }

    /// Adds a note for each folder or file given with `--modules` that does not contain a file named like a module of the process.
    pub(crate) fn note_unused(&self, file: &DumpFile, notes: &Collector) {
        for given in &self.modules {
            if file.modules.iter().any(|m| self.is_in(given, &m.path)) {
                continue;
            }
            let (path, modules) = (given.display(), plural(len64(file.modules.len()), "module"));
            let what = match given.is_file() {
                false => format!(
                    "{path} holds no file named like one of the {modules} of the process: give the folder that contains the files, because \
                     its subfolders are not searched"
                ),
                true => match check(given) {
                    Ok(()) => continue,
                    Err(why) => format!("{path} is not named like one of the {modules} of the process, and {why}"),
                },
            };
            notes.add(NoteKind::ModuleMismatch, None, what);
        }
    }

    /// Whether there is a candidate for any module of the dump `file`, whose images are in `memory`.
    pub(crate) fn finds_any(&self, file: &DumpFile, memory: &Memory) -> bool {
        let os = file.facts.os;
        let local = |m: &Module| {
            self.local_files(&m.path, module_id(m, tried(|| Image::at(memory, m.base)).as_ref()).as_ref(), os).next().is_some()
        };
        self.modules.iter().any(|given| given.is_file()) || file.modules.iter().any(|m| !self.files(&m.path, os).is_empty() || local(m))
    }

    /// Whether `given` contains a file, or is a file, with the name of the module recorded as `path`.
    pub(crate) fn is_in(&self, given: &Path, path: &str) -> bool {
        let name = file_name(path);
        let file = |name: &str| !name.is_empty() && (given.join(name).is_file() || is_file_named(given, name));
        file(name) || file(&name.to_ascii_lowercase())
    }

    /// Candidates for the PDB with the recorded `path`, best first.
    pub(crate) fn symbol_candidates(&self, path: &str, os: Os) -> Vec<ModuleFile> {
        let modules = self.symbols.iter().chain(&self.modules).cloned().collect();
        FileSearch { modules, ..self.clone() }.candidates(path, None, os)
    }

    /// The identity of the image at `base`, if the container records it.
    pub(crate) fn stamp_at(&self, base: Addr) -> Option<&FileId> {
        self.recorded.stamps.get(&base)
    }

    /// Candidates for the PDB of the module recorded as `path`. The file name is that of the module with the extension `pdb`, or `named`, the name
    /// that the module records. Files with the identity `id` in caches come last.
    pub(crate) fn pdb_candidates(&self, path: Option<&str>, named: Option<&str>, id: Option<&FileId>, os: Os) -> Vec<ModuleFile> {
        let beside = |path: &str| {
            let stem = path.rsplit_once('.').filter(|(_, e)| e.eq_ignore_ascii_case("dll") || e.eq_ignore_ascii_case("exe"));
            format!("{}.pdb", stem.map_or(path, |(stem, _)| stem))
        };
        let beside = path.map(beside);
        let names: Vec<&str> = beside.iter().map(String::as_str).chain(named).collect();
        let by_name = names.iter().flat_map(|name| self.symbol_candidates(name, os));
        let kept = names.iter().flat_map(|name| self.local.by_identity(Some(file_name(name)), id));
        let kept = kept.filter(|(_, path)| is_file(path)).map(|(place, path)| ModuleFile { path, place, within: None });
        let mut out: Vec<ModuleFile> = Vec::new();
        for file in by_name.chain(kept) {
            if out.iter().all(|known| known.path != file.path) {
                out.push(file);
            }
        }
        out
    }

    /// Candidates for the file of the module recorded as `path`, best first: files that options name, the recorded path, files in single-file
    /// programs, then files in the places of `local`. Most of these places are used only if the identity `id` is known.
    pub(crate) fn candidates(&self, path: &str, id: Option<&FileId>, os: Os) -> Vec<ModuleFile> {
        let file = |(place, path)| ModuleFile { path, place, within: None };
        let mut out: Vec<ModuleFile> = self.files(path, os).into_iter().map(file).collect();
        out.extend(self.bundles.named(file_name(path)).into_iter().map(|(path, part)| {
            let given = self.modules.iter().any(|given| path.starts_with(given));
            ModuleFile { path, place: if given { FilePlace::Given } else { FilePlace::Bundle }, within: Some(part) }
        }));
        out.extend(self.local_files(path, id, os).map(file));
        out
    }

    /// Candidates in the places of `local`, if they are regular files.
    fn local_files(&self, path: &str, id: Option<&FileId>, os: Os) -> impl Iterator<Item = (FilePlace, PathBuf)> {
        self.local.candidates(path, id, (os, self.recorded.arch.unwrap_or(Arch::Unknown))).into_iter().filter(|(_, path)| is_file(path))
    }

    /// Candidates in places that options name, and at the recorded `path`. Only regular files are returned: a dump may name a device or a FIFO,
    /// and opening one could block.
    fn files(&self, path: &str, os: Os) -> Vec<(FilePlace, PathBuf)> {
        let name = file_name(path);
        let mut out = Vec::new();
        if !name.is_empty() && name != "." && name != ".." {
            out.extend(self.modules.iter().map(|given| if is_file_named(given, name) { given.clone() } else { given.join(name) }));
            if os == Os::Windows {
                out.extend(self.modules.iter().map(|dir| dir.join(name.to_ascii_lowercase())));
            }
        }
        let mut out: Vec<(FilePlace, PathBuf)> = out.into_iter().map(|path| (FilePlace::Given, path)).collect();
        // Components such as ".." are dropped, because the path must stay below the root folder `sysroot`.
        let unix = if os == Os::Windows { path.replace('\\', "/") } else { path.to_string() };
        let unix = unix.split_once(":/").map_or(unix.as_str(), |(_drive, rest)| rest);
        let relative: PathBuf = Path::new(unix)
            .components()
            .filter_map(|c| match c {
                std::path::Component::Normal(part) => Some(part),
                _ => None,
            })
            .collect();
        if let Some(root) = &self.sysroot {
            out.push((FilePlace::Sysroot, root.join(&relative)));
        }
        if self.recorded_paths && is_openable(path, os, cfg!(windows)) {
            out.push((FilePlace::Recorded, PathBuf::from(path)));
        }
        out.retain(|(_, p)| is_file(p));
        out.dedup_by(|a, b| a.1 == b.1);
        out
    }
}

/// Whether `path` is a regular file. The file is not opened.
fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file())
}

/// The identity of the file of `module`, from the module list or from `image`, the image in memory; `None` if neither has one.
pub(crate) fn module_id(module: &Module, image: Option<&Image>) -> Option<FileId> {
    let format = image.map(|i| i.format);
    let timestamp = module.timestamp.or_else(|| image.filter(|i| i.format == ImageFormat::Pe)?.timestamp);
    if let Some(timestamp) = timestamp.filter(|_| format != Some(ImageFormat::Elf)) {
        let size = if module.timestamp.is_some() { module.size } else { image?.range.len() };
        return Some(FileId::Stamp { timestamp, size: u32::try_from(size).ok()? });
    }
    let build_id = image.and_then(|i| i.build_id.as_deref()).or(module.build_id.as_deref());
    FileId::of_build_id(build_id.filter(|_| format != Some(ImageFormat::Pe))?)
}

/// Whether `given` is a file called `name`, ignoring the case of ASCII letters.
fn is_file_named(given: &Path, name: &str) -> bool {
    given.file_name().is_some_and(|own| own.eq_ignore_ascii_case(name)) && given.is_file()
}
