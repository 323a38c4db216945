//! Rows as JSON: the service's wire form, and a line of an export.

mod time;
mod members;
mod seeds;
mod encode;

pub(crate) use encode::JsonRow;
#[cfg(feature = "azure-wire")]
pub(crate) use encode::text_of_not_finite;
pub(crate) use members::EntityMembers;
#[cfg(feature = "azure-wire")]
pub(crate) use seeds::NameSeed;
#[cfg(feature = "azure-wire")]
pub(crate) use time::{parse_etag, parse_usual_form};
