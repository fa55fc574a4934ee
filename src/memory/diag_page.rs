//! The diagnostics page that createdump adds to its cores.
//!
//! Source: `src/coreclr/debug/createdump/specialdiaginfo.h`. Version 2 was verified in dumps of .NET 8 to 10
//! (`docs/internals/containers.md#createdump`).

use super::Memory;
use crate::base::Addr;
use crate::dump::{DumpFile, diag_page_places};

/// The record that createdump leaves for debuggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiagPage {
    /// Address of the crash's exception record, if any.
    pub(crate) exception_record: Option<Addr>,
    /// Load address of the runtime's module (version 2 and later).
    pub(crate) runtime_base: Option<Addr>,
}

const SIGNATURE: &[u8] = b"DIAGINFOHEADER\0\0";

fn places(memory: &Memory) -> impl Iterator<Item = Addr> {
    diag_page_places(memory.shape().ptr).iter().copied().map(Addr)
}

/// Whether `start` is an address where createdump adds the page. A mapping there proves that createdump wrote the dump, even if the dump is
/// truncated before the contents of the page.
pub(crate) fn is_diag_page(memory: &Memory, start: Addr) -> bool {
    places(memory).any(|place| place == start)
}

/// Whether createdump wrote `dump`: the header says so, or there is a diagnostics page. A truncated dump may declare the page without its
/// contents.
pub(crate) fn is_by_createdump(dump: &DumpFile, memory: &Memory) -> bool {
    dump.facts.header_of_createdump || diag_page(memory).is_some() || dump.regions.iter().any(|r| is_diag_page(memory, r.range.start))
}

/// Reads the diagnostics page. `None` if the dump does not contain it.
pub(crate) fn diag_page(memory: &Memory) -> Option<DiagPage> {
    let at = places(memory).find(|a| memory.slice(*a, 16).is_some_and(|b| b == SIGNATURE))?;
    let version = memory.i32(at.plus(16)).ok()?;
    let address = |offset: u64| memory.u64(at.plus(offset)).ok().map(Addr).filter(|a| !a.is_null());
    Some(DiagPage { exception_record: address(24), runtime_base: address(32).filter(|_| version >= 2) })
}
