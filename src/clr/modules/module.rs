//! A module, with indices of its metadata.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use crate::base::hash::{Map, Set};
use crate::base::missed::{Kept, Missed};
use crate::base::{Addr, Budget, len64};
use crate::clr::metadata::Metadata;
use crate::clr::refusal::Refusal;
use crate::clr::render::counted_levels;

/// Maximum number of types of a module in the index of names.
pub(super) const MAX_NAMES: u32 = 1 << 20;

/// Approximate size of a hash table entry in bytes.
pub(super) const BYTES_OF_AN_ENTRY: u64 = 64;

/// Source of a module's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataOrigin {
    /// The image in the dump.
    Image,
    /// The metadata blob that the runtime saved for a dynamic module.
    Dynamic,
    /// A file that is proven to be the loaded file.
    File(PathBuf),
    /// A file that the user specified, which does not contradict the dump but is not proven.
    UnverifiedFile(PathBuf),
    /// No metadata was found, so the types of the module have tokens but no names.
    None,
}

/// A module of the runtime.
#[derive(Debug)]
pub struct Module {
    /// Address of the `Module`.
    pub address: Addr,
    /// Path of the module's file in the process. Empty for dynamic modules and in single-file programs.
    pub path: Option<String>,
    /// Name to display: the file name, or the assembly name if the module has no file.
    pub name: Option<String>,
    /// Metadata of the module.
    pub metadata: Option<Box<Metadata>>,
    /// Source of the metadata.
    pub origin: MetadataOrigin,
    /// Files that were found but rejected, with the reason.
    pub rejected: Vec<(PathBuf, Refusal)>,
    /// Whether hot reload added rows to the metadata that the image does not have.
    pub(crate) edited: bool,
    /// Failed reads of the module's data that no file compensates for.
    pub(super) missed: Option<Box<Missed>>,
    /// Indices of the metadata, boxed because a forged dump may have a hundred thousand modules without metadata.
    pub(super) found: OnceLock<Box<Found>>,
    pub(super) budget: Arc<Budget>,
    /// Whether the module or its index exceeded the budget.
    pub(super) cut: AtomicBool,
}

/// Indices of a module's metadata, each built when it is needed.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Types by full name.
    pub(super) by_name: OnceLock<Kept<Map<String, u32>>>,
    pub(super) siblings: Siblings,
}

impl Module {
    /// The name without `.dll` or `.exe`, which debuggers write before `!`.
    pub fn simple_name(&self) -> Option<&str> {
        let name = self.name.as_deref()?;
        let stem = name.rsplit_once('.').filter(|(_, e)| e.eq_ignore_ascii_case("dll") || e.eq_ignore_ascii_case("exe"));
        Some(stem.map_or(name, |(s, _)| s))
    }

    /// The row in TypeDef with this full name: `Namespace.Outer+Inner`.
    pub fn type_def_named(&self, name: &str) -> Option<u32> {
        let metadata = self.metadata.as_ref()?;
        let by_name = self.found().by_name.get_or_init(|| Kept::of(|| self.named_type_defs(metadata)));
        by_name.get().get(name).copied()
    }

    pub(super) fn found(&self) -> &Found {
        self.found.get_or_init(Box::default)
    }

    /// Memory used by the module and the index of its metadata, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let text = [&self.name, &self.path]
            .into_iter()
            .flatten()
            .map(String::len)
            .fold(size_of::<Module>().saturating_add(size_of::<Metadata>()), usize::saturating_add);
        let indices = self.metadata.as_ref().map_or(0, |m| m.indexed()).saturating_mul(BYTES_OF_AN_ENTRY);
        len64(text).saturating_add(indices)
    }

    /// Cost of indexing the metadata, in steps.
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

/// Source names that several members of a type share.
pub(super) type Shared = Arc<Set<String>>;

/// Nested types, and source names that several members share, by row of the type in TypeDef.
#[derive(Debug, Default)]
pub(super) struct Siblings {
    pub(super) nested: OnceLock<Kept<Map<u32, Vec<u32>>>>,
    pub(super) known: Mutex<Map<u32, Kept<Shared>>>,
}
