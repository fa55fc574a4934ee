//! The whole program: the first byte picks a command, the second a format, the rest is the dump.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::program(bytes);
});
