//! Counts of objects with their bytes.

use serde::{Deserialize, Serialize};

use crate::base::Count;

/// Object count and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "cli", schemars(rename = "ObjectSum"))]
pub struct Sum {
    /// Number of objects.
    pub count: u64,
    /// Size of the objects in bytes as counted by SOS and ClrMD.
    pub bytes: u64,
}

impl Sum {
    /// Adds an object of `bytes` bytes.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.count.bump();
        self.bytes.grow(bytes);
    }

    /// Adds `other`.
    #[inline]
    pub fn merge(&mut self, other: Sum) {
        self.count.grow(other.count);
        self.bytes.grow(other.bytes);
    }

    /// Returns the sum of this and `other`.
    #[must_use]
    pub fn with(mut self, other: Sum) -> Sum {
        self.merge(other);
        self
    }

    /// Returns this sum without `other`, a part of it.
    #[must_use]
    pub fn without(self, other: Sum) -> Sum {
        Sum { count: self.count.saturating_sub(other.count), bytes: self.bytes.saturating_sub(other.bytes) }
    }

    /// Returns the sum of objects of these sizes.
    pub fn of_sizes(sizes: impl IntoIterator<Item = u64>) -> Sum {
        let mut sum = Sum::default();
        sizes.into_iter().for_each(|bytes| sum.add(bytes));
        sum
    }

    /// Returns the sum of all `sums`.
    pub fn of(sums: impl IntoIterator<Item = Sum>) -> Sum {
        sums.into_iter().fold(Sum::default(), Sum::with)
    }
}
