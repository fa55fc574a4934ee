//! Shapes of arrays: dimensions, element size, address of the first element.

use super::decode::Values;
use crate::base::Addr;
use crate::clr::method_table::{Category, MethodTableInfo};

/// A dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Number of elements.
    pub length: u32,
    /// Lower bound.
    pub lower_bound: i32,
}

/// The shape of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayShape {
    /// Address of the first element.
    pub data: Addr,
    /// Size of an element in bytes.
    pub element_bytes: u64,
    /// Total number of elements.
    pub length: u64,
    /// Dimensions. Simple arrays have a single dimension.
    pub dimensions: Vec<Dimension>,
    /// The element type, as a type handle.
    pub element: Addr,
}

impl ArrayShape {
    /// The index of the `n`th element, from 0: `[3]`, `[1,2]`.
    pub fn index(&self, n: u64) -> String {
        let mut rest = n;
        let mut parts: Vec<String> = Vec::with_capacity(self.dimensions.len());
        for d in self.dimensions.iter().rev() {
            let length = u64::from(d.length).max(1);
            let within = i64::try_from(rest % length).unwrap_or(i64::MAX);
            parts.push(within.saturating_add(i64::from(d.lower_bound)).to_string());
            rest /= length;
        }
        parts.reverse();
        format!("[{}]", parts.join(","))
    }
}

impl Values {
    /// The shape of the array at `address`. `None` if the object is not an array, or if its lengths are absent or inconsistent.
    pub fn array(&self, info: &MethodTableInfo, address: Addr) -> Option<ArrayShape> {
        info.is_array.then_some(())?;
        let length = self.component_count(address)?;
        let data = address.plus(self.types.names().method_tables().elements_at(info)?);
        let dimensions = match info.category {
            Category::SzArray => vec![Dimension { length, lower_bound: 0 }],
            _ => self.dimensions(info, address)?,
        };
        let all = dimensions.iter().try_fold(1u64, |n, d| n.checked_mul(u64::from(d.length)));
        (all == Some(u64::from(length))).then_some(())?;
        let element = self.types.names().method_tables().element_type(info.address).ok()?;
        Some(ArrayShape { data, element_bytes: u64::from(info.component_size), length: u64::from(length), dimensions, element })
    }

    /// Reads the lengths of all dimensions, and their lower bounds, which follow the fixed part of an array object.
    fn dimensions(&self, info: &MethodTableInfo, address: Addr) -> Option<Vec<Dimension>> {
        if let Some(bounds) = self.types.names().method_tables().bounds(info, address) {
            return Some(bounds.into_iter().map(|(length, lower_bound)| Dimension { length, lower_bound }).collect());
        }
        let rank = u64::from(self.types.names().rank(info)?);
        let bounds = address.plus(self.types.objects().array_bytes()?);
        let read = |i: u64| {
            Some(Dimension {
                length: self.memory.u32(bounds.element(i, 4)).ok()?,
                lower_bound: self.memory.i32(bounds.element(i.checked_add(rank)?, 4)).ok()?,
            })
        };
        (0..rank).map(read).collect()
    }
}
