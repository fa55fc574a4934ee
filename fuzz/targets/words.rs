//! Command lines, budgets and overlays.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::words(bytes);
});
