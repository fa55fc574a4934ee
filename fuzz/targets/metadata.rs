//! ECMA-335 metadata: tables, names, signatures.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::metadata(bytes);
});
