//! Opens the store that an argument names.

use std::{path::Path, sync::Arc};

use entable::{Client, ClientBuilder, backend::Embedded, object_store::ObjectStore};

use crate::failure::Failure;

/// The beginning of the name of a store on Azure; the name of an account may follow.
const AZURE: &str = "azure:";

/// Opens a store. `creates` says whether a file that does not exist becomes a new store.
pub(crate) fn open(name: &str, creates: bool) -> Result<Client, Failure> {
    Ok(builder(name, creates)?.build()?)
}

/// Opens a store whose blobs are in `blobs`. `creates` says whether a file that does not exist becomes a new
/// store.
pub(crate) fn open_with_blobs(
    name: &str,
    creates: bool,
    blobs: Arc<dyn ObjectStore>,
) -> Result<Client, Failure> {
    Ok(builder(name, creates)?.blobs(blobs).build()?)
}

/// Returns whether the name refers to a service, by an Azure prefix or a URL, and not to a path.
pub(crate) fn is_service(name: &str) -> bool {
    name.starts_with(AZURE) || name.contains("://")
}

fn builder(name: &str, creates: bool) -> Result<ClientBuilder, Failure> {
    refuse_secret(name)?;
    if [AZURE, "http://", "https://"].iter().any(|start| name.starts_with(start)) {
        return open_service(name);
    }
    Ok(Client::builder().backend(open_file(name, creates)?))
}

/// Opens the file of an embedded store.
pub(crate) fn open_file(name: &str, creates: bool) -> Result<Arc<Embedded>, Failure> {
    check_is_file(name, creates)?;
    Ok(Arc::new(Embedded::open(name)?))
}

/// Opens the file of an embedded store without reading its pages, which the caller is about to do.
pub(crate) fn open_unverified_file(name: &str) -> Result<Embedded, Failure> {
    check_is_file(name, false)?;
    Ok(Embedded::options().verify_files_up_to_bytes(0).open(name)?)
}

/// Fails if the name refers to a service, or if the file does not exist and is not to be created.
pub(crate) fn check_is_file(name: &str, creates: bool) -> Result<(), Failure> {
    refuse_secret(name)?;
    if is_service(name) {
        return Err(Failure::usage(format!(
            "`{name}` is not a file; this command works only on files"
        )));
    }
    if !creates && !Path::new(name).exists() {
        return Err(Failure::not_found(format!("file `{name}` does not exist")));
    }
    Ok(())
}

/// Refuses an argument that looks like a secret, without repeating it.
pub(crate) fn refuse_secret(name: &str) -> Result<(), Failure> {
    let lower = name.to_ascii_lowercase();
    if ["accountkey=", "sharedaccesssignature=", "sig="].iter().any(|part| lower.contains(part)) {
        let message = "an argument contains a secret, which every process on this machine can see; replace that key, \
                       put the new one into ENTABLE_CONNECTION_STRING, and name the store `azure:`";
        return Err(Failure::usage(message));
    }
    Ok(())
}

#[cfg(not(feature = "azure"))]
fn open_service(name: &str) -> Result<ClientBuilder, Failure> {
    let message = format!(
        "`{name}` is on Azure or an emulator, but this build has no support for them; build the command with `cargo \
         install entable-cli`"
    );
    Err(Failure::usage(message))
}

#[cfg(feature = "azure")]
fn open_service(name: &str) -> Result<ClientBuilder, Failure> {
    use entable::{Azure, RetryPolicy};
    let azure = Azure::new(service_options(name)?)?;
    Ok(Client::builder().account(&azure).retry(RetryPolicy::default()))
}

/// Returns the options to reach the service that an argument names.
#[cfg(feature = "azure")]
pub(crate) fn service_options(name: &str) -> Result<entable::AzureOptions, Failure> {
    use entable::AzureOptions;
    refuse_secret(name)?;
    if let Some(account) = name.strip_prefix(AZURE) {
        azure_options(&Variables::of(account)?)
    } else if is_loopback(name) {
        Ok(AzureOptions::emulator().endpoint(name)?)
    } else if !is_service(name) {
        Err(Failure::usage(format!("`{name}` is a file; this command works only on services")))
    } else {
        let message = format!(
            "`{name}` needs credentials; set ENTABLE_CONNECTION_STRING to a connection string, or ENTABLE_ACCOUNT to \
             the account to use an identity, and name the store `azure:`"
        );
        Err(Failure::usage(message))
    }
}

/// Returns the secrets in the connection string of a store, for texts that must not show them. Empty for other
/// credentials.
#[cfg(feature = "azure")]
pub(crate) fn secrets(name: &str) -> Vec<String> {
    let names = name.strip_prefix(AZURE).and_then(|account| Variables::of(account).ok());
    let text = names.and_then(|names| {
        let own = variable_or_file(&names.connection, &names.connection_file).ok().flatten();
        own.or_else(|| names.other_tools.and_then(variable))
    });
    let text = text.unwrap_or_default();
    let settings = text.trim().split([';', '&', '?']).filter_map(|setting| setting.split_once('='));
    let is_secret = |name: &str| {
        ["accountkey", "sharedaccesssignature", "sig"].contains(&&*name.trim().to_ascii_lowercase())
    };
    settings.filter(|(name, _)| is_secret(name)).map(|(_, value)| value.trim().to_owned()).collect()
}

/// Returns whether the address is one of this machine: the well-known key is sent nowhere else.
#[cfg(feature = "azure")]
fn is_loopback(address: &str) -> bool {
    let host = address.trim_start_matches("http://").trim_start_matches("https://");
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    matches!(host, "127.0.0.1" | "localhost" | "[::1]")
}

/// The names of the variables that configure access to an account.
#[cfg(feature = "azure")]
struct Variables {
    /// Holds a connection string.
    connection: String,
    /// Holds the path of a file with a connection string.
    connection_file: String,
    /// Holds the name of the account that an identity of Microsoft Entra ID opens.
    account: String,
    /// Holds the whole table endpoint of that account, in another cloud than the public one.
    endpoint: String,
    /// Holds a connection string for other tools, such as `az`. It is read if no other variable is set, and
    /// names one account alone.
    other_tools: Option<&'static str>,
}

#[cfg(feature = "azure")]
impl Variables {
    /// Returns the names for `azure:`, or for `azure:NAME`: two accounts in one command need two names.
    fn of(account: &str) -> Result<Self, Failure> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !account.bytes().all(is_name) {
            let message = "a name after `azure:` may have only letters, digits and `_`, because it is part of \
                           variables such as ENTABLE_NAME_CONNECTION_STRING; no argument takes a secret";
            return Err(Failure::usage(message));
        }
        let prefix = match account {
            "" => "ENTABLE".to_owned(),
            name => format!("ENTABLE_{}", name.to_ascii_uppercase()),
        };
        let of = |what: &str| format!("{prefix}_{what}");
        Ok(Self {
            connection: of("CONNECTION_STRING"),
            connection_file: of("CONNECTION_STRING_FILE"),
            account: of("ACCOUNT"),
            endpoint: of("ENDPOINT"),
            other_tools: account.is_empty().then_some("AZURE_STORAGE_CONNECTION_STRING"),
        })
    }
}

/// Returns how an account is reached: by a connection string, or by its name and an identity.
#[cfg(feature = "azure")]
fn azure_options(names: &Variables) -> Result<entable::AzureOptions, Failure> {
    use entable::AzureOptions;
    let Variables { connection, connection_file, account, endpoint, .. } = names;
    match (variable_or_file(connection, connection_file)?, variable(account)) {
        (Some(text), None) => Ok(AzureOptions::from_connection_string(text.trim())?),
        (None, Some(name)) => {
            let options =
                AzureOptions::from_token_credential(&name, crate::identity::credential()?)?;
            match variable(endpoint) {
                Some(endpoint) => Ok(options.endpoint(&endpoint)?),
                None => Ok(options),
            }
        }
        // Both are set, and the intended account is unknown.
        (Some(_), Some(_)) => Err(Failure::usage(format!(
            "both {account} and a connection string are set; unset one"
        ))),
        (None, None) => match names.other_tools.and_then(variable) {
            Some(text) => Ok(AzureOptions::from_connection_string(text.trim())?),
            None => Err(Failure::usage(format!(
                "no credentials found; set {connection}, or {connection_file} to the path of a file, or {account} to \
                 use an identity"
            ))),
        },
    }
}

/// Returns the value of a variable, or `None` if it is empty or not set.
#[cfg(feature = "serve")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Returns the value of a variable, or the content of the file that another variable names.
#[cfg(feature = "serve")]
pub(crate) fn variable_or_file(name: &str, file: &str) -> Result<Option<String>, Failure> {
    match (variable(name), variable(file)) {
        (Some(text), _) => Ok(Some(text)),
        (None, Some(path)) => read_file(&path).map(Some),
        (None, None) => Ok(None),
    }
}

#[cfg(feature = "serve")]
pub(crate) fn read_file(path: &str) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::io(&format!("reading `{path}`"), &error))
}
