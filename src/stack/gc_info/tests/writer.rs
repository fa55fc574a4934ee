//! Writes GC info according to the format, without code of the decoder.

use crate::base::Arch;

/// A bit stream, with the lowest bit of a byte first.
#[derive(Clone, Debug, Default)]
pub(super) struct Writer {
    pub(super) bits: Vec<bool>,
}

impl Writer {
    pub(super) fn put(&mut self, value: u64, count: u32) -> &mut Writer {
        assert!(count == 64 || value >> count == 0, "{value} has more than {count} bits");
        self.bits.extend((0..count).map(|i| value >> i & 1 == 1));
        self
    }

    pub(super) fn flag(&mut self, set: bool) -> &mut Writer {
        self.put(u64::from(set), 1)
    }

    pub(super) fn unsigned(&mut self, mut value: u64, base: u32) -> &mut Writer {
        loop {
            let more = value >> base != 0;
            self.put(value & ((1 << base) - 1), base).flag(more);
            value >>= base;
            if !more {
                return self;
            }
        }
    }

    pub(super) fn signed(&mut self, mut value: i64, base: u32) -> &mut Writer {
        loop {
            let last = value >> (base - 1) == 0 || value >> (base - 1) == -1;
            self.put((value as u64) & ((1 << base) - 1), base).flag(!last);
            value >>= base;
            if last {
                return self;
            }
        }
    }

    pub(super) fn align(&mut self) -> &mut Writer {
        while !self.bits.len().is_multiple_of(8) {
            self.flag(false);
        }
        self
    }

    fn append(&mut self, other: &Writer) -> &mut Writer {
        self.bits.extend(&other.bits);
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| bits.iter().enumerate().fold(0, |byte, (i, bit)| byte | u8::from(*bit) << i);
        self.bits.chunks(8).map(byte).collect()
    }

    /// Writes a list of flags as one bit each.
    fn each(&mut self, set: &[bool]) -> &mut Writer {
        self.bits.extend(set);
        self
    }

    /// Writes a list of flags as lengths of runs.
    fn runs(&mut self, set: &[bool], swapped: bool) -> &mut Writer {
        let (dead, live) = if swapped { (2, 4) } else { (4, 2) };
        self.flag(swapped);
        let first = set.iter().take_while(|s| !**s).count();
        self.unsigned(first as u64, dead);
        for run in set[first..].chunk_by(|a, b| a == b) {
            self.unsigned(run.len() as u64 - 1, if run[0] { live } else { dead });
        }
        self
    }

    /// Writes a list of flags in the form selected by the two lowest bits of `form`.
    fn either(&mut self, set: &[bool], form: u8) -> &mut Writer {
        if form & 1 == 0 { self.flag(false).each(set) } else { self.flag(true).runs(set, form & 2 != 0) }
    }
}

/// A stack slot: base, offset in words, flags.
pub(super) type StackSlot = (u64, i64, u64);

/// A method from the view of its compiler. Offsets are in units.
#[derive(Clone, Debug)]
pub(super) struct Method {
    pub(super) version: u32,
    pub(super) arch: Arch,
    pub(super) fat: bool,
    pub(super) flags: u64,
    pub(super) code_length: u32,
    pub(super) frame_register: u64,
    pub(super) outgoing_words: u64,
    /// Safe points as stored, with the live tracked slots.
    pub(super) safe_points: Vec<(u32, Vec<bool>)>,
    /// Whether to write equal sets of slots only once, with a table of their offsets.
    pub(super) table: bool,
    pub(super) ranges: Vec<(u32, u32)>,
    /// The live tracked slots for each unit inside ranges.
    pub(super) lives: Vec<Vec<bool>>,
    /// Numbers and flags of registers. Registers with flags come first; both groups are ascending.
    pub(super) registers: Vec<(u64, u64)>,
    /// Tracked stack slots. Slots with flags come first; both groups are ascending.
    pub(super) stack: Vec<StackSlot>,
    pub(super) untracked: Vec<StackSlot>,
    /// The forms in which lists of slots are written, used in turn.
    pub(super) forms: Vec<u8>,
}

impl Method {
    /// An x64 method without slots, in `version`.
    pub(super) fn new(version: u32, code_length: u32) -> Method {
        Method {
            version,
            arch: Arch::X64,
            fat: false,
            flags: 0,
            code_length,
            frame_register: 5,
            outgoing_words: 0,
            safe_points: Vec::new(),
            table: false,
            ranges: Vec::new(),
            lives: Vec::new(),
            registers: Vec::new(),
            stack: Vec::new(),
            untracked: Vec::new(),
            forms: vec![0],
        }
    }

    pub(super) fn tracked(&self) -> usize {
        self.registers.len() + self.stack.len()
    }

    fn arm(&self) -> bool {
        self.arch == Arch::Arm64
    }

    /// The code length in the units of offsets.
    pub(super) fn units(&self) -> u32 {
        if self.arm() && self.version < 4 { self.code_length * 4 } else { self.code_length }
    }

    fn header(&self, out: &mut Writer) {
        out.flag(self.fat);
        let has = |flag: u64| self.fat && self.flags & flag != 0;
        if self.fat {
            out.put(self.flags, 10);
        } else {
            assert!(self.flags & !0x40 == 0 && self.ranges.is_empty() && self.outgoing_words == 0, "{self:?} needs a fat header");
            out.flag(self.flags == 0x40);
        }
        if self.version < 4 {
            out.put(1, if self.fat { 4 } else { 2 });
        }
        out.unsigned(u64::from(self.code_length), 8);
        if has(4) {
            out.unsigned(3, 5).unsigned(2, 3);
        } else if has(0x30) {
            out.unsigned(3, 5);
        }
        if has(4) {
            out.signed(-5, 6);
        }
        if has(8) && self.version < 4 {
            out.signed(-6, 6);
        }
        if has(0x30) {
            out.signed(-700, 6);
        }
        let (usual, base) = if self.arm() { (29, 2) } else { (5, 3) };
        if has(0x40) {
            out.unsigned(self.frame_register ^ usual, base);
        }
        if has(0x100) {
            out.unsigned(1000, 4);
            if self.arm() {
                out.unsigned(17, 4);
            }
        }
        if has(0x200) {
            out.signed(-2, 6);
        }
        if self.fat {
            out.unsigned(self.outgoing_words, 3);
        }
        out.unsigned(self.safe_points.len() as u64, if self.arm() { 3 } else { 2 });
        if self.fat {
            out.unsigned(self.ranges.len() as u64, 1);
        }
    }

    fn slots(&self, out: &mut Writer) {
        out.flag(!self.registers.is_empty());
        if !self.registers.is_empty() {
            out.unsigned(self.registers.len() as u64, if self.arm() { 3 } else { 2 });
        }
        let any = !self.stack.is_empty() || !self.untracked.is_empty();
        out.flag(any);
        if any {
            out.unsigned(self.stack.len() as u64, 2).unsigned(self.untracked.len() as u64, 1);
        }
        let mut last = None;
        for (number, flags) in &self.registers {
            match last {
                Some((before, 0)) => out.unsigned(number - before - 1, 2),
                _ => out.unsigned(*number, 3).put(*flags, 2),
            };
            last = Some((*number, *flags));
        }
        for list in [&self.stack, &self.untracked] {
            let mut last = None;
            for (base, words, flags) in list {
                out.put(*base, 2);
                match last {
                    Some((before, 0)) => out.unsigned((words - before) as u64, 4),
                    _ => out.signed(*words, 6).put(*flags, 2),
                };
                last = Some((*words, *flags));
            }
        }
    }

    fn live_at_safe_points(&self, out: &mut Writer, forms: &mut impl Iterator<Item = u8>) {
        out.flag(self.table);
        if !self.table {
            self.safe_points.iter().for_each(|(_, set)| _ = out.each(set));
            return;
        }
        let mut blobs = Writer::default();
        let mut known: Vec<(&[bool], usize)> = Vec::new();
        let offsets: Vec<usize> = self
            .safe_points
            .iter()
            .map(|(_, set)| {
                if let Some((_, at)) = known.iter().find(|(k, _)| k == set) {
                    return *at;
                }
                known.push((set, blobs.bits.len()));
                blobs.either(set, forms.next().unwrap());
                known.last().unwrap().1
            })
            .collect();
        let width = usize::BITS - offsets.iter().max().unwrap().leading_zeros().min(usize::BITS - 1);
        out.unsigned(u64::from(width) - 1, 3);
        offsets.iter().for_each(|offset| _ = out.put(*offset as u64, width));
        out.align().append(&blobs);
    }

    fn live_in_ranges(&self, out: &mut Writer, forms: &mut impl Iterator<Item = u8>) {
        let mut blobs = Writer::default();
        let mut before = vec![false; self.tracked()];
        let pointers: Vec<usize> = self
            .lives
            .chunks(64)
            .map(|chunk| {
                if chunk.iter().all(|set| *set == before) {
                    return 0;
                }
                before.clone_from(chunk.last().unwrap());
                let at = blobs.bits.len() + 1;
                let candidates: Vec<bool> = (0..self.tracked()).map(|slot| chunk.iter().any(|set| set[slot])).collect();
                blobs.either(&candidates, forms.next().unwrap());
                let chosen: Vec<usize> = (0..self.tracked()).filter(|slot| candidates[*slot]).collect();
                chosen.iter().for_each(|slot| _ = blobs.flag(before[*slot]));
                for slot in chosen {
                    for t in (1..chunk.len()).filter(|t| chunk[*t][slot] != chunk[*t - 1][slot]) {
                        blobs.flag(true).put(t as u64, 6);
                    }
                    blobs.flag(false);
                }
                at
            })
            .collect();
        let width = usize::BITS - pointers.iter().max().unwrap().leading_zeros();
        out.unsigned(u64::from(width), 3);
        if width > 0 {
            pointers.iter().for_each(|pointer| _ = out.put(*pointer as u64, width));
            out.align().append(&blobs);
        }
    }

    /// Encodes the method.
    pub(super) fn encode(&self) -> Writer {
        let mut out = Writer::default();
        let mut forms = self.forms.iter().copied().cycle();
        self.header(&mut out);
        let width = (0..32).find(|bits| 1u64 << bits >= u64::from(self.units())).unwrap();
        self.safe_points.iter().for_each(|(offset, _)| _ = out.put(u64::from(*offset), width));
        let mut last = 0;
        for (start, end) in &self.ranges {
            out.unsigned(u64::from(start - last), 6).unsigned(u64::from(end - start - 1), 6);
            last = *end;
        }
        self.slots(&mut out);
        if self.tracked() > 0 {
            if !self.safe_points.is_empty() {
                self.live_at_safe_points(&mut out, &mut forms);
            }
            if !self.ranges.is_empty() {
                self.live_in_ranges(&mut out, &mut forms);
            }
        }
        out
    }
}
