//! Handles of Mono, which has one list for each kind.

use super::reader::{FLAGS, Reader};
use super::variables::HANDLE_LISTS;
use crate::base::Addr;
use crate::data::SgenArrayList;
use crate::model::{HandleKind, HandleModel};

/// Bits of a slot.
const OCCUPIED: u64 = 1;
const VALID: u64 = 2;

impl Reader<'_> {
    /// The handles in the lists from `at`.
    pub(super) fn handles(&self, at: Addr) -> Vec<HandleModel> {
        let mut out = Vec::new();
        for number in 0..HANDLE_LISTS {
            let list = at.element(number, self.list_bytes);
            let Some(stored) = self.list.get(self.memory, list, SgenArrayList::handle_type) else { break };
            // The kinds are in the order of `GCHandleType`. The last one is for weak references in fields.
            let (kind, weak) = match stored {
                0 | 4 => (HandleKind::WeakShort, true),
                1 => (HandleKind::WeakLong, true),
                2 => (HandleKind::Strong, false),
                3 => (HandleKind::Pinned, false),
                _ => break,
            };
            for (slot, word) in self.items(list) {
                if word & OCCUPIED == 0 {
                    continue;
                }
                // A weak handle has the complement of the address, so that the collector does not treat it as a reference.
                let object = match word & VALID {
                    0 => Addr::NULL,
                    _ => Addr(if weak { !word } else { word } & !FLAGS),
                };
                if object.is_null() {
                    continue;
                }
                out.push(HandleModel {
                    address: Addr(slot << 3 | u64::from(stored).saturating_add(1)),
                    kind,
                    object,
                    object_type: None,
                    method_table: None,
                    object_size: None,
                    strong: kind.keeps_alive(),
                    used_for: None,
                    ref_count: None,
                    secondary: None,
                    secondary_type: None,
                });
            }
        }
        out
    }
}
