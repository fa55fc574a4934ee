//! What lies in front of a method table: where the references of an object are.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::gcdesc(bytes);
});
