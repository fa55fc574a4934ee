//! A portable PDB, also within an assembly: documents and lines.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::symbols(bytes);
});
