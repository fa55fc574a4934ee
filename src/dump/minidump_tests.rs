//! Tests with minidumps that are built byte by byte.

use super::super::elf_core::tests::{BE, LE, put};
use super::*;

/// Builds minidumps byte by byte.
pub(in crate::dump) struct Mini {
    endian: Endian,
    streams: Vec<(u32, Vec<u8>)>,
    /// Bytes that streams refer to, placed at [`Mini::EXTRA`].
    extra: Vec<u8>,
}

impl Mini {
    const EXTRA: usize = 0x1000;

    pub(in crate::dump) fn new(endian: Endian, processor: u64) -> Mini {
        let mut mini = Mini { endian, streams: Vec::new(), extra: Vec::new() };
        let mut system = Vec::new();
        put(&mut system, endian, processor, 2);
        system.resize(20, 0);
        put(&mut system, endian, 2, 4);
        system.resize(56, 0);
        mini.streams.push((stream::SYSTEM, system));
        mini
    }

    fn extra(&mut self, bytes: &[u8]) -> u64 {
        let at = (Self::EXTRA + self.extra.len()) as u64;
        self.extra.extend_from_slice(bytes);
        at
    }

    /// Adds a stream of type `kind` with these fields: *(value, size in bytes)*.
    pub(in crate::dump) fn stream(&mut self, kind: u32, fields: &[(u64, usize)]) {
        let mut out = Vec::new();
        for (value, len) in fields {
            put(&mut out, self.endian, *value, *len);
        }
        self.streams.push((kind, out));
    }

    fn string(&mut self, text: &str) -> u64 {
        let mut out = Vec::new();
        put(&mut out, self.endian, text.len() as u64 * 2, 4);
        for c in text.encode_utf16() {
            put(&mut out, self.endian, c.into(), 2);
        }
        self.extra(&out)
    }

    pub(in crate::dump) fn build(&self, tail: &[u8]) -> Vec<u8> {
        let endian = self.endian;
        let mut out = if endian == LE { b"MDMP".to_vec() } else { b"PMDM".to_vec() };
        for v in [0xa793, self.streams.len() as u64, 32, 0, 0x6b01_2807] {
            put(&mut out, endian, v, 4);
        }
        put(&mut out, endian, 0x4_1826, 8);
        let mut at = 32 + 12 * self.streams.len() as u64;
        for (kind, data) in &self.streams {
            for v in [u64::from(*kind), data.len() as u64, at] {
                put(&mut out, endian, v, 4);
            }
            at += data.len() as u64;
        }
        for (_, data) in &self.streams {
            out.extend_from_slice(data);
        }
        assert!(out.len() <= Self::EXTRA);
        out.resize(Self::EXTRA, 0);
        out.extend_from_slice(&self.extra);
        out.resize(0x2000, 0);
        out.extend_from_slice(tail);
        out
    }
}

/// A minidump with one of each stream that the reader knows, and 0x180 bytes of memory at its end.
pub(in crate::dump) fn small_mini(endian: Endian) -> Vec<u8> {
    let mut mini = Mini::new(endian, 9);
    let name = mini.string("C:\\app\\lab.exe");
    let thread_name = mini.string("main");
    let mut rsds = Vec::new();
    put(&mut rsds, endian, 0x5344_5352, 4);
    rsds.extend(1..=20);
    rsds.extend_from_slice(b"lab.pdb\0");
    let record = mini.extra(&rsds);
    let mut context = vec![0; 0x30];
    put(&mut context, endian, 0x10_000b, 4);
    context.resize(0x78, 0);
    for n in 0..17u64 {
        put(&mut context, endian, 0x1000 + n, 8);
    }
    context.resize(0x4d0, 0);
    let context = mini.extra(&context);
    let mut module = vec![(1, 4), (0x40_0000, 8), (0x5000, 4), (0, 4), (0x1234_5678, 4), (name, 4)];
    module.extend([(0xfeef_04bd, 4), (0x1_0000, 4), (0x000a_0000, 4), (0x04ca_a51c, 4), (0, 8), (0, 8), (0, 8), (0, 8), (0, 4)]);
    module.extend([(rsds.len() as u64, 4), (record, 4), (0, 8), (0, 8), (0, 8)]);
    mini.stream(stream::MODULES, &module);
    let thread = [(1, 4), (77, 4), (0, 4), (0, 4), (0, 4), (0x7000, 8), (0x8000, 8), (0x100, 4), (0x2000, 4), (0x4d0, 4), (context, 4)];
    mini.stream(stream::THREADS, &thread);
    mini.stream(stream::THREAD_NAMES, &[(1, 4), (77, 4), (thread_name, 8)]);
    mini.stream(stream::MISC, &[(24, 4), (1, 4), (4711, 4), (0, 4), (0, 8)]);
    let mut exception = vec![(77, 4), (0, 4), (0xc000_0005, 4), (0, 4), (0, 8), (0x1010, 8), (2, 4), (0, 4), (1, 8), (0xbad, 8)];
    exception.extend([(0, 8); 13]);
    exception.extend([(0x4d0, 4), (context, 4)]);
    mini.stream(stream::EXCEPTION, &exception);
    mini.stream(stream::MEMORY64, &[(3, 8), (0x2000, 8), (0x1_0000, 8), (0x80, 8), (0x9_0000, 8), (0, 8), (0x2_0000, 8), (0x80, 8)]);
    mini.stream(stream::MEMORY, &[(1, 4), (0x3_0000, 8), (0x80, 4), (0x2100, 4)]);
    let mut info = vec![(16, 4), (48, 4), (2, 8)];
    info.extend([(0x1_0000, 8), (0, 8), (0, 8), (0x2000, 8), (0x1000, 4), (0x20, 4), (0, 8)]);
    info.extend([(0x5_0000, 8), (0, 8), (0, 8), (0x2000, 8), (0x1_0000, 4), (1, 4), (0, 8)]);
    mini.stream(stream::MEMORY_INFO, &info);
    mini.build(&[0x33; 0x180])
}

fn open(bytes: Vec<u8>) -> Result<DumpFile, DumpError> {
    read(Arc::new(Bytes::Owned(bytes)), Path::new("test.dmp"), &Limits::default())
}

#[test]
fn reads_both_byte_orders() {
    for endian in [LE, BE] {
        let dump = open(small_mini(endian)).unwrap();
        let facts = &dump.facts;
        assert_eq!(facts.oddities, Vec::<String>::new());
        assert_eq!((facts.arch, facts.os), (Arch::X64, Os::Windows));
        assert_eq!(facts.shape, Some(Shape { ptr: PtrSize::Eight, endian }));
        assert_eq!((facts.pid, facts.process_name.as_deref()), (Some(4711), Some("lab.exe")));
        assert_eq!((facts.time, facts.minidump_flags), (Some(0x6b01_2807), Some(0x4_1826)));
        let ranges: Vec<_> = dump.ranges.iter().map(|r| (r.start.0, r.len, r.offset)).collect();
        assert_eq!(ranges, [(0x1_0000, 0x80, 0x2000), (0x2_0000, 0x80, 0x2080), (0x3_0000, 0x80, 0x2100)]);
        assert_eq!((facts.captured_bytes, facts.mapped_bytes, facts.truncated_bytes), (0x180, Some(0x2000), 0));
        assert_eq!(dump.regions.len(), 1);
        assert!(dump.regions[0].read && dump.regions[0].execute && !dump.regions[0].write);
        let module = &dump.modules[0];
        assert_eq!((module.path.as_str(), module.base.0, module.size), ("C:\\app\\lab.exe", 0x40_0000, 0x5000));
        assert_eq!((module.timestamp, module.version), (Some(0x1234_5678), Some([10, 0, 1226, 42268])));
        assert_eq!(module.build_id, Some((1..=20).collect()));
        let thread = &dump.threads[0];
        assert_eq!((thread.id, thread.name.as_deref(), thread.registers.len()), (77, Some("main"), 16));
        assert_eq!((thread.instruction_pointer, thread.stack_pointer), (Some(Addr(0x1010)), Some(Addr(0x1004))));
        let order = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
        assert!(thread.registers.iter().zip(order).zip(0x1000..).all(|((r, name), value)| (r.name, r.value) == (name, value)));
        assert_eq!((thread.teb, thread.stack.map(|s| s.len())), (Some(Addr(0x7000)), Some(0x100)));
        let crash = dump.crash.unwrap();
        assert_eq!((crash.thread, crash.address, crash.parameters), (Some(77), Some(Addr(0xbad)), vec![1, 0xbad]));
        assert_eq!(crash.name, "0xc0000005 (access violation)");
    }
}

#[test]
fn truncated_memory_is_clamped() {
    let bytes = small_mini(LE);
    let cut = open(bytes[..0x20c0].to_vec()).unwrap();
    assert_eq!(cut.ranges.iter().map(|r| r.len).collect::<Vec<_>>(), [0x80, 0x40]);
    assert_eq!(cut.facts.truncated_bytes, 0xc0);
    assert_eq!(cut.modules.len(), 1);
    // Both memory lists declare more ranges than their streams contain.
    let mut mini = Mini::new(LE, 9);
    mini.stream(stream::MEMORY64, &[(u64::MAX, 8), (0x2000, 8), (0x1_0000, 8), (0x80, 8)]);
    mini.stream(stream::MEMORY, &[(u64::from(u32::MAX), 4), (0x1_0040, 8), (0x80, 4), (0x2000, 4)]);
    let dump = open(mini.build(&[0; 0x100])).unwrap();
    assert_eq!(dump.ranges.len(), 2);
    assert_eq!(dump.facts.oddities.len(), 3, "{:?}", dump.facts.oddities);
    assert!(dump.facts.oddities[2].contains("a captured range overlaps others"));
}

#[test]
fn sign_extended_addresses_lose_their_sign() {
    let mut mini = Mini::new(LE, 0);
    mini.stream(stream::MEMORY64, &[(1, 8), (0x2000, 8), (0xffff_ffff_f000_0000, 8), (0x80, 8)]);
    let dump = open(mini.build(&[0; 0x80])).unwrap();
    assert_eq!((dump.facts.arch, dump.ranges[0].start), (Arch::X86, Addr(0xf000_0000)));
}

#[test]
fn truncated_header_and_directory() {
    let bytes = small_mini(LE);
    assert!(matches!(open(bytes[..20].to_vec()), Err(DumpError::Truncated { .. })));
    assert!(matches!(open(bytes[..40].to_vec()), Err(DumpError::Truncated { .. })));
    let dump = open(bytes[..50].to_vec()).unwrap();
    assert!(dump.ranges.is_empty() && dump.facts.shape.is_none());
    assert!(!dump.facts.oddities.is_empty());
}

#[test]
fn an_empty_exception_is_not_a_crash() {
    for (code, crash) in [(0, false), (0xe043_4352, true), (0x1234, true)] {
        let mut mini = Mini::new(LE, 9);
        let mut exception = vec![(1, 4), (0, 4), (code, 4), (0, 4), (0, 8), (0, 8), (99, 4), (0, 4)];
        exception.extend([(0, 8); 16]);
        mini.stream(stream::EXCEPTION, &exception);
        let found = open(mini.build(&[])).unwrap().crash;
        assert_eq!(found.is_some(), crash);
        assert!(found.is_none_or(|c| c.parameters.len() == 15));
    }
}

#[test]
fn the_last_event_of_a_debugger_is_not_a_crash() {
    let found = |code: u64, at: u64, path: &str| {
        let mut mini = Mini::new(LE, 9);
        let name = mini.string(path);
        let mut module = vec![(1, 4), (0x40_0000, 8), (0x5000, 4), (0, 4), (0, 4), (name, 4)];
        module.extend([(0, 4); 21]);
        mini.stream(stream::MODULES, &module);
        let mut exception = vec![(1, 4), (0, 4), (code, 4), (0, 4), (0, 8), (at, 8), (1, 4), (0, 4)];
        exception.extend([(0, 8); 16]);
        mini.stream(stream::EXCEPTION, &exception);
        open(mini.build(&[])).unwrap()
    };
    let ntdll = "C:\\Windows\\System32\\NTDLL.dll";
    for (code, at, path) in [(0x8000_0003, 0x40_1000, ntdll), (0x4000_001f, 0x40_1000, ntdll), (0x8000_0004, 0x90_0000, ntdll)] {
        let dump = found(code, at, path);
        assert_eq!(dump.crash, None, "{code:#x}");
        assert!(dump.facts.oddities.iter().any(|o| o.contains("a debugger wrote the dump")), "{:?}", dump.facts.oddities);
    }
    // A breakpoint of the program, and other exceptions within ntdll.
    for (code, at, path) in
        [(0x8000_0003, 0x40_1000, "C:\\app\\native.dll"), (0x8000_0003, 0x90_0000, ntdll), (0xc000_0374, 0x40_1000, ntdll)]
    {
        let dump = found(code, at, path);
        assert_eq!(dump.crash.map(|c| (u64::from(c.code), c.address)), Some((code, Some(Addr(at)))));
        assert_eq!(dump.facts.oddities, Vec::<String>::new());
    }
}

#[test]
fn a_shared_long_string_is_not_multiplied() {
    let mut mini = Mini::new(LE, 9);
    let count = 30u64;
    let long = mini.string(&"x".repeat(1500));
    let mut modules = vec![(count, 4)];
    for i in 0..count {
        modules.extend([(i << 20, 8), (0x1000, 4), (0, 4), (0, 4), (long, 4)]);
        modules.extend([(0, 4); 21]);
    }
    mini.stream(stream::MODULES, &modules);
    let limits = Limits { string_bytes: 100, ..Limits::default() };
    let bytes = Arc::new(Bytes::Owned(mini.build(&[])));
    let dump = read(bytes, Path::new("test.dmp"), &limits).unwrap();
    assert_eq!(dump.modules.len(), 30);
    assert!(dump.modules.iter().all(|m| m.path.len() == 50 && m.version.is_none() && m.build_id.is_none()));
}
