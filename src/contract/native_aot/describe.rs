//! Turns the debug header into the descriptor that .NET 11 publishes for NativeAOT programs.

use super::DebugHeader;
use crate::base::Addr;
use crate::contract::dac_table::GcDacVars;
use crate::contract::descriptor::{Descriptor, Origin};
use crate::contract::json::{DescriptorItem, RawDescriptor};
use crate::contract::overlay::{self, Overlay};
use crate::memory::Memory;
use crate::model::OriginKind;

/// Types that no NativeAOT program of any release describes.
const FORMS: [&str; 4] = ["Object", "String", "Array", "ManagedObjectWrapperLayout"];
/// Names of the thread's structure, newest first.
const THREAD: [&str; 3] = ["RuntimeThreadLocals", "runtime_thread_locals", "ThreadBuffer"];

/// From a field of the header to one of the descriptor.
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

/// Adds what `header` tells to `descriptor`. Returns where the GC's variables are, and the overlay that adds what the
/// header leaves out, if one agrees with it.
pub fn describe(descriptor: &mut Descriptor, memory: &Memory, header: &DebugHeader) -> (Option<GcDacVars>, Option<&'static Overlay>) {
    let bundled = overlay::native_aot(memory.shape().ptr);
    let mut used = None;
    if let Some(o) = bundled {
        let origin = add_origin(descriptor, o);
        add_forms(descriptor, o, origin);
        for (name, layout) in &o.raw.types {
            // The thread's structure goes by one name here, whatever the release calls it.
            let theirs = if THREAD.contains(&name.as_str()) { thread(header) } else { name.as_str() };
            let known = header.size(theirs);
            let agrees = known.is_none_or(|n| layout.size.is_none_or(|size| size == n))
                && layout.fields.iter().all(|(f, at, _)| header.offset(theirs, f).is_none_or(|n| n == *at));
            if !agrees {
                continue;
            }
            used = Some(o);
            let name = if THREAD.contains(&name.as_str()) { "Thread" } else { name.as_str() };
            for (_, field, to_type, to_field) in FIELDS.iter().filter(|f| f.0 == name) {
                if let Some((_, offset, _)) = layout.fields.iter().find(|f| f.0 == *field) {
                    descriptor.set_field(to_type, to_field, *offset, origin);
                }
            }
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
    // A global of the descriptor is the address of a variable. Where the header gives a value, its own table is the variable.
    if let Some(variable) = header.variable("g_pFreeObjectEEType") {
        descriptor.set_pointer("FreeObjectMethodTable", variable, origin);
    }
    let store = header.global(memory, "g_pTheRuntimeInstance").zip(header.offset("RuntimeInstance", "m_pThreadStore"));
    if let Some((instance, offset)) = store {
        descriptor.set_pointer("ThreadStore", instance.plus(offset), origin);
    }
    for (theirs, name) in [("g_CrashInfoBuffer", "CrashInfoBuffer"), ("g_stressLog", "StressLog")] {
        if let Some(address) = header.global(memory, theirs) {
            descriptor.set_pointer(name, address, origin);
        }
    }
    let versions = [("Thread", "n1"), ("RuntimeTypeSystem", "n1"), ("Object", "c1"), ("Exception", "c1")];
    let contracts = versions.map(|(name, version)| (name.to_string(), version.to_string())).to_vec();
    descriptor.merge(&RawDescriptor { contracts, ..RawDescriptor::default() }, origin, |_| None);
    let vars = header.global(memory, "g_gcDacGlobals").map(|address: Addr| GcDacVars { address, found_by: "the debug header" });
    (vars, used)
}

/// Adds the forms of objects, strings and arrays to the descriptor of a NativeAOT program, where it does not have them: that of .NET 11
/// leaves them to the contract's documents (*from source*).
pub fn complete(descriptor: &mut Descriptor, memory: &Memory) {
    let Some(o) = overlay::native_aot(memory.shape().ptr).filter(|_| descriptor.is_native_aot()) else { return };
    let origin = add_origin(descriptor, o);
    add_forms(descriptor, o, origin);
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
