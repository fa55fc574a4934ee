//! Sync blocks in the form of .NET 11.

use super::{Builder, Global};

/// Distance from the header word to the object. (4 or 8 in real runtimes, of which 4 are read.)
const HEADER: u64 = 4;
/// The header's flag for the index of a sync block.
const INDEX: u64 = 0x0800_0000;

impl Builder {
    /// The thin lock of the first block: managed id 4, entered three times.
    pub(super) fn sync_blocks(&mut self, strong: &[u64; 3]) {
        let address = |v: &serde_json::Value| u64::from_str_radix(v.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
        let handles = self.handles.iter().filter(|h| h["type"] == "strong").map(|h| address(&h["address"]));
        let handle = handles.into_iter().find(|h| !strong.contains(h)).unwrap();
        let entry = self.lay.size("SyncTableEntry");
        let table = self.native(3 * entry);
        for (index, fields) in [(1, vec![("ThinLock", 2 << 16 | 4), ("HashCode", 77)]), (2, vec![("Lock", handle)])] {
            let object = self.objects[index as usize].0;
            let block = self.make("SyncBlock");
            for (field, value) in fields {
                self.set(block, "SyncBlock", field, value);
            }
            self.set(table + index * entry, "SyncTableEntry", "Object", object);
            self.set(table + index * entry, "SyncTableEntry", "SyncBlock", block);
            self.mem.put(object - HEADER, 4, INDEX | index);
        }
        let cache = self.make("SyncBlockCache");
        self.set(cache, "SyncBlockCache", "FreeSyncTableIndex", 3);
        for (name, at) in [("SyncTableEntries", table), ("SyncBlockCache", cache)] {
            let at = self.pointer_var(at);
            self.vm_slot(name, at);
        }
        self.vm.push(("SyncBlockValueToObjectOffset".into(), Global::Number(HEADER, "uint16")));
    }
}
