//! Defines [`SasToken`], a finished signature.

use std::{fmt, fmt::Write};

use entable_core::{
    edm::Ticks,
    error::{Error, ErrorKind},
};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use crate::wire::encode_query_value;

/// The service version that signatures are made for.
pub(super) const VERSION: &str = "2019-02-02";
/// The service version of signatures that are made with a user delegation key, the first that has them for
/// tables.
pub(super) const DELEGATED_VERSION: &str = "2025-07-05";

/// A shared access signature: a query string that takes the place of an account key. It is a
/// secret, and `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct SasToken {
    query: Zeroizing<String>,
    expires: Option<Ticks>,
}

impl SasToken {
    pub(super) fn new(query: String, expires: Option<Ticks>) -> Self {
        Self { query: Zeroizing::new(query), expires }
    }

    /// Returns the percent-encoded query string without `?`. It is a secret.
    pub fn as_query(&self) -> &str {
        &self.query
    }

    /// Appends `?` and the signature to an address, which must have no query string. The result is
    /// a secret.
    pub fn to_url(&self, address: &str) -> String {
        format!("{}?{}", address.trim_end_matches('?'), *self.query)
    }

    /// Returns when the signature ends, or `None` if a stored access policy decides that.
    pub fn expires(&self) -> Option<OffsetDateTime> {
        self.expires.map(OffsetDateTime::from)
    }
}

impl fmt::Debug for SasToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SasToken").field("expires", &self.expires).finish_non_exhaustive()
    }
}

pub(super) fn invalid_signature_terms_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// Builds a query string from the members that are not empty.
pub(super) fn query_string_of_members(members: &[(&str, &str)]) -> String {
    let mut query = String::new();
    // A field without a value is an empty line of the signed text, but not a member of the URL.
    for (name, value) in members.iter().filter(|(_, value)| !value.is_empty()) {
        let separator = if query.is_empty() { "" } else { "&" };
        let _ = write!(query, "{separator}{name}={}", encode_query_value(value));
    }
    query
}
