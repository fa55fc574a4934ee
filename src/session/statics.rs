//! Reads static fields with their values.

use std::sync::Arc;

use super::{Runtime, TypeFilter, TypePattern, loaded_types};
use crate::base::hash::Set;
use crate::base::missed::watched;
use crate::base::{Addr, Collector, Count};
use crate::clr::fields::{Field, Storage, Types};
use crate::clr::method_table::Generics;
use crate::clr::statics::{StaticPlace, Statics};
use crate::clr::threads::Thread;
use crate::clr::values::{ObjectTexts, ValueLimits, Values};
use crate::contract::Descriptor;
use crate::memory::Memory;
use crate::model::{FieldValue, StaticModel, StaticSort, StaticThread, StaticsReport, ValueKind};

/// Arguments of `statics`.
#[derive(Clone, Debug, Default)]
pub struct StaticsQuery {
    /// Only fields of these types; empty for all.
    pub types: Vec<TypePattern>,
    /// Read thread statics instead of ordinary ones.
    pub thread_statics: bool,
    /// List uninitialized fields instead of only counting them, and initial values in module images (RVA fields).
    pub everything: bool,
    /// Order of the fields; `None` for that of the types.
    pub sort: Option<StaticSort>,
    /// Maximum fields to list, 0 for all.
    pub top: usize,
}

/// Reads static fields.
#[derive(Debug)]
pub struct StaticsReader<'t> {
    values: Values,
    statics: Statics,
    /// The managed threads, for thread statics.
    threads: &'t [Thread],
}

impl<'t> StaticsReader<'t> {
    /// Binds to `runtime`, whose types are `types`; what the descriptor lacks goes to `notes`. Thread statics have no values before
    /// [`StaticsReader::with_threads`].
    pub(crate) fn bind(runtime: &Runtime, types: &Arc<Types>, notes: &Collector) -> Self {
        runtime.scoped(notes, |d| StaticsReader::new(runtime.memory(), d, types))
    }

    /// Creates a reader of the static fields of `types`.
    pub fn new(memory: &Arc<Memory>, d: &Descriptor, types: &Arc<Types>) -> Self {
        StaticsReader { values: Values::new(types, ValueLimits::default()), statics: Statics::new(memory, d, types), threads: &[] }
    }

    /// Reads thread statics of these threads.
    #[must_use]
    pub fn with_threads(self, threads: &'t [Thread]) -> Self {
        StaticsReader { threads, ..self }
    }

    /// The same with texts for references to objects.
    #[must_use]
    pub(crate) fn with_texts(self, texts: Arc<dyn ObjectTexts>) -> Self {
        StaticsReader { values: self.values.with_texts(texts), ..self }
    }

    /// Where static fields are.
    pub(crate) fn statics(&self) -> &Statics {
        &self.statics
    }

    fn types(&self) -> &Types {
        self.values.types()
    }

    /// The static fields of all loaded types and of `more`, such as types of heap objects.
    pub fn all(&self, more: &[Addr], options: &StaticsQuery, notes: &Collector) -> StaticsReport {
        let mut report = StaticsReport { types: 0, initialised: 0, not_initialised: 0, unknown: 0, statics: Vec::new(), shown: None };
        let mut seen = Set::default();
        let list = loaded_types(self.types());
        let wanted = |f: &&Field| match f.storage {
            Storage::ThreadStatic => options.thread_statics,
            Storage::Static => !options.thread_statics,
            // Nearly all are array initializers named by hash.
            Storage::Rva => !options.thread_statics && options.everything,
            Storage::Instance => false,
        };
        // Check fields before names, which are expensive: most types have no statics.
        let declaring = |mt: &Addr| Some((*mt, self.fields(*mt).filter(|fields| fields.iter().any(|f| wanted(&f)))?));
        let declaring: Vec<_> = list.iter().chain(more).filter(|mt| seen.insert(**mt)).filter_map(declaring).collect();
        let name = |mt: Addr| self.types().names().name(mt).to_name();
        let labels = || declaring.iter().map(|(mt, _)| self.types().names().label(*mt)).collect();
        let filter = TypeFilter::of(&options.types, labels, notes);
        for (mt, fields) in &declaring {
            if !filter.is_empty() && !filter.matches(*mt, || name(*mt)) {
                continue;
            }
            report.types.bump();
            for field in fields.iter().filter(wanted) {
                for model in self.models(*mt, field) {
                    let count = match model.field.kind {
                        ValueKind::NotInitialised => &mut report.not_initialised,
                        ValueKind::Absent if model.field.address.is_none() => &mut report.unknown,
                        _ => &mut report.initialised,
                    };
                    count.bump();
                    if options.everything || model.field.kind != ValueKind::NotInitialised {
                        report.statics.push(model);
                    }
                }
            }
        }
        self.note(notes);
        report
    }

    /// Notes what may be missing among the fields that were read.
    pub(crate) fn note(&self, notes: &Collector) {
        self.statics.note(notes);
    }

    /// The static fields of one type; thread statics once per thread.
    pub fn of_type(&self, mt: Addr) -> Vec<StaticModel> {
        self.fields(mt).iter().flat_map(|list| list.iter()).flat_map(|f| self.models(mt, f)).collect()
    }

    /// The static fields of a type that can have values; open generic types have none.
    fn fields(&self, mt: Addr) -> Option<Arc<Vec<Field>>> {
        let info = self.types().names().method_tables().read(mt).ok()?;
        (info.generics != Generics::Definition && !info.is_array).then(|| self.types().static_fields(mt))?
    }

    fn models(&self, mt: Addr, field: &Field) -> Vec<StaticModel> {
        let names = self.types().names();
        let Ok(info) = names.method_tables().read(mt) else { return Vec::new() };
        let module = names.name(mt).module.clone();
        let model = |thread: Option<StaticThread>, place: StaticPlace| StaticModel {
            method_table: mt,
            module: module.clone(),
            storage: field.storage,
            thread,
            field: self.value(field, place),
        };
        match field.storage {
            Storage::Instance => Vec::new(),
            Storage::Static => vec![model(None, self.statics.place(&info, field))],
            Storage::Rva => {
                // Heap dumps lack the images with the initial values.
                let (model, missed) = watched(|| model(None, self.statics.place(&info, field)));
                if self.types().memory().has_lost(&missed) {
                    missed.tell();
                }
                vec![model]
            }
            Storage::ThreadStatic => {
                let of = |t: &Thread| {
                    let thread = StaticThread { address: t.address, managed_id: t.id, os_id: t.os_id.filter(|id| *id != 0) };
                    model(Some(thread), self.statics.of_thread(t.address, &info, field))
                };
                self.threads.iter().map(of).collect()
            }
        }
    }

    fn value(&self, field: &Field, place: StaticPlace) -> FieldValue {
        match place {
            StaticPlace::At(address) => self.values.static_field(field, address),
            StaticPlace::NotInitialised => self.values.nowhere(field, ValueKind::NotInitialised, "<not initialised>"),
            StaticPlace::Unknown => self.values.nowhere(field, ValueKind::Absent, "<its place is not in the dump>"),
        }
    }
}
