//! Headers, body and address that replace those that the client of `azure_data_tables` makes.

use azure_core::headers::Headers;
use bytes::Bytes;

use super::wire;
use crate::batch::Deadline;

/// The form of answers: JSON with the types that JSON itself does not tell.
const MINIMAL: &str = "application/json;odata=minimalmetadata";

/// Whether a request reads or writes. If the answer to a write is lost, its outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOrWrite {
    Reads,
    Writes,
}

/// A request in preparation: what replaces the headers, the body and the address of the client.
pub(super) struct ServiceCall {
    pub(super) headers: Headers,
    pub(super) body: Option<Bytes>,
    pub(super) address: Option<String>,
    pub(super) read_or_write: ReadOrWrite,
    /// The last moment at which the request may be sent.
    pub(super) deadline: Option<Deadline>,
}

impl ServiceCall {
    /// Prepares a request that reads; does not send it.
    pub(super) fn read_call() -> Self {
        Self::new(ReadOrWrite::Reads)
    }

    /// Prepares a request that writes; does not send it.
    pub(super) fn write_call() -> Self {
        Self::new(ReadOrWrite::Writes)
    }

    fn new(read_or_write: ReadOrWrite) -> Self {
        let mut headers = Headers::new();
        // The client asks for `fullmetadata`, which takes three times the bytes and tells the same
        // types.
        headers.insert(azure_core::headers::ACCEPT, MINIMAL);
        headers.insert("dataserviceversion", "3.0");
        Self { headers, body: None, address: None, read_or_write, deadline: None }
    }

    /// Sets the last moment at which the request may be sent.
    pub(super) fn with_deadline(self, deadline: Option<&Deadline>) -> Self {
        Self { deadline: deadline.cloned(), ..self }
    }

    /// Sets a header, in place of the client's.
    pub(super) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.insert(name, value.into());
        self
    }

    /// Sets the address of a row, encoded here: the client leaves characters unencoded that some servers
    /// take for parts of the address.
    pub(super) fn with_encoded_row_address(
        mut self,
        table: &str,
        partition_key: &str,
        row_key: &str,
    ) -> Self {
        let mut address = Vec::with_capacity(64 + partition_key.len() + row_key.len());
        wire::push_row_address(&mut address, table, partition_key, row_key);
        // Always UTF-8: a table's name is, and an encoded key is ASCII.
        self.address = String::from_utf8(address).ok();
        self
    }

    /// Sets the body, in place of the client's.
    pub(super) fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }
}
