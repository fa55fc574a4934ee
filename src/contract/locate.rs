//! Finds the places in the process where a runtime may be.

use super::dac_table::DacTable;
use super::header::{self, Header};
use crate::base::{Addr, AddrRange, Collector, Limits, NoteKind};
use crate::dump::{DumpFile, Module};
use crate::memory::{FileSearch, Filled, Image, Memory, fill_module};

/// Exported by .NET 9 and later: the descriptor.
const DESCRIPTOR: &str = "DotNetRuntimeContractDescriptor";
/// Exported by CoreCLR of every version.
const DAC_TABLE: &str = "g_dacTable";
/// Exported by NativeAOT of .NET 8 and 9, which has no descriptor.
const AOT_HEADER: &str = "DotNetRuntimeDebugHeader";

/// Names of the runtime's own module.
const RUNTIME_NAMES: [&str; 3] = ["libcoreclr.so", "coreclr.dll", "libcoreclr.dylib"];

/// A place where a runtime may be.
#[derive(Clone, Debug)]
pub struct Site {
    /// The module, `None` where a bare scan found a descriptor outside of every module.
    pub module: Option<Module>,
    /// Its image.
    pub image: Option<Image>,
    /// The descriptor's header.
    pub descriptor: Option<Addr>,
    /// How it was found.
    pub descriptor_found_by: Option<&'static str>,
    /// `g_dacTable`.
    pub dac_table: Option<DacTable>,
    /// The module file that filled pages in.
    pub filled: Filled,
}

/// What was seen on the way: for the message when there is no runtime.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Modules of NativeAOT programs without a descriptor.
    pub native_aot: Vec<Module>,
    /// Modules of runtimes that gcdump does not read: .NET Framework, Mono.
    pub foreign: Vec<(Module, &'static str)>,
    /// Modules with the runtime's name whose image is not in the dump.
    pub headless: Vec<Module>,
}

/// Whether this is the runtime's own module by name.
pub fn is_runtime_name(module: &Module) -> bool {
    RUNTIME_NAMES.iter().any(|n| module.file_name().eq_ignore_ascii_case(n))
}

fn foreign(module: &Module) -> Option<&'static str> {
    match module.file_name().to_ascii_lowercase().as_str() {
        "clr.dll" => Some(".NET Framework 4"),
        "mscorwks.dll" => Some(".NET Framework 2 to 3.5"),
        name if name.starts_with("libmonosgen") || name.starts_with("mono-2.0") || name.starts_with("libmono-") => Some("Mono"),
        _ => None,
    }
}

/// Finds every place where a runtime may be, and tops their images up from matching files.
pub fn find(dump: &DumpFile, memory: &mut Memory, search: &FileSearch, limits: &Limits, notes: &Collector) -> (Vec<Site>, Seen) {
    let mut seen = Seen::default();
    let mut sites = Vec::new();
    let (named, others): (Vec<&Module>, Vec<&Module>) = dump.modules.iter().partition(|m| is_runtime_name(m));
    for module in named {
        let filled = top_up(dump, memory, module, search, notes, false);
        match Image::at(memory, module.base) {
            Some(image) => sites.push(site(memory, module, image, filled, limits)),
            None => seen.headless.push(module.clone()),
        }
    }
    // Single-file and NativeAOT programs carry the runtime in their own image.
    for module in others {
        if let Some(what) = foreign(module) {
            seen.foreign.push((module.clone(), what));
        }
        let Some(image) = Image::at(memory, module.base) else { continue };
        let exports = image.export(memory, DESCRIPTOR).is_some() || image.export(memory, DAC_TABLE).is_some();
        if exports {
            let filled = top_up(dump, memory, module, search, notes, true);
            sites.push(site(memory, module, image, filled, limits));
        } else if image.export(memory, AOT_HEADER).is_some() {
            seen.native_aot.push(module.clone());
        }
    }
    if sites.is_empty() && seen.native_aot.is_empty() {
        sites.extend(stray_descriptor(dump, memory, limits));
    }
    (sites, seen)
}

fn top_up(dump: &DumpFile, memory: &mut Memory, module: &Module, search: &FileSearch, notes: &Collector, single_file: bool) -> Filled {
    let image = Image::at(memory, module.base);
    // Kernels dump written pages of private mappings only; createdump without a DAC, as with single-file programs, too.
    // Where nothing writable of the image was captured, it is a mini dump: what the file says would be stale.
    image.iter().flat_map(|i| &i.writable).for_each(|r| memory.scan(*r));
    let written_pages_saved = image.as_ref().is_some_and(|i| i.writable.iter().any(|r| memory.captured(*r) > 0));
    let clean_pages = written_pages_saved && (single_file || dump.facts.uncaptured_mappings > 0);
    let filled = fill_module(memory, module, image.as_ref(), search, dump.facts.os, clean_pages);
    for (path, reason) in &filled.rejected {
        notes.add(
            NoteKind::ModuleMismatch,
            None,
            format!("{} is not the {} of this process: {reason}", path.display(), module.file_name()),
        );
    }
    filled
}

fn site(memory: &Memory, module: &Module, image: Image, filled: Filled, limits: &Limits) -> Site {
    let exported = image.export(memory, DESCRIPTOR).map(|e| (e.address, "its export"));
    let found = exported.or_else(|| scan(memory, &image.writable, limits).map(|a| (a, "its magic bytes in the module's data")));
    let dac_table = image.export(memory, DAC_TABLE).map(|e| DacTable {
        address: e.address,
        entries: e.size.map(|bytes| bytes / memory.ptr_bytes()),
        found_by: "its export",
    });
    Site {
        module: Some(module.clone()),
        image: Some(image),
        descriptor: found.map(|f| f.0),
        descriptor_found_by: found.map(|f| f.1),
        dac_table,
        filled,
    }
}

/// Looks for a root descriptor in `ranges`. In .NET 11 the GC's descriptors carry the same magic, so a hit counts only
/// when it has sub-descriptors or the Thread contract, or when its JSON is absent but everything else makes sense.
fn scan(memory: &Memory, ranges: &[AddrRange], limits: &Limits) -> Option<Addr> {
    let magic = header::magic(memory);
    let mut without_json = None;
    for range in ranges {
        for (start, bytes) in memory.stretches(*range) {
            for offset in memchr::memmem::find_iter(bytes, &magic) {
                let address = start.plus(u64::try_from(offset).unwrap_or(u64::MAX));
                if !address.is_aligned(memory.ptr_bytes()) {
                    continue;
                }
                let Ok(header) = Header::read(memory, address, limits) else { continue };
                match header.parse(memory) {
                    Ok(raw) if !raw.sub_descriptors.is_empty() || raw.contracts.iter().any(|c| c.0 == "Thread") => return Some(address),
                    Ok(_) => {}
                    Err(header::HeaderError::JsonAbsent(_)) if header.slots > 1 => {
                        without_json.get_or_insert(address);
                    }
                    Err(_) => {}
                }
            }
        }
    }
    without_json
}

/// The last resort: a descriptor anywhere in captured writable memory (stripped or renamed images).
fn stray_descriptor(dump: &DumpFile, memory: &Memory, limits: &Limits) -> Option<Site> {
    let writable: Vec<AddrRange> = dump.regions.iter().filter(|r| r.write).map(|r| r.range).collect();
    let everything = [AddrRange::new(Addr::NULL, Addr(u64::MAX))];
    let ranges = if writable.is_empty() { everything.as_slice() } else { writable.as_slice() };
    let address = scan(memory, ranges, limits)?;
    let module = dump.modules.iter().find(|m| AddrRange::new(m.base, m.base.plus(m.size)).contains(address)).cloned();
    let image = module.as_ref().and_then(|m| Image::at(memory, m.base));
    Some(Site {
        module,
        image,
        descriptor: Some(address),
        descriptor_found_by: Some("its magic bytes, in a scan of all captured memory"),
        dac_table: None,
        filled: Filled::default(),
    })
}
