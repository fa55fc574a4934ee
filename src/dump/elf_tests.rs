//! Tests with ELF cores that are built byte by byte.

use super::*;

/// Builds ELF cores byte by byte.
pub(in crate::dump) struct Core {
    pub(in crate::dump) shape: Shape,
    pub(in crate::dump) machine: u16,
    /// (type, flags, address, size in memory, bytes in the file)
    pub(in crate::dump) segments: Vec<(u32, u32, u64, u64, Vec<u8>)>,
}

pub(in crate::dump) const LE: Endian = Endian::Little;
pub(in crate::dump) const BE: Endian = Endian::Big;

pub(in crate::dump) fn put(out: &mut Vec<u8>, endian: Endian, value: u64, len: usize) {
    match endian {
        Endian::Little => out.extend_from_slice(&value.to_le_bytes()[..len]),
        Endian::Big => out.extend_from_slice(&value.to_be_bytes()[8 - len..]),
    }
}

impl Core {
    pub(in crate::dump) fn new(ptr: PtrSize, endian: Endian, machine: u16) -> Core {
        Core { shape: Shape { ptr, endian }, machine, segments: Vec::new() }
    }

    pub(in crate::dump) fn word(&self, out: &mut Vec<u8>, value: u64) {
        put(out, self.shape.endian, value, usize::try_from(self.shape.ptr.bytes()).unwrap());
    }

    pub(in crate::dump) fn note(&self, name: &[u8], kind: u32, desc: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for n in [name.len() as u64, desc.len() as u64, u64::from(kind)] {
            put(&mut out, self.shape.endian, n, 4);
        }
        out.extend_from_slice(name);
        out.resize(out.len().next_multiple_of(4), b'!');
        out.extend_from_slice(desc);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    /// An NT_PRSTATUS note, in which register n has the value 0x1000 + n.
    pub(in crate::dump) fn prstatus(&self, tid: u64, signal: u64, registers: u64) -> Vec<u8> {
        let (pid_at, registers_at) = if self.shape.ptr == PtrSize::Four { (24, 72) } else { (32, 112) };
        let mut desc = vec![0; 12];
        put(&mut desc, self.shape.endian, signal, 2);
        desc.resize(pid_at, 0);
        put(&mut desc, self.shape.endian, tid, 4);
        desc.resize(registers_at, 0);
        for n in 0..registers {
            self.word(&mut desc, 0x1000 + n);
        }
        self.note(b"CORE\0", 1, &desc)
    }

    pub(in crate::dump) fn files(&self, page: u64, list: &[(u64, u64, u64, &str)]) -> Vec<u8> {
        let mut desc = Vec::new();
        self.word(&mut desc, list.len() as u64);
        self.word(&mut desc, page);
        for (start, end, offset, _) in list {
            for v in [*start, *end, *offset] {
                self.word(&mut desc, v);
            }
        }
        for (.., name) in list {
            desc.extend_from_slice(name.as_bytes());
            desc.push(0);
        }
        self.note(b"CORE\0", 0x4649_4c45, &desc)
    }

    pub(in crate::dump) fn siginfo(&self, signal: u64, code: u64, address: u64) -> Vec<u8> {
        let mut desc = Vec::new();
        for v in [signal, 0, code] {
            put(&mut desc, self.shape.endian, v, 4);
        }
        if self.shape.ptr == PtrSize::Eight {
            desc.resize(16, 0);
        }
        self.word(&mut desc, address);
        desc.resize(128, 0);
        self.note(b"CORE\0", 0x5349_4749, &desc)
    }

    pub(in crate::dump) fn build(&self) -> Vec<u8> {
        let wide = self.shape.ptr == PtrSize::Eight;
        let endian = self.shape.endian;
        let (header, entry, section) = if wide { (64u64, 56u64, 64u64) } else { (52, 32, 40) };
        let count = self.segments.len() as u64;
        let xnum = count >= 0xffff;
        // Section header 0 directly follows the ELF header, as createdump writes it.
        let table = header + if xnum { section } else { 0 };
        let mut out = vec![0x7f, b'E', b'L', b'F', if wide { 2 } else { 1 }, if endian == LE { 1 } else { 2 }, 1];
        out.resize(16, 0);
        put(&mut out, endian, 4, 2);
        put(&mut out, endian, u64::from(self.machine), 2);
        put(&mut out, endian, 1, 4);
        self.word(&mut out, 0);
        self.word(&mut out, table);
        self.word(&mut out, if xnum { header } else { 0 });
        put(&mut out, endian, 0, 4);
        for v in [header, entry, count.min(0xffff), section, u64::from(xnum), 0] {
            put(&mut out, endian, v, 2);
        }
        assert_eq!(out.len() as u64, header);
        if xnum {
            let mut info = vec![0; if wide { 44 } else { 28 }];
            put(&mut info, endian, count, 4);
            info.resize(usize::try_from(section).unwrap(), 0);
            out.extend_from_slice(&info);
        }
        let mut data_at = table + count * entry;
        for (kind, flags, address, memory, data) in &self.segments {
            put(&mut out, endian, u64::from(*kind), 4);
            if wide {
                put(&mut out, endian, u64::from(*flags), 4);
            }
            self.word(&mut out, data_at);
            self.word(&mut out, *address);
            self.word(&mut out, 0);
            self.word(&mut out, data.len() as u64);
            self.word(&mut out, *memory);
            if !wide {
                put(&mut out, endian, u64::from(*flags), 4);
            }
            self.word(&mut out, 0x1000);
            data_at += data.len() as u64;
        }
        for (.., data) in &self.segments {
            out.extend_from_slice(data);
        }
        out
    }
}

/// A core with one of each note and segment that the reader knows.
pub(in crate::dump) fn small_core(ptr: PtrSize, endian: Endian, machine: u16) -> Vec<u8> {
    let mut core = Core::new(ptr, endian, machine);
    let mut prpsinfo = vec![0; if ptr == PtrSize::Eight { 24 } else { 12 }];
    put(&mut prpsinfo, endian, 4711, 4);
    prpsinfo.resize(if ptr == PtrSize::Eight { 40 } else { 28 }, 0);
    prpsinfo.extend_from_slice(b"app\0");
    prpsinfo.resize(if ptr == PtrSize::Eight { 136 } else { 124 }, 0);
    let mut auxv = Vec::new();
    for v in [9, 0x1234, 0, 0] {
        core.word(&mut auxv, v);
    }
    let mut notes = core.note(b"CORE\0", 3, &prpsinfo);
    notes.extend(core.note(b"LINUX\0", 0x202, &[1, 2, 3]));
    notes.extend(core.note(b"CORE\0", 6, &auxv));
    let files = [(0x1_0000, 0x1_2000, 0, "/app/lib.so (deleted)"), (0x1_2000, 0x1_3000, 2, "/app/lib.so (deleted)")];
    notes.extend(core.files(0x1000, &files));
    notes.extend(core.prstatus(4711, 11, 40));
    notes.extend(core.siginfo(11, 1, 0xdead));
    notes.extend(core.prstatus(4712, 0, 40));
    core.segments.push((4, 0, 0, 0, notes));
    core.segments.push((1, 5, 0x1_0000, 0x3000, vec![0x11; 0x40]));
    core.segments.push((1, 6, 0x4_0000, 0x1000, Vec::new()));
    core.segments.push((1, 6, 0x8_0000, 0x80, vec![0x22; 0x80]));
    core.build()
}

fn open(bytes: Vec<u8>) -> Result<DumpFile, DumpError> {
    read(Arc::new(Bytes::Owned(bytes)), Path::new("test.core"), &Limits::default())
}

#[test]
fn reads_all_shapes() {
    for (ptr, endian, machine, arch, registers) in [
        (PtrSize::Eight, LE, 62, Arch::X64, Some((0x1010, 0x1013, 16))),
        (PtrSize::Eight, LE, 183, Arch::Arm64, Some((0x1020, 0x101f, 32))),
        (PtrSize::Four, LE, 3, Arch::X86, Some((0x100c, 0x100f, 8))),
        (PtrSize::Four, LE, 40, Arch::Arm, Some((0x100f, 0x100d, 15))),
        (PtrSize::Four, BE, 20, Arch::Ppc, None),
        (PtrSize::Eight, BE, 22, Arch::S390x, None),
    ] {
        let dump = open(small_core(ptr, endian, machine)).unwrap();
        assert_eq!(dump.facts.oddities, Vec::<String>::new(), "{arch:?}");
        assert_eq!(dump.facts.shape, Some(Shape { ptr, endian }));
        assert_eq!((dump.facts.arch, dump.facts.os), (arch, Os::Linux));
        assert_eq!((dump.facts.pid, dump.facts.process_name.as_deref()), (Some(4711), Some("app")), "{arch:?}");
        assert_eq!((dump.facts.uncaptured_mappings, dump.facts.truncated_bytes), (1, 0));
        // The file contains 0x40 of the 0x3000 bytes; the rest is absent.
        assert_eq!(dump.ranges.iter().map(|r| (r.start.0, r.len)).collect::<Vec<_>>(), [(0x1_0000, 0x40), (0x8_0000, 0x80)]);
        assert_eq!(dump.bytes.range(dump.ranges[1].offset, 0x80).unwrap(), [0x22; 0x80]);
        assert_eq!(dump.regions.len(), 3);
        assert!(dump.regions[0].read && dump.regions[0].execute && !dump.regions[0].write);
        assert_eq!((dump.facts.captured_bytes, dump.facts.mapped_bytes), (0xc0, Some(0x4080)));
        assert_eq!(dump.files.len(), 2);
        assert_eq!((dump.files[1].file_offset, dump.files[1].path.as_str()), (0x2000, "/app/lib.so"));
        assert_eq!((dump.modules.len(), dump.modules[0].base.0, dump.modules[0].size), (1, 0x1_0000, 0x3000));
        assert_eq!(dump.auxv, [(9, 0x1234)]);
        assert_eq!(dump.threads.iter().map(|t| t.id).collect::<Vec<_>>(), [4711, 4712]);
        let first = &dump.threads[0];
        let found = first.instruction_pointer.zip(first.stack_pointer).map(|(i, s)| (i.0, s.0, first.registers.len()));
        assert_eq!(found, registers, "{arch:?}");
        // *(name, index in the kernel's `user_regs_struct`)*.
        let named = |name: &str| first.registers.iter().find(|r| r.name == name).map(|r| r.value);
        let places: &[(&str, u64)] = match arch {
            Arch::X64 => &[("r15", 0), ("rbp", 4), ("rbx", 5), ("rax", 10), ("rdi", 14), ("rsp", 19)],
            Arch::Arm64 => &[("x0", 0), ("x19", 19), ("fp", 29), ("lr", 30), ("sp", 31)],
            Arch::X86 => &[("ebx", 0), ("eax", 6), ("esp", 15)],
            Arch::Arm => &[("r0", 0), ("sp", 13), ("lr", 14)],
            _ => &[],
        };
        assert!(places.iter().all(|(name, n)| named(name) == Some(0x1000 + n)), "{arch:?}: {:?}", first.registers);
        assert_eq!(first.thread_base.map(|b| b.0), (arch == Arch::X64).then_some(0x1015));
        let crash = dump.crash.unwrap();
        assert_eq!((crash.thread, crash.name.as_str(), crash.address), (Some(4711), "SIGSEGV", Some(Addr(0xdead))));
    }
}

#[test]
fn stopping_is_not_crashing() {
    let mut core = Core::new(PtrSize::Eight, LE, 62);
    let mut notes = core.prstatus(1, 0, 27);
    notes.extend(core.siginfo(19, 0x80, 0));
    core.segments.push((4, 0, 0, 0, notes.clone()));
    assert_eq!(open(core.build()).unwrap().crash, None);
    // The signal is recorded only in NT_SIGINFO.
    notes.extend(core.siginfo(6, 0, 0));
    core.segments[0].4 = notes;
    let crash = open(core.build()).unwrap().crash.unwrap();
    assert_eq!((crash.name.as_str(), crash.thread, crash.address), ("SIGABRT", Some(1), None));
}

/// Old versions of createdump write no NT_SIGINFO.
#[test]
fn a_signal_of_a_fault_without_its_cause_is_a_fault() {
    let is_fault = |signal: u64, info: Option<u64>| {
        let mut core = Core::new(PtrSize::Eight, LE, 62);
        let mut notes = core.prstatus(1, signal, 27);
        notes.extend(info.map(|code| core.siginfo(signal, code, 0xdead)).into_iter().flatten());
        core.segments.push((4, 0, 0, 0, notes));
        open(core.build()).unwrap().crash.unwrap().is_fault()
    };
    assert_eq!([11, 7, 8, 4, 6, 15].map(|signal| is_fault(signal, None)), [true, true, true, true, false, false]);
    // A program sent it, or the processor raised it.
    assert_eq!([0, 1].map(|code| is_fault(11, Some(code))), [false, true]);
}

#[test]
fn more_headers_than_e_phnum_can_express() {
    for (ptr, endian) in [(PtrSize::Eight, LE), (PtrSize::Four, BE)] {
        let mut core = Core::new(ptr, endian, 0);
        core.segments.push((4, 0, 0, 0, core.prstatus(7, 0, 0)));
        for i in 0..70_000u64 {
            core.segments.push((1, 4, i * 0x1000, 0x1000, vec![1]));
        }
        let mut bytes = core.build();
        let dump = open(bytes.clone()).unwrap();
        assert_eq!((dump.ranges.len(), dump.threads.len()), (70_000, 1));
        assert_eq!(dump.facts.oddities, Vec::<String>::new());
        // Without the section header, the count is computed from the offset of the first segment.
        let shoff = if ptr == PtrSize::Eight { 40..48 } else { 32..36 };
        bytes[shoff].fill(0);
        let dump = open(bytes).unwrap();
        assert_eq!((dump.ranges.len(), dump.facts.oddities.len()), (70_000, 1));
    }
}

#[test]
fn truncation_is_counted() {
    let bytes = small_core(PtrSize::Eight, LE, 62);
    let cut = open(bytes[..bytes.len() - 0x30].to_vec()).unwrap();
    assert_eq!((cut.facts.truncated_bytes, cut.ranges[1].len), (0x30, 0x50));
    let cut = open(bytes[..bytes.len() - 0x90].to_vec()).unwrap();
    assert_eq!((cut.facts.truncated_bytes, cut.ranges.len()), (0x90, 1));
    let cut = open(bytes[..64 + 56 * 2].to_vec()).unwrap();
    assert_eq!((cut.ranges.len(), cut.regions.len()), (0, 1));
    assert!(cut.facts.oddities.iter().any(|o| o.contains("2 of 4")), "{:?}", cut.facts.oddities);
    assert!(matches!(open(bytes[..70].to_vec()), Err(DumpError::Truncated { have: 70, .. })));
    assert!(matches!(open(bytes[..40].to_vec()), Err(DumpError::Truncated { have: 40, .. })));
}

#[test]
fn gdb_offsets_are_in_bytes_and_odd_segments_are_tolerated() {
    let mut core = Core::new(PtrSize::Eight, LE, 62);
    let files = core.files(1, &[(0x1000, 0x2000, 0, "/a"), (0x2000, 0x3000, 0x1000, "/a"), (0, 0, 0, "")]);
    core.segments.push((4, 0, 0, 0, files));
    core.segments.push((1, 4, u64::MAX - 0xf, 0x1000, vec![0; 0x1000]));
    core.segments.push((1, 4, 0x5000, 0x10, vec![0; 0x20]));
    let dump = open(core.build()).unwrap();
    assert_eq!(dump.files[1].file_offset, 0x1000);
    assert_eq!((dump.modules.len(), dump.modules[0].size), (1, 0x2000));
    assert_eq!(dump.ranges.iter().map(|r| r.len).collect::<Vec<_>>(), [0xf, 0x10]);
    assert_eq!(dump.facts.oddities.len(), 2, "{:?}", dump.facts.oddities);
}
