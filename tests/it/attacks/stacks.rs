//! Attacks on the stack walker: real processes whose code map, stacks, threads and thread statics are replaced. All of them are small, and
//! refer to the same memory many times.

use std::io::Write;
use std::path::Path;

use super::types::Real;
use crate::corpus;

/// Address of repeated memory and stacks.
const MAPPED: u64 = 0x6200_0000_0000;
const STACK: u64 = 0x6300_0000_0000;
/// Native code that an unwind table describes.
const NATIVE: u64 = 0x6400_0000_0000;
/// Bytes of a method and its unwind entry.
const METHOD: u64 = 32;
const LENGTH: u64 = 20;

/// Writes *(address, value, bytes)* in memory that begins at `start`.
fn put(memory: &mut [u8], start: u64, places: &[(u64, u64, usize)]) {
    for (at, value, len) in places {
        memory[(at - start) as usize..][..*len].copy_from_slice(&value.to_le_bytes()[..*len]);
    }
}

fn words(list: impl IntoIterator<Item = u64>) -> Vec<u8> {
    list.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// A stream of bits, lowest first.
#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn put(mut self, value: u64, count: u32) -> Bits {
        self.0.extend((0..count).map(|i| value >> i & 1 == 1));
        self
    }

    fn number(mut self, mut value: u64, base: u32) -> Bits {
        loop {
            let more = value >> base != 0;
            self = self.put(value & ((1 << base) - 1), base).put(u64::from(more), 1);
            value >>= base;
            if !more {
                return self;
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.chunks(8).map(|bits| bits.iter().enumerate().fold(0, |byte, (i, bit)| byte | u8::from(*bit) << i)).collect()
    }
}

/// Makes GC info of a method with that many slots, of which only untracked ones are reported: at the caller's stack pointer.
fn gc_info(version: u64, tracked: u64, untracked: u64) -> Vec<u8> {
    let kind = if version < 4 { 2 } else { 0 };
    let head = Bits::default().put(0, 2).put(0, kind).number(LENGTH, 8).number(0, 2);
    let mut out = head.put(0, 1).put(1, 1).number(tracked, 2).number(untracked, 1).bytes();
    // Further slots are zeros, so they have the same location.
    out.resize(out.len() + (tracked + untracked) as usize, 0);
    out
}

/// A process whose code consists of `count` methods with the same unwind info: frames of 16 bytes.
struct World {
    real: Real,
    methods: u64,
}

fn net8() -> Real {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&zstd::decode_all(std::fs::File::open(corpus::dump("net8-wks-basics-heap")).unwrap()).unwrap()).unwrap();
    Real::of(file.path())
}

impl World {
    /// `info` returns the address of the GC info of each method.
    fn new(real: Real, count: u64, info: impl Fn(u64) -> u64) -> World {
        // One unwind code: eight bytes are popped from the stack, after a prologue of four bytes.
        World::unwound_by(&[1, 4, 1, 0, 4, 2], real, count, info)
    }

    /// Makes a process whose methods have this unwind info, of at most 64 bytes.
    fn unwound_by(unwind: &[u8], mut real: Real, count: u64, info: impl Fn(u64) -> u64) -> World {
        let start = real.room();
        let at = |name: &str, field: &str| real.at(name, field);
        let (header, functions) = (at("RealCodeHeader", "GCInfo"), at("RealCodeHeader", "UnwindInfos"));
        let stride = (functions + 12).next_multiple_of(16);
        let headers = start + 64;
        let code = (headers + stride * count).next_multiple_of(256);
        let nibbles = code + METHOD * count + 256;
        let mut memory = vec![0; (nibbles - start + count.div_ceil(8) * 4 + 64) as usize];
        memory[..unwind.len()].copy_from_slice(unwind);
        let method_desc = real.method_desc();
        for i in 0..count {
            let (here, method) = (headers + stride * i, code + METHOD * i + 8);
            let entry = here + functions;
            let (begin, end) = (at("RuntimeFunction", "BeginAddress"), at("RuntimeFunction", "EndAddress"));
            put(
                &mut memory,
                start,
                &[
                    (method - 8, here, 8),
                    (here + header, info(i), 8),
                    (here + at("RealCodeHeader", "MethodDesc"), method_desc, 8),
                    (here + at("RealCodeHeader", "NumUnwindInfos"), 1, 4),
                    (entry + begin, method - start, 4),
                    (entry + end, method + LENGTH - start, 4),
                    (entry + at("RuntimeFunction", "UnwindData"), 0, 4),
                ],
            );
        }
        (0..count.div_ceil(8)).for_each(|i| put(&mut memory, start, &[(nibbles + 4 * i, 0x3333_3333, 4)]));
        let end = nibbles;
        assert_eq!(real.add(&memory), start);
        let mut node = vec![0; 256];
        let heap = |field: &str| at_node(&real, field);
        put(&mut node, 0, &[(heap("StartAddress"), code, 8), (heap("EndAddress"), end, 8)]);
        put(&mut node, 0, &[(heap("MapBase"), code, 8), (heap("HeaderMap"), nibbles, 8)]);
        let node = real.add(&node);
        let mut section = vec![0; 256];
        let field = |name: &str| real.at("RangeSection", name);
        put(&mut section, 0, &[(field("RangeBegin"), start, 8), (field("RangeEndOpen"), end, 8), (field("Flags"), 2, 4)]);
        put(&mut section, 0, &[(field("HeapList"), node, 8)]);
        let section = real.add(&section);
        let fragment = fragment(&real, (0, start, end, section));
        let fragment = real.add(&fragment);
        real.map_code(fragment);
        World { real, methods: code + 8 }
    }

    /// Returns a return address in a method.
    fn return_to(&self, i: u64) -> u64 {
        self.methods + METHOD * i + 8
    }

    /// Makes a stack of `count` frames, of which frame `i` returns to method `method(i)`, and puts the thread on it.
    fn stack(&mut self, count: u64, method: impl Fn(u64) -> u64) {
        let frames = (0..count).flat_map(|i| [1, self.return_to(method(i))]).chain([1, 0]);
        let bytes = words(frames);
        self.real.map_at(STACK, &bytes);
        let start = self.return_to(method(0)) - 4;
        self.real.run_at(start, STACK);
    }
}

fn at_node(real: &Real, field: &str) -> u64 {
    real.at("CodeHeapListNode", field)
}

/// Makes a fragment of the code map: next, begin, end, section.
fn fragment(real: &Real, (next, begin, end, section): (u64, u64, u64, u64)) -> Vec<u8> {
    let mut out = vec![0; 64];
    let at = |field: &str| real.at("RangeSectionFragment", field);
    put(&mut out, 0, &[(at("Next"), next, 8), (at("RangeBegin"), begin, 8), (at("RangeEndOpen"), end, 8)]);
    put(&mut out, 0, &[(at("RangeSection"), section, 8)]);
    out
}

/// A method of 100,000 slots with a thousand frames.
pub fn slots(_: &Path, part: u64) -> Vec<u8> {
    many_slots(100_000, 1000 / part)
}

/// A method of 16 slots with 200,000 frames.
pub fn few_slots(_: &Path, part: u64) -> Vec<u8> {
    many_slots(16, 200_000 / part)
}

fn many_slots(slots: u64, frames: u64) -> Vec<u8> {
    let mut real = Real::new();
    let info = real.add(&gc_info(4, 0, slots));
    let mut world = World::new(real, 1, |_| info);
    world.stack(frames, |_| 0);
    world.real.finish()
}

/// Methods with the same GC info of 100,000 slots at as many addresses.
pub fn methods(_: &Path, part: u64) -> Vec<u8> {
    let (mut real, count) = (Real::new(), 3900 / part);
    let info = gc_info(4, 100_000, 0);
    let stride = (info.len() as u64).next_multiple_of(0x1000);
    real.map_again(MAPPED, stride, count, &info);
    let mut world = World::new(real, count, |i| MAPPED + stride * i);
    world.stack(count, |i| i);
    world.real.finish()
}

/// Threads with one id, on one stack.
pub fn one_stack(_: &Path, part: u64) -> Vec<u8> {
    let mut world = World::new(Real::new(), 1, |_| 0);
    world.stack(5000, |_| 0);
    let (id, real) = (world.real.thread().1, &mut world.real);
    let (os_id, link) = (real.at("Thread", "OSId"), real.at("Thread", "Frame"));
    real.threads(5000 / part, |_, _| vec![(os_id, id, 4), (link, u64::MAX, 8)]);
    world.real.finish()
}

/// OS threads on one stack, each one frame further up.
pub fn shifted_stacks(_: &Path, part: u64) -> Vec<u8> {
    let mut world = World::new(Real::new(), 1, |_| 0);
    let count = 10_000 / part;
    world.stack(2 * count, |_| 0);
    let ip = world.return_to(0);
    let real = &mut world.real;
    (0..count).for_each(|i| real.os_thread(0x10_0000 + i, ip, STACK + 16 * i));
    let (os_id, link) = (real.at("Thread", "OSId"), real.at("Thread", "Frame"));
    real.threads(count, |i, _| vec![(os_id, 0x10_0000 + i, 4), (link, u64::MAX, 8)]);
    world.real.finish()
}

/// Threads on their signal stacks, each in a method whose frame of 16 MB contains the same chain of frames.
pub fn within(_: &Path, part: u64) -> Vec<u8> {
    const SIZE: u64 = 1 << 24;
    let unwind = [&[1, 4, 3, 0, 4, 0x11][..], &(SIZE as u32).to_le_bytes()].concat();
    let mut world = World::unwound_by(&unwind, Real::new(), 1, |_| 0);
    let (count, links, ip, chain) = (10_000 / part, 60_000 / part, world.return_to(0), STACK + SIZE / 2);
    let real = &mut world.real;
    real.map_at(STACK + SIZE, &words((0..2 * count).map(|_| 0)));
    real.map_at(chain, &words((0..links).flat_map(|i| [0xfff, if i + 1 < links { chain + 16 * (i + 1) } else { u64::MAX }])));
    (0..count).for_each(|i| real.os_thread(0x10_0000 + i, ip, STACK + 16 * i));
    let (os_id, link, state) = (real.at("Thread", "OSId"), real.at("Thread", "Frame"), real.at("Thread", "State"));
    real.threads(count, |i, _| vec![(os_id, 0x10_0000 + i, 4), (link, chain, 8), (state, 0x40, 4)]);
    world.real.finish()
}

/// A chain of frames of 16 bytes, of a type without a layout.
pub fn chain(_: &Path, part: u64) -> Vec<u8> {
    let mut real = Real::new();
    let count = 200_000 / part;
    real.map_at(STACK, &words((0..count).flat_map(|i| [0xfff, if i + 1 < count { STACK + 16 * (i + 1) } else { u64::MAX }])));
    real.run_at(0, STACK);
    real.frames_at(STACK);
    real.finish()
}

/// Threads with frames in code for which a list of 8192 fragments is searched in vain.
pub fn fragments(_: &Path, part: u64) -> Vec<u8> {
    let mut real = Real::new();
    let list = real.room();
    let one = |i: u64| fragment(&real, (if i < 8191 { list + 64 * (i + 1) } else { 0 }, 1, 2, 0));
    let memory: Vec<u8> = (0..8192).flat_map(one).collect();
    assert_eq!(real.add(&memory), list);
    real.map_code(list);
    let frame = |field: &str| real.at("InlinedCallFrame", field);
    let (sp, ip, frame_at) = (frame("CallSiteSP"), frame("CallerReturnAddress"), real.at("Thread", "Frame"));
    let (next, identifier) = (real.at("Frame", "Next"), real.identifier("InlinedCallFrame"));
    let (os_id, count) = (real.at("Thread", "OSId"), 95_000 / part);
    let stride = [sp, ip, frame("CalleeSavedFP")].into_iter().max().unwrap() + 8;
    let mut frames = vec![0; (stride * count) as usize];
    for i in 0..count {
        let at = stride * i;
        put(&mut frames, 0, &[(at, identifier, 8), (at + next, u64::MAX, 8), (at + sp, STACK, 8), (at + ip, NATIVE + (i << 17), 8)]);
    }
    let frames = real.add(&frames);
    real.threads(count, |i, _| vec![(os_id, 0x10_0000 + i, 4), (frame_at, frames + stride * i, 8)]);
    real.finish()
}

/// Threads with the thread statics of a real one.
pub fn shared_statics(_: &Path, part: u64) -> Vec<u8> {
    let mut real = Real::new();
    let (at, block) = real.thread_statics();
    real.threads(95_000 / part, |_, _| vec![(at, block, 8)]);
    real.finish()
}

/// Threads with blocks of thread statics, all with the objects of a real one.
pub fn statics(_: &Path, part: u64) -> Vec<u8> {
    let mut real = Real::new();
    let (at, block) = real.thread_statics();
    let copy = words((0..8).map(|i| real.word_if_any(block + 8 * i)));
    let count = 95_000 / part;
    let blocks = real.add(&copy.repeat(count as usize));
    real.threads(count, |i, _| vec![(at, blocks + 64 * i, 8)]);
    real.finish()
}

/// Offsets in a frame of a native helper of .NET 8.
struct HelperFrame {
    identifier: u64,
    state: u64,
    slots: u64,
    count: u64,
    next: u64,
}

impl HelperFrame {
    fn of(real: &Real, ty: &str) -> HelperFrame {
        let at = |field: &str| real.at("HelperMethodFrame", field);
        let (state, slots, count) = (at("MachineState"), at("Slots"), at("SlotCount"));
        HelperFrame { identifier: real.identifier(ty), state, slots, count, next: real.at("Frame", "Next") }
    }
}

/// Frames of native helpers that protect 65,535 references each.
pub fn protected(_: &Path, part: u64) -> Vec<u8> {
    let mut real = net8();
    let (helper, count) = (HelperFrame::of(&real, "HelperMethodFrame_PROTECTOBJ"), 10_000 / part);
    let state = |field: &str| helper.state + real.at("MachineState", field);
    let (ip, sp, returns) = (state("Rip"), state("Rsp"), state("ReturnAddress"));
    let (stride, native) = (0x400, real.native());
    let array = real.add(&words(std::iter::repeat_n(1, 65_535)));
    let mut frames = vec![0; (stride * count) as usize];
    for i in 0..count {
        let (at, next) = (stride * i, if i + 1 < count { STACK + stride * (i + 1) } else { u64::MAX });
        put(&mut frames, 0, &[(at, helper.identifier, 8), (at + helper.next, next, 8), (at + helper.slots, array, 8)]);
        put(&mut frames, 0, &[(at + helper.count, 65_535, 4), (at + ip, native, 8), (at + sp, STACK + at + 0x3f0, 8)]);
        put(&mut frames, 0, &[(at + returns, native, 8)]);
    }
    real.map_at(STACK, &frames);
    real.run_at(native, STACK);
    real.frames_at(STACK);
    real.finish()
}

/// Frames of native helpers, each below 31 native frames with unwind information of 8 KB.
pub fn unwound(_: &Path, part: u64) -> Vec<u8> {
    let mut world = World::new(net8(), 1, |_| 0);
    let managed = world.return_to(0);
    let real = &mut world.real;
    // A table of one function, its FDE, and the CIE.
    let (table, cie) = (NATIVE + 0x10_0000, [0x0c_u8, 7, 16, 0x90, 1]);
    let mut memory = words([0x0_3b03_0b01_u64, 1]);
    put(&mut memory, 0, &[(8, 1, 4)]);
    memory.extend((NATIVE.wrapping_sub(table) as u32).to_le_bytes());
    memory[12..16].copy_from_slice(&(NATIVE.wrapping_sub(table) as u32).to_le_bytes());
    memory[16..20].copy_from_slice(&64u32.to_le_bytes());
    memory.resize(32, 0);
    let mut common = vec![0, 0, 0, 0, 1, 0, 1, 0x78, 16];
    common.extend(cie);
    common.resize(20, 0);
    memory.extend(20u32.to_le_bytes());
    memory.extend(common);
    memory.resize(64, 0);
    let entry: Vec<u8> = [0x0a, 0x0b].repeat(4000);
    memory.extend((20 + entry.len() as u32).to_le_bytes());
    memory.extend(36u32.to_le_bytes());
    memory.extend(words([NATIVE, 0x8_0000]));
    memory.extend(entry);
    real.map_at(table, &memory);
    real.unwind_table(table);
    let (helper, count) = (HelperFrame::of(real, "HelperMethodFrame"), 10_000 / part);
    let state = |field: &str| helper.state + real.at("MachineState", field);
    let (ip, sp) = (state("CaptureRip"), state("CaptureRsp"));
    let (stride, native, own) = (0x400, real.native(), 0x1e0);
    let mut frames = vec![0; (stride * count) as usize];
    for i in 0..count {
        let (at, next) = (stride * i, if i + 1 < count { STACK + stride * (i + 1) } else { u64::MAX });
        put(&mut frames, 0, &[(at, helper.identifier, 8), (at + helper.next, next, 8), (at + ip, NATIVE + 16 + 40 * i % 0x7_0000, 8)]);
        put(&mut frames, 0, &[(at + sp, STACK + at + own - 8, 8)]);
        for step in 0..32 {
            let to = if step < 31 { NATIVE + 16 + (40 * i + step + 1) % 0x7_0000 } else { managed };
            put(&mut frames, 0, &[(at + own + 16 * step + 8, to, 8)]);
        }
        put(&mut frames, 0, &[(at + own + 512 + 8, native, 8)]);
    }
    real.map_at(STACK, &frames);
    real.run_at(native, STACK);
    real.frames_at(STACK);
    world.real.finish()
}
