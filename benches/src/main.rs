//! Figures beside their goals: `cargo run --release -p entable-benches -- <suite>..`.
//!
//! A figure is a ratio of two measurements of one run, taken in turns, so that it means the same
//! on any machine. `large` beside a suite adds its long parts.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints, and may stop")]

#[cfg(feature = "azure")]
mod azure;
mod embedded;
mod figure;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if embedded::is_child(&arguments) {
        return embedded::child(&arguments);
    }
    let large = arguments.iter().any(|argument| argument == "large");
    for suite in arguments.iter().filter(|argument| *argument != "large") {
        match suite.as_str() {
            "embedded" => embedded::run(large),
            other => println!("no suite `{other}`, there are: azure, embedded"),
        }
    }
}
