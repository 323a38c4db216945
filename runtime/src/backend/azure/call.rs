//! A request as the rest of the folder asks for it.

use azure_core::headers::Headers;
use bytes::Bytes;

use super::wire;

const MINIMAL: &str = "application/json;odata=minimalmetadata";

/// Whether the request changes something: then an answer that is lost leaves the outcome open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Writes,
}

/// What a call sends beside what the client makes of it.
pub(super) struct ServiceCall {
    pub(super) headers: Headers,
    pub(super) body: Option<Bytes>,
    pub(super) address: Option<String>,
    pub(super) effect: Effect,
}

impl ServiceCall {
    /// A call that reads.
    pub(super) fn read() -> Self {
        Self::new(Effect::Reads)
    }

    /// A call that writes.
    pub(super) fn write() -> Self {
        Self::new(Effect::Writes)
    }

    fn new(effect: Effect) -> Self {
        let mut headers = Headers::new();
        headers.insert(azure_core::headers::ACCEPT, MINIMAL);
        headers.insert("dataserviceversion", "3.0");
        Self { headers, body: None, address: None, effect }
    }

    /// With this header in place of the client's own.
    pub(super) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.insert(name, value.into());
        self
    }

    /// At the row's address as it is encoded here: the client leaves characters as they are that some
    /// servers read as the address's own.
    pub(super) fn with_row_address(
        mut self,
        table: &str,
        partition_key: &str,
        row_key: &str,
    ) -> Self {
        let mut address = Vec::with_capacity(64 + partition_key.len() + row_key.len());
        wire::push_row_address(&mut address, table, partition_key, row_key);
        self.address = String::from_utf8(address).ok();
        self
    }

    /// With this body in place of the client's own.
    pub(super) fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }
}
