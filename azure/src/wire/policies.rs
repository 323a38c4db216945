//! Writes and reads stored access policies as XML.

use entable_core::{
    edm::Ticks,
    error::{Error, ErrorKind, Result},
};
use time::OffsetDateTime;

use super::xml::{element_text, escape_xml};
use crate::access_policy::AccessPolicy;

/// Writes the body of `PUT /Table?comp=acl`.
///
/// # Errors
///
/// `is_invalid` for a time outside the years 1 to 9999.
pub(crate) fn write_policies(policies: &[AccessPolicy]) -> Result<String> {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>");
    for policy in policies {
        xml.push_str("<SignedIdentifier><Id>");
        xml.push_str(&escape_xml(&policy.id));
        xml.push_str("</Id><AccessPolicy>");
        let mut element = |name: &str, text: Option<String>| {
            if let Some(text) = text {
                xml.push_str(&format!("<{name}>{}</{name}>", escape_xml(&text)));
            }
        };
        element("Start", print_time(policy, "Start", policy.start)?);
        element("Expiry", print_time(policy, "Expiry", policy.expiry)?);
        element("Permission", policy.permissions.clone());
        xml.push_str("</AccessPolicy></SignedIdentifier>");
    }
    xml.push_str("</SignedIdentifiers>");
    Ok(xml)
}

/// Reads the policies from the answer to `GET /Table?comp=acl`, or from the body of a request that sets them.
///
/// # Errors
///
/// `is_backend` for a text that is not a list of policies, for a policy without an id, and for a time that is none.
pub fn read_policies(body: &[u8]) -> Result<Vec<AccessPolicy>> {
    let xml = String::from_utf8_lossy(body);
    if !xml.contains("SignedIdentifiers") {
        return Err(Error::new(
            ErrorKind::Backend,
            "the service's answer is not a list of policies",
        ));
    }
    let damaged = |what| Error::new(ErrorKind::Backend, format!("a policy of the list {what}"));
    let mut policies = Vec::new();
    let mut rest = &*xml;
    while let Some((_, after)) = rest.split_once("<SignedIdentifier>") {
        let policy = after.split_once("</SignedIdentifier>");
        let (one, after) = policy.ok_or_else(|| damaged("does not end"))?;
        rest = after;
        policies.push(AccessPolicy {
            id: element_text(one, "Id").ok_or_else(|| damaged("has no Id"))?,
            start: element_time(one, "Start")?,
            expiry: element_time(one, "Expiry")?,
            permissions: element_text(one, "Permission"),
        });
    }
    Ok(policies)
}

/// Writes a time of a policy as the service does. `name` is the element that holds it.
fn print_time(
    policy: &AccessPolicy,
    name: &str,
    time: Option<OffsetDateTime>,
) -> Result<Option<String>> {
    let Some(time) = time else { return Ok(None) };
    // The time is not moved to the nearest year: the policy would permit something else than its caller wrote.
    let ticks = Ticks::try_from(time).map_err(|error| {
        let id = policy.id.escape_debug();
        let message =
            format!("the {name} of the policy `{id}`, {time}, is not in the years 1 to 9999");
        Error::new(ErrorKind::Invalid, message).with_source(error)
    })?;
    Ok(Some(ticks.to_string()))
}

fn element_time(xml: &str, name: &str) -> Result<Option<OffsetDateTime>> {
    let Some(text) = element_text(xml, name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    text.parse::<Ticks>().map(|time| Some(time.into())).map_err(|error| {
        Error::new(ErrorKind::Backend, format!("a policy's {name} is not a time"))
            .with_source(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_go_through_xml() {
        let policies = vec![
            AccessPolicy {
                id: "a<&>".into(),
                start: Some(OffsetDateTime::UNIX_EPOCH),
                expiry: Some(OffsetDateTime::UNIX_EPOCH + time::Duration::days(20_000)),
                permissions: Some("raud".into()),
            },
            AccessPolicy::new("empty"),
        ];
        let xml = write_policies(&policies).unwrap();
        assert_eq!(read_policies(xml.as_bytes()).unwrap(), policies);
    }

    #[test]
    fn a_policy_without_an_id_or_an_end_is_refused() {
        for damaged in ["<SignedIdentifier></SignedIdentifier>", "<SignedIdentifier><Id>a</Id>"] {
            let xml = format!("<SignedIdentifiers>{damaged}</SignedIdentifiers>");
            assert!(read_policies(xml.as_bytes()).unwrap_err().is_backend(), "{damaged}");
        }
    }

    #[test]
    fn the_services_form_is_read() {
        let xml = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Start>2021-06-08T02:10:09.0000000Z</Start><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
        let found = read_policies(xml.as_bytes()).unwrap();
        let start = print_time(&found[0], "Start", found[0].start).unwrap();
        assert_eq!(start.as_deref(), Some("2021-06-08T02:10:09Z"));
        assert_eq!(found[0].expiry, None);
    }
}
