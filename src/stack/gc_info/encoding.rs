//! Parameters of the encoding that differ between versions and architectures.

use super::error::GcInfoError;
use crate::base::Arch;

/// Parameters of the encoding that differ between versions and architectures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    pub(super) version: u32,
    pub(super) arch: Arch,
    /// Number of registers of the architecture.
    pub(super) register_count: u32,
    /// The usual frame register, which the stream encodes as 0.
    pub(super) frame_register: u8,
    /// Size in bits of the groups that encode the number of the frame register.
    pub(super) stack_base: u32,
    /// Size in bits of the groups that encode the number of safe points.
    pub(super) safe_points: u32,
    /// Size in bits of the groups that encode the number of registers.
    pub(super) registers: u32,
    /// Bytes per unit of the code length.
    pub(super) instruction: u32,
    /// Bytes per unit of an offset.
    pub(super) unit: u32,
}

impl Encoding {
    pub(super) fn new(version: u32, arch: Arch) -> Result<Encoding, GcInfoError> {
        if !(2..=5).contains(&version) {
            return Err(GcInfoError::Version { version });
        }
        match arch {
            Arch::X64 => Ok(Encoding {
                version,
                arch,
                register_count: 16,
                frame_register: 5,
                stack_base: 3,
                safe_points: 2,
                registers: 2,
                instruction: 1,
                unit: 1,
            }),
            Arch::Arm64 => Ok(Encoding {
                version,
                arch,
                register_count: 32,
                frame_register: 29,
                stack_base: 2,
                safe_points: 3,
                registers: 3,
                instruction: 4,
                unit: if version >= 4 { 4 } else { 1 },
            }),
            _ => Err(GcInfoError::Arch { arch }),
        }
    }

    pub(super) fn is_arm64(&self) -> bool {
        self.arch == Arch::Arm64
    }

    /// Whether the header has the return kind. Version 4 omits it, because only hijacking in older runtimes needs it.
    pub(super) const fn has_return_kind(&self) -> bool {
        self.version < 4
    }

    pub(super) const fn has_psp_sym(&self) -> bool {
        self.version < 4
    }

    /// Whether a leaf frame may be at a safe point.
    pub(super) const fn leaves_at_safe_points(&self) -> bool {
        self.version >= 3
    }

    /// The stored value, in units, of the safe point of a call that returns to byte `offset`.
    pub(super) fn safe_point(&self, offset: u32) -> Option<u32> {
        match self.version {
            4.. if !offset.is_multiple_of(self.unit) => None,
            4.. => offset.checked_div(self.unit),
            _ => offset.checked_sub(1),
        }
    }

    /// The offset, in units, at which a call that returns to byte `offset` is looked up in interruptible ranges.
    pub(super) fn in_range(&self, offset: u32) -> Option<u32> {
        match self.version {
            4.. => offset.checked_div(self.unit),
            _ => offset.checked_sub(1),
        }
    }

    pub(super) fn register(&self, number: u32) -> Option<u8> {
        u8::try_from(number).ok().filter(|_| number < self.register_count)
    }
}
