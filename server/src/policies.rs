//! Requests about the stored access policies of a table, `?comp=acl`.

use entable_azure::{
    AccessPolicy,
    wire::{escape_xml, read_policies},
};
use entable_core::Ticks;

use crate::{
    failure::{Failure, service_time},
    grant::Action,
    request::{Answer, Request},
    service::Service,
};

/// The most policies of a table, and the most characters of a policy's name.
const POLICIES: usize = 5;
const NAME: usize = 64;

/// Returns the stored access policies of a table.
pub(crate) async fn policies_of(
    service: &Service,
    table: &str,
) -> Result<Vec<AccessPolicy>, Failure> {
    match service.backend.settings(Some(table)).await? {
        Some(text) => Ok(read_policies(text.as_bytes())?),
        None => Ok(Vec::new()),
    }
}

/// Returns a time of a policy in ticks.
pub(crate) fn ticks_of(time: Option<impl TryInto<Ticks>>) -> Option<Ticks> {
    // Times of policies were read as ticks, so they are in the range of ticks.
    time.and_then(|time| time.try_into().ok())
}

pub(crate) async fn answer(
    service: &Service,
    request: &Request,
    verb: &str,
    table: &str,
) -> Result<Answer, Failure> {
    request.grant.check(Action::Policies)?;
    match verb {
        "GET" => {
            let policies = policies_of(service, table).await?;
            Ok(Answer::xml(200, &written(&policies)))
        }
        "PUT" => {
            let text = std::str::from_utf8(&request.body).map_err(|_| Failure::malformed_xml())?;
            let policies = checked(text)?;
            let text = if policies.is_empty() { String::new() } else { written(&policies) };
            service.backend.set_settings(Some(table), &text).await?;
            Ok(Answer::of_status(204))
        }
        _ => Err(Failure::new(405, "MethodNotAllowed")),
    }
}

/// Reads the policies of a request.
fn checked(text: &str) -> Result<Vec<AccessPolicy>, Failure> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let is_list = text.contains("</SignedIdentifiers>") || text.contains("<SignedIdentifiers");
    let (opened, closed) = ("<SignedIdentifier>", "</SignedIdentifier>");
    if !is_list || text.matches(opened).count() != text.matches(closed).count() {
        return Err(Failure::malformed_xml());
    }
    let policies = read_policies(text.as_bytes()).map_err(|_| Failure::malformed_xml())?;
    for (at, policy) in policies.iter().enumerate() {
        let is_named = (1..=NAME).contains(&policy.id.chars().count());
        let is_known = policies.iter().take(at).any(|other| other.id == policy.id);
        let letters = policy.permissions.as_deref().unwrap_or_default();
        if !is_named || is_known || !letters.chars().all(|letter| "raud".contains(letter)) {
            return Err(Failure::malformed_xml());
        }
    }
    if policies.len() > POLICIES { Err(Failure::malformed_xml()) } else { Ok(policies) }
}

/// Writes policies as the service does: with times of seven digits.
fn written(policies: &[AccessPolicy]) -> String {
    let mut xml = String::from("<SignedIdentifiers>");
    for policy in policies {
        let elements = [
            ("Start", ticks_of(policy.start).map(service_time)),
            ("Expiry", ticks_of(policy.expiry).map(service_time)),
            ("Permission", policy.permissions.clone()),
        ];
        let elements = elements.into_iter().filter_map(|(name, text)| {
            text.map(|text| format!("<{name}>{}</{name}>", escape_xml(&text)))
        });
        let elements: String = elements.collect();
        let id = escape_xml(&policy.id);
        // A policy that leaves everything to signatures has an id alone.
        let access = if elements.is_empty() {
            elements
        } else {
            format!("<AccessPolicy>{elements}</AccessPolicy>")
        };
        xml.push_str(&format!("<SignedIdentifier><Id>{id}</Id>{access}</SignedIdentifier>"));
    }
    xml + "</SignedIdentifiers>"
}
