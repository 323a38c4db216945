#![no_main]

#[path = "../bodies/journal.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::journal(data));
