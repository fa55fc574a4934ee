//! A command: the first byte selects it, the second the format; the rest is the dump.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::program(bytes);
});
