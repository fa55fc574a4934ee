//! Writes redacted copies, which do not have user data: strings, numeric arrays, free memory.
//!
//! Only memory that is known to be needed is copied. Of objects, this is the header, the method table, the length and the fields. Outside of the
//! heap, ranges that were read individually are copied, and the addresses in scanned ranges. Of stacks, only addresses are copied, and words that
//! cannot be part of a text.

use std::io::{self, Write};
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;

use super::sink::Sink;
use super::{Addresses, Reads};
use crate::analysis::RedactionModel;
use crate::analysis::walk::objects_of;
use crate::base::hash::Set;
use crate::base::ranges::{intersect, subtract, union};
use crate::base::{Addr, AddrRange, Count, Endian, Silent};
use crate::clr::exceptions::Exceptions;
use crate::clr::fields::{Storage, Types};
use crate::clr::header::header_distance;
use crate::clr::strings::Strings;
use crate::contract::redacted_crash_report;
use crate::dump::{ThreadStacks, has_no_text};
use crate::gc::{ObjectType, SegmentIndex, TypeIndex};
use crate::heapgraph::Roots;
use crate::memory::Memory;
use crate::model::{GapKind, WalkModel};
use crate::session::roots::RootOptions;
use crate::session::{Dump, Error, Heap, Namer, Runtime};

/// Maximum number of objects found from roots if the heap is incomplete.
const MAX_STRAY: usize = 1 << 20;
/// Maximum nesting of structures.
const MAX_DEPTH: u32 = 16;

/// The layouts by which the contents of objects are left out, of every runtime in the dump; `None` for a runtime without a readable heap.
#[derive(Clone, Debug)]
pub(crate) struct Contents(Vec<Option<ObjectLayout>>);

impl Contents {
    /// # Errors
    /// [`Error::Query`] if the layout of a runtime's objects is not known, so that a copy could have their contents.
    pub(crate) fn of(dump: &Dump) -> Result<Contents, Error> {
        let of = |runtime: &Runtime| runtime.heap().is_ok().then(|| ObjectLayout::of(runtime)).transpose();
        Ok(Contents(dump.runtimes().into_iter().flatten().map(of).collect::<Result<_, _>>()?))
    }
}

/// Where objects have contents.
#[derive(Clone, Copy, Debug)]
struct ObjectLayout {
    /// Offset of the first character of a string.
    first_char: u64,
    /// Size of the header word before an object, without padding; 0 if the descriptor does not have it, so that no reader needs the header.
    header: u64,
}

impl ObjectLayout {
    fn of(runtime: &Runtime) -> Result<ObjectLayout, Error> {
        let (memory, d) = (runtime.memory(), runtime.descriptor());
        if d.is_mono() {
            return Err(Error::Query("the copy cannot be redacted: gcdump does not remove the contents of Mono's objects".into()));
        }
        let unknown =
            |e| Error::Query(format!("the copy cannot be redacted, because the position of the characters in strings is unknown: {e}"));
        let first_char = Strings::bind(memory, d).map_err(unknown)?.content();
        Ok(ObjectLayout { first_char, header: header_distance(d).unwrap_or(0) })
    }
}

/// Treatment of a memory range.
enum Act {
    /// Copied.
    Copy,
    /// Only words that look like addresses are copied.
    Addresses,
    /// Only words that look like addresses, or that cannot be part of a text, are copied.
    Frames,
    /// Overwritten with these bytes.
    Bytes(Vec<u8>),
    /// Overwritten with a letter.
    Letters,
    /// A segment: index of the heap, and index within the heap.
    Segment(usize, SegmentIndex),
}

/// Writes redacted copies.
pub(super) struct Redaction<'d> {
    dump: &'d Dump,
    addresses: Addresses,
    heaps: Vec<RedactedHeap>,
    acts: Vec<(AddrRange, Act)>,
}

impl<'d> Redaction<'d> {
    pub(super) fn new(dump: &'d Dump, contents: &Contents, reads: &Reads) -> Redaction<'d> {
        let runtimes = dump.runtimes().into_iter().flatten().zip(&contents.0);
        let heaps: Vec<RedactedHeap> = runtimes.filter_map(|(runtime, layout)| RedactedHeap::open(runtime, (*layout)?)).collect();
        let mut acts = Vec::new();
        let mut segments = Vec::new();
        for (i, heap) in heaps.iter().enumerate() {
            for (j, segment) in heap.heap.walker().segments_enumerated() {
                let range = AddrRange::new(segment.start, segment.reserved.max(segment.allocated));
                segments.push(range);
                acts.push((range, Act::Segment(i, j)));
            }
        }
        let segments = union(segments, 0);
        let left_out = union(segments.iter().chain(&reads.private).copied().collect(), 0);
        let outside = subtract(&reads.read, &left_out);
        // A range is a text only if it starts in a string object. A corrupt pointer may refer to other memory, and a wrong length could overwrite
        // structures of the runtime.
        let strings = reads.texts.iter().copied().filter(|t| heaps.is_empty() || heaps.iter().any(|h| h.is_text(*t)));
        let texts = subtract(&union(strings.collect(), 0), &left_out);
        let searched = subtract(&subtract(&reads.scanned, &left_out), &outside);
        let reports: Vec<(AddrRange, Vec<u8>)> = crash_reports(dump, reads);
        let replaced = union(texts.iter().copied().chain(reports.iter().map(|(range, _)| *range)).collect(), 0);
        let frames = subtract(&intersect(&outside, &stacks(dump)), &union(reads.spared.clone(), 0));
        acts.extend(subtract(&subtract(&outside, &frames), &replaced).into_iter().map(|r| (r, Act::Copy)));
        acts.extend(subtract(&frames, &replaced).into_iter().map(|r| (r, Act::Frames)));
        acts.extend(reports.into_iter().map(|(range, bytes)| (range, Act::Bytes(bytes))));
        acts.extend(subtract(&searched, &texts).into_iter().map(|r| (r, Act::Addresses)));
        acts.extend(texts.into_iter().map(|r| (r, Act::Letters)));
        acts.sort_by_key(|(range, _)| range.start);
        Redaction { dump, addresses: Addresses::of(dump), heaps, acts }
    }

    /// Writes the copy into `sink`.
    pub(super) fn write<W: Write>(&self, sink: &mut Sink<'_, W>) -> io::Result<RedactionModel> {
        let memory = self.dump.memory();
        let mut counts = RedactionModel::default();
        for (range, act) in &self.acts {
            match act {
                Act::Copy => sink.copy(memory, *range)?,
                Act::Addresses => self.copy_words(sink, *range, |word| self.addresses.contains(word))?,
                Act::Frames => self.copy_words(sink, *range, |word| self.addresses.contains(word) || has_no_text(word))?,
                Act::Bytes(bytes) => sink.put(range.start, bytes)?,
                Act::Letters => sink.fill(*range, letter(memory))?,
                Act::Segment(heap, segment) => {
                    let Some(heap) = self.heaps.get(*heap) else { continue };
                    heap.write(*segment, &self.addresses, sink, &mut counts)?;
                }
            }
        }
        Ok(counts)
    }

    fn copy_words<W: Write>(&self, sink: &mut Sink<'_, W>, range: AddrRange, keeps: impl Fn(u64) -> bool) -> io::Result<()> {
        let memory = self.dump.memory();
        for (at, bytes) in memory.words(range) {
            if keeps(memory.shape().number(bytes)) {
                sink.put(at, bytes)?;
            }
        }
        Ok(())
    }
}

/// Returns the stacks of managed threads.
fn stacks(dump: &Dump) -> Vec<AddrRange> {
    let index = ThreadStacks::new(dump.file());
    let mut out = Vec::new();
    for runtime in dump.runtimes().into_iter().flatten() {
        for thread in runtime.thread_list().map(|threads| threads.data.as_slice()).unwrap_or_default() {
            let native = thread.os_id.and_then(|id| index.thread(id));
            out.extend(native.and_then(|native| index.whole(native, thread.stack_base)));
            out.extend(native.and_then(|native| index.left(dump.file(), native)));
            // If a thread runs on its signal stack, the bounds of its original stack are in the `Thread`.
            out.extend(thread.stack_limit.zip(thread.stack_base).map(|(limit, base)| AddrRange::new(limit, base.max(limit))));
        }
    }
    union(out, 0)
}

/// Returns the crash reports of NativeAOT programs, with their messages removed.
fn crash_reports(dump: &Dump, reads: &Reads) -> Vec<(AddrRange, Vec<u8>)> {
    // A report that begins inside another one is only text of that one.
    let reports = union(reads.reports.clone(), 0).into_iter();
    reports
        .filter_map(|range| Some((range, redacted_crash_report(dump.memory().bytes(range.start, range.len()).ok()?.into_owned()))))
        .collect()
}

/// Returns the replacement for every character.
fn letter(memory: &Memory) -> [u8; 2] {
    match memory.shape().endian {
        Endian::Little => [b'x', 0],
        Endian::Big => [0, b'x'],
    }
}

/// The parts of a type's objects that are copied.
enum Keep {
    /// Everything except these parts (offset and length), which are inline buffers for characters or numbers.
    AllBut(Vec<(u64, u64)>),
    /// Method table and length; the characters are replaced.
    String,
    /// Method table and length, and the dimensions of arrays.
    Head,
    /// Elements of the given width, each without these parts.
    Elements(u64, Vec<(u64, u64)>),
}

struct RedactedHeap {
    heap: Heap,
    namer: Namer,
    layout: ObjectLayout,
    /// Byte arrays with stack traces of exceptions, which contain addresses and no text.
    traces: Set<Addr>,
    /// Sorted objects that heap walks do not find, because parts of the heap are not in the dump.
    strays: Vec<Addr>,
    walks: FxHashMap<SegmentIndex, WalkModel>,
}

impl RedactedHeap {
    fn open(runtime: &Runtime, layout: ObjectLayout) -> Option<RedactedHeap> {
        let (memory, d) = (runtime.memory(), runtime.descriptor());
        let heap = runtime.heap().ok()?;
        let namer = heap.namer();
        let mut traces = Set::default();
        if let (Ok(reader), Some(names)) = (Exceptions::bind(memory, d), namer.names()) {
            let exceptions = objects_of(&heap, |mt| reader.is_exception(names, mt));
            traces.extend(exceptions.data.into_iter().filter_map(|(object, _)| reader.trace_bytes(names, object)));
        }
        let mut out = RedactedHeap { layout, heap, namer, traces, strays: Vec::new(), walks: FxHashMap::default() };
        out.walks = out.heap.type_sums().data.walks.iter().cloned().collect();
        if out.walks.values().any(|w| !w.complete || w.skipped_bytes > 0) {
            out.strays = out.strays();
        }
        Some(out)
    }

    /// Whether `range` starts at the first character of a string.
    fn is_text(&self, range: AddrRange) -> bool {
        range.start.minus(self.layout.first_char).and_then(|at| self.heap.walker().object(at)).is_some_and(|(kind, _)| kind.is_string)
    }

    /// Returns the objects that are reachable from roots but not found by heap walks. Also adds their stack traces to `traces`.
    fn strays(&mut self) -> Vec<Addr> {
        let heap = self.heap.clone();
        let (memory, walker) = (heap.memory(), heap.walker());
        let index = &heap.starts().data;
        let options = RootOptions { weak: true, ..RootOptions::default() };
        let roots = Roots::collect(&heap, &self.namer, &options).data;
        let mut queue: Vec<Addr> = roots.roots.iter().map(|r| r.object).collect();
        queue.extend(roots.dependents.iter().flat_map(|(a, b)| [*a, *b]));
        let reader = Exceptions::bind(memory, heap.runtime().descriptor()).ok();
        let mut seen = Set::default();
        while let Some(object) = queue.pop() {
            if seen.len() >= MAX_STRAY {
                break;
            }
            if index.id_of(object).is_some() || !seen.insert(object) {
                continue;
            }
            let Some((kind, size)) = walker.object(object) else { continue };
            if let (Some(reader), Some(names)) = (&reader, self.namer.names())
                && reader.is_exception(names, kind.method_table)
            {
                self.traces.extend(reader.trace_bytes(names, object));
            }
            kind.gc_desc.references(memory, object, size, |_, to| queue.push(to));
        }
        let mut strays: Vec<Addr> = seen.into_iter().collect();
        strays.sort_unstable();
        strays
    }

    /// Writes the objects of a segment. Memory between them stays zero.
    fn write<W: Write>(
        &self,
        index: SegmentIndex,
        addresses: &Addresses,
        sink: &mut Sink<'_, W>,
        counts: &mut RedactionModel,
    ) -> io::Result<()> {
        let memory = self.heap.memory();
        let Some(segment) = self.heap.walker().segment(index) else { return Ok(()) };
        let end = segment.reserved.max(segment.allocated);
        let mut keeps: FxHashMap<TypeIndex, Keep> = FxHashMap::default();
        let mut strays = self.strays.iter().copied().filter(|a| segment.start <= *a && *a < end).peekable();
        let mut gaps =
            self.walks.get(&index).into_iter().flat_map(|w| &w.gaps).filter(|g| g.kind == GapKind::Corrupt).map(|g| g.range).peekable();
        let mut between = segment.allocated_bytes;
        // An object must not extend past the segment, because memory that must be omitted may follow. The size includes the header word before the
        // object.
        let within = |at: Addr, size: u64| size.min(end.0.saturating_sub(at.0).saturating_add(memory.ptr_bytes()));
        let mut result = Ok(());
        let mut before = |at: Addr, sink: &mut Sink<'_, W>, keeps: &mut FxHashMap<TypeIndex, Keep>, counts: &mut RedactionModel| {
            loop {
                let gap = gaps.peek().map_or(at, |g| g.start);
                let stray = strays.peek().copied().unwrap_or(at);
                if gap.min(stray) >= at {
                    return Ok(());
                }
                if gap <= stray {
                    gaps.next();
                    self.damage(gap, addresses, sink)?;
                } else {
                    strays.next();
                    if let Some((kind, size)) = self.heap.walker().object(stray) {
                        self.object(stray, (&kind, within(stray, size)), addresses, sink, keeps, counts)?;
                    }
                }
            }
        };
        self.heap.walker().visit(
            &Silent,
            |_, s| s.address == segment.address,
            |o| {
                between = between.saturating_sub(o.size.next_multiple_of(memory.ptr_bytes()));
                result = before(o.address, sink, &mut keeps, counts)
                    .and_then(|()| self.object(o.address, (o.ty, within(o.address, o.size)), addresses, sink, &mut keeps, counts));
                if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        );
        result?;
        before(end, sink, &mut keeps, counts)?;
        counts.free_bytes.grow(between);
        Ok(())
    }

    /// Writes the first word of an invalid object so that it stays invalid.
    fn damage<W: Write>(&self, at: Addr, addresses: &Addresses, sink: &mut Sink<'_, W>) -> io::Result<()> {
        let memory = self.heap.memory();
        let Ok(word) = memory.word(at) else { return Ok(()) };
        if word != 0 && !addresses.contains(word) {
            return sink.fill(AddrRange::new(at, at.plus(memory.ptr_bytes())), [0xff; 2]);
        }
        // The word may be a method table, and the length after it impossible.
        sink.copy(memory, AddrRange::new(at, at.plus(memory.ptr_bytes()).plus(4)))
    }

    fn object<W: Write>(
        &self,
        at: Addr,
        (kind, size): (&ObjectType, u64),
        addresses: &Addresses,
        sink: &mut Sink<'_, W>,
        keeps: &mut FxHashMap<TypeIndex, Keep>,
        counts: &mut RedactionModel,
    ) -> io::Result<()> {
        let memory = self.heap.memory();
        let word = memory.ptr_bytes();
        let part = |from: u64, to: u64| AddrRange::new(at.plus(from), at.plus(to.max(from)));
        let add = |n: &mut u64, more: u64| n.grow(more);
        if let Some(header) = at.minus(self.layout.header) {
            sink.copy(memory, AddrRange::new(header, at))?;
        }
        // The size includes the header word, which precedes the object.
        let end = size.saturating_sub(word);
        let head = kind.base_size.saturating_sub(word);
        if kind.is_free {
            add(&mut counts.free_blocks, 1);
            add(&mut counts.free_bytes, size);
            return sink.copy(memory, part(0, word.saturating_mul(2).min(end)));
        }
        if self.traces.contains(&at) {
            return self.trace(part(0, head), part(head, end), addresses, sink);
        }
        match keeps.entry(kind.index).or_insert_with(|| self.keep(kind)) {
            Keep::String => {
                sink.copy(memory, part(0, self.layout.first_char))?;
                // The characters are followed by a NUL.
                let length = size.saturating_sub(kind.base_size);
                add(&mut counts.strings, 1);
                add(&mut counts.string_bytes, length);
                sink.fill(part(self.layout.first_char, self.layout.first_char.saturating_add(length)), letter(memory))
            }
            Keep::Head => {
                add(&mut counts.arrays, 1);
                add(&mut counts.array_bytes, end.saturating_sub(head));
                sink.copy(memory, part(0, head))
            }
            Keep::AllBut(holes) => self.without(at, 0, end, holes, sink),
            Keep::Elements(stride, holes) => {
                sink.copy(memory, part(0, head))?;
                let mut from = head;
                while from < end && *stride > 0 {
                    let to = from.saturating_add(*stride).min(end);
                    self.without(at, from, to, holes, sink)?;
                    from = to;
                }
                Ok(())
            }
        }
    }

    /// Writes the stack trace of an exception: first the number of frames, then words that may be addresses or cannot be text. An address need not be
    /// mapped, because code may have been unloaded and threads may have ended since.
    fn trace<W: Write>(&self, head: AddrRange, frames: AddrRange, addresses: &Addresses, sink: &mut Sink<'_, W>) -> io::Result<()> {
        /// Number of bits of a 64-bit address.
        const ADDRESS: u32 = 48;
        let memory = self.heap.memory();
        /// One more than the largest code point.
        const CODE_POINTS: u64 = 0x11_0000;
        let is_utf32 = |word: u64| word >> 32 < CODE_POINTS && word & 0xffff_ffff < CODE_POINTS;
        let could_be = |word: u64| memory.ptr_bytes() == 8 && word >> ADDRESS == 0 && !is_utf32(word);
        sink.copy(memory, head)?;
        let count = memory.u32(frames.start).ok().filter(|n| u64::from(*n) <= frames.len());
        for (at, bytes) in memory.words(frames) {
            let word = memory.shape().number(bytes);
            if addresses.contains(word) || could_be(word) || has_no_text(word) {
                sink.put(at, bytes)?;
            } else if at == frames.start && count.is_some() {
                sink.copy(memory, AddrRange::new(at, at.plus(4)))?;
            }
        }
        Ok(())
    }

    /// Copies the bytes `from` to `to` of the object at `at`, except `holes`. Offsets of holes are relative to `from`.
    fn without<W: Write>(&self, at: Addr, from: u64, to: u64, holes: &[(u64, u64)], sink: &mut Sink<'_, W>) -> io::Result<()> {
        let mut next = from;
        for (offset, len) in holes {
            let hole = from.saturating_add(*offset);
            sink.copy(self.heap.memory(), AddrRange::new(at.plus(next), at.plus(hole.max(next).min(to))))?;
            next = next.max(hole.saturating_add(*len));
        }
        sink.copy(self.heap.memory(), AddrRange::new(at.plus(next.min(to)), at.plus(to)))
    }

    fn keep(&self, kind: &ObjectType) -> Keep {
        if kind.is_string {
            return Keep::String;
        }
        let word = self.heap.memory().ptr_bytes();
        let types = self.namer.types().ok();
        let info = self.heap.walker().tables().read(kind.method_table).ok();
        let references = info.as_ref().is_some_and(|i| i.contains_pointers);
        if kind.component_size > 0 && !references {
            return Keep::Head;
        }
        let mut holes = Vec::new();
        if kind.is_array {
            let element = self.heap.walker().tables().element_type(kind.method_table).ok();
            if let (Some(types), Some(element)) = (types, element.filter(|_| kind.component_size > word)) {
                // Field offsets of a structure count from its box, which starts one word before the fields.
                add_holes(types, element, 0, word, 0, &mut holes);
            }
        } else if let Some(types) = types {
            add_holes(types, kind.method_table, 0, 0, 0, &mut holes);
        }
        holes.sort_unstable();
        match (kind.is_array, holes.is_empty()) {
            (true, false) => Keep::Elements(kind.component_size, holes),
            _ => Keep::AllBut(holes),
        }
    }
}

/// Finds inline arrays and fixed buffers in the fields of the type at `mt`. They are structures of more than one word with a single, primitive field.
/// The offset of a field in the object is its offset plus `before` minus `shift`.
fn add_holes(types: &Types, mt: Addr, before: u64, shift: u64, depth: u32, out: &mut Vec<(u64, u64)>) {
    let Some(list) = types.instance_fields(mt).filter(|_| depth <= MAX_DEPTH) else { return };
    for field in list.iter().filter(|f| f.storage == Storage::Instance && f.is_structure()) {
        let Some(inner) = field.method_table else { continue };
        let offset = before.saturating_add(field.offset).saturating_sub(shift);
        let Ok(info) = types.names().method_tables().read(inner) else { continue };
        let word = types.pointer_bytes();
        // The base size includes the header word and the method table of the box.
        let bytes = u64::from(info.base_size).saturating_sub(word.saturating_mul(2));
        let fields = types.instance_fields(inner);
        match fields.as_deref().map(Vec::as_slice) {
            Some([one]) if !info.contains_pointers && !one.is_structure() && bytes > word => out.push((offset, bytes)),
            Some(_) => add_holes(types, inner, offset, word, depth.saturating_add(1), out),
            None => {}
        }
    }
}
