//! Symbols of a NativeAOT module: names of method tables, of static fields and of functions, by address.
//!
//! The compiler mangles names with a loss: `.`, `+` and other characters all become `_`. So they are used where the module's own tables
//! say nothing, and to look types up in debug information, which mangles them the same. Source: `NativeAotNameMangler.cs`,
//! `UnixNodeMangler.cs`.

use super::blobs::StaticKind;
use super::elf_file::{ElfFile, text};
use crate::base::{Addr, PtrSize};
use crate::memory::Image;

/// Method tables: this, the length of the name, the name.
pub(super) const METHOD_TABLE: &str = "_ZTV";
/// In front of the name of a structure, for the method table of its boxed form.
const BOXED: &str = "Boxed_";
/// Method tables of blocks of static fields.
#[cfg(feature = "internals")]
const GC_STATIC_TYPE: &str = "__GCStaticEEType_";
pub(super) const GC_STATICS: &str = "__GCSTATICS";
pub(super) const OTHER_STATICS: &str = "__NONGCSTATICS";
pub(super) const THREAD_STATICS: &str = "__TypeThreadStaticIndex";
/// Behind the name of the slot, for the initial contents of its block.
const CONTENTS: &str = "__PreInitData";
const FUNCTION: u8 = 2;

/// What a symbol says of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSymbol<'a> {
    /// Its mangled name: `lab_Lab_Program_Entry`, `S_P_CoreLib_System_Collections_Generic_List_1<String>`.
    pub name: &'a str,
    /// Whether the method table is that of a boxed structure.
    pub boxed: bool,
}

/// Where names are that symbols tell by their offset, each ended by a NUL.
#[derive(Debug)]
enum Names {
    /// In the string table of an ELF file.
    Elf(ElfFile),
    /// In a copy of those of a PDB.
    #[cfg(feature = "minidump")]
    Copied(Vec<u8>),
}

/// Symbols by address.
#[derive(Debug)]
pub struct NativeSymbols {
    names: Names,
    /// Load address minus address in the file.
    bias: u64,
    /// Objects by address: value, and offset of the name.
    objects: Vec<(u64, u32)>,
    /// Functions by address: value, size, and offset of the name.
    functions: Vec<(u64, u64, u32)>,
}

impl NativeSymbols {
    /// Reads the symbol table of a module's file. `None` if it has none.
    pub(super) fn read(file: ElfFile, image: &Image) -> Option<NativeSymbols> {
        let (table, _) = file.linked(".symtab")?;
        let (mut objects, mut functions) = (Vec::new(), Vec::new());
        let shape = file.shape();
        // Name, value, size, kind, visibility, section; in another order on 64 bits.
        let (entry, value, size, info, section, word) = match shape.ptr {
            PtrSize::Four => (16, 4, 8, 12, 14, 4),
            PtrSize::Eight => (24, 8, 16, 4, 6, 8),
        };
        for symbol in table.chunks_exact(entry) {
            let number = |at: usize, len: usize| symbol.get(at..).and_then(|s| s.get(..len)).map_or(0, |s| shape.number(s));
            let Ok(name) = u32::try_from(number(0, 4)) else { continue };
            if number(section, 2) == 0 || name == 0 {
                continue;
            }
            if symbol.get(info).is_some_and(|kind| kind & 0xf == FUNCTION) {
                functions.push((number(value, word), number(size, word), name));
            } else {
                objects.push((number(value, word), name));
            }
        }
        NativeSymbols::sorted(Names::Elf(file), image.bias(), objects, functions)
    }

    /// The symbols of a PDB, named as on Unix: value and offset of the name of objects; value, size and offset of the name of functions.
    #[cfg(feature = "minidump")]
    pub(super) fn of_pdb(names: Vec<u8>, bias: u64, objects: Vec<(u64, u32)>, functions: Vec<(u64, u64, u32)>) -> Option<NativeSymbols> {
        NativeSymbols::sorted(Names::Copied(names), bias, objects, functions)
    }

    fn sorted(names: Names, bias: u64, mut objects: Vec<(u64, u32)>, mut functions: Vec<(u64, u64, u32)>) -> Option<NativeSymbols> {
        objects.sort_unstable();
        functions.sort_unstable();
        (!objects.is_empty() || !functions.is_empty()).then_some(NativeSymbols { names, bias, objects, functions })
    }

    fn name(&self, offset: u32) -> Option<&str> {
        let table = match &self.names {
            Names::Elf(file) => file.linked(".symtab")?.1,
            #[cfg(feature = "minidump")]
            Names::Copied(names) => names,
        };
        text(table, usize::try_from(offset).ok()?)
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

    /// All types with their method tables, in the order of these.
    pub fn types(&self) -> impl Iterator<Item = (TypeSymbol<'_>, Addr)> {
        self.objects.iter().filter_map(|(value, name)| Some((type_symbol(self.name(*name)?)?, Addr(value.wrapping_add(self.bias)))))
    }

    /// Whether the method table at `method_table` is that of a block of static fields.
    #[cfg(feature = "internals")]
    pub fn is_static_block(&self, method_table: Addr) -> bool {
        self.objects(method_table).any(|name| name.starts_with(GC_STATIC_TYPE))
    }

    /// The mangled name of the type whose static fields of this kind are at `place`: the slot of references, the block of others, the
    /// cell with the number of a type with thread statics. Blocks without fields share a place, and the first name is told.
    pub fn statics_at(&self, place: Addr, kind: StaticKind) -> Option<&str> {
        let prefix = match kind {
            StaticKind::Gc => GC_STATICS,
            StaticKind::Other => OTHER_STATICS,
            StaticKind::Thread => THREAD_STATICS,
        };
        self.objects(place).find_map(|name| name.strip_prefix(prefix)).filter(|name| !name.ends_with(CONTENTS))
    }

    /// The places of static fields whose symbols begin with `prefix`, with the mangled names of their types.
    #[cfg(feature = "minidump")]
    pub(super) fn statics_with(&self, prefix: &'static str) -> impl Iterator<Item = (&str, Addr)> {
        let place = move |(value, name): &(u64, u32)| Some((self.name(*name)?.strip_prefix(prefix)?, Addr(value.wrapping_add(self.bias))));
        self.objects.iter().filter_map(place)
    }

    /// Name and start of the function that `code` lies in. Names of methods are mangled: their type's, `__`, their own.
    pub fn function_at(&self, code: Addr) -> Option<(&str, Addr)> {
        let value = code.0.wrapping_sub(self.bias);
        let last = self.functions.partition_point(|f| f.0 <= value).checked_sub(1)?;
        let start = self.functions.get(last)?.0;
        let first = self.functions.partition_point(|f| f.0 < start);
        let found = self.functions.get(first..=last)?.iter().find(|(_, size, _)| value.wrapping_sub(start) < *size)?;
        Some((self.name(found.2)?, Addr(start.wrapping_add(self.bias))))
    }
}

/// What a symbol of a method table says.
fn type_symbol(symbol: &str) -> Option<TypeSymbol<'_>> {
    let rest = symbol.strip_prefix(METHOD_TABLE)?;
    let name = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    // C++ has symbols of that form as well, with names in parts.
    let len: usize = rest.strip_suffix(name)?.parse().ok()?;
    (len == name.len()).then_some(())?;
    let unboxed = name.strip_prefix(BOXED);
    Some(TypeSymbol { name: unboxed.unwrap_or(name), boxed: unboxed.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_tables_are_told_from_their_symbols() {
        let symbol = |name, boxed| Some(TypeSymbol { name, boxed });
        assert_eq!(type_symbol("_ZTV12lab_Lab_Node"), symbol("lab_Lab_Node", false));
        assert_eq!(type_symbol("_ZTV17Boxed_System_Guid"), symbol("System_Guid", true));
        for other in ["_ZTV11lab_Lab_Node", "_ZTVN3WKS6GCHeapE", "_ZTV", "ZTV1a", "_ZTV99999999999999999999a"] {
            assert_eq!(type_symbol(other), None, "{other}");
        }
    }
}
