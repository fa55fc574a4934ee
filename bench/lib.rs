//! An empty library: the benchmarks are in `benches`.
