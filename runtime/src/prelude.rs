//! Everything that a program needs: `use entable::prelude::*;`.

pub use crate::{
    BoxError, Column, CostClass, Cursor, DynamicEntity, ETag, EdmValue, Error, ErrorKind, Filter,
    KeyRef, Keys, Page, Partition, Path, Point, Range, Scan, Stored, Value,
    entity::{Aggregate, EntitySet, FromRow, Projection, Properties, TableEntity},
    table::{Atomic, Bulk, Client, Lookup, Query, SetTable, Table},
};
pub use entable_macros::{EdmEnum, EntitySet, Projection, Properties, TableEntity};
/// What a query's stream is read with.
pub use futures_util::{StreamExt, TryStreamExt};
