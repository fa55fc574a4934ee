//! Fields in NativeAOT programs, which have no field descriptors.
//!
//! Fields have names if debug information is available. They also have names if the type is in gcdump's table of library types, and the references
//! in that table agree with the GCDesc of the type. All other references are named by their offset: `+0x10`.
//!
//! Source: `docs/internals/native-aot.md#fields`.

use super::resolve::MAX_BASES;
use super::{Definition, Field, Storage, Types};
use crate::base::{Addr, CorElementType, Token};
use crate::clr::aot::{DebugField, Definition as Compiled, FieldKind, LibraryField, Program, StaticAt, fits, library_fields};
use crate::clr::gcdesc::GcDesc;
use crate::clr::method_table::{Category, MethodTableInfo};

/// Size of the part of an object whose references are listed, in bytes.
const LISTED: u64 = 1 << 15;
/// Declared type of references whose type is unknown.
const OBJECT: &str = "System.Object";

impl Types {
    /// The definition of the type with this full name in the module with this simple name, both as in metadata.
    pub(crate) fn definition_named(&self, module: &str, name: &str) -> Option<Definition> {
        if let Some(program) = self.names().native_aot() {
            return program.blobs()?.method_table_of(module, name).map(Definition::compiled);
        }
        let module = self.module_named(module)?;
        Some(Definition { module, rid: self.type_named(module, name)? })
    }

    /// The method table of the generic definition of an instance; for any other type, its own method table.
    pub(super) fn generic_definition(&self, info: &MethodTableInfo) -> Addr {
        let instance = self.names().method_tables().instance(info);
        instance.and_then(Result::ok).map_or(info.address, |(definition, _)| definition)
    }

    /// The definition of a type in the compiler-generated tables of a NativeAOT program.
    pub(super) fn compiled(&self, mt: Addr) -> Option<&Compiled> {
        let blobs = self.names().native_aot()?.blobs()?;
        blobs.definition(self.generic_definition(&self.names().method_tables().read(mt).ok()?))
    }

    /// The instance fields of a type, inherited ones first.
    pub(super) fn compiled_fields(&self, program: &Program, info: &MethodTableInfo) -> Vec<Field> {
        if info.is_array || info.is_string || info.is_free {
            return Vec::new();
        }
        let debugged = program.debugging().fields_of(info.address, self.pointer_bytes());
        let mut fields: Vec<Field> = match debugged {
            // The method table pointer is not a field.
            Some(list) => {
                let own = list.into_iter().filter(|f| f.offset >= self.pointer_bytes());
                own.map(|f| self.of_debug(program, info, f)).collect()
            }
            None => self.of_library(program, info).unwrap_or_default(),
        };
        fields.sort_by_key(|f| f.offset);
        let references = GcDesc::offsets(&self.memory, info, LISTED);
        let known = fields.len();
        for offset in references {
            // Offsets where a field starts and offsets inside a structure are skipped.
            let before = fields.get(..known).unwrap_or_default().iter().rfind(|f| f.offset <= offset);
            if !before.is_some_and(|f| f.offset == offset || f.is_structure()) {
                fields.push(self.by_offset(info, offset));
            }
        }
        fields.sort_by_key(|f| f.offset);
        fields
    }

    /// Whether a type may have instance fields that only unavailable debug information names. Arrays have no fields.
    pub(super) fn lacks_compiled_fields(&self, program: &Program, mt: Addr) -> bool {
        let info = self.names().method_tables().read(mt);
        info.is_ok_and(|info| !info.is_array && !info.is_free) && program.debugging().fields_of(mt, self.pointer_bytes()).is_none()
    }

    /// The static fields of a type, with their addresses as offsets.
    pub(super) fn compiled_statics(&self, program: &Program, info: &MethodTableInfo) -> Option<Vec<Field>> {
        let debugging = program.debugging();
        let symbol = debugging.symbols.as_ref()?.type_at(info.address)?;
        let list = debugging.types.as_ref()?.statics_of(symbol.name)?;
        let placed = list.into_iter().filter_map(|field| {
            let at = match field.at? {
                StaticAt::Address(at) => at,
                StaticAt::InBlock { slot, .. } if !program.is_current(slot) => slot,
                StaticAt::InBlock { slot, offset } => program.blobs()?.block(slot)?.plus(offset),
            };
            let (element, type_name, method_table) = self.of_kind(program, &field.kind);
            Some(Field {
                declaring: info.address,
                name: field.name,
                is_named: true,
                token: Token::NIL,
                storage: Storage::Static,
                offset: at.0,
                element,
                type_name,
                method_table,
                definition: method_table.map(Definition::compiled),
            })
        });
        Some(placed.collect())
    }

    fn by_offset(&self, info: &MethodTableInfo, offset: u64) -> Field {
        Field {
            declaring: self.declaring(info, offset),
            name: format!("+{offset:#x}"),
            is_named: false,
            token: Token::NIL,
            storage: Storage::Instance,
            offset,
            element: CorElementType::Class,
            type_name: OBJECT.into(),
            method_table: None,
            definition: None,
        }
    }

    fn of_debug(&self, program: &Program, info: &MethodTableInfo, field: DebugField) -> Field {
        let (element, type_name, method_table) = self.of_kind(program, &field.kind);
        Field {
            declaring: program.type_of(&field.declared_by).unwrap_or(info.address),
            name: field.name,
            is_named: true,
            token: Token::NIL,
            storage: Storage::Instance,
            offset: field.offset,
            element,
            type_name,
            method_table,
            definition: method_table.map(Definition::compiled),
        }
    }

    /// Element type, type name and, for value types, method table of a field of this kind.
    fn of_kind(&self, program: &Program, kind: &FieldKind) -> (CorElementType, String, Option<Addr>) {
        let named = |mangled: &str| {
            let table = program.type_of(mangled);
            (table.map_or_else(|| mangled.to_string(), |mt| self.names().name(mt).name.clone()), table)
        };
        match kind {
            FieldKind::Primitive(element) => (*element, element.type_name().unwrap_or("?").into(), None),
            FieldKind::Enum(mangled, element) => {
                let (name, table) = named(mangled);
                (*element, name, table)
            }
            FieldKind::Structure(mangled) => {
                let (name, table) = named(mangled);
                (CorElementType::ValueType, name, table)
            }
            FieldKind::Reference(mangled) => {
                // The declared type may have no method table, for example if the type has no instances. The mangled name of such a type is not shown.
                let (name, table) = named(mangled);
                (CorElementType::Class, if table.is_some() { name } else { OBJECT.into() }, None)
            }
            FieldKind::Pointer => (CorElementType::Ptr, "System.IntPtr".into(), None),
        }
    }

    /// The fields from the nearest entry in the library table: the entry of the type or of the nearest base type that has one. `None` if
    /// the entry does not fit the GCDesc.
    fn of_library(&self, program: &Program, info: &MethodTableInfo) -> Option<Vec<Field>> {
        let release = program.release()?;
        let tables = self.names().method_tables();
        let word = self.pointer_bytes();
        let mut at = *info;
        for _ in 0..MAX_BASES {
            let name = self.compiled(at.address).map(|d| d.name.as_str());
            let fields = name.and_then(|name| library_fields(name, self.memory.shape().ptr, release));
            // In the table, offsets in a structure are relative to its start. The GC's offsets are relative to the method table of the
            // boxed form.
            let of_box = at.category == Category::ValueType;
            if let Some(fields) = fields {
                let fields: Vec<LibraryField> = fields.iter().map(|f| if of_box { f.boxed(word) } else { f.clone() }).collect();
                return fits(&fields, u64::from(at.base_size), &GcDesc::offsets(&self.memory, &at, LISTED), word)
                    .then(|| fields.iter().map(|f| self.of_table(&at, f)).collect());
            }
            at = tables.read(at.parent).ok().filter(|_| !at.parent.is_null())?;
        }
        None
    }

    fn of_table(&self, info: &MethodTableInfo, field: &LibraryField) -> Field {
        let structure = field.structure.and_then(|name| self.definition_named(super::CORE, name)).and_then(|d| self.loaded(d));
        let type_name = match (field.element, field.structure) {
            (_, Some(name)) => name.to_string(),
            (CorElementType::Class, _) => OBJECT.into(),
            (element, _) => element.type_name().unwrap_or("?").into(),
        };
        Field {
            declaring: self.declaring(info, field.offset),
            name: field.name.into(),
            is_named: true,
            token: Token::NIL,
            storage: Storage::Instance,
            offset: field.offset,
            element: field.element,
            type_name,
            method_table: structure,
            definition: structure.map(Definition::compiled),
        }
    }

    /// The topmost base type whose objects are large enough to have a field at `offset`.
    fn declaring(&self, info: &MethodTableInfo, offset: u64) -> Addr {
        let tables = self.names().method_tables();
        let (mut found, mut parent) = (info.address, info.parent);
        for _ in 0..MAX_BASES {
            if parent.is_null() {
                break;
            }
            let Ok(base) = tables.read(parent) else { break };
            // The base size includes the header word, which is before the object. The base size of `System.Object`, which has no fields, is
            // the minimum size of an object.
            if base.parent.is_null() || offset >= u64::from(base.base_size).saturating_sub(self.pointer_bytes()) {
                break;
            }
            found = parent;
            parent = base.parent;
        }
        found
    }
}
