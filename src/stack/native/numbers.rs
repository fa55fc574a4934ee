//! Register numbers of DWARF.

use gimli::Register;

/// DWARF's number of each register, by its number in unwind info.
pub(super) const DWARF: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// The number in unwind info of a DWARF register; `None` if it is not a general-purpose register.
pub(super) fn number(register: Register) -> Option<u8> {
    (0u8..).zip(DWARF).find(|(_, dwarf)| *dwarf == register.0).map(|(number, _)| number)
}
