//! Names of the types of continuations.

use super::Renderer;
use super::places::{Home, Place};
use crate::base::Addr;
use crate::clr::gcdesc::GcDesc;
use crate::clr::method_table::MethodTableInfo;

/// Most bytes of a continuation whose references are named: a method has a few hundred bytes of variables.
const MAX_CONTINUATION: u64 = 1 << 12;

impl Renderer<'_> {
    /// The type of a continuation, which has no metadata: the bytes of the method's variables in it, and of each run of references the
    /// offset among them and the number. The runtime's own debugging interface names it so (`Continuation_56_0_3_32_2`).
    pub(super) fn continuation(&mut self, info: &MethodTableInfo, base: Addr) -> Option<Home> {
        let base = self.tables.read(base).ok()?;
        let word = self.memory.ptr_bytes();
        // Base sizes have the object header, which offsets do not count.
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
