//! The walk over one thread's stack: managed frames by unwinding, explicit frames in between, and what each holds.
//!
//! Source: `docs/internals/stacks.md#the-walk`. Native code is not unwound: where it stands between managed frames, the runtime left an
//! explicit frame that tells how to go on.

use std::sync::{Arc, PoisonError, RwLock};

use super::clauses;
use super::code::{Code, CodeMap, CodeOrigin};
use super::frames::{ExplicitFrame, FrameReader, FrameRoots, Left};
use super::gc_info::{FrameKind, FrameSlot, FrameState, GcInfo, GcInfoError, GenericContextKind, Location, SlotBase};
use super::{CodeBytes, RegisterNames, Registers, Saved, StackError, unwind};
use crate::base::hash::Map;
use crate::base::{Addr, AddrRange, Arch, Os, PAGE};
use crate::clr::methods::GenericContext;
use crate::memory::Image;

/// Most frames of a thread.
const MAX_FRAMES: usize = 100_000;

/// Where a walk starts.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// The `Thread`.
    pub(crate) thread: Addr,
    /// The thread's registers; `None` if they are not in the dump.
    pub(crate) registers: Option<Registers>,
    /// The memory of its stack, as far as known.
    pub(crate) stack: Option<AddrRange>,
    /// Most reads that the walk may take.
    pub(crate) reads: u64,
}

/// What a walk tells of frames beside their methods.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    /// What they hold.
    pub(crate) roots: bool,
    /// Their registers.
    pub(crate) registers: bool,
}

/// What a managed frame executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The method's body.
    Body,
    /// A catch or finally block, called by the runtime while it handles an exception.
    Handler,
    /// The filter of an exception, or a block of which the dump does not tell.
    Filter,
}

/// A frame of a stack.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// A method.
    Managed(ManagedFrame),
    /// An explicit frame of the runtime.
    Runtime(RuntimeFrame),
}

/// A method on a stack.
#[derive(Clone, Debug)]
pub(crate) struct ManagedFrame {
    /// Its code.
    pub(crate) code: Arc<Code>,
    /// The part of it.
    pub(crate) part: Part,
    /// Where it goes on: a return address, or the next instruction of the innermost frame.
    pub(crate) ip: Addr,
    /// Its stack pointer there.
    pub(crate) sp: Addr,
    /// How it was left.
    pub(crate) left: Left,
    /// The register that slots count from.
    pub(crate) frame_register: Option<u8>,
    /// Of shared generic code: what its generic context may be, likeliest first.
    pub(crate) contexts: Vec<GenericContext>,
    /// The slots that it holds.
    pub(crate) roots: Vec<FrameSlot>,
    /// Its registers whose values are known; empty unless asked for.
    pub(crate) registers: Vec<(u8, Saved)>,
    /// Whether it holds nothing because an exception has left it, or because the part of it that runs reports for it.
    pub(crate) unwound: bool,
}

impl ManagedFrame {
    /// Register `number`, if its value is known.
    pub(crate) fn register(&self, number: u8) -> Option<Saved> {
        self.registers.iter().find(|(n, _)| *n == number).map(|(_, saved)| *saved)
    }

    /// An address within the instruction that it executes: a return address may begin the next statement.
    pub(crate) fn instruction(&self) -> Addr {
        match self.left {
            Left::Call | Left::Exception => self.ip.minus(1).unwrap_or(self.ip),
            Left::Fault | Left::Stopped => self.ip,
        }
    }
}

/// An explicit frame on a stack.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeFrame {
    /// The frame.
    pub(crate) frame: ExplicitFrame,
    /// Where the walk stood when it met the frame.
    pub(crate) ip: Option<Addr>,
    /// The method that it is about to call.
    pub(crate) callee: Option<Addr>,
    /// The native function that it is in, as the method that stands for it.
    pub(crate) native: Option<Addr>,
    /// The references that it owns.
    pub(crate) roots: FrameRoots,
    /// Slots of the references that a function of the runtime protects, whatever was asked for.
    pub(crate) protected: Vec<Addr>,
}

/// Why references of a stack are not known precisely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The dump has no registers for the thread.
    Registers,
    /// What code is at an address cannot be told, or how its frame is unwound.
    Unwind(StackError),
    /// The explicit frames cannot be followed.
    Frames(StackError),
    /// What a frame holds cannot be told.
    GcInfo(StackError),
    /// More frames than any stack has.
    Endless,
}

/// A part of a stack whose references are not known precisely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Its start.
    pub(crate) from: Option<Addr>,
    /// Its end; `None` for the rest of the stack.
    pub(crate) to: Option<Addr>,
    /// Registers that may hold references as well.
    pub(crate) registers: Vec<(&'static str, Saved)>,
    /// The code of the frame.
    pub(crate) ip: Option<Addr>,
    /// Why.
    pub(crate) lack: Lack,
}

/// A walked stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    /// Its frames, innermost first.
    pub(crate) frames: Vec<Frame>,
    /// What is not known precisely; empty for a stack that is complete.
    pub(crate) gaps: Vec<Gap>,
}

/// Walks stacks.
#[derive(Debug)]
pub(crate) struct StackWalker {
    code: CodeMap,
    frames: FrameReader,
    /// The runtime's own image, for native frames of its helpers.
    runtime: Option<Image>,
    /// The images of the process without managed code, sorted; none where the dump does not list them.
    images: Vec<AddrRange>,
    os: Os,
    gc_infos: RwLock<Map<Addr, Result<Arc<GcInfo>, StackError>>>,
}

/// The frame that a handler reports for: the next body of its method with this value in the frame register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parent {
    method_desc: Addr,
    /// Number and value of the frame register; `None` if the GC info does not tell.
    frame: Option<(u8, Option<u64>)>,
}

/// State of a walk.
struct Walking<'w> {
    walker: &'w StackWalker,
    asked: Asked,
    out: Walk,
    /// A handler reports for this frame, so that none up to and including it does.
    parent: Option<Parent>,
    /// Whether a frame of an unknown type was met since the last managed one.
    unknown: Option<Addr>,
}

impl StackWalker {
    /// Combines the readers. `images`: those of the process; `modules`: those of the runtime.
    pub(crate) fn new(
        code: CodeMap,
        frames: FrameReader,
        runtime: Option<Image>,
        mut images: Vec<AddrRange>,
        modules: &[Addr],
        os: Os,
    ) -> StackWalker {
        let of_runtime = |image: &AddrRange| runtime.as_ref().is_some_and(|runtime| image.contains(runtime.base));
        // A list without the runtime tells of no address that it is in no image.
        if images.iter().any(of_runtime) {
            images.sort_unstable();
            // A bundle may hold both.
            let managed = code.images(modules);
            images.retain(|image| of_runtime(image) || !managed.iter().any(|at| image.contains(*at)));
        } else {
            images.clear();
        }
        StackWalker { code, frames, runtime, images, os, gc_infos: RwLock::default() }
    }

    /// Whether `ip`, where the runtime knows no managed code, is in none of the images that have none either.
    fn is_nowhere(&self, ip: Addr) -> bool {
        let last = self.images.partition_point(|image| image.start <= ip).checked_sub(1).and_then(|i| self.images.get(i));
        !self.images.is_empty() && !last.is_some_and(|image| image.contains(ip))
    }

    /// Looks up code.
    pub(crate) fn code(&self) -> &CodeMap {
        &self.code
    }

    /// Walks a stack.
    pub(crate) fn walk(&self, start: &Start, asked: Asked) -> Walk {
        CodeBytes::bounded(start.reads, || self.walk_on(start, asked))
    }

    fn walk_on(&self, start: &Start, asked: Asked) -> Walk {
        let mut walking = Walking { walker: self, asked, out: Walk::default(), parent: None, unknown: None };
        walking.run(start);
        walking.out
    }

    /// The GC info of a method.
    ///
    /// # Errors
    /// [`StackError`] if it is not in the dump, or cannot be that of the method.
    pub(crate) fn gc_info(&self, code: &Code) -> Result<Arc<GcInfo>, StackError> {
        let at = code.gc_info.clone()?;
        if let Some(known) = self.gc_infos.read().unwrap_or_else(PoisonError::into_inner).get(&at) {
            return known.clone();
        }
        let decoded = self.decode(code, at).map(Arc::new);
        self.gc_infos.write().unwrap_or_else(PoisonError::into_inner).insert(at, decoded.clone());
        decoded
    }

    fn decode(&self, code: &Code, at: Addr) -> Result<GcInfo, StackError> {
        let arch = self.frames.arch();
        let info = GcInfo::decode(self.code.bytes(), at, code.gc_version, arch).map_err(|e| gc_error(at, e))?;
        let (told, known) = (u64::from(info.header().code_length), code.code_length);
        let fits = match code.origin {
            CodeOrigin::Jitted { .. } => told == known || known == 0,
            CodeOrigin::ReadyToRun { .. } => told >= known,
        };
        if fits { Ok(info) } else { Err(StackError::invalid(at, "the GC info is for code of another length")) }
    }

    /// What part of its method a piece of code is.
    fn part(&self, code: &Code) -> Part {
        if !code.funclet {
            return Part::Body;
        }
        let bytes = self.code.bytes();
        let offset = u32::try_from(code.piece_offset()).unwrap_or(u32::MAX);
        let filter = match code.origin {
            CodeOrigin::Jitted { clauses, .. } => clauses::jit_filter(bytes, clauses, offset),
            CodeOrigin::ReadyToRun { header, .. } => {
                let rva = code.start.since(code.base).and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX);
                clauses::ready_to_run_filter(bytes, header, code.base, rva, offset)
            }
        };
        // Where the clauses are not in the dump: a filter reports too much rather than too little.
        if matches!(filter, Ok(Some(false))) { Part::Handler } else { Part::Filter }
    }
}

/// A failure to decode GC info, as one of the stack.
fn gc_error(at: Addr, e: GcInfoError) -> StackError {
    match e {
        GcInfoError::Missing(e) => StackError::Read(e),
        GcInfoError::Version { .. } => StackError::Unsupported { at, what: "GC info of an unknown version" },
        _ => StackError::invalid(at, "malformed GC info"),
    }
}

impl Walking<'_> {
    fn run(&mut self, start: &Start) {
        let walker = self.walker;
        let bytes = walker.code.bytes();
        let mut context = start.registers.clone();
        let mut left = Left::Stopped;
        // Whether the walk has just come to a caller.
        let mut arrived = false;
        if context.is_none() {
            self.gap(None, None, Lack::Registers);
        }
        let first = walker.frames.first(bytes, start.thread).and_then(|at| at.map(|at| self.explicit(at, None, start.stack)).transpose());
        let mut next = match first {
            Ok(frame) => frame,
            Err(e) => {
                self.gap(context.as_ref().and_then(Registers::sp), None, Lack::Frames(e));
                None
            }
        };
        for _ in 0..MAX_FRAMES {
            let managed = match context.as_ref().map(|c| walker.code.find(c.ip)).transpose() {
                Ok(code) => code.flatten(),
                Err(e) => {
                    let sp = context.as_ref().and_then(Registers::sp);
                    return self.gap(sp, context.map(|c| c.ip), Lack::Unwind(e));
                }
            };
            if let (Some(code), Some(registers)) = (managed, &context) {
                self.unknown = None;
                let Some(sp) = registers.sp() else { return };
                let leaf = matches!(left, Left::Stopped | Left::Fault);
                let unwound = unwind(bytes, code.base, &code.entry, registers, leaf).map_err(StackError::from);
                let unwound = unwound.and_then(|caller| match caller.sp() {
                    Some(caller_sp) if caller_sp > sp && inside(start.stack, caller_sp) => Ok((caller, caller_sp)),
                    _ => Err(StackError::invalid(sp, "a frame's caller is not above it on the stack")),
                });
                let caller_sp = unwound.as_ref().ok().map(|(_, sp)| *sp);
                // Explicit frames within a managed one tell nothing that unwinding does not.
                while let (Some(frame), Some(caller_sp)) = (&next, caller_sp)
                    && frame.address < caller_sp
                {
                    let frame = frame.clone();
                    next = match self.after(&frame, start.stack) {
                        Ok(next) => next,
                        Err(e) => {
                            self.gap(Some(frame.address), None, Lack::Frames(e));
                            None
                        }
                    };
                    let native = self.walker.frames.native(bytes, &frame);
                    self.out.frames.push(Frame::Runtime(RuntimeFrame {
                        frame,
                        ip: Some(registers.ip),
                        callee: None,
                        native,
                        roots: FrameRoots::default(),
                        protected: Vec::new(),
                    }));
                }
                self.managed(code, registers, sp, caller_sp, left);
                match unwound {
                    Ok((caller, _)) => context = Some(caller),
                    Err(e) => {
                        let ip = registers.ip;
                        return self.gap(Some(sp), Some(ip), Lack::Unwind(e));
                    }
                }
                (left, arrived) = (Left::Call, true);
                continue;
            }
            // Managed code is called from managed code and from that of images. What calls it here is code that the runtime's map
            // should tell of, and whose frame may hold anything.
            if let Some(caller) = context.as_ref().filter(|c| arrived && left == Left::Call && walker.is_nowhere(c.ip)) {
                let lack =
                    Lack::Unwind(StackError::invalid(caller.ip, "a caller that is neither in the map of code nor in a native image"));
                let to = next.as_ref().map(|frame| frame.address);
                self.gap_to(caller.sp(), to, Some(caller.ip), lack);
            }
            arrived = false;
            let Some(frame) = next.clone() else {
                if let Some(at) = self.unknown {
                    self.gap(Some(at), None, Lack::Frames(StackError::Unsupported { at, what: "a frame of an unknown type" }));
                }
                return;
            };
            self.runtime(&frame, context.as_ref().map(|c| c.ip));
            match walker.frames.caller(&walker.code, walker.runtime.as_ref(), &frame) {
                Ok(Some(caller)) => {
                    context = Some(caller.registers);
                    (left, arrived) = (caller.left, true);
                }
                Ok(None) => {}
                Err(e) => return self.gap(Some(frame.address), None, Lack::Frames(e)),
            }
            let again = frame.is_within_caller() && context.as_ref().is_some_and(|c| matches!(walker.code.find(c.ip), Ok(Some(_))));
            if !again {
                next = match self.after(&frame, start.stack) {
                    Ok(next) => next,
                    Err(e) => return self.gap(Some(frame.address), None, Lack::Frames(e)),
                };
            }
        }
        let sp = context.as_ref().and_then(Registers::sp);
        self.gap(sp, None, Lack::Endless);
    }

    /// The frame after `frame` in the chain.
    fn after(&self, frame: &ExplicitFrame, stack: Option<AddrRange>) -> Result<Option<ExplicitFrame>, StackError> {
        frame.next()?.map(|at| self.explicit(at, Some(frame.address), stack)).transpose()
    }

    /// The explicit frame at `at`, which lies above the one before it, on the stack.
    fn explicit(&self, at: Addr, before: Option<Addr>, stack: Option<AddrRange>) -> Result<ExplicitFrame, StackError> {
        if !at.is_aligned(8) || before.is_some_and(|b| at <= b) || !inside(stack, at) {
            return Err(StackError::invalid(at, "the chain of frames leads to a wrong place"));
        }
        self.walker.frames.read(self.walker.code.bytes(), at)
    }

    /// Reports an explicit frame.
    fn runtime(&mut self, frame: &ExplicitFrame, ip: Option<Addr>) {
        let bytes = self.walker.code.bytes();
        if frame.name.is_none() {
            self.unknown = Some(frame.address);
        }
        let held = self.walker.frames.roots(bytes, frame);
        let protected = held.as_ref().map(|roots| roots.slots.clone()).unwrap_or_default();
        let roots = match held {
            Ok(roots) if self.asked.roots && self.parent.is_none() => roots,
            Ok(_) => FrameRoots::default(),
            Err(e) => {
                let to = Some(frame.address.plus(PAGE));
                self.out.gaps.push(Gap { from: Some(frame.address), to, registers: Vec::new(), ip: None, lack: Lack::GcInfo(e) });
                FrameRoots::default()
            }
        };
        let (callee, native) = (self.walker.frames.callee(bytes, frame), self.walker.frames.native(bytes, frame));
        self.out.frames.push(Frame::Runtime(RuntimeFrame { frame: frame.clone(), ip, callee, native, roots, protected }));
    }

    /// Reports a managed frame.
    fn managed(&mut self, code: Arc<Code>, registers: &Registers, sp: Addr, caller_sp: Option<Addr>, left: Left) {
        let part = self.walker.part(&code);
        let (mut roots, mut contexts, mut unwound, mut register) = (Vec::new(), Vec::new(), false, None);
        if self.asked.roots {
            let info = self.walker.gc_info(&code);
            register = info.as_ref().ok().and_then(|i| i.header().frame_register);
            let frame_register = register.map(|n| (n, registers.value(n)));
            if let (Ok(info), Part::Body) = (&info, part) {
                contexts = self.contexts(info, registers, caller_sp);
            }
            if let Some(parent) = self.parent {
                unwound = true;
                let same = parent.frame.is_none() || frame_register.is_none() || parent.frame == frame_register;
                if part == Part::Body && code.method_desc == parent.method_desc && same {
                    self.parent = None;
                }
            } else {
                match info.and_then(|info| self.slots(&info, &code, registers, caller_sp, left, part)) {
                    Ok(slots) => roots = slots,
                    Err(e) => {
                        let preserved = (0..registers.count()).filter(|n| registers.preserves(*n));
                        let registers = preserved.map(|n| (registers.name(n), registers.get(n))).collect();
                        let lack = if CodeBytes::exhausted() { Lack::Endless } else { Lack::GcInfo(e) };
                        self.out.gaps.push(Gap { from: Some(sp), to: caller_sp, registers, ip: Some(code.start), lack });
                    }
                }
                if part == Part::Handler {
                    self.parent = Some(Parent { method_desc: code.method_desc, frame: frame_register });
                }
            }
        }
        let known = |n: u8| Some((n, registers.get(n))).filter(|(_, saved)| saved.value.is_some());
        let known = (0..registers.count()).filter(|_| self.asked.registers).filter_map(known).collect();
        self.out.frames.push(Frame::Managed(ManagedFrame {
            code,
            part,
            ip: registers.ip,
            sp,
            left,
            frame_register: register,
            contexts,
            roots,
            registers: known,
            unwound,
        }));
    }

    /// What the slot of the generic context holds: it counts from the caller's stack pointer, or from the frame register.
    fn contexts(&self, info: &GcInfo, registers: &Registers, caller_sp: Option<Addr>) -> Vec<GenericContext> {
        let Some((kind, slot)) = info.header().generic_context else { return Vec::new() };
        let frame = info.header().frame_register.and_then(|n| registers.value(n)).map(Addr);
        let slots = [caller_sp, frame].into_iter().flatten().filter_map(|base| base.0.checked_add_signed(i64::from(slot)));
        let words = slots.filter_map(|at| self.walker.code.bytes().u64(Addr(at)).ok()).map(Addr).filter(|word| !word.is_null());
        let context = match kind {
            GenericContextKind::MethodTable => GenericContext::MethodTable,
            GenericContextKind::MethodDesc => GenericContext::Method,
            GenericContextKind::This => GenericContext::This,
        };
        words.map(context).collect()
    }

    fn slots(
        &self,
        info: &GcInfo,
        code: &Code,
        registers: &Registers,
        caller_sp: Option<Addr>,
        left: Left,
        part: Part,
    ) -> Result<Vec<FrameSlot>, StackError> {
        // Without the caller the rest of the stack is scanned, this frame included.
        let Some(caller_sp) = caller_sp else { return Ok(Vec::new()) };
        let kind = match left {
            Left::Stopped => FrameKind::Leaf,
            Left::Call => FrameKind::Return,
            Left::Exception | Left::Fault => FrameKind::Exception,
        };
        let offset =
            u32::try_from(code.offset(registers.ip)).map_err(|_| StackError::invalid(registers.ip, "an address beyond its method"))?;
        let state = FrameState { offset, kind, registers, caller_sp, os: self.walker.os, untracked: part != Part::Filter };
        info.roots(self.walker.code.bytes(), &state).map_err(|e| gc_error(registers.ip, e))
    }

    /// The references from `from` to the end of the stack are not known.
    fn gap(&mut self, from: Option<Addr>, ip: Option<Addr>, lack: Lack) {
        self.gap_to(from, None, ip, lack);
    }

    fn gap_to(&mut self, from: Option<Addr>, to: Option<Addr>, ip: Option<Addr>, lack: Lack) {
        let lack = if CodeBytes::exhausted() { Lack::Endless } else { lack };
        self.out.gaps.push(Gap { from, to, registers: Vec::new(), ip, lack });
    }
}

fn inside(stack: Option<AddrRange>, at: Addr) -> bool {
    stack.is_none_or(|s| s.start <= at && at <= s.end)
}

impl Lack {
    /// What went wrong, where reading something did.
    pub(crate) const fn error(&self) -> Option<&StackError> {
        match self {
            Lack::Unwind(e) | Lack::Frames(e) | Lack::GcInfo(e) => Some(e),
            Lack::Registers | Lack::Endless => None,
        }
    }

    /// In words, with the module of the code.
    pub(crate) fn reason(&self, module: Option<&str>) -> String {
        let of = |what: &str, e: &StackError| match module {
            Some(module) if matches!(e, StackError::Read(_)) => format!("{what} in {module}, whose file would tell (--modules): {e}"),
            Some(module) => format!("{what} in {module}: {e}"),
            None => format!("{what}: {e}"),
        };
        match self {
            Lack::Registers => "the registers of the thread are not in the dump".into(),
            Lack::Unwind(e) => of("code cannot be unwound", e),
            Lack::Frames(e) => of("the runtime's frames cannot be followed", e),
            Lack::GcInfo(e) => of("what a frame holds is not known", e),
            Lack::Endless => "more frames, or more to read for them, than any stack has".into(),
        }
    }
}

impl Location {
    /// The stack slot: for a register, where a callee saved it.
    pub(crate) const fn address(&self) -> Option<Addr> {
        match self {
            Location::Register { place, .. } => *place,
            Location::Stack { address, .. } => *address,
        }
    }

    /// As in a disassembly: `[rbp-0x48]`, `rbx`. `frame_register` is the one that slots count from.
    pub(crate) fn text(&self, arch: Arch, frame_register: Option<u8>) -> String {
        let names = RegisterNames::of(arch);
        let name = |number: u8| names.get(usize::from(number)).copied();
        match self {
            Location::Register { number, place } => match (name(*number), place) {
                (Some(name), _) => name.into(),
                // A slot that a frame of the runtime knows by its address.
                (None, Some(place)) => format!("[{place}]"),
                (None, None) => "?".into(),
            },
            Location::Stack { base, offset, .. } => {
                let base = match base {
                    SlotBase::CallerSp => "caller sp",
                    SlotBase::Sp if arch == Arch::X64 => "rsp",
                    SlotBase::Sp => "sp",
                    SlotBase::FrameRegister => frame_register.and_then(name).unwrap_or("frame"),
                };
                let sign = if *offset < 0 { '-' } else { '+' };
                format!("[{base}{sign}{:#x}]", offset.unsigned_abs())
            }
        }
    }
}
