//! Type and size of each object in a graph, in three bytes for most objects.

use std::ops::Range;

use crate::base::{Array, Buffer, Count, Index, Packed, Packing, Store, total};
use crate::gc::{ObjectId, TypeIndex};

/// Type indices, which fit in 16 bits in all but the largest programs.
#[derive(Clone, Debug)]
pub(crate) enum TypeOf {
    Narrow(Array<u16>),
    Wide(Array<u32>),
}

/// Types and sizes by object.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) types: TypeOf,
    pub(crate) sizes: Packed<u8>,
    /// Size of all objects in bytes.
    pub(crate) bytes: u64,
}

impl Described {
    /// Whether this describes the given number of objects; an index file may contain anything.
    pub(crate) fn is_of(&self, objects: u32) -> bool {
        let types = match &self.types {
            TypeOf::Narrow(types) => types.len(),
            TypeOf::Wide(types) => types.len(),
        };
        types == objects as usize && self.sizes.is_of(objects as usize)
    }

    #[inline]
    pub(crate) fn type_of(&self, id: ObjectId) -> Option<TypeIndex> {
        let index = match &self.types {
            TypeOf::Narrow(types) => u32::from(*types.get(id.index())?),
            TypeOf::Wide(types) => *types.get(id.index())?,
        };
        Some(TypeIndex::from_u32(index))
    }

    /// Returns the size of an object in bytes; 0 if it does not exist.
    #[inline]
    pub(crate) fn size(&self, id: ObjectId) -> u64 {
        self.sizes.get(id.index()).unwrap_or(0)
    }
}

#[derive(Debug)]
enum TypesOf {
    Narrow(Buffer<u16>),
    Wide(Buffer<u32>),
}

impl TypesOf {
    #[inline]
    fn push(&mut self, ty: TypeIndex) {
        match (&mut *self, u16::try_from(ty.as_u32())) {
            (TypesOf::Narrow(types), Ok(ty)) => types.push(ty),
            (TypesOf::Wide(types), _) => types.push(ty.as_u32()),
            (TypesOf::Narrow(_), Err(_)) => {
                self.widen();
                self.push(ty);
            }
        }
    }

    #[cold]
    fn widen(&mut self) {
        if let TypesOf::Narrow(types) = self {
            *self = TypesOf::Wide(Buffer::collected(types.store(), types.iter().copied().map(u32::from)));
        }
    }

    /// Appends a range of `more`.
    fn append(&mut self, more: &TypesOf, range: Range<usize>) {
        if matches!(more, TypesOf::Wide(_)) {
            self.widen();
        }
        match (self, more) {
            (TypesOf::Narrow(types), TypesOf::Narrow(more)) => types.extend_from_slice(more.get(range).unwrap_or_default()),
            (TypesOf::Wide(types), TypesOf::Narrow(more)) => types.extend(more.get(range).into_iter().flatten().copied().map(u32::from)),
            (TypesOf::Wide(types), TypesOf::Wide(more)) => types.extend_from_slice(more.get(range).unwrap_or_default()),
            // Unreachable: `self` was widened above.
            (TypesOf::Narrow(_), TypesOf::Wide(_)) => {}
        }
    }
}

/// Builds [`Described`] while objects are added in order.
#[derive(Debug)]
pub(crate) struct Describing {
    types: TypesOf,
    sizes: Packing<u8>,
    bytes: u64,
}

impl Describing {
    /// Creates a builder without objects.
    pub(crate) fn new(store: &Store) -> Describing {
        Describing { types: TypesOf::Narrow(Buffer::new(store)), sizes: Packing::zeroed(store, 0), bytes: 0 }
    }

    /// Adds an object.
    #[inline]
    pub(crate) fn push(&mut self, ty: TypeIndex, size: u64) {
        self.types.push(ty);
        self.sizes.push(size);
        self.bytes.grow(size);
    }

    /// Joins a range of objects of each of these builders, in order.
    pub(crate) fn joined<'d>(store: &Store, parts: impl Iterator<Item = (&'d Describing, Range<usize>)> + Clone) -> Described {
        let mut all = Describing::new(store);
        all.reserve(parts.clone().map(|(_, objects)| objects.len()).sum());
        for (part, objects) in parts {
            all.types.append(&part.types, objects.clone());
            all.sizes.append_part(&part.sizes, objects);
        }
        let mut described = all.finish();
        described.bytes = total(described.sizes.iter());
        described
    }

    fn reserve(&mut self, objects: usize) {
        if let TypesOf::Narrow(types) = &mut self.types {
            types.reserve_exact(objects);
        }
        self.sizes.reserve(objects);
    }

    pub(crate) fn finish(self) -> Described {
        let types = match self.types {
            TypesOf::Narrow(types) => TypeOf::Narrow(types.freeze()),
            TypesOf::Wide(types) => TypeOf::Wide(types.freeze()),
        };
        Described { types, sizes: self.sizes.finish(), bytes: self.bytes }
    }
}
