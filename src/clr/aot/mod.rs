//! NativeAOT: what the compiler left in a module about its types, static fields and methods, and what its symbols and debug
//! information add.
//!
//! | module | provides |
//! | --- | --- |
//! | `blobs` | the tables for reflection, statics and stack traces, which are in every module |
//! | `symbols` | names by address: the symbol table of the module's file, or of the debug file beside it |
//! | `dwarf` | fields of types, and places of static fields, from debug information |

pub mod blobs;
mod unwind;

pub use blobs::{Blobs, Definition, GcStatics, Method, Owned, StaticKind};
