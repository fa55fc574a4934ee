//! Segments with objects, and the data of each heap.

use serde_json::{Map, Value, json};

use super::{ARRAYS, Builder, Global, HEAP_POINTERS, hex};

impl Builder {
    pub(super) fn method_tables(&mut self) {
        let p = self.p;
        // Base size, flags with component size.
        let list =
            [("FreeObject", 3 * p, 0x8000_0001), ("Object", 3 * p, 0), ("String", 2 * p + 6, 0x8000_0002u64), ("", 3 * p, 0x0100_0000)];
        let module = self.native(0x40);
        for (i, (name, base, flags)) in list.into_iter().enumerate() {
            // GCDesc: one series of one reference, after the method table pointer.
            let runs = self.native(4 * p);
            let (mt, class) = (self.make("MethodTable"), self.make("EEClass"));
            if name.is_empty() {
                assert_eq!(mt, runs + 4 * p);
                let series = [(3, (p.wrapping_sub(base)) & (u64::MAX >> (64 - 8 * p))), (2, p), (1, 1)];
                series.into_iter().for_each(|(words, value)| self.mem.p(mt - words * p, value));
            }
            self.set(mt, "MethodTable", "BaseSize", base);
            self.set(mt, "MethodTable", "MTFlags", flags);
            self.set(mt, "MethodTable", "MTFlags2", (i as u64 + 2) << 8);
            self.set(mt, "MethodTable", "EEClassOrCanonMT", class);
            self.set(mt, "MethodTable", "Module", module);
            let parent = if i > 1 { self.tables[1] } else { 0 };
            self.set(mt, "MethodTable", "ParentMethodTable", parent);
            self.set(class, "EEClass", "MethodTable", mt);
            self.tables[i] = mt;
            if !name.is_empty() {
                let at = self.pointer_var(mt);
                self.vm_slot(&format!("{name}MethodTable"), at);
            }
        }
        let unmask = if p == 8 { 7 } else { 3 };
        self.vm.push(("ObjectToMethodTableUnmask".into(), Global::Number(unmask, "uint8")));
    }

    /// Fills `[at, end)` with objects.
    pub(super) fn fill(&mut self, mut at: u64, end: u64, uoh: bool) {
        let p = self.p;
        let align = if uoh { 8 } else { p };
        let (free, rest) = (3 * p, 6 * p);
        let mut n = self.objects.len();
        while at < end {
            let room = end - at;
            let (kind, count, size) = match n % 4 {
                0 => (1, None, 3 * p),
                1 => (2, Some(5), 2 * p + 6 + 10),
                2 => (3, None, 3 * p),
                _ => (0, Some(9), free + 9),
            };
            let size = size.next_multiple_of(align);
            let (kind, count, size) = if room >= size + rest { (kind, count, size) } else { (0, Some(room - free), room) };
            // Low bits are set on some objects, as by a collection.
            let mark = if n % 5 == 4 { 1 } else { 0 };
            let mt = self.tables[kind];
            self.mem.p(at, mt | mark);
            if let Some(count) = count {
                self.mem.put(at + p, 4, count);
            }
            if kind == 3 {
                self.mem.p(at + p, self.objects.last().map_or(0, |o| o.0));
            }
            if kind != 0 {
                self.objects.push((at, mt));
            }
            n += 1;
            at += size;
        }
        assert_eq!(at, end);
    }

    /// Writes a segment with objects and returns its address. `hole` starts `from` bytes after the start, with `len` bytes up to the limit.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn segment(
        &mut self,
        heap: (u64, u64),
        class: &str,
        flags: u64,
        bytes: u64,
        ephemeral: bool,
        hole: Option<u64>,
    ) -> (u64, u64) {
        let regions = self.spec.regions;
        let region = self.region_at;
        self.region_at += 0x10000;
        // The GC does not create frozen segments: they begin elsewhere, and so do their structures.
        let frozen = flags & 1 != 0;
        let mem = region
            + if frozen {
                0x10
            } else if regions {
                0x30
            } else {
                0x200
            };
        let end = mem + bytes;
        self.mem.map(region, (end - region).next_multiple_of(0x100), true);
        let at = if regions || frozen { self.make("HeapSegment") } else { region };
        let (committed, reserved) = (region + 0x1000, region + 0x10000);
        // Before the first collection, only the heap has the end of allocation of the youngest segment.
        let allocated = if ephemeral { mem } else { end };
        let list = [
            ("Allocated", allocated),
            ("Committed", committed),
            ("Reserved", reserved),
            ("Used", end + 0x80),
            ("Mem", mem),
            ("Flags", flags),
            (
                "BackgroundAllocated",
                if self.spec.sweeping {
                    reserved
                } else if frozen {
                    0xdead_beef
                } else {
                    0
                },
            ),
        ];
        for (field, value) in list {
            self.set(at, "HeapSegment", field, value);
        }
        if self.spec.server.is_some() {
            self.set(at, "HeapSegment", "Heap", heap.1);
        }
        let uoh = flags & 0x208 != 0;
        match hole {
            None => self.fill(mem, end, uoh),
            Some(len) => {
                let from = mem + 0x100;
                self.fill(mem, from, uoh);
                self.fill(from + len + 3 * self.p, end, uoh);
            }
        }
        self.segments.push(json!({
            "address": hex(at), "heap": heap.0, "generation": class, "start": hex(mem), "allocated": hex(end),
            "committed": hex(committed), "reserved": hex(reserved), "used": hex(end + 0x80), "flags": flags,
            "allocated_bytes": bytes, "committed_bytes": 0x1000, "reserved_bytes": 0x10000, "captured_bytes": bytes,
        }));
        (at, mem)
    }

    /// Writes a chain of free regions and returns its head.
    pub(super) fn free_chain(&mut self, list: &str, heap: Option<u64>, class: Option<&str>, count: u64) -> u64 {
        let mut head = 0;
        let mut rows = Vec::new();
        for _ in 0..count {
            let region = self.region_at;
            self.region_at += 0x10000;
            let at = self.make("HeapSegment");
            let fields = [("Mem", 0x30), ("Allocated", 0x40), ("Used", 0x1800), ("Committed", 0x2000), ("Reserved", 0x10000)];
            for (field, offset) in fields {
                self.set(at, "HeapSegment", field, region + offset);
            }
            self.set(at, "HeapSegment", "Flags", 0x40);
            self.set(at, "HeapSegment", "Next", head);
            let segment = json!({"start": hex(region + 0x30), "allocated": hex(region + 0x40), "committed": hex(region + 0x2000),
                "reserved": hex(region + 0x10000), "used": hex(region + 0x1800), "next": hex(head), "flags": ["ma-committed"],
                "flags_value": 0x40});
            head = at;
            let range = json!({"start": hex(region), "end": hex(region + 0x2000)});
            rows.push(json!({"list": list, "heap": heap, "size_class": class, "address": hex(at), "range": range, "bytes": 0x2000,
                "segment": segment}));
        }
        self.free.extend(rows);
        head
    }

    /// Three contiguous lists.
    pub(super) fn free_lists(&mut self, at: u64, list: &str, heap: Option<u64>, counts: [u64; 3]) {
        for (i, class) in ["basic", "large", "huge"].into_iter().enumerate() {
            let head = self.free_chain(list, heap, Some(class), counts[i]);
            let entry = at + i as u64 * self.lay.size("RegionFreeList");
            self.set(entry, "RegionFreeList", "HeadFreeRegion", head);
            self.set(entry, "RegionFreeList", "NumFreeRegions", counts[i]);
        }
    }

    /// Memory past the objects of a segment.
    fn room(&self, segment: u64) -> (u64, u64) {
        let row = self.segments.iter().find(|s| s["address"] == hex(segment)).unwrap();
        let end = number(&row["allocated"]);
        (end, end + 0x100)
    }

    /// The allocation context of the process.
    pub(super) fn global_context(&self) -> (u64, u64) {
        if self.spec.global_context { self.room(number(&self.segments[0]["address"])) } else { (0, 0) }
    }

    /// All heaps: the expected answer for each, and the holes of two threads as (pointer, limit).
    pub(super) fn heaps(&mut self) -> (Vec<Value>, [(u64, u64); 2]) {
        let count = self.spec.server.map_or(1, u64::from);
        let regions = self.spec.regions;
        let mut expected = Vec::new();
        let mut addresses = Vec::new();
        let mut holes = [(0, 0); 2];
        for index in 0..count {
            let address = if self.spec.server.is_some() { self.make("GCHeap") } else { 0 };
            addresses.push(address);
            let heap = (index, address);
            // The thread with space left allocates on the first heap, the one without on the last.
            let room = if index == 0 { Some(0x40) } else { (index + 1 == count).then_some(0) };
            let mut starts = [0u64; 5];
            let class = |b: &mut Builder, name: &str, flags, bytes| b.segment(heap, name, flags, bytes, false, None);
            let frozen = (index == 0).then(|| class(self, "frozen", 1, 0xc0).0);
            let old = class(self, "gen2", 0, 0x100).0;
            let mut allocation_starts = [0u64; 5];
            let (ephemeral, ephemeral_start) = if regions {
                let gen1 = class(self, "gen1", 0x10, 0x80).0;
                let older = class(self, "gen0", 0, 0x98 / 8 * 8).0;
                let young = self.segment(heap, "gen0", 0, 0x300, true, room);
                self.set(older, "HeapSegment", "Next", young.0);
                (starts[0], starts[1], starts[2]) = (older, gen1, old);
                young
            } else {
                let young = self.segment(heap, "ephemeral", 0, 0x300, true, room);
                self.set(old, "HeapSegment", "Next", young.0);
                (starts[0], starts[1], starts[2]) = (young.0, young.0, old);
                allocation_starts = [young.1 + 0x80, young.1 + 0x40, 0, 0, 0];
                young
            };
            if let Some(frozen) = frozen {
                self.set(frozen, "HeapSegment", "Next", old);
                starts[2] = frozen;
            }
            starts[3] = class(self, "loh", 8, 0x140).0;
            let second = class(self, "loh", 8, 0x40).0;
            let first = starts[3];
            self.set(first, "HeapSegment", "Next", second);
            // An empty region is normal.
            starts[4] = class(self, "poh", 0x200, 0).0;
            let end = ephemeral_start + 0x300;
            let hole = |room: u64| (ephemeral_start + 0x100, ephemeral_start + 0x100 + room);
            if index == 0 {
                holes[0] = hole(0x40);
            }
            if index + 1 == count && index > 0 {
                holes[1] = hole(0);
            }
            expected.push(self.heap(heap, starts, allocation_starts, ephemeral, end));
        }
        // Workstation GC has one heap, whose hole belongs to the first thread; the other thread has an empty context.
        if self.spec.server.is_some() {
            let list = self.native(self.p * count);
            for (i, a) in addresses.iter().enumerate() {
                self.mem.p(list + i as u64 * self.p, *a);
            }
            let (heaps, number, cpus) = (self.pointer_var(list), self.number_var(count), self.number_var(self.spec.cpus.into()));
            self.gc_slot("Heaps", heaps);
            self.gc_slot("NumHeaps", number);
            self.gc_slot("TotalCpuCount", cpus);
        }
        (expected, holes)
    }

    /// The mark array as stored: the address of the word for address 0.
    pub(super) fn marks(&self) -> u64 {
        let low = self.spec.shape.pick(0x7e00_1000_0000, 0x2000_0000) + self.spec.at;
        self.spec.shape.pick(0x7d00_0000_0000, 0x1000_0000) - low / (64 * self.p) * 4
    }

    /// Address of the word with an object's mark, and the bit.
    pub(super) fn mark_of(&self, object: u64) -> (u64, u64) {
        let mark = object / (2 * self.p);
        (self.marks() + mark / 32 * 4, mark % 32)
    }

    pub(super) fn mark_all(&mut self) {
        let start = self.spec.shape.pick(0x7d00_0000_0000, 0x1000_0000);
        self.mem.map(start, 0x80_0000 / (64 * self.p) * 4, true);
        let mut words = std::collections::BTreeMap::new();
        for (object, _) in &self.objects {
            let (word, bit) = self.mark_of(*object);
            *words.entry(word).or_insert(0) |= 1u64 << bit;
        }
        words.into_iter().for_each(|(word, bits)| self.mem.put(word, 4, bits));
    }

    /// One heap's own items.
    pub(super) fn heap(&mut self, heap: (u64, u64), starts: [u64; 5], allocation_starts: [u64; 5], ephemeral: u64, end: u64) -> Value {
        let (index, address) = heap;
        let (p, server, regions) = (self.p, self.spec.server.is_some(), self.spec.regions);
        let last = index + 1 == self.spec.server.map_or(1, u64::from);
        // Address of an item: in the heap structure, or in a variable of the module.
        let place = |b: &mut Builder, name: &str, bytes: u64| {
            if server {
                return address + b.at("GCHeap", name);
            }
            let at = b.var(bytes);
            b.gc_slot(&format!("GCHeap{name}"), at);
            at
        };
        let fill_count = 7;
        let queue = self.make("CFinalize");
        let array = self.native(p * 32);
        let mut fill_pointers = Vec::new();
        for (i, n) in [0, 0, 2, 5, 5, 7, 8].into_iter().enumerate() {
            let at = queue + self.at("CFinalize", "FillPointers") + i as u64 * p;
            self.mem.p(at, array + n * p);
            fill_pointers.push(hex(array + n * p));
        }
        assert_eq!(fill_pointers.len(), fill_count);
        let step = index * 0x100;
        let (marks, lowest, highest) = if self.spec.sweeping {
            (self.marks(), 0, u64::from(u32::MAX) << 16)
        } else {
            (0x1_1000 + step, 0x1_3000 + step, 0x1_4000 + step)
        };
        let values = [marks, 0x1_2000 + step, lowest, highest, end, ephemeral, 0x1_5000 + step, queue, 0x1_6000 + step, 0x1_7000 + step];
        let names = [
            "mark_array",
            "next_sweep_object",
            "background_saved_lowest",
            "background_saved_highest",
            "alloc_allocated",
            "ephemeral_segment",
            "card_table",
            "",
            "saved_sweep_segment",
            "internal_root_array",
        ];
        let mut detail = Map::new();
        for ((name, value), key) in HEAP_POINTERS.into_iter().zip(values).zip(names) {
            let at = place(self, name, p);
            self.mem.p(at, value);
            if !key.is_empty() {
                detail.insert(key.into(), hex(value));
            }
        }
        let at = place(self, "InternalRootArrayIndex", p);
        self.mem.p(at, 77 + index);
        detail.insert("internal_root_array_index".into(), json!(77 + index));
        let at = place(self, "HeapAnalyzeSuccess", 4);
        self.mem.put(at, 4, 1);
        detail.insert("heap_analyze_success".into(), json!(true));
        if !regions {
            let at = place(self, "SavedSweepEphemeralStart", p);
            self.mem.p(at, 0x1_8000 + step);
            detail.insert("saved_sweep_start".into(), hex(0x1_8000 + step));
        }
        for (n, (name, key, len)) in ARRAYS.into_iter().enumerate() {
            let at = place(self, name, 12 * p);
            let counts: Vec<u64> = (0..len).map(|i| 100 * n as u64 + i + index).collect();
            for (i, c) in counts.iter().enumerate() {
                self.mem.p(at + i as u64 * p, *c);
            }
            detail.insert(key.into(), json!(counts));
        }
        let size = self.lay.size("Generation");
        let table = place(self, "GenerationTable", 5 * size);
        let mut entries = Vec::new();
        for g in 0..5u64 {
            let (at, i) = (table + g * size, g as usize);
            self.set(at, "Generation", "StartSegment", starts[i]);
            let mut entry = json!({"generation": g, "start_segment": hex(starts[i]), "allocation_start": null});
            if !regions {
                self.set(at, "Generation", "AllocationStart", allocation_starts[i]);
                entry["allocation_start"] = hex(allocation_starts[i]);
            }
            let context = at + self.at("Generation", "AllocationContext");
            let (pointer, limit) = if g == 3 { self.room(starts[3]) } else { (0, 0) };
            self.set(context, "GCAllocContext", "Pointer", pointer);
            self.set(context, "GCAllocContext", "Limit", limit);
            let totals = if g == 3 { (0x5_0000 + index, 0x1_0000_0000 + index) } else { (0, 0) };
            self.set(context, "GCAllocContext", "AllocBytes", totals.0);
            self.set(context, "GCAllocContext", "AllocBytesLoh", totals.1);
            // The unused rest of the range is counted, and not allocated.
            (entry["allocated_bytes"], entry["allocated_bytes_uoh"]) = ((totals.0 - (limit - pointer)).into(), totals.1.into());
            entry["context_pointer"] = hex(pointer);
            entry["context_limit"] = hex(limit);
            entries.push(entry);
        }
        let bytes = self.lay.size("OomHistory");
        let oom = place(self, "OomData", bytes);
        let mut record = json!({"heap": index, "reason": 0, "alloc_size": 0, "reserved": "0x0", "allocated": "0x0", "gc_index": 0,
            "fgm": 0, "size": 0, "available_pagefile_mb": 0, "loh": false});
        if last {
            let list = [("Reason", 2), ("AllocSize", 0x1_2345), ("Reserved", 0x7100), ("Allocated", 0x7200), ("GcIndex", 9), ("Fgm", 3)];
            for (field, value) in list.into_iter().chain([("Size", 0x8000), ("AvailablePagefileMb", 55), ("LohP", 1)]) {
                self.set(oom, "OomHistory", field, value);
            }
            record = json!({"heap": index, "reason": 2, "alloc_size": 0x1_2345, "reserved": "0x7100", "allocated": "0x7200",
                "gc_index": 9, "fgm": 3, "size": 0x8000, "available_pagefile_mb": 55, "loh": true});
        }
        if regions {
            let bytes = 3 * self.lay.size("RegionFreeList");
            let lists = place(self, "FreeRegions", bytes);
            self.free_lists(lists, "free", Some(index), [2, 0, 1]);
        }
        for (name, list, count) in [("FreeableSohSegment", "freeable-soh", 1), ("FreeableUohSegment", "freeable-uoh", 2 * index)] {
            let head = self.free_chain(list, Some(index), None, count);
            let at = place(self, name, p);
            self.mem.p(at, head);
        }
        detail.insert("generation_table".into(), json!(entries));
        json!({
            "oom": record,
            "detail": {
                "index": index,
                "address": (address != 0).then(|| hex(address)),
                "fill_pointers": fill_pointers, "registered": 5, "ready": 3,
                "detail": detail,
            },
        })
    }
}

/// Parses an address in JSON. The fuzz targets also use this module, and have no `common`.
fn number(value: &serde_json::Value) -> u64 {
    value
        .as_str()
        .and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok())
        .unwrap_or_else(|| panic!("{value} is not an address"))
}
