//! Opening a dump, and reading all of its ranges.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::container(bytes);
});
