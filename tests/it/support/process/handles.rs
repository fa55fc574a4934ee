//! Handle tables and threads.

use serde_json::{Value, json};

use super::{BLOCKS, BUCKETS, Builder, Global, HANDLE_TYPES, NO_BLOCK, hex};

impl Builder {
    /// Writes a segment of a handle table with `(type, block, slot, object, secondary)` and returns its address.
    pub(super) fn handle_segment(&mut self, number: u64, handles: &[(u8, u8, u64, u64, u64)], next: u64, blocks: u64) -> u64 {
        let at = self.spec.shape.pick(0x7e80_0000_0000, 0x4000_0000) + number * 0x10000;
        let per_block = self.per_block();
        self.mem.map(at, 0xc00 + blocks * 0x100, true);
        let (p, values) = (self.p, at + self.at("TableSegment", "RgValue"));
        self.set(at, "TableSegment", "NextSegment", next);
        let (user, ring, tails) = (
            at + self.at("TableSegment", "RgUserData"),
            at + self.at("TableSegment", "RgAllocation"),
            at + self.at("TableSegment", "RgTail"),
        );
        self.mem.bytes(user, &[NO_BLOCK; BLOCKS as usize]);
        self.mem.bytes(ring, &[NO_BLOCK; BLOCKS as usize]);
        self.mem.bytes(tails, &[NO_BLOCK; 13]);
        let mut rings: Vec<Vec<u8>> = vec![Vec::new(); 13];
        for (kind, block, place, object, secondary) in handles {
            if !rings[usize::from(*kind)].contains(block) {
                rings[usize::from(*kind)].push(*block);
            }
            let h = values + (u64::from(*block) * per_block + place) * p;
            self.mem.p(h, *object);
            let has = matches!(kind, 6 | 10 | 11);
            if *secondary != 0 {
                // Data blocks have the internal type; their contents must not be listed.
                let data = 20 + kind - 6;
                if !rings[12].contains(&data) {
                    rings[12].push(data);
                }
                self.mem.bytes(user + u64::from(*block), &[data]);
                self.mem.p(values + (u64::from(data) * per_block + place) * p, *secondary);
            }
            let mt = self.objects.iter().find(|o| o.0 == *object).map_or_else(|| hex(0), |o| hex(o.1));
            self.handles.push(json!({"address": hex(h), "type": HANDLE_TYPES[usize::from(*kind)], "object": hex(*object),
                "method_table": mt, "secondary": has.then(|| hex(*secondary))}));
        }
        for (kind, ring_of) in rings.iter().enumerate() {
            for (i, block) in ring_of.iter().enumerate() {
                let follower = ring_of[(i + 1) % ring_of.len()];
                self.mem.bytes(ring + u64::from(*block), &[follower]);
            }
            if let Some(tail) = ring_of.last() {
                self.mem.bytes(tails + kind as u64, &[*tail]);
            }
        }
        at
    }

    /// Handles per block. (64 in real runtimes.)
    pub(super) fn per_block(&self) -> u64 {
        0x100 / self.p
    }

    /// All handle tables. Returns three strong handles.
    pub(super) fn handle_tables(&mut self) -> [u64; 3] {
        let o: Vec<u64> = self.objects.iter().map(|o| o.0).collect();
        let (o, last) = (|i: usize| o[i % o.len()], self.per_block() - 1);
        let nothing = self.native(4 * self.p);
        let mut list = Vec::new();
        for kind in 0..12u8 {
            let n = usize::from(kind);
            let secondary = match kind {
                6 => o(n + 3),
                10 => self.native_at - 8,
                11 => 0x1234_5678,
                _ => 0,
            };
            list.push((kind, kind, 1, o(n), secondary));
            list.push((kind, kind, last, o(n + 7), if kind == 11 { 0 } else { secondary }));
        }
        // A second block in a ring, a block of dependent handles without secondaries.
        list.extend([(2, 13, 0, o(4), 0), (2, 13, 5, o(5), 0), (6, 14, 2, o(6), 0)]);
        if self.spec.stray_handle {
            list.push((0, 0, 3, nothing, 0));
        }
        let first = self.handle_segment(0, &list, 0, 28);
        let second = self.handle_segment(1, &[(3, 0, 0, o(8), 0), (3, 0, 1, o(9), 0)], first, 1);
        self.set(first, "TableSegment", "NextSegment", second);
        let slots = if self.spec.server.is_some() { u64::from(self.spec.cpus) } else { 1 };
        let array = self.native(slots * self.p);
        for slot in 0..slots {
            let segment = match slot {
                0 => first,
                // More processors than heaps: one slot per heap is not enough.
                n if n + 1 == slots => self.handle_segment(2 + n, &[(2, 3, 7, o(10), 0), (1, 4, 9, o(11), 0)], 0, 8),
                n => self.handle_segment(2 + n, &[], 0, 0),
            };
            let table = self.make("HandleTable");
            self.set(table, "HandleTable", "SegmentList", segment);
            self.mem.p(array + slot * self.p, table);
        }
        let bucket = self.make("HandleTableBucket");
        self.set(bucket, "HandleTableBucket", "Table", array);
        let (lists, bytes) = ([self.native(BUCKETS * self.p), self.native(BUCKETS * self.p)], self.lay.size("HandleTableMap"));
        self.mem.p(lists[0] + 2 * self.p, bucket);
        let (map, more) = (self.var(bytes), self.make("HandleTableMap"));
        self.set(map, "HandleTableMap", "BucketsPtr", lists[0]);
        self.set(map, "HandleTableMap", "Next", more);
        self.set(more, "HandleTableMap", "BucketsPtr", lists[1]);
        self.gc_slot("HandleTableMap", map);
        let numbers = [
            ("InitialHandleTableArraySize", BUCKETS),
            ("HandleBlocksPerSegment", BLOCKS),
            ("HandleMaxInternalTypes", 13),
            ("HandlesPerBlock", self.per_block()),
            ("HandleSegmentSize", 0x10000),
            ("BlockInvalid", NO_BLOCK.into()),
            ("DebugDestroyedHandleValue", 0),
        ];
        for (name, n) in numbers {
            self.gc.push((name.into(), Global::Number(n, "uint32")));
        }
        for segment in std::iter::once(first).chain([second]).chain((1..slots).map(|n| first + (2 + n) * 0x10000)) {
            let range = json!({"start": hex(segment), "end": hex(segment + 0x10000)});
            self.free.push(json!({"list": "handle-table", "heap": null, "size_class": null, "address": hex(segment), "range": range,
                "bytes": 0x10000, "segment": null}));
        }
        let values = first + self.at("TableSegment", "RgValue");
        let handle = |block: u64, place: u64| values + (block * self.per_block() + place) * self.p;
        [handle(2, 1), handle(13, 0), handle(13, 5)]
    }

    pub(super) fn threads(&mut self, strong: &[u64; 3], holes: &[(u64, u64); 2]) -> Vec<Value> {
        let p = self.p;
        let object = |b: &Builder, handle: u64| {
            let found = b.handles.iter().find(|h| h["address"] == hex(handle)).unwrap();
            (found["object"].clone(), found["method_table"].clone())
        };
        let tracker = self.make("ExceptionInfo");
        self.set(tracker, "ExceptionInfo", "ThrownObject", strong[2]);
        // Managed id, OS id, state, context, exposed object, last thrown, tracker.
        let list = [
            (1u64, 4001u64, 0x2_0000u64, Some(holes[0]), strong[0], 0, 0),
            (2, 4002, 0x200, Some((0, 0)), 0, strong[1], 0),
            (3, 0, 0x400, None, 0, 0, 0),
            (4, 4004, 0x0100_0200, Some(holes[1]), 0, strong[1], tracker),
        ];
        let addresses: Vec<u64> = list.iter().map(|_| self.make("Thread")).collect();
        let link = self.at("Thread", "LinkNext");
        let mut expected = Vec::new();
        for (i, (id, os_id, state, context, exposed, thrown, tracker)) in list.into_iter().enumerate() {
            let at = addresses[i];
            let next = addresses.get(i + 1).map_or(0, |a| a + link);
            let fields = [("Id", id), ("State", state), ("PreemptiveGCDisabled", id & 1), ("LinkNext", next), ("ExposedObject", exposed)];
            // The upper half of the OS id is garbage on some systems.
            for (f, v) in fields.into_iter().chain([("OSId", os_id), ("LastThrownObject", thrown), ("ExceptionTracker", tracker)]) {
                self.set(at, "Thread", f, v);
            }
            if let Some((pointer, limit)) = context {
                let locals = self.make("RuntimeThreadLocals");
                self.set(at, "Thread", "RuntimeThreadLocals", locals);
                let gc = locals + self.at("RuntimeThreadLocals", "AllocContext") + self.at("EEAllocContext", "GCAllocationContext");
                for (f, v) in [("Pointer", pointer), ("Limit", limit), ("AllocBytes", 0x4000 + id), ("AllocBytesLoh", 0x1_0000_0001)] {
                    self.set(gc, "GCAllocContext", f, v);
                }
            }
            let exception = match (tracker, thrown) {
                (0, 0) => Value::Null,
                (0, handle) => json!({"address": object(self, handle).0, "method_table": object(self, handle).1, "current": false}),
                _ => json!({"address": object(self, strong[2]).0, "method_table": object(self, strong[2]).1, "current": true}),
            };
            expected.push(json!({
                "managed_id": id, "os_id": (os_id != 0).then_some(os_id), "address": hex(at), "state_value": state,
                "alloc_pointer": context.map(|c| hex(c.0)), "alloc_limit": context.map(|c| hex(c.1)), "exception": exception,
                "object": if exposed == 0 { Value::Null } else { object(self, exposed).0 }, "finalizer": id == 2,
                "gc_mode": if id & 1 == 1 { "cooperative" } else { "preemptive" },
            }));
        }
        let store = self.make("ThreadStore");
        self.set(store, "ThreadStore", "ThreadCount", 4);
        self.set(store, "ThreadStore", "FirstThreadLink", addresses[0] + link);
        for (name, value) in [("ThreadStore", store), ("FinalizerThread", addresses[1])] {
            let at = self.pointer_var(value);
            self.vm_slot(name, at);
        }
        let bytes = self.lay.size("EEAllocContext");
        let global = self.var(bytes.max(p));
        self.vm_slot("GlobalAllocContext", global);
        let gc = global + self.at("EEAllocContext", "GCAllocationContext");
        let (pointer, limit) = self.global_context();
        for (f, v) in [("Pointer", pointer), ("Limit", limit)] {
            self.set(gc, "GCAllocContext", f, v);
        }
        expected
    }
}
