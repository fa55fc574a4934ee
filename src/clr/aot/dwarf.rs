//! Debug information in DWARF of a NativeAOT module: fields of types, and places of static fields.
//!
//! The compiler writes one compile unit for all managed code. Its classes have the mangled names that symbols have; structures have the
//! fields of their unboxed form.

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, EntriesRaw, LittleEndian, Operation, Reader as _, SectionId, Unit,
    UnitOffset, UnitRef, constants,
};

use super::elf_file::ElfFile;
use super::types::{BYTES_OF_AN_ITEM, Class, DebugTypes, Entry, Member, StaticAt};
use crate::base::{Addr, len64};
use crate::memory::Image;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// What the compiler calls itself.
const PRODUCER: &str = "NetRuntime";
/// How much longer parsing a byte takes than reading one.
const READS_OF_A_BYTE: u64 = 4;

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
    let mut types = DebugTypes::empty(bytes, max_memory);
    let mut found = false;
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        // Units of a forged file share long tables, which are parsed for each.
        let abbreviations = abbreviation_bytes(load(SectionId::DebugAbbrev).ok()?, header.debug_abbrev_offset().0);
        if !types.budget.bytes(abbreviations.saturating_mul(READS_OF_A_BYTE)) {
            break;
        }
        let Ok(unit) = dwarf.unit(header) else { continue };
        let line_program = unit.line_program.as_ref().map_or(0, |program| len64(program.header().header_length()));
        if !types.budget.bytes(line_program.saturating_mul(READS_OF_A_BYTE)) {
            break;
        }
        if is_managed(&dwarf, &unit) {
            found = true;
            types.whole &= Reader { types: &mut types, unit: unit.unit_ref(&dwarf), bias: image.bias() }.unit().is_some();
        }
    }
    found.then_some(types)
}

/// Length of the table of abbreviations at `offset`, as far as it can be read.
fn abbreviation_bytes(section: Slice<'_>, offset: usize) -> u64 {
    let mut rest = section;
    if rest.skip(offset).is_err() {
        return 0;
    }
    let before = rest.len();
    let mut entry = || -> gimli::Result<bool> {
        if rest.read_uleb128()? == 0 {
            return Ok(false);
        }
        rest.read_uleb128()?;
        rest.read_u8()?;
        loop {
            let (name, form) = (rest.read_uleb128()?, rest.read_uleb128()?);
            if form == u64::from(constants::DW_FORM_implicit_const.0) {
                rest.read_sleb128()?;
            }
            if (name, form) == (0, 0) {
                return Ok(true);
            }
        }
    };
    while entry().unwrap_or(false) {}
    len64(before.saturating_sub(rest.len()))
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
                self.types.insert(name, class)?;
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
        self.types.add(own, entry)
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
