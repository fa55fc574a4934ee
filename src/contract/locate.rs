//! Locates candidate runtimes in the process.

use std::cell::OnceCell;
use std::path::Path;

use super::dac_table::DacTable;
use super::header::{self, Header};
use super::native_aot::{self, DebugHeader, DebugHeaderError};
use crate::base::hash::Set;
use crate::base::missed::watched;
use crate::base::{Addr, AddrRange, Collector, Limits, Missing, NoteKind, len64, ranges};
use crate::dump::{Container, DumpFile, Module};
use crate::memory::{DataPages, FileSearch, Filled, Image, ImageFormat, Memory, Rejected, fill_module, is_by_createdump};

/// Exported symbol of the descriptor, in .NET 9 and later.
const DESCRIPTOR: &str = "DotNetRuntimeContractDescriptor";
/// Exported symbol of the DAC table, in CoreCLR of every version.
const DAC_TABLE: &str = "g_dacTable";
const RUNTIME: [&str; 2] = [DESCRIPTOR, DAC_TABLE];

/// Keys of the auxiliary vector (`elf.h`): the address of the program headers, and the entry point.
const AT_PHDR: u64 = 3;
const AT_ENTRY: u64 = 9;

/// Maximum size assumed for `.bss`, after which other memory may follow. The `.bss` of libcoreclr has 70 KB.
const MOST_BSS: u64 = 1 << 20;

/// File names of the runtime module.
const RUNTIME_NAMES: [&str; 3] = ["libcoreclr.so", "coreclr.dll", "libcoreclr.dylib"];

/// File names of the GC libraries that are distributed with the runtime.
const GC_NAMES: [&str; 4] = ["libclrgc.so", "libclrgcexp.so", "clrgc.dll", "clrgcexp.dll"];

/// A candidate runtime.
#[derive(Clone, Debug)]
pub struct Site {
    /// The module; `None` if a scan found the descriptor outside all modules.
    pub module: Option<Module>,
    /// Image of the module.
    pub image: Option<Image>,
    /// Address of the descriptor header.
    pub descriptor: Option<Addr>,
    /// How the descriptor was found.
    pub descriptor_found_by: Option<&'static str>,
    /// `g_dacTable`.
    pub dac_table: Option<DacTable>,
    /// The `DotNetRuntimeDebugHeader` of a NativeAOT program without a descriptor.
    pub debug_header: Option<DebugHeader>,
    /// Whether the module is Mono's runtime.
    pub mono: bool,
    /// The module file that supplies missing pages.
    pub filled: Filled,
}

/// Modules seen during the search, for the error message if no runtime is found.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Modules of NativeAOT programs whose debug header cannot be used, with the reason.
    pub native_aot: Vec<(Module, DebugHeaderError)>,
    /// Modules of unsupported runtimes: .NET Framework, Mono.
    pub foreign: Vec<(Module, &'static str)>,
    /// Modules with the file name of a runtime, if their image is not in the dump.
    pub headless: Vec<Module>,
    /// The program, if the dump does not show whether it contains the runtime.
    pub unread: Option<UnreadProgram>,
}

/// A program whose exports are not in the dump.
#[derive(Clone, Debug)]
pub struct UnreadProgram {
    /// Path of the program.
    pub path: String,
    /// Build ID of the program.
    pub build_id: Option<Vec<u8>>,
    /// Reasons why candidate files were rejected.
    pub refused: Vec<String>,
}

/// The module of the main program.
pub(crate) fn own_program(dump: &DumpFile) -> Option<&Module> {
    let aux = |wanted: u64| dump.auxv.iter().find(|(key, _)| *key == wanted).map(|(_, value)| Addr(*value));
    let of = |at: Addr| dump.modules.iter().find(|m| m.range().contains(at));
    [AT_PHDR, AT_ENTRY].into_iter().filter_map(aux).find_map(of).or(dump.modules.first())
}

/// Whether the module has the file name of a runtime.
pub fn is_runtime_name(module: &Module) -> bool {
    RUNTIME_NAMES.iter().any(|n| module.file_name().eq_ignore_ascii_case(n))
}

/// Whether the module has the file name of a GC library that is distributed with the runtime.
fn is_gc_name(module: &Module) -> bool {
    GC_NAMES.iter().any(|n| module.file_name().eq_ignore_ascii_case(n))
}

/// Whether the module has the file name of Mono with the collector SGen: the program `mono-sgen`, or the library that a program embeds.
fn is_mono(module: &Module) -> bool {
    let name = module.file_name().to_ascii_lowercase();
    ["libmonosgen", "mono-2.0", "libmono-2.0"].iter().any(|start| name.starts_with(start)) || name == "mono-sgen" || name == "mono"
}

fn is_boehm(name: &str) -> bool {
    name.starts_with("libmonoboehm") || name == "mono-boehm"
}

fn foreign(module: &Module) -> Option<&'static str> {
    match module.file_name().to_ascii_lowercase().as_str() {
        "clr.dll" => Some(".NET Framework 4"),
        "mscorwks.dll" => Some(".NET Framework 2 to 3.5"),
        name if is_boehm(name) => Some("Mono with the Boehm collector"),
        _ => None,
    }
}

/// Finds all candidate runtimes and fills in their images from matching files. An image that is listed more than once is one candidate.
pub fn find(dump: &DumpFile, memory: &mut Memory, search: &FileSearch, limits: &Limits, notes: &Collector) -> (Vec<Site>, Seen) {
    let mut seen = Seen::default();
    let mut sites = Vec::new();
    let unread = Unread::new(dump);
    let mut bases = Set::default();
    let listed = dump.modules.iter().filter(|m| bases.insert((m.base, is_runtime_name(m))));
    let (named, others): (Vec<&Module>, Vec<&Module>) = listed.partition(|m| is_runtime_name(m));
    for module in named {
        let filled = top_up(&unread, memory, module, search, notes, false);
        match Image::at(memory, module.base).or_else(|| unread.image(memory, module)) {
            Some(image) if has_room(&sites, limits, notes) => sites.push(site(memory, module, image, filled, limits)),
            Some(_) => break,
            None => seen.headless.push(module.clone()),
        }
    }
    // The JSON of the GC's descriptor may be in the file only, so the files of GC libraries fill in missing pages.
    for module in dump.modules.iter().filter(|m| is_gc_name(m)) {
        top_up(&unread, memory, module, search, notes, false);
    }
    for module in others.iter().filter(|m| is_mono(m)) {
        let filled = top_up(&unread, memory, module, search, notes, false);
        match Image::at(memory, module.base).or_else(|| unread.image(memory, module)) {
            Some(image) if has_room(&sites, limits, notes) => {
                sites.push(Site { mono: true, ..site(memory, module, image, filled, limits) })
            }
            Some(_) => break,
            None => seen.foreign.push(((*module).clone(), "Mono")),
        }
    }
    // Single-file and NativeAOT programs contain the runtime in their own image.
    for module in others {
        if let Some(what) = foreign(module) {
            seen.foreign.push((module.clone(), what));
        }
        if sites.iter().any(|s: &Site| s.image.as_ref().is_some_and(|i| i.base == module.base)) {
            continue;
        }
        let Some(image) = Image::at(memory, module.base) else { continue };
        let exported = exports_runtime(memory, &image);
        if let Contents::NoRoom = add(&mut sites, &mut seen, (&unread, memory), (module, image), (search, notes), limits, exported) {
            break;
        }
    }
    // The pages of the export tables may be missing, so search by content.
    if sites.is_empty() && seen.native_aot.is_empty() {
        let image = |module: &Module| Image::at(memory, module.base).or_else(|| unread.image(memory, module));
        for (module, image, found) in native_aot::all_by_content(memory, &dump.modules, image, limits.runtimes) {
            program(&mut sites, &mut seen, (&unread, memory), (module, image), (search, notes), found);
        }
    }
    // Small dumps do not have the program's data, but the program's file shows whether the program contains a runtime.
    if sites.is_empty() && seen.native_aot.is_empty() {
        let own = own_program(dump);
        let given =
            |m: &&Module| own.is_some_and(|own| own.base == m.base) || search.modules.iter().any(|folder| search.is_in(folder, &m.path));
        for module in own.into_iter().chain(dump.modules.iter().filter(|m| own.is_none_or(|own| own.base != m.base))).filter(given) {
            let filled = top_up(&unread, memory, module, search, &Collector::new(), false);
            let Some(image) = Image::at(memory, module.base) else { continue };
            let (exported, missed) = watched(|| exports_runtime(memory, &image));
            match add(&mut sites, &mut seen, (&unread, memory), (module, image), (search, notes), limits, exported) {
                Contents::Runtime => {}
                Contents::NoRoom => break,
                Contents::NoRuntime(image) => {
                    if filled.file.is_none() && missed.first().is_some() && own.is_some_and(|own| own.base == module.base) {
                        let refused = filled.rejected.iter().map(|(path, why)| refusal(module, path, why)).collect();
                        seen.unread = Some(UnreadProgram { path: module.path.clone(), build_id: image.build_id, refused });
                    }
                }
            }
        }
    }
    if sites.is_empty() && seen.native_aot.is_empty() {
        sites.extend(stray_descriptor(dump, memory, limits));
        // A descriptor was found, but the module has no image in the dump, so data in this image is missing.
        if let Some(module) = seen.headless.first().filter(|_| sites.iter().any(|s| s.image.is_none())) {
            notes.add(Missing::Modules, module.base, format!("the headers of {} are not in the dump", module.path));
        }
    }
    // In a truncated dump, the runtime's variables may be missing, because they follow the heap. The module is kept as a candidate, because the
    // rest of the dump may confirm the layouts of an overlay.
    if let Some(module) = seen.headless.first().filter(|_| memory.is_cut() && sites.is_empty() && seen.native_aot.is_empty()) {
        let (image, descriptor) = (None, None);
        sites.push(Site {
            module: Some(module.clone()),
            image,
            descriptor,
            descriptor_found_by: None,
            dac_table: None,
            debug_header: None,
            mono: false,
            filled: Filled::default(),
        });
    }
    // A module whose descriptor was found after all is not headless.
    seen.headless.retain(|m| !sites.iter().any(|s| s.module.as_ref().is_some_and(|found| found.base == m.base)));
    sites.iter().for_each(|site| note_losses(memory, site, notes));
    (sites, seen)
}

/// Determines the images of modules whose headers are not in the dump. The dump's list of mapped files gives the extent of an image, and the list of
/// writable memory gives the written parts. The kernel leaves the headers out if bit 4 of `coredump_filter` is clear.
struct Unread<'d> {
    dump: &'d DumpFile,
    /// Start addresses of mapped files and writable ranges, in address order. Computed for the first module that needs them.
    maps: OnceCell<(Vec<Addr>, Vec<AddrRange>)>,
}

impl<'d> Unread<'d> {
    fn new(dump: &'d DumpFile) -> Unread<'d> {
        Unread { dump, maps: OnceCell::new() }
    }

    fn maps(&self) -> &(Vec<Addr>, Vec<AddrRange>) {
        let dump = self.dump;
        self.maps.get_or_init(|| {
            let mut files: Vec<Addr> = dump.files.iter().map(|f| f.range.start).collect();
            files.sort_unstable();
            // Minidumps without a list of regions do not record which ranges are writable. All captured ranges are used, because read-only memory of
            // an image is not in such a minidump if the headers of the image are not.
            let captured = || dump.ranges.iter().map(|r| r.range()).collect();
            let writable = || dump.regions.iter().filter(|r| r.write).map(|r| r.range).collect();
            (files, ranges::union(if dump.regions.is_empty() { captured() } else { writable() }, 0))
        })
    }

    /// The image of `module`, if a part of the image that the process has written to is in the dump.
    fn image(&self, memory: &Memory, module: &Module) -> Option<Image> {
        let format = if self.dump.facts.container == Container::ElfCore { ImageFormat::Elf } else { ImageFormat::Pe };
        let (files, written) = self.maps();
        let listed = module.base.plus(module.size);
        // In a core, `.bss` follows the last mapping of the file, and ends before the next mapped file.
        let next = files.get(files.partition_point(|start| *start < listed));
        let bss = if format == ImageFormat::Elf { MOST_BSS } else { 0 };
        let end = next.map_or(listed.plus(bss), |start| (*start).min(listed.plus(bss)));
        let range = AddrRange::new(module.base, end);
        let from = written.partition_point(|r| r.end <= range.start);
        let inside = written.iter().skip(from).take_while(|r| r.start < range.end && memory.afford_steps(1));
        let part = |r: &AddrRange| AddrRange::new(r.start.max(range.start), r.end.min(range.end));
        let writable: Vec<AddrRange> = inside.map(part).filter(|r| memory.captured(*r) > 0).collect();
        (!writable.is_empty()).then(|| Image::bare(format, range, writable))
    }
}

/// Adds a note if data that was looked up in the image of a runtime is lost: the build ID or the exports.
fn note_losses(memory: &Memory, site: &Site, notes: &Collector) {
    let (Some(module), Some(image)) = (&site.module, &site.image) else { return };
    let looked_for = || {
        let headers = Image::at(memory, image.base);
        // NativeAOT programs export neither symbol.
        let exports = site.debug_header.is_none().then(|| RUNTIME.map(|name| image.export(memory, name)));
        (headers, exports)
    };
    let (_, missed) = watched(looked_for);
    if let Some((address, ..)) = missed.first().filter(|_| memory.has_lost(&missed)) {
        notes.add(Missing::Modules, address, format!("a part of the headers or exports of {} is not in the dump", module.path));
    }
}

/// Whether `image` exports symbols of CoreCLR.
fn exports_runtime(memory: &Memory, image: &Image) -> bool {
    RUNTIME.iter().any(|name| image.export(memory, name).is_some())
}

/// Contents of the image of a program.
enum Contents {
    /// The image contains a runtime, which was added.
    Runtime,
    /// The image contains a runtime, but the maximum number of runtimes is reached.
    NoRoom,
    /// The image does not contain a runtime, or data that would show it is missing.
    NoRuntime(Image),
}

/// Adds the runtime in the image of a program: CoreCLR if `exported`, or else NativeAOT if the image exports a debug header.
fn add(
    sites: &mut Vec<Site>,
    seen: &mut Seen,
    (unread, memory): (&Unread<'_>, &mut Memory),
    (module, image): (&Module, Image),
    (search, notes): (&FileSearch, &Collector),
    limits: &Limits,
    exported: bool,
) -> Contents {
    let header = if exported { None } else { native_aot::by_export(memory, &image) };
    if !exported && header.is_none() {
        return Contents::NoRuntime(image);
    }
    if !has_room(sites, limits, notes) {
        return Contents::NoRoom;
    }
    match header {
        Some(found) => program(sites, seen, (unread, memory), (module, image), (search, notes), found),
        None => {
            let filled = top_up(unread, memory, module, search, notes, true);
            sites.push(site(memory, module, image, filled, limits));
        }
    }
    Contents::Runtime
}

/// Adds a NativeAOT program. The program's file supplies data that is missing from the dump, such as the names in the debug header.
fn program(
    sites: &mut Vec<Site>,
    seen: &mut Seen,
    (unread, memory): (&Unread<'_>, &mut Memory),
    (module, image): (&Module, Image),
    (search, notes): (&FileSearch, &Collector),
    found: Result<DebugHeader, DebugHeaderError>,
) {
    // Heap dumps by createdump do not have all data pages. The file supplies the missing pages, because compilers put constants there too. Readers of
    // data that the process may have changed check the origin of a page (`Memory::is_from_dump`). The descriptor omits variables of the runtime in
    // pages that are not from the dump.
    let filled = top_up(unread, memory, module, search, notes, true);
    // The header may be readable now that the file has filled in pages.
    let again = |e| native_aot::by_export(memory, &image).or_else(|| native_aot::by_content(memory, &image)).unwrap_or(Err(e));
    match found.or_else(again) {
        Err(why) => seen.native_aot.push((module.clone(), why)),
        Ok(header) => sites.push(Site {
            module: Some(module.clone()),
            image: Some(image),
            descriptor: None,
            descriptor_found_by: None,
            dac_table: None,
            debug_header: Some(header),
            mono: false,
            filled,
        }),
    }
}

/// Whether the limit on the number of runtimes allows another runtime. If not, adds a note.
fn has_room(sites: &[Site], limits: &Limits, notes: &Collector) -> bool {
    let room = sites.len() < limits.runtimes;
    if !room {
        notes.add(NoteKind::LimitHit, None, format!("only the first {} runtimes of the process are read", limits.runtimes));
    }
    room
}

fn top_up(unread: &Unread<'_>, memory: &mut Memory, module: &Module, search: &FileSearch, notes: &Collector, single_file: bool) -> Filled {
    let dump = unread.dump;
    let image = Image::at(memory, module.base);
    // Kernels dump the written pages of private mappings. createdump without a DAC (single-file programs) leaves out written pages that are
    // file-backed. A dump without any writable page of the image is a mini dump. Its missing data is not filled in, because the process may have
    // changed the data since it was loaded from the file.
    image.iter().flat_map(|i| &i.writable).take_while(|_| memory.afford_steps(1)).for_each(|r| memory.scan(*r));
    let written_pages_saved = match &image {
        Some(image) => image.writable.iter().any(|r| memory.captured(*r) > 0),
        None => unread.image(memory, module).is_some(),
    };
    let data = match written_pages_saved {
        true if single_file && is_by_createdump(dump, memory) => DataPages::Initial,
        true if single_file || dump.facts.uncaptured_mappings > 0 => DataPages::Unchanged,
        _ => DataPages::Absent,
    };
    let filled = fill_module(memory, module, image.as_ref(), search, dump.facts.os, data);
    for (path, reason) in &filled.rejected {
        notes.add(NoteKind::ModuleMismatch, None, refusal(module, path, reason));
    }
    filled
}

fn refusal(module: &Module, path: &Path, reason: &Rejected) -> String {
    let (path, name) = (path.display(), module.file_name());
    match reason {
        Rejected::Other(why) => format!("{path} is not the {name} of this process: {why}"),
        Rejected::Unverified(why) => format!("{path} cannot be verified as the {name} of this process, and is not used: {why}"),
    }
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
        debug_header: None,
        mono: false,
        filled,
    }
}

/// Fixed cost of searching a range, in bytes of the budget for opening a dump. The bytes of the range are added.
const BYTES_OF_A_RANGE: u64 = 512;

/// Searches `ranges` for a root descriptor. In .NET 11 the GC descriptors have the same magic bytes. A match must therefore have sub-descriptors or
/// the Thread contract. If the JSON of a match is missing from the dump, all other parts of the descriptor must be valid.
fn scan(memory: &Memory, ranges: &[AddrRange], limits: &Limits) -> Option<Addr> {
    let magic = header::magic(memory);
    let mut without_json = None;
    // Among descriptors without JSON the largest is used. In .NET 11 the runtime's descriptor is much larger than the GC descriptors.
    let larger = |a: Option<Header>, b: Header| a.filter(|a| a.json_bytes >= b.json_bytes).or(Some(b));
    for range in ranges {
        if !memory.afford_bytes(BYTES_OF_A_RANGE) {
            break;
        }
        for (start, bytes) in memory.stretches(*range) {
            if !memory.afford_bytes(len64(bytes.len()).saturating_add(BYTES_OF_A_RANGE)) {
                return without_json.map(|h: Header| h.address);
            }
            for offset in memchr::memmem::find_iter(bytes, &magic) {
                let address = start.plus(u64::try_from(offset).unwrap_or(u64::MAX));
                if !address.is_aligned(memory.ptr_bytes()) {
                    continue;
                }
                if !memory.afford_steps(1) {
                    return without_json.map(|h| h.address);
                }
                let Ok(header) = Header::read(memory, address, limits) else { continue };
                match header.parse(memory) {
                    Ok(raw) if !raw.sub_descriptors.is_empty() || raw.contracts.iter().any(|c| c.0 == "Thread") => return Some(address),
                    Ok(_) => {}
                    Err(header::HeaderError::JsonAbsent(_)) if header.slots > 1 => {
                        without_json = larger(without_json, header);
                    }
                    Err(_) => {}
                }
            }
        }
    }
    without_json.map(|h| h.address)
}

/// Last resort: searches all captured writable memory for a descriptor (stripped or renamed images).
fn stray_descriptor(dump: &DumpFile, memory: &Memory, limits: &Limits) -> Option<Site> {
    let writable = ranges::union(dump.regions.iter().filter(|r| r.write).map(|r| r.range).collect(), 0);
    let everything = [AddrRange::new(Addr::NULL, Addr(u64::MAX))];
    let searched = if writable.is_empty() { everything.as_slice() } else { writable.as_slice() };
    let address = scan(memory, searched, limits)?;
    let module = dump.modules.iter().find(|m| m.range().contains(address)).cloned();
    let image = module.as_ref().and_then(|m| Image::at(memory, m.base));
    Some(Site {
        module,
        image,
        descriptor: Some(address),
        descriptor_found_by: Some("its magic bytes, in a scan of all captured memory"),
        dac_table: None,
        debug_header: None,
        mono: false,
        filled: Filled::default(),
    })
}
