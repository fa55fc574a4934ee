//! Tests of headers, tables and errors.

use super::writer::Writer;
use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn numbers_are_groups_of_bits() {
    let mut out = Writer::default();
    out.unsigned(0, 2).unsigned(3, 2).unsigned(4, 2).unsigned(1000, 3).unsigned(u64::from(u32::MAX), 8);
    // 0: 000, 3: 011, 4: 100 then 001, lowest bit first.
    assert_eq!(hex(&out.bytes()[..1]), "18");
    out.signed(0, 6).signed(-1, 6).signed(31, 6).signed(32, 6).signed(-33, 6).signed(i64::from(i32::MIN), 6).put(5, 3);
    let bytes = memory_with(&out.bytes());
    let mut bits = Bits::new(&bytes, Addr(INFO));
    let numbers: Vec<u32> = [2, 2, 2, 3, 8].map(|base| bits.unsigned(base).unwrap()).to_vec();
    assert_eq!(numbers, [0, 3, 4, 1000, u32::MAX]);
    let numbers: Vec<i32> = (0..6).map(|_| bits.signed(6).unwrap()).collect();
    assert_eq!(numbers, [0, -1, 31, 32, -33, i32::MIN]);
    assert_eq!((bits.read(3).unwrap(), bits.position()), (5, out.bits.len() as u64));
    bits.seek(3);
    assert_eq!((bits.unsigned(2).unwrap(), bits.read(0).unwrap()), (3, 0));
}

#[test]
fn numbers_of_more_than_32_bits_are_rejected() {
    for base in 1..=8 {
        for value in [u64::from(u32::MAX) + 1, 1 << 40, u64::MAX] {
            let mut out = Writer::default();
            out.unsigned(value, base);
            let bytes = memory_with(&out.bytes());
            assert!(matches!(Bits::new(&bytes, Addr(INFO)).unsigned(base), Err(GcInfoError::Malformed { .. })), "{value} {base}");
        }
        let bytes = memory_with(&[0xff; 1000]);
        assert!(matches!(Bits::new(&bytes, Addr(INFO)).unsigned(base), Err(GcInfoError::Malformed { .. })));
    }
    let mut out = Writer::default();
    out.signed(i64::from(i32::MAX) + 1, 6);
    let bytes = memory_with(&out.bytes());
    assert!(Bits::new(&bytes, Addr(INFO)).signed(6).is_err());
}

#[test]
fn only_bytes_with_requested_bits_are_needed() {
    let all: Vec<u8> = (0..200u8).map(|i| i.wrapping_mul(37)).collect();
    for have in [1usize, 5, 8, 9, 63, 64, 65, 199] {
        let bytes = memory_with(&all[..have]);
        let mut bits = Bits::new(&bytes, Addr(INFO));
        for position in 0..have as u64 * 8 {
            bits.seek(position);
            let left = (have as u64 * 8 - position).min(32) as u32;
            let want = (0..u64::from(left)).fold(0, |n, i| {
                let at = position + i;
                n | u64::from(all[at as usize / 8] >> (at % 8) & 1) << i
            });
            assert_eq!(bits.read(left), Ok(want as u32), "{left} bits at {position} of {have} bytes");
        }
        bits.seek(have as u64 * 8 - 1);
        let first = ReadError { address: Addr(INFO + have as u64), len: 1 };
        assert_eq!(bits.read(2), Err(GcInfoError::Missing(first)));
    }
    // Ranges that are adjacent in memory, but separate in the file.
    let ranges = [(INFO, 3, 100), (INFO + 3, 2, 50), (INFO + 5, 60, 120)];
    let bytes = CodeBytes::new(&Arc::new(memory_of(all.clone(), &ranges, Shape::LE64)));
    let want = u32::from_le_bytes([all[102], all[50], all[51], all[120]]);
    let mut bits = Bits::new(&bytes, Addr(INFO));
    bits.seek(16);
    assert_eq!(bits.read(32), Ok(want));
}

#[test]
fn slim_headers() {
    for version in 2..=4 {
        for flags in [0, 0x40] {
            let method = Method { flags, ..Method::new(version, 300) };
            let (info, bytes) = decode(&method).unwrap();
            let header = info.header();
            assert_eq!((header.code_length, header.frame_register), (300, (flags != 0).then_some(5)));
            assert_eq!((header.outgoing_area, header.generic_context, header.psp_sym), (0, None, None));
            assert_eq!(GcInfo::code_length(&bytes, Addr(INFO), version, Arch::X64), Ok(300));
        }
    }
    // By hand: slim, no frame register, length 44; no safe points; no slots. The return kind takes two bits.
    let bytes = memory_with(&[0b1011_0000, 0b0000_0000, 0]);
    assert_eq!(GcInfo::decode(&bytes, Addr(INFO), 4, Arch::X64).unwrap().header().code_length, 44);
    assert_eq!(GcInfo::decode(&bytes, Addr(INFO), 3, Arch::X64).unwrap().header().code_length, 11);
}

#[test]
fn fat_headers() {
    for version in 2..=4 {
        for arch in [Arch::X64, Arch::Arm64] {
            for flags in [0, 1, 4, 8, 0x10, 0x24, 0x30, 0x40, 0x80, 0x100, 0x200, 0x3ff, 0x3fb] {
                let method = Method { fat: true, flags, arch, frame_register: 3, outgoing_words: 12, ..Method::new(version, 70_000) };
                let (info, _) = decode(&method).unwrap();
                let header = info.header();
                let arm = arch == Arch::Arm64;
                let kind = match flags & 0x30 {
                    0x10 => Some(GenericContextKind::MethodTable),
                    0x20 => Some(GenericContextKind::MethodDesc),
                    0x30 => Some(GenericContextKind::This),
                    _ => None,
                };
                let want = Header {
                    code_length: if arm { 280_000 } else { 70_000 },
                    varargs: flags & 1 != 0,
                    generic_context: kind.map(|kind| (kind, -5600)),
                    prologue: match (flags & 0x34 != 0, arm) {
                        (false, _) => 0,
                        (true, false) => 4,
                        (true, true) => 16,
                    },
                    frame_register: (flags & 0x40 != 0).then_some(3),
                    psp_sym: (flags & 8 != 0 && version < 4).then_some(-48),
                    reverse_pinvoke: (flags & 0x200 != 0).then_some(-16),
                    outgoing_area: 96,
                    only_leaf: flags & 0x80 != 0 && !arm,
                };
                assert_eq!(*header, want, "{version} {arch:?} {flags:#x}");
            }
        }
    }
}

#[test]
fn slots_are_listed_with_distances() {
    let method = Method {
        flags: 0x40,
        registers: vec![(12, 3), (3, 1), (0, 0), (1, 0), (3, 0), (15, 0)],
        stack: vec![(0, 5, 2), (2, -40, 0), (1, -40, 0), (2, 100, 0)],
        untracked: vec![(2, -1, 0), (2, 0, 0), (1, 33, 0)],
        ..Method::new(4, 100)
    };
    let (info, _) = decode(&method).unwrap();
    let register = |number, interior, pinned| slots::Slot { place: slots::Place::Register(number), interior, pinned };
    let stack = |base, offset, interior, pinned| slots::Slot { place: slots::Place::Stack { base, offset }, interior, pinned };
    assert_eq!(info.slots.tracked()[..2], [register(12, true, true), register(3, true, false)]);
    assert_eq!(info.slots.tracked()[2..6], [0, 1, 3, 15].map(|number| register(number, false, false)));
    assert_eq!(info.slots.tracked()[6], stack(SlotBase::CallerSp, 40, false, true));
    let rest = [(SlotBase::FrameRegister, -320), (SlotBase::Sp, -320), (SlotBase::FrameRegister, 800)];
    assert_eq!(info.slots.tracked()[7..], rest.map(|(base, offset)| stack(base, offset, false, false)));
    let untracked = [(SlotBase::FrameRegister, -8), (SlotBase::FrameRegister, 0), (SlotBase::Sp, 264)];
    assert_eq!(info.slots.untracked(), untracked.map(|(base, offset)| stack(base, offset, false, false)));
    assert_eq!(info.slot_count(), 13);
}

fn refusal(method: &Method) -> &'static str {
    match decode(method).map(|_| ()) {
        Err(GcInfoError::Malformed { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn inconsistent_info_is_rejected() {
    let method = Method { fat: true, ..Method::new(3, 100) };
    let points = |offsets: &[u32]| Method { safe_points: offsets.iter().map(|o| (*o, Vec::new())).collect(), ..method.clone() };
    assert!(decode(&points(&[0, 50, 99])).is_ok());
    for offsets in [[50, 50], [51, 50], [50, 100], [50, 127]] {
        assert_eq!(refusal(&points(&offsets)), "safe points do not ascend within the code");
    }
    let many = Method { safe_points: vec![(0, Vec::new()); 101], ..method.clone() };
    assert_eq!(refusal(&many), "more safe points than code");
    assert!(decode(&Method { ranges: vec![(0, 1), (1, 2), (50, 100)], ..method.clone() }).is_ok());
    assert_eq!(refusal(&Method { ranges: vec![(0, 1), (50, 101)], ..method.clone() }), "a range ends past the end of the code");
    let many = Method { ranges: (0..101).map(|i| (i, i + 1)).collect(), ..method.clone() };
    assert_eq!(refusal(&many), "more ranges than code");
    let none = Method { registers: vec![(16, 0)], ..method.clone() };
    assert_eq!(refusal(&none), "a register that the architecture does not have");
    assert!(decode(&Method { arch: Arch::Arm64, ..none.clone() }).is_ok());
    assert!(decode(&Method { arch: Arch::Arm64, registers: vec![(28, 0), (32, 0)], ..method.clone() }).is_err());
    assert_eq!(
        refusal(&Method { frame_register: 16, flags: 0x40, ..method.clone() }),
        "a frame register that the architecture does not have"
    );
    assert_eq!(refusal(&Method { stack: vec![(3, 0, 0)], ..method.clone() }), "a slot relative to base 3, which does not exist");
    let frameless = Method { untracked: vec![(2, 0, 0)], ..method.clone() };
    assert_eq!(refusal(&frameless), "a slot relative to a frame register that the method does not have");
    assert!(decode(&Method { flags: 0x40, ..frameless }).is_ok());
    let far = Method { untracked: vec![(1, 1 << 29, 0)], ..method.clone() };
    assert_eq!(refusal(&far), "a stack slot is too far away");
    assert!(decode(&Method { untracked: vec![(1, 0, 0); 100_000], ..method.clone() }).is_ok());
    assert_eq!(refusal(&Method { untracked: vec![(1, 0, 0); 100_001], ..method }), "more than 100,000 slots");
}

#[test]
fn errors_name_unsupported_versions_and_architectures() {
    let bytes = memory_with(&[0; 16]);
    for version in [0, 1, 6, u32::MAX] {
        let want = GcInfoError::Version { version };
        assert_eq!(GcInfo::decode(&bytes, Addr(INFO), version, Arch::X64).unwrap_err(), want);
        assert_eq!(GcInfo::code_length(&bytes, Addr(INFO), version, Arch::X64), Err(want));
    }
    let want = GcInfoError::Arch { arch: Arch::X86 };
    assert_eq!(GcInfo::decode(&bytes, Addr(INFO), 4, Arch::X86).unwrap_err(), want);
}

#[test]
fn missing_bytes_matter_only_where_they_are_needed() {
    let method = Method {
        safe_points: (0..40).map(|i| (i * 9, vec![i % 3 == 0, i % 2 == 0])).collect(),
        table: true,
        registers: vec![(3, 0), (12, 0)],
        forms: vec![1],
        ..Method::new(4, 1000)
    };
    let whole = method.encode().bytes();
    let (info, _) = decode(&method).unwrap();
    let needed = info.live.div_ceil(8) as usize;
    assert!(needed < whole.len());
    assert!(GcInfo::decode(&memory_with(&whole[..needed]), Addr(INFO), 4, Arch::X64).is_ok());
    let short = GcInfo::decode(&memory_with(&whole[..needed - 1]), Addr(INFO), 4, Arch::X64).unwrap_err();
    assert_eq!(short, GcInfoError::Missing(ReadError { address: Addr(INFO + needed as u64 - 1), len: 1 }));
    assert_eq!(GcInfo::code_length(&memory_with(&whole[..3]), Addr(INFO), 4, Arch::X64), Ok(1000));
}

#[test]
fn a_method_is_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<GcInfo>();
}
