//! Wire forms of the Table service: rows as JSON with minimal metadata, batches as multipart bodies,
//! encoded addresses, times, policies and error bodies.

mod address;
mod batch_answer;
mod batch_body;
mod decode;
mod error_body;
mod filter;
mod policies;
mod http_date;
mod xml;

pub(super) use crate::row::json::{JsonRow, parse_etag};
pub(crate) use address::encode_query_value;
pub(super) use address::{double_quotes, push_row_address};
pub(super) use batch_answer::batch_answer_parts;
pub(super) use batch_body::BatchBody;
pub(super) use decode::{decode_page, decode_row, decode_table_names};
pub(super) use error_body::{ServiceRefusal, read_refusal};
pub(super) use filter::{QueryFilter, to_query_filter};
pub(super) use http_date::parse_http_date;
pub(super) use policies::{read_policies, write_policies};
#[cfg(feature = "azure-queue")]
pub(super) use xml::{escape_xml, unescape_xml};
