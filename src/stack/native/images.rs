//! Unwinds native code of all images of a process.

use std::sync::OnceLock;

use super::{Caller, Native};
use crate::base::{Addr, AddrRange, Arch};
use crate::memory::{Image, Memory};
use crate::stack::{CodeBytes, Registers, UnwindError};

/// Number of the link register (arm64).
const LINK: u8 = 30;

/// The images of a process, sorted by address.
#[derive(Debug)]
pub(crate) struct NativeImages(Vec<(AddrRange, OnceLock<Native>)>);

impl NativeImages {
    /// `sorted` has the address ranges of the images, ascending.
    pub(crate) fn new(sorted: &[AddrRange]) -> NativeImages {
        NativeImages(sorted.iter().map(|image| (*image, OnceLock::new())).collect())
    }

    /// The image that contains `at`, and the image's start. The range that a container lists for an ELF image may end before its last segments,
    /// so the range from the image's headers is checked as well.
    pub(crate) fn find(&self, memory: &Memory, at: Addr) -> Option<(Addr, &Native)> {
        let (listed, native) = self.last(at)?;
        let native = native.get_or_init(|| Native::new(Image::at(memory, listed.start), 0));
        let has = listed.contains(at) || native.image().is_some_and(|image| image.range.contains(at));
        has.then_some((listed.start, native))
    }

    /// The range that the container lists for the image that contains `at`.
    pub(crate) fn listed(&self, at: Addr) -> Option<AddrRange> {
        self.last(at).map(|(listed, _)| *listed).filter(|listed| listed.contains(at))
    }

    /// The last image that begins at or before `at`.
    fn last(&self, at: Addr) -> Option<&(AddrRange, OnceLock<Native>)> {
        self.0.get(self.0.partition_point(|(image, _)| image.start <= at).checked_sub(1)?)
    }

    /// Unwinds one frame: returns the caller for `registers` in code of any image. If `leaf`, the registers are the registers of the thread or of
    /// code that a signal interrupted. A leaf may also be in code without unwind information that has not moved the stack pointer, such as a
    /// generated stub or a procedure linkage table entry. `known` is the image of the runtime, with its cache of unwind rules.
    ///
    /// # Errors
    /// [`UnwindError`] as for [`Native::step`].
    pub(crate) fn step(
        &self,
        bytes: &CodeBytes,
        (registers, leaf): (&Registers, bool),
        known: Option<&Native>,
        is_managed: impl FnMut(Addr) -> bool,
    ) -> Result<Caller, UnwindError> {
        let found = self.find(bytes.memory(), registers.ip);
        let caller = found.map_or(Err(UnwindError::invalid(registers.ip, "native code outside all images")), |(base, native)| {
            let known = known.filter(|known| known.image().is_some_and(|image| image.base == base));
            known.unwrap_or(native).step(bytes, registers, leaf)
        });
        match caller {
            Err(e @ UnwindError::Invalid { .. }) if leaf => {
                let returned = self.returned_to(bytes, registers, is_managed);
                returned.map(|registers| Caller { registers, interrupted: false }).ok_or(e)
            }
            caller => caller,
        }
    }

    /// The caller's registers, with the return address on top of the stack (x64) or in the link register (arm64); `None` if that address does not
    /// follow a call in managed code or in an image.
    fn returned_to(&self, bytes: &CodeBytes, registers: &Registers, mut is_managed: impl FnMut(Addr) -> bool) -> Option<Registers> {
        let (mut caller, sp) = (registers.preserved(), registers.sp()?);
        match registers.arch() {
            Arch::X64 => {
                caller.ip = Addr(bytes.u64(sp).ok()?);
                caller.set_sp(sp.plus(8));
            }
            _ => {
                caller.ip = Addr(registers.value(LINK)?);
                caller.set_sp(sp);
            }
        }
        let is_code = is_managed(caller.ip) || self.find(bytes.memory(), caller.ip).is_some();
        (is_code && is_after_call(bytes, &caller)).then_some(caller)
    }
}

/// Whether the instruction before the instruction pointer may be a call: `e8` with a distance, or `ff /2` with up to five more bytes. Always true
/// on arm64.
fn is_after_call(bytes: &CodeBytes, registers: &Registers) -> bool {
    /// Maximum length of such a call in bytes.
    const LONGEST: u64 = 7;
    if registers.arch() != Arch::X64 {
        return true;
    }
    // If neither the dump nor a module file has the code, it is assumed to be a call.
    let Some(before) = registers.ip.minus(LONGEST).and_then(|start| bytes.bytes(start, LONGEST).ok()) else { return true };
    let at = |back: usize| before.len().checked_sub(back).and_then(|i| before.get(i));
    let indirect = |back: usize| at(back) == Some(&0xff) && at(back.saturating_sub(1)).is_some_and(|modrm| modrm >> 3 & 7 == 2);
    at(5) == Some(&0xe8) || [2, 3, 4, 6, 7].into_iter().any(indirect)
}
