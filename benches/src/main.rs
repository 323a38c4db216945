//! Figures beside their goals: `cargo run --release -p entable-benches -- <suite>..`.
//!
//! A ratio is of two measurements of one run, taken in turns, so that it means the same on any
//! machine; a rate is of this machine. `large` and `huge` beside a suite add its long parts, and
//! `data=DIRECTORY` has `load` and `data` read the real year's `flights.csv` there. `svg=FILE` has `peers` draw its figures.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a program that prints, and may stop"
)]

#[cfg(feature = "azure")]
mod azure;
mod blobs;
mod codec;
mod compile;
#[allow(unreachable_pub, dead_code, reason = "a module of the example")]
#[path = "../../examples/quickstart/csv.rs"]
mod csv;
mod data;
mod dated;
mod embedded;
mod encrypt;
mod figure;
#[allow(unreachable_pub, dead_code, reason = "a module of the example")]
#[path = "../../examples/quickstart/flight.rs"]
mod flight;
mod index;
mod instructions;
#[allow(unreachable_pub, dead_code, reason = "a module of the example")]
#[path = "../../examples/quickstart/line.rs"]
mod line;
mod load;
mod memory;
mod models;
mod moving;
mod outbox;
#[cfg(feature = "peers")]
mod peers;
#[allow(unreachable_pub, dead_code, reason = "a module of the example")]
#[path = "../../examples/quickstart/records.rs"]
mod records;
mod resolve;
#[cfg(feature = "serve")]
mod serve;

use std::path::Path;

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
    if instructions::is_child(&arguments) {
        return instructions::child(&arguments);
    }
    #[cfg(feature = "azure")]
    if azure::is_child(&arguments) {
        return azure::child(&arguments);
    }
    #[cfg(feature = "peers")]
    if peers::is_child(&arguments) {
        return peers::child(&arguments);
    }
    #[cfg(feature = "serve")]
    if serve::is_child(&arguments) {
        return serve::child(&arguments);
    }
    let given = |size: &str| arguments.iter().any(|argument| argument == size);
    let size = match (given("large"), given("huge")) {
        (_, true) => Size::Huge,
        (true, false) => Size::Large,
        (false, false) => Size::Usual,
    };
    let data = arguments.iter().find_map(|argument| argument.strip_prefix("data="));
    #[cfg(feature = "peers")]
    let svg = arguments.iter().find_map(|argument| argument.strip_prefix("svg="));
    for suite in arguments.iter().filter(|argument| !argument.contains('=')) {
        match suite.as_str() {
            "embedded" => embedded::run(size),
            "codec" => codec::run(),
            "compile" => compile::run(size),
            "index" => index::run(),
            "models" => models::run(size),
            "blobs" => blobs::run(&embedded::runtime()),
            "outbox" => outbox::run(),
            #[cfg(feature = "peers")]
            "peers" => peers::run(size, svg.map(Path::new)),
            #[cfg(not(feature = "peers"))]
            "peers" => println!("the suite `peers` needs `--features peers`"),
            "resolve" => resolve::run(),
            "encrypt" => encrypt::run(),
            "load" => load::run(data.map(Path::new)),
            "instructions" => instructions::run(),
            "data" => moving::run(data.map(Path::new)),
            #[cfg(feature = "azure")]
            "azure" => azure::run(),
            #[cfg(not(feature = "azure"))]
            "azure" => println!("the suite `azure` needs `--features azure`"),
            #[cfg(feature = "serve")]
            "serve" => serve::run(size),
            #[cfg(not(feature = "serve"))]
            "serve" => println!("the suite `serve` needs `--features serve`"),
            "large" | "huge" => {}
            other => {
                println!(
                    "no suite `{other}`, there are: embedded, codec, compile, index, models, blobs, outbox, peers, resolve, encrypt, load, data, instructions, azure, serve"
                )
            }
        }
    }
}
