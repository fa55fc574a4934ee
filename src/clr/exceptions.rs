//! Exception objects: message, HResult, inner exceptions and the stack trace that each carries.
//!
//! Source: contract `Exception`; `object.h` for `StackTraceArrayHeader` and `StackTraceElement`, measured on .NET 8, 9 and 10 against ClrMD.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::fields::Fields;
use super::objects::Objects;
use super::strings::Strings;
use super::type_names::TypeNames;
use crate::base::Addr;
use crate::contract::descriptor::layout;
use crate::contract::{Contract, ContractError, Descriptor};
use crate::memory::Memory;

/// Frames of one exception. A stack overflow has some ten thousand.
const MAX_FRAMES: u64 = 20_000;
/// Inner exceptions of one AggregateException.
const MAX_INNERS: u64 = 1024;
/// Base types of one type.
const MAX_PARENTS: usize = 256;
/// Characters of one string: a composed trace may be long.
const MAX_TEXT: u32 = 1 << 16;

/// StackTraceElement.Flags: the last frame of a trace that was caught, stored and thrown again
/// (`STEF_LAST_FRAME_FROM_FOREIGN_STACK_TRACE`).
const LAST_OF_FOREIGN: u32 = 1;

layout! {
    struct ExceptionLayout : "Exception" {
        message: req "_message",
        inner: req "_innerException",
        stack: opt "_stackTrace",
        stack_text: opt "_stackTraceString",
        remote_text: opt "_remoteStackTraceString",
        hresult: opt "_HResult",
    }
}

layout! {
    struct HeaderLayout : "StackTraceArrayHeader" {
        size: req "Size",
    }
}

layout! {
    struct ElementLayout : "StackTraceElement" {
        // .NET 11 publishes what overlays describe for its predecessors, in its own spelling and without the stack pointer.
        ip: req "IP|Ip",
        sp: opt "SP",
        method: req "MethodDesc",
        flags: opt "Flags",
    }
}

/// A frame that an exception passed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Instruction pointer, as the exception keeps it: inside of the call for all but faults.
    pub ip: Addr,
    /// Stack pointer; .NET 11 does not publish it.
    pub sp: Option<Addr>,
    /// The runtime's `MethodDesc`.
    pub method: Addr,
    /// Whether the frames up to here were thrown elsewhere, stored, and thrown again.
    pub last_of_foreign: bool,
}

/// What an exception object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The object.
    pub address: Addr,
    /// Its method table.
    pub method_table: Addr,
    /// Its message; `None` where none was given (the program would compose one) or it is not in the dump.
    pub message: Option<String>,
    /// Its HRESULT.
    pub hresult: Option<i32>,
    /// The exception that led to it.
    pub inner: Option<Addr>,
    /// All inner exceptions of an AggregateException; the first is `inner`.
    pub inners: Vec<Addr>,
    /// Frames, innermost first. Empty for one that was not thrown.
    pub stack: Vec<StackFrame>,
    /// Whether frames are missing from `stack`: damaged, or past the limit.
    pub stack_cut: bool,
    /// The trace as text, where the program had asked for it.
    pub stack_text: Option<String>,
    /// Text in front of the trace: that of another process, or one set by hand.
    pub remote_text: Option<String>,
}

/// Reads exception objects. Shared between threads.
#[derive(Debug)]
pub struct Exceptions {
    memory: Arc<Memory>,
    layout: ExceptionLayout,
    header: Option<(HeaderLayout, u64)>,
    element: Option<(ElementLayout, u64)>,
    objects: Objects,
    strings: Option<Strings>,
    base: Option<Addr>,
    derived: Mutex<FxHashMap<Addr, bool>>,
    /// Offset of `_innerExceptions` by method table.
    inners: Mutex<FxHashMap<Addr, Option<u64>>>,
}

impl Exceptions {
    /// The contract that is read.
    pub const CONTRACT: Contract = Contract::needed("Exception", &["1"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] where the contract is not advertised in a version that is read, or the descriptor lacks an offset.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Result<Exceptions, ContractError> {
        Self::CONTRACT.require(d)?;
        let base = d.pointer("ExceptionMethodTable").ok().and_then(|a| memory.ptr(a).ok()).filter(|a| !a.is_null());
        Ok(Exceptions {
            memory: Arc::clone(memory),
            layout: ExceptionLayout::bind(d)?,
            header: HeaderLayout::bind(d).ok().zip(d.size_of("StackTraceArrayHeader").ok()),
            element: ElementLayout::bind(d).ok().zip(d.size_of("StackTraceElement").ok().filter(|n| *n > 0)),
            objects: Objects::bind(memory, d)?,
            strings: Strings::bind(memory, d).ok(),
            base,
            derived: Mutex::default(),
            inners: Mutex::default(),
        })
    }

    /// The method table of the object at `object`, mark bits cleared.
    pub fn method_table(&self, object: Addr) -> Option<Addr> {
        self.objects.method_table(object).filter(|a| !a.is_null())
    }

    /// The types from `mt` up to `System.Object`.
    fn parents(names: &TypeNames, mt: Addr) -> impl Iterator<Item = Addr> {
        let next = |mt: &Addr| names.method_tables().read(*mt).ok().map(|i| i.parent).filter(|p| !p.is_null());
        std::iter::successors(Some(mt), next).take(MAX_PARENTS)
    }

    /// Whether objects of this type are exceptions. Remembered per type.
    pub fn is_exception(&self, names: &TypeNames, mt: Addr) -> bool {
        let known = self.derived.lock().unwrap_or_else(PoisonError::into_inner).get(&mt).copied();
        if let Some(known) = known {
            return known;
        }
        let is = match self.base {
            Some(base) => Self::parents(names, mt).any(|p| p == base),
            // Where the runtime's variable is not in the dump, by name.
            None => Self::parents(names, mt).any(|p| names.name(p).name == "System.Exception"),
        };
        self.derived.lock().unwrap_or_else(PoisonError::into_inner).insert(mt, is);
        is
    }

    /// Reads the exception at `object`; `None` where there is no exception object there, or where it is not in the dump.
    pub fn read(&self, names: &TypeNames, fields: Option<&Fields>, object: Addr) -> Option<Exception> {
        let method_table = self.method_table(object)?;
        self.is_exception(names, method_table).then_some(())?;
        let reference = |offset: u64| self.memory.ptr(object.plus(offset)).ok().filter(|a| !a.is_null());
        let text = |offset: Option<u64>| self.strings.as_ref()?.until_nul(reference(offset?)?, MAX_TEXT);
        let (stack, stack_cut) = self.layout.stack.and_then(reference).map(|a| self.stack(names, a)).unwrap_or_default();
        let inners = fields.and_then(|f| self.inners_offset(names, f, method_table)).and_then(reference);
        Some(Exception {
            address: object,
            method_table,
            message: text(Some(self.layout.message)),
            hresult: self.layout.hresult.and_then(|o| self.memory.i32(object.plus(o)).ok()),
            inner: reference(self.layout.inner),
            inners: inners.map(|list| self.references(list)).unwrap_or_default(),
            stack,
            stack_cut,
            stack_text: text(self.layout.stack_text),
            remote_text: text(self.layout.remote_text),
        })
    }

    fn inners_offset(&self, names: &TypeNames, fields: &Fields, mt: Addr) -> Option<u64> {
        let known = self.inners.lock().unwrap_or_else(PoisonError::into_inner).get(&mt).copied();
        if let Some(known) = known {
            return known;
        }
        let aggregate = Self::parents(names, mt).find(|p| names.name(*p).name == "System.AggregateException");
        let offset = aggregate.and_then(|mt| fields.offset(names, mt, "_innerExceptions"));
        self.inners.lock().unwrap_or_else(PoisonError::into_inner).insert(mt, offset);
        offset
    }

    /// Number of elements of the array at `array`, and where they begin.
    fn elements(&self, array: Addr) -> Option<(u64, Addr)> {
        Some((u64::from(self.objects.component_count(array)?), array.plus(self.objects.array_bytes()?)))
    }

    /// The references of an array of objects, at most [`MAX_INNERS`].
    fn references(&self, array: Addr) -> Vec<Addr> {
        let Some((count, first)) = self.elements(array) else { return Vec::new() };
        let word = self.memory.ptr_bytes();
        (0..count.min(MAX_INNERS)).map_while(|i| self.memory.ptr(first.element(i, word)).ok()).filter(|a| !a.is_null()).collect()
    }

    /// The frames behind `_stackTrace`, and whether some are missing.
    fn stack(&self, names: &TypeNames, trace: Addr) -> (Vec<StackFrame>, bool) {
        self.frames(names, trace).unwrap_or((Vec::new(), true))
    }

    /// The byte array that holds the frames of the exception at `object`.
    pub fn trace_bytes(&self, names: &TypeNames, object: Addr) -> Option<Addr> {
        let trace = self.memory.ptr(object.plus(self.layout.stack?)).ok().filter(|a| !a.is_null())?;
        self.trace_array(names, trace)
    }

    /// The byte array behind `_stackTrace`.
    fn trace_array(&self, names: &TypeNames, trace: Addr) -> Option<Addr> {
        // .NET 9 and later: an array of objects, the bytes first, behind them what keeps collectible methods alive.
        let info = names.method_tables().read(self.method_table(trace)?).ok()?;
        info.is_array.then_some(())?;
        let bytes = if info.contains_pointers { self.references(trace).first().copied()? } else { trace };
        let info = names.method_tables().read(self.method_table(bytes)?).ok()?;
        (info.is_array && info.component_size == 1).then_some(bytes)
    }

    fn frames(&self, names: &TypeNames, trace: Addr) -> Option<(Vec<StackFrame>, bool)> {
        let ((header, header_bytes), (element, element_bytes)) = (self.header.as_ref()?, self.element.as_ref()?);
        let bytes = self.trace_array(names, trace)?;
        let (length, first) = self.elements(bytes)?;
        let room = length.checked_sub(*header_bytes)?.checked_div(*element_bytes)?;
        // The upper half of the word holds something else from .NET 9 on.
        let wanted = u64::from(self.memory.u32(first.plus(header.size)).ok()?);
        let count = wanted.min(room).min(MAX_FRAMES);
        let start = first.plus(*header_bytes);
        let frame = |i: u64| {
            let at = start.element(i, *element_bytes);
            let flags = element.flags.and_then(|o| self.memory.u32(at.plus(o)).ok()).unwrap_or(0);
            Some(StackFrame {
                ip: self.memory.ptr(at.plus(element.ip)).ok()?,
                sp: element.sp.map(|o| self.memory.ptr(at.plus(o))).transpose().ok()?,
                method: self.memory.ptr(at.plus(element.method)).ok()?,
                last_of_foreign: flags & LAST_OF_FOREIGN != 0,
            })
        };
        let frames: Vec<StackFrame> = (0..count).map_while(frame).collect();
        let cut = u64::try_from(frames.len()).ok()? < wanted;
        Some((frames, cut))
    }
}
