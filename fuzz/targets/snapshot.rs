//! A `.gcdump` file, and a command that reads it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::snapshot(bytes);
});
