//! Symbols of a NativeAOT module: names of method tables, of static fields and of functions, by address.
//!
//! Mangling loses information: `.`, `+` and other characters all become `_`. So symbols name a type only if the module's own tables do not.
//! They also give the mangled name under which debug information describes a type. Source: `NativeAotNameMangler.cs`, `UnixNodeMangler.cs`.

use std::sync::atomic::{AtomicBool, Ordering};

use goblin::elf::section_header::SectionHeader;

use super::blobs::StaticKind;
use super::elf_file::{Bounds, ElfFile, TooLong, text};
use super::types::BYTES_OF_AN_ITEM;
use crate::base::{Addr, Budget, PtrSize, len64};
use crate::memory::Image;

/// Prefix of method tables, followed by the length of the name and the name.
pub(super) const METHOD_TABLE: &str = "_ZTV";
/// Prefix of the name of a structure, in the symbol of the method table for its boxed form.
const BOXED: &str = "Boxed_";
/// Prefix of the method tables of blocks of static fields.
#[cfg(feature = "internals")]
const GC_STATIC_TYPE: &str = "__GCStaticEEType_";
pub(super) const GC_STATICS: &str = "__GCSTATICS";
pub(super) const OTHER_STATICS: &str = "__NONGCSTATICS";
pub(super) const THREAD_STATICS: &str = "__TypeThreadStaticIndex";
/// Suffix that distinguishes the symbol of a block's initial contents from the symbol of its slot.
const CONTENTS: &str = "__PreInitData";
const FUNCTION: u8 = 2;
/// Memory in bytes for a symbol without its name.
const BYTES_OF_A_SYMBOL: u64 = 24;
/// Maximum number of symbols that are read. The limit is needed because the symbol table of a sparse file may be arbitrarily large.
const MAX_SYMBOLS: usize = 1 << 24;

/// The type that a symbol of a method table names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSymbol<'a> {
    /// Mangled name: `lab_Lab_Program_Entry`, `S_P_CoreLib_System_Collections_Generic_List_1<String>`.
    pub name: &'a str,
    /// Whether the method table is for the boxed form of a structure.
    pub boxed: bool,
}

/// Storage of the names, which symbols refer to by offset. Each name ends with a NUL.
#[derive(Debug)]
enum Names {
    /// The string table of an ELF file.
    Elf(ElfFile, SectionHeader),
    /// A copy of the names of a PDB.
    #[cfg(feature = "minidump")]
    Copied(Vec<u8>),
}

/// Symbols by address.
#[derive(Debug)]
pub struct NativeSymbols {
    names: Names,
    /// Load address minus address in the file.
    bias: u64,
    /// Objects, sorted: value (address in the file), and offset of the name.
    objects: Vec<(u64, u32)>,
    /// Functions, sorted: value (address in the file), size in bytes, and offset of the name.
    functions: Vec<(u64, u64, u32)>,
    /// Budget for reading names of objects. In a forged file, many symbols may have one address, and their names may overlap.
    budget: Budget,
    /// Whether a symbol was omitted because there are too many symbols or its name is too long.
    cut: AtomicBool,
}

impl NativeSymbols {
    /// Reads the symbol table of a module's file. `None` if the file has no symbol table.
    pub(super) fn read(file: ElfFile, image: &Image, bounds: Bounds) -> Option<NativeSymbols> {
        let (table, strings) = file.linked(".symtab")?;
        let strings = strings.clone();
        let budget = Budget::of_types(bounds.counted(file.len()), bounds.max_memory);
        let (mut objects, mut functions) = (Vec::new(), Vec::new());
        let shape = file.shape();
        // Size of an entry; offsets of `st_value`, `st_size`, `st_info` and `st_shndx`; size of an address. The order of fields depends on
        // the ELF class.
        let (entry, value, size, info, section, word) = match shape.ptr {
            PtrSize::Four => (16, 4, 8, 12, 14, 4),
            PtrSize::Eight => (24, 8, 16, 4, 6, 8),
        };
        let all = table.chunks_exact(entry);
        let cut = all.len() > MAX_SYMBOLS;
        for symbol in all.take(MAX_SYMBOLS) {
            let number = |at: usize, len: usize| symbol.get(at..).and_then(|s| s.get(..len)).map_or(0, |s| shape.number(s));
            let Ok(name) = u32::try_from(number(0, 4)) else { continue };
            if number(section, 2) == 0 || name == 0 {
                continue;
            }
            if !budget.memory(BYTES_OF_A_SYMBOL) {
                break;
            }
            if symbol.get(info).is_some_and(|kind| kind & 0xf == FUNCTION) {
                functions.push((number(value, word), number(size, word), name));
            } else {
                objects.push((number(value, word), name));
            }
        }
        NativeSymbols::sorted((Names::Elf(file, strings), budget, cut), image.bias(), objects, functions)
    }

    /// Builds the symbols of a PDB. `names` contains the names as on Unix, already charged to `budget`. An object has a value and the
    /// offset of its name; a function has a value, a size, and the offset of its name.
    #[cfg(feature = "minidump")]
    pub(super) fn of_pdb(
        (names, budget): (Vec<u8>, Budget),
        bias: u64,
        objects: Vec<(u64, u32)>,
        functions: Vec<(u64, u64, u32)>,
    ) -> Option<NativeSymbols> {
        NativeSymbols::sorted((Names::Copied(names), budget, false), bias, objects, functions)
    }

    fn sorted(
        (names, budget, cut): (Names, Budget, bool),
        bias: u64,
        mut objects: Vec<(u64, u32)>,
        mut functions: Vec<(u64, u64, u32)>,
    ) -> Option<NativeSymbols> {
        objects.sort_unstable();
        functions.sort_unstable();
        let any = !objects.is_empty() || !functions.is_empty();
        any.then_some(NativeSymbols { names, bias, objects, functions, budget, cut: cut.into() })
    }

    fn bytes_of(&self, name: u32) -> Option<&[u8]> {
        let table = match &self.names {
            Names::Elf(file, strings) => file.contents(strings)?,
            #[cfg(feature = "minidump")]
            Names::Copied(names) => names,
        };
        text(table, usize::try_from(name).ok()?).unwrap_or_else(|TooLong| {
            self.cut.store(true, Ordering::Relaxed);
            None
        })
    }

    /// The name of an object at `offset` of the names; `None` if the name is not valid, or once the budget is exhausted.
    fn name(&self, offset: u32) -> Option<&str> {
        self.budget.steps(1).then_some(())?;
        let name = self.bytes_of(offset)?;
        self.budget.bytes(len64(name.len())).then_some(())?;
        std::str::from_utf8(name).ok()
    }

    /// Charges the memory for a copy of `name`. Returns whether the budget covers it.
    pub(super) fn afford(&self, name: &str) -> bool {
        self.budget.memory(len64(name.len()).saturating_add(BYTES_OF_AN_ITEM))
    }

    /// Whether no symbol was omitted so far because of a limit.
    pub(super) fn is_whole(&self) -> bool {
        !self.cut.load(Ordering::Relaxed) && !self.budget.met()
    }

    /// Names of the objects at `address`.
    fn objects(&self, address: Addr) -> impl Iterator<Item = &str> {
        let value = address.0.wrapping_sub(self.bias);
        let first = self.objects.partition_point(|o| o.0 < value);
        self.objects.iter().skip(first).take_while(move |o| o.0 == value).filter_map(|o| self.name(o.1))
    }

    /// The type whose method table is at `method_table`.
    pub fn type_at(&self, method_table: Addr) -> Option<TypeSymbol<'_>> {
        self.objects(method_table).find_map(type_symbol)
    }

    /// All types that symbols name, with their method tables, in address order.
    pub fn types(&self) -> impl Iterator<Item = (TypeSymbol<'_>, Addr)> {
        self.objects.iter().filter_map(|(value, name)| Some((type_symbol(self.name(*name)?)?, Addr(value.wrapping_add(self.bias)))))
    }

    /// Whether `method_table` is the method table of a block of static fields.
    #[cfg(feature = "internals")]
    pub fn is_static_block(&self, method_table: Addr) -> bool {
        self.objects(method_table).any(|name| name.starts_with(GC_STATIC_TYPE))
    }

    /// The mangled name of the type that declares the static fields of this kind at `place`. `place` is the slot for references, the block
    /// for other fields, and the cell with the type index for thread statics. Empty blocks may share a location; then the first name is
    /// returned.
    pub fn statics_at(&self, place: Addr, kind: StaticKind) -> Option<&str> {
        let prefix = match kind {
            StaticKind::Gc => GC_STATICS,
            StaticKind::Other => OTHER_STATICS,
            StaticKind::Thread => THREAD_STATICS,
        };
        self.objects(place).find_map(|name| name.strip_prefix(prefix)).filter(|name| !name.ends_with(CONTENTS))
    }

    /// The locations of static fields whose symbols begin with `prefix`, with the mangled names of their types.
    #[cfg(feature = "minidump")]
    pub(super) fn statics_with(&self, prefix: &'static str) -> impl Iterator<Item = (&str, Addr)> {
        let place = move |(value, name): &(u64, u32)| Some((self.name(*name)?.strip_prefix(prefix)?, Addr(value.wrapping_add(self.bias))));
        self.objects.iter().filter_map(place)
    }

    /// Name and start of the function that contains `code`. The name of a method consists of the mangled name of its type, `__`, and its
    /// own name.
    pub fn function_at(&self, code: Addr) -> Option<(&str, Addr)> {
        let value = code.0.wrapping_sub(self.bias);
        let last = self.functions.partition_point(|f| f.0 <= value).checked_sub(1)?;
        let start = self.functions.get(last)?.0;
        let first = self.functions.partition_point(|f| f.0 < start);
        // Several functions may start at one address. They are sorted by size, and the smallest one that contains `code` is used.
        let same = self.functions.get(first..=last)?;
        let found = same.get(same.partition_point(|(_, size, _)| *size <= value.wrapping_sub(start)))?;
        let name = std::str::from_utf8(self.bytes_of(found.2)?).ok()?;
        Some((name, Addr(start.wrapping_add(self.bias))))
    }
}

/// Parses the symbol of a method table: the prefix, the length of the name, and the name.
fn type_symbol(symbol: &str) -> Option<TypeSymbol<'_>> {
    let rest = symbol.strip_prefix(METHOD_TABLE)?;
    let name = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    // C++ vtables have the same prefix. For classes in namespaces, the rest is not one length and one name, so this check rejects them.
    let len: usize = rest.strip_suffix(name)?.parse().ok()?;
    (len == name.len()).then_some(())?;
    let unboxed = name.strip_prefix(BOXED);
    Some(TypeSymbol { name: unboxed.unwrap_or(name), boxed: unboxed.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_tables_are_recognized_by_their_symbols() {
        let symbol = |name, boxed| Some(TypeSymbol { name, boxed });
        assert_eq!(type_symbol("_ZTV12lab_Lab_Node"), symbol("lab_Lab_Node", false));
        assert_eq!(type_symbol("_ZTV17Boxed_System_Guid"), symbol("System_Guid", true));
        for other in ["_ZTV11lab_Lab_Node", "_ZTVN3WKS6GCHeapE", "_ZTV", "ZTV1a", "_ZTV99999999999999999999a"] {
            assert_eq!(type_symbol(other), None, "{other}");
        }
    }
}
