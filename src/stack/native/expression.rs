//! DWARF expressions: where entries of procedure linkage tables, and frames of signals, have the registers of their caller.
//!
//! Sources: DWARF 5, 2.5 and 6.4.2; System V ABI for AMD64, figure 3.36 (numbers of registers).

use gimli::{Encoding, Evaluation, EvaluationResult, Format, LittleEndian, Location, Value};

use super::numbers::number;
use crate::base::Addr;
use crate::stack::{CodeBytes, Registers, UnwindError};

/// Most operations of an expression. Those of the C library have fewer than ten.
const MOST_OPERATIONS: u32 = 64;
/// DWARF's number of the return address, which in a frame is its instruction pointer.
const RETURN_ADDRESS: u16 = 16;

/// The value of `expression` in the frame with these registers; `cfa` is on its stack to begin with.
///
/// # Errors
/// [`UnwindError::Read`] where memory is absent, [`UnwindError::Invalid`] for an expression that is not well-formed, needs what is unknown, or
/// has more than a number as its result.
pub(super) fn evaluate(bytes: &CodeBytes, expression: &[u8], registers: &Registers, cfa: Option<Addr>) -> Result<u64, UnwindError> {
    let invalid = || UnwindError::invalid(registers.ip, "a frame whose place cannot be computed");
    let malformed = |_| invalid();
    let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 5 };
    let mut evaluation = Evaluation::new(gimli::EndianSlice::new(expression, LittleEndian), encoding);
    evaluation.set_max_iterations(MOST_OPERATIONS);
    if let Some(cfa) = cfa {
        evaluation.set_initial_value(cfa.0);
    }
    let mut state = evaluation.evaluate().map_err(malformed)?;
    // Each turn is an operation: the evaluation counts them.
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
