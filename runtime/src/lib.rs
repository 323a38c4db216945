//! entable: a typed mapping layer for Azure Table storage.
//!
//! A module uses only modules that stand above it in this list.

// Floor 0: nothing below.
pub mod error;
pub mod limits;
mod chance;
#[cfg(feature = "encrypt")]
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
// Floor 5 too: the first that awaits.
pub mod table;
// Floor 6: work that goes on by itself.
mod worker;
// Floor 7: the service's promises, as tests for backends.
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

#[cfg(feature = "encrypt")]
pub use crate::seal::{
    CachedKeys, DataKey, IndexKey, KeyId, KeyProvider, KeyScope, Keyring, KeyringBuilder, RootKey,
};
#[cfg(feature = "conformance")]
#[doc(hidden)]
pub use crate::table::Guard;
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
    page::{Continuation, Cursor, Page},
    queue::{MessageQueue, Queue},
    row::{ETag, Row, RowBuilder},
    table::{
        Bulk, BulkReport, Client, ClientBuilder, DynamicTable, Explain, Lookup, OutboxOptions,
        PlaintextPolicy, Progress, Query, SetOf, SetTable, Table, Transaction, Upgrade,
    },
    worker::{Context, Poisoned, Worker, WorkerStats},
};
pub use entable_macros::{EdmEnum, EntitySet, Message, Projection, Properties, TableEntity};

/// The examples of the README run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
