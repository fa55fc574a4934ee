//! Finds the suspended method of a continuation object of runtime async (.NET 11).
//!
//! Source: `docs/internals/runtime-async.md`.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::bindings::Bindings;
use crate::base::hash::{Map, Set};
use crate::base::missed::{missed, tried};
use crate::base::{Addr, Collector, Missing, Name, Remedy, len64, plural};
use crate::clr::fields::Types;
use crate::clr::library::{Classifier, FieldAt, NoSuchField, library_types};
use crate::clr::methods::{MethodName, Methods, Parameters};
use crate::clr::type_names::TypeNames;
use crate::memory::Memory;
use crate::stack::LookUps;
use crate::stack::code::Code;

library_types! {
    /// Types of continuations.
    enum ContinuationType {
        in "System.Private.CoreLib" {
            Continuation = "System.Runtime.CompilerServices.Continuation",
            ResumeInfo = "System.Runtime.CompilerServices.ResumeInfo",
        }
    }
}

/// Fields of `Continuation`, and of the `ResumeInfo` that a continuation refers to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContinuationFields {
    /// The method table of `Continuation`.
    pub(crate) base: Addr,
    /// The continuation of the caller.
    pub(crate) next: FieldAt,
    /// The number of the suspension point in the method.
    pub(crate) state: Option<FieldAt>,
    flags: Option<FieldAt>,
    /// The `ResumeInfo` that describes the suspension point.
    pub(crate) info: Option<FieldAt>,
    /// Offset in bytes of `DiagnosticIP` in the `ResumeInfo`.
    ip: u64,
}

impl ContinuationFields {
    /// Binds to these types; `None` if the type `Continuation` is not loaded. In that case no runtime async method is suspended.
    ///
    /// # Errors
    /// [`NoSuchField`] if `Continuation` has no field `Next`.
    pub(crate) fn bind(types: &Arc<Types>) -> Result<Option<ContinuationFields>, NoSuchField> {
        let known = Classifier::<ContinuationType>::bind(types);
        let Some(base) = known.table(ContinuationType::Continuation) else { return Ok(None) };
        let word = types.pointer_bytes();
        let in_box = known.table(ContinuationType::ResumeInfo).and_then(|mt| types.field_at(mt, "DiagnosticIP").ok());
        Ok(Some(ContinuationFields {
            base,
            next: types.field_at(base, "Next")?,
            state: types.field_at(base, "State").ok(),
            flags: types.field_at(base, "Flags").ok(),
            info: types.field_at(base, "ResumeInfo").ok(),
            // A process that runs only jitted code has not loaded the type `ResumeInfo`, so the offset is assumed: the type consists of two
            // pointers, `Resume` and `DiagnosticIP`. The value is used only if it is the address of code.
            ip: in_box.map_or(word, |field| field.offset.saturating_sub(word)),
        }))
    }
}

/// The method of a continuation, or why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Suspended {
    /// The name is known.
    Method(Name),
    /// The name is only in the file of this module.
    InFile(String),
    /// The name is unknown.
    Unknown,
}

impl Suspended {
    /// The name, if it is known.
    pub(crate) fn name(self) -> Option<Name> {
        match self {
            Suspended::Method(name) => Some(name),
            Suspended::InFile(_) | Suspended::Unknown => None,
        }
    }

    /// The module whose file contains the name.
    pub(crate) fn file(self) -> Option<String> {
        if let Suspended::InFile(module) = self { Some(module) } else { None }
    }
}

/// The display name of a continuation of `method`.
pub(crate) fn named(method: &str) -> String {
    format!("continuation of {method}")
}

/// Names the methods of continuations, for one answer.
#[derive(Debug)]
pub(crate) struct SuspendedMethods {
    runtime: Arc<Bindings>,
    memory: Arc<Memory>,
    fields: Option<ContinuationFields>,
    methods: OnceLock<Option<Methods>>,
    /// Methods by address of the `ResumeInfo`. All continuations of a suspension point share one `ResumeInfo`.
    known: Mutex<Map<Addr, Suspended>>,
    look_ups: LookUps,
}

impl SuspendedMethods {
    /// Creates a reader for continuations with these `fields`.
    pub(crate) fn new(runtime: &Arc<Bindings>, fields: Option<ContinuationFields>) -> SuspendedMethods {
        let look_ups = LookUps::new(runtime.memory());
        let memory = Arc::clone(runtime.memory());
        SuspendedMethods { runtime: Arc::clone(runtime), memory, fields, methods: OnceLock::new(), known: Mutex::default(), look_ups }
    }

    /// The method that is suspended in the continuation at `object`.
    pub(crate) fn of(&self, names: &TypeNames, object: Addr) -> Suspended {
        let info = self.fields.and_then(|f| self.memory.ptr(f.info?.of_object(object)).ok());
        let Some(info) = info.filter(|at| !at.is_null()) else { return Suspended::Unknown };
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&info) {
            return found.clone();
        }
        let found = self.look_up(names, info);
        known().insert(info, found.clone());
        found
    }

    fn look_up(&self, names: &TypeNames, info: Addr) -> Suspended {
        let word = self.memory.ptr_bytes();
        let Some(at) = self.fields.map(|f| info.plus(f.ip)) else { return Suspended::Unknown };
        let Ok(walker) = self.runtime.stack_walker() else { return Suspended::Unknown };
        match walker.code().bytes().initial_pointer(at) {
            Ok(ip) => self.method(names, ip).map_or(Suspended::Unknown, Suspended::Method),
            Err(_) => match self.module(names, info) {
                Some(module) => Suspended::InFile(module),
                None => {
                    missed(at, word);
                    Suspended::Unknown
                }
            },
        }
    }

    /// The method whose code is at `ip`.
    pub(crate) fn method(&self, names: &TypeNames, ip: Addr) -> Option<Name> {
        let look_up = || self.runtime.stack_walker().ok()?.code().find(ip).ok().flatten();
        let code = Some(ip).filter(|ip| !ip.is_null()).and_then(|_| self.look_ups.one(look_up))?;
        self.named(names, code.method_desc).map(|name| name.to_name())
    }

    /// The code of the method that is suspended in the continuation at `object`, and the address of the suspension point in that code.
    pub(crate) fn code(&self, object: Addr) -> Option<(Arc<Code>, Addr)> {
        let fields = self.fields?;
        let info = self.memory.ptr(fields.info?.of_object(object)).ok()?;
        let code = self.runtime.stack_walker().ok()?.code();
        let ip = code.bytes().initial_pointer(info.plus(fields.ip)).ok()?;
        Some((code.find(ip).ok().flatten()?, ip))
    }

    /// The flags of the continuation at `object`.
    pub(crate) fn flags(&self, object: Addr) -> Option<u32> {
        self.memory.u32(self.fields?.flags?.of_object(object)).ok()
    }

    /// The parameters of the method whose MethodDesc is at `desc`.
    pub(crate) fn parameters(&self, names: &TypeNames, desc: Addr) -> Option<Parameters> {
        self.methods()?.parameters(names, desc, None)
    }

    fn methods(&self) -> Option<&Methods> {
        let bind = || {
            let runtime = &self.runtime;
            runtime.scoped(&Collector::new(), |d| Methods::bind(&self.memory, d, runtime.limits()).ok())
        };
        self.methods.get_or_init(bind).as_ref()
    }

    /// The name of the method whose MethodDesc is at `desc`.
    pub(crate) fn named(&self, names: &TypeNames, desc: Addr) -> Option<MethodName> {
        self.methods()?.name(names, desc)
    }

    /// File name of the module whose image contains `address`.
    fn module(&self, names: &TypeNames, address: Addr) -> Option<String> {
        let runtime = &self.runtime;
        let managed = || {
            let (_, module) = runtime.stack_walker().ok()?.code().image(address).ok()??;
            names.module(module).name.clone()
        };
        let mapped = || {
            let modules = &runtime.file().modules;
            let at = modules.iter().find(|m| m.range().contains(address))?;
            Some(at.file_name().to_string())
        };
        tried(|| managed().or_else(mapped))
    }

    /// Adds notes on methods whose names are only in module files, and on code look-ups that took too long.
    pub(crate) fn note(&self, notes: &Collector) {
        self.look_ups.note(notes);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut first: Option<Addr> = None;
        let mut files: Set<&str> = Set::default();
        let mut count = 0usize;
        for (info, found) in known.iter() {
            if let Suspended::InFile(module) = found {
                files.insert(module);
                first = Some(first.map_or(*info, |at| at.min(*info)));
                count = count.saturating_add(1);
            }
        }
        if first.is_some() {
            let mut files: Vec<&str> = files.into_iter().collect();
            files.sort_unstable();
            let points = plural(len64(count), "place");
            let what = format!(
                "the methods suspended at {points} in precompiled code have no names: data of {} is not in the dump",
                files.join(", ")
            );
            let remedy = if files.len() == 1 { Remedy::ModuleFile } else { Remedy::ProgramFiles };
            notes.add(Missing::Async.supplied_by(remedy), first, what);
        }
    }
}
