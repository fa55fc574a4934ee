//! The first page of the synthetic runtime's module: an ELF image in cores, a PE image in minidumps. The rest is the same
//! in both.

use super::mem::Shape;

/// Name of the exported descriptor.
pub const EXPORT: &str = "DotNetRuntimeContractDescriptor";
/// Size of the header page in bytes.
pub const HEADERS: u64 = 0x1000;
/// Lowest address in the ELF file.
const ELF_LOW: u64 = 0x3000;

/// Parameters of the image.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// Architecture.
    pub shape: Shape,
    /// Load address.
    pub base: u64,
    /// Offset and length of the writable part, which is the last.
    pub data: (u64, u64),
    /// Offset of the exported descriptor; `None` without the export.
    pub export: Option<u64>,
}

/// Machine numbers of ELF.
pub fn elf_machine(shape: Shape) -> u64 {
    match (shape.ptr, shape.big) {
        (8, false) => 62,
        (4, false) => 3,
        (8, true) => 21,
        _ => 20,
    }
}

/// The build id of the synthetic runtime.
pub fn build_id() -> Vec<u8> {
    (0..20).map(|n| 0xa0 + n).collect()
}

fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381u32, |h, b| (h << 5).wrapping_add(h).wrapping_add(u32::from(b)))
}

impl Image {
    fn symbols(&self) -> Vec<(&'static str, u64)> {
        let mut list = vec![("coreclr_execute_assembly", 0x40), ("coreclr_initialize", 0x80), ("coreclr_shutdown_2", 0xc0)];
        list.extend(self.export.map(|at| (EXPORT, at)));
        list
    }

    /// The headers of the ELF image.
    pub fn elf(&self) -> Vec<u8> {
        let s = self.shape;
        let wide = s.ptr == 8;
        let n = |v: u64, len: u64| s.encode(v, len);
        let (header, entry, sym) = if wide { (64u64, 56u64, 24u64) } else { (52, 32, 16) };
        let mut out = vec![0x7f, b'E', b'L', b'F', if wide { 2 } else { 1 }, if s.big { 2 } else { 1 }, 1];
        out.resize(16, 0);
        for (v, len) in [(3, 2), (elf_machine(s), 2), (1, 4), (0, s.ptr), (header, s.ptr), (0, s.ptr), (0, 4)] {
            out.extend(n(v, len));
        }
        for v in [header, entry, 4, 0, 0, 0] {
            out.extend(n(v, 2));
        }
        // Tables at fixed offsets in the page.
        let (note_at, dynamic_at, hash_at, symbols_at, strings_at) = (0x200u64, 0x280u64, 0x380u64, 0x500u64, 0x700u64);
        let mut note = [n(4, 4), n(20, 4), n(3, 4)].concat();
        note.extend(b"GNU\0");
        note.extend(build_id());
        // kind, flags, offset in the image, bytes
        let headers = [
            (1u64, 4u64, 0u64, self.data.0),
            (1, 6, self.data.0, self.data.1),
            (2, 4, dynamic_at, 5 * 2 * s.ptr),
            (4, 4, note_at, note.len() as u64),
        ];
        for (kind, flags, at, len) in headers {
            out.extend(n(kind, 4));
            if wide {
                out.extend(n(flags, 4));
            }
            for v in [at, ELF_LOW + at, ELF_LOW + at, len, len] {
                out.extend(n(v, s.ptr));
            }
            if !wide {
                out.extend(n(flags, 4));
            }
            out.extend(n(0x1000, s.ptr));
        }
        let mut place = |at: u64, bytes: &[u8]| {
            assert!(out.len() as u64 <= at);
            out.resize(at as usize, 0);
            out.extend_from_slice(bytes);
        };
        place(note_at, &note);
        // musl keeps the addresses of the file, glibc relocates them.
        let address = |at: u64| if wide { ELF_LOW + at } else { self.base + at };
        let mut dynamic = Vec::new();
        for (tag, value) in [(0xeu64, 0x11), (6, address(symbols_at)), (0x6fff_fef5, address(hash_at)), (5, address(strings_at)), (0, 0)] {
            dynamic.extend(n(tag, s.ptr));
            dynamic.extend(n(value, s.ptr));
        }
        place(dynamic_at, &dynamic);
        // Symbols sorted by bucket; the first (empty) one is outside the hash table.
        let buckets = 2u32;
        let mut list = self.symbols();
        list.sort_by_key(|(name, _)| gnu_hash(name) % buckets);
        let mut hash = [n(u64::from(buckets), 4), n(1, 4), n(1, 4), n(6, 4), n(u64::MAX, s.ptr)].concat();
        for b in 0..buckets {
            let first = list.iter().position(|(name, _)| gnu_hash(name) % buckets == b);
            hash.extend(n(first.map_or(0, |i| i as u64 + 1), 4));
        }
        for (i, (name, _)) in list.iter().enumerate() {
            let last = list.get(i + 1).is_none_or(|(next, _)| gnu_hash(next) % buckets != gnu_hash(name) % buckets);
            hash.extend(n(u64::from(gnu_hash(name) & !1 | u32::from(last)), 4));
        }
        place(hash_at, &hash);
        let (mut symbols, mut strings) = (vec![0; sym as usize], vec![0]);
        for (name, at) in &list {
            let (name_at, value) = (n(strings.len() as u64, 4), n(ELF_LOW + at, s.ptr));
            let (info, size) = (vec![0x11, 0, 0, 1], n(40, s.ptr));
            symbols.extend(if wide { [name_at, info, value, size] } else { [name_at, value, size, info] }.concat());
            strings.extend_from_slice(name.as_bytes());
            strings.push(0);
        }
        place(symbols_at, &symbols);
        place(strings_at, &strings);
        assert!(out.len() as u64 <= HEADERS);
        out.resize(HEADERS as usize, 0);
        out
    }

    /// Image size in bytes.
    pub fn size(&self) -> u64 {
        self.data.0 + self.data.1
    }

    /// Time stamp of the PE image.
    pub const TIMESTAMP: u32 = 0x6c0f_fee1;

    /// The headers of the PE image, little endian on every architecture.
    pub fn pe(&self) -> Vec<u8> {
        let wide = self.shape.ptr == 8;
        let le = Shape { ptr: self.shape.ptr, big: false };
        let mut out = vec![0u8; HEADERS as usize];
        let mut put = |at: u64, len: u64, value: u64| {
            let bytes = le.encode(value, len);
            out[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
        };
        let nt = 0x98;
        let optional_size = if wide { 240 } else { 224 };
        let machine = if wide { 0x8664 } else { 0x14c };
        put(0, 2, 0x5a4d);
        put(0x3c, 4, nt);
        put(nt, 4, 0x4550);
        for (at, len, v) in [(4, 2, machine), (6, 2, 2), (8, 4, Self::TIMESTAMP.into()), (20, 2, optional_size), (22, 2, 0x2022)] {
            put(nt + at, len, v);
        }
        let optional = nt + 24;
        put(optional, 2, if wide { 0x20b } else { 0x10b });
        put(optional + 56, 4, self.size());
        put(optional + 60, 4, HEADERS);
        let exports = 0x400;
        let directories = optional + if wide { 112 } else { 96 };
        put(directories - 4, 4, 16);
        put(directories, 4, exports);
        put(directories + 4, 4, 0x300);
        let sections = optional + optional_size;
        let list = [(b".rdata\0\0", HEADERS, self.data.0 - HEADERS, 0x4000_0040), (b".data\0\0\0", self.data.0, self.data.1, 0xc000_0040)];
        for (i, (name, rva, len, flags)) in list.into_iter().enumerate() {
            let at = sections + 40 * i as u64;
            put(at, 8, u64::from_le_bytes(*name));
            put(at + 8, 4, len);
            put(at + 12, 4, rva);
            put(at + 36, 4, flags);
        }
        // Names sorted by bytes; functions in another order, so that ordinals matter.
        let mut names = self.symbols();
        names.sort_unstable();
        let count = names.len() as u64;
        let (functions, name_table, ordinals, mut text) = (exports + 0x40, exports + 0x80, exports + 0xc0, exports + 0x100);
        for (at, v) in [(16, 1), (20, count), (24, count), (28, functions), (32, name_table), (36, ordinals)] {
            put(exports + at, 4, v);
        }
        for (i, (name, rva)) in names.iter().enumerate() {
            let i = i as u64;
            let ordinal = count - 1 - i;
            put(functions + 4 * ordinal, 4, *rva);
            put(name_table + 4 * i, 4, text);
            put(ordinals + 2 * i, 2, ordinal);
            for b in name.bytes() {
                put(text, 1, b.into());
                text += 1;
            }
            text += 1;
        }
        out
    }
}
