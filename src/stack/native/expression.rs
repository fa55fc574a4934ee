//! DWARF expressions, which locate the caller's registers for procedure linkage table entries and signal frames.
//!
//! Sources: DWARF 5, 2.5 and 6.4.2; System V ABI for AMD64, figure 3.36 (numbers of registers).

use gimli::{Encoding, Evaluation, EvaluationResult, Format, LittleEndian, Location, Value};

use super::numbers::number;
use crate::base::Addr;
use crate::stack::{CodeBytes, Registers, UnwindError};

/// Maximum number of operations in an expression. Those of the C library have fewer than ten.
const MOST_OPERATIONS: u32 = 64;
/// DWARF's register number of the return address, which in a frame is the instruction pointer.
const RETURN_ADDRESS: u16 = 16;

/// Evaluates `expression` in the frame with these registers; `cfa` is initially on the expression's stack.
///
/// # Errors
/// [`UnwindError::Read`] if memory is absent, [`UnwindError::Invalid`] if the expression is malformed, needs unknown registers, or does not
/// have an address as its result.
pub(super) fn evaluate(bytes: &CodeBytes, expression: &[u8], registers: &Registers, cfa: Option<Addr>) -> Result<u64, UnwindError> {
    let invalid = || UnwindError::invalid(registers.ip, "the CFI has a DWARF expression that cannot be evaluated");
    let malformed = |_| invalid();
    let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 5 };
    let mut evaluation = Evaluation::new(gimli::EndianSlice::new(expression, LittleEndian), encoding);
    evaluation.set_max_iterations(MOST_OPERATIONS);
    if let Some(cfa) = cfa {
        evaluation.set_initial_value(cfa.0);
    }
    let mut state = evaluation.evaluate().map_err(malformed)?;
    // The evaluation limits the number of operations, so the loop ends.
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = match number(register) {
                    Some(number) => registers.value(number),
                    None => Some(registers.ip.0).filter(|_| register.0 == RETURN_ADDRESS),
                };
                evaluation.resume_with_register(Value::Generic(value.ok_or_else(invalid)?)).map_err(malformed)?
            }
            EvaluationResult::RequiresMemory { address, size: 8, space: None, .. } => {
                let value = bytes.u64(Addr(address))?;
                evaluation.resume_with_memory(Value::Generic(value)).map_err(malformed)?
            }
            _ => return Err(invalid()),
        };
    }
    match evaluation.as_result() {
        [piece] => match piece.location {
            Location::Address { address } => Ok(address),
            _ => Err(invalid()),
        },
        _ => Err(invalid()),
    }
}
