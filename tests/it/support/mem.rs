//! Memory and structure layouts of the synthetic process.

use std::collections::BTreeMap;

/// Pointer size and byte order of the synthetic process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pointer size in bytes: 4 or 8.
    pub ptr: u64,
    /// Big endian.
    pub big: bool,
}

impl Shape {
    /// All four architectures.
    pub const ALL: [Shape; 4] =
        [Shape { ptr: 8, big: false }, Shape { ptr: 4, big: false }, Shape { ptr: 8, big: true }, Shape { ptr: 4, big: true }];

    /// `value` in `len` bytes.
    pub fn encode(self, value: u64, len: u64) -> Vec<u8> {
        let len = len as usize;
        if self.big { value.to_be_bytes()[8 - len..].to_vec() } else { value.to_le_bytes()[..len].to_vec() }
    }

    /// `wide` on 64-bit targets, `narrow` on 32-bit targets.
    pub fn pick(self, wide: u64, narrow: u64) -> u64 {
        if self.ptr == 8 { wide } else { narrow }
    }
}

/// A captured range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Content.
    pub bytes: Vec<u8>,
    /// Whether the process could write to it.
    pub write: bool,
}

/// Captured memory by address.
#[derive(Clone, Debug)]
pub struct Mem {
    /// Architecture.
    pub shape: Shape,
    /// Ranges by start.
    pub ranges: BTreeMap<u64, Range>,
}

impl Mem {
    /// Captures `len` zeros at `start`.
    pub fn map(&mut self, start: u64, len: u64, write: bool) {
        self.ranges.insert(start, Range { bytes: vec![0; len as usize], write });
    }

    /// Writes `bytes`.
    pub fn bytes(&mut self, at: u64, bytes: &[u8]) {
        let (start, range) = self.ranges.range_mut(..=at).next_back().unwrap_or_else(|| panic!("{at:#x} is not mapped"));
        let from = (at - start) as usize;
        let room = range.bytes.len();
        assert!(from + bytes.len() <= room, "{at:#x} is not mapped (range {start:#x}, {room:#x} bytes)");
        range.bytes[from..from + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes a number.
    pub fn put(&mut self, at: u64, len: u64, value: u64) {
        let bytes = self.shape.encode(value, len);
        self.bytes(at, &bytes);
    }

    /// Reads a pointer; `None` if it is not captured.
    pub fn word(&self, at: u64) -> Option<u64> {
        let (start, range) = self.ranges.range(..=at).next_back()?;
        let from = (at - start) as usize;
        let bytes = range.bytes.get(from..from + self.shape.ptr as usize)?;
        let fold = |n: u64, b: &u8| n << 8 | u64::from(*b);
        Some(if self.shape.big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
    }

    /// Writes a pointer.
    pub fn p(&mut self, at: u64, value: u64) {
        self.put(at, self.shape.ptr, value);
    }
}

/// A structure of the synthetic runtime.
#[derive(Clone, Debug)]
pub struct Type {
    /// Whether the descriptor contains its size.
    pub sized: bool,
    /// Size in bytes.
    pub bytes: u64,
    /// Name, offset, written type, bytes.
    pub fields: Vec<(String, u64, String, u64)>,
}

/// All structures. Offsets are generated, and differ from those of every real runtime.
#[derive(Clone, Debug)]
pub struct Layouts {
    ptr: u64,
    /// By name.
    pub types: BTreeMap<String, Type>,
}

impl Layouts {
    /// No structures.
    pub fn new(shape: Shape) -> Layouts {
        Layouts { ptr: shape.ptr, types: BTreeMap::new() }
    }

    /// Size of a written type in bytes: a primitive, a structure (`T`), or an array of either (`T*n`).
    fn bytes_of(&self, written: &str) -> u64 {
        if let Some((element, n)) = written.split_once('*') {
            return self.bytes_of(element) * n.parse::<u64>().unwrap();
        }
        match written {
            "pointer" | "nuint" => self.ptr,
            "uint8" => 1,
            "uint16" => 2,
            "uint32" | "int32" => 4,
            "int64" | "uint64" => 8,
            name => self.types.get(name).unwrap_or_else(|| panic!("no type {name}")).bytes,
        }
    }

    /// Adds a structure: leading padding, fields in reverse order, a gap after each.
    pub fn add(&mut self, name: &str, sized: bool, fields: &[(&str, &str)]) {
        let mut at = (2 + name.len() as u64 % 3) * self.ptr;
        let mut out = Vec::new();
        for (field, written) in fields.iter().rev() {
            let bytes = self.bytes_of(written);
            let align = if bytes >= self.ptr { self.ptr } else { bytes };
            at = at.next_multiple_of(align);
            out.push(((*field).to_string(), at, (*written).to_string(), bytes));
            at += bytes + field.len() as u64 % 3 * align;
        }
        let bytes = (at + self.ptr).next_multiple_of(self.ptr);
        self.types.insert(name.into(), Type { sized, bytes, fields: out });
    }

    /// Adds a structure with fixed offsets.
    pub fn fixed(&mut self, name: &str, bytes: u64, sized: bool, fields: &[(&str, u64, &str)]) {
        let fields = fields.iter().map(|(f, at, t)| ((*f).into(), *at, (*t).into(), self.bytes_of(t))).collect();
        self.types.insert(name.into(), Type { sized, bytes, fields });
    }

    /// Size of a structure in bytes.
    pub fn size(&self, name: &str) -> u64 {
        self.types[name].bytes
    }

    /// Offset and size of a field.
    pub fn field(&self, name: &str, field: &str) -> (u64, u64) {
        let found = self.types[name].fields.iter().find(|f| f.0 == field);
        found.map(|f| (f.1, f.3)).unwrap_or_else(|| panic!("no field {name}.{field}"))
    }
}
