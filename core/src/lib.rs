//! Rows, property values, keys, filters, transactions and the port to a store: the part of [entable] that knows no
//! entities.
//!
//! Programs use `entable`, which re-exports these modules under the same paths. A store for entable implements
//! [`Backend`](backend::Backend):
//!
//! ```
//! use entable_core::{
//!     Batch, Operation, Row,
//!     backend::{Backend, Memory, ReadRequest, TableRequest},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), entable_core::Error> {
//! let store = Memory::new();
//! store.tables(TableRequest::Create("Staff")).await?;
//! let row = Row::build("Sales", "000223").finish()?;
//! store.apply(&Batch::single("Staff", Operation::insert(row))?).await?;
//!
//! let request =
//!     ReadRequest { table: "Staff", partition_key: "Sales", row_key: "000223", select: None };
//! assert!(store.read(request).await?.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! [entable]: https://docs.rs/entable

// The published documentation shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

// A module uses only modules listed above it.
// Floor 0: nothing below.
mod address;
pub mod error;
pub mod limits;
mod metering;
mod private_file;
mod random;
mod timers;
mod turn;
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
// Floor 3: the port to a store, a store in memory, and layers.
pub mod backend;
// Floor 3 too: the port to a queue.
pub mod queue;

#[doc(hidden)]
pub mod __runtime;

// All names can be written without their module too. The documentation shows each in its module alone.
#[doc(hidden)]
pub use crate::{
    access::{CostClass, Keys},
    backend::layer::RetryPolicy,
    batch::{Batch, Condition, Deadline, Operation, Verb, Written},
    clock::{Clock, SteppedClock, SystemClock},
    edm::{
        Bag, EdmCow, EdmType, EdmValue, InvalidValue, ParseTicksError, Property, PropertyBag,
        Ticks, Value, ValueRef,
    },
    error::{BoxError, Error, ErrorKind, Result, SealFault, Seen, ServiceCode},
    filter::{Comparison, Filter, KeyBounds},
    page::{Continuation, Cursor, Page},
    queue::Queue,
    row::{ETag, Location, Row, RowBuilder},
};
