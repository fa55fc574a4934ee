//! The layout of a type.

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;

use crate::analysis::{LayoutField, TypeBrief, TypeCategory, TypeLayout, TypeRef};
use crate::base::Addr;
use crate::clr::fields::{Field, Storage, Types};
use crate::clr::method_table::{Category, MethodTableInfo};
use crate::clr::type_names::TypeNames;

/// Maximum base types listed.
const MAX_BASES: usize = 256;
/// Maximum references listed.
const MAX_REFERENCES: usize = 1 << 16;
/// Maximum nesting of structures.
const MAX_DEPTH: u32 = 16;

/// Name, module and token of a type.
pub(in crate::analysis) fn brief(types: &Types, mt: Addr) -> TypeBrief {
    let name = types.names().name(mt);
    TypeBrief { name: name.to_name(), method_table: mt, module: name.module.clone(), token: name.token }
}

/// Returns the layout of the type at `mt`, without its statics; `None` if it cannot be read.
pub(in crate::analysis) fn layout(types: &Types, mt: Addr) -> Option<TypeLayout> {
    let tables = types.names().method_tables();
    let info = tables.read(mt).ok()?;
    tables.check_base_size(&info);
    let brief = brief(types, mt);
    let fields = types.instance_fields(mt);
    let field = |f: &Field| LayoutField {
        offset: f.offset,
        name: f.name.clone(),
        type_name: f.type_name.clone(),
        declaring_type: types.names().name(f.declaring).name.clone(),
        token: f.token,
        element_type: f.element,
        method_table: f.method_table,
    };
    let mut references = Vec::new();
    add_references(types, fields.as_deref().map_or(&[], Vec::as_slice), 0, 0, &mut references);
    Some(TypeLayout {
        name: brief.name,
        method_table: mt,
        canonical: tables.canonical(mt).ok(),
        class: tables.class(mt).ok(),
        module_address: tables.module(&info).ok(),
        module: brief.module,
        token: brief.token,
        category: category(types, &info),
        generic: info.generics,
        bases: bases(types, &info),
        parent: (!info.parent.is_null()).then(|| type_ref(types, info.parent)),
        arguments: arguments(types, &info),
        interfaces: tables.interfaces(mt),
        base_size: info.base_size,
        component_size: info.component_size,
        finalizer: info.has_finalizer,
        collectible: info.is_collectible,
        contains_pointers: info.contains_pointers,
        fields: fields.as_ref().map(|list| list.iter().map(field).collect()),
        statics: Vec::new(),
        methods: None,
        references,
    })
}

fn category(types: &Types, info: &MethodTableInfo) -> TypeCategory {
    let tables = types.names().method_tables();
    match info.category {
        Category::Interface => TypeCategory::Interface,
        Category::SzArray => TypeCategory::SzArray,
        Category::Array => TypeCategory::Array,
        Category::ValueType if tables.is_enum(info) => TypeCategory::Enum,
        Category::ValueType if tables.is_primitive(info) => TypeCategory::Primitive,
        Category::ValueType if tables.is_nullable(info) => TypeCategory::Nullable,
        Category::ValueType => TypeCategory::ValueType,
        Category::Class => TypeCategory::Class,
    }
}

/// Returns the type of a type handle.
fn type_ref(types: &Types, handle: Addr) -> TypeRef {
    TypeRef { name: types.names().handle_name(handle).to_name(), method_table: TypeNames::method_table_of(handle) }
}

/// Returns the type arguments of a generic instance, or the element type of an array.
fn arguments(types: &Types, info: &MethodTableInfo) -> Vec<TypeRef> {
    let handles = if info.is_array {
        types.names().method_tables().element_type(info.address).ok().into_iter().collect()
    } else {
        types.names().arguments(info).unwrap_or_default()
    };
    handles.into_iter().map(|handle| type_ref(types, handle)).collect()
}

fn bases(types: &Types, info: &MethodTableInfo) -> Vec<String> {
    let tables = types.names().method_tables();
    let mut out = Vec::new();
    let mut at = info.parent;
    while !at.is_null() && out.len() < MAX_BASES && tables.is_valid(at) == Ok(true) {
        out.push(types.names().name(at).name.clone());
        let Ok(info) = tables.read(at) else { break };
        at = info.parent;
    }
    out
}

/// Adds the offsets of references, including references in nested structures. `before` is added to the offsets of the fields in `list`.
fn add_references(types: &Types, list: &[Field], before: u64, depth: u32, out: &mut Vec<u64>) {
    for f in list.iter().filter(|f| f.storage == Storage::Instance) {
        let offset = before.saturating_add(f.offset);
        if out.len() >= MAX_REFERENCES || depth > MAX_DEPTH {
            return;
        }
        if f.is_reference() {
            out.push(offset);
        } else if let Some(inner) = f.method_table.filter(|_| f.is_structure()).and_then(|mt| types.instance_fields(mt)) {
            // Field offsets of a structure are relative to its box.
            let Some(start) = offset.checked_sub(types.pointer_bytes()) else { continue };
            add_references(types, &inner, start, depth.saturating_add(1), out);
        }
    }
}
