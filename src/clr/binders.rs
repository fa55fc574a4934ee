//! The load context to which a module belongs. The binder of the module's assembly identifies it, because the `_nativeAssemblyLoadContext` of a
//! load context points to its binder.
//!
//! The descriptors of .NET 8 and 9 do not contain the offset of the binder, so it is found by its shape. The candidates are the words of a
//! `PEAssembly`, and the words of the structures to which they point. The right candidate leads to the binder of a collectible context in
//! collectible modules, and in no other module. Measured on .NET 8: word 7 of the `PEAssembly` points to the binder's own assembly, whose
//! word 4 is the binder. On .NET 10, word 8 is the binder itself, as described, and the path of .NET 8 leads to the same binder.

use super::loader::Loader;
use crate::base::Addr;
use crate::base::hash::Set;
use crate::base::missed::tried;

/// Number of words of a structure that are candidates.
const WORDS: u64 = 24;

/// The path from a `PEAssembly` to its binder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// At the offset in the descriptor.
    Described,
    At(u64),
    /// The word at the first offset points to a structure. The binder is at the second offset, in this structure.
    Through(u64, u64),
}

/// Finds the binders of modules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binders<'l> {
    loader: &'l Loader,
    way: Way,
}

impl<'l> Binders<'l> {
    /// Binds to the descriptor, or finds the path. `collectible` are modules that belong to one of `contexts`, or to a dynamic assembly
    /// with its own loader allocator; `others` belong to none of the contexts. `None` if these modules do not determine the path.
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
            let through = |first| (0..WORDS).map(move |n| Way::Through(offset(first), offset(n)));
            let ways = (0..WORDS).map(|n| Way::At(offset(n))).chain((0..WORDS).flat_map(through));
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
            Way::Through(first, offset) => loader.pointer(loader.pointer(assembly.plus(first))?.plus(offset)),
        }
    }
}
