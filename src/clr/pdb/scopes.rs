//! Local variables: the names of a method's local slots, each with the IL range in which it is valid (portable PDB specification,
//! "LocalScope Table").

use super::{Heap, Source, Table, row};

/// Maximum number of local variables of a method that are read. Real methods have at most a few hundred local variables.
const MOST: usize = 4096;
/// Maximum length of a name in bytes.
const MAX_NAME: u64 = 1024;
/// Attribute of a variable that debuggers hide (`DebuggerHidden`).
const HIDDEN: u16 = 1;

/// A local variable in one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// Index of the slot among the method's locals.
    pub(crate) slot: u32,
    /// Name in the source; `None` for a variable that debuggers hide.
    pub(crate) name: Option<String>,
    /// IL range of the scope: the first offset, and the first offset after the scope.
    pub(crate) scope: (u32, u32),
}

/// Widths in bytes of indices into tables and heaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Widths {
    pub(super) method: u64,
    pub(super) import: u64,
    pub(super) variable: u64,
    pub(super) constant: u64,
    pub(super) string: u64,
}

impl Widths {
    /// Offset in a LocalScope row of the column VariableList.
    fn variables(self) -> u64 {
        self.method.saturating_add(self.import)
    }

    /// Offset in a LocalScope row of the columns StartOffset and Length.
    fn range(self) -> u64 {
        self.variables().saturating_add(self.variable).saturating_add(self.constant)
    }

    /// Size of a LocalScope row: method, imports, first variable, first constant, start, length.
    pub(super) fn scope(self) -> u64 {
        self.range().saturating_add(8)
    }

    /// Size of a LocalVariable row: attributes, slot, name.
    pub(super) fn local(self) -> u64 {
        self.string.saturating_add(4)
    }
}

/// The tables LocalScope and LocalVariable.
#[derive(Clone, Debug)]
pub(super) struct Scopes {
    pub(super) scopes: Table,
    pub(super) variables: Table,
    pub(super) widths: Widths,
    pub(super) strings: Heap,
}

impl Scopes {
    /// The variables of the method in row `method` of MethodDef, by scope. The scopes of a method are consecutive rows, outer scopes first.
    pub(super) fn locals(&self, source: &Source, method: u32) -> Vec<Local> {
        let mut out = Vec::new();
        let mut scope = self.first(source, method);
        while scope <= self.scopes.rows && self.method(source, scope) == Some(method) && out.len() < MOST {
            if self.add(source, scope, &mut out).is_none() {
                break;
            }
            scope = scope.saturating_add(1);
        }
        out
    }

    fn add(&self, source: &Source, scope: u32, out: &mut Vec<Local>) -> Option<()> {
        let range = row(self.scopes, scope)?.checked_add(self.widths.range())?;
        let start = source.u32(range)?;
        let end = start.checked_add(source.u32(range.checked_add(4)?)?)?;
        let first = self.first_variable(source, scope)?;
        // The list ends at the first variable of the next scope, or at the end of the table.
        let limit = self.variables.rows.saturating_add(1);
        let last = if scope < self.scopes.rows { self.first_variable(source, scope.checked_add(1)?)?.min(limit) } else { limit };
        for variable in (first..last).take(MOST.saturating_sub(out.len())) {
            let at = row(self.variables, variable)?;
            let (attributes, slot) = (source.u16(at)?, u32::from(source.u16(at.checked_add(2)?)?));
            let name = number(source, at.checked_add(4)?, self.widths.string)?;
            let name = if attributes & HIDDEN == 0 { Some(self.text(source, name)?) } else { None };
            out.push(Local { slot, name, scope: (start, end) });
        }
        Some(())
    }

    /// The first LocalScope row whose method is `method` or later. Rows are sorted by method.
    fn first(&self, source: &Source, method: u32) -> u32 {
        let (mut low, mut high) = (1u32, self.scopes.rows.saturating_add(1));
        while low < high {
            let middle = low.midpoint(high);
            if self.method(source, middle).is_some_and(|m| m < method) { low = middle.saturating_add(1) } else { high = middle }
        }
        low
    }

    fn method(&self, source: &Source, scope: u32) -> Option<u32> {
        number(source, row(self.scopes, scope)?, self.widths.method)
    }

    fn first_variable(&self, source: &Source, scope: u32) -> Option<u32> {
        number(source, row(self.scopes, scope)?.checked_add(self.widths.variables())?, self.widths.variable)
    }

    fn text(&self, source: &Source, offset: u32) -> Option<String> {
        let room = self.strings.len.checked_sub(u64::from(offset)).filter(|n| *n > 0)?;
        source.text(self.strings.at.checked_add(u64::from(offset))?, room.min(MAX_NAME))
    }
}

/// Reads the number of `width` bytes at `at`.
pub(super) fn number(source: &Source, at: u64, width: u64) -> Option<u32> {
    if width == 2 { source.u16(at).map(u32::from) } else { source.u32(at) }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::{IMPORT_SCOPE, LOCAL_SCOPE, LOCAL_VARIABLE, METHOD_DEF, Pdb};
    use super::*;
    use crate::dump::Bytes;

    /// A scope: method, start, length, variables (attributes, slot, name).
    type Scope<'s> = (u32, u32, u32, &'s [(u16, u16, &'s str)]);

    /// A PDB with these scopes, for an assembly with `methods` methods.
    fn build(methods: u32, scopes: &[Scope<'_>]) -> Vec<u8> {
        let (mut strings, mut variables, mut rows) = (vec![0u8], Vec::new(), Vec::new());
        let mut number = 1u16;
        for (method, start, len, locals) in scopes {
            let method = if methods > 0xffff { method.to_le_bytes().to_vec() } else { (*method as u16).to_le_bytes().to_vec() };
            let range = [start.to_le_bytes(), len.to_le_bytes()].concat();
            rows.extend([method, vec![1, 0], number.to_le_bytes().to_vec(), vec![1, 0], range].concat());
            for (attributes, slot, name) in *locals {
                variables.extend([attributes.to_le_bytes(), slot.to_le_bytes(), (strings.len() as u16).to_le_bytes()].concat());
                strings.extend(name.bytes().chain([0]));
                number += 1;
            }
        }
        let mut tables = vec![0, 0, 0, 0, 2, 0, 0, 1];
        tables.extend((1u64 << LOCAL_SCOPE | 1 << LOCAL_VARIABLE | 1 << IMPORT_SCOPE).to_le_bytes());
        tables.extend([0; 8]);
        tables.extend([scopes.len() as u32, u32::from(number) - 1, 1].map(u32::to_le_bytes).concat());
        tables.extend([rows, variables, vec![0; 4]].concat());
        // The stream contains the identity, the entry point, and the mask and row counts of the assembly's tables. The assembly has MethodDef and
        // one table before MethodDef.
        let mask = 1u64 << 2 | 1 << METHOD_DEF;
        let pdb = [&[7; 20][..], &[0; 4], &mask.to_le_bytes(), &3u32.to_le_bytes(), &methods.to_le_bytes()].concat();
        let mut out = b"BSJB\x01\0\x01\0\0\0\0\0\x0c\0\0\0PDB v1.0\0\0\0\0\0\0\x03\0".to_vec();
        let mut at = (out.len() + 16 + 12 + 20) as u32;
        for (name, len) in [(&b"#Pdb\0\0\0\0"[..], pdb.len()), (b"#~\0\0", tables.len()), (b"#Strings\0\0\0\0", strings.len())] {
            out.extend([at.to_le_bytes(), (len as u32).to_le_bytes()].concat());
            out.extend(name);
            at += len as u32;
        }
        [out, pdb, tables, strings].concat()
    }

    fn locals(bytes: Vec<u8>, method: u32) -> Option<Vec<Local>> {
        let len = bytes.len() as u64;
        Some(Pdb::open(Source::File { bytes: Arc::new(Bytes::Owned(bytes)), offset: 0, len }).ok()?.locals(method))
    }

    fn small(methods: u32) -> Vec<u8> {
        let scopes: [Scope<'_>; 4] = [
            (2, 0, 90, &[(0, 0, "outer"), (1, 1, "hidden")]),
            (2, 10, 20, &[(0, 2, "i")]),
            (2, 40, 20, &[(0, 2, "j")]),
            (5, 0, 7, &[(0, 0, "last")]),
        ];
        build(methods, &scopes)
    }

    #[test]
    fn locals_have_a_slot_and_the_scope_of_their_name() {
        for methods in [9, 70_000] {
            let told = |method| locals(small(methods), method).unwrap();
            let local = |slot, name: &str, scope| Local { slot, name: Some(name.into()), scope };
            let hidden = Local { slot: 1, name: None, scope: (0, 90) };
            assert_eq!(told(2), [local(0, "outer", (0, 90)), hidden, local(2, "i", (10, 30)), local(2, "j", (40, 60))]);
            assert_eq!(told(5), [local(0, "last", (0, 7))]);
            assert!([0, 1, 3, 6].iter().all(|method| told(*method).is_empty()));
        }
    }

    proptest! {
        #[test]
        fn damage_never_panics(flips in prop::collection::vec((0usize..400, any::<u8>()), 1..12), cut in 100usize..400, method in 0u32..9) {
            let mut bytes = small(9);
            for (at, value) in flips {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            bytes.truncate(cut);
            let found = locals(bytes, method).unwrap_or_default();
            prop_assert!(found.len() <= MOST);
        }
    }
}
