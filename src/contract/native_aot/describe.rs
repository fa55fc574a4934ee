//! Translates the debug header into the descriptor that .NET 11 publishes for NativeAOT programs.

use super::DebugHeader;
use crate::base::{Addr, PtrSize};
use crate::contract::dac_table::GcDacVars;
use crate::contract::descriptor::{Descriptor, Origin};
use crate::contract::json::{DescriptorItem, RawDescriptor};
use crate::contract::overlay::{self, Overlay};
use crate::memory::Memory;
use crate::model::OriginKind;

/// Types that NativeAOT programs do not describe in any release.
const FORMS: [&str; 4] = ["Object", "String", "Array", "ManagedObjectWrapperLayout"];
/// Names of the thread structure, newest first.
const THREAD: [&str; 3] = ["RuntimeThreadLocals", "runtime_thread_locals", "ThreadBuffer"];

/// Type and field in the header, and the corresponding type and field in the descriptor.
const FIELDS: &[(&str, &str, &str, &str)] = &[
    ("gc_alloc_context", "alloc_ptr", "GCAllocContext", "Pointer"),
    ("gc_alloc_context", "alloc_limit", "GCAllocContext", "Limit"),
    ("gc_alloc_context", "alloc_bytes", "GCAllocContext", "AllocBytes"),
    ("gc_alloc_context", "alloc_bytes_uoh", "GCAllocContext", "AllocBytesLoh"),
    ("ThreadStore", "m_ThreadList", "ThreadStore", "FirstThreadLink"),
    ("Thread", "m_pNext", "Thread", "LinkNext"),
    ("Thread", "m_threadId", "Thread", "OSId"),
    ("Thread", "m_ThreadStateFlags", "Thread", "State"),
    ("Thread", "m_pExInfoStackHead", "Thread", "ExceptionTracker"),
    ("Thread", "m_pStackHigh", "Thread", "CachedStackBase"),
    ("Thread", "m_pStackLow", "Thread", "CachedStackLimit"),
    ("Thread", "m_pTransitionFrame", "Thread", "TransitionFrame"),
    ("Thread", "m_pThreadLocalStatics", "Thread", "ThreadLocalStatics"),
    ("Thread", "m_pInlinedThreadLocalStatics", "Thread", "InlinedThreadLocalStatics"),
    ("Thread", "m_rgbAllocContextBuffer", "RuntimeThreadLocals", "AllocContext"),
    ("Thread", "m_eeAllocContext", "RuntimeThreadLocals", "AllocContext"),
    ("ee_alloc_context", "m_rgbAllocContextBuffer", "EEAllocContext", "GCAllocationContext"),
    ("InlinedThreadStaticRoot", "m_threadStaticsBase", "InlinedThreadStaticRoot", "Statics"),
    ("InlinedThreadStaticRoot", "m_next", "InlinedThreadStaticRoot", "Next"),
    ("ExInfo", "m_pPrevExInfo", "ExInfo", "PreviousNestedInfo"),
    ("ExInfo", "m_exception", "ExInfo", "ThrownObject"),
    ("MethodTable", "m_uFlags", "MethodTable", "Flags"),
    ("MethodTable", "m_uBaseSize", "MethodTable", "BaseSize"),
    ("MethodTable", "m_pBaseType", "MethodTable", "RelatedType"),
    ("MethodTable", "m_usNumVtableSlots", "MethodTable", "NumVtableSlots"),
    ("MethodTable", "m_usNumInterfaces", "MethodTable", "NumInterfaces"),
    ("MethodTable", "m_uHashCode", "MethodTable", "HashCode"),
    ("MethodTable", "m_VTable", "MethodTable", "VTable"),
];

/// Adds the content of `header` to `descriptor`. Returns the location of the GC's variables, and the overlay that supplies data missing from the
/// header, if an overlay agrees with the header.
pub fn describe(descriptor: &mut Descriptor, memory: &Memory, header: &DebugHeader) -> (Option<GcDacVars>, Option<&'static Overlay>) {
    let mut used = None;
    if let Some(o) = release_of(header, memory) {
        let origin = add_origin(descriptor, o);
        add_forms(descriptor, o, origin);
        descriptor.release.clone_from(&o.section.runtime);
        for (name, layout) in &o.raw.types {
            // The overlay and the descriptor have one name for the thread structure; the header uses the name of its release.
            let theirs = if THREAD.contains(&name.as_str()) { thread(header) } else { name.as_str() };
            let known = header.size(theirs);
            let agrees = known.is_none_or(|n| layout.size.is_none_or(|size| size == n))
                && layout.fields.iter().all(|(f, at, _)| header.offset(theirs, f).is_none_or(|n| n == *at));
            if !agrees {
                continue;
            }
            let name = if THREAD.contains(&name.as_str()) { "Thread" } else { name.as_str() };
            for (_, field, to_type, to_field) in FIELDS.iter().filter(|f| f.0 == name) {
                if let Some((_, offset, _)) = layout.fields.iter().find(|f| f.0 == *field) {
                    descriptor.set_field(to_type, to_field, *offset, origin);
                }
            }
            used = Some(o);
            if name == "Exception" {
                let raw = RawDescriptor { types: vec![(name.to_string(), layout.clone())], ..RawDescriptor::default() };
                descriptor.merge(&raw, origin, |_| None);
            }
        }
    }
    let origin =
        descriptor.add_origin(Origin { kind: OriginKind::InMemory, name: "debug header".into(), address: header.address, version: 0 });
    for (from, field, to_type, to_field) in FIELDS {
        let from = if *from == "Thread" { thread(header) } else { from };
        if let Some(offset) = header.offset(from, field) {
            descriptor.set_field(to_type, to_field, offset, origin);
        }
    }
    // A pointer global is the address of a variable. If the header's table contains the value instead, the slot in the table is the variable.
    if let Some(variable) = header.variable("g_pFreeObjectEEType") {
        descriptor.set_pointer("FreeObjectMethodTable", variable, origin);
    }
    let of_instance = header.offset("RuntimeInstance", "m_pThreadStore");
    let globals = [
        ("g_pTheRuntimeInstance", "ThreadStore", of_instance),
        ("g_CrashInfoBuffer", "CrashInfoBuffer", Some(0)),
        ("g_stressLog", "StressLog", Some(0)),
    ];
    for (theirs, name, offset) in globals {
        match header.global(memory, theirs) {
            Ok(address) => address.zip(offset).into_iter().for_each(|(at, offset)| descriptor.set_pointer(name, at.plus(offset), origin)),
            Err(e) => descriptor.lose(DescriptorItem::Global(name.into()), &e.to_string()),
        }
    }
    let versions = [("Thread", "n1"), ("RuntimeTypeSystem", "n1"), ("Object", "c1"), ("Exception", "c1")];
    let contracts = versions.map(|(name, version)| (name.to_string(), version.to_string())).to_vec();
    descriptor.merge(&RawDescriptor { contracts, ..RawDescriptor::default() }, origin, |_| None);
    let vars =
        header.global(memory, "g_gcDacGlobals").ok().flatten().map(|address: Addr| GcDacVars { address, found_by: "the debug header" });
    (vars, used)
}

/// The overlay for the release of the header. If several overlays have a possible version, the one that agrees in the most entries is used.
fn release_of(header: &DebugHeader, memory: &Memory) -> Option<&'static Overlay> {
    let agreeing = |o: &&Overlay| {
        let types = o.raw.types.iter().flat_map(|(name, layout)| layout.fields.iter().map(move |(field, at, _)| (name, field, at)));
        types.filter(|(name, field, at)| header.offset(name, field) == Some(**at)).count()
    };
    let of_header = |o: &&Overlay| o.section.debug_header.as_ref().is_none_or(|order| header.major.is_none_or(|n| n == order.major));
    let ptr = memory.shape().ptr;
    // The overlays for 32-bit targets and for .NET 11 have no order of entries. Programs of .NET 11 have no header.
    let candidates = overlay::native_aot(ptr).filter(|o| ptr == PtrSize::Four || o.section.debug_header.is_some());
    candidates.filter(of_header).max_by_key(agreeing)
}

/// Completes the descriptor of a NativeAOT program of .NET 11. Adds the layouts of objects, strings and arrays, and the fields that were
/// measured on the matching release.
pub fn complete(descriptor: &mut Descriptor, memory: &Memory) {
    if !descriptor.is_native_aot() {
        return;
    }
    let ptr = memory.shape().ptr;
    let agrees = |o: &&Overlay| o.section.debug_header.is_none() && o.section.runtime.is_some() && agree(descriptor, o);
    // Any overlay can supply the layouts of objects, strings and arrays, because they are the same in every release.
    let release = overlay::native_aot(ptr).find(agrees);
    let Some(o) = release.or_else(|| overlay::native_aot(ptr).next()) else { return };
    let origin = add_origin(descriptor, o);
    add_forms(descriptor, o, origin);
    let Some(o) = release else { return };
    descriptor.release.clone_from(&o.section.runtime);
    for (name, layout) in &o.raw.types {
        for (field, at, _) in &layout.fields {
            let item = DescriptorItem::Field(name.clone(), field.clone());
            let known = descriptor.types.get(name).is_some_and(|t| t.fields.contains_key(field));
            let set_aside =
                descriptor.unusable.contains_key(&item) || descriptor.unusable.contains_key(&DescriptorItem::Type(name.clone()));
            if !known && !set_aside {
                descriptor.set_field(name, field, *at, origin);
            }
        }
    }
}

/// Whether `overlay` was measured on the release of the descriptor. Fields that both have must be at the same offsets, and at least two of these
/// fields must belong to the thread.
fn agree(descriptor: &Descriptor, overlay: &Overlay) -> bool {
    let ours = |name: &str| overlay.raw.types.iter().find(|t| t.0 == name).map(|t| &t.1);
    let of_both = |name: &str| -> Vec<bool> {
        let (Some(ours), Some(theirs)) = (ours(name), descriptor.types.get(name)) else { return Vec::new() };
        ours.fields.iter().filter_map(|(field, at, _)| Some(theirs.fields.get(field)?.offset == *at)).collect()
    };
    let thread = of_both("Thread");
    let others = ["ExInfo", "EEAllocContext", "MethodTable"].into_iter().flat_map(of_both);
    thread.len() > 1 && thread.into_iter().chain(others).all(|same| same)
}

fn add_origin(descriptor: &mut Descriptor, o: &Overlay) -> usize {
    let (kind, name) = (OriginKind::Overlay, format!("overlay {}", o.section.name));
    descriptor.add_origin(Origin { kind, name, address: None, version: o.raw.version })
}

fn add_forms(descriptor: &mut Descriptor, o: &Overlay, origin: usize) {
    let known = |name: &str| descriptor.types.contains_key(name) || descriptor.unusable.contains_key(&DescriptorItem::Type(name.into()));
    let mut raw = RawDescriptor { globals: o.raw.globals.clone(), ..RawDescriptor::default() };
    raw.globals.retain(|(name, _)| !descriptor.globals.contains_key(name));
    raw.types = o.raw.types.iter().filter(|(name, _)| FORMS.contains(&name.as_str()) && !known(name)).cloned().collect();
    if !descriptor.contracts.contains_key("Object") {
        raw.contracts.push(("Object".into(), "c1".into()));
    }
    descriptor.merge(&raw, origin, |_| None);
}

fn thread(header: &DebugHeader) -> &'static str {
    THREAD.into_iter().find(|name| header.size(name).is_some() || header.offset(name, "m_pNext").is_some()).unwrap_or("Thread")
}
