//! Fields in Mono: the offset and the type come from `MonoClassField`, the name from the metadata of the image.

use super::resolve::Types;
use super::{Field, Storage};
use crate::base::{Addr, CorElementType, Token, TokenTable};
use crate::clr::method_table::{Category, MethodTableInfo, Mono, MonoField, MonoForm};

/// Maximum number of fields of a type, including inherited ones.
const MAX_FIELDS: usize = 1 << 17;
/// Maximum length of a name in bytes.
const MAX_NAME: u64 = 1024;

impl Types {
    /// The instance fields of a type of Mono, inherited ones first.
    pub(super) fn mono_fields(&self, mono: &Mono, info: &MethodTableInfo) -> Option<Vec<Field>> {
        if info.is_array || info.is_string {
            return Some(Vec::new());
        }
        let mut out = Vec::new();
        // Field offsets of a structure include the object header of its boxed form in Mono. In other runtimes they include one word, so the
        // difference is subtracted.
        let shift = match info.category {
            Category::ValueType => self.names().method_tables().boxed_at().saturating_sub(self.pointer_bytes()),
            _ => 0,
        };
        for class in mono.chain(&self.memory, info.class_or_canonical)? {
            let own = mono.own_fields(&self.memory, class)?;
            if !self.names().afford_steps(crate::base::len64(own.len())) {
                return None;
            }
            let declaring = mono.handle(&self.memory, class);
            let tables = self.names().method_tables();
            let image = tables.read(declaring).ok().and_then(|info| tables.module(&info).ok());
            for field in own {
                out.extend(self.mono_field(mono, (declaring, image), &field, shift));
            }
            if out.len() > MAX_FIELDS {
                return None;
            }
        }
        Some(out)
    }

    /// The static fields that a type of Mono declares, with their addresses as offsets.
    pub(super) fn mono_statics(&self, mono: &Mono, info: &MethodTableInfo) -> Option<Vec<Field>> {
        let (memory, class) = (&self.memory, info.class_or_canonical);
        let Some(start) = mono.statics_at(memory, info.address).filter(|_| info.address != class) else { return Some(Vec::new()) };
        let image = self.names().method_tables().module(info).ok();
        let own = mono.static_fields(memory, class)?;
        let placed = own.into_iter().filter_map(|field| {
            let at = start.plus(field.offset);
            let field = self.mono_field(mono, (info.address, image), &field, 0)?;
            Some(Field { storage: Storage::Static, offset: at.0, ..field })
        });
        Some(placed.collect())
    }

    /// The name of the static field at `offset` of the class with the vtable at `vtable`.
    pub(crate) fn mono_static(&self, vtable: Addr, offset: u64) -> Option<String> {
        let tables = self.names().method_tables();
        let (mono, info) = (tables.mono()?, tables.read(vtable).ok()?);
        let fields = mono.static_fields(&self.memory, info.class_or_canonical)?;
        // The reference may be within a structure, so the field is the last field that begins at or before `offset`.
        let field = fields.iter().filter(|f| f.offset <= offset).max_by_key(|f| f.offset)?;
        let module = self.names().module(tables.module(&info).ok()?);
        module.metadata.as_ref()?.field(field.row).map(|row| row.name)
    }

    fn mono_field(&self, mono: &Mono, (declaring, image): (Addr, Option<Addr>), field: &MonoField, shift: u64) -> Option<Field> {
        let memory = &self.memory;
        let element = mono.field_element(memory, field.ty)?;
        let handle = mono.type_handle(memory, field.ty);
        let method_table = match mono.form(memory, field.ty) {
            Some(MonoForm::Class(_)) if !element.is_reference() => Some(handle),
            _ => None,
        };
        let token = Token::new(TokenTable::FieldDef, field.row).unwrap_or(Token::NIL);
        let by_metadata = || {
            let module = self.names().module(image?);
            Some(module.metadata.as_ref()?.field(field.row)?.name)
        };
        let in_memory = || memory.text(field.name, MAX_NAME).ok().filter(|name| !name.is_empty());
        let name = by_metadata().or_else(|| crate::base::missed::tried(in_memory));
        let type_name = match element {
            CorElementType::ByRef => "System.IntPtr".to_string(),
            _ => self.names().handle_name(handle).name.clone(),
        };
        Some(Field {
            declaring,
            is_named: name.is_some(),
            name: name.unwrap_or_else(|| format!("field_{token}")),
            token,
            storage: Storage::Instance,
            offset: field.offset.checked_sub(shift)?,
            element,
            type_name,
            definition: method_table.and_then(|mt| self.definition(mt)),
            method_table,
        })
    }
}
