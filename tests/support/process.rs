//! Fills the memory of the fake process.

use serde_json::{Map, Value, json};

use super::containers::Facts;
use super::image::{HEADERS, Image};
use super::mem::{Layouts, Mem};
use super::{GcPart, Hostile, Spec, Target};

/// Offset of the module's writable part.
const DATA: u64 = 0x9000;
/// Blocks per handle segment. (120 or 240 in real runtimes.)
const BLOCKS: u64 = 200;
/// The mark of no block. (0xff in real runtimes.)
const NO_BLOCK: u8 = 0xfe;
/// Buckets per map. (10 in real runtimes.)
const BUCKETS: u64 = 7;
/// Native size of the bookkeeping's header.
const CARD_INFO: u64 = 0x50;
/// Length of each array per heap: data, reasons, mechanisms, bits.
const ARRAYS: [(&str, &str, u64); 4] = [
    ("InterestingData", "interesting_data", 8),
    ("CompactReasons", "compact_reasons", 10),
    ("ExpandMechanisms", "expand_mechanisms", 5),
    ("InterestingMechanismBits", "interesting_mechanism_bits", 2),
];
const HANDLE_TYPES: [&str; 12] = [
    "weak-short",
    "weak-long",
    "strong",
    "pinned",
    "variable",
    "ref-counted",
    "dependent",
    "async-pinned",
    "sized-ref",
    "weak-native-com",
    "weak-interior-pointer",
    "cross-reference",
];

enum Global {
    Number(u64, &'static str),
    Text(String),
    Slot(u64),
}

type Globals = Vec<(String, Global)>;

struct Builder {
    spec: Spec,
    p: u64,
    mem: Mem,
    lay: Layouts,
    var_at: u64,
    native_at: u64,
    native_end: u64,
    region_at: u64,
    vm: Globals,
    gc: Globals,
    /// Free, Object, String, and a class with one reference.
    tables: [u64; 4],
    /// Address and method table.
    objects: Vec<(u64, u64)>,
    segments: Vec<Value>,
    handles: Vec<Value>,
    free: Vec<Value>,
}

pub fn hex(n: u64) -> Value {
    json!(format!("{n:#x}"))
}

impl Builder {
    /// A variable of the module.
    fn var(&mut self, bytes: u64) -> u64 {
        let at = self.var_at.next_multiple_of(8);
        self.var_at = at + bytes;
        at
    }

    /// A pointer variable with its value.
    fn pointer_var(&mut self, value: u64) -> u64 {
        let at = self.var(self.p);
        self.mem.p(at, value);
        at
    }

    fn number_var(&mut self, value: u64) -> u64 {
        let at = self.var(4);
        self.mem.put(at, 4, value);
        at
    }

    /// Memory of the native heap.
    fn native(&mut self, bytes: u64) -> u64 {
        let at = self.native_at.next_multiple_of(8);
        self.native_at = at + bytes;
        assert!(self.native_at <= self.native_end, "native heap too small");
        at
    }

    fn make(&mut self, name: &str) -> u64 {
        let bytes = self.lay.size(name);
        self.native(bytes)
    }

    fn at(&self, name: &str, field: &str) -> u64 {
        self.lay.field(name, field).0
    }

    fn set(&mut self, address: u64, name: &str, field: &str, value: u64) {
        let (offset, bytes) = self.lay.field(name, field);
        self.mem.put(address + offset, bytes, value);
    }

    fn vm_slot(&mut self, name: &str, address: u64) {
        self.vm.push((name.into(), Global::Slot(address)));
    }

    fn gc_slot(&mut self, name: &str, address: u64) {
        self.gc.push((name.into(), Global::Slot(address)));
    }
}

fn layouts(spec: &Spec) -> (Layouts, Vec<String>) {
    let mut l = Layouts::new(spec.shape);
    let p = spec.shape.ptr;
    let ptrs = |names: &[&'static str]| names.iter().map(|n| (*n, "pointer")).collect::<Vec<_>>();
    l.fixed("Object", p, false, &[("m_pMethTab", 0, "pointer")]);
    l.fixed("String", p + 6, false, &[("m_StringLength", p, "uint32"), ("m_FirstChar", p + 4, "uint16")]);
    l.fixed("Array", 2 * p, true, &[("m_NumComponents", p, "uint32")]);
    let mut mt = vec![("MTFlags", "uint32"), ("BaseSize", "uint32"), ("MTFlags2", "uint32"), ("NumVirtuals", "uint16")];
    mt.extend(ptrs(&["EEClassOrCanonMT", "Module", "ParentMethodTable", "PerInstInfo"]));
    l.add("MethodTable", true, &mt);
    l.add("EEClass", false, &[("InternalCorElementType", "uint8"), ("MethodTable", "pointer"), ("NumMethods", "uint16")]);
    let mut thread = vec![("Id", "uint32"), ("OSId", "nuint"), ("State", "uint32"), ("PreemptiveGCDisabled", "uint32")];
    thread.extend(ptrs(&["RuntimeThreadLocals", "ExposedObject", "LastThrownObject", "ExceptionTracker", "LinkNext"]));
    l.add("Thread", false, &thread);
    l.add("ThreadStore", false, &[("ThreadCount", "uint32"), ("FirstThreadLink", "pointer"), ("DeadCount", "uint32")]);
    l.add("GCAllocContext", false, &[("Pointer", "pointer"), ("Limit", "pointer"), ("AllocBytes", "int64"), ("AllocBytesLoh", "int64")]);
    l.add("EEAllocContext", false, &[("GCAllocationContext", "GCAllocContext")]);
    l.add("RuntimeThreadLocals", false, &[("AllocContext", "EEAllocContext")]);
    l.add("ExceptionInfo", false, &[("PreviousNestedInfo", "pointer"), ("ThrownObject", "pointer")]);
    let vm_types: Vec<String> = l.types.keys().cloned().collect();

    let mut generation = vec![("AllocationContext", "GCAllocContext"), ("StartSegment", "pointer")];
    if !spec.regions {
        generation.push(("AllocationStart", "pointer"));
    }
    l.add("Generation", true, &generation);
    l.add("CFinalize", false, &[("Lock", "uint32"), ("FillPointers", "pointer*7")]);
    let mut segment = ptrs(&["Allocated", "Committed", "Reserved", "Used", "Mem", "Next", "BackgroundAllocated"]);
    segment.insert(3, ("Flags", "nuint"));
    if spec.server.is_some() {
        segment.push(("Heap", "pointer"));
    }
    l.add("HeapSegment", false, &segment);
    let oom = [
        ("Reason", "int32"),
        ("AllocSize", "nuint"),
        ("Reserved", "pointer"),
        ("Allocated", "pointer"),
        ("GcIndex", "nuint"),
        ("Fgm", "int32"),
        ("Size", "nuint"),
        ("AvailablePagefileMb", "nuint"),
        ("LohP", "uint32"),
    ];
    l.add("OomHistory", false, &oom);
    l.add("HandleTableMap", false, &ptrs(&["BucketsPtr", "Next"]));
    l.add("HandleTableBucket", false, &[("Table", "pointer"), ("HandleTableIndex", "uint32")]);
    l.add("HandleTable", false, &[("SegmentList", "pointer"), ("Lock", "uint32")]);
    let blocks = "uint8*200";
    let arrays = [
        ("NextSegment", 0x10, "pointer"),
        ("RgUserData", 0x40, blocks),
        ("RgAllocation", 0x140, blocks),
        ("RgTail", 0x240, "uint8*13"),
        ("RgValue", 0xc00, "pointer"),
    ];
    l.fixed("TableSegment", 0x10000, false, &arrays);
    l.add("CardTableInfo", true, &[("Recount", "uint32"), ("Size", "nuint"), ("NextCardTable", "pointer")]);
    l.add("RegionFreeList", true, &[("NumFreeRegions", "nuint"), ("HeadFreeRegion", "pointer"), ("TailFreeRegion", "pointer")]);
    if spec.server.is_some() {
        let mut heap = ptrs(&HEAP_POINTERS);
        heap.extend([("HeapAnalyzeSuccess", "int32"), ("GenerationTable", "Generation*5"), ("OomData", "OomHistory")]);
        heap.extend([("InternalRootArrayIndex", "nuint")]);
        heap.extend([("InterestingData", "nuint*12"), ("CompactReasons", "nuint*12")]);
        heap.extend([("ExpandMechanisms", "nuint*6"), ("InterestingMechanismBits", "nuint*2")]);
        heap.extend(if spec.regions { ("FreeRegions", "RegionFreeList*3") } else { ("SavedSweepEphemeralStart", "pointer") }.into_pair());
        l.add("GCHeap", false, &heap);
    }
    (l, vm_types)
}

trait IntoPair {
    fn into_pair(self) -> [(&'static str, &'static str); 1];
}

impl IntoPair for (&'static str, &'static str) {
    fn into_pair(self) -> [(&'static str, &'static str); 1] {
        [self]
    }
}

/// Items of a heap that are one pointer.
const HEAP_POINTERS: [&str; 12] = [
    "MarkArray",
    "NextSweepObj",
    "BackgroundMinSavedAddr",
    "BackgroundMaxSavedAddr",
    "AllocAllocated",
    "EphemeralHeapSegment",
    "CardTable",
    "FinalizeQueue",
    "SavedSweepEphemeralSeg",
    "InternalRootArray",
    "FreeableSohSegment",
    "FreeableUohSegment",
];

pub fn build(spec: &Spec) -> Target {
    let shape = spec.shape;
    let base = shape.pick(0x7f12_3400_0000, 0x6a10_0000);
    let native = shape.pick(0x5581_0004_0000, 0x0910_0000);
    let low = shape.pick(0x7e00_1000_0000, 0x2000_0000);
    let (lay, vm_types) = layouts(spec);
    let mut b = Builder {
        spec: spec.clone(),
        p: shape.ptr,
        mem: Mem { shape, ranges: Default::default() },
        lay,
        // The root descriptor comes behind the GC's, which a scan for the magic bytes meets first.
        var_at: base + DATA + 0x100,
        native_at: native,
        native_end: native + 0x8000,
        region_at: low,
        vm: Vec::new(),
        gc: Vec::new(),
        tables: [0; 4],
        objects: Vec::new(),
        segments: Vec::new(),
        handles: Vec::new(),
        free: Vec::new(),
    };
    b.mem.map(base + DATA, 0x1000, true);
    b.mem.map(native, 0x8000, true);
    b.method_tables();
    let (heaps, holes) = b.heaps();
    if spec.sweeping {
        b.mark_all();
    }
    let strong = b.handle_tables();
    let threads = b.threads(&strong, &holes);
    b.bookkeeping();
    let high = b.region_at + 0x10_0000;
    for (name, value) in [("GCLowestAddress", low), ("GCHighestAddress", high)] {
        let at = b.pointer_var(value);
        b.vm_slot(name, at);
    }
    b.facts();
    b.descriptors(base, &vm_types);
    let used = (b.native_at - native).next_multiple_of(0x100);
    b.mem.ranges.get_mut(&native).unwrap().bytes.truncate(used as usize);
    let in_progress = spec.gc_in_progress;
    let server = spec.server.is_some();
    let mut identifiers =
        vec![if server { "server" } else { "workstation" }, if spec.regions { "regions" } else { "segments" }, "background"];
    let adapts = server && spec.regions;
    if adapts {
        identifiers.push("dynamic_heap");
    }
    let oom: Vec<Value> = heaps.iter().map(|h| h["oom"].clone()).collect();
    let expected = json!({
        "identifiers": identifiers,
        "server": server,
        "heap_count": spec.server.unwrap_or(1),
        "max_generation": 2,
        "lowest": hex(low),
        "highest": hex(high),
        "gc_state": if in_progress { 1 } else { 2 },
        "structures_valid": !in_progress,
        "dynamic_adaptation_mode": adapts.then_some(1),
        "segments": b.segments,
        "handles": b.handles,
        "handle_tables": if server { spec.cpus } else { 1 },
        "oom": oom,
        "threads": threads,
        "heaps": heaps.iter().map(|h| h["detail"].clone()).collect::<Vec<_>>(),
        "free": b.free,
        "objects": b.objects.iter().map(|(a, mt)| json!([hex(*a), hex(*mt)])).collect::<Vec<_>>(),
    });
    let image = Image { shape, base, data: (DATA, 0x1000), export: spec.export.then_some(DATA + 0x80) };
    let facts = Facts { shape, image, pid: 4000, threads: vec![4001, 4002, 4004, 4009] };
    Target { memory: b.mem, facts, expected, gone: Vec::new() }
}

impl Builder {
    fn method_tables(&mut self) {
        let p = self.p;
        // Base size, flags with component size.
        let list =
            [("FreeObject", 3 * p, 0x8000_0001), ("Object", 3 * p, 0), ("String", 2 * p + 6, 0x8000_0002u64), ("", 3 * p, 0x0100_0000)];
        let module = self.native(0x40);
        for (i, (name, base, flags)) in list.into_iter().enumerate() {
            // Where the references are: one run of one, behind the method table's pointer.
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
    fn fill(&mut self, mut at: u64, end: u64, uoh: bool) {
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
            // One of the low bits is set now and then, as by a collection.
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

    /// A segment with objects. Returns its address. `hole` lies `from` behind the start, with `len` bytes up to the limit.
    #[allow(clippy::too_many_arguments)]
    fn segment(&mut self, heap: (u64, u64), class: &str, flags: u64, bytes: u64, ephemeral: bool, hole: Option<u64>) -> (u64, u64) {
        let regions = self.spec.regions;
        let region = self.region_at;
        self.region_at += 0x10000;
        let mem = region + if regions { 0x30 } else { 0x200 };
        let end = mem + bytes;
        self.mem.map(region, (end - region).next_multiple_of(0x100), true);
        let at = if regions { self.make("HeapSegment") } else { region };
        let (committed, reserved) = (region + 0x1000, region + 0x10000);
        // Before the first collection, only the heap knows how far the youngest segment is filled.
        let allocated = if ephemeral { mem } else { end };
        let list = [
            ("Allocated", allocated),
            ("Committed", committed),
            ("Reserved", reserved),
            ("Used", end + 0x80),
            ("Mem", mem),
            ("Flags", flags),
            ("BackgroundAllocated", if self.spec.sweeping { reserved } else { 0xdead_beef }),
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

    /// A chain of free regions; returns its head.
    fn free_chain(&mut self, list: &str, heap: Option<u64>, class: Option<&str>, count: u64) -> u64 {
        let mut head = 0;
        let mut rows = Vec::new();
        for _ in 0..count {
            let region = self.region_at;
            self.region_at += 0x10000;
            let at = self.make("HeapSegment");
            self.set(at, "HeapSegment", "Mem", region + 0x30);
            self.set(at, "HeapSegment", "Committed", region + 0x2000);
            self.set(at, "HeapSegment", "Next", head);
            head = at;
            let range = json!({"start": hex(region), "end": hex(region + 0x2000)});
            rows.push(json!({"list": list, "heap": heap, "size_class": class, "address": hex(at), "range": range, "bytes": 0x2000}));
        }
        self.free.extend(rows);
        head
    }

    /// Three lists in a row.
    fn free_lists(&mut self, at: u64, list: &str, heap: Option<u64>, counts: [u64; 3]) {
        for (i, class) in ["basic", "large", "huge"].into_iter().enumerate() {
            let head = self.free_chain(list, heap, Some(class), counts[i]);
            let entry = at + i as u64 * self.lay.size("RegionFreeList");
            self.set(entry, "RegionFreeList", "HeadFreeRegion", head);
            self.set(entry, "RegionFreeList", "NumFreeRegions", counts[i]);
        }
    }

    /// All heaps: what is expected of each, and the holes of two threads as (pointer, limit).
    fn heaps(&mut self) -> (Vec<Value>, [(u64, u64); 2]) {
        let count = self.spec.server.map_or(1, u64::from);
        let regions = self.spec.regions;
        let mut expected = Vec::new();
        let mut addresses = Vec::new();
        let mut holes = [(0, 0); 2];
        for index in 0..count {
            let address = if self.spec.server.is_some() { self.make("GCHeap") } else { 0 };
            addresses.push(address);
            let heap = (index, address);
            // The thread with room left allocates on the first heap, the one without on the last.
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
            // An empty one is normal.
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
        // Workstation GC has one heap, whose hole belongs to the first thread; the other one has an empty context.
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

    /// The mark array as it is stored: where the word of address 0 would be.
    fn marks(&self) -> u64 {
        let low = self.spec.shape.pick(0x7e00_1000_0000, 0x2000_0000);
        self.spec.shape.pick(0x7d00_0000_0000, 0x1000_0000) - low / (64 * self.p) * 4
    }

    /// Where the mark of an object lies: its word, and the bit.
    fn mark_of(&self, object: u64) -> (u64, u64) {
        let mark = object / (2 * self.p);
        (self.marks() + mark / 32 * 4, mark % 32)
    }

    fn mark_all(&mut self) {
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
    fn heap(&mut self, heap: (u64, u64), starts: [u64; 5], allocation_starts: [u64; 5], ephemeral: u64, end: u64) -> Value {
        let (index, address) = heap;
        let (p, server, regions) = (self.p, self.spec.server.is_some(), self.spec.regions);
        let last = index + 1 == self.spec.server.map_or(1, u64::from);
        // Where an item lies: inside of the heap's structure, or in a variable of the module.
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
            let (pointer, limit) = if g == 3 { (0x1_9000, 0x1_9100) } else { (0, 0) };
            self.set(context, "GCAllocContext", "Pointer", pointer);
            self.set(context, "GCAllocContext", "Limit", limit);
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

    /// A segment of a handle table with `(type, block, place, object, secondary)`; returns its address.
    fn handle_segment(&mut self, number: u64, handles: &[(u8, u8, u64, u64, u64)], next: u64, blocks: u64) -> u64 {
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
                // Data blocks belong to the internal type; what is in them must not be listed.
                let data = 20 + kind - 6;
                if !rings[12].contains(&data) {
                    rings[12].push(data);
                }
                self.mem.bytes(user + u64::from(*block), &[data]);
                self.mem.p(values + (u64::from(data) * per_block + place) * p, *secondary);
            }
            let mt = self.objects.iter().find(|o| o.0 == *object).map(|o| hex(o.1));
            self.handles.push(json!({"address": hex(h), "type": HANDLE_TYPES[usize::from(*kind)], "object": hex(*object),
                "method_table": mt, "secondary": has.then(|| hex(*secondary))}));
        }
        // A block in the ring that was never used and so is not captured.
        if blocks > 20 {
            rings[2].push(150);
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
    fn per_block(&self) -> u64 {
        0x100 / self.p
    }

    /// All handle tables. Returns three strong handles.
    fn handle_tables(&mut self) -> [u64; 3] {
        let o: Vec<u64> = self.objects.iter().map(|o| o.0).collect();
        let (o, last) = (|i: usize| o[i % o.len()], self.per_block() - 1);
        let absent = self.region_at + 0x8_0000;
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
        // A second block in a ring, one of dependent handles without secondaries, an object that is not captured.
        list.extend([(2, 13, 0, o(4), 0), (2, 13, 5, o(5), 0), (6, 14, 2, o(6), 0), (0, 0, 3, absent, 0)]);
        let first = self.handle_segment(0, &list, 0, 28);
        let second = self.handle_segment(1, &[(3, 0, 0, o(8), 0), (3, 0, 1, o(9), 0)], first, 1);
        self.set(first, "TableSegment", "NextSegment", second);
        let slots = if self.spec.server.is_some() { u64::from(self.spec.cpus) } else { 1 };
        let array = self.native(slots * self.p);
        for slot in 0..slots {
            let segment = match slot {
                0 => first,
                // More processors than heaps: a heap's worth of slots is not enough.
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
                "bytes": 0x10000}));
        }
        let values = first + self.at("TableSegment", "RgValue");
        let handle = |block: u64, place: u64| values + (block * self.per_block() + place) * self.p;
        [handle(2, 1), handle(13, 0), handle(13, 5)]
    }

    fn threads(&mut self, strong: &[u64; 3], holes: &[(u64, u64); 2]) -> Vec<Value> {
        let p = self.p;
        let object = |b: &Builder, handle: u64| {
            let found = b.handles.iter().find(|h| h["address"] == hex(handle)).unwrap();
            (found["object"].clone(), found["method_table"].clone())
        };
        let tracker = self.make("ExceptionInfo");
        self.set(tracker, "ExceptionInfo", "ThrownObject", strong[2]);
        // Managed id, system id, state, context, exposed object, last thrown, tracker.
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
            // The upper half of the system's id is garbage on some systems.
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
        expected
    }

    /// Bookkeeping and the free regions of the process.
    fn bookkeeping(&mut self) {
        let mut next = 0;
        let mut rows = Vec::new();
        for (recount, size) in [(3u64, 0x5000u64), (0, 0x6000), (1, 0x7000)] {
            let at = self.native(CARD_INFO);
            self.set(at, "CardTableInfo", "Recount", recount);
            self.set(at, "CardTableInfo", "Size", size);
            // The pointer leads behind the header of the next one.
            self.set(at, "CardTableInfo", "NextCardTable", if next == 0 { 0 } else { next + CARD_INFO });
            if recount != 0 {
                let range = json!({"start": hex(at), "end": hex(at + size)});
                rows.push(
                    json!({"list": "bookkeeping", "heap": null, "size_class": null, "address": hex(at), "range": range, "bytes": size}),
                );
            }
            next = at;
        }
        self.free.extend(rows);
        let start = self.pointer_var(next);
        self.gc_slot("BookkeepingStart", start);
        self.gc.push(("CardTableInfoSize".into(), Global::Number(CARD_INFO, "uint32")));
        if self.spec.regions {
            let bytes = self.lay.size("RegionFreeList");
            let (huge, decommit) = (self.var(bytes), self.var(3 * bytes));
            let head = self.free_chain("free-huge", None, Some("huge"), 1);
            self.set(huge, "RegionFreeList", "HeadFreeRegion", head);
            self.free_lists(decommit, "decommit", None, [1, 1, 0]);
            self.gc_slot("GlobalFreeHugeRegions", huge);
            self.gc_slot("GlobalRegionsToDecommit", decommit);
            self.gc.push(("CountFreeRegionKinds".into(), Global::Number(3, "uint32")));
        }
    }

    /// Facts of the collector.
    fn facts(&mut self) {
        let busy = self.spec.gc_in_progress;
        let server = self.spec.server.is_some();
        for (name, value) in [
            ("MaxGeneration", 2),
            ("StructureInvalidCount", u64::from(busy)),
            ("CurrentGCState", if busy || self.spec.sweeping { 1 } else { 2 }),
        ] {
            let at = self.number_var(value);
            self.gc_slot(name, at);
        }
        let mut text = format!(
            "{}, {}, background,",
            if server { "server" } else { "workstation" },
            if self.spec.regions { "regions" } else { "segments" }
        );
        if server && self.spec.regions {
            let at = self.number_var(1);
            self.gc_slot("DynamicAdaptationMode", at);
            text += " dynamic_heap";
        }
        self.gc.push(("GCIdentifiers".into(), Global::Text(text)));
        if !server {
            let at = self.var(6 * self.p);
            for i in 0..6 {
                self.mem.p(at + i * self.p, 900 + i);
            }
            self.gc_slot("GCGlobalMechanisms", at);
        }
        let numbers = [("TotalGenerationCount", 5), ("CFinalizeFillPointersLength", 7), ("GlobalMechanismsLength", 6)];
        for (name, n) in numbers {
            self.gc.push((name.into(), Global::Number(n, "uint32")));
        }
        for (name, _, len) in ARRAYS {
            self.gc.push((format!("{name}Length"), Global::Number(len, "uint32")));
        }
        self.vm.push(("RuntimeProductVersionString".into(), Global::Text("11.0.0-synthetic".into())));
        self.vm.push(("RecommendedReaderVersion".into(), Global::Number(1, "uint32")));
    }

    fn text_of(&self, types: &[String], globals: &Globals, contracts: Vec<(&str, Value)>, sub: Value) -> String {
        let typed = self.spec.typed;
        let types: Map<String, Value> = types
            .iter()
            .map(|name| {
                let t = &self.lay.types[name];
                let field = |f: &(String, u64, String, u64)| {
                    let written = f.2.split_once('*').map_or(f.2.clone(), |(e, _)| format!("{e}[]"));
                    (f.0.clone(), if typed { json!([f.1, written]) } else { json!(f.1) })
                };
                let mut fields: Map<String, Value> = t.fields.iter().map(field).collect();
                if t.sized {
                    fields.insert("!".into(), json!(t.bytes));
                }
                (name.clone(), Value::Object(fields))
            })
            .collect();
        let mut slots = 0u64;
        let globals: Map<String, Value> = globals
            .iter()
            .map(|(name, g)| {
                let value = match g {
                    Global::Number(n, t) if typed => json!([format!("{n:#x}"), t]),
                    Global::Number(n, _) if n % 2 == 0 => json!(n),
                    Global::Number(n, _) => json!(format!("{n}")),
                    Global::Text(t) => json!([t, "string"]),
                    Global::Slot(_) => {
                        slots += 1;
                        if self.spec.descriptor_version == 0 { json!([slots]) } else { json!([[slots], "pointer"]) }
                    }
                };
                (name.clone(), value)
            })
            .collect();
        let contracts: Map<String, Value> = contracts.into_iter().map(|(n, v)| (n.into(), v)).collect();
        json!({"version": self.spec.descriptor_version, "baseline": "empty", "types": types, "globals": globals, "subDescriptors": sub,
            "contracts": contracts})
        .to_string()
    }

    /// Writes JSON, pointer data and header of both descriptors.
    fn descriptors(&mut self, base: u64, vm_types: &[String]) {
        let (gc_at, root_at) = (base + DATA + 0x20, base + DATA + 0x80);
        let one = |s: &Spec| if s.string_contracts { json!("c1") } else { json!(1) };
        let version = one(&self.spec);
        let slots =
            |g: &Globals| -> Vec<u64> { g.iter().filter_map(|(_, g)| if let Global::Slot(a) = g { Some(*a) } else { None }).collect() };
        let gc_types: Vec<String> = self.lay.types.keys().filter(|t| !vm_types.contains(t)).cloned().collect();
        let gc_contract = match &self.spec.gc {
            GcPart::NotAdvertised => Vec::new(),
            GcPart::Version(v) => vec![("GC", json!(v))],
            _ => vec![("GC", version.clone())],
        };
        let gc_pointer = self.pointer_var(if self.spec.gc == GcPart::NotYet { 0 } else { gc_at });
        let (mut vm_slots, mut gc_slots) = (slots(&self.vm), slots(&self.gc));
        let mut gc_sub = json!({});
        if self.spec.hostile == Hostile::Cycle {
            for (i, at) in [root_at, gc_at].into_iter().enumerate() {
                gc_slots.push(self.pointer_var(at));
                gc_sub[format!("Again{i}")] = json!([[gc_slots.len()], "pointer"]);
            }
        }
        vm_slots.push(gc_pointer);
        let root_sub = json!({"GC": [[vm_slots.len()], "pointer"]});
        let contracts = ["Thread", "Object", "RuntimeTypeSystem", "Exception", "Loader"].map(|n| (n, version.clone())).to_vec();
        let texts = [
            (root_at, self.text_of(vm_types, &self.vm, contracts, root_sub), vm_slots),
            (gc_at, self.text_of(&gc_types, &self.gc, gc_contract, gc_sub), gc_slots),
        ];
        let total: usize = texts.iter().map(|(_, t, s)| t.len() + 16 + s.len() * 8 + 8).sum();
        assert!(total as u64 <= DATA - HEADERS, "{total:#x}");
        let mut at = base + HEADERS;
        self.mem.map(at, (total as u64).next_multiple_of(0x100), false);
        let p = self.p;
        let hostile = self.spec.hostile;
        for (header, text, slots) in texts {
            let json_at = at;
            self.mem.bytes(at, text.as_bytes());
            at = (at + text.len() as u64 + 1).next_multiple_of(8);
            let slots_at = at;
            for (i, slot) in std::iter::once(0).chain(slots.iter().copied()).enumerate() {
                self.mem.p(slots_at + i as u64 * p, slot);
            }
            let mut count = slots.len() as u64 + 1;
            at = (at + count * p).next_multiple_of(8);
            let mut len = text.len() as u64;
            match hostile {
                Hostile::HugeJson if header == root_at => len = 0xffff_fff0,
                Hostile::HugeSlots if header == root_at => count = 0xffff_ffff,
                Hostile::CutJson if header == root_at => len /= 2,
                _ => {}
            }
            let magic = b"DNCCDAC\0".iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
            let fields = [(magic, 8), (if p == 4 { 3 } else { 1 }, 4), (len, 4), (json_at, p), (count, 4), (0, 4), (slots_at, p)];
            let mut to = header;
            for (value, bytes) in fields {
                self.mem.put(to, bytes, value);
                to += bytes;
            }
        }
        assert!(self.var_at <= base + DATA + 0x1000, "{:#x} bytes of variables", self.var_at - base - DATA);
    }
}
