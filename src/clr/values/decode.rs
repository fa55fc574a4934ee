//! Decodes values.

use std::sync::Arc;

use serde_json::Value;

use super::enums::Enums;
use super::plain::{self, Text};
use super::{ArrayShape, ValueLimits};
use crate::base::{Addr, CorElementType, Name, thousands, utf16};
use crate::clr::fields::{Definition, Field, Types};
use crate::clr::method_table::{Category, MethodTableInfo};
use crate::clr::render::TYPE_DESC;
use crate::memory::Memory;
use crate::model::{FieldValue, ValueKind};

/// Address and type of a value.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Address of the value.
    pub address: Addr,
    /// Element type.
    pub element: CorElementType,
    /// Method table of the type, for value types.
    pub method_table: Option<Addr>,
    /// Definition of the type, for value types.
    pub definition: Option<Definition>,
    /// Size in bytes, if known from the surrounding layout.
    pub bytes: Option<u64>,
}

/// A value without the name of its field.
#[derive(Clone, Debug)]
pub(super) struct Decoded {
    pub(super) kind: ValueKind,
    pub(super) text: Text,
    pub(super) truncated: bool,
    pub(super) object: Option<Addr>,
    pub(super) object_type: Option<Name>,
    pub(super) fields: Vec<FieldValue>,
}

impl Decoded {
    pub(super) fn new(kind: ValueKind, text: Text) -> Decoded {
        Decoded { kind, text, truncated: false, object: None, object_type: None, fields: Vec::new() }
    }

    /// A result without a value.
    pub(super) fn bare(kind: ValueKind, text: &str) -> Decoded {
        Decoded::new(kind, Text { value: Value::Null, text: text.into() })
    }

    pub(super) fn absent() -> Decoded {
        Decoded::bare(ValueKind::Absent, "<not in the dump>")
    }

    pub(super) fn invalid(text: String) -> Decoded {
        Decoded::new(ValueKind::Invalid, Text { value: Value::Null, text })
    }
}

/// Remaining limits while a value is being decoded.
#[derive(Debug)]
pub(super) struct Budget {
    depth: u32,
    fields: u32,
}

/// Additional texts for objects, such as the target of a delegate or the text of an IP address.
pub(crate) trait ObjectTexts: std::fmt::Debug + Send + Sync {
    /// The text for the object at `object` with this method table, if there is one.
    fn text(&self, method_table: Addr, object: Addr) -> Option<String>;
}

/// Reader of values.
#[derive(Debug)]
pub struct Values {
    pub(super) types: Arc<Types>,
    pub(super) memory: Arc<Memory>,
    pub(super) limits: ValueLimits,
    enums: Enums,
    texts: Option<Arc<dyn ObjectTexts>>,
}

impl Values {
    /// Creates a reader of values of these types.
    pub fn new(types: &Arc<Types>, limits: ValueLimits) -> Values {
        Values { types: Arc::clone(types), memory: Arc::clone(&types.memory), limits, enums: Enums::default(), texts: None }
    }

    /// Adds texts for references to objects.
    #[must_use]
    pub(crate) fn with_texts(self, texts: Arc<dyn ObjectTexts>) -> Values {
        Values { texts: Some(texts), ..self }
    }

    /// The types.
    pub fn types(&self) -> &Arc<Types> {
        &self.types
    }

    /// The limits.
    pub fn limits(&self) -> &ValueLimits {
        &self.limits
    }

    /// Number of elements or characters of an object of variable size.
    pub fn component_count(&self, address: Addr) -> Option<u32> {
        self.types.objects().component_count(address)
    }

    /// Method table of the object at `address`, if there is one.
    pub fn method_table(&self, address: Addr) -> Option<Addr> {
        let mt = self.types.objects().method_table(address)?;
        (self.types.names().method_tables().is_valid(mt) == Ok(true)).then_some(mt)
    }

    /// All instance fields of the object at `address` with method table `mt`; `None` if unknown.
    pub fn fields(&self, mt: Addr, address: Addr) -> Option<Vec<FieldValue>> {
        let list = self.types.instance_fields(mt)?;
        let info = self.types.names().method_tables().read(mt).ok()?;
        let ends = ends(&list, self.instance_end(&info));
        let start = self.start_of(&info, address);
        Some(list.iter().zip(ends).map(|(f, end)| self.field_within(f, start, 0, end, &mut self.budget())).collect())
    }

    /// The address to which the field offsets of the object at `address` are relative. In a box, this address is one word before the value.
    fn start_of(&self, info: &MethodTableInfo, address: Addr) -> Addr {
        let tables = self.types.names().method_tables();
        let more = if info.category == Category::ValueType { tables.boxed_at().saturating_sub(self.memory.ptr_bytes()) } else { 0 };
        address.plus(more)
    }

    /// The instance field with this index of the type at `mt`. `start` is the address of an object. For an unboxed structure, `start` is one
    /// word before the data.
    pub fn nth_field(&self, mt: Addr, index: usize, start: Addr) -> Option<FieldValue> {
        let list = self.types.instance_fields(mt)?;
        let info = self.types.names().method_tables().read(mt).ok()?;
        let end = ends(&list, self.instance_end(&info)).get(index).copied().flatten();
        Some(self.field_within(list.get(index)?, start, 0, end, &mut self.budget()))
    }

    /// The value of the constant `name` of the enum with this `definition`.
    pub(crate) fn constant(&self, definition: Definition, name: &str) -> Option<u64> {
        self.enums.constant(&self.types, definition, name)
    }

    /// Address and type of a field; `start` as in [`Values::nth_field`].
    pub fn place(field: &Field, start: Addr) -> Place {
        place_of(field, start.plus(field.offset), None)
    }

    /// The value at `place`, for a field with this name.
    pub fn value(&self, name: String, type_name: String, place: &Place) -> FieldValue {
        let decoded = self.decode(place, &mut self.budget());
        finish(name, type_name, None, None, Some(place.address), decoded)
    }

    /// The value in a register. `place` gives the type, and the address in `place` is ignored. `None` for structures, which are only read from
    /// memory.
    pub fn in_register(&self, name: String, type_name: String, place: &Place, register: u64) -> Option<FieldValue> {
        let decoded = if place.element.is_reference() {
            self.reference_to(Addr(register))
        } else {
            let width = self.width_of(place.element)?;
            let mask = u64::MAX.checked_shr(u64::BITS.saturating_sub(width))?;
            self.primitive_of(place, place.element, register & mask, width)?
        };
        Some(finish(name, type_name, None, None, None, decoded))
    }

    /// The result for a static field whose location is unknown, or whose memory is not allocated yet.
    pub fn nowhere(&self, field: &Field, kind: ValueKind, text: &str) -> FieldValue {
        let declaring = Some(self.types.names().name(field.declaring).to_name());
        finish(field.name.clone(), field.type_name.clone(), declaring, None, None, Decoded::bare(kind, text))
    }

    /// The value of a static field at `address`.
    pub fn static_field(&self, field: &Field, address: Addr) -> FieldValue {
        let decoded = self.decode(&place_of(field, address, None), &mut self.budget());
        let declaring = Some(self.types.names().name(field.declaring).to_name());
        finish(field.name.clone(), field.type_name.clone(), declaring, None, Some(address), decoded)
    }

    /// Elements `start` to `start + count` of an array.
    pub fn elements(&self, shape: &ArrayShape, start: u64, count: u64) -> Vec<FieldValue> {
        let type_name = self.types.names().handle_name(shape.element).name.clone();
        let place = self.element_place(shape);
        let range = start.min(shape.length)..start.saturating_add(count).min(shape.length);
        // An array of numbers may contain text in some encoding, so numbers in arrays are hidden like text.
        let hidden = self.memory.hides_contents() && self.width_of(place.element).is_some();
        let value = |n: u64| {
            let address = shape.data.element(n, shape.element_bytes);
            if hidden && self.memory.has(address) {
                let decoded = Decoded::bare(ValueKind::Raw, Memory::HIDDEN);
                return finish(shape.index(n), type_name.clone(), None, None, Some(address), decoded);
            }
            self.value(shape.index(n), type_name.clone(), &Place { address, ..place })
        };
        range.map(value).collect()
    }

    /// Type of an array's elements, with the address of the first element.
    pub fn element_place(&self, shape: &ArrayShape) -> Place {
        let plain =
            |element| Place { address: shape.data, element, method_table: None, definition: None, bytes: Some(shape.element_bytes) };
        if shape.element.0 & TYPE_DESC != 0 {
            return plain(CorElementType::Ptr);
        }
        let info = self.types.names().method_tables().read(shape.element).ok();
        match info.as_ref().map(|i| (i, self.types.element(i))) {
            Some((i, Some(element))) if i.category == Category::ValueType => {
                Place { method_table: Some(i.address), definition: self.types.definition(i.address), ..plain(element) }
            }
            Some((_, Some(element))) => plain(element),
            // Elements of unknown type are shown as bytes.
            _ => plain(CorElementType::ValueType),
        }
    }

    /// The value in the box at `address`, for structures, enums and primitives.
    pub fn boxed(&self, info: &MethodTableInfo, address: Addr) -> Option<FieldValue> {
        let place = self.box_place(info, address)?;
        Some(self.value("value".into(), self.types.names().name(info.address).name.clone(), &place))
    }

    /// Address and type of the boxed value at `address`; `None` if the value is not a structure, enum or primitive.
    pub fn box_place(&self, info: &MethodTableInfo, address: Addr) -> Option<Place> {
        (info.category == Category::ValueType && !info.is_string).then_some(())?;
        Some(Place {
            address: address.plus(self.types.names().method_tables().boxed_at()),
            element: self.types.element(info)?,
            method_table: Some(info.address),
            definition: self.types.definition(info.address),
            bytes: None,
        })
    }

    /// The text of the string object at `address`, with its length in characters; `None` if the text is absent.
    pub fn string(&self, address: Addr) -> Option<(String, u32)> {
        self.types.strings().text(address, self.limits.string_chars)
    }

    fn budget(&self) -> Budget {
        Budget { depth: self.limits.depth, fields: self.limits.fields }
    }

    /// Offset of the end of an object's fields, from its start.
    pub(super) fn instance_end(&self, info: &MethodTableInfo) -> u64 {
        self.types.names().method_tables().fields_end(info)
    }

    /// Decodes a field. `shift` is subtracted from the displayed offset. In structures, `shift` is the size of the method table pointer, which
    /// an unboxed structure does not have.
    fn field_within(&self, field: &Field, start: Addr, shift: u64, end: Option<u64>, budget: &mut Budget) -> FieldValue {
        let address = start.plus(field.offset);
        let bytes = end.and_then(|e| e.checked_sub(field.offset));
        let decoded = self.decode(&place_of(field, address, bytes), budget);
        let declaring = Some(self.types.names().name(field.declaring).to_name());
        let offset = Some(field.offset.saturating_sub(shift));
        finish(field.name.clone(), field.type_name.clone(), declaring, offset, Some(address), decoded)
    }

    pub(super) fn decode(&self, place: &Place, budget: &mut Budget) -> Decoded {
        if place.element.is_reference() {
            return self.reference(place.address);
        }
        let decoded = match place.element {
            CorElementType::ValueType => self.structure(place, budget),
            element => self.primitive(place, element),
        };
        decoded.unwrap_or_else(Decoded::absent)
    }

    fn reference(&self, address: Addr) -> Decoded {
        self.memory.ptr(address).map_or_else(|_| Decoded::absent(), |object| self.reference_to(object))
    }

    fn reference_to(&self, object: Addr) -> Decoded {
        if object.is_null() {
            return Decoded::bare(ValueKind::Null, "null");
        }
        let mut out = Decoded::bare(ValueKind::Object, &object.to_string());
        out.object = Some(object);
        let Some(mt) = self.types.objects().method_table(object) else {
            out.text.text = format!("{object} <not in the dump>");
            return out;
        };
        let tables = self.types.names().method_tables();
        match tables.is_valid(mt) {
            Ok(true) => {}
            Ok(false) => {
                out.kind = ValueKind::Invalid;
                out.text.text = format!("{object} <not an object>");
                return out;
            }
            Err(_) => {
                out.text.text = format!("{object} <its type is not in the dump>");
                return out;
            }
        }
        let name = self.types.names().name(mt).to_name();
        out.text.text = format!("{object} {name}");
        out.object_type = Some(name);
        let Ok(info) = tables.read(mt) else { return out };
        if info.is_string {
            if let Some((units, length)) = self.types.strings().units(object, self.limits.string_chars) {
                out.kind = ValueKind::String;
                out.truncated = length > self.limits.string_chars;
                out.text = Text { text: plain::quoted(&units, out.truncated), value: utf16(units).into() };
            }
        } else if info.is_array
            && let Some(shape) = self.array(&info, object)
        {
            let lengths: Vec<String> = shape.dimensions.iter().map(|d| thousands(d.length.into())).collect();
            let elements = if lengths == ["1"] { "element" } else { "elements" };
            out.text.text = format!("{} ({} {elements})", out.text.text, lengths.join("×"));
        } else if let Some(text) = self.texts.as_ref().and_then(|t| t.text(mt, object)) {
            out.text.text = format!("{} {}", out.text.text, text);
        }
        out
    }

    /// Width of a primitive or a pointer in bits.
    fn width_of(&self, element: CorElementType) -> Option<u32> {
        u32::try_from(element.primitive_bytes(self.memory.ptr_bytes())?).ok()?.checked_mul(8)
    }

    /// The bits of a primitive, zero-extended, and the width of the primitive in bits.
    fn bits(&self, at: Addr, element: CorElementType) -> Option<(u64, u32)> {
        let width = self.width_of(element)?;
        let bits = match width {
            8 => self.memory.u8(at).ok()?.into(),
            16 => self.memory.u16(at).ok()?.into(),
            32 => self.memory.u32(at).ok()?.into(),
            _ => self.memory.u64(at).ok()?,
        };
        Some((bits, width))
    }

    fn primitive(&self, place: &Place, element: CorElementType) -> Option<Decoded> {
        let Some((bits, width)) = self.bits(place.address, element) else {
            return (!self.memory.has(place.address)).then(Decoded::absent).or_else(|| self.raw(place));
        };
        self.primitive_of(place, element, bits, width)
    }

    fn primitive_of(&self, place: &Place, element: CorElementType, bits: u64, width: u32) -> Option<Decoded> {
        let tables = self.types.names().method_tables();
        let is_enum = match place.method_table.and_then(|mt| tables.read(mt).ok()) {
            Some(info) => tables.is_enum(&info),
            // If the signature has a value type and the runtime stores a primitive, the type is an enum.
            None => place.definition.is_some_and(|d| !self.types.is_primitive_definition(d)),
        };
        if is_enum && let (Some(definition), Some(number)) = (place.definition, self.number(element, bits)) {
            return Some(Decoded::new(ValueKind::Enum, self.enums.name(&self.types, definition, bits, width, &number)));
        }
        Some(match element {
            CorElementType::Boolean if bits > 1 => {
                Decoded::new(ValueKind::Bool, Text { value: true.into(), text: format!("true ({bits})") })
            }
            CorElementType::Boolean => Decoded::new(ValueKind::Bool, Text { value: (bits != 0).into(), text: (bits != 0).to_string() }),
            CorElementType::Char if self.memory.hides_contents() => Decoded::bare(ValueKind::Char, Memory::HIDDEN),
            CorElementType::Char => Decoded::new(ValueKind::Char, plain::character(u16::try_from(bits).ok()?)),
            CorElementType::R4 => Decoded::new(ValueKind::Float, plain::single(f32::from_bits(u32::try_from(bits).ok()?))),
            CorElementType::R8 => {
                let f = f64::from_bits(bits);
                Decoded::new(ValueKind::Float, plain::float(f, f.to_string()))
            }
            _ if element.is_native_int() => Decoded::new(ValueKind::Nint, Text::same(Addr(bits).to_string())),
            _ if element.is_pointer() => Decoded::new(ValueKind::Pointer, Text::same(Addr(bits).to_string())),
            _ => Decoded::new(ValueKind::Int, plain::integer(element, bits)?),
        })
    }

    /// An enum or integer as a number.
    fn number(&self, element: CorElementType, bits: u64) -> Option<Text> {
        match element {
            CorElementType::Boolean | CorElementType::Char => plain::integer(CorElementType::U8, bits),
            CorElementType::I | CorElementType::U => Some(Text::same(Addr(bits).to_string())),
            _ => plain::integer(element, bits),
        }
    }

    /// Raw bytes of a value of unknown layout.
    pub(super) fn raw(&self, place: &Place) -> Option<Decoded> {
        let Some(bytes) = place.bytes.filter(|n| *n > 0) else {
            return self.memory.has(place.address).then(|| Decoded::bare(ValueKind::Raw, "<layout unknown>"));
        };
        if self.memory.hides_contents() {
            return self.memory.has(place.address).then(|| Decoded::bare(ValueKind::Raw, Memory::HIDDEN));
        }
        let shown = bytes.min(self.limits.raw_bytes);
        let mut out = Decoded::new(ValueKind::Raw, plain::hex(&self.memory.bytes(place.address, shown).ok()?));
        out.truncated = shown < bytes;
        Some(out)
    }

    fn structure(&self, place: &Place, budget: &mut Budget) -> Option<Decoded> {
        let tables = self.types.names().method_tables();
        let info = place.method_table.and_then(|mt| tables.read(mt).ok());
        let Some((info, list)) = info.and_then(|i| Some((i, self.types.instance_fields(i.address)?))) else { return self.raw(place) };
        let pointer = self.memory.ptr_bytes();
        // Field offsets count a method table pointer before the data, as in a box.
        let start = place.address.minus(pointer)?;
        if tables.is_nullable(&info) {
            return self.nullable(&list, start, budget);
        }
        if self.types.is_core(&info) {
            let name = self.types.names().name(info.address);
            if let Some(known) = self.known(&name.name, &list, start) {
                return Some(known);
            }
        }
        if budget.depth == 0 {
            let mut out = Decoded::bare(ValueKind::Struct, "{…}");
            out.truncated = true;
            return Some(out);
        }
        budget.depth = budget.depth.saturating_sub(1);
        let ends = ends(&list, self.instance_end(&info));
        let mut out = Decoded::bare(ValueKind::Struct, "");
        for (field, end) in list.iter().zip(ends) {
            if budget.fields == 0 {
                out.truncated = true;
                break;
            }
            budget.fields = budget.fields.saturating_sub(1);
            out.fields.push(self.field_within(field, start, pointer, end, budget));
        }
        budget.depth = budget.depth.saturating_add(1);
        out.truncated |= self.is_longer(&info, &list);
        out.text.text = self.summary(&out.fields, out.truncated);
        Some(out)
    }

    /// Whether a structure is larger than its only field. Inline arrays and fixed buffers are such structures, because they have a field for
    /// the first element only.
    fn is_longer(&self, info: &MethodTableInfo, list: &[Field]) -> bool {
        let [one] = list else { return false };
        let word = self.memory.ptr_bytes();
        let bytes = one.element.primitive_bytes(word).or(one.is_reference().then_some(word));
        // A difference of less than a word may be padding.
        bytes.is_some_and(|b| self.instance_end(info).saturating_sub(word).saturating_sub(b) >= word)
    }

    fn nullable(&self, list: &[Field], start: Addr, budget: &mut Budget) -> Option<Decoded> {
        let [has, value] = list else { return None };
        if self.memory.u8(start.plus(has.offset)).ok()? == 0 {
            return Some(Decoded::bare(ValueKind::Null, "null"));
        }
        Some(self.decode(&place_of(value, start.plus(value.offset), None), budget))
    }

    fn summary(&self, fields: &[FieldValue], truncated: bool) -> String {
        let mut out = String::from("{");
        for (i, f) in fields.iter().enumerate() {
            if out.len() > self.limits.text_chars {
                out.push('…');
                break;
            }
            out.push_str(if i > 0 { ", " } else { "" });
            out.push_str(&f.name);
            out.push('=');
            let mut rest = f.text.chars();
            out.extend(rest.by_ref().take(self.limits.text_chars));
            out.push_str(if rest.next().is_some() { "…" } else { "" });
        }
        out.push_str(if truncated { ", …}" } else { "}" });
        out
    }
}

fn place_of(field: &Field, address: Addr, bytes: Option<u64>) -> Place {
    Place { address, element: field.element, method_table: field.method_table, definition: field.definition, bytes }
}

/// Upper limit of the end of each field: the start of the next field, or the end of the object.
fn ends(list: &[Field], end: u64) -> Vec<Option<u64>> {
    let mut starts: Vec<u64> = list.iter().map(|f| f.offset).collect();
    starts.sort_unstable();
    let next = |offset: u64| starts.get(starts.partition_point(|s| *s <= offset)).copied().unwrap_or(end);
    list.iter().map(|f| Some(next(f.offset))).collect()
}

fn finish(
    name: String,
    type_name: String,
    declaring_type: Option<Name>,
    offset: Option<u64>,
    address: Option<Addr>,
    decoded: Decoded,
) -> FieldValue {
    FieldValue {
        name,
        type_name,
        declaring_type,
        offset,
        address,
        kind: decoded.kind,
        value: decoded.text.value,
        text: decoded.text.text,
        truncated: decoded.truncated,
        object: decoded.object,
        object_type: decoded.object_type,
        fields: decoded.fields,
    }
}
