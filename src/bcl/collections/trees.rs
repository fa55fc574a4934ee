//! Linked lists and trees.

use super::{Collections, Contents, Item, MOST, Read, there};
use crate::base::hash::Set;
use crate::base::{Addr, len64};
use crate::clr::library::FieldAt;
use crate::model::ContainerKind;

impl Collections<'_> {
    pub(super) fn linked_list(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let fields = self.layouts().linked.of(self.types(), mt)?;
        let count = there!(self.number(object, fields.count));
        let mut out = Contents::new(ContainerKind::LinkedList, count, None);
        let Some(head) = self.library.reference(object, fields.head).filter(|_| most > 0) else { return Ok(Some(out)) };
        let fields = self.layouts().linked_node.of(self.types(), there!(self.library.method_table(head)))?;
        let (mut at, mut seen) = (Some(head), Set::default());
        while let Some(node) = at.filter(|_| len64(out.items.len()) < most.min(count)) {
            if seen.len() >= MOST || !self.afford(1) || !seen.insert(node) {
                out.cut = true;
                break;
            }
            out.items.push(Item { key: None, value: Some(Self::in_object(&fields.item, node)) });
            // The list is circular.
            at = self.library.reference(node, fields.next).filter(|next| *next != head);
        }
        Ok(Some(out))
    }

    /// The first `most` nodes of a binary tree, in order, and whether all of these were read. Reading ends early at a node that occurs twice, or
    /// if a limit is exceeded. With `ends`, a node without children is a shared object that represents the empty subtree, not an element.
    fn in_order(&self, root: Option<Addr>, (left, right): (FieldAt, FieldAt), ends: bool, most: u64) -> (Vec<Addr>, bool) {
        let has = |node: Addr, field| self.library.reference(node, field).is_some();
        let is_node = |node: &Addr| !ends || has(*node, left) || has(*node, right);
        let (mut out, mut path, mut seen) = (Vec::new(), Vec::new(), Set::default());
        let mut at = root;
        loop {
            while let Some(node) = at.filter(is_node) {
                if seen.len() >= MOST || !self.afford(1) || !seen.insert(node) {
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

    /// A `SortedSet`, or a `SortedDictionary`, which contains a `SortedSet` of pairs.
    pub(super) fn sorted(&self, kind: ContainerKind, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let (object, mt) = if kind == ContainerKind::SortedDictionary {
            let fields = self.layouts().sorted_map.of(self.types(), mt)?;
            let set = there!(self.library.reference(object, fields.set));
            (set, there!(self.library.method_table(set)))
        } else {
            (object, mt)
        };
        let fields = self.layouts().sorted.of(self.types(), mt)?;
        let count = there!(self.number(object, fields.count));
        let mut out = Contents::new(kind, count, None);
        let Some(root) = self.library.reference(object, fields.root).filter(|_| most > 0) else { return Ok(Some(out)) };
        let fields = self.layouts().sorted_node.of(self.types(), there!(self.library.method_table(root)))?;
        let (nodes, is_tree) = self.in_order(Some(root), (fields.left, fields.right), false, most.min(count));
        out.cut = !is_tree;
        for node in nodes {
            let slot = Self::in_object(&fields.item, node);
            out.items.push(match fields.item.method_table.filter(|_| kind == ContainerKind::SortedDictionary) {
                Some(pair) => self.pair(pair, slot.place.address)?,
                None => Item { key: None, value: Some(slot) },
            });
        }
        Ok(Some(out))
    }

    /// Key and value of the `KeyValuePair` at `at`.
    fn pair(&self, mt: Addr, at: Addr) -> Result<Item, crate::clr::library::NoSuchField> {
        let fields = self.layouts().pair.of(self.types(), mt)?;
        Ok(Item { key: self.in_structure(&fields.key, at), value: self.in_structure(&fields.value, at) })
    }

    pub(super) fn immutable_list(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let fields = self.layouts().immutable_list.of(self.types(), mt)?;
        let root = there!(self.library.reference(object, fields.root));
        let of = there!(self.library.method_table(root));
        let count = there!(self.number(root, self.layouts().list_root.of(self.types(), of)?.count));
        let mut out = Contents::new(ContainerKind::ImmutableList, count, None);
        let fields = self.layouts().list_node.of(self.types(), of)?;
        let (nodes, is_tree) = self.in_order(Some(root), (fields.left, fields.right), true, most.min(count));
        out.cut = !is_tree;
        out.items.extend(nodes.into_iter().map(|node| Item { key: None, value: Some(Self::in_object(&fields.item, node)) }));
        Ok(Some(out))
    }

    /// An `ImmutableDictionary`: a tree of buckets by hash code. A bucket has a first pair, and an `ImmutableList` of further pairs with
    /// the same hash code.
    pub(super) fn immutable_dictionary(&self, object: Addr, mt: Addr, most: u64) -> Read<Contents> {
        let fields = self.layouts().immutable_map.of(self.types(), mt)?;
        let count = there!(self.number(object, fields.count));
        let mut out = Contents::new(ContainerKind::ImmutableDictionary, count, None);
        let root = there!(self.library.reference(object, fields.root));
        let fields = self.layouts().map_node.of(self.types(), there!(self.library.method_table(root)))?;
        let bucket = self.layouts().map_bucket.of(self.types(), there!(fields.bucket.method_table))?;
        let pair = there!(bucket.first.method_table);
        let most = most.min(count);
        let (nodes, is_tree) = self.in_order(Some(root), (fields.left, fields.right), true, most);
        out.cut = !is_tree;
        for node in nodes {
            if len64(out.items.len()) >= most {
                break;
            }
            let at = Self::in_object(&fields.bucket, node).place.address;
            out.items.push(self.pair(pair, there!(self.in_structure(&bucket.first, at)).place.address)?);
            let others = there!(self.in_structure(&bucket.more, at)).place.address;
            let Some(list) = self.library.reference_at(others) else { continue };
            let others = self.layouts().list_node.of(self.types(), there!(self.library.method_table(list)))?;
            let (nodes, is_tree) = self.in_order(Some(list), (others.left, others.right), true, most);
            out.cut |= !is_tree;
            for node in nodes {
                if len64(out.items.len()) < most {
                    out.items.push(self.pair(pair, Self::in_object(&others.item, node).place.address)?);
                }
            }
        }
        Ok(Some(out))
    }
}
