//! Nibble maps: the runtime's index of method starts in a code heap.
//!
//! A map is an array of 32-bit units of eight nibbles; the highest four bits are the first nibble. A nibble covers 32 bytes of code. Its value is
//! 0 if no method starts in these bytes, and *n* if a method starts at byte (*n* − 1) · 4. Source: `nibblemapmacros.h`, `codeman.cpp`.

use super::super::{CodeBytes, StackError};
use crate::base::Addr;
use crate::base::missed::tried;

/// Bytes of code that a nibble covers.
const BYTES_PER_NIBBLE: u64 = 32;
const NIBBLES_PER_UNIT: u64 = 8;
const BYTES_PER_UNIT: u64 = BYTES_PER_NIBBLE * NIBBLES_PER_UNIT;
/// Alignment of methods in bytes.
const ALIGNMENT: u64 = 4;
/// Number of units read at a time while searching back over a long method.
const CHUNK: u64 = 64;

/// The format of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NibbleForm {
    /// .NET 8 and 9: a unit in which no method starts is zero. The search for a method's start goes back unit by unit.
    Linear,
    /// .NET 10 and later: a unit that lies completely within a method encodes the method's start. Its lowest nibble is 9 or more.
    Constant,
}

/// A nibble map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NibbleMap {
    pub(crate) form: NibbleForm,
    /// Address of the first unit.
    pub(crate) units: Addr,
    /// Start of the code that the first nibble covers.
    pub(crate) base: Addr,
}

impl NibbleMap {
    /// The start of the last method that starts at or before `ip`; `None` if the map has no such method. The method may end before `ip`.
    pub(crate) fn start(&self, bytes: &CodeBytes, ip: Addr) -> Result<Option<Addr>, StackError> {
        let Some(offset) = ip.since(self.base) else { return Ok(None) };
        let index = offset / BYTES_PER_NIBBLE;
        let unit = index / NIBBLES_PER_UNIT;
        let value = bytes.u32(self.units.element(unit, 4))?;
        if let Some(start) = self.pointer(value) {
            return Ok(Some(start));
        }
        let slot = index % NIBBLES_PER_UNIT;
        let own = nibble(value, slot);
        if own != 0 && u64::from(own - 1) <= offset % BYTES_PER_NIBBLE / ALIGNMENT {
            return Ok(Some(self.at(unit, slot, own)));
        }
        if let Some(start) = self.last(unit, value, slot) {
            return Ok(Some(start));
        }
        match self.form {
            NibbleForm::Constant => {
                let Some(before) = unit.checked_sub(1) else { return Ok(None) };
                let value = bytes.u32(self.units.element(before, 4))?;
                Ok(self.pointer(value).or_else(|| self.last(before, value, NIBBLES_PER_UNIT)))
            }
            NibbleForm::Linear => self.search_back(bytes, unit),
        }
    }

    /// The start of the last method that starts in a unit before `unit`.
    fn search_back(&self, bytes: &CodeBytes, mut unit: u64) -> Result<Option<Addr>, StackError> {
        while unit > 0 {
            let n = unit.min(CHUNK);
            let first = unit.saturating_sub(n);
            // If a part of the chunk is not in the dump, its units are read one by one.
            let chunk = tried(|| bytes.bytes(self.units.element(first, 4), n.saturating_mul(4)).ok());
            for i in (0..n).rev() {
                let number = first.saturating_add(i);
                let in_chunk = chunk.as_ref().and_then(|c| {
                    let at = usize::try_from(i.saturating_mul(4)).ok()?;
                    Some(u32::from_le_bytes(*c.get(at..)?.first_chunk()?))
                });
                let value = match in_chunk {
                    Some(value) => value,
                    None => bytes.u32(self.units.element(number, 4))?,
                };
                if value != 0 {
                    return Ok(self.last(number, value, NIBBLES_PER_UNIT));
                }
            }
            unit = first;
        }
        Ok(None)
    }

    /// The method start that a unit with this value encodes; `None` unless the unit lies completely within one method. The runtime calls such a unit
    /// a pointer.
    fn pointer(&self, value: u32) -> Option<Addr> {
        let low = value & 15;
        (self.form == NibbleForm::Constant && low > 8)
            .then(|| self.base.plus(u64::from(value & !15)).plus(u64::from(low - 9).saturating_mul(ALIGNMENT)))
    }

    /// The start of the last method that starts in `unit`, which has this value, before nibble `slot`.
    fn last(&self, unit: u64, value: u32, slot: u64) -> Option<Addr> {
        (0..slot).rev().map(|s| (s, nibble(value, s))).find(|(_, n)| *n != 0).map(|(s, n)| self.at(unit, s, n))
    }

    fn at(&self, unit: u64, slot: u64, nibble: u32) -> Addr {
        let within = slot.saturating_mul(BYTES_PER_NIBBLE).saturating_add(u64::from(nibble.saturating_sub(1)).saturating_mul(ALIGNMENT));
        self.base.plus(unit.saturating_mul(BYTES_PER_UNIT)).plus(within)
    }
}

/// Nibble `slot` of a unit, counted from the top.
fn nibble(value: u32, slot: u64) -> u32 {
    let shift = u32::try_from(NIBBLES_PER_UNIT.saturating_sub(1).saturating_sub(slot).saturating_mul(4)).unwrap_or(0);
    value.checked_shr(shift).unwrap_or(0) & 15
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::Shape;
    use crate::memory::tests::memory_of;

    const BASE: u64 = 0x10_0000;

    /// A map of `units`, and its memory.
    fn map(form: NibbleForm, units: &[u32]) -> (NibbleMap, CodeBytes) {
        let raw: Vec<u8> = units.iter().flat_map(|u| u.to_le_bytes()).collect();
        let memory = memory_of(raw.clone(), &[(0x1000, raw.len() as u64, 0)], Shape::LE64);
        (NibbleMap { form, units: Addr(0x1000), base: Addr(BASE) }, CodeBytes::new(&Arc::new(memory)))
    }

    fn start(form: NibbleForm, units: &[u32], offset: u64) -> Option<u64> {
        let (map, bytes) = map(form, units);
        map.start(&bytes, Addr(BASE + offset)).unwrap().map(|a| a.0 - BASE)
    }

    #[test]
    fn a_nibble_has_the_start_within_its_32_bytes() {
        // Methods at 0x04 (nibble 0 = 2) and 0x40 (nibble 2 = 1).
        let units = [0x2010_0000, 0];
        for form in [NibbleForm::Linear, NibbleForm::Constant] {
            assert_eq!(start(form, &units, 0x00), None);
            assert_eq!(start(form, &units, 0x03), None);
            assert_eq!(start(form, &units, 0x04), Some(0x04));
            assert_eq!(start(form, &units, 0x3f), Some(0x04));
            assert_eq!(start(form, &units, 0x40), Some(0x40));
            assert_eq!(start(form, &units, 0xff), Some(0x40));
            // The last method continues in the next unit.
            assert_eq!(start(form, &units, 0x100), Some(0x40));
        }
    }

    #[test]
    fn a_long_method_is_found_from_its_last_unit() {
        let mut linear = vec![0x2000_0000u32];
        linear.resize(200, 0);
        assert_eq!(start(NibbleForm::Linear, &linear, 0x100 * 199 + 5), Some(4));
        // Only the previous unit is read. It is 0 here, but in a valid map it encodes the start of the long method.
        assert_eq!(start(NibbleForm::Constant, &linear, 0x100 * 199 + 5), None);
        let mut constant = linear;
        constant[1..].fill(10);
        assert_eq!(start(NibbleForm::Constant, &constant, 0x100 * 199 + 5), Some(4));
    }

    #[test]
    fn an_address_past_the_end_of_the_map_is_an_error() {
        let (map, bytes) = map(NibbleForm::Linear, &[1]);
        assert!(map.start(&bytes, Addr(BASE + 0x1000)).is_err());
        assert_eq!(map.start(&bytes, Addr(BASE - 1)), Ok(None));
    }
}
