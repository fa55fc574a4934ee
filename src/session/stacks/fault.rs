//! The crashed thread: its faulting instruction, and the native frames from there to managed code.
//!
//! Source: `docs/internals/stacks.md#native-crashes`.

use super::registers_of;
use crate::base::missed::{contradiction, missed, tried};
use crate::base::reads;
use crate::base::{Addr, AddrRange, Arch, Collector, Name, Os};
use crate::clr::exceptions::Exceptions;
use crate::clr::methods::Methods;
use crate::dump::{Crash, DumpFile, Module, OsThread, ThreadStacks};
use crate::memory::{Image, Memory, is_by_createdump};
use crate::model::{FaultModel, NativeFrameModel};
use crate::session::{Dump, Runtime};
use crate::stack::native::NativeImages;
use crate::stack::walk::Asked;
use crate::stack::walked::Frame;
use crate::stack::{CodeBytes, RegisterNames, Registers, Saved, UnwindError};

/// Windows exception code of a stack overflow.
const STATUS_STACK_OVERFLOW: u32 = 0xc000_00fd;
/// Type of the exception object that the runtime preallocates for a stack overflow.
const STACK_OVERFLOW: &str = "System.StackOverflowException";
/// Maximum number of native frames.
const MAX_FRAMES: usize = 256;
/// Maximum number of reads for unwinding the native frames.
const READS: u64 = 1 << 20;
/// Number of bytes above the stack pointer that are searched for the signal frame. The frames of the signal handler are below the signal frame.
const SEARCHED: u64 = 1 << 16;

/// Errors of unwind information that no linker writes.
const MALFORMED: [&str; 3] = ["an FDE or CIE of an invalid size", "a CIE where an FDE was expected", "malformed CFI"];

/// Layout of the signal frame in which the Linux kernel saves the state of an interrupted thread: `struct rt_sigframe`, which contains a
/// `siginfo_t` and a `ucontext_t` with a `struct sigcontext`. All offsets are in bytes.
struct SignalFrame {
    /// Distance between the `ucontext_t` and the `siginfo_t`: `Ok` if the `ucontext_t` comes first, `Err` if the `siginfo_t` does.
    context: Result<u64, u64>,
    /// Names of the saved registers in order.
    registers: &'static [&'static str],
    /// Offset of the first saved register in the `ucontext_t`.
    registers_at: u64,
    /// Offset of the instruction pointer in the `ucontext_t`.
    ip_at: u64,
    /// Offset of the faulting address in the `ucontext_t`.
    address_at: u64,
}

/// Offset of `uc_link` in the `ucontext_t`. The kernel sets it to null.
const LINK_AT: u64 = 8;

const X64: SignalFrame = SignalFrame {
    context: Ok(304),
    registers: &["r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp"],
    registers_at: 40,
    ip_at: 168,
    address_at: 216,
};

const ARM64: SignalFrame = SignalFrame {
    context: Err(128),
    registers: &[
        "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19",
        "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "fp", "lr", "sp",
    ],
    registers_at: 184,
    ip_at: 440,
    address_at: 176,
};

impl Dump {
    /// The fault of the thread that crashed. `runtime` supplies the thread's managed frames.
    pub(crate) fn fault(&self, runtime: Option<&Runtime>) -> Option<FaultModel> {
        fault(self.file(), self.memory(), runtime)
    }
}

impl Runtime {
    /// The fault of the thread that crashed.
    pub(crate) fn fault(&self) -> Option<FaultModel> {
        fault(self.file(), self.memory(), Some(self))
    }
}

/// The fault in the dump; `None` if no thread crashed. Dumps usually do not have all native code, so [`FaultModel::end`] gives what is missing, and
/// the answer is partial only if native frames are missing because the dump has lost memory or has invalid unwind information.
fn fault(file: &DumpFile, memory: &std::sync::Arc<Memory>, runtime: Option<&Runtime>) -> Option<FaultModel> {
    let crash = file.crash.as_ref()?;
    let (model, error) = tried(|| {
        let mut model = FaultModel {
            thread: crash.thread,
            managed_id: None,
            signal: crash.name.clone(),
            code: crash.signal_code_name().map(Into::into),
            hardware: crash.is_fault(),
            native: crash.is_fault(),
            address: crash.address.filter(|_| crash.is_fault()),
            at_fault: false,
            frames: Vec::new(),
            end: None,
            stack_overflow: file.facts.os == Os::Windows && crash.code == STATUS_STACK_OVERFLOW,
            pinvoke: None,
            managed_sp: None,
        };
        let mut error = None;
        let reader = Reader { file, memory, bytes: CodeBytes::new(memory), runtime };
        model.stack_overflow |= reader.names_overflow(crash).unwrap_or_default();
        if let Some((registers, at_fault)) = reader.start(crash) {
            model.at_fault = at_fault;
            let sp = registers.sp();
            let (end, why) = reads::bounded(READS, || reader.unwind(registers, &mut model.frames));
            (model.end, error) = (Some(end), why);
            reader.managed(crash, sp, &mut model);
        }
        model.native |= model.managed_id.is_none() || reader.is_sent_by_native(&model);
        (model, error)
    });
    match error {
        Some(UnwindError::Read(e)) if memory.is_lost(AddrRange::new(e.address, e.address.plus(e.len))) => missed(e.address, e.len),
        Some(UnwindError::Invalid { at, what }) if MALFORMED.contains(&what) => contradiction(at, what),
        _ => {}
    }
    Some(model)
}

struct Reader<'r> {
    file: &'r DumpFile,
    memory: &'r Memory,
    bytes: CodeBytes,
    runtime: Option<&'r Runtime>,
}

impl Reader<'_> {
    /// The registers to unwind from: the registers of the exception record, else the registers in the signal frame, else the registers of the thread.
    /// Also returns whether the registers are from the time of the fault. The thread's registers are from that time unless createdump wrote the dump,
    /// because createdump runs while the signal handler waits.
    fn start(&self, crash: &Crash) -> Option<(Registers, bool)> {
        let facts = &self.file.facts;
        if let Some(registers) = crash.state.as_ref().and_then(|state| registers_of(facts, state)) {
            return Some((registers, true));
        }
        let thread = self.file.threads.iter().find(|t| Some(t.id) == crash.thread)?;
        let own = || Some((registers_of(facts, thread)?, !is_by_createdump(self.file, self.memory)));
        self.interrupted(crash, thread).map(|registers| (registers, true)).or_else(own)
    }

    /// The registers in the thread's signal frame. `None` if no signal frame with the signal of `crash` is found, as when the kernel wrote the core
    /// before any handler ran.
    fn interrupted(&self, crash: &Crash, thread: &OsThread) -> Option<Registers> {
        let facts = &self.file.facts;
        let layout = match (facts.os, facts.arch) {
            (Os::Linux, Arch::X64) => X64,
            (Os::Linux, Arch::Arm64) => ARM64,
            _ => return None,
        };
        let (code, sp) = (crash.signal_code?, thread.stack_pointer?);
        let stack = ThreadStacks::new(self.file).around(sp)?;
        let range = AddrRange::new(sp.align_down(8), stack.end.min(sp.plus(SEARCHED)));
        let u64_at = |at: Addr| self.memory.word(at).ok();
        let is_signal = |at: &Addr| {
            let is = |offset, value| self.memory.u32(at.plus(offset)).ok() == Some(value);
            is(0, crash.code) && is(8, code.cast_unsigned())
        };
        let registers = |info: Addr| {
            let context = match layout.context {
                Ok(before) => info.minus(before)?,
                Err(after) => info.plus(after),
            };
            let accessed = u64_at(info.plus(16))?;
            let same = crash.address.is_none_or(|address| address.0 == accessed);
            let recorded = crash.address.is_none_or(|address| u64_at(context.plus(layout.address_at)) == Some(address.0));
            (same && recorded && u64_at(context.plus(LINK_AT))? == 0).then_some(())?;
            let mut registers = Registers::new(facts.arch)?.on(facts.os);
            for (place, name) in (0..).zip(layout.registers) {
                let at = context.plus(layout.registers_at).element(place, 8);
                let number = RegisterNames::of(facts.arch).iter().position(|known| known == name);
                if let Some(number) = number.and_then(|n| u8::try_from(n).ok()) {
                    registers.set(number, Saved { value: Some(u64_at(at)?), place: None });
                }
            }
            registers.ip = Addr(u64_at(context.plus(layout.ip_at))?);
            registers.sp().filter(|sp| sp.is_aligned(8) && !sp.is_null())?;
            Some(registers)
        };
        let words = self.memory.search(range).map(|(at, _)| at);
        words.filter(is_signal).find_map(registers)
    }

    /// Adds the native frames from `registers` on to `out`. Returns the reason why the frames end, and the error if there is one.
    fn unwind(&self, mut registers: Registers, out: &mut Vec<NativeFrameModel>) -> (String, Option<UnwindError>) {
        let listed = self.file.modules.iter().map(|m| m.range());
        let mut listed: Vec<AddrRange> = listed.chain(self.file.kernel_library()).collect();
        listed.sort_unstable();
        let images = NativeImages::new(&listed);
        let walker = self.runtime.and_then(|r| r.stack_walker().ok());
        let is_managed = |ip: Addr| walker.is_some_and(|walker| matches!(walker.code().find(ip), Ok(Some(_))));
        let mut leaf = true;
        loop {
            if is_managed(registers.ip) {
                // If the fault is in managed code, the frame of the fault is the only frame to list.
                if out.is_empty() {
                    out.push(self.frame(&registers, None, leaf));
                }
                return (FaultModel::MANAGED.into(), None);
            }
            let image = images.find(self.memory, registers.ip);
            let module = image.and_then(|(base, native)| Some((self.file.modules.iter().find(|m| m.base == base)?, native.image())));
            out.push(self.frame(&registers, module, leaf));
            if out.len() >= MAX_FRAMES {
                return (format!("only the first {MAX_FRAMES} frames are listed"), None);
            }
            (registers, leaf) = match images.step(&self.bytes, (&registers, leaf), None, is_managed) {
                Ok(caller) => (caller.registers, caller.interrupted),
                Err(_) if image.is_none() => return ("code outside of all modules".into(), None),
                Err(e) => {
                    let end = match &e {
                        UnwindError::Invalid { what, .. } => (*what).into(),
                        UnwindError::Read(_) => {
                            let name = module.map_or("the code", |(module, _)| module.file_name());
                            format!("the unwind information of {name} or the stack is not in the dump")
                        }
                    };
                    return (end, Some(e));
                }
            };
        }
    }

    /// Whether the last thrown exception of the crashed thread is the preallocated stack overflow exception. Only the runtime can set this
    /// exception, and sets it before it ends the process.
    fn names_overflow(&self, crash: &Crash) -> Option<bool> {
        let runtime = self.runtime?;
        let id = u64::from(crash.thread?);
        let last = runtime.thread_list().ok()?.iter().find(|t| t.os_id == Some(id))?.last_thrown?;
        let namer = runtime.namer();
        let names = namer.names()?;
        let read = runtime.scoped(&Collector::new(), |d| Exceptions::bind(runtime.memory(), d).ok())?.read(names, namer.fields(), last)?;
        Some(names.name(read.method_table).name == STACK_OVERFLOW && read.is_bare())
    }

    /// Whether native code that managed code called sent the signal. The runtime sends a signal too, for unhandled exceptions.
    fn is_sent_by_native(&self, model: &FaultModel) -> bool {
        let runtime = self.runtime.and_then(|r| r.description().site.image.as_ref()).map(|image| image.range);
        let of_runtime = |frame: &NativeFrameModel| runtime.is_none_or(|range| range.contains(frame.ip));
        model.at_fault && model.ends_in_managed_code() && model.frames.len() > 1 && !model.frames.iter().any(of_runtime)
    }

    fn frame(&self, registers: &Registers, module: Option<(&Module, Option<&Image>)>, leaf: bool) -> NativeFrameModel {
        // A return address may be past the end of the function, if the function's last instruction is a call that does not return. The call itself
        // is in the function, so the byte before the return address is looked up.
        let within = registers.ip.minus(u64::from(!leaf)).unwrap_or(registers.ip);
        let export = module.and_then(|(_, image)| {
            let image = image?;
            let section = image.section(self.memory, within).map(|s| s.range);
            image.nearest_export(self.memory, within, section).export
        });
        NativeFrameModel {
            ip: registers.ip,
            sp: registers.sp(),
            module: module.map(|(module, _)| Name::from(module.file_name())),
            offset: module.and_then(|(module, _)| registers.ip.since(module.base)),
            export_offset: export.as_ref().and_then(|(_, at)| registers.ip.since(*at)),
            export: export.map(|(name, _)| name),
        }
    }

    /// Adds the managed thread ID, the stack pointer of the managed frame that called the native code, and the P/Invoke method of that call.
    fn managed(&self, crash: &Crash, sp: Option<Addr>, model: &mut FaultModel) -> Option<()> {
        let runtime = self.runtime?;
        let id = u64::from(crash.thread?);
        let notes = Collector::new();
        let walked = runtime.walk_stacks(Asked { roots: true, registers: false }, |t| t.os_id == Some(id), &notes).ok()?;
        let stack = walked.first()?;
        model.managed_id = stack.thread.id;
        let below = |at: Addr| sp.is_none_or(|sp| sp <= at);
        let mut inlined = None;
        for frame in &stack.walk.frames {
            match frame {
                Frame::Managed(frame) if below(frame.sp) => {
                    model.managed_sp = Some(frame.sp);
                    break;
                }
                Frame::Runtime(frame) if frame.frame.is_inlined() => inlined = inlined.or(Some(frame)),
                _ => {}
            }
        }
        let method = runtime.stack_walker().ok()?.native(inlined?)?;
        let methods = runtime.scoped(&notes, |d| Methods::bind(runtime.memory(), d, runtime.limits()).ok())?;
        let namer = runtime.namer();
        model.pinvoke = Some(methods.name(namer.names()?, method)?.to_name());
        Some(())
    }
}
