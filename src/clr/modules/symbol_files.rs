//! Finds the debug information of a module: in its image, in its file, or in files beside it.

use std::sync::{Arc, PoisonError};

use super::symbols::{Assembly, Named, Symbols, try_file};
use super::{LoadedImage, MAX_IMAGE, Modules, Reader};
use crate::base::missed::tried;
use crate::base::{Addr, len64};
use crate::clr::metadata::Source;
use crate::clr::pe::Headers;
use crate::memory::{FileId, ModuleFile};

impl Modules {
    /// The debug information of the module at `address`. Never fails; missing parts are absent.
    pub(crate) fn symbols(&self, address: Addr) -> Arc<Symbols> {
        let reader = &self.reader;
        if let Some(known) = reader.symbols.lock().unwrap_or_else(PoisonError::into_inner).get(&address) {
            return Arc::clone(known);
        }
        // Missing lines are reported by the caller.
        let found = Arc::new(tried(|| reader.find_symbols(address)));
        let mut known = reader.symbols.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= reader.most {
            return found;
        }
        Arc::clone(known.entry(address).or_insert(found))
    }
}

impl Modules {
    /// The identity and the name of the portable PDB to which the module at `address` refers, in the dump or in its file.
    pub(crate) fn pdb_named(&self, address: Addr) -> Option<(FileId, String)> {
        let reader = &self.reader;
        tried(|| {
            let image = reader.image_of(address)?;
            let loaded = reader.assembly_in_memory(image).and_then(|a| a.named());
            let named = loaded.or_else(|| {
                let bytes = reader.usable_file(address, image)?.open().ok()?;
                let len = len64(bytes.len());
                Assembly::read(Source::File { bytes, offset: 0, len }, |_, _| true)?.named()
            })?;
            Some((FileId::Pdb(named.id), named.name))
        })
    }
}

impl Reader {
    fn find_symbols(&self, address: Addr) -> Symbols {
        let mut out = Symbols::default();
        let Some(image) = self.image_of(address) else { return out };
        let loaded = self.assembly_in_memory(image);
        let embedded = |a: &Assembly| a.unpack(|bytes| self.room.take(bytes));
        if let Some(pdb) = loaded.as_ref().and_then(embedded) {
            out.pdb = Some(pdb);
            return out;
        }
        let file = self.usable_file(address, image).and_then(|file| {
            let bytes = file.open().ok()?;
            let len = len64(bytes.len());
            Assembly::read(Source::File { bytes, offset: 0, len }, |_, _| true)
        });
        if let Some(pdb) = file.as_ref().and_then(embedded) {
            out.pdb = Some(pdb);
            return out;
        }
        out.absent = loaded.as_ref().filter(|_| file.is_none()).and_then(|a| Some(image.base.plus(a.place(a.embedded()?)?)));
        let named = loaded.as_ref().and_then(Assembly::named).or_else(|| file.as_ref().and_then(Assembly::named));
        for file in self.symbol_files(address, named.as_ref()) {
            match try_file(&file, named.as_ref()) {
                Ok(pdb) => {
                    out.pdb = Some(pdb);
                    out.refused.clear();
                    break;
                }
                Err(_) if file.place().is_shared() => {}
                Err(why) => out.refused.push((file.path().into(), why)),
            }
        }
        out
    }

    fn assembly_in_memory(&self, image: LoadedImage) -> Option<Assembly> {
        let source = Source::Memory { memory: Arc::clone(&self.memory), base: image.base, len: MAX_IMAGE };
        Assembly::read(source, Headers::is_flat)
    }

    /// Files that may be the PDB of the module at `address`, best first.
    fn symbol_files(&self, address: Addr, named: Option<&Named>) -> Vec<ModuleFile> {
        let (Some(search), module) = (&self.search, self.get(address)) else { return Vec::new() };
        let id = named.map(|named| FileId::Pdb(named.id));
        search.pdb_candidates(module.path.as_deref().or(module.name.as_deref()), named.map(|n| n.name.as_str()), id.as_ref(), self.os)
    }
}
