//! Tests which module files are used, and which pages of a module file fill gaps.

use super::*;

/// A system library with a build ID, and a dump that contains only the first page of its image.
fn library() -> Option<(PathBuf, Memory, Image, Module)> {
    let path =
        ["/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libc.so.6", "/lib64/libc.so.6"].iter().map(PathBuf::from).find(|p| p.is_file())?;
    let bytes = Arc::new(Bytes::map_path(&path).unwrap());
    let base = Addr(0x7f00_0000_0000);
    let mut memory = Memory::empty(Shape::LE64);
    memory.fill_gaps(AddrRange::of(base, 4096), &bytes, 0);
    let image = Image::at(&memory, base)?;
    let module = Module { path: path.display().to_string(), base, size: image.range.len(), timestamp: None, version: None, build_id: None };
    image.build_id.is_some().then_some((path, memory, image, module))
}

#[test]
fn a_matching_file_fills_read_only_pages_and_unmodified_writable_ones() {
    let Some((path, memory, image, module)) = library() else { return println!("skipped: no libc with a build id") };
    let search = FileSearch { modules: vec![path.parent().unwrap().into()], ..FileSearch::default() };
    let writable: u64 = image.writable.iter().map(AddrRange::len).sum();
    let missing = |m: &Memory| image.writable.iter().map(|r| r.len() - m.captured(*r)).sum::<u64>();
    let fill = |clean| {
        let mut m = Memory::of(memory.shape, memory.sources.clone(), memory.pieces.clone());
        let filled = fill_module(&mut m, &module, Some(&image), &search, Os::Linux, clean);
        assert!(filled.file.is_some() && filled.bytes > 500_000, "{filled:?}");
        (m, filled)
    };
    let (guarded, _) = fill(DataPages::Absent);
    let (clean, _) = fill(DataPages::Unchanged);
    // RELRO is filled in both cases, `.data` only with `DataPages::Unchanged`, `.bss` never.
    assert!(missing(&guarded) > 0 && missing(&guarded) < writable);
    assert!(missing(&clean) > 0 && missing(&clean) < missing(&guarded));
    let dynamic = image.exports.unwrap();
    assert!(image.export(&clean, "malloc").is_some() && clean.has(dynamic.start));
    // After relocation, pointers in RELRO point into the image at its load address.
    let relro = image.writable[0].start;
    let inside = (0..64).filter_map(|i| clean.ptr(relro.element(i, 8)).ok()).filter(|p| image.range.contains(*p)).count();
    assert!(inside > 8, "{inside}");
}

/// If the dump does not have the headers of an image, the relocated pointers in RELRO show whether a file is the right one.
#[test]
fn contents_prove_a_file_without_headers_in_the_dump() {
    let Some((path, memory, image, module)) = library() else { return println!("skipped: no libc with a build id") };
    let search = FileSearch { modules: vec![path.parent().unwrap().into()], ..FileSearch::default() };
    let mut whole = Memory::of(memory.shape, memory.sources.clone(), memory.pieces.clone());
    assert!(fill_module(&mut whole, &module, Some(&image), &search, Os::Linux, DataPages::Unchanged).file.is_some());
    let relro = image.writable[0];
    let captured = AddrRange::new(relro.start, relro.start.align_down(PAGE).plus(2 * PAGE));
    let with = |bytes: Vec<u8>| {
        let mut memory = Memory::empty(Shape::LE64);
        memory.fill_gaps(captured, &Arc::new(Bytes::Owned(bytes)), 0);
        let filled = fill_module(&mut memory, &module, None, &search, Os::Linux, DataPages::Absent);
        let reason = filled.rejected.into_iter().find(|r| r.0 == path).map(|r| r.1);
        (filled.file.is_some(), reason, Image::at(&memory, module.base).and_then(|i| i.build_id))
    };
    let mut bytes = vec![0; usize::try_from(captured.len()).unwrap()];
    // Words with addresses in other images stay zero.
    for (at, part) in whole.stretches(captured) {
        let skip = usize::try_from(at.since(captured.start).unwrap()).unwrap();
        bytes[skip..skip + part.len()].copy_from_slice(part);
    }
    assert_eq!(with(bytes.clone()), (true, None, image.build_id.clone()));
    // A pointer that differs, as in another build, rejects the file. Without captured bytes, the file stays unverified.
    let pointer = (0..bytes.len() / 8).find(|i| whole.ptr(captured.start.element(*i as u64, 8)).is_ok_and(|p| image.range.contains(p)));
    bytes[pointer.unwrap() * 8] ^= 8;
    assert!(
        matches!(with(bytes), (false, Some(Rejected::Other(why)), None) if why.contains("it differs from what the process had loaded"))
    );
    let mut empty = Memory::empty(Shape::LE64);
    let filled = fill_module(&mut empty, &module, None, &search, Os::Linux, DataPages::Absent);
    assert!(filled.rejected.iter().any(|r| r.0 == path && matches!(&r.1, Rejected::Unverified(_))), "{filled:?}");
    // A minidump records the build ID in its module list.
    let recorded = Module { build_id: image.build_id.clone(), ..module };
    assert!(fill_module(&mut empty, &recorded, None, &search, Os::Linux, DataPages::Absent).file.is_some());
}

#[test]
fn a_file_with_another_build_id_is_rejected() {
    let Some((path, mut memory, mut image, module)) = library() else { return println!("skipped: no libc with a build id") };
    image.build_id = Some(vec![1, 2, 3]);
    let search = FileSearch { sysroot: Some("/".into()), ..FileSearch::default() };
    let filled = fill_module(&mut memory, &module, Some(&image), &search, Os::Linux, DataPages::Unchanged);
    assert_eq!((filled.file, filled.bytes), (None, 0));
    let is_other = |reason: &Rejected| matches!(reason, Rejected::Other(why) if why.contains("010203"));
    assert!(filled.rejected.iter().any(|r| r.0 == path && is_other(&r.1)), "{:?}", filled.rejected);
}

/// An ELF file with a read-only, a RELRO and a data segment. Each segment is larger in memory than in the file, and its contents in the file
/// end within a page. The only relocation, at `copied`, refers to a symbol, as copy relocations do.
fn small(copied: u64) -> Arc<Bytes> {
    let mut file = vec![0xeeu8; 0x3800];
    let mut put = |at: usize, n: u64, len: usize| file[at..at + len].copy_from_slice(&n.to_le_bytes()[..len]);
    put(0, 0x0001_0102_464c_457f, 8);
    put(32, 64, 8);
    put(54, 56, 2);
    // (type, flags, offset, address, size in the file, size in memory)
    let headers: [(u32, u32, u64, u64, u64, u64); 6] = [
        (PT_LOAD, 4, 0, 0, 0x800, 0x900),
        (PT_LOAD, 4 | PF_W, 0x1000, 0x1000, 0x800, 0x1000),
        (PT_GNU_RELRO, 4, 0x1000, 0x1000, 0x800, 0x1000),
        (PT_LOAD, 4 | PF_W, 0x2000, 0x2000, 0x800, 0x2000),
        (2, 4, 0x400, 0x400, 0x40, 0x40),
        (4, 4, 0x500, 0x500, 0x20, 0x20),
    ];
    put(56, u64::try_from(headers.len()).unwrap(), 2);
    for (i, (kind, flags, offset, address, in_file, in_memory)) in headers.into_iter().enumerate() {
        let at = 64 + i * 56;
        put(at, u64::from(kind) | u64::from(flags) << 32, 8);
        [(8, offset), (16, address), (32, in_file), (40, in_memory)].iter().for_each(|(field, n)| put(at + field, *n, 8));
    }
    [(DT_RELA, 0x600), (DT_RELA_SIZE, 24), (0, 0)].iter().enumerate().for_each(|(i, (tag, n))| {
        put(0x400 + i * 16, *tag, 8);
        put(0x408 + i * 16, *n, 8);
    });
    // The note with the build ID, then the relocation.
    [(0x500, 4, 4), (0x504, 4, 4), (0x508, 3, 4), (0x50c, 0x0055_4e47, 4), (0x510, 7, 4)]
        .iter()
        .for_each(|(at, n, len)| put(*at, *n, *len));
    [(0x600, copied), (0x608, 1 << 32 | 5), (0x610, 0)].iter().for_each(|(at, n)| put(*at, *n, 8));
    Arc::new(Bytes::Owned(file))
}

#[test]
fn the_end_of_a_page_is_zero_if_the_loader_zeroed_it_and_nothing_wrote_to_it() {
    let base = Addr(0x7f00_0000_0000);
    let module = Module { path: "/app/small.so".into(), base, size: 0x3000, timestamp: None, version: None, build_id: None };
    let memory_with = |copied: u64, data: DataPages| {
        let file = small(copied);
        let mut memory = Memory::empty(Shape::LE64);
        memory.fill_gaps(AddrRange::of(base, 0x800), &file, 0);
        let image = Image::at(&memory, base).unwrap();
        fill_elf(&mut memory, &module, Some(&image), &file, data).unwrap();
        memory
    };
    let filled = |copied: u64, data: DataPages| {
        let memory = memory_with(copied, data);
        move |at: u64| memory.u8(base.plus(at)).ok()
    };
    // Zeros are supplied up to the end of the read-only segment, and in RELRO up to the end of the page.
    let of_file = filled(0x1700, DataPages::Absent);
    assert_eq!([0x7ff, 0x800, 0x8ff, 0x900].map(&of_file), [Some(0xee), Some(0), Some(0), None]);
    assert_eq!([0x17ff, 0x1800, 0x1fff].map(&of_file), [Some(0xee), Some(0), Some(0)]);
    // The loader has set the word of the relocation to an address in another image.
    assert_eq!([0x16ff, 0x1700, 0x1707, 0x1708].map(&of_file), [Some(0xee), None, None, Some(0xee)]);
    // The data segment stays missing with `DataPages::Absent`. With `Unchanged`, only the bytes in the file are supplied, without `.bss`.
    assert_eq!([0x2000, 0x27ff, 0x2800, 0x2fff, 0x3000].map(&of_file), [None; 5]);
    let clean = filled(0x1700, DataPages::Unchanged);
    assert_eq!([0x2000, 0x27ff, 0x2800, 0x2fff, 0x3000].map(clean), [Some(0xee), Some(0xee), None, None, None]);
    // Bytes that the process may have changed are marked as initial: in the data segment, but not in RELRO.
    let initial = |data: DataPages| {
        let memory = memory_with(0x1700, data);
        [0x7ff, 0x17ff, 0x2000, 0x27ff, 0x2800].map(|at| memory.is_initial(base.plus(at)))
    };
    assert_eq!(initial(DataPages::Initial), [false, false, true, true, false]);
    assert_eq!([DataPages::Unchanged, DataPages::Absent].map(initial), [[false; 5]; 2]);
    // With a copy relocation at 0x1900, the tail of RELRO is not known to be zero.
    let copy = filled(0x1900, DataPages::Absent);
    assert_eq!([0x8ff, 0x17ff, 0x1800, 0x1fff].map(copy), [Some(0), Some(0xee), None, None]);
}
