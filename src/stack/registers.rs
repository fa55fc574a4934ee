//! The registers of a frame, and the stack slots in which callees saved them.

use crate::base::{Addr, Arch, Os};

/// Number of registers stored for each architecture. x64 uses only 16 of them.
const COUNT: usize = 32;

/// A general-purpose register of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saved {
    /// Value of the register; `None` if it is unknown.
    pub(crate) value: Option<u64>,
    /// The memory that the value was restored from, usually a stack slot; `None` if the value is unknown, was computed, or is still in the
    /// thread's register.
    pub(crate) place: Option<Addr>,
}

/// The registers of a frame. The innermost frame has the registers of the thread, and its callers have restored registers.
///
/// Registers are numbered as in unwind and GC info. x64: rax rcx rdx rbx rsp rbp rsi rdi r8 to r15. arm64: x0 to x28, fp (29), lr (30),
/// sp (31).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    arch: Arch,
    /// Bit mask of the registers that a callee preserves.
    preserved: u32,
    /// The instruction pointer.
    pub(crate) ip: Addr,
    general: [Saved; COUNT],
}

/// Registers that callees preserve in both calling conventions of x64: rbx, rbp, r12 to r15.
const X64_PRESERVED: u32 = 0xf028;
/// Registers that callees also preserve in the calling convention of Windows x64: rsi, rdi.
const X64_WINDOWS_PRESERVED: u32 = 0x00c0;
/// Registers that callees preserve on arm64: x19 to x28, fp.
const ARM64_PRESERVED: u32 = 0x3ff8_0000;

/// Names of registers by number.
pub(crate) struct RegisterNames;

const X64: [&str; 16] = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
const ARM64: [&str; 32] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19",
    "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "fp", "lr", "sp",
];

impl RegisterNames {
    /// The names of all registers of `arch`, by number; empty for an architecture whose stacks cannot be walked.
    pub(crate) const fn of(arch: Arch) -> &'static [&'static str] {
        match arch {
            Arch::X64 => &X64,
            Arch::Arm64 => &ARM64,
            _ => &[],
        }
    }
}

impl Registers {
    /// Registers without values; `None` for an architecture whose stacks cannot be walked.
    pub(crate) fn new(arch: Arch) -> Option<Registers> {
        let preserved = match arch {
            Arch::X64 => X64_PRESERVED,
            Arch::Arm64 => ARM64_PRESERVED,
            _ => return None,
        };
        Some(Registers { arch, preserved, ip: Addr::NULL, general: [Saved::default(); COUNT] })
    }

    /// The registers for a process on `os`: on Windows, callees preserve rsi and rdi as well.
    #[must_use]
    pub(crate) fn on(mut self, os: Os) -> Registers {
        if (self.arch, os) == (Arch::X64, Os::Windows) {
            self.preserved |= X64_WINDOWS_PRESERVED;
        }
        self
    }

    /// Whether a callee preserves register `number`.
    pub(crate) const fn preserves(&self, number: u8) -> bool {
        number < 32 && self.preserved >> number & 1 == 1
    }

    /// A copy with the instruction pointer and the registers that a callee preserves. All others, including the stack pointer, are unknown.
    pub(crate) fn preserved(&self) -> Registers {
        let mut kept = self.clone();
        for (number, register) in (0u8..).zip(&mut kept.general) {
            if !self.preserves(number) {
                *register = Saved::default();
            }
        }
        kept
    }

    /// The architecture.
    pub(crate) const fn arch(&self) -> Arch {
        self.arch
    }

    /// Number of the stack pointer.
    pub(crate) const fn sp_number(&self) -> u8 {
        match self.arch {
            Arch::X64 => 4,
            _ => 31,
        }
    }

    /// Number of the frame pointer.
    pub(crate) const fn fp_number(&self) -> u8 {
        match self.arch {
            Arch::X64 => 5,
            _ => 29,
        }
    }

    /// Number of registers.
    pub(crate) const fn count(&self) -> u8 {
        match self.arch {
            Arch::X64 => 16,
            _ => 32,
        }
    }

    /// The stack pointer; `None` if it is unknown.
    pub(crate) fn sp(&self) -> Option<Addr> {
        self.value(self.sp_number()).map(Addr)
    }

    /// Sets the stack pointer.
    pub(crate) fn set_sp(&mut self, sp: Addr) {
        self.set(self.sp_number(), Saved { value: Some(sp.0), place: None });
    }

    /// Register `number`: its value and place.
    pub(crate) fn get(&self, number: u8) -> Saved {
        self.general.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// The value of register `number`.
    pub(crate) fn value(&self, number: u8) -> Option<u64> {
        self.get(number).value
    }

    /// Sets register `number`; invalid numbers are ignored.
    pub(crate) fn set(&mut self, number: u8, saved: Saved) {
        if let Some(register) = self.general.get_mut(usize::from(number)) {
            *register = saved;
        }
    }

    /// Name of register `number`.
    pub(crate) fn name(&self, number: u8) -> &'static str {
        RegisterNames::of(self.arch).get(usize::from(number)).copied().unwrap_or("?")
    }
}
