//! Walks stacks of real processes in which words are changed.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use gcdump::OpenOptions as Opening;
use gcdump::analysis::{StacksQuery, stacks as answer};
use gcdump::internals::base::Addr;
use gcdump::internals::dump::{Bytes, DumpFile, OpenOptions, open_bytes};
use gcdump::internals::session::Dump;

use crate::{on_this_thread, within};

/// Dumps whose stacks are walked: .NET 10 and 8 on Linux, and .NET 10 on Windows.
pub const BASES: [&[u8]; 3] = [
    include_bytes!("../../dumps/corpus/net10-wks-stacks-mini.dmp.zst"),
    include_bytes!("../../dumps/corpus/net8-wks-basics-heap.dmp.zst"),
    include_bytes!("../../dumps/corpus/win-net10-wks-basics-full.dmp.zst"),
];
/// Most changes of one input, and most words that one change copies.
const CHANGES: usize = 64;
const COPIED: usize = 256;
const WORD: usize = 8;

/// A dump, and the words that its walks read.
struct Base {
    file: DumpFile,
    /// Address and file offset of each.
    words: Vec<(u64, usize)>,
}

impl Base {
    fn of(packed: &[u8]) -> Base {
        let bytes = zstd::decode_all(packed).expect("it is packed");
        let file = open_bytes(Bytes::Owned(bytes), Path::new("fuzz.dmp"), &OpenOptions::default()).expect("a dump");
        let read = |walk: bool| {
            let dump = Dump::of(file.clone(), &Opening { record: true, ..Opening::default() });
            let runtime = dump.runtime().expect("a runtime");
            let _ = (runtime.thread_list(), runtime.types(), walk.then(|| runtime.try_stacks(true)));
            let recorded = dump.memory().recorder().expect("it records").read();
            recorded.iter().flat_map(|range| (range.start.0..range.end.0).step_by(WORD)).collect::<Vec<u64>>()
        };
        let before = read(false);
        let place = |at: &u64| {
            let range = file.ranges.iter().find(|r| r.start.0 <= *at && at + WORD as u64 <= r.start.0 + r.len)?;
            Some((*at, usize::try_from(range.offset + at - range.start.0).ok()?))
        };
        let words: Vec<_> = read(true).iter().filter(|at| before.binary_search(at).is_err()).filter_map(place).collect();
        assert!(!words.is_empty(), "the stacks are read");
        Base { file, words }
    }
}

static READ: LazyLock<[Base; BASES.len()]> = LazyLock::new(|| {
    on_this_thread();
    BASES.map(Base::of)
});

/// Changes a dump that the first byte selects, and walks its stacks or runs the whole analysis of them. A change has eight bytes: its kind, a
/// thread and a register, a word, another word, and a distance.
pub fn stacks(bytes: &[u8]) {
    let Some(([pick], changes)) = bytes.split_first_chunk() else { return };
    let base = &READ[usize::from(*pick) % BASES.len()];
    let asked = usize::from(*pick) / BASES.len();
    let (mut file, mut memory) = (base.file.clone(), base.file.bytes.to_vec());
    for [kind, register, w0, w1, o0, o1, d0, d1] in changes.as_chunks::<8>().0.iter().take(CHANGES) {
        let word = |low: &u8, high: &u8| base.words[usize::from(u16::from_le_bytes([*low, *high])) % base.words.len()];
        let ((_, at), (address, other), distance) = (word(w0, w1), word(o0, o1), i16::from_le_bytes([*d0, *d1]));
        let value = |at: usize| u64::from_le_bytes(*base.file.bytes[at..].first_chunk().expect("a word"));
        let number = u32::from_le_bytes([*o0, *o1, *d0, *d1]);
        let near = |value: u64| value.wrapping_add_signed(distance.into());
        let mut put = |at: usize, bytes: &[u8]| memory[at..][..bytes.len()].copy_from_slice(bytes);
        match kind % 8 {
            0 => put(at, &i64::from(number.cast_signed()).to_le_bytes()),
            1 => put(at, &near(value(other)).to_le_bytes()),
            2 => put(at, &near(address).to_le_bytes()),
            3 => {
                let room = (memory.len() - at.max(other)) / WORD;
                let len = (usize::from(distance.unsigned_abs()) % COPIED).min(room) * WORD;
                memory[at..at + len].copy_from_slice(&base.file.bytes[other..other + len]);
            }
            4 => put(at, &(value(at) ^ 1 << (o0 % 64)).to_le_bytes()),
            5 => put(at + usize::from(register & 4), &number.to_le_bytes()),
            kind => {
                let value = if kind == 6 { near(value(other)) } else { near(address) };
                let threads = file.threads.len().max(1);
                let Some(thread) = file.threads.get_mut(usize::from(register >> 4) % threads) else { continue };
                match register & 0xf {
                    0 => thread.instruction_pointer = Some(Addr(value)),
                    1 => thread.stack_pointer = Some(Addr(value)),
                    n => thread.registers.iter_mut().skip(usize::from(n) - 2).take(1).for_each(|r| r.value = value),
                }
            }
        }
    }
    file.bytes = Arc::new(Bytes::Owned(memory));
    within(file.bytes.len(), 192 << 20, 16, || {
        let dump = Dump::of(file, &Opening::default());
        let Ok(runtime) = dump.runtime() else { return };
        if asked & 1 == 0 {
            for [frames, most] in runtime.try_stacks(asked & 2 == 2) {
                assert!(frames <= most + 1, "{frames} frames instead of {most}");
            }
        } else {
            let query = StacksQuery { roots: asked & 2 == 2, arguments: asked & 4 == 4, merge: asked & 8 == 8, ..StacksQuery::default() };
            let _ = answer(&runtime, &query);
        }
    });
}
