//! Arrays of numbers that are only read.
//!
//! No crate is used: arrays made by this process and arrays mapped from an index file have one type here, and a mapping is checked when it
//! is made.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;
use yoke::Yoke;
use yoke::erased::ErasedArcCart;

/// Numbers that are made once and only read afterwards, in memory or in a mapped file.
#[derive(Clone)]
pub(crate) struct Array<T: 'static>(Yoke<&'static [T], ErasedArcCart>);

impl<T: Pod + Send + Sync> Array<T> {
    /// The numbers at `range` of `bytes`, in this machine's byte order. `None` if the range is misaligned, lies past the end, or is not a
    /// whole number of items.
    pub(crate) fn of_bytes<C>(bytes: Arc<C>, range: Range<usize>) -> Option<Array<T>>
    where
        C: Deref<Target = [u8]> + Send + Sync + 'static,
    {
        let yoke: Result<Yoke<&'static [T], Arc<C>>, ()> =
            Yoke::try_attach_to_cart(bytes, |bytes| bytemuck::try_cast_slice(bytes.get(range).ok_or(())?).map_err(|_| ()));
        yoke.ok().map(|yoke| Array(yoke.erase_arc_cart()))
    }

    /// A part of the array, which shares its memory.
    pub(crate) fn part(&self, range: Range<usize>) -> Option<Array<T>> {
        self.0.try_map_project_cloned(|all, _| all.get(range).ok_or(())).ok().map(Array)
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.0.get()
    }
}

impl<T: Send + Sync> From<Vec<T>> for Array<T> {
    fn from(mut items: Vec<T>) -> Array<T> {
        items.shrink_to_fit();
        Array(Yoke::attach_to_cart(Arc::new(items), |items: &Vec<T>| items.as_slice()).erase_arc_cart())
    }
}

impl<T: Send + Sync> Default for Array<T> {
    fn default() -> Array<T> {
        Vec::new().into()
    }
}

impl<T: Send + Sync> FromIterator<T> for Array<T> {
    fn from_iter<S: IntoIterator<Item = T>>(items: S) -> Array<T> {
        Vec::from_iter(items).into()
    }
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Array<T>) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Array<T> {}

impl<T> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} items)", self.len())
    }
}
