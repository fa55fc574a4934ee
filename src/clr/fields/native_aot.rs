//! Fields in NativeAOT programs, which have no field descriptors: where the GC finds references, under the name of their offset.
//!
//! Source: `docs/internals/native-aot.md#fields`.

use super::{Field, Storage};
use crate::base::Addr;
use crate::clr::gcdesc::GcDesc;
use crate::clr::method_table::{MethodTableInfo, MethodTables};
use crate::memory::Memory;

/// `CorElementType` of an object reference.
const REFERENCE: u8 = 0x12;
/// Most references listed of one type.
const MAX_FIELDS: usize = 1 << 12;

/// The instance fields of a type, inherited ones first: those of its base types' references that are known by name, and otherwise by
/// their offset (`+0x10`).
pub(super) fn instance_fields(memory: &Memory, tables: &MethodTables, info: &MethodTableInfo) -> Vec<Field> {
    if info.is_array || info.is_string || info.is_free || !info.contains_pointers {
        return Vec::new();
    }
    let base_size = u64::from(info.base_size);
    let mut offsets = Vec::new();
    GcDesc::read(memory, info.address, base_size).places(base_size, memory.ptr_bytes(), |offset| {
        if offsets.len() < MAX_FIELDS {
            offsets.push(offset);
        }
    });
    let declaring = |offset: u64| declaring(tables, info, offset, memory.ptr_bytes());
    offsets
        .into_iter()
        .map(|offset| Field {
            declaring: declaring(offset),
            name: format!("+{offset:#x}"),
            token: 0,
            storage: Storage::Instance,
            offset,
            element: REFERENCE,
            type_name: "System.Object".into(),
            method_table: None,
            definition: None,
        })
        .collect()
}

/// The oldest base type whose objects are large enough to have the field.
fn declaring(tables: &MethodTables, info: &MethodTableInfo, offset: u64, word: u64) -> Addr {
    let mut found = info.address;
    let mut parent = info.parent;
    for _ in 0..super::resolve::MAX_BASES {
        let Ok(base) = tables.read(parent) else { break };
        // The base size counts the header word, which lies before the object.
        // That of `System.Object` is the least that an object takes; it has no fields.
        if parent.is_null() || base.parent.is_null() || offset >= u64::from(base.base_size).saturating_sub(word) {
            break;
        }
        found = parent;
        parent = base.parent;
    }
    found
}
