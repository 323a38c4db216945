//! Kills writing processes at random times, and looks whether anything is wrong afterwards.
//!
//! The processes insert, change, exchange, move and delete entities with unique values, copies and lists
//! in other partitions, by clients whose clocks are wrong, while workers run beside them. After each
//! kill the open work is finished; then every acknowledged write has to be there, every value has one
//! holder, and copies and lists have to be what the entities say.
//!
//! `cargo run --release -p entable-tests --bin entable-kill -- 500` kills 500 times on an embedded store in a
//! new folder, and `--features azure` with a connection string in `ENTABLE_AZURITE` on the emulator.
//! `ENTABLE_KILL_SKEW` is by how many seconds clocks are wrong at most: 20,000 if it is not set.
//! `ENTABLE_SEED` repeats the choices of a run; the times of the kills differ.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "a program that stops where something is wrong"
)]

mod ledger;
mod model;
mod parent;
mod place;
mod verdict;
mod writers;

use std::{path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("child") => {
            let folder = PathBuf::from(arguments.next().unwrap());
            let number = arguments.next().unwrap().parse().unwrap();
            let ahead = arguments.next().unwrap().parse().unwrap();
            let seed = arguments.next().unwrap().parse().unwrap();
            runtime.block_on(writers::write(&folder, number, ahead, seed));
            ExitCode::SUCCESS
        }
        kills => {
            let kills = kills.map_or(10, |kills| kills.parse().expect("a number of kills"));
            match runtime.block_on(parent::run(kills)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(wrong) => {
                    eprintln!("wrong: {wrong}");
                    ExitCode::FAILURE
                }
            }
        }
    }
}
