//! The objects that the code of a running `DynamicMethod` keeps alive.
//!
//! `GcStackCrawlCallBack` in gcenv.ee.cpp promotes the managed `DynamicResolver` of each frame whose method is a `DynamicMethod`. The `MethodDesc` leads
//! to it: after the name is a pointer (`m_pResolver` in method.hpp) to an `LCGMethodResolver` (dynamicmethod.h), which has a pointer back to the
//! `MethodDesc` and then the handle. No descriptor has these offsets, so the handle is found by that pointer and by the type of its object. If that memory
//! is not in the dump, as in copies that `gcdump trim` of earlier editions made, the `DynamicMethod` objects on the heap are searched.

use std::cell::{Cell, OnceCell};
use std::ops::ControlFlow;

use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange};
use crate::clr::library::{Classifier, fields_of, library_types};
use crate::clr::methods::Methods;
use crate::gc::ObjectType;
use crate::memory::Memory;
use crate::session::{Heap, Namer};

/// Number of words of an `LCGMethodResolver` that are searched.
const SEARCHED: u64 = 8;

library_types! {
    /// The managed parts of a dynamic method.
    enum DynamicType {
        in "System.Private.CoreLib" {
            Method = "System.Reflection.Emit.DynamicMethod",
            Resolver = "System.Reflection.Emit.DynamicResolver",
        }
    }
}

fields_of! {
    /// `DynamicMethod`.
    struct MethodFields {
        handle: req "_methodHandle",
        resolver: req "_resolver",
    }
}

fields_of! {
    /// `RuntimeMethodInfoStub`. The field, or the structure in it, is the address of the `MethodDesc`.
    struct StubFields {
        method: req "m_value",
    }
}

/// Finds the resolvers of dynamic methods.
pub(super) struct Resolvers<'h> {
    heap: &'h Heap,
    types: Classifier<DynamicType>,
    /// The resolvers of the `DynamicMethod` objects on the heap, by `MethodDesc`.
    on_heap: OnceCell<Map<Addr, Addr>>,
    /// Whether the resolver of a method was not found.
    lost: Cell<bool>,
}

impl<'h> Resolvers<'h> {
    /// Binds to the types of a runtime; `None` if they are not known.
    pub(super) fn bind(heap: &'h Heap, namer: &Namer) -> Option<Resolvers<'h>> {
        let types = Classifier::bind(namer.types().ok()?);
        Some(Resolvers { heap, types, on_heap: OnceCell::new(), lost: Cell::default() })
    }

    /// Whether a resolver was not found.
    pub(super) fn lost_any(&self) -> bool {
        self.lost.get()
    }

    /// The resolver of the method at `desc`; `None` if the method is not a `DynamicMethod`, or its resolver is not found.
    pub(super) fn of(&self, methods: &Methods, desc: Addr) -> Option<Addr> {
        let pointer = methods.after_dynamic_name(self.types.types().names(), desc)?;
        let found = tried(|| self.by_handle(methods.memory(), pointer, desc));
        let found = found.or_else(|| self.on_heap.get_or_init(|| tried(|| self.search()).unwrap_or_default()).get(&desc).copied());
        self.lost.set(self.lost.get() || found.is_none());
        found
    }

    fn is_resolver(&self, object: Addr) -> bool {
        self.types.object(object).is(DynamicType::Resolver)
    }

    /// The object of the handle in the native resolver to which the word at `pointer` points.
    fn by_handle(&self, memory: &Memory, pointer: Addr, desc: Addr) -> Option<Addr> {
        let native = memory.ptr(pointer).ok()?;
        let range = AddrRange::of(native, SEARCHED.saturating_mul(memory.ptr_bytes()));
        let words = memory.words(range).map(|(_, word)| Addr(memory.shape().number(word)));
        let after = words.skip_while(|word| *word != desc).skip(1);
        after.filter_map(|handle| memory.ptr(handle).ok()).find(|object| self.is_resolver(*object))
    }

    /// Searches the heap.
    fn search(&self) -> Option<Map<Addr, Addr>> {
        let (types, memory) = (self.types.types(), self.heap.memory());
        let table = self.types.table(DynamicType::Method)?;
        let fields = MethodFields::bind(types, table).ok()?;
        let mut stub: Option<(Addr, StubFields)> = None;
        let mut pair = |method: Addr| {
            let handle = memory.ptr(fields.handle.of_object(method)).ok().filter(|at| !at.is_null())?;
            let of_stub = types.objects().method_table(handle)?;
            let known = stub.filter(|(mt, _)| *mt == of_stub).map(|(_, fields)| fields);
            let bound = known.or_else(|| StubFields::bind(types, of_stub).ok())?;
            stub = Some((of_stub, bound));
            let resolver = memory.ptr(fields.resolver.of_object(method)).ok().filter(|at| self.is_resolver(*at))?;
            Some((memory.ptr(bound.method.of_object(handle)).ok()?, resolver))
        };
        let mut found = Map::default();
        let wanted = |ty: &ObjectType| ty.method_table == table;
        self.heap.visit(
            |_| true,
            Some(&wanted),
            |object| {
                found.extend(wanted(object.ty).then(|| pair(object.address)).flatten());
                ControlFlow::Continue(())
            },
        );
        Some(found)
    }
}
