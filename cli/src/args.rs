//! The arguments of the command line.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::selection::Selection;

const AFTER_HELP: &str = "A STORE is one of:
  staff.db       a file of the embedded store
  azure:         Azure Table storage. The connection string comes from the variable
                 ENTABLE_CONNECTION_STRING, else from the file in
                 ENTABLE_CONNECTION_STRING_FILE, else from AZURE_STORAGE_CONNECTION_STRING.
                 To use a Microsoft Entra ID identity, set ENTABLE_ACCOUNT instead. The command
                 uses the identity in the environment (AZURE_TENANT_ID, AZURE_CLIENT_ID and
                 AZURE_FEDERATED_TOKEN_FILE, AZURE_CLIENT_SECRET or ENTABLE_CLIENT_SECRET_FILE),
                 else the app service's, else yours from `az login` or `azd auth login`, else
                 the machine's. AZURE_CREDENTIAL_KIND selects one
  azure:NAME     another account, whose variables have \
                          its name in them, such as
                 ENTABLE_NAME_CONNECTION_STRING and \
                          ENTABLE_NAME_ACCOUNT
  http://127.0.0.1:10002/devstoreaccount1
                 an \
                          emulator, with its well-known key
No argument takes a secret.

Exit codes: 0 done; 1 the \
                          store, the disk or the network failed; 2 wrong arguments; 3 no such row, table
or file; 4 \
                          it already exists, or has changed; 5 the data is not right (lines set aside, stores that
\
                          differ, a damaged file).";

/// Looks into tables, changes rows, moves data between files and Azure, and backs it up.
#[derive(Debug, Parser)]
#[command(name = "entable", version, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Write results as JSON to standard output, failures as JSON to standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tables
    Tables {
        /// The store
        #[arg(default_value = "azure:")]
        store: String,
    },
    /// Create a table
    Create {
        /// The store; a missing file is created
        store: String,
        /// The table
        table: String,
        /// Succeed if the table exists
        #[arg(long)]
        if_not_exists: bool,
    },
    /// Print one row
    Get {
        /// The store
        store: String,
        /// The table
        table: String,
        /// The PartitionKey
        partition_key: String,
        /// The RowKey
        row_key: String,
    },
    /// Print the rows that a filter selects
    Query(Query),
    /// Count the rows of a table
    Count {
        /// The store
        store: String,
        /// The table
        table: String,
        #[command(flatten)]
        rows: Selection,
    },
    /// Write rows to an existing table, from one line of JSON per row
    Put {
        /// The store
        store: String,
        /// The table
        table: String,
        /// The file with the lines; standard input by default
        file: Option<PathBuf>,
        /// What to do with rows whose keys are taken
        #[arg(long, value_enum, default_value_t = Mode::Replace)]
        mode: Mode,
    },
    /// Delete rows, or a table
    Delete(Delete),
    /// Write a table to a file, or all tables to a directory
    Export(Export),
    /// Write the rows of a file or an exported directory to a store
    Import(Import),
    /// Copy tables to another store: write what differs, then compare both
    Copy(Copy),
    /// Back up a store in a file to a new file; no program may have either open
    Backup {
        /// The file of the store
        store: String,
        /// The new file
        file: PathBuf,
    },
    /// Check every page and row of a backup, then write it to a new file
    Restore {
        /// The file of the backup
        backup: String,
        /// The new file
        file: PathBuf,
    },
    /// Read every page and every row
    Verify {
        /// The store
        store: String,
        /// Read a copy of the file, and delete the copy afterwards
        #[arg(long)]
        copy: bool,
        /// Keep the copy under this name if it is undamaged
        #[arg(long, value_name = "FILE", requires = "copy")]
        keep: Option<PathBuf>,
    },
    /// Return the space of deleted rows to the file system
    Compact {
        /// The file of the store
        store: String,
    },
    /// List the largest partitions of a table
    Partitions {
        /// The store
        store: String,
        /// The table
        table: String,
        /// How many partitions to list
        #[arg(long, default_value_t = 10)]
        top: usize,
    },
    /// Show how much remote work is open, and for how long
    Lag {
        /// The store
        #[arg(default_value = "azure:")]
        store: String,
    },
    /// List, show, requeue or drop work that workers have set aside
    #[command(subcommand)]
    Poison(Poison),
    /// Describe the rows of each type that a file of `layout!` names, as Markdown
    Report {
        /// The file that a test with `layout!` checks
        #[arg(long, value_name = "FILE")]
        layout: PathBuf,
        /// A store to compare with the tables of the layout
        store: Option<String>,
    },
    /// Estimate what access patterns cost: requests, hot partitions, storage, money
    Plan(PlanOptions),
    /// Print a shared access signature: an address that gives others limited access to a table on Azure
    Sas(Sas),
    /// Check a service against the library's promises, in new tables that are deleted afterwards
    #[cfg(feature = "azure")]
    CheckService(CheckService),
    /// Serve a store to programs in other languages and other processes, as Azure Table storage does
    #[cfg(feature = "serve")]
    Serve(Serve),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page of `entable` or one of its commands
    Man {
        /// Such as `copy`, or `poison drop`
        command: Vec<String>,
    },
}

#[derive(Debug, Parser)]
pub(crate) struct Query {
    /// The store
    pub(crate) store: String,
    /// The table
    pub(crate) table: String,
    #[command(flatten)]
    pub(crate) rows: Selection,
    /// The properties to print, separated by commas
    #[arg(long, value_delimiter = ',')]
    pub(crate) select: Vec<String>,
    /// The most rows to print
    #[arg(long, default_value_t = 100)]
    pub(crate) top: u64,
    /// Print comma-separated values, with types in the header and formulas escaped
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Print the cost of the query without running it
    #[arg(long)]
    pub(crate) explain: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct Delete {
    /// The store
    pub(crate) store: String,
    /// The table
    pub(crate) table: String,
    /// The PartitionKey of the row
    #[arg(requires = "row_key", conflicts_with_all = ["filter", "partition"])]
    pub(crate) partition_key: Option<String>,
    /// The RowKey of the row
    pub(crate) row_key: Option<String>,
    /// Delete the row only if it has this ETag
    #[arg(long, requires = "row_key")]
    pub(crate) if_match: Option<String>,
    #[command(flatten)]
    pub(crate) rows: Selection,
    /// Delete the table with all its rows
    #[arg(long, conflicts_with_all = ["partition_key", "filter", "partition"])]
    pub(crate) whole_table: bool,
    /// Print how many rows would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Confirm that data may be deleted
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct Export {
    /// The store
    pub(crate) store: String,
    /// The file, `-` for standard output; without --table, a directory
    pub(crate) to: PathBuf,
    /// The table; all tables by default
    #[arg(long)]
    pub(crate) table: Option<String>,
    #[command(flatten)]
    pub(crate) rows: Selection,
    /// The format of the rows; by default csv if the file name ends with .csv, else jsonl
    #[arg(long, value_enum)]
    pub(crate) format: Option<RowFormat>,
    /// Continue an unfinished export to the same file or directory; for CSV and unordered stores (Cosmos DB),
    /// restart an unfinished table
    #[arg(long)]
    pub(crate) resume: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct Import {
    /// The store; a missing file is created
    pub(crate) store: String,
    /// The file, `-` for standard input; without --table, a directory that `export` wrote
    pub(crate) from: PathBuf,
    /// The table, which is created if it does not exist
    #[arg(long)]
    pub(crate) table: Option<String>,
    /// The format of the rows; by default csv if the file name ends with .csv, else jsonl
    #[arg(long, value_enum)]
    pub(crate) format: Option<RowFormat>,
    /// What to do with rows whose keys are taken
    #[arg(long, value_enum, default_value_t = Mode::Replace)]
    pub(crate) mode: Mode,
    /// Skip the lines before this one; an earlier attempt printed its number
    #[arg(long, default_value_t = 1, requires = "table")]
    pub(crate) from_line: u64,
    /// Write invalid and refused lines to this file and continue
    #[arg(long, value_name = "FILE", requires = "table")]
    pub(crate) skip_bad: Option<PathBuf>,
}

#[derive(Debug, Parser)]
pub(crate) struct Copy {
    /// The store to read
    pub(crate) from: String,
    /// The store to write; a missing file is created
    pub(crate) to: String,
    /// A table to copy; may be repeated; all tables by default
    #[arg(long = "table", value_name = "TABLE")]
    pub(crate) tables: Vec<String>,
    #[command(flatten)]
    pub(crate) rows: Selection,
    /// Print the differences and fail if there are any; write nothing
    #[arg(long)]
    pub(crate) compare: bool,
    /// Print how many rows would be written, and deleted with --delete-extra; write nothing
    #[arg(long, conflicts_with = "compare")]
    pub(crate) dry_run: bool,
    /// Delete rows that only the target has; needs --yes
    #[arg(long, conflicts_with_all = ["compare", "filter", "partition"])]
    pub(crate) delete_extra: bool,
    /// Copy even if the source has open outbox work, which is not copied
    #[arg(long)]
    pub(crate) leave_open_work: bool,
    /// Before the rows, copy all blobs from one directory to another; a missing target is created
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"])]
    pub(crate) blobs: Option<Vec<String>>,
    /// How many transactions to send at once
    #[arg(long, default_value_t = 16)]
    pub(crate) concurrency: usize,
    /// Confirm that data may be deleted
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct Sas {
    /// The store: `azure:` with an account's key, or an emulator
    pub(crate) store: String,
    /// The table
    pub(crate) table: String,
    /// The allowed requests: r (query), a (add), u (update), d (delete)
    #[arg(long, default_value = "r")]
    pub(crate) permissions: String,
    /// How long the access lasts, in minutes
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=527_040))]
    pub(crate) minutes: u32,
    /// Only rows from this PartitionKey on
    #[arg(long, value_name = "PARTITION")]
    pub(crate) from: Option<String>,
    /// Only rows up to this PartitionKey
    #[arg(long, value_name = "PARTITION")]
    pub(crate) to: Option<String>,
}

#[cfg(feature = "azure")]
#[derive(Debug, Parser)]
pub(crate) struct CheckService {
    /// The store: `azure:`, or an emulator
    pub(crate) store: String,
    /// Write the report to FILE.md and FILE.json too; neither may exist
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Run only this part; may be repeated; all parts by default
    #[arg(long, value_enum, value_name = "PART")]
    pub(crate) only: Vec<crate::check::CheckPart>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Poison {
    /// List the work that was set aside, with its last error
    List {
        /// The store
        store: String,
    },
    /// Print work that was set aside, with the text of a message
    Show {
        /// The store
        store: String,
        /// The position in the list, from 1
        position: usize,
    },
    /// Give work back to the workers
    Requeue {
        /// The store
        store: String,
        /// The position in the list, from 1; all work by default
        position: Option<usize>,
    },
    /// Delete work permanently: it will never be done
    Drop {
        /// The store
        store: String,
        /// The position in the list, from 1
        position: usize,
        /// Confirm that data may be deleted
        #[arg(long)]
        yes: bool,
    },
}

/// What to do with rows whose keys are taken.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    /// Replace the stored row
    Replace,
    /// Set the given properties and keep the others
    Merge,
    /// Refuse the line
    Insert,
}

/// The format of rows in a file.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RowFormat {
    /// One JSON object per line, with the service's annotations of types
    Jsonl,
    /// Comma-separated values, with types in the header
    Csv,
}

impl RowFormat {
    /// Returns the chosen format, or else the format for the file name.
    pub(crate) fn of_file(named: Option<Self>, file: &Path) -> Self {
        let is_csv = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
        named.unwrap_or(if is_csv { Self::Csv } else { Self::Jsonl })
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanOptions {
    /// The file with the JSON of a plan, which a test of the program writes with `to_json()`
    pub(crate) file: PathBuf,
    /// Multiply the load by this factor
    #[arg(long, default_value_t = 1.0)]
    pub(crate) times: f64,
    /// Prices of 10,000 reads, pages, writes and transactions, and of a GiB for a month
    #[arg(long, value_name = "READ,SCAN,WRITE,TRANSACTION,STORAGE", value_delimiter = ',')]
    pub(crate) prices: Option<Vec<f64>>,
    /// A second plan for the same questions, to compare with
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    /// Drive the load on a simulated account, on virtual time, and show what it does beside what the plan predicts
    #[arg(long, conflicts_with_all = ["compare", "prices"])]
    pub(crate) simulate: bool,
    /// For how many seconds calls begin in the simulation
    #[arg(long, default_value_t = 10.0, requires = "simulate")]
    pub(crate) seconds: f64,
    /// The seed of the simulation: the same one gives the same figures
    #[arg(long, default_value_t = 1, requires = "simulate")]
    pub(crate) seed: u64,
}

#[cfg(feature = "serve")]
#[derive(Debug, Args)]
#[command(
    after_help = "Clients sign with the well-known key of the emulator, unless ENTABLE_SERVE_KEY holds a key \
                        of your own, or ENTABLE_SERVE_KEY_FILE the path of a file with it. ENTABLE_SERVE_ACCOUNT is \
                        the name of that key's account. The server has no TLS: put a proxy in front of it."
)]
pub(crate) struct Serve {
    /// The file of the store, which is created if missing; without it, rows are kept in memory
    pub(crate) store: Option<PathBuf>,
    /// The address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:10002")]
    pub(crate) listen: String,
    /// Refuse every write
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Answer writes before they are on disk, at most this many milliseconds; a crash can lose the last of them
    #[arg(long, value_name = "MILLISECONDS", requires = "store", conflicts_with = "read_only")]
    pub(crate) relaxed: Option<u64>,
    /// Take the emulator's well-known key on an address that other machines can reach
    #[arg(long)]
    pub(crate) emulator: bool,
    /// A host name that clients may use, such as that of a container; may be repeated
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
}
