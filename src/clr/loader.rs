//! The loader's tables: the assemblies of the application domain, the types of a module by token, and the generic instances of a module.
//!
//! Source: contract `Loader`, `dacenumerablehash.h`, `docs/internals/types.md#modules`, and measurements on .NET 8 to 10. The items of the
//! assembly list are `DomainAssembly` up to .NET 10, and `Assembly` in later releases. The first three words of a bucket array are its
//! length, the next array while the table grows, and the mark that ends chains.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::hash::{Map, Set};
use crate::base::missed::{may_be_mapped, tried};
use crate::base::{Addr, Budget, Limits, NoteKind, Notes};
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::{
    AppDomain, ArrayListBase, ArrayListBlock, Assembly, Bound, DomainAssembly, EETypeHashTable, Inline, LoaderAllocator, Module,
    ModuleLookupMap, Offset, PEAssembly, bind, globals,
};
use crate::memory::Memory;

/// Maximum number of blocks of the assembly list. The first block has 32 slots, and each further block has twice as many as the one before it.
const MAX_BLOCKS: usize = 64;
/// Maximum number of maps in the chain of a table. Each map doubles the size.
const MAX_MAPS: u32 = 64;
/// Maximum number of recorded faults. The limit is needed because every lookup may find a fault.
const MAX_FAULTS: usize = 256;
/// Maximum number of rows of a metadata table.
const MAX_ROWS: u64 = 1 << 24;
/// Maximum number of entries of an instance hash table.
const MAX_ENTRIES: usize = 4 << 20;
/// Maximum number of bucket arrays of a hash table: two while it grows.
const MAX_ARRAYS: u32 = 4;
/// Texts of notes about lists.
const A_MAP: &str = "the type table of a module has a cycle or exceeds its limit";
const A_TABLE: &str = "the instance table of a module has a cycle or exceeds its limit";
const WITHOUT_MODULE: &str = "an assembly of the list has no module";
const THE_LIST: &str = "the assembly list has a cycle or exceeds its limit";
/// Header words of a bucket array: length, next array, end mark.
const SPECIAL_SLOTS: u64 = 3;
/// Bit that marks the end of a chain.
const END: u64 = 1;
/// Bit of an entry's value that is not part of the type handle.
const ENTRY_FLAG: u64 = 1;

/// The assembly list of the application domain.
#[derive(Clone, Debug)]
struct Assemblies {
    domain: Addr,
    list: Offset<AppDomain, Inline>,
    layout: Bound<ArrayListBase>,
    block: Bound<ArrayListBlock>,
    /// The assembly of an item; `None` if the item is the assembly itself.
    item: Option<Offset<DomainAssembly, Addr>>,
    module: Offset<Assembly, Addr>,
    /// The assembly of a module.
    back: Option<Offset<Module, Addr>>,
}

impl Assemblies {
    fn bind(d: &Descriptor) -> Option<Assemblies> {
        // The name of the field shows the kind of items: .NET 11 renamed the field when it changed the items.
        let (list, item) = match AppDomain::AssemblyList.bind(d) {
            Ok(list) => (list, None),
            Err(_) => (AppDomain::DomainAssemblyList.bind(d).ok()?, Some(DomainAssembly::Assembly.bind(d).ok()?)),
        };
        Some(Assemblies {
            domain: globals::AppDomain.of(d).ok()?,
            list,
            layout: bind!(d, ArrayListBase { Count, FirstBlock }).ok()?,
            block: bind!(d, ArrayListBlock { Next, Size, ArrayStart }).ok()?,
            item,
            module: Assembly::Module.bind(d).ok()?,
            back: Module::Assembly.bind(d).ok(),
        })
    }
}

/// Reader of the loader's tables.
#[derive(Debug)]
pub struct Loader {
    memory: Arc<Memory>,
    assemblies: Option<Assemblies>,
    map: Option<Bound<ModuleLookupMap>>,
    hash: Option<Bound<EETypeHashTable>>,
    module: Option<Bound<Module>>,
    allocator: Option<Bound<LoaderAllocator>>,
    /// `Module.PEAssembly`.
    assembly: Option<Bound<Module>>,
    binder: Option<Bound<PEAssembly>>,
    most_modules: usize,
    /// Faults in the tables, by address.
    faults: Mutex<BTreeMap<(Addr, &'static str), NoteKind>>,
}

/// The readable part of the assembly list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed {
    /// The modules, in load order.
    pub(crate) modules: Vec<Addr>,
    /// Whether the list is complete.
    pub(crate) whole: bool,
    /// Address of an empty item. The runtime clears the items of assemblies that it unloads (`AppDomain::RemoveAssembly`).
    pub(crate) empty: Option<Addr>,
}

impl Loader {
    /// The contract that is read.
    pub const CONTRACT: Contract = Contract::needed("Loader", &["1"]);

    /// Binds to a runtime. Tables whose layout is missing from the descriptor are treated as empty.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of the contract is advertised.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor, limits: &Limits) -> Result<Loader, ContractError> {
        // NativeAOT programs have no loader, and the loader of Mono is not read.
        if !d.is_native_aot() && !d.is_mono() {
            Self::CONTRACT.require(d)?;
        }
        Ok(Loader {
            memory: Arc::clone(memory),
            assemblies: Assemblies::bind(d),
            map: bind!(d, ModuleLookupMap { Next, TableData, Count, SupportedFlagsMask? }).ok(),
            hash: bind!(d, EETypeHashTable { Buckets, Count, VolatileEntryValue, VolatileEntryNextEntry }).ok(),
            module: bind!(d, Module { TypeDefToMethodTableMap?, TypeRefToMethodTableMap?, AvailableTypeParams?, LoaderAllocator? }).ok(),
            allocator: bind!(d, LoaderAllocator { ObjectHandle? }).ok(),
            assembly: bind!(d, Module { PEAssembly }).ok(),
            binder: bind!(d, PEAssembly { AssemblyBinder }).ok(),
            most_modules: limits.modules,
            faults: Mutex::default(),
        })
    }

    /// Notes about tables that are cyclic, too long or inconsistent.
    pub(crate) fn faults(&self) -> Notes {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notes = Notes::new();
        faults.iter().for_each(|((at, what), kind)| notes.add(*kind, *at, *what));
        notes
    }

    fn fault(&self, kind: NoteKind, at: Addr, what: &'static str) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.len() < MAX_FAULTS {
            faults.insert((at, what), kind);
        }
    }

    fn cycle(&self, at: Addr, what: &'static str) {
        self.fault(NoteKind::LimitHit, at, what);
    }

    /// Records that the item at `at` of the assembly list is empty although nothing was unloaded.
    pub(super) fn emptied(&self, at: Addr) {
        self.fault(NoteKind::Invalid, at, "an item of the assembly list is empty although no assembly was unloaded");
    }

    /// Records that there are more instances than the limit.
    pub(super) fn overfull(&self) {
        self.cycle(Addr::NULL, "the number of generic instances exceeds its limit");
    }

    /// The pointer at `at`; `None` if it is null or invalid.
    pub(super) fn pointer(&self, at: Addr) -> Option<Addr> {
        self.memory.link(at)
    }

    /// The pointer at `at`, which must not be null. A null pointer is recorded as the fault `what`.
    fn needed(&self, at: Addr, what: &'static str) -> Option<Addr> {
        if self.memory.ptr(at).ok()?.is_null() {
            self.fault(NoteKind::Invalid, at, what);
        }
        self.pointer(at)
    }

    /// The modules of all assemblies of the application domain, in load order. Modules that are being loaded may be missing. Empty if the
    /// list cannot be read.
    pub fn modules(&self) -> Vec<Addr> {
        self.listed().modules
    }

    /// The assembly list of the application domain.
    pub(crate) fn listed(&self) -> Listed {
        let mut listed = Listed::default();
        let whole = self.list(&mut listed) == Some(true);
        Listed { whole, ..listed }
    }

    /// Reads the list. Returns whether it is complete; `None` if it ends early.
    fn list(&self, out: &mut Listed) -> Option<bool> {
        let a = self.assemblies.as_ref()?;
        let list = a.list.place(self.needed(a.domain, "there is no application domain")?);
        let count = usize::try_from(a.layout.get(&self.memory, list, ArrayListBase::Count)?).ok()?;
        let mut left = count.min(self.most_modules);
        let mut whole = left == count;
        if !whole {
            self.cycle(list, THE_LIST);
        }
        let mut block = a.layout.place(list, ArrayListBase::FirstBlock)?;
        let (mut seen, mut blocks, mut loading) = (Set::default(), Set::default(), None);
        loop {
            if !blocks.insert(block) || blocks.len() > MAX_BLOCKS {
                self.cycle(block, THE_LIST);
                return None;
            }
            let size = usize::try_from(a.block.get(&self.memory, block, ArrayListBlock::Size)?).ok()?;
            let items = a.block.place(block, ArrayListBlock::ArrayStart)?;
            let item = |i: u64| items.element(i, self.memory.ptr_bytes());
            for i in (0..u64::MAX).take(size.min(left)) {
                if self.memory.ptr(item(i)).ok()?.is_null() {
                    out.empty.get_or_insert(item(i));
                    continue;
                }
                let Some(assembly) = self.assembly_of(a, item(i)) else {
                    whole = false;
                    continue;
                };
                if assembly.is_null() {
                    loading.get_or_insert(item(i));
                    continue;
                }
                let module = self.module_of(a, assembly);
                whole &= module.is_some();
                out.modules.extend(module.filter(|module| seen.insert(*module)));
                // Only the last items may still be loading, so a loading item before a loaded item is a fault.
                if let Some(at) = loading.take() {
                    self.fault(NoteKind::Invalid, at, WITHOUT_MODULE);
                    whole = false;
                }
            }
            let next = a.block.place(block, ArrayListBlock::Next)?;
            if size < left {
                left = left.saturating_sub(size);
                block = self.needed(next, "the assembly list ends before its last assembly")?;
                continue;
            }
            // The runtime allocates the next block only to store another item, and the count never decreases. So a next block, or an assembly
            // after the last item, shows that the count is too small.
            let after = u64::try_from(left).map_or(Addr::NULL, item);
            // The memory after the last item may contain items of a former list.
            let more = match size > left {
                true => tried(|| self.led_to(a, after)).is_some_and(|module| !seen.contains(&module)),
                false => self.pointer(next).is_some(),
            };
            if whole && more {
                self.fault(
                    NoteKind::Invalid,
                    a.layout.place(list, ArrayListBase::Count)?,
                    "the assembly list has more assemblies than its count",
                );
                whole = false;
            }
            return Some(whole);
        }
    }

    /// The assembly of an item; null while the assembly is being loaded (.NET 8) and has no types yet.
    fn assembly_of(&self, a: &Assemblies, item: Addr) -> Option<Addr> {
        let item = self.pointer(item)?;
        a.item.map_or(Some(item), |assembly| assembly.link_or_null(&self.memory, item))
    }

    fn module_of(&self, a: &Assemblies, assembly: Addr) -> Option<Addr> {
        let module = self.needed(a.module.place(assembly), WITHOUT_MODULE)?;
        // If the dump has the pointer from the module back to its assembly, the pointer is checked.
        let back = a.back.and_then(|back| tried(|| back.get(&self.memory, module)));
        if back.is_some_and(|back| back != assembly) {
            self.fault(NoteKind::Invalid, module, "a module does not belong to the assembly that points to it");
            return None;
        }
        Some(module)
    }

    /// The module of the assembly in `item`, if the module points back to that assembly. The item may contain anything.
    fn led_to(&self, a: &Assemblies, item: Addr) -> Option<Addr> {
        let follow = |at: Addr| self.memory.ptr(at).ok().filter(|to| !to.is_null());
        let assembly = follow(match a.item {
            Some(assembly) => assembly.place(follow(item)?),
            None => item,
        })?;
        let module = follow(a.module.place(assembly))?;
        (follow(a.back?.place(module))? == assembly).then_some(module)
    }

    /// Method table of row `rid` of TypeDef, if the type is loaded.
    pub fn type_def(&self, module: Addr, rid: u32) -> Option<Addr> {
        self.lookup(self.module.as_ref()?.place(module, Module::TypeDefToMethodTableMap)?, rid)
    }

    /// The type of row `rid` of TypeRef, if the reference is resolved.
    pub fn type_ref(&self, module: Addr, rid: u32) -> Option<Addr> {
        self.lookup(self.module.as_ref()?.place(module, Module::TypeRefToMethodTableMap)?, rid)
    }

    fn lookup(&self, map: Addr, rid: u32) -> Option<Addr> {
        let l = self.map.as_ref()?;
        let (mut map, mut index) = (map, u64::from(rid));
        // Only the first map of a chain contains the flags.
        let flags = self.flags(map);
        for _ in 0..MAX_MAPS {
            let count = u64::from(l.get(&self.memory, map, ModuleLookupMap::Count)?);
            if index < count {
                let table = l.link(&self.memory, map, ModuleLookupMap::TableData)?;
                let entry = self.memory.word(table.element(index, self.memory.ptr_bytes())).ok()? & !flags;
                return Some(Addr(entry)).filter(|a| !a.is_null());
            }
            index = index.saturating_sub(count);
            map = l.link(&self.memory, map, ModuleLookupMap::Next)?;
        }
        self.cycle(map, A_MAP);
        None
    }

    fn flags(&self, map: Addr) -> u64 {
        let read = |l: &Bound<ModuleLookupMap>| l.get(&self.memory, map, ModuleLookupMap::SupportedFlagsMask);
        // Flags use the low bits that are zero because method tables are aligned.
        self.map.as_ref().and_then(read).filter(|f| *f < 8).unwrap_or(3)
    }

    /// The common budget for the tables of all modules, because forged modules may share a table. It has at least one step for each eight
    /// bytes of the dump, the size of a table's entry in a 64-bit process.
    fn budget(&self) -> Budget {
        Budget::new(self.memory.dump_bytes().saturating_mul(4), None)
    }

    /// Method tables of the loaded types that `modules` define, including open generic types. `keep` rejects invalid entries early, because
    /// forged modules may share millions of invalid entries.
    ///
    /// `rows` gives the number of types that a module defines. The runtime allocates the whole type table of a module before it loads the
    /// module's first type (`Module::AllocateMaps`), except in a dynamic module.
    pub fn type_defs(&self, modules: &[Addr], rows: impl Fn(Addr) -> Option<u32>, keep: impl Fn(Addr) -> bool) -> Vec<Addr> {
        let (budget, mut out) = (self.budget(), Vec::new());
        for module in modules {
            let entries = self.type_defs_of(*module, &budget, &keep, &mut out);
            if let Some((entries, rows)) = entries.zip(rows(*module))
                && entries <= u64::from(rows)
            {
                self.fault(NoteKind::Invalid, *module, "the type table of a module is too small for all its types");
            }
        }
        if budget.met() {
            self.cycle(Addr::NULL, "the table of all loaded types has a cycle or exceeds its limit");
        }
        out
    }

    /// Whether the type table of one of `modules` contains `entry`.
    pub(crate) fn defines(&self, modules: &[Addr], entry: Addr) -> bool {
        let (budget, mut out) = (self.budget(), Vec::new());
        modules.iter().any(|module| {
            self.type_defs_of(*module, &budget, &|mt| mt == entry, &mut out);
            !out.is_empty()
        })
    }

    /// Adds the types of one module to `out`. Returns the number of entries of its table; `None` if a failed read or a limit ended the
    /// walk.
    fn type_defs_of(&self, module: Addr, budget: &Budget, keep: &impl Fn(Addr) -> bool, out: &mut Vec<Addr>) -> Option<u64> {
        let l = self.map.as_ref()?;
        let mut map = self.module.as_ref()?.place(module, Module::TypeDefToMethodTableMap)?;
        let flags = self.flags(map);
        let (mut before, mut seen) = (0u64, Set::default());
        for _ in 0..MAX_MAPS {
            let count = u64::from(l.get(&self.memory, map, ModuleLookupMap::Count)?);
            if !seen.insert(map) || before.saturating_add(count) > MAX_ROWS {
                break;
            }
            let table = match count {
                0 => None,
                _ => self.needed(l.place(map, ModuleLookupMap::TableData)?, "a type table of a module has a count but no entries"),
            };
            if let Some(table) = table {
                let word = self.memory.ptr_bytes();
                let rows = (0..count).take_while(|_| budget.steps(1));
                let entries = rows.filter_map(|i| Some(self.memory.word(table.element(i, word)).ok()? & !flags));
                out.extend(entries.filter(|entry| *entry != 0).map(Addr).filter(|mt| keep(*mt)));
            }
            before = before.saturating_add(count);
            map = l.link_or_null(&self.memory, map, ModuleLookupMap::Next)?;
            if map.is_null() {
                return Some(before);
            }
        }
        self.cycle(map, A_MAP);
        None
    }

    /// The managed `LoaderAllocator` of a collectible module, kept alive by every object of its types.
    pub fn allocator_object(&self, module: Addr) -> Option<Addr> {
        self.pointer(self.allocator_handle(module)?)
    }

    /// The handle to that object.
    pub(crate) fn allocator_handle(&self, module: Addr) -> Option<Addr> {
        let allocator = self.module.as_ref()?.link(&self.memory, module, Module::LoaderAllocator)?;
        self.allocator.as_ref()?.link(&self.memory, allocator, LoaderAllocator::ObjectHandle)
    }

    /// Whether a module is at `address`, whose assembly must point back to it; `None` if the dump or the descriptor does not have the data.
    pub(crate) fn is_module(&self, address: Addr) -> Option<bool> {
        let a = self.assemblies.as_ref()?;
        let back = a.back?;
        tried(|| {
            if !may_be_mapped(address) {
                return Some(false);
            }
            let assembly = back.get(&self.memory, address)?;
            Some(may_be_mapped(assembly) && a.module.get(&self.memory, assembly)? == address)
        })
    }

    /// The `Assembly` of a module.
    pub(crate) fn assembly(&self, module: Addr) -> Option<Addr> {
        self.assemblies.as_ref()?.back?.link(&self.memory, module)
    }

    /// Whether the module can be unloaded; `None` if the descriptor or the dump does not have the data.
    pub(crate) fn is_collectible(&self, module: Addr) -> Option<bool> {
        let allocator = self.module.as_ref()?.link(&self.memory, module, Module::LoaderAllocator)?;
        let handle = self.allocator.as_ref()?.get(&self.memory, allocator, LoaderAllocator::ObjectHandle)?;
        Some(!handle.is_null())
    }

    /// The address of a module's binder, the native side of its load context; `None` if the descriptor or the dump does not have it. The
    /// managed `AssemblyLoadContext` contains the same address.
    pub(crate) fn load_context(&self, module: Addr) -> Option<Addr> {
        self.binder(self.pe_assembly(module)?)
    }

    /// The `PEAssembly` of a module.
    pub(super) fn pe_assembly(&self, module: Addr) -> Option<Addr> {
        self.assembly.as_ref()?.link(&self.memory, module, Module::PEAssembly)
    }

    /// The binder of a `PEAssembly`, at the offset in the descriptor.
    pub(super) fn binder(&self, assembly: Addr) -> Option<Addr> {
        self.binder.as_ref()?.link(&self.memory, assembly, PEAssembly::AssemblyBinder)
    }

    /// Whether the descriptor contains the offsets of binders.
    pub(super) fn has_binders(&self) -> bool {
        self.assembly.is_some() && self.binder.is_some()
    }

    pub(super) fn word_bytes(&self) -> u64 {
        self.memory.ptr_bytes()
    }

    /// The generic instances, arrays and pointers in the tables of `modules`, as type handles: method tables, or type descriptors with bit
    /// 1 set. The runtime adds each of these types to the table of one module: the module of its definition, of its element type or of an argument.
    pub fn instances(&self, modules: &[Addr]) -> Vec<Addr> {
        let (budget, mut out) = (self.budget(), Vec::new());
        for module in modules {
            self.instances_of(*module, &budget, &mut out);
        }
        if budget.met() {
            self.cycle(Addr::NULL, "the table of all generic instances has a cycle or exceeds its limit");
        }
        out
    }

    fn instances_of(&self, module: Addr, budget: &Budget, out: &mut Vec<Addr>) -> Option<()> {
        let l = self.hash.as_ref()?;
        let table = self.needed(self.module.as_ref()?.place(module, Module::AvailableTypeParams)?, "a module has no instance table")?;
        let count = usize::try_from(l.get(&self.memory, table, EETypeHashTable::Count)?).ok()?;
        let before = out.len();
        let ended = self.entries(l, table, budget, out)?;
        // The runtime increments the count after it has linked an entry, so there may be one entry more than the count.
        let found = out.len().saturating_sub(before);
        if ended && found != count && Some(found) != count.checked_add(1) {
            self.fault(NoteKind::Invalid, table, "the number of entries in the instance table of a module differs from its count");
        }
        Some(())
    }

    /// Adds the entries of the instance table at `table`. Returns false if a failed read or a limit ended the walk.
    fn entries(&self, l: &Bound<EETypeHashTable>, table: Addr, budget: &Budget, out: &mut Vec<Addr>) -> Option<bool> {
        let word = self.memory.ptr_bytes();
        let most = out.len().saturating_add(MAX_ENTRIES);
        let (mut seen, mut chain, mut ended) = (Map::default(), 0u64, true);
        let mut array = l.link(&self.memory, table, EETypeHashTable::Buckets);
        for _ in 0..MAX_ARRAYS {
            let Some(buckets) = array else { break };
            let length = self.memory.word(buckets).ok()?;
            // The runtime adds buckets when there are more than two entries for each bucket. The limit prevents a long loop for an invalid length.
            let length = length.min(u64::try_from(MAX_ENTRIES).ok()?);
            for i in (0..length).take_while(|_| budget.steps(1)) {
                let Ok(mut entry) = self.memory.ptr(buckets.element(i.saturating_add(SPECIAL_SLOTS), word)) else {
                    ended = false;
                    break;
                };
                chain = chain.saturating_add(1);
                // An invalid address ends the chain, and then there are fewer entries than the count.
                while may_be_mapped(entry) && entry.0 & END == 0 && budget.steps(1) {
                    // While the table grows, a chain may continue in a chain of the older bucket array. This is not a cycle.
                    if let Some(before) = seen.insert(entry, chain) {
                        if before == chain {
                            self.cycle(entry, A_TABLE);
                        }
                        break;
                    }
                    if out.len() >= most {
                        self.cycle(entry, A_TABLE);
                        return Some(false);
                    }
                    let value = l.get(&self.memory, entry, EETypeHashTable::VolatileEntryValue);
                    let next = value.and_then(|_| l.get(&self.memory, entry, EETypeHashTable::VolatileEntryNextEntry));
                    let Some((value, next)) = value.zip(next) else {
                        ended = false;
                        break;
                    };
                    out.push(Addr(value & !ENTRY_FLAG));
                    entry = next;
                }
            }
            array = self.pointer(buckets.plus(word)).filter(|a| a.0 & END == 0);
        }
        if let Some(more) = array {
            self.cycle(more, A_TABLE);
        }
        Some(ended && !budget.met())
    }
}
