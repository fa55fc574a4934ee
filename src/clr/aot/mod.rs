//! NativeAOT: what the compiler left in a module about its types, static fields and methods, and what its symbols and debug
//! information add.
//!
//! | module | provides |
//! | --- | --- |
//! | `blobs` | the tables for reflection, statics and stack traces, which are in every module |
//! | `symbols` | names by address: the symbol table of the module's file, or of the debug file beside it |
//! | `library` | fields of .NET's own types, for programs without debug information |
//! | `types` | fields of types, and places of static fields, as debug information has them |
//! | `dwarf` | that of ELF files |
//! | `pdb` | that of PDBs, and their symbols |
//! | `codeview` | records of types in PDBs |

pub mod blobs;
#[cfg(feature = "minidump")]
mod codeview;
mod dwarf;
mod elf_file;
pub mod library;
#[cfg(feature = "minidump")]
mod pdb;
mod program;
pub mod symbols;
pub mod types;
mod unwind;

use std::path::PathBuf;

use crate::contract::Descriptor;

use crate::base::{Limits, Os, Shape};
use crate::dump::Module;
use crate::memory::{FileSearch, Image, ImageFormat, Memory};

use elf_file::Bounds;

pub use blobs::{Blobs, Definition, GcStatics, Method, Owned, StaticKind};
pub use library::{LibraryField, fits, library_fields};
pub(crate) use program::Program;
pub use symbols::{NativeSymbols, TypeSymbol};
pub use types::{DebugField, DebugStatic, DebugTypes, FieldKind, StaticAt};

/// Flag of method tables whose objects hold references, in .NET 9 and later. Source: `MethodTable.h` of the runtime, `EETypeFlags`.
pub const HAS_POINTERS: u32 = 0x0100_0000;

/// That flag in this program: .NET 8 has another one, which the overlay gives.
pub(crate) fn has_pointers(descriptor: &Descriptor) -> u32 {
    descriptor.number("MethodTableHasPointersFlag").ok().and_then(|n| u32::try_from(n).ok()).unwrap_or(HAS_POINTERS)
}

/// What the files of a module add to its tables.
#[derive(Debug, Default)]
pub struct Debugging {
    /// Names by address.
    pub symbols: Option<NativeSymbols>,
    /// Fields by mangled name.
    pub types: Option<DebugTypes>,
    /// Files that were found but are not the module's, with the reason.
    pub refused: Vec<(PathBuf, String)>,
}

impl Debugging {
    /// Looks for the files of `module`, whose image in memory is `image`: itself, and the debug file that a stripped one has beside it,
    /// or its PDB. Only those with its build id, or the PDB that it names, are used.
    pub fn find(memory: &Memory, module: &Module, image: &Image, search: &FileSearch, os: Os, limits: &Limits) -> Debugging {
        match image.format {
            ImageFormat::Elf => {
                let bounds = Bounds { dump: memory.dump_bytes(), max_memory: limits.max_memory };
                Debugging::of_elf(module, image, search, (os, memory.shape()), bounds)
            }
            #[cfg(feature = "minidump")]
            ImageFormat::Pe => pdb::find(memory, module, image, search, os, limits),
            #[cfg(not(feature = "minidump"))]
            ImageFormat::Pe => Debugging::default(),
        }
    }

    fn of_elf(module: &Module, image: &Image, search: &FileSearch, (os, shape): (Os, Shape), bounds: Bounds) -> Debugging {
        let found = elf_file::find(module, image, search, os, shape);
        let mut out = Debugging { refused: found.refused, ..Debugging::default() };
        for file in found.files {
            // A file of which nothing could be read gives way to the next.
            if out.types.as_ref().is_none_or(|types| types.classes.is_empty()) {
                out.types = dwarf::read(&file, image, bounds).or(out.types);
            }
            if out.symbols.is_none() {
                out.symbols = NativeSymbols::read(file, image, bounds);
            }
        }
        out
    }

    /// What a PDB tells of an image whose sections start at these offsets and that was loaded at `bias`, whatever its identity.
    #[cfg(all(feature = "internals", feature = "minidump"))]
    pub fn of_pdb(pdb: Vec<u8>, sections: &[u64], bias: u64) -> Debugging {
        pdb::read(pdb, sections, bias)
    }

    /// The instance fields of the type at `method_table`, with offsets from the start of its objects.
    pub fn fields_of(&self, method_table: crate::base::Addr, pointer_bytes: u64) -> Option<Vec<DebugField>> {
        let symbol = self.symbols.as_ref()?.type_at(method_table)?;
        let mut fields = self.types.as_ref()?.fields_of(symbol.name)?;
        if symbol.boxed {
            fields.iter_mut().for_each(|f| f.offset = f.offset.saturating_add(pointer_bytes));
        }
        Some(fields)
    }
}
