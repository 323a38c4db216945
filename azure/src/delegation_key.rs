//! Defines and requests [`UserDelegationKey`], a key that an identity signs shared access signatures with.

use std::{fmt, ops::Range};

use entable_core::{
    edm::Ticks,
    error::{Error, ErrorKind, Result},
};
use time::{Duration, OffsetDateTime};

use crate::{
    account::AccountConnection,
    account_key::AccountKey,
    backend::Azure,
    call::{RequestTarget, ServiceCall},
    credential::Credential,
    transport::Method,
    wire::{DelegationKeyAnswer, read_delegation_key, write_key_info},
};

/// The first version of the service that has user delegation keys for tables.
const VERSION: &str = "2025-07-05";
/// The longest time that a key is valid.
const LONGEST: Duration = Duration::days(7);

/// A key that a Microsoft Entra identity signs shared access signatures with, in place of the account key. A signature
/// permits what both the signature and the identity's roles allow, and expires no later than the key.
///
/// [`Azure::user_delegation_key`] requests one, and `TableSas::sign_delegated` signs with it. The key is never
/// printed: `Debug` shows the account and the times.
#[derive(Clone)]
pub struct UserDelegationKey {
    /// The account's name and the user delegation key, which signs like an account key.
    pub(crate) key: AccountKey,
    /// Names and values of the signature's fields that identify the key, in signing order.
    pub(crate) members: [(&'static str, String); 6],
    pub(crate) valid: Range<Ticks>,
}

impl UserDelegationKey {
    pub(crate) fn new(account: &str, answer: DelegationKeyAnswer) -> Result<Self> {
        // The errors of the parts quote them, or speak of the account's key.
        let unusable = |what: &str| {
            let message = format!("the {what} of the service's user delegation key cannot be read");
            Error::new(ErrorKind::Backend, message)
        };
        let time = |text: &str| text.parse::<Ticks>();
        let start = time(&answer.start).map_err(|_| unusable("start"))?;
        let expiry = time(&answer.expiry).map_err(|_| unusable("expiry"))?;
        let key = AccountKey::new(account, &answer.value).map_err(|_| unusable("value"))?;
        let members = [
            ("skoid", answer.object_id),
            ("sktid", answer.tenant_id),
            ("skt", answer.start),
            ("ske", answer.expiry),
            ("sks", answer.service),
            ("skv", answer.version),
        ];
        Ok(Self { key, members, valid: start..expiry })
    }

    /// Returns the name of the account that the key is for.
    pub fn account(&self) -> &str {
        self.key.account()
    }

    /// Returns when the key becomes valid.
    pub fn starts(&self) -> OffsetDateTime {
        self.valid.start.into()
    }

    /// Returns when the key expires, at most seven days after its start.
    pub fn expires(&self) -> OffsetDateTime {
        self.valid.end.into()
    }
}

impl fmt::Debug for UserDelegationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserDelegationKey")
            .field("account", &self.account())
            .field("valid", &self.valid)
            .finish_non_exhaustive()
    }
}

impl Azure {
    /// Requests a user delegation key for this backend's identity, valid for at most seven days. Clocks differ, so let
    /// it begin some minutes early.
    ///
    /// ```no_run
    /// # async fn example(azure: entable_azure::Azure) -> entable_core::Result<()> {
    /// use time::{Duration, OffsetDateTime};
    ///
    /// let now = OffsetDateTime::now_utc();
    /// let key = azure.user_delegation_key(now - Duration::minutes(5)..now + Duration::DAY).await?;
    /// assert!(key.expires() > now);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` for a range that is empty, longer than seven days or outside the years 1 to 9999;
    /// `is_denied` if the identity lacks the role; `is_unsupported` for a backend with an account key or a
    /// SAS, and on Cosmos DB.
    pub async fn user_delegation_key(
        &self,
        valid: Range<OffsetDateTime>,
    ) -> Result<UserDelegationKey> {
        let account = &self.0;
        account.check_has_delegation_keys()?;
        let call = ServiceCall::new(Method::Post, RequestTarget::UserDelegationKey)
            .with_query("restype", "service")
            .with_query("comp", "userdelegationkey")
            .with_header("accept", "application/xml")
            .with_header("x-ms-version", VERSION)
            .with_body("application/xml", write_key_info(&checked_times(&valid)?));
        let answer = account.send_expecting_success(call).await?;
        UserDelegationKey::new(account.name(), read_delegation_key(answer.body())?)
    }
}

impl AccountConnection {
    /// Fails if the account has no user delegation keys, or this connection may not request one.
    fn check_has_delegation_keys(&self) -> Result<()> {
        let message = match &self.credential {
            _ if self.cosmos => "Cosmos DB has no user delegation keys; assign its users a role",
            Credential::Token(_) => return Ok(()),
            Credential::Key(_) => {
                "only an identity may request a user delegation key; open the account with \
                 `AzureOptions::from_token_credential`, or sign with the account's key"
            }
            Credential::Sas(_) => {
                "only an identity may request a user delegation key; open the account with \
                 `AzureOptions::from_token_credential`"
            }
        };
        Err(Error::new(ErrorKind::Unsupported, message))
    }
}

/// Returns the times for the request, or the error for a range that the service would refuse.
fn checked_times(valid: &Range<OffsetDateTime>) -> Result<Range<Ticks>> {
    let Range { start, end } = valid;
    let ticks = |time: &OffsetDateTime| Ticks::try_from(*time).ok();
    match (ticks(start), ticks(end)) {
        (Some(from), Some(to)) if start < end && *end - *start <= LONGEST => Ok(from..to),
        _ => {
            let message = format!(
                "a user delegation key is valid for at most seven days, in the years 1 to 9999; found \
                 {start} to {end}"
            );
            Err(Error::new(ErrorKind::Invalid, message))
        }
    }
}
