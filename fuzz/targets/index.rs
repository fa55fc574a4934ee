//! An index with changed arrays and numbers, and a command that uses it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::index(bytes);
});
