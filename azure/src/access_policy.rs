//! Stored access policies of tables.

use time::OffsetDateTime;

/// A stored access policy of a table. It bounds the shared access signatures that name it; changing or
/// removing the policy changes or revokes these signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessPolicy {
    /// The name of the policy, at most 64 characters.
    pub id: String,
    /// When signatures become valid. `None` leaves it to the signature.
    pub start: Option<OffsetDateTime>,
    /// When signatures expire. `None` leaves it to the signature.
    pub expiry: Option<OffsetDateTime>,
    /// The permissions as letters of `raud` (read, add, update, delete). `None` leaves them to the signature.
    pub permissions: Option<String>,
}

impl AccessPolicy {
    /// Makes a policy that leaves times and permissions to the signature.
    ///
    /// ```
    /// use entable_azure::AccessPolicy;
    ///
    /// let mut policy = AccessPolicy::new("readers");
    /// policy.permissions = Some("r".to_owned());
    /// assert_eq!((policy.id.as_str(), policy.expiry), ("readers", None));
    /// ```
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), start: None, expiry: None, permissions: None }
    }
}
