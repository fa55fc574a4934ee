//! Debug info of a method: which IL its code is compiled from, and where its variables are.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::debug_info(bytes);
});
