//! The Azure account of a client.

use crate::{
    Azure,
    backend::layer::{Retry, RetryPolicy},
};

/// The account of a client, with the retry policy of its requests.
#[derive(Clone)]
pub(super) struct ClientAccount {
    pub(super) azure: Azure,
    /// The backend that sends the account's own requests (signatures, access policies) and retries
    /// them.
    pub(super) retry: Retry,
    #[cfg(feature = "azure-queue")]
    pub(super) policy: RetryPolicy,
}

impl ClientAccount {
    pub(super) fn new(azure: Azure, policy: Option<RetryPolicy>) -> Self {
        // A client without a policy has no retries around its backend. Its account has none either.
        let policy = policy.unwrap_or(RetryPolicy::never());
        Self {
            retry: Retry::around(azure.clone(), policy.clone()),
            azure,
            #[cfg(feature = "azure-queue")]
            policy,
        }
    }
}
