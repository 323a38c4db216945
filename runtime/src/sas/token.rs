//! A signature that was made.

use std::{fmt, fmt::Write};

use time::OffsetDateTime;

use crate::{
    backend::azure::query_value,
    edm::Ticks,
    error::{Error, ErrorKind},
};

/// The service version that the texts are signed for.
pub(super) const VERSION: &str = "2019-02-02";

/// A shared access signature: the query string that stands in for a key.
#[derive(Clone, PartialEq, Eq)]
pub struct SasToken {
    query: String,
    expires: Option<Ticks>,
}

impl SasToken {
    pub(super) fn new(query: String, expires: Option<Ticks>) -> Self {
        Self { query, expires }
    }

    /// The query string, percent-encoded, without `?`. A secret.
    pub fn as_query(&self) -> &str {
        &self.query
    }

    /// The address with the signature behind it. A secret.
    pub fn to_url(&self, address: &str) -> String {
        format!("{}?{}", address.trim_end_matches('?'), self.query)
    }

    /// When it ends; `None` where a stored policy says.
    pub fn expires(&self) -> Option<OffsetDateTime> {
        self.expires.map(OffsetDateTime::from)
    }

    pub(super) fn expires_at(&self) -> Option<Ticks> {
        self.expires
    }
}

impl fmt::Debug for SasToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SasToken").field("expires", &self.expires).finish_non_exhaustive()
    }
}

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// A query string of the members that are not empty.
pub(super) fn query(members: &[(&str, &str)]) -> String {
    let mut query = String::new();
    for (name, value) in members.iter().filter(|(_, value)| !value.is_empty()) {
        let separator = if query.is_empty() { "" } else { "&" };
        let _ = write!(query, "{separator}{name}={}", query_value(value));
    }
    query
}
