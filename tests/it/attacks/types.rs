//! Attacks on names of types: the small dump of the repository, whose assembly list continues in added memory.

use std::path::Path;

use gcdump::Runtime;
use gcdump::internals::base::Addr;

use super::make::{Core, fields};
use crate::common;

/// Address of added memory.
const HERE: u64 = 0x6000_0000_0000;

/// The dump of the repository, with changes.
pub(super) struct Real {
    core: Core,
    runtime: Runtime,
    next: u64,
}

impl Real {
    pub(super) fn new() -> Real {
        Real::of(&common::own_unpacked())
    }

    /// Another dump.
    pub(super) fn of(path: &Path) -> Real {
        let dump = gcdump::open(path).unwrap();
        Real { core: Core::of(std::fs::read(path).unwrap()), runtime: dump.runtime().unwrap(), next: HERE }
    }

    /// Offset of a field.
    pub(super) fn at(&self, name: &str, field: &str) -> u64 {
        self.runtime.descriptor().offset(name, field).unwrap()
    }

    /// The value of a global pointer.
    fn global(&self, name: &str) -> u64 {
        self.word(self.runtime.descriptor().pointer(name).unwrap().0)
    }

    pub(super) fn word(&self, at: u64) -> u64 {
        self.runtime.memory().ptr(Addr(at)).unwrap().0
    }

    /// A word; 0 if it is not in the dump.
    pub(super) fn word_if_any(&self, at: u64) -> u64 {
        self.runtime.memory().ptr(Addr(at)).map_or(0, |w| w.0)
    }

    pub(super) fn poke(&mut self, at: u64, bytes: &[u8]) {
        let offset = common::file_offset(self.runtime.file(), Addr(at & !7)).unwrap() + (at & 7) as usize;
        self.core.write(offset, bytes);
    }

    /// The method table of a generic instance that is a class.
    pub(super) fn instance(&self) -> u64 {
        let types = self.runtime.types().unwrap();
        let is_list = |mt: &&Addr| types.names().name(**mt).name.starts_with("System.Collections.Generic.List<");
        types.instances().iter().find(is_list).unwrap().0
    }

    /// Returns the words of a method table; zero for those that nothing reads.
    pub(super) fn method_table(&self, at: u64) -> Vec<u8> {
        (0..64).step_by(8).flat_map(|i| self.word_if_any(at + i).to_le_bytes()).collect()
    }

    /// Adds memory and returns its address.
    pub(super) fn add(&mut self, bytes: &[u8]) -> u64 {
        let at = self.next;
        self.next = (at + bytes.len() as u64).next_multiple_of(0x1000) + 0x1000;
        let offset = self.core.append(bytes);
        self.core.map(at, offset, bytes.len() as u64, super::make::RW);
        at
    }

    /// Adds `count` words, the `i`-th of which is `word(i)`.
    fn words(&mut self, count: u64, word: impl Fn(u64) -> u64) -> u64 {
        let bytes: Vec<u8> = (0..count).flat_map(|i| word(i).to_le_bytes()).collect();
        self.add(&bytes)
    }

    /// Appends modules to the assembly list.
    fn modules(&mut self, count: u64, module: impl Fn(u64) -> u64) {
        let (of_assembly, of_module) = (self.at("DomainAssembly", "Assembly"), self.at("Assembly", "Module"));
        let modules = self.words(count, module);
        let assemblies = self.words(count, |i| modules + 8 * i - of_module);
        let list = self.global("AppDomain") + self.at("AppDomain", "DomainAssemblyList");
        let first = list + self.at("ArrayListBase", "FirstBlock");
        let (next, size, start) =
            (self.at("ArrayListBlock", "Next"), self.at("ArrayListBlock", "Size"), self.at("ArrayListBlock", "ArrayStart"));
        let mut block = vec![0; start as usize];
        block[size as usize..size as usize + 4].copy_from_slice(&(count as u32).to_le_bytes());
        block.extend((0..count).flat_map(|i| (assemblies + 8 * i - of_assembly).to_le_bytes()));
        let more = self.add(&block);
        // The count is as large as possible.
        self.poke(list + self.at("ArrayListBase", "Count"), &u32::MAX.to_le_bytes());
        // The link of the last block is not needed and may not be in the dump; then the new block replaces it.
        let mut last = first;
        while let block @ 1.. = self.word(last + next)
            && self.runtime.memory().has(Addr(block + next))
        {
            last = block;
        }
        self.poke(last + next, &more.to_le_bytes());
    }

    /// Adds a module with `count` types that have the same method table.
    fn types(&mut self, table: &[u8], count: u64) {
        let tables = self.add(&table.repeat(count as usize));
        let list = self.words(count, |i| tables + 64 * i);
        let one = module(&with_types(self, list, count));
        let one = self.add(&one);
        self.modules(1, |_| one);
    }

    /// The module of System.Object.
    fn core(&self) -> u64 {
        self.word(self.global("ObjectMethodTable") + self.at("MethodTable", "Module"))
    }

    /// Address of the image of System.Private.CoreLib.
    fn core_image(&self) -> u64 {
        let is_core = |m: &&gcdump::internals::dump::Module| m.path.ends_with("/System.Private.CoreLib.dll");
        self.runtime.file().modules.iter().find(is_core).unwrap().base.0
    }

    /// Fills the segment of large objects with these words.
    pub(super) fn objects(&mut self, words: u64, word: impl Fn(u64) -> u64) {
        let memory = self.words(words, word);
        let heap = self.runtime.heap().unwrap();
        let segment = heap.segment_models().iter().find(|s| s.generation == gcdump::model::Generation::Loh).unwrap().clone();
        let end = memory + 8 * words;
        let set = |field: &str| self.at("HeapSegment", field);
        let places = [(set("Mem"), memory), (set("Allocated"), end), (set("Committed"), end), (set("Reserved"), end), (set("Used"), end)];
        for (at, value) in places {
            self.poke(segment.address.0 + at, &value.to_le_bytes());
        }
    }

    /// Returns the address that added memory will have.
    pub(super) fn room(&self) -> u64 {
        self.next
    }

    /// Adds memory at an address.
    pub(super) fn map_at(&mut self, at: u64, bytes: &[u8]) {
        self.map_again(at, 0, 1, bytes);
    }

    /// Adds the same memory at `count` addresses, `stride` bytes apart.
    pub(super) fn map_again(&mut self, at: u64, stride: u64, count: u64, bytes: &[u8]) {
        let offset = self.core.append(bytes);
        (0..count).for_each(|i| self.core.map(at + stride * i, offset, bytes.len() as u64, super::make::RW));
    }

    /// Makes the code map refer every address to a list of fragments.
    pub(super) fn map_code(&mut self, fragments: u64) {
        let table = (0..4).fold(fragments, |below, _| self.words(256, |_| below));
        let top = self.runtime.descriptor().pointer("ExecutionManagerCodeRangeMapAddress").unwrap().0;
        self.poke(top + self.at("RangeSectionMap", "TopLevelData"), &table.to_le_bytes());
    }

    /// Makes a placeholder for a method.
    pub(super) fn method_desc(&self) -> u64 {
        self.global("ObjectMethodTable")
    }

    /// Returns a managed thread with a stack: its `Thread`, and its id.
    pub(super) fn thread(&self) -> (u64, u64) {
        let threads = self.runtime.thread_list().unwrap();
        let on_stack = |id: u64| self.runtime.file().threads.iter().any(|t| u64::from(t.id) == id);
        threads.iter().find_map(|t| Some((t.address.0, t.os_id.filter(|id| on_stack(*id))?))).unwrap()
    }

    /// Sets the registers of that thread, and removes its explicit frames.
    pub(super) fn run_at(&mut self, ip: u64, sp: u64) {
        let id = self.thread().1;
        self.core.registers(id, &[(16, ip), (19, sp)]);
        self.frames_at(u64::MAX);
    }

    /// Returns the exception that a thread handles.
    pub(super) fn thrown(&self) -> u64 {
        self.runtime.thread_list().unwrap().iter().find_map(|t| t.exception).unwrap().0
    }

    /// A managed thread's `Exposed` handle and its object.
    pub(super) fn exposed(&self) -> (u64, u64) {
        let at = self.at("Thread", "GCHandle");
        let threads = self.runtime.thread_list().unwrap();
        threads.iter().find_map(|t| Some((self.word(t.address.0 + at), t.exposed?.0))).unwrap()
    }

    /// Offset of a field of the objects of a type.
    pub(super) fn field(&self, ty: &str, name: &str) -> u64 {
        let ty = self.runtime.type_named(ty).unwrap();
        ty.fields().unwrap().iter().find(|field| field.name() == name).unwrap().offset()
    }

    /// A string.
    pub(super) fn string(&self, text: &str) -> Vec<u8> {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let head = [&self.global("StringMethodTable").to_le_bytes()[..], &(units.len() as u32 / 2).to_le_bytes()].concat();
        [&head[..], &units, &[0; 8]].concat()
    }

    /// Sets the first explicit frame of that thread.
    pub(super) fn frames_at(&mut self, at: u64) {
        let frame = self.thread().0 + self.at("Thread", "Frame");
        self.poke(frame, &at.to_le_bytes());
    }

    /// Adds an OS thread.
    pub(super) fn os_thread(&mut self, id: u64, ip: u64, sp: u64) {
        let mut status = vec![0; 336];
        status[32..36].copy_from_slice(&(id as u32).to_le_bytes());
        [(16, ip), (19, sp)].iter().for_each(|(i, value): &(usize, u64)| status[112 + 8 * i..][..8].copy_from_slice(&value.to_le_bytes()));
        self.core.note(1, &status);
    }

    /// Adds `count` threads to the runtime's list, with the fields *(offset, value, bytes)* that `fields` returns for number and address. The
    /// threads overlap as much as possible.
    pub(super) fn threads(&mut self, count: u64, fields: impl Fn(u64, u64) -> Vec<(u64, u64, usize)>) {
        let (link, start) = (self.at("Thread", "LinkNext"), self.next);
        let places = |i: u64, at: u64, stride: u64| {
            let next = if i + 1 < count { at + stride + link } else { 0 };
            let mut places = fields(i, at);
            places.extend([(link, next, 8), (self.at("Thread", "Id"), 1000 + i, 4)]);
            places
        };
        let apart = |stride: &u64| {
            let used: Vec<u64> =
                places(0, start, *stride).iter().flat_map(|(at, _, len)| (*at..at + *len as u64).map(|b| b % stride)).collect();
            used.iter().collect::<std::collections::BTreeSet<_>>().len() == used.len()
        };
        let stride = (64..4096).step_by(8).find(apart).unwrap();
        let mut memory = vec![0; (stride * count + 4096) as usize];
        for i in 0..count {
            for (at, value, len) in places(i, start + stride * i, stride) {
                memory[(stride * i + at) as usize..][..len].copy_from_slice(&value.to_le_bytes()[..len]);
            }
        }
        assert_eq!(self.add(&memory), start);
        let last = self.runtime.thread_list().unwrap().iter().last().unwrap().address.0;
        self.poke(last + link, &(start + link).to_le_bytes());
        let all = count + self.runtime.thread_list().unwrap().len() as u64;
        let store = self.global("ThreadStore");
        self.poke(store + self.at("ThreadStore", "ThreadCount"), &all.to_le_bytes()[..4]);
    }

    /// Returns the offset of the thread statics in a `Thread`, and their value in a thread that has some.
    pub(super) fn thread_statics(&self) -> (u64, u64) {
        let at = self.at("Thread", "ThreadLocalDataPtr");
        let threads = self.runtime.thread_list().unwrap();
        (at, threads.iter().map(|t| self.word(t.address.0 + at)).find(|block| *block != 0).unwrap())
    }

    /// Returns the number or address that identifies a frame type.
    pub(super) fn identifier(&self, ty: &str) -> u64 {
        self.runtime.descriptor().pointer(&format!("{ty}Identifier")).unwrap().0
    }

    /// Returns an address of native code of the runtime.
    pub(super) fn native(&self) -> u64 {
        self.image() + 0x10_0000
    }

    fn image(&self) -> u64 {
        self.runtime.file().modules.iter().find(|m| m.file_name() == "libcoreclr.so").unwrap().base.0
    }

    /// Moves the unwind information of the runtime's image.
    pub(super) fn unwind_table(&mut self, at: u64) {
        let base = self.image();
        let half = |at: u64| self.word(at & !7) >> (8 * (at & 7)) & 0xffff;
        let (headers, count) = (base + self.word(base + 32), half(base + 56));
        let header = (0..count).map(|i| headers + 56 * i).find(|at| self.word(*at) & 0xffff_ffff == 0x6474_e550).unwrap();
        self.poke(header + 16, &at.wrapping_sub(base).to_le_bytes());
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.core.finish()
    }
}

/// Modules with paths of 16,000 characters that begin one character apart.
pub fn paths(_: &Path, part: u64) -> Vec<u8> {
    let mut real = Real::new();
    let count = 90_000 / part;
    let text = real.add(&[0x00, 0x4e].repeat(count as usize + 0x4000));
    let of_path = real.at("Module", "Path");
    let paths = real.words(count, |i| text + 2 * i);
    real.modules(count, |i| paths + 8 * i - of_path);
    // Types without names: each module is asked whether it has names.
    let image = real.core_image();
    real.poke(image, &[0; 8]);
    real.finish()
}

/// Makes a `Module` with these words.
fn module(words: &[(u64, u64)]) -> Vec<u8> {
    let mut out = vec![0; 0x400];
    words.iter().for_each(|(at, word)| out[*at as usize..][..8].copy_from_slice(&word.to_le_bytes()));
    out
}

/// Returns the words of a `Module` whose table of types is at `table`.
fn with_types(real: &Real, table: u64, rows: u64) -> [(u64, u64); 2] {
    let map = real.at("Module", "TypeDefToMethodTableMap");
    [(map + real.at("ModuleLookupMap", "TableData"), table), (map + real.at("ModuleLookupMap", "Count"), rows)]
}

/// Modules that share the table of their types.
pub fn tables(_: &Path, part: u64) -> Vec<u8> {
    let mut real = Real::new();
    let (rows, mt) = (500_000 / part, real.global("ObjectMethodTable"));
    let table = real.words(rows, |_| mt);
    let each = module(&with_types(&real, table, rows));
    let modules: Vec<u64> = (0..2_000 / part).map(|_| real.add(&each)).collect();
    real.modules(modules.len() as u64, |i| modules[i as usize]);
    real.finish()
}

/// Metadata of `rows` types. All are nested, in an unsorted table, and their names of 4,000 bytes overlap.
fn metadata(rows: u64) -> Vec<u8> {
    let mut strings = vec![0];
    while (strings.len() as u64) < rows {
        let number = format!("{}\0", strings.len());
        strings.extend([b'A'].repeat(4000 - number.len()).iter().chain(number.as_bytes()));
    }
    let mut tables = fields(&[(0, 6), (7, 1), (1, 1), (1 << 0x02 | 1 << 0x29, 8), (0, 8), (rows, 4), (rows, 4)]);
    // TypeDef: nested, name, no namespace.
    (0..rows).for_each(|i| tables.extend(fields(&[(2, 4), (1 + i, 4), (0, 4), (0, if rows >= 1 << 14 { 4 } else { 2 }), (1, 2), (1, 2)])));
    // NestedClass: each is nested in itself.
    let row = if rows >= 1 << 16 { 4 } else { 2 };
    (0..rows).for_each(|i| tables.extend(fields(&[(rows + 1 + i, row), (1, row)])));
    let mut out = b"BSJB".to_vec();
    out.extend(fields(&[(1, 2), (1, 2), (0, 4), (4, 4), (0, 4), (0, 2), (2, 2)]));
    let at = out.len() as u64 + 8 + 4 + 8 + 12;
    out.extend(fields(&[(at, 4), (tables.len() as u64, 4), (u64::from_le_bytes(*b"#~\0\0\0\0\0\0"), 4)]));
    out.extend(fields(&[(at + tables.len() as u64, 4), (strings.len() as u64, 4)]));
    out.extend(b"#Strings\0\0\0\0");
    assert_eq!(out.len() as u64, at);
    [out, tables, strings].concat()
}

/// Modules that share metadata.
fn with_metadata(modules: u64, rows: u64) -> Vec<u8> {
    let mut real = Real::new();
    let blob = metadata(rows);
    let saved = real.add(&[&(blob.len() as u32).to_le_bytes()[..], &blob].concat());
    let at = real.at("Module", "DynamicMetadata");
    let all = real.words(modules, |_| saved);
    real.modules(modules, |i| all + 8 * i - at);
    // System.Object, and everything that refers to its module, is kept.
    real.poke(real.core() + at, &saved.to_le_bytes());
    real.finish()
}

/// A module whose types have names of two kilobytes each.
pub fn names(_: &Path, part: u64) -> Vec<u8> {
    with_metadata(1, 400_000 / part)
}

/// Modules with one unsorted table each, all at the same address.
pub fn indices(_: &Path, part: u64) -> Vec<u8> {
    with_metadata(4_000 / part, 60_000)
}

/// Instances of a generic type, each with a thousand arguments.
pub fn arguments(_: &Path, part: u64) -> Vec<u8> {
    let (mut real, count) = (Real::new(), 60_000 / part);
    let instance = real.instance();
    let arguments = real.words(1000, |_| instance);
    let (of_counts, of_types) = (real.at("GenericsDictInfo", "NumDicts"), real.at("GenericsDictInfo", "NumTypeArgs"));
    let mut info = vec![0u8; 8];
    info[of_counts as usize..][..2].copy_from_slice(&1u16.to_le_bytes());
    info[of_types as usize..][..2].copy_from_slice(&1000u16.to_le_bytes());
    info.extend(arguments.to_le_bytes());
    let info = real.add(&info) + 8;
    let mut table = real.method_table(instance);
    table[real.at("MethodTable", "PerInstInfo") as usize..][..8].copy_from_slice(&info.to_le_bytes());
    real.types(&table, count);
    real.finish()
}

/// Types that share a class of 60,000 fields.
pub fn fields_of_types(_: &Path, part: u64) -> Vec<u8> {
    let (mut real, count) = (Real::new(), 10_000 / part);
    let (instance, of_class) = (real.instance(), real.at("MethodTable", "EEClassOrCanonMT"));
    let class = real.word((real.word(instance + of_class) & !1) + of_class);
    // Each field is a number, the first field of its module.
    let field = fields(&[(instance, 8), (1, 4), (0x08 << 27, 4)]);
    let list = real.add(&field.repeat(60_000));
    real.poke(class + real.at("EEClass", "NumInstanceFields"), &60_000u16.to_le_bytes());
    real.poke(class + real.at("EEClass", "FieldDescList"), &list.to_le_bytes());
    let table = real.method_table(instance);
    real.types(&table, count);
    real.finish()
}

/// Multiplies by the inverse of FxHash's constant.
fn unmixed(value: u64) -> u64 {
    const K: u64 = 0xf135_7aea_2e62_a9c5;
    let mut inverse: u64 = 1;
    (0..6).for_each(|_| inverse = inverse.wrapping_mul(2u64.wrapping_sub(K.wrapping_mul(inverse))));
    value.wrapping_mul(inverse)
}

/// Returns the dump with a segment of such words, each after a valid object header.
fn region(words: u64, word: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut real = Real::new();
    real.objects(2 * words, |i| if i % 2 == 0 { 0 } else { word(i / 2) });
    real.finish()
}

/// A segment of words that would all be in one bucket of a hash table without a key.
pub fn flood(_: &Path, part: u64) -> Vec<u8> {
    region(200_000 / part, |i| unmixed(7 << 31 | i << 3))
}
