//! Endpoints: the addresses of the tables and queues of an account.

use std::net::IpAddr;

use entable_core::error::{Error, ErrorKind, Result};
use url::Url;

use crate::{account_key::EMULATOR_ACCOUNT, credential::Service};

/// The endpoint suffix of the public cloud. Other clouds have `core.chinacloudapi.cn` or
/// `core.usgovcloudapi.net`.
pub(crate) const PUBLIC_CLOUD_SUFFIX: &str = "core.windows.net";

/// The address of the tables or queues of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Scheme, host and, for path-style addresses, the account; without `/` at the end.
    pub(crate) url: String,
    /// The port, or `None` for the scheme's default.
    pub(crate) port: Option<u16>,
    /// The account, if the address contains it.
    pub(crate) account: Option<String>,
    /// Whether the host is this machine. Requests to it use no proxy.
    pub(crate) loopback: bool,
    /// Whether the host belongs to Cosmos DB's Table API.
    pub(crate) cosmos: bool,
    /// Whether the address belongs to an emulator. Only emulators have the account in the path, or a host name that
    /// ends with `.localhost`.
    pub(crate) emulator: bool,
}

impl Endpoint {
    /// Returns whether requests to the address are encrypted on their way.
    pub(crate) fn is_https(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// Returns the host of the address, without its port and without the brackets of an IPv6 address.
    pub(crate) fn host(&self) -> &str {
        // Every endpoint has a scheme, since `parse` demands one: the default is never taken.
        let (_, rest) = self.url.split_once("://").unwrap_or_default();
        let authority = rest.split('/').next().unwrap_or_default();
        match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, _)) => host,
            None => authority.split(':').next().unwrap_or_default(),
        }
    }

    /// Returns scheme, host and port: the address without its path, which is empty or `/account`.
    pub(crate) fn origin(&self) -> &str {
        let begin = self.url.find("://").map_or(0, |at| at + 3);
        let end = self.url.get(begin..).and_then(|rest| rest.find('/'));
        end.and_then(|end| self.url.get(..begin + end)).unwrap_or(&self.url)
    }

    /// Returns the address for requests of the client of `azure_data_tables`.
    #[cfg(feature = "azure-data-tables")]
    pub(crate) fn to_url(&self) -> Result<Url> {
        Url::parse(&self.url).map_err(|error| {
            Error::new(ErrorKind::Invalid, "the endpoint is not a valid URL").with_source(error)
        })
    }

    /// Returns the scope of tokens for a service at this address. Storage accounts have one scope in all
    /// clouds; Cosmos DB has one for each.
    pub(crate) fn token_scope(&self, service: Service) -> String {
        let resource = match service {
            Service::Tables | Service::Queues => "https://storage.azure.com",
            Service::Cosmos => match self.host().rsplit('.').next() {
                Some("cn") => "https://cosmos.azure.cn",
                Some("us") => "https://cosmos.azure.us",
                _ => "https://cosmos.azure.com",
            },
        };
        format!("{resource}/.default")
    }

    /// Makes the table endpoint `protocol://account.table.suffix`.
    pub(crate) fn for_account(protocol: &str, account: &str, suffix: &str) -> Result<Self> {
        let shaped = !account.is_empty()
            && account.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !shaped {
            return Err(Error::new(
                ErrorKind::Invalid,
                // The text is not quoted, since it may be the key by mistake.
                "an account's name has only lower-case letters and digits; give the name first, then the key",
            ));
        }
        let suffix = suffix.trim().trim_matches('.');
        let named = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.');
        if suffix.is_empty() || !suffix.bytes().all(named) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("the endpoint suffix is not a host name such as `{PUBLIC_CLOUD_SUFFIX}`"),
            ));
        }
        if !matches!(protocol, "http" | "https") {
            return Err(Error::new(ErrorKind::Invalid, "the protocol is neither http nor https"));
        }
        Self::parse(&format!("{protocol}://{account}.table.{suffix}"))
    }

    /// Returns the queue endpoint of the account. `None` if it does not follow from the table
    /// endpoint: on Cosmos DB, and for a host that neither contains `.table.` nor is the emulator
    /// at its usual port.
    #[cfg(feature = "azure-queue")]
    pub(crate) fn queue_endpoint(&self) -> Option<Self> {
        // The services of the emulator differ by port and not by host.
        let emulator = self.url.strip_suffix(EMULATOR_ACCOUNT);
        if let Some(host) = emulator.and_then(|url| url.strip_suffix(":10002/")) {
            let url = format!("{host}:10001/{EMULATOR_ACCOUNT}");
            return Some(Self { url, port: Some(10_001), ..self.clone() });
        }
        // The hosts of Cosmos DB contain `.table.` as well, but Cosmos DB has no queues.
        let (before, after) = self.url.split_once(".table.").filter(|_| !self.cosmos)?;
        Some(Self { url: format!("{before}.queue.{after}"), ..self.clone() })
    }

    /// Returns the address of the account's read-only copy in another region. `None` if it does not follow
    /// from the table endpoint: on Cosmos DB, and for a host that neither contains `.table.` nor is an
    /// address with the account in its path.
    pub(crate) fn secondary_endpoint(&self) -> Option<Self> {
        let url = match (&self.account, self.url.split_once(".table.")) {
            (_, Some((before, after))) if !self.cosmos => {
                format!("{before}-secondary.table.{after}")
            }
            (Some(account), None) if self.url.ends_with(&format!("/{account}")) => {
                format!("{}-secondary", self.url)
            }
            _ => return None,
        };
        // Signatures name the account without the suffix.
        Some(Self { url, ..self.clone() })
    }

    /// Returns the table endpoint of the emulator at its default address.
    pub(crate) fn emulator() -> Self {
        Self {
            url: format!("http://127.0.0.1:10002/{EMULATOR_ACCOUNT}"),
            port: Some(10_002),
            account: Some(EMULATOR_ACCOUNT.to_owned()),
            loopback: true,
            cosmos: false,
            emulator: true,
        }
    }

    /// Reads an address as the Azure portal shows it. The account is the first part of the host name; for an
    /// IP address, `localhost` or a host without dots, it is the first part of the path.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        // The text is not quoted: the query of a SAS URL is a secret.
        let invalid = || {
            Error::new(
                ErrorKind::Invalid,
                "the table endpoint is not an http or https URL with a host",
            )
        };
        let url = Url::parse(text.trim()).map_err(|_| invalid())?;
        let host = url.host_str().ok_or_else(invalid)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "the table endpoint contains a user name; remove it, and authenticate with the account's key, a SAS \
                 or a token",
            ));
        }
        let path_style = !host.contains('.') || is_address(host);
        let first = url.path().split('/').find(|part| !part.is_empty());
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let mut base = format!("{}://{host}{port}", url.scheme());
        let account = if path_style {
            let account = first.ok_or_else(|| {
                Error::new(
                    ErrorKind::Invalid,
                    format!("the table endpoint `{base}` has no account in its path, such as `/devstoreaccount1`"),
                )
            })?;
            base.push('/');
            base.push_str(account);
            Some(account.to_owned())
        } else {
            // The read-only copy of an account has this suffix in its host. Signatures name the
            // account without it.
            host.split('.').next().map(|name| name.trim_end_matches("-secondary").to_owned())
        };
        Ok(Self {
            url: base,
            port: url.port(),
            account,
            loopback: is_loopback(host),
            cosmos: is_cosmos(host),
            emulator: path_style || host.ends_with(".localhost"),
        })
    }
}

/// Returns whether the host is `localhost` or a loopback IP address. A name such as `127.example.com` may
/// lead anywhere.
fn is_loopback(host: &str) -> bool {
    // `Url` leaves an IPv6 address in its brackets, which `IpAddr` does not parse.
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.split('.').all(|part| part.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns whether the host is one of Cosmos DB: `account.table.cosmos.azure.com`, `..cosmos.azure.cn`,
/// `..cosmosdb.azure.com`, `account.documents.azure.com`.
fn is_cosmos(host: &str) -> bool {
    // The first part is the account, which can itself be called `cosmos`.
    host.split('.').skip(1).any(|part| matches!(part, "cosmos" | "cosmosdb" | "documents"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_tells_account_and_kind() {
        let sas = Endpoint::parse("https://me.table.core.windows.net/People?sig=x").unwrap();
        assert_eq!(sas.url, "https://me.table.core.windows.net");
        assert_eq!(sas.account.as_deref(), Some("me"));
        // Signatures of requests to the read-only copy name the account without the suffix.
        let copy = Endpoint::parse("https://me-secondary.table.core.windows.net").unwrap();
        assert_eq!(copy.url, "https://me-secondary.table.core.windows.net");
        assert_eq!(copy.account.as_deref(), Some("me"));
        let local = Endpoint::parse("http://127.0.0.1:1234/devstoreaccount1/").unwrap();
        assert_eq!(local.url, "http://127.0.0.1:1234/devstoreaccount1");
        assert!(local.loopback && !local.cosmos && local.emulator && !sas.emulator);
        assert!(Endpoint::parse("http://me.table.localhost:10002/").unwrap().emulator);
        assert!(Endpoint::parse("https://a.table.cosmos.azure.com:443/").unwrap().cosmos);
        assert_eq!(
            Endpoint::for_account("https", "a", "core.chinacloudapi.cn").unwrap().url,
            "https://a.table.core.chinacloudapi.cn"
        );
    }

    #[test]
    fn an_endpoint_tells_its_host_and_a_port_that_is_not_the_schemes() {
        for (url, host, port) in [
            ("https://me.table.core.windows.net", "me.table.core.windows.net", None),
            ("https://me.table.cosmos.azure.com:443/", "me.table.cosmos.azure.com", None),
            ("https://me.table.cosmos.azure.com:444/", "me.table.cosmos.azure.com", Some(444)),
            ("http://127.0.0.1:10002/devstoreaccount1", "127.0.0.1", Some(10_002)),
            ("http://[::1]:10002/me", "::1", Some(10_002)),
            ("http://localhost/me", "localhost", None),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!((endpoint.host(), endpoint.port), (host, port));
        }
    }

    #[test]
    fn a_cloud_tells_the_scope_of_its_tokens() {
        let scope = |url: &str, service| Endpoint::parse(url).unwrap().token_scope(service);
        for storage in ["core.windows.net", "core.usgovcloudapi.net", "core.chinacloudapi.cn"] {
            let url = format!("https://me.table.{storage}");
            assert_eq!(scope(&url, Service::Tables), "https://storage.azure.com/.default");
        }
        for (host, expected) in [
            ("me.table.cosmos.azure.com:443", "https://cosmos.azure.com/.default"),
            ("me.table.cosmosdb.azure.com", "https://cosmos.azure.com/.default"),
            ("me.table.cosmos.azure.us", "https://cosmos.azure.us/.default"),
            ("me.table.cosmos.azure.cn:443", "https://cosmos.azure.cn/.default"),
        ] {
            assert_eq!(scope(&format!("https://{host}"), Service::Cosmos), expected);
        }
    }

    #[test]
    fn the_origin_has_no_path() {
        for (url, origin) in [
            ("https://me.table.core.windows.net/", "https://me.table.core.windows.net"),
            ("http://127.0.0.1:10002/devstoreaccount1", "http://127.0.0.1:10002"),
        ] {
            assert_eq!(Endpoint::parse(url).unwrap().origin(), origin);
        }
    }

    #[cfg(feature = "azure-queue")]
    #[test]
    fn the_tables_address_tells_that_of_the_queues() {
        let queues =
            |url: &str| Endpoint::parse(url).unwrap().queue_endpoint().map(|found| found.url);
        assert_eq!(
            queues("https://me.table.core.windows.net").as_deref(),
            Some("https://me.queue.core.windows.net")
        );
        assert_eq!(
            Endpoint::emulator().queue_endpoint().unwrap().url,
            "http://127.0.0.1:10001/devstoreaccount1"
        );
        assert_eq!(queues("http://127.0.0.1:1234/devstoreaccount1"), None);
        assert_eq!(queues("https://a.table.cosmos.azure.com"), None);
    }

    #[test]
    fn a_name_that_looks_like_a_loopback_address_is_none() {
        for here in ["127.0.0.1:1/me", "127.9.9.9/me", "localhost:1/me", "[::1]:1/me"] {
            assert!(Endpoint::parse(&format!("http://{here}")).unwrap().loopback, "{here}");
        }
        for elsewhere in
            ["127.evil.com", "127.0.0.1.evil.com", "localhost.evil.com", "[::2]/me", "10.0.0.1/me"]
        {
            assert!(
                !Endpoint::parse(&format!("http://{elsewhere}")).unwrap().loopback,
                "{elsewhere}"
            );
        }
    }

    #[test]
    fn a_wrong_endpoint_is_refused() {
        for wrong in ["", "me", "ftp://me.table.core.windows.net", "http://127.0.0.1:10002"] {
            assert!(Endpoint::parse(wrong).unwrap_err().is_invalid(), "{wrong}");
        }
        assert!(
            Endpoint::for_account("https", "Me/../", PUBLIC_CLOUD_SUFFIX).unwrap_err().is_invalid()
        );
    }
}
