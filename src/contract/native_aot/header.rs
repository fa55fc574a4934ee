//! `DotNetRuntimeDebugHeader`: a table of sizes and offsets, and a table of addresses, both with names.
//!
//! Source: `DebugHeader.cpp`; measured on .NET 8.0.31, 9.0.20 and 10.0.12. Both tables are in `.bss`, and the names are in `.rodata`.

use std::ops::RangeInclusive;

use crate::base::{Addr, Endian, PtrSize};
use crate::contract::overlay::{DebugHeaderOrder, Overlay};
use crate::memory::{Memory, ReadError};

/// The first four bytes of the header.
pub(super) const COOKIE: [u8; 4] = *b"DNDH";
/// Major versions of .NET 8, 9 and 10. The meaning of other versions is unknown.
const MAJORS: RangeInclusive<u16> = 3..=5;
/// Capacity of the table of types (`DebugTypeEntriesArraySize`).
pub(super) const MAX_ENTRIES: u64 = 128;
/// Capacity of the table of globals (`GlobalEntriesArraySize`).
pub(super) const MAX_GLOBALS: u64 = 8;
/// Maximum length of a name; the longest existing name has 25 characters.
const MAX_NAME: u64 = 64;
/// Header flags: 8-byte pointers, big endian.
const EIGHT_BYTES: u32 = 1;
const BIG_ENDIAN: u32 = 2;
/// Pseudo-field that holds the size of a type.
const SIZE: &str = "SIZEOF";

/// Reason why the debug header cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DebugHeaderError {
    /// A part of the header is not in the dump.
    #[error("its debug header cannot be read: {0}; heap and full dumps have it")]
    Read(#[from] ReadError),
    /// Something else is at the address.
    #[error("no debug header at {address}")]
    NoHeader {
        /// Address of the expected header.
        address: Addr,
    },
    /// The version is unknown.
    #[error("its debug header has version {major}.{minor}; versions {} to {} are read", MAJORS.start(), MAJORS.end())]
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// The header is for another pointer size or byte order.
    #[error("its debug header is for another kind of process (flags {flags:#x})")]
    Shape {
        /// Flags of the header.
        flags: u32,
    },
    /// The tables are empty, or longer than any runtime writes.
    #[error("its debug header is not filled in")]
    Empty,
    /// The names are in the program file, which was not found.
    #[error("the names in its debug header are not in the dump, and its tables are not those of a known release")]
    Nameless,
}

/// An entry of the table of types: a size or an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) type_name: String,
    /// Name of the field; `None` for the size of the type.
    pub(super) field: Option<String>,
    pub(super) value: u64,
}

/// The header of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugHeader {
    /// Address of the header; `None` if only its tables are in the dump.
    pub address: Option<Addr>,
    /// How the header was found.
    pub found_by: &'static str,
    /// Major version of the header. Without a header, the version of the release whose tables have the same entries; `None` if no release matches.
    pub(super) major: Option<u16>,
    pub(super) entries: Vec<Entry>,
    /// Name of each global, and the address of its value.
    pub(super) globals: Vec<(String, Addr)>,
}

/// Addresses of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) types: Addr,
    pub(super) globals: Addr,
}

impl DebugHeader {
    /// Reads the header at `address`. `releases` gives the order of the entries in known releases, in case the names are missing.
    ///
    /// # Errors
    /// [`DebugHeaderError`].
    pub(super) fn read(
        memory: &Memory,
        address: Addr,
        found_by: &'static str,
        releases: &[&Overlay],
    ) -> Result<DebugHeader, DebugHeaderError> {
        if memory.bytes(address, 4)?.as_ref() != COOKIE {
            return Err(DebugHeaderError::NoHeader { address });
        }
        // The version fields are little endian on every target.
        let little = |at: u64| memory.bytes(address.plus(at), 2).map(|b| b.iter().rev().fold(0u16, |n, b| n << 8 | u16::from(*b)));
        let (major, minor) = (little(4)?, little(6)?);
        if !MAJORS.contains(&major) {
            return Err(DebugHeaderError::Version { major, minor });
        }
        let flags = u32::from(little(8)?);
        let shape = memory.shape();
        if (flags & EIGHT_BYTES != 0) != (shape.ptr == PtrSize::Eight) || (flags & BIG_ENDIAN != 0) != (shape.endian == Endian::Big) {
            return Err(DebugHeaderError::Shape { flags });
        }
        let tables = Tables { types: memory.ptr(address.plus(16))?, globals: memory.ptr(address.plus(16 + memory.ptr_bytes()))? };
        DebugHeader::of_tables(memory, tables, Some((address, major)), found_by, releases)
    }

    pub(super) fn of_tables(
        memory: &Memory,
        tables: Tables,
        header: Option<(Addr, u16)>,
        found_by: &'static str,
        releases: &[&Overlay],
    ) -> Result<DebugHeader, DebugHeaderError> {
        let rows = Rows::read(memory, tables)?;
        let named = |at: Addr| memory.text(at, MAX_NAME);
        let names: Result<Vec<_>, _> = rows.types.iter().map(|(t, f, _)| Ok((named(*t)?, named(*f)?))).collect();
        let globals: Result<Vec<_>, ReadError> = rows.globals.iter().map(|(n, _)| named(*n)).collect();
        let (address, mut major) = header.unzip();
        let (names, globals) = match (names, globals) {
            (Ok(names), Ok(globals)) => {
                let is_same = |o: &DebugHeaderOrder| {
                    let mut both = o.entries.iter().zip(&names);
                    o.entries.len() == names.len() && both.all(|(e, (t, f))| e.split_once('.') == Some((t.as_str(), f.as_str())))
                };
                let mut known = releases.iter().filter_map(|o| o.section.debug_header.as_ref());
                major = major.or_else(|| known.find(|o| is_same(o)).map(|o| o.major));
                (names, globals)
            }
            (Err::<_, ReadError>(_), _) | (_, Err(_)) => {
                let order = rows.release(releases, major).ok_or(DebugHeaderError::Nameless)?;
                major = major.or(Some(order.major));
                let split = |e: &String| e.split_once('.').map(|(t, f)| (t.to_string(), f.to_string())).unwrap_or_default();
                (order.entries.iter().map(split).collect(), order.globals.clone())
            }
        };
        let entries = names.into_iter().zip(&rows.types).map(|((type_name, field), row)| {
            let field = Some(field).filter(|f| f != SIZE);
            Entry { type_name, field, value: row.2 }
        });
        let globals = globals.into_iter().zip(&rows.globals).map(|(name, row)| (name, row.1));
        Ok(DebugHeader { address, found_by, major, entries: entries.collect(), globals: globals.collect() })
    }

    /// Offset of a field in bytes.
    pub(super) fn offset(&self, type_name: &str, field: &str) -> Option<u64> {
        self.entries.iter().find(|e| e.type_name == type_name && e.field.as_deref() == Some(field)).map(|e| e.value)
    }

    /// Size of a type in bytes.
    pub(super) fn size(&self, type_name: &str) -> Option<u64> {
        self.entries.iter().find(|e| e.type_name == type_name && e.field.is_none()).map(|e| e.value)
    }

    /// Address of the value of a global.
    pub(super) fn variable(&self, name: &str) -> Option<Addr> {
        self.globals.iter().find(|g| g.0 == name).map(|g| g.1)
    }

    /// Value of a global; `None` if it is null, or if the header does not have it.
    pub(super) fn global(&self, memory: &Memory, name: &str) -> Result<Option<Addr>, ReadError> {
        let value = self.variable(name).map(|variable| memory.ptr(variable)).transpose()?;
        Ok(value.filter(|a| !a.is_null()))
    }
}

/// The rows of both tables, with the addresses of the names.
struct Rows {
    types: Vec<(Addr, Addr, u64)>,
    /// Address of the name, and address of the value.
    globals: Vec<(Addr, Addr)>,
}

impl Rows {
    fn read(memory: &Memory, tables: Tables) -> Result<Rows, DebugHeaderError> {
        let word = memory.ptr_bytes();
        let mut rows = Rows { types: Vec::new(), globals: Vec::new() };
        for i in 0..MAX_ENTRIES {
            let at = tables.types.plus(i * (2 * word + 8));
            let name = memory.ptr(at)?;
            if name.is_null() {
                break;
            }
            rows.types.push((name, memory.ptr(at.plus(word))?, u64::from(memory.u32(at.plus(2 * word))?)));
        }
        for i in 0..MAX_GLOBALS {
            let at = tables.globals.plus(i * 2 * word);
            let name = memory.ptr(at)?;
            if name.is_null() {
                break;
            }
            rows.globals.push((name, at.plus(word)));
        }
        let full = |n: usize, cap: u64| u64::try_from(n).is_ok_and(|n| n >= cap);
        let empty = rows.types.is_empty() || rows.globals.is_empty();
        if empty || full(rows.types.len(), MAX_ENTRIES) || full(rows.globals.len(), MAX_GLOBALS) {
            return Err(DebugHeaderError::Empty);
        }
        Ok(rows)
    }

    /// The entry order of the release that matches the tables. If `major` is known, only releases with this major version are considered. If the
    /// entries of several releases match, the release with the most equal values is used.
    fn release<'o>(&self, releases: &[&'o Overlay], major: Option<u16>) -> Option<&'o DebugHeaderOrder> {
        let of_version = |o: &&DebugHeaderOrder| major.is_none_or(|n| o.major == n);
        let can_be = |o: &&'o Overlay| Some((*o, o.section.debug_header.as_ref().filter(of_version)?)).filter(|(_, o)| self.in_order(o));
        // `max_by_key` returns the last maximum. The iteration is reversed, so that the first of several equal releases is used.
        releases.iter().rev().filter_map(can_be).max_by_key(|(overlay, order)| self.agreeing(overlay, order)).map(|(_, order)| order)
    }

    /// Number of rows, read in `order`, whose value is the same in `overlay`.
    fn agreeing(&self, overlay: &Overlay, order: &DebugHeaderOrder) -> usize {
        let known = |entry: &str| {
            let (type_name, field) = entry.split_once('.')?;
            let layout = &overlay.raw.types.iter().find(|t| t.0 == type_name)?.1;
            if field == SIZE { layout.size } else { layout.fields.iter().find(|f| f.0 == field).map(|f| f.1) }
        };
        order.entries.iter().zip(&self.types).filter(|(entry, row)| known(entry) == Some(row.2)).count()
    }

    /// Whether the tables may have this `order`: equal names must share an address, and offsets must be within the size of the type.
    fn in_order(&self, order: &DebugHeaderOrder) -> bool {
        if (self.types.len(), self.globals.len()) != (order.entries.len(), order.globals.len()) {
            return false;
        }
        let mut names = std::collections::BTreeMap::new();
        let mut size = 0;
        for (entry, (type_at, field_at, value)) in order.entries.iter().zip(&self.types) {
            let Some((type_name, field)) = entry.split_once('.') else { return false };
            // Linkers merge equal strings of an object file, so equal names have the same address.
            if *names.entry(type_name).or_insert(type_at) != type_at || *names.entry(field).or_insert(field_at) != field_at {
                return false;
            }
            match field {
                SIZE => size = *value,
                _ if type_name != "Globals" && *value > size => return false,
                _ => {}
            }
        }
        true
    }
}
