//! Decides who gets in: the signature of a request is checked before its body is read.

use std::net::IpAddr;

use entable_core::Ticks;

use crate::{
    failure::Failure, grant::Grant, request::Request, sas, service::Service,
    signature::check_signature,
};

/// Returns what a request from `client` may do. `now` is the server's time.
pub(crate) async fn authorize(
    service: &Service,
    request: &Request,
    client: IpAddr,
    now: Ticks,
) -> Result<Grant, Failure> {
    match request.header("authorization") {
        // A request signed with the key may do everything, also if its address has another signature.
        Some(given) => {
            check_signature(&service.key, request, given, now).map(|()| Grant::Everything)
        }
        None if request.option("sig").is_some() => {
            sas::grant_of(service, request, client, now).await
        }
        None => Err(Failure::new(401, "NoAuthenticationInformation")),
    }
}
