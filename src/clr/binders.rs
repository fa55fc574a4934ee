//! Which load context a module belongs to: by the binder of its assembly, which the `_nativeAssemblyLoadContext` of the context points to.
//!
//! The descriptors of .NET 8 and 9 do not tell where the binder is. It is found by its shape then: the words of a `PEAssembly`, and those
//! of what they point to, that lead to the binder of a collectible context in each collectible module, and in no other module. Measured on
//! .NET 8: word 7 of the `PEAssembly` points to the binder's own assembly, word 4 of which is the binder; on .NET 10 word 8 is the binder
//! itself, as described, and the way of .NET 8 leads to the same one.

use super::loader::Loader;
use crate::base::Addr;
use crate::base::hash::Set;
use crate::base::missed::tried;

/// Words of a structure that are looked at.
const WORDS: u64 = 24;

/// How a `PEAssembly` leads to its binder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the descriptor.
    Described,
    At(u64),
    /// In what the first word points to.
    Behind(u64, u64),
}

/// Finds the binders of modules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binders<'l> {
    loader: &'l Loader,
    way: Way,
}

impl<'l> Binders<'l> {
    /// Binds to the descriptor, or finds the way: `collectible` are modules that belong to one of `contexts`, or to a dynamic assembly that
    /// has its own loader allocator; `others` belong to none of them. `None` if that does not decide.
    pub(crate) fn bind(loader: &'l Loader, collectible: &[Addr], others: &[Addr], contexts: &Set<Addr>) -> Option<Binders<'l>> {
        let by = |way| Binders { loader, way };
        if loader.has_binders() {
            return Some(by(Way::Described));
        }
        let leads = |way: &Way, module: &Addr| by(*way).of(*module).is_some_and(|binder| contexts.contains(&binder));
        let led = |way: &Way| collectible.iter().filter(|module| leads(way, module)).count();
        let fits = |way: &Way| led(way) > 0 && !others.iter().any(|module| leads(way, module));
        tried(|| {
            let word = loader.word_bytes();
            let offset = move |n: u64| n.saturating_mul(word);
            let behind = |first| (0..WORDS).map(move |n| Way::Behind(offset(first), offset(n)));
            let ways = (0..WORDS).map(|n| Way::At(offset(n))).chain((0..WORDS).flat_map(behind));
            let mut fitting: Vec<(usize, Way)> = ways.filter(fits).map(|way| (led(&way), way)).collect();
            let most = fitting.iter().map(|(led, _)| *led).max()?;
            fitting.retain(|(led, _)| *led == most);
            let (_, first) = fitting.first()?;
            let found = |way: &Way, module: &Addr| by(*way).of(*module).filter(|binder| contexts.contains(binder));
            let agree = |way: &Way| collectible.iter().all(|module| found(way, module) == found(first, module));
            fitting.iter().all(|(_, way)| agree(way)).then(|| by(*first))
        })
    }

    /// The binder of a module's assembly.
    pub(crate) fn of(&self, module: Addr) -> Option<Addr> {
        let (loader, assembly) = (self.loader, self.loader.pe_assembly(module)?);
        match self.way {
            Way::Described => loader.binder(assembly),
            Way::At(offset) => loader.pointer(assembly.plus(offset)),
            Way::Behind(first, offset) => loader.pointer(loader.pointer(assembly.plus(first))?.plus(offset)),
        }
    }
}
