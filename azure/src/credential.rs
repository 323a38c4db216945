//! Credentials, and how they authorize a request.

use std::{fmt, sync::Arc};

use entable_core::error::{Error, ErrorKind, Result};
use zeroize::Zeroizing;

use crate::{account_key::AccountKey, call::ServiceCall, tokens::AccessTokenCache};

/// A credential: an account key, a shared access signature (SAS), or a source of Microsoft Entra tokens.
#[derive(Clone)]
pub(crate) enum Credential {
    Key(AccountKey),
    /// The query of a SAS, percent-encoded and without `?`.
    Sas(Arc<Zeroizing<String>>),
    #[cfg_attr(
        not(any(feature = "azure", feature = "azure-data-tables")),
        allow(dead_code, reason = "a source of tokens comes with a transport")
    )]
    Token(Arc<AccessTokenCache>),
}

/// The service that a request goes to. Services differ in the signed text and in the scope of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Tables,
    Cosmos,
    #[cfg_attr(not(feature = "azure-queue"), allow(dead_code, reason = "queues alone"))]
    Queues,
}

/// The text that authorizes a request, in a header or in the query.
pub(crate) enum Authorization {
    /// The value of the header `Authorization`.
    Header(String),
    /// Parameters to add to the query.
    Query(Arc<Zeroizing<String>>),
}

impl Credential {
    /// Makes a credential of a SAS token, with or without `?`.
    pub(crate) fn sas(token: &str) -> Result<Self> {
        let token = token.trim().trim_start_matches('?');
        let signed = token.split('&').any(|pair| pair.len() > 4 && pair.starts_with("sig="));
        let plain = token.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if signed && plain {
            Ok(Self::Sas(Arc::new(Zeroizing::new(token.to_owned()))))
        } else {
            Err(Error::new(
                ErrorKind::Invalid,
                "the SAS has no `sig=..`; pass the whole token, percent-encoded, as it was issued",
            ))
        }
    }

    /// Returns the account key, if the credential is one.
    pub(crate) fn account_key(&self) -> Option<&AccountKey> {
        match self {
            Self::Key(key) => Some(key),
            Self::Sas(_) | Self::Token(_) => None,
        }
    }

    /// Computes the signature of a request to a service of an account, or gets a token for it.
    pub(crate) async fn authorize(
        &self,
        call: &ServiceCall<'_>,
        resource: SignedResource<'_>,
    ) -> Result<Authorization> {
        Ok(match self {
            Self::Key(key) => {
                let text = match resource.service {
                    Service::Queues => queue_string_to_sign(call, resource),
                    Service::Tables | Service::Cosmos => table_string_to_sign(call, resource),
                };
                let signature = key.sign_text(&text);
                Authorization::Header(format!("SharedKey {}:{signature}", resource.account))
            }
            Self::Sas(token) => Authorization::Query(Arc::clone(token)),
            Self::Token(tokens) => {
                let token = tokens.token_for_scope(resource.scope).await?;
                Authorization::Header(format!("Bearer {}", token.as_str()))
            }
        })
    }
}

/// The parts of a request that signatures and tokens depend on and that are not in the call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignedResource<'a> {
    pub(crate) service: Service,
    pub(crate) account: &'a str,
    /// The path of the URL as it is sent, percent-encoded.
    pub(crate) path: &'a str,
    /// The scope that a Microsoft Entra token is requested for.
    pub(crate) scope: &'a str,
}

/// Returns the text that Shared Key signs for the table service. The text contains the encoded path
/// and, of the query, only `comp`. Microsoft's page "Authorize with Shared Key" defines it.
fn table_string_to_sign(call: &ServiceCall<'_>, resource: SignedResource<'_>) -> String {
    let comp = call.query.iter().find(|(name, _)| *name == "comp");
    let comp = comp.map(|(_, value)| format!("?comp={value}")).unwrap_or_default();
    // The table service signs the value of `x-ms-date` where other services sign an empty `Date`.
    format!(
        "{}\n{}\n{}\n{}\n/{}{}{comp}",
        call.method.as_str(),
        call.header("content-md5"),
        call.header("content-type"),
        call.header("x-ms-date"),
        resource.account,
        resource.path,
    )
}

/// Returns the text that Shared Key signs for the queue service: the standard headers, the sorted
/// `x-ms-` headers, the account and the path, and the sorted and decoded query. Microsoft's page
/// "Authorize with Shared Key" defines it.
fn queue_string_to_sign(call: &ServiceCall<'_>, resource: SignedResource<'_>) -> String {
    // An empty body is signed as an empty text, not as `0`, since version 2015-02-21 of the
    // service.
    let length = Some(call.header("content-length")).filter(|length| *length != "0");
    let headers = call.headers.iter().map(|(name, value)| (*name, value.trim()));
    let mut own: Vec<(&str, &str)> =
        headers.filter(|(name, _)| name.starts_with("x-ms-")).collect();
    own.sort_unstable();
    let mut query: Vec<(&str, &str)> =
        call.query.iter().map(|(name, value)| (*name, &**value)).collect();
    query.sort_unstable();
    let mut text = format!(
        "{}\n\n\n{}\n{}\n{}\n\n\n\n\n\n\n",
        call.method.as_str(),
        length.unwrap_or_default(),
        call.header("content-md5"),
        call.header("content-type"),
    );
    own.iter().for_each(|(name, value)| text.push_str(&format!("{name}:{value}\n")));
    text.push_str(&format!("/{}{}", resource.account, resource.path));
    query.iter().for_each(|(name, value)| text.push_str(&format!("\n{name}:{value}")));
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
    use super::*;
    use crate::{call::RequestTarget, transport::Method};

    const KEY: &str =
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";

    async fn signature(call: ServiceCall<'_>) -> String {
        let endpoint = "https://myaccount.table.core.windows.net";
        let call = call.with_header("x-ms-date", "Mon, 01 Jan 2024 00:00:00 GMT");
        let address = call.url_without_query(endpoint);
        let resource = SignedResource {
            service: Service::Tables,
            account: "myaccount",
            path: &address[endpoint.len()..],
            scope: "",
        };
        let key = Credential::Key(AccountKey::new("myaccount", KEY).unwrap());
        match key.authorize(&call, resource).await.unwrap() {
            Authorization::Header(header) => header,
            Authorization::Query(_) => unreachable!(),
        }
    }

    #[tokio::test]
    async fn shared_key_signs_as_the_vectors_say() {
        let row = RequestTarget::Row { table: "MyTable", partition_key: "a", row_key: "b" };
        assert_eq!(
            signature(ServiceCall::new(Method::Get, row)).await,
            "SharedKey myaccount:XCEY3USqaI/MDVDvTYmT7fodoS5o+Ti4DuKewfw05dg="
        );
        let policies = ServiceCall::new(Method::Put, RequestTarget::Path("MyTable"))
            .with_query("comp", "acl")
            .with_header("content-type", "application/xml");
        assert_eq!(
            signature(policies).await,
            "SharedKey myaccount:4hchXCU0h5PThLJQ+v7kBAslryG6dEBdNwjzkJj5ZCA="
        );
    }
}
