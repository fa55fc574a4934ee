//! The ledger of an answer: its failed reads, its cancellation, and its remaining budget.
//!
//! Only this module unwinds for control flow, and only it and `memory`, which remembers where a thread read last, keep state in thread-local
//! variables. Without this state, every function between an analysis and the innermost read would have to pass a ledger, and a function that
//! does not pass the ledger would hide losses. A successful read costs one decrement of a thread-local counter. Only failures, and one read in
//! about a thousand, cost more.
//!
//! * [`missed`]: failed reads are reported to the innermost open scope of their thread, which belongs to the answer's collector. Values
//!   that are kept for later answers keep their failed reads ([`missed::Kept`]).
//! * [`cancel`]: cancelled work unwinds from its next check up to [`Cancel::run`](cancel::Cancel::run).
//! * [`budget`]: limits on steps, bytes and memory that several readers share. A budget is passed as an argument.
//! * [`reads`]: the number of reads that one look-up of code may take.
//!
//! Work on another thread needs the scope and the cancellation handle of the thread that requests it: see [`missed::Carried`]. In this
//! repository's tests, a failed read on a pool thread without a scope panics. `tests/it/floors.rs` lists the files that may start work
//! without `Carried`.

pub(crate) mod budget;
pub(crate) mod cancel;
pub(crate) mod missed;
pub(crate) mod reads;
