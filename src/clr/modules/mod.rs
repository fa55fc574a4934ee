//! Modules: names and metadata of the runtime's `Module` structures.
//!
//! Source: contracts `Loader` and `EcmaMetadata`; `docs/internals/types.md#metadata`. Metadata is taken from the saved blob of dynamic
//! modules, the image in the dump, or the module file, in this order.

mod bodies;
mod identity;
mod images;
mod module;
mod mono;
mod net8;
mod net9;
mod rows;
mod siblings;
mod symbol_files;
mod symbols;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::loader::Loader;
use super::metadata::{Metadata, Source};
use super::pe;
use super::refusal::Refusal;
use crate::base::hash::Map;
use crate::base::missed::{tried, watched};
use crate::base::{Addr, Budget, Collector, Limits, Os, Remedy, file_name, thousands};
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::{Bound, Module as Layout, ModuleLookupMap, MonoImage, PEAssembly, PEImage, PEImageLayout, PEImagePath, bind};
use crate::memory::{FileId, FileSearch, Memory, ModuleFile};
pub(crate) use identity::{mvid_of, pdb_id_of};
pub(crate) use images::ImageFile;
pub use module::{MetadataOrigin, Module};
use net8::Net8;
use net9::Net9;
use symbols::Room;
pub(crate) use symbols::Symbols;
#[cfg(feature = "internals")]
pub use symbols::try_symbols;

/// Maximum size of an image, because RVAs have 32 bits.
const MAX_IMAGE: u64 = 1 << 32;
/// An image in the memory of the process.
#[derive(Clone, Copy, Debug)]
struct LoadedImage {
    base: Addr,
    size: Option<u32>,
}

/// Location of the metadata that the runtime saves for debuggers of dynamic modules.
#[derive(Clone, Debug)]
enum Saved {
    Net8(Net8),
    Net9(Net9),
}

impl Saved {
    fn bind(d: &Descriptor) -> Option<Saved> {
        Net9::bind(d).map(Saved::Net9).or_else(|| Net8::bind(d).map(Saved::Net8))
    }
}

type Cache = Mutex<Map<Addr, Arc<Module>>>;

/// Finds and caches modules. Shared between threads.
#[derive(Debug)]
pub struct Modules {
    reader: Arc<Reader>,
    seen: Cache,
    /// Whether a module that was read without being marked as used exceeded the budget.
    cut: AtomicBool,
}

/// Reads modules, each once per session.
#[derive(Debug)]
struct Reader {
    memory: Arc<Memory>,
    os: Os,
    search: Option<FileSearch>,
    string_bytes: u64,
    module: Option<Bound<Layout>>,
    saved: Option<Saved>,
    /// Mono's counterpart of `Module`.
    mono: Option<Bound<MonoImage>>,
    assembly: Option<Bound<PEAssembly>>,
    image: Option<Bound<PEImage>>,
    loaded: Option<Bound<PEImageLayout>>,
    path: Option<Bound<PEImagePath>>,
    map: Option<Bound<ModuleLookupMap>>,
    most: usize,
    /// Budget for PDBs embedded in assemblies.
    room: Room,
    /// Budget for all modules together, because forged modules may share their bytes.
    budget: Arc<Budget>,
    cache: Cache,
    symbols: Mutex<Map<Addr, Arc<Symbols>>>,
}

impl Modules {
    /// The contract of saved metadata; .NET 8 does not advertise it. Version 2 differs only in metadata that is being edited, which is not
    /// read:
    /// "Version 2 retains the read-only and saved-copy behavior of version 1" (contract `EcmaMetadata`).
    pub const METADATA: Contract = Contract::optional("EcmaMetadata", &["1", "2"]);

    /// Binds to a runtime. `search` determines where to find module files; `None` means nowhere. Data whose offset is missing from the
    /// descriptor is absent.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of contract `Loader` is advertised.
    pub fn bind(
        memory: &Arc<Memory>,
        descriptor: &Descriptor,
        os: Os,
        search: Option<FileSearch>,
        limits: &Limits,
    ) -> Result<Modules, ContractError> {
        // NativeAOT programs have no `Module` structures.
        if !descriptor.is_native_aot() && !descriptor.is_mono() {
            Loader::CONTRACT.require(descriptor)?;
        }
        let reader = Reader {
            memory: Arc::clone(memory),
            os,
            search,
            string_bytes: limits.string_bytes,
            module: bind!(descriptor, Layout {
                Base?, PEAssembly?, Path?, FileName?, SimpleName?, TypeDefToMethodTableMap?, TypeRefToMethodTableMap?, FieldDefToDescMap?,
                MethodDefToDescMap?, MemberRefToDescMap?, Flags?
            })
            .ok(),
            saved: Self::METADATA.permit(descriptor).ok().and_then(|()| Saved::bind(descriptor)),
            mono: bind!(descriptor, MonoImage { name, guid, raw_metadata }).ok(),
            assembly: bind!(descriptor, PEAssembly { PEImage }).ok(),
            image: bind!(descriptor, PEImage { LoadedImageLayout?, FlatImageLayout? }).ok(),
            loaded: bind!(descriptor, PEImageLayout { Base, Size? }).ok(),
            path: bind!(descriptor, PEImagePath { ByteCount, Buffer }).ok(),
            map: bind!(descriptor, ModuleLookupMap { Next, Count }).ok(),
            most: limits.modules,
            room: Room::new(memory.dump_bytes(), limits.max_memory),
            budget: Arc::new(Budget::of_types(memory.dump_bytes(), limits.max_memory)),
            cache: Mutex::default(),
            symbols: Mutex::default(),
        };
        Ok(Modules { reader: Arc::new(reader), seen: Mutex::default(), cut: AtomicBool::new(false) })
    }

    /// A view of these modules with an empty record of use.
    pub fn for_answer(&self) -> Modules {
        Modules { reader: Arc::clone(&self.reader), seen: Mutex::default(), cut: AtomicBool::new(false) }
    }

    /// The module at `address`. Never fails; unreadable parts are absent.
    pub fn get(&self, address: Addr) -> Arc<Module> {
        let known = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(&address).map(Arc::clone);
        let module = known.unwrap_or_else(|| {
            let module = self.reader.get(address);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.len() < self.reader.most {
                seen.insert(address, Arc::clone(&module));
            }
            module
        });
        module.missed.iter().for_each(|missed| missed.tell());
        module
    }

    /// Adds notes about modules that exceeded the budget.
    pub fn note(&self, notes: &Collector) {
        // Only modules that this answer has used are reported.
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if self.cut.load(Ordering::Relaxed) || seen.values().any(|m| m.is_cut()) {
            self.reader.budget.note("reading modules", notes);
        }
    }

    /// The modules used so far that have a name or metadata, by address.
    pub fn seen(&self) -> Vec<Arc<Module>> {
        let cache = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen: Vec<_> = cache.values().filter(|m| m.name.is_some() || m.metadata.is_some()).map(Arc::clone).collect();
        seen.sort_by_key(|m| m.address);
        seen
    }

    /// Whether the metadata of the module at `address` is in the dump. Does not mark the module as used.
    pub fn has_image(&self, address: Addr) -> bool {
        self.look(address).origin == MetadataOrigin::Image
    }

    /// Number of types that the module at `address` defines; `None` if it is dynamic, or has no metadata. Does not mark the module as used.
    pub(crate) fn type_rows(&self, address: Addr) -> Option<u32> {
        let module = self.look(address);
        let metadata = module.metadata.as_ref().filter(|_| module.origin != MetadataOrigin::Dynamic)?;
        Some(metadata.type_defs())
    }

    /// Whether the module at `address` has this simple name. Does not mark the module as used.
    pub(crate) fn is_named(&self, address: Addr, name: &str) -> bool {
        self.look(address).simple_name() == Some(name)
    }

    /// Reads the module at `address` without marking it as used.
    fn look(&self, address: Addr) -> Arc<Module> {
        let module = self.reader.get(address);
        self.cut.fetch_or(module.is_cut(), Ordering::Relaxed);
        module
    }
}

impl Reader {
    fn get(&self, address: Addr) -> Arc<Module> {
        let known = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(&address).map(Arc::clone);
        if let Some(module) = known {
            return module;
        }
        // The module is read without the lock, because reading may open files. If two threads read the module, the first result is kept.
        let refused = || Module { cut: AtomicBool::new(true), ..self.blank(address) };
        let (module, missed) = watched(|| if self.budget.met() { refused() } else { self.read(address) });
        let module = if self.budget.memory(module.bytes()) && self.budget.steps(module.steps()) { module } else { refused() };
        let module = Arc::new(Module { missed: (!missed.is_empty()).then(|| Box::new(missed)), ..module });
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= self.most {
            return module;
        }
        Arc::clone(cache.entry(address).or_insert(module))
    }

    /// A module without any data.
    fn blank(&self, address: Addr) -> Module {
        Module {
            address,
            name: None,
            path: None,
            metadata: None,
            origin: MetadataOrigin::None,
            rejected: Vec::new(),
            edited: false,
            missed: None,
            found: OnceLock::new(),
            budget: Arc::clone(&self.budget),
            cut: AtomicBool::new(false),
        }
    }

    fn read(&self, address: Addr) -> Module {
        if let Some(images) = &self.mono {
            return self.read_mono(images, address);
        }
        let image = self.image_of(address);
        let ((path, name), missed) = watched(|| {
            let path = self.path_of(address);
            let file = path.as_deref().map(file_name).filter(|n| !n.is_empty()).map(Into::into);
            (path, file.or_else(|| self.simple_name(address)))
        });
        // Path and name of a dynamic module are empty literals in pages of the runtime that heap dumps do not have, so failed reads are recorded
        // only for a module with an image.
        if image.is_some() {
            missed.tell();
        }
        let mut module = Module { name, path, ..self.blank(address) };
        let in_memory = tried(|| image.and_then(|i| self.in_memory(i.base)));
        if let Some(metadata) = self.saved(address) {
            module.metadata = Some(Box::new(metadata));
            module.origin = MetadataOrigin::Dynamic;
        } else if let Some(metadata) = in_memory {
            module.metadata = Some(Box::new(metadata));
            module.origin = MetadataOrigin::Image;
        } else {
            // Missing names are reported by the caller.
            tried(|| self.search_files(&mut module, image));
        }
        module.edited = image.is_some() && module.origin != MetadataOrigin::Dynamic && tried(|| self.is_edited(address));
        if module.name.is_none() {
            module.name = module.metadata.as_ref().and_then(|m| m.assembly().map(|a| a.name).or_else(|| m.module_name()));
        }
        module
    }

    fn pe_image(&self, module: Addr) -> Option<Addr> {
        let assembly = self.module.as_ref()?.pointer(&self.memory, module, Layout::PEAssembly)?;
        self.assembly.as_ref()?.pointer(&self.memory, assembly, PEAssembly::PEImage)
    }

    fn path_of(&self, module: Addr) -> Option<String> {
        let by_module = || {
            let text = {
                let path = self.module.as_ref()?.pointer(&self.memory, module, Layout::Path)?;
                self.memory.utf16_nul(path, self.string_bytes).ok()?
            };
            (!text.is_empty()).then_some(text)
        };
        let by_image = || {
            let (image, path) = (self.pe_image(module)?, self.path.as_ref()?);
            let bytes = u64::from(path.get(&self.memory, image, PEImagePath::ByteCount)?);
            let buffer = path.pointer(&self.memory, image, PEImagePath::Buffer)?;
            self.memory.utf16(buffer, bytes, self.string_bytes).ok().filter(|t| !t.is_empty())
        };
        by_module().or_else(by_image)
    }

    fn simple_name(&self, module: Addr) -> Option<String> {
        let name = |field| self.module.as_ref()?.pointer(&self.memory, module, field);
        let utf8 = || self.memory.text(name(Layout::SimpleName)?, self.string_bytes).ok();
        let utf16 = || self.memory.utf16_nul(name(Layout::FileName)?, self.string_bytes).ok();
        utf8().or_else(utf16).filter(|n| !n.is_empty())
    }

    fn image_of(&self, module: Addr) -> Option<LoadedImage> {
        let direct = self.module.as_ref()?.pointer(&self.memory, module, Layout::Base);
        let layout = || {
            let image = self.pe_image(module)?;
            let leads = |field| self.image.as_ref()?.pointer(&self.memory, image, field);
            leads(PEImage::LoadedImageLayout).or_else(|| leads(PEImage::FlatImageLayout))
        };
        let loaded = layout().zip(self.loaded.as_ref()).and_then(|(at, loaded)| {
            let size = loaded.get(&self.memory, at, PEImageLayout::Size);
            Some(LoadedImage { base: loaded.pointer(&self.memory, at, PEImageLayout::Base)?, size })
        });
        match (direct, loaded) {
            (Some(base), Some(l)) if l.base == base => Some(l),
            (Some(base), _) => Some(LoadedImage { base, size: None }),
            (None, loaded) => loaded,
        }
    }

    /// The metadata blob that the runtime saved for a dynamic module.
    fn saved(&self, module: Addr) -> Option<Metadata> {
        let (base, len) = match self.saved.as_ref()? {
            // In modules with an image, the field is past the end of the structure.
            Saved::Net8(_) if self.pe_image(module).is_some() => return None,
            Saved::Net8(net8) => net8.blob(&self.memory, module)?,
            Saved::Net9(net9) => net9.blob(&self.memory, module)?,
        };
        Metadata::open(Source::Memory { memory: Arc::clone(&self.memory), base, len: u64::from(len) }).ok()
    }

    fn in_memory(&self, base: Addr) -> Option<Metadata> {
        let image = Source::Memory { memory: Arc::clone(&self.memory), base, len: MAX_IMAGE };
        let place = pe::Headers::read(&image)?.metadata(&image)?;
        Metadata::open(Source::Memory { memory: Arc::clone(&self.memory), base: base.plus(place.offset), len: place.len }).ok()
    }

    /// Candidates for the file of the module, best first.
    fn candidates(&self, module: &Module) -> Vec<ModuleFile> {
        // Single-file programs record the assembly name, but no path.
        let by_name = || module.name.as_ref().map(|n| if n.ends_with(".dll") { n.clone() } else { format!("{n}.dll") });
        let recorded = module.path.clone().or_else(by_name);
        let id = || self.image_id(self.image_of(module.address)?);
        let found = self.search.as_ref().zip(recorded);
        found.map_or_else(Vec::new, |(search, recorded)| search.candidates(&recorded, tried(id).as_ref(), self.os))
    }

    /// The identity of an image from its headers, or otherwise from the container of the dump.
    fn image_id(&self, image: LoadedImage) -> Option<FileId> {
        let loaded = Source::Memory { memory: Arc::clone(&self.memory), base: image.base, len: MAX_IMAGE };
        let headers = pe::Headers::read(&loaded).map(|h| FileId::Stamp { timestamp: h.timestamp, size: h.size_of_image });
        headers.or_else(|| self.search.as_ref()?.stamp_at(image.base).cloned())
    }

    /// The file of the module at `address`. `None` unless a file is proven to be the loaded file, or the user specified it.
    fn usable_file(&self, address: Addr, image: LoadedImage) -> Option<ModuleFile> {
        let usable = |file: &ModuleFile| match tried(|| self.try_file(address, Some(image), file)) {
            Ok((_, proof)) => proof == Proof::Proven || file.place().is_given(),
            Err(_) => false,
        };
        self.candidates(&self.get(address)).into_iter().find(usable)
    }

    fn search_files(&self, module: &mut Module, image: Option<LoadedImage>) {
        for file in self.candidates(module) {
            let path = file.path().to_path_buf();
            let given = file.place().is_given();
            match self.try_file(module.address, image, &file) {
                Ok((metadata, proof)) if proof == Proof::Proven || given => {
                    module.metadata = Some(Box::new(metadata));
                    module.origin = match proof {
                        Proof::Proven => MetadataOrigin::File(path),
                        Proof::None => MetadataOrigin::UnverifiedFile(path),
                    };
                    return;
                }
                // Shared folders contain files of other programs as well.
                _ if file.place().is_shared() => {}
                Ok(_) => {
                    let why = "the dump cannot prove that the file matches".into();
                    module.rejected.push((path, Refusal { why, remedy: Some(Remedy::GivenFile) }));
                }
                Err(why) => module.rejected.push((path, why.into())),
            }
        }
    }

    fn try_file(&self, module: Addr, image: Option<LoadedImage>, file: &ModuleFile) -> Result<(Metadata, Proof), String> {
        let bytes = file.open()?;
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let file = Source::File { bytes: Arc::clone(&bytes), offset: 0, len };
        let headers = pe::Headers::read(&file).ok_or("not a PE file")?;
        let place = headers.metadata(&file).ok_or("not a managed assembly")?;
        let metadata = Metadata::open(Source::File { bytes, offset: place.offset, len: place.len }).map_err(|e| e.to_string())?;
        let mut proof = Proof::None;
        if let Some(image) = image {
            proof = self.compare(image, &headers, &metadata, place, len)?;
        }
        if proof == Proof::None
            && let Some((what, have, file)) = self.other_rows(module, metadata.row_counts())
        {
            return Err(format!("it has {file} rows of {what}; the module in the process has {have}"));
        }
        Ok((metadata, proof))
    }

    /// Compares a file with the captured part of the image.
    fn compare(&self, image: LoadedImage, file: &pe::Headers, metadata: &Metadata, place: pe::Place, len: u64) -> Result<Proof, String> {
        let loaded = Source::Memory { memory: Arc::clone(&self.memory), base: image.base, len: MAX_IMAGE };
        if let Some(id) = self.image_id(image) {
            let same = id == FileId::Stamp { timestamp: file.timestamp, size: file.size_of_image };
            return if same { Ok(Proof::Proven) } else { Err("its time stamp or size differs from that of the loaded image".into()) };
        }
        // If the first page is not captured, the MVID may be. Its offset depends on whether the image is flat or mapped, so both offsets are tried.
        let mvid = metadata.mvid().zip(metadata.mvid_offset());
        if let Some((wanted, within)) = mvid {
            let places = [place.offset, u64::from(place.rva)].map(|o| o.checked_add(within));
            let found = places.into_iter().flatten().any(|at| loaded.bytes(at, 16).is_some_and(|b| *b == wanted));
            if found {
                return Ok(Proof::Proven);
            }
        }
        // A mapped image has the image size; a flat image has the file size.
        match image.size {
            Some(size) if size != file.size_of_image && u64::from(size) != len => Err(format!(
                "it has {} bytes, or {} when mapped; the loaded image has {}",
                thousands(len),
                thousands(file.size_of_image.into()),
                thousands(size.into())
            )),
            _ => Ok(Proof::None),
        }
    }
}

/// Whether the dump proves that a file is the file that the process loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Proven,
    None,
}
