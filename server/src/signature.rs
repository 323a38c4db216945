//! Checks the signature of a request, in its header `Authorization`.

use entable_azure::{AccountKey, wire::parse_http_date};
use entable_core::Ticks;
use subtle::ConstantTimeEq;

use crate::{failure::Failure, request::Request};

/// The most ticks between the clock of a client and the server's: 15 minutes.
pub(crate) const SKEW: i64 = 15 * 60 * 10_000_000;

/// Checks the signature and the date of a request. `now` is the server's time.
pub(crate) fn check_signature(
    key: &AccountKey,
    request: &Request,
    given: &str,
    now: Ticks,
) -> Result<(), Failure> {
    let (scheme, credentials) = given.split_once(' ').ok_or_else(denied)?;
    let (account, signature) = credentials.trim().split_once(':').ok_or_else(denied)?;
    let date = request.header("x-ms-date").or_else(|| request.header("date")).unwrap_or("");
    let resource = canonical_resource(key.account(), request);
    let header = |name: &str| request.header(name).unwrap_or("");
    let text = match scheme {
        "SharedKey" => format!(
            "{}\n{}\n{}\n{date}\n{resource}",
            request.method,
            header("content-md5"),
            header("content-type"),
        ),
        "SharedKeyLite" => format!("{date}\n{resource}"),
        _ => return Err(denied()),
    };
    let is_signed = is_signed(key, &text, signature);
    let sent = parse_http_date(date).ok_or_else(denied)?;
    let is_fresh = (now.get() - sent.get()).abs() <= SKEW;
    if account == key.account() && is_signed && is_fresh { Ok(()) } else { Err(denied()) }
}

fn canonical_resource(account: &str, request: &Request) -> String {
    let comp = request.option("comp").map(|comp| format!("?comp={comp}")).unwrap_or_default();
    format!("/{account}{}{comp}", request.path)
}

/// Returns whether `signature` is that of `text`. Takes the same time for every wrong signature, so that none can be
/// guessed byte by byte.
pub(crate) fn is_signed(key: &AccountKey, text: &str, signature: &str) -> bool {
    key.sign_text(text).as_bytes().ct_eq(signature.as_bytes()).into()
}

/// Returns the failure of a request whose signature is wrong or not valid any more.
pub(crate) fn denied() -> Failure {
    Failure::new(403, "AuthenticationFailed")
}
