//! PDBs of NativeAOT modules for Windows: symbols, and types with their fields.
//!
//! The compiler mangles type names as on Unix, but decorates symbol names like MSVC does. For example, `??_7NAME@@6B@` is the method table
//! of `NAME`, and `?__GCSTATICS@NAME@@` is the slot that points to its static references. The PDB describes static fields as members of a
//! separate type, `__type__GCSTATICSNAME`.
//!
//! Source: `WindowsNodeMangler.cs`, `CodeViewTypesBuilder.cs`, `CodeViewSymbolsBuilder.cs`, `UserDefinedTypeDescriptor.cs` of the runtime.
//! No NativeAOT program for Windows was available for tests: see `docs/internals/native-aot.md#not-measured`.

use std::borrow::Cow;
use std::cell::Cell;
use std::io;
use std::sync::Arc;

use pdb2::{FallibleIterator as _, PDB, PdbInternalSectionOffset, Source, SourceSlice, SourceView, StreamIndex, SymbolData};

use super::Debugging;
use super::codeview::{Field, POINTER, Record};
use super::symbols::{GC_STATICS, METHOD_TABLE, NativeSymbols, OTHER_STATICS, THREAD_STATICS};
use super::types::{BYTES_OF_AN_ITEM, Class, DebugTypes, Entry, Member, StaticAt};
use crate::base::hash::Map;
use crate::base::{Addr, Budget, CorElementType, Limits, Os, len64};
use crate::clr::refusal::Refusal;
use crate::dump::{Bytes, Module};
use crate::memory::{FileSearch, Image, Memory, ModuleFile, hex};

/// Maximum number of object files (DBI modules) of a PDB that are read. Programs have some hundred object files.
const MAX_OBJECT_FILES: usize = 1 << 12;
/// Maximum number of `LF_FIELDLIST` records that continue one field list.
const MAX_PARTS: usize = 256;

// Kinds of CodeView symbols that are parsed: `S_PUB32`, and the procedures `S_LPROC32` and `S_GPROC32` with their `_ID` forms.
const PUBLIC: u16 = 0x110e;
const PROCEDURES: [u16; 4] = [0x110f, 0x1110, 0x1146, 0x1147];

/// CodeView primitive types, which have no record in the TPI stream: type index and element type.
const PRIMITIVES: [(usize, CorElementType); 18] = [
    (0x30, CorElementType::Boolean),
    (0x71, CorElementType::Char),
    (0x10, CorElementType::I1),
    (0x68, CorElementType::I1),
    (0x20, CorElementType::U1),
    (0x69, CorElementType::U1),
    (0x11, CorElementType::I2),
    (0x72, CorElementType::I2),
    (0x21, CorElementType::U2),
    (0x73, CorElementType::U2),
    (0x74, CorElementType::I4),
    (0x75, CorElementType::U4),
    (0x13, CorElementType::I8),
    (0x76, CorElementType::I8),
    (0x23, CorElementType::U8),
    (0x77, CorElementType::U8),
    (0x40, CorElementType::R4),
    (0x41, CorElementType::R8),
];

/// Type indices of pointers to `void`, which have no record.
const POINTERS: [usize; 2] = [0x403, 0x603];
/// The TPI stream, which contains the types.
const TYPES: StreamIndex = StreamIndex(2);
/// Mask of the mode in the attributes of an `LF_POINTER`, and the mode of an lvalue reference.
const POINTER_MODE: u32 = 7 << 5;
const REFERENCE: u32 = 1 << 5;

/// Symbol prefixes of blocks of static fields, on Unix and on Windows. [`DebugTypes::statics_of`] requires this order of kinds.
const STATICS: [(&str, &str); 3] =
    [(OTHER_STATICS, "__NONGCSTATICS"), (GC_STATICS, "__GCSTATICS"), (THREAD_STATICS, "__THREADSTATICINDEX")];
/// Prefix of the type whose members are the static fields of another type. The prefix of the block with these fields follows; for thread statics,
/// it is [`THREAD_STATICS_TYPE`] instead.
const STATICS_TYPE: &str = "__type";
const THREAD_STATICS_TYPE: &str = "__THREADSTATICS";

/// Finds and reads the PDB of `module`, which is loaded as `image`. A PDB is used only if its GUID and age match the CodeView record.
pub(super) fn find(memory: &Memory, module: &Module, image: &Image, search: &FileSearch, os: Os, limits: &Limits) -> Debugging {
    let mut out = Debugging::default();
    let named = image.code_view(memory);
    // If the image's CodeView record is absent from memory, the module list of a minidump has the same identity.
    let wanted = named.as_ref().map(|n| n.id.as_slice()).or(module.build_id.as_deref());
    for file in search.pdb_candidates(Some(&module.path), named.as_ref().map(|n| n.name.as_str()), None, os) {
        match File::open(&file, wanted) {
            Ok(mut file) => {
                let sections = image.section_starts(memory).unwrap_or_default();
                out.symbols = file.symbols(&sections, image.bias(), limits.max_memory);
                out.types = file.types(out.symbols.as_ref(), limits.max_memory);
                out.refused.clear();
                break;
            }
            Err(_) if file.place().is_shared() => {}
            Err(why) => out.refused.push((file.path().into(), why)),
        }
    }
    out
}

#[cfg(feature = "internals")]
pub(super) fn read(bytes: Vec<u8>, sections: &[u64], bias: u64) -> Debugging {
    let len = bytes.len();
    let Ok(pdb) = PDB::open(Pages::of(Arc::new(Bytes::Owned(bytes)))) else { return Debugging::default() };
    let mut file = File { pdb, bytes: len64(len) };
    let symbols = file.symbols(sections, bias, None);
    let types = file.types(symbols.as_ref(), None);
    Debugging { symbols, types, refused: Vec::new() }
}

/// The pages of a file, for the `pdb2` crate.
#[derive(Debug)]
struct Pages {
    bytes: Arc<Bytes>,
    /// Number of bytes that may still be copied. A corrupt file may use the same page in many streams.
    left: usize,
}

impl Pages {
    fn of(bytes: Arc<Bytes>) -> Pages {
        // Most streams are read once. Those that describe other streams (header, directory, DBI) are read a few times.
        Pages { left: bytes.len().saturating_mul(4), bytes }
    }
}

#[derive(Debug)]
struct Stream(Vec<u8>);

impl SourceView<'_> for Stream {
    fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl<'s> Source<'s> for Pages {
    fn view(&mut self, slices: &[SourceSlice]) -> io::Result<Box<dyn SourceView<'s> + Send + Sync>> {
        let len = slices.iter().fold(0usize, |n, slice| n.saturating_add(slice.size));
        // The length is checked before anything is allocated.
        if len > self.bytes.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.left = self.left.checked_sub(len).ok_or(io::ErrorKind::QuotaExceeded)?;
        let mut stream = Vec::with_capacity(len);
        for slice in slices {
            let bytes = u64::try_from(slice.size).ok().and_then(|size| self.bytes.range(slice.offset, size));
            stream.extend_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        }
        Ok(Box::new(Stream(stream)))
    }
}

/// A PDB that belongs to the module.
struct File {
    pdb: PDB<'static, Pages>,
    bytes: u64,
}

impl File {
    /// Opens the PDB in `file`, whose GUID and age must be `wanted`.
    fn open(file: &ModuleFile, wanted: Option<&[u8]>) -> Result<File, Refusal> {
        let bytes = file.open()?;
        let (len, pages) = (bytes.len(), Pages::of(bytes));
        let unreadable = |_| "it is not a readable PDB for native code";
        let mut pdb = PDB::open(pages).map_err(unreadable)?;
        let (information, debug) = (pdb.pdb_information().map_err(unreadable)?, pdb.debug_information().map_err(unreadable)?);
        // The age in the DBI header is preferred, because tools that modify the PDB increment the age in the information stream.
        let age = debug.age().unwrap_or(information.age);
        let id = [&information.guid.to_bytes_le()[..], &age.to_le_bytes()].concat();
        let wanted = wanted.ok_or_else(Refusal::unidentified)?;
        if id != wanted {
            return Err(format!("its id is {}; the module's is {}", hex(&id), hex(wanted)).into());
        }
        Ok(File { pdb, bytes: len64(len) })
    }

    /// The symbols of an image. `sections` are the RVAs of the image's sections; `bias` is its load address.
    fn symbols(&mut self, sections: &[u64], bias: u64, max_memory: Option<u64>) -> Option<NativeSymbols> {
        let mut names = Names { text: Vec::new(), budget: Budget::of_types(self.bytes, max_memory) };
        let place = |at: PdbInternalSectionOffset| {
            let section = sections.get(usize::from(at.section).checked_sub(1)?)?;
            section.checked_add(at.offset.into())
        };
        let (mut objects, mut functions) = (Vec::new(), Vec::new());
        // Whether a part of the symbols cannot be read, or there are too many object files.
        let cut = Cell::new(false);
        let publics = self.pdb.global_symbols().inspect_err(|_| cut.set(true)).ok();
        let mut publics = publics.iter().flat_map(|table| table.iter().iterator().map_while(|symbol| known(symbol, &cut)));
        while let Some(symbol) = publics.next().filter(|_| names.budget.steps(1)) {
            if symbol.raw_kind() == PUBLIC
                && let Ok(SymbolData::Public(public)) = symbol.parse()
                && let Some(value) = place(public.offset)
            {
                objects.extend(names.add(&as_on_unix(&public.name.to_string())).map(|name| (value, name)));
            }
        }
        let debug = self.pdb.debug_information().ok()?;
        let mut modules = debug.modules().ok()?.iterator().map_while(|module| known(module, &cut));
        for module in modules.by_ref().take(MAX_OBJECT_FILES) {
            // Some object files have no symbols.
            let Some(info) = known(self.pdb.module_info(&module), &cut).flatten() else { continue };
            let Some(symbols) = known(info.symbols(), &cut) else { continue };
            for symbol in symbols.iterator().map_while(|symbol| known(symbol, &cut)) {
                if !names.budget.steps(1) {
                    break;
                }
                if PROCEDURES.contains(&symbol.raw_kind())
                    && let Ok(SymbolData::Procedure(procedure)) = symbol.parse()
                    && let Some(value) = place(procedure.offset)
                {
                    let name = names.add(&procedure.name.to_string());
                    functions.extend(name.map(|name| (value, procedure.len.into(), name)));
                }
            }
        }
        let cut = cut.get() || modules.next().is_some();
        NativeSymbols::of_pdb((names.text, names.budget, cut), bias, objects, functions)
    }

    /// The types, with their fields and the locations of their static fields. `None` if the PDB has no class.
    fn types(&mut self, symbols: Option<&NativeSymbols>, max_memory: Option<u64>) -> Option<DebugTypes> {
        let information = self.pdb.type_information().ok()?;
        let raw = self.pdb.raw_stream(TYPES).ok()??;
        let mut types = DebugTypes::empty(self.bytes, max_memory);
        let whole = Reader { types: &mut types, lists: Map::default() }.read(&information, &raw);
        let placed = whole.and_then(|()| place_statics(&mut types, symbols));
        types.whole = placed.is_some();
        (!types.classes.is_empty()).then_some(types)
    }
}

/// The value; `None`, and `cut` is set, if it cannot be read.
fn known<T>(value: pdb2::Result<T>, cut: &Cell<bool>) -> Option<T> {
    value.inspect_err(|_| cut.set(true)).ok()
}

/// Copied symbol names.
struct Names {
    text: Vec<u8>,
    budget: Budget,
}

impl Names {
    /// Copies `name` and returns its offset; `None` if the memory budget is exhausted.
    fn add(&mut self, name: &str) -> Option<u32> {
        let at = u32::try_from(self.text.len()).ok()?;
        self.budget.memory(len64(name.len()).saturating_add(BYTES_OF_AN_ITEM)).then_some(())?;
        self.text.extend_from_slice(name.as_bytes());
        self.text.push(0);
        Some(at)
    }
}

/// Converts the symbol of a method table or of static fields to its name on Unix. Other names are unchanged.
fn as_on_unix(name: &str) -> Cow<'_, str> {
    // Names of C++ classes in namespaces have several parts, separated by `@`.
    let one = |name: &&str| !name.contains('@');
    if let Some(ty) = name.strip_prefix("??_7").and_then(|n| n.strip_suffix("@@6B@")).filter(one) {
        return format!("{METHOD_TABLE}{}{ty}", ty.len()).into();
    }
    let of = name.strip_prefix('?').and_then(|n| n.strip_suffix("@@")).and_then(|n| n.split_once('@')).filter(|(_, ty)| one(ty));
    let kind = of.and_then(|(kind, ty)| Some((STATICS.iter().find(|(_, theirs)| *theirs == kind)?.0, ty)));
    kind.map_or(name.into(), |(ours, ty)| format!("{ours}{ty}").into())
}

/// One `LF_FIELDLIST` record: a field list, or a part of one.
#[derive(Default)]
struct List {
    base: Option<usize>,
    /// Name, offset and type index.
    members: Vec<(String, u64, usize)>,
    literals: Vec<(String, i64)>,
    /// Index of the record that continues the list.
    next: Option<usize>,
}

/// Reader of the types of a PDB.
struct Reader<'t> {
    types: &'t mut DebugTypes,
    /// Field lists by record index. Several classes may refer to the same list.
    lists: Map<usize, List>,
}

/// The records of a TPI stream, each with its kind but without its length. The second number of the stream is the size of its header.
fn raw_records(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let head = u32_at(stream, 4).and_then(|size| usize::try_from(size).ok());
    let mut rest = head.and_then(|size| stream.get(size..)).unwrap_or_default();
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first_chunk::<2>()?;
        let (record, next) = after.split_at_checked(u16::from_le_bytes(*len).into())?;
        rest = next;
        Some(record)
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn number(index: u32) -> Option<usize> {
    usize::try_from(index).ok()
}

impl Reader<'_> {
    /// Reads all records of the `raw` stream in order, because each record refers to earlier records. `None` if the budget is exhausted, or the
    /// table is corrupt.
    fn read(&mut self, information: &pdb2::TypeInformation<'_>, raw: &[u8]) -> Option<()> {
        let mut raw = raw_records(raw);
        for (own, element) in PRIMITIVES {
            self.types.add(own, Entry::Primitive(element))?;
        }
        for own in POINTERS {
            self.types.add(own, Entry::Pointer)?;
        }
        let mut records = information.iter();
        while let Some(record) = records.next().ok()? {
            self.types.budget.steps(1).then_some(())?;
            let (kind, bytes) = (record.raw_kind(), raw.next()?);
            let Some(own) = number(record.index().0) else { continue };
            if kind == POINTER {
                let (to, attributes) = (u32_at(bytes, 2)?, u32_at(bytes, 6)?);
                let to = usize::try_from(to).ok().filter(|_| attributes & POINTER_MODE == REFERENCE);
                self.types.add(own, to.map_or(Entry::Pointer, Entry::Reference))?;
            }
            // Managed types do not use the other records.
            match Record::read(bytes) {
                None => {}
                Some(Record::Fields(fields, next)) => {
                    let list = self.list(fields, next.and_then(number))?;
                    self.lists.insert(own, list);
                }
                Some(Record::Enum { name, fields, values }) => {
                    let name: Arc<str> = self.text(name)?.into();
                    if let Some(values) = number(values) {
                        self.types.add(own, Entry::Enum { name: Arc::clone(&name), values })?;
                    }
                    let mut literals = Vec::new();
                    for list in self.parts(number(fields)) {
                        // The memory is charged before the copy, because the list of a corrupt file may continue in itself.
                        self.afford(list.literals.iter().map(|(name, _)| name))?;
                        literals.extend_from_slice(&list.literals);
                    }
                    self.types.literals.insert(name, literals);
                }
                Some(Record::Class { name, fields, size, declared_only }) => {
                    let name: Arc<str> = self.text(name)?.into();
                    self.types.add(own, Entry::Class { name: Arc::clone(&name) })?;
                    if declared_only {
                        continue;
                    }
                    let mut out = Class { size, ..Class::default() };
                    for list in self.parts(fields.and_then(number)) {
                        self.afford(list.members.iter().map(|(name, ..)| name))?;
                        out.base = out.base.or(list.base);
                        let member = |(name, offset, entry): &(String, u64, usize)| Member {
                            name: name.clone(),
                            offset: Some(*offset),
                            entry: *entry,
                            own: 0,
                        };
                        out.members.extend(list.members.iter().map(member));
                    }
                    self.types.insert(name, out)?;
                }
            }
        }
        Some(())
    }

    /// The records of the field list that starts with record `first`.
    fn parts(&self, first: Option<usize>) -> impl Iterator<Item = &List> {
        let first = first.and_then(|at| self.lists.get(&at));
        std::iter::successors(first, |list| self.lists.get(&list.next?)).take(MAX_PARTS)
    }

    fn list(&self, fields: Vec<Field<'_>>, next: Option<usize>) -> Option<List> {
        let mut list = List { next, ..List::default() };
        for field in fields {
            match field {
                Field::Base(base) => list.base = list.base.or(number(base)),
                Field::Member { name, of, offset } => {
                    let name = self.text(name)?;
                    list.members.extend(number(of).map(|entry| (name, offset, entry)));
                }
                Field::Literal { name, value } => list.literals.push((self.text(name)?, value)),
            }
        }
        Some(list)
    }

    fn text(&self, name: &[u8]) -> Option<String> {
        self.types.budget.memory(len64(name.len()).saturating_add(BYTES_OF_AN_ITEM)).then_some(())?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// Charges the memory for copies of `names`; `None` if the memory budget is exhausted.
    fn afford<'n>(&self, names: impl Iterator<Item = &'n String>) -> Option<()> {
        let bytes = names.fold(0u64, |n, name| n.saturating_add(len64(name.len())).saturating_add(BYTES_OF_AN_ITEM));
        self.types.budget.memory(bytes).then_some(())
    }
}

/// Copies static fields from their separate types to the declaring types, one kind after the other. `None` if the memory budget is
/// exhausted.
fn place_statics(types: &mut DebugTypes, symbols: Option<&NativeSymbols>) -> Option<()> {
    let of_kind = |prefix| symbols.into_iter().flat_map(move |s| s.statics_with(prefix));
    let mut own = 0usize;
    for (ours, theirs) in STATICS {
        let in_type = if ours == THREAD_STATICS { THREAD_STATICS_TYPE } else { theirs };
        let places: Map<&str, Addr> = of_kind(ours).collect();
        let prefix = format!("{STATICS_TYPE}{in_type}");
        let holders: Vec<Arc<str>> = types.classes.keys().filter(|name| name.starts_with(&prefix)).cloned().collect();
        for holder in holders {
            let owner = holder.strip_prefix(&prefix)?;
            let members = types.classes.get(&holder)?.members.clone();
            // Fields without a location are skipped, because [`DebugTypes::statics_of`] would assign them a location of another kind.
            let placed = ours == THREAD_STATICS || places.contains_key(owner);
            let Some(class) = types.classes.get_mut(owner).filter(|_| placed) else { continue };
            for member in members {
                types.budget.memory(BYTES_OF_AN_ITEM.saturating_mul(2).saturating_add(len64(member.name.len()))).then_some(())?;
                own = own.checked_add(1)?;
                let at = places.get(owner).zip(member.offset).and_then(|(place, offset)| match ours {
                    OTHER_STATICS => Some(StaticAt::Address(place.plus(offset))),
                    GC_STATICS => Some(StaticAt::InBlock { slot: *place, offset }),
                    // The symbol of thread statics is the address of the type index, not of the fields.
                    _ => None,
                });
                class.members.push(Member { offset: None, own, ..member });
                at.map(|at| types.places.insert(own, at));
            }
        }
    }
    Some(())
}

#[cfg(test)]
#[path = "pdb_tests.rs"]
mod tests;
