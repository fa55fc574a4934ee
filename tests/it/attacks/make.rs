//! Files that share bytes: headers, notes, threads and modules cost a few bytes each, and all refer to the same large part.

use crate::support::image::Image;
use crate::support::{Shape, Spec, Target};

/// The architecture of all attacks.
pub const X64: Shape = Shape { ptr: 8, big: false };
/// Readable and writable.
pub const RW: u64 = 6;

fn n(value: u64, len: usize) -> Vec<u8> {
    let mut bytes = value.to_le_bytes().to_vec();
    bytes.resize(len, 0);
    bytes
}

fn read(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..at + len].iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Integers of *(value, bytes)*.
pub fn fields(list: &[(u64, usize)]) -> Vec<u8> {
    list.iter().flat_map(|(value, len)| n(*value, *len)).collect()
}

/// The standard process.
pub fn target() -> Target {
    Spec::standard(X64).build()
}

/// A core to which headers are added that may share bytes.
pub struct Core {
    bytes: Vec<u8>,
    headers: Vec<[u8; 56]>,
}

impl Core {
    /// The core in `bytes`.
    pub fn of(bytes: Vec<u8>) -> Core {
        let (table, count) = (read(&bytes, 32, 8) as usize, read(&bytes, 56, 2) as usize);
        let headers = (0..count).map(|i| bytes[table + 56 * i..][..56].try_into().unwrap()).collect();
        Core { bytes, headers }
    }

    /// A core without memory or notes.
    pub fn empty() -> Core {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
        bytes.resize(16, 0);
        bytes.extend(fields(&[(4, 2), (62, 2), (1, 4), (0, 8), (0, 8), (0, 8), (0, 4), (64, 2), (56, 2), (0, 2), (64, 2), (0, 2), (0, 2)]));
        Core { bytes, headers: Vec::new() }
    }

    /// Adds bytes to the file and returns their offset.
    pub fn append(&mut self, bytes: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// Overwrites bytes of the file.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn header(&mut self, kind: u64, flags: u64, offset: u64, at: u64, len: u64) {
        let header = fields(&[(kind, 4), (flags, 4), (offset, 8), (at, 8), (0, 8), (len, 8), (len, 8), (1, 8)]);
        self.headers.push(header.try_into().unwrap());
    }

    /// Maps `len` bytes at `offset` of the file to the address `at`.
    pub fn map(&mut self, at: u64, offset: u64, len: u64, flags: u64) {
        self.header(1, flags, offset, at, len);
    }

    /// Declares the `len` bytes at `offset` of the file to be notes.
    pub fn notes(&mut self, offset: u64, len: u64) {
        self.header(4, 4, offset, 0, len);
    }

    /// Adds a separate note.
    pub fn note(&mut self, kind: u64, desc: &[u8]) {
        let note = note(kind, desc);
        let at = self.append(&note);
        self.notes(at, note.len() as u64);
    }

    /// Sets registers, by their position in `user_regs_struct`, of the OS thread `id`.
    pub fn registers(&mut self, id: u64, registers: &[(usize, u64)]) {
        let segments = self.headers.iter().filter(|header| read(&header[..], 0, 4) == 4);
        let parts: Vec<_> = segments.map(|header| (read(&header[..], 8, 8) as usize, read(&header[..], 32, 8) as usize)).collect();
        for (start, len) in parts {
            let mut at = start;
            while at + 12 < start + len {
                let [name, desc, kind] = [0, 4, 8].map(|field| read(&self.bytes, at + field, 4) as usize);
                let from = at + 12 + name.next_multiple_of(4);
                if kind == 1 && read(&self.bytes, from + 32, 4) == id {
                    registers.iter().for_each(|(i, value)| self.write(from + 112 + 8 * i, &value.to_le_bytes()));
                }
                at = from + desc.next_multiple_of(4);
            }
        }
    }

    /// Adds mapped files from their first byte on: start, end, path.
    pub fn files(&mut self, list: impl Iterator<Item = (u64, u64, String)>) {
        let list: Vec<_> = list.collect();
        let mut desc = fields(&[(list.len() as u64, 8), (0x1000, 8)]);
        list.iter().for_each(|(start, end, _)| desc.extend(fields(&[(*start, 8), (*end, 8), (0, 8)])));
        list.iter().for_each(|(.., path)| desc.extend(path.bytes().chain([0])));
        self.note(0x4649_4c45, &desc);
    }

    /// Returns the file: its table of headers comes last.
    pub fn finish(mut self) -> Vec<u8> {
        let count = self.headers.len() as u64;
        let table: Vec<u8> = self.headers.concat();
        let at = self.append(&table);
        // More than 65,534 headers do not fit: the first section header has their number.
        let section = (count >= 0xffff).then(|| self.append(&[n(0, 44), n(count, 4), n(0, 16)].concat()));
        self.bytes[32..40].copy_from_slice(&n(at, 8));
        self.bytes[40..48].copy_from_slice(&n(section.unwrap_or(0), 8));
        self.bytes[54..56].copy_from_slice(&n(56, 2));
        self.bytes[56..58].copy_from_slice(&n(count.min(0xffff), 2));
        self.bytes[58..62].copy_from_slice(&fields(&[(64, 2), (u64::from(section.is_some()), 2)]));
        self.bytes
    }
}

/// Makes a note of the kernel.
pub fn note(kind: u64, desc: &[u8]) -> Vec<u8> {
    let mut out = fields(&[(5, 4), (desc.len() as u64, 4), (kind, 4)]);
    out.extend(b"CORE\0\0\0\0");
    out.extend(desc);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// A minidump whose streams are replaced.
pub struct Mini {
    /// The file.
    pub bytes: Vec<u8>,
}

impl Mini {
    /// Adds bytes to the file and returns their offset.
    pub fn append(&mut self, bytes: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        at
    }

    fn entry(&self, kind: u64) -> usize {
        let (count, at) = (read(&self.bytes, 8, 4) as usize, read(&self.bytes, 12, 4) as usize);
        (0..count).map(|i| at + 12 * i).find(|at| read(&self.bytes, *at, 4) == kind).unwrap()
    }

    /// Returns the contents of a stream.
    pub fn stream(&self, kind: u64) -> Vec<u8> {
        let at = self.entry(kind);
        let (len, from) = (read(&self.bytes, at + 4, 4) as usize, read(&self.bytes, at + 8, 4) as usize);
        self.bytes[from..from + len].to_vec()
    }

    /// Replaces a stream.
    pub fn replace(&mut self, kind: u64, with: &[u8]) {
        let at = self.append(with);
        let entry = self.entry(kind);
        self.bytes[entry + 4..entry + 12].copy_from_slice(&fields(&[(with.len() as u64, 4), (at, 4)]));
    }
}

/// Makes an ELF image whose headers are *(kind, flags, address, offset in the file, bytes)*. It has one symbol hash table with one bucket at
/// `hash`, and the build ID of the synthetic runtime.
pub fn elf_image(headers: &[(u64, u64, u64, u64, u64)], hash: u64, room: usize) -> Vec<u8> {
    let mut out = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
    out.resize(16, 0);
    let tables = 64 + 56 * (headers.len() as u64 + 2);
    let dynamic = fields(&[(6, 8), (tables + 512, 8), (0x6fff_fef5, 8), (hash, 8), (5, 8), (tables + 512, 8), (0, 8), (0, 8)]);
    let mut id = fields(&[(4, 4), (20, 4), (3, 4)]);
    id.extend(b"GNU\0");
    id.extend(crate::support::image::build_id());
    let count = headers.len() as u64 + 2;
    out.extend(fields(&[(3, 2), (62, 2), (1, 4), (0, 8), (64, 8), (0, 8), (0, 4), (64, 2), (56, 2), (count, 2), (0, 2), (0, 2), (0, 2)]));
    let own = [(2, 4, tables, tables, dynamic.len() as u64), (4, 4, tables + 256, tables + 256, id.len() as u64)];
    for (kind, flags, at, offset, len) in headers.iter().chain(&own) {
        out.extend(fields(&[(*kind, 4), (*flags, 4), (*offset, 8), (*at, 8), (*at, 8), (*len, 8), (*len, 8), (1, 8)]));
    }
    out.resize(tables as usize, 0);
    out.extend(dynamic);
    out.resize(tables as usize + 256, 0);
    out.extend(id);
    assert!(out.len() <= room, "{}", out.len());
    out.resize(room, 0);
    out
}

/// Replaces the dynamic entries that locate symbols by others.
pub fn with_dynamic(mut image: Vec<u8>, entries: &[(u64, u64)]) -> Vec<u8> {
    let count = read(&image, 56, 2);
    let at = (64 + 56 * count) as usize;
    let dynamic: Vec<u8> = entries.iter().chain([&(0, 0)]).flat_map(|(tag, value)| fields(&[(*tag, 8), (*value, 8)])).collect();
    assert!(dynamic.len() <= 64);
    image[at..at + dynamic.len()].copy_from_slice(&dynamic);
    image
}

/// Makes a GNU hash table with one bucket, whose chain has `links` links and no end.
pub fn endless_hash(links: usize) -> Vec<u8> {
    let mut out = fields(&[(1, 4), (1, 4), (0, 4), (0, 4), (1, 4)]);
    out.resize(out.len() + 4 * links, 0);
    out
}

/// Makes a descriptor for memory from `at` on: header, slots, JSON.
pub fn descriptor(at: u64, json: &[u8], slots: &[u64]) -> Vec<u8> {
    let slots_at = at + 40;
    let json_at = slots_at + 8 * slots.len() as u64;
    let mut out = header(json_at, json.len() as u64, slots_at, slots.len() as u64);
    slots.iter().for_each(|s| out.extend(n(*s, 8)));
    out.extend(json);
    out
}

/// Makes the header of a descriptor.
pub fn header(json: u64, json_bytes: u64, slots: u64, count: u64) -> Vec<u8> {
    let mut out = b"DNCCDAC\0".to_vec();
    out.extend(fields(&[(1, 4), (json_bytes, 4), (json, 8), (count, 4), (0, 4), (slots, 8)]));
    out
}

/// Makes zeros as a zstd frame with a window of 2 GiB, after `first`: four bytes for each 128 KiB.
pub fn zstd_of_zeros(first: &[u8], zeros: u64) -> Vec<u8> {
    const BLOCK: usize = 128 << 10;
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3];
    for chunk in first.chunks(BLOCK) {
        out.extend(n((chunk.len() as u64) << 3, 3));
        out.extend(chunk);
    }
    let blocks = zeros / BLOCK as u64;
    for i in 0..blocks {
        out.extend(n((BLOCK as u64) << 3 | 1 << 1 | u64::from(i + 1 == blocks), 3));
        out.push(0);
    }
    out
}

/// Makes the headers of a PE image of `size` bytes: `sections` read-only sections of `len` bytes each, all with the same bytes.
pub fn pe_image(size: u64, sections: u64, len: u64) -> Vec<u8> {
    let image = Image { shape: X64, base: 0, data: (0x9000, 0x1000), export: None };
    let mut out = image.pe();
    let nt = 0x98;
    let optional = nt + 24;
    out[nt + 6..nt + 8].copy_from_slice(&n(sections, 2));
    out[optional + 56..optional + 60].copy_from_slice(&n(size, 4));
    out.resize(0x4000, 0);
    let table = optional + 240;
    for i in 0..sections {
        let at = table + 40 * i as usize;
        let rva = 0x10000 + i * len.next_multiple_of(0x1000);
        out[at..at + 40].copy_from_slice(&fields(&[
            (0x7461_6461, 8),
            (len, 4),
            (rva, 4),
            (len, 4),
            (0x4000, 4),
            (0, 12),
            (0x4000_0040, 4),
        ]));
    }
    out
}
