//! Forms of the service's protocol, without an HTTP client. The client encodes requests and decodes answers with them;
//! public are the forms that a server of the protocol needs.
//!
//! ```
//! use entable_azure::wire::{read_entity_body, row_address};
//!
//! let keys = ("Sales", "empid_000223");
//! let row = read_entity_body(br#"{"Age":34,"Name":"Jones"}"#, Some(keys))?;
//! let address = row_address("Staff", row.partition_key(), row.row_key());
//! assert_eq!(address, "Staff(PartitionKey='Sales',RowKey='empid_000223')");
//! # Ok::<(), entable_core::Error>(())
//! ```

mod address;
mod batch_answer;
mod batch_body;
mod decode;
mod entity_body;
mod error_body;
mod filter;
mod http_date;
mod xml;
mod policies;
mod sas_text;
mod delegation;

pub use address::row_address;
pub(crate) use address::{encode_query_value, push_query_value, push_row_address};
pub(crate) use batch_answer::batch_answer_parts;
pub(crate) use batch_body::BatchBody;
pub(crate) use decode::{decode_page, decode_row, decode_table_names};
pub(crate) use delegation::{DelegationKeyAnswer, read_delegation_key, write_key_info};
pub use entity_body::{read_entity_body, text_of_not_finite};
pub(crate) use error_body::{ServiceRefusal, read_refusal};
pub(crate) use filter::{QueryFilter, to_query_filter};
pub(crate) use http_date::HttpDate;
pub use http_date::{http_date_text, parse_http_date};
pub use policies::read_policies;
pub(crate) use policies::write_policies;
pub(crate) use sas_text::member_of;
pub use sas_text::{account_text_to_sign, table_text_to_sign};
pub use xml::escape_xml;
#[cfg(feature = "azure-queue")]
pub(crate) use xml::unescape_xml;
