//! Exception clauses of a method, which show whether a funclet is a filter, a catch block or a finally block.
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
/// Flags of a clause with a finally or fault block (`COR_ILEXCEPTION_CLAUSE_FINALLY`, `COR_ILEXCEPTION_CLAUSE_FAULT`).
const LEAVING: u32 = 2 | 4;
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
    /// `TryStartPC`.
    start: u64,
    /// `TryEndPC`.
    end: u64,
    /// `HandlerStartPC`.
    handler: u64,
    /// `FilterOffset`, in a union. The union of `EE_ILEXCEPTION_CLAUSE` has a pointer, so it is aligned to eight bytes.
    filter: u64,
}

/// The layout of the clauses of JIT-compiled code, in a 64-bit process.
const EE_ILEXCEPTION_CLAUSE: Layout = Layout { bytes: 32, flags: 0, start: 4, end: 8, handler: 12, filter: 24 };
/// The layout of the clauses in a ReadyToRun image.
const READYTORUN_EXCEPTION_CLAUSE: Layout = Layout { bytes: 24, flags: 0, start: 4, end: 8, handler: 12, filter: 20 };

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

/// The purpose of a funclet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To decide whether the catch block that follows it handles the exception.
    Filter,
    /// To handle the exception.
    Catch,
    /// To leave the protected code, in a finally or fault block.
    Finally,
}

/// The exception clauses of a method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clauses<'b> {
    bytes: &'b CodeBytes,
    layout: Layout,
    first: Addr,
    count: u64,
}

impl<'b> Clauses<'b> {
    /// The clauses of a JIT-compiled method; `None` if it has none. `eh_info` is the pointer in the code header, 0 if the method has no clauses.
    ///
    /// # Errors
    /// Fails if the number of clauses is missing.
    pub(crate) fn jit(bytes: &'b CodeBytes, eh_info: Addr) -> Result<Option<Clauses<'b>>, ClauseError> {
        if eh_info.is_null() {
            return Ok(None);
        }
        let count_at = eh_info.minus(COUNT_BYTES).ok_or(ReadError { address: eh_info, len: COUNT_BYTES })?;
        let (layout, first) = (EE_ILEXCEPTION_CLAUSE, eh_info.plus(EE_ILEXCEPTION_CLAUSES));
        Ok(Some(Clauses { bytes, layout, first, count: bytes.u64(count_at)? }))
    }

    /// The clauses of the ReadyToRun method at `method_rva`; `None` if it has none. `header` is the image's ReadyToRun header, and RVAs are relative
    /// to `base`.
    ///
    /// # Errors
    /// Fails if the tables that lead to the clauses are missing.
    pub(crate) fn ready_to_run(
        bytes: &'b CodeBytes,
        header: Addr,
        base: Addr,
        method_rva: u32,
    ) -> Result<Option<Clauses<'b>>, ClauseError> {
        let Some((table, size)) = ready_to_run_section(bytes, header, EXCEPTION_INFO)? else { return Ok(None) };
        let table = base.plus(u64::from(table));
        let Some((clauses, len)) = clauses_of(bytes, table, u64::from(size) / LOOKUP_ENTRY_BYTES, method_rva)? else { return Ok(None) };
        let layout = READYTORUN_EXCEPTION_CLAUSE;
        let count = u64::from(len).checked_div(layout.bytes).unwrap_or(0);
        Ok(Some(Clauses { bytes, layout, first: base.plus(u64::from(clauses)), count }))
    }

    /// The purpose of the funclet at offset `funclet` from the method's start; `None` if no clause names the funclet.
    ///
    /// # Errors
    /// Fails if a clause is missing, and if there are more than [`MAX_CLAUSES`] clauses.
    pub(crate) fn purpose(&self, funclet: u32) -> Result<Option<Purpose>, ClauseError> {
        let mut handler = None;
        for clause in self.each()? {
            let flags = self.word(clause, self.layout.flags)?;
            if flags & FILTER != 0 && self.word(clause, self.layout.filter)? == funclet {
                return Ok(Some(Purpose::Filter));
            }
            if self.word(clause, self.layout.handler)? == funclet && handler.is_none() {
                handler = Some(if flags & LEAVING == 0 { Purpose::Catch } else { Purpose::Finally });
            }
        }
        Ok(handler)
    }

    /// Whether an exception at offset `at` from the method's start is within a clause that may catch it.
    ///
    /// # Errors
    /// Fails if a clause is missing, and if there are more than [`MAX_CLAUSES`] clauses.
    pub(crate) fn may_catch(&self, at: u32) -> Result<bool, ClauseError> {
        for clause in self.each()? {
            let within = || Ok::<_, ReadError>((self.word(clause, self.layout.start)?..self.word(clause, self.layout.end)?).contains(&at));
            if self.word(clause, self.layout.flags)? & LEAVING == 0 && within()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn word(&self, clause: Addr, offset: u64) -> Result<u32, ReadError> {
        self.bytes.table_u32(clause.plus(offset))
    }

    /// The addresses of the clauses.
    fn each(&self) -> Result<impl Iterator<Item = Addr>, ClauseError> {
        let (first, bytes) = (self.first, self.layout.bytes);
        if self.count > MAX_CLAUSES {
            return Err(ClauseError::Count { address: first, count: self.count });
        }
        Ok((0..self.count).map(move |i| first.element(i, bytes)))
    }
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

    fn of_jit(bytes: &CodeBytes, eh_info: Addr, funclet: u32) -> Result<Option<Purpose>, ClauseError> {
        Clauses::jit(bytes, eh_info)?.map_or(Ok(None), |clauses| clauses.purpose(funclet))
    }

    fn of_image(bytes: &CodeBytes, method: u32, funclet: u32) -> Result<Option<Purpose>, ClauseError> {
        Clauses::ready_to_run(bytes, Addr(0x4000), Addr(0x4000), method)?.map_or(Ok(None), |clauses| clauses.purpose(funclet))
    }

    #[test]
    fn clauses_of_jitted_code_distinguish_filters_from_handlers() {
        let bytes = jit(3);
        let ask = |funclet| of_jit(&bytes, Addr(0x1008), funclet);
        assert_eq!(ask(200), Ok(Some(Purpose::Filter)));
        assert_eq!((ask(100), ask(300)), (Ok(Some(Purpose::Catch)), Ok(Some(Purpose::Catch))));
        assert_eq!(ask(400), Ok(Some(Purpose::Finally)));
        assert_eq!(ask(0x0200_0001), Ok(None), "a class token is not an offset");
        assert_eq!(of_jit(&bytes, Addr::NULL, 200), Ok(None));
        assert!(matches!(of_jit(&bytes, Addr(4), 200), Err(ClauseError::Missing(_))));
        assert!(matches!(of_jit(&jit(4), Addr(0x1008), 500), Err(ClauseError::Missing(e)) if e.address == Addr(0x1070)));
        assert_eq!(of_jit(&jit(4), Addr(0x1008), 200), Ok(Some(Purpose::Filter)), "later clauses are not needed");
        let many = u64::from(u32::MAX);
        assert_eq!(of_jit(&jit(u32::MAX), Addr(0x1008), 200), Err(ClauseError::Count { address: Addr(0x1010), count: many }));
    }

    #[test]
    fn only_catch_blocks_and_filters_may_catch() {
        // Finally around 10 to 20, a catch block around 20 to 30, a filter around 40 to 50.
        let clauses = [[2, 10, 20, 100, 110, 0, 0, 0], [0, 20, 30, 120, 130, 0, 0x0200_0001, 0], [1, 40, 50, 140, 150, 0, 160, 0]];
        let bytes = code_bytes(words(&[&[3, 0, 0x41, 0][..], clauses.as_flattened()].concat()), 0x1000);
        let clauses = Clauses::jit(&bytes, Addr(0x1008)).unwrap().unwrap();
        let at = |offset| clauses.may_catch(offset).unwrap();
        assert!(!at(10) && !at(19) && at(20) && at(29) && !at(30) && !at(39) && at(40) && !at(50));
        assert!(Clauses::jit(&jit(4), Addr(0x1008)).unwrap().unwrap().may_catch(5).is_err(), "a missing clause may catch it");
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
            let ask = |method: u32, funclet| of_image(&bytes, method, funclet);
            for i in 0..methods {
                assert_eq!(ask(1000 + 10 * i, i), Ok(Some(Purpose::Filter)));
                assert_eq!(ask(1000 + 10 * i, 7 * i + 1), Ok(Some(Purpose::Catch)));
                assert_eq!(ask(1000 + 10 * i, 50_000), Ok(None));
                assert_eq!(ask(1001 + 10 * i, i), Ok(None));
            }
            assert_eq!(ask(u32::MAX, 0), Ok(None), "the last pair is not a method");
        }
        let none = code_bytes(words(&[0x0052_5452, 0x0001_0010, 0, 1, 100, 9, 9]), 0x4000);
        assert_eq!(of_image(&none, 1000, 0), Ok(None));
        let cut = code_bytes(words(&[0x0052_5452, 0x0001_0010, 0, 2, 100, 9, 9]), 0x4000);
        assert!(of_image(&cut, 1000, 0).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_terminate(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0u64..300, rva: u32, funclet: u32) {
            let bytes = code_bytes(bytes, 0x1000);
            let _ = of_jit(&bytes, Addr(0x1000 + at), funclet);
            for clauses in [Clauses::jit(&bytes, Addr(0x1000 + at)), Clauses::ready_to_run(&bytes, Addr(0x1000 + at), Addr(0x1000), rva)] {
                let _ = clauses.map(|clauses| clauses.map(|clauses| (clauses.purpose(funclet), clauses.may_catch(funclet))));
            }
        }
    }
}
