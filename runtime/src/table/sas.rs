//! Operations on a client's account: shared access signatures (SAS), stored access policies, and Azure
//! Storage queues.

use std::{ops::Range, time::Duration};

use time::OffsetDateTime;

use super::{account::ClientAccount, client::Client};
use crate::{
    AccessPolicy, AccountKey,
    edm::Ticks,
    error::{Error, ErrorKind, Result},
    limits,
    sas::{SasCache, SasToken, TableSas, UserDelegationKey},
};

impl Client {
    /// Signs a shared access signature for a table or a range of its rows with the account key. Sends
    /// nothing.
    ///
    /// ```
    /// use entable::{AzureOptions, prelude::*, sas::{TablePermissions, TableSas}};
    /// use time::{Duration, OffsetDateTime};
    ///
    /// let client = Client::azure(AzureOptions::emulator())?;
    /// let sas = TableSas::new("Staff")
    ///     .permissions(TablePermissions::READ)
    ///     .expires(OffsetDateTime::now_utc() + Duration::hours(1));
    /// let url = client.sas(&sas)?.to_url(&client.table_url("Staff")?);
    /// // Elsewhere, without the key:
    /// let reader = Client::azure(AzureOptions::from_sas(&url)?)?;
    /// assert!(reader.sas(&sas).unwrap_err().is_unsupported());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_unsupported` if the client does not hold an account key. Otherwise fails as
    /// [`TableSas::sign`] does.
    pub fn sas(&self, sas: &TableSas) -> Result<SasToken> {
        sas.sign(self.account_key()?)
    }

    /// Returns a cache of signatures with the given lifetime. Each signature is reused until shortly before it
    /// expires. See [`SasCache`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use entable::prelude::*;
    ///
    /// let client = Client::memory();
    /// assert!(client.sas_cache(Duration::from_secs(3600)).unwrap_err().is_unsupported());
    /// let client = Client::azure(AzureOptions::emulator())?;
    /// assert!(client.sas_cache(Duration::from_secs(3600)).is_ok());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_unsupported` if the client does not hold an account key.
    pub fn sas_cache(&self, lifetime: Duration) -> Result<SasCache> {
        Ok(SasCache::new(self.account_key()?.clone(), lifetime))
    }

    /// Requests a key with which this client's identity signs shared access signatures, instead of the account key.
    /// The key is valid for a time range of at most seven days. [`TableSas::sign_delegated`] uses it to sign.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use entable::{AzureOptions, prelude::*};
    /// use time::{Duration, OffsetDateTime};
    ///
    /// let now = OffsetDateTime::now_utc();
    /// let day = now - Duration::minutes(5)..now + Duration::DAY;
    /// // The emulator is opened with a key, and only an identity may ask.
    /// let client = Client::azure(AzureOptions::emulator())?;
    /// assert!(client.user_delegation_key(day).await.unwrap_err().is_unsupported());
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_unsupported` for a client without an identity
    /// (`AzureOptions::from_token_credential`), on Cosmos DB and on other stores. Fails with `is_invalid` for a
    /// time range that is empty or longer than seven days, and with `is_denied` if the identity lacks the role
    /// Storage Table Delegator.
    pub async fn user_delegation_key(
        &self,
        valid: Range<OffsetDateTime>,
    ) -> Result<UserDelegationKey> {
        let account = self.account("there are no user delegation keys")?;
        let request = || -> crate::backend::BoxFuture<'_, Result<UserDelegationKey>> {
            Box::pin(account.azure.user_delegation_key(valid.clone()))
        };
        account.retry.retry_non_backend_read(request).await
    }

    /// Returns the URL of a table, without a signature. [`SasToken::to_url`] appends one.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// let client = Client::azure(AzureOptions::emulator())?;
    /// assert!(client.table_url("Staff")?.ends_with("/devstoreaccount1/Staff"));
    /// assert!(client.table_url("no table name").unwrap_err().is_invalid());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_unsupported` for a client without an account, and with `is_invalid` if `table` is not a
    /// valid table name.
    pub fn table_url(&self, table: &str) -> Result<String> {
        let account = self.account("a table has no address")?;
        limits::check_table_name(table)?;
        Ok(format!("{}/{table}", account.azure.endpoint()))
    }

    /// Reads the stored access policies of a table.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// use entable::prelude::*;
    ///
    /// let error = Client::memory().access_policies("Staff").await.unwrap_err();
    /// assert!(error.is_unsupported());
    /// # }); Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_unsupported` on stores other than Azure Table storage, with `is_not_found` if the table
    /// does not exist, and with `is_denied` for a client without the account key.
    pub async fn access_policies(&self, table: &str) -> Result<Vec<AccessPolicy>> {
        let account = self.account(POLICIES).map_err(|error| error.in_table(table))?;
        account
            .retry
            .retry_non_backend_read(|| Box::pin(account.azure.access_policies(table)))
            .await
    }

    /// Replaces a table's stored access policies, at most five. An empty list removes all of them. The service
    /// may take up to 30 s to apply them.
    ///
    /// ```no_run
    /// # async fn example(client: entable::Client) -> entable::Result<()> {
    /// use entable::AccessPolicy;
    ///
    /// let mut readers = AccessPolicy::new("readers");
    /// readers.permissions = Some("r".to_owned());
    /// client.set_access_policies("Staff", &[readers]).await?;
    /// assert_eq!(client.access_policies("Staff").await?.len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for more than five policies, a name over 64 characters or a time outside the
    /// years 1 to 9999. Fails with `is_ambiguous` if the answer was lost and the stored policies are different ones.
    /// Otherwise fails as [`access_policies`](Self::access_policies) does.
    pub async fn set_access_policies(&self, table: &str, policies: &[AccessPolicy]) -> Result<()> {
        let account = self.account(POLICIES).map_err(|error| error.in_table(table))?;
        let azure = &account.azure;
        let holds = async || {
            let stored = azure.access_policies(table).await?;
            Ok(stored.iter().map(policy_content).eq(policies.iter().map(policy_content)))
        };
        let set = || -> crate::backend::BoxFuture<'_, Result<()>> {
            Box::pin(azure.set_access_policies(table, policies))
        };
        account.retry.retry_non_backend_write(set, || Box::pin(holds())).await
    }

    /// Returns a queue of messages in this client's account, as an Azure Storage queue.
    ///
    /// ```
    /// use entable::{AzureOptions, Client};
    ///
    /// let client = Client::azure(AzureOptions::emulator())?;
    /// assert_eq!(client.azure_queue("archive")?.name(), "archive");
    /// assert!(Client::memory().azure_queue("archive").unwrap_err().is_unsupported());
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_unsupported` for a client without an account. Fails with `is_invalid` if `name` is not a
    /// valid queue name, or if the address of the queues cannot be derived from the account's address.
    #[cfg(feature = "azure-queue")]
    pub fn azure_queue(
        &self,
        name: impl Into<String>,
    ) -> Result<crate::queue::typed::MessageQueue> {
        let account = self.account("there are no Azure Storage queues")?;
        let queue = crate::AzureQueue::of_account(&account.azure, name, account.policy.clone())?;
        Ok(self.queue_over(queue))
    }

    fn account(&self, what: &str) -> Result<&ClientAccount> {
        self.account.as_ref().ok_or_else(|| {
            let name = self.capabilities().name;
            let message = match name {
                "azure" | "cosmos" => format!(
                    "{what} for a client without an account; set one with `ClientBuilder::account`"
                ),
                _ => format!("{what} on the {name} store; Azure Table storage has them"),
            };
            Error::new(ErrorKind::Unsupported, message)
        })
    }

    fn account_key(&self) -> Result<&AccountKey> {
        self.account("there are no shared access signatures")?.azure.account_key().ok_or_else(|| {
            let message = "signing needs the account's key, which this client does not have; sign where the key is \
                           and pass the SAS on, or use an identity and `user_delegation_key`";
            Error::new(ErrorKind::Unsupported, message)
        })
    }
}

const POLICIES: &str = "there are no stored access policies";

/// The content of a policy, regardless of the format of its times.
fn policy_content(policy: &AccessPolicy) -> (&str, Option<Ticks>, Option<Ticks>, &str) {
    let ticks = |time| Ticks::try_from(time).ok();
    (
        &policy.id,
        policy.start.and_then(ticks),
        policy.expiry.and_then(ticks),
        policy.permissions.as_deref().unwrap_or_default(),
    )
}
