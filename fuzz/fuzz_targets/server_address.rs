#![no_main]

#[path = "../bodies/server.rs"]
mod server;

libfuzzer_sys::fuzz_target!(|data: &[u8]| server::server_address(data));
