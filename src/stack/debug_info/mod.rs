//! Debug info: maps native code to IL offsets, and has the locations of variables. The JIT stores debug info next to the code; the AOT
//! compiler stores it in a section of the image.
//!
//! Source: contract `DebugInfo`, `debuginfostore.cpp`, `patchpointinfo.h`; measured as described in
//! `docs/internals/stacks.md#source-lines`.

mod bounds;
mod native_array;
mod suspensions;
mod variables;

pub(crate) use bounds::Bounds;
pub(crate) use suspensions::Captured;
pub(crate) use variables::{Slot, VariableLocation, VariableState, Variables};

use std::borrow::Cow;

use super::code::{Code, CodeOrigin, ready_to_run_section};
use super::{CodeBytes, StackError};
use crate::base::Addr;
use crate::base::reads;
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::{Bound, PatchpointInfo, RealCodeHeader, Structure, bind};
use bounds::{Form, Nibbles};
use variables::Order;

/// The section of a ReadyToRun image with the debug info of its methods (`ReadyToRunSectionType::DebugInfo`).
const DEBUG_INFO: u32 = 105;
/// The first major version of ReadyToRun images whose bounds are packed.
const PACKED_SINCE: u16 = 16;
/// Maximum bytes of a method's bounds, and of its variables.
const MAX_BYTES: u32 = 1 << 18;
/// Maximum number of locals of a method.
const MAX_LOCALS: u32 = 1 << 16;

/// Flag before the debug info of JIT-compiled code: a patchpoint record precedes it.
const HAS_PATCHPOINT: u8 = 1;
/// A first number with this value is not the size of the bounds: two sizes of bounds follow, for an instrumented body and for the plain body.
const TWO_BOUNDS: u32 = u32::MAX;
/// A first number with this value is not the size of the bounds: six sizes follow.
const SIX_SIZES: u32 = 0;

/// The format in which the runtime stores debug info.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// .NET 8 and 9.
    Nibbles,
    /// .NET 10: packed bounds.
    Packed,
    /// Later releases: a header with the sizes of all parts.
    Sized,
}

impl Version {
    const fn order(self) -> Order {
        match self {
            Version::Nibbles | Version::Packed => Order::RangeFirst,
            Version::Sized => Order::NumberFirst,
        }
    }
}

/// Reads debug info.
#[derive(Debug)]
pub(crate) struct DebugInfo {
    header: Bound<RealCodeHeader>,
    patchpoint: Option<(Bound<PatchpointInfo>, u64)>,
    version: Version,
}

/// Location of the debug info of a method.
#[derive(Clone, Copy, Debug)]
struct DebugInfoAt {
    at: Addr,
    /// Whether the debug info starts with a byte of flags.
    flags: bool,
    version: Version,
}

/// Addresses of the parts of a method's debug info, and their sizes in bytes; `None` for missing parts.
#[derive(Clone, Copy, Debug)]
struct Parts {
    bounds: Option<(Addr, u32)>,
    variables: Option<(Addr, u32)>,
    suspensions: Option<(Addr, u32)>,
}

impl DebugInfo {
    /// The contract that describes debug info. Releases before .NET 11 do not advertise this contract, but their overlays have the format in
    /// `DebugInfoVersion`.
    pub(crate) const CONTRACT: Contract = Contract::optional("DebugInfo", &["1", "2"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if the version is not supported, or the descriptor does not have the location of debug info.
    pub(crate) fn bind(d: &Descriptor) -> Result<DebugInfo, ContractError> {
        Self::CONTRACT.permit(d)?;
        // .NET 11 restarts the numbering of contracts, at c1.
        let version = match d.contracts.get(Self::CONTRACT.name).map(|c| c.version.as_str()) {
            Some("1") => Version::Packed,
            Some(_) => Version::Sized,
            None if d.number("DebugInfoVersion")? == 0 => Version::Nibbles,
            None => Version::Packed,
        };
        DebugInfo::of(d, version)
    }

    fn of(d: &Descriptor, version: Version) -> Result<DebugInfo, ContractError> {
        let patchpoint = bind!(d, PatchpointInfo { LocalCount }).ok().zip(PatchpointInfo::size(d).ok());
        Ok(DebugInfo { header: bind!(d, RealCodeHeader { DebugInfo })?, patchpoint, version })
    }

    /// The bounds of the method that `code` belongs to; `None` if the method has no debug info with bounds.
    ///
    /// # Errors
    /// [`StackError`] if the debug info is not in the dump, or is invalid.
    pub(crate) fn bounds(&self, bytes: &CodeBytes, code: &Code) -> Result<Option<Bounds>, StackError> {
        let Some(place) = self.place(bytes, code)? else { return Ok(None) };
        let Some(part) = self.parts(bytes, place)?.bounds else { return Ok(None) };
        let form = match place.version {
            Version::Nibbles => Form::Nibbles,
            Version::Packed => Form::Packed { source: 2 },
            Version::Sized => Form::Packed { source: 3 },
        };
        let bounds = part_of(bytes, place, part)?;
        Bounds::decode(&bounds, form).map(Some).ok_or(StackError::invalid(place.at, "debug info cannot be decoded"))
    }

    /// The variables of the method that `code` belongs to; `None` if the method has no debug info with variables.
    ///
    /// # Errors
    /// [`StackError`] if the debug info is not in the dump, or is invalid.
    pub(crate) fn variables(&self, bytes: &CodeBytes, code: &Code) -> Result<Option<Variables>, StackError> {
        let Some(place) = self.place(bytes, code)? else { return Ok(None) };
        let Some(part) = self.parts(bytes, place)?.variables else { return Ok(None) };
        let variables = part_of(bytes, place, part)?;
        Variables::decode(&variables, place.version.order())
            .map(Some)
            .ok_or(StackError::invalid(place.at, "variables in debug info cannot be decoded"))
    }

    /// The variables that a continuation captured when the method that `code` belongs to was suspended at offset `point` of its code; `None` if the
    /// debug info does not have them.
    ///
    /// # Errors
    /// [`StackError`] if the debug info is not in the dump, or is invalid.
    pub(crate) fn captured(&self, bytes: &CodeBytes, code: &Code, point: u32) -> Result<Option<Vec<Captured>>, StackError> {
        let Some(place) = self.place(bytes, code)? else { return Ok(None) };
        let Some(part) = self.parts(bytes, place)?.suspensions else { return Ok(None) };
        Ok(suspensions::captured(&part_of(bytes, place, part)?, point))
    }

    fn place(&self, bytes: &CodeBytes, code: &Code) -> Result<Option<DebugInfoAt>, StackError> {
        match code.origin {
            CodeOrigin::Jitted { header, .. } => {
                let at = self.header.read(bytes, header, RealCodeHeader::DebugInfo)?;
                let flags = self.version != Version::Sized;
                Ok((!at.is_null()).then_some(DebugInfoAt { at, flags, version: self.version }))
            }
            CodeOrigin::ReadyToRun { header, index } => {
                let version = match (bytes.u16(header.plus(4))? >= PACKED_SINCE, self.version) {
                    (false, _) => Version::Nibbles,
                    (true, Version::Nibbles) => {
                        return Err(StackError::Unsupported { at: header, what: "debug info of a later format" });
                    }
                    (true, own) => own,
                };
                let Some((rva, _)) = ready_to_run_section(bytes, header, DEBUG_INFO)? else { return Ok(None) };
                let array = code.base.plus(u64::from(rva));
                let Some(entry) = native_array::element(bytes, array, index)? else { return Ok(None) };
                let wrong = StackError::invalid(entry, "debug info cannot be found");
                let (back, next) = native_array::unsigned(bytes, entry)?.ok_or(wrong.clone())?;
                // Methods with equal debug info share one copy. If `back` is not 0, it is the distance back to the shared copy.
                let at = if back == 0 { next } else { entry.minus(u64::from(back)).ok_or(wrong)? };
                Ok(Some(DebugInfoAt { at, flags: false, version }))
            }
        }
    }

    fn parts(&self, bytes: &CodeBytes, place: DebugInfoAt) -> Result<Parts, StackError> {
        let wrong = StackError::invalid(place.at, "debug info cannot be decoded");
        let mut at = place.at;
        if place.flags {
            let flags = bytes.u8(at)?;
            at = at.plus(1);
            if flags & !HAS_PATCHPOINT != 0 {
                return Err(StackError::Unsupported { at: place.at, what: "debug info with a record of inlined methods" });
            }
            if flags & HAS_PATCHPOINT != 0 {
                let (patchpoint, size) = self.patchpoint.as_ref().ok_or(wrong.clone())?;
                let locals = patchpoint.read(bytes, at, PatchpointInfo::LocalCount)?;
                if locals > MAX_LOCALS {
                    return Err(wrong);
                }
                at = at.plus(*size).plus(u64::from(locals).saturating_mul(4));
            }
        }
        let mut failed = None;
        let mut nibbles = Nibbles::new(|offset| bytes.u8(at.plus(offset)).map_err(|e| failed = Some(e)).ok());
        let mut sizes = || {
            let first = nibbles.u32()?;
            // Each part is a pair: the part's distance from the end of the sizes, and its own size, both in bytes.
            let (bounds, variables, suspensions) = match (place.version, first) {
                (Version::Packed, TWO_BOUNDS) => {
                    let (instrumented, plain, variables) = (nibbles.u32()?, nibbles.u32()?, nibbles.u32()?);
                    let bounds = if plain == 0 { (0, instrumented) } else { (instrumented, plain) };
                    (bounds, (instrumented.checked_add(plain)?, variables), (0, 0))
                }
                (Version::Sized, SIX_SIZES) => {
                    let (instrumented, variables, plain) = (nibbles.u32()?, nibbles.u32()?, nibbles.u32()?);
                    let (patchpoints, inlined, suspensions) = (nibbles.u32()?, nibbles.u32()?, nibbles.u32()?);
                    let of_variables = instrumented.checked_add(variables)?;
                    let before = of_variables.checked_add(plain)?.checked_add(patchpoints)?.checked_add(inlined)?;
                    let bounds = if plain == 0 { (0, instrumented) } else { (of_variables, plain) };
                    (bounds, (instrumented, variables), (before, suspensions))
                }
                _ => ((0, first), (first, nibbles.u32()?), (0, 0)),
            };
            Some((nibbles.next_byte(), bounds, variables, suspensions))
        };
        let read = sizes();
        if let Some(e) = failed {
            return Err(e.into());
        }
        let (header, bounds, variables, suspensions) = read.ok_or(wrong)?;
        let part = |(skipped, size): (u32, u32)| (size > 0).then(|| (at.plus(header).plus(u64::from(skipped)), size));
        Ok(Parts { bounds: part(bounds), variables: part(variables), suspensions: part(suspensions) })
    }
}

/// The bytes of a part of the debug info at `place`.
fn part_of(bytes: &CodeBytes, place: DebugInfoAt, (at, len): (Addr, u32)) -> Result<Cow<'_, [u8]>, StackError> {
    if len > MAX_BYTES {
        return Err(StackError::invalid(place.at, "debug info has an invalid size"));
    }
    reads::take(u64::from(len));
    Ok(bytes.bytes(at, u64::from(len))?)
}

/// A descriptor in which the pointer to the debug info is the first field of `RealCodeHeader`.
#[cfg(any(test, feature = "internals"))]
fn described() -> Descriptor {
    let json = br#"{"types": {"RealCodeHeader": {"DebugInfo": 0}, "PatchpointInfo": {"!": 32, "LocalCount": 8}}}"#;
    let mut d = Descriptor::default();
    if let Ok(raw) = crate::contract::parse_descriptor(json) {
        d.merge(&raw, 0, |_| None);
    }
    d
}

/// For the fuzz target: looks up element `index` of a `NativeArray` at `at`, decodes the debug info at `at` in each version, and queries the code
/// at `offset`. Returns the maximum numbers of bounds and of variables.
#[cfg(feature = "internals")]
pub fn try_debug_info(memory: &std::sync::Arc<crate::memory::Memory>, at: Addr, index: u32, offset: u32) -> [u64; 2] {
    let bytes = CodeBytes::new(memory);
    let _ = native_array::element(&bytes, at, index.into());
    let (d, mut most) = (described(), [0; 2]);
    for version in [Version::Nibbles, Version::Packed, Version::Sized] {
        for flags in [false, true] {
            let Ok(info) = DebugInfo::of(&d, version) else { continue };
            let place = DebugInfoAt { at, flags, version };
            let Ok(parts) = info.parts(&bytes, place) else { continue };
            let part = |part: Option<(Addr, u32)>| part.and_then(|part| part_of(&bytes, place, part).ok());
            let forms = [Form::Nibbles, Form::Packed { source: 2 }, Form::Packed { source: 3 }];
            for bounds in forms.into_iter().filter_map(|form| Bounds::decode(&part(parts.bounds)?, form)) {
                let _ = (bounds.il_offset(offset), bounds.is_prologue_or_epilogue(offset));
                most[0] = most[0].max(bounds.count());
            }
            if let Some(variables) = part(parts.variables).and_then(|part| Variables::decode(&part, place.version.order())) {
                for number in 0..8 {
                    let _ = (variables.at(number, offset), variables.count_of(number));
                }
                most[1] = most[1].max(variables.count());
            }
        }
    }
    most
}

#[cfg(test)]
mod tests;
