//! Retained sizes of groups of objects, and of roots.

use std::collections::BTreeMap;

use super::Retained;
use crate::analysis::objects::stat::namespace;
use crate::analysis::{RetainedBy, RetainedGroup};
use crate::base::{Addr, Count, IndexVec, share};
use crate::gc::{ObjectId, TypeIndex};
use crate::graph::GroupSum;
use crate::model::{RootKind, RootModel};
use crate::session::Namer;

/// Maximum number of roots of an object that are tried as its key.
const ROOTS: usize = 16;

/// The key of objects without a name.
const UNKNOWN: &str = "(unknown)";
/// The key of objects that several roots keep alive, but only through other objects.
const SEVERAL: &str = "(several roots)";

impl Retained<'_> {
    /// Returns the groups, the largest retained size first.
    pub(super) fn groups(&self, namer: &Namer, by: RetainedBy) -> Vec<RetainedGroup> {
        let mut rows = match by {
            RetainedBy::Namespace => self.by_name(|ty| namer.name(ty).map(|name| namespace(&name))),
            RetainedBy::Assembly => self.by_name(|ty| namer.module(ty)),
            RetainedBy::Root => self.by_root(namer, |root| Some(root.label.clone())),
            RetainedBy::Static => {
                self.by_root(namer, |root| matches!(root.kind, RootKind::Static | RootKind::ThreadStatic).then(|| root.label.clone()))
            }
            RetainedBy::Thread => self.by_root(namer, |root| root.thread.map(|id| format!("thread {id}"))),
        };
        if by != RetainedBy::Root {
            rows.retain(|row| row.key != SEVERAL);
        }
        rows.sort_by(|a, b| (b.retained, &a.key).cmp(&(a.retained, &b.key)));
        rows
    }

    fn group(&self, key: String, sum: GroupSum) -> RetainedGroup {
        let share = share(sum.retained, self.totals.reachable_bytes).unwrap_or(1.0);
        RetainedGroup { key, count: sum.nodes, bytes: sum.size, retained: sum.retained, share }
    }

    /// Groups objects by a name that is derived from the type. If objects of a group dominate each other, their retained bytes are counted once.
    fn by_name(&self, name: impl Fn(Addr) -> Option<String>) -> Vec<RetainedGroup> {
        let mut keys: BTreeMap<String, u32> = BTreeMap::new();
        let mut groups: IndexVec<TypeIndex, u32> = IndexVec::new();
        for kind in self.graph.types.iter() {
            let next = u32::try_from(keys.len()).unwrap_or(u32::MAX);
            groups.push(*keys.entry(name(kind.method_table).unwrap_or_else(|| UNKNOWN.into())).or_insert(next));
        }
        let of_type = |ty: TypeIndex| groups.get(ty).copied();
        let sums = self.tree.sums_by(|id| self.graph.type_index(id).and_then(of_type), keys.len(), |id| self.graph.size(id));
        let sum = |group: u32| usize::try_from(group).ok().and_then(|i| sums.get(i).copied());
        keys.into_iter().filter_map(|(key, group)| Some(self.group(key, sum(group).filter(|sum| sum.nodes > 0)?))).collect()
    }

    /// Groups the objects without a dominator by the first root for which `key` returns a name.
    fn by_root(&self, namer: &Namer, key: impl Fn(&RootModel) -> Option<String>) -> Vec<RetainedGroup> {
        let mut groups: BTreeMap<String, GroupSum> = BTreeMap::new();
        for id in self.tree.below(None) {
            let key = self.root_of(namer, id, &key).unwrap_or_else(|| SEVERAL.into());
            let sum = groups.entry(key).or_default();
            sum.nodes.bump();
            sum.size.grow(self.graph.size(id));
            sum.retained.grow(self.tree.retained(id));
        }
        groups.into_iter().map(|(key, sum)| self.group(key, sum)).collect()
    }

    fn root_of(&self, namer: &Namer, id: ObjectId, key: impl Fn(&RootModel) -> Option<String>) -> Option<String> {
        self.graph.roots_of(id, false).next()?;
        self.graph.root_models(namer, id, (self.stacks, false), ROOTS).iter().find_map(key)
    }
}
