//! Roots that Mono has registered with SGen: static fields, thread statics, and references in Mono's structures.

use super::reader::Reader;
use crate::base::Addr;
use crate::base::hash::Set;
use crate::data::{SgenHashTable, SgenRoot};

/// Tables of roots: normal ones, pinned ones, and those with write barriers.
pub(super) const ROOT_TABLES: u64 = 3;
/// Mask of the kind in a root descriptor, and two of the kinds.
const KIND: u64 = 7;
const BITMAP: u64 = 1;
const USER: u64 = 4;
/// Sources of roots (`MonoGCRootSource`).
const STATIC: u32 = 3;
const THREAD_STATIC: u32 = 4;
const CONTEXT_STATIC: u32 = 5;
const HANDLE: u32 = 6;

/// Source of a registered root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SgenSource {
    /// Static fields of a class.
    Static,
    /// Static fields of one thread or context.
    ThreadStatic,
    /// A structure of the runtime.
    Runtime,
}

/// A reference in a registered root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SgenReference {
    pub(crate) source: SgenSource,
    /// Start of the root, for example of the static fields of a class.
    pub(crate) start: Addr,
    /// Address of the reference.
    pub(crate) at: Addr,
    pub(crate) object: Addr,
}

/// The references of all registered roots.
#[derive(Clone, Debug, Default)]
pub(crate) struct SgenRoots {
    pub(crate) references: Vec<SgenReference>,
    /// Number of roots that were not read because only a function of Mono can find their references.
    pub(crate) unread: u64,
}

impl Reader<'_> {
    pub(super) fn roots(&mut self, tables: Addr) -> SgenRoots {
        let (mut out, mut seen) = (SgenRoots::default(), Set::default());
        let word = self.memory.ptr_bytes();
        for kind in 0..ROOT_TABLES {
            let at = tables.element(kind, self.hash_bytes);
            let (Some(table), Some(size)) =
                (self.hash.get(self.memory, at, SgenHashTable::table), self.hash.get(self.memory, at, SgenHashTable::Slots))
            else {
                continue;
            };
            for bucket in 0..u64::from(size) {
                let Ok(mut entry) = self.memory.ptr(table.element(bucket, word)) else { break };
                while !entry.is_null() && seen.insert(entry) && self.budget.steps(1) && self.budget.memory(32) {
                    self.root(entry, &mut out);
                    let Some(next) = self.root.get(self.memory, entry, SgenRoot::next) else { break };
                    entry = next;
                }
            }
        }
        out
    }

    fn root(&mut self, entry: Addr, out: &mut SgenRoots) -> Option<()> {
        let field = |field| self.root.get(self.memory, entry, field);
        let (start, end) = (field(SgenRoot::start)?, field(SgenRoot::end)?);
        let descriptor = self.root.get(self.memory, entry, SgenRoot::descriptor)?;
        let source = match self.root.get(self.memory, entry, SgenRoot::source)? {
            HANDLE => return None,
            STATIC => SgenSource::Static,
            THREAD_STATIC | CONTEXT_STATIC => SgenSource::ThreadStatic,
            _ => SgenSource::Runtime,
        };
        if descriptor & KIND == USER {
            out.unread = out.unread.saturating_add(1);
            return None;
        }
        let word = self.memory.ptr_bytes();
        let words = end.since(start)?.checked_div(word)?;
        for i in 0..words {
            let is_reference = match descriptor & KIND {
                BITMAP => descriptor.checked_shr(u32::try_from(i.checked_add(3)?).ok()?).is_some_and(|bits| bits & 1 != 0),
                // In roots of other kinds, every word that points to an object is treated as a reference.
                _ => true,
            };
            if !self.budget.steps(1) {
                return None;
            }
            let at = start.element(i, word);
            let Some(object) = self.memory.ptr(at).ok().filter(|o| is_reference && !o.is_null() && o.is_aligned(word)) else { continue };
            if self.budget.memory(64) && self.size(object).is_some() {
                out.references.push(SgenReference { source, start, at, object });
            }
        }
        Some(())
    }
}
