//! Types of Mono. The "method table" of an object is its `MonoVTable`, which leads to the `MonoClass`. A type without a vtable, such as a
//! structure that was never boxed, is identified by its class. An argument of a generic instance may also be identified by its `MonoType`
//! (bit 1 set).
//!
//! Source: `docs/internals/mono.md`.

use super::info::{Category, MethodTableInfo};
use crate::base::{Addr, CorElementType};
use crate::clr::gcdesc::{GcDesc, Series, ValueSeries};
use crate::contract::{ContractError, Descriptor};
use crate::data::{
    self, Bound, Inline, MonoArray, MonoArrayType, MonoClass, MonoClassField, MonoClassRuntimeInfo, MonoGenericClass, MonoGenericInst,
    MonoObject, MonoType, MonoVTable, Offset, String as Text, Structure, bind,
};
use crate::memory::{Memory, ReadError};
use crate::model::Generics;

/// Kinds of classes (`MonoTypeKind`).
const KIND_DEFINITION: u8 = 1;
const KIND_GENERIC_DEFINITION: u8 = 2;
const KIND_INSTANCE: u8 = 3;
const KIND_MASK: u8 = 7;

/// `TypeAttributes.Interface`.
const INTERFACE: u32 = 0x20;
/// `FieldAttributes.Static`.
const STATIC: u16 = 0x10;
/// `FieldAttributes.Literal`: a constant, which has no storage.
const LITERAL: u16 = 0x40;
/// Flags in [`MethodTableInfo::flags`]. The low byte has the element type.
const IS_ENUM: u32 = 0x100;
const IS_NULLABLE: u32 = 0x200;

/// Maximum number of application domains that are looked at.
const MAX_DOMAINS: u16 = 256;
/// Maximum number of fields of a class.
const MAX_FIELDS: u32 = 65_535;
/// Maximum number of base types.
const MAX_BASES: usize = 256;
/// Maximum number of arguments of a generic instance, as for other runtimes.
const MAX_ARGUMENTS: u64 = 1024;
/// Maximum nesting of structures.
const MAX_DEPTH: u32 = 16;
/// Maximum number of references of a type that are listed.
const MAX_REFERENCES: usize = 1 << 16;
/// Number of words of an application domain that are searched for its list of vtables.
const DOMAIN_WORDS: u64 = 256;
/// Number of leading items that must be vtables for a list to be accepted.
const PROOF: u64 = 8;
/// Bit of a type handle that points to a `MonoType`.
const TYPE: u64 = 2;

/// Reader of Mono's types.
#[derive(Clone, Debug)]
pub(crate) struct Mono {
    vtable: Bound<MonoVTable>,
    /// Bits of [`MonoVTable::gc_bits`] of bridged and of opaque objects.
    bridge_bits: [Option<u64>; 2],
    class: Bound<MonoClass>,
    info: Bound<MonoClassRuntimeInfo>,
    ty: Bound<MonoType>,
    array: Bound<MonoArrayType>,
    field: Bound<MonoClassField>,
    field_bytes: u64,
    generic: Bound<MonoGenericClass>,
    instance: Bound<MonoGenericInst>,
    header: u64,
    bounds: Offset<MonoArray, Addr>,
    /// Size of the fixed part of an array.
    elements: u64,
    array_length: Offset<data::Array, u32>,
    string_length: Offset<Text, u32>,
    characters: Offset<Text, Inline>,
    /// Mask of the flag of managed pointers in `MonoType.modifiers`.
    by_reference: u64,
    enum_class: Option<Addr>,
    nullable_class: Option<Addr>,
}

/// A field of a class, as stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MonoField {
    /// Address of its `MonoType`.
    pub(crate) ty: Addr,
    /// Address of its name, which is in the mapped assembly.
    pub(crate) name: Addr,
    /// Offset from the start of an object, also in structures.
    pub(crate) offset: u64,
    /// Row of the field in the metadata of the image.
    pub(crate) row: u32,
}

/// The type of a field, a parameter or an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MonoForm {
    /// A primitive, a managed pointer, or another type that its element type describes completely.
    Plain(CorElementType),
    /// A class, structure or enum.
    Class(Addr),
    /// An array of this class, with this number of dimensions; 0 for a one-dimensional, zero-based array.
    Array(Addr, u8),
    /// A pointer to a type.
    Pointer(Addr),
}

impl Mono {
    pub(super) fn bind(memory: &Memory, d: &Descriptor) -> Result<Mono, ContractError> {
        let class_in = |name| d.pointer(name).ok().and_then(|at| memory.ptr(at).ok()).filter(|c| !c.is_null());
        Ok(Mono {
            vtable: bind!(d, MonoVTable { klass, domain, vtable, gc_bits? })?,
            bridge_bits: ["MonoBridgeObject", "MonoBridgeOpaqueObject"].map(|name| d.number(name).ok()),
            class: MonoClass::bind_all(d)?,
            info: bind!(d, MonoClassRuntimeInfo { max_domain, domain_vtables })?,
            ty: bind!(d, MonoType { data, attrs, Type, modifiers })?,
            array: bind!(d, MonoArrayType { eklass, rank })?,
            field: bind!(d, MonoClassField { Type, name, offset })?,
            field_bytes: MonoClassField::size(d)?,
            generic: bind!(d, MonoGenericClass { container_class, class_inst, cached_class })?,
            instance: bind!(d, MonoGenericInst { type_argc, type_argv })?,
            header: MonoObject::size(d)?,
            bounds: MonoArray::bounds.bind(d)?,
            elements: data::Array::size(d)?,
            array_length: data::Array::m_NumComponents.bind(d)?,
            string_length: Text::m_StringLength.bind(d)?,
            characters: Text::m_FirstChar.bind(d)?,
            by_reference: d.number("MonoTypeByReference")?,
            enum_class: class_in("EnumClass"),
            nullable_class: class_in("NullableClass"),
        })
    }

    /// The class of the type at `mt`, which must be a class, or a vtable that its class lists.
    pub(crate) fn class_at(&self, memory: &Memory, mt: Addr) -> Result<Option<Addr>, ReadError> {
        let class = self.vtable.read(memory, mt, MonoVTable::klass)?;
        if !class.is_null() && class.is_aligned(memory.ptr_bytes()) && self.vtables(memory, class).any(|(_, vtable)| vtable == mt) {
            return Ok(Some(class));
        }
        Ok(self.is_class(memory, mt).then_some(mt))
    }

    /// Whether a bridge to another collector has said that objects of this type are bridged, and whether that their references are not
    /// followed.
    pub(super) fn bridged(&self, memory: &Memory, mt: Addr) -> [bool; 2] {
        let bits = match self.class_at(memory, mt) {
            Ok(Some(class)) if class != mt => self.vtable.get(memory, mt, MonoVTable::gc_bits).unwrap_or(0),
            _ => 0,
        };
        self.bridge_bits.map(|bit| bit.is_some_and(|bit| u64::from(bits) & bit != 0))
    }

    /// The vtables of a class by domain.
    fn vtables<'m>(&'m self, memory: &'m Memory, class: Addr) -> impl Iterator<Item = (u16, Addr)> + 'm {
        let info = self.class.pointer(memory, class, MonoClass::runtime_info).filter(|at| at.is_aligned(memory.ptr_bytes()));
        let all = info.and_then(|info| {
            let last = self.info.get(memory, info, MonoClassRuntimeInfo::max_domain)?;
            Some((self.info.place(info, MonoClassRuntimeInfo::domain_vtables)?, last.min(MAX_DOMAINS)))
        });
        let word = memory.ptr_bytes();
        all.into_iter().flat_map(move |(list, last)| {
            (0..=last).filter_map(move |i| Some((i, memory.ptr(list.element(u64::from(i), word)).ok().filter(|v| !v.is_null())?)))
        })
    }

    /// Whether a class is at `at`: its two `MonoType`s, one for the class and one for a managed pointer to it, agree.
    fn is_class(&self, memory: &Memory, at: Addr) -> bool {
        let of = |ty: Option<Addr>| {
            let ty = ty?;
            Some((self.ty.get(memory, ty, MonoType::Type)?, self.ty.get(memory, ty, MonoType::data)?, self.is_by_reference(memory, ty)))
        };
        let own = of(self.class.place(at, MonoClass::byval_arg));
        let by_reference = of(self.class.place(at, MonoClass::this_arg));
        let agree = own.zip(by_reference).is_some_and(|(a, b)| (a.0, a.1, false, true) == (b.0, b.1, a.2, b.2) && a.0 != 0);
        agree && self.class.pointer(memory, at, MonoClass::image).is_some_and(|image| memory.has(image))
    }

    fn is_by_reference(&self, memory: &Memory, ty: Addr) -> bool {
        self.ty.get(memory, ty, MonoType::modifiers).is_some_and(|n| u64::from(n) & self.by_reference != 0)
    }

    /// The handle of a class: its first vtable, or the class itself if it has no vtable.
    pub(crate) fn handle(&self, memory: &Memory, class: Addr) -> Addr {
        self.vtables(memory, class).next().map_or(class, |(_, vtable)| vtable)
    }

    fn element(&self, memory: &Memory, class: Addr) -> Result<u8, ReadError> {
        let own = |class| self.ty.read(memory, self.class.at(class, MonoClass::byval_arg)?, MonoType::Type);
        let code = own(class)?;
        if code != CorElementType::GenericInst as u8 {
            return Ok(code);
        }
        let generic = self.class.read(memory, class, MonoClass::generic_class)?;
        own(self.generic.read(memory, generic, MonoGenericClass::container_class)?)
    }

    /// The generic definition of a class, or the class itself.
    fn definition(&self, memory: &Memory, class: Addr) -> Result<Addr, ReadError> {
        if self.class.read(memory, class, MonoClass::class_kind)? & KIND_MASK != KIND_INSTANCE {
            return Ok(class);
        }
        let generic = self.class.read(memory, class, MonoClass::generic_class)?;
        self.generic.read(memory, generic, MonoGenericClass::container_class)
    }

    pub(super) fn read(&self, memory: &Memory, mt: Addr) -> Result<MethodTableInfo, ReadError> {
        let class = self.class_at(memory, mt)?.ok_or(ReadError { address: mt, len: memory.ptr_bytes() })?;
        let element = self.element(memory, class)?;
        let kind = self.class.read(memory, class, MonoClass::class_kind)? & KIND_MASK;
        let parent = self.class.read(memory, class, MonoClass::parent)?;
        let form = CorElementType::of(element);
        let is_string = form == Some(CorElementType::String);
        let is_array = matches!(form, Some(CorElementType::SzArray | CorElementType::Array));
        let definition = self.definition(memory, class)?;
        let is_value = form.is_some_and(is_value);
        let is_interface = || {
            let is_defined = matches!(kind, KIND_DEFINITION | KIND_GENERIC_DEFINITION | KIND_INSTANCE);
            is_defined && self.class.get(memory, definition, MonoClass::flags).is_some_and(|flags| flags & INTERFACE != 0)
        };
        let category = match form {
            Some(CorElementType::SzArray) => Category::SzArray,
            Some(CorElementType::Array) => Category::Array,
            _ if is_value => Category::ValueType,
            _ if is_interface() => Category::Interface,
            _ => Category::Class,
        };
        let mut flags = u32::from(element);
        if is_value && Some(parent) == self.enum_class {
            flags |= IS_ENUM;
        }
        if self.nullable_class == Some(definition) {
            flags |= IS_NULLABLE;
        }
        let instance_size = self.class.read(memory, class, MonoClass::instance_size)?;
        // The bounds of an array follow its elements, and are counted in the base size.
        let dimensions = || -> Result<u64, ReadError> {
            let rank = self.class.read(memory, class, MonoClass::rank)?;
            Ok(if category == Category::Array { u64::from(rank).saturating_mul(8) } else { 0 })
        };
        let base_size = match category {
            Category::Array | Category::SzArray => u32::try_from(self.elements.saturating_add(dimensions()?)).unwrap_or(u32::MAX),
            // The characters end in a NUL.
            _ if is_string => u32::try_from(self.characters.bytes().saturating_add(2)).unwrap_or(u32::MAX),
            _ => instance_size,
        };
        let component_size = if is_array {
            self.class.read(memory, class, MonoClass::element_size)?
        } else if is_string {
            2
        } else {
            0
        };
        Ok(MethodTableInfo {
            address: mt,
            flags,
            base_size,
            component_size,
            contains_pointers: !is_string,
            is_collectible: false,
            has_finalizer: false,
            category,
            generics: match kind {
                KIND_INSTANCE => Generics::Instance,
                KIND_GENERIC_DEFINITION => Generics::Definition,
                _ => Generics::None,
            },
            is_array,
            is_string,
            is_free: false,
            class_or_canonical: class,
            parent: if parent.is_null() { parent } else { self.handle(memory, parent) },
        })
    }

    pub(super) fn is_valid(&self, memory: &Memory, mt: Addr) -> Result<bool, ReadError> {
        self.class_at(memory, mt).map(|class| class.is_some())
    }

    pub(super) fn element_type(&self, memory: &Memory, mt: Addr) -> Result<Addr, ReadError> {
        let class = self.needed(memory, mt)?;
        self.class.read(memory, class, MonoClass::element_class).map(|element| self.handle(memory, element))
    }

    fn needed(&self, memory: &Memory, mt: Addr) -> Result<Addr, ReadError> {
        self.class_at(memory, mt)?.ok_or(ReadError { address: mt, len: memory.ptr_bytes() })
    }

    pub(super) fn image(&self, memory: &Memory, info: &MethodTableInfo) -> Result<Addr, ReadError> {
        self.class.read(memory, info.class_or_canonical, MonoClass::image)
    }

    pub(super) fn rid(&self, memory: &Memory, info: &MethodTableInfo) -> Result<u32, ReadError> {
        if info.is_array {
            return Ok(0);
        }
        self.class.read(memory, info.class_or_canonical, MonoClass::type_token).map(|token| token & 0x00ff_ffff)
    }

    /// The number of dimensions of an array.
    pub(super) fn rank(&self, memory: &Memory, info: &MethodTableInfo) -> Option<u8> {
        self.class.get(memory, info.class_or_canonical, MonoClass::rank)
    }

    /// The definition and the arguments of a generic instance.
    pub(super) fn instance(&self, memory: &Memory, info: &MethodTableInfo) -> Result<(Addr, Vec<Addr>), ReadError> {
        let generic = self.class.read(memory, info.class_or_canonical, MonoClass::generic_class)?;
        let definition = self.generic.read(memory, generic, MonoGenericClass::container_class)?;
        let inst = self.generic.read(memory, generic, MonoGenericClass::class_inst)?;
        let count = u64::from(self.instance.read(memory, inst, MonoGenericInst::type_argc)? & 0x003f_ffff).min(MAX_ARGUMENTS);
        let list = self.instance.at(inst, MonoGenericInst::type_argv)?;
        let argument = |i| memory.ptr(list.element(i, memory.ptr_bytes())).map(|ty| self.type_handle(memory, ty));
        Ok((self.handle(memory, definition), (0..count).map(argument).collect::<Result<_, _>>()?))
    }

    /// The handle of the type described by the `MonoType` at `ty`.
    pub(crate) fn type_handle(&self, memory: &Memory, ty: Addr) -> Addr {
        match self.form(memory, ty) {
            Some(MonoForm::Class(class)) => self.handle(memory, class),
            _ => Addr(ty.0 | TYPE),
        }
    }

    /// The form of the type described by the `MonoType` at `ty`, which may have bit 1 set.
    pub(crate) fn form(&self, memory: &Memory, ty: Addr) -> Option<MonoForm> {
        let ty = Addr(ty.0 & !TYPE);
        if self.is_by_reference(memory, ty) {
            return Some(MonoForm::Plain(CorElementType::ByRef));
        }
        let data = self.ty.get(memory, ty, MonoType::data)?;
        Some(match CorElementType::of(self.ty.get(memory, ty, MonoType::Type)?)? {
            CorElementType::Class | CorElementType::ValueType => MonoForm::Class(data),
            CorElementType::GenericInst => MonoForm::Class(self.generic.pointer(memory, data, MonoGenericClass::cached_class)?),
            CorElementType::SzArray => MonoForm::Array(data, 0),
            CorElementType::Array => {
                let rank = self.array.get(memory, data, MonoArrayType::rank)?;
                MonoForm::Array(self.array.pointer(memory, data, MonoArrayType::eklass)?, rank)
            }
            CorElementType::Ptr => MonoForm::Pointer(data),
            plain => MonoForm::Plain(plain),
        })
    }

    /// The element type of a field whose type the `MonoType` at `ty` describes: `Class` for references, `ValueType` for structures, the
    /// underlying type for enums.
    pub(crate) fn field_element(&self, memory: &Memory, ty: Addr) -> Option<CorElementType> {
        Some(match self.form(memory, ty)? {
            MonoForm::Class(class) => self.class_element(memory, class)?,
            MonoForm::Array(..) => CorElementType::Class,
            MonoForm::Pointer(_) => CorElementType::Ptr,
            MonoForm::Plain(CorElementType::String | CorElementType::Object) => CorElementType::Class,
            MonoForm::Plain(plain) => plain,
        })
    }

    /// The element type of a field of the class: see [`Mono::field_element`].
    fn class_element(&self, memory: &Memory, class: Addr) -> Option<CorElementType> {
        let element = CorElementType::of(self.element(memory, class).ok()?)?;
        if !is_value(element) {
            return Some(CorElementType::Class);
        }
        if self.class.get(memory, class, MonoClass::parent) == self.enum_class && self.enum_class.is_some() {
            // The element class of an enum is the class of its values.
            let values = self.class.pointer(memory, class, MonoClass::element_class)?;
            return CorElementType::of(self.element(memory, values).ok()?);
        }
        Some(element)
    }

    pub(super) fn value_type(&self, memory: &Memory, info: &MethodTableInfo) -> Option<CorElementType> {
        self.class_element(memory, info.class_or_canonical)
    }

    pub(super) fn is_enum(flags: u32) -> bool {
        flags & IS_ENUM != 0
    }

    pub(super) fn is_nullable(flags: u32) -> bool {
        flags & IS_NULLABLE != 0
    }

    /// The element type of this type if it is a primitive.
    pub(super) fn primitive(info: &MethodTableInfo) -> Option<CorElementType> {
        let element = CorElementType::of(u8::try_from(info.flags & 0xff).ok()?)?;
        (is_value(element) && !matches!(element, CorElementType::ValueType | CorElementType::TypedByRef)).then_some(element)
    }

    /// The instance fields that a class declares.
    pub(crate) fn own_fields(&self, memory: &Memory, class: Addr) -> Option<Vec<MonoField>> {
        self.declared(memory, class, |attributes| attributes & (STATIC | LITERAL) == 0)
    }

    /// The static fields that a class declares. The offsets of the fields are relative to the start of the class's static fields.
    pub(crate) fn static_fields(&self, memory: &Memory, class: Addr) -> Option<Vec<MonoField>> {
        self.declared(memory, class, |attributes| attributes & (STATIC | LITERAL) == STATIC)
    }

    fn declared(&self, memory: &Memory, class: Addr, wanted: impl Fn(u16) -> bool) -> Option<Vec<MonoField>> {
        let definition = self.definition(memory, class).ok()?;
        let count = self.class.get(memory, definition, MonoClass::field_count)?.min(MAX_FIELDS);
        let first = self.class.get(memory, definition, MonoClass::first_field_idx)?;
        let list = match self.class.get(memory, class, MonoClass::fields)? {
            at if at.is_null() => return Some(Vec::new()),
            at => at,
        };
        let mut out = Vec::new();
        for i in 0..count {
            let at = list.element(u64::from(i), self.field_bytes);
            let ty = self.field.get(memory, at, MonoClassField::Type)?;
            // Fields of a type that was not used yet have no types.
            if ty.is_null() || !wanted(self.ty.get(memory, ty, MonoType::attrs)?) {
                continue;
            }
            // Thread statics have no offset.
            let Ok(offset) = u64::try_from(self.field.get(memory, at, MonoClassField::offset)?) else { continue };
            let name = self.field.get(memory, at, MonoClassField::name)?;
            out.push(MonoField { ty, name, offset, row: first.saturating_add(i).saturating_add(1) });
        }
        Some(out)
    }

    /// The address of the static fields of the class whose vtable is at `vtable`. If the class has no static fields, this is other data.
    pub(crate) fn statics_at(&self, memory: &Memory, vtable: Addr) -> Option<Addr> {
        let class = self.vtable.get(memory, vtable, MonoVTable::klass)?;
        let methods = u64::from(self.class.get(memory, class, MonoClass::vtable_size)?);
        let list = self.vtable.place(vtable, MonoVTable::vtable)?;
        memory.ptr(list.element(methods, memory.ptr_bytes())).ok().filter(|at| !at.is_null())
    }

    /// The vtables in the application domain of the vtable at `vtable`. The domain's list of vtables is found by its contents.
    pub(crate) fn vtables_of_domain(&self, memory: &Memory, vtable: Addr, most: usize) -> Vec<Addr> {
        let word = memory.ptr_bytes();
        let is_vtable =
            |at: Addr| at.is_aligned(word) && self.class_at(memory, at).is_ok_and(|class| class.is_some_and(|class| class != at));
        let Some(domain) = self.vtable.get(memory, vtable, MonoVTable::domain) else { return Vec::new() };
        for at in (0..DOMAIN_WORDS).filter_map(|i| memory.ptr(domain.element(i, word)).ok()).filter(|at| at.is_aligned(word)) {
            // A `GPtrArray`: the address of the pointers, then their number.
            let (Ok(list), Ok(count)) = (memory.ptr(at), memory.u32(at.plus(word))) else { continue };
            let item = |i: u64| memory.ptr(list.element(i, word)).ok();
            if count > 0 && list.is_aligned(word) && (0..u64::from(count).min(PROOF)).all(|i| item(i).is_some_and(is_vtable)) {
                return (0..u64::from(count)).map_while(item).take(most).collect();
            }
        }
        Vec::new()
    }

    /// A class and its base types, the root first.
    pub(crate) fn chain(&self, memory: &Memory, class: Addr) -> Option<Vec<Addr>> {
        let (mut chain, mut at) = (Vec::new(), class);
        while !at.is_null() {
            if chain.len() >= MAX_BASES {
                return None;
            }
            chain.push(at);
            at = self.class.get(memory, at, MonoClass::parent)?;
        }
        chain.reverse();
        Some(chain)
    }

    /// Adds the offsets of the references in an instance of `class` to `out`, each plus `shift`.
    fn references(&self, memory: &Memory, class: Addr, shift: i64, depth: u32, out: &mut Vec<u64>) -> Option<()> {
        for class in self.chain(memory, class)? {
            for field in self.own_fields(memory, class)? {
                let at = field.offset.checked_add_signed(shift)?;
                match self.field_element(memory, field.ty)? {
                    CorElementType::ValueType if depth < MAX_DEPTH => {
                        let Some(MonoForm::Class(inner)) = self.form(memory, field.ty) else { continue };
                        // Field offsets of a structure include the object header of its boxed form.
                        let shift = i64::try_from(at).ok()?.checked_sub(i64::try_from(self.header).ok()?)?;
                        self.references(memory, inner, shift, depth.saturating_add(1), out)?;
                    }
                    element if element.is_reference() => out.push(at),
                    _ => {}
                }
                if out.len() > MAX_REFERENCES {
                    return None;
                }
            }
        }
        Some(())
    }

    /// The references of the objects of a type.
    pub(super) fn gc_desc(&self, memory: &Memory, info: &MethodTableInfo, afford: impl FnOnce(u64) -> bool) -> GcDesc {
        self.described(memory, info).filter(|desc| afford(desc.items())).unwrap_or(GcDesc::Unknown)
    }

    fn described(&self, memory: &Memory, info: &MethodTableInfo) -> Option<GcDesc> {
        if info.is_string {
            return Some(GcDesc::None);
        }
        let (class, word) = (info.class_or_canonical, memory.ptr_bytes());
        let mut offsets = Vec::new();
        if !info.is_array {
            self.references(memory, class, 0, 0, &mut offsets)?;
            offsets.sort_unstable();
            offsets.dedup();
            let size = i64::from(info.base_size);
            let series = runs(&offsets, word)
                .into_iter()
                .map(|(start, bytes)| Some(Series { start, size: i64::try_from(bytes).ok()?.checked_sub(size)? }));
            let series: Vec<Series> = series.collect::<Option<_>>()?;
            return Some(if series.is_empty() { GcDesc::None } else { GcDesc::Series(series) });
        }
        let element = self.class.get(memory, class, MonoClass::element_class)?;
        match self.class_element(memory, element)? {
            element if element.is_reference() => {
                Some(GcDesc::Series(vec![Series { start: self.elements, size: i64::from(info.base_size).checked_neg()? }]))
            }
            CorElementType::ValueType => {
                self.references(memory, element, i64::try_from(self.header).ok()?.checked_neg()?, 0, &mut offsets)?;
                offsets.sort_unstable();
                offsets.dedup();
                let runs = runs(&offsets, word);
                let Some((first, _)) = runs.first().copied() else { return Some(GcDesc::None) };
                let starts = runs.iter().skip(1).map(|(start, _)| *start);
                // The first run of the next element follows the last run of an element.
                let next = starts.chain([first.checked_add(u64::from(info.component_size))?]);
                let items = runs.iter().zip(next).map(|((start, bytes), next)| {
                    let skip = next.checked_sub(start.checked_add(*bytes)?)?;
                    Some(ValueSeries { pointers: bytes.checked_div(word)?, skip })
                });
                let tail = u64::from(info.base_size).checked_sub(self.elements)?;
                Some(GcDesc::ValueSeries { start: self.elements.checked_add(first)?, items: items.collect::<Option<_>>()?, tail })
            }
            _ => Some(GcDesc::None),
        }
    }

    /// Offset of the length in an object of a type of variable size.
    pub(super) fn length_at(&self, info: &MethodTableInfo) -> u64 {
        if info.is_string { self.string_length.bytes() } else { self.array_length.bytes() }
    }

    /// Offset of the first element of an array.
    pub(super) fn elements(&self) -> u64 {
        self.elements
    }

    /// Size of the header of an object: vtable and synchronization word.
    pub(super) fn header(&self) -> u64 {
        self.header
    }

    /// The lengths and lower bounds of the dimensions of the array at `array`.
    pub(super) fn bounds(&self, memory: &Memory, info: &MethodTableInfo, array: Addr) -> Option<Vec<(u32, i32)>> {
        let list = self.bounds.get(memory, array).filter(|at| !at.is_null())?;
        let rank = u64::from(self.rank(memory, info)?);
        let bound = |i| {
            let at = list.element(i, 8);
            Some((memory.u32(at).ok()?, memory.i32(at.plus(4)).ok()?))
        };
        (0..rank).map(bound).collect()
    }
}

/// Whether values of this element type are not references.
fn is_value(element: CorElementType) -> bool {
    use CorElementType as E;
    matches!(
        element,
        E::Boolean | E::Char | E::I1 | E::U1 | E::I2 | E::U2 | E::I4 | E::U4 | E::I8 | E::U8 | E::R4 | E::R8 | E::I | E::U | E::ValueType
    ) || element == E::TypedByRef
}

/// Runs of adjacent references: start and bytes of each.
fn runs(offsets: &[u64], word: u64) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for at in offsets {
        match out.last_mut() {
            Some((start, bytes)) if start.saturating_add(*bytes) == *at => *bytes = bytes.saturating_add(word),
            _ => out.push((*at, word)),
        }
    }
    out
}
