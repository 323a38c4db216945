//! The identity of Microsoft Entra ID that opens an account, as the environment gives it.

use std::{path::PathBuf, sync::Arc};

use azure_core::{
    credentials::{AccessToken, Secret, TokenRequestOptions},
    error::ErrorKind,
    http::ClientOptions,
};
use azure_identity::{
    ClientAssertionCredentialOptions, ClientSecretCredential, ClientSecretCredentialOptions,
    DeveloperToolsCredential, ManagedIdentityCredential, ManagedIdentityCredentialOptions,
    UserAssignedId, WorkloadIdentityCredential, WorkloadIdentityCredentialOptions,
};
use entable::{BoxError, TokenCredential};

use crate::{
    failure::{FAILED, Failure},
    store::{read_file, variable},
};

/// The variable that chooses one kind of identity.
const KIND: &str = "AZURE_CREDENTIAL_KIND";
/// The variable with the path of a file that holds the secret of a service principal.
const SECRET_FILE: &str = "ENTABLE_CLIENT_SECRET_FILE";
const SECRET: &str = "AZURE_CLIENT_SECRET";
const CLIENT: &str = "AZURE_CLIENT_ID";
const TENANT: &str = "AZURE_TENANT_ID";
const FEDERATED_TOKEN: &str = "AZURE_FEDERATED_TOKEN_FILE";

/// Returns the identity that the environment gives.
pub(crate) fn credential() -> Result<Arc<dyn TokenCredential>, Failure> {
    Environment { variable: &variable, http: ClientOptions::default() }.credential()
}

/// The source of identities.
struct Environment<'a> {
    /// Returns the value of a variable, or `None` if it is empty or not set.
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// The HTTP client that asks for tokens.
    http: ClientOptions,
}

type Credential = Result<Arc<dyn TokenCredential>, Failure>;

impl Environment<'_> {
    /// Returns the chosen kind of identity. By default, tries the identities of the environment, then your own,
    /// then the machine's.
    fn credential(&self) -> Credential {
        match self.variable(KIND).map(|kind| kind.to_ascii_lowercase()).as_deref() {
            Some("clientsecret") => self.client_secret(),
            Some("workloadidentity") => self.workload_identity(),
            Some("managedidentity") => self.managed_identity(),
            Some("developertools") => developer_tools(),
            Some(_) => Err(Failure::usage(format!(
                "expected clientsecret, workloadidentity, managedidentity or developertools in {KIND}"
            ))),
            None if self.has(SECRET_FILE) || self.has(SECRET) => self.client_secret(),
            None if self.has(FEDERATED_TOKEN) => self.workload_identity(),
            // An app service and its like name the endpoint of their identity.
            None if self.has("IDENTITY_ENDPOINT") => self.managed_identity(),
            None => {
                let either = vec![developer_tools()?, self.managed_identity()?];
                Ok(Arc::new(FirstThatAnswers(either)))
            }
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name)
    }

    fn has(&self, name: &str) -> bool {
        self.variable(name).is_some()
    }

    fn required(&self, name: &str) -> Result<String, Failure> {
        let missing = || Failure::usage(format!("this kind of identity needs {name} as well"));
        self.variable(name).ok_or_else(missing)
    }

    fn client_secret(&self) -> Credential {
        let (tenant, client) = (self.required(TENANT)?, self.required(CLIENT)?);
        let secret = match self.variable(SECRET_FILE) {
            Some(path) => read_file(&path)?.trim().to_owned(),
            None => self.required(SECRET)?,
        };
        let options = ClientSecretCredentialOptions { client_options: self.http.clone() };
        let secret = Secret::new(secret);
        Ok(ClientSecretCredential::new(&tenant, client, secret, Some(options))
            .map_err(no_identity)?)
    }

    fn workload_identity(&self) -> Credential {
        let http = ClientAssertionCredentialOptions { client_options: self.http.clone() };
        let options = WorkloadIdentityCredentialOptions {
            credential_options: http,
            client_id: Some(self.required(CLIENT)?),
            tenant_id: Some(self.required(TENANT)?),
            token_file_path: Some(PathBuf::from(self.required(FEDERATED_TOKEN)?)),
        };
        Ok(WorkloadIdentityCredential::new(Some(options)).map_err(no_identity)?)
    }

    fn managed_identity(&self) -> Credential {
        let options = ManagedIdentityCredentialOptions {
            user_assigned_id: self.variable(CLIENT).map(UserAssignedId::ClientId),
            client_options: self.http.clone(),
        };
        Ok(ManagedIdentityCredential::new(Some(options)).map_err(no_identity)?)
    }
}

fn developer_tools() -> Credential {
    Ok(DeveloperToolsCredential::new(None).map_err(no_identity)?)
}

fn no_identity(error: impl Into<BoxError>) -> Failure {
    Failure::new(FAILED, "Denied", format!("no identity was found: {}", error.into()))
}

/// Asks credentials in order until one gives a token.
#[derive(Debug)]
struct FirstThatAnswers(Vec<Arc<dyn TokenCredential>>);

#[async_trait::async_trait]
impl TokenCredential for FirstThatAnswers {
    async fn get_token(
        &self,
        scopes: &[&str],
        options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let mut reasons = Vec::new();
        for credential in &self.0 {
            match credential.get_token(scopes, options.clone()).await {
                Ok(token) => return Ok(token),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        Err(azure_core::Error::with_message(ErrorKind::Credential, reasons.join("; ")))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]
mod tests {
    use std::{collections::HashMap, sync::Mutex};

    use azure_core::http::{
        AsyncRawResponse, HttpClient, Request, StatusCode, Transport, headers::Headers,
    };

    use super::*;

    /// Gives tokens, and records the address and the body of each request for one.
    #[derive(Debug, Default)]
    struct Authority(Mutex<Vec<String>>);

    #[async_trait::async_trait]
    impl HttpClient for Authority {
        async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
            let azure_core::http::Body::Bytes(body) = request.body() else { panic!("a stream") };
            let body = String::from_utf8_lossy(body);
            self.0.lock().unwrap().push(format!("{} {body}", request.url()));
            let answer = r#"{"access_token":"t0ken","expires_in":3600,"expires_on":"4102444800","resource":"r","token_type":"Bearer"}"#;
            Ok(AsyncRawResponse::from_bytes(StatusCode::Ok, Headers::new(), answer))
        }
    }

    /// Gets a token in an environment of these variables; returns the request for it.
    async fn request_for_token(variables: &[(&str, &str)]) -> Result<String, Failure> {
        let authority = Arc::new(Authority::default());
        let variables: HashMap<&str, &str> = variables.iter().copied().collect();
        let http = ClientOptions {
            transport: Some(Transport::new(authority.clone())),
            ..ClientOptions::default()
        };
        let variable = |name: &str| variables.get(name).map(|value| (*value).to_owned());
        let credential = Environment { variable: &variable, http }.credential()?;
        let token = credential.get_token(&["https://storage.azure.com/.default"], None).await;
        assert_eq!(token.unwrap().token.secret(), "t0ken");
        let asked = authority.0.lock().unwrap();
        Ok(asked.first().unwrap().clone())
    }

    #[tokio::test]
    async fn secrets_and_federated_tokens_come_from_variables_and_files() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (secret, federated) = (write("secret", "from-file\n"), write("token", "from-machine"));
        let principal = [(TENANT, "tenant1"), (CLIENT, "client1")];
        for (variable, value, kind, sent) in [
            (SECRET_FILE, &*secret, "clientsecret", "client_secret=from-file"),
            (SECRET, "from-variable", "ClientSecret", "client_secret=from-variable"),
            (FEDERATED_TOKEN, &*federated, "workloadidentity", "client_assertion=from-machine"),
        ] {
            let chosen = [&principal[..], &[(variable, value), (KIND, kind)]].concat();
            for variables in [&chosen[..3], &chosen[..]] {
                let asked = request_for_token(variables).await.unwrap();
                let address = "https://login.microsoftonline.com/tenant1/oauth2/v2.0/token ";
                assert!(asked.starts_with(address), "{asked}");
                let scope = "scope=https%3A%2F%2Fstorage.azure.com%2F.default";
                for part in [sent, "client_id=client1", scope] {
                    assert!(asked.contains(part), "{variable}: {part}: {asked}");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_machine_gives_its_identity() {
        let variables = [(KIND, "managedidentity"), (CLIENT, "client1")];
        let asked = request_for_token(&variables).await.unwrap();
        assert!(asked.starts_with("http://169.254.169.254/metadata/identity/"), "{asked}");
        assert!(asked.contains("client_id=client1"), "{asked}");
    }

    #[tokio::test]
    async fn an_identity_that_lacks_something_names_it() {
        for (variables, named) in [
            (&[(SECRET, "s3cret")][..], TENANT),
            (&[(FEDERATED_TOKEN, "token"), (TENANT, "t")], CLIENT),
            (&[(KIND, "clientsecret"), (TENANT, "t"), (CLIENT, "c")], SECRET),
            (&[(KIND, "password")], "expected clientsecret"),
        ] {
            let failure = format!("{:?}", request_for_token(variables).await.unwrap_err());
            assert!(failure.contains(named) && !failure.contains("s3cret"), "{failure}");
        }
    }
}
