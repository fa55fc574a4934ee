//! Stacks of real processes, in which words that a walk reads are changed: stacks, frames, the map of code, GC info, unwind information.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::stacks(bytes);
});
