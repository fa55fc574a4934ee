//! General-purpose register names, in the order in which each container stores them.

use super::Register;

/// The first registers of Linux x64 (`user_regs_struct`), up to `rdi`.
pub(super) const ELF_X64: [&str; 15] =
    ["r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"];

/// The first registers of Linux x86 (`user_regs_struct`), up to `eax`.
pub(super) const ELF_X86: [&str; 7] = ["ebx", "ecx", "edx", "esi", "edi", "ebp", "eax"];

/// The registers of arm64, in ELF cores and minidumps.
pub(super) const ARM64: [&str; 32] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19",
    "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "fp", "lr", "sp",
];

/// The registers of arm without the program counter, in ELF cores and minidumps.
pub(super) const ARM: [&str; 15] = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp", "lr"];

/// Collects *(name, value)* pairs.
pub(super) fn named(pairs: impl Iterator<Item = (&'static str, u64)>) -> Vec<Register> {
    pairs.map(|(name, value)| Register { name, value }).collect()
}
