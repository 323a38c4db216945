//! Rows as JSON: the service's wire form, and a line of an export.

pub(crate) mod time;
pub(crate) mod members;
pub(crate) mod seeds;
pub(crate) mod encode;

pub(crate) use encode::JsonRow;
pub(crate) use members::EntityMembers;
pub(crate) use seeds::NameSeed;
pub(crate) use time::{parse_etag, parse_usual_form};
