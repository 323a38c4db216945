//! Wire forms of the service, without an HTTP client: rows and pages as JSON with minimal metadata,
//! entity group transactions as multipart bodies, encoded addresses, times, policies, user delegation keys and
//! error bodies.
//!
//! The client in `backend/azure` encodes requests and decodes answers with these forms.

mod access_policy;
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

pub use access_policy::AccessPolicy;
pub(crate) use address::{encode_query_value, push_query_value, push_row_address};
pub(crate) use batch_answer::batch_answer_parts;
pub(crate) use batch_body::BatchBody;
pub(crate) use decode::{decode_page, decode_row, decode_table_names};
pub(crate) use delegation::{DelegationKeyAnswer, read_delegation_key, write_key_info};
pub use entity_body::read_entity_body;
pub(crate) use error_body::{ServiceRefusal, read_refusal};
pub(crate) use filter::{QueryFilter, to_query_filter};
pub(crate) use http_date::{HttpDate, parse_http_date};
pub use policies::read_policies;
pub(crate) use policies::write_policies;
pub(crate) use sas_text::member_of;
pub use sas_text::{account_text_to_sign, table_text_to_sign};
pub use xml::escape_xml;
#[cfg(feature = "azure-queue")]
pub(crate) use xml::unescape_xml;
