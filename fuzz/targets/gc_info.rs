//! GC info: what lives where in a method.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gcdump_fuzz::gc_info(bytes);
});
