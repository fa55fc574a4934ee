//! Debug info of a method: IL offsets and locations of variables.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::debug_info(bytes);
});
