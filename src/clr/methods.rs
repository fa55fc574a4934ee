//! Method names as in stack traces: `Lab.Program.Main(System.String[])`.
//!
//! Source: contract `RuntimeTypeSystem` (MethodDesc), measured on .NET 8 for its smaller structures. The declaring type and generic
//! arguments are in readable notation. Parameters are as the runtime writes them: primitive types without `System.`, nested types without
//! enclosing types, `ByRef` after references. Compiler-generated names are kept, with the source form beside them (`generated`). All texts
//! that show a method to people use [`MethodName::shown`]. A signature is the runtime's own text, which ClrMD and SOS print:
//! ``Lab.Gen`1[[System.__Canon, System.Private.CoreLib]].Add(System.Span`1<Byte>)``.

use std::borrow::Cow;
use std::sync::Arc;

use super::generated::{self, Source};
use super::metadata::Metadata;
use super::metadata::signature::{self, MethodSig, TypeSig};
use super::method_table::MethodTables;
use super::objects::Objects;
use super::render::{Notation, short};
use super::type_names::{NameQuality, TypeNames};
use crate::base::missed::watched;
use crate::base::{Addr, Limits, Name, Token, TokenTable};
use crate::contract::{ContractError, Descriptor};
use crate::data::{
    Bound, DynamicMethodDesc, InstantiatedMethodDesc, MethodDesc, MethodDescChunk, StoredSigMethodDesc, Structure, bind, globals,
};
use crate::memory::Memory;

// Bits of `MethodDesc.Flags`.
const KIND: u16 = 0x7;
const KIND_ARRAY: u16 = 4;
const KIND_INSTANTIATED: u16 = 5;
const KIND_DYNAMIC: u16 = 7;
/// The beginning of the names of the runtime's stubs.
const STUB: &str = "IL_STUB";
/// Kind bits of `InstantiatedMethodDesc.Flags2`; 0 if the method itself is not generic.
const INSTANCE_KIND: u16 = 0x7;
/// Number of bits of a token that are split between `MethodDescChunk.FlagsAndTokenRange` and the MethodDesc.
const TOKEN_BITS: u32 = 24;

/// Maximum number of base types.
const MAX_BASES: usize = 64;
/// Maximum number of generic arguments of a method.
const MAX_ARGUMENTS: u16 = 1024;
/// Maximum size of a stored signature in bytes.
const MAX_SIGNATURE: u32 = 1 << 12;
/// Maximum nesting of types in a signature; the signature parser stops at 32.
const MAX_DEPTH: u32 = 40;

/// The name of a method, with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodName {
    /// Declaring type, name and parameters.
    pub name: String,
    /// The source form, if the name is compiler-generated.
    pub source: Option<Source>,
    /// Name of the declaring module; `None` for dynamic methods.
    pub module: Option<String>,
    /// Address of the declaring `Module`; `None` for dynamic methods and methods of arrays.
    pub home: Option<Addr>,
    /// MethodDef token in that module; `None` for dynamic methods.
    pub token: Option<Token>,
    /// Method table of the declaring type. For shared code, it is the canonical method table, with `System.__Canon` for references.
    pub declaring_type: Addr,
    /// Quality of the name.
    pub quality: NameQuality,
}

impl MethodName {
    /// The name to display.
    pub fn shown(&self) -> Cow<'_, str> {
        match &self.source {
            Some(source) => source.with(generated::parameters_of(&self.name).1).into(),
            None => Cow::Borrowed(&self.name),
        }
    }

    /// The name in both forms.
    pub fn to_name(&self) -> Name {
        Name::shown_as(self.name.as_str(), self.source.is_some().then(|| self.shown().into_owned()))
    }
}

/// Reader of MethodDescs.
#[derive(Clone, Debug)]
pub struct Methods {
    memory: Arc<Memory>,
    objects: Objects,
    desc: Bound<MethodDesc>,
    chunk: Bound<MethodDescChunk>,
    chunk_bytes: u64,
    alignment: u64,
    remainder_bits: u32,
    instantiated: Option<Bound<InstantiatedMethodDesc>>,
    stored: Option<Bound<StoredSigMethodDesc>>,
    dynamic: Option<Bound<DynamicMethodDesc>>,
    string_bytes: u64,
}

/// The source of the exact instance of a method whose code several instances share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum GenericContext {
    /// The exact method table.
    MethodTable(Addr),
    /// The exact method.
    Method(Addr),
    /// An object of the exact type or of a type derived from it.
    This(Addr),
}

/// A validated MethodDesc.
#[derive(Clone, Copy, Debug)]
struct Desc {
    address: Addr,
    flags: u16,
    method_table: Addr,
    /// The MethodDef token; nil if the metadata has no row for the method.
    token: Token,
}

impl Methods {
    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of contract `RuntimeTypeSystem` is advertised, or the descriptor does not have the layout
    /// of methods.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor, limits: &Limits) -> Result<Methods, ContractError> {
        MethodTables::CONTRACT.require(d)?;
        Ok(Methods {
            memory: Arc::clone(memory),
            objects: Objects::bind(memory, d)?,
            desc: bind!(d, MethodDesc { ChunkIndex, Flags, Flags3AndTokenRemainder })?,
            chunk: bind!(d, MethodDescChunk { MethodTable, Size?, FlagsAndTokenRange })?,
            chunk_bytes: MethodDescChunk::size(d)?,
            alignment: globals::MethodDescAlignment.of(d)?,
            remainder_bits: u32::try_from(d.number("MethodDescTokenRemainderBitCount")?).unwrap_or(0).min(16),
            instantiated: bind!(d, InstantiatedMethodDesc { PerInstInfo, Flags2, NumGenericArgs }).ok(),
            stored: bind!(d, StoredSigMethodDesc { Sig, cSig }).ok(),
            dynamic: bind!(d, DynamicMethodDesc { MethodName }).ok(),
            string_bytes: limits.string_bytes,
        })
    }

    /// The memory that is read.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The method at `desc`; `None` if no method is there, or its structures are not in the dump.
    pub fn name(&self, names: &TypeNames, desc: Addr) -> Option<MethodName> {
        let desc = self.read(names, desc)?;
        let name = self.written(names, &desc, Notation::Readable)?;
        Some(self.with_source(names, &desc, name))
    }

    /// The method at `desc` in the runtime's notation; `None` as for [`Methods::name`].
    pub(crate) fn signature(&self, names: &TypeNames, desc: Addr) -> Option<String> {
        self.written(names, &self.read(names, desc)?, Notation::Qualified).map(|m| m.name)
    }

    /// Adds the source form to `name`.
    fn with_source(&self, names: &TypeNames, desc: &Desc, name: MethodName) -> MethodName {
        let is_shared = || {
            let tables = names.method_tables();
            let rid = tables.read(desc.method_table).ok().and_then(|info| tables.rid(&info).ok());
            let Some((home, rid)) = name.home.zip(rid) else { return false };
            let module = names.module(home);
            // The name of a `MoveNext` method depends on its state machine.
            names.beside(|| module.function_shares_name(rid, desc.token.rid()) || module.machine_shares_name(rid))
        };
        let source = generated::method(&name.name, is_shared);
        MethodName { source, ..name }
    }

    fn written(&self, names: &TypeNames, desc: &Desc, notation: Notation) -> Option<MethodName> {
        let mut out = match desc.flags & KIND {
            KIND_DYNAMIC => self.made_at_run_time(names, desc, notation)?,
            KIND_ARRAY => {
                // Get, Set, Address and .ctor of arrays are synthesized by the runtime and identified only by index.
                let owner = names.written(desc.method_table, notation);
                let quality = owner.quality.min(NameQuality::ModuleToken);
                let name = format!("{}.<array accessor>", owner.name);
                let module = owner.module.clone();
                MethodName { name, source: None, module, home: None, token: None, declaring_type: desc.method_table, quality }
            }
            _ => self.declared(names, desc, notation)?,
        };
        truncate(&mut out.name, self.string_bytes);
        Some(out)
    }

    /// The declaring type of the method at `desc`, and its row in MethodDef.
    pub(crate) fn row(&self, names: &TypeNames, desc: Addr) -> Option<(Addr, u32)> {
        self.read(names, desc).map(|desc| (desc.method_table, desc.token.rid()))
    }

    /// The types to which the code of the method at `desc` belongs: the declaring type, and the type arguments of the method.
    pub(crate) fn owners(&self, names: &TypeNames, desc: Addr) -> Vec<Addr> {
        let Some(desc) = self.read(names, desc) else { return Vec::new() };
        std::iter::once(desc.method_table).chain(self.arguments(&desc).into_iter().filter_map(TypeNames::method_table_of)).collect()
    }

    /// The module of the method at `desc`, and its `MethodImplAttributes`; these are `None` if the metadata is not available.
    pub(crate) fn implementation(&self, names: &TypeNames, desc: Addr) -> Option<(Addr, Option<u32>)> {
        let desc = self.read(names, desc)?;
        let home = names.method_tables().module(&names.method_tables().read(desc.method_table).ok()?).ok()?;
        if matches!(desc.flags & KIND, KIND_DYNAMIC | KIND_ARRAY) {
            return Some((home, Some(0)));
        }
        Some((home, names.module(home).metadata.as_ref().and_then(|m| m.method_implementation(desc.token.rid()))))
    }

    /// For a `DynamicMethod`, the address of the word after the pointer to its name. `None` for other methods and the runtime's stubs.
    pub(crate) fn after_dynamic_name(&self, names: &TypeNames, desc: Addr) -> Option<Addr> {
        let desc = self.read(names, desc).filter(|desc| desc.flags & KIND == KIND_DYNAMIC)?;
        let place = self.dynamic.as_ref()?.place(desc.address, DynamicMethodDesc::MethodName)?;
        let name = self.memory.text(self.memory.ptr(place).ok()?, self.string_bytes.min(64)).ok()?;
        (!name.starts_with(STUB)).then(|| place.plus(self.memory.ptr_bytes()))
    }

    /// Whether a method is at `desc`.
    pub(crate) fn is_method(&self, names: &TypeNames, desc: Addr) -> bool {
        self.read(names, desc).is_some()
    }

    /// The first of `contexts` that identifies an instance of the method at `desc`. Some contexts may be invalid, so failed reads are
    /// recorded only if no context identifies an instance.
    pub(crate) fn instance(&self, names: &TypeNames, desc: Addr, contexts: &[GenericContext]) -> Option<GenericContext> {
        let (found, missed) = watched(|| contexts.iter().copied().find(|context| self.exact(names, desc, *context).is_some()));
        if found.is_none() {
            missed.tell();
        }
        found
    }

    /// The name of the method at `desc`, in the instance given by `context`; `None` if `context` is not for that method.
    pub(crate) fn exact_name(&self, names: &TypeNames, desc: Addr, context: GenericContext) -> Option<MethodName> {
        let desc = self.exact(names, desc, context)?;
        let mut out = self.declared(names, &desc, Notation::Readable)?;
        truncate(&mut out.name, self.string_bytes);
        Some(self.with_source(names, &desc, out))
    }

    /// The parameters of the method at `desc`, in the instance given by `context`; `None` if its signature cannot be read, or `context` is
    /// not for that method.
    pub(crate) fn parameters(&self, names: &TypeNames, desc: Addr, context: Option<GenericContext>) -> Option<Parameters> {
        let desc = match context {
            Some(context) => self.exact(names, desc, context)?,
            None => self.read(names, desc)?,
        };
        let info = names.method_tables().read(desc.method_table).ok()?;
        let home = names.method_tables().module(&info).ok();
        let (signature, listed) = match desc.flags & KIND {
            KIND_ARRAY => return None,
            KIND_DYNAMIC => (self.stored_signature(&desc)?, Vec::new()),
            _ => {
                let module = names.module(home?);
                let metadata = module.metadata.as_ref()?;
                (metadata.method(desc.token.rid())?.signature?, metadata.parameter_names(desc.token.rid()))
            }
        };
        let mut parameter_names = vec![None; signature.parameters.len()];
        for (position, name) in listed {
            let at = position.checked_sub(1).and_then(|i| usize::try_from(i).ok());
            if let Some(place) = at.and_then(|i| parameter_names.get_mut(i)) {
                *place = Some(name).filter(|n| !n.is_empty());
            }
        }
        Some(Parameters {
            home,
            class_arguments: names.arguments(&info).unwrap_or_default(),
            method_arguments: self.arguments(&desc),
            this: signature.has_this.then_some(desc.method_table),
            types: signature.parameters,
            names: parameter_names,
        })
    }

    /// The method at `desc`, in the instance given by `context`.
    fn exact(&self, names: &TypeNames, desc: Addr, context: GenericContext) -> Option<Desc> {
        let shared = self.read(names, desc)?;
        let tables = names.method_tables();
        let canonical = tables.canonical(shared.method_table).ok()?;
        let is_instance = |mt: Addr| tables.is_valid(mt) == Ok(true) && tables.canonical(mt) == Ok(canonical);
        Some(match context {
            GenericContext::MethodTable(mt) => is_instance(mt).then_some(Desc { method_table: mt, ..shared })?,
            GenericContext::Method(method) => {
                let exact = self.read(names, method)?;
                (exact.token == shared.token && is_instance(exact.method_table)).then_some(exact)?
            }
            GenericContext::This(object) => {
                let mut mt = self.objects.method_table(object)?;
                let bases = std::iter::from_fn(|| {
                    let own = mt;
                    mt = tables.read(own).ok()?.parent;
                    (!own.is_null()).then_some(own)
                });
                Desc { method_table: bases.take(MAX_BASES).find(|mt| is_instance(*mt))?, ..shared }
            }
        })
    }

    /// Reads a MethodDesc. A MethodDesc is valid only if it is in a chunk that belongs to a type.
    fn read(&self, names: &TypeNames, address: Addr) -> Option<Desc> {
        let m = &self.memory;
        if address.is_null() || !address.is_aligned(m.ptr_bytes()) {
            return None;
        }
        let index = u64::from(self.desc.get(m, address, MethodDesc::ChunkIndex)?);
        let within = index.checked_mul(self.alignment)?;
        let chunk = address.minus(within.checked_add(self.chunk_bytes)?)?;
        // The size is stored minus one, in units of the alignment.
        let size = self.chunk.get(m, chunk, MethodDescChunk::Size);
        if size.is_some_and(|s| u64::from(s) < index) {
            return None;
        }
        let method_table = self.chunk.get(m, chunk, MethodDescChunk::MethodTable)?;
        (names.method_tables().is_valid(method_table) == Ok(true)).then_some(())?;
        let mask = |bits: u32| 1u32.checked_shl(bits).map_or(0, |n| n.saturating_sub(1));
        let range = u32::from(self.chunk.get(m, chunk, MethodDescChunk::FlagsAndTokenRange)?)
            & mask(TOKEN_BITS.saturating_sub(self.remainder_bits));
        let remainder = u32::from(self.desc.get(m, address, MethodDesc::Flags3AndTokenRemainder)?) & mask(self.remainder_bits);
        let token = Token::in_low_bits(TokenTable::MethodDef, range.checked_shl(self.remainder_bits)? | remainder);
        Some(Desc { address, flags: self.desc.get(m, address, MethodDesc::Flags)?, method_table, token })
    }

    fn declared(&self, names: &TypeNames, desc: &Desc, notation: Notation) -> Option<MethodName> {
        let info = names.method_tables().read(desc.method_table).ok()?;
        let home = names.method_tables().module(&info).ok()?;
        let module = names.module(home);
        let owner = names.written(desc.method_table, notation);
        let token = Some(desc.token).filter(|token| !token.is_nil());
        let row = module.metadata.as_ref().and_then(|m| m.method(desc.token.rid()));
        let Some((metadata, row)) = module.metadata.as_ref().zip(row) else {
            let name = format!("{}!{}", module.simple_name()?, token?);
            let quality = NameQuality::ModuleToken;
            return Some(MethodName {
                name,
                source: None,
                module: module.name.clone(),
                home: Some(home),
                token,
                declaring_type: desc.method_table,
                quality,
            });
        };
        let mut writer = Writer { metadata: Some(metadata), quality: owner.quality, ..Writer::new(names, notation) };
        writer.class_arguments = names.arguments(&info).unwrap_or_default();
        writer.method_arguments = self.arguments(desc);
        let arguments = names.written_list(&writer.method_arguments, notation);
        writer.weaken(arguments.quality);
        writer.out = format!("{}.{}{}", owner.name, row.name, arguments.name);
        writer.parameters(row.signature.as_ref());
        let (name, quality) = (writer.out, writer.quality);
        let module = module.name.clone();
        Some(MethodName { name, source: None, module, home: Some(home), token, declaring_type: desc.method_table, quality })
    }

    /// The generic arguments of a method instance, as type handles.
    fn arguments(&self, desc: &Desc) -> Vec<Addr> {
        let read = || {
            let l = self.instantiated.as_ref().filter(|_| desc.flags & KIND == KIND_INSTANTIATED)?;
            let kind = l.get(&self.memory, desc.address, InstantiatedMethodDesc::Flags2)? & INSTANCE_KIND;
            (kind != 0).then_some(())?;
            let count = l.get(&self.memory, desc.address, InstantiatedMethodDesc::NumGenericArgs).filter(|n| *n <= MAX_ARGUMENTS)?;
            let list = l.pointer(&self.memory, desc.address, InstantiatedMethodDesc::PerInstInfo)?;
            let word = self.memory.ptr_bytes();
            (0..u64::from(count)).map(|i| self.memory.ptr(list.element(i, word)).ok()).collect::<Option<Vec<Addr>>>()
        };
        read().unwrap_or_default()
    }

    /// The signature stored with a MethodDesc.
    fn stored_signature(&self, desc: &Desc) -> Option<MethodSig> {
        let l = self.stored.as_ref()?;
        let at = l.pointer(&self.memory, desc.address, StoredSigMethodDesc::Sig)?;
        let bytes = l.get(&self.memory, desc.address, StoredSigMethodDesc::cSig).filter(|n| *n <= MAX_SIGNATURE)?;
        signature::method(&self.memory.bytes(at, u64::from(bytes)).ok()?)
    }

    /// The name of a `DynamicMethod` or runtime stub. Name and signature are stored with the MethodDesc, not in metadata.
    fn made_at_run_time(&self, names: &TypeNames, desc: &Desc, notation: Notation) -> Option<MethodName> {
        let name = self.dynamic.as_ref()?.pointer(&self.memory, desc.address, DynamicMethodDesc::MethodName)?;
        let name = self.memory.text(name, self.string_bytes.min(1024)).ok()?;
        // The class names used by the DAC.
        let class = if name.starts_with(STUB) { "ILStubClass" } else { "DynamicClass" };
        // The signature of a delegate or P/Invoke stub may have tokens of its module.
        let info = names.method_tables().read(desc.method_table).ok();
        let module = info.as_ref().and_then(|info| names.method_tables().module(info).ok()).map(|home| names.module(home));
        let metadata = module.as_ref().and_then(|m| m.metadata.as_deref());
        // A delegate stub is a method of the delegate type, and has the signature of `Invoke`, with the type variables of the delegate.
        let class_arguments = info.and_then(|info| names.arguments(&info)).unwrap_or_default();
        let mut writer = Writer { out: format!("{class}.{name}"), metadata, class_arguments, ..Writer::new(names, notation) };
        writer.parameters(self.stored_signature(desc).as_ref());
        let (name, quality) = (writer.out, writer.quality);
        Some(MethodName { name, source: None, module: None, home: None, token: None, declaring_type: desc.method_table, quality })
    }
}

/// The parameters of a method.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    /// The module of the tokens in `types`.
    pub(crate) home: Option<Addr>,
    /// Generic arguments of the declaring type, as type handles.
    pub(crate) class_arguments: Vec<Addr>,
    /// Generic arguments of the method, as type handles.
    pub(crate) method_arguments: Vec<Addr>,
    /// Method table of `this`; `None` for a method without `this`.
    pub(crate) this: Option<Addr>,
    /// Types of the parameters, without `this`.
    pub(crate) types: Vec<TypeSig>,
    /// Names of the parameters; `None` if the metadata has no name.
    pub(crate) names: Vec<Option<String>>,
}

fn truncate(text: &mut String, bytes: u64) {
    let most = usize::try_from(bytes).unwrap_or(usize::MAX);
    if text.len() > most {
        let cut = (0..=most).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
}

/// Formats the parameters of a method.
struct Writer<'w> {
    names: &'w TypeNames,
    notation: Notation,
    metadata: Option<&'w Metadata>,
    class_arguments: Vec<Addr>,
    method_arguments: Vec<Addr>,
    quality: NameQuality,
    out: String,
}

impl<'w> Writer<'w> {
    fn new(names: &'w TypeNames, notation: Notation) -> Writer<'w> {
        Writer {
            names,
            notation,
            metadata: None,
            class_arguments: Vec::new(),
            method_arguments: Vec::new(),
            quality: NameQuality::Exact,
            out: String::new(),
        }
    }

    fn weaken(&mut self, quality: NameQuality) {
        // The name is still useful if this part is unknown, so its quality does not become `Unknown`.
        self.quality = self.quality.min(quality.max(NameQuality::ModuleToken));
    }

    fn parameters(&mut self, signature: Option<&MethodSig>) {
        let Some(signature) = signature else {
            self.weaken(NameQuality::ModuleToken);
            self.out.push_str("(…)");
            return;
        };
        self.list(["(", ", ", ")"], &signature.parameters, 0);
    }

    fn list(&mut self, [open, comma, close]: [&str; 3], types: &[TypeSig], depth: u32) {
        self.out.push_str(open);
        for (i, t) in types.iter().enumerate() {
            self.out.push_str(if i == 0 { "" } else { comma });
            self.type_sig(t, depth);
        }
        self.out.push_str(close);
    }

    fn type_sig(&mut self, sig: &TypeSig, depth: u32) {
        if depth > MAX_DEPTH {
            self.weaken(NameQuality::ModuleToken);
            return self.out.push('…');
        }
        let inner = depth.saturating_add(1);
        match sig {
            TypeSig::Primitive(element) => self.out.push_str(short(element.type_name().unwrap_or("?"))),
            TypeSig::Class(token) | TypeSig::ValueType(token) => self.token(*token),
            TypeSig::Var(n) => self.variable(false, *n),
            TypeSig::MethodVar(n) => self.variable(true, *n),
            TypeSig::Pointer(t) => self.suffixed(t, "*", inner),
            TypeSig::ByRef(t) => self.suffixed(t, " ByRef", inner),
            TypeSig::SzArray(t) => self.suffixed(t, "[]", inner),
            TypeSig::Array(t, rank) => {
                let commas = usize::try_from(rank.saturating_sub(1)).unwrap_or(0);
                self.suffixed(t, &format!("[{}]", ",".repeat(commas)), inner);
            }
            TypeSig::Generic { token, arguments, .. } => {
                self.token(*token);
                let readable = self.notation == Notation::Readable;
                if readable {
                    plain(&mut self.out);
                }
                self.list(["<", if readable { ", " } else { "," }, ">"], arguments, inner);
            }
            TypeSig::Function(method) => {
                self.type_sig(&method.result, inner);
                self.list([" (", ", ", ")"], &method.parameters, inner);
            }
            TypeSig::Internal(handle) => {
                let name = self.names.written(Addr(*handle), self.of_parameters(Notation::Definition));
                self.weaken(name.quality);
                self.out.push_str(&name.name);
            }
        }
    }

    /// The notation of types in parameters: readable, or else `runtime`.
    fn of_parameters(&self, runtime: Notation) -> Notation {
        if self.notation == Notation::Readable { Notation::Readable } else { runtime }
    }

    fn suffixed(&mut self, sig: &TypeSig, suffix: &str, depth: u32) {
        self.type_sig(sig, depth);
        self.out.push_str(suffix);
    }

    /// Writes a type by its token. Nested types are written without enclosing types, as the runtime does.
    fn token(&mut self, token: Token) {
        let rid = token.rid();
        let found = self.metadata.and_then(|m| match token.table()? {
            TokenTable::TypeRef => m.type_ref(rid).map(|t| (t.namespace, t.name)),
            TokenTable::TypeDef => m.type_def(rid).map(|t| (t.namespace, t.name)),
            _ => None,
        });
        match found {
            Some((namespace, name)) if namespace.is_empty() => self.out.push_str(&name),
            Some((namespace, name)) => self.out.push_str(&format!("{namespace}.{name}")),
            None => {
                self.weaken(NameQuality::ModuleToken);
                self.out.push_str(&format!("<{token}>"));
            }
        }
    }

    /// Writes the argument of a type variable in this instance.
    fn variable(&mut self, of_method: bool, n: u32) {
        let list = if of_method { &self.method_arguments } else { &self.class_arguments };
        let Some(handle) = usize::try_from(n).ok().and_then(|i| list.get(i)).copied() else {
            // The method belongs to an open type.
            return self.out.push_str(&format!("{}{n}", if of_method { "!!" } else { "!" }));
        };
        let name = self.names.written(handle, self.of_parameters(Notation::Parameter));
        self.weaken(name.quality);
        self.out.push_str(short(&name.name));
    }
}

/// Removes a trailing `` `n `` from the output.
fn plain(out: &mut String) {
    if let Some((head, digits)) = out.rsplit_once('`')
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
    {
        out.truncate(head.len());
    }
}
