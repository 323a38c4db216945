//! Figures beside their goals: `cargo run --release -p entable-benches -- <suite>..`.
//!
//! A ratio is of two measurements of one run, taken in turns, so that it means the same on any
//! machine; a rate is of this machine. `large` beside a suite adds its long parts, and
//! `data=DIRECTORY` has `load` read the real year's `flights.csv` there.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints, and may stop")]

mod codec;
#[allow(unreachable_pub, dead_code, reason = "a module of the example")]
#[path = "../../examples/quickstart/csv.rs"]
mod csv;
mod data;
mod embedded;
mod figure;
#[allow(unreachable_pub, dead_code, reason = "a module of the example")]
#[path = "../../examples/quickstart/flight.rs"]
mod flight;
mod index;
mod load;

use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if embedded::is_child(&arguments) {
        return embedded::child(&arguments);
    }
    let large = arguments.iter().any(|argument| argument == "large");
    let data = arguments.iter().find_map(|argument| argument.strip_prefix("data="));
    let is_suite = |argument: &&String| *argument != "large" && !argument.starts_with("data=");
    for suite in arguments.iter().filter(is_suite) {
        match suite.as_str() {
            "embedded" => embedded::run(large),
            "codec" => codec::run(),
            "index" => index::run(),
            "load" => load::run(data.map(Path::new)),
            other => println!("no suite `{other}`, there are: embedded, codec, index, load"),
        }
    }
}
