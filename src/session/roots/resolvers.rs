//! What the code of a running `DynamicMethod` keeps alive.
//!
//! `GcStackCrawlCallBack` in gcenv.ee.cpp promotes the managed `DynamicResolver` of each frame whose method is a `DynamicMethod`. The `MethodDesc` leads
//! to it: the pointer after its name (`m_pResolver` in method.hpp) points to an `LCGMethodResolver` (dynamicmethod.h), in which a pointer back to the
//! `MethodDesc` precedes the handle. No descriptor has these offsets, so the handle is found by that pointer and by the type of its object.

use std::cell::Cell;

use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Count};
use crate::clr::library::{Classifier, library_types};
use crate::clr::methods::Methods;
use crate::memory::Memory;
use crate::session::Namer;

/// Number of words of an `LCGMethodResolver` that are searched for the `MethodDesc`.
const SEARCHED: u64 = 8;

library_types! {
    /// The managed part of a `DynamicMethod`'s code.
    enum ResolverType {
        in "System.Private.CoreLib" { Resolver = "System.Reflection.Emit.DynamicResolver" }
    }
}

/// Finds the resolvers of dynamic methods.
pub(super) struct Resolvers {
    types: Classifier<ResolverType>,
    /// Number of methods whose resolver was not found.
    lost: Cell<u64>,
}

impl Resolvers {
    /// Binds to the types of a runtime; `None` if they are not known.
    pub(super) fn bind(namer: &Namer) -> Option<Resolvers> {
        Some(Resolvers { types: Classifier::bind(namer.types().ok()?), lost: Cell::default() })
    }

    /// Whether a resolver was not found.
    pub(super) fn lost_any(&self) -> bool {
        self.lost.get() > 0
    }

    /// The resolver of the method at `desc`; `None` if the method is no `DynamicMethod`, or its resolver is not found.
    pub(super) fn of(&self, methods: &Methods, desc: Addr) -> Option<Addr> {
        let pointer = methods.after_dynamic_name(self.types.types().names(), desc)?;
        let memory = methods.memory();
        let native = tried(|| memory.ptr(pointer).ok());
        let object = native.and_then(|native| tried(|| handle_after(memory, native, desc).and_then(|handle| memory.ptr(handle).ok())));
        let object = object.filter(|object| self.types.object(*object).is(ResolverType::Resolver));
        if object.is_none() {
            let mut lost = self.lost.get();
            lost.bump();
            self.lost.set(lost);
        }
        object
    }
}

/// The word after a pointer to `desc` in the structure at `native`.
fn handle_after(memory: &Memory, native: Addr, desc: Addr) -> Option<Addr> {
    let bytes = memory.ptr_bytes();
    let range = AddrRange::new(native, native.plus(SEARCHED.saturating_mul(bytes)));
    let (at, _) = memory.words(range).find(|(_, word)| memory.shape().number(word) == desc.0)?;
    memory.ptr(at.plus(bytes)).ok()
}
