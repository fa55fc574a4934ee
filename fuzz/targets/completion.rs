//! A typed line, and a name that completes its last word.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::completion(bytes);
});
