//! The commands, each a function from its arguments to what it says.

mod look;
mod change;
mod moving;
mod file;
mod sas;

use clap::CommandFactory;

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
        Command::Count { store, table, filter } => {
            look::count(output, &store, &table, filter.as_deref()).await
        }
        Command::Partitions { store, table, top } => {
            look::partitions(output, &store, &table, top).await
        }
        Command::Lag { store } => look::lag(output, &store).await,
        Command::Put { store, table, file, mode } => {
            change::put(output, &store, &table, file, mode).await
        }
        Command::Delete(delete) => change::delete(output, delete).await,
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
        Command::Sas(sas) => sas::sas(output, &sas),
        Command::Export(export) => moving::export(output, export).await,
        Command::Import(import) => moving::import(output, import).await,
        Command::Copy(copy) => moving::copy(output, copy).await,
        Command::Backup { store, file } => file::backup(output, &store, &file).await,
        Command::Restore { backup, file } => file::restore(output, &backup, &file).await,
        Command::Verify { store } => file::verify(output, &store).await,
        Command::Compact { store } => file::compact(output, &store).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "entable", &mut script);
            output.line(String::from_utf8_lossy(&script).trim_end())
        }
        Command::Man => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Arguments::command()).render(&mut page);
            rendered.map_err(|error| Failure::io("writing the manual page", &error))?;
            output.line(String::from_utf8_lossy(&page).trim_end())
        }
    }
}
