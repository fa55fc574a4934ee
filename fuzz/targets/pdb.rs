//! A PDB of a native program: symbols, types and fields.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::pdb(bytes);
});
