//! Types whose method tables are lost.

use super::{Category, Generics, MethodTableInfo, MethodTables};
use crate::base::Addr;
use crate::clr::gcdesc::{GcDesc, Series, ValueSeries};
use crate::contract::InferredType;
use crate::data::HAS_COMPONENT_SIZE;

impl MethodTables {
    fn inferred_type(&self, mt: Addr) -> Option<&InferredType> {
        self.inferred.as_ref()?.get(mt)
    }

    /// Whether the method table at `mt` is lost, and its type is known by its objects.
    pub(crate) fn is_inferred(&self, mt: Addr) -> bool {
        self.inferred_type(mt).is_some()
    }

    /// Where lost method tables were: the lowest address, and the end of the highest.
    pub(crate) fn inferred_bounds(&self) -> Option<(u64, u64)> {
        self.inferred.as_ref()?.bounds()
    }

    /// The known facts about the type whose method table was at `mt`.
    pub(super) fn inferred(&self, mt: Addr) -> Option<MethodTableInfo> {
        let ty = self.inferred_type(mt)?;
        let is_string = self.string == Some(mt);
        let is_array = ty.component_size != 0 && !is_string;
        Some(MethodTableInfo {
            address: mt,
            flags: if ty.component_size == 0 { 0 } else { HAS_COMPONENT_SIZE },
            base_size: ty.base_size,
            component_size: ty.component_size,
            contains_pointers: !ty.references.runs.is_empty(),
            is_collectible: false,
            has_finalizer: false,
            category: if is_array { Category::SzArray } else { Category::Class },
            generics: Generics::None,
            is_array,
            is_string,
            is_free: false,
            class_or_canonical: Addr::NULL,
            parent: Addr::NULL,
        })
    }

    /// The offsets of references in the objects of the type whose method table was at `mt`.
    pub(super) fn inferred_references(&self, mt: Addr) -> Option<GcDesc> {
        let ty = self.inferred_type(mt)?;
        let (word, base) = (self.memory.ptr_bytes(), u64::from(ty.base_size));
        let runs = &ty.references.runs;
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let (Some((first, _)), elements) = (runs.first(), base.saturating_sub(word)) else { return Some(GcDesc::None) };
        let component = u64::from(ty.component_size);
        Some(match component {
            0 => {
                let series = runs
                    .iter()
                    .map(|(start, n)| Series { start: *start, size: signed(n.saturating_mul(word)).saturating_sub(signed(base)) });
                GcDesc::Series(series.collect())
            }
            _ if component == word => GcDesc::Series(vec![Series { start: elements, size: signed(base).saturating_neg() }]),
            _ => {
                // Behind the last run of an element is the first of the next one.
                let next = runs.iter().skip(1).map(|(start, _)| *start).chain([component.saturating_add(*first)]);
                let items = runs.iter().zip(next).map(|((start, n), next)| ValueSeries {
                    pointers: *n,
                    skip: next.saturating_sub(*start).saturating_sub(n.saturating_mul(word)),
                });
                GcDesc::ValueSeries { start: elements.saturating_add(*first), items: items.collect(), tail: word }
            }
        })
    }
}
