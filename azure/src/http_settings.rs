//! Settings of the HTTP clients that this crate opens, as texts and bytes.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use entable_core::error::{Error, ErrorKind, Result};
use url::Url;
use zeroize::Zeroizing;

/// How long an idle connection is kept. The service closes it after the same time.
#[cfg(any(feature = "azure", feature = "azure-data-tables"))]
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Settings of an HTTP client.
#[derive(Clone)]
pub(crate) struct HttpSettings {
    pub(crate) connect_timeout: Duration,
    /// The address of the proxy, which may hold a password.
    pub(crate) proxy: Option<Zeroizing<String>>,
    /// Certificates that are trusted besides those that are built in, in DER form.
    pub(crate) root_certificates: Vec<Vec<u8>>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        let connect_timeout = Duration::from_secs(10);
        Self { connect_timeout, proxy: None, root_certificates: Vec::new() }
    }
}

/// Checks the address of a proxy and returns it. Adds `http://` to an address without a scheme.
///
/// Fails with `is_invalid` for an address without a host. The error does not show the address, which may contain a
/// password.
pub(crate) fn check_proxy_address(address: &str) -> Result<Zeroizing<String>> {
    let address = address.trim();
    let address = Zeroizing::new(if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    });
    match Url::parse(&address) {
        Ok(url) if url.host_str().is_some_and(|host| !host.is_empty()) => Ok(address),
        // Not quoted: it may hold a password.
        _ => Err(Error::new(ErrorKind::Invalid, "the address of the proxy is not valid")),
    }
}

/// Returns the certificates of a text in PEM form, each in DER form.
pub(crate) fn certificates_of_pem(pem: &[u8]) -> Result<Vec<Vec<u8>>> {
    let invalid = || {
        Error::new(ErrorKind::Invalid, "the text contains no complete certificate in PEM format")
    };
    let text = std::str::from_utf8(pem).map_err(|_| invalid())?;
    let mut certificates = Vec::new();
    for part in text.split("-----BEGIN CERTIFICATE-----").skip(1) {
        let (body, _) = part.split_once("-----END CERTIFICATE-----").ok_or_else(invalid)?;
        let body: String = body.split_ascii_whitespace().collect();
        certificates.push(STANDARD.decode(body).map_err(|_| invalid())?);
    }
    if certificates.is_empty() {
        return Err(invalid());
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_of_certificates_is_read() {
        let one = "-----BEGIN CERTIFICATE-----\r\nAAEC\r\nAwQF\r\n-----END CERTIFICATE-----\r\n";
        let bundle = format!("# a comment\n{one}\n{one}");
        assert_eq!(certificates_of_pem(bundle.as_bytes()).unwrap(), [[0, 1, 2, 3, 4, 5]; 2]);
        for wrong in ["", "AAEC", "-----BEGIN CERTIFICATE-----\nAAEC", &one.replace("AAEC", "?")] {
            assert!(certificates_of_pem(wrong.as_bytes()).unwrap_err().is_invalid(), "{wrong}");
        }
    }

    #[test]
    fn a_proxy_has_a_host() {
        assert_eq!(*check_proxy_address(" proxy:3128 ").unwrap(), "http://proxy:3128");
        assert!(check_proxy_address("socks5://me:pw@proxy").is_ok());
        for wrong in ["", "http://", "http://:secret", "http://a b"] {
            let error = check_proxy_address(wrong).unwrap_err();
            assert!(error.is_invalid() && !error.to_string().contains("secret"), "{wrong}");
        }
    }
}
