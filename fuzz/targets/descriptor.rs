//! The JSON of a data contract descriptor.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = gcdump::internals::contract::parse_descriptor(bytes);
});
