//! Reads static fields with their values.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{LoadedTypes, Runtime, TypeFilter, TypePattern, loaded_types};
use crate::base::hash::Set;
use crate::base::missed::{contradiction, may_be_mapped, watched};
use crate::base::{Addr, Budget, Collector, Count, NoteKind, len64};
use crate::clr::fields::{Field, Storage, Types};
use crate::clr::method_table::{Generics, MethodTableInfo};
use crate::clr::statics::{StaticPlace, Statics, ThreadBlock};
use crate::clr::threads::Thread;
use crate::clr::type_names::TypeName;
use crate::clr::values::{ObjectTexts, ValueLimits, Values};
use crate::contract::Descriptor;
use crate::memory::Memory;
use crate::model::{FieldValue, Order, StaticModel, StaticSort, StaticThread, StaticsReport, ValueKind};

/// Arguments of `statics`.
#[derive(Clone, Debug, Default)]
pub struct StaticsQuery {
    /// The types whose fields are listed. An empty list selects all types.
    pub types: Vec<TypePattern>,
    /// Whether to read thread statics instead of ordinary statics.
    pub thread_statics: bool,
    /// Whether to list uninitialized fields, which are otherwise only counted, and RVA fields, whose initial values are in module images.
    pub everything: bool,
    /// Whether to compute what the fields retain.
    pub retained: bool,
    /// Order of the fields. `None` means the order by retained size if retained sizes are computed, else the order of the types.
    pub sort: Option<Order<StaticSort>>,
    /// Maximum number of fields to list; 0 for all.
    pub top: usize,
}

/// Bytes of memory that the fields of an answer may take per byte of the dump.
const EXPANSION: u64 = 4;
/// Estimated bytes of memory that the texts of a value take in addition to their length.
const PLAIN: u64 = 96;

/// Reads static fields.
#[derive(Debug)]
pub struct StaticsReader<'t> {
    values: Values,
    statics: Statics,
    /// The managed threads, for thread statics.
    threads: Vec<Owner<'t>>,
    /// Number of threads with the thread statics block of an earlier thread, and the address of the first such thread.
    claimed: (u64, Option<Addr>),
    /// Budget for the steps of reading thread statics and for the memory of the fields in the answer.
    budget: Budget,
}

/// A thread, and the block that leads to its thread statics.
#[derive(Clone, Copy, Debug)]
struct Owner<'t> {
    thread: &'t Thread,
    block: ThreadBlock,
    /// Whether an earlier thread has the same block. A block is read only for the first thread that has it.
    claimed: bool,
}

/// A static field, or a thread static of one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticSpot<'s, 't> {
    /// The declaring type.
    pub(crate) info: &'s MethodTableInfo,
    /// The field.
    pub(crate) field: &'s Field,
    /// The thread, for thread statics.
    pub(crate) thread: Option<&'t Thread>,
    /// The location of the value.
    pub(crate) place: StaticPlace,
}

impl<'t> StaticsReader<'t> {
    /// Binds to `runtime`, whose types are `types`. Notes report layouts that the descriptor does not have. Thread statics are not listed
    /// unless [`StaticsReader::with_threads`] supplies the threads.
    pub(crate) fn bind(runtime: &Runtime, types: &Arc<Types>, notes: &Collector) -> Self {
        runtime.scoped(notes, |d| StaticsReader::new(runtime.memory(), d, types))
    }

    /// Creates a reader of the static fields of `types`.
    pub fn new(memory: &Arc<Memory>, d: &Descriptor, types: &Arc<Types>) -> Self {
        StaticsReader {
            values: Values::new(types, ValueLimits::default()),
            statics: Statics::new(memory, d, types),
            threads: Vec::new(),
            claimed: (0, None),
            budget: Budget::of_types(memory.dump_bytes().saturating_mul(EXPANSION), None),
        }
    }

    /// Makes the reader list the thread statics of these threads. A block that several threads share is read only for the first of them.
    #[must_use]
    pub fn with_threads(mut self, threads: &'t [Thread]) -> Self {
        let mut seen = Set::default();
        for thread in threads {
            let block = self.statics.thread_block(thread.address);
            let claimed = block.address().is_some_and(|at| !at.is_null() && !seen.insert(at));
            if claimed {
                self.claimed.0.bump();
                self.claimed.1.get_or_insert(thread.address);
            }
            self.threads.push(Owner { thread, block, claimed });
        }
        self
    }

    /// Makes values that refer to objects show the texts of `texts`.
    #[must_use]
    pub(crate) fn with_texts(self, texts: Arc<dyn ObjectTexts>) -> Self {
        StaticsReader { values: self.values.with_texts(texts), ..self }
    }

    /// The reader of the locations of static fields.
    pub(crate) fn statics(&self) -> &Statics {
        &self.statics
    }

    /// The types and their fields.
    pub(crate) fn types(&self) -> &Types {
        self.values.types()
    }

    /// Passes the static fields of all loaded types, and of the types in `more`, to `each`. `more` may have types of heap objects. Returns counts of
    /// types and fields.
    pub fn each(&self, more: &[Addr], options: &StaticsQuery, notes: &Collector, each: &mut dyn FnMut(StaticModel)) -> StaticsReport {
        let mut report = StaticsReport { types: 0, initialized: 0, not_initialized: 0, unknown: 0, statics: Vec::new(), shown: None };
        let mut seen = Set::default();
        let list = loaded_types(self.types());
        let wanted = |f: &Field| match f.storage {
            Storage::ThreadStatic => options.thread_statics,
            Storage::Static => !options.thread_statics,
            // Nearly all RVA fields are array initializers with a hash as their name.
            Storage::Rva => !options.thread_statics && options.everything,
            Storage::Instance => false,
        };
        let name = |mt: Addr| self.types().names().name(mt).to_name();
        let declaring = self.declaring(list.iter().chain(more).copied().filter(|mt| seen.insert(*mt)), &wanted);
        let tables = || declaring.iter().map(|(info, _)| info.address).collect();
        let filter = TypeFilter::of(&options.types, &LoadedTypes { names: self.types().names(), tables }, notes);
        for (info, fields) in &declaring {
            if !filter.is_empty() && !filter.matches(info.address, || name(info.address)) {
                continue;
            }
            report.types.bump();
            for field in fields.iter().filter(|f| wanted(f)) {
                let _ = self.spots((info, field), options.everything, &mut |spot, times| {
                    let count = match spot.place {
                        StaticPlace::NotInitialized => &mut report.not_initialized,
                        StaticPlace::Unknown => &mut report.unknown,
                        StaticPlace::At(_) => &mut report.initialized,
                    };
                    count.grow(times);
                    if options.everything || spot.place != StaticPlace::NotInitialized {
                        let model = self.model(spot);
                        if !self.budget.memory(bytes(&model)) {
                            return ControlFlow::Break(());
                        }
                        each(model);
                    }
                    ControlFlow::Continue(())
                });
            }
        }
        self.note(notes);
        report
    }

    /// The types in `list` with at least one `wanted` static field, each with all of its static fields.
    fn declaring(&self, list: impl Iterator<Item = Addr>, wanted: &dyn Fn(&Field) -> bool) -> Vec<(MethodTableInfo, Arc<Vec<Field>>)> {
        // Fields are checked first, because names are expensive and most types have no static fields.
        let of = |mt: Addr| {
            let fields = self.fields(mt).filter(|fields| fields.iter().any(wanted))?;
            Some((self.types().names().method_tables().read(mt).ok()?, fields))
        };
        list.filter_map(of).collect()
    }

    /// Passes the `wanted` static fields of all loaded types to `each`. A thread static is passed once per thread that has thread statics, and once
    /// more, as not initialized, for all other threads together.
    pub(crate) fn visit(
        &self,
        wanted: impl Fn(&Field) -> bool,
        mut each: impl FnMut(StaticSpot<'_, 't>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut seen = Set::default();
        let list = loaded_types(self.types());
        for (info, fields) in &self.declaring(list.into_iter().filter(|mt| seen.insert(*mt)), &wanted) {
            for field in fields.iter().filter(|f| wanted(f)) {
                self.spots((info, field), false, &mut |spot, _| each(spot))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Passes a static field to `each`, or a thread static once per thread, with the number of threads that the call represents. Threads
    /// without thread statics are combined in one call, unless `everything` is set.
    fn spots(
        &self,
        (info, field): (&MethodTableInfo, &Field),
        everything: bool,
        each: &mut dyn FnMut(StaticSpot<'_, 't>, u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let spot = |thread, place| StaticSpot { info, field, thread, place };
        if field.storage != Storage::ThreadStatic {
            return each(spot(None, self.unless_lost(field, || self.statics.place(info, field))), 1);
        }
        let slot = self.statics.thread_slot(info, field);
        let is_empty = |owner: &Owner<'_>| !slot.is_used() || owner.block.address().is_some_and(Addr::is_null);
        if !everything {
            let empty = len64(self.threads.iter().filter(|owner| is_empty(owner)).count());
            if empty > 0 {
                each(spot(None, StaticPlace::NotInitialized), empty)?;
            }
        }
        for owner in self.threads.iter().filter(|owner| !owner.claimed && (everything || !is_empty(owner))) {
            let afford = |n| self.budget.steps(n);
            if !afford(1) {
                return ControlFlow::Break(());
            }
            each(spot(Some(owner.thread), self.statics.in_block(owner.block, &slot, (info, field), &afford)), 1)?;
        }
        ControlFlow::Continue(())
    }

    /// The memory of the process.
    pub(crate) fn memory(&self) -> &Memory {
        self.types().memory()
    }

    /// The name of the declaring type of `field`.
    pub(crate) fn declaring_name(&self, field: &Field) -> Arc<TypeName> {
        self.types().names().name(field.declaring)
    }

    /// Adds notes on fields that may be missing or without a value.
    pub(crate) fn note(&self, notes: &Collector) {
        self.statics.note(notes);
        self.budget.note("reading static fields", notes);
        if let (count @ 1.., at) = self.claimed {
            let threads = if count == 1 { "a thread claims".to_string() } else { format!("{count} threads claim") };
            notes.add(NoteKind::Invalid, at, format!("{threads} the thread statics of another thread: those are read once"));
        }
    }

    /// The static fields of one type, including RVA fields, with thread statics once per thread.
    pub fn of_type(&self, mt: Addr) -> Vec<StaticModel> {
        let Ok(info) = self.types().names().method_tables().read(mt) else { return Vec::new() };
        let mut out = Vec::new();
        for field in self.fields(mt).iter().flat_map(|list| list.iter()).filter(|f| f.storage != Storage::Instance) {
            let _ = self.spots((&info, field), true, &mut |spot, _| {
                let model = self.model(spot);
                if !self.budget.memory(bytes(&model)) {
                    return ControlFlow::Break(());
                }
                out.push(model);
                ControlFlow::Continue(())
            });
        }
        out
    }

    /// The static fields of a type; `None` for open generic types and arrays, whose static fields have no values.
    fn fields(&self, mt: Addr) -> Option<Arc<Vec<Field>>> {
        let info = self.types().names().method_tables().read(mt).ok()?;
        (info.generics != Generics::Definition && !info.is_array).then(|| self.types().static_fields(mt))?
    }

    /// A field with its value.
    pub(crate) fn model(&self, spot: StaticSpot<'_, '_>) -> StaticModel {
        let thread = |t: &Thread| StaticThread { address: t.address, managed_id: t.id, os_id: t.os_id.filter(|id| *id != 0) };
        let field = self.unless_lost(spot.field, || self.value(spot.field, spot.place));
        if let Some(at) = invalid(&field) {
            contradiction(at, "a static field refers to an address without an object");
        }
        StaticModel {
            method_table: spot.info.address,
            module: self.types().names().name(spot.info.address).module.clone(),
            storage: spot.field.storage,
            thread: spot.thread.map(thread),
            retained: None,
            field,
        }
    }

    /// Runs `f`, which reads `field`. For an RVA field, whose value is in a module image that heap dumps omit, a failed read is reported only if
    /// the dump is damaged there.
    fn unless_lost<T>(&self, field: &Field, f: impl FnOnce() -> T) -> T {
        if field.storage != Storage::Rva {
            return f();
        }
        let (value, missed) = watched(f);
        if self.types().memory().has_lost(&missed) {
            missed.tell();
        }
        value
    }

    /// The value of a field.
    pub(crate) fn value(&self, field: &Field, place: StaticPlace) -> FieldValue {
        match place {
            StaticPlace::At(address) => self.values.static_field(field, address),
            StaticPlace::NotInitialized => self.values.nowhere(field, ValueKind::NotInitialized, "<not initialized>"),
            StaticPlace::Unknown => self.values.nowhere(field, ValueKind::Absent, "<location not in the dump>"),
        }
    }
}

/// The address of the first reference in `value` that does not refer to an object.
fn invalid(value: &FieldValue) -> Option<Addr> {
    // No memory is missing from the dump at an address that no process has.
    let is_impossible = || value.kind == ValueKind::Object && value.object.is_some_and(|object| !may_be_mapped(object));
    let own = || value.address.or(value.object).filter(|_| value.kind == ValueKind::Invalid || is_impossible());
    own().or_else(|| value.fields.iter().find_map(invalid))
}

/// The memory that a field takes, in bytes.
fn bytes(model: &StaticModel) -> u64 {
    len64(size_of::<StaticModel>()).saturating_add(value_bytes(&model.field))
}

/// The memory that a value takes in addition to its structure, in bytes.
fn value_bytes(value: &FieldValue) -> u64 {
    let texts = [&value.name, &value.type_name, &value.text].into_iter().fold(PLAIN, |n, t| n.saturating_add(len64(t.len())));
    let field = |field: &FieldValue| len64(size_of::<FieldValue>()).saturating_add(value_bytes(field));
    value.fields.iter().map(field).fold(texts, u64::saturating_add)
}
