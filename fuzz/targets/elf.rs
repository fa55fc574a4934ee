//! The loader, then every byte that the file claims to hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::container(bytes);
});
