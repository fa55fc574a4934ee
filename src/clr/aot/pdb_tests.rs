//! Tests of the PDB reader. clang and lld made the PDB from `tests/it/pdb/program.cpp`.

use proptest::prelude::*;

use super::*;
use crate::base::{CorElementType, Shape};
use crate::clr::aot::{DebugField, FieldKind, StaticKind, TypeSymbol};
use crate::memory::{DataPages, ImageFormat, PeHeaders, fill_module};

const BASE: Addr = Addr(0x1_8000_0000);
/// RVAs at which the linker placed the sections.
const CODE: u64 = 0x1000;
const CONSTANTS: u64 = 0x2000;
const DATA: u64 = 0x3000;

fn unpacked(packed: &[u8]) -> Vec<u8> {
    zstd::stream::decode_all(packed).unwrap()
}

fn pdb() -> Vec<u8> {
    unpacked(include_bytes!("../../../tests/it/pdb/program.pdb.zst"))
}

/// The program as a loaded module in memory, and the folder with its files.
struct Loaded {
    folder: tempfile::TempDir,
    memory: Memory,
    module: Module,
    image: Image,
}

impl Loaded {
    fn new() -> Loaded {
        let folder = tempfile::tempdir().unwrap();
        let program = unpacked(include_bytes!("../../../tests/it/pdb/program.dll.zst"));
        let headers = PeHeaders::parse(&program).unwrap();
        std::fs::write(folder.path().join("program.dll"), program).unwrap();
        let module = Module {
            path: r"C:\app\program.dll".into(),
            base: BASE,
            size: headers.size_of_image.into(),
            timestamp: Some(headers.timestamp),
            version: None,
            build_id: None,
        };
        let mut memory = Memory::empty(Shape::LE64);
        let loaded = Loaded::search(&folder);
        assert!(fill_module(&mut memory, &module, None, &loaded, Os::Windows, DataPages::Absent).file.is_some());
        let image = Image::at(&memory, BASE).unwrap();
        assert_eq!(image.format, ImageFormat::Pe);
        Loaded { folder, memory, module, image }
    }

    fn search(folder: &tempfile::TempDir) -> FileSearch {
        FileSearch { modules: vec![folder.path().into()], ..FileSearch::default() }
    }

    /// The debug information that is found if `pdb` is written next to the program.
    fn with(&self, pdb: &[u8]) -> Debugging {
        std::fs::write(self.folder.path().join("program.pdb"), pdb).unwrap();
        let search = Loaded::search(&self.folder);
        Debugging::find(&self.memory, &self.module, &self.image, &search, Os::Windows, &Limits::default())
    }
}

fn at(rva: u64) -> Addr {
    BASE.plus(rva)
}

#[test]
fn symbols_are_named_as_on_unix() {
    for (theirs, ours) in [
        ("??_7lab_Lab_Node@@6B@", "_ZTV12lab_Lab_Node"),
        ("??_7Boxed_System_Guid@@6B@", "_ZTV17Boxed_System_Guid"),
        ("?__GCSTATICS@lab_Lab_Program@@", "__GCSTATICSlab_Lab_Program"),
        ("?__NONGCSTATICS@lab_Lab_Program@@", "__NONGCSTATICSlab_Lab_Program"),
        ("?__THREADSTATICINDEX@lab_Lab_Program@@", "__TypeThreadStaticIndexlab_Lab_Program"),
    ] {
        assert_eq!(as_on_unix(theirs), ours);
    }
    for other in ["lab_Lab_Program__Main", "??_7GCHeap@WKS@@6B@", "?g_heap@WKS@@3PEAV1@EA", "?x@@", "??_7@", ""] {
        assert_eq!(as_on_unix(other), other);
    }
}

#[test]
fn names_fields_and_places_come_from_the_pdb() {
    let loaded = Loaded::new();
    let named = loaded.image.code_view(&loaded.memory).unwrap();
    assert_eq!((named.name.as_str(), named.id.len(), named.id.last_chunk()), ("program.pdb", 20, Some(&[1, 0, 0, 0])));
    let debugging = loaded.with(&pdb());
    assert!(debugging.refused.is_empty(), "{:?}", debugging.refused);
    let (symbols, types) = (debugging.symbols.as_ref().unwrap(), debugging.types.as_ref().unwrap());
    assert!(types.is_whole());

    let ty = |name, boxed| Some(TypeSymbol { name, boxed });
    assert_eq!(symbols.type_at(at(CONSTANTS)), ty("lab_Lab_Dog", false));
    assert_eq!(symbols.type_at(at(CONSTANTS + 32)), ty("lab_Lab_Point", true));
    assert_eq!(symbols.type_at(at(DATA)), ty("lab_Lab_Program", false));
    assert_eq!(symbols.type_at(at(CONSTANTS + 8)), None);
    assert_eq!(symbols.statics_at(at(DATA + 32), StaticKind::Gc), Some("lab_Lab_Program"));
    assert_eq!(symbols.statics_at(at(DATA + 40), StaticKind::Other), Some("lab_Lab_Program"));
    let main = Some(("lab_Lab_Program__Main", at(CODE)));
    assert_eq!([0, 48, 49].map(|n| symbols.function_at(at(CODE + n))), [main, main, None]);

    let seen = |f: &DebugField| (f.name.clone(), f.offset, f.kind.clone());
    let field = |name: &str, offset, kind| (name.to_string(), offset, kind);
    let fields = debugging.fields_of(at(CONSTANTS), 8).unwrap();
    let wanted = [
        field("_name", 8, FieldKind::Reference("String".into())),
        field("_age", 16, FieldKind::Primitive(CorElementType::I4)),
        field("Friend", 24, FieldKind::Reference("lab_Lab_Dog".into())),
        field("_tag", 32, FieldKind::Primitive(CorElementType::I8)),
        field("Colour", 40, FieldKind::Enum("lab_Lab_Color".into(), CorElementType::U1)),
        field("At", 48, FieldKind::Structure("lab_Lab_Point".into())),
        field("Handle", 64, FieldKind::Pointer),
    ];
    assert_eq!(fields.iter().map(seen).collect::<Vec<_>>(), wanted);
    assert_eq!((&*fields[0].declared_by, &*fields[2].declared_by), ("lab_Lab_Animal", "lab_Lab_Dog"));
    // In a boxed structure, the fields are after the method table.
    let boxed = debugging.fields_of(at(CONSTANTS + 32), 8).unwrap();
    assert_eq!(boxed.iter().map(|f| f.offset).collect::<Vec<_>>(), [8, 16]);
    let list = types.fields_of("S_P_CoreLib_System_Collections_Generic_List_1<Object>").unwrap();
    assert_eq!(list.iter().map(|f| (f.name.as_str(), f.offset)).collect::<Vec<_>>(), [("_items", 8), ("_size", 16)]);
    assert_eq!(types.literals_of("lab_Lab_Color").unwrap().last(), Some(&("Blue".to_string(), 7)));

    let statics = types.statics_of("lab_Lab_Program").unwrap();
    let places: Vec<_> = statics.iter().map(|s| (s.name.as_str(), s.at)).collect();
    let block = |n| Some(StaticAt::Address(at(DATA + 40 + n)));
    let kept = Some(StaticAt::InBlock { slot: at(DATA + 32), offset: 8 });
    assert_eq!(places, [("n", block(0)), ("done", block(4)), ("Keep", kept)]);
}

#[test]
fn only_the_pdb_that_the_module_names_is_used() {
    let loaded = Loaded::new();
    let whole = pdb();
    let named = loaded.image.code_view(&loaded.memory).unwrap();
    let guid = memchr::memmem::find(&whole, &named.id[..16]).unwrap();
    let mut other = whole.clone();
    other[guid] ^= 1;
    for (bytes, why) in [
        (other.as_slice(), "its id is "),
        (&whole[..whole.len() / 2], "it is not a readable PDB"),
        (b"BSJB", "it is not a readable PDB"),
        (b"", ""),
    ] {
        let debugging = loaded.with(bytes);
        assert!(debugging.symbols.is_none() && debugging.types.is_none());
        let [(path, refused)] = debugging.refused.as_slice() else { panic!("{:?}", debugging.refused) };
        assert!(path.ends_with("program.pdb") && refused.why.starts_with(why), "{refused}");
    }
    // If the image is absent from memory, the module list of a minidump identifies the PDB. Without an identity in that list, no PDB is used.
    let mut loaded = loaded;
    loaded.memory = Memory::empty(Shape::LE64);
    assert!(loaded.with(&whole).refused[0].1.why.starts_with("neither the dump nor"));
    loaded.module.build_id = Some(named.id);
    let debugging = loaded.with(&whole);
    // Without section headers, symbols have no addresses; types are still read.
    assert!(debugging.symbols.is_none() && debugging.types.unwrap().fields_of("lab_Lab_Dog").is_some());
}

/// Reads all symbols and types from `bytes` as a PDB.
fn read_all(bytes: Vec<u8>) {
    let debugging = read(bytes, &[CODE, CONSTANTS, DATA], BASE.0);
    if let Some(types) = debugging.types {
        for name in types.names() {
            let _ = (types.fields_of(name), types.statics_of(name), types.literals_of(name));
        }
    }
    if let Some(symbols) = debugging.symbols {
        let _ = (symbols.types().count(), symbols.function_at(at(CODE)));
    }
}

#[test]
fn a_page_in_many_streams_is_refused_before_it_is_copied() {
    let mut bytes = vec![0; 0x4000];
    bytes[..32].copy_from_slice(b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0");
    // Page size, free page map, number of pages, size of the stream directory, page with the list of its pages.
    for (at, n) in [(32, 0x1000u32), (36, 1), (40, 4), (44, 0x10_0000), (52, 2)] {
        bytes[at..at + 4].copy_from_slice(&n.to_le_bytes());
    }
    bytes[0x2000..0x3000].chunks_exact_mut(4).for_each(|n| n.copy_from_slice(&3u32.to_le_bytes()));
    let debugging = read(bytes, &[], 0);
    assert!(debugging.symbols.is_none() && debugging.types.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn a_corrupt_pdb_is_read_without_a_panic(places in prop::collection::vec((0usize..1 << 17, any::<u8>()), 1..24), cut in any::<bool>()) {
        let mut bytes = pdb();
        let len = bytes.len();
        for (place, value) in places {
            // Most pages are empty, so four of five mutations change nonempty bytes.
            let used: Vec<usize> = (0..len).step_by(16).filter(|at| bytes[*at..at + 16].iter().any(|b| *b != 0)).collect();
            let at = if place % 5 == 0 { place % len } else { used[place % used.len()] + place / 7 % 16 };
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(len / 3 * 2);
        }
        read_all(bytes);
    }
}
