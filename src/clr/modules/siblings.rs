//! Source names that several compiler-generated members of a type share: state machines of overloads, local functions of equal names.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::module::{BYTES_OF_AN_ENTRY, Module};
use crate::base::hash::{Map, Set};
use crate::base::len64;
use crate::base::missed::Kept;
use crate::clr::generated::{is_closure, shared_part};
use crate::clr::metadata::Metadata;

/// Maximum number of enclosing types of a nested type.
const MAX_NESTING: usize = 64;
/// Number of bytes of a name that are read in a step.
const BYTES_OF_A_STEP: u64 = 64;

impl Module {
    /// Whether the state machine in row `rid` of TypeDef shares its source name with another state machine.
    pub(crate) fn machine_shares_name(&self, rid: u32) -> bool {
        let Some(metadata) = self.metadata.as_ref() else { return false };
        let Some((outer, def)) = metadata.enclosing(rid).zip(metadata.type_def(rid)) else { return false };
        self.shares_name(metadata, outer, &def.name)
    }

    /// Whether the local function in row `rid` of MethodDef shares its source name with another local function. The type in row `of` declares it.
    pub(crate) fn function_shares_name(&self, of: u32, rid: u32) -> bool {
        let Some(metadata) = self.metadata.as_ref() else { return false };
        metadata.method_name(rid).is_some_and(|name| self.shares_name(metadata, of, &name))
    }

    /// Whether other compiler-generated members have the same source name as the member `name`. The type in row `rid` declares this member. Also
    /// true if the budget does not suffice to find out.
    fn shares_name(&self, metadata: &Metadata, rid: u32, name: &str) -> bool {
        let Some(part) = shared_part(name) else { return false };
        let mut of = rid;
        for _ in 0..MAX_NESTING {
            match metadata.enclosing(of).zip(metadata.type_def(of)) {
                Some((outer, def)) if is_closure(&def.name) => of = outer,
                _ => break,
            }
        }
        let known = self.found().siblings.known.lock().unwrap_or_else(PoisonError::into_inner).get(&of).cloned();
        let shared = known.unwrap_or_else(|| {
            let shared = Kept::of(|| Arc::new(self.shared_in(metadata, of).unwrap_or_default()));
            self.found().siblings.known.lock().unwrap_or_else(PoisonError::into_inner).entry(of).or_insert(shared).clone()
        });
        shared.get().contains(part) || self.is_cut()
    }

    /// The parts of names that several state machines or local functions of the type in row `rid` share.
    fn shared_in(&self, metadata: &Metadata, rid: u32) -> Option<Set<String>> {
        let nested = self.found().siblings.nested.get_or_init(|| Kept::of(|| self.nested_types(metadata))).get();
        shared_in(metadata, nested, rid, |name| self.afford_name(name))
    }

    /// Records that the budget was exceeded.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// The nested types of each type.
    fn nested_types(&self, metadata: &Metadata) -> Map<u32, Vec<u32>> {
        let mut out: Map<u32, Vec<u32>> = Map::default();
        for (rid, outer) in metadata.nested_types() {
            if !(self.budget.steps(1) && self.budget.memory(BYTES_OF_AN_ENTRY)) {
                self.cut();
                break;
            }
            out.entry(outer).or_default().push(rid);
        }
        out
    }

    fn afford_name(&self, name: &str) -> Option<()> {
        let bytes = len64(name.len());
        let paid =
            self.budget.steps((bytes / BYTES_OF_A_STEP).saturating_add(1)) && (shared_part(name).is_none() || self.budget.memory(bytes));
        if !paid {
            self.cut();
        }
        paid.then_some(())
    }
}

/// The parts of names that several state machines or local functions of the type in row `rid` share. `None` if a name cannot be read, or
/// `afford` refuses it.
fn shared_in(metadata: &Metadata, nested: &Map<u32, Vec<u32>>, rid: u32, afford: impl Fn(&str) -> Option<()>) -> Option<Set<String>> {
    let (mut seen, mut shared) = (Set::default(), Set::default());
    let mut add = |name: &str| {
        if let Some(part) = shared_part(name)
            && !seen.insert(part.to_string())
        {
            shared.insert(part.to_string());
        }
    };
    // Closure classes contain local functions, and may be nested in closure classes.
    let (mut open, mut visited) = (vec![rid], Set::default());
    while let Some(of) = open.pop() {
        if !visited.insert(of) {
            continue;
        }
        for rid in nested.get(&of).into_iter().flatten() {
            let name = metadata.type_def(*rid)?.name;
            afford(&name)?;
            if is_closure(&name) {
                open.push(*rid);
            } else if is_of_method(&name) {
                add(&name);
            }
        }
        for method in metadata.methods_of(of) {
            let name = metadata.method_name(method)?;
            afford(&name)?;
            add(&name);
        }
    }
    Some(shared)
}

/// Whether `name` may be the state machine of a method. State machines of local functions need not be counted, because the local functions
/// themselves are counted.
fn is_of_method(name: &str) -> bool {
    name.starts_with('<') && !name.starts_with("<<")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clr::metadata::Source;
    use crate::dump::Bytes;

    /// Metadata with these types, each with its name, row of the enclosing type, and methods.
    fn metadata(types: &[(&str, Option<u16>, &[&str])]) -> Metadata {
        let mut strings = vec![0u8];
        let mut string = |text: &str| {
            let at = u16::try_from(strings.len()).unwrap();
            strings.extend(text.bytes().chain([0]));
            at.to_le_bytes()
        };
        let (mut defs, mut methods, mut nested, mut count) = (Vec::new(), Vec::new(), Vec::new(), 0u16);
        for ((name, outer, own), rid) in types.iter().zip(1u16..) {
            defs.extend([2, 0, 0, 0].into_iter().chain(string(name)).chain([0, 0, 0, 0, 1, 0]).chain((count + 1).to_le_bytes()));
            for method in *own {
                methods.extend([0; 8].into_iter().chain(string(method)).chain([0, 0, 1, 0]));
                count += 1;
            }
            nested.extend(outer.iter().flat_map(|outer| rid.to_le_bytes().into_iter().chain(outer.to_le_bytes())));
        }
        let rows = [types.len(), usize::from(count), nested.len() / 4].map(|n| u32::try_from(n).unwrap());
        let mut tables = vec![0, 0, 0, 0, 2, 0, 0, 1];
        tables.extend((1u64 << 0x02 | 1 << 0x06 | 1 << 0x29).to_le_bytes().into_iter().chain((1u64 << 0x29).to_le_bytes()));
        tables.extend(rows.into_iter().flat_map(u32::to_le_bytes));
        tables.extend(defs.into_iter().chain(methods).chain(nested));
        let mut blob = b"BSJB\x01\0\x01\0\0\0\0\0\x04\0\0\0v4\0\0\0\0\x02\0".to_vec();
        let mut at = u32::try_from(blob.len() + 12 + 20).unwrap();
        for (name, len) in [(&b"#~\0\0"[..], tables.len()), (b"#Strings\0\0\0\0", strings.len())] {
            let len = u32::try_from(len).unwrap();
            blob.extend(at.to_le_bytes().into_iter().chain(len.to_le_bytes()).chain(name.iter().copied()));
            at += len;
        }
        blob.extend(tables.into_iter().chain(strings));
        let len = u64::try_from(blob.len()).unwrap();
        Metadata::open(Source::File { bytes: Arc::new(Bytes::Owned(blob)), offset: 0, len }).unwrap()
    }

    #[test]
    fn overloads_and_equal_local_functions_share_their_names() {
        let metadata = metadata(&[
            ("Service", None, &["Fetch", "Fetch", "<Go>g__Local|3_0", "<Go>g__Other|3_1", "<Go>b__3_2"]),
            ("<Fetch>d__1", Some(1), &["MoveNext"]),
            ("<Fetch>d__2`1", Some(1), &["MoveNext"]),
            ("<Go>d__3", Some(1), &["MoveNext"]),
            ("<>c__DisplayClass4_0", Some(1), &["<Go>g__Local|1", "<Run>b__0"]),
            ("<<Go>g__Other|3_1>d", Some(1), &["MoveNext"]),
            ("Nested", Some(1), &["<Go>g__Other|0_0"]),
            // A cycle, which occurs only in corrupt data.
            ("<>c", Some(8), &[]),
        ]);
        let mut nested: Map<u32, Vec<u32>> = Map::default();
        metadata.nested_types().for_each(|(rid, outer)| nested.entry(outer).or_default().push(rid));
        let shared = |rid: u32| {
            let mut all: Vec<String> = shared_in(&metadata, &nested, rid, |_| Some(())).unwrap().into_iter().collect();
            all.sort();
            all
        };
        assert_eq!(shared(1), ["<Fetch>d", "<Go>g__Local"]);
        assert_eq!((shared(7), shared(8)), (vec![], vec![]));
        assert_eq!(shared_in(&metadata, &nested, 1, |_| None), None);
    }
}
