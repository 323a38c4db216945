//! The commands, each a function from its arguments to what it says.

mod look;
mod change;
mod delete;
mod moving;
mod file;
mod sas;
mod simulate;
mod plan;
#[cfg(feature = "azure")]
mod check_service;
#[cfg(feature = "serve")]
mod serve;

use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

use crate::{
    args::{Arguments, Command, Poison},
    failure::Failure,
    output::Output,
};

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, output: &Output) -> Result<(), Failure> {
    match arguments.command {
        Command::Tables { store } => look::tables(output, &store).await,
        Command::Get { store, table, partition_key, row_key } => {
            look::get(output, &store, &table, &partition_key, &row_key).await
        }
        Command::Query(query) => look::query(output, query).await,
        Command::Create { store, table, if_not_exists } => {
            change::create(output, &store, &table, if_not_exists).await
        }
        Command::Count { store, table, rows } => look::count(output, &store, &table, &rows).await,
        Command::Partitions { store, table, top } => {
            look::partitions(output, &store, &table, top).await
        }
        Command::Lag { store } => look::lag(output, &store).await,
        Command::Put { store, table, file, mode } => {
            change::put(output, &store, &table, file, mode).await
        }
        Command::Delete(delete) => delete::delete(output, delete).await,
        Command::Poison(Poison::List { store }) => change::poisoned(output, &store).await,
        Command::Poison(Poison::Requeue { store, position }) => {
            change::requeue(output, &store, position).await
        }
        Command::Poison(Poison::Show { store, position }) => {
            change::show_poisoned(output, &store, position).await
        }
        Command::Poison(Poison::Drop { store, position, yes }) => {
            change::drop_poisoned(output, &store, position, yes).await
        }
        Command::Report { layout, store } => look::report(output, &layout, store.as_deref()).await,
        Command::Plan(options) => plan::plan(output, &options),
        Command::Sas(sas) => sas::sas(output, &sas),
        Command::Export(export) => moving::export(output, export).await,
        Command::Import(import) => moving::import(output, import).await,
        Command::Copy(copy) => moving::copy(output, copy).await,
        Command::Backup { store, file } => file::backup(output, &store, &file).await,
        Command::Restore { backup, file } => file::restore(output, &backup, &file).await,
        Command::Verify { store, copy: true, keep } => {
            file::verify_copy(output, &store, keep.as_deref()).await
        }
        Command::Verify { store, copy: false, keep: _ } => file::verify(output, &store).await,
        Command::Compact { store } => file::compact(output, &store).await,
        #[cfg(feature = "azure")]
        Command::CheckService(args) => check_service::check_service(output, args).await,
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::serve(output, args).await,
        Command::Completions { shell } => completions(output, shell),
        Command::Man { command } => manual(output, &command),
    }
}

fn completions(output: &Output, shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "entable", &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = script.trim_end();
    output.say(|| script.to_owned(), || json!({"shell": shell.to_string(), "script": script}))
}

/// Prints the manual page of the whole command, or of the subcommand at `path`.
fn manual(output: &Output, path: &[String]) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    let mut name = "entable".to_owned();
    for part in path {
        let found = command.find_subcommand(part).cloned();
        command = found.ok_or_else(|| {
            Failure::usage(format!("`{name}` has no command `{}`", part.escape_debug()))
        })?;
        name = format!("{name} {part}");
    }
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|error| Failure::io("writing the manual page", &error))?;
    let page = String::from_utf8_lossy(&page);
    let page = page.trim_end();
    output.say(|| page.to_owned(), || json!({"command": name, "page": page}))
}
