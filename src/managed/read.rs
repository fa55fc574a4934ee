//! Typed reads of values.

use super::{Object, Value};
use crate::base::{Addr, CorElementType};
use crate::session::{Error, ValueError};

/// A type that a [`Value`] can be read as.
///
/// | Rust | .NET |
/// | --- | --- |
/// | `bool` | `Boolean` |
/// | `char` | `Char`, unless it is a surrogate |
/// | `u8`, `u16`, `u32`, `u64` | `Byte`, `UInt16` or `Char`, `UInt32`, `UInt64`, and enums based on them |
/// | `i8`, `i16`, `i32`, `i64` | `SByte`, `Int16`, `Int32`, `Int64`, and enums based on them |
/// | `i128` | any integer: the types above, `Char`, `nint`, `nuint` |
/// | `f32`, `f64` | `Single`, `Double` |
/// | [`Addr`] | `nint`, `nuint`, pointers; the address of a reference |
/// | [`Object`] | a non-null reference |
/// | [`String`] | a non-null reference to a string |
/// | `Option<T>` | a reference or a `Nullable<T>` that may be null |
///
/// Widths must match: conversions are never implicit. Implement the trait for your own structures:
///
/// ```
/// use gcdump::{Error, FromValue, Value};
///
/// struct Vector { x: f64, y: f64 }
///
/// impl FromValue for Vector {
///     fn from_value(value: &Value) -> Result<Vector, Error> {
///         Ok(Vector { x: value.field("X")?.read()?, y: value.field("Y")?.read()? })
///     }
/// }
///
/// let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
/// let all = heap.objects_of("Lab.Everything")?.next().expect("there is one");
/// let at: Vector = all.field("Inline")?.field("At")?.read()?;
/// assert_eq!((at.x, at.y), (1.0, 2.0));
/// # Ok::<(), Error>(())
/// ```
pub trait FromValue: Sized {
    /// Reads `value`.
    ///
    /// # Errors
    /// [`Error::Value`] if the value has another type or is not in the dump.
    fn from_value(value: &Value) -> Result<Self, Error>;
}

impl Value {
    /// Reads the value as a `T`: see [`FromValue`] for the supported types.
    ///
    /// # Errors
    /// [`Error::Value`]: [`ValueError::WrongType`], [`ValueError::Absent`], [`ValueError::Null`].
    pub fn read<T: FromValue>(&self) -> Result<T, Error> {
        T::from_value(self)
    }

    /// The value in a `Nullable<T>`, or any other value itself. `None` for a null `Nullable<T>` and a null reference.
    fn unless_null(&self) -> Result<Option<Value>, Error> {
        if self.is_reference() {
            return Ok((!self.pointer()?.is_null()).then(|| self.clone()));
        }
        let tables = self.heap().walker().tables();
        let info = self.place().method_table.filter(|_| self.is_structure()).and_then(|mt| tables.read(mt).ok());
        if !info.is_some_and(|i| tables.is_nullable(&i)) {
            return Ok(Some(self.clone()));
        }
        let [has, value] =
            <[Value; 2]>::try_from(self.fields()?).map_err(|_| ValueError::NoLayout { type_name: self.type_name(), part: "fields" })?;
        Ok(has.read::<bool>()?.then_some(value))
    }
}

macro_rules! number {
    ($type:ty, $name:literal, $code:pat, $read:ident, $low:expr, $made:expr) => {
        impl FromValue for $type {
            fn from_value(value: &Value) -> Result<$type, Error> {
                if !matches!(value.element_type(), $code) {
                    return Err(value.not($name).into());
                }
                let read = value.stored(|memory, at| memory.$read(at), $low)?;
                Ok($made(read))
            }
        }
    };
}

number!(bool, "System.Boolean", CorElementType::Boolean, u8, low_u8, |b: u8| b != 0);
number!(u8, "System.Byte", CorElementType::U1, u8, low_u8, |n| n);
number!(i8, "System.SByte", CorElementType::I1, u8, low_u8, u8::cast_signed);
number!(u16, "System.UInt16", CorElementType::U2 | CorElementType::Char, u16, low_u16, |n| n);
number!(i16, "System.Int16", CorElementType::I2, u16, low_u16, u16::cast_signed);
number!(u32, "System.UInt32", CorElementType::U4, u32, low_u32, |n| n);
number!(i32, "System.Int32", CorElementType::I4, u32, low_u32, u32::cast_signed);
number!(u64, "System.UInt64", CorElementType::U8, u64, |n| n, |n| n);
number!(i64, "System.Int64", CorElementType::I8, u64, |n| n, u64::cast_signed);
number!(f32, "System.Single", CorElementType::R4, u32, low_u32, f32::from_bits);
number!(f64, "System.Double", CorElementType::R8, u64, |n| n, f64::from_bits);

/// The lowest byte of a register.
fn low_u8(register: u64) -> u8 {
    let [byte, ..] = register.to_le_bytes();
    byte
}

/// The lowest two bytes of a register.
fn low_u16(register: u64) -> u16 {
    let [a, b, ..] = register.to_le_bytes();
    u16::from_le_bytes([a, b])
}

/// The lowest four bytes of a register.
fn low_u32(register: u64) -> u32 {
    let [a, b, c, d, ..] = register.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

impl FromValue for i128 {
    fn from_value(value: &Value) -> Result<i128, Error> {
        let word = || value.word();
        Ok(match value.element_type() {
            CorElementType::I1 => value.read::<i8>()?.into(),
            CorElementType::U1 => value.read::<u8>()?.into(),
            CorElementType::I2 => value.read::<i16>()?.into(),
            CorElementType::U2 | CorElementType::Char => value.read::<u16>()?.into(),
            CorElementType::I4 => value.read::<i32>()?.into(),
            CorElementType::U4 => value.read::<u32>()?.into(),
            CorElementType::I8 => value.read::<i64>()?.into(),
            CorElementType::U8 => value.read::<u64>()?.into(),
            CorElementType::U => word()?.into(),
            CorElementType::I if value.heap().memory().ptr_bytes() == 4 => {
                value.stored(|memory, at| memory.u32(at), low_u32)?.cast_signed().into()
            }
            CorElementType::I => word()?.cast_signed().into(),
            _ => return Err(value.not("an integer").into()),
        })
    }
}

impl FromValue for char {
    fn from_value(value: &Value) -> Result<char, Error> {
        if value.element_type() != CorElementType::Char {
            return Err(value.not("System.Char").into());
        }
        let unit = value.read::<u16>()?;
        let half =
            || ValueError::WrongType { what: value.label(), type_name: format!("the UTF-16 unit {unit:#06x}"), wanted: "a character" };
        Ok(char::from_u32(unit.into()).ok_or_else(half)?)
    }
}

impl FromValue for Addr {
    fn from_value(value: &Value) -> Result<Addr, Error> {
        let element = value.element_type();
        if !element.is_reference() && !element.is_pointer() && !element.is_native_int() {
            return Err(value.not("an address").into());
        }
        value.word().map(Addr)
    }
}

impl FromValue for Object {
    fn from_value(value: &Value) -> Result<Object, Error> {
        value.object()
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Result<String, Error> {
        let object = value.object()?;
        if !object.is_string() {
            let what = value.label();
            return Err(ValueError::WrongType { what, type_name: object.type_name(), wanted: "System.String" }.into());
        }
        object.string()
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Result<Option<T>, Error> {
        value.unless_null()?.map(|v| v.read()).transpose()
    }
}
