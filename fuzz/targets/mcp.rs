//! Messages to the server of the Model Context Protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::mcp(bytes);
});
