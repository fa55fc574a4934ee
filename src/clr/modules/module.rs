//! A module, with the indices of its metadata.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use crate::base::hash::{Map, Set};
use crate::base::missed::{Kept, Missed};
use crate::base::{Addr, Budget, len64};
use crate::clr::metadata::Metadata;
use crate::clr::render::counted_levels;

/// Maximum types of a module that are found by name.
pub(super) const MAX_NAMES: u32 = 1 << 20;

/// Bytes of an entry of a hash table, about.
pub(super) const BYTES_OF_AN_ENTRY: u64 = 64;

/// Source of a module's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataOrigin {
    /// The image in the dump.
    Image,
    /// The metadata blob saved by the runtime for an emitted module.
    Dynamic,
    /// A file proven to be the one loaded by the process.
    File(PathBuf),
    /// A matching file supplied by the user, not proven by the dump.
    UnverifiedFile(PathBuf),
    /// None: types of the module have tokens but no names.
    None,
}

/// A module of the runtime.
#[derive(Debug)]
pub struct Module {
    /// Address of the `Module`.
    pub address: Addr,
    /// Path of its file in the process. Empty for emitted modules and in single-file programs.
    pub path: Option<String>,
    /// Name for display: file name, or assembly name without a file.
    pub name: Option<String>,
    /// Its metadata.
    pub metadata: Option<Box<Metadata>>,
    /// Source of the metadata.
    pub origin: MetadataOrigin,
    /// Files found but rejected as not the one loaded by the process, with the reason.
    pub rejected: Vec<(PathBuf, String)>,
    /// Whether edits of a running process (hot reload) added rows to its metadata, which its image does not have.
    pub(crate) edited: bool,
    /// Reads that failed when it was opened, and that no file makes up for.
    pub(super) missed: Option<Box<Missed>>,
    /// Indices of its metadata. A forged dump may have a hundred thousand modules without metadata.
    pub(super) found: OnceLock<Box<Found>>,
    pub(super) budget: Arc<Budget>,
    /// Whether it, or its index, would have taken too much.
    pub(super) cut: AtomicBool,
}

/// Indices of a module's metadata, each made when it is needed.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Types by full name.
    pub(super) by_name: OnceLock<Kept<Map<String, u32>>>,
    pub(super) siblings: Siblings,
}

impl Module {
    /// The name without `.dll` or `.exe`, as used before `!` in debuggers.
    pub fn simple_name(&self) -> Option<&str> {
        let name = self.name.as_deref()?;
        let stem = name.rsplit_once('.').filter(|(_, e)| e.eq_ignore_ascii_case("dll") || e.eq_ignore_ascii_case("exe"));
        Some(stem.map_or(name, |(s, _)| s))
    }

    /// The row of TypeDef with this full name: `Namespace.Outer+Inner`.
    pub fn type_def_named(&self, name: &str) -> Option<u32> {
        let metadata = self.metadata.as_ref()?;
        let by_name = self.found().by_name.get_or_init(|| Kept::of(|| self.named_type_defs(metadata)));
        by_name.get().get(name).copied()
    }

    pub(super) fn found(&self) -> &Found {
        self.found.get_or_init(Box::default)
    }

    /// The memory that it takes, in bytes, with the indices of its metadata.
    pub(super) fn bytes(&self) -> u64 {
        let text = [&self.name, &self.path]
            .into_iter()
            .flatten()
            .map(String::len)
            .fold(size_of::<Module>().saturating_add(size_of::<Metadata>()), usize::saturating_add);
        let indices = self.metadata.as_ref().map_or(0, |m| m.indexed()).saturating_mul(BYTES_OF_AN_ENTRY);
        len64(text).saturating_add(indices)
    }

    /// Rows that its metadata may be searched for.
    pub(super) fn steps(&self) -> u64 {
        self.metadata.as_ref().map_or(0, |m| m.indexed()).saturating_add(1)
    }

    pub(super) fn named_type_defs(&self, metadata: &Metadata) -> Map<String, u32> {
        let mut out = Map::default();
        for rid in 1..=metadata.type_defs().min(MAX_NAMES) {
            let mut read = 0;
            let name = counted_levels(metadata, rid, &mut read).and_then(|levels| {
                let mut levels = levels.into_iter();
                let first = levels.next()?.name;
                Some(levels.fold(first, |outer, level| outer + "+" + &level.name))
            });
            if !self.budget.steps(read.div_ceil(64).saturating_add(8)) {
                self.cut();
                break;
            }
            let Some(name) = name else { continue };
            let bytes = len64(name.len());
            if !self.budget.memory(bytes.saturating_add(BYTES_OF_AN_ENTRY)) {
                self.cut();
                break;
            }
            out.insert(name, rid);
        }
        out
    }
}

/// Names that several things in a type share.
pub(super) type Shared = Arc<Set<String>>;

/// Findings of a module, by row of the type.
#[derive(Debug, Default)]
pub(super) struct Siblings {
    pub(super) nested: OnceLock<Kept<Map<u32, Vec<u32>>>>,
    pub(super) known: Mutex<Map<u32, Kept<Shared>>>,
}
