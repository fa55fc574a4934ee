//! Modules of the process.

use std::fmt;
use std::sync::Arc;

use super::Type;
use crate::base::hash::{Map, Set};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Answer, Collector, Missing};
use crate::clr::loader::Loader;
use crate::clr::modules::{MetadataOrigin, Modules};
use crate::contract::RuntimeError;
use crate::data::globals;
use crate::dump;
use crate::memory::{FileId, Image, Memory, hex, module_id};
use crate::session::{Dump, Error, Images, Runtime, type_definitions};

/// A module of the process: an assembly, or an image that is not managed. For what is missing from the dump of it, and for its file on this machine,
/// see [`modules`](crate::analysis::modules()).
///
/// ```
/// let dump = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?;
/// for module in dump.modules()? {
///     println!("{} {}", module.name().unwrap_or_default(), module.version().unwrap_or_default());
/// }
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone)]
pub struct Module {
    place: Place,
}

#[derive(Clone)]
enum Place {
    /// A module on the runtime's list: the runtime, the address of the `Module`, and the image at its base as the container lists it.
    Loaded(Runtime, Addr, Option<Arc<dump::Module>>),
    /// An image that only the container lists.
    Image(Arc<Memory>, Arc<dump::Module>),
}

/// The identity of the file of an image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageIdentity {
    /// The GNU build ID of an ELF image.
    BuildId(Vec<u8>),
    /// `TimeDateStamp` (a link time or a hash) and `SizeOfImage` in bytes of a PE image.
    Stamp {
        /// `TimeDateStamp`.
        timestamp: u32,
        /// `SizeOfImage`.
        size: u32,
    },
}

/// Writes the identity as symbol servers do, in hexadecimal digits: `5f3a…` for a build ID, time stamp and size for a PE image.
impl fmt::Display for ImageIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageIdentity::BuildId(id) => f.write_str(&hex(id)),
            ImageIdentity::Stamp { timestamp, size } => write!(f, "{timestamp:08x}{size:x}"),
        }
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({} at {:?})", self.name().unwrap_or_default(), self.base())
    }
}

/// Modules are equal if the runtime has them at the same address or, for other images, if they have the same base.
impl PartialEq for Module {
    fn eq(&self, other: &Module) -> bool {
        match (&self.place, &other.place) {
            (Place::Loaded(_, own, _), Place::Loaded(_, other, _)) => own == other,
            (Place::Image(_, own), Place::Image(_, other)) => own.base == other.base,
            _ => false,
        }
    }
}

impl Eq for Module {}

impl Dump {
    /// The modules of the process: those on the list of the first runtime, in load order, then other images by address. For a dump without a
    /// readable runtime, only the images, with a note.
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime's list of modules cannot be read, [`Error::Runtime`] for a `.gcdump` file, which has no modules.
    pub fn modules(&self) -> Result<Answer<Vec<Module>>, Error> {
        let (runtime, notes) = self.begin_modules(0)?;
        let runtime = runtime.ok();
        let mut list = runtime.as_ref().map(|runtime| runtime.loaded_modules(&notes)).transpose()?.unwrap_or_default().modules;
        let images = self.images_beside(runtime.as_ref(), &list);
        list.extend(images);
        Ok(notes.finish(list))
    }

    /// Begins an answer about modules. The runtime at `index` may be unreadable, which is noted.
    ///
    /// # Errors
    /// [`RuntimeError`] if no such runtime exists, or for a `.gcdump` file.
    pub(crate) fn begin_modules(&self, index: usize) -> Result<(Result<Runtime, RuntimeError>, Collector), RuntimeError> {
        let runtime = match self.runtime_at(index) {
            Err(e @ (RuntimeError::Snapshot | RuntimeError::NoSuchRuntime { .. })) => return Err(e),
            runtime => runtime,
        };
        let notes = match &runtime {
            Ok(runtime) => runtime.begin(),
            Err(why) => {
                let notes = Collector::new();
                notes.extend(self.notes());
                notes.add(Missing::Modules, None, format!("the runtime's list of modules cannot be read: {why}"));
                notes
            }
        };
        notes.extend(&self.file().facts.lost.of_modules());
        Ok((runtime, notes))
    }

    /// The images that are not among the `loaded` modules, by address. An assembly may be mapped twice: for reading and for execution.
    pub(crate) fn images_beside(&self, runtime: Option<&Runtime>, loaded: &[Module]) -> Vec<Module> {
        let (mut bases, mut paths) = (Set::default(), Set::default());
        tried(|| {
            bases.extend(loaded.iter().filter_map(Module::base));
            paths.extend(loaded.iter().filter_map(Module::path));
        });
        let mut images: Vec<&dump::Module> = Images::of(self.file(), self.memory(), runtime).modules;
        images.retain(|image| !bases.contains(&image.base) && !paths.contains(&image.path));
        images.sort_by_key(|image| image.base);
        let handle = |image: &dump::Module| Module { place: Place::Image(Arc::clone(self.memory()), Arc::new(image.clone())) };
        images.into_iter().map(handle).collect()
    }
}

/// The modules on the runtime's list.
#[derive(Debug, Default)]
pub(crate) struct LoadedModules {
    /// The modules, in load order.
    pub(crate) modules: Vec<Module>,
    /// The reader of the list; `None` if the modules have no names.
    pub(crate) loader: Option<Loader>,
}

impl Runtime {
    /// The modules on the runtime's list. If the runtime does not describe modules, the list is empty; a loss is added to `notes`.
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime's list of modules has an unsupported form.
    pub(crate) fn loaded_modules(&self, notes: &Collector) -> Result<LoadedModules, Error> {
        let has_loader = !self.descriptor().is_native_aot() && !self.descriptor().is_mono();
        let unread = |why: String| {
            if has_loader {
                notes.add(Missing::Modules, None, format!("the runtime's list of modules cannot be read: {why}"));
            }
        };
        let names = match self.type_names() {
            Ok(names) => names,
            Err(e) => {
                unread(e.to_string());
                return Ok(LoadedModules::default());
            }
        };
        let loader = Loader::bind(self.memory(), self.descriptor(), self.limits())?;
        let listed = loader.listed();
        if listed.modules.is_empty() && !listed.whole {
            let why = globals::AppDomain.of(self.descriptor()).err();
            unread(why.map_or_else(|| "it has no module that can be read".into(), |e| e.to_string()));
        }
        notes.extend(&loader.faults());
        let images: Map<Addr, &dump::Module> = self.file().modules.iter().map(|image| (image.base, image)).collect();
        let image = |address: Addr| tried(|| images.get(&names.modules().image_base(address)?).map(|image| Arc::new((*image).clone())));
        let handle = |address: Addr| Module { place: Place::Loaded(self.clone(), address, image(address)) };
        Ok(LoadedModules { modules: listed.modules.into_iter().map(handle).collect(), loader: Some(loader) })
    }
}

impl Module {
    /// The reader of the runtime's modules, and the address of the `Module`; `None` for an image that is not managed.
    fn loaded(&self) -> Option<(&Modules, Addr)> {
        match &self.place {
            Place::Loaded(runtime, address, _) => Some((runtime.type_names().ok()?.modules(), *address)),
            Place::Image(..) => None,
        }
    }

    /// The image as the container lists it.
    pub(crate) fn listed(&self) -> Option<&dump::Module> {
        match &self.place {
            Place::Loaded(_, _, image) => image.as_deref(),
            Place::Image(_, image) => Some(image),
        }
    }

    /// The headers of an image that is not managed, and the identity of its file.
    pub(crate) fn headers(&self) -> (Option<Image>, Option<FileId>) {
        match &self.place {
            Place::Loaded(..) => (None, None),
            Place::Image(memory, module) => {
                let image = Image::at(memory, module.base);
                let id = module_id(module, image.as_ref());
                (image, id)
            }
        }
    }

    /// Address of the runtime's `Module`; `None` for an image that is not managed.
    pub fn address(&self) -> Option<Addr> {
        match &self.place {
            Place::Loaded(_, address, _) => Some(*address),
            Place::Image(..) => None,
        }
    }

    /// Whether the module is on the runtime's list: an assembly.
    pub fn is_managed(&self) -> bool {
        self.address().is_some()
    }

    /// Whether the module is an assembly without a file: emitted at run time, or loaded from bytes that are no longer an image.
    pub fn is_dynamic(&self) -> bool {
        let Some((modules, address)) = self.loaded() else { return false };
        modules.has_no_image(address) || tried(|| modules.get(address).origin == MetadataOrigin::Dynamic)
    }

    /// File name; for an assembly without a file, its assembly name. `None` if the name is not in the dump.
    pub fn name(&self) -> Option<String> {
        match self.loaded() {
            Some((modules, address)) => modules.get(address).name.clone(),
            None => self.listed().map(|image| image.file_name().to_string()).filter(|name| !name.is_empty()),
        }
    }

    /// Path of the module's file in the process; `None` without a file, and in single-file programs.
    pub fn path(&self) -> Option<String> {
        match self.loaded() {
            Some((modules, address)) => modules.get(address).path.clone(),
            None => self.listed().map(|image| image.path.clone()),
        }
    }

    /// Version: of the assembly, or of the file as a minidump records it. `None` if it is unknown.
    pub fn version(&self) -> Option<String> {
        let assembly = || {
            let (modules, address) = self.loaded()?;
            modules.get(address).metadata.as_ref()?.assembly().map(|assembly| dotted(assembly.version))
        };
        assembly().or_else(|| self.listed()?.version.map(dotted))
    }

    /// Load address of the image; `None` for a module without an image.
    pub fn base(&self) -> Option<Addr> {
        match self.loaded() {
            Some((modules, address)) => modules.image_base(address),
            None => self.listed().map(|image| image.base),
        }
    }

    /// Address range of the image; `None` for a module without an image, and if the size is unknown.
    pub fn range(&self) -> Option<AddrRange> {
        let listed = || self.listed().map(|image| image.range());
        match self.loaded() {
            Some((modules, address)) => modules.extent(address).or_else(listed),
            None => self.headers().0.map(|image| image.range).or_else(listed),
        }
    }

    /// The identity of the image's file; `None` if it is not in the dump.
    pub fn identity(&self) -> Option<ImageIdentity> {
        let id = match self.loaded() {
            Some((modules, address)) => modules.file_id(address),
            None => self.headers().1,
        };
        match id? {
            FileId::BuildId(id) => Some(ImageIdentity::BuildId(id)),
            FileId::Stamp { timestamp, size } => Some(ImageIdentity::Stamp { timestamp, size }),
            FileId::Pdb(_) => None,
        }
    }

    /// The loaded types that the module defines, ordered by token, among them open generic types. Their instances are among
    /// [`Runtime::types_of`]. Empty for an image that is not managed.
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime does not describe types.
    pub fn types(&self) -> Result<Vec<Type>, Error> {
        let Place::Loaded(runtime, address, _) = &self.place else { return Ok(Vec::new()) };
        let heap = runtime.heap()?;
        let definitions = type_definitions(runtime.readers()?.types(), &[*address]);
        Ok(definitions.into_iter().map(|method_table| Type::new(&heap, method_table)).collect())
    }
}

/// Formats a version: `10.0.1.2`.
fn dotted(version: [u16; 4]) -> String {
    version.map(|part| part.to_string()).join(".")
}
