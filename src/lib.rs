//! Reads the garbage-collected heap of a dumped .NET process.
//!
//! Floors, each using only those below it: [`base`], [`model`] → [`dump`] → [`memory`] → [`contract`] → [`clr`] → [`gc`] → [`analysis`]
//! → [`output`] → [`cli`]. `tests/it/floors.rs` fails on an upward import.

pub mod analysis;
pub mod base;
#[cfg(feature = "cli")]
pub mod cli;
pub mod clr;
pub mod contract;
pub mod dump;
pub mod gc;
pub mod graph;
pub mod memory;
pub mod model;
#[cfg(feature = "cli")]
pub mod output;
pub mod session;

pub use session::{Dump, Error, Heap, OpenOptions, Runtime};
