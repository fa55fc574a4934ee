//! Running threads, which no collection has stopped: finds the managed frame that called the native code that such a thread is in, and restores
//! hijacked return addresses.
//!
//! Source: `docs/internals/stacks.md#running-threads`.

use super::Walking;
use crate::base::missed::tried;
use crate::base::reads;
use crate::base::{Addr, AddrRange, Arch, len64};
use crate::stack::frames::{ExplicitFrame, Left};
use crate::stack::native::Caller;
use crate::stack::walk::{Start, inside};
use crate::stack::walked::GapReason;
use crate::stack::{Registers, Saved, StackError, unwind};

/// Maximum number of native frames between a thread's registers and the method that called the native code.
const MOST_NATIVE_FRAMES: usize = 64;

/// The result of unwinding from the native code that a thread is in.
enum FromNative {
    /// The registers in the method that called the native code, or that a signal interrupted.
    Left(Box<Registers>, Left),
    /// An explicit frame describes the caller.
    Framed,
    /// The caller is unknown.
    Unknown(StackError),
}

impl Walking<'_> {
    /// The registers with which the walk starts if a thread in cooperative mode is in native code. These are the registers of the method that
    /// called the native code, or that a signal interrupted. `None` if the walk starts with the thread's registers or an explicit frame. Adds a
    /// gap if the method is not found.
    pub(super) fn running(&mut self, start: &Start, next: Option<&ExplicitFrame>) -> Option<(Registers, Left)> {
        let registers = start.registers.as_ref().filter(|_| start.cooperative)?;
        if !matches!(self.find(registers.ip), Ok(None)) {
            return None;
        }
        // A failed read is not recorded as missing memory. Either it causes a gap, which is reported, or the address was a word that is not a
        // pointer.
        match tried(|| self.above_native(registers, next, start.stack)) {
            FromNative::Left(caller, left) => {
                self.own = (left == Left::Helper).then(|| registers.clone());
                Some((*caller, left))
            }
            FromNative::Framed => None,
            FromNative::Unknown(e) => {
                self.lost(registers, GapReason::Unwind(e));
                None
            }
        }
    }

    /// Replaces the hijacked return address in `caller.ip` by the original, or begins a gap if the original is not found. `caller_sp` is the
    /// caller's stack pointer.
    pub(super) fn undivert(&mut self, thread: Addr, caller: &mut Registers, caller_sp: Addr) {
        match self.diverted(thread, caller_sp) {
            Some(ip) => caller.ip = ip,
            None => self.lost(caller, GapReason::Unwind(StackError::invalid(caller.ip, "a return address hijacked by a suspension"))),
        }
    }

    /// Unwinds from the native code that a thread in cooperative mode is in. `next` is the first explicit frame of the thread.
    fn above_native(&mut self, registers: &Registers, next: Option<&ExplicitFrame>, stack: Option<AddrRange>) -> FromNative {
        let walker = self.walker;
        let (mut at, mut left) = (registers.clone(), Left::Stopped);
        // Whether the stack pointer is on the thread's stack. A signal handler may run on another stack.
        let mut own = at.sp().is_some_and(|sp| inside(stack, sp));
        for _ in 0..MOST_NATIVE_FRAMES {
            // An explicit frame below this stack pointer belongs to a helper that was already unwound, and describes the helper's managed caller.
            if let Some(frame) = next.filter(|_| own)
                && at.sp().is_some_and(|sp| frame.address < sp)
            {
                return FromNative::Framed;
            }
            if let Ok(Some(code)) = self.find(at.ip) {
                // If an explicit frame within the method is active, the walk starts with it.
                let caller = unwind(walker.code.bytes(), code.base, &code.entry, &at, left == Left::Stopped).ok();
                let caller_sp = caller.and_then(|caller| caller.sp());
                let within = next.filter(|frame| caller_sp.is_some_and(|sp| frame.address < sp));
                return match within {
                    Some(frame) if left == Left::Helper && self.has_caller(frame) => FromNative::Framed,
                    _ => FromNative::Left(Box::new(at), left),
                };
            }
            let leaf = left == Left::Stopped;
            let is_managed = |ip| matches!(self.find(ip), Ok(Some(_)));
            let caller = walker.native.step(walker.code.bytes(), (&at, leaf), Some(&walker.runtime), is_managed).map_err(StackError::from);
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
                // The helper has no usable unwind information, but an explicit frame describes its managed caller.
                Err(StackError::Invalid { .. } | StackError::Broken { .. } | StackError::Unsupported { .. })
                    if next.is_some_and(|frame| self.has_caller(frame)) =>
                {
                    return FromNative::Framed;
                }
                Err(e) => return FromNative::Unknown(e),
            }
        }
        FromNative::Unknown(StackError::invalid(registers.ip, "too many native frames below a managed method"))
    }

    /// The original return address whose slot, below `caller_sp`, has been hijacked (x64). `Thread` has a field with the original return address
    /// beside a field with the address of the slot.
    ///
    /// Source: `m_pvHJRetAddr` and `m_ppvHJRetAddrPtr` (threads.h). No descriptor has these fields, so the search looks for a word that is the
    /// address of the slot and is beside a word that points into managed code.
    fn diverted(&mut self, thread: Addr, caller_sp: Addr) -> Option<Addr> {
        /// Number of bytes of a `Thread` that are searched.
        const THREAD_BYTES: u64 = 0x1000;
        if self.walker.frames.arch() != Arch::X64 {
            return None;
        }
        let slot = caller_sp.minus(8)?;
        let memory = self.walker.code.bytes().memory();
        let words: Vec<u64> = tried(|| memory.words(AddrRange::of(thread, THREAD_BYTES)).map(|(_, w)| memory.shape().number(w)).collect());
        reads::take(len64(words.len()));
        let at = words.iter().position(|word| *word == slot.0)?;
        let beside = [at.checked_sub(1), at.checked_add(1), at.checked_add(2)].into_iter().flatten().filter_map(|at| words.get(at));
        let mut managed = beside.map(|word| Addr(*word)).filter(|ip| matches!(self.find(*ip), Ok(Some(_))));
        managed.next()
    }

    fn has_caller(&self, frame: &ExplicitFrame) -> bool {
        !matches!(self.walker.frames.caller(&self.walker.code, &self.walker.runtime, frame), Ok(None))
    }
}

/// The registers whose values are known.
pub(super) fn known(registers: &Registers) -> impl Iterator<Item = (&'static str, Saved)> + '_ {
    let all = (0..registers.count()).map(|n| (registers.name(n), registers.get(n)));
    all.filter(|(_, saved)| saved.value.is_some())
}
