//! The GCDesc in front of a method table.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::gcdesc(bytes);
});
