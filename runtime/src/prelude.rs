//! Everything that a program needs: `use entable::prelude::*;`.

#[cfg(feature = "azure")]
pub use crate::AzureOptions;
pub use crate::{
    Bag, BoxError, Column, Condition, CostClass, Cursor, DynamicEntity, ETag, EdmValue, Error,
    ErrorKind, Filter, KeyRef, Keys, Page, Partition, Path, Point, Range, RetryPolicy, Scan,
    Stored, Value,
    entity::{
        Aggregate, EntitySet, FromRow, Message, Projection, Properties, Set, TableEntity, Variant,
    },
    queue::MessageQueue,
    table::{
        Bulk, BulkReport, Client, DynamicTable, Explain, Lookup, Query, SetOf, SetTable, Table,
        Transaction, Upgrade,
    },
};
pub use entable_macros::{EdmEnum, EntitySet, Message, Projection, Properties, TableEntity};
/// What a query's stream is read with.
pub use futures_util::{StreamExt, TryStreamExt};
