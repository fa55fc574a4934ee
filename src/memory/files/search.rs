//! Where module files are looked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bundle::{Bundles, Part, check};
use crate::base::{Collector, NoteKind, Os, file_name, len64, plural};
use crate::dump::{Bytes, DumpFile};

/// Where to look for module files.
#[derive(Clone, Debug, Default)]
pub struct FileSearch {
    /// Directories that hold module files by name, and module files themselves (`--modules`).
    pub modules: Vec<PathBuf>,
    /// Directories that hold PDBs by name (`--symbols`), beside those with module files.
    pub symbols: Vec<PathBuf>,
    /// Root directory that holds module files under their recorded paths (`--sysroot`).
    pub sysroot: Option<PathBuf>,
    /// Whether recorded paths may be opened on this machine.
    pub recorded_paths: bool,
    /// Single-file programs that hold module files by name ([`FileSearch::of_process`]).
    pub bundles: Arc<Bundles>,
}

/// A file that may be a module's: on this machine, or in a single-file program.
#[derive(Clone, Debug)]
pub(crate) struct ModuleFile {
    path: PathBuf,
    within: Option<Part>,
}

impl ModuleFile {
    /// Its path; within a single-file program, that of the program and the name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its contents.
    pub(crate) fn open(&self) -> Result<Arc<Bytes>, String> {
        match &self.within {
            Some(part) => part.open().map_err(|e| e.to_string()),
            None => Bytes::map_path(&self.path).map(Arc::new).map_err(|e| e.to_string()),
        }
    }
}

impl From<PathBuf> for ModuleFile {
    fn from(path: PathBuf) -> ModuleFile {
        ModuleFile { path, within: None }
    }
}

impl FileSearch {
    /// This search for one process: it extends to the program, recorded as `program`, and to given files, if they are single-file programs.
    /// `most`: the user's memory limit.
    pub(crate) fn of_process(&self, program: Option<&str>, file: &DumpFile, most: Option<u64>) -> FileSearch {
        let own = program.map_or_else(Vec::new, |path| self.files(path, file.facts.os));
        let mut paths: Vec<PathBuf> = self.modules.iter().filter(|given| given.is_file()).cloned().collect();
        paths.extend(own.into_iter().filter(|path| !self.modules.contains(path)));
        FileSearch { bundles: Arc::new(Bundles::new(paths, file.facts.file_bytes, most)), ..self.clone() }
    }

    /// Notes folders and files given with `--modules` that hold no file named like a module of the process.
    pub(crate) fn note_unused(&self, file: &DumpFile, notes: &Collector) {
        for given in &self.modules {
            if file.modules.iter().any(|m| self.is_in(given, &m.path)) {
                continue;
            }
            let (path, modules) = (given.display(), plural(len64(file.modules.len()), "module"));
            let what = match given.is_file() {
                false => format!(
                    "{path} holds no file named like one of the {modules} of the process: --modules takes the folder with the files itself, \
                     and does not search those in it"
                ),
                true => match check(given) {
                    Ok(()) => continue,
                    Err(why) => format!("{path} is not named like one of the {modules} of the process, and {why}"),
                },
            };
            notes.add(NoteKind::ModuleMismatch, None, what);
        }
    }

    /// Whether there is a file that may be a module of `file`.
    pub(crate) fn finds_any(&self, file: &DumpFile) -> bool {
        self.modules.iter().any(|given| given.is_file()) || file.modules.iter().any(|m| !self.files(&m.path, file.facts.os).is_empty())
    }

    /// Whether `given` holds a file, or is one, with the name of the module recorded as `path`.
    pub(crate) fn is_in(&self, given: &Path, path: &str) -> bool {
        let name = file_name(path);
        let file = |name: &str| !name.is_empty() && (given.join(name).is_file() || is_file_named(given, name));
        file(name) || file(&name.to_ascii_lowercase())
    }

    /// Candidate files for the PDB that would lie beside its module as `path`, best first.
    pub(crate) fn symbol_candidates(&self, path: &str, os: Os) -> Vec<ModuleFile> {
        let modules = self.symbols.iter().chain(&self.modules).cloned().collect();
        FileSearch { modules, ..self.clone() }.candidates(path, os)
    }

    /// Candidate files for the PDB of the module recorded as `path`: beside it, or under the name that the module has for it.
    pub(crate) fn pdb_candidates(&self, path: Option<&str>, named: Option<&str>, os: Os) -> Vec<ModuleFile> {
        let beside = |path: &str| {
            let stem = path.rsplit_once('.').filter(|(_, e)| e.eq_ignore_ascii_case("dll") || e.eq_ignore_ascii_case("exe"));
            format!("{}.pdb", stem.map_or(path, |(stem, _)| stem))
        };
        let mut out: Vec<ModuleFile> = Vec::new();
        for name in path.map(beside).iter().map(String::as_str).chain(named) {
            for file in self.symbol_candidates(name, os) {
                if out.iter().all(|known| known.path != file.path) {
                    out.push(file);
                }
            }
        }
        out
    }

    /// Candidate files for the module recorded as `path`, best first: those on this machine, then those in single-file programs.
    pub(crate) fn candidates(&self, path: &str, os: Os) -> Vec<ModuleFile> {
        let mut out: Vec<ModuleFile> = self.files(path, os).into_iter().map(ModuleFile::from).collect();
        out.extend(self.bundles.named(file_name(path)).into_iter().map(|(path, part)| ModuleFile { path, within: Some(part) }));
        out
    }

    /// Candidate files on this machine. Regular files only: a dump may name a device or a pipe, and opening one could block.
    fn files(&self, path: &str, os: Os) -> Vec<PathBuf> {
        let name = file_name(path);
        let mut out = Vec::new();
        if !name.is_empty() && name != "." && name != ".." {
            out.extend(self.modules.iter().map(|given| if is_file_named(given, name) { given.clone() } else { given.join(name) }));
            if os == Os::Windows {
                out.extend(self.modules.iter().map(|dir| dir.join(name.to_ascii_lowercase())));
            }
        }
        // ".." in a recorded path must not escape the given root.
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
            out.push(root.join(&relative));
        }
        if self.recorded_paths && os == Os::Linux && path.starts_with('/') {
            out.push(PathBuf::from(path));
        }
        out.retain(|p| p.metadata().is_ok_and(|m| m.is_file()));
        out.dedup();
        out
    }
}

/// Whether `given` is a file called `name`.
fn is_file_named(given: &Path, name: &str) -> bool {
    given.file_name().is_some_and(|own| own.eq_ignore_ascii_case(name)) && given.is_file()
}
