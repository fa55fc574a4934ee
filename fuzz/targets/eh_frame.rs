//! Unwind information of native code: `.eh_frame_hdr`, a CIE, an FDE, and the stack that they describe.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::eh_frame(bytes);
});
