//! The Table service's wire forms: rows as JSON with minimal metadata, batches as multipart,
//! addresses with their exact encoding, and error bodies.

mod address;
mod batch_answer;
mod batch_body;
mod decode;
mod encode;
mod error_body;
mod filter;
mod members;
mod policies;
mod time;

pub(crate) use address::query_value;
pub(super) use address::{doubled, push_address};
pub(super) use batch_answer::parts;
pub(super) use batch_body::BatchBody;
pub(super) use decode::{page, row, table_names};
pub(super) use encode::Json;
pub(super) use error_body::{Refusal, refusal};
pub(super) use filter::{Wanted, wanted};
#[cfg(feature = "azure-queue")]
pub(super) use policies::{escaped, unescaped};
pub(super) use policies::{read_policies, write_policies};
pub(super) use time::{http_date, version};
