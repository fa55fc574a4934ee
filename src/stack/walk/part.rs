//! The exception clauses of the code on a stack.

use super::StackWalker;
use crate::base::Addr;
use crate::stack::clauses::{ClauseError, Clauses, Purpose};
use crate::stack::code::{Code, CodeOrigin};
use crate::stack::walked::Part;

impl StackWalker {
    /// The part of the method that `code` is: its body, or the purpose of a funclet.
    pub(super) fn part(&self, code: &Code) -> Part {
        if !code.funclet {
            return Part::Body;
        }
        let offset = u32::try_from(code.piece_offset()).unwrap_or(u32::MAX);
        match self.clauses(code).and_then(|clauses| clauses.map_or(Ok(None), |clauses| clauses.purpose(offset))) {
            Ok(Some(Purpose::Catch)) => Part::Catch,
            Ok(Some(Purpose::Finally)) => Part::Finally,
            Ok(Some(Purpose::Filter)) => Part::Filter,
            // The clauses are not in the dump.
            Ok(None) | Err(_) => Part::Funclet,
        }
    }

    /// Whether a catch block or filter of the method of the code at `ip` is responsible for an exception there; `None` if this is not in the dump.
    pub(crate) fn may_catch(&self, ip: Addr) -> Option<bool> {
        let code = self.code.find(ip).ok().flatten()?;
        let offset = u32::try_from(code.offset(ip)).ok()?;
        match self.clauses(&code).ok()? {
            Some(clauses) => clauses.may_catch(offset).ok(),
            None => Some(false),
        }
    }

    /// The exception clauses of the method of `code`; `None` if it has none.
    fn clauses(&self, code: &Code) -> Result<Option<Clauses<'_>>, ClauseError> {
        let bytes = self.code.bytes();
        match code.origin {
            CodeOrigin::Jitted { clauses, .. } => Clauses::jit(bytes, clauses),
            CodeOrigin::ReadyToRun { header, .. } => {
                let rva = code.start.since(code.base).and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX);
                Clauses::ready_to_run(bytes, header, code.base, rva)
            }
        }
    }
}
