#![no_main]

#[path = "../bodies/row_layout.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::row_layout(data));
