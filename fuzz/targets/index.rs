//! An index with arrays and numbers that were changed, and the whole program after it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::index(bytes);
});
