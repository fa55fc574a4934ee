//! Debug information of a NativeAOT module: fields of types, and places of static fields.
//!
//! The compiler writes one compile unit for all managed code. Its classes have the mangled names that symbols have; structures have the
//! fields of their unboxed form.

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, EntriesRaw, LittleEndian, Operation, SectionId, Unit, UnitOffset,
    UnitRef, constants,
};

use super::elf_file::ElfFile;
use crate::base::hash::Map;
use crate::base::{Addr, Budget, len64};
use crate::memory::Image;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// What the compiler calls itself.
const PRODUCER: &str = "NetRuntime";
/// Most base types of a type.
const MAX_BASES: usize = 64;
/// Most instances of a generic type that are compared.
const MAX_INSTANCES: usize = 256;
/// Mangled name of the type of all references.
const OBJECT: &str = "Object";
/// Most fields of a type with its base types.
const MAX_FIELDS: usize = 1 << 16;
/// Memory that an item of debug information takes here, beside its name.
const BYTES_OF_AN_ITEM: u64 = 64;

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A primitive: its `CorElementType`.
    Primitive(u8),
    /// An enum, by mangled name, and the `CorElementType` of its values.
    Enum(String, u8),
    /// A structure, by mangled name: its fields are within.
    Structure(String),
    /// A reference to an object, by mangled name of its static type.
    Reference(String),
    /// A pointer that is no reference.
    Pointer,
}

/// A field of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugField {
    /// As in metadata: `_size`, `<Name>k__BackingField`.
    pub name: String,
    /// Offset in bytes: in objects from their method table, in structures from their start.
    pub offset: u64,
    /// What it holds.
    pub kind: FieldKind,
    /// Mangled name of the type that declares it.
    pub declared_by: String,
}

/// Where a static field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticAt {
    /// At this address.
    Address(Addr),
    /// At an offset in the block that the slot leads to.
    InBlock {
        /// Address of the slot.
        slot: Addr,
        /// Offset in bytes from the method table of the block.
        offset: u64,
    },
}

/// A static field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugStatic {
    /// As in metadata.
    pub name: String,
    /// What it holds.
    pub kind: FieldKind,
    /// Where it is; `None` for thread statics.
    pub at: Option<StaticAt>,
}

/// A type as an entry has it; others are referred to by the offset of theirs.
#[derive(Clone, Debug)]
enum Entry {
    Primitive(u8),
    Enum { name: String, values: usize },
    Class { name: String },
    Reference(usize),
    Pointer,
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    /// `None` for static fields.
    offset: Option<u64>,
    entry: usize,
    /// Where the entry of the member itself is.
    own: usize,
}

#[derive(Clone, Debug, Default)]
struct Class {
    base: Option<usize>,
    /// Bytes of an object without its header, or of a structure.
    size: u64,
    members: Vec<Member>,
}

/// Fields of types by mangled name.
#[derive(Debug)]
pub struct DebugTypes {
    entries: Map<usize, Entry>,
    classes: Map<String, Class>,
    /// Names of the instances of generic types by that of their definition.
    instances: Map<String, Vec<String>>,
    /// Names and values of enums.
    literals: Map<String, Vec<(String, i64)>>,
    /// Places of static fields by the offset of their member.
    places: Map<usize, StaticAt>,
    budget: Budget,
    whole: bool,
}

impl DebugTypes {
    /// Reads the debug information of a module's file. `None` if it has none of managed code.
    pub(super) fn read(file: &ElfFile, image: &Image, max_memory: Option<u64>) -> Option<DebugTypes> {
        let names = [
            SectionId::DebugInfo,
            SectionId::DebugAbbrev,
            SectionId::DebugStr,
            SectionId::DebugLineStr,
            SectionId::DebugStrOffsets,
            SectionId::DebugAddr,
            // A unit is refused without the line program that it names.
            SectionId::DebugLine,
        ];
        let sections: Vec<_> = names.iter().map(|id| (*id, file.section(id.name()).unwrap_or_default())).collect();
        let bytes = sections.iter().fold(0u64, |n, (_, s)| n.saturating_add(len64(s.len())));
        let load = |wanted: SectionId| {
            let found = sections.iter().find(|(id, _)| *id == wanted);
            Ok::<_, gimli::Error>(EndianSlice::new(found.map_or(&[], |(_, s)| s), LittleEndian))
        };
        let dwarf = Dwarf::load(load).ok()?;
        let mut types = DebugTypes {
            entries: Map::default(),
            classes: Map::default(),
            instances: Map::default(),
            literals: Map::default(),
            places: Map::default(),
            budget: Budget::of_types(bytes, max_memory),
            whole: true,
        };
        let mut found = false;
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Ok(unit) = dwarf.unit(header) else { continue };
            if is_managed(&dwarf, &unit) {
                found = true;
                types.whole &= Reader { types: &mut types, unit: unit.unit_ref(&dwarf), bias: image.bias() }.unit().is_some();
            }
        }
        found.then_some(types)
    }

    /// Whether all of it could be read, within the memory that it may take.
    pub fn is_whole(&self) -> bool {
        self.whole && !self.budget.met()
    }

    /// Number of types with fields known.
    #[cfg(feature = "internals")]
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// The instance fields of a type, those of its base types first. `None` if it is not described. Arrays and strings have fields for
    /// their length and first element.
    ///
    /// Of a generic type's instances over references, the compiler describes one; its fields hold for the others.
    pub fn fields_of(&self, mangled: &str) -> Option<Vec<DebugField>> {
        let mut fields = Vec::new();
        let mut name = mangled;
        for _ in 0..MAX_BASES {
            let (own, base) = self.own_fields(name)?;
            let room = MAX_FIELDS.checked_sub(own.len())?.checked_sub(fields.len())?;
            // Those of base types first.
            fields.splice(0..0, own);
            match base.and_then(|at| self.entries.get(&at)) {
                Some(Entry::Class { name: base }) if room > 0 => name = base,
                _ => return Some(fields),
            }
        }
        None
    }

    /// The instance fields that a type itself declares, and the entry of its base type.
    fn own_fields(&self, name: &str) -> Option<(Vec<DebugField>, Option<usize>)> {
        let fields = |class: &Class| {
            let kinds = class.members.iter().filter_map(|m| Some((m, m.offset?, self.kind(m.entry)?)));
            let field =
                |(m, offset, kind): (&Member, _, _)| DebugField { name: m.name.clone(), offset, kind, declared_by: name.to_string() };
            kinds.map(field).collect::<Vec<_>>()
        };
        let own = self.classes.get(name);
        let Some((definition, _)) = name.split_once('<').filter(|_| own.is_none_or(|c| c.members.is_empty())) else {
            return own.map(|class| (fields(class), class.base));
        };
        let same_size = |class: &&Class| !class.members.is_empty() && own.is_none_or(|o| o.size == class.size);
        let others = self.instances.get(definition).into_iter().flatten().filter_map(|i| self.classes.get(i)).filter(same_size);
        let mut others = others.take(MAX_INSTANCES).map(|class| (fields(class), class.base));
        let Some((mut agreed, base)) = others.next() else { return own.map(|class| (Vec::new(), class.base)) };
        for (fields, _) in others {
            if fields.len() != agreed.len() {
                return None;
            }
            for (known, other) in agreed.iter_mut().zip(fields) {
                match (&known.kind, &other.kind) {
                    (a, b) if a == b => {}
                    (FieldKind::Reference(_), FieldKind::Reference(_)) => known.kind = FieldKind::Reference(OBJECT.into()),
                    _ => return None,
                }
                if (&known.name, known.offset) != (&other.name, other.offset) {
                    return None;
                }
            }
        }
        Some((agreed, own.and_then(|class| class.base).or(base)))
    }

    /// The static fields of a type itself.
    ///
    /// The compiler lists them by kind, those without references first and thread statics last, but writes their places in the order
    /// of declaration. So each kind takes its own places in turn. Where a reference would lie outside of a block, no place is told.
    pub fn statics_of(&self, mangled: &str) -> Option<Vec<DebugStatic>> {
        let class = self.classes.get(mangled)?;
        let members = || class.members.iter().filter(|m| m.offset.is_none());
        let (others, blocks): (Vec<StaticAt>, Vec<StaticAt>) =
            members().filter_map(|m| self.places.get(&m.own).copied()).partition(|at| matches!(at, StaticAt::Address(_)));
        let plain = others.len();
        let mut places = others.into_iter().chain(blocks);
        let fields = members().filter_map(|m| {
            let at = places.next();
            Some(DebugStatic { name: m.name.clone(), kind: self.kind(m.entry)?, at })
        });
        let mut fields: Vec<DebugStatic> = fields.collect();
        let is_wrong = |(i, field): (usize, &DebugStatic)| match field.kind {
            FieldKind::Reference(_) => i < plain,
            FieldKind::Primitive(_) | FieldKind::Enum(..) => matches!(field.at, Some(StaticAt::InBlock { .. })),
            FieldKind::Structure(_) | FieldKind::Pointer => false,
        };
        if fields.len() != members().count() || fields.iter().enumerate().any(is_wrong) {
            fields.iter_mut().for_each(|field| field.at = None);
        }
        Some(fields)
    }

    /// Names and values of an enum.
    pub fn literals_of(&self, mangled: &str) -> Option<&[(String, i64)]> {
        self.literals.get(mangled).map(Vec::as_slice)
    }

    fn kind(&self, entry: usize) -> Option<FieldKind> {
        Some(match self.entries.get(&entry)? {
            Entry::Primitive(element) => FieldKind::Primitive(*element),
            Entry::Enum { name, values } => match self.entries.get(values)? {
                Entry::Primitive(element) => FieldKind::Enum(name.clone(), *element),
                _ => return None,
            },
            Entry::Class { name } => FieldKind::Structure(name.clone()),
            Entry::Reference(to) => match self.entries.get(to) {
                Some(Entry::Class { name }) => FieldKind::Reference(name.clone()),
                // A `ref` field leads into an object.
                _ => FieldKind::Pointer,
            },
            Entry::Pointer => FieldKind::Pointer,
        })
    }
}

fn is_managed(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>) -> bool {
    let mut entries = unit.entries();
    let Ok(Some(root)) = entries.next_dfs() else { return false };
    let producer = root.attr_value(constants::DW_AT_producer).and_then(|v| dwarf.attr_string(unit, v).ok());
    producer.is_some_and(|p| p.slice().starts_with(PRODUCER.as_bytes()))
}

/// `CorElementType` of a base type.
fn element(name: &str, encoding: constants::DwAte, size: u64) -> Option<u8> {
    Some(match (encoding, size) {
        _ if name == "nint" => 0x18,
        _ if name == "nuint" => 0x19,
        (constants::DW_ATE_boolean, 1) => 0x02,
        (constants::DW_ATE_UTF, 2) => 0x03,
        (constants::DW_ATE_signed, 1) => 0x04,
        (constants::DW_ATE_unsigned, 1) => 0x05,
        (constants::DW_ATE_signed, 2) => 0x06,
        (constants::DW_ATE_unsigned, 2) => 0x07,
        (constants::DW_ATE_signed, 4) => 0x08,
        (constants::DW_ATE_unsigned, 4) => 0x09,
        (constants::DW_ATE_signed, 8) => 0x0a,
        (constants::DW_ATE_unsigned, 8) => 0x0b,
        (constants::DW_ATE_float, 4) => 0x0c,
        (constants::DW_ATE_float, 8) => 0x0d,
        _ => return None,
    })
}

/// Reads one compile unit.
struct Reader<'t, 'd> {
    types: &'t mut DebugTypes,
    unit: UnitRef<'d, Slice<'d>>,
    bias: u64,
}

/// The type that members and enumerators belong to, with the depth of its entry.
enum Open {
    Class(isize, String, Class),
    Enum(isize, String, Vec<(String, i64)>),
}

impl<'d> Reader<'_, 'd> {
    /// Reads all entries in order; `None` if a part is corrupt, or too much.
    fn unit(&mut self) -> Option<()> {
        let unit = self.unit;
        let mut entries: EntriesRaw<'_, Slice<'d>> = unit.entries_raw(None).ok()?;
        let mut entry = DebuggingInformationEntry::null();
        let mut open: Option<Open> = None;
        while !entries.is_empty() {
            let is_entry = entries.read_entry(&mut entry).ok()?;
            let depth = entry.depth();
            let inside = open.as_ref().map(|o| match o {
                Open::Class(at, ..) | Open::Enum(at, ..) => *at,
            });
            if inside.is_some_and(|at| depth <= at) {
                self.close(open.take())?;
            }
            if is_entry {
                self.entry(&entry, &mut open)?;
            }
        }
        self.close(open)
    }

    fn close(&mut self, open: Option<Open>) -> Option<()> {
        match open {
            Some(Open::Class(_, name, class)) => {
                if let Some((definition, _)) = name.split_once('<') {
                    self.types.budget.memory(len64(name.len())).then_some(())?;
                    self.types.instances.entry(definition.to_string()).or_default().push(name.clone());
                }
                self.types.classes.insert(name, class);
            }
            Some(Open::Enum(_, name, literals)) => {
                self.types.literals.insert(name, literals);
            }
            None => {}
        }
        Some(())
    }

    fn entry(&mut self, entry: &DebuggingInformationEntry<Slice<'d>>, open: &mut Option<Open>) -> Option<()> {
        let own = entry.offset().0;
        match entry.tag() {
            constants::DW_TAG_class_type | constants::DW_TAG_structure_type if open.is_none() => {
                let name = self.text(entry)?;
                self.add(own, Entry::Class { name: name.clone() })?;
                if entry.attr(constants::DW_AT_declaration).is_none() {
                    let size = entry.attr_value(constants::DW_AT_byte_size).and_then(|v| v.udata_value()).unwrap_or(0);
                    *open = Some(Open::Class(entry.depth(), name, Class { size, ..Class::default() }));
                }
            }
            constants::DW_TAG_inheritance => {
                if let Some(Open::Class(_, _, class)) = open {
                    class.base = target(entry);
                }
            }
            constants::DW_TAG_member => {
                if let Some(Open::Class(_, _, class)) = open {
                    let name = self.text(entry)?;
                    let offset = entry.attr_value(constants::DW_AT_data_member_location).and_then(|v| v.udata_value());
                    self.types.budget.memory(BYTES_OF_AN_ITEM).then_some(())?;
                    // A member without a type says nothing.
                    class.members.extend(target(entry).map(|entry| Member { name, offset, entry, own }));
                }
            }
            constants::DW_TAG_enumeration_type if open.is_none() => {
                let name = self.text(entry)?;
                if let Some(values) = target(entry) {
                    self.add(own, Entry::Enum { name: name.clone(), values })?;
                }
                *open = Some(Open::Enum(entry.depth(), name, Vec::new()));
            }
            constants::DW_TAG_enumerator => {
                if let Some(Open::Enum(_, _, literals)) = open {
                    let value = entry.attr_value(constants::DW_AT_const_value);
                    let value = value.and_then(|v| v.sdata_value().or_else(|| v.udata_value().map(u64::cast_signed)));
                    let name = self.text(entry)?;
                    literals.extend(value.map(|value| (name, value)));
                }
            }
            constants::DW_TAG_base_type => {
                let (encoding, size) = (entry.attr_value(constants::DW_AT_encoding), entry.attr_value(constants::DW_AT_byte_size));
                if let (Some(AttributeValue::Encoding(encoding)), Some(size)) = (encoding, size.and_then(|s| s.udata_value()))
                    && let Some(element) = element(&self.text(entry)?, encoding, size)
                {
                    self.add(own, Entry::Primitive(element))?;
                }
            }
            constants::DW_TAG_reference_type => {
                if let Some(to) = target(entry) {
                    self.add(own, Entry::Reference(to))?;
                }
            }
            constants::DW_TAG_pointer_type => self.add(own, Entry::Pointer)?,
            constants::DW_TAG_variable if open.is_none() => self.place(entry),
            _ => {}
        }
        Some(())
    }

    fn add(&mut self, own: usize, entry: Entry) -> Option<()> {
        self.types.budget.memory(BYTES_OF_AN_ITEM).then_some(())?;
        self.types.entries.insert(own, entry);
        Some(())
    }

    fn text(&mut self, entry: &DebuggingInformationEntry<Slice<'d>>) -> Option<String> {
        let Some(name) = entry.attr_value(constants::DW_AT_name) else { return Some(String::new()) };
        let text = self.unit.attr_string(name).ok()?;
        self.types.budget.memory(len64(text.len())).then_some(())?;
        Some(String::from_utf8_lossy(text.slice()).into_owned())
    }

    /// Takes the place of a static field from the variable that defines it.
    fn place(&mut self, entry: &DebuggingInformationEntry<Slice<'d>>) {
        let member = entry.attr_value(constants::DW_AT_specification).and_then(offset);
        let place = match entry.attr_value(constants::DW_AT_location) {
            Some(AttributeValue::Exprloc(expression)) => {
                let mut operations = expression.operations(self.unit.encoding());
                let (mut base, mut offset, mut leads) = (None, 0u64, false);
                while let Ok(Some(operation)) = operations.next() {
                    match operation {
                        Operation::Address { address } => base = Some(Addr(address.wrapping_add(self.bias))),
                        // How often depends on the version; the block is the object that the slot leads to.
                        Operation::Deref { .. } => leads = true,
                        Operation::PlusConstant { value } => offset = offset.saturating_add(value),
                        _ => return,
                    }
                }
                base.map(|at| if leads { StaticAt::InBlock { slot: at, offset } } else { StaticAt::Address(at.plus(offset)) })
            }
            _ => None,
        };
        if let (Some(member), Some(place)) = (member, place)
            && self.types.budget.memory(BYTES_OF_AN_ITEM)
        {
            self.types.places.insert(member, place);
        }
    }
}

/// Offset of the entry that a value refers to, in the same unit.
fn offset(value: AttributeValue<Slice<'_>>) -> Option<usize> {
    match value {
        AttributeValue::UnitRef(UnitOffset(at)) => Some(at),
        _ => None,
    }
}

/// Offset of the entry of the type of `entry`.
fn target(entry: &DebuggingInformationEntry<Slice<'_>>) -> Option<usize> {
    entry.attr_value(constants::DW_AT_type).and_then(offset)
}
