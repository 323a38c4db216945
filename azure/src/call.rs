//! Requests in preparation: what they address, and their query, headers and body.

use std::borrow::Cow;

use bytes::Bytes;
use entable_core::{batch::Deadline, error::Result, limits};

#[cfg(feature = "azure-data-tables")]
use crate::transport::Resource;
use crate::{
    transport::{HttpRequest, Method},
    wire,
};

/// The form of answers: JSON with the types that JSON itself does not show.
const MINIMAL: &str = "application/json;odata=minimalmetadata";
/// The version of the service's protocol.
const VERSION: &str = "2022-11-02";
const USER_AGENT: &str = concat!("entable/", env!("CARGO_PKG_VERSION"));

/// Whether a request reads or writes. If the answer to a write is lost, its outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadOrWrite {
    Reads,
    Writes,
}

/// What a request addresses, with the names and keys of its path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequestTarget<'a> {
    /// The list of tables.
    Tables,
    /// A table as an entry of that list.
    Table(&'a str),
    /// All rows of a table.
    Rows(&'a str),
    /// One row.
    Row { table: &'a str, partition_key: &'a str, row_key: &'a str },
    /// An entity group transaction on a table.
    Batch(&'a str),
    /// Requests a user delegation key. The request has a body and changes nothing.
    UserDelegationKey,
    /// Any other path below the endpoint, percent-encoded.
    Path(&'a str),
}

/// A request in preparation. It has neither a date nor a signature yet.
#[derive(Debug, Clone)]
pub(crate) struct ServiceCall<'a> {
    pub(crate) method: Method,
    target: RequestTarget<'a>,
    /// Names and values, not yet encoded.
    pub(crate) query: Vec<(&'static str, Cow<'a, str>)>,
    pub(crate) headers: Vec<(&'static str, Cow<'static, str>)>,
    pub(crate) body: Bytes,
    /// The latest time the request may be sent.
    pub(crate) deadline: Option<&'a Deadline>,
}

impl<'a> ServiceCall<'a> {
    /// Prepares a request without a body that accepts JSON with minimal metadata.
    pub(crate) fn new(method: Method, target: RequestTarget<'a>) -> Self {
        let fixed = |value: &'static str| Cow::Borrowed(value);
        let headers = vec![
            ("accept", fixed(MINIMAL)),
            ("dataserviceversion", fixed("3.0")),
            ("user-agent", fixed(USER_AGENT)),
            ("x-ms-version", fixed(VERSION)),
        ];
        let (query, body) = (Vec::new(), Bytes::new());
        Self { method, target, query, headers, body, deadline: None }
    }

    /// Sets a header, in place of an earlier one of that name. The name is in lower case.
    pub(crate) fn with_header(
        mut self,
        name: &'static str,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// Adds a parameter to the query; the value is encoded later.
    pub(crate) fn with_query(mut self, name: &'static str, value: impl Into<Cow<'a, str>>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// Sets the body and its type.
    pub(crate) fn with_body(
        self,
        content_type: impl Into<Cow<'static, str>>,
        body: impl Into<Bytes>,
    ) -> Self {
        let call = self.with_header("content-type", content_type);
        Self { body: body.into(), ..call }
    }

    /// Sends a merge as a POST with its method in a header. Microsoft's clients do so with Cosmos DB, which
    /// does not document `MERGE`.
    pub(crate) fn with_tunnelled_merge(self) -> Self {
        match self.method {
            Method::Merge => {
                let call = self.with_header("x-http-method", Method::Merge.as_str());
                Self { method: Method::Post, ..call }
            }
            _ => self,
        }
    }

    /// Sets the latest time the request may be sent.
    pub(crate) fn with_deadline(self, deadline: Option<&'a Deadline>) -> Self {
        Self { deadline, ..self }
    }

    pub(crate) fn read_or_write(&self) -> ReadOrWrite {
        match (self.method, self.target) {
            (Method::Get, _) | (_, RequestTarget::UserDelegationKey) => ReadOrWrite::Reads,
            _ => ReadOrWrite::Writes,
        }
    }

    /// Returns the value of a header; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| &**value).unwrap_or_default()
    }

    /// Fails if the target's table has an invalid name, which could change the address of the request.
    pub(crate) fn check_table_name(&self) -> Result<()> {
        match self.target {
            RequestTarget::Tables | RequestTarget::UserDelegationKey | RequestTarget::Path(_) => {
                Ok(())
            }
            RequestTarget::Table(table)
            | RequestTarget::Rows(table)
            | RequestTarget::Row { table, .. }
            | RequestTarget::Batch(table) => limits::check_table_name(table),
        }
    }

    /// Returns the URL without its query, for the account at `endpoint`, which has no `/` at its end.
    pub(crate) fn url_without_query(&self, endpoint: &str) -> String {
        let mut url = Vec::with_capacity(endpoint.len() + 128);
        url.extend_from_slice(endpoint.as_bytes());
        url.push(b'/');
        match self.target {
            RequestTarget::Tables => url.extend_from_slice(b"Tables"),
            RequestTarget::Table(name) => {
                url.extend_from_slice(b"Tables('");
                url.extend_from_slice(name.as_bytes());
                url.extend_from_slice(b"')");
            }
            RequestTarget::Rows(table) => {
                url.extend_from_slice(table.as_bytes());
                if self.method == Method::Get {
                    url.extend_from_slice(b"()");
                }
            }
            RequestTarget::Row { table, partition_key, row_key } => {
                wire::push_row_address(&mut url, table, partition_key, row_key);
            }
            RequestTarget::Batch(_) => url.extend_from_slice(b"$batch"),
            // The service itself: all is in the query.
            RequestTarget::UserDelegationKey => {}
            RequestTarget::Path(path) => url.extend_from_slice(path.as_bytes()),
        }
        // Names of tables are checked, paths and keys encoded: all of it is ASCII.
        String::from_utf8(url).unwrap_or_default()
    }

    /// Returns the query, percent-encoded and without `?`.
    pub(crate) fn encoded_query(&self) -> String {
        let mut query = Vec::new();
        for (name, value) in &self.query {
            if !query.is_empty() {
                query.push(b'&');
            }
            query.extend_from_slice(name.as_bytes());
            query.push(b'=');
            wire::push_query_value(&mut query, value);
        }
        String::from_utf8(query).unwrap_or_default()
    }

    /// Makes the request that is sent to `url`.
    pub(crate) fn into_request(self, url: String) -> HttpRequest {
        HttpRequest {
            method: self.method,
            url,
            headers: self.headers,
            body: self.body,
            #[cfg(feature = "azure-data-tables")]
            resource: self.target.resource(),
        }
    }
}

#[cfg(feature = "azure-data-tables")]
impl RequestTarget<'_> {
    fn resource(self) -> Resource {
        match self {
            Self::Tables => Resource::Tables,
            Self::Table(_) => Resource::Table,
            Self::Rows(_) => Resource::Rows,
            Self::Row { .. } => Resource::Row,
            Self::Batch(_) => Resource::Batch,
            Self::UserDelegationKey | Self::Path(_) => Resource::Path,
        }
    }
}
