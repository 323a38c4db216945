//! Figures beside their goals: `cargo run --release -p entable-benches -- <suite>..`.
//!
//! A figure is a ratio of two measurements of one run, taken in turns, so that it means the same
//! on any machine. `large` and `huge` beside a suite add its long parts.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints, and may stop")]

mod embedded;
mod figure;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Size {
    /// Some seconds for each suite.
    Usual,
    /// `large`: a million rows, a minute.
    Large,
    /// `huge`: ten million rows, many minutes and tens of gigabytes of disk.
    Huge,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if embedded::is_child(&arguments) {
        return embedded::child(&arguments);
    }
    let given = |size: &str| arguments.iter().any(|argument| argument == size);
    let size = match (given("large"), given("huge")) {
        (_, true) => Size::Huge,
        (true, false) => Size::Large,
        (false, false) => Size::Usual,
    };
    for suite in &arguments {
        match suite.as_str() {
            "embedded" => embedded::run(size),
            "large" | "huge" => {}
            other => println!("no suite `{other}`, there are: embedded"),
        }
    }
}
