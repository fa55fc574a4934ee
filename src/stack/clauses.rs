//! Exception clauses of a method, which show whether a funclet is a filter or a handler.
//!
//! The references that a frame reports depend on this: while a handler runs, the frames below its method have been unwound; while a filter runs,
//! no frame has been unwound.
//!
//! ReadyToRun images have the clauses in a writable section, although the runtime only reads them: if the dump does not have them, the file does.
//!
//! Source: `EE_ILEXCEPTION` and `EE_ILEXCEPTION_CLAUSE` (`eexcp.h`), `READYTORUN_EXCEPTION_LOOKUP_TABLE_ENTRY` and `READYTORUN_EXCEPTION_CLAUSE`
//! (`readytorun.h`), `InitializeEHEnumeration` (`codeman.cpp`).

use crate::base::Addr;
use crate::memory::ReadError;
use crate::stack::CodeBytes;
use crate::stack::code::ready_to_run_section;

/// Maximum number of clauses of a method.
const MAX_CLAUSES: u64 = 1 << 16;
/// Flag of a clause that has a filter (`COR_ILEXCEPTION_CLAUSE_FILTER`).
const FILTER: u32 = 1;
/// Type of the section of a ReadyToRun image that has the clauses of its methods (`ReadyToRunSectionType::ExceptionInfo`).
const EXCEPTION_INFO: u32 = 104;
/// Size in bytes of an entry of that section, a `READYTORUN_EXCEPTION_LOOKUP_TABLE_ENTRY`: the RVA of a method and the RVA of its clauses.
const LOOKUP_ENTRY_BYTES: u64 = 8;
/// Offset of the clauses in an `EE_ILEXCEPTION`, to which the code header points. The header of a section of the method precedes them.
const EE_ILEXCEPTION_CLAUSES: u64 = 8;
/// Size of the number of clauses, which precedes the `EE_ILEXCEPTION`.
const COUNT_BYTES: u64 = 8;

/// The layout of a clause. Code offsets in a clause are relative to the method's start.
#[derive(Clone, Copy, Debug)]
struct Layout {
    bytes: u64,
    /// `Flags`.
    flags: u64,
    /// `HandlerStartPC`.
    handler: u64,
    /// `FilterOffset`, in a union. The union of `EE_ILEXCEPTION_CLAUSE` has a pointer, so it is aligned to eight bytes.
    filter: u64,
}

/// The layout of the clauses of JIT-compiled code, in a 64-bit process.
const EE_ILEXCEPTION_CLAUSE: Layout = Layout { bytes: 32, flags: 0, handler: 12, filter: 24 };
/// The layout of the clauses in a ReadyToRun image.
const READYTORUN_EXCEPTION_CLAUSE: Layout = Layout { bytes: 24, flags: 0, handler: 12, filter: 20 };

/// Why exception clauses cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClauseError {
    /// Some clauses are not in the dump.
    #[error("exception clauses: {0}")]
    Missing(#[from] ReadError),
    /// The method has more than [`MAX_CLAUSES`] clauses.
    #[error("the number of exception clauses at {address} is invalid: {count}")]
    Count {
        /// Address of the clauses.
        address: Addr,
        /// The stored number of clauses.
        count: u64,
    },
}

/// Whether the funclet of JIT-compiled code at offset `funclet` from the method's start is a filter; `None` if no clause names the funclet.
/// `eh_info` is the pointer in the code header, 0 if the method has no clauses.
///
/// # Errors
/// Fails if a clause is missing, and if there are more than [`MAX_CLAUSES`] clauses.
pub(crate) fn jit_filter(bytes: &CodeBytes, eh_info: Addr, funclet: u32) -> Result<Option<bool>, ClauseError> {
    if eh_info.is_null() {
        return Ok(None);
    }
    let count_at = eh_info.minus(COUNT_BYTES).ok_or(ReadError { address: eh_info, len: COUNT_BYTES })?;
    is_filter(bytes, EE_ILEXCEPTION_CLAUSE, eh_info.plus(EE_ILEXCEPTION_CLAUSES), bytes.u64(count_at)?, funclet)
}

/// Whether the funclet of ReadyToRun code at offset `funclet` from the start of the method at `method_rva` is a filter; `None` if no clause names
/// the funclet. `header` is the image's ReadyToRun header, and RVAs are relative to `base`.
///
/// # Errors
/// Fails if a part is missing, and if there are more than [`MAX_CLAUSES`] clauses.
pub(crate) fn ready_to_run_filter(
    bytes: &CodeBytes,
    header: Addr,
    base: Addr,
    method_rva: u32,
    funclet: u32,
) -> Result<Option<bool>, ClauseError> {
    let Some((table, size)) = ready_to_run_section(bytes, header, EXCEPTION_INFO)? else { return Ok(None) };
    let table = base.plus(u64::from(table));
    let Some((clauses, len)) = clauses_of(bytes, table, u64::from(size) / LOOKUP_ENTRY_BYTES, method_rva)? else { return Ok(None) };
    let count = u64::from(len).checked_div(READYTORUN_EXCEPTION_CLAUSE.bytes).unwrap_or(0);
    is_filter(bytes, READYTORUN_EXCEPTION_CLAUSE, base.plus(u64::from(clauses)), count, funclet)
}

/// RVA and length of the clauses of the method at `method`. Each of the `count` pairs has the RVA of a method and the RVA of the method's
/// clauses. They end where the clauses of the next pair begin, so the last pair only marks the end.
fn clauses_of(bytes: &CodeBytes, table: Addr, count: u64, method: u32) -> Result<Option<(u32, u32)>, ReadError> {
    let Some(last) = count.checked_sub(2) else { return Ok(None) };
    let pair = |i: u64| table.element(i, LOOKUP_ENTRY_BYTES);
    // createdump writes only the pages that the runtime's search touches, so this search takes the same steps: bisection down to ten pairs, then
    // linear search.
    let (mut low, mut high) = (0, last);
    while high.saturating_sub(low) > 10 {
        let middle = low.saturating_add(high.saturating_sub(low) / 2);
        if method < bytes.table_u32(pair(middle))? {
            high = middle.saturating_sub(1);
        } else {
            low = middle;
        }
    }
    for i in low..=high {
        if bytes.table_u32(pair(i))? == method {
            let (start, end) = (bytes.table_u32(pair(i).plus(4))?, bytes.table_u32(pair(i.saturating_add(1)).plus(4))?);
            return Ok(Some((start, end.saturating_sub(start))));
        }
    }
    Ok(None)
}

/// Whether the funclet at offset `funclet` is a filter according to the `count` clauses at `first`; `None` if no clause names the funclet.
fn is_filter(bytes: &CodeBytes, layout: Layout, first: Addr, count: u64, funclet: u32) -> Result<Option<bool>, ClauseError> {
    if count > MAX_CLAUSES {
        return Err(ClauseError::Count { address: first, count });
    }
    let mut handler = false;
    for i in 0..count {
        let clause = first.element(i, layout.bytes);
        if bytes.table_u32(clause.plus(layout.flags))? & FILTER != 0 && bytes.table_u32(clause.plus(layout.filter))? == funclet {
            return Ok(Some(true));
        }
        handler |= bytes.table_u32(clause.plus(layout.handler))? == funclet;
    }
    Ok(handler.then_some(false))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::base::Shape;
    use crate::memory::tests::memory_of;

    fn code_bytes(bytes: Vec<u8>, base: u64) -> CodeBytes {
        let len = bytes.len() as u64;
        CodeBytes::new(&Arc::new(memory_of(bytes, &[(base, len, 0)], Shape::LE64)))
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    /// The clauses of a JIT-compiled method: catch at 100, a filter at 200 with its handler at 300, finally at 400.
    fn jit(count: u32) -> CodeBytes {
        let mut out = vec![count, 0, 0x41, 0];
        out.extend([0, 1, 2, 100, 110, 0, 0x0200_0001, 0]);
        out.extend([1, 1, 2, 300, 310, 0, 200, 0]);
        out.extend([2, 1, 2, 400, 410, 0, 100, 0]);
        code_bytes(words(&out), 0x1000)
    }

    #[test]
    fn clauses_of_jitted_code_distinguish_filters_from_handlers() {
        let bytes = jit(3);
        let ask = |funclet| jit_filter(&bytes, Addr(0x1008), funclet);
        assert_eq!(ask(200), Ok(Some(true)));
        assert_eq!((ask(100), ask(300), ask(400)), (Ok(Some(false)), Ok(Some(false)), Ok(Some(false))));
        assert_eq!(ask(0x0200_0001), Ok(None), "a class token is not an offset");
        assert_eq!(jit_filter(&bytes, Addr::NULL, 200), Ok(None));
        assert!(matches!(jit_filter(&bytes, Addr(4), 200), Err(ClauseError::Missing(_))));
        assert!(matches!(jit_filter(&jit(4), Addr(0x1008), 500), Err(ClauseError::Missing(e)) if e.address == Addr(0x1070)));
        assert_eq!(jit_filter(&jit(4), Addr(0x1008), 200), Ok(Some(true)), "later clauses are not needed");
        let many = u64::from(u32::MAX);
        assert_eq!(jit_filter(&jit(u32::MAX), Addr(0x1008), 200), Err(ClauseError::Count { address: Addr(0x1010), count: many }));
    }

    /// An image with `methods` methods of one clause each: method i is at 1000 + 10 i, its filter at i, its handler at 7 i + 1.
    fn image(methods: u32) -> CodeBytes {
        let pairs_at = 52;
        let clauses_at = pairs_at + (methods + 1) * 8;
        let mut out = vec![0x0052_5452, 0x0001_0010, 0, 3, 100, 9, 9, EXCEPTION_INFO, pairs_at, (methods + 1) * 8, 101, 9, 9];
        for i in 0..methods {
            out.extend([1000 + 10 * i, clauses_at + 24 * i]);
        }
        out.extend([u32::MAX, clauses_at + 24 * methods]);
        for i in 0..methods {
            out.extend([1, 0, 0, 7 * i + 1, 0, i]);
        }
        code_bytes(words(&out), 0x4000)
    }

    #[test]
    fn clauses_of_images_are_found_by_method() {
        for methods in [0, 1, 2, 11, 12, 13, 100] {
            let bytes = image(methods);
            let ask = |method: u32, funclet| ready_to_run_filter(&bytes, Addr(0x4000), Addr(0x4000), method, funclet);
            for i in 0..methods {
                assert_eq!(ask(1000 + 10 * i, i), Ok(Some(true)));
                assert_eq!(ask(1000 + 10 * i, 7 * i + 1), Ok(Some(false)));
                assert_eq!(ask(1000 + 10 * i, 50_000), Ok(None));
                assert_eq!(ask(1001 + 10 * i, i), Ok(None));
            }
            assert_eq!(ask(u32::MAX, 0), Ok(None), "the last pair is not a method");
        }
        let none = code_bytes(words(&[0x0052_5452, 0x0001_0010, 0, 1, 100, 9, 9]), 0x4000);
        assert_eq!(ready_to_run_filter(&none, Addr(0x4000), Addr(0x4000), 1000, 0), Ok(None));
        let cut = code_bytes(words(&[0x0052_5452, 0x0001_0010, 0, 2, 100, 9, 9]), 0x4000);
        assert!(ready_to_run_filter(&cut, Addr(0x4000), Addr(0x4000), 1000, 0).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_terminate(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0u64..300, rva: u32, funclet: u32) {
            let bytes = code_bytes(bytes, 0x1000);
            let _ = jit_filter(&bytes, Addr(0x1000 + at), funclet);
            let _ = ready_to_run_filter(&bytes, Addr(0x1000 + at), Addr(0x1000), rva, funclet);
        }
    }
}
