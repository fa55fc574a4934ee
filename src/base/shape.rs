//! The machine that the dumped process ran on.

use super::named_enum;

named_enum! {
    /// Byte order of the dumped process.
    pub enum Endian {
        /// Least significant byte first.
        Little = "little",
        /// Most significant byte first.
        Big = "big",
    }
}

/// Pointer size of the dumped process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PtrSize {
    /// 32-bit pointers.
    Four,
    /// 64-bit pointers.
    Eight,
}

impl PtrSize {
    /// Size in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            PtrSize::Four => 4,
            PtrSize::Eight => 8,
        }
    }

    /// The highest address that a pointer of this size can hold.
    pub const fn max_address(self) -> u64 {
        match self {
            PtrSize::Four => u32::MAX as u64,
            PtrSize::Eight => u64::MAX,
        }
    }
}

/// Pointer size and byte order: how integers of the dumped process are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Size of a pointer.
    pub ptr: PtrSize,
    /// Byte order.
    pub endian: Endian,
}

impl Shape {
    /// 64-bit little endian: x64 and arm64.
    pub const LE64: Shape = Shape { ptr: PtrSize::Eight, endian: Endian::Little };

    /// Decodes `bytes`, at most 8 of them, as an unsigned integer.
    pub fn number(self, bytes: &[u8]) -> u64 {
        // Most calls decode whole words.
        if let Ok(word) = bytes.try_into() {
            return match self.endian {
                Endian::Little => u64::from_le_bytes(word),
                Endian::Big => u64::from_be_bytes(word),
            };
        }
        let push = |n: u64, b: &u8| (n << 8) | u64::from(*b);
        match self.endian {
            Endian::Little => bytes.iter().rev().fold(0, push),
            Endian::Big => bytes.iter().fold(0, push),
        }
    }
}

named_enum! {
    /// Operating system of the dumped process.
    pub enum Os {
        /// Linux, any C library.
        Linux = "linux",
        /// Windows.
        Windows = "windows",
        /// macOS and related systems.
        Macos = "macos",
        /// Another system, or not recorded in the dump.
        Unknown = "unknown",
    }
}

named_enum! {
    /// Processor architecture of the dumped process.
    pub enum Arch {
        /// AMD64, x86-64.
        X64 = "x64",
        /// 64-bit Arm.
        Arm64 = "arm64",
        /// 32-bit x86.
        X86 = "x86",
        /// 32-bit Arm.
        Arm = "arm",
        /// IBM Z, 64-bit big endian.
        S390x = "s390x",
        /// PowerPC, 64-bit.
        Ppc64 = "ppc64",
        /// PowerPC, 32-bit.
        Ppc = "ppc",
        /// RISC-V, 64-bit.
        Riscv64 = "riscv64",
        /// LoongArch, 64-bit.
        Loongarch64 = "loongarch64",
        /// Another architecture, or not recorded in the dump.
        Unknown = "unknown",
    }
}
