//! A portable PDB, also embedded in an assembly: documents and lines.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::symbols(bytes);
});
