//! Floor 4: what the runtime's own structures mean: threads, method tables, types, metadata.

pub mod threads;
