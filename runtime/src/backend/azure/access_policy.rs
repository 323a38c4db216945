//! Stored access policies of tables.

use time::OffsetDateTime;

/// A stored access policy: what shared access signatures that name it allow, until it is changed
/// or taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessPolicy {
    /// Its name, at most 64 characters.
    pub id: String,
    /// When it begins; `None`: the signature says.
    pub start: Option<OffsetDateTime>,
    /// When it ends; `None`: the signature says.
    pub expiry: Option<OffsetDateTime>,
    /// The letters of `raud` that it allows; `None`: the signature says.
    pub permissions: Option<String>,
}

impl AccessPolicy {
    /// A policy that leaves everything to the signature.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), start: None, expiry: None, permissions: None }
    }
}
