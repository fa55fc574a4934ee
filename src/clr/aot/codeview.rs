//! CodeView type records of a PDB: classes, enumerations, and field lists.
//!
//! The `pdb2` crate is used to find the records, but not to parse them. Its parser panics on `LF_VTSHAPE` in a field list and, in builds with
//! assertions, on numeric leaves of unknown form. It also allocates memory for any count in the file (`LF_ARGLIST`).
//!
//! Source: `cvinfo.h` of microsoft-pdb.

/// Kinds of type records (`LF_POINTER` and so on).
pub(super) const POINTER: u16 = 0x1002;
const FIELD_LIST: u16 = 0x1203;
const CLASS: u16 = 0x1504;
const STRUCTURE: u16 = 0x1505;
const ENUM: u16 = 0x1507;

/// Kinds of entries in a field list.
mod entry {
    pub(super) const BASE_CLASS: u16 = 0x1400;
    pub(super) const VIRTUAL_BASE_CLASS: u16 = 0x1401;
    pub(super) const INDIRECT_VIRTUAL_BASE_CLASS: u16 = 0x1402;
    pub(super) const INDEX: u16 = 0x1404;
    pub(super) const VIRTUAL_FUNCTION_TABLE: u16 = 0x1409;
    pub(super) const ENUMERATE: u16 = 0x1502;
    pub(super) const MEMBER: u16 = 0x150d;
    pub(super) const STATIC_MEMBER: u16 = 0x150e;
    pub(super) const METHOD: u16 = 0x150f;
    pub(super) const NESTED_TYPE: u16 = 0x1510;
    pub(super) const ONE_METHOD: u16 = 0x1511;
    pub(super) const NESTED_TYPE_WITH_ATTRIBUTES: u16 = 0x1512;
    pub(super) const BASE_INTERFACE: u16 = 0x151a;
}

/// Property flag of a class record that is only a forward declaration.
const FORWARD_REFERENCE: u16 = 1 << 7;
/// Mask of the method kind in attributes that were shifted right by two bits. An entry of an *introducing virtual* kind has a vtable
/// offset.
const METHOD_KIND: u16 = 7;
const INTRODUCING: [u16; 2] = [4, 6];
/// Lowest value of a padding byte (`LF_PAD0`). The low four bits are the number of bytes up to the next entry.
const PADDING: u8 = 0xf0;

/// A type record. Each `u32` is a type index.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record<'r> {
    /// A class or structure.
    Class { name: &'r [u8], fields: Option<u32>, size: u64, declared_only: bool },
    /// An enumeration.
    Enum { name: &'r [u8], fields: u32, values: u32 },
    /// A field list, and the record that continues it.
    Fields(Vec<Field<'r>>, Option<u32>),
}

/// An entry of a field list. Entries of other kinds are skipped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Field<'r> {
    Base(u32),
    Member { name: &'r [u8], of: u32, offset: u64 },
    Literal { name: &'r [u8], value: i64 },
}

impl<'r> Record<'r> {
    /// Parses the record in `bytes`, which begins with its kind. `None` if its kind is not supported, or the record is malformed.
    pub(super) fn read(bytes: &'r [u8]) -> Option<Record<'r>> {
        let mut rest = Rest(bytes);
        match rest.u16()? {
            CLASS | STRUCTURE => {
                let (_count, properties) = (rest.u16()?, rest.u16()?);
                let fields = Some(rest.u32()?).filter(|of| ![0, 0xffff].contains(of));
                let (_derived, _shape, size) = (rest.u32()?, rest.u32()?, rest.number()?);
                let declared_only = properties & FORWARD_REFERENCE != 0;
                Some(Record::Class { name: rest.name()?, fields, size: size.cast_unsigned(), declared_only })
            }
            ENUM => {
                let (_count, _properties, values, fields) = (rest.u16()?, rest.u16()?, rest.u32()?, rest.u32()?);
                Some(Record::Enum { name: rest.name()?, fields, values })
            }
            FIELD_LIST => rest.fields(),
            _ => None,
        }
    }
}

/// The part of a record that has not been read yet.
struct Rest<'r>(&'r [u8]);

impl<'r> Rest<'r> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    /// Reads a numeric leaf: a number of 15 bits, or a prefix that gives the form of the number after it. An unsigned 64-bit number is
    /// reinterpreted as signed.
    fn number(&mut self) -> Option<i64> {
        Some(match self.u16()? {
            small @ ..0x8000 => small.into(),
            0x8000 => self.take().map(i8::from_le_bytes)?.into(),
            0x8001 => self.take().map(i16::from_le_bytes)?.into(),
            0x8002 => self.u16()?.into(),
            0x8003 => self.take().map(i32::from_le_bytes)?.into(),
            0x8004 => self.u32()?.into(),
            0x8009 | 0x800a => self.take().map(i64::from_le_bytes)?,
            _ => return None,
        })
    }

    /// Reads text up to a NUL.
    fn name(&mut self) -> Option<&'r [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (name, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.get(1..)?;
        Some(name)
    }

    fn fields(mut self) -> Option<Record<'r>> {
        let (mut fields, mut next) = (Vec::new(), None);
        while !self.0.is_empty() {
            let (kind, attributes) = (self.u16()?, self.u16()?);
            match kind {
                entry::INDEX => next = Some(self.u32()?),
                entry::BASE_CLASS | entry::BASE_INTERFACE => {
                    fields.push(Field::Base(self.u32()?));
                    self.number()?;
                }
                entry::VIRTUAL_BASE_CLASS | entry::INDIRECT_VIRTUAL_BASE_CLASS => {
                    let _ = (self.u32()?, self.u32()?, self.number()?, self.number()?);
                }
                entry::VIRTUAL_FUNCTION_TABLE => drop(self.u32()?),
                entry::ENUMERATE => {
                    let value = self.number()?;
                    fields.push(Field::Literal { name: self.name()?, value });
                }
                entry::MEMBER => {
                    let (of, offset) = (self.u32()?, self.number()?);
                    fields.push(Field::Member { name: self.name()?, of, offset: offset.cast_unsigned() });
                }
                entry::STATIC_MEMBER | entry::METHOD | entry::NESTED_TYPE | entry::NESTED_TYPE_WITH_ATTRIBUTES => {
                    let _ = (self.u32()?, self.name()?);
                }
                entry::ONE_METHOD => {
                    self.u32()?;
                    if INTRODUCING.contains(&(attributes >> 2 & METHOD_KIND)) {
                        self.u32()?;
                    }
                    self.name()?;
                }
                _ => return None,
            }
            // The number of bytes in the first padding byte includes that byte.
            while let Some(byte) = self.0.first().filter(|byte| **byte >= PADDING) {
                self.0 = self.0.get(usize::from(byte & 0x0f).max(1)..)?;
            }
        }
        Some(Record::Fields(fields, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_lists_are_read_completely_or_not_at_all() {
        let member = [&entry::MEMBER.to_le_bytes()[..], &[3, 0], &0x74u32.to_le_bytes(), &[8, 0], b"count\0", &[0xf2, 0xf1]].concat();
        let literal = [&entry::ENUMERATE.to_le_bytes()[..], &[3, 0], &0x8000u16.to_le_bytes(), &[0xff], b"None\0"].concat();
        let virtual_method = [&entry::ONE_METHOD.to_le_bytes()[..], &[4 << 2, 0], &[0; 8], b"Go\0"].concat();
        let next = [&entry::INDEX.to_le_bytes()[..], &[0, 0], &0x1234u32.to_le_bytes()].concat();
        let list = |entries: &[&[u8]]| [&FIELD_LIST.to_le_bytes()[..], &entries.concat()].concat();
        let whole = list(&[&member, &virtual_method, &literal, &next]);
        let fields = vec![Field::Member { name: b"count", of: 0x74, offset: 8 }, Field::Literal { name: b"None", value: -1 }];
        assert_eq!(Record::read(&whole), Some(Record::Fields(fields, Some(0x1234))));
        // `pdb2` fails on these kinds: `LF_VTSHAPE` and `LF_ARGLIST`.
        for kind in [0x000au16, 0x1201] {
            let forged = [&kind.to_le_bytes()[..], &[0xff; 4]].concat();
            assert_eq!(Record::read(&list(&[&member, &forged])), None);
        }
        for cut in 3..whole.len() {
            let read = Record::read(&whole[..cut]);
            assert!(read.is_none_or(|record| matches!(record, Record::Fields(fields, None) if fields.len() < 3)), "{cut}");
        }
    }
}
