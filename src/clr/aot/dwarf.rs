//! DWARF debug information of a NativeAOT module: fields of types, and locations of static fields.
//!
//! The compiler writes one compile unit for all managed code. The names of its classes are mangled like symbols. Offsets in value types are
//! relative to the unboxed value.

use std::sync::Arc;

use gimli::{
    AttributeValue, DebugAbbrev, DebugInfo, DebugStrOffsets, DebugStrOffsetsBase, DebuggingInformationEntry, EndianSlice, EntriesRaw,
    LittleEndian, Operation, Reader as _, SectionId, UnitHeader, UnitOffset, constants,
};

use super::elf_file::{Bounds, ElfFile, MAX_NAME, TooLong, text};
use super::types::{BYTES_OF_AN_ITEM, Class, DebugTypes, Entry, Member, StaticAt};
use crate::base::{Addr, CorElementType, len64};
use crate::memory::Image;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Start of the compiler's name in `DW_AT_producer`.
const PRODUCER: &[u8] = b"NetRuntime";
/// Cost of a byte of abbreviations, relative to a byte that is read once. The abbreviations of a unit are measured, parsed, and used to
/// decode its root.
const READS_OF_A_BYTE: u64 = 16;
/// Maximum size of a unit's abbreviation table, in bytes. Real tables have some hundred bytes; a parsed table takes eight times its size.
const MAX_ABBREVIATIONS: usize = 1 << 20;

/// Reads the debug information of a module's file. `None` if the debug information was read completely and does not describe managed code.
pub(super) fn read(file: &ElfFile, image: &Image, bounds: Bounds) -> Option<DebugTypes> {
    // Line programs and unit names are not read. In a forged file, many units may refer to the same line program, and each unit would parse it
    // again.
    let names = [SectionId::DebugInfo, SectionId::DebugAbbrev, SectionId::DebugStr, SectionId::DebugLineStr, SectionId::DebugStrOffsets];
    let sections = file.sections(names.map(|id| id.name()), bounds);
    let [info, abbreviations, strings, line_strings, offsets] = &sections.contents;
    let mut types = DebugTypes::empty(bounds.counted(sections.packed), bounds.max_memory);
    types.whole = sections.whole;
    let mut found = false;
    let mut units = DebugInfo::new(info, LittleEndian).units();
    while let Ok(Some(header)) = units.next() {
        let bytes = abbreviation_bytes(abbreviations, header.debug_abbrev_offset().0);
        if !types.budget.bytes(len64(bytes.unwrap_or(MAX_ABBREVIATIONS)).saturating_mul(READS_OF_A_BYTE)) {
            break;
        }
        if bytes.is_none() {
            types.whole = false;
            continue;
        }
        let Ok(table) = header.abbreviations(&DebugAbbrev::new(abbreviations, LittleEndian)) else { continue };
        let Ok(mut entries) = header.entries_raw(&table, None) else { continue };
        let mut root = DebuggingInformationEntry::null();
        if !entries.read_entry(&mut root).is_ok_and(|is_entry| is_entry) {
            continue;
        }
        let base = match root.attr_value(constants::DW_AT_str_offsets_base) {
            Some(AttributeValue::DebugStrOffsetsBase(base)) => base,
            _ => DebugStrOffsetsBase(0),
        };
        let offsets = DebugStrOffsets::from(EndianSlice::new(offsets, LittleEndian));
        let strings = Strings { strings, line_strings, offsets, base };
        if strings.is_managed(&header, &root) {
            found = true;
            types.whole &= Reader { types: &mut types, header, strings, bias: image.bias() }.unit(entries).is_some();
        }
    }
    (found || !types.is_whole()).then_some(types)
}

/// Size in bytes of the abbreviation table at `offset`, up to the first malformed entry. `None` if it exceeds [`MAX_ABBREVIATIONS`].
fn abbreviation_bytes(section: &[u8], offset: usize) -> Option<usize> {
    let rest = section.get(offset..).unwrap_or_default();
    let head = rest.get(..=MAX_ABBREVIATIONS).unwrap_or(rest);
    let mut rest = EndianSlice::new(head, LittleEndian);
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
    let ended = loop {
        match entry() {
            Ok(true) => {}
            Ok(false) => break true,
            Err(_) => break false,
        }
    };
    // A table that reaches the end of the section without a terminator is corrupt. Parsing it fails in `gimli`, and its unit is skipped.
    (ended || head.len() <= MAX_ABBREVIATIONS).then_some(head.len().saturating_sub(rest.len()))
}

/// The string sections to which attributes of a unit refer.
struct Strings<'d> {
    strings: &'d [u8],
    line_strings: &'d [u8],
    offsets: DebugStrOffsets<Slice<'d>>,
    base: DebugStrOffsetsBase<usize>,
}

impl<'d> Strings<'d> {
    /// The rest of the string section, from the start of the string to which `value` refers.
    fn place(&self, header: &UnitHeader<Slice<'d>>, value: AttributeValue<Slice<'d>>) -> Option<&'d [u8]> {
        match value {
            AttributeValue::DebugStrRef(at) => self.strings.get(at.0..),
            AttributeValue::DebugLineStrRef(at) => self.line_strings.get(at.0..),
            AttributeValue::DebugStrOffsetsIndex(index) => {
                self.strings.get(self.offsets.get_str_offset(header.format(), self.base, index).ok()?.0..)
            }
            _ => None,
        }
    }

    /// The string that `value` contains or refers to; `None` if `value` is not a string or the string is not terminated.
    fn text(&self, header: &UnitHeader<Slice<'d>>, value: AttributeValue<Slice<'d>>) -> Result<Option<&'d [u8]>, TooLong> {
        match value {
            AttributeValue::String(own) if own.len() > MAX_NAME => Err(TooLong),
            AttributeValue::String(own) => Ok(Some(own.slice())),
            other => text(self.place(header, other).unwrap_or_default(), 0),
        }
    }

    /// Whether the unit with this root was written by the NativeAOT compiler.
    fn is_managed(&self, header: &UnitHeader<Slice<'d>>, root: &DebuggingInformationEntry<Slice<'d>>) -> bool {
        // Only the start of the string is compared, because many units of a forged file may share one long string.
        let producer = root.attr_value(constants::DW_AT_producer).and_then(|value| match value {
            AttributeValue::String(own) => Some(own.slice()),
            other => self.place(header, other),
        });
        producer.is_some_and(|name| name.starts_with(PRODUCER))
    }
}

/// Element type of a DWARF base type.
fn element(name: &str, encoding: constants::DwAte, size: u64) -> Option<CorElementType> {
    Some(match (encoding, size) {
        _ if name == "nint" => CorElementType::I,
        _ if name == "nuint" => CorElementType::U,
        (constants::DW_ATE_boolean, 1) => CorElementType::Boolean,
        (constants::DW_ATE_UTF, 2) => CorElementType::Char,
        (constants::DW_ATE_signed, 1) => CorElementType::I1,
        (constants::DW_ATE_unsigned, 1) => CorElementType::U1,
        (constants::DW_ATE_signed, 2) => CorElementType::I2,
        (constants::DW_ATE_unsigned, 2) => CorElementType::U2,
        (constants::DW_ATE_signed, 4) => CorElementType::I4,
        (constants::DW_ATE_unsigned, 4) => CorElementType::U4,
        (constants::DW_ATE_signed, 8) => CorElementType::I8,
        (constants::DW_ATE_unsigned, 8) => CorElementType::U8,
        (constants::DW_ATE_float, 4) => CorElementType::R4,
        (constants::DW_ATE_float, 8) => CorElementType::R8,
        _ => return None,
    })
}

/// Reader of one compile unit.
struct Reader<'t, 'd> {
    types: &'t mut DebugTypes,
    header: UnitHeader<Slice<'d>>,
    strings: Strings<'d>,
    bias: u64,
}

/// The class or enumeration whose children are being read, with the depth of its entry.
enum Open {
    Class(isize, Arc<str>, Class),
    Enum(isize, Arc<str>, Vec<(String, i64)>),
}

impl<'d> Reader<'_, 'd> {
    /// Reads the entries below the root in order; `None` if a part is corrupt, or the budget is exhausted.
    fn unit(&mut self, mut entries: EntriesRaw<'_, Slice<'d>>) -> Option<()> {
        let mut entry = DebuggingInformationEntry::null();
        let mut open: Option<Open> = None;
        // The bytes after the root's last child are padding.
        while !entries.is_empty() && entries.next_depth() > 0 {
            let start = entries.next_offset().0;
            let is_entry = entries.read_entry(&mut entry).ok()?;
            // Attributes of some forms take no bytes, so the cost of an entry is its size in bytes or its number of attributes, whichever is greater.
            let bytes = entries.next_offset().0.saturating_sub(start);
            self.types.budget.steps(len64(entry.attrs().len().saturating_sub(bytes))).then_some(())?;
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
                self.types.budget.memory(BYTES_OF_AN_ITEM).then_some(())?;
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
                let name: Arc<str> = self.text(entry)?.into();
                self.add(own, Entry::Class { name: Arc::clone(&name) })?;
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
                    // Members without a type are skipped, because their values cannot be decoded.
                    class.members.extend(target(entry).map(|entry| Member { name, offset, entry, own }));
                }
            }
            constants::DW_TAG_enumeration_type if open.is_none() => {
                let name: Arc<str> = self.text(entry)?.into();
                if let Some(values) = target(entry) {
                    self.add(own, Entry::Enum { name: Arc::clone(&name), values })?;
                }
                *open = Some(Open::Enum(entry.depth(), name, Vec::new()));
            }
            constants::DW_TAG_enumerator => {
                if let Some(Open::Enum(_, _, literals)) = open {
                    let value = entry.attr_value(constants::DW_AT_const_value);
                    let value = value.and_then(|v| v.sdata_value().or_else(|| v.udata_value().map(u64::cast_signed)));
                    let name = self.text(entry)?;
                    self.types.budget.memory(BYTES_OF_AN_ITEM).then_some(())?;
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

    /// The name of an entry; empty if the entry has no name or the name is too long. `None` if the name is corrupt, or the memory budget is
    /// exhausted.
    fn text(&mut self, entry: &DebuggingInformationEntry<Slice<'d>>) -> Option<String> {
        let Some(value) = entry.attr_value(constants::DW_AT_name) else { return Some(String::new()) };
        let Ok(text) = self.strings.text(&self.header, value) else {
            self.types.whole = false;
            return Some(String::new());
        };
        let text = String::from_utf8_lossy(text?);
        self.types.budget.memory(len64(text.len())).then_some(())?;
        Some(text.into_owned())
    }

    /// Records the location of a static field from the `DW_TAG_variable` that defines the field.
    fn place(&mut self, entry: &DebuggingInformationEntry<Slice<'d>>) {
        let member = entry.attr_value(constants::DW_AT_specification).and_then(offset);
        let place = match entry.attr_value(constants::DW_AT_location) {
            Some(AttributeValue::Exprloc(expression)) => {
                let mut operations = expression.operations(self.header.encoding());
                let (mut base, mut offset, mut leads) = (None, 0u64, false);
                while let Ok(Some(operation)) = operations.next() {
                    match operation {
                        Operation::Address { address } => base = Some(Addr(address.wrapping_add(self.bias))),
                        // The number of dereferences depends on the .NET release. In all releases, the slot finally leads to the block.
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

/// Offset in the unit of the entry to which a value refers; `None` if the value refers to another unit.
fn offset(value: AttributeValue<Slice<'_>>) -> Option<usize> {
    match value {
        AttributeValue::UnitRef(UnitOffset(at)) => Some(at),
        _ => None,
    }
}

/// Offset in the unit of the entry that describes the type of `entry`.
fn target(entry: &DebuggingInformationEntry<Slice<'_>>) -> Option<usize> {
    entry.attr_value(constants::DW_AT_type).and_then(offset)
}
