//! Synthesizes the GC part of a descriptor, for runtimes whose descriptor has no GC part (.NET 8, 9, 10).
//!
//! Source: `docs/internals/descriptors.md#gcdacvars`. All data comes from `GcDacVars` and the arrays it points to, read with the layouts of a bundled
//! overlay (`gc-64.json`, `gc-32.json`). The offsets of `gc_heap` change even in servicing releases (10.0.9 and 10.0.12 differ), so the offsets are
//! read from the dump and never bundled. The result is the descriptor that a GC contract `c1` would publish.

use std::collections::HashSet;
use std::sync::Arc;

use super::dac_table::GcDacVars;
use super::descriptor::{Descriptor, Origin};
use super::json::{DescriptorItem, RawDescriptor};
use super::overlay::Overlay;
use crate::base::{Addr, Limits, missed};
use crate::data::{HandleTableBucket, HandleTableMap, bind, globals};
use crate::memory::{Memory, ReadError};
use crate::model::OriginKind;

const VARS: &str = "GcDacVars";
const HEAP_OFFSETS: &str = "GCHeapFieldOffsets";
const GENERATION_OFFSETS: &str = "GenerationFieldOffsets";

/// Adds the GC part to `descriptor`. `card_table` is the address of the VM's copy of the card table pointer. The copy replaces the GC's own pointer,
/// which is published only from `GcDacVars` minor version 9 on. The two pointers are equal (measured).
///
/// # Errors
/// [`ReadError`] if `GcDacVars` itself is not in the dump. Globals whose data is absent are omitted.
pub fn synthesize(
    descriptor: &mut Descriptor,
    memory: &Memory,
    gc: &Overlay,
    vars: GcDacVars,
    card_table: Option<Addr>,
    limits: &Limits,
) -> Result<(), ReadError> {
    let origin = descriptor.add_origin(Origin {
        kind: OriginKind::Synthesized,
        name: "synthesized from GcDacVars".into(),
        address: Some(vars.address),
        version: 0,
    });
    let helper = |name: &str| [VARS, HEAP_OFFSETS, GENERATION_OFFSETS].contains(&name) || name.contains('[');
    let mut published = RawDescriptor { types: gc.raw.types.clone(), globals: gc.raw.globals.clone(), ..RawDescriptor::default() };
    published.types.retain(|t| !helper(&t.0));
    published.contracts.clone_from(&gc.raw.contracts);
    // For types that both have (GCAllocContext), the runtime's own layout takes precedence.
    published.types.retain(|t| !descriptor.types.contains_key(&t.0));
    descriptor.merge(&published, origin, |_| None);

    let pointers = publish_vars(descriptor, memory, gc, vars, origin)?;
    let pointer = |name: &str| pointers.iter().find(|p| p.0 == name).map(|p| p.1);
    let server = pointer("NumHeaps").is_some();
    let mut regions = None;
    if let Some(at) = pointer(GENERATION_OFFSETS) {
        let offsets = published_offsets(descriptor, "Generation", (memory, gc), (GENERATION_OFFSETS, at));
        regions = offsets.iter().find(|o| o.0 == "AllocationStart").map(|o| o.1.is_none());
        set_fields(descriptor, "Generation", &offsets, origin);
    }
    if let Some(at) = pointer(HEAP_OFFSETS) {
        let offsets = published_offsets(descriptor, "GCHeap", (memory, gc), (HEAP_OFFSETS, at));
        set_fields(descriptor, "GCHeap", &offsets, origin);
    }
    if !server {
        // The field exists only with server GC.
        if let Some(info) = Arc::make_mut(&mut descriptor.types).get_mut("HeapSegment") {
            info.fields.remove("Heap");
        }
        if let Some(card_table) = card_table {
            descriptor.set_pointer("GCHeapCardTable", card_table, origin);
        }
    }
    let mut identifiers = vec![if server { "server" } else { "workstation" }];
    identifiers.extend(regions.map(|r| if r { "regions" } else { "segments" }));
    identifiers.extend(pointer("CurrentGCState").map(|_| "background"));
    identifiers.extend(pointer("DynamicAdaptationMode").map(|_| "dynamic_heap"));
    descriptor.set_text("GCIdentifiers", &identifiers.join(", "), origin);

    let tables = HandleTables::probe(descriptor, memory, gc, pointer("HandleTableMap"), limits, server);
    set_fields(descriptor, "HandleTable", &own_fields(gc, &format!("HandleTable[{}]", tables.types)), origin);
    set_fields(descriptor, "TableSegment", &own_fields(gc, &format!("TableSegment[{}]", tables.types)), origin);
    descriptor.set_number(globals::HandleMaxInternalTypes.name(), tables.types, origin);
    if server {
        descriptor.set_number("TotalCpuCount", tables.slots, origin);
    }
    Ok(())
}

/// Publishes the scalars and the non-null pointers of `GcDacVars`. Returns the pointers.
fn publish_vars(
    descriptor: &mut Descriptor,
    memory: &Memory,
    gc: &Overlay,
    vars: GcDacVars,
    origin: usize,
) -> Result<Vec<(String, Addr)>, ReadError> {
    let mut pointers = Vec::new();
    let minor_at = fields_of(gc, VARS).iter().find(|f| f.0 == "MinorVersion").map(|f| f.1);
    let minor = minor_at.and_then(|o| memory.u8(vars.address.plus(o)).ok()).map_or(0, u64::from);
    for (name, offset, type_name) in fields_of(gc, VARS) {
        if gc.section.since_minor.get(name).is_some_and(|since| minor < *since) {
            continue;
        }
        let at = vars.address.plus(*offset);
        if type_name.as_deref() != Some("pointer") {
            let number = match type_name.as_deref() {
                Some("uint8") => memory.u8(at).map(u64::from),
                Some("int32") => memory.u32(at).map(u64::from),
                _ => memory.word(at),
            }?;
            match name.as_str() {
                "GenerationSize" => Arc::make_mut(&mut descriptor.types).entry("Generation".into()).or_default().size = Some(number),
                "TotalGenerationCount" => {
                    descriptor.set_number(name, number, origin);
                    descriptor.set_number("CFinalizeFillPointersLength", number.saturating_add(2), origin);
                }
                // Segments builds have no kinds of free regions. Like the contract, publish the global in regions builds only.
                "CountFreeRegionKinds" if number == 0 => {}
                "CountFreeRegionKinds" | "CardTableInfoSize" => descriptor.set_number(name, number, origin),
                _ => {}
            }
            continue;
        }
        let target = match memory.ptr(at) {
            Ok(target) => target,
            Err(e) => {
                descriptor.lose(DescriptorItem::Global(name.clone()), &e.to_string());
                continue;
            }
        };
        // In .NET 8 and 9, `GcDacVars` ends before the field of the adaptation mode (minor version 1, libclrgc 0). On Linux the word after the
        // structure is the variable `g_gcDacGlobals`, which points to the structure.
        if target.is_null() || target == vars.address {
            continue;
        }
        if !matches!(name.as_str(), HEAP_OFFSETS | GENERATION_OFFSETS | "BuildVariant" | "BuiltWithServer") {
            descriptor.set_pointer(name, target, origin);
        }
        pointers.push((name.clone(), target));
    }
    Ok(pointers)
}

type RawField = (String, u64, Option<String>);

fn fields_of<'o>(gc: &'o Overlay, type_name: &str) -> &'o [RawField] {
    gc.raw.types.iter().find(|t| t.0 == type_name).map(|t| t.1.fields.as_slice()).unwrap_or_default()
}

fn own_fields(gc: &Overlay, type_name: &str) -> Vec<(String, Option<u64>)> {
    fields_of(gc, type_name).iter().map(|f| (f.0.clone(), Some(f.1))).collect()
}

fn set_fields(descriptor: &mut Descriptor, type_name: &str, fields: &[(String, Option<u64>)], origin: usize) {
    for (name, offset) in fields.iter().filter_map(|(n, o)| o.map(|o| (n, o))) {
        descriptor.set_field(type_name, name, offset, origin);
    }
}

/// Offsets of the fields of `type_name`, which the GC publishes as an array of `int`; -1 means "not in this build". Unreadable offsets are omitted
/// and recorded as unusable.
fn published_offsets(
    descriptor: &mut Descriptor,
    type_name: &str,
    (memory, gc): (&Memory, &Overlay),
    (array, at): (&str, Addr),
) -> Vec<(String, Option<u64>)> {
    let mut out = Vec::new();
    for (name, offset, _) in fields_of(gc, array) {
        match memory.i32(at.plus(*offset)) {
            Ok(value) => out.push((name.clone(), u64::try_from(value).ok())),
            Err(e) => descriptor.lose(DescriptorItem::Field(type_name.into(), name.clone()), &e.to_string()),
        }
    }
    out
}

/// Cost of probing a handle table, in steps of the budget for opening a dump. It is high because the probe looks up the layout by name.
const STEPS_OF_A_TABLE: u64 = 32;
/// Number of slots that are examined after the first bad slot.
const MAX_BAD_SLOTS: usize = 64;

/// Parameters of the handle tables that the runtime does not publish, determined by probing the tables.
struct HandleTables {
    /// Number of handle types, including the internal one.
    types: u64,
    /// Tables per bucket: with server GC one per processor, regardless of the number of heaps.
    slots: u64,
}

impl HandleTables {
    fn probe(descriptor: &Descriptor, memory: &Memory, gc: &Overlay, map: Option<Addr>, limits: &Limits, server: bool) -> HandleTables {
        let known = globals::HandleMaxInternalTypes.of(descriptor).ok();
        // The GC overlay describes the tables for each known number of types: `HandleTable[12]`.
        let described = gc.raw.types.iter().filter_map(|t| t.0.strip_prefix("HandleTable[")?.strip_suffix(']')?.parse().ok());
        let mut candidates: Vec<u64> = described.filter(|n| Some(*n) != known).collect();
        candidates.splice(0..0, known);
        let mut found = HandleTables { types: candidates.first().copied().unwrap_or(12), slots: 1 };
        let Some(arrays) = map.and_then(|map| bucket_arrays(descriptor, memory, map, limits)) else { return found };
        let table = |array: Addr, i: u64| memory.ptr(array.element(i, memory.ptr_bytes())).ok().filter(|t| !t.is_null());
        let proven = |types: &&u64| {
            let first = arrays.iter().find_map(|a| table(*a, 0));
            first.is_some_and(|t| owns_its_segment(memory, gc, **types, t) == Some(true))
        };
        if let Some(types) = candidates.iter().find(proven) {
            found.types = *types;
        }
        // A table begins with the flags of its handle types. A table with the flags of the first table is accepted even if its segments are
        // not in the dump.
        let flags = |t: Addr| missed::tried(|| memory.bytes(t, found.types.saturating_mul(4)).ok());
        let mut seen = HashSet::new();
        for array in &arrays {
            let like_first = |t: Addr| table(*array, 0).and_then(flags).is_some_and(|first| flags(t) == Some(first));
            let live = |i: &u64| {
                memory.afford_steps(STEPS_OF_A_TABLE)
                    && table(*array, *i)
                        .is_some_and(|t| owns_its_segment(memory, gc, found.types, t) != Some(false) || *i > 0 && like_first(t))
            };
            let slots = (0..limits.handle_slots).take_while(live).count();
            let slots = u64::try_from(slots).unwrap_or(1);
            seen.extend((0..slots).filter_map(|i| table(*array, i)));
            found.slots = found.slots.max(slots);
        }
        if !server {
            return found;
        }
        // With server GC, valid slots may follow a bad slot. The reader of handles reports the bad slot. Memory after the array rarely passes this
        // check.
        let proven = |array: Addr, i: u64| {
            let table = table(array, i).filter(|t| !seen.contains(t) && memory.afford_steps(STEPS_OF_A_TABLE));
            table.is_some_and(|t| owns_its_segment(memory, gc, found.types, t) == Some(true))
        };
        let later = (found.slots..limits.handle_slots).take(MAX_BAD_SLOTS);
        let last = missed::tried(|| later.filter(|i| arrays.iter().any(|a| proven(*a, *i))).max());
        found.slots = last.map_or(found.slots, |i| i.saturating_add(1));
        found
    }
}

/// The table arrays of all buckets of `map`.
fn bucket_arrays(descriptor: &Descriptor, memory: &Memory, map: Addr, limits: &Limits) -> Option<Vec<Addr>> {
    let buckets = bind!(descriptor, HandleTableMap { BucketsPtr }).ok()?.get(memory, map, HandleTableMap::BucketsPtr)?;
    let count = globals::InitialHandleTableArraySize.of(descriptor).ok()?.min(limits.handle_buckets);
    let of_bucket = bind!(descriptor, HandleTableBucket { Table }).ok()?;
    let array = |i| {
        let bucket = memory.ptr(buckets.element(i, memory.ptr_bytes())).ok().filter(|b| !b.is_null())?;
        of_bucket.pointer(memory, bucket, HandleTableBucket::Table)
    };
    Some((0..count).filter_map(array).collect())
}

/// Whether the segment list of `table` starts with a segment of that table. The segment is read with the layout for `types` handle types. `None` if
/// the table is in the dump but the page of the segment is not (mini dumps). A table that is not in the dump is invalid, because the slot may be past
/// the end of the bucket's array, where the C++ heap continues (text was seen there).
fn owns_its_segment(memory: &Memory, gc: &Overlay, types: u64, table: Addr) -> Option<bool> {
    let offset = |t: String, f: &str| fields_of(gc, &t).iter().find(|x| x.0 == f).map(|x| x.1);
    let Ok(segment) = memory.ptr(table.plus(offset(format!("HandleTable[{types}]"), "SegmentList")?)) else { return Some(false) };
    let size = gc.raw.globals.iter().find(|g| g.0 == "HandleSegmentSize").map_or(0x10000, |g| match &g.1.value {
        super::json::RawValue::Literal { number: Some(n), .. } => *n,
        _ => 0x10000,
    });
    if segment.is_null() || !segment.is_aligned(size) {
        return Some(false);
    }
    let owner = memory.ptr(segment.plus(offset(format!("TableSegment[{types}]"), "HandleTable")?)).ok()?;
    Some(owner == table)
}
