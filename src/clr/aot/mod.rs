//! NativeAOT modules: compiler-generated tables of types, static fields and methods; symbols and debug information.
//!
//! | module | provides |
//! | --- | --- |
//! | `blobs` | the tables for reflection, statics and stack traces, which every module has |
//! | `symbols` | names by address: the symbol table of the module's file, or of the separate debug file |
//! | `library` | fields of .NET's own types, for programs without debug information |
//! | `types` | fields of types, and locations of static fields, from debug information |
//! | `dwarf` | debug information of ELF files |
//! | `pdb` | debug information and symbols of PDBs |
//! | `codeview` | type records of PDBs |

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

use crate::clr::refusal::Refusal;
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

/// Flag of a method table: objects contain references. The value is that of .NET 9 and later. Source: `EETypeFlags` in `MethodTable.h` of
/// the runtime.
pub const HAS_POINTERS: u32 = 0x0100_0000;

/// The flag that [`HAS_POINTERS`] describes, for this program. In .NET 8 the value differs and comes from the overlay.
pub(crate) fn has_pointers(descriptor: &Descriptor) -> u32 {
    descriptor.number("MethodTableHasPointersFlag").ok().and_then(|n| u32::try_from(n).ok()).unwrap_or(HAS_POINTERS)
}

/// Symbols and debug information of a module.
#[derive(Debug, Default)]
pub struct Debugging {
    /// Names by address.
    pub symbols: Option<NativeSymbols>,
    /// Fields by mangled name.
    pub types: Option<DebugTypes>,
    /// Candidate files that do not belong to the module, with the reason.
    pub refused: Vec<(PathBuf, Refusal)>,
}

impl Debugging {
    /// Finds and reads the symbols and debug information of `module`, which is loaded as `image`: in the module's own file, its separate
    /// debug file, or its PDB. A file is used only if its build ID, or the GUID and age of the PDB, match the image.
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
            // The next file is tried if the files before it have no readable types.
            if out.types.as_ref().is_none_or(|types| types.classes.is_empty()) {
                out.types = dwarf::read(&file, image, bounds).or(out.types);
            }
            if out.symbols.is_none() {
                out.symbols = NativeSymbols::read(file, image, bounds);
            }
        }
        out
    }

    /// Reads a PDB without checking its identity, for an image that is loaded at `bias` and whose sections have these RVAs.
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
