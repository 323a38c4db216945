//! entable: a typed mapping layer for Azure Table storage.
//!
//! A module uses only the modules whose `mod` lines stand above its own.

// The published documentation shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

// The derives name this crate `entable`, also in its own tests.
#[cfg(test)]
extern crate self as entable;

// Floor 0: nothing below.
mod address;
pub mod error;
pub mod limits;
mod random;
mod single_flight;
// Floor 1: values and keys, pure.
pub mod edm;
pub mod clock;
pub mod key;
// Floor 2: untyped algebra, pure.
pub mod row;
pub mod filter;
pub mod access;
pub mod page;
pub mod batch;
// Floor 2 too: values under keys; only its key providers await.
#[cfg(feature = "encrypt")]
pub mod seal;
// Floor 3: two wings that never see each other.
pub mod backend;
pub mod entity;

// Floor 4: what to read and what to write, pure.
mod plan;
// Floor 4 too: the port behind which messages wait; awaits, and needs no table's types.
pub mod queue;
// Floor 5: leave to use a table, made without a request.
#[cfg(feature = "azure")]
pub mod sas;
// Floor 5 too: what is too large for rows.
#[cfg(feature = "blob")]
mod blob;
// Floor 5: the first that awaits; knows no outbox.
pub mod store;
// Floor 6: siblings over the store.
pub(crate) mod outbox;
pub mod query;
// Floor 7: what users call.
pub mod table;
// Floor 8: work that goes on by itself, and work on whole tables.
mod worker;
pub mod maintain;
// Floor 9: the service's promises, as tests for backends.
#[cfg(feature = "conformance")]
pub mod conformance;

#[doc(hidden)]
pub mod __private;
pub mod prelude;

#[cfg(feature = "azure")]
pub use crate::backend::azure::{AccessPolicy, AccountKey, Azure, AzureOptions};
#[cfg(feature = "azure-queue")]
pub use crate::queue::AzureQueue;
#[cfg(feature = "blob")]
pub use object_store;

#[cfg(feature = "conformance")]
#[doc(hidden)]
pub use crate::outbox::guard::Guard;
#[cfg(feature = "encrypt")]
pub use crate::seal::{
    CachedKeys, DataKey, IndexKey, KeyId, KeyProvider, KeyScope, Keyring, KeyringBuilder, RootKey,
};
pub use crate::{
    access::{CostClass, Keys},
    backend::layer::RetryPolicy,
    batch::{Batch, Condition, Operation, Verb, Written},
    clock::{Clock, SteppedClock, SystemClock},
    edm::{
        Bag, EdmCow, EdmType, EdmValue, InvalidValue, ParseTicksError, Property, PropertyBag,
        Ticks, Value, ValueRef,
    },
    entity::{
        Aggregate, Column, DynamicEntity, EntitySet, FromRow, KeyRef, Message, Partition, Patch,
        Path, Point, Predicate, Projection, Properties, Range, Scan, Set, SetMember, Stored,
        TableEntity, Variant,
    },
    error::{BoxError, Error, ErrorKind, Result, SealFault, Seen, ServiceCode},
    filter::{Comparison, Filter, KeyBounds},
    maintain::upgrade::Upgrade,
    outbox::options::OutboxOptions,
    page::{Continuation, Cursor, Page},
    query::{build::Query, explain::Explain, lookup::Lookup},
    queue::{MessageQueue, port::Queue},
    row::{ETag, Row, RowBuilder},
    store::sealing::PlaintextPolicy,
    table::{
        Bulk, BulkReport, Client, ClientBuilder, DynamicTable, Progress, SetOf, SetTable, Table,
        Transaction,
    },
    worker::{Context, Poisoned, Worker, WorkerStats},
};
pub use entable_macros::{EdmEnum, EntitySet, Message, Projection, Properties, TableEntity};

/// The examples of the README run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
