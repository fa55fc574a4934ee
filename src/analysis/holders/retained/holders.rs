//! Finds the objects that refer to a suspect without a single holder, and the container inside a suspect.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Retained;
use crate::analysis::{ElementsModel, HolderType, SampledTypes};
use crate::base::{Addr, Collector, Count, IndexVec, Name, len64, share, total};
use crate::bcl::Library;
use crate::bcl::collections::{Item, Slot};
use crate::clr::library::{Classifier, library_types};
use crate::gc::{ObjectId, TypeIndex};
use crate::model::ContainerKind;
use crate::session::{GraphSource, Namer};

library_types! {
    /// Types whose objects wrap another object in the field `_value`.
    enum StandIn {
        in "Microsoft.Extensions.Caching.Memory" {
            CacheEntry = "Microsoft.Extensions.Caching.Memory.CacheEntry",
        }
    }
}

/// Prefix of the types in which a dependency injection container stores the services it has created.
const SERVICES: &str = "Microsoft.Extensions.DependencyInjection.ServiceLookup.";
/// Prefix of all types of the dependency injection library.
const CONTAINER: &str = "Microsoft.Extensions.DependencyInjection.";
/// Maximum number of holder types listed.
const HOLDERS: usize = 4;
/// Maximum number of elements whose types are read.
const SAMPLE: u64 = 64;
/// Minimum number of elements of a container that is described.
const LEAST: u64 = 10;

impl Retained<'_> {
    /// Counts the reachable objects that refer to each of `objects` by type. Services come first, then the types with the most objects.
    pub(super) fn holders(&self, namer: &Namer, objects: &[ObjectId]) -> FxHashMap<ObjectId, Vec<HolderType>> {
        let mut found: FxHashMap<ObjectId, BTreeMap<Option<TypeIndex>, u64>> = objects.iter().map(|id| (*id, BTreeMap::new())).collect();
        if objects.is_empty() {
            return FxHashMap::default();
        }
        for (id, _) in self.tree.reached() {
            for to in self.graph.edges.successors(id) {
                let Some(types) = found.get_mut(&to) else { continue };
                // An object that `to` dominates does not keep `to` alive.
                if !self.tree.dominates(to, id) {
                    types.entry(self.graph.type_index(id)).or_default().bump();
                }
            }
        }
        let named = |(ty, count): (Option<TypeIndex>, u64)| {
            let kind = ty.and_then(|t| self.graph.types.get(t));
            HolderType { type_name: kind.map_or_else(|| "?".into(), |k| namer.name_or_address(k.method_table)), count }
        };
        let sorted = |types: BTreeMap<Option<TypeIndex>, u64>| {
            let mut rows: Vec<HolderType> = types.into_iter().map(named).collect();
            rows.sort_by(|a, b| (b.is_service(), b.count, &a.type_name).cmp(&(a.is_service(), a.count, &b.type_name)));
            rows.truncate(HOLDERS);
            rows
        };
        found.into_iter().map(|(id, types)| (id, sorted(types))).collect()
    }

    /// Describes the elements of the last container on `way`, a path on which each object dominates the next.
    pub(super) fn elements(&self, source: &dyn GraphSource, namer: &Namer, way: &[ObjectId]) -> Option<ElementsModel> {
        let heap = source.heap()?;
        let notes = Collector::new();
        let library = Library::bind(heap.runtime(), namer, &notes).ok()?;
        let collections = library.collections();
        let stand_ins = Classifier::<StandIn>::bind(library.types());
        for id in way.iter().rev() {
            let address = self.graph.address(*id);
            let kind = library.method_table(address).and_then(|mt| collections.kind(mt));
            let is_array = kind == Some(ContainerKind::Array);
            let Some(contents) = kind.filter(|_| !is_array).and_then(|_| collections.read(address, SAMPLE).ok().flatten()) else {
                continue;
            };
            if contents.count < LEAST {
                continue;
            }
            // Returns the most common type of the keys or values, with the number of those that have it.
            let most = |of: &dyn Fn(&Item) -> Option<Addr>| {
                let mut counts: BTreeMap<Addr, u64> = BTreeMap::new();
                for object in contents.items.iter().filter_map(of) {
                    let mt = library.method_table(object)?;
                    let value = stand_ins.of(mt).iter().next().and_then(|_| {
                        let field = library.types().field_at(mt, "_value").ok()?;
                        library.method_table(library.reference(object, field)?)
                    });
                    counts.entry(value.unwrap_or(mt)).or_default().bump();
                }
                let (read, types) = (total(counts.values().copied()), len64(counts.len()));
                let (mt, of_type) = counts.into_iter().max_by_key(|(_, n)| *n)?;
                Some((namer.name(mt)?, SampledTypes { read, of_type, types }))
            };
            let object_in = |slot: &Slot| slot.place.element.is_reference().then(|| library.reference_at(slot.place.address)).flatten();
            let declared = |slot: Option<&Slot>| slot.map(|s| Name::from(s.type_name.as_str()));
            let first = contents.items.first();
            let (key, keys) = named(most(&|item| object_in(item.key.as_ref()?)), declared(first.and_then(|item| item.key.as_ref())));
            let (value, values) =
                named(most(&|item| object_in(item.value.as_ref()?)), declared(first.and_then(|item| item.value.as_ref())));
            // Collections without values, such as strings, are skipped.
            if value.is_none() {
                continue;
            }
            let type_name = self.graph.type_name(namer, *id);
            return Some(ElementsModel { address, type_name, count: contents.count, key, value, keys, values });
        }
        None
    }

    /// Returns, for pairs (inner, outer) of `types`, the share (0 to 1) of the inner type's retained bytes that objects of the outer type dominate.
    pub(super) fn nested(&self, types: &[TypeIndex]) -> FxHashMap<(TypeIndex, TypeIndex), f64> {
        let mut sums: FxHashMap<(TypeIndex, TypeIndex), u64> = FxHashMap::default();
        if types.len() < 2 {
            return FxHashMap::default();
        }
        let mut wanted: IndexVec<TypeIndex, bool> = IndexVec::new();
        wanted.grow_to(self.graph.types.len());
        types.iter().for_each(|t| wanted.get_mut(*t).into_iter().for_each(|wanted| *wanted = true));
        // A dominator precedes the objects that it dominates. `open` has the wanted types of the dominators of the current object, each with the end
        // of the dominator's subtree.
        let mut open: Vec<(u64, TypeIndex)> = Vec::new();
        for (position, (id, retained)) in (0u64..).zip(self.tree.reached()) {
            while open.last().is_some_and(|(end, _)| *end <= position) {
                open.pop();
            }
            let Some(ty) = self.graph.type_index(id).filter(|t| wanted.get(*t) == Some(&true)) else { continue };
            if open.iter().any(|(_, t)| *t == ty) {
                continue;
            }
            open.iter().for_each(|(_, outer)| sums.entry((ty, *outer)).or_default().grow(retained));
            open.push((position.saturating_add(self.tree.subtree(id)), ty));
        }
        let by_type = self.tree.by_type(self.graph);
        let all = |t: TypeIndex| by_type.get(t).map_or(0, |of| of.retained);
        sums.into_iter().filter_map(|((ty, outer), bytes)| Some(((ty, outer), share(bytes, all(ty))?))).collect()
    }
}

/// Returns the type to name for the keys or values of a container, and the figures of the sample: the most common type if at least half of the sample has
/// it, or else the declared type.
fn named(most: Option<(Name, SampledTypes)>, declared: Option<Name>) -> (Option<Name>, Option<SampledTypes>) {
    match most {
        Some((name, sampled)) if sampled.is_most() => (Some(name), Some(sampled)),
        Some((name, sampled)) => match declared {
            Some(declared) => (Some(declared), Some(SampledTypes { of_type: 0, ..sampled })),
            None => (Some(name), Some(sampled)),
        },
        None => (declared, None),
    }
}

impl HolderType {
    /// Whether a dependency injection container stores services in objects of this type.
    fn is_service(&self) -> bool {
        self.type_name.starts_with(SERVICES)
    }
}

/// Returns the text after "held by" for an object of type `type_name`.
pub(in crate::analysis) fn held_by(type_name: &str, holders: &[HolderType]) -> String {
    if !type_name.starts_with(CONTAINER) && holders.iter().any(HolderType::is_service) {
        return "the ServiceProvider (a singleton) and others".into();
    }
    let named: Vec<String> = holders.iter().take(2).map(|h| format!("{} × {}", h.count, h.type_name)).collect();
    match (named.is_empty(), len64(holders.len()) > 2) {
        (true, _) => "several holders".into(),
        (false, more) => format!("several holders ({}{})", named.join(", "), if more { ", …" } else { "" }),
    }
}
