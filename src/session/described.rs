//! The type and the size of each object of a graph: three bytes for most.

use crate::base::{Array, Count, Index, Packed, Packing};
use crate::gc::{ObjectId, TypeIndex};

/// Types as indices, which 16 bits hold in all but the largest programs.
#[derive(Clone, Debug)]
pub(super) enum TypeOf {
    Narrow(Array<u16>),
    Wide(Array<u32>),
}

/// Types and sizes by object.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) types: TypeOf,
    pub(super) sizes: Packed<u8>,
    /// Of all objects.
    pub(super) bytes: u64,
}

impl Described {
    #[inline]
    pub(super) fn type_of(&self, id: ObjectId) -> Option<TypeIndex> {
        let index = match &self.types {
            TypeOf::Narrow(types) => u32::from(*types.get(id.index())?),
            TypeOf::Wide(types) => *types.get(id.index())?,
        };
        Some(TypeIndex::from_u32(index))
    }

    /// Bytes; 0 for an object that does not exist.
    #[inline]
    pub(super) fn size(&self, id: ObjectId) -> u64 {
        self.sizes.get(id.index()).unwrap_or(0)
    }
}

enum TypesOf {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

/// [`Described`] while objects are added.
pub(super) struct Describing {
    types: TypesOf,
    sizes: Packing<u8>,
    bytes: u64,
    next: u32,
}

impl Describing {
    /// For `objects` objects of `types` types.
    pub(super) fn new(objects: usize, types: usize) -> Describing {
        let types = match u16::try_from(types) {
            Ok(_) => TypesOf::Narrow(vec![0; objects]),
            Err(_) => TypesOf::Wide(vec![0; objects]),
        };
        Describing { types, sizes: Packing::zeroed(objects), bytes: 0, next: 0 }
    }

    /// Adds the objects that follow.
    pub(super) fn extend(&mut self, types: &[TypeIndex], sizes: impl IntoIterator<Item = u64>) {
        let at = self.next as usize;
        match &mut self.types {
            TypesOf::Narrow(all) => {
                let narrow = |ty: &TypeIndex| u16::try_from(ty.as_u32()).unwrap_or(u16::MAX);
                all.get_mut(at..).into_iter().flatten().zip(types).for_each(|(to, ty)| *to = narrow(ty));
            }
            TypesOf::Wide(all) => all.get_mut(at..).into_iter().flatten().zip(types).for_each(|(to, ty)| *to = ty.as_u32()),
        }
        let (bytes, sizes) = (&mut self.bytes, sizes.into_iter().take(types.len()));
        self.sizes.put_all(self.next, sizes.inspect(|size| bytes.grow(*size)));
        self.next = self.next.saturating_add(u32::try_from(types.len()).unwrap_or(u32::MAX));
    }

    pub(super) fn finish(self) -> Described {
        let types = match self.types {
            TypesOf::Narrow(types) => TypeOf::Narrow(types.into()),
            TypesOf::Wide(types) => TypeOf::Wide(types.into()),
        };
        Described { types, sizes: self.sizes.finish(), bytes: self.bytes }
    }
}
