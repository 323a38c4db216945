//! A request and an answer without HTTP's framing, so that parts of a batch are served like requests.

use std::sync::Arc;

use bytes::Bytes;

use crate::{budget::Room, failure::Failure, grant::Grant};

/// One request, or one operation of a batch.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The address of the account as the client writes it, without `/` at its end.
    pub(crate) base: String,
    pub(crate) options: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// The permissions of the request.
    pub(crate) grant: Arc<Grant>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let mut found = self.options.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// Returns the method, which `X-HTTP-Method` of a POST replaces.
    pub(crate) fn verb(&self) -> Result<&str, Failure> {
        match self.header("x-http-method") {
            None => Ok(&self.method),
            Some(_) if self.method != "POST" => Err(Failure::new(400, "XMethodNotUsingPost")),
            Some(verb @ ("MERGE" | "PATCH" | "PUT" | "DELETE")) => Ok(verb),
            Some(_) => Err(Failure::new(400, "XMethodIncorrectValue")),
        }
    }

    /// Returns the metadata of the answer, from `$format` or `Accept`.
    pub(crate) fn metadata(&self) -> Result<Metadata, Failure> {
        let accepted = self.option("$format").or_else(|| self.header("accept")).unwrap_or("");
        let accepted = accepted.to_ascii_lowercase();
        if accepted.contains("odata=nometadata") {
            Ok(Metadata::None)
        } else if accepted.contains("odata=fullmetadata") {
            Ok(Metadata::Full)
        } else if accepted.contains("json") || accepted.contains("*/*") {
            Ok(Metadata::Minimal)
        } else {
            Err(Failure::new(415, "AtomFormatNotSupported"))
        }
    }
}

/// How much of an answer's JSON describes the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metadata {
    None,
    Minimal,
    Full,
}

impl Metadata {
    pub(crate) fn content_type(self) -> String {
        let name = match self {
            Self::None => "no",
            Self::Minimal => "minimal",
            Self::Full => "full",
        };
        format!("application/json;odata={name}metadata;streaming=true;charset=utf-8")
    }
}

/// One answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// The memory that the body takes until it is sent.
    pub(crate) room: Option<Room>,
}

impl Answer {
    pub(crate) fn of_status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub(crate) fn json(status: u16, metadata: Metadata, body: String) -> Self {
        Self { body: body.into_bytes(), ..Self::of_status(status) }
            .with("Content-Type", metadata.content_type())
    }

    /// Answers with a document, written as the service writes it: with a byte order mark and a declaration.
    pub(crate) fn xml(status: u16, document: &str) -> Self {
        let body = format!("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>{document}");
        Self { body: body.into_bytes(), ..Self::of_status(status) }
            .with("Content-Type", "application/xml".to_owned())
    }

    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}
