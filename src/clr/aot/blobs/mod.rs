//! Tables for reflection, static fields and stack traces, which the compiler writes into every NativeAOT module. They supply names even
//! without symbols.
//!
//! The tables are in read-only memory. If the dump does not contain that memory, the module's file supplies the tables. Each table is read once,
//! at first use. Missing parts are reported to each answer by [`Blobs::note`] and as failed reads.

mod header;
mod metadata;
mod methods;
mod owners;
mod reader;
mod stack_trace;
mod statics;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use crate::base::hash::Map;
use crate::base::missed::Kept;
use crate::base::{Addr, AddrRange, Budget, Collector, Limits, Missing, NoteKind, Remedy};
use crate::memory::{Image, Memory};

#[cfg(feature = "internals")]
use header::FROZEN_OBJECTS;
use header::{COMMON_FIXUPS, METADATA, Sections, TYPE_MAP};
pub use metadata::Definition;
use metadata::Metadata;
pub use methods::Method;
use owners::Owners;
pub use owners::{Owned, StaticKind};
use reader::{Section, Table};
use stack_trace::Methods;
pub use statics::GcStatics;

/// The compiler-generated tables of one NativeAOT module.
#[derive(Debug)]
pub struct Blobs {
    memory: Arc<Memory>,
    /// Memory from which the tables are read: the memory in the dump, or the module's file.
    tables: Arc<Memory>,
    image: Image,
    sections: Sections,
    metadata: Option<Metadata>,
    /// The flag of a method table whose objects contain references.
    has_pointers: u32,
    budget: Budget,
    types: OnceLock<Kept<Table<Types>>>,
    owners: OnceLock<Kept<Table<Owners>>>,
    methods: OnceLock<Kept<Table<Methods>>>,
}

/// The types of the module.
#[derive(Debug, Default)]
struct Types {
    by_table: Map<Addr, Definition>,
    /// Method tables by module and name. Several types may have the same name.
    by_name: Map<(Arc<str>, String), Addr>,
}

impl Blobs {
    /// Finds the tables of `image` in `memory`, otherwise in `file`, the [image of the module's file](crate::memory::file_image).
    /// `has_pointers` is the flag of a method table whose objects contain references. `None` if neither has the header that lists the
    /// tables.
    pub fn find(memory: &Arc<Memory>, file: Option<&Arc<Memory>>, image: &Image, has_pointers: u32, limits: &Limits) -> Option<Blobs> {
        let found = |tables: &Arc<Memory>| Some((Sections::find(tables, image)?, Arc::clone(tables)));
        let (sections, tables) = found(memory).or_else(|| found(file?))?;
        let metadata = sections.get(METADATA).and_then(|range| Metadata::open(Section::new(&tables, range), sections.split));
        Some(Blobs {
            memory: Arc::clone(memory),
            tables,
            image: image.clone(),
            sections,
            metadata,
            has_pointers,
            budget: Budget::of_types(memory.dump_bytes(), limits.max_memory),
            types: OnceLock::new(),
            owners: OnceLock::new(),
            methods: OnceLock::new(),
        })
    }

    /// The address of a header that [`Blobs::find`] did not find, because it is missing from a dump of a kind that contains it.
    pub(crate) fn lost_header(memory: &Memory, image: &Image) -> Option<Addr> {
        Sections::lost_header(memory, image)
    }

    /// Address of the header that lists the tables.
    #[cfg(feature = "internals")]
    pub fn header(&self) -> Addr {
        self.sections.header
    }

    fn section(&self, id: u32) -> Option<Section> {
        self.sections.open(&self.tables, id)
    }

    /// Name and module of the type at `method_table`. `None` for generic instances, arrays and pointers, and if the compiler emitted no
    /// metadata for the type or the metadata is absent.
    pub fn definition(&self, method_table: Addr) -> Option<&Definition> {
        self.types().by_table.get(&method_table)
    }

    /// The name of the type at `method_table`, without its module: ``System.Collections.Generic.Dictionary`2``, `Lab.Program+Entry`.
    #[cfg(feature = "internals")]
    pub fn definition_name(&self, method_table: Addr) -> Option<&str> {
        self.definition(method_table).map(|d| d.name.as_str())
    }

    /// The method table of the type `name` in `module`; both have the form of [`Definition`].
    pub fn method_table_of(&self, module: &str, name: &str) -> Option<Addr> {
        self.types().by_name.get(&(module.into(), name.to_string())).copied()
    }

    /// All named types, in no particular order.
    pub fn definitions(&self) -> impl Iterator<Item = (Addr, &Definition)> {
        self.types().by_table.iter().map(|(at, d)| (*at, d))
    }

    /// The tables that have absent or invalid parts. Tables that have not been read yet are not checked.
    pub fn incomplete(&self) -> Vec<&'static str> {
        let cut = [
            ("list of tables", self.sections.lost.is_some()),
            ("metadata", self.metadata.is_none()),
            ("table of types", self.types.get().is_some_and(|t| !t.get().whole)),
            ("table of static fields", self.owners.get().is_some_and(|t| !t.get().whole)),
            ("table of methods", self.methods.get().is_some_and(|t| !t.get().whole)),
        ];
        cut.into_iter().filter(|(_, cut)| *cut).map(|(what, _)| what).collect()
    }

    /// Adds notes about [incomplete tables](Blobs::incomplete) of the module at `path`, and about limits that were reached.
    pub(crate) fn note(&self, path: &str, notes: &Collector) {
        let names = self.sections.get(METADATA);
        let has_all_rows = self.sections.lost.is_none();
        if self.metadata.is_none() && has_all_rows && names.is_none_or(|range| self.memory.captured(range) == 0) {
            // If the dump has nothing of the metadata, it is of a kind that does not contain read-only memory. The answer remains complete.
            notes.add(
                NoteKind::NoMetadata.supplied_by(Remedy::ModuleFile),
                None,
                format!("types have no names: the metadata of {path} is not in the dump"),
            );
        } else if let [first, rest @ ..] = self.incomplete().as_slice() {
            let more = rest.iter().map(|what| format!(", {what}")).collect::<String>();
            let what = format!("a part of the tables of {path} is not in the dump: {first}{more}");
            notes.add(Missing::Metadata.supplied_by(Remedy::ModuleFile), self.sections.lost.or(Some(self.sections.header)), what);
        }
        if self.has_more_slots() {
            notes.add(
                NoteKind::LimitHit,
                Some(self.sections.header),
                format!("only the first {} static fields were read", self.slot_count()),
            );
        }
        self.budget.note("reading the tables of the module", notes);
    }

    fn types(&self) -> &Types {
        &self.types.get_or_init(|| Kept::of(|| self.read_types())).get().data
    }

    fn read_types(&self) -> Table<Types> {
        let mut types = Types::default();
        let (Some(map), Some(fixups), Some(metadata)) = (self.section(TYPE_MAP), self.section(COMMON_FIXUPS), &self.metadata) else {
            return Table { data: types, whole: self.metadata.is_some() };
        };
        let mut named = true;
        let all = map.entries(&self.budget, |mut entry| {
            let mut read = || {
                let (index, token) = (entry.unsigned()?, entry.unsigned()?);
                let table = fixups.relative(u64::from(index).checked_mul(4)?)?;
                // For types that are blocked from reflection, the token is a type reference instead of a type definition.
                Some((table, metadata.type_name(self.sections.split.of_token(token), &self.budget)?))
            };
            match read() {
                Some((table, definition)) => {
                    types.by_name.entry((Arc::clone(&definition.module), definition.name.clone())).or_insert(table);
                    types.by_table.insert(table, definition);
                }
                None => named = false,
            }
        });
        Table { data: types, whole: all && named }
    }

    /// Range of the module's frozen objects: string literals and precomputed objects.
    #[cfg(feature = "internals")]
    pub fn frozen_objects(&self) -> Option<AddrRange> {
        self.sections.get(FROZEN_OBJECTS)
    }
}
