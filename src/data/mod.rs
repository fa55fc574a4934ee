//! Structures of the runtime, each defined once, with the names that data contract descriptors use.
//!
//! A definition lists the fields that a structure can have and their kinds; the offsets come from the descriptor of the dump. A reader binds the
//! fields that it reads once. A question mark makes a field optional:
//!
//! ```ignore
//! let thread = bind!(&descriptor, Thread { LinkNext, OSId? })?;
//! let next = thread.read(&memory, address, Thread::LinkNext)?;
//! ```
//!
//! A reader of one field binds this field: `let next = Thread::LinkNext.bind(&descriptor)?`, then `next.read(&memory, address)?`. Code outside of this
//! folder does not add offsets to addresses.
//!
//! A renamed field lists its names, newest first. The runtime's sources define the same structures under the same names in
//! `src/native/managed/cdac/Microsoft.Diagnostics.DataContractReader.Contracts/Data`.

mod code;
mod frames;
mod gc;
pub(crate) mod globals;
mod interop;
mod loader;
mod methods;
mod mono;
mod objects;
mod statics;
mod threads;
mod types;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::base::Addr;
use crate::contract::{ContractError, Descriptor};
use crate::memory::{Memory, ReadError};

pub(crate) use code::*;
pub(crate) use frames::*;
pub(crate) use gc::*;
pub(crate) use interop::*;
pub(crate) use loader::*;
pub(crate) use methods::*;
pub(crate) use mono::*;
pub(crate) use objects::*;
pub(crate) use statics::*;
pub(crate) use threads::*;
pub(crate) use types::*;

/// A structure of the runtime. [`data!`] defines one.
pub(crate) trait Structure: Sized {
    /// Name in descriptors; further names are separated by `|`.
    const NAME: &'static str;
    /// Names of the fields; each may have further names, separated by `|`.
    const FIELDS: &'static [&'static str];

    /// Binds fields to the offsets of `descriptor`.
    ///
    /// # Errors
    /// [`ContractError`] for the first needed field that the descriptor does not have.
    fn bind(descriptor: &Descriptor, fields: &[Wanted<Self>]) -> Result<Bound<Self>, ContractError> {
        let mut slots = vec![Slot::Unbound; Self::FIELDS.len()].into_boxed_slice();
        for field in fields {
            let Some((name, slot)) = Self::FIELDS.get(field.index).zip(slots.get_mut(field.index)) else { continue };
            *slot = match descriptor.offset(Self::NAME, name) {
                Ok(offset) => Slot::At(offset),
                Err(e) if field.needed => return Err(e),
                Err(_) => Slot::Absent,
            };
        }
        Ok(Bound { slots, structure: PhantomData })
    }

    /// Binds all fields, and fails if one is missing. For structures that only overlays describe.
    ///
    /// # Errors
    /// [`ContractError`] for the first field that the descriptor does not have.
    fn bind_all(descriptor: &Descriptor) -> Result<Bound<Self>, ContractError> {
        let fields = (0..Self::FIELDS.len()).map(|index| Field::<Self, Inline>::at(index).needed());
        Self::bind(descriptor, &fields.collect::<Vec<_>>())
    }

    /// Size of the structure in bytes.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the size.
    fn size(descriptor: &Descriptor) -> Result<u64, ContractError> {
        descriptor.size_of(Self::NAME)
    }

    /// Number of bytes that the structure has at least: its size or, without a size, the end of a pointer (of `pointer_bytes`) at the last field of
    /// the descriptor; 1 if the descriptor does not have the structure.
    fn extent(descriptor: &Descriptor, pointer_bytes: u64) -> u64 {
        let last = || Self::last_field(descriptor)?.checked_add(pointer_bytes);
        Self::size(descriptor).ok().or_else(last).unwrap_or(1).max(1)
    }

    /// Offset in bytes of the last field in the descriptor, which may have fields that [`Structure::FIELDS`] does not list; `None` if the descriptor
    /// does not have the structure.
    fn last_field(descriptor: &Descriptor) -> Option<u64> {
        descriptor.type_info(Self::NAME).ok()?.fields.values().map(|field| field.offset).max()
    }
}

/// A field of the structure `S`. `T` is the kind of the field.
pub(crate) struct Field<S, T> {
    index: usize,
    of: PhantomData<fn(S) -> T>,
}

impl<S, T> Clone for Field<S, T> {
    fn clone(&self) -> Field<S, T> {
        *self
    }
}

impl<S, T> Copy for Field<S, T> {}

impl<S, T> Field<S, T> {
    /// Index in [`Structure::FIELDS`].
    pub(crate) const fn index(self) -> usize {
        self.index
    }

    /// The field with this index in [`Structure::FIELDS`], for the macro [`data!`].
    pub(crate) const fn at(index: usize) -> Field<S, T> {
        Field { index, of: PhantomData }
    }

    /// Offset of the field in bytes, for code that compares layouts. Code that reads the field binds it.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the field.
    pub(crate) fn offset(self, descriptor: &Descriptor) -> Result<u64, ContractError>
    where
        S: Structure,
    {
        descriptor.offset(S::NAME, S::FIELDS.get(self.index).copied().unwrap_or_default())
    }

    /// Binds this field, for a reader that reads no other field of the structure.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the field.
    pub(crate) fn bind(self, descriptor: &Descriptor) -> Result<Offset<S, T>, ContractError>
    where
        S: Structure,
    {
        self.offset(descriptor).map(Offset::found)
    }

    /// Whether the descriptor has the field. Descriptors differ in their fields from release to release.
    pub(crate) fn is_in(self, descriptor: &Descriptor) -> bool
    where
        S: Structure,
    {
        self.offset(descriptor).is_ok()
    }

    /// Marks the field as needed: binding fails if the descriptor does not have it.
    pub(crate) const fn needed(self) -> Wanted<S> {
        Wanted { index: self.index, needed: true, of: PhantomData }
    }

    /// Marks the field as optional.
    pub(crate) const fn optional(self) -> Wanted<S> {
        Wanted { index: self.index, needed: false, of: PhantomData }
    }
}

/// A field to bind.
pub(crate) struct Wanted<S> {
    index: usize,
    needed: bool,
    of: PhantomData<fn(S)>,
}

/// A source of the bytes of a structure: the memory of the process, or a reader that overlays or restricts this memory.
pub(crate) trait Source {
    /// The unsigned integer of `N` bytes at `at`.
    ///
    /// # Errors
    /// [`ReadError`] if the source does not have the bytes.
    fn uint<const N: usize>(&self, at: Addr) -> Result<u64, ReadError>;

    /// The pointer-sized integer at `at`.
    ///
    /// # Errors
    /// [`ReadError`] if the source does not have the bytes.
    fn word(&self, at: Addr) -> Result<u64, ReadError>;
}

impl Source for Memory {
    fn uint<const N: usize>(&self, at: Addr) -> Result<u64, ReadError> {
        Memory::uint::<N>(self, at)
    }

    fn word(&self, at: Addr) -> Result<u64, ReadError> {
        Memory::word(self, at)
    }
}

impl<T: Source> Source for Arc<T> {
    fn uint<const N: usize>(&self, at: Addr) -> Result<u64, ReadError> {
        T::uint::<N>(self, at)
    }

    fn word(&self, at: Addr) -> Result<u64, ReadError> {
        T::word(self, at)
    }
}

/// The kind of a field, which determines how it is read.
pub(crate) trait Kind {
    /// The value that is read.
    type Value;

    /// Reads the field at `at`.
    ///
    /// # Errors
    /// [`ReadError`] if the source does not have the bytes of the field.
    fn read(source: &impl Source, at: Addr) -> Result<Self::Value, ReadError>;
}

/// A pointer-sized integer: `size_t`, a `uint8_t*` used as a number, an OS id.
pub(crate) enum Word {}

/// A nested structure or array, which has an address but no value.
pub(crate) enum Inline {}

macro_rules! kinds {
    ($($kind:ty: $value:ty = |$source:ident, $at:ident| $read:expr;)*) => {
        $(impl Kind for $kind {
            type Value = $value;

            fn read($source: &impl Source, $at: Addr) -> Result<$value, ReadError> {
                $read
            }
        })*
    };
}

kinds! {
    u8: u8 = |source, at| source.uint::<1>(at).map(|n| u8::try_from(n).unwrap_or(u8::MAX));
    u16: u16 = |source, at| source.uint::<2>(at).map(|n| u16::try_from(n).unwrap_or(u16::MAX));
    u32: u32 = |source, at| source.uint::<4>(at).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    i32: i32 = |source, at| u32::read(source, at).map(u32::cast_signed);
    f32: f32 = |source, at| u32::read(source, at).map(f32::from_bits);
    u64: u64 = |source, at| source.uint::<8>(at);
    Word: u64 = |source, at| source.word(at);
    Addr: Addr = |source, at| source.word(at).map(Addr);
}

/// The offset of a field, as bound by a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// Not bound: the reader must not read the field.
    Unbound,
    /// The descriptor does not have the field.
    Absent,
    /// The offset in bytes.
    At(u64),
}

/// The fields of a structure that a reader bound.
pub(crate) struct Bound<S> {
    slots: Box<[Slot]>,
    structure: PhantomData<fn(S)>,
}

impl<S> Clone for Bound<S> {
    fn clone(&self) -> Bound<S> {
        Bound { slots: self.slots.clone(), structure: PhantomData }
    }
}

impl<S: Structure> fmt::Debug for Bound<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(S::NAME)?;
        f.debug_map().entries(S::FIELDS.iter().zip(&self.slots).filter(|(_, slot)| **slot != Slot::Unbound)).finish()
    }
}

impl<S: Structure> Bound<S> {
    /// The offset of a field in bytes; `None` if the descriptor does not have it.
    pub(crate) fn offset<T>(&self, field: Field<S, T>) -> Option<u64> {
        match self.slots.get(field.index)? {
            Slot::At(offset) => Some(*offset),
            slot => {
                // Tests enable this feature to find readers that forget to bind a field.
                if cfg!(feature = "internals") {
                    assert!(*slot == Slot::Absent, "a reader of {} reads {:?} unbound", S::NAME, S::FIELDS.get(field.index));
                }
                None
            }
        }
    }

    /// The address of a field of the structure at `address`; `None` if the descriptor does not have the field.
    pub(crate) fn place<T>(&self, address: Addr, field: Field<S, T>) -> Option<Addr> {
        self.offset(field).map(|offset| address.plus(offset))
    }

    /// The address of a needed field of the structure at `address`.
    ///
    /// # Errors
    /// [`ReadError`] if the descriptor does not have the field. This cannot happen if the field was bound as needed.
    pub(crate) fn at<T>(&self, address: Addr, field: Field<S, T>) -> Result<Addr, ReadError> {
        self.place(address, field).ok_or(ReadError { address, len: 0 })
    }

    /// Whether the descriptor has a field.
    pub(crate) fn has<T>(&self, field: Field<S, T>) -> bool {
        self.offset(field).is_some()
    }

    /// The bound fields that the descriptor does not have, each with the newest of its names.
    pub(crate) fn absent(&self) -> impl Iterator<Item = &'static str> {
        let absent = S::FIELDS.iter().zip(&self.slots).filter(|(_, slot)| **slot == Slot::Absent);
        absent.filter_map(|(names, _)| names.split('|').next())
    }

    /// Reads a needed field of the structure at `address`.
    ///
    /// # Errors
    /// [`ReadError`] if `source` does not have the bytes of the field.
    pub(crate) fn read<T: Kind>(&self, source: &impl Source, address: Addr, field: Field<S, T>) -> Result<T::Value, ReadError> {
        T::read(source, self.at(address, field)?)
    }

    /// Reads an optional field of the structure at `address`; `None` if the descriptor does not have it.
    ///
    /// # Errors
    /// [`ReadError`] if `source` does not have the bytes of the field.
    pub(crate) fn read_optional<T: Kind>(
        &self,
        source: &impl Source,
        address: Addr,
        field: Field<S, T>,
    ) -> Result<Option<T::Value>, ReadError> {
        self.place(address, field).map(|place| T::read(source, place)).transpose()
    }

    /// The value of a field of the structure at `address`; `None` if the descriptor or `source` does not have it.
    pub(crate) fn get<T: Kind>(&self, source: &impl Source, address: Addr, field: Field<S, T>) -> Option<T::Value> {
        T::read(source, self.place(address, field)?).ok()
    }

    /// The pointer in a field of the structure at `address`; `None` if it is null, or missing from the descriptor or the dump.
    pub(crate) fn pointer(&self, memory: &Memory, address: Addr, field: Field<S, Addr>) -> Option<Addr> {
        self.get(memory, address, field).filter(|to| !to.is_null())
    }

    /// The pointer in a field, for a caller that dereferences the pointer; see [`Memory::link`].
    pub(crate) fn link(&self, memory: &Memory, address: Addr, field: Field<S, Addr>) -> Option<Addr> {
        memory.link(self.place(address, field)?)
    }

    /// The pointer in a field, for a caller that dereferences the pointer unless it is null; see [`Memory::link_or_null`].
    pub(crate) fn link_or_null(&self, memory: &Memory, address: Addr, field: Field<S, Addr>) -> Option<Addr> {
        memory.link_or_null(self.place(address, field)?)
    }
}

/// The offset of one field of the structure `S`. Reading the field takes an addition and a read, so the reader suits code that reads millions of
/// objects. [`Field::bind`] makes it.
pub(crate) struct Offset<S, T> {
    bytes: u64,
    of: PhantomData<fn(S) -> T>,
}

impl<S, T> Clone for Offset<S, T> {
    fn clone(&self) -> Offset<S, T> {
        *self
    }
}

impl<S, T> Copy for Offset<S, T> {}

impl<S, T> PartialEq for Offset<S, T> {
    fn eq(&self, other: &Offset<S, T>) -> bool {
        self.bytes == other.bytes
    }
}

impl<S, T> Eq for Offset<S, T> {}

impl<S, T> fmt::Debug for Offset<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Offset({})", self.bytes)
    }
}

impl<S, T> Offset<S, T> {
    /// The field at an offset that comes from a search or a measurement instead of a descriptor.
    pub(crate) const fn found(bytes: u64) -> Offset<S, T> {
        Offset { bytes, of: PhantomData }
    }

    /// The offset in bytes.
    #[inline]
    pub(crate) const fn bytes(self) -> u64 {
        self.bytes
    }

    /// The address of the field in the structure at `address`.
    #[inline]
    pub(crate) const fn place(self, address: Addr) -> Addr {
        address.plus(self.bytes)
    }

    /// The address of the structure whose field is at `place`; `None` if `place` is too low.
    pub(crate) const fn owner(self, place: Addr) -> Option<Addr> {
        place.minus(self.bytes)
    }
}

impl<S, T: Kind> Offset<S, T> {
    /// Reads the field of the structure at `address`.
    ///
    /// # Errors
    /// [`ReadError`] if `source` does not have the bytes of the field.
    #[inline]
    pub(crate) fn read(self, source: &impl Source, address: Addr) -> Result<T::Value, ReadError> {
        T::read(source, self.place(address))
    }

    /// The value of the field of the structure at `address`; `None` if `source` does not have it.
    #[inline]
    pub(crate) fn get(self, source: &impl Source, address: Addr) -> Option<T::Value> {
        self.read(source, address).ok()
    }
}

impl<S> Offset<S, Addr> {
    /// The pointer in the field, for a caller that dereferences the pointer; see [`Memory::link`].
    pub(crate) fn link(self, memory: &Memory, address: Addr) -> Option<Addr> {
        memory.link(self.place(address))
    }

    /// The pointer in the field, for a caller that dereferences the pointer unless it is null; see [`Memory::link_or_null`].
    pub(crate) fn link_or_null(self, memory: &Memory, address: Addr) -> Option<Addr> {
        memory.link_or_null(self.place(address))
    }
}

/// Defines structures of the runtime: the name of each in descriptors, and the fields with their kinds.
///
/// A renamed field lists its names: `AvailablePagefileMb = "AvailablePagefileMb|AvailablePagefileMB": u64`.
macro_rules! data {
    ($($(#[$meta:meta])* $structure:ident $(= $name:literal)? {
        $($(#[$field_meta:meta])* $field:ident $(= $field_name:literal)? : $kind:ty),* $(,)?
    })*) => {
        $(
            $(#[$meta])*
            pub(crate) enum $structure {}

            impl $crate::data::Structure for $structure {
                const NAME: &'static str = $crate::data::data!(@name $structure $($name)?);
                const FIELDS: &'static [&'static str] = &[$($crate::data::data!(@name $field $($field_name)?)),*];
            }

            $crate::data::data!(@fields $structure (0usize) $($(#[$field_meta])* $field: $kind,)*);
        )*
    };
    (@name $ident:ident) => { stringify!($ident) };
    (@name $ident:ident $name:literal) => { $name };
    (@fields $structure:ident ($index:expr)) => {};
    (@fields $structure:ident ($index:expr) $(#[$meta:meta])* $field:ident: $kind:ty, $($rest:tt)*) => {
        #[allow(non_upper_case_globals, reason = "named as in the runtime")]
        impl $structure {
            $(#[$meta])*
            pub(crate) const $field: $crate::data::Field<$structure, $kind> = $crate::data::Field::at($index);
        }

        $crate::data::data!(@fields $structure ($index + 1usize) $($rest)*);
    };
}
pub(crate) use data;

/// Binds fields of a structure. A question mark makes a field optional: `bind!(d, SyncTableEntry { SyncBlock, Object? })`.
macro_rules! bind {
    ($d:expr, $structure:ident { $($fields:tt)* }) => { $crate::data::bind!(@ $d, $structure [] $($fields)*,) };
    (@ $d:expr, $structure:ident [$($done:tt)*] $(,)?) => {
        <$structure as $crate::data::Structure>::bind($d, &[$($done)*])
    };
    (@ $d:expr, $structure:ident [$($done:tt)*] $field:ident ?, $($rest:tt)*) => {
        $crate::data::bind!(@ $d, $structure [$($done)* $structure::$field.optional(),] $($rest)*)
    };
    (@ $d:expr, $structure:ident [$($done:tt)*] $field:ident, $($rest:tt)*) => {
        $crate::data::bind!(@ $d, $structure [$($done)* $structure::$field.needed(),] $($rest)*)
    };
}
pub(crate) use bind;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Shape;
    use crate::memory::tests::memory_of;

    #[test]
    fn a_bound_field_is_placed_and_read() {
        let mut d = Descriptor::default();
        assert!(Thread::LinkNext.bind(&d).is_err() && !Thread::LinkNext.is_in(&d));
        d.set_field("Thread", "LinkNext", 16, 0);
        let next = Thread::LinkNext.bind(&d).unwrap();
        assert_eq!((next.bytes(), next.place(Addr(0x1000))), (16, Addr(0x1010)));
        assert_eq!((next.owner(Addr(0x1010)), next.owner(Addr(15))), (Some(Addr(0x1000)), None));
        let bytes = [0u64, 0, 0x1010].iter().flat_map(|n| n.to_le_bytes()).collect();
        let memory = memory_of(bytes, &[(0x1000, 24, 0)], Shape::LE64);
        assert_eq!((next.read(&memory, Addr(0x1000)), next.get(&memory, Addr(0x1008))), (Ok(Addr(0x1010)), None));
    }

    #[test]
    fn the_extent_of_a_structure_ends_after_its_last_known_field() {
        let mut d = Descriptor::default();
        assert_eq!((Thread::extent(&d, 8), Thread::last_field(&d)), (1, None));
        d.set_field("Thread", "OSId", 40, 0);
        d.set_field("Thread", "NotRead", 96, 0);
        assert_eq!((Thread::extent(&d, 8), Thread::extent(&d, 4)), (104, 100));
    }
}
