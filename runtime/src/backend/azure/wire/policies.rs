//! Stored access policies as XML.

use time::OffsetDateTime;

use crate::{
    backend::azure::AccessPolicy,
    edm::Ticks,
    error::{Error, ErrorKind, Result},
};

/// The body of `PUT /T?comp=acl`.
pub(in crate::backend::azure) fn write_policies(policies: &[AccessPolicy]) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>");
    for policy in policies {
        xml.push_str("<SignedIdentifier><Id>");
        xml.push_str(&escaped(&policy.id));
        xml.push_str("</Id><AccessPolicy>");
        let mut element = |name: &str, text: Option<String>| {
            if let Some(text) = text {
                xml.push_str(&format!("<{name}>{}</{name}>", escaped(&text)));
            }
        };
        element("Start", policy.start.map(printed));
        element("Expiry", policy.expiry.map(printed));
        element("Permission", policy.permissions.clone());
        xml.push_str("</AccessPolicy></SignedIdentifier>");
    }
    xml.push_str("</SignedIdentifiers>");
    xml
}

/// The policies of the answer to `GET /T?comp=acl`.
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
            id: element(one, "Id").unwrap_or_default(),
            start: time(one, "Start")?,
            expiry: time(one, "Expiry")?,
            permissions: element(one, "Permission"),
        });
    }
    Ok(policies)
}

fn printed(time: OffsetDateTime) -> String {
    Ticks::try_from(time).unwrap_or(Ticks::MAX).to_string()
}

fn time(xml: &str, name: &str) -> Result<Option<OffsetDateTime>> {
    let Some(text) = element(xml, name).filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse::<Ticks>().map(|time| Some(time.into())).map_err(|error| {
        Error::new(ErrorKind::Backend, format!("a policy's {name} is not a time"))
            .with_source(error)
    })
}

fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(unescaped(text.trim()))
}

/// A text as XML has it; of line ends a reader would make others.
pub(in crate::backend::azure) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\r', "&#xD;")
}

/// The text of an element, with its references resolved.
pub(in crate::backend::azure) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let meant = after.split_once(';').and_then(|(name, after)| Some((named(name)?, after)));
        let (character, after) = meant.unwrap_or(('&', after));
        out.push(character);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The character of a reference, by name or by number.
fn named(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "amp" => Some('&'),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_once() {
        let text = "{&quot;a&quot;:&#xD;&#10;&amp;lt; &amp;#65; & &no; &#x110000;}";
        assert_eq!(unescaped(text), "{\"a\":\r\n&lt; &#65; & &no; &#x110000;}");
        assert_eq!(unescaped(&escaped("a\r\n<&>")), "a\r\n<&>");
    }

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
        assert_eq!(printed(found[0].start.unwrap()), "2021-06-08T02:10:09Z");
        assert_eq!(found[0].expiry, None);
    }
}
