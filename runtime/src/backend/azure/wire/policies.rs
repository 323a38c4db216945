//! Writes and reads stored access policies as XML.

use time::OffsetDateTime;

use crate::{
    backend::azure::{
        access_policy::AccessPolicy,
        wire::xml::{escape_xml, unescape_xml},
    },
    edm::Ticks,
    error::{Error, ErrorKind, Result},
};

/// Writes the body of `PUT /Table?comp=acl`.
pub(in crate::backend::azure) fn write_policies(policies: &[AccessPolicy]) -> String {
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
        element("Start", policy.start.map(print_time));
        element("Expiry", policy.expiry.map(print_time));
        element("Permission", policy.permissions.clone());
        xml.push_str("</AccessPolicy></SignedIdentifier>");
    }
    xml.push_str("</SignedIdentifiers>");
    xml
}

/// Reads the policies from the answer to `GET /Table?comp=acl`.
pub(in crate::backend::azure) fn read_policies(body: &[u8]) -> Result<Vec<AccessPolicy>> {
    let xml = String::from_utf8_lossy(body);
    if !xml.contains("SignedIdentifiers") {
        return Err(Error::new(
            ErrorKind::Backend,
            "the service's answer is not a list of policies",
        ));
    }
    let mut policies = Vec::new();
    let mut rest = &*xml;
    while let Some((_, after)) = rest.split_once("<SignedIdentifier>") {
        let (one, after) = after.split_once("</SignedIdentifier>").unwrap_or((after, ""));
        rest = after;
        policies.push(AccessPolicy {
            id: element_text(one, "Id").unwrap_or_default(),
            start: element_time(one, "Start")?,
            expiry: element_time(one, "Expiry")?,
            permissions: element_text(one, "Permission"),
        });
    }
    Ok(policies)
}

fn print_time(time: OffsetDateTime) -> String {
    Ticks::try_from(time).unwrap_or(Ticks::MAX).to_string()
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

fn element_text(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(unescape_xml(text.trim()))
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
        let xml = write_policies(&policies);
        assert_eq!(read_policies(xml.as_bytes()).unwrap(), policies);
    }

    #[test]
    fn the_services_form_is_read() {
        let xml = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Start>2021-06-08T02:10:09.0000000Z</Start><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
        let found = read_policies(xml.as_bytes()).unwrap();
        assert_eq!(print_time(found[0].start.unwrap()), "2021-06-08T02:10:09Z");
        assert_eq!(found[0].expiry, None);
    }
}
