//! Requests that read and set the stored access policies of a table.

use entable_core::{
    error::{Error, ErrorKind, Result},
    limits,
};

use crate::{
    access_policy::AccessPolicy,
    account::AccountConnection,
    backend::Azure,
    call::{RequestTarget, ServiceCall},
    transport::Method,
    wire,
};

/// Largest number of policies of one table ("Define a stored access policy").
const POLICIES: usize = 5;
/// Largest number of characters of a policy's name.
const POLICY_NAME: usize = 64;
/// The letters of the permissions, in the order that the service expects: read, add, update, delete.
const PERMISSIONS: &str = "raud";

/// Returns whether the letters are permissions in the order of `PERMISSIONS`, each at most once.
/// `true` for no letters.
fn is_in_order(letters: &str) -> bool {
    let mut all = PERMISSIONS.chars();
    letters.chars().all(|letter| all.any(|one| one == letter))
}

impl Azure {
    /// Reads the stored access policies of a table.
    ///
    /// ```no_run
    /// use entable_azure::{AccessPolicy, Azure, AzureOptions};
    ///
    /// # async fn example() -> Result<(), entable_core::Error> {
    /// let azure = Azure::new(AzureOptions::emulator())?;
    /// azure.set_access_policies("Staff", &[AccessPolicy::new("readers")]).await?;
    /// assert_eq!(azure.access_policies("Staff").await?, [AccessPolicy::new("readers")]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `is_not_found` if the table does not exist; `is_denied` with a SAS or a token, because only an account key may
    /// read policies; `is_unsupported` on Cosmos DB.
    pub async fn access_policies(&self, table: &str) -> Result<Vec<AccessPolicy>> {
        let account = &self.0;
        account.check_policies(table, &[])?;
        let call = policies_call(Method::Get, table);
        let answer = account.send_expecting_success(call).await;
        wire::read_policies(answer.map_err(|error| error.in_table(table))?.body())
    }

    /// Replaces all stored access policies of a table. An empty slice removes them. The service can take up to 30 s to
    /// apply the change.
    ///
    /// ```
    /// use entable_azure::{AccessPolicy, Azure, AzureOptions};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let azure = Azure::new(AzureOptions::emulator())?;
    /// let six: Vec<AccessPolicy> = (0..6).map(|n| AccessPolicy::new(format!("policy{n}"))).collect();
    /// let refused = azure.set_access_policies("Staff", &six).await;
    /// assert!(refused.is_err_and(|error| error.is_invalid()), "at most five, and nothing is sent");
    /// # Ok::<(), entable_core::Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for more than five policies, for a name that occurs twice, contains a control character
    /// or does not have 1 to 64 characters, for permissions other than letters of `raud` in this order, and for a time
    /// outside the years 1 to 9999. Otherwise fails as [`access_policies`](Self::access_policies) does.
    pub async fn set_access_policies(&self, table: &str, policies: &[AccessPolicy]) -> Result<()> {
        let account = &self.0;
        account.check_policies(table, policies)?;
        let body = wire::write_policies(policies).map_err(|error| error.in_table(table))?;
        let call = policies_call(Method::Put, table).with_body("application/xml", body);
        let answer = account.send_expecting_success(call).await;
        answer.map(drop).map_err(|error| error.in_table(table))
    }
}

fn policies_call(method: Method, table: &str) -> ServiceCall<'_> {
    ServiceCall::new(method, RequestTarget::Path(table))
        .with_query("comp", "acl")
        .with_header("accept", "application/xml")
}

impl AccountConnection {
    /// Refuses policies that the service would refuse.
    fn check_policies(&self, table: &str, policies: &[AccessPolicy]) -> Result<()> {
        limits::check_table_name(table)?;
        if self.cosmos {
            let message = "Cosmos DB has no stored access policies; use its role-based access";
            return Err(Error::new(ErrorKind::Unsupported, message).in_table(table));
        }
        let refuse = |message: String| Err(Error::new(ErrorKind::Invalid, message).in_table(table));
        if policies.len() > POLICIES {
            return refuse(format!("a table has at most {POLICIES} stored access policies"));
        }
        for (at, policy) in policies.iter().enumerate() {
            let name = policy.id.escape_debug();
            if policy.id.is_empty() || policy.id.chars().count() > POLICY_NAME {
                return refuse(format!(
                    "the policy name `{name}` does not have 1 to {POLICY_NAME} characters"
                ));
            }
            if policy.id.chars().any(char::is_control) {
                return refuse(format!("the policy name `{name}` contains a control character"));
            }
            if policies.iter().take(at).any(|other| other.id == policy.id) {
                return refuse(format!("the policy name `{name}` is given twice"));
            }
            let letters = policy.permissions.as_deref().unwrap_or_default();
            if !is_in_order(letters) {
                return refuse(format!(
                    "expected permissions as letters of `{PERMISSIONS}` in that order, found `{}`",
                    letters.escape_debug()
                ));
            }
        }
        Ok(())
    }
}
