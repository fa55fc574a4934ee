//! Threads that no collection has stopped: the way from their registers, and past a diverted return, to the frames that the walk knows.
//!
//! Source: `docs/internals/stacks.md#running-threads`.

use super::Walking;
use crate::base::missed::tried;
use crate::base::reads;
use crate::base::{Addr, AddrRange, Arch, len64};
use crate::stack::frames::{ExplicitFrame, Left};
use crate::stack::native::Caller;
use crate::stack::walk::{Start, inside};
use crate::stack::walked::Lack;
use crate::stack::{CodeBytes, Registers, Saved, StackError, unwind};

/// Most native frames between a thread's registers and the method that has called it.
const MOST_NATIVE_FRAMES: usize = 64;

/// The way from native code in which a thread is.
enum FromNative {
    /// The method that has called it, or that a signal has interrupted.
    Left(Box<Registers>, Left),
    /// An explicit frame describes its caller.
    Framed,
    /// Not known.
    Unknown(StackError),
}

impl Walking<'_> {
    /// Where the walk of a thread begins that is in native code, although a collection has to wait for it: at the method that has called
    /// this code, or that a signal has interrupted, unless an explicit frame leads there. Where it is not found, there is a gap.
    pub(super) fn running(&mut self, start: &Start, next: Option<&ExplicitFrame>) -> Option<(Registers, Left)> {
        let registers = start.registers.as_ref().filter(|_| start.cooperative)?;
        if !matches!(self.find(registers.ip), Ok(None)) {
            return None;
        }
        // A read that fails makes a gap, or is one of a word that may be no address.
        match tried(|| self.above_native(registers, next, start.stack)) {
            FromNative::Left(caller, left) => {
                self.own = (left == Left::Helper).then(|| registers.clone());
                Some((*caller, left))
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
    fn above_native(&mut self, registers: &Registers, next: Option<&ExplicitFrame>, stack: Option<AddrRange>) -> FromNative {
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
