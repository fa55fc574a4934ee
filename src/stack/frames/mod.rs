//! The frame chain of a thread. Each explicit frame (`Frame`) marks a call from managed code into the runtime or native code, and most have the
//! registers of the managed caller.
//!
//! Source: contract `StackWalk`, `frames.h`; measured as described in `docs/internals/stacks.md#frames`.

mod context;
mod helper;
mod protected;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::code::CodeMap;
use super::native::Native;
use super::{CodeBytes, RegisterNames, Registers, Saved, StackError};
use crate::base::{Addr, AddrRange, Arch, Os};
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::{
    ArgumentRegisters, Bound, CalleeSavedRegisters, FaultingExceptionFrame, Frame, FramedMethodFrame, HijackArgs, HijackFrame,
    InlinedCallFrame, ResumableFrame, SoftwareExceptionFrame, Structure, Thread, TransitionBlock, bind, globals,
};
use helper::Helper;
pub(crate) use protected::ProtectedFrame;
use protected::{END, ProtectedFrames};

/// The registers that the runtime's `OnHijackTripThread` saves in a `HijackArgs` at a hijacked return: first the registers of the returned value,
/// then callee-saved registers. .NET 10 added a register for the continuation of an async method.
#[derive(Debug)]
struct HijackRegisters {
    fields: Bound<HijackArgs>,
    /// Numbers and offsets of the registers of the returned value; on arm64, of all registers that are named fields.
    registers: Vec<(u8, u64)>,
    /// Size of the structure in bytes. On arm64, the caller's frame follows it.
    size: Option<u64>,
}

impl HijackRegisters {
    fn bind(d: &Descriptor, arch: Arch, os: Os) -> Option<HijackRegisters> {
        let fields = bind!(d, HijackArgs { CalleeSavedRegisters?, Rsp? }).ok()?;
        let mut registers = registers_of::<HijackArgs>(d, arch);
        if arch == Arch::X64 {
            let returned: &[&str] = if os == Os::Windows { &["rax", "rcx"] } else { &["rax", "rdx", "rcx"] };
            let places = (0..fields.offset(HijackArgs::CalleeSavedRegisters)?).step_by(8);
            registers = returned.iter().filter_map(|name| number_of(arch, name)).zip(places).collect();
        }
        Some(HijackRegisters { fields, registers, size: HijackArgs::size(d).ok() })
    }
}

/// Numbers and offsets of the fields that are named after registers.
fn registers_of<S: Structure>(d: &Descriptor, arch: Arch) -> Vec<(u8, u64)> {
    let fields = d.type_info(S::NAME).into_iter().flat_map(|t| &t.fields);
    fields.filter_map(|(name, field)| Some((number_of(arch, name)?, field.offset))).collect()
}

fn number_of(arch: Arch, name: &str) -> Option<u8> {
    let name = name.to_ascii_lowercase();
    RegisterNames::of(arch).iter().position(|n| *n == name).and_then(|n| u8::try_from(n).ok())
}

/// The role of an explicit frame in a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A P/Invoke. The explicit frame is in the stack frame of the method that makes the call.
    Inlined,
    /// A call that the runtime prepares. The explicit frame owns the callee's arguments.
    Transition,
    /// An exception that the runtime throws.
    SoftwareException,
    /// A hardware fault.
    Fault,
    /// A thread that was stopped at an arbitrary instruction.
    Resumable,
    /// A thread whose return address was hijacked to stop it for a GC.
    Hijack,
    /// A call of a native helper (.NET 8 and 9), with a number of protected references.
    Helper(Protected),
    /// A frame with a list of structures and references in native memory of the stack, which it protects. The list is not read.
    Protecting,
    /// A frame that marks a place and does not describe its caller.
    Marker,
    /// A frame of a type that is not read. It may describe its caller, so frames may be missing after it.
    Unhandled,
}

/// The kind of references that a `HelperMethodFrame` protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protected {
    /// This many references, at most three. The frame has a pointer to the slot of each.
    Slots(u8),
    /// An array of references.
    Array,
}

/// How execution left a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Left {
    /// By a call.
    #[default]
    Call,
    /// By an exception that the runtime throws.
    Exception,
    /// By a hardware fault. The instruction pointer is the address of the faulting instruction.
    Fault,
    /// By being stopped at an arbitrary instruction. Execution will continue at this instruction.
    Stopped,
    /// By a call of native code without an explicit frame: a JIT helper. Such a call need not be a safepoint.
    Helper,
}

/// A type of explicit frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameType {
    /// The name; `None` for a type that the descriptor does not name.
    pub(crate) name: Option<Arc<str>>,
    role: Role,
}

/// An explicit frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExplicitFrame {
    /// Address of the frame.
    pub(crate) address: Addr,
    /// Type of the frame.
    pub(crate) of: Arc<FrameType>,
}

impl ExplicitFrame {
    /// Whether the frame marks a direct call of native code (P/Invoke).
    pub(crate) fn is_inlined(&self) -> bool {
        self.of.role == Role::Inlined
    }
}

/// The managed caller described by an explicit frame.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The caller's registers.
    pub(crate) registers: Registers,
    /// How the caller was left.
    pub(crate) left: Left,
}

/// References that a frame owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameRoots {
    slots: Slots,
    /// Words that may be references: the callee's argument registers, or the returned value at a hijacked return.
    pub(crate) words: Option<AddrRange>,
}

/// Slots of references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Slots {
    #[default]
    None,
    /// Up to three addresses of slots. The second field is the number of addresses in use.
    Each([Addr; 3], u8),
    /// An array of the given length.
    Array(Addr, u32),
}

impl FrameRoots {
    /// Addresses of slots.
    pub(crate) fn slots(self) -> impl Iterator<Item = Addr> + Clone {
        let (each, count, array) = match self.slots {
            Slots::None => ([Addr::NULL; 3], 0, (Addr::NULL, 0)),
            Slots::Each(each, count) => (each, usize::from(count), (Addr::NULL, 0)),
            Slots::Array(start, count) => ([Addr::NULL; 3], 0, (start, u64::from(count))),
        };
        each.into_iter().take(count).chain((0..array.1).map(move |i| array.0.element(i, 8)))
    }

    /// Number of slots.
    pub(crate) fn slot_count(self) -> u64 {
        match self.slots {
            Slots::None => 0,
            Slots::Each(_, count) => count.into(),
            Slots::Array(_, count) => count.into(),
        }
    }
}

/// Reads explicit frames.
#[derive(Debug)]
pub(crate) struct FrameReader {
    arch: Arch,
    os: Os,
    frame: Bound<Frame>,
    thread: Bound<Thread>,
    types: BTreeMap<u64, Arc<FrameType>>,
    unknown: Arc<FrameType>,
    inlined: Option<Bound<InlinedCallFrame>>,
    framed: Option<Bound<FramedMethodFrame>>,
    /// The transition block and its size.
    block: Option<(Bound<TransitionBlock>, u64)>,
    software: Option<Bound<SoftwareExceptionFrame>>,
    fault: Option<Bound<FaultingExceptionFrame>>,
    resumable: Option<Bound<ResumableFrame>>,
    hijack: Option<(Bound<HijackFrame>, HijackRegisters)>,
    helper: Option<Helper>,
    /// The references that native code protects; `None` if the descriptor does not describe them.
    protected: Option<ProtectedFrames>,
    /// Numbers and offsets of the registers that `CalleeSavedRegisters` holds, and its size.
    callee_saved: Vec<(u8, u64)>,
    callee_saved_size: u64,
    argument_bytes: u64,
    gc_version: u64,
}

/// Alignment of stack pointers on arm64 in bytes (AAPCS64, 6.4.5.1).
const STACK_ALIGNMENT: u64 = 16;
/// Flag bits in `InlinedCallFrame.Datum`.
const DATUM_MARKS: u64 = 7;

impl FrameReader {
    /// The contract that describes the frame chain.
    pub(crate) const CONTRACT: Contract = Contract::optional("StackWalk", &["1"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of the contract is advertised, or the descriptor does not have the frame chain.
    pub(crate) fn bind(d: &Descriptor, arch: Arch, os: Os) -> Result<FrameReader, ContractError> {
        Self::CONTRACT.require(d)?;
        let mut reader = FrameReader {
            arch,
            os,
            frame: bind!(d, Frame { Next })?,
            thread: bind!(d, Thread { Frame })?,
            types: BTreeMap::new(),
            unknown: Arc::new(FrameType { name: None, role: Role::Unhandled }),
            inlined: bind!(d, InlinedCallFrame { CallSiteSP, CallerReturnAddress, CalleeSavedFP, Datum? }).ok(),
            framed: bind!(d, FramedMethodFrame { TransitionBlockPtr, MethodDesc? }).ok(),
            block: bind!(d, TransitionBlock { ReturnAddress, CalleeSavedRegisters, ArgumentRegisters? })
                .ok()
                .zip(TransitionBlock::size(d).ok()),
            software: bind!(d, SoftwareExceptionFrame { TargetContext, IntegerContextPointers? }).ok(),
            fault: bind!(d, FaultingExceptionFrame { TargetContext }).ok(),
            resumable: bind!(d, ResumableFrame { TargetContextPtr }).ok(),
            hijack: bind!(d, HijackFrame { ReturnAddress, HijackArgsPtr }).ok().zip(HijackRegisters::bind(d, arch, os)),
            helper: Helper::bind(d),
            protected: ProtectedFrames::bind(d),
            callee_saved: registers_of::<CalleeSavedRegisters>(d, arch),
            callee_saved_size: CalleeSavedRegisters::size(d).unwrap_or(0),
            argument_bytes: ArgumentRegisters::size(d).unwrap_or(0),
            gc_version: globals::GCInfoVersion.of(d)?,
        };
        for name in d.globals.keys() {
            let Some(short) = name.strip_suffix("Identifier").filter(|n| n.contains("Frame")) else { continue };
            // The value is a number in .NET 10 and later, and the address of a vtable before.
            let identifier = d.pointer(name)?;
            reader.types.insert(identifier.0, Arc::new(FrameType { name: Some(short.into()), role: role(short) }));
        }
        Ok(reader)
    }

    /// The architecture.
    pub(crate) const fn arch(&self) -> Arch {
        self.arch
    }

    /// The address of the first explicit frame of a thread; `None` if the thread has no explicit frames.
    pub(crate) fn first(&self, bytes: &CodeBytes, thread: Addr) -> Result<Option<Addr>, StackError> {
        followed(self.thread.at(thread, Thread::Frame)?, self.thread.read(bytes, thread, Thread::Frame)?)
    }

    /// The frame at `address`.
    pub(crate) fn read(&self, bytes: &CodeBytes, address: Addr) -> Result<ExplicitFrame, StackError> {
        let kind = bytes.u64(address)?;
        if kind == 0 {
            return Err(StackError::broken(address, "the frame chain leads to a frame without a type"));
        }
        let of = Arc::clone(self.types.get(&kind).unwrap_or(&self.unknown));
        Ok(ExplicitFrame { address, of })
    }

    /// The address of the frame after `frame`; `None` at the end of the frame chain.
    pub(crate) fn next(&self, bytes: &CodeBytes, frame: &ExplicitFrame) -> Result<Option<Addr>, StackError> {
        followed(frame.address, self.frame.read(bytes, frame.address, Frame::Next)?)
    }

    /// The lists of references that native code protects; `None` if the descriptor does not describe them.
    pub(super) const fn protected(&self) -> Option<&ProtectedFrames> {
        self.protected.as_ref()
    }

    /// Bytes at the stack pointer of a caller that the argument registers of a prepared call occupy: their home area on Windows.
    pub(super) fn home_bytes(&self) -> u64 {
        if (self.arch, self.os) == (Arch::X64, Os::Windows) { self.argument_bytes } else { 0 }
    }

    /// The managed caller that `frame` describes; `None` if `frame` does not describe a caller.
    pub(crate) fn caller(&self, code: &CodeMap, runtime: &Native, frame: &ExplicitFrame) -> Result<Option<Caller>, StackError> {
        let bytes = code.bytes();
        let missing = || StackError::Unsupported { at: frame.address, what: "a frame without a layout" };
        let at = frame.address;
        match frame.of.role {
            Role::Protecting | Role::Marker | Role::Unhandled => Ok(None),
            Role::Inlined => {
                let inlined = self.inlined.as_ref().ok_or_else(missing)?;
                let return_address = inlined.read(bytes, at, InlinedCallFrame::CallerReturnAddress)?;
                if return_address.is_null() {
                    return Ok(None);
                }
                let mut registers = self.blank(return_address, inlined.read(bytes, at, InlinedCallFrame::CallSiteSP)?, at)?;
                let place = inlined.at(at, InlinedCallFrame::CalleeSavedFP)?;
                registers.set(registers.fp_number(), Saved { value: Some(bytes.u64(place)?), place: Some(place) });
                Ok(Some(Caller { registers, left: Left::Call }))
            }
            Role::Transition => {
                let (block, size) = self.block.as_ref().ok_or_else(missing)?;
                let start = self.transition_block(bytes, frame)?.ok_or_else(missing)?;
                let ip = block.read(bytes, start, TransitionBlock::ReturnAddress)?;
                let mut registers = self.blank(ip, start.plus(*size), at)?;
                self.callee_saved(bytes, block.at(start, TransitionBlock::CalleeSavedRegisters)?, &mut registers)?;
                Ok(Some(Caller { registers, left: Left::Call }))
            }
            Role::SoftwareException => {
                let software = self.software.as_ref().ok_or_else(missing)?;
                let context = software.at(at, SoftwareExceptionFrame::TargetContext)?;
                let mut registers = context::read(bytes, (self.arch, self.os), context)?;
                if let Some(places) = software.place(at, SoftwareExceptionFrame::IntegerContextPointers) {
                    self.through_places(bytes, places, &mut registers)?;
                }
                Ok(Some(Caller { registers, left: Left::Exception }))
            }
            Role::Fault => {
                let context = self.fault.as_ref().ok_or_else(missing)?.at(at, FaultingExceptionFrame::TargetContext)?;
                Ok(Some(Caller { registers: context::read(bytes, (self.arch, self.os), context)?, left: Left::Fault }))
            }
            Role::Resumable => {
                let context = self.resumable.as_ref().ok_or_else(missing)?.read(bytes, at, ResumableFrame::TargetContextPtr)?;
                Ok(Some(Caller { registers: context::read(bytes, (self.arch, self.os), context)?, left: Left::Stopped }))
            }
            Role::Hijack => {
                let (hijack, args) = self.hijack.as_ref().ok_or_else(missing)?;
                let ip = hijack.read(bytes, at, HijackFrame::ReturnAddress)?;
                let start = hijack.read(bytes, at, HijackFrame::HijackArgsPtr)?;
                let saved = args.fields.place(start, HijackArgs::CalleeSavedRegisters);
                let sp = match (args.fields.read_optional(bytes, start, HijackArgs::Rsp)?, saved, args.size) {
                    (Some(sp), ..) => sp,
                    // The slot of the hijacked return address follows the registers.
                    (None, Some(saved), _) => saved.plus(self.callee_saved_size).plus(8),
                    (None, None, Some(size)) => {
                        start.plus(size).0.checked_next_multiple_of(STACK_ALIGNMENT).map(Addr).ok_or_else(missing)?
                    }
                    (None, None, None) => return Err(missing()),
                };
                let mut registers = self.blank(ip, sp, at)?;
                if let Some(saved) = saved {
                    self.callee_saved(bytes, saved, &mut registers)?;
                }
                for (number, offset) in &args.registers {
                    let place = start.plus(*offset);
                    registers.set(*number, Saved { value: Some(bytes.u64(place)?), place: Some(place) });
                }
                // Since version 3, GC info describes return addresses at which a thread was stopped. Before version 4, `roots` adds the returned
                // value.
                let left = if self.gc_version >= 3 { Left::Stopped } else { Left::Call };
                Ok(Some(Caller { registers, left }))
            }
            Role::Helper(_) => {
                let helper = self.helper.as_ref().ok_or_else(missing)?;
                helper.caller(self, code, runtime, at).map(Some)
            }
        }
    }

    /// The references that `frame` owns.
    pub(crate) fn roots(&self, bytes: &CodeBytes, frame: &ExplicitFrame) -> Result<FrameRoots, StackError> {
        let mut roots = FrameRoots::default();
        let words = AddrRange::of;
        match frame.of.role {
            Role::Helper(protected) => {
                if let Some(helper) = &self.helper {
                    roots.slots = helper.slots(bytes, frame.address, protected)?;
                }
            }
            Role::Transition => {
                if let (Some((block, size)), Some(start)) = (&self.block, self.transition_block(bytes, frame)?) {
                    roots.words = Some(words(start.plus(self.arguments(block, *size)), self.argument_bytes));
                }
            }
            Role::Hijack if self.gc_version < 4 => {
                if let Some((hijack, HijackRegisters { registers, .. })) = &self.hijack
                    && let Some((_, returned)) = registers.iter().find(|(number, _)| *number == 0)
                {
                    let start = hijack.read(bytes, frame.address, HijackFrame::HijackArgsPtr)?;
                    // A structure of two words is returned in the register that is saved next to the first, except on Windows x64.
                    let second = if (self.arch, self.os) == (Arch::X64, Os::Windows) { 0 } else { 8 };
                    roots.words = Some(words(start.plus(*returned), second + 8));
                }
            }
            _ => {}
        }
        Ok(roots)
    }

    /// The offset of the argument registers in a transition block of `size` bytes. Most descriptors do not have this offset.
    fn arguments(&self, block: &Bound<TransitionBlock>, size: u64) -> u64 {
        let before = |end: u64| end.saturating_sub(self.argument_bytes);
        match (block.offset(TransitionBlock::ArgumentRegisters), self.arch, self.os) {
            (Some(offset), ..) => offset,
            // The argument registers are in the home area of the caller's frame, which follows the block.
            (None, Arch::X64, Os::Windows) => size,
            (None, Arch::X64, _) => before(block.offset(TransitionBlock::CalleeSavedRegisters).unwrap_or(0)),
            (None, ..) => before(size),
        }
    }

    /// The method that `frame` is about to call, or that a native helper implements.
    pub(crate) fn callee(&self, bytes: &CodeBytes, frame: &ExplicitFrame) -> Option<Addr> {
        let method = match frame.of.role {
            Role::Transition => self.framed.as_ref()?.get(bytes, frame.address, FramedMethodFrame::MethodDesc),
            Role::Helper(_) => self.helper.as_ref()?.method(bytes, frame.address),
            _ => None,
        };
        method.filter(|m| !m.is_null())
    }

    /// The P/Invoke method of an `InlinedCallFrame`, while its native function runs.
    pub(crate) fn native(&self, bytes: &CodeBytes, frame: &ExplicitFrame) -> Option<Addr> {
        let inlined = self.inlined.as_ref().filter(|_| frame.of.role == Role::Inlined)?;
        // The return address is null between calls.
        inlined.get(bytes, frame.address, InlinedCallFrame::CallerReturnAddress).filter(|ip| !ip.is_null())?;
        let datum = inlined.get(bytes, frame.address, InlinedCallFrame::Datum).filter(|datum| datum & 1 == 0)?;
        // Two more low bits of the method's address mark calls made by exception handling (`InlinedCallFrameMarker`, frames.h).
        Some(Addr(datum & !DATUM_MARKS)).filter(|method| !method.is_null())
    }

    fn transition_block(&self, bytes: &CodeBytes, frame: &ExplicitFrame) -> Result<Option<Addr>, StackError> {
        let Some(framed) = &self.framed else { return Ok(None) };
        Ok(Some(framed.read(bytes, frame.address, FramedMethodFrame::TransitionBlockPtr)?))
    }

    fn blank(&self, ip: Addr, sp: Addr, at: Addr) -> Result<Registers, StackError> {
        let mut registers = Registers::new(self.arch)
            .map(|r| r.on(self.os))
            .ok_or(StackError::Unsupported { at, what: "a frame of another architecture" })?;
        registers.ip = ip;
        registers.set_sp(sp);
        Ok(registers)
    }

    /// Sets the callee-saved registers from the `CalleeSavedRegisters` at `start`.
    fn callee_saved(&self, bytes: &CodeBytes, start: Addr, registers: &mut Registers) -> Result<(), StackError> {
        for (number, offset) in &self.callee_saved {
            let place = start.plus(*offset);
            registers.set(*number, Saved { value: Some(bytes.u64(place)?), place: Some(place) });
        }
        Ok(())
    }

    /// Sets the callee-saved registers from their slots on the stack; the array at `places` has a pointer to each slot, by register number. A GC
    /// updates these slots, not the copies in the frame's `CONTEXT`.
    fn through_places(&self, bytes: &CodeBytes, places: Addr, registers: &mut Registers) -> Result<(), StackError> {
        for (number, _) in &self.callee_saved {
            let place = Addr(bytes.u64(places.element(u64::from(*number), 8))?);
            if !place.is_null() {
                registers.set(*number, Saved { value: Some(bytes.u64(place)?), place: Some(place) });
            }
        }
        Ok(())
    }
}

/// The frame that `link`, a link of the frame chain in the structure at `at`, points to; `None` at the end of the chain. A null link is an error.
fn followed(at: Addr, link: Addr) -> Result<Option<Addr>, StackError> {
    match link {
        END => Ok(None),
        Addr::NULL => Err(StackError::broken(at, "the frame chain has a null link")),
        _ => Ok(Some(link)),
    }
}

impl ExplicitFrame {
    /// Whether the explicit frame is within the stack frame of its managed caller. The walk meets such a frame again when it unwinds the caller.
    pub(crate) fn is_within_caller(&self) -> bool {
        self.of.role == Role::Inlined
    }

    /// Whether the frame prepares a call, whose arguments its caller may have passed on the stack.
    pub(crate) fn passes_arguments(&self) -> bool {
        self.of.role == Role::Transition
    }

    /// Whether the frame protects references whose places are not read (`ProtectValueClassFrame` and `ProtectByRefsFrame`, frames.h). They are in native
    /// memory of the stack between the methods before and after the frame.
    pub(crate) fn protects_unread(&self) -> bool {
        self.of.role == Role::Protecting
    }

    /// Whether the type of the frame is unknown or not read, so that the frame may have a caller that the walk does not find.
    pub(crate) fn is_unhandled(&self) -> bool {
        self.of.role == Role::Unhandled
    }
}

fn role(name: &str) -> Role {
    match name {
        "InlinedCallFrame" => Role::Inlined,
        "PrestubMethodFrame"
        | "ExternalMethodFrame"
        | "DynamicHelperFrame"
        | "StubDispatchFrame"
        | "CallCountingHelperFrame"
        | "PInvokeCalliFrame" => Role::Transition,
        "SoftwareExceptionFrame" => Role::SoftwareException,
        "FaultingExceptionFrame" => Role::Fault,
        "ResumableFrame" | "RedirectedThreadFrame" => Role::Resumable,
        "HijackFrame" => Role::Hijack,
        "HelperMethodFrame" => Role::Helper(Protected::Slots(0)),
        "HelperMethodFrame_1OBJ" => Role::Helper(Protected::Slots(1)),
        "HelperMethodFrame_2OBJ" => Role::Helper(Protected::Slots(2)),
        "HelperMethodFrame_3OBJ" => Role::Helper(Protected::Slots(3)),
        "HelperMethodFrame_PROTECTOBJ" => Role::Helper(Protected::Array),
        "ProtectByRefsFrame" | "ProtectValueClassFrame" => Role::Protecting,
        "DebuggerClassInitMarkFrame"
        | "DebuggerSecurityCodeMarkFrame"
        | "DebuggerExitFrame"
        | "DebuggerU2MCatchHandlerFrame"
        | "ExceptionFilterFrame"
        | "AssumeByrefFromJITStack" => Role::Marker,
        _ => Role::Unhandled,
    }
}

#[cfg(test)]
mod tests {
    use super::{Role, role};

    #[test]
    fn frames_that_protect_references_are_not_markers() {
        let of = ["ProtectValueClassFrame", "ProtectByRefsFrame", "DebuggerExitFrame", "FuncEvalFrame"].map(role);
        assert_eq!(of, [Role::Protecting, Role::Protecting, Role::Marker, Role::Unhandled]);
    }
}
