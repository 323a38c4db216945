//! Defines the terms that both kinds of signatures have: when and from where they are valid.

use std::net::Ipv4Addr;

use entable_core::{edm::Ticks, error};
use time::OffsetDateTime;

use super::token::invalid_signature_terms_error;

/// When and from where a signature is valid: times, IPv4 addresses, protocol.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SasTerms {
    /// The beginning; `Err` for a time outside the years 1 to 9999, which no signature can name.
    pub(super) starts: Option<Result<Ticks, OffsetDateTime>>,
    /// The end, like `starts`.
    pub(super) expires: Option<Result<Ticks, OffsetDateTime>>,
    pub(super) ip: String,
    pub(super) protocol: &'static str,
}

impl Default for SasTerms {
    fn default() -> Self {
        // A signature that goes over http can be used by whoever sees it.
        Self { starts: None, expires: None, ip: String::new(), protocol: "https" }
    }
}

impl SasTerms {
    pub(super) fn starts(&self) -> String {
        format_seconds(self.starts)
    }

    pub(super) fn expires(&self) -> String {
        format_seconds(self.expires)
    }

    /// Checks times and addresses, which the service would refuse only when the signature is used.
    pub(super) fn check_terms(&self) -> error::Result<()> {
        for time in [self.starts, self.expires] {
            if let Some(Err(time)) = time {
                return Err(invalid_signature_terms_error(format!(
                    "a SAS needs times in the years 1 to 9999, found {time}"
                )));
            }
        }
        // Compared as they are signed, in whole seconds.
        let (starts, expires) = (self.starts(), self.expires());
        // Both texts have one fixed form, from the year down, so they sort as the times do.
        if !starts.is_empty() && !expires.is_empty() && starts >= expires {
            return Err(invalid_signature_terms_error(format!(
                "the SAS expires at {expires}, which is not after its start at {starts}"
            )));
        }
        let one = |address: &str| address.parse::<Ipv4Addr>().ok();
        let (first, last) = self.ip.split_once('-').unwrap_or((&self.ip, &self.ip));
        match (one(first), one(last)) {
            _ if self.ip.is_empty() => Ok(()),
            (Some(first), Some(last)) if first <= last => Ok(()),
            _ => Err(invalid_signature_terms_error(format!(
                "`{}` is not an address range such as `168.1.5.60` or `168.1.5.60-168.1.5.70`",
                self.ip.escape_debug()
            ))),
        }
    }
}

/// Formats a time for a signature, in whole seconds. Returns an empty text without a time.
fn format_seconds(time: Option<Result<Ticks, OffsetDateTime>>) -> String {
    let Some(Ok(time)) = time else { return String::new() };
    time.to_text_in_seconds()
}

/// Converts a time to ticks, or gives it back if it is outside the years 1 to 9999.
pub(super) fn try_into_ticks(time: OffsetDateTime) -> Result<Ticks, OffsetDateTime> {
    Ticks::try_from(time).map_err(|_| time)
}

/// Adds the methods that set the terms of a signature, in its field `terms`.
macro_rules! terms {
    ($kind:ident) => {
        impl $kind {
            /// Sets when the signature becomes valid. Without it, it is valid at once. Clocks
            /// differ, so leave it out or set it some minutes early.
            #[must_use]
            pub fn starts(mut self, time: time::OffsetDateTime) -> Self {
                self.terms.starts = Some(super::terms::try_into_ticks(time));
                self
            }

            /// Sets when the signature ends. A fraction of a second is cut off.
            #[must_use]
            pub fn expires(mut self, time: time::OffsetDateTime) -> Self {
                self.terms.expires = Some(super::terms::try_into_ticks(time));
                self
            }

            /// Permits requests only from this IPv4 address or range, such as
            /// `168.1.5.60-168.1.5.70`.
            #[must_use]
            pub fn ip(mut self, addresses: impl Into<String>) -> Self {
                self.terms.ip = addresses.into();
                self
            }

            /// Permits requests over http too, as an emulator needs it. Whoever sees such a request can use
            /// the signature. A signature permits https only unless this method is called.
            #[must_use]
            pub fn allow_http(mut self) -> Self {
                self.terms.protocol = "";
                self
            }

            /// Permits requests over https only, which is the default.
            #[must_use]
            pub fn https_only(mut self) -> Self {
                self.terms.protocol = "https";
                self
            }
        }
    };
}
pub(super) use terms;
