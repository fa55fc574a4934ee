//! Load contexts that were asked to unload, and their holders.
//!
//! A context lives as long as its loader allocator, which is a managed object. The following keep the allocator alive: objects of the context's
//! types, Type objects (`RuntimeType.m_keepalive`), reflection objects made from them, delegates of static methods (`Delegate._methodBase`), statics
//! of other contexts that refer to the context, and its code on a stack. The allocator also refers to the Type objects, so a Type object is a holder
//! only if roots reach it without the allocator.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::sweep::Inspected;
use super::{Findings, Inspector, row};
use crate::analysis::on_graph::OnGraph;
use crate::base::hash::{Map, Set};
use crate::base::missed::{Missed, watched};
use crate::base::{Addr, Count, Missing, plural};
use crate::clr::binders::Binders;
use crate::clr::library::{fields_of, noted};
use crate::gc::{ObjectId, ObjectType};
use crate::heapgraph::{Depends, HeapGraph, Holders};
use crate::model::Stacks;

/// `AssemblyLoadContext._state` of a context that was asked to unload.
const UNLOADING: u32 = 1;
/// The class of Type objects, and the namespace of reflection objects.
const TYPE_OBJECT: &str = "System.RuntimeType";
const REFLECTION: &str = "System.Reflection.";

fields_of! {
    /// `AssemblyLoadContext`.
    struct ContextFields {
        name: req "_name",
        collectible: req "_isCollectible",
        state: req "_state",
        native: req "_nativeAssemblyLoadContext",
    }
}

fields_of! {
    /// `RuntimeType`.
    struct TypeFields {
        handle: req "m_handle",
    }
}

/// The heap graph, and the objects that roots refer to.
struct Rooted<'h> {
    graph: &'h HeapGraph,
    holders: Holders,
    /// The objects in `holders`.
    ids: Vec<ObjectId>,
}

/// Objects of the types of a context.
struct Held {
    /// The type at the lowest address.
    method_table: Addr,
    count: u64,
    /// The first object of that type.
    first: Addr,
}

impl Inspector<'_> {
    pub(super) fn load_contexts(&self) -> Findings<'_> {
        let library = self.library;
        let fields = |context: Addr| {
            let mt = library.method_table(context)?;
            noted(ContextFields::bind(library.types(), mt), "load contexts", self.notes)
        };
        let contexts = self.swept.of(Inspected::LoadContext).filter_map(|context| Some((context, fields(context)?)));
        let contexts: Vec<(Addr, ContextFields)> = contexts.filter(|(at, f)| library.u8(*at, f.collectible) != Some(0)).collect();
        let natives: Set<Addr> = contexts.iter().filter_map(|(at, f)| library.word(*at, f.native)).map(Addr).collect();
        let unloading: Map<Addr, ContextFields> =
            contexts.into_iter().filter(|(context, f)| library.u32(*context, f.state) == Some(UNLOADING)).collect();
        if unloading.is_empty() {
            return Findings::plain(Vec::new());
        }
        // Reads that fail in every dump of this kind are ignored: a module that is not in the dump proves nothing.
        let (modules, missed) = watched(|| self.modules());
        let (collectible, others): (Vec<(Addr, bool)>, _) = modules.into_iter().partition(|(_, collectible)| *collectible);
        let plain = |list: Vec<(Addr, bool)>| list.into_iter().map(|(module, _)| module).collect::<Vec<Addr>>();
        let (collectible, others) = (plain(collectible), plain(others));
        let binders = Binders::bind(library.types().loader(), &collectible, &others, &natives);
        // Keyed by binder, since there may be thousands of contexts and of types.
        let mut held: Map<Addr, Held> = Map::default();
        for (mt, (count, first)) in &self.swept.collectible {
            let Some(binder) = self.loader_module(*mt).and_then(|module| binders?.of(module)) else { continue };
            let of_binder = held.entry(binder).or_insert(Held { method_table: *mt, count: 0, first: *first });
            of_binder.count.grow(*count);
            if *mt < of_binder.method_table {
                (of_binder.method_table, of_binder.first) = (*mt, *first);
            }
        }
        let wanted: Set<Addr> = unloading.iter().filter_map(|(at, f)| library.word(*at, f.native)).map(Addr).collect();
        let (allocators, more) = watched(|| binders.map(|binders| self.allocators(&binders, &collectible, &wanted)).unwrap_or_default());
        let lost = [missed, more].iter().filter(|missed| library.memory().has_lost(missed)).map(Missed::tell).count() > 0;
        // Without the graph, the objects of a context's types are shown, which may be garbage. Contexts without objects are few.
        let rooted = if self.graph || allocators.keys().any(|binder| !held.contains_key(binder)) { self.rooted() } else { None };
        let rows = unloading.keys().map(|context| row(*context, 1, 0)).collect();
        let is_known = !lost && (binders.is_some() || collectible.is_empty());
        // Only rows that are shown get a search for a path.
        Findings::plain(rows).with_detail(move |row| {
            let context = row.object?;
            let f = unloading.get(&context)?;
            let name = library.string(context, f.name).unwrap_or_else(|| "?".into());
            let binder = library.word(context, f.native).map(Addr);
            let allocator = binder.and_then(|binder| allocators.get(&binder));
            if let Some(holder) = allocator.and_then(|allocator| self.context_holder(rooted.as_ref()?, *allocator)) {
                return Some(format!("\"{name}\" {holder}"));
            }
            if let Some(Held { method_table, count, first }) = binder.and_then(|binder| held.get(&binder)) {
                let first = format!("{} at {first}", self.name(*method_table).unwrap_or_else(|| "".into()));
                return Some(format!("\"{name}\" has {} of its types on the heap: {first}", plural(*count, "object")));
            }
            Some(match is_known {
                true => format!("\"{name}\" has no objects of its types on the heap"),
                false => format!("\"{name}\": which objects hold it cannot be determined for this runtime"),
            })
        })
    }

    /// The loader allocators of contexts, by binder.
    fn allocators(&self, binders: &Binders<'_>, modules: &[Addr], of: &Set<Addr>) -> Map<Addr, Addr> {
        let loader = self.library.types().loader();
        let found = modules.iter().filter_map(|module| {
            let binder = binders.of(*module).filter(|binder| of.contains(binder))?;
            Some((binder, loader.allocator_object(*module)?))
        });
        found.collect()
    }

    /// The heap graph and its roots; `None` if they are not available, with a note.
    fn rooted(&self) -> Option<Rooted<'_>> {
        let on = match OnGraph::open(self.heap, false, Stacks::default(), Some(Depends::Roots)) {
            Ok(on) => on,
            Err(e) => {
                self.notes.add(Missing::Answer, None, format!("what holds load contexts is unknown: {e}"));
                return None;
            }
        };
        self.notes.extend(&on.notes.notes());
        let (graph, holders) = (on.graph, on.graph.holders(on.stacks, false));
        Some(Rooted { graph, ids: holders.ids(), holders })
    }

    /// Describes the holder at the end of the best path from a root to a loader allocator: a clause that ends a sentence. `None` if the graph does
    /// not have the allocator.
    fn context_holder(&self, Rooted { graph, holders, ids }: &Rooted<'_>, allocator: Addr) -> Option<String> {
        let allocator = graph.index.id_of(allocator)?;
        let open = |from, to| !holders.are_statics(graph, from, to);
        let found = graph.edges.paths_to_roots(allocator, (ids, |id| holders.rank(id)), open, 1);
        let Some(path) = found.paths.first() else {
            return Some("is not reached from any root: a collection can free it".into());
        };
        let before: Vec<Addr> = path.iter().rev().skip(1).map(|id| graph.address(*id)).collect();
        let reflection = |object: &&Addr| self.type_of(**object).is_some_and(|n| n.starts_with(TYPE_OBJECT) || n.starts_with(REFLECTION));
        let reflected: Vec<Addr> = before.iter().take_while(reflection).copied().collect();
        let described = reflected.iter().find_map(|object| self.described_type(*object));
        let name = |object: Addr| self.type_of(object).unwrap_or_else(|| "an object".into());
        let tables = self.library.types().names().method_tables();
        let is_own =
            |object: &&Addr| self.library.method_table(**object).is_some_and(|mt| tables.read(mt).is_ok_and(|info| info.is_collectible));
        if let Some(own) = before.first().filter(is_own) {
            return Some(format!("is held by an object of its types: {} at {own}", name(*own)));
        }
        Some(match (reflected.last(), described, before.first()) {
            (Some(by), Some(of), _) if *name(*by) == *TYPE_OBJECT => format!("is held by the Type object of {of} at {by}"),
            (Some(by), None, _) if *name(*by) == *TYPE_OBJECT => format!("is held by a Type object of its types at {by}"),
            (Some(by), Some(of), _) => format!("is held by {} of {of} at {by}", name(*by)),
            (Some(by), None, _) | (None, _, Some(by)) => format!("is held by {} at {by}", name(*by)),
            (None, _, None) => match graph.root_labels((Stacks::default(), false))(allocator) {
                Some(label) => format!("is held by {label}"),
                None => "is held by a root".into(),
            },
        })
    }

    /// The name of the type that a Type object represents.
    fn described_type(&self, object: Addr) -> Option<String> {
        let mt = self.library.method_table(object)?;
        if *self.name(mt)? != *TYPE_OBJECT {
            return None;
        }
        let f = noted(TypeFields::bind(self.library.types(), mt), "load contexts", self.notes)?;
        Some(self.name(Addr(self.library.word(object, f.handle)?))?.to_string())
    }

    /// The module that keeps a type's code alive. For a generic instance, this is the module of a collectible argument.
    fn loader_module(&self, method_table: Addr) -> Option<Addr> {
        let tables = self.library.types().names().method_tables();
        tables.loader_module(method_table).or_else(|| tables.module(&tables.read(method_table).ok()?).ok())
    }

    /// Returns the modules of the types on the heap, and all collectible modules; the flag is whether the module is collectible.
    fn modules(&self) -> Vec<(Addr, bool)> {
        let types = self.heap.walker().types().list();
        let of = |ty: &Arc<ObjectType>| Some((self.loader_module(ty.method_table)?, ty.is_collectible));
        let mut all: BTreeSet<(Addr, bool)> = types.iter().filter_map(of).collect();
        let loader = self.library.types().loader();
        all.extend(loader.modules().into_iter().filter(|module| loader.allocator_object(*module).is_some()).map(|module| (module, true)));
        all.into_iter().collect()
    }
}
