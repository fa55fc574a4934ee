//! Unwind information of x64 and arm64, and the tables of native images.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::unwind(bytes);
});
