//! A signature that was made.

use std::{fmt, fmt::Write};

use time::OffsetDateTime;

use crate::{
    backend::azure::query_value,
    edm::Ticks,
    error::{Error, ErrorKind, Result},
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

/// What the two kinds have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Terms {
    pub(super) starts: Option<Ticks>,
    pub(super) expires: Option<Ticks>,
    pub(super) ip: String,
    pub(super) protocol: &'static str,
}

impl Terms {
    pub(super) fn starts(&self) -> String {
        self.starts.map(seconds).unwrap_or_default()
    }

    pub(super) fn expires(&self) -> String {
        self.expires.map(seconds).unwrap_or_default()
    }

    /// Refuses what the service would only refuse when the signature is used.
    pub(super) fn check(&self) -> Result<()> {
        if let (Some(starts), Some(expires)) = (self.starts, self.expires)
            && starts >= expires
        {
            return Err(invalid("the signature ends before it begins"));
        }
        let one = |address: &str| address.parse::<std::net::Ipv4Addr>().is_ok();
        let (first, last) = self.ip.split_once('-').unwrap_or((&self.ip, "0.0.0.0"));
        if self.ip.is_empty() || one(first) && one(last) {
            Ok(())
        } else {
            Err(invalid("the address range is not `168.1.5.60` or `168.1.5.60-168.1.5.70`"))
        }
    }
}

/// A time as it stands in a signature: whole seconds.
fn seconds(time: Ticks) -> String {
    let text = time.to_string();
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}

/// A time of the caller's.
pub(super) fn ticks(time: OffsetDateTime) -> Option<Ticks> {
    Ticks::try_from(time).ok()
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
