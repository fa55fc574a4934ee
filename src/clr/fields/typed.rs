//! Fields and parameters, with the names of their types.

use super::definition::Definition;
use super::list::Field;
use super::names::SignatureNames;
use super::resolve::{Context, Types};
use super::{FieldDesc, Storage};
use crate::base::{Addr, CorElementType};
use crate::clr::metadata::signature::TypeSig;
use crate::clr::method_table::MethodTableInfo;
use crate::clr::methods::Parameters;
use crate::clr::render::TYPE_DESC;

/// The type of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    /// Name of the type.
    pub(crate) name: String,
    /// Element type; `None` if it cannot be determined.
    pub(crate) element: Option<CorElementType>,
    /// Method table, for value types.
    pub(crate) method_table: Option<Addr>,
    /// Definition, for value types.
    pub(crate) definition: Option<Definition>,
}

impl Typed {
    /// A nameless type that is completely determined by its element type.
    fn plain(element: CorElementType) -> Typed {
        Typed { name: String::new(), element: Some(element), method_table: None, definition: None }
    }
}

impl Types {
    /// Adds names and types to FieldDescs.
    pub(super) fn complete(&self, info: &MethodTableInfo, own: &[FieldDesc]) -> Option<Vec<Field>> {
        if own.is_empty() {
            return Some(Vec::new());
        }
        let tables = self.names().method_tables();
        let home = tables.module(info).ok()?;
        let context = Context { module: home, arguments: self.names().arguments(info).unwrap_or_default(), of_method: Vec::new() };
        let module = self.names().module(home);
        let pointer = self.memory.ptr_bytes();
        let complete = |d: &FieldDesc| {
            let row = module.metadata.as_ref().and_then(|m| m.field(d.token.rid()));
            let signature = row.as_ref().and_then(|r| r.signature.as_ref());
            let value = !d.element.is_reference();
            let method_table = signature.filter(|_| value).and_then(|s| self.resolve(s, &context, 0));
            let definition = method_table.and_then(|mt| self.definition(mt));
            let by_signature = || signature.filter(|_| value).and_then(|s| self.define(s, &context, 0));
            let name = match signature {
                Some(s) => SignatureNames::new(self, &context).name(s),
                None => d.element.type_name().unwrap_or("?").to_string(),
            };
            Field {
                declaring: info.address,
                name: row.as_ref().map_or_else(|| format!("field_{}", d.token), |r| r.name.clone()),
                is_named: row.is_some(),
                token: d.token,
                storage: d.storage,
                offset: if d.storage == Storage::Instance { d.offset.saturating_add(pointer) } else { d.offset },
                element: d.element,
                type_name: name,
                definition: definition.or_else(by_signature),
                method_table,
            }
        };
        Some(own.iter().map(complete).collect())
    }

    /// The types of `parameters`, preceded by the type of `this`.
    pub(crate) fn parameters(&self, parameters: &Parameters) -> Vec<Typed> {
        let context = Context {
            module: parameters.home.unwrap_or_default(),
            arguments: parameters.class_arguments.clone(),
            of_method: parameters.method_arguments.clone(),
        };
        let this = parameters.this.map(|mt| {
            let own = self.typed_handle(self.names().name(mt).name.clone(), mt);
            // A method of a structure receives the address of the structure.
            let is_value = own.element.is_some_and(|e| !e.is_reference());
            if is_value { Typed { name: format!("{}&", own.name), ..Typed::plain(CorElementType::ByRef) } } else { own }
        });
        this.into_iter().chain(parameters.types.iter().map(|sig| self.typed(sig, &context))).collect()
    }

    fn typed(&self, sig: &TypeSig, context: &Context) -> Typed {
        let name = SignatureNames::new(self, context).name(sig);
        match sig {
            TypeSig::Primitive(element) if *element != CorElementType::TypedByRef => Typed { name, ..Typed::plain(*element) },
            TypeSig::Class(_) | TypeSig::SzArray(_) | TypeSig::Array(..) | TypeSig::Generic { value_type: false, .. } => {
                Typed { name, ..Typed::plain(CorElementType::Class) }
            }
            TypeSig::Pointer(_) | TypeSig::Function(_) => Typed { name, ..Typed::plain(CorElementType::Ptr) },
            TypeSig::ByRef(_) => Typed { name, ..Typed::plain(CorElementType::ByRef) },
            TypeSig::Var(_)
            | TypeSig::MethodVar(_)
            | TypeSig::Internal(_)
            | TypeSig::Primitive(_)
            | TypeSig::ValueType(_)
            | TypeSig::Generic { .. } => {
                let handle = self.resolve(sig, context, 0);
                let name = match (sig, handle) {
                    (TypeSig::MethodVar(_), Some(handle)) => self.names().handle_name(handle).name.clone(),
                    _ => name,
                };
                let unknown = Typed { name: String::new(), element: None, method_table: None, definition: None };
                handle.map_or(Typed { name: name.clone(), ..unknown }, |handle| self.typed_handle(name, handle))
            }
        }
    }

    /// The type with this handle.
    fn typed_handle(&self, name: String, handle: Addr) -> Typed {
        if handle.0 & TYPE_DESC != 0 {
            return Typed { name, ..Typed::plain(CorElementType::Ptr) };
        }
        let info = self.names().method_tables().read(handle).ok();
        let element = info.and_then(|info| self.element(&info));
        let value = element.is_some_and(|e| !e.is_reference()).then_some(handle);
        Typed { name, element, method_table: value, definition: value.and_then(|mt| self.definition(mt)) }
    }
}
