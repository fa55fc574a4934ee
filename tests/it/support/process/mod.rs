//! Fills the memory of the synthetic process.

mod describe;
mod handles;
mod heap;
mod sync_blocks;

use serde_json::{Value, json};

use super::containers::Facts;
use super::image::Image;
use super::mem::{Layouts, Mem};
use super::{Spec, Target};

/// Offset of the module's writable part.
const DATA: u64 = 0x9000;
/// Pointer and limit of the global allocation context.
/// Blocks per handle segment. (120 or 240 in real runtimes.)
const BLOCKS: u64 = 200;
/// Block index that means none. (0xff in real runtimes.)
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
    if spec.sync_blocks {
        let mut block = ptrs(&["InteropInfo", "Lock", "LinkNext"]);
        block.extend([("HashCode", "uint32"), ("ThinLock", "uint32")]);
        l.add("SyncBlock", false, &block);
        l.add("SyncTableEntry", true, &ptrs(&["Object", "SyncBlock"]));
        l.add("SyncBlockCache", false, &[("FreeSyncTableIndex", "uint32")]);
    }
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

/// Pointer-sized items of a heap.
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
    let base = shape.pick(0x7f12_3400_0000, 0x6a10_0000) + spec.at;
    let native = shape.pick(0x5581_0004_0000, 0x0910_0000) + spec.at;
    let low = shape.pick(0x7e00_1000_0000, 0x2000_0000) + spec.at;
    let (lay, vm_types) = layouts(spec);
    let room = if spec.server > Some(8) { 0x2_0000 } else { 0x8000 };
    let mut b = Builder {
        spec: spec.clone(),
        p: shape.ptr,
        mem: Mem { shape, ranges: Default::default() },
        lay,
        // The root descriptor follows the GC's, which a scan for the magic finds first.
        var_at: base + DATA + 0x100,
        native_at: native,
        native_end: native + room,
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
    b.mem.map(native, room, true);
    b.method_tables();
    let (heaps, holes) = b.heaps();
    if spec.sweeping {
        b.mark_all();
    }
    let strong = b.handle_tables();
    let threads = b.threads(&strong, &holes);
    if spec.sync_blocks {
        b.sync_blocks(&strong);
    }
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
    let global_context = b.global_context();
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
        "global_context": [hex(global_context.0), hex(global_context.1)],
        "heaps": heaps.iter().map(|h| h["detail"].clone()).collect::<Vec<_>>(),
        "free": b.free,
        "objects": b.objects.iter().map(|(a, mt)| json!([hex(*a), hex(*mt)])).collect::<Vec<_>>(),
    });
    let image = Image { shape, base, data: (DATA, 0x1000), export: spec.export.then_some(DATA + 0x80) };
    let facts = Facts { shape, image, others: Vec::new(), pid: 4000, threads: vec![4001, 4002, 4004, 4009] };
    Target { memory: b.mem, facts, expected, gone: Vec::new() }
}
