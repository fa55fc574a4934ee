//! Exception objects: message, HResult, inner exceptions and stack trace.
//!
//! Source: contract `Exception`; `object.h` for `StackTraceArrayHeader` and `StackTraceElement`, measured on .NET 8, 9 and 10 against ClrMD.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::fields::Fields;
use super::gcdesc::GcDesc;
use super::objects::Objects;
use super::strings::Strings;
use super::type_names::{NameQuality, TypeNames};
use crate::base::hash::Map;
use crate::base::missed::{Kept, contradiction, tried};
use crate::base::{Addr, len64};
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::{self, Bound, Exception as Layout, StackTraceArrayHeader, StackTraceElement, Structure, bind, globals};
use crate::memory::Memory;

/// Maximum number of frames per exception. A stack overflow has some ten thousand frames.
const MAX_FRAMES: u64 = 20_000;
/// Maximum number of inner exceptions of an AggregateException.
const MAX_INNERS: u64 = 1024;
/// Maximum number of base types.
const MAX_PARENTS: usize = 256;
/// Name of the base type of all exceptions.
const EXCEPTION: &str = "System.Exception";
/// Maximum number of characters per string; stack trace text may be long.
const MAX_TEXT: u32 = 1 << 16;

/// Bit of `StackTraceElement.Flags`: the last frame of a trace that was captured and rethrown (`STEF_LAST_FRAME_FROM_FOREIGN_STACK_TRACE`).
const LAST_OF_FOREIGN: u32 = 1;

/// A stack frame of an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Instruction pointer as stored: inside the call instruction, except for faults.
    pub ip: Addr,
    /// Stack pointer. .NET 11 does not publish it.
    pub sp: Option<Addr>,
    /// Address of the `MethodDesc`.
    pub method: Addr,
    /// Whether this is the last frame of an earlier throw, after which the exception was captured and rethrown.
    pub last_of_foreign: bool,
}

/// Contents of an exception object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Address of the object.
    pub address: Addr,
    /// Address of the method table.
    pub method_table: Addr,
    /// Message; `None` if unset (`Exception.Message` would then return a default text) or not in the dump.
    pub message: Option<String>,
    /// HRESULT.
    pub hresult: Option<i32>,
    /// Inner exception.
    pub inner: Option<Addr>,
    /// All inner exceptions of an AggregateException. The first one is `inner`.
    pub inners: Vec<Addr>,
    /// Frames, innermost first. Empty if the exception was never thrown.
    pub stack: Vec<StackFrame>,
    /// Whether frames are missing from `stack` because the trace is corrupt, or because of the limit.
    pub stack_cut: bool,
    /// Stack trace text, if the program requested it.
    pub stack_text: Option<String>,
    /// Text before the trace: a remote or explicitly set trace.
    pub remote_text: Option<String>,
}

impl Exception {
    /// Whether the exception has a stack trace: frames, or only their text.
    pub(crate) fn was_thrown(&self) -> bool {
        !self.stack.is_empty() || self.remote_text.as_ref().is_some_and(|text| !text.is_empty())
    }

    /// Whether the exception is like the runtime's preallocated exceptions: never thrown, and without the message that constructors set.
    pub(crate) fn is_bare(&self) -> bool {
        !self.was_thrown() && self.message.is_none()
    }
}

/// Reads exception objects. Shared between threads.
#[derive(Debug)]
pub struct Exceptions {
    memory: Arc<Memory>,
    exception: Bound<data::Exception>,
    /// The layout and the size of the structure.
    header: Option<(Bound<StackTraceArrayHeader>, u64)>,
    element: Option<(Bound<StackTraceElement>, u64)>,
    objects: Objects,
    strings: Option<Strings>,
    /// The value of the runtime's variable for the method table of `System.Exception`, and where it is.
    base: Option<(Addr, Addr)>,
    derived: Mutex<Map<Addr, Kept<bool>>>,
    /// Whether a type was found that cannot be classified because its name is missing.
    unnamed: AtomicBool,
    /// Offset of `_innerExceptions` by method table.
    inners: Mutex<Map<Addr, Kept<Option<u64>>>>,
}

impl Exceptions {
    /// The contract that is read.
    pub const CONTRACT: Contract = Contract::needed("Exception", &["1", "n1"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of the contract is advertised, or the descriptor does not have an offset.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Result<Exceptions, ContractError> {
        Self::CONTRACT.require(d)?;
        let header = bind!(d, StackTraceArrayHeader { Size });
        let element = bind!(d, StackTraceElement { IP, SP?, MethodDesc, Flags? });
        let base =
            globals::ExceptionMethodTable.of(d).ok().and_then(|at| Some((memory.ptr(at).ok()?, at))).filter(|(base, _)| !base.is_null());
        Ok(Exceptions {
            memory: Arc::clone(memory),
            exception: bind!(d, Layout {
                _message, _innerException, _stackTrace?, _stackTraceString?, _remoteStackTraceString?, _HResult?, _corDbgStackTrace?,
                _idxFirstFreeStackTraceEntry?
            })?,
            header: header.ok().zip(StackTraceArrayHeader::size(d).ok()),
            element: element.ok().zip(StackTraceElement::size(d).ok().filter(|n| *n > 0)),
            objects: Objects::bind(memory, d)?,
            strings: Strings::bind(memory, d).ok(),
            base,
            derived: Mutex::default(),
            unnamed: AtomicBool::new(false),
            inners: Mutex::default(),
        })
    }

    /// The method table of the object at `object`, with the mark bits cleared.
    pub fn method_table(&self, object: Addr) -> Option<Addr> {
        self.objects.method_table(object).filter(|a| !a.is_null())
    }

    /// The type at `mt` and its base types.
    fn parents(names: &TypeNames, mt: Addr) -> impl Iterator<Item = Addr> {
        let next = |mt: &Addr| names.method_tables().read(*mt).ok().map(|i| i.parent).filter(|p| !p.is_null());
        std::iter::successors(Some(mt), next).take(MAX_PARENTS)
    }

    /// The type with this name among the type at `mt` and its base types.
    pub(crate) fn base_named(names: &TypeNames, mt: Addr, name: &str) -> Option<Addr> {
        Self::parents(names, mt).find(|parent| names.name(*parent).name == name)
    }

    /// Whether types without names were found. Such types may be exceptions.
    pub fn are_undecided(&self) -> bool {
        self.unnamed.load(Ordering::Relaxed)
    }

    /// The method table of `System.Exception`; `None` if the runtime's variable is not in the dump or points to something else, which is reported.
    fn base(&self, names: &TypeNames) -> Option<Addr> {
        let (base, at) = self.base?;
        // The variable is good unless what is in the dump proves otherwise.
        let is_other = tried(|| {
            let name = names.name(base);
            let is_named = name.quality == NameQuality::Exact && name.name != EXCEPTION;
            is_named || matches!(names.method_tables().is_valid(base), Ok(false))
        });
        if !is_other {
            return Some(base);
        }
        contradiction(at, "the runtime's method table of System.Exception is not that of System.Exception");
        None
    }

    /// Whether objects of this type are exceptions. Cached per type.
    pub fn is_exception(&self, names: &TypeNames, mt: Addr) -> bool {
        let known = self.derived.lock().unwrap_or_else(PoisonError::into_inner).get(&mt).map(|is| *is.get());
        if let Some(known) = known {
            return known;
        }
        let is = Kept::of(|| match self.base(names) {
            Some(base) => Self::parents(names, mt).any(|p| p == base),
            // If the runtime's variable is not in the dump, the names of the base types decide.
            None => {
                let mut unnamed = false;
                let named = Self::parents(names, mt).map(|p| names.name(p)).any(|base| {
                    unnamed |= base.quality == NameQuality::Unknown;
                    base.name == EXCEPTION
                });
                if unnamed && !named {
                    self.unnamed.store(true, Ordering::Relaxed);
                }
                named && self.fits(names, mt)
            }
        });
        *self.derived.lock().unwrap_or_else(PoisonError::into_inner).entry(mt).or_insert(is).get()
    }

    /// Whether the GCDesc of the type at `mt` has references at the offsets of the layout. For NativeAOT programs, which do not publish the
    /// layout, the layout is a guess.
    fn fits(&self, names: &TypeNames, mt: Addr) -> bool {
        if !self.exception.has(Layout::_corDbgStackTrace) {
            return true;
        }
        let Ok(info) = names.method_tables().read(mt) else { return false };
        let fields = [
            Layout::_message,
            Layout::_innerException,
            Layout::_corDbgStackTrace,
            Layout::_stackTraceString,
            Layout::_remoteStackTraceString,
        ];
        let wanted = fields.map(|field| self.exception.offset(field));
        let end = wanted.into_iter().flatten().max().unwrap_or(0).saturating_add(self.memory.ptr_bytes());
        let places = GcDesc::offsets(&self.memory, &info, end);
        wanted.into_iter().flatten().all(|at| places.binary_search(&at).is_ok())
    }

    /// Reads the exception at `object`; `None` if the object is not an exception, or not in the dump.
    pub fn read(&self, names: &TypeNames, fields: Option<&Fields>, object: Addr) -> Option<Exception> {
        let method_table = self.method_table(object)?;
        self.is_exception(names, method_table).then_some(())?;
        let reference = |field| self.exception.pointer(&self.memory, object, field);
        let text = |field| Some(self.strings.as_ref()?.text(reference(field)?, MAX_TEXT)?.0);
        let traced = reference(Layout::_stackTrace).map(|a| self.stack(names, a));
        let compiled = || {
            let count = self.exception.place(object, Layout::_idxFirstFreeStackTraceEntry);
            Some(self.addresses(reference(Layout::_corDbgStackTrace)?, count?))
        };
        let (stack, stack_cut) = traced.or_else(compiled).unwrap_or_default();
        let inners = fields.and_then(|f| self.inners_offset(names, f, method_table));
        let inners = inners.and_then(|offset| self.memory.ptr(object.plus(offset)).ok()).filter(|a| !a.is_null());
        Some(Exception {
            address: object,
            method_table,
            message: text(Layout::_message),
            hresult: self.exception.get(&self.memory, object, Layout::_HResult),
            inner: reference(Layout::_innerException),
            inners: inners.map(|list| self.references(list)).unwrap_or_default(),
            stack,
            stack_cut,
            stack_text: text(Layout::_stackTraceString),
            remote_text: text(Layout::_remoteStackTraceString),
        })
    }

    fn inners_offset(&self, names: &TypeNames, fields: &Fields, mt: Addr) -> Option<u64> {
        let known = self.inners.lock().unwrap_or_else(PoisonError::into_inner).get(&mt).map(|offset| *offset.get());
        if let Some(known) = known {
            return known;
        }
        let offset = Kept::of(|| {
            let aggregate = Self::parents(names, mt).find(|p| names.name(*p).name == "System.AggregateException");
            aggregate.and_then(|mt| fields.offset(names, mt, "_innerExceptions"))
        });
        *self.inners.lock().unwrap_or_else(PoisonError::into_inner).entry(mt).or_insert(offset).get()
    }

    /// Number of elements of the array at `array`, and address of the first element.
    fn elements(&self, array: Addr) -> Option<(u64, Addr)> {
        Some((u64::from(self.objects.component_count(array)?), array.plus(self.objects.array_bytes()?)))
    }

    /// The references in an array of objects, at most [`MAX_INNERS`].
    fn references(&self, array: Addr) -> Vec<Addr> {
        let Some((count, first)) = self.elements(array) else { return Vec::new() };
        let word = self.memory.ptr_bytes();
        (0..count.min(MAX_INNERS)).map_while(|i| self.memory.ptr(first.element(i, word)).ok()).filter(|a| !a.is_null()).collect()
    }

    /// The frames referenced by `_stackTrace`, and whether some are missing.
    fn stack(&self, names: &TypeNames, trace: Addr) -> (Vec<StackFrame>, bool) {
        self.frames(names, trace).unwrap_or((Vec::new(), true))
    }

    /// The frames of a NativeAOT program's exception, and whether frames are missing. `array` has the code addresses, and the word at `count`
    /// their number. The addresses are return addresses. A null address follows the last frame of an earlier throw.
    fn addresses(&self, array: Addr, count: Addr) -> (Vec<StackFrame>, bool) {
        let read = || {
            let wanted = u64::from(self.memory.u32(count).ok()?);
            let (room, first) = self.elements(array)?;
            let word = self.memory.ptr_bytes();
            let frame = |i: u64| self.memory.ptr(first.element(i, word)).ok();
            let all: Vec<Addr> = (0..wanted.min(room).min(MAX_FRAMES)).map_while(frame).collect();
            let cut = len64(all.len()) < wanted;
            let mut frames = Vec::new();
            for (i, ip) in all.iter().enumerate() {
                let last_of_foreign = all.get(i.saturating_add(1)).is_some_and(|next| next.is_null());
                if !ip.is_null() {
                    frames.push(StackFrame { ip: *ip, sp: None, method: Addr::NULL, last_of_foreign });
                }
            }
            Some((frames, cut))
        };
        read().unwrap_or((Vec::new(), true))
    }

    /// The byte array with the frames of the exception at `object`.
    pub fn trace_bytes(&self, names: &TypeNames, object: Addr) -> Option<Addr> {
        let trace = self.exception.pointer(&self.memory, object, Layout::_stackTrace)?;
        self.trace_array(names, trace)
    }

    /// The byte array referenced by `_stackTrace`.
    fn trace_array(&self, names: &TypeNames, trace: Addr) -> Option<Addr> {
        // In .NET 9 and later, `_stackTrace` may refer to an array of objects. The first object is the byte array; the other objects keep
        // collectible methods alive.
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
        // Since .NET 9, the upper half of the word has another use, so only the lower half is read as the number of frames.
        let wanted = u64::from(header.get(&self.memory, first, StackTraceArrayHeader::Size)?);
        let count = wanted.min(room).min(MAX_FRAMES);
        let start = first.plus(*header_bytes);
        let frame = |i: u64| {
            let at = start.element(i, *element_bytes);
            let flags = element.get(&self.memory, at, StackTraceElement::Flags).unwrap_or(0);
            Some(StackFrame {
                ip: element.get(&self.memory, at, StackTraceElement::IP)?,
                sp: element.place(at, StackTraceElement::SP).map(|at| self.memory.ptr(at)).transpose().ok()?,
                method: element.get(&self.memory, at, StackTraceElement::MethodDesc)?,
                last_of_foreign: flags & LAST_OF_FOREIGN != 0,
            })
        };
        let frames: Vec<StackFrame> = (0..count).map_while(frame).collect();
        let cut = u64::try_from(frames.len()).ok()? < wanted;
        Some((frames, cut))
    }
}
