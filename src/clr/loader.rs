//! The loader's tables: assemblies of the application domain, types of a module by token, and its generic instances.
//!
//! Source: contract `Loader`, `dacenumerablehash.h`, `docs/internals/types.md#modules`.
//! Measured on .NET 8 to 10: a list of .NET 10 and older holds `DomainAssembly`, a newer one `Assembly`; the first three
//! words of a bucket array are its length, the next array while it grows, and the mark that ends chains.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::hash::{Map, Set};
use crate::base::{Addr, Budget, Limits};
use crate::contract::descriptor::layout;
use crate::contract::{Contract, ContractError, Descriptor};
use crate::memory::Memory;

/// Maximum blocks of the assembly list. The first block has 32 slots, each further one twice as many.
const MAX_BLOCKS: usize = 64;
/// Maximum maps in the chain of a table: each added map doubles the size.
const MAX_MAPS: u32 = 64;
/// Maximum cycles recorded: every lookup may find one.
const MAX_CYCLES: usize = 256;
/// Maximum rows of a metadata table.
const MAX_ROWS: u64 = 1 << 24;
/// Maximum entries of an instance hash table.
const MAX_ENTRIES: usize = 4 << 20;
/// Maximum bucket arrays of a hash table: two while it grows.
const MAX_ARRAYS: u32 = 4;
/// Name of a module's type table in notes.
const A_MAP: &str = "the type table of a module";
/// Header words of a bucket array: length, next array, end mark.
const SPECIAL_SLOTS: u64 = 3;
/// Bit that marks the end of a chain.
const END: u64 = 1;
/// Bit of an entry's value that is not part of the type handle.
const ENTRY_FLAG: u64 = 1;

layout! {
    struct ListLayout : "ArrayListBase" {
        count: req "Count",
        first: req "FirstBlock",
    }
}

layout! {
    struct BlockLayout : "ArrayListBlock" {
        next: req "Next",
        size: req "Size",
        items: req "ArrayStart",
    }
}

layout! {
    struct MapLayout : "ModuleLookupMap" {
        next: req "Next",
        table: req "TableData",
        count: req "Count",
        // A mask of flags, the same in every entry of the map.
        flags: opt "SupportedFlagsMask",
    }
}

layout! {
    struct HashLayout : "EETypeHashTable" {
        buckets: req "Buckets",
        count: req "Count",
        value: req "VolatileEntryValue",
        next: req "VolatileEntryNextEntry",
    }
}

layout! {
    struct ModuleLayout : "Module" {
        type_defs: opt "TypeDefToMethodTableMap",
        type_refs: opt "TypeRefToMethodTableMap",
        instances: opt "AvailableTypeParams",
        allocator: opt "LoaderAllocator",
    }
}

layout! {
    struct AllocatorLayout : "LoaderAllocator" {
        // A handle to the managed LoaderAllocator of collectible assemblies.
        object: opt "ObjectHandle",
    }
}

layout! {
    struct AssemblyOfModule : "Module" {
        pe_assembly: req "PEAssembly",
    }
}

layout! {
    struct BinderLayout : "PEAssembly" {
        binder: req "AssemblyBinder",
    }
}

/// The assembly list of the application domain.
#[derive(Clone, Debug)]
struct Assemblies {
    domain: Addr,
    list: u64,
    layout: ListLayout,
    block: BlockLayout,
    /// Offset of the assembly in an item; `None` if the item is the assembly.
    item: Option<u64>,
    module: u64,
}

impl Assemblies {
    fn bind(d: &Descriptor) -> Option<Assemblies> {
        // Distinguished by the field's presence, not a version: .NET 11 renamed it when it changed the list's items.
        let (list, item) = match d.offset("AppDomain", "AssemblyList") {
            Ok(list) => (list, None),
            Err(_) => (d.offset("AppDomain", "DomainAssemblyList").ok()?, Some(d.offset("DomainAssembly", "Assembly").ok()?)),
        };
        Some(Assemblies {
            domain: d.pointer("AppDomain").ok()?,
            list,
            layout: ListLayout::bind(d).ok()?,
            block: BlockLayout::bind(d).ok()?,
            item,
            module: d.offset("Assembly", "Module").ok()?,
        })
    }
}

/// Reads the loader's tables.
#[derive(Debug)]
pub struct Loader {
    memory: Arc<Memory>,
    assemblies: Option<Assemblies>,
    map: Option<MapLayout>,
    hash: Option<HashLayout>,
    module: Option<ModuleLayout>,
    allocator: Option<AllocatorLayout>,
    assembly: Option<AssemblyOfModule>,
    binder: Option<BinderLayout>,
    most_modules: usize,
    cycles: Mutex<BTreeMap<Addr, &'static str>>,
}

impl Loader {
    /// The contract read.
    pub const CONTRACT: Contract = Contract::needed("Loader", &["1"]);

    /// Binds to a runtime. Tables without a layout in the descriptor are empty.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of the contract is advertised.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor, limits: &Limits) -> Result<Loader, ContractError> {
        // A NativeAOT program has no loader.
        if !d.is_native_aot() {
            Self::CONTRACT.require(d)?;
        }
        Ok(Loader {
            memory: Arc::clone(memory),
            assemblies: Assemblies::bind(d),
            map: MapLayout::bind(d).ok(),
            hash: HashLayout::bind(d).ok(),
            module: ModuleLayout::bind(d).ok(),
            allocator: AllocatorLayout::bind(d).ok(),
            assembly: AssemblyOfModule::bind(d).ok(),
            binder: BinderLayout::bind(d).ok(),
            most_modules: limits.modules,
            cycles: Mutex::default(),
        })
    }

    /// Cyclic or overlong lists of the loader: address and name.
    pub fn cycles(&self) -> Vec<(Addr, &'static str)> {
        self.cycles.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(at, what)| (*at, *what)).collect()
    }

    fn cycle(&self, at: Addr, what: &'static str) {
        let mut cycles = self.cycles.lock().unwrap_or_else(PoisonError::into_inner);
        if cycles.len() < MAX_CYCLES {
            cycles.insert(at, what);
        }
    }

    /// The pointer at `at`; `None` for null, or if it is not in the dump.
    pub(super) fn pointer(&self, at: Addr) -> Option<Addr> {
        self.memory.ptr(at).ok().filter(|p| !p.is_null())
    }

    /// The modules of all assemblies of the application domain, in load order. Those still being loaded may be missing. Empty
    /// if the list cannot be read.
    pub fn modules(&self) -> Vec<Addr> {
        self.module_list().unwrap_or_default()
    }

    fn module_list(&self) -> Option<Vec<Addr>> {
        let a = self.assemblies.as_ref()?;
        let list = self.pointer(a.domain)?.plus(a.list);
        let mut left = usize::try_from(self.memory.u32(list.plus(a.layout.count)).ok()?).ok()?.min(self.most_modules);
        let mut block = list.plus(a.layout.first);
        let (mut out, mut seen, mut blocks) = (Vec::new(), Set::default(), Set::default());
        loop {
            if !blocks.insert(block) || blocks.len() > MAX_BLOCKS {
                self.cycle(block, "the assembly list");
                break;
            }
            let size = usize::try_from(self.memory.u32(block.plus(a.block.size)).ok()?).ok()?.min(left);
            for i in (0..u64::MAX).take(size) {
                let module = self.module_of(a, block.plus(a.block.items).element(i, self.memory.ptr_bytes()));
                out.extend(module.filter(|m| seen.insert(*m)));
            }
            left = left.saturating_sub(size);
            match self.pointer(block.plus(a.block.next)) {
                Some(next) if left > 0 => block = next,
                _ => break,
            }
        }
        Some(out)
    }

    fn module_of(&self, a: &Assemblies, item: Addr) -> Option<Addr> {
        let item = self.pointer(item)?;
        let assembly = match a.item {
            Some(offset) => self.pointer(item.plus(offset))?,
            None => item,
        };
        self.pointer(assembly.plus(a.module))
    }

    /// Method table of row `rid` of TypeDef, if the type is loaded.
    pub fn type_def(&self, module: Addr, rid: u32) -> Option<Addr> {
        self.lookup(module.plus(self.module.as_ref()?.type_defs?), rid)
    }

    /// Type of row `rid` of TypeRef, if the reference is resolved.
    pub fn type_ref(&self, module: Addr, rid: u32) -> Option<Addr> {
        self.lookup(module.plus(self.module.as_ref()?.type_refs?), rid)
    }

    fn lookup(&self, map: Addr, rid: u32) -> Option<Addr> {
        let l = self.map.as_ref()?;
        let (mut map, mut index) = (map, u64::from(rid));
        // Only the first map of a chain stores its flags.
        let flags = self.flags(map);
        for _ in 0..MAX_MAPS {
            let count = u64::from(self.memory.u32(map.plus(l.count)).ok()?);
            if index < count {
                let table = self.pointer(map.plus(l.table))?;
                let entry = self.memory.word(table.element(index, self.memory.ptr_bytes())).ok()? & !flags;
                return Some(Addr(entry)).filter(|a| !a.is_null());
            }
            index = index.saturating_sub(count);
            map = self.pointer(map.plus(l.next))?;
        }
        self.cycle(map, A_MAP);
        None
    }

    fn flags(&self, map: Addr) -> u64 {
        let read = |offset: Option<u64>| self.memory.word(map.plus(offset?)).ok();
        // Flags use the low bits left free by the alignment of method tables.
        self.map.as_ref().and_then(|l| read(l.flags)).filter(|f| *f < 8).unwrap_or(3)
    }

    /// Bounds what the tables of all modules together cost: many may lead to the same one. Each entry of a genuine one takes eight
    /// bytes of the dump.
    fn budget(&self) -> Budget {
        Budget::new(self.memory.dump_bytes().saturating_mul(4), None)
    }

    /// Method tables of every loaded type defined by `modules`, those that `keep` wants: modules may share millions of entries that
    /// lead nowhere. Generic types are open.
    pub fn type_defs(&self, modules: &[Addr], keep: impl Fn(Addr) -> bool) -> Vec<Addr> {
        let (budget, mut out) = (self.budget(), Vec::new());
        for module in modules {
            self.type_defs_of(*module, &budget, &keep, &mut out);
        }
        if budget.met() {
            self.cycle(Addr::NULL, "the table of all loaded types");
        }
        out
    }

    fn type_defs_of(&self, module: Addr, budget: &Budget, keep: &impl Fn(Addr) -> bool, out: &mut Vec<Addr>) -> Option<()> {
        let l = self.map.as_ref()?;
        let mut map = module.plus(self.module.as_ref()?.type_defs?);
        let flags = self.flags(map);
        let (mut before, mut seen) = (0u64, Set::default());
        for _ in 0..MAX_MAPS {
            let count = u64::from(self.memory.u32(map.plus(l.count)).ok()?);
            if !seen.insert(map) || before.saturating_add(count) > MAX_ROWS {
                break;
            }
            if let Some(table) = self.pointer(map.plus(l.table)) {
                let word = self.memory.ptr_bytes();
                let rows = (0..count).take_while(|_| budget.steps(1));
                let entries = rows.filter_map(|i| Some(self.memory.word(table.element(i, word)).ok()? & !flags));
                out.extend(entries.filter(|entry| *entry != 0).map(Addr).filter(|mt| keep(*mt)));
            }
            before = before.saturating_add(count);
            map = self.pointer(map.plus(l.next))?;
        }
        self.cycle(map, A_MAP);
        None
    }

    /// The managed `LoaderAllocator` of a collectible module, kept alive by every object of its types.
    pub fn allocator_object(&self, module: Addr) -> Option<Addr> {
        let allocator = self.pointer(module.plus(self.module.as_ref()?.allocator?))?;
        let handle = self.pointer(allocator.plus(self.allocator.as_ref()?.object?))?;
        self.pointer(handle)
    }

    /// The `PEAssembly` of a module.
    pub(super) fn pe_assembly(&self, module: Addr) -> Option<Addr> {
        self.pointer(module.plus(self.assembly.as_ref()?.pe_assembly))
    }

    /// The binder of a `PEAssembly`, as described.
    pub(super) fn binder(&self, assembly: Addr) -> Option<Addr> {
        self.pointer(assembly.plus(self.binder.as_ref()?.binder))
    }

    /// Whether the runtime describes the binders of modules.
    pub(super) fn has_binders(&self) -> bool {
        self.assembly.is_some() && self.binder.is_some()
    }

    pub(super) fn word_bytes(&self) -> u64 {
        self.memory.ptr_bytes()
    }

    /// The generic instances, arrays and pointers in the tables of `modules`, as type handles: method tables, or type descriptors with
    /// bit 1 set. Each is in the table of one of the modules of its type and arguments.
    pub fn instances(&self, modules: &[Addr]) -> Vec<Addr> {
        let (budget, mut out) = (self.budget(), Vec::new());
        for module in modules {
            self.instances_of(*module, &budget, &mut out);
        }
        if budget.met() {
            self.cycle(Addr::NULL, "the table of all generic instances");
        }
        out
    }

    fn instances_of(&self, module: Addr, budget: &Budget, out: &mut Vec<Addr>) -> Option<()> {
        let l = self.hash.as_ref()?;
        let word = self.memory.ptr_bytes();
        let table = self.pointer(module.plus(self.module.as_ref()?.instances?))?;
        let count = self.memory.u32(table.plus(l.count)).ok()?;
        let most = out.len().saturating_add(usize::try_from(count).ok()?.min(MAX_ENTRIES));
        let (mut seen, mut chain) = (Map::default(), 0u64);
        let mut array = self.pointer(table.plus(l.buckets));
        for _ in 0..MAX_ARRAYS {
            let Some(buckets) = array else { break };
            let length = self.memory.word(buckets).ok()?;
            // There is at least one bucket per two entries; an invalid length must not cause a long loop.
            let length = length.min(u64::try_from(MAX_ENTRIES).ok()?);
            for i in (0..length).take_while(|_| budget.steps(1)) {
                let Ok(mut entry) = self.memory.ptr(buckets.element(i.saturating_add(SPECIAL_SLOTS), word)) else { break };
                chain = chain.saturating_add(1);
                while !entry.is_null() && entry.0 & END == 0 && out.len() < most && budget.steps(1) {
                    // While the table grows, a chain may continue in an older one: not a cycle.
                    if let Some(before) = seen.insert(entry, chain) {
                        if before == chain {
                            self.cycle(entry, "the instance table of a module");
                        }
                        break;
                    }
                    let Ok(value) = self.memory.word(entry.plus(l.value)) else { break };
                    out.push(Addr(value & !ENTRY_FLAG));
                    let Ok(next) = self.memory.ptr(entry.plus(l.next)) else { break };
                    entry = next;
                }
            }
            array = self.pointer(buckets.plus(word)).filter(|a| a.0 & END == 0);
        }
        if let Some(more) = array {
            self.cycle(more, "the instance table of a module");
        }
        Some(())
    }
}
