//! `DotNetRuntimeDebugHeader`: two tables of names, one with sizes and offsets, one with addresses.
//!
//! Source: `DebugHeader.cpp`; measured on .NET 9.0.20. Both tables lie in `.bss`, their names in `.rodata`.

use crate::base::{Addr, Endian, PtrSize};
use crate::contract::overlay::DebugHeaderOrder;
use crate::memory::{Memory, ReadError};

/// The first four bytes.
pub(super) const COOKIE: [u8; 4] = *b"DNDH";
/// Major version of .NET 8 to 10. Another one may mean anything.
const MAJOR: u16 = 4;
/// Capacity of the table of types (`DebugTypeEntriesArraySize`).
pub(super) const MAX_ENTRIES: u64 = 128;
/// Capacity of the table of globals (`GlobalEntriesArraySize`).
pub(super) const MAX_GLOBALS: u64 = 8;
/// Longest name read; the longest there is has 25 characters.
const MAX_NAME: u64 = 64;
/// In the flags: pointers of eight bytes, big endian.
const EIGHT_BYTES: u32 = 1;
const BIG_ENDIAN: u32 = 2;
/// Field name of the size of a type.
const SIZE: &str = "SIZEOF";

/// Why there is no header that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DebugHeaderError {
    /// A part of it is not in the dump.
    #[error("its debug header cannot be read: {0}; heap and full dumps have it")]
    Read(#[from] ReadError),
    /// There is something else.
    #[error("no debug header at {address}")]
    NoHeader {
        /// The address.
        address: Addr,
    },
    /// A version that is not known.
    #[error("its debug header has version {major}.{minor}; version {MAJOR} is read")]
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// For another pointer size or byte order.
    #[error("its debug header is for another kind of process (flags {flags:#x})")]
    Shape {
        /// Its flags.
        flags: u32,
    },
    /// The tables are empty, or longer than any runtime writes them.
    #[error("its debug header is not filled in")]
    Empty,
    /// The names are in the program file, which is not at hand.
    #[error(
        "the names in its debug header are not in the dump, and its tables are not those of a known release; specify the folder with the program with --modules"
    )]
    Nameless,
}

/// A size or an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) type_name: String,
    /// `None` for the size of the type.
    pub(super) field: Option<String>,
    pub(super) value: u64,
}

/// The header of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugHeader {
    /// Its address. `None` where only its tables are in the dump.
    pub address: Option<Addr>,
    /// How it was found.
    pub found_by: &'static str,
    pub(super) entries: Vec<Entry>,
    /// Name, and where its value is.
    pub(super) globals: Vec<(String, Addr)>,
}

/// Where the two tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) types: Addr,
    pub(super) globals: Addr,
}

impl DebugHeader {
    /// Reads the header at `address`. `orders`: the order of the entries in known releases, for where their names are missing.
    ///
    /// # Errors
    /// [`DebugHeaderError`].
    pub(super) fn read(
        memory: &Memory,
        address: Addr,
        found_by: &'static str,
        orders: &[&DebugHeaderOrder],
    ) -> Result<DebugHeader, DebugHeaderError> {
        if memory.bytes(address, 4)?.as_ref() != COOKIE {
            return Err(DebugHeaderError::NoHeader { address });
        }
        // These are little endian everywhere.
        let little = |at: u64| memory.bytes(address.plus(at), 2).map(|b| b.iter().rev().fold(0u16, |n, b| n << 8 | u16::from(*b)));
        let (major, minor) = (little(4)?, little(6)?);
        if major != MAJOR {
            return Err(DebugHeaderError::Version { major, minor });
        }
        let flags = u32::from(little(8)?);
        let shape = memory.shape();
        if (flags & EIGHT_BYTES != 0) != (shape.ptr == PtrSize::Eight) || (flags & BIG_ENDIAN != 0) != (shape.endian == Endian::Big) {
            return Err(DebugHeaderError::Shape { flags });
        }
        let tables = Tables { types: memory.ptr(address.plus(16))?, globals: memory.ptr(address.plus(16 + memory.ptr_bytes()))? };
        DebugHeader::of_tables(memory, tables, Some(address), found_by, orders)
    }

    pub(super) fn of_tables(
        memory: &Memory,
        tables: Tables,
        address: Option<Addr>,
        found_by: &'static str,
        orders: &[&DebugHeaderOrder],
    ) -> Result<DebugHeader, DebugHeaderError> {
        let rows = Rows::read(memory, tables)?;
        let named = |at: Addr| memory.text(at, MAX_NAME);
        let names: Result<Vec<_>, _> = rows.types.iter().map(|(t, f, _)| Ok((named(*t)?, named(*f)?))).collect();
        let globals: Result<Vec<_>, ReadError> = rows.globals.iter().map(|(n, _)| named(*n)).collect();
        let (names, globals) = match (names, globals) {
            (Ok(names), Ok(globals)) => (names, globals),
            (Err::<_, ReadError>(_), _) | (_, Err(_)) => {
                let order = orders.iter().find_map(|o| rows.in_order(o)).ok_or(DebugHeaderError::Nameless)?;
                let split = |e: &String| e.split_once('.').map(|(t, f)| (t.to_string(), f.to_string())).unwrap_or_default();
                (order.entries.iter().map(split).collect(), order.globals.clone())
            }
        };
        let entries = names.into_iter().zip(&rows.types).map(|((type_name, field), row)| {
            let field = Some(field).filter(|f| f != SIZE);
            Entry { type_name, field, value: row.2 }
        });
        let globals = globals.into_iter().zip(&rows.globals).map(|(name, row)| (name, row.1));
        Ok(DebugHeader { address, found_by, entries: entries.collect(), globals: globals.collect() })
    }

    /// The offset of a field.
    pub(super) fn offset(&self, type_name: &str, field: &str) -> Option<u64> {
        self.entries.iter().find(|e| e.type_name == type_name && e.field.as_deref() == Some(field)).map(|e| e.value)
    }

    /// The size of a type.
    pub(super) fn size(&self, type_name: &str) -> Option<u64> {
        self.entries.iter().find(|e| e.type_name == type_name && e.field.is_none()).map(|e| e.value)
    }

    /// Where the value of a global is.
    pub(super) fn variable(&self, name: &str) -> Option<Addr> {
        self.globals.iter().find(|g| g.0 == name).map(|g| g.1)
    }

    /// The value of a global.
    pub(super) fn global(&self, memory: &Memory, name: &str) -> Option<Addr> {
        memory.ptr(self.variable(name)?).ok().filter(|a| !a.is_null())
    }
}

/// The rows of both tables, names as addresses.
struct Rows {
    types: Vec<(Addr, Addr, u64)>,
    /// Name, and where the value is.
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

    /// `order`, if the tables can be in it: entries of one type share the address of its name, and sizes hold the offsets.
    fn in_order<'o>(&self, order: &'o DebugHeaderOrder) -> Option<&'o DebugHeaderOrder> {
        if (self.types.len(), self.globals.len()) != (order.entries.len(), order.globals.len()) {
            return None;
        }
        let mut names = std::collections::BTreeMap::new();
        let mut size = 0;
        for (entry, (type_at, field_at, value)) in order.entries.iter().zip(&self.types) {
            let (type_name, field) = entry.split_once('.')?;
            // Linkers fold equal strings of one file.
            if *names.entry(type_name).or_insert(type_at) != type_at || *names.entry(field).or_insert(field_at) != field_at {
                return None;
            }
            match field {
                SIZE => size = *value,
                _ if type_name != "Globals" && *value > size => return None,
                _ => {}
            }
        }
        Some(order)
    }
}
