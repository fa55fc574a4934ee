//! Names of continuation types.

use super::Renderer;
use super::places::{Home, Place};
use crate::base::Addr;
use crate::clr::gcdesc::GcDesc;
use crate::clr::method_table::MethodTableInfo;

/// Maximum size in bytes of the part of a continuation whose references are in the name. This is enough, because the variables of a method
/// have a few hundred bytes.
const MAX_CONTINUATION: u64 = 1 << 12;

impl Renderer<'_> {
    /// Formats a continuation type, which has no metadata, like the runtime's debugging interface (`Continuation_56_0_3_32_2`). The first
    /// number is the size of the method's variables in bytes; an offset and a length follow for each run of references.
    pub(super) fn continuation(&mut self, info: &MethodTableInfo, base: Addr) -> Option<Home> {
        let base = self.tables.read(base).ok()?;
        let word = self.memory.ptr_bytes();
        // Base sizes include the object header, but offsets do not.
        let first = u64::from(base.base_size).saturating_sub(word);
        self.push(&format!("Continuation_{}", info.base_size.saturating_sub(base.base_size)));
        let mut run: Option<(u64, u64)> = None;
        let of_variables = |at: &u64| *at >= first;
        for at in GcDesc::offsets(self.memory, info, MAX_CONTINUATION).into_iter().filter(of_variables) {
            run = match run {
                Some((start, count)) if at == start.saturating_add(count.saturating_mul(word)) => Some((start, count.saturating_add(1))),
                before => {
                    self.run_of_references(before, first);
                    Some((at, 1))
                }
            };
        }
        self.run_of_references(run, first);
        let module = self.modules.get(self.tables.module(info).ok()?);
        Some(Home { module: Place::Module(module), token: None })
    }

    fn run_of_references(&mut self, run: Option<(u64, u64)>, first: u64) {
        if let Some((start, count)) = run {
            self.push(&format!("_{}_{count}", start.saturating_sub(first)));
        }
    }
}
