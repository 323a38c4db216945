//! Rows as JSON: the service's wire form, and a line of an export.

pub(crate) mod time;
pub(crate) mod members;
pub(crate) mod seeds;
pub(crate) mod encode;
