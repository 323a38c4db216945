//! Checks shared access signatures (SAS): whether the key signed the parameters of an address, and whether they are
//! valid now and for this client.

use std::net::{IpAddr, Ipv4Addr};

use entable_azure::{
    AccessPolicy,
    wire::{account_text_to_sign, table_text_to_sign},
};
use entable_core::Ticks;

use crate::{
    failure::Failure,
    grant::{Grant, RowRange},
    policies::{policies_of, ticks_of},
    request::Request,
    service::Service,
    signature::{SKEW, denied, is_signed},
};

/// The first version whose signatures contain addresses and protocols.
const FIRST_VERSION: &str = "2015-04-05";

/// Returns what the signature in the address of a request permits.
pub(crate) async fn grant_of(
    service: &Service,
    request: &Request,
    client: IpAddr,
    now: Ticks,
) -> Result<Grant, Failure> {
    let member = |name: &str| request.option(name).unwrap_or("");
    if member("sv") < FIRST_VERSION {
        return Err(denied());
    }
    let account = service.key.account();
    let is_for_account = !member("ss").is_empty();
    let text = if is_for_account {
        account_text_to_sign(account, member)
    } else {
        table_text_to_sign(account, &[member("si")], member)
    };
    // A `+` of base64 that was not encoded in the address has become a blank.
    if !is_signed(&service.key, &text, &member("sig").replace(' ', "+")) {
        return Err(denied());
    }
    check_client(member("sip"), member("spr"), client)?;
    if is_for_account {
        return account_grant(member, now);
    }
    table_grant(service, member, now).await
}

fn account_grant<'a>(member: impl Fn(&str) -> &'a str, now: Ticks) -> Result<Grant, Failure> {
    check_times(member("st"), member("se"), now)?;
    if !member("ss").contains('t') {
        return Err(Failure::new(403, "AuthorizationServiceMismatch"));
    }
    let (resources, permissions) = (member("srt").to_owned(), member("sp").to_owned());
    Ok(Grant::Account { resources, permissions })
}

async fn table_grant<'a>(
    service: &Service,
    member: impl Fn(&str) -> &'a str,
    now: Ticks,
) -> Result<Grant, Failure> {
    let table = member("tn");
    let stored = match member("si") {
        "" => AccessPolicy::new(""),
        // An unknown policy, or a table that is gone, permits nothing.
        id => {
            let policies = policies_of(service, table).await.map_err(|_| denied())?;
            policies.into_iter().find(|policy| policy.id == id).ok_or_else(denied)?
        }
    };
    let text = |time: Option<Ticks>| time.map(|time| time.to_string());
    let starts = one_of(member("st"), text(ticks_of(stored.start)))?;
    let expires = one_of(member("se"), text(ticks_of(stored.expiry)))?;
    check_times(&starts, &expires, now)?;
    let permissions = one_of(member("sp"), stored.permissions.filter(|text| !text.is_empty()))?;
    let end = |partition: &str, row: &str| match (member(partition), member(row)) {
        ("", row) if !row.is_empty() => Err(denied()),
        (partition, row) => Ok((partition.to_owned(), row.to_owned())),
    };
    let rows = RowRange { from: end("spk", "srk")?, to: end("epk", "erk")? };
    Ok(Grant::Table { table: table.to_owned(), permissions, rows })
}

/// Returns what the signature or its policy says. Both must not say it.
fn one_of(own: &str, stored: Option<String>) -> Result<String, Failure> {
    match stored {
        None => Ok(own.to_owned()),
        Some(stored) if own.is_empty() => Ok(stored),
        Some(_) => Err(denied()),
    }
}

/// Refuses a signature before its start or from its end on.
fn check_times(starts: &str, expires: &str, now: Ticks) -> Result<(), Failure> {
    let time = |text: &str| text.parse::<Ticks>().map_err(|_| denied());
    // The clock of the signer may be ahead. The end is exact: what has expired never works.
    if !starts.is_empty() && time(starts)?.get() > now.get().saturating_add(SKEW) {
        return Err(denied());
    }
    if time(expires)? > now { Ok(()) } else { Err(denied()) }
}

/// Refuses a client at another address than the signature permits, and a signature for https alone: requests come over
/// http.
fn check_client(addresses: &str, protocols: &str, client: IpAddr) -> Result<(), Failure> {
    if !protocols.is_empty() && !protocols.split(',').any(|protocol| protocol == "http") {
        return Err(Failure::new(403, "AuthorizationProtocolMismatch"));
    }
    if addresses.is_empty() {
        return Ok(());
    }
    let address = |text: &str| text.parse::<Ipv4Addr>().map_err(|_| denied());
    let (first, last) = addresses.split_once('-').unwrap_or((addresses, addresses));
    let (first, last) = (address(first)?, address(last)?);
    match client.to_canonical() {
        IpAddr::V4(client) if first <= client && client <= last => Ok(()),
        _ => Err(Failure::new(403, "AuthorizationSourceIPMismatch")),
    }
}
