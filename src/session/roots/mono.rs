//! Roots that Mono has registered with SGen. Roots on the stacks of Mono's threads are in `stacks::native_roots`.

use super::options::{ROOT_BYTES, RootOptions};
use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::base::{Addr, Budget, Collector, plural};
use crate::gc::{Gc, SgenSource};
use crate::heapgraph::{Origin, RawRoot, RootFlags, Roots};
use crate::model::{CoverageKind, RootKind};
use crate::session::{Namer, Runtime};

/// Adds the references in registered roots. A reference in a static field gets the name of the field.
pub(super) fn registered(
    (runtime, gc, namer): (&Runtime, &Gc, &Namer),
    options: &RootOptions,
    (notes, budget): (&Collector, &Budget),
    roots: &mut Roots,
) {
    const KINDS: [RootKind; 3] = [RootKind::Static, RootKind::ThreadStatic, RootKind::ExternalMemory];
    let wanted = KINDS.into_iter().filter(|kind| options.wants(*kind));
    let Some(found) = gc.sgen_roots() else {
        wanted.for_each(|kind| roots.cover(kind, CoverageKind::Unavailable, Some("the tables of registered roots were not found".into())));
        return;
    };
    let names = tried(|| Names::of(runtime, namer));
    for reference in &found.references {
        let kind = match reference.source {
            SgenSource::Static => RootKind::Static,
            SgenSource::ThreadStatic => RootKind::ThreadStatic,
            SgenSource::Runtime => RootKind::ExternalMemory,
        };
        // One root beyond the limit lets the caller report that roots are left out.
        if !options.wants(kind) || roots.roots.len() > runtime.limits().roots || !budget.memory(ROOT_BYTES) {
            continue;
        }
        let name = match kind {
            RootKind::Static => names.field(namer, reference.start, reference.at),
            RootKind::ThreadStatic => "thread statics".into(),
            _ => "a structure of Mono".into(),
        };
        let Some(name) = roots.names.push(name) else { return };
        let (address, object) = (Some(reference.at), reference.object);
        roots.roots.push(RawRoot { kind, address, object, flags: RootFlags::NONE, origin: Origin::Static(name, None) });
    }
    for kind in wanted {
        match kind {
            RootKind::ExternalMemory if found.unread > 0 => {
                let why = format!("references in {} of Mono that only Mono's own code can find", plural(found.unread, "structure"));
                notes.add(crate::base::Missing::Statics, None, format!("roots of kind {}: {why}", kind.name()));
                roots.cover(kind, CoverageKind::Partial, Some(why));
            }
            kind => roots.cover(kind, CoverageKind::Complete, None),
        }
    }
}

/// The vtables of classes by the address of the class's static fields.
struct Names {
    vtables: Map<Addr, Addr>,
}

impl Names {
    fn of(runtime: &Runtime, namer: &Namer) -> Names {
        let mut vtables = Map::default();
        let memory = runtime.memory();
        let tables = namer.types().map(|types| types.names().method_tables());
        if let Ok((mono, object)) = tables.map(|t| (t.mono(), t.object))
            && let Some((mono, object)) = mono.zip(object)
        {
            for vtable in mono.vtables_of_domain(memory, object, runtime.limits().roots) {
                if let Some(at) = mono.statics_at(memory, vtable) {
                    vtables.entry(at).or_insert(vtable);
                }
            }
        }
        Names { vtables }
    }

    /// Name of the static field at `at`. `start` is the address of the first static field of its class.
    fn field(&self, namer: &Namer, start: Addr, at: Addr) -> String {
        let known = || {
            let (types, vtable) = (namer.types().ok()?, *self.vtables.get(&start)?);
            let offset = at.since(start)?;
            let name = types.mono_static(vtable, offset)?;
            Some(format!("{}.{name}", namer.name_or_address(vtable).shown()))
        };
        known().unwrap_or_else(|| format!("static fields at {start}"))
    }
}
