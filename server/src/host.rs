//! Keeps web pages out of a server whose key is public.
//!
//! A page in a browser can send requests to this machine and can sign them with the well-known key. Browsers say which
//! page a request comes from (`Origin`), except for a page that points a name of its own to this machine (DNS
//! rebinding): such a page sends that name as `Host`.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::{failure::Failure, request::Request};

/// The names that requests may call the server by.
#[derive(Debug, Clone)]
pub(crate) enum Hosts {
    /// Any name: the key is a secret, so no page can sign.
    All,
    /// IP addresses, `localhost`, and these names.
    Named(Vec<String>),
}

impl Hosts {
    /// Refuses a request that a web page could have sent.
    pub(crate) fn check(&self, request: &Request) -> Result<(), Failure> {
        let host = request.header("host").unwrap_or("");
        if host.is_empty() {
            return Err(Failure::new(400, "HostInformationNotPresent"));
        }
        if request.header("origin").is_none() && self.has(host_name(host)) {
            return Ok(());
        }
        Err(Failure::new(403, "AuthorizationFailure"))
    }

    fn has(&self, name: &str) -> bool {
        let Self::Named(names) = self else { return true };
        let is_address = name.parse::<Ipv4Addr>().is_ok() || name.parse::<Ipv6Addr>().is_ok();
        // An address cannot be rebound. Its port may be that of a mapping in front of this machine.
        is_address
            || name.eq_ignore_ascii_case("localhost")
            || names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Returns the name in `name:port`, and the address in `[address]:port`.
pub(crate) fn host_name(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_allowed_names_are_accepted() {
        let hosts = Hosts::Named(vec!["tables".into()]);
        for name in [
            "127.0.0.1:10002",
            "[::1]:10002",
            "10.0.0.7",
            "localhost:8080",
            "Tables:10002",
            "tables",
        ] {
            assert!(hosts.has(host_name(name)), "{name}");
        }
        for name in ["evil.example:10002", "127.0.0.1.evil.example", "table", "", "localhost.evil"]
        {
            assert!(!hosts.has(host_name(name)), "{name}");
        }
        assert!(Hosts::All.has("evil.example"));
    }
}
