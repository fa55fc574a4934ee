//! The modules of the process: the identity of their files, which files are needed, and their addresses.

mod report;

pub use report::*;

use std::cell::OnceCell;
use std::sync::Arc;

use crate::analysis::StacksQuery;
use crate::analysis::each_stack;
use crate::base::hash::{Map, Set};
use crate::base::missed::{Kept, Missed, tried, watched};
use crate::base::{Addr, AddrRange, Answer, Collector, Missing, PAGE, cut, glob, len64, plural};
use crate::clr::loader::Loader;
use crate::clr::modules::{MetadataOrigin, Modules};
use crate::contract::{RuntimeError, Site, is_runtime_name, own_program};
use crate::dump::{Bytes, Module as Listed};
use crate::managed::{LoadedModules, Module};
use crate::memory::{FileId, Memory, hex};
use crate::session::{Dump, Error, Runtime};

/// Maximum number of ranges of missing pages listed for a module.
const MAX_RANGES: usize = 256;

/// Arguments of `modules`.
#[derive(Clone, Debug, Default)]
pub struct ModulesQuery {
    /// Index of the runtime.
    pub runtime: usize,
    /// Globs for names or paths, ignoring case; all modules if empty.
    pub names: Vec<String>,
    /// Only the module whose image contains this address, or whose `Module` or `Assembly` structure is at this address.
    pub at: Option<Addr>,
    /// Whether to list only modules whose files are needed.
    pub needed: bool,
    /// Maximum rows, 0 for all.
    pub top: usize,
}

impl ModulesQuery {
    fn wants(&self, module: &ModuleModel) -> bool {
        let texts = [&module.name, &module.path].into_iter().flatten().map(|text| text.to_lowercase());
        let is_named = || texts.clone().any(|text| self.names.iter().any(|pattern| glob(&pattern.to_lowercase(), &text)));
        let within = |at: Addr| module.base.zip(module.size).is_some_and(|(base, size)| AddrRange::new(base, base.plus(size)).contains(at));
        let is_at = |at: Addr| [module.module, module.assembly].contains(&Some(at)) || within(at);
        (!self.needed || module.needed) && self.at.is_none_or(is_at) && (self.names.is_empty() || is_named())
    }
}

/// Lists the modules of the process. If the runtime cannot be read, lists only the modules that the container records.
///
/// # Errors
/// [`Error::Runtime`] if the process does not have this runtime, or the file is a heap snapshot; [`Error::Nothing`] if no module has the
/// requested name or address; [`Error::Contract`] if the runtime's list of modules cannot be read.
pub fn modules(dump: &Dump, query: &ModulesQuery) -> Result<Answer<ModulesReport>, Error> {
    let (runtime, notes) = dump.begin_modules(query.runtime)?;
    let file = dump.file();
    // If the process has no runtime library, the runtime is linked into the program.
    let unread = match &runtime {
        Ok(_) | Err(RuntimeError::NoRuntime { .. }) => None,
        Err(_) => file.modules.iter().find(|m| is_runtime_name(m)).or_else(|| own_program(file)).map(|m| m.base),
    };
    let runtime = runtime.ok();
    let mut list: Vec<ModuleModel> = Vec::new();
    let mut unidentified: Set<Addr> = Set::default();
    // Failed reads of the loader's structures, by module.
    let mut of_loader: Map<Addr, Missed> = Map::default();
    let loaded = runtime.as_ref().map(|runtime| runtime.loaded_modules(&notes)).transpose()?.unwrap_or_default();
    if let Some(describing) = Describing::of(runtime.as_ref(), &loaded) {
        for Described { model, of_image, of_loader: missed } in loaded.modules.iter().map(|module| describing.module(module)) {
            // Dump writers omit the headers and metadata of many images, so they are reported as missing only if the dump is truncated.
            if dump.memory().is_cut() && (model.timestamp.is_none() || !of_image.is_empty()) && model.kind == ModuleKind::Assembly {
                unidentified.extend(model.base);
            }
            of_loader.extend(model.module.map(|module| (module, missed)));
            list.push(model);
        }
    }
    for module in dump.images_beside(runtime.as_ref(), &loaded.modules) {
        let (model, missed) = watched(|| native_model(dump, runtime.as_ref(), unread, &module));
        if model.build_id.is_none() && model.timestamp.is_none() && !missed.is_empty() {
            unidentified.extend(model.base);
        }
        list.push(model);
    }
    if let Some(runtime) = &runtime {
        missing_pages(runtime, &mut list);
    }
    list.iter_mut().for_each(|m| m.needed = !m.needed_for.is_empty());
    list.retain(|m| query.wants(m));
    if list.is_empty() && (query.at.is_some() || !query.names.is_empty()) {
        let what = query.at.map_or_else(|| query.names.join(", "), |at| at.to_string());
        return Err(Error::Nothing(format!("no module matches {what}")).given(&notes.into_notes()));
    }
    list.iter().filter_map(|m| of_loader.get(&m.module?)).for_each(Missed::tell);
    let mut unidentified = list.iter().filter_map(|m| m.base).filter(|base| unidentified.contains(base));
    if let Some(first) = unidentified.next() {
        let images = plural(len64(unidentified.count()).saturating_add(1), "image");
        notes.add(Missing::Modules, first, format!("{images} cannot be identified: headers are not in the dump"));
    }
    let count = |of: &dyn Fn(&ModuleModel) -> bool| len64(list.iter().filter(|m| of(m)).count());
    let (needed, needed_not_found) = (count(&|m| m.needed), count(&|m| m.needed && m.file.is_none()));
    let total = len64(list.len());
    let shown = cut(&mut list, query.top);
    Ok(notes.finish(ModulesReport { modules: list, shown, total, needed, needed_not_found, fetched: None }))
}

/// Returns the number of modules that [`modules`] lists. What it cannot read is not noted.
pub(in crate::analysis) fn module_count(dump: &Dump, runtime: Option<&Runtime>) -> u64 {
    // Descriptions of the modules would read their debug information and files.
    tried(|| {
        let listed = |runtime: &Runtime| runtime.loaded_modules(&Collector::new()).ok();
        let loaded = runtime.and_then(listed).unwrap_or_default().modules;
        len64(loaded.len().saturating_add(dump.images_beside(runtime, &loaded).len()))
    })
}

/// Returns the dynamic assemblies, which have no file. A NativeAOT program has none.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe its list of modules.
pub(in crate::analysis) fn dynamic_modules(runtime: &Runtime) -> Result<Answer<Vec<ModuleModel>>, Error> {
    let notes = runtime.begin();
    if runtime.descriptor().is_native_aot() {
        return Ok(notes.finish(Vec::new()));
    }
    let loaded = runtime.loaded_modules(&notes)?;
    let Some(describing) = Describing::of(Some(runtime), &loaded) else { return Ok(notes.finish(Vec::new())) };
    let dynamic = loaded.modules.iter().filter(|module| module.is_dynamic());
    let list: Vec<Described> = dynamic.map(|module| describing.module(module)).collect();
    list.iter().for_each(|module| module.of_loader.tell());
    Ok(notes.finish(list.into_iter().map(|module| module.model).collect()))
}

/// Returns the images that are only partly in the dump, with the contents of their files. A file that does not match the dump is ignored.
pub(crate) fn incomplete_images(dump: &Dump) -> Vec<(Listed, Arc<Bytes>)> {
    let mut out: Vec<(Listed, Arc<Bytes>)> = Vec::new();
    for runtime in dump.runtimes().into_iter().flatten() {
        let Ok(names) = runtime.type_names() else { continue };
        let Ok(loader) = Loader::bind(runtime.memory(), runtime.descriptor(), runtime.limits()) else { continue };
        let modules = names.modules();
        for module in tried(|| loader.modules()) {
            let image = || {
                let (base, id) = (modules.image_base(module)?, modules.file_id(module)?);
                let FileId::Stamp { timestamp, size } = id else { return None };
                let range = AddrRange::new(base, base.plus(u64::from(size)));
                // Flat mappings are not needed: their code is not executed, and the dump has everything that is read from them.
                let is_laid_out = modules.extent(module).is_some_and(|e| e.len() == range.len());
                (is_laid_out && dump.memory().captured(range) < range.len() && out.iter().all(|(m, _)| m.base != base)).then_some(())?;
                let bytes = modules.file(module)?.open().ok()?;
                id.check(&bytes, dump.memory().shape()).ok()?;
                let path = modules.path(module).unwrap_or_default();
                let (timestamp, size) = (Some(timestamp), u64::from(size));
                Some((Listed { path, base, size, timestamp, version: None, build_id: None }, bytes))
            };
            out.extend(tried(image));
        }
    }
    out
}

/// A module on the runtime's list, with the failed reads of its description. Those of the loader's structures make an answer about the module partial,
/// because every dump of a heap has these structures.
struct Described {
    model: ModuleModel,
    of_image: Missed,
    of_loader: Missed,
}

/// Describes the modules on the runtime's list.
struct Describing<'r> {
    modules: &'r Modules,
    loader: &'r Loader,
    /// System.Private.CoreLib.
    core: Option<Addr>,
    /// Its load context.
    framework: OnceCell<Kept<Option<Addr>>>,
}

impl<'r> Describing<'r> {
    /// `None` if the runtime does not describe modules.
    fn of(runtime: Option<&'r Runtime>, loaded: &'r LoadedModules) -> Option<Describing<'r>> {
        let (modules, loader) = (runtime?.type_names().ok()?.modules(), loaded.loader.as_ref()?);
        let mut all = loaded.modules.iter().filter_map(Module::address);
        let core = tried(|| all.find(|m| modules.is_named(*m, crate::clr::fields::CORE)));
        Some(Describing { modules, loader, core, framework: OnceCell::new() })
    }

    /// Returns the load context of CoreLib, which a list without modules does not need.
    fn framework(&self) -> Option<Addr> {
        *self.framework.get_or_init(|| Kept::of(|| self.loader.load_context(self.core?))).get()
    }

    /// Describes a module.
    fn module(&self, module: &Module) -> Described {
        let address = module.address().unwrap_or(Addr::NULL);
        let dynamic = module.is_dynamic();
        let (image, of_image) = watched(|| self.image(module, address, dynamic));
        let (model, of_loader) = watched(|| {
            let context = self.loader.load_context(address);
            ModuleModel {
                assembly: self.loader.assembly(address),
                load_context: context,
                default_context: context.and_then(|own| self.framework().map(|framework| own == framework)),
                collectible: self.loader.is_collectible(address),
                ..image
            }
        });
        if model.name.is_none() {
            of_image.tell();
        }
        Described { model, of_image, of_loader }
    }

    /// Describes the image of a module.
    fn image(&self, handle: &Module, address: Addr, dynamic: bool) -> ModuleModel {
        let module = self.modules.get(address);
        let file = if dynamic { None } else { self.modules.file(address) };
        let in_dump = matches!(module.origin, MetadataOrigin::Image | MetadataOrigin::Dynamic);
        let pdb = self.modules.pdb_named(address);
        let id = self.modules.file_id(address);
        ModuleModel {
            name: handle.name(),
            kind: if dynamic { ModuleKind::Dynamic } else { ModuleKind::Assembly },
            path: handle.path(),
            version: handle.version(),
            base: handle.base(),
            size: self.modules.extent(address).map(|e| e.len()).or_else(|| Some(handle.listed()?.size)),
            module: Some(address),
            assembly: None,
            image_size: image_size(id.as_ref()),
            mvid: module.metadata.as_ref().and_then(|m| m.mvid()).map(|id| guid(&id)),
            build_id: None,
            timestamp: stamp(id.as_ref()),
            pdb: pdb.as_ref().map(|(_, name)| name.clone()),
            pdb_id: pdb.and_then(|(id, _)| if let FileId::Pdb(id) = id { Some(hex(&id)) } else { None }),
            load_context: None,
            default_context: None,
            collectible: None,
            needed: false,
            needed_for: if in_dump || dynamic { Vec::new() } else { vec![ModuleNeed::Names] },
            missing: Vec::new(),
            missing_pages: 0,
            file: file.as_ref().map(|f| f.path().display().to_string()),
            found: file.map(|f| f.place()),
        }
    }
}

/// Describes an image that is not on the runtime's list. `unread`: base of the runtime's image if the runtime could not be read.
fn native_model(dump: &Dump, runtime: Option<&Runtime>, unread: Option<Addr>, handle: &Module) -> ModuleModel {
    let (image, id) = handle.headers();
    let site = runtime.map(|r| &r.description().site);
    let base = handle.base();
    let is_site = site.is_some_and(|s| s.module.as_ref().is_some_and(|m| Some(m.base) == base));
    let is_unread = unread.is_some() && unread == base;
    let needed = is_unread || site.is_some_and(|site| is_site && rests_on_file(site, dump.memory()));
    let found = handle.listed().and_then(|module| dump.file_of(module, id.as_ref()));
    let version = runtime.filter(|_| is_site).and_then(|r| r.description().version.clone());
    ModuleModel {
        name: handle.name(),
        kind: if is_site || is_unread { ModuleKind::Runtime } else { ModuleKind::Native },
        path: handle.path(),
        version: version.or_else(|| handle.version()),
        base,
        size: image.map(|image| image.range.len()).or_else(|| Some(handle.listed()?.size)),
        module: None,
        assembly: None,
        image_size: image_size(id.as_ref()),
        mvid: None,
        build_id: match &id {
            Some(FileId::BuildId(id)) => Some(hex(id)),
            _ => None,
        },
        timestamp: stamp(id.as_ref()),
        pdb: None,
        pdb_id: None,
        load_context: None,
        default_context: None,
        collectible: None,
        needed: false,
        needed_for: if needed { vec![ModuleNeed::Runtime] } else { Vec::new() },
        missing: Vec::new(),
        missing_pages: 0,
        file: found.as_ref().map(|f| f.path().display().to_string()),
        found: found.map(|f| f.place()),
    }
}

/// Whether the runtime could be found only with pages from its file, because the dump does not have them.
fn rests_on_file(site: &Site, memory: &Memory) -> bool {
    // The types of a NativeAOT program are in its image, so any page from the file may be needed.
    let in_image = site.debug_header.is_some() && site.filled.bytes > 0;
    let places = [site.image.as_ref().map(|i| i.base), site.descriptor, site.dac_table.map(|t| t.address)];
    in_image || places.into_iter().flatten().any(|at| memory.has(at) && !memory.is_from_dump(at))
}

/// Adds the pages that stack walks need and that are missing from the dump.
fn missing_pages(runtime: &Runtime, list: &mut [ModuleModel]) {
    // A new handle of the runtime is used, so that pages missed by other answers are not included.
    let runtime = &runtime.unread();
    let walked = tried(|| {
        let query = StacksQuery { roots: true, ..StacksQuery::default() };
        let _ = each_stack(runtime, &query, &mut drop);
        runtime.stack_walker().map(|walker| walker.code().bytes().absent_pages())
    });
    let Ok(absent) = walked else { return };
    for module in list {
        let Some((base, size)) = module.base.zip(module.size) else { continue };
        let range = AddrRange::new(base, base.plus(size));
        let from = absent.partition_point(|page| page.plus(PAGE - 1) < range.start);
        let inside = absent.iter().skip(from).take_while(|page| **page < range.end);
        for page in inside {
            module.missing_pages = module.missing_pages.saturating_add(1);
            let more = module.missing.len() < MAX_RANGES;
            match module.missing.last_mut() {
                Some(last) if last.end == *page => last.end = page.plus(PAGE),
                _ if more => module.missing.push(AddrRange::new(*page, page.plus(PAGE))),
                _ => {}
            }
        }
        if module.missing_pages > 0 {
            module.needed_for.push(ModuleNeed::Stacks);
        }
    }
}

fn stamp(id: Option<&FileId>) -> Option<u32> {
    match id {
        Some(FileId::Stamp { timestamp, .. }) => Some(*timestamp),
        _ => None,
    }
}

fn image_size(id: Option<&FileId>) -> Option<u64> {
    match id {
        Some(FileId::Stamp { size, .. }) => Some(u64::from(*size)),
        _ => None,
    }
}

/// Formats a GUID like .NET: the first three parts are little-endian numbers.
pub(crate) fn guid(id: &[u8; 16]) -> String {
    let [a, b, c, d, e, f, g, h, i, j, rest @ ..] = id;
    format!("{}-{}-{}-{}-{}", hex(&[*d, *c, *b, *a]), hex(&[*f, *e]), hex(&[*h, *g]), hex(&[*i, *j]), hex(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_modules_is_that_of_the_list() {
        for path in ["dumps/net10-wks-basics-heap.dmp.zst", "dumps/mono68-lab-gcore.dmp.zst"] {
            let dump = crate::open(path).unwrap();
            let list = modules(&dump, &ModulesQuery::default()).unwrap();
            assert_eq!(module_count(&dump, dump.runtime().ok().as_ref()), list.total, "{path}");
        }
    }

    #[test]
    fn a_lost_word_of_the_loader_is_reported() {
        let whole = crate::open("dumps/corpus/net10-wks-inspect-heap.dmp.zst").unwrap();
        let answer = modules(&whole, &ModulesQuery::default()).unwrap();
        assert!(answer.complete());
        let list = answer.data.modules;
        let runtime = whole.runtime().unwrap();
        let offset = |structure: &str, field: &str| runtime.descriptor().offset(structure, field).unwrap();
        let some: Vec<&ModuleModel> = list.iter().filter(|m| m.load_context.is_some()).collect();
        assert!(some.len() > 5, "{some:?}");
        for module in some.iter().take(4) {
            let at = module.module.unwrap();
            let image = runtime.memory().ptr(at.plus(offset("Module", "PEAssembly"))).unwrap();
            let allocator = runtime.memory().ptr(at.plus(offset("Module", "LoaderAllocator"))).unwrap();
            type Part = fn(&ModuleModel) -> bool;
            let words: [(Addr, Part); 4] = [
                (at.plus(offset("Module", "PEAssembly")), |m| m.load_context.is_none() && m.default_context.is_none()),
                (image.plus(offset("PEAssembly", "AssemblyBinder")), |m| m.load_context.is_none() && m.default_context.is_none()),
                (at.plus(offset("Module", "LoaderAllocator")), |m| m.collectible.is_none()),
                (allocator.plus(offset("LoaderAllocator", "ObjectHandle")), |m| m.collectible.is_none()),
            ];
            for (word, is_lost) in words {
                let mut file = whole.file().clone();
                file.remove(AddrRange::new(word, word.plus(8)));
                let answer = modules(&Dump::of(file, &crate::OpenOptions::new()), &ModulesQuery::default()).unwrap();
                let found = answer.data.modules.iter().find(|m| m.module == Some(at)).unwrap();
                assert!(is_lost(found) && !answer.complete(), "{word} of {:?}: {found:?}", module.name);
            }
        }
    }
}
