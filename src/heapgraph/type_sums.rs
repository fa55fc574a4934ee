//! The objects of a heap by type.

use crate::base::IndexVec;
use crate::gc::{SegmentIndex, TypeIndex};
use crate::model::{Sum, WalkModel};

/// Number and bytes of objects by type.
pub(crate) type Sums = IndexVec<TypeIndex, Sum>;

/// Adds the sums of another visitor.
pub(crate) fn add_sums(to: &mut Sums, from: Sums) {
    to.grow_to(from.len());
    to.iter_mut().zip(from).for_each(|(to, from)| to.merge(from));
}

/// The objects by type, free space included.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeSums {
    /// Number and size of the objects.
    pub(crate) sums: Sums,
    /// Segments and the types of their objects. Sorted.
    places: Vec<(SegmentIndex, TypeIndex)>,
    /// The walk that counted the objects, by segment.
    pub(crate) walks: Vec<(SegmentIndex, WalkModel)>,
}

impl TypeSums {
    /// Creates sums from known values.
    pub(crate) fn of(sums: Sums, mut places: Vec<(SegmentIndex, TypeIndex)>, walks: Vec<(SegmentIndex, WalkModel)>) -> TypeSums {
        places.sort_unstable();
        TypeSums { sums, places, walks }
    }

    /// Returns the sums with the indices of `types`, which maps indices here to new ones.
    pub(crate) fn with_types(&self, types: &IndexVec<TypeIndex, TypeIndex>) -> Option<TypeSums> {
        let mut sums = Sums::new();
        for (index, sum) in types.iter().zip(self.sums.iter()) {
            *sums.slot(*index)? = *sum;
        }
        let places: Option<_> = self.places.iter().map(|(at, then)| Some((*at, *types.get(*then)?))).collect();
        Some(TypeSums::of(sums, places?, self.walks.clone()))
    }

    /// Returns the segments and the types of their objects.
    pub(crate) fn places(&self) -> impl Iterator<Item = (SegmentIndex, TypeIndex)> {
        self.places.iter().copied()
    }

    /// Returns the types of the objects in a segment.
    pub(crate) fn types_in(&self, segment: SegmentIndex) -> impl Iterator<Item = TypeIndex> {
        let first = self.places.partition_point(|(at, _)| *at < segment);
        self.places.iter().skip(first).take_while(move |(at, _)| *at == segment).map(|(_, ty)| *ty)
    }
}
