//! A typed mapping layer for Azure Table storage, in the cloud or embedded.
//!
//! `#[derive(TableEntity)]` turns a plain struct into an entity with compound keys, and adds index copies
//! to look it up by other fields. The library keeps the copies exact, groups writes into transactions, and
//! shows what a query costs before sending it. The same program runs in memory, on a file or on the
//! service.
//!
//! ```sh
//! cargo add entable
//! cargo add tokio --features macros,rt-multi-thread
//! ```
//!
//! # A first table
//!
//! ```
//! use entable::prelude::*;
//!
//! #[derive(Debug, Clone, PartialEq, TableEntity)]
//! #[table(
//!     name = "Staff",
//!     partition_key = "{department}",
//!     row_key = "empid_{id:06}",
//!     index(ByEmail, row_key = "email_{email:lower}", unique)
//! )]
//! struct Employee {
//!     department: String,
//!     id: u32,
//!     email: String,
//!     age: i32,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Error> {
//!     let client = Client::memory(); // or Client::open("staff.db")?
//!     let staff: Table<Employee> = client.table();
//!     staff.create_if_not_exists().await?;
//!     let (department, email) = ("Sales".to_owned(), "Jones@contoso.com".to_owned());
//!     let jones = Employee { department, id: 223, email, age: 34 };
//!     let mut jones = staff.insert_or_replace(&jones).await?; // `insert` would refuse a second run
//!     jones.age += 1;
//!     staff.replace(&jones).await?; // refused if another writer was first
//!     Ok(())
//! }
//! ```
//!
//! # Twelve names to begin with
//!
//! | name | what it is |
//! |---|---|
//! | [`derive(TableEntity)`](macro@TableEntity) | turns a struct into an entity. Its page has every setting of `#[table(..)]` |
//! | [`Client`] | opens a store: in memory, in a file, or on Azure |
//! | [`Table`] | reads and writes entities of one type |
//! | [`Path`] | says which rows to read: a [`Point`], a [`Range`] or a [`Partition`]. The derive writes the methods that make one |
//! | [`Query`] | reads the rows of a path that meet a condition: all at once, as a stream, or page by page |
//! | [`Stored`] | a value that was read or written, with its keys, ETag and Timestamp |
//! | [`Error`] | the one error type, with a predicate for each failure that a program acts on |
//! | [`Transaction`] | writes up to 100 rows of one partition, or none of them |
//! | [`Bulk`] | writes any number of rows in groups |
//! | [`backend`] | the stores, and the layers around them that retry, count requests and inject faults |
//! | [`Worker`] | finishes copies in other partitions, and passes messages to handlers |
//! | [`Keyring`] | holds the keys of properties with `#[table(encrypt)]` |
//!
//! The [`prelude`] re-exports what most programs name. Every type is in the module of its subject; most can
//! be written without it, as `entable::Name`.
//!
//! # Reading
//!
//! The derive makes a builder for each access path. The type that the builder returns shows the cost: a
//! [`Point`], a [`Range`], a [`Partition`] or a [`Scan`].
//!
//! ```
//! # use entable::prelude::*;
//! # #[derive(Debug, Clone, PartialEq, TableEntity)]
//! # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
//! #         index(ByEmail, row_key = "email_{email:lower}", unique))]
//! # struct Employee { department: String, id: u32, email: String, age: i32 }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! # let client = Client::memory();
//! # let staff: Table<Employee> = client.table();
//! # staff.create().await?;
//! # let (department, email) = ("Sales".to_owned(), "jones@contoso.com".to_owned());
//! # staff.insert(&Employee { department, id: 223, email, age: 35 }).await?;
//! // A point: one request, one row. `get` takes nothing else.
//! let point = Employee::by_email().department("Sales").email("jones@contoso.com");
//! assert_eq!(staff.get(point).await?.map(|jones| jones.id), Some(223));
//!
//! // A range, with a condition; pages, streams and projections build on it.
//! let some = Employee::primary().department("Sales").id_range(200..=299);
//! let query = staff.query(some).filter(Employee::AGE.ge(30)).take(10);
//! assert_eq!(query.explain().class, CostClass::Range);
//! assert_eq!(query.collect().await?.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! [`Query`] has `collect`, `stream`, `first` and `page`. [`Table::get_many`] and [`Table::query_many`] run
//! reads in parallel. [`Client::set`] reads several entity types, and [`Client::dynamic`] any row.
//!
//! # Writing
//!
//! | verb | effect |
//! |---|---|
//! | [`insert`](Table::insert) | inserts a new row; fails with a conflict if the keys are taken |
//! | [`replace`](Table::replace), [`delete`](Table::delete) | change the row if its ETag is still the one that was read |
//! | [`update`](Table::update) | reads, changes and writes; repeats this if another writer was first |
//! | [`patch`](Table::patch), [`patch_at`](Table::patch_at) | write some properties, with or without the ETag |
//! | [`insert_or_replace`](Table::insert_or_replace), [`insert_or_merge`](Table::insert_or_merge) | write the row, whatever is stored under its keys |
//! | [`transaction`](Client::transaction) | writes up to 100 rows of one partition, or none of them |
//! | [`bulk`](Client::bulk) | writes any number of rows in groups; not atomic |
//!
//! # Copies
//!
//! `index(..)` keeps a copy of each entity under another key. `list(..)` keeps a list of the keys of all
//! entities that share a value. In the entity's own partition, both are written in the entity's
//! transaction. In another partition or table they are written shortly afterwards: the transaction records
//! the work, and a [`Worker`] finishes it if the writer could not. [`Table::check`] compares and repairs
//! copies; [`Table::rebuild`] fills a new index. See [copies] and [across partitions].
//!
//! # On Azure
//!
//! ```
//! # #[cfg(feature = "azure-wire")]
//! # fn open() -> Result<(), entable::Error> {
//! # use entable::prelude::*;
//! let client = Client::azure(AzureOptions::emulator())?; // or from_connection_string, from_sas, ..
//! # assert!(client.capabilities().ordered);
//! # Ok(())
//! # }
//! ```
//!
//! This needs the feature `azure`. [Azure, step by step] covers accounts, roles and signatures; [Azure]
//! covers errors, retries and Cosmos DB.
//!
//! # Errors
//!
//! Every call returns the same [`Error`] type. It has predicates to act on ([`Error::is_conflict`],
//! [`Error::is_precondition_failed`], ..) and, with every store, the service's own [`code`](Error::code).
//! [Troubleshooting][troubleshooting] explains each error and what to do. Data never makes a call panic.
//!
//! # Seeing a layout
//!
//! [`report!`] describes rows, keys, copies, access paths and costs as Markdown or as an HTML page with
//! pictures, and can include figures from a store. [`layout!`] writes the layout as text to check in. A
//! test then says what a change of the stored rows requires.
//!
//! # Designing
//!
//! [`access_patterns!`] lists the questions that a program asks and what each may cost. A test checks them
//! without a store. The [plan](patterns::Plan) estimates requests, hot partitions, storage and money; see
//! [design a table](https://github.com/entable/entable/blob/main/docs/design.md).
//!
//! # Testing
//!
//! [`Client::memory`] enforces the service's rules and limits. The layers in [`backend::layer`] count
//! requests and inject faults. [`SteppedClock`] moves the time. See [testing].
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `embedded` (default) | a store in one file, [`Client::open`] |
//! | `azure` | the service, its emulator, and shared access signatures |
//! | `azure-queue` | Azure Storage queues, in addition to queues in tables |
//! | `blob` | lists, logs and archived entities in blobs, through `object_store` |
//! | `keyvault` | keyrings stored as secrets in Azure Key Vault |
//! | `legacy-encryption` | reads rows that older storage libraries encrypted |
//! | `chrono`, `jiff`, `rust_decimal` | types of these crates as properties |
//! | `metrics` | metrics of requests and workers for dashboards |
//! | `conformance` | a test suite that compares a backend with the service's behaviour |
//!
//! # The book
//!
//! [What a table is](https://github.com/entable/entable/blob/main/docs/tables.md),
//! [first program](https://github.com/entable/entable/blob/main/docs/first-program.md),
//! [choosing keys](https://github.com/entable/entable/blob/main/docs/choosing-keys.md), [attributes],
//! [verbs](https://github.com/entable/entable/blob/main/docs/verbs.md),
//! [filters](https://github.com/entable/entable/blob/main/docs/filters.md),
//! [all chapters](https://github.com/entable/entable/blob/main/docs/SUMMARY.md).
//!
//! [attributes]: https://github.com/entable/entable/blob/main/docs/attributes.md
//! [copies]: https://github.com/entable/entable/blob/main/docs/copies.md
//! [across partitions]: https://github.com/entable/entable/blob/main/docs/across-partitions.md
//! [Azure, step by step]: https://github.com/entable/entable/blob/main/docs/azure-setup.md
//! [Azure]: https://github.com/entable/entable/blob/main/docs/azure.md
//! [troubleshooting]: https://github.com/entable/entable/blob/main/docs/troubleshooting.md
//! [testing]: https://github.com/entable/entable/blob/main/docs/testing.md

// The published documentation shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

// The derives name this crate `entable`, also in its own tests.
#[cfg(test)]
extern crate self as entable;

// The floors of `entable-core`, under this crate's paths. What is not public comes from `__runtime`.
pub(crate) use entable_core::__runtime::{
    address, metering, private_file, random, single_flight, timers, turn,
};
pub use entable_core::{access, clock, filter, limits, page};
// The promises of the service as tests, with the macros at the root of the crate.
#[cfg(feature = "conformance")]
pub use entable_conformance::{
    self as conformance, choice_suite, conformance_suite, for_each_choice, for_each_promise,
    queue_suite,
};
/// Defines writes: a single operation, or several as one entity group transaction.
pub mod batch {
    pub use entable_core::batch::*;
}
/// Defines property values, the service's eight property types (the Entity Data Model, EDM), and
/// how Rust types map to them.
pub mod edm {
    pub(crate) use entable_core::__runtime::edm::*;
    pub use entable_core::edm::*;
}
/// The one error type of the crate, with predicates for the failures that callers act on.
pub mod error {
    pub(crate) use entable_core::__runtime::error::*;
    pub use entable_core::error::*;
}
/// Builds PartitionKeys and RowKeys from templates, and reads their parts back.
pub mod key {
    pub(crate) use entable_core::__runtime::key::*;
    pub use entable_core::key::*;
}
/// Defines stored rows: their bytes, how they are built, read and checked, and their ETags.
pub mod row {
    pub(crate) use entable_core::__runtime::row::*;
    pub use entable_core::row::*;
}
/// Proves to workers that a program with the keys asked for their work.
///
/// Anyone who can write to a table can write rows that give workers work. A worker with keys therefore does only work
/// whose code it has verified. `docs/envelope.md` specifies the codes byte by byte, and `docs/encryption.md` lists the
/// attacks they withstand.
pub mod authentic {
    pub(crate) use entable_seal::__runtime::authentic::*;
    pub use entable_seal::authentic::*;
}

// A module uses only modules listed above it.
// Floor 1: time, as the store's answers tell it.
mod server_clock;
// Floor 2: the rules that simulations disable, and mistakes that they make.
mod guard;
// Floor 2 too: values under keys, from the crate `entable-seal`.
pub mod seal;
// Floor 3: two wings that never see each other.
pub mod backend;
pub mod entity;

// Floor 3 too: the port to a store for blobs.
#[cfg_attr(not(feature = "blob"), allow(dead_code, reason = "read by the implementation"))]
mod blob_port;
// Floor 4: what to read and what to write, pure.
mod plan;
// Floor 4 too: the port behind which messages wait; awaits, and needs no table's types.
pub mod queue;
// Floor 5: leave to use a table, made without a request.
#[cfg(feature = "azure-wire")]
pub mod sas;
// Floor 5 too: what is too large for rows.
#[cfg(feature = "blob")]
pub mod blob;
// Floor 5: the first that awaits; knows no outbox.
pub mod store;
// Floor 6: siblings over the store.
pub(crate) mod outbox;
pub mod query;
// Floor 7: what users call.
pub mod table;
// Floor 8: work that goes on by itself, and work on whole tables.
pub mod worker;
pub mod maintain;
// Floor 8 too: rows as text, in another store, in another file.
pub mod data;
// Floor 9: what calls will cost, from schemas and paths alone.
pub mod patterns;
// Floor 9 too: pictures of entities' schemas; only the figures of a report ask a store.
pub mod layout;
pub mod report;
#[doc(hidden)]
pub mod __private;
pub mod prelude;

// What a program needs first. The page of the crate links to these.
pub use crate::{
    entity::{Partition, Path, Point, Range, Stored},
    query::Query,
    table::{Bulk, Client, Table, Transaction},
    worker::Worker,
};
#[doc(no_inline)]
pub use crate::{error::Error, seal::Keyring};
pub use entable_macros::{
    EdmEnum, EntitySet, KeyPart, Message, Projection, Properties, TableEntity,
};

// All other names can be written without their module too. The documentation shows each in its module alone, so that
// the page of the crate has room for the first ones.
#[cfg(feature = "conformance")]
#[doc(hidden)]
pub use crate::guard::Guard;
#[cfg(feature = "azure-queue")]
#[doc(hidden)]
pub use crate::queue::AzureQueue;
#[doc(hidden)]
pub use crate::{
    access::{CostClass, Keys},
    authentic::{Authenticity, MessageAuthenticity, WorkAuthenticity},
    backend::layer::RetryPolicy,
    batch::{Batch, Condition, Deadline, Operation, Verb, Written},
    clock::{Clock, SteppedClock, SystemClock},
    edm::{
        Bag, EdmCow, EdmType, EdmValue, InvalidValue, ParseTicksError, Property, PropertyBag,
        Ticks, Value, ValueRef,
    },
    entity::{
        Aggregate, AnyPath, Blob, Column, DynamicEntity, EntitySet, FromRow, FullView, IntoPoint,
        KeyRef, Message, Patch, Predicate, Projection, Properties, Scan, SetMember, SetMembers,
        TableEntity, Variant, WritableView,
    },
    error::{BoxError, ErrorKind, Result, SealFault, Seen, ServiceCode},
    filter::{Comparison, Filter, KeyBounds},
    maintain::Upgrade,
    page::{Continuation, Cursor, Page},
    query::{Explain, Lookup, RowView},
    queue::{MessageQueue, Queue},
    row::{ETag, Location, Row, RowBuilder},
    seal::{
        BlindTokenKey, CachedKeys, DataKey, KeyId, KeyProvider, KeyScope, KeyringBuilder, RootKey,
    },
    store::{PlaintextPolicy, Prices, Usage},
    table::{BulkReport, ClientBuilder, DynamicTable, Progress, SetOf, SetTable},
    worker::{
        Context, OutboxOptions, OutboxStatus, Poisoned, StuckRow, WorkerFailure, WorkerStats,
    },
};
#[cfg(feature = "azure-wire")]
#[doc(hidden)]
pub use crate::{
    backend::azure::{AccountKey, Azure, AzureOptions},
    sas::AccessPolicy,
};
#[cfg(feature = "blob")]
#[doc(hidden)]
pub use crate::{
    blob::{BlobLog, DamagedLine, Flush, LogBlobName, LogReader, LogRecord, LogRecords, LogWriter},
    table::BlobTarget,
};
#[cfg(feature = "azure")]
#[doc(no_inline)]
pub use entable_azure::TokenCredential;
#[cfg(feature = "blob")]
#[doc(no_inline)]
pub use object_store;
