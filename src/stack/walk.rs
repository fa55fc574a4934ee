//! Walks the stack of one thread: unwinds managed frames, follows the explicit frames between them, and lists the references that each frame
//! holds.
//!
//! Source: `docs/internals/stacks.md#the-walk`. Native code between managed frames is not unwound, because an explicit frame there has the
//! registers of the managed caller. Threads in native code without an explicit frame are handled in `running`.

mod arguments;
mod explicit;
mod handler;
mod part;
mod protected;
mod running;

use std::sync::Arc;

use self::handler::Parent;
use self::running::known;
use super::code::{Code, CodeMap, CodeOrigin};
use super::frames::{ExplicitFrame, FrameReader, FrameRoots, Left};
use super::gc_info::{FrameKind, FrameSlot, FrameState, GcInfo, GenericContextKind};
use super::native::{Native, NativeImages};
use super::walked::{Frame, Gap, GapReason, ManagedFrame, Part, RuntimeFrame, SLOT_BYTES, Walk};
use super::{Allowance, CodeBytes, CostedCache, Registers, StackError, unwind};
use crate::base::hash::Map;
use crate::base::missed::{contradiction, tried};
use crate::base::reads;
use crate::base::{Addr, AddrRange, Os, PAGE, len64};
use crate::clr::methods::GenericContext;
use crate::memory::Image;

/// Number of GC slots that are charged as one read of memory.
const SLOTS_OF_A_READ: u64 = 2;
/// Maximum number of code addresses, and bytes of GC info, that a walk remembers. The walk is charged again for each look-up of code or GC info
/// that did not fit.
const MOST_CODES: usize = 1 << 14;
const MOST_INFO_BYTES: u64 = 4 << 20;
/// Maximum number of explicit frames, and of reads, in the search for the normal stack of a thread that runs on its signal stack.
const FRAMES_OF_A_CALLER: usize = 8;
const READS_OF_A_CALLER: u64 = 256;
/// Bytes of memory that are charged for a gap, in the walk and in answers. The registers of the gap are charged separately.
const GAP_BYTES: u64 = 256;

/// The start of a walk.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// Address of the `Thread`.
    pub(crate) thread: Addr,
    /// The thread's registers; `None` if they are not in the dump.
    pub(crate) registers: Option<Registers>,
    /// Whether the thread is in cooperative mode: it runs managed code, or native code that a collection waits for.
    pub(crate) cooperative: bool,
    /// Whether a suspension has hijacked a return address on the thread's stack.
    pub(crate) hijacked: bool,
    /// The memory of the stack, if known.
    pub(crate) stack: Option<AddrRange>,
    /// For a thread on its signal stack, the used part of its normal stack.
    pub(crate) own: Option<AddrRange>,
    /// The budget of the walk.
    pub(crate) part: Allowance,
}

/// Details of frames to collect besides their methods.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    /// The references that frames hold.
    pub(crate) roots: bool,
    /// The registers of frames.
    pub(crate) registers: bool,
}

/// Walks stacks.
#[derive(Debug)]
pub(crate) struct StackWalker {
    code: CodeMap,
    frames: FrameReader,
    /// The image of the runtime, for native frames of its helpers.
    runtime: Native,
    /// All images, for native code that managed code has called.
    native: NativeImages,
    /// Address ranges of the images without managed code, sorted; empty if the dump's list of images is absent or incomplete.
    images: Vec<AddrRange>,
    os: Os,
    gc_infos: CostedCache<Result<Arc<GcInfo>, StackError>>,
}

/// State of a walk.
struct Walking<'w> {
    walker: &'w StackWalker,
    asked: Asked,
    out: Walk,
    /// The frame whose references a running handler reports. That frame, and the frames between the handler and it, report nothing.
    parent: Option<Parent>,
    /// The last explicit frame of an unknown or unsupported type since the last managed frame.
    unknown: Option<Addr>,
    /// Bytes of memory left for the contents of frames.
    memory: u64,
    /// Whether `memory` is used up. The rest of the stack is then a gap, and the walk only lists its frames.
    blind: bool,
    /// Code whose look-up the walk was charged for, by instruction pointer.
    codes: Map<Addr, Arc<Code>>,
    /// GC info that the walk was charged for, by address.
    infos: Map<Addr, Arc<GcInfo>>,
    /// Size of the GC info in `infos` in bytes.
    info_bytes: u64,
    /// The thread's registers, if the thread is in native code without an explicit frame.
    own: Option<Registers>,
    /// Index of the gap whose end is not known yet.
    open: Option<usize>,
    /// Index of the explicit frame that prepares the call that the next managed frame makes.
    calls: Option<usize>,
}

impl StackWalker {
    /// Creates a walker. `images` are the address ranges of the images of the process, `modules` the addresses of the runtime's `Module`s.
    pub(crate) fn new(
        code: CodeMap,
        frames: FrameReader,
        runtime: Option<Image>,
        mut images: Vec<AddrRange>,
        modules: &[Addr],
        os: Os,
    ) -> StackWalker {
        images.sort_unstable();
        let native = NativeImages::new(&images);
        let of_runtime = |image: &AddrRange| runtime.as_ref().is_some_and(|runtime| image.contains(runtime.base));
        // A list without the runtime is incomplete, so it cannot show that an address is outside of all images.
        if images.iter().any(of_runtime) {
            // The image of a single-file bundle contains both the runtime and managed code, so it is kept.
            let managed = code.images(modules);
            images.retain(|image| of_runtime(image) || !managed.iter().any(|at| image.contains(*at)));
        } else {
            images.clear();
        }
        let dump_bytes = code.bytes().memory().dump_bytes();
        let (runtime, gc_infos) = (Native::new(runtime, dump_bytes), CostedCache::new(dump_bytes));
        StackWalker { code, frames, runtime, native, images, os, gc_infos }
    }

    /// Whether `ip`, which is not in managed code, is also outside of all images without managed code. Always false if the images are not known.
    fn is_nowhere(&self, ip: Addr) -> bool {
        let last = self.images.partition_point(|image| image.start <= ip).checked_sub(1).and_then(|i| self.images.get(i));
        !self.images.is_empty() && !last.is_some_and(|image| image.contains(ip))
    }

    /// Whether missing memory at `at`, or in the image that contains `at`, caused a gap of `walk`.
    pub(crate) fn explains(&self, walk: &Walk, at: Addr) -> bool {
        let read = walk.gaps.iter().filter_map(|gap| match gap.lack.error() {
            Some(StackError::Read(e)) => Some(e.address),
            _ => None,
        });
        let image = |at| self.native.listed(at);
        read.into_iter().any(|missing| missing == at || image(at).is_some_and(|image| image.contains(missing)))
    }

    /// Whether the descriptor describes the references that native code protects.
    pub(crate) fn describes_protected(&self) -> bool {
        self.frames.protected().is_some()
    }

    /// The map of managed code.
    pub(crate) fn code(&self) -> &CodeMap {
        &self.code
    }

    /// The references that `frame` owns.
    ///
    /// # Errors
    /// [`StackError`] if the frame is not in the dump, or is invalid.
    pub(crate) fn owned(&self, frame: &ExplicitFrame) -> Result<FrameRoots, StackError> {
        self.frames.roots(self.code.bytes(), frame)
    }

    /// The method that `frame` is about to call or whose native helper it marks; `None` for an explicit frame within a managed frame.
    pub(crate) fn callee(&self, frame: &RuntimeFrame) -> Option<Addr> {
        (!frame.within).then(|| self.frames.callee(self.code.bytes(), &frame.frame))?
    }

    /// The P/Invoke method of an `InlinedCallFrame`, while its native function runs; `None` for other frames.
    pub(crate) fn native(&self, frame: &RuntimeFrame) -> Option<Addr> {
        self.frames.native(self.code.bytes(), &frame.frame)
    }

    /// The address of the first explicit frame of `thread`, which is on the thread's normal stack; `None` if the thread has no explicit frames, or if
    /// the pointer to the first explicit frame is not in the dump.
    pub(crate) fn first_frame(&self, thread: Addr) -> Option<Addr> {
        self.frames.first(self.code.bytes(), thread).ok().flatten()
    }

    /// The stack pointer of the first managed caller that the explicit frames of a thread describe. For a thread on its signal stack, it shows where
    /// the used part of the normal stack begins.
    pub(crate) fn first_caller(&self, thread: Addr) -> Option<Addr> {
        reads::bounded(READS_OF_A_CALLER, || {
            let bytes = self.code.bytes();
            let mut next = self.frames.first(bytes, thread).ok()?;
            for _ in 0..FRAMES_OF_A_CALLER {
                let frame = self.frames.read(bytes, next?).ok()?;
                if let Some(caller) = self.frames.caller(&self.code, &self.runtime, &frame).ok()? {
                    return caller.registers.sp();
                }
                next = self.frames.next(bytes, &frame).ok()?;
            }
            None
        })
    }

    /// Walks a stack.
    pub(crate) fn walk(&self, start: &Start, asked: Asked) -> Walk {
        reads::bounded(start.part.reads, || {
            let mut walking = Walking {
                walker: self,
                asked,
                out: Walk::default(),
                parent: None,
                unknown: None,
                memory: start.part.memory,
                blind: false,
                codes: Map::default(),
                infos: Map::default(),
                info_bytes: 0,
                own: None,
                open: None,
                calls: None,
            };
            walking.protected(start);
            walking.run(start);
            walking.out.fit();
            walking.out
        })
    }

    fn decode(&self, code: &Code, at: Addr) -> Result<GcInfo, StackError> {
        let arch = self.frames.arch();
        let info = GcInfo::decode(self.code.bytes(), at, code.gc_version, arch).map_err(|e| StackError::of_gc_info(at, e))?;
        let (stored, known) = (u64::from(info.header().code_length), code.code_length);
        let fits = match code.origin {
            CodeOrigin::Jitted { .. } => stored == known || known == 0,
            CodeOrigin::ReadyToRun { .. } => stored >= known,
        };
        if fits { Ok(info) } else { Err(StackError::invalid(at, "the GC info is for code of another length")) }
    }
}

impl Walking<'_> {
    /// The code at `ip`.
    fn find(&mut self, ip: Addr) -> Result<Option<Arc<Code>>, StackError> {
        if let Some(code) = self.codes.get(&ip) {
            return Ok(Some(Arc::clone(code)));
        }
        let found = self.walker.code.paid(ip)?;
        if let Some(code) = found.as_ref().filter(|_| self.codes.len() < MOST_CODES) {
            self.codes.insert(ip, Arc::clone(code));
        }
        Ok(found)
    }

    /// The GC info of a method.
    fn gc_info(&mut self, code: &Code) -> Result<Arc<GcInfo>, StackError> {
        let at = code.gc_info.clone()?;
        if let Some(info) = self.infos.get(&at) {
            return Ok(Arc::clone(info));
        }
        let decode = || {
            let info = self.walker.decode(code, at).map(Arc::new);
            let bytes = info.as_ref().map_or(0, |info| info.bytes());
            (info, bytes)
        };
        let too_many = StackError::invalid(at, "the GC info takes more reads than are left");
        let info = self.walker.gc_infos.paid(at, decode).ok_or(too_many)??;
        let more = self.info_bytes.saturating_add(info.bytes()).saturating_add(len64(size_of::<GcInfo>()));
        if more <= MOST_INFO_BYTES {
            self.info_bytes = more;
            self.infos.insert(at, Arc::clone(&info));
        }
        Ok(info)
    }

    /// Takes `bytes` bytes from the memory budget for the frame at `at`. Returns false if fewer are left; the rest of the stack is then a gap.
    fn afford(&mut self, at: Addr, bytes: u64) -> bool {
        match self.memory.checked_sub(bytes) {
            _ if self.blind => return false,
            Some(left) => self.memory = left,
            None => {
                self.blind = true;
                self.out.gaps.push(Gap { from: Some(at), to: None, registers: Box::default(), ip: None, lack: GapReason::Memory });
            }
        }
        !self.blind
    }

    fn run(&mut self, start: &Start) {
        let walker = self.walker;
        let bytes = walker.code.bytes();
        let mut context = start.registers.clone();
        let mut left = Left::Stopped;
        let mut hijacked = start.hijacked;
        // Address of the last explicit frame that supplied registers. `context` is these registers, or was unwound from them.
        let mut led = None;
        // Whether `context` was reached from a callee or an explicit frame, and is not the start of the walk.
        let mut arrived = false;
        if context.is_none() {
            self.gap(None, GapReason::Registers);
        }
        let first = walker.frames.first(bytes, start.thread).and_then(|at| at.map(|at| self.explicit(at, None, start)).transpose());
        // The stack pointer that unwinding reached last.
        let mut reached = Addr::NULL;
        let mut next = match first {
            Ok(frame) => frame,
            Err(e) => {
                match &context {
                    Some(registers) => self.lost(registers, GapReason::Frames(e)),
                    None => self.gap(None, GapReason::Frames(e)),
                }
                None
            }
        };
        if let Some((caller, how)) = self.running(start, next.as_ref()) {
            (context, left) = (Some(caller), how);
        }
        while len64(self.out.frames.len()) < start.part.frames {
            let managed = match context.as_ref().map(|c| self.find(c.ip)).transpose() {
                Ok(code) => code.flatten(),
                Err(e) => {
                    if let Some(registers) = context.take() {
                        next = self.past(next, led, (start, registers.ip));
                        self.lost(&registers, GapReason::Unwind(e));
                    }
                    None
                }
            };
            if let (Some(code), Some(registers)) = (managed, &context) {
                self.unknown = None;
                let Some(sp) = registers.sp() else {
                    let lack = GapReason::Unwind(StackError::invalid(registers.ip, "a frame whose stack pointer is unknown"));
                    self.lost(&registers.clone(), lack);
                    next = self.past(next, led, (start, registers.ip));
                    context = None;
                    continue;
                };
                let leaf = matches!(left, Left::Stopped | Left::Fault);
                let unwound = unwind(bytes, code.base, &code.entry, registers, leaf).map_err(StackError::from);
                let unwound = unwound.and_then(|caller| match caller.sp() {
                    Some(caller_sp) if caller_sp > sp && inside(start.stack, caller_sp) => Ok((caller, caller_sp)),
                    _ => Err(StackError::broken(sp, "a frame's caller is not above it on the stack")),
                });
                let caller_sp = unwound.as_ref().ok().map(|(_, sp)| *sp);
                // Explicit frames within a managed frame are only listed: unwinding finds the caller without them.
                while let (Some(frame), Some(caller_sp)) = (&next, caller_sp)
                    && frame.address < caller_sp
                    && len64(self.out.frames.len()) < start.part.frames
                {
                    let frame = frame.clone();
                    next = match self.after(&frame, start) {
                        Ok(next) => next,
                        Err(e) => {
                            self.gap(Some(frame.address), GapReason::Frames(e));
                            None
                        }
                    };
                    self.out.frames.push(Frame::Runtime(RuntimeFrame {
                        frame,
                        ip: Some(registers.ip),
                        within: true,
                        reports: false,
                        passed: None,
                    }));
                }
                self.managed(code, registers, sp, caller_sp, left);
                match unwound {
                    Ok((mut caller, caller_sp)) => {
                        reached = caller_sp;
                        if hijacked && matches!(self.find(caller.ip), Ok(None)) {
                            hijacked = false;
                            self.undivert(start.thread, &mut caller, caller_sp);
                        }
                        context = Some(caller);
                    }
                    Err(e) => {
                        let registers = if leaf { registers.clone() } else { registers.preserved() };
                        next = self.past(next, led, (start, registers.ip));
                        self.lost(&registers, GapReason::Unwind(e));
                        (context, reached) = (None, sp);
                    }
                }
                (left, arrived) = (Left::Call, true);
                continue;
            }
            // Callers of managed code are managed code or native code of an image, and an exception, a fault or a suspension that has an explicit
            // frame left managed code. An address in neither must be managed code that is missing from the runtime's map, and its frame may hold
            // references.
            if let Some(caller) = context.as_ref().filter(|c| arrived && walker.is_nowhere(c.ip)) {
                let what = match left {
                    Left::Call | Left::Helper => "the return address is in neither managed code nor a known image",
                    Left::Exception | Left::Fault | Left::Stopped => {
                        "the address at which the thread left managed code is in neither managed code nor a known image"
                    }
                };
                let lack = GapReason::Unwind(StackError::broken(caller.ip, what));
                self.lost(&caller.clone(), lack);
            }
            arrived = false;
            let Some(frame) = next.clone() else {
                if let Some(at) = self.unknown {
                    self.gap(
                        Some(at),
                        GapReason::Frames(StackError::Unsupported { at, what: "a frame whose type is unknown or not supported" }),
                    );
                }
                return;
            };
            self.runtime(&frame, context.as_ref().map(|c| c.ip), reached);
            match walker.frames.caller(&walker.code, &walker.runtime, &frame) {
                // An explicit frame cannot have its caller below the frames that the walk has visited.
                Ok(Some(caller)) if start.stack.is_some() && caller.registers.sp().is_some_and(|sp| sp < reached) => {
                    let lack = StackError::broken(frame.address, "an explicit frame that leads back down the stack");
                    return self.gap(Some(frame.address), GapReason::Frames(lack));
                }
                Ok(Some(caller)) => {
                    if let Some(gap) = self.open.take().and_then(|at| self.out.gaps.get_mut(at)) {
                        gap.to = caller.registers.sp();
                    }
                    (context, led) = (Some(caller.registers), Some(frame.address));
                    (left, arrived) = (caller.left, true);
                }
                Ok(None) => {}
                Err(e) => return self.gap(Some(frame.address), GapReason::Frames(e)),
            }
            let again = frame.is_within_caller() && context.as_ref().is_some_and(|c| matches!(self.find(c.ip), Ok(Some(_))));
            if !again {
                next = match self.after(&frame, start) {
                    Ok(next) => next,
                    Err(e) => return self.gap(Some(frame.address), GapReason::Frames(e)),
                };
            }
        }
        let sp = context.as_ref().and_then(Registers::sp).or(next.map(|frame| frame.address));
        self.gap(sp, GapReason::Endless);
    }

    /// Adds a managed frame.
    fn managed(&mut self, code: Arc<Code>, registers: &Registers, sp: Addr, caller_sp: Option<Addr>, left: Left) {
        let part = self.walker.part(&code);
        self.arguments(&code, sp);
        let mut frame = ManagedFrame::new(code, part, (registers.ip, sp), left);
        if self.asked.roots && !self.blind {
            self.holds(&mut frame, registers, caller_sp);
        }
        if self.asked.registers && !self.blind {
            let known = |n: u8| Some((n, registers.get(n))).filter(|(_, saved)| saved.value.is_some());
            let bytes = self.out.add_registers(&mut frame, (0..registers.count()).filter_map(known));
            self.afford(sp, bytes);
        }
        self.out.frames.push(Frame::Managed(frame));
    }

    /// Adds the references that a managed frame holds, or a gap if they cannot be determined.
    fn holds(&mut self, frame: &mut ManagedFrame, registers: &Registers, caller_sp: Option<Addr>) {
        let (code, part, sp) = (Arc::clone(&frame.code), frame.part, frame.sp);
        let info = self.gc_info(&code);
        frame.frame_register = info.as_ref().ok().and_then(|i| i.header().frame_register);
        let frame_register = frame.frame_register.map(|n| (n, registers.value(n)));
        // Until the prologue has stored the context, its slot has another value, or is in the guard page of a stack that has overflowed.
        let is_stored = |info: &GcInfo| code.offset(registers.ip) >= u64::from(info.header().prologue);
        if let (Ok(info), Part::Body) = (&info, part)
            && is_stored(info)
        {
            let contexts = contexts(self.walker.code.bytes(), info, registers, caller_sp);
            self.out.add_contexts(frame, contexts);
        }
        self.parent = self.parent.filter(|parent| !parent.is_below(sp));
        if let Some(parent) = self.parent {
            frame.unwound = true;
            if parent.is(&code, part, frame_register) {
                self.parent = None;
            }
        } else if let Err(e) = info.and_then(|info| self.slots(frame, &info, registers, caller_sp)) {
            // A frame that was stopped or has faulted may hold references in any register. If the frame called a JIT helper, the helper's frames
            // and registers may hold references too.
            let anywhere = matches!(frame.left, Left::Stopped | Left::Fault);
            let own = self.own.take().filter(|_| frame.left == Left::Helper);
            let from = own.as_ref().and_then(Registers::sp).unwrap_or(sp);
            let of_frame =
                (0..registers.count()).filter(|n| anywhere || registers.preserves(*n)).map(|n| (registers.name(n), registers.get(n)));
            let of_frame = of_frame.filter(|(_, saved)| saved.value.is_some());
            let registers: Box<[_]> = of_frame.chain(own.iter().flat_map(known)).collect();
            let sp = from;
            if self.afford(sp, GAP_BYTES.saturating_add(len64(size_of_val(&*registers)))) {
                let lack = told(GapReason::GcInfo(e));
                self.out.gaps.push(Gap { from: Some(sp), to: caller_sp, registers, ip: Some(code.start), lack });
            }
        }
        if part.is_handler() && !frame.unwound {
            self.parent = Some(Parent::of(&code, frame_register));
        }
    }

    /// Adds the GC slots of a frame that hold references.
    fn slots(&mut self, frame: &mut ManagedFrame, info: &GcInfo, registers: &Registers, caller_sp: Option<Addr>) -> Result<(), StackError> {
        // Without a caller, the walk adds a gap that begins at this frame.
        let Some(caller_sp) = caller_sp else { return Ok(()) };
        let kind = match frame.left {
            Left::Stopped => FrameKind::Leaf,
            Left::Helper => FrameKind::Helper,
            Left::Call => FrameKind::Return,
            Left::Exception | Left::Fault => FrameKind::Exception,
        };
        let ip = registers.ip;
        let offset = u32::try_from(frame.code.offset(ip)).map_err(|_| StackError::invalid(ip, "an address past the end of its method"))?;
        if !info.describes(offset, kind) {
            return Err(StackError::invalid(ip, "a running thread whose references the GC info does not describe"));
        }
        let state = FrameState {
            offset,
            kind,
            registers,
            caller_sp,
            os: self.walker.os,
            untracked: !matches!(frame.part, Part::Filter | Part::Funclet),
        };
        let count = len64(info.slot_count());
        CodeBytes::afford(ip, count / SLOTS_OF_A_READ)?;
        let (bytes, most) = (self.walker.code.bytes(), self.memory / SLOT_BYTES);
        let page = AddrRange::new(frame.sp.align_down(PAGE), frame.sp.align_down(PAGE).plus(PAGE));
        // After a stack overflow, the frame of the faulting method extends into the guard page, which holds no data. The slots there are skipped,
        // not reported as missing.
        let held = if frame.left == Left::Fault && bytes.memory().captured(page) == 0 {
            let is_there = |slot: &FrameSlot| slot.location.address().is_none_or(|at| !page.contains(at));
            let report = |each: &mut dyn FnMut(FrameSlot)| {
                info.report(bytes, &state, |slot| {
                    if is_there(&slot) {
                        each(slot)
                    }
                })
            };
            tried(|| self.out.hold(frame, most, report))
        } else {
            self.out.hold(frame, most, |each| info.report(bytes, &state, each))
        };
        let held = held.map_err(|e| StackError::of_gc_info(ip, e))?;
        self.afford(frame.sp, held.saturating_mul(SLOT_BYTES));
        Ok(())
    }

    /// Adds a gap from `from` to the end of the stack.
    fn gap(&mut self, from: Option<Addr>, lack: GapReason) {
        self.out.gaps.push(Gap { from, to: None, registers: Box::default(), ip: None, lack: told(lack) });
    }

    /// Begins a gap at the stack pointer in `registers`; the registers may hold references too. The gap ends at the stack pointer of the next
    /// managed caller that an explicit frame describes. The frame whose handler runs may be in the gap.
    fn lost(&mut self, registers: &Registers, lack: GapReason) {
        let (from, ip) = (registers.sp(), Some(registers.ip));
        self.parent = self.parent.filter(|parent| parent.place().is_some());
        let registers: Box<[_]> = known(registers).collect();
        let bytes = GAP_BYTES.saturating_add(len64(size_of_val(&*registers)));
        if self.afford(from.unwrap_or(Addr::NULL), bytes) {
            let lack = told(lack);
            self.open = Some(self.out.gaps.len());
            self.out.gaps.push(Gap { from, to: None, registers, ip, lack });
        }
    }
}

/// The possible generic contexts of a frame. The slot's offset is relative to the caller's stack pointer or to the frame register. GC info does
/// not record which of the two, so both slots are read.
fn contexts(bytes: &CodeBytes, info: &GcInfo, registers: &Registers, caller_sp: Option<Addr>) -> impl Iterator<Item = GenericContext> {
    let slot = info.header().generic_context.into_iter();
    let frame = info.header().frame_register.and_then(|n| registers.value(n)).map(Addr);
    let places = slot.flat_map(move |(kind, slot)| [caller_sp, frame].into_iter().flatten().map(move |base| (kind, base, slot)));
    places.filter_map(|(kind, base, slot)| {
        let word = Addr(bytes.u64(Addr(base.0.checked_add_signed(i64::from(slot))?)).ok()?);
        let context = match kind {
            GenericContextKind::MethodTable => GenericContext::MethodTable,
            GenericContextKind::MethodDesc => GenericContext::Method,
            GenericContextKind::This => GenericContext::This,
        };
        (!word.is_null()).then(|| context(word))
    })
}

/// The reason for a gap, which is the limit on reads if it was reached. If it is a stack that contradicts itself, reports it to the answer.
fn told(lack: GapReason) -> GapReason {
    if reads::exhausted() {
        return GapReason::Endless;
    }
    if let Some((at, what)) = lack.error().and_then(StackError::contradiction) {
        contradiction(at, what);
    }
    lack
}

fn inside(stack: Option<AddrRange>, at: Addr) -> bool {
    stack.is_none_or(|s| s.start <= at && at <= s.end)
}
