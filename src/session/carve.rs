//! Selects the memory to search for objects when the GC's structures are not used.

use super::{Runtime, Startup};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Collector, file_name, ranges};
use crate::clr::loader_heaps::LoaderHeaps;
use crate::dump::{Container, ThreadStacks};
use crate::gc::Searched;
use crate::memory::{Image, ImageFormat};
use crate::model::HandleKind;
use crate::stack::code::CodeUse;

/// Returns the memory to search for objects: writable captured memory outside of images, loader heaps and code. `why` is the reason why the GC's
/// structures are not used.
pub(super) fn searched(runtime: &Runtime, why: String) -> Searched {
    let (file, memory) = (runtime.file(), runtime.memory());
    let captured = ranges::union(memory.in_dump(AddrRange::new(Addr::NULL, Addr(u64::MAX))).collect(), 0);
    let writable = ranges::union(file.regions.iter().filter(|r| r.write && !r.execute).map(|r| r.range).collect(), 0);
    let is_core = file.facts.container == Container::ElfCore;
    let mut taken: Vec<AddrRange> = file.files.iter().map(|f| f.range).collect();
    for module in &file.modules {
        taken.push(module.range());
        // In a core, assemblies are mapped as flat files. Such a mapping is smaller than the image size in the headers, so that size is not used.
        let loaded = tried(|| Image::at(memory, module.base)).filter(|i| i.format == ImageFormat::Elf || !is_core);
        taken.extend(loaded.map(|image| image.range));
    }
    // The kernel merges adjacent mappings, so a range may include more than the stack. The whole range is treated as stack.
    let of_threads = ThreadStacks::new(file);
    let stacks = ranges::union(file.threads.iter().filter_map(|thread| of_threads.whole(thread, None)).collect(), 0);
    tried(|| of_the_runtime(runtime, &mut taken));
    let writable = if writable.is_empty() { captured } else { ranges::intersect(&captured, &writable) };
    let collector = runtime.standalone_gc().map(|gc| gc.file.clone()).or_else(|| named(runtime));
    let why = match &collector {
        Some(file) => format!("{file}, the GC that the process was started with, does not describe it ({why})"),
        None => why,
    };
    let ranges = ranges::subtract(&writable, &ranges::union(taken, 0));
    Searched { ranges, writable, stacks, why, collector, slots: tried(|| slots(runtime)) }
}

/// The file of the standalone GC with which the process was started. `None` if the standalone GC was not loaded.
fn named(runtime: &Runtime) -> Option<String> {
    const SETTINGS: [&str; 4] = ["DOTNET_GCName", "DOTNET_GCPath", "COMPlus_GCName", "COMPlus_GCPath"];
    let started = tried(|| Startup::of(runtime.file(), runtime.memory()))?;
    let given = started.environment.iter().filter(|(name, _)| SETTINGS.contains(&name.as_str()));
    let loaded = |path: &str| runtime.file().modules.iter().find(|m| m.file_name() == file_name(path));
    given.filter_map(|(_, path)| loaded(path)).map(|m| m.file_name().to_string()).next()
}

/// Handles to which threads and collectible assemblies refer.
fn slots(runtime: &Runtime) -> Vec<(Addr, HandleKind)> {
    let mut out = Vec::new();
    let Ok(threads) = runtime.thread_list() else { return out };
    for thread in &threads.data {
        out.extend(thread.exposed_handle.map(|at| (at, HandleKind::WeakShort)));
        out.extend(thread.last_thrown_handle.map(|at| (at, HandleKind::Strong)));
        out.extend(thread.exception_handles.iter().map(|(at, _)| (*at, HandleKind::Strong)));
    }
    if let Ok(types) = runtime.namer().types() {
        let allocators = types.loader().modules().into_iter().filter_map(|module| types.loader().allocator_handle(module));
        out.extend(allocators.map(|at| (at, HandleKind::WeakLong)));
    }
    out.retain(|(at, _)| !at.is_null() && at.is_aligned(runtime.memory().ptr_bytes()));
    out
}

/// Adds loader heaps, code and stubs to `out`.
fn of_the_runtime(runtime: &Runtime, out: &mut Vec<AddrRange>) {
    if runtime.descriptor().is_native_aot() {
        return;
    }
    if let Ok(walker) = runtime.stack_walker() {
        out.extend(walker.code().ranges().ranges.into_iter().filter(|(_, used)| *used != CodeUse::Image).map(|(range, _)| range));
    }
    let notes = Collector::new();
    let namer = runtime.namer();
    let Ok(types) = namer.types() else { return };
    let Some(heaps) = runtime.scoped(&notes, |d| LoaderHeaps::bind(runtime.memory(), d)) else { return };
    out.extend(notes.take(heaps.blocks(types.modules(), None)).into_iter().map(|block| block.range));
}
