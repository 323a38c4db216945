//! Decides who gets in: the signature of a request is checked before its body is read.

use entable::{
    __wire::{http_date_ticks, sign_text},
    AccountKey, Ticks,
};
use subtle::ConstantTimeEq;

use crate::{failure::Failure, request::Request};

/// The most ticks between the date of a request and the server's clock: 15 minutes.
const SKEW: i64 = 15 * 60 * 10_000_000;

/// Checks the signature and the date of a request. `now` is the server's time.
pub(crate) fn authorize(key: &AccountKey, request: &Request, now: Ticks) -> Result<(), Failure> {
    let Some(given) = request.header("authorization") else {
        return Err(Failure::new(401, "NoAuthenticationInformation"));
    };
    let denied = || Failure::new(403, "AuthenticationFailed");
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
    let expected = sign_text(key, &text);
    let is_signed = bool::from(expected.as_bytes().ct_eq(signature.as_bytes()));
    let sent = http_date_ticks(date).ok_or_else(denied)?;
    let is_fresh = (now.get() - sent.get()).abs() <= SKEW;
    if account == key.account() && is_signed && is_fresh { Ok(()) } else { Err(denied()) }
}

fn canonical_resource(account: &str, request: &Request) -> String {
    let comp = request.option("comp").map(|comp| format!("?comp={comp}")).unwrap_or_default();
    format!("/{account}{}{comp}", request.path)
}
