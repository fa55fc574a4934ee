//! GC info: the references that a method holds.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::gc_info(bytes);
});
