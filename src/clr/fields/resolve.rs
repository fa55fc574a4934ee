//! Resolves signatures to types: definition and method table.

mod instance;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::definition::Definition;
use super::index::Index;
use super::{Field, Fields, OwnFields};
use crate::base::hash::Map;
use crate::base::missed::Kept;
use crate::base::{Addr, CorElementType, Limits, Token, TokenTable, len64};
use crate::clr::loader::Loader;
use crate::clr::metadata::signature::TypeSig;
use crate::clr::method_table::{Category, MethodTableInfo};
use crate::clr::objects::Objects;
use crate::clr::render::TYPE_DESC;
use crate::clr::strings::Strings;
use crate::clr::type_names::TypeNames;
use crate::contract::{ContractError, Descriptor};
use crate::memory::Memory;

/// Maximum number of base types.
pub(super) const MAX_BASES: usize = 256;
/// Maximum number of fields of a type, including inherited ones.
const MAX_FIELDS: usize = 1 << 17;
/// Maximum nesting of type references: enclosing types and generic arguments.
const MAX_DEPTH: u32 = 32;
/// Maximum number of cached field lists.
const MAX_CACHED: usize = 1 << 20;
/// The module of System.Object.
pub(crate) const CORE: &str = "System.Private.CoreLib";
/// Context of a signature: the module of its tokens, and the generic arguments.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) module: Addr,
    /// Generic arguments of the declaring type, as type handles.
    pub(super) arguments: Vec<Addr>,
    /// Generic arguments of the method, as type handles.
    pub(super) of_method: Vec<Addr>,
}

type Lists = Map<Addr, Kept<Option<Arc<Vec<Field>>>>>;
/// Definitions by module and row of TypeRef.
type References = Map<(Addr, u32), Kept<Option<Definition>>>;

/// Types and their fields. Shared between threads.
#[derive(Debug)]
pub struct Types {
    pub(in crate::clr) memory: Arc<Memory>,
    names: Arc<TypeNames>,
    /// Reader of FieldDescs; `None` in NativeAOT programs and in Mono, which have no FieldDescs.
    fields: Option<Fields>,
    objects: Objects,
    strings: Strings,
    loader: Loader,
    index: OnceLock<Kept<Index>>,
    references: Mutex<References>,
    instance: Mutex<Lists>,
    statics: Mutex<Lists>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Types {
    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the layouts of fields.
    pub fn new(memory: &Arc<Memory>, d: &Descriptor, names: Arc<TypeNames>, limits: &Limits) -> Result<Types, ContractError> {
        Ok(Types {
            memory: Arc::clone(memory),
            names,
            fields: if d.is_native_aot() || d.is_mono() { None } else { Some(Fields::bind(memory, d)?) },
            objects: Objects::bind(memory, d)?,
            strings: Strings::bind(memory, d)?,
            loader: Loader::bind(memory, d, limits)?,
            index: OnceLock::new(),
            references: Mutex::default(),
            instance: Mutex::default(),
            statics: Mutex::default(),
        })
    }

    /// Pointer size in bytes.
    pub fn pointer_bytes(&self) -> u64 {
        self.memory.ptr_bytes()
    }

    /// The memory of the process.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Reader of type names.
    pub fn names(&self) -> &TypeNames {
        &self.names
    }

    /// Reader of FieldDescs; `None` in NativeAOT programs and in Mono.
    pub fn fields(&self) -> Option<&Fields> {
        self.fields.as_ref()
    }

    /// Offset of the field `name` from the start of the object. Only fields that the type itself declares are found.
    pub fn own_offset(&self, mt: Addr, name: &str) -> Option<u64> {
        match &self.fields {
            Some(fields) => fields.offset(&self.names, mt, name),
            None => self.instance_fields(mt)?.iter().find(|f| f.declaring == mt && f.name == name).map(|f| f.offset),
        }
    }

    /// Reader of method table pointers.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Reader of strings.
    pub fn strings(&self) -> &Strings {
        &self.strings
    }

    /// Reader of the loader's tables.
    pub fn loader(&self) -> &Loader {
        &self.loader
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Kept::of(|| Index::build(&self.names, &self.loader))).get()
    }

    /// The modules of the process, in load order.
    pub fn modules(&self) -> &[Addr] {
        &self.index().modules
    }

    /// The reason why types are missing; `None` if all types are known.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        if self.names.method_tables().mono().is_some() {
            return Some("of Mono, only types that were used are known");
        }
        (!self.knows_all()).then_some("the list of loaded modules is incomplete")
    }

    /// Whether the list of modules is available and complete, so that all types are known.
    pub(crate) fn knows_all(&self) -> bool {
        self.names.native_aot().and_then(|p| p.blobs()).is_some_and(|blobs| blobs.definitions().next().is_some())
            || (self.index().whole && self.modules().len() > 1)
    }

    /// Method tables of all loaded generic instances.
    pub fn instances(&self) -> &[Addr] {
        &self.index().all
    }

    /// Whether the type at `mt` is defined in System.Private.CoreLib.
    pub fn is_core(&self, info: &MethodTableInfo) -> bool {
        if let Some(compiled) = self.compiled(info.address) {
            return &*compiled.module == CORE;
        }
        self.core().is_some() && self.names.method_tables().module(info).ok() == self.core()
    }

    fn core(&self) -> Option<Addr> {
        let tables = self.names.method_tables();
        tables.module(&tables.read(tables.object?).ok()?).ok()
    }

    /// The definition of a type; `None` for arrays.
    pub fn definition(&self, mt: Addr) -> Option<Definition> {
        let tables = self.names.method_tables();
        let info = tables.read(mt).ok()?;
        if tables.is_native_aot() {
            return (!info.is_array).then(|| Definition::compiled(self.generic_definition(&info)));
        }
        let rid = tables.rid(&info).ok().filter(|r| *r != 0)?;
        Some(Definition { module: tables.module(&info).ok()?, rid })
    }

    /// Whether the type has its own element type, like `System.Int32`.
    pub fn is_primitive_definition(&self, definition: Definition) -> bool {
        if definition.is_compiled() {
            let tables = self.names.method_tables();
            return tables.read(definition.module).is_ok_and(|info| tables.is_primitive(&info));
        }
        Some(definition.module) == self.core() && {
            let module = self.names.module(definition.module);
            CorElementType::named().any(|(_, name)| module.type_def_named(name) == Some(definition.rid))
        }
    }

    /// Element type of a field of this type: `Class` for references, `ValueType` for structures, the underlying type for enums.
    pub fn element(&self, info: &MethodTableInfo) -> Option<CorElementType> {
        let tables = self.names.method_tables();
        if info.category != Category::ValueType {
            return Some(CorElementType::Class);
        }
        if !tables.is_enum(info) && !tables.is_primitive(info) {
            return Some(CorElementType::ValueType);
        }
        match &self.fields {
            Some(fields) => fields.element_type(tables.class(info.address).ok()?),
            None => tables.value_type(info),
        }
    }

    /// The instance fields of the type at `mt`, inherited ones first; `None` if they cannot be read.
    pub fn instance_fields(&self, mt: Addr) -> Option<Arc<Vec<Field>>> {
        self.cached(&self.instance, mt, || self.read_instance_fields(mt))
    }

    /// Whether instance fields of the type at `mt`, or their names, may be missing from the dump.
    pub(crate) fn lacks_fields(&self, mt: Addr) -> bool {
        let Some(list) = self.instance_fields(mt) else { return true };
        match self.names.native_aot() {
            Some(program) => self.lacks_compiled_fields(program, mt),
            None => list.iter().any(|field| !field.is_named),
        }
    }

    /// The static fields that the type at `mt` declares, of all kinds of storage. Constants have no storage and are omitted.
    pub fn static_fields(&self, mt: Addr) -> Option<Arc<Vec<Field>>> {
        self.cached(&self.statics, mt, || {
            let info = self.names.method_tables().read(mt).ok()?;
            if let Some(mono) = self.names.method_tables().mono() {
                return self.mono_statics(mono, &info);
            }
            if let Some(program) = self.names.native_aot() {
                return self.compiled_statics(program, &info);
            }
            let own = self.own(&info)?;
            self.complete(&info, &own.statics)
        })
    }

    fn cached(&self, cache: &Mutex<Lists>, mt: Addr, read: impl FnOnce() -> Option<Vec<Field>>) -> Option<Arc<Vec<Field>>> {
        let known = locked(cache).get(&mt).map(|list| list.get().clone());
        if let Some(list) = known {
            return list;
        }
        if self.names.spent() {
            return None;
        }
        let kept = Kept::of(|| read().map(Arc::new));
        let list = kept.get().clone();
        if !self.names.afford(list.iter().flat_map(|list| list.iter()).map(Field::bytes).fold(64, u64::saturating_add)) {
            return None;
        }
        let mut cache = locked(cache);
        if cache.len() < MAX_CACHED {
            cache.insert(mt, kept);
        }
        list
    }

    /// The fields that a type declares. Charges a step for each field.
    fn own(&self, info: &MethodTableInfo) -> Option<OwnFields> {
        let own = self.fields.as_ref()?.own(&self.names, info)?;
        self.names.afford_steps(len64(own.instance.len().saturating_add(own.statics.len()))).then_some(own)
    }

    /// Method table of a value type in a signature. Callers do not resolve the types of references, because the objects have the exact types.
    pub(super) fn resolve(&self, sig: &TypeSig, context: &Context, depth: u32) -> Option<Addr> {
        if depth > MAX_DEPTH {
            return None;
        }
        let inner = depth.saturating_add(1);
        let found = match sig {
            TypeSig::Primitive(p) => self.loaded(self.primitive(*p)?),
            TypeSig::Class(token) | TypeSig::ValueType(token) if token.table() == Some(TokenTable::TypeSpec) => {
                let spec = self.names.module(context.module).metadata.as_ref()?.type_spec(token.rid())?;
                return self.resolve(&spec, context, inner);
            }
            TypeSig::Class(token) | TypeSig::ValueType(token) => {
                self.reference_map(*token, context).or_else(|| self.loaded(self.token(*token, context, inner)?))
            }
            TypeSig::Var(n) => return context.arguments.get(usize::try_from(*n).ok()?).copied(),
            TypeSig::Generic { token, arguments, .. } => {
                let definition = self.token(*token, context, inner)?;
                // An instance has the same layout for all reference types, so `System.__Canon` replaces an unresolved reference type.
                let shared = |a: &TypeSig| if may_share(a) { self.canon() } else { None };
                let argument = |a: &TypeSig| self.resolve(a, context, inner).or_else(|| shared(a));
                let arguments = arguments.iter().map(argument).collect::<Option<Vec<_>>>()?;
                self.instance_of(definition, arguments)
            }
            TypeSig::SzArray(element) => self.array_of(element, 0, context, inner),
            TypeSig::Array(element, rank) => self.array_of(element, u8::try_from(*rank).ok()?, context, inner),
            TypeSig::MethodVar(n) => return context.of_method.get(usize::try_from(*n).ok()?).copied(),
            TypeSig::Pointer(_) | TypeSig::ByRef(_) | TypeSig::Function(_) => None,
            TypeSig::Internal(mt) => Some(Addr(*mt)),
        };
        found.filter(|mt| self.names.method_tables().is_valid(*mt) == Ok(true))
    }

    fn array_of(&self, element: &TypeSig, rank: u8, context: &Context, depth: u32) -> Option<Addr> {
        let element = self.resolve(element, context, depth)?;
        self.index().arrays.get(&(element, rank)).copied()
    }

    /// A generic instance. If the exact instance is not loaded, the instance with shared layout is returned.
    fn instance_of(&self, definition: Definition, arguments: Vec<Addr>) -> Option<Addr> {
        let tables = self.names.method_tables();
        let key = (definition, arguments);
        if let Some(mt) = self.index().instances.get(&key) {
            return Some(*mt);
        }
        let canon = self.canon()?;
        let is_class = |a: Addr| a.0 & TYPE_DESC == 0 && tables.read(a).is_ok_and(|i| i.category != Category::ValueType);
        let shared = key.1.iter().map(|a| if is_class(*a) { canon } else { *a }).collect();
        self.index().instances.get(&(definition, shared)).copied()
    }

    /// `System.__Canon`, the placeholder for reference types in shared instances.
    fn canon(&self) -> Option<Addr> {
        let module = self.core()?;
        self.loaded(Definition { module, rid: self.type_named(module, "System.__Canon")? })
    }

    /// The definition of a type in a signature.
    pub(super) fn define(&self, sig: &TypeSig, context: &Context, depth: u32) -> Option<Definition> {
        match sig {
            TypeSig::Primitive(p) => self.primitive(*p),
            TypeSig::Class(token) | TypeSig::ValueType(token) | TypeSig::Generic { token, .. } => self.token(*token, context, depth),
            TypeSig::Var(n) => self.definition(*context.arguments.get(usize::try_from(*n).ok()?)?),
            _ => None,
        }
    }

    fn primitive(&self, element: CorElementType) -> Option<Definition> {
        let module = self.core()?;
        Some(Definition { module, rid: self.type_named(module, element.type_name()?)? })
    }

    /// The method table of a nongeneric type, if it is loaded.
    pub(crate) fn loaded(&self, definition: Definition) -> Option<Addr> {
        if definition.is_compiled() {
            return Some(definition.module);
        }
        self.loader.type_def(definition.module, definition.rid)
    }

    /// The type of a TypeRef, if the runtime has resolved it.
    fn reference_map(&self, token: Token, context: &Context) -> Option<Addr> {
        (token.table() == Some(TokenTable::TypeRef)).then(|| self.loader.type_ref(context.module, token.rid()))?
    }

    /// The definition of the type with a token.
    pub(super) fn token(&self, token: Token, context: &Context, depth: u32) -> Option<Definition> {
        match token.table()? {
            TokenTable::TypeDef => Some(Definition { module: context.module, rid: token.rid() }),
            TokenTable::TypeRef => {
                if let Some(mt) = self.reference_map(token, context)
                    && let Some(definition) = self.definition(mt)
                {
                    return Some(definition);
                }
                self.by_reference(context.module, token.rid(), depth)
            }
            _ => None,
        }
    }

    fn by_reference(&self, module: Addr, row: u32, depth: u32) -> Option<Definition> {
        let known = locked(&self.references).get(&(module, row)).map(|found| *found.get());
        if let Some(found) = known {
            return found;
        }
        if self.names.spent() {
            return None;
        }
        let found = Kept::of(|| self.find_by_name(module, row, depth));
        if !self.names.afford(64) {
            return None;
        }
        *locked(&self.references).entry((module, row)).or_insert(found).get()
    }

    /// Resolves by name a TypeRef that the runtime has not resolved. Searches the assembly of the TypeRef, then CoreLib, then all modules, because
    /// many assemblies forward types to other modules. The search in all modules succeeds only if exactly one module defines the name.
    fn find_by_name(&self, module: Addr, row: u32, depth: u32) -> Option<Definition> {
        let name = self.reference_name(module, row, depth)?;
        let own = self.names.module(module);
        let assembly = assembly_of(own.metadata.as_ref()?, row, depth);
        let within = |module: Addr| Some(Definition { module, rid: self.type_named(module, &name)? });
        let modules = self.modules();
        let named = modules.iter().filter(|m| assembly.is_some() && self.names.module(**m).simple_name() == assembly.as_deref());
        let named: Vec<Definition> = named.filter_map(|m| within(*m)).collect();
        if let [one] = named.as_slice() {
            return Some(*one);
        }
        if let Some(core) = self.core().and_then(within) {
            return Some(core);
        }
        let mut all = modules.iter().filter_map(|m| within(*m));
        let first = all.next()?;
        all.next().is_none().then_some(first)
    }

    /// Full name of a TypeRef: `Namespace.Outer+Inner`.
    pub(super) fn reference_name(&self, module: Addr, row: u32, depth: u32) -> Option<String> {
        let own = self.names.module(module);
        let reference = own.metadata.as_ref()?.type_ref(row)?;
        if reference.scope & 3 == 3 && depth < MAX_DEPTH {
            let outer = self.reference_name(module, reference.scope >> 2, depth.saturating_add(1))?;
            return Some(format!("{outer}+{}", reference.name));
        }
        Some(if reference.namespace.is_empty() { reference.name } else { format!("{}.{}", reference.namespace, reference.name) })
    }

    /// The first module with this simple name. The search does not mark the other modules as used.
    pub(crate) fn module_named(&self, name: &str) -> Option<Addr> {
        if name == CORE {
            return self.core();
        }
        let modules = self.names.modules();
        self.modules().iter().copied().find(|m| modules.is_named(*m, name))
    }

    /// The row in TypeDef with this full name in `module`.
    pub(super) fn type_named(&self, module: Addr, name: &str) -> Option<u32> {
        self.names.module(module).type_def_named(name)
    }
}

/// Whether the type in a signature is a reference type, whatever its generic arguments are.
fn may_share(sig: &TypeSig) -> bool {
    match sig {
        TypeSig::Primitive(element) => element.is_reference(),
        TypeSig::Generic { value_type, .. } => !value_type,
        TypeSig::Class(_) | TypeSig::SzArray(_) | TypeSig::Array(..) => true,
        _ => false,
    }
}

/// Name of the assembly to which a TypeRef or its enclosing type refers.
fn assembly_of(metadata: &crate::clr::metadata::Metadata, row: u32, depth: u32) -> Option<String> {
    let reference = metadata.type_ref(row)?;
    match reference.scope & 3 {
        2 => metadata.assembly_ref(reference.scope >> 2),
        3 if depth < MAX_DEPTH => assembly_of(metadata, reference.scope >> 2, depth.saturating_add(1)),
        _ => None,
    }
}
