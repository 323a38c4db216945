//! The command `entable`: looks into tables, changes rows, and moves data between files and Azure.
//!
//! Every command is a library call of [`entable`] with options, a summary and an exit code. No argument takes
//! a secret: arguments are visible to every process of a machine and stay in histories.

mod failure;
mod args;
#[cfg(feature = "azure")]
mod identity;
mod store;
mod blobs;
mod no_match;
mod output;
mod selection;
#[cfg(feature = "azure")]
mod check;
mod commands;

use std::process::ExitCode;

use clap::Parser;

use crate::{args::Arguments, failure::Failure, output::Output};

fn main() -> ExitCode {
    keep_new_files_private();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Help and the version are what was asked for.
        Err(error) if error.use_stderr() && std::env::args_os().any(|one| one == "--json") => {
            return Output::new(true).failed(&Failure::usage(error.render().to_string()));
        }
        Err(error) => error.exit(),
    };
    let output = Output::new(arguments.json);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return output.failed(&Failure::io("starting the runtime", &error)),
    };
    match runtime.block_on(commands::run(arguments, &output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output.failed(&failure),
    }
}

/// Lets this user alone read and write what the command creates: also blobs and directories, which other crates
/// create with the mode that the process allows.
#[cfg(unix)]
fn keep_new_files_private() {
    use rustix::{fs::Mode, process::umask};

    umask(Mode::RWXG | Mode::RWXO);
}

#[cfg(not(unix))]
const fn keep_new_files_private() {}
