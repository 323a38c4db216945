//! Credentials, and how they authorize a request.
//!
//! A request is signed in its last step, after `azure_core` has written it to its debug log: the log
//! contains neither signatures nor SAS tokens nor bearer tokens.

use std::{fmt, sync::Arc};

use azure_core::{Request, auth::TokenCredential, headers};
use zeroize::Zeroizing;

use super::account_key::AccountKey;
use crate::error::{Error, ErrorKind, Result};

/// A credential: an account key, a shared access signature (SAS), or a source of Microsoft Entra tokens.
#[derive(Clone)]
pub(super) enum Credential {
    Key(AccountKey),
    /// The query of a SAS, percent-encoded and without `?`.
    Sas(Arc<Zeroizing<String>>),
    Token(Arc<dyn TokenCredential>),
}

/// The service that a request goes to. Services differ in the signed text and in the scope of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Tables,
    Cosmos,
    #[cfg_attr(not(feature = "azure-queue"), allow(dead_code, reason = "queues alone"))]
    Queues,
}

/// The text that authorizes a request, in a header or in the query.
pub(super) enum Authorization {
    /// The value of the header `Authorization`.
    Header(String),
    /// Parameters to add to the query.
    Query(Arc<Zeroizing<String>>),
}

const STORAGE_SCOPE: &str = "https://storage.azure.com/.default";
const COSMOS_SCOPE: &str = "https://cosmos.azure.com/.default";

impl Credential {
    /// Makes a credential of a SAS token, with or without `?`.
    pub(super) fn sas(token: &str) -> Result<Self> {
        let token = token.trim().trim_start_matches('?');
        let signed = token.split('&').any(|pair| pair.len() > 4 && pair.starts_with("sig="));
        let plain = token.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if signed && plain {
            Ok(Self::Sas(Arc::new(Zeroizing::new(token.to_owned()))))
        } else {
            Err(Error::new(
                ErrorKind::Invalid,
                "the SAS has no `sig=..`; give the whole token, as it was made, percent-encoded",
            ))
        }
    }

    /// Returns the account key, if the credential is one.
    pub(super) fn account_key(&self) -> Option<&AccountKey> {
        match self {
            Self::Key(key) => Some(key),
            Self::Sas(_) | Self::Token(_) => None,
        }
    }

    /// Computes the signature of a request, or gets a token for it.
    pub(super) async fn sign_or_get_token(
        &self,
        request: &Request,
        account: &str,
        service: Service,
    ) -> azure_core::Result<Authorization> {
        Ok(match self {
            Self::Key(key) => {
                let text = match service {
                    Service::Queues => queue_string_to_sign(request, account),
                    Service::Tables | Service::Cosmos => table_string_to_sign(request, account),
                };
                Authorization::Header(format!("SharedKey {account}:{}", key.sign_text(&text)))
            }
            Self::Sas(token) => Authorization::Query(Arc::clone(token)),
            Self::Token(source) => {
                let scope = if service == Service::Cosmos { COSMOS_SCOPE } else { STORAGE_SCOPE };
                let token = source.get_token(&[scope]).await?;
                Authorization::Header(format!("Bearer {}", token.token.secret()))
            }
        })
    }
}

/// Returns the text that Shared Key signs for the table service. The text contains the encoded path
/// and, of the query, only `comp`. Microsoft's page "Authorize with Shared Key" defines it.
fn table_string_to_sign(request: &Request, account: &str) -> String {
    let header = |name| request.headers().get_optional_str(&name).unwrap_or_default();
    let url = request.url();
    let comp = url.query_pairs().find(|(name, _)| name == "comp");
    let comp = comp.map(|(_, value)| format!("?comp={value}")).unwrap_or_default();
    // The table service signs the value of `x-ms-date` where other services sign an empty `Date`.
    format!(
        "{}\n{}\n{}\n{}\n/{account}{}{comp}",
        request.method(),
        header(headers::CONTENT_MD5),
        header(headers::CONTENT_TYPE),
        header(headers::MS_DATE),
        url.path(),
    )
}

/// Returns the text that Shared Key signs for the queue service: the standard headers, the sorted
/// `x-ms-` headers, the account and the path, and the sorted and decoded query. Microsoft's page
/// "Authorize with Shared Key" defines it.
fn queue_string_to_sign(request: &Request, account: &str) -> String {
    let header = |name| request.headers().get_optional_str(&name).unwrap_or_default();
    let url = request.url();
    // An empty body is signed as an empty text, not as `0`, since version 2015-02-21 of the
    // service.
    let length = Some(header(headers::CONTENT_LENGTH)).filter(|length| *length != "0");
    let mut own: Vec<(&str, &str)> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().trim()))
        .filter(|(name, _)| name.starts_with("x-ms-"))
        .collect();
    own.sort_unstable();
    let mut query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    query.sort_unstable();
    let mut text = format!(
        "{}\n\n\n{}\n{}\n{}\n\n\n\n\n\n\n",
        request.method(),
        length.unwrap_or_default(),
        header(headers::CONTENT_MD5),
        header(headers::CONTENT_TYPE),
    );
    own.iter().for_each(|(name, value)| text.push_str(&format!("{name}:{value}\n")));
    text.push_str(&format!("/{account}{}", url.path()));
    query.iter().for_each(|(name, value)| {
        text.push_str(&format!("\n{}:{value}", name.to_ascii_lowercase()));
    });
    text
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => fmt::Debug::fmt(key, f),
            Self::Sas(_) => f.write_str("Sas(..)"),
            Self::Token(_) => f.write_str("Token(..)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use azure_core::{Method, Url};

    use super::*;

    const KEY: &str =
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";

    async fn signature(url: &str, method: Method, content_type: Option<&'static str>) -> String {
        let mut request = Request::new(Url::parse(url).unwrap(), method);
        request.insert_header(headers::MS_DATE, "Mon, 01 Jan 2024 00:00:00 GMT");
        if let Some(content_type) = content_type {
            request.insert_header(headers::CONTENT_TYPE, content_type);
        }
        let key = AccountKey::new("myaccount", KEY).unwrap();
        match Credential::Key(key)
            .sign_or_get_token(&request, "myaccount", Service::Tables)
            .await
            .unwrap()
        {
            Authorization::Header(header) => header,
            Authorization::Query(_) => unreachable!(),
        }
    }

    #[tokio::test]
    async fn shared_key_signs_as_the_vectors_say() {
        let get = "https://myaccount.table.core.windows.net/MyTable(PartitionKey='a',RowKey='b')";
        assert_eq!(
            signature(get, Method::Get, None).await,
            "SharedKey myaccount:XCEY3USqaI/MDVDvTYmT7fodoS5o+Ti4DuKewfw05dg="
        );
        let acl = "https://myaccount.table.core.windows.net/MyTable?comp=acl";
        assert_eq!(
            signature(acl, Method::Put, Some("application/xml")).await,
            "SharedKey myaccount:4hchXCU0h5PThLJQ+v7kBAslryG6dEBdNwjzkJj5ZCA="
        );
    }
}
