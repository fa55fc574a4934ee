//! Threads that no collection has stopped: the way from their registers, and past a diverted return, to the frames that the walk knows.
//!
//! Source: `docs/internals/stacks.md#running-threads`.

use std::sync::OnceLock;

use super::Walking;
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Arch, len64};
use crate::memory::Image;
use crate::stack::frames::{ExplicitFrame, Left};
use crate::stack::native::{Caller, Native};
use crate::stack::walk::{StackWalker, Start, inside};
use crate::stack::walked::Lack;
use crate::stack::{CodeBytes, Registers, Saved, StackError, unwind};

/// Most native frames between a thread's registers and the method that has called it.
const MOST_NATIVE_FRAMES: usize = 64;

/// The way from native code in which a thread is.
enum FromNative {
    /// The method that has called it, or that a signal has interrupted.
    Left(Registers, Left),
    /// An explicit frame describes its caller.
    Framed,
    /// Not known.
    Unknown(StackError),
}

/// The images of a process, sorted, to unwind their code.
#[derive(Debug)]
pub(super) struct NativeImages(Vec<(AddrRange, OnceLock<Native>)>);

impl NativeImages {
    /// Those at `sorted`.
    pub(super) fn new(sorted: &[AddrRange]) -> NativeImages {
        NativeImages(sorted.iter().map(|image| (*image, OnceLock::new())).collect())
    }

    /// Where the image is that has `at`.
    pub(super) fn image(&self, at: Addr) -> Option<AddrRange> {
        self.at(at).map(|(image, _)| *image)
    }

    fn at(&self, at: Addr) -> Option<&(AddrRange, OnceLock<Native>)> {
        let last = self.0.partition_point(|(image, _)| image.start <= at).checked_sub(1)?;
        self.0.get(last).filter(|(image, _)| image.contains(at))
    }
}

impl StackWalker {
    /// The caller, for `registers` in native code of any image. `leaf`: they are the thread's own.
    ///
    /// # Errors
    /// [`StackError`] as of [`Native::step`].
    fn step(&self, registers: &Registers, leaf: bool) -> Result<Caller, StackError> {
        let (bytes, ip) = (self.code.bytes(), registers.ip);
        let (image, native) = self.native.at(ip).ok_or(StackError::invalid(ip, "native code of no image"))?;
        let of_runtime = self.runtime.image().filter(|runtime| runtime.base == image.start);
        let native = match of_runtime {
            Some(_) => &self.runtime,
            None => native.get_or_init(|| Native::new(Image::at(bytes.memory(), image.start), 0)),
        };
        native.step(bytes, registers, leaf).map_err(StackError::from)
    }
}

impl Walking<'_> {
    /// Whether the instruction before `ip` may be a call (x64): `e8` with a distance, or `ff /2` with an operand of up to five bytes.
    fn is_after_call(&self, ip: Addr) -> bool {
        /// Bytes of the longest such call.
        const LONGEST: u64 = 7;
        if self.walker.frames.arch() != Arch::X64 {
            return true;
        }
        // Of code that is only in a file, nothing says otherwise.
        let Some(before) = ip.minus(LONGEST).and_then(|start| self.walker.code.bytes().bytes(start, LONGEST).ok()) else { return true };
        let at = |back: usize| before.len().checked_sub(back).and_then(|i| before.get(i));
        let indirect = |back: usize| at(back) == Some(&0xff) && at(back.saturating_sub(1)).is_some_and(|modrm| modrm >> 3 & 7 == 2);
        at(5) == Some(&0xe8) || [2, 3, 4, 6, 7].into_iter().any(indirect)
    }

    /// Where the walk of a thread begins that is in native code, although a collection has to wait for it: at the method that has called
    /// this code, or that a signal has interrupted, unless an explicit frame leads there. Where it is not found, there is a gap.
    pub(super) fn running(&mut self, start: &Start, next: Option<&ExplicitFrame>) -> Option<(Registers, Left)> {
        let registers = start.registers.as_ref().filter(|_| start.cooperative)?;
        if !matches!(self.find(registers.ip), Ok(None)) {
            return None;
        }
        // A read that fails makes a gap, or is one of a word that may be no address.
        match tried(|| self.from_native(registers, next, start.stack)) {
            FromNative::Left(caller, left) => {
                self.own = (left == Left::Helper).then(|| registers.clone());
                Some((caller, left))
            }
            FromNative::Framed => None,
            FromNative::Unknown(e) => {
                self.lost(registers, Lack::Unwind(e));
                None
            }
        }
    }

    /// Replaces the return to the runtime, by which a suspension has diverted that to `caller`, whose frame begins at `caller_sp`.
    pub(super) fn undivert(&mut self, thread: Addr, caller: &mut Registers, caller_sp: Addr) {
        match self.diverted(thread, caller_sp) {
            Some(ip) => caller.ip = ip,
            None => self.lost(caller, Lack::Unwind(StackError::invalid(caller.ip, "a return that a suspension has diverted"))),
        }
    }

    /// The way up from native code in which a thread is that runs managed code. `next`: its first explicit frame.
    fn from_native(&mut self, registers: &Registers, next: Option<&ExplicitFrame>, stack: Option<AddrRange>) -> FromNative {
        let walker = self.walker;
        let (mut at, mut left) = (registers.clone(), Left::Stopped);
        // The handler of a signal may run on another stack.
        let mut own = at.sp().is_some_and(|sp| inside(stack, sp));
        for _ in 0..MOST_NATIVE_FRAMES {
            // A helper with a frame: what is above is described by that.
            if let Some(frame) = next.filter(|_| own)
                && at.sp().is_some_and(|sp| frame.address < sp)
            {
                return FromNative::Framed;
            }
            if let Ok(Some(code)) = self.find(at.ip) {
                // After a call of native code that has a frame in the method, the runtime takes the place of that call.
                let caller = unwind(walker.code.bytes(), code.base, &code.entry, &at, left == Left::Stopped).ok();
                let caller_sp = caller.and_then(|caller| caller.sp());
                let within = next.filter(|frame| caller_sp.is_some_and(|sp| frame.address < sp));
                return match within {
                    Some(frame) if left == Left::Helper && self.has_caller(frame) => FromNative::Framed,
                    _ => FromNative::Left(at, left),
                };
            }
            let leaf = left == Left::Stopped;
            let caller = match walker.step(&at, leaf) {
                // Stubs that the runtime has generated are in no image, and have no frame.
                Err(e @ StackError::Invalid { .. }) if leaf => {
                    self.returned_to(&at).map(|registers| Caller { registers, interrupted: false }).ok_or(e)
                }
                caller => caller,
            };
            let above = |caller: Caller| {
                let (to, sp) = (caller.registers.sp(), at.sp());
                let up = to.zip(sp).is_some_and(|(to, sp)| to > sp || leaf && to == sp) && (!own || to.is_some_and(|to| inside(stack, to)));
                if up || caller.interrupted {
                    Ok(caller)
                } else {
                    Err(StackError::invalid(at.ip, "a frame's caller is not above it on the stack"))
                }
            };
            match caller.and_then(above) {
                Ok(caller) => {
                    left = if caller.interrupted { Left::Stopped } else { Left::Helper };
                    at = caller.registers;
                    own = at.sp().is_some_and(|sp| inside(stack, sp));
                }
                // Where a frame prepared the call, it is that of the helper which the thread is in.
                Err(StackError::Invalid { .. } | StackError::Unsupported { .. }) if next.is_some_and(|frame| self.has_caller(frame)) => {
                    return FromNative::Framed;
                }
                Err(e) => return FromNative::Unknown(e),
            }
        }
        FromNative::Unknown(StackError::invalid(registers.ip, "more native frames than a helper has"))
    }

    /// The return address that the runtime has replaced in the slot below `caller_sp` (x64): `Thread` has it beside the address of the slot.
    ///
    /// Source: `m_pvHJRetAddr` and `m_ppvHJRetAddrPtr` (threads.h), which no descriptor has: they are found by that address, and by the code
    /// that the other leads to.
    fn diverted(&mut self, thread: Addr, caller_sp: Addr) -> Option<Addr> {
        /// Bytes of a `Thread` that are searched.
        const THREAD_BYTES: u64 = 0x1000;
        if self.walker.frames.arch() != Arch::X64 {
            return None;
        }
        let slot = caller_sp.minus(8)?;
        let memory = self.walker.code.bytes().memory();
        let words: Vec<u64> =
            tried(|| memory.words(AddrRange::new(thread, thread.plus(THREAD_BYTES))).map(|(_, w)| memory.shape().number(w)).collect());
        CodeBytes::take(len64(words.len()));
        let at = words.iter().position(|word| *word == slot.0)?;
        let beside = [at.checked_sub(1), at.checked_add(1), at.checked_add(2)].into_iter().flatten().filter_map(|at| words.get(at));
        let mut managed = beside.map(|word| Addr(*word)).filter(|ip| matches!(self.find(*ip), Ok(Some(_))));
        managed.next()
    }

    fn has_caller(&self, frame: &ExplicitFrame) -> bool {
        !matches!(self.walker.frames.caller(&self.walker.code, &self.walker.runtime, frame), Ok(None))
    }

    /// The caller of code without unwind information, as stubs that the runtime has generated and entries of linkage tables are: the return
    /// address is on top of the stack (x64) or in the link register (arm64), if that is after a call in managed code or in an image.
    fn returned_to(&mut self, registers: &Registers) -> Option<Registers> {
        /// Number of the link register.
        const LINK: u8 = 30;
        let (mut caller, sp) = (registers.preserved(), registers.sp()?);
        match registers.arch() {
            Arch::X64 => {
                caller.ip = Addr(self.walker.code.bytes().u64(sp).ok()?);
                caller.set_sp(sp.plus(8));
            }
            _ => {
                caller.ip = Addr(registers.value(LINK)?);
                caller.set_sp(sp);
            }
        }
        let ip = caller.ip;
        let is_code = matches!(self.find(ip), Ok(Some(_))) || self.walker.native.image(ip).is_some();
        (is_code && self.is_after_call(ip)).then_some(caller)
    }
}

/// The registers whose values are known.
pub(super) fn known(registers: &Registers) -> impl Iterator<Item = (&'static str, Saved)> + '_ {
    let all = (0..registers.count()).map(|n| (registers.name(n), registers.get(n)));
    all.filter(|(_, saved)| saved.value.is_some())
}
