//! Locates the dump and prepares the options to open it with.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::args::Config;
use super::cache::{Folder, module_cache};
use super::exit::UsageError;
use super::line::STANDARD_INPUT;
use super::pick::pick;
use super::progress::Bar;
use super::standard_input::Spool;
use super::streams::Streams;
use crate::base::{Limits, in_units};
use crate::contract::Overlay;
use crate::dump::{Cache, regular};
use crate::heapgraph::IndexUse;
use crate::memory::{FileSearch, LocalFiles};
use crate::model::Carve;
use crate::session::OpenOptions;

/// The path of the dump and the options to open it with.
pub(super) struct Opening {
    pub(super) path: PathBuf,
    pub(super) options: OpenOptions,
    /// The temporary file at that path, if the dump came from standard input.
    pub(super) spool: Option<Spool>,
}

/// Returns an error for the path of an option: it does not exist, or it is not the expected kind of file, as `wrong` says.
fn no_path(path: &Path, wrong: &str) -> UsageError {
    UsageError(match path.symlink_metadata() {
        Err(e) if e.kind() == ErrorKind::NotFound => format!("{} does not exist", path.display()),
        _ => format!("{} {wrong}", path.display()),
    })
}

impl Opening {
    /// Locates the dump: as given, from standard input for `-`, `$GCDUMP_DUMP`, or the only dump in the current folder.
    pub(super) fn prepare(config: &Config, given: Option<PathBuf>, streams: &mut Streams<'_>) -> Result<Opening> {
        let variable = std::env::var_os("GCDUMP_DUMP").map(PathBuf::from);
        let picked = pick(given.as_deref(), variable, Path::new("."))?;
        if let Some(remark) = &picked.remark {
            streams.say(&format!("gcdump: {remark}"))?;
        }
        let mut options = Opening::options(config, streams)?;
        let is_input = picked.path.as_os_str() == STANDARD_INPUT;
        let spool = if is_input { Some(Spool::of_standard_input(config.max_decompressed)?) } else { None };
        options.standard_input = spool.as_ref().map(Spool::path);
        let path = options.standard_input.clone().unwrap_or(picked.path);
        Ok(Opening { path, options, spool })
    }

    /// Returns the options for opening any dump.
    pub(super) fn options(config: &Config, streams: &Streams<'_>) -> Result<OpenOptions> {
        for given in &config.modules {
            if !(given.is_dir() || given.is_file()) {
                return Err(no_path(given, "is neither a folder nor a file").into());
            }
        }
        for dir in config.symbols.iter().chain(&config.sysroot) {
            if !dir.is_dir() {
                return Err(no_path(dir, "is not a folder").into());
            }
        }
        let limits = Limits { decompressed_bytes: config.max_decompressed, max_memory: config.max_memory, ..Limits::default() };
        let mut options = OpenOptions {
            overlays: config.overlay.iter().map(|p| overlay(p)).collect::<Result<_>>()?,
            search: FileSearch {
                modules: config.modules.clone(),
                symbols: config.symbols.clone(),
                sysroot: config.sysroot.clone(),
                recorded_paths: !config.no_local_files,
                local: Arc::new(if config.no_local_files { LocalFiles::default() } else { local_files() }),
                ..FileSearch::default()
            },
            limits,
            carve: config.carve,
            index: match &config.index {
                // An index next to the dump comes from the same, perhaps untrusted, source. `--no-local-files` therefore excludes it.
                IndexUse::Auto if config.no_local_files || config.carve == Carve::Always => IndexUse::None,
                asked => asked.clone(),
            },
            cache: Folder::of(&config.cache, config.cache_size)?.map(|folder| Arc::new(folder) as Arc<dyn Cache>),
            ..OpenOptions::default()
        };
        if streams.err_screen.terminal {
            options.progress = Some(Arc::new(Bar::default()));
        }
        Ok(options)
    }
}

/// Returns the folders of this machine that contain module files.
fn local_files() -> LocalFiles {
    LocalFiles::of_environment(|name| std::env::var_os(name), module_cache())
}

fn overlay(path: &Path) -> Result<Overlay> {
    let text = read_small(path, "overlay")?;
    let parsed = Overlay::parse(&text, true);
    parsed.map_err(|e| UsageError(format!("{} is not an overlay: {e}", path.display())).into())
}

/// `text` without the byte order mark that editors on Windows write at the start of UTF-8 files.
pub(super) fn without_mark(mut text: Vec<u8>) -> Vec<u8> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    if text.starts_with(MARK) {
        text.drain(..MARK.len());
    }
    text
}

/// Reads a small file named on the command line; `what` describes it in errors.
pub(super) fn read_small(path: &Path, what: &str) -> Result<Vec<u8>> {
    /// The largest bundled overlay has 14 KB.
    const MAX: u64 = 4 << 20;
    let mut text = Vec::new();
    let read = regular(path).and_then(|file| file.take(MAX.saturating_add(1)).read_to_end(&mut text));
    let read = read.with_context(|| UsageError(format!("reading the {what} {}", path.display())))?;
    if u64::try_from(read).is_ok_and(|n| n <= MAX) {
        return Ok(without_mark(text));
    }
    Err(UsageError(format!("{} is too large for the {what}: more than {}", path.display(), in_units(MAX))).into())
}
