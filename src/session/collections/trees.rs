//! Linked lists and trees.

use super::{Collections, Contents, Item, MOST, Read, there};
use crate::base::hash::Set;
use crate::base::{Addr, len64};
use crate::clr::library::FieldAt;
use crate::model::ContainerKind;

impl Collections<'_> {
    pub(super) fn linked_list(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let count = there!(self.number(object, mt, "count")?);
        let mut out = Contents::new(ContainerKind::LinkedList, count, None);
        let Some(head) = self.reference(object, mt, "head")? else { return Ok(Some(out)) };
        let of = there!(self.library.method_table(head));
        let (next, item) = (self.at(of, "next")?, self.field(of, "item")?);
        let mut at = Some(head);
        while let Some(node) = at.filter(|_| len64(out.items.len()) < most.min(count)) {
            out.items.push(Item { key: None, value: Some(Self::in_object(&item, node)) });
            // The list is a ring.
            at = self.library.reference(node, next).filter(|next| *next != head);
        }
        Ok(Some(out))
    }

    /// The first `most` nodes of a tree, in order. Whether it is a tree. With `ends`, nodes without children are shared and stand for
    /// none.
    fn in_order(&self, root: Option<Addr>, (left, right): (FieldAt, FieldAt), ends: bool, most: u64) -> (Vec<Addr>, bool) {
        let has = |node: Addr, field| self.library.reference(node, field).is_some();
        let is_node = |node: &Addr| !ends || has(*node, left) || has(*node, right);
        let (mut out, mut path, mut seen) = (Vec::new(), Vec::new(), Set::default());
        let mut at = root;
        loop {
            while let Some(node) = at.filter(is_node) {
                if seen.len() >= MOST || !seen.insert(node) {
                    return (out, false);
                }
                path.push(node);
                at = self.library.reference(node, left);
            }
            let Some(node) = path.pop().filter(|_| len64(out.len()) < most) else { return (out, true) };
            out.push(node);
            at = self.library.reference(node, right);
        }
    }

    /// A `SortedSet`, and a `SortedDictionary`, which is one of pairs.
    pub(super) fn sorted(&self, kind: ContainerKind, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let (object, mt) = if kind == ContainerKind::SortedDictionary {
            let set = there!(self.reference(object, mt, "_set")?);
            (set, there!(self.library.method_table(set)))
        } else {
            (object, mt)
        };
        let count = there!(self.number(object, mt, "count")?);
        let mut out = Contents::new(kind, count, None);
        let Some(root) = self.reference(object, mt, "root")? else { return Ok(Some(out)) };
        let of = there!(self.library.method_table(root));
        let left = self.at(of, "<Left>k__BackingField|Left")?;
        let right = self.at(of, "<Right>k__BackingField|Right")?;
        let item = self.field(of, "<Item>k__BackingField|Item")?;
        let (nodes, is_tree) = self.in_order(Some(root), (left, right), false, most.min(count));
        out.cut = !is_tree;
        for node in nodes {
            let slot = Self::in_object(&item, node);
            out.items.push(match item.method_table.filter(|_| kind == ContainerKind::SortedDictionary) {
                Some(pair) => self.pair(pair, slot.place.address)?,
                None => Item { key: None, value: Some(slot) },
            });
        }
        Ok(Some(out))
    }

    /// A `KeyValuePair`.
    fn pair(&self, mt: Addr, at: Addr) -> Result<Item, crate::clr::library::NoSuchField> {
        let (key, value) = (self.field(mt, "key")?, self.field(mt, "value")?);
        Ok(Item { key: self.in_structure(&key, at), value: self.in_structure(&value, at) })
    }

    pub(super) fn immutable_list(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let root = there!(self.reference(object, mt, "_root")?);
        let of = there!(self.library.method_table(root));
        let count = there!(self.number(root, of, "_count")?);
        let mut out = Contents::new(ContainerKind::ImmutableList, count, None);
        let (left, right, item) = (self.at(of, "_left")?, self.at(of, "_right")?, self.field(of, "_key")?);
        let (nodes, is_tree) = self.in_order(Some(root), (left, right), true, most.min(count));
        out.cut = !is_tree;
        out.items.extend(nodes.into_iter().map(|node| Item { key: None, value: Some(Self::in_object(&item, node)) }));
        Ok(Some(out))
    }

    /// An `ImmutableDictionary`: a tree of buckets by hash code, each with a first pair and a list of others with that hash code.
    pub(super) fn immutable_dictionary(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let count = there!(self.number(object, mt, "_count")?);
        let mut out = Contents::new(ContainerKind::ImmutableDictionary, count, None);
        let root = there!(self.reference(object, mt, "_root")?);
        let of = there!(self.library.method_table(root));
        let (left, right, bucket) = (self.at(of, "_left")?, self.at(of, "_right")?, self.field(of, "_value")?);
        let bucket_type = there!(bucket.method_table);
        let first = self.field(bucket_type, "_firstValue")?;
        let more = self.field(bucket_type, "_additionalElements")?;
        let pair = there!(first.method_table);
        let most = most.min(count);
        let (nodes, is_tree) = self.in_order(Some(root), (left, right), true, most);
        out.cut = !is_tree;
        for node in nodes {
            if len64(out.items.len()) >= most {
                break;
            }
            let at = Self::in_object(&bucket, node).place.address;
            out.items.push(self.pair(pair, there!(self.in_structure(&first, at)).place.address)?);
            let others = there!(self.in_structure(&more, at)).place.address;
            let Some(list) = self.library.reference_at(others) else { continue };
            let of = there!(self.library.method_table(list));
            let (left, right, item) = (self.at(of, "_left")?, self.at(of, "_right")?, self.field(of, "_key")?);
            let (nodes, is_tree) = self.in_order(Some(list), (left, right), true, most);
            out.cut |= !is_tree;
            for node in nodes {
                if len64(out.items.len()) < most {
                    out.items.push(self.pair(pair, Self::in_object(&item, node).place.address)?);
                }
            }
        }
        Ok(Some(out))
    }
}
