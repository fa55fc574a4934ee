//! Element types: the runtime's codes for kinds of types (ECMA-335 II.23.1.16; `corhdr.h`, `corpriv.h`).

use serde::{Serialize, Serializer};

/// The kind of a type, or of the value of a field, with the runtime's names: `ELEMENT_TYPE_BOOLEAN` is `Boolean`.
///
/// Element types occur in metadata and signatures, and the runtime stores one for each field: [`Class`](CorElementType::Class) for all
/// references, [`ValueType`](CorElementType::ValueType) for structures, and the underlying type for enums. In JSON, an element type is its
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum CorElementType {
    /// End of a list.
    End = 0x00,
    /// `void`.
    Void = 0x01,
    /// `bool`.
    Boolean = 0x02,
    /// `char`.
    Char = 0x03,
    /// `sbyte`.
    I1 = 0x04,
    /// `byte`.
    U1 = 0x05,
    /// `short`.
    I2 = 0x06,
    /// `ushort`.
    U2 = 0x07,
    /// `int`.
    I4 = 0x08,
    /// `uint`.
    U4 = 0x09,
    /// `long`.
    I8 = 0x0a,
    /// `ulong`.
    U8 = 0x0b,
    /// `float`.
    R4 = 0x0c,
    /// `double`.
    R8 = 0x0d,
    /// `string`.
    String = 0x0e,
    /// An unmanaged pointer.
    Ptr = 0x0f,
    /// A managed pointer: `ref`.
    ByRef = 0x10,
    /// A structure or, in signatures, an enum.
    ValueType = 0x11,
    /// A class or interface; for fields, any reference.
    Class = 0x12,
    /// A generic parameter of a type.
    Var = 0x13,
    /// An array with several dimensions, or with a lower bound.
    Array = 0x14,
    /// An instance of a generic type.
    GenericInst = 0x15,
    /// `System.TypedReference`.
    TypedByRef = 0x16,
    /// An array of values: reserved by the runtime and not supported.
    ValueArray = 0x17,
    /// `nint`.
    I = 0x18,
    /// `nuint`.
    U = 0x19,
    /// The processor's native floating-point number: reserved by the runtime and not supported.
    R = 0x1a,
    /// A function pointer.
    FnPtr = 0x1b,
    /// `object`.
    Object = 0x1c,
    /// A one-dimensional, zero-based array.
    SzArray = 0x1d,
    /// A generic parameter of a method.
    MVar = 0x1e,
    /// A required modifier of the type that follows.
    CModReqd = 0x1f,
    /// An optional modifier.
    CModOpt = 0x20,
    /// The address of a type, in signatures that the runtime generates.
    Internal = 0x21,
    /// A modifier given by the address of its type.
    CModInternal = 0x22,
    /// Flag of modifiers.
    Modifier = 0x40,
    /// Start of the variable arguments of a method.
    Sentinel = 0x41,
    /// A pinned local.
    Pinned = 0x45,
}

impl CorElementType {
    /// The element type with this number; `None` if the runtime does not define it.
    pub const fn of(byte: u8) -> Option<CorElementType> {
        Some(match byte {
            0x00 => CorElementType::End,
            0x01 => CorElementType::Void,
            0x02 => CorElementType::Boolean,
            0x03 => CorElementType::Char,
            0x04 => CorElementType::I1,
            0x05 => CorElementType::U1,
            0x06 => CorElementType::I2,
            0x07 => CorElementType::U2,
            0x08 => CorElementType::I4,
            0x09 => CorElementType::U4,
            0x0a => CorElementType::I8,
            0x0b => CorElementType::U8,
            0x0c => CorElementType::R4,
            0x0d => CorElementType::R8,
            0x0e => CorElementType::String,
            0x0f => CorElementType::Ptr,
            0x10 => CorElementType::ByRef,
            0x11 => CorElementType::ValueType,
            0x12 => CorElementType::Class,
            0x13 => CorElementType::Var,
            0x14 => CorElementType::Array,
            0x15 => CorElementType::GenericInst,
            0x16 => CorElementType::TypedByRef,
            0x17 => CorElementType::ValueArray,
            0x18 => CorElementType::I,
            0x19 => CorElementType::U,
            0x1a => CorElementType::R,
            0x1b => CorElementType::FnPtr,
            0x1c => CorElementType::Object,
            0x1d => CorElementType::SzArray,
            0x1e => CorElementType::MVar,
            0x1f => CorElementType::CModReqd,
            0x20 => CorElementType::CModOpt,
            0x21 => CorElementType::Internal,
            0x22 => CorElementType::CModInternal,
            0x40 => CorElementType::Modifier,
            0x41 => CorElementType::Sentinel,
            0x45 => CorElementType::Pinned,
            _ => return None,
        })
    }

    /// The number of the element type.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// Full name of the type, such as `System.Int32`; `None` for kinds that cover many types.
    pub const fn type_name(self) -> Option<&'static str> {
        Some(match self {
            CorElementType::Void => "System.Void",
            CorElementType::Boolean => "System.Boolean",
            CorElementType::Char => "System.Char",
            CorElementType::I1 => "System.SByte",
            CorElementType::U1 => "System.Byte",
            CorElementType::I2 => "System.Int16",
            CorElementType::U2 => "System.UInt16",
            CorElementType::I4 => "System.Int32",
            CorElementType::U4 => "System.UInt32",
            CorElementType::I8 => "System.Int64",
            CorElementType::U8 => "System.UInt64",
            CorElementType::R4 => "System.Single",
            CorElementType::R8 => "System.Double",
            CorElementType::String => "System.String",
            CorElementType::TypedByRef => "System.TypedReference",
            CorElementType::I => "System.IntPtr",
            CorElementType::U => "System.UIntPtr",
            CorElementType::Object => "System.Object",
            _ => return None,
        })
    }

    /// The element types of exactly one type, each with the full name of that type.
    pub(crate) fn named() -> impl Iterator<Item = (CorElementType, &'static str)> {
        // `Object` has the largest number of them.
        (0..=CorElementType::Object.byte()).filter_map(CorElementType::of).filter_map(|element| Some((element, element.type_name()?)))
    }

    /// Whether a value is a reference to an object.
    pub const fn is_reference(self) -> bool {
        matches!(
            self,
            CorElementType::String | CorElementType::Class | CorElementType::Array | CorElementType::Object | CorElementType::SzArray
        )
    }

    /// Whether a value is an address other than an object reference: an unmanaged or managed pointer, or a function pointer.
    pub const fn is_pointer(self) -> bool {
        matches!(self, CorElementType::Ptr | CorElementType::ByRef | CorElementType::FnPtr)
    }

    /// Whether a value is a pointer-sized integer.
    pub const fn is_native_int(self) -> bool {
        matches!(self, CorElementType::I | CorElementType::U)
    }

    /// Size in bytes of a primitive value or a pointer, given the pointer size; `None` for references and structures.
    pub const fn primitive_bytes(self, pointer: u64) -> Option<u64> {
        Some(match self {
            CorElementType::Boolean | CorElementType::I1 | CorElementType::U1 => 1,
            CorElementType::Char | CorElementType::I2 | CorElementType::U2 => 2,
            CorElementType::I4 | CorElementType::U4 | CorElementType::R4 => 4,
            CorElementType::I8 | CorElementType::U8 | CorElementType::R8 => 8,
            _ if self.is_pointer() || self.is_native_int() => pointer,
            _ => return None,
        })
    }
}

impl Serialize for CorElementType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.byte())
    }
}

#[cfg(feature = "cli")]
impl schemars::JsonSchema for CorElementType {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CorElementType".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        u8::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_the_runtime() {
        let unknown: Vec<u8> = (0..=u8::MAX).filter(|byte| CorElementType::of(*byte).is_none()).collect();
        // Field descriptors store five bits, and each value of five bits has a name.
        assert!(unknown.iter().all(|byte| *byte > 0x22 && ![0x40, 0x41, 0x45].contains(byte)) && unknown.len() == 256 - 0x23 - 3);
        assert!((0..=u8::MAX).all(|byte| CorElementType::of(byte).is_none_or(|element| element.byte() == byte)));
        assert_eq!(serde_json::to_value(CorElementType::SzArray).unwrap(), 29);
    }

    #[test]
    fn references_pointers_and_native_integers_are_disjoint() {
        for element in (0..=u8::MAX).filter_map(CorElementType::of) {
            let kinds = [element.is_reference(), element.is_pointer(), element.is_native_int()];
            assert!(kinds.iter().filter(|is| **is).count() <= 1, "{element:?}");
            assert_eq!(element.primitive_bytes(8) != element.primitive_bytes(4), element.is_pointer() || element.is_native_int());
            assert!(!element.is_reference() || element.primitive_bytes(8).is_none(), "{element:?}");
        }
        let sizes: Vec<u64> = CorElementType::named().filter_map(|(element, _)| element.primitive_bytes(8)).collect();
        assert_eq!(sizes, [1, 2, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 8]);
    }
}
