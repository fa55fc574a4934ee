//! Facts about .NET's own library (the base class library): the layout of its tasks, queues, delegates, sockets and collections on the
//! heap.
//!
//! Classes and fields are found by name in the metadata of the process (`clr/library`), bound once per answer, and read by address, because
//! a heap may have millions of tasks.

pub(crate) mod collections;
pub(crate) mod delegates;
mod library;
pub(crate) mod net;
pub(crate) mod tasks;
mod texts;

pub(crate) use library::Library;
pub(crate) use texts::Texts;
