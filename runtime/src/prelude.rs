//! Re-exports everything that a program needs, for `use entable::prelude::*;`.

#[cfg(feature = "azure-wire")]
#[doc(no_inline)]
pub use crate::AzureOptions;
#[cfg(feature = "embedded")]
#[doc(no_inline)]
pub use crate::backend::Embedded;
#[doc(no_inline)]
pub use crate::{
    AnyPath, Bag, Blob, BoxError, Column, Condition, CostClass, Cursor, DynamicEntity, ETag,
    EdmValue, Error, ErrorKind, Filter, KeyRef, Keys, Page, Partition, Path, Point, Predicate,
    Range, RetryPolicy, Scan, Stored, Value,
    backend::Memory,
    entity::{
        Aggregate, EntitySet, FromRow, FullView, Message, Projection, Properties, SetMembers,
        TableEntity, Variant,
    },
    maintain::{CreateTables, Dropped, Upgrade},
    query::{Explain, Lookup, Query, RowView},
    queue::{MessageQueue, Queue},
    report::Report,
    table::{Bulk, BulkReport, Client, DynamicTable, SetOf, SetTable, Table, Transaction},
};
#[cfg(feature = "blob")]
#[doc(no_inline)]
pub use crate::{BlobLog, BlobTarget, Flush, LogRecord};
#[doc(no_inline)]
pub use crate::{KeyScope, Keyring};
#[doc(no_inline)]
pub use entable_macros::{
    EdmEnum, EntitySet, KeyPart, Message, Projection, Properties, TableEntity,
};
/// The extension traits that read a query's stream.
#[doc(no_inline)]
pub use futures_util::{StreamExt, TryStreamExt};
