//! Names of types and fields for answers, computed once per method table. A missing name never makes an answer fail: a note reports it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::bindings::Bindings;
use super::continuations::{ContinuationFields, SuspendedMethods, named};
use super::known_types::NoType;
use crate::base::hash::Map;
use crate::base::missed::{Kept, tried, unnamed};
use crate::base::{Addr, Answer, Budget, Collector, Index, IndexVec, Missing, Name, NoteKind, NoteReason, Notes, Remedy, len64};
use crate::clr::fields::{Field, Fields, Storage, Types};
use crate::clr::generated::{Boxed, SharedNames};
use crate::clr::method_table::Category;
use crate::clr::modules::{MetadataOrigin, Module};
use crate::clr::type_names::{Label, NameQuality, TypeNames};
use crate::contract::ContractError;
use crate::dump::OsThread;
use crate::gc::TypeIndex;
use crate::memory::Memory;

/// Prefix of the type names of runtime async continuations.
const CONTINUATION: &str = "Continuation_";
/// Maximum number of characters of a string that is shown as a name.
const LONGEST: u32 = 1024;
/// Maximum nesting of structures in a field path.
const MAX_DEPTH: u32 = 16;

/// Field paths by method table and offset; `None` if no field is at the offset.
type Paths = Map<(Addr, u64), Kept<Option<Arc<str>>>>;

/// Names and modules of the types of a snapshot file, which has no runtime. Type numbers from 1 on replace method table addresses.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    types: IndexVec<TypeIndex, (String, Option<String>)>,
    shared: OnceLock<SharedNames>,
}

impl NameTable {
    /// Adds a type.
    pub(super) fn add(&mut self, name: String, module: Option<String>) -> TypeIndex {
        self.types.push((name, module)).unwrap_or_default()
    }

    /// The types, each with the number that replaces its method table address.
    pub(super) fn types(&self) -> impl Iterator<Item = (TypeIndex, Addr)> {
        self.types.indices().map(|index| (index, Addr(u64::from(index.as_u32()).saturating_add(1))))
    }

    fn get(&self, method_table: Addr) -> Option<&(String, Option<String>)> {
        self.types.get(TypeIndex::from_u32(u32::try_from(method_table.0.checked_sub(1)?).ok()?))
    }

    fn name(&self, method_table: Addr) -> Option<Name> {
        let (name, _) = self.get(method_table)?;
        let shared = || self.shared.get_or_init(|| SharedNames::of(self.types.iter().map(|(name, _)| name.as_str())));
        let source = Boxed::of(name).and_then(|found| found.shown(|| shared().has(found.machine)));
        Some(Name::shown_as(name.as_str(), source))
    }
}

/// Names types and fields for one answer, and records the modules that supplied names.
///
/// All namers of a runtime share its readers and metadata. Notes about missing names cover only the modules that this answer used.
#[derive(Debug)]
pub struct Namer {
    names: Option<Arc<TypeNames>>,
    /// Used instead of `names` for a snapshot file.
    table: Option<Arc<NameTable>>,
    types: Result<Arc<Types>, ContractError>,
    /// The reason why types have no names; `None` if they have names.
    nameless: Option<String>,
    /// Notes on layouts for names that the descriptor does not have.
    name_losses: Notes,
    /// Notes on layouts for types and fields that the descriptor does not have. They are added to the answer only if `types_used`.
    type_losses: Notes,
    types_used: AtomicBool,
    paths: Mutex<Paths>,
    memory: Arc<Memory>,
    runtime: Option<Arc<Bindings>>,
    suspended: OnceLock<Option<SuspendedMethods>>,
    /// Thread names by string object, because thousands of threads may share one string.
    thread_names: Mutex<Map<Addr, Name>>,
    /// Memory budget for thread names.
    budget: Budget,
    /// Whether the dump is truncated.
    cut: bool,
    /// Modules added by [`Namer::include`], such as modules that named roots while the graph was built.
    more: Mutex<Vec<Arc<Module>>>,
}

impl Namer {
    /// Creates a namer for one answer about `runtime`. Types have no names if the descriptor does not have the required layouts.
    pub(crate) fn new(runtime: &Arc<Bindings>) -> Namer {
        let memory = runtime.memory();
        let names = runtime.type_names().map(|names| Arc::new(names.for_answer()));
        let scope = runtime.descriptor().scope();
        let types = names.clone().and_then(|names| Types::new(memory, &scope, names, runtime.limits()).map(Arc::new));
        Namer {
            nameless: names.as_ref().err().map(ToString::to_string),
            names: names.ok(),
            table: None,
            types,
            name_losses: runtime.name_losses().clone(),
            type_losses: scope.losses(),
            types_used: AtomicBool::new(false),
            paths: Mutex::default(),
            memory: Arc::clone(memory),
            runtime: Some(Arc::clone(runtime)),
            suspended: OnceLock::new(),
            thread_names: Mutex::default(),
            budget: Budget::of_types(memory.dump_bytes(), runtime.limits().max_memory),
            cut: runtime.file().facts.lacks_memory(),
            more: Mutex::default(),
        }
    }

    /// Creates a namer for types with these names. The method table of the first one is 1, as in snapshots.
    #[cfg(test)]
    pub(crate) fn of_names(names: &[&str]) -> Namer {
        let mut table = NameTable::default();
        for name in names {
            table.add((*name).into(), None);
        }
        Namer::of_table(Arc::new(table), &Arc::new(Memory::empty(crate::base::Shape::LE64)))
    }

    /// Creates a namer that takes type names from `table` and has no field names.
    pub(super) fn of_table(table: Arc<NameTable>, memory: &Arc<Memory>) -> Namer {
        let undescribed = ContractError::NotAdvertised { contract: "RuntimeTypeSystem".into() };
        Namer {
            names: None,
            table: Some(table),
            types: Err(undescribed),
            nameless: None,
            name_losses: Notes::new(),
            type_losses: Notes::new(),
            types_used: AtomicBool::new(false),
            paths: Mutex::default(),
            memory: Arc::clone(memory),
            runtime: None,
            suspended: OnceLock::new(),
            thread_names: Mutex::default(),
            budget: Budget::of_types(0, None),
            cut: false,
            more: Mutex::default(),
        }
    }

    /// The type names; `None` if the descriptor does not have the layouts.
    pub fn names(&self) -> Option<&Arc<TypeNames>> {
        self.names.as_ref()
    }

    /// Notes on layouts for types and fields that the descriptor does not have.
    pub(crate) fn type_losses(&self) -> &Notes {
        &self.type_losses
    }

    /// The types with their fields.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the layouts.
    pub fn types(&self) -> Result<&Arc<Types>, ContractError> {
        self.types_used.store(true, Ordering::Relaxed);
        self.types.as_ref().map_err(Clone::clone)
    }

    /// The field layouts, if the descriptor has them.
    pub fn fields(&self) -> Option<&Fields> {
        self.types().ok().and_then(|t| t.fields())
    }

    /// Modules that supplied names, in address order.
    pub(crate) fn modules(&self) -> Vec<Arc<Module>> {
        let mut all = self.names.as_ref().map(|n| n.modules().seen()).unwrap_or_default();
        all.extend(self.more.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        all.sort_by_key(|m| m.address);
        all.dedup_by_key(|m| m.address);
        all
    }

    /// Adds modules that supplied names for a part of the answer, so that the notes cover them.
    pub(crate) fn include(&self, modules: &[Arc<Module>]) {
        self.more.lock().unwrap_or_else(PoisonError::into_inner).extend(modules.iter().cloned());
    }

    /// The name of the type with this method table, as printed by SOS and ClrMD, or `Module!0x02000123` without metadata.
    pub fn name(&self, method_table: Addr) -> Option<Name> {
        if let Some(table) = &self.table {
            return table.name(method_table);
        }
        let name = self.names.as_ref()?.name(method_table);
        (name.quality != NameQuality::Unknown).then(|| name.to_name())
    }

    /// The async method whose state machine type has this method table.
    pub(crate) fn kickoff(&self, method_table: Addr) -> Option<Name> {
        self.name(method_table)?;
        Some(self.names.as_ref()?.kickoff(method_table))
    }

    /// The name to show for the type of the object at `object`, whose type name is `type_name`. For a continuation, the display name contains the
    /// suspended method.
    pub(crate) fn of_object(&self, object: Addr, method_table: Addr, type_name: Name) -> Name {
        // Few objects are continuations.
        if !type_name.starts_with(CONTINUATION) {
            return type_name;
        }
        // If the name of the method is only in a module's file, the type name is used. The type name is correct as well, so no loss is reported.
        let method = tried(|| {
            let names = self.names.as_ref()?;
            names.method_tables().continuation(method_table)?;
            let bind = || {
                let fields = ContinuationFields::bind(self.types.as_ref().ok()?).ok()?;
                Some(SuspendedMethods::new(self.runtime.as_ref()?, fields))
            };
            self.suspended.get_or_init(bind).as_ref()?.of(names, object).name()
        });
        match method {
            Some(method) => Name::shown_as(type_name.as_str(), Some(named(method.shown()))),
            None => type_name,
        }
    }

    /// The name of the type, or the address of its method table if the name is unknown.
    pub fn name_or_address(&self, method_table: Addr) -> Name {
        self.name(method_table).unwrap_or_else(|| method_table.to_string().into())
    }

    /// The name that type patterns are matched against.
    pub(crate) fn label(&self, method_table: Addr) -> Label {
        Label { name: self.name_or_address(method_table), is_lost: self.is_lost(method_table) }
    }

    /// The reason why no type has its method table at `address`, with what is there; `None` if a type has it, or if the structures that would show it are not
    /// in the dump.
    pub(crate) fn no_type_at(&self, address: Addr) -> Option<NoType> {
        match &self.table {
            Some(table) => {
                table.get(address).is_none().then(|| NoType { why: format!("no type of the file has the number {address}"), at: None })
            }
            None => NoType::at(self.names.as_ref()?, address),
        }
    }

    /// Whether the type has no name because data is missing from the dump.
    fn is_lost(&self, method_table: Addr) -> bool {
        self.names.as_ref().map_or(self.table.is_none(), |names| names.is_lost(method_table))
    }

    /// Records that the current answer depends on the name of this type, if that name is missing from the dump.
    pub(crate) fn depends_on(&self, method_table: Addr) {
        if self.is_lost(method_table) {
            unnamed(method_table);
        }
    }

    /// File name of the module that defines the type. For an array, the module defines the element type.
    pub fn module(&self, method_table: Addr) -> Option<String> {
        if let Some(table) = &self.table {
            return table.get(method_table)?.1.clone();
        }
        self.names.as_ref()?.name(method_table).module.clone()
    }

    /// The field at `offset` of an object of the type at `method_table`: `_items`, `[3]` in an array, `[3].key` in an array of structures.
    pub fn path_at(&self, method_table: Addr, offset: u64) -> Option<String> {
        let tables = self.names.as_ref()?.method_tables();
        let info = tables.read(method_table).ok()?;
        if !info.is_array {
            // Field offsets of a structure are relative to one word before its first byte. In a boxed structure, that word begins at `more`.
            let more = if info.category == Category::ValueType { tables.boxed_at().checked_sub(self.memory.ptr_bytes())? } else { 0 };
            return self.path(method_table, offset.checked_sub(more)?).map(|p| p.to_string());
        }
        let word = self.memory.ptr_bytes();
        let within = offset.checked_sub(tables.elements_at(&info)?)?;
        let stride = u64::from(info.component_size);
        let (index, inner) = (within.checked_div(stride)?, within.checked_rem(stride)?);
        let element = tables.element_type(method_table).ok()?;
        // Field offsets of a structure are relative to one word before its first byte.
        match self.path(element, inner.checked_add(word)?) {
            Some(path) if tables.read(element).is_ok_and(|e| e.category == Category::ValueType) => {
                Some(joined(&format!("[{index}]"), &path))
            }
            _ => Some(format!("[{index}]")),
        }
    }

    fn path(&self, mt: Addr, offset: u64) -> Option<Arc<str>> {
        let known = self.paths.lock().unwrap_or_else(PoisonError::into_inner).get(&(mt, offset)).map(|path| path.get().clone());
        known.unwrap_or_else(|| {
            let path = Kept::of(|| self.find_path(mt, offset, 0).map(Arc::from));
            self.paths.lock().unwrap_or_else(PoisonError::into_inner).entry((mt, offset)).or_insert(path).get().clone()
        })
    }

    fn find_path(&self, mt: Addr, offset: u64, depth: u32) -> Option<String> {
        let types = self.types().ok()?;
        let fields = types.instance_fields(mt)?;
        let mut instance = fields.iter().filter(|f| f.storage == Storage::Instance);
        if let Some((index, inner)) = self.inline_element(mt, &fields, offset) {
            let outer = format!("[{index}]");
            let rest = inner.filter(|_| depth <= MAX_DEPTH).and_then(|(mt, offset)| self.find_path(mt, offset, depth.saturating_add(1)));
            return Some(rest.map_or_else(|| outer.clone(), |rest| joined(&outer, &rest)));
        }
        if let Some(exact) = instance.clone().find(|f| f.offset == offset && !f.is_structure()) {
            return Some(exact.name.clone());
        }
        if depth > MAX_DEPTH {
            return None;
        }
        // Structures may overlap in unions. The last structure that begins at or before the offset is taken.
        let outer = instance.by_ref().filter(|f| f.is_structure() && f.offset <= offset).max_by_key(|f| f.offset)?;
        let inner = offset.checked_sub(outer.offset)?.checked_add(self.memory.ptr_bytes())?;
        let rest = outer.method_table.and_then(|mt| self.find_path(mt, inner, depth.saturating_add(1)));
        Some(rest.map_or_else(|| outer.name.clone(), |rest| joined(&outer.name, &rest)))
    }

    /// The element of an inline array at `offset`: its index and, for a structure, its type and the offset in it. An inline array is a structure that is
    /// larger than its only field, which repeats. Only elements with references are found, because the sizes of others may include padding.
    fn inline_element(&self, mt: Addr, fields: &[Field], offset: u64) -> Option<(u64, Option<(Addr, u64)>)> {
        let tables = self.names.as_ref()?.method_tables();
        let mut instance = fields.iter().filter(|f| f.storage == Storage::Instance);
        let (field, None) = (instance.next()?, instance.next()) else { return None };
        let word = self.memory.ptr_bytes();
        let bytes = if field.is_reference() {
            word
        } else {
            let info = tables.read(field.method_table?).ok().filter(|info| info.contains_pointers && field.is_structure())?;
            tables.fields_end(&info).checked_sub(word)?
        };
        let info = tables.read(mt).ok().filter(|info| info.category == Category::ValueType)?;
        let (all, within) = (tables.fields_end(&info).checked_sub(field.offset)?, offset.checked_sub(field.offset)?);
        let (index, inner) = repeated(all, bytes, within)?;
        Some((index, field.method_table.filter(|_| field.is_structure()).map(|mt| (mt, inner.saturating_add(word)))))
    }

    /// The text of the string field `field` of the object at `object` with this method table.
    pub fn string_field(&self, object: Addr, method_table: Addr, field: &str) -> Option<String> {
        let (text, _) = self.types().ok()?.strings().text(self.string_at(object, method_table, field)?, LONGEST)?;
        Some(text)
    }

    /// The string object that the field refers to.
    fn string_at(&self, object: Addr, method_table: Addr, field: &str) -> Option<Addr> {
        let offset = self.types().ok()?.own_offset(method_table, field)?;
        self.memory.ptr(object.plus(offset)).ok().filter(|a| !a.is_null())
    }

    /// The name of a thread: the name in its managed `Thread` object, or else the operating system's name, which Windows dumps record.
    pub(crate) fn thread_name(&self, object: Option<Addr>, native: Option<&OsThread>) -> Option<Name> {
        let method_table = |object: Addr| self.types().ok()?.objects().method_table(object);
        let managed = object.and_then(|object| self.managed_name(object, method_table(object)?));
        let kept = |name: &String| self.budget.memory(len64(name.len()));
        managed.or_else(|| native.and_then(|n| n.name.clone()).filter(kept).map(Name::from))
    }

    fn managed_name(&self, thread: Addr, method_table: Addr) -> Option<Name> {
        let text = self.string_at(thread, method_table, "_name")?;
        let mut known = self.thread_names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(&text) {
            return Some(name.clone());
        }
        let name = self.types().ok()?.strings().text(text, LONGEST).map(|(name, _)| name).filter(|name| !name.is_empty())?;
        let name = Some(name).filter(|name| self.budget.memory(len64(name.len()))).map(Name::from)?;
        known.insert(text, name.clone());
        Some(name)
    }

    /// Adds notes on names from unproven files, and on names that are missing because metadata is missing.
    pub(crate) fn note(&self, notes: &Collector) {
        notes.extend(&self.name_losses);
        self.budget.note("naming threads", notes);
        if let Some(why) = &self.nameless {
            notes.add(NoteKind::NoMetadata, None, format!("types have no names: {why}"));
        }
        if self.types_used.load(Ordering::Relaxed) {
            notes.extend(&self.type_losses);
        }
        note_modules(&self.modules(), || self.cut || self.holds_metadata(), notes);
        self.types.iter().for_each(|types| notes.extend(&types.loader().faults()));
        self.names.iter().for_each(|names| names.note(notes));
    }

    /// Whether most images of the process have their metadata in the dump. If not, the dump is of a kind that does not contain metadata (gcore,
    /// kernel, mini), and the missing names of an image are not a loss of data.
    fn holds_metadata(&self) -> bool {
        let Some(names) = &self.names else { return false };
        let all: Vec<Addr> = self.types.iter().flat_map(|t| t.loader().modules()).collect();
        let have = tried(|| all.iter().filter(|at| names.modules().has_image(**at)).count());
        have.saturating_mul(2) > all.len()
    }

    /// Adds the notes on names to `answer`. This is for answers whose rows get their names while the rows are printed.
    pub fn noted<T>(&self, answer: Answer<T>) -> Answer<T> {
        let notes = Collector::new();
        let data = notes.take(answer);
        self.note(&notes);
        notes.finish(data)
    }
}

/// The element at the offset `within` in `all` bytes with elements of `bytes` bytes: its index, and the offset in it. `None` if there is only one element.
fn repeated(all: u64, bytes: u64, within: u64) -> Option<(u64, u64)> {
    (all >= bytes.checked_mul(2)? && within < all).then_some(())?;
    Some((within.checked_div(bytes)?, within.checked_rem(bytes)?))
}

/// The path of a field in `outer`, or of an element.
fn joined(outer: &str, inner: &str) -> String {
    if inner.starts_with('[') { format!("{outer}{inner}") } else { format!("{outer}.{inner}") }
}

/// Adds notes on names from unproven files, and on names that are missing because metadata is missing. Missing metadata is a loss of data if
/// `was_there` returns true.
fn note_modules(modules: &[Arc<Module>], was_there: impl FnOnce() -> bool, notes: &Collector) {
    let mut nameless = Vec::new();
    for module in modules {
        let name = module.simple_name().unwrap_or("a module").to_string();
        if module.edited {
            let what = format!(
                "{name} was edited while the process ran (hot reload): types that the edits added have no names, and the fields and methods \
                 that they added to other types are not shown"
            );
            notes.add(Missing::Metadata, module.address, what);
        }
        match &module.origin {
            MetadataOrigin::UnverifiedFile(path) => {
                let what = format!("names of {name} come from {}: the dump cannot prove that the file matches", path.display());
                notes.add(NoteKind::ModuleMismatch, None, what);
            }
            MetadataOrigin::None => {
                // A file was found but rejected: give the reason.
                if let Some((path, why)) = module.rejected.first() {
                    let reason = NoteKind::ModuleMismatch.supplied_by(why.remedy);
                    notes.add(reason, None, format!("{} is not used for names of {name}: {why}", path.display()));
                }
                nameless.push(name);
            }
            _ => {}
        }
    }
    if !nameless.is_empty() {
        let (shown, rest) = nameless.split_at_checked(5).unwrap_or((&nameless, &[]));
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        let what = format!("types of {}{more} have no names: their metadata is not in the dump", shown.join(", "));
        let reason = if was_there() { NoteReason::from(Missing::Metadata) } else { NoteKind::NoMetadata.into() };
        notes.add(reason.supplied_by(Remedy::ProgramFiles), None, what);
    }
}

#[cfg(test)]
mod tests {
    use super::{joined, repeated};

    #[test]
    fn a_field_that_repeats_has_elements() {
        assert_eq!((repeated(64, 8, 0), repeated(64, 8, 56), repeated(64, 8, 64)), (Some((0, 0)), Some((7, 0)), None));
        assert_eq!((repeated(192, 64, 72), repeated(48, 16, 40)), (Some((1, 8)), Some((2, 8))));
        // An ordinary structure with one field.
        assert_eq!((repeated(8, 8, 0), repeated(0, 0, 0), repeated(8, 0, 0)), (None, None, None));
        assert_eq!(
            (joined("arr", "[1]"), joined("[1]", "e"), joined("[1]", "[2].e")),
            ("arr[1]".into(), "[1].e".into(), "[1][2].e".into())
        );
    }
}
