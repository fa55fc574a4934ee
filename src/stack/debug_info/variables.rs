//! Variables: the locations of a method's arguments and locals at its instructions.
//!
//! Source: `DoNativeVarInfo` of `debuginfostore.cpp`, `cordebuginfo.h`. All known runtimes encode variables in nibbles.

use super::bounds::Nibbles;
use crate::base::{Arch, len64};
use crate::stack::RegisterNames;

/// The order of the numbers of an entry. Variable numbers are stored with a bias, because hidden arguments have negative numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Until .NET 10: start, length in bytes, variable number with a bias of 4.
    RangeFirst,
    /// .NET 11: variable number with a bias of 6, start, and length in bytes. In entries for the return value of a call, the third number is not
    /// a length.
    NumberFirst,
}

const BIAS: u32 = 4;
const BIAS_OF_NUMBER_FIRST: u32 = 6;
/// The stored variable number of entries for return values of calls (`CALL_RETURN_ILNUM`), which have an offset instead of a range.
const CALL_RETURN: u32 = 1;
/// Minimum number of nibbles of an entry.
const SMALLEST: u64 = 5;

/// A stack slot of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Number of the register that the offset is relative to.
    pub(crate) base: u8,
    /// Offset in bytes.
    pub(crate) offset: i32,
}

/// The location of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableLocation {
    /// In a register.
    Register(u8),
    /// In memory at the address in a register.
    AtRegister(u8),
    /// In a floating-point register.
    Float(u8),
    /// On the stack.
    Stack(Slot),
    /// In memory at the address in a stack slot.
    AtStack(Slot),
    /// In two registers. The first register contains the low part.
    Two(u8, u8),
    /// In several parts, or relative to an unknown base.
    Elsewhere,
}

/// The location of a variable in a range of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Variable {
    /// Start of the range in the method's code.
    start: u32,
    /// End of the range.
    end: u32,
    /// Number of the variable in IL, arguments before locals; `None` for hidden arguments.
    number: Option<u32>,
    held: VariableLocation,
}

/// The variables of a method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    /// Entries, sorted by variable number.
    list: Vec<Variable>,
}

/// The location of a variable at an instruction according to debug info.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableState {
    /// The variable has this location.
    At(VariableLocation),
    /// The variable has locations only at other instructions of the method.
    Dead,
    /// The variable does not have a location anywhere in the method.
    Nothing,
    /// The variable has two locations at once.
    Ambiguous,
}

impl Variables {
    /// Decodes variables; `None` if `bytes` are not variables in this order.
    pub(super) fn decode(bytes: &[u8], order: Order) -> Option<Variables> {
        let byte_at = |at: u64| usize::try_from(at).ok().and_then(|i| bytes.get(i)).copied();
        let mut nibbles = Nibbles::new(byte_at);
        let most = len64(bytes.len()).saturating_mul(2) / SMALLEST;
        let count = nibbles.u32().filter(|n| u64::from(*n) <= most)?;
        let mut list = Vec::new();
        for _ in 0..count {
            let (start, end, number) = match order {
                Order::RangeFirst => {
                    let start = nibbles.u32()?;
                    let end = start.checked_add(nibbles.u32()?)?;
                    (start, end, nibbles.u32()?.checked_sub(BIAS))
                }
                Order::NumberFirst => {
                    let (number, start, third) = (nibbles.u32()?, nibbles.u32()?, nibbles.u32()?);
                    let end = if number == CALL_RETURN { start } else { start.checked_add(third)? };
                    (start, end, number.checked_sub(BIAS_OF_NUMBER_FIRST))
                }
            };
            list.push(Variable { start, end, number, held: held(&mut nibbles)? });
        }
        list.sort_by_key(|v| v.number);
        Some(Variables { list })
    }

    /// Number of entries.
    pub(crate) fn count(&self) -> u64 {
        len64(self.list.len())
    }

    /// The entries of variable `number`.
    fn entries(&self, number: u32) -> &[Variable] {
        let start = self.list.partition_point(|v| v.number < Some(number));
        let end = self.list.partition_point(|v| v.number <= Some(number));
        self.list.get(start..end).unwrap_or_default()
    }

    /// Number of entries of variable `number`.
    pub(crate) fn count_of(&self, number: u32) -> u64 {
        len64(self.entries(number).len())
    }

    /// The location of variable `number` at the instruction at `offset` in the method's code.
    pub(crate) fn at(&self, number: u32, offset: u32) -> VariableState {
        let mut found = VariableState::Nothing;
        for variable in self.entries(number) {
            let lives = variable.start <= offset && offset < variable.end;
            found = match (lives, found) {
                (true, VariableState::At(before)) if before != variable.held => return VariableState::Ambiguous,
                (true, _) => VariableState::At(variable.held),
                (false, VariableState::Nothing) => VariableState::Dead,
                (false, before) => before,
            };
        }
        found
    }
}

fn held<F: FnMut(u64) -> Option<u8>>(nibbles: &mut Nibbles<F>) -> Option<VariableLocation> {
    // Numbers of more than 8 bits are not registers: `u8::MAX` replaces them.
    let mut register = || Some(u8::try_from(nibbles.u32()?).unwrap_or(u8::MAX));
    Some(match register()? {
        0 => VariableLocation::Register(register()?),
        1 => VariableLocation::AtRegister(register()?),
        2 => VariableLocation::Float(register()?),
        kind @ (3 | 4 | 8) => {
            let slot = Slot { base: register()?, offset: nibbles.i32()? };
            match kind {
                3 => VariableLocation::Stack(slot),
                4 => VariableLocation::AtStack(slot),
                _ => VariableLocation::Elsewhere,
            }
        }
        5 => VariableLocation::Two(register()?, register()?),
        // 6 and 7 are a register and a stack slot, in either order; 9 is a slot of the floating-point stack, and 10 an offset in variable
        // arguments.
        kind @ (6 | 7 | 9 | 10) => {
            let numbers = if kind <= 7 { 3 } else { 1 };
            (0..numbers).try_for_each(|_| nibbles.u32().map(drop))?;
            VariableLocation::Elsewhere
        }
        _ => return None,
    })
}

impl VariableLocation {
    /// The location as in a disassembly: `rdi`, `[rbp-0x8]`; `None` if it has no such form.
    pub(crate) fn text(self, arch: Arch) -> Option<String> {
        let name = |number: u8| RegisterNames::of(arch).get(usize::from(number)).copied();
        let slot = |s: Slot| {
            let sign = if s.offset < 0 { '-' } else { '+' };
            Some(format!("[{}{sign}{:#x}]", name(s.base)?, s.offset.unsigned_abs()))
        };
        match self {
            VariableLocation::Register(n) => name(n).map(ToString::to_string),
            VariableLocation::AtRegister(n) => name(n).map(|n| format!("[{n}]")),
            VariableLocation::Float(n) => Some(format!("{}{n}", if arch == Arch::X64 { "xmm" } else { "v" })),
            VariableLocation::Stack(s) => slot(s),
            VariableLocation::AtStack(s) => slot(s).map(|s| format!("[{s}]")),
            VariableLocation::Two(low, high) => Some(format!("{}:{}", name(low)?, name(high)?)),
            VariableLocation::Elsewhere => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::bounds::tests::nibbles;
    use super::*;

    fn signed(n: i32) -> u32 {
        n.unsigned_abs() << 1 | u32::from(n < 0)
    }

    #[test]
    fn each_kind_of_location_is_decoded_with_its_range() {
        let one = |start: u32, len: u32, number: u32, place: &[u32]| [&[start, len, number + BIAS], place].concat();
        let numbers = [
            vec![11],
            one(0, 100, 0, &[3, 5, signed(-8)]),
            one(0, 10, 1, &[0, 7]),
            one(10, 90, 1, &[3, 4, signed(0x20)]),
            one(0, 100, 2, &[1, 6]),
            one(0, 100, 3, &[4, 5, signed(16)]),
            one(0, 100, 4, &[5, 7, 6]),
            one(0, 100, 5, &[2, 1]),
            one(0, 100, 6, &[6, 1, 5, signed(8)]),
            one(0, 50, 7, &[0, 3]),
            one(40, 10, 7, &[0, 12]),
            // The generic context.
            vec![0, 100, 1, 0, 2],
        ]
        .concat();
        let bytes = nibbles(&numbers);
        let variables = Variables::decode(&bytes, Order::RangeFirst).unwrap();
        assert_eq!([variables.count(), variables.count_of(1), variables.count_of(8)], [11, 2, 0]);
        let text = |number, offset| match variables.at(number, offset) {
            VariableState::At(held) => held.text(Arch::X64).unwrap_or_default(),
            other => format!("{other:?}"),
        };
        assert_eq!([text(0, 0), text(0, 99), text(0, 100)], ["[rbp-0x8]", "[rbp-0x8]", "Dead"]);
        assert_eq!([text(1, 9), text(1, 10)], ["rdi", "[rsp+0x20]"]);
        assert_eq!([text(2, 1), text(3, 1), text(4, 1), text(5, 1)], ["[rsi]", "[[rbp+0x10]]", "rdi:rsi", "xmm1"]);
        assert_eq!([text(6, 1), text(7, 39), text(7, 40), text(8, 1)], ["", "rbx", "Ambiguous", "Nothing"]);
        assert_eq!(VariableLocation::Register(29).text(Arch::Arm64).as_deref(), Some("fp"));
        assert_eq!(VariableLocation::Register(17).text(Arch::X64), None, "the stack pointer of the caller");
        assert_eq!(Variables::decode(&bytes[..bytes.len() - 1], Order::RangeFirst), None);
        assert_eq!(Variables::decode(&nibbles(&[1, 0, 1, 4, 12, 0]), Order::RangeFirst), None, "no such kind");
        assert_eq!(Variables::decode(&nibbles(&[1 << 20, 0, 1, 4, 0, 0]), Order::RangeFirst), None, "too many for the bytes");
    }

    #[test]
    fn numbers_come_first_since_net11() {
        let entry = |number: u32, start: u32, len: u32, place: &[u32]| [&[number + BIAS_OF_NUMBER_FIRST, start, len], place].concat();
        let numbers = [
            vec![4],
            entry(0, 0, 100, &[3, 5, signed(-8)]),
            entry(1, 10, 90, &[0, 7]),
            // The return value of a call: one offset in the code, and the third number is not a length.
            vec![CALL_RETURN, 40, u32::MAX, 0, 0],
            // The generic context.
            vec![2, 0, 100, 0, 3],
        ]
        .concat();
        let variables = Variables::decode(&nibbles(&numbers), Order::NumberFirst).unwrap();
        assert_eq!([variables.count(), variables.count_of(0), variables.count_of(1), variables.count_of(2)], [4, 1, 1, 0]);
        let held = |number, offset| variables.at(number, offset);
        assert_eq!(held(0, 99), VariableState::At(VariableLocation::Stack(Slot { base: 5, offset: -8 })));
        assert_eq!((held(1, 9), held(1, 10)), (VariableState::Dead, VariableState::At(VariableLocation::Register(7))));
    }

    proptest! {
        #[test]
        fn any_bytes_terminate(bytes in prop::collection::vec(any::<u8>(), 0..200), number in 0u32..8, offset: u32) {
            if let Some(variables) = Variables::decode(&bytes, Order::RangeFirst) {
                prop_assert!(variables.list.len() <= bytes.len());
                variables.at(number, offset);
            }
        }
    }
}
