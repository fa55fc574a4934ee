//! Fields of .NET's own types in NativeAOT programs, from a bundled table, for programs without debug information.
//!
//! The compiler may choose another layout, so the fields of a type are a guess until [`fits`] confirms them with the type's method table.

use std::sync::OnceLock;

use crate::base::hash::Map;
use crate::base::{CorElementType, PtrSize};
use crate::contract::overlay::{self, Overlay};

/// Type names that the table uses for every reference, and for a structure whose name the table does not have.
const OBJECT: &str = "object";
const NAMELESS: &str = "struct";
/// Type names that the table uses for primitives and pointers.
const PRIMITIVES: [(&str, CorElementType); 15] = [
    ("bool", CorElementType::Boolean),
    ("char", CorElementType::Char),
    ("int8", CorElementType::I1),
    ("uint8", CorElementType::U1),
    ("int16", CorElementType::I2),
    ("uint16", CorElementType::U2),
    ("int32", CorElementType::I4),
    ("uint32", CorElementType::U4),
    ("int64", CorElementType::I8),
    ("uint64", CorElementType::U8),
    ("float", CorElementType::R4),
    ("double", CorElementType::R8),
    ("pointer", CorElementType::Ptr),
    ("nint", CorElementType::I),
    ("nuint", CorElementType::U),
];

/// An instance field of a library type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryField {
    /// Name as in metadata.
    pub name: &'static str,
    /// Offset in bytes: from the method table in objects, from the start in structures.
    pub offset: u64,
    /// Element type; for an enum, the element type of its values.
    pub element: CorElementType,
    /// Full name of the structure type as in metadata; `None` for other fields, or if the table does not have the name.
    pub structure: Option<&'static str>,
    /// Minimum size of the field in bytes.
    size: u64,
}

impl LibraryField {
    /// This field of a structure, with its offset in the boxed form.
    pub fn boxed(&self, pointer_bytes: u64) -> LibraryField {
        LibraryField { offset: self.offset.saturating_add(pointer_bytes), ..self.clone() }
    }
}

type Fields = Map<&'static str, Vec<LibraryField>>;

/// The declared and inherited instance fields of the type with this full name (as in metadata), by offset. For a generic type, only fields
/// with the same offset in all instances are listed. `release` is the .NET release that the program was built with, such as `9.0`. `None`
/// if no table has the type for this pointer size and release.
pub fn library_fields(name: &str, ptr: PtrSize, release: &str) -> Option<&'static [LibraryField]> {
    static FIELDS: OnceLock<Vec<(u32, Fields)>> = OnceLock::new();
    let of_overlay = |o: &'static Overlay| {
        let types = o.raw.types.iter().map(|(name, ty)| (name.as_str(), ty.fields.iter().filter_map(|f| field(f, ptr.bytes())).collect()));
        Some((major(o.section.runtime.as_deref()?)?, types.collect()))
    };
    // The tables are for 64-bit targets only.
    overlay::aot_library(ptr).next()?;
    let tables = FIELDS.get_or_init(|| overlay::aot_library(ptr).filter_map(of_overlay).collect());
    let release = major(release)?;
    let between = |n: u32| (WHOLE.min(release)..=WHOLE.max(release)).contains(&n);
    // The table of a release has only the types that changed. Of the tables between `release` and the release of the complete table, the table
    // nearest to `release` that has the type is used.
    let of_release = tables.iter().filter(|(n, fields)| between(*n) && fields.contains_key(name));
    of_release.min_by_key(|(n, _)| n.abs_diff(release)).and_then(|(_, fields)| fields.get(name)).map(Vec::as_slice)
}

/// The release whose table is complete. The tables of other releases have only the types that differ.
const WHOLE: u32 = 9;

fn major(release: &str) -> Option<u32> {
    release.split('.').next()?.parse().ok()
}

fn field((name, offset, ty): &'static (String, u64, Option<String>), word: u64) -> Option<LibraryField> {
    let (element, size, structure) = match ty.as_deref()? {
        OBJECT => (CorElementType::Class, word, None),
        NAMELESS => (CorElementType::ValueType, 1, None),
        name => match PRIMITIVES.iter().find(|p| p.0 == name) {
            Some((_, element)) => (*element, element.primitive_bytes(word)?, None),
            None => (CorElementType::ValueType, 1, Some(name)),
        },
    };
    Some(LibraryField { name, offset: *offset, element, structure, size })
}

/// Whether objects with this base size in bytes, and with GC references at the ascending offsets `references`, can have `fields`. All
/// fields must be within the object, and each reference field must be a GC reference. Further GC references may belong to structures, or to
/// fields whose type depends on the generic instance. If a GC reference overlaps a primitive field, the table does not fit.
pub fn fits(fields: &[LibraryField], base_size: u64, references: &[u64], word: u64) -> bool {
    // The base size includes the object header, which precedes the method table.
    let Some(end) = base_size.checked_sub(word) else { return false };
    fields.iter().all(|field| {
        let last = field.offset.saturating_add(field.size);
        let is_reference = || references.binary_search(&field.offset).is_ok();
        let meets = || {
            let next = references.partition_point(|at| at.saturating_add(word) <= field.offset);
            references.get(next).is_some_and(|at| *at < last)
        };
        field.offset >= word
            && last <= end
            && match field.element {
                CorElementType::Class => is_reference(),
                CorElementType::ValueType => true,
                _ => !meets(),
            }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_fields_that_readers_ask_for() {
        let of_release = |name, release| library_fields(name, PtrSize::Eight, release).unwrap();
        let fields = |name| of_release(name, "9.0");
        let at = |fields: &[LibraryField], field: &str| fields.iter().find(|f| f.name == field).map(|f| (f.offset, f.element));
        let place = |name, field: &str| at(fields(name), field);
        assert_eq!(place("System.Threading.Tasks.Task", "m_stateFlags"), Some((52, CorElementType::I4)));
        assert_eq!(place("System.Threading.Lock", "_owningThreadId"), Some((16, CorElementType::U4)));
        assert_eq!(place("System.Collections.Generic.List`1", "_items"), Some((8, CorElementType::Class)));
        assert_eq!(place("System.Threading.WaitSubsystem+ThreadWaitInfo", "_waitSignalState"), Some((48, CorElementType::U1)));
        assert!(library_fields("System.Threading.Tasks.Task", PtrSize::Four, "9.0").is_none());
        assert!(library_fields("Lab.Node", PtrSize::Eight, "9.0").is_none());
        // The table of a release has the changes of that release, and the differences before it.
        let signal = |release| at(of_release("System.Threading.WaitSubsystem+ThreadWaitInfo", release), "_waitSignalState");
        assert_eq!(["8.0", "9.0", "10.0", "11.0", "12.0"].map(|r| signal(r).map(|s| s.0)), [52, 48, 48, 56, 56].map(Some));
        let grow = |release| at(of_release("System.Collections.Concurrent.ConcurrentDictionary`2", release), "_growLockArray");
        assert_eq!(["9.0", "10.0", "11.0"].map(|r| grow(r).map(|s| s.0)), [20, 24, 24].map(Some));
        let event = |release, field| at(of_release("System.Threading.Lock", release), field).is_some();
        assert!(event("8.0", "_lazyEvent") && event("10.0", "_waitEvent") && event("11.0", "_waitEventOrCondition"));
        assert!(!event("8.0", "_waitEvent") && !event("11.0", "_waitEvent"));
        // Every type name in the table is known, and no two fields of a type overlap.
        for overlay in overlay::aot_library(PtrSize::Eight) {
            for (name, ty) in &overlay.raw.types {
                let known = of_release(name, overlay.section.runtime.as_deref().unwrap());
                assert_eq!(known.len(), ty.fields.len(), "{name}");
                let mut places: Vec<u64> = known.iter().map(|f| f.offset).collect();
                places.dedup();
                assert!(places.is_sorted() && places.len() == known.len(), "{name}: {known:?}");
            }
        }
    }

    #[test]
    fn only_method_tables_that_agree_confirm_the_table() {
        let fields = library_fields("System.Threading.Tasks.Task", PtrSize::Eight, "9.0").unwrap();
        // Object header, method table, five references, and two numbers.
        let references = [8, 16, 24, 32, 40];
        assert!(fits(fields, 64, &references, 8));
        // A derived type is larger and has more references.
        assert!(fits(fields, 80, &[8, 16, 24, 32, 40, 56], 8));
        // The table does not fit if the object is too small, if a reference field is not a GC reference, or if a GC reference overlaps a number.
        assert!(!fits(fields, 56, &references, 8));
        assert!(!fits(fields, 64, &references[..4], 8));
        assert!(!fits(fields, 64, &[8, 16, 24, 32, 40, 48], 8));
        assert!(!fits(fields, 0, &references, 8));
    }
}
