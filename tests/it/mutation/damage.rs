//! Mutations derived from a case number.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::base::{Base, Rng};

/// Original bytes of a changed part, or of the whole truncated file.
pub enum Undo {
    At(usize, Vec<u8>),
    Length,
}

/// Restores the file, in reverse order of changes.
pub fn undo(file: &File, base: &Base, list: &[Undo]) {
    for change in list.iter().rev() {
        match change {
            Undo::At(at, bytes) => file.write_all_at(bytes, *at as u64).unwrap(),
            Undo::Length => file.write_all_at(&base.bytes, 0).unwrap(),
        }
    }
}

struct Harm<'a> {
    base: &'a Base,
    file: &'a File,
    rng: Rng,
    undo: Vec<Undo>,
}

/// Truncates the file.
pub fn truncate(base: &Base, case: u64, file: &File) -> Vec<Undo> {
    let mut rng = Rng::new(case);
    // Half of the cuts are in the container's own structures.
    let span = if case % 32 < 16 { base.head + 64 } else { base.bytes.len() };
    file.set_len(rng.below(span) as u64).unwrap();
    vec![Undo::Length]
}

/// Makes one to eight changes, mostly small ones.
pub fn mutate(base: &Base, case: u64, file: &File) -> Vec<Undo> {
    let mut harm = Harm { base, file, rng: Rng::new(case), undo: Vec::new() };
    let changes = 1 + (harm.rng.next().trailing_zeros() as usize).min(7);
    for _ in 0..changes {
        match harm.rng.below(16) {
            0 => harm.flip(),
            1..4 => harm.pointer(),
            4..8 => harm.word(),
            8 => harm.bytes(),
            9 => harm.copy(),
            10 => harm.fill(),
            11 => harm.range(),
            12 => harm.head(),
            13 => harm.text(),
            14 => harm.swap(),
            _ => harm.narrow(),
        }
    }
    harm.undo
}

impl Harm<'_> {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        let at = at.min(self.base.bytes.len() - 1);
        let bytes = &bytes[..bytes.len().min(self.base.bytes.len() - at)];
        let mut old = vec![0; bytes.len()];
        self.file.read_exact_at(&mut old, at as u64).unwrap();
        self.undo.push(Undo::At(at, old));
        self.file.write_all_at(bytes, at as u64).unwrap();
    }

    fn put(&mut self, at: usize, value: u64, len: u64) {
        let bytes = self.base.shape.encode(value & (u64::MAX >> (64 - 8 * len)), len);
        self.write(at, &bytes);
    }

    fn anywhere(&mut self) -> usize {
        self.rng.below(self.base.bytes.len())
    }

    /// Returns a file offset in a structure that affects answers.
    fn place(&mut self) -> usize {
        self.aligned(1)
    }

    /// Returns such an offset at a multiple of `len` bytes from the start of a structure.
    fn aligned(&mut self, len: u64) -> usize {
        let group = self.rng.pick(&self.base.groups).unwrap();
        let start = *self.rng.pick(&group.places).unwrap();
        // Most fields are near the start of a structure, few before it.
        let reach = if self.rng.below(3) == 0 { group.reach } else { group.reach.min(64) };
        let at = start + self.rng.below(reach) / len as usize * len as usize;
        if self.rng.below(8) == 0 { at.saturating_sub(64) } else { at }
    }

    /// Returns a value likely to cause trouble.
    fn value(&mut self) -> u64 {
        let small = self.rng.below(64) as u64;
        match self.rng.below(20) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => u64::MAX - small,
            4 => i64::MAX as u64,
            5 => 1 << 63,
            6 => 0x7fff_ffff,
            7 => 0x8000_0000,
            8 => 0xffff_ffff,
            9 => 0x1_0000_0000,
            10 => 1 << small,
            11 => small,
            12 => self.rng.next(),
            13 => self.rng.next() >> (self.rng.below(56) + 8),
            14 => self.base.ranges[self.rng.below(self.base.ranges.len())].1.wrapping_add(small),
            15 => {
                let (start, len, _) = self.base.ranges[self.rng.below(self.base.ranges.len())];
                start.wrapping_add(len).wrapping_sub(small)
            }
            _ => self.rng.pick(&self.base.addresses).copied().unwrap_or(0).wrapping_add(if small < 32 { 0 } else { small }),
        }
    }

    fn flip(&mut self) {
        let at = self.anywhere();
        let old = self.base.bytes[at];
        let bit = self.rng.below(8);
        self.write(at, &[old ^ 1 << bit]);
    }

    fn bytes(&mut self) {
        let at = self.place();
        let value = [0, 0xff, 0x80, 0x7f, self.rng.next() as u8][self.rng.below(5)];
        self.write(at, &[value]);
    }

    /// Redirects a pointer to itself, to or into another structure, or nowhere: cyclic lists, shared tails.
    fn pointer(&mut self) {
        let at = *self.rng.pick(&self.base.pointers).unwrap();
        let own = self.base.ranges.iter().find(|r| r.2 <= at && at < r.2 + r.1 as usize).map_or(0, |r| r.0 + (at - r.2) as u64);
        let other = *self.rng.pick(&self.base.pointers).unwrap();
        let there = self.base.word(other).unwrap_or(0);
        let value = match self.rng.below(8) {
            0 | 1 => own,
            2..6 => there,
            6 => there.wrapping_add(self.rng.below(32) as u64),
            _ => self.value(),
        };
        self.put(at, value, self.base.shape.ptr);
    }

    fn word(&mut self) {
        let len = self.base.shape.ptr;
        let at = self.aligned(len);
        let value = self.value();
        self.put(at, value, len);
    }

    fn narrow(&mut self) {
        let len = [1u64, 2, 4][self.rng.below(3)];
        let at = self.aligned(len);
        let value = self.value();
        self.put(at, value, len);
    }

    fn copy(&mut self) {
        let (from, to) = (self.place(), self.place());
        let len = 1 << self.rng.below(12);
        let bytes = self.base.bytes[from.min(self.base.bytes.len())..].iter().take(len).copied().collect::<Vec<u8>>();
        self.write(to, &bytes);
    }

    fn fill(&mut self) {
        let at = self.place();
        let bytes = vec![[0, 0xff, 0x41][self.rng.below(3)]; 1 << self.rng.below(12)];
        self.write(at, &bytes);
    }

    /// Changes a range in the container's table: overlapping, moved, or of another length.
    fn range(&mut self) {
        let (start, len, offset) = self.base.ranges[self.rng.below(self.base.ranges.len())];
        let known = [start, len, offset as u64][self.rng.below(3)];
        let width = if self.base.name.contains("minidump") { 8 } else { self.base.shape.ptr };
        let wanted = self.base.shape.encode(known, width);
        let head = &self.base.bytes[..self.base.head];
        let places: Vec<usize> = memchr::memmem::find_iter(head, &wanted).collect();
        if let Some(at) = self.rng.pick(&places).copied() {
            let other = self.base.ranges[self.rng.below(self.base.ranges.len())];
            let value = match self.rng.below(5) {
                0 => other.0,
                1 => other.1,
                2 => known.wrapping_add(self.rng.below(0x2000) as u64),
                3 => known.wrapping_sub(self.rng.below(0x2000) as u64),
                _ => self.value(),
            };
            self.put(at, value, width);
        }
    }

    fn head(&mut self) {
        let len = [1u64, 2, 4, 8][self.rng.below(4)];
        let at = self.rng.below(self.base.head) / len as usize * len as usize;
        let value = self.value();
        self.put(at, value, len);
    }

    /// Replaces a character of the descriptor's text by another one of its syntax.
    fn text(&mut self) {
        let places: Vec<usize> = memchr::memmem::find_iter(&self.base.bytes, b"{\"version\"").collect();
        let Some(start) = self.rng.pick(&places).copied() else { return };
        let at = start + self.rng.below(0x2000);
        let chars = b"0123456789-+.eE{}[]\",:xunt \\\0";
        let c = chars[self.rng.below(chars.len())];
        self.write(at, &[c]);
    }

    fn swap(&mut self) {
        let len = self.base.shape.ptr as usize;
        let (a, b) = (*self.rng.pick(&self.base.pointers).unwrap(), *self.rng.pick(&self.base.pointers).unwrap());
        let (x, y) = (self.base.bytes[a..a + len].to_vec(), self.base.bytes[b..b + len].to_vec());
        self.write(a, &y);
        self.write(b, &x);
    }
}
