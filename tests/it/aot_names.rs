//! Tables that the compiler leaves in a NativeAOT module, in real dumps of one, compared with the symbols of its file and the program's own
//! records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use gcdump::CorElementType;
use gcdump::internals::base::{Addr, AddrRange, Arch, Limits, Shape};
use gcdump::internals::clr::aot::{Blobs, DebugField, Debugging, FieldKind, HAS_POINTERS, StaticAt, StaticKind};
use gcdump::internals::dump::{self, DumpFile};
use gcdump::internals::memory::{DataPages, FileSearch, Image, Memory, file_image, fill_module};
use goblin::elf::Elf;

use crate::common::{self, Known, native_aot_program, needs_native_aot_program};
use crate::harness::{Ignored, Tested};

/// A dump of the lab's program with its module.
struct Opened {
    memory: Arc<Memory>,
    image: Image,
    blobs: Blobs,
    debugging: Debugging,
}

fn dumps() -> Result<Vec<Known>, Ignored> {
    Ok(common::every_dump(|row| row["runtime"] == "aot9")?.0)
}

fn open(path: &Path, folder: &Path) -> Opened {
    let dump: DumpFile = dump::open(path, &dump::OpenOptions::default()).unwrap();
    let mut memory = Memory::new(&dump, Shape::LE64);
    let module = dump.modules.iter().find(|m| m.path.ends_with("/lab")).unwrap();
    let image = Image::at(&memory, module.base).unwrap();
    let search = FileSearch { modules: vec![folder.into()], ..FileSearch::default() };
    // Heap dumps do not have pages of the module's data that the process changed.
    let data = if path.to_string_lossy().contains("-heap") { DataPages::Absent } else { DataPages::Unchanged };
    fill_module(&mut memory, module, Some(&image), &search, dump.facts.os, data);
    let file = Arc::new(file_image(module, &image, &folder.join("lab"), memory.shape()).unwrap());
    assert_eq!(dump.facts.arch, Arch::X64);
    let memory = Arc::new(memory);
    let blobs = Blobs::find(&memory, Some(&file), &image, HAS_POINTERS, &Limits::default()).unwrap_or_else(|| panic!("{}", path.display()));
    let debugging = Debugging::find(&memory, module, &image, &search, dump.facts.os, &Limits::default());
    assert!(debugging.refused.is_empty(), "{:?}", debugging.refused);
    Opened { memory, image, blobs, debugging }
}

/// Symbols of the lab's program by value.
fn symbols() -> &'static BTreeMap<u64, Vec<String>> {
    static SYMBOLS: OnceLock<BTreeMap<u64, Vec<String>>> = OnceLock::new();
    SYMBOLS.get_or_init(|| {
        let bytes = std::fs::read(native_aot_program().unwrap().join("lab")).unwrap();
        let elf = Elf::parse(&bytes).unwrap();
        let mut out: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for symbol in elf.syms.iter().filter(|s| s.st_shndx != 0) {
            out.entry(symbol.st_value).or_default().push(elf.strtab.get_at(symbol.st_name).unwrap().to_string());
        }
        out
    })
}

impl Opened {
    fn symbols(&self, at: Addr) -> &[String] {
        symbols().get(&at.0.wrapping_sub(self.image.base.0)).map_or(&[], Vec::as_slice)
    }

    /// The mangled name of the type at `method_table`.
    fn mangled(&self, method_table: Addr) -> Option<&str> {
        let name = self.symbols(method_table).iter().find_map(|s| s.strip_prefix("_ZTV"))?;
        Some(name.trim_start_matches(|c: char| c.is_ascii_digit()))
    }
}

impl Opened {
    /// Returns that name without the mark of structures.
    fn unboxed(&self, method_table: Addr) -> Option<&str> {
        self.mangled(method_table).map(|name| name.strip_prefix("Boxed_").unwrap_or(name))
    }
}

/// Converts a name to the compiler's form in symbols.
fn mangle(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

#[test]
fn every_type_of_the_map_is_named_like_its_symbol() -> Tested {
    let folder = needs_native_aot_program()?;
    for known in dumps()? {
        let opened = open(&known.path, &folder);
        let mut spelled = Vec::new();
        for (table, definition) in opened.blobs.definitions() {
            let mangled = opened.mangled(table).unwrap();
            if !mangled.ends_with(&mangle(&definition.name)) {
                spelled.push(definition.name.as_str());
            }
        }
        spelled.sort_unstable();
        // Symbols spell types that have C# keywords differently.
        assert_eq!(spelled, KEYWORDS.map(|name| format!("System.{name}")), "{}", known.name);
        assert_eq!(opened.blobs.definitions().count(), 1056, "{}", known.name);
        assert_eq!(opened.blobs.incomplete(), [""; 0], "{}", known.name);
        let dictionary = "System.Collections.Generic.Dictionary`2";
        let table = opened.blobs.method_table_of("System.Private.CoreLib", dictionary).unwrap();
        assert_eq!(opened.blobs.definition_name(table), Some(dictionary));
        assert_eq!(opened.blobs.method_table_of("lab", dictionary), None);
        assert!(opened.blobs.method_table_of("lab", "Lab.Program+Entry").is_some());
    }
    Ok(())
}

/// Releases with the flag of method tables with references, and the kind of dump that has all tables.
const OTHERS: [(&str, u32); 3] = [("net8aot", 0x20_0000), ("net10aot", HAS_POINTERS), ("net11aot", HAS_POINTERS)];

#[test]
fn programs_of_each_release_have_names_methods_and_static_fields() -> Tested {
    let is_full = |row: &serde_json::Value| row["kind"] == "full" && OTHERS.iter().any(|(runtime, _)| row["runtime"] == *runtime);
    for known in common::further_dumps(is_full)?.0 {
        let has_pointers = OTHERS.iter().find(|(runtime, _)| known.runtime == *runtime).unwrap().1;
        let dump: DumpFile = dump::open(&known.path, &dump::OpenOptions::default()).unwrap();
        let memory = Arc::new(Memory::new(&dump, Shape::LE64));
        let module = dump.modules.iter().find(|m| m.path.ends_with("/lab")).unwrap();
        let image = Image::at(&memory, module.base).unwrap();
        let blobs = Blobs::find(&memory, None, &image, has_pointers, &Limits::default()).unwrap();
        let types = blobs.definitions().count();
        assert!(types > 900 && blobs.method_count() > 3000, "{}: {types} {}", known.name, blobs.method_count());
        assert!(blobs.method_table_of("lab", "Lab.Program").is_some(), "{}", known.name);
        assert!(blobs.method_table_of("System.Private.CoreLib", "System.Collections.Generic.Dictionary`2").is_some(), "{}", known.name);
        // Helpers made by the compiler have no metadata: .NET 11 lists one for each structure.
        let named = blobs.method_starts().filter(|at| blobs.method_at(*at).is_some()).count();
        assert!(named * 20 > blobs.method_count() * 19, "{}: {named} of {}", known.name, blobs.method_count());
        let statics = blobs.gc_statics();
        let absent = statics.iter().filter(|s| s.block.is_none()).count();
        assert!(statics.len() > 300 && absent == 0, "{}: {absent} of {}", known.name, statics.len());
        assert_eq!(blobs.incomplete(), [""; 0], "{}", known.name);
        println!("{}: {types} types, {named} methods, {} blocks of static fields", known.name, statics.len());
    }
    Ok(())
}

/// Static fields with owners: references, others, thread statics.
const KINDS: [usize; 3] = [232, 206, 8];

/// Types that have other names in symbols.
const KEYWORDS: [&str; 16] = [
    "Boolean", "Byte", "Char", "Double", "Int16", "Int32", "Int64", "IntPtr", "Object", "SByte", "Single", "String", "UInt16", "UInt32",
    "UInt64", "UIntPtr",
];

#[test]
fn every_block_of_static_fields_is_found_and_those_of_generics_have_their_owner() -> Tested {
    let folder = needs_native_aot_program()?;
    for known in dumps()? {
        let opened = open(&known.path, &folder);
        let statics = opened.blobs.gc_statics();
        let symbol = |at: Addr, prefix: &str| opened.symbols(at).iter().find_map(|s| s.strip_prefix(prefix));
        assert_eq!(statics.len(), 438, "{}", known.name);
        for found in &statics {
            // Heap dumps do not have most slots.
            let Some(block) = found.block else {
                assert!(known.kind == "heap" && opened.memory.ptr(found.slot).is_err(), "{}: {found:?}", known.name);
                continue;
            };
            let table = opened.memory.ptr(block).unwrap();
            assert!(symbol(table, "__GCStaticEEType_").is_some(), "{}: {found:?}", known.name);
            let Some(owner) = found.owner else { continue };
            assert_eq!(symbol(found.slot, "__GCSTATICS"), opened.unboxed(owner), "{}: {found:?}", known.name);
        }
        // The array that keeps the blocks alive has them in the same order.
        let blocks: Vec<u8> = statics.iter().filter_map(|s| s.block).flat_map(|b| b.0.to_le_bytes()).collect();
        if blocks.len() == 438 * 8 {
            let places = opened.memory.stretches(AddrRange::new(Addr(0), Addr(u64::MAX))).flat_map(|(start, bytes)| {
                let hits: Vec<usize> = memchr::memmem::find_iter(bytes, &blocks).collect();
                hits.into_iter().map(move |at| start.plus(at as u64))
            });
            let array = places.into_iter().find(|at| !opened.image.range.contains(*at)).unwrap();
            assert_eq!(opened.blobs.gc_statics_in(array).unwrap(), statics, "{}", known.name);
            assert_eq!(opened.blobs.gc_statics_in(array.plus(8)), None, "{}", known.name);
            assert_eq!(opened.blobs.slot_count(), 438);
        }
        assert_eq!(statics.iter().filter(|s| s.owner.is_some()).count(), 232, "{}", known.name);
        let mut kinds = [0; 3];
        for (place, owned) in opened.blobs.owned_statics() {
            let (kind, prefix) = match owned.kind {
                StaticKind::Gc => (0, "__GCSTATICS"),
                StaticKind::Other => (1, "__NONGCSTATICS"),
                StaticKind::Thread => (2, "__TypeThreadStaticIndex"),
            };
            kinds[kind] += 1;
            // Blocks without fields share an address.
            let mut names = opened.symbols(*place).iter().filter_map(|s| s.strip_prefix(prefix));
            assert!(names.any(|name| opened.unboxed(owned.owner) == Some(name)), "{}: {place} {owned:?}", known.name);
        }
        assert_eq!(kinds, KINDS, "{}", known.name);
        let threads = opened.blobs.thread_statics();
        assert!(threads.len() == 9 && threads.iter().all(|t| symbol(*t, "__GCStaticEEType_").is_some()), "{}: {threads:?}", known.name);
        assert!(opened.blobs.frozen_objects().is_some_and(|range| range.len() == 149_184), "{}", known.name);
        assert_eq!(opened.blobs.incomplete(), [""; 0], "{}", known.name);
    }
    Ok(())
}

#[test]
fn every_method_of_the_map_is_named_like_its_symbol() -> Tested {
    let folder = needs_native_aot_program()?;
    for known in dumps()? {
        let opened = open(&known.path, &folder);
        let (mut nameless, mut other) = (0, Vec::new());
        for start in opened.blobs.method_starts() {
            let Some(method) = opened.blobs.method_at(start) else {
                nameless += 1;
                continue;
            };
            assert_eq!(method.start, start, "{}: {method:?}", known.name);
            // The generic arguments of the type follow it; those of the method, or the number of the overload, follow the name.
            let simple = mangle(method.owner.rsplit(['.', '+']).next().unwrap());
            let wanted = (simple, mangle(&method.name));
            let agrees = |s: &String| s.contains(&wanted.0) && s.contains(&wanted.1);
            if !opened.symbols(start).iter().any(agrees) {
                other.push(method);
            }
        }
        // The two functions around `Main` belong to no type. Symbols spell types that have C# keywords differently.
        let spelled = other.iter().all(|m| KEYWORDS.iter().any(|name| m.owner == format!("System.{name}")));
        assert!(nameless == 2 && other.len() == 24 && spelled, "{}: {nameless} {other:?}", known.name);
        assert_eq!(opened.blobs.method_count(), 7846, "{}", known.name);
        assert_eq!(opened.blobs.incomplete(), [""; 0], "{}", known.name);
    }
    Ok(())
}

#[test]
fn code_anywhere_in_a_method_or_its_handlers_belongs_to_the_method() -> Tested {
    let folder = needs_native_aot_program()?;
    let known = dumps()?.swap_remove(0);
    let opened = open(&known.path, &folder);
    let bytes = std::fs::read(folder.join("lab")).unwrap();
    let elf = Elf::parse(&bytes).unwrap();
    let starts: BTreeSet<Addr> = opened.blobs.method_starts().filter(|at| opened.blobs.method_at(*at).is_some()).collect();
    let (mut methods, mut others) = (0, 0);
    for symbol in elf.syms.iter().filter(|s| s.is_function() && s.st_size > 0 && s.st_shndx != 0) {
        let start = opened.image.base.plus(symbol.st_value);
        let wanted = starts.get(&start).copied();
        *(if wanted.is_some() { &mut methods } else { &mut others }) += 1;
        for code in [start, start.plus(symbol.st_size / 2), start.plus(symbol.st_size - 1)] {
            assert_eq!(opened.blobs.method_at(code).map(|m| m.start), wanted, "{code} {:?}", elf.strtab.get_at(symbol.st_name));
        }
    }
    // Some methods have a second symbol.
    assert!(methods >= 7844 && others > 3000, "{methods} {others}");
    Ok(())
}

#[test]
fn symbols_and_debug_information_have_fields_and_owners() -> Tested {
    let folder = needs_native_aot_program()?;
    for known in dumps()? {
        let opened = open(&known.path, &folder);
        let (symbols, types) = (opened.debugging.symbols.as_ref().unwrap(), opened.debugging.types.as_ref().unwrap());
        assert!(types.is_whole(), "{}", known.name);
        // Every block has its owner.
        for found in opened.blobs.gc_statics() {
            let owner = symbols.statics_at(found.slot, StaticKind::Gc).unwrap();
            if let Some(table) = found.owner {
                assert_eq!(symbols.type_at(table).map(|t| t.name), Some(owner), "{}", known.name);
            }
            assert!(found.block.is_none_or(|b| symbols.is_static_block(opened.memory.ptr(b).unwrap())), "{}: {found:?}", known.name);
        }
        let node = opened.blobs.method_table_of("lab", "Lab.Node").unwrap();
        let fields = opened.debugging.fields_of(node, 8).unwrap();
        let seen = |f: &DebugField| (f.name.clone(), f.offset, f.kind.clone());
        let reference = |name: &str, offset, to: &str| (name.to_string(), offset, FieldKind::Reference(to.into()));
        let primitive = |name: &str, offset, element| (name.to_string(), offset, FieldKind::Primitive(element));
        let wanted =
            [reference("Next", 8, "lab_Lab_Node"), primitive("Index", 24, CorElementType::I4), reference("Data", 16, "__Array<UInt8>")];
        // The method table is the first field.
        assert_eq!(fields.iter().skip(1).map(seen).collect::<Vec<_>>(), wanted, "{}", known.name);
        // A boxed structure with enum fields, and fields of an instance described by another one.
        let key = types.fields_of("System_Console_System_ConsoleKeyInfo").unwrap();
        let of = |name: &str| FieldKind::Enum(format!("System_Console_System_{name}").into(), CorElementType::I4);
        let wanted = [
            primitive("_keyChar", 0, CorElementType::Char),
            ("_key".into(), 4, of("ConsoleKey")),
            ("_mods".into(), 8, of("ConsoleModifiers")),
        ];
        assert_eq!(key.iter().map(seen).collect::<Vec<_>>(), wanted);
        let boxed = symbols.types().find(|(t, _)| t.boxed && t.name == "System_Console_System_ConsoleKeyInfo").unwrap().1;
        let offsets = opened.debugging.fields_of(boxed, 8).unwrap().iter().map(|f| f.offset).collect::<Vec<_>>();
        assert_eq!(offsets, [8, 12, 16]);
        let weak = "S_P_CoreLib_System_Runtime_CompilerServices_ConditionalWeakTable_2<System___Canon__System___Canon>";
        let weak: Vec<_> = types.fields_of(weak).unwrap().iter().skip(1).map(|f| (f.name.clone(), f.offset)).collect();
        assert!(weak.contains(&("_container".to_string(), 16)), "{weak:?}");
        assert_eq!(types.literals_of("lab_Lab_Color").unwrap().last(), Some(&("Blue".to_string(), 7)));
        let statics = types.statics_of("lab_Lab_Program").unwrap();
        let keep = statics.iter().find(|s| s.name == "Keep").unwrap();
        let Some(StaticAt::InBlock { slot, offset }) = keep.at else { panic!("{keep:?}") };
        assert_eq!(symbols.statics_at(slot, StaticKind::Gc), Some("lab_Lab_Program"));
        if let Some(block) = opened.blobs.block(slot) {
            let kept = opened.memory.ptr(opened.memory.ptr(block.plus(offset)).unwrap()).unwrap();
            assert_eq!(symbols.type_at(kept).map(|t| t.name), Some("S_P_CoreLib_System_Collections_Generic_List_1<Object>"));
        }
        // The field has another kind, although it is declared among those.
        let number = statics.iter().find(|s| s.name == "n").unwrap();
        assert!(matches!(number.at, Some(StaticAt::Address(_))), "{number:?}");
        let task = types.statics_of("S_P_CoreLib_System_Threading_Tasks_Task").unwrap();
        let places: Vec<(&str, bool)> = task.iter().map(|s| (s.name.as_str(), s.at.is_some())).collect();
        assert!(places.contains(&("s_taskCompletionSentinel", true)) && places.contains(&("t_currentTask", false)), "{places:?}");
        let method = opened.blobs.method_starts().nth(1000).unwrap();
        let name = mangle(&opened.blobs.method_at(method).unwrap().name);
        assert!(symbols.function_at(method.plus(1)).is_some_and(|(symbol, start)| start == method && symbol.contains(&name)));
    }
    Ok(())
}
