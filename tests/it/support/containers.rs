//! The two containers: ELF core and minidump, with the same memory.

use std::collections::BTreeMap;

use super::image::{Image, elf_machine};
use super::mem::{Range, Shape};

/// Container contents besides memory.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Architecture.
    pub shape: Shape,
    /// The runtime's module.
    pub image: Image,
    /// Modules of further runtimes.
    pub others: Vec<Image>,
    /// Process id.
    pub pid: u64,
    /// OS thread ids.
    pub threads: Vec<u64>,
}

/// Load address of the program, which is not captured.
fn program(shape: Shape) -> u64 {
    shape.pick(0x5590_0000_0000, 0x0804_8000)
}

/// Path of the runtime on Linux.
pub const ELF_PATH: &str = "/usr/share/dotnet/shared/Microsoft.NETCore.App/11.0.0/libcoreclr.so";
/// Path of the runtime on Windows.
pub const PE_PATH: &str = "C:\\dotnet\\shared\\Microsoft.NETCore.App\\11.0.0\\coreclr.dll";

impl Facts {
    /// The modules of all runtimes.
    fn images(&self) -> impl Iterator<Item = &Image> {
        std::iter::once(&self.image).chain(&self.others)
    }
}

/// The memory as stored in a container, with the headers of the modules.
fn memory(facts: &Facts, ranges: &BTreeMap<u64, Range>, headers: fn(&Image) -> Vec<u8>, gone: &[(u64, u64)]) -> Vec<(u64, Range)> {
    let mut all = ranges.clone();
    all.extend(facts.images().map(|image| (image.base, Range { bytes: headers(image), write: false })));
    let mut list: Vec<(u64, Range)> = all.into_iter().collect();
    for (start, len) in gone {
        let end = start + len;
        list = list
            .into_iter()
            .flat_map(|(at, r)| {
                let last = at + r.bytes.len() as u64;
                let part = |from: u64, to: u64| {
                    let bytes = if from < to { r.bytes[(from - at) as usize..(to - at) as usize].to_vec() } else { Vec::new() };
                    (from, Range { bytes, write: r.write })
                };
                [part(at, last.min(*start)), part(at.max(end), last)]
            })
            .filter(|(_, r)| !r.bytes.is_empty())
            .collect();
    }
    list
}

fn note(s: Shape, kind: u64, desc: &[u8]) -> Vec<u8> {
    let mut out = [s.encode(5, 4), s.encode(desc.len() as u64, 4), s.encode(kind, 4)].concat();
    out.extend(b"CORE\0\0\0\0");
    out.extend(desc);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// An ELF core.
pub fn elf_core(facts: &Facts, ranges: &BTreeMap<u64, Range>, gone: &[(u64, u64)]) -> Vec<u8> {
    let s = facts.shape;
    let wide = s.ptr == 8;
    let list = memory(facts, ranges, Image::elf, gone);
    let mut notes = Vec::new();
    // NT_PRPSINFO: process id, name, command line.
    let (pid_at, name_at, len) = if wide { (24, 40, 136) } else { (16, 32, 128) };
    let mut desc = vec![0u8; len];
    desc[pid_at..pid_at + 4].copy_from_slice(&s.encode(facts.pid, 4));
    desc[name_at..name_at + 3].copy_from_slice(b"lab");
    notes.extend(note(s, 3, &desc));
    for id in &facts.threads {
        let (pid_at, len) = if wide { (32, 336) } else { (24, 144) };
        let mut desc = vec![0u8; len];
        desc[pid_at..pid_at + 4].copy_from_slice(&s.encode(*id, 4));
        notes.extend(note(s, 1, &desc));
    }
    let mut files = vec![(program(s), program(s) + 0x3000, 0, "/app/lab")];
    for image in facts.images() {
        files.push((image.base, image.base + image.data.0, 0, ELF_PATH));
        files.push((image.base + image.data.0, image.base + image.size(), image.data.0 / 0x1000, ELF_PATH));
    }
    let mut desc = [s.encode(files.len() as u64, s.ptr), s.encode(0x1000, s.ptr)].concat();
    for (start, end, page, _) in files.iter().copied() {
        desc.extend([start, end, page].into_iter().flat_map(|v| s.encode(v, s.ptr)));
    }
    for (.., path) in files {
        desc.extend_from_slice(path.as_bytes());
        desc.push(0);
    }
    notes.extend(note(s, 0x4649_4c45, &desc));
    let auxv = [(3, program(s) + 0x40), (5, 9), (6, 0x1000), (9, program(s) + 0x1000), (0, 0)];
    let desc: Vec<u8> = auxv.into_iter().flat_map(|(k, v)| [s.encode(k, s.ptr), s.encode(v, s.ptr)].concat()).collect();
    notes.extend(note(s, 6, &desc));

    let (header, entry) = if wide { (64u64, 56u64) } else { (52, 32) };
    let count = list.len() as u64 + 1;
    let mut out = vec![0x7f, b'E', b'L', b'F', if wide { 2 } else { 1 }, if s.big { 2 } else { 1 }, 1];
    out.resize(16, 0);
    for (v, len) in [(4, 2), (elf_machine(s), 2), (1, 4), (0, s.ptr), (header, s.ptr), (0, s.ptr), (0, 4)] {
        out.extend(s.encode(v, len));
    }
    for v in [header, entry, count, 0, 0, 0] {
        out.extend(s.encode(v, 2));
    }
    let mut at = header + count * entry;
    let note_segment = [(4u64, 4u64, 0u64, notes.clone())];
    let loads = list.into_iter().map(|(start, r)| (1, if r.write { 6 } else { 4 }, start, r.bytes));
    let segments: Vec<_> = note_segment.into_iter().chain(loads).collect();
    for (kind, flags, start, bytes) in &segments {
        let len = bytes.len() as u64;
        out.extend(s.encode(*kind, 4));
        if wide {
            out.extend(s.encode(*flags, 4));
        }
        for v in [at, *start, 0, len, len] {
            out.extend(s.encode(v, s.ptr));
        }
        if !wide {
            out.extend(s.encode(*flags, 4));
        }
        out.extend(s.encode(0x1000, s.ptr));
        at += len;
    }
    out.extend(segments.into_iter().flat_map(|s| s.3));
    out
}

/// A minidump.
pub fn minidump(facts: &Facts, ranges: &BTreeMap<u64, Range>, gone: &[(u64, u64)]) -> Vec<u8> {
    let s = facts.shape;
    let list = memory(facts, ranges, Image::pe, gone);
    let n = |fields: &[(u64, u64)]| -> Vec<u8> { fields.iter().flat_map(|(v, len)| s.encode(*v, *len)).collect() };
    let string = |text: &str| -> Vec<u8> {
        let units: Vec<u8> = text.encode_utf16().flat_map(|u| s.encode(u.into(), 2)).collect();
        [s.encode(units.len() as u64, 4), units, vec![0, 0]].concat()
    };
    let streams = 5u64;
    let mut at = 32 + 12 * streams;
    let names = [string("C:\\app\\lab.exe"), string(PE_PATH)];
    let names_at = at;
    at += names.concat().len() as u64;
    let processor = match (s.ptr, s.big) {
        (8, false) => 9,
        (4, false) => 0,
        (8, true) => 0x8002,
        _ => 3,
    };
    let mut system = n(&[(processor, 2), (6, 2), (0, 2), (2, 1), (1, 1), (10, 4), (0, 4), (19041, 4), (2, 4)]);
    system.resize(56, 0);
    let mut threads = s.encode(facts.threads.len() as u64, 4);
    for id in &facts.threads {
        threads.extend(n(&[(*id, 4), (0, 4), (0, 4), (0, 4), (0, 8), (0, 8), (0, 4), (0, 4), (0, 4), (0, 4)]));
    }
    let mut list_of = vec![(program(s), 0x3000, 0x1111, names_at)];
    let name_at = names_at + names[0].len() as u64;
    list_of.extend(facts.images().map(|image| (image.base, image.size(), u64::from(Image::TIMESTAMP), name_at)));
    let mut modules = s.encode(list_of.len() as u64, 4);
    for (base, size, stamp, name) in list_of {
        modules.extend(n(&[(base, 8), (size, 4), (0, 4), (stamp, 4), (name, 4)]));
        modules.resize(modules.len() + 84, 0);
    }
    let misc = n(&[(24, 4), (1, 4), (facts.pid, 4), (0, 4), (0, 8)]);
    let entries = 16 + 16 * list.len() as u64;
    let data_at = at + (system.len() + threads.len() + modules.len() + misc.len()) as u64 + entries;
    let mut memory64 = n(&[(list.len() as u64, 8), (data_at, 8)]);
    for (start, r) in &list {
        memory64.extend(n(&[(*start, 8), (r.bytes.len() as u64, 8)]));
    }
    let mut out = if s.big { b"PMDM".to_vec() } else { b"MDMP".to_vec() };
    out.extend(n(&[(0xa793, 4), (streams, 4), (32, 4), (0, 4), (0x6b01_2807, 4), (0x4_1826, 8)]));
    let bodies = [(7u64, system), (3, threads), (4, modules), (15, misc), (9, memory64)];
    for (kind, body) in &bodies {
        out.extend(n(&[(*kind, 4), (body.len() as u64, 4), (at, 4)]));
        at += body.len() as u64;
    }
    out.extend(names.concat());
    out.extend(bodies.into_iter().flat_map(|b| b.1));
    assert_eq!(out.len() as u64, data_at);
    out.extend(list.into_iter().flat_map(|(_, r)| r.bytes));
    out
}
