//! Delegates: their methods and targets.
//!
//! `docs/internals/delegates.md` describes the layouts.

use std::sync::Arc;

use crate::base::missed::watched;
use crate::base::{Addr, Budget, Collector, Missing, Name, len64};
use crate::clr::fields::Types;
use crate::clr::generated::parameters_of;
use crate::clr::library::{Classifier, NoSuchField, fields_of, library_types};
use crate::clr::loader::Loader;
use crate::clr::methods::{GenericContext, MethodName, Methods};
use crate::clr::precodes::Precodes;
use crate::contract::{ContractError, Descriptor};
use crate::memory::Memory;
use crate::model::{DelegateModel, DelegatePart};
use crate::session::Runtime;
use crate::stack::code::CodeMap;
use crate::stack::{CodeBytes, LookUps};

/// Maximum number of parts of a multicast delegate that are read.
const MAX_PARTS: u64 = 1 << 16;
/// Steps that a part of a delegate costs. A part costs several steps, because it is an object to read and its data is kept in memory.
const STEPS_OF_A_PART: u64 = 4;

library_types! {
    enum DelegateType {
        in "System.Private.CoreLib" {
            Delegate = "System.Delegate",
            Multicast = "System.MulticastDelegate",
        }
    }
}

fields_of! {
    struct Fields {
        // The first name is that of CoreCLR. The others are those of NativeAOT and, for some fields, of CoreCLR since .NET 11.
        target: req "_target|_firstParameter",
        entry: req "_methodPtr|_functionPointer",
        entry_of_open: req "_methodPtrAux|_extraFunctionPointerOrData",
        list: req "_invocationList|_helperObject",
        count: req "_invocationCount|_extraFunctionPointerOrData|_extraData",
    }
}

/// The target and code of one delegate that is not multicast, or of one [part](Delegates::parts) of a multicast delegate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The delegate.
    pub(crate) delegate: Addr,
    /// The object on which the method is called, or the first argument of a static method. `None` for open delegates.
    pub(crate) target: Option<Addr>,
    /// Address of the code that is called.
    pub(crate) entry: Addr,
}

/// Finds methods by the entry point of a delegate, which may be in a precode, jitted code or an image.
#[derive(Debug)]
struct Entries {
    methods: Methods,
    precodes: Result<Precodes, ContractError>,
    code: Option<CodeMap>,
    look_ups: LookUps,
}

impl Entries {
    fn bind(runtime: &Runtime, types: &Types, d: &Arc<Descriptor>) -> Result<Entries, ContractError> {
        let (memory, limits) = (runtime.memory(), runtime.limits());
        let bytes = match Loader::bind(memory, d, limits) {
            Ok(loader) => CodeBytes::with_files(memory, types.names().modules().for_answer(), loader),
            Err(_) => CodeBytes::new(memory),
        };
        let methods = Methods::bind(memory, d, limits)?;
        let code = CodeMap::bind(&bytes, d).ok();
        Ok(Entries { methods, precodes: Precodes::bind(memory, d), code, look_ups: LookUps::new(memory) })
    }

    fn method(&self, types: &Types, entry: Addr) -> Option<Addr> {
        let in_code = || self.code.as_ref()?.find(entry).ok().flatten().filter(|code| code.start == entry).map(|code| code.method_desc);
        // Most entry points are precodes. So a failed look-up in code is reported only if the precodes do not have the method either.
        let (found, missed) = watched(|| self.look_ups.one(in_code));
        let found = found.or_else(|| self.precodes.as_ref().ok()?.method(entry, |desc| self.methods.is_method(types.names(), desc)));
        if found.is_none() && self.methods.memory().has_lost(&missed) {
            missed.tell();
        }
        found
    }
}

/// The base type of all delegates.
const MULTICAST: &str = "System.MulticastDelegate";

/// Reads delegates.
#[derive(Debug)]
pub(crate) struct Delegates {
    types: Arc<Types>,
    memory: Arc<Memory>,
    classifier: Classifier<DelegateType>,
    fields: Result<Fields, NoSuchField>,
    entries: Result<Entries, ContractError>,
    /// The budget for all invocation lists. In a forged dump, many delegates may share one list.
    budget: Budget,
}

impl Delegates {
    /// Binds to the types of an answer. Adds notes on layouts that the descriptor does not have.
    pub(crate) fn bind(runtime: &Runtime, types: &Arc<Types>, notes: &Collector) -> Delegates {
        let classifier = Classifier::bind(types);
        let table = classifier.table(DelegateType::Multicast);
        let fields = match table {
            Some(table) => Fields::bind(types, table),
            // Mono has other fields.
            None if types.names().method_tables().mono().is_some() => {
                Err(NoSuchField::Absent { type_name: MULTICAST.into(), field: "_invocationList" })
            }
            None => Err(NoSuchField::Unread { type_name: MULTICAST.into() }),
        };
        let entries = runtime.scoped(notes, |d| Entries::bind(runtime, types, d));
        let memory = Arc::clone(runtime.memory());
        let budget = Budget::new(memory.dump_bytes(), None);
        Delegates { types: Arc::clone(types), memory, classifier, fields, entries, budget }
    }

    /// Adds notes if the fields of delegates are unknown, or all invocation lists together exceed the budget.
    pub(crate) fn note_lists(&self, notes: &Collector) {
        self.budget.note("reading delegates", notes);
        self.note_fields(notes);
    }

    /// Adds a note if the fields of delegates are unknown.
    pub(crate) fn note_fields(&self, notes: &Collector) {
        if let Err(missing) = &self.fields {
            let reason = Missing::Objects.supplied_by(missing.remedy());
            notes.add(reason, None, format!("the methods of delegates cannot be found: {missing}"));
        }
    }

    /// Like [`Delegates::note_lists`], for answers that show methods of delegates. Adds notes if methods cannot be found, or the look-ups
    /// exceed their limit.
    pub(crate) fn note(&self, notes: &Collector) {
        self.note_lists(notes);
        if let Ok(entries) = &self.entries {
            entries.look_ups.note(notes);
        }
        if self.types.names().native_aot().is_some() {
            return;
        }
        let why = self.entries.as_ref().err().or(self.entries.as_ref().ok().and_then(|e| e.precodes.as_ref().err()));
        if let Some(why) = why {
            notes.add(Missing::Objects, None, format!("the methods of delegates cannot be found: {why}"));
        }
    }

    /// Whether objects with this method table are delegates.
    pub(crate) fn is_delegate(&self, method_table: Addr) -> bool {
        !self.classifier.of(method_table).is_empty()
    }

    /// Whether the object at `object` is a delegate.
    pub(crate) fn is(&self, object: Addr) -> bool {
        self.types.objects().method_table(object).is_some_and(|mt| self.is_delegate(mt))
    }

    /// The call of the delegate at `delegate`; for a multicast delegate, the call of its last part. `None` if the fields of the delegate are
    /// not in the dump.
    pub(crate) fn call(&self, delegate: Addr) -> Option<Call> {
        match self.list(delegate) {
            Some((_, 0)) | None => self.single(delegate),
            Some((list, count)) => self.single(self.memory.ptr(self.slot(list, count.saturating_sub(1))?).ok()?),
        }
    }

    /// The parts of a multicast delegate, in order of invocation, and whether all of them were read. `None` for other delegates.
    pub(crate) fn parts(&self, delegate: Addr) -> Option<(Vec<Call>, bool)> {
        let (list, count) = self.list(delegate)?;
        let parts = self.parts_in(list, count.min(MAX_PARTS)).unwrap_or_default();
        let complete = u64::try_from(parts.len()).ok() == Some(count);
        Some((parts, complete))
    }

    /// Charges `n` parts of delegates. Returns false if the budget does not allow them.
    pub(crate) fn afford(&self, n: u64) -> bool {
        self.budget.steps(n.saturating_mul(STEPS_OF_A_PART))
    }

    /// The first `count` parts in an invocation list, up to the first that is not in the dump; `None` if the budget does not allow them.
    /// Delegates to which handlers were added one after the other share a list, of which each has a longer part.
    pub(crate) fn parts_in(&self, list: Addr, count: u64) -> Option<Vec<Call>> {
        self.afford(count).then(|| {
            let part = |i: u64| self.single(self.memory.ptr(self.slot(list, i)?).ok()?);
            (0..count).map_while(part).collect()
        })
    }

    /// The invocation list of a multicast delegate, an array, and the number of its elements that the delegate uses. `None` for other delegates.
    pub(crate) fn list(&self, delegate: Addr) -> Option<(Addr, u64)> {
        let fields = self.fields.as_ref().ok()?;
        let list = self.memory.ptr(fields.list.of_object(delegate)).ok().filter(|a| !a.is_null())?;
        // Wrapper delegates and delegates for collectible types store an object that is not an array in this field.
        let is_array = |mt: Addr| self.types.names().method_tables().read(mt).is_ok_and(|info| info.is_array);
        self.types.objects().method_table(list).filter(|mt| is_array(*mt))?;
        let length = u64::from(self.types.objects().component_count(list)?);
        let count = self.memory.word(fields.count.of_object(delegate)).ok()?;
        (count <= length).then_some((list, count))
    }

    /// The invocation list (an array) of a multicast delegate.
    pub(crate) fn list_of(&self, delegate: Addr) -> Option<Addr> {
        self.list(delegate).map(|(list, _)| list)
    }

    fn slot(&self, list: Addr, index: u64) -> Option<Addr> {
        Some(list.plus(self.types.objects().array_bytes()?).element(index, self.memory.ptr_bytes()))
    }

    fn single(&self, delegate: Addr) -> Option<Call> {
        let fields = self.fields.as_ref().ok()?;
        let open = Addr(self.memory.word(fields.entry_of_open.of_object(delegate)).ok()?);
        let (target, entry) = if open.is_null() {
            let target = self.memory.ptr(fields.target.of_object(delegate)).ok()?;
            (Some(target), Addr(self.memory.word(fields.entry.of_object(delegate)).ok()?))
        } else {
            // The delegate is open. Its target field refers to the delegate itself, for the stub that shuffles the arguments.
            (None, open)
        };
        Some(Call { delegate, target: target.filter(|a| !a.is_null()), entry })
    }

    /// The `MethodDesc` of a call; `None` if it cannot be found.
    fn desc(&self, call: &Call) -> Option<Addr> {
        self.entries.as_ref().ok()?.method(&self.types, call.entry)
    }

    /// The name of the method at `desc`, which a call enters, with exact generic arguments if the target determines them.
    fn method(&self, call: &Call, desc: Addr) -> Option<MethodName> {
        let (methods, names) = (&self.entries.as_ref().ok()?.methods, self.types.names());
        let exact = call.target.and_then(|this| methods.exact_name(names, desc, GenericContext::This(this)));
        exact.or_else(|| methods.name(names, desc))
    }

    /// The name of the method of a call. `desc` is the `MethodDesc` of the method. In NativeAOT programs, `desc` is not needed, and the name has
    /// no parameters.
    fn method_name(&self, call: &Call, desc: Option<Addr>) -> Option<Name> {
        match self.types.names().native_aot() {
            Some(program) => program.method_at(call.entry),
            None => self.method(call, desc?).map(|m| m.to_name()),
        }
    }

    /// The name of the method of a call. The exact form of the name has no parameters: `Lab.Program.<Main>b__0`.
    pub(crate) fn called(&self, call: &Call) -> Option<Name> {
        let name = self.method_name(call, self.desc(call))?;
        Some(Name::shown_as(parameters_of(&name).0, Some(name.to_string())))
    }

    /// The text of a delegate for people: `Lab.Program.Main.b__0_0 (lambda) on 0x7f0012345678`, then the number of further parts.
    pub(crate) fn text(&self, delegate: Addr) -> Option<String> {
        let call = self.call(delegate)?;
        let mut text = self.called(&call).map_or_else(|| format!("code at {}", call.entry), |method| method.to_string());
        if let Some(target) = call.target {
            text.push_str(&format!(" on {target}"));
        }
        match self.list(delegate) {
            Some((_, count)) if count > 1 => text.push_str(&format!(" and {} more", count.saturating_sub(1))),
            _ => {}
        }
        Some(text)
    }

    /// The model of a delegate, with at most `most` parts; `None` if the object is not a delegate. Adds notes on data that could not be
    /// read.
    pub(crate) fn model(&self, delegate: Addr, most: u64, notes: &Collector) -> Option<DelegateModel> {
        self.is(delegate).then_some(())?;
        self.note(notes);
        let parts = self.parts(delegate);
        if let Some((_, false)) = &parts {
            notes.add(Missing::Objects, delegate, "not all parts of the delegate could be read");
        }
        let calls = parts.map_or_else(Vec::new, |(calls, _)| calls);
        let last = match calls.last() {
            Some(last) => self.part(last),
            None => self.part(&self.call(delegate)?),
        };
        let DelegatePart { target, target_type, method, display, method_desc, .. } = last;
        let shown = usize::try_from(most).unwrap_or(usize::MAX);
        let parts = calls.iter().take(shown).map(|call| self.part(call)).collect();
        self.note(notes);
        Some(DelegateModel { target, target_type, method, display, method_desc, part_count: len64(calls.len()), parts })
    }

    fn part(&self, call: &Call) -> DelegatePart {
        let table = call.target.and_then(|t| self.types.objects().method_table(t));
        let desc = self.desc(call);
        let method = self.method_name(call, desc);
        DelegatePart {
            object: call.delegate,
            target: call.target,
            target_type: table.map(|mt| self.types.names().name(mt).to_name()),
            display: method.as_ref().map(Name::display),
            method,
            method_desc: desc,
        }
    }
}
