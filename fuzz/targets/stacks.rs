//! Stacks of real processes, with words changed that walking them reads: stacks, frames, the map of code, GC info, unwind information.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::stacks(bytes);
});
