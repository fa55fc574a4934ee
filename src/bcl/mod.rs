//! Readers for objects of .NET's base class library (BCL): tasks, queues, delegates, network addresses and collections.
//!
//! Classes and fields are looked up by name in the metadata of the process (`clr/library`) once per answer. Objects are then read by field
//! offsets, because a heap may have millions of tasks.

pub(crate) mod collections;
pub(crate) mod delegates;
mod library;
pub(crate) mod net;
mod semaphores;
pub(crate) mod tasks;
mod texts;

pub(crate) use library::Library;
pub(crate) use texts::Texts;
