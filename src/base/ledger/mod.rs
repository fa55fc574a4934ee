//! The ledger of an answer: the reads that failed for it, whether its work was cancelled, and what it may still cost.
//!
//! This is the one place where gcdump keeps state per thread and unwinds for control flow. A reader would otherwise pass a ledger through every
//! signature between an analysis and the innermost read, and a list that ends early would hide its loss wherever one of them forgets it. A read
//! that succeeds costs one decrement of a counter of its thread; only failures and every 1,024th read look further.
//!
//! * [`missed`]: failed reads go to the innermost open scope of their thread, which is that of the answer's collector. Values that are kept for
//!   later answers keep their failed reads ([`missed::Kept`]).
//! * [`cancel`]: cancelled work unwinds from its next check up to [`Cancel::run`](cancel::Cancel::run).
//! * [`budget`]: steps, bytes and memory that all readers of an answer share. It is passed as an argument.
//! * [`reads`]: reads that one look-up of code may take.
//!
//! Work that is handed to another thread carries scope and cancellation along ([`missed::Carried`]). In this repository's tests, a failed read on
//! a thread of the pool without a scope is a panic, and `tests/it/floors.rs` lists the files that may hand on work without it.

pub(crate) mod budget;
pub(crate) mod cancel;
pub(crate) mod missed;
pub(crate) mod reads;
