//! Tests with handmade debug headers, of every pointer size and byte order, and with malformed debug headers.

use super::header::{DebugHeader, DebugHeaderError, Tables};
use super::*;
use crate::base::{Addr, AddrRange, Budget, Endian, PtrSize, Shape};
use crate::contract::descriptor::{Descriptor, Origin};
use crate::contract::json::parse;
use crate::contract::overlay::{self, DebugHeaderOrder, Overlay};
use crate::dump::Module;
use crate::memory::tests::memory_of;
use crate::memory::{Image, ImageFormat, Memory};
use crate::model::OriginKind;
use std::collections::BTreeMap;
use std::sync::Arc;

const BASE: Addr = Addr(0x40_0000);
/// Offsets in the image: header, types, globals, names.
const HEADER: u64 = 0x1000;
const TYPES: u64 = 0x2000;
const GLOBALS: u64 = 0x3000;
const NAMES: u64 = 0x4000;
const END: u64 = 0x8000;

const SHAPES: [Shape; 4] = [
    Shape { ptr: PtrSize::Eight, endian: Endian::Little },
    Shape { ptr: PtrSize::Eight, endian: Endian::Big },
    Shape { ptr: PtrSize::Four, endian: Endian::Little },
    Shape { ptr: PtrSize::Four, endian: Endian::Big },
];

struct Program {
    base: Addr,
    bytes: Vec<u8>,
    shape: Shape,
    names: BTreeMap<String, u64>,
    names_end: u64,
}

fn index(n: u64) -> usize {
    usize::try_from(n).unwrap()
}

impl Program {
    fn new(shape: Shape) -> Program {
        Program::at(BASE, shape)
    }

    fn at(base: Addr, shape: Shape) -> Program {
        Program { base, bytes: vec![0; index(END)], shape, names: BTreeMap::new(), names_end: NAMES }
    }

    fn put(&mut self, at: u64, value: u64, len: usize) {
        let mut bytes = value.to_le_bytes()[..len].to_vec();
        if self.shape.endian == Endian::Big {
            bytes.reverse();
        }
        self.bytes[index(at)..][..len].copy_from_slice(&bytes);
    }

    fn word(&mut self, at: u64, value: u64) {
        self.put(at, value, index(self.shape.ptr.bytes()));
    }

    /// The address of a name. Equal names share an address.
    fn name(&mut self, name: &str) -> u64 {
        if let Some(at) = self.names.get(name) {
            return *at;
        }
        let (at, text) = (self.names_end, [name.as_bytes(), &[0]].concat());
        self.bytes[index(at)..][..text.len()].copy_from_slice(&text);
        self.names_end += text.len() as u64;
        self.names.insert(name.to_string(), self.base.0 + at);
        self.base.0 + at
    }

    fn header(&mut self, major: u8, flags: u8) {
        let word = self.shape.ptr.bytes();
        let at = index(HEADER);
        self.bytes[at..][..4].copy_from_slice(b"DNDH");
        self.bytes[at + 4] = major;
        self.bytes[at + 8] = flags;
        self.word(HEADER + 16, self.base.0 + TYPES);
        self.word(HEADER + 16 + word, self.base.0 + GLOBALS);
    }

    fn tables(&mut self, entries: &[(&str, &str, u64)], globals: &[(&str, u64)]) {
        let word = self.shape.ptr.bytes();
        for (i, (type_name, field, value)) in (0u64..).zip(entries) {
            let at = TYPES + i * (2 * word + 8);
            let (t, f) = (self.name(type_name), self.name(field));
            self.word(at, t);
            self.word(at + word, f);
            self.put(at + 2 * word, *value, 4);
        }
        for (i, (name, value)) in (0u64..).zip(globals) {
            let n = self.name(name);
            self.word(GLOBALS + i * 2 * word, n);
            self.word(GLOBALS + i * 2 * word + word, *value);
        }
    }

    /// The memory of the program, in which only `ranges` (offsets in the image) are captured.
    fn memory(&self, ranges: &[std::ops::Range<u64>]) -> Memory {
        let captured: Vec<_> = ranges.iter().map(|r| (self.base.0 + r.start, r.end - r.start, r.start)).collect();
        let mut memory = memory_of(self.bytes.clone(), &captured, self.shape);
        memory.begin(Arc::new(Budget::new(self.bytes.len() as u64, None)));
        memory
    }

    fn image(&self) -> Image {
        Image::bare(ImageFormat::Elf, AddrRange::of(self.base, END), vec![AddrRange::new(self.base.plus(HEADER), self.base.plus(NAMES))])
    }

    fn flags(&self) -> u8 {
        u8::from(self.shape.ptr == PtrSize::Eight) | u8::from(self.shape.endian == Endian::Big) << 1
    }
}

const ENTRIES: [(&str, &str, u64); 6] = [
    ("ThreadStore", "SIZEOF", 56),
    ("ThreadStore", "m_ThreadList", 4),
    ("ThreadBuffer", "SIZEOF", 100),
    ("ThreadBuffer", "m_pNext", 44),
    ("ThreadBuffer", "m_threadId", 60),
    ("RuntimeInstance", "m_pThreadStore", 8),
];
const ALL: std::ops::Range<u64> = 0..END;

#[test]
fn a_header_of_any_shape_becomes_a_descriptor() {
    for shape in SHAPES {
        let mut program = Program::new(shape);
        let flags = program.flags();
        program.header(4, flags);
        program
            .tables(&ENTRIES, &[("g_pTheRuntimeInstance", 0x1234_5678), ("g_gcDacGlobals", 0x40_7000), ("g_pFreeObjectEEType", 0x40_7100)]);
        let memory = program.memory(&[ALL]);
        let header = by_content(&memory, &program.image()).unwrap().unwrap();
        assert_eq!(header.address, Some(BASE.plus(HEADER)), "{shape:?}");

        let mut d = Descriptor::default();
        let (vars, overlay) = describe(&mut d, &memory, &header);
        assert_eq!(vars.map(|v| v.address), Some(Addr(0x40_7000)), "{shape:?}");
        assert!(overlay.is_some() && d.is_native_aot());
        assert_eq!(d.offset("Thread", "LinkNext"), Ok(44), "the older name of the thread's structure, {shape:?}");
        assert_eq!(d.offset("Thread", "OSId"), Ok(60));
        assert_eq!(d.pointer("ThreadStore"), Ok(Addr(0x1234_5680)));
        // The global is the address of the value in the table of globals, so reading this address yields the method table.
        let free = d.pointer("FreeObjectMethodTable").unwrap();
        assert_eq!(memory.ptr(free), Ok(Addr(0x40_7100)));
        // The overlay's layout of the thread structure is not used, because the size of the structure differs.
        assert!(d.offset("Thread", "CachedStackBase").is_err());
        assert_eq!(d.offset("MethodTable", "VTable"), Ok(if shape.ptr == PtrSize::Eight { 24 } else { 20 }));
    }
}

#[test]
fn only_what_the_net_11_descriptor_omits_is_added() {
    for shape in SHAPES {
        let memory = Program::new(shape).memory(&[ALL]);
        let json = br#"{"version": 2, "baseline": "empty", "types": {"String": {"m_StringLength": 40}}, "globals": {},
            "contracts": {"Thread": "n1", "RuntimeTypeSystem": "n1"}}"#;
        let mut d = Descriptor::default();
        let origin = d.add_origin(Origin { kind: OriginKind::InMemory, name: "descriptor".into(), address: None, version: 2 });
        d.merge(&parse(json).unwrap(), origin, |_| None);
        complete(&mut d, &memory);
        assert_eq!(d.offset("String", "m_StringLength"), Ok(40), "the descriptor takes precedence");
        assert_eq!(d.size_of("Array"), Ok(2 * shape.ptr.bytes()));
        assert_eq!((d.number("SyncBlockValueToObjectOffset"), d.contract("Object")), (Ok(4), Some("1".into())));
        assert!(d.type_info("MethodTable").is_err() && d.type_info("Exception").is_err());

        let mut coreclr = Descriptor::default();
        complete(&mut coreclr, &memory);
        assert!(coreclr.types.is_empty() && coreclr.contracts.is_empty());
    }
}

#[test]
fn each_program_or_library_of_a_process_is_found_without_its_exports() {
    let shape = SHAPES[0];
    let second = Addr(0x80_0000);
    let library = |base: Addr, major: u8| {
        let mut program = Program::at(base, shape);
        program.header(major, 1);
        program.tables(&ENTRIES, &[("g_gcDacGlobals", 0x40_7000)]);
        // An ELF header, and one writable segment.
        program.bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        for (at, value, len) in [(16, 3, 2), (18, 62, 2), (20, 1, 4), (32, 64, 8), (52, 64, 2), (54, 56, 2), (56, 1, 2)] {
            program.put(at, value, len);
        }
        for (at, value, len) in [(64, 1, 4), (68, 6, 4), (96, END, 8), (104, END, 8), (112, 0x1000, 8)] {
            program.put(at, value, len);
        }
        program.bytes
    };
    let modules = [BASE, second].map(|base| Module {
        path: format!("/app/lib{base}.so"),
        base,
        size: END,
        timestamp: None,
        version: None,
        build_id: None,
    });
    let memory = |libraries: [Vec<u8>; 2]| {
        let mut memory = memory_of(libraries.concat(), &[(BASE.0, END, 0), (second.0, END, END)], shape);
        memory.begin(Arc::new(Budget::new(2 * END, None)));
        memory
    };
    let both = memory([library(BASE, 4), library(second, 4)]);
    let found = all_by_content(&both, &modules, |m| Image::at(&both, m.base), 8);
    let places: Vec<_> = found.iter().map(|(module, image, header)| (module.base, image.base, header.as_ref().unwrap().address)).collect();
    assert_eq!(places, [BASE, second].map(|base| (base, base, Some(base.plus(HEADER)))));
    assert_eq!(all_by_content(&both, &modules, |m| Image::at(&both, m.base), 1).len(), 1);
    // A header of an unknown version does not prevent the search from finding the header of the other library.
    let one = memory([library(BASE, 6), library(second, 4)]);
    let found = all_by_content(&one, &modules, |m| Image::at(&one, m.base), 8);
    assert!(matches!(found.as_slice(), [(module, _, Ok(_))] if module.base == second));
}

#[test]
fn invalid_headers_are_refused() {
    let shape = SHAPES[0];
    let read = |change: &dyn Fn(&mut Program)| {
        let mut program = Program::new(shape);
        program.header(4, 1);
        program.tables(&ENTRIES, &[("g_gcDacGlobals", 1)]);
        change(&mut program);
        DebugHeader::read(&program.memory(&[ALL]), BASE.plus(HEADER), "test", &[])
    };
    assert!(read(&|_| {}).is_ok());
    assert!(matches!(read(&|p| p.bytes[index(HEADER)] = 0), Err(DebugHeaderError::NoHeader { .. })));
    assert!(matches!(read(&|p| p.bytes[index(HEADER) + 4] = 6), Err(DebugHeaderError::Version { major: 6, .. })));
    assert!(matches!(read(&|p| p.bytes[index(HEADER) + 8] = 3), Err(DebugHeaderError::Shape { .. })));
    assert!(matches!(read(&|p| p.word(TYPES, 0)), Err(DebugHeaderError::Empty)));
    assert!(matches!(read(&|p| p.word(HEADER + 16, 0x9999_9999)), Err(DebugHeaderError::Read(_))));
    let endless = |p: &mut Program| (0..200).for_each(|i| p.word(TYPES + 24 * i, BASE.0 + NAMES));
    assert!(matches!(read(&endless), Err(DebugHeaderError::Empty)));
}

fn overlay_of(release: &str) -> &'static Overlay {
    overlay::native_aot(PtrSize::Eight).find(|o| o.section.runtime.as_deref() == Some(release)).unwrap()
}

/// The overlay of .NET 9 with another order of entries.
fn with(order: &DebugHeaderOrder) -> Overlay {
    let mut overlay = overlay_of("9.0").clone();
    overlay.section.debug_header = Some(order.clone());
    overlay
}

/// A program with the tables of a release. The offsets increase, and all sizes are 4096.
fn of_release(order: &DebugHeaderOrder) -> Program {
    let mut program = Program::new(SHAPES[0]);
    let entry = |(i, e): (usize, &String)| -> (String, String, u64) {
        let (t, f) = e.split_once('.').unwrap();
        (t.into(), f.into(), if f == "SIZEOF" { 4096 } else { i as u64 })
    };
    let entries: Vec<_> = order.entries.iter().enumerate().map(entry).collect();
    let entries: Vec<_> = entries.iter().map(|(t, f, v)| (t.as_str(), f.as_str(), *v)).collect();
    let globals: Vec<_> =
        order.globals.iter().map(|g| (g.as_str(), if g == "moduleBaseAddress" { BASE.0 } else { BASE.0 + 0x7000 })).collect();
    program.tables(&entries, &globals);
    program
}

#[test]
fn tables_without_header_and_names_must_match_a_known_release() {
    let order = overlay_of("9.0").section.debug_header.as_ref().unwrap();
    let program = of_release(order);
    // Neither the header nor the names are captured.
    let tables_only = program.memory(&[TYPES..GLOBALS, GLOBALS..NAMES]);
    let header = by_content(&tables_only, &program.image()).unwrap().unwrap();
    assert_eq!(header.address, None);
    let whole = DebugHeader::of_tables(
        &program.memory(&[ALL]),
        Tables { types: BASE.plus(TYPES), globals: BASE.plus(GLOBALS) },
        None,
        header.found_by,
        &[overlay_of("9.0")],
    );
    assert_eq!(whole.as_ref(), Ok(&header));

    // Without its first entry, the order is not that of the tables.
    let shorter = DebugHeaderOrder { entries: order.entries[1..].to_vec(), ..order.clone() };
    let refused = DebugHeader::of_tables(
        &tables_only,
        Tables { types: BASE.plus(TYPES), globals: BASE.plus(GLOBALS) },
        None,
        "test",
        &[&with(&shorter)],
    );
    assert_eq!(refused, Err(DebugHeaderError::Nameless));
    // In the swapped order, equal names would have different addresses, so this order does not match either.
    let mut swapped = order.clone();
    swapped.entries.swap(3, 20);
    let refused = DebugHeader::of_tables(
        &tables_only,
        Tables { types: BASE.plus(TYPES), globals: BASE.plus(GLOBALS) },
        None,
        "test",
        &[&with(&swapped)],
    );
    assert_eq!(refused, Err(DebugHeaderError::Nameless));
}

/// A program with the tables of a release, filled with the values of its overlay.
fn measured(release: &str) -> Program {
    let overlay = overlay_of(release);
    let order = overlay.section.debug_header.as_ref().unwrap();
    let mut program = Program::new(SHAPES[0]);
    let value = |type_name: &str, field: &str| {
        let layout = &overlay.raw.types.iter().find(|t| t.0 == type_name)?.1;
        if field == "SIZEOF" { layout.size } else { layout.fields.iter().find(|f| f.0 == field).map(|f| f.1) }
    };
    let split = |e: &'static String| e.split_once('.').unwrap();
    // Values for types that the overlay does not describe. The size is large, because offsets must be within the size.
    let default = |field: &str| if field == "SIZEOF" { 4096 } else { 1 };
    let entries: Vec<_> = order.entries.iter().map(split).map(|(t, f)| (t, f, value(t, f).unwrap_or(default(f)))).collect();
    let globals: Vec<_> =
        order.globals.iter().map(|g| (g.as_str(), if g == "moduleBaseAddress" { BASE.0 } else { BASE.0 + 0x7000 })).collect();
    program.header(u8::try_from(order.major).unwrap(), 1);
    program.tables(&entries, &globals);
    program
}

#[allow(clippy::single_range_in_vec_init)]
#[test]
fn each_release_has_the_layouts_that_were_measured_on_it() {
    // Columns: release, offset of the link to the next thread, offset of the exception tracker, offset of the GC's allocation context in the VM's
    // context, flag of types with references.
    let releases = [("8.0", 88, 128, 0, Some(0x20_0000)), ("9.0", 88, 128, 0, None), ("10.0", 96, 120, 8, None)];
    for (release, next, tracker, context, flag) in releases {
        let program = measured(release);
        // The captured parts: everything; without the header; without the header and the names; without the names.
        let parts: [&[std::ops::Range<u64>]; 4] =
            [&[ALL], &[TYPES..END], &[TYPES..GLOBALS, GLOBALS..NAMES], &[HEADER..TYPES, TYPES..GLOBALS, GLOBALS..NAMES]];
        for captured in parts {
            let memory = program.memory(captured);
            let header = by_content(&memory, &program.image()).unwrap().unwrap_or_else(|e| panic!("{release} {captured:?}: {e}"));
            let mut d = Descriptor::default();
            let (_, used) = describe(&mut d, &memory, &header);
            assert_eq!(used.unwrap().section.runtime.as_deref(), Some(release), "{captured:?}");
            assert_eq!(d.native_aot_release(), Some(release), "{captured:?}");
            let thread = |field| d.offset("Thread", field);
            assert_eq!((thread("LinkNext"), thread("ExceptionTracker"), thread("OSId")), (Ok(next), Ok(tracker), Ok(184)), "{release}");
            assert_eq!((thread("ThreadLocalStatics"), thread("InlinedThreadLocalStatics")), (Ok(144), Ok(152)), "{release}");
            assert_eq!(d.offset("RuntimeThreadLocals", "AllocContext"), Ok(0), "{release}");
            assert_eq!(d.offset("EEAllocContext", "GCAllocationContext").unwrap_or(0), context, "{release}");
            assert_eq!(d.number("MethodTableHasPointersFlag").ok(), flag, "{release}");
        }
    }
}

#[test]
fn measured_fields_are_added_only_to_net_11_descriptors_that_agree() {
    let memory = Program::new(SHAPES[0]).memory(&[ALL]);
    let with_next = |next: u64| {
        let json = format!(
            r#"{{"version": 2, "baseline": "empty", "types": {{"Thread": {{"LinkNext": {next}, "OSId": 176}},
                "ExInfo": {{"ThrownObject": 16}}}}, "globals": {{}}, "contracts": {{"Thread": "n1", "RuntimeTypeSystem": "n1", "Object": "n1"}}}}"#
        );
        let mut d = Descriptor::default();
        let origin = d.add_origin(Origin { kind: OriginKind::InMemory, name: "descriptor".into(), address: None, version: 2 });
        d.merge(&parse(json.as_bytes()).unwrap(), origin, |_| None);
        complete(&mut d, &memory);
        d
    };
    let d = with_next(96);
    assert_eq!((d.offset("Thread", "ThreadLocalStatics"), d.offset("Thread", "InlinedThreadLocalStatics")), (Ok(136), Ok(144)));
    assert_eq!((d.offset("Exception", "_message"), d.offset("InlinedThreadStaticRoot", "Next")), (Ok(8), Ok(8)));
    assert_eq!((d.native_aot_release(), d.contract("Object").as_deref()), (Some("11.0"), Some("n1")));
    // If the thread has a different layout, the release is unknown.
    let other = with_next(104);
    assert!(other.offset("Thread", "ThreadLocalStatics").is_err() && other.type_info("Exception").is_err());
    assert_eq!((other.native_aot_release(), other.offset("String", "m_FirstChar")), (None, Ok(12)));
}

#[test]
fn the_crash_report_is_found_without_a_pointer_to_it() {
    let json = r#"{"version":"1.0.0","runtime_base":"0x400000","runtime_type":"4","runtime_version":"11.0.0","reason":"1","thread":"0xE4F","message":"m"}"#;
    let image = |text: &[u8]| {
        let mut program = Program::new(SHAPES[0]);
        // Text that only begins like a report comes first.
        program.bytes[index(HEADER) + 0x10..][..13].copy_from_slice(b"{\"version\":\"x");
        program.bytes[index(HEADER) + 0x100..][..text.len()].copy_from_slice(text);
        (program.memory(&[ALL]), program.image())
    };
    let mut d = Descriptor::default();
    let (memory, found) = image(json.as_bytes());
    assert_eq!(report(&memory, &d, Some(&found)), None, "not a NativeAOT program");
    let raw = parse(br#"{"version": 2, "types": {}, "globals": {}, "contracts": {"RuntimeTypeSystem": "n1"}}"#).unwrap();
    d.merge(&raw, 0, |_| None);
    let crash = report(&memory, &d, Some(&found)).unwrap();
    assert_eq!((crash.reason.as_deref(), crash.thread, crash.message.as_deref()), (Some("unhandled exception"), Some(0xe4f), Some("m")));
    let (memory, other) = image(br#"{"version":"1.0.0"}"#);
    assert_eq!(report(&memory, &d, Some(&other)), None, "any other JSON");
}

#[test]
fn the_version_is_confirmed_by_two_attributes() {
    let image = |text: &str| {
        let mut program = Program::new(SHAPES[0]);
        program.bytes[0x100..][..text.len()].copy_from_slice(text.as_bytes());
        version(&program.memory(&[ALL]), &program.image())
    };
    let commit = "3879076d9a06ce098d37c3882fb1845a6627335b";
    assert_eq!(image(&format!("\0^9.0.20+{commit}\0\09.0.2026.41315\0")), Some("9.0.20".into()));
    assert_eq!(image(&format!("\01.2.3+{commit}\0\0^9.0.20+{commit}\0 9.0.2026.41315\0")), Some("9.0.20".into()));
    assert_eq!(image(&format!("\01.2.3+{commit}\0")), None, "the version of the program only");
    assert_eq!(image("\09.0.2026.41315\0"), None);
}

proptest::proptest! {
    #[test]
    fn damaged_headers_do_not_panic_and_rows_are_read_in_any_order(
        which in 0usize..4,
        damage in proptest::collection::vec((proptest::prelude::any::<u16>(), proptest::prelude::any::<u8>()), 0..12),
        swaps in proptest::collection::vec((0u64..6, 0u64..6), 0..4),
    ) {
        let shape = SHAPES[which];
        let mut program = Program::new(shape);
        let flags = program.flags();
        program.header(4, flags);
        program.tables(&ENTRIES, &[("g_pTheRuntimeInstance", 0x1234_5678), ("g_gcDacGlobals", 0x40_7000)]);
        let row = 2 * shape.ptr.bytes() + 8;
        for (a, b) in swaps {
            (0..row).for_each(|i| program.bytes.swap(index(TYPES + a * row + i), index(TYPES + b * row + i)));
        }
        let undamaged = damage.is_empty();
        for (at, value) in damage {
            // Damage the header, either table or the names.
            program.bytes[index([HEADER, TYPES, GLOBALS, NAMES][usize::from(at % 4)]) + usize::from(at / 4 % 256)] = value;
        }
        let memory = program.memory(&[ALL]);
        let found = by_content(&memory, &program.image());
        if let Some(Ok(header)) = &found {
            let _ = describe(&mut Descriptor::default(), &memory, header);
        }
        // Names identify the rows, in any order.
        if undamaged {
            let header = found.unwrap().unwrap();
            proptest::prop_assert_eq!((header.offset("ThreadBuffer", "m_threadId"), header.size("ThreadStore")), (Some(60), Some(56)));
        }
    }
}
