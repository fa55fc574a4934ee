//! The ledger of an answer: the reads that failed for it, whether its work was cancelled, and its remaining budget.
//!
//! This is the only place where gcdump keeps state per thread and unwinds for control flow. Otherwise every signature between an analysis
//! and the innermost read would have to pass a ledger, and a list that ends early would hide its loss wherever one of them forgets it. A
//! successful read costs one decrement of a thread-local counter; only failures and every 1,024th read do more.
//!
//! * [`missed`]: failed reads go to the innermost open scope of their thread, which belongs to the answer's collector. Values that are kept
//!   for later answers keep their failed reads ([`missed::Kept`]).
//! * [`cancel`]: cancelled work unwinds from its next check up to [`Cancel::run`](cancel::Cancel::run).
//! * [`budget`]: steps, bytes and memory that all readers of an answer share. It is passed as an argument.
//! * [`reads`]: the number of reads that one code look-up may take.
//!
//! Work that is handed to another thread takes its scope and cancellation along ([`missed::Carried`]). In this repository's tests, a failed
//! read on a pool thread without a scope panics, and `tests/it/floors.rs` lists the files that may hand on work without them.

pub(crate) mod budget;
pub(crate) mod cancel;
pub(crate) mod missed;
pub(crate) mod reads;
