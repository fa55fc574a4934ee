//! A `.gcdump` file, and the whole program after it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::snapshot(bytes);
});
